"""Source code as text: its language, the outline of its syntax tree, and files to skip."""

from qrmem.text.code.outline import Definition, Outline
from qrmem.text.code.syntax_tree import has_grammar, outline

__all__ = ["Definition", "Outline", "has_grammar", "outline"]
