"""The package stanza, imported when a tagger is used: its labels, its neural pipeline."""

import importlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from qrmem.errors import MissingError, TaggerUnavailable, require_extra

# The package stanza, imported when a tagger is really used; and what its labels mean to us.

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
    require_extra("taggers", "this tagger", "stanza")


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
        raise MissingError(f"the extra taggers is not installed completely: {exc}") from exc


# Stanza's neural pipeline, from a folder of models on this machine; nothing is downloaded.

RESOURCES = "resources.json"


class StanzaEngine:
    """A pipeline of tokenizer and NER; one segment at a time, as no pipeline is made for more."""

    name = "stanza"
    threads = 1

    def __init__(self, folder: str) -> None:
        """Prepare; `folder` is as `stanza.download(model_dir=…)` leaves it."""
        self._folder = Path(folder)
        self._pipeline: Any = None

    def start(self) -> None:
        """Load the models."""
        language = language_of(self._folder)
        stanza = stanza_module()
        try:
            self._pipeline = stanza.Pipeline(
                language,
                dir=str(self._folder),
                processors="tokenize,ner",
                download_method=stanza.DownloadMethod.NONE,
                logging_level="ERROR",
            )
        except Exception as exc:
            # Files of a model are pickles and tensors: what a broken one raises is not listed.
            why = " ".join(str(exc).split()) or type(exc).__name__
            raise MissingError(f"stanza's models in {self._folder} do not load: {why}") from exc

    def spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Return where entities are named."""
        try:
            found = self._pipeline(text).ents
        except Exception as exc:
            why = " ".join(str(exc).split()) or type(exc).__name__
            raise TaggerUnavailable(f"stanza's pipeline failed: {why[:160]}") from exc
        for entity in found:
            kind = type_of(entity.type, text[entity.start_char : entity.end_char])
            if kind is not None:
                yield entity.start_char, entity.end_char, kind

    def stop(self) -> None:
        """Let go of the models."""
        self._pipeline = None


def language_of(folder: Path) -> str:
    """Return the language whose models a folder holds; English if there are several.

    Raises:
        MissingError: with what is missing.
    """
    if not folder.is_dir():
        raise MissingError(f"stanza's models: no folder {folder}")
    if not (folder / RESOURCES).is_file():
        raise MissingError(f"stanza's models: no {RESOURCES} in {folder}")
    found = sorted(path.parent.name for path in folder.glob("*/ner"))
    if not found:
        raise MissingError(f"stanza's models: no language with a model for names in {folder}")
    return found[0] if len(found) == 1 or "en" not in found else "en"
