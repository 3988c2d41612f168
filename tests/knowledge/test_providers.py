"""Providers and models by name."""

import pytest
from pytest_django import Settings

from knowledge import embedding, providers
from knowledge.embedding import registry
from knowledge.embedding.embedder import UnknownModel


@pytest.fixture(autouse=True)
def known(settings: Settings) -> None:
    settings.PROVIDERS = providers.from_environment({"ACME_BASE_URL": "http://acme.test/v1/"})
    settings.EMBEDDING_MODEL = embedding.MODEL
    settings.EMBEDDING_WINDOW = 512
    registry.forget()


def test_known_providers_are_there_without_being_named() -> None:
    providers_by_name = providers.from_environment({"OPENAI_API_KEY": " sk-1 "})
    assert set(providers_by_name) == set(providers.KNOWN)
    assert providers_by_name["openai"].api_key == "sk-1"
    assert providers_by_name["ollama"].base_url == "http://127.0.0.1:11434/v1"
    assert "sk-1" not in repr(providers_by_name)


def test_any_server_is_added_by_its_address() -> None:
    providers_by_name = providers.from_environment(
        {"ACME_BASE_URL": "https://acme.test/v1/", "ACME_API_KEY": "k", "_BASE_URL": "x"}
    )
    assert providers_by_name["acme"] == providers.Provider("acme", "https://acme.test/v1", "k")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ACME_BASE_URL", "acme.test/v1"),
        ("ACME_BASE_URL", "ftp://acme.test"),
        ("OPENAI_BASE_URL", "https://"),
        ("OPENAI_API_KEY", "schlüssel"),
        ("OPENAI_API_KEY", "two\nlines"),
    ],
)
def test_an_address_or_key_that_cannot_be_one_is_refused_by_its_name(
    variable: str, value: str
) -> None:
    with pytest.raises(ValueError, match=f"^{variable}: "):
        providers.from_environment({variable: value})


def test_only_a_hosted_provider_is_known_to_want_a_key() -> None:
    providers_by_name = providers.from_environment({"GOOGLE_BASE_URL": "http://127.0.0.1:4000/v1"})
    lacking = {name for name, each in providers_by_name.items() if each.lacks_key}
    assert lacking == set(providers.HOSTED) - {"google"}


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
        ("text-embedding-3-small", "text-embedding-3-small@openai"),
        ("text-embedding-004@google", "text-embedding-004@google"),
        ("gemini-embedding-001", "gemini-embedding-001@google"),
        ("nomic-embed-text@Ollama", "nomic-embed-text@ollama"),
        ("Qwen/Qwen3-Embedding-8B@deepinfra", "Qwen/Qwen3-Embedding-8B@deepinfra"),
        ("own@acme", "own@acme"),
        ("nomic-embed-text", "nomic-embed-text@acme"),
    ],
)
def test_a_model_has_one_full_name_and_is_made_once(name: str, full: str) -> None:
    assert registry.full_name(name) == full
    assert registry.named(name) is registry.named(full)
    assert registry.named(name).name == full


SET_UP: dict[str, dict[str, str]] = {
    "nothing": {},
    "google": {"GOOGLE_API_KEY": "k"},
    "deepinfra": {"DEEPINFRA_API_KEY": "k"},
    "openrouter": {"OPENROUTER_API_KEY": "k"},
    "ollama": {"OLLAMA_BASE_URL": "http://127.0.0.1:11434/v1"},
    "acme": {"ACME_BASE_URL": "http://acme.test/v1"},
}


@pytest.mark.parametrize(
    ("name", "set_up", "provider"),
    [
        ("gpt-4o-mini", "nothing", "openai"),
        ("o3", "nothing", "openai"),
        ("o4-mini", "ollama", "openai"),
        ("chatgpt-4o-latest", "nothing", "openai"),
        ("ft:gpt-4o-mini:acme::1", "ollama", "openai"),
        ("gpt-oss:20b", "ollama", "ollama"),
        ("gpt-oss-20b", "acme", "acme"),
        ("olmo2", "acme", "acme"),
        ("gemini-2.5-flash", "nothing", "google"),
        ("claude-sonnet-4-5", "nothing", "anthropic"),
        ("gemma-3-27b-it", "google", "google"),
        ("gemma-3-27b-it", "nothing", ""),
        ("gemma-3-27b-it", "acme", "acme"),
        ("Qwen/Qwen3-32B", "deepinfra", "deepinfra"),
        ("Qwen/Qwen3-32B", "openrouter", "openrouter"),
        ("Qwen/Qwen3-32B", "acme", "acme"),
        ("Qwen/Qwen3-32B", "nothing", ""),
        ("qwen/qwen3-32b:free", "deepinfra", "openrouter"),
        ("llama3.1", "ollama", "ollama"),
        ("llama3.1:8b", "acme", "acme"),
        ("llama3.1:8b", "nothing", ""),
        ("", "acme", ""),
        ("llama3.1@Ollama", "acme", "ollama"),
    ],
)
def test_a_provider_left_out_is_found_from_the_name_and_from_what_is_set_up(
    name: str, set_up: str, provider: str
) -> None:
    providers_by_name = providers.from_environment(SET_UP[set_up])
    assert providers.parse_model_name(name, providers_by_name)[1] == provider


def test_of_two_servers_of_ones_own_none_is_guessed() -> None:
    providers_by_name = providers.from_environment(SET_UP["ollama"] | SET_UP["acme"])
    assert providers.parse_model_name("llama3.1", providers_by_name) == ("llama3.1", "")


def test_a_model_of_nobody_is_refused_with_what_is_allowed(settings: Settings) -> None:
    settings.PROVIDERS = providers.from_environment({})
    with pytest.raises(providers.UnknownProvider, match="write model@provider, with one of anth"):
        providers.parse_full_model_name("llama3.1")


@pytest.mark.parametrize("name", ["", "@", "@openai", "x@nobody", "x@"])
def test_a_name_without_a_provider_that_exists_is_refused_with_those_that_do(name: str) -> None:
    with pytest.raises(UnknownModel, match=r"acme, anthropic, .*all-MiniLM-L6-v2"):
        registry.named(name)


def test_a_name_longer_than_its_column_is_refused() -> None:
    with pytest.raises(UnknownModel, match="longer than 100"):
        registry.full_name("x" * 100 + "@acme")


def test_new_collections_use_the_model_of_the_settings(settings: Settings) -> None:
    assert registry.default().name == embedding.MODEL
    settings.EMBEDDING_MODEL = "nomic-embed-text@ollama"
    assert registry.default().dimensions == 768


def test_known_models_have_dimensions_that_can_be_stored() -> None:
    sizes = {
        "text-embedding-3-large": 3072,
        "BAAI/bge-m3@deepinfra": 1024,
        "multilingual-e5-large-instruct@vllm": 1024,
        "Qwen/Qwen3-Embedding-8B@deepinfra": 4096,
        "text-embedding-nomic-embed-text-v1.5@lmstudio": 768,
    }
    assert {name: registry.named(name).dimensions for name in sizes} == sizes
