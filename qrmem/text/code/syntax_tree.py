"""The outline of a source file: chooses the parser, and reads trees of tree-sitter."""

import ast
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate
from typing import TYPE_CHECKING

from qrmem.text.code.languages import GRAMMARS, Grammar
from qrmem.text.code.outline import CallSite, Definition, Import, Outline

if TYPE_CHECKING:
    from tree_sitter import Language, Node


_DEEPEST = 400
_CLASSES = ("class", "struct", "union", "interface", "enum", "trait", "record", "type")
_ASSIGNED = {
    "variable_declarator": ("name", "value"),
    "assignment_expression": ("left", "right"),
    "pair": ("key", "value"),
    "field_definition": ("property", "value"),
    "public_field_definition": ("name", "value"),
}
"""Nodes that may give a function a name, with their fields."""
_NAMES = ("name", "property", "field", "attribute")
_BASES = ("object", "operand", "value", "argument", "path", "scope")


def by_grammar(text: str, name: str, language: "Language", grammar: Grammar) -> Outline:
    """Return the outline; with syntax errors, that of the sound parts, marked broken."""
    from tree_sitter import Parser

    data = text.encode("utf-8", "replace")
    tree = Parser(language).parse(data)
    result = Outline(name, [-1], [0], [len(text)], is_broken=tree.root_node.has_error)
    _GrammarReader(result, data, text.isascii(), grammar).read(tree.root_node)
    return result


class _GrammarReader:
    def __init__(self, found: Outline, data: bytes, is_ascii: bool, grammar: Grammar) -> None:
        self._found = found
        self._data = data
        self._characters = None if is_ascii else _characters(data)
        self._grammar = grammar
        self._made: dict[int, int] = {}

    def read(self, root: "Node") -> None:
        """Read the whole tree; uses an explicit stack, as code nests deeper than Python's limit."""
        above: tuple[Node, ...] = ()
        stack = [(child, 0, above, "", True) for child in reversed(root.named_children)]
        while stack:
            tree, node, above, owner, spans = stack.pop()
            inner, below, keeps = node, (*above, tree), False
            if spans:
                inner, below = self._kept(tree, node), ()
                keeps = tree.start_point[0] != tree.end_point[0]
            owner = self._note(tree, inner, below, owner)
            if len(below) < _DEEPEST:
                children = reversed(tree.named_children)
                stack += [(child, inner, below, owner, keeps) for child in children]

    def _with_all_above(self, node: int, above: "tuple[Node, ...]") -> int:
        """Keep the nodes from a kept node to the last of `above`; return the last one's number."""
        for tree in above:
            if tree.id not in self._made:
                self._made[tree.id] = self._kept(tree, node)
            node = self._made[tree.id]
        return node

    def _kept(self, tree: "Node", parent: int) -> int:
        self._found.parents.append(parent)
        self._found.starts.append(self._at(tree.start_byte))
        self._found.ends.append(self._at(tree.end_byte))
        return len(self._found.parents) - 1

    def _at(self, byte: int) -> int:
        return byte if self._characters is None else self._characters[byte]

    def _note(self, tree: "Node", node: int, above: "tuple[Node, ...]", owner: str) -> str:
        """Record a definition, call or import; return the class for the nodes below."""
        kind = tree.type
        if kind in self._grammar.definitions:
            return self._definition(tree, node, owner)
        if kind in self._grammar.calls:
            callee = tree.child_by_field_name(self._grammar.calls[kind])
            if callee is not None:
                name, base = self._callee(callee, tree)
                if name:
                    full_name = self._with_all_above(node, above)
                    self._found.calls.append(CallSite(full_name, name, base))
        elif kind in self._grammar.imports:
            is_python = self._found.language == "python"
            imports_found = self._python_imports(tree) if is_python else _imports(self._text(tree))
            self._found.imports.extend(imports_found)
        elif kind == "impl_item":
            target = tree.child_by_field_name("type")
            return self._text(target) if target is not None else owner
        return owner

    def _definition(self, tree: "Node", node: int, owner: str) -> str:
        if tree.type.endswith("_specifier") and tree.child_by_field_name("body") is None:
            return owner
        name = self._assigned_name(tree) if tree.type in _ASSIGNED else self._name(tree)
        if not name or name[0] in "({[\"'":
            return owner
        is_class = tree.type.removeprefix("abstract_").startswith(_CLASSES)
        own_name, _, last = (part.strip() for part in name.rpartition("::"))
        kind = "class" if is_class else "function"
        if node and tree.parent is not None and tree.parent.type == "decorated_definition":
            node = self._found.parents[node]  # decorators belong to their definition
        self._found.definitions.append(Definition(last, node, kind, own_name or owner))
        return last if is_class else ""

    def _python_imports(self, tree: "Node") -> Iterator[Import]:
        """Yield the names of `import a.b as c` or `from ..a import b as c`; `*` is one."""
        source = tree.child_by_field_name("module_name")
        module = self._text(source) if source is not None else ""
        path = module.lstrip(".")
        dots = module[: len(module) - len(path)]
        parts = tuple(part.strip() for part in (dots, *path.split(".")) if part)
        for name in tree.named_children[1 if source is not None else 0 :]:
            alias = name.child_by_field_name("alias")
            original = self._text(name.child_by_field_name("name") or name)
            local_name = self._text(alias) if alias is not None else original
            if source is None:
                yield Import(local_name, tuple(original.split(".")))
            elif name.type != "comment":
                yield Import(local_name, parts, original)

    def _assigned_name(self, tree: "Node") -> str:
        """Return the name to which a function is assigned; "" if it is not a function."""
        target, value = map(tree.child_by_field_name, _ASSIGNED[tree.type])
        if target is None or value is None or "function" not in value.type:
            return ""
        return self._text(target.child_by_field_name("property") or target)

    def _name(self, tree: "Node") -> str:
        name = tree.child_by_field_name("name")
        if name is not None:
            return self._text(name)
        inner = tree.child_by_field_name("declarator")
        while inner is not None and (below := _declared(inner)) is not None:
            inner = below
        return self._text(inner) if inner is not None else ""

    def _callee(self, called: "Node", tree: "Node") -> tuple[str, str]:
        base = tree.child_by_field_name("object")
        for field in _NAMES:
            name = called.child_by_field_name(field)
            if name is not None:
                before = next(filter(None, map(called.child_by_field_name, _BASES)), None)
                return self._text(name), self._base(before)
        text = self._text(called)
        if not text.replace("_", "a").isalnum():
            return "", ""
        return text, self._base(base)

    def _base(self, tree: "Node | None") -> str:
        """Return the text before the dot; `?` for a computed value."""
        text = self._text(tree)[:100] if tree is not None else ""
        return "?" if any(mark in text for mark in "([{\"'") else text

    def _text(self, tree: "Node") -> str:
        return self._data[tree.start_byte : tree.end_byte].decode("utf-8", "replace")


def _declared(tree: "Node") -> "Node | None":
    """Return the inner part of a declarator of C; that of a reference has no field for it."""
    if tree.type == "reference_declarator":
        return tree.named_children[-1]
    return tree.child_by_field_name("declarator")


def _characters(data: bytes) -> list[int]:
    """Return the character index of every byte."""
    offsets, count = [], -1
    for byte in data:
        count += byte & 0xC0 != 0x80
        offsets.append(count)
    return [*offsets, count + 1]


def _imports(text: str) -> Iterator[Import]:
    """Yield the names of an import of any of the languages.

    `import {a, b as c} from "./m"`, `import x.y.Z;`, `"path/of/package"`, `use a::b::{C, d};`
    """
    source = _quoted(text)
    if source:
        module = _parts(source)
        before = text.split(" from ")[0] if " from " in text else ""
        names = before.removeprefix("import").replace("type ", " ").replace("{", ",")
        for word in names.replace("}", ",").split(","):
            original, _, alias = word.strip().partition(" as ")
            if original.strip("* ") or alias:
                whole = original.strip() == "*"
                yield Import((alias or original).strip(), module, "" if whole else original.strip())
        if not before:
            alias = text.split('"')[0].strip()
            yield Import(alias or module[-1], module)
        return
    path = text.removeprefix("pub ").removeprefix("import").removeprefix("use").strip(" ;")
    head, brace, inner = path.removeprefix("static ").replace("::", ".").partition("{")
    for word in inner.rstrip("} ").split(",") if brace else [""]:
        parts = [part.strip() for part in f"{head}{word.strip()}".split(".") if part.strip()]
        if parts:
            last, _, alias = parts[-1].partition(" as ")
            yield Import(alias or last, tuple(parts[:-1]) or (last,), last)


def _quoted(text: str) -> str:
    for mark in "\"'`":
        parts = text.split(mark)
        if len(parts) >= 3:
            return parts[-2]
    return ""


def _parts(source: str) -> tuple[str, ...]:
    parts = [part for part in source.split("/") if part]
    dots = sum(1 for part in parts if part == "..") + (1 if parts[:1] in (["."], [".."]) else 0)
    named_parts = [part for part in parts if part not in (".", "..")]
    if named_parts and "." in named_parts[-1] and dots:
        named_parts[-1] = named_parts[-1].rsplit(".", 1)[0]
    return (*(("." * dots,) if dots else ()), *named_parts) or (source,)


# Outlines of source files, by tree-sitter grammars; they need the extra `code`.
#
# Without it Python is read by its own parser: definitions, calls and imports are the same, and
# there is no node for the body of a function or class.


def outline(text: str, language: str) -> Outline:
    """Return a file's outline; for a broken file, or without a grammar, only the root.

    A grammar reads what it can around a mistake; Python's own parser refuses a broken file. A file
    that is not valid C, such as a header with classes, is tried as C++.
    """
    if language == "python" and not _is_installed(language):
        return python_outline(text)
    if not has_grammar(language):
        return Outline(language, [-1], [0], [len(text)])
    result = by_grammar(text, language, _grammar(language), GRAMMARS[language])
    if language == "c" and result.is_broken and has_grammar("cpp"):
        return max(result, outline(text, "cpp"), key=_soundness)
    return result


def _soundness(found: Outline) -> tuple[bool, int]:
    return not found.is_broken, len(found.definitions)


def has_grammar(language: str) -> bool:
    """Whether a language can be parsed here; all except Python need the extra `code`."""
    return language == "python" or _is_installed(language)


def _is_installed(language: str) -> bool:
    grammar = GRAMMARS.get(language)
    return grammar is not None and all(find_spec(name) for name in ("tree_sitter", grammar.module))


@cache
def _grammar(language: str) -> "Language":
    from tree_sitter import Language

    grammar = GRAMMARS[language]
    return Language(getattr(import_module(grammar.module), grammar.function)())


# The outline of a Python file by Python's own parser, if no grammar is installed.


_DEEPEST_EXPRESSION = 200
"""Maximum depth: expressions of generated code may nest deeper than Python's stack."""
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NAMING = (*_DEFINES, ast.Import, ast.ImportFrom)
_PLAIN = (ast.Name, ast.Constant)
"""Nodes without parts."""
_Above = tuple[ast.AST, ...]


def python_outline(text: str) -> Outline:
    """Return the outline; for a file that Python cannot parse, only the root, marked broken."""
    result = Outline("python", [-1], [0], [len(text)])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        _PythonReader(result, text).read(tree, node=0, above=(), owner="", spans=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Outline("python", [-1], [0], [len(text)], is_broken=True)
    return result


class _PythonReader:
    def __init__(self, found: Outline, text: str) -> None:
        self._found = found
        lines = text.split("\n")
        self._lines = list(accumulate((len(line) + 1 for line in lines), initial=0))
        self._texts = lines
        self._made: dict[int, int] = {}

    def read(self, tree: ast.AST, *, node: int, above: _Above, owner: str, spans: bool) -> None:
        """Read the nodes below a node.

        Args:
            node: the nearest kept node; `above` has the nodes between, including `tree`.
            spans: whether `tree` is kept and spans lines, so that its children are kept too.
        """
        if len(above) > _DEEPEST_EXPRESSION:
            return
        for child in ast.iter_child_nodes(tree):
            self._child(child, node=node, above=above, owner=owner, spans=spans)

    def _child(self, tree: ast.AST, *, node: int, above: _Above, owner: str, spans: bool) -> None:
        span = self._span(tree) if spans else None
        inner, below = node, (*above, tree)
        keeps = False
        if span is not None:
            inner, below = self._kept(span, node), ()
            keeps = _spans_lines(tree)
        elif spans and not hasattr(tree, "lineno"):
            # Arguments and similar nodes have no own position: their parts are the parent's.
            inner, below, keeps = node, above, True
        if isinstance(tree, ast.Call):
            self._call(tree, self._with_all_above(inner, below))
        elif isinstance(tree, _NAMING):
            self._note(tree, inner, owner, is_kept=not below)
        elif isinstance(tree, _PLAIN):
            return
        owns = tree.name if isinstance(tree, ast.ClassDef) else owner
        if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef):
            owns = ""
        self.read(tree, node=inner, above=below, owner=owns, spans=keeps)

    def _with_all_above(self, node: int, above: _Above) -> int:
        """Keep the nodes from a kept node to the last of `above`; return the last one's number."""
        for tree in above:
            span = self._span(tree)
            if id(tree) in self._made:
                node = self._made[id(tree)]
            elif span is not None:
                node = self._made[id(tree)] = self._kept(span, node)
        return node

    def _kept(self, span: tuple[int, int], parent: int) -> int:
        self._found.parents.append(parent)
        self._found.starts.append(span[0])
        self._found.ends.append(span[1])
        return len(self._found.parents) - 1

    def _span(self, tree: ast.AST) -> tuple[int, int] | None:
        if not isinstance(tree, ast.stmt | ast.expr | ast.excepthandler | ast.arg | ast.keyword):
            return None
        start = self._offset(tree.lineno, tree.col_offset)
        if isinstance(tree, _DEFINES) and tree.decorator_list:
            first = tree.decorator_list[0]
            start = max(0, self._offset(first.lineno, first.col_offset) - 1)
        assert tree.end_lineno is not None
        assert tree.end_col_offset is not None
        return start, self._offset(tree.end_lineno, tree.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        """Return the character at a position that the parser gives in bytes of UTF-8."""
        text = self._texts[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode(errors="ignore"))
        return self._lines[line - 1] + column

    def _call(self, tree: ast.Call, node: int) -> None:
        if isinstance(tree.func, ast.Name):
            self._found.calls.append(CallSite(node, tree.func.id))
        elif isinstance(tree.func, ast.Attribute):
            self._found.calls.append(CallSite(node, tree.func.attr, _dotted(tree.func.value)))

    def _note(self, tree: ast.AST, node: int, owner: str, *, is_kept: bool) -> None:
        outline_found = self._found
        if isinstance(tree, _DEFINES) and is_kept:
            kind = "class" if isinstance(tree, ast.ClassDef) else "function"
            outline_found.definitions.append(Definition(tree.name, node, kind, owner))
        elif isinstance(tree, ast.Import):
            for name in tree.names:
                module = tuple(name.name.split("."))
                outline_found.imports.append(Import(name.asname or name.name, module))
        elif isinstance(tree, ast.ImportFrom):
            dots = ("." * tree.level,) if tree.level else ()
            module = (*dots, *(tree.module.split(".") if tree.module else ()))
            for name in tree.names:
                outline_found.imports.append(Import(name.asname or name.name, module, name.name))


def _spans_lines(tree: ast.AST) -> bool:
    lines = getattr(tree, "lineno", 0), getattr(tree, "end_lineno", 0)
    if isinstance(tree, _DEFINES) and tree.decorator_list:
        return True
    return lines[0] != lines[1]


def _dotted(tree: ast.AST) -> str:
    """Return `a.b` for a base of names only, else `?` for a computed value."""
    if isinstance(tree, ast.Name):
        return tree.id
    if isinstance(tree, ast.Attribute):
        base = _dotted(tree.value)
        return "?" if base == "?" else f"{base}.{tree.attr}"
    return "?"
