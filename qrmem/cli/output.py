"""Output of commands: results to standard output, as text or as one JSON document."""

import dataclasses
import json
import os
import re
import sys
import unicodedata
from argparse import Namespace
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from textwrap import dedent
from typing import Any

from qrmem.config import Secret
from qrmem.errors import OutputFailed
from qrmem.text.numbers import counted
from qrmem.types import (
    Answer,
    Citation,
    Hit,
    ScoredSegment,
    Segment,
    StageUsage,
    Step,
    Trail,
    Usage,
)
from qrmem.types.answers import ScoredNode
from qrmem.types.shown import continued, one_line

LOCAL = "local."
"""Prefix of the recorded names of readers without a chat model."""
QUOTE_LENGTH = 300
_LINES, _WIDTH = 8, 100
"""Lines in an excerpt of code."""
_CODE = re.compile(r"lines? \d")
STEP_EDGES = 3
_MARK, _LABEL, _UNMARK = "\x02", "\x04", "\x03"
"""Round a word that the question has and a line's label, until it is known who reads them."""
RED, UNSTYLED = "\x1b[31m", "\x1b[0m"
_STYLES = {_MARK: "\x1b[1;33m", _LABEL: "\x1b[36m", _UNMARK: UNSTYLED}
_STYLED = re.compile("([\x02\x03\x04])")
_LABELS = re.compile(r"\A(answer|closest passages|passage|reason|cited|trail|cost)\b")
PASSAGES = "closest passages (no chat model is set):"
_DROPPED = 5
"""Maximum number of dropped segments of a step in a list."""


def plain(value: Any) -> Any:
    """Turn records into what `json` can write."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Secret) else value


def show(text: str) -> None:
    """Print a result at once, with control characters replaced.

    Raises:
        OutputFailed: standard output cannot be written.
        BrokenPipeError: its reader went away.
    """
    try:
        print(_styled(text), flush=True)
    except BrokenPipeError:
        raise
    except OSError as exc:
        raise OutputFailed(
            f"standard output cannot be written: {exc.strerror}; what was done is kept"
        ) from exc


def _styled(text: str) -> str:
    """Replace control characters; show marks as colours on a terminal, and drop them elsewhere."""
    styles = _STYLES if has_colours(sys.stdout) else {}
    pieces = [styles.get(p, "") if p in _STYLES else safe(p) for p in _STYLED.split(text)]
    return "".join(pieces) + (styles.get(_UNMARK, "") if len(pieces) > 1 else "")


def has_colours(stream: Any) -> bool:
    """Return whether a stream is a terminal whose user did not turn colours off."""
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not refused and bool(stream.isatty())


def _mark(line: str, words: Collection[str]) -> str:
    """Mark some words wherever they occur in a line that holds no control characters."""
    if not words:
        return line
    either = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.sub(rf"(?<!\w)(?:{either})(?!\w)", rf"{_MARK}\g<0>{_UNMARK}", line)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    show(_json(value, indent=2))


def _json(value: Any, indent: int | None = None) -> str:
    """Return JSON that escapes control characters and those that change the text direction."""
    text = json.dumps(plain(value), ensure_ascii=False, indent=indent)
    return "".join(c if c == "\n" or not _is_control(c) else json.dumps(c)[1:-1] for c in text)


def print_result(
    arguments: Namespace, value: Any, lines: Sequence[str], *, quiet: bool = False
) -> int:
    """Print a result: as JSON, or in lines for people; returns the exit code 0.

    Args:
        quiet: the lines say no more than that something was done; the exit code says it, too.
    """
    if arguments.json:
        print_json(value)
    elif not quiet:
        show("\n".join(lines))
    return 0


def print_done(arguments: Namespace, value: Any, lines: Sequence[str]) -> int:
    """Say that something was done; with `--quiet` the exit code says it."""
    return print_result(arguments, value, lines, quiet=arguments.quiet)


def print_json_line(value: Any, stream: Any = None) -> None:
    """Print one JSON object on one line: steps that are streamed, and errors."""
    if stream is None:
        show(_json(value))
    else:
        print(_json(value), file=stream, flush=True)


def note(text: str, *, quiet: bool = False) -> None:
    """Print a line about the run on standard error; a failure to print it does not end the run."""
    if quiet:
        return
    with suppress(OSError):
        print(f"qrmem: {' '.join(safe(text).split())}", file=sys.stderr, flush=True)


def safe(text: str) -> str:
    """Replace control characters, which could move a terminal's cursor or worse."""
    return "".join(
        c if c in "\n\t\u200d" or not _is_control(c) else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def safe_line(text: str) -> str:
    """Return a text on one line, without control characters."""
    return safe(one_line(text))


def _is_control(char: str) -> bool:
    """Return whether a character is a control, a surrogate, a line end or a direction mark."""
    return not char.isprintable() and unicodedata.category(char) != "Zs"


def shortened(text: str, length: int = QUOTE_LENGTH) -> str:
    """Return the text on one line, cut at `length` characters."""
    line = safe_line(text)
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def excerpt(text: str, part: str, *, whole: bool = False) -> list[str]:
    """Return the beginning of a text: the first lines of code, one line of anything else.

    Args:
        whole: don't cut the line.
    """
    if not _CODE.match(part):
        return [safe_line(text)] if whole else [shortened(text)]
    lines = [line for line in dedent(safe(text)).split("\n") if line.strip()] or [""]
    cut = [line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…" for line in lines]
    return [line.rstrip() for line in cut[:_LINES]] + ["…"] * (len(cut) > _LINES)


def _source(shown: Hit | Citation) -> str:
    """Return title and part; for a file in a folder also its id, since titles may be equal."""
    title, id = shown.title, shown.document_id
    if "/" in id:
        title = id if title in ("", id, PurePath(id).stem) else f"{title} ({id})"
    return safe_line(" · ".join(filter(None, (title or id, shown.part))))


def hit_lines(number: int, hit: Hit) -> list[str]:
    """Show a hit: place, how it was reached, its excerpt with the question's words marked."""
    kind = f"  ({hit.boilerplate})" if hit.boilerplate else ""
    words = {hit.excerpt[start:end] for start, end in hit.matches}
    text = excerpt(hit.excerpt, hit.part, whole=True)
    return [
        f"{number}. {_source(hit)}{kind}  [{hit.segment_id}]  {hit.score:.3f}",
        f"   why: {safe_line(hit.via)}",
        *(f"   no longer: {safe_line(words)}" for words in hit.ended),
        *(f"   {_mark(line, words)}" for line in text),
    ]


def answer_lines(
    answer: Answer, *, trail: bool = True, quiet: bool = False, place: str = ""
) -> list[str]:
    """Show an answer with its citations, its trail and its cost.

    Args:
        trail: show the whole trail and the cost; else one line.
        quiet: show the answer alone.
    """
    if answer.status == "passages" and answer.citations:
        # Without a chat model the answer is these passages: they are shown once.
        lines = [PASSAGES]
        if miss := answer.reason.partition("; ")[2]:
            lines.append(f"reason: {shortened(miss)}")
    else:
        text = answer.text or "The text does not answer this."
        mark = "" if answer.status == "answered" else f"   [{answer.status}]"
        lines = [f"answer: {safe(continued(text, ' ' * 8))}{mark}"]
        if answer.reason and answer.status != "answered":
            lines.append(f"reason: {shortened(answer.reason)}")
    lines += citation_lines(answer.citations, answer.status)
    if trail:
        lines += ["trail:"]
        for before, step in _steps(answer.trail):
            lines += step_lines(step, before)
        lines.append(f"cost:   {usage_line(answer.usage)}")
    elif not quiet:
        lines.append(trail_line(answer.trail, place))
    return [_LABELS.sub(rf"{_LABEL}\1{_UNMARK}", line, count=1) for line in lines]


def trail_line(trail: Trail, place: str = "") -> str:
    """Summarize a run in one line, with the command that shows all of it.

    Args:
        place: options that lead to the memory; see `qrmem.errors.place`.
    """
    read = {segment.segment_id for step in trail.steps for segment in step.read}
    is_tree = not read and bool(trail.steps) and bool(trail.steps[-1].nodes)
    parts = [
        safe(trail.strategy),
        counted(len(trail.steps), "steps"),
        f"{_kinds(trail.steps[-1].nodes) if is_tree else counted(len(read), 'segments')} read",
        usage_line(trail.usage),
    ]
    see = f"qrmem trail {trail.id}{place}" if trail.id else "--trail"
    return f"trail:  {', '.join(parts)} ({see} shows it)"


def _kinds(nodes: Iterable[ScoredNode]) -> str:
    """Count the nodes that a search of a tree found, by kind: `4 sentences, 1 surprise`."""
    kinds = Counter(_KINDS.get(node.kind, f"{node.kind}s") for node in nodes)
    return ", ".join(counted(count, kind) for kind, count in kinds.items())


_KINDS = {"summary": "summaries"}


def citation_lines(citations: Iterable[Citation], status: str) -> list[str]:
    """Show the quotations of an answer, or the passages that replace it without a chat model."""
    is_answer = status != "passages"
    return [
        citation_line(citation, "cited: " if is_answer else f"passage {n}:")
        for n, citation in enumerate(citations, 1)
    ]


def citation_line(citation: Citation, label: str = "cited: ") -> str:
    """Show a quotation and its place."""
    whole = " (whole segment)" if citation.whole else ""
    where = f"{_source(citation)}, characters {citation.start}-{citation.end}{whole}"
    words = {citation.quote[start:end] for start, end in citation.matches}
    # A passage that is shown instead of an answer is shown whole.
    quote = excerpt(citation.quote, citation.part, whole=bool(words))
    quote = [_mark(line, words) for line in quote]
    if len(quote) == 1:
        quote = [f'"{quote[0]}"']
    return "\n        ".join([f"{label} {quote[0]}", *quote[1:], where])


def _steps(trail: Trail) -> Iterator[tuple[Step | None, Step]]:
    """Yield each step with the one before it."""
    return zip((None, *trail.steps), trail.steps, strict=False)


def step_lines(step: Step, before: Step | None = None) -> list[str]:
    """Show one step of a trail, with the entities that the step before did not have."""
    head = f"  {step.n}. {step.action}"
    if step.read or step.dropped:
        size = sum(segment.tokens for segment in step.read)
        head += f": read {counted(len(step.read), 'segments')} ({size} tokens)"
        head += f", dropped {len(step.dropped)}: no room in the window" if step.dropped else ""
    head += f" → {step.verdict}" if step.verdict else ""
    lines = [head]
    names_before = set(before.entities) if before else set()
    if joined := [name for name in step.entities if name not in names_before]:
        lines.append(
            f"     {'joined by' if names_before else 'at'} {shortened(', '.join(joined), 110)}"
        )
    for edge in [e for e in step.edges if e.taken] or list(step.edges[:STEP_EDGES]):
        mark = "→" if edge.taken else "·"
        lines.append(
            f"     {mark} {edge.score:.3f} "
            + shortened(f"{edge.head} — {edge.tail}: {edge.description}", 110)
        )
    if step.query:
        lines.append(f"     compared with: {shortened(step.query, 160)}")
    if step.brought:
        lines.append(f"     brought {', '.join(s.segment_id for s in step.brought[:5])}")
    if step.reason:
        lines.append(f"     {shortened(step.reason, 160)}")
    if step.nodes:
        lines.append(f"     found: {_kinds(step.nodes)}")
    if step.memory:
        lines.append(f"     memory (similarity {step.likeness:.2f}): {shortened(step.memory, 110)}")
    return lines


def trail_lines(trail: Trail, segments: Mapping[str, Segment]) -> list[str]:
    """Show a recorded run.

    Args:
        segments: the segments that it read or dropped, by id, as far as they still exist.
    """
    lines = [
        f"trail {trail.id}  {trail.created}  {trail.strategy}, window {trail.window}",
        f"answered by {reader(trail.reasoner)}",
        f"question: {safe(continued(trail.question, ' ' * 10))}",
    ]
    for before, step in _steps(trail):
        lines += step_lines(step, before)
        for scored in step.read:
            lines.append(_segment_line("read   ", scored, segments))
            if scored.via:
                lines.append(f"             why: {shortened(scored.via, 140)}")
        lines += [_segment_line("dropped", scored, segments) for scored in step.dropped[:_DROPPED]]
        if len(step.dropped) > _DROPPED:
            lines.append(f"     dropped … and {len(step.dropped) - _DROPPED} more")
    if trail.status == "passages" and trail.citations:
        lines.append(PASSAGES)
    else:
        lines.append(f"{trail.status}: {safe(continued(trail.answer, ' ' * 8)) or '—'}")
    lines += citation_lines(trail.citations, trail.status)
    lines.append(f"cost:   {usage_line(trail.usage)}")
    return lines


def reader(name: str) -> str:
    """Return the reader or model in words, from its recorded name."""
    kind, _, chosen = name.partition(":")
    if name.startswith(LOCAL):
        return f"built-in rules ({safe(name)})"
    if kind != "prompted" or chosen.count(":") < 2:
        return safe(name)
    model, mode, prompts = chosen.rsplit(":", 2)  # a model's name may contain colons
    return safe(f"{model}, mode {mode}, prompts {prompts}")


def readers(names: Sequence[str]) -> str:
    """Return the readers of some documents in words, from their recorded names."""
    rules = "built-in rules"
    reader_names = (rules if name.startswith(LOCAL) else reader(name) for name in names)
    return ", ".join(dict.fromkeys(reader_names))


def _segment_line(what: str, found: ScoredSegment, segments: Mapping[str, Segment]) -> str:
    """Show a segment of a step: its id, its score and its place."""
    segment = segments.get(found.segment_id)
    place = f"{segment.document_id} · {segment.part}" if segment and segment.part else ""
    place = place or (segment.document_id if segment else "deleted")
    return f"     {what} {found.segment_id}  {found.score:.3f}  {shortened(place, 80)}"


def usage_line(usage: Usage) -> str:
    """Summarize the usage of a run in one line."""
    # A stage may occur in both phases: orientation reads segments again for a question.
    stages = [*usage.construction.items(), *usage.online.items()]
    if not usage.calls:
        return "no chat model was called"
    calls: Counter[str] = Counter()
    for name, stage in stages:
        calls[name] += stage.calls
    parts = ", ".join(f"{name} {count}" for name, count in sorted(calls.items()))
    return (
        f"{counted(usage.calls, 'calls')}, {usage.tokens_in:,} tokens in, {usage.tokens_out:,} out "
        f"({parts}){_money([stage for _, stage in stages])}"
    )


def _money(stages: Sequence[StageUsage]) -> str:
    costs = [stage.cost for stage in stages if stage.cost is not None]
    return f", {sum(costs):.4f} USD" if costs else ""
