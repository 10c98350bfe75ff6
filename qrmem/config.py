"""Settings, and the one function that reads the environment and the settings file.

An argument beats the environment, the environment the settings file, the file the default.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from math import inf
from os import PathLike, fspath
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, Self, get_args, get_type_hints

from qrmem.errors import UsageError
from qrmem.types import BuildMode, Orientation

SETTINGS_FILE = "qrmem.toml"
"""Read from the working directory, else from the user's configuration folder."""

_COMMON = {
    "OPENAI_API_KEY": "api_key",
    "OPENAI_BASE_URL": "base_url",
    "NEO4J_URI": "memory",
    "NEO4J_USERNAME": "neo4j_user",
    "NEO4J_PASSWORD": "neo4j_password",
    "CORENLP_HOME": "corenlp_home",
    "STANZA_RESOURCES_DIR": "stanza_models",
}
"""Variables that other programs read too; `QRMEM_` with a setting's name beats them."""


class Secret:
    """A key or password: shown as `***` everywhere but where it is used."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value itself; only adapters call this, when they connect."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __deepcopy__(self, memo: object) -> Self:
        return self  # `dataclasses.asdict` copies

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


class Address(str):
    """A path or URL whose text shows no name, password or query; `reveal` gives all of it."""

    _secret: Secret

    def __new__(cls, value: str) -> Self:
        """Take an address as it was given."""
        made = super().__new__(cls, shown(value))
        made._secret = Secret(value)
        return made

    def reveal(self) -> str:
        """Return the whole address; only adapters call this, when they connect."""
        return self._secret.reveal()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Address):
            return self._secret == other._secret
        return str(self) == other

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __deepcopy__(self, memo: object) -> Self:
        return self


def revealed(address: str) -> str:
    """Return the whole of an address; only what connects to it calls this."""
    return address.reveal() if isinstance(address, Address) else address


def shown(address: str) -> str:
    """Return an address without what may be secret: name and password, query and fragment.

    A password may hold any sign, and the address may lack its scheme or a slash.
    """
    scheme, mark, rest = address.partition("://")
    if not mark:
        return re.sub(r"(?s)^[^@\\]*:.*@", "***@", address)
    authority = rest.partition("/")[0]
    if "@" in authority or ":" in authority:
        rest = re.sub(r"(?s)^.*@", "***@", rest)
    rest = re.sub(r"(?s)#.+", "#***", rest)
    return scheme + mark + re.sub(r"([?&][^=&]*)=[^&#]+", r"\1=***", rest)


_NONE = Secret("")

USUAL_WINDOW = 16_384
"""What is used of a large window unless more is asked for: nobody pays for a novel each time."""
UNKNOWN_WINDOW = 4_096
_WINDOWS = (
    (re.compile(r"gpt-3\.5-turbo-instruct"), 4_096),
    (re.compile(r"gpt-4(-0314|-0613)?$"), 8_192),
    (re.compile(r"(chat)?gpt-|o\d|claude-|gemini-|deepseek-(chat|reasoner)|mistral-"), 128_000),
)
"""Windows of models that are served under a name of their own, by the beginning of the name."""


def usual_window(model: str) -> int:
    """Return the window that is used with a model where none is chosen."""
    name = model.rpartition("/")[2]
    known = (window for pattern, window in _WINDOWS if pattern.match(name))
    return min(next(known, UNKNOWN_WINDOW), USUAL_WINDOW)


class _Marked:
    """Remembers whether the window was left to the model; no setting of its own."""

    __slots__ = ("_has_usual_window",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(_Marked):
    """Everything that can be chosen; validated once, at construction.

    Attributes:
        memory: a path, `sqlite://…`, `neo4j://…`, `bolt://…` or `memory://`.
        model: chat model; "" lets the local reasoner work; `provider/name` is asked through LiteLLM
            (extra `litellm`) where there is no `base_url`.
        stage_models: other models for some stages, `stage=model` with commas between: `reading` and
            `answering` stand for all stages that do it; a stage's own name beats them.
        embedder: `none`, `local`, `contriever`, `sentence-transformers:NAME|PATH`, `openai:NAME`;
            "" is `local` where the extra is installed, else `none`, and only for a new namespace.
        tokenizer: `builtin`, `tiktoken:NAME` or `hf:PATH`.
        tagger: whose entities are united with the reasoner's: `rules`, `corenlp[:URL]` or
            `stanza[:FOLDER]`.
        tagger_timeout: seconds that a tagger has for one segment.
        corenlp_home: folder of CoreNLP's jars; the server is started from it where no URL is given.
        stanza_models: folder of Stanza's models, where the tagger names none.
        prompts: which templates are used: "" is the default set, `paper` that of the papers' steps
            and reply forms, else a folder of templates `NAME.md`; several with commas between.
        paper_exact: as QRMeM has it: mode and prompts `paper`, CoreNLP as the tagger where its jars
            are, a window of 4,096 where none is chosen, and a search without our own switches (see
            `Asking`). `add(question=…)` is the paper's orientation.
        mode: how a memory is built (`compact`: at most 3 calls a segment; `paper`: the paper's
            prompts, a call each).
        segment_tokens: upper bound of a segment, of a new namespace.
        text_fragments: how texts are cut: `sentences` (packed up to `segment_tokens`), or `words:N`
            as LongBench cuts them (FragRel: 500 or 800).
        code_fragments: how source files are cut: `lines` (20, overlapping by 10) or `definitions`.
        window: L in tokens, a hard bound on every call; 0 is that of the model, `USUAL_WINDOW` at
            most, and `UNKNOWN_WINDOW` where the model's is not known.
        reserve: tokens kept free for a reply within the window.
        concurrency: chat calls in flight.
        timeout: seconds for one whole reply; a connection has 4. A server that never answers is
            given up after two of them.
        retries: how often a call is sent again after a failure that may pass.
        requests_per_minute: what the server allows; 0 leaves it to its headers and refusals.
        tokens_per_minute: the same for tokens, prompt and reply together.
        max_calls: requests that one run sends to servers at most, failed ones included; `None`, as
            in the others: no cap. What a request may use is reserved before it is sent.
        max_tokens: prompt and reply tokens of one run.
        max_cost: money of one run, in the currency of the prices.
        max_seconds: wall time of one run.
        prices: a file of prices over those that the package knows (see `qrmem.llm.budget`).
        cache: whether replies are kept and used again.
        record: a cassette that all exchanges with the chat model are written to.
        replay: a cassette that answers in the place of the chat model.
        embed_base_url: server of `openai:` embedders; "" is `base_url`.
        embed_api_key: its key; empty is `api_key`, and only for the same server.
        questions: generated questions per 600 tokens of segment.
        shared_tokens: short segments share a chat call up to so many tokens (`compact`); 0: never.
        similar_names: cosine from which two names of a type count as one; 0, the default, turns
            it off: an encoder finds two brothers alike.
        neo4j_patience: seconds that a transaction is tried again while the server is away.
        token: what clients of `qrmem serve` and `qrmem mcp --http` have to know; empty: nothing.
    """

    memory: str = "qrmem.db"
    namespace: str = "default"
    model: str = ""
    stage_models: str = ""
    base_url: str = ""
    api_key: Secret = _NONE
    embedder: str = ""
    tokenizer: str = "builtin"
    tagger: str = "rules"
    tagger_timeout: float = 30.0
    corenlp_home: str = ""
    stanza_models: str = ""
    prompts: str = ""
    paper_exact: bool = False
    mode: BuildMode = "compact"
    orientation: Orientation = "none"
    segment_tokens: int = 600
    text_fragments: str = "sentences"
    code_fragments: Literal["lines", "definitions"] = "lines"
    window: int = 0
    reserve: int = 512
    concurrency: int = 8
    timeout: float = 60.0
    retries: int = 4
    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None
    prices: str = ""
    cache: bool = True
    record: str = ""
    replay: str = ""
    embed_base_url: str = ""
    embed_api_key: Secret = _NONE
    questions: int = 5
    shared_tokens: int = 600
    similar_names: float = 0.0
    keep_trails: bool = True
    neo4j_user: str = "neo4j"
    neo4j_password: Secret = _NONE
    neo4j_database: str = ""
    neo4j_patience: float = 30.0
    token: Secret = _NONE

    def __post_init__(self) -> None:
        if self.paper_exact:
            exact = {"mode": "paper", "prompts": self.prompts or "paper"}
            exact["tagger"] = self.tagger
            if self.tagger == "rules" and self.corenlp_home:
                exact["tagger"] = "corenlp"
            for name, value in exact.items():
                object.__setattr__(self, name, value)
            if not self.window:
                object.__setattr__(self, "window", UNKNOWN_WINDOW)
        if not self.window:
            object.__setattr__(self, "window", usual_window(self.model))
            object.__setattr__(self, "_has_usual_window", True)
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
            # Written so that NaN, which compares with nothing, is refused too.
            if value is not None and not least <= value < inf:
                raise UsageError(f"{name} must be at least {least}, not {getattr(self, name)}")
        stages(self.stage_models)
        if self.record and self.replay:
            raise UsageError("record and replay exclude each other: a replay has nothing new")
        if not re.fullmatch(r"sentences|words:[1-9]\d{0,5}", self.text_fragments):
            raise UsageError(
                f"text_fragments is {self.text_fragments!r}; choose sentences or words:N"
            )
        if not self.namespace or len(self.namespace) > 200 or "\x00" in self.namespace:
            raise UsageError("a namespace has 1 to 200 characters and no NUL")

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        file: Path | None = None,
        **chosen: Any,
    ) -> Self:
        """Return settings from defaults, settings file, environment and arguments, in rising order.

        Args:
            environ: instead of the process's environment.
            file: instead of `qrmem.toml` here or in the user's configuration folder.
            chosen: arguments; `None` means "not given".

        Raises:
            UsageError: a value is not allowed, or the file has a name that no setting has.
        """
        environ = os.environ if environ is None else environ
        values = _from_file(file or _default_file(environ))
        values |= {ENVIRONMENT[name]: environ[name] for name in ENVIRONMENT if environ.get(name)}
        values |= {name: value for name, value in chosen.items() if value is not None}
        return cls(**_typed(values))

    def with_(self, **chosen: Any) -> Self:
        """Return a copy with the arguments that are not `None`."""
        given = {name: value for name, value in chosen.items() if value is not None}
        if getattr(self, "_has_usual_window", False):
            given.setdefault("window", 0)  # another model may have another one
        return replace(self, **_typed(given))


def provider_keys() -> tuple[Secret, ...]:
    """Return the keys of other providers that the environment holds, which no message may show."""
    return tuple(Secret(value) for name, value in os.environ.items() if name.endswith("_API_KEY"))


_FIELDS = tuple(field.name for field in fields(Settings))
ENVIRONMENT = _COMMON | {f"QRMEM_{name.upper()}": name for name in _FIELDS}
"""Variable to field; of two for one field the later one counts."""


def misspelt(environ: Mapping[str, str]) -> dict[str, str]:
    """Return variables that are nearly those of a setting, with the name that is."""
    own = (name for name in environ if name.startswith("QRMEM_") and name not in ENVIRONMENT)
    found = {name: _nearest(name.removeprefix("QRMEM_").lower()) for name in own}
    return {name: f"QRMEM_{near.upper()}" for name, near in found.items() if near}


def _nearest(name: str) -> str:
    return next(iter(get_close_matches(name, _FIELDS, 1, cutoff=0.75)), "")


_ADDRESSES = ("memory", "base_url", "embed_base_url", "tagger")
"""Settings that may hold a URL, and with it a password."""
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "code_fragments": ("lines", "definitions"),
    "mode": get_args(BuildMode),
    "orientation": get_args(Orientation),
}
_SWITCH = {word: True for word in ("true", "yes", "on", "1")} | {
    word: False for word in ("false", "no", "off", "0")
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
    """Return model by stage, out of `stage=model` with commas between.

    Raises:
        UsageError: it is something else.
    """
    found = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        stage, mark, model = (part.strip() for part in item.partition("="))
        if not (stage and mark and model):
            raise UsageError(f"stage_models takes stage=model, with commas between, not {item!r}")
        found[stage] = model
    return found


def _default_file(environ: Mapping[str, str]) -> Path | None:
    home = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "~")) / ".config")
    for path in (Path(SETTINGS_FILE), Path(home) / "qrmem" / SETTINGS_FILE):
        with suppress(PermissionError):  # a service may run with another user's home
            if path.is_file():
                return path
    return None


def _from_file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise UsageError(f"settings file {path}: {exc}") from exc
    if unknown := sorted(values.keys() - set(_FIELDS)):
        near = f"; did you mean {found!r}?" if (found := _nearest(unknown[0])) else ""
        raise UsageError(f"settings file {path}: no setting is called {unknown[0]!r}{near}")
    return values


def _typed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the strings of files and variables into the fields' types."""
    hints = get_type_hints(Settings)
    unknown = values.keys() - set(_FIELDS)
    if unknown:
        raise UsageError(f"no setting is called {sorted(unknown)[0]!r}")
    return {name: _cast(name, value, hints[name]) for name, value in values.items()}


def _cast(name: str, value: Any, kind: Any) -> Any:
    if isinstance(kind, UnionType):
        (kind,) = set(get_args(kind)) - {NoneType}
    if kind is Secret:
        return _secret(name, value)
    if kind is bool:
        return _switch(name, value)
    if kind in (int, float):
        return _number(name, value, kind)
    if kind is str and isinstance(value, Mapping):
        return ",".join(f"{key}={item}" for key, item in value.items())
    if kind is str and isinstance(value, PathLike):
        return fspath(value)
    if kind is str and not isinstance(value, str):
        raise UsageError(f"{name} must be a text, not {value!r}")
    return value


def _secret(name: str, value: Any) -> Secret:
    if not isinstance(value, str | Secret):
        raise UsageError(f"{name} must be a text")
    return value if isinstance(value, Secret) else Secret(value)


def _switch(name: str, value: Any) -> bool:
    word = str(value).strip().lower()
    if word not in _SWITCH:
        raise UsageError(f"{name} must be one of {', '.join(_SWITCH)}, not {value!r}")
    return _SWITCH[word]


def _number(name: str, value: Any, kind: type[int] | type[float]) -> int | float:
    try:
        number = kind(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    # A part of a whole number is not cut off in silence.
    if number is None or isinstance(value, bool) or (isinstance(value, float) and number != value):
        what = "a whole number" if kind is int else "a number"
        raise UsageError(f"{name} must be {what}, not {value!r}")
    return number


__all__ = [
    "ENVIRONMENT",
    "SETTINGS_FILE",
    "Address",
    "Secret",
    "Settings",
    "misspelt",
    "provider_keys",
    "revealed",
    "shown",
    "stages",
]
