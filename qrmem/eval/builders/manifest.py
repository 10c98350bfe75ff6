"""Making a set of cases again, byte for byte, of the manifest that was written with it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qrmem.errors import UsageError
from qrmem.types import Tokenizer

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a set was made of.

    Attributes:
        options: of its builder, `tokenizer` among them, as they are written in a command.
        sums: SHA-256 of its sources, and of its files, in order.
    """

    path: Path
    options: Mapping[str, str]
    sums: Mapping[str, list[str]]

    def merged(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Return its options; what is given beside them must say the same.

        Raises:
            UsageError: an option that is given contradicts it.
        """
        for name, value in given.items():
            if name not in self.options:
                raise UsageError(f"{self.path} has no option {name}; leave {name}={value} out")
            if str(value) != self.options[name]:
                raise UsageError(
                    f"{name}={value} contradicts {self.path}, which has {name}="
                    f"{self.options[name]}; leave one of them out"
                )
        return dict(self.options)

    def check(self, made: "Manifest") -> None:
        """Refuse a set that is not the same.

        Raises:
            UsageError: its sources or its files differ.
        """
        for what, sums in self.sums.items():
            if sums != made.sums[what]:
                raise UsageError(f"{self.path}: the {what} are not those that it was made with")


@dataclass(frozen=True, slots=True)
class Made:
    """What a builder says of a set that can be made again.

    Attributes:
        files: about each, with its `sha256`.
        left_out: how many of what, by reason.
    """

    counter: Tokenizer
    sources: Sequence[Path]
    files: Sequence[Mapping[str, Any]]
    left_out: Mapping[str, int]


def write_manifest(folder: Path, kind: str, options: Mapping[str, Any], made: Made) -> None:
    """Write what a set was made of."""
    found = {
        "builder": kind,
        "options": dict(options),
        "counter": made.counter.name,
        "sources": [_source(path) for path in made.sources],
        "files": list(made.files),
        "left_out": {name: count for name, count in sorted(made.left_out.items()) if count},
    }
    text = json.dumps(found, indent=1, ensure_ascii=False)
    (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8")


def _source(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": digest}


def read_manifest(path: Path, kind: str) -> Manifest:
    """Return a manifest of a builder.

    Raises:
        UsageError: there is none, or one of its fields is missing or of another form.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["builder"] != kind:
            raise ValueError(f"it is of the builder {found['builder']}")
        options = {**found["options"], "tokenizer": found["counter"]}
        if not all(isinstance(value, str | int) for value in options.values()):
            raise ValueError("options and counter are texts and numbers")
        sums = {what: [one["sha256"] for one in found[what]] for what in ("sources", "files")}
    except KeyError as exc:
        raise _none(path, kind, f"it has no field {exc}") from exc
    except OSError as exc:
        raise _none(path, kind, exc.strerror or str(exc)) from exc
    except (ValueError, TypeError, AttributeError) as exc:
        raise _none(path, kind, str(exc)) from exc
    return Manifest(path, {name: str(value) for name, value in options.items()}, sums)


def _none(path: Path, kind: str, why: str) -> UsageError:
    return UsageError(f"{path} is no manifest of `qrmem eval build {kind}`: {why}")
