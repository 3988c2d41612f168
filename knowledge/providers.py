"""Providers: the servers that models are asked of, as the environment names them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from django.conf import settings

from knowledge.errors import KnowledgeError

BASE_URL, API_KEY = "_BASE_URL", "_API_KEY"

# Where each listens unless <NAME>_BASE_URL says otherwise; all speak OpenAI's API.
HOSTED = {
    "openai": "https://api.openai.com/v1",
    "google": "https://generativelanguage.googleapis.com/v1beta/openai",
    "anthropic": "https://api.anthropic.com/v1",
    "deepinfra": "https://api.deepinfra.com/v1/openai",
    "openrouter": "https://openrouter.ai/api/v1",
}
OWN = {
    "ollama": "http://127.0.0.1:11434/v1",
    "vllm": "http://127.0.0.1:8000/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
}
KNOWN = HOSTED | OWN


@dataclass(frozen=True)
class Naming:
    """Whose a model is that is named like this: of these providers the first that will do."""

    pattern: re.Pattern[str]
    providers: tuple[str, ...]
    with_key: bool = False  # only one whose key is set


# The first that fits; what fits none is of the only server of one's own. A name with a colon is
# one of Ollama's, whoever made the model, and OpenAI's open models are not served by OpenAI.
NAMINGS = (
    Naming(re.compile(r"(gpt-(?!oss)|chatgpt-|o\d|text-embedding-)[^/:]*\Z"), ("openai",)),
    Naming(re.compile(r"ft:gpt-"), ("openai",)),
    Naming(re.compile(r"gemini-[^/:]*\Z"), ("google",)),
    Naming(re.compile(r"claude-[^/:]*\Z"), ("anthropic",)),
    Naming(re.compile(r"gemma-[^/:]*\Z"), ("google",), with_key=True),
    Naming(re.compile(r"[^/]+/.+:free\Z"), ("openrouter",)),
    Naming(re.compile(r"[^/]+/."), ("deepinfra", "openrouter"), with_key=True),
)


class UnknownProvider(KnowledgeError):
    """There is no such provider."""


@dataclass(frozen=True)
class Provider:
    """A server and the key it is asked with."""

    name: str
    base_url: str
    api_key: str = field(default="", repr=False)
    set_up: bool = field(default=False, compare=False)  # its address was set, not only known

    @property
    def key_variable(self) -> str:
        """The environment variable that holds its key."""
        return f"{self.name.upper()}{API_KEY}"

    @property
    def own(self) -> bool:
        """Whether it is a server of one's own that was set up."""
        return self.name not in HOSTED and (self.set_up or self.name not in OWN)

    @property
    def lacks_key(self) -> bool:
        """Whether it is known to answer nobody without a key, and none is set."""
        return not self.api_key and self.name in HOSTED and self.base_url == HOSTED[self.name]


def from_environment(environment: Mapping[str, str]) -> dict[str, Provider]:
    """Return every provider by name: the known ones, and each that has a <NAME>_BASE_URL.

    Raises ValueError, with the name of the variable, when an address or a key cannot be one.
    """
    named = {
        variable.removesuffix(BASE_URL).lower()
        for variable, value in environment.items()
        if variable.endswith(BASE_URL) and value.strip() and variable != BASE_URL
    }
    return {name: configured_provider(name, environment) for name in sorted(named | set(KNOWN))}


def configured_provider(name: str, environment: Mapping[str, str]) -> Provider:
    address, key = f"{name.upper()}{BASE_URL}", f"{name.upper()}{API_KEY}"
    configured_url = environment.get(address, "").strip().rstrip("/")
    base_url = configured_url or KNOWN[name]
    parts = urlsplit(base_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{address}: must be like https://host/v1, not {base_url[:80]!r}")
    api_key = environment.get(key, "").strip()
    if not (api_key.isascii() and api_key.isprintable()):
        raise ValueError(f"{key}: holds characters that no key has")
    return Provider(name, base_url, api_key, set_up=bool(configured_url))


def parse_full_model_name(model: str) -> tuple[str, str]:
    """Return model and provider of `model@provider`; the provider may be left to the name.

    Raises UnknownProvider.
    """
    name, provider = parse_model_name(model)
    if not name or not provider:
        raise UnknownProvider(
            f"{model!r} names no provider: write model@provider, with one of {provider_names()}."
        )
    return name, provider


def parse_model_name(
    model: str, providers: Mapping[str, Provider] | None = None
) -> tuple[str, str]:
    """Return model and provider of `model@provider`; empty is what nothing says.

    Where the provider is left out, the name says it, and which of `providers` (PROVIDERS) have a
    key or were set up.
    """
    name, at, provider = model.strip().rpartition("@")
    if at:
        return name, provider.lower()
    return provider, provider_of(provider, settings.PROVIDERS if providers is None else providers)


def provider_of(name: str, providers: Mapping[str, Provider]) -> str:
    if not name:
        return ""
    for naming in NAMINGS:
        if naming.pattern.match(name):
            for candidate in naming.providers:
                if candidate in providers and (providers[candidate].api_key or not naming.with_key):
                    return candidate
    servers = [candidate.name for candidate in providers.values() if candidate.own]
    return servers[0] if len(servers) == 1 else ""


def provider(name: str) -> Provider:
    """Return the provider of that name. Raises UnknownProvider."""
    try:
        provider: Provider = settings.PROVIDERS[name]
    except KeyError:
        raise UnknownProvider(
            f"There is no provider {name!r}. There are {provider_names()}; any other "
            f"OpenAI-compatible server is added by setting {name.upper()}{BASE_URL}."
        ) from None
    return provider


def provider_names() -> str:
    """Return the names of all providers, for a sentence."""
    return ", ".join(settings.PROVIDERS)
