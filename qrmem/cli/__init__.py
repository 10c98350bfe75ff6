"""`qrmem …`: parse, run, print; errors become one line and an exit code."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from qrmem.errors import CapReached, OutputFailed, QrmemError

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code.

    0 done, 1 done in part, 2 wrong use or bad input, 3 something needed is missing or refused,
    4 store or model out of reach, 130 interrupted and resumable.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    work = partial(_command, argv)
    return run_to_exit(work, debug="--debug" in argv, as_json="--json" in argv)


def _command(argv: Sequence[str]) -> int:
    # Whatever takes long to load is loaded where Ctrl-C is already understood, and help first.
    from qrmem.cli.parser import build_parser

    parser = build_parser()
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser)
    arguments = parser.parse_args(argv)
    if arguments.command == "help":
        parser.parse_args([arguments.of, "--help"] if arguments.of else ["--help"])
    import asyncio

    from qrmem.cli.commands import COMMANDS

    return asyncio.run(COMMANDS[arguments.command](arguments))


def run_to_exit(work: Callable[[], int], *, debug: bool = False, as_json: bool = False) -> int:
    """Run something; turn what it raises into one line and an exit code, unless `debug`.

    Args:
        as_json: the line is a JSON object with `error`, `kind` and `exit`.
    """
    _take_any_text()
    failed: BaseException
    try:
        return work()
    except QrmemError as exc:
        if isinstance(exc, OutputFailed):
            _drop_output()
        if debug:
            raise
        failed, code, line = exc, exc.exit_code, _one_line(exc) + _hint(exc)
    except KeyboardInterrupt as exc:
        line = "interrupted; run the same command again to continue"
        failed, code = exc, INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`| head`): not an error, and nothing left to say.
        _drop_output()
        return 0
    except MemoryError as exc:
        failed, code, line = exc, 1, "out of memory; add fewer or smaller documents at a time"
    except Exception as exc:
        if debug:
            raise
        line = f"unexpected {type(exc).__name__}: {_one_line(exc)} (--debug shows where)"
        failed, code = exc, 1
    _say(line, type(failed).__name__, code, as_json=as_json)
    return code


def _hint(exc: QrmemError) -> str:
    """Return how to go on after a run that was stopped on purpose."""
    if not isinstance(exc, CapReached):
        return ""
    from qrmem.cli.cost_lines import AGAIN, go_on

    return f"; {go_on(AGAIN)}"


def _take_any_text() -> None:
    """Let both outputs take what their encoding lacks, half a surrogate pair too.

    A stream that is closed, as under some daemons, becomes an empty one: a closed one is `None`,
    and `print` would take another output in the place of standard error.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Throw away what could not be written, which would be tried again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _one_line(exc: BaseException) -> str:
    from qrmem.cli.output import safe

    return " ".join(safe(str(exc)).split()) or type(exc).__name__


def _say(line: str, kind: str, code: int, *, as_json: bool) -> None:
    """Say on standard error, which holds all that is no result, what went wrong."""
    from qrmem.cli.output import RED, UNSTYLED, has_colours, print_json_line

    with suppress(OSError):
        if as_json:
            print_json_line({"error": line, "kind": kind, "exit": code}, sys.stderr)
        else:
            on, off = (RED, UNSTYLED) if has_colours(sys.stderr) else ("", "")
            print(f"{on}qrmem:{off} {line}", file=sys.stderr, flush=True)
