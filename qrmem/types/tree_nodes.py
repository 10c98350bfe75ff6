"""Trees of summaries over a document (RAPTOR; ILM-TR, section 3)."""

from dataclasses import dataclass, field
from typing import Literal

from qrmem.types.shown import Short
from qrmem.types.usage import Usage

TreeKind = Literal["ilm", "raptor"]
"""`ilm`: each segment has a node with summary and surprises. `raptor`: plain summaries of
clusters of segments."""


@dataclass(frozen=True, slots=True, repr=False)
class TreeNode(Short):
    """A summary of segments, or of the nodes below it.

    Attributes:
        key: a hash of its settings and of the nodes that it covers; equal trees have equal keys.
        level: 1 above segments; one more than the highest node below.
        surprises: sentences that do not follow from the rest of the text.
        covers: keys of the nodes below; ids of segments for a node that has no nodes below.
        segments: ids of all segments below, in order.
        is_well_formed: whether the model's reply had the two labels; `True` without a model.
    """

    key: str
    document_id: str
    level: int
    summary: str
    surprises: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
    is_well_formed: bool = True


@dataclass(frozen=True, slots=True)
class Grouping:
    """The grouping of a tree's nodes.

    Attributes:
        reduction: the reduction of their vectors: `umap`, `pca` or `pca+umap`; `none`: they were
            not reduced, or nothing was clustered.
        groups: number of groups on all levels.
        runs: number of groups that are consecutive pieces of the text, because their rows are
            equal.
    """

    reduction: str = "none"
    groups: int = 0
    runs: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class Tree(Short):
    """The tree of one document.

    Attributes:
        nodes: those below before those above.
        roots: keys of the nodes that no other node covers.
        is_current: whether it covers every segment of its document.
        grouping: what was really done to group its nodes.
    """

    document_id: str
    kind: TreeKind
    nodes: tuple[TreeNode, ...]
    roots: tuple[str, ...]
    is_current: bool = True
    grouping: Grouping = field(default_factory=Grouping)


@dataclass(frozen=True, slots=True)
class TreeTop:
    """A tree without its nodes.

    Attributes:
        nodes: how many it has.
        roots: keys of the nodes that no other node covers.
        is_current: whether it covers every segment of its document.
        grouping: what was really done to group its nodes.
    """

    document_id: str
    kind: TreeKind
    nodes: int
    roots: tuple[str, ...]
    is_current: bool = True
    grouping: Grouping = field(default_factory=Grouping)


@dataclass(frozen=True, slots=True, repr=False)
class TreeReport(Short):
    """The report of building trees.

    Attributes:
        documents: ids of the documents that have a complete tree now.
        made: nodes that were made in this run.
        reused: nodes that existed already.
        levels: the highest level.
        malformed: nodes of this run whose reply lacked the two labels, twice.
        seconds: wall time.
        stopped: which cap ended the run early; "" if none did.
    """

    documents: tuple[str, ...] = ()
    made: int = 0
    reused: int = 0
    levels: int = 0
    malformed: int = 0
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    stopped: str = ""
