"""The reasoner that works by prompts to a chat model."""

from collections.abc import Sequence

from qrmem.answering.with_model import Answerer
from qrmem.config import Settings
from qrmem.extraction.batched import TogetherReader
from qrmem.extraction.compact import CompactReader
from qrmem.extraction.facts import FactReader
from qrmem.extraction.paper import PaperReader
from qrmem.extraction.prompt_context import PromptContext
from qrmem.extraction.relation_folding import Folder
from qrmem.extraction.summaries import Summariser
from qrmem.llm.prompting import Caller, TokenBudget
from qrmem.prompts import load_prompts
from qrmem.types import (
    BuildMode,
    ChatModel,
    Contribution,
    Folded,
    Job,
    Listener,
    Reading,
    Segment,
    Tokenizer,
    Turn,
)


class PromptedReasoner(Answerer):
    """Implements `qrmem.types.Reasoner` with a chat model; every request is within the window."""

    def __init__(
        self,
        chat: ChatModel,
        tokenizer: Tokenizer,
        *,
        mode: BuildMode,
        settings: Settings,
        listener: Listener | None = None,
        is_watched: bool = False,
    ) -> None:
        """Make a reasoner.

        Args:
            tokenizer: counts what goes into a window; it should not count less than the model.
            mode: `compact`: two calls a segment, or several short ones; `paper`: the paper's
                prompts, a call each.
            settings: window, reserve, questions and concurrency; the window of a question is its
                own (`AskContext`).
            listener: is told when a server counts more than the tokenizer.
            is_watched: whether somebody reads verdicts and answers as they are written.
        """
        prompts = load_prompts(settings.prompts)
        self._name = f"prompted:{chat.name}:{mode}:{prompts.label}"
        caller = Caller(chat, TokenBudget(tokenizer), listener, prompts)
        super().__init__(caller, settings.reserve, is_watched=is_watched)
        reserve = min(settings.reserve, settings.window // 4)
        context = PromptContext(caller, settings.window, reserve, settings.questions)
        self._reader = PaperReader(context) if mode == "paper" else CompactReader(context)
        self._together = TogetherReader(context)
        # Segments, prompt and a reply several times as long have to fit.
        fitting = min(settings.shared_tokens, settings.window // 6)
        self._shared_tokens = fitting if mode == "compact" else 0
        self._summariser = Summariser(
            caller, settings.window, reserve, settings.concurrency, mode == "paper"
        )
        self._facts = FactReader(caller, settings.window, reserve)
        self._folder = Folder(caller, settings.window, reserve)

    @property
    def name(self) -> str:
        """Kind, model, build mode and the set of prompts with its checksum."""
        return self._name

    @property
    def is_local(self) -> bool:
        """Never."""
        return False

    async def summarise(self, title: str, segments: Sequence[Segment]) -> str:
        """Return the document's summary T."""
        return await self._summariser.summarise(title, segments)

    async def extract(self, segment: Segment, reading: Reading) -> Contribution:
        """First pass over a segment."""
        return await self._reader.extract(segment, reading)

    async def supplement(
        self, segment: Segment, reading: Reading, known: Contribution, questions: Sequence[str]
    ) -> Contribution:
        """Second pass, with the accepted questions."""
        return await self._reader.supplement(segment, reading, known, questions)

    @property
    def shared_tokens(self) -> int:
        """Tokens of segments that may share a call; none do in mode `paper`."""
        return self._shared_tokens

    async def extract_together(self, jobs: Sequence[Job]) -> Sequence[Contribution | None]:
        """First pass over several segments in one call."""
        return await self._together.extract(jobs)

    async def supplement_together(self, jobs: Sequence[Job]) -> Sequence[Contribution | None]:
        """Second pass over several segments in one call."""
        return await self._together.supplement(jobs)

    async def fold(
        self,
        relations: tuple[str, str],
        texts: tuple[str, str],
        *,
        summary: str = "",
        question: str = "",
    ) -> Folded:
        """Merge two relations of the same two entities."""
        return await self._folder.fold(relations, texts, summary=summary, question=question)

    async def facts(
        self, earlier: Sequence[Turn], turns: Sequence[Turn], segments: Sequence[str]
    ) -> list[list[str]]:
        """Return what is worth remembering of each turn; see `FactReader.facts`."""
        return await self._facts.facts(earlier, turns, segments)
