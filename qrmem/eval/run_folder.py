"""The folder of a run: configuration, items, one line per result; for one process at a time."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from filelock import FileLock, Timeout

from qrmem.errors import StoreUnavailable, UsageError
from qrmem.eval.items import Built, Item, Row
from qrmem.graphstore.codec import dumps, loads

CONFIG, ITEMS, ROWS, MEMORIES = "run.json", "items.jsonl", "rows.jsonl", "memories.jsonl"
RATINGS = "ratings.jsonl"
_OWN = ("run.lock", f"{CONFIG}.new")
"""Files that may remain from a run that was killed at its start."""
_FORM: Mapping[str, Any] = {
    "task": str,
    "corpus": str,
    "files": list,
    "items": {"n", "of", "sample"},
    "seed": int,
    "answers": str,
    "settings": {
        "model",
        "embedder",
        "tokenizer",
        "tagger",
        "segment_tokens",
        "window",
        "reserve",
        "questions",
    },
    "price": dict | None,
    "prompts": dict,
    "systems": list,
    "about": {"qrmem", "git", "started"},
}
"""Required fields of a configuration: a type, or an object with these fields."""
FREE = ("systems", "parameters", "about")
"""Fields that may differ when a run is resumed: systems can be added, and the code may change."""


PRESET = "preset.json"
REPORT = "report"
"""Subfolder for reports."""


def mark_preset(path: Path, name: str, not_run: Mapping[str, str]) -> None:
    """Record the preset of a folder.

    Args:
        path: folder of the runs.
        name: name of the preset.
        not_run: parts and systems of the preset that are left out, each with the reason.

    Raises:
        UsageError: the folder has another preset, or a run.
    """
    preset_there = preset_in(path)
    if preset_there not in ("", name) or (path / CONFIG).exists():
        raise UsageError(f"{path} holds {preset_there or 'a single run'}; name another --out")
    path.mkdir(parents=True, exist_ok=True)
    mark = {"preset": name, "not_run": dict(not_run)}
    (path / PRESET).write_text(json.dumps(mark) + "\n", encoding="utf-8")


def preset_in(path: Path) -> str:
    """Return the name of a folder's preset, "" for none.

    Raises:
        UsageError: the file with the name cannot be read.
    """
    return _mark(path)[0]


def not_run_in(path: Path) -> dict[str, str]:
    """Return the parts and systems of a folder's preset that were left out, with the reasons.

    Raises:
        UsageError: the file with them cannot be read.
    """
    return _mark(path)[1]


def _mark(path: Path) -> tuple[str, dict[str, str]]:
    file = path / PRESET
    try:
        mark: dict[str, Any] = json.loads(file.read_bytes()) if file.exists() else {"preset": ""}
        return str(mark["preset"]), dict(mark.get("not_run", {}))
    except (ValueError, TypeError, KeyError, AttributeError) as exc:
        message = f"{file} cannot be read ({exc}): delete it, and run the same preset again"
        raise UsageError(message) from exc


T = TypeVar("T")


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Translate errors of writing in this context.

    Raises:
        StoreUnavailable: the disk is full, or the folder is not writable.
    """
    try:
        yield
    except OSError as exc:
        raise StoreUnavailable(
            f"{path} cannot be written ({exc.strerror}); what is done is kept: free some space, "
            "then run the same command again"
        ) from exc


def runs_in(path: Path) -> list[Path]:
    """Return the folders of the runs in a folder: a preset's parts, or itself."""
    return sorted(file.parent for file in path.glob(f"*/{CONFIG}")) if preset_in(path) else [path]


class RunFolder:
    """The folder of one run; it is locked while open for writing."""

    def __init__(self, path: Path, worker: int | None = None) -> None:
        """Name a folder.

        Args:
            worker: number of a worker, which writes its own files; another process has the lock.
        """
        self.path = path
        self._worker = worker
        self._lock: FileLock | None = None

    # --- writing ---------------------------------------------------------------------------------

    def begin(self, config: Mapping[str, Any], items: Sequence[Item]) -> Self:
        """Open the folder for a run, new or with the same configuration.

        Raises:
            UsageError: it has a run with another configuration, or other files.
            StoreUnavailable: another process is active in it, or it is not writable.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._require_own()
            self._take_lock()
            self._mend()
            if not self._has_results():  # for example from a run that was refused at its first call
                for name in (CONFIG, ITEMS):
                    (self.path / name).unlink(missing_ok=True)
            config_there = self.config() if (self.path / CONFIG).exists() else {}
            if config_there:
                self._check(config_there, config)
            systems = list(dict.fromkeys([*config_there.get("systems", ()), *config["systems"]]))
            about = self._about(config_there, config, items)
            parameters = {**config_there.get("parameters", {}), **config.get("parameters", {})}
            config = {**config, "systems": systems, "parameters": parameters, "about": about}
            self._write(CONFIG, json.dumps(config, indent=2) + "\n")
            if not (self.path / ITEMS).exists():
                self._write(ITEMS, "".join(f"{dumps(item)}\n" for item in items))
        except OSError as exc:
            self.close()
            raise StoreUnavailable(f"{self.path}: {exc.strerror}") from exc
        except BaseException:
            self.close()
            raise
        return self

    def hold(self) -> Self:
        """Lock the folder against other runs and judges until it is closed.

        Raises:
            StoreUnavailable: another process is active in it, or it is not writable.
        """
        try:
            self._take_lock()
            self._mend()
        except OSError as exc:
            self.close()
            raise StoreUnavailable(f"{self.path}: {exc.strerror}") from exc
        return self

    def add(self, row: Row) -> None:
        """Append a result; it is on disk when this returns."""
        self.append(ROWS, dumps(row))

    def add_memory(self, built: Built) -> None:
        """Append the cost of building a memory."""
        self.append(MEMORIES, dumps(built))

    def close(self) -> None:
        """Unlock the folder."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # --- reading ---------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        """Return the configuration.

        Raises:
            UsageError: the folder has no run.
        """
        path = self.path / CONFIG
        try:
            config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(config, dict) or not config:
                raise ValueError("it has no configuration")
            if wrong := [name for name, form in _FORM.items() if not _has(config, name, form)]:
                raise ValueError(f"it lacks {wrong[0]!r}, or has it in another form")
        except FileNotFoundError:
            if name := preset_in(self.path):
                message = (
                    f"{self.path} holds the runs of {name}, each in a folder: name one of those"
                )
                raise UsageError(message) from None
            what = "has no run" if self.path.is_dir() else "is not a folder"
            message = f"{self.path} {what}: name one that `qrmem eval run --out FOLDER` has written"
            raise UsageError(message) from None
        except (OSError, ValueError) as exc:
            message = f"{path} cannot be read ({exc}): name another --out, and run again"
            raise UsageError(message) from exc
        return config

    def items(self) -> list[Item]:
        """Return the items of the run, in the file's order."""
        return self.records(ITEMS, partial(loads, kind=Item))

    def answered(self) -> tuple[dict[str, Item], dict[tuple[str, str], Row]]:
        """Return the items by id, and the results (see `rows`).

        Raises:
            UsageError: a result has an unknown item.
        """
        items, rows = {item.id: item for item in self.items()}, self.rows()
        if lacking := [item for _, item in rows if item not in items]:
            raise UsageError(
                f"{self.path / ITEMS} lacks the item {lacking[0]!r}, which has a result: delete "
                "that file; the same `qrmem eval run` writes it again"
            )
        return items, rows

    def rows(self) -> dict[tuple[str, str], Row]:
        """Return the last result of each (system, item), preferably one without an error."""
        last: dict[tuple[str, str], Row] = {}
        for row in self.records(ROWS, partial(loads, kind=Row)):
            last_row = last.get((row.system, row.item))
            # The files of several workers have no common order: a success replaces an error.
            if last_row is None or last_row.error or not row.error:
                last[row.system, row.item] = row
        return last

    def count(self) -> int:
        """Return the number of written results, with failed ones."""
        return sum(1 for path in self._files(ROWS) for _ in _lines(path))

    def memories(self) -> list[Built]:
        """Return the costs of building memories, one entry per build."""
        return self.records(MEMORIES, partial(loads, kind=Built))

    def unread(self) -> tuple[int, int]:
        """Return the number of segments that were not read, or only in part, and of all segments.

        They are read again when a system next opens their memory.
        """
        states = {built.memory: built.states for built in self.memories()}.values()
        total = sum(sum(counts.values()) for counts in states)
        return total - sum(counts.get("ok", 0) for counts in states), total

    # --- inside ----------------------------------------------------------------------------------

    def _take_lock(self) -> None:
        self._lock = FileLock(self.path / "run.lock", thread_local=False)
        try:
            self._lock.acquire(blocking=False)
        except Timeout as exc:
            self.close()
            raise StoreUnavailable(
                f"another run is working in {self.path}; wait until it ends, or name another folder"
            ) from exc

    def _require_own(self) -> None:
        if not (self.path / CONFIG).exists():
            others = [p.name for p in self.path.iterdir() if p.name not in _OWN]
            if others:
                raise UsageError(
                    f"{self.path} is not a run folder (it holds {others[0]});"
                    " choose an empty folder"
                )

    def _check(self, known: Mapping[str, Any], config: Mapping[str, Any]) -> None:
        plain = json.loads(json.dumps(config))
        for name in dict.fromkeys([*plain, *known]):
            if name in FREE:
                continue
            if changes := _changes(name, known.get(name), plain.get(name)):
                raise UsageError(
                    f"{self.path} holds a run of another configuration: {'; '.join(changes)}; "
                    "name another --out"
                )

    def _about(
        self, known: Mapping[str, Any], config: Mapping[str, Any], items: Sequence[Item]
    ) -> Mapping[str, Any]:
        """Return the code that made the results: all commits, if it changed in between."""
        now: Mapping[str, Any] = config["about"]
        if not known:
            return now
        before: Mapping[str, Any] = known["about"]
        keys_done = {key for key, row in self.rows().items() if not row.error}
        if all((name, item.id) in keys_done for name in config["systems"] for item in items):
            return before
        commits = dict.fromkeys([*before["git"].split(", "), now["git"]])
        return {**now, "git": ", ".join(filter(None, commits))}

    def _write(self, name: str, text: str) -> None:
        new = self.path / f"{name}.new"
        new.write_text(text, encoding="utf-8")
        new.replace(self.path / name)

    def append(self, name: str, line: str) -> None:
        """Append a line to a file; it is on disk when this returns."""
        if self._worker is not None:
            stem, _, ending = name.partition(".")
            name = f"{stem}.{self._worker}.{ending}"
        path = self.path / name
        with written(path), path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def _mend(self) -> None:
        """Cut off an incomplete last line after a crash."""
        for path in (*self._files(ROWS), *self._files(MEMORIES), *self._files(RATINGS)):
            raw = path.read_bytes()
            whole = raw[: raw.rfind(b"\n") + 1]
            if len(whole) < len(raw):
                os.truncate(path, len(whole))

    def _has_results(self) -> bool:
        files = (*self._files(ROWS), *self._files(MEMORIES), *self._files(RATINGS))
        return any(path.stat().st_size for path in files)

    def _files(self, name: str) -> list[Path]:
        """Return a file, and the workers' files."""
        stem, _, ending = name.partition(".")
        return sorted(self.path.glob(f"{stem}.{ending}")) + sorted(
            self.path.glob(f"{stem}.[0-9]*.{ending}")
        )

    def records(self, name: str, read: Callable[[str], T]) -> list[T]:
        """Parse each complete line of a file by `read`.

        Raises:
            UsageError: a line cannot be parsed; the message names it.
        """
        result = []
        for path in self._files(name):
            for n, line in enumerate(_lines(path), 1):
                try:
                    result.append(read(line.decode()))
                except (ValueError, RecursionError) as exc:
                    raise UsageError(
                        f"{path}: line {n} cannot be read ({exc}); without that line the same "
                        "command makes it again"
                    ) from exc
        return result


def _has(found: Mapping[str, Any], name: str, form: Any) -> bool:
    value = found.get(name, ...)
    if isinstance(form, set):
        return isinstance(value, dict) and form <= value.keys()
    return isinstance(value, form)


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the complete lines."""
    with path.open("rb") as file:
        yield from (line for line in file if line.endswith(b"\n"))


def _changes(name: str, was: Any, now: Any) -> list[str]:
    """Return the difference between two values; of several values, those that differ."""
    if not (isinstance(was, Mapping) and isinstance(now, Mapping)):
        return [] if was == now else [f"{name} was {was!r}, now {now!r}"]
    keys = sorted(was.keys() | now.keys())
    return [
        change for key in keys for change in _changes(f"{name}.{key}", was.get(key), now.get(key))
    ]
