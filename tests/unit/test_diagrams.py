"""The diagrams and the functions in the documents are those of the code."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tools.diagrams import page

ROOT = Path(__file__).parents[2]


def test_the_page_of_diagrams_is_what_the_command_prints() -> None:
    assert (ROOT / "docs" / "diagrams.md").read_text() == page()


def test_the_functions_that_the_page_of_the_architecture_names_exist() -> None:
    text = " ".join((ROOT / "docs" / "architecture.md").read_text().split())
    named = re.findall(r"`([\w/]+\.py): ([\w.]+)`", text)
    assert len(named) > 30
    assert [(file, name) for file, name in named if name not in defined(file)] == []


def defined(file: str) -> set[str]:
    """Return the functions and classes of a file, those inside of others included."""
    path = next(path for path in (ROOT / "qrmem" / file, ROOT / file) if path.exists())
    return set(_names(ast.parse(path.read_text()), ""))


def _names(node: ast.AST, prefix: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield prefix + child.name
            yield from _names(child, f"{prefix}{child.name}.")
