"""Many texts as one run of bytes."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmem.retrieval.texts import Lookup, Texts

WORDS = st.lists(st.text(st.characters(exclude_categories=())), unique=True, max_size=30)


@given(WORDS, st.text())
def test_texts_are_read_and_found_as_a_list_and_a_dictionary_would(
    words: list[str], other: str
) -> None:
    texts = Texts.of(words)
    known = Lookup.of(texts)
    assert list(texts) == words
    assert texts[1:3] == words[1:3]
    assert [texts[place - len(words)] for place in range(len(words))] == words
    assert dict(known) == {word: place for place, word in enumerate(words)}
    assert known.get(other, -1) == (words.index(other) if other in words else -1)
    assert (other in known) == (other in words)


def test_what_is_beyond_the_end_is_an_error() -> None:
    texts = Texts.of(["one"])
    with pytest.raises(IndexError):
        texts[1]
    with pytest.raises(KeyError):
        Lookup.of(texts)["two"]


def test_texts_of_one_checksum_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zlib, "crc32", lambda _: 7)
    known = Lookup.of(Texts.of(["one", "two", "three"]))
    assert known.sums.tolist() == [7, 7, 7]
    assert [known.get(word, -1) for word in ("three", "one", "two", "four")] == [2, 0, 1, -1]


def test_narrow_columns_serve_as_well() -> None:
    texts = Texts.of(["one", "two"])
    known = Lookup.of(texts)
    again = Lookup(
        Texts(bytes(texts.run), texts.starts.astype(np.int32)),
        known.sums.astype(np.uint32),
        known.at.astype(np.int32),
    )
    assert dict(again) == {"one": 0, "two": 1}
