"""Trees of summaries through the face: built, grown, deleted, moved, resumed."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from servers import answering
from servers.openai_server import serving

import qrmem
from qrmem.errors import NotFound, UsageError
from qrmem.retrieval.trees.clustering import Clusters, clusters
from qrmem.retrieval.trees.nodes import load_trees
from qrmem.retrieval.trees.retrieving import TreeTable
from qrmem.types import Event, Strategy
from qrmem.types.documents import Tree, TreeKind

SUBJECTS = ("harbour", "orchard", "railway", "library", "glacier", "theatre", "monastery", "bakery")


def chapter(number: int, paragraphs: int = 120) -> str:
    """A chapter with a vocabulary of its own; no two sentences are equal."""
    subject = SUBJECTS[number % len(SUBJECTS)]
    lines = [
        f"On day {n} of year {number} the keeper of the {subject} wrote {n * 7 + number} lines "
        f"about the {subject}, its {SUBJECTS[(n + number) % 8]} and the weather over town {n}."
        for n in range(paragraphs)
    ]
    return f"Chapter {number + 1}\n\n" + " ".join(lines)


def book(chapters: int) -> dict[str, str]:
    return {"id": "book", "text": "\n\n".join(chapter(n) for n in range(chapters))}


def shape(trees: Sequence[Tree]) -> list[tuple[object, ...]]:
    return [
        (node.key, node.level, node.summary, node.surprises, node.covers)
        for tree in trees
        for node in sorted(tree.nodes, key=lambda node: node.key)
    ]


async def test_every_segment_is_below_a_root_and_a_second_build_makes_nothing() -> None:
    async with qrmem.open("memory://", embedder="none", segment_tokens=280) as memory:
        await memory.add(book(3))
        report = await memory.build_tree()
        assert report.made > 0
        assert report.levels >= 2
        (tree,) = await memory.trees()
        nodes = {node.key: node for node in tree.nodes}
        (info,) = await memory.documents()
        below = {id for root in tree.roots for id in nodes[root].segments}
        assert len(below) == info.segments
        assert len([node for node in tree.nodes if node.level == 1]) == info.segments
        assert any(node.surprises for node in tree.nodes)
        again = await memory.build_tree()
        assert (again.made, again.reused) == (0, report.made)


@pytest.mark.parametrize("kind", ["ilm", "raptor"])
async def test_a_grown_tree_equals_one_built_at_once_and_makes_few_new_nodes(
    kind: qrmem.types.documents.TreeKind,
) -> None:
    async with qrmem.open("memory://", embedder="none", segment_tokens=280) as memory:
        await memory.add(book(6))
        await memory.build_tree(kind=kind)
        await memory.add(book(7), update=True)
        assert [tree.is_current for tree in await memory.trees(kind=kind)] in ([False], [])
        grown = await memory.build_tree(kind=kind)
        # A share of the new tree: with UMAP there are other, and fewer, clusters than without it.
        assert grown.made < (grown.made + grown.reused) / 3
        after = shape(await memory.trees(kind=kind))
        kept = await memory._session.store.cache_keys("default", "tree")
    async with qrmem.open("memory://", embedder="none", segment_tokens=280) as memory:
        await memory.add(book(7))
        await memory.build_tree(kind=kind)
        assert shape(await memory.trees(kind=kind)) == after
        at_once = await memory._session.store.cache_keys("default", "tree")
        assert kept == at_once


async def test_a_deleted_document_takes_its_tree_with_it(tmp_path: Path) -> None:
    async with qrmem.open(str(tmp_path / "m.db"), embedder="none") as memory:
        await memory.add([book(1), {"id": "other", "text": chapter(5)}])
        await memory.build_tree()
        await memory.delete("book")
        assert [tree.document_id for tree in await memory.trees()] == ["other"]


async def test_an_archive_carries_trees(tmp_path: Path) -> None:
    path = tmp_path / "book.qrmem"
    async with qrmem.open(str(tmp_path / "m.db"), embedder="none") as memory:
        await memory.add(book(2))
        await memory.build_tree()
        before = shape(await memory.trees())
        await memory.export(path)
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.load(path)
        assert shape(await memory.trees()) == before
        assert (await memory.build_tree()).made == 0


@pytest.mark.parametrize("kind", ["ilm", "raptor"])
async def test_connections_live_on_while_clusters_are_made(
    kind: TreeKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*args: Any) -> Clusters:
        loop.call_soon_threadsafe(went_on.set)
        assert went_on.wait(20), "the event loop stands while clusters are made"
        return clusters(*args)

    loop, went_on = asyncio.get_running_loop(), threading.Event()
    monkeypatch.setattr("qrmem.agents.tree_building.clusters", slow)
    async with qrmem.open("memory://", embedder="none", segment_tokens=280) as memory:
        await memory.add(book(3))
        await memory.build_tree(kind=kind)
    assert went_on.is_set()


@pytest.mark.parametrize("text", ["One sentence.", "word " * 3000, "Same line.\n\n" * 2000])
async def test_odd_texts_have_trees(text: str) -> None:
    async with qrmem.open("memory://", embedder="none", segment_tokens=50) as memory:
        await memory.add({"id": "odd", "text": text})
        await memory.build_tree()
        (tree,) = await memory.trees()
        assert tree.roots
        assert all(node.summary for node in tree.nodes)


async def test_the_preset_of_the_paper_clusters_whole_levels() -> None:
    async with qrmem.open("memory://", embedder="none", segment_tokens=280) as memory:
        await memory.add(book(3))
        await memory.build_tree(preset="paper")
        (tree,) = await memory.trees()
        top = max(node.level for node in tree.nodes)
        assert len([node for node in tree.nodes if node.level == top]) <= 11


async def test_without_an_embedder_nodes_of_one_subject_come_together() -> None:
    kept = [SUBJECTS[n % 4] for n in range(240)]
    text = " ".join(
        f"The {one} had its {one} keeper, {one} gate and {one} ledger, page {n}."
        for n, one in enumerate(kept)
    )
    async with qrmem.open("memory://", embedder="none", segment_tokens=20) as memory:
        await memory.add({"id": "book", "text": text})
        await memory.build_tree(preset="paper")
        (tree,) = await memory.trees()
        (stored,) = await load_trees(memory._session.store, "default", "ilm")
        below = {node.key: node for node in tree.nodes}
        groups = [[below[key].summary for key in n.covers] for n in tree.nodes if n.level == 2]
    named = [{one for one in SUBJECTS[:4] for said in group if one in said} for group in groups]
    assert max(len(one) for one in named) == 1
    assert len(groups) > 3
    assert (stored.made["reduction"], stored.made["runs"]) == (which(), "0")
    assert int(stored.made["groups"]) >= len(groups)


def which() -> str:
    return "umap" if find_spec("umap") else "pca"


async def test_nodes_too_similar_to_cluster_are_reported_as_runs() -> None:
    async with qrmem.open("memory://", embedder="none", segment_tokens=50) as memory:
        await memory.add({"id": "odd", "text": "Same line.\n\n" * 2000})
        await memory.build_tree(kind="raptor", preset="paper")
        (stored,) = await load_trees(memory._session.store, "default", "raptor")
        assert stored.made["reduction"] == "none"
        assert int(stored.made["runs"]) > 3


async def test_a_node_is_one_level_above_the_highest_that_it_covers() -> None:
    async with qrmem.open("memory://", embedder="none", segment_tokens=60) as memory:
        text = "\n\n".join(chapter(n, 90 if n == 3 else 12) for n in range(14))
        await memory.add({"id": "book", "text": text})
        report = await memory.build_tree()
        (tree,) = await memory.trees()
        level = {node.key: node.level for node in tree.nodes}
        above = [node for node in tree.nodes if node.level > 1]
        assert [n.level for n in above] == [1 + max(level[key] for key in n.covers) for n in above]
        assert report.levels == max(level.values()) > 3


async def test_surprises_of_a_node_are_one_block_with_one_vector(tmp_path: Path) -> None:
    node = "(Summary): A keeper wrote.\n(Surprise): Prosciutto is in it.\nFigs are in it."
    async with serving(answer=replying(node, ["Ham."] * 5), dimension=32) as server:
        chosen: Any = {"model": "test", "base_url": server.url, "embedder": "openai:a"}
        async with qrmem.open(str(tmp_path / "m.db"), **chosen) as memory:
            await memory.add({"id": "book", "text": chapter(0, 60)})
            await memory.build_tree()
            (stored,) = await load_trees(memory._session.store, "default", "ilm")
            assert {len(one.vectors) for one in stored.nodes.values()} == {2}  # type: ignore[arg-type]
            table = TreeTable(memory._session.store, "default", [stored], None)
            ranked = await table.collapsed("figs and prosciutto")
            blocks = [one for one in ranked if one.kind == "surprise"]
            assert len(blocks) == len(stored.nodes)
            assert {one.text for one in blocks} == {"Prosciutto is in it.\nFigs are in it."}
            assert stored.made["embedder"] == "openai:a"


async def test_wrong_words_are_refused() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(book(1))
        with pytest.raises(UsageError, match="kind is 'oak'; choose one of ilm, raptor"):
            await memory.build_tree(kind="oak")  # type: ignore[arg-type]
        with pytest.raises(NotFound, match="no document 'nothing'"):
            await memory.build_tree("nothing")


KINDS: dict[str, TreeKind] = {"inner-loop": "ilm", "raptor": "raptor", "raptor-layered": "raptor"}
NEEDLE = "Prosciutto belongs to the secret recipe of Aunt Odile."
OTHER = "Aunt Odile keeps a jar of figs behind the clock."


async def test_the_inner_loop_finds_what_shares_no_word_with_the_question() -> None:
    text = chapter(0).replace("On day 40", f"{NEEDLE} On day 40")
    text = text.replace("On day 90", f"{OTHER} On day 90")
    async with qrmem.open("memory://", embedder="none", segment_tokens=280) as memory:
        await memory.add({"id": "book", "text": text})
        await memory.build_tree()
        answer = await memory.ask("What belongs to the recipe?", strategy="inner-loop")
        assert answer.status == "passages"
        assert NEEDLE in answer.text
        assert OTHER in answer.text
        document = await memory.document("book")
        for citation in answer.citations:
            assert citation.quote == document.text[citation.start : citation.end]
        rounds = [step for step in answer.trail.steps if step.action == "read"]
        assert rounds[0].query == "What belongs to the recipe?"
        assert rounds[1].query.startswith(f"What belongs to the recipe?\n{rounds[0].memory}")
        assert {node.kind for node in rounds[0].nodes} <= {"sentence", "surprise"}
        assert rounds[-1].likeness >= 0.9 or len(rounds) == 5
        once = await memory.ask("What belongs to the recipe?", strategy="inner-loop", max_trials=1)
        assert OTHER not in once.text


@pytest.mark.parametrize("strategy", ["raptor", "raptor-layered"])
async def test_raptor_reads_the_segments_below_what_it_found(strategy: Strategy) -> None:
    text = chapter(0).replace("On day 40", f"{NEEDLE} On day 40")
    async with qrmem.open("memory://", embedder="none", segment_tokens=280) as memory:
        await memory.add({"id": "book", "text": text})
        await memory.build_tree()
        with pytest.raises(NotFound, match="qrmem tree build --kind raptor"):
            await memory.ask("What belongs to the recipe of Odile?", strategy=strategy)
        await memory.build_tree(kind="raptor")
        answer = await memory.ask("What belongs to the recipe of Odile?", strategy=strategy)
        assert NEEDLE in answer.text


async def test_going_down_a_tree_leaves_each_level_its_room() -> None:
    async with qrmem.open("memory://", embedder="none", window=4096) as memory:
        await memory.add({"id": "book", "text": chapter(0, 1500)})
        report = await memory.build_tree(kind="raptor", preset="paper")
        question = "What did the keeper of the harbour write about the weather?"
        answer = await memory.ask(question, strategy="raptor-layered")
        levels = [node.level for node in answer.trail.steps[0].nodes]
        assert set(levels) == set(range(report.levels + 1))
        assert levels == sorted(levels, reverse=True)


@pytest.mark.parametrize("strategy", ["inner-loop", "raptor", "raptor-layered"])
async def test_a_tree_answers_after_another_embedder_embedded_the_memory(
    tmp_path: Path, strategy: Strategy
) -> None:
    async with serving(dimension=32) as server:
        chosen: Any = {"model": "test", "base_url": server.url, "embedder": "openai:a"}
        async with qrmem.open(str(tmp_path / "m.db"), **chosen) as memory:
            await memory.add({"id": "book", "text": f"{chapter(0, 30)} {NEEDLE}"})
            await memory.build_tree(kind=KINDS[strategy])
            server.behaviour.dimension = 48
            await memory.reembed("openai:b")
            question = "What belongs to the recipe of Odile?"
            answer = await memory.ask(question, strategy=strategy)
            assert answer.trail.steps[-1].nodes
            await memory.build_tree(kind=KINDS[strategy])
            assert (await memory.ask(question, strategy=strategy)).trail.steps[-1].nodes


@pytest.mark.parametrize("strategy", ["inner-loop", "raptor", "raptor-layered"])
async def test_a_question_over_trees_names_documents_without_a_tree(
    strategy: Strategy,
) -> None:
    said: list[str] = []

    def note(event: Event) -> None:
        # The book names only numbers, which have no relations; a message says that, too.
        if event.kind == "warning" and "relations in" not in event.data["message"]:
            said.append(event.data["message"])

    async with qrmem.open("memory://", embedder="none", listener=note) as memory:
        await memory.add(book(1))
        await memory.build_tree(kind=KINDS[strategy])
        await memory.ask("Who wrote of the harbour?", strategy=strategy)
        assert not said
        await memory.add({"id": "new", "text": "Zorblax lives in the Quindle tower."})
        await memory.ask("Who wrote of the harbour?", strategy=strategy)
        how = " --kind raptor" if "raptor" in strategy else ""
        told = f"1 of 2 documents have no tree, or changed since: run `qrmem tree build{how}`"
        assert said == [told]
        await memory.ask("Who wrote of it?", strategy=strategy, documents=["book"])
        assert said == [told]


async def test_without_a_tree_the_command_is_named() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(book(1))
        for strategy in ("inner-loop", "raptor"):
            with pytest.raises(NotFound, match="qrmem tree build"):
                await memory.ask("What is new?", strategy=strategy)


async def test_a_trail_loses_the_words_of_a_deleted_document() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add([{"id": "a", "text": f"{NEEDLE} {OTHER}"}, book(1)])
        await memory.build_tree()
        answer = await memory.ask("What belongs to the recipe?", strategy="inner-loop")
        assert "Odile" in str(answer.trail)
        await memory.delete("a")
        assert "Odile" not in str(await memory.trail())


@pytest.mark.parametrize("strategy", ["raptor", "inner-loop"])
async def test_reasoning_text_is_in_no_answer_and_no_summary(
    strategy: Strategy,
) -> None:
    def thinking(request: Mapping[str, Any]) -> str:
        return f"<think>\nZorblax, perhaps.\n</think>\n\n{answering.answer(request)}"

    async with serving(answer=thinking) as server:
        chosen: Any = {"model": "test", "base_url": server.url, "embedder": "none"}
        async with qrmem.open("memory://", **chosen) as memory:
            await memory.add({"id": "book", "text": f"{chapter(0, 30)} {NEEDLE}"})
            await memory.build_tree(kind=KINDS[strategy])
            answer = await memory.ask("What belongs to the recipe of Odile?", strategy=strategy)
    assert answer.text
    assert "Zorblax" not in str(answer)


def replying(node: str, answers: Sequence[str]) -> Callable[[Mapping[str, Any]], str]:
    """Return what a chat model says: the same for every node, one answer after the other."""
    left = iter(answers)

    def answer(request: Mapping[str, Any]) -> str:
        system, user = (str(message["content"]) for message in request["messages"][:2])
        if "(Surprise)" in system:
            return node
        return next(left) if "(Memory)" in user else answering.answer(request)

    return answer


async def built(
    answer: Callable[[Mapping[str, Any]], str],
    tmp_path: Path,
    *,
    parameters: Sequence[str] = (),
    **settings: Any,
) -> AsyncIterator[Any]:
    """Yield a memory with a chat model, and its server, which refuses some parameters."""
    async with serving(answer=answer, parameters=parameters) as server:
        async with qrmem.open(str(tmp_path / "m.db"), embedder="none") as memory:
            await memory.add({"id": "book", "text": f"{chapter(0, 30)} {NEEDLE}"})
        async with qrmem.open(
            str(tmp_path / "m.db"), embedder="none", model="test", base_url=server.url, **settings
        ) as memory:
            yield memory, server


async def test_a_model_writes_the_nodes_and_its_memory_is_the_next_query(tmp_path: Path) -> None:
    node = "(Summary): A keeper wrote.\n(Surprise): Prosciutto is in the recipe."
    answers = ["Ham; the rest is still to be found.", "It is prosciutto.", "It is prosciutto."]
    async for memory, _ in built(replying(node, answers), tmp_path):
        report = await memory.build_tree()
        assert report.malformed == 0
        assert report.usage.construction["tree"].calls == report.made
        (tree,) = await memory.trees()
        assert {one.surprises for one in tree.nodes} == {("Prosciutto is in the recipe.",)}
        answer = await memory.ask("What is in the recipe?", strategy="inner-loop")
        assert (answer.text, answer.status) == ("It is prosciutto.", "answered")
        rounds = [step for step in answer.trail.steps if step.action == "read"]
        assert [step.memory for step in rounds] == answers
        assert rounds[1].query == f"What is in the recipe?\n{answers[0]}"
        assert rounds[2].likeness == 1
        assert "surprise" in {one.kind for one in rounds[0].nodes}
        assert answer.citations


@pytest.mark.parametrize(
    "reply", ["Just words, no labels.", "", "(Summary): Your Summary\n(Surprise): None", "(Sum"]
)
async def test_a_model_that_breaks_the_form_still_makes_a_tree(reply: str, tmp_path: Path) -> None:
    async for memory, server in built(replying(reply, []), tmp_path):
        report = await memory.build_tree()
        assert report.malformed == report.made
        (tree,) = await memory.trees()
        assert all(one.summary for one in tree.nodes)
        asked = server.stats.answered
        assert (await memory.build_tree()).made == 0
        assert server.stats.answered == asked


async def test_a_cap_stops_a_build_and_the_same_call_continues(tmp_path: Path) -> None:
    node = "(Summary): A keeper wrote.\n(Surprise): None"
    async for memory, server in built(replying(node, []), tmp_path):
        first = await memory.build_tree(max_calls=2)
        assert first.stopped
        done = await memory.build_tree()
        assert (done.stopped, done.documents) == ("", ("book",))
        assert server.stats.answered == first.made + done.made


async def test_the_paper_s_sampling_goes_to_servers_that_take_it(tmp_path: Path) -> None:
    node = "(Summary): A keeper wrote.\n(Surprise): None"
    async for memory, server in built(replying(node, ["Ham."] * 9), tmp_path):
        await memory.build_tree()
        assert not any("min_p" in body or "top_p" in body for body in server.stats.bodies)
        server.stats.bodies.clear()
        report = await memory.build_tree(preset="paper")
        assert len(server.stats.bodies) == report.made
        wanted = {"temperature": 0.2, "top_p": 0.95, "top_k": 40, "min_p": 0.05}
        wanted |= {"repeat_penalty": 1.18, "repeat_last_n": 256, "max_tokens": 1055}
        for body in server.stats.bodies:
            assert {name: body.get(name) for name in wanted} == wanted
        server.stats.bodies.clear()
        await memory.ask("What is new?", strategy="inner-loop")
        assert not any("frequency_penalty" in body for body in server.stats.bodies)


async def test_a_server_that_refuses_parameters_of_sampling_gets_none(tmp_path: Path) -> None:
    node = "(Summary): A keeper wrote.\n(Surprise): None"
    async for memory, server in built(replying(node, []), tmp_path, parameters=("min_p", "top_k")):
        report = await memory.build_tree(preset="paper")
        assert (report.malformed, report.stopped) == (0, "")
        assert server.stats.answered == report.made
        taken = [body for body in server.stats.bodies if "min_p" not in body]
        assert len(taken) == report.made
        assert {body["temperature"] for body in taken} == {0.2}


async def test_an_answer_as_in_the_paper_is_sampled_so(tmp_path: Path) -> None:
    node = "(Summary): A keeper wrote.\n(Surprise): None"
    answers = replying(node, ["It is ham."] * 5)
    async for memory, server in built(answers, tmp_path, paper_exact=True):
        await memory.build_tree()
        server.stats.bodies.clear()
        answer = await memory.ask("What is new?", strategy="inner-loop")
        assert answer.text == "It is ham."
        assert {body["frequency_penalty"] for body in server.stats.bodies} == {1.2}
        assert {body["max_tokens"] for body in server.stats.bodies} == {200}
