"""Which statements later ones replace."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from qrmem.graph.superseding import (
    endings,
    held_by,
    holds,
    is_later,
    may_clash,
    place_of,
    with_time,
)
from qrmem.text.dates import start_of
from qrmem.types import Fact

SINGLE = {"LIVES_IN"}


def lives(tail: str, said: str = "", n: int = 0, *, since: str = "", until: str = "") -> Fact:
    return Fact("ann", tail, "lives in", f"s{n}", "", said, since, until, 0, "LIVES_IN")


def test_a_later_statement_of_a_single_type_ends_the_one_before() -> None:
    berlin, rome, oslo = lives("berlin", "2024", 1), lives("rome", "2026", 2), lives("oslo", "2025")
    found = endings([berlin, rome, oslo], SINGLE)
    assert {place: (e.by.tail, e.since) for place, e in found.items()} == {
        place_of(berlin): ("oslo", "2025"),
        place_of(oslo): ("rome", "2026"),
    }
    assert endings([berlin, rome, oslo], ()) == {}


def test_the_same_tail_an_earlier_or_undated_one_ends_nothing() -> None:
    assert not endings([lives("rome", "2025"), lives("rome", "2026", 1)], SINGLE)
    assert not endings([lives("rome", "2025"), lives("oslo", "", 1)], SINGLE)
    assert not endings([lives("rome", "2025"), lives("oslo", "2025", 1)], SINGLE)


def test_a_later_validity_counts_even_if_it_was_said_before() -> None:
    old, new = lives("rome", "2026", since="2010"), lives("oslo", "2025", 1, since="2020")
    assert endings([old, new], SINGLE)[place_of(old)].since == "2020"
    assert len(endings([old, new], SINGLE)) == 1


def test_a_statement_about_the_past_ends_nothing() -> None:
    assert not endings([lives("rome", "2025"), lives("oslo", "2026", 1, until="2019")], SINGLE)


def test_a_later_statement_with_an_end_ends_the_same_one_before() -> None:
    first, last = lives("rome", "2025-01"), lives("rome", "2026-05", 1, until="2025-06")
    ending = endings([first, last], SINGLE)[place_of(first)]
    assert (ending.since, ending.is_over) == ("2025-06", True)
    assert holds(first, ending, "2025-06-30")
    assert not holds(first, ending, "2025-07-01")
    assert with_time(first, ending) == "lives in (until 2025-06)"
    ahead = lives("rome", "2026-05", 1, until="2030")
    assert holds(first, endings([first, ahead], SINGLE)[place_of(first)], "2026-12")
    back = lives("rome", "2025-01", since="2025-08")
    assert not endings([back, last], SINGLE)
    for other in (lives("rome", "", 2), lives("rome", "2026-08", 2), lives("oslo", "2024", 2)):
        assert place_of(other) not in endings([other, last], SINGLE)
    assert endings([first, last], ()) == {}


def test_a_ring_is_cut() -> None:
    ring = [
        lives("a", "2023", 1, since="2010"),
        lives("b", "2021", 2, since="2020"),
        lives("c", "2022", 3),
    ]
    found = endings(ring, SINGLE)
    assert 1 <= len(found) < 3


dates = st.sampled_from(["", "2020", "2020-05", "2021", "2021-03-02", "2022"])
statements = st.lists(
    st.builds(lives, st.sampled_from("abc"), dates, st.integers(0, 50), since=dates, until=dates),
    unique_by=place_of,
    max_size=8,
)


@given(statements, st.data())
def test_no_statement_ends_itself_and_order_does_not_count(
    facts: list[Fact], data: st.DataObject
) -> None:
    judged = [(place_of(a), place_of(b)) for a in facts for b in facts if data.draw(st.booleans())]
    found = endings(facts, SINGLE, judged)
    for start in found:
        place, seen = start, set[object]()
        while place in found:
            assert place not in seen
            seen.add(place)
            place = place_of(found[place].by)
    mixed = data.draw(st.permutations(facts))
    assert endings(mixed, SINGLE, judged[::-1]) == found


def test_what_was_said_and_held_at_a_time() -> None:
    old, new = lives("rome", "2025-03-02T10:00"), lives("oslo", "2026-01-05", 1)
    assert held_by([old, new, lives("x")], "2025") == [old, lives("x")]
    ending = endings([old, new], SINGLE)[place_of(old)]
    assert holds(old, ending, "2025-12-31")
    assert not holds(old, ending, "2026-01-05")
    assert not holds(lives("x", since="2026"), None, "2025")
    assert not holds(lives("x", until="2024-12"), None, "2025")
    assert with_time(old, ending, "Ann lives in Oslo") == (
        "lives in (until 2026-01-05; then: Ann lives in Oslo)"
    )
    assert (
        with_time(lives("x", since="2024", until="2025"), None) == "lives in (from 2024 until 2025)"
    )


def test_only_near_statements_of_two_times_may_clash() -> None:
    likes = Fact("ann", "tea", "likes green tea", "s1", "", "2025", n=0)
    now = Fact("ann", "coffee", "likes black coffee", "s2", "", "2026", n=0)
    far = Fact("ann", "rome", "flew home", "s3", "", "2026", n=0)
    undated = Fact("ann", "milk", "likes milk", "s4")
    again = Fact("ann", "tea", "likes green tea", "s5", "", "2026", n=0)
    assert may_clash([now, likes, far, undated, again]) == [(likes, now)]


def test_a_plan_ends_nothing_before_its_day_and_is_not_undone_by_what_holds_until_then() -> None:
    rome, plan = lives("rome", "2026-01"), lives("oslo", "2026-05", 1, since="2027-01")
    bonn = lives("bonn", "2026-06", 2)
    found = endings([rome, plan, bonn], SINGLE)
    assert {place: (e.by.tail, e.since) for place, e in found.items()} == {
        place_of(rome): ("bonn", "2026-06"),
        place_of(bonn): ("oslo", "2027-01"),
    }
    assert holds(bonn, found[place_of(bonn)], "2026-12-31")
    assert not holds(plan, None, "2026-12-31")
    assert not holds(bonn, found[place_of(bonn)], "2027-01-01")
    assert holds(plan, found.get(place_of(plan)), "2027-01-01")
    assert with_time(plan, None, at="2026-12") == "lives in (not yet: from 2027-01)"
    later = lives("bonn", "2027-03", 3)  # said when the plan is over
    assert endings([plan, later], SINGLE)[place_of(plan)].by == later


@given(statements.map(lambda facts: [replace(f, valid_from="", valid_until="") for f in facts]))
def test_each_dated_statement_is_ended_by_the_first_later_one_of_another_tail(
    facts: list[Fact],
) -> None:
    for place, ending in endings(facts, SINGLE).items():
        (old,) = (fact for fact in facts if place_of(fact) == place)
        later = [f for f in facts if f.tail != old.tail and is_later(f, old)]
        first = min(later, key=lambda f: (start_of(f.said_at), place_of(f)))
        assert ending.by == first
    ended = {place_of(o) for o in facts for f in facts if f.tail != o.tail and is_later(f, o)}
    assert endings(facts, SINGLE).keys() == ended
