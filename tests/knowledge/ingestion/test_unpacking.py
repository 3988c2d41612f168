"""Unpacking: zips as people make them, and zips made to do harm."""

import stat
import struct
import tracemalloc
from collections import Counter
from collections.abc import Mapping
from io import BytesIO
from typing import Any
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from knowledge.errors import Unreadable
from knowledge.ingestion.sources import Member, members

TEXT = b"Ferries sail at noon."


@pytest.fixture(autouse=True)
def bounds(settings: Settings) -> None:
    """Small bounds."""
    settings.ZIP_MAX_FILES = 20
    settings.MAX_UPLOAD_BYTES = 3_000_000
    settings.PARSE_MAX_EXPANDED_BYTES = 5_000_000


def zipped(files: Mapping[Any, bytes], method: int = ZIP_DEFLATED) -> bytes:
    body = BytesIO()
    with ZipFile(body, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content, method)
    return body.getvalue()


def of_kind(name: str, mode: int) -> ZipInfo:
    info = ZipInfo(name)
    info.external_attr = mode << 16
    return info


def outcomes(archive_members: list[Member]) -> dict[str, bytes | str]:
    """What each member gives: its bytes, or why not."""
    contents: dict[str, bytes | str] = {}
    for member in archive_members:
        try:
            contents[member.path] = member.read()
        except Unreadable as error:
            contents[member.path] = str(error)
    return contents


def test_files_in_known_formats_come_with_their_place_and_the_rest_is_counted() -> None:
    ignored = Counter[str]()
    body = zipped(
        {
            "guide/": b"",
            "guide/page.md": TEXT,
            "notes.txt": b"Notes",
            "photo.png": b"\x89PNG",
            "__MACOSX/guide/._page.md": b"x",
            ".git/readme.md": b"x",
            "guide/.hidden.md": b"x",
        }
    )
    archive_members = members("docs.zip", body, ignored)
    assert [member.origin for member in archive_members] == [
        "docs.zip/guide/page.md",
        "docs.zip/notes.txt",
    ]
    assert outcomes(archive_members) == {"guide/page.md": TEXT, "notes.txt": b"Notes"}
    assert ignored == {"hidden": 3, "unknown format": 1}


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../outside.md", "'..'"),
        ("guide/../../outside.md", "'..'"),
        ("guide\\..\\..\\outside.md", "'..'"),
        ("/etc/motd.txt", "absolute"),
        ("C:/secret.md", "absolute"),
        ("c:\\secret.md", "absolute"),
        ("inner.zip", "a zip inside a zip"),
    ],
)
def test_a_file_of_an_unsafe_path_is_refused_and_the_rest_goes_on(path: str, reason: str) -> None:
    contents = outcomes(members("docs.zip", zipped({path: TEXT, "page.md": TEXT})))
    assert contents.pop("page.md") == TEXT
    assert reason in str(contents.popitem()[1])


@pytest.mark.parametrize("mode", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_what_is_no_plain_file_is_refused(mode: int) -> None:
    body = zipped({of_kind("link.md", mode | 0o777): b"/etc/passwd", "page.md": TEXT})
    contents = outcomes(members("docs.zip", body))
    assert "a link, a device or a pipe" in str(contents["link.md"])
    assert contents["page.md"] == TEXT


def test_an_encrypted_file_is_refused() -> None:
    body = bytearray(zipped({"secret.md": TEXT, "page.md": TEXT}))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        body[body.index(signature) + offset] |= 1
    contents = outcomes(members("docs.zip", bytes(body)))
    assert "without a password" in str(contents["secret.md"])
    assert contents["page.md"] == TEXT


def test_other_methods_than_deflate_are_refused() -> None:
    contents = outcomes(members("docs.zip", zipped({"page.md": TEXT}, ZIP_BZIP2)))
    assert "other than deflate" in str(contents["page.md"])


def test_the_second_file_of_one_path_is_refused() -> None:
    body = zipped({"page.md": TEXT, "twin.md": b"Another"}).replace(b"twin.md", b"page.md")
    first, second = members("docs.zip", body)
    assert first.read() == TEXT
    with pytest.raises(Unreadable, match="same path"):
        second.read()


def test_a_damaged_file_is_refused_and_the_rest_goes_on() -> None:
    body = zipped({"broken.md": TEXT, "page.md": TEXT[::-1]}, ZIP_STORED)
    contents = outcomes(members("docs.zip", body.replace(TEXT, TEXT.upper())))
    assert "damaged inside the zip" in str(contents["broken.md"])
    assert contents["page.md"] == TEXT[::-1]


@pytest.mark.parametrize("body", [b"", b"PK\x03\x04", b"no zip", zipped({"page.md": TEXT})[:-30]])
def test_what_is_no_zip_is_refused_as_a_whole(body: bytes) -> None:
    with pytest.raises(Unreadable, match="no zip, or a damaged one"):
        members("docs.zip", body)


def test_a_zip_without_anything_to_read_is_refused_as_a_whole() -> None:
    with pytest.raises(Unreadable, match=r"no file in a format known here in it \(\.md"):
        members("docs.zip", zipped({"photo.png": b"\x89PNG", "folder/": b""}))


def test_too_many_files_are_refused_as_a_whole() -> None:
    with pytest.raises(Unreadable, match=r"more than 20 files \(ZIP_MAX_FILES\)"):
        members("docs.zip", zipped({f"{number}.png": b"" for number in range(21)}))


def test_a_zip_that_declares_too_much_is_refused_as_a_whole() -> None:
    page = b"0123456789" * 200_000
    with pytest.raises(Unreadable, match=r"5,000,000 bytes \(PARSE_MAX_EXPANDED_BYTES\)"):
        members("docs.zip", zipped({f"{number}.md": page for number in range(3)}))
    members("docs.zip", zipped({f"{number}.png": page for number in range(3)} | {"a.md": b"a"}))


def claiming(body: bytes, size: int) -> bytes:
    """The zip with every declared size of content replaced."""
    changed = bytearray(body)
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = changed.find(signature)
        while at >= 0:
            changed[at + offset : at + offset + 4] = struct.pack("<L", size)
            at = changed.find(signature, at + 1)
    return bytes(changed)


@pytest.mark.parametrize("claim", [1, 10_000, 2_000_000, 0xFFFFFFF0])
def test_a_bomb_is_refused_whatever_size_it_declares_and_memory_stays_bounded(
    settings: Settings, claim: int
) -> None:
    settings.PARSE_MAX_EXPANDED_BYTES = 10**12  # leaves the file's own limit to be shown
    bomb = claiming(zipped({"bomb.md": bytes(50_000_000)}), claim)
    assert len(bomb) < 60_000
    (member,) = members("docs.zip", bomb)
    tracemalloc.start()
    with pytest.raises(Unreadable, match=r"damaged|larger|more than 200 times"):
        member.read()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * settings.MAX_UPLOAD_BYTES


def test_files_that_expand_out_of_all_proportion_are_refused_and_short_ones_are_not() -> None:
    contents = outcomes(members("a.zip", zipped({"a.md": b"a" * 2_000_000, "b.md": b"b" * 9_000})))
    assert "more than 200 times" in str(contents["a.md"])
    assert contents["b.md"] == b"b" * 9_000


def test_names_in_utf8_are_read_with_and_without_the_flag() -> None:
    body = zipped({"Übersicht/файл.md": TEXT})
    unflagged = bytearray(body)
    for signature, offset in ((b"PK\x03\x04", 7), (b"PK\x01\x02", 9)):
        unflagged[body.index(signature) + offset] &= ~0x08
    assert outcomes(members("docs.zip", body)) == {"Übersicht/файл.md": TEXT}
    assert outcomes(members("docs.zip", bytes(unflagged))) == {"Übersicht/файл.md": TEXT}


SOUND = zipped({"guide/page.md": TEXT * 9, "notes.txt": b"Notes"})


@given(st.lists(st.tuples(st.integers(0, len(SOUND) - 1), st.integers(0, 255)), max_size=6))
def test_no_damage_whatsoever_raises_anything_but_a_reason(
    changes: list[tuple[int, int]],
) -> None:
    body = bytearray(SOUND)
    for position, value in changes:
        body[position] = value
    try:
        archive_members = members("docs.zip", bytes(body))
    except Unreadable:
        archive_members = []
    assert len(outcomes(archive_members)) == len({member.path for member in archive_members})
