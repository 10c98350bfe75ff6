"""How the sentences of several passages hang together: which leads to which."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qrmem.language.local.brief.told import Told, words_of
from qrmem.language.local.evidence import Clue, Evidence, joined

_WORD = re.compile(r"\w+")
_FIRST = 14
"""Best sentences among which a partner is looked for."""

_BY_NAME = 0.6
"""What a tie by a name in both sentences is worth beside one by what a passage is about."""


@dataclass(frozen=True, slots=True)
class Tie:
    """The sentence of another passage that adds most to one, and how much of the question."""

    gain: float = 0.0
    partner: Clue | None = None


class Ties:
    """The ties between the passages read for one question.

    Attributes:
        titles: document to the words of what it is about.
        bridged: document to the coverage of the best sentence of another that names it, where the
            question does not.
        of: a sentence's place in the reading order to its tie.
    """

    def __init__(self, evidence: Evidence, among: Sequence[Told]) -> None:
        self._evidence = evidence
        self._given = words(evidence.asked.text)
        self.titles = {document(one): words_of(one.passage.title) for one in among}
        self.bridged = self._bridges()
        self.of: Mapping[int, Tie] = self._ties()

    def title(self, clue: Clue) -> frozenset[str]:
        """Return the words of what a sentence's passage is about."""
        return self.titles.get(clue.passage.segment.document_id, frozenset())

    def _bridges(self) -> Mapping[str, float]:
        found: dict[str, float] = defaultdict(float)
        for clue in self._evidence.clues:
            said = words(clue.text)
            for name, title in self.titles.items():
                is_other = name != clue.passage.segment.document_id
                if is_other and title and title <= said and not title <= self._given:
                    found[name] = max(found[name], clue.coverage)
        return found

    def _ties(self) -> dict[int, Tie]:
        ranked = [
            (other, words(other.text), self.title(other))
            for other in self._evidence.ranked()[:_FIRST]
        ]
        return {clue.order: self._tie(clue, ranked) for clue in self._evidence.clues}

    def _tie(
        self, clue: Clue, ranked: Sequence[tuple[Clue, frozenset[str], frozenset[str]]]
    ) -> Tie:
        """Return the best tie: one names what the other's passage is about, or both a third."""
        said, title, best = words(clue.text), self.title(clue), Tie()
        for other, others, own in ranked:
            if other.passage.segment.document_id == clue.passage.segment.document_id:
                continue
            is_named = (title and title <= others) or (own and own <= said)
            worth = 1.0 if is_named else _BY_NAME if self._share(clue, other) else 0.0
            if worth:
                together = self._evidence.share(joined(other.covered, clue.covered))
                gain = worth * (together - clue.coverage)
                if gain > best.gain:
                    best = Tie(gain, other)
        return best

    def _share(self, clue: Clue, other: Clue) -> bool:
        names = clue.line.names & other.line.names
        return any(len(name) > 3 and not words(name) <= self._given for name in names)


def document(one: Told) -> str:
    """Return the id of the document that a passage is of."""
    return one.passage.segment.document_id


def words(text: str) -> frozenset[str]:
    """Return the words of a text, case-folded."""
    return frozenset(_WORD.findall(text.casefold()))
