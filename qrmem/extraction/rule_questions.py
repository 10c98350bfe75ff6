"""Questions made from sentences by rule.

A sentence that opens with a name and its verb becomes "Who …?" or "When was …?"; of any other, the
question names who and what it is about. Questions carry the sentence's own words, which keeps two
of them apart in the document's pool.
"""

import re
from zlib import crc32

from qrmem.extraction import vocabulary as voc
from qrmem.extraction.named_sentences import FIGURES, SegmentReading, Sentence, flat, opening
from qrmem.extraction.noun_phrases import things
from qrmem.extraction.rules_tagger import Occurrence
from qrmem.text.spelling import normalise_name
from qrmem.text.titles import sex, titled
from qrmem.text.words import terms

_AUXILIARY = re.compile(
    r"(was|were|is|are|had|has|could|would|will|can|must|should|might)\s+(.+)", re.S
)
LEAD = re.compile(r"(?:^|[,;:—“]\s*|,\s(?:and|but)\s|^\W+)((?:[Tt]he\s)?)\Z")
_CLAUSE_END = re.compile(
    r"[;:!?()\[\]“”\"]|\.(?!\s*\w)|\s[—–-]{1,2}\s|—|--"
    r"|,\s+(?:and|but|who|which|so|because|when|while|as|for|then|where|with|though|although|or|said|yet)\b"
)
_IN_PASSING = re.compile(
    r",\s(?:(?P<relative>who|which)|an?|the)\s|\s(?:of|in|at|from)\s(?=the\s|an?\s|[^\W\d_a-z])"
)
_WORD = re.compile(r"[^\W\d_]+(?:[-’'][^\W\d_]+)*")
_TEMPLATES = (
    "What is told of {items}?",
    "How are {items} connected?",
    "What brings {items} together?",
    "Where do {items} meet?",
    "What happens between {items}?",
    "Which part do {items} play?",
)
_ALONE = ("What is told of {items}?", "What becomes of {items}?", "Why does {items} matter here?")
_SPEAKER = frozenset(
    ("I", "me", "my", "mine", "myself", "we", "us", "our", "ours", "you", "your", "yours")
)
"""Words that say nothing once the speech that they stand in is left out."""
_FEWEST_WORDS, _MOST_WORDS = 3, 18
_FEWEST_TELLING = 2
"""Terms of a clause, its verb and stop words left out or not, that a question needs."""
_FEWEST_IN_FRAGMENT, _MOST_IN_FRAGMENT = 5, 12


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
    """Make "Who built the Marigold?" of a name that opens a clause and the verb that follows."""
    for place in sentence.places:
        if reading.mentions[place.entity].type == "DATE":
            continue
        lead = LEAD.search(sentence.text, 0, place.start - sentence.start)
        if not lead:
            continue
        asked = _of_clause(reading, sentence, place, lead[1])
        if asked:
            return asked
    return ""


def _of_clause(reading: SegmentReading, sentence: Sentence, place: Occurrence, the: str) -> str:
    rest = sentence.text[place.end - sentence.start :]
    if not rest[:1].isspace():
        return ""
    cut = _CLAUSE_END.search(rest)
    clause = flat(rest[: cut.start()] if cut else rest).rstrip(",")
    words = _WORD.findall(clause)
    is_clause = _FEWEST_WORDS <= len(words) <= _MOST_WORDS and clause.startswith(f"{words[0]} ")
    if not is_clause or not is_verb(words[0]) or not _SPEAKER.isdisjoint(words):
        return ""
    if len(set(terms(clause))) < _FEWEST_TELLING or words[-1].casefold() in voc.FUNCTION_WORDS:
        return ""
    return _when(reading, sentence, place, clause, the) or _who(reading, place, clause, words, the)


def is_verb(word: str) -> bool:
    """Whether a word looks like the verb of a subject that stands before it."""
    if word in voc.FINITE_VERBS or (word.islower() and len(word) > 3 and word.endswith("ed")):
        return True
    return (
        word.islower()
        and len(word) > 3
        and word[-1] == "s"
        and word[-2:] not in {"ss", "us"}
        and (word not in voc.FUNCTION_WORDS)
    )


def _who(
    reading: SegmentReading, subject: Occurrence, clause: str, words: list[str], the: str
) -> str:
    kind = reading.mentions[subject.entity].type
    name = normalise_name(reading.mentions[subject.entity].name)
    if kind == "PERSON" or (not kind and not the and (_is_personal(words) or sex(*titled(name)))):
        return f"Who {clause}?"
    return f"{'What' if kind or the else 'Who or what'} {clause}?"


def _is_personal(words: list[str]) -> bool:
    return words[0] in voc.PERSON_VERBS or bool({"his", "her", "himself", "herself"} & set(words))


def _when(
    reading: SegmentReading, sentence: Sentence, subject: Occurrence, clause: str, the: str
) -> str:
    """Make "When was X born in Y?" for an auxiliary and a date in the same clause."""
    parts = _AUXILIARY.match(clause)
    date = next((p for p in sentence.places if reading.mentions[p.entity].type == "DATE"), None)
    if not parts or date is None:
        return ""
    spelled = flat(sentence.text[date.start - sentence.start : date.end - sentence.start])
    rest = re.sub(rf"(?:,?\s*(?:on|in|since|until|by|of|at)\s)?{re.escape(spelled)}", "", parts[2])
    if rest == parts[2] or len(_WORD.findall(rest)) < 2 or rest.rstrip().endswith(" in"):
        return ""
    name = flat(sentence.text[subject.start - sentence.start : subject.end - sentence.start])
    name = f"the {name}" if the else name
    return f"When {parts[1]} {name} {rest.strip(' ,')}?"


def _about_content(reading: SegmentReading, sentence: Sentence) -> str:
    """A question that names who and what the sentence is about, in its own words if they serve."""
    for place in sentence.places:
        if reading.mentions[place.entity].type not in FIGURES:
            fragment = _fragment(sentence.text, place, sentence.start)
            if len(fragment.split()) >= _FEWEST_IN_FRAGMENT:
                return f"What is said of {fragment}?"
    names = reading.names(sentence, FIGURES)[:2]
    if not names and any(mention.type not in FIGURES for mention in reading.mentions):
        return ""
    items = [*names, *(f"the {thing.text}" for thing in things(sentence)[: 3 - len(names)])]
    if not items or (len(items) == 1 and not names):
        return ""
    templates = _ALONE if len(items) == 1 else _TEMPLATES
    template = templates[crc32(sentence.text.encode("utf-8", "replace")) % len(templates)]
    return template.format(items=_listed(items))


def _fragment(text: str, place: Occurrence, offset: int) -> str:
    """A name with what is said of it in passing: "Lemuel Strake, a bell-founder in Vantry".

    "" if what follows the name is anything else.
    """
    follows = _IN_PASSING.match(text, place.end - offset)
    if not follows:
        return ""
    cut = _CLAUSE_END.search(text, follows.end())
    words = text[place.start - offset : cut.start() if cut else len(text)].split()
    if not follows["relative"]:
        verbs = (at for at, word in enumerate(words) if word.rstrip(",") in voc.FINITE_VERBS)
        words = words[: next(verbs, len(words))]
    if not _SPEAKER.isdisjoint(words):
        return ""
    words = words[:_MOST_IN_FRAGMENT]
    while words and words[-1].rstrip(",").casefold() in voc.FUNCTION_WORDS:
        words.pop()
    return " ".join(words).rstrip(",")


def _listed(items: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(items[:-1]), items[-1])))
