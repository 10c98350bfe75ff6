"""Entity Trial: the reasoner chooses new entities in each trial (QRMeM, section 2.2).

begin -> read -> (answered: end | trials used up: conclude | move) ; move -> (read | conclude)
"""

from collections import Counter
from collections.abc import Collection

from qrmem.agents.search.run import Search
from qrmem.agents.search.start import important
from qrmem.agents.search.state import SearchState
from qrmem.agents.search.steps import Calls, Strategy

MOST_CANDIDATES = 2000
"""Maximum number of names in the prompt, most frequent first; the window may allow fewer."""


async def revise(run: Search, state: SearchState) -> SearchState:
    """Let the reasoner choose entities, E <- LLM(E, R, S_imp, Q); their segments replace S_imp.

    The search ends if E does not change, if the new E leads to segments that were read, or if R, E
    and S_imp leave no room for a name in the window.
    """
    candidates = await _candidates(run)
    current = await run.graph.names(state["entities"])
    segments = await run.graph.segments(state["read"])
    names = await run.reasoner.revise(
        run.context,
        current=current,
        candidates=[(name, count) for name, _, count in candidates],
        reason=state["reason"],
        passages=await run.graph.passages(segments),
    )
    chosen_names = set(names)
    entities = [key for name, key, _ in candidates if name in chosen_names]
    used_up = "the window is used up: no other name fits beside what was read"
    run.tell("revise", entities=names, reason=state["reason"] if names else used_up)
    if not entities or set(entities) == set(state["entities"]):
        return {"has_moved": False}
    moved: SearchState = {"entities": entities, "important": await important(run, entities)}
    packed = await run.packed({**state, **moved})
    has_moved = {w.segment.id for w in packed.read} != set(state["read"])
    return {**moved, "moves": 1, "has_moved": has_moved}


async def _candidates(run: Search) -> list[tuple[str, str, int]]:
    """Return name, key and number of segments of all entities, most frequent first."""
    documents = run.options.documents
    if documents is None and run.options.segments is None:
        entities = await run.store.list_entities(run.ns, MOST_CANDIDATES)
        return [(entity.name, entity.key, entity.segments) for entity in entities]
    counts = Counter(await _occurrences(run, documents))
    best = sorted(counts, key=lambda key: (-counts[key], key))[:MOST_CANDIDATES]
    names = await run.graph.names(best)
    return [(name, key, counts[key]) for name, key in zip(names, best, strict=True)]


async def _occurrences(run: Search, documents: Collection[str] | None) -> list[str]:
    entity_keys: list[str] = []
    if run.options.segments is not None:
        ids = [segment.id for segment in await run.all_segments(len(run.options.segments))]
        inside = await run.graph.entities_in(ids)
        return [key for keys in inside.values() for key in keys]
    for document_id in sorted(documents or ()):
        segments = await run.store.segments(run.ns, documents=[document_id])
        inside = await run.graph.entities_in([segment.id for segment in segments])
        entity_keys += [key for keys in inside.values() for key in keys]
    return entity_keys


STRATEGY = Strategy(
    move=revise,
    calls=(
        Calls(mean=1.2, most=None, growth=1.2),
        Calls("trial", mean=0.7, least=0, most=None, growth=1.7, reply=20),
    ),
)
