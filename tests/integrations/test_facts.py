"""Statements over REST and as tools of an agent: listed, decided on, each user's own."""

from typing import Any

import httpx
import pytest

import qrmem
from qrmem.errors import UsageError
from qrmem.integrations.toolset import Toolset, as_text
from qrmem.web.api import api

ANN = {
    "id": "ann",
    "text": "Ann Miller works at Acme since 2019.",
    "metadata": {"user": "ann", "date": "2026-01-03"},
}
BOB = {"id": "bob", "text": "Bob Stone met Ann Miller.", "metadata": {"user": "bob"}}


async def test_a_client_lists_edits_ends_deletes_and_restores_facts() -> None:
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        await memory.add([ANN, BOB])
        app = httpx.ASGITransport(app=api(memory, write=True))
        async with httpx.AsyncClient(transport=app, base_url="http://localhost") as client:

            async def listed(**options: Any) -> list[str]:
                found = await client.get("/facts", params={"entity": "Acme", **options})
                assert found.status_code == 200, found.text
                return [fact["id"] for fact in found.json()]

            (first, *_) = (await client.get("/facts", params={"user": "ann", "limit": 1})).json()
            assert (first["said_at"], first["valid_from"]) == ("2026-01-03", "2019")
            place = f"/facts/{first['id']}"
            edited = await client.patch(place, json={"text": "is employed by"})
            assert edited.json()["description"] == "is employed by"
            ended = await client.post(f"{place}/end", json={"on": "2025"})
            assert ended.json()["valid_until"] == "2025"
            assert first["id"] not in await listed()
            assert first["id"] in await listed(superseded=True)
            assert (await client.delete(place)).json() == {"deleted": first["id"]}
            assert first["id"] not in await listed(superseded=True)
            restored = await client.post(f"{place}/restore")
            assert restored.json() == first
            wrong = await client.post(f"{place}/end", json={"on": "2026-02-31"})
            assert (wrong.status_code, wrong.json()["error"].partition(":")[0]) == (
                400,
                "the end '2026-02-31' is not a date",
            )
            assert (await client.delete("/facts/none:0")).status_code == 404
            for path in ("/search", "/ask", "/recall"):
                asked = {"/search": "query", "/ask": "question", "/recall": "prompt"}[path]
                refused = await client.post(path, json={asked: "Who?", "as_of": "soon"})
                assert refused.json()["error"].startswith("as_of 'soon' is not a date")
        reading = httpx.ASGITransport(app=api(memory))
        async with httpx.AsyncClient(transport=reading, base_url="http://localhost") as client:
            assert (await client.delete(place)).status_code in (404, 405)


@pytest.mark.parametrize("number", ["9" * 5000, "\u0660", "00", "-0", "", "0:0"])
async def test_an_unknown_id_of_a_fact_is_reported(number: str) -> None:
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        await memory.add([ANN])
        (first, *_) = await memory.facts()
        app = httpx.ASGITransport(app=api(memory, write=True))
        async with httpx.AsyncClient(transport=app, base_url="http://localhost") as client:
            place = f"/facts/{first.segment_id}:{number}"
            assert (await client.patch(place, json={"text": "is at"})).status_code == 404
            assert (await client.delete(place)).status_code == 404
            long = await client.patch(f"/facts/{first.id}", json={"valid_from": "1" * 100_000})
            assert (long.status_code, len(long.text) < 300) == (400, True)


async def test_a_fact_said_by_hand_goes_through_what_every_text_goes_through() -> None:
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        await memory.add([ANN])
        (first, *_) = await memory.facts()
        edited = await memory.edit_fact(first.id, "is\x00employed\ud800\x1b[2J by")
        assert edited.description == "is employed\ufffd [2J by"
        with pytest.raises(UsageError, match="the text is empty"):
            await memory.edit_fact(first.id, "\x00")


async def test_an_agent_lists_and_decides_and_one_of_a_user_lists_the_users_alone() -> None:
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        await memory.add([ANN, BOB])
        tools = Toolset(memory)
        told = await as_text(tools, "list_facts", name="Acme")
        assert "(said 2026-01-03, from 2019)" in told
        assert '"Ann Miller works at Acme since 2019." (ann)' in told
        id = told.partition("[")[2].partition("]")[0]
        assert "until 2025" in await as_text(tools, "end_fact", id, on="2025")
        assert id not in await as_text(tools, "list_facts", name="Acme")
        assert id in await as_text(tools, "restore_fact", id)
        assert "is paid by" in await as_text(tools, "edit_fact", id, text="is paid by")
        assert "restore_fact" in await as_text(tools, "delete_fact", id)
        assert "error: no fact" in await as_text(tools, "delete_fact", "x:0")
        own = Toolset(memory, "bob")
        assert "Acme" not in await as_text(own, "list_facts")
        assert "(bob)" in await as_text(own, "list_facts")
        assert "there is no function 'delete_fact'" in await as_text(own, "delete_fact", id)
