"""Askers: reads which model each role asks, and within which bounds."""

from environs import Env
from marshmallow.validate import Range

from agents.llm.choices import Choice
from agents.names import ENRICHMENT, EXPANSION, THINKERS, Role
from knowledge.providers import Provider, parts

# What differs from Choice's own defaults: tokens of a reply, temperature, seconds.
DEFAULTS: dict[str, Choice] = {
    Role.TRANSLATION: Choice(max_tokens=3000),
    Role.RESPONSE: Choice(max_tokens=1500, temperature=0.2, timeout=60.0),
    Role.MEMORY: Choice(timeout=20.0),
    ENRICHMENT: Choice(max_tokens=1500, timeout=60.0),
    EXPANSION: Choice(max_tokens=400, temperature=0.2, timeout=8.0),
}


def choices(env: Env) -> dict[str, Choice]:
    """Return the model settings of every asker; what one leaves out is taken from all's."""
    every = env.str("GEN_MODEL", "").strip(), env.str("SECOND_MODEL", "").strip()
    return {asker: _choice(env, asker, DEFAULTS.get(asker, Choice()), *every) for asker in THINKERS}


def _choice(env: Env, asker: str, default: Choice, model: str, second: str) -> Choice:
    prefix = asker.upper()
    return Choice(
        # "none" lets one role work without a model where the others have one.
        model=_named(env.str(f"{prefix}_MODEL", model)),
        second=_named(env.str(f"{prefix}_SECOND_MODEL", second)),
        max_tokens=env.int(
            f"{prefix}_MAX_TOKENS", default.max_tokens, validate=Range(min=16, max=1_000_000)
        ),
        temperature=env.float(
            f"{prefix}_TEMPERATURE", default.temperature, validate=Range(min=0, max=2)
        ),
        timeout=env.float(f"{prefix}_TIMEOUT", default.timeout, validate=Range(min=0.1, max=600)),
    )


def _named(model: str) -> str:
    name = model.strip()
    return "" if name.lower() == "none" else name


def resolved(found: dict[str, Choice], providers: dict[str, Provider]) -> dict[str, Choice]:
    """Return the choices with every model as `model@provider`.

    Raises ValueError with the name of the setting for a model whose provider is not known.
    """
    return {
        asker: Choice(
            _whole(f"{asker.upper()}_MODEL", choice.model, providers),
            _whole(f"{asker.upper()}_SECOND_MODEL", choice.second, providers),
            choice.max_tokens,
            choice.temperature,
            choice.timeout,
        )
        for asker, choice in found.items()
    }


def _whole(setting: str, model: str, providers: dict[str, Provider]) -> str:
    if not model:
        return ""
    name, provider = parts(model, providers)
    if not name or provider not in providers:
        raise ValueError(
            f"{setting}: {model!r} names no known provider; write model@provider with one of "
            f"{', '.join(providers)}, or set <NAME>_BASE_URL"
        )
    return f"{name}@{provider}"
