"""Reads PDF and Office files by libraries (extra `files`) without their warnings, and EPUB."""

import io
import logging
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from qrmem.errors import BadDocument, QrmemError, require_extra
from qrmem.text.decoding import LEFT_OUT, ByteBudget, decode
from qrmem.text.markup import Page, open_book, read_page
from qrmem.text.normalise import normalise
from qrmem.text.tabular import table_lines
from qrmem.types import Part

Reading = tuple[str, str, tuple[Part, ...], dict[str, str]]
"""Text, title, parts, metadata."""

_SHOWN = 10
_SCANNED = "perhaps scanned pages: run OCR on it first"
_STEPS, _STEPS_A_BYTE = 100_000, 10
"""Maximum steps to draw the pages of a PDF, and further ones for each of its bytes; a text that
is set letter by letter takes less than one step for a byte."""
_BYTES_A_STEP = 100
"""Bytes that are unpacked in the time of one step."""
_BROKEN = 10_000
"""Steps that a broken page counts for: it may fail late."""
_ROWS = 2**20
"""Maximum rows of a sheet: a file may name any row number, and the library creates all before."""
_TAGS, _PIECE = 2_000_000, 1 << 20
"""Maximum tags of a file that is read as a whole, enough for 300,000 paragraphs, and bytes that are
counted at once."""
_OLE = bytes.fromhex("d0cf11e0a1b11ae1")


def read_binary(kind: str, data: bytes, name: str, budget: ByteBudget) -> Reading:
    """Read a file of kind `pdf`, `docx`, `xlsx`, `pptx` or `epub`.

    Raises:
        BadDocument: broken, encrypted, without text, or larger than the budget.
        MissingError: the extra `files` is not installed.
    """
    package, reader = _READERS[kind]
    require_extra("files", f"{name}: reading {kind.upper()}", package)
    if data.startswith(_OLE):
        raise BadDocument(
            f"{name} is encrypted or an old Office file: save it as .{kind} without a password"
        )
    try:
        with _silenced():
            return reader(data, budget)
    except QrmemError:
        raise
    except Exception as exc:  # with a broken file the libraries raise any exception
        reason = " ".join(str(exc).split())[:100] or type(exc).__name__
        raise BadDocument(f"{name} is not a complete {kind.upper()} file: {reason}") from exc


@contextmanager
def _silenced() -> Iterator[None]:
    """Hide the libraries' warnings and log lines from the user."""
    logger, nowhere = logging.getLogger("pypdf"), logging.NullHandler()
    before = logger.propagate
    # Its modules log below this name; the messages go only to handlers of this name.
    logger.addHandler(nowhere)
    logger.propagate = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.propagate = before
        logger.removeHandler(nowhere)


def _pdf(data: bytes, budget: ByteBudget) -> Reading:
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not _opens(reader):
        raise BadDocument(f"{budget.name} is encrypted: save it without its password")
    steps = _Steps(_STEPS + _STEPS_A_BYTE * len(data))
    pages: list[tuple[str, str]] = []
    left_out: list[str] = []
    for number, page in enumerate(reader.pages, 1):
        page_text, is_broken = "", False
        try:
            steps.unpack(page)
            page_text = normalise(page.extract_text(visitor_operand_before=steps.count)).strip()
        except Exception:  # one broken page must not lose the others
            is_broken = True
            steps.left -= _BROKEN
        if steps.left < 0:  # the library may have continued after a refused step
            left_out.append(f"page {number} and all pages after it (drawn in too many steps)")
            break
        if is_broken:
            left_out.append(f"page {number} (broken)")
            continue
        budget.take(len(page_text))
        pages.append((f"page {number}", page_text))
    text, parts = _joined(pages)
    if not text:
        why = (
            f"its pages cannot be read: {_left_out_metadata(left_out)[LEFT_OUT]}"
            if left_out
            else _SCANNED
        )
        raise BadDocument(f"{budget.name} has no text in it, {why}")
    return text, _title_of(reader), parts, _left_out_metadata(left_out)


class _Steps:
    """Counts the steps of drawing pages, because a form may draw another one any number of times.

    Attributes:
        left: remaining steps; below 0 every further step is refused.
    """

    def __init__(self, left: int) -> None:
        self.left = left

    def unpack(self, page: Any) -> None:
        """Count the steps to unpack a page."""
        content = page.get_contents()
        self.left -= len(content.get_data()) // _BYTES_A_STEP if content is not None else 0
        self._check()

    def count(self, *step: object) -> None:
        """Count one step; the library calls this before each step."""
        self.left -= 1
        self._check()

    def _check(self) -> None:
        if self.left < 0:
            raise ValueError("the page is drawn in too many steps")


def _title_of(reader: Any) -> str:
    try:
        return _line(reader.metadata.title if reader.metadata else "")
    except Exception:  # a broken title must lose nothing, either
        return ""


def _left_out_metadata(left_out: Sequence[str]) -> dict[str, str]:
    names_shown = [*left_out[:_SHOWN], f"{len(left_out) - _SHOWN} more"]
    return (
        {LEFT_OUT: ", ".join(names_shown if len(left_out) > _SHOWN else left_out)}
        if left_out
        else {}
    )


def _opens(reader: Any) -> bool:
    """Whether an encrypted file opens without a password; false if its cipher is not available."""
    try:
        return bool(reader.decrypt(""))
    except Exception:
        return False


def _take_unpacked(data: bytes, budget: ByteBudget) -> None:
    """Count the unpacked size of an Office file.

    The libraries unpack every entry once, and none beyond the size that the archive states.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        budget.take(sum(entry.file_size for entry in archive.infolist()))


def _require_few_elements(data: bytes, budget: ByteBudget) -> None:
    """Refuse an Office file with more elements than the libraries can hold.

    Raises:
        BadDocument: it has too many; a small file may unpack to millions of empty paragraphs.
    """
    left = _TAGS
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            if not entry.filename.endswith((".xml", ".rels")):
                continue
            with archive.open(entry) as file:
                while left >= 0 and (piece := file.read(_PIECE)):
                    left -= piece.count(b"<")
            if left < 0:
                raise BadDocument(
                    f"{budget.name} has more than {_TAGS:,} tags: split it into several files"
                )


def _docx(data: bytes, budget: ByteBudget) -> Reading:
    import docx
    from docx.table import Table

    _take_unpacked(data, budget)
    _require_few_elements(data, budget)
    document = docx.Document(io.BytesIO(data))
    # For each paragraph the library would search all styles again.
    styles = {style.style_id: style.name for style in document.styles}
    blocks: list[tuple[str, str]] = []
    for block in document.iter_inner_content():
        if isinstance(block, Table):
            blocks.append(("", normalise("\n".join(_rows(block, budget)))))
            continue
        text = normalise(block.text).strip()
        is_heading = styles.get(block._p.style) in ("Title", "Heading 1", "Heading 2")
        blocks.append((" ".join(text.split()) if is_heading else "", text))
    text, parts = _joined(blocks)
    return text, _line(document.core_properties.title), parts, {}


def _rows(table: Any, budget: ByteBudget) -> Iterator[str]:
    """Yield a table's rows; a cell that continues the row above repeats its text.

    The library's own rows take time that grows with the cube of such a cell's height, and memory
    for as many columns as a cell claims to span.
    """
    above: dict[int, str] = {}
    for row in table._tbl.tr_lst:
        column, cells = 0, []
        for cell in row.tc_lst:
            if cell.vMerge != "continue":
                above[column] = " ".join(" ".join(p.text for p in cell.p_lst).split())
            cells.append(above.get(column, ""))
            column += cell.grid_span
        line = "\t".join(cells)
        budget.take(len(line))
        yield line


def _xlsx(data: bytes, budget: ByteBudget) -> Reading:
    import openpyxl

    _take_unpacked(data, budget)
    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    sheets: list[tuple[str, str]] = []
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # a file may declare any size; rows are as wide as their content
        lines = table_lines(sheet.iter_rows(max_row=_ROWS, values_only=True), budget)
        sheets.append((f"sheet {_line(sheet.title)}", normalise("\n\n".join(lines))))
    text, parts = _joined(sheets)
    return text, _line(book.properties.title), parts, {}


def _pptx(data: bytes, budget: ByteBudget) -> Reading:
    from pptx import Presentation

    _take_unpacked(data, budget)
    _require_few_elements(data, budget)
    slides: list[tuple[str, str]] = []
    first = ""
    # A small file may name one slide any number of times.
    named = {slide.part.partname: slide for slide in Presentation(io.BytesIO(data)).slides}
    for number, slide in enumerate(named.values(), 1):
        heading = slide.shapes.title
        title = _line(heading.text_frame.text) if heading is not None else ""
        first = first or title
        blocks = list(_of_shapes(slide.shapes, budget))
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
            blocks.append(notes.text)
        text = "\n\n".join(block for one in blocks if (block := normalise(one).strip()))
        slides.append((f"slide {number}: {title}" if title else f"slide {number}", text))
    text, parts = _joined(slides)
    return text, first, parts, {}


def _of_shapes(shapes: Any, budget: ByteBudget) -> Iterator[str]:
    """Yield the texts and tables of a slide, including those in groups."""
    for shape in shapes:
        if shape.has_text_frame:
            yield shape.text_frame.text
        elif getattr(shape, "has_table", False):
            # The library's own rows take time that grows with the square of their number.
            rows = ([cell.text for cell in row.tc_lst] for row in shape.table._tbl.tr_lst)
            yield "\n\n".join(table_lines(rows, budget))
        elif hasattr(shape, "shapes"):
            yield from _of_shapes(shape.shapes, budget)


def _epub(data: bytes, budget: ByteBudget) -> Reading:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        book = open_book(archive, budget)
    sections: list[tuple[str, str]] = []
    left_out = list(book.left_out)
    for path, content in book.chapters:
        try:
            page = read_page(decode(content, path)[0])
        except BadDocument:
            left_out.append(f"{path} (no text)")
            continue
        sections += _sections(page, book.contents.get(path, ()))
    text, parts = _joined(sections)
    if not text:
        why = "its chapters are missing or broken" if left_out else "its spine is empty"
        raise BadDocument(f"{budget.name} contains no text: {why}")
    return text, _line(book.title), parts, _left_out_metadata(left_out)


def _sections(page: Page, entries: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the labels and texts of a book's file: one for each place of an entry of the contents.

    The last of several entries for one place wins. What is before the first has the label of its
    heading; without one it belongs to the section of the file before.
    """
    labels: dict[int, str] = {}
    for id, title in entries:
        if (place := page.anchors.get(id) if id else 0) is not None:
            labels[place] = title
    first = next(iter(page.headings), Part(0, page.title))
    if not labels:  # no entry, or only entries that lead to no element
        labels[0] = entries[0][1] if entries else first.label
    elif page.headings and first.start < min(labels):
        labels[0] = first.label
    places = sorted({0, *labels})
    for start, end in zip(places, [*places[1:], len(page.text) + 2], strict=True):
        yield labels.get(start, ""), page.text[start : end - 2]


def _joined(pieces: list[tuple[str, str]]) -> tuple[str, tuple[Part, ...]]:
    """Join labelled texts with blank lines; a piece without a label starts no part."""
    parts: list[Part] = []
    texts: list[str] = []
    place = 0
    for label, text in pieces:
        if not text:
            continue
        if label:
            parts.append(Part(place, label))
        texts.append(text)
        place += len(text) + 2
    return "\n\n".join(texts), tuple(parts)


def _line(title: object) -> str:
    return " ".join(normalise(str(title or "")).split())


_READERS: dict[str, tuple[str, Callable[[bytes, ByteBudget], Reading]]] = {
    "pdf": ("pypdf", _pdf),
    "docx": ("docx", _docx),
    "xlsx": ("openpyxl", _xlsx),
    "pptx": ("pptx", _pptx),
    "epub": ("zipfile", _epub),
}
