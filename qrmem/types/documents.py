"""What the user gives, and the segments that it is cut into: the static memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from qrmem.types.kinds import MetaValue
from qrmem.types.shown import Short


@dataclass(frozen=True, slots=True)
class Part:
    """A page or chapter of a document: where it starts and what it is called."""

    start: int
    label: str


@dataclass(frozen=True, slots=True, repr=False)
class Document(Short):
    """A text given by the user.

    Attributes:
        text: normalised text; every offset in the package counts its characters.
        title: shown with citations.
        id: unique in a namespace; `None` lets `add` derive it (the end of its file's path, else a
            hash of the text).
        metadata: primitive values, and lists of texts, to narrow `search` and `ask` by.
        parts: pages or chapters in order of `start`; empty if the format has none.
    """

    text: str
    title: str = ""
    id: str | None = None
    metadata: Mapping[str, MetaValue] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()

    @property
    def digest(self) -> str:
        """The text's sha256, which tells it from another text."""
        return sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, repr=False)
class Segment(Short):
    """A sentence-aligned piece of a document, immutable, in order.

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
