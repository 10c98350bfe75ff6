"""`qrmem init` and `qrmem trust`: write a settings file, and trust one.

The file has every setting with its default, commented out.
"""

import os
from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from qrmem import settings_files
from qrmem.cli import output
from qrmem.cli.arguments import Common
from qrmem.config import Secret, Settings, file_values
from qrmem.errors import NotFound, UsageError, page
from qrmem.settings_files import SETTINGS_FILE, require_file
from qrmem.types.shown import one_line

SCHEMA_FILE = "schema.toml"
_HEAD = """\
# Settings of qrmem. qrmem.toml in the working folder overrides ~/.config/qrmem/settings.toml;
# environment variables (QRMEM_ and the name in capitals) override both, and options of a command
# override all. Uncomment a line to change it: it shows the default, or an example where a setting
# has none. In qrmem.toml, addresses, keys and paths count only after `qrmem trust`, which is
# needed after each change: the file could come from somebody else.
# Keys are better kept in the environment: OPENAI_API_KEY, QRMEM_EMBED_API_KEY, NEO4J_PASSWORD.
"""

_GROUPS: Mapping[str, Mapping[str, str]] = {
    "The memory": {
        "memory": "a path, sqlite://PATH, neo4j://HOST, bolt://HOST or :memory:",
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
        "retries": "how often a failed call is repeated",
        "reasoning_effort": 'of a reasoning model: "low", or "reading=low, answering=high"',
        "requests_per_minute": "limit of the server; 0: learned from its refusals",
        "tokens_per_minute": "the same for tokens, prompts and replies together",
    },
    "Embeddings; they may come from another server": {
        "embedder": '"none", "light", "local", "sentence-transformers:NAME" or "openai:NAME"',
        "embed_base_url": "empty: the server of the chat model",
        "embed_api_key": "better set in the environment",
    },
    "A reranker reads the first candidates of a search again": {
        "reranker": '"none", a cross-encoder\'s name or folder, or the URL of a rerank endpoint',
        "rerank_model": "of such an endpoint; empty: its own",
        "rerank_api_key": "better set in the environment",
    },
    "Caps of one run; 0 allows nothing": {
        "max_calls": "requests",
        "max_tokens": "prompts and replies together",
        "max_cost": "in the currency of the price list",
        "max_seconds": "run time",
        "prices": "price list that overrides the built-in one",
    },
    "Work": {
        "executor": '"inline", "processes" (of this machine) or "ray"; ":N" after it: N workers',
    },
    "Replies": {
        "cache": "store model replies in the memory and use them again",
        "record": "record all model requests and replies to this file",
        "replay": "answer from this recorded file, without network",
    },
}
"""Comment by setting; all other settings follow without one."""

_EXAMPLES: Mapping[str, str] = {
    "max_calls": "200",
    "max_tokens": "500_000",
    "max_cost": "2.50",
    "max_seconds": "3600",
    "questions": "5",
    "shared_tokens": "3_000",
}
"""Examples for settings without a default."""

_STAGES = """\
# Another model for some stages: a cheap one to read, a strong one to answer. A stage's own name
# (extract, supplement, summary, fold, judge, answer, …) beats `reading` and `answering`.
# [stage_models]
# reading = "gpt-5-nano"
# answering = "gpt-5"
"""


def add_settings(commands: Any, common: Common) -> None:
    """Add the commands about settings files."""
    init = commands.add_parser("init", parents=common(), help="write a settings file to edit")
    init.add_argument(
        "path", nargs="?", metavar="PATH", help=f"file to write (default: {SETTINGS_FILE})"
    )
    init.add_argument(
        "--schema",
        action="store_true",
        help=f"write an example of own types instead (default: {SCHEMA_FILE})",
    )
    init.add_argument("--force", action="store_true", help="replace an existing file")
    trust = commands.add_parser(
        "trust",
        parents=common(),
        help=f"let {SETTINGS_FILE} of a folder set addresses, keys and paths, until it changes",
    )
    trust.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help="default: this one")
    which = trust.add_mutually_exclusive_group()
    which.add_argument("--remove", action="store_true", help="stop trusting the folder's file")
    which.add_argument("--list", action="store_true", help="list trusted files")


async def init(arguments: Namespace) -> int:
    """Write a settings file with every setting commented out, or an example schema."""
    if arguments.schema:
        return _init_schema(arguments)
    path = Path(arguments.path or SETTINGS_FILE)
    _write(path, file_text(), replace=arguments.force)
    lines = [f"written {output.safe(str(path))}: uncomment a line to change the default"]
    if path.name == SETTINGS_FILE:
        with suppress(UsageError, OSError):  # the file is of use without being trusted
            settings_files.trust(require_file(path.parent), os.environ)
        lines.append("addresses, keys and paths in it take effect after: qrmem trust")
    return output.print_done(arguments, {"written": str(path)}, lines)


def _init_schema(arguments: Namespace) -> int:
    from qrmem.schema import EXAMPLE

    path = Path(arguments.path or SCHEMA_FILE)
    _write(path, EXAMPLE, replace=arguments.force)
    line = f"written {output.safe(str(path))}: edit it, then `qrmem add … --schema {path.name}`"
    return output.print_done(arguments, {"written": str(path)}, [line])


def _write(path: Path, text: str, *, replace: bool) -> None:
    try:
        if replace:
            path.unlink(missing_ok=True)  # replaces a link, not the file behind it
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        path.chmod(0o600)  # the user may write a key into it
    except FileExistsError as exc:
        raise UsageError(f"{path} exists; --force replaces it") from exc
    except OSError as exc:
        raise UsageError(f"{path} cannot be written: {exc.strerror}") from exc


async def trust(arguments: Namespace) -> int:
    """Trust the current settings file of a folder, stop trusting it, or list trusted files."""
    if arguments.list:
        paths = [str(path) for path in settings_files.trusted(os.environ)]
        lines = [output.safe(one_line(path)) for path in paths]
        return output.print_result(arguments, paths, lines or ["none"])
    folder = Path(arguments.folder)
    path = settings_files.place_in(folder)
    if arguments.remove:
        if not settings_files.distrust(path, os.environ):
            raise NotFound(f"{path} is not trusted")
        line = output.safe(one_line(f"{path} is no longer trusted"))
        return output.print_done(arguments, {"removed": str(path)}, [line])
    file = require_file(folder)
    values = file_values(file)
    settings_files.trust(file, os.environ)
    values_shown = {name: str(value) for name, value in values.items()}
    values_in_words = (
        ", ".join(f"{name} = {value}" for name, value in values_shown.items()) or "nothing yet"
    )
    # A value with a line break could imitate a line of ours.
    lines = [
        output.safe(one_line(f"{path} is trusted until it changes; it sets: {values_in_words}"))
    ]
    return output.print_done(arguments, {"trusted": str(path), "sets": values_shown}, lines)


def file_text() -> str:
    """Return the file's text; read back unchanged, it sets nothing."""
    defaults = {field.name: field.default for field in fields(Settings)}
    group_names = {name for group in _GROUPS.values() for name in group} | {"stage_models"}
    lines = [_HEAD]
    for title, group in _GROUPS.items():
        lines.append(f"# --- {title}\n")
        lines += [_line(name, defaults[name], description) for name, description in group.items()]
        lines.append("")
    lines.append(f"# --- All others ({page('settings')})\n")
    lines += [_line(name, value, "") for name, value in defaults.items() if name not in group_names]
    # The table comes last: lines after it would belong to it.
    return "\n".join([*lines, "", _STAGES])


def _line(name: str, default: object, said: str) -> str:
    value = f"# {name} = {_EXAMPLES.get(name) or _toml_value(default)}"
    return f"{value:<38} # {said}" if said else value


def _toml_value(value: object) -> str:
    """Return a default as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:g}"
    return '""' if isinstance(value, Secret) else f'"{value}"'
