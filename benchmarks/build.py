"""Speed of building a memory from a text, without a chat model.

    python -m benchmarks build TEXT… [--megabytes 5] [--passages 2000] [--vectors]

The first text as it is; then a text of the given size and one of a tenth of it, made of the
sentences of all texts: known ones in another order and with other names in each round, so that
names and questions keep growing as they do in a long text. Then passages of HotpotQA and
MuSiQue, a document each (`QRMEM_DATA`; 0 leaves them out). Times are of the processor, so that a
busy machine does not count. `--vectors` builds the first 150,000 characters with the local embedder
too, beside sentence-transformers' own `encode` of all windows of all segments.
"""

import argparse
import asyncio
import random
import re
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import qrmem
from benchmarks import multihop
from benchmarks.frame import Figure
from qrmem.config import Settings
from qrmem.graph.segmenting import cut
from qrmem.llm.embedders import open_embedder
from qrmem.llm.encoder import BATCH, SentenceEncoder
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.text.files import read
from qrmem.text.sentences import sentences

LEAST_RATE = 100
"""Segments of 600 tokens."""
LEAST_PASSAGES = 150
"""Passages of some 100 words, each a document."""
MOST_GROWTH = 13
LEAST_OF_ENCODER = 0.9
EMBEDDED_CHARACTERS = 150_000
SYLLABLES = ["ba", "ce", "di", "fo", "gu", "ha", "ke", "li", "mo", "nu", "pa", "re", "si", "to"]
NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{3,}")


@dataclass(frozen=True)
class Built:
    """One build: segments, processor seconds, and the file's size to its text's."""

    segments: int
    seconds: float
    file_ratio: float

    @property
    def rate(self) -> float:
        """Segments per second."""
        return self.segments / self.seconds


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--megabytes", type=float, default=5, help="0: the first text alone")
    parser.add_argument("--passages", type=int, default=0)
    parser.add_argument("--vectors", action="store_true")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield rates of building, and their growth."""
    texts = [read(path).text for path in chosen.texts]
    asyncio.run(build(texts[0][:2000]))  # imports everything that a first build imports
    first = asyncio.run(build(texts[0]))
    name = f"{chosen.texts[0].stem}, {first.segments} segments"
    yield Figure(f"{name}: rate", first.rate, "segments/s", at_least=LEAST_RATE)
    yield Figure(f"{name}: file to text", first.file_ratio, "", at_most=8)
    if chosen.megabytes:
        yield from _growth(texts, int(chosen.megabytes * 1e6))
    if chosen.passages:
        rate = asyncio.run(_passages(chosen.passages))
        name = f"{chosen.passages} passages in one add: rate"
        yield Figure(name, rate, "passages/s", at_least=LEAST_PASSAGES)
    if chosen.vectors:
        yield from _with_vectors(texts[0][:EMBEDDED_CHARACTERS])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    yield Figure("peak memory", peak, "MB")


async def build(text: str) -> Built:
    """Read a text into a new memory."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        async with qrmem.open(f"{folder}/b.db", embedder="none", model="") as memory:
            report = await memory.add(qrmem.Document(text, id="text"))
        seconds = time.process_time() - began
        return Built(report.read, seconds, _size(Path(folder)) / len(text.encode()))


async def _passages(count: int) -> float:
    corpora = [multihop.load(name, multihop.folder()) for name in ("hotpotqa", "musique")]
    found = [passage for corpus in corpora for passage in corpus.passages][:count]
    documents = [
        qrmem.Document(text, title, f"p{n:06}") for n, (title, text) in enumerate(found) if text
    ]
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        async with qrmem.open(f"{folder}/b.db", embedder="none", model="") as memory:
            await memory.add(documents)
        return len(documents) / (time.process_time() - began)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def _growth(texts: Sequence[str], characters: int) -> Iterator[Figure]:
    text = long_text(texts, characters)
    tenth = asyncio.run(build(text[: characters // 10]))
    whole = asyncio.run(build(text))
    name = f"{characters / 1e6:.1f} MB, {whole.segments} segments"
    yield Figure(f"{name}: rate", whole.rate, "segments/s")
    growth = whole.seconds / tenth.seconds
    yield Figure(f"{name}: time to that of a tenth", growth, "", at_most=MOST_GROWTH)


def long_text(texts: Sequence[str], characters: int) -> str:
    """Return a text of a given size from the sentences of others."""
    pieces = [text[start:end] for text in texts for start, end in sentences(text)]
    return "".join(_rounds(pieces, characters))[:characters]


def _rounds(pieces: Sequence[str], characters: int) -> Iterator[str]:
    done, turn = 0, 0
    while done < characters:
        chance = random.Random(turn)
        for piece in chance.sample(pieces, len(pieces)):
            other = NAME.sub(partial(_renamed, turn), piece)
            yield other
            done += len(other)
        turn += 1


def _renamed(turn: int, found: re.Match[str]) -> str:
    """Return another name in each round, the same one throughout a round."""
    name = found[0]
    if not turn:
        return name
    chance = random.Random(f"{name} {turn}")
    return name[:3] + "".join(chance.choices(SYLLABLES, k=2))


def _with_vectors(text: str) -> Iterator[Figure]:
    encoder = open_embedder("local", Settings())
    assert isinstance(encoder, SentenceEncoder)
    settings = Settings()
    tokenizer = open_tokenizer(settings.tokenizer)
    segments = cut("text", qrmem.Document(text, id="text"), tokenizer, settings.segment_tokens)
    windows = [window for segment in segments for window in encoder.windows(segment.text)]
    _encoded(encoder, windows[:BATCH])
    alone = _encoded(encoder, windows)
    ratio = alone / asyncio.run(_built_with_vectors(text))
    name = f"with vectors, {len(windows)} windows: rate to the encoder's own"
    yield Figure(name, ratio, "", at_least=LEAST_OF_ENCODER)


def _encoded(encoder: SentenceEncoder, windows: list[str]) -> float:
    began = time.perf_counter()
    encoder._loaded().encode(windows, batch_size=BATCH, show_progress_bar=False)
    return time.perf_counter() - began


async def _built_with_vectors(text: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        async with qrmem.open(f"{folder}/b.db", embedder="local", model="") as memory:
            await memory.add(qrmem.Document(text[:2000], id="first"))  # loads the model
            began = time.perf_counter()
            await memory.add(qrmem.Document(text, id="text"))
            return time.perf_counter() - began
