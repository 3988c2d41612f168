"""Environment: turns server addresses into what Django and Celery want, or says what is wrong."""

from typing import Any, NoReturn
from urllib.parse import parse_qsl, unquote, urlsplit

from environs import EnvError, EnvValidationError


def refuse(name: str, reason: str) -> NoReturn:
    """Stop the start with the name of the environment variable and the reason."""
    raise EnvError(f"{name}: {reason}")


def explained(error: EnvError) -> str:
    """Return every wrong variable with its reason, a line each."""
    if not isinstance(error, EnvValidationError):
        return str(error)
    found = error.error_messages
    named = found if isinstance(found, dict) else {"": found}
    return "\n".join(f"{name}: {' '.join(map(str, said))}" for name, said in named.items())


def postgres_options(url: str) -> dict[str, Any]:
    """Return Django's entry for a `postgresql://user:password@host:port/name?option=…` address.

    Options after `?` go to libpq, `host` among them: it may be a folder with a Unix socket.
    """
    parts = urlsplit(url)
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


def broker_url(url: str) -> str:
    """Return Celery's spelling of a Redis address; a Redis Cluster is refused, as kombu can't."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        database = dict(parse_qsl(parts.query)).get("db", "0")
        return f"redis+socket://{parts.path}?virtual_host={database}"
    if parts.scheme not in {"redis", "rediss"}:
        refuse("REDIS_URL", f"must begin with redis://, rediss:// or unix://, not {url[:20]!r}")
    return url
