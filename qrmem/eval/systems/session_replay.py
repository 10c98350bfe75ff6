"""Replay of sessions: a reply to every turn from recalled rounds; also questions on sessions."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from qrmem.errors import UsageError
from qrmem.eval.harness import Harness
from qrmem.eval.items import Build, Context, Item, Prediction, Round
from qrmem.eval.memories import OpenMemory, new_space
from qrmem.eval.registry import system
from qrmem.eval.systems.passage_reader import answer_from, ranking
from qrmem.graphstore import GraphStore, open_store
from qrmem.llm.prompting import Caller
from qrmem.memory.add import Adder
from qrmem.memory.chat import stored_turns
from qrmem.memory.chat.conversation import Chat
from qrmem.memory.chat.recall import recalled
from qrmem.memory.runtime import Models
from qrmem.prompts import fenced
from qrmem.retrieval.fragments import FragmentScorer, FragmentSettings
from qrmem.retrieval.searcher import Searcher
from qrmem.types import Listener, ScoredSegment, Step, Turn
from qrmem.types.options import RecallMethod, RecallOptions
from qrmem.types.turns import numbered, turn_id, turn_number

NAMESPACE = "session"

_WHOLE = 9999
"""Maximum number of words of a fragment; a round is one fragment, as in the paper."""


class ReplayedSession:
    """The rounds of one conversation so far, in a temporary memory."""

    def __init__(self, store: GraphStore, tools: Models, listener: Listener) -> None:
        self.rounds: list[Round] = []
        self._turns: list[Turn] = []
        self._moved = 0
        self._store = store
        self._adder = Adder(store, NAMESPACE, tools, listener, is_chat=True)
        self._scorer = FragmentScorer(Searcher(store, NAMESPACE, tools.embedder))
        self._count = tools.counter.count

    async def add(self, made: Round) -> None:
        """Add a round as one fragment, as in the paper."""
        self.rounds.append(made)
        number = len(self.rounds)
        turn = Turn(turn_id(number), number, "user", made.text, session=NAMESPACE)
        self._turns.append(turn)
        await self._adder.add([stored_turns.as_document(turn)])

    def latest(self, history: Literal["rolling", "once"]) -> list[Round]:
        """Return the latest rounds for the prompt: at most 1,000 tokens and 10 rounds.

        Args:
            history: with `once`, the rounds since the history last exceeded these limits.
        """
        turns = self._turns[self._moved :]
        count_kept = stored_turns.recent(
            turns, stored_turns.RECENT_TOKENS, lambda t: self._count(t.text)
        )
        if history == "once" and count_kept < len(turns):
            self._moved, count_kept = len(self._turns), 0
        return self.rounds[len(self.rounds) - count_kept :]

    async def ranked(self, said: str, settings: FragmentSettings) -> dict[Round, float]:
        """Return all rounds with their scores for last round and current turn, best first."""
        if not self.rounds:
            return {}
        assessed = await self._scorer.assess(f"{self._turns[-1].text}\n{said}", settings=settings)
        best = assessed.best(assessed.fragments.size) if assessed else {}
        of = {s.id: s.document_id for s in await self._store.segments(NAMESPACE, list(best))}
        by_id = {turn_id(n): round_made for n, round_made in enumerate(self.rounds, 1)}
        ranked: dict[Round, float] = {}
        for segment, score in best.items():
            ranked.setdefault(by_id[of[segment]], score)
        return ranked


@asynccontextmanager
async def open_session(harness: Harness) -> AsyncIterator[ReplayedSession]:
    """Open an empty conversation."""
    embedder = harness.tools.embedder
    settings = harness.settings.with_(
        namespace=NAMESPACE, model="", text_fragments=f"words:{_WHOLE}"
    )
    store = await open_store("memory://", settings)
    try:
        info = await new_space(store, settings, embedder)
        tools = Models(store, info, settings, None, embedder, harness.budget)
        yield ReplayedSession(store, tools, harness.listener)
    finally:
        await store.close()


REPLY = 512
"""Tokens of a reply; the papers' window is 2,048."""


@system("latest-chat", "chat with the latest rounds alone", "FragRel's baseline", top=0)
@system("dense-chat", "dense chat memory", "MemRetrieval", alpha=0.0, score="cosine")
@system("fragment-chat", "chat memory: rounds recalled by FragRel", "FragRel")
@dataclass(frozen=True, slots=True, kw_only=True)
class Conversed:
    """Replies to every turn of a session from the latest rounds and recalled rounds.

    Without a chat model, or with `retrieve`, it only ranks the user's turns for the last question.

    Attributes:
        alpha: 0 is retrieval of independent rounds (MemRetrieval).
        top: maximum number of recalled rounds; 0 uses only the latest rounds that fit.
        history: `rolling` always shows the latest rounds, up to 1,000 tokens and 10 rounds; `once`
            moves the whole history out when it exceeds these limits, as in the paper.
    """

    w_rel: float = 0.8
    alpha: float = 0.5
    score: Literal["auto", "cosine", "bm25"] = "auto"
    top: int = 8
    history: Literal["rolling", "once"] = "rolling"

    def __post_init__(self) -> None:
        self._settings()

    @property
    def needs(self) -> frozenset[str]:
        """`embedder` for cosines; `model` if it cannot rank."""
        if not self.top:
            return frozenset({"model"})
        return frozenset({"embedder"} if self.score == "cosine" else ())

    @property
    def ranks(self) -> bool:
        """Whether it recalls rounds."""
        return self.top > 0

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Reply to one session's last question."""
        require_session(item)
        if harness.model is None or harness.retrieve:
            return await self._ranking(item, context, harness)
        chat_calls = ChatCalls(harness.caller, harness.settings.window)
        async with open_session(harness) as session:
            for turn in context.documents:
                replied, _ = await self._reply(session, chat_calls, turn.text)
                await session.add(Round(turn.id or "", turn.text, replied))
            last, ranked = await self._reply(session, chat_calls, item.question)
        return Prediction(
            text=last,
            status="answered" if last else "unanswerable",
            read=chat_calls.read,
            ranked=tuple(round_made.id for round_made in ranked),
            steps=tuple(chat_calls.steps),
            memory=f"session {item.id}" if self.top else "",
            rounds=tuple(session.rounds),
        )

    async def _reply(
        self, session: ReplayedSession, said: "ChatCalls", text: str
    ) -> tuple[str, Collection[Round]]:
        latest = session.latest(self.history) if self.top else session.rounds
        ranked = await session.ranked(text, self._settings()) if self.top else {}
        earlier = [round_made for round_made in ranked if round_made not in latest][: self.top]
        places = {round_made: place for place, round_made in enumerate(session.rounds)}
        replied = await said.reply(
            text,
            [
                PromptPart(
                    (round_made.id,), _block(round_made), places[round_made], ranked[round_made]
                )
                for round_made in earlier
            ],
            [
                PromptPart((round_made.id,), _block(round_made), places[round_made])
                for round_made in latest
            ],
        )
        return replied, ranked

    async def _ranking(self, item: Item, context: Context, harness: Harness) -> Prediction:
        async with harness.memory(conversation(context), Build(words=_WHOLE)) as memory:
            query = "\n".join([*(d.text for d in context.documents[-1:]), item.question])
            assessed = await memory.fragments.assess(query, settings=self._settings())
            best = assessed.best(assessed.fragments.size) if assessed else {}
            return ranking(memory, await memory.segments(best))

    def _settings(self) -> FragmentSettings:
        return FragmentSettings(w_rel=self.w_rel, alpha=self.alpha, score=self.score)


@dataclass(frozen=True, slots=True)
class PromptPart:
    """An earlier part of a session for the prompt.

    Attributes:
        ids: ids of its rounds.
        place: its position among the others.
        score: its score, if it was ranked.
    """

    ids: tuple[str, ...]
    text: str
    place: int
    score: float = 0.0


@dataclass(slots=True)
class ChatCalls:
    """The system's side of a session: its replies and their trail.

    Attributes:
        read: ids of the rounds in the prompt of the last reply.
    """

    caller: Caller
    window: int
    steps: list[Step] = field(default_factory=list)
    read: tuple[str, ...] = ()

    async def reply(
        self, text: str, earlier: Sequence[PromptPart], latest: Sequence[PromptPart]
    ) -> str:
        """Return the reply to a user's turn.

        Args:
            text: the user's turn.
            earlier: earlier pieces, best first; if they do not fit, the worst are left out first.
            latest: latest pieces in order; if they do not fit, the oldest are left out first.
        """
        newest = list(reversed(latest))
        words = text.split(" ")
        call = await self.caller.say(
            "chat",
            lambda kept: dict(
                earlier=_in_place(earlier[: len(kept[0])]),
                latest=_in_place(newest[: len(kept[1])]),
                # If a text is too long for the window, its end is kept.
                said=fenced(" ".join(words[len(words) - len(kept[2]) :])),
            ),
            [[piece.text for piece in pieces] for pieces in (earlier, newest)] + [words],
            window=self.window,
            reply=REPLY,
        )
        of_earlier, of_latest = (len(group) for group in call.kept[:2])
        pieces = (*earlier[:of_earlier], *newest[:of_latest])
        scores = {id: piece.score for piece in reversed(pieces) for id in piece.ids}
        self.read = tuple(dict.fromkeys(id for piece in pieces for id in piece.ids))
        self.noted("reply", self.read, tokens=call.tokens, scores=scores)
        return call.value

    def noted(
        self,
        action: str,
        read: Sequence[str] = (),
        reason: str = "",
        tokens: int = 0,
        scores: Mapping[str, float] | None = None,
    ) -> None:
        """Add a step to the trail; pieces without a score get 0."""
        ids = tuple(ScoredSegment(id, (scores or {}).get(id, 0.0), 0) for id in read)
        n = len(self.steps) + 1
        self.steps.append(Step(n=n, action=action, read=ids, reason=reason, tokens=tokens))


def require_session(item: Item) -> None:
    """Check that an item has a conversation.

    Raises:
        UsageError: the item is not of MTBench+.
    """
    if "topics" not in item.labels:
        raise UsageError("it plays a conversation through: it runs on MTBench+ alone")


def conversation(context: Context) -> Context:
    """Return a context whose documents are the user's turns of one session, in order."""
    turns = [
        Turn(document.id or str(n), n, "user", document.text, session=context.id)
        for n, document in enumerate(context.documents, 1)
    ]
    return replace(context, documents=tuple(map(stored_turns.as_document, turns)))


def _in_place(pieces: Sequence[PromptPart]) -> str:
    in_order = sorted(pieces, key=lambda piece: piece.place)
    return "\n".join(piece.text for piece in in_order) or "(nothing)"


def _block(made: Round) -> str:
    return fenced(made.text, f"turn {numbered(made.id) - 1:02}")


# Recall within a token budget, and answers from it.


_DEPTH = 300
"""Number of ranked turns to fill the budget from."""


@system("recall-search", "turns by search, within a budget", "ours", how="search")
@system("recall-embedder", "turns by cosine, within a budget", "", how="cosine")
@system("recall-bm25", "turns by BM25, within a budget", "", how="bm25")
@system("recall-fragrel", "turns by recall(how='fragrel')", "FragRel", how="fragrel")
@system("recall", "turns by recall, within a budget", "ours")
@dataclass(frozen=True, slots=True, kw_only=True)
class FilledBudget:
    """Reads the best turns that fit a budget, in order of time.

    Attributes:
        tokens: upper bound of the turns' texts together, in tokens.
    """

    how: Literal["turns", "fragrel", "bm25", "cosine", "search"] = "turns"
    tokens: int = 2000

    @property
    def needs(self) -> frozenset[str]:
        """Its requirements."""
        return frozenset({"embedder"} if self.how == "cosine" else ())

    ranks = True

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        if not all(turn_number(d.id or "", d.metadata) for d in context.documents):
            raise UsageError("it recalls turns of a conversation: it runs on LoCoMo alone")
        async with harness.memory(context) as memory:
            ids = await self._turns(memory, item.question)
            prediction = Prediction(ranked=tuple(ids), memory=memory.key)
            if harness.retrieve:
                return prediction
            segments = await memory.store.segments(memory.ns, documents=sorted(ids))
            read = memory.passages(segments)
            return await answer_from(harness, item, read, found=prediction, context=context)

    async def _turns(self, memory: OpenMemory, question: str) -> list[str]:
        """Return the ids of turns that fit the budget together."""
        if self.how in ("turns", "fragrel"):
            chat = Chat(
                memory.store,
                memory.ns,
                memory.searcher,
                memory.fragments,
                memory.tools.counter.count,
            )
            how: RecallMethod = "turns" if self.how == "turns" else "fragrel"
            recall = await recalled(
                chat, RecallOptions(prompt=question, tokens=self.tokens, how=how)
            )
            return [turn.id for turn in (*recall.related, *recall.recent)]
        if self.how == "search":
            hits = await memory.searcher.search(question, k=_DEPTH)
            ids = [hit.segment_id for hit in hits]
        else:
            ids = list(await memory.searcher.ranking(question, self.how, _DEPTH))
        ids_kept: dict[str, None] = {}
        tokens_left = self.tokens
        for segment in await memory.segments(ids):
            size = memory.tools.counter.count(segment.text)
            if size <= tokens_left:
                ids_kept[segment.document_id] = None
                tokens_left -= size
        return list(ids_kept)
