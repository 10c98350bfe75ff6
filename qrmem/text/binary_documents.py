"""PDF and DOCX by the libraries of the extra `files`, whose complaints stay in here; and EPUB."""

import io
import logging
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from qrmem.errors import BadDocument, MissingError, QrmemError
from qrmem.text.budget import LEFT_OUT, ByteBudget
from qrmem.text.decoding import decode
from qrmem.text.epub import open_book
from qrmem.text.html import read_html
from qrmem.text.normalise import normalise
from qrmem.types import Part

Reading = tuple[str, str, tuple[Part, ...], dict[str, str]]
"""Text, title, parts, metadata."""

_SHOWN = 10
_OLE = bytes.fromhex("d0cf11e0a1b11ae1")


def read_binary(kind: str, data: bytes, name: str, budget: ByteBudget) -> Reading:
    """Read a file of kind `pdf`, `docx` or `epub`.

    Raises:
        BadDocument: broken, encrypted, without text, or of more bytes than the budget has.
        MissingError: the extra `files` is not installed.
    """
    package, reader = _READERS[kind]
    if find_spec(package) is None:
        raise MissingError(f"{name}: reading {kind.upper()} needs pip install 'qrmem[files]'")
    if data.startswith(_OLE):
        raise BadDocument(
            f"{name} is encrypted or an old Office file: save it as .docx without one"
        )
    try:
        with _silenced():
            return reader(data, budget)
    except QrmemError:
        raise
    except Exception as exc:  # the libraries raise whatever a broken file makes them stumble over
        reason = " ".join(str(exc).split())[:100] or type(exc).__name__
        raise BadDocument(f"{name} is no whole {kind.upper()} file: {reason}") from exc


@contextmanager
def _silenced() -> Iterator[None]:
    """Keep the libraries' warnings and log lines from the user's screen."""
    logger, nowhere = logging.getLogger("pypdf"), logging.NullHandler()
    before = logger.propagate
    # Its modules log below this name: what they say ends here, unless somebody listens here.
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
    pages: list[tuple[str, str]] = []
    left_out: list[str] = []
    for number, page in enumerate(reader.pages, 1):
        try:
            found = normalise(page.extract_text()).strip()
        except Exception:  # one broken page must not cost the others
            left_out.append(f"page {number} (broken)")
            continue
        budget.take(len(found))
        pages.append((f"page {number}", found))
    text, parts = _joined(pages)
    if not text:
        raise BadDocument(
            f"{budget.name} has no text in it, perhaps scanned pages: run OCR on it first"
        )
    return text, _title_of(reader), parts, _noted(left_out)


def _title_of(reader: Any) -> str:
    try:
        return _line(reader.metadata.title if reader.metadata else "")
    except Exception:  # nor must a broken title
        return ""


def _noted(left_out: Sequence[str]) -> dict[str, str]:
    shown = [*left_out[:_SHOWN], f"{len(left_out) - _SHOWN} more"]
    return {LEFT_OUT: ", ".join(shown if len(left_out) > _SHOWN else left_out)} if left_out else {}


def _opens(reader: Any) -> bool:
    """Whether an encrypted file opens without a password; not if its cipher is not at hand."""
    try:
        return bool(reader.decrypt(""))
    except Exception:
        return False


def _docx(data: bytes, budget: ByteBudget) -> Reading:
    import docx
    from docx.table import Table

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        # The library unpacks every entry once, and none beyond the size that the archive states.
        budget.take(sum(entry.file_size for entry in archive.infolist()))
    document = docx.Document(io.BytesIO(data))
    blocks: list[tuple[str, str]] = []
    for block in document.iter_inner_content():
        if isinstance(block, Table):
            blocks.append(("", normalise("\n".join(_rows(block)))))
            continue
        text = normalise(block.text).strip()
        style = block.style.name if block.style else ""
        is_heading = style in ("Title", "Heading 1", "Heading 2")
        blocks.append((" ".join(text.split()) if is_heading else "", text))
    text, parts = _joined(blocks)
    return text, _line(document.core_properties.title), parts, {}


def _rows(table: Any) -> Iterator[str]:
    for row in table.rows:
        cells = dict.fromkeys(row.cells)  # a merged cell is listed once for each column
        yield "\t".join(" ".join(cell.text.split()) for cell in cells)


def _epub(data: bytes, budget: ByteBudget) -> Reading:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        book = open_book(archive, budget)
    chapters: list[tuple[str, str]] = []
    left_out = list(book.left_out)
    for path, content in book.chapters:
        try:
            text, title, parts = read_html(decode(content, path)[0])
        except BadDocument:
            left_out.append(f"{path} (no text)")
            continue
        chapters.append((book.labels.get(path) or (parts[0].label if parts else "") or title, text))
    text, parts = _joined(chapters)
    if not text:
        why = "its chapters are missing or broken" if left_out else "its spine is empty"
        raise BadDocument(f"{budget.name} holds no text: {why}")
    return text, _line(book.title), parts, _noted(left_out)


def _joined(pieces: list[tuple[str, str]]) -> tuple[str, tuple[Part, ...]]:
    """Join labelled texts by blank lines; a piece without a label starts no part."""
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
    "epub": ("zipfile", _epub),
}
