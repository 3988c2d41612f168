"""Keys: what makes two spellings one name."""

import re
import unicodedata

LONGEST = 200
APART = re.compile(r"[\W_]+")


def key(name: str) -> str:
    """Return the name in lower case, compatible letters made one, without punctuation."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return APART.sub(" ", plain).strip()[:LONGEST].strip()
