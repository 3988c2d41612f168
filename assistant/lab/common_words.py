"""Common words: writes what `knowledge.search.typos` leaves as it is though no document has it.

`python3 manage.py shell -c "from assistant.lab import common_words; common_words.write('FOLDER')"`,
with a checkout of hermitdave/FrequencyWords in FOLDER (lists from OpenSubtitles, CC BY-SA 4.0), and
a database that is up: PostgreSQL stems the words as it does those of documents.
"""

import subprocess
from pathlib import Path

import numpy as np

from knowledge.search import typos
from knowledge.search.sql import rows

CONFIGS = {
    "en": "english",
    "de": "german",
    "es": "spanish",
    "fr": "french",
    "ru": "russian",
    "it": "italian",
    "pt": "portuguese",
    "nl": "dutch",
    "pl": "simple",
    "cs": "simple",
}
MOST = 20000
BITS = 2**21
STEMS = """
SELECT DISTINCT unnest(tsvector_to_array(to_tsvector(%(config)s::regconfig, word)))
FROM unnest(%(words)s::text[]) AS word
"""


def words(folder: Path, language: str) -> list[str]:
    """Return the commonest words of a language, from a checkout or a bare clone."""
    path = f"content/2018/{language}/{language}_50k.txt"
    checkout = folder / "FrequencyWords" / path
    if checkout.exists():
        text = checkout.read_text("utf-8")
    else:
        clone = folder / "hermitdave+FrequencyWords/repo"
        shown = ["git", "--git-dir", str(clone), "show", f"HEAD:{path}"]
        text = subprocess.run(shown, capture_output=True, check=True).stdout.decode()  # noqa: S603
    return [line.split(" ")[0] for line in text.splitlines()[:MOST]]


def write(folder: str) -> float:
    """Write the filter; return the part of its bits that are set."""
    bits = np.zeros(BITS, bool)
    for language, config in CONFIGS.items():
        values = {"config": config, "words": words(Path(folder), language)}
        for (lexeme,) in rows(STEMS, values):
            bits[typos.hashes(f"{config} {lexeme}", BITS)] = True
    np.save(typos.COMMON, np.packbits(bits))
    return float(bits.mean())
