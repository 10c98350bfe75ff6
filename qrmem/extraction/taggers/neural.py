"""Stanza's neural pipeline, from a folder of models on this machine; nothing is downloaded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qrmem.errors import MissingError, TaggerUnavailable
from qrmem.extraction.taggers.stanza_package import stanza_module, type_of

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
