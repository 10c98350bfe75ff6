"""Questions made from sentences by rule (Q08).

A sentence that opens with a name and its verb becomes "Who …?" or "When was …?"; of any other, the
question names who and what it is about. Questions carry the sentence's own words, which keeps two
of them apart in the document's pool.
"""

import re
from zlib import crc32

from qrmem.language import vocabulary as voc
from qrmem.language.local.reading import SegmentReading, Sentence, flat, opening
from qrmem.language.rules import Occurrence

_AUXILIARY = re.compile(
    r"(was|were|is|are|had|has|could|would|will|can|must|should|might)\s+(.+)", re.S
)
_CLAUSE_END = re.compile(
    r"[;:.!?()\[\]“”\"]|\s[—–-]{1,2}\s|—|--|,\s+(?:and|but|who|which|so|because|when|while|as|for|then|"
    r"where|with|though|although|or|said|yet)\b"
)
_WORD = re.compile(r"[^\W\d_]+(?:[-’'][^\W\d_]+)*")
_TEMPLATES = (
    "What is told of {names} and {words}?",
    "{names}: what do {words} mean there?",
    "How do {words} concern {names}?",
    "What have {names} to do with {words}?",
    "Why are {words} named beside {names}?",
)
_NAMELESS = (
    "What is said about {words}?",
    "What do {words} have in common?",
    "How did it come to {words}?",
)
_FEWEST_WORDS, _MOST_WORDS = 3, 18


def questions(reading: SegmentReading, count: int) -> tuple[str, ...]:
    """Return up to `count` questions in text order, spread over the segment."""
    worth = [(_weight(reading, s), s) for s in reading.sentences]
    worth = [(weight, s) for weight, s in worth if weight > 0]
    found: dict[str, None] = {}
    for zone in range(count):
        part = worth[zone * len(worth) // count : (zone + 1) * len(worth) // count]
        if part:
            best = max(part, key=lambda pair: (pair[0], -pair[1].start))[1]
            asked = _question(reading, best)
            if asked:
                found.setdefault(asked)
    return tuple(found)


def _weight(reading: SegmentReading, sentence: Sentence) -> float:
    """How much a sentence tells: names first, then length; 0 for a question or a scrap."""
    if len(sentence.text) < 30 or sentence.text.rstrip("”\"’' ").endswith("?"):
        return 0.0
    names = len(sentence.entities)
    opens = bool(sentence.places) and sentence.places[0].start == opening(sentence)
    return min(names, 4) + 1.5 * opens + min(len(sentence.text), 200) / 200


def _question(reading: SegmentReading, sentence: Sentence) -> str:
    return _about_subject(reading, sentence) or _about_content(reading, sentence)


def _about_subject(reading: SegmentReading, sentence: Sentence) -> str:
    """Make "Who built the Marigold?" if the sentence opens with a name and a verb of its own."""
    subject = _subject(reading, sentence)
    if subject is None:
        return ""
    rest = sentence.text[subject.end - sentence.start :]
    if not rest[:1].isspace():
        return ""
    cut = _CLAUSE_END.search(rest)
    clause = flat(rest[: cut.start()] if cut else rest).rstrip(",")
    words = _WORD.findall(clause)
    if not _FEWEST_WORDS <= len(words) <= _MOST_WORDS or not _is_verb(words[0]):
        return ""
    return _when(reading, sentence, subject, clause) or _who(reading, subject, clause)


def _subject(reading: SegmentReading, sentence: Sentence) -> Occurrence | None:
    if not sentence.places:
        return None
    first, start = sentence.places[0], opening(sentence)
    lead = sentence.text[start - sentence.start : first.start - sentence.start]
    is_subject = lead.casefold() in {"", "the "}
    return first if is_subject and reading.mentions[first.entity].type != "DATE" else None


def _is_verb(word: str) -> bool:
    if word in voc.FINITE_VERBS or (word.islower() and len(word) > 3 and word.endswith("ed")):
        return True
    return (
        word.islower()
        and len(word) > 3
        and word[-1] == "s"
        and word[-2:] not in {"ss", "us"}
        and (word not in voc.FUNCTION_WORDS)
    )


def _who(reading: SegmentReading, subject: Occurrence, clause: str) -> str:
    kind = reading.mentions[subject.entity].type
    asked = {"PERSON": "Who", "": "Who or what"}.get(kind, "What")
    return f"{asked} {clause}?"


def _when(reading: SegmentReading, sentence: Sentence, subject: Occurrence, clause: str) -> str:
    """Make "When was X born in Y?" for an auxiliary and a date in the same clause."""
    parts = _AUXILIARY.match(clause)
    date = next((p for p in sentence.places if reading.mentions[p.entity].type == "DATE"), None)
    if not parts or date is None:
        return ""
    spelled = flat(sentence.text[date.start - sentence.start : date.end - sentence.start])
    rest = re.sub(rf"(?:,?\s*(?:on|in|since|until|by|of|at)\s)?{re.escape(spelled)}", "", parts[2])
    if rest == parts[2] or len(_WORD.findall(rest)) < 2 or rest.rstrip().endswith(" in"):
        return ""
    name = flat(sentence.text[: subject.end - sentence.start].lstrip("\"'“”‘’*_#>-–— "))
    name = name[0].lower() + name[1:] if name.startswith("The ") else name
    return f"When {parts[1]} {name} {rest.strip(' ,')}?"


def _about_content(reading: SegmentReading, sentence: Sentence) -> str:
    """A question that names who and what the sentence is about."""
    names = reading.names(sentence)[:2]
    words = _key_words(sentence)[: 4 - len(names)]
    if len(words) < 2:
        return ""
    templates = _TEMPLATES if names else _NAMELESS
    template = templates[crc32(sentence.text.encode("utf-8", "replace")) % len(templates)]
    return template.format(names=_listed(names), words=_listed(words))


def _key_words(sentence: Sentence) -> list[str]:
    """The longest lower-case words, in text order."""
    words = dict.fromkeys(
        w
        for w in _WORD.findall(sentence.text)
        if w.islower() and len(w) > 3 and w not in voc.FUNCTION_WORDS and w not in voc.FINITE_VERBS
    )
    longest = sorted(words, key=lambda w: (-len(w), w))[:4]
    return [word for word in words if word in longest]


def _listed(words: list[str]) -> str:
    return (
        words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""
    )
