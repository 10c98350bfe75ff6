"""Answers any of qrmem's prompts from the request alone: by its schema and the texts in it.

Everything depends on the content of one request, so that order and concurrency change nothing.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

Json = Any
TEXT = re.compile(r"<(text[0-9]*)([^>]*)>\n(.*?)\n</\1>", re.DOTALL)
_SENTENCE = re.compile(r"[^.!?]+[.!?]?[\"'”’]*")
_NAME = re.compile(r"\b[A-Z][\w’']*(?:\s+(?:of\s+|the\s+)?[A-Z][\w’']*)*")
_EXAMPLE = re.compile(r"Reply with JSON only: (\{.*?\})$", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r"(<text[^>]*>\n)Title: [^\n]*\n")
_OPTION = re.compile(r"^\s*\(?([A-Z])[.):]\s+(.*)$", re.MULTILINE)
_COUNT = re.compile(r"Questions wanted: (\d+)")
_LISTED = re.compile(r"^\s*(?:[-*]\s+)?(.+?)\s*[(|:]\s*(\d+)[^\n]*$", re.MULTILINE)
COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by did do does for from had has have he her him his how i in "
        "is it its of on or she that the their them they this to was were what when where which "
        "who whom "
        "whose why will with you not no one all than then there so if into my me we us our",
    )
)


def answer(request: Mapping[str, Json]) -> str:
    """Return the reply to a chat request as JSON text, or as plain text where no form is asked."""
    properties = schema_of(request).get("properties", {})
    system, user = _messages(request)
    view = _View(system or user, user)
    if not properties:
        return _in_words(view, system, user)
    return json.dumps({n: view.field(n, s) for n, s in properties.items()}, ensure_ascii=False)


def _in_words(view: "_View", system: str, user: str) -> str:
    """Return a reply in the form that the papers' prompts describe."""
    text = {"type": "string"}
    reason, said = (view.field(name, text) for name in ("reasoning", "answer"))
    if "(Surprise):" in system:
        return f"(Summary): {_summary(view.longest())}\n(Surprise): None"
    if "[[50]]" in user:
        return f"{reason} Rating: [[{view.field('rating', text)}]]"
    if "Action: -1 or -2" in user:
        action = view.field("action", text)
        answer = f"\nAnswer: {said}" if action == -2 else ""
        return f"Reasoning: {reason}\nAction: {action}{answer}"
    if "Answer: the final answer" in user:
        return f"Reasoning: {reason}\nAnswer: {said}"
    return str(said) if user.rstrip().endswith("Answer:") else _summary(view.longest())


def schema_of(request: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the schema that a request sends, or one made from the example in its prompt."""
    form = request.get("response_format") or {}
    sent = (form.get("json_schema") or form).get("schema")
    if sent:
        return dict(sent)
    match = _EXAMPLE.search("\n".join(_messages(request)))
    if match is None:
        return {}
    example = json.loads(match.group(1))
    return {"type": "object", "properties": {k: _schema_from(v) for k, v in example.items()}}


def _schema_from(value: Json) -> dict[str, Json]:
    if isinstance(value, list):
        return {"type": "array", "items": _schema_from(value[0]) if value else {}}
    if isinstance(value, dict):
        return {"type": "object", "properties": {k: _schema_from(v) for k, v in value.items()}}
    kinds: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number"}
    return {"type": kinds.get(type(value), "string")}


def _messages(request: Mapping[str, Json]) -> tuple[str, str]:
    messages = request.get("messages") or []
    system = "\n".join(str(m.get("content")) for m in messages if m.get("role") == "system")
    users = [str(m.get("content")) for m in messages if m.get("role") == "user"]
    # A re-ask adds a turn that shows the error; the task stands in the first one.
    return system, users[0] if users else ""


class _View:
    """What can be seen in one prompt."""

    def __init__(self, system: str, user: str) -> None:
        self._system = system
        self._user = user
        self._texts = [(m.group(2).strip(), m.group(3)) for m in TEXT.finditer(user)]
        self._outside = TEXT.sub("", user)

    def field(self, name: str, schema: Mapping[str, Json]) -> Json:
        """Return a value for one field of the reply."""
        if name == "passages":
            return [self._numbered(n, schema["items"]) for n in self._numbers()]
        if name == "notes":
            return [1]
        known: Mapping[str, Callable[[], Json]] = {
            "entities": self._entities,
            "relations": self._relations,
            "questions": self._questions,
            "summary": lambda: _summary(self.longest()),
            "description": self._description,
            "query": lambda: " ".join([self._question(), *names(self._outside)[:3]]),
            "reasoning": lambda: f"The passages were compared with: {self._question()}",
            "reason": lambda: f"The passages were compared with: {self._question()}",
            "action": lambda: -2 if self._support()[0] >= 0.5 else -1,
            "answer": self._answer,
            "quotes": self._quotes,
            "memos": lambda: [f"1-4|{' '.join(self._texts[0][1].split()[1:6])}|as it was said"],
            "rating": lambda: 1 + len(_content(self.longest())) % 10,
        }
        if name in known and self._may_fill(schema):
            return known[name]()
        return filler(schema)

    def _may_fill(self, schema: Mapping[str, Json]) -> bool:
        return bool((schema.get("items") or {}).get("type", "string") == "string")

    # --- reading several passages ----------------------------------------------------------------

    def _numbers(self) -> list[int]:
        return [int(label) for label, _ in self._texts if label.isdigit()]

    def _numbered(self, n: int, schema: Mapping[str, Json]) -> dict[str, Json]:
        """Return the notes of one passage, as if it had been shown alone."""
        starts = [m.start() for m in TEXT.finditer(self._user) if m.group(2).strip().isdigit()]
        at = self._numbers().index(n)
        end = starts[at + 1] if at + 1 < len(starts) else len(self._user)
        alone = _View(self._system, _TITLE.sub(r"\1", self._user[starts[at] : end]))
        fields = schema["properties"].items()
        return {name: n if name == "n" else alone.field(name, inner) for name, inner in fields}

    # --- reading a passage -----------------------------------------------------------------------

    def _passage(self) -> str:
        """Return the passage that is read, without the marks that a prompt puts around names."""
        if not self._texts:
            return ""
        starts = [self._user[: m.start()].rstrip() for m in TEXT.finditer(self._user)]
        named = [n for n, before in enumerate(starts) if before.endswith("Passage:")]
        alone = [n for n, before in enumerate(starts) if not before]
        _, text = self._texts[(named or alone or [-1])[0]]
        return text.replace("[[", "").replace("]]", "")

    def longest(self) -> str:
        """Return the longest text between marks, else all of the prompt."""
        return max((text for _, text in self._texts), key=len, default=self._user)

    def _entities(self) -> list[str]:
        if "number of passages" in self._system:
            return self._candidates()
        if not self._reads():
            return names(self._question())
        found = names(self._passage())
        if "number|name" in self._system:
            return [f"1|{name}|THING" for name in found[-1:]]
        if '"name|TYPE' in self._system:
            return [f"{name}|{_type(name)}" for name in found]
        return found

    def _reads(self) -> bool:
        return "passage" in self._system.lower() and bool(self._texts)

    def _relations(self) -> list[str]:
        found: dict[str, None] = {}
        for sentence in sentences(self._passage()):
            inside = names(sentence)
            for head, tail in pairwise(inside):
                said = " ".join(sentence.replace("|", " ").split())[:200]
                found.setdefault(f"{head}|{said}|{tail}")
        if "number|name" in self._system:
            return [f"1|{line}" for line in list(found)[-1:]]
        return list(found)

    def _questions(self) -> list[str]:
        match = _COUNT.search(self._user)
        wanted = int(match.group(1)) if match else 2
        asked: list[str] = []
        for sentence in sentences(self._passage()):
            inside = names(sentence)
            told = [w for w in re.findall(r"\w+", sentence) if w.lower() not in COMMON][-5:]
            if inside and len(told) > 2:
                asked.append(f"What is told of {inside[0]} with {' '.join(told)}?")
        return asked[:wanted]

    def _description(self) -> str:
        lines = [line.strip() for line in self.longest().splitlines() if line.strip()]
        return " ".join(dict.fromkeys(lines))[:300] or "related"

    # --- answering -------------------------------------------------------------------------------

    def _question(self) -> str:
        lines = [line.strip() for line in self._outside.splitlines() if line.strip().endswith("?")]
        texts = [text for _, text in self._texts if text.strip().endswith("?")]
        return (texts or lines or [self._outside.strip()])[-1]

    def _candidates(self) -> list[str]:
        listed = [m.group(1) for m in _LISTED.finditer(self._outside + self._passage())]
        words = _content(self._question())
        best = sorted(listed, key=lambda name: -len(words & _content(name)))
        return best[:3]

    def _support(self) -> tuple[float, str, str]:
        """Return how well the best sentence covers the question, its label and the sentence."""
        words = _content(self._question())
        best = (0.0, "", "")
        for label, text in self._texts:
            for sentence in sentences(text):
                if sentence.strip() == self._question():
                    continue
                share = len(words & _content(sentence)) / max(1, len(words))
                if share > best[0]:
                    best = (share, label, sentence.strip())
        return best

    def _answer(self) -> str:
        share, _, sentence = self._support()
        options = _OPTION.findall(self._user)
        if options:
            words = _content(sentence)
            return str(max(options, key=lambda o: len(words & _content(o[1])))[0])
        if share < 0.5 and "must answer" not in self._system:
            return ""
        return sentence or "unknown"

    def _quotes(self) -> list[str]:
        _, label, sentence = self._support()
        return [f"{label}|{sentence}"] if label and sentence else []


def names(text: str) -> list[str]:
    """Return capitalised spans in order, each once, without words that begin a sentence."""
    found: dict[str, None] = {}
    for match in _NAME.finditer(text):
        name = " ".join(match.group().split())
        first, _, rest = name.partition(" ")
        if first.lower() in COMMON:
            name = rest
        if len(name) > 1 and name.lower() not in COMMON and name in text:
            found.setdefault(name.removesuffix("'s").removesuffix("’s"))
    return list(found)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, roughly."""
    return [m.group().strip() for m in _SENTENCE.finditer(text) if len(m.group().strip()) > 3]


def _content(text: str) -> set[str]:
    return {w for w in re.findall(r"\w+", text.lower()) if w not in COMMON}


def _type(name: str) -> str:
    return "PERSON" if " " in name and " of " not in name else "THING"


def _summary(text: str) -> str:
    return " ".join(text.split()[:100]) or "nothing"


def filler(schema: Mapping[str, Json]) -> Json:
    """Return the plainest value that a schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return filler(schema["anyOf"][0])
    kind = schema.get("type")
    if kind == "object":
        return {name: filler(inner) for name, inner in schema.get("properties", {}).items()}
    plain: Mapping[Json, Json] = {"array": [], "integer": 0, "number": 0, "boolean": False}
    return plain.get(kind, None if kind == "null" else "text")


def words(texts: Sequence[str]) -> int:
    """Count tokens as this server does: words and marks."""
    return sum(len(re.findall(r"\w+|[^\w\s]", text)) for text in texts)
