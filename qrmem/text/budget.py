"""How many bytes a document may come to, counted where they are read or unpacked."""

import errno
import stat
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from qrmem.errors import BadDocument

LEFT_OUT = "left_out"
"""Metadata of a document of which a part could not be read: which one."""
MOST = 100_000_000
"""Bytes of one document, packed or unpacked: a hundred novels."""


def open_file(path: Path) -> IO[bytes]:
    """Open a file; a pipe, which would be waited for, and a device are refused.

    Raises:
        OSError: it is none, not there, or cannot be read; `strerror` says which.
    """
    if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
        raise OSError(errno.EINVAL, "a pipe or a device, not a file", str(path))
    return path.open("rb")


@dataclass(slots=True)
class ByteBudget:
    """What is left of a document's bytes.

    Attributes:
        name: of the document, for the message.
        left: bytes that may still be read.
    """

    name: str
    left: int = MOST

    def take(self, count: int) -> None:
        """Count some bytes.

        Raises:
            BadDocument: there are more than the budget has left.
        """
        if count > self.left:
            raise BadDocument(
                f"{self.name} holds more than {MOST // 1_000_000} MB: split it into several files"
            )
        self.left -= count

    def read(self, file: IO[bytes]) -> bytes:
        """Read a file to its end, or until there is more than the budget has left.

        Raises:
            BadDocument: there is more.
        """
        data = file.read(self.left + 1)
        self.take(len(data))
        return data

    def unpack(self, archive: zipfile.ZipFile, path: str) -> bytes:
        """Read one file of an archive.

        Raises:
            BadDocument: it unpacks to more than is left.
            KeyError, zipfile.BadZipFile, zlib.error: it is not there, or broken.
        """
        with archive.open(path) as file:
            return self.read(file)
