"""Questions inside a question: "the county where Vantry lies" is asked first, then put in place."""

import re
from dataclasses import dataclass

_PHRASE = re.compile(r"\bthe\s+(?=[a-z])", re.IGNORECASE)
_OWNED = re.compile(r"((?:[A-Z][\w.'’-]*\s+)*[A-Z][\w.-]*)(?:'s|’s)\s+([a-z]+)\b")
_GIVEN = re.compile(r"[A-Z0-9]")
_FEWEST_BEFORE, _FEWEST_INSIDE, _MOST = 2, 3, 2


@dataclass(frozen=True, slots=True)
class Nested:
    """A question inside a question.

    Attributes:
        inner: it, as a question of its own.
        before: what stands before its place in the outer one.
        behind: what stands behind.
    """

    inner: str
    before: str
    behind: str

    def outer(self, answer: str) -> str:
        """Return the outer question with the inner one's answer in its place."""
        return f"{self.before}{answer}{self.behind}"


def nested(question: str) -> list[Nested]:
    """Return the questions inside a question, the last ones: a description with a name in it."""
    found = []
    for match in _PHRASE.finditer(question):
        inner = question[match.end() :].rstrip(" ?")
        before = question[: match.start()]
        is_long = len(inner.split()) >= _FEWEST_INSIDE and len(before.split()) >= _FEWEST_BEFORE
        if is_long and _GIVEN.search(inner):
            found.append(Nested(f"Which {inner}?", before, "?"))
    for match in _OWNED.finditer(question):
        before, behind = question[: match.start()], question[match.end() :]
        found.append(Nested(f"Who is the {match[2]} of {match[1]}?", before, behind))
    return found[-_MOST:]
