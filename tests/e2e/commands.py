"""Commands: each runs in a copy of a process that has imported Docent, which takes a second of CPU.

What begins with the interpreter is tried where a test gives a command an environment of its own.
"""

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import django
from django.core.management import get_commands, load_command_class
from django.urls import get_resolver

CHECKOUT = Path(__file__).resolve().parent.parent.parent
# What is asked for most.
IMPORTED = ("apikey", "chat", "ingest")
Done = subprocess.CompletedProcess[str]


class Commands:
    """A process that waits for commands of `manage.py`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.commands"],
            cwd=CHECKOUT,
            env={**environment, "DJANGO_SETTINGS_MODULE": "assistant.settings"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def run(self, *words: str) -> Done:
        """Run a command to its end."""
        assert self.process.stdin
        assert self.process.stdout
        with TemporaryDirectory() as folder:
            printed = [Path(folder, name) for name in ("stdout", "stderr")]
            print(json.dumps([words, *map(str, printed)]), file=self.process.stdin)
            code = int(self.process.stdout.readline())
            stdout, stderr = (path.read_text(encoding="utf-8") for path in printed)
        return subprocess.CompletedProcess(words, code, stdout, stderr)

    def end(self) -> None:
        """End the process, which waits for nothing else."""
        self.process.communicate()


def await_command() -> list[str] | None:
    """Return the words of a command in a process that is there for it; None in the end."""
    for line in sys.stdin:
        words, *printed = json.loads(line)
        child = os.fork()
        if not child:
            for number, path in enumerate(printed, 1):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            return ["manage.py", *words]
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201
    return None


if __name__ == "__main__":
    django.setup()
    for name in IMPORTED:
        load_command_class(get_commands()[name], name)
    _ = get_resolver().url_patterns  # every command checks them
    if command := await_command():
        sys.argv = command
        runpy.run_path(command[0], run_name="__main__")
