"""Assistants as files: there and back, and what is said of files that are none."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.forms.models import model_to_dict
from pytest_django import Settings

from conversations.assistant_file import MOST_BYTES, UnusableFile, exported, parsed, store
from conversations.assistants import Assistant
from knowledge.models import Collection, Document
from tests import factories

pytestmark = pytest.mark.django_db

FULL: dict[str, Any] = {
    "name": "bank",
    "title": 'The "Nordbank" helper',
    "domain_name": "Nordbank",
    "domain_scope": "accounts and loans",
    "collections": ["loans", "cards"],
    "audience": "customers",
    "strictness": "high",
    "languages": ["pl", "en"],
    "tone": "Calm.\nNo exclamation marks. Zażółć \\ gęślą 😀",
    "greeting": "Dzień dobry!",
    "opening_hours": "mon-fri 09:00-17:00 Europe/Warsaw",
    "contact": "help@nordbank.example",
    "routes": ["documentation"],
    "models": {"GEN_MODEL": "gpt-4o-mini@openai", "QUALITY_MODEL": "none"},
}


@pytest.fixture
def bank() -> Assistant:
    """An assistant with every field full."""
    for name in ("loans", "cards"):
        factories.collection(name)
    assistant = Assistant(**FULL)
    assistant.full_clean()
    assistant.save()
    return assistant


def manage(*words: str) -> str:
    out = StringIO()
    call_command("assistants", *words, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_what_is_exported_comes_back_as_it_was(bank: Assistant, tmp_path: Path) -> None:
    file = tmp_path / "bank.toml"
    before = model_to_dict(bank, exclude=["id"])
    manage("export", "bank", str(file))
    assert manage("export", "bank") == file.read_text()
    bank.delete()
    manage("import", str(file))
    assert model_to_dict(Assistant.objects.get(), exclude=["id"]) == before
    assert exported(Assistant.objects.get()) == file.read_text()


def test_taken_in_again_nothing_changes(bank: Assistant) -> None:
    sheet = parsed(exported(bank).encode())
    before = bank.updated
    assert store(sheet) == (bank, "unchanged")
    bank.refresh_from_db()
    assert bank.updated == before


def test_what_a_file_leaves_out_is_left_to_the_settings(bank: Assistant) -> None:
    assistant, outcome = store(parsed(b'name = "bank"\ntitle = "Bank"'))
    assert outcome == "changed"
    assert assistant.pk == bank.pk
    assert exported(assistant) == 'name = "bank"\ntitle = "Bank"\n'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff", "not UTF-8"),
        (b"name = 3 4", r"not TOML: .*line 1"),
        (b"title = 'x'", "name: it is missing"),
        (b"name = 'x'\ncolections = []", "colections: there is no such field. Allowed: name,"),
        (b"name = 3", "name: Input should be a valid string, not 3"),
        (b"name = 'x'\ncollections = 'loans'", "collections: Input should be a valid list"),
        (b"name = 'x'\nlanguages = ['en', 3]", r"languages\.1: Input should be a valid string"),
        (b"name = 'x'\nstrictness = 'extreme'", "strictness: Input should be 'low', 'medium', "),
        (b"name = 'x'\n[models]\nGEN_MODEL = 1", "models.GEN_MODEL: Input should be a valid str"),
        (b"name = 'A b'\ntone = '" + b"x" * 301 + b"'", r"name: Use a-z.* tone: .*at most 300"),
        (b'name = "a\\u0000b"', "name: Use a-z"),
        (b"name = 'x'\ncollections = ['x']", "collections: There is no collection 'x'"),
        (b"#" * (MOST_BYTES + 1), "more than 100,000 bytes"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_the_reason_and_changes_nothing(
    content: bytes, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.toml"
    file.write_bytes(content)
    with pytest.raises(CommandError, match=said):
        manage("import", str(file))
    assert not Assistant.objects.exists()


def test_a_file_that_is_not_there_and_an_assistant_that_is_not_are_named(
    bank: Assistant, tmp_path: Path
) -> None:
    with pytest.raises(CommandError, match="No such file"):
        manage("import", str(tmp_path / "none.toml"))
    with pytest.raises(CommandError, match=r"no assistant 'shop'\. There are: bank\."):
        manage("export", "shop")


def folder(path: Path, about: str, **pages: str) -> Path:
    (path / "pages").mkdir(parents=True)
    (path / "assistant.toml").write_text(about)
    for name, text in pages.items():
        (path / "pages" / f"{name}.md").write_text(text)
    return path


def test_a_folder_brings_its_pages_into_a_collection_that_only_its_assistant_searches(
    tmp_path: Path,
) -> None:
    teas = folder(
        tmp_path / "teas",
        'name = "teas"\ncollections = ["teapots"]',
        pot="# Teapots\n\nA teapot holds a litre of tea.\n",
    )
    for _ in range(2):
        manage("import", str(teas))
    collection = Collection.objects.get()
    assert (collection.name, collection.only_by_name) == ("teapots", True)
    document = Document.objects.get()
    assert (document.title, document.version) == ("Teapots", 1)
    assert Assistant.objects.get().collections == ["teapots"]


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ('name = "teas"', "collections: name one; the pages of"),
        ('name = "teas"\ncollections = ["Tea pots"]', "'Tea pots' cannot name a collection"),
        ('name = "teas"\ncollections = ["teas"]\ntone = 3', "tone: Input should be"),
        ('name = "teas"\ncollections = ["teas"]\nlanguages = ["xx"]', "'xx' is no language"),
        ('name = "teas"\ncollections = ["teas", "cups"]', "There is no collection 'cups'"),
    ],
)
def test_a_folder_that_is_wrong_leaves_nothing_behind(
    about: str, said: str, tmp_path: Path
) -> None:
    wrong = folder(tmp_path / "teas", about, pot="# Teapots\n\nA litre.\n")
    with pytest.raises(CommandError, match=said):
        manage("import", str(wrong))
    assert not Assistant.objects.exists()
    assert not Collection.objects.exists()


def test_assistants_are_listed_with_what_they_answer_from(
    bank: Assistant, capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    settings.ROUTES = ["documentation"]
    manage()
    printed = capsys.readouterr().out
    assert "bank" in printed
    assert "loans, cards" in printed
    Assistant.objects.all().delete()
    manage("list")
    assert "There are no assistants." in capsys.readouterr().out


def test_an_unusable_file_is_an_error_of_the_api_too() -> None:
    with pytest.raises(UnusableFile) as refused:
        parsed(b"name = ")
    assert refused.value.code == "invalid"


def test_a_byte_order_mark_is_no_part_of_a_file() -> None:
    assert parsed(b'\xef\xbb\xbfname = "bank"').name == "bank"
