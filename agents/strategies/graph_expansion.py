"""Graph Expansion Search: relations near the question add entities, then one call answers.

    begin -> widen -> (widen | elaborate) ; elaborate -> read -> (answered: end | conclude)

The reasoner is called twice: to elaborate the question, and to answer it. If an answer is to be
forced, the second call forces it.
"""

from qrmem.agents.search import reading_on
from qrmem.agents.search.run import Search
from qrmem.agents.search.start import question_text
from qrmem.agents.search.state import SearchState
from qrmem.agents.search.steps import Calls, Strategy
from qrmem.graph import expansion
from qrmem.graph.expansion import Walk
from qrmem.types import Relation

WHOLE_GRAPH = 2000
"""Up to this many entities the elaborated query is compared with all relations, as in the paper; in
a larger memory only with relations around E."""
SHOWN = 30
"""Maximum number of relations in the prompt that elaborates the question."""
TIE = 0.01
"""Maximum that a segment's own similarity to the query adds to its relation's score."""


async def expand(run: Search, state: SearchState) -> SearchState:
    """Add the neighbours over the edges most similar to the question."""
    walk = Walk(tuple(state["entities"]), frozenset(state["taken"]))
    edges = expansion.frontier((await run.graph.relations(walk.entities)).values(), walk)
    scores = await run.edge_scores(question_text(run), edges)
    # A cosine threshold does not apply to BM25: there the frontier's own scores decide.
    threshold = run.options.threshold if run.scorer.is_dense else None
    worthy = expansion.worthy_edges(edges, scores, threshold=threshold, width=run.options.width)
    for edge in worthy:
        walk = walk.along(edge)
    edges_taken = {edge.key for edge in worthy}
    stating = {id: scores[edge.key] for edge in reversed(worthy) for id in edge.segments}
    await run.tell_expansion(
        walk, edges, scores, edges_taken, query=question_text(run), brought=stating
    )
    return {
        "entities": list(walk.entities),
        "taken": sorted(walk.taken),
        "moves": 1,
        "has_moved": bool(worthy),
    }


async def elaborate(run: Search, state: SearchState) -> SearchState:
    """Rank relations by the question and its elaboration, and take their segments.

    After a start from entities these replace S_imp, as in the paper; after a search they are added
    to its hits.
    """
    around = await run.graph.relations(state["entities"])
    edges_taken = set(state["taken"])
    scores = await run.edge_scores(question_text(run), list(around.values()))
    ranked = expansion.ranked(around.values(), scores)
    ranked.sort(key=lambda edge: edge.key not in edges_taken)
    names = run.graph.known_names(ranked)
    query = await run.reasoner.elaborate(
        run.context,
        await run.graph.names(state["entities"]),
        [expansion.edge_text(edge, names) for edge in ranked[:SHOWN]],
    )
    whole = " ".join((question_text(run), query)).strip()
    run.tell("elaborate", entities=await run.graph.names(state["entities"]), reason=query)
    stating = await _stating(run, whole, await _candidates(run, around))
    if run.options.start == "entities" and stating:
        return {"important": stating}
    if run.is_reading_on:
        rankings = [sorted(s, key=lambda id: -s[id]) for s in (state["important"], stating)]
        return {"added": reading_on.ranked_together(rankings)}
    return {"added": stating}


async def _candidates(run: Search, around: dict[str, Relation]) -> list[Relation]:
    counts = await run.store.counts(run.ns)
    if counts.get("entities", 0) > WHOLE_GRAPH:
        return list(around.values())
    entities = await run.store.list_entities(run.ns, WHOLE_GRAPH)
    return list((await run.graph.relations([entity.key for entity in entities])).values())


async def _stating(run: Search, query: str, edges: list[Relation]) -> dict[str, float]:
    """Return the segments that state relations near the query, scored by the best of these."""
    scores = await run.edge_scores(query, edges)
    best: dict[str, float] = {}
    for edge in edges:
        for segment_id in edge.segments:
            best[segment_id] = max(scores[edge.key], best.get(segment_id, 0.0))
    stating = {id: score for id, score in best.items() if score > 0}
    similarities = await run.scorer.score_segments(query, list(stating))
    return {id: score + TIE * max(similarities.get(id, 0.0), 0.0) for id, score in stating.items()}


STRATEGY = Strategy(
    widen=expand,
    elaborate=elaborate,
    calls=(Calls("elaborate", growth=0.25, reply=30), Calls(growth=1.5)),
)
