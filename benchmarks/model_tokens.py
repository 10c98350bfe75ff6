"""Chat calls and tokens of building and asking: a part of the benchmark `model`."""

import asyncio
import json
import re
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory
from typing import Any, cast

from servers.answering import TEXT
from servers.openai_server import OpenAIServer, in_thread

import qrmem
from benchmarks.frame import Figure, note
from benchmarks.multihop import folder
from benchmarks.replies_of_size import Found, Notes, Replies, noted
from qrmem.agents.strategies import STRATEGIES
from qrmem.graph.segmenting import cut
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import BuildMode, Document, Segment, Strategy

Json = Any
MODES: tuple[BuildMode, ...] = ("compact", "paper")
MOST_CALLS = 1.2
MOST_TOKENS = 2_600
"""Bounds of a passage: calls, and tokens in plus four times tokens out."""
HIPPORAG = 831 + 4 * 224
STAGES = {
    "read": "read",
    "read-together": "read",
    "supplement": "read again",
    "supplement-together": "read again",
    "summary": "summary",
    "summary-join": "summary",
}
"""Name of a schema to what is shown; others are shown as they are."""


def words(text: str) -> int:
    """Count tokens like for the other programs: words and punctuation marks."""
    return len(re.findall(r"\w+|[^\w\s]", text))


@dataclass(slots=True)
class Sums:
    """Tokens of some calls, by part of prompt and reply."""

    calls: int = 0
    cacheable: int = 0
    prompt: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    reply: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def tokens_in(self) -> int:
        """Prompt tokens."""
        return sum(self.prompt.values())

    @property
    def tokens_out(self) -> int:
        """Reply tokens."""
        return sum(self.reply.values())

    @property
    def weighed(self) -> int:
        """All tokens, a token out weighed as four in."""
        return self.tokens_in + 4 * self.tokens_out


class Watch:
    """Replies like `Replies`, and counts tokens in and out."""

    def __init__(self, replies: Replies) -> None:
        self._replies = replies
        self._before: dict[str, str] = {}
        self.stages: dict[str, Sums] = {}

    def __call__(self, request: Mapping[str, Json]) -> str:
        """Answer and count."""
        reply = self._replies(request)
        schema = request["response_format"]["json_schema"]
        stage = STAGES.get(schema["name"], schema["name"])
        sums = self.stages.setdefault(stage, Sums())
        system, user = (str(message["content"]) for message in request["messages"][:2])
        sums.calls += 1
        for part, tokens in self._parts(system, user, schema).items():
            sums.prompt[part] += tokens
        for part, tokens in _reply_parts(reply).items():
            sums.reply[part] += tokens
        whole = f"{system}\n{user}"
        sums.cacheable += words(_common(whole, self._before.get(schema["name"], "")))
        self._before[schema["name"]] = whole
        return reply

    def take(self) -> dict[str, Sums]:
        """Return the sums by stage, and reset them."""
        taken, self.stages = self.stages, {}
        return taken

    def _parts(self, system: str, user: str, schema: Mapping[str, Json]) -> dict[str, int]:
        """Return the tokens of a prompt by part; `frame` is headings, marks and numbers."""
        found = {"instructions": words(system), "schema": words(json.dumps(schema["schema"]))}
        for match in TEXT.finditer(user):
            text, before = match.group(3), user[: match.start()].rstrip()
            part = "passages" if self._replies.knows(text) else _heading(before, text)
            found[part] = found.get(part, 0) + words(text)
        inside = sum(count for part, count in found.items() if part not in _FIXED)
        found["frame"] = words(user) - inside
        return found


def _common(first: str, second: str) -> str:
    """Return what two texts begin with."""
    pairs = enumerate(zip(first, second, strict=False))
    return first[: next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))]


_FIXED = ("instructions", "schema")


def _heading(before: str, text: str) -> str:
    for heading, part in (("The document:", "document"), ("Known already:", "known notes")):
        if before.endswith(heading):
            return part
    return "questions" if re.match(r"1\. ", text) else "passages"


def _reply_parts(reply: str) -> dict[str, int]:
    """Return the tokens of a reply by field; `frame` is JSON and field names."""
    found: dict[str, int] = defaultdict(int)

    def walk(value: Json, name: str) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, key)
        elif isinstance(value, list):
            for inner in value:
                walk(inner, name)
        elif isinstance(value, str):
            found[name] += words(value)

    walk(json.loads(reply), "")
    return {**found, "frame": words(reply) - sum(found.values())}


# --- corpora -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents, questions, and the notes of a model on each segment."""

    name: str
    documents: Sequence[Document]
    questions: Sequence[str]
    notes: Mapping[str, Notes]
    segments: int


async def sample() -> Corpus:
    """Return the package's sample."""
    base = files("qrmem") / "sample"
    document = Document((base / "harbour.md").read_text(encoding="utf-8"), "The Harbour", "harbour")
    asked = json.loads((base / "questions.json").read_text(encoding="utf-8"))["questions"]
    questions = [question["text"] for question in asked]
    return await _corpus("the sample", [document], questions, {})


async def passages(data: Path, count: int, questions: int) -> Corpus:
    """Return the passages of the first twenty questions of MuSiQue."""
    base = data / "musique"
    records = json.loads((base / "hippo_train100.json").read_text(encoding="utf-8"))
    stored = json.loads((base / "hippo_train_openie_gpt35_1890.json").read_text(encoding="utf-8"))
    found = {
        doc["text"]: Found(doc["extracted_entities"], doc["extracted_triples"])
        for doc in stored["docs"]
    }
    texts = {(p["title"], p["paragraph_text"]): None for r in records[:20] for p in r["paragraphs"]}
    documents = [Document(text, title, f"{n:03}") for n, (title, text) in enumerate(texts)][:count]
    asked = [record["question"] for record in records[:questions]]
    return await _corpus("MuSiQue", documents, asked, found)


@asynccontextmanager
async def stored_replies() -> AsyncIterator[qrmem.Settings]:
    """Yield settings of a chat model that replies with what GPT-3.5 found in `passages`."""
    corpus = await passages(folder(), sys.maxsize, 0)
    with in_thread(OpenAIServer(answer=Replies(corpus.notes))) as server:
        yield qrmem.Settings(model="test", base_url=server.url, keep_trails=False)


async def _corpus(
    name: str, documents: Sequence[Document], questions: Sequence[str], found: Mapping[str, Found]
) -> Corpus:
    segments = segments_of(documents)
    return Corpus(name, documents, questions, await notes_of(segments, found), len(segments))


def segments_of(documents: Sequence[Document]) -> list[Segment]:
    """Return the segments of documents."""
    counter, segments = BuiltinTokenizer(), list[Segment]()
    for document in documents:
        segments += cut(document.id or "", document, counter, 600)
    return segments


async def notes_of(segments: Sequence[Segment], found: Mapping[str, Found]) -> Mapping[str, Notes]:
    """Return what a model would note about each segment, by its text."""
    return {s.text: await noted(s, found.get(s.text)) for s in segments}


# --- measuring -----------------------------------------------------------------------------------


async def _measure(corpus: Corpus, modes: Sequence[BuildMode], strategies: Sequence[str]) -> Sums:
    """Build in some modes, ask by some strategies, and print; returns what the first build took."""
    built_by: list[Sums] = []
    for mode in modes:
        watch = Watch(Replies(corpus.notes))
        with (
            TemporaryDirectory() as folder,
            in_thread(OpenAIServer(answer=watch)) as server,
        ):
            chosen = qrmem.Settings(
                model="test", base_url=server.url, mode=mode, embedder="none", keep_trails=False
            )
            built = Path(folder) / "built.db"
            async with qrmem.open(str(built), settings=chosen) as memory:
                report = await memory.add(corpus.documents)
                assert report.is_complete, report.problems[:3]
            built_by.append(_print_building(corpus, mode, watch.take()))
            for strategy in strategies if mode == "compact" else ():
                asked = copy(built, Path(folder) / f"{strategy}.db")
                async with qrmem.open(str(asked), settings=chosen) as memory:
                    for question in corpus.questions:
                        await memory.ask(question, strategy=cast(Strategy, strategy))
                _print_asking(corpus, strategy, watch.take())
    return built_by[0]


def _print_building(corpus: Corpus, mode: str, stages: Mapping[str, Sums]) -> Sums:
    n = corpus.segments
    note(f"\n{corpus.name}, {mode}: {n} segments")
    for stage, sums in stages.items():
        _print_row(stage, sums, n)
    total = _total(stages.values())
    _print_row("all", total, n)
    weighed = total.weighed / n
    share = total.cacheable / total.tokens_in
    note(
        f"  in + 4 out: {weighed:,.0f} a segment ({weighed / HIPPORAG:.2f} of HippoRAG 2's on its "
        f"passages); cacheable prefix: {share:.0%} of the prompt tokens"
    )
    note(f"  prompt, a segment: {_shares(total.prompt, n)}")
    note(f"  reply, a segment:  {_shares(total.reply, n)}")
    return total


def _print_asking(corpus: Corpus, strategy: str, stages: Mapping[str, Sums]) -> None:
    n = len(corpus.questions)
    total = _total(stages.values())
    inside = ", ".join(f"{stage} {sums.calls / n:.1f}" for stage, sums in stages.items())
    share = total.cacheable / max(1, total.tokens_in)
    note(
        f"  ask, {strategy}: {total.calls / n:.1f} calls ({inside}), {total.tokens_in / n:,.0f} + "
        f"{total.tokens_out / n:,.0f} tokens a question; cacheable prefix {share:.0%}"
    )


def _print_row(name: str, sums: Sums, n: int) -> None:
    note(
        f"  {name:<16} {sums.calls / n:5.2f} calls  {sums.tokens_in / n:6,.0f} in  "
        f"{sums.tokens_out / n:6,.0f} out"
    )


def _total(stages: Iterable[Sums]) -> Sums:
    total = Sums()
    for sums in stages:
        total.calls += sums.calls
        total.cacheable += sums.cacheable
        for part, tokens in sums.prompt.items():
            total.prompt[part] += tokens
        for part, tokens in sums.reply.items():
            total.reply[part] += tokens
    return total


def _shares(parts: Mapping[str, int], n: int) -> str:
    ranked = sorted(parts.items(), key=lambda item: -item[1])
    return ", ".join(f"{part} {tokens / n:,.0f}" for part, tokens in ranked)


def figures(count: int, questions: int, chosen: Sequence[str], *, brief: bool) -> Iterator[Figure]:
    """Yield calls and weighed tokens a passage; all tables go to standard error.

    Args:
        count: passages; 0: the sample alone.
        chosen: strategies; none: all but those over trees.
        brief: mode `compact` alone, and nothing asked.
    """
    flat = [name for name, strategy in STRATEGIES.items() if strategy.tree is None]
    strategies = [] if brief else chosen or flat
    modes = MODES[:1] if brief else MODES
    if not brief:
        asyncio.run(_measure(asyncio.run(sample()), modes, strategies))
    if count:
        corpus = asyncio.run(passages(folder(), count, 0 if brief else questions))
        total = asyncio.run(_measure(corpus, modes, strategies))
        calls, tokens = total.calls / corpus.segments, total.weighed / corpus.segments
        yield Figure("chat calls a passage, compact", calls, "", at_most=MOST_CALLS)
        yield Figure("tokens a passage, in + 4 out", tokens, "", at_most=MOST_TOKENS)
