"""Liveness: the name a process works under, and whether the one of a name is still there."""

import os
import socket
from pathlib import Path


def _namespace() -> str:
    """Process ids mean something only within one pid namespace (Linux; elsewhere there is one)."""
    marker = Path("/proc/self/ns/pid")
    return str(marker.stat().st_ino) if marker.exists() else "0"


def birth(pid: int) -> str | None:
    """Return when the process began, in the kernel's own clock; None when there is no such one."""
    try:
        # Field 22; the name in field 2 may itself hold blanks and brackets.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


PLACE = f"{socket.gethostname()}/{_namespace()}"


def identity(pid: int) -> str:
    """Return the name under which the process `pid` of this machine works."""
    return f"{PLACE}/{pid}/{birth(pid) or 0}"


def died(worker: str) -> bool:
    """Whether `worker` was a process of this machine that is no more; False when unsure."""
    place, _, rest = worker.rpartition("/")
    place, _, pid = place.rpartition("/")
    return place == PLACE and rest != "0" and birth(int(pid)) != rest


def myself() -> str:
    """Return the name of this process."""
    return identity(os.getpid())
