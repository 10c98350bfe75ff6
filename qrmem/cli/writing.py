"""A reply on standard error while a chat model writes it; results are printed when it is done."""

import sys
from types import TracebackType
from typing import Self

from qrmem.types import Words


class Writing:
    """Shows reasoning and answer as they are written, each on a line of its own."""

    def __init__(self) -> None:
        self._field = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def show(self, words: Words) -> None:
        """Print a piece; a model's control characters do nothing to a terminal."""
        if words.field != self._field:
            self.end()
            self._field = words.field
            if words.field:
                self._print(f"  {words.field}: ")
        self._print("".join(c if c.isprintable() else " " for c in words.text))

    def end(self) -> None:
        """End the line, if one was begun."""
        if self._field:
            self._print("\n")
        self._field = ""

    @staticmethod
    def _print(text: str) -> None:
        if text:
            print(text, end="", file=sys.stderr, flush=True)
