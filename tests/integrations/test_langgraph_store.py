"""The LangGraph store beside LangGraph's own: the same operations, the same results."""

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, Op, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from servers.openai_server import serving
from typing_extensions import TypedDict

import qrmem
from qrmem import sync
from qrmem.errors import UsageError
from qrmem.integrations.langgraph import MemoryStore


@pytest.fixture
def memory() -> Iterator[sync.Memory]:
    with sync.open("memory://", embedder="none") as opened:
        yield opened


def told(items: Any) -> Any:
    """What an operation gave, without times and scores."""
    if isinstance(items, list):
        return [told(item) for item in items]
    if items is None or isinstance(items, tuple):
        return items
    return (*items.namespace, items.key, items.value)


def filled(store: BaseStore) -> BaseStore:
    store.put(("users", "ada"), "likes", {"food": "figs", "rank": 3, "tags": ["a", "b"]})
    store.put(("users", "ada"), "lives", {"city": "London", "rank": 1})
    store.put(("users", "ben", "work"), "job", {"title": "keeper of the light", "rank": 2})
    store.put(("notes",), "first", {"text": "The ferry leaves at noon.", "inner": {"year": 1833}})
    store.put(("notes",), "empty", {})
    return store


READS: list[Callable[[BaseStore], Any]] = [
    lambda s: s.get(("users", "ada"), "likes"),
    lambda s: s.get(("users", "ada"), "absent"),
    lambda s: s.get(("absent",), "likes"),
    lambda s: s.search(("users",)),
    lambda s: s.search(()),
    lambda s: s.search(("users", "ada")),
    lambda s: s.search(("user",)),
    lambda s: s.search((), limit=2),
    lambda s: s.search((), limit=2, offset=3),
    lambda s: s.search((), filter={"rank": 1}),
    lambda s: s.search(("users",), filter={"rank": {"$gte": 2}}),
    lambda s: s.search(("users",), filter={"rank": {"$gt": 1, "$lt": 3}}),
    lambda s: s.search(("users",), filter={"food": {"$ne": "figs"}}),
    lambda s: s.search((), filter={"inner": {"year": 1833}}),
    lambda s: s.search((), filter={"tags": ["a", "b"]}),
    lambda s: s.search((), filter={"tags": ["a"]}),
    lambda s: s.list_namespaces(),
    lambda s: s.list_namespaces(prefix=("users",)),
    lambda s: s.list_namespaces(prefix=("users", "*")),
    lambda s: s.list_namespaces(suffix=("work",)),
    lambda s: s.list_namespaces(max_depth=1),
    lambda s: s.list_namespaces(limit=1, offset=1),
]


def test_reads_give_what_the_in_memory_store_gives(memory: sync.Memory) -> None:
    ours, theirs = filled(MemoryStore(memory)), filled(InMemoryStore())
    # A read makes an empty namespace in theirs; listed first, there is none.
    for read in reversed(READS):
        assert told(read(ours)) == told(read(theirs))


async def test_a_query_reads_only_the_items_that_it_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    whole = qrmem.Memory.documents

    async def documents(self: qrmem.Memory, where: Any = None) -> Any:
        found = await whole(self, where)
        read.extend(found)
        return found

    monkeypatch.setattr(qrmem.Memory, "documents", documents)
    async with qrmem.open("memory://", embedder="none") as memory:
        store = MemoryStore(memory)
        for n in range(30):
            where = ("users", "ada" if n % 2 else "ben")
            await store.aput(where, f"k{n}", {"text": f"The ferry {n} leaves at noon."})
        await store.aput(("users", "ada"), "unranked", {"text": "ferry"}, index=False)
        found = await store.asearch(("users", "ada"), query="Which ferry leaves?", limit=4)
        assert not read
        assert len(found) == 4
        assert {item.namespace for item in found} == {("users", "ada")}
        assert all(item.score is not None and item.key != "unranked" for item in found)
        more = await store.asearch(("users", "ada"), query="ferry leaves", limit=4, offset=2)
        assert [item.key for item in more[:2]] == [item.key for item in found[2:]]
        assert len(await store.asearch(("users", "ada"), query="ferry", limit=40)) == 16
        assert not await store.asearch(("nobody",), query="ferry")


GOOD = {
    "store_0": ".",
    "store_1": "ada",
    "store_key": "k",
    "store_value": '{"text": "hello"}',
    "store_at": "2026-01-01T00:00:00+00:00 2026-01-01T00:00:00+00:00",
    "store_indexed": True,
}
KEPT = 'langgraph/["ada", "k"]'


@pytest.mark.parametrize(
    ("id", "metadata"),
    [
        (KEPT, {}),
        ("langgraph/x.md", GOOD),
        ("langgraph/5", GOOD),
        ("langgraph/[]", GOOD),
        ('langgraph/["ben", "k"]', GOOD),
        ('langgraph/["ada", 5]', GOOD),
        (KEPT, {**GOOD, "store_value": "{broken"}),
        (KEPT, {**GOOD, "store_value": "[1]"}),
        (KEPT, {**GOOD, "store_value": '{"a":' + "[" * 100_000}),
        (KEPT, {**GOOD, "store_at": "yesterday"}),
        (KEPT, {**GOOD, "store_at": "2026-01-01 2026-01-01"}),
    ],
)
def test_a_document_that_the_store_has_not_written_is_no_item(
    memory: sync.Memory, id: str, metadata: dict[str, Any]
) -> None:
    store = MemoryStore(memory)
    store.put(("ada",), "good", {"text": "hello there"})
    memory.add({"id": id, "text": "hello world " * 20, "metadata": metadata})
    assert store.get(("ada",), "k") is None
    for query in (None, "hello"):
        for limit in (1, 10):
            found = store.search(("ada",), query=query, limit=limit)
            assert [item.key for item in found] == ["good"], (query, limit)
    assert ("ada",) in store.list_namespaces()
    store.put(("ada",), "k", {"text": "mine"})
    mine = store.get(("ada",), "k")
    assert mine is not None
    assert mine.value == {"text": "mine"}
    store.delete(("ada",), "k")
    assert store.get(("ada",), "k") is None


def test_an_update_replaces_and_a_deletion_forgets(memory: sync.Memory) -> None:
    store = filled(MemoryStore(memory))
    first = store.get(("users", "ada"), "lives")
    store.put(("users", "ada"), "lives", {"city": "Lisbon"})
    second = store.get(("users", "ada"), "lives")
    assert first is not None
    assert second is not None
    assert second.value == {"city": "Lisbon"}
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at
    store.delete(("users", "ada"), "lives")
    store.delete(("users", "ada"), "never")
    assert store.get(("users", "ada"), "lives") is None
    assert "Lisbon" not in str(memory.search("Who lives in Lisbon?"))


def test_a_query_ranks_within_the_namespace(memory: sync.Memory) -> None:
    store = filled(MemoryStore(memory))
    best, *rest = store.search((), query="When does the ferry leave?")
    assert (best.namespace, best.key) == (("notes",), "first")
    assert best.score is not None
    assert len(rest) == 4
    assert store.search(("users",), query="ferry", limit=1)[0].namespace[0] == "users"
    assert store.search((), query="ferry", filter={"rank": 2})[0].key == "job"


def test_an_item_outside_the_index_is_stored_and_not_ranked(memory: sync.Memory) -> None:
    store = MemoryStore(memory, fields=["text"])
    store.put(("n",), "a", {"text": "apples", "other": "pears"})
    store.put(("n",), "b", {"text": "pears"}, index=False)
    store.put(("n",), "c", {"notes": [{"t": "pears and plums"}]}, index=["notes[*].t"])
    found = store.search(("n",), query="pears")
    assert (found[0].key, found[0].score is not None) == ("c", True)
    assert {item.key for item in found if item.score is None} >= {"b"}


def test_a_batch_reads_before_it_writes_and_the_last_write_counts(memory: sync.Memory) -> None:
    ops: list[Op] = [
        PutOp(("n",), "a", {"v": 1}),
        GetOp(("n",), "a"),
        PutOp(("n",), "a", {"v": 2}),
        SearchOp(("n",)),
    ]
    for store in (MemoryStore(memory), InMemoryStore()):
        assert store.batch(list(ops)) == [None, None, None, []]
        assert told(store.get(("n",), "a")) == ("n", "a", {"v": 2})


@pytest.mark.parametrize("namespace", [(), ("a.b",), ("",), ("langgraph",)])
def test_a_wrong_namespace_is_refused(memory: sync.Memory, namespace: tuple[str, ...]) -> None:
    with pytest.raises(InvalidNamespaceError):
        MemoryStore(memory).put(namespace, "k", {"v": 1})


def test_a_value_and_a_key_of_control_characters_are_kept(memory: sync.Memory) -> None:
    for store in (MemoryStore(memory), InMemoryStore()):
        store.put(("n",), "a", {"v": "\x1b"})
        store.put(("n",), "\x1b", {"v": 1})
        store.put(("n",), " ", {"v": 2}, index=False)
        found = [told(store.get(("n",), key)) for key in ("a", "\x1b", " ")]
        assert found == [("n", "a", {"v": "\x1b"}), ("n", "\x1b", {"v": 1}), ("n", " ", {"v": 2})]


def test_values_that_cannot_be_stored_are_errors(memory: sync.Memory) -> None:
    with pytest.raises(UsageError, match="not kept: "):
        MemoryStore(memory).put(("n",), "k" * 1000, {"v": 1})


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"x": float("nan")}, "is no JSON"),
        ({"x": [float("inf")]}, "is no JSON"),
        ({"x": [{1: "a"}]}, "has the key 1, which would come back as a text"),
        ({None: "a"}, "has the key None"),
    ],
)
def test_a_value_that_would_come_back_as_another_is_refused(
    memory: sync.Memory, value: dict[str, Any], told: str
) -> None:
    store = MemoryStore(memory)
    with pytest.raises(UsageError, match=f"the value of 'k' {told}"):
        store.put(("n",), "k", value)
    assert store.get(("n",), "k") is None


def test_a_namespace_that_is_one_text_is_refused(memory: sync.Memory) -> None:
    store = filled(MemoryStore(memory))
    text: Any = "users"
    for act in (
        lambda: store.put(text, "k", {"v": 1}),
        lambda: store.get(text, "k"),
        lambda: store.delete(text, "k"),
        lambda: store.search(text),
        lambda: store.list_namespaces(prefix=text),
    ):
        with pytest.raises(UsageError, match=r"a namespace is a tuple of texts: \('users',\)"):
            act()


def test_a_value_that_is_no_json_is_refused_in_one_line_and_nothing_of_its_batch_is_done(
    memory: sync.Memory,
) -> None:
    store = filled(MemoryStore(memory))
    circle: dict[str, Any] = {}
    circle["itself"] = circle
    for value in ({"tags": {"a", "b"}}, {"on": date(2026, 5, 3)}, {("a", 1): 2}, circle, ["text"]):
        with pytest.raises(
            UsageError, match=r"the value of 'likes' (is no JSON \(|must be a dict)"
        ):
            store.batch(
                [
                    PutOp(("users", "ada"), "lives", None),
                    PutOp(("users", "ada"), "likes", value),  # type: ignore[arg-type]
                ]
            )
    assert told(store.search(("users", "ada"))) == told(
        filled(InMemoryStore()).search(("users", "ada"))
    )


def test_a_store_of_what_is_no_open_memory_is_refused() -> None:
    with pytest.raises(UsageError, match="a store needs an open memory, not str"):
        MemoryStore("ada.db")  # type: ignore[arg-type]


@pytest.mark.parametrize("label", ["\u00e9", "e\u0301", "\ud83d", "a\x01"])
def test_signs_that_a_document_changes_stay_in_keys_namespaces_and_values(
    tmp_path: Path, label: str
) -> None:
    with sync.open(str(tmp_path / "m.db"), embedder="none") as memory:
        for store in (MemoryStore(memory), InMemoryStore()):
            store.put((label,), label, {"v": label})
            store.put(("\u00e9 ",), label, {"v": 2})
            store.put(("a ",), label, {"v": 3})
            assert told(store.get((label,), label)) == (label, label, {"v": label})
            assert told(store.search((label,))) == [(label, label, {"v": label})]
            assert len(store.list_namespaces()) == 3


def test_a_long_item_does_not_hide_the_others_that_fit(memory: sync.Memory) -> None:
    store = MemoryStore(memory)
    store.put(("n",), "long", {"text": "The walnut tree stands alone on the hill. " * 1000})
    store.put(("n",), "other", {"text": "The ferry leaves at noon."})
    store.put(("n",), "short", {"text": "Greta ate a walnut."})
    found = store.search(("n",), query="walnut tree", limit=2)
    assert [item.key for item in found] == ["long", "short"]


@pytest.mark.parametrize("asked", [{"query": " "}, {"query": "ferry", "limit": 0}])
def test_a_query_without_words_ranks_nothing_and_no_item_may_be_wanted(
    memory: sync.Memory, asked: dict[str, Any]
) -> None:
    ours, theirs = filled(MemoryStore(memory)), filled(InMemoryStore())
    assert told(ours.search((), **asked)) == told(theirs.search((), **asked))


LABEL = st.sampled_from(["a", "b", "e\u0301", "\u00e9"])
OPERATION = st.tuples(
    st.sampled_from(["put", "delete"]),
    st.lists(LABEL, min_size=1, max_size=3).map(tuple),
    LABEL,
    st.dictionaries(st.sampled_from(["x", "y"]), st.integers(0, 3) | st.text(max_size=5)),
)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(OPERATION, max_size=8))
def test_any_operations_leave_the_same(operations: list[Any]) -> None:
    with sync.open("memory://", embedder="none") as memory:
        ours, theirs = MemoryStore(memory), InMemoryStore()
        for name, namespace, key, value in operations:
            for store in (ours, theirs):
                store.put(namespace, key, value) if name == "put" else store.delete(namespace, key)
        by_path = {}
        for store in (ours, theirs):
            by_path[store] = sorted(map(str, told(store.search((), limit=100))))
        assert by_path[ours] == by_path[theirs]
        assert set(ours.list_namespaces()) <= set(theirs.list_namespaces())


async def test_an_agent_keeps_and_recalls_over_three_sessions(tmp_path: Any) -> None:
    class State(TypedDict):
        said: str
        known: list[str]

    async def node(state: State, runtime: Runtime[None]) -> dict[str, Any]:
        assert runtime.store is not None
        known = await runtime.store.asearch(("users", "ada"), query=state["said"], limit=1)
        key = str(len(await runtime.store.asearch(("users", "ada"), limit=100)))
        await runtime.store.aput(("users", "ada"), key, {"text": state["said"]})
        return {"known": [item.value["text"] for item in known]}

    graph = StateGraph(State).add_node("node", node).add_edge(START, "node")
    sisters = "My sister Clara keeps bees."
    for said in (sisters, "The ferry leaves at noon.", "What does Clara keep?"):
        async with qrmem.open(str(tmp_path / "m.db"), embedder="none") as memory:
            agent = graph.compile(store=MemoryStore(memory))
            state = await agent.ainvoke({"said": said, "known": []})
    assert state["known"] == [sisters]


async def test_no_put_calls_a_chat_model_unless_it_is_asked_to_read() -> None:
    async with serving() as server:
        options: Any = {"embedder": "none", "base_url": server.url, "model": "m", "api_key": "k"}
        async with qrmem.open("memory://", **options) as memory:
            store = MemoryStore(memory)
            for text in ("Ada Lovelace lives in London.", "Ada Lovelace lives in Bath."):
                await store.aput(("users",), "ada", {"text": text})
                await store.aput(("users",), "secret", {"text": text}, index=False)
                await store.abatch([PutOp(("users",), f"k{n}", {"text": text}) for n in range(3)])
            (found, *_) = await store.asearch(("users",), query="Where does Ada live?")
            assert "Bath" in found.value["text"]
            assert (await memory.entity("Ada Lovelace")).segments
            assert server.stats.requests == 0
            assert not [line for line in (await memory.status()).warnings if "model" in line]

            reading = MemoryStore(memory, read_by_model=True)
            await reading.aput(("users",), "secret", {"text": "Ben Hale."}, index=False)
            assert server.stats.requests == 0
            await reading.aput(("users",), "ben", {"text": "Ben Hale lives in Oslo."})
            assert server.stats.requests > 0
