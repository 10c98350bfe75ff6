"""A reranker on this machine: a cross-encoder with random weights, made here."""

import importlib.util
from pathlib import Path

import pytest

import qrmem
from qrmem.config import Settings
from qrmem.errors import MissingError
from qrmem.llm.reranking import open_reranker
from qrmem.types import Event

pytestmark = [
    pytest.mark.local_embedder,
    pytest.mark.skipif(
        importlib.util.find_spec("sentence_transformers") is None,
        reason="the extra `local` is not installed",
    ),
    # torch and transformers warn about their own future at import.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]
WORDS = "which ship did the captain sail of number at dawn".split()  # noqa: SIM905
DOCUMENTS = [
    {"id": f"d{n}", "text": f"The captain of ship number {n} did sail at dawn{' again' * n}."}
    for n in range(8)
]
QUESTION = "Which ship did the captain sail?"


def made(folder: Path, labels: int = 1) -> Path:
    """Write a tiny BERT that scores pairs of texts, with random weights."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    torch.manual_seed(7)
    folder.mkdir()
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "again", ".", "?", *"0123456789"]
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join([*marks, *WORDS]))
    config = BertConfig(
        vocab_size=len(marks) + len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
        num_labels=labels,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(str(vocabulary), model_max_length=64).save_pretrained(folder)
    return folder


async def test_hits_have_the_order_of_the_model_s_scores(tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    folder = made(tmp_path / "encoder")
    async with qrmem.open(str(tmp_path / "m.db"), embedder="none", reranker=folder) as memory:
        await memory.add(DOCUMENTS)
        before = await memory.search(QUESTION, k=8, reranker="none")
        hits = await memory.search(QUESTION, k=8)
        pairs = [(QUESTION, "\n".join(filter(None, (hit.title, hit.text)))) for hit in before]
        scores = CrossEncoder(str(folder)).predict(pairs)
        order = sorted(range(8), key=lambda n: -scores[n])
        assert [hit.document_id for hit in hits] == [before[n].document_id for n in order]
        assert hits[0].via.endswith(f"reranked: {scores[order[0]]:.3g}")
        assert not [row for row in await memory.usage() if row.key == "rerank"], "it costs time"
        await memory.add_turn("user", "The captain of ship number 9 did sail.", at="2026-01-01")
        assert (await memory.recall("Which ship did the captain sail?")).tokens > 0


async def test_a_model_that_classifies_leaves_the_order_unchanged(tmp_path: Path) -> None:
    told: list[str] = []

    def listen(event: Event) -> None:
        told.append(str(event.data.get("message", "")))

    folder = made(tmp_path / "encoder", labels=3)
    path = str(tmp_path / "m.db")
    async with qrmem.open(path, embedder="none", reranker=folder, listener=listen) as memory:
        await memory.add(DOCUMENTS)
        before = await memory.search(QUESTION, reranker="none")
        assert await memory.search(QUESTION) == before
        assert sum("it is not a reranker" in one for one in told) == 1


async def test_a_folder_without_a_model_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    async with qrmem.open(str(tmp_path / "m.db"), embedder="none") as memory:
        await memory.add(DOCUMENTS)
        with pytest.raises(MissingError, match=r"empty' cannot be loaded"):
            await memory.search(QUESTION, reranker=str(tmp_path / "empty"))


def test_a_reranker_is_opened_without_its_weights(tmp_path: Path) -> None:
    reranker = open_reranker(str(tmp_path), Settings())
    assert reranker is not None
    assert reranker.priced == ""
