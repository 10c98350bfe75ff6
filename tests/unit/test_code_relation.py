"""The repository graph against plain Python, and by hand (FragRel, appendix A, Equation 8)."""

import ast
import heapq
import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np
import pytest
import tree_sitter
import tree_sitter_python
from numpy.typing import NDArray

from qrmem.retrieval.fragments import Fragments
from qrmem.retrieval.fragments.code_graph import CodeGraph, Strengths, folder_strength
from qrmem.retrieval.fragments.operators import Code, Folders
from qrmem.retrieval.fragments.source_files import HUB, Edge, SourceFile, resolved
from qrmem.text.code import outline
from qrmem.text.code.outline import Cover
from qrmem.text.code.syntax_tree import python_outline
from qrmem.types import DocumentInfo

REPOSITORY = {
    "app/main.py": (
        "from lib.tools import helper\nimport lib.other as other\n\n"
        "def run(x):\n    y = helper(x)\n    if y:\n        return other.twice(y)\n    return y\n"
    ),
    "lib/tools.py": (
        "def helper(x):\n    return inner(\n        x\n    )\n\ndef inner(x):\n    return x\n"
    ),
    "lib/other.py": (
        "class Twice:\n    def go(self):\n        return 2\n\ndef twice(x):\n    return x * 2\n"
    ),
    "lib/deep/far.py": "def lonely():\n    return 1\n",
}


def spans(text: str, size: int) -> list[tuple[int, int]]:
    """Fragments of `size` lines without overlap."""
    lines = text.splitlines(keepends=True)
    ends = [sum(map(len, lines[:n])) for n in range(0, len(lines), size)]
    return list(zip(ends, [*ends[1:], len(text)], strict=True))


def covers_of(text: str, size: int) -> list[dict[int, int]]:
    cover = Cover(outline(text, "python"), text)
    return [cover.of(start, end) or {0: 1} for start, end in spans(text, size)]


def files(texts: Mapping[str, str], size: int = 3) -> dict[str, SourceFile]:
    return {
        path: SourceFile.of(path, text, outline(text, "python"), spans(text, size))
        for path, text in texts.items()
    }


def oracle(
    texts: Mapping[str, str], size: int, edges: Mapping[str, list[Edge]]
) -> "NDArray[np.float64]":
    """Equation 8 as it stands: every node, every pair, Dijkstra from each."""
    graph: dict[object, list[tuple[object, float]]] = defaultdict(list)

    def join(one: object, other: object, weight: float) -> None:
        graph[one].append((other, weight))
        graph[other].append((one, weight))

    for path, text in sorted(texts.items()):
        for node, parent in enumerate(outline(text, "python").parents):
            if parent >= 0:
                join((path, node), (path, parent), 0.5)
        join((path, 0), path, 1.0)
        parts = path.split("/")
        for n in range(len(parts)):
            join(
                "/".join(parts[: n + 1]) if n + 1 < len(parts) else path,
                "/".join(parts[:n]) or "root",
                0.3,
            )
        for edge in edges[path]:
            join((path, edge.node), (edge.path, edge.target), 0.8)

    def strengths(start: object) -> dict[object, float]:
        best: dict[object, float] = {}
        heap: list[tuple[float, str, object]] = [(-1.0, "", start)]
        while heap:
            negative, _, node = heapq.heappop(heap)
            if node not in best:
                best[node] = -negative
                for other, weight in graph[node]:
                    heapq.heappush(heap, (negative * weight, repr(other), other))
        return best

    covers = [
        {(path, node): size for node, size in cover.items()}
        for path, text in sorted(texts.items())
        for cover in covers_of(text, size)
    ]
    result = np.zeros((len(covers), len(covers)))
    for i, mine in enumerate(covers):
        for one, size in mine.items():
            found = strengths(one)
            for j, theirs in enumerate(covers):
                for other, length in theirs.items():
                    share = size / sum(mine.values()) * length / sum(theirs.values())
                    result[i, j] += share * found.get(other, 0.0)
    return result


def relation(
    given: Mapping[str, SourceFile],
    cutoff: float,
    edges: Mapping[str, list[Edge]] | None = None,
) -> Code:
    graph = CodeGraph(given, edges or resolved(given), cutoff)
    counts = [file.shape.fragments for file in given.values()]
    of = np.repeat(np.arange(len(counts)), counts)
    places = np.concatenate([np.arange(count) for count in counts])
    infos = [DocumentInfo(path, path, {"code": "python"}, 0, 0, {}) for path in given]
    ids = [str(n) for n in range(of.size)]
    empty = np.zeros((of.size, 0), dtype=np.float32)
    fragments = Fragments(ids, infos, of, of, places, empty)
    return Code.over(fragments, graph.strengths())


@pytest.mark.parametrize("size", [1, 3, 20])
def test_all_pairs_agree_with_plain_python(size: int) -> None:
    given = dict(sorted(files(REPOSITORY, size).items()))
    whole = oracle(REPOSITORY, size, resolved(given))
    found = relation(given, 1e-9).times(np.eye(whole.shape[0]))
    assert np.allclose(found, whole, rtol=0, atol=1e-6)
    assert np.allclose(found, found.T)


def test_a_cutoff_only_takes_away_and_no_more_than_itself() -> None:
    given = dict(sorted(files(REPOSITORY).items()))
    whole = oracle(REPOSITORY, 3, resolved(given))
    found = relation(given, 0.1).times(np.eye(whole.shape[0]))
    assert (found <= whole + 1e-6).all()
    assert (whole - found <= 0.1).all()


def test_products_are_those_of_the_rows() -> None:
    made = relation(dict(sorted(files(REPOSITORY).items())), 0.1)
    columns = np.random.default_rng(0).random((made.size, 2))
    assert np.allclose(made.times(columns), made.times(np.eye(made.size)) @ columns)
    assert np.allclose(made.diagonal(), np.diag(made.times(np.eye(made.size))))


def test_weights_by_hand() -> None:
    # b() is an expression statement below the root of one.py, its call one edge further down; b is
    # the root's child in two.py: 0.5 * 0.8. Its name alone is a fragment as wide as the node.
    texts = {"one.py": "from two import b\nb()\n", "two.py": "def b(): pass\nx = 1\n"}
    made = relation(files(texts, 1), 1e-9).times(np.eye(4))
    assert made[1, 2] == pytest.approx(0.5 * 0.8, abs=1e-6)
    # Then to x = 1 by way of the root: 0.5 * 0.5 more.
    assert made[1, 3] == pytest.approx(0.4 * 0.25, abs=1e-6)
    # The import knows two.py by the directory only: 0.5 * 0.3 * 0.3 * 0.5; over the call, 0.1.
    assert made[0, 3] == pytest.approx(0.025, abs=1e-6)
    assert made.diagonal() == pytest.approx([1, 1, 1, 1])


def test_a_way_out_of_a_function_goes_over_its_body_by_hand() -> None:
    # f, its body, the return statement, the call: three edges of 0.5, then the call's 0.8.
    texts = {"one.py": "def f():\n    return g()\nx = 1\n", "two.py": "def g():\n    pass\ny = 1\n"}
    made = relation(files(texts, 2), 1e-9).times(np.eye(4))
    assert made[0, 2] == pytest.approx(0.5**3 * 0.8, abs=1e-6)


def test_ways_over_directories_by_hand() -> None:
    assert folder_strength("a/x.py", "a/x.py") == 1
    assert folder_strength("a/x.py", "a/y.py") == pytest.approx(0.3**2)
    assert folder_strength("a/x.py", "b/c/y.py") == pytest.approx(0.3**5)
    paths = ["a/x.py", "a/y.py", "b/c/y.py", "top.py"]
    whole = np.array([[folder_strength(p, q) for q in paths] for p in paths])
    assert np.allclose(Folders.of(paths).times(np.eye(4)), whole)


# --- what calls mean -----------------------------------------------------------------------------


def led(texts: Mapping[str, str], path: str) -> set[tuple[str, str]]:
    """Where a file's calls lead: (file, name)."""
    given = files(texts)
    names = {(p, d.node): d.name for p, f in given.items() for d in f.definitions}
    return {(e.path, names[e.path, e.target]) for e in resolved(given)[path]}


def test_a_definition_in_the_same_file_comes_first() -> None:
    texts = {"a.py": "def f(): pass\ndef g(): f()\n", "b.py": "def f(): pass\n"}
    assert led(texts, "a.py") == {("a.py", "f")}


def test_an_imported_name_leads_to_its_module_only() -> None:
    texts = {
        "a.py": "from pkg.b import f as g\ng()\n",
        "pkg/b.py": "def f(): pass\n",
        "c.py": "def f(): pass\n",
        "d.py": "from outside import f\nf()\n",
        "pkg/e.py": "from .b import f\nfrom . import b\nf()\nb.f()\n",
    }
    assert led(texts, "a.py") == {("pkg/b.py", "f")}
    assert led(texts, "d.py") == set()
    assert led(texts, "pkg/e.py") == {("pkg/b.py", "f")}


def test_all_candidates_count_unless_there_are_too_many() -> None:
    texts = {"a.py": "x.go()\n"} | {f"m{n}.py": "def go(): pass\n" for n in range(3)}
    assert led(texts, "a.py") == {(f"m{n}.py", "go") for n in range(3)}
    texts |= {f"m{n}.py": "def go(): pass\n" for n in range(9)}
    assert led(texts, "a.py") == set()


def test_a_function_that_everybody_calls_relates_nobody() -> None:
    texts = {"a.py": "def log(): pass\n"}
    texts |= {f"m{n}.py": "from a import log\nlog()\n" for n in range(HUB)}
    assert led(texts, "m0.py") == {("a.py", "log")}
    texts["last.py"] = "from a import log\nlog()\n"
    assert led(texts, "m0.py") == set()


def test_strengths_survive_being_packed() -> None:
    given = dict(sorted(files(REPOSITORY).items()))
    made = CodeGraph(given, resolved(given), 0.05).strengths()
    again = Strengths.unpacked(made.packed())
    assert (list(again.paths), again.packed()) == (list(made.paths), made.packed())


def test_a_file_survives_being_packed() -> None:
    for path, file in files(REPOSITORY).items():
        assert SourceFile.unpacked(path, file.packed()).packed() == file.packed()


def test_another_call_never_takes_a_strength_away() -> None:
    given = dict(sorted(files(REPOSITORY).items()))
    edges = resolved(given)
    made = relation(given, 1e-9)
    whole, changes = made.times(np.eye(made.size)), 0
    for path, found in edges.items():
        for n in range(len(found)):
            fewer = relation(given, 1e-9, {**edges, path: found[:n] + found[n + 1 :]})
            less = fewer.times(np.eye(made.size))
            assert (less <= whole + 1e-6).all()
            changes += not np.allclose(less, whole)
    assert changes


NESTED = {
    "a/b/one.py": "f(g(1), x.h(2)) + f(k)\n\ndef m(\n    y\n):\n    return [h(g(z)) for z in y]\n",
    "c/d/two.py": "def f(x, y): pass\n\ndef h(x): pass\n",
    "e/i/three.py": "def g(x):\n    return 1\n",
}


@pytest.mark.parametrize("by", ["grammar", "ast"])
def test_calls_within_calls_are_as_near_as_the_whole_tree_has_them(by: str) -> None:
    """Equation 8 of whole files, against Dijkstra over every node of their syntax trees.

    Calls on one line had each a way of its own up to the line: f(g(1)) had a quarter of this.
    """
    graph: Any = nx.Graph()
    for path, text in NESTED.items():
        graph.add_edge(path, (path, "root"), weight=0.0)
        parts = path.split("/")
        for n in range(len(parts)):
            graph.add_edge(parts[n] if n else "", "".join(parts[: n + 1]), weight=-math.log(0.3))
        graph.add_edge("".join(parts), path, weight=0.0)
        _grown(graph, path, text, by)
    roots = [(path, "root") for path in sorted(NESTED)]
    found = dict(nx.all_pairs_dijkstra_path_length(graph))
    exact = [[math.exp(-found[one][other]) for other in roots] for one in roots]
    given = {
        path: SourceFile.of(
            path,
            text,
            outline(text, "python") if by == "grammar" else python_outline(text),
            [(0, len(text))],
        )
        for path, text in sorted(NESTED.items())
    }
    made = relation(given, 1e-9).times(np.eye(3))
    assert np.allclose(made, exact, rtol=0, atol=1e-6)
    assert made[1, 2] == pytest.approx(0.04 if by == "grammar" else 0.08, abs=1e-6)


def _grown(graph: Any, path: str, text: str, by: str) -> None:
    """Add every node of a file's syntax tree, and its calls of names."""

    def children(tree: Any) -> list[Any]:
        if by == "grammar":
            return list(tree.named_children)
        placed: list[Any] = []
        for child in ast.iter_child_nodes(tree):
            placed += [child] if hasattr(child, "lineno") else children(child)
        return placed

    def called(tree: Any) -> str:
        if by == "ast":
            name = getattr(tree, "func", None)
            return getattr(name, "id", getattr(name, "attr", ""))
        name = tree.child_by_field_name("function") if tree.type == "call" else None
        return name.text.decode().rpartition(".")[2] if name is not None else ""

    def defined(tree: Any) -> str:
        if by == "ast":
            return tree.name if isinstance(tree, ast.FunctionDef) else ""
        is_one = tree.type == "function_definition"
        return tree.child_by_field_name("name").text.decode() if is_one else ""

    def grow(tree: Any, node: object) -> None:
        for n, child in enumerate(children(tree)):
            inner = (node, n)
            graph.add_edge(node, inner, weight=-math.log(0.5))
            if name := called(child):
                graph.add_edge(inner, f"def {name}", weight=-math.log(0.8))
            if name := defined(child):
                graph.add_edge(inner, f"def {name}", weight=0.0)
            grow(child, inner)

    root: Any = ast.parse(text)
    if by == "grammar":
        language = tree_sitter.Language(tree_sitter_python.language())
        root = tree_sitter.Parser(language).parse(text.encode()).root_node
    grow(root, (path, "root"))
