"""`qrmem chat`: keep conversations, and recall what a prompt needs."""

import argparse
import json
import re
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qrmem.cli import output
from qrmem.cli.arguments import Common, add_schema
from qrmem.cli.fact_commands import add_as_of, add_types
from qrmem.cli.parsed_arguments import agreed, opened, user_name
from qrmem.cli.progress import Warnings
from qrmem.errors import BadDocument, StoreConflict, UsageError
from qrmem.text.decoding import ByteBudget, open_file
from qrmem.text.numbers import counted
from qrmem.types import AddReport, Recalled, Turn

if TYPE_CHECKING:
    from qrmem.memory import Memory
    from qrmem.memory.chat.message_log import LogMessage

_INDENT = " " * 4
_LISTS = ("messages", "conversations")
"""Keys of an object that has messages; its own time and session apply to each message."""
_ZONE = re.compile(r"[+-]\d\d:\d\d(?::\d\d)?\Z")
"""The zone of a time in ISO form; it does not match in a date."""


def add_chat(commands: Any, common: Common) -> None:
    """Add the command and its actions."""
    chat = commands.add_parser("chat", help="keep conversations, and recall what a prompt needs")
    actions = chat.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_keeping(actions, common)
    _add_recalling(actions, common)
    _add_lists(actions, common)
    extract = actions.add_parser(
        "extract",
        parents=common("memory", "model", "embedder"),
        help="extract facts from turns that have none yet (uses the chat model)",
    )
    extract.add_argument("--session", metavar="S", help="only of this conversation")
    extract.add_argument("--user", type=user_name, metavar="U", help="only of this user")
    forget = actions.add_parser(
        "forget-user", parents=common("memory"), help="delete all turns and documents of a user"
    )
    forget.add_argument("user", metavar="USER", help="name of the user")
    forget.add_argument("--yes", action="store_true", help="do not ask")


def _add_keeping(actions: Any, common: Common) -> None:
    """Add the actions that keep turns."""
    add = actions.add_parser(
        "add", parents=common("memory", "model", "embedder"), help="keep the turns of a chat log"
    )
    add.add_argument("source", metavar="FILE|-", help="one message a line, or a JSON list of them")
    add.add_argument("--at", metavar="TIME", help="time of messages that have none")
    say = actions.add_parser(
        "say", parents=common("memory", "model", "embedder"), help="keep one turn"
    )
    say.add_argument("role", help="user, assistant, …")
    say.add_argument("text", help="what was said")
    say.add_argument("--at", metavar="TIME", help="default: now")
    say.add_argument("--speaker", default="", metavar="NAME", help="who said it")
    say.add_argument(
        "--standing", action="store_true", help="keep it as a standing wish, whatever its words"
    )
    for action in (add, say):
        _add_conversation(action)
        action.add_argument(
            "--extract", action="store_true", help="extract facts, too (uses the chat model)"
        )


def _add_recalling(actions: Any, common: Common) -> None:
    """Add the action that finds turns for a prompt."""
    recall = actions.add_parser(
        "recall",
        parents=common("memory", "embedder", "reranker"),
        help="find earlier turns that a prompt needs",
    )
    recall.add_argument("prompt", help="what the user says now")
    recall.add_argument(
        "--tokens",
        type=int,
        default=2000,
        metavar="N",
        help="token limit of the recalled text, including speakers and times",
    )
    recall.add_argument(
        "--min-score",
        type=float,
        default=0.0,
        metavar="X",
        help="leave out turns with a lower score; a strong match has 1 or more",
    )
    add_as_of(recall)
    add_schema(recall)
    add_types(recall)
    _add_conversation(recall)


def _add_lists(actions: Any, common: Common) -> None:
    """Add the actions that list turns and standing wishes."""
    turns = actions.add_parser("turns", parents=common("memory"), help="list the turns, in order")
    _add_conversation(turns)
    standing = actions.add_parser(
        "standing", parents=common("memory"), help="list the standing wishes of users"
    )
    standing.add_argument("--user", type=user_name, metavar="U", help="only this user's")


def _add_conversation(action: Any) -> None:
    action.add_argument("--session", metavar="S", help="name of the conversation")
    action.add_argument("--user", type=user_name, metavar="U", help="whose conversation it is")


async def chat(arguments: argparse.Namespace) -> int:
    """Run one action; exit 1 if a message of a log was left out."""
    return await _ACTIONS[arguments.action](arguments)


async def _add(arguments: argparse.Namespace) -> int:
    messages_read, broken = messages(arguments.source)
    session = arguments.session or ""
    listener = Warnings(quiet=arguments.quiet)
    async with opened(arguments, create=True, listener=listener) as memory:
        added = await memory.add_messages(
            messages_read,
            at=arguments.at,
            session=session,
            only_new=True,
            user=arguments.user or "",
            extract=arguments.extract,
        )
        facts_report = await memory.wait() if arguments.extract else None
    skipped_in_words = (
        f"; {len(messages_read) - len(added)} already there, or empty"
        if len(added) < len(messages_read)
        else ""
    )
    for reason in broken:
        output.note(f"left out: {reason}", quiet=arguments.quiet)
    if (
        added
        and not arguments.at
        and not all(message.at or message.odd_time for message in messages_read)
    ):
        told = "messages without a time count as said now; --at TIME gives another time"
        output.note(told, quiet=arguments.quiet)
    output_data = {
        "added": added,
        "left_out": broken,
        **({"facts": facts_report.added} if facts_report else {}),
    }
    output.print_done(
        arguments,
        output_data,
        [f"{counted(len(added), 'turns')} kept{skipped_in_words}{_facts_in_words(facts_report)}"],
    )
    return 1 if broken or (facts_report and facts_report.problems) else 0


async def _say(arguments: argparse.Namespace) -> int:
    async with opened(arguments, create=True) as memory:
        id = await memory.add_turn(
            arguments.role,
            arguments.text,
            at=arguments.at,
            session=arguments.session or "",
            speaker=arguments.speaker,
            user=arguments.user or "",
            extract=arguments.extract,
            standing=arguments.standing,
        )
        facts_report = await memory.wait() if arguments.extract else None
    output_data = {"added": [id], **({"facts": facts_report.added} if facts_report else {})}
    output.print_done(arguments, output_data, [f"kept as {id}{_facts_in_words(facts_report)}"])
    return 1 if facts_report and facts_report.problems else 0


async def _extract(arguments: argparse.Namespace) -> int:
    async with opened(arguments) as memory:
        report = await memory.extract_facts(session=arguments.session, user=arguments.user)
    output.print_done(
        arguments, report, [f"{counted(report.read, 'turns')} read{_facts_in_words(report)}"]
    )
    return 1 if report.problems else 0


def _facts_in_words(report: AddReport | None) -> str:
    """Return the counts of extracted facts; failures go to standard error."""
    if report is None:
        return ""
    for id, index, reason in report.problems:
        if index >= 0:
            output.note(f"facts extracted from a part of {id}: {reason}")
    lost = [reason for _, index, reason in report.problems if index < 0]
    for reason in dict.fromkeys(lost):
        count = lost.count(reason)
        message = (
            f"no facts extracted from {counted(count, 'turns')}: {reason}; `qrmem chat extract` "
            "tries again"
        )
        output.note(message)
    return f"; {counted(len(report.added), 'facts')} noted"


async def _recall(arguments: argparse.Namespace) -> int:
    async with opened(arguments, listener=Warnings(quiet=arguments.quiet)) as memory:
        recalled = await memory.recall(
            arguments.prompt,
            session=arguments.session or "",
            tokens=arguments.tokens,
            user=arguments.user,
            min_score=arguments.min_score,
            types=arguments.types,
            as_of=arguments.as_of or "",
        )
        nothing = [f"nothing to recall (limit: {counted(arguments.tokens, 'tokens')})"]
        if not (recalled.related or recalled.recent):
            if await memory.namespaces():
                await memory.status()  # raises if there is no such namespace
            if not await memory.documents(turns=True, limit=1):
                nothing = ["nothing kept yet"]
    texts = {"text": recalled.text, "messages": recalled.messages}
    output_data = texts | output.plain(recalled)
    return output.print_result(arguments, output_data, recalled_lines(recalled) or nothing)


async def _turns(arguments: argparse.Namespace) -> int:
    async with opened(arguments) as memory:
        turns = await memory.turns(arguments.session, user=arguments.user)
        lines = [_line(turn) for turn in turns] or [await _silence(memory, arguments)]
    return output.print_result(arguments, turns, lines)


async def _standing(arguments: argparse.Namespace) -> int:
    async with opened(arguments) as memory:
        standing_turns = await memory.standing(arguments.user)
        if not standing_turns:
            await memory.status()  # raises if there is no such namespace
    lines = [f"{turn.id}  {_line(turn)}" for turn in standing_turns]
    return output.print_result(arguments, standing_turns, lines or ["there are no standing wishes"])


async def _silence(memory: "Memory", arguments: argparse.Namespace) -> str:
    """Return that there are no turns, and which sessions have some."""
    await memory.status()  # raises if there is no such namespace
    others = {turn.session: None for turn in await memory.turns(user=arguments.user)}
    if not arguments.session or not others:
        return "there are no turns yet"
    others_in_words = output.shortened(", ".join(name or '""' for name in others))
    return f"there is no session {output.safe(arguments.session)!r}; there are: {others_in_words}"


async def _forget_user(arguments: argparse.Namespace) -> int:
    user = arguments.user
    async with opened(arguments) as memory:
        question = f"delete everything that {user} said and added?"
        if not arguments.yes and not agreed(question, "chat forget-user"):
            output.note("nothing was deleted")
            return 0
        await _forget_jobs(memory, user)
        count = await memory.forget_user(user)
    message = f"{counted(count, 'documents')} of {user} deleted"
    return output.print_result(arguments, {"user": user, "deleted": count}, [output.safe(message)])


async def _forget_jobs(memory: "Memory", user: str) -> None:
    """Delete jobs of `qrmem serve` with the user's texts, which its next start would add again.

    Raises:
        StoreConflict: a server runs the jobs.
    """
    from qrmem.web.jobs import Jobs, usual_folder

    jobs = Jobs(usual_folder(memory))
    async with jobs.running({}):
        try:
            await jobs.forget(memory, user)
        except StoreConflict:
            raise StoreConflict(
                f"a server runs the jobs of this memory, and may still add texts of {user!r}: "
                "nothing was deleted; send it DELETE /users/USER, or end it and repeat this"
            ) from None


def messages(source: str) -> tuple[list["LogMessage"], list[str]]:
    """Return the messages of a log, and the reasons why some were left out.

    A log is a JSON list, `{"messages": […]}`, or one message a line.

    Raises:
        UsageError: there is no such file.
        BadDocument: it contains no message.
    """
    # Loads the code of a memory, which other commands do without.
    from qrmem.memory.chat.message_log import read_message

    messages_read: list[LogMessage] = []
    broken: list[str] = []
    name = "standard input" if source == "-" else source
    for where, item in _items(_text(source), name):
        try:
            messages_read.append(read_message(item() if callable(item) else item))
        except RecursionError:
            broken.append(f"{where} is nested too deeply")
        except ValueError as exc:
            broken.append(f"{where} is not JSON: {exc}")
        except UsageError as exc:
            broken.append(f"{where}: {exc}")
    if not any(message.text.strip() for message in messages_read):
        what = "no message in it has a text" if messages_read else "it contains no message"
        raise BadDocument(broken[0] if broken else f"{name} is empty: {what}")
    return messages_read, broken


def _text(source: str) -> str:
    budget = ByteBudget(source)
    try:
        if source == "-":
            data = budget.read(sys.stdin.buffer)
        else:
            with open_file(Path(source)) as file:
                data = budget.read(file)
        return data.decode("utf-8-sig")
    except OSError as exc:
        raise UsageError(f"{source} cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise BadDocument(f"{source} is not UTF-8: byte {exc.start}") from exc


def _items(text: str, source: str) -> Iterator[tuple[str, Any]]:
    """Yield the place of each message with the message, or a function that parses its line."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield f"{source}, line {number}", partial(json.loads, line)
        return
    shared: dict[str, Any] = {}
    if isinstance(whole, Mapping):
        key = next((key for key in _LISTS if key in whole), "")
        shared, whole = (dict(whole), whole[key]) if key else ({}, [whole])
    if not isinstance(whole, list):
        raise BadDocument(f"{source} contains no list of messages")
    for number, item in enumerate(whole, 1):
        yield f"{source}, message {number}", _with_shared(item, shared)


def _with_shared(item: Any, shared: Mapping[str, Any]) -> Any:
    """Return a message; where it has no time or session of its own, it gets that of the log."""
    from qrmem.memory.chat.message_log import SESSION_KEYS, TIME_KEYS

    if not isinstance(item, Mapping):
        return item
    missing = [
        key for keys in (TIME_KEYS, SESSION_KEYS) if item.keys().isdisjoint(keys) for key in keys
    ]
    return {**{key: shared[key] for key in missing if key in shared}, **item}


def recalled_lines(found: Recalled) -> list[str]:
    """Return earlier and recent turns as lines, with facts and days below their turns."""
    lines = []
    if found.related:
        lines.append(f"from earlier ({counted(len(found.related), 'turns')}):")
    for turn in found.related:
        lines.append(_INDENT + _line(turn, len(turn.text)))  # all that was found in it
        lines += [
            f"{_INDENT * 2}noted: {output.shortened(fact)}" for fact in found.facts.get(turn.id, ())
        ]
        for words, first, last in found.times.get(turn.id, ()):
            days = first if first == last else f"{first} to {last}"
            lines.append(f"{_INDENT * 2}{output.safe(words)}: {days}")
    if found.recent:
        lines.append(f"just now ({counted(len(found.recent), 'turns')}):")
        lines += [_INDENT + _line(turn) for turn in found.recent]
    return [*lines, counted(found.tokens, "tokens")] if lines else []


def _line(turn: Turn, length: int = output.QUOTE_LENGTH) -> str:
    return f"{_place(turn)}: {output.safe(output.shortened(turn.text, length))}"


def _place(turn: Turn) -> str:
    where = ", ".join(part for part in (turn.session, _when(turn.at)) if part)
    return output.safe(f"[{where}] {turn.speaker or turn.role}")


def _when(at: str) -> str:
    """Return a time of ISO form to the minute, with its zone if it has one."""
    zone = _ZONE.search(at)
    return at[:16].replace("T", " ") + (zone[0].replace("+00:00", " UTC") if zone else "")


_ACTIONS: Mapping[str, Callable[[argparse.Namespace], Coroutine[Any, Any, int]]] = {
    "add": _add,
    "say": _say,
    "recall": _recall,
    "turns": _turns,
    "standing": _standing,
    "extract": _extract,
    "forget-user": _forget_user,
}
