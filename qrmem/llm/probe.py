"""A short probe of a chat model: what its server can do, and how much of a passage it finds."""

from dataclasses import dataclass

from pydantic import BaseModel

from qrmem.errors import ModelOutputError
from qrmem.llm.chat import Chat
from qrmem.llm.negotiation import Form
from qrmem.llm.structured import Structured, ask
from qrmem.types import ChatRequest, Message

_PASSAGE = (
    "In 1871 the cartographer Ilse Brandt left Tromsø aboard the Havfruen. Her brother Jonas, a "
    "surveyor of the Royal Harbour Office, met her in Archangel two years later."
)
_NAMES = ("Ilse Brandt", "Tromsø", "Havfruen", "Jonas", "Royal Harbour Office", "Archangel")
_SYSTEM = (
    "You read a passage and list every name in it, copied exactly: persons, places, ships, "
    'offices.\nReply with JSON only: {"entities": ["…"]}'
)


class _Found(BaseModel):
    entities: list[str]


@dataclass(frozen=True, slots=True)
class Probe:
    """What a chat model did with a known passage.

    Attributes:
        form: the strictest output form that it takes.
        is_structured: whether a structured reply could be read.
        repaired: whether that took a repair.
        attempts: requests until a structured reply could be read.
        found: share of the passage's names that it named.
        invented: names that do not stand in the passage.
        counts_tokens: whether the server says what it counted.
        seconds: of the fastest reply.
        problems: what went wrong, in words.
    """

    form: Form
    is_structured: bool
    repaired: bool
    attempts: int
    found: float
    invented: tuple[str, ...]
    counts_tokens: bool
    seconds: float
    problems: tuple[str, ...]


async def probe(chat: Chat) -> Probe:
    """Send a plain and a structured request and report.

    Raises:
        AccessRefused: key or model name refused.
        ModelUnavailable: no answer.
    """
    problems: list[str] = []
    plain = await chat.complete(_plain())
    if not plain.text.strip():
        problems.append("a plain question was answered with nothing")
    asked: Structured[_Found] | None = None
    try:
        asked = await ask(chat, _structured(), _Found, retries=1)
    except ModelOutputError as exc:
        problems.append(str(exc))
    named = asked.value.entities if asked else []
    invented = tuple(name for name in named if name not in _PASSAGE)
    replies = (plain, *(asked.replies if asked else ()))
    return Probe(
        form=chat.form,
        is_structured=asked is not None,
        repaired=bool(asked and asked.repaired),
        attempts=len(asked.replies) if asked else 3,
        found=sum(any(name in said for said in named) for name in _NAMES) / len(_NAMES),
        invented=invented,
        counts_tokens=all(reply.tokens_in for reply in replies),
        seconds=min(reply.seconds for reply in replies),
        problems=(*problems, *(asked.problems if asked else ())),
    )


def _plain() -> ChatRequest:
    return ChatRequest((Message("user", "Answer with the one word: ready"),), max_tokens=64)


def _structured() -> ChatRequest:
    user = Message("user", f"Passage:\n<text>\n{_PASSAGE}\n</text>")
    return ChatRequest((Message("system", _SYSTEM), user), max_tokens=256, stage="probe")
