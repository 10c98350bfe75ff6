"""FragRel as a strategy: fragments are ranked with their environment, and read once.

begin -> read -> (answered: end | conclude)
"""

from typing import TYPE_CHECKING

from qrmem.agents.search.run import Search
from qrmem.agents.search.start import question_text
from qrmem.agents.search.state import SearchState
from qrmem.agents.search.steps import Strategy, began
from qrmem.graph.segmenting import longbench_words
from qrmem.retrieval.fragments import FragmentScorer
from qrmem.retrieval.fragments.gathering import within_words
from qrmem.retrieval.fragments.scorer import name_of

if TYPE_CHECKING:
    from qrmem.retrieval.fragments.scorer import Assessed

SMALLEST = 16
"""Least number of tokens of a fragment; it bounds the number of fragments to read."""
FEWEST = 10


async def begin(run: Search, state: SearchState) -> SearchState:
    """Score all fragments and choose the best (Equations 4, 9, 10, 11)."""
    scorer = run.fragments or FragmentScorer(run.searcher)
    assessed = await scorer.assess(
        question_text(run), settings=run.options.fragments, documents=run.options.documents
    )
    if assessed is None:
        run.tell("start", reason="there is nothing to read")
        return began({})
    start = began(await _pick(run, assessed))
    start["order"] = assessed.settings.order
    packed = await run.packed(start)
    run.tell("start", reason=_in_words(assessed, len(packed.read)))
    return start


async def _pick(run: Search, assessed: "Assessed") -> dict[str, float]:
    """Return the best fragments, up to the wanted number and the wanted words."""
    settings = assessed.settings
    best_fragments = assessed.best(settings.top or max(FEWEST, run.room // SMALLEST))
    if settings.words is None:
        return best_fragments
    segments = await run.graph.segments(best_fragments)
    fragments_kept = within_words(
        [len(longbench_words(segment.text)) for segment in segments], settings.words
    )
    return {segment.id: best_fragments[segment.id] for segment in segments[:fragments_kept]}


def _in_words(assessed: "Assessed", picked: int) -> str:
    settings = assessed.settings
    relations = [name_of(relation) for relation in settings.relations]
    if "structure" in relations:
        relations[relations.index("structure")] = f"structure {settings.w_rel:g}"
    return (
        f"{picked} of {assessed.fragments.size} fragments by relation {' and '.join(relations)}, "
        f"alpha {settings.alpha:g}; {assessed.surrounded(picked)} of them by their surroundings"
    )


STRATEGY = Strategy(begin=begin)
