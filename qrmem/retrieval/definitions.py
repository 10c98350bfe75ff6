"""Identifiers in a question, and the fragments of source files that define them.

A fragment that defines a name contains it once, and fragments that use it contain it more often. So
a ranking by words alone puts the definition last. The index gives the fragments with the words;
their text shows which of them define the name.
"""

import re
from typing import TYPE_CHECKING

from qrmem.text.code.languages import CODE_KEY
from qrmem.text.words import STOP_WORDS, terms

if TYPE_CHECKING:
    from qrmem.retrieval.candidates import Neighbourhood
    from qrmem.retrieval.linking import Texts

MOST = 400
"""Maximum number of fragments with a name to inspect; a more frequent one is defined often."""

_WORD = re.compile(r"`?(?:[^\W\d]|\$)[\w$]*(?:(?:\.|::)[\w$]+)*!?(?:\(\)?|`)?")
_ODD = re.compile(r"[_$`(]|::|\w\.\w|[a-z\d][A-Z]|[^\W\d]\d")
"""Characters that ordinary words do not have."""
_TOLD = (
    re.compile(r"\b(?:function|method|class|struct|trait|interface|macro)\s+([^\W\d]\w*)"),
    re.compile(r"\b([^\W\d]\w*)\s+(?:function|method|class|defined|implemented|declared)\b"),
)
"""An ordinary word that the question marks as a name in code."""
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
"""Text before the name of a function in a language without a keyword for functions."""
_BODY = r"\s*\((?:[^;]*\{\s*$|(?:[^();]|\([^();]*\))*\)[^;{}()=]*\{)"
_HEAD = r"\s*\([^;]*[,)]\s*$"
_DECLARED = r"\s*\([^;{}=]*\)[^;{}()=]*;"
"""Parameters with a body; parameters to the end of the line; only parameters."""
_ASSIGNED = r"[\w$.\s]*?(?<![\w$])"
_FUNCTION = r"\s*(?::[^=()]*=|[:=])\s*(?:async\b\s*)?(?:function\b|[\w$]+\s*=>|\([^;]*=>)"
_PREFIXED = ("go", "rust")
"""Languages with a keyword before every function."""
_SCRIPTS = ("javascript", "typescript", "tsx")


def identifiers(question: str) -> list[str]:
    """Return the identifiers in a question, each once.

    A word is an identifier if it is written like no ordinary word (`read_bytes`, `readBytes`,
    `read()`, `store.read`: its last part), if the question says so ("the function read", "where is
    read defined"), or if it is the whole question.
    """
    alone = _SIMPLE.fullmatch(question.strip())
    if alone:
        return [alone.group()]
    odd = (match.group() for match in _WORD.finditer(question) if _ODD.search(match.group()))
    names = [re.split(r"\.|::", word.strip("`()!"))[-1] for word in odd]
    words_defined = (word for pattern in _TOLD for word in pattern.findall(question))
    names += [word for word in words_defined if word.lower() not in STOP_WORDS]
    return [name for name in dict.fromkeys(names) if name]


def defines(text: str, name: str, language: str) -> bool:
    """Return whether a line of source code defines a name."""
    lines = [line for line in text.splitlines() if name in line]
    ways = _ways(rf"{re.escape(name)}(?![\w$])", language)
    return any(re.match(way, line) for line in lines for way in ways)


def _ways(own: str, language: str) -> list[str]:
    """Return patterns for the beginnings of lines that define a name."""
    if language == "python":
        return [_PYTHON + own]
    ways = [_KEYWORD + own]
    if language not in _PREFIXED:
        ways += [f"{_TYPED}*{_NAMED}{own}{_BODY}", rf"\s*\}}\s*{own}\s*;"]
    if language in _SCRIPTS:
        ways.append(_ASSIGNED + own + _FUNCTION)
    elif language not in _PREFIXED:
        ways.append(f"{_TYPED}+{_NAMED}{own}{_HEAD}")
    # A method of an interface: no statement begins with a type before a call.
    if language == "java":
        ways.append(f"{_TYPED}+{own}{_DECLARED}")
    return ways


async def find(near: "Neighbourhood", question: str, texts: "Texts") -> dict[str, str]:
    """Return the ids of the fragments that define identifiers of the question, with the identifier.

    The fragments are added to the neighbourhood.
    """
    labels: dict[str, str] = {}
    for name in identifiers(question):
        groups = [[term] for term in dict.fromkeys(terms(name))]
        limit = MOST + 1
        only = near.question
        (ids,) = await near.store.matching_each(
            near.ns, [groups], limit, only.documents, among=only.segments
        )
        languages = {
            entry.id: str(entry.metadata[CODE_KEY])
            for entry in await near.store.entries(near.ns, ids)
            if entry.metadata.get(CODE_KEY)
        }
        if not languages or len(ids) > MOST:
            continue
        for segment, _ in (await texts.read(languages)).values():
            if defines(segment.text, name, languages[segment.id]):
                labels.setdefault(segment.id, name)
    await near.add(labels)
    return labels
