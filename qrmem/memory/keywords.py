"""Keyword options as types, so that an editor offers them and a type checker refuses others."""

from collections.abc import Sequence
from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from qrmem.config import Secret
from qrmem.types import BuildMode, Orientation, Strategy, Where
from qrmem.types.documents import TreeKind
from qrmem.types.options import CapOptions

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from qrmem.retrieval.fragments import FragmentSettings
    from qrmem.schema import Schema

__all__ = ["AskKeywords", "OpenOptions", "PlanKeywords"]


# Keyword options as types, so that an editor offers them and a type checker refuses others.


class OpenOptions(TypedDict, total=False):
    """Settings that `open` takes by name; `None` means "not given". See `Settings`."""

    model: str | None
    stage_models: str | None
    reasoning_effort: str | None
    base_url: str | None
    api_key: str | Secret | None
    embedder: str | None
    tokenizer: str | None
    tagger: str | None
    tagger_timeout: float | None
    corenlp_home: str | PathLike[str] | None
    stanza_models: str | PathLike[str] | None
    prompts: str | PathLike[str] | None
    schema: "Schema | str | PathLike[str] | None"
    paper_exact: bool | None
    mode: BuildMode | None
    orientation: Orientation | None
    segment_tokens: int | None
    text_fragments: str | None
    code_fragments: Literal["lines", "definitions"] | None
    window: int | None
    reserve: int | None
    concurrency: int | None
    executor: str | None
    timeout: float | None
    retries: int | None
    requests_per_minute: int | None
    tokens_per_minute: int | None
    max_calls: int | None
    max_tokens: int | None
    max_cost: float | None
    max_seconds: float | None
    prices: str | PathLike[str] | None
    cache: bool | None
    record: str | PathLike[str] | None
    replay: str | PathLike[str] | None
    embed_base_url: str | None
    embed_api_key: str | Secret | None
    reranker: str | PathLike[str] | None
    rerank_model: str | None
    rerank_api_key: str | Secret | None
    questions: int | None
    shared_tokens: int | None
    similar_names: float | None
    keep_trails: bool | None
    neo4j_user: str | None
    neo4j_password: str | Secret | None
    neo4j_database: str | None
    neo4j_patience: float | None
    token: str | Secret | None


class AskKeywords(CapOptions, total=False):
    """Options of `Memory.ask`."""

    strategy: Strategy | None
    window: int | None
    choices: Sequence[str] | None
    documents: Sequence[str] | None
    where: Where | None
    types: Sequence[str] | None
    as_of: str | date
    orientation: Orientation | None
    share_orientation: bool
    max_trials: int
    start: Literal["search", "entities"]
    on_exhausted: Literal["abstain", "force"]
    keep_trail: bool | None
    fragments: "FragmentSettings | None"
    reranker: str | None
    checkpointer: "BaseCheckpointSaver[Any] | None"


class PlanKeywords(AskKeywords, total=False):
    """Options of `Memory.plan`: those of `Memory.ask`, `add` or `build_tree`."""

    update: bool
    rebuild: bool
    glob: str | None
    follow_links: bool
    question: str
    kind: TreeKind
    preset: Literal["default", "paper"]
