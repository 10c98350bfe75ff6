"""Ports that read segments and answer from passages."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from qrmem.types import Contribution, Mention, Segment, Status


@dataclass(frozen=True, slots=True)
class Passage:
    """A segment for a reasoner, labelled for quoting.

    Attributes:
        score: score of the search, higher is better; 0 without a search.
        date: day of its document; "" if it has none, or if it is not to be shown.
        ended: its statements that the user ended or deleted by hand, as text.
        superseded_by: labels of the passages with statements that replace some of its own.
        superseded: these replaced statements, in words, each with what replaced it and its label.
    """

    label: str
    segment: Segment
    title: str = ""
    score: float = 0.0
    date: str = ""
    superseded_by: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Quote:
    """A quotation that a reasoner gives for its answer.

    Attributes:
        matches: spans of the question's words in the text; () if they were not looked for.
    """

    label: str
    text: str
    matches: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """What a reading found that helps to answer later.

    Attributes:
        label: label of its passage; "" if the reply names none.
    """

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A reasoner's verdict on the segments that it read.

    Attributes:
        is_answerable: Action -2 of the paper; `False` is Action -1.
        answer: its answer; empty if it is not answerable and was not forced.
        choice: index of the chosen option, or `None`.
        reason: why (the paper's Reasoning, R of Algorithm 1).
        tokens: prompt tokens counted before the call.
        status: status of the run if the verdict is answerable; `passages`: the answer consists of
            excerpts.
        problem: why no reply could be read, or ""; then it is no verdict on the segments.
        look_for: names or words to search for next, if it is not answerable.
        findings: what helps to answer in a later reading, if it is not answerable.
    """

    is_answerable: bool
    answer: str = ""
    choice: int | None = None
    reason: str = ""
    quotes: tuple[Quote, ...] = ()
    tokens: int = 0
    problem: str = ""
    status: Status = "answered"
    look_for: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def told(self) -> str:
        """The verdict in a trail: `answerable`, `unanswerable`, `passages` or `unreadable`."""
        if self.problem:
            return "unreadable"
        if not self.is_answerable:
            return "unanswerable"
        return "passages" if self.status == "passages" else "answerable"


@dataclass(frozen=True, slots=True)
class AskContext:
    """The context of the calls for one question.

    Attributes:
        window: L in tokens; a hard bound on every call, reply reserve included.
        notes: what earlier readings found, as lines.
        statements: statements of the graph near the question, as lines.
        as_of: the day of the question; "": now.
    """

    question: str
    choices: tuple[str, ...] = ()
    window: int = 4096
    notes: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    as_of: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """The information about a document that a reasoner gets when it reads one of its segments.

    Attributes:
        summary: T, the document's summary; "" for a document of one segment.
        question: the user's question (orientation), or "".
        tagged: entities that a tagger found in the segment. The caller merges them with the
            reasoner's; passes that build on all entities need them here.
        window: L of the run; 0: the reasoner's own window.
        attempt: number of the first attempt; replies of earlier attempts could not be used.
        open_entity: `False`: only the tagger's entities count, so none are asked for (ablation).
        speaker: the speaker of a turn, if known; "I" in the text means the speaker.
        before: the last lines of the segment before; "" for the first one.
    """

    title: str = ""
    summary: str = ""
    question: str = ""
    tagged: tuple[Mention, ...] = ()
    window: int = 0
    attempt: int = 0
    open_entity: bool = True
    speaker: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class Folded:
    """Two relations merged into one.

    Attributes:
        description: "" if no reply could be used.
        questions: Q_s, the questions resolved to merge them.
    """

    description: str = ""
    questions: tuple[str, ...] = ()


@runtime_checkable
class Reasoner(Protocol):
    """Reads and answers: by prompts to a chat model, or locally without a model."""

    @property
    def name(self) -> str:
        """The name that the ledger records: kind, model and prompt versions."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether it works without a chat model (synchronous, deterministic, free)."""
        ...

    async def summarise(self, title: str, segments: Sequence[Segment]) -> str:
        """Return the document's summary T; called only for at least two segments."""
        ...

    async def extract(self, segment: Segment, reading: Reading) -> Contribution:
        """First pass: entities, statements and proposed questions of one segment.

        Raises:
            ModelOutputError: no usable reply after all tries at higher temperatures.
        """
        ...

    async def supplement(
        self, segment: Segment, reading: Reading, known: Contribution, questions: Sequence[str]
    ) -> Contribution:
        """Second pass: additions to the sub-graph from the accepted questions."""
        ...

    async def fold(
        self,
        relations: tuple[str, str],
        texts: tuple[str, str],
        *,
        summary: str = "",
        question: str = "",
    ) -> Folded:
        """Merge two relations of the same two entities; `compact` never calls it.

        Args:
            relations: r_n and r_k, each as lines `head - description - tail`.
            texts: texts of the two segments that state them, S_n and S_k.
            summary: the document's summary T.
            question: the user's question Q; "" if there is none.
        """
        ...

    async def query_entities(self, context: AskContext) -> Sequence[str]:
        """Return the names in the question and its options (E_s)."""
        ...

    def room(self, context: AskContext) -> int:
        """Return the tokens left for passages after template, question, options and reserve.

        Raises:
            WindowTooSmall: no token would be left.
        """
        ...

    def size(self, passage: Passage) -> int:
        """Return the number of tokens of a passage in a prompt, with label and separators."""
        ...

    async def judge(
        self, context: AskContext, passages: Sequence[Passage], *, force: bool = False
    ) -> Verdict:
        """Answer from the passages, or say what is missing; `force` must answer."""
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
        """Entity Trial's update E <- LLM(E, R, S_imp, Q).

        Args:
            current: canonical names of E.
            candidates: known names with their segment counts, most frequent first; the last ones
                are left out if they do not fit the window.

        Returns:
            At least one name of `candidates`, or `current` unchanged; no name if the window is used
            up.
        """
        ...

    async def elaborate(
        self, context: AskContext, entities: Sequence[str], relations: Sequence[str]
    ) -> str:
        """Graph Expansion Search's elaborated query."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """One of several segments to read in one call.

    Attributes:
        known: result of its first reading; `None` for the first reading itself.
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
        """Maximum tokens of segments that share a call; 0: each has its own call."""
        ...

    async def extract_together(self, jobs: Sequence[Job]) -> Sequence[Contribution | None]:
        """Make the first pass over several segments in one call.

        Returns:
            Contributions in the order of `jobs`; `None` for a segment without anything usable in
            the reply.

        Raises:
            ModelOutputError: the whole reply is unusable.
            WindowTooSmall: the segments do not fit the window together.
        """
        ...

    async def supplement_together(self, jobs: Sequence[Job]) -> Sequence[Contribution | None]:
        """Make the second pass over several segments in one call; see `extract_together`."""
        ...


Phase = Literal["extract", "supplement"]
"""A pass over segments: the first one, or the second one with the accepted questions."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of one job.

    Attributes:
        contribution: the contribution; `None` if no reply could be used.
        error: the reason why there is none.
        raw: the unusable reply.
    """

    segment_id: str
    contribution: Contribution | None = None
    error: str = ""
    raw: str = ""


class Executor(Protocol):
    """Reads segments in this process, or on other machines.

    Jobs and results are plain data, and no job depends on another, so an executor decides nothing
    about the memory: the caller commits and merges the results.
    """

    async def map(
        self,
        phase: Phase,
        calls: Sequence[Sequence[Job]],
        done: Callable[[Sequence[JobResult]], Awaitable[None]],
        *,
        was_answered: bool = False,
    ) -> None:
        """Read segments.

        Args:
            calls: jobs; those given together may share one call of a chat model.
            done: gets results as they arrive, in any order; in the end one for each job.
            was_answered: whether the chat model has answered in this run; if so, a silent model is
                tried again.

        Raises:
            CapReached: a cap of the run; earlier results were passed to `done`.
            ModelUnavailable: the model does not answer.
        """
        ...


class EntityTagger(Protocol):
    """Finds typed entities in a text."""

    @property
    def name(self) -> str:
        """E.g. `rules`, `corenlp`, `stanza`."""
        ...

    async def tag(self, text: str) -> Sequence[Mention]:
        """Return the entities of one segment, in order of first occurrence.

        Raises:
            MissingError: something that it needs is missing.
            TaggerUnavailable: it does not answer.
        """
        ...

    async def close(self) -> None:
        """Stop what it started; a second call does nothing."""
        ...
