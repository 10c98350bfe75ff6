from typing import Literal

from graph.worlds import Part, memory

from qrmem.agents.search.query_extraction import Overlay, overlaid
from qrmem.types import Contribution, Fact, Mention, Segment, Statement

STORED = Part("Claudio Ranieri met Paolo in Rome.", (), ("Claudio Ranieri", "Paolo", "Rome"))
TEXT = "Ranieri praised Claudio Ranieri's aide Paolo Benetti to Pamela Orsini."
QUESTION = "Whom did Ranieri praise?"
RANIERI = "claudio ranieri|"


async def overlay_of(
    *mentions: Mention,
    statements: tuple[Statement, ...] = (),
    document: str = "doc",
    kind: Literal["oriented", "extraction"] = "oriented",
) -> Overlay:
    segments = [Segment("s7", document, 7, 0, len(TEXT), TEXT, 9)]
    made = Contribution("s7", kind, mentions, statements, asked=(QUESTION,))
    return await overlaid(await memory(STORED), "ns", segments, [made])


def test_nothing_is_added_by_default() -> None:
    overlay = Overlay()
    assert overlay.entities_in("s7") == ()
    assert overlay.segments_with("a") == []
    assert overlay.facts(["a"]) == []


async def test_known_names_keep_their_entity_and_an_alias_joins_it() -> None:
    found = await overlay_of(Mention("Claudio Ranieri"), Mention("Ranieri", "PERSON"))
    assert found.entities_in("s7") == (RANIERI,)
    assert found.segments_with(RANIERI) == ["s7"]
    assert found.entities == {}


async def test_a_name_joins_no_entity_that_its_document_does_not_name() -> None:
    found = await overlay_of(Mention("Ranieri", "PERSON"), document="another")
    assert found.entities_in("s7") == ("ranieri|PERSON",)
    assert found.entities["ranieri|PERSON"].name == "Ranieri"


async def test_a_new_name_is_an_entity_of_its_own_or_joins_a_stored_one() -> None:
    found = await overlay_of(Mention("aide", "ROLE"))
    assert found.entities_in("s7") == ("aide|ROLE",)
    assert found.entities["aide|ROLE"].name == "aide"
    found = await overlay_of(Mention("Paolo Benetti", "PERSON"))
    assert found.entities_in("s7") == ("paolo|",)
    assert found.said == {"paolo|": "Paolo Benetti"}


async def test_facts_are_found_from_either_end() -> None:
    statement = Statement("Ranieri", "Pamela Orsini", "praised", question=QUESTION)
    found = await overlay_of(Mention("Ranieri", "PERSON"), statements=(statement,))
    fact = Fact(RANIERI, "pamela orsini|", "praised", "s7", QUESTION)
    assert found.facts([RANIERI]) == [fact]
    assert found.facts(["pamela orsini|"]) == [fact]
    assert found.facts(["rome|"]) == []


async def test_only_oriented_contributions_count() -> None:
    found = await overlay_of(Mention("Ranieri", "PERSON"), kind="extraction")
    assert found.entities_in("s7") == ()
