"""Outlines of source files, by tree-sitter grammars; they need the extra `code`.

Without it Python is read by its own parser: definitions, calls and imports are the same, and there
is no node for the body of a function or class.
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from qrmem.text.code import python_tree, syntax_tree
from qrmem.text.code.languages import GRAMMARS
from qrmem.text.code.outline import Outline

if TYPE_CHECKING:
    from tree_sitter import Language


def outline(text: str, language: str) -> Outline:
    """Return a file's outline; of a broken file, or without a grammar, the root alone.

    A grammar reads what it can around a mistake; Python's own parser takes no broken file. What C
    has not all of, as a header with classes, is tried as C++.
    """
    if language == "python" and not _is_installed(language):
        return python_tree.outline(text)
    if not has_grammar(language):
        return Outline(language, [-1], [0], [len(text)])
    found = syntax_tree.outline(text, language, _grammar(language), GRAMMARS[language])
    if language == "c" and found.is_broken and has_grammar("cpp"):
        return max(found, outline(text, "cpp"), key=_soundness)
    return found


def _soundness(found: Outline) -> tuple[bool, int]:
    return not found.is_broken, len(found.definitions)


def has_grammar(language: str) -> bool:
    """Whether a language can be parsed here; all but Python need the extra `code`."""
    return language == "python" or _is_installed(language)


def _is_installed(language: str) -> bool:
    wanted = GRAMMARS.get(language)
    return wanted is not None and all(find_spec(name) for name in ("tree_sitter", wanted.module))


@cache
def _grammar(language: str) -> "Language":
    from tree_sitter import Language

    wanted = GRAMMARS[language]
    return Language(getattr(import_module(wanted.module), wanted.function)())
