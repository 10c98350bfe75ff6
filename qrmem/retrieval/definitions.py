"""Identifiers in a question, and the fragments of source files that define them.

A fragment that defines a name says it once, those that use it more often: by words alone the
definition comes last. Which fragments have a name the graph knows; which of them define it their
text says.
"""

import re
from typing import TYPE_CHECKING

from qrmem.retrieval.spotting import plain
from qrmem.text.code.languages import CODE_KEY
from qrmem.text.words import STOP_WORDS

if TYPE_CHECKING:
    from qrmem.graphstore.protocol import GraphStore
    from qrmem.retrieval.columns import Columns
    from qrmem.retrieval.graph import Graph

MOST = 400
"""Fragments with a name beyond which none is looked into: everybody defines it."""

_WORD = re.compile(r"`?(?:[^\W\d]|\$)[\w$]*(?:(?:\.|::)[\w$]+)*!?(?:\(\)?|`)?")
_ODD = re.compile(r"[_$`(]|::|\w\.\w|[a-z\d][A-Z]|[^\W\d]\d")
"""What a word of plain language doesn't have."""
_TOLD = (
    re.compile(r"\b(?:function|method|class|struct|trait|interface|macro)\s+([^\W\d]\w*)"),
    re.compile(r"\b([^\W\d]\w*)\s+(?:function|method|class|defined|implemented|declared)\b"),
)
"""A plain word that the question says is a name of code."""
_SIMPLE = re.compile(r"[^\W\d]\w*|\$\w+")
_PYTHON = r"\s*(?:async\s+)?(?:def|class)\s+"
_KEYWORD = (
    r"[^\"'`=;]*?\b(?:(?:class|function\*?|fn|func|struct|enum|union|trait|interface|type|mod|record"
    r"|namespace|impl|macro_rules!|define|typedef)\s[^=;{]*?|(?:const|let|var)\s[^=;{(]*?)(?<![\w$])"
)
_TYPED = (
    r"\s*(?!(?:return|await|yield|throw|new|else|case|delete|goto|if|for|while|switch|assert)\b)"
    r"(?:[\w$][\w$<>,\[\]:]*[\s*&]+)"
)
_NAMED = r"[*&~#]*(?:\w+::)*"
"""What stands before the name of a function whose language has no word for one."""
_BODY = r"\s*\((?:[^;]*\{\s*$|(?:[^();]|\([^();]*\))*\)[^;{}()=]*\{)"
_HEAD = r"\s*\([^;]*[,)]\s*$"
_DECLARED = r"\s*\([^;{}=]*\)[^;{}()=]*;"
"""Its parameters, and what it does; these, to the line's end; these alone."""
_ASSIGNED = r"[\w$.\s]*?(?<![\w$])"
_FUNCTION = r"\s*(?::[^=()]*=|[:=])\s*(?:async\b\s*)?(?:function\b|[\w$]+\s*=>|\([^;]*=>)"
_PREFIXED = ("go", "rust")
"""Languages with a word before every function."""
_SCRIPTS = ("javascript", "typescript", "tsx")


def identifiers(question: str) -> list[str]:
    """Return the names of code that a question gives, each once.

    A word is one if it is written as no word of plain language is (`read_bytes`, `readBytes`,
    `read()`, `store.read`: its last part), if the question says so ("the function read", "where is
    read defined"), or if it is the whole question.
    """
    alone = _SIMPLE.fullmatch(question.strip())
    if alone:
        return [alone.group()]
    odd = (found.group() for found in _WORD.finditer(question) if _ODD.search(found.group()))
    names = [re.split(r"\.|::", word.strip("`()!"))[-1] for word in odd]
    told = (word for pattern in _TOLD for word in pattern.findall(question))
    names += [word for word in told if word.lower() not in STOP_WORDS]
    return [name for name in dict.fromkeys(names) if name]


def defines(text: str, name: str, language: str) -> bool:
    """Return whether a line of source code defines a name."""
    lines = [line for line in text.splitlines() if name in line]
    ways = _ways(rf"{re.escape(name)}(?![\w$])", language)
    return any(re.match(way, line) for line in lines for way in ways)


def _ways(own: str, language: str) -> list[str]:
    """Return how the beginning of a line may define a name."""
    if language == "python":
        return [_PYTHON + own]
    ways = [_KEYWORD + own]
    if language not in _PREFIXED:
        ways += [f"{_TYPED}*{_NAMED}{own}{_BODY}", rf"\s*\}}\s*{own}\s*;"]
    if language in _SCRIPTS:
        ways.append(_ASSIGNED + own + _FUNCTION)
    elif language not in _PREFIXED:
        ways.append(f"{_TYPED}+{_NAMED}{own}{_HEAD}")
    if language == "java":  # a method of an interface: no statement begins with a type and a call
        ways.append(f"{_TYPED}+{own}{_DECLARED}")
    return ways


async def find(
    store: "GraphStore", ns: str, columns: "Columns", graph: "Graph", question: str
) -> dict[int, str]:
    """Return the rows of the fragments that define what the question names, with the name."""
    found: dict[int, str] = {}
    for name in identifiers(question):
        languages = _mentioning(columns, graph, name)
        if len(languages) > MOST:
            continue
        ids = [columns.catalog.segment_ids[row] for row in languages]
        for segment in await store.segments(ns, ids) if ids else ():
            row = columns.row_of[segment.id]
            if defines(segment.text, name, languages[row]):
                found.setdefault(row, name)
    return found


def _mentioning(columns: "Columns", graph: "Graph", name: str) -> dict[int, str]:
    """Return the rows of source code that have a name, with their languages."""
    number = graph.table.number(plain(name))
    entities = graph.entities_of_name[number].tolist() if number >= 0 else []
    rows = {row for entity in entities for row in graph.mentioned[entity].tolist()}
    found: dict[int, str] = {}
    for row in sorted(rows):
        language = columns.documents[int(columns.document_of[row])].metadata.get(CODE_KEY)
        if language:
            found[row] = str(language)
    return found
