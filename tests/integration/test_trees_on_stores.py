"""Trees of odd texts, by odd models, of documents that change: alike in every store."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from integration.test_trees import NEEDLE, book, chapter, replying, shape
from servers.openai_server import serving

import qrmem
from qrmem.errors import NotFound, QrmemError
from qrmem.extraction.sentence_reading import flat

Opener = Callable[..., AbstractAsyncContextManager[qrmem.Memory]]
STORES = ["memory", "file", pytest.param("neo4j", marks=pytest.mark.neo4j)]


@pytest.fixture(params=STORES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """What opens the same empty memory, again and again except where it is in memory."""
    place: dict[str, Any] = {"memory": "memory://"}
    if request.param == "file":
        place = {"memory": str(tmp_path / "m.db")}
    elif request.param == "neo4j":
        server = request.getfixturevalue("neo4j")
        server.clear()
        place = {"settings": server.settings}

    def opening(**settings: Any) -> AbstractAsyncContextManager[qrmem.Memory]:
        usual: dict[str, Any] = {"embedder": "none", "segment_tokens": 280}
        return qrmem.open(**place, **(usual | settings))

    return opening


def whole(memory_trees: Any) -> set[str]:
    """Ids of the segments below the roots of one tree."""
    (tree,) = memory_trees
    nodes = {node.key: node for node in tree.nodes}
    assert all(node.summary for node in tree.nodes)
    return {id for root in tree.roots for id in nodes[root].segments}


@pytest.mark.parametrize(
    ("text", "segments", "tokens"),
    [
        ("One sentence.", 1, 50),
        ("The very same line again, told once more, word for word.\n\n" * 10_000, 10_000, 16),
        ("word " * 50_000, 1, 60_000),
    ],
    ids=["one-sentence", "equal-chunks", "one-chunk"],
)
async def test_odd_texts_have_whole_trees(
    opened: Opener, text: str, segments: int, tokens: int, request: pytest.FixtureRequest
) -> None:
    if "neo4j-equal-chunks" in request.node.name:  # which takes minutes to write 10,000
        text, segments = text[: len(text) // 5], segments // 5
    async with opened(segment_tokens=tokens) as memory:
        await memory.add({"id": "odd", "text": text})
        report = await memory.build_tree()
        (info,) = await memory.documents()
        assert info.segments == segments
        assert len(whole(await memory.trees())) == segments
        assert (await memory.build_tree()).made == 0
        assert report.levels < 20


async def test_no_document_has_no_tree_and_an_empty_one_is_refused_before(opened: Opener) -> None:
    async with opened() as memory:
        with pytest.raises(QrmemError, match="is empty"):
            await memory.add({"id": "empty", "text": " \n"})
        await memory.add(book(1))
        with pytest.raises(NotFound, match="no document 'empty'"):
            await memory.build_tree("empty")
        assert await memory.trees() == []


async def test_a_changed_document_has_the_tree_of_its_new_text(opened: Opener) -> None:
    async with opened() as memory:
        await memory.add(book(3))
        first = await memory.build_tree()
        changed = book(3)
        changed["text"] = changed["text"].replace("On day 60 of year 2", f"{NEEDLE} On day 60")
        await memory.add(changed, update=True)
        again = await memory.build_tree()
        assert 0 < again.made < first.made / 2
        (tree,) = await memory.trees()
        assert tree.is_current
        assert any("Prosciutto" in f"{node.summary} {node.surprises}" for node in tree.nodes)
        grown = shape([tree])
    async with qrmem.open("memory://", embedder="none", segment_tokens=280) as other:
        await other.add(changed)
        await other.build_tree()
        assert shape(await other.trees()) == grown


SAID = {
    "repeats": "(Summary): The keeper wrote lines. " + "The keeper wrote lines. " * 200,
    "refuses": "I'm sorry, but as an assistant I cannot fulfil this request.",
    "says nothing": "",
    "breaks the labels": "Summary -> The keeper wrote about the harbour; Surprise -> the weather",
    "echoes the prompt": "You condense a part of a long text. Give two parts, each after its label",
    "echoes the form": "(Summary): Your Summary\n(Surprise): None",
}


@pytest.mark.parametrize("name", SAID)
async def test_the_tree_is_whole_and_paid_once_for_any_reply(opened: Opener, name: str) -> None:
    async with (
        serving(answer=replying(SAID[name], [])) as server,
        opened(model="test", base_url=server.url) as memory,
    ):
        await memory.add({"id": "book", "text": f"{chapter(0, 30)} {NEEDLE}"})
        report = await memory.build_tree()
        assert report.malformed == report.made > 0
        (tree,) = await memory.trees()
        (info,) = await memory.documents()
        assert len(whole([tree])) == info.segments
        summaries = {node.summary for node in tree.nodes}
        if name == "repeats":
            assert summaries == {"The keeper wrote lines."}
        elif name != "breaks the labels":
            text = flat((await memory.document("book")).text)
            said = (line for one in summaries for line in one.split(". "))
            lines = [line.removeprefix("Chapter 1 ").rstrip(".") for line in said]
            assert all(line in text for line in lines), "sentences of the text, not the model's"
        asked = server.stats.answered
        assert (await memory.build_tree()).made == 0
        assert server.stats.answered == asked
        paid = {row.key: row.calls for row in await memory.usage()}
        assert paid["tree"] == report.usage.construction["tree"].calls
        await memory.delete("book")
        assert await memory.trees() == []
