"""Answering by quoting: the sentences that cover most of a question, or what is missing (Q15)."""

from collections.abc import Sequence
from dataclasses import dataclass

from qrmem.language.local.choosing import choose
from qrmem.language.local.evidence import Clue, Evidence
from qrmem.language.local.query import Query, query
from qrmem.language.local.reading import flat
from qrmem.ports import AskContext, Passage, Quote, Verdict

ENOUGH = 0.62
"""Share of the question's weight that an answer has to cover."""

ENOUGH_WITHOUT_KIND = 0.75
"""The same where the expected kind of answer (a date, a number, a name) is not seen."""

PAIR_GAIN = 0.15
"""Weight that a second sentence has to add before two are taken together."""

_TOP = 12


@dataclass(frozen=True, slots=True)
class Finding:
    """The best one or two sentences and how far they go."""

    clues: tuple[Clue, ...]
    coverage: float
    has_kind: bool


def judge(context: AskContext, passages: Sequence[Passage], *, force: bool, tokens: int) -> Verdict:
    """Return a verdict; see `Reasoner.judge`."""
    asked = query(context.question)
    evidence = Evidence(asked, passages)
    if context.choices:
        return choose(context, evidence, force=force, tokens=tokens)
    finding = best_finding(evidence)
    if finding is None:
        return Verdict(False, reason=_what_is_missing(asked, evidence, None), tokens=tokens)
    is_enough = _is_enough(asked, evidence, finding)
    if not (is_enough or force):
        return Verdict(False, reason=_what_is_missing(asked, evidence, finding), tokens=tokens)
    return Verdict(
        True,
        answer=" ".join(flat(clue.sentence.text) for clue in finding.clues),
        reason=_what_was_found(asked, evidence, finding, is_enough),
        quotes=quotes(finding.clues),
        tokens=tokens,
    )


def quotes(clues: Sequence[Clue]) -> tuple[Quote, ...]:
    """Return the sentences as quotations, exactly as the segments have them."""
    return tuple(Quote(clue.passage.label, clue.sentence.text) for clue in clues)


def best_finding(evidence: Evidence) -> Finding | None:
    """Return the sentence, or the two sharing a name, that cover most; `None` without support."""
    ranked = evidence.ranked()
    if not ranked:
        return None
    best = Finding((ranked[0],), ranked[0].coverage, ranked[0].has_kind)
    for first, second in evidence.pairs(ranked[:_TOP]):
        together = {
            term: max(first.covered.get(term, 0), second.covered.get(term, 0))
            for term in first.covered.keys() | second.covered.keys()
        }
        coverage = evidence.share(together)
        if (
            coverage < max(first.coverage, second.coverage) + PAIR_GAIN
            or coverage < best.coverage + 0.01
        ):
            continue
        if coverage >= (
            ranked[0].coverage if len(best.clues) == 1 else best.coverage
        ) + PAIR_GAIN or (len(best.clues) == 2 and coverage > best.coverage):
            ordered = sorted((first, second), key=lambda clue: clue.order)
            best = Finding(tuple(ordered), coverage, first.has_kind or second.has_kind)
    return best


def _is_enough(asked: Query, evidence: Evidence, finding: Finding) -> bool:
    has_kind = finding.has_kind or not asked.kind
    return finding.coverage >= (ENOUGH if has_kind else ENOUGH_WITHOUT_KIND)


def _what_was_found(asked: Query, evidence: Evidence, finding: Finding, is_enough: bool) -> str:
    words = _listed(_words_of(asked, finding))
    where = "one sentence names" if len(finding.clues) == 1 else "two sentences together name"
    if is_enough:
        return f"{where} {words}"
    return f"best guess: {where} {words}; {_what_is_missing(asked, evidence, finding)}"


def _words_of(asked: Query, finding: Finding) -> list[str]:
    covered = {term for clue in finding.clues for term, part in clue.covered.items() if part >= 0.5}
    return [word for term, word in asked.words.items() if term in covered]


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
        folded = " ".join(clue.sentence.text for clue in evidence.clues).casefold()
        seen = [name for name in asked.names if name.casefold() in folded]
        unseen = [name for name in asked.names if name not in seen]
        parts.append(f"names found: {', '.join(seen) or 'none'}")
        if unseen:
            parts.append(f"names not found: {', '.join(unseen)}")
    if asked.kind and (finding is None or not finding.has_kind):
        parts.append(f"no sentence says {_KINDS[asked.kind]}")
    return "; ".join(parts) or "no sentence covers enough of the question"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(f"'{word}'" for word in words) or "nothing of the question"
