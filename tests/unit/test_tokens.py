"""The offline counter against counts that cl100k itself gave."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qrmem.text.tokens import BuiltinTokenizer, longest_chain

DATA = Path(__file__).parent / "data"
CASES = json.loads((DATA / "cl100k_counts.json").read_text(encoding="utf-8"))
TOKENIZER = BuiltinTokenizer()
PARTS = ["the", "Harbour", "ledger", "isn't", "1904", "—", "“so”", "港", "naïve\n\n", "xq", "z"]
WORDS = st.lists(st.sampled_from(PARTS))
TEXTS = st.text() | WORDS.map(" ".join)
GAPS = [" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\n" * 50, "\t" * 49]
SPACED = st.lists(st.sampled_from(PARTS + GAPS)).map("".join)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["kind"])
def test_the_count_is_never_below_that_of_cl100k(case: dict[str, object]) -> None:
    assert TOKENIZER.count(str(case["text"])) >= int(str(case["count"]))


def test_english_prose_is_counted_within_a_fifth() -> None:
    prose = [case for case in CASES if case["kind"].startswith("prose")]
    assert prose
    for case in prose:
        assert TOKENIZER.count(case["text"]) <= 1.2 * case["count"]


def test_nothing_counts_nothing() -> None:
    assert TOKENIZER.count("") == 0
    assert TOKENIZER.cut("", 5) == ""
    assert TOKENIZER.cut("word", 0) == ""


@given(TEXTS)
def test_a_text_with_characters_has_tokens(text: str) -> None:
    assert (TOKENIZER.count(text) > 0) == bool(text)


@given(SPACED)
@example("1904\r\n \r\nthe")
def test_a_text_fits_within_its_own_count(text: str) -> None:
    assert TOKENIZER.cut(text, TOKENIZER.count(text)) == text


@given(TEXTS, TEXTS)
def test_two_texts_together_count_little_more_than_separately(first: str, second: str) -> None:
    assert TOKENIZER.count(first + second) <= TOKENIZER.count(first) + TOKENIZER.count(second) + 24


@given(WORDS, WORDS)
def test_texts_that_end_with_a_space_add_up(first: list[str], second: list[str]) -> None:
    a, b = " ".join(first) + " ", " ".join(second)
    assert TOKENIZER.count(a + b) <= TOKENIZER.count(a) + TOKENIZER.count(b)


@given(TEXTS, st.integers(0, 40))
def test_a_cut_is_a_prefix_within_the_limit(text: str, limit: int) -> None:
    cut = TOKENIZER.cut(text, limit)
    assert text.startswith(cut)
    assert TOKENIZER.count(cut) <= limit


@given(WORDS.map(" ".join), st.integers(3, 40))
def test_a_cut_leaves_out_no_more_than_the_next_piece(text: str, limit: int) -> None:
    cut = TOKENIZER.cut(text, limit)
    if cut != text:
        assert TOKENIZER.count(text[: len(cut) + 48]) > limit - 3


def test_a_word_longer_than_the_limit_is_cut_within() -> None:
    cut = TOKENIZER.cut("x" * 1000, 10)
    assert cut
    assert TOKENIZER.count(cut) <= 10


@pytest.mark.parametrize(
    "run", ["x", "qz", " ", "\n", "=", " \n", "é", "港", "🐳", "0", "a1", "A."]
)
def test_a_long_run_is_counted_in_one_pass(run: str) -> None:
    text = run * (300_000 // len(run))
    count = TOKENIZER.count(text)
    assert 0 < count <= len(text.encode()) + 1 + len(text) // 20
    assert TOKENIZER.cut(text, 100)


def test_merging_cannot_leave_more_parts_than_the_longest_chain() -> None:
    known = frozenset({"ab", "bc", "abc"})
    assert longest_chain("abc", known) == 1
    assert longest_chain("abca", known) == 2
    assert longest_chain("xyz", known) == 3
    assert longest_chain("abab", known) == 3


@pytest.mark.data
def test_the_count_is_never_below_that_of_cl100k_on_real_files() -> None:
    folder = os.environ.get("QRMEM_DATA")
    if not folder:
        pytest.skip("QRMEM_DATA is not set: the folder with real evaluation data")
    counts = json.loads((DATA / "cl100k_files.json").read_text(encoding="utf-8"))
    seen = 0
    for name, row in counts.items():
        path = Path(folder) / name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != row["sha256"]:
            continue
        text = path.read_text(encoding="utf-8")
        seen += 1
        assert TOKENIZER.count(text) >= row["count"], name
        if name.startswith(("gutenberg", "niah")):
            assert TOKENIZER.count(text) <= 1.2 * row["count"], name
    assert seen, f"no file in {folder} is one that was counted"
