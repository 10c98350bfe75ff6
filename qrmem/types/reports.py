"""Reports about a memory and about what a method did."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from qrmem.types.documents import MetaValue, Segment
from qrmem.types.knowledge_graph import Entity, MergeDecision, Question, Relation
from qrmem.types.shown import Short
from qrmem.types.usage import CostEstimate, Usage

T = TypeVar("T")


class Page(list[T]):
    """A part of a longer list.

    Attributes:
        total: number of items of the whole list.
    """

    def __init__(self, items: Iterable[T], total: int) -> None:
        super().__init__(items)
        self.total = total


@dataclass(frozen=True, slots=True, repr=False)
class DocumentInfo(Short):
    """A document without its text, with the states of its segments.

    Attributes:
        states: number of segments by ledger state.
        digest: SHA-256 of the text, in hexadecimal.
        facts: number of facts that its segments state.
    """

    id: str
    title: str
    metadata: Mapping[str, MetaValue]
    characters: int
    segments: int
    states: Mapping[str, int]
    summary: str = ""
    digest: str = ""
    facts: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class AddReport(Short):
    """The report of one `add`.

    Attributes:
        added: ids of documents that were new.
        updated: ids of documents whose text was replaced.
        unchanged: ids of documents that were already complete.
        read: segments read in this run.
        reused: segments of replaced documents that were not read again.
        states: segments of the given documents by ledger state.
        problems: `(document id, segment index or -1, reason)` for everything that is not `ok`.
        resumed: ids of documents that an earlier run had begun.
        passed_over: number of files in folders that were not read, by reason: of an unsupported
            kind; for source code also ignored by git, vendored, generated, too large.
        unparsed: source files without a complete syntax tree: broken, or no grammar is installed.
        stopped: the cap that ended the run early, as text, or "".
        warnings: warnings for the user, as text.
        reader: the reasoner, build mode and prompt versions that this run reads with.
        readers: those that the unchanged documents were read with.
        left_out: number of entities and relations that a closed schema excludes.
        boilerplate: number of segments read in this run that are only headings, contents, an index
            or a licence, and gave no entities.
        dropped: `(document id, segment index, reason)` of items of replies of a chat model that
            could not be used.
        gone: ids of documents that are kept though their files no longer exist: with `update` those
            below the given folders, and any whose name a new file from another path has.
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
    warnings: tuple[str, ...] = ()
    reader: str = ""
    readers: tuple[str, ...] = ()
    left_out: int = 0
    boilerplate: int = 0
    gone: tuple[str, ...] = ()
    dropped: tuple[tuple[str, int, str], ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether every segment ended `ok`."""
        return not self.problems and not self.stopped


@dataclass(frozen=True, slots=True)
class Archived:
    """The report of one `export` or one `load`.

    Attributes:
        checksum: SHA-256 of the archive without its last line; equal memories have equal ones.
    """

    path: str
    documents: int
    segments: int
    entities: int
    checksum: str


@dataclass(frozen=True, slots=True, repr=False)
class ExtractionReport(Short):
    """The report of one import of other programs' extractions.

    Attributes:
        documents: number of new documents.
        attached: number of existing documents.
        segments: number of segments with new facts.
        entities: number of names that occur in their passage.
        triples: number of triples whose ends occur in one segment of their passage.
        absent_entities: number of names that do not occur and were left out.
        absent_triples: the same for triples.
        malformed: number of malformed records, which were left out.
        left_out: passages without a text, by their place in the file.
    """

    documents: int
    attached: int
    segments: int
    entities: int
    triples: int
    absent_entities: int
    absent_triples: int
    malformed: int
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class EntityView(Short):
    """An entity with its relations, questions and segments.

    Attributes:
        relations: its folded relations, those with most facts first.
        neighbours: canonical names of the relations' other ends, by entity key.
        relation_count: number of all relations, if `relations` has a part of them.
    """

    entity: Entity
    relations: tuple[Relation, ...]
    neighbours: Mapping[str, str]
    questions: tuple[Question, ...]
    segments: tuple[Segment, ...]
    relation_count: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class JudgeReport(Short):
    """A chat model's judgements on pairs of statements that may contradict each other.

    Attributes:
        pairs: number of judged pairs; in a plan, of pairs to judge.
        replaced: number of pairs whose later statement replaces the earlier one.
        agreed: number of pairs with the same meaning.
        beside: number of pairs that may both hold.
        left: number of pairs left out, beyond the limit of one call per ten turns.
        calls: number of calls; in a plan, of expected calls.
        tokens_in: prompt tokens of these calls.
        problems: pairs without a usable reply; the same call asks again.
        stopped: the cap that was reached, or "".
    """

    pairs: int = 0
    replaced: int = 0
    agreed: int = 0
    beside: int = 0
    left: int = 0
    calls: int = 0
    tokens_in: int = 0
    problems: tuple[str, ...] = ()
    stopped: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, repr=False)
class MemoryStatus(Short):
    """Figures, problems and costs of a namespace.

    Attributes:
        counts: documents, segments, entities, facts, questions, trails.
        states: segments by ledger state.
        problems: `(document id, segment index, reason)` of all segments that are not `ok`, or that
            are not merged yet.
        usage: usage of all runs so far, construction and online separately.
        warnings: warnings for the user, as text.
        readers: readers of its segments: kind, model, build mode, set of prompts and schema with
            their checksums.
        read_otherwise: number of segments that were read with other settings than the present ones,
            by difference (`without a model`, `under another schema`, …).
        reading_again: estimated cost of reading those again, or `None`.
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
    readers: tuple[str, ...] = ()
    read_otherwise: Mapping[str, int] = field(default_factory=dict)
    reading_again: CostEstimate | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Repair(Short):
    """Differences between a memory's graph and its facts, and how they were repaired.

    Attributes:
        differences: the differences, as text.
        decisions: manual changes that are kept as decisions on names.
        damaged: ids of documents whose segments do not match their text any more; add them again
            with `rebuild=True`.
    """

    differences: tuple[str, ...]
    decisions: tuple[MergeDecision, ...]
    damaged: tuple[str, ...]
