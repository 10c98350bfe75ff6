"""Writes docs/reference/cli.md from the parser: `python -m tools.cli_reference`."""

import argparse
from pathlib import Path
from typing import TypeAlias

from qrmem.cli.arguments import help_of
from qrmem.cli.parser import build_parser

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
_HEAD = """# Commands

Made by `python -m tools.cli_reference` from the program. `qrmem help COMMAND` shows the same.

Options that several commands share; each command says which of them it takes:

"""


def page() -> str:
    """Return the page as Markdown."""
    parser = build_parser()
    (commands,) = _choices(parser)
    shared = {action.dest for action in parser._actions}
    texts = [_HEAD + _rows(parser, {"version", "command"})]
    helps = {action.dest: action.help for action in commands._choices_actions}
    for name, command in commands.choices.items():
        texts.append(f"## {name}\n\n{_sentence(helps.get(name))}\n\n" + _body(command, shared))
    return "\n".join(texts)


def _body(command: argparse.ArgumentParser, shared: set[str]) -> str:
    text = _taken(command, shared) + _rows(command, shared)
    for group in _choices(command):
        for name, inner in group.choices.items():
            text += f"\n### {inner.prog.removeprefix('qrmem ')}\n\n"
            text += f"{_sentence(_help(group, name))}\n\n"
            text += _taken(inner, shared) + _rows(inner, shared)
    return text


def _taken(command: argparse.ArgumentParser, shared: set[str]) -> str:
    """Return a line with the shared options of a command."""
    names = [
        f"`{action.option_strings[-1]}`"
        for action in command._actions
        if action.dest in shared - {"help"} and action.option_strings
    ]
    return f"Takes {', '.join(names)}.\n\n" if names else ""


def _choices(
    parser: argparse.ArgumentParser,
) -> "list[_Commands]":
    return [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]


def _help(group: "_Commands", name: str) -> str | None:
    return next((a.help for a in group._choices_actions if a.dest == name), None)


def _rows(parser: argparse.ArgumentParser, left_out: set[str]) -> str:
    rows = [
        f"| {_code(_name(action))} | {_escaped(help_of(action))} |"
        for action in parser._actions
        if action.dest not in left_out and not isinstance(action, argparse._SubParsersAction)
        if action.dest != "help"
    ]
    return "\n".join(["| | |", "|---|---|", *rows]) + "\n" if rows else ""


def _name(action: argparse.Action) -> str:
    names = ", ".join(action.option_strings)
    value = "" if action.nargs == 0 else str(action.metavar or "")
    if not value and action.choices:
        value = "|".join(map(str, action.choices))
    elif not value and action.nargs != 0:
        value = action.dest.upper()
    return f"{names} {value}".strip()


def _code(text: str) -> str:
    """Return text as code in a table; no form of a bar there works in all Markdown renderers."""
    if "|" not in text:
        return f"`{text}`"
    return f"<code>{text.replace('<', '&lt;').replace('|', '&#124;')}</code>"


def _escaped(text: str | None) -> str:
    return (text or "").replace("%%", "%").replace("|", "\\|")


def _sentence(text: str | None) -> str:
    text = _escaped(text)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
