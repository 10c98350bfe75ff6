"""How a reply is counted."""

from collections.abc import Mapping
from typing import Any, Literal

from qrmem.errors import ModelOutputError
from qrmem.llm.replies import parse
from qrmem.types import ChatReply, ChatRequest


def outcome_of(reply: ChatReply, request: ChatRequest) -> Literal["ok", "repaired", "unparsable"]:
    """Return whether a reply can be read, and whether it took a repair."""
    if reply.finish_reason == "refusal":
        return "unparsable"
    if request.schema is None:
        return "ok" if reply.text.strip() else "unparsable"
    try:
        parsed = parse(reply.text, _lenient(request.schema, frozenset(request.optional)))
    except ModelOutputError:
        return "unparsable"
    return "repaired" if parsed.repaired else "ok"


def _lenient(node: Any, optional: frozenset[str]) -> Any:
    """Return a schema in which the optional fields are not demanded."""
    if isinstance(node, list):
        return [_lenient(item, optional) for item in node]
    if not isinstance(node, Mapping):
        return node
    made = {key: _lenient(value, optional) for key, value in node.items()}
    if "required" in made and "properties" in made:
        made["required"] = [name for name in made["required"] if name not in optional]
    return made
