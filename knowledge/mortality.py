"""Mortality: ties the life of a child process to its parent's, so that none is orphaned."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h
PARENT = "DOCENT_PARENT"

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent() -> None:
    """Ask the kernel to end this process when the thread that started it is gone (Linux only)."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def tied() -> dict[str, str]:
    """Return what a child is to find in its environment to follow this process.

    It ties itself: a function that runs between fork and exec (preexec_fn) can wait for ever for a
    lock that another thread of the parent held at the fork.
    """
    return {PARENT: str(os.getpid())}


def follow_parent() -> None:
    """Tie this process to the parent that its environment names, or end: it is gone already."""
    parent = os.environ.pop(PARENT, "")
    if parent:
        die_with_parent()
        if os.getppid() != int(parent):
            sys.exit(1)
