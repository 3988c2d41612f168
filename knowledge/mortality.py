"""Mortality: ties the life of a child process to its parent's, so that none is orphaned."""

import ctypes
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent() -> None:
    """Ask the kernel to end this process when the thread that started it is gone (Linux only)."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
