"""What a file of extractions says, as values."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Triple:
    """An open relation as somebody extracted it."""

    subject: str
    relation: str
    object: str


@dataclass(slots=True)
class Passage:
    """A passage and what was extracted from it.

    Attributes:
        where: its place in the file, for messages.
        id: id of a document or a segment; "" where the text is to give one.
        text: of the passage, or `None` if the file does not carry it.
    """

    where: str
    id: str = ""
    text: str | None = None
    title: str = ""
    entities: list[str] = field(default_factory=list)
    triples: list[Triple] = field(default_factory=list)


@dataclass(slots=True)
class Extraction:
    """All passages of a file, in its order.

    Attributes:
        malformed: records within passages that are no triple, or no name; a model wrote them.
        left_out: passages without a text, by their place in the file.
    """

    passages: list[Passage] = field(default_factory=list)
    malformed: int = 0
    left_out: list[str] = field(default_factory=list)
