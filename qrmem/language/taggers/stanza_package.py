"""The package stanza: a big import, so it is made when a tagger is really used."""

import importlib
import logging
from typing import Any

from qrmem.errors import MissingError


def stanza_module() -> Any:
    """Return `stanza`.

    Raises:
        MissingError: the extra is not installed.
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
        raise MissingError(
            f"this tagger needs the extra taggers: pip install 'qrmem[taggers]' ({exc})"
        ) from exc
