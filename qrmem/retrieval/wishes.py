"""Standing wishes of users, and limits of their health or diet: guesses from English words."""

import re
from collections.abc import Mapping

from qrmem.text.sentences import sentences

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
_ORDERED = (
    rf"{_LEAD}(?:(?:(?:make|be) sure to|(?:don['’]t|do not)(?: ever)?) {_TELL}|avoid \w"
    rf"|(?:keep|make) (?:all |your |the |my )*{_ANSWER}\b|call me (?-i:[A-Z]))"
)
_FROM_NOW = rf"\bfrom now on\b|\bin (?:every|each|all)(?: of)?(?: your| my)? {_ANSWER}\b"
_IF_ASKED = r"\b(?:when(?:ever)?|every time|each time|if) i ask\b"
_PREFERS = (
    r"\b(?:i|we)(?:['’]d| would)?(?: \w+ly| always| still| also| much)? prefer\b"
    r"|\b(?:my|our) prefer(?:ence|red)|\b(?:i|we)(?:['’]d| would) (?:much )?rather\b"
    r"|\bi (?:really |always )?(?:don['’]t |do not )?(?:like|want)"
    r" (?:my|it|your|all|short|long)\b"
)
_STANDING = re.compile("|".join((_ALWAYS, _ORDERED, _FROM_NOW, _IF_ASKED, _PREFERS)), re.IGNORECASE)
_INSTRUCTION = re.compile("|".join((_ALWAYS, _ORDERED, _FROM_NOW, _IF_ASKED)), re.IGNORECASE)
_GENERAL = re.compile(
    rf"{_ASKED}(?:always|never) {_TELL}|{_ORDERED}|{_FROM_NOW}"
    rf"|(?:{_PREFERS}).*\b(?:{_ANSWER}|bullets?|bullet points|lists|paragraphs|units|tables)\b",
    re.IGNORECASE,
)
_OF_SOMETHING = re.compile(
    rf"{_IF_ASKED}|\b(?:when(?:ever)?|if|before|after|unless|for)\b|\b{_ANSWER} (?:on|about|to)\b",
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
