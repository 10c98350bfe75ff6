"""Search over a small memory that is written to the store row by row."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from contract.reference import ReferenceStore
from fakes import HashEmbedder
from numpy.typing import NDArray

import qrmem
from qrmem.config import Settings
from qrmem.errors import EmbedderMismatch, ModelUnavailable, UsageError
from qrmem.graphstore import GraphStore, NamespaceInfo, open_store
from qrmem.graphstore.protocol import EntityRow, MentionRow, ViewUpdate
from qrmem.graphstore.sqlite.store import SqliteStore
from qrmem.retrieval import EdgeScorer, Searcher, embed_segments
from qrmem.retrieval.ranking import FEATURES
from qrmem.retrieval.scoring import vector_owner
from qrmem.text.words import CUT, terms
from qrmem.types import Document, Hit, Segment

PAGES = {
    "keel": (
        "The Grey Keel",
        "The Grey Keel is a ballad. It was written by Orla Venn in the winter of 1871.",
        ("Orla Venn", "The Grey Keel"),
    ),
    "venn": (
        "Orla Venn",
        "Orla Venn was a poet. She was born in Port Hallam and kept bees.",
        ("Orla Venn", "Port Hallam"),
    ),
    "hallam": (
        "Port Hallam",
        "Port Hallam is a harbour town. Its lighthouse burned down twice.",
        ("Port Hallam",),
    ),
    "bees": ("Bees", "Bees dance to tell each other where flowers are.", ()),
    "ballads": (
        "Ballad",
        "A ballad is a song that tells a story; where it was born nobody knows.",
        (),
    ),
    "chess": ("Chess", "Chess is played on a board of sixty-four squares.", ()),
}
Page = tuple[str, str, Sequence[str]]


async def store_of(
    pages: Mapping[str, Page],
    embedder: HashEmbedder | None = None,
    ns: str = "test",
    metadata: Mapping[str, Mapping[str, str]] | None = None,
) -> GraphStore:
    store = ReferenceStore()
    await fill(store, ns, pages, embedder, metadata or {})
    return store


async def fill(
    store: GraphStore,
    ns: str,
    pages: Mapping[str, Page],
    embedder: HashEmbedder | None,
    metadata: Mapping[str, Mapping[str, str]],
) -> None:
    info = NamespaceInfo(ns, "builtin-v1", 600)
    if embedder is not None:
        info = NamespaceInfo(ns, "builtin-v1", 600, embedder.name, embedder.dimension)
    revision = (await store.create_namespace(ns, info)).revision
    segments, mentions, index = [], [], {}
    for name, (title, text, names) in pages.items():
        document = Document(text, title, id=name, metadata=metadata.get(name, {}))
        segment = Segment(f"{name}#0", name, 0, 0, len(text), text, len(text.split()))
        await store.put_documents(ns, [(document, [segment])])
        segments.append(segment)
        mentions += [MentionRow(segment.id, f"{one.lower()}|", ((one, 1),)) for one in names]
        index[segment.id] = Counter(terms(text))
    known = {row.name: row.forms[0][0] for row in mentions}
    change = ViewUpdate(
        mentions=mentions,
        index=index,
        names={key: key for key in known},
        entities=[EntityRow(key, name, "") for key, name in known.items()],
    )
    await store.apply(ns, revision, change)
    if embedder is not None and segments:
        titles = [pages[segment.document_id][0] for segment in segments]
        owners, matrix = await embed_segments(embedder, segments, titles)
        await store.put_vectors(ns, "segment", owners, matrix)


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.document_id for hit in hits]


@pytest.mark.parametrize("embedder", [None, HashEmbedder()], ids=["lexical", "dense"])
async def test_a_question_is_followed_over_two_names_to_its_answer(
    embedder: HashEmbedder | None,
) -> None:
    store = await store_of(PAGES, embedder)
    hits = await Searcher(store, "test", embedder).search(
        "In which town was the author of The Grey Keel born?", k=3
    )
    assert ids(hits)[0] in {"keel", "venn"}
    assert {"keel", "venn"} <= set(ids(hits))


async def test_via_tells_the_way_from_the_question_to_the_segment() -> None:
    hits = await Searcher(await store_of(PAGES), "test").search(
        "In which harbour was the author of The Grey Keel born?", k=6
    )
    by_id = {hit.document_id: hit for hit in hits}
    assert 'the question names "The Grey Keel"' in by_id["keel"].via
    assert "It was written by Orla Venn" in by_id["venn"].via
    assert 'over "Orla Venn" (its title)' in by_id["venn"].via
    assert by_id["venn"].over == ("keel#0",)
    assert by_id["keel"].over == ()
    assert all(hit.via for hit in hits)


async def test_via_is_one_line_and_names_the_words_as_they_were_asked() -> None:
    pages = PAGES | {"keel": ("The Grey Keel", "It was\nwritten by\nOrla Venn.", ("Orla Venn",))}
    question = "In which town was the author of The Grey Keel born?"
    hits = await Searcher(await store_of(pages), "test").search(question, k=6)
    assert any("was written by Orla Venn" in hit.via for hit in hits)
    assert all("\n" not in hit.via for hit in hits)
    keel = next(hit for hit in hits if hit.document_id == "keel")
    assert "has the question's words Grey, Keel" in keel.via


async def test_via_names_no_number_that_a_text_does_not_hold() -> None:
    store = await store_of({"prices": ("Prices", "Plan A costs 5 euros, room 2 is cold.", ())})
    for question, words in (("What costs 2.5?", "costs, 2, 5"), ("Which room is 2?", "room, 2")):
        (hit,) = await Searcher(store, "test").search(question, k=1)
        assert hit.via == f"has the question's words {words}"


async def test_a_hit_carries_its_segment() -> None:
    hit = (await Searcher(await store_of(PAGES), "test").search("board squares", k=1))[0]
    assert (hit.document_id, hit.title, hit.segment_id) == ("chess", "Chess", "chess#0")
    assert hit.text == PAGES["chess"][1]
    assert hit.score > 0


async def test_words_of_the_title_find_a_segment_that_lacks_them() -> None:
    pages = {"a": ("Lighthouse keepers", "They lit it every night.", ()), "b": PAGES["chess"]}
    assert ids(await Searcher(await store_of(pages), "test").search("lighthouse")) == ["a"]


async def test_narrowing_filters_before_ranking() -> None:
    store = await store_of(PAGES, metadata={"bees": {"kind": "animal"}, "chess": {"kind": "game"}})
    searcher = Searcher(store, "test")
    question = "Where was the author of The Grey Keel born?"
    assert ids(await searcher.search(question, k=1, documents=["ballads"])) == ["ballads"]
    assert await searcher.search("bees", documents=["nothing of that name"]) == []
    assert await searcher.search("bees", documents=[]) == []


async def test_another_namespace_is_never_seen() -> None:
    store = await store_of({"chess": PAGES["chess"]})
    await fill(store, "other", {"secret": ("Secret", "The bees know the secret.", ())}, None, {})
    assert await Searcher(store, "test").search("secret bees") == []


@pytest.mark.parametrize("question", ["", "   ", "\n\t"])
async def test_an_empty_question_is_refused(question: str) -> None:
    with pytest.raises(UsageError, match="query is empty"):
        await Searcher(await store_of(PAGES), "test").search(question)


async def test_no_hits_asked_for_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        await Searcher(await store_of(PAGES), "test").search("bees", k=0)


async def test_a_memory_without_segments_or_without_a_namespace_finds_nothing() -> None:
    assert await Searcher(await store_of({}), "test").search("bees") == []
    assert await Searcher(await store_of({}), "nobody").search("bees") == []


@pytest.mark.parametrize(
    "question",
    [
        "what is it that they were",
        "???",
        "Кто написал балладу?",
        "蜂蜜はどこですか",
        "def f(x): return x[0]",
    ],
)
async def test_a_question_without_a_word_of_the_memory_finds_nothing(question: str) -> None:
    assert await Searcher(await store_of(PAGES), "test").search(question) == []


async def test_a_question_of_fifty_thousand_characters_is_answered_by_its_first_words() -> None:
    question = "sixty-four squares " + " ".join(f"filler{n}" for n in range(5000))
    assert ids(await Searcher(await store_of(PAGES), "test").search(question, k=1)) == ["chess"]


@pytest.mark.parametrize("filler", ["Wyrd Ynn{} lamp{} ", "蜜蜂跳舞{}{}", "read_{}() a.b{} "])
async def test_a_search_looks_up_no_more_than_the_first_words_of_a_question(
    filler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most: list[int] = []
    told: list[object] = []
    question = "Who danced? bees dance " + "".join(filler.format(n, n) for n in range(60_000))
    async with qrmem.open(
        str(tmp_path / "m.db"), embedder="none", listener=lambda event: told.append(event.data)
    ) as memory:
        await memory.add([{"id": id, "text": page[1]} for id, page in PAGES.items()])
        for name in ("titled", "vocabulary", "matching_each"):
            whole = getattr(SqliteStore, name)

            async def counted(
                self: Any, ns: str, wanted: Any, *rest: Any, whole: Any = whole, **more: Any
            ) -> Any:
                most.append(_words_of(wanted))
                return await whole(self, ns, wanted, *rest, **more)

            monkeypatch.setattr(SqliteStore, name, counted)
        told.clear()
        assert ids(await memory.search(question))[0].startswith("bees")
        await memory.recall(question)
    assert [data["message"] for data in told] == [CUT, CUT]  # type: ignore[index]
    assert len(most) < 2_000
    assert max(most) < 30_000


def _words_of(wanted: Any) -> int:
    """Return the number of words in a list, or in lists of lists."""
    return 1 if isinstance(wanted, str) else sum(map(_words_of, wanted))


async def test_another_script_is_searched_letter_by_letter() -> None:
    pages = {"jp": ("", "灯台は二度燃えた。", ()), "chess": PAGES["chess"]}
    searcher = Searcher(await store_of(pages), "test")
    assert ids(await searcher.search("灯台")) == ["jp"]
    (hit,) = await searcher.search("灯台守は何を見た？")
    assert hit.via == "has the question's words 灯, 台, は, た"


async def test_identical_segments_come_in_order_of_their_documents() -> None:
    pages = {f"d{n:02}": ("", "The same whale again.", ()) for n in range(30)}
    hits = await Searcher(await store_of(dict(reversed(pages.items()))), "test").search(
        "whale", k=30
    )
    assert ids(hits) == sorted(pages)
    assert len({hit.score for hit in hits}) == 1


async def test_ten_thousand_identical_segments_come_in_order(tmp_path: Path) -> None:
    text, count = "The same whale again. ", 10_000
    segments = [
        Segment(f"s{n * 7919 % count:05}", "d", n, n * len(text), (n + 1) * len(text), text, 4)
        for n in range(count)
    ]
    counts = Counter(terms(text))
    store = await open_store(str(tmp_path / "a.db"), Settings())
    await store.create_namespace("test", NamespaceInfo("test", "builtin-v1", 600))
    await store.put_documents("test", [(Document(text * count, id="d"), segments)])
    index = {segment.id: counts for segment in reversed(segments)}
    await store.apply("test", 0, ViewUpdate(index=index))
    for searcher in (Searcher(store, "test"), Searcher(store, "test")):
        for _ in range(2):
            hits = await searcher.search("Which whale is the same?", k=50)
            assert [hit.segment_id for hit in hits] == [one.id for one in segments[:50]]
    await store.close()


@pytest.mark.parametrize(
    "question",
    [
        "def born(town): return [x for x in KEEL if x.harbour == 'Port Hallam'][0]",
        "SELECT * FROM town WHERE name = 'Port Hallam'; DROP TABLE town; --",
        "#include <harbour.h>\nint main(void) { return lighthouse->burned; }",
    ],
)
async def test_a_question_of_code_is_searched_by_its_words(question: str) -> None:
    hit = (await Searcher(await store_of(PAGES), "test").search(question))[0]
    assert hit.document_id == "hallam"
    words = hit.via.rpartition("has the question's words ")[2].split(", ")
    own = {"born", "town", "x.harbour", "Port", "Hallam", "harbour.h", "lighthouse", "burned"}
    assert set(words) <= own


async def test_one_segment_is_found() -> None:
    store = await store_of({"chess": PAGES["chess"]})
    assert ids(await Searcher(store, "test").search("Chess")) == ["chess"]


async def test_later_documents_are_found_by_the_same_searcher() -> None:
    store = await store_of({"chess": PAGES["chess"]})
    searcher = Searcher(store, "test")
    assert await searcher.search("lighthouse") == []
    await fill(store, "test", {"hallam": PAGES["hallam"]}, None, {})
    assert ids(await searcher.search("lighthouse")) == ["hallam"]
    await store.delete_documents("test", "hallam")
    assert await searcher.search("lighthouse") == []


async def test_vectors_that_come_after_the_words_are_used() -> None:
    embedder = HashEmbedder()
    store = await store_of({}, embedder)
    await fill(store, "test", PAGES, None, {})
    searcher = Searcher(store, "test", embedder)
    assert "meaning" not in (await searcher.search("sixty-four squares"))[0].via
    segments = await store.segments("test", [f"{name}#0" for name in PAGES])
    owners, matrix = await embed_segments(embedder, segments, [""] * len(segments))
    await store.put_vectors("test", "segment", owners, matrix)
    assert "meaning" in (await searcher.search("sixty-four squares"))[0].via


async def test_another_model_is_refused() -> None:
    store = await store_of(PAGES, HashEmbedder(name="hash"))
    with pytest.raises(EmbedderMismatch, match="embedded by hash"):
        await Searcher(store, "test", HashEmbedder(name="other")).search("bees")
    with pytest.raises(EmbedderMismatch, match="dimensions"):
        await Searcher(store, "test", HashEmbedder(dimension=8)).search("bees")


async def test_an_embedder_that_returns_no_numbers_is_reported() -> None:
    class Broken(HashEmbedder):
        async def embed(
            self, texts: Sequence[str], *, kind: str = "passage"
        ) -> NDArray[np.float32]:
            return np.full((len(texts), self.dimension), np.nan, dtype=np.float32)

    store = await store_of(PAGES, HashEmbedder())
    with pytest.raises(ModelUnavailable, match="not numbers"):
        await Searcher(store, "test", Broken()).search("bees")


# --- follow-up queries by meaning ---


class Meaning(HashEmbedder):
    """Each word has an axis of its own, but whom one marries is a spouse."""

    def __init__(self) -> None:
        super().__init__(dimension=64)
        self._axes: dict[str, int] = {}

    def _vector(self, text: str) -> NDArray[np.float64]:
        total = np.full(self.dimension, 1e-6)
        for word in terms(text.replace("spouse", "marry")):
            total[self._axes.setdefault(word, len(self._axes))] += 1
        unit: NDArray[np.float64] = total / np.linalg.norm(total)
        return unit


CREW: dict[str, Page] = {
    "swift": ("The Swift", "Tom Hale was captain of the Swift.", ("The Swift", "Tom Hale")),
    "spouse": ("Note", "In the year of the storm Tom Hale had a spouse.", ("Tom Hale",)),
    "dog": ("Note", "In the year of the storm Tom Hale had a dog.", ("Tom Hale",)),
    "house": ("Note", "In the year of the storm Tom Hale had a house.", ("Tom Hale",)),
    "vane": ("Note", "In the year of the storm Bob Vane had a spouse.", ("Bob Vane",)),
}
MARRIED = "Whom did the captain of the Swift marry?"


async def test_an_embedder_finds_what_fits_the_rest_of_the_question_by_meaning() -> None:
    embedder = Meaning()
    store = await store_of(CREW, embedder)
    found = await Searcher(store, "test", embedder).findings(MARRIED)
    assert found is not None
    assert found.explored is not None
    assert "Whom did the of the marry? tom hale" in embedder.embedded
    pages = [found.near.entries[row].id for row in found.explored.rows]
    scores = dict(zip(pages, FEATURES["follow-up by meaning"](found.explored), strict=True))
    # The word "spouse" is not in the question, and Bob Vane has one, too.
    assert max(scores, key=lambda page: scores[page]) == "spouse#0"
    hits = await Searcher(store, "test", embedder).search(MARRIED)
    assert ids(hits)[:2] == ["swift", "spouse"]


async def test_a_search_sends_its_follow_up_queries_together_and_none_without_candidates() -> None:
    embedder = Meaning()
    searcher = Searcher(await store_of(CREW, embedder), "test", embedder)
    embedder.embedded.clear()
    await searcher.search(MARRIED)
    assert embedder.embedded[0] == MARRIED
    assert len(embedder.embedded) <= 4
    embedder.embedded.clear()
    assert await Searcher(await store_of({}, embedder), "test", embedder).search(MARRIED) == []
    assert len(embedder.embedded) <= 1


async def test_what_answers_a_whole_question_does_not_lose_to_what_it_leads_to() -> None:
    embedder = Meaning()
    store = await store_of(CREW, embedder)
    found = await Searcher(store, "test", embedder).findings("the year of the storm, a house")
    assert found is not None
    assert found.explored is not None
    best = int(np.argmax(found.explored.meant))
    assert found.near.entries[found.explored.rows[best]].id == "house#0"


class Gate(Meaning):
    """Lets a search pass only after `opened` is set, once it has its first candidates."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting, self.opened = asyncio.Semaphore(0), asyncio.Event()

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> NDArray[np.float32]:
        if kind == "query" and list(texts) != [MARRIED]:
            self.waiting.release()
            await self.opened.wait()
        return await super().embed(texts, kind=kind)


@pytest.mark.parametrize("place", ["file", "memory"])
async def test_others_search_while_an_embedder_reads_follow_up_queries(
    tmp_path: Path, place: str
) -> None:
    store = await (
        SqliteStore.in_memory() if place == "memory" else SqliteStore.open(tmp_path / "m.db")
    )
    try:
        gate = Gate()
        await fill(store, "test", CREW, gate, {})
        gate.opened.set()
        slow = Searcher(store, "test", gate)
        before = await slow.search(MARRIED)
        gate.opened.clear()
        await gate.waiting.acquire()
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            waiting = group.create_task(slow.search(MARRIED))
            await gate.waiting.acquire()
            # The same searcher, whose turn the waiting search does not keep.
            assert ids(await slow.on_account(None).search("a dog", k=1)) == ["dog"]
            removed = group.create_task(store.delete_documents("test", "spouse"))
            if place == "file":
                await removed
            gate.opened.set()
        # It sees the memory of its start.
        assert waiting.result() == before
        assert "spouse" not in ids(await slow.search(MARRIED))
    finally:
        await store.close()


async def test_only_some_searches_hold_a_snapshot_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, most = 0, 0
    snapshot = SqliteStore.snapshot

    @asynccontextmanager
    async def counted(self: SqliteStore) -> AsyncIterator[SqliteStore]:
        nonlocal held, most
        async with snapshot(self) as store:
            held += 1
            most = max(most, held)
            yield store
            held -= 1

    store = await SqliteStore.open(tmp_path / "m.db")
    try:
        gate = Gate()
        await fill(store, "test", CREW, gate, {})
        monkeypatch.setattr(SqliteStore, "snapshot", counted)
        searcher = Searcher(store, "test", gate)
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            tasks = [group.create_task(searcher.search(MARRIED)) for _ in range(20)]
            for _ in range(8):
                await gate.waiting.acquire()
            gate.opened.set()
        assert most == 8
        assert all(task.result() == tasks[0].result() for task in tasks)
    finally:
        await store.close()


# --- similarities for the strategies ---

EDGES = {"a": "Orla Venn - wrote - The Grey Keel", "b": "Orla Venn - kept - bees"}


async def test_edges_are_scored_by_words_over_the_maximum_without_an_embedder() -> None:
    scorer = EdgeScorer(Searcher(await store_of(PAGES), "test"))
    scores = await scorer.score_edges("Who wrote the Keel?", EDGES)
    assert not scorer.is_dense
    assert scores == {"a": 1.0, "b": 0.0}
    assert await scorer.score_edges("Who?", {}) == {}
    assert await scorer.score_edges("nothing known", EDGES) == {"a": 0.0, "b": 0.0}


async def test_edge_vectors_are_made_once_and_again_for_a_changed_description() -> None:
    embedder = HashEmbedder()
    store = await store_of(PAGES, embedder)
    scorer = EdgeScorer(Searcher(store, "test", embedder))
    first = await scorer.score_edges("wrote The Grey Keel", EDGES)
    assert first["a"] > first["b"]
    embedder.embedded.clear()
    assert (
        await EdgeScorer(Searcher(store, "test", embedder)).score_edges(
            "wrote The Grey Keel", EDGES
        )
        == first
    )
    assert embedder.embedded == ["wrote The Grey Keel"]
    changed = EDGES | {"b": "Orla Venn - sold - bees"}
    await scorer.score_edges("wrote The Grey Keel", changed)
    assert changed["b"] in embedder.embedded
    assert EDGES["a"] not in embedder.embedded
    assert vector_owner(changed["b"]) in await store.owners("test", "relation")


@pytest.mark.parametrize("embedder", [None, HashEmbedder()], ids=["lexical", "dense"])
async def test_segments_are_scored_against_the_question(embedder: HashEmbedder | None) -> None:
    scorer = EdgeScorer(Searcher(await store_of(PAGES, embedder), "test", embedder))
    scores = await scorer.score_segments("squares of a board", ["bees#0", "chess#0", "none"])
    assert scores.keys() == {"bees#0", "chess#0"}
    assert scores["chess#0"] > scores["bees#0"]
    assert await scorer.score_segments("squares", []) == {}


async def test_many_documents_of_one_title_and_text_are_found_in_order() -> None:
    pages = {
        f"d{n:03}": ("Whale", "The Whale swam by Nantucket.", ("Nantucket",)) for n in range(300)
    }
    searcher = Searcher(await store_of(pages), "test")
    assert ids(await searcher.search("Which Whale swam by Nantucket?", k=5)) == sorted(pages)[:5]
