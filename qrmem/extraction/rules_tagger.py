"""The built-in tagger: entities by capitals, titles, figures and quotation marks.

The result depends only on the segment, so the order of reading does not matter.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from qrmem.extraction import vocabulary as voc
from qrmem.extraction.capitals import CapitalRun, runs, vocabulary_of
from qrmem.text.boilerplate import apparatus
from qrmem.text.names import differ_in_number
from qrmem.types import Mention

# Dates, and numbers with their nouns.

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?)"
)
_DAY = r"(?:[0-3]?\d(?:st|nd|rd|th)?)"
_YEAR = r"(?:1\d{3}|20\d{2}|1\d(?=—)—|1\d——?)"
_DATE = re.compile(
    rf"(?<![\w.,/-])(?:{_DAY}\s(?:of\s)?{_MONTH}(?:,?\s{_YEAR})?"
    rf"|{_MONTH}\s{_DAY}(?![\d:])(?:,?\s{_YEAR})?"
    rf"|{_MONTH},?\s{_YEAR}"
    r"|\d{4}-[01]\d-[0-3]\d"
    r"|[12]\d\d0s"
    r"|\d{1,2}(?:st|nd|rd|th)\scentury)(?![\w])"
)
_BARE_YEAR = re.compile(
    r"(?<![\w.,:/$£€#-])(?:1[0-9]\d\d|20\d\d)(?![\w%/:-]|[.,]\d|\s[a-z]{2,}s\b)"
    r"(?!\s(?:people|men|women|children|feet|foot|miles?)\b)"
)
_FIGURE = r"\d{1,3}(?:[,\u00a0]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_SCALE = r"(?:\s(?:hundred|thousand|million|billion|trillion))?"
_DIGITS = re.compile(
    rf"(?<![\w.,:/-])(?:[$£€¥]\s?(?:{_FIGURE}){_SCALE}(?![\d%])"
    rf"|(?:{_FIGURE}){_SCALE}(?:\s?%|(?:\s|-)(?:per\scent|[^\W\d_]{{1,14}}))?)(?![\w])"
)
_BIG = "|".join(sorted(voc.BIG_NUMBER_WORDS, key=len, reverse=True))
_SMALL = "|".join(voc.SMALL_NUMBER_WORDS)
_SPELLED = re.compile(
    rf"\b(?:(?:{_SMALL})[\s-]|a\s(?=(?:hundred|thousand|million|billion)\b))?(?:{_BIG})(?:(?:[\s-]|\sand\s)(?:{_BIG}|{_SMALL})){{0,8}}\s([a-z]+)\b",
    re.IGNORECASE,
)


def dates(text: str) -> list[tuple[int, int]]:
    """Return the spans of dates and years, in order."""
    spans = [m.span() for m in _DATE.finditer(text)] if _has_digit(text) else []
    for match in _BARE_YEAR.finditer(text) if _has_digit(text) else ():
        if not any(a < match.end() and match.start() < b for a, b in spans):
            spans.append(match.span())
    return sorted(spans)


def numbers(text: str, taken: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans of numbers with a unit, a currency or a counted noun."""
    spans = []
    if _has_digit(text):
        for match in _DIGITS.finditer(text):
            if _counts_something(match.group()):
                spans.append(match.span())
    for match in _SPELLED.finditer(text) if _has_number_word(text) else ():
        if match.group(1).casefold() in voc.UNITS:
            spans.append(match.span())
    free = [s for s in spans if not any(a < s[1] and s[0] < b for a, b in taken)]
    return sorted(free)


_DIGIT = re.compile(r"\d")


def _has_digit(text: str) -> bool:
    return _DIGIT.search(text) is not None


def _has_number_word(text: str) -> bool:
    """Return whether a text may have spelled numbers; the full search for them is slow."""
    low = text.casefold()  # the pattern also matches the long s of old print
    return any(word in low for word in voc.BIG_NUMBER_WORDS)


def _counts_something(found: str) -> bool:
    if found[0] in "$£€¥" or found.endswith(("%", "per cent")):
        return True
    last = re.split(r"[\s-]", found)[-1]
    if last[:1].isdigit() or last.casefold() in voc.FUNCTION_WORDS:
        return False
    return last in voc.UNITS or bool(voc.PLURAL_OR_UNIT.match(last) and not last.endswith("ss"))


# Names by marks instead of capitals: quoted titles, and scripts without capitals.

_UNCASED = re.compile(
    "[\u0590-\u08ff\u0900-\u0dff\u0e00-\u0fff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)
_TITLE = re.compile(
    r"(?:[“\"«„]|(?<![\w])[‘'])([^\W\d_][^“”\"«»„‘\n.!?;]{1,60}?)[,.]?(?:[”\"»]|[’'](?!\w))"
    r"|(?<!\w)[_*]([^\W\d_][^_*\n.!?;]{1,60}?)[_*](?!\w)"
)
_MARK = re.compile("[“\"«„‘'_*]")
_CUE = re.compile(r"([^\W\d_]+),?\s*\Z")
_WORD = re.compile(r"[^\W\d_]+")
_BRACKETS = re.compile("[『《〈]([^『』《》〈〉\n]{1,40})[』》〉]")
_SHORT_QUOTE = re.compile("[「“‘]([^「」“”‘’\n。、，！？!?,.]{2,12})[」”’]")
_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc]{2,}(?:[・＝][\u30a1-\u30fa\u30fc]+)*")
_HAN_PERSON = re.compile("([\u4e00-\u9fff]{1,4})(?=さん|さま|ちゃん|くん|先生|博士|女士|小姐)")
_HANGUL_PERSON = re.compile("([\uac00-\ud7af]{2,4})(?= ?(?:씨|님|선생))")
_SEMITIC_QUOTE = re.compile('[«“"„]([\u0590-\u08ff][\u0590-\u08ff ]{1,40})[»”"]')


def titles(text: str) -> list[tuple[int, int, str]]:
    """Return `(start, end, type)` of titles in quotation marks or italics, without the marks.

    A quotation is a title if its weighty words all have capitals and there are two of them, or if a
    word such as "novel" or "called" introduces it; anything else is speech or emphasis.
    """
    if not _MARK.search(text):
        return []
    spans = []
    for match in _TITLE.finditer(text):
        group = 1 if match.group(1) else 2
        words = _WORD.findall(match.group(group))
        weighty = [w for w in words if w.casefold() not in voc.FUNCTION_WORDS]
        if not weighty or any(w.islower() for w in weighty) or words[0].islower():
            continue
        cue = _CUE.search(text, max(0, match.start() - 24), match.start())
        is_introduced = bool(cue) and cue is not None and cue.group(1).casefold() in voc.WORK_CUES
        if is_introduced or (len(weighty) > 1 and not _is_speech(text, match)):
            kind = "WORK" if is_introduced and cue and cue.group(1)[-2:] != "ed" else ""
            spans.append((*match.span(group), kind))
    return spans


def _is_speech(text: str, match: re.Match[str]) -> bool:
    """Return whether punctuation inside or before the marks shows direct speech."""
    before = text[: match.start()].rstrip()[-1:]
    inside = text[match.end() - 2 : match.end() - 1]
    return before in {",", ":", ""} or inside in {",", "."}


def uncased(text: str) -> list[tuple[int, int, str]]:
    """Return `(start, end, type)` of names in scripts without capital letters.

    Brackets for titles, Katakana runs, forms of address after a name, and short quotations.
    """
    if text.isascii() or not _UNCASED.search(text):
        return []
    spans = [(*m.span(1), "WORK") for m in _BRACKETS.finditer(text)]
    spans += [(*m.span(1), "PERSON") for m in _HAN_PERSON.finditer(text)]
    spans += [(*m.span(1), "PERSON") for m in _HANGUL_PERSON.finditer(text)]
    spans += [(*m.span(1), "") for m in _SEMITIC_QUOTE.finditer(text)]
    spans += [(*m.span(1), "") for m in _SHORT_QUOTE.finditer(text) if _UNCASED.search(m.group(1))]
    spans += [(*m.span(), "") for m in _KATAKANA.finditer(text)]
    return _without_overlap(spans)


def _without_overlap(found: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Keep the earliest, then the longest, of overlapping spans."""
    spans_kept: list[tuple[int, int, str]] = []
    for span in sorted(found, key=lambda s: (s[0], -s[1], s[2])):
        if not spans_kept or span[0] >= spans_kept[-1][1]:
            spans_kept.append(span)
    return spans_kept


MOST_NAMES = 80
"""Maximum number of entities per segment; a telephone directory would give hundreds."""

_REMEMBERED = 5000
"""Number of texts whose entities are cached: a batch of `add` is read twice, the second time when
all its questions are known."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One occurrence of an entity; `entity` is an index into `Tagged.mentions`."""

    start: int
    end: int
    entity: int


@dataclass(frozen=True, slots=True)
class Tagged:
    """The entities of a text and their occurrences, both in order."""

    mentions: tuple[Mention, ...]
    occurrences: tuple[Occurrence, ...]


@dataclass(slots=True)
class _TaggedName:
    """A name with the forms, types and spans found so far."""

    forms: Counter[str]
    kinds: Counter[str]
    spans: list[tuple[int, int]]


class RulesTagger:
    """An `EntityTagger` by rules; it needs no further installation."""

    name = "rules"

    async def tag(self, text: str) -> Sequence[Mention]:
        """Return the entities of one segment, in order of first occurrence."""
        return tagged(text).mentions

    async def close(self) -> None:
        """Do nothing; this tagger opens nothing."""


@lru_cache(maxsize=_REMEMBERED)
def tagged(text: str) -> Tagged:
    """Return entities with their places; cached, since tagger and reasoner both ask for them."""
    return gathered(text, _spans(text))


def gathered(text: str, spans: Iterable[tuple[int, int, str]]) -> Tagged:
    """Group the occurrences `(start, end, type)` of names into entities."""
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
    """Return all names as `(start, end, type)`; numbers and quoted titles precede capitals."""
    skipped = [(a, b, "") for a, b in apparatus(text)]
    spans = [(a, b, "DATE") for a, b in dates(text)]
    dates_and_numbers = [(a, b) for a, b, _ in spans]
    spans += [(a, b, "NUMBER") for a, b in numbers(text, dates_and_numbers)]
    spans = [span for span in spans if _is_free(span, skipped)] + skipped
    for span in (*titles(text), *uncased(text)):
        if _is_free(span, spans):
            spans.append(span)
    spans.sort()
    words = vocabulary_of(text)
    for run in runs(text, [(a, b) for a, b, _ in spans], words):
        spans.append((run.start, run.end, _kind(text, run)))
    return sorted(span for span in spans if span not in skipped)


def _is_free(span: tuple[int, int, str], found: Iterable[tuple[int, int, str]]) -> bool:
    return not any(a < span[1] and span[0] < b for a, b, _ in found)


def _kind(text: str, run: CapitalRun) -> str:
    """Return the type with strong evidence; else ""."""
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
    return "PERSON" if _speaks(text, run) or _has_body(text, run) else ""


_INITIAL = re.compile(r"(?:[^\W\d_]\.\s?)+")
_NEXT = re.compile(r"\s([a-z]+)\b")
_BEFORE = re.compile(r"\b([a-z]+)\s\Z")
_VERBS_BEFORE = voc.SPEECH_VERBS - {"asked", "answered"}
_SAID = r"(?P<verb>said|says|asked|answered|added)"
_OPENS = {"”": "“", '"': '"', "»": "«", "’": "‘", "'": "'"}
_CLOSES = {opening: closing for closing, opening in _OPENS.items()}
_AFTER_QUOTE = re.compile(rf"[”\"»’']\s(?:{_SAID}\s)?\Z")
_NO_SUBJECT = re.compile(r"\b(?:at|by|for|from|in|of|on)\s\Z")
_SAID_NEXT = re.compile(rf"\s{_SAID}\b(?:(?:\s[a-z]+){{0,3}}[,:]\s(?P<quote>[“\"«‘']))?")
_OF_ONE = re.compile(r"\b(?:I|me|my|myself)\b")
_STORY = re.compile(rf"[”\"»’']\s(?:[^\W\d_]+\s)?(?:{'|'.join(sorted(voc.SPEECH_VERBS))})\b")
_QUOTED = 300
"""Number of characters of a quotation that are looked at."""


_BODY = "|".join(sorted(voc.BODY_PARTS))
_OWNED = re.compile(rf"[’']s?\s(?:[a-z]+\s)?(?:{_BODY}|{'|'.join(sorted(voc.KIN))})\b")
_MOVED = re.compile(rf"\s([a-z]+)\s(?:his|her)\s(?:{_BODY}|head)\b")


def _has_body(text: str, run: CapitalRun) -> bool:
    """Whether a name has a face, a hand or a wife: Koerber's face, Koerber shook his head."""
    if run.possessive:
        return bool(_OWNED.match(text, run.end))
    moved = _MOVED.match(text, run.end)
    return moved is not None and moved[1] not in voc.FUNCTION_WORDS


def _speaks(text: str, run: CapitalRun) -> bool:
    """Whether a name is the subject of a verb that only people have, or says a quotation.

    "Said" and "announced" without a quotation also have firms and papers.
    """
    if _before(_NO_SUBJECT, text, run):
        return False  # the mayor of London said, a spokesman for Apple said
    following = _NEXT.match(text, run.end)
    if following and following.group(1) in voc.SPEECH_VERBS:
        return True
    before = _before(_BEFORE, text, run)
    if before is not None and before.group(1) in _VERBS_BEFORE:
        return True
    return _is_quoted(text, run)


def _before(pattern: re.Pattern[str], text: str, run: CapitalRun) -> re.Match[str] | None:
    """Return what stands right before a name."""
    return pattern.search(text, max(0, run.start - 12), run.start)


def _is_quoted(text: str, run: CapitalRun) -> bool:
    """Whether a name says a quotation, and so that it must be a person's.

    The news quotes firms and countries, too. One who says "I" is a person, and so is everyone in a
    story, in which people ask, reply or whisper.
    """
    quoted, said = _before(_AFTER_QUOTE, text, run), _SAID_NEXT.match(text, run.end)
    verbs = [match["verb"] for match in (quoted, said) if match and match["verb"]]
    if quoted:
        end = quoted.start()
        start = max(0, end - _QUOTED, text.rfind(_OPENS[text[end]], 0, end))
    elif said and said["quote"]:
        start = said.end()
        end = text.find(_CLOSES[said["quote"]], start, start + _QUOTED)
        end = end if end >= 0 else start + _QUOTED
    else:
        return False
    if not verbs:
        return False
    says_i = _OF_ONE.search(text, start, end)
    return verbs[0] in ("asked", "answered") or bool(says_i or _STORY.search(text))


def _by_form(text: str, spans: Iterable[tuple[int, int, str]]) -> list[_TaggedName]:
    """Group the occurrences of a name, regardless of case and line breaks."""
    names: dict[str, _TaggedName] = {}
    for start, end, kind in spans:
        form = " ".join(text[start:end].split())
        key = form.casefold()
        name = names.get(key)
        if name is None:
            name = names[key] = _TaggedName(Counter(), Counter(), [])
        name.forms[form] += 1
        name.spans.append((start, end))
        if kind:
            name.kinds[kind] += 1
    return list(names.values())


def _folded(names: list[_TaggedName]) -> list[_TaggedName]:
    """Merge a short name into the segment's only longer name that it can refer to."""
    order = sorted(names, key=lambda name: (-len(_best_form(name).split()), name.spans[0]))
    names_kept: list[_TaggedName] = []
    by_word: dict[str, list[_TaggedName]] = {}
    for name in order:
        words = _name_words(name)
        targets = (
            [t for t in by_word.get(words[0][-1], []) if _stands_for(name, t)] if words[0] else []
        )
        if len(targets) == 1:
            _take_in(targets[0], name)
            continue
        names_kept.append(name)
        for word in {words[0][0], words[0][-1]} if words[0] else ():
            by_word.setdefault(word, []).append(name)
    return names_kept


def _best_form(name: _TaggedName) -> str:
    """Return the fullest form: most words, then most frequent, then not all capitals."""
    if len(name.forms) == 1:
        return next(iter(name.forms))
    return max(name.forms, key=lambda f: (len(f.split()), name.forms[f], not f.isupper(), f))


def _name_words(name: _TaggedName) -> tuple[list[str], str]:
    """Return the words of a name without its title, and the title."""
    words = [w.rstrip(".") for w in _best_form(name).casefold().split()]
    if len(words) > 1 and words[0] in voc.TITLES:
        return words[1:], words[0]
    return words, ""


def _stands_for(short: _TaggedName, long: _TaggedName) -> bool:
    """Return whether a name begins or ends a longer one, and their titles do not differ."""
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
"""Titles before given names; several people may share the name: Otto need not be Abbot Otto."""


def _take_in(target: _TaggedName, name: _TaggedName) -> None:
    target.forms.update(name.forms)
    target.kinds.update(name.kinds)
    target.spans = sorted((*target.spans, *name.spans))


def _mention(name: _TaggedName) -> Mention:
    best = _best_form(name)
    if len(name.forms) == 1 and len(name.kinds) < 2:
        return Mention(best, next(iter(name.kinds), ""), (best,), name.forms[best])
    others = sorted(name.forms.keys() - {best}, key=lambda form: (-name.forms[form], form))
    kinds = name.kinds.most_common(2)
    kind = kinds[0][0] if kinds and (len(kinds) == 1 or kinds[0][1] > kinds[1][1]) else ""
    return Mention(best, kind, (best, *others), sum(name.forms.values()))
