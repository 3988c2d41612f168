"""Connection: a provider that is to be asked from now on, looked at before it is set."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import dotenv
import httpx2
from django.conf import settings

from agents.errors import AgentError
from agents.llm.requests import Choice
from agents.names import PROFILES
from knowledge.providers import (
    API_KEY,
    BASE_URL,
    HOSTED,
    KNOWN,
    OWN,
    Provider,
    configured_provider,
)

LIST_SECONDS = 10.0
# A name that environment variables can be made of.
NAME = re.compile(r"[a-z][a-z0-9_]{0,29}\Z")
TITLES = {
    "openai": "OpenAI",
    "anthropic": "Anthropic",
    "google": "Google Gemini",
    "deepinfra": "DeepInfra",
    "openrouter": "OpenRouter",
    "ollama": "Ollama",
    "vllm": "vLLM",
    "lmstudio": "LM Studio",
    "llamacpp": "llama.cpp (llama-server)",
}
# What is proposed where nothing else says which model is meant.
USUAL_MODELS = {
    "openai": "gpt-4o-mini",
    "anthropic": "claude-haiku-4-5",
    "google": "gemini-2.5-flash",
}
# Anthropic lists its models by its own API alone.
ANTHROPIC_VERSION = "2023-06-01"
# What stands in `.env` without quotes around it.
PLAIN = re.compile(r"[\w@./:+-]*\Z", re.ASCII)


class Unconnected(AgentError):
    """The provider cannot be connected."""


def connected(name: str, address: str = "", key: str = "") -> Provider:
    """Return the provider of that name as it will be set; what is left out is as it is now.

    An address without a name gets that of its host. A key that is set goes to no other address
    than the one it is set for: who may connect providers must not read it. Raises Unconnected.
    """
    name = name.strip().lower() or name_of(address)
    if not NAME.match(name):
        raise Unconnected(
            f"{name[:40]!r} is no name for a provider: small letters, digits and _, a letter first."
        )
    given = {name.upper() + BASE_URL: address.strip(), name.upper() + API_KEY: key.strip()}
    environment = os.environ | {variable: value for variable, value in given.items() if value}
    if not key.strip() and _is_elsewhere(name, address):
        environment.pop(name.upper() + API_KEY, None)
    if name not in KNOWN and not environment.get(name.upper() + BASE_URL):
        known = ", ".join(KNOWN)
        raise Unconnected(
            f"{name} is none of {known}: give the address of its API, like https://host/v1."
        )
    try:
        provider = configured_provider(name, environment)
    except ValueError as error:
        raise Unconnected(str(error)) from error
    if provider.lacks_key:
        raise Unconnected(f"{title(provider)} answers nobody without a key.")
    return provider


def _is_elsewhere(name: str, address: str) -> bool:
    """Tell whether an address that was given is another than the provider has now."""
    now = os.environ.get(name.upper() + BASE_URL, "").strip() or KNOWN.get(name, "")
    return bool(address.strip()) and address.strip().rstrip("/") != now.rstrip("/")


def name_of(address: str) -> str:
    """Return a name for the server at an address: the telling part of its host."""
    host = urlsplit(address.strip()).hostname or ""
    if re.fullmatch(r"[\d.:]+|localhost", host):
        return "local" if host else ""
    labels = host.split(".")
    return re.sub(r"\W", "_", labels[-2] if len(labels) > 1 else labels[0])


def needs_key(name: str) -> bool:
    """Tell whether the provider answers nobody without a key."""
    return name in HOSTED


def title(provider: Provider) -> str:
    """Return how the provider is called in sentences."""
    return TITLES.get(provider.name, provider.name)


def listed_models(provider: Provider) -> list[str]:
    """Return the models a provider says it has, in its order; none where it keeps no list.

    Raises Unconnected with what to do when it refuses the key or is not there.
    """
    headers = {"Authorization": f"Bearer {provider.api_key}"} if provider.api_key else {}
    if provider.name == "anthropic":
        headers |= {"x-api-key": provider.api_key, "anthropic-version": ANTHROPIC_VERSION}
    name, address = title(provider), provider.base_url
    try:
        response = httpx2.get(f"{address}/models", headers=headers, timeout=LIST_SECONDS)
    except httpx2.TimeoutException as error:
        raise Unconnected(
            f"{name} did not answer at {address} within {LIST_SECONDS:.0f} s: see whether the "
            "address is right, and what keeps the server."
        ) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise Unconnected(
            f"{name} cannot be reached at {address} ({error}): see whether the server runs, and "
            "whether the address is right."
        ) from error
    if response.status_code in {401, 403}:
        raise Unconnected(
            f"{name} refuses the key ({response.status_code}): copy it once more from where it was "
            "made, and see that it may be used."
        )
    if response.has_redirect_location:
        raise Unconnected(
            f"{address} sends on to {response.headers['location'][:200]}, which is not followed: "
            "give the address where the API is."
        )
    return _ids(response)


def _ids(response: httpx2.Response) -> list[str]:
    """Return the models of a list as OpenAI's API has it; none for anything else."""
    try:
        rows = response.json()["data"]
        return [str(row["id"]).removeprefix("models/") for row in rows]
    except (ValueError, KeyError, TypeError):
        return []


@contextmanager
def using(provider: Provider, models: Mapping[str, Choice]) -> Iterator[None]:
    """Have this process ask the provider, and these models, during the block."""
    before = settings.PROVIDERS, settings.MODELS
    settings.PROVIDERS = settings.PROVIDERS | {provider.name: provider}
    settings.MODELS = dict(models)
    try:
        yield
    finally:
        settings.PROVIDERS, settings.MODELS = before


def choices_with(model: str, profile: str) -> dict[str, Choice]:
    """Return the model settings of all askers with another GEN_MODEL and MODEL_PROFILE.

    Who has a setting of its own is left as it is.
    """
    return {
        asker: choice
        if asker in settings.OWN_MODEL_ASKERS
        else replace(choice, model=model if asker in PROFILES[profile] else "")
        for asker, choice in settings.MODELS.items()
    }


def variables(provider: Provider, model: str, profile: str) -> dict[str, str]:
    """Return the settings that have the model asked: what it needs first, then who is asked."""
    needed = {}
    if provider.api_key:
        needed[provider.key_variable] = provider.api_key
    if provider.base_url != KNOWN.get(provider.name):
        needed[f"{provider.name.upper()}{BASE_URL}"] = provider.base_url
    return needed | {"MODEL_PROFILE": profile, "GEN_MODEL": model}


def env_file() -> Path:
    """Return the file that settings are read from."""
    return Path(settings.BASE_DIR) / ".env"


def write(values: Mapping[str, str]) -> None:
    """Set these in `.env`, readable by its owner alone; its other lines stay. Raises OSError.

    Each is there whole or not at all. So whoever is killed between two has connected a provider
    that nobody asks yet.
    """
    file = env_file()
    for name, value in values.items():
        quotes = "never" if PLAIN.match(value) else "always"
        dotenv.set_key(file, name, value, quote_mode=quotes, follow_symlinks=True)
        file.chmod(0o600)


def shown(values: Mapping[str, str]) -> list[str]:
    """Return the lines that set these, without the key."""
    return [f"{name}={'…' if name.endswith(API_KEY) else value}" for name, value in values.items()]


def overruled(values: Mapping[str, str]) -> list[str]:
    """Return the names that the environment sets to something else: it wins over the file."""
    said = dotenv.dotenv_values(env_file()) if env_file().is_file() else {}
    return [
        name
        for name, value in values.items()
        if os.environ.get(name, value) not in {value, said.get(name)}
    ]


def is_free(model: str) -> bool:
    """Tell whether a model runs on a server of one's own, which takes nothing by the call."""
    return model.rpartition("@")[2] in OWN


def kinds() -> dict[str, str]:
    """Return how the providers are called that can be chosen, by name; who needs a key first."""
    return {name: TITLES[name] for name in (*HOSTED, *OWN)}
