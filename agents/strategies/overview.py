"""Questions about a whole text: notes on all its parts, then an answer from the notes.

    begin -> read -> (answered: end | move) ; move -> read

Map and reduce within the window. The plan (numbers of parts and calls) is recorded before the first
call. Of a text with more than `MOST_PARTS` parts, evenly spread parts are read. Without a chat
model evenly spread parts that fit the window are read.
"""

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from qrmem.agents.search.run import Search
from qrmem.agents.search.state import SearchState
from qrmem.agents.search.steps import Calls, Strategy, began, cited
from qrmem.agents.search.steps import read as judged
from qrmem.answering import multiple_choice
from qrmem.answering.with_model import block
from qrmem.errors import ModelOutputError
from qrmem.extraction import reply_items
from qrmem.graphstore.codec import to_plain
from qrmem.llm.parallel import in_batches
from qrmem.prompts import fenced
from qrmem.prompts.replies import AnswerReply
from qrmem.types import Event, ScoredSegment, Segment, Verdict

if TYPE_CHECKING:
    from qrmem.llm.prompting import Caller

T = TypeVar("T")

NAME = "overview"
MOST_PARTS = 64
"""Maximum number of parts if the user chose the strategy."""
UNASKED = 12
"""Maximum number of parts if the strategy was chosen for a question about the whole text."""
WAVE = 8
"""Number of parts per step of the trail."""
NOTE, ANSWER = 200, 400
"""Maximum number of tokens of a note, and of the answer."""
MOST_CITED = 12
_MOST_SEGMENTS = 200_000
_ABOUT_ALL = re.compile(
    r"\b(?:summari[sz]e|summary|overview|main (?:point|idea|theme|argument|topic|character|event)s?"
    r"|key (?:point|idea|theme|takeaway)s?|gist|central (?:theme|idea|question)|moral of"
    r"|what happens in|plot of|how (?:does|do|did) [^?]{2,60} (?:change|develop|evolve|grow)"
    r"|tell me about the (?:book|novel|story|text|document|paper|report|conversation))\b"
    r"|\bwhat(?:'s|’s| is| are| was) (?:this|the|it|these|that)\b[^?]{0,40}\babout\b",
    re.IGNORECASE,
)


def is_about_all(question: str) -> bool:
    """Return whether a question is about a whole text: a summary, or how something changes."""
    return _ABOUT_ALL.search(question) is not None


async def begin(run: Search, state: SearchState) -> SearchState:
    """Make the plan: the parts in order, and the number of calls."""
    segments = await run.all_segments(_MOST_SEGMENTS)
    parts = _parts(segments, await run.sizes(segments), run.room - run.room // 20)
    if run.caller is None:
        fitting = max(1, sum(map(len, parts)) // max(1, len(parts)))
        segments_read = spread(segments, fitting)
        run.tell("start", reason=f"{len(segments_read)} of {len(segments)} segments, spread evenly")
        return began({one.id: 0.0 for one in segments_read})
    is_named = run.options.strategy == NAME
    chosen_parts = spread(parts, MOST_PARTS if is_named else UNASKED)
    joining = joins(run, len(chosen_parts))
    run.tell(
        "start",
        reason=f"plan: {len(chosen_parts)} of {len(parts)} parts of up to {run.room} tokens, "
        f"then {joining} joining: {len(chosen_parts) + joining} calls",
    )
    return {**began({}), "parts": [[one.id for one in part] for part in chosen_parts], "notes": []}


def _parts(segments: Sequence[Segment], sizes: Sequence[int], room: int) -> list[list[Segment]]:
    """Return segments in order in groups that fit; a group ends with its document."""
    parts: list[list[Segment]] = []
    room_left = 0
    for segment, size in zip(segments, sizes, strict=True):
        if not parts or size > room_left or parts[-1][-1].document_id != segment.document_id:
            parts.append([])
            room_left = room
        parts[-1].append(segment)
        room_left -= size
    return parts


def spread(items: Sequence[T], most: int) -> list[T]:
    """Return at most `most` evenly spread items, with the first and the last one."""
    if len(items) <= most:
        return list(items)
    if most < 2:
        return list(items[:most])
    step = (len(items) - 1) / (most - 1)
    return [items[round(n * step)] for n in range(most)]


def _group(run: Search) -> int:
    """Return the number of notes that one call joins."""
    return max(2, run.room // (NOTE + 20))


def joins(run: Search, notes: int) -> int:
    """Return the number of calls that join notes to one."""
    calls, group = 0, _group(run)
    while notes > group:
        notes = math.ceil(notes / group)
        calls += notes
    return calls + 1


async def read(run: Search, state: SearchState) -> SearchState:
    """Make notes on the next parts, or join notes, or answer from the remaining notes."""
    if run.caller is None:
        return await judged(run, state)
    parts, notes = state.get("parts", []), list(state.get("notes", []))
    if parts:
        return await _take_notes(run, run.caller, parts, notes)
    if len(notes) > _group(run):
        return await _joined(run, run.caller, notes)
    return await _answered(run, run.caller, notes)


async def again(run: Search, state: SearchState) -> SearchState:
    """Continue; without a chat model there is one reading."""
    return {"has_moved": run.caller is not None}


STRATEGY = Strategy(begin=begin, read=read, move=again, calls=(Calls("overview"),))


async def _take_notes(
    run: Search, caller: "Caller", parts: list[list[str]], notes: list[dict[str, Any]]
) -> SearchState:
    wave = parts[:WAVE]
    notes_made = await asyncio.gather(*(_note(run, caller, ids) for ids in wave))
    segments = await run.graph.segments([id for ids in wave for id in ids])
    run.tell(
        "read",
        read=[ScoredSegment(one.id, 0.0, one.tokens) for one in segments],
        reason=f"notes on {len(wave)} parts, {len(parts) - len(wave)} left",
        tokens=max(tokens for _, tokens in notes_made),
    )
    return {
        "parts": parts[WAVE:],
        "notes": [*notes, *(note for note, _ in notes_made if note["text"])],
    }


async def _note(run: Search, caller: "Caller", ids: Sequence[str]) -> tuple[dict[str, Any], int]:
    passages = await run.graph.passages(await run.graph.segments(ids))
    question = multiple_choice.shown(run.context.question, ())
    try:
        call = await caller.call(
            "overview-part",
            AnswerReply,
            lambda kept: dict(passages="\n".join(kept[0]), question=question),
            [[block(passage) for passage in passages]],
            window=run.context.window,
            reply=min(NOTE, run.context.window // 4),
            segments=ids,
        )
    except ModelOutputError as exc:
        run.listener(Event("warning", {"message": f"a part of the text is left out: {exc}"}))
        return {"text": "", "citations": []}, 0
    text = " ".join(call.value.answer.split())
    quotes = reply_items.quotes(call.value.quotes)
    citations = cited(Verdict(True, text, quotes=quotes), passages) if text else []
    plain = [to_plain(replace(one, quote="")) for one in citations]
    return {"text": text, "citations": plain}, call.tokens


async def _joined(run: Search, caller: "Caller", notes: list[dict[str, Any]]) -> SearchState:
    groups = list(in_batches(notes, _group(run)))
    joined_notes = await asyncio.gather(
        *(_join(run, caller, group, choices=()) for group in groups)
    )
    joined = [
        {"text": verdict.answer or group[0]["text"], "citations": spans}
        for group, (verdict, spans) in zip(groups, joined_notes, strict=True)
    ]
    run.tell(
        "read",
        reason=f"{len(notes)} notes joined to {len(joined)}",
        tokens=joined_notes[0][0].tokens,
    )
    return {"notes": joined}


async def _answered(run: Search, caller: "Caller", notes: list[dict[str, Any]]) -> SearchState:
    if not notes:
        reason = "no part of the text is relevant to the question"
        run.tell("read", verdict="unanswerable", reason=reason)
        return {"status": "unanswerable", "reason": reason}
    verdict, spans = await _join(run, caller, notes, choices=run.context.choices)
    run.tell(
        "read",
        verdict=verdict.told,
        reason=verdict.reason,
        tokens=verdict.tokens,
    )
    if not verdict.is_answerable:
        return {"status": "unanswerable", "reason": verdict.reason}
    answer = to_plain(replace(verdict, quotes=()))
    return {"status": "answered", "answer": answer, "citations": spans, "reason": verdict.reason}


async def _join(
    run: Search, caller: "Caller", notes: Sequence[Mapping[str, Any]], *, choices: Sequence[str]
) -> tuple[Verdict, list[dict[str, Any]]]:
    """Return joined notes, with the citations of the notes that the reply names, or of all."""
    labelled = {f"S{n}": note for n, note in enumerate(notes, 1)}
    question = multiple_choice.shown(run.context.question, choices)
    try:
        call = await caller.call(
            "overview-join",
            AnswerReply,
            lambda kept: dict(notes="\n".join(kept[0]), question=question),
            [[fenced(note["text"], label) for label, note in labelled.items()]],
            window=run.context.window,
            reply=min(ANSWER, run.context.window // 4),
        )
    except ModelOutputError as exc:
        reason = f"the model's reply cannot be read: {exc}"
        return Verdict(is_answerable=False, reason=reason), []
    reply = call.value
    text = " ".join(reply.answer.split())
    choice = multiple_choice.chosen(text, choices) if choices else None
    if not text or (choices and choice is None):
        return Verdict(False, reason=reply.reasoning.strip(), tokens=call.tokens), []
    labels = [quote.label for quote in reply_items.quotes(reply.quotes) if quote.label in labelled]
    notes_used = [labelled[label] for label in dict.fromkeys(labels)] or list(notes)
    spans = [span for note in notes_used for span in note["citations"]]
    answer = choices[choice] if choice is not None else text
    verdict = Verdict(True, answer, choice, reply.reasoning.strip(), tokens=call.tokens)
    return verdict, spread(spans, MOST_CITED)
