"""Environment: reads server addresses and model settings from it, or says what is wrong."""

import re
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from email.utils import parseaddr
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from dotenv import dotenv_values
from environs import Env, EnvError, EnvValidationError
from marshmallow.validate import OneOf, Range

from agents.llm.requests import Choice
from agents.names import (
    ANALYSTS,
    ENRICHMENT,
    EXPANSION,
    MODEL_ASKERS,
    PROFILES,
    Role,
    Route,
)
from agents.opening_hours import OpeningHours
from knowledge.parsing import WORDS
from knowledge.providers import API_KEY, BASE_URL, Provider, parse_model_name

# What differs from Choice's own defaults: tokens of a reply, temperature, seconds.
DEFAULTS: dict[str, Choice] = {
    Role.TRANSLATION: Choice(max_tokens=3000),
    Role.RESPONSE: Choice(max_tokens=1500, temperature=0.2, timeout=60.0),
    Role.MEMORY: Choice(timeout=20.0),
    Role.BILLING: Choice(max_tokens=1500, timeout=60.0),
    **dict.fromkeys(ANALYSTS, Choice(max_tokens=4000, temperature=0.2, timeout=120.0)),
    Role.CLASSIFIER: Choice(max_tokens=2000, temperature=0.2, timeout=60.0),
    Role.CITATION_AUDITOR: Choice(max_tokens=2000, temperature=0.2, timeout=60.0),
    ENRICHMENT: Choice(max_tokens=1500, timeout=60.0),
    EXPANSION: Choice(max_tokens=400, temperature=0.2, timeout=8.0),
}


def refuse(name: str, reason: str) -> NoReturn:
    """Stop the start with the name of the environment variable and the reason."""
    raise EnvError(f"{name}: {reason}")


# What marshmallow says of a value of another kind, and what is allowed.
ALLOWED = {
    "Not a valid boolean.": "must be true or false",
    "Not a valid integer.": "must be a whole number",
    "Not a valid number.": "must be a number",
}


def explained(error: EnvError) -> str:
    """Return every wrong variable with its reason, a line each."""
    if not isinstance(error, EnvValidationError):
        return str(error)
    messages = error.error_messages
    by_name = messages if isinstance(messages, dict) else {"": messages}
    return "\n".join(f"{name}: {' '.join(map(_allowed, lines))}" for name, lines in by_name.items())


def _allowed(line: object) -> str:
    return ALLOWED.get(str(line), str(line))


ENCODED_SECRET = "whsec_"  # noqa: S105 how such a secret begins
PORTS = {"http": 80, "https": 443}
# In the environment of processes that are not to read the file `.env`.
WITHOUT_ENV_FILE = "DOCENT_WITHOUT_ENV_FILE"
MAIL_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+\Z")
# So much alike, by difflib's ratio, two names are one with a slip of the pen: "PARSE_SECOND".
ALIKE = 0.9
# How names begin that libraries read.
LIBRARIES = ("OTEL_", "SENTRY_")


def unknown_names(file: Path, environment: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Return the names that set nothing, each with the known one it is like, or nothing.

    All that a file `.env` says is meant for Docent. In the environment only what is much like one
    of the `known` names can be.
    """
    settings = {*known}
    said = {*dotenv_values(file)} if file.is_file() else set[str]()
    found: dict[str, str] = {}
    for name in sorted({*said, *environment} - settings):
        alike = next(iter(get_close_matches(name, settings, 1, ALIKE)), "")
        is_others = name.endswith((API_KEY, BASE_URL)) or name.startswith(LIBRARIES)
        if not is_others and (name in said or alike):
            found[name] = alike
    return found


def refuse_odd_port(name: str, url: str) -> SplitResult:
    """Return the parts of an address; refuse one whose port or host cannot be one."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        refuse(name, f"cannot be an address: {error}")
    return parts


def header_value(name: str, key: str) -> str:
    """Return a key that is sent in a header; refuse what none can hold."""
    if not (key.isascii() and key.isprintable()):
        refuse(name, "holds characters that no key has")
    return key


def sender(address: str) -> str:
    """Return whom mail comes from: an address, or a name with one in angle brackets."""
    if not MAIL_ADDRESS.match(parseaddr(address)[1]):
        refuse("EMAIL_FROM", f"{address[:40]!r} is no e-mail address")
    return address


def refuse_no_route(routes: Sequence[str]) -> None:
    """Refuse routes that are none, and those by which nothing would be answered."""
    for route in routes:
        if route not in list(Route):
            refuse("ROUTES", f"{route!r} is not a route; allowed: {', '.join(Route)}")
    if not {*routes} - {Route.FALLBACK}:
        refuse("ROUTES", "opens nothing that answers: fallback is always there")


def refuse_hosts_with_more(name: str, hosts: Iterable[str]) -> None:
    """Refuse addresses where hosts are to be named: none would ever be found among them."""
    if wrong := next((host for host in hosts if "/" in host or not host.strip()), None):
        refuse(name, f"{wrong!r} is no host: leave out https:// and paths")


def postgres_options(url: str) -> dict[str, Any]:
    """Return Django's entry for a `postgresql://user:password@host:port/name?option=…` address.

    Options after `?` go to libpq, `host` among them: it may be a folder with a Unix socket.
    """
    parts = refuse_odd_port("DATABASE_URL", url)
    if parts.scheme not in {"postgres", "postgresql"}:
        refuse("DATABASE_URL", f"must begin with postgresql://, not {parts.scheme or 'nothing'}")
    name = unquote(parts.path.lstrip("/"))
    if not name:
        refuse("DATABASE_URL", "names no database after the host")
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "assistant.postgres",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", unquote(parts.hostname or "")),
        "PORT": str(parts.port or ""),
        # A pool, because Celery closes the connection after every task and a turn is twenty. It
        # gives up reconnecting early: the next request begins anew, where the pool's own pauses
        # would grow to minutes.
        "OPTIONS": {
            **options,
            "pool": {"min_size": 1, "max_size": 12, "timeout": 5, "reconnect_timeout": 5},
        },
    }


@dataclass(frozen=True)
class MailServer:
    """A server that takes mail: plain `smtp`, `smtp+tls` by STARTTLS, or `smtps`."""

    scheme: str = ""
    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""


MAIL_PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


def mail_server(url: str) -> MailServer:
    """Return the server of a `smtps://user:password@host:port` address; none for no address."""
    if not url:
        return MailServer()
    try:
        parts = urlsplit(url)
        port = parts.port or MAIL_PORTS[parts.scheme]
    except (ValueError, KeyError):
        port = 0
    if not port or not parts.hostname:
        refuse("EMAIL_URL", f"must be {', '.join(MAIL_PORTS)} with ://user:password@host:port")
    return MailServer(
        parts.scheme,
        parts.hostname,
        port,
        unquote(parts.username or ""),
        unquote(parts.password or ""),
    )


def opening_hours(text: str) -> OpeningHours:
    """Return when people are there; always, where nothing says when."""
    try:
        return OpeningHours.parse(text)
    except ValueError as error:
        refuse("OPENING_HOURS", str(error))


def format_rules(rules: Iterable[str]) -> dict[str, str]:
    """Return what names of files match → how the name of such a format ends."""
    endings: dict[str, str] = {}
    for rule in rules:
        pattern, _, word = (part.strip() for part in rule.partition("="))
        if not pattern or "/" in pattern or word not in WORDS:
            refuse(
                "INGEST_AS",
                f"{rule!r} is no rule like *.qmd=markdown; formats are {', '.join(WORDS)}",
            )
        endings[pattern] = WORDS[word]
    return endings


def signing_key(secret: str) -> bytes:
    """Return the key that a secret names: what is base64 behind `whsec_`, or the text itself."""
    encoded = secret.removeprefix(ENCODED_SECRET)
    if encoded == secret:
        return secret.encode()
    try:
        return b64decode(encoded, validate=True)
    except ValueError:
        refuse("HANDOVER_WEBHOOK_SECRET", f"is not base64 behind {ENCODED_SECRET}")


def refuse_unreachable_staff(webhook: str, emails: Iterable[str], mail: str) -> None:
    """Refuse addresses for notifications that nothing could be sent to."""
    if webhook and not is_http(webhook):
        refuse("HANDOVER_WEBHOOK", "must be an address like https://host/path")
    if wrong := next((each for each in emails if not MAIL_ADDRESS.match(each)), None):
        refuse("HANDOVER_EMAIL", f"{wrong!r} is no e-mail address")
    if any(emails) and not mail:
        refuse("HANDOVER_EMAIL", "needs a server that takes mail: set EMAIL_URL")


def broker_url(url: str) -> str:
    """Return Celery's spelling of a Redis address; a Redis Cluster is refused, as kombu can't."""
    parts = refuse_odd_port("REDIS_URL", url)
    if parts.scheme == "unix":
        database = dict(parse_qsl(parts.query)).get("db", "0")
        return f"redis+socket://{parts.path}?virtual_host={database}"
    if parts.scheme not in {"redis", "rediss"}:
        refuse("REDIS_URL", f"must begin with redis://, rediss:// or unix://, not {url[:20]!r}")
    if not re.fullmatch(r"/?\d*", parts.path):
        refuse("REDIS_URL", f"must end with the number of a database, not {parts.path[:20]!r}")
    return url


def is_http(url: str) -> bool:
    """Tell whether this is an address of HTTP that can be asked: its host and port make sense."""
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that are not closed, a port that is none
        return False


def http_address(name: str, url: str) -> str:
    """Return the address without a slash at its end; nothing where none is set.

    One that holds a password is refused: addresses are logged.
    """
    if url and not is_http(url):
        refuse(name, f"must be an address like https://host/path, not {url[:40]!r}")
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query or parts.fragment:
        refuse(name, "must hold no user, password, query or fragment")
    return url.rstrip("/")


def origins(texts: Iterable[str]) -> list[str]:
    """Return the origins of pages as browsers send them: no path, no usual port, small letters.

    `*` alone is every one.
    """
    given = [text.strip() for text in texts]
    return given if given == ["*"] else [_origin(each) for each in given]


def _origin(text: str) -> str:
    parts = urlsplit(text.lower())
    if not is_http(text) or parts.path not in {"", "/"} or set("@?#*\\ ") & set(text):
        refuse(
            "CORS_ORIGINS", f"{text[:40]!r} is no origin like https://www.example.org, nor * alone"
        )
    usual = f":{PORTS[parts.scheme]}"
    return f"{parts.scheme}://{parts.netloc.removesuffix(usual)}"


def check_networks(name: str, networks: Iterable[str]) -> None:
    """Refuse what is neither an address nor a network of addresses."""
    for each in networks:
        try:
            ip_network(each)
        except ValueError:
            refuse(name, f"{each!r} is no address or network, such as 10.0.0.0/8")


def check_sentry_dsn(dsn: str) -> None:
    """Refuse what Sentry would not take for the address of a project."""
    if not dsn:
        return
    parts = urlsplit(dsn) if is_http(dsn) else urlsplit("")
    if not parts.username or not parts.path.rpartition("/")[2].isdigit():
        refuse("SENTRY_DSN", "must be like https://key@host/number, as Sentry shows it")


def profile(env: Env) -> str:
    """Return the name of the profile: which askers take the models that all share."""
    return str(env.str("MODEL_PROFILE", "full", validate=OneOf([*PROFILES])))


def choices(env: Env, profile: str) -> dict[str, Choice]:
    """Return the model settings of every asker.

    What one leaves out is taken from GEN_MODEL and SECOND_MODEL if the profile has it ask them. A
    wrong profile is refused when the environment is sealed.
    """
    shared = env.str("GEN_MODEL", "").strip(), env.str("SECOND_MODEL", "").strip()
    askers = PROFILES.get(profile, frozenset())
    return {
        asker: _choice(
            env,
            asker,
            DEFAULTS.get(asker, Choice()),
            model=shared[0] if asker in askers else "",
            second=shared[1],
        )
        for asker in MODEL_ASKERS
    }


def _choice(env: Env, asker: str, default: Choice, model: str, second: str) -> Choice:
    prefix = asker.upper()
    return Choice(
        # "none" lets one role work without a model where the others have one.
        model=_unless_none(env.str(f"{prefix}_MODEL", model)),
        second=_unless_none(env.str(f"{prefix}_SECOND_MODEL", second)),
        max_tokens=env.int(
            f"{prefix}_MAX_TOKENS", default.max_tokens, validate=Range(min=16, max=1_000_000)
        ),
        temperature=env.float(
            f"{prefix}_TEMPERATURE", default.temperature, validate=Range(min=0, max=2)
        ),
        timeout=env.float(f"{prefix}_TIMEOUT", default.timeout, validate=Range(min=0.1, max=600)),
    )


def _unless_none(model: str) -> str:
    name = model.strip()
    return "" if name.lower() == "none" else name


def resolved(
    choices: dict[str, Choice], providers: dict[str, Provider], environment: Mapping[str, str]
) -> dict[str, Choice]:
    """Return the choices with every model as `model@provider`.

    Raises ValueError with the name of the setting that says it, an asker's own or the shared one,
    for a model whose provider is not known.
    """

    def full(asker: str, kind: str, shared: str, model: str) -> str:
        own = f"{asker.upper()}_{kind}"
        return _with_provider(own if environment.get(own) else shared, model, providers)

    return {
        asker: replace(
            choice,
            model=full(asker, "MODEL", "GEN_MODEL", choice.model),
            second=full(asker, "SECOND_MODEL", "SECOND_MODEL", choice.second),
        )
        for asker, choice in choices.items()
    }


def _with_provider(setting: str, model: str, providers: dict[str, Provider]) -> str:
    if not model:
        return ""
    name, provider = parse_model_name(model, providers)
    if not name or provider not in providers:
        raise ValueError(
            f"{setting}: {model!r} names no known provider; write model@provider with one of "
            f"{', '.join(providers)}, or set <NAME>_BASE_URL"
        )
    return f"{name}@{provider}"
