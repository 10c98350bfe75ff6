"""`qrmem serve` as an HTTP client meets it."""

import socket
import sqlite3
from json import dumps, loads
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from integrations.conftest import Served
from jsonschema import Draft202012Validator

import qrmem
from qrmem import sync
from qrmem.web import guard
from qrmem.web.api import api

TEXT = "Ada Lovelace met Charles Babbage in London in 1833."


def test_words_of_any_script_that_no_passage_has_are_named(served: Served) -> None:
    with served("serve", text=TEXT) as url:
        for word in ("Чарльз", "木星", "zebra"):
            asked = {"query": f"Did Ada Lovelace meet Charles Babbage in {word}?"}
            found = httpx.post(f"{url}/search", json=asked, timeout=60)
            assert found.status_code == 200, word
            assert unquote(found.headers["x-warning"]) == f"no passage mentions '{word}'"


def test_a_client_looks_searches_and_asks(served: Served) -> None:
    with served("serve", text=TEXT) as url, httpx.Client(base_url=url, timeout=60) as client:
        assert client.get("/status").json()["counts"]["documents"] == 1
        assert [info["id"] for info in client.get("/documents").json()] == ["note"]
        assert client.get("/documents/note").json()["text"] == TEXT
        (hit, *_) = client.post("/search", json={"query": "Who met Babbage?"}).json()
        assert hit["text"] == TEXT
        answer = client.post("/ask", json={"question": "Whom did Ada Lovelace meet?"}).json()
        assert answer["status"] == "passages"
        (citation, *_) = answer["citations"]
        assert TEXT[citation["start"] : citation["end"]] == citation["quote"]
        trail = client.get(f"/trails/{answer['trail']['id']}").json()
        assert trail["steps"] == answer["trail"]["steps"]
        assert client.get("/trails/last").json()["id"] == trail["id"]
        names = [found["name"] for found in client.get("/entities").json()]
        assert "Ada Lovelace" in names
        view = client.get("/entities/Ada Lovelace").json()
        assert view["entity"]["name"] == "Ada Lovelace"
        page = client.get("/docs").text
        assert "swagger" in page.lower()
        assert "//cdn" not in page


def test_conversations_are_listed_with_their_turns(served: Served) -> None:
    with served("serve", "--write") as url, httpx.Client(base_url=url, timeout=60) as client:
        said = ("My desk is 140 cm wide.", "Sorry, my desk is 160 cm wide, not 140.")
        for day, text in enumerate(said, 1):
            turn = {"role": "user", "text": text, "at": f"2026-04-0{day}", "session": "desk"}
            assert client.post("/turns", json=turn | {"user": "Jan"}).is_success
        hand = {"text": "Hello.", "standing": True}
        assert client.post("/turns", json=turn | hand).is_success
        assert client.get("/conversation", params={"session": "desk"}).json()[0]["standing"]
        sessions = client.get("/sessions").json()
        assert [(one["session"], one["user"], one["turns"]) for one in sessions] == [
            ("desk", "Jan", 2),
            ("desk", "", 1),
        ]
        reply = client.get("/conversation", params={"session": "desk", "user": "Jan", "limit": 1})
        (first,) = reply.json()
        assert reply.headers["x-total-count"] == "2"
        assert first["text"] == said[0]
        assert client.get("/documents", params={"turns": False}).json() == []


def test_an_answer_is_streamed_as_events(served: Served) -> None:
    with served("serve", text=TEXT) as url, httpx.Client(base_url=url, timeout=60) as client:
        asked = {"question": "Whom did Ada Lovelace meet?", "stream": True}
        with client.stream("POST", "/ask", json=asked) as reply:
            assert reply.headers["content-type"].startswith("text/event-stream")
            told = "".join(reply.iter_text()).split("\n\n")
        kinds = [event.split("\n")[0] for event in told if event]
        assert set(kinds[:-1]) == {"event: step"}
        assert kinds[-1] == "event: answer"
        answer = loads(told[-2].split("data: ")[1])
        assert answer["trail"] == client.get("/trails/last").json()
        assert len(answer["trail"]["steps"]) == len(kinds) - 1
        refused = client.post("/ask", json=asked | {"as_of": "yesterday"})
        assert refused.status_code == 400
        assert "yesterday" in refused.json()["error"]


def test_a_document_for_a_memory_whose_file_is_gone_is_refused(
    served: Served, tmp_path: Path
) -> None:
    with (
        served("serve", "--write", text=TEXT) as url,
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        (file,) = tmp_path.rglob("*.db")
        file.rename(tmp_path / "away")
        said = client.post("/documents", json={"id": "other", "text": "Ann met Bob."})
        assert said.status_code == 503
        assert "while the memory was open" in said.json()["error"]
        assert str(tmp_path) not in said.text
        (tmp_path / "away").rename(file)
        assert client.post("/documents", json={"id": "other", "text": "Ann met Bob."}).is_success


def test_wrong_requests_get_a_reason(served: Served) -> None:
    with served("serve", text=TEXT) as url, httpx.Client(base_url=url, timeout=60) as client:
        assert client.get("/documents/other").status_code == 404
        assert "no document 'other'" in client.get("/documents/other").json()["error"]
        assert client.post("/search", json={"query": "x", "k": 0}).status_code == 422
        wrong = client.post("/ask", json={"question": "Who?", "strategy": "guess"})
        assert wrong.status_code == 400
        assert "guess" in wrong.json()["error"]
        refused = client.post("/documents", json={"text": "More."})
        assert refused.status_code == 405
        assert "no POST /documents" in refused.json()["error"]
        assert "--write" in refused.json()["error"]
        assert "/docs" in client.get("/nowhere").json()["error"]
        as_form = client.post("/search", data={"query": "x"})
        assert as_form.status_code == 422
        assert "content-type: application/json" in as_form.json()["error"]
        assert client.delete("/documents/note").status_code == 405
        json = {"content-type": "application/json"}
        cut = client.post("/search", content=b'{"query": "Ada", "k"', headers=json)
        assert cut.status_code == 422
        said = "the body is not JSON, or is cut: Expecting ':' delimiter, at character 20"
        assert cut.json()["error"] == said
        arguments = " (arguments: query, k, documents, where, types, as_of)"
        for sent, said in (
            ({}, "query is missing"),
            ({"query": "x", "k": 0}, "k should be greater than or equal to 1"),
            ({"query": ""}, "query should have at least 1 character"),
            ({"query": 3}, "query should be a valid string"),
            ({"query": "x", "document": ["note"]}, "there is no argument document" + arguments),
            ([], 'the body should be a JSON object: {"name": value, …}'),
            (None, 'the body should be a JSON object: {"name": value, …}'),
            ({"query": "x", "k": True}, "k should be a valid integer"),
            (
                {"query": "x", "where": {"year": [1], "str": None}},
                "where 'year' is a list; a value is a text, a number, true or false",
            ),
            (
                {"query": "x", "where": {"year": {"~": 1}}},
                "where 'year': no operator is called '~'; use = < <= > >= in has",
            ),
        ):
            posted = client.post("/search", content=dumps(sent), headers=json)
            assert posted.json()["error"] == said
        for body, said in (
            (b"", "query is missing"),
            (b"[" * 100_000, "the body is nested too deep"),
            (b'{"query": "\xff"}', "the body is not UTF-8"),
        ):
            unread = client.post("/search", content=body, headers=json)
            assert (unread.status_code // 100, unread.json()["error"]) == (4, said)
        lines = client.post("/search", content=b"{}", headers={"content-type": "text/json"})
        assert "content-type: application/json" in lines.json()["error"]
        assert client.get("/trails?limit=x").json()["error"].startswith("limit should be a valid")
        odd = client.get("/trails?limt=3")
        said = "there is no argument limt (arguments: limit, offset, brief)"
        assert (odd.status_code, odd.json()["error"]) == (422, said)
        large = client.post("/search", content=b"x" * (17 * 1024 * 1024))
        assert large.status_code == 413


async def test_a_document_is_shown_whose_id_no_path_can_hold() -> None:
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        await memory.add({"id": "..", "text": TEXT})
        app = httpx.ASGITransport(app=api(memory))
        async with httpx.AsyncClient(transport=app, base_url="http://localhost") as client:
            assert (await client.get("/document", params={"id": ".."})).json()["text"] == TEXT
            brief = await client.get("/document", params={"id": "..", "text": "false"})
            assert brief.json()["characters"] == len(TEXT)


async def test_an_id_with_a_line_break_is_shown_and_deleted() -> None:
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        await memory.add({"id": "two\nlines", "text": TEXT})
        app = httpx.ASGITransport(app=api(memory, write=True))
        async with httpx.AsyncClient(transport=app, base_url="http://localhost") as client:
            assert (await client.get("/documents/two%0Alines")).json()["text"] == TEXT
            assert (await client.delete("/documents/two%0Alines")).status_code == 200


def test_a_writing_client_adds_and_deletes(served: Served) -> None:
    with served("serve", "--write") as url, httpx.Client(base_url=url, timeout=60) as client:
        report = client.post(
            "/documents", json={"text": TEXT, "id": "note", "metadata": {"year": 1833}}
        )
        assert report.json()["added"] == ["note"]
        found = client.post("/search", json={"query": "Babbage", "where": {"year": 1833}}).json()
        assert [hit["document_id"] for hit in found] == ["note"]
        client.post("/turns", json={"role": "user", "text": "The ferry leaves at noon."})
        recalled = client.post("/recall", json={"prompt": "When does the ferry leave?"}).json()
        assert "noon" in str(recalled)
        assert client.delete("/documents/note").json() == {"deleted": "note"}
        assert client.get("/documents/note").status_code == 404


def test_without_the_token_nothing_is_shown(served: Served) -> None:
    with served("serve", text=TEXT, QRMEM_TOKEN="s3cret") as url:
        for path in ("/status", "/documents/note"):
            refused = httpx.get(timeout=60, url=f"{url}{path}")
            assert refused.status_code == 401
            assert "s3cret" not in refused.text
        wrong = httpx.get(
            timeout=60, url=f"{url}/status", headers={"authorization": "Bearer s3cre"}
        )
        assert wrong.status_code == 401
        right = httpx.get(
            timeout=60, url=f"{url}/status", headers={"authorization": "Bearer s3cret"}
        )
        assert right.status_code == 200


@pytest.mark.parametrize("command", [("serve",), ("mcp", "--http")])
def test_nobody_outside_is_let_in_without_a_token(command: tuple[str, ...]) -> None:
    import qrmem.cli

    arguments = [*command, "--host", "0.0.0.0", "--memory", "memory://", "--write"]
    assert qrmem.cli.main(arguments) == 2


@pytest.mark.parametrize("command", ["serve", "mcp --http", "view --no-browser"])
def test_a_port_in_use_is_reported_once(command: str, capsys: Any, tmp_path: Path) -> None:
    import qrmem.cli

    at = str(tmp_path / "m.db")
    with sync.open(at, embedder="none") as memory:
        memory.add({"id": "note", "text": TEXT})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert qrmem.cli.main([*command.split(), "--memory", at, "--port", port]) == 4
    said = f"cannot listen on 127.0.0.1:{port}: Address already in use; choose another by --port"
    assert capsys.readouterr().err == f"qrmem: {said}\n"


def test_a_page_of_another_site_does_not_get_in_where_no_token_is_set(served: Served) -> None:
    with served("serve", "--write", text=TEXT) as url:
        client = httpx.Client(base_url=url, timeout=60)
        port = url.rpartition(":")[2]
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", ""):
            refused = client.get("/documents/note", headers={"host": host})
            assert refused.status_code == 403, host
            assert TEXT not in refused.text
        assert client.get("/status", headers={"host": f"localhost:{port}"}).status_code == 200
        turn = b'{"role": "user", "text": "forged"}'
        for said in ({}, {"content-type": "text/plain"}):  # what a form of another site may send
            assert client.post("/turns", content=turn, headers=said).status_code == 422
        client.close()


def test_a_body_without_a_length_or_with_a_false_one_is_refused(served: Served) -> None:
    with served("serve", "--write", text=TEXT) as url:
        chunked = httpx.post(f"{url}/search", content=iter([b"x"] * 3), timeout=60)
        assert chunked.status_code == 411
        assert "Content-Length" in chunked.json()["error"]
        port = int(url.rpartition(":")[2])
        for length in (b"-1", b"1e3", b"\xb2", b"9" * 40, b"1, 2"):
            head = b"POST /search HTTP/1.1\r\nhost: localhost\r\ncontent-length: " + length
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                connection.sendall(head + b"\r\n\r\n")
                assert connection.recv(100).startswith((b"HTTP/1.1 400", b"HTTP/1.1 413")), length
        assert httpx.get(f"{url}/status", timeout=60).status_code == 200


ODD = (b"NaN", b"1e999", b'"\\ud800"', b'{"\\ud800": 1}', b"[]", b"null", b"9" * 40, b'"\\u0000"')


@pytest.mark.parametrize("odd", ODD)
async def test_any_json_gets_a_reason_and_never_a_fault(odd: bytes) -> None:
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        await memory.add({"id": "note", "text": TEXT})
        app = httpx.ASGITransport(app=api(memory, write=True), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=app, base_url="http://localhost") as client:
            for path, sound, names in (
                ("/search", b'"query": "Ada?"', ("query", "k", "documents", "where")),
                ("/ask", b'"question": "Who?"', ("question", "strategy", "window", "choices")),
                ("/recall", b'"prompt": "Ada?"', ("prompt", "session", "tokens")),
                ("/documents", b'"text": "Bob ran."', ("text", "title", "id", "metadata")),
                ("/turns", b'"role": "user", "text": "Hi."', ("role", "text", "session", "at")),
                ("/merges", b'"first": "Ada", "second": "Bob"', ("first", "second", "same")),
                ("/segments", b'"ids": []', ("ids",)),
            ):
                for name in names:
                    body = b"{%b, %b: %b}" % (sound, f'"{name}"'.encode(), odd)
                    answer = await client.post(
                        path, content=body, headers={"content-type": "application/json"}
                    )
                    assert answer.status_code < 500, (path, body, answer.text)
                    answer.json()


async def test_errors_name_neither_other_namespaces_nor_the_path_of_the_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "_logged", float("-inf"))  # as if nothing was logged this minute
    at = str(tmp_path / "m.db")
    async with qrmem.open(at, namespace="secret", embedder="none") as other:
        await other.add({"id": "plan", "text": TEXT})
    async with qrmem.open(at, namespace="open", embedder="none", model="") as memory:
        transport = httpx.ASGITransport(app=api(memory, write=True))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:

            async def said() -> str:
                told = [
                    await client.get(path)
                    for path in ("/status", "/documents/x", "/entities/x", "/trails/x", "/usage")
                ]
                for path, name in (("/search", "query"), ("/ask", "question")):
                    told.append(await client.post(path, json={name: "Who met Babbage?"}))
                assert any(answer.status_code >= 400 for answer in told)
                return "".join(answer.text for answer in told)

            for state in ("empty", "full", "damaged"):
                if state == "full":
                    await memory.add({"id": "note", "text": TEXT})
                if state == "damaged":
                    with sqlite3.connect(at) as db:
                        db.execute("DROP TABLE segment")
                shown = await said()
                assert str(tmp_path) not in shown, state
                assert "secret" not in shown
    assert at in caplog.text  # the operator's log may name it, once a minute
    assert caplog.text.count("\n") == 1


def test_a_client_keeps_recalls_and_forgets_by_user(served: Served) -> None:
    with served("serve", "--write") as url, httpx.Client(base_url=url, timeout=60) as client:
        for user, boat in (("ann", "Nell"), ("ben/b", "Brig")):
            turn = {"role": "user", "text": f"My boat is called {boat}.", "user": user}
            client.post("/turns", json=turn)
        asked = {"prompt": "What is my boat called?", "user": "ben/b"}
        told = str(client.post("/recall", json=asked).json())
        assert "Brig" in told
        assert "Nell" not in told
        assert client.delete("/users/ben/b").json() == {"deleted": 1}
        assert len(client.get("/documents").json()) == 1


def test_the_page_of_the_service_asks_for_the_token_and_nothing_else_is_open(
    served: Served,
) -> None:
    with (
        served("serve", text=TEXT, QRMEM_TOKEN="s3cret") as url,
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        described = client.get("/openapi.json").json()
        assert described["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
        assert all(
            {"HTTPBearer": []} in call["security"]
            for calls in described["paths"].values()
            for call in calls.values()
        )
        page = client.get("/docs")
        assert page.is_success
        for script in ("/static-offline-docs/swagger-ui-bundle.js", "/openapi.json"):
            assert script in page.text
            assert client.get(script).is_success
        paths = ("/status", "/documents", "/docs/", "/docsx", "/openapi.json/..", "/page/", "/")
        assert {client.get(path).status_code for path in paths} == {401}
        right = {"authorization": "Bearer s3cret"}
        assert client.get("/documents", headers=right).json()[0]["id"] == "note"


async def test_every_reply_has_a_type_and_is_of_it() -> None:
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        await memory.add({"id": "note", "text": TEXT, "metadata": {"year": 1833}})
        await memory.add_turn("user", "I live in Rome.", user="ann", session="one")
        app = api(memory, write=True)
        described = app.openapi()
        replies = {
            (method, path): call["responses"]
            for path, calls in described["paths"].items()
            for method, call in calls.items()
        }
        for key, reply in replies.items():
            assert reply["200"]["content"]["application/json"]["schema"], key
            refusal = {"$ref": "#/components/schemas/Refusal"}
            assert reply["4XX"]["content"]["application/json"]["schema"] == refusal, key

        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:

            async def send(method: str, path: str, at: str = "", **sent: Any) -> Any:
                reply = await client.request(method, at or path, **sent)
                assert reply.is_success, (path, reply.text)
                schema = replies[method, path]["200"]["content"]["application/json"]["schema"]
                whole = {**schema, "components": described["components"]}
                Draft202012Validator(whole).validate(reply.json())
                return reply.json()

            asked = {"question": "Whom did Ada Lovelace meet?"}
            assert (await send("post", "/ask", json=asked))["citations"]
            assert await send("post", "/search", json={"query": "Who met Babbage?"})
            assert (await send("post", "/recall", json={"prompt": "Where do I live?"}))["tokens"]
            (turn,) = await send("get", "/turns", "/turns?session=one&user=ann")
            assert turn["text"] == "I live in Rome."
            assert await send("get", "/turns", "/turns?user=bob") == []
            for path in ("/documents", "/entities", "/trails", "/facts", "/turns"):
                assert await send("get", path), path
            for path in ("/status", "/usage", "/merges", "/trees"):
                await send("get", path)
            assert await send("get", "/trails", "/trails?brief=true")
            assert await send("get", "/trails/{id}", "/trails/last")
            assert await send("get", "/documents/{id}", "/documents/note")
            (segment,) = await send("get", "/segments", "/segments?document=note")
            assert await send("post", "/segments", json={"ids": [segment["id"]]})
            assert await send("post", "/trees/nodes", json={"keys": ["none"]}) == []
            assert await send("get", "/entities/{name}", "/entities/Ada Lovelace")
            assert (await send("get", "/around/{name}", "/around/Ada Lovelace"))["segments"]
            pair = {"first": "Ada Lovelace", "second": "Charles Babbage", "same": False}
            assert await send("post", "/merges", json=pair) == pair
            await send("post", "/documents", json={"id": "other", "text": "Ann met Bob."})
            await send("delete", "/documents/{id}", "/documents/other")
            await send("post", "/turns", json={"role": "user", "text": "Hello."})
            assert await send("delete", "/users/{user}", "/users/ann") == {"deleted": 1}
