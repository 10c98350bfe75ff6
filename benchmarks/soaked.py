"""Random operations on one memory, against a model of what must be there; see `soak`."""

import asyncio
import json
import random
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

import qrmem
from qrmem.config import Settings

MOST_DOCUMENTS, MOST_TURNS = 150, 80
"""Maximum number of items; beyond it some are deleted, so that steps keep their cost."""
CHECKED = 50
"""Number of operations between comparisons; reopening and a kill compare, too."""
_PARTS = [f"{a}{b}" for a in "bdfgklmnprstvz" for b in "aeiou"]
_KILLED = """
import asyncio, json, sys, qrmem
from qrmem.config import Settings
async def main():
    given = json.load(sys.stdin)
    async with qrmem.open(sys.argv[1], settings=Settings().with_(embedder="none")) as memory:
        print("open", flush=True)
        await memory.add(given, update=True)
asyncio.run(main())
"""


def word(number: int) -> str:
    """Return an invented word that is unique for a number."""
    letters = ""
    for _ in range(4):
        number, place = divmod(number, len(_PARTS))
        letters += _PARTS[place]
    return letters + "q"


class Model:
    """The expected content of the memory, and the operations that change both.

    Attributes:
        documents: id to text.
        signs: id to a word that only this document has.
        turns: what the one user said, in order.
        merged: pairs of names that a user merged, by the id of the document that has both.
        gone: words of texts that are no longer there.
    """

    def __init__(self, where: str, seed: int) -> None:
        self._where = where
        self._draw = random.Random(seed)
        self._memory: qrmem.Memory | None = None
        self._number = 0
        self.documents: dict[str, str] = {}
        self.signs: dict[str, str] = {}
        self.turns: list[str] = []
        self.merged: dict[str, tuple[str, str]] = {}
        self.gone: list[str] = []

    async def steps(self) -> AsyncGenerator[None]:
        """Do one operation after the other, until closed."""
        chosen: Sequence[tuple[int, Callable[[], Coroutine[Any, Any, None]]]] = (
            (200, self._add),
            (60, self._update),
            (60, self._delete),
            (200, self._turn),
            (200, self._ask),
            (200, self._search),
            (30, self._merge),
            (20, self._reopen),
            (4, self._kill),
        )
        weights, operations = zip(*chosen, strict=True)
        self._memory = await self._opened()
        try:
            while True:
                for _ in range(CHECKED):
                    (operation,) = self._draw.choices(operations, weights)
                    await operation()
                    yield
                await self.compare()
        finally:
            await self._memory.close()

    async def compare(self) -> None:
        """Compare everything.

        Raises:
            AssertionError: something is lost, or exists although it should not.
        """
        kept = {
            info.id: info.digest
            for info in await self._open.documents()
            if info.id in self.documents or "turn" not in str(info.metadata)
        }
        wanted = {id: sha256(text.encode()).hexdigest() for id, text in self.documents.items()}
        assert kept == wanted, sorted(kept.items() ^ wanted.items())[:4]
        turns = [turn.text for turn in await self._open.turns(user="ann")]
        assert turns == self.turns, (len(turns), len(self.turns))
        if self.documents:
            status = await self._open.status()
            assert not status.problems, status.problems[:3]
        for first, second in self.merged.values():
            both = [(await self._open.entity(name)).entity.key for name in (first, second)]
            assert both[0] == both[1], (first, second, both)

    @property
    def _open(self) -> qrmem.Memory:
        assert self._memory is not None
        return self._memory

    async def _opened(self) -> qrmem.Memory:
        return await qrmem.open(self._where, settings=Settings().with_(embedder="none"))

    def _text(self) -> tuple[str, str]:
        """Return a new text, and its unique word."""
        self._number += 4
        first, second, place, sign = (word(self._number + n) for n in range(4))
        names = f"{first.title()} Vell", f"{second.title()} Marr"
        return (
            f"{names[0]} met {names[1]} in {place.title()}. They spoke of the {sign}."
            f" {names[1]} left."
        ), sign

    def _known(self) -> str:
        return self._draw.choice(list(self.documents))

    def _put(self, id: str, text: str, sign: str) -> None:
        if id in self.signs:
            self.gone = [*self.gone, self.signs[id]][-100:]
            self.merged.pop(id, None)
        self.documents[id], self.signs[id] = text, sign

    # --- operations ------------------------------------------------------------------------------

    async def _add(self) -> None:
        text, sign = self._text()
        id = f"d{self._number}"
        await self._open.add({"id": id, "text": text})
        self._put(id, text, sign)
        if len(self.documents) > MOST_DOCUMENTS:
            await self._delete()

    async def _update(self) -> None:
        if self.documents:
            id, (text, sign) = self._known(), self._text()
            await self._open.add({"id": id, "text": text}, update=True)
            self._put(id, text, sign)

    async def _delete(self) -> None:
        if self.documents:
            id = self._known()
            await self._open.delete(id)
            self.gone = [*self.gone, self.signs.pop(id)][-100:]
            self.documents.pop(id)
            self.merged.pop(id, None)

    async def _turn(self) -> None:
        if len(self.turns) >= MOST_TURNS:
            assert await self._open.forget_user("ann") == len(self.turns)
            self.turns = []
        text, _ = self._text()
        await self._open.add_turn("user", text, user="ann", session="one")
        self.turns.append(text)

    async def _ask(self) -> None:
        if self.documents:
            id = self._known()
            answer = await self._open.ask(f"Who spoke of the {self.signs[id]}?")
            assert id in {one.document_id for one in answer.citations}, (id, answer)

    async def _search(self) -> None:
        if self.gone and self.documents:
            sign = self._draw.choice(self.gone)
            hits = await self._open.search(f"the {sign}")
            assert not any(sign in hit.text for hit in hits), sign
        if self.documents:
            id = self._known()
            hits = await self._open.search(f"Who spoke of the {self.signs[id]}?", k=3)
            assert id in {hit.document_id for hit in hits}, id

    async def _merge(self) -> None:
        if self.documents and (id := self._known()) not in self.merged:
            words = self.documents[id].split()
            names = " ".join(words[:2]), " ".join(words[3:5])
            await self._open.merge(*names)
            self.merged[id] = names

    async def _reopen(self) -> None:
        await self._open.close()
        self._memory = await self._opened()
        await self.compare()

    async def _kill(self) -> None:
        """Let another process add texts, kill it at a random moment, and add the same texts."""
        given = {}
        for _ in range(20):
            text, sign = self._text()
            given[f"k{self._number % 400}"] = text, sign
        sent = [{"id": id, "text": text} for id, (text, _) in given.items()]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _KILLED, self._where),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(sent).encode())
        process.stdin.close()
        await process.stdout.readline()
        await asyncio.sleep(self._draw.random() * 0.4)
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await self._open.add(sent, update=True)
        for id, (text, sign) in given.items():
            self._put(id, text, sign)
        await self.compare()
        while len(self.documents) > MOST_DOCUMENTS:
            await self._delete()
