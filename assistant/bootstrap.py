"""Bootstrap: whether the environment in `.venv` is the one pyproject.toml asks for; enters it.

It runs before every command, on a bare interpreter: it imports next to nothing (no pathlib, no
tomllib) and compares texts instead of parsing them, so that it costs under a millisecond.
"""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
PYPROJECT = os.path.join(ROOT, "pyproject.toml")
BASE = "base"
# Setting → the group it asks for when it is on; others do so whatever they are set to.
OPTIONAL = {
    "CROSS_LINGUAL": "cross-lingual",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "telemetry",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "telemetry",
    "SENTRY_DSN": "sentry",
}
SWITCHES = ("CROSS_LINGUAL",)


def groups_for(argv: list[str]) -> list[str]:
    """The dependency groups the command line needs, first the one that everything needs."""
    groups = [BASE, "test"] if argv[1:2] == ["test"] else [BASE]
    wanted = {group: None for name, group in OPTIONAL.items() if _is_wanted(name)}
    return groups + list(wanted)


def _is_wanted(name: str) -> bool:
    value = _setting(name)
    return value == "on" if name in SWITCHES else bool(value)


def _setting(name: str) -> str:
    """What the environment says, or else `.env`; whether that is allowed, the settings judge."""
    if name in os.environ:
        return os.environ[name]
    lines = (_text(os.path.join(ROOT, ".env")) or "").splitlines()
    pairs = [line.strip().partition("=") for line in lines]
    values = [value for key, _, value in pairs if key.strip() in (name, "export " + name)]
    return values[-1].partition(" #")[0].strip().strip("\"'") if values else ""


def stamp(group: str) -> str:
    """Path of the note that a group is installed: the pyproject.toml it was installed from."""
    return os.path.join(VENV, f"docent-{group}.toml")


def is_inside() -> bool:
    """Whether this process runs in the project's own environment."""
    return os.path.realpath(sys.prefix) == os.path.realpath(VENV)


def is_current(groups: list[str]) -> bool:
    """Whether every group was installed from pyproject.toml as it is, for this very Python."""
    if not os.path.exists(PYTHON) or (is_inside() and not _lives_in(sys.version_info[:2])):
        return False
    pyproject = _text(PYPROJECT)
    return all(_text(stamp(group)) == pyproject for group in groups)


def keep_bytecode() -> None:
    """Keep compiled modules in the environment where writing them beside the source is off.

    PYTHONDONTWRITEBYTECODE asks for clean folders. Without any bytecode each of the processes of
    `up` would compile a thousand modules at every start: four seconds instead of one.
    """
    if sys.dont_write_bytecode:
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.path.join(VENV, "bytecode")


def restart() -> None:
    """Replace this process by the same command, run by the environment's Python.

    Options of the interpreter (-W, -X) are kept.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(PYTHON, [PYTHON, *sys.orig_argv[1:]])  # noqa: S606


def _lives_in(version: tuple[int, int]) -> bool:
    """Whether the packages are those of this Python: an upgraded system may have swapped it."""
    return os.path.isdir(os.path.join(VENV, "lib", f"python{version[0]}.{version[1]}"))


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None
