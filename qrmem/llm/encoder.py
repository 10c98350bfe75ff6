"""Local embeddings in a separate thread, by sentence-transformers and fastembed."""

import asyncio
import json
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from qrmem.errors import MissingError
from qrmem.llm.embedders import product_rows, unit_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


BATCH = 32
_TURN = 256
"""Maximum number of texts per call of the encoder; an interrupt waits for one such call."""
OVERLAP = 32
"""Word pieces that adjacent windows share, so that a sentence at a border is in one window."""
_LONGEST_WINDOW = 512
"""Word pieces per window for a model that states no limit, or no finite one."""


class LocalEncoder:
    """A local embedding model; the first use loads it."""

    def __init__(
        self, name: str, source: str, *, lowers: bool = False, by_product: bool = False
    ) -> None:
        """Take a model.

        Args:
            name: name that a namespace records.
            source: a folder, or a name on the Hugging Face hub.
            lowers: whether to convert texts to lower case.
            by_product: whether to rank by dot products instead of cosines.
        """
        self.name = name
        self._source = source
        self._lowers = lowers
        self._by_product = by_product
        self._lock = threading.Lock()
        self._model: Any = None
        self._pieces: Any = None
        self._thread: ThreadPoolExecutor | None = None

    @property
    def dimension(self) -> int:
        """Length of a vector; by product, one more than the model's dimension."""
        return self._own_dimension() + self._by_product

    def windows(self, text: str) -> Sequence[str]:
        """Cut a text between words into windows that the encoder reads completely."""
        self._loaded()
        encoding = self._pieces.encode(text, add_special_tokens=False)
        size = min(self._longest() or _LONGEST_WINDOW, _LONGEST_WINDOW)
        size -= self._pieces.num_special_tokens_to_add(False)
        if len(encoding.offsets) <= size:
            return [text]
        spans = list(_spans(encoding.word_ids, size, min(OVERLAP, size // 4)))
        return [text[encoding.offsets[a][0] : encoding.offsets[b - 1][1]] for a, b in spans]

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> "NDArray[np.float32]":
        """Return `(len(texts), dimension)`, rows of unit length; the event loop is not blocked.

        Raises:
            MissingError: the model cannot be loaded.
            ModelUnavailable: the model returned no vectors.
        """
        import numpy as np

        loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="qrmem-embed")
        dimension = await loop.run_in_executor(self._thread, lambda: self.dimension)
        result = np.empty((len(texts), dimension), dtype=np.float32)
        # Texts of similar length share a batch, to save padding.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]), reverse=True)
        for start in range(0, len(order), _TURN):
            turn = order[start : start + _TURN]
            batch = [texts[i] for i in turn]
            rows = await loop.run_in_executor(self._thread, self._encode, batch, kind)
            result[turn] = self._rows(rows, len(turn), kind)
        return result

    def _rows(self, rows: Any, count: int, kind: str) -> "NDArray[np.float32]":
        name, dimension = self.name, self._own_dimension()
        if self._by_product:
            return product_rows(
                rows, count=count, dimension=dimension, name=name, is_query=kind == "query"
            )
        return unit_rows(rows, count=count, dimension=dimension, name=name)

    def _loaded(self) -> Any:
        with self._lock:
            if self._model is None:
                self._model, self._pieces = self._load(self._source)
        return self._model

    # --- differences between libraries ------------------------------------------------------

    def _load(self, source: str) -> tuple[Any, Any]:
        """Return the model, and a tokenizer that neither cuts nor pads."""
        raise NotImplementedError

    def _own_dimension(self) -> int:
        """Return the dimension of the model's own vectors."""
        raise NotImplementedError

    def _longest(self) -> int:
        """Return the number of word pieces that the model reads at once; 0 if unknown."""
        raise NotImplementedError

    def _encode(self, texts: list[str], kind: str) -> Any:
        """Return the model's rows for some texts."""
        raise NotImplementedError


class SentenceEncoder(LocalEncoder):
    """Any sentence-transformers model."""

    def _load(self, source: str) -> tuple[Any, Any]:
        model = _load(source)
        return model, whole(model.tokenizer.backend_tokenizer)

    def _own_dimension(self) -> int:
        model = self._loaded()
        # sentence-transformers 5.3 renamed the method and warns about the old name.
        ask = getattr(model, "get_embedding_dimension", None)
        return int(ask() if ask else model.get_sentence_embedding_dimension())

    def _longest(self) -> int:
        return int(self._loaded().max_seq_length or 0)

    def _encode(self, texts: list[str], kind: str) -> Any:
        model = self._loaded()
        texts = [text.lower() for text in texts] if self._lowers else texts
        prompts = getattr(model, "prompts", None) or {}
        names = ("query",) if kind == "query" else ("document", "passage")
        prompt = next((name for name in names if prompts.get(name)), None)
        return model.encode(
            texts,
            prompt_name=prompt,
            batch_size=BATCH,
            show_progress_bar=False,
            convert_to_numpy=True,
        )


def _load(source: str) -> Any:
    from pathlib import Path

    from sentence_transformers import SentenceTransformer

    is_here = Path(source).is_dir()
    try:
        with quiet():
            return SentenceTransformer(source, local_files_only=is_here)
    except (OSError, ValueError, ImportError, RuntimeError) as exc:
        reason = " ".join(str(exc).split())[:200]
        raise MissingError(
            f"the encoder {source!r} cannot be loaded: {reason}; --embedder none "
            "(QRMEM_EMBEDDER=none) needs no model"
        ) from exc


def whole(tokenizer: Any) -> Any:
    """Return a copy of a tokenizer without truncation and padding.

    The model's own tokenizer is configured again by every batch, in another thread.
    """
    from tokenizers import Tokenizer

    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy


def _spans(words: Sequence[int | None], size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Yield windows of at most `size` pieces that neither begin nor end within a word.

    A single word longer than a window is cut.
    """
    start, total = 0, len(words)
    while True:
        end = min(start + size, total)
        whole = _word_start(words, end)
        end = whole if whole > start else end
        yield start, end
        if end >= total:
            return
        back = _word_start(words, max(start + 1, end - overlap))
        start = back if back > start else end


def _word_start(words: Sequence[int | None], at: int) -> int:
    """Return the nearest position at or before `at` where a word begins."""
    while 0 < at < len(words) and words[at] is not None and words[at] == words[at - 1]:
        at -= 1
    return at


@contextmanager
def quiet() -> Iterator[None]:
    """Hide the loader's progress bar."""
    from transformers.utils import logging

    was_on = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_on:
            logging.enable_progress_bar()


# Embeddings by fastembed, which runs models by ONNX Runtime, without torch (extra `light`).

_MODEL_FILES = ("model.onnx", "onnx/model.onnx")
"""Paths of a model within a folder, in exports and in folders of the hub."""
_READS = {"sentence-transformers/all-MiniLM-L6-v2": 256}
"""Word pieces that a model of the hub reads, if its tokenizer's files state another number."""


class LightEncoder(LocalEncoder):
    """A model that fastembed knows by name, or an ONNX model in a folder."""

    def _load(self, source: str) -> tuple[Any, Any]:
        from loguru import logger

        logger.disable("fastembed")  # our own error reports a failure
        try:
            model = _opened(source)
        except Exception as exc:  # the errors of ONNX Runtime have no common base class
            reason = " ".join(str(exc).split())[:200].rstrip(".")
            raise MissingError(
                f"the encoder {source!r} cannot be loaded: {reason}; light:FOLDER takes a model in "
                "ONNX form from a folder, and --embedder none (QRMEM_EMBEDDER=none) needs no model"
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
    names = {model["model"].lower() for model in TextEmbedding.list_supported_models()}
    if source.lower() not in names:
        _register(Path(source))
    return TextEmbedding(source, cache_dir=cache, specific_model_path=source)


def _register(folder: Path) -> None:
    """Register a folder's model with fastembed; its name there is the folder's path."""
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
    """Return the word pieces that a model reads, by its folder's files; 0 if unknown."""
    with suppress(OSError, ValueError):
        encoder_config = json.loads((Path(source) / "sentence_bert_config.json").read_text())
        return int(encoder_config["max_seq_length"] or 0)
    return 0
