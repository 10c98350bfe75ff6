"""Tokenizers by name: the built-in one, tiktoken's, and Hugging Face's `tokenizer.json`."""

import os
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path

from qrmem.errors import MissingError, UsageError, missing_extra
from qrmem.text.tokens import BuiltinTokenizer, pieces
from qrmem.types import Tokenizer

_CHUNK = 20_000
_WINDOW = 16
_EXTRA = "tokenizers"


@lru_cache(maxsize=8)
def open_tokenizer(name: str) -> Tokenizer:
    """Return the tokenizer of a name, from a setting or from a namespace.

    Args:
        name: `builtin`, `tiktoken:NAME` (e.g. `tiktoken:o200k_base`) or `hf:PATH` of a
            `tokenizer.json`.

    Raises:
        UsageError: no tokenizer has this name, or the file is not a tokenizer.
        MissingError: the extra is not installed, or tiktoken cannot get its file.
    """
    kind, _, value = name.partition(":")
    if name in ("builtin", BuiltinTokenizer.name):
        return _builtin()
    if kind == "tiktoken" and value:
        return LibraryTokenizer(name, _tiktoken(value))
    if kind == "hf" and value:
        path = os.path.abspath(value)  # a namespace is used from other folders, too
        return LibraryTokenizer(f"hf:{path}", _hugging_face(path))
    raise UsageError(f"no tokenizer {name!r}; choose builtin, tiktoken:NAME or hf:PATH")


@lru_cache(maxsize=8)
def open_pieces(name: str) -> Callable[[str], frozenset[str] | frozenset[int]]:
    """Return a function from a text to the set of its tokens, to compare texts.

    Args:
        name: `builtin`, which needs no file, or `tiktoken:NAME` (RepoCoder: `p50k_base`).

    Raises:
        UsageError: no tokenizer has this name.
        MissingError: the extra is not installed, or tiktoken cannot get its file.
    """
    kind, _, value = name.partition(":")
    if name == "builtin":
        return pieces
    if kind == "tiktoken" and value:
        encode = _encoder(value)
        return lambda text: frozenset(encode(text))
    raise UsageError(f"no pieces {name!r}; choose builtin or tiktoken:NAME")


class LibraryTokenizer:
    """A tokenizer of a library; long texts are counted in chunks."""

    def __init__(self, name: str, count: Callable[[str], int]) -> None:
        self.name = name
        self._count = count

    def count(self, text: str) -> int:
        """Return the number of tokens; above 20,000 characters a close upper bound."""
        total = start = 0
        while len(text) - start > _CHUNK:
            end = text.rfind(" ", start + 1, start + _CHUNK)
            end = end if end > 0 else start + _CHUNK
            total += self._count(text[start:end])
            start = end
        return total + (self._count(text[start:]) if start < len(text) else 0)

    def cut(self, text: str, limit: int) -> str:
        """Return a prefix of at most `limit` tokens and at most 16 characters per token."""
        low, high = 0, min(len(text), limit * _WINDOW)
        if self.count(text[:high]) <= limit:
            return text[:high]
        while low < high - 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.count(text[:middle]) <= limit else (low, middle)
        return text[:low]


@cache
def _builtin() -> BuiltinTokenizer:
    """Return the shared built-in tokenizer, which caches its counts."""
    return BuiltinTokenizer()


def _tiktoken(name: str) -> Callable[[str], int]:
    encode = _encoder(name)
    return lambda text: len(encode(text))


def _encoder(name: str) -> Callable[[str], list[int]]:
    try:
        import tiktoken
    except ImportError as exc:
        raise missing_extra(_EXTRA, "a tokenizer of tiktoken") from exc
    if name not in tiktoken.list_encoding_names():
        names = ", ".join(sorted(tiktoken.list_encoding_names()))
        raise UsageError(f"tiktoken has no encoding {name!r}; choose one of {names}")
    try:
        encoding = tiktoken.get_encoding(name)
    except Exception as exc:  # whatever the download or its cache raises: all mean "no file"
        raise MissingError(
            f"tiktoken cannot get its file for {name!r} ({type(exc).__name__}): connect once, or "
            "set TIKTOKEN_CACHE_DIR to a folder that has it, or use the tokenizer builtin"
        ) from exc
    return encoding.encode_ordinary


def _hugging_face(path: str) -> Callable[[str], int]:
    try:
        import tokenizers
    except ImportError as exc:
        raise missing_extra(_EXTRA, "a tokenizer of Hugging Face") from exc
    if not Path(path).is_file():
        raise UsageError(f"no such tokenizer file: {path}")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(path)
    except Exception as exc:  # the library raises nothing narrower
        raise UsageError(f"{path} is not a tokenizer.json: {exc}") from exc
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
