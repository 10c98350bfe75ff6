"""The package stanza, imported when a tagger is really used; and what its labels mean to us."""

import importlib
import logging
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from qrmem.errors import MissingError, install

TYPES: Mapping[str, str] = {
    **dict.fromkeys(("PERSON", "PER"), "PERSON"),
    **dict.fromkeys(("PLACE", "LOCATION", "LOC", "GPE", "FAC"), "PLACE"),
    **dict.fromkeys(("ORGANISATION", "ORGANIZATION", "ORG"), "ORGANISATION"),
    **dict.fromkeys(("DATE", "TIME", "DURATION", "SET"), "DATE"),
    **dict.fromkeys(("NUMBER", "MONEY", "PERCENT", "ORDINAL", "CARDINAL", "QUANTITY"), "NUMBER"),
    **dict.fromkeys(("WORK", "WORK_OF_ART"), "WORK"),
    "EVENT": "EVENT",
}
"""Labels of CoreNLP (CoNLL, SUTime) and of Stanza (OntoNotes, CoNLL); others are no type of ours,
so that such a name can meet any other."""

_FIGURES = frozenset({"DATE", "NUMBER"})


def type_of(label: str, text: str) -> str | None:
    """Return the type of what a tagger labelled; `None` if it is no entity worth keeping.

    "Now", "one" and "the first" are dates and numbers to a tagger, and in every second segment;
    only figures are kept of these.
    """
    kind = TYPES.get(label.upper(), "")
    if kind in _FIGURES and not any(char.isdigit() for char in text):
        return None
    return kind


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
