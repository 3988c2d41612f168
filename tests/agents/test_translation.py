"""Translation without a model: honest about what it cannot do."""

import pytest

from agents.intake.translation import carry_over


@pytest.mark.parametrize(
    ("text", "language", "confidence"),
    [
        ("How do I reset my password?", "en", 1.0),
        ("How do I reset my password?", "de", 1.0),
        ("Wie setze ich mein Passwort zurück?", "de", 0.0),
        ("Как сбросить пароль?", "ru", 0.0),
    ],
)
def test_text_is_unchanged_and_only_english_is_certain(
    text: str, language: str, confidence: float
) -> None:
    assert carry_over({"text": text, "language": language}) == {
        "text_eng": text,
        "translation_confidence": confidence,
        "corrections_made": [],
    }
