"""Processes that read and parse: the same memory to the byte, even if processes are lost."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import executing
import pytest
from servers.openai_server import serving

import qrmem
from benchmarks import multihop
from qrmem.errors import UsageError, WorkersUnavailable
from qrmem.io.sources import Source
from qrmem.types.reports import AddReport
from qrmem.workers import Crew, WorkerLost
from qrmem.workers.crew import hired

PASSAGES = 300
TEXTS = [
    f"Ada Lovelace wrote to Charles Babbage in 18{n}. Babbage met Mary Somer{n} in London."
    for n in range(30, 54)
]


async def built(
    folder: Path, source: Source, executor: str, **options: Any
) -> tuple[bytes, AddReport]:
    """Return the archive of a new memory, and what its `add` reported."""
    path = folder / f"{executor.replace(':', '-')}.qrmem"
    async with qrmem.open("memory://", embedder="none", executor=executor) as memory:
        report = await memory.add(source, **options)
        await memory.export(path)
    return path.read_bytes(), report


def texts(several: Sequence[str] = TEXTS) -> list[qrmem.Document]:
    return [qrmem.Document(text, id=f"d{n:03}") for n, text in enumerate(several)]


async def test_processes_read_the_sample_as_this_process_does(tmp_path: Path) -> None:
    sample = Path(str(files("qrmem") / "sample"))
    alone, first = await built(tmp_path, sample, "inline")
    together, second = await built(tmp_path, sample, "processes:2")
    assert together == alone
    assert second.read == first.read > 0


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("QRMEM_DATA"), reason="needs QRMEM_DATA")
async def test_processes_read_real_passages_as_this_process_does(tmp_path: Path) -> None:
    passages = multihop.load("hotpotqa", multihop.folder()).passages[:PASSAGES]
    documents = [
        qrmem.Document(text, title, f"p{n:06}") for n, (title, text) in enumerate(passages) if text
    ]
    alone, _ = await built(tmp_path, documents, "inline")
    together, _ = await built(tmp_path, documents, "processes:2")
    assert together == alone


async def test_files_are_parsed_by_processes_in_their_order_with_the_same_problems(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for n, text in enumerate(TEXTS):
        (folder / f"{n:02}.{('txt', 'md', 'html')[n % 3]}").write_text(f"{text}\n")
    (folder / "05-empty.txt").write_text("")
    (folder / "06-binary.txt").write_bytes(bytes(range(256)) * 20)
    (folder / "07-broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    alone, first = await built(tmp_path, folder, "inline")
    together, second = await built(tmp_path, folder, "processes:2")
    assert together == alone
    assert (second.added, second.problems) == (first.added, first.problems)
    assert len(first.problems) == 3


async def test_documents_before_an_error_of_a_source_are_kept_with_processes_too(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text(TEXTS[0])

    def broken() -> Iterator[Path]:
        yield tmp_path / "a.txt"
        raise RuntimeError("broken off")

    async with qrmem.open("memory://", embedder="none", executor="processes:1") as memory:
        with pytest.raises(RuntimeError, match="broken off"):
            await memory.add(broken())
        assert [document.id for document in await memory.documents()] == ["a.txt"]


async def test_one_bad_file_is_an_error_with_processes_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(qrmem.errors.BadDocument, match="is empty"):
        await built(tmp_path, tmp_path / "a.txt", "processes:1")


async def test_a_worker_that_dies_is_reported_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, _ = await built(tmp_path, texts(), "inline")
    monkeypatch.setenv(executing.FLAG, str(tmp_path / "died"))
    monkeypatch.setattr("qrmem.agents.executor.read_jobs", executing.read_but_die_once)
    together, report = await built(tmp_path, texts(), "processes:2")
    assert together == alone
    assert report.warnings == ("1 worker was lost during the run; the work was repeated",)
    assert report.is_complete


async def test_a_text_that_ends_workers_fails_alone_and_is_read_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poisoned = texts([*TEXTS, f"Captain {executing.POISON} met Ada Lovelace."])
    with monkeypatch.context() as patched:
        patched.setattr("qrmem.agents.executor.read_jobs", executing.read_but_die_of_poison)
        async with qrmem.open(
            f"{tmp_path}/m.db", embedder="none", executor="processes:2"
        ) as memory:
            report = await memory.add(poisoned)
    assert report.problems == (("d024", 0, "two workers were lost while reading this"),)
    assert report.states == {"ok": len(poisoned) - 1, "failed": 1}
    async with qrmem.open(f"{tmp_path}/m.db", embedder="none", executor="processes:1") as memory:
        assert (await memory.add(poisoned)).read == 1


async def test_a_chat_models_calls_are_made_by_the_driver_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nobody() -> Any:
        raise AssertionError("a worker was started")

    monkeypatch.setattr("qrmem.workers.crew.hired", nobody)
    async with (
        serving() as server,
        qrmem.open(
            "memory://",
            model="test",
            base_url=server.url,
            embedder="none",
            executor="processes:1",
        ) as memory,
    ):
        report = await memory.add(texts()[:2])
    assert report.is_complete
    assert server.stats.requests > 0


# --- the crew ------------------------------------------------------------------------------------


@pytest.mark.parametrize("harm", [executing.die, executing.hang])
async def test_only_what_a_lost_worker_did_is_lost(harm: Callable[[int], Any]) -> None:
    crew = Crew(1, hired, patience=60.0 if harm is executing.die else 15.0)
    try:
        assert await crew.do(executing.double, 4) == 8
        lost, *others = await asyncio.gather(
            crew.do(harm, 1),
            *(crew.do(executing.double, n) for n in range(4)),
            return_exceptions=True,
        )
        assert isinstance(lost, WorkerLost)
        assert others == [0, 2, 4, 6]
        assert crew.lost == 1
    finally:
        await crew.close()


async def test_an_error_of_a_job_is_raised_and_the_worker_continues() -> None:
    crew = Crew(1, hired)
    try:
        with pytest.raises(ValueError, match="not 5"):
            await crew.do(executing.refuse, 5)
        assert await crew.do(executing.double, 5) == 10
        assert crew.lost == 0
    finally:
        await crew.close()


async def test_workers_that_cannot_start_are_reported_at_once() -> None:
    async def dies() -> Any:
        raise WorkerLost(is_cause=True)

    with pytest.raises(WorkersUnavailable, match="__main__"):
        await Crew(2, dies).do(executing.double, 1)


@pytest.mark.parametrize("name", ["threads", "processes:0", "processes:", "inline:2", "ray:x"])
def test_another_executor_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="choose inline, processes, ray"):
        qrmem.Settings(executor=name)


# --- the command ---------------------------------------------------------------------------------

COMMAND = [sys.executable, "-m", "qrmem", "add", "texts", "--embedder", "none", "--quiet"]


def children(pid: int) -> set[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return {int(one) for one in found.read_text().split()} if found.exists() else set()


def test_without_its_driver_no_worker_continues(tmp_path: Path) -> None:
    """A driver that is killed leaves no process; the same command continues."""
    (tmp_path / "texts").mkdir()
    for n, text in enumerate(TEXTS * 25):
        (tmp_path / "texts" / f"{n:03}.txt").write_text(f"{text} It was letter {n}.")
    driver = subprocess.Popen([*COMMAND, "--executor", "processes:2"], cwd=tmp_path)
    try:
        workers: set[int] = set()
        while len(workers) < 3 and driver.poll() is None:  # two, and multiprocessing's own
            workers = children(driver.pid)
            time.sleep(0.01)
        assert len(workers) >= 3
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    until = time.monotonic() + 60
    while any(Path(f"/proc/{pid}/cmdline").exists() for pid in workers):
        assert time.monotonic() < until, "a worker outlived its driver"
        time.sleep(0.1)
    again = subprocess.run([*COMMAND, "--executor", "processes:2"], cwd=tmp_path, check=False)
    assert again.returncode == 0


def test_the_command_that_is_killed_at_ten_points_continues(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    for n, text in enumerate(TEXTS * 12):
        (tmp_path / "texts" / f"{n:03}.txt").write_text(f"{text} It was letter {n}.")
    killed = 0
    for point in range(10):
        driver = subprocess.Popen(
            [*COMMAND, "--executor", "processes:2", "--memory", "killed.db"], cwd=tmp_path
        )
        while not (tmp_path / "killed.db").exists() and driver.poll() is None:
            time.sleep(0.01)
        time.sleep(0.1 * point)  # workers take longer to start than the first of these
        killed += driver.poll() is None
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    assert killed >= 3, "the command ended before it was killed"
    for name, executor in (("killed", "processes:2"), ("alone", "inline")):
        add = [*COMMAND, "--executor", executor, "--memory", f"{name}.db"]
        subprocess.run(add, cwd=tmp_path, check=True)
        export = [*COMMAND[:3], "export", f"{name}.qrmem", "--memory", f"{name}.db", "--quiet"]
        subprocess.run(export, cwd=tmp_path, check=True)
    assert (tmp_path / "killed.qrmem").read_bytes() == (tmp_path / "alone.qrmem").read_bytes()
