"""Settings files: their places, how they are read, and which of them the user trusts.

A file that is found in the working folder may come from anybody: a cloned repository has one. Until
the user trusts it, it sets only what is harmless: see the rules below, which `Settings` names.
"""

import hashlib
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn, Self, TypeVar

from qrmem.errors import NotFound, UsageError

# Values that may hold a key or a password, and how they are shown.


class Secret:
    """A key or password; its text is `***`, and only `reveal` gives the value."""

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
        """Create an address from its full text."""
        instance = super().__new__(cls, shown(value))
        instance._secret = Secret(value)
        return instance

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
    """Return the whole address; only code that connects to it calls this."""
    return address.reveal() if isinstance(address, Address) else address


def shown(address: str) -> str:
    """Return an address without user name, password, query and fragment, which may be secret.

    A password may contain any character, and the address may lack its scheme or a slash.
    """
    scheme, mark, rest = address.partition("://")
    if not mark:
        return re.sub(r"(?s)^[^@\\]*:.*@", "***@", address)
    authority = rest.partition("/")[0]
    if "@" in authority or ":" in authority:
        rest = re.sub(r"(?s)^.*@", "***@", rest)
    rest = re.sub(r"(?s)#.+", "#***", rest)
    return scheme + mark + re.sub(r"([?&][^=&]*)=[^&#]+", r"\1=***", rest)


SETTINGS_FILE = "qrmem.toml"
"""Read from the working folder."""
OWN_FILE = "settings.toml"
"""Read from the user's configuration folder."""
LONGEST = 65_536
"""Maximum size of a settings file in bytes; `qrmem init` writes 4,000."""
_TRUSTED = "trusted"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file with its content: what is trusted is exactly what is parsed."""

    path: Path
    content: bytes

    def values(self) -> dict[str, Any]:
        """Return its settings.

        Raises:
            UsageError: it is not TOML.
        """
        try:
            return tomllib.loads(self.content.decode("utf-8-sig"))
        except (ValueError, RecursionError) as exc:
            raise UsageError(f"settings file {self.path}: not TOML: {exc}") from exc


def read(path: Path) -> SettingsFile:
    """Read a settings file.

    Raises:
        UsageError: it cannot be read, is not a regular file, or is too long.
    """
    try:
        # Opening a pipe without a writer would block forever.
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"settings file {path}: a folder, a pipe or a device, not a file")
            content = file.read(LONGEST + 1)
    except OSError as exc:
        raise UsageError(f"settings file {path}: {exc.strerror}") from exc
    if len(content) > LONGEST:
        raise UsageError(f"settings file {path}: more than {LONGEST:,} bytes")
    return SettingsFile(path, content)


def own_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the user's configuration folder; a relative path does not count as one."""
    if os.path.isabs(place := environ.get("XDG_CONFIG_HOME", "")):
        return Path(place) / "qrmem"
    home = environ.get("HOME") or environ.get("USERPROFILE", "")
    return Path(home) / ".config" / "qrmem" if os.path.isabs(home) else None


def own_file(environ: Mapping[str, str]) -> SettingsFile | None:
    """Return the user's own settings file, if there is one."""
    folder = own_folder(environ)
    with suppress(PermissionError):  # a service may run with the home folder of another user
        if folder is not None and (path := folder / OWN_FILE).exists():
            return read(path)
    return None


def file_of(folder: Path = Path()) -> SettingsFile | None:
    """Return the settings file of a folder, if there is one; a link to one counts."""
    return read(place_in(folder)) if (folder / SETTINGS_FILE).exists() else None


def place_in(folder: Path) -> Path:
    """Return where the settings file of a folder is, or would be."""
    return folder.resolve() / SETTINGS_FILE


# --- trust ----------------------------------------------------------------------------------------


def trust(file: SettingsFile, environ: Mapping[str, str]) -> None:
    """Trust a file, so that it may set everything until it changes.

    Raises:
        UsageError: the user has no configuration folder.
    """
    folder = own_folder(environ)
    if folder is None:
        raise UsageError("trust is kept in your configuration folder; set HOME or XDG_CONFIG_HOME")
    distrust(file.path, environ)
    place = folder / _TRUSTED
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    opened = os.open(place / _mark(file), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(opened, "wb") as entry:
        entry.write(os.fsencode(file.path))


def distrust(path: Path, environ: Mapping[str, str]) -> bool:
    """Stop trusting the file at a path; returns whether any version of it was trusted."""
    entries = [entry for entry, trusted in _entries(environ) if trusted == path]
    for entry in entries:
        entry.unlink(missing_ok=True)
    return bool(entries)


def is_trusted(file: SettingsFile, environ: Mapping[str, str]) -> bool:
    """Whether the user trusted this file with this content."""
    folder = own_folder(environ)
    return folder is not None and (folder / _TRUSTED / _mark(file)).is_file()


def trusted(environ: Mapping[str, str]) -> list[Path]:
    """Return the trusted files, including those that changed since."""
    return sorted(path for _, path in _entries(environ))


def require_file(folder: Path) -> SettingsFile:
    """Return the settings file of a folder.

    Raises:
        NotFound: there is none.
    """
    file = file_of(folder)
    if file is None:
        raise NotFound(f"there is no {SETTINGS_FILE} in {folder}")
    return file


def _mark(file: SettingsFile) -> str:
    return hashlib.sha256(os.fsencode(file.path) + b"\0" + file.content).hexdigest()


def _entries(environ: Mapping[str, str]) -> list[tuple[Path, Path]]:
    folder = own_folder(environ)
    if folder is None or not (place := folder / _TRUSTED).is_dir():
        return []
    return [(entry, Path(os.fsdecode(entry.read_bytes()))) for entry in place.iterdir()]


# --- what an untrusted file may set ---------------------------------------------------------------
# A rule takes the setting's name, the value in the file, and the settings without the file.


def _always(name: str, value: Any, own: Mapping[str, Any]) -> bool:
    return True


def _lowers(name: str, value: Any, own: Mapping[str, Any]) -> bool:
    return own[name] is None or bool(value <= own[name])


def _lies_below(name: str, value: str, own: Mapping[str, Any]) -> bool:
    scheme, mark, rest = value.partition("://")
    if mark and scheme != "sqlite":
        return False
    place = Path(rest.partition("?")[0] if mark else value).expanduser()
    try:
        return place.resolve().is_relative_to(Path.cwd().resolve())
    except (OSError, ValueError, RuntimeError):  # a path with a NUL, or a loop of links
        return False


def _stays_with_the_server(name: str, value: str, own: Mapping[str, Any]) -> bool:
    """Return whether a model's name keeps the server; `provider/name` may use another one."""
    return bool(own["base_url"]) or (bool(own["model"]) and "/" not in value)


def _of(*allowed: str) -> Any:
    return lambda name, value, own: value in allowed


def _names_sets(name: str, value: str, own: Mapping[str, Any]) -> bool:
    return all(part.strip() in ("", *PROMPT_SETS) for part in value.split(","))


PROMPT_SETS = ("paper", "story")
"""Sets of prompts in the package; any other name is a folder."""
Harmless = Annotated[T, _always]
"""A setting that an untrusted file may set."""
LowerOnly = Annotated[T, _lowers]
"""A cap: an untrusted file may lower it."""
BelowFolder = Annotated[T, _lies_below]
"""A path: an untrusted file may name a file in or below its folder."""
SameServer = Annotated[T, _stays_with_the_server]
"""A model: an untrusted file may choose another one on the server that the user chose."""
OwnSets = Annotated[T, _names_sets]
"""Prompts: an untrusted file may choose a set in the package."""
PLAIN_EMBEDDERS = ("none", "light", "local", "dot:local")
"""Embedders that load no model of the file's choice, and send nothing to a server."""
PlainEmbedder = Annotated[T, _of("", *PLAIN_EMBEDDERS)]
PlainReranker = Annotated[T, _of("", "none")]
"""A reranker: an untrusted file may only turn it off; others load a model or send texts."""
PlainTokenizer = Annotated[T, _of("builtin")]
PlainTagger = Annotated[T, _of("auto", "none", "rules")]


_SWITCH = {word: True for word in ("true", "yes", "on", "1")} | {
    word: False for word in ("false", "no", "off", "0")
}


def as_secret(name: str, value: Any) -> Secret:
    """Return a setting's value as a secret."""
    if not isinstance(value, str | Secret):
        raise UsageError(f"{name} must be a text")
    return value if isinstance(value, Secret) else Secret(value)


def as_switch(name: str, value: Any) -> bool:
    """Return a setting's value as a boolean."""
    word = str(value).strip().lower()
    if word not in _SWITCH:
        raise UsageError(f"{name} must be one of {', '.join(_SWITCH)}, not {value!r}")
    return _SWITCH[word]


def as_number(name: str, value: Any, kind: type[int] | type[float]) -> int | float:
    """Return a setting's value as a number of a kind."""
    try:
        number = kind(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    # A fraction is refused instead of being cut off.
    if number is None or isinstance(value, bool) or (isinstance(value, float) and number != value):
        what = "a whole number" if kind is int else "a number"
        raise UsageError(f"{name} must be {what}, not {value!r}")
    return number
