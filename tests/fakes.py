"""Test doubles that speak the ports. No mocks, no patching."""

import asyncio
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from qrmem.agents import Build
from qrmem.agents.build_state import silent
from qrmem.config import Settings
from qrmem.errors import WindowTooSmall
from qrmem.graphstore.protocol import GraphStore
from qrmem.llm.budget import Budget
from qrmem.llm.meter import Meter
from qrmem.llm.reply_cache import ReplyCache
from qrmem.llm.routing import ChatModels
from qrmem.llm.run import Run
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import (
    AskContext,
    ChatModel,
    ChatReply,
    ChatRequest,
    Contribution,
    Embedder,
    EntityTagger,
    Folded,
    Listener,
    Mention,
    Passage,
    Reading,
    Reasoner,
    Segment,
    Statement,
    Tokenizer,
    Verdict,
)
from qrmem.types.options import AddOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Scripted = str | ChatReply | Exception | Callable[[ChatRequest], str | ChatReply]


class WordTokenizer:
    """Counts words; a cut keeps whole words."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())

    def cut(self, text: str, limit: int) -> str:
        return " ".join(text.split()[:limit])


class ScriptedModel:
    """Answers from a list and remembers what it was asked; an answer too few or too many fails."""

    def __init__(self, *answers: Scripted, name: str = "scripted") -> None:
        self.name = name
        self._answers = list(answers)
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        await asyncio.sleep(0)
        said = request.messages[-1].content[:80]
        assert self._answers, f"unexpected call {len(self.requests)} ({request.stage}): {said}"
        answer = self._answers.pop(0)
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, str):
            answer = ChatReply(answer, model=self.name)
        return replace(answer, model=answer.model or self.name)

    def assert_all_used(self) -> None:
        assert not self._answers, f"{len(self._answers)} answers never asked for"


def metered(
    chat: ChatModel | ChatModels,
    *,
    tokenizer: Tokenizer | None = None,
    cache: ReplyCache | None = None,
    **budget: Any,
) -> Meter:
    """Return the chat model of a run; without another budget it has that of a build."""
    models = chat if isinstance(chat, ChatModels) else ChatModels(chat)
    given: dict[str, Any] = {"run": "r1", "phase": "construction"} | budget
    return Meter(models, Budget(**given), tokenizer or BuiltinTokenizer(), cache)


class HashEmbedder:
    """Same text, same unit vector, on every machine; like words give like vectors.

    Each word adds one pseudo-random direction, so that texts that share words are near.
    """

    def __init__(self, dimension: int = 32, name: str = "hash", window: int = 200) -> None:
        self.name = name
        self.dimension = dimension
        self._window = window
        self.embedded: list[str] = []

    def windows(self, text: str) -> Sequence[str]:
        words = text.split()
        if len(words) <= self._window:
            return [text]
        return [
            " ".join(words[at : at + self._window]) for at in range(0, len(words), self._window)
        ]

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> "NDArray[np.float32]":
        import numpy as np

        await asyncio.sleep(0)
        self.embedded += texts
        rows = [self._vector(text) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.dimension)

    def _vector(self, text: str) -> "NDArray[np.float64]":
        import numpy as np

        total = np.full(self.dimension, 1e-6)
        for word in text.lower().split():
            digest = hashlib.sha256(word.strip(".,;:!?\"'()").encode()).digest()
            repeated = digest * (self.dimension // len(digest) + 1)
            total += np.frombuffer(repeated, dtype=np.uint8)[: self.dimension] / 127.5 - 1
        unit: NDArray[np.float64] = total / np.linalg.norm(total)
        return unit


class ScriptedReasoner:
    """Reads by one fixed rule and gives set verdicts; may be slow, or fail, at chosen calls.

    An entity is a capitalised word, neighbours in a sentence are related, and each pair is asked
    about. The second reading adds a statement per question about the segment's longest lower-case
    word. What it does depends on what it is given alone, never on when.
    """

    is_local = False

    def __init__(
        self,
        judge: Callable[[AskContext, Sequence[Passage], bool], Verdict] | None = None,
        *,
        fail: Callable[[str, str], Exception | None] = lambda stage, what: None,
        delay: Callable[[str, str], float] = lambda stage, what: 0.0,
        room: int = 1000,
    ) -> None:
        self._judge = judge or (lambda context, passages, force: Verdict(is_answerable=force))
        self._fail = fail
        self._delay = delay
        self._room = room
        self.calls: list[tuple[str, str]] = []
        self.judged: list[list[str]] = []
        self.revisions: list[list[str]] = []
        self.elaborated: str = ""
        self.in_flight = self.most_in_flight = 0

    @property
    def name(self) -> str:
        return "scripted"

    async def _call(self, stage: str, what: str) -> None:
        self.calls.append((stage, what))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self._delay(stage, what))
            error = self._fail(stage, what)
            if error is not None:
                raise error
        finally:
            self.in_flight -= 1

    async def summarise(self, title: str, segments: Sequence[Segment]) -> str:
        await self._call("summarise", segments[0].document_id)
        return f"{title}: {segments[0].text[:40]}"

    async def extract(self, segment: Segment, reading: Reading) -> Contribution:
        await self._call("extract", segment.id)
        names = list(dict.fromkeys(re.findall(r"\b[A-Z][a-z]+\b", segment.text)))
        pairs = list(pairwise(names))
        focus = f" for {reading.question}" if reading.question else ""
        return Contribution(
            segment.id,
            "extraction",
            mentions=tuple(
                Mention(name, "PERSON", (name,), segment.text.count(name)) for name in names
            ),
            statements=tuple(
                Statement(a, b, f"{a} meets {b} in part {segment.index}{focus}") for a, b in pairs
            ),
            questions=tuple(f"{a}, {b}?" for a, b in pairs),
        )

    async def supplement(
        self,
        segment: Segment,
        reading: Reading,
        known: Contribution,
        questions: Sequence[str],
    ) -> Contribution:
        await self._call("supplement", segment.id)
        ends = [mention.name for mention in known.mentions]
        word = max(re.findall(r"\b[a-z]+\b", segment.text), key=len)
        return Contribution(
            segment.id,
            "supplement",
            mentions=(Mention(word, "", (word,), 1, questions[0]),),
            statements=tuple(Statement(ends[0], word, f"asked: {q}", q) for q in questions),
            asked=tuple(questions),
        )

    async def fold(
        self,
        relations: tuple[str, str],
        texts: tuple[str, str],
        *,
        summary: str = "",
        question: str = "",
    ) -> Folded:
        await self._call("fold", " + ".join(texts))
        return Folded(" / ".join(relations))

    async def query_entities(self, context: AskContext) -> Sequence[str]:
        await self._call("query", context.question)
        return re.findall(r"\b[A-Z][a-z]+\b", context.question)[1:]

    def room(self, context: AskContext) -> int:
        if self._room <= 0:
            raise WindowTooSmall("no room")
        return self._room

    def size(self, passage: Passage) -> int:
        return passage.segment.tokens

    async def judge(
        self, context: AskContext, passages: Sequence[Passage], *, force: bool = False
    ) -> Verdict:
        await self._call("force" if force else "judge", context.question)
        self.judged.append([passage.segment.text for passage in passages])
        return self._judge(context, passages, force)

    async def revise(
        self,
        context: AskContext,
        *,
        current: Sequence[str],
        candidates: Sequence[tuple[str, int]],
        reason: str,
        passages: Sequence[Passage],
    ) -> Sequence[str]:
        await self._call("revise", reason)
        return self.revisions.pop(0) if self.revisions else list(current)

    async def elaborate(
        self, context: AskContext, entities: Sequence[str], relations: Sequence[str]
    ) -> str:
        await self._call("elaborate", context.question)
        return self.elaborated


def build_of(
    store: GraphStore,
    reasoner: Reasoner,
    *,
    ns: str = "ns",
    embedder: Embedder | None = None,
    options: AddOptions | None = None,
    tagger: EntityTagger | None = None,
    listener: Listener = silent,
    **settings: Any,
) -> Build:
    """Return what carries a build of one namespace."""
    return Build(
        store=store,
        ns=ns,
        parts=Run(reasoner, embedder=embedder, settings=Settings(**settings)),
        options=options or AddOptions(),
        tagger=tagger,
        listener=listener,
    )
