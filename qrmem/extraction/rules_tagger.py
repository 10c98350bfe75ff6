"""The built-in tagger: entities by capitals, titles, figures and quotation marks.

What it says of a segment depends on that segment alone, so the order in which segments are read, or
read again, changes nothing.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from qrmem.extraction import vocabulary as voc
from qrmem.extraction.capitals import Run, runs, vocabulary_of
from qrmem.extraction.figures import dates, numbers
from qrmem.extraction.marked_names import titles, uncased
from qrmem.text.boilerplate import apparatus
from qrmem.text.names import differ_in_number
from qrmem.types import Mention

MOST_NAMES = 80
"""Entities kept of one segment; a telephone book would give hundreds."""

_REMEMBERED = 5000
"""Texts whose entities are remembered: a batch of `add` is read twice, the second time when all of
its questions are known."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One place where an entity is named; `entity` is an index into `Tagged.mentions`."""

    start: int
    end: int
    entity: int


@dataclass(frozen=True, slots=True)
class Tagged:
    """The entities of a text and where each is named, both in order."""

    mentions: tuple[Mention, ...]
    occurrences: tuple[Occurrence, ...]


@dataclass(slots=True)
class _Name:
    """A name while forms are being gathered under it."""

    forms: Counter[str]
    kinds: Counter[str]
    spans: list[tuple[int, int]]


class RulesTagger:
    """Finds entities by rules; an `EntityTagger` that needs nothing installed."""

    name = "rules"

    async def tag(self, text: str) -> Sequence[Mention]:
        """Return the entities of one segment, in order of first occurrence."""
        return tagged(text).mentions

    async def close(self) -> None:
        """Do nothing: nothing was opened."""


@lru_cache(maxsize=_REMEMBERED)
def tagged(text: str) -> Tagged:
    """Return entities with their places; tagger, reasoner and its second look ask for the same."""
    return gathered(text, _spans(text))


def gathered(text: str, spans: Iterable[tuple[int, int, str]]) -> Tagged:
    """Put the places `(start, end, type)` where names stand together to entities."""
    names = _folded(_by_form(text, spans))
    names.sort(key=lambda name: name.spans[0])
    del names[MOST_NAMES:]
    mentions = tuple(_mention(name) for name in names)
    places = sorted(
        (Occurrence(a, b, index) for index, name in enumerate(names) for a, b in name.spans),
        key=lambda place: (place.start, place.end),
    )
    return Tagged(mentions, tuple(places))


def _spans(text: str) -> list[tuple[int, int, str]]:
    """All names as `(start, end, type)`; figures and quoted titles come before capitals."""
    skipped = [(a, b, "") for a, b in apparatus(text)]
    found = [(a, b, "DATE") for a, b in dates(text)]
    taken = [(a, b) for a, b, _ in found]
    found += [(a, b, "NUMBER") for a, b in numbers(text, taken)]
    found = [span for span in found if _is_free(span, skipped)] + skipped
    for span in (*titles(text), *uncased(text)):
        if _is_free(span, found):
            found.append(span)
    found.sort()
    words = vocabulary_of(text)
    for run in runs(text, [(a, b) for a, b, _ in found], words):
        found.append((run.start, run.end, _kind(text, run)))
    return sorted(span for span in found if span not in skipped)


def _is_free(span: tuple[int, int, str], found: Iterable[tuple[int, int, str]]) -> bool:
    return not any(a < span[1] and span[0] < b for a, b, _ in found)


def _kind(text: str, run: Run) -> str:
    """The type that something speaks for strongly, else ""."""
    first, last = voc.bare(run.words[0]), voc.bare(run.words[-1])
    if len(run.words) > 1:
        if last in voc.ORGANISATION_HEADS or last in voc.PARTNER_WORDS:
            return "ORGANISATION"
        if last in voc.PLACE_HEADS or first in voc.PLACE_OPENERS:
            return "PLACE"
        if first in voc.PERSON_TITLES and last not in voc.BUILDING_HEADS and last != "of":
            return "PERSON" if "of" not in run.words else ""
        if _INITIAL.fullmatch(run.words[0]) and len(run.words[-1]) > 2:
            return "PERSON"
    return "PERSON" if _speaks(text, run) else ""


_INITIAL = re.compile(r"(?:[^\W\d_]\.\s?)+")
_NEXT = re.compile(r"\s([a-z]+)\b")
_BEFORE = re.compile(r"\b([a-z]+)\s\Z")
_VERBS_BEFORE = voc.SPEECH_VERBS - {"asked", "answered"}


def _speaks(text: str, run: Run) -> bool:
    following = _NEXT.match(text, run.end)
    if following and following.group(1) in voc.SPEECH_VERBS:
        return True
    before = _BEFORE.search(text, max(0, run.start - 12), run.start)
    return before is not None and before.group(1) in _VERBS_BEFORE


def _by_form(text: str, spans: Iterable[tuple[int, int, str]]) -> list[_Name]:
    """Put the places of one name together, whatever its case and line breaks."""
    names: dict[str, _Name] = {}
    for start, end, kind in spans:
        form = " ".join(text[start:end].split())
        key = form.casefold()
        name = names.get(key)
        if name is None:
            name = names[key] = _Name(Counter(), Counter(), [])
        name.forms[form] += 1
        name.spans.append((start, end))
        if kind:
            name.kinds[kind] += 1
    return list(names.values())


def _folded(names: list[_Name]) -> list[_Name]:
    """Fold a short name into the one longer name of the segment that it can stand for."""
    order = sorted(names, key=lambda name: (-len(_best_form(name).split()), name.spans[0]))
    kept: list[_Name] = []
    by_word: dict[str, list[_Name]] = {}
    for name in order:
        words = _name_words(name)
        targets = (
            [t for t in by_word.get(words[0][-1], []) if _stands_for(name, t)] if words[0] else []
        )
        if len(targets) == 1:
            _take_in(targets[0], name)
            continue
        kept.append(name)
        for word in {words[0][0], words[0][-1]} if words[0] else ():
            by_word.setdefault(word, []).append(name)
    return kept


def _best_form(name: _Name) -> str:
    """The fullest form: most words, then the most frequent, then the one not shouted."""
    if len(name.forms) == 1:
        return next(iter(name.forms))
    return max(name.forms, key=lambda f: (len(f.split()), name.forms[f], not f.isupper(), f))


def _name_words(name: _Name) -> tuple[list[str], str]:
    """The words of a name without its title, and the title."""
    words = [w.rstrip(".") for w in _best_form(name).casefold().split()]
    if len(words) > 1 and words[0] in voc.TITLES:
        return words[1:], words[0]
    return words, ""


def _stands_for(short: _Name, long: _Name) -> bool:
    """Whether a name is one end of a longer one, and no title speaks against it."""
    if {"DATE", "NUMBER", "WORK", "PLACE", "ORGANISATION"} & (
        short.kinds.keys() | long.kinds.keys()
    ):
        return False
    if differ_in_number(_best_form(short), _best_form(long)):
        return False
    (few, title), (many, other) = _name_words(short), _name_words(long)
    if "of" in many or not (few == many[: len(few)] or few == many[-len(few) :]):
        return False
    if len(few) == len(many):
        return not title and bool(other) and other not in voc.FEMALE_TITLES | _OF_GIVEN_NAMES
    return title in {"", other} or (not other and title in voc.NEUTRAL_TITLES)


_OF_GIVEN_NAMES = frozenset("king prince emperor abbot brother father pope saint st".split())  # noqa: SIM905
"""Titles before given names, of which a place has several bearers: Otto may be no Abbot Otto."""


def _take_in(target: _Name, name: _Name) -> None:
    target.forms.update(name.forms)
    target.kinds.update(name.kinds)
    target.spans = sorted((*target.spans, *name.spans))


def _mention(name: _Name) -> Mention:
    best = _best_form(name)
    if len(name.forms) == 1 and len(name.kinds) < 2:
        return Mention(best, next(iter(name.kinds), ""), (best,), name.forms[best])
    others = sorted(name.forms.keys() - {best}, key=lambda form: (-name.forms[form], form))
    kinds = name.kinds.most_common(2)
    kind = kinds[0][0] if kinds and (len(kinds) == 1 or kinds[0][1] > kinds[1][1]) else ""
    return Mention(best, kind, (best, *others), sum(name.forms.values()))
