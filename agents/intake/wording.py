"""Wording: how people refer back, choose, thank and leave, in Docent's languages."""

import re
import tomllib
from pathlib import Path

from agents.terms import SENTENCE_ENDS

with (Path(__file__).parent / "wording.toml").open("rb") as file:
    SAID: dict[str, dict[str, list[str]]] = tomllib.load(file)

GAP = rf"[\s,;:{SENTENCE_ENDS}-]*"


def _any(name: str) -> str:
    """The entries of one name as one group."""
    return f"(?:{'|'.join(entry for entries in SAID[name].values() for entry in entries)})"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _begins(name: str) -> re.Pattern[str]:
    """Match a message that begins with an entry. Chinese ones need no gap behind them."""
    spaced = [e for key, entries in SAID[name].items() if key != "zh" for e in entries]
    unspaced = "|".join(SAID[name].get("zh", ["(?!)"]))
    return _compiled(rf"^(?:(?:{'|'.join(spaced)})(?!\w)|{unspaced})")


def _whole(*names: str) -> re.Pattern[str]:
    """Match a message that is nothing but such entries, at least one, and fillers.

    So "thanks, but how do I…" is no farewell.
    """
    meant = "|".join(_any(name) for name in names)
    filler = _any("filler")
    return _compiled(
        rf"^{GAP}(?:{filler}(?!\w){GAP})*(?:{meant})(?:{GAP}(?:{meant}|{filler}))*{GAP}$"
    )


REFERENCE = _compiled(rf"\b{_any('reference')}|{_any('reference_unspaced')}")
EXPLETIVE = _compiled(rf"\b{_any('expletive')}")
CONTINUING = _begins("continuing")
QUESTION = _begins("question")
PREPOSITION = _begins("preposition")
LEAD_IN = _compiled(rf"^(?:{_any('assent')}(?!\w){GAP})*(?:{_any('lead_in')}(?!\w))?{GAP}")
FAREWELL = _whole("goodbye")
LEAVING = _whole("giving_up", "goodbye")
NONE_OF_THEM = _compiled(rf"^{_any('none_of_them')}{GAP}$")
NUMBER = _compiled(rf"^{_any('number')}?\s*(\d)\s*[.)]?$")
ORDINALS = [_compiled("|".join(entries)) for entries in SAID["ordinal"].values()]
