"""The table of a comparison as a page in Markdown, and a chart of it as SVG."""

import argparse
import math
import os
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from benchmarks.peers.comparing import Row

HEAD = """\
# Beside other programs

Made by `QRMEM_DATA=… PYTHONPATH=tests python -m benchmarks peers --passages {passages} \
--questions {questions} --at-once {at_once} --limit {limit:g} --page docs/peers.md`,
with a latency of {latency:g} s a request, on {cores} cores with a load of {load:.1f}: other work
ran beside it. So seconds of the clock say little, and processor time is higher than on a machine
with nothing else to do.

![Recall and tokens]({chart})
"""
FOOT = """
What is the same for all, and what the tables cannot say:

- **Passages and questions are MuSiQue's**: the first {questions} questions that HippoRAG's authors
  published, their gold passages, and other passages that MuSiQue puts beside these questions,
  {passages} in all, in a random order. Few questions: one is {one:.1f} points.
- **No model ran.** A server on loopback answers each prompt in the form that it asks for. Where a
  prompt holds a passage, the reply has the names and triples that GPT-3.5 once found in it. Types
  and descriptions are not in that extraction: all names get one type, and a name's description is
  its triples. The extraction was made for HippoRAG's prompts, and a better model would find more.
- **Vectors are hashed bags of words** of {dimension} dimensions: near means with the same words.
  With a real encoder all rankings change, most of all those that rest on vectors alone.
- **Steps that compare, judge or summarise are answered by fixed rules**: a summary is the first
  words of what is summarised, a question's keywords are its names and other words, and nothing is
  a duplicate but the same name. Programs that rest on such steps do worse here than with a model.
- **Recall** is the share of a question's gold passages among those that a program shows, in its
  order; no answer is written. Some programs name the passages that they show; with others the text
  that they show is searched for the passages' texts. Recall of all that is shown favours a program
  that shows much. A program that fills its context by a token budget and puts names before
  passages has no real order of passages, so its recall at 5 says little.
- **Lost** are passages that are not shown when their own title and text is the question. A program
  that finds passages by names alone may keep them and still not show them.
- **Processor time and memory** are those of the program's process, without a database server
  beside it and without the server that stands for the models. Questions are asked one by one.
  Settings are the programs' own, but for {k} passages or facts wanted where a program takes such a
  number.
- **Tokens** are words and marks of all messages and of the schema of the reply. A real tokenizer
  counts more of them.
- qrmem is at home here: the weights of its search were fitted on other questions of MuSiQue, and
  these questions were run while its search was made ([retrieval](retrieval.md)).
"""


def write(path: Path, rows: Sequence[Row], chosen: argparse.Namespace) -> None:
    """Write the page, and the chart beside it."""
    from benchmarks.peers.comparing import AT, DIMENSION

    chart = path.parent / "images" / f"{path.stem}.svg"
    chart.parent.mkdir(exist_ok=True)
    chart.write_text(drawn(rows, chosen.passages), encoding="utf-8")
    facts = {
        **vars(chosen),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "chart": f"images/{chart.name}",
        "one": 100 / chosen.questions,
        "dimension": DIMENSION,
        "k": max(AT),
    }
    parts = [HEAD.format(**facts), *table(rows, chosen.passages, chosen.questions)]
    path.write_text("\n".join(parts) + "\n" + FOOT.format(**facts), encoding="utf-8")


def table(rows: Sequence[Row], passages: int, questions: int) -> Iterator[str]:
    """Yield the lines of the tables."""
    yield "Recall in %; what was not run is below."
    yield ""
    yield (
        "| | version | recall at 5, 10, of all shown | shown | lost | errors | what it shows |\n"
        "|---|---|---|---|---|---|---|"
    )
    run = [row for row in rows if not row.why_not]
    for row in run:
        shares = " ".join(f"{100 * share:.0f}" for share in row.recalls)
        yield (
            f"| {row.program.name} | {row.program.version} | {shares} | {row.passages_shown:.0f} "
            f"| {row.lost} | {len(row.errors)} | {row.program.shows} |"
        )
    yield ""
    yield (
        "| | a passage: calls; tokens in + out; texts embedded | processor, s | clock, s "
        "| a question: calls; tokens in + out | processor, ms | clock, ms | peak memory, MB "
        "| prompts without a form |\n|---|---|---|---|---|---|---|---|---|"
    )
    for row in run:
        build, ask = row.build, row.ask
        yield (
            f"| {row.program.name} | {build.calls / passages:.2f}; "
            f"{build.tokens_in / passages:,.0f} + {build.tokens_out / passages:,.0f}; "
            f"{build.embedded / passages:.1f} | {build.processor:.1f} | {build.seconds:.1f} "
            f"| {ask.calls / questions:.1f}; {ask.tokens_in / questions:,.0f} + "
            f"{ask.tokens_out / questions:,.0f} | {1000 * ask.processor / questions:.0f} "
            f"| {1000 * ask.seconds / questions:.0f} | {row.memory:.0f} "
            f"| {sum(row.unknown.values())} |"
        )
    for row in rows:
        if row.why_not:
            yield f"\nNot run: **{row.program.name}** {row.program.version}: {row.why_not}"
    for row in run:
        if row.errors:
            yield f"\nThe first error of **{row.program.name}**: `{row.errors[0][:200]}`"


# --- chart ---------------------------------------------------------------------------------------

_LINE, _LEFT, _WIDE, _GAP = 22, 120, 250, 90


def drawn(rows: Sequence[Row], passages: int) -> str:
    """Return bars: recall of the first ten, and tokens a passage on a scale of tens."""
    run = [row for row in rows if not row.why_not]
    height, second = 50 + _LINE * len(run), _LEFT + _WIDE + _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{second + _WIDE + _GAP}" '
        f'height="{height}" font-family="sans-serif" font-size="12" fill="#222">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{_LEFT}" y="20">recall of gold passages among the first 10, %</text>',
        f'<text x="{second}" y="20">tokens a passage, in + out (each step: ten times)</text>',
    ]
    costs = [(row.build.tokens_in + row.build.tokens_out) / passages for row in run]
    most = math.log10(max([10.0, *costs]))
    for n, (row, cost) in enumerate(zip(run, costs, strict=True)):
        y = 34 + _LINE * n
        share, log = row.recalls[1], math.log10(max(1.0, cost)) / most
        colour = "#00796b" if row.program.name.startswith("qrmem") else "#90a4ae"
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 12}" text-anchor="end">')
        parts.append(f"{escape(row.program.name)}</text>")
        for x, part, shown in ((_LEFT, share, f"{100 * share:.0f}"), (second, log, f"{cost:,.0f}")):
            width = _WIDE * part
            parts.append(
                f'<rect x="{x}" y="{y}" width="{width:.0f}" height="16" fill="{colour}"/>'
                f'<text x="{x + width + 5:.0f}" y="{y + 12}">{shown}</text>'
            )
    return "\n".join([*parts, "</svg>", ""])
