"""Runs each program on the same job, and measures its recall, its cost and its losses."""

import argparse
import asyncio
import hashlib
import json
import math
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import cache
from operator import mul
from pathlib import Path
from tempfile import TemporaryDirectory

from servers import answering
from servers.openai_server import Behaviour, OpenAIServer, in_thread

from benchmarks.frame import Figure, note
from benchmarks.model_tokens import notes_of, segments_of
from benchmarks.multihop import folder as data_folder
from benchmarks.peers.environments import (
    PROGRAMS,
    ROOT,
    NotRun,
    Program,
    neo4j,
    python_of,
    tokenizer_files,
)
from benchmarks.peers.replies import Answers, Call, Extract, Extracts, extract_of, folded
from benchmarks.peers.runners.job import Job, Passage, Phase, Result, Shown
from benchmarks.replies_of_size import Found, Notes, Replies
from qrmem.types import Document

DIMENSION = 1024
AT = (5, 10)
SEED = 34
EXTRACTION = "musique/hippo_train_openie_gpt35_1890.json"
QUESTIONS = "musique/hippo_train100.json"


@dataclass(frozen=True, slots=True)
class Work:
    """The input of all programs, and the right passages.

    Attributes:
        gold: for each question, the ids of its passages.
    """

    passages: Sequence[Passage]
    extracts: Sequence[Extract]
    questions: Sequence[str]
    gold: Sequence[frozenset[str]]


def chosen_work(data: Path, passages: int, questions: int) -> Work:
    """Return the first questions with their gold passages, and further passages up to a number."""
    records = json.loads((data / QUESTIONS).read_text(encoding="utf-8"))[:questions]
    stored = json.loads((data / EXTRACTION).read_text(encoding="utf-8"))["docs"]
    found = {(doc["title"], doc["text"]): extract_of(doc) for doc in stored}
    every = [
        ((p["title"], p["paragraph_text"]), bool(p["is_supporting"]))
        for record in records
        for p in record["paragraphs"]
    ]
    gold = dict.fromkeys(passage for passage, is_gold in every if is_gold)
    others = dict.fromkeys(passage for passage, _ in every if passage not in gold)
    taken = [*gold, *others][: max(passages, len(gold))]
    random.Random(SEED).shuffle(taken)
    ids = {passage: f"p{n:04}" for n, passage in enumerate(taken)}
    return Work(
        [Passage(ids[title, text], title, text) for title, text in taken],
        [found[passage] for passage in taken],
        [record["question"] for record in records],
        [
            frozenset(
                ids[p["title"], p["paragraph_text"]]
                for p in record["paragraphs"]
                if p["is_supporting"]
            )
            for record in records
        ],
    )


# --- vectors -------------------------------------------------------------------------------------


@cache
def _place(word: str, dimension: int) -> tuple[int, int]:
    """Return a word's dimension in a vector, and its sign."""
    value = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
    return (value >> 1) % dimension, 1 if value & 1 else -1


def hashed(text: str, dimension: int) -> list[float]:
    """Return the unit vector of a text's words: near texts have the same words."""
    counts = Counter(word for word in folded(text).split() if word not in answering.COMMON)
    total = [0.0] * dimension
    for word, count in counts.items():
        at, sign = _place(word, dimension)
        total[at] += sign * (1 + math.log(count))
    length = math.sqrt(sum(value * value for value in total))
    if not length:
        return [1.0, *total[1:]]
    return [round(value / length, 6) for value in total]


class Embedded:
    """Makes vectors, and records the time of each request."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def __call__(self, text: str, dimension: int) -> list[float]:
        """Return a text's vector."""
        self.at.append(time.monotonic())
        return hashed(text, dimension)


# --- what a program did --------------------------------------------------------------------------


@dataclass(slots=True)
class Spent:
    """The cost of a phase: calls, tokens, embedded texts, seconds."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    embedded: int = 0
    seconds: float = 0.0
    processor: float = 0.0


@dataclass(slots=True)
class Row:
    """A program in the table.

    Attributes:
        why_not: why it did not run; the other fields are then empty.
        recalls: shares of gold passages among the first 5, the first 10, and all that are shown.
        passages_shown: passages shown for a question, on average.
        lost: passages that a search for their own text does not show.
        unknown: beginnings of prompts that match none of the server's forms.
    """

    program: Program
    why_not: str = ""
    recalls: Sequence[float] = ()
    passages_shown: float = 0.0
    build: Spent = field(default_factory=Spent)
    ask: Spent = field(default_factory=Spent)
    memory: float = 0.0
    lost: int = 0
    errors: Sequence[str] = ()
    unknown: Mapping[str, int] = field(default_factory=dict)


def ranking(shown: Sequence[Shown], texts: Mapping[str, str]) -> list[str]:
    """Return the ids of the shown passages, each at its first place.

    Args:
        texts: id to text of all passages, folded.
    """
    found: dict[str, None] = {}
    for piece in shown:
        if piece.id:
            found.setdefault(piece.id)
            continue
        words = folded(piece.text)
        places = ((words.find(text), id) for id, text in texts.items())
        found.update(dict.fromkeys(id for at, id in sorted(places) if at >= 0))
    return list(found)


def recall(
    rankings: Sequence[Sequence[str]], gold: Sequence[frozenset[str]], k: int | None
) -> float:
    """Return the mean share of gold passages among the first k, or all, of each ranking."""
    shares = [
        len(right & set(ranked[:k])) / len(right)
        for ranked, right in zip(rankings, gold, strict=True)
    ]
    return sum(shares) / len(shares)


def spent(phase: Phase, calls: Sequence[Call], embedded: Sequence[float]) -> Spent:
    """Return the cost of a phase."""
    own = [call for call in calls if phase.began <= call.at <= phase.ended]
    return Spent(
        len(own),
        sum(call.tokens_in for call in own),
        sum(call.tokens_out for call in own),
        sum(phase.began <= at <= phase.ended for at in embedded),
        phase.ended - phase.began,
        phase.processor,
    )


def row_of(
    program: Program, work: Work, result: Result, answers: Answers, embedded: Sequence[float]
) -> Row:
    """Return a program's row."""
    texts = {passage.id: folded(passage.text) for passage in work.passages}
    rankings = [ranking(shown, texts) for shown in result.shown]
    again = [ranking(shown, texts) for shown in result.shown_for_itself]
    phases = {phase.name: spent(phase, answers.calls, embedded) for phase in result.phases}
    return Row(
        program,
        recalls=[recall(rankings, work.gold, k) for k in (*AT, None)],
        passages_shown=sum(map(len, rankings)) / len(rankings),
        build=phases["build"],
        ask=phases["ask"],
        memory=result.memory,
        lost=sum(p.id not in found for p, found in zip(work.passages, again, strict=True)),
        errors=result.errors,
        unknown=dict(answers.unknown),
    )


# --- running -------------------------------------------------------------------------------------


def compare(chosen: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each program, as they end."""
    known = {program.name: program for program in PROGRAMS}
    if strange := set(chosen.only or ()) - known.keys():
        raise SystemExit(
            f"no such program: {', '.join(sorted(strange))}; known: {', '.join(known)}"
        )
    work = chosen_work(data_folder(), chosen.passages, chosen.questions)
    own = Replies(asyncio.run(_notes(work)))
    with ThreadPoolExecutor(chosen.at_once) as pool:
        programs = [known[name] for name in chosen.only or known]
        yield from pool.map(lambda program: _row(program, work, own, chosen), programs)
    yield vectors_alone(work)


async def _notes(work: Work) -> Mapping[str, Notes]:
    documents = [Document(each.text, each.title, each.id) for each in work.passages]
    found = {each.text: Found(each.entities, each.triples) for each in work.extracts}
    return await notes_of(segments_of(documents), found)


def vectors_alone(work: Work) -> Row:
    """Return the row of a search by the vectors alone."""
    kept = {passage.id: hashed(passage.whole, DIMENSION) for passage in work.passages}
    rankings = []
    for question in work.questions:
        asked = hashed(question, DIMENSION)
        near = {id: sum(map(mul, asked, vector)) for id, vector in kept.items()}
        rankings.append(sorted(near, key=lambda id: -near[id])[: max(AT)])
    program = Program("vectors alone", "", (), f"{max(AT)} passages, by the vectors of all")
    recalls = [recall(rankings, work.gold, k) for k in (*AT, None)]
    return Row(program, recalls=recalls, passages_shown=max(AT))


def _row(program: Program, work: Work, own: Replies, chosen: argparse.Namespace) -> Row:
    note(f"{program.name}: {len(work.passages)} passages, {len(work.questions)} questions")
    try:
        return _run(program, work, own, chosen)
    except NotRun as why:
        note(f"{program.name}: not run: {why}")
        return Row(program, why_not=str(why))


def _run(program: Program, work: Work, own: Replies, chosen: argparse.Namespace) -> Row:
    python = python_of(program)
    answers, embedded = Answers(Extracts(work.extracts), own), Embedded()
    behaviour = Behaviour(
        latency=chosen.latency, dimension=DIMENSION, vector=embedded, in_order=True
    )
    database: AbstractContextManager[Mapping[str, str]] = nullcontext({})
    if program.needs_neo4j:
        database = neo4j()
    with (
        TemporaryDirectory() as place,
        in_thread(OpenAIServer(answer=answers, behaviour=behaviour)) as server,
        database as login,
    ):
        kept = Path(place) / "kept"
        kept.mkdir()
        job = Job(server.url, DIMENSION, str(kept), max(AT), work.passages, work.questions, login)
        result = _in_its_environment(program, python, job, Path(place), chosen.limit)
    for prompt, count in answers.unknown.most_common(5):
        note(f"{program.name}: no form for {count} of {prompt!r}")
    for error in dict.fromkeys(result.errors):
        note(f"{program.name}: {error}")
    return row_of(program, work, result, answers, embedded.at)


def _in_its_environment(
    program: Program, python: Path, job: Job, place: Path, limit: float
) -> Result:
    """Run a program's runner; only `benchmarks` of this checkout can be imported there."""
    (place / "benchmarks").symlink_to(ROOT / "benchmarks")
    asked, answered, log = place / "job.json", place / "result.json", place / "log.txt"
    asked.write_text(json.dumps(asdict(job)), encoding="utf-8")
    command = [str(python), "-m", program.runner, str(asked), str(answered)]
    variables = {**_plain_environment(), "TIKTOKEN_CACHE_DIR": str(tokenizer_files())}
    with log.open("wb") as out:
        try:
            code = subprocess.run(
                command, cwd=place, env=variables, stdout=out, stderr=out, timeout=limit
            ).returncode
        except subprocess.TimeoutExpired as exc:
            raise NotRun(f"had not ended after {limit:g} s") from exc
    if code:
        said = log.read_text(encoding="utf-8", errors="replace").strip()
        note(said[-3000:])
        raise NotRun((said.splitlines() or [f"exit status {code}"])[-1][:200])
    given = json.loads(answered.read_text(encoding="utf-8"))
    shown, for_itself = (
        [[Shown(**piece) for piece in pieces] for pieces in given[name]]
        for name in ("shown", "shown_for_itself")
    )
    phases = [Phase(**phase) for phase in given["phases"]]
    return Result(phases, given["errors"], shown, for_itself, given["memory"])


def _plain_environment() -> dict[str, str]:
    """Return the variables of this process without those that name other servers."""
    strange = ("OPENAI_", "QRMEM_", "NEO4J_", "PYTHON")
    return {name: value for name, value in os.environ.items() if not name.startswith(strange)}


def figures(row: Row) -> Iterator[Figure]:
    """Yield the figures of a row."""
    name = row.program.name
    if row.why_not:
        return
    for k, share in zip((*AT, "all"), row.recalls, strict=True):
        yield Figure(f"{name}: recall at {k}", 100 * share, "%")
    passages = f"{name}: build"
    yield Figure(f"{passages}, chat calls", row.build.calls)
    yield Figure(f"{passages}, tokens in", row.build.tokens_in)
    yield Figure(f"{passages}, tokens out", row.build.tokens_out)
    yield Figure(f"{passages}, processor", row.build.processor, "s")
    yield Figure(f"{passages}, by the clock", row.build.seconds, "s")
    yield Figure(f"{name}: questions, chat calls", row.ask.calls)
    yield Figure(f"{name}: questions, processor", row.ask.processor, "s")
    yield Figure(f"{name}: peak memory", row.memory, "MB")
    yield Figure(f"{name}: passages lost", row.lost)
    yield Figure(f"{name}: errors", len(row.errors))
    yield Figure(f"{name}: prompts without a form", sum(row.unknown.values()))
