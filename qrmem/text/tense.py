"""Whether a time in an English sentence is in the past or in the future, by its verbs."""

import re
from typing import NamedTuple

from qrmem.text import listed

_IRREGULAR = "|".join(listed("irregular-past-forms").split())
_NO_PAST = (
    r"(?<!\ba\s)(?<!\ban\s)(?<!\bthe\s)(?<!\bmy\s)"
    r"(?!(?:need|feed|speed|bleed|breed|seed|indeed|exceed|proceed|succeed|bed|red)\b)"
)
_BE = r"(?:am|is|are|be|i['’]m|(?:we|you|they)['’]re|(?:it|he|she|that|there|what|when)['’]s)"
_VERBS = re.compile(
    rf"""(?<![\w-])(?:(?P<open>(?:was|were)(?:n['’]t|\s+not)?\s+
    (?:going|supposed|meant|planning|hoping|about|due)\s+to
  )|(?P<ahead>
    (?:will|won['’]t|\w+['’]ll)\s+(?:\w+\s+)?have\s+(?:been\s+)?\w+
  | would(?:n['’]t)?(?!\s+(?:\w+\s+)?have\b)
  |
    (?:{_BE}(?:\s+\w+)?|gets?)\s+\w+ed
  | (?:decided|agreed|promised|asked|reminded|invited|told)(?:\s+(?:me|us|him|her|them|you))?\s+to
  | could\s+(?:you|we|i)|(?:have|has|\w+['’](?:ve|s))\s+got
  | will|won['’]t|\w+['’]ll|shall|must|can|may|should|going\s+to|have\s+to|has\s+to|{_BE}
  | needs?|wants?|hopes?|hoping|plans?|planned|planning|scheduled|expects?|expected|intends?
  | leaves|starts|begins|ends|expires|runs|opens|closes|arrives|departs|goes|comes|flies|moves
  | takes|turns|gets|has|visits|returns|continues
  )|(?P<back>{_IRREGULAR}|{_NO_PAST}\w+ed))\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Verbs that tell past or future, or allow both; the longest reading comes first."""
_PLAIN = re.compile(
    r"\b(?:i|we|you|he|she|they|it)\s+(?!(?:put|cut|let|set|hit|read|quit|hurt|shut|split|beat)\b)"
    r"[a-z]\w+|\b(?:deadline|due|appointment|reservation|upcoming|let['’]?s|let us)\b",
    re.IGNORECASE,
)
"""Words for the future if no verb decides: a verb in the present, a coming event."""
_MOVED = re.compile(
    r"\b(?:mov(?:ed|ing)|shift(?:ed|ing)|postponed|rescheduled|pushed|put|delayed|extended|set|fixed|scheduled|planned"
    r"|booked|reserved|arranged|invited|changed|brought)\b[^.;!?]*(?:\b(?:to|for|until|till|through)|→)\s*(?:the\s*)?"
    r"(?:(?:\d{1,2}(?:[:.]\d\d)?(?:\s*[ap]\.?m\.?|\s+o['’]clock)?|noon|midnight)\s+on\s*(?:the\s*)?)?$",
    re.IGNORECASE,
)
"""A plan for a time: "moved to 5 May", "booked a table for Friday", "put it to 9:30 on 3 June"."""
_ARRANGED = re.compile(
    r"\b(?:(?:signed\s+up|registered|enrol+ed)\s+(?:for|in|at)|(?:booked|reserved)"
    r"|(?:bought|got|ordered)\s+(?:\w+\s+){0,2}tickets?)\s[^.;,!?]*\b(?:on|in)\s*(?:the\s*)?$",
    re.IGNORECASE,
)
"""A time of an arrangement or of the event: "I signed up for a marathon in October"."""
_LIMIT = re.compile(r"\b(?:by|until|till)\s*(?:the\s*)?$", re.IGNORECASE)
_SINCE = re.compile(r"\bsince\s*(?:the\s*)?$", re.IGNORECASE)
_WORD = re.compile(r"\S+")
_NEAR, _BESIDE = 9, 4
"""Number of words before a time in which a verb may decide, and in which it surely does."""
_AROUND = 150
"""Number of characters before a time, and behind it, that are looked at."""
SENTENCE = re.compile(r"[.!?;]\s+|\n")
"""What stands between two sentences, or two statements of one."""
_CLAUSE = re.compile(r",\s+(?:and|but|so|yet|because|while|although)\s+", re.IGNORECASE)


class Direction(NamedTuple):
    """Whether a time is in the past or in the future, by its sentence.

    Attributes:
        step: -1 in the past, 1 in the future, 0 if nothing tells.
        is_sure: whether the verb is right before the time.
        is_open: whether the words allow both.
    """

    step: int
    is_sure: bool = False
    is_open: bool = False


def direction(text: str, start: int, end: int) -> Direction:
    """Return whether a time in a sentence is in the past or in the future.

    Args:
        text: an English text.
        start: position of the time in the text, without a preposition.
        end: the position after it.
    """
    begin = max(0, start - _AROUND)
    text, start, end = text[begin : end + _AROUND], start - begin, end - begin
    first, last = _around(SENTENCE, text, start, end)
    clause = _around(_CLAUSE, text[first:last], start - first, end - first)
    before, after = text[first + clause[0] : start], text[end : first + clause[1]]
    if _SINCE.search(before):
        return Direction(-1, True)
    if _MOVED.search(before):
        return Direction(1)
    if _ARRANGED.search(before):
        return Direction(0, is_open=True)
    if verb := _last_verb(before, _BESIDE):
        return verb._replace(is_sure=bool(verb.step))
    if verb := _last_verb(before, _NEAR) or _first_verb(after):
        return verb
    if _LIMIT.search(before) or _PLAIN.search(f"{before} … {after}"):
        return Direction(1)
    return _last_verb(text[first:start], _NEAR) or _first_verb(text[end:last]) or Direction(0)


def _around(breaks: re.Pattern[str], text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds of the piece around a position, between two breaks."""
    first = max((m.end() for m in breaks.finditer(text, 0, start)), default=0)
    after = breaks.search(text, end)
    return first, after.start() if after else len(text)


def _last_verb(before: str, words: int) -> Direction | None:
    """Return the direction by the last verb among some last words."""
    words_near = [*_WORD.finditer(before)][-words:]
    verbs = [*_VERBS.finditer(before)][-1:]
    return _told([verb for verb in verbs if verb.end() > words_near[0].start()])


def _first_verb(after: str) -> Direction | None:
    return _told([*_VERBS.finditer(after)][:1])


def _told(verbs: list[re.Match[str]]) -> Direction | None:
    if not verbs:
        return None
    if verbs[0]["open"]:
        return Direction(0, is_open=True)
    return Direction(1 if verbs[0]["ahead"] else -1)
