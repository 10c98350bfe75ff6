"""What the builders share: lengths, the counter, the files written."""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from qrmem.errors import UsageError
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.types import Tokenizer

CL100K = "tiktoken:cl100k_base"
_CL100K_FILE = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
"""Name under which tiktoken keeps the file."""
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)(k?)", re.IGNORECASE)


def lengths_of(text: str) -> dict[str, int]:
    """Return lengths by name in rising order: `8k`, `1k,2k,4k`, `3000`; 1k is 1,000 tokens.

    Raises:
        UsageError: a length is no number of tokens.
    """
    found: dict[int, str] = {}
    for name in filter(None, (part.strip().lower() for part in text.split(","))):
        match = _LENGTH.fullmatch(name)
        tokens = int(float(match[1]) * (1000 if match[2] else 1)) if match else 0
        if not tokens:
            raise UsageError(f"length {name!r} is no number of tokens; write 8k, 3000 or 1k,2k,4k")
        found.setdefault(tokens, name)  # 2k and 2000 are one length
    if not found:
        raise UsageError("name a length: --length 8k")
    return {name: tokens for tokens, name in sorted(found.items())}


def counter_of(name: str) -> Tokenizer:
    """Return a token counter.

    Args:
        name: as in the setting `tokenizer`; `auto`: cl100k if its file is on this machine, else the
            built-in counter. Nothing is downloaded for `auto`. `cl100k`: `tiktoken:cl100k_base`.

    Raises:
        MissingError, UsageError: a counter that is named is not there.
    """
    if name != "auto":
        return open_tokenizer(CL100K if name in ("cl100k", "cl100k_base") else name)
    default = Path(tempfile.gettempdir()) / "data-gym-cache"
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    is_there = (Path(folder or default) / _CL100K_FILE).is_file()
    return open_tokenizer(CL100K if is_there else "builtin")


@dataclass(slots=True)
class CaseFile:
    """JSON lines of one length, and the numbers of Ada-LEval's Table 1 about them."""

    path: Path
    file: BinaryIO
    cases: int = 0
    most: int = 0
    total: int = 0
    _digest: Any = field(default_factory=hashlib.sha256)

    def add(self, case: Mapping[str, Any]) -> None:
        """Write a case, which has its size under `tokens`."""
        line = json.dumps(case, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        self.file.write(line)
        self._digest.update(line)
        self.cases += 1
        self.most = max(self.most, case["tokens"])
        self.total += case["tokens"]

    @property
    def about(self) -> dict[str, Any]:
        """What the manifest says of it."""
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
        UsageError: there are none.
    """
    with file.open("w", encoding="utf-8") as lines:
        for case in cases:
            lines.write(json.dumps(case, ensure_ascii=False) + "\n")
        if not lines.tell():
            raise UsageError("no case can be made: the tasks have no questions, or cases is 0")
