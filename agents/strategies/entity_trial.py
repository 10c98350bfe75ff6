"""Entity Trial: the reasoner chooses new entities in each trial (QRMeM, section 2.2).

begin -> read -> (answered: end | trials used up: conclude | move) ; move -> (read | conclude)
"""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import zip_longest

from qrmem.agents.search import reading_on
from qrmem.agents.search.run import Search
from qrmem.agents.search.start import important
from qrmem.agents.search.state import SearchState
from qrmem.agents.search.steps import Calls, Strategy
from qrmem.text.names import split_key

MOST_CANDIDATES = 2000
"""Maximum number of names in the prompt, most frequent first; the window may allow fewer."""


async def revise(run: Search, state: SearchState) -> SearchState:
    """Let the reasoner choose entities, E <- LLM(E, R, S_imp, Q); their segments replace S_imp.

    The search ends if E does not change, if the new E leads to segments that were read, or if R, E
    and S_imp leave no room for a name in the window.
    """
    if run.is_reading_on:
        return await _read_on(run, state)
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


async def _read_on(run: Search, state: SearchState) -> SearchState:
    """Let the reasoner choose from the nearest names, with notes instead of S_imp.

    The passages of the chosen entities that were not read compete with the hits for what the last
    verdict looks for. The search ends if there are neither.
    """
    seen = set(state["seen"])
    found = await reading_on.searched(run, state)
    keys = await _nearest(run, state, list(found))
    names = await run.graph.names(keys)
    places = await run.graph.places(keys)
    key_of = {name: key for name, key in reversed(list(zip(names, keys, strict=True)))}
    chosen = await run.reasoner.revise(
        run.context,
        current=await run.graph.names(state["entities"]),
        candidates=[(name, len(places[key])) for name, key in zip(names, keys, strict=True)],
        reason="\n".join((*run.context.notes, state["reason"], *state["sought"])),
        passages=(),
    )
    entities = [key_of[name] for name in chosen if name in key_of]
    run.tell("revise", entities=chosen, reason=state["reason"])
    of_entities = await important(run, entities)
    brought = sorted((id for id in of_entities if id not in seen), key=lambda id: -of_entities[id])
    return {
        "entities": entities or state["entities"],
        "important": {**state["important"], **of_entities},
        "added": reading_on.ranked_together([list(found), brought]),
        "moves": 1,
        "has_moved": bool(found or brought),
    }


async def _nearest(run: Search, state: SearchState, hits: Sequence[str]) -> list[str]:
    """Return entities: the current ones, those that question and verdict name, and those of hits.

    The most frequent ones follow. Names without a letter are left out: a bare number says nothing
    about its passages.
    """
    texts = [reading_on.question_of(run), state["reason"], *state["sought"]]
    of_hits = (await run.graph.entities_in([*hits, *state["read"]])).values()
    keys = [*state["entities"], *await reading_on.named(run, texts)]
    keys += [key for row in zip_longest(*of_hits) for key in row if key is not None]
    keys += [key for _, key, _ in await _candidates(run)]
    nearest = [key for key in dict.fromkeys(keys) if any(map(str.isalpha, split_key(key)[0]))]
    return nearest[:MOST_CANDIDATES]


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
        Calls("trial", mean=0.7, least=0, most=None, growth=0.7, reply=20),
    ),
)
