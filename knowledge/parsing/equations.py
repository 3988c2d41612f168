"""Equations: those of Office documents as the LaTeX they would be written in."""

from collections.abc import Callable, Iterator
from xml.etree.ElementTree import Element

M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
FUNCTIONS = frozenset(
    ["sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "log", "ln", "exp", "lim"]
)
OPERATORS = {"∑": r"\sum", "∏": r"\prod", "∫": r"\int", "\u22c3": r"\bigcup", "\u22c2": r"\bigcap"}
ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0305": "bar", "\u20d7": "vec"}


def latex(element: Element) -> str:
    """Return an equation, or a part of one."""
    name = element.tag.removeprefix(M)
    if name == "t":
        return element.text or ""
    if name.endswith("Pr"):
        return ""
    return WRITERS.get(name, inside)(element)


def inside(element: Element | None) -> str:
    """Return what stands inside an element, in order."""
    return "".join(map(latex, element)) if element is not None else ""


def part(element: Element, name: str) -> str:
    """Return one part of an element: its numerator, its base."""
    return inside(element.find(M + name)).strip()


def sign(element: Element, name: str, default: str) -> str:
    """Return a sign that the element's properties choose."""
    found = element.find(f"*/{M}{name}")
    return found.get(f"{M}val", "") if found is not None else default


def parts(element: Element, name: str = "e") -> Iterator[str]:
    """Yield all parts of that name."""
    return (inside(each).strip() for each in element.findall(M + name))


def scripts(element: Element) -> str:
    """Return what stands below and above."""
    low, high = part(element, "sub"), part(element, "sup")
    return (f"_{{{low}}}" if low else "") + (f"^{{{high}}}" if high else "")


def fraction(element: Element) -> str:
    """Return a fraction; one without a bar is a binomial."""
    command = r"\binom" if sign(element, "type", "bar") == "noBar" else r"\frac"
    return f"{command}{{{part(element, 'num')}}}{{{part(element, 'den')}}}"


def root(element: Element) -> str:
    """Return a root."""
    degree = part(element, "deg")
    return rf"\sqrt{f'[{degree}]' if degree else ''}{{{part(element, 'e')}}}"


def operator(element: Element) -> str:
    """Return a sum, a product or an integral."""
    mark = sign(element, "chr", "∫")
    return f"{OPERATORS.get(mark, mark)}{scripts(element)} {part(element, 'e')}"


def delimited(element: Element) -> str:
    """Return what stands in brackets."""
    begin, end = sign(element, "begChr", "("), sign(element, "endChr", ")")
    between = sign(element, "sepChr", "|")
    return rf"\left{begin or '.'}{between.join(parts(element))}\right{end or '.'}"


def function(element: Element) -> str:
    """Return a function and what it is of."""
    name = part(element, "fName")
    word = name.split("_")[0].split("^")[0]
    command = "\\" + name if word in FUNCTIONS else name
    return f"{command} {part(element, 'e')}"


def accented(element: Element) -> str:
    """Return what stands under an accent."""
    command = ACCENTS.get(sign(element, "chr", "\u0302"), "hat")
    return f"\\{command}{{{part(element, 'e')}}}"


def matrix(element: Element) -> str:
    """Return a matrix."""
    rows = r" \\ ".join(" & ".join(parts(row)) for row in element.findall(f"{M}mr"))
    return rf"\begin{{matrix}}{rows}\end{{matrix}}"


WRITERS: dict[str, Callable[[Element], str]] = {
    "f": fraction,
    "sSup": lambda each: part(each, "e") + scripts(each),
    "sSub": lambda each: part(each, "e") + scripts(each),
    "sSubSup": lambda each: part(each, "e") + scripts(each),
    "sPre": lambda each: "{}" + scripts(each) + part(each, "e"),
    "limLow": lambda each: f"{part(each, 'e')}_{{{part(each, 'lim')}}}",
    "limUpp": lambda each: f"{part(each, 'e')}^{{{part(each, 'lim')}}}",
    "rad": root,
    "nary": operator,
    "d": delimited,
    "func": function,
    "acc": accented,
    "bar": lambda each: rf"\overline{{{part(each, 'e')}}}",
    "m": matrix,
    "eqArr": lambda each: r" \\ ".join(parts(each)),
}
