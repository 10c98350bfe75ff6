"""Building through a storm: every segment ends `ok`, the graph is that of a calm day."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from servers.faults import Faults
from servers.openai_server import serving

import qrmem
from qrmem.llm import retry
from qrmem.types import AddReport, Document, Event

STORM: Mapping[str, float] = {"429": 0.2, "500": 0.1, "hang": 0.05, "malformed": 0.1}
PEOPLE = ("Ilse Brandt", "Jonas Vey", "Mara Holt", "Old Tobias", "Captain Reed", "Nell Ashby")
PLACES = ("Tromsø", "Archangel", "the Gannet Rock", "Port Ellen", "Skua Bay", "Lund")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    # The waits between tries are real; only shorter.
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(retry, "LONGEST_WAIT", 0.05)


def sentence(n: int) -> str:
    who, whom = PEOPLE[n % 6], PEOPLE[(n * 5 + 1) % 6]
    return f"In the year {1800 + n} {who} of {PLACES[n * 7 % 6]} met {whom} about letter {n}. "


def story(segments: int) -> Document:
    """A text that is cut into so many segments, a chapter each."""
    return Document(
        "\n\n".join(
            f"# Part {n}\n\n{sentence(2 * n)}{sentence(2 * n + 1)}" for n in range(segments)
        ),
        "The Letters",
        "letters",
    )


def notes(count: int) -> list[Document]:
    """Short documents, which share calls."""
    return [Document(sentence(n), f"Note {n}", f"{n:02}") for n in range(count)]


async def graph(memory: qrmem.Memory) -> dict[str, Any]:
    entities = [await memory.entity(e.key) for e in await memory.entities(limit=10_000)]
    return {
        "entities": [view.entity for view in entities],
        "relations": [view.relations for view in entities],
        "questions": [view.questions for view in entities],
        "documents": await memory.documents(),
    }


async def build(
    source: Document | Sequence[Document], path: Path, faults: Faults | None, **settings: Any
) -> tuple[AddReport, dict[str, Any], int, Mapping[str, int], list[Event]]:
    events: list[Event] = []
    async with serving(faults=faults, latency=0.001) as server:
        chosen = qrmem.Settings(
            model="test",
            base_url=server.url,
            embedder="none",
            concurrency=16,
            **{"segment_tokens": 60, "timeout": 1.5, **settings},
        )
        async with qrmem.open(str(path), settings=chosen, listener=events.append) as memory:
            report = await memory.add(source)
            found = await graph(memory)
        return report, found, server.stats.requests, dict(server.stats.faults), events


@pytest.mark.parametrize(("mode", "seed"), [("compact", 2), ("paper", 1)])
async def test_a_storm_changes_nothing_but_the_number_of_requests(
    mode: str, seed: int, tmp_path: Path
) -> None:
    # Each segment has calls of its own, as those of 600 tokens have.
    own = {"mode": mode, "shared_tokens": 0}
    _, expected, calm, _, _ = await build(story(60), tmp_path / "calm.db", None, **own)
    report, found, requests, faults, events = await build(
        story(60), tmp_path / "storm.db", Faults(rates=STORM, seed=seed), **own
    )
    assert report.states == {"ok": 60}, report.problems[:3]
    assert found == expected
    assert requests <= 2 * calm
    assert sum(faults.values()) > calm // 4
    assert {"429", "500", "hang"} <= faults.keys()
    assert sum(event.data.get("what") == "retry" for event in events) > calm // 5


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_calls_that_short_documents_share_come_through_a_storm(
    seed: int, tmp_path: Path
) -> None:
    report, expected, calm, _, _ = await build(notes(60), tmp_path / "calm.db", None)
    assert report.states == {"ok": 60}
    report, found, requests, _, _ = await build(
        notes(60), tmp_path / "storm.db", Faults(rates=STORM, seed=seed)
    )
    assert report.states == {"ok": 60}, report.problems[:3]
    assert found == expected
    assert requests <= 3 * calm < 60
