"""Another package adds a data set, a system, a metric and a builder by an entry point."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from qrmem.errors import UsageError
from qrmem.eval.registry import Registry

PLUGIN = '''
"""Riddles, and a system that answers with its text's first words."""
import json
from dataclasses import dataclass

from qrmem import Document
from qrmem.eval import Context, Dataset, Item, Prediction, builder, dataset, metric, system

@dataset("riddles", "one riddle a line", files=("riddles.jsonl",), metrics=("em", "length"))
def riddles(path):
    found = [json.loads(line) for line in path.read_text().splitlines()]
    items = tuple(Item(f"r{n}", r["q"], (r["a"],), f"r{n}") for n, r in enumerate(found))
    texts = {f"r{n}": Context(f"r{n}", (Document(r["text"], id="t"),)) for n, r in enumerate(found)}
    return Dataset("riddles", items, texts)

@system("first-words", "the text's first words", count=2)
@dataclass(frozen=True, slots=True, kw_only=True)
class FirstWords:
    count: int = 1
    async def __call__(self, item, context, harness):
        words = context.documents[0].text.split()
        return Prediction(text=" ".join(words[: self.count]), status="answered")

@metric("length")
def length(item, row, rule):
    return min(1.0, len(row.short) / 10)

@builder("riddles", "riddles out of a text's lines")
def build(data, out, *, most: int = 2):
    lines = data.read_text().splitlines()[:most]
    made = [json.dumps({"q": "What?", "a": line[:5], "text": line}) for line in lines]
    (out / "riddles.jsonl").write_text("\\n".join(made))
'''


CHILD = """
import contextlib, io, json, sys
sys.path.append(sys.argv[1])
from qrmem.cli import main
done = []
for line in sys.argv[2:]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(line.split())
    done.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(done))
"""


def qrmem(folder: Path, *lines: str) -> list[tuple[int, str, str]]:
    """Run commands in a process that the plug-in is installed for."""
    command = [sys.executable, "-c", CHILD, str(folder), *lines]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    return install_plug_in(tmp_path)


def install_plug_in(folder: Path) -> Path:
    """Install the plug-in as an installer does: the module, and its entry points beside it."""
    (folder / "riddling.py").write_text(PLUGIN)
    info = folder / "riddling-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: riddling\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[qrmem.eval]\nriddling = riddling\n")
    (folder / "lines.txt").write_text("Red is a colour.\nBlue is one too.\nGreen also.\n")
    return folder


def test_a_plug_in_brings_a_data_set_a_system_a_metric_and_a_builder(installed: Path) -> None:
    build = "eval build riddles most=2 --data lines.txt --out made"
    run = "eval run riddles --data made --system first-words,first-words:count=1 --out run --json"
    built, ran, listed = qrmem(installed, build, f"{run} --embedder none", "eval list")
    assert built[0] == 0, built
    assert ran[0] == 0, ran
    (summary,) = json.loads(ran[1])
    assert set(summary["systems"]) == {"first-words", "first-words:count=1"}
    rows = (installed / "run" / "rows.jsonl").read_text().splitlines()
    assert [json.loads(row)["short"] for row in rows] == ["Red is", "Red", "Blue is", "Blue"]
    report = (installed / "run" / "report" / "report.md").read_text()
    assert "| system | n | em | length |" in report
    for line in ("one riddle a line", "the text's first words", "riddles out of a text's lines"):
        assert line in listed[1]


def test_a_builder_reports_what_it_cannot_do(installed: Path) -> None:
    wrong = {
        "riddle --data lines.txt": "did you mean riddles?",
        "riddles most=two --data lines.txt": "'two' is not a number",
        "riddles least=2 --data lines.txt": "has no parameter 'least'; it has most",
        "riddles --data none.txt": "no such file or folder: none.txt",
        "riddles --data lines.txt --out .": "is not empty; choose an empty folder",
    }
    done = qrmem(installed, *(f"eval build --out made {words}" for words in wrong))
    for (code, _, told), said in zip(done, wrong.values(), strict=True):
        assert code == 2
        assert said in told


def test_a_plug_in_that_cannot_be_loaded_is_named(installed: Path) -> None:
    (installed / "riddling.py").write_text("import a_package_that_is_not_there\n")
    ((code, _, told),) = qrmem(installed, "eval list")
    assert code == 2
    assert "the plug-in riddling cannot be loaded" in told


def test_a_name_is_taken_once() -> None:
    registry: Registry[int] = Registry("number")
    registry.add("one", 1)
    with pytest.raises(UsageError, match="two numbers are called 'one'"):
        registry.add("one", 2)
