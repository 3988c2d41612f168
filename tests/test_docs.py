"""The documentation: whether what it shows and names exists."""

import argparse
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import frontmatter
import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand
from django.urls import resolve
from pytest_django.fixtures import Settings

from agents.names import Role, Route
from agents.trace.drawing import draw, explore

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *DOCS]
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"python3? manage\.py ([a-z]+\b[^`\n|)]*)")
ADDRESS = re.compile(r"http://127\.0\.0\.1:8000(/[^\s`,?\"]*)|`(?:GET|POST) (/[^`?]*)`")
PLACEHOLDER = re.compile(r"\$\w+|\{id\}")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


every_page = pytest.mark.parametrize("page", PAGES, ids=named)


@pytest.mark.parametrize("page", DOCS, ids=named)
def test_every_page_has_a_title_and_a_description(page: Path) -> None:
    post = frontmatter.load(str(page))
    assert set(post.metadata) == {"title", "description"}
    assert all(isinstance(value, str) and value.strip() for value in post.metadata.values())
    assert post.content.startswith(f"# {post['title']}\n")


def anchors(page: Path) -> set[str]:
    """The anchors that a Markdown viewer gives to the headings of a page."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(prose))
    return {heading.strip().replace(" ", "-") for heading in kept}


@every_page
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each `manage.py` command line that a page shows."""
    for line in COMMAND.findall(page.read_text(encoding="utf-8")):
        yield shlex.split(line.partition(" > ")[0])


def options(parser: argparse.ArgumentParser, words: list[str]) -> set[str]:
    """The options a command knows, those of the named subcommand included."""
    known: set[str] = set()
    for action in parser._actions:
        known |= set(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            assert words[1] in action.choices, f"{words[0]} knows no {words[1]!r}"
            known |= options(action.choices[words[1]], words[1:])
    return known


@every_page
def test_commands_exist_with_the_options_that_are_shown(page: Path) -> None:
    for name, *words in commands(page):
        assert name in get_commands() or name == "help", f"there is no command {name!r}"
        if name in {"help", "test"} or (name == "apikey" and not words):
            continue
        app = get_commands()[name]
        command = app if isinstance(app, BaseCommand) else load_command_class(app, name)
        given = {word for word in words if word.startswith("-")}
        known = options(command.create_parser("manage.py", name), [name, *words])
        assert given <= known, f"{name} knows no {given - known}"


@every_page
def test_addresses_exist(page: Path) -> None:
    for called, spoken in ADDRESS.findall(page.read_text(encoding="utf-8")):
        resolve(PLACEHOLDER.sub(str(uuid4()), called or spoken))


@every_page
def test_json_that_is_shown_is_json(page: Path) -> None:
    for language, block in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "json":
            json.loads(block)


def test_the_names_of_workers_in_the_documentation_are_roles() -> None:
    text = (ROOT / "docs/operating.md").read_text(encoding="utf-8")
    listed = next(line for line in text.splitlines() if line.startswith("The names are the roles"))
    assert set(Role) <= set(re.findall(r"`(\w+)`", listed))


def test_the_picture_of_the_routing_table_is_fresh(settings: Settings) -> None:
    settings.PARALLEL_INTAKE, settings.TRANSLATE_ENGLISH = True, "correct"
    drawn = draw(explore(enabled_routes=[Route.DOCUMENTATION]))
    shown = (ROOT / "docs/routes.svg").read_text(encoding="utf-8")
    assert shown == drawn, "draw it again: python3 manage.py routes --draw docs/routes.svg"
