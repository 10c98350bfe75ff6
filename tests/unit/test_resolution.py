from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmem.graph.affected_names import says_who
from qrmem.graph.name_parents import NameUse, parent_of
from qrmem.graph.resolution import Resolution, candidates_of, resolution_of, summed
from qrmem.text.names import differ_in_number, name_key, split_key
from qrmem.types import MergeDecision


def use(surface: str, type: str = "", count: int = 1) -> NameUse:
    return NameUse(name_key(surface, type), surface, count)


def resolve(names: Iterable[NameUse], *decisions: Any, **similar: Any) -> Resolution:
    near = candidates_of(uses := summed(names))
    parents = {key: parent_of(uses, key, *near(key)) for key in uses}
    return resolution_of(uses, parents, *decisions, **similar)


def are_one(found: Resolution, *names: NameUse) -> bool:
    return len({found.names[name.key] for name in names}) == 1


RANIERI = use("Ranieri", "PERSON", 9)
CLAUDIO = use("Claudio Ranieri", "PERSON", 3)
MARY = use("Mary", "PERSON", 30)
MARY_BENNET = use("Mary Bennet", "PERSON", 4)
MARY_KING = use("Mary King", "PERSON", 2)
MR_DARCY = use("Mr. Darcy", "PERSON", 270)
FITZWILLIAM = use("Fitzwilliam Darcy", "PERSON", 40)


def test_an_untyped_name_joins_the_only_typed_one() -> None:
    paris, place = use("Paris"), use("Paris", "PLACE")
    found = resolve([paris, place])
    assert are_one(found, paris, place)
    assert [(m.name, m.into, m.reason) for m in found.merges] == [("Paris", "Paris", "exact")]


def test_equal_names_of_two_known_types_stay_apart_and_an_untyped_one_stays_its_own() -> None:
    names = [use("Paris"), use("Paris", "PLACE"), use("Paris", "PERSON")]
    assert len(resolve(names).entities) == 3


def test_a_surname_joins_the_only_full_name() -> None:
    found = resolve([RANIERI, CLAUDIO])
    assert are_one(found, RANIERI, CLAUDIO)
    (entity,) = found.entities.values()
    assert (entity.key, entity.name, entity.type) == (CLAUDIO.key, "Claudio Ranieri", "PERSON")


def test_a_first_name_that_fits_two_people_joins_neither() -> None:
    assert are_one(resolve([MARY, MARY_BENNET]), MARY, MARY_BENNET)
    assert len(resolve([MARY, MARY_BENNET, MARY_KING]).entities) == 3


def test_a_surname_with_a_title_joins_the_only_fitting_person() -> None:
    found = resolve([MR_DARCY, FITZWILLIAM, use("Georgiana Wickham", "PERSON")])
    assert are_one(found, MR_DARCY, FITZWILLIAM)
    elizabeth = use("Elizabeth Darcy", "PERSON")
    found = resolve([MR_DARCY, FITZWILLIAM, elizabeth])
    assert are_one(found, MR_DARCY, FITZWILLIAM)
    assert not are_one(found, MR_DARCY, elizabeth)


def test_titles_of_two_people_do_not_meet_in_a_name_that_fits_both() -> None:
    miss = use("Miss Darcy", "PERSON", 20)
    assert not are_one(resolve([MR_DARCY, FITZWILLIAM, miss]), MR_DARCY, miss)


def test_husband_and_wife_stay_two_and_their_bare_surname_a_third() -> None:
    names = [use("Mr. Bennet", "PERSON"), use("Mrs. Bennet", "PERSON"), use("Bennet", "PERSON")]
    assert len(resolve(names).entities) == 3


def test_a_name_joins_what_all_its_meanings_are_forms_of() -> None:
    middle = use("John Smith", "PERSON")
    names = [
        use("Smith", "PERSON"),
        middle,
        use("John Adam Smith", "PERSON"),
        use("John Brian Smith", "PERSON"),
    ]
    found = resolve(names)
    assert are_one(found, *names[:2])
    assert len(found.entities) == 3
    found = resolve(names[:3])
    assert {found.names[n.key] for n in names[:3]} == {names[2].key}
    assert {m.into for m in found.merges} == {"John Adam Smith"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (use("7 kilometres"), use("77 kilometres")),
        (use("Henry IV", "PERSON"), use("Henry V", "PERSON")),
        (use("Henry", "PERSON"), use("Henry V", "PERSON")),
        (use("Apollo 11", "WORK"), use("Apollo 13", "WORK")),
        (use("May", "DATE"), use("May 1990", "DATE")),
        (use("York", "PLACE"), use("New York", "PLACE")),
        (use("Wyoming"), use("Wyoming State Senate")),
        (use("Nigeria", "PLACE"), use("Lagos, Nigeria", "PLACE")),
        (use("Lincoln", "PERSON"), use("Lincoln Park", "PLACE")),
        (use("18th"), use("18")),
    ],
)
def test_different_things_stay_apart(first: NameUse, second: NameUse) -> None:
    assert not are_one(resolve([first, second]), first, second)
    alike = [(first.key, second.key, 0.99)]
    if differ_in_number(first.surface, second.surface):
        assert not are_one(resolve([first, second], similar=alike), first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (use("BBC", "ORGANISATION"), use("British Broadcasting Corporation", "ORGANISATION")),
        (use("USA"), use("United States of America", "PLACE")),
        (use("J. R. Whitlow", "PERSON"), use("John Robert Whitlow", "PERSON")),
        (use("Zoë"), use("Zoe")),
        (use("U.S. Navy"), use("US Navy")),
        (use("Acme", "ORGANISATION"), use("Acme Inc.", "ORGANISATION")),
        (use("Мария", "PERSON"), use("Мария Иванова", "PERSON")),
    ],
)
def test_names_of_one_thing_meet(first: NameUse, second: NameUse) -> None:
    assert are_one(resolve([first, second]), first, second)


def test_two_types_that_fit_one_untyped_name_do_not_meet_in_it() -> None:
    person, place, fuller = use("Lincoln", "PERSON"), use("Lincoln", "PLACE"), use("Mr. Lincoln")
    found = resolve([person, place, fuller])
    assert not are_one(found, person, place)


def test_the_canonical_name_is_the_longest_unless_it_is_rare() -> None:
    long = use("Captain Ahab Peleg", "PERSON", 3)
    found = resolve([use("Ahab", "PERSON", 20), long])
    assert [e.name for e in found.entities.values()] == ["Captain Ahab Peleg"]
    same = MergeDecision("Ahab", "Captain Ahab Peleg", same=True)
    found = resolve([use("Ahab", "PERSON", 400), long], [same])
    assert [e.name for e in found.entities.values()] == ["Ahab"]


def test_a_users_decision_unites_names_that_no_rule_would() -> None:
    dick, whale = use("Moby Dick"), use("the White Whale")
    found = resolve([dick, whale], [MergeDecision("Moby Dick", "White Whale", same=True)])
    assert are_one(found, dick, whale)
    assert [m.reason for m in found.merges] == ["user"]


def test_a_users_decision_separates_names_that_a_rule_would_unite() -> None:
    apart = [MergeDecision("Claudio Ranieri", "Ranieri", same=False)]
    assert not are_one(resolve([RANIERI, CLAUDIO], apart), RANIERI, CLAUDIO)
    typed, untyped = use("Paris", "PLACE"), use("Paris")
    apart = [MergeDecision(typed.key, untyped.key, same=False)]
    assert not are_one(resolve([typed, untyped], apart), typed, untyped)


def test_a_refused_alias_is_not_pushed_to_another_name() -> None:
    refused = [MergeDecision("Mary", "Mary Bennet", same=False)]
    found = resolve([MARY, MARY_BENNET, MARY_KING], refused)
    assert len(found.entities) == 3


def test_names_united_by_the_user_take_aliases_of_either() -> None:
    fuller = use("Fitzwilliam Darcy", "PERSON", 40)
    lover = use("Elizabeth's lover")
    found = resolve(
        [MR_DARCY, fuller, lover], [MergeDecision("Elizabeth's lover", "Mr. Darcy", same=True)]
    )
    assert are_one(found, MR_DARCY, fuller, lover)


def test_names_united_by_the_user_keep_their_aliases() -> None:
    nell, short, miss = use("Nell Sayle", "PERSON", 9), use("Nell", "PERSON", 42), use("Miss Sayle")
    ellen = use("Ellen Sayle", "PERSON")
    found = resolve(
        [nell, short, miss, ellen], [MergeDecision("Nell Sayle", "Miss Sayle", same=True)]
    )
    assert are_one(found, nell, short, miss)
    assert not are_one(found, nell, ellen)


def test_similar_names_meet_once_around_the_most_used_one() -> None:
    names = [use("Kyiv", "PLACE", 9), use("Kiev", "PLACE", 5), use("Kijów", "PLACE", 2)]
    kyiv, kiev, kijow = (name.key for name in names)
    found = resolve(names, similar=[(kyiv, kiev, 0.9), (kijow, kyiv, 0.88)])
    assert len(found.entities) == 1
    chained = resolve(names, similar=[(kyiv, kiev, 0.9), (kijow, kiev, 0.88)])
    assert not are_one(chained, names[0], names[2])
    assert {m.reason for m in chained.merges} == {"similar"}


def test_a_title_alone_stands_for_no_longer_name() -> None:
    dame, place = use("Dame"), use("University of Notre Dame")
    assert not are_one(resolve([dame, place]), dame, place)


def test_similar_names_of_other_types_stay_apart() -> None:
    names = [use("Kyiv", "PLACE"), use("Kiev", "WORK")]
    found = resolve(names, similar=[(names[0].key, names[1].key, 0.99)])
    assert len(found.entities) == 2


WORDS = st.sampled_from(
    [
        "Mary",
        "John",
        "Smith",
        "Bennet",
        "Mr.",
        "Mrs.",
        "Miss",
        "Dr.",
        "Sir",
        "Dame",
        "Captain",
        "II",
        "7",
        "77",
        "Paris",
        "J.",
        "New",
    ]
)
TYPES = st.sampled_from(["", "PERSON", "PLACE", "NUMBER"])
USES = st.lists(
    st.builds(
        use, st.lists(WORDS, min_size=1, max_size=4).map(" ".join), TYPES, st.integers(1, 300)
    ),
    max_size=14,
)
DECISIONS = st.lists(
    st.builds(
        MergeDecision,
        WORDS,
        st.lists(WORDS, min_size=1, max_size=2).map(" ".join),
        same=st.booleans(),
    ),
    max_size=3,
)


@given(USES, DECISIONS, st.randoms())
def test_order_of_arrival_does_not_matter(
    names: list[NameUse], decisions: list[MergeDecision], rng: Random
) -> None:
    shuffled, decided = names[:], decisions[:]
    rng.shuffle(shuffled)
    rng.shuffle(decided)
    assert resolve(shuffled, decided) == resolve(names, decisions)


@given(USES)
def test_every_name_has_one_entity_and_numbers_never_meet(names: list[NameUse]) -> None:
    found = resolve(names)
    assert found.names.keys() == {name.key for name in names}
    assert set(found.names.values()) == found.entities.keys()
    assert all(found.names[key] == key for key in found.entities)
    for merge in found.merges:
        assert not differ_in_number(merge.name, merge.into)
    kinds: dict[tuple[str, str], set[str]] = {}
    for key, entity in found.names.items():
        norm, kind = split_key(key)
        kinds.setdefault((entity, norm), set()).add(kind)
    assert all(len(found_kinds - {""}) <= 1 for found_kinds in kinds.values())


@given(USES, st.data())
def test_a_users_separation_always_holds(names: list[NameUse], data: st.DataObject) -> None:
    keys = sorted({name.key for name in names})
    if len(keys) < 2:
        return
    first = data.draw(st.sampled_from(keys))
    second = data.draw(st.sampled_from([key for key in keys if key != first]))
    found = resolve(names, [MergeDecision(first, second, same=False)])
    assert found.names[first] != found.names[second]
    found = resolve(names, [MergeDecision(first, second, same=True)])
    assert found.names[first] == found.names[second]


def people(*forms: tuple[str, int]) -> Resolution:
    return resolve([use(form, "PERSON", count) for form, count in forms])


def entity_of(found: Resolution, name: str) -> str:
    return found.entities[found.names[name_key(name, "PERSON")]].name


def test_a_bare_surname_is_the_man_of_that_surname_not_his_sister() -> None:
    found = people(("Mr. Brill", 90), ("Miss Brill", 19), ("Brill", 60), ("Anna Brill", 2))
    assert entity_of(found, "Brill") == entity_of(found, "Mr. Brill")
    assert entity_of(found, "Miss Brill") == entity_of(found, "Anna Brill")
    assert entity_of(found, "Brill") != entity_of(found, "Miss Brill")
    # Where she is named as often, the surname alone tells of neither.
    found = people(("Mr. Brill", 40), ("Mrs. Brill", 90), ("Brill", 6))
    assert len(found.entities) == 3


def test_two_frequent_names_do_not_meet_in_a_form_that_is_seen_once() -> None:
    forms = [("Ahab", 500), ("Captain Ahab", 60), ("Parsee", 40), ("Parsee Ahab", 1)]
    found = people(*forms)
    assert entity_of(found, "Captain Ahab") == entity_of(found, "Ahab")
    assert entity_of(found, "Parsee") == "Parsee"
    assert entity_of(found, "Parsee Ahab") == "Parsee Ahab"
    found = people(("Ahab", 9), ("Ahab Peleg", 1))
    assert len(found.entities) == 1, "neither is frequent"


def test_a_surname_means_the_person_who_is_named_far_more_often() -> None:
    found = people(("Joel Hexam", 60), ("Miles Hexam", 3), ("Mr. Hexam", 20), ("Hexam", 200))
    assert entity_of(found, "Hexam") == entity_of(found, "Mr. Hexam") == "Joel Hexam"
    found = people(("Joel Hexam", 6), ("Miles Hexam", 3), ("Hexam", 200))
    assert entity_of(found, "Hexam") == "Hexam"


def test_a_rank_and_its_bearer_are_one_and_a_lower_case_word_is_no_name() -> None:
    found = people(("Ahab", 400), ("Captain Ahab", 60))
    assert entity_of(found, "Captain Ahab") == "Ahab"
    coffin, captain = use("coffin", "", 30), use("Captain Coffin", "PERSON", 5)
    assert not are_one(resolve([coffin, captain]), coffin, captain)


def test_diminutives_join_a_commoner_but_no_lady() -> None:
    found = people(("Elizabeth", 40), ("Lizzy", 80), ("Eliza Marsh", 3), ("Elizabeth Marsh", 50))
    assert len(found.entities) == 1
    found = people(("Lady Catherine", 90), ("Cathy", 50), ("Catherine", 9))
    assert "Lady Catherine" not in (entity_of(found, "Cathy"), entity_of(found, "Catherine"))
    found = people(("Samuel Pell", 4), ("Samuel Orme", 4), ("Sam", 30))
    assert entity_of(found, "Sam") == "Sam"


def test_a_title_tells_of_two_who_share_a_fuller_name_by_chance() -> None:
    found = people(
        ("Lady Anne de Brey", 9), ("Anne de Brey", 2), ("Miss de Brey", 20), ("Lady Anne", 60)
    )
    assert entity_of(found, "Miss de Brey") == "Miss de Brey"
    found = people(("M. Carrel", 4), ("Henry Carrel", 9), ("Carrel", 90))
    assert entity_of(found, "M. Carrel") != entity_of(found, "Henry Carrel")


def person(surface: str, count: int) -> NameUse:
    return use(surface, "PERSON", count)


@pytest.mark.parametrize(
    ("names", "apart"),
    [
        # Who is Ford beside Mrs. Ford is her husband.
        ([use("Ford", count=8), person("Mrs. Ford", 6)], (0, 1)),
        # Nothing tells which of a family is the judge; his wife is not his daughter.
        ([person("Judge Ford", 9), use("Giles Ford", count=6), use("Anna Ford", count=9)], (0, 1)),
        ([person("Mrs. Ford", 9), person("Judge Ford", 9), use("Anna Ford", count=9)], (0, 2)),
        # Somebody would call Harry Giles a prince, too.
        ([person("Prince Harry", 20), use("Harry Giles", count=3)], (0, 1)),
        ([person("Prince Henry", 20), use("Thierry Henry", count=3)], (0, 1)),
        # Sir stands before a given name, and says that nobody calls him Mr. or Tom.
        ([person("Sir Walter Lyle", 9), use("William Walter Lyle", count=2)], (0, 1)),
        ([person("Mr. Lyle", 30), person("Sir Walter Lyle", 9)], (0, 1)),
        ([person("Dr. Hale", 9), person("Mrs. Hale", 2)], (0, 1)),
        # Somebody else is named in full with the rank.
        (
            [
                person("Nicholas", 110),
                person("Nicholas Ford", 21),
                person("Prince Nicholas", 7),
                person("Prince Nicholas Hale", 11),
            ],
            (0, 2),
        ),
        # An aunt has her niece's name, but a woman no man's; a miss is no thing.
        ([person("Aunt Clara", 7), person("Miss Clara", 24), person("Miss Clara Ford", 4)], (0, 2)),
        ([person("Comrade Ford", 14), person("Miss Ford", 1)], (0, 1)),
        ([person("Count Ford", 1), use("Ford", "WORK", 9), use("Ford", count=9)], (0, 1)),
        ([use("Val de Marne"), use("Valerie Ford"), use("Val")], (0, 2)),
        ([person("Miss Ford", 5), use("Ford Collection", count=6)], (0, 1)),
        # A rank is another man's if it is not rare, or if a man of the surname has a given name.
        ([person("Captain Ford", 8), person("General Ford", 9), person("Mrs. Ford", 5)], (0, 1)),
        ([person("Admiral Ford", 2), person("Mr. Ford", 90), use("Henry Ford", count=9)], (0, 1)),
        ([use("Jane", count=180), use("Jane Ford", count=19), use("Jane Hale", count=5)], (0, 1)),
        # Of two full names the more frequent one may have a given name's full form.
        ([person("Tom", 70), use("Tom Hale"), use("Thomas Ford", count=50)], (0, 1)),
    ],
)
def test_two_of_a_family_stay_apart(names: list[NameUse], apart: tuple[int, int]) -> None:
    first, second = (names[place] for place in apart)
    assert not are_one(resolve(names), first, second)


@pytest.mark.parametrize(
    ("names", "one"),
    [
        (
            [
                person("Ford", 20),
                person("Mr. Ford", 300),
                person("Mr. Giles Ford", 30),
                person("Mrs. Giles Ford", 14),
                person("Mrs. Ford", 4),
            ],
            (0, 1),
        ),
        (
            [person("Mr. Ford", 38), person("Mrs. Giles Ford", 2), use("Giles Ford", count=9)],
            (0, 2),
        ),
        ([person("Mr. Ford", 9), person("Rev. Philip Ford", 1)], (0, 1)),
        ([person("Mr. Ford", 13), person("Mr. Giles Ford", 7), use("Giles Ford")], (0, 1)),
        ([person("Miss Ford", 5), person("Miss Mary Ford", 6), person("Mr. Ford", 9)], (0, 1)),
        ([person("Prince Ivan", 20), person("Prince Ivan Ford", 3)], (0, 1)),
        ([person("Judge Ford", 9), use("Giles Ford", count=6)], (0, 1)),
        ([person("Mrs. Ford", 9), use("Anna Ford", count=9)], (0, 1)),
        ([use("Mandy Ford", count=2), use("Ford", count=9)], (0, 1)),
        ([person("Mr. Edward", 4), person("Mr. Edward Ford", 5)], (0, 1)),
        ([use("Jane", count=180), use("Jane Ford", count=90), use("Jane Hale")], (0, 1)),
        ([person("Mr. St. Clair", 2), person("Mr. Neville St. Clair", 9)], (0, 1)),
        ([person("Dr. Ford", 2), person("Doctor Ford", 1), person("Mrs. Ford", 8)], (0, 1)),
        ([person("Father Ford", 9), person("Mr. Ford", 2), use("Ford", count=9)], (0, 1)),
        # A capital at the head of a sentence is no other Ford.
        (
            [
                person("Mr. Ford", 22),
                use("Hitherto Ford"),
                use("James Ford", count=9),
                person("Mr. James Ford", 5),
            ],
            (0, 2),
        ),
        ([use("Tom", count=70), use("Tom Ford", count=14), person("Thomas", 7)], (0, 1)),
        ([person("Mrs. Ford", 5), person("Nurse Ford", 1)], (0, 1)),
        # Typed and untyped occurrences of a full name count together.
        (
            [
                person("Nicholas", 110),
                use("Nicholas Ford", count=18),
                person("Nicholas Ford", 3),
                use("Nicholas Hale"),
            ],
            (0, 2),
        ),
    ],
)
def test_a_person_of_a_family_is_known_by_shorter_names(
    names: list[NameUse], one: tuple[int, int]
) -> None:
    first, second = (names[place] for place in one)
    assert are_one(resolve(names), first, second)


def test_a_name_that_no_block_has_joins_the_only_name_there() -> None:
    asked, full = person("Miss Ford", 1), use("Jane Ford", count=19)
    uses = {asked.key: asked, full.key: full}
    assert parent_of(uses, asked.key, [full.key], ()) == full.key


def test_a_name_of_titles_alone_has_no_first_word() -> None:
    assert not says_who("count count st st|PLACE", "st st|")
