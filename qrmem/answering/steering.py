"""Where to look next: Entity Trial's new entities (Q16) and the elaborated query (Q17)."""

import re
from collections import Counter
from collections.abc import Sequence

from qrmem.answering.content import content
from qrmem.answering.evidence import Evidence
from qrmem.answering.query import query
from qrmem.types import AskContext, Passage

MOST_NEW, MOST_KEPT = 3, 2
"""Entities that one revision takes up, and keeps."""

_WORDS_ADDED = 12
_WORD = re.compile(r"[^\W\d_]{4,}")


def revise(
    context: AskContext,
    *,
    current: Sequence[str],
    candidates: Sequence[tuple[str, int]],
    reason: str,
    passages: Sequence[Passage],
) -> tuple[str, ...]:
    """Return entities that the question's open words, or its best sentences, point at."""
    asked = query(context.question)
    evidence = Evidence(asked, passages)
    open_terms = {t for t in asked.words if not evidence.spread[t]}
    wanted = asked.terms | {t for choice in context.choices for t in content(choice)}
    held = frozenset(name.casefold() for name in current)
    near: Counter[str] = Counter()
    for clue in evidence.ranked()[:20]:
        for name in clue.line.names:
            near[name] += round(1000 * clue.coverage * (1.5 if clue.line.names & held else 1))
    scored = []
    for at, (name, count) in enumerate(candidates):
        own = frozenset(content(name))
        score = 3000 * len(own & open_terms) + 1000 * len(own & wanted) + near[name.casefold()]
        if score and name.casefold() not in held:
            scored.append((-score / (1 + 0.02 * count), at, name))
    new = [name for _, _, name in sorted(scored)[:MOST_NEW]]
    if not new:
        return tuple(current)
    known = {name for name, _ in candidates}
    kept = [name for name in current if name in known and frozenset(content(name)) & asked.terms]
    return tuple(dict.fromkeys([*new, *kept[:MOST_KEPT]]))


def elaborate(context: AskContext, entities: Sequence[str], relations: Sequence[str]) -> str:
    """Return the names, and the relations' most frequent words that the question lacks."""
    asked = query(context.question)
    named = {term for name in entities for term in content(name)}
    words: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    for relation in relations:
        for word in dict.fromkeys(_WORD.findall(relation)):
            for term in content(word):
                if term not in asked.words and term not in named:
                    words[term] += 1
                    spelled.setdefault(term, word.casefold())
    order = {term: at for at, term in enumerate(spelled)}
    ranked = sorted(words, key=lambda term: (-words[term], order[term]))
    extra = [spelled[term] for term in ranked[:_WORDS_ADDED]]
    return " ".join([*dict.fromkeys(entities), *extra]) or context.question
