"""Questions about one rare word of a text: how many of its segments are among the first five.

    QRMEM_DATA=… python -m benchmarks rare_words [--words 40] [--skip 0] [--embedder] [--others]

Words are chosen by rule: written in small letters alone, of six letters or more, in four to eight
segments of one novel. Both novels give half of them, in the order of a checksum, so that nobody
picks them; the first 40 are measured, and what is tried out is tried on others (`--skip 40`). Each
question asks for one word, by one of five forms in turn. Beside the search stands BM25 alone over
the same segments. With `--others` two other memories give the words, by the same rule: 49 essays,
and 15 stories of QuALITY. Nothing was fitted on these.
"""

import argparse
import asyncio
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks import multihop
from benchmarks.frame import Figure, note
from benchmarks.passages import novels
from benchmarks.search_memories import Built, built
from qrmem.graphstore.reads import merged_segments
from qrmem.text.words import terms

FEWEST, MOST, LETTERS, FIRST = 4, 8, 6, 5
"""Number of segments with a rare word, its minimum letters, and the number of hits that count."""
FORMS = (
    "What is {} used for?",
    "What is said about the {}?",
    "Where is {} mentioned?",
    "What part does {} play in the story?",
    "How do people feel about {}?",
)
_WORD = re.compile(r"[^\W\d_]+")


class Asked(NamedTuple):
    """A question about a rare word, and the ids of the segments that contain it."""

    word: str
    question: str
    segments: frozenset[str]


class Found(NamedTuple):
    """Of one word: its segments, and how many of them the search and BM25 put first."""

    word: str
    held: int
    search: int
    bm25: int


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the words."""
    parser.add_argument("--words", type=int, default=40)
    parser.add_argument("--skip", type=int, default=0, help="words left out before the first")
    parser.add_argument("--others", action="store_true", help="ask of essays and stories")
    parser.add_argument("--embedder", default="none", help="`local` or `light:FOLDER`: MiniLM")
    parser.add_argument("--kept", type=Path, default=Path("build/benchmarks"))


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield the segments among the first five, and the words where search is far below BM25."""
    chosen.kept.mkdir(parents=True, exist_ok=True)
    found = asyncio.run(_measured(chosen))
    for one in found:
        note(f"{one.word}: {one.search} (BM25 {one.bm25}) of {min(FIRST, one.held)}")
    reached = sum(min(FIRST, one.held) for one in found)
    bm25 = sum(one.bm25 for one in found)
    yield Figure(f"BM25: segments among the first five, of {reached}", bm25)
    yield Figure("search: the same", sum(one.search for one in found), at_least=bm25 + 1)
    below = sum(one.search <= one.bm25 - 2 for one in found)
    yield Figure("words with two or more below BM25", below, at_most=0)


async def _measured(chosen: argparse.Namespace) -> list[Found]:
    found = []
    for corpus in others() if chosen.others else corpora():
        async with built(corpus, chosen.kept, embedder=chosen.embedder) as memory:
            asked = await questions(memory)
            for one in asked[chosen.skip // 2 : (chosen.skip + chosen.words) // 2]:
                found.append(await _found(memory, one))
    return found


def corpora() -> Iterator[multihop.Corpus]:
    """Yield each novel as a corpus of one passage."""
    for name, text, _ in novels(multihop.folder()):
        yield multihop.Corpus(f"novel-{name}", ((name.replace("_", " "), text),), (), ())


def others() -> Iterator[multihop.Corpus]:
    """Yield essays, and stories, each set as one corpus."""
    data = multihop.folder()
    essays = sorted((data / "niah" / "PaulGrahamEssays").glob("*.txt"))
    texts = ((one.stem, one.read_text(encoding="utf-8")) for one in essays)
    yield multihop.Corpus("essays", tuple(texts), (), ())
    rows = (data / "quality" / "leval_quality15docs.jsonl").read_text(encoding="utf-8").splitlines()
    stories = ((f"story {n}", json.loads(row)["input"]) for n, row in enumerate(rows, 1))
    yield multihop.Corpus("stories", tuple(stories), (), ())


async def questions(memory: Built) -> list[Asked]:
    """Return a question about each rare word of a corpus, in the order of the words' checksums."""
    held: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    ids = await merged_segments(memory.store, memory.corpus.name)
    for segment in await memory.store.segments(memory.corpus.name, ids):
        for word in _WORD.findall(segment.text):
            for term in terms(word):
                held[term][word].add(segment.id)
    found = {word: frozenset[str]().union(*held[terms(word)[0]].values()) for word in _rare(held)}
    ordered = sorted(found, key=lambda word: hashlib.sha256(word.encode()).hexdigest())
    return [
        Asked(word, FORMS[place % len(FORMS)].format(word), found[word])
        for place, word in enumerate(ordered)
    ]


def _rare(held: Mapping[str, Mapping[str, set[str]]]) -> Iterator[str]:
    """Yield the rare words, one for each term."""
    for forms in held.values():
        word = min(forms, key=lambda form: (-len(forms[form]), form))
        spread = len(set[str]().union(*forms.values()))
        if FEWEST <= spread <= MOST and len(word) >= LETTERS and all(map(str.islower, forms)):
            yield word


async def _found(memory: Built, asked: Asked) -> Found:
    searcher = memory.searcher()
    hits = [hit.segment_id for hit in await searcher.search(asked.question, k=FIRST)]
    bm25 = await searcher.ranking(asked.question, "bm25", FIRST)
    held = asked.segments
    return Found(asked.word, len(held), len(held.intersection(hits)), len(held.intersection(bm25)))
