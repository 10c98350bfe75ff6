"""Source code as text: its language, its syntax tree in outline, what to pass over."""

from qrmem.text.code.outline import Definition, Outline
from qrmem.text.code.syntax_tree import has_grammar, outline

__all__ = ["Definition", "Outline", "has_grammar", "outline"]
