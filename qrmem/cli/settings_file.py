"""The settings file that `qrmem init` writes: every setting with its default, commented out."""

from collections.abc import Mapping
from dataclasses import fields

from qrmem.config import Secret, Settings

_HEAD = """\
# Settings of qrmem, read from qrmem.toml in the working directory, else from
# ~/.config/qrmem/qrmem.toml. Options of a command and environment variables (QRMEM_ and the name
# in capitals) override it. Uncomment a line to change it: it shows the default, or an example
# where a setting has none.
# Keys are better kept in the environment: OPENAI_API_KEY, QRMEM_EMBED_API_KEY, NEO4J_PASSWORD.
"""

_GROUPS: Mapping[str, Mapping[str, str]] = {
    "The memory": {
        "memory": "a path, sqlite://PATH, neo4j://HOST, bolt://HOST or memory://",
        "namespace": "the name of one memory in a store",
        "neo4j_user": "",
        "neo4j_password": "better set in the environment",
        "neo4j_database": "empty: the server's default",
    },
    "The chat model; without one, built-in rules read the text": {
        "model": 'such as "gpt-5-mini", or what your own server calls it',
        "base_url": 'address of an OpenAI-compatible server: "http://localhost:8000/v1"',
        "api_key": "better set in the environment",
        "concurrency": "chat calls at the same time",
        "timeout": "seconds to wait for a whole reply",
        "retries": "how often a failed call is sent again",
        "requests_per_minute": "limit of the server; 0: learned from its refusals",
        "tokens_per_minute": "the same for tokens, prompts and replies together",
    },
    "Embeddings; they may come from another server": {
        "embedder": '"none", "local", "sentence-transformers:NAME" or "openai:NAME"',
        "embed_base_url": "empty: the server of the chat model",
        "embed_api_key": "better set in the environment",
    },
    "Caps of one run; 0 allows nothing": {
        "max_calls": "requests",
        "max_tokens": "prompts and replies together",
        "max_cost": "in the currency of the price list",
        "max_seconds": "run time",
        "prices": "price list that overrides the built-in one",
    },
    "Replies": {
        "cache": "store model replies in the memory and use them again",
        "record": "record all model requests and replies to this file",
        "replay": "answer from this recorded file, without network",
    },
}
"""Setting to its comment; all others follow without one."""

_EXAMPLES: Mapping[str, str] = {
    "max_calls": "200",
    "max_tokens": "500_000",
    "max_cost": "2.50",
    "max_seconds": "3600",
}
"""What is shown where there is no default."""

_STAGES = """\
# Another model for some stages: a cheap one to read, a strong one to answer. A stage's own name
# (extract, supplement, summary, fold, judge, answer, …) beats `reading` and `answering`.
# [stage_models]
# reading = "gpt-5-nano"
# answering = "gpt-5"
"""


def written() -> str:
    """Return the file's text; it can be read back as it is, and changes nothing."""
    defaults = {field.name: field.default for field in fields(Settings)}
    named = {name for group in _GROUPS.values() for name in group} | {"stage_models"}
    lines = [_HEAD]
    for title, group in _GROUPS.items():
        lines.append(f"# --- {title}\n")
        lines += [_line(name, defaults[name], said) for name, said in group.items()]
        lines.append("")
    lines.append("# --- All others (docs/settings.md)\n")
    lines += [_line(name, value, "") for name, value in defaults.items() if name not in named]
    # A table has to stand at the end: what follows one would belong to it.
    return "\n".join([*lines, "", _STAGES])


def _line(name: str, default: object, said: str) -> str:
    value = f"# {name} = {_EXAMPLES.get(name) or _shown(default)}"
    return f"{value:<38} # {said}" if said else value


def _shown(value: object) -> str:
    """Return a default as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:g}"
    return '""' if isinstance(value, Secret) else f'"{value}"'
