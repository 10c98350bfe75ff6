"""Names of systems, and how one is written with its parameters: `bm25:k=1`."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, Literal, Protocol, get_args, get_origin, get_type_hints

from qrmem.errors import UsageError
from qrmem.eval.bench import Bench
from qrmem.eval.records import Context, Found, Item
from qrmem.eval.systems.agents import Decomposed, MemWalker, ReadAgent
from qrmem.eval.systems.chatting import Conversed
from qrmem.eval.systems.completing import Completed
from qrmem.eval.systems.compressed import Compressed
from qrmem.eval.systems.direct import ClosedBook, Truncated
from qrmem.eval.systems.fragments import Fragmented
from qrmem.eval.systems.memochat import MemoChat
from qrmem.eval.systems.ours import Strategy
from qrmem.eval.systems.retrieved import Retrieved
from qrmem.eval.systems.summary import Summary
from qrmem.eval.systems.windows import SlidingWindow


class System(Protocol):
    """Answers items; a frozen dataclass whose fields are its parameters.

    One that can rank without answering says so by a property `ranks`.
    """

    @property
    def needs(self) -> frozenset[str]:
        """What has to be there: `model`, `embedder`."""
        ...

    async def __call__(self, item: Item, context: Context, bench: Bench) -> Found:
        """Answer one item."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A system as it stands in the list.

    Attributes:
        row: of the specification.
    """

    system: Any
    what: str
    row: str


SYSTEMS: Mapping[str, Entry] = {
    "reflection": Entry(Strategy(strategy="reflection"), "navigation by reflection", "Q18"),
    "graph-expansion": Entry(Strategy(strategy="graph-expansion"), "graph expansion search", "Q17"),
    "entity-trial": Entry(Strategy(strategy="entity-trial"), "entity trial", "Q16"),
    "search": Entry(Retrieved(ranker="search"), "our search, then one reading", "Q14"),
    "bm25": Entry(Retrieved(ranker="bm25"), "BM25 top k (k=0: Max)", "B03"),
    "dense": Entry(Retrieved(ranker="dense"), "dense top k (k=0: Max)", "B04"),
    "dos-rag": Entry(
        Retrieved(ranker="dense", k=0, order="document"),
        "retrieve what fits, read it in document order",
        "FIELD 2.3",
    ),
    "fragment": Entry(Fragmented(), "fragments picked for their surroundings (FragRel)", "F15"),
    "fragment-chat": Entry(Conversed(), "chat memory: rounds recalled by FragRel", "F20"),
    "dense-chat": Entry(Conversed(alpha=0.0, score="cosine"), "dense chat memory", "B13"),
    "memochat": Entry(MemoChat(), "chat memory: the model's own notes, picked by it", "B12"),
    "latest-chat": Entry(Conversed(top=0), "chat with the latest rounds alone", "F21"),
    "complete": Entry(Completed(), "code continued from its repository, one retrieval", "F17"),
    "repocoder": Entry(Completed(rounds=2), "asked again with what was predicted", "B11"),
    "closed-book": Entry(ClosedBook(), "the model alone, no text", "B14"),
    "full-text": Entry(
        Truncated(keep="middle", window=128_000),
        "the whole text in the model's own window, middle cut beyond it",
        "B14",
    ),
    "keep-left": Entry(Truncated(keep="left"), "the beginning of the text", "B01"),
    "keep-right": Entry(Truncated(keep="right"), "the end of the text", "B01"),
    "keep-ends": Entry(Truncated(keep="middle"), "both ends, the middle cut out", "S09"),
    "summary": Entry(Summary(), "a summary in place of the text", "B02"),
    "sliding-window": Entry(SlidingWindow(), "every window asked, answers voted", "B05"),
    "decom": Entry(Decomposed(), "sub-questions first", "B06"),
    "llmlingua-2": Entry(Compressed(), "the text with words left out", "B07"),
    "memwalker": Entry(MemWalker(), "a tree of summaries, walked", "B08"),
    "read-agent-p": Entry(
        ReadAgent(look_up="parallel", most=5), "gists, pages looked up at once", "B09"
    ),
    "read-agent-s": Entry(
        ReadAgent(look_up="sequential", most=6), "gists, pages looked up one by one", "B09"
    ),
}


def parse(word: str) -> System:
    """Return the system of a name with parameters: `NAME[:KEY=VALUE]…`.

    Raises:
        UsageError: no such system, no such parameter, or a value that it cannot have.
    """
    name, *pairs = word.split(":")
    if name not in SYSTEMS:
        near = get_close_matches(name, SYSTEMS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(SYSTEMS)}"
        raise UsageError(f"no system is called {name!r}; {hint}")
    system = SYSTEMS[name].system
    hints = get_type_hints(type(system))
    given = {}
    for pair in pairs:
        key, mark, value = pair.partition("=")
        if not mark or key not in {f.name for f in fields(system)}:
            known = ", ".join(f.name for f in fields(system))
            raise UsageError(
                f"{word!r}: the system {name} has no parameter {key!r}; it has {known}"
            )
        given[key] = _cast(value, hints[key], word)
    made: System = replace(system, **given)
    return made


def ranks(system: System) -> bool:
    """Whether a system can rank, and answer nothing."""
    return bool(getattr(system, "ranks", False))


def parameter(word: str, name: str) -> str:
    """Return a parameter of a system as it is written, or as it is by default."""
    return str(getattr(parse(word), name))


def has_parameter(word: str, name: str) -> bool:
    """Whether a system has a parameter of that name."""
    return name in {f.name for f in fields(parse(word))}  # type: ignore[arg-type]


def _cast(value: str, kind: Any, word: str) -> Any:
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise UsageError(f"{word!r}: choose one of {', '.join(map(str, get_args(kind)))}")
        return value
    if kind is bool:
        if value not in {"true", "false"}:
            raise UsageError(f"{word!r}: {value!r} is not true or false")
        return value == "true"
    if kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            raise UsageError(f"{word!r}: {value!r} is not a number") from None
        if not number >= 0:
            raise UsageError(f"{word!r}: {value} is not 0 or more")
        return number
    return value
