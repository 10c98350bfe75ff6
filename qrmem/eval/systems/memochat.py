"""MemoChat: the model writes notes on the conversation and looks them up itself."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from qrmem.errors import ModelOutputError
from qrmem.eval.harness import Harness
from qrmem.eval.items import Context, Item, Prediction, Round
from qrmem.eval.registry import system
from qrmem.eval.systems.session_replay import ChatCalls, PromptPart, require_session
from qrmem.graph.segmenting import longbench_words
from qrmem.prompts import fenced
from qrmem.prompts.replies import MemosReply, NotesReply

GREETING = ("User: Hello!", "Reply: Hello, what shall we talk about?")
"""The first two lines of a conversation in the authors' program."""
LEFT = 2
"""Number of lines that are kept after notes were made."""
NO_TOPIC = "not sorted"
_REPLY = 512
_MEMO = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+))?\s*\|([^|]+)\|(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ChatLine:
    """A line of one side; `round` is the id of its round, "" for the greeting."""

    text: str
    round: str = ""


@dataclass(frozen=True, slots=True)
class Memo:
    """A note: the topic and the summary of some lines, and the lines themselves."""

    topic: str
    summary: str
    lines: tuple[ChatLine, ...]


@system("memochat", "chat memory: the model's own notes, picked by it", "MemoChat")
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoChat:
    """Replies to every turn of a session from notes that the model writes and picks.

    Attributes:
        words: new notes are made when the lines since the last ones have more words than this.
        lines: new notes are also made after this many lines.
    """

    words: int = 1024
    lines: int = 10

    needs = frozenset({"model"})

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Reply to one session's last question."""
        require_session(item)
        chat_calls = ChatCalls(harness.caller, harness.settings.window)
        notebook = Notebook(chat_calls, random.Random(item.id))
        rounds: list[Round] = []
        for turn in context.documents:
            round_made = Round(turn.id or "", turn.text, await self._reply(notebook, turn.text))
            notebook.recent += [
                ChatLine(f"User: {round_made.said}", round_made.id),
                ChatLine(f"Reply: {round_made.replied}", round_made.id),
            ]
            rounds.append(round_made)
        last = await self._reply(notebook, item.question)
        return Prediction(
            text=last,
            status="answered" if last else "unanswerable",
            read=chat_calls.read,
            steps=tuple(chat_calls.steps),
            rounds=tuple(rounds),
        )

    async def _reply(self, notebook: "Notebook", text: str) -> str:
        size = sum(len(longbench_words(line.text)) for line in notebook.recent)
        if size > self.words or len(notebook.recent) >= self.lines:
            await notebook.take_notes()
        memos_picked = await notebook.picked(text) if notebook.memos else []
        earlier = [
            PromptPart(_rounds(m.lines), _memo_in_words(m), n) for n, m in enumerate(memos_picked)
        ]
        latest = [
            PromptPart(_rounds([line]), fenced(line.text), n)
            for n, line in enumerate(notebook.recent)
        ]
        return await notebook.said.reply(text, earlier, latest)


@dataclass(slots=True)
class Notebook:
    """The notes so far, and the lines without notes."""

    said: ChatCalls
    drawn: random.Random
    recent: list[ChatLine] = field(default_factory=lambda: [ChatLine(text) for text in GREETING])
    memos: list[Memo] = field(default_factory=list)

    async def take_notes(self) -> None:
        """Make notes on the lines since the last ones; the last two lines are kept."""
        lines = self.recent
        numbered = [f"{n}. {line.text}" for n, line in enumerate(lines, 1)]
        try:
            call = await self.said.caller.call(
                "memo-write",
                MemosReply,
                lambda kept: dict(lines=fenced("\n".join(kept[0]))),
                [numbered],
                window=self.said.window,
                reply=_REPLY,
            )
            new_memos = [
                memo for memo_reply in call.value.memos for memo in _memos(memo_reply, lines)
            ]
            tokens = call.tokens
        except ModelOutputError:
            new_memos, tokens = [], 0
        new_memos = new_memos or [self._unsorted(lines)]
        self.memos += new_memos
        self.recent = lines[-LEFT:]
        self.said.noted(
            "memo", _all_rounds(new_memos), "; ".join(m.topic for m in new_memos), tokens
        )

    async def picked(self, text: str) -> list[Memo]:
        """Return the notes that the model picks for a user's turn, best first."""
        memo_lines = [f"{n}. {memo.topic}: {memo.summary}" for n, memo in enumerate(self.memos, 1)]
        text_words = text.split(" ")
        try:
            call = await self.said.caller.call(
                "memo-pick",
                NotesReply,
                lambda kept: dict(
                    # If the notes do not fit, the oldest are left out first.
                    notes=fenced("\n".join(reversed(kept[0]))),
                    said=fenced(" ".join(text_words[len(text_words) - len(kept[1]) :])),
                ),
                [memo_lines[::-1], text_words],
                window=self.said.window,
                reply=_REPLY,
            )
        except ModelOutputError:
            self.said.noted("pick", reason="no reply could be read")
            return []
        numbers = [n for n in dict.fromkeys(call.value.notes) if 0 < n <= len(self.memos)]
        memos = [self.memos[n - 1] for n in numbers]
        topics = "; ".join(memo.topic for memo in memos)
        self.said.noted("pick", _all_rounds(memos), topics, call.tokens)
        return memos

    def _unsorted(self, lines: Sequence[ChatLine]) -> Memo:
        """Return a replacement for notes that cannot be parsed: two random lines."""
        few = sorted(self.drawn.sample(range(len(lines)), min(2, len(lines))))
        lines_kept = tuple(lines[n] for n in few)
        return Memo(NO_TOPIC, " ".join(line.text for line in lines_kept), lines_kept)


def _memos(said: str, lines: Sequence[ChatLine]) -> list[Memo]:
    """Parse a note `first-last|topic|summary`; return nothing if it is malformed."""
    match = _MEMO.fullmatch(said)
    if match is None:
        return []
    first, last = int(match[1]), int(match[2] or match[1])
    lines_kept = tuple(lines[first - 1 : last]) if 0 < first <= last else ()
    return [Memo(match[3].strip(), match[4].strip(), lines_kept)] if lines_kept else []


def _memo_in_words(memo: Memo) -> str:
    turn_lines = "\n".join(line.text for line in memo.lines)
    return fenced(f"{memo.topic}: {memo.summary}\n{turn_lines}", "note")


def _rounds(lines: Sequence[ChatLine]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line.round for line in lines if line.round))


def _all_rounds(memos: Sequence[Memo]) -> list[str]:
    return list(dict.fromkeys(id for memo in memos for id in _rounds(memo.lines)))
