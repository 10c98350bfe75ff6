"""Normalisation of texts, ids and metadata; all offsets count characters of the result."""

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
    r"""Unify line ends, drop byte-order marks, replace what no store or screen accepts.

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
    """Return the stored form of a document's id: in NFC, since a file's name can have two forms.

    Raises:
        UsageError: it is no text, or it is blank.
    """
    require_text(given, "a document's id")
    return _in_one_form(given)


def _in_one_form(id: str) -> str:
    return unicodedata.normalize("NFC", normalise(id))


_NAMES = {USER_KEY: "user", CHAT_KEY: "session"}


def normalise_value(name: str, value: MetaValue) -> MetaValue:
    """Return the stored form of a value of a document's metadata.

    Raises:
        UsageError: it names a user or a session, and is not a valid name.
    """
    if not isinstance(value, str | list | tuple):
        return value
    if name not in _NAMES:
        return normalise(value) if isinstance(value, str) else [normalise(one) for one in value]
    return clean_name(value, _NAMES[name])


def normalised(document: Document) -> Document:
    """Return the stored form of a document: text, title, id, which is not blank, and metadata.

    Raises:
        UsageError: its metadata name a user or a session, and the name is not valid.
    """
    return replace(
        document,
        text=normalise(document.text),
        title=normalise(document.title),
        id=None if document.id is None else _in_one_form(document.id),
        metadata=_normalised_values(document.metadata),
    )


def _normalised_values(values: Mapping[str, MetaValue]) -> dict[str, MetaValue]:
    values_by_name = {normalise(name): value for name, value in values.items()}
    return {name: normalise_value(name, value) for name, value in values_by_name.items()}


def normalise_where(where: Where | None) -> dict[str, dict[str, Any]]:
    """Return a condition on documents in one form, with names and values in stored form.

    Raises:
        UsageError: it is no condition, or has an invalid name of a user or a session.
    """
    return {
        normalise(name): {how: _as_kept(name, how, value) for how, value in of.items()}
        for name, of in conditions(where).items()
    }


def _as_kept(name: str, operator: str, value: Any) -> Any:
    if operator in RANGES:  # a part of a name may be the bound of a range
        return normalise(value) if isinstance(value, str) else value
    if operator == "in":
        return [normalise_value(name, one) for one in value]
    return normalise_value(name, value)
