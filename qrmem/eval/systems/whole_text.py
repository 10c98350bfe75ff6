"""Systems without retrieval: no text, whole text, cut, in windows, summarised, compressed."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any, Literal

from qrmem.agents.baselines import ask_about, joined
from qrmem.errors import ContextExceeded, MissingError
from qrmem.eval.harness import Harness
from qrmem.eval.items import Context, Item, Prediction
from qrmem.eval.metrics import normalised
from qrmem.eval.registry import system
from qrmem.eval.systems.passage_reader import answer_from, fitting, read_step
from qrmem.llm.prompting import SHORTER, Caller
from qrmem.prompts.replies import SummaryReply
from qrmem.text.sentences import sentences
from qrmem.types import Passage, Reasoner, Segment, Step, Usage, Verdict

Keep = Literal["left", "right", "middle"]
MODEL_WINDOW = 128_000
"""Context of a model in tokens, unless its server states a smaller one."""
LEAST_WINDOW = 512


@system("closed-book", "the model alone, no text", "QRMeM's baseline")
@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedBook:
    """Answers without a text, from the model's own knowledge."""

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        return await answer_from(harness, item, ())


@system("keep-ends", "both ends, the middle cut out", "LongBench", keep="middle")
@system("keep-right", "the end of the text", "QRMeM's baseline", keep="right")
@system("keep-left", "the beginning of the text", "QRMeM's baseline", keep="left")
@system(
    "full-text",
    "the whole text in the model's own window, middle cut beyond it",
    "QRMeM's baseline",
    keep="middle",
    is_full=True,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    """Reads the text, cut to the window.

    Attributes:
        keep: `left`, `right`, or `middle`: LongBench's rule, which keeps both ends and cuts out the
            middle.
        is_full: whether it uses the model's own window, unless one is chosen for the run.
        window: maximum of its own window.
    """

    keep: Keep
    is_full: bool = False
    window: int = 0

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item; a text is cut again if the server's context is smaller than the window.

        Again its middle is cut out, not its end.
        """
        window = self._window(harness)
        if harness.run.caller is not None:
            harness.caller.packed_again = 0
        while True:
            ask_context = harness.asked(item, window)
            room = harness.reasoner.room(ask_context)
            passages_kept = truncated(harness.reasoner, harness.texts(context), room, self.keep)
            try:
                return await answer_from(harness, item, passages_kept, window=ask_context.window)
            except ContextExceeded as exc:
                tokens_used = (
                    ask_context.window - room + sum(map(harness.reasoner.size, passages_kept))
                )
                window = exc.limit if 0 < exc.limit < tokens_used else int(tokens_used / SHORTER)
                if window < LEAST_WINDOW:
                    raise

    def _window(self, harness: Harness) -> int:
        """Return the system's window; 0 uses that of the run."""
        if not self.is_full:
            return self.window
        model_window = harness.full_window or MODEL_WINDOW
        return min(self.window or model_window, model_window)


def truncated(
    reasoner: Reasoner, passages: Sequence[Passage], room: int, keep: Keep
) -> list[Passage]:
    """Return the labelled passages of a text that fit, in order; one may be shortened."""
    if keep == "right":
        passages_kept = _fitted(reasoner, passages, room, from_end=True)
    elif keep == "left" or len(fitting(reasoner, passages, room)) == len(passages):
        passages_kept = _fitted(reasoner, passages, room, from_end=False)
    else:
        head = _fitted(reasoner, passages, room // 2, from_end=False)
        rest, room_left = passages[len(head) :], room - room // 2
        passages_kept = [*head, *_fitted(reasoner, rest, room_left, from_end=True)]
    return [replace(passage, label=f"S{n}") for n, passage in enumerate(passages_kept, 1)]


def _fitted(
    reasoner: Reasoner, passages: Sequence[Passage], room: int, *, from_end: bool
) -> list[Passage]:
    """Return the passages that fit, from the beginning or from the end, in order."""
    passages_kept: list[Passage] = []
    for passage in reversed(passages) if from_end else passages:
        size = reasoner.size(passage)
        if size > room:
            passages_kept += _part(reasoner, passage, room, from_end=from_end)
            break
        passages_kept.append(passage)
        room -= size
    return passages_kept[::-1] if from_end else passages_kept


def _part(reasoner: Reasoner, passage: Passage, room: int, *, from_end: bool) -> list[Passage]:
    """Return the words that fit, from one end of a passage, or nothing."""
    words = passage.segment.text.split()

    def of(count: int) -> Passage:
        words_kept = words[len(words) - count :] if from_end else words[:count]
        return replace(passage, segment=replace(passage.segment, text=" ".join(words_kept)))

    count = bisect_right(range(1, len(words) + 1), room, key=lambda n: reasoner.size(of(n)))
    return [of(count)] if count else []


@system("sliding-window", "every window asked, answers voted", "QRMeM's baseline")
@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindow:
    """Answers from every window of the text; the most frequent answer counts.

    If no window answers and an answer is forced, the last window is used.

    Attributes:
        requests: number of windows that cover the text evenly (five in the paper); more if it does
            not fit.
    """

    requests: int = 5

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        reasoner = harness.reasoner
        ask_context = harness.asked(item)
        pieces = harness.texts(context, _PIECE_TOKENS)
        windows = spread(reasoner, pieces, reasoner.room(ask_context), self.requests)
        steps: list[Step] = []
        verdicts: list[Verdict] = []
        for window in windows:
            verdicts.append(await reasoner.judge(ask_context, window))
            steps.append(read_step(window, (), len(steps) + 1, verdicts[-1].tokens))
        answered = [verdict for verdict in verdicts if verdict.is_answerable]
        final, is_forced = elected(answered), False
        if not answered and windows and harness.is_forced(item):
            final, is_forced = await reasoner.judge(ask_context, windows[-1], force=True), True
        if not final.is_answerable:
            return Prediction(steps=tuple(steps))
        return Prediction(
            text=final.answer,
            choice=final.choice,
            status="forced" if is_forced else "answered",
            reason=final.reason,
            steps=tuple(steps),
        )


_PIECE_TOKENS = 60
"""Tokens of the pieces between which a window may end: a sentence or two."""


def spread(
    reasoner: Reasoner, pieces: Sequence[Passage], room: int, requests: int
) -> list[list[Passage]]:
    """Return windows that cover a text evenly: the requested number, or more if it does not fit.

    Args:
        reasoner: the reader.
        pieces: small pieces of the text, in order.
        room: tokens of a window.
        requests: requested number of windows.
    """
    sizes = [reasoner.size(piece) for piece in pieces]
    middles = [end - size / 2 for end, size in zip(accumulate(sizes), sizes, strict=True)]
    for count in range(max(1, requests), max(requests, len(pieces)) + 1):
        number = [int(count * middle / sum(sizes)) for middle in middles]
        groups = groupby(zip(number, pieces, strict=True), key=itemgetter(0))
        windows = [_window([piece for _, piece in group]) for _, group in groups]
        if all(sum(map(reasoner.size, window)) <= room for window in windows):
            return windows
    return [_window([piece]) for piece in pieces]


def _window(pieces: Sequence[Passage]) -> list[Passage]:
    """Return pieces as passages; those of one document are joined."""
    groups = groupby(pieces, key=lambda piece: piece.segment.document_id)
    return [replace(joined(list(some)), label=f"S{n}") for n, (_, some) in enumerate(groups, 1)]


def elected(answered: Sequence[Verdict]) -> Verdict:
    """Return the most frequent answer, of ties the first."""
    if not answered:
        return Verdict(is_answerable=False)
    votes = Counter(_vote(verdict) for verdict in answered)
    best = max(votes.values())
    return next(verdict for verdict in answered if votes[_vote(verdict)] == best)


def _vote(verdict: Verdict) -> str | int:
    return verdict.choice if verdict.choice is not None else normalised(verdict.answer)


@system("summary", "a summary instead of the text", "QRMeM's baseline")
@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Reads summaries instead of the text; making them counts as construction.

    The text is summarised piece by piece, and the summaries again, until they fit the window.
    Without a chat model each document's most informative sentences are its summary.
    """

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        summaries, stages = await harness.prepared(
            f"summary {context.id}", partial(_summaries, context)
        )
        prediction = await answer_from(harness, item, summaries)
        return replace(prediction, usage=Usage(stages))


async def _summaries(context: Context, harness: Harness) -> list[Passage]:
    if harness.model is None:
        texts = await _telling(context, harness)
    else:
        asked = harness.asked(Item("", "", (), ""))
        room = harness.reasoner.room(asked)
        whole_text = [piece.segment.text for piece in harness.texts(context)]
        pieces = [text[start:end] for text in whole_text for start, end in sentences(text)]
        texts = await _reduced(pieces, harness.caller, room, asked.window)
    return [
        Passage(f"S{n}", whole(f"{context.id} {n}", text, harness))
        for n, text in enumerate(texts, 1)
    ]


async def _telling(context: Context, harness: Harness) -> list[str]:
    pieces = groupby(harness.texts(context), key=lambda piece: piece.segment.document_id)
    result = []
    for _, piece_terms in pieces:
        piece_terms_list = list(piece_terms)
        segments = [piece.segment for piece in piece_terms_list]
        if len(segments) == 1:
            result.append(segments[0].text)
        else:
            result.append(await harness.reasoner.summarise(piece_terms_list[0].title, segments))
    return result


_OF_ROOM = 3 / 4
"""Share of the window for the summaries; the rest is for the question."""


async def _reduced(texts: Sequence[str], caller: Caller, room: int, window: int) -> list[str]:
    """Summarise a text's pieces, then the summaries, until they fit the room together."""
    count, most = caller.budget.count, int(room * _OF_ROOM)
    prompt = "summary"
    texts_left = list(texts)
    while True:
        before = len(texts_left)
        texts_left = [
            await _summary(group, prompt, caller, max(64, room // 8), window)
            for group in _packed(texts_left, most, count)
        ]
        if sum(map(count, texts_left)) <= most or len(texts_left) >= before:
            return texts_left
        prompt = "summary-join"


def _packed(texts: Sequence[str], most: int, count: Callable[[str], int]) -> list[list[str]]:
    """Return adjacent texts in groups that fit; a text that is too long is its own group."""
    groups: list[list[str]] = [[]]
    tokens_used = 0
    for text in texts:
        size = count(text)
        if groups[-1] and tokens_used + size > most:
            groups.append([])
            tokens_used = 0
        groups[-1].append(text)
        tokens_used += size
    return groups


async def _summary(
    texts: Sequence[str], prompt: str, caller: Caller, reply: int, window: int
) -> str:
    summary = await ask_about(
        caller, prompt, SummaryReply, texts, window=window, reply=reply, between=" "
    )
    if summary is None:
        return caller.budget.cut(" ".join(texts), reply)
    return " ".join(summary.summary.split())


def whole(document: str, text: str, harness: Harness) -> Segment:
    """Return a text that is not part of a document as a passage."""
    tokens = harness.tools.counter.count(text)
    return Segment(f"{document}*", document, 0, 0, len(text), text, tokens)


@system("llmlingua-2", "the text with words left out", "LLMLingua-2")
@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """Drops words until the text fits, then reads it.

    Attributes:
        model: name or folder of the token classifier.
    """

    model: str = "microsoft/llmlingua-2-xlm-roberta-large-meetingbank"

    needs = frozenset({"llmlingua"})

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        room = harness.reasoner.room(harness.asked(item))
        texts = [f"{d.title}\n{d.text}" if d.title else d.text for d in context.documents]
        shorter = compressed(self.model, texts, room)
        passage = Passage("S1", whole(context.id, shorter, harness))
        passages_kept = truncated(harness.reasoner, [passage], room, "left")
        return await answer_from(harness, item, passages_kept)


def compressed(model: str, texts: list[str], room: int) -> str:
    """Compress texts by the package's own classifier and token counter.

    Raises:
        MissingError: the classifier or the token counter is not on this machine.
    """
    try:
        compressed_prompt = _compressor(model).compress_prompt_llmlingua2(texts, target_token=room)
    except OSError as exc:
        raise MissingError(
            f"LLMLingua-2 cannot be loaded; give a folder with llmlingua-2:model=FOLDER, and "
            f"tiktoken's file of cl100k_base with TIKTOKEN_CACHE_DIR: {exc}"
        ) from exc
    return str(compressed_prompt["compressed_prompt"])


@cache
def _compressor(model: str) -> Any:
    from llmlingua import PromptCompressor

    # By default the package would run code that comes with the weights.
    trusted = {"trust_remote_code": False}
    return PromptCompressor(
        model_name=model, use_llmlingua2=True, device_map="cpu", model_config=trusted
    )
