"""Markers: `[C1]` in an answer, and the many ways a model writes them."""

import re
from collections.abc import Callable, Collection

MARKER = re.compile(r"\[(C\d+)\]")
CODE = r"```.*?(?:```|\Z)|`[^`\n]*`"
# "[C1, C2]", "(C1)", "[c 1]", "[^C1]", "[[C1]](#)", and the brackets of Chinese and Japanese.
_OPEN, _CLOSE = r"[\[(\u3010\uff3b\uff08]", r"[\])\u3011\uff3d\uff09]"
_NUMBER = r"\^?[Cc]\s?\d{1,3}"
_LIST = rf"{_NUMBER}(?:\s*(?:[,;/&\u3001\uff0c]|and|und|et|y|\u0438)?\s*(?:{_NUMBER}|\d{{1,3}}))*"
WRITTEN = re.compile(
    rf"(?P<code>{CODE})|(?P<gap>[ \t]*){_OPEN}{{1,2}}\s*(?P<list>{_LIST})\s*{_CLOSE}{{1,2}}"
    r"(?:\([^)\s]*\))?",
    re.DOTALL,
)


def markers(text: str) -> list[str]:
    """The markers used in `text`, each once, in order: "C1"."""
    return list(dict.fromkeys(MARKER.findall(text)))


def without_markers(text: str) -> str:
    """`text` as it reads without its markers."""
    return re.sub(r"\s+([.,;:!?])", r"\1", re.sub(r"[ \t]*\[C\d+\]", "", text)).strip()


def normalised(text: str) -> str:
    """`text` with every marker written as `[C1]`; code stays as it is."""
    return WRITTEN.sub(_rewritten(lambda marker: True), text)


def known_only(text: str, known: Collection[str]) -> str:
    """`text` with its markers normalised, without those that are not among `known`."""
    return WRITTEN.sub(_rewritten(known.__contains__), text)


def _rewritten(keep: Callable[[str], bool]) -> Callable[[re.Match[str]], str]:
    def rewrite(match: re.Match[str]) -> str:
        if match["code"] is not None:
            return match[0]
        cited = dict.fromkeys(f"C{int(number)}" for number in re.findall(r"\d+", match["list"]))
        allowed = "".join(f"[{marker}]" for marker in cited if keep(marker))
        return match["gap"] + allowed if allowed else ""

    return rewrite
