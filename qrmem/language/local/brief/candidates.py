"""What speaks for and against each span that could be the answer."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from qrmem.language.local.brief.following import Anchor, Path
from qrmem.language.local.brief.nations import is_nationality
from qrmem.language.local.brief.spans import Span, spans
from qrmem.language.local.brief.ties import Ties, document, words
from qrmem.language.local.brief.told import Told, words_of
from qrmem.language.local.brief.wanting import wanted
from qrmem.language.local.content import content
from qrmem.language.local.evidence import Clue, Evidence
from qrmem.text.words import terms

_WORD = re.compile(r"\w+")
_LIFE = re.compile(
    r"\bborn\b|\bb\.|\d{4}\s*[–—-]\s*(?:\d|\w+ \d)|\b(?:he|she|his|her)\b", re.IGNORECASE
)
_CUES = {
    "by": re.compile(r"\bby\s+(?:\S+\s+){0,3}\Z"),
    "in": re.compile(r"\b(?:in|at|to|from|near)\s+(?:the\s+)?\Z", re.IGNORECASE),
    "of": re.compile(r"\bof\s+(?:the\s+)?\Z"),
}
_FAR = 15
"""Words between a span and a word of the question that count as no nearness any more."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A span that could be the answer.

    Attributes:
        features: what speaks for and against it, by name.
    """

    text: str
    clue: Clue
    features: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Places:
    """The words of a sentence, and where those of the question stand among them."""

    words: Sequence["re.Match[str]"]
    asked: Sequence[tuple[int, str]]

    def gaps(self, span: Span) -> list[tuple[int, str]]:
        """Return how many words lie between a span and each word of the question."""
        if span.is_title:
            return []
        first = sum(word.end() <= span.start for word in self.words)
        last = first + len(_WORD.findall(span.text)) - 1
        return [
            (max(first - n, n - last), term) for n, term in self.asked if not first <= n <= last
        ]


class Field:
    """The sentences of the passages as a field of candidates for one question."""

    def __init__(
        self,
        evidence: Evidence,
        among: Sequence[Told],
        named: Sequence[Anchor],
        paths: Sequence[Path],
    ) -> None:
        self._evidence = evidence
        self._wanted = wanted(evidence.asked)
        self._known = frozenset(content(evidence.asked.text))
        self._lead = {t: self._wanted.near.get(t, 0.0) * w for t, w in evidence.weights.items()}
        self._all_lead = sum(self._lead.values()) or 1.0
        self._ties = Ties(evidence, among)
        self._anchored = {document(anchor.told) for anchor in named}
        self._focus = {document(path.focus) for path in paths if path.stated} - self._anchored
        stated = {document(one) for path in paths for one, _ in path.stated}
        self._reached = stated | {document(path.focus) for path in paths}
        self._values = {frozenset(terms(path.value)) for path in paths if path.value}
        self._people = {one.words: _is_person(one) for one in among if one.words}
        order = dict.fromkeys(clue.passage.segment.id for clue in evidence.clues)
        self._ranks = {segment: rank for rank, segment in enumerate(order, 1)}
        self._best = max((clue.coverage for clue in evidence.clues), default=1.0) or 1.0
        self._spread = Counter(name for clue in evidence.clues for name in clue.line.names)

    def candidates(self) -> Iterator[Candidate]:
        """Yield the candidates in reading order; what the question says itself is none."""
        for clue in self._evidence.clues:
            common, places = self._of_sentence(clue), self._places(clue)
            for span in spans(clue, self._wanted):
                own = frozenset(terms(span.text))
                if own and not own <= self._known:
                    yield Candidate(
                        span.text, clue, common | self._of_span(span, own, clue, places)
                    )

    def _places(self, clue: Clue) -> _Places:
        found = list(_WORD.finditer(clue.text))
        asked = [
            (n, term)
            for n, word in enumerate(found)
            for term in content(word[0])
            if term in self._known
        ]
        return _Places(found, asked)

    def _of_sentence(self, clue: Clue) -> dict[str, float]:
        """What all spans of a sentence have in common."""
        name, tie = clue.passage.segment.document_id, self._ties.of[clue.order]
        direct = self._led(clue.line.terms & self._known)
        lead = sum(self._lead.get(t, 0.0) * w for t, w in clue.covered.items()) / self._all_lead
        beyond, ahead = self._apart(clue, tie.partner)
        bridged = self._ties.bridged.get(name, 0.0)
        return {
            "coverage": clue.coverage,
            "best": clue.coverage / self._best,
            "joint": tie.gain,
            "all": clue.coverage + tie.gain,
            "beyond partner": beyond,
            "beyond partner, joint": beyond * tie.gain,
            "partner leads": ahead,
            "noun in sentence": float(bool(self._wanted.noun & clue.line.terms)),
            "anchored": float(name in self._anchored),
            "reached": float(name in self._reached),
            "focus": float(name in self._focus),
            "focus, lead": float(name in self._focus) * direct,
            "bridged": bridged,
            "bridged, lead": bridged * direct,
            "rank": 1 / self._ranks[clue.passage.segment.id],
            "first sentence": float(clue.line.sentence.start == 0),
            "asks": float(clue.line.asks),
            "lead": lead,
            "lead direct": direct,
        }

    def _apart(self, clue: Clue, partner: Clue | None) -> tuple[float, float]:
        """What a sentence covers of the opening words beyond its partner, and the other way."""
        if partner is None:
            return 0.0, 0.0
        mine = {t for t, w in clue.covered.items() if w > partner.covered.get(t, 0.0)}
        theirs = {t for t, w in partner.covered.items() if w > clue.covered.get(t, 0.0)}
        return self._led(mine), self._led(theirs)

    def _led(self, found: "set[str] | frozenset[str]") -> float:
        return sum(self._lead.get(term, 0.0) for term in found) / self._all_lead

    def _of_span(
        self, span: Span, own: frozenset[str], clue: Clue, places: _Places
    ) -> dict[str, float]:
        tie, name = self._ties.of[clue.order], words_of(span.text)
        gaps, weights = places.gaps(span), self._evidence.weights
        total = sum(weights.values()) or 1.0
        beside = min((gap for gap, term in gaps if term in self._wanted.noun), default=_FAR)
        is_bridge = name in self._ties.titles.values() and name != self._ties.title(clue)
        in_partner = tie.partner is not None and name <= (
            words(tie.partner.text) | self._ties.title(tie.partner)
        )
        found = {
            "in partner": float(in_partner),
            "in partner, joint": in_partner * tie.gain,
            "near": sum(weights.get(term, 0.0) / (1 + gap) for gap, term in gaps) / total,
            "nearest": 1 / (1 + min((gap for gap, _ in gaps), default=_FAR)),
            "noun beside": 1 / (1 + beside) if self._wanted.noun else 0.0,
            "noun inside": float(bool(self._wanted.noun & own)),
            "known part": len(own & self._known) / len(own),
            "value": float(own in self._values),
            "is title": float(span.is_title),
            "own title": float(not span.is_title and name <= self._ties.title(clue)),
            "is bridge": float(is_bridge),
            "is bridge, lead": is_bridge * self._led(clue.line.terms & self._known),
            "length": min(len(span.text.split()), 6) / 6,
            "single": float(len(span.text.split()) == 1),
            "frequent": math.log1p(self._spread.get(span.text.casefold(), 0)),
            f"{self._wanted.kind} {span.shape}": 1.0,
        }
        found |= {cue: float(bool(cued.search(span.before))) for cue, cued in _CUES.items()}
        if name in self._people:
            is_somebody = "somebody" if self._people[name] else "nobody"
            found[f"{self._wanted.kind} {is_somebody}"] = 1.0
        if self._wanted.is_nation and is_nationality(span.text):
            found["nation wanted"] = 1.0
        return found


def _is_person(one: Told) -> bool:
    return bool(_LIFE.search(" ".join(one.sentences[:2])))
