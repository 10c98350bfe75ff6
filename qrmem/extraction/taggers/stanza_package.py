"""The package stanza, imported on use: its labels and its neural pipeline."""

import importlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from qrmem.errors import MissingError, TaggerUnavailable, require_extra

# The package stanza, imported when a tagger is used, and the types of its labels.

TYPES: Mapping[str, str] = {
    **dict.fromkeys(("PERSON", "PER"), "PERSON"),
    **dict.fromkeys(("PLACE", "LOCATION", "LOC", "GPE", "FAC"), "PLACE"),
    **dict.fromkeys(("ORGANISATION", "ORGANIZATION", "ORG"), "ORGANISATION"),
    **dict.fromkeys(("DATE", "TIME", "DURATION", "SET"), "DATE"),
    **dict.fromkeys(("NUMBER", "MONEY", "PERCENT", "ORDINAL", "CARDINAL", "QUANTITY"), "NUMBER"),
    **dict.fromkeys(("WORK", "WORK_OF_ART"), "WORK"),
    "EVENT": "EVENT",
}
"""Labels of CoreNLP (CoNLL, SUTime) and of Stanza (OntoNotes, CoNLL) to types. Any other label
gives an unknown type, which can be merged with every type."""

_FIGURES = frozenset({"DATE", "NUMBER"})


def type_of(label: str, text: str) -> str | None:
    """Return the type of a tagger's label; `None` for a date or number without a digit.

    Taggers label "now", "one" and "the first" as dates and numbers; such words are in every second
    segment.
    """
    kind = TYPES.get(label.upper(), "")
    if kind in _FIGURES and not any(char.isdigit() for char in text):
        return None
    return kind


def require_stanza() -> None:
    """Check that the package is installed, without an import.

    Raises:
        MissingError: the extra is not installed.
    """
    require_extra("taggers", "this tagger", "stanza")


def stanza_module() -> Any:
    """Return `stanza`.

    Raises:
        MissingError: stanza or one of its dependencies cannot be imported.
    """
    return _imported("stanza")


def server_module() -> Any:
    """Return `stanza.server`, with CoreNLP's client; it raises the errors of `stanza_module`."""
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
    """Stanza's pipeline of tokenizer and NER; it reads one segment at a time."""

    name = "stanza"
    threads = 1

    def __init__(self, folder: str) -> None:
        """Prepare; `folder` is the folder from `stanza.download(model_dir=…)`."""
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
            # Model files are pickles and tensors: a broken one can raise any exception.
            why = " ".join(str(exc).split()) or type(exc).__name__
            raise MissingError(f"stanza's models in {self._folder} do not load: {why}") from exc

    def spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Return the spans of entities."""
        try:
            entities = self._pipeline(text).ents
        except Exception as exc:
            why = " ".join(str(exc).split()) or type(exc).__name__
            raise TaggerUnavailable(f"stanza's pipeline failed: {why[:160]}") from exc
        for entity in entities:
            kind = type_of(entity.type, text[entity.start_char : entity.end_char])
            if kind is not None:
                yield entity.start_char, entity.end_char, kind

    def stop(self) -> None:
        """Release the models."""
        self._pipeline = None


def language_of(folder: Path) -> str:
    """Return the language of a folder's models; of several English, or else the first.

    Raises:
        MissingError: something is missing; the message says what.
    """
    if not folder.is_dir():
        raise MissingError(f"stanza's models: no folder {folder}")
    if not (folder / RESOURCES).is_file():
        raise MissingError(f"stanza's models: no {RESOURCES} in {folder}")
    languages = sorted(path.parent.name for path in folder.glob("*/ner"))
    if not languages:
        raise MissingError(f"stanza's models: no language with a model for names in {folder}")
    return languages[0] if len(languages) == 1 or "en" not in languages else "en"
