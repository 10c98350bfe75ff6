"""What other processes read is what this one would have read."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from many_notes import DOCUMENTS, NS, kept, read, share_out_few, text

import qrmem
from qrmem import apart
from qrmem.agents.merging import merge_view
from qrmem.apart.ahead import Ahead
from qrmem.apart.work import Given
from qrmem.config import Settings
from qrmem.graph.merging import merge_documents
from qrmem.graphstore import open_store
from qrmem.graphstore.sqlite.store import SqliteStore
from qrmem.processes import Processes
from qrmem.types import Contribution, LedgerRow, Mention


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What processes were asked to do, each batch."""
    names: list[str] = []
    mapped, call = Processes.mapped, Processes.call

    def noted(self: Processes, work: Any, given: Any) -> Any:
        names.extend(work.__name__ for _ in given)
        return mapped(self, work, given)

    def noted_call(self: Processes, work: Any, given: Any) -> Any:
        names.append(work.__name__)
        return call(self, work, given)

    monkeypatch.setattr(Processes, "mapped", noted)
    monkeypatch.setattr(Processes, "call", noted_call)
    return names


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out_few(monkeypatch)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What this process makes alone."""

    async def made(path: Path) -> list[Any]:
        report = await read(path, processes=0)
        assert report.states == {"ok": report.read}
        return await kept(path)

    return asyncio.run(made(tmp_path_factory.mktemp("alone") / "memory.db"))


@pytest.mark.parametrize(
    ("count", "longest", "works"),
    [
        (1, 512, {"read"}),
        (2, 512, {"read"}),
        (3, 512, {"read"}),
        (2, 20, {"read", "extract", "supplement"}),
        (2, 0, {"extract", "supplement"}),
    ],
)
async def test_a_memory_is_the_same_however_many_read_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    alone: list[Any],
    count: int,
    longest: int,
    works: set[str],
    asked: list[str],
) -> None:
    monkeypatch.setattr(apart, "LONGEST", longest)
    report = await read(tmp_path / "apart.db", processes=count)
    assert report.states == {"ok": report.read}
    assert await kept(tmp_path / "apart.db") == alone
    assert works | {"name"} == set(asked)


async def test_what_was_read_is_neither_read_back_nor_made_again_for_the_merge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: list[Any]
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("made again")

    with monkeypatch.context() as patched:
        patched.setattr("qrmem.graph.merging.rows_of", never)
        patched.setattr(SqliteStore, "contributions", never)
        await read(tmp_path / "apart.db", processes=2)
    assert await kept(tmp_path / "apart.db") == alone


async def test_what_somebody_else_reads_meanwhile_is_merged_as_it_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, theirs = tmp_path / "apart.db", Mention("long letter", "PERSON", ("long letter",), 1)

    async def meddled(deps: Any, document_ids: Any, made: Any) -> None:
        (first, *_) = await deps.store.segments_of(NS, "note 0")
        other = Contribution(first.id, "extraction", mentions=(theirs,))
        await deps.store.record(NS, LedgerRow(first.id, "ok", reasoner="other"), other)
        await merge_documents(deps.store, NS, ["note 0"])
        await merge_view(deps, document_ids, made)

    monkeypatch.setattr("qrmem.agents.building.merge_view", meddled)
    await read(path, processes=2)
    store = await open_store(str(path), Settings())
    before = await store.merged_segments(NS, "note 0")
    await merge_documents(store, NS, ["note 0"])
    assert await store.merged_segments(NS, "note 0") == before
    assert "long letter|PERSON" in {name.key for name in await store.names(NS)}
    await store.close()


@pytest.mark.parametrize("longest", [0, 20, 512])
@pytest.mark.parametrize("after", [0, 3, 9])
async def test_what_a_process_is_lost_with_is_read_here(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    alone: list[Any],
    after: int,
    longest: int,
) -> None:
    monkeypatch.setattr(apart, "LONGEST", longest)
    made = apart.Apart.made
    seen = 0

    async def losing(self: Any, *given: Any) -> AsyncGenerator[Any, None]:
        nonlocal seen
        async with aclosing(made(self, *given)) as found:
            async for one in found:
                if seen == after:
                    for process in self._processes._all:
                        process._process.kill()
                seen += 1
                yield one

    monkeypatch.setattr(apart.Apart, "made", losing)
    report = await read(tmp_path / "apart.db", processes=2)
    assert report.states == {"ok": report.read}
    assert seen > after
    assert await kept(tmp_path / "apart.db") == alone


async def test_every_add_has_processes_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running: list[int] = []
    start, close = Processes.start, Processes.close

    async def counted(count: int) -> Processes:
        running.append(count)
        return await start(count)

    async def closed(self: Processes) -> None:
        await close(self)
        running.remove(len(self))

    monkeypatch.setattr(Processes, "start", counted)
    monkeypatch.setattr(Processes, "close", closed)
    made = apart.Apart.made
    lost: list[bool] = []

    async def noted(self: Any, *given: Any) -> AsyncGenerator[Any, None]:
        async with aclosing(made(self, *given)) as found:
            async for one in found:
                yield one
                lost.append(self._is_over)

    monkeypatch.setattr(apart.Apart, "made", noted)
    halves = DOCUMENTS[::2], DOCUMENTS[1::2]
    monkeypatch.setattr(apart, "LEAST", 20)
    path = str(tmp_path / "apart.db")
    async with qrmem.open(path, segment_tokens=60, embedder="none", processes=2) as memory:
        assert (await memory.add(halves[0], max_seconds=0.05)).stopped
        assert not running
        reports = await asyncio.gather(*map(memory.add, halves))
        assert not running
    assert [report.states.keys() for report in reports] == [{"ok"}, {"ok"}]
    assert len(lost) > 4
    assert not any(lost)


async def test_a_run_is_stopped_by_time_while_others_read(
    tmp_path: Path, alone: list[Any], asked: list[str]
) -> None:
    path = tmp_path / "apart.db"
    report = await read(path, processes=2, max_seconds=0.05)
    assert "0.05 seconds" in report.stopped
    assert report.states["pending"]
    assert asked
    report = await read(path, processes=2)
    assert not report.stopped
    assert report.resumed or report.added
    assert await kept(path) == alone


async def test_documents_are_shared_out_in_batches_those_before_the_start_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    call = Processes.call

    def noted(self: Processes, work: Any, given: Any) -> Any:
        if isinstance(given, Given):
            sizes.append(len(given.jobs))
        return call(self, work, given)

    monkeypatch.setattr(Processes, "call", noted)
    notes = [{"id": f"{n}", "text": f"{text(n, 1)}"} for n in range(150)]
    report = await read(tmp_path / "notes.db", notes, processes=2)
    assert sum(sizes) == report.read >= len(notes)
    assert max(sizes) < 2 * 8


async def test_few_segments_are_read_here(tmp_path: Path, asked: list[str]) -> None:
    await read(tmp_path / "few.db", DOCUMENTS[:10], processes=2)
    assert not asked


async def test_what_was_used_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_last: list[str] = []
    close = Ahead.close

    async def noted(self: Ahead) -> None:
        kept_last.extend([*self._sent, *self._waiting])
        await close(self)

    monkeypatch.setattr(Ahead, "close", noted)
    await read(tmp_path / "apart.db", processes=2)
    assert not kept_last


async def test_what_small_builds_have_read_alone_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    monkeypatch.setattr("qrmem.ingest.BATCH_CHARACTERS", 20_000)
    notes = [{"id": f"{n}", "text": f"{text(n, 1)}"} for n in range(150)]
    await read(tmp_path / "notes.db", notes, processes=2)
    assert not asked


async def test_a_summary_is_measured_with_the_tokenizer_of_the_settings(
    tmp_path: Path, alone: list[Any], asked: list[str]
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = {letter: n for n, letter in enumerate(sorted(level.alphabet()))}
    letters = tokenizers.Tokenizer(tokenizers.models.BPE(alphabet, []))
    letters.pre_tokenizer = level
    letters.save(str(tmp_path / "letters.json"))
    name = f"hf:{tmp_path / 'letters.json'}"
    await read(tmp_path / "alone.db", processes=0, tokenizer=name)
    await read(tmp_path / "apart.db", processes=2, tokenizer=name)
    made = await kept(tmp_path / "apart.db")
    assert set(asked) == {"read", "name"}
    assert made == await kept(tmp_path / "alone.db")
    assert made[3] != alone[3]
