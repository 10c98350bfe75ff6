"""Choosing an embedder, and checks of vectors, without a model."""

import importlib.util
import subprocess
import sys
from importlib.machinery import ModuleSpec
from itertools import pairwise

import numpy as np
import pytest

from qrmem.config import Settings
from qrmem.errors import MissingError, ModelUnavailable, UsageError
from qrmem.llm.embedders import (
    LONGEST,
    default_embedder,
    directions,
    open_embedder,
    product_rows,
    unit_rows,
)
from qrmem.llm.encoder import _spans


def without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in ("sentence_transformers", "fastembed") else real(name, package)

    monkeypatch.setattr("qrmem.llm.embedders.find_spec", find)


def test_none_is_no_embedder() -> None:
    assert open_embedder("none", Settings()) is None


@pytest.mark.parametrize(
    "name",
    [
        "locale",
        "openai:",
        "light:",
        "sentence-transformers:",
        "",
        "openai",
        "contriever:",
        "dot:openai:m",
    ],
)
def test_an_unknown_embedder_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(UsageError, match="sentence-transformers:NAME"):
        open_embedder(name, Settings())


def test_without_the_extra_the_default_is_none_and_local_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_the_extra(monkeypatch)
    assert default_embedder() == "none"
    for name in ("local", "sentence-transformers:some/model", "contriever", "dot:mcontriever"):
        with pytest.raises(MissingError, match=r'-m pip install "qrmem\[local\]"'):
            open_embedder(name, Settings())
    for name in ("light", "light:some/model"):
        with pytest.raises(MissingError, match=r'-m pip install "qrmem\[light\]"'):
            open_embedder(name, Settings())


def test_choosing_an_embedder_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from qrmem.llm.embedders import default_embedder, open_embedder\n"
        "default_embedder()\n"
        "heavy = {'torch', 'sentence_transformers', 'transformers', 'fastembed', 'onnxruntime', "
        "'openai', 'pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_rows_become_unit_length_float32() -> None:
    rows = unit_rows([[3.0, 4.0], [0.0, -2.0]], count=2, dimension=2, name="e")
    assert rows.dtype == np.float32
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, -1.0]]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[1.0, float("nan")]], "NaN"),
        ([[1.0, float("inf")]], "infinity"),
        ([[0.0, 0.0]], "zeros"),
        ([[1.0, 2.0, 3.0]], "3 numbers; the ones before had 2"),
        ([[1.0, 2.0], [1.0, 2.0]], r"shape \(2, 2\) for 1 texts"),
        ([], r"shape \(0,\) for 1 texts"),
        ([["a", "b"]], "not lists of numbers"),
        ([[1.0], [1.0, 2.0]], "not lists of numbers"),
    ],
)
def test_an_invalid_vector_is_refused_in_clear_words(rows: list[list[float]], words: str) -> None:
    with pytest.raises(ModelUnavailable, match=words):
        unit_rows(rows, count=1, dimension=2, name="e")


@pytest.mark.parametrize("total", [1, 9, 10, 11, 25, 99])
@pytest.mark.parametrize("length", [1, 3, 40])
def test_windows_cover_every_piece_and_cut_no_word_that_fits(total: int, length: int) -> None:
    words = [at // length for at in range(total)]
    spans = list(_spans(words, 10, 4))
    assert spans[0][0] == 0
    assert spans[-1][1] == total
    assert all(0 < end - start <= 10 for start, end in spans)
    assert all(b[0] <= a[1] and a[0] < b[0] for a, b in pairwise(spans))
    if length < 10:
        assert all(words[end - 1] != words[end] for _, end in spans[:-1])


def test_product_rows_rank_by_dot_product_and_have_unit_length() -> None:
    random = np.random.default_rng(1)
    passages, query = random.standard_normal((50, 8)) * 0.6, random.standard_normal((1, 8))
    rows = product_rows(passages, count=50, dimension=8, name="m", is_query=False)
    asked = product_rows(query, count=1, dimension=8, name="m", is_query=True)
    assert rows.shape == (50, 9)
    assert np.allclose(np.linalg.norm([*rows, *asked], axis=1), 1, atol=1e-6)
    products = passages @ query[0]
    assert np.allclose(rows @ asked[0] * LONGEST * np.linalg.norm(query), products, atol=1e-5)
    cosines = products / np.linalg.norm(passages, axis=1)
    assert list(np.argsort(rows @ asked[0])) == list(np.argsort(products))
    assert list(np.argsort(products)) != list(np.argsort(cosines))


def test_product_rows_point_where_the_vectors_do() -> None:
    passages = np.array([[3.0, 4.0], [0.3, 0.4], [60.0, 80.0]])
    rows = product_rows(passages, count=3, dimension=2, name="m", is_query=False)
    assert np.allclose(directions(rows), [[0.6, 0.8]] * 3, atol=1e-6)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)


def test_an_embedder_without_a_key_says_that_it_wants_one() -> None:
    with pytest.raises(MissingError, match=r"the embedder openai:small: no key .*EMBED_API_KEY"):
        open_embedder("openai:small", Settings())
