"""`make run`: read a text, ask it, and show the answers with citations, trail and cost."""

import argparse
import asyncio
import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

import qrmem
from qrmem.cli import Exit, output
from qrmem.cli.lines import report_lines
from qrmem.cli.progress import Progress
from qrmem.config import Settings
from qrmem.errors import UsageError, page

DEMO_QUESTIONS = 3
NO_MODEL = "no model set: built-in rules read the text; questions get the closest passages"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demonstration; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m qrmem.demo", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--file", help="your own document instead of the sample")
    parser.add_argument("--ask", action="append", help="your own question (repeatable)")
    arguments = parser.parse_args(argv)
    with Exit() as ending:
        ending.code = asyncio.run(_demonstrate(arguments))
    return ending.code


async def _demonstrate(arguments: argparse.Namespace) -> int:
    settings = Settings.from_env()
    if arguments.file:
        if not arguments.ask:
            raise UsageError('give a question too: make run FILE=book.txt ASK="Who …?"')
        return await _run(settings, arguments.file, arguments.ask)
    with tempfile.TemporaryDirectory(prefix="qrmem-") as folder:
        fresh = settings.with_(memory=str(Path(folder) / "sample.db"))
        with as_file(files("qrmem") / "sample") as sample:
            questions = arguments.ask or sample_questions(sample / "questions.json")
            code = await _run(fresh, sample / "harbour.md", questions)
            print(_next())
            return code


def _next() -> str:
    """Return the next commands, and how to put `qrmem` on the path if it is not there."""
    folder = Path(sys.executable).parent
    is_on_path = shutil.which("qrmem") == str(folder / "qrmem")
    lines = [] if is_on_path else [f'export PATH={shlex.quote(str(folder))}:"$PATH"']
    lines += [
        "qrmem add YOUR_FILE     # read a text of your own into qrmem.db, in this folder",
        'qrmem ask "…"           # ask it; with OPENAI_API_KEY and QRMEM_MODEL a model answers',
        "qrmem view              # look at the memory in a browser (extra serve)",
        f"qrmem --help            # all commands; the tutorial: {page('tutorial')}",
    ]
    return "\n  ".join(["\nnext:", *lines])


def sample_questions(path: Path) -> list[str]:
    """Return the demo's questions: about one segment, about two, and one without an answer."""
    items = json.loads(path.read_text(encoding="utf-8"))["questions"]
    return [item["text"] for item in items[:DEMO_QUESTIONS]]


async def _run(settings: Settings, source: str | Path, questions: Sequence[str]) -> int:
    first = "" if settings.model else NO_MODEL
    with Progress(quiet=False, first=first) as progress:
        async with qrmem.open(settings=settings, listener=progress) as memory:
            report = await memory.add(source, update=True)
            print("\n".join(report_lines(report)))
            # The memory of an earlier run may hold other documents; they are left out.
            documents = {*report.added, *report.updated, *report.unchanged, *report.resumed}
            for question in questions:
                answer = await memory.ask(question, documents=sorted(documents))
                print(f"\nquestion: {output.safe(question)}")
                output.show("\n".join(output.answer_lines(answer)))
    return 0 if report.is_complete else 1


if __name__ == "__main__":
    sys.exit(main())
