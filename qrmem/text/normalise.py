"""What a text goes through on the way in; every offset counts characters of the result."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from qrmem.errors import clean_name, require_text
from qrmem.types.documents import RANGES, Document, MetaValue, Where, conditions
from qrmem.types.turns import CHAT_KEY, USER_KEY

_BOM = "\ufeff"
_CARRIAGE_RETURN = re.compile("\r\n?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def normalise(text: str) -> str:
    r"""Make line ends `\n`, drop byte-order marks, blank out what no store or screen can take.

    CRLF and CR become LF and leading byte-order marks go, which moves offsets; lone surrogates
    become U+FFFD and control characters other than newline and tab become spaces, which does not.
    Nothing else changes: no Unicode normalisation, so that a quote is found in the user's own
    file again. Idempotent.
    """
    text = text.lstrip(_BOM)
    if "\r" in text:
        text = _CARRIAGE_RETURN.sub("\n", text)
    if not text.isascii():
        text = _SURROGATE.sub("\ufffd", text)
    return _CONTROL.sub(" ", text)


def normalise_id(given: str) -> str:
    """Return a document's id as it is kept: in NFC, since one file's name comes in two forms.

    Raises:
        UsageError: it is no text, or blank.
    """
    require_text(given, "a document's id")
    return unicodedata.normalize("NFC", normalise(given))


_NAMES = {USER_KEY: "user", CHAT_KEY: "session"}


def normalise_value(name: str, value: MetaValue) -> MetaValue:
    """Return a value of a document's metadata as it is kept.

    Raises:
        UsageError: it names a user or a session, and is no clean name.
    """
    if name in _NAMES and isinstance(value, str | list | tuple):
        return clean_name(value, _NAMES[name])
    if isinstance(value, list | tuple):
        return [normalise(item) for item in value]
    return normalise(value) if isinstance(value, str) else value


def normalised(document: Document) -> Document:
    """Return a document as it is kept: text, title, id and metadata.

    Raises:
        UsageError: its metadata name a user or a session, and that is no clean name.
    """
    return replace(
        document,
        text=normalise(document.text),
        title=normalise(document.title),
        id=None if document.id is None else normalise_id(document.id),
        metadata=_normalised_values(document.metadata),
    )


def _normalised_values(values: Mapping[str, MetaValue]) -> dict[str, MetaValue]:
    values_by_name = {normalise(name): value for name, value in values.items()}
    return {name: normalise_value(name, value) for name, value in values_by_name.items()}


def normalise_where(where: Where | None) -> dict[str, dict[str, Any]]:
    """Return a choice of documents in one form, with names and values as they are kept.

    Raises:
        UsageError: it is none, or names a user or a session that cannot be.
    """
    return {
        normalise(name): {how: _as_kept(name, how, value) for how, value in of.items()}
        for name, of in conditions(where).items()
    }


def _as_kept(name: str, operator: str, value: Any) -> Any:
    if operator in RANGES:  # half a name may bound names
        return normalise(value) if isinstance(value, str) else value
    if operator == "in":
        return [normalise_value(name, one) for one in value]
    return normalise_value(name, value)
