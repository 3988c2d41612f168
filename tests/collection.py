"""Collection: what each of the processes that share the tests does before the first of them."""

import atexit
import gc
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect without looking for garbage: what comes of it stays until the end.

    It is a million objects, and whoever looked among them would take half a second each time.
    """
    gc.disable()
    import_in_turn(session.config)
    result = yield
    gc.freeze()
    # What is left for the end of the interpreter finds nothing of what it needs.
    atexit.register(gc.unfreeze)
    gc.enable()
    return result


def import_in_turn(config: pytest.Config) -> None:
    """Import the tests, each process from another file on.

    In a fresh checkout their asserts have to be compiled, which takes longer than all else before
    the first test. So each compiles its share, and reads what the others have compiled.
    """
    modules = [name for argument in config.args for name in modules_below(Path(argument))]
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    first = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) * len(modules) // count
    for name in modules[first:] + modules[:first]:
        import_module(name)


def modules_below(folder: Path) -> list[str]:
    """Return the dotted names of the test files below a folder; of a file none."""
    paths = sorted(folder.resolve().rglob("test_*.py"))
    return [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
