"""The README's own question on a machine where nothing of Docent has run."""

import json
import os
import subprocess
import sys
from pathlib import Path

from assistant.local import paths
from tests.assistant.conftest import eventually, is_anything_left

QUESTION = "How do I add a folder of documents?"


def test_it_is_answered_from_documents_that_are_taken_in_first(state: Path) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "chat", "--json", "-q", QUESTION],
        cwd=paths.CHECKOUT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "taken in first" in done.stderr
    assert "Collection docent" in done.stderr
    reply = json.loads(done.stdout)
    assert {source["source"] for source in reply["sources"]} <= {
        str(path.relative_to(paths.CHECKOUT)) for path in (paths.CHECKOUT / "docs").iterdir()
    }
    assert reply["sources"]
    eventually(lambda: not is_anything_left(state))
