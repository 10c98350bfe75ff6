"""Summaries of a document (T) and of a node of a tree, with or without a chat model."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from qrmem.errors import ModelOutputError
from qrmem.extraction import sentence_reading
from qrmem.extraction.sentence_reading import flat
from qrmem.llm.found_json import candidates
from qrmem.llm.parallel import each
from qrmem.llm.prompting import Caller, Kept
from qrmem.prompts import fenced
from qrmem.prompts.replies import SummaryReply
from qrmem.text.boilerplate import apparatus
from qrmem.text.sentences import sentences
from qrmem.text.words import terms
from qrmem.types import Segment

LIMIT = 300
"""Maximum number of tokens of T; the paper sets no bound."""
SKELETON = 250
"""Tokens that the choice of sentences reserves for the prompt's own text."""


@dataclass(frozen=True, slots=True)
class Summariser:
    """Summarises documents with a chat model.

    Attributes:
        caller: calls the model.
        window: L in tokens.
        reserve: tokens for a reply.
        concurrency: maximum number of parallel calls.
        is_paper: summarise each segment, then the summaries, until one is left; else summarise the
            most informative sentences in one call.
    """

    caller: Caller
    window: int
    reserve: int
    concurrency: int
    is_paper: bool

    async def summarise(self, title: str, segments: Sequence[Segment]) -> str:
        """Return T; if no reply can be parsed, return the document's most central sentences."""
        if self.is_paper:
            summary = await self._reduced([segment.text for segment in segments])
        else:
            room = self.window - self.reserve - SKELETON
            sentences = await asyncio.to_thread(telling, segments, room, self.caller.budget.count)
            summary = await self._one("summary", [title, *sentences] if title else sentences)
        return self.caller.budget.cut(" ".join(summary.split()), LIMIT).strip()

    async def _reduced(self, texts: Sequence[str]) -> str:
        prompt = "summary"
        while True:
            summaries = await self._all(prompt, texts)
            if len(summaries) == 1:
                return summaries[0]
            prompt = "summary-join"
            texts = self._packed(summaries)

    async def _all(self, prompt: str, texts: Sequence[str]) -> list[str]:
        summaries: dict[int, str] = {}

        async def one(n: int) -> None:
            summaries[n] = await self._one(prompt, [texts[n][a:b] for a, b in sentences(texts[n])])

        await each(range(len(texts)), one, concurrency=self.concurrency)
        return [summaries[n] for n in range(len(texts))]

    async def _one(self, prompt: str, pieces: Sequence[str]) -> str:
        """Summarise a text given in pieces; pieces at the end that do not fit are left out.

        If the model refuses the text, the summary is empty: sentences of the text in a summary
        would make the model refuse every prompt with that summary.
        """

        def inputs(kept: Kept) -> dict[str, object]:
            return dict(text=fenced(" ".join(kept[0])))

        try:
            call = await self.caller.call(
                prompt, SummaryReply, inputs, [pieces], window=self.window, reply=self.reserve
            )
        except ModelOutputError as exc:
            if exc.is_refusal:
                return ""
            return self.caller.budget.cut(" ".join(pieces), LIMIT)
        return call.value.summary

    def _packed(self, summaries: Sequence[str]) -> list[str]:
        """Join adjacent summaries, at least two, up to half the window."""
        room = self.window // 2 - self.reserve
        texts, count = [""], 0
        for summary in summaries:
            size = self.caller.budget.count(summary)
            if count >= 2 and self.caller.budget.count(texts[-1]) + size > room:
                texts.append("")
                count = 0
            texts[-1] = f"{texts[-1]}\n\n{summary}".strip()
            count += 1
        return texts


def telling(segments: Sequence[Segment], room: int, count: Callable[[str], int]) -> list[str]:
    """Choose the most informative sentences of a document, in its order.

    A sentence's score comes from the frequencies of its words in the document; names count twice.
    The best sentence of every segment precedes any second one, so that every part is covered.

    Args:
        segments: segments of the document.
        room: maximum number of tokens of all sentences.
        count: counts tokens.
    """
    spans = [
        (segment.index, segment.text[start:end].strip())
        for segment in segments
        for start, end in sentences(segment.text)
    ]
    words = [terms(text) for _, text in spans]
    frequency = Counter(word for span_words in words for word in span_words)
    scored = [
        _score(text, span_words, frequency)
        for (_, text), span_words in zip(spans, words, strict=True)
    ]
    places: dict[int, list[int]] = {}
    for place, (index, _) in enumerate(spans):
        places.setdefault(index, []).append(place)
    ranked: list[tuple[int, float, int]] = []
    for inside in places.values():
        inside.sort(key=lambda place: -scored[place])
        ranked += [(rank, -scored[place], place) for rank, place in enumerate(inside)]
    return [spans[place][1] for place in sorted(_within(sorted(ranked), spans, room, count))]


def _score(text: str, words: Sequence[str], frequency: Counter[str]) -> float:
    if not words:
        return 0.0
    names = set(terms(" ".join(word for word in text.split()[1:] if word[:1].isupper())))
    total = sum(math.log1p(frequency[word]) * (2 if word in names else 1) for word in set(words))
    # Very short sentences would win by one frequent word, very long ones by their length.
    return total / (len(words) + 5)


def _within(
    ranked: Sequence[tuple[int, float, int]],
    spans: Sequence[tuple[int, str]],
    room: int,
    count: Callable[[str], int],
) -> list[int]:
    sentences_kept = []
    for _, _, place in ranked:
        room -= count(spans[place][1]) + 1
        if room < 0:
            break
        sentences_kept.append(place)
    return sentences_kept


# The text of a tree's node about the text below it: a summary, and its surprises.
#
# With a chat model both come from one reply with two labels (ILM-TR, appendix A.1). Without one
# both are sentences of the text: the most central ones, and those whose words the text around them
# predicts least.

PROMPT, PLAIN_PROMPT = "tree-node", "tree-summary"
ONE_IN = 6
"""Without a model, one of this many sentences is taken as surprising."""
SHARE = 4
"""An extractive summary has at most the text's tokens divided by this."""
RETRY_TEMPERATURE = 0.7
PAPER_TEMPERATURE, PAPER_TOP_P, PAPER_REPLY = 0.2, 0.95, 1055
PAPER_SAMPLING = {"top_k": 40, "min_p": 0.05, "repeat_penalty": 1.18, "repeat_last_n": 256}
"""Parameters of the summary model in ILM-TR, appendix A.3, by the names of llama.cpp's server;
parameters that are off there are left out."""
_SAME = 0.5
_NAME = r"(summary|surprises?|surprising (?:information|facts?|sentences?))"
_LABELS = re.compile(
    rf"^[ \t>*_#\[(<\d.-]*\b{_NAME}[ \t]*"
    r"(?:[*_\])>]*[ \t]*[:：][ \t]*[*_]*|[\])>][*_]*|[*_]*[ \t]*$)"
    rf"|\({_NAME}\)[*_]*[:：]",
    re.IGNORECASE | re.MULTILINE,
)
"""A label begins its line, or has the requested form; within a sentence it is an ordinary word."""
_NOTHING = frozenset({"", "none", "n/a", "na", "nothing", "no surprise", "no surprises", "nil"})
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")


@dataclass(frozen=True, slots=True)
class Summarised:
    """The text of a node.

    Attributes:
        summary: the summary.
        surprises: surprising sentences or facts.
        is_well_formed: whether the reply had both labels and a text after the first.
    """

    summary: str
    surprises: tuple[str, ...] = ()
    is_well_formed: bool = True


@dataclass(frozen=True, slots=True)
class NodeText:
    """The input for the text of a node.

    Attributes:
        pieces: a segment's text, or the summaries of the child nodes.
        around: adjacent texts, which help to predict its sentences; only used without a model.
        about: ids of the segments below the node.
    """

    pieces: tuple[str, ...]
    around: tuple[str, ...] = ()
    about: tuple[str, ...] = ()


# --- without a chat model ------------------------------------------------------------------------


def extractive(
    text: NodeText, count: Callable[[str], int], *, limit: int, surprising: bool = True
) -> Summarised:
    """Return some sentences of a text as its summary, and others as its surprises.

    Args:
        text: the input of the node.
        count: counts tokens.
        limit: maximum number of tokens of the summary.
        surprising: whether to return surprises.
    """
    whole = "\n".join(text.pieces)
    parts = [Segment(str(n), "", n, 0, len(p), p, 0) for n, p in enumerate(text.pieces)]
    room = max(24, min(limit, count(whole) // SHARE))
    summary = sentence_reading.summary("", parts, count, room)
    if not summary:  # one sentence that is longer than the limit, or no sentence at all
        summary = " ".join(whole.split()[:room])
    surprises_found = surprises(whole, text.around) if surprising else ()
    return Summarised(summary, surprises_found)


def surprises(text: str, around: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the sentences of a text that the rest of it predicts least, in text order.

    A sentence's surprise is the mean of -log p over its content words. p is the smoothed mean of a
    word's share in the rest of the text and its share in the texts around it.
    """
    skipped = apparatus(text)
    spans = [
        flat(text[a:b])
        for a, b in sentences(text)
        if not any(start <= a and len(text[:b].rstrip()) <= end for start, end in skipped)
    ]
    span_terms = [terms(span) for span in spans]
    most = len(spans) // ONE_IN
    if not most:
        return ()
    term_counts = Counter(term for words in span_terms for term in words)
    wide = term_counts + Counter(term for other in around for term in terms(other))
    sizes = term_counts.total(), wide.total()
    ranked = sorted(
        (n for n, words in enumerate(span_terms) if len(words) > 1),
        key=lambda n: (-_surprise(span_terms[n], term_counts, wide, sizes), n),
    )
    return tuple(spans[n] for n in sorted(ranked[:most]))


def _surprise(
    words: Sequence[str], near: Counter[str], wide: Counter[str], sizes: tuple[int, int]
) -> float:
    counts = Counter(words)
    rest = max(1, sizes[0] - len(words))
    beyond = max(1, sizes[1] - len(words))
    return sum(
        -log(
            _SAME * (near[w] - counts[w]) / rest
            + (1 - _SAME) * (wide[w] - counts[w] + 0.5) / beyond
        )
        for w in words
    ) / len(words)


# --- with a chat model ---------------------------------------------------------------------------


async def prompted(
    text: NodeText,
    caller: Caller,
    *,
    window: int,
    limit: int,
    surprising: bool = True,
    is_paper: bool = False,
) -> Summarised:
    """Ask a chat model for a summary and surprises; ask again after a reply without labels.

    A second reply without labels is used as the summary if most of its content words are in the
    text. Otherwise (a refusal, an echo of the prompt, an empty reply) the summary is extractive.

    Args:
        text: the input of the node.
        caller: calls the model.
        window: L in tokens.
        limit: maximum number of tokens of the summary.
        surprising: whether to ask for surprises.
        is_paper: whether to use the parameters of ILM-TR, appendix A.3.

    Raises:
        WindowTooSmall: the prompt alone does not fit.
    """
    prompt = PROMPT if surprising else PLAIN_PROMPT
    pieces = [line for piece in text.pieces for line in piece.split("\n") if line.strip()]
    reply, summarised = "", Summarised("", (), False)
    first = PAPER_TEMPERATURE if is_paper else 0.0
    # RAPTOR's summaries have their own length (tb_summarization_length), in the papers' runs too.
    most = limit if not surprising else PAPER_REPLY if is_paper else 2 * limit
    for attempt, temperature in enumerate((first, RETRY_TEMPERATURE)):
        reply_said = await caller.say(
            prompt,
            lambda kept: {"text": fenced("\n".join(kept[0]))},
            [pieces],
            window=window,
            reply=min(most, window // 3),
            segments=text.about,
            temperature=temperature,
            attempt=attempt,
            top_p=PAPER_TOP_P if is_paper else 1.0,
            sampling=PAPER_SAMPLING if is_paper else {},
        )
        reply = reply_said.value or reply
        summarised = (
            parsed(reply_said.value) if surprising else Summarised(flat(reply), (), bool(reply))
        )
        if summarised.is_well_formed and not _echoes(summarised.summary):
            return summarised
    if _echoes(reply) or not _is_about(summarised.summary or reply, text.pieces):
        return Summarised(extractive(text, caller.budget.count, limit=limit).summary, (), False)
    return Summarised(summarised.summary or flat(reply), summarised.surprises, False)


def parsed(reply: str) -> Summarised:
    """Parse a reply with two labelled parts, in any order and case, as headings or as JSON.

    Without the second label there are no surprises; without labels the whole reply is the summary.
    """
    sections = _in_json(reply) or _labelled(reply)
    if not sections:
        return Summarised(_once(flat(reply)), (), False)
    summary = _once(" ".join(map(_plain, sections.get("summary", ()))).strip())
    lines = dict.fromkeys(map(_plain, sections.get("surprise", ())))
    surprises = tuple(line for line in lines if line.strip(" .*").lower() not in _NOTHING)
    return Summarised(summary, surprises, bool(summary) and "surprise" in sections)


def _labelled(reply: str) -> dict[str, list[str]]:
    """Return the lines after each label of a reply."""
    labels, sections = list(_LABELS.finditer(reply)), dict[str, list[str]]()
    for n, label in enumerate(labels):
        end = labels[n + 1].start() if n + 1 < len(labels) else len(reply)
        lines = reply[label.end() : end].strip().split("\n")
        sections.setdefault(_key(label[1] or label[2]), []).extend(lines)
    return sections


def _in_json(reply: str) -> dict[str, list[str]]:
    """Return the lines of each label from a JSON object with the labels as fields; else {}."""
    for candidate in candidates(reply) if "{" in reply else ():
        if isinstance(candidate.value, dict):
            values = {_key(name): v for name, v in candidate.value.items() if _LABELS.match(name)}
            if "summary" in values:
                return {name: _lines(value) for name, value in values.items()}
    return {}


def _key(label: str) -> str:
    return "summary" if label.lower().strip("() ") == "summary" else "surprise"


def _lines(value: Any) -> list[str]:
    return [str(one) for one in (value if isinstance(value, list) else [value or ""])]


def _once(words: str) -> str:
    """Return a text without repeated sentences, which small models write up to the limit."""
    sentences_once = list(
        dict.fromkeys(words[start:end].strip() for start, end in sentences(words))
    )
    if any(
        other.startswith(sentences_once[-1]) for other in sentences_once[:-1]
    ):  # the reply was cut within a repetition
        sentences_once.pop()
    return " ".join(sentences_once)


def _is_about(reply: str, pieces: Sequence[str]) -> bool:
    """Return whether most content words of a reply are in the text to summarise."""
    reply_terms, text_terms = set(terms(reply)), {term for piece in pieces for term in terms(piece)}
    return len(reply_terms & text_terms) > len(reply_terms) / 2


def _plain(line: str) -> str:
    return flat(_BULLET.sub("", line)).strip()


def _echoes(words: str) -> bool:
    """Return whether a reply repeats the instruction instead of a summary."""
    return "your summary" in words.lower() or "<text" in words.lower()
