"""The reasoner that works by prompts to a chat model."""

from functools import partial

from qrmem.answering.with_model import Answerer
from qrmem.config import Settings
from qrmem.extraction import batched, compact, paper
from qrmem.extraction.facts import facts, verdicts
from qrmem.extraction.prompt_context import PromptContext
from qrmem.extraction.relation_folding import fold
from qrmem.extraction.summaries import Summariser
from qrmem.llm.prompting import Caller, TokenBudget
from qrmem.prompts import load_prompts
from qrmem.schema import load_schema
from qrmem.types import BuildMode, ChatModel, Listener, Tokenizer


class PromptedReasoner(Answerer):
    """Implements `qrmem.types.Reasoner` with a chat model; every request is within the window.

    What reads segments are functions of other parts, by the names that the ports give them.

    Attributes:
        name: kind, model, build mode, the set of prompts and the schema with their checksums.
        shared_tokens: of segments that may share a call; none do in mode `paper`.
        facts: returns what is worth remembering of each turn; see `qrmem.extraction.facts`.
        verdicts: says of pairs of statements whether the later one replaces the earlier one.
    """

    is_local = False

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
        caller = Caller(chat, TokenBudget(tokenizer), listener, prompts)
        super().__init__(caller, settings.reserve, is_watched=is_watched)
        window, is_paper = settings.window, mode == "paper"
        reserve = min(settings.reserve, window // 4)
        schema = load_schema(settings.schema)
        types = f", schema {schema.checksum}" if schema else ""
        self.name = f"prompted:{chat.name}:{mode}:{prompts.label}{types}"
        context = PromptContext(caller, window, reserve, settings.questions, schema)
        self.extract = partial(paper.extract if is_paper else compact.extract, context)
        self.supplement = partial(paper.supplement if is_paper else compact.supplement, context)
        self.extract_together = partial(batched.extract, context)
        self.supplement_together = partial(batched.supplement, context)
        # Segments, prompt and a reply several times as long have to fit.
        self.shared_tokens = 0 if is_paper else min(settings.shared_tokens, window // 6)
        summariser = Summariser(caller, window, reserve, settings.concurrency, is_paper)
        self.summarise = summariser.summarise
        self.facts = partial(facts, context)
        self.verdicts = partial(verdicts, context)
        self.fold = partial(fold, context)
