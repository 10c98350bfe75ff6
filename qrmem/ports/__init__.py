"""What the algorithms need from outside, as small Protocols.

Adapters live in `qrmem.models` (chat, embeddings, tokenizers) and `qrmem.language` (reasoners,
taggers); the store's Protocol is `qrmem.graphstore.GraphStore`.
"""

from qrmem.ports.events import Event, Listener
from qrmem.ports.models import (
    CallRecord,
    ChatModel,
    ChatReply,
    ChatRequest,
    Embedder,
    Message,
    Tokenizer,
)
from qrmem.ports.reasoning import (
    AskContext,
    EntityTagger,
    Job,
    Passage,
    Quote,
    Reading,
    Reasoner,
    Sharer,
    Verdict,
)

__all__ = [
    "AskContext",
    "CallRecord",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "Embedder",
    "EntityTagger",
    "Event",
    "Job",
    "Listener",
    "Message",
    "Passage",
    "Quote",
    "Reading",
    "Reasoner",
    "Sharer",
    "Tokenizer",
    "Verdict",
]
