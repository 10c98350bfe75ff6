"""The values that travel between the layers; all frozen, none does I/O.

Names follow QRMeM (section 2): a document is cut into segments (the static memory); what was read
out of a segment is a contribution (its sub-graph G_k and its questions); entities and relations of
the structured memory are merged from contributions and never stored as facts.
"""

from qrmem.records.answers import (
    Answer,
    Citation,
    Hit,
    ScoredEdge,
    ScoredSegment,
    Step,
    Trail,
    Words,
)
from qrmem.records.documents import Document, Part, Segment
from qrmem.records.graph import Entity, Fact, Merge, MergeDecision, Question, Relation
from qrmem.records.kinds import (
    BuildMode,
    ContributionKind,
    Orientation,
    Scalar,
    SegmentState,
    Status,
)
from qrmem.records.readings import Contribution, LedgerRow, Loss, Mention, Statement
from qrmem.records.reports import (
    AddReport,
    Archived,
    DocumentInfo,
    EntityView,
    ExtractionReport,
    MemoryStatus,
)
from qrmem.records.turns import Recalled, Turn
from qrmem.records.usage import StageUsage, Usage, UsageRow

__all__ = [
    "AddReport",
    "Answer",
    "Archived",
    "BuildMode",
    "Citation",
    "Contribution",
    "ContributionKind",
    "Document",
    "DocumentInfo",
    "Entity",
    "EntityView",
    "ExtractionReport",
    "Fact",
    "Hit",
    "LedgerRow",
    "Loss",
    "MemoryStatus",
    "Mention",
    "Merge",
    "MergeDecision",
    "Orientation",
    "Part",
    "Question",
    "Recalled",
    "Relation",
    "Scalar",
    "ScoredEdge",
    "ScoredSegment",
    "Segment",
    "SegmentState",
    "StageUsage",
    "Statement",
    "Status",
    "Step",
    "Trail",
    "Turn",
    "Usage",
    "UsageRow",
    "Words",
]
