"""The models of one run, in one budget."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qrmem.config import Settings
from qrmem.llm.budget import Budget
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import CallRecord, Embedder, Reasoner, Tokenizer, Usage

if TYPE_CHECKING:
    from qrmem.llm.meter import Meter
    from qrmem.llm.prompting import Caller


@dataclass(frozen=True, slots=True)
class Run:
    """One `add`, `ask` or `reembed`: its reasoner and embedder, and their usage.

    Attributes:
        meter: the chat model's meter; `None` without a chat model.
        caller: sends the chat model prompts other than the reasoner's, on the same meter.
        calls: records of calls that are not in the store yet.
        budget: the budget of all calls in the run.
        embedder: the namespace's embedder, in the same budget.
        settings: settings of the memory.
        counter: counts tokens.
    """

    reasoner: Reasoner
    meter: "Meter | None" = None
    caller: "Caller | None" = None
    calls: list[CallRecord] = field(default_factory=list)
    budget: Budget = field(default_factory=Budget)
    embedder: Embedder | None = None
    settings: Settings = field(default_factory=Settings)
    counter: Tokenizer = field(default_factory=BuiltinTokenizer)

    def take(self, segment_id: str) -> list[CallRecord]:
        """Take and return the calls about a segment, to commit them with it."""
        calls = [call for call in self.calls if call.segment_id == segment_id]
        self.calls[:] = [call for call in self.calls if call.segment_id != segment_id]
        return calls

    def take_all(self) -> list[CallRecord]:
        """Take and return all remaining calls."""
        calls, self.calls[:] = list(self.calls), []
        return calls

    @property
    def is_folded(self) -> bool:
        """Whether parallel relations are folded by the paper's prompt."""
        return self.settings.mode == "paper" and not self.reasoner.is_local

    @property
    def usage(self) -> Usage:
        """Usage of the run so far."""
        return self.budget.usage()
