"""What a user installs: the wheel, in empty environments outside of the checkout (`.ci/wheel`).

`$QRMEM_INSTALLED/core` holds qrmem alone, `$QRMEM_INSTALLED/extras` also the extras that install
quickly.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from documents import docx_file, pdf
from e2e.conftest import ROOT, Ran, Shell
from eval.test_plugins import install_plug_in
from integrations.conftest import listening
from mcp import Client, StdioServerParameters
from preset_data import write_all
from servers.openai_server import OpenAIServer, in_thread
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from viewing import viewed

from qrmem.cli.parser import build_parser
from qrmem.eval import preset_names

PLACE = os.environ.get("QRMEM_INSTALLED", "")

TEXT = "Ada Lovelace met Charles Babbage in London in 1833."
ASKED = "Who met Charles Babbage?"
TURNS = [
    {"role": "user", "content": "The flight to Oslo leaves on 3 May."},
    {"role": "assistant", "content": "Noted: on 3 May."},
]
TRIPLES = {
    "docs": [
        {
            "idx": "one",
            "passage": TEXT,
            "extracted_entities": ["Ada Lovelace", "Charles Babbage"],
            "extracted_triples": [["Ada Lovelace", "met", "Charles Babbage"]],
        }
    ]
}


class Installed(Shell):
    """Runs what is installed in one of the two environments."""

    def __init__(self, folder: Path, name: str) -> None:
        if not PLACE:
            pytest.skip("QRMEM_INSTALLED is not set: .ci/wheel")
        super().__init__(folder)
        self.bin = Path(PLACE) / name / "bin"
        self.environment.pop("PYTHONPATH", None)
        self.environment.pop("VIRTUAL_ENV", None)
        self.write("note.txt", TEXT)

    def __call__(self, *words: str, stdin: bytes = b"", **env: str) -> Ran:
        """Run a command; it has to end well."""
        ran = self.apart(*words, stdin=stdin, timeout=120, **env)
        assert ran.code == 0, f"qrmem {shlex.join(words)}\n{ran.out[-2000:]}{ran.err[-2000:]}"
        return ran

    def command(self, *words: str) -> list[str]:
        return [str(self.bin / "qrmem"), *words]

    def python(self, script: str) -> str:
        """Run a script and return what it prints."""
        self.write("script.py", script)
        done = subprocess.run(
            [str(self.bin / "python"), "-I", "script.py"],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout


@pytest.fixture
def core(tmp_path: Path) -> Installed:
    return Installed(tmp_path, "core")


@pytest.fixture
def extras(tmp_path: Path) -> Installed:
    return Installed(tmp_path, "extras")


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with in_thread(OpenAIServer()) as running:
        yield running


COMMANDS = """
init
trust
completion bash
help add
plan add note.txt
add note.txt --id note
search "Who met Charles Babbage?"
ask "Who met Charles Babbage?"
plan ask "Who met Charles Babbage?"
show
show "Ada Lovelace"
trail
status
list
doctor
merge "Ada Lovelace" "Charles Babbage"
separate "Ada Lovelace" "Charles Babbage"
reembed --embedder openai:e --base-url {url}
reembed --embedder none
add note.txt --update --model test --base-url {url}
chat add log.jsonl --user ann
chat say user "The ferry leaves at noon." --user ann --standing
chat turns
chat standing
chat recall "When does the flight to Oslo leave?"
chat extract --model test --base-url {url}
chat forget-user ann --yes
usage
prune
export memory.qrmem
import memory.qrmem --namespace copy
import --openie triples.json --namespace openie
delete note --yes
eval list
eval build niah length=1k --data long.txt --out made
eval plan niah --data made --system keep-left --model test --base-url {url}
eval run niah --data made --system keep-left --out run --model test --base-url {url}
eval judge run --model test --base-url {url}
eval report run
"""
"""One line for each command; they run one after another over one memory."""

ELSEWHERE = {
    "mcp": "test_the_memory_is_served_to_an_mcp_client",
    "serve": "test_the_memory_is_served_by_rest",
    "view": "test_the_page_is_served",
    "plan tree": "test_the_extras_do_what_they_are_for",
    "tree show": "test_the_extras_do_what_they_are_for",
    "tree build": "test_the_extras_do_what_they_are_for",
    "facts": "test_statements_are_listed_and_decided_on",
    "edit-fact": "test_statements_are_listed_and_decided_on",
    "end-fact": "test_statements_are_listed_and_decided_on",
    "delete-fact": "test_statements_are_listed_and_decided_on",
    "restore-fact": "test_statements_are_listed_and_decided_on",
    "judge-facts": "test_statements_are_listed_and_decided_on",
}
"""Commands that another test of this file runs."""


def test_every_command_is_run() -> None:
    run = [" ".join(shlex.split(line)) for line in COMMANDS.strip().splitlines()]
    for command in commands(build_parser()):
        is_run = any(f"{line} ".startswith(f"{command} ") for line in run)
        assert is_run != (command in ELSEWHERE), f"no line runs `qrmem {command}`"
    assert set(ELSEWHERE.values()) <= globals().keys()


def commands(parser: argparse.ArgumentParser, before: str = "") -> Iterator[str]:
    """Yield every command, with its actions, as words."""
    below = [found for found in parser._actions if isinstance(found, argparse._SubParsersAction)]
    if not below:
        yield before.strip()
    for name, inner in (pair for found in below for pair in found.choices.items()):
        yield from commands(inner, f"{before} {name}")


@pytest.mark.timeout(600)
def test_the_command_line(core: Installed, server: OpenAIServer) -> None:
    core.write("log.jsonl", "\n".join(map(json.dumps, TURNS)))
    core.write("triples.json", json.dumps(TRIPLES))
    core.write("long.txt", "\n\n".join(f"It was the year {year}. {TEXT}" for year in range(400)))
    told = {}
    for line in COMMANDS.strip().splitlines():
        words = shlex.split(line.format(url=server.url))
        told[line] = core(*words).out
    assert TEXT in told['search "Who met Charles Babbage?"']
    assert "passage 1:" in told['ask "Who met Charles Babbage?"']
    assert "Oslo" in told['chat recall "When does the flight to Oslo leave?"']
    assert "Ada Lovelace" in core("show", "--namespace", "openie").out


def test_statements_are_listed_and_decided_on(core: Installed, server: OpenAIServer) -> None:
    core("add", "note.txt", "--id", "note")
    said = core("facts", "Ada Lovelace", "--json").json[0]
    assert said["quotation"] in TEXT
    core("edit-fact", said["id"], "--text", "knew")
    assert "knew" in core("facts").out
    core("end-fact", said["id"], "--on", "1840")
    assert "1840" in core("facts", "--superseded").out
    core("delete-fact", said["id"])
    core("restore-fact", said["id"])
    assert said["quotation"] in core("facts").out
    core("judge-facts", "--plan", "--model", "test", "--base-url", server.url)


@pytest.mark.parametrize("words", ["--paper-exact", "--prompts paper", "--prompts story"])
def test_prompts_of_the_papers(words: str, core: Installed, server: OpenAIServer) -> None:
    model = ["--model", "test", "--base-url", server.url, *words.split()]
    core("add", "note.txt", *model)
    assert core("ask", ASKED, "--json", *model).json["status"]


FACES = {
    "asynchronous": """
import asyncio, qrmem

async def main():
    async with qrmem.open("faces.db", embedder="none") as memory:
        await memory.add({"id": "note", "text": TEXT})
        print((await memory.ask(ASKED)).citations[0].quote)

asyncio.run(main())
""",
    "synchronous": """
import qrmem.sync

with qrmem.sync.open("faces.db", embedder="none") as memory:
    memory.add({"id": "note", "text": TEXT})
    print(memory.search(ASKED)[0].text)
""",
    "tools": """
import qrmem, qrmem.sync

with qrmem.sync.open("faces.db", embedder="none") as memory:
    memory.add({"id": "note", "text": TEXT})
    tools = {tool.name: tool for tool in qrmem.tools(memory)}
    print(tools["search_memory"].invoke({"query": ASKED}))
""",
    "store": """
import qrmem.sync
from qrmem.integrations.langgraph import MemoryStore

with qrmem.sync.open("faces.db", embedder="none") as memory:
    store = MemoryStore(memory)
    store.put(("users", "ada"), "met", {"text": TEXT})
    print(store.search(("users",), query=ASKED)[0].value["text"])
""",
    "retriever": """
import qrmem.sync
from qrmem.integrations.langchain import MemoryRetriever

with qrmem.sync.open("faces.db", embedder="none") as memory:
    memory.add({"id": "note", "text": TEXT})
    print(MemoryRetriever(memory=memory, k=1).invoke(ASKED)[0].page_content)
""",
}


@pytest.mark.parametrize("face", FACES)
def test_python(face: str, core: Installed) -> None:
    said = core.python(f"TEXT, ASKED = {TEXT!r}, {ASKED!r}\n{FACES[face]}")
    assert "Ada Lovelace met Charles Babbage" in said


EVERY_MODULE = """
import importlib, pkgutil, qrmem
for name in qrmem.__all__:
    getattr(qrmem, name)
for found in pkgutil.walk_packages(qrmem.__path__, "qrmem."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
print(qrmem.__file__)
"""


def test_every_module_is_imported_without_any_extra(core: Installed) -> None:
    assert str(core.bin.parent) in core.python(EVERY_MODULE)


def test_no_folder_of_the_checkout_is_a_package_of_its_own(core: Installed) -> None:
    folders = sorted(path.name for path in ROOT.iterdir() if (path / "__init__.py").exists())
    script = f"import importlib.util as u; print([n for n in {folders} if u.find_spec(n)])"
    assert core.python(script).strip() == "['qrmem']"


def test_the_sample_is_read_and_asked(core: Installed) -> None:
    said = core.python("import runpy; runpy.run_module('qrmem.demo', run_name='__main__')")
    assert "qrmem add YOUR_FILE" in said, "it ends with what to do next"


EXTRAS = {
    "view": "serve",
    "serve": "serve",
    "mcp": "mcp",
    "add note.txt --model anthropic/claude-haiku-4-5": "litellm",
    "add note.txt --embedder light": "light",
    "add note.txt --embedder local": "local",
    "add note.txt --tokenizer tiktoken:o200k_base": "tokenizers",
    "add note.txt --tokenizer hf:words.json": "tokenizers",
    "add note.txt --tagger stanza:models": "taggers",
    "add note.txt --executor ray": "ray",
    "add paper.pdf": "files",
    "add paper.docx": "files",
    "add paper.xlsx": "files",
    "add paper.pptx": "files",
    "add note.txt --tree": "tree",
}
"""What a user of the core may try first, and the extra that it needs."""
LATER = {
    "ask 'Who?' --model anthropic/claude-haiku-4-5": "litellm",
    "search 'Who?' --reranker cross-encoder/x": "local",
    "tree build": "tree",
    "plan tree": "tree",
    "reembed --embedder light": "light",
}


@pytest.mark.timeout(900)
def test_a_missing_package_is_named_with_its_extra_and_nothing_is_created(core: Installed) -> None:
    for name in ("pdf", "docx", "xlsx", "pptx"):
        core.write(f"paper.{name}", "PK")
    for line, extra in EXTRAS.items():
        refused(core, line, extra)
        assert not (core.folder / "test.db").exists(), line
    core("add", "note.txt")
    for line, extra in (EXTRAS | LATER).items():
        if "add note.txt" not in line:
            refused(core, line, extra)
    core.write("main.go", "package main\n\nfunc Beacon() int { return 3 }\n")
    assert '"qrmem[code]"' in core("add", "main.go").out


def refused(core: Installed, line: str, extra: str) -> None:
    """Run a line whose extra is missing: one line names the command that installs it."""
    ran = core.apart(*shlex.split(line))
    said = ran.err.strip().splitlines()
    assert (ran.code, len(said)) == (3, 1), f"{line}: {ran.out}{ran.err}"
    command = rf'\S*/core/bin/python\S* -m pip install "qrmem\[{extra}\]"'
    assert re.search(f" needs the extra `{extra}`: {command}$", said[0]), f"{line}: {said}"


def test_the_command_that_a_hint_names_installs_the_extra(core: Installed) -> None:
    said = core.apart("serve").err
    words = shlex.split(said.partition("`serve`: ")[2])
    done = subprocess.run([*words, "--dry-run"], capture_output=True, text=True, check=True)
    assert re.search("Would install .*fastapi.*uvicorn", done.stdout)
    assert "qrmem" not in done.stdout.partition("Would install")[2], "it is there already"


def test_a_plug_in_is_found(core: Installed) -> None:
    install_plug_in(core.folder)
    build = "eval build riddles most=2 --data lines.txt --out made"
    run = "eval run riddles --data made --system first-words --embedder none"
    for line in (build, run):
        core(*line.split(), PYTHONPATH=str(core.folder))
    assert "Red is" in (core.folder / "runs" / "riddles" / "rows.jsonl").read_text()


OF_THE_PAPERS = {
    "QRMeM": ("table-2", "QRMeM"),
    "FragRel": ("fragrel-table-2", "Vanilla + FragRel"),
    "ILM-TR": ("ilm-tr-figure-3", "ILM-TR"),
    "Ada-LEval": ("ada-leval-tsort", ""),
}


def test_every_preset_is_of_one_of_these_papers() -> None:
    assert {name.partition("-")[0] for name in preset_names()} == {
        "ada", "figure", "fragrel", "ilm", "quality", "table"
    }  # fmt: skip


@pytest.mark.parametrize("paper", OF_THE_PAPERS)
def test_a_preset_of_each_paper_runs(paper: str, extras: Installed, server: OpenAIServer) -> None:
    preset, systems = OF_THE_PAPERS[paper]
    data = write_all(extras.folder / "data")
    model = ["--model", "test", "--base-url", server.url, "--embedder", "openai:e"]
    chosen = ["--system", systems] if systems else []
    words = ["eval", "run", preset, "--data", str(data), "--sample", "1", "--out", "run"]
    assert paper in extras(*words, *chosen, *model).out


async def test_the_memory_is_served_to_an_mcp_client(extras: Installed) -> None:
    extras("add", "note.txt")
    program, *words = extras.command("mcp", "--memory", str(extras.folder / "test.db"))
    async with Client(StdioServerParameters(command=program, args=words)) as client:
        found = await client.call_tool("search", {"query": ASKED})
    assert TEXT in str(found.content)


def test_the_memory_is_served_by_rest(extras: Installed) -> None:
    extras("add", "note.txt")
    command = extras.command("serve", "--memory", str(extras.folder / "test.db"))
    with listening(command, extras.environment) as url:
        assert httpx.post(f"{url}/search", json={"query": ASKED}).json()[0]["text"] == TEXT
        assert "swagger" in httpx.get(f"{url}/docs").text.lower()


def test_the_page_is_served(extras: Installed) -> None:
    extras("add", "note.txt")
    with viewed(extras.folder / "test.db", program=extras.command()) as url:
        page = httpx.get(url).text
        parts = re.findall(r'(?:src|href)="([^"#]+\.(?:js|css))"', page)
        assert parts
        for part in parts:
            assert httpx.get(httpx.URL(url).join(part)).status_code == 200, part


def test_the_extras_do_what_they_are_for(extras: Installed) -> None:
    found = {one["what"]: one for one in extras("doctor", "--json").json}
    wanted = re.search(r"\[([a-z,]+)\]", (ROOT / ".ci" / "wheel").read_text())
    assert wanted
    for extra in wanted[1].split(","):
        assert found[f"extra {extra}"]["is_well"], found[f"extra {extra}"]
    extras.write("lighthouse.docx", docx_file())
    extras.write("harbour.pdf", pdf("The harbour of Skarrow has two stone arms."))
    extras.write("main.go", "package main\n\nfunc Beacon() int { return 3 }\n")
    Tokenizer(WordLevel({"?": 0}, unk_token="?")).save(str(extras.folder / "words.json"))
    for line in (
        "add lighthouse.docx harbour.pdf main.go note.txt --tokenizer hf:words.json",
        "plan tree",
        "tree build",
        "tree show",
    ):
        extras(*line.split())
    assert "Beacon" in extras("search", "Beacon").out
