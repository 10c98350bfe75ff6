"""The outline of a Python file by Python's own parser, if no grammar is installed."""

import ast
import warnings
from itertools import accumulate

from qrmem.text.code.outline import Call, Definition, Import, Outline

_DEEPEST = 200
"""Maximum depth: expressions of generated code may nest deeper than Python's stack."""
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NAMING = (*_DEFINES, ast.Import, ast.ImportFrom)
_PLAIN = (ast.Name, ast.Constant)
"""Nodes without parts."""
_Above = tuple[ast.AST, ...]


def outline(text: str) -> Outline:
    """Return the outline; for a file that Python cannot parse, only the root, marked broken."""
    result = Outline("python", [-1], [0], [len(text)])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        _Reader(result, text).read(tree, node=0, above=(), owner="", spans=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Outline("python", [-1], [0], [len(text)], is_broken=True)
    return result


class _Reader:
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
        if len(above) > _DEEPEST:
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
            self._found.calls.append(Call(node, tree.func.id))
        elif isinstance(tree.func, ast.Attribute):
            self._found.calls.append(Call(node, tree.func.attr, _dotted(tree.func.value)))

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
