"""What the page says itself: each sentence exists in each language, and nothing else is kept."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import polib
import pytest
from django.test import Client

import conversations
from agents.names import Role
from conversations import answers, interface
from tests.agents.test_words import FOLDERS, placeholders

ROOT = Path(conversations.__file__).parent
TRANSLATE = re.compile(r"""{% translate (["'])(.*?)\1 %}""")
BLOCK = re.compile(r"{% blocktranslate[^%]*%}(.*?){% endblocktranslate %}", re.DOTALL)
MODES = (answers.MODEL, answers.MIXED, answers.UNWRITTEN, answers.QUOTED, answers.FIXED)


def sentences() -> Iterator[str]:
    """All that templates and modules of the page say, in English."""
    for path in (ROOT / "templates").rglob("*.html"):
        text = path.read_text("utf-8")
        yield from (found[2] for found in TRANSLATE.finditer(text))
        for block in BLOCK.finditer(text):
            yield re.sub(r"{{ (\w+) }}", r"%(\1)s", block[1])
    for name in ("interface", "transcript"):
        for node in ast.walk(ast.parse((ROOT / f"{name}.py").read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not ast.unparse(node.func).startswith("gettext"):
                continue
            if isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value)
    yield from MODES


def catalogue(language: str) -> Path:
    return ROOT / "locale" / FOLDERS[language] / "LC_MESSAGES" / "django.po"


@pytest.mark.parametrize("language", FOLDERS)
def test_every_sentence_is_translated_and_keeps_its_placeholders(language: str) -> None:
    written = {entry.msgid: entry.msgstr for entry in polib.pofile(str(catalogue(language)))}
    said = set(sentences())
    assert {english for english in said if not written.get(english)} == set()
    assert written.keys() - said == set()
    for english, translated in written.items():
        assert placeholders(translated) == placeholders(english)
        assert re.findall(r"%\(\w+\)s", translated) == re.findall(r"%\(\w+\)s", english)


@pytest.mark.parametrize("language", FOLDERS)
def test_compiled_catalogue_is_the_written_one(language: str) -> None:
    written = catalogue(language)
    assert polib.pofile(str(written)).to_binary() == written.with_suffix(".mo").read_bytes()


def test_every_role_but_the_manager_has_words_for_what_it_does() -> None:
    assert interface.STEPS.keys() == set(Role) - {Role.MANAGER}


def test_the_page_is_in_the_language_of_the_browser_until_another_is_chosen(
    client: Client, db: None
) -> None:
    spoken = {"Accept-Language": "pl-PL,en;q=0.5"}
    response = client.get("/", headers=spoken)
    assert response["Content-Language"] == "pl"
    assert '<html lang="pl">' in response.content.decode()
    assert "Czego chcesz się dowiedzieć?" in response.content.decode()

    client.post("/language/", {"language": "ru", "next": "/"})

    page = client.get("/", headers=spoken).content.decode()
    assert "Что вы хотите узнать?" in page
    assert '<option value="ru" lang="ru" selected>' in page
