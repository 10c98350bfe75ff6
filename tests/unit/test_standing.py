"""Standing wishes: the user's own words, and what is nobody's wish."""

import pytest

from qrmem.retrieval.standing import wishes

NOT_OWN = [
    "Translate to German: I am allergic to nuts. Please always knock.",
    "> Stop using emojis.\n> I have type 2 diabetes.\nThat is the mail I must answer.",
    'He wrote: "I always want answers in French. I am allergic to peanuts."',
    "He wrote: I always want answers in French. Never call me Bo.",
    'A line of the novel I read: "Never use the front door. I prefer the window."',
    "“Always pay first,” says the barman.",
    "My boss said I should wear a tie. He told me: always be early.",
    "Übersetze ins Englische: From now on call me Skipper. Always knock.",
    "Bitte übersetz das:\n\nI prefer tea.\n\nNever give me coffee.",
    "Traduis en anglais : « Je préfère le thé. » Always knock.",
    "Peux-tu traduire ce texte ?\nMake sure to knock. I prefer the back door.",
    "Traduce al alemán: Always answer in metric units.",
    "¿Puedes traducir esto? Never use emojis.",
    "Er schrieb: „Always answer in German.“ Never mind the rest.",
    "Escribió: «I prefer short answers.»",
    "Please reply to this mail.\n\nDear Ann, from now on call me Bo.\nI prefer tea.",
    "From: Bo\nSubject: rules\n\nAlways answer within a day.",
    "On 3 May 2026 Bo wrote:\n\nPlease make sure to knock. Never ring.",
    "Write a story about a captain. Always let him speak in rhymes.",
    "Tell me a joke about a waiter. Never stop laughing.",
    "Once upon a time there was a queen. Never let the gate open, she thought. I prefer tea.",
    "Pretend you are my landlord. Always ask for the rent.",
    "Fix my code:\n```\n# Always use tabs\n# never use print\n```",
    "Who sang 'I always want more'?",
    "Never saw this coming.",
    "Always a joy to see him.",
    "She always prefers tea, and never wants sugar.",
]


@pytest.mark.parametrize("text", NOT_OWN)
def test_words_of_others_and_texts_to_work_on_are_no_wish(text: str) -> None:
    assert wishes(text) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Thanks. From now on answer in French. What is next?", "From now on answer in French."),
        ("One more thing: always use kroner.", "One more thing: always use kroner."),
        (
            "My rules:\n- Never use emojis\n- Stop apologising",
            "- Never use emojis\n- Stop apologising",
        ),
        ("I said it before: I prefer tea.", ""),
        ("As I said, I prefer tea.", "As I said, I prefer tea."),
        ("He wrote: I like tea.\n\nI prefer coffee.", "I prefer coffee."),
        ("> Never ring.\nI'd like you to be brief.", "I'd like you to be brief."),
        (
            "Always translate prices to kroner. Never round.",
            "Always translate prices to kroner. Never round.",
        ),
    ],
)
def test_the_user_s_own_wishes_are_found(text: str, expected: str) -> None:
    assert wishes(text) == expected


def test_a_cue_is_looked_for_in_the_first_four_hundred_characters() -> None:
    long = "The mill " * 60
    assert wishes(f"{long} I prefer tea.") == ""
    assert wishes(f"{long}. I prefer tea.") == "I prefer tea."
