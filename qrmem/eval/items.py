"""Records of an evaluation: items over contexts, and the results of systems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from qrmem.types import Document, StageUsage, Status, Step, Usage

Rule = Literal["hotpotqa", "musique", "longbench"]
"""Data set whose script defines F1."""
WHOLE = "whole"
"""Value of the label `answers` for a question whose answer is not shortened, such as a summary."""


@dataclass(frozen=True, slots=True)
class Item:
    """One question.

    Attributes:
        id: unique in its data set.
        question: the question.
        answers: all right answers; empty without reference answers.
        context: id of its context.
        choices: options of a multiple-choice question.
        choice: index of the right option.
        gold: ids of the documents with the answer, in reasoning order.
        facts: supporting sentences as (document id, index of the sentence).
        labels: labels to split results by, such as `difficulty` or `type`.
        is_answerable: whether its context has the answer.
        spans: places of supporting sentences, as (document id, start, end) in characters.
        absent: number of turns or passages that the data set names as evidence but does not
            contain.
        rubric: criteria by which a judge rates an answer; without them it compares the answer with
            the right ones.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    context: str
    choices: tuple[str, ...] = ()
    choice: int | None = None
    gold: tuple[str, ...] = ()
    facts: tuple[tuple[str, int], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    is_answerable: bool = True
    spans: tuple[tuple[str, int, int], ...] = ()
    absent: int = 0
    rubric: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """The documents of questions; they form one memory.

    Attributes:
        sentences: document id to its sentences, if the data set has them, for supporting facts.
    """

    id: str
    documents: tuple[Document, ...]
    sentences: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Corpus:
    """The choice of passages for questions.

    Attributes:
        kind: `own` (each question's own passages), `union` (those of all questions) or `file`.
        path: file of the corpus, for `file`.
    """

    kind: str = "own"
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file.

    Attributes:
        verified: whether its checksum is the published one; `None` if none is published.
    """

    path: Path
    sha256: str
    verified: bool | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """Items and their contexts."""

    name: str
    items: tuple[Item, ...]
    contexts: Mapping[str, Context]
    files: tuple[DataFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """A user's turn in a session, and a system's reply.

    Attributes:
        id: id of the document with the user's turn.
    """

    id: str
    said: str
    replied: str

    @property
    def text(self) -> str:
        """Turn and reply as text for a model."""
        return f"User: {self.said}\nReply: {self.replied}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A system's result for one item, before shortening and scoring.

    Attributes:
        text: the raw answer; "" if there is none.
        choice: index of the chosen option.
        read: ids of the segments of the last reading.
        ranked: ids of documents, best first.
        segments: ids of ranked segments, best first.
        cited: sentences that the answer quotes, as (document id, index of the sentence).
        steps: the trail.
        memory: key of the memory that it used, "" for none.
        shown: spans in the last reading, as (document id, start, end).
        is_shown_known: whether `shown` was recorded.
        rounds: for a session, all rounds before the question, with this system's replies.
    """

    text: str = ""
    choice: int | None = None
    status: Status = "unanswerable"
    reason: str = ""
    read: tuple[str, ...] = ()
    ranked: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
    cited: tuple[tuple[str, int], ...] = ()
    steps: tuple[Step, ...] = ()
    usage: Usage = field(default_factory=Usage)
    memory: str = ""
    rounds: tuple[Round, ...] = ()
    shown: tuple[tuple[str, int, int], ...] = ()
    is_shown_known: bool = False

    @property
    def is_ranking(self) -> bool:
        """Whether it is only a ranking, without an answer to score."""
        return self.status == "unanswerable" and not self.steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The stored result of one system for one item.

    Attributes:
        short: the answer after the short-answer step.
        seconds: wall time, with waiting for the model.
        error: why there is no answer; such a row is unscored, not zero.
    """

    item: str
    system: str
    prediction: Prediction = field(default_factory=Prediction)
    short: str = ""
    seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """The way to build a memory.

    Attributes:
        reader: `local` (no chat model; for search and retrieval baselines), `compact` or `paper`.
        question: shapes the graph (orientation `full`).
        open_entity: ablation.
        graph_update: ablation.
        words: words of a fragment, counted like LongBench; 0 uses segments.
        tree: kind of the tree of summaries over each document; "" for none.
        is_paper_tree: whether the tree is built as in ILM-TR: clusters over whole levels, the
            parameters of its appendix A.3.
        leaf: tokens of a segment; 0 uses the default.
        summary: tokens of a node's summary.
    """

    reader: str = "local"
    question: str = ""
    open_entity: bool = True
    graph_update: bool = True
    words: int = 0
    tree: Literal["", "ilm", "raptor"] = ""
    is_paper_tree: bool = False
    leaf: int = 0
    summary: int = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The stored cost of building a memory.

    Attributes:
        memory: key of the memory.
        context: id of its context.
        states: number of segments in each state.
        problems: (document, segment or -1, reason) of segments that were not read, or only in part.
        stages: calls of all builds so far, with replies from the cache.
        nodes: number of nodes of its trees.
        malformed: number of nodes whose replies lacked the two labels twice.
        seconds: time of this build.
    """

    memory: str
    context: str
    build: Build
    documents: int
    states: Mapping[str, int]
    problems: tuple[tuple[str, int, str], ...]
    stages: Mapping[str, StageUsage]
    seconds: float
    nodes: int = 0
    malformed: int = 0
