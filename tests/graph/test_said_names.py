"""With a chat model the graph holds what the model said, and nothing else (property tests)."""

import json
import re
from typing import Any

from contract.reference import ReferenceStore
from fakes import build_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qrmem.agents import build_documents
from qrmem.answering.with_model import PromptedReasoner
from qrmem.config import Settings
from qrmem.graph.said_names import said_names
from qrmem.graph.segmenting import cut
from qrmem.graphstore.protocol import NamespaceInfo
from qrmem.graphstore.reads import names_called
from qrmem.text.names import normalise_name
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import ChatReply, ChatRequest, Contribution, Document, Mention

TOKENIZER = BuiltinTokenizer()
STORY = """Captain David Strykalski took command in March 1951. Strike hated the rain.

Strike and Cob Whitley walked to the Aphrodite, old Lover-Girl. Cob smiled at the ship.

Until May 1952 the ship flew to Mars. Bob Wills' machine failed. Bob Wills wept in Rome.
"""


class Notes:
    """Replies with fixed notes for each passage that holds a word."""

    name = "notes"

    def __init__(self, notes: dict[str, dict[str, list[str]]]) -> None:
        self.notes = notes
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        text = request.messages[-1].content
        if request.stage == "summary":
            return ChatReply(json.dumps({"summary": "A captain and his ship."}))
        passages = re.findall(r"<text (\d+)>\n(.*?)\n</text>", text, re.DOTALL)
        if passages:
            return ChatReply(
                json.dumps({"passages": [{"n": int(n), **self._of(t)} for n, t in passages]})
            )
        return ChatReply(json.dumps(self._of(text)))

    def _of(self, text: str) -> dict[str, list[str]]:
        nothing: dict[str, list[str]] = {"entities": [], "relations": [], "questions": []}
        return next(
            ({**nothing, **notes} for word, notes in self.notes.items() if word in text), nothing
        )


async def built(notes: dict[str, dict[str, list[str]]]) -> tuple[ReferenceStore, Any]:
    store = ReferenceStore()
    await store.create_namespace("ns", NamespaceInfo("ns", TOKENIZER.name, 24))
    document = Document(STORY, "Jinx Ship", "d", {"date": "1953-01-01"})
    await store.put_documents("ns", [(document, cut("d", document, TOKENIZER, 24))])
    made = PromptedReasoner(Notes(notes), TOKENIZER, mode="compact", settings=Settings())
    return store, await build_documents(build_of(store, made), ["d"])


async def named(store: ReferenceStore) -> dict[str, str]:
    return {e.name: e.type for e in await store.list_entities("ns", 100)}


async def test_no_entity_date_or_merge_comes_from_a_rule() -> None:
    store, outcome = await built(
        {
            "Captain David": {"entities": ["Strike|PERSON|Captain David Strykalski"]},
            "Aphrodite": {
                "entities": ["Strike|PERSON", "Aphrodite|THING|Lover-Girl"],
                "relations": ["Strike|walked to|Aphrodite"],
            },
            "machine": {
                "entities": ["Bob Wills|PERSON", "Bob Wills' machine|THING"],
                "relations": ["Bob Wills' machine|failed|Bob Wills"],
            },
        }
    )
    assert set(outcome.states) == {"ok"}
    assert await named(store) == {
        "Strike": "PERSON",
        "Aphrodite": "THING",
        "Bob Wills": "PERSON",
        "Bob Wills' machine": "THING",
    }, "neither Cob, Mars, Rome nor a date: no reply named them"
    facts = (await store.around("ns", ["bob wills|PERSON"])).facts
    assert [(fact.valid_from, fact.valid_until) for fact in facts] == [("", "")]


async def test_every_form_that_a_reply_gives_leads_to_its_entity() -> None:
    store, _ = await built(
        {
            "Captain David": {"entities": ["Captain David Strykalski|PERSON|Strike"]},
            "Aphrodite": {"entities": ["Strike|PERSON", "Aphrodite|THING|Lover-Girl"]},
            "machine": {"entities": ["Aphrodite|THING|the ship"]},
        }
    )
    for form, entity in (
        ("Strike", "Captain David Strykalski"),
        ("Captain David Strykalski", "Captain David Strykalski"),
        ("Lover-Girl", "Aphrodite"),
    ):
        rows = await names_called(store, "ns", [normalise_name(form)])
        assert {row.entity_name for row in rows} == {entity}, form


def said(*names: tuple[str, ...]) -> list[Contribution]:
    mentions = [Mention(name, "PERSON", (name, *forms)) for name, *forms in names]
    return [Contribution("s", "extraction", (one,), by_model=True) for one in mentions]


def test_the_name_that_is_used_most_is_the_name() -> None:
    called = said_names(said(("Strykalski", "Strike"), ("Strike",), ("Strike",), ("Cob",)))
    assert {key: one.name for key, one in called.items()} == {"strykalski|PERSON": "Strike"}


def test_two_frequent_names_are_not_joined_by_a_form_that_one_segment_gives() -> None:
    many = [("Ahab",), ("Ahab",), ("Ahab",), ("Parsee",), ("Parsee",)]
    assert said_names(said(*many, ("Parsee", "Ahab"))) == {}
    assert said_names(said(*many, ("Parsee", "Ahab"), ("Parsee", "Ahab"))) != {}


def test_a_thing_is_the_one_other_entity_of_its_name() -> None:
    things = [Mention("Aphrodite", kind, ("Aphrodite",)) for kind in ("THING", "WORK")]
    made = [Contribution("s", "extraction", (one,), by_model=True) for one in things]
    assert {one.type for one in said_names(made).values()} == {"WORK"}


WORDS = st.sampled_from(
    [
        "Strike",
        "Cob",
        "Aphrodite",
        "Rome",
        "Zanzibar",
        "the ship",
        "Jinx Ship",
        "A captain",
        "",
        "|",
    ]
)
ITEMS = st.lists(
    st.lists(WORDS | st.sampled_from(["PERSON", "THING", "x" * 10_000]), max_size=5).map("|".join),
    max_size=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(entities=ITEMS, relations=ITEMS)
async def test_whatever_a_model_replies_the_graph_holds_only_names_of_its_replies(
    entities: list[str], relations: list[str]
) -> None:
    notes = {"entities": entities, "relations": relations}
    store, outcome = await built({"Captain": notes, "Aphrodite": notes, "machine": notes})
    assert sum(outcome.states.values()) == len(await store.segments("ns", documents=["d"]))
    parts = {normalise_name(part) for item in (*entities, *relations) for part in item.split("|")}
    shown = normalise_name(f"{STORY} Jinx Ship A captain and his ship.")
    for name in await named(store):
        assert normalise_name(name) in parts
        assert normalise_name(name) in shown
    assert all(reason for _, _, reason in outcome.dropped)
