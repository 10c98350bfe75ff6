"""Questions whose answer `ask` shows without a chat model (QRMEM_DATA: novels, XQuAD).

Each novel is a memory of its own, XQuAD's paragraphs are one memory; no embedder. Of XQuAD every
`--every`th question is asked. Invented names are asked of both novels and have to be refused.
"""

import argparse
import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.frame import Figure, note
from qrmem import Document, open
from qrmem.memory import Memory

NOVELS = {
    "84_frankenstein.txt": "frankenstein",
    "1342_pride_and_prejudice.txt": "pride_and_prejudice",
}
INVENTED = (
    "Who is Captain Zorblax?",
    "Where did Zelda Fitzwater live?",
    "What did Brunhilde Okafor say to her father?",
    "Which ship did Admiral Krondike sail?",
    "Who killed Tobermory Quill?",
    "Who is Mr. Ostrander's wife?",
    "When did Lucinda Pellworth marry?",
    "Why does Hargreave leave the house?",
    "Where is Castle Morvane?",
    "What did Dr. Penhaligon find on the mountain?",
)
Asked = Sequence[tuple[str, Sequence[str]]]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the option for the number of questions."""
    parser.add_argument("--every", type=int, default=4, help="ask every so many of XQuAD's")
    parser.add_argument("--embedder", default="none")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield the shares of questions with a right passage, and of refused questions."""
    data = Path(os.environ["QRMEM_DATA"])
    shown = asked = refused = 0
    for name, text, questions in novels(data):
        found, named = asyncio.run(_novel(text, name, questions, chosen.embedder))
        shown, asked, refused = shown + found, asked + len(questions), refused + named
    yield Figure(f"novels: shown, of {asked}", shown, at_least=30)
    yield Figure(f"invented names refused, of {2 * len(INVENTED)}", refused, at_least=20)
    documents, questions = _paragraphs(data / "squad" / "xquad.en.json")
    share = asyncio.run(_xquad(documents, questions[:: chosen.every], chosen.embedder))
    yield Figure("XQuAD: shown", 100 * share, "%", at_least=95)


def novels(data: Path) -> Iterator[tuple[str, str, Asked]]:
    """Yield the name of each novel, its text and its questions."""
    for file, name in NOVELS.items():
        rows = (data / "novels" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        questions = [(row["q"], row["a"]) for row in map(json.loads, rows)]
        yield name, (data / "gutenberg" / file).read_text(encoding="utf-8"), questions


async def _novel(text: str, title: str, questions: Asked, embedder: str) -> tuple[int, int]:
    async with open("memory://", embedder=embedder) as memory:
        await memory.add(Document(text, title=title.replace("_", " ")))
        shown = await _shown(memory, questions)
        answers = [await memory.ask(question) for question in INVENTED]
    return shown, sum(answer.status == "unanswerable" for answer in answers)


async def _xquad(documents: Sequence[Document], questions: Asked, embedder: str) -> float:
    async with open("memory://", embedder=embedder) as memory:
        await memory.add(documents)
        return await _shown(memory, questions) / len(questions)


async def _shown(memory: Memory, questions: Asked) -> int:
    count = 0
    for question, wanted in questions:
        answer = await memory.ask(question)
        assert len(answer.text.split()) <= 150
        if any(" ".join(one.split()) in answer.text for one in wanted):
            count += 1
        else:
            note(f"not shown ({answer.status}): {question} {wanted}")
    return count


def _paragraphs(path: Path) -> tuple[list[Document], list[tuple[str, list[str]]]]:
    documents, questions = [], []
    for n, article in enumerate(json.loads(path.read_text(encoding="utf-8"))["data"]):
        for m, paragraph in enumerate(article["paragraphs"]):
            documents.append(Document(paragraph["context"], id=f"{n}-{m}"))
            questions += [
                (asked["question"], [answer["text"] for answer in asked["answers"]])
                for asked in paragraph["qas"]
            ]
    return documents, questions
