"""Answering by quoting: the sentences that cover most of a question, or what is missing (Q15)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qrmem.answering.choosing import choose
from qrmem.answering.evidence import Clue, Evidence, joined
from qrmem.answering.query import Query, query
from qrmem.extraction.named_sentences import flat
from qrmem.retrieval.definitions import defines, identifiers
from qrmem.text.code.languages import language_of
from qrmem.types import AskContext, Passage, Quote, Verdict

ENOUGH = 0.8
"""Evidence from which a question counts as answered; see `_evidence_for`.

Fitted once by logistic regression on SQuAD paragraphs and HotpotQA passages, with and without the
ones that hold the answer, at equal cost of a wrong answer and a wrong refusal.
"""

WEIGHT_OF_NAMES, WEIGHT_OF_WORDS, WITHOUT_KIND, ONLY_NAMES = 0.13, 0.1, 0.14, 0.3
"""What is added for the share of the question's names that is covered and for each rare word, and
taken off where no date, number or name is found that could be the answer, and where names are all
that is covered: a sentence about the same people says something else. Fitted with `ENOUGH`.
"""

_HALF = 0.5
"""Coverage from which a word counts as covered at all."""

PAIR_GAIN = 0.15
"""Share of what one sentence leaves open that a second has to add, before two are taken."""

_TOP = 12
_DEFINED = re.compile(r"\b(?:defined|declared|implemented|definition)\b")


@dataclass(frozen=True, slots=True)
class Finding:
    """The best one or two sentences and how far they go."""

    clues: tuple[Clue, ...]
    coverage: float
    has_kind: bool

    @property
    def covered(self) -> dict[str, float]:
        """Term of the question to how far the sentences cover it."""
        return joined(*(clue.covered for clue in self.clues))


def judge(context: AskContext, passages: Sequence[Passage], *, force: bool, tokens: int) -> Verdict:
    """Return a verdict; see `Reasoner.judge`."""
    asked = query(context.question)
    evidence = Evidence(asked, passages)
    if context.choices:
        return choose(context, evidence, force=force, tokens=tokens)
    finding = _definition(context.question, evidence) or best_finding(evidence)
    if finding is None:
        return Verdict(False, reason=_what_is_missing(asked, evidence, None), tokens=tokens)
    is_enough = _evidence_for(evidence, finding) >= ENOUGH
    if not (is_enough or force):
        return Verdict(False, reason=_what_is_missing(asked, evidence, finding), tokens=tokens)
    return Verdict(
        True,
        answer=" ".join(flat(clue.text) for clue in finding.clues),
        reason=_what_was_found(asked, evidence, finding, is_enough),
        quotes=quotes(finding.clues),
        tokens=tokens,
    )


def quotes(clues: Sequence[Clue]) -> tuple[Quote, ...]:
    """Return the sentences as quotations, exactly as the segments have them."""
    return tuple(Quote(clue.passage.label, clue.text) for clue in clues)


def best_finding(evidence: Evidence) -> Finding | None:
    """Return the sentence, or the two sharing a name, that cover most; `None` without support."""
    ranked = evidence.ranked()
    if not ranked:
        return None
    best = Finding((ranked[0],), ranked[0].coverage, ranked[0].has_kind)
    least = best.coverage + PAIR_GAIN * (1 - best.coverage)
    for coverage, first, second in evidence.pairs(ranked[:_TOP]):
        if coverage > least:
            least = coverage
            ordered = sorted((first, second), key=lambda clue: clue.order)
            best = Finding(tuple(ordered), coverage, first.has_kind or second.has_kind)
    return best


def _definition(question: str, evidence: Evidence) -> Finding | None:
    """Return the code that defines what a question names, if that covers enough of it.

    Where a name is imported or listed, its words stand as close together.
    """
    names = identifiers(question)
    defining = [
        clue
        for clue in evidence.clues
        if (language := language_of(clue.passage.title))
        and any(defines(clue.text, name, language) for name in names)
    ]
    if not defining:
        return None
    best = max(defining, key=lambda clue: clue.coverage)
    if _DEFINED.search(question):  # "where is … defined": it says all that is asked
        return Finding((best,), 1.0, has_kind=True)
    found = Finding((best,), best.coverage, best.has_kind)
    return found if _evidence_for(evidence, found) >= ENOUGH else None


def _evidence_for(evidence: Evidence, finding: Finding) -> float:
    """Return how much speaks for the finding: its coverage, and what is said of the weights."""
    asked, covered = evidence.asked, finding.covered
    names = asked.name_terms
    named = sum(covered.get(term, 0.0) for term in names) / len(names) if names else 1.0
    lacks_kind = bool(asked.kind) and not finding.has_kind
    others = asked.terms - asked.name_terms - asked.leaning().keys()
    only_names = bool(others) and all(covered.get(term, 0.0) < _HALF for term in others)
    return (
        finding.coverage
        + WEIGHT_OF_NAMES * named
        + WEIGHT_OF_WORDS * evidence.strength(covered)
        - WITHOUT_KIND * lacks_kind
        - ONLY_NAMES * only_names
    )


def _what_was_found(asked: Query, evidence: Evidence, finding: Finding, is_enough: bool) -> str:
    words = _listed(_words_of(asked, finding))
    where = "one sentence names" if len(finding.clues) == 1 else "two sentences together name"
    if is_enough:
        return f"{where} {words}"
    return f"best guess: {where} {words}; {_what_is_missing(asked, evidence, finding)}"


def _words_of(asked: Query, finding: Finding) -> list[str]:
    """Return the question's words that the sentences hold; what is said nearby is not in them."""
    held = frozenset[str]().union(*(clue.line.terms for clue in finding.clues))
    return [word for term, word in asked.words.items() if term in held]


_KINDS = {"NUMBER": "how much or how many", "DATE": "when", "PERSON": "who", "PLACE": "where"}


def _what_is_missing(asked: Query, evidence: Evidence, finding: Finding | None) -> str:
    """Say what is not there; the strategies read on with these words."""
    parts = []
    missing = evidence.missing()
    if missing:
        parts.append(f"nothing read so far mentions {_listed(missing)}")
    elif finding is not None:
        together = _words_of(asked, finding)
        apart = [word for word in asked.words.values() if word not in together]
        if apart:
            parts.append(f"{_listed(apart)} not found beside {_listed(together)}")
    if asked.names:
        folded = " ".join(clue.text for clue in evidence.clues).casefold()
        seen = [name for name in asked.names if name.casefold() in folded]
        unseen = [name for name in asked.names if name not in seen]
        parts.append(f"names found: {', '.join(seen) or 'none'}")
        if unseen:
            parts.append(f"names not found: {', '.join(unseen)}")
    if asked.kind and (finding is None or not finding.has_kind):
        parts.append(f"no sentence says {_KINDS[asked.kind]}")
    return "; ".join(parts) or "no sentence covers enough of the question"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(f"'{word}'" for word in dict.fromkeys(words)) or "nothing of the question"
