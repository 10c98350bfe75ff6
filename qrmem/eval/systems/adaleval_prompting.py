"""Ada-LEval as in the paper, with the benchmark's own prompt and one reply."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from qrmem.errors import ContextExceeded, UsageError, WindowTooSmall
from qrmem.eval.datasets.adaleval import asked, sample_order, strict_answer
from qrmem.eval.harness import Harness
from qrmem.eval.items import Context, Item, Prediction
from qrmem.eval.registry import system
from qrmem.types import Step

REPLY = 1024
"""Maximum tokens of a reply in the released evaluation."""


@system("ada-leval", "Ada-LEval's own prompt, one reply", "Ada-LEval")
@dataclass(frozen=True, slots=True, kw_only=True)
class Prompted:
    """Sends a whole case in the benchmark's prompt; the reply is scored without changes.

    A case that does not fit the window, or the server's context, gets no answer: it counts
    as wrong and as not following the instruction, as in the paper.

    Attributes:
        window: the model's own window.
        reply: tokens of the window reserved for the reply.
        body: maximum tokens of the parts or answers, whose middle is cut out; 0 for all (Table 10).
        sampling: `model` leaves the temperature to the model's server, as the paper does for open
            models; `greedy` sends 0, as it does for models with an API.
    """

    window: int = 128_000
    reply: int = REPLY
    body: int = 0
    sampling: Literal["greedy", "model"] = "greedy"

    needs = frozenset({"model"})

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        require_case(item)
        texts = [document.text for document in context.documents]
        is_order = item.labels["task"] == "tsort"
        documents_shown = context.documents[1:-1] if is_order else context.documents
        body = "\n\n".join(f"{document.title}:\n{document.text}" for document in documents_shown)
        if self.body:
            body = without_middle(body, self.body, harness.tools.counter.count)
        if is_order:
            sample = sample_order(len(documents_shown))
            slots = dict(before=texts[0], parts=body, after=texts[-1])
            slots |= dict(count=str(len(documents_shown)), sample=str(sample))
        else:
            slots = dict(question=asked(item), answers=body)
        try:
            call = await harness.caller.say(
                "tsort" if is_order else "best-answer",
                lambda kept: slots,
                window=self.window,
                reply=self.reply,
                temperature=0.0 if self.sampling == "greedy" else None,
            )
        except (WindowTooSmall, ContextExceeded) as exc:
            step = Step(n=1, action="read", reason=f"no answer: {exc}")
            return Prediction(steps=(step,), reason=str(exc))
        return prediction(item, call.value, call.tokens)


def prediction(item: Item, output: str, tokens: int = 0) -> Prediction:
    """Return a prediction from an output, with the answer that it names."""
    choice = strict_answer(output, len(item.choices)) if item.choices else None
    return Prediction(
        text=output,
        choice=None if choice is None else choice - 1,
        status="answered",
        steps=(Step(n=1, action="read", tokens=tokens),),
    )


def without_middle(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """Return the start and the end of a text, together a number of tokens (LongBench's rule)."""
    words = text.split(" ")
    sizes = [count(f" {word}") for word in words]
    if sum(sizes) <= tokens:
        return text
    half, head, tail = tokens // 2, 0, len(words)
    tokens_left = half
    while tokens_left >= sizes[head]:
        tokens_left -= sizes[head]
        head += 1
    tokens_left = tokens - half
    while tail > head and tokens_left >= sizes[tail - 1]:
        tokens_left -= sizes[tail - 1]
        tail -= 1
    return " ".join([*words[:head], *words[tail:]])


def require_case(item: Item) -> None:
    """Check that an item is one of TSort's or BestAnswer's."""
    if item.labels.get("task") not in ("tsort", "bestanswer"):
        raise UsageError("this system answers TSort and BestAnswer only; see `qrmem eval list`")
