"""Liveness: whether a process of a name is still there, and children that end with their parent."""

import ctypes
import os
import signal
import socket
import sys
from pathlib import Path


def pid_namespace() -> str:
    """Process ids mean something only within one pid namespace (Linux; elsewhere there is one)."""
    marker = Path("/proc/self/ns/pid")
    return str(marker.stat().st_ino) if marker.exists() else "0"


def start_time(pid: int) -> str | None:
    """Return when the process began, in the kernel's own clock; None when there is no such one."""
    try:
        # Field 22; the name in field 2 may itself hold blanks and brackets.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


PLACE = f"{socket.gethostname()}/{pid_namespace()}"


def identity(pid: int) -> str:
    """Return the name under which the process `pid` of this machine works."""
    return f"{PLACE}/{pid}/{start_time(pid) or 0}"


def died(worker: str) -> bool:
    """Whether `worker` was a process of this machine that is no more; False when unsure."""
    place, _, rest = worker.rpartition("/")
    place, _, pid = place.rpartition("/")
    return place == PLACE and rest != "0" and start_time(int(pid)) != rest


def own_identity() -> str:
    """Return the name of this process."""
    return identity(os.getpid())


PR_SET_PDEATHSIG = 1  # linux/prctl.h
PARENT = "DOCENT_PARENT"

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent() -> None:
    """Ask the kernel to end this process when the thread that started it is gone (Linux only)."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def environment_of_child() -> dict[str, str]:
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
