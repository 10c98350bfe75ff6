"""Parses terse items of replies: `name|TYPE|form`, `name|description|name`, `label|quote`.

A relation may have a period of validity: `…|valid_from=2019-05|valid_until=2021`.

An entity that stands nowhere in the text is invented; it is dropped with its relations.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    "THING": "THING",
    "OTHER": "THING",
    "OBJECT": "THING",
}
"""Types that models write, to types of qrmem."""

LONGEST_NAME = 120
"""Maximum length of a name in characters; a longer text is a sentence."""

_VALID = re.compile(r"valid_(from|until)\s*[=:]\s*(.*)", re.IGNORECASE)
_OPEN_ENDED = ("", "-", "?", "n/a", "none", "null", "unknown", "now", "today", "present", "ongoing")
"""Words that models write for a missing date."""
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
class ReplyItem:
    """An item of a reply to numbered questions.

    Attributes:
        question: text of its question.
        parts: the item without the question's number.
        valid: period of validity as the model wrote it; `with_dates` converts it to ISO form. ""
            is unknown.
    """

    question: str
    parts: tuple[str, ...]
    valid: Validity = _UNDATED


def split(items: Iterable[str], questions: Sequence[str] = ()) -> list[ReplyItem]:
    """Split items at `|`; with questions, the first part is the number of a question.

    An item without a valid number belongs to the first question.
    """
    result = []
    for item in items:
        parts = [" ".join(part.split()) for part in item.split("|")]
        question = questions[0] if questions else ""
        number = _NUMBER.fullmatch(parts[0]) if questions and len(parts) > 1 else None
        if number:
            n = int(number.group(1)) - 1
            question = questions[n] if 0 <= n < len(questions) else question
            del parts[0]
        result.append(ReplyItem(question, *_dated(parts)))
    return result


def _dated(parts: Sequence[str]) -> tuple[tuple[str, ...], Validity]:
    """Return the parts of an item, and its period of validity."""
    dates_said: dict[str, str] = {}
    plain = []
    for part in parts:
        if match := _VALID.fullmatch(part):
            value = match[2].strip()
            dates_said.setdefault(match[1].lower(), "" if value.lower() in _OPEN_ENDED else value)
        else:
            plain.append(part)
    return tuple(plain), Validity(dates_said.get("from", ""), dates_said.get("until", ""))


def with_dates(item: ReplyItem, shown: str) -> tuple[ReplyItem, str]:
    """Return an item with its dates in ISO form, and a message about wrong dates.

    A date is invented, and dropped, if its year does not occur in the prompt's text.

    Args:
        item: the item.
        shown: the text that the prompt showed.
    """
    if not any(item.valid):
        return item, ""
    validity = Validity(*map(read_date, item.valid))
    wrong = [
        f"valid_{name} {date_said[:40]!r} is no date"
        for name, date_said, date in zip(("from", "until"), item.valid, validity, strict=True)
        if date_said and not date
    ]
    if is_backwards(validity):
        wrong = [f"valid_until {validity.last} lies before valid_from {validity.first}"]
        validity = Validity()
    years = set(map(int, _YEAR.findall(shown)))
    dates_stated = (date if date and int(date[:4]) in years else "" for date in validity)
    return replace(item, valid=Validity(*dates_stated)), "; ".join(wrong)


@dataclass(slots=True)
class Shown:
    """The texts of a prompt in which names may stand, and the items that could not be used.

    Attributes:
        text: the segment.
        around: its title, its part and the lines before it.
        elsewhere: what else the prompt shows: the document's summary, other segments.
        dropped: why items were left out.
    """

    text: str
    around: str = ""
    elsewhere: str = ""
    dropped: list[str] = field(default_factory=list)

    def drop(self, item: ReplyItem, why: str) -> None:
        """Record an item that is left out."""
        words = "|".join(item.parts)
        self.dropped.append(f"{words[:LONGEST_NAME]}: {why}")


def mentions(
    items: Iterable[ReplyItem], shown: Shown, typing: "Typing | None" = None
) -> list[Mention]:
    """Return the entities of items that stand in a text; a repeated name counts once.

    Names get the spelling of the text. Other forms that do not occur in it are left out.

    Args:
        items: entities of a reply.
        shown: the segment, and what the prompt showed beside it.
        typing: assigns the types of a schema.
    """
    mentions_by_key: dict[str, Mention] = {}
    for item in items:
        typed = typing.entity(item) if typing else _usual(item)
        if typed is None:
            continue
        others, kind, properties = typed
        new_mention = mention(item.parts[0], others, kind, shown, item.question)
        if new_mention is None:
            shown.drop(item, NOT_THERE)
            continue
        new_mention = replace(new_mention, properties=properties)
        key = normalise_name(new_mention.name)
        earlier = mentions_by_key.get(key)
        mentions_by_key[key] = new_mention if earlier is None else _of_both(earlier, new_mention)
    return list(mentions_by_key.values())


def _usual(item: ReplyItem) -> tuple[Sequence[str], str, Properties]:
    """Return an entity's other forms and its type, without a schema."""
    others = item.parts[1:]
    kind = TYPES.get(others[0].upper()) if others else None
    return others if kind is None else others[1:], kind or "", ()


def _of_both(known: Mention, made: Mention) -> Mention:
    """Merge two items of the same entity: the first type and its properties take precedence."""
    if known.type and known.type != made.type:
        return known
    properties = dict((*made.properties, *known.properties))
    return replace(known, type=made.type, properties=tuple(sorted(properties.items())))


NOT_THERE = "no such name stands in the text"


def mention(
    name: str, others: Iterable[str], kind: str, shown: Shown, question: str = ""
) -> Mention | None:
    """Return a name with its surface forms in a text, or `None` if it does not stand there.

    It may stand in what else the prompt showed: the text may call it "the ship" only.
    """
    if not normalise_name(name) or len(name) > LONGEST_NAME or name.casefold() in _PRONOUNS:
        return None
    counts: dict[str, int] = {}
    names_given = [other for other in others if _is_name(other) and len(other) <= LONGEST_NAME]
    for form in dict.fromkeys((name, *names_given)):
        for surface in occurrences(form, shown.text):
            counts[surface] = counts.get(surface, 0) + 1
    forms, count = tuple(counts), max(1, sum(counts.values()))
    if any(normalise_name(surface) == normalise_name(name) for surface in counts):
        return Mention(forms[0], kind, forms, count, question)
    if other := next(iter(occurrences(name, f"{shown.around}\n{shown.elsewhere}")), ""):
        return Mention(other, kind, (*forms, other), count, question)
    if counts:  # the reply made up a fuller form: the longest one that stands there is the name
        return Mention(max(forms, key=len), kind, forms, count, question)
    return None


def statements(
    items: Iterable[ReplyItem],
    known: Sequence[Mention],
    shown: Shown,
    typing: "Typing | None" = None,
) -> tuple[list[Statement], list[Mention]]:
    """Return the relations between entities of a text, and entities that only relations name.

    Args:
        items: relations of a reply.
        known: known entities.
        shown: the segment, and what the prompt showed beside it.
        typing: assigns the types of a schema.
    """
    names = names_of(known)
    types = {mention.name: mention.type for mention in known}
    statements_by_key: dict[tuple[str, str, str], Statement] = {}
    new: list[Mention] = []
    for reply_item in items:
        typed = typing.relation(reply_item) if typing else (reply_item, None, ())
        if typed is None:
            continue
        item, kind, properties = typed
        if len(item.parts) < 3:
            shown.drop(item, "a relation needs two names and what is stated of them")
            continue
        ends = []
        for end in (item.parts[0], item.parts[-1]):
            norm = normalise_name(end)
            if norm not in names and (new_mention := mention(end, (), "", shown, item.question)):
                new.append(new_mention)
                names[norm] = new_mention.name
            ends.append(names.get(norm, ""))
        description = ", ".join(part for part in item.parts[1:-1] if part)
        head, tail = ends
        if not (head and tail):
            missing = item.parts[-1] if head else item.parts[0]
            shown.drop(item, f"{missing[:40]!r} does not stand in the text")
        elif head == tail or not description:
            shown.drop(item, "it says nothing about two entities")
        else:
            statement = Statement(head, tail, description, item.question, *item.valid)
            between = types.get(head, ""), types.get(tail, "")
            if typing and kind and typing.fits(reply_item, kind, between):
                statement = replace(statement, type=kind.key, properties=properties)
            known_one = statements_by_key.setdefault((head, tail, description), statement)
            if statement.type and not known_one.type:
                statements_by_key[head, tail, description] = statement
    return list(statements_by_key.values()), new


def concerned(
    mentions: Sequence[Mention], stated: Sequence[Statement], shown: Shown
) -> list[Mention]:
    """Return the entities that a segment names, or states something of.

    One that stands elsewhere in the prompt alone is no entity of the segment by itself.
    """
    ends = {end for statement in stated for end in (statement.head, statement.tail)}
    return [
        one
        for one in mentions
        if one.name in ends or any(occurrences(form, shown.text) for form in one.forms)
    ]


def names_of(mentions: Iterable[Mention]) -> dict[str, str]:
    """Return each normalised form of the entities with its entity's name."""
    return {normalise_name(form): m.name for m in mentions for form in (m.name, *m.forms)}


def questions(items: Iterable[str], limit: int) -> tuple[str, ...]:
    """Return at most `limit` questions, one line each, without numbering."""
    result = []
    for item in items:
        line = re.sub(r"^\W*(?:Q?\d{1,2}[.):]\s*)?", "", " ".join(item.split()))
        if len(line) > 8 and " " in line:
            result.append(line[:300])
    return tuple(dict.fromkeys(result))[:limit]


def quotes(items: Iterable[str]) -> tuple[Quote, ...]:
    """Return quotations with their labels, "" for a missing label."""
    result = []
    for item in items:
        label, mark, words = item.partition("|")
        label = label.strip().strip("[]()<>\"'").upper()
        if not mark or not re.fullmatch(r"S\d+", label):
            label, words = "", item
        words = words.strip(" \n\t|\"“”'‘’")
        if words:
            result.append(Quote(label, words))
    return tuple(result)


def _is_name(form: str) -> bool:
    """Return whether a form may be another name: not a pronoun, and not all lower case."""
    return form.casefold() not in _PRONOUNS and form != form.lower()
