"""What was read by other means than it would be now: another schema, other prompts, no model."""

from collections import Counter
from collections.abc import Mapping, Sequence

from qrmem.config import Settings
from qrmem.graphstore.protocol import GraphStore
from qrmem.text.code.languages import CODE_KEY
from qrmem.text.numbers import counted
from qrmem.types import DocumentInfo
from qrmem.types.turns import turn_number
from qrmem.types.usage import Price

RULES, SCHEMA, NO_SCHEMA, PROMPTS = (
    "without a model",
    "under another schema",
    "without a schema",
    "by other prompts",
)


async def read_otherwise(
    store: GraphStore, ns: str, settings: Settings, infos: Sequence[DocumentInfo]
) -> tuple[Mapping[str, int], Sequence[DocumentInfo]]:
    """Return how many segments were read otherwise than now, by how, and their documents.

    Nothing is, where no model is set: rules read nothing better. A model reads neither turns nor
    source code.
    """
    if not settings.model:
        return {}, ()
    from qrmem.prompts import load_prompts
    from qrmem.schema import load_schema

    schema, prompts = load_schema(settings.schema), load_prompts(settings.prompts).checksum
    found: Counter[str] = Counter()
    affected = []
    for info in infos:
        if CODE_KEY in info.metadata or turn_number(info.id, info.metadata):
            continue
        rows = await store.ledger(ns, info.id)
        hows = [_how(row.reasoner, prompts, schema.checksum if schema else "") for row in rows]
        found.update(how for how in hows if how)
        affected += [info] if any(hows) else []
    return dict(found), affected


def otherwise(found: Mapping[str, int]) -> str:
    """Return in words how much was read otherwise, and how."""
    parts = ", ".join(f"{count:,} {how}" for how, count in sorted(found.items()))
    return f"{counted(sum(found.values()), 'segments')} read otherwise than now ({parts})"


def in_words(price: Price | None) -> str:
    """Return how to read again what was read otherwise, and what that takes."""
    if price is None:
        return "--rebuild reads them again"
    parts = [counted(price.calls, "calls"), f"{price.tokens:,} tokens"]
    parts += [] if price.cost is None else [f"{price.cost:,.4f} USD"]
    return f"reading them again (--rebuild) takes about {', '.join(parts)}"


def _how(reader: str, prompts: str, schema: str) -> str:
    """Return by what else than now a segment was read; "" for nothing else, or nothing at all."""
    if reader.startswith("local."):
        return RULES
    kind, _, rest = reader.partition(":")
    if kind != "prompted":
        return ""
    by, _, own = rest.rpartition(":")[2].partition(", schema ")
    if own != schema:
        return SCHEMA if own else NO_SCHEMA
    return PROMPTS if by.rpartition(" ")[2] != prompts else ""
