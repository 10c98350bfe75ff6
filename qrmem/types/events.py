"""What happens in a run, told as it happens."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened; logging, the progress bar and streams read the same events.

    Attributes:
        kind: `document`, `segment`, `phase`, `step`, `call`, `words` or `warning`.
        data: primitive values.
    """

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


class Listener(Protocol):
    """Takes events; must not raise and must not block."""

    def __call__(self, event: Event, /) -> None:
        """Take one event."""
        ...
