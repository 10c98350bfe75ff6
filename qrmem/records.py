"""The values that travel between the layers; all frozen, none does I/O.

Names follow QRMeM (section 2): a document is cut into segments (the static memory); what was read
out of a segment is a contribution (its sub-graph G_k and its questions); entities and relations of
the structured memory are merged from contributions and never stored as facts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Scalar = str | int | float | bool
"""What a metadata value may be: stores keep primitive values only."""

Orientation = Literal["none", "local", "full"]
BuildMode = Literal["compact", "paper"]
Status = Literal["answered", "forced", "unanswerable"]
SegmentState = Literal["pending", "extracted", "ok", "partial", "failed"]
ContributionKind = Literal["extraction", "supplement", "oriented"]


# --- what the user gives -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A page or chapter of a document: where it starts and what it is called."""

    start: int
    label: str


@dataclass(frozen=True, slots=True)
class Document:
    """A text given by the user.

    Attributes:
        text: normalised text; every offset in the package counts its characters.
        title: shown with citations.
        id: unique in a namespace; `None` lets `add` derive it (path, else a hash of the text).
        metadata: primitive values to narrow `search` and `ask` by.
        parts: pages or chapters in order of `start`; empty if the format has none.
    """

    text: str
    title: str = ""
    id: str | None = None
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Segment:
    """A sentence-aligned piece of a document, immutable, in order (Q01, Q02).

    Attributes:
        id: hash of document id, text, and which occurrence of that text it is.
        index: position in the document, from 0.
        start: first character in the document's text; `text == document.text[start:end]`.
        tokens: size by the counter recorded in the namespace.
        part: label of the page or chapter that it starts in, or "".
    """

    id: str
    document_id: str
    index: int
    start: int
    end: int
    text: str
    tokens: int
    part: str = ""


# --- what is read out of a segment ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity as one segment names it.

    Attributes:
        name: the fullest form in the segment.
        type: `PERSON`, `PLACE`, `ORGANISATION`, `DATE`, `NUMBER`, `WORK`, …, or "" if unknown.
        forms: all surface forms in the segment, each found in it up to white space; holds `name`.
        count: how often any of the forms occurs, at least 1.
        question: text of the generated question that added it, "" for the first extraction.
    """

    name: str
    type: str = ""
    forms: tuple[str, ...] = ()
    count: int = 1
    question: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """An open relation as one segment states it: two names and a description in plain words (Q06).

    The direction is that of the description; the folded relation has none (DESIGN, section 8).
    """

    head: str
    tail: str
    description: str
    question: str = ""


@dataclass(frozen=True, slots=True)
class Loss:
    """A reply of a model of which a part could not be used.

    Attributes:
        reason: what had to be left out.
        raw: the reply.
        attempt: number of the last try that was made for it.
    """

    reason: str
    raw: str
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one pass over one segment added: the only facts that a store keeps of it.

    Attributes:
        kind: `extraction` (first pass), `supplement` (asked with accepted questions, Q10) or
            `oriented` (asked with the user's question).
        asked: the questions that the pass was asked with, in order; `()` for an extraction.
        questions: questions that the pass proposes, in order; only an extraction proposes any.
        tagger: the tagger whose entities are in, or "" (marked when a tagger failed: `!name`).
        losses: what of the replies could not be used; then the segment is `partial`.
    """

    segment_id: str
    kind: ContributionKind
    mentions: tuple[Mention, ...] = ()
    statements: tuple[Statement, ...] = ()
    questions: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    tagger: str = ""
    losses: tuple[Loss, ...] = ()

    @property
    def next_attempt(self) -> int:
        """Number of the first try that was not made yet, if the pass is to be made again."""
        return max((loss.attempt + 1 for loss in self.losses), default=0)


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """How far one segment is; the ledger is the truth about progress.

    Attributes:
        reason: why it is, or is going to be, `partial` or `failed`, else "".
        reasoner: which reasoner, build mode and prompt versions read it.
    """

    segment_id: str
    state: SegmentState
    reason: str = ""
    reasoner: str = ""


# --- the merged memory ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of the structured memory: canonical name e', mentions M, segments N (Q11).

    Attributes:
        key: stable id within the namespace.
        forms: surface forms with how often each occurs, most frequent first.
        segments: ids of the segments that it occurs in, in (document id, index) order.
        questions: generated questions that added it, in the same order.
    """

    key: str
    name: str
    type: str
    forms: tuple[tuple[str, int], ...]
    segments: tuple[str, ...]
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement with its names resolved to entities, and where it stands.

    Attributes:
        head: entity key.
        tail: entity key.
        segment_id: the segment that states it.
    """

    head: str
    tail: str
    description: str
    segment_id: str
    question: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """An edge of the structured memory: all facts between one unordered pair of entities (Q12).

    Attributes:
        key: `<smaller entity key>|<larger entity key>`.
        head: entity key of the first fact's head.
        tail: entity key of the first fact's tail.
        description: the folded description.
        facts: what it was folded from, in (document id, segment index) order.
    """

    key: str
    head: str
    tail: str
    description: str
    facts: tuple[Fact, ...]

    @property
    def segments(self) -> tuple[str, ...]:
        """Ids of the segments that state it, without repeats."""
        return tuple(dict.fromkeys(fact.segment_id for fact in self.facts))


@dataclass(frozen=True, slots=True)
class Question:
    """A generated question that was accepted into its document's pool (Q08, Q09)."""

    text: str
    segment_id: str
    kind: Literal["generated", "user"] = "generated"


@dataclass(frozen=True, slots=True)
class Merge:
    """Why one name counts as another; shown by `show --merges`.

    Attributes:
        name: the name that was folded in.
        into: canonical name of the entity.
        entity: its key.
        reason: `exact`, `alias`, `similar` or `user`.
        score: in [0, 1]; 1 for everything but `similar`.
    """

    name: str
    into: str
    entity: str
    reason: Literal["exact", "alias", "similar", "user"]
    score: float = 1.0


@dataclass(frozen=True, slots=True)
class MergeDecision:
    """A user's word on two names, stored as a fact; it beats every rule."""

    first: str
    second: str
    same: bool


# --- finding and answering -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked segment.

    Attributes:
        score: higher is better; comparable within one search only.
        via: how it was reached, in words.
    """

    document_id: str
    title: str
    segment_id: str
    text: str
    score: float
    via: str
    part: str = ""


@dataclass(frozen=True, slots=True)
class Citation:
    """Where an answer stands: `quote == document.text[start:end]`.

    Attributes:
        whole: no quote could be located, so the whole segment is cited.
    """

    document_id: str
    segment_id: str
    start: int
    end: int
    quote: str
    title: str = ""
    part: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class ScoredEdge:
    """An edge that a strategy weighed at a step."""

    relation: str
    head: str
    tail: str
    description: str
    score: float
    taken: bool = False


@dataclass(frozen=True, slots=True)
class ScoredSegment:
    """A segment that a step read or dropped, with the score that decided it."""

    segment_id: str
    score: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trail.

    Attributes:
        n: from 1.
        action: `start`, `read`, `expand`, `revise`, `elaborate`, `force` or `orient`.
        entities: names of the entities that the step stands on.
        edges: frontier edges with their scores, best first (at most 20 are kept).
        read: segments in the window, in the order in which they were read.
        dropped: segments that were found and did not fit.
        verdict: `answerable`, `unanswerable` or "" where nothing was judged.
        reason: the reasoner's words.
        tokens: prompt tokens counted before the call; 0 where nothing was asked.
        seconds: wall time of the step.
    """

    n: int
    action: str
    entities: tuple[str, ...] = ()
    edges: tuple[ScoredEdge, ...] = ()
    read: tuple[ScoredSegment, ...] = ()
    dropped: tuple[ScoredSegment, ...] = ()
    verdict: str = ""
    reason: str = ""
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class StageUsage:
    """What one stage of one run used."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run used, by stage; construction and online are summed up apart (Table 6).

    Attributes:
        construction: stages that read documents into the memory.
        online: stages that answer questions.
    """

    construction: Mapping[str, StageUsage] = field(default_factory=dict)
    online: Mapping[str, StageUsage] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """Chat calls of all stages."""
        return sum(s.calls for part in (self.construction, self.online) for s in part.values())

    @property
    def tokens_in(self) -> int:
        """Prompt tokens of all stages."""
        return sum(s.tokens_in for part in (self.construction, self.online) for s in part.values())

    @property
    def tokens_out(self) -> int:
        """Reply tokens of all stages."""
        return sum(s.tokens_out for part in (self.construction, self.online) for s in part.values())


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What all runs used together, in one stage, in one run or on one day.

    Attributes:
        key: the stage, the run's id, or the day (UTC).
        calls: those that were sent; replies from the cache are counted apart.
        failed: calls to which no reply came.
        requests: what was sent for the calls, retries included.
        cached_tokens: prompt tokens that the server had cached.
        cost: of the calls whose price was known, or `None`.
        unpriced: calls whose price was not.
        seconds: sum over the calls, many of which ran at the same time.
        began: when the first of them ended.
    """

    phase: Literal["construction", "online"]
    key: str
    models: tuple[str, ...]
    calls: int
    from_cache: int
    failed: int
    requests: int
    tokens_in: int
    tokens_out: int
    cached_tokens: int
    cost: float | None
    unpriced: int
    seconds: float
    began: str


@dataclass(frozen=True, slots=True)
class Trail:
    """A recorded run: what was asked, each step, what came out."""

    id: str
    question: str
    strategy: str
    window: int
    status: Status
    answer: str
    steps: tuple[Step, ...]
    usage: Usage
    citations: tuple[Citation, ...] = ()
    choices: tuple[str, ...] = ()
    reasoner: str = ""
    created: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered and what it rests on.

    Attributes:
        text: the answer; for choices the chosen option's text; "" when unanswerable.
        status: `answered`, `forced` (the trials were used up) or `unanswerable`.
        choice: index of the chosen option, or `None`.
        reason: the reasoner's words for the verdict.
    """

    text: str
    status: Status
    citations: tuple[Citation, ...]
    trail: Trail
    usage: Usage
    choice: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody said in a conversation; a document of its own.

    Attributes:
        id: of the document.
        number: of the turn in the namespace, from 1, in the order in which they were added.
        role: `user`, `assistant`, or what else the model's messages know.
        speaker: a name, "" where only the role is known.
        at: when, in ISO form.
    """

    id: str
    number: int
    role: str
    text: str
    at: str = ""
    session: str = ""
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a model is to know of a conversation before it answers (FragRel, B.3).

    Attributes:
        recent: the last turns of the session, in order; they go to the model as they are.
        related: earlier turns that belong to the prompt, in order of time.
        corrections: a related turn's id to those of later turns that seem to correct it.
        tokens: of recent and related turns together.
    """

    recent: tuple[Turn, ...]
    related: tuple[Turn, ...]
    corrections: Mapping[str, tuple[str, ...]]
    tokens: int

    @property
    def text(self) -> str:
        """The related turns as a model reads them: who, when, what, and what corrects it."""
        by_id = {turn.id: turn for turn in self.related}
        lines = []
        for turn in self.related:
            lines.append(f"[{turn.at}] {turn.speaker or turn.role}: {turn.text}")
            for later in (by_id[id] for id in self.corrections.get(turn.id, ()) if id in by_id):
                lines.append(f"  (said at {turn.at}; corrected at {later.at}, see below)")
        return "\n".join(lines)

    @property
    def messages(self) -> list[dict[str, str]]:
        """The recent turns as chat messages."""
        return [{"role": turn.role, "content": turn.text} for turn in self.recent]


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """A document without its text, and how far its segments are."""

    id: str
    title: str
    metadata: Mapping[str, Scalar]
    characters: int
    segments: int
    states: Mapping[str, int]
    summary: str = ""


@dataclass(frozen=True, slots=True)
class AddReport:
    """What one `add` did.

    Attributes:
        added: ids of documents that were new.
        updated: ids of documents whose text was replaced.
        unchanged: ids of documents that were there already, complete.
        read: segments read in this run.
        reused: segments of replaced documents that were not read again.
        states: segments of the given documents by ledger state.
        problems: `(document id, segment index or -1, reason)` for all that is not `ok`.
        resumed: ids of documents that an earlier run had begun.
        passed_over: how many source files were not read, by reason: ignored by git, vendored,
            generated, too large.
        unparsed: source files without a syntax tree: broken, or no grammar is installed.
        stopped: the cap that ended the run early, in words, or "".
    """

    added: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: tuple[str, ...]
    read: int
    reused: int
    states: Mapping[str, int]
    problems: tuple[tuple[str, int, str], ...]
    usage: Usage
    seconds: float
    resumed: tuple[str, ...] = ()
    passed_over: Mapping[str, int] = field(default_factory=dict)
    unparsed: tuple[str, ...] = ()
    stopped: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether every segment ended `ok`."""
        return not self.problems and not self.stopped


@dataclass(frozen=True, slots=True)
class Archived:
    """What one `export` wrote or one `load` read.

    Attributes:
        checksum: SHA-256 of the archive without its last line; equal memories have equal ones.
    """

    path: str
    documents: int
    segments: int
    entities: int
    checksum: str


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """What one import of extractions made elsewhere did.

    Attributes:
        documents: that were new.
        attached: that were there.
        segments: whose contribution is new or has gained something.
        entities: names that stand in their passage.
        triples: both ends of which stand in one segment of their passage.
        absent_entities: names that do not, and were left out.
        absent_triples: the same.
        malformed: what a model wrote in the place of a triple or a name, left out.
    """

    documents: int
    attached: int
    segments: int
    entities: int
    triples: int
    absent_entities: int
    absent_triples: int
    malformed: int


@dataclass(frozen=True, slots=True)
class EntityView:
    """An entity with what hangs on it.

    Attributes:
        relations: its folded relations, those with most facts first.
        neighbours: entity key to canonical name, for the relations' other ends.
    """

    entity: Entity
    relations: tuple[Relation, ...]
    neighbours: Mapping[str, str]
    questions: tuple[Question, ...]
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """A namespace in figures.

    Attributes:
        counts: documents, segments, entities, facts, questions, trails.
        states: segments by ledger state.
        problems: `(document id, segment index, reason)` of all segments that are not `ok`, or
            that were read and not merged.
        usage: of all runs so far, construction and online apart.
        warnings: what a user should look at, in words.
    """

    location: str
    namespace: str
    tokenizer: str
    segment_tokens: int
    embedder: str
    dimension: int
    revision: int
    counts: Mapping[str, int]
    states: Mapping[str, int]
    problems: tuple[tuple[str, int, str], ...]
    usage: Usage
    warnings: tuple[str, ...] = ()
