"""Markdown: a page with what its front matter says about it; MDX, and text without markup."""

import re
import tomllib
from typing import Any

import frontmatter
import yaml

from knowledge.parsing import markup
from knowledge.parsing.encoding import decode
from knowledge.parsing.normalization import clean_characters, collapse_blank_lines, normalise
from knowledge.parsing.outline import title
from knowledge.parsing.parsed_page import Limits, Page, as_date, as_language, as_list, as_text

FRONT_MATTER = re.compile(
    r"\A\s*(---|\+\+\+)[ \t]*\n(.*?)^\1[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
TOML = "+++"
FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\1[`~]*[ \t]*$", re.DOTALL | re.MULTILINE)
TABLE = re.compile(r"^[ \t]*<table\b.*?</table>[ \t]*$", re.DOTALL | re.MULTILINE | re.IGNORECASE)


def parse(body: bytes, _: Limits) -> list[Page]:
    """Return the page of a Markdown file. Raises Unreadable."""
    return [page(body)]


def parse_mdx(body: bytes, _: Limits) -> list[Page]:
    """Return the page of an MDX file: Markdown with components in it. Raises Unreadable."""
    return [page(body, mdx=True)]


def parse_text(body: bytes, _: Limits) -> list[Page]:
    """Return the page of a text file. Raises Unreadable."""
    text, warnings = decode(body)
    return [Page(content=collapse_blank_lines(clean_characters(text)), warnings=warnings)]


def page(body: bytes, *, mdx: bool = False) -> Page:
    """Return the page; with `mdx`, components count as tags. Raises Unreadable."""
    text, warnings = decode(body)
    about, text, problem = front_matter(clean_characters(text))
    content = normalise(without_html_tables(text), mdx=mdx)
    return Page(
        content=content,
        title=as_text(about.get("title")) or title(content),
        crumbs=as_list(first(about, "crumbs", "breadcrumbs"), ">"),
        description=as_text(about.get("description")),
        summary=as_text(about.get("summary")),
        keypoints=as_list(about.get("keypoints"), "\n"),
        keywords=as_list(first(about, "keywords", "tags")),
        audience=as_text(about.get("audience")),
        language=as_language(first(about, "language", "lang")),
        edition=as_text(about.get("version")),
        last_updated=as_date(first(about, "last_updated", "updated", "date")),
        warnings=[*warnings, *problem],
    )


def front_matter(text: str) -> tuple[dict[str, Any], str, list[str]]:
    """Return the front matter, the text after it, and what is wrong with it."""
    match = FRONT_MATTER.match(text)
    if not match:
        return {}, text, ["no front matter"]
    rest = text[match.end() :]
    try:
        if match[1] == TOML:
            about = tomllib.loads(match[2])
        else:
            about, _ = frontmatter.parse(match[0].strip() + "\n")
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return {}, rest, [f"front matter left out: {reason(error)}"]
    if not about:
        return {}, rest, ["front matter left out: it holds no 'name: value' lines"]
    return about, rest, []


def without_html_tables(text: str) -> str:
    """Return the text with tables of HTML as lists of their rows; those shown as code stay.

    Before blocks are told apart: the cells of such a table are indented like code.
    """
    if "<table" not in text.lower():
        return text
    parts: list[str] = []
    done = 0
    for code in FENCED.finditer(text):
        parts += [TABLE.sub(rows_of, text[done : code.start()]), code[0]]
        done = code.end()
    return "".join([*parts, TABLE.sub(rows_of, text[done:])])


def rows_of(table: re.Match[str]) -> str:
    """Return a table of HTML as a list of its rows, on lines of its own."""
    return f"\n\n{markup.markdown(table[0])}\n\n"


def reason(error: Exception) -> str:
    """Return what is wrong with a YAML text, in a line."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return f"line {error.problem_mark.line + 1}, {error.problem}"
    return " ".join(str(error).split()) or "it is nested too deeply"


def first(about: dict[str, Any], *names: str) -> Any:
    """Return the value of the first of these names that has one."""
    return next((about[name] for name in names if about.get(name)), None)
