from qrmem.agents.search.query_extraction import Overlay, overlaid
from qrmem.graphstore.protocol import NameRow
from qrmem.types import Contribution, Fact, Mention, Segment, Statement

SEGMENT = Segment("s7", "d", 7, 0, 0, "Ranieri praised Claudio Ranieri's aide Paolo Benetti.", 9)
QUESTION = "Whom did Ranieri praise?"


def oriented(*mentions: Mention, statements: tuple[Statement, ...] = ()) -> list[Contribution]:
    return [Contribution("s7", "oriented", mentions, statements, asked=(QUESTION,))]


NAMES = [
    NameRow("claudio ranieri|PERSON", "claudio ranieri|PERSON", (("Claudio Ranieri", 3),)),
    NameRow("paolo|PERSON", "paolo|PERSON", (("Paolo", 3),)),
    NameRow("rome|PLACE", "rome|PLACE", (("Rome", 3),)),
]


def test_nothing_is_added_by_default() -> None:
    overlay = Overlay()
    assert overlay.entities_in("s7") == ()
    assert overlay.segments_with("a") == []
    assert overlay.facts(["a"]) == []


def test_known_names_keep_their_entity_and_an_alias_joins_it() -> None:
    found = overlaid(
        [SEGMENT], oriented(Mention("Claudio Ranieri", "PERSON"), Mention("Ranieri")), NAMES
    )
    assert found.entities_in("s7") == ("claudio ranieri|PERSON",)
    assert found.segments_with("claudio ranieri|PERSON") == ["s7"]
    assert found.entities == {}


def test_a_new_name_is_an_entity_of_its_own_or_joins_a_stored_one() -> None:
    found = overlaid([SEGMENT], oriented(Mention("aide", "ROLE")), NAMES)
    assert found.entities_in("s7") == ("aide|ROLE",)
    assert found.entities["aide|ROLE"].name == "aide"
    found = overlaid([SEGMENT], oriented(Mention("Paolo Benetti", "PERSON")), NAMES)
    assert found.entities_in("s7") == ("paolo|PERSON",)
    assert found.said == {"paolo|PERSON": "Paolo Benetti"}


def test_facts_are_found_from_either_end() -> None:
    statement = Statement("Ranieri", "Paolo Benetti", "praised", question=QUESTION)
    found = overlaid(
        [SEGMENT], oriented(Mention("Ranieri", "PERSON"), statements=(statement,)), NAMES[:1]
    )
    fact = Fact("claudio ranieri|PERSON", "paolo benetti|", "praised", "s7", QUESTION)
    assert found.facts(["claudio ranieri|PERSON"]) == [fact]
    assert found.facts(["paolo benetti|"]) == [fact]
    assert found.facts(["rome|PLACE"]) == []


def test_only_oriented_contributions_count() -> None:
    plain = Contribution("s7", "extraction", (Mention("Ranieri"),))
    assert overlaid([SEGMENT], [plain], NAMES).entities_in("s7") == ()
