"""What an `add` of many documents keeps where something happens in the middle of it."""

from collections.abc import AsyncIterator, Iterator

import pytest

import qrmem
from qrmem import Document


def letter(n: int) -> Document:
    return Document(f"Tobias Hale wrote letter {n} to Ellen Ward of Skarrow.", id=f"letter{n}")


async def test_what_a_source_gave_before_it_broke_is_kept() -> None:
    def letters() -> Iterator[Document]:
        yield from map(letter, range(3))
        raise ConnectionError("the mailbox is gone")

    async with qrmem.open("memory://") as memory:
        with pytest.raises(ConnectionError, match="mailbox"):
            await memory.add(letters())
        again = await memory.add([letter(n) for n in range(5)])
        assert again.resumed == ("letter0", "letter1", "letter2")
        assert again.added == ("letter3", "letter4")
        assert again.states == {"ok": 5}


@pytest.mark.parametrize("update", [False, True])
async def test_a_document_that_is_deleted_while_others_are_added_is_added_anew(
    update: bool,
) -> None:
    async with qrmem.open("memory://") as memory:
        await memory.add([letter(n) for n in range(4)])

        async def letters() -> AsyncIterator[Document]:
            yield letter(4)
            await memory.delete("letter2")
            for n in range(4):
                yield letter(n)

        report = await memory.add(letters(), update=update)
        assert report.added == ("letter4", "letter2")
        assert report.unchanged == ("letter0", "letter1", "letter3")
        assert report.states == {"ok": 5}
