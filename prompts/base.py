"""How a template, its inputs and its reply are tied together."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from importlib.resources import files
from itertools import count
from string import Template
from typing import TYPE_CHECKING, Generic, TypeVar

from qrmem.errors import PromptError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pydantic import BaseModel

In = TypeVar("In", bound="DataclassInstance")
Out = TypeVar("Out", bound="BaseModel")

DIVIDER = "=== user ==="
"""The line of a template that ends the part which never changes."""


@dataclass(frozen=True, kw_only=True)
class Prompt(Generic[In, Out]):
    """A template file with a typed front and back.

    Attributes:
        name: with the version the name of the template file.
        version: a changed wording is a new version; ledgers and cache keys name it.
        inputs: dataclass whose fields are the template's placeholders.
        output: returns the pydantic model of the reply, called when the prompt is used; `None`
            where the reply is plain text.
        stage: under which name its calls are counted.
    """

    name: str
    version: int
    stage: str
    inputs: type[In]
    output: Callable[[], type[Out]] | None

    @property
    def label(self) -> str:
        """Name and version, as ledgers record them."""
        return f"{self.name}.v{self.version}"

    @property
    def system(self) -> str:
        """The part that is the same in every call, so that servers can cache it."""
        return self._parts[0]

    def user(self, inputs: In) -> str:
        """Fill the part that changes; a `$` in the values is left alone."""
        values = {f.name: str(getattr(inputs, f.name)) for f in fields(inputs)}
        return Template(self._parts[1]).substitute(values)

    def check(self) -> None:
        """Raise `PromptError` unless the user part's placeholders are the input fields."""
        wanted = set(Template(self._parts[1]).get_identifiers())
        given = {f.name for f in fields(self.inputs)}
        if wanted != given:
            raise PromptError(f"{self.label}: {', '.join(sorted(wanted ^ given))} do not match")
        if Template(self.system).get_identifiers():
            raise PromptError(f"{self.label}: the part before {DIVIDER!r} has a placeholder")

    @cached_property
    def _parts(self) -> tuple[str, str]:
        path = files("qrmem.prompts") / "templates" / f"{self.label}.md"
        system, divider, user = path.read_text(encoding="utf-8").partition(f"\n{DIVIDER}\n")
        if not divider:
            raise PromptError(f"{self.label}: there is no line {DIVIDER!r}")
        return system.strip(), user.strip()


_CLOSING = re.compile(r"<\s*/\s*(text[0-9]*)", re.IGNORECASE)


def _marks() -> Iterator[str]:
    yield "text"
    for n in count(2):
        yield f"text{n}"


def fenced(text: str, label: str = "") -> str:
    """Put a text between marks that it cannot close, so that a prompt shows where it ends.

    Args:
        label: written into the opening mark; letters, digits and spaces only.
    """
    # The closing mark is the first of `</text>`, `</text2>`, … that the text does not hold.
    used = {match.group(1).lower() for match in _CLOSING.finditer(text)}
    mark = next(name for name in _marks() if name not in used)
    opening = f"<{mark} {label}>" if label else f"<{mark}>"
    return f"{opening}\n{text}\n</{mark}>"
