"""The reasoner without a model: what it reads out of a segment, and how it answers."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qrmem.answering.evidence import Evidence, query
from qrmem.answering.excerpts import absent_names
from qrmem.answering.local import LocalReasoner
from qrmem.errors import WindowTooSmall
from qrmem.extraction.sentence_reading import around, read, weight
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import AskContext, Mention, Passage, Reading, Reasoner, Segment, Verdict

HARBOUR = (
    "Tobias Hale gave Ellen Ward the Heron Key on Sunday. She put it in her pocket.\n"
    "Mirabel Stone built the Marigold at Hask Creek in 1884. He was proud of the iron cupboard."
)
TIDE = (
    "The Heron Key opened the iron cupboard in the Tide House. There were two ledgers in it. "
    "The railway from Dunmarrow to Skarrow is 77 kilometres long."
)


def segment(text: str, index: int = 0, document: str = "doc") -> Segment:
    return Segment(f"{document}{index}", document, index, 0, len(text), text, len(text.split()))


def passages(*texts: str) -> list[Passage]:
    return [Passage(f"S{i}", segment(text, i)) for i, text in enumerate(texts, 1)]


@pytest.fixture
def reasoner() -> LocalReasoner:
    return LocalReasoner(BuiltinTokenizer(), reserve=10)


async def ask(reasoner: LocalReasoner, question: str, *texts: str, force: bool = False) -> Verdict:
    return await reasoner.judge(AskContext(question), passages(*texts), force=force)


def test_it_is_a_reasoner(reasoner: LocalReasoner) -> None:
    assert isinstance(reasoner, Reasoner)
    assert reasoner.is_local
    assert reasoner.name


# --- reading -------------------------------------------------------------------------------------


async def test_the_sentence_in_which_two_names_meet_is_their_relation(
    reasoner: LocalReasoner,
) -> None:
    made = await reasoner.extract(segment(HARBOUR), Reading())
    said = {(s.head, s.tail): s.description for s in made.statements}
    given_key = "Tobias Hale gave Ellen Ward the Heron Key on Sunday."
    assert said["Tobias Hale", "Ellen Ward"] == given_key
    assert said["Ellen Ward", "Heron Key"] == given_key
    assert said["Marigold", "Hask Creek"].startswith("Mirabel Stone built the Marigold")
    assert ("Tobias Hale", "Marigold") not in said


@pytest.mark.parametrize(
    ("text", "head", "tail", "said"),
    [
        (
            "In the evening, Mirabel Stone visited Hask Creek, and nobody knew why.",
            *("Mirabel Stone", "Hask Creek", "Mirabel Stone visited Hask Creek"),
        ),
        (
            "The Marigold was built by Tobias Hale, who never saw it again.",
            *("Tobias Hale", "Marigold", "The Marigold was built by Tobias Hale"),
        ),
        (
            "Tobias Hale smiled when he heard that Mirabel Stone had come.",
            *("Tobias Hale", "Mirabel Stone"),
            "Tobias Hale smiled when he heard that Mirabel Stone had come.",
        ),
    ],
)
async def test_a_plain_clause_is_a_statement_with_a_direction(
    reasoner: LocalReasoner, text: str, head: str, tail: str, said: str
) -> None:
    made = await reasoner.extract(segment(text), Reading())
    assert [(s.head, s.tail, s.description) for s in made.statements] == [(head, tail, said)]


async def test_a_bare_surname_is_not_read_as_the_woman_of_that_name(
    reasoner: LocalReasoner,
) -> None:
    made = await reasoner.extract(segment("Miss Hale sat down. Then Hale left Skarrow."), Reading())
    assert {mention.name for mention in made.mentions} >= {"Miss Hale", "Hale"}


async def test_a_list_of_names_gives_few_statements(reasoner: LocalReasoner) -> None:
    people = ", ".join(f"Ann{letter} Bell{letter}" for letter in "abcdefghijklmnopqrst")
    made = await reasoner.extract(segment(f"In the hall stood {people}."), Reading())
    assert len(made.mentions) == 20
    assert len(made.statements) <= 6


async def test_descriptions_are_bounded_and_hold_both_names(reasoner: LocalReasoner) -> None:
    filler = "that went on and on without any end in sight " * 30
    made = await reasoner.extract(segment(f"They say Ellen Ward {filler} Tobias Hale."), Reading())
    (statement,) = made.statements
    assert len(statement.description) <= 300
    assert "Ellen Ward" in statement.description
    assert "Tobias Hale" in statement.description


async def test_rules_make_no_questions_and_relate_nothing_to_a_year(
    reasoner: LocalReasoner,
) -> None:
    text = "In 2020 Ellen Ward left Berlin. Mirabel Stone built the Marigold in 1884."
    made = await reasoner.extract(segment(text), Reading(question="Who built the Marigold?"))
    assert made.questions == ()
    ends = {(statement.head, statement.tail) for statement in made.statements}
    assert ends == {("Ellen Ward", "Berlin"), ("Mirabel Stone", "Marigold")}


async def test_entities_of_another_tagger_get_relations_too(reasoner: LocalReasoner) -> None:
    text = "the smith met Ellen Ward by the mill"
    made = await reasoner.extract(
        segment(text), Reading(tagged=(Mention("smith", "PERSON", ("smith",)),))
    )
    assert ("smith", "Ellen Ward") in {(s.head, s.tail) for s in made.statements}


@settings(deadline=None)
@given(st.text(max_size=300))
async def test_reading_any_text_invents_no_name(text: str) -> None:
    reasoner = LocalReasoner(BuiltinTokenizer())
    made = await reasoner.extract(segment(text), Reading())
    added = await reasoner.supplement(segment(text), Reading(), made, made.questions)
    names = {m.name for m in (*made.mentions, *added.mentions)}
    folded = " ".join(text.split()).casefold()
    assert all(name.casefold() in folded for name in names)
    assert all({s.head, s.tail} <= names for s in (*made.statements, *added.statements))


async def test_a_summary_holds_sentences_of_the_document_in_their_order(
    reasoner: LocalReasoner,
) -> None:
    texts = [
        f"Ellen Ward of Skarrow, keeper{n} of lamp{n}, sold{n} house{n} on road{n}. It rained."
        for n in range(60)
    ]
    made = await reasoner.summarise("The Walk", [segment(t, i) for i, t in enumerate(texts)])
    assert made.startswith("The Walk.")
    assert BuiltinTokenizer().count(made) <= 300
    seen = [int(word.rstrip(",").removeprefix("lamp")) for word in made.split() if "lamp" in word]
    assert seen == sorted(seen)
    assert len(seen) > 3


def test_the_weight_of_a_sentence_does_not_depend_on_the_order_of_a_set() -> None:
    sentence = read("Nothing was said of it.").sentences[0]
    likes = [[f"{letter}word{n}" for n in range(12)] for letter in "abcdefghijklmnop"]
    spread = Counter({word: n + 2 for words in likes for n, word in enumerate(words)})
    assert len({weight(sentence, frozenset(words), spread) for words in likes}) == 1


# --- answering -----------------------------------------------------------------------------------


async def test_what_is_shown_is_the_closest_sentences_called_passages(
    reasoner: LocalReasoner,
) -> None:
    verdict = await ask(
        reasoner, "How long is the railway from Dunmarrow to Skarrow?", HARBOUR, TIDE
    )
    assert verdict.is_answerable
    assert verdict.status == "passages"
    assert verdict.reason == "no chat model is set: closest passages"
    best = verdict.quotes[0]
    assert best.label == "S2"
    assert "The railway from Dunmarrow to Skarrow is 77 kilometres long." in best.text
    assert {best.text[a:b] for a, b in best.matches} == {"railway", "Dunmarrow", "Skarrow"}


async def test_an_excerpt_is_cut_at_sentences_round_what_matches(reasoner: LocalReasoner) -> None:
    filler = "It rained again on the long wet road to nowhere. "
    text = filler * 20 + "The Marigold struck the Grey Sow at noon. " + filler * 20
    verdict = await ask(reasoner, "What did the Marigold strike?", text)
    (quote, *_) = verdict.quotes
    assert "The Marigold struck the Grey Sow at noon." in quote.text
    assert quote.text in text
    assert quote.text.endswith(".")
    assert sum(len(q.text.split()) for q in verdict.quotes) <= 150
    assert len(verdict.quotes) <= 3


async def test_a_sentence_longer_than_all_excerpts_is_cut_round_what_matches(
    reasoner: LocalReasoner,
) -> None:
    text = "word " * 400 + "the Marigold struck the Grey Sow " + "word " * 400
    verdict = await ask(reasoner, "What did the Marigold strike?", text, force=True)
    assert "Marigold struck the Grey Sow" in verdict.quotes[0].text
    assert len(verdict.answer.split()) == 150


@pytest.mark.parametrize("heading", ["Chapter 7: Ambergris", "AMBERGRIS", "# What is ambergris"])
async def test_a_heading_is_never_shown_alone(reasoner: LocalReasoner, heading: str) -> None:
    text = f"{heading}\n\nNow this ambergris is a very curious substance found in whales."
    verdict = await ask(reasoner, "What is ambergris?", text, force=True)
    assert "curious substance" in verdict.answer
    assert not (await ask(reasoner, "What is ambergris?", heading, force=True)).is_answerable


async def test_a_table_of_contents_and_a_licence_come_last(reasoner: LocalReasoner) -> None:
    contents = "\n\n".join(f"Chapter {n}. The Whale and Ahab" for n in range(1, 12))
    licence = (
        "This licence grants permission to redistribute the whale. The trademark is not yours. "
        "There is no warranty, no liability, no refund and no royalty under this license. "
    ) * 2
    story = "In the last chapter the whale killed Ahab."
    question = "In which chapter did the whale kill Ahab?"
    verdict = await ask(reasoner, question, contents, licence, story)
    assert [quote.label for quote in verdict.quotes] == ["S3"]
    assert (await ask(reasoner, question, contents, licence, force=True)).is_answerable


async def test_an_irregular_form_meets_its_verb(reasoner: LocalReasoner) -> None:
    verdict = await ask(
        reasoner, "Which reef did the Marigold strike?", "The Marigold struck a reef, the Grey Sow."
    )
    assert verdict.is_answerable


async def test_missing_parts_are_reported(reasoner: LocalReasoner) -> None:
    verdict = await ask(reasoner, "How much did the elephant of Nobody Else weigh?", HARBOUR, TIDE)
    assert not verdict.is_answerable
    assert (verdict.answer, verdict.choice) == ("", None)
    assert "nothing read so far mentions 'elephant'" in verdict.reason


async def test_a_long_missing_word_is_reported_once(reasoner: LocalReasoner) -> None:
    verdict = await ask(reasoner, "谁教怪物读书？", HARBOUR)
    assert verdict.reason.count("谁教怪物读书") == 1


async def test_without_any_match_even_force_shows_nothing(reasoner: LocalReasoner) -> None:
    for texts in ([HARBOUR], []):
        verdict = await ask(reasoner, "Which violin concerto was played?", *texts, force=True)
        assert not verdict.is_answerable
        assert verdict.quotes == ()


async def test_code_that_defines_what_is_asked_for_comes_first(reasoner: LocalReasoner) -> None:
    uses = Passage("S1", segment("read_page() then read_page() again; read_page()."), "a.py")
    defines = Passage("S2", segment("def read_page(path):\n    return path.read_text()", 1), "b.py")
    verdict = await reasoner.judge(AskContext("Where is read_page defined?"), [uses, defines])
    assert verdict.quotes[0].label == "S2"


@pytest.mark.parametrize(
    ("question", "absent"),
    [
        ("Who is Captain Zorblax?", ["Captain Zorblax"]),
        ("Did Mr. Smith marry Ellen Ward?", ["Mr. Smith"]),
        ("Where did Elen Warde go?", []),
        ("Where is the Iron Cupboard?", []),
    ],
)
def test_a_name_that_occurs_nowhere_is_reported(question: str, absent: list[str]) -> None:
    assert absent_names(question, [HARBOUR, TIDE, "The smith was old."]) == absent


async def test_the_option_that_the_text_supports_is_chosen(reasoner: LocalReasoner) -> None:
    context = AskContext(
        "Where did Mirabel Stone build the Marigold?", ("the Tide House", "Hask Creek", "Dunmarrow")
    )
    verdict = await reasoner.judge(context, passages(TIDE, HARBOUR))
    assert (verdict.choice, verdict.answer) == (1, "Hask Creek")
    assert verdict.quotes[0].label == "S2"
    assert verdict.quotes[0].text in HARBOUR


async def test_options_that_nothing_supports_are_not_chosen_even_if_forced(
    reasoner: LocalReasoner,
) -> None:
    context = AskContext("What was baked?", ("a rhubarb tart", "a plum cake"))
    for texts in ((), ("Nobody came.",)):
        for force in (False, True):
            verdict = await reasoner.judge(context, passages(*texts), force=force)
            assert (verdict.is_answerable, verdict.choice) == (False, None)
            assert "choosing one needs a chat model" in verdict.reason


async def test_without_a_clear_option_the_passages_are_shown(reasoner: LocalReasoner) -> None:
    text = "Mirabel Stone built the Marigold. Mirabel Stone built the Albatross."
    context = AskContext("Which ship did Mirabel Stone build?", ("the Marigold", "the Albatross"))
    assert not (await reasoner.judge(context, passages(text))).is_answerable
    verdict = await reasoner.judge(context, passages(text), force=True)
    assert (verdict.status, verdict.choice) == ("passages", None)
    assert "Mirabel Stone built the Marigold" in verdict.answer
    assert "no option stands out" in verdict.reason


async def test_an_option_in_other_words_is_not_chosen(reasoner: LocalReasoner) -> None:
    restated = (
        "She wanted to prove that her father had erred",
        "She hoped to be paid for her work",
    )
    context = AskContext("Why did Mirabel Stone build the Marigold?", restated)
    assert (await reasoner.judge(context, passages(HARBOUR), force=True)).choice is None


async def test_an_exception_is_not_chosen(reasoner: LocalReasoner) -> None:
    context = AskContext("Which did Mirabel Stone NOT build?", ("the Marigold", "the Albatross"))
    assert (await reasoner.judge(context, passages(HARBOUR), force=True)).choice is None


@given(st.text(max_size=200), st.lists(st.text(max_size=200), max_size=3), st.booleans())
async def test_what_is_shown_stands_in_the_passages(
    question: str, texts: list[str], force: bool
) -> None:
    verdict = await ask(LocalReasoner(BuiltinTokenizer()), question, *texts, force=force)
    by_label = {p.label: p.segment.text for p in passages(*texts)}
    assert all(quote.text in by_label[quote.label] for quote in verdict.quotes)
    assert all(0 <= a < b <= len(q.text) for q in verdict.quotes for a, b in q.matches)
    assert verdict.answer.split() == " ".join(quote.text for quote in verdict.quotes).split()
    assert verdict.is_answerable == bool(verdict.quotes)


# --- steering and the window ---------------------------------------------------------------------


async def test_names_of_question_and_options_are_found_with_quoted_strings(
    reasoner: LocalReasoner,
) -> None:
    context = AskContext('Did Ellen Ward read "low water" in Skarrow?', ("No, Tobias Hale did.",))
    found = list(await reasoner.query_entities(context))
    assert found == ["Ellen Ward", "Skarrow", "low water", "Tobias Hale"]


async def test_which_entities_to_read_for_and_other_words_take_a_model(
    reasoner: LocalReasoner,
) -> None:
    context = AskContext("Who brought the lantern to Ellen Ward at the Tide House?")
    names = await reasoner.revise(
        context,
        current=["Ellen Ward"],
        candidates=[("Ellen Ward", 5), ("Blue Lantern", 2)],
        reason="",
        passages=passages(HARBOUR),
    )
    assert list(names) == ["Ellen Ward"]
    relations = ["Heron Key - opened the iron cupboard - Tide House"]
    assert await reasoner.elaborate(context, ["Heron Key"], relations) == context.question


def test_passages_and_frame_never_exceed_the_window(reasoner: LocalReasoner) -> None:
    context = AskContext("What did the key open?", ("a", "b"), window=400)
    longer = AskContext("What did the key open?", ("a", "b", "more words here"), window=400)
    assert reasoner.room(longer) < reasoner.room(context) < 400 - 10
    assert reasoner.size(passages(TIDE)[0]) >= len(TIDE.split())


async def test_the_tokens_of_a_verdict_are_those_of_frame_and_passages(
    reasoner: LocalReasoner,
) -> None:
    context = AskContext("What did the key open?", window=1000)
    read = passages(TIDE, HARBOUR)
    verdict = await reasoner.judge(context, read)
    used = sum(reasoner.size(passage) for passage in read)
    assert verdict.tokens == 1000 - 10 - reasoner.room(context) + used


def test_a_window_that_the_question_alone_fills_is_refused(reasoner: LocalReasoner) -> None:
    with pytest.raises(WindowTooSmall, match="too small"):
        reasoner.room(AskContext("why " * 300, window=300))


@pytest.mark.parametrize(
    ("text", "is_there"),
    [
        ("Nell Sayle learned the trade of a net maker in Port Ferris.", True),
        ("Nell Sayle learned the trade of a net maker with Tam Garrick.", False),
    ],
)
def test_where_is_answered_by_a_name_that_something_is_in(text: str, *, is_there: bool) -> None:
    asked = query("Where did Nell Sayle learn the trade of a net maker?")
    [clue] = Evidence(asked, passages(text)).clues
    assert clue.has_kind == is_there


@pytest.mark.parametrize(
    ("before", "after", "marks"),
    [("", "", ""), ("", "and slept well " * 30, "end"), ("As was told of it " * 30, "", "start")],
)
def test_a_part_of_a_long_sentence_has_a_mark_where_it_is_cut(
    before: str, after: str, marks: str
) -> None:
    sentence = f"{before}Ahab, who met Pip,{' ' * bool(after)}{after}"
    start = len(before)
    told = around(sentence, start, start + len("Ahab, who met Pip"))
    assert "Ahab, who met Pip" in told
    assert told.startswith("… ") == (marks == "start")
    assert told.endswith(" …") == (marks == "end")
