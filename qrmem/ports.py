"""What the algorithms need from outside, as small Protocols.

Adapters live in `qrmem.models` (chat, embeddings, tokenizers) and `qrmem.language` (reasoners,
taggers); the store's Protocol is `qrmem.graphstore.GraphStore`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from qrmem.records import Contribution, Fact, Mention, Segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Tokenizer(Protocol):
    """Counts tokens; never counts less than the model that it stands for."""

    @property
    def name(self) -> str:
        """What is recorded in a namespace, e.g. `builtin-v1`, `tiktoken:cl100k_base`."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens; 0 for an empty text."""
        ...

    def cut(self, text: str, limit: int) -> str:
        """Return the longest prefix of at most `limit` tokens that this counter can find."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """What is recorded in a namespace, e.g. `local`, `openai:text-embedding-3-small`."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def windows(self, text: str) -> Sequence[str]:
        """Cut a text into pieces that the encoder reads whole; at least one."""
        ...

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> "NDArray[np.float32]":
        """Return `(len(texts), dimension)`, rows of unit length.

        Raises:
            ModelUnavailable: the server does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat request."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a chat model.

    Attributes:
        schema: JSON schema the reply must match, or `None` for free text.
        schema_name: short name of the schema.
        max_tokens: reply limit; reserved before the call is sent.
        stage: where it is counted, e.g. `extract`, `judge`.
        prompt: name and version of the prompt, e.g. `judge.v1`.
        segment_id: the segment it is about, or "".
        shared_with: more segments that it is about.
        attempt: 0 for the first try; shapes the cache key.
        optional: fields of the reply, at any depth, that may be missing, though a strict schema
            demands them all.
        is_watched: somebody reads the reply as it is written: it is streamed, where the server can,
            and told piece by piece as events of kind `words`.
        log_probs: ask for the tokens' log-probabilities, which not every server gives.
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    schema_name: str = ""
    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 512
    stage: str = ""
    prompt: str = ""
    segment_id: str = ""
    shared_with: tuple[str, ...] = ()
    attempt: int = 0
    optional: tuple[str, ...] = ()
    is_watched: bool = False
    log_probs: bool = False


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What came back, as the server counted it (0 where it did not say).

    Attributes:
        log_probs: each token of the reply with the logarithm of its probability; empty where they
            were not asked for, or the server gives none.
    """

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    cached_tokens: int = 0
    finish_reason: str = "stop"
    model: str = ""
    seconds: float = 0.0
    from_cache: bool = False
    log_probs: tuple[tuple[str, float], ...] = ()


class ChatModel(Protocol):
    """Any chat model."""

    @property
    def name(self) -> str:
        """The model's name, as given."""
        ...

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send one request.

        Raises:
            AccessRefused: key or model name refused.
            ModelUnavailable: no answer after all retries.
        """
        ...


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One chat call as the ledger keeps it.

    Attributes:
        run: id of the run that paid for it.
        segment_id: the segment it was about, the first one where several shared it, or "".
        outcome: `ok`, `repaired`, `unparsable`, `cached` or the error's class name.
    """

    run: str
    stage: str
    phase: Literal["construction", "online"]
    prompt: str
    model: str
    segment_id: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    attempts: int = 1
    outcome: str = "ok"
    created: str = ""


# --- language work -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Passage:
    """A segment as a reasoner reads it, labelled for quoting."""

    label: str
    segment: Segment
    title: str = ""


@dataclass(frozen=True, slots=True)
class Quote:
    """A quotation that a reasoner gives for its answer."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reasoner makes of the segments it read (Q15).

    Attributes:
        is_answerable: Action -2 of the paper; `False` is Action -1.
        answer: its answer; empty if it is not answerable and was not forced.
        choice: index of the chosen option, or `None`.
        reason: why (the paper's Reasoning, R of Algorithm 1).
        tokens: prompt tokens counted before the call.
        is_readable: `False` where no reply could be read; it counts as not answerable (Q15).
    """

    is_answerable: bool
    answer: str = ""
    choice: int | None = None
    reason: str = ""
    quotes: tuple[Quote, ...] = ()
    tokens: int = 0
    is_readable: bool = True


@dataclass(frozen=True, slots=True)
class AskContext:
    """What stays the same in all calls of one question.

    Attributes:
        window: L in tokens; a hard bound on every call, reply reserve included (Q21).
    """

    question: str
    choices: tuple[str, ...] = ()
    window: int = 4096


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reasoner is told about a document when it reads one of its segments.

    Attributes:
        summary: T, the document's summary; "" for a document of one segment.
        question: the user's question (orientation), or "".
        tagged: entities that a tagger found in the segment; they are united with the reasoner's by
            the caller, and are here for passes that build on all entities (Q05, Q06).
        window: L of the run that the reading is part of; 0 where it is the reasoner's own.
        attempt: number of the first try; lower ones were made, and something of them was lost.
    """

    title: str = ""
    summary: str = ""
    question: str = ""
    tagged: tuple[Mention, ...] = ()
    window: int = 0
    attempt: int = 0


@runtime_checkable
class Reasoner(Protocol):
    """Whatever does the language work: by prompts to a chat model, or locally with no model."""

    @property
    def name(self) -> str:
        """What the ledger records: kind, model and prompt versions."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether it works without a chat model (synchronous, deterministic, free)."""
        ...

    async def summarise(self, title: str, segments: Sequence[Segment]) -> str:
        """Return the document's summary T (Q03); called only for two segments and more."""
        ...

    async def extract(self, segment: Segment, reading: Reading) -> Contribution:
        """First pass: entities, statements and proposed questions of one segment (Q04-Q08).

        Raises:
            ModelOutputError: no usable reply after the temperature ladder (S02).
        """
        ...

    async def supplement(
        self, segment: Segment, reading: Reading, known: Contribution, questions: Sequence[str]
    ) -> Contribution:
        """Second pass: what the accepted questions add to the sub-graph (Q10)."""
        ...

    async def fold(
        self, first: Fact, second: Fact, summary: str, *, texts: tuple[str, str] = ("", "")
    ) -> str:
        """Fold two parallel relations into one description (Q12); `compact` never calls it.

        Args:
            texts: of the two facts' segments, S_n and S_k.
        """
        ...

    async def query_entities(self, context: AskContext) -> Sequence[str]:
        """Return the names in the question and its options (Q14, E_s)."""
        ...

    def room(self, context: AskContext, *, extra: str = "") -> int:
        """Return the tokens left for passages beside skeleton, question, options, `extra`, reserve.

        Raises:
            WindowTooSmall: nothing would be left.
        """
        ...

    def size(self, passage: Passage) -> int:
        """Return the tokens that a passage takes in a prompt, label and separators included."""
        ...

    async def judge(
        self, context: AskContext, passages: Sequence[Passage], *, force: bool = False
    ) -> Verdict:
        """Answer from the passages, or say what is missing (Q15); `force` must answer."""
        ...

    async def revise(
        self,
        context: AskContext,
        *,
        current: Sequence[str],
        candidates: Sequence[tuple[str, int]],
        reason: str,
        passages: Sequence[Passage],
    ) -> Sequence[str]:
        """Entity Trial's update E <- LLM(E, R, S_imp, Q) (Q16).

        Args:
            current: canonical names of E.
            candidates: known names with their segment counts, most frequent first; what does not
                fit the window is left out from the end.

        Returns:
            Names out of `candidates`, at least one, or `current` unchanged.
        """
        ...

    async def elaborate(
        self, context: AskContext, entities: Sequence[str], relations: Sequence[str]
    ) -> str:
        """Graph Expansion Search's elaborated query (Q17)."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """One of several segments to read in one call.

    Attributes:
        known: what its first reading brought; `None` for the first reading itself.
        questions: accepted questions to read it again with.
    """

    segment: Segment
    reading: Reading
    known: Contribution | None = None
    questions: tuple[str, ...] = ()


@runtime_checkable
class Sharer(Protocol):
    """A reasoner that can read several short segments in one call."""

    @property
    def shared_tokens(self) -> int:
        """Tokens of segments that may share a call; 0: each has its own."""
        ...

    async def extract_together(self, jobs: Sequence[Job]) -> Sequence[Contribution | None]:
        """Make the first pass over several segments in one call.

        Returns:
            In the order of `jobs`; `None` for a segment of which the reply holds nothing usable.

        Raises:
            ModelOutputError: the reply as a whole is of no use.
            WindowTooSmall: they do not fit the window together.
        """
        ...

    async def supplement_together(self, jobs: Sequence[Job]) -> Sequence[Contribution | None]:
        """Make the second pass over several segments in one call; see `extract_together`."""
        ...


class EntityTagger(Protocol):
    """Finds typed entities in a text (Q05)."""

    @property
    def name(self) -> str:
        """E.g. `rules`, `corenlp`, `stanza`."""
        ...

    async def tag(self, text: str) -> Sequence[Mention]:
        """Return the entities of one segment, in order of first occurrence.

        Raises:
            MissingError: what it needs is not there.
            TaggerUnavailable: it does not answer.
        """
        ...

    async def close(self) -> None:
        """End what it started; a second time does nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened; logging, the progress bar and streams read the same events.

    Attributes:
        kind: `document`, `segment`, `phase`, `step`, `call`, `words` or `warning`.
        data: primitive values.
    """

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


class Listener(Protocol):
    """Takes events; must not raise and must not block."""

    def __call__(self, event: Event, /) -> None:
        """Take one event."""
        ...
