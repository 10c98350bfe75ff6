"""Servers that answer well and badly: a plan must hold for all of them.

All their replies can be read. `well` is `servers.answering`, which also walks trees, ends pages and
looks them up. `nothing` knows nothing: no name, no answer, no choice. `everything` answers no
question either, but notes and asks for as much as it may, and leaves labels out.
"""

import json
import re
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

from servers import answering

Json = Any
_PART = re.compile(r"<text part (\d+)>")
_PAGE = re.compile(r"<text page (\d+)>")
_MARK = re.compile(r"⟨(\d+)⟩")


def well(request: Mapping[str, Json]) -> str:
    """Answer, with the part that shares most words with the question, and a page of it."""
    return _with(request, answering.answer(request), _well)


def nothing(request: Mapping[str, Json]) -> str:
    """Know nothing, in few words."""
    return _with(request, "(Summary): Something.\n(Surprise): None", _nothing)


def everything(request: Mapping[str, Json]) -> str:
    """Know no answer, and all the rest at length."""
    return _with(request, " ".join(_longest(request).split()[:150]), _everything)


SERVERS: Mapping[str, Callable[[Mapping[str, Json]], str]] = {
    "well": well,
    "nothing": nothing,
    "everything": everything,
}


def _with(
    request: Mapping[str, Json], words: str, of: Callable[[str, Json, Mapping[str, Json]], Json]
) -> str:
    """Return a reply of the fields that are wanted, or in words where a prompt wants none."""
    said = _said(request)
    if "Action: -1 or -2" in said and of is not _well:
        return "Reasoning: nothing here settles it.\nAction: -1"
    wanted = answering.schema_of(request).get("properties", {})
    if not wanted:
        return words
    known = json.loads(answering.answer(request))
    return json.dumps({name: of(name, known[name], request) for name in wanted})


def _well(name: str, known: Json, request: Mapping[str, Json]) -> Json:
    said = _said(request)
    chosen: Mapping[str, Callable[[], Json]] = {
        "part": lambda: _nearest(request) if _PART.search(said) else -1,
        "label": lambda: len(_MARK.findall(said)) // 2,
        "pages": lambda: [int(n) for n in _PAGE.findall(said)][:2],
    }
    return chosen[name]() if name in chosen else known


def _nearest(request: Mapping[str, Json]) -> int:
    """Return the part whose summary shares most words with the question."""
    said = _said(request)
    question = set(re.findall(r"\w{4,}", said.rpartition("Question:")[2].lower()))
    texts = {m[2].strip(): m[3] for m in answering.TEXT.finditer(said)}
    shared = {
        int(label.split()[-1]): len(question & set(re.findall(r"\w{4,}", text.lower())))
        for label, text in texts.items()
        if label.startswith("part")
    }
    return max(shared, key=lambda n: (shared[n], -n))


def _nothing(name: str, known: Json, request: Mapping[str, Json]) -> Json:
    fixed = {"action": -1, "part": -1, "label": 0}
    if name == "passages":
        return [{key: [] if key != "n" else one[key] for key in one} for one in known]
    return fixed.get(name, [] if isinstance(known, list) else "unknown" if known else known)


def _everything(name: str, known: Json, request: Mapping[str, Json]) -> Json:
    text, said = _longest(request), _said(request)
    names = answering.names(text)
    asked = "1|" if "number|name" in said else ""
    fixed = {
        "action": -1,
        "part": 0,
        "label": 0,
        "pages": [int(n) for n in _PAGE.findall(said)][::-1],
        "summary": " ".join(text.split()[:150]),
        "reasoning": " ".join(text.split()[:40]),
    }
    if name == "relations":
        return [f"{asked}{a}|knew of|{b}" for a, b in list(combinations(names, 2))[:12]]
    if name == "questions":
        return known + [f"What became of {one} after that day?" for one in names[:4]]
    return fixed.get(name, known)


def _longest(request: Mapping[str, Json]) -> str:
    said = _said(request)
    return max((m[3] for m in answering.TEXT.finditer(said)), key=len, default=said)


def _said(request: Mapping[str, Json]) -> str:
    return "\n".join(str(message["content"]) for message in request["messages"])
