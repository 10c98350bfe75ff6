"""A local build with vectors, beside the encoder alone on the same windows in the same run.

    python -m benchmarks.embedding_build TEXT [--characters 150000] [--rounds 3]

The encoder alone is sentence-transformers' own `encode`, given all windows of all segments.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

import qrmem
from qrmem.config import Settings
from qrmem.graph.segmenting import cut
from qrmem.llm.embedders import open_embedder
from qrmem.llm.encoder import BATCH, SentenceEncoder
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.text.files import read

LEAST = 0.9


def windows_of(text: str, encoder: SentenceEncoder) -> list[str]:
    """Return every window of every segment, as a build hands them to the encoder."""
    settings = Settings()
    tokenizer = open_tokenizer(settings.tokenizer)
    segments = cut("text", qrmem.Document(text, id="text"), tokenizer, settings.segment_tokens)
    return [window for segment in segments for window in encoder.windows(segment.text)]


def encoder_alone(encoder: SentenceEncoder, windows: list[str]) -> float:
    """Return the wall seconds of one `encode` of all windows."""
    began = time.perf_counter()
    encoder._loaded().encode(windows, batch_size=BATCH, show_progress_bar=False)
    return time.perf_counter() - began


async def build(text: str) -> float:
    """Return the wall seconds of reading a text into a new memory, vectors included."""
    with tempfile.TemporaryDirectory() as folder:
        async with qrmem.open(f"{folder}/b.db", embedder="local", model="") as memory:
            await memory.add(qrmem.Document(text[:2000], id="first"))  # loads the model
            began = time.perf_counter()
            await memory.add(qrmem.Document(text, id="text"))
            return time.perf_counter() - began


async def main(arguments: argparse.Namespace) -> None:
    """Print both rates, and the median of the rounds' ratios."""
    text = read(arguments.text).text[: arguments.characters]
    encoder = open_embedder("local", Settings())
    assert isinstance(encoder, SentenceEncoder)
    windows = windows_of(text, encoder)
    encoder_alone(encoder, windows[:BATCH])
    ratios = []
    for _ in range(arguments.rounds):
        alone = encoder_alone(encoder, windows)
        whole = await build(text)
        ratios.append(alone / whole)
        print(f"{len(windows)} windows: encoder alone {alone:.1f} s, build {whole:.1f} s")
    ratio = statistics.median(ratios)
    print(f"build works at {ratio:.2f} of the encoder's own rate (bound: at least {LEAST})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--characters", type=int, default=150_000)
    parser.add_argument("--rounds", type=int, default=3)
    asyncio.run(main(parser.parse_args()))
