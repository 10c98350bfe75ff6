"""Source files in outline: nodes, definitions, calls, imports; fragments and what covers them."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qrmem.graph.segmenting import cut_code, read_code
from qrmem.text.code import Definition, Outline, outline, syntax_tree
from qrmem.text.code.outline import Cover, Lines, label_within
from qrmem.text.code.syntax_tree import has_grammar
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import Document, Segment

unhurried = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])


PYTHON = '''\
import os
from .b import helper as h

@dec
class A(B):
    """Words."""

    def m(self, x):
        y = h(x)
        return self.n(y) + os.path.join("ä")


def f(): return A().m(1)
'''

SAMPLES = {
    "javascript": (
        'import {a, b as c} from "./m.js";\n'
        'import * as z from "../lib/z";\n'
        "class K {\n  run(x) { return this.go(a(x)); }\n}\n"
        "const fn = (x) => {\n  return new K().run(x);\n};\n",
        {"K", "run", "fn"},
        {"go", "a", "K", "run"},
        {("a", (".", "m"), "a"), ("c", (".", "m"), "b"), ("z", ("..", "lib", "z"), "")},
    ),
    "typescript": (
        'import type {T} from "x/y";\n'
        "export function f(a: T): number {\n  return g<number>(a);\n}\n",
        {"f"},
        {"g"},
        {("T", ("x", "y"), "T")},
    ),
    "java": (
        "import p.q.Helper;\nclass Foo {\n  int bar(int x) {\n"
        "    return Helper.go(x) + new Foo().baz();\n  }\n}\n",
        {"Foo", "bar"},
        {"go", "baz", "Foo"},
        {("Helper", ("p", "q"), "Helper")},
    ),
    "go": (
        'package main\nimport h "x.org/a/helper"\nfunc (s *S) Run(a int) {\n  h.Do(a)\n}\n'
        "type S struct {\n}\n",
        {"Run", "S"},
        {"Do"},
        {("h", ("x.org", "a", "helper"), "")},
    ),
    "rust": (
        "use crate::a::{B, c};\nstruct S;\nimpl S {\n    fn go(&self) -> i32 {\n"
        "        c(1); B::new()\n    }\n}\n",
        {"S", "go"},
        {"c", "new"},
        {("B", ("crate", "a"), "B"), ("c", ("crate", "a"), "c")},
    ),
    "c": (
        "static int *f(int a)\n{\n    return g(a) + h->k(1);\n}\nstruct P {\n  int a;\n};\n",
        {"f", "P"},
        {"g", "k"},
        set(),
    ),
    "cpp": (
        "class Q {\n public:\n  int go(int a) { return help(a); }\n};\n"
        "int Q::other() {\n  return new R(1)->x();\n}\n",
        {"Q", "go", "other"},
        {"help", "R", "x"},
        set(),
    ),
}


def test_python_nodes_are_those_that_lines_can_be_made_of() -> None:
    found = outline(PYTHON, "python")
    texts = [PYTHON[a:b] for a, b in zip(found.starts, found.ends, strict=True)]
    assert texts[0] == PYTHON
    assert 'return self.n(y) + os.path.join("ä")' in texts
    assert "self.n(y)" in texts, "a call is a node"
    assert "self.n" not in texts
    assert texts[found.definitions[0].node].startswith("@dec\nclass A")
    assert [(d.name, d.kind, d.owner) for d in found.definitions] == [
        ("A", "class", ""),
        ("m", "function", "A"),
        ("f", "function", ""),
    ]
    assert {(c.name, c.base) for c in found.calls} == {
        ("h", ""),
        ("n", "self"),
        ("join", "os.path"),
        ("m", "?"),
        ("A", ""),
    }
    assert [(i.name, i.module, i.original) for i in found.imports] == [
        ("os", ("os",), ""),
        ("h", (".", "b"), "helper"),
    ]


@pytest.mark.parametrize("language", SAMPLES)
def test_other_languages_say_what_they_define_call_and_import(language: str) -> None:
    text, definitions, calls, imports = SAMPLES[language]
    found = outline(text, language)
    assert not found.is_broken
    assert {d.name for d in found.definitions} == definitions
    assert {c.name for c in found.calls} == calls
    assert {(i.name, i.module, i.original) for i in found.imports} == imports


@pytest.mark.parametrize(
    ("language", "text", "names"),
    [
        ("javascript", "exports.a = function () {};\nB.prototype.c = (x) => 1;\n", "a c"),
        ("javascript", "const o = {\n  d: async () => 1,\n  'no-name': () => 2,\n};\n", "d"),
        ("javascript", "class S {\n  e = () => 2;\n  n = 3;\n}\n", "S e"),
        ("typescript", "class S {\n  private f = () => 2;\n}\n", "S f"),
        ("typescript", "export enum G { A }\ntype H<T> = T[];\n", "G H"),
        ("c", "#define SQ(x) ((x) * (x))\n#define MAX 3\nenum e { A };\n", "SQ MAX e"),
        ("c", "typedef struct {\n  int a;\n} node;\ntypedef int (*called)(int);\n", "node"),
        ("cpp", "T & Q::at(int n) { return v[n]; }\nQ:: ~Q() { }\n", "at ~Q"),
        ("rust", "macro_rules! sq { ($x:expr) => { $x } }\ntype A = u8;\n", "sq A"),
    ],
)
def test_functions_that_are_assigned_types_and_macros_are_defined(
    language: str, text: str, names: str
) -> None:
    found = outline(text, language)
    assert not found.is_broken
    assert [d.name for d in found.definitions] == names.split()


def test_a_header_of_cpp_is_read_as_cpp() -> None:
    text = "#pragma once\nclass Anchor : public Base {\n public:\n  int a() { b(); }\n};\n"
    found = outline(text, "c")
    assert (found.language, found.is_broken) == ("cpp", False)
    assert {d.name for d in found.definitions} == {"Anchor", "a"}
    assert outline("int f(void) { return 1 +; }\n", "c").language == "c"


def test_offsets_count_characters_in_any_language() -> None:
    text = 'const a = "äöü€𝄞";\nfunction f() {\n  return "é" + g();\n}\n'
    found = outline(text, "javascript")
    node = next(d.node for d in found.definitions if d.name == "f")
    assert text[found.starts[node] : found.ends[node]] == text[text.index("function") : -1]


def test_a_broken_file_is_read_around_its_mistake() -> None:
    text = "def broken(:\n    pass\n\n\ndef sound():\n    return helped()\n"
    found = outline(text, "python")
    assert found.is_broken
    assert "sound" in {d.name for d in found.definitions}
    assert "helped" in {c.name for c in found.calls}
    assert outline("function f( {\n return\n", "javascript").is_broken


RICH = '''\
import a.b as ab, c.d
from ..e.f import (  # a remark
    g as h,
    i,
)
from . import j
from k import *


@ab.made(1)
@j
async def outer(x, /, y=i(), *z, **rest):
    """Words of "two" kinds."""

    @h
    def inner():
        return [one.go(x).on() for one in z if one["key"].seen()]

    return lambda: f"{inner()} {'ä'.join(y)}"


class A(h.B, metaclass=i):
    class C:
        def deep(self):
            self.near().far()
            return ab.c.down(self)

    if ab:
        async def other(self): await self.C().deep()
'''


def test_python_without_a_grammar_defines_calls_and_imports_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = outline(RICH, "python")
    bodies = [RICH[a:b] for a, b in zip(found.starts, found.ends, strict=True)]
    assert "self.near().far()\n            return ab.c.down(self)" in bodies
    monkeypatch.setattr(syntax_tree, "find_spec", lambda name: None)
    assert has_grammar("python")
    own = outline(RICH, "python")
    assert len(own.parents) < len(found.parents)

    def defined(of: Outline) -> list[tuple[str, str, str, int, int]]:
        places = [(of.starts[d.node], of.ends[d.node]) for d in of.definitions]
        return [(*d[:1], *d[2:], *at) for d, at in zip(of.definitions, places, strict=True)]

    assert defined(found) == defined(own)
    assert sorted((c.name, c.base) for c in found.calls) == sorted(
        (c.name, c.base) for c in own.calls
    )
    assert found.imports == own.imports
    document, counter = Document(RICH, id="a.py"), BuiltinTokenizer()
    cuts = [cut_code("a.py", document, of, "definitions", counter, 600) for of in (found, own)]
    assert [s.part for s in cuts[0]] == [s.part for s in cuts[1]]
    assert outline("def broken(:\n", "python").parents == [-1]


def test_a_language_without_a_grammar_is_the_root_alone() -> None:
    assert not has_grammar("cobol")
    assert outline("MOVE A TO B.", "cobol").parents == [-1]


@pytest.mark.parametrize("text", ["", "\n\n", "x = " + "(" * 300 + ")" * 300, "x = 1" * 5])
def test_strange_files_do_not_stop_it(text: str) -> None:
    assert outline(text, "python").parents[0] == -1
    assert outline("[" * 5000, "javascript").parents[0] == -1


LONG_SUM = "def f():\n    return (\n" + "        'part' +\n" * 1200 + "        ''\n    )\n"
"""A sum of strings over many lines: each line nests one level deeper than the next."""


def test_trees_deeper_than_python_s_stack_are_covered() -> None:
    nodes = Cover(outline(LONG_SUM, "python"), LONG_SUM).of(40, 90)
    assert sum(nodes.values()) == len("".join(LONG_SUM[40:90].split()))


def test_python_s_own_parser_reads_what_nests_too_deep_as_lines() -> None:
    found = syntax_tree.python_outline(LONG_SUM)
    assert found.is_broken
    assert found.parents == [-1]


def test_a_constructor_does_not_make_its_class_a_function() -> None:
    text = "class Foo {\n  Foo() { bar(); }\n  void bar() {}\n}\n"
    segment = Segment("s", "Foo.java", 0, 0, len(text), text, 20)
    (made,) = read_code(outline(text, "java"), [segment])
    assert {m.name: m.type for m in made.mentions} == {"Foo": "CLASS", "bar": "FUNCTION"}


def test_an_abstract_class_is_a_class_with_methods() -> None:
    found = outline("abstract class K {\n  m() {}\n}\n", "typescript")
    assert [(d.name, d.kind, d.owner) for d in found.definitions] == [
        ("K", "class", ""),
        ("m", "function", "K"),
    ]


# --- covers --------------------------------------------------------------------------------------


def test_a_cover_takes_the_largest_nodes_and_what_spans_the_rest() -> None:
    found = outline(PYTHON, "python")
    lines = Lines(PYTHON)
    cover = Cover(found, PYTHON)

    def of(first: int, last: int) -> dict[str, int]:
        nodes = cover.of(lines.starts[first], lines.starts[last])
        return {PYTHON[found.starts[n] : found.ends[n]][:9]: size for n, size in nodes.items()}

    assert of(0, 2) == {"import os": 9, "from .b i": len("from .b import helper as h")}
    # The method's own words are its node's; its name and arguments stand for themselves.
    assert of(7, 9) == {"def m(sel": 4, "m": 1, "(self, x)": 9, "y = h(x)": 8}
    assert of(0, lines.count) == {"import os": len(PYTHON)}


@unhurried
@given(st.integers(0, 13), st.integers(1, 13))
def test_a_cover_counts_no_character_twice(first: int, count: int) -> None:
    lines = Lines(PYTHON)
    start = lines.starts[min(first, lines.count - 1)]
    end = lines.starts[min(first + count, lines.count)]
    nodes = Cover(outline(PYTHON, "python"), PYTHON).of(start, end)
    assert sum(nodes.values()) <= end - start
    assert bool(nodes) == bool(PYTHON[start:end].strip())


# --- fragments -----------------------------------------------------------------------------------


def fragments(text: str, how: str = "lines", limit: int = 600) -> list[Segment]:
    tree = outline(text, "python")
    document = Document(text, id="a.py")
    return cut_code("a.py", document, tree, how, BuiltinTokenizer(), limit)  # type: ignore[arg-type]


def test_windows_are_twenty_lines_that_overlap_by_ten() -> None:
    text = "".join(f"x{n} = {n}\n" for n in range(45))
    assert [segment.part for segment in fragments(text)] == [
        "lines 1-20",
        "lines 11-30",
        "lines 21-40",
        "lines 31-45",
    ]
    assert all(text[s.start : s.end] == s.text for s in fragments(text))


def test_fragments_by_definition_are_the_text_in_order() -> None:
    found = fragments(PYTHON, "definitions")
    assert "".join(segment.text for segment in found) == PYTHON
    assert [s.text.lstrip().splitlines()[0] for s in found] == [
        "import os",
        "@dec",
        "def m(self, x):",
        "def f(): return A().m(1)",
    ]


def test_lines_too_long_for_the_limit_are_cut() -> None:
    text = "x = '" + "word " * 400 + "'\n" + "y = 1\n" * 30
    found = fragments(text, limit=100)
    assert max(segment.tokens for segment in found) <= 100
    assert all(text[s.start : s.end] == s.text for s in found)


@unhurried
@given(st.text(alphabet="ab =\n():", max_size=400))
def test_every_solid_line_is_in_some_fragment(text: str) -> None:
    found = fragments(text, limit=20)
    seen = {at for s in found for at in range(s.start, s.end)}
    assert all(at in seen for at, char in enumerate(text) if not char.isspace())


def test_a_fragment_names_what_it_defines_and_what_that_calls() -> None:
    text = "def a():\n    return b()\n\n\ndef b():\n    return len('')\n"
    (segment,) = fragments(text)
    (found,) = read_code(outline(text, "python"), [segment])
    assert [(m.name, m.type, m.count) for m in found.mentions] == [
        ("a", "FUNCTION", 1),
        ("b", "FUNCTION", 2),
    ]
    assert [s.description for s in found.statements] == ["a calls b"]


def test_a_label_says_the_lines_of_a_part_of_a_fragment() -> None:
    text = "one\ntwo\nthree\n"
    assert label_within("lines 21-23", text, 4, 7) == "line 22"
    assert label_within("lines 21-23", text, 0, 14) == "lines 21-23"
    assert label_within("Chapter 1", text, 0, 3) == "Chapter 1"


def test_outlines_know_in_how_many_definitions_their_nodes_are() -> None:
    defined = [Definition("A", 1), Definition("m", 3, "function", "A")]
    found = Outline("python", [-1, 0, 1, 2, 3, 0], [0] * 6, [0] * 6, defined)
    assert found.depths() == [0, 1, 1, 2, 2, 0]
