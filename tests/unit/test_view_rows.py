import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmem.graph.view_rows import Read, Rows, readings, rows_of
from qrmem.graphstore.protocol import FactRow, MentionRow
from qrmem.text.names import Occurrences
from qrmem.types import Contribution, Mention, Segment, Statement

TEXT = "Captain Ahab lost a leg.\nAhab hunts Moby\nDick, said Starbuck to the captain."


def segment(text: str = TEXT, index: int = 0) -> Segment:
    return Segment(f"s{index}", "d", index, 0, len(text), text, 10)


def rows(
    *mentions: Mention,
    statements: tuple[Statement, ...] = (),
    accepted: tuple[str, ...] = (),
    text: str = TEXT,
) -> Rows:
    made = Contribution("s0", "extraction", mentions, statements)
    return rows_of(Read(segment(text), (made,), accepted))


def test_forms_are_counted_outside_of_longer_forms() -> None:
    found = rows(Mention("Captain Ahab", "PERSON", ("Captain Ahab", "Ahab")))
    assert [row.forms for row in found.mentions] == [(("Ahab", 1),), (("Captain Ahab", 1),)]


def test_an_alias_that_the_rules_know_is_a_name_of_its_own_and_any_other_form_is_not() -> None:
    found = rows(Mention("Captain Ahab", "PERSON", ("Captain Ahab", "Ahab", "leg")))
    assert [row.name for row in found.mentions] == ["ahab|PERSON", "captain ahab|PERSON"]
    assert dict(found.mentions[1].forms) == {"Captain Ahab": 1, "leg": 1}


def test_a_name_is_found_in_any_case_and_across_lines() -> None:
    found = rows(Mention("moby dick"), Mention("STARBUCK"))
    assert {form for row in found.mentions for form, _ in row.forms} == {"Moby Dick", "Starbuck"}


def test_an_entity_that_does_not_occur_is_dropped_with_its_facts() -> None:
    found = rows(
        Mention("Ahab"),
        Mention("Ishmael"),
        Mention("Ahab II"),
        statements=(Statement("Ahab", "Ishmael", "knows"),),
    )
    assert [row.name for row in found.mentions] == ["ahab|"]
    assert found.facts == []


def test_part_of_a_word_is_no_occurrence() -> None:
    assert rows(Mention("Star"), Mention("hab"), Mention("leg")).mentions == [
        MentionRow("s0", "leg|", (("leg", 1),))
    ]


def test_an_ending_may_follow_a_longer_name() -> None:
    found = rows(Mention("Мария"), Mention("Goethe"), text="Мариям и Goethes Haus.")
    assert [row.name for row in found.mentions] == ["goethe|", "мария|"]


def test_names_in_scripts_without_spaces_are_found() -> None:
    assert rows(Mention("孔子"), text="昨天孔子说话。").mentions[0].forms == (("孔子", 1),)


def test_the_longest_form_that_occurs_names_a_mention_whose_name_does_not() -> None:
    found = rows(Mention("Captain Ahab of the Pequod", "PERSON", ("Ahab", "the captain")))
    assert len(found.mentions) == 1
    assert dict(found.mentions[0].forms).keys() == {"Ahab", "the captain"}


def test_within_a_segment_a_typed_and_an_untyped_name_are_one() -> None:
    for named in (
        (Mention("Ahab"), Mention("Ahab", "person")),
        (Mention("Ahab", "PERSON"), Mention("Ahab")),
        (Mention("Ahab"), Mention("Ahab", "person"), Mention("Ahab", "Person")),
    ):
        assert [row.name for row in rows(*named).mentions] == ["ahab|PERSON"]
    both = rows(Mention("Ahab", "SHIP"), Mention("Ahab", "PERSON"), Mention("Ahab"))
    assert [row.name for row in both.mentions] == ["ahab|", "ahab|PERSON", "ahab|SHIP"]


def test_the_end_of_a_fact_that_occurs_becomes_a_mention() -> None:
    found = rows(Mention("Ahab"), statements=(Statement("Ahab", "starbuck", "is heard by"),))
    assert found.facts == [FactRow("s0", 0, "ahab|", "starbuck|", "is heard by")]
    assert [row.name for row in found.mentions] == ["ahab|", "starbuck|"]


def test_statements_have_the_dates_of_their_text_and_of_their_reading() -> None:
    text = "Ann has worked at Acme since 2019. Ann likes Bob."
    read = Contribution(
        "s0",
        "extraction",
        statements=(
            Statement("Ann", "Acme", "has worked at"),
            Statement("Ann", "Bob", "likes", valid_from="2020", valid_until="2019"),
            Statement("Bob", "Ann", "is liked by", valid_until="soon"),
        ),
    )
    found = rows_of(Read(segment(text), (read,), said_at="2026-05-03"))
    times = [(row.said_at, row.valid_from, row.valid_until) for row in found.facts]
    assert times == [("2026-05-03", "2019", ""), ("2026-05-03", "2020", ""), ("2026-05-03", "", "")]


def test_an_edit_changes_or_drops_a_statement_and_leaves_the_numbers() -> None:
    text = "Ann, Bob, Cy."
    stated = [Statement("Ann", "Bob", "likes"), Statement("Ann", "Cy", "likes")]
    read = Contribution("s0", "extraction", statements=tuple(stated))
    dropped = Contribution("s0", "edit", asked=("ann", "bob", "likes"))
    changed = Contribution(
        "s0", "edit", (), (Statement("Ann", "Cy", "hates", "", "2026"),), (), ("ann", "cy", "likes")
    )
    before = Read(segment(text), (read,))
    after = Read(segment(text), (read,), (), (dropped, changed))
    (row,) = rows_of(after).facts
    assert (row.n, row.description, row.valid_from) == (1, "hates", "2026")
    assert before.digest != after.digest


def test_a_fact_finds_its_end_by_any_form() -> None:
    found = rows(
        Mention("Captain Ahab", "PERSON", ("Captain Ahab", "Ahab")),
        Mention("Moby Dick"),
        statements=(
            Statement("ahab", "Moby Dick", "hunts"),
            Statement("Captain Ahab", "Moby  Dick", "hunts"),
            Statement("Ahab", "Captain Ahab", "is"),
            Statement("Ahab", "Moby Dick", "  "),
        ),
    )
    assert [(fact.head, fact.tail, fact.description) for fact in found.facts] == [
        ("ahab|PERSON", "moby dick|", "hunts"),
        ("captain ahab|PERSON", "moby dick|", "hunts"),
        ("ahab|PERSON", "captain ahab|PERSON", "is"),
    ]


def test_additions_of_a_refused_question_are_left_out() -> None:
    mentions = (Mention("Ahab"), Mention("leg", question="What was lost?"))
    statements = (
        Statement("Ahab", "leg", "lost", question="What was lost?"),
        Statement("Ahab", "Starbuck", "knows"),
    )
    refused = rows(*mentions, statements=statements)
    assert [fact.description for fact in refused.facts] == ["knows"]
    assert refused.questions == []
    taken = rows(*mentions, statements=statements, accepted=("What was lost?",))
    assert [fact.description for fact in taken.facts] == ["lost", "knows"]
    assert [(q.text, q.segment_id) for q in taken.questions] == [("What was lost?", "s0")]
    assert {row.name: row.question for row in taken.mentions}["leg|"] == "What was lost?"


def test_the_index_counts_the_terms_of_the_text() -> None:
    (counts,) = rows().index.values()
    assert counts["ahab"] == 2


def test_a_segment_that_was_not_read_is_indexed_all_the_same() -> None:
    found = rows_of(Read(segment()))
    assert found.mentions == []
    assert len(found.index) == 1
    assert found.merged.keys() == {"s0"}


def test_only_the_reading_with_the_questions_accepted_now_counts() -> None:
    segments = [segment(index=0), segment(index=1)]
    first = Contribution("s0", "extraction", questions=("Who lost a leg?",))
    twin = Contribution("s1", "extraction", questions=("Who lost a leg?", "Where is the ship?"))
    stale = Contribution("s1", "supplement", (Mention("leg"),), asked=twin.questions)
    fitting = Contribution("s1", "supplement", (Mention("Ahab"),), asked=("Where is the ship?",))
    found = readings(segments, [first, twin, stale, fitting])
    assert [read.accepted for read in found] == [("Who lost a leg?",), ("Where is the ship?",)]
    assert found[1].contributions == (twin, fitting)
    alone = readings(segments[1:], [twin, stale, fitting])
    assert alone[0].contributions == (twin, stale)


def test_a_digest_tells_other_contributions_apart() -> None:
    made = Contribution("s0", "extraction", (Mention("Ahab"),))
    digests = {
        Read(segment()).digest,
        Read(segment(), (made,)).digest,
        Read(segment(), (made,), ("Who?",)).digest,
    }
    assert len(digests) == 3
    assert Read(segment(), (made,)).digest in digests


@pytest.mark.parametrize("name", ["", "  ", "?!", "|"])
def test_a_name_without_a_letter_is_no_name(name: str) -> None:
    assert rows(Mention(name), text="What?! | Yes.").mentions == []


@given(st.text("aAbBéß İ\n.", max_size=30), st.text("aAbBéß İ\n.", min_size=1, max_size=4))
def test_what_is_spelled_stands_in_the_text(text: str, name: str) -> None:
    spelled = Occurrences(text).spelled(name)
    if spelled is not None:
        assert spelled in " ".join(text.split())
        assert Occurrences(text).counted([spelled])[spelled] >= 1


@pytest.mark.parametrize(
    ("description", "since"),
    [
        ("works for", "2019"),
        ("manages the Oslo office of", ""),
        ("leads the workshop of", ""),
        ("is a colleague at", ""),
    ],
)
def test_a_date_is_only_that_of_the_sentence_that_says_so(description: str, since: str) -> None:
    text = (
        "Ann Miller works for Acme Corp since 2019. Bob Stone works for Acme Corp."
        " Ann Miller manages the Oslo office of Acme Corp. She leads a workshop there."
    )
    stated = Statement("Ann Miller", "Acme Corp", description)
    names = Mention("Ann Miller"), Mention("Acme Corp")
    (fact,) = rows(*names, statements=(stated,), text=text).facts
    assert fact.valid_from == since
