"""Pages that teach: their commands run as they stand."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from e2e.conftest import ROOT, SAMPLE, Ran, Shell
from markdown.extensions.toc import slugify
from servers.openai_server import OpenAIServer, in_thread

from qrmem.cli.parser import build_parser
from qrmem.errors import UsageError
from tools import cli_reference

DOCS = ROOT / "docs"
BLOCK = re.compile(r"```(sh|python)\n(.*?)```", re.DOTALL)
FENCED = re.compile(r"```.*?```", re.DOTALL)


@pytest.mark.timeout(600)
def test_every_command_of_the_tutorial_runs(tmp_path: Path) -> None:
    blocks = BLOCK.findall((DOCS / "tutorial.md").read_text())
    assert len(blocks) > 5
    run = _runner(tmp_path, {"SAMPLE": str(SAMPLE)})
    said = []
    for kind, text in blocks:
        lines = text.splitlines() if kind == "sh" else [f"python -c {shlex.quote(text)}"]
        for line in lines:
            ran = run(line)
            assert ran.code == 0, f"{line}\n{ran.err}"
            said.append(ran.out)
    everything = "\n".join(said)
    for expected in (
        "Dr. Agnes Pruett set Pip's broken arm",
        "7 kilometres from",
        "5 May",
        "Clara",
        "sum(prices)",
        "| passages |",
    ):
        assert expected in everything, expected


def _runner(folder: Path, more: Mapping[str, str]) -> Callable[[str], Ran]:
    """Return what runs a line of a page; a plain `qrmem …` runs in this process, to save time."""
    shell = Shell(folder)
    commands = folder / "bin"
    commands.mkdir()
    for name, words in (("qrmem", "-m qrmem "), ("python", "")):
        (commands / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        (commands / name).chmod(0o755)
    shell.environment |= {"PATH": f"{commands}:{os.environ['PATH']}", **more}

    def run(line: str) -> Ran:
        if line.startswith("qrmem ") and not re.search(r"[|&><;]", line):
            told = line.replace("$SAMPLE", more.get("SAMPLE", ""))
            return shell(*shlex.split(told)[1:])
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=folder,
            env=shell.environment,
            capture_output=True,
            text=True,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


def _again(folder: Path, line: str) -> Ran:
    return Shell(folder)(*shlex.split(line)[1:])


def test_the_readme_shows_what_is_printed(qrmem: Shell) -> None:
    text = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"```console\n(\$ qrmem add.*?)```", text, re.DOTALL)
    added, asked = block.split("\n\n")
    ran = qrmem("add", str(SAMPLE / "harbour.md"))
    seconds = re.compile(r"in [\d.]+ s")
    printed = seconds.sub("", ran.err + ran.out).splitlines()
    assert printed == seconds.sub("", added).splitlines()[1:]
    (question,) = shlex.split(asked.splitlines()[0].partition("|")[0])[3:]
    shown = asked.splitlines()[1:]
    assert qrmem("ask", question).out.splitlines()[: len(shown)] == shown
    first, second, _ = json.loads((SAMPLE / "questions.json").read_text())["questions"][:3]
    for item in (first, second):
        assert item["answers"][0] in qrmem("ask", item["text"]).out, "the demo shows the answer"
    assert question == second["text"]


def test_the_readmes_python_runs_as_it_stands(tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    ran = _runner(tmp_path, {})(f"python -c {shlex.quote(block)}")
    assert ran.code == 0, ran.err
    assert "Lucian Ashby was born on Mussel Island" in ran.out
    trail = re.search(r"(qrmem trail \S+ --memory story.db)", ran.out)
    assert trail is not None
    assert "reflection" in _again(tmp_path, trail[1]).out


def test_the_page_of_commands_is_that_of_the_program() -> None:
    assert cli_reference.PAGE.read_text() == cli_reference.page(), (
        "run python -m tools.cli_reference"
    )


def test_every_link_between_pages_leads_somewhere() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.md", ":!tests", ":!prompts", ":!qrmem"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    pages = {ROOT / name: (ROOT / name).read_text() for name in listed.stdout.split("\0") if name}
    broken = []
    for page, text in pages.items():
        for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", FENCED.sub("", text)):
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            headings = re.findall(r"(?m)^#+ (.+)$", FENCED.sub("", pages.get(target, "")))
            is_heading = anchor in {slugify(heading, "-") for heading in headings}
            if not target.exists() or (anchor and target in pages and not is_heading):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert not broken


# --- every other page -----------------------------------------------------------------------------

FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`(qrmem [^`]+)`")
PAGES = sorted(
    path
    for path in [ROOT / "README.md", *DOCS.rglob("*.md")]
    if path.parent.name not in ("adr", "reference", "results") and path.name != "tutorial.md"
)
STAND_INS = {
    "…/site-packages/tenacity": "src",
    '"…"': '"Who lost a leg?"',
    "[NAME]": '"Tam Garrick"',
    "FILE|FOLDER|URL|-": "book.txt",
    "--source …": "--source data",
    "--data …": "--data data",
    "--base-url …": "",
    "…/": "",
    " …": "",
    "DIR": "data",
    "FOLDER": "data",
    "FILE": "data/hotpot.json",
    "PATH": "out.qrmem",
    "ID": "1",
    "$table": "table-2",
    " M": " gpt-5-mini",
    " U": " $OPENAI_BASE_URL",
    "JUDGE": "gpt-5-mini",
}
"""What a reader fills in, and what the test does."""
ELSEWHERE = {
    r"qrmem (serve|mcp|view)": "tests/integrations: they run until stopped",
    r"neo4j": "tests/integration: with a real Neo4j",
    r"--tagger (corenlp|stanza)": "tests/integration/test_taggers.py: with the real ones",
    r"anthropic/": "tests/integration/test_litellm_http.py",
    r"(localhost|127.0.0.1):8000": "the same command with the address of a server that runs",
    r"--embedder (local|contriever)|embedder": "tests marked local_embedder, with real weights",
    r"--reranker": "tests/integration/test_reranker_http.py, test_cross_encoder.py",
    r"eval (run|build|judge|report) ": "tests/eval: on data that fit the command",
    r"eval plan": "tests/eval: on data that fit the command",
    r"merge A B|separate": "tests/e2e/test_commands.py: names of the memory at hand",
    r"import --openie": "tests/e2e/test_moving.py: with a file of that form",
    r"(edit|end|delete|restore)-fact": "tests/integration/test_facts_in_time.py: ids at hand",
}
"""Commands that are parsed here, and run by other tests."""


def _in_blocks(page: Path) -> list[str]:
    """Return the `qrmem` commands of a page's blocks, in order."""
    found = []
    for kind, block in FENCED.findall(page.read_text(encoding="utf-8")):
        is_console = kind in ("console", "") and "$ qrmem" in block
        for line in block.replace("\\\n", " ").splitlines():
            line = line.strip()
            if is_console and not line.startswith("$ "):
                continue
            line = line.removeprefix("$ ")
            found += [part.strip() for part in line.split("&&") if part.strip()[:6] == "qrmem "]
    return found


def _in_text(page: Path) -> list[str]:
    """Return the `qrmem` commands that a page's sentences name."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    return [line.replace("\\|", "|").replace("\n", " ") for line in INLINE.findall(text)]


def _words(line: str) -> list[str]:
    for placeholder, value in STAND_INS.items():
        line = line.replace(placeholder, value)
    line = re.split(r"\s[|&<>]|\[exit", line)[0]
    return shlex.split(line, comments=True)[1:]


def _alternatives(words: list[str]) -> list[list[str]]:
    """Return a command for each side of `add|ask`."""
    for n, word in enumerate(words):
        if re.fullmatch(r"[a-z]+(\|[a-z]+)+", word):
            return [[*words[:n], one, *words[n + 1 :]] for one in word.split("|")]
    return [words]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_command_that_a_page_names_is_one(page: Path) -> None:
    parser = build_parser()
    for line in _in_blocks(page) + _in_text(page):
        for words in _alternatives(_words(line)):
            try:
                parser.parse_args(words)
            except UsageError as exc:
                # A sentence may speak of a command without all that it needs.
                assert str(exc).startswith("missing: "), (line, exc)  # noqa: PT017


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_command_of_a_page_runs(page: Path, tmp_path: Path, read_sample: Shell) -> None:
    with in_thread(OpenAIServer()) as server:
        shell = _prepared(tmp_path, read_sample, server.url)
        for line in _in_blocks(page):
            if any(re.search(pattern, line) for pattern in ELSEWHERE):
                continue
            for words in _alternatives(_words(line)):
                if words[0] == "add":  # and reads all of it, whatever the page has added before
                    (tmp_path / "test.db").unlink(missing_ok=True)
                ran = shell(*words)
                assert ran.code == 0 or "stopped: the cap" in ran.err, f"{line}\n{ran.out}{ran.err}"


def _prepared(folder: Path, read_sample: Shell, url: str) -> Shell:
    """Return a shell in a folder that has what pages speak of: texts, a memory, a chat."""
    shell = Shell(folder)
    shell.environment |= {"OPENAI_BASE_URL": url, "QRMEM_MODEL": "gpt-5-mini"}
    book = (SAMPLE / "harbour.md").read_bytes()
    for name in ("book.txt", "moby.txt", "novel.txt", "harbour.md", "qrmem/sample/harbour.md"):
        shell.write(name, book)
    shell.write("qrmem.toml", "window = 4000\n")
    shell.write("src/wait.py", "def wait_random_exponential():\n    return 1\n")
    shell.write("trip.jsonl", '{"role": "user", "content": "The flight leaves on 3 May."}\n')
    shell.write(
        "printed/judge.md",
        "---\nname: judge\nform: text\n---\nRead.\n$passages\n$question\nUse this form:\n"
        "Reasoning: one to three sentences\nAction: -1 or -2\nAnswer: the final answer\n",
    )
    shutil.copy(read_sample.folder / "test.db", folder / "test.db")
    return shell
