"""Trees of summaries through the face: built, grown, deleted, moved, resumed."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import qrmem
from qrmem.errors import NotFound, UsageError
from qrmem.types.trees import Tree

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
async def test_a_tree_that_grew_equals_one_made_at_once_and_makes_little_anew(
    kind: qrmem.types.trees.TreeKind,
) -> None:
    async with qrmem.open("memory://", embedder="none", segment_tokens=280) as memory:
        await memory.add(book(6))
        first = await memory.build_tree(kind=kind)
        await memory.add(book(7), update=True)
        assert [tree.is_current for tree in await memory.trees(kind=kind)] in ([False], [])
        grown = await memory.build_tree(kind=kind)
        assert grown.made < first.made / 3
        after = shape(await memory.trees(kind=kind))
    async with qrmem.open("memory://", embedder="none", segment_tokens=280) as memory:
        await memory.add(book(7))
        await memory.build_tree(kind=kind)
        assert shape(await memory.trees(kind=kind)) == after


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


async def test_wrong_words_are_refused() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(book(1))
        with pytest.raises(UsageError, match="kind is 'oak'; choose one of ilm, raptor"):
            await memory.build_tree(kind="oak")  # type: ignore[arg-type]
        with pytest.raises(NotFound, match="no document 'nothing'"):
            await memory.build_tree("nothing")
