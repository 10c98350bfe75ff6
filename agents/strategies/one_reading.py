"""Strategies that choose what to read at once, and read it once.

    begin -> read -> (answered: end | conclude)

- passages: the best hits of one search; the strategy without a chat model.
- whole: the whole text that a question may use, in order, if it fits the window. No search is as
  good as reading everything. A user cannot choose it: it is used with a chat model if the user
  chose no strategy, and no option that needs a walk over the graph.
- TempMem: the whole text; if it does not fit, its middle is left out. The baseline of FragRel's
  paper, without retrieval.
- fragment: FragRel. Fragments are ranked with their environment.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qrmem.agents.search.run import Search
from qrmem.agents.search.start import question_text
from qrmem.agents.search.state import SearchState
from qrmem.agents.search.steps import Strategy, began
from qrmem.graph.segmenting import longbench_words
from qrmem.retrieval.fragments import FragmentScorer
from qrmem.retrieval.fragments.gathering import within_words
from qrmem.retrieval.fragments.scorer import name_of
from qrmem.text.numbers import counted

if TYPE_CHECKING:
    from qrmem.retrieval.fragments.scorer import Assessed

HITS = 8
"""Maximum number of hits; more of them would include chance matches."""
WHOLE_NAME = "whole"
SMALLEST_SEGMENT, SMALLEST_FRAGMENT = 8, 16
"""Least number of tokens of a segment with its label, and of a fragment: they bound what is read
from the store."""
FEWEST_FRAGMENTS = 10


async def begin_passages(run: Search, state: SearchState) -> SearchState:
    """Search; entities are not needed, as there is no next move."""
    hits = await run.searcher.search(question_text(run), k=HITS, documents=run.options.documents)
    run.tell("start", reason=f"{counted(len(hits), 'passages')} found by search")
    hit_reasons = {hit.segment_id: [hit.via, list(hit.over)] for hit in hits}
    few = () if hits else await run.all_segments(HITS)
    scores = {hit.segment_id: hit.score for hit in hits} or {one.id: 0.0 for one in few}
    return {**began(scores), "hits": hit_reasons}


async def fits(run: Search) -> bool:
    """Return whether a run may read everything, and everything fits."""
    options = run.options
    if options.is_walk or not options.navigation or run.reasoner.is_local:
        return False
    segments = await run.all_segments(run.room // SMALLEST_SEGMENT)
    return 0 < sum(await run.sizes(segments)) <= run.room


async def begin_whole(run: Search, state: SearchState) -> SearchState:
    """Take all segments."""
    segments = await run.all_segments(run.room // SMALLEST_SEGMENT)
    which = "the one segment fits" if len(segments) == 1 else f"all {len(segments)} segments fit"
    run.tell("start", reason=f"{which} the window: read whole, in order")
    return began({segment.id: 1.0 for segment in segments})


async def begin_temp_mem(run: Search, state: SearchState) -> SearchState:
    """Take segments from both ends of the text until the window is full."""
    store, ns, documents = run.searcher.store, run.searcher.ns, run.options.documents
    rows = () if documents == frozenset() else await store.ledger(ns, *sorted(documents or ()))
    only = run.options.segments
    there = [row.segment_id for row in rows if only is None or row.segment_id in only]
    ids = [entry.id for entry in await store.entries(ns, there)]
    if not ids:
        run.tell("start", reason="there is nothing to read")
        return began({})
    most = run.room // SMALLEST_SEGMENT + 1
    ends = ids if len(ids) <= 2 * most else [*ids[:most], *ids[-most:]]
    segments = await run.graph.segments(ends)
    indexes = middle_left_out(await run.sizes(segments), run.room)
    run.tell("start", reason=f"{len(indexes)} of {len(ids)} segments, from both ends")
    return began({segments[at].id: 1.0 for at in indexes})


def middle_left_out(sizes: Sequence[int], room: int) -> list[int]:
    """Return the segments to keep: the first ones fill half of the room, the last ones the rest.

    Deviation: LongBench cuts at a token; here whole segments are kept, so that they can be cited.
    """
    front, total = 0, 0
    while front < len(sizes) and total + sizes[front] <= room // 2:
        total += sizes[front]
        front += 1
    back = len(sizes)
    while back > front and total + sizes[back - 1] <= room:
        back -= 1
        total += sizes[back]
    return [*range(front), *range(back, len(sizes))]


async def begin_fragments(run: Search, state: SearchState) -> SearchState:
    """Score all fragments and choose the best (Equations 4, 9, 10, 11)."""
    scorer = run.fragments or FragmentScorer(run.searcher)
    assessed = await scorer.assess(
        question_text(run),
        settings=run.options.fragments,
        documents=run.options.documents,
        searcher=run.searcher,
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
    best_fragments = assessed.best(
        settings.top or max(FEWEST_FRAGMENTS, run.room // SMALLEST_FRAGMENT)
    )
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


PASSAGES = Strategy(begin=begin_passages)
WHOLE = Strategy(begin=begin_whole)
TEMP_MEM = Strategy(begin=begin_temp_mem)
FRAGMENT = Strategy(begin=begin_fragments)
