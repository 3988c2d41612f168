"""The first start on a bare machine, in a checkout of its own and with an index of its own."""

import ast
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from assistant import bootstrap

BARE = getattr(sys, "_base_executable", sys.executable)
PYPROJECT = """
[project]
dependencies = [{dependencies}]
[tool.docent]
expected-packages = 1
expected-megabytes = 1
without-dependencies = []
[dependency-groups]
test = []
"""
# What Django's part would be: it isn't in the index.
COMMANDLINE = """
import sys
def run(argv):
    import first
    print("went on in", sys.prefix, "with", *argv[1:])
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that needs one package, and an index that has two."""
    folder = tmp_path / "checkout"
    shutil.copytree(Path(bootstrap.ROOT) / "assistant", folder / "assistant")
    shutil.copy(Path(bootstrap.ROOT) / "manage.py", folder)
    (folder / "assistant" / "commandline.py").write_text(COMMANDLINE)
    need(folder, "first")
    for name in ("first", "second"):
        wheel = tmp_path / f"{name}-1.0-py3-none-any.whl"
        info = f"{name}-1.0.dist-info"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"{name}.py", "")
            archive.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
            )
            archive.writestr(
                f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            archive.writestr(f"{info}/RECORD", "")
    return folder


def need(checkout: Path, *names: str) -> None:
    dependencies = ", ".join(f'"{name}"' for name in names)
    (checkout / "pyproject.toml").write_text(PYPROJECT.format(dependencies=dependencies))


def start(checkout: Path) -> subprocess.Popen[str]:
    """Run a command with the bare Python, away from every index but ours."""
    return subprocess.Popen(
        [BARE, "manage.py", "greet"],
        cwd=checkout,
        env={
            "HOME": str(checkout.parent),
            "PATH": os.environ["PATH"],
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(checkout.parent),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(checkout: Path) -> tuple[int, str, str]:
    process = start(checkout)
    out, err = process.communicate()
    return process.returncode, out, err


def test_a_missing_environment_is_made_once_and_followed_when_needs_change(checkout: Path) -> None:
    goes_on = f"went on in {checkout / '.venv'} with greet\n"
    both = [start(checkout), start(checkout)]
    ends = [(*process.communicate(), process.returncode) for process in both]
    assert [(out, status) for out, _, status in ends] == [(goes_on, 0)] * 2
    said = "".join(err for _, err, _ in ends)
    assert said.count("go to") == 1, "both processes made it"
    assert "first 1.0" in said

    assert run(checkout) == (0, goes_on, "")

    need(checkout, "first", "second")
    status, out, err = run(checkout)
    assert (status, out) == (0, goes_on)
    assert "second 1.0" in err

    with (checkout / "pyproject.toml").open("a") as file:
        file.write("# of no consequence\n")
    assert run(checkout) == (0, goes_on, "")

    need(checkout, "first", "unheard-of")
    status, out, err = run(checkout)
    assert (status, out) == (1, "")
    assert "unheard-of" in err
    assert "Traceback" not in err
    need(checkout, "first")
    assert run(checkout)[:2] == (0, goes_on)


def test_a_failed_installation_leaves_a_reason_and_no_half_environment(checkout: Path) -> None:
    need(checkout, "unheard-of")
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / "docent-unfinished").touch()
    status, _, err = run(checkout)
    assert status == 1
    assert "No matching distribution found for unheard-of" in err
    log = Path(err.rsplit(" ", 1)[1].strip())
    assert "unheard-of" in log.read_text()
    assert not (checkout / ".venv").exists()
    assert "Traceback" not in err


def test_an_old_python_gets_as_far_as_being_told_so() -> None:
    text = (Path(bootstrap.ROOT) / "manage.py").read_text()
    ast.parse(text, feature_version=(3, 8))
    assert text.index("version_info") < text.index("from assistant")


def test_only_the_test_command_needs_the_test_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSS_LINGUAL", "off")
    assert bootstrap.groups_for(["manage.py", "test", "-x"]) == ["base", "test"]
    assert bootstrap.groups_for(["manage.py", "up"]) == ["base"]
    assert bootstrap.groups_for(["manage.py"]) == ["base"]


@pytest.mark.parametrize(
    ("environment", "file", "groups"),
    [
        ("on", "", ["base", "cross-lingual"]),
        (None, 'export CROSS_LINGUAL="on"  # for our colleagues\n', ["base", "cross-lingual"]),
        ("off", "CROSS_LINGUAL=on\n", ["base"]),
        (None, "#CROSS_LINGUAL=on\n", ["base"]),
        (None, "CROSS_LINGUAL=on\nCROSS_LINGUAL=off\n", ["base"]),
        ("perhaps", "", ["base"]),
        ("off", "SENTRY_DSN=https://key@host/1\n", ["base", "sentry"]),
        (None, "OTEL_EXPORTER_OTLP_ENDPOINT='http://host'\n", ["base", "telemetry"]),
        (None, 'SENTRY_DSN=""\n', ["base"]),
    ],
)
def test_a_group_that_a_setting_asks_for_is_installed_too(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    environment: str | None,
    file: str,
    groups: list[str],
) -> None:
    monkeypatch.setattr(bootstrap, "ROOT", str(tmp_path))
    (tmp_path / ".env").write_text(file)
    monkeypatch.delenv("CROSS_LINGUAL", raising=False)
    if environment is not None:
        monkeypatch.setenv("CROSS_LINGUAL", environment)
    assert bootstrap.groups_for(["manage.py", "up"]) == groups


def test_bytecode_is_kept_in_the_environment_where_it_may_not_lie_beside_the_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    bootstrap.keep_bytecode()
    assert not sys.dont_write_bytecode
    assert sys.pycache_prefix == str(Path(bootstrap.VENV) / "bytecode")


def test_bytecode_beside_the_source_is_left_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    bootstrap.keep_bytecode()
    assert sys.pycache_prefix is None
