"""Choosing among given options: the one that the text around the question's words supports best."""

from collections.abc import Sequence

from qrmem.language.local.content import content
from qrmem.language.local.evidence import Clue, Evidence
from qrmem.language.local.reading import flat
from qrmem.ports import AskContext, Quote, Verdict

ENOUGH = 0.3
"""Support from which an option counts as stated rather than guessed."""

_FLOOR = 0.15
"""What a sentence counts that holds an option's words and none of the question's."""


def choose(context: AskContext, evidence: Evidence, *, force: bool, tokens: int) -> Verdict:
    """Return the best supported option; without any support, that nothing supports one."""
    supports = [_support(terms_, evidence) for terms_ in _own_terms(context.choices, evidence)]
    best = max(range(len(supports)), key=lambda i: (round(supports[i][0], 9), -i))
    value, clue = supports[best]
    if clue is None or value <= 0 or (value < ENOUGH and not force):
        return Verdict(False, reason=_doubt(context, evidence, best, value), tokens=tokens)
    return Verdict(
        True,
        answer=context.choices[best],
        choice=best,
        reason=f"the passage that supports this option best says: {flat(clue.text)[:200]}",
        quotes=(Quote(clue.passage.label, clue.text),),
        tokens=tokens,
    )


def _own_terms(choices: Sequence[str], evidence: Evidence) -> list[dict[str, float]]:
    """Each option's terms with their weight; what other options share counts less."""
    sets = [frozenset(content(choice)) for choice in choices]
    shared = {term: sum(term in own for own in sets) for own in sets for term in own}
    return [{term: evidence.rarity(term) / shared[term] for term in own} for own in sets]


def _support(own: dict[str, float], evidence: Evidence) -> tuple[float, Clue | None]:
    """How much the best sentence says of an option, times how near it is to the question."""
    total = sum(own.values())
    best: tuple[float, Clue | None] = (0.0, None)
    for clue in evidence.clues:
        held = sum(weight for term, weight in own.items() if term in clue.line.terms)
        if held:
            value = held / total * (_FLOOR + clue.coverage)
            if value > best[0]:
                best = (value, clue)
    return best


def _doubt(context: AskContext, evidence: Evidence, best: int, value: float) -> str:
    missing = evidence.missing()
    lacks = (
        f"nothing read so far mentions {', '.join(repr(w) for w in missing)}; " if missing else ""
    )
    if value <= 0:
        return f"{lacks}no option's words are in what was read"
    return f"{lacks}the nearest option is {context.choices[best]!r}, with little support"
