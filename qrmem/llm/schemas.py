"""JSON schemas out of pydantic models, in the strict subset that OpenAI-compatible servers take."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from qrmem.errors import PromptError

_KEPT = ("type", "enum", "const", "description")


def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's schema: objects closed, every field required, no `$ref`, no default.

    It is shared by all requests: do not change it.

    Raises:
        PromptError: the model contains itself, or holds an open mapping.
    """
    return _closed(model)


@lru_cache(maxsize=256)
def _closed(model: type[BaseModel]) -> dict[str, Any]:
    found: dict[str, Any] = _strict(inlined(model))
    return found


@lru_cache(maxsize=256)
def inlined(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's own schema with each `$ref` replaced by what it names; do not change it."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    found: dict[str, Any] = _inline(schema, definitions, ())
    return found


def _inline(node: Any, definitions: Mapping[str, Any], within: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_inline(item, definitions, within) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = str(node["$ref"]).rpartition("/")[2]
        if name in within:
            raise PromptError(f"a reply cannot contain itself: {name}")
        merged = {**definitions[name], **{k: v for k, v in node.items() if k != "$ref"}}
        return _inline(merged, definitions, (*within, name))
    return {key: _inline(value, definitions, within) for key, value in node.items()}


def _strict(node: Any) -> Any:
    kept: dict[str, Any] = {key: node[key] for key in _KEPT if key in node}
    if "anyOf" in node:
        kept["anyOf"] = [_strict(option) for option in node["anyOf"]]
    if "items" in node:
        kept["items"] = _strict(node["items"])
    if node.get("type") == "object":
        if "properties" not in node:
            raise PromptError("a reply's objects must name their fields")
        kept["properties"] = {k: _strict(v) for k, v in node["properties"].items()}
        kept["required"] = list(kept["properties"])
        kept["additionalProperties"] = False
    return kept


__all__ = ["inlined", "strict_schema"]
