"""Reading on: what a later reading holds, and where a search finds the next passages.

In a small window a reading holds one or two passages. Each reading holds passages that no earlier
one had. Notes say what the earlier ones found, and statements of the graph say what other passages
state. A verdict without an answer says what to look for: that is searched for, and the hits compete
with the graph's next edge. Labels (S1, S2, …) are those of the whole run, so that an answer may
quote what any reading held.

Deviation: QRMeM keeps S_imp in the window, so that in a small window nothing else fits. With
`paper_exact` a search reads as the paper does. See docs/adr/0029.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from qrmem.agents.search.run import Search, scored
from qrmem.agents.search.state import SearchState
from qrmem.errors import WindowTooSmall
from qrmem.graph import expansion
from qrmem.graph.expansion import Walk
from qrmem.graphstore.reads import names_called
from qrmem.text.names import normalise_name
from qrmem.text.words import STOP_WORDS
from qrmem.types import Finding, Passage, Relation, Verdict

SHARE_OF_NOTES, SHARE_OF_STATEMENTS = 8, 10
"""Notes take at most an eighth of the window, statements at most a tenth."""
LONGEST_NAME = 6
"""Maximum number of words of a name in a question."""
_AROUND = "\"'“”‘’„«»()[]{}.,;:?!…"
MOST_EDGES = 20
"""Maximum number of edges whose statements are considered for a prompt."""


# --- what earlier readings found -----------------------------------------------------------------


def remember(run: Search, state: SearchState) -> None:
    """Put the notes of the earlier readings into the context, and make room for statements."""
    if not run.is_reading_on:
        return
    context = replace(run.context, notes=_notes(run, state), statements=())
    try:
        room = run.reasoner.room(context)
    except WindowTooSmall:  # the question and its options leave no room for notes
        context = replace(context, notes=())
        room = run.reasoner.room(context)
    # A verdict that could not be read may need more of the window for its reply.
    run.context, run.room = context, room >> len(state.get("failures", ()))
    run.room_beside = min(run.options.window // SHARE_OF_STATEMENTS, run.room // 4)


def _notes(run: Search, state: SearchState) -> tuple[str, ...]:
    """Return the facts of earlier readings and the last reason, as lines; the newest ones that fit.

    Older reasons mostly say what was not there.
    """
    findings = state.get("findings", [])
    facts = [f"{one['label']}: {one['text']}" for one in findings if one["label"]]
    reasons = [one["text"] for one in findings if not one["label"]]
    room = run.options.window // SHARE_OF_NOTES
    lines: list[str] = []
    for line in reversed([*facts, *reasons[-1:]]):
        room -= run.parts.counter.count(line) + 1
        if room < 0:
            break
        lines.append(line)
    return tuple(reversed(lines))


def learned(
    run: Search, state: SearchState, verdict: Verdict, passages: Sequence[Passage]
) -> SearchState:
    """Return what a reading adds to the state: passages read, findings, and what to look for.

    Passages whose verdict could not be read count as unread.
    """
    if verdict.problem:
        return {}
    findings = list(state.get("findings", ()))
    known = {(one["label"], one["text"]) for one in findings}
    labels = {passage.label for passage in passages} | set(run.graph.labels.values())
    reason = Finding("", verdict.reason)
    for one in (*verdict.findings, *([reason] if verdict.reason else [])):
        label = one.label if one.label in labels else ""
        if (label, one.text) not in known:
            findings.append({"label": label, "text": one.text})
    return {
        "seen": list(dict.fromkeys((*state.get("seen", ()), *(p.segment.id for p in passages)))),
        "labels": list(run.graph.labels),
        "findings": findings,
        "sought": list(verdict.look_for),
    }


# --- statements of the graph ---------------------------------------------------------------------


async def with_statements(
    run: Search, state: SearchState, passages: Sequence[Passage]
) -> list[Passage]:
    """Label the passages for the whole run, and put statements of other passages into the context.

    Only what a chat model stated counts: a guess by rules goes into no prompt.

    Returns:
        The passages with their labels.
    """
    labels = run.graph.labels
    for passage in passages:
        run.graph.label(passage.segment.id)
    shown = {passage.segment.id for passage in passages}
    lines: list[str] = []
    room_left = run.room_beside
    for segment_id, text in await _nearest_statements(run, state, shown):
        label = labels.get(segment_id) or f"S{len(labels) + 1}"
        line = f"{label}: {text}"
        size = run.parts.counter.count(line) + 1
        if size > room_left:
            break
        run.graph.label(segment_id)
        lines.append(line)
        room_left -= size
    run.context = replace(run.context, statements=tuple(lines))
    return [replace(passage, label=labels[passage.segment.id]) for passage in passages]


async def _nearest_statements(
    run: Search, state: SearchState, shown: set[str]
) -> list[tuple[str, str]]:
    """Return segment and text of the statements nearest to the question, best edge first."""
    entities = list(dict.fromkeys((*await named(run, [question_of(run)]), *state["entities"])))
    edges = list((await run.graph.relations(entities)).values())
    scores = await run.edge_scores(question_of(run), edges)
    best = expansion.ranked(edges, scores)[:MOST_EDGES]
    facts = [fact for edge in best if scores[edge.key] > 0 for fact in edge.facts]
    facts = [fact for fact in facts if fact.segment_id not in shown]
    stated = await run.graph.read_by_model({fact.segment_id for fact in facts})
    ends = [end for fact in facts for end in (fact.head, fact.tail)]
    names = dict(zip(ends, await run.graph.names(ends), strict=True))
    return list(
        dict.fromkeys(
            (fact.segment_id, f"{names[fact.head]} {fact.description} {names[fact.tail]}")
            for fact in facts
            if fact.segment_id in stated
        )
    )


def question_of(run: Search) -> str:
    """Return the question with its options."""
    return " ".join((run.context.question, *run.context.choices))


# --- where to read on ----------------------------------------------------------------------------


async def named(run: Search, texts: Sequence[str]) -> list[str]:
    """Return the entities of all names in some texts, in any of their forms."""
    norms = dict.fromkeys(norm for text in texts for norm in _possible_names(text))
    rows = await names_called(run.store, run.ns, norms)
    entities = list(dict.fromkeys(row.entity for row in rows))
    places = await run.graph.places(entities)
    return [key for key in entities if places[key]]


def _possible_names(text: str) -> list[str]:
    """Return the runs of words in a text that may be a name, normalised, the longest first."""
    words = [word.strip(_AROUND) for word in text.split()]
    runs = [
        words[start : start + length]
        for length in range(LONGEST_NAME, 0, -1)
        for start in range(len(words) - length + 1)
    ]
    ends_of_names = [run for run in runs if not {run[0].lower(), run[-1].lower()} & STOP_WORDS]
    return list(dict.fromkeys(filter(None, (normalise_name(" ".join(r)) for r in ends_of_names))))


async def searched(run: Search, state: SearchState) -> dict[str, float]:
    """Search for what the last verdict looks for; return the hits that no reading held.

    The step is recorded with what was looked for.
    """
    sought = state.get("sought", ()) if run.options.reflection else ()
    seen = set(state.get("seen", ()))
    queries = [*sought] or [f"{question_of(run)} {state['reason']}".strip()]
    k = run.options.hits + len(seen)
    rankings = [
        [
            hit.segment_id
            for hit in await run.searcher.search(q, k=k, documents=run.options.documents)
        ]
        for q in queries
    ]
    unread = [[id for id in ranking if id not in seen] for ranking in rankings]
    found = ranked_together(unread)
    segments = await run.graph.segments(found)
    run.tell(
        "search",
        entities=await run.graph.names(state["entities"]),
        query="; ".join(queries),
        brought=scored(await run.candidates_of(found), found, {}),
        reason="" if segments else "nothing is found that was not read",
    )
    return found


def ranked_together(rankings: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return the ids of several rankings with one score, in (0, 1]: the rankings take turns."""
    order = dict.fromkeys(id for row in zip_longest(*rankings) for id in row if id is not None)
    return {id: 1 / (1 + at) for at, id in enumerate(order)}


async def next_edge(
    run: Search, walk: Walk, query: str, seen: set[str], *, most: int
) -> tuple[Walk, dict[str, float], int]:
    """Follow the edges most similar to a query until one brings a passage that was not read.

    An edge between two entities of E counts, too, if a passage that states it was not read.

    Returns:
        The walk, the passages with the edge's score, and the number of edges.
    """
    for moves in range(1, most + 1):
        edges = _edges_on(list((await run.graph.relations(walk.entities)).values()), walk, seen)
        scores = await run.edge_scores(query, edges)
        edge = expansion.best_edge(edges, scores)
        if edge is None:
            return walk, {}, moves - 1
        brought = await _brought(run, walk, edge, query, seen, scores[edge.key])
        walk = walk.along(edge)
        await run.tell_expansion(walk, edges, scores, {edge.key}, query=query, brought=brought)
        if brought:
            return walk, brought, moves
    return walk, {}, most


def _edges_on(edges: Sequence[Relation], walk: Walk, seen: set[str]) -> list[Relation]:
    inside = set(walk.entities)
    return [
        edge
        for edge in edges
        if edge.key not in walk.taken
        and (not {edge.head, edge.tail} <= inside or not set(edge.segments) <= seen)
    ]


async def _brought(
    run: Search, walk: Walk, edge: Relation, query: str, seen: set[str], score: float
) -> dict[str, float]:
    """Return the unread passages of an edge: those that state it, then those of its new end."""
    stating = [id for id in edge.segments if id not in seen]
    node = expansion.outer_end(edge, walk)
    others: Mapping[str, float] = {}
    if node not in walk.entities:
        await run.graph.look([node], texts=True)
        ids = [id for id in (await run.graph.places([node]))[node] if id not in seen]
        others = await run.scorer.score_segments(query, ids)
    rest = sorted((id for id in others if id not in stating), key=lambda id: -others[id])
    return {id: round(score / (1 + at / 10), 4) for at, id in enumerate((*stating, *rest))}


async def last_passages(run: Search, state: SearchState) -> dict[str, float]:
    """Return the passages for a forced answer: those with findings first, then by their score."""
    by_label = {label: id for id, label in run.graph.labels.items()}
    found = [
        by_label[one["label"]] for one in state.get("findings", ()) if one["label"] in by_label
    ]
    scores = {**state["important"], **state["added"]}
    top = max(scores.values(), default=0.0)
    return {**scores, **dict.fromkeys(found, top + 1.0)}
