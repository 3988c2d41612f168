"""Texts that come with Docent are encoded once per machine, whoever needs them first."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from django.conf import LazySettings

from knowledge.embedding import encode
from knowledge.embedding.kept_vectors import digest, kept

CHECKOUT = Path(__file__).resolve().parents[3]
TEXTS = ["How do I stop a brew?", "Where is the lid?"]
# Encodes only when both processes have begun, and notes that it did.
PROCESS = """
import sys, time
from pathlib import Path
import django
import numpy as np
django.setup()
from django.conf import settings
from knowledge.embedding import kept_vectors

folder, name = Path(sys.argv[1]), sys.argv[2]
settings.STATE_DIR = folder

def encode(texts):
    until = time.monotonic() + 60
    while len(list(folder.glob("begun-*"))) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.3)
    (folder / f"encoded-{name}").touch()
    return np.ones((len(texts), 384), dtype=np.float32)

kept_vectors.encode = encode
(folder / f"begun-{name}").touch()
print(kept_vectors.kept(["one", "two"]).sum())
"""


@pytest.fixture(autouse=True)
def folder(settings: LazySettings, tmp_path: Path) -> Path:
    """A state folder in which nothing was encoded."""
    settings.STATE_DIR = tmp_path
    return tmp_path / "models" / "vectors"


def test_two_processes_at_once_encode_once(tmp_path: Path) -> None:
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "assistant.settings"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(tmp_path), name],
            cwd=CHECKOUT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    assert [process.communicate()[0].strip() for process in processes] == ["768.0", "768.0"]
    assert len(list(tmp_path.glob("begun-*"))) == 2
    assert len(list(tmp_path.glob("encoded-*"))) == 1


def test_they_are_the_vectors_of_the_model(folder: Path) -> None:
    first, second = kept(TEXTS), kept(TEXTS)
    assert np.array_equal(first, encode(TEXTS))
    assert np.array_equal(first, second)
    assert len(list(folder.glob("*.npy"))) == 1


def test_other_texts_and_another_model_have_other_files(settings: LazySettings) -> None:
    before = digest(TEXTS)
    assert digest(TEXTS[:1]) != before
    settings.EMBEDDING_RUNTIME = "elsewhere.Runtime"
    assert digest(TEXTS) != before


@pytest.mark.parametrize("content", [b"", b"no vectors", b"\x93NUMPY\x01\x00"])
def test_a_broken_file_is_written_anew(folder: Path, content: bytes) -> None:
    folder.mkdir(parents=True)
    path = folder / f"{digest(TEXTS)}.npy"
    path.write_bytes(content)
    assert np.array_equal(kept(TEXTS), encode(TEXTS))
    assert np.array_equal(np.load(path), encode(TEXTS))


def test_where_nothing_can_be_written_they_are_encoded_all_the_same(
    settings: LazySettings, tmp_path: Path
) -> None:
    # The graphs of the model are in the state folder, too: they are loaded before.
    vectors = encode(TEXTS)
    settings.STATE_DIR = tmp_path / "file"
    settings.STATE_DIR.touch()
    assert np.array_equal(kept(TEXTS), vectors)
