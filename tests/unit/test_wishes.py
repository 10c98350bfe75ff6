"""Wishes that users take back, and wishes in words other than "always" and "never"."""

import pytest

from qrmem.retrieval.wishes import is_general, is_instruction, is_standing, undoes


@pytest.mark.parametrize(
    "text",
    [
        "Stop calling me Bo, call me Robert.",
        "Please stop using emojis.",
        "Can you stop calling me Bo?",
        "You can stop giving prices in kroner.",
        "Forget what I said about bullet points, you can use them again.",
        "Ignore what I told you about kroner.",
        "You can use bullet points again.",
        "You no longer need to give prices in kroner.",
        "You don't have to answer in French any more.",
        "Make sure to warn me about risks with glazes.",
        "Be sure that you cite a source.",
        "I don't want you to mention the fog.",
    ],
)
def test_a_withdrawal_or_an_instruction_is_a_wish(text: str) -> None:
    assert is_standing(text)
    assert is_instruction(text)


@pytest.mark.parametrize(
    "text",
    [
        "Answer me in Spanish, please, whatever language I write in.",
        "No emojis please, ever.",
        "Use metric units for everything.",
        "All temperatures should be in Celsius.",
        "Your answers should never be longer than a paragraph.",
        "I want you to be brutally honest with me.",
        "Be concise.",
        "Explain things to me as if I were ten.",
        "Skip the pleasantries.",
        "Address me formally.",
        "You can call me Jo.",
        "When you quote a price, include the tax.",
        "Every time you mention a date, add the weekday.",
        "If I send you code, only show the changed lines.",
        "Going forward, use tables for comparisons.",
        "Unless I say otherwise, assume I am in Bergen.",
        "Remember that I don't drive.",
        "Don't forget to mention the sources.",
        "Please only recommend places that allow dogs.",
    ],
)
def test_an_instruction_without_always_is_a_wish(text: str) -> None:
    assert is_standing(text)
    assert is_instruction(text)


@pytest.mark.parametrize(
    "text",
    [
        "I can't stand long introductions.",
        "I'm not a fan of tables in answers.",
        "I'd appreciate it if you always cited your sources.",
        "I generally want the short version.",
        "We don't eat meat at home.",
    ],
)
def test_what_a_user_likes_or_eats_is_a_wish(text: str) -> None:
    assert is_standing(text)
    assert not is_instruction(text)


@pytest.mark.parametrize(
    "text",
    ["I always want two options for glazes.", "I don't want emojis in texts about boats."],
)
def test_a_sentence_with_always_or_never_is_a_preference(text: str) -> None:
    assert is_standing(text)
    assert not is_instruction(text)
    assert not is_general(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Stop calling me Bo.", True),
        ("Forget what I said about bullet points.", True),
        ("I don't want emojis in your answers.", True),
        ("Stop using kroner for ferries.", False),
        ("Make sure to warn me if the glaze is poisonous.", False),
    ],
)
def test_what_is_taken_back_applies_to_every_answer(text: str, expected: bool) -> None:
    assert is_general(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "I want to make sure the crane is safe.",
        "Make sure to water the plants.",
        "Stop worrying!",
        "I had to stop using the crane.",
        "The ferry will stop calling at Skarrow.",
        "Forget it.",
        "I forget what I said about the crane.",
        "You can say that again!",
        "Can you give me the list again?",
        "You don't need to give me a gift.",
        "I always want to cry there.",
        "I always wanted two boats.",
        "I don't want to put emojis in texts.",
        "I don't want errors in my texts.",
        "I don't want salt in my tea.",
        "Don't give up on your dreams.",
        "Don't tell Anna about the party!",
        "Don't be afraid to take risks.",
        "Will I like it?",
        "I like it when it rains.",
        "Be honest, do you think it is good?",
        "Use this data to plot the curve.",
        "Use the metric system in this homework, please.",
        "Reply to Anna in French for me.",
        "When you write to Bob, mention the boat.",
        "If I send the parcel today, when will it arrive?",
        "Prices must be higher in Oslo.",
        "Remember to add salt to the soup.",
        "Explain things like recursion to me.",
        "We don't eat out much.",
    ],
)
def test_other_sentences_with_these_words_are_no_wishes(text: str) -> None:
    assert not is_standing(text)


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        ("Always call me Bo.", "Stop calling me Bo, call me Robert.", True),
        ("Always call me Bo.", "Please call me Robert from now on.", True),
        ("Never use bullet points.", "Forget what I said about bullet points.", True),
        ("I prefer bullet points.", "Stop using bullet points.", True),
        ("Never use emojis.", "You can use emojis again.", True),
        ("Always answer in French.", "You don't have to answer in French any more.", True),
        ("Always use emojis.", "Never use emojis.", True),
        ("Never use emojis.", "Always use emojis.", True),
        ("Never use emojis.", "Please stop using emojis.", False),
        ("Always call me Bo.", "You can call me Monday.", False),
        ("Always call me Bo.", "They call me Robert.", False),
        ("Always give prices with tax.", "Stop giving prices in kroner.", False),
        ("Always use emojis.", "Never use emojis in letters to the harbour.", False),
        ("Always cite a source.", "Never use emojis.", False),
        ("I use bullet points.", "Forget what I said about bullet points.", False),
        ("Always answer in French.", "Always answer in English.", True),
        ("Always answer in French. Never use emojis.", "Reply in English, please.", True),
        ("Always give prices in kroner.", "Always give prices in euros.", True),
        ("Use metric units.", "Use imperial units for everything.", True),
        ("Use the 24-hour clock.", "Use the 12-hour clock.", True),
        ("Address me formally.", "Address me informally.", True),
        ("Call me Jo.", "Please refer to me as Kit.", True),
        ("Always write emails in French.", "Always answer in English.", False),
        ("Always answer in French.", "Never answer in English.", False),
        ("Always answer in French.", "Always answer in French and English.", False),
        ("Always answer in French when I ask about boats.", "Always answer in English.", False),
        ("Always give prices in kroner.", "Always give distances in miles.", False),
        ("I speak French.", "Always answer in English.", False),
    ],
)
def test_a_wish_undoes_an_earlier_one(earlier: str, later: str, expected: bool) -> None:
    assert undoes(later, earlier) is expected
