"""Workers on a real Ray cluster of three nodes (`.ci/ray`); one test removes one, the last ones."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import executing
import pytest

import qrmem
from qrmem.errors import UsageError

pytest.importorskip("ray", reason="the extra `ray` is not installed")

MARK = "sk-marked-key-7f3a91c2"
TEXTS = [
    f"Ada Lovelace wrote to Charles Babbage in 18{n}. Babbage met Mary Somer{n} in London."
    for n in range(30, 90)
]
KILLS = tuple(0.2 + 0.3 * n for n in range(10))
"""Seconds after the first segment was kept."""


@dataclass
class Nodes:
    """A cluster.

    Attributes:
        cluster: `ray.cluster_utils.Cluster`.
        folder: Ray's temporary folder.
        others: nodes beside the head.
    """

    cluster: Any
    folder: Path
    others: list[Any] = field(default_factory=list)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    from ray.cluster_utils import Cluster

    folder = Path(tempfile.mkdtemp(prefix="qr", dir="/tmp"))  # a socket's path is short
    (folder / "ray").mkdir()  # where Ray writes the cluster's address, and makes no folder
    with pytest.MonkeyPatch.context() as patched:
        # Where Ray itself is started in an environment that has a key.
        patched.setenv("OPENAI_API_KEY", MARK)
        patched.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patched.setenv("RAY_TMPDIR", str(folder))
        patched.setenv(executing.FLAG, str(folder / "began"))
        patched.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
        head = {"num_cpus": 1, "temp_dir": str(folder), "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        found = Nodes(cluster, folder)
        found.others = [cluster.add_node(num_cpus=1) for _ in range(2)]
        patched.setenv("RAY_ADDRESS", cluster.address)
        yield found
        cluster.shutdown()


@pytest.fixture(autouse=True)
async def left() -> AsyncIterator[None]:
    yield
    import ray

    assert not ray.is_initialized(), "a memory that is closed has left the cluster"


async def built(executor: str, folder: Path) -> tuple[bytes, Any]:
    documents = [qrmem.Document(text, id=f"d{n:03}") for n, text in enumerate(TEXTS)]
    path = folder / f"{executor}.qrmem"
    async with qrmem.open("memory://", embedder="none", executor=executor) as memory:
        report = await memory.add(documents)
        await memory.export(path, overwrite=True)
    return path.read_bytes(), report


async def test_a_cluster_reads_as_this_process_does(nodes: Nodes, tmp_path: Path) -> None:
    alone, _ = await built("inline", tmp_path)
    together, report = await built("ray", tmp_path)
    assert together == alone
    assert report.warnings == ()


async def test_two_memories_of_a_process_share_the_connection(nodes: Nodes) -> None:
    first, second = (qrmem.open("memory://", embedder="none", executor="ray:1") for _ in range(2))
    async with first as one:
        async with second as other:
            reports = await asyncio.gather(*(each.add({"text": TEXTS[0]}) for each in (one, other)))
        assert [report.read for report in reports] == [1, 1]
        # The second has left; the first still has its worker.
        report = await one.add({"text": TEXTS[1]})
        assert (report.read, report.warnings) == (1, ())


async def test_a_node_with_another_version_is_refused_in_one_line(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "qrmem.workers.ray_cluster.versions", lambda: {"qrmem": "9.9", "prompts": "abc"}
    )
    with pytest.raises(UsageError, match=r"instead of 9\.9.*install the same qrmem") as caught:
        await built("ray", tmp_path)
    assert "\n" not in str(caught.value)


async def test_an_address_whose_work_is_lost_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "ray://head:10001")
    with pytest.raises(UsageError, match="ray job submit"):
        await built("ray", tmp_path)


def test_the_command_that_is_killed_continues(nodes: Nodes, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for n, text in enumerate(TEXTS * 12):
        (folder / f"{n:03}.txt").write_text(f"{text} It was letter {n}.")
    command = [sys.executable, "-m", "qrmem"]
    add = [*command, "add", "texts", "--embedder", "none", "--quiet", "--memory"]
    for pause in KILLS:
        driver = subprocess.Popen([*add, "ray.db", "--executor", "ray"], cwd=tmp_path)
        while not (tmp_path / "ray.db").exists() and driver.poll() is None:
            time.sleep(0.01)
        time.sleep(pause)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    for name, executor in (("ray.db", "ray"), ("alone.db", "inline")):
        subprocess.run([*add, name, "--executor", executor], cwd=tmp_path, check=True)
        archive = [*command, "export", name.replace(".db", ".qrmem"), "--memory", name, "--quiet"]
        subprocess.run(archive, cwd=tmp_path, check=True)
    assert (tmp_path / "ray.qrmem").read_bytes() == (tmp_path / "alone.qrmem").read_bytes()


async def test_a_node_that_goes_without_grace_changes_nothing(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, _ = await built("inline", tmp_path)
    monkeypatch.setattr("qrmem.agents.executor.read_jobs", executing.read_slowly)

    def remove() -> None:
        until = time.monotonic() + 120
        while len(list(nodes.folder.glob("began-*"))) < 3 and time.monotonic() < until:
            time.sleep(0.05)  # until each node is at work
        nodes.cluster.remove_node(nodes.others.pop(), allow_graceful=False)

    removing = asyncio.create_task(asyncio.to_thread(remove))
    together, report = await built("ray", tmp_path)
    await removing
    assert together == alone
    assert report.is_complete
    assert any("lost during the run" in warning for warning in report.warnings)


def test_no_file_of_ray_holds_a_key(nodes: Nodes) -> None:
    """After all of the above, with the key in the environment of cluster and commands."""
    assert os.environ["OPENAI_API_KEY"] == MARK
    files = [path for path in nodes.folder.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path for path in files if MARK.encode() in path.read_bytes()] == []
