"""Measuring: what is said of the language of first messages against what they are in."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

TEXTS = [
    ("Wie lösche ich mein Konto?", "de"),
    ("Wo finde ich die Rechnung vom letzten Monat?", "de"),
    ("Where do I find the invoice of last month?", "de"),
    ("Как удалить мой аккаунт?", "ru"),
    ("怎么设置邮箱地址?", "zh-hans"),
]


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """Five texts, one of them in another language than is said."""
    path = tmp_path / "texts.jsonl"
    lines = (json.dumps({"text": text, "language": language}) for text, language in TEXTS)
    path.write_text("\n".join(lines))
    return path


def test_the_command_prints_the_mean_over_languages_and_each(judged: Path) -> None:
    out = StringIO()
    call_command("evaluate", "language", str(judged), "--json", stdout=out)
    found = json.loads(out.getvalue())
    assert found["by_language"] == {"de": pytest.approx(2 / 3), "ru": 1, "zh": 1}
    assert found["accuracy"] == pytest.approx((2 / 3 + 1 + 1) / 3)
    assert found["taken_for"]["de"] == {"en": 1}


def test_the_table_says_what_a_language_was_taken_for(judged: Path) -> None:
    out = StringIO()
    call_command("evaluate", "language", str(judged), stdout=out)
    assert "5 texts in 3 languages" in out.getvalue()
    assert "en 1" in out.getvalue()


def test_a_line_that_names_no_language_is_named(judged: Path) -> None:
    judged.write_text(judged.read_text() + '\n{"text": "hello"}')
    with pytest.raises(CommandError, match="line 6"):
        call_command("evaluate", "language", str(judged))


def test_an_empty_file_is_refused(judged: Path) -> None:
    judged.write_text("")
    with pytest.raises(CommandError, match="no text"):
        call_command("evaluate", "language", str(judged))
