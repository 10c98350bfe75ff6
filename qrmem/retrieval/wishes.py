"""Standing wishes of users, and limits of their health or diet: guesses from English words."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from qrmem.text.sentences import sentences
from qrmem.text.words import terms

HEALTH_KEY = "health"
"""Metadata key of a turn that may state limits of its user's health or diet."""
GENERAL_KEY = "general"
"""Metadata key of a turn that may state a wish or a limit that applies to every answer."""
INSTRUCTION_KEY = "instruction"
"""Metadata key of a turn that may state a wish which is more than a preference."""

_ANSWER = r"(?:answers?|repl(?:y|ies)|responses?|messages?|explanations?|summar(?:y|ies))"
_LEAD = (
    r"^\W*(?:(?:actually|also|and|but|so|well|oh|ok(?:ay)?|yes|yeah|no|by the way|remember|please"
    r"|then|just|one more thing|in future|from now on)\b[,:]? )*"
)
"""What a sentence may begin with, before what it asks for."""
_ASKED = (
    rf"{_LEAD}(?:(?:you (?:should|must)|(?:can|could|would) you(?: please)?"
    r"|i(?:['’]d| would)? (?:like|want|need) you to) )?"
)
_TELL = (
    r"(?:answer|reply|respond|give|show|write|use|explain|include|add|list|format|suggest"
    r"|recommend|mention|tell|call|address|speak|talk|keep|provide|quote|cite|start|begin|end"
    r"|ask|assume|say|convert|translate|round|spell|state|specify|report|highlight)\b"
)
"""What a user asks an assistant to do in its answers."""
_ALWAYS = (
    rf"{_ASKED}(?:always|never) (?!(?:mind|ever|again|too|so|been|heard|seen|saw|had|knew|thought"
    r"|got|a|an|the|in|on|at|when|to|good|nice|great|better|more|my|our|his|her|their|i|we|you|it"
    r"|know|\w+(?:ed|ing|ly))\b)\w"
)
_TELLING = (
    r"(?:answering|replying|responding|giving|showing|writing|using|explaining|including|adding"
    r"|listing|formatting|suggesting|recommending|mentioning|telling|calling|addressing|providing"
    r"|quoting|citing|starting|beginning|ending|asking|assuming|saying|converting|translating"
    r"|rounding|stating|apologi[sz]ing|repeating|reminding|warning)\b"
)
_WITHDRAWN = (
    rf"{_ASKED}(?:you (?:can|may) )?(?:please )?(?:stop {_TELLING} (?!to\b)\w"
    r"|(?:forget|ignore|disregard|never mind) (?:what|everything|all)(?: that)? i(?:['’]ve| have)?"
    r" (?:said|told you|asked(?: you)?|wrote)(?: before| earlier)? about \w)"
    rf"|{_LEAD}you (?:can|may)(?: now)? (?:answer|reply|respond|give|show|write|use|include|add"
    r"|list|format|mention|quote|cite|call me) [^.!?]*\bagain\b"
    rf"|{_LEAD}you (?:no longer (?:have|need) to {_TELL}"
    rf"|(?:don['’]t|do not) (?:have|need) to {_TELL}[^.!?]* (?:any ?more|any longer)\b)"
)
"""What takes an earlier wish back: "Stop calling me Bo", "Forget what I said about lists"."""
_ORDERED = (
    rf"{_LEAD}(?:(?:(?:make|be) sure (?:to|(?:that )?you)|(?:don['’]t|do not)(?: ever)?) {_TELL}"
    rf"|(?:make|be) sure (?:to|(?:that )?you) (?:warn|remind|alert) me\b|avoid \w"
    rf"|(?:keep|make) (?:all |your |the |my )*{_ANSWER}\b|call me (?-i:[A-Z])"
    rf"|i (?:don['’]t|do not) want you to {_TELL})|{_WITHDRAWN}"
)
_WRITING = r"(?:texts?|e-?mails?|letters?|drafts?|posts?|captions?)"
_UNWANTED = (
    rf"{_LEAD}i (?:don['’]t|do not|never) want (?:any |more )?"
    r"(?!to\b|\w* ?(?:mistakes?|errors?|typos?|bugs?|gaps?|issues?|problems?)\b)"
    rf"\w+(?: \w+)? in (?:any |all |the |your |my |our |\w+ )?(?:{_ANSWER}|{_WRITING})\b"
)
_ALWAYS_WANTS = rf"{_LEAD}(?:i|we) always want (?!to\b|the best\b|more\b)\w"
_FROM_NOW = rf"\bfrom now on\b|\bin (?:every|each|all)(?: of)?(?: your| my)? {_ANSWER}\b"
_IF_ASKED = r"\b(?:when(?:ever)?|every time|each time|if) i ask\b"
_PREFERS = (
    r"\b(?:i|we)(?:['’]d| would)?(?: \w+ly| always| still| also| much)? prefer\b"
    r"|\b(?:my|our) prefer(?:ence|red)|\b(?:i|we)(?:['’]d| would) (?:much )?rather\b"
    r"|\bi (?:really |always )?(?:don['’]t |do not )?(?:like|want)"
    r" (?:my|it|your|all|short|long)\b"
    rf"|{_ALWAYS_WANTS}|{_UNWANTED}"
)
_STANDING = re.compile("|".join((_ALWAYS, _ORDERED, _FROM_NOW, _IF_ASKED, _PREFERS)), re.IGNORECASE)
_INSTRUCTION = re.compile("|".join((_ALWAYS, _ORDERED, _FROM_NOW, _IF_ASKED)), re.IGNORECASE)
_GENERAL = re.compile(
    rf"{_ASKED}(?:always|never) {_TELL}|{_ORDERED}|{_FROM_NOW}|{_UNWANTED}"
    rf"|(?:{_PREFERS}).*\b(?:{_ANSWER}|bullets?|bullet points|lists|paragraphs|units|tables)\b",
    re.IGNORECASE,
)
_TAKES_BACK = re.compile(rf"(?:{_WITHDRAWN})[^,;:.!?]*", re.IGNORECASE)
_STOPS = re.compile(r"\bstop\b|\bneed to\b|\bhave to\b", re.IGNORECASE)
_DENIES = re.compile(r"\b(?:never|not|no|without|avoid|\w+n['’]t)\b", re.IGNORECASE)
_CALLED = re.compile(
    r"(?:^|[,;.!?] |\b(?i:always|please|now on|now|just|and|can) )[Cc]all me"
    r" (?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)([A-Z]\w+)"
)
"""The name by which users want to be addressed."""
_NO_TOPIC = frozenset(
    terms(
        "always never please stop forget ignore disregard mind what everything all said told asked"
        " wrote before earlier again longer need have any more call use give show write answer"
        " reply respond include add list mention tell don't do not"
    )
)
"""Words of wishes that do not say what they are about."""
_SAME = 0.75
"""Share of the words of either wish that both must have if one says "always", and one "never"."""
_OF_SOMETHING = re.compile(
    rf"{_IF_ASKED}|\b(?:when(?:ever)?|if|before|after|unless|for)\b"
    rf"|\b(?:{_ANSWER}|{_WRITING}) (?:on|about|to)\b",
    re.IGNORECASE,
)
"""Words by which a wish is about one subject, or for one case."""
_ILL = (
    r"(?:diabet|asthma|epilep|migraine|arthrit|ana?emi|co?eliac|allerg|intoleran|hypertension"
    r"|blood pressure|heart condition|\w+ (?:allergy|intolerance|disease|disorder|syndrome)\b)"
)
_HEALTH = re.compile(
    r"\b(?:i|we)(?:['’](?:m|re)| am| are|['’]ve been| have been)"
    r"(?: (?:a|an|not|no longer|now|also|still|both|very|\w+ly))*"
    r" (?:allergic|(?:\w+[- ])?intolerant|vegan|vegetarian|pescatarian|diabetic|asthmatic"
    r"|epileptic|co?eliac|pregnant|breastfeeding|teetotal|sober)\b"
    r"|\bi (?:can['’]t|cannot|can no longer|don['’]t|do not|never|no longer|mustn['’]t)(?: \w+ly)?"
    r" (?:eat|drink|tolerate|digest)\b"
    r"|\bi(?:['’]ve| have|['’]ve got| suffer from| was (?:just |recently )?diagnosed with)"
    rf"(?: been diagnosed with| got| a| an| type| mild| severe| high| low| \d)* {_ILL}"
    r"|\bmy (?:(?:\w+ )?allerg(?:y|ies)|diabetes|asthma|epilepsy|(?:\w+ )?intolerance)\b",
    re.IGNORECASE,
)
"""Statements about somebody's health and diet."""


def is_standing(text: str) -> bool:
    """Return whether a text states a lasting wish of its writer, or limits of health or diet."""
    return is_of_health(text) or any(map(_STANDING.search, _sentences(text)))


def is_of_health(text: str) -> bool:
    """Return whether a text states limits of health or diet."""
    return _HEALTH.search(text) is not None


def is_instruction(text: str) -> bool:
    """Return whether a wish in a text tells what to do, and is no preference among other things."""
    return any(map(_INSTRUCTION.search, _sentences(text)))


def is_general(text: str) -> bool:
    """Return whether a wish in a text applies to every answer: "Always use metric units"."""
    return is_of_health(text) or any(
        _GENERAL.search(one) and not _OF_SOMETHING.search(one) and not one.endswith("?")
        for one in _sentences(text)
    )


def _sentences(text: str) -> list[str]:
    return [text[start:end].strip() for start, end in sentences(text)]


def wishes(text: str) -> str:
    """Return the sentences that state a lasting wish, with "…" for the sentences between."""
    text_so_far, after = "", 0
    for start, end in sentences(text):
        if is_standing(text[start:end]):
            text_so_far = (
                f"{text_so_far.rstrip()} … " if text_so_far and start > after else text_so_far
            )
            text_so_far += text[start:end]
            after = end
    return text_so_far.strip()


def undoes(later: str, earlier: str) -> bool:
    """Return whether a wish takes an earlier one back, or wants the opposite or another name."""
    old, new = _meaning(earlier), _meaning(later)
    if old.name and new.name and old.name != new.name:
        return True
    shared = old.topic & new.topic
    if not shared or not (new.withdrawn or old.is_denied != new.is_denied):
        return False
    # "Stop using emojis" repeats "Never use emojis".
    if new.withdrawn and not (old.is_denied and new.is_stop):
        is_same = 2 * len(new.withdrawn & shared) > len(new.withdrawn)
    else:
        is_same = not new.withdrawn and len(shared) >= _SAME * max(len(old.topic), len(new.topic))
    return is_same and is_standing(earlier) and is_standing(later)


class _Meaning(NamedTuple):
    """What a wish is about.

    Attributes:
        name: the name by which its user wants to be addressed, or "".
        topic: its terms without "always", "use" and the like.
        withdrawn: those of the clauses that take an earlier wish back.
        is_stop: whether one of these ends something: "Stop using emojis".
        is_denied: whether it says "never", "not" or the like.
    """

    name: str
    topic: frozenset[str]
    withdrawn: frozenset[str]
    is_stop: bool
    is_denied: bool


@lru_cache(4096)  # cached, as each text is compared with many
def _meaning(text: str) -> _Meaning:
    matches = (_TAKES_BACK.search(one) for one in _sentences(text))
    clauses = " ".join(match.group() for match in matches if match)
    return _Meaning(
        name=next(iter(_CALLED.findall(text)[-1:]), ""),
        topic=frozenset(terms(text)) - _NO_TOPIC,
        withdrawn=frozenset(terms(clauses)) - _NO_TOPIC,
        is_stop=_STOPS.search(clauses) is not None,
        is_denied=_DENIES.search(text) is not None,
    )


def first_wishes(
    marks: Mapping[int, Mapping[str, object]], matching: Mapping[int, float]
) -> list[int]:
    """Return wishes in order: those that match, health, general ones, instructions, the newest.

    Args:
        marks: turns with wishes, with their metadata.
        matching: turns that match the prompt, with their scores.
    """
    return sorted(
        marks,
        key=lambda n: (
            -matching.get(n, 0.0),
            HEALTH_KEY not in marks[n],
            GENERAL_KEY not in marks[n],
            INSTRUCTION_KEY not in marks[n],
            -n,
        ),
    )
