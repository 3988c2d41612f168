"""RST: a page of reStructuredText, as docutils reads it and Sphinx would have it."""

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser
from docutils.readers.standalone import Reader
from docutils.writers.html5_polyglot import HTMLTranslator, Writer

from knowledge.errors import Unreadable
from knowledge.parsing import sphinx
from knowledge.parsing.encoding import decode
from knowledge.parsing.markup import markdown
from knowledge.parsing.normalization import clean_characters
from knowledge.parsing.outline import title
from knowledge.parsing.parsed_page import Limits, Page, as_date, as_language, as_list, as_text

# Characters. Some of docutils' patterns take time that grows with the square of a line.
LONGEST_LINE = 20_000
SETTINGS = {
    "_disable_config": True,
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 6,  # never: what cannot be read is left out
    "warning_stream": False,
    "doctitle_xform": False,
    "docinfo_xform": False,
    "sectsubtitle_xform": False,
    "embed_stylesheet": False,
    "stylesheet_path": "",
    "syntax_highlight": "none",
    "line_length_limit": LONGEST_LINE,
    "initial_header_level": 1,
    "smart_quotes": False,
    "output_encoding": "unicode",
}
EDITIONS = ("version", "release", "revision")
DATES = ("last_updated", "updated", "date")
# Fields at the top of a page that are about it (docutils' bibliographic ones, Sphinx's own).
ABOUT_FIELDS = (
    "author authors organization address contact status copyright orphan tocdepth nocomments "
    "nosearch no-search description keywords tags language lang audience title"
)
ABOUT = frozenset([*EDITIONS, *DATES, *ABOUT_FIELDS.split()])
LEFT_OUT = 5  # kinds of directives that a warning names


def parse(body: bytes, _: Limits) -> list[Page]:
    """Return the page of a file of reStructuredText. Raises Unreadable."""
    text, warnings = decode(body)
    text = clean_characters(text).expandtabs(8)
    if max(map(len, text.split("\n"))) > LONGEST_LINE:
        raise Unreadable(f"it has a line of more than {LONGEST_LINE:,} characters")
    refuse_bombs(text)
    html, document = publish(text)
    about = fields(document) | meta(document)
    content = markdown(html)
    return [
        Page(
            content=content,
            title=about.get("title") or title(content),
            description=about.get("description", ""),
            keywords=as_list(about.get("keywords") or about.get("tags")),
            audience=about.get("audience", ""),
            language=as_language(about.get("language") or about.get("lang")),
            edition=edition(about, document),
            last_updated=next(filter(None, (as_date(about.get(name)) for name in DATES)), None),
            warnings=[*warnings, *left_out(document)],
        )
    ]


SUBSTITUTION = re.compile(
    r"^[ \t]*\.\.[ \t]+\|([^|\n]+)\|[ \t]+replace::(.*(?:\n[ \t]+\S.*)*)", re.MULTILINE
)
SUBSTITUTED = re.compile(r"\|([^|\s][^|\n]*)\|")
MOST_SUBSTITUTED = 10_000  # references, those in what others stand for included


def refuse_bombs(text: str) -> None:
    """Raise Unreadable when what names stand for holds other names, again and again.

    docutils takes time that grows with the square of what they come to.
    """
    definitions = dict(SUBSTITUTION.findall(text))
    sizes: dict[str, int] = {}

    def size(name: str) -> int:
        if name not in sizes:
            sizes[name] = 1  # of one that stands for itself, which docutils refuses
            sizes[name] += sum(map(size, SUBSTITUTED.findall(definitions.get(name, ""))))
        return min(sizes[name], MOST_SUBSTITUTED + 1)

    if sum(map(size, SUBSTITUTED.findall(text))) > MOST_SUBSTITUTED:
        raise Unreadable(
            f"its substitutions come to more than {MOST_SUBSTITUTED:,}, as in no text people wrote"
        )


def publish(text: str) -> tuple[str, nodes.document]:
    """Return the page's HTML, and the document it was made of."""
    sphinx.register(text)
    settings = get_default_settings(Parser, Reader, Writer)
    for name, value in SETTINGS.items():
        setattr(settings, name, value)
    document = publish_doctree(text, settings=settings)
    for reference, words in titles(document):
        reference.children = [nodes.Text(words)]
    translator = PageTranslator(document)
    document.walkabout(translator)
    return "".join(translator.body), document


def fields(document: nodes.document) -> dict[str, str]:
    """Return what the field list at the top of the page says about it."""
    return {name: text for field in about_fields(document) for name, text in [pair(field)]}


def about_fields(document: nodes.document) -> list[nodes.field]:
    """Return the fields at the top of the page, or right below its title, when all are about it."""
    blocks: list[Any] = [each for each in document if not isinstance(each, UNSEEN)]
    if blocks and isinstance(blocks[0], nodes.section):
        blocks = [each for each in blocks[0][1:] if not isinstance(each, UNSEEN)]
    if not blocks or not isinstance(blocks[0], nodes.field_list):
        return []
    found = list(blocks[0].findall(nodes.field))
    return found if all(pair(field)[0] in ABOUT for field in found) else []


UNSEEN = (nodes.comment, nodes.target, nodes.substitution_definition, nodes.meta, nodes.pending)


def pair(field: nodes.field) -> tuple[str, str]:
    """Return a field's name in lower case, and its text."""
    return field[0].astext().lower().strip(), as_text(field[1].astext())


def meta(document: nodes.document) -> dict[str, str]:
    """Return what the page tells machines about itself."""
    return {
        str(each["name"]).lower(): as_text(each.get("content"))
        for each in document.findall(nodes.meta)
        if each.get("name")
    }


def edition(about: dict[str, str], document: nodes.document) -> str:
    """Return the page's own version: its field's, else that which |release| or |version| stand for.

    What a version control system was to fill in, as in "$Revision$", is none.
    """
    said = next((about[name] for name in EDITIONS if about.get(name)), "")
    if said and not said.startswith("$"):
        return said
    definitions = document.substitution_defs
    return next(
        (as_text(definitions[name].astext()) for name in EDITIONS if name in definitions), ""
    )


def left_out(document: nodes.document) -> list[str]:
    """Return a warning about the directives that were left out, if there are any."""
    names = sphinx.names_left_out(document)
    named = ", ".join(f"{name} ({count:,})" for name, count in names.most_common(LEFT_OUT))
    return [f"left out, as only Sphinx or a file beside it could say it: {named}"] if names else []


class PageTranslator(HTMLTranslator):
    """Writes HTML for `markup`: no style, nothing for machines, no files looked at."""

    def visit_section(self, node: nodes.section) -> None:
        """Count the levels, and no more."""
        self.section_level += 1

    def depart_section(self, node: nodes.section) -> None:
        """Go up again."""
        self.section_level -= 1

    def visit_literal(self, node: nodes.literal) -> None:
        """Write code as it stands."""
        self.body.append(f"<code>{self.encode(node.astext())}</code>")
        raise nodes.SkipNode

    def visit_literal_block(self, node: nodes.literal_block) -> None:
        """Write a block of code with the language it is said to be in."""
        language = re.sub(r"[^\w+#]", "", str(node.get("language", "")))
        name = f' class="language-{language}"' if language else ""
        self.body.append(f"<pre{name}>{self.encode(node.astext())}</pre>\n")
        raise nodes.SkipNode

    def visit_doctest_block(self, node: nodes.doctest_block) -> None:
        """Write a session with Python."""
        self.body.append(f'<pre class="language-python">{self.encode(node.astext())}</pre>\n')
        raise nodes.SkipNode

    def visit_comment(self, node: nodes.comment, *_: object) -> None:
        """Leave it out."""
        raise nodes.SkipNode

    def visit_math(self, node: nodes.math) -> None:
        """Write an equation as LaTeX."""
        self.body.append(f"${self.encode(node.astext())}$")
        raise nodes.SkipNode

    def visit_math_block(self, node: nodes.math_block) -> None:
        """Write an equation as LaTeX on a line of its own."""
        self.body.append(f"<p>$${self.encode(' '.join(node.astext().split()))}$$</p>\n")
        raise nodes.SkipNode

    def visit_image(self, node: nodes.image) -> None:
        """Write what a picture is described as."""
        if "alt" in node:
            self.body.append(f'<img alt="{self.attval(str(node["alt"]))}">')
        raise nodes.SkipNode

    def visit_warning(self, node: nodes.Element) -> None:
        """Say of what kind a remark is, where that matters."""
        self.body.append(f"<p>{node.tagname.capitalize()}:</p>\n")

    def depart_warning(self, node: nodes.Element) -> None:
        """Write nothing."""

    visit_caution = visit_danger = visit_important = visit_warning
    depart_caution = depart_danger = depart_important = depart_warning

    def visit_admonition(self, node: nodes.Element) -> None:
        """Write what is inside."""

    def depart_admonition(self, node: nodes.Element | None = None) -> None:
        """Write nothing."""

    def visit_field_name(self, node: nodes.field_name) -> None:
        """Write a field as a term, Python's parameters by their names."""
        self.body.append(f"<dt>{self.encode(sphinx.field_label(node.astext()))}</dt>\n")
        raise nodes.SkipNode

    def visit_field_list(self, node: nodes.field_list) -> None:
        """Leave out what is about the page and not on it."""
        if node.children and node.children == about_fields(self.document):
            raise nodes.SkipNode
        super().visit_field_list(node)

    def visit_footnote_reference(self, node: nodes.Element) -> None:
        """Leave the number out: it cannot be told from a citation's."""
        raise nodes.SkipNode

    visit_citation_reference = visit_footnote_reference

    def visit_label(self, node: nodes.label) -> None:
        """Leave the number of a footnote out, too."""
        raise nodes.SkipNode

    def visit_topic(self, node: nodes.topic) -> None:
        """Leave out a page's own table of contents."""
        if "contents" in node["classes"]:
            raise nodes.SkipNode
        super().visit_topic(node)

    def visit_system_message(self, node: nodes.system_message) -> None:
        """Leave out what docutils says of the file."""
        raise nodes.SkipNode

    def visit_substitution_definition(self, node: nodes.substitution_definition) -> None:
        """Leave it out."""
        raise nodes.SkipNode

    def visit_problematic(self, node: nodes.problematic) -> None:
        """Write what docutils could not read as it stands in the file."""
        self.body.append(self.encode(node.astext()))
        raise nodes.SkipNode

    def unknown_visit(self, node: nodes.Node) -> None:
        """Write what is inside."""

    def unknown_departure(self, node: nodes.Node) -> None:
        """Write nothing."""


def titles(document: nodes.document) -> Iterator[tuple[nodes.inline, str]]:
    """Yield the references to places of this page, each with the title of the place."""
    for reference in document.findall(nodes.inline):
        if label := reference.get("label"):
            place = document.ids.get(document.nameids.get(label) or "")
            heading = next(place.findall(nodes.title), None) if place is not None else None
            if heading is not None:
                yield reference, heading.astext()
