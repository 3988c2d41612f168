"""EPUB and mail: what a book and a message say, and what is left out."""

from datetime import date
from email.message import EmailMessage
from io import BytesIO
from zipfile import ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.errors import Unreadable
from knowledge.parsing import Limits, Page
from knowledge.parsing.dispatch import parse

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OPS/book.opf"/></rootfiles></container>'
)
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf"
  xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>The Pier</dc:title>
  <dc:language>en</dc:language><dc:subject>harbours</dc:subject>
  <meta property="dcterms:modified">2026-03-04T00:00:00Z</meta></metadata><manifest>
  <item id="a" href="one%20a.xhtml"/><item id="b" href="b.xhtml"/>
  <item id="n" href="nav.xhtml" properties="nav"/></manifest>
  <spine><itemref idref="n"/><itemref idref="b"/><itemref idref="a"/></spine></package>"""
CHAPTER = "<!DOCTYPE html><html><head><title>{0}</title></head><body>{1}</body></html>"
FILES = {
    "META-INF/container.xml": CONTAINER,
    "OPS/book.opf": PACKAGE,
    "OPS/one a.xhtml": CHAPTER.format("Last", "<p>The end of it.</p>"),
    "OPS/b.xhtml": CHAPTER.format("x", "<h1>Piers</h1><p>The pier is <b>red</b>.</p>"),
    "OPS/nav.xhtml": CHAPTER.format("Contents", "<ol><li>Piers</li></ol>"),
}
ENCRYPTION = (
    '<encryption xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData><enc:CipherData>'
    '<enc:CipherReference URI="OPS/b.xhtml"/></enc:CipherData></enc:EncryptedData></encryption>'
)


def book(**changes: str) -> bytes:
    body = BytesIO()
    with ZipFile(body, "w") as file:
        for name, text in (
            FILES | {name.replace("__", "/"): x for name, x in changes.items()}
        ).items():
            file.writestr(name, text)
    return body.getvalue()


def test_book_is_its_chapters_in_the_order_of_reading() -> None:
    (page,) = parse("pier.epub", book())
    assert page.content == "# Piers\n\nThe pier is **red**.\n\n# Last\n\nThe end of it."
    assert (page.title, page.language, page.keywords) == ("The Pier", "en", ["harbours"])
    assert page.last_updated == date(2026, 3, 4)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"x", "it is damaged"),
        (book(**{"META-INF__encryption.xml": ENCRYPTION}), "its chapters are encrypted"),
        (book(**{"OPS__book.opf": "<!DOCTYPE x [<!ENTITY a 'a'>]><package/>"}), "XML entities"),
        (book(**{"META-INF__container.xml": "<container/>"}), "it is damaged"),
        (book(**{"OPS__b.xhtml": "x" * 2_000_000}), "unpacked it is larger than 1,000,000"),
    ],
)
def test_book_that_cannot_be_read_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        parse("a.epub", body, Limits(max_expanded_bytes=1_000_000))


PLAIN = """Yes, on the red pier.

Regards
--\x20
Ann, Harbour Ltd.
"""


def message(text: str = PLAIN, *, html: str = "", **headers: str) -> EmailMessage:
    mail = EmailMessage()
    said = {"Subject": "Where?", "From": "Ann <ann@example.org>", "To": "bo@example.org"}
    for name, value in (said | {"Date": "Wed, 04 Mar 2026 10:00:00 +0100"} | headers).items():
        mail[name] = value
    if html:
        mail.set_content(html, subtype="html")
    else:
        mail.set_content(text)
    return mail


def read(mail: EmailMessage) -> list[Page]:
    return parse("mail.eml", bytes(mail))


HEADERS = (
    "- From: Ann <ann@example.org>\n- To: bo@example.org\n- Date: Wed, 04 Mar 2026 10:00:00 +0100"
)


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (PLAIN, "Yes, on the red pier.\n\nRegards"),
        ("Yes.\n\nOn Monday, Bo wrote:\n> Where?\n> Here?\n\nBye.", "Yes.\n\nBye."),
        ("Oui.\n\nLe lundi 3 mars 2026 à 10:00, Bo <bo@example.org>\na écrit :\n\n> Où ?", "Oui."),
        ("Ja.\n\n-----Ursprüngliche Nachricht-----\nVon: Bo\nAn: Ann\nBetreff: Wo?\n\nWo?", "Ja."),
        ("Yes.\n\nFrom: Bo\nSent: Monday\nTo: Ann\nSubject: Where?\n\nWhere?", "Yes."),
        ("> all of it\n> is quoted", "> all of it\n> is quoted"),
        ("Steps:\n> is larger", "Steps:\n> is larger"),
    ],
)
def test_message_says_what_its_sender_wrote(text: str, own: str) -> None:
    (page,) = read(message(text))
    assert page.content == f"{HEADERS}\n\n{own}"
    assert (page.title, page.last_updated) == ("Where?", date(2026, 3, 4))


def test_message_in_html_is_read_without_its_quotation() -> None:
    html = (
        "<p>On the <b>pier</b>.</p><div class=gmail_quote>On Monday<blockquote>Where?</blockquote>"
    )
    (page,) = read(message(html=html))
    assert page.content == f"{HEADERS}\n\nOn the **pier**."


def test_attachments_are_taken_in_or_named() -> None:
    mail = message()
    mail.add_attachment(b"Key,Does\nF1,helps\n", "text", "csv", filename="../keys.csv")
    mail.add_attachment(b"\x89PNG", "image", "png", filename="pier.png")
    mail.add_attachment(b"", "text", "csv", filename="empty.csv")
    mail.add_attachment(message("Inner.", Subject="Before"))
    first, keys, inner = read(mail)
    assert "- Attached: keys.csv, pier.png, empty.csv, Before.eml" in first.content
    assert first.warnings == ["the attachment empty.csv was left out: it is empty"]
    assert (keys.title, keys.crumbs) == ("keys", ["Where?"])
    assert keys.content == "## Row 2\n\n- Key: F1; Does: helps"
    assert inner.content.endswith("Inner.")


def test_mailbox_is_its_messages() -> None:
    box = b"".join(b"From ann Wed Mar  4\n" + bytes(message(f"Text {n}.")) + b"\n" for n in (1, 2))
    assert [page.content[-7:] for page in parse("a.mbox", box)] == ["Text 1.", "Text 2."]
    with pytest.raises(Unreadable, match="it is no mailbox"):
        parse("a.mbox", b"text")
    with pytest.raises(Unreadable, match="more than 1 messages"):
        parse("a.mbox", box, Limits(max_pages=1))


SAMPLES = {"a.epub": book(), "a.eml": bytes(message())}


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_whatever_is_in_a_file_it_is_read_or_refused(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(SAMPLES)))
    body = bytearray(SAMPLES[name])
    for place in data.draw(st.lists(st.integers(0, len(body) - 1), max_size=8)):
        body[place] = data.draw(st.integers(0, 255))
    try:
        pages = parse(name, bytes(body))
    except Unreadable:
        return
    assert pages
