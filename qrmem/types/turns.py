"""Turns of a conversation, and what is recalled of them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from qrmem.types.documents import MetaValue
from qrmem.types.shown import Short, continued

CHAT_KEY = "chat"
"""Metadata of a turn: the session that it is of."""
TURN_KEY = "turn"
"""Metadata of a turn: its number."""
USER_KEY = "user"
"""Metadata of a turn, or of another document: whose it is."""
ROLE_KEY = "role"
"""Metadata of a turn: who spoke."""
FACT_KEY = "noted_of"
"""Metadata of a fact: the id of its turn."""
SCOPES = frozenset({USER_KEY, CHAT_KEY, TURN_KEY, ROLE_KEY, FACT_KEY})
"""Metadata that says whose a document is, and what of a conversation."""
MOST_TURNS = 99_999_999
"""The highest number of a turn: up to it ids sort as numbers do."""
MOST_FACTS = 8
"""Facts of one turn that are kept."""
TURN, FACT = "turn-", "fact-"
"""What the ids of turns and of facts begin with; those of other documents may, too."""
_TURN_ID = re.compile(rf"{TURN}[0-9]{{8}}|{FACT}[0-9]{{8}}-[0-9]")
_INDENT = " " * 4
"""Of what a turn goes on with in another line."""
_ROLES = ("user", "assistant", "system", "developer")


def document_id_of(user: str, id: str) -> str:
    """Return the id that a document of a user is kept under, so that none is another user's.

    No slash is left in the user's name: so ids of two users are never the same.
    """
    return f"{user.replace('%', '%25').replace('/', '%2F')}/{id}"


@dataclass(frozen=True, slots=True, repr=False)
class Turn(Short):
    """What somebody said in a conversation; a document of its own.

    Attributes:
        id: of the document.
        number: of the turn in the namespace, from 1, in the order in which they were added.
        role: `user`, `assistant`, or what else the model's messages know.
        speaker: a name, "" where only the role is known.
        user: whose conversation it is; "" where nobody was named.
        at: when, in ISO form.
    """

    id: str
    number: int
    role: str
    text: str
    at: str = ""
    session: str = ""
    speaker: str = ""
    user: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Recalled(Short):
    """What a model is to know of a conversation before it answers (FragRel, B.3).

    Attributes:
        recent: the last turns of the session, in order; they go to the model as they are.
        related: earlier turns that belong to the prompt, in order of time; of a long one the parts
            that matter, "…" between them.
        corrections: a related turn's id to those of later turns that seem to correct it.
        tokens: of `text` and of the contents of `messages` together.
        times: a related turn's id to the time words in it that depend on when it was said, each
            with its first and last day in ISO form.
        facts: a related turn's id to what a chat model noted of it (`extract=True`).
        scores: a related turn's id to how well its best part fits the prompt: up to 1 for its
            words and 1 for its vector, each over the best of the conversation, and what its
            speaker, time, session and neighbours add. A turn that is shown because it corrects
            another has none.
    """

    recent: tuple[Turn, ...]
    related: tuple[Turn, ...]
    corrections: Mapping[str, tuple[str, ...]]
    tokens: int
    times: Mapping[str, tuple[tuple[str, str, str], ...]] = field(default_factory=dict)
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The related turns as a model reads them: who, when, what, and what corrects it."""
        times = {turn.id: turn.at for turn in (*self.related, *self.recent)}
        lines: list[str] = []
        for turn in self.related:
            later = [times[id] for id in self.corrections.get(turn.id, ()) if id in times]
            days, facts = self.times.get(turn.id, ()), self.facts.get(turn.id, ())
            lines += related_lines(turn, days, facts, later)
        return "\n".join(lines)

    @property
    def messages(self) -> list[dict[str, str]]:
        """The recent turns as chat messages.

        A role that a chat model takes only together with what is not kept (`tool`: its call), or
        not at all, is told in the text of a user's message.
        """
        return [as_message(turn) for turn in self.recent]


_NAME = re.compile(r"[^\W\d_]+(?:[-.'’ ]{1,2}[^\W\d_]+){0,3}\.?")
"""What a person may be called: words of letters, no number and no address."""
_NOBODY = frozenset(
    "user human me you default admin anonymous guest assistant system test bot ai".split()  # noqa: SIM905
)


def speaker_of(metadata: Mapping[str, object]) -> str:
    """Return the name of who spoke a turn; "" where it has none, or an id that is no name."""
    named = metadata.get("speaker") or (
        metadata.get(USER_KEY) if metadata.get(ROLE_KEY) == "user" else ""
    )
    name = " ".join(str(named or "").split())
    if not _NAME.fullmatch(name) or name.casefold() in _NOBODY:
        return ""
    return name.title() if name.islower() else name


def turn_id(number: int) -> str:
    """Return the id of a turn; ids sort as turns do."""
    return f"{TURN}{number:08d}"


def numbered(id: str) -> int:
    """Return the number of the turn that may have this id; 0 where none can have it."""
    digits = id[len(TURN) :]
    is_number = len(digits) == len(str(MOST_TURNS)) and digits.isascii() and digits.isdigit()
    return int(digits) if id.startswith(TURN) and is_number else 0


def fact_id(number: int, n: int) -> str:
    """Return the id of the n-th fact of a turn, n from 1."""
    return f"{FACT}{number:08d}-{n}"


def is_turn_id(id: str) -> bool:
    """Whether an id is of the form that turns and their facts have; a turn has metadata, too."""
    return _TURN_ID.fullmatch(id) is not None


def turn_number(id: str, metadata: Mapping[str, MetaValue]) -> int:
    """Return the number of the turn that a document keeps, or is a fact of; 0 for any other.

    A document is a turn by its metadata together with the id that belongs to them: either alone
    may be anybody's.
    """
    number = metadata.get(TURN_KEY)
    if type(number) is not int or not 1 <= number <= MOST_TURNS:
        return 0
    if CHAT_KEY not in metadata or ROLE_KEY not in metadata:
        return 0
    if FACT_KEY not in metadata:
        return number if id == turn_id(number) else 0
    return number if id in [fact_id(number, n) for n in range(1, MOST_FACTS + 1)] else 0


def related_lines(
    turn: Turn,
    times: Iterable[tuple[str, str, str]],
    facts: Iterable[str],
    corrected_at: Iterable[str],
) -> list[str]:
    """Return what `Recalled.text` tells of a turn; a budget counts these lines."""
    days = "".join(
        f" ({words}: {first})" if first == last else f" ({words}: {first} to {last})"
        for words, first, last in times
    )
    return [
        f"[{turn.at}] {turn.speaker or turn.role}: {continued(turn.text, _INDENT)}{days}",
        *(f"  (noted of this: {continued(fact, _INDENT)})" for fact in facts),
        *(f"  (said at {turn.at}; corrected at {at}, see below)" for at in corrected_at),
    ]


def as_message(turn: Turn) -> dict[str, str]:
    """Return a turn as a chat message."""
    if turn.role in _ROLES:
        return {"role": turn.role, "content": turn.text}
    return {"role": "user", "content": f"[{turn.role}] {turn.text}"}
