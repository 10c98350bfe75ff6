"""The best hits of one search, read once: the strategy without a chat model."""

from qrmem.agents.search.run import Search
from qrmem.agents.search.start import question_text
from qrmem.agents.search.state import SearchState
from qrmem.agents.search.steps import Strategy, began
from qrmem.text.numbers import counted

HITS = 8
"""Maximum number of hits; more of them would include chance matches."""


async def begin(run: Search, state: SearchState) -> SearchState:
    """Search; entities are not needed, as there is no next move."""
    hits = await run.searcher.search(question_text(run), k=HITS, documents=run.options.documents)
    run.tell("start", reason=f"{counted(len(hits), 'passages')} found by search")
    hit_reasons = {hit.segment_id: [hit.via, list(hit.over)] for hit in hits}
    few = () if hits else await run.all_segments(HITS)
    scores = {hit.segment_id: hit.score for hit in hits} or {one.id: 0.0 for one in few}
    return {**began(scores), "hits": hit_reasons}


STRATEGY = Strategy(begin=begin)
