"""The package stanza: a big import, so it is made when a tagger is really used."""

import importlib
import logging
from importlib.util import find_spec
from typing import Any

from qrmem.errors import MissingError, install


def require_stanza() -> None:
    """Refuse to go on without the package; imports nothing.

    Raises:
        MissingError: the extra is not installed.
    """
    if find_spec("stanza") is None:
        raise MissingError(f"this tagger needs the extra taggers: {install('taggers')}")


def stanza_module() -> Any:
    """Return `stanza`.

    Raises:
        MissingError: it, or what it needs, cannot be imported.
    """
    return _imported("stanza")


def server_module() -> Any:
    """Return `stanza.server`, with the client of CoreNLP; raises as `stanza_module`."""
    return _imported("stanza.server")


def _imported(name: str) -> Any:
    logger = logging.getLogger("stanza")
    if logger.level == logging.NOTSET:
        # Else stanza sets INFO, and prints the server's command line, password included.
        logger.setLevel(logging.WARNING)
    try:
        return importlib.import_module(name)
    except ImportError as exc:
        raise MissingError(f"the extra taggers is not installed as a whole: {exc}") from exc
