"""Perplexity by a local model: a tiny one with random weights, made here (extra `perplexity`)."""

from pathlib import Path
from typing import Any

import pytest

from qrmem.cli import main
from qrmem.errors import UsageError
from qrmem.eval import read_results
from qrmem.eval.systems import perplexity

CASE = (
    '{"before": "it was day", "segments": ["he sat down", "then she came in", "a dog ran", "so it '
    'went on"], "after": "night fell", "answer": [2, 1, 3, 4]}\n'
)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model of 60,000 weights that has read nothing."""
    torch = pytest.importorskip("torch", reason="needs the extra perplexity")
    transformers = pytest.importorskip("transformers", reason="needs the extra perplexity")
    tokenizers = pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("weights")
    vocabulary = {"<s>": 0, "<unk>": 1}
    for word in CASE.replace('"', " ").replace(",", " ").split():
        vocabulary.setdefault(word, len(vocabulary))
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", unk_token="<unk>"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=0.5,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def test_what_orders_share_is_read_once_and_their_surprise_is_that_of_the_whole(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["it was day", "he sat down", "then she came in", "a dog ran", "night fell"]
    model = perplexity._opened(str(weights))
    whole = {
        order: model.read([*model.begin, *model.tokens(" ".join(texts[k] for k in order))], None)[0]
        for order in [(0, 1, 2, 3, 4), (0, 3, 1, 2, 4), (0, 2, 3, 1, 4)]
    }
    monkeypatch.setattr(perplexity, "_AT_ONCE", 2)  # in pieces, as long texts are
    read: list[int] = []
    reading = model.read

    def counted(tokens: Any, state: Any) -> Any:
        read.append(len(tokens))
        return reading(tokens, state)

    monkeypatch.setattr(model, "read", counted)
    found = perplexity._local(str(weights), "", texts)
    count = 1 + sum(len(text.split()) for text in texts)
    assert len(found) == 6
    assert len({round(value, 6) for value in found.values()}) == 6
    for order, total in whole.items():
        assert found[order[1:-1]] == pytest.approx(total / count, rel=1e-4)
    assert sum(read) < 6 * count


def test_a_run_by_local_weights_needs_no_server(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tsort_2k.jsonl").write_text(CASE)
    system = f"ada-perplexity:weights={weights}"
    command = ["eval", "run", "tsort", "--data", "tsort_2k.jsonl", "--embedder", "none", "--quiet"]
    assert main([*command, "--system", system, "--out", "r"]) == 0
    results = read_results(Path("r")).systems[system]
    assert results.mean("follows").value == 1.0  # type: ignore[union-attr]
    long = CASE.replace("it was day", "it was day " * 40)
    Path("tsort_2k.jsonl").write_text(long)
    assert main([*command, "--system", system, "--out", "long"]) == 0
    (row,) = read_results(Path("long")).systems[system].rows.values()
    assert "more than the model's 64" in row.prediction.reason


def test_invalid_weights_are_refused_on_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are no weights at"):
        perplexity._opened(str(tmp_path / "nowhere"))
    pytest.importorskip("transformers", reason="needs the extra perplexity")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UsageError, match="holds no causal language model") as caught:
        perplexity._opened(str(tmp_path))
    assert "\n" not in str(caught.value)
