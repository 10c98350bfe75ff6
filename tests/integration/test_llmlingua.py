"""The package llmlingua over a tiny classifier of its kind, made here with random weights."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from qrmem.cli import main
from qrmem.eval import read_results

pytestmark = [
    pytest.mark.local_embedder,
    pytest.mark.skipif(
        find_spec("llmlingua") is None, reason="the extra `llmlingua` is not installed"
    ),
    # torch and transformers warn about their own future.
    pytest.mark.filterwarnings("ignore"),
]

SAID = [f"In the year {n} the {n}th boat left Corrin for the north." for n in range(1000, 1200)]


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    """A BERT of one small layer that labels each word piece: leave it out, or keep it."""
    from tokenizers import (
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
        trainers,
    )
    from transformers import BertConfig, BertForTokenClassification, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=False)
    made.decoder = decoders.WordPiece()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.train_from_iterator(
        SAID, trainers.WordPieceTrainer(vocab_size=400, special_tokens=special)
    )
    ends = [(name, made.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ends
    )
    # The package tells from the name how words are divided.
    folder = tmp_path / "tiny-bert-base-multilingual-cased"
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    PreTrainedTokenizerFast(
        tokenizer_object=made, **dict(zip(names, special, strict=True))
    ).save_pretrained(folder)
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(
        vocab_size=made.get_vocab_size(), intermediate_size=64, num_labels=2, **size
    )
    BertForTokenClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture
def counted_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package counts by tiktoken's file of GPT-3.5, which only the network has."""
    import tiktoken

    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding(
        "bytes", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={}
    )
    monkeypatch.setattr(tiktoken, "encoding_for_model", lambda name: encoding)


@pytest.mark.usefixtures("counted_in_bytes")
def test_a_text_is_compressed_by_the_package_to_the_window_and_read(
    classifier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("QRMEM_MODEL", "QRMEM_EMBEDDER", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    text = " ".join(SAID)
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "d", "text": text}))
    (tmp_path / "questions.jsonl").write_text(json.dumps({"question": "When?", "answers": ["x"]}))
    words = ["eval", "run", "plain", "--data", str(tmp_path), "--embedder", "none", "--quiet"]
    system = f"llmlingua-2:model={classifier}"
    assert main([*words, "--window", "1200", "--system", system, "--out", "r"]) == 0
    (row,) = read_results(Path("r")).rows.values()
    assert row.error == ""
    (step,) = row.prediction.steps
    assert 0 < step.read[0].tokens < 1200


@pytest.mark.usefixtures("counted_in_bytes")
def test_the_package_leaves_words_out_and_adds_none(classifier: Path) -> None:
    from qrmem.eval.systems.whole_text import compressed

    shorter = compressed(str(classifier), [" ".join(SAID)], 3000)
    assert 0 < len(shorter) < len(" ".join(SAID)) / 2
    there = iter("".join(SAID))  # the package may leave out the space between two words, too
    assert all(letter in there for letter in shorter if not letter.isspace())
