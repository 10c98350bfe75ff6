"""A memory as large as wanted: that of real passages, and copies of it under other names.

Reading a hundred thousand passages takes the better part of an hour, and a search doesn't see who
read them. The copies keep their sentences and most of their words, and two of three capitalised
words get another ending: such a memory knows more names, and the common ones stand in more of it.
"""

import re
import zlib
from collections import Counter
from collections.abc import Sequence

from qrmem.graphstore import Change, EntityRow, GraphStore, IndexRow, MentionRow, NamespaceInfo
from qrmem.text.names import name_key
from qrmem.text.words import terms
from qrmem.types import Document, Segment

_CAPITALISED = re.compile("[A-Z][a-z]{3,}")
_ENDINGS = ["a", "o", "er", "en", "in", "ow", "ia", "ley", "ton", "sen", "berg", "man"]
_BATCH = 5000


def renamed(text: str, turn: int) -> str:
    """Give two of three capitalised words another ending, the same one all through a turn."""

    def other(match: re.Match[str]) -> str:
        drawn = zlib.crc32(f"{match[0]} {turn}".encode())
        return match[0] + _ENDINGS[drawn // 3 % len(_ENDINGS)] if turn and drawn % 3 else match[0]

    return _CAPITALISED.sub(other, text)


async def fill(store: GraphStore, source: GraphStore, ns: str, size: int) -> None:
    """Fill an empty store with `size` segments, a document each, copied from a memory."""
    await store.create_namespace(ns, NamespaceInfo(ns, "builtin-v1", 600))
    ids = await source.indexed(ns)
    titles = {info.id: info.title for info in await source.documents(ns)}
    surfaces: dict[str, str] = {}
    for row in await source.names(ns):
        surfaces.setdefault(row.entity, row.surface)
    turn = left = 0
    for turn in range(-(-size // len(ids))):
        left = size - turn * len(ids)
        for at in range(0, min(left, len(ids)), _BATCH):
            batch = ids[at : min(at + _BATCH, left)]
            named = await source.entities_in(ns, batch)
            segments = await source.segments(ns, batch)
            pages = [(titles[one.document_id], one) for one in segments]
            mentioned = [[surfaces[key] for key in named[one.id]] for one in segments]
            await _copy(store, ns, turn, pages, mentioned)


async def _copy(
    store: GraphStore,
    ns: str,
    turn: int,
    pages: Sequence[tuple[str, Segment]],
    mentioned: Sequence[Sequence[str]],
) -> None:
    mentions: list[MentionRow] = []
    index: list[IndexRow] = []
    entities: dict[str, str] = {}
    for (title, page), surfaces in zip(pages, mentioned, strict=True):
        name, text = f"{turn}:{page.id}", renamed(page.text, turn)
        segment = Segment(name, name, 0, 0, len(text), text, page.tokens)
        await store.put_documents(ns, [(Document(text, renamed(title, turn), id=name), [segment])])
        counts = Counter(terms(text))
        index.append(IndexRow(segment.id, counts.total(), counts))
        here = {name_key(other, ""): other for one in surfaces if (other := renamed(one, turn))}
        mentions += [MentionRow(segment.id, key, ((one, 1),)) for key, one in here.items()]
        entities |= here
    info = await store.namespace(ns)
    assert info is not None
    change = Change(
        mentions=mentions,
        index=index,
        names={key: key for key in entities},
        entities=[EntityRow(key, one, "") for key, one in entities.items()],
    )
    await store.apply(ns, info.revision, change)
