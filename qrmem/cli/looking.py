"""Lines for `show`, `status` and `list`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qrmem.cli.output import problem_lines, safe, shortened, usage_line
from qrmem.graphstore.protocol import EntityCount
from qrmem.types import DocumentInfo, EntityView, MemoryStatus, Merge, Usage

if TYPE_CHECKING:
    from qrmem.graphstore.neo4j import SavedQuery


def status_lines(status: MemoryStatus) -> list[str]:
    """Say how far the memory is, what it cost, what to look at."""
    states = ", ".join(f"{n} {state}" for state, n in sorted(status.states.items()))
    lines = [
        f"memory:    {safe(status.location)}, namespace {safe(status.namespace)}",
        f"segments:  {states or 'none'}",
        "holds:     " + ", ".join(f"{n:,} {what}" for what, n in status.counts.items()),
        f"cut by:    {status.tokenizer}, at most {status.segment_tokens} tokens",
        f"embedder:  {status.embedder}"
        + (f", {status.dimension} dimensions" if status.dimension else ""),
        *cost_lines(status.usage),
    ]
    lines += problem_lines(status.problems)
    return lines + [f"warning:   {warning}" for warning in status.warnings]


def cost_lines(usage: Usage) -> list[str]:
    """Say what building cost and what answering cost, apart (Table 6)."""
    parts = {"building": Usage(usage.construction), "answering": Usage(online=usage.online)}
    said = [f"cost:      {what}: {usage_line(part)}" for what, part in parts.items() if part.calls]
    return said or [f"cost:      {usage_line(usage)}"]


def memory_lines(status: MemoryStatus, entities: Sequence[EntityCount]) -> list[str]:
    """Show a memory in figures, with the entities that occur most."""
    lines = status_lines(status)
    if entities:
        lines.append("entities in most segments (qrmem show NAME):")
    return lines + [
        f"  {e.segments:6,}  {e.type or '-':12}  {shortened(e.name, 80)}" for e in entities
    ]


def entity_lines(view: EntityView, limit: int) -> list[str]:
    """Show an entity with its relations, questions and segments."""
    entity = view.entity
    forms = ", ".join(f"{shortened(form, 60)} ({count})" for form, count in entity.forms)
    lines = [f"{safe(entity.name)}  [{entity.type or 'type unknown'}]", f"called:    {forms}"]
    lines.append(f"relations: {len(view.relations)}")
    for relation in view.relations[:limit]:
        other = relation.tail if relation.head == entity.key else relation.head
        name = safe(view.neighbours.get(other, other))
        lines.append(f"  — {name} ({len(relation.facts)}): {shortened(relation.description, 160)}")
    lines.append(f"questions: {len(view.questions)}")
    lines += [f"  ? {shortened(question.text, 160)}" for question in view.questions[:limit]]
    lines.append(f"segments:  {len(view.segments)}")
    for segment in view.segments[:limit]:
        place = safe(f"{segment.document_id} {segment.part}".strip())
        lines.append(f"  {segment.id}  {place}: {shortened(segment.text, 100)}")
    return lines


def merge_lines(merges: Sequence[Merge]) -> list[str]:
    """Show which names count as one entity, and why."""
    lines = [
        f"{shortened(m.name, 60)} → {shortened(m.into, 60)}  ({m.reason}"
        + (f" {m.score:.2f})" if m.reason == "similar" else ")")
        for m in merges
    ]
    hint = "qrmem separate A B keeps two names apart, qrmem merge A B counts them as one"
    return [*(lines or ["no names were merged"]), hint]


def neo4j_lines(queries: "Sequence[SavedQuery]") -> list[str]:
    """Show saved queries as a script for Neo4j Browser."""
    from qrmem.graphstore.neo4j import browser_script

    return [
        "// For Neo4j Browser: run the next two lines, one by one, then any of the queries.",
        *browser_script(queries).split("\n"),
    ]


def list_lines(namespaces: Sequence[str], documents: Sequence[DocumentInfo]) -> list[str]:
    """List namespaces and the documents of this one."""
    lines = [f"namespaces: {', '.join(map(safe, namespaces)) or 'none'}"]
    for info in documents:
        states = ", ".join(f"{n} {state}" for state, n in sorted(info.states.items()))
        lines.append(
            f"{shortened(info.id, 1000)}  {shortened(info.title, 60)}  "
            f"{info.characters:,} characters, {states}"
        )
    return lines
