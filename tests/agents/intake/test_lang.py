"""Lang: which language a message is answered in."""

from typing import Any

import pytest

from agents.intake.lang import recognise

GERMAN = [{"role": "user", "text": "Wie lösche ich mein Konto?", "time": "2026-11-21T12:00:00Z"}]
ENGLISH = [{"role": "user", "text": "How do I delete my account?", "time": "2026-11-21T12:00:00Z"}]


def language_of(text: str, **memory: Any) -> str:
    return str(recognise({"text": text} | memory)["language"])


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How do I exclude my own visits?", "en"),
        ("Wie geht das?", "de"),
        ("Passwort vergessen", "de"),
        ("¿Qué es esto?", "es"),
        ("hola", "es"),
        ("olvidé mi contraseña", "es"),
        ("Comment faire ?", "fr"),
        ("mot de passe oublié", "fr"),
        ("Спасибо", "ru"),
        ("怎么设置?", "zh"),
        ("在2024年发布了什么?", "zh"),
        ("日本語で答えてください", "ja"),
        ("Як змінити пароль?", "uk"),
        ("wachtwoord vergeten", "nl"),
        ("esqueci senha", "pt"),
        ("dimenticato password", "it"),
        ("zmiana hasła", "pl"),
        ("jak smazat účet", "cs"),
        ("Pricing?", "en"),
        ("refund", "en"),
        ("API keys", "en"),
        ("minimum php version", "en"),
        ("login", "en"),
    ],
)
def test_short_first_messages_are_recognised(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "ok",
        "API?",
        "24",
        "merci",
        "WordPress plugin",
        "no",
        "👍",
        "",
        "Pricing?",
        "refund",
        "API keys",
    ],
)
def test_one_ambiguous_message_does_not_change_the_language(text: str) -> None:
    assert language_of(text, history=GERMAN) == "de"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How do I get an invoice for last month?", "en"),
        ("¿Qué es esto?", "es"),
        ("Спасибо", "ru"),
        ("怎么设置?", "zh"),
    ],
)
def test_a_clear_message_changes_the_language(text: str, language: str) -> None:
    assert language_of(text, history=GERMAN) == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wie installiere ich das WordPress Plugin auf meiner Website?", "de"),
        ("Как подключить Google Search Console?", "ru"),
        ("Wie nutze ich `docker run --rm` mit https://example.com/en/install?", "de"),
        ("¿Cómo uso GetUserById en la API?", "es"),
        ("Hoe koppel ik Google Search Console aan mijn account?", "nl"),
        ("Jak podłączyć Google Search Console?", "pl"),
    ],
)
def test_code_and_product_names_do_not_count(text: str, language: str) -> None:
    assert language_of(text, history=ENGLISH) == language


def test_a_preference_stands_although_the_user_writes_english() -> None:
    text = "How do I get an invoice for last month?"
    assert language_of(text, language_preference="de") == "de"


def test_who_takes_the_preference_back_is_answered_in_the_language_of_the_message() -> None:
    text = "Please answer in the language I write in."
    assert language_of(text, language_preference="de") == "en"


def test_a_clear_message_in_a_third_language_outweighs_the_preference() -> None:
    assert language_of("Как скачать счёт за прошлый месяц?", language_preference="de") == "ru"


def test_a_wish_for_a_language_is_heeded_at_once() -> None:
    assert language_of("Please answer in German", history=ENGLISH) == "de"


def test_the_preference_decides_what_the_message_does_not() -> None:
    assert language_of("API?", language_preference="fr") == "fr"


def test_the_same_message_gets_the_same_answer_every_time() -> None:
    assert len({str(recognise({"text": "cancel subscription"})) for _ in range(5)}) == 1


def test_confidence_is_low_where_there_is_nothing_to_go_by() -> None:
    assert recognise({"text": "24"})["confidence"] < 0.5
    assert recognise({"text": "How do I delete my account?"})["confidence"] > 0.95
