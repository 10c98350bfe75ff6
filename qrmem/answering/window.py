"""Window accounting: the local reasoner takes the room that a prompted one would (Q21).

It reads nothing through a window; keeping to one makes its trails, and what it may see at a time,
comparable with those of a model.
"""

from qrmem.errors import WindowTooSmall
from qrmem.types import AskContext, Passage, Tokenizer

SKELETON = """\
Answer the question from the passages below. Use nothing but what they say. Each passage has a
label. If they hold the answer, give it, and quote the words that it rests on, exactly, with their
label. If they do not, say so, and say in one or two sentences what is missing: which person,
place, thing or event has to be read about next. Reply with a JSON object that has the fields
reasoning, action, answer, choice and quotes.

Passages:

Question:

Options:

"""
"""What stands around question and passages in a call; only its size counts here."""

_SEAM = 2
"""Tokens that joining two texts can add at most in the counters in use."""


class Window:
    """Counts what a call would take."""

    def __init__(self, tokenizer: Tokenizer, reserve: int) -> None:
        self._tokenizer = tokenizer
        self._reserve = reserve
        self._skeleton = tokenizer.count(SKELETON)

    def frame(self, context: AskContext, extra: str = "") -> int:
        """Return the tokens of all but passages and reserve."""
        parts = [
            context.question,
            *(f"({i}) {c}\n" for i, c in enumerate(context.choices, 1)),
            extra,
        ]
        return self._skeleton + sum(self._tokenizer.count(part) + _SEAM for part in parts if part)

    def room(self, context: AskContext, extra: str = "") -> int:
        """Return the tokens left for passages.

        Raises:
            WindowTooSmall: nothing would be left.
        """
        frame = self.frame(context, extra)
        left = context.window - frame - self._reserve
        if left <= 0:
            raise WindowTooSmall(
                f"the window of {context.window} tokens is too small: question, options and prompt "
                f"take {frame}, and {self._reserve} are kept for the reply; ask for a larger window"
            )
        return left

    def size(self, passage: Passage) -> int:
        """Return the tokens of a passage with its label and title."""
        head = f"[{passage.label}] {passage.title}\n"
        return self._tokenizer.count(head) + self._tokenizer.count(passage.segment.text) + _SEAM
