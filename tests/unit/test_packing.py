"""Columns as bytes and back."""

import numpy as np
import pytest

from qrmem.retrieval.packing import Packed, pack, unpack
from qrmem.retrieval.texts import Texts

NAMES = ["orla venn", 'a "quoted"\nname', "東京", "\ud800", ""]
COLUMNS = Packed(
    {
        "small": np.array([3, -1, 2]),
        "large": np.array([2**40, 0]),
        "none": np.zeros(0, dtype=np.int64),
        "shares": np.array([0.1, 2.5, -3.0]),
    },
    {"names": Texts.of(NAMES), "nothing": Texts.of([])},
)


def test_columns_come_back_as_they_were() -> None:
    found = unpack(pack(COLUMNS))
    assert found is not None
    assert {name: list(texts) for name, texts in found.texts.items()} == {
        "names": NAMES,
        "nothing": [],
    }
    for name in ("small", "large", "none"):
        assert found.ints(name).tolist() == COLUMNS.numbers[name].tolist()
        assert found.ints(name).dtype == np.int64
    assert found.floats("shares").tolist() == [0.1, 2.5, -3.0]


def test_equal_columns_give_equal_bytes() -> None:
    assert pack(COLUMNS) == pack(Packed(dict(COLUMNS.numbers), dict(COLUMNS.texts)))


@pytest.mark.parametrize("cut", [0, 1, 40, 200, -1])
def test_a_cut_end_is_noticed(cut: int) -> None:
    assert unpack(pack(COLUMNS)[:cut]) is None


def test_any_changed_byte_is_noticed() -> None:
    data = bytearray(pack(COLUMNS))
    for place in range(len(data)):
        data[place] ^= 0xFF
        assert unpack(bytes(data)) is None, place
        data[place] ^= 0xFF


def test_another_version_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pack(COLUMNS)
    monkeypatch.setattr("qrmem.retrieval.packing.VERSION", 10**6)
    assert unpack(data) is None
