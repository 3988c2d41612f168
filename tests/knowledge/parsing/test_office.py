"""Office: what Word and PowerPoint files say, and what of them is refused."""

import pytest

from knowledge.errors import Unreadable
from knowledge.parsing import Limits, Page
from knowledge.parsing.dispatch import parse
from tests.knowledge.crafted import HEAD, docx, paragraph, pptx, row, shape, zipped


def word(body: str) -> str:
    (page,) = parse("a.docx", docx(body))
    return page.content


def test_headings_lists_of_contents_and_code_of_a_word_document() -> None:
    body = (
        paragraph("Lamps", "T")
        + paragraph("Oil 3", "TOC")
        + paragraph("Oil", "H1")
        + paragraph("fill(lamp)", "C")
        + paragraph("light(lamp)", "C")
        + paragraph("They burn.")
    )
    (page,) = parse("a.docx", docx(body))
    assert page.title == "Lamps"
    assert page.content == "# Lamps\n\n# Oil\n\n```\nfill(lamp)\nlight(lamp)\n```\n\nThey burn."


def test_merged_cells_and_marked_headers_of_a_word_table() -> None:
    wide = f'<w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>{paragraph("Both")}</w:tc>'
    head = row("Name", "Price").replace("<w:tr>", "<w:tr><w:trPr><w:tblHeader/></w:trPr>")
    assert word(f"<w:tbl>{head}{row('Lamp', '3')}{row(wide)}</w:tbl>") == (
        "- Name: Lamp; Price: 3\n- Both"
    )


def test_monospaced_paragraphs_are_code_when_they_look_like_it() -> None:
    font = '<w:rPr><w:rFonts w:ascii="Courier New"/></w:rPr>'
    typed = "".join(
        f'<w:p><w:r>{font}<w:t xml:space="preserve">{line}</w:t></w:r></w:p>'
        for line in ("def light(lamp):", "    return True")
    )
    prose = f"<w:p><w:r>{font}<w:t>Typed like a letter.</w:t></w:r></w:p>"
    assert word(typed) == "```\ndef light(lamp):\n    return True\n```"
    assert word(prose) == "Typed like a letter."


def test_equations_are_written_out() -> None:
    def run(text: str) -> str:
        return f"<m:r><m:t>{text}</m:t></m:r>"

    square = f"<m:sSup><m:e>{run('r')}</m:e><m:sup>{run('2')}</m:sup></m:sSup>"
    half = f"<m:f><m:num>{run('1')}</m:num><m:den>{run('2')}</m:den></m:f>"
    assert word(paragraph("Area ", inside=f"<m:oMath>{half}{run('π')}{square}</m:oMath>")) == (
        r"Area $\frac{1}{2}πr^{2}$"
    )


def test_footnotes_stay_and_comments_go() -> None:
    note = '<w:r><w:footnoteReference w:id="5"/></w:r>'
    comment = '<w:r><w:commentReference w:id="1"/></w:r>'
    assert word(paragraph("Lamps shine.", inside=note + comment)) == (
        "Lamps shine.[1]\n\n1. A note below."
    )


def test_slides_have_headings_numbers_and_notes() -> None:
    slides = [shape("Lamps", "title") + shape("Oil\nWick", "body"), shape("No title here")]
    (page,) = parse("a.pptx", pptx(slides, {1: "Say this."}))
    assert page.content == (
        "# Lamps\n\n- Oil\n- Wick\n\nNotes:\n\nSay this.\n\n# Slide 2\n\nNo title here"
    )
    lines = page.content.splitlines()
    assert [(lines[line], number) for line, number in page.starts] == [
        ("# Lamps", 1),
        ("# Slide 2", 2),
    ]
    assert page.title == "Lamps"


def test_tables_on_slides_are_read_and_furniture_is_not() -> None:
    def cell(text: str, about: str = "") -> str:
        return f"<a:tc {about}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"

    wide, covered = cell("All", 'gridSpan="2"'), cell("", 'hMerge="1"')
    table = (
        '<p:graphicFrame><a:graphic><a:graphicData><a:tbl><a:tblPr firstRow="1"/>'
        f"<a:tr>{cell('Name')}{cell('Price')}</a:tr><a:tr>{cell('Lamp')}{cell('3')}</a:tr>"
        f"<a:tr>{wide}{covered}</a:tr>"
        "</a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
    )
    (page,) = parse("a.pptx", pptx([f"<p:grpSp>{table}</p:grpSp>{shape('12', 'sldNum')}"]))
    assert page.content == "# Slide 1\n\n- Name: Lamp; Price: 3\n- All"


ENTITIES = '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("a.docx", docx(paragraph("&b;"), head=HEAD + ENTITIES), "declares XML entities"),
        (
            "a.docx",
            docx(
                "",
                more={
                    "word/document.xml": (
                        '<?xml version="1.0" encoding="UTF-16"?>' + ENTITIES + "<d>&b;</d>"
                    ).encode("utf-16")
                },
            ),
            "declares XML entities",
        ),
        ("a.docx", docx(paragraph("x"), more={"word/media/a": b"\0" * 3_000_000}), "EXPANDED"),
        ("a.pptx", zipped({"ppt/presentation.xml": b" " * 3_000_000}), "PARSE_MAX_EXPANDED_BYTES"),
        ("a.docx", docx(paragraph("x"))[:-40], "it is damaged"),
        ("a.pptx", pptx([shape("x")])[:-40], "it is damaged"),
        ("a.docx", zipped({"other.txt": b"x"}), "it is damaged"),
        ("a.pptx", zipped({"other.txt": b"x"}), "it is damaged"),
        ("a.pptx", zipped({"ppt/presentation.xml": b"<p:x"}), "it is damaged"),
        ("a.docx", docx("<w:p>" * 5), "it is damaged"),
        ("a.docx", docx(""), "there is no text in it"),
        ("a.pptx", pptx([""]), "there is no text in it"),
        ("a.pptx", pptx([shape("x")] * 30), "it has 30 slides, more than 20"),
        ("a.docx", docx("<w:smartTag>" * 9999 + "</w:smartTag>" * 9999), "nested too deeply"),
        ("a.pptx", pptx(["<p:grpSp>" * 9999 + "</p:grpSp>" * 9999]), "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(
    name: str, body: bytes, reason: str
) -> None:
    with pytest.raises(Unreadable, match=reason):
        parse(name, body, Limits(max_expanded_bytes=2_000_000, max_pages=20))


def test_a_file_that_lies_about_its_size_is_counted_as_it_is() -> None:
    body = docx(paragraph("x"), more={"word/media/a": b"\0" * 3_000_000})
    lying = body.replace((3_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert lying != body
    with pytest.raises(Unreadable):
        parse("a.docx", lying, Limits(max_expanded_bytes=2_000_000))


def test_what_the_file_says_of_itself_fills_in() -> None:
    core = (
        f'{HEAD}<c xmlns:dc="http://purl.org/dc/elements/1.1/" '
        'xmlns:dcterms="http://purl.org/dc/terms/"><dc:title>Lamps</dc:title>'
        "<dcterms:modified>2026-03-04T05:06:07Z</dcterms:modified></c>"
    )
    (page,) = parse("a.docx", docx(paragraph("They shine."), more={"docProps/core.xml": core}))
    assert isinstance(page, Page)
    assert (page.title, str(page.last_updated)) == ("Lamps", "2026-03-04")
