"""A chat model's replies of a realistic size, with no model: made from the passages themselves.

Entities and relations are those that GPT-3.5 once found in a passage, where the data hold them,
else the local reasoner's; questions and what they add are always the local reasoner's. That one
describes a relation by a whole sentence; as a model is asked to be brief, what stands between the
two names is taken. So a reply has the tokens that a real one would have, give or take; what
it is worth to a memory is not measured.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servers import answering

from qrmem.answering.local import LocalReasoner
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import Reading, Segment, Statement

Json = Any
_MARKED = re.compile(r"\[\[(.*?)\]\]")
LONGEST = 12
"""Words of a description; 99 in 100 of GPT-3.5's on MuSiQue have at most 6."""
_WANTED = re.compile(r"Questions wanted: (\d+)")


@dataclass(frozen=True, slots=True)
class Found:
    """What a model once found in a passage: names, and (head, relation, tail)."""

    names: Sequence[str]
    triples: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Notes:
    """What a model would reply about one passage, item by item."""

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    questions: tuple[str, ...]
    more_entities: tuple[str, ...]
    more_relations: tuple[str, ...]


async def noted(segment: Segment, found: Found | None) -> Notes:
    """Return a passage's notes."""
    reasoner = LocalReasoner(BuiltinTokenizer())
    known = await reasoner.extract(segment, Reading())
    more = await reasoner.supplement(segment, Reading(), known, known.questions)
    if found is None:
        entities = [f"{m.name}|{m.type or 'THING'}" for m in known.mentions]
        relations = [_brief(statement) for statement in known.statements]
    else:
        entities = [f"{name}|PERSON" for name in found.names]
        relations = ["|".join(map(str, triple)) for triple in found.triples]
    return Notes(
        entities=tuple(entities),
        relations=tuple(relations),
        questions=known.questions,
        more_entities=tuple(f"1|{m.name}|{m.type or 'THING'}" for m in more.mentions),
        more_relations=tuple(f"1|{_brief(statement)}" for statement in more.statements),
    )


def _brief(statement: Statement) -> str:
    text, head, tail = statement.description, statement.head, statement.tail
    start, end = text.find(head), text.rfind(tail)
    between = text[start + len(head) : end] if 0 <= start < end else text
    said = " ".join(between.split()[:LONGEST]).strip(" ,;:.")
    return f"{head}|{said or 'and'}|{tail}"


class Replies:
    """Answers requests about known passages by their notes, others as the test server does."""

    def __init__(self, notes: Mapping[str, Notes]) -> None:
        self._notes = {_key(text): found for text, found in notes.items()}

    def __call__(self, request: Mapping[str, Json]) -> str:
        """Return the reply to a request."""
        schema = answering.schema_of(request).get("properties", {})
        system, user = (str(message["content"]) for message in request["messages"][:2])
        is_again = "number|name" in system
        texts = list(texts_of(user))
        if "passages" in schema:
            fields = schema["passages"]["items"]["properties"]
            numbered = [(label, text) for label, text in texts if label.isdigit()]
            made = [
                {"n": int(label), **self._fields(fields, text, user, is_again)}
                for label, text in numbered
            ]
            return json.dumps({"passages": made}, ensure_ascii=False)
        read = next((text for _, text in texts if _key(text) in self._notes), "")
        if read and schema.keys() <= {"entities", "relations", "questions"}:
            fields = self._fields(schema, read, user, is_again)
            return json.dumps(fields, ensure_ascii=False)
        return answering.answer(request)

    def knows(self, text: str) -> bool:
        """Whether a text is one of the passages."""
        return _key(text) in self._notes

    def _fields(
        self, fields: Iterable[str], text: str, user: str, is_again: bool
    ) -> dict[str, Sequence[str]]:
        notes = self._notes[_key(text)]
        wanted = _WANTED.search(user, user.find(text))
        known: Mapping[str, Sequence[str]] = {
            "entities": notes.more_entities if is_again else notes.entities,
            "relations": notes.more_relations if is_again else notes.relations,
            "questions": notes.questions[: int(wanted.group(1)) if wanted else 1],
        }
        return {name: known[name] for name in fields if name in known}


def texts_of(user: str) -> Iterable[tuple[str, str]]:
    """Yield the fenced texts of a prompt with their labels."""
    for match in answering.TEXT.finditer(user):
        yield match.group(2).strip(), match.group(3)


def _key(text: str) -> str:
    """Return a passage's text without its title line and the marks around its entities."""
    title, _, rest = text.partition("\n")
    body = rest if title.startswith("Title: ") else text
    return " ".join(_MARKED.sub(r"\1", body).split())
