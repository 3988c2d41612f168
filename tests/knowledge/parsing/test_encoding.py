"""Decoding: which encodings a text is read in, by what it says and by what its bytes say."""

import codecs

import pytest

from knowledge.errors import Unreadable
from knowledge.parsing import Page
from knowledge.parsing.dispatch import parse
from knowledge.parsing.encoding import codec, decode, guess
from tests.knowledge.tongues import LEGACY, PARAGRAPHS, passage

PAIRS = [(language, encoding) for language, known in LEGACY.items() for encoding in known]
WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
MARKED = ("utf-8-sig", "utf-16", "utf-32")


@pytest.mark.parametrize("size", [200, 2000])
@pytest.mark.parametrize(("language", "encoding"), PAIRS)
def test_a_text_is_read_whatever_encoding_its_language_was_written_in(
    language: str, encoding: str, size: int
) -> None:
    text = passage(language, encoding, size)
    assert decode(text.encode(encoding))[0] == text


@pytest.mark.parametrize("encoding", ["utf-8", *MARKED, *WIDE])
@pytest.mark.parametrize("language", PARAGRAPHS)
def test_every_form_of_unicode_is_read_with_and_without_a_mark(
    language: str, encoding: str
) -> None:
    text = PARAGRAPHS[language]
    assert decode(text.encode(encoding))[0] == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Größe", "cp1252"),
        ("naïve", "cp1252"),
        ("25 °C and 3 µm", "cp1252"),
        ("# Über Größe\n\nGrüße", "cp1252"),
        ("Grüße " * 500, "cp1252"),
        ("Umlaute: äöüÄÖÜß", "cp1252"),
        ("ñandú", "cp1252"),
        ("Reykjavík er höfuðborg Íslands og þar búa flestir.", "cp1252"),
        ("Pracownikowi przysługuje dzień wolny.", "cp1250"),
        ("Pracownikowi przysługuje dzień wolny.", "iso8859-2"),
        ("Ücretli izin süresi yirmi sekiz gündür, değişmez.", "cp1254"),
        ("Привет, как дела", "koi8-r"),
        ("Η άδεια είναι 28 ημέρες.", "cp1253"),
        ("年假为每年二十八天。", "gb18030"),
    ],
)
def test_a_single_sentence_is_read_with_a_warning_that_names_the_guess(
    text: str, encoding: str
) -> None:
    decoded, warnings = decode(text.encode(encoding))
    assert decoded == text
    assert [warning.startswith("not UTF-8: read as ") for warning in warnings] == [True]


@pytest.mark.parametrize(
    ("text", "encoding"), [("Die Größe des Zimmers", "utf-8"), ("Привет, как дела", "utf-8")]
)
def test_a_single_bad_byte_costs_one_character_and_no_more(text: str, encoding: str) -> None:
    decoded, (warning,) = decode(text.encode(encoding) + b" \xff")
    assert decoded == text + " \ufffd"
    assert "1 damaged place" in warning


@pytest.mark.parametrize("mark", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE])
def test_a_text_with_a_mark_may_be_damaged_too(mark: bytes) -> None:
    encoding = "utf-8" if mark == codecs.BOM_UTF8 else "utf-16-le"
    decoded, (warning,) = decode(mark + "Die Größe des Zimmers über uns".encode(encoding) + b"\xc3")
    assert decoded.startswith("Die Größe des Zimmers über uns")
    assert "damaged" in warning


def test_letters_behind_escapes_are_read_and_colours_of_a_terminal_are_left_alone() -> None:
    text = PARAGRAPHS["ja"]
    assert decode(text.encode("iso2022_jp")) == (text, ["read as iso2022_jp_ext"])
    assert decode(b"\x1b[31mred\x1b[0m text") == ("\x1b[31mred\x1b[0m text", [])


@pytest.mark.parametrize("body", [bytes(range(128, 256)) * 3, b"\xf0\x9f\x81\xff\xfe\xfd" * 50])
def test_bytes_that_are_no_text_in_any_language_are_refused(body: bytes) -> None:
    assert guess(body) == ""
    with pytest.raises(Unreadable, match="its encoding is not known here; save it as UTF-8"):
        decode(body)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("ISO-8859-1", "cp1252"),
        ("us-ascii", "cp1252"),
        (" latin5 ", "cp1254"),
        ("shift_jis", "cp932"),
        ("x-sjis", "cp932"),
        ("windows-31j", "cp932"),
        ("gb2312", "gb18030"),
        ("x-gbk", "gb18030"),
        ("ks_c_5601-1987", "cp949"),
        ("windows-949", "cp949"),
        ("windows-874", "cp874"),
        ("iso-8859-8-i", "iso8859-8"),
        ("utf-16", "utf-8"),
        ("utf8", "utf-8"),
        ("base64", ""),
        ("klingon", ""),
        ("a\0b", ""),
        ("", ""),
    ],
)
def test_a_label_means_what_it_means_to_browsers(label: str, name: str) -> None:
    assert codec(label) == name


def page(head: str, text: str, encoding: str, charset: str = "") -> Page:
    body = f"{head}<html><body><p>{text}</p></body></html>".encode(encoding)
    return parse("a.html", body, charset=charset)[0]


@pytest.mark.parametrize(
    ("head", "text", "encoding"),
    [
        ("<meta charset='iso-8859-2'>", "Wię przysługuje", "iso8859-2"),
        ("<META http-equiv=x content='text/html; charset=windows-1253'>", "Η άδεια", "cp1253"),
        ("<meta charset=iso-2022-jp>", "年次休暇", "iso2022_jp"),
        ("<meta charset=gb2312>", "年假", "gbk"),
        ("<?xml version='1.0' encoding='windows-1255'?>", "שלום", "cp1255"),
    ],
)
def test_what_a_page_says_it_is_in_counts(head: str, text: str, encoding: str) -> None:
    decoded = page(head, text, encoding)
    assert (decoded.content, decoded.warnings) == (text, [])


def test_what_the_server_says_counts_more_and_a_mark_more_still() -> None:
    decoded = page("<meta charset=windows-1252>", "Η άδεια", "cp1253", "windows-1253")
    assert (decoded.content, decoded.warnings) == ("Η άδεια", [])
    assert page("\ufeff", "Η άδεια", "utf-16-le", "windows-1253").content == "Η άδεια"


@pytest.mark.parametrize("charset", ["klingon", "utf-8"])
def test_a_server_that_is_wrong_leaves_it_to_the_page_with_a_warning(charset: str) -> None:
    decoded = page("<meta charset=windows-1253>", "Η άδεια", "cp1253", charset)
    assert decoded.content == "Η άδεια"
    assert [f"said to be in {charset!r}" in warning for warning in decoded.warnings] == [True]


def test_a_page_that_is_wrong_about_itself_is_read_by_its_bytes() -> None:
    utf8 = page("<meta charset=windows-1252>", "Größe", "utf-8")
    assert (utf8.content, utf8.warnings) == ("Größe", ["said to be in cp1252, and is UTF-8"])
    assert page("<meta charset=koi8-r>", "Привет", "utf-8").content == "Привет"
    russian = page("<meta charset=utf-8>", "Привет, как дела", "cp1251")
    assert russian.content == "Привет, как дела"
    assert russian.warnings[-1] == "not UTF-8: read as cp1251"


def test_the_servers_word_counts_for_text_and_not_for_what_is_binary() -> None:
    (decoded,) = parse("a.txt", "Wię".encode("iso8859-2"), charset="iso-8859-2")
    assert decoded.content == "Wię"
    with pytest.raises(Unreadable, match="it is a binary file"):
        parse("a.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", charset="iso-8859-1")
    with pytest.raises(Unreadable, match="it is damaged, or no PDF"):
        parse("a.pdf", b"%PDF-1.7 and no more", charset="iso-8859-1")
