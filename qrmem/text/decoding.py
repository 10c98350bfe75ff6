"""Reads bytes within a budget, and decodes them to text."""

import codecs
import errno
import re
import stat
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from qrmem.errors import BadDocument

# Limit of a document's bytes, counted when they are read or unpacked.

LEFT_OUT = "left_out"
"""Metadata key with the parts of a document that could not be read."""
MOST = 100_000_000
"""Maximum bytes of one document, packed or unpacked: a hundred novels."""


def open_file(path: Path) -> IO[bytes]:
    """Open a file; refuse devices and pipes, which could block.

    Raises:
        OSError: it is not a file, missing, or not readable; `strerror` says which.
    """
    if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
        raise OSError(errno.EINVAL, "a pipe or a device, not a file", str(path))
    return path.open("rb")


@dataclass(slots=True)
class ByteBudget:
    """The remaining bytes for a document.

    Attributes:
        name: name of the document, for messages.
        left: bytes that may still be read.
    """

    name: str
    left: int = MOST

    def take(self, count: int) -> None:
        """Take some bytes from the budget.

        Raises:
            BadDocument: more than the budget has left.
        """
        if count > self.left:
            raise BadDocument(
                f"{self.name} contains more than {MOST // 1_000_000} MB: split it into several "
                "files"
            )
        self.left -= count

    def read(self, file: IO[bytes]) -> bytes:
        """Read a file to its end.

        Raises:
            BadDocument: it has more than the budget has left.
        """
        data = file.read(self.left + 1)
        self.take(len(data))
        return data

    def unpack(self, archive: zipfile.ZipFile, path: str) -> bytes:
        """Read one file of an archive.

        Raises:
            BadDocument: it unpacks to more than the budget has left.
            KeyError, zipfile.BadZipFile, zlib.error: it is missing or broken.
        """
        with archive.open(path) as file:
            return self.read(file)


KINDS = {
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".csv": "csv",
    ".tsv": "csv",
    ".docx": "docx",
    ".xlsx": "xlsx",
    ".pptx": "pptx",
    ".epub": "epub",
}
"""Suffix, in lower case, to kind; PDF, DOCX, XLSX and PPTX need the extra `files`."""
PLAIN = frozenset({"", "code", "text", "markdown", "html", "csv"})
"""Kinds that are text; the others are read by `qrmem.text.binary_documents`."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_DECLARED = re.compile(
    rb"<(?:meta[^>]{1,200}charset|\?xml[^>]{1,100}encoding)=[\"']?([\w:.-]{2,40})"
)
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_ASCII = bytes(range(0x80))
_SPARSE = 8
"""A text with fewer bytes beyond ASCII than one in so many is in an alphabet of single bytes."""
_MOSTLY_ASCII = 4
"""A text with fewer bytes beyond ASCII than one in so many is mostly ASCII."""
_LETTER = rb"[A-Za-z\xc0-\xff]"
_NOT_WESTERN = re.compile(
    _LETTER
    + rb"[\xa1-\xaa\xac\xae-\xb3\xb5\xb6\xb8-\xba\xbc-\xbf]"
    + _LETTER
    + rb"|[\x8a\x8e\x9a\x9e\xb9\xd0\xdd\xde\xf0\xfd\xfe]"
)
"""Bytes that windows-1252 has for a sign, here within a word, or for letters that few languages of
it use (Š Ž Ð Ý Þ), and ¹: in other encodings these are the
commonest letters."""
_SAMPLE = 200_000
_BEFORE = 1000
"""Bytes before the first accent of a long line that tell its language."""
_BINARY = 0.01
_FEW = 4


def decode(data: bytes, name: str) -> tuple[str, str]:
    """Return the text of a file and its encoding.

    Tried in order: byte-order mark, UTF-16 and UTF-32 without one, UTF-8, the declaration of an
    HTML page, and a guess from the bytes. A few broken bytes in a UTF-8 file become U+FFFD, and
    the returned encoding says so.

    Raises:
        BadDocument: empty, binary, or in no recognisable encoding.
    """
    if not data.strip():
        raise BadDocument(f"{name} is empty")
    text, encoding = _decoded(data, name)
    if _binary_share(text) > _BINARY:
        raise _no_text(name)
    return text, encoding


def _decoded(data: bytes, name: str) -> tuple[str, str]:
    for mark, encoding in _BOMS:
        if data.startswith(mark) and (text := _strict(data, encoding)) is not None:
            return text, encoding
    if (wide := _wide(data)) is not None:
        return wide
    if (text := _strict(data, "utf-8")) is not None:
        return text, "utf-8"
    if (declaration := _DECLARED.search(data[:2048])) is not None:
        encoding = declaration[1].decode("ascii", "replace").lower()
        if (text := declared(data, encoding)) is not None:
            return text, encoding
    return _mended(data) or _guessed(data, name)


def _strict(data: bytes, encoding: str) -> str | None:
    with suppress(UnicodeError, LookupError):
        return data.decode(encoding)
    return None


def declared(data: bytes, encoding: str) -> str | None:
    """Return a text in the encoding that it names; `None` if it is in another.

    As in browsers, Latin-1 and ASCII are names of windows-1252.
    """
    with suppress(LookupError):
        if codecs.lookup(encoding).name in ("iso8859-1", "ascii"):
            encoding = "cp1252"
    return _strict(data, encoding)


def _wide(data: bytes) -> tuple[str, str] | None:
    """Read UTF-16 or UTF-32 without a mark: every second byte or more is often 0."""
    sample = data[:_SAMPLE]
    if sample.count(0) * 4 < len(sample):
        return None
    readings = [(text, encoding) for encoding in _WIDE if (text := _strict(data, encoding))]
    plain = [reading for reading in readings if _binary_share(reading[0]) <= _BINARY]
    return max(plain, key=lambda reading: _ascii_share(reading[0]), default=None)


def _mended(data: bytes) -> tuple[str, str] | None:
    """Read UTF-8 with few broken bytes among many intact characters."""
    sample = _accented_lines(data).decode("utf-8", "replace")
    whole = sum(not char.isascii() for char in sample) - sample.count("\ufffd")
    if whole < _FEW * sample.count("\ufffd") or whole < _FEW:
        return None
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    return text, f"utf-8, {broken} broken"


def _guessed(data: bytes, name: str) -> tuple[str, str]:
    """Read as browsers do: mostly ASCII is windows-1252, unless words have bytes of another."""
    sample = data if len(data) <= _SAMPLE else _without_cut_word(data[:_SAMPLE])
    beyond_ascii = len(sample.translate(None, _ASCII))
    is_western = beyond_ascii * _MOSTLY_ASCII < len(sample) and not _NOT_WESTERN.search(data)
    if is_western and (text := _strict(data, "cp1252")) is not None:
        return text, "cp1252"
    from charset_normalizer import from_bytes

    is_sparse = beyond_ascii * _SPARSE < len(sample)
    guess = from_bytes(sample, cp_exclusion=list(_WIDE) if is_sparse else [])
    best = guess.best()
    if best is None:
        raise _no_text(name)
    encoding = best.encoding
    for match in guess:  # encodings that read the sample alike are one match
        is_as_good = (match.chaos, -match.coherence) <= (best.chaos, -best.coherence)
        if is_as_good and "cp1252" in match.could_be_from_charset:
            encoding = "cp1252"
    text = _strict(data, encoding)
    if text is None:
        raise _no_text(name)
    return text, encoding


def _accented_lines(data: bytes) -> bytes:
    """Return the first lines with a byte beyond ASCII: a guess from other lines is by chance."""
    lines, left, at = list[bytes](), _SAMPLE, 0
    while left > 0 and (accent := _BEYOND_ASCII.search(data, at)):
        begin = max(at, data.rfind(b"\n", at, accent.start()) + 1, accent.start() - _BEFORE)
        end = data.find(b"\n", accent.start()) + 1 or len(data)
        line = data[begin:end]
        lines.append(line if len(line) <= left else _without_cut_word(line[:left]))
        left, at = left - len(line), end
    return b"".join(lines)


def _without_cut_word(sample: bytes) -> bytes:
    """Return bytes without their last word, which may end within a character."""
    return sample[: max(sample.rfind(b"\n"), sample.rfind(b" ")) + 1] or sample


def _binary_share(text: str) -> float:
    sample = text[:_SAMPLE]
    return len(_CONTROL.findall(sample)) / max(1, len(sample))


def _ascii_share(text: str) -> float:
    sample = text[:_SAMPLE]
    return sum(map(str.isascii, sample)) / max(1, len(sample))


def _no_text(name: str) -> BadDocument:
    first: dict[str, str] = {}
    for suffix, kind in KINDS.items():
        first.setdefault(kind, suffix)
    *others, last = first.values()
    return BadDocument(
        f"{name} is binary, or in an unknown encoding: save it as UTF-8, or give a "
        f"{', '.join(others)} or {last} file"
    )
