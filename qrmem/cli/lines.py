"""Lines for `add`, `show`, `status`, `list`, `export` and `import`."""

import shlex
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from qrmem.cli.output import LOCAL, reader, readers, safe, safe_line, shortened, usage_line
from qrmem.errors import install
from qrmem.text.numbers import counted
from qrmem.types import (
    AddReport,
    Archived,
    DocumentInfo,
    Entity,
    EntityView,
    ExtractionReport,
    MemoryStatus,
    Merge,
    Trail,
    Usage,
)
from qrmem.types.turns import CHAT_KEY, FACT_KEY, USER_KEY, turn_number

if TYPE_CHECKING:
    from qrmem.graphstore.neo4j import SavedQuery
    from qrmem.graphstore.protocol import EntityCount

_GONE = 20
"""Documents whose files are gone: how many a command names."""
_PROBLEMS = 20
"""Lines about problems at most: nobody reads more, and `--json` has all."""


def report_lines(report: AddReport, at: str = "") -> list[str]:
    """Say what an `add` did.

    Args:
        at: options that lead a command to this memory; see `qrmem.errors.place`.
    """
    names = (
        ("added", report.added),
        ("updated", report.updated),
        ("resumed", report.resumed),
        ("unchanged", report.unchanged),
    )
    parts = [f"{len(ids)} {word}" for word, ids in names if ids]
    lines = [f"documents: {', '.join(parts) or 'none'}"]
    states = ", ".join(f"{n} {state}" for state, n in sorted(report.states.items()))
    lines.append(
        f"segments:  {report.read} read in {report.seconds:.1f} s"
        + (f", {report.reused} reused" if report.reused else "")
        + f"; in these documents {states or 'none'}"
    )
    changed = report.added or report.updated or report.resumed
    if not report.read and not changed and not report.problems:
        lines = [already_read(report.readers)]
    if set(report.readers) - {report.reader} and not report.reader.startswith(LOCAL):
        by, now = readers(report.readers), reader(report.reader)
        price = "`qrmem plan add … --rebuild` says what reading again costs"
        lines.append(f"read by:   {by}, not by {now}; {price}")
    if report.usage.calls:
        lines.append(f"cost:      {usage_line(report.usage)}")
    if report.passed_over:
        reasons = ", ".join(f"{count} {why}" for why, count in sorted(report.passed_over.items()))
        lines.append(f"skipped:   {reasons}")
    if report.dropped:
        document_id, index, why = report.dropped[0]
        what = counted(len(report.dropped), "items")
        lines.append(
            f"dropped:   {what} of the model's replies; the first, in segment {index} of"
            f" {document_id}: {why}"
        )
    if report.left_out:
        what = counted(report.left_out, "entities and relations")
        lines.append(f"left out:  {what} have none of the schema's types (the schema is closed)")
    if report.boilerplate:
        are = "1 segment is" if report.boilerplate == 1 else f"{report.boilerplate} segments are"
        lines.append(
            f"no names:  {are} only headings, contents, an index or a licence, without entities"
        )
    if report.gone:
        lines += _gone_lines(report.gone, at)
    if report.unparsed:
        shown = ", ".join(report.unparsed[:3]) + (" …" if len(report.unparsed) > 3 else "")
        lines.append(f"not parsed completely: {len(report.unparsed)} ({shown})")
        if find_spec("tree_sitter") is None:
            lines.append(
                f"all languages but Python need the extra `code`: {install('code')}; then add them"
                " again with --rebuild"
            )
    return lines + problem_lines(report.problems)


def _gone_lines(ids: Sequence[str], at: str) -> list[str]:
    """Name documents whose files no longer exist, and the command that deletes them."""
    shown = shlex.join(ids[:_GONE])
    ends = " --" if any(id.startswith("-") for id in ids) else ""
    first = f" (the first {_GONE}; --json has all)" if len(ids) > _GONE else ""
    kept, it = f"{len(ids)} documents are kept whose files no longer exist", "them"
    if len(ids) == 1:
        kept, it = "1 document is kept whose file no longer exists", "it"
    return [
        f"no file:   {kept}; to delete {it}{first}:",
        safe(f"           qrmem delete{at}{ends} {shown}"),
    ]


def already_read(names: Sequence[str]) -> str:
    """Say that every document was read already, and by which reader."""
    by = f" (by {readers(names)})" if names else ""
    return f"already read{by}; `--rebuild` reads it again"


def problem_lines(problems: Sequence[tuple[str, int, str]]) -> list[str]:
    """List problems with their places; consecutive segments with the same problem share a line."""
    runs: list[tuple[str, int, int, str]] = []
    for document, index, reason in problems:
        if runs and runs[-1][0::3] == (document, reason) and runs[-1][2] + 1 == index:
            runs[-1] = (document, runs[-1][1], index, reason)
        else:
            runs.append((document, index, index, reason))
    lines = [
        f"problem:   {_place(document, first, last, reason)}{shortened(reason)}"
        for document, first, last, reason in runs[:_PROBLEMS]
    ]
    if len(runs) > _PROBLEMS:
        lines.append(f"problem:   … and {len(runs) - _PROBLEMS} more lines (--json has all)")
    return lines


def _place(document: str, first: int, last: int, reason: str) -> str:
    """Return the place of a problem; "" if its reason names the place."""
    if first < 0 and document in reason:
        return ""
    return f"{safe_line(document + _span(first, last))}: "


def _span(first: int, last: int) -> str:
    if first < 0:
        return ""
    return f" segment {first}" if first == last else f" segments {first}-{last}"


def status_lines(status: MemoryStatus) -> list[str]:
    """Show the progress of reading, its cost, and warnings."""
    states = ", ".join(f"{n} {state}" for state, n in sorted(status.states.items()))
    lines = [
        f"memory:    {safe(status.location)}, namespace {safe(status.namespace)}",
        f"segments:  {states or 'none'}",
        "holds:     " + ", ".join(counted(n, what) for what, n in status.counts.items()),
        f"cut by:    {status.tokenizer}, at most {status.segment_tokens} tokens",
        f"embedder:  {status.embedder}"
        + (f", {status.dimension} dimensions" if status.dimension else ""),
        *(f"read by:   {reader(name)}" for name in status.readers),
        *cost_lines(status.usage),
    ]
    lines += problem_lines(status.problems)
    return lines + [f"warning:   {warning}" for warning in status.warnings]


def cost_lines(usage: Usage) -> list[str]:
    """Show the cost of building and of answering separately (Table 6)."""
    parts = {"building": Usage(usage.construction), "answering": Usage(online=usage.online)}
    lines = [f"cost:      {what}: {usage_line(part)}" for what, part in parts.items() if part.calls]
    return lines or [f"cost:      {usage_line(usage)}"]


def memory_lines(status: MemoryStatus, entities: Sequence["EntityCount"]) -> list[str]:
    """Show a memory in figures, with its most frequent entities."""
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
    head = f"{shortened(entity.name, 1000)}  [{entity.type or 'type unknown'}]"
    lines = [head, f"called:    {forms}", *_property_lines(entity)]
    lines.append(f"relations: {_of(view.relations, limit)}")
    for relation in view.relations[:limit]:
        other = relation.tail if relation.head == entity.key else relation.head
        name = shortened(view.neighbours.get(other, other), 1000)
        arrow = "→" if relation.head == entity.key else "←"
        kind = f" {relation.type}" if relation.type else ""
        description = shortened(relation.description, 160)
        lines.append(f"  {arrow} {name} ({len(relation.facts)}){kind}: {description}")
        lines += [f"      settled: {shortened(asked, 160)}" for asked in relation.questions]
    lines.append(f"questions: {_of(view.questions, limit)}")
    lines += [f"  ? {shortened(question.text, 160)}" for question in view.questions[:limit]]
    lines.append(f"segments:  {_of(view.segments, limit)}")
    for segment in view.segments[:limit]:
        place = shortened(f"{segment.document_id} {segment.part}", 1000)
        lines.append(f"  {segment.id}  {place}: {shortened(segment.text, 100)}")
    return lines


def _property_lines(entity: Entity) -> list[str]:
    """Show an entity's properties, each with its latest value first."""
    return [
        f"  {name}: "
        + "; before: ".join(
            f"{shortened(value, 80)} ({at})" for value, at in values_of_name.items()
        )
        for name, values_of_name in entity.values().items()
    ]


def _of(rows: Sequence[object], limit: int) -> str:
    return f"{len(rows)}" + (
        f", the first {limit} (--limit N for more)" if limit < len(rows) else ""
    )


def trail_list(trails: Sequence[Trail]) -> list[str]:
    """List recorded runs, one on each line."""
    return [
        f"{trail.id}  {trail.created}  {trail.status:12}  {shortened(trail.question, 80)}"
        for trail in trails
    ] or ["no trail yet"]


def merge_lines(merges: Sequence[Merge]) -> list[str]:
    """Show which names are merged, and why."""
    why = {
        "alias": "a short form, a title or another name:",
        "exact": "written alike:",
        "user": "by hand:",
    }
    by_reason: dict[str, list[str]] = {}
    for m in merges:
        reason = why.get(m.reason, "similar:")
        score = "" if m.reason in why else f"  {m.score:.2f}"
        line = f"  {shortened(m.name, 60)} → {shortened(m.into, 60)}{score}"
        by_reason.setdefault(reason, []).append(line)
    lines = [
        line for reason, lines_of_reason in by_reason.items() for line in (reason, *lines_of_reason)
    ]
    hint = "qrmem merge A B merges two names by hand, qrmem separate A B keeps them apart"
    return [*(lines or ["no names are merged"]), hint]


def neo4j_lines(queries: "Sequence[SavedQuery]") -> list[str]:
    """Show ready queries as a script for Neo4j Browser."""
    from qrmem.graphstore.neo4j import browser_script

    return [
        "// For Neo4j Browser: run the next two lines one by one, then any of the queries.",
        *browser_script(queries).split("\n"),
    ]


def list_lines(
    namespaces: Sequence[str], documents: Sequence[DocumentInfo], *, turns: bool
) -> list[str]:
    """List namespaces and the documents of this one.

    Args:
        turns: show each turn; else a line for each conversation.
    """
    lines = [f"namespaces: {', '.join(map(safe, namespaces)) or 'none'}"]
    sessions: dict[tuple[str, str], list[DocumentInfo]] = {}
    for info in documents:
        if not turns and turn_number(info.id, info.metadata):
            named = str(info.metadata[CHAT_KEY]), str(info.metadata.get(USER_KEY, ""))
            sessions.setdefault(named, []).append(info)
            continue
        lines.append(
            f"{shortened(info.id, 1000)}  {shortened(info.title, 60)}  "
            f"{counted(info.characters, 'characters')}, segments: {_states([info])}"
        )
    lines += [_session_line(*named, own) for named, own in sorted(sessions.items())]
    return [*lines, "`qrmem list --turns` lists each turn"] if sessions else lines


def _session_line(session: str, user: str, documents: Sequence[DocumentInfo]) -> str:
    facts = sum(FACT_KEY in info.metadata for info in documents)
    times = sorted(day for info in documents if (day := str(info.metadata.get("at", ""))[:10]))
    days = " to ".join(dict.fromkeys((times[0], times[-1]))) if times else ""
    parts = [
        counted(len(documents) - facts, "turns"),
        counted(facts, "facts of them") if facts else "",
        shortened(days),
        f"segments: {_states(documents)}",
    ]
    whose = f" of {shortened(user)}" if user else ""
    name = f"conversation {shortened(session)!r}" if session else "conversation without a name"
    return f"{name}{whose}  {', '.join(filter(None, parts))}"


def _states(documents: Sequence[DocumentInfo]) -> str:
    states = sum((Counter(info.states) for info in documents), Counter[str]())
    return ", ".join(f"{n} {state}" for state, n in sorted(states.items())) or "none"


def archived_lines(archived: Archived, what: str) -> list[str]:
    """Show the contents of an archive in figures."""
    return [
        f"{what} {safe(archived.path)}: {counted(archived.documents, 'documents')},"
        f" {counted(archived.segments, 'segments')}, {counted(archived.entities, 'entities')}",
        f"checksum:  {archived.checksum}",
    ]


def extraction_lines(report: ExtractionReport) -> list[str]:
    """Show what was imported from another program's extractions."""
    lines = [
        f"documents: {report.documents:,} new, {report.attached:,} already there",
        f"segments:  {report.segments:,} with new facts",
        f"found:     {counted(report.entities, 'names')}, {counted(report.triples, 'triples')}",
    ]
    if report.absent_entities or report.absent_triples:
        lines.append(
            f"left out:  {report.absent_entities:,} names and {report.absent_triples:,} triples do"
            " not occur in the text of their passage"
        )
    if report.malformed:
        lines.append(f"left out:  {report.malformed:,} records are neither triples nor names")
    return lines + [f"left out:  {what}" for what in report.left_out]
