"""The values that travel between the layers, and the seams that the algorithms need filled.

The values are frozen and none does I/O. Names follow QRMeM (section 2): a document is cut into
segments (the static memory); what was read out of a segment is a contribution (its sub-graph and
its questions); entities and relations of the structured memory are merged from contributions and
never stored as facts.

The seams are small Protocols. Adapters live in `qrmem.llm` (chat, embeddings, tokenizers) and
`qrmem.answering` (reasoners), `qrmem.extraction` (taggers); the store's Protocol is
`qrmem.graphstore.GraphStore`.
"""

from qrmem.types.answers import (
    Answer,
    Citation,
    Hit,
    ScoredEdge,
    ScoredSegment,
    Step,
    Trail,
    Words,
)
from qrmem.types.documents import Document, Part, Segment
from qrmem.types.events import Event, Listener
from qrmem.types.graph import (
    Entity,
    Fact,
    FactView,
    GraphEdge,
    GraphNode,
    GraphPart,
    Merge,
    MergeDecision,
    Property,
    Question,
    Relation,
)
from qrmem.types.kinds import (
    BuildMode,
    ContributionKind,
    MetaValue,
    Orientation,
    Properties,
    Scalar,
    SegmentState,
    Status,
    Strategy,
)
from qrmem.types.models import (
    CallRecord,
    ChatModel,
    ChatReply,
    ChatRequest,
    Embedder,
    Message,
    Tokenizer,
)
from qrmem.types.readings import Contribution, LedgerRow, Loss, Mention, Statement
from qrmem.types.reasoning import (
    AskContext,
    EntityTagger,
    Executor,
    Folded,
    Job,
    JobResult,
    Passage,
    Phase,
    Quote,
    Reading,
    Reasoner,
    Sharer,
    Verdict,
)
from qrmem.types.reports import (
    AddReport,
    Archived,
    DocumentInfo,
    EntityView,
    ExtractionReport,
    JudgeReport,
    MemoryStatus,
    Repair,
)
from qrmem.types.turns import Recalled, Turn
from qrmem.types.usage import StageUsage, Usage, UsageRow
from qrmem.types.where import Where

__all__ = [
    "AddReport",
    "Answer",
    "Archived",
    "AskContext",
    "BuildMode",
    "CallRecord",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "Citation",
    "Contribution",
    "ContributionKind",
    "Document",
    "DocumentInfo",
    "Embedder",
    "Entity",
    "EntityTagger",
    "EntityView",
    "Event",
    "Executor",
    "ExtractionReport",
    "Fact",
    "FactView",
    "Folded",
    "GraphEdge",
    "GraphNode",
    "GraphPart",
    "Hit",
    "Job",
    "JobResult",
    "JudgeReport",
    "LedgerRow",
    "Listener",
    "Loss",
    "MemoryStatus",
    "Mention",
    "Merge",
    "MergeDecision",
    "Message",
    "MetaValue",
    "Orientation",
    "Part",
    "Passage",
    "Phase",
    "Properties",
    "Property",
    "Question",
    "Quote",
    "Reading",
    "Reasoner",
    "Recalled",
    "Relation",
    "Repair",
    "Scalar",
    "ScoredEdge",
    "ScoredSegment",
    "Segment",
    "SegmentState",
    "Sharer",
    "StageUsage",
    "Statement",
    "Status",
    "Step",
    "Strategy",
    "Tokenizer",
    "Trail",
    "Turn",
    "Usage",
    "UsageRow",
    "Verdict",
    "Where",
    "Words",
]
