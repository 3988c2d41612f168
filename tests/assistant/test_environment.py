"""Server addresses as people write them, and as Django and Celery want them."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import LazySettings
from environs import Env, EnvError

from agents.names import ANALYSTS, MODEL_ASKERS, Role
from assistant import commandline
from assistant.environment import (
    WITHOUT_ENV_FILE,
    broker_url,
    check_sentry_dsn,
    choices,
    explained,
    format_rules,
    header_value,
    http_address,
    mail_server,
    opening_hours,
    origins,
    postgres_options,
    profile,
    refuse_hosts_with_more,
    refuse_no_route,
    refuse_unreachable_staff,
    resolved,
    sender,
    signing_key,
    unknown_names,
)

ROOT = Path(__file__).parents[2]


def test_names_that_set_nothing_are_named_with_what_they_are_like(
    tmp_path: Path, settings: LazySettings
) -> None:
    file = tmp_path / ".env"
    file.write_text(
        "TELEPATHY=true\nGEN_MODEL=\nOPENAI_API_KEY=x\nPARSE_SECOND=9\n#OFF=1\nOTEL_SERVICE_NAME=tea\n"
    )
    environment = ["PATH", "REDIS_PORT", "ACME_BASE_URL", "CHACHE_MODEL_SECONDS", "STATE_DIR"]
    assert unknown_names(file, environment, settings.KNOWN_NAMES) == {
        "CHACHE_MODEL_SECONDS": "CACHE_MODEL_SECONDS",
        "TELEPATHY": "",
        "PARSE_SECOND": "PARSE_SECONDS",
    }
    assert unknown_names(tmp_path / "none", ["PATH"], settings.KNOWN_NAMES) == {}


def test_a_database_address_is_taken_apart() -> None:
    found = postgres_options("postgresql://ann:p%40ss@db.example:6432/docent?sslmode=require")
    assert (found["USER"], found["PASSWORD"]) == ("ann", "p@ss")
    assert (found["HOST"], found["PORT"], found["NAME"]) == ("db.example", "6432", "docent")
    assert found["OPTIONS"]["sslmode"] == "require"


def test_a_database_may_be_behind_a_unix_socket() -> None:
    assert postgres_options("postgresql://docent@/docent?host=%2Frun%2Fpg")["HOST"] == "/run/pg"


@pytest.mark.parametrize(
    "address", ["mysql://host/name", "docent", "postgresql://host", "postgresql://host:x/name"]
)
def test_an_unusable_database_address_is_refused_by_name(address: str) -> None:
    with pytest.raises(EnvError, match="DATABASE_URL"):
        postgres_options(address)


@pytest.mark.parametrize(
    ("address", "broker"),
    [
        ("redis://host:6379/3", "redis://host:6379/3"),
        ("rediss://host", "rediss://host"),
        ("unix:///run/redis.sock", "redis+socket:///run/redis.sock?virtual_host=0"),
        ("unix:///run/redis.sock?db=2", "redis+socket:///run/redis.sock?virtual_host=2"),
    ],
)
def test_a_redis_address_is_spelt_as_celery_wants_it(address: str, broker: str) -> None:
    assert broker_url(address) == broker


def test_an_unusable_redis_address_is_refused_by_name() -> None:
    with pytest.raises(EnvError, match="REDIS_URL"):
        broker_url("http://host")


@pytest.mark.parametrize(
    "url",
    [
        "billing.example",
        "ftp://billing.example",
        "https://",
        "https://a:b@billing.example",
        "http://[::1",
    ],
)
def test_an_address_that_is_none_or_holds_a_password_is_refused_by_name(url: str) -> None:
    with pytest.raises(EnvError, match="BILLING_API_URL"):
        http_address("BILLING_API_URL", url)
    assert http_address("BILLING_API_URL", "https://host/api/") == "https://host/api"
    assert http_address("BILLING_API_URL", "") == ""


@pytest.mark.parametrize(
    "dsn", ["sentry.example.org/1", "https://sentry.example.org/1", "https://key@host/project", "x"]
)
def test_what_is_no_address_of_a_project_of_sentry_is_refused(dsn: str) -> None:
    with pytest.raises(EnvError, match="SENTRY_DSN: must be like https://key@host/number"):
        check_sentry_dsn(dsn)
    check_sentry_dsn("https://key@sentry.example.org/path/42")
    check_sentry_dsn("")


def test_a_wrong_value_of_cross_lingual_stops_the_start_with_the_reason() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", "import assistant.settings"],
        env=os.environ | {"CROSS_LINGUAL": "perhaps"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert "CROSS_LINGUAL" in answer.stderr
    assert "on, off" in answer.stderr


def models_of(**environment: str) -> dict[str, str]:
    """Return the roles that have a model, and which."""
    names = ("GEN_MODEL", "MODEL_PROFILE", *(f"{asker.upper()}_MODEL" for asker in MODEL_ASKERS))
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.delenv(name, raising=False)
        for name, value in environment.items():
            patch.setenv(name, value)
        env = Env()
        found = choices(env, profile(env))
    return {asker: choice.model for asker, choice in found.items() if choice.model}


def test_a_profile_says_which_roles_ask_the_model_that_all_share() -> None:
    assert models_of(GEN_MODEL="a") == dict.fromkeys(MODEL_ASKERS, "a")
    assert models_of(GEN_MODEL="a", MODEL_PROFILE="full") == dict.fromkeys(MODEL_ASKERS, "a")
    assert models_of(GEN_MODEL="a", MODEL_PROFILE="answer") == {
        "response": "a", "billing": "a", **dict.fromkeys(map(str, ANALYSTS), "a"),
    }  # fmt: skip
    assert {*models_of(GEN_MODEL="a", MODEL_PROFILE="balanced")} == {
        "translation", "response", "quality", "billing", *ANALYSTS,
    }  # fmt: skip


def test_a_roles_own_model_comes_before_the_profile() -> None:
    own = {"ROUTER_MODEL": "b", "RESPONSE_MODEL": "none"}
    assert models_of(GEN_MODEL="a", MODEL_PROFILE="answer", **own) == {
        "router": "b", "billing": "a", **dict.fromkeys(map(str, ANALYSTS), "a"),
    }  # fmt: skip


def test_a_profile_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(EnvError, match="answer, balanced, full"):
        models_of(GEN_MODEL="a", MODEL_PROFILE="fast")


@pytest.mark.parametrize(
    ("environment", "at_fault"),
    [
        ({"GEN_MODEL": "a@nowhere"}, "GEN_MODEL: 'a@nowhere'"),
        ({"SECOND_MODEL": "b@nowhere"}, "SECOND_MODEL: 'b@nowhere'"),
        ({"ESSENCE_MODEL": "c@nowhere"}, "ESSENCE_MODEL: 'c@nowhere'"),
        ({"ESSENCE_SECOND_MODEL": "d@nowhere"}, "ESSENCE_SECOND_MODEL: 'd@nowhere'"),
    ],
)
def test_a_wrong_provider_is_blamed_on_the_setting_that_says_it(
    environment: dict[str, str], at_fault: str, settings: LazySettings
) -> None:
    environment = {"GEN_MODEL": "a@openai", "TRANSLATION_MODEL": "t@openai"} | environment
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        chosen = choices(Env(), "full")
    with pytest.raises(ValueError, match=f"^{at_fault} names no known provider"):
        resolved(chosen, settings.PROVIDERS, environment)


def test_a_mail_server_is_read_from_one_address() -> None:
    server = mail_server("smtp+tls://desk%40acme:p%2Fw@mail.example.org")
    assert (server.host, server.port) == ("mail.example.org", 587)
    assert (server.user, server.password) == ("desk@acme", "p/w")


@pytest.mark.parametrize(
    "url",
    ["mail.example.org", "https://mail.example.org", "smtp://", "smtp://host:high", "smtp://[::1"],
)
def test_what_is_no_mail_server_is_refused(url: str) -> None:
    with pytest.raises(EnvError, match="EMAIL_URL: must be smtp, smtp\\+tls, smtps"):
        mail_server(url)


@pytest.mark.parametrize(
    ("webhook", "emails", "reason"),
    [
        ("desk.example.org", [], "HANDOVER_WEBHOOK: must be an address"),
        ("http://[::1", [], "HANDOVER_WEBHOOK: must be an address"),
        ("http://desk.example.org:99999/", [], "HANDOVER_WEBHOOK: must be an address"),
        ("ftp://desk.example.org", [], "HANDOVER_WEBHOOK: must be an address"),
        ("", ["desk"], "HANDOVER_EMAIL: 'desk' is no e-mail address"),
        ("", ["desk@example.org"], "HANDOVER_EMAIL: needs .* EMAIL_URL"),
    ],
)
def test_staff_who_could_not_be_told_stop_the_start(
    webhook: str, emails: list[str], reason: str
) -> None:
    with pytest.raises(EnvError, match=reason):
        refuse_unreachable_staff(webhook, emails, mail="")


def test_a_secret_is_a_text_or_base64_that_says_so() -> None:
    assert signing_key("whsec_c2VjcmV0") == b"secret"
    assert signing_key("secret") == b"secret"
    assert signing_key("") == b""
    with pytest.raises(EnvError, match="HANDOVER_WEBHOOK_SECRET: is not base64"):
        signing_key("whsec_no base64")


def test_hours_that_cannot_be_read_stop_the_start_with_the_reason() -> None:
    with pytest.raises(EnvError, match=r"OPENING_HOURS: .* names no time zone"):
        opening_hours("mon-fri 09:00-17:00")


@pytest.mark.parametrize(("command", "read"), [("test", False), ("check", True)])
def test_tests_do_not_see_what_a_deployment_has_set(
    command: str, read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commandline, "CHECKOUT", tmp_path)
    monkeypatch.setattr(commandline, "_run", lambda argv, command: None)
    monkeypatch.setattr(commandline, "follow_parent", lambda: None)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    os.environ.pop(WITHOUT_ENV_FILE, None)
    monkeypatch.setattr(commandline, "load_dotenv", lambda file: os.environ.update(READ=str(file)))
    commandline.run(["manage.py", command])
    assert ("READ" in os.environ) is read
    assert (WITHOUT_ENV_FILE in os.environ) is not read


def test_origins_are_spelt_as_browsers_send_them() -> None:
    given = ["https://WWW.example.org/", " http://localhost:3000", "https://a.org:443"]
    assert origins(given) == [
        "https://www.example.org",
        "http://localhost:3000",
        "https://a.org",
    ]
    assert origins([]) == []
    assert origins(["*"]) == ["*"]


@pytest.mark.parametrize(
    "text",
    ["", "example.org", "https://a.org/path", "https://*.a.org", "*", "null", "https://u@a.org"],
)
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(EnvError, match="CORS_ORIGINS"):
        origins(["https://a.org", text])


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: refuse_no_route(["fallback"]), "ROUTES"),
        (lambda: refuse_no_route(["documentation", "weather"]), "ROUTES"),
        (lambda: header_value("BILLING_API_KEY", "k\u00e9y"), "BILLING_API_KEY"),
        (lambda: opening_hours(";"), "OPENING_HOURS"),
        (lambda: format_rules(["*.qmd"]), "INGEST_AS"),
        (lambda: format_rules(["*.qmd=word"]), "INGEST_AS"),
        (lambda: format_rules(["docs/*.qmd=text"]), "INGEST_AS"),
        (lambda: sender("x"), "EMAIL_FROM"),
        (lambda: sender(""), "EMAIL_FROM"),
        (lambda: http_address("PUBLIC_URL", "docent.example"), "PUBLIC_URL"),
        (lambda: broker_url("redis://host:x"), "REDIS_URL"),
        (lambda: broker_url("redis://host/name"), "REDIS_URL"),
        (lambda: refuse_hosts_with_more("ALLOWED_HOSTS", ["https://a"]), "ALLOWED_HOSTS"),
    ],
)
def test_a_value_that_would_be_ignored_or_fail_later_is_refused_by_name(
    call: Callable[[], object], name: str
) -> None:
    with pytest.raises(EnvError, match=f"^{name}: "):
        call()


def test_usable_values_pass() -> None:
    refuse_no_route(["documentation", "fallback"])
    assert format_rules([" *.qmd = markdown "]) == {"*.qmd": ".md"}
    refuse_hosts_with_more("ALLOWED_HOSTS", ["docs.example", "[::1]", ".example.com"])
    assert sender("Docent <docent@docs.example>") == "Docent <docent@docs.example>"
    assert broker_url("redis://host:6379/2") == "redis://host:6379/2"


def test_what_a_setting_must_be_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    env = Env(eager=False)
    monkeypatch.setenv("HANDOVER", "maybe")
    env.bool("HANDOVER", False)
    with pytest.raises(EnvError) as raised:
        env.seal()
    assert explained(raised.value) == "HANDOVER: must be true or false"


def test_every_setting_of_the_example_is_used_and_not_only_read() -> None:
    names = re.findall(r"^#?([A-Z][A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)
    by_role = {f"{asker.upper()}_" for asker in MODEL_ASKERS} | {
        f"{role.upper()}_" for role in Role
    }
    settings = (ROOT / "assistant/settings.py").read_text()
    sources = "\n".join(
        path.read_text()
        for package in ("assistant", "conversations", "agents", "knowledge", "prompts")
        for path in (ROOT / package).rglob("*.py")
        if path != ROOT / "assistant/settings.py"
    )
    unused = [
        name
        for name in names
        if not name.startswith((*by_role, "EMAIL_FROM", "DEBUG", "OTEL_"))
        and not name.endswith(("_API_KEY", "_BASE_URL"))
        and not re.search(rf"settings\.{name}\b|[\"\']{name}[\"\']", sources)
        # Read there and passed on under another name.
        and len(re.findall(rf"\b_?{name}\b", settings, re.IGNORECASE)) < 3
    ]
    assert unused == []
