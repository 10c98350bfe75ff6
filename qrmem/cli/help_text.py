"""How `--help` looks: examples, commands in groups, defaults."""

import argparse
from dataclasses import fields
from typing import Any

from qrmem.config import Settings

_DEFAULTS = {field.name: field.default for field in fields(Settings)}
DESCRIPTION = """Read long documents once, then ask: answers cite the segments that were read.

  qrmem add book.txt                      read a file, or a folder, into qrmem.db
  qrmem ask "Who rang the bell?"          answer a question, with citations
  qrmem plan add book.txt -M gpt-4o-mini  estimate what reading with a model costs
"""
GROUPS = {
    "read and ask": ("add", "ask", "search", "chat", "tree"),
    "look": ("show", "list", "status", "trail", "view"),
    "costs": ("plan", "usage", "prune"),
    "statements": (
        "facts",
        "edit-fact",
        "end-fact",
        "delete-fact",
        "restore-fact",
        "judge-facts",
    ),
    "change and move": ("delete", "merge", "separate", "reembed", "export", "import"),
    "serve": ("mcp", "serve"),
    "set up": ("init", "trust", "doctor", "completion", "help"),
    "measure": ("eval",),
}
"""The commands as the help shows them."""


class Help(argparse.HelpFormatter):
    """Shows commands in groups, and each option's default: its own, else that of the setting."""

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        """Show what has to be given; the options follow below, in groups."""
        shown = [a for a in actions if not a.option_strings or a.required]
        if len(shown) < len(list(actions)):
            self._prog += " [OPTIONS]"
        super().add_usage(usage, shown, [], prefix)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Leave the lines of examples as they are."""
        return text if "\n" in text else super()._fill_text(text, width, indent)

    def _format_action(self, action: argparse.Action) -> str:
        """Show the commands in groups."""
        if action.dest != "command" or not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        told = {one.dest: one for one in action._get_subactions()}
        shown = ""
        for title, names in GROUPS.items():
            shown += f"{'':{self._current_indent}}{title}:\n"
            self._indent()
            shown += "".join(self._format_action(told[name]) for name in names)
            self._dedent()
        return shown

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return help_of(action)


def help_of(action: argparse.Action) -> str | None:
    """Return the help of an option, with its default."""
    if not action.option_strings or not action.help or "default" in action.help:
        return action.help
    default = action.default
    if default in (None, argparse.SUPPRESS):
        default = _DEFAULTS.get(action.dest)
    is_told = isinstance(default, str | int | float) and not isinstance(default, bool) and default
    return f"{action.help} (default: {default})" if is_told else action.help
