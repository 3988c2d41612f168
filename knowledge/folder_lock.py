"""Folder lock: one process at a time makes what all of a machine then read."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = ".lock"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Make the folder, and hold its lock during the block; a killed holder lets go of it.

    Where nothing can be written there is no lock, and nothing to be made by two at once.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / NAME).open("w")
    except OSError:
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
