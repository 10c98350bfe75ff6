"""Small PDF, Office and EPUB files and tables, made by hand."""

import csv
import io
import zipfile
from copy import deepcopy
from datetime import datetime
from functools import cache
from pathlib import Path

import docx
import openpyxl
import pptx
from pypdf import PdfWriter


def pdf(*pages: str, title: str = "") -> bytes:
    """A minimal PDF, written by hand: one line of Latin text a page."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, page in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({page}) Tj ET"
        objects += [
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * n} 0 R >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    objects.append(f"<< /Title ({title}) >>")
    body, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    return (
        f"{body}xref\n0 {size}\n0000000000 65535 f \n{table}"
        f"trailer\n<< /Size {size} /Root 1 0 R /Info {size - 1} 0 R >>\nstartxref\n"
        f"{len(body)}\n%%EOF\n"
    ).encode("latin-1")


def encrypted_pdf(password: str, owner: str) -> bytes:
    writer = PdfWriter(clone_from=io.BytesIO(pdf("Secret harbour.")))
    writer.encrypt(password, owner, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


@cache
def docx_file() -> bytes:
    document = docx.Document()
    document.core_properties.title = "The Ledger"
    document.add_heading("The Arrival", level=1)
    document.add_paragraph("Miss Tolliver came at noon.")
    table = document.add_table(rows=2, cols=2)
    for n, word in enumerate(["Ship", "Cargo", "Marigold", "salt"]):
        table.cell(n // 2, n % 2).text = word
    document.add_heading("A remark", level=3)
    document.add_heading("The Storm", level=2)
    document.add_paragraph("It blew.")
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


NCX = """<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap>
<navPoint><navLabel><text>The Quay</text></navLabel><content src="text/c%200.xhtml#top"/></navPoint>
<navPoint><navLabel><text>The Flood</text></navLabel><content src="text/c1.xhtml"/></navPoint>
</navMap></ncx>"""
NAV = """<html xmlns="http://www.w3.org/1999/xhtml"><body><nav><ol>
<li><a href="text/c%200.xhtml">The Quay</a></li><li><a href="text/c1.xhtml#x">The Flood</a></li>
</ol></nav></body></html>"""
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf" version="3.0">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Salt and Tide</dc:title></metadata>
<manifest><item id="toc" {toc}/>
<item id="b" href="text/c1.xhtml" media-type="application/xhtml+xml"/>
<item id="a" href="text/c%200.xhtml" media-type="application/xhtml+xml"/></manifest>
<spine><itemref idref="toc"/><itemref idref="a"/><itemref idref="b"/></spine></package>"""


def epub_file(version: int = 3, without: str = "", **changed: str | bytes) -> bytes:
    """Two chapters and a table of contents; `changed` says by a file's stem what it holds."""
    toc = {
        2: 'href="toc" media-type="application/x-dtbncx+xml"',
        3: 'href="toc" media-type="application/xhtml+xml" properties="nav"',
    }[version]
    container = '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
    files: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": container,
        "OPS/book.opf": PACKAGE.format(toc=toc),
        "OPS/toc": {2: NCX, 3: NAV}[version],
        "OPS/text/c 0.xhtml": "<html><body><h2>The Quay</h2><p>Gulls cried.</p></body></html>",
        "OPS/text/c1.xhtml": "<html><body><h2>The Flood</h2><p>It rose.</p></body></html>",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, usual in files.items():
            content = changed.get(Path(name).stem, usual)
            if name != without:
                archive.writestr(name, content, 0 if name == "mimetype" else zipfile.ZIP_DEFLATED)
    return out.getvalue()


def pdf_of(*objects: bytes) -> bytes:
    """A PDF of any objects; the first one is its root."""
    body, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return body + (
        b"xref\n0 %d\n0000000000 65535 f \n%btrailer\n<< /Size %d /Root 1 0 R >>\n"
        b"startxref\n%d\n%%%%EOF\n" % (size, table, size, len(body))
    )


def pdf_of_forms(levels: int, times: int) -> bytes:
    """A page that draws a form, which draws another one several times, and so on."""
    dictionary = b"/Resources << /Font << /F1 3 0 R >> /XObject << /X %d 0 R >> >>"
    forms = [
        b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] %b /Length %d >>\nstream\n%b\nendstream"
        % (dictionary % (7 + n), len(drawn), drawn)
        for n, drawn in enumerate([b"/X Do " * times] * levels + [b"BT /F1 9 Tf (again) Tj ET"])
    ]
    return pdf_of(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] %b /Contents 5 0 R >>"
        % (dictionary % 6),
        b"<< /Length 31 >>\nstream\nBT /F1 9 Tf (once) Tj ET\n/X Do \nendstream",
        *forms,
    )


def docx_of(body: str) -> bytes:
    """A Word file of any body."""
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    document = f'<w:document xmlns:w="{word}"><w:body>{body}</w:body></w:document>'
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(docx_file())) as usual,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in usual.namelist():
            content = usual.read(name)
            archive.writestr(name, document if name == "word/document.xml" else content)
    return out.getvalue()


def cell(text: str, span: int = 1, goes_on: str = "") -> str:
    """A cell of a Word table; `goes_on`: `restart` or `continue` of one over several rows."""
    merge = f'<w:vMerge w:val="{goes_on}"/>' if goes_on else ""
    words = f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"
    return f'<w:tc><w:tcPr><w:gridSpan w:val="{span}"/>{merge}</w:tcPr>{words}</w:tc>'


def table(*rows: str) -> str:
    """A Word table of rows of cells."""
    lines = "".join(f"<w:tr>{row}</w:tr>" for row in rows)
    return f"<w:tbl><w:tblPr/><w:tblGrid><w:gridCol/></w:tblGrid>{lines}</w:tbl>"


SHEET: list[list[object]] = [
    ["Boats of the harbour"],
    ["name", "built", "note"],
    ["Marigold", 1851, None],
    ["Nell", 1902, "a\nbrig"],
]
"""A title, the names of the columns, two rows."""


def csv_file(delimiter: str = ",") -> bytes:
    """The sheet as it is exported, without its title."""
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(SHEET[1:])
    return out.getvalue().encode()


@cache
def xlsx_file() -> bytes:
    book = openpyxl.Workbook()
    first = book.active
    assert first is not None
    first.title = "Boats"
    for row in SHEET:
        first.append(row)
    crew = book.create_sheet("Crew")
    crew.append(["who", "since"])
    crew.append(["Miss Tolliver", datetime(1860, 5, 1)])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def pptx_of(rows: int = 1, times: int = 1) -> bytes:
    """A show whose slide has a table of some rows, and is named a number of times."""
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[6])
    table = slide.shapes.add_table(1, 1, 0, 0, 100, 100).table
    table.cell(0, 0).text = "Marigold"
    drawn, listed = table._tbl, show.slides._sldIdLst
    for place, count in ((drawn.tr_lst[0], rows), (listed[0], times)):
        for _ in range(count - 1):
            place.addnext(deepcopy(place))
    out = io.BytesIO()
    show.save(out)
    return out.getvalue()


def pptx_file() -> bytes:
    show = pptx.Presentation()
    first = show.slides.add_slide(show.slide_layouts[5])
    first.shapes.title.text = "The Harbour"
    first.notes_slide.notes_text_frame.text = "Say that it is old."
    rows = first.shapes.add_table(2, 2, 0, 0, 100, 100).table
    for n, word in enumerate(["Ship", "Cargo", "Marigold", "salt"]):
        rows.cell(n // 2, n % 2).text = word
    second = show.slides.add_slide(show.slide_layouts[6])
    box = second.shapes.add_group_shape().shapes.add_textbox(0, 0, 100, 100)
    box.text_frame.text = "Miss Tolliver came at noon."
    out = io.BytesIO()
    show.save(out)
    return out.getvalue()


def repacked(data: bytes, **changed: str) -> bytes:
    """A packed file with other entries; each is named by the end of its path, without suffix."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, changed.get(Path(name).stem, old.read(name)))
    return out.getvalue()


def sheet_of(rows: str) -> bytes:
    """An Excel file whose first sheet has any rows."""
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    made = f'<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>'
    return repacked(xlsx_file(), sheet1=made)
