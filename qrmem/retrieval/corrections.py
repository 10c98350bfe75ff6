"""Heuristic detection of turns that correct earlier turns of a conversation, for English.

It compares numbers, dates and times: their units, their topics, their changes.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from qrmem.retrieval.wishes import undoes, wishes
from qrmem.text.quantities import quantities, updated_by
from qrmem.text.times import DAYS, MONTHS
from qrmem.text.words import terms
from qrmem.types import Turn

_SAYS_SO = re.compile(
    r"\b(?:(?<![a-z] )actually|actually(?=[.!?,]|$)|correction|scratch that"
    r"|(?:no|any) longer|anymore|any more(?!\s\w)|i mean"
    r"|i meant|(?<!you['’]re )wrong|mistaken|change of plans?|typo"
    r"|mis(?:typed|read|heard|spoke|remembered)"
    r"|after all|(?<!how it )turns out|from now on|as of|instead(?! of)|rather than|used to"
    r"|changed my mind|gone off|(?:been|got|has|have|was|were) (?:moved|changed|delayed|pushed back"
    r"|brought forward|put off|called off)|renamed"
    r"|rescheduled|postponed?|traded|exchanged|cancel+ed|replaced|swapped"
    r"|took over|taken over|switched (?:to|from))\b",
    re.IGNORECASE,
)
"""Words for a change of state."""
_ENDS = re.compile(
    r"(?<!n['’]t )(?<!\bnot )(?<!\bnever )\b(?:quit|retired|resigned|left|sold|divorced|stopped"
    r"|gave up|given up|dropped out|checked out|broke (?:down|up)|cut down)\b",
    re.IGNORECASE,
)
"""Words that end a state."""
_DENIES = re.compile(
    r"\b(?:not|never|(?!can['’]t (?:wait|believe|imagine))\w+n['’]t|without)\b", re.IGNORECASE
)
"""Words that deny a statement."""
_ATTRIBUTE = re.compile(
    r"((?:my|our|his|her|the)\s[^.;,]*\b(?:favou?rite|name|number|password|code|address|size|age"
    r"|birthday|job|boss)\b[^.;,]*?)\s(?:is|are)\s([^.;,]+)",
    re.IGNORECASE,
)
"""Things that a person has one of, with a value."""
_CLOCK = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|noon|midnight"
_HINTS = re.compile(
    r"\b(?:actually|(?<!for )now|nowadays|these days|sorry|new|moved|changed|raised"
    r"|lowered|goes (?:up|down)|went (?:up|down)|is (?:up|down)|increased|reduced|extended"
    r"|shortened|pushed|shifted|updated?|since|meanwhile|not|(?:up|down) to"
    r"|but it['’]s (?:(?:now|really|on|at|in|for) )*(?:(?-i:[A-Z\d])\w*|" + _CLOCK + r"))\b",
    re.IGNORECASE,
)
"""Hints of a correction, if the sentence has another number or name."""
_CHANGING = re.compile(
    r"(?:^|[.;:!?,]\s+)(?:the|our|my|his|her|their|this)\s+((?:[\w'’-]+\s+){1,3}?)"
    r"(?:(?:in|at|with|to|from|on|for)\s(?:[\w'’-]+\s+){1,4}?)?"
    r"(?:(?:is|was|has|have|had|got|been|just|now|will|be)\s+)*"
    r"(?:moved|changed|delayed|postponed|rescheduled|shifted|pushed|put off|cancel+ed"
    r"|called off)\b",
    re.IGNORECASE,
)
"""A thing that changed: "The meeting has moved"."""
_LIVES = re.compile(
    r"\b(?:I|we)(?:['’]m| am|['’]re| are)? (?:now |currently )?(?:live|living|based) (?:now )?in"
    r" ([A-Z]\w+)"
)
_MOVES = re.compile(
    r"\b(?:I|we)(?:['’]ve| have)? (?:just |recently )?(?:moved|relocated)"
    r"(?: from \w+)? to ([A-Z]\w+)"
)
"""Where a person lives, with the place last."""
_CALLED = re.compile(
    r"\b(?:my|our|the) (?:name of (?:my|our|the) )?(\w+)(?:['’]s name)? (?:is|are)"
    r" (?:now )?(?:called |named )?([A-Z]\w+)",
    re.IGNORECASE,
)
"""The name of somebody's animal, boat or child; only with a word for it (`_NAMING`)."""
_NAMING = re.compile(r"\bname of\b|['’]s name\b|\bcalled\b|\bnamed\b", re.IGNORECASE)
_AGAIN = re.compile(r"\b(?:again|after all)\b", re.IGNORECASE)
_GREETING = r"^(?:Hey|Hi|Hello|Sure|Yeah|Yes|Wow|Woah|Thanks|Congrats|Agreed)"
_ADDRESSED = re.compile(
    rf"(?:,|{_GREETING})\s[A-Z]\w+(?=[.!?]|$)|{_GREETING},?\s[A-Z]\w+(?=,)", re.MULTILINE
)
"""The name of the person spoken to, which is no topic: "Thanks, Maria!"."""
_OPENING = re.compile(
    r"(?:oh |ah |wait |hm+ |sorry |no )*(?:actually|correction|sorry|wait|no|i mean|i meant"
    r"|make (?:it|that)|scratch that|on second thought)\b",
    re.IGNORECASE,
)
"""Beginnings of a turn that corrects the previous one without repeating its topic."""
_STATE = re.compile(
    r"\b(?:is|are|am|has|have|will|leaves?|starts?|ends?|begins?|opens?|closes?|costs?|lives?|works?"
    r"|takes?|arrives?|belongs?|prefers?|likes?|loves?|needs?|plays?|weighs?|drinks?|eats?|drives?"
    r"|uses?|studies|study|smokes?|goes|go|wants?|plans?|meets?|runs?)\b|['’](?:s|m|re|ll)\b",
    re.IGNORECASE,
)
"""Verbs of lasting states; a similar later event does not undo an event."""
_COMMON = "like love live work play go need want plan run drink eat use take start end leave"
_VERBS = frozenset(terms(_COMMON))
"""Verbs that are no evidence of a common topic by themselves."""
_TALK = frozenset(
    terms(
        "yeah yep yes wow hey oh sure thanks really totally definitely great awesome amazing cool"
        " nice good glad best keep time thing word moment pic photo picture share"
    )
)
"""Words of a chat that are no topic."""
_DATES = frozenset(terms(" ".join([*MONTHS, *DAYS])))
"""Words of a date, which two things may have in common."""
_VALUE = re.compile(rf"\d[\d.,:]*\d|\d|(?<=[\w,;’'] )[^\W\d_a-z]\w+|\b(?:{_CLOCK})\b")
_FROM_TO = re.compile(r"\bfrom\b.+\bto\b|\bnot\b|\bbut it['’]s\b", re.IGNORECASE)
_CODE_LINE = re.compile(
    r"[{};=]\s*$|\w\([^()\n]*\)|\w\[['\"]|^\s*[\w.]+\s[+-]?=\s|```", re.MULTILINE
)
"""Signs of code; a part of a turn may have some without a fence around it."""
_SERIES = re.compile(r"\b([^\W\d_]{3,})\s(\d+)\b(?!\s*[ap]\.?m)")
REPLY = 2
"""Maximum number of turns until a correction that does not repeat the topic."""
_SHORT = 7
"""Maximum number of words of a turn that corrects the previous one without a common word."""
MARKED, NAMED, _HALF, _ALIKE, _WHOLE = 0.3, 0.2, 0.4, 0.6, 0.75
"""Share of the shorter turn's words that both must have: if the later one says so, if they share a
name, if it ends a state, and if it says nothing of the kind; of the earlier one's, if it denies."""
_LIST = 2
_BRIEF = 25
"""Maximum number of words of a turn that is compared as a whole."""
_SHARED = 1.45
"""Least common weight of the words around two numbers; a word of only one part weighs 1."""
_PRIOR = 50
"""Number of parts added to a conversation's own, as no word is frequent in a short one."""


class Rarity(NamedTuple):
    """Rarity of words in a conversation.

    Attributes:
        counts: term to the number of parts with it.
        total: number of parts.
    """

    counts: Mapping[str, int]
    total: int

    def of(self, words: Collection[str]) -> float:
        """Return the weight of terms; a word of only one part weighs 1."""
        size = self.total + _PRIOR
        most = math.log1p(size)
        return sum(math.log1p(size / max(1, self.counts.get(word, 1))) / most for word in words)


def corrections(
    turns: Sequence[Turn], later: Sequence[Turn], rarity: Rarity | None = None
) -> dict[str, list[Turn]]:
    """Return turns that seem to be corrected, by id, with the later turns or parts that do so.

    Sentences of one person are compared. A short one corrects an earlier short one in three cases:
    it says so ("actually", "no longer", "cancelled"); it hints at it ("now", "new") and has another
    number or name; or it states the same with another number or name. Many such statements
    are a list, which corrects nothing. Any sentence corrects one with another number of the same
    unit if it states a change ("has now reached 165 commits") and the words around both numbers
    agree. A short turn that begins with "no, make it …" corrects the previous one. This is a
    heuristic for English: both turns are shown, with their times.

    Args:
        turns: turns that may be corrected.
        later: turns that may correct them; those that are not later are ignored.
        rarity: rarity of the terms from `shared_terms`; without it all are equally rare.
    """
    rarity = rarity or Rarity({}, 0)
    result = {}
    for turn in turns:
        after = [u for u in later if u.number > turn.number and _is_of_one(u, turn)]
        kinds = [(u, kind) for u in after if (kind := _kind(u.text, turn.text, rarity))]
        is_list = sum(kind == "alike" for _, kind in kinds) > _LIST
        correcting = [u for u, kind in kinds if kind == "marked" or not is_list]
        following = min(after, key=lambda u: u.number, default=None)
        is_next = following is not None and following.number <= turn.number + REPLY
        if following is not None and is_next and _is_elliptical(following.text, turn.text):
            correcting.append(following)
        if correcting:
            result[turn.id] = list({u.id: u for u in reversed(correcting)}.values())[::-1]
    return result


def corrected_wishes(turns: Sequence[Turn], others: Sequence[Turn]) -> dict[str, list[Turn]]:
    """Return wishes that later wishes seem to correct, by turn id; no other words are compared.

    Args:
        turns: turns, or parts of them.
        others: further turns, with wishes that may correct them.
    """
    wished = [
        [replace(t, text=text) for t in some if t.role == "user" and (text := wishes(t.text))]
        for some in (turns, others)
    ]
    return corrections(wished[0], [*wished[0], *wished[1]])


def may_be_corrected(text: str) -> bool:
    """Return whether a distant later turn may correct a text: if it has a number or is short.

    The turns directly after a text may always correct it.
    """
    return bool(quantities(text)) or (_is_brief(text) and not text.rstrip().endswith("?"))


def shared_terms(turns: Sequence[Turn], later: Sequence[Turn]) -> set[str]:
    """Return the terms whose rarity is needed to compare some turns with later ones."""
    return {
        term
        for turn in turns
        for other in later
        if other.number > turn.number and _is_of_one(other, turn)
        for shared in updated_by(turn.text, other.text)
        for term in shared
    }


def _kind(later: str, earlier: str, rarity: Rarity) -> str:
    """Return `marked`, `alike`, or "" for a text that corrects nothing of the other."""
    if any(rarity.of(shared) >= _SHARED for shared in updated_by(earlier, later)):
        return "marked"
    return _corrects(later, earlier) if _is_brief(earlier) and _is_brief_prose(later) else ""


@lru_cache(4096)  # cached, as each turn is compared with many
def _is_brief(text: str) -> bool:
    return len(text.split()) <= _BRIEF


@lru_cache(4096)
def _is_brief_prose(text: str) -> bool:
    return _is_brief(text) and not _CODE_LINE.search(text)


def _is_of_one(first: Turn, second: Turn) -> bool:
    is_same = (first.role, first.user) == (second.role, second.user)
    # A turn without a name may be from anybody with that role.
    return is_same and (not first.speaker or not second.speaker or first.speaker == second.speaker)


def _corrects(later: str, earlier: str) -> str:
    """Return `marked`, `alike`, or "" for a turn that corrects nothing of the other."""
    if undoes(later, earlier):
        return "marked"
    if later.rstrip().endswith("?") or earlier.rstrip().endswith("?"):
        return ""
    if _is_elsewhere(later, earlier) or _is_renamed(later, earlier):
        return "marked"
    later, earlier = _unaddressed(later), _unaddressed(earlier)
    mine, theirs = _terms(later) - _TALK, _terms(earlier) - _TALK
    shared = mine & theirs
    share = len(shared) / max(1, min(len(mine), len(theirs)))
    if _topics(shared) <= _VERBS or share < min(NAMED, MARKED) - 1e-9:
        return ""
    new, old = set(_VALUE.findall(later)), set(_VALUE.findall(earlier))
    has_name = any(not shared.isdisjoint(terms(word)) for word in old if word[0].isupper())
    if share < (NAMED if has_name else MARKED) - 1e-9:
        return ""
    if _is_of_another(later, theirs):
        return ""
    is_other, holds = bool(new - old), bool(_STATE.search(earlier))
    if _has_new_mark(_SAYS_SO, later, earlier) and (len(shared) > 1 or holds):
        return "marked"
    if _has_new_mark(_ENDS, later, earlier) and holds and (has_name or share >= _HALF):
        return "marked"
    if _has_new_mark(_DENIES, later, earlier) and holds and len(shared) >= _WHOLE * len(theirs):
        return "marked"
    is_resumed = _AGAIN.search(later) and _DENIES.search(earlier) and not _DENIES.search(later)
    if is_resumed and holds and len(shared) >= _WHOLE * len(theirs):
        return "marked"
    is_replaced = is_other and bool(old - new or _FROM_TO.search(later))
    if _has_new_mark(_HINTS, later, earlier) and is_replaced:
        return "marked"
    one, other = _ATTRIBUTE.match(earlier), _ATTRIBUTE.match(later)
    if one and other and terms(one[1]) == terms(other[1]) and terms(one[2]) != terms(other[2]):
        return "alike"
    is_same = share >= _ALIKE and len(shared) > 1 and is_other and bool(old - new)
    names = {word.casefold() for word, _ in _SERIES.findall(earlier)} & {
        word.casefold() for word, _ in _SERIES.findall(later)
    }
    extra = mine - theirs - {term for value in new for term in terms(value)}
    if is_same and not extra and not names and _STATE.search(later) and _STATE.search(earlier):
        return "alike"
    return ""


def _topics(words: Collection[str]) -> set[str]:
    return {word for word in words if word not in _DATES and not word.isdigit()}


def _is_of_another(later: str, theirs: Collection[str]) -> bool:
    """Return whether a text tells a change of something that the other text does not name."""
    changed = _CHANGING.search(later)
    topics = _topics(terms(changed[1])) if changed else set()
    return bool(topics) and topics.isdisjoint(theirs)


def _is_elsewhere(later: str, earlier: str) -> bool:
    """Return whether somebody lives in one place, and later in another one."""
    old = _LIVES.search(earlier)
    new = old and (_MOVES.search(later) or _LIVES.search(later))
    return bool(old and new and old[1] != new[1])


def _is_renamed(later: str, earlier: str) -> bool:
    """Return whether the same animal, boat or child has two names."""
    old, new = _names(earlier), _names(later)
    return any(old[one] != new[one] for one in old.keys() & new.keys())


@lru_cache(4096)
def _names(text: str) -> dict[str, str]:
    naming_matches = (match for match in _CALLED.finditer(text) if _NAMING.search(match.group()))
    return {match[1].casefold(): match[2].casefold() for match in naming_matches}


@lru_cache(4096)
def _unaddressed(text: str) -> str:
    return _ADDRESSED.sub("", text)


@lru_cache(4096)  # cached, as each turn is compared with many
def _terms(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def _has_new_mark(marks: re.Pattern[str], later: str, earlier: str) -> bool:
    """Return whether the later text has a mark that the earlier one does not have."""
    marks_of_later = {match.group().casefold() for match in marks.finditer(later)}
    return bool(marks_of_later - {match.group().casefold() for match in marks.finditer(earlier)})


def _is_elliptical(later: str, earlier: str) -> bool:
    """Return whether a turn is short, begins like a correction, and has another number or name."""
    if len(later.split()) > _SHORT or later.rstrip().endswith("?") or not _OPENING.match(later):
        return False
    new, old = set(_VALUE.findall(later)), set(_VALUE.findall(earlier))
    return bool(new - old) and bool(old)
