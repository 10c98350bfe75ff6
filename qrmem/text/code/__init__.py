"""Source code as text: its language, its syntax tree in outline, what to pass over."""

from qrmem.text.code.languages import SUFFIXES, language_of
from qrmem.text.code.outline import Call, Definition, Import, Outline
from qrmem.text.code.parsing import has_grammar, outline

__all__ = [
    "SUFFIXES",
    "Call",
    "Definition",
    "Import",
    "Outline",
    "has_grammar",
    "language_of",
    "outline",
]
