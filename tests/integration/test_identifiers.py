"""A search for an address, a number or an id finds it as a whole, never within a longer one."""

import pytest

import qrmem
from qrmem.text.identifiers import identifier

SAID = {
    "bob@example.com": (
        [
            "Write to bob@example.com.",
            "mailto:Bob@Example.com?",
            "BOB@EXAMPLE.COM's",
            "(bob@\u200bexample.com)",
        ],
        ["bob@example.com.uk", "a.bob@example.com", "xbob@example.com", "bob@example.org", "bob"],
    ),
    "+44 20 7946 0958": (
        ["Call +44 20 7946 0958!", "Call +44-20-7946-0958, now"],
        ["Call +44 20 7946 09581", "Call +144 20 7946 0958", "Call +44 20 7946"],
    ),
    "https://example.com/a": (
        ["See https://example.com/a.", "<https://example.com/a>"],
        ["https://example.com/ab", "https://example.com/a/b", "https://example.com/a?b=1"],
    ),
    "INV-2024-001": (
        ["Bill INV-2024-001, paid", "bill inv-2024-001"],
        ["INV-2024-0010", "INV-2024-001-B", "X-INV-2024-001", "INV-2024"],
    ),
}


@pytest.mark.parametrize("wanted", SAID)
async def test_an_identifier_is_a_whole_term(wanted: str) -> None:
    whole, other = SAID[wanted]
    async with qrmem.open(":memory:", embedder="none") as memory:
        await memory.add([{"id": f"whole{n}", "text": text} for n, text in enumerate(whole)])
        await memory.add([{"id": f"other{n}", "text": text} for n, text in enumerate(other)])
        hits = await memory.search(wanted, k=100)
        assert sorted(hit.document_id for hit in hits) == [f"whole{n}" for n in range(len(whole))]
        for hit in hits:
            await memory.delete(hit.document_id)
        assert await memory.search(wanted) == []
        assert len(await memory.documents()) == len(other)


@pytest.mark.parametrize(
    "query", ["well-known", "U.S.", "Mary-Ann", "AC/DC", "1851", "Who is Bob?"]
)
def test_other_words_are_no_identifiers(query: str) -> None:
    assert identifier(query) == ""
