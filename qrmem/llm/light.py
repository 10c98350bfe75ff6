"""Embeddings by fastembed, which runs models by ONNX Runtime, without torch (extra `light`)."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from qrmem.errors import MissingError
from qrmem.llm.encoder import BATCH, LocalEncoder, whole

_MODEL_FILES = ("model.onnx", "onnx/model.onnx")
"""Where a folder may hold a model, as exports and the hub's own folders have it."""
_READS = {"sentence-transformers/all-MiniLM-L6-v2": 256}
"""Word pieces that a model of the hub reads, where its tokenizer's files say another number."""


class LightEncoder(LocalEncoder):
    """A model that fastembed knows by name, or any one in ONNX form in a folder."""

    def _load(self, source: str) -> tuple[Any, Any]:
        from loguru import logger

        logger.disable("fastembed")  # what fails is told by our own error
        try:
            model = _opened(source)
        except Exception as exc:  # ONNX Runtime has errors of its own, with no common kind
            reason = " ".join(str(exc).split())[:200]
            raise MissingError(
                f"the encoder {source!r} cannot be loaded: {reason}; light:FOLDER takes a model in "
                "ONNX form from a folder"
            ) from exc
        tokenizer = model.model.tokenizer
        if reads := _READS.get(source) or _said_in(source):
            tokenizer.enable_truncation(reads)
        return model, whole(tokenizer)

    def _own_dimension(self) -> int:
        return int(self._loaded().embedding_size)

    def _longest(self) -> int:
        cut = self._loaded().model.tokenizer.truncation
        return int(cut["max_length"]) if cut else 0

    def _encode(self, texts: list[str], kind: str) -> Any:
        model = self._loaded()
        texts = [text.lower() for text in texts] if self._lowers else texts
        embed = model.query_embed if kind == "query" else model.passage_embed
        return list(embed(texts, batch_size=BATCH))


def _opened(source: str) -> Any:
    from fastembed import TextEmbedding
    from huggingface_hub.constants import HF_HUB_CACHE

    cache = os.environ.get("FASTEMBED_CACHE_PATH", HF_HUB_CACHE)
    if not Path(source).is_dir():
        return TextEmbedding(source, cache_dir=cache)
    known = {model["model"].lower() for model in TextEmbedding.list_supported_models()}
    if source.lower() not in known:
        _register(Path(source))
    return TextEmbedding(source, cache_dir=cache, specific_model_path=source)


def _register(folder: Path) -> None:
    """Tell fastembed of a model in a folder; its name there is the folder's path."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    file = next((name for name in _MODEL_FILES if (folder / name).is_file()), None)
    if file is None:
        raise MissingError(f"{folder} holds no {' and no '.join(_MODEL_FILES)}")
    pooling = PoolingType.MEAN
    with suppress(OSError):
        said = json.loads((folder / "1_Pooling" / "config.json").read_text())
        pooling = PoolingType.CLS if said.get("pooling_mode_cls_token") else pooling
    TextEmbedding.add_custom_model(
        model=str(folder),
        pooling=pooling,
        normalization=False,
        sources=ModelSource(hf=str(folder)),
        dim=int(json.loads((folder / "config.json").read_text())["hidden_size"]),
        model_file=file,
    )


def _said_in(source: str) -> int:
    """Return how many word pieces a folder says that its model reads; 0: it does not say."""
    with suppress(OSError, ValueError):
        said = json.loads((Path(source) / "sentence_bert_config.json").read_text())
        return int(said["max_seq_length"] or 0)
    return 0
