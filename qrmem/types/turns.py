"""Turns of a conversation, and what is recalled of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from qrmem.types.shown import Short

_ROLES = ("user", "assistant", "system", "developer")


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
        related: earlier turns that belong to the prompt, in order of time.
        corrections: a related turn's id to those of later turns that seem to correct it.
        tokens: of `text` and of the contents of `messages` together.
        times: a related turn's id to the time words in it that depend on when it was said, each
            with its first and last day in ISO form.
        facts: a related turn's id to what a chat model noted of it (`extract=True`).
    """

    recent: tuple[Turn, ...]
    related: tuple[Turn, ...]
    corrections: Mapping[str, tuple[str, ...]]
    tokens: int
    times: Mapping[str, tuple[tuple[str, str, str], ...]] = field(default_factory=dict)
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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
        f"[{turn.at}] {turn.speaker or turn.role}: {turn.text}{days}",
        *(f"  (noted of this: {fact})" for fact in facts),
        *(f"  (said at {turn.at}; corrected at {at}, see below)" for at in corrected_at),
    ]


def as_message(turn: Turn) -> dict[str, str]:
    """Return a turn as a chat message."""
    if turn.role in _ROLES:
        return {"role": turn.role, "content": turn.text}
    return {"role": "user", "content": f"[{turn.role}] {turn.text}"}
