"""What an evaluation is made of: items over contexts, and what a system gave for each item."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from qrmem.types import Document, StageUsage, Status, Step, Usage

Rule = Literal["hotpotqa", "musique", "longbench"]
"""Whose F1 a data set is scored by."""
WHOLE = "whole"
"""Label `answers` of a question whose answer is compared as it is, such as a summary."""


@dataclass(frozen=True, slots=True)
class Item:
    """One question.

    Attributes:
        id: unique in its data set.
        answers: every answer that counts as right; empty if there is nothing to compare with.
        context: id of the context that it is asked of.
        choices: options of a multiple-choice question.
        choice: index of the right option.
        gold: ids of the documents that hold the answer, in reasoning order.
        facts: supporting sentences as (document id, place of the sentence).
        labels: what results are split by, such as `difficulty` or `type`.
        is_answerable: whether its context holds the answer.
        spans: where supporting sentences stand, as (document id, start, end) in characters.
        absent: how many turns or passages the data set names as evidence that are not in its texts.
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


@dataclass(frozen=True, slots=True)
class Context:
    """The documents that questions are asked of: one memory.

    Attributes:
        sentences: of a document whose sentences are given, its sentences; for supporting facts.
    """

    id: str
    documents: tuple[Document, ...]
    sentences: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Corpus:
    """What questions are asked of.

    Attributes:
        kind: `own` (each question's own passages), `union` (of all questions together) or `file`.
        path: of the corpus, for `file`.
    """

    kind: str = "own"
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that data came from.

    Attributes:
        verified: whether its checksum is the published one; `None` where none is published.
    """

    path: Path
    sha256: str
    verified: bool | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """Items and the contexts that they are asked of."""

    name: str
    items: tuple[Item, ...]
    contexts: Mapping[str, Context]
    files: tuple[SourceFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """What a user said in a session, and what a system replied.

    Attributes:
        id: of the document that holds what was said.
    """

    id: str
    said: str
    replied: str

    @property
    def text(self) -> str:
        """Both, as a model reads them."""
        return f"User: {self.said}\nReply: {self.replied}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a system gave for one item, before it is shortened and scored.

    Attributes:
        text: the raw answer; "" where it gave none.
        choice: index of the option that it chose.
        read: ids of the segments that the last answer was read from.
        ranked: ids of documents, best first.
        segments: ids of ranked segments, best first.
        cited: sentences that the answer quotes, as (document id, place of the sentence).
        steps: the trail.
        memory: key of the memory that it used, "" for none.
        shown: what the last reading saw, as (document id, start, end).
        is_shown_known: whether that was recorded; nothing shown is not the same as not known.
        rounds: of a session, all before the question, as this system replied to them.
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
        """Whether nothing was asked: it ranks, and has no answer that could be right or wrong."""
        return self.status == "unanswerable" and not self.steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One item under one system, as the run directory keeps it.

    Attributes:
        short: the answer after the shared short-answer step.
        seconds: wall time, waiting for the model included.
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
    """How a memory is built.

    Attributes:
        reader: `local` (no chat model; what search and retrieval baselines stand on), `compact` or
            `paper`.
        question: shapes the graph (orientation `full`).
        open_entity: ablation.
        graph_update: ablation.
        words: of a fragment, as LongBench counts them; 0: segments as usual.
        tree: kind of the tree of summaries over each document; "": there is none.
        is_paper_tree: whether it is made as in ILM-TR: clusters over whole levels, the parameters
            of its appendix A.3.
        leaf: tokens of a segment; 0: as usual.
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
    """What building a memory took, as the run directory keeps it.

    Attributes:
        memory: its key.
        context: id of what it is of.
        states: how many segments ended in which state.
        problems: (document, segment or -1, reason) of what was not read, or not wholly.
        stages: calls of all builds so far, replies from the cache included.
        nodes: of its trees.
        malformed: nodes whose reply lacked the two labels, twice.
        seconds: of this build.
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
