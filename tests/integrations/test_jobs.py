"""Long adds of `qrmem serve`: a restart continues them; each belongs to a token."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from integrations.conftest import WAIT, Served, wait
from integrations.test_tokens import client, row
from jsonschema import Draft202012Validator
from servers.openai_server import Behaviour, OpenAIServer, in_thread

import qrmem
from qrmem import sync
from qrmem.web.api import api
from qrmem.web.jobs import WAITING, Jobs

CONCURRENCY = 4
DOCUMENTS = [
    {
        "id": f"d{n:02}",
        "text": f"Ada Lovelace wrote letter {n} to Charles Babbage. He kept it in chest {n}.",
        "metadata": {"n": n},
    }
    for n in range(40)
]


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    with in_thread(OpenAIServer(behaviour=Behaviour(latency=0.1))) as server:
        yield server


@pytest.fixture
def slow() -> Iterator[OpenAIServer]:
    with in_thread(OpenAIServer(behaviour=Behaviour(latency=30.0))) as server:
        yield server


@contextmanager
def running(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """Serve a memory; the process may be killed meanwhile."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "qrmem", "serve", "--memory", str(folder / "m.db"), *words]
    chosen = {"QRMEM_CONCURRENCY": str(CONCURRENCY), "QRMEM_SHARED_TOKENS": "0"}
    process = subprocess.Popen(
        [*command, "--port", str(port)], text=True, env={**os.environ, **chosen}
    )
    try:
        wait(process, port)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as requests:
            yield process, requests
    finally:
        process.kill()
        process.wait(WAIT)


def reading(server: OpenAIServer) -> list[str]:
    return ["--write", "--model", "test", "--base-url", server.url, "--embedder", "none"]


def until(holds: Callable[[], Any]) -> Any:
    latest = time.monotonic() + WAIT
    while time.monotonic() < latest:
        if found := holds():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come to that")


def ended(requests: httpx.Client, id: str) -> Any:
    def look() -> Any:
        job = requests.get(f"/jobs/{id}").json()
        return job if job["ended"] else None

    return until(look)


def texts_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.json") if "Lovelace" in path.read_text()]


def test_a_job_continues_after_its_server_was_killed_and_pays_nothing_twice(
    tmp_path: Path, model: OpenAIServer
) -> None:
    with running(tmp_path, *reading(model)) as (process, requests):
        job = requests.post("/jobs", json={"documents": DOCUMENTS}).json()
        assert (job["state"], job["documents"], job["ended"]) == ("waiting", 40, "")
        until(lambda: model.stats.requests >= 15)
        seen = requests.get(f"/jobs/{job['id']}").json()
        assert seen["state"] == "running"
        assert 0 < seen["read"] < seen["segments"] == 40
        process.kill()
        process.wait(WAIT)
    assert texts_in(tmp_path)
    assert (tmp_path / "m.db.jobs").stat().st_mode & 0o077 == 0
    with running(tmp_path, *reading(model)) as (_, requests):
        done = ended(requests, job["id"])
        assert (done["state"], done["error"]) == ("done", "")
        assert done["report"]["states"] == {"ok": 40}
        assert 0 < done["report"]["read"] < 40
        assert len(requests.get("/documents").json()) == 40
    assert model.stats.requests <= len(set(model.stats.contents)) + CONCURRENCY
    assert not texts_in(tmp_path)
    calm = tmp_path / "calm.db"
    with sync.open(
        str(calm), model="test", base_url=model.url, embedder="none", shared_tokens=0
    ) as memory:
        memory.add(list(DOCUMENTS))
        expected = memory.export(str(tmp_path / "calm.qrmem")).checksum
    with sync.open(str(tmp_path / "m.db"), create=False) as memory:
        assert memory.export(str(tmp_path / "killed.qrmem")).checksum == expected


def test_a_job_that_is_cancelled_asks_no_more_and_the_same_one_continues(
    tmp_path: Path, model: OpenAIServer
) -> None:
    with running(tmp_path, *reading(model)) as (_, requests):
        job = requests.post("/jobs", json={"documents": DOCUMENTS}).json()
        until(lambda: model.stats.requests >= 10)
        cancelled = requests.delete(f"/jobs/{job['id']}").json()
        assert cancelled["state"] == "cancelled"
        asked = model.stats.requests
        assert not texts_in(tmp_path)
        time.sleep(0.5)
        assert model.stats.requests <= asked + CONCURRENCY
        again = requests.post("/jobs", json={"documents": DOCUMENTS}).json()
        assert ended(requests, again["id"])["report"]["states"] == {"ok": 40}
        assert model.stats.requests <= len(set(model.stats.contents)) + CONCURRENCY
        assert requests.delete(f"/jobs/{again['id']}").json()["state"] == "done"
        listed = requests.get("/jobs", params={"limit": 1})
        assert listed.headers["x-total-count"] == "2"
        assert [one["id"] for one in listed.json()] == [again["id"]]


def test_two_jobs_of_a_namespace_run_side_by_side(tmp_path: Path, model: OpenAIServer) -> None:
    with running(tmp_path, *reading(model)) as (_, requests):
        halves = [DOCUMENTS[:20], DOCUMENTS[20:]]
        jobs = [requests.post("/jobs", json={"documents": half}).json()["id"] for half in halves]

        def both() -> bool:
            states = [requests.get(f"/jobs/{id}").json() for id in jobs]
            return all(one["state"] == "running" and one["read"] for one in states)

        until(both)
        reports = [ended(requests, id)["report"] for id in jobs]
        assert [report["added"] for report in reports] == [[d["id"] for d in h] for h in halves]
        assert requests.get("/status").json()["states"] == {"ok": 40}
    assert len(set(model.stats.contents)) == model.stats.requests


def test_a_token_sees_the_jobs_of_its_user_and_namespace_alone(
    served: Served, tmp_path: Path, slow: OpenAIServer
) -> None:
    table = tmp_path / "tokens.toml"
    table.write_text(
        row("reader", namespace="team")
        + row("team", namespace="team", write=True)
        + row("of-ann", namespace="team", user="ann", write=True)
        + row("of-bob", namespace="team", user="bob", write=True)
        + row("other", namespace="other", write=True)
    )
    words = ["--tokens", str(table), "--model", "test", "--base-url", slow.url]
    with (
        served("serve", *words, "--embedder", "none") as url,
        client(url, "reader") as reader,
        client(url, "team") as team,
        client(url, "of-ann") as ann,
        client(url, "of-bob") as bob,
        client(url, "other") as other,
    ):
        job = ann.post("/jobs", json={"documents": DOCUMENTS[:2]}).json()
        assert job["user"] == "ann"
        path = f"/jobs/{job['id']}"
        assert [one["id"] for one in ann.get("/jobs").json()] == [job["id"]]
        assert [one["id"] for one in team.get("/jobs").json()] == [job["id"]]
        for stranger in (bob, other):
            assert stranger.get("/jobs").json() == []
            assert stranger.get(path).status_code == 404
            assert stranger.delete(path).status_code == 404
        for method, at in (("GET", "/jobs"), ("GET", path), ("DELETE", path), ("POST", "/jobs")):
            assert reader.request(method, at, json={}).status_code in (404, 405)
        until(lambda: [one["id"] for one in ann.get("/documents").json()])
        assert [one["id"] for one in ann.get("/documents").json()] == ["ann/d00", "ann/d01"]

        # A job with one wrong document stores nothing.
        for wrong, status in (
            ({"documents": ["/etc/passwd"]}, 422),
            ({"documents": []}, 422),
            ({"documents": [{"text": "No id."}]}, 400),
            ({"documents": [{"id": "x", "text": " "}]}, 400),
            ({"documents": [{"id": "x", "text": "X.", "metadata": {"user": "bob"}}]}, 400),
            ({"documents": [{"id": "x", "text": "X.", "metadata": 3}]}, 400),
            ({"documents": [{"id": "x", "text": "X.", "path": "/etc/passwd"}]}, 400),
        ):
            assert ann.post("/jobs", json=wrong).status_code == status, wrong
        assert len(ann.get("/jobs").json()) == 1

        # Who is forgotten leaves no job, and no text of one.
        assert texts_in(tmp_path)
        assert team.delete("/users/ann").is_success
        assert team.get("/jobs").json() == []
        assert not texts_in(tmp_path)

        # One user cannot fill the folder.
        for n in range(WAITING):
            assert bob.post("/jobs", json={"documents": [DOCUMENTS[n]]}).is_success
        full = bob.post("/jobs", json={"documents": DOCUMENTS[:1]})
        assert full.status_code == 429
        assert "cancel one" in full.json()["error"]
        assert ann.post("/jobs", json={"documents": DOCUMENTS[:1]}).is_success


def test_a_user_s_job_replaces_nothing_of_others(served: Served, tmp_path: Path) -> None:
    table = tmp_path / "tokens.toml"
    table.write_text(row("of-ann", user="ann", write=True) + row("all", write=True))
    with (
        served("serve", "--tokens", str(table)) as url,
        client(url, "of-ann") as ann,
        client(url, "all") as everybody,
    ):
        note = {"id": "ann/notes", "text": "Kept by the team."}
        assert everybody.post("/documents", json=note).is_success
        mine = [{"id": "notes", "text": "Ann's."}, {"id": "more", "text": "Ann met Bob."}]
        job = ann.post("/jobs", json={"documents": mine, "update": True}).json()
        failed = ended(ann, job["id"])
        assert failed["state"] == "failed"
        assert "'ann/notes' exists, and does not belong to ann" in failed["error"]
        assert everybody.get("/documents/ann/notes").json()["text"] == "Kept by the team."
        job = ann.post("/jobs", json={"documents": mine[1:], "update": True}).json()
        assert ended(ann, job["id"])["report"]["added"] == ["ann/more"]


def test_a_job_names_the_documents_that_it_refuses(served: Served) -> None:
    another = {"id": "note", "text": "Byron left Geneva in May."}
    with (
        served("serve", "--write", "--embedder", "none", text="Ada wrote.") as url,
        httpx.Client(base_url=url, timeout=60) as requests,
    ):
        job = requests.post("/jobs", json={"documents": [another]}).json()
        failed = ended(requests, job["id"])
        assert failed["state"] == "failed"
        assert failed["error"].startswith("note: ")
        assert "update" in failed["error"]
        both = [another, {"id": "new", "text": "Shelley rowed on the lake."}]
        job = requests.post("/jobs", json={"documents": both}).json()
        assert ended(requests, job["id"])["state"] == "done"
        (newest, _) = requests.get("/jobs").json()
        assert newest["error"].startswith("note: "), "the list says so, too"


def test_one_server_runs_the_jobs_of_a_memory(tmp_path: Path, slow: OpenAIServer) -> None:
    sent = {"documents": DOCUMENTS[:1]}
    with running(tmp_path, *reading(slow)) as (_, first):
        job = first.post("/jobs", json=sent).json()
        with running(tmp_path, *reading(slow)) as (_, second):
            refused = second.post("/jobs", json=sent)
            assert refused.status_code == 409
            assert "another server" in refused.json()["error"]
            assert second.get("/jobs").status_code == 409, "not an empty list"
            assert second.delete(f"/jobs/{job['id']}").status_code == 409
            assert second.delete("/users/ann").status_code == 409
        assert first.get(f"/jobs/{job['id']}").json()["state"] == "running"


def test_the_next_server_takes_over_when_the_first_one_has_ended(
    tmp_path: Path, slow: OpenAIServer
) -> None:
    with running(tmp_path, *reading(slow)) as (process, first):
        first.post("/jobs", json={"documents": DOCUMENTS[:1]})
        with running(tmp_path, "--write", "--embedder", "none") as (_, second):
            process.kill()
            process.wait(WAIT)
            (job,) = second.get("/jobs").json()
            assert ended(second, job["id"])["state"] == "done"


def test_a_user_who_is_forgotten_by_the_command_does_not_come_back_with_a_job(
    tmp_path: Path, slow: OpenAIServer
) -> None:
    own = {**DOCUMENTS[0], "metadata": {"user": "ann"}}
    command = [sys.executable, "-m", "qrmem", "chat", "forget-user", "ann", "--yes"]
    command += ["--memory", str(tmp_path / "m.db")]
    with running(tmp_path, *reading(slow)) as (_, requests):
        requests.post("/jobs", json={"documents": [own]})
        requests.post("/jobs", json={"documents": DOCUMENTS[1:2]})
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert refused.returncode != 0
        assert "nothing was deleted; send it DELETE /users/USER" in refused.stderr
    subprocess.run(command, check=True)
    with running(tmp_path, "--write", "--embedder", "none") as (_, requests):
        (other,) = requests.get("/jobs").json()
        assert ended(requests, other["id"])["state"] == "done"
        assert [one["id"] for one in requests.get("/documents").json()] == ["d01"]


def test_a_file_of_another_kind_among_the_jobs_stops_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    for n, text in enumerate(("", "{", '{"job": "x"}', "[]", '{"job": "x", "texts": 3}')):
        (folder / f"{n}.json").write_text(text)
    with running(tmp_path, "--write", "--jobs", str(folder)) as (_, requests):
        assert requests.get("/jobs").json() == []
        job = requests.post("/jobs", json={"documents": DOCUMENTS[:1]}).json()
        assert ended(requests, job["id"])["state"] == "done"
    with running(tmp_path, "--write", "--jobs", str(folder)) as (_, requests):
        kept = requests.get(f"/jobs/{job['id']}").json()
        assert (kept["state"], kept["report"]["added"]) == ("done", ["d00"])


async def test_a_strangers_folder_of_jobs_stops_nothing_and_writes_nothing_elsewhere(
    tmp_path: Path,
) -> None:
    """A memory of somebody else's may come with a folder of that name."""
    folder, outside = tmp_path / "jobs", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    texts = [{"text": "Bob ran.", "title": "", "id": "x", "metadata": {}}]
    whole = {
        **{"job": "x", "namespace": "default", "user": "", "users": [], "update": False},
        **{"documents": 1, "created": "2026", "texts": texts},
    }
    for name, odd in (
        ("climbs", {"job": str(outside / "evil")}),
        ("time", {"job": "time", "created": 5}),
        ("users", {"job": "users", "users": 3}),
    ):
        (folder / f"{name}.json").write_text(json.dumps({**whole, **odd}))
    (folder / "deep.json").write_text("[" * 100_000)
    os.mkfifo(folder / "pipe.json")
    (outside / "link.json").write_text(json.dumps({**whole, "job": "link"}))
    (folder / "link.json").symlink_to(outside / "link.json")
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        jobs = Jobs(folder)
        async with jobs.running({memory.settings.namespace: memory}):
            assert await jobs.listed(memory, "") == []
    assert [path.name for path in outside.iterdir()] == ["link.json"]
    assert json.loads((outside / "link.json").read_text())["texts"] == texts


async def test_replies_about_jobs_are_of_their_types(tmp_path: Path) -> None:
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        jobs = Jobs(tmp_path / "jobs")
        app = api(memory, write=True, jobs=jobs)
        described = app.openapi()
        transport = httpx.ASGITransport(app=app)
        async with (
            jobs.running({memory.settings.namespace: memory}),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as requests,
        ):

            async def send(method: str, at: str, path: str = "", **sent: Any) -> Any:
                reply = await requests.request(method, at, **sent)
                assert reply.is_success, reply.text
                said = described["paths"][path or at][method]["responses"]["200"]
                schema = said["content"]["application/json"]["schema"]
                whole = {**schema, "components": described["components"]}
                Draft202012Validator(whole).validate(reply.json())
                return reply.json()

            job = await send("post", "/jobs", json={"documents": DOCUMENTS[:2]})
            await jobs._tasks[job["id"]]
            assert (await send("get", "/jobs"))[0]["state"] == "done"
            one = await send("get", f"/jobs/{job['id']}", "/jobs/{id}")
            assert one["report"]["added"] == ["d00", "d01"]
            await send("delete", f"/jobs/{job['id']}", "/jobs/{id}")


async def test_a_service_without_a_folder_says_how_it_takes_jobs() -> None:
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        app = api(memory, write=True, jobs=Jobs(None))
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as requests:
            refused = await requests.post("/jobs", json={"documents": DOCUMENTS[:1]})
            assert refused.status_code == 424
            assert "--jobs FOLDER" in refused.json()["error"]


@pytest.mark.parametrize("odd", [b"null", b"[]", b"{}", b"1e400", b'"\\ud800"', b"[[1]]", b"true"])
async def test_any_json_in_a_document_gets_a_reason_and_never_a_fault(
    odd: bytes, tmp_path: Path
) -> None:
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        jobs = Jobs(tmp_path / "jobs")
        for user in ("", "ann"):
            transport = httpx.ASGITransport(
                app=api(memory, write=True, jobs=jobs, user=user), raise_app_exceptions=False
            )
            async with (
                jobs.running({}),
                httpx.AsyncClient(transport=transport, base_url="http://localhost") as requests,
            ):
                for name in ("text", "id", "title", "metadata", "other"):
                    body = b'{"documents": [{"id": "x", "text": "Bob ran.", "%b": %b}]}' % (
                        name.encode(),
                        odd,
                    )
                    reply = await requests.post(
                        "/jobs", content=body, headers={"content-type": "application/json"}
                    )
                    assert reply.status_code < 500, (body, reply.text)
                    if reply.is_success:
                        await asyncio.wait([jobs._tasks[reply.json()["id"]]])
                        done = await requests.get(f"/jobs/{reply.json()['id']}")
                        assert done.is_success, (body, done.text)
                        assert done.json()["state"] in ("done", "failed"), done.text
                        assert "the service failed" not in done.json()["error"]
