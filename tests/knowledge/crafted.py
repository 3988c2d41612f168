"""Crafted: small Office and PDF files, sound and hostile, made by hand."""

import zlib
from collections.abc import Mapping, Sequence
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>'


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """Return an archive of the parts."""
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def relations(targets: Mapping[str, tuple[str, str]]) -> str:
    """Return the XML that says which parts (id → kind, target) one refers to."""
    each = "".join(
        f'<Relationship Id="{key}" Type="{RELATIONS}/{kind}" Target="{target}"/>'
        for key, (kind, target) in targets.items()
    )
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'{HEAD}<Relationships xmlns="{space}">{each}</Relationships>'


def docx(body: str, *, head: str = HEAD, more: Mapping[str, str | bytes] | None = None) -> bytes:
    """Return a Word document with that XML in its body."""
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{key}"><w:name w:val="{name}"/></w:style>'
        for key, name in {
            "T": "Title",
            "H1": "heading 1",
            "H2": "heading 2",
            "C": "Source Code",
            "TOC": "toc 1",
        }.items()
    )
    return zipped(
        {
            "_rels/.rels": relations({"r1": ("officeDocument", "word/document.xml")}),
            "word/_rels/document.xml.rels": relations(
                {"r1": ("styles", "styles.xml"), "r2": ("footnotes", "footnotes.xml")}
            ),
            "word/styles.xml": f"{HEAD}<w:styles {W}>{styles}</w:styles>",
            "word/footnotes.xml": f'{HEAD}<w:footnotes {W}><w:footnote w:id="5">'
            f"{paragraph('A note below.')}</w:footnote></w:footnotes>",
            "word/document.xml": f"{head}<w:document {W} {M}><w:body>{body}</w:body></w:document>",
            **(more or {}),
        }
    )


def paragraph(text: str, style: str = "", inside: str = "") -> str:
    """Return a Word paragraph."""
    about = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    run = f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>' if text else ""
    return f"<w:p>{about}{run}{inside}</w:p>"


def row(*cells: str) -> str:
    """Return a row of a Word table; the cells are what stands in them, or XML of their own."""
    return "".join(
        ["<w:tr>"]
        + [c if c.startswith("<w:tc>") else f"<w:tc>{paragraph(c)}</w:tc>" for c in cells]
        + ["</w:tr>"]
    )


def pptx(slides: Sequence[str], notes: Mapping[int, str] | None = None) -> bytes:
    """Return a presentation with those shapes on its slides and those notes, by slide from 1."""
    parts: dict[str, str | bytes] = {}
    listed = ""
    targets: dict[str, tuple[str, str]] = {}
    for number, shapes in enumerate(slides, start=1):
        listed += f'<p:sldId id="{255 + number}" r:id="r{number}"/>'
        targets[f"r{number}"] = ("slide", f"slides/slide{number}.xml")
        parts[f"ppt/slides/slide{number}.xml"] = tree("sld", shapes)
        if notes and number in notes:
            parts[f"ppt/slides/_rels/slide{number}.xml.rels"] = relations(
                {"n": ("notesSlide", f"../notesSlides/notesSlide{number}.xml")}
            )
            parts[f"ppt/notesSlides/notesSlide{number}.xml"] = tree(
                "notes", shape(notes[number], "body")
            )
    parts["ppt/presentation.xml"] = (
        f"{HEAD}<p:presentation {P} {R}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>"
    )
    parts["ppt/_rels/presentation.xml.rels"] = relations(targets)
    return zipped(parts)


def tree(kind: str, shapes: str) -> str:
    """Return a slide, or a page of notes."""
    inside = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
    return f"{HEAD}<p:{kind} {P} {A} {R}>{inside}</p:{kind}>"


def shape(text: str, holds: str = "") -> str:
    """Return a shape with a paragraph per line, as the placeholder it may be."""
    place = f'<p:ph type="{holds}"/>' if holds else ""
    lines = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))
    about = f"<p:nvSpPr><p:nvPr>{place}</p:nvPr></p:nvSpPr>"
    return f"<p:sp>{about}<p:txBody>{lines}</p:txBody></p:sp>"


def pdf(
    pages: Sequence[Sequence[tuple[str, float, float, float, str]]],
    *,
    count: int | None = None,
    trailer: str = "",
) -> bytes:
    """Return a PDF; a page is lines of (font F, B or I, size, x, y, text).

    `count` is how many pages it claims; `trailer` is added to its trailer.
    """
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {count or len(pages)}/Kids["
        + " ".join(f"{6 + 2 * place} 0 R" for place in range(len(pages)))
        + "]>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Bold/Encoding/WinAnsiEncoding>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Oblique/Encoding/WinAnsiEncoding>>",
    ]
    for place, lines in enumerate(pages):
        text = "".join(
            f"BT /{font} {size} Tf {x} {y} Td ({escaped(said)}) Tj ET\n"
            for font, size, x, y, said in lines
        )
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {7 + 2 * place} 0 R"
            "/Resources<</Font<</F 3 0 R/B 4 0 R/I 5 0 R>>>>>>"
        )
        objects.append(f"<</Length {len(text)}>>stream\n{text}endstream")
    return numbered([each.encode("cp1252") for each in objects], trailer)


def vertical_pdf(columns: Sequence[tuple[float, float, str]]) -> bytes:
    """Return a PDF of one page with columns of Japanese from (x, y) downwards, at ten points.

    As older programs write it: the font is named and not in the file.
    """
    text = "".join(
        f"BT /V 10 Tf {x} {y} Td <{said.encode('utf-16-be').hex()}> Tj ET\n"
        for x, y, said in columns
    )
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Count 1/Kids[3 0 R]>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R"
        "/Resources<</Font<</V 5 0 R>>>>>>",
        f"<</Length {len(text)}>>stream\n{text}endstream",
        "<</Type/Font/Subtype/Type0/BaseFont/Ryumin-Light-UniJIS-UCS2-V"
        "/Encoding/UniJIS-UCS2-V/DescendantFonts[6 0 R]>>",
        "<</Type/Font/Subtype/CIDFontType0/BaseFont/Ryumin-Light/DW 1000/FontDescriptor 7 0 R"
        "/CIDSystemInfo<</Registry(Adobe)/Ordering(Japan1)/Supplement 2>>>>",
        "<</Type/FontDescriptor/FontName/Ryumin-Light/Flags 6/FontBBox[-170 -331 1024 903]"
        "/ItalicAngle 0/Ascent 723/Descent -241/CapHeight 709/StemV 69>>",
    ]
    return numbered([each.encode() for each in objects])


def pdf_bomb(megabytes: int) -> bytes:
    """Return a PDF whose only page is that much text once it is unpacked."""
    line = b"BT /F 9 Tf 50 50 Td (" + b"bomb " * 2000 + b") Tj ET\n"
    return page_of(packed(line, megabytes))


def packed_pdf(megabytes: int, times: int = 1) -> bytes:
    """Return a PDF whose only page is that much white space once it is unpacked so often."""
    stream = packed(b" " * 65536, megabytes)
    for _ in range(times - 1):
        stream = zlib.compress(stream, 9)
    return page_of(stream, "/FlateDecode" * times)


def packed(line: bytes, megabytes: int) -> bytes:
    """Return so much of a line, packed."""
    packer = zlib.compressobj(9)
    times = megabytes * 1024 * 1024 // len(line)
    return b"".join([packer.compress(line) for _ in range(times)] + [packer.flush()])


def page_of(stream: bytes, filters: str = "/FlateDecode") -> bytes:
    """Return a PDF with one page, made of that stream."""
    return numbered(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Count 1/Kids[4 0 R]>>",
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 5 0 R"
            b"/Resources<</Font<</F 3 0 R>>>>>>",
            b"<</Length %d/Filter[%s]>>stream\n%sendstream"
            % (len(stream), filters.encode(), stream),
        ]
    )


def numbered(objects: Sequence[bytes], trailer: str = "") -> bytes:
    """Return a PDF of the objects, the first being its catalog."""
    body = b"%PDF-1.7\n"
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
        f"trailer<</Size {len(objects) + 1}/Root 1 0 R{trailer}>>\nstartxref\n{len(body)}\n%%EOF"
    )
    return body + end.encode()


def escaped(text: str) -> str:
    """Return a text as it stands between the brackets of a PDF."""
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
