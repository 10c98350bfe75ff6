"""How a reply is counted."""

from typing import Literal

from qrmem.errors import ModelOutputError
from qrmem.models.replies import parse
from qrmem.ports import ChatReply, ChatRequest


def outcome_of(reply: ChatReply, request: ChatRequest) -> Literal["ok", "repaired", "unparsable"]:
    """Return whether a reply can be read, and whether it took a repair."""
    if reply.finish_reason == "refusal":
        return "unparsable"
    if request.schema is None:
        return "ok" if reply.text.strip() else "unparsable"
    needed = [name for name in request.schema.get("required", ()) if name not in request.optional]
    try:
        parsed = parse(reply.text, {**request.schema, "required": needed})
    except ModelOutputError:
        return "unparsable"
    return "repaired" if parsed.repaired else "ok"
