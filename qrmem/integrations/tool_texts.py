"""What the functions of a toolset return to a model, as text.

What comes from documents (texts, titles, ids, names, facts) is between tags that it cannot close,
to mark it as data. Outside the tags are only words of this module.
"""

from collections.abc import Mapping, Sequence

from qrmem.text.numbers import counted
from qrmem.types import Answer, EntityView, FactView, Hit, MemoryStatus, Recalled, Trail
from qrmem.types.shown import continued, fenced, one_line
from qrmem.types.turns import related_lines

EXCERPT = 1200
"""Maximum length in characters of a passage or quotation in a function's text."""
_TITLE = 200
"""Maximum length in characters of a title in a function's text."""
_PASSAGES = "Closest passages (no chat model is set):"
NO_ANSWER = "The documents do not answer this."
MOST = 50
"""Upper bound of `k`; a larger `k` is reduced to it."""
_RELATIONS = _PLACES = 10


def hits_text(hits: Sequence[Hit]) -> str:
    """Return passages below their ids and titles; a long passage is cut to its excerpt."""
    lines = [
        fenced(
            f"{_place(hit.segment_id, hit.title or hit.document_id, hit.part)}\n"
            f"{hit.text if len(hit.text) <= EXCERPT else hit.excerpt or hit.text[:EXCERPT]}"
        )
        + "".join(f"\nNo longer: {fenced(words[:EXCERPT])}" for words in hit.ended)
        for hit in hits
    ]
    return "\n\n".join(lines) or "Nothing in the memory matches."


def _place(segment_id: str, title: str, part: str) -> str:
    """Return the place of a passage on one line; a title may have any length."""
    return one_line(f"[{segment_id}] {title[:_TITLE]} {part[:_TITLE]}")


def answer_text(answer: Answer) -> str:
    """Return an answer with its quotations, or passages if there is no answer, with places."""
    if answer.status == "unanswerable":
        return "\n".join([NO_ANSWER, *([fenced(one_line(answer.reason))] if answer.reason else [])])
    is_answer = answer.status != "passages" or not answer.citations
    quotes = [
        f'- "{continued(c.quote[: EXCERPT if is_answer else None], "  ")}" '
        f"({one_line(c.title or c.document_id)[:_TITLE]}, characters {c.start}-{c.end})"
        for c in answer.citations
    ]
    lines = [continued(answer.text, "  ")] if is_answer else []
    return f"{'Answer:' if is_answer else _PASSAGES}\n{fenced(chr(10).join([*lines, *quotes]))}"


def recalled_text(found: Recalled) -> str:
    """Return the recalled turns, then the last turns of the session."""
    recent = [line for turn in found.recent for line in related_lines(turn, (), ())]
    last = fenced("\n".join(recent)) if recent else ""
    parts = (("Earlier turns:", found.text), ("Last turns:", last))
    return "\n\n".join(f"{head}\n{text}" for head, text in parts if text)


def entity_text(view: EntityView) -> str:
    """Return an entity's name, type, properties, first relations and places."""
    lines = [one_line(f"{view.entity.name} ({view.entity.type or 'type unknown'})")]
    for name, values in view.entity.values().items():
        lines.append(one_line(f"{name}: {'; before: '.join(values)}"[:EXCERPT]))
    for relation in view.relations[:_RELATIONS]:
        other = relation.tail if relation.head == view.entity.key else relation.head
        description = one_line(relation.description)[:EXCERPT]
        arrow = "" if relation.head == view.entity.key else "← "
        lines.append(
            f"- {one_line(view.neighbours.get(other, view.entity.name))}: {arrow}{description}"
        )
    places = dict.fromkeys(
        one_line(f"{segment.document_id} {segment.part}") for segment in view.segments
    )
    if places:
        more = f"; and {len(places) - _PLACES} more" if len(places) > _PLACES else ""
        lines.append(f"named in: {'; '.join([*places][:_PLACES])}{more}")
    return fenced("\n".join(lines))


def facts_text(found: Sequence[FactView]) -> str:
    """Return at most `MOST` facts with their ids, times, sources and quotations."""
    lines = []
    for fact in found[:MOST]:
        sentence = one_line(f"{fact.head} — {fact.description[:EXCERPT]} — {fact.tail}")
        begins = "not yet: from" if fact.is_ahead else "from"
        times = (("said", fact.said_at), (begins, fact.valid_from), ("until", fact.valid_until))
        times_in_words = ", ".join(f"{word} {when}" for word, when in times if when)
        since = f" {fact.superseded_at[:10]}" if fact.superseded_at else ""
        later = f"; superseded{since}: {fact.then[:EXCERPT]}" if fact.superseded_by else ""
        lines.append(
            one_line(
                f"[{fact.id}] {sentence}{f' ({times_in_words})' if times_in_words else ''}{later}"
            )
        )
        quoted = continued(fact.quotation[:EXCERPT], "  ")
        lines.append(f'  "{quoted}" ({one_line(fact.document_id)[:_TITLE]})')
    more = f"\nand {len(found) - MOST} more" if len(found) > MOST else ""
    return fenced("\n".join(lines)) + more if lines else "No fact found."


def trail_text(trail: Trail) -> str:
    """Return a recorded run step by step."""
    question = one_line(trail.question)
    lines = [f"{question} ({trail.strategy}, window {trail.window}): {trail.status}"]
    for step in trail.steps:
        read = ", ".join(segment.segment_id for segment in step.read)
        counts = f": read {counted(len(step.read), 'segments')}" if step.read else ""
        if step.dropped:
            counts += f", dropped {len(step.dropped)}: no room in the window"
        verdict = f" → {step.verdict}" if step.verdict else ""
        lines.append(f"{step.n}. {step.action}{counts}{verdict}")
        lines += [f"   {one_line(step.reason)}"] if step.reason else []
        lines += [f"   segments: {read}"] if read else []
    return fenced("\n".join(lines))


def status_text(status: MemoryStatus) -> str:
    """Return the counts, problems and warnings of a memory."""
    counts: Mapping[str, int] = status.counts
    lines = [f"{name}: {count}" for name, count in counts.items()]
    problems = [
        one_line(f"incomplete: {document} segment {n}: {why}")
        for document, n, why in status.problems
    ]
    told = [*problems, *status.warnings]
    lines += [fenced("\n".join(told))] if told else []
    return "\n".join([f"namespace {status.namespace}", *lines])
