"""A stranger's settings file in the working folder, before and after the user trusts it."""

import json
import os
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest
from e2e.conftest import ROOT, Shell
from servers.openai_server import OpenAIServer, in_thread

from qrmem.errors import UsageError
from qrmem.settings_files import read

TEXT = "Ada Lovelace met Charles Babbage in London in 1833.\n"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with in_thread(OpenAIServer()) as running:
        yield running


@pytest.fixture
def stranger() -> Iterator[OpenAIServer]:
    with in_thread(OpenAIServer()) as running:
        yield running


def hostile(qrmem: Shell, stranger: OpenAIServer, folder: str = "clone") -> Shell:
    """A cloned repository whose settings file names the stranger's servers and paths."""
    address = stranger.url.removeprefix("http://").removesuffix("/v1")
    qrmem.write(
        f"{folder}/qrmem.toml",
        f"""
base_url = "{stranger.url}"
embed_base_url = "{stranger.url}"
embedder = "openai:e"
reranker = "{stranger.url}/rerank"
rerank_model = "dear"
memory = "bolt://{address}"
tagger = "corenlp:http://{address}"
prices = "prices.toml"
prompts = "words"
record = "taken.jsonl"
corenlp_home = "jars"
stanza_models = "models"
max_calls = 50
window = 3000
namespace = "repo"
""",
    )
    cloned = Shell(qrmem.folder / folder)
    del cloned.environment["QRMEM_EMBEDDER"], cloned.environment["QRMEM_MEMORY"]
    cloned.environment["HOME"] = str(qrmem.folder)
    return cloned


def own(qrmem: Shell, server: OpenAIServer, more: str = "") -> None:
    text = f'base_url = "{server.url}"\nmodel = "m"\nembedder = "none"\nmax_calls = 40\n{more}'
    qrmem.write(".config/qrmem/settings.toml", text)


IGNORED = (
    "base_url, embed_base_url, embedder, reranker, rerank_model, memory, tagger, prices, prompts, "
    "record, corenlp_home, stanza_models, max_calls;"
)


def test_a_stranger_s_settings_file_gets_neither_key_nor_text(
    qrmem: Shell, server: OpenAIServer, stranger: OpenAIServer
) -> None:
    own(qrmem, server)
    clone = hostile(qrmem, stranger)
    clone.environment |= {"OPENAI_API_KEY": "sk-1", "NEO4J_PASSWORD": "hunter2"}
    added = clone("add", "-", stdin=TEXT.encode())
    asked = clone("ask", "Whom did Ada meet?", "--json")
    assert (added.code, asked.code) == (0, 0), added.err + asked.err
    for ran in (added, asked):
        assert ran.err.count("is not trusted") == 1
        assert IGNORED in ran.err
        assert "qrmem trust" in ran.err
        assert "max_calls" in ran.err, "50 is more than the user's own 40"
    assert stranger.stats.connections == 0
    assert server.stats.requests > 0
    names = sorted(path.name for path in clone.folder.iterdir())
    assert names == ["qrmem.db", "qrmem.toml"], "nothing was recorded"
    assert clone("list", "--json").json["namespaces"] == ["repo"], "what is harmless counts"


@pytest.mark.parametrize(
    "words",
    [
        ("search", "Ada"),
        ("chat", "say", "user", "Hello."),
        ("chat", "recall", "Ada"),
        ("plan", "ask", "Who?"),
        ("eval", "plan", "hotpotqa", "--data", "none"),
        ("mcp", "--write"),
        ("serve", "--write", "--port", "PORT"),
        ("view", "--no-browser", "--port", "PORT"),
        ("status",),
    ],
    ids=" ".join,
)
def test_no_command_obeys_it_and_each_says_so_once(
    words: tuple[str, ...], qrmem: Shell, server: OpenAIServer, stranger: OpenAIServer
) -> None:
    own(qrmem, server)
    clone = hostile(qrmem, stranger)
    assert clone("add", "-", "-q", stdin=TEXT.encode()).err == ""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])  # so that a server ends at once
        ran = clone.apart(*(word.replace("PORT", port) for word in words), OPENAI_API_KEY="sk-1")
    assert ran.err.count("is not trusted") == 1, ran.err
    assert stranger.stats.connections == 0


@pytest.mark.parametrize(
    "opening",
    [
        "async def main():\n    async with qrmem.open() as m: await m.ask('Whom did Ada meet?')\n"
        "import asyncio; asyncio.run(main())",
        "with qrmem.sync.open() as m: m.ask('Whom did Ada meet?')",
    ],
    ids=["open", "sync"],
)
def test_python_obeys_no_untrusted_file_either(
    opening: str, qrmem: Shell, server: OpenAIServer, stranger: OpenAIServer
) -> None:
    own(qrmem, server)
    clone = hostile(qrmem, stranger)
    clone("add", "-", "-q", stdin=TEXT.encode())
    before = server.stats.requests
    ran = subprocess.run(
        [sys.executable, "-c", f"import qrmem, qrmem.sync\n{opening}"],
        cwd=clone.folder,
        env=clone.environment | {"OPENAI_API_KEY": "sk-1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stderr.count("is not trusted") == 1
    assert stranger.stats.connections == 0
    assert server.stats.requests > before


def test_a_model_is_chosen_by_it_only_on_a_server_that_the_user_chose(
    qrmem: Shell, server: OpenAIServer
) -> None:
    clone = Shell(qrmem.folder / "clone")
    clone.environment["HOME"] = str(qrmem.folder)
    for model in ("gpt-9", "anthropic/claude"):
        clone.write("qrmem.toml", f'model = "{model}"')
        ran = clone("add", "-", "--rebuild", stdin=TEXT.encode(), OPENAI_API_KEY="sk-1")
        assert "so it does not set model;" in ran.err, "the text would leave this machine"
        assert ran.code == 0
        assert not clone("usage", "--json").json
    own(qrmem, server)
    clone.write("qrmem.toml", 'model = "other/name"')
    assert clone("add", "-", "--rebuild", "-q", stdin=TEXT.encode()).err == ""
    assert {body["model"] for body in server.stats.bodies} == {"other/name"}


def test_caps_are_lowered_by_it_and_not_raised(qrmem: Shell, server: OpenAIServer) -> None:
    own(qrmem, server)
    clone = Shell(qrmem.folder / "clone")
    clone.environment["HOME"] = str(qrmem.folder)
    for cap in ("41", "inf", '"none"'):
        clone.write("qrmem.toml", f"max_calls = {cap}")
        assert "does not set max_calls" in clone("status").err
    assert clone("add", "-", "-q", stdin=TEXT.encode()).code == 0
    clone.write("qrmem.toml", "max_calls = 0")
    ran = clone("add", "-", "--rebuild", stdin=TEXT.encode())
    assert (ran.code, "max_calls" in ran.err or "0 calls" in ran.err) == (1, True), ran.err


@pytest.mark.parametrize(
    ("memory", "is_set"),
    [
        ("below/a.db", True),
        ("sqlite://a.db?mode=ro", True),
        ("../a.db", False),
        ("/tmp/a.db", False),
        ("~/a.db", False),
        ("out/a.db", False),
        ("memory://", False),
        ("neo4j://localhost", False),
    ],
)
def test_a_memory_is_named_by_it_only_below_its_folder(
    memory: str, is_set: bool, qrmem: Shell
) -> None:
    clone = Shell(qrmem.folder / "clone")
    del clone.environment["QRMEM_MEMORY"]
    clone.environment["HOME"] = str(qrmem.folder)
    clone.write("qrmem.toml", f'memory = "{memory}"')
    (clone.folder / "out").symlink_to(qrmem.folder)
    said = clone("status").err
    assert ("does not set memory" in said) is not is_set, said


def test_a_trusted_file_counts_until_it_changes(
    qrmem: Shell, server: OpenAIServer, stranger: OpenAIServer
) -> None:
    own(qrmem, server)
    clone = Shell(qrmem.folder / "clone")
    clone.environment["HOME"] = str(qrmem.folder)
    file = clone.write("qrmem.toml", f'base_url = "{stranger.url}"\napi_key = "sk-2"\n')
    trusted = clone("trust")
    assert trusted.code == 0
    assert f"base_url = {stranger.url}, api_key = ***" in trusted.out
    assert clone("add", "-", "-q", stdin=TEXT.encode()).err == ""
    assert (stranger.stats.requests > 0, server.stats.requests) == (True, 0)
    assert clone("trust", "--list", "--json").json == [str(file)]

    file.write_text(file.read_text() + "# changed\n")
    said = clone("add", "-", "--rebuild", stdin=TEXT.encode()).err
    assert "changed since you trusted it, so it does not set base_url, api_key" in said
    assert server.stats.requests > 0

    assert qrmem("trust", "clone", "-q", HOME=str(qrmem.folder)).code == 0
    assert clone("status").err == ""
    copy = Shell(qrmem.folder / "copy")
    copy.environment["HOME"] = str(qrmem.folder)
    copy.write("qrmem.toml", file.read_bytes())
    assert "is not trusted" in copy("status").err, "the same words in another folder"

    assert clone("trust", "--remove").code == 0
    assert "is not trusted" in clone("status").err
    assert clone("trust", "--list").out == "none\n"
    again = clone("trust", "--remove")
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert qrmem("trust", HOME=str(qrmem.folder)).code == 2, "there is no file to trust"


def test_trust_is_kept_where_only_the_user_reads(qrmem: Shell) -> None:
    qrmem.write("qrmem.toml", "window = 900\n")
    assert qrmem("trust").code == 0
    folder = qrmem.folder / ".config" / "qrmem" / "trusted"
    (entry,) = folder.iterdir()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    elsewhere = str(qrmem.folder / "elsewhere")
    assert qrmem("trust", "--list", XDG_CONFIG_HOME=elsewhere).out == "none\n"
    assert qrmem("trust", XDG_CONFIG_HOME=elsewhere).code == 0
    assert (Path(elsewhere) / "qrmem" / "trusted").is_dir()
    nowhere = qrmem("trust", HOME="", USERPROFILE="", XDG_CONFIG_HOME="relative")
    assert (nowhere.code, "set HOME" in nowhere.err) == (2, True)


def test_the_file_of_init_is_trusted_until_it_is_edited(qrmem: Shell) -> None:
    said = qrmem("init")
    assert "qrmem trust" in said.out
    path = qrmem.folder / "qrmem.toml"
    assert qrmem("trust", "--list", "--json").json == [str(path)]
    path.write_text('base_url = "http://localhost:1/v1"\n')
    assert "changed since you trusted it" in qrmem("status").err
    assert qrmem("init", "own.toml").code == 0
    assert qrmem("trust", "--list", "--json").json == [str(path)], "only what is read there"


def test_doctor_names_the_files_where_settings_come_from_and_the_servers(
    qrmem: Shell, server: OpenAIServer, stranger: OpenAIServer
) -> None:
    own(qrmem, server, "retries = 0\n")
    clone = hostile(qrmem, stranger)
    found = clone("doctor", "--json", "--embedder", "none", QRMEM_TIMEOUT="7").json
    files = [one["text"] for one in found if one["what"] == "settings file"]
    mine, theirs = qrmem.folder / ".config/qrmem/settings.toml", clone.folder / "qrmem.toml"
    assert files[0] == str(mine)
    assert files[1].startswith(f"{theirs} is not trusted, so it does not set {IGNORED}")
    told = {one["text"] for one in found if one["what"] == "setting"}
    assert {
        f"model = m, from {mine}",
        f"window = 3000, from {theirs}",
        "timeout = 7.0, from QRMEM_TIMEOUT",
        "embedder = none, from an option",
    } <= told
    (servers,) = [one["text"] for one in found if one["what"] == "servers"]
    assert servers == f"chat {server.url} (from {mine})"
    assert stranger.stats.connections == 0
    said = clone("doctor")
    assert "is not trusted" not in said.err
    assert said.out.count("is not trusted") == 1


def test_doctor_says_that_no_text_leaves_this_machine(qrmem: Shell) -> None:
    out = qrmem("doctor").out
    assert "none: no text leaves this machine" in out
    openai = qrmem("doctor", QRMEM_EMBEDDER="openai:e", OPENAI_API_KEY="").out
    assert "embeddings https://api.openai.com/v1 (from default)" in openai
    other = qrmem("doctor", QRMEM_MODEL="anthropic/c", QRMEM_RETRIES="0").out
    assert "chat anthropic/c by LiteLLM" in other


def test_a_settings_file_that_cannot_be_read_is_one_line(qrmem: Shell) -> None:
    path = qrmem.folder / "qrmem.toml"
    hostile_files = {
        "not TOML": b"\x00\xff" * 40,
        "not TOML: ": b"a = " + b"[" * 40_000,
        "more than 65,536 bytes": b"#" * 1_000_000,
        "not TOML:": b"window = " + b"9" * 6_000,
        "window must be a whole number": b'window = "many"',
        "no setting is called 'colour'": b"colour = 1",
    }
    for reason, content in hostile_files.items():
        path.write_bytes(content)
        ran = qrmem("status")
        assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
        assert f"settings file {path}: " in ran.err
        assert reason in ran.err
        assert qrmem("trust").code == 2, "nothing that cannot be read is trusted"
    path.unlink()
    os.mkfifo(path)
    assert "a folder, a pipe or a device" in qrmem("status").err


def test_a_value_cannot_write_a_line_of_ours(qrmem: Shell) -> None:
    qrmem.write("qrmem.toml", 'namespace = "a\\nok  servers  none\\u001b[2J"\n')
    for command in ("doctor", "trust"):
        out = qrmem(command).out
        assert "namespace = a ok servers none" in out
        assert "\nok  servers  none" not in out
        assert "\x1b" not in out


def test_init_replaces_a_link_and_not_the_file_that_it_leads_to(qrmem: Shell) -> None:
    target = qrmem.write("precious.txt", "mine")
    (qrmem.folder / "qrmem.toml").symlink_to(target)
    assert qrmem("init").code == 2
    assert qrmem("init", "--force").code == 0
    assert target.read_text() == "mine"
    assert not (qrmem.folder / "qrmem.toml").is_symlink()


def test_a_link_is_read_like_a_file_and_trusted_for_its_content(qrmem: Shell) -> None:
    target = qrmem.write("mine/other.toml", 'base_url = "http://localhost:1/v1"\nwindow = 900\n')
    clone = Shell(qrmem.folder / "clone")
    clone.folder.mkdir()
    clone.environment["HOME"] = str(qrmem.folder)
    (clone.folder / "qrmem.toml").symlink_to(target)
    assert "does not set base_url;" in clone("status").err
    assert clone("trust").code == 0
    assert clone("status").err.count("\n") == 1
    target.write_text('base_url = "http://localhost:2/v1"\n')
    assert "changed since you trusted it" in clone("status").err
    (clone.folder / "qrmem.toml").unlink()
    (clone.folder / "qrmem.toml").symlink_to("/dev/zero")
    assert "a folder, a pipe or a device" in clone("status").err


def test_a_relative_home_is_nobody_s_configuration(qrmem: Shell) -> None:
    qrmem.write("~/.config/qrmem/settings.toml", 'base_url = "http://localhost:1/v1"\n')
    qrmem.write("qrmem/settings.toml", 'base_url = "http://localhost:1/v1"\n')
    qrmem.environment |= {"HOME": "", "USERPROFILE": "", "XDG_CONFIG_HOME": "."}
    found = json.loads(qrmem.apart("doctor", "--json").out)
    assert found[0]["text"] == "you have none"


def test_a_stranger_s_memory_does_not_choose_the_embedder(
    qrmem: Shell, server: OpenAIServer
) -> None:
    words = ("--base-url", server.url, "--embedder", "openai:e")
    assert qrmem("add", "-", "-q", *words, stdin=TEXT.encode()).code == 0
    qrmem.environment |= {"QRMEM_EMBEDDER": "", "OPENAI_BASE_URL": server.url}
    before = server.stats.requests
    for command in ("search Ada", "ask Who?", "add -"):
        ran = qrmem(*command.split(), "-q", stdin=b"More.")
        assert (ran.code, ran.err.count("\n")) == (3, 1), ran.err
        assert "--embedder openai:e, or QRMEM_EMBEDDER" in ran.err
    for command in ("status", "list", "show", "export a.qrmem", "plan ask Who? --model m"):
        assert qrmem(*command.split()).code == 0
    assert server.stats.requests == before
    assert qrmem("search", "Ada", "--embedder", "openai:e").code == 0
    assert qrmem("search", "Ada", QRMEM_EMBEDDER="openai:e").code == 0
    assert server.stats.requests > before
    assert qrmem("reembed", "--embedder", "none").code == 0
    assert qrmem("search", "Ada").code == 0


@pytest.mark.parametrize(
    "named", ["sentence-transformers:evil/model", "contriever:/tmp/evil", "dot:contriever"]
)
def test_a_memory_cannot_choose_a_model_from_a_path_or_a_hub(named: str, qrmem: Shell) -> None:
    assert qrmem("add", "-", "-q", stdin=TEXT.encode()).code == 0
    with closing(sqlite3.connect(qrmem.folder / "test.db")) as db, db:
        assert db.execute("UPDATE namespace SET embedder = ?", (named,)).rowcount == 1
    ran = qrmem("search", "Ada", QRMEM_EMBEDDER="")
    assert (ran.code, ran.err.count("\n")) == (3, 1)
    assert f"--embedder {named}" in ran.err


def test_a_folder_cannot_write_a_line_of_ours_by_its_name(qrmem: Shell) -> None:
    clone = Shell(qrmem.folder / "a\nnone")
    clone.environment["HOME"] = str(qrmem.folder)
    clone.write("qrmem.toml", "prices = 'mine.toml'\n")
    for words in (["status"], ["trust"], ["trust", "--list"], ["trust", "--remove"]):
        ran = clone(*words)
        shown = (ran.out + ran.err).splitlines()
        assert any("a none/qrmem.toml" in line for line in shown), shown
        assert not any(line.startswith("none/") for line in shown), shown


def test_a_pipe_that_replaces_a_file_during_the_check_is_not_waited_for(
    tmp_path: Path,
) -> None:
    path = tmp_path / "qrmem.toml"
    os.mkfifo(path)
    was = patch.object(Path, "is_file", return_value=True)  # when it was looked at
    with was, pytest.raises(UsageError, match="a folder, a pipe or a device"):
        read(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(UsageError, match="settings file"):
        read(path)


def test_a_working_folder_that_is_gone_is_one_line(qrmem: Shell) -> None:
    inner = qrmem.folder / "gone"
    inner.mkdir()
    for words in ("status", "trust", "add -"):
        ran = subprocess.run(
            ["sh", "-c", f"rmdir {inner}; {sys.executable} -m qrmem {words}; mkdir {inner}"],
            cwd=inner,
            env=qrmem.environment | {"PYTHONPATH": str(ROOT)},
            input="Ann met Bob.",
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ran.stderr == "qrmem: the working folder no longer exists; change to another\n"
