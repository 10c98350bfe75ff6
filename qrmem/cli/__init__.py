"""`qrmem …`: parse, run, print; errors become one line and an exit code."""

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from qrmem.errors import CapReached, OutOfReach, OutputFailed, QrmemError, UsageError

INTERRUPTED = 130
_IN_PYTHON = {"--trials": "max_trials", "--stage-model": "stage_models"}
"""Options that have another name in Python."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code.

    0 done, 1 done in part, 2 wrong use or bad input, 3 something needed is missing or refused,
    4 store or model out of reach, 130 interrupted and resumable.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    with Exit(argv) as ending:
        # Slow imports happen inside the block that handles Ctrl-C; `--help` comes before them.
        from qrmem.cli.parser import build_parser

        parser = build_parser()
        if "_ARGCOMPLETE" in os.environ:
            import argcomplete

            argcomplete.autocomplete(parser)
        arguments = parser.parse_args(argv)
        if arguments.command == "help":
            parser.parse_args([*filter(None, (arguments.of, arguments.its)), "--help"])
        if arguments.command in ("serve", "view", "mcp"):
            ending.interrupted = "stopped"
        import asyncio

        from qrmem.cli.commands import COMMANDS
        from qrmem.cli.parsed_arguments import tell_misspelt

        tell_misspelt(arguments)
        ending.code = asyncio.run(COMMANDS[arguments.command](arguments))
    return ending.code


class Exit:
    """Turns an exception from a block into one line and an exit code.

    Attributes:
        code: 0, the code that the block sets, or the code of its error.
        interrupted: message to print after Ctrl-C.
    """

    def __init__(self, argv: Sequence[str] = ()) -> None:
        """Create the handler.

        Args:
            argv: the command line. With `--debug` errors propagate, with their traceback;
                with `--json` the line is an object with `error`, `kind` and `exit`.
        """
        self.code = 0
        self.interrupted = "interrupted; run the same command again to continue"
        self._argv = argv
        self._debug = "--debug" in argv
        self._as_json = "--json" in argv

    def __enter__(self) -> Self:
        _take_any_text()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: object
    ) -> bool:
        if isinstance(exc, OutputFailed | BrokenPipeError):
            _drop_output()
        if isinstance(exc, BrokenPipeError):
            # The reader of our output went away (`| head`): this is no error.
            self.code = 0
            return True
        if isinstance(exc, KeyboardInterrupt):
            self.code, line = INTERRUPTED, self.interrupted
        elif isinstance(exc, MemoryError):
            self.code, line = 1, "out of memory; add fewer or smaller documents at a time"
        elif self._debug or not isinstance(exc, Exception):
            return False
        elif isinstance(exc, QrmemError):
            self.code, line = exc.exit_code, _one_line(self._as_typed(exc)) + _hint(exc)
        elif isinstance(exc, OSError) and exc.filename and exc.strerror:
            self.code, line = OutOfReach.exit_code, _one_line(f"{exc.filename}: {exc.strerror}")
        elif isinstance(exc, FileNotFoundError) and _is_folder_gone():
            self.code = OutOfReach.exit_code
            line = "the working folder no longer exists; change to another"
        else:
            line = f"unexpected {type(exc).__name__}: {_one_line(exc)} (--debug shows where)"
            self.code = 1
        _say(line, type(exc).__name__, self.code, as_json=self._as_json)
        return True

    def _as_typed(self, exc: QrmemError) -> str:
        """Write options as on the command line: `--max-calls` for Python's `max_calls`.

        This applies to our own messages only: other errors may quote a server or a file.
        """
        message = str(exc)
        if type(exc) is not UsageError:
            return message
        for word in self._argv:
            option = word.partition("=")[0]
            name = _IN_PYTHON.get(option) or option.removeprefix("--").replace("-", "_")
            if option.startswith("--") and "_" in name:
                message = re.sub(rf"(?<![\w-]){re.escape(name)}\b", option, message)
        return message


def _hint(exc: QrmemError) -> str:
    """Return how to continue after a run that was stopped on purpose."""
    if not isinstance(exc, CapReached):
        return ""
    from qrmem.cli.costing import AGAIN, go_on

    return f"; {go_on(AGAIN)}"


def _take_any_text() -> None:
    """Make both outputs accept characters outside of their encoding, including lone surrogates.

    Under some daemons a stream is closed and thus `None`. It becomes an empty one, because `print`
    would write to standard output instead of a standard error that is `None`.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Discard unwritten output, which Python would try to write again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _one_line(told: BaseException | str) -> str:
    from qrmem.cli.output import safe

    return " ".join(safe(str(told)).split()) or type(told).__name__


def _is_folder_gone() -> bool:
    try:
        os.getcwd()
    except OSError:
        return True
    return False


def _say(line: str, kind: str, code: int, *, as_json: bool) -> None:
    """Print an error on standard error, as everything but results."""
    from qrmem.cli.output import RED, UNSTYLED, has_colours, print_json_line

    with suppress(OSError):
        if as_json:
            print_json_line({"error": line, "kind": kind, "exit": code}, sys.stderr)
        else:
            on, off = (RED, UNSTYLED) if has_colours(sys.stderr) else ("", "")
            print(f"{on}qrmem:{off} {line}", file=sys.stderr, flush=True)
