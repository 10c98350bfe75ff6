"""What happens in a run, as lines of the logger `qrmem`, for whoever configures logging."""

import logging
from collections.abc import Mapping
from typing import Any

from qrmem.types import Event

logger = logging.getLogger("qrmem")
# A library says nothing by itself: without this, warnings would go to standard error.
logger.addHandler(logging.NullHandler())

_LEVELS: Mapping[str, int] = {
    "warning": logging.WARNING,
    "phase": logging.INFO,
    "document": logging.INFO,
    "step": logging.INFO,
    "call": logging.DEBUG,
    "segment": logging.DEBUG,
}


def log(event: Event) -> None:
    """Take one event; the words of a reply that is being written are not logged."""
    level = _LEVELS.get(event.kind)
    if level is not None and logger.isEnabledFor(level):
        logger.log(level, "%s", _line(event), extra={"event": event.kind, "data": event.data})


def _line(event: Event) -> str:
    data = event.data
    if event.kind == "warning":
        return str(data.get("message", ""))
    if event.kind == "call":
        return (
            f"{data['stage']} by {data['model']}: {data['tokens_in']} + {data['tokens_out']} "
            f"tokens, {data['seconds']:.2f} s, {data['outcome']}"
        )
    if event.kind == "step":
        step = data["step"]
        read = f", {len(step.read)} read" if step.read else ""
        return f"step {step.n}: {step.action}{read} {step.verdict}".rstrip()
    return f"{event.kind}: " + ", ".join(_shown(data))


def _shown(data: Mapping[str, Any]) -> list[str]:
    return [f"{name} {value}" for name, value in data.items() if value not in ("", None)]


__all__ = ["log", "logger"]
