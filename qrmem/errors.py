"""Every exception this package raises on purpose, split by what the caller can do.

QrmemError                    catch this to catch everything of ours
├── UsageError                wrong use or bad input: change the call          (exit 2)
│   ├── BadDocument           a document cannot be read or is not text
│   ├── BadImport             a file to import is cut, altered or not in its form
│   ├── WindowTooSmall        the question and the prompt alone exceed the window
│   ├── ContextExceeded       the model's own context is smaller than the window
│   ├── NotFound              no document, entity, trail or namespace of that name
│   └── PromptError           a template and its inputs do not match
├── MissingError              something needed is missing or refused           (exit 3)
│   ├── EmbedderMismatch      the memory was embedded by another model
│   └── AccessRefused         a key, a password or a model name was refused
├── OutOfReach                store or model does not answer: retry later      (exit 4)
│   ├── ModelUnavailable      the chat or embedding server failed
│   ├── ModelUnusable         the chat model answers, and nothing that can be read
│   ├── TaggerUnavailable     an entity tagger does not answer; a segment goes on without it
│   ├── WorkersUnavailable    no worker of the chosen executor comes up
│   └── StoreUnavailable      the database failed, is locked or read-only
├── StoreConflict             somebody else changed the namespace; retried inside
├── CapReached                a cap on calls, tokens, money or time was reached (exit 1)
├── OutputFailed              what a command printed cannot be written        (exit 1)
└── ModelOutputError          a model's reply does not parse; keeps `.raw`
"""

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
    """Return the command that installs an extra beside the qrmem that runs.

    Of a qrmem that is installed, from wherever, pip and uv then fetch what the extra names alone.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        version("qrmem")
        wanted = f'"qrmem[{extra}]"'
    except PackageNotFoundError:  # a checkout on the path: in its folder
        wanted = f'".[{extra}]"'
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:  # as where uv made the environment
        return f"uv pip install --python {python} {wanted}"
    return f"{python} -m pip install {wanted}"


def place(memory: str | None, namespace: str | None) -> str:
    """Return the options that lead a command to a namespace, each after a blank; "" for none."""
    given = (("-m", memory), ("-n", namespace))
    return "".join(f" {option} {shlex.quote(value)}" for option, value in given if value)


def missing_extra(extra: str, what: str) -> "MissingError":
    """Return the error for something that needs an extra which is not installed."""
    return MissingError(f"{what} needs the extra `{extra}`: {install(extra)}")


def require_extra(extra: str, what: str, *modules: str) -> None:
    """Refuse something that needs an extra, where one of its modules is not there.

    Raises:
        MissingError: it is not; the message begins with `what` and names the command.
    """
    if not all(map(find_spec, modules)):
        raise missing_extra(extra, what)


def refused(errors: Iterable[Mapping[str, Any]]) -> str:
    """Put Pydantic's errors into plain words: `query is missing; k should be a valid integer`.

    Args:
        errors: its `errors()`, whose `loc` begins with the name of the value.
    """
    found = list(errors)
    kinds: dict[tuple[Any, ...], set[Any]] = {}
    for error in found:
        *name, kind = error["loc"] or ("",)
        kinds.setdefault(tuple(name), set()).add(kind)
    # What may be of several types is refused once for each of them.
    scalars = [name for name, of in kinds.items() if of >= _SCALARS]
    said = (
        f"{'.'.join(map(str, error['loc'][:-1]))} should be text, a number, true or false"
        if tuple(error["loc"][:-1]) in scalars
        else _refused(error)
        for error in found
    )
    return "; ".join(dict.fromkeys(said))


def _refused(error: Mapping[str, Any]) -> str:
    name = ".".join(map(str, error["loc"])) or "the body"
    if error["type"] == "missing":
        return f"{name} is missing"
    if error["type"] == "extra_forbidden":
        return f"there is no argument {name}"
    should = _SHOULD.fullmatch(error["msg"])
    return f"{name} {should[1]}" if should else f"{name}: {error['msg']}"


class QrmemError(Exception):
    """Base class: catch this to catch everything of ours."""

    exit_code = 1

    def __init__(self, message: str = "", *, private: str = "") -> None:
        """Make one.

        Args:
            private: the rest of the message, only for the person who runs the program.
        """
        super().__init__(message + private)
        self._public = message

    def public(self, location: str) -> str:
        """Return the message for a client of a server, without the place of the memory.

        Args:
            location: of the memory.
        """
        return self._public.replace(location, "the memory")


class UsageError(QrmemError):
    """Wrong use or bad input; the message says what to change."""

    exit_code = 2


class BadDocument(UsageError):
    """A document is missing, empty, binary or cannot be decoded."""


class BadImport(UsageError):
    """A file to import is missing, cut, altered or not in its form; nothing of it is kept."""


class WindowTooSmall(UsageError):
    """Question, options and prompt skeleton alone exceed the window."""


class ContextExceeded(UsageError):
    """The server takes less than the window that was set; choose a smaller one.

    Attributes:
        limit: the tokens that it takes, where it says so, else 0.
    """

    def __init__(self, message: str, *, limit: int = 0) -> None:
        super().__init__(message)
        self.limit = limit


class NotFound(UsageError):
    """No document, entity, trail or namespace has this name.

    Attributes:
        near: names of entities that look like it, which the message lists.
    """

    def __init__(self, message: str = "", *, private: str = "", near: tuple[str, ...] = ()) -> None:
        super().__init__(message, private=private)
        self.near = near


class PromptError(UsageError):
    """A template and its inputs do not match."""


class MissingError(QrmemError):
    """Something needed is missing or refused; the message says how to get it."""

    exit_code = 3


class EmbedderMismatch(MissingError):
    """The namespace was embedded by another model; `qrmem reembed` changes it."""


class AccessRefused(MissingError):
    """A key, a password or a model name was refused; retrying does not help."""


class OutOfReach(QrmemError):
    """A store or a model does not answer; the same call may work later."""

    exit_code = 4


class ModelUnavailable(OutOfReach):
    """The chat or embedding server failed after all retries."""


class ModelUnusable(OutOfReach):
    """No reply of a chat model can be read; try another model, or check how it is served."""


class TaggerUnavailable(OutOfReach):
    """An entity tagger does not start, does not answer, or not in time."""


class WorkersUnavailable(OutOfReach):
    """No worker of the chosen executor comes up, or all of them end at once."""


class StoreUnavailable(OutOfReach):
    """The database cannot be opened, read or written."""


class StoreConflict(QrmemError):
    """The namespace changed since it was read; compute the change again."""


class CapReached(QrmemError):
    """A cap on calls, tokens, money or time was reached; everything done is kept."""


class OutputFailed(QrmemError):
    """What a command printed cannot be written (a full disk); everything done is kept."""


class ModelOutputError(QrmemError):
    """A model's reply does not parse.

    Attributes:
        is_refusal: whether the model, or a filter of its server, refuses the text.
    """

    def __init__(self, message: str, *, raw: str, is_refusal: bool = False) -> None:
        super().__init__(message)
        self.raw = raw
        self.is_refusal = is_refusal


def require_text(value: object, what: str) -> None:
    """Refuse what is not a text, or is empty.

    Raises:
        UsageError: it is; the message begins with `what`.
    """
    if not isinstance(value, str):
        raise UsageError(f"{what} must be text, not {type(value).__name__}")
    if not value.strip():
        raise UsageError(f"{what} is empty")


LONGEST_NAME = 200
"""Characters of a user's or a session's name."""
_JOINERS = "\u200c\u200d"
"""They shape letters of some scripts, and emoji; the other format characters only hide."""


def clean_name(value: object, what: str) -> str:
    """Return the name of a user or a session in its one form, NFC; "" is nobody's.

    Every name goes through this where it comes in, so that what is kept is what is read.

    Raises:
        UsageError: it is no text, or text that can look like another name: with line breaks,
            control or hidden characters, half letters, blanks around it, or too long.
    """
    if not isinstance(value, str):
        raise UsageError(f"{what} must be text, not {type(value).__name__}")
    name = unicodedata.normalize("NFC", value)
    shown = repr(name if len(name) <= 40 else f"{name[:40]}…")
    if len(name) > LONGEST_NAME:
        raise UsageError(
            f"{what} {shown} has {len(name):,} characters; a name has at most {LONGEST_NAME}"
        )
    for c in name:
        if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in _JOINERS:
            raise UsageError(
                f"{what} {shown} has a character that is not shown, U+{ord(c):04X}: leave it out"
            )
    if name != name.strip():
        raise UsageError(f"{what} {shown} begins or ends with a blank: leave it out")
    return name


def require_count(value: object, what: str) -> None:
    """Refuse what is no whole number from 1.

    Raises:
        UsageError: it is; the message begins with `what`.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{what} must be a whole number, not {value!r}")
    if value < 1:
        raise UsageError(f"{what} must be at least 1, not {value}")


def require_ids(value: object) -> None:
    """Refuse what is no list of ids; of one text the letters would be looked up.

    Raises:
        UsageError: it is none.
    """
    if isinstance(value, str):
        raise UsageError("ids are a list, not one text")
    if not isinstance(value, Iterable):
        raise UsageError(f"ids are a list, not {type(value).__name__}")
