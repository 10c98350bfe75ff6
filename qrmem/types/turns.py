"""Turns of a conversation, and the result of `recall`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from qrmem.types.documents import MetaValue
from qrmem.types.shown import Short, continued, fenced

CHAT_KEY = "chat"
"""Metadata of a turn: its session."""
TURN_KEY = "turn"
"""Metadata of a turn: its number."""
USER_KEY = "user"
"""Metadata of a turn, or of another document: the user that it belongs to."""
ROLE_KEY = "role"
"""Metadata of a turn: who spoke."""
FACT_KEY = "noted_of"
"""Metadata of a fact: the id of its turn."""
READER_KEY, RULES = "reader", "rules"
"""Metadata of a document that is read by the built-in rules even if a chat model is set."""
SCOPES = frozenset({USER_KEY, CHAT_KEY, TURN_KEY, ROLE_KEY, FACT_KEY})
"""Metadata that give the user, the session and the kind of a document."""
MOST_TURNS = 99_999_999
"""The highest number of a turn; up to it, ids sort like numbers."""
MOST_FACTS = 8
"""The most facts that are kept of one turn."""
TURN, FACT = "turn-", "fact-"
"""Prefixes of the ids of turns and of facts; ids of other documents may have them, too."""
_TURN_ID = re.compile(rf"{TURN}[0-9]{{8}}|{FACT}[0-9]{{8}}-[0-9]")
_INDENT = " " * 4
"""Indent of all lines of a turn but the first."""
_ROLES = ("user", "assistant", "system", "developer")


def document_id_of(user: str, id: str) -> str:
    """Return the id under which a user's document is kept; it is never another user's id.

    Slashes in the user's name are escaped, so ids of two users always differ.
    """
    return f"{user.replace('%', '%25').replace('/', '%2F')}/{id}"


@dataclass(frozen=True, slots=True, repr=False)
class Turn(Short):
    """One message of a conversation; it is a document of its own.

    Attributes:
        id: of the document.
        number: of the turn in the namespace, from 1, in the order in which they were added.
        role: `user`, `assistant`, or another role of chat messages.
        speaker: a name; "" if only the role is known.
        user: the user whose conversation it is; "" if none was given.
        at: time of the turn, in ISO form.
        standing: whether it was kept as a standing wish by hand.
    """

    id: str
    number: int
    role: str
    text: str
    at: str = ""
    session: str = ""
    speaker: str = ""
    user: str = ""
    standing: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Recalled(Short):
    """The turns that a model needs before it answers a prompt (FragRel, B.3).

    Attributes:
        recent: the last turns of the session, in order, unabridged.
        related: earlier turns that are relevant to the prompt, in order of time; a long turn has
            only its relevant parts, with "…" between them.
        tokens: of `text` and of the contents of `messages` together.
        times: time words that depend on when a related turn was said, each with its first and last
            day in ISO form, by the id of the turn.
        facts: facts that a chat model extracted from a related turn (`extract=True`), by its id.
        scores: score of each related turn, by its id: up to 1 for the words of its best part and up
            to 1 for its vector, each divided by the best of the conversation, plus signals of its
            speaker, time, session and neighbours.
    """

    recent: tuple[Turn, ...]
    related: tuple[Turn, ...]
    tokens: int
    times: Mapping[str, tuple[tuple[str, str, str], ...]] = field(default_factory=dict)
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The related turns as text for a prompt: speaker, time, words and facts.

        They stand between tags that no turn can close (`<text>` and `</text>`, or `<text2>` and
        `</text2>`, and so on), so that a model can be told that they are data, not instructions.
        "" if there are no related turns.
        """
        lines: list[str] = []
        for turn in self.related:
            lines += related_lines(turn, self.times.get(turn.id, ()), self.facts.get(turn.id, ()))
        return fenced("\n".join(lines)) if lines else ""

    @property
    def messages(self) -> list[dict[str, str]]:
        """The recent turns as chat messages: dicts with `role` and `content`.

        A content begins with time and name ("[2026-05-03T09:00:00] Ann: …"), except what a model
        without a name said. Some roles need data that is not kept (`tool`: its call), or are
        unknown to chat models. Such a turn becomes a user message that names the role.
        """
        return [as_message(turn) for turn in self.recent]


_NAME = re.compile(r"[^\W\d_]+(?:[-.'’ ]{1,2}[^\W\d_]+){0,3}\.?")
"""Possible names of people: words of letters, without numbers and addresses."""
_NOBODY = frozenset(
    "user human me you default admin anonymous guest assistant system test bot ai".split()  # noqa: SIM905
)


def speaker_of(metadata: Mapping[str, object]) -> str:
    """Return the name of a turn's speaker; "" if it has none, or an id that is not a name."""
    speaker_name = metadata.get("speaker") or (
        metadata.get(USER_KEY) if metadata.get(ROLE_KEY) == "user" else ""
    )
    name = " ".join(str(speaker_name or "").split())
    if not _NAME.fullmatch(name) or name.casefold() in _NOBODY:
        return ""
    return name.title() if name.islower() else name


def user_of(metadata: Mapping[str, object]) -> str:
    """Return the user that a document belongs to; "" for none."""
    return str(metadata.get(USER_KEY, ""))


def turn_id(number: int) -> str:
    """Return the id of a turn; ids sort in the order of turns."""
    return f"{TURN}{number:08d}"


def numbered(id: str) -> int:
    """Return the number of the turn that this id belongs to; 0 if it cannot be a turn's id."""
    digits = id[len(TURN) :]
    is_number = len(digits) == len(str(MOST_TURNS)) and digits.isascii() and digits.isdigit()
    return int(digits) if id.startswith(TURN) and is_number else 0


def scope_of(id: str) -> str:
    """Return a document's id, or one for all turns of a user."""
    user, slash, own = id.rpartition("/")
    return f"{user}{slash}{TURN}" if _TURN_ID.fullmatch(own) else id


def fact_id(number: int, n: int) -> str:
    """Return the id of the n-th fact of a turn, n from 1."""
    return f"{FACT}{number:08d}-{n}"


def is_turn_id(id: str) -> bool:
    """Whether an id is of the form that turns and their facts have; a turn has metadata, too."""
    return _TURN_ID.fullmatch(id) is not None


def turn_number(id: str, metadata: Mapping[str, MetaValue]) -> int:
    """Return the number of the turn that a document is, or is a fact of; 0 for any other document.

    A document is a turn only if both its metadata and its id say so: any document may have one of
    them.
    """
    number = metadata.get(TURN_KEY)
    if type(number) is not int or not 1 <= number <= MOST_TURNS:
        return 0
    if CHAT_KEY not in metadata or ROLE_KEY not in metadata:
        return 0
    if FACT_KEY not in metadata:
        return number if id == turn_id(number) else 0
    return number if id in [fact_id(number, n) for n in range(1, MOST_FACTS + 1)] else 0


def is_read_by_rules(id: str, metadata: Mapping[str, MetaValue]) -> bool:
    """Return whether no chat model reads a document: it is a turn, or its metadata say so."""
    return turn_number(id, metadata) > 0 or metadata.get(READER_KEY) == RULES


def highest_turn(documents: Iterable[tuple[str, Mapping[str, MetaValue]]]) -> int:
    """Return the highest number of the turns among documents, given by id and metadata; else 0."""
    return max((turn_number(id, metadata) for id, metadata in documents), default=0)


def related_lines(
    turn: Turn,
    times: Iterable[tuple[str, str, str]],
    facts: Iterable[str],
) -> list[str]:
    """Return the lines of a turn in `Recalled.text`; a budget counts these lines."""
    days = "".join(
        f" ({words}: {first})" if first == last else f" ({words}: {first} to {last})"
        for words, first, last in times
    )
    head = f"[{turn.at or 'no time'}] {turn.speaker or turn.role}"
    return [
        f"{head}: {continued(turn.text, _INDENT)}{days}",
        *(f"  (noted of this: {continued(fact, _INDENT)})" for fact in facts),
    ]


def as_message(turn: Turn) -> dict[str, str]:
    """Return a turn as a chat message.

    What a person says begins with the time and the name, if there are any. What a model says stays
    as it is, unless it has a name: else models would begin their answers in the same way.
    """
    is_known = turn.role in _ROLES
    role, words = (turn.role, turn.text) if is_known else ("user", f"{turn.role}: {turn.text}")
    if turn.speaker:
        words = f"{turn.speaker}: {turn.text}" if is_known else f"{turn.speaker}, {words}"
    is_dated = turn.at and (role == "user" or turn.speaker)
    return {"role": role, "content": f"[{turn.at}] {words}" if is_dated else words}
