"""Takes terse items of replies apart: `name|TYPE|form`, `name|description|name`, `label|quote`.

A relation may say from when or until when it holds: `…|valid_from=2019-05|valid_until=2021`.

What a model made up goes here: an entity that does not stand in the segment is dropped, and so is a
relation of one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from qrmem.text.dates import Validity, is_backwards, read_date
from qrmem.text.names import normalise_name, occurrences
from qrmem.types import Mention, Properties, Quote, Statement

if TYPE_CHECKING:
    from qrmem.extraction.own_types import Typing


TYPES: Mapping[str, str] = {
    **{name: name for name in ("PERSON", "PLACE", "ORGANISATION", "WORK", "EVENT")},
    **{name: name for name in ("DATE", "NUMBER")},
    "CHARACTER": "PERSON",
    "LOCATION": "PLACE",
    "GPE": "PLACE",
    "ORGANIZATION": "ORGANISATION",
    "ORG": "ORGANISATION",
    "TIME": "DATE",
    "QUANTITY": "NUMBER",
    "THING": "",
    "OTHER": "",
    "OBJECT": "",
}
"""What models write to our types; a thing's type is unknown, so that it can meet any other."""

LONGEST_NAME = 120
"""Characters; what is longer is a sentence, not a name."""

_VALID = re.compile(r"valid_(from|until)\s*[=:]\s*(.*)", re.IGNORECASE)
_OPEN_ENDED = ("", "-", "?", "n/a", "none", "null", "unknown", "now", "today", "present", "ongoing")
"""What models write where a text says no date."""
_UNDATED = Validity()
_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
_NUMBER = re.compile(r"\W{0,2}Q?(\d{1,3})\W{0,2}")
_PRONOUNS = frozenset(
    [
        "he",
        "she",
        "it",
        "they",
        "him",
        "her",
        "them",
        "his",
        "hers",
        "its",
        "their",
        "i",
        "we",
        "you",
        "me",
        "us",
        "who",
        "this",
        "that",
        "these",
        "those",
    ]
)


@dataclass(frozen=True, slots=True)
class Asked:
    """An item of a reply to numbered questions: which question it belongs to, and the rest.

    Attributes:
        valid: from when and until when it holds, as the model wrote it until `with_dates` has read
            it; "" where it says nothing.
    """

    question: str
    parts: tuple[str, ...]
    valid: Validity = _UNDATED


def split(items: Iterable[str], questions: Sequence[str] = ()) -> list[Asked]:
    """Split items at `|`; with questions, their first part is a question's number.

    An item with no number, or with one that no question has, belongs to the first question.
    """
    found = []
    for item in items:
        parts = [" ".join(part.split()) for part in item.split("|")]
        question = questions[0] if questions else ""
        number = _NUMBER.fullmatch(parts[0]) if questions and len(parts) > 1 else None
        if number:
            n = int(number.group(1)) - 1
            question = questions[n] if 0 <= n < len(questions) else question
            del parts[0]
        found.append(Asked(question, *_dated(parts)))
    return found


def _dated(parts: Sequence[str]) -> tuple[tuple[str, ...], Validity]:
    """Return an item's parts, and what it says of the time in which it holds."""
    said: dict[str, str] = {}
    plain = []
    for part in parts:
        if match := _VALID.fullmatch(part):
            value = match[2].strip()
            said.setdefault(match[1].lower(), "" if value.lower() in _OPEN_ENDED else value)
        else:
            plain.append(part)
    return tuple(plain), Validity(said.get("from", ""), said.get("until", ""))


def with_dates(item: Asked, shown: str) -> tuple[Asked, str]:
    """Return an item with the dates that there are, in ISO form, and what is wrong with others.

    A date of which the year stands nowhere in what the model was shown is made up, and dropped like
    a name that does not stand there.

    Args:
        shown: what the model was shown.
    """
    if not any(item.valid):
        return item, ""
    found = Validity(*map(read_date, item.valid))
    wrong = [
        f"valid_{name} {said[:40]!r} is no date"
        for name, said, date in zip(("from", "until"), item.valid, found, strict=True)
        if said and not date
    ]
    if is_backwards(found):
        wrong = [f"valid_until {found.last} lies before valid_from {found.first}"]
        found = Validity()
    years = set(map(int, _YEAR.findall(shown)))
    stated = (date if date and int(date[:4]) in years else "" for date in found)
    return replace(item, valid=Validity(*stated)), "; ".join(wrong)


def mentions(items: Iterable[Asked], text: str, typing: "Typing | None" = None) -> list[Mention]:
    """Return the entities that stand in a text; a name given twice counts once.

    The name is written as the text writes it. Other forms that do not stand there are left out.

    Args:
        typing: gives them the types of a schema.
    """
    found: dict[str, Mention] = {}
    for item in items:
        told = typing.entity(item) if typing else _usual(item)
        if told is None:
            continue
        others, kind, properties = told
        made = mention(item.parts[0], others, kind, text, item.question)
        if made is None:
            continue
        made = replace(made, properties=properties)
        key = normalise_name(made.name)
        known = found.get(key)
        found[key] = made if known is None else _of_both(known, made)
    return list(found.values())


def _usual(item: Asked) -> tuple[Sequence[str], str, Properties]:
    """Return an entity's other forms and its type where there is no schema."""
    others = item.parts[1:]
    kind = TYPES.get(others[0].upper()) if others else None
    return others if kind is None else others[1:], kind or "", ()


def _of_both(known: Mention, made: Mention) -> Mention:
    """Return an entity that was named twice: the first type counts, and what it says."""
    if known.type and known.type != made.type:
        return known
    said = dict((*made.properties, *known.properties))
    return replace(known, type=made.type, properties=tuple(sorted(said.items())))


def mention(
    name: str, others: Iterable[str], kind: str, text: str, question: str = ""
) -> Mention | None:
    """Return a name with its surface forms in a text, or `None` if it is none of the text's."""
    if not normalise_name(name) or len(name) > LONGEST_NAME or name.casefold() in _PRONOUNS:
        return None
    counts: dict[str, int] = {}
    named = [other for other in others if _is_name(other)]
    for form in dict.fromkeys((name, *named)):
        for surface in occurrences(form, text):
            counts[surface] = counts.get(surface, 0) + 1
    if not any(normalise_name(surface) == normalise_name(name) for surface in counts):
        return None
    forms = tuple(counts)
    return Mention(forms[0], kind, forms, max(1, sum(counts.values())), question)


def statements(
    items: Iterable[Asked], known: Sequence[Mention], text: str, typing: "Typing | None" = None
) -> tuple[list[Statement], list[Mention]]:
    """Return relations between entities of a text, and entities that only the relations name.

    Args:
        known: entities that were found already.
        typing: gives relations the types of a schema.
    """
    names = names_of(known)
    types = {mention.name: mention.type for mention in known}
    found: dict[tuple[str, str, str], Statement] = {}
    new: list[Mention] = []
    for given in items:
        told = typing.relation(given) if typing else (given, None, ())
        if told is None or len(told[0].parts) < 3:
            continue
        item, kind, properties = told
        ends = []
        for end in (item.parts[0], item.parts[-1]):
            norm = normalise_name(end)
            if norm not in names and (made := mention(end, (), "", text, item.question)):
                new.append(made)
                names[norm] = made.name
            ends.append(names.get(norm, ""))
        description = ", ".join(part for part in item.parts[1:-1] if part)
        head, tail = ends
        if head and tail and head != tail and description:
            statement = Statement(head, tail, description, item.question, *item.valid)
            between = types.get(head, ""), types.get(tail, "")
            if typing and kind and typing.fits(given, kind, between):
                statement = replace(statement, type=kind.key, properties=properties)
            known_one = found.setdefault((head, tail, description), statement)
            if statement.type and not known_one.type:
                found[head, tail, description] = statement
    return list(found.values()), new


def names_of(mentions: Iterable[Mention]) -> dict[str, str]:
    """Return the normalised forms of entities with the name of each."""
    return {normalise_name(form): m.name for m in mentions for form in (m.name, *m.forms)}


def questions(items: Iterable[str], limit: int) -> tuple[str, ...]:
    """Return questions as one line each, without numbering, at most `limit`."""
    found = []
    for item in items:
        line = re.sub(r"^\W*(?:Q?\d{1,2}[.):]\s*)?", "", " ".join(item.split()))
        if len(line) > 8 and " " in line:
            found.append(line[:300])
    return tuple(dict.fromkeys(found))[:limit]


def quotes(items: Iterable[str]) -> tuple[Quote, ...]:
    """Return quotations; one without a label has the label ""."""
    found = []
    for item in items:
        label, mark, words = item.partition("|")
        label = label.strip().strip("[]()<>\"'").upper()
        if not mark or not re.fullmatch(r"S\d+", label):
            label, words = "", item
        words = words.strip(" \n\t|\"“”'‘’")
        if words:
            found.append(Quote(label, words))
    return tuple(found)


def _is_name(form: str) -> bool:
    """Whether another form may stand for a name: no pronoun, and not all in lower case."""
    return form.casefold() not in _PRONOUNS and form != form.lower()
