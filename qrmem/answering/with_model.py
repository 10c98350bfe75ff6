"""Reading and answering with a chat model: verdicts, forced answers, the strategies' prompts."""

import re
from collections.abc import Sequence
from functools import partial

from qrmem.answering import multiple_choice
from qrmem.config import Settings, efforts
from qrmem.errors import ModelOutputError, WindowTooSmall
from qrmem.extraction import compact, paper
from qrmem.extraction import reply_items as items
from qrmem.extraction.fact_extraction import facts, verdicts
from qrmem.extraction.paper import fold
from qrmem.extraction.prompt_context import PromptContext, pieces
from qrmem.extraction.summaries import Summariser
from qrmem.llm.prompting import Caller, Kept, Render, TokenBudget
from qrmem.llm.routing import of_stage
from qrmem.prompts import fenced, fenced_if, load_prompts
from qrmem.prompts.replies import AnswerReply, JudgeReply, NamesReply, QueryReply
from qrmem.schema import load_schema
from qrmem.text.names import normalise_name, occurs_in
from qrmem.types import (
    AskContext,
    BuildMode,
    ChatModel,
    Finding,
    Listener,
    Passage,
    Tokenizer,
    Verdict,
)

_NEWEST = "What is marked as replaced was so before: answer by what replaced it, and name both."
MOST_SOUGHT, LONGEST_SOUGHT = 3, 160
"""Maximum number of phrases to look for after a reading, and of characters of one."""
MOST_FINDINGS, LONGEST_FINDING = 8, 300
"""Maximum number of facts to keep of a reading, and of characters of one."""
PAPER_QUESTIONS = 5
"""Questions that QRMeM generates for a segment of 600 tokens."""
LARGE_WINDOW, MOST_SHARED, FEW_SHARED = 16_000, 3_000, 600
"""With a window of 16,000 tokens or more, segments share a call up to 3,000 tokens, else 600."""
_SMALL = 160
"""Tokens reserved for a reply of a few names or one sentence."""


class Answerer:
    """Asks a chat model about passages: the answering half of `qrmem.types.Reasoner`."""

    def __init__(self, caller: Caller, reserve: int, *, is_watched: bool = False) -> None:
        """Create an answerer.

        Args:
            reserve: tokens kept free for a reply; at most a quarter of a window.
            is_watched: whether to stream verdicts and answers.
        """
        self.caller = caller
        self._reserve = reserve
        self._is_watched = is_watched

    def room(self, context: AskContext) -> int:
        """Return the tokens left for passages in a judging or answering prompt."""
        reply = self._reply(context)
        frame = max(self._tokens(context, (), force, reply) for force in (False, True))
        tokens_left = context.window - self.caller.reply_limit(reply, context.window) - frame
        if tokens_left <= 0:
            raise WindowTooSmall(
                f"the window of {context.window} tokens leaves no room to read anything: the "
                "question, its options and the prompt take all of it"
            )
        return tokens_left

    def size(self, passage: Passage) -> int:
        """Return the tokens of a passage with its marks, and one for the line after it."""
        return self.caller.budget.count(block(passage)) + 1

    async def judge(
        self, context: AskContext, passages: Sequence[Passage], *, force: bool = False
    ) -> Verdict:
        """Answer from the passages, or say what is missing and what to look for.

        If no reply can be read, `Verdict.problem` says why.
        """
        if not passages and not force:
            return Verdict(is_answerable=False, reason="No passage was found for the question.")
        model: type[AnswerReply] | type[JudgeReply] = AnswerReply if force else JudgeReply
        groups, inputs = self._parts(context, passages)
        reply = self._reply(context)
        try:
            call = await self.caller.call(
                _prompt(force),
                model,
                inputs,
                groups,
                window=context.window,
                reply=reply,
                is_watched=self._is_watched,
            )
        except ModelOutputError as exc:
            tokens = self._tokens(context, passages, force, reply)
            return Verdict(is_answerable=False, tokens=tokens, problem=str(exc))
        return _verdict(context, call.value, call.tokens)

    async def query_entities(self, context: AskContext) -> list[str]:
        """Return the names in the question and its options; invented names are dropped."""
        question = multiple_choice.shown(context.question, context.choices)
        try:
            call = await self.caller.call(
                "query-entities",
                NamesReply,
                lambda kept: dict(question=question),
                window=context.window,
                reply=self._reply(context, _SMALL),
            )
        except ModelOutputError:
            return []
        names = (name.partition("|")[0].strip() for name in call.value.entities)
        return list(dict.fromkeys(name for name in names if name and occurs_in(name, question)))

    async def revise(
        self,
        context: AskContext,
        *,
        current: Sequence[str],
        candidates: Sequence[tuple[str, int]],
        reason: str,
        passages: Sequence[Passage],
    ) -> list[str]:
        """Return names from the candidates, or the current ones if the reply names none.

        R, E and S_imp belong to the prompt. Candidates that do not fit beside them are left out,
        the least frequent first. If no new one fits, the window is full and nothing is returned.
        """
        question = multiple_choice.shown(context.question, context.choices)

        def inputs(kept: Kept) -> dict[str, object]:
            return dict(
                passages="\n\n".join(kept[1]),
                question=question,
                reason=fenced_if(" ".join(kept[3])),
                current=fenced("\n".join(kept[2])),
                candidates=fenced("\n".join(kept[0])),
            )

        names_listed = [f"{name} ({count})" for name, count in candidates]
        groups = [names_listed, [block(p) for p in passages], list(current), list(pieces(reason))]
        window, reply = context.window, self._reply(context, 2 * _SMALL)
        _, groups_kept = self.caller.draft("trial", inputs, groups, window=window, reply=reply)
        new = {name for name, _ in candidates[: len(groups_kept[0])]} - set(current)
        if not new or [len(group) for group in groups_kept[1:]] != [
            len(group) for group in groups[1:]
        ]:
            return []
        try:
            call = await self.caller.call(
                "trial", NamesReply, inputs, groups, window=window, reply=reply
            )
        except ModelOutputError:
            return list(current)
        candidates_shown = candidates[: len(call.kept[0])]
        names_shown = [*(name for name, _ in candidates_shown), *current]
        return _known_candidates(call.value.entities, names_shown) or list(current)

    async def elaborate(
        self, context: AskContext, entities: Sequence[str], relations: Sequence[str]
    ) -> str:
        """Return the elaborated query; "" if the reply is unusable."""
        question = multiple_choice.shown(context.question, context.choices)

        def inputs(kept: Kept) -> dict[str, object]:
            return dict(
                question=question,
                entities=fenced_if("\n".join(kept[1])),
                relations=fenced_if("\n".join(kept[0])),
            )

        try:
            call = await self.caller.call(
                "elaborate",
                QueryReply,
                inputs,
                [list(relations), list(entities)],
                window=context.window,
                reply=self._reply(context, _SMALL),
            )
        except ModelOutputError:
            return ""
        return " ".join(call.value.query.split())

    # --- inside ---------------------------------------------------------------------------------

    def _reply(self, context: AskContext, most: int | None = None) -> int:
        reserve = min(self._reserve, context.window // 4)
        return reserve if most is None else min(most, context.window // 8)

    def _tokens(
        self, context: AskContext, passages: Sequence[Passage], force: bool, reply: int
    ) -> int:
        """Return the tokens of a judging or answering prompt."""
        groups, inputs = self._parts(context, passages)
        window = context.window
        request, _ = self.caller.draft(_prompt(force), inputs, groups, window=window, reply=reply)
        return request.prompt_tokens

    def _parts(
        self, context: AskContext, passages: Sequence[Passage]
    ) -> tuple[list[list[str]], Render]:
        question = multiple_choice.shown(context.question, context.choices)
        if any(passage.superseded for passage in passages):
            question = f"{question}\n{_NEWEST}"

        def inputs(kept: Kept) -> dict[str, object]:
            return dict(
                passages="\n".join(kept[0]) or "(none)",
                question=question,
                notes=fenced_if("\n".join(context.notes)),
                statements=fenced_if("\n".join(context.statements)),
                as_of=context.as_of,
            )

        return [[block(passage) for passage in passages]], inputs


def _prompt(force: bool) -> str:
    return "answer" if force else "judge"


def block(passage: Passage) -> str:
    """Return a passage for a prompt; its title is within the marks, because it is data too."""
    title = " ".join(passage.title.split())
    lines = [f"Title: {title}" if title else "", f"Date: {passage.date}" if passage.date else ""]
    replaced = [f"Replaced: {' '.join(statement.split())}" for statement in passage.superseded]
    replaced += [f"No longer so: {' '.join(words.split())}" for words in passage.ended]
    text = passage.segment.text.strip()
    return fenced("\n".join(filter(None, (*lines, text, *replaced))), passage.label)


def _verdict(context: AskContext, reply: AnswerReply | JudgeReply, tokens: int) -> Verdict:
    """Return a verdict; an empty answer, or one that means no option, is no answer."""
    answer, reason = reply.answer.strip(), reply.reasoning.strip()
    choice = multiple_choice.chosen(answer, context.choices) if context.choices else None
    is_none = isinstance(reply, JudgeReply) and reply.action == -1
    if is_none or not answer or (context.choices and choice is None):
        return Verdict(
            is_answerable=False,
            reason=reason,
            tokens=tokens,
            look_for=_phrases(reply.look_for) if isinstance(reply, JudgeReply) else (),
            findings=_findings(reply.keep) if isinstance(reply, JudgeReply) else (),
        )
    text = context.choices[choice] if choice is not None else answer
    return Verdict(True, text, choice, reason, items.quotes(reply.quotes), tokens)


def _phrases(given: Sequence[str]) -> tuple[str, ...]:
    """Return what a reply looks for: at most `MOST_SOUGHT` phrases, each on one line."""
    phrases = (" ".join(phrase.split())[:LONGEST_SOUGHT] for phrase in given)
    return tuple(dict.fromkeys(filter(None, phrases)))[:MOST_SOUGHT]


def _findings(given: Sequence[str]) -> tuple[Finding, ...]:
    """Return what a reply keeps of the passages, each on one line."""
    quotes = items.quotes(given)
    lines = (Finding(q.label, " ".join(q.text.split())[:LONGEST_FINDING]) for q in quotes)
    return tuple(dict.fromkeys(lines))[:MOST_FINDINGS]


def _known_candidates(names: Sequence[str], candidates: Sequence[str]) -> list[str]:
    """Return the candidates that a reply names; a repeated count is removed."""
    exact = {name: name for name in candidates}
    alike = {normalise_name(name): name for name in reversed(candidates)}
    result = []
    for name in names:
        bare = re.sub(r"\s*\(\d+\)$", "", name.strip())
        match = exact.get(name.strip()) or exact.get(bare) or alike.get(normalise_name(bare))
        if match:
            result.append(match)
    return list(dict.fromkeys(result))


# The reasoner with a chat model.


class PromptedReasoner(Answerer):
    """Implements `qrmem.types.Reasoner` with a chat model; every request fits the window.

    Functions of other modules read segments; they have the names of the protocols' methods.

    Attributes:
        name: kind, model, build mode, the set of prompts and the schema with their checksums.
        shared_tokens: tokens of segments that may share a call; none share one in mode `paper`.
        facts: returns the facts of each turn; see `qrmem.extraction.reply_items`.
        verdicts: decides for pairs of statements whether the later one replaces the earlier one.
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
            tokenizer: counts the tokens of a window; it should not count less than the model.
            mode: `compact`: at most three calls a segment; `paper`: the paper's
                prompts, a call each.
            settings: window, reserve, questions and concurrency; a question has its own window
                (`AskContext`).
            listener: gets an event when a server counts more tokens than the tokenizer.
            is_watched: whether to stream verdicts and answers.
        """
        prompts = load_prompts(settings.prompts)
        reasoning = efforts(settings.reasoning_effort)
        caller = Caller(
            chat,
            TokenBudget(tokenizer),
            prompts,
            listener,
            effort_of=lambda stage: of_stage(reasoning, stage) or "",
        )
        super().__init__(caller, settings.reserve, is_watched=is_watched)
        window, is_paper = settings.window, mode == "paper"
        reserve = min(settings.reserve, window // 4)
        schema = load_schema(settings.schema)
        types = f", schema {schema.checksum}" if schema else ""
        self.name = f"prompted:{chat.name}:{mode}:{prompts.label}{types}"
        questions = settings.questions
        if questions is None:
            questions = PAPER_QUESTIONS if is_paper else 0
        context = PromptContext(caller, window, reserve, questions, schema)
        self.extract = partial(paper.extract if is_paper else compact.extract, context)
        self.supplement = partial(paper.supplement if is_paper else compact.supplement, context)
        self.extract_together = partial(compact.extract_together, context)
        self.supplement_together = partial(compact.supplement_together, context)
        # The segments, the prompt and a reply several times as long must fit.
        shared = settings.shared_tokens
        if shared is None:
            shared = MOST_SHARED if window >= LARGE_WINDOW else FEW_SHARED
        self.shared_tokens = 0 if is_paper else min(shared, window // 6)
        summariser = Summariser(caller, window, reserve, settings.concurrency, is_paper)
        self.summarise = summariser.summarise
        self.facts = partial(facts, context)
        self.verdicts = partial(verdicts, context)
        self.fold = partial(fold, context)
