"""Reading takes time in proportion to a text's length, whatever the text."""

import gc
import io
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import pytest
from documents import (
    PACKAGE,
    cell,
    docx_of,
    epub_file,
    pdf,
    pdf_of_forms,
    pptx_of,
    repacked,
    sheet_of,
    table,
)

from qrmem.errors import BadDocument
from qrmem.text.files import from_bytes
from qrmem.text.sentences import sentences

BASE, DOUBLINGS = 8_000, 4
MOST = 48
"""Growth of the time over all doublings, of which the text's is 16."""
LEAST = 0.003
"""Seconds below which a reading is too short to be compared."""

HTML = """
<a |<a b=|<a b='|<!--|<!-- -->|</|</p>|<?|<!|<![CDATA[|<svg></p>
|<math></p>|<p>|<b>|<b><p>|<div>|<a><div>
|<li>|<table>|<table><tr><td>|<script>|<script></script>|<style>|<select><option>|<title>|<pre>|&amp;|&#|<h1>x
|<br>|<iframe>|</script
""".replace("\n", "").split("|")
MARKDOWN = ["# x   \t ", " ", "#", "---\n", "a: x   ", "```\n", "Chapter 1\n\n", "Passage 1: "]
TEXTS = ["Mr. ", "a\n", '"', "... ", "A.B.", "\ufeff", "(", "x"]


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """A collection walks all that the tests before have left, and would count as reading."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def least(measured: Callable[[], float]) -> float:
    """The least of three measures: what else runs on a machine only ever adds to one."""
    return min(measured() for _ in range(3))


def seconds(name: str, start: str, piece: str, length: int) -> float:
    """Processor time of reading a text of some length, and of cutting it into sentences."""
    data = (start + piece * (length // len(piece))).encode()
    began = time.process_time()
    with suppress(BadDocument):
        sentences(from_bytes(data, name).text)
    return time.process_time() - began


@pytest.mark.parametrize(
    ("name", "start", "piece"),
    [("a.html", "<p>text ", piece) for piece in HTML]
    + [("a.md", start, piece) for start in ("text\n# x", "---\na: x") for piece in MARKDOWN]
    + [("a.txt", "text ", piece) for piece in TEXTS],
)
def test_reading_is_linear(name: str, start: str, piece: str) -> None:
    seconds(name, start, piece, BASE)
    first = least(lambda: seconds(name, start, piece, BASE))
    last = least(lambda: seconds(name, start, piece, BASE * 2**DOUBLINGS))
    assert last <= MOST * max(first, LEAST)


BOOK = PACKAGE.format(toc='href="toc"')
PACKED: Mapping[str, Callable[[int], tuple[str, bytes]]] = {
    "entries within one another": lambda n: (
        "a.epub",
        epub_file(2, toc="<ncx>" + "<navPoint>" * n),
    ),
    "links within one another": lambda n: ("a.epub", epub_file(toc="<nav>" + "<a href='x'>y" * n)),
    "files that are missing": lambda n: (
        "a.epub",
        epub_file(book=BOOK.replace("</spine>", "<itemref idref='none'/>" * n + "</spine>")),
    ),
    "a cell over many rows": lambda n: (
        "a.docx",
        docx_of(table(cell("x", 1, "restart"), *[cell("", 1, "continue")] * n)),
    ),
    "rows that are missing": lambda n: (
        "a.xlsx",
        sheet_of(f'<row r="{n * 100}"><c><v>1</v></c></row>'),
    ),
    "rows whose last cell is far away": lambda n: (
        "a.xlsx",
        sheet_of('<row><c r="ZZ1"><v>1</v></c></row>' * n),
    ),
    "rows of a table": lambda n: ("a.csv", b"name,built\n" + b'"Nell",1851\n' * n),
    "rows of a slide's table": lambda n: ("a.pptx", pptx_of(rows=n)),
    "tables of contents": lambda n: ("a.epub", epub_of_contents(n)),
    "paragraphs": lambda n: ("a.docx", docx_of("<w:p><w:r><w:t>x</w:t></w:r></w:p>" * n)),
}


def epub_of_contents(times: int) -> bytes:
    """A book with a number of tables of contents, each with ten links of its own."""
    items = "".join(f'<item id="t{n}" href="t{n}" properties="nav"/>' for n in range(times))
    out = io.BytesIO(epub_file(book=BOOK.replace("</manifest>", f"{items}</manifest>")))
    with zipfile.ZipFile(out, "a") as archive:
        for n in range(times):
            links = "".join(f"<a href='c1.xhtml#{n}-{m}'>x</a>" for m in range(10))
            archive.writestr(f"OPS/t{n}", f"<nav>{links}</nav>")
    return out.getvalue()


def packed_seconds(make: Callable[[int], tuple[str, bytes]], times: int) -> float:
    name, data = make(times)
    began = time.process_time()
    with suppress(BadDocument):
        from_bytes(data, name)
    return time.process_time() - began


@pytest.mark.parametrize("kind", PACKED)
def test_reading_a_packed_file_is_linear(kind: str) -> None:
    first = least(lambda: packed_seconds(PACKED[kind], 125))
    last = least(lambda: packed_seconds(PACKED[kind], 125 * 2**DOUBLINGS))
    assert last <= MOST * max(first, LEAST)


@pytest.mark.parametrize("body", ["<w:p/>", "<w:tbl><w:tr><w:tc/></w:tr></w:tbl>"])
def test_a_small_file_of_millions_of_elements_is_refused_at_once(body: str) -> None:
    data = docx_of(body * (2_100_000 // body.count("<")))
    began = time.process_time()
    with pytest.raises(BadDocument, match=r"more than 2,000,000 tags: split it"):
        from_bytes(data, "a.docx")
    assert time.process_time() - began < 5


def test_a_slide_that_is_named_many_times_is_read_once() -> None:
    document = from_bytes(pptx_of(times=2_000), "a.pptx")
    assert (document.text, len(document.parts)) == ("Marigold", 1)


def test_a_cell_that_spans_a_billion_columns_takes_no_room() -> None:
    tracemalloc.start()
    document = from_bytes(docx_of(table(cell("wide", 10**9) + cell("next"))), "a.docx")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert document.text == "wide\tnext"
    assert most < 50_000_000


@pytest.mark.parametrize(
    "rows",
    [
        f'<row r="{10**12}"><c><v>1</v></c></row>',
        "".join(f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(1, 9_000)),
        '<row r="1"><c r="A1" t="s"><v>0</v></c></row>' * 9_000,
    ],
)
def test_a_sheet_that_states_more_than_it_holds_takes_little_time_and_room(rows: str) -> None:
    shared = "".join(f"<si><t>{'x' * 1_000_000}</t></si>")
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    data = repacked(sheet_of(rows), sharedStrings=f'<sst xmlns="{space}">{shared}</sst>')
    tracemalloc.start()
    began = time.process_time()
    with suppress(BadDocument):
        from_bytes(data, "a.xlsx")
    took, most = time.process_time() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (took < 30, most < 400_000_000) == (True, True)


def test_forms_that_draw_each_other_do_not_hold_up_the_reader() -> None:
    """Nine forms, each of which draws the next one ten times: a billion words."""
    document = from_bytes(pdf_of_forms(9, 10), "a.pdf")
    assert document.text.startswith("once")
    assert len(document.text) < 1_000_000


def test_pages_that_take_too_many_steps_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qrmem.text.binary_documents._STEPS", 0)
    data = pdf(*["First.", "Second.", "Then. " + ") Tj (".join("x" * 5_000)], *["Last."])
    assert "left_out" not in from_bytes(data, "a.pdf").metadata
    monkeypatch.setattr("qrmem.text.binary_documents._STEPS_A_BYTE", 0.1)
    document = from_bytes(data, "a.pdf")
    assert document.text == "First.\n\nSecond."
    assert (
        document.metadata["left_out"] == "page 3 and all pages after it (drawn in too many steps)"
    )
