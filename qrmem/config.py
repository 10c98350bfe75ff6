"""Settings, and the one function that reads the environment and the settings files.

Arguments override the environment, which overrides the file in the working folder, which overrides
the user's own file, which overrides the defaults. The type of each field of `Settings` says what a
file in the working folder may set before the user trusts it.
"""

import os
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from math import inf
from os import PathLike, fspath
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Self, get_args, get_type_hints

from qrmem import settings_files
from qrmem.errors import UsageError
from qrmem.settings_files import (
    Address,
    BelowFolder,
    Harmless,
    LowerOnly,
    OwnSets,
    PlainEmbedder,
    PlainReranker,
    PlainTagger,
    PlainTokenizer,
    SameServer,
    Secret,
    SettingsFile,
    as_number,
    as_secret,
    as_switch,
    revealed,
    shown,
)
from qrmem.types import BuildMode, Orientation

_COMMON = {
    "OPENAI_API_KEY": "api_key",
    "OPENAI_BASE_URL": "base_url",
    "NEO4J_URI": "memory",
    "NEO4J_USERNAME": "neo4j_user",
    "NEO4J_PASSWORD": "neo4j_password",
    "NEO4J_DATABASE": "neo4j_database",
    "CORENLP_HOME": "corenlp_home",
    "STANZA_RESOURCES_DIR": "stanza_models",
}
"""Variables that other programs share; `QRMEM_` and a setting's name overrides them."""


_NONE = Secret("")

USUAL_WINDOW = 16_384
"""The part of a large window that is used by default, so that nobody pays for a novel each time."""
UNKNOWN_WINDOW = 4_096
_WINDOWS = (
    (re.compile(r"gpt-3\.5-turbo-instruct"), 4_096),
    (re.compile(r"gpt-4(-0314|-0613)?$"), 8_192),
    (re.compile(r"(chat)?gpt-|o\d|claude-|gemini-|deepseek-(chat|reasoner)|mistral-"), 128_000),
)
"""Windows of well-known models, by a pattern that the name begins with."""


def usual_window(model: str) -> int:
    """Return the default window for a model, in tokens."""
    name = model.rpartition("/")[2]
    windows = (window for pattern, window in _WINDOWS if pattern.match(name))
    return min(next(windows, UNKNOWN_WINDOW), USUAL_WINDOW)


class _UsualWindow(int):
    """A window that follows the model: it changes with the model of the settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings; validated once, at construction.

    The type of a field says what a settings file in the working folder may set before the user
    trusts it: `Harmless`, `LowerOnly` and so on; with a plain type it may set nothing.

    Attributes:
        memory: a path, `sqlite://…`, `neo4j://…`, `bolt://…`, or `:memory:` (also `memory://`).
        namespace: name of one memory in a store.
        model: name of the chat model; "": built-in rules read. `provider/name` is called through
            LiteLLM (extra `litellm`) if `base_url` is empty.
        stage_models: other models for some stages, as `stage=model,…`. `reading`
            and `answering` stand for all stages of that kind; a stage's own name overrides them.
        reasoning_effort: how much a reasoning model should reason, `low` say, or by stage as
            `reading=low, answering=high`; "": the server's default. A server that does not know it
            gets requests without.
        base_url: address of an OpenAI-compatible server; "": OpenAI's own.
        api_key: key for that server.
        embedder: `none`, `light`, `light:NAME|FOLDER`, `local`, `contriever`,
            `sentence-transformers:NAME|FOLDER`, `openai:NAME`; "" is `local` or `light`, whichever
            extra is installed, else `none`, and only for a new namespace.
        tokenizer: `builtin`, `tiktoken:NAME` or `hf:PATH`.
        tagger: the entity tagger beside a chat model, or instead of the built-in rules:
            `auto`, `none`, `rules`, `corenlp[:URL]` or `stanza[:FOLDER]`. `auto` is none with a
            chat model in mode `compact`, whose word alone counts there, else the rules.
        tagger_timeout: seconds that a tagger may take for one segment.
        corenlp_home: folder of CoreNLP's jars; qrmem starts the server from it if no URL is given.
        stanza_models: folder of Stanza's models, if `tagger` names none.
        prompts: prompt templates: "" is the default set; `paper` has the papers' steps and reply
            forms; any other value is a folder of files `NAME.md`. Commas separate several; later
            ones override.
        schema: own types of entities and relations: a TOML file or a `qrmem.Schema`; "": none.
        paper_exact: work exactly as in QRMeM's paper: mode and prompts `paper`, CoreNLP as the
            tagger if its jars are there, a window of 4,096 tokens if none is chosen, and a search
            without our own changes (see `AskOptions`). `add(question=…)` is the paper's
            orientation.
        mode: how a chat model reads: `compact` makes at most 3 calls for each segment, `paper`
            one call for each of the paper's prompts.
        orientation: `local` reads the segments nearest to a question again with it in mind.
        segment_tokens: token limit of a segment, for a new namespace.
        text_fragments: how texts are cut: `sentences` (up to `segment_tokens`), or `words:N`
            as LongBench cuts them (FragRel: 500 or 800).
        code_fragments: how source files are cut: `lines` (20, overlapping by 10), `definitions`.
        window: the paper's L: token limit of every call, prompt and reply. 0: the model's own, at
            most `USUAL_WINDOW`; `UNKNOWN_WINDOW` if the model is not known.
        reserve: tokens kept free for a reply within the window.
        concurrency: maximum number of chat calls in flight.
        executor: where `add` parses files and reads without a chat model: `inline` (in this
            process), `processes` or `processes:N` (on this machine), `ray` or `ray:N` (on the
            cluster at RAY_ADDRESS, else on this machine).
        timeout: seconds to wait for a whole reply; connecting may take 4. A run gives up after two
            time-outs of a server that never answers.
        retries: maximum number of repetitions of a call after temporary failures.
        requests_per_minute: rate limit of the server; 0: learned from its headers and refusals.
        tokens_per_minute: the same for tokens, prompts and replies together.
        max_calls: cap on the requests of one run, including failed ones; `None` or `inf` means no
            cap, here and in the next three. Each request first reserves the most that it can use.
        max_tokens: cap on the tokens of one run, prompts and replies together.
        max_cost: cap on the cost of one run, in the currency of the prices.
        max_seconds: cap on the wall time of one run.
        prices: a price file, which overrides the prices in the package (see `qrmem.llm.budget`).
        cache: whether to store replies of the chat model in the memory and reuse them.
        record: file (a cassette) to which all chat requests and replies are written.
        replay: cassette that answers instead of the chat model.
        embed_base_url: address of the server for `openai:` embedders; "": `base_url`.
        embed_api_key: key for that server; "": `api_key`, unless `embed_base_url` is set.
        reranker: reorders the first 50 candidates of a search: a cross-encoder's name or folder
            (sentence-transformers), or the URL of a rerank endpoint in the form of Cohere and Jina;
            "" or `none` turns it off.
        rerank_model: model to name to such an endpoint; "": the server's own.
        rerank_api_key: key for that endpoint; "": `api_key`, if the server is the same.
        questions: number of questions that a chat model generates for a segment of 600 tokens, to
            read the segment again with them; `None`: 5 in mode `paper`, none in mode `compact`.
        shared_tokens: in mode `compact`, segments share a chat call up to this many tokens; 0:
            never; `None`: 3,000 for a window of 16,000 tokens or more, else 600.
        similar_names: cosine, in [0, 1], from which two names of one type are merged; 0 (default)
            turns this off, since names of two brothers are similar, too.
        keep_trails: whether to record the steps of `ask`.
        neo4j_user: user name for Neo4j.
        neo4j_password: password of that user.
        neo4j_database: name of the database; "": the server's default.
        neo4j_patience: seconds to retry a transaction while Neo4j does not answer.
        token: clients of `qrmem serve` and `qrmem mcp --http` must send it; "": none is needed.
    """

    memory: BelowFolder[str] = "qrmem.db"
    namespace: Harmless[str] = "default"
    model: SameServer[str] = ""
    stage_models: SameServer[str] = ""
    reasoning_effort: Harmless[str] = ""
    base_url: str = ""
    api_key: Secret = _NONE
    embedder: PlainEmbedder[str] = ""
    tokenizer: PlainTokenizer[str] = "builtin"
    tagger: PlainTagger[str] = "auto"
    tagger_timeout: Harmless[float] = 30.0
    corenlp_home: str = ""
    stanza_models: str = ""
    prompts: OwnSets[str] = ""
    schema: Any = ""
    paper_exact: Harmless[bool] = False
    mode: Harmless[BuildMode] = "compact"
    orientation: Harmless[Orientation] = "none"
    segment_tokens: Harmless[int] = 600
    text_fragments: Harmless[str] = "sentences"
    code_fragments: Harmless[Literal["lines", "definitions"]] = "lines"
    window: Harmless[int] = 0
    reserve: Harmless[int] = 512
    concurrency: Harmless[int] = 8
    executor: str = "inline"
    timeout: Harmless[float] = 60.0
    retries: Harmless[int] = 4
    requests_per_minute: Harmless[int] = 0
    tokens_per_minute: Harmless[int] = 0
    max_calls: LowerOnly[int | None] = None
    max_tokens: LowerOnly[int | None] = None
    max_cost: LowerOnly[float | None] = None
    max_seconds: LowerOnly[float | None] = None
    prices: str = ""
    cache: bool = True
    record: str = ""
    replay: str = ""
    embed_base_url: str = ""
    embed_api_key: Secret = _NONE
    reranker: PlainReranker[str] = ""
    rerank_model: str = ""
    rerank_api_key: Secret = _NONE
    questions: Harmless[int | None] = None
    shared_tokens: Harmless[int | None] = None
    similar_names: Harmless[float] = 0.0
    keep_trails: bool = True
    neo4j_user: str = "neo4j"
    neo4j_password: Secret = _NONE
    neo4j_database: str = ""
    neo4j_patience: Harmless[float] = 30.0
    token: Secret = _NONE

    def __post_init__(self) -> None:
        if self.paper_exact:
            exact = {"mode": "paper", "prompts": self.prompts or "paper"}
            if self.tagger == "auto":
                exact["tagger"] = "corenlp" if self.corenlp_home else "rules"
            for name, value in exact.items():
                object.__setattr__(self, name, value)
        if not self.window or isinstance(self.window, _UsualWindow):
            usual = UNKNOWN_WINDOW if self.paper_exact else usual_window(self.model)
            object.__setattr__(self, "window", _UsualWindow(usual))
        for name in ("max_calls", "max_tokens", "max_cost", "max_seconds"):
            if getattr(self, name) == inf:
                object.__setattr__(self, name, None)
        for name in _ADDRESSES:
            if not isinstance(value := getattr(self, name), Address):
                object.__setattr__(self, name, Address(value))
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise UsageError(
                    f"{name} is {getattr(self, name)!r}; choose one of {', '.join(allowed)}"
                )
        for name, least in _AT_LEAST.items():
            value = getattr(self, name)
            # `not >=` instead of `<`: NaN is refused, too.
            if value is not None and not least <= value < inf:
                raise UsageError(f"{name} must be at least {least}, not {getattr(self, name)}")
        stages(self.stage_models)
        efforts(self.reasoning_effort)
        if self.record and self.replay:
            raise UsageError("record and replay exclude each other: a replay has nothing new")
        if not re.fullmatch(r"sentences|words:[1-9]\d{0,5}", self.text_fragments):
            raise UsageError(
                f"text_fragments is {self.text_fragments!r}; choose sentences or words:N"
            )
        if not EXECUTOR.fullmatch(self.executor):
            raise UsageError(
                f"executor is {self.executor!r}; choose inline, processes, ray, processes:N or "
                "ray:N (N workers)"
            )
        if not self.namespace or len(self.namespace) > 200 or "\x00" in self.namespace:
            raise UsageError("a namespace has 1 to 200 characters and no NUL")
        if "\x00" in self.memory:  # SQLite would end the path there and open another file
            raise UsageError("the address of a memory contains a NUL character: leave it out")

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        file: Path | None = None,
        tell: Callable[[str], None] = warnings.warn,
        **chosen: Any,
    ) -> Self:
        """Return settings from defaults, files, environment and arguments; later ones override.

        Args:
            environ: instead of the process's environment.
            file: instead of `qrmem.toml` here and the user's own settings file.
            tell: gets the line that names the ignored settings of an untrusted `qrmem.toml`.
            chosen: arguments; `None` means "not given".

        Raises:
            UsageError: a value is not allowed, or a file has an unknown name.
        """
        values = find(environ, file=file, **chosen)
        if values.told:
            tell(values.told)
        return cls(**values.values)

    @property
    def has_usual_window(self) -> bool:
        """Whether nobody chose a window."""
        return isinstance(self.window, _UsualWindow)

    def with_(self, **chosen: Any) -> Self:
        """Return a copy with the arguments that are not `None`; `inf` lifts a cap."""
        values = {name: value for name, value in chosen.items() if value is not None}
        return replace(self, **_typed(values))


def provider_keys() -> tuple[Secret, ...]:
    """Return other providers' keys in the environment; no message may show them."""
    return tuple(Secret(value) for name, value in os.environ.items() if name.endswith("_API_KEY"))


_FIELDS = tuple(field.name for field in fields(Settings))
ENVIRONMENT = _COMMON | {f"QRMEM_{name.upper()}": name for name in _FIELDS}
"""Setting by variable; if two variables set one setting, the later one counts."""


def misspelt(environ: Mapping[str, str]) -> dict[str, str]:
    """Return variables with names similar to a setting's variable, with that variable."""
    unknown_names = (
        name for name in environ if name.startswith("QRMEM_") and name not in ENVIRONMENT
    )
    nearest_names = {name: _nearest(name.removeprefix("QRMEM_").lower()) for name in unknown_names}
    return {name: f"QRMEM_{nearest.upper()}" for name, nearest in nearest_names.items() if nearest}


def _nearest(name: str) -> str:
    return next(iter(get_close_matches(name, _FIELDS, 1, cutoff=0.75)), "")


EXECUTOR = re.compile(r"inline|(processes|ray)(?::([1-9]\d{0,3}))?")
"""Values of `executor`: the kind, and optionally the number of workers."""
_ADDRESSES = ("memory", "base_url", "embed_base_url", "reranker", "tagger")
"""Settings that may hold a URL with a password in it."""
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "code_fragments": ("lines", "definitions"),
    "mode": get_args(BuildMode),
    "orientation": get_args(Orientation),
}
_AT_LEAST: Mapping[str, float] = {
    "segment_tokens": 16,
    "window": 64,
    "reserve": 0,
    "concurrency": 1,
    "timeout": 0.001,
    "tagger_timeout": 0.001,
    "retries": 0,
    "requests_per_minute": 0,
    "tokens_per_minute": 0,
    "max_calls": 0,
    "max_tokens": 0,
    "max_cost": 0,
    "max_seconds": 0,
    "questions": 0,
    "shared_tokens": 0,
    "similar_names": 0,
    "neo4j_patience": 0,
}


def stages(text: str) -> dict[str, str]:
    """Parse `stage=model,…` into the model by stage.

    Raises:
        UsageError: an item has no `=`, no stage or no model.
    """
    models_by_stage = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        stage, mark, model = (part.strip() for part in item.partition("="))
        if not (stage and mark and model):
            raise UsageError(f"stage_models takes stage=model, with commas between, not {item!r}")
        models_by_stage[stage] = model
    return models_by_stage


def efforts(text: str) -> dict[str, str]:
    """Parse `effort` or `stage=effort,…` into the reasoning effort by stage; "" is all others.

    Raises:
        UsageError: an item is neither.
    """
    by_stage = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        stage, mark, effort = (part.strip() for part in item.rpartition("="))
        if not effort.isalpha() or bool(mark) != bool(stage) or "=" in stage:
            raise UsageError(
                f"reasoning_effort is a word such as low, or stage=word with commas, not {item!r}"
            )
        by_stage[stage] = effort
    return by_stage


@dataclass(frozen=True, slots=True)
class GivenSettings:
    """Settings from all sources, before `Settings` checks them together.

    Attributes:
        values: the given settings by name.
        origins: the origin of each by name: a file, a variable or `OPTION`.
        own: the user's own settings file, if there is one.
        here: the settings file in the working folder, if there is one.
        is_trusted: whether the user trusts that file.
        told: a line about settings that this file may not set; "" if there are none.
    """

    values: Mapping[str, Any]
    origins: Mapping[str, str]
    own: SettingsFile | None
    here: SettingsFile | None
    is_trusted: bool
    told: str


OPTION = "an option"


def find(
    environ: Mapping[str, str] | None = None, *, file: Path | None = None, **chosen: Any
) -> GivenSettings:
    """Find the given settings and their origins; see `Settings.from_env`."""
    environ = os.environ if environ is None else environ
    own_settings = settings_files.read(file) if file else settings_files.own_file(environ)
    here = None if file else settings_files.file_of()
    names = {ENVIRONMENT[name]: name for name in ENVIRONMENT if environ.get(name)}
    options = _typed({name: value for name, value in chosen.items() if value is not None})
    variables = _typed({field: environ[name] for field, name in names.items()})
    by_own, by_here = file_values(own_settings), file_values(here)
    ignored: tuple[str, ...] = ()
    warning = ""
    is_trusted = here is not None and settings_files.is_trusted(here, environ)
    if here is not None and not is_trusted:
        defaults = {field.name: field.default for field in fields(Settings)}
        ignored = _forbidden(by_here, defaults | by_own | variables | options)
        warning = _ignored_in_words(here, ignored, environ) if ignored else ""
    by_here = {name: value for name, value in by_here.items() if name not in ignored}
    layers = (
        (by_own, dict.fromkeys(by_own, str(own_settings and own_settings.path))),
        (by_here, dict.fromkeys(by_here, str(here and here.path))),
        (variables, names),
        (options, dict.fromkeys(options, OPTION)),
    )
    values = {name: value for layer, _ in layers for name, value in layer.items()}
    origins = {name: origin for _, layer in layers for name, origin in layer.items()}
    return GivenSettings(values, origins, own_settings, here, is_trusted, warning)


def file_values(file: SettingsFile | None) -> dict[str, Any]:
    """Return the values of a settings file, converted to the types of the settings.

    Raises:
        UsageError: it is not TOML, or has an unknown setting or a value of a wrong type.
    """
    if file is None:
        return {}
    values = file.values()
    if unknown := sorted(values.keys() - set(_FIELDS)):
        hint = f"; did you mean {nearest!r}?" if (nearest := _nearest(unknown[0])) else ""
        raise UsageError(f"settings file {file.path}: no setting is called {unknown[0]!r}{hint}")
    try:
        return _typed(values)
    except UsageError as exc:
        raise UsageError(f"settings file {file.path}: {exc}") from exc


def _forbidden(values: Mapping[str, Any], own: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the settings that a file may not set unless the user trusts it."""
    hints = get_type_hints(Settings, include_extras=True)
    rules = {name: getattr(hints[name], "__metadata__", ()) for name in values}
    return tuple(
        name
        for name, value in values.items()
        if not any(may(name, value, own) for may in rules[name])
    )


def _ignored_in_words(
    file: SettingsFile, ignored: tuple[str, ...], environ: Mapping[str, str]
) -> str:
    was_trusted = file.path in settings_files.trusted(environ)
    why = "changed since you trusted it" if was_trusted else "is not trusted"
    return (
        f"{file.path} {why}, so it does not set {', '.join(ignored)}; if you wrote that, "
        "allow it: qrmem trust"
    )


def _typed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the strings of files and variables to the types of the settings."""
    hints = get_type_hints(Settings)
    if unknown := values.keys() - set(_FIELDS):
        raise UsageError(f"no setting is called {sorted(unknown)[0]!r}")
    return {name: _cast(name, value, hints[name]) for name, value in values.items()}


def _cast(name: str, value: Any, kind: Any) -> Any:
    if isinstance(kind, UnionType):
        (kind,) = set(get_args(kind)) - {NoneType}
        if str(value).strip().lower() in ("none", "inf"):
            return inf  # `inf` lifts a cap that another source sets
    if kind is Secret:
        return as_secret(name, value)
    if kind is bool:
        return as_switch(name, value)
    if kind in (int, float):
        return as_number(name, value, kind)
    if kind is str and isinstance(value, Mapping):
        return ",".join(f"{key}={item}" for key, item in value.items())
    if kind is str and isinstance(value, PathLike):
        return fspath(value)
    if kind is str and not isinstance(value, str):
        raise UsageError(f"{name} must be a text, not {value!r}")
    return value


__all__ = [
    "ENVIRONMENT",
    "OPTION",
    "Address",
    "GivenSettings",
    "Secret",
    "Settings",
    "file_values",
    "find",
    "misspelt",
    "provider_keys",
    "revealed",
    "shown",
    "stages",
]


def captures_content() -> bool:
    """Return whether spans include prompts and replies, by OpenTelemetry's own variable."""
    value = os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "")
    return value.strip().lower() in ("true", "span_only", "span_and_event")
