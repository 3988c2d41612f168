"""House: the shape of the code in figures, for whoever wants to know how much there is to read.

`python3 -m assistant.lab.house [CHECKOUT]` prints them; it reads the files and imports none.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

PACKAGES = ("assistant", "conversations", "agents", "knowledge", "prompts")
# Django gives them their names, in each app anew; of these two each app has its own by intention.
OF_DJANGO = frozenset({"__init__", "admin", "apps", "migrations", "models", "urls"})
OF_EACH_APP = frozenset({"api", "errors"})
# What the field calls by a gerund, and the ending of a turn.
GERUNDS_OF_THE_FIELD = frozenset(
    {
        "billing",
        "chunking",
        "drawing",
        "embedding",
        "encoding",
        "ending",
        "parsing",
        "routing",
        "streaming",
    }
)
TINY = 30  # lines


def modules(root: Path) -> list[Path]:
    """Return the Python files of the packages below `root`; Django writes the migrations."""
    paths = (path for package in PACKAGES for path in sorted((root / package).rglob("*.py")))
    return [path for path in paths if "migrations" not in path.parts]


def is_command(path: Path) -> bool:
    """Tell whether the file is named after a command, and not after what it holds."""
    return "commands" in path.parts


def stems(paths: Sequence[Path]) -> list[str]:
    """Return the names of modules that mean something, commands apart."""
    taken = OF_DJANGO | OF_EACH_APP
    return [path.stem for path in paths if not is_command(path) and path.stem not in taken]


def repeated(paths: Sequence[Path]) -> list[str]:
    """Return the names that two modules have."""
    return sorted(stem for stem, count in Counter(stems(paths)).items() if count > 1)


def gerunds(paths: Sequence[Path]) -> list[str]:
    """Return the modules named by what is done, where the field has no such name."""
    named = {stem for stem in stems(paths) if stem.endswith("ing")}
    named |= {path.parent.name for path in paths if path.parent.name.endswith("ing")}
    return sorted(named - GERUNDS_OF_THE_FIELD)


def functions(paths: Sequence[Path]) -> Iterator[int]:
    """Yield the length of every function, in lines."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield (node.end_lineno or node.lineno) - node.lineno + 1


def spread(lengths: Sequence[int]) -> str:
    """Return median, 90th percentile and maximum."""
    ordered = sorted(lengths)
    return f"{ordered[len(ordered) // 2]} / {ordered[len(ordered) * 9 // 10]} / {ordered[-1]}"


def figures(root: Path) -> dict[str, str]:
    """Return what there is to count below `root`."""
    paths = modules(root)
    lines = [len(path.read_text(encoding="utf-8").splitlines()) for path in paths]
    full = [count for path, count in zip(paths, lines, strict=True) if path.stem != "__init__"]
    return {
        "files": f"{len(paths)}",
        "files but for __init__": f"{len(full)}",
        "lines": f"{sum(lines):,}",
        "lines of a file: median / p90 / max": spread(full),
        "lines of a function: median / p90 / max": spread(list(functions(paths))),
        f"files under {TINY} lines, but for __init__": f"{sum(count < TINY for count in full)}",
        "modules named by gerunds of our own": f"{len(gerunds(paths))}",
        "names of modules used twice": f"{len(repeated(paths))}",
        "files flat in agents/": f"{len([*(root / 'agents').glob('*.py')])}",
        "words in lists (.txt, .toml), lines": f"{word_lines(root):,}",
    }


def word_lines(root: Path) -> int:
    """Return the lines of word lists and exemplars beside the code of the agents."""
    lists = (path for end in ("txt", "toml") for path in (root / "agents").rglob(f"*.{end}"))
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in lists)


def main() -> None:
    """Print the figures of a checkout, this one unless another is named."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2]
    for name, figure in figures(root).items():
        print(f"{name:45} {figure}")  # noqa: T201 its only output


if __name__ == "__main__":
    main()
