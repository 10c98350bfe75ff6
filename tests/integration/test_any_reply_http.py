"""Whatever a server replies, a segment ends `ok`, `partial` or `failed`; nothing is made up."""

import asyncio
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from servers.openai_server import OpenAIServer, in_thread

import qrmem
from qrmem.graphstore.protocol import EntityCount
from qrmem.types import AddReport

TEXT = "Ilse Brandt met Jonas Vey in Lund. Mara Holt of Port Ellen had written to both of them."
PIECES = [
    '{"entities": [',
    '"Ilse Brandt|PERSON"',
    '"Jonas Vey"',
    '"Count Nobody|PERSON"',
    '], "relations": [',
    '"Ilse Brandt|met|Jonas Vey"',
    '"Count Nobody|sank|Port Ellen"',
    '], "questions": [',
    '"Who met Jonas Vey?"',
    "]}",
    ",",
    "null",
    "12",
    "```json\n",
    "<think>",
    "</think>",
    "'",
    "\n",
    "Sure!",
]
REPLIES = st.one_of(
    st.binary(max_size=60).map(lambda given: given.decode("utf-8", "surrogateescape")),
    st.text(st.characters(), max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
)


async def read(url: str) -> tuple[AddReport, Sequence[EntityCount]]:
    settings = qrmem.Settings(model="test", base_url=url, embedder="none")
    async with qrmem.open("memory://", settings=settings) as memory:
        report = await memory.add({"id": "a", "text": TEXT})
        return report, await memory.entities(100)


def test_any_reply_at_all_leads_to_a_state_and_to_no_made_up_entity() -> None:
    said = [""]
    with in_thread(OpenAIServer(answer=lambda request: said[0])) as server:

        @settings(max_examples=40, deadline=None, derandomize=True, database=None)
        @given(REPLIES)
        def check(reply: str) -> None:
            said[0] = reply
            report, entities = asyncio.run(read(server.url))
            assert sum(report.states.values()) == 1
            assert report.states.keys() <= {"ok", "partial", "failed"}
            assert len(report.problems) == 1 - report.states.get("ok", 0)
            assert all(entity.name in TEXT for entity in entities)

        check()
