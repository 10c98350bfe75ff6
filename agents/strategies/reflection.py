"""QRMeM's own strategy, navigation by reflection: Algorithm 1, corrected (section 2.2).

    begin -> read -> (answered: end | trials used up: conclude | move) ; move -> (read | conclude)

After a reading that does not answer, the edge most similar to question, reason and entities,
[Q;R;E], leads to one new node, whose segments join S_add with the edge's score. Unless
`paper_exact` is set, the hits for what the verdict looks for compete with that edge's segments, and
the next reading holds what was not read.
"""

from qrmem.agents.search import reading_on
from qrmem.agents.search.run import Search
from qrmem.agents.search.start import question_text
from qrmem.agents.search.state import SearchState
from qrmem.agents.search.steps import Calls, Strategy
from qrmem.graph import expansion
from qrmem.graph.expansion import Walk
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import Relation

STATED = 0.05
"""Additions to the score of a new node's segment: if it states the edge that led there, and at most
for its similarity to the query. Deviation: the paper gives all segments of a node the same score,
so it is arbitrary which segments of a frequent entity fit the window."""


async def move(run: Search, state: SearchState) -> SearchState:
    """Find new passages: by reading on with a chat model, else by the paper's expansion."""
    return await read_on(run, state) if run.is_reading_on else await expand(run, state)


async def read_on(run: Search, state: SearchState) -> SearchState:
    """Rank the passages that were not read: those looked for, of the next edge, and of S_imp.

    The names that the verdict looks for join E. The search ends if there is no such passage.
    """
    seen = set(state["seen"])
    found = await reading_on.searched(run, state)
    sought = await reading_on.named(run, state["sought"])
    entities = dict.fromkeys((*sought, *state["entities"]))
    walk = Walk(tuple(entities), frozenset(state["taken"]))
    most = run.options.expansions - state["moves"]
    query = await _query(run, {**state, "entities": list(entities)})
    walk, brought, moves = await reading_on.next_edge(run, walk, query, seen, most=most)
    left = {**state["added"], **state["important"]}
    rest = sorted((id for id in left if id not in seen), key=lambda id: -left[id])
    return {
        "entities": list(walk.entities),
        "taken": sorted(walk.taken),
        "added": reading_on.ranked_together([list(found), list(brought), rest]),
        "moves": moves,
        "has_moved": bool(found or brought or rest),
    }


async def expand(run: Search, state: SearchState) -> SearchState:
    """Add nodes until there is a new passage to read, or no edge is left.

    A node whose segments were all read, or do not fit, is kept without a call, as the same passages
    would get the same verdict. With `paper_exact` one node is added between two readings, with the
    current R and E; a repeated reading costs no call.
    """
    walk = Walk(tuple(state["entities"]), frozenset(state["taken"]))
    added, moves, has_moved = dict(state["added"]), state["moves"], False
    before = set(state["read"])
    query = await _query(run, state)
    is_exact = run.options.paper_exact
    while moves < run.options.expansions and not has_moved:
        edges = expansion.frontier((await run.graph.relations(walk.entities)).values(), walk)
        scores = await run.edge_scores(query, edges)
        edge = expansion.best_edge(edges, scores)
        if edge is None:
            break
        moves += 1
        node = expansion.outer_end(edge, walk)
        walk = walk.along(edge)
        new = await _reached(run, query, edge, node, scores[edge.key])
        expansion.lead_to(added, new, before)
        packed = await run.packed({**state, "added": added})
        has_moved = is_exact or {w.segment.id for w in packed.read} != before
        await run.tell_expansion(walk, edges, scores, {edge.key}, query=query, brought=new)
    return {
        "entities": list(walk.entities),
        "taken": sorted(walk.taken),
        "added": added,
        "moves": moves - state["moves"],
        "has_moved": has_moved,
    }


async def _query(run: Search, state: SearchState) -> str:
    """Return [Q;R;E], the options with the question; without reflection, R is left out."""
    reason = state["reason"] if run.options.reflection else ""
    if run.is_reading_on and run.options.reflection:
        reason = "; ".join((*state["sought"], reason))
    names = await run.graph.names(state["entities"])
    return expansion.query_text(question_text(run), reason, names, BuiltinTokenizer())


async def _reached(
    run: Search, query: str, edge: Relation, node: str, score: float
) -> dict[str, float]:
    """Return the new node's segments with the edge's score and additions for their own text.

    With `paper_exact` they all have the edge's score.
    """
    await run.graph.look([node], texts=True)
    ids = (await run.graph.places([node]))[node]
    if run.options.paper_exact:
        return dict.fromkeys(ids, score)
    similarities = await run.scorer.score_segments(query, ids)
    stating = set(edge.segments)
    return {
        id: score + STATED * (id in stating) + STATED * max(similarities.get(id, 0.0), 0.0)
        for id in ids
    }


STRATEGY = Strategy(move=move, calls=(Calls(mean=2, most=None, growth=1.25),))
