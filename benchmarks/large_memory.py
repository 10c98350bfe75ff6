"""A memory with a given number of nodes, written directly through a store's protocol.

One long document with a tree, many short ones, of which a third are turns of conversations, trails,
and three entities that stand in a third of all segments each, some of them under a shorter name.
Reading so much text takes an hour; what looks at a memory does not see who read it. Or the passages
that a memory has read, written again under other ids.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter

from qrmem.graph.view_rows import Rows, change_of, readings, rows_of
from qrmem.graphstore import GraphStore, NamespaceInfo
from qrmem.graphstore.protocol import EntityRow, FactRow, MentionRow, ViewUpdate
from qrmem.llm.parallel import in_batches
from qrmem.retrieval.trees.nodes import (
    StoredNode,
    node_key,
    prefix_of,
    save,
    save_tree,
)
from qrmem.text.names import name_key, normalise_name
from qrmem.text.words import terms
from qrmem.types import (
    Document,
    LedgerRow,
    MetaValue,
    Question,
    ScoredEdge,
    ScoredSegment,
    Segment,
    Step,
    Trail,
    Usage,
)
from qrmem.types.documents import Tree, TreeNode
from qrmem.types.turns import CHAT_KEY, ROLE_KEY, TURN_KEY, USER_KEY, turn_id

BOOK = "book"
HUBS = ("Nell Sayle", "Tam Garrick", "Rosa Quint")
NEW_NAMES = 2
"""New entities of each segment; with itself it has three nodes."""
_BATCH = 2000
_COPIED = 250
"""Documents that are copied in one transaction: a Neo4j with a small heap fails with 2,000."""
_TRAILS = 100
USERS, SESSIONS = ("ann", "ben", "cleo", "dora", "emil"), 10
"""Speakers, and the number of conversations of each."""
_SHORT = 25
"""One in so many segments uses a short name for its frequent entity."""
_FAN = 6


SYLLABLES = "ba ce di fo gu ha ke li mo nu pa re si to vu wa ye zo".split()  # noqa: SIM905


def _word(number: int, syllables: int) -> str:
    parts = []
    for _ in range(syllables):
        number, rest = divmod(number, len(SYLLABLES))
        parts.append(SYLLABLES[rest])
    return "".join(parts).capitalize() + ("" if not number else SYLLABLES[number % 18])


def person(n: int) -> str:
    """Return the name of the n-th person."""
    return f"{_word(n % 997, 2)} {_word(n, 4)}"


def passage(n: int) -> tuple[str, list[str]]:
    """Return a passage, and the names in it."""
    first, second, hub = person(2 * n), person(2 * n + 1), HUBS[n % 3]
    hub = hub if n % _SHORT else f"{hub[0]}. {hub.split()[1]}"
    text = (
        f"{first} met {hub} on the pier and spoke of the voyage until it grew dark. The rain had "
        f"not stopped for three days. Nobody had heard from {second} since {first} sold the mill. "
        "The old books were kept in a room that nobody had opened since the fire."
    )
    return text, [first, hub, second]


async def fill(store: GraphStore, ns: str, nodes: int) -> None:
    """Fill an empty store with about `nodes` segments and entities, and some trails."""
    await store.create_namespace(ns, NamespaceInfo(ns, "builtin-v1", 600))
    count = nodes // (1 + NEW_NAMES)
    book = list(_book(count // 8))
    text = "\n\n".join(segment.text for segment in book)
    await store.put_documents(ns, [(Document(text, "A long book", id=BOOK), book)])
    await _read(store, ns, book, 0)
    for first in range(len(book), count, _BATCH):
        made = [_note(n) for n in range(first, min(first + _BATCH, count))]
        await store.put_documents(ns, [(_document(s), [s]) for s in made])
        await _read(store, ns, made, first)
    await _tree(store, ns, book)
    for n in range(_TRAILS):
        await store.put_trail(ns, _trail(n, book))


def _book(count: int) -> Iterator[Segment]:
    start = 0
    for n in range(count):
        text, _ = passage(n)
        yield Segment(f"{BOOK}:{n}", BOOK, n, start, start + len(text), text, 60)
        start += len(text) + 2


def _note(n: int) -> Segment:
    text, _ = passage(n)
    return Segment(
        f"note:{n}", turn_id(n) if _is_turn(n) else f"note {n:06}", 0, 0, len(text), text, 60
    )


def _is_turn(n: int) -> bool:
    return n % 3 == 1


def _at(n: int) -> str:
    """Return the time of a turn: one in each hour, over years."""
    return f"{2020 + n // 8000:04}-{n // 700 % 12 + 1:02}-{n // 24 % 28 + 1:02}T{n % 24:02}:00:00"


def _document(segment: Segment) -> Document:
    n = int(segment.id.removeprefix("note:"))
    if not _is_turn(n):
        return Document(segment.text, id=segment.document_id)
    user, session = USERS[n // 3 % len(USERS)], n // 3 // len(USERS) % SESSIONS
    told: dict[str, MetaValue] = {
        CHAT_KEY: f"week {session}",
        TURN_KEY: n,
        USER_KEY: user,
        "at": _at(n),
    }
    return Document(
        segment.text, id=turn_id(n), metadata={**told, ROLE_KEY: "user", "speaker": user}
    )


async def _read(store: GraphStore, ns: str, segments: Sequence[Segment], first: int) -> None:
    mentions, facts, index, questions = [], [], {}, []
    entities: dict[str, str] = {key_of(hub): hub for hub in HUBS}
    for n, segment in enumerate(segments, first):
        _, names = passage(n)
        keys = [key_of(name) for name in names]
        entities |= dict(zip(keys, names, strict=True))
        mentions += [
            MentionRow(segment.id, key, ((name, 1),)) for key, name in zip(keys, names, strict=True)
        ]
        for at, (head, tail) in enumerate(((0, 1), (2, 0))):
            told = segment.text.split(". ")[2 * at] + "."
            when = _at(n) if segment.document_id == turn_id(n) else ""
            facts.append(FactRow(segment.id, at, keys[head], keys[tail], told, said_at=when))
        questions.append(Question(f"Whom did {names[0]} meet on the pier?", segment.id))
        index[segment.id] = Counter(terms(segment.text))
    known = list(entities)
    owners = {key_of(f"{hub[0]}. {hub.split()[1]}"): key_of(hub) for hub in HUBS}
    entities = {key: name for key, name in entities.items() if key not in owners}
    info = await store.namespace(ns)
    assert info is not None
    change = ViewUpdate(
        mentions=mentions,
        facts=facts,
        questions=questions,
        index=index,
        names={key: owners.get(key, key) for key in known},
        entities=[EntityRow(key, name, "PERSON") for key, name in entities.items()],
        merged={segment.id: "written" for segment in segments},
        resolved=list(entities),
    )
    await store.apply(ns, info.revision, change)
    await store.record(ns, [(LedgerRow(segment.id, "ok"), None) for segment in segments])


def key_of(name: str) -> str:
    """Return the key of a person."""
    return name_key(normalise_name(name), "PERSON")


async def _tree(store: GraphStore, ns: str, book: Sequence[Segment]) -> None:
    prefix = prefix_of("ilm", BOOK)
    level = [_node(prefix, 1, [segment.id], [segment.id], segment.text[:90]) for segment in book]
    nodes = list(level)
    while len(level) > _FAN:
        level = list(_above(prefix, level))
        nodes += level
    for node in nodes:
        await save(store, ns, StoredNode(node))
    tree = Tree(BOOK, "ilm", tuple(nodes), tuple(node.key for node in level))
    await save_tree(store, ns, tree, [segment.id for segment in book], {"method": "written"})


def _above(prefix: str, level: Sequence[TreeNode]) -> Iterator[TreeNode]:
    for first in range(0, len(level), _FAN):
        below = level[first : first + _FAN]
        segments = [id for node in below for id in node.segments]
        keys = [node.key for node in below]
        yield _node(prefix, below[0].level + 1, keys, segments, below[0].summary)


def _node(
    prefix: str, level: int, covers: Sequence[str], segments: Sequence[str], summary: str
) -> TreeNode:
    key = node_key(prefix, "written", level, covers)
    surprise = ("Nobody had expected that.",)
    return TreeNode(key, BOOK, level, summary, surprise, tuple(covers), tuple(segments))


def _trail(n: int, book: Sequence[Segment]) -> Trail:
    at = n % (len(book) - 3)
    text, (first, hub, _) = passage(at)
    read = tuple(ScoredSegment(s.id, 1 - i / 4, s.tokens) for i, s in enumerate(book[at : at + 3]))
    edge = ScoredEdge("", key_of(first), key_of(hub), text.split(". ")[0], 0.9, taken=True)
    steps = (
        Step(1, "start", entities=(first,)),
        Step(2, "expand", entities=(hub,), edges=(edge,)),
        Step(3, "read", read=read, verdict="answerable", reason=text),
    )
    return Trail(
        id=f"trail{n:05}",
        question=f"Whom did {first} meet on the pier?",
        strategy="graph-expansion",
        window=4096,
        status="answered",
        answer=hub,
        steps=steps,
        usage=Usage(),
        created=f"2026-01-01T{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}Z",
    )


# --- copies --------------------------------------------------------------------------------------


async def write_copies(store: GraphStore, ns: str, ids: Sequence[str], count: int) -> int:
    """Write documents again under other ids, with all that was read in them.

    Args:
        store: the store.
        ns: the namespace.
        ids: the documents, which are copied in turn.
        count: the number of copies; rounded up to whole batches.

    Returns:
        The number of characters that were written.
    """
    characters, left = 0, count
    rounds = -(-count // len(ids))
    for batch in in_batches(sorted(ids), _COPIED):
        rows, documents = await _what_was_read(store, ns, batch)
        for number in range(min(rounds, -(-left // len(batch)))):
            renamed = partial("copy {}: {}".format, number)
            copied = [_copy_of(*each, renamed) for each in documents]
            await store.put_documents(ns, copied)
            info = await store.namespace(ns)
            assert info is not None
            # A copy brings no new name: none has to be resolved again by the next `add`.
            change = replace(
                change_of(_rows_of_copy(rows, renamed)),
                resolved=sorted({row.name for row in rows.mentions}),
            )
            await store.apply(ns, info.revision, change)
            read = [LedgerRow(segment.id, "ok") for _, own in copied for segment in own]
            await store.record(ns, [(row, None) for row in read])
            characters += sum(len(document.text) for document, _ in copied)
            left -= len(batch)
    return characters


async def _what_was_read(
    store: GraphStore, ns: str, ids: Sequence[str]
) -> tuple[Rows, list[tuple[Document, list[Segment]]]]:
    """Return the rows of some documents, and the documents with their segments."""
    found, rows = await store.unmerged(ns, *ids), Rows()
    for read in readings(found.segments, found.contributions, found.said_at):
        rows.add(rows_of(read))
    titles = {info.id: info.title for info in await store.documents(ns, ids)}
    grouped = groupby(found.segments, key=attrgetter("document_id"))
    own = {id_: list(segments) for id_, segments in grouped}
    texts = {id_: "\n\n".join(segment.text for segment in own[id_]) for id_ in own}
    return rows, [(Document(texts[id_], titles[id_], id=id_), own[id_]) for id_ in own]


def _copy_of(
    document: Document, segments: Sequence[Segment], renamed: Callable[[str], str]
) -> tuple[Document, list[Segment]]:
    own_id = renamed(str(document.id))
    return replace(document, id=own_id), [
        replace(segment, id=renamed(segment.id), document_id=own_id) for segment in segments
    ]


def _rows_of_copy(rows: Rows, renamed: Callable[[str], str]) -> Rows:
    return Rows(
        [replace(row, segment_id=renamed(row.segment_id)) for row in rows.mentions],
        [replace(row, segment_id=renamed(row.segment_id)) for row in rows.facts],
        [replace(row, segment_id=renamed(row.segment_id)) for row in rows.questions],
        {renamed(id_): counts for id_, counts in rows.index.items()},
        {renamed(id_): digest for id_, digest in rows.merged.items()},
    )
