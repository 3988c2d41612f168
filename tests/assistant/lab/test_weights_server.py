"""Weights server: what is served, and what is said to who cannot serve it."""

import sys
from pathlib import Path

import pytest

from assistant.lab import weights_server
from assistant.lab.weights_server import NoWeights, main, whole


def parts(folder: Path, *contents: bytes) -> list[Path]:
    paths = [folder / f"Tiny.Q8.part{number}" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return paths


def test_parts_are_joined_in_the_order_given(tmp_path: Path) -> None:
    joined = whole(parts(tmp_path, b"GGUF-a", b"-b", b"-c"), tmp_path)
    assert joined.read_bytes() == b"GGUF-a-b-c"
    assert joined.name == "tiny.gguf"


def test_a_whole_file_is_served_where_it_is(tmp_path: Path) -> None:
    (path,) = parts(tmp_path, b"GGUF")
    assert whole([path], tmp_path / "nowhere") == path


def test_parts_in_the_wrong_order_and_missing_ones_are_refused(tmp_path: Path) -> None:
    first, second = parts(tmp_path, b"GGUF-a", b"-b")
    with pytest.raises(NoWeights, match="nor the first part"):
        whole([second, first], tmp_path)
    with pytest.raises(NoWeights, match=r"no file .*part9"):
        whole([first, tmp_path / "part9"], tmp_path)


def test_without_the_package_one_sentence_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = parts(tmp_path, b"GGUF")
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setattr(sys, "argv", ["weights_server", str(path)])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == weights_server.MISSING
