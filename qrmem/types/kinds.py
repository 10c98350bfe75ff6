"""The words that a value may be one of."""

from typing import Literal

Scalar = str | int | float | bool
"""A primitive value."""
MetaValue = Scalar | list[str]
"""What a metadata value may be: stores keep primitive values, and lists of texts."""
Properties = tuple[tuple[str, Scalar], ...]
"""What a text says of an entity or in a statement, by the names of its type; sorted by name."""
Orientation = Literal["none", "local", "full"]
BuildMode = Literal["compact", "paper"]
Status = Literal["answered", "passages", "forced", "unanswerable"]
SegmentState = Literal["pending", "extracted", "ok", "partial", "failed"]
ContributionKind = Literal["extraction", "supplement", "oriented", "edit"]
Strategy = Literal[
    "reflection",
    "graph-expansion",
    "entity-trial",
    "fragment",
    "inner-loop",
    "overview",
    "raptor",
    "raptor-layered",
    "temp-mem",
    "passages",
]
"""How an answer is searched for; see `Memory.ask`."""
