"""Whether an English sentence looks back or ahead at a time that it names."""

import re
from typing import NamedTuple

_IRREGULAR = (
    "was were had did been went came got gone left saw seen met took taken gave given made said"
    " told knew known thought found bought brought sold paid sent spent kept held lost won ran"
    " began begun"
    " wrote written drove driven flew flown ate eaten drank spoke spoken broke broken chose chosen"
    " fell fallen grew grown rode rose sang swam threw wore woke built felt heard learnt led lent"
    " meant slept stood taught caught fought sat lay laid shot stuck struck swore understood became"
    " forgot forgotten forgave hid hidden drew drawn blew froze stole born died done hung dug fed"
    " fled sought shook tore wept wound"
)
_NO_PAST = (
    r"(?<!\ba\s)(?<!\ban\s)(?<!\bthe\s)(?<!\bmy\s)"
    r"(?!(?:need|feed|speed|bleed|breed|seed|indeed|exceed|proceed|succeed|bed|red)\b)"
)
_BE = r"(?:am|is|are|be|i['’]m|(?:we|you|they)['’]re|(?:it|he|she|that|there|what|when)['’]s)"
_VERBS = re.compile(
    rf"""(?<![\w-])(?:(?P<ahead>
    (?:{_BE}(?:\s+\w+)?|get)\s+\w+ed
  | (?:decided|agreed|promised|asked|reminded|invited|told)(?:\s+(?:me|us|him|her|them|you))?\s+to
  | (?:could|would)\s+(?:you|we|i)
  | will|won['’]t|\w+['’]ll|shall|must|can|may|should|going\s+to|have\s+to|has\s+to|{_BE}
  | needs?|wants?|hopes?|hoping|plans?|planned|planning|scheduled|expects?|expected|intends?
  | leaves|starts|begins|ends|expires|runs|opens|closes|arrives|departs|goes|comes|flies|moves
  | takes|turns|gets|has|visits|returns|continues
  )|(?P<back>{"|".join(_IRREGULAR.split())}|{_NO_PAST}\w+ed))\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Verbs that tell when something is; the longest reading comes first."""
_PLAIN = re.compile(
    r"\b(?:i|we|you|he|she|they|it)\s+(?!(?:put|cut|let|set|hit|read|quit|hurt|shut|split|beat)\b)"
    r"[a-z]\w+|\b(?:deadline|due|appointment|reservation|upcoming|let['’]?s|let us)\b",
    re.IGNORECASE,
)
"""What looks ahead where no verb decides: a verb in the present, a thing that is to come."""
_MOVED = re.compile(
    r"\b(?:mov(?:ed|ing)|shift(?:ed|ing)|postponed|rescheduled|pushed|put|delayed|extended|set|fixed|scheduled|planned"
    r"|booked|reserved|arranged|invited|changed|brought)\b[^.;!?]*\b(?:to|for|until|till|through)\s*(?:the\s*)?$",
    re.IGNORECASE,
)
"""A plan that was made for a time: "moved to 5 May", "booked a table for Friday"."""
_LIMIT = re.compile(r"\b(?:by|until|till)\s*(?:the\s*)?$", re.IGNORECASE)
_SINCE = re.compile(r"\bsince\s*(?:the\s*)?$", re.IGNORECASE)
_WORD = re.compile(r"\S+")
_NEAR, _BESIDE = 9, 4
"""Words before a time among which a verb decides, and among which it is sure to."""
_SENTENCE = re.compile(r"[.!?;]\s+|\n")
_CLAUSE = re.compile(r",\s+(?:and|but|so|yet|because|while|although)\s+", re.IGNORECASE)


class Direction(NamedTuple):
    """Where a time lies by its sentence.

    Attributes:
        step: -1 if it lies behind, 1 if it lies ahead, 0 where nothing says so.
        is_sure: whether the verb stands right before the time.
    """

    step: int
    is_sure: bool = False


def direction(text: str, start: int, end: int) -> Direction:
    """Return whether a sentence looks back or ahead at a time.

    Args:
        text: in English.
        start: where the time begins in the text, without a preposition.
        end: where it ends.
    """
    first, last = _around(_SENTENCE, text, start, end)
    clause = _around(_CLAUSE, text[first:last], start - first, end - first)
    before, after = text[first + clause[0] : start], text[end : first + clause[1]]
    if _SINCE.search(before):
        return Direction(-1, True)
    if _MOVED.search(before):
        return Direction(1)
    if found := _last_verb(before, _BESIDE):
        return Direction(found, True)
    if found := _last_verb(before, _NEAR) or _first_verb(after):
        return Direction(found)
    if _LIMIT.search(before) or _PLAIN.search(f"{before} … {after}"):
        return Direction(1)
    return Direction(_last_verb(text[first:start], _NEAR) or _first_verb(text[end:last]))


def _around(breaks: re.Pattern[str], text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds of the piece between two breaks that holds a place."""
    first = max((m.end() for m in breaks.finditer(text, 0, start)), default=0)
    after = breaks.search(text, end)
    return first, after.start() if after else len(text)


def _last_verb(before: str, words: int) -> int:
    """Return what the last verb among some last words says."""
    near = [*_WORD.finditer(before)][-words:]
    verbs = [*_VERBS.finditer(before)][-1:]
    return _step([verb for verb in verbs if verb.end() > near[0].start()])


def _first_verb(after: str) -> int:
    return _step([*_VERBS.finditer(after)][:1])


def _step(verbs: list[re.Match[str]]) -> int:
    return (1 if verbs[0]["ahead"] else -1) if verbs else 0
