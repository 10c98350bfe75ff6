"""`qrmem tree show`: the outline of a tree, its surprises, and what the marks mean."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from e2e.conftest import Shell

SUBJECTS = ("harbour", "orchard", "railway", "library")
SURPRISE = "Goat cheese is a secret ingredient of a perfect pizza."


def written(shell: Shell, chapters: int) -> None:
    """Write a book: in each chapter one sentence that the others do not predict."""
    found = []
    for number, subject in enumerate(SUBJECTS[:chapters], 1):
        lines = [
            f"On day {n} the keeper of the {subject} wrote {n + 7} lines on it." for n in range(40)
        ]
        found.append(f"Chapter {number}\n\n" + " ".join([*lines[:20], SURPRISE, *lines[20:]]))
    (shell.folder / "book.txt").write_text("\n\n".join(found))


def beginnings(tree: dict[str, Any], most: int) -> list[str]:
    """How the lines of a tree's nodes begin, from the roots down to a depth."""
    nodes = {node["key"]: node for node in tree["nodes"]}

    def below(key: str, depth: int) -> list[str]:
        if key not in nodes or depth > most:
            return []
        node, size = nodes[key], len(nodes[key]["segments"])
        own = f"{'  ' * depth}level {node['level']}, {size} segment{'s' * (size != 1)}: "
        return [own, *(line for child in node["covers"] for line in below(child, depth + 1))]

    return [line for root in tree["roots"] for line in below(root, 1)]


def test_a_tree_is_shown_from_its_roots_down_to_a_depth(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    written(shell, 3)
    assert shell("add", "book.txt", "--segment-tokens", "200").code == 0
    assert "no tree was built yet" in shell("tree", "show").err
    assert shell("tree", "build").code == 0
    (tree,) = shell("tree", "show", "--json").json
    assert max(node["level"] for node in tree["nodes"]) >= 2
    for depth in (1, 2, 9):
        lines = shell("tree", "show", "--depth", str(depth)).out.splitlines()
        assert lines[0] == f"book.txt: {len(tree['nodes'])} nodes"
        shown = [line for line in lines if line.lstrip().startswith("level ")]
        wanted = beginnings(tree, depth)
        assert [line[: len(own)] for line, own in zip(shown, wanted, strict=True)] == wanted
    refused = shell("tree", "show", "--depth", "0")
    assert (refused.code, refused.out) == (2, "")
    assert "depth must be at least 1, not 0" in refused.err
    usual = shell("tree", "show").out
    assert usual == shell("tree", "show", "--depth", "2").out


def test_a_tree_names_the_method_that_grouped_its_nodes(tmp_path: Path) -> None:
    """A tree of equal lines is runs in the order of the text, and does not pass for clusters."""
    shell = Shell(tmp_path)
    kept = [SUBJECTS[n % 4] for n in range(240)]
    said = (
        f"The {one} had its {one} keeper and {one} ledger, page {n}." for n, one in enumerate(kept)
    )
    for name, text, tokens in (
        ("odd", "Same line.\n\n" * 2000, "50"),
        ("book", " ".join(said), "20"),
    ):
        (shell.folder / f"{name}.txt").write_text(text)
        assert shell("add", f"{name}.txt", "--segment-tokens", tokens).code == 0
    kinds = {"odd.txt": "raptor", "book.txt": "ilm"}
    done, told = {}, {}
    for name, kind in kinds.items():
        which = (name, "--kind", kind)
        assert shell("tree", "build", *which, "--preset", "paper").code == 0
        (tree,) = shell("tree", "show", *which, "--json").json
        done[name] = tree["grouping"]
        told[name] = shell("tree", "show", *which, "--depth", "1").out.splitlines()[1]
    groups, runs = done["odd.txt"]["groups"], done["odd.txt"]["runs"]
    assert told["odd.txt"] == (
        f"  {groups} groups, vectors not reduced; consecutive pieces of the text: {runs}"
    )
    assert groups - 1 <= runs
    assert runs > 3, "but for the last, shorter segment all are equal"
    by, groups = "UMAP" if find_spec("umap") else "PCA", done["book.txt"]["groups"]
    assert told["book.txt"] == (
        f"  {groups} groups, vectors reduced by {by}; consecutive pieces of the text: 0"
    )
    assert groups > 3


def test_a_surprise_is_marked_below_its_node_and_the_mark_is_explained(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    written(shell, 1)
    assert shell("add", "book.txt", "--segment-tokens", "1000", "--tree").code == 0
    heading, node, *surprises, legend = shell("tree", "show").out.splitlines()
    assert heading == "book.txt: 1 node"
    assert node.startswith("  level 1, 1 segment: ")
    assert f"    ! {SURPRISE}" in surprises
    assert all(line.startswith("    ! ") for line in surprises)
    assert legend.startswith("! marks a surprise")
    assert shell("tree", "build", "--kind", "raptor").code == 0
    assert "!" not in shell("tree", "show", "--kind", "raptor").out


def test_a_message_says_that_a_changed_document_needs_a_new_tree(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    written(shell, 2)
    assert shell("add", "book.txt", "--tree").code == 0
    assert "qrmem tree build" not in shell("tree", "show").out
    written(shell, 3)
    assert shell("add", "book.txt", "--update").code == 0
    shown = shell("tree", "show")
    assert "its document has changed since: qrmem tree build" in shown.err
    assert shell("tree", "build").code == 0
    assert "qrmem tree build" not in shell("tree", "show").out


def test_a_document_that_only_grew_keeps_its_old_tree_until_then(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    line = "The keeper of the harbour wrote a line on the weather of the day, and slept."
    (shell.folder / "log.txt").write_text(f"{line}\n\n" * 3)
    add = ("add", "log.txt", "--segment-tokens", "20")
    assert shell(*add, "--tree").code == 0
    (shell.folder / "log.txt").write_text(f"{line}\n\n" * 4)
    assert shell(*add, "--update").code == 0
    heading, said, *_ = shell("tree", "show").out.splitlines()
    assert heading == "log.txt: 4 nodes"
    assert said == "  the document has changed since: run `qrmem tree build` again"
    assert shell("tree", "build").code == 0
    assert "grown" not in shell("tree", "show").out
