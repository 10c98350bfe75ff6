"""`qrmem eval plan` against the counts of servers: one that answers well, and others.

Each system runs alone, so that the server counts its calls and no other's. What is planned comes
from the shortest and the longest course of a run: no server whose replies can be read leaves it.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from preset_data import write_long
from servers.courses import SERVERS
from servers.openai_server import OpenAIServer, in_thread

from qrmem.cli import main
from qrmem.config import Settings
from qrmem.eval import RunOptions, needs, parse, preset_named, preset_names
from qrmem.eval.planning import Forecast, forecasts
from qrmem.eval.preset import PresetOptions, runs_of
from qrmem.eval.running import PreparedRun, RunSpec, prepared, run_made

ALONE = RunOptions(concurrency=4)
SWEEP = 4
"""Systems of a table that has many, which differ in a number."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_long(tmp_path_factory.mktemp("long") / "data")


def parts(name: str, data: Path, size: int = 2) -> Iterator[PreparedRun]:
    """Yield a part of each kind of task: others differ in their texts alone."""
    preset = preset_named(name)
    labels = [
        label for label, word in preset.systems.items() if "llmlingua" not in needs(parse(word))
    ]
    step = len(labels) // SWEEP if len(labels) > 3 * SWEEP else 1
    settings = Settings().with_(
        model="gpt-5-nano", embedder="none", base_url="http://127.0.0.1:1/v1"
    )
    chosen = PresetOptions(data=data, size=size, systems=tuple(labels[::step]))
    kinds = set()
    for part, made in runs_of(preset, chosen, settings, []):
        kind = part.task.partition("-")[0]
        if kind not in kinds:
            kinds.add(kind)
            yield made


def alone(made: PreparedRun, system: str, server: OpenAIServer) -> PreparedRun:
    return replace(
        made,
        systems={system: made.systems[system]},
        spec=replace(made.spec, systems=(system,)),
        settings=made.settings.with_(base_url=server.url),
    )


def assert_within(planned: Forecast, server: OpenAIServer) -> None:
    stats, least, most = server.stats, planned.least, planned.most
    assert round(least.calls) <= stats.answered <= round(most.calls)
    assert least.tokens <= stats.tokens_in + stats.tokens_out <= most.tokens


async def check(name: str, data: Path, out: Path) -> None:
    """Run each system of a preset alone on each server, against what was planned for it."""
    for made in parts(name, data):
        for planned in await forecasts(made):
            for kind, answer in SERVERS.items():
                with in_thread(OpenAIServer(answer=answer)) as server:
                    folder = out / f"{made.spec.task} {planned.system} {kind}".replace(":", " ")
                    run = alone(made, planned.system, server)
                    stats = await run_made(run, folder, ALONE)
                assert stats.failed == 0, (planned.system, kind)
                assert_within(planned, server)


async def test_what_table_6_uses_lies_in_its_plan_on_any_server(data: Path, tmp_path: Path) -> None:
    """Of a server that answered nothing right QRMeM used 231 calls where 237-242 were planned."""
    await check("table-6", data, tmp_path)


@pytest.mark.parametrize("name", preset_names())
async def test_what_a_preset_uses_lies_in_its_plan_on_any_server(
    name: str, data: Path, tmp_path: Path
) -> None:
    await check(name, data, tmp_path)


async def test_the_plan_covers_items_that_are_not_rehearsed(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qrmem.eval.planning.REHEARSED", 1)
    made = prepared(
        RunSpec(
            task="quality",
            data=data / "QuALITY.v1.0.1.htmlstripped.dev",
            systems=("memwalker", "read-agent-p", "sliding-window"),
        ),
        Settings().with_(model="gpt-5-nano", embedder="none"),
    )
    assert len(made.items) == 3
    for planned in await forecasts(made):
        with in_thread(OpenAIServer(answer=SERVERS["well"])) as server:
            await run_made(alone(made, planned.system, server), tmp_path / planned.system, ALONE)
        assert_within(planned, server)


def test_a_plan_that_takes_long_says_how_far_it_is(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qrmem.cli.evaluating.EVERY", 0.0)
    words = ["eval", "plan", "ilm-tr-figure-3", "--data", str(data), "--embedder", "none"]
    assert main([*words, "--model", "gpt-5-nano", "--system", "RAPTOR"]) == 0
    told = capsys.readouterr()
    assert "qrmem: 1/2 rehearsed" in told.err
    assert " in money" not in told.err, "nothing is paid"
    assert re.search(r"  raptor +\d+-\d+ calls", told.out)
    assert main([*words, "--model", "gpt-5-nano", "--system", "RAPTOR", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
