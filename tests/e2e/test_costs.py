"""Costs of a run on the command line: planned before, capped during, listed after, replayed."""

import re
import stat
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
from e2e.conftest import ROOT, SAMPLE, Shell
from servers.faults import Faults
from servers.openai_server import Behaviour, OpenAIServer, in_thread

from qrmem.config import Settings

QUESTION = "Who set Pip's broken arm?"
KEYS = ("sk-chat-secret-1", "sk-embed-secret-2")


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with in_thread(OpenAIServer()) as running:
        yield running


def using(server: OpenAIServer, model: str = "gpt-4o-mini") -> list[str]:
    return ["--model", model, "--base-url", server.url]


def book(shell: Shell, chapters: int = 3) -> None:
    text = (SAMPLE / "harbour.md").read_text()
    shell.write("book.md", "## ".join(text.split("## ")[: chapters + 1]))


def test_a_plan_makes_no_call_and_leaves_nothing_behind(qrmem: Shell, server: OpenAIServer) -> None:
    book(qrmem)
    ran = qrmem("plan", "add", "book.md", *using(server))
    assert ran.code == 0, ran.err
    for word in ("summary", "extract", "gpt-4o-mini", "USD", "segments", "calls at once"):
        assert word in ran.out
    assert server.stats.requests == 0
    assert sorted(path.name for path in qrmem.folder.iterdir()) == ["book.md"]
    assert "is not known" in qrmem("plan", "add", "book.md", "--model", "my-own").out
    rules = qrmem("plan", "add", "book.md").out
    assert "no model is set" in rules
    assert "\nworkers:   more would not help: " in rules
    assert qrmem("plan", "ask", QUESTION, "--model", "m").code == 2, "there is no memory to ask"
    assert qrmem("plan", "add", "gone.md", "--model", "m").code == 2


def test_the_plan_as_a_document_is_what_the_run_then_used(
    qrmem: Shell, server: OpenAIServer
) -> None:
    book(qrmem)
    plan = qrmem("plan", "add", "book.md", "--json", *using(server)).json
    assert qrmem("add", "book.md", *using(server)).code == 0
    used = server.stats.tokens_in + server.stats.tokens_out
    stages = plan["stages"]
    low, high = (
        sum(stage[part][end] for stage in stages for part in ("tokens_in", "tokens_out"))
        for end in ("low", "high")
    )
    assert low <= used <= high
    asked = qrmem("plan", "ask", QUESTION, "--strategy", "entity-trial", *using(server))
    assert asked.code == 0, asked.err
    assert "judge" in asked.out
    assert server.stats.tokens_in + server.stats.tokens_out == used


def test_a_capped_add_says_how_to_continue_and_continues(
    qrmem: Shell, server: OpenAIServer
) -> None:
    book(qrmem)
    qrmem.environment |= {"QRMEM_SHARED_TOKENS": "0"}  # a call for each segment
    ran = qrmem("add", "book.md", "--max-calls", "3", *using(server))
    assert ran.code == 1
    assert "cap of 3 calls" in ran.err
    assert "run the same command again" in ran.err
    assert server.stats.requests == 3
    again = qrmem("add", "book.md", "--max-calls", "3", "--json", *using(server))
    assert again.code == 1
    assert "cap of 3 calls" in again.json["stopped"]
    assert server.stats.requests == 6
    assert qrmem("add", "book.md", *using(server)).code == 0
    assert qrmem("status").code == 0


def test_a_cap_holds_for_reading_and_trees_together(qrmem: Shell, server: OpenAIServer) -> None:
    book(qrmem)
    assert qrmem("add", "book.md", *using(server)).code == 0
    read = server.stats.requests
    cap = str(read + 3)
    ran = qrmem("add", "book.md", "-m", "b.db", "--tree", "--max-calls", cap, *using(server))
    assert ran.code == 1
    assert server.stats.requests == 2 * read + 3
    assert "the cap of 3 calls is reached, of which reading had used a part" in ran.err
    assert "run the same command again" in ran.err
    assert "cost: 3 calls" in ran.err
    assert qrmem("add", "book.md", "-m", "b.db", "--tree", *using(server)).code == 0


def test_a_capped_rebuild_says_how_to_continue_without_paying_again(
    qrmem: Shell, server: OpenAIServer
) -> None:
    book(qrmem)
    assert qrmem("add", "book.md", *using(server)).code == 0
    whole = server.stats.requests
    ran = qrmem("add", "book.md", "--rebuild", "--max-calls", "1", *using(server))
    assert ran.code == 1
    assert "run the same command again without --rebuild" in ran.err
    assert qrmem("add", "book.md", *using(server)).code == 0
    assert server.stats.requests == 2 * whole


@pytest.mark.parametrize(
    "cap", [["--max-tokens", "10"], ["--max-cost", "0"], ["--max-seconds", "0"]]
)
def test_every_cap_stops_an_add_and_a_question(
    qrmem: Shell, server: OpenAIServer, cap: list[str]
) -> None:
    book(qrmem, 1)
    assert qrmem("add", "book.md", *cap, *using(server)).code == 1
    assert server.stats.requests == 0
    assert qrmem("add", "book.md", *using(server)).code == 0
    before = server.stats.requests
    ran = qrmem("ask", "Who keeps the light?", *cap, *using(server))
    assert (ran.code, ran.out) == (1, "")
    assert "run the same command again" in ran.err
    assert server.stats.requests == before


def test_money_of_an_unknown_price_cannot_be_capped_until_it_is_named(
    qrmem: Shell, server: OpenAIServer
) -> None:
    book(qrmem, 1)
    words = ["add", "book.md", "--max-cost", "1", *using(server, "my-own")]
    ran = qrmem(*words)
    assert ran.code == 2
    assert "--max-cost needs the price of my-own: add it to a price file" in ran.err
    qrmem.write("prices.toml", '[models."my-own"]\ninput = 1\noutput = 1\n')
    assert qrmem(*words, "--prices", "prices.toml").code == 0


def test_usage_tells_stage_run_and_day_and_adds_up_to_what_was_sent(
    qrmem: Shell, server: OpenAIServer
) -> None:
    book(qrmem)
    assert qrmem("add", "book.md", *using(server)).code == 0
    assert qrmem("ask", "Who keeps the light?", *using(server)).code == 0
    for by in ("stage", "run", "day"):
        rows = qrmem("usage", "--by", by, "--json").json
        assert sum(row["tokens_in"] for row in rows) == server.stats.tokens_in
        assert sum(row["requests"] for row in rows) == server.stats.requests
        assert {row["phase"] for row in rows} == {"construction", "online"}
        assert all(row["cost"] for row in rows)
    assert len({row["key"] for row in qrmem("usage", "--by", "run", "--json").json}) == 2
    text = qrmem("usage").out
    for word in ("building:", "answering:", "extract", "judge", "gpt-4o-mini"):
        assert word in text
    status = qrmem("status").out
    assert "building:" in status
    assert "answering:" in status


def test_replies_are_kept_unless_that_is_not_wanted_and_can_be_forgotten(
    qrmem: Shell, server: OpenAIServer
) -> None:
    book(qrmem, 1)
    assert qrmem("add", "book.md", "--no-cache", *using(server)).code == 0
    assert "0 cached replies" in qrmem("prune").out
    built = server.stats.requests
    ask = ["ask", "Who keeps the light?", *using(server)]
    assert qrmem(*ask).code == 0
    once = server.stats.requests
    assert once > built
    assert qrmem(*ask).code == 0
    assert server.stats.requests == once, "a reply that is kept is not paid for again"
    assert qrmem(*ask, "--no-cache").code == 0
    twice = server.stats.requests
    assert twice > once
    assert qrmem("prune", "--json").json["forgotten"] > 0
    assert qrmem(*ask).code == 0
    assert server.stats.requests > twice


def test_a_recorded_run_is_replayed_with_the_server_gone(qrmem: Shell) -> None:
    book(qrmem)
    with in_thread(OpenAIServer()) as server:
        assert qrmem("add", "book.md", "--record", "tape.jsonl", *using(server)).code == 0
        words = ["ask", "Who keeps the light?", "--record", "tape.jsonl", *using(server)]
        first = qrmem(*words, "--json")
        assert first.code == 0, first.err
    replay = ["--replay", "tape.jsonl", "--memory", "two.db"]
    ran = qrmem("add", "book.md", *replay)
    assert ran.code == 0, ran.err
    again = qrmem("ask", "Who keeps the light?", "--json", *replay)
    assert again.json["text"] == first.json["text"]
    assert again.json["citations"] == first.json["citations"]
    unknown = qrmem("ask", "What did the baker of Skarrow sell?", *replay)
    assert unknown.code == 2
    assert "where now" in unknown.err
    both = qrmem("add", "book.md", "--record", "a", "--replay", "b")
    assert both.code == 2


@pytest.mark.parametrize("word", ["none", "inf"])
def test_a_cap_of_the_environment_is_lifted_by_an_option(
    qrmem: Shell, server: OpenAIServer, word: str
) -> None:
    book(qrmem, 1)
    words = ("add", "book.md", "--max-cost", word, "--max-calls", word, *using(server, "my-own"))
    ran = qrmem(*words, QRMEM_MAX_COST="0", QRMEM_MAX_CALLS="1")
    assert ran.code == 0, ran.err


def test_an_option_is_not_written_into_the_words_of_a_server(qrmem: Shell) -> None:
    book(qrmem, 1)
    with in_thread(OpenAIServer(behaviour=Behaviour(models=["other"]))) as server:
        ran = qrmem("add", "book.md", "--max-tokens", "90000", *using(server, "max_tokens"))
    assert "'max_tokens'" in ran.err, "what the server says, with the name that it knows"


def test_the_settings_file_names_every_setting_and_changes_nothing(qrmem: Shell) -> None:
    assert qrmem("init").code == 0
    path = qrmem.folder / "qrmem.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert Settings.from_env({}, file=path) == Settings()
    shown = {line.removeprefix("# ").partition(" = ")[0] for line in text.splitlines()}
    assert {field.name for field in fields(Settings)} - shown == {"stage_models"}
    uncommented = "\n".join(
        line.removeprefix("# ")
        for line in text.splitlines()
        if " = " in line or line == "# [stage_models]"
    )
    path.write_text(uncommented)
    filled = Settings.from_env({}, file=path)
    assert filled.max_calls == 200
    assert "reading=gpt-5-nano" in filled.stage_models
    path.write_text("mine")
    assert qrmem("init").code == 2
    assert path.read_text() == "mine"
    assert qrmem("init", "--force").code == 0
    assert path.read_text() == text


def test_the_probe_tells_what_a_good_and_a_faulty_server_can_do(qrmem: Shell) -> None:
    with in_thread(OpenAIServer()) as good:
        ran = qrmem.apart("doctor", "--model", "m", "--base-url", good.url)
        assert ran.code == 0, ran.out
        assert "100 % of those in a known passage" in ran.out
        assert "json_schema" in ran.out
        named = qrmem.apart("doctor", "--model", QRMEM_MODEL="m", OPENAI_BASE_URL=good.url)
        assert "100 % of those in a known passage" in named.out
        asked = good.stats.requests
        assert qrmem.apart("doctor", QRMEM_MODEL="m", OPENAI_BASE_URL=good.url).code == 0
        assert good.stats.requests == asked + 1, "without --model there is no probe"
    behaviour = Behaviour(forms=["text"], gives_usage=False)
    with in_thread(OpenAIServer(behaviour=behaviour)) as plain:
        ran = qrmem.apart("doctor", "--model", "m", "--base-url", plain.url)
        assert (ran.code, "text, the strictest" in ran.out) == (0, True)
        assert "the server reports none" in ran.out
    with in_thread(OpenAIServer(faults=Faults(always="nonsense"))) as broken:
        ran = qrmem.apart("doctor", "--model", "m", "--base-url", broken.url)
        assert ran.code == 3
        assert "trouble" in ran.out
    assert qrmem.apart("doctor", "--model").code == 2


def test_keys_are_in_nothing_that_is_printed_or_left_behind(qrmem: Shell) -> None:
    """With everything that writes: ledger, cache, trail, cassette, archive, errors, tracebacks."""
    chat, embed = KEYS
    book(qrmem, 1)
    keys = {"OPENAI_API_KEY": chat, "QRMEM_EMBED_API_KEY": embed}
    said = ""
    with (
        in_thread(OpenAIServer(behaviour=Behaviour(key=chat))) as server,
        in_thread(OpenAIServer(behaviour=Behaviour(key=embed))) as vectors,
    ):
        model = ["--debug"]
        env: dict[str, Any] = {
            **keys,
            "QRMEM_MODEL": "gpt-4o-mini",
            "OPENAI_BASE_URL": server.url,
            "QRMEM_EMBED_BASE_URL": vectors.url,
            "QRMEM_EMBEDDER": "openai:e",
        }
        for command in (
            ["add", "book.md", "--record", "tape.jsonl"],
            ["ask", "Who keeps the light?", "--record", "tape.jsonl", "--stream"],
            ["plan", "ask", "Who keeps the light?"],
            ["doctor"],
            ["usage", "--by", "run"],
            ["export", "--all", "memory.archive"],
        ):
            ran = qrmem.apart(*command, *model, **env)
            assert ran.code == 0, (command, ran.err)
            said += ran.out + ran.err
        wrong: dict[str, Any] = {
            **env,
            "OPENAI_API_KEY": chat + "-no",
            "QRMEM_EMBED_API_KEY": embed + "-no",
        }
        refused = qrmem.apart("add", "book.md", "--rebuild", *model, **wrong)
        assert refused.code != 0
        said += refused.out + refused.err
    for key in KEYS:
        assert key not in said
        for path in qrmem.folder.rglob("*"):
            assert not path.is_file() or key.encode() not in path.read_bytes(), path


def test_a_plan_names_a_file_that_cannot_be_read_once(qrmem: Shell) -> None:
    qrmem.write("docs/a.txt", "Ada met Bob in Oslo.")
    qrmem.write("docs/empty.txt", b"")
    ran = qrmem("plan", "add", "docs")
    assert ran.code == 1
    assert "problem:   docs/empty.txt is empty" in ran.out.splitlines()


@pytest.mark.parametrize("page", ["costs.md", "runs.md"])
def test_a_plan_of_the_docs_has_the_lines_that_a_plan_prints(qrmem: Shell, page: str) -> None:
    shown = qrmem("plan", "add", str(SAMPLE / "harbour.md"), "--model", "gpt-5-mini").out
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    block = re.search(r"^to read: .*?(?=\n\n|\n```)", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    labels = [[line.split()[0] for line in told.splitlines()] for told in (block[0], shown)]
    assert labels[0] == labels[1]
    assert "workers:" in labels[0]
