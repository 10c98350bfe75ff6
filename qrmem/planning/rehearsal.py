"""A rehearsal: the real algorithms and prompts, with local rules in the place of the chat model.

So a plan counts the very requests that a run would send, whatever the mode, the strategy or the
prompts; only the replies are guesses, and they are made of what the local reasoner finds.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from qrmem.answering.local import LocalReasoner
from qrmem.answering.prompted import PromptedReasoner
from qrmem.types import (
    AskContext,
    ChatReply,
    ChatRequest,
    Contribution,
    Fact,
    Job,
    Mention,
    Passage,
    Reading,
    Segment,
    Statement,
    Verdict,
)

Course = Literal["likely", "shortest", "longest"]
"""How a question goes: as the local reasoner judges, answered at once, or never."""

SUMMARY = 600
"""Characters of a summary; the prompts allow 150 or 200 words."""
DESCRIPTION = 100
"""Characters of a relation's description; the prompts want it brief."""

FEW = 3
"""Names that a search goes on with."""

_saying: ContextVar[Mapping[str, Any]] = ContextVar("saying")


@contextmanager
def _replying(**fields: Any) -> Iterator[None]:
    """Let the stand-in say these fields while a prompt is sent in this task."""
    token = _saying.set(fields)
    try:
        yield
    finally:
        _saying.reset(token)


class StandIn:
    """A chat model that says what it was told to say, in the fields that the schema wants."""

    def __init__(self, name: str, longest: dict[str, int]) -> None:
        """Stand for a model.

        Args:
            longest: takes the tokens that a reply of each stage may have.
        """
        self._name = name
        self._longest = longest

    @property
    def name(self) -> str:
        """Name of the model that it stands for."""
        return self._name

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return a reply of about the size that is to be expected."""
        longest = self._longest.get(request.stage, 0)
        self._longest[request.stage] = max(longest, request.max_tokens)
        wanted = (request.schema or {}).get("properties", {})
        fields = _saying.get({})
        said = {name: fields.get(name, _empty(node)) for name, node in wanted.items()}
        return ChatReply(json.dumps(said, ensure_ascii=False))


def _empty(node: Mapping[str, Any]) -> Any:
    return {"array": [], "integer": -1}.get(str(node.get("type")), "")


class Rehearsing:
    """A `Reasoner` whose prompts are real and whose replies are local."""

    def __init__(
        self, prompted: PromptedReasoner, local: LocalReasoner, course: Course = "likely"
    ) -> None:
        self._prompted = prompted
        self._local = local
        self._course = course
        self._turns = 0

    @property
    def name(self) -> str:
        """That of the reasoner which is rehearsed."""
        return self._prompted.name

    @property
    def is_local(self) -> bool:
        """Never: what a chat model would do is rehearsed."""
        return False

    @property
    def shared_tokens(self) -> int:
        """Tokens of segments that may share a call."""
        return self._prompted.shared_tokens

    # --- building -------------------------------------------------------------------------------

    async def summarise(self, title: str, segments: Sequence[Segment]) -> str:
        """Rehearse the summary."""
        said = " ".join(segment.text for segment in segments[:4])
        with _replying(summary=" ".join(said.split())[:SUMMARY]):
            return await self._prompted.summarise(title, segments)

    async def extract(self, segment: Segment, reading: Reading) -> Contribution:
        """Rehearse the first reading."""
        with _replying(**_notes(await self._first(segment))):
            return await self._prompted.extract(segment, reading)

    async def supplement(
        self, segment: Segment, reading: Reading, known: Contribution, questions: Sequence[str]
    ) -> Contribution:
        """Rehearse the second reading."""
        found = await self._local.supplement(segment, reading, known, questions)
        with _replying(**_answers(found, questions)):
            return await self._prompted.supplement(segment, reading, known, questions)

    async def extract_together(self, jobs: Sequence[Job]) -> Sequence[Contribution | None]:
        """Rehearse the first reading of several segments."""
        found = [_something(_notes(await self._first(j.segment)), j.segment) for j in jobs]
        with _replying(passages=[{"n": n, **notes} for n, notes in enumerate(found, 1)]):
            return await self._prompted.extract_together(jobs)

    async def supplement_together(self, jobs: Sequence[Job]) -> Sequence[Contribution | None]:
        """Rehearse the second reading of several segments."""
        passages = []
        for n, job in enumerate(jobs, 1):
            assert job.known is not None
            found = await self._local.supplement(job.segment, job.reading, job.known, job.questions)
            passages.append({"n": n, **_answers(found, job.questions)})
        with _replying(passages=passages):
            return await self._prompted.supplement_together(jobs)

    async def fold(
        self, first: Fact, second: Fact, summary: str, *, texts: tuple[str, str] = ("", "")
    ) -> str:
        """Rehearse a fold."""
        said = await self._local.fold(first, second, summary, texts=texts)
        names = (first.head.partition("|")[0], first.tail.partition("|")[0])
        asked = [f"Do {' and '.join(names)} mean the same in both passages?"] * 3
        with _replying(questions=asked, description=said):
            return await self._prompted.fold(first, second, summary, texts=texts)

    async def _first(self, segment: Segment) -> Contribution:
        return await self._local.extract(segment, Reading())

    # --- answering ------------------------------------------------------------------------------

    async def query_entities(self, context: AskContext) -> Sequence[str]:
        """Rehearse the search for names in the question."""
        with _replying(entities=list(await self._local.query_entities(context))):
            return await self._prompted.query_entities(context)

    def room(self, context: AskContext, *, extra: str = "") -> int:
        """Return the tokens left for passages."""
        return self._prompted.room(context, extra=extra)

    def size(self, passage: Passage) -> int:
        """Return the tokens that a passage takes."""
        return self._prompted.size(passage)

    async def judge(
        self, context: AskContext, passages: Sequence[Passage], *, force: bool = False
    ) -> Verdict:
        """Rehearse a verdict."""
        is_forced = force or self._course == "shortest"
        found = await self._local.judge(context, passages, force=is_forced)
        is_answer = found.is_answerable and (self._course != "longest" or force)
        with _replying(
            reasoning=found.reason,
            action=-2 if is_answer else -1,
            answer=found.answer if is_answer else "",
            quotes=[f"{quote.label}|{quote.text}" for quote in found.quotes if is_answer],
        ):
            return await self._prompted.judge(context, passages, force=force)

    async def revise(
        self,
        context: AskContext,
        *,
        current: Sequence[str],
        candidates: Sequence[tuple[str, int]],
        reason: str,
        passages: Sequence[Passage],
    ) -> Sequence[str]:
        """Rehearse the choice of entities for the next trial."""
        if self._course == "longest":
            chosen = self._others(candidates)
        else:
            chosen = await self._local.revise(
                context, current=current, candidates=candidates, reason=reason, passages=passages
            )
        with _replying(entities=list(chosen)):
            return await self._prompted.revise(
                context, current=current, candidates=candidates, reason=reason, passages=passages
            )

    def _others(self, candidates: Sequence[tuple[str, int]]) -> Sequence[str]:
        """Return other names every time: a search that finds nothing goes on."""
        self._turns += 1
        names = [name for name, _ in candidates]
        return names[FEW * self._turns :][:FEW] or names[:FEW]

    async def elaborate(
        self, context: AskContext, entities: Sequence[str], relations: Sequence[str]
    ) -> str:
        """Rehearse the elaborated query."""
        with _replying(query=await self._local.elaborate(context, entities, relations)):
            return await self._prompted.elaborate(context, entities, relations)


def _notes(made: Contribution) -> dict[str, list[str]]:
    """Return a first reading in the form in which a model writes it."""
    return {
        "entities": [_entity(mention) for mention in made.mentions],
        "relations": [_relation(statement) for statement in made.statements],
        "questions": list(made.questions),
    }


def _something(notes: dict[str, list[str]], segment: Segment) -> dict[str, list[str]]:
    """Return notes that hold an entity: a model finds one where the local rules may not.

    A passage of which nothing is noted would be read once more, alone.
    """
    return notes if notes["entities"] else {**notes, "entities": [_entity(_first_name(segment))]}


def _first_name(segment: Segment) -> Mention:
    name = max(segment.text.split(), key=len)
    return Mention(name, forms=(name,))


def _answers(made: Contribution, questions: Sequence[str]) -> dict[str, list[str]]:
    """Return a second reading in that form: of each question, by number, the first new things."""
    entities: dict[str, str] = {}
    relations: dict[str, str] = {}
    for mention in made.mentions:
        entities.setdefault(mention.question, _entity(mention))
    for statement in made.statements:
        relations.setdefault(statement.question, _relation(statement))
    numbers = list(enumerate(questions, 1))
    return {
        "entities": [f"{n}|{entities[asked]}" for n, asked in numbers if asked in entities],
        "relations": [f"{n}|{relations[asked]}" for n, asked in numbers if asked in relations],
    }


def _entity(mention: Mention) -> str:
    others = [form for form in mention.forms if form != mention.name]
    return "|".join((mention.name, mention.type or "THING", *others))


def _relation(statement: Statement) -> str:
    said = statement.description.replace("|", " ")[:DESCRIPTION]
    return f"{statement.head}|{said}|{statement.tail}"


__all__ = ["Course", "Rehearsing", "StandIn"]
