"""Every exception that this package raises, grouped by what the caller can do.

QrmemError                    base class: catch it to catch every error of qrmem
├── UsageError                wrong use or bad input: change the call          (exit 2)
│   ├── BadDocument           a document cannot be read or is not text
│   ├── BadImport             a file to import is truncated, altered or malformed
│   ├── WindowTooSmall        the question and the prompt alone exceed the window
│   ├── ContextExceeded       the model's own context is smaller than the window
│   ├── NotFound              no document, entity, trail or namespace has that name
│   └── PromptError           a template and its inputs do not match
├── MissingError              something needed is missing or refused           (exit 3)
│   ├── EmbedderMismatch      the memory was embedded by another model
│   └── AccessRefused         a key, a password or a model name was rejected
├── OutOfReach                a store or a model does not answer: retry later  (exit 4)
│   ├── ModelUnavailable      the chat or embedding server failed
│   ├── ModelUnusable         the chat model's replies cannot be read
│   ├── TaggerUnavailable     an entity tagger does not answer; segments are read without it
│   ├── WorkersUnavailable    the chosen executor starts no worker
│   └── StoreUnavailable      the database failed, is locked or read-only
├── StoreConflict             another writer changed the namespace; qrmem retries
├── CapReached                a cap on calls, tokens, money or time was reached (exit 1)
├── OutputFailed              a command's output cannot be written            (exit 1)
└── ModelOutputError          a model's reply does not parse; keeps `.raw`
"""

import os
import re
import shlex
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any

_SCALARS = {"str", "int", "float", "bool"}
_SHOULD = re.compile(r"\w+ (should .+)", re.DOTALL)


def install(extra: str) -> str:
    """Return the command that installs an extra for the running qrmem.

    If qrmem is installed, pip and uv then fetch only the extra's packages.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        version("qrmem")
        requirement = f'"qrmem[{extra}]"'
    except PackageNotFoundError:  # a checkout on the path: install from its folder
        requirement = f'".[{extra}]"'
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:  # uv makes environments without pip
        return f"uv pip install --python {python} {requirement}"
    return f"{python} -m pip install {requirement}"


def place(memory: str | None, namespace: str | None) -> str:
    """Return the options that select a memory and namespace, each after a blank; "" for none."""
    place_options = (("-m", memory), ("-n", namespace))
    return "".join(f" {option} {shlex.quote(value)}" for option, value in place_options if value)


def missing_extra(extra: str, what: str) -> "MissingError":
    """Return the error for a feature whose extra is not installed.

    Args:
        extra: name of the extra.
        what: the feature; the message begins with it.
    """
    return MissingError(f"{what} needs the extra `{extra}`: {install(extra)}")


def require_extra(extra: str, what: str, *modules: str) -> None:
    """Check that the modules of an extra are installed.

    Raises:
        MissingError: a module is missing; the message begins with `what` and gives the install
            command.
    """
    if not all(map(find_spec, modules)):
        raise missing_extra(extra, what)


def page(name: str) -> str:
    """Return the address of a page of the docs, which are not installed with the package."""
    return f"https://github.com/qrmem/qrmem/blob/main/docs/{name}.md"


def refused(errors: Iterable[Mapping[str, Any]]) -> str:
    """Return Pydantic's errors in plain words: `query is missing; k should be a valid integer`.

    Args:
        errors: the list from `ValidationError.errors()`; each `loc` begins with the value's name.
    """
    first_errors = list(errors)
    kinds: dict[tuple[Any, ...], set[Any]] = {}
    for error in first_errors:
        *name, kind = error["loc"] or ("",)
        kinds.setdefault(tuple(name), set()).add(kind)
    # A value that may have several types gives one error for each type.
    scalars = [name for name, of in kinds.items() if of >= _SCALARS]
    message = (
        f"{'.'.join(map(str, error['loc'][:-1]))} should be text, a number, true or false"
        if tuple(error["loc"][:-1]) in scalars
        else _refused(error)
        for error in first_errors
    )
    return "; ".join(dict.fromkeys(message))


def _refused(error: Mapping[str, Any]) -> str:
    name = ".".join(map(str, error["loc"])) or "the body"
    if error["type"] == "missing":
        return f"{name} is missing"
    if error["type"] == "extra_forbidden":
        return f"there is no argument {name}"
    should = _SHOULD.fullmatch(error["msg"])
    return f"{name} {should[1]}" if should else f"{name}: {error['msg']}"


class QrmemError(Exception):
    """Base class of every error that qrmem raises."""

    exit_code = 1

    def __init__(self, message: str = "", *, private: str = "") -> None:
        """Create an error.

        Args:
            message: the message.
            private: appended to the message for the person who runs the program; `public` omits
                it.
        """
        super().__init__(message + private)
        self._public = message

    def public(self, location: str) -> str:
        """Return the message for a client of a server, without the location of the memory.

        Args:
            location: the memory's location; "the memory" replaces it.
        """
        return self._public.replace(location, "the memory")


class UsageError(QrmemError):
    """Wrong use or bad input; the message says what to change."""

    exit_code = 2


class BadDocument(UsageError):
    """A document is missing, empty, binary or cannot be decoded."""


class BadImport(UsageError):
    """A file to import is missing, truncated, altered or malformed; nothing of it is kept."""


class WindowTooSmall(UsageError):
    """The question, its options and the prompt template alone exceed the window."""


class ContextExceeded(UsageError):
    """The server's context is smaller than the window that was set; set a smaller window.

    Attributes:
        limit: the server's context in tokens; 0 if the server does not state it.
    """

    def __init__(self, message: str, *, limit: int = 0) -> None:
        super().__init__(message)
        self.limit = limit


class NotFound(UsageError):
    """No document, entity, trail or namespace has this name.

    Attributes:
        near: names of similar entities; the message lists them.
    """

    def __init__(self, message: str = "", *, private: str = "", near: tuple[str, ...] = ()) -> None:
        super().__init__(message, private=private)
        self.near = near


class PromptError(UsageError):
    """A prompt template and its inputs do not match."""


class MissingError(QrmemError):
    """Something needed is missing or refused; the message says how to get it."""

    exit_code = 3


class EmbedderMismatch(MissingError):
    """The namespace was embedded by another model; `qrmem reembed` changes it."""


class AccessRefused(MissingError):
    """A key, a password or a model name was rejected; retrying does not help."""


class OutOfReach(QrmemError):
    """A store or a model does not answer; the same call may work later."""

    exit_code = 4


class ModelUnavailable(OutOfReach):
    """The chat or embedding server failed after all retries."""


class ModelUnusable(OutOfReach):
    """No reply of a chat model can be parsed; try another model, or check how it is served."""


class TaggerUnavailable(OutOfReach):
    """An entity tagger does not start, or does not answer in time."""


class WorkersUnavailable(OutOfReach):
    """The chosen executor starts no worker, or all its workers ended."""


class StoreUnavailable(OutOfReach):
    """The database cannot be opened, read or written."""


class StoreConflict(QrmemError):
    """The namespace changed since it was read; compute the change again."""


class CapReached(QrmemError):
    """A cap on calls, tokens, money or time was reached; everything done is kept."""


class OutputFailed(QrmemError):
    """A command's output cannot be written (a full disk); everything done is kept."""


class ModelOutputError(QrmemError):
    """A model's reply cannot be parsed.

    Attributes:
        raw: the reply.
        is_refusal: whether the model, or its server's content filter, refused the text.
    """

    def __init__(self, message: str, *, raw: str, is_refusal: bool = False) -> None:
        super().__init__(message)
        self.raw = raw
        self.is_refusal = is_refusal


def require_text(value: object, what: str) -> None:
    """Check that a value is a text and not blank.

    Raises:
        UsageError: it is not; the message begins with `what`.
    """
    if not isinstance(value, str):
        raise UsageError(f"{what} must be text, not {type(value).__name__}")
    if not value.strip():
        raise UsageError(f"{what} is empty")


def require_path(value: object) -> None:
    """Check that a value is a path.

    Raises:
        UsageError: it is not, it is empty, or it has a NUL character.
    """
    if not isinstance(value, str | os.PathLike):
        raise UsageError(f"a path must be text or a Path, not {type(value).__name__}")
    if not os.fspath(value):
        raise UsageError("the path is empty")
    if "\0" in os.fsdecode(value):
        raise UsageError("a path has no NUL character")


LONGEST_NAME = 200
"""Maximum length in characters of a user's or a session's name."""
_JOINERS = "\u200c\u200d"
"""Format characters that some scripts and emoji need; the others only hide differences."""


def clean_name(value: object, what: str) -> str:
    """Return the name of a user or a session in NFC form; "" means no name.

    Every name passes through this function on entry, so that stored and queried names agree.

    Raises:
        UsageError: the value is not a text, is longer than `LONGEST_NAME`, begins or ends with a
            blank, or has line breaks, control or hidden characters or unpaired surrogates. Such a
            name can look like another name.
    """
    if not isinstance(value, str):
        raise UsageError(f"{what} must be text, not {type(value).__name__}")
    name = unicodedata.normalize("NFC", value)
    short = repr(name if len(name) <= 40 else f"{name[:40]}…")
    if len(name) > LONGEST_NAME:
        raise UsageError(
            f"{what} {short} has {len(name):,} characters; a name has at most {LONGEST_NAME}"
        )
    for c in name:
        if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in _JOINERS:
            raise UsageError(
                f"{what} {short} has a character that is not shown, U+{ord(c):04X}: leave it out"
            )
    if name != name.strip():
        raise UsageError(f"{what} {short} begins or ends with a blank: leave it out")
    return name


def require_count(value: object, what: str) -> None:
    """Check that a value is a whole number of at least 1.

    Raises:
        UsageError: it is not; the message begins with `what`.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{what} must be a whole number, not {value!r}")
    if value < 1:
        raise UsageError(f"{what} must be at least 1, not {value}")


def require_ids(value: object) -> None:
    """Check that a value is a list of ids. A single text would be read as its letters.

    Raises:
        UsageError: it is a text or cannot be iterated.
    """
    if isinstance(value, str):
        raise UsageError("ids are a list, not one text")
    if not isinstance(value, Iterable):
        raise UsageError(f"ids are a list, not {type(value).__name__}")
