"""Shared parts of the builders: lengths, token counter, files and manifest."""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from qrmem.errors import UsageError
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.types import Tokenizer

CL100K = "tiktoken:cl100k_base"
_CL100K_FILE = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
"""Name of the file in tiktoken's cache."""
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)(k?)", re.IGNORECASE)


def lengths_of(text: str) -> dict[str, int]:
    """Parse lengths, by name in ascending order: `8k`, `1k,2k,4k`, `3000`; 1k is 1,000 tokens.

    Raises:
        UsageError: a length is not a number of tokens.
    """
    length_names: dict[int, str] = {}
    for name in filter(None, (part.strip().lower() for part in text.split(","))):
        match = _LENGTH.fullmatch(name)
        tokens = int(float(match[1]) * (1000 if match[2] else 1)) if match else 0
        if not tokens:
            raise UsageError(
                f"length {name!r} is not a number of tokens; write 8k, 3000 or 1k,2k,4k"
            )
        length_names.setdefault(tokens, name)  # 2k and 2000 are the same length
    if not length_names:
        raise UsageError("name a length: --length 8k")
    return {name: tokens for tokens, name in sorted(length_names.items())}


def counter_of(name: str) -> Tokenizer:
    """Return a token counter.

    Args:
        name: a value of the setting `tokenizer`; `auto` is cl100k if its file is on this machine,
            else the built-in counter, without a download; `cl100k` is `tiktoken:cl100k_base`.

    Raises:
        MissingError, UsageError: the named counter is not available.
    """
    if name != "auto":
        return open_tokenizer(CL100K if name in ("cl100k", "cl100k_base") else name)
    default = Path(tempfile.gettempdir()) / "data-gym-cache"
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    is_there = (Path(folder or default) / _CL100K_FILE).is_file()
    return open_tokenizer(CL100K if is_there else "builtin")


@dataclass(slots=True)
class CaseFile:
    """The JSON lines of one length, with the figures of Ada-LEval's Table 1."""

    path: Path
    file: BinaryIO
    cases: int = 0
    most: int = 0
    total: int = 0
    _digest: Any = field(default_factory=hashlib.sha256)

    def add(self, case: Mapping[str, Any]) -> None:
        """Write a case; its size is in `tokens`."""
        line = json.dumps(case, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        self.file.write(line)
        self._digest.update(line)
        self.cases += 1
        self.most = max(self.most, case["tokens"])
        self.total += case["tokens"]

    @property
    def about(self) -> dict[str, Any]:
        """The file's entry in the manifest."""
        return {
            "file": self.path.name,
            "sha256": self._digest.hexdigest(),
            "cases": self.cases,
            "max_tokens": self.most,
            "mean_tokens": round(self.total / max(1, self.cases), 1),
        }


@contextmanager
def case_files(out: Path, kind: str, names: Iterable[str]) -> Iterator[dict[str, CaseFile]]:
    """Open a file for each length, `KIND_LENGTH.jsonl`."""
    with ExitStack() as stack:
        paths = {name: out / f"{kind}_{name}.jsonl" for name in names}
        yield {
            name: CaseFile(path, stack.enter_context(path.open("wb")))
            for name, path in paths.items()
        }


def write_cases(file: Path, cases: Iterable[Mapping[str, Any]]) -> None:
    """Write cases as JSON lines.

    Raises:
        UsageError: there are no cases.
    """
    with file.open("w", encoding="utf-8") as lines:
        for case in cases:
            lines.write(json.dumps(case, ensure_ascii=False) + "\n")
        if not lines.tell():
            raise UsageError("no case can be made: the tasks have no questions, or cases is 0")


# Rebuilding a set of cases, byte for byte, from its manifest.


MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a set.

    Attributes:
        options: options of its builder with `tokenizer`, in the form of a command.
        sums: SHA-256 of its sources and of its files, in order.
    """

    path: Path
    options: Mapping[str, str]
    sums: Mapping[str, list[str]]

    def merged(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Return its options, after a check of the given ones.

        Raises:
            UsageError: a given option contradicts the manifest.
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
        """Check that a set equals that of the manifest.

        Raises:
            UsageError: its sources or its files differ.
        """
        for what, sums in self.sums.items():
            if sums != made.sums[what]:
                raise UsageError(f"{self.path}: the {what} differ from those that it was made with")


@dataclass(frozen=True, slots=True)
class BuiltSet:
    """A builder's report on a set, for the manifest.

    Attributes:
        files: entry of each file, with its `sha256`.
        left_out: numbers of left out sources and cases, by reason.
    """

    counter: Tokenizer
    sources: Sequence[Path]
    files: Sequence[Mapping[str, Any]]
    left_out: Mapping[str, int]


def write_manifest(folder: Path, kind: str, options: Mapping[str, Any], made: BuiltSet) -> None:
    """Write the manifest of a set."""
    manifest = {
        "builder": kind,
        "options": dict(options),
        "counter": made.counter.name,
        "sources": [_source(path) for path in made.sources],
        "files": list(made.files),
        "left_out": {name: count for name, count in sorted(made.left_out.items()) if count},
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False)
    (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8")


def _source(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": digest}


def read_manifest(path: Path, kind: str) -> Manifest:
    """Read the manifest of a builder.

    Raises:
        UsageError: the manifest does not exist, or a field is missing or malformed.
    """
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["builder"] != kind:
            raise ValueError(f"it is of the builder {manifest['builder']}")
        options = {**manifest["options"], "tokenizer": manifest["counter"]}
        if not all(isinstance(value, str | int) for value in options.values()):
            raise ValueError("options and counter are texts and numbers")
        sums = {what: [one["sha256"] for one in manifest[what]] for what in ("sources", "files")}
    except KeyError as exc:
        raise _none(path, kind, f"it has no field {exc}") from exc
    except OSError as exc:
        raise _none(path, kind, exc.strerror or str(exc)) from exc
    except (ValueError, TypeError, AttributeError) as exc:
        raise _none(path, kind, str(exc)) from exc
    return Manifest(path, {name: str(value) for name, value in options.items()}, sums)


def _none(path: Path, kind: str, why: str) -> UsageError:
    return UsageError(f"{path} is not a manifest of `qrmem eval build {kind}`: {why}")
