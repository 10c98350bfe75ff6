"""Servers that refuse: the command says what is wrong, at once, and never reports success."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from e2e.conftest import SAMPLE, Ran, Shell
from servers.faults import Faults
from servers.openai_server import Behaviour, OpenAIServer, in_thread


@contextmanager
def serving(faults: Faults | None = None, **behaviour: Any) -> Iterator[OpenAIServer]:
    server = OpenAIServer(faults=faults, behaviour=Behaviour(**behaviour))
    with in_thread(server) as running:
        yield running


def add(shell: Shell, server: OpenAIServer, *words: str, key: str = "") -> Ran:
    text = (SAMPLE / "harbour.md").read_text()
    shell.write("book.md", "## ".join(text.split("## ")[:4]))
    given = ["--model", "test", "--base-url", server.url, "--concurrency", "2", *words]
    return shell("add", "book.md", *given, OPENAI_API_KEY=key)


def graph(shell: Shell) -> str:
    shell("export", "graph.xml", "--graphml", "--force")
    return (shell.folder / "graph.xml").read_text()


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The graph that a server with no faults leads to."""
    shell = Shell(tmp_path_factory.mktemp("calm"))
    with serving() as server:
        assert add(shell, server).code == 0
    return graph(shell)


# --- structured requests refused from some call on ------------------------------------------------


@pytest.mark.parametrize(
    ("status", "later"),
    [(400, ["json_object", "text"]), (422, ["text"]), (500, ["text"])],
    ids=["objects are left", "only text is left", "refused as llama.cpp does"],
)
def test_a_provider_that_stops_taking_schemas_is_fallen_back_from(
    qrmem: Shell, calm: str, status: int, later: Sequence[str]
) -> None:
    with serving(later=later, later_since=5, refusal=status) as server:
        ran = add(qrmem, server)
        assert ran.code == 0, ran.out + ran.err
        assert f"the output form json_schema; using {later[0]} from" in ran.err
    assert graph(qrmem) == calm


def test_a_provider_that_refuses_every_form_stops_the_command_which_says_why(qrmem: Shell) -> None:
    with serving(later=(), later_since=5) as server:
        ran = add(qrmem, server)
        assert ran.code == 4, ran.out + ran.err
        assert "is not supported" in ran.err.splitlines()[-1]
        assert server.stats.requests < 20
    status = qrmem("status", "--json")
    assert status.code == 1
    assert status.json["states"].get("ok", 0) < sum(status.json["states"].values())
    with serving() as server:
        assert add(qrmem, server).code == 0
    assert qrmem("status").code == 0


def test_a_provider_that_answers_structured_requests_with_nothing_is_no_success(
    qrmem: Shell,
) -> None:
    with serving(Faults(always="null", since=2)) as server:  # all but the summary
        ran = add(qrmem, server, "--json")
        assert ran.code == 1, ran.out + ran.err
        assert not ran.json["states"].get("ok")
        assert "the reply is empty" in ran.json["problems"][0][2]


def test_a_model_that_talks_prose_stops_the_command_early_which_says_what_it_saw(
    qrmem: Shell,
) -> None:
    with serving(obeys_forms=False) as server:
        ran = add(qrmem, server)
        assert ran.code == 4, ran.out + ran.err
        said = ran.err.splitlines()[-1]
        assert all(word in said for word in ("test", "'Of course! I read it", "doctor --model"))
        assert server.stats.requests <= 22
    with serving() as server:
        assert add(qrmem, server).code == 0


def test_an_error_about_a_model_that_thinks_too_long_says_what_to_do(
    qrmem: Shell,
) -> None:
    with serving(thought=700) as server:
        assert add(qrmem, server).code == 0
    with serving(thought=9000) as server:
        ran = add(qrmem, server, "--rebuild")
        assert ran.code == 1, ran.out + ran.err
        assert "QRMEM_RESERVE and QRMEM_WINDOW allow longer ones" in ran.out.splitlines()[-1]
        assert server.stats.requests <= 14, "what would be cut again is not asked again"


def test_far_fewer_relations_than_is_usual_are_warned_of_with_figures(qrmem: Shell) -> None:
    with serving(Faults(always="nothing-found")) as server:
        ran = add(qrmem, server, "--json")
        assert ran.code == 0, ran.out + ran.err
        assert ran.json["states"].keys() == {"ok"}
    (warning,) = ran.json["warnings"]
    assert re.search(r"'book.md': only 0 relations in \d+ segments \(\d+,000 characters", warning)
    assert warning in ran.err
    assert warning in qrmem("status").out
    with serving() as server:
        assert add(qrmem, server, "--rebuild").code == 0
    assert "relations in" not in qrmem("status").out


# --- one text refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["compact", "paper"])
def test_a_passage_that_a_filter_refuses_is_a_problem_of_that_passage(
    qrmem: Shell, mode: str
) -> None:
    with serving(filtered="Mussel Island lies 7 kilometres") as server:
        ran = add(qrmem, server, "--json", "--mode", mode)
        assert ran.code == 1, ran.out + ran.err
        assert ran.json["states"]["failed"] == 1
        assert ran.json["states"]["ok"] == 5
        ((_, _, reason),) = ran.json["problems"]
        assert reason.startswith("the model refuses: The response was filtered")
        # No other prompt quotes it; a refused one may have cost its tokens.
        assert server.stats.requests - server.stats.answered <= 3
        usage = ran.json["usage"]["construction"].values()
        assert sum(stage["tokens_in"] for stage in usage) > server.stats.tokens_in
        using = ["--model", "test", "--base-url", server.url]
        asked = qrmem("ask", "How far is Mussel Island?", *using)
    assert (asked.code, asked.out) == (1, ""), "nobody knows whether the text answers"
    line = asked.err.splitlines()[-1]
    assert "it is not known whether the text answers" in line
    assert "the model refuses: The response was filtered" in line
    with serving() as server:
        assert add(qrmem, server, "--mode", mode).code == 0


@pytest.mark.parametrize("status", [413, 429])
def test_a_prompt_too_large_for_a_minute_is_shortened_or_the_window_is_named(
    qrmem: Shell, status: int
) -> None:
    with serving(too_large=1800, large_status=status) as server:
        ran = add(qrmem, server)
        assert ran.code == 0, ran.out + ran.err
        assert "the next one is shorter by a fifth" in ran.err
    with serving(too_large=100, large_status=status) as server:
        ran = add(qrmem, server, "--memory", "other.db")
        assert ran.code == 2, ran.out + ran.err
        assert "QRMEM_WINDOW or --window" in ran.err.splitlines()[-1]
        assert server.stats.requests < 10


def test_an_error_about_a_window_too_small_to_read_in_says_what_to_do(qrmem: Shell) -> None:
    with serving() as server:
        ran = add(qrmem, server, "--window", "900")
        assert ran.code == 2, ran.out + ran.err
        assert "widen it (--window, QRMEM_WINDOW)" in ran.err.splitlines()[-1]
        capped = add(qrmem, server, "--window", "2000", "--max-calls", "1", "--rebuild")
        assert "the cap of 1 call is reached" in capped.err.splitlines()[-1]
        assert add(qrmem, server, "--window", "2000").code == 0


# --- refused at once ------------------------------------------------------------------------------


def assert_one_line(ran: Ran, code: int, *said: str) -> None:
    assert ran.code == code, ran.out + ran.err
    assert not ran.out.strip()
    # A slow machine has time to show a progress line before.
    line = "\n".join(said for said in ran.err.splitlines() if " segments, " not in said)
    assert "\n" not in line, line
    assert all(word in line for word in said), line
    assert "Traceback" not in line


def test_a_refused_key_is_one_line_and_one_request(qrmem: Shell) -> None:
    with serving(key="right") as server:
        ran = add(qrmem, server, key="wr0ng")
        assert_one_line(ran, 3, "key", "401")
        assert "wr0ng" not in ran.err
        assert server.stats.refused["401"] == 1


def test_a_question_with_a_refused_key_is_one_line_and_one_request(
    qrmem: Shell, read_sample: Shell
) -> None:
    with serving(key="right") as server:
        words = ["--model", "test", "--base-url", server.url]
        ran = read_sample("ask", "Who keeps the light?", *words, OPENAI_API_KEY="wr0ng")
        assert_one_line(ran, 3, "key", "401")
        assert server.stats.refused["401"] == 1


def test_an_unknown_model_is_one_line_and_one_request(qrmem: Shell) -> None:
    with serving(models=["other"]) as server:
        ran = add(qrmem, server)
        assert_one_line(ran, 3, "'test'", "404")
        assert server.stats.refused["404-model"] == 1


def test_no_route_is_one_line(qrmem: Shell) -> None:
    qrmem.write("a.txt", "Ada Lovelace met Charles Babbage in London.")
    ran = qrmem("add", "a.txt", "--model", "test", "--base-url", "http://127.0.0.1:9/v1")
    assert_one_line(ran, 4, "127.0.0.1:9", "cannot be reached")


def test_a_misspelt_variable_is_reported_in_one_line(qrmem: Shell, read_sample: Shell) -> None:
    told = "qrmem: no setting is called QRMEM_WINDWO; did you mean QRMEM_WINDOW?\n"
    assert read_sample("status", QRMEM_WINDWO="900").err.startswith(told)
    assert told not in read_sample("status", "--quiet", QRMEM_WINDWO="900").err
    assert read_sample("plan", "ask", "Who?", QRMEM_WINDWO="900").err.count(told) == 1
    read_sample.write("b.txt", "Ann met Bob in Rome.")
    assert read_sample("add", "b.txt", QRMEM_WINDWO="900").err.count(told) == 1


# --- embedders that give no vectors ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "code", "says"),
    [("nan", 4, "NaN"), ("zeros", 4, "vector of zeros"), ("401", 3, "key")],
)
def test_an_embedder_that_fails_from_the_start_is_named_and_leaves_no_memory(
    qrmem: Shell, fault: str, code: int, says: str
) -> None:
    qrmem.write("a.txt", "Whales swim. Bees fly.")
    with serving(Faults(always=fault)) as server:
        given = ["--embedder", "openai:e", "--base-url", server.url]
        ran = qrmem("add", "a.txt", *given, OPENAI_API_KEY="k")
    assert ran.code == code
    assert says in ran.err.splitlines()[-1]
    assert qrmem("add", "a.txt", "--embedder", "none").code == 0
