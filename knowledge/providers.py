"""Providers: the servers that models are asked of, as the environment names them."""

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
}
KNOWN = HOSTED | OWN

# Whose model it is when the name does not say, by how the name begins.
MAKERS = {
    "gpt-": "openai",
    "text-embedding-": "openai",
    "gemini-": "google",
    "claude-": "anthropic",
}


class UnknownProvider(KnowledgeError):
    """There is no such provider."""


@dataclass(frozen=True)
class Provider:
    """A server and the key it is asked with."""

    name: str
    base_url: str
    api_key: str = field(default="", repr=False)

    @property
    def key_variable(self) -> str:
        """The environment variable that holds its key."""
        return f"{self.name.upper()}{API_KEY}"

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
    return {name: _provider(name, environment) for name in sorted(named | set(KNOWN))}


def _provider(name: str, environment: Mapping[str, str]) -> Provider:
    address, key = f"{name.upper()}{BASE_URL}", f"{name.upper()}{API_KEY}"
    base_url = environment.get(address, "").strip().rstrip("/") or KNOWN[name]
    parts = urlsplit(base_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{address}: must be like https://host/v1, not {base_url[:80]!r}")
    api_key = environment.get(key, "").strip()
    if not (api_key.isascii() and api_key.isprintable()):
        raise ValueError(f"{key}: holds characters that no key has")
    return Provider(name, base_url, api_key)


def split(model: str) -> tuple[str, str]:
    """Return model and provider of `model@provider`; the provider may be left to the name.

    Raises UnknownProvider.
    """
    name, provider = parts(model)
    if not name or not provider:
        raise UnknownProvider(
            f"{model!r} names no provider: write model@provider, with one of {allowed()}."
        )
    return name, provider


def parts(model: str) -> tuple[str, str]:
    """Return model and provider; empty is what the name does not say."""
    name, _, provider = model.strip().rpartition("@")
    if not name:
        name = provider
        provider = next((who for begin, who in MAKERS.items() if name.startswith(begin)), "")
    return name, provider.lower()


def provider(name: str) -> Provider:
    """Return the provider of that name. Raises UnknownProvider."""
    try:
        found: Provider = settings.PROVIDERS[name]
    except KeyError:
        raise UnknownProvider(
            f"There is no provider {name!r}. There are {allowed()}; any other OpenAI-compatible "
            f"server is added by setting {name.upper()}{BASE_URL}."
        ) from None
    return found


def allowed() -> str:
    """Return the names of all providers, for a sentence."""
    return ", ".join(settings.PROVIDERS)
