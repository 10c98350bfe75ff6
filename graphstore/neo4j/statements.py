"""Cypher by name: files in `cypher/`, several statements in each, all of it constant text.

A statement starts with a line `// :: name` and is asked for as `file.name`.
"""

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^// :: (.+)$", re.MULTILINE)


@cache
def statement(name: str) -> str:
    """Return the text of a statement, e.g. `documents.put`.

    Raises:
        KeyError: there is none of that name.
    """
    file, _, part = name.partition(".")
    return statements(file)[part]


@cache
def statements(file: str) -> dict[str, str]:
    """Return all statements of a file, by name, in its order."""
    source = files("qrmem.graphstore.neo4j") / "cypher" / f"{file}.cypher"
    pieces = _NAME.split(source.read_text(encoding="utf-8"))
    return dict(zip(pieces[1::2], (text.strip() for text in pieces[2::2]), strict=True))
