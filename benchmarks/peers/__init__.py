"""qrmem and other programs on the same passages, with one extraction, vectors and latency.

    QRMEM_DATA=… PYTHONPATH=tests python -m benchmarks peers [--passages 100] [--questions 20]
        [--only NAME…] [--page docs/peers.md]

Passages and questions are MuSiQue's. One server on loopback stands for the chat model and for the
embedder. It answers each prompt in the form that the prompt asks for, with what GPT-3.5 once found
in the passage; vectors are hashed bags of words. Each program is installed unchanged into an
environment of its own (below `~/.cache/qrmem/peers`), and runs in a process of its own.

Recall is the share of a question's gold passages among the first 5, the first 10 and all of those
that a program shows for it; no answer is written. A passage is lost if it is not among those shown
when its own text is the question. Calls, tokens (words and marks) and texts that were embedded are
counted by the server. Processor time and peak memory are those of the program's process. `--page`
writes a table in Markdown and, beside it, a chart. Memory is read from `/proc`: this needs Linux.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from benchmarks.frame import Figure


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--passages", type=int, default=100, help="the gold ones among them")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="default: all of them")
    parser.add_argument("--latency", type=float, default=0.05, help="seconds of each request")
    parser.add_argument("--limit", type=float, default=900, help="seconds that each may run")
    parser.add_argument("--at-once", type=int, default=1, help="programs that run side by side")
    parser.add_argument("--page", type=Path, help="where to write the table")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield the figures of each program; write the page if one is wanted."""
    # Runners import this package in environments that have nothing else in them.
    from benchmarks.peers.comparing import compare, figures
    from benchmarks.peers.page import write

    rows = []
    for row in compare(chosen):
        rows.append(row)
        yield from figures(row)
    if chosen.page:
        write(chosen.page, rows, chosen)
