"""Blocks of names: keys that group names which may mean the same entity.

A name is in the block of its own words, and in one block for every way in which a text may
shorten it: words left out, given names as initials, an acronym. So a name can be short only for
names in its own block, and resolving a name reads only that block.

A block is a number of 48 bits, computed from its words. A collision does no harm: the names in a
block are judged one by one.
"""

import hashlib
from functools import lru_cache
from itertools import combinations

from qrmem.text.names import split_key
from qrmem.text.names.aliases import MEMO_SIZE, SMALL, core_of, plain_spelling, tells, words_of

_ROMAN = {
    str(n): numeral
    for n, numeral in enumerate("i ii iii iv v vi vii viii ix x xi xii".split(), 1)  # noqa: SIM905
}
_ALL_PARTS = 4
"""Up to so many words, every part of a name has a block; longer names only have their ends."""
_LEFT_OUT = 3
"""Maximum number of words that a short form leaves out."""


@lru_cache(maxsize=MEMO_SIZE)
def own_block(key: str) -> int:
    """Return the block with the names that a name can be short for.

    Args:
        key: see `qrmem.text.names.name_key`; the type is ignored.
    """
    norm = split_key(key)[0]
    return _number(plain_spelling(core_of(norm)) or norm)


@lru_cache(maxsize=MEMO_SIZE)
def blocks_of(key: str) -> frozenset[int]:
    """Return all blocks of a name: its own, and one for each short form."""
    norm, kind = split_key(key)
    words = core_of(norm)
    forms = {plain_spelling(part) for part in _parts(words) if tells(part)}
    if kind in ("", "PERSON") and len(words) > 1:
        forms |= {plain_spelling(form) for form in _initialled(words)}
    if kind != "PERSON":
        forms |= _acronyms(words_of(norm))
    return frozenset({own_block(key), *map(_number, forms)})


def _parts(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the forms with up to three words left out, but never both ends."""
    count = len(words)
    least = max(1, count - _LEFT_OUT)
    if count > _ALL_PARTS:
        ends = range(least, count)
        return [words[:n] for n in ends] + [words[-n:] for n in ends]
    return [
        tuple(words[i] for i in places)
        for size in range(least, count)
        for places in combinations(range(count), size)
        if places[0] == 0 or places[-1] == count - 1
    ]


def _initialled(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return a person's name with initials: J. Whitlow, J. R. Whitlow, John R. Whitlow."""
    first, *middle, last = words
    heads = [word[0] for word in middle]
    forms: list[tuple[str, ...]] = [(first[0], last)]
    if middle:
        forms += [(first[0], *heads, last), (first, *heads, last), (first[0], *middle, last)]
        forms.append((f"{first[0]}{''.join(heads)}", last))
    return [form for form in forms if form != words and len(last) > 1]


def _acronyms(words: tuple[str, ...]) -> set[str]:
    """Return the acronyms of a name of several words, with and without small words."""
    if len(words) < 2:
        return set()
    main = tuple(word for word in words if word not in SMALL)
    heads = ["".join(word if word[0].isdigit() else word[0] for word in w) for w in (words, main)]
    if main and main[-1] in _ROMAN:  # World War II: WW2, WWII
        heads.append("".join(word[0] for word in main[:-1]) + _ROMAN[main[-1]])
    return {letters for letters in heads if len(letters) > 1}


@lru_cache(maxsize=MEMO_SIZE)
def form_block(norm: str) -> int:
    """Return the block of the names for which a chat model gives another form.

    Only names are looked up there; no rule joins the names of such a block.

    Args:
        norm: the form, normalised.
    """
    return _number(f"form|{norm}")


def _number(form: str) -> int:
    digest = hashlib.blake2b(form.encode("utf-8", "surrogatepass"), digest_size=6)
    return int.from_bytes(digest.digest(), "big")
