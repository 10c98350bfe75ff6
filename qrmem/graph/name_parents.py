"""Finds the name that a name is short for, from the names of its block (QRMeM, section 2.1).

`qrmem.graph.resolution` has the rules, and makes entities from these parents.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

from qrmem.graph.name_people import (
    WIFE,
    NameUse,
    by_fullness,
    family_of,
    fullness,
    is_daughter,
    is_given_name,
    is_of_another_given,
    is_of_family,
    is_of_husband,
    is_of_type,
    is_of_wife,
    is_person,
    is_titled_woman,
    is_wife,
    men_of,
    plain_words,
    ranks_of,
    speak_of_two,
    titles_of,
    types_agree,
)
from qrmem.text.aliases import (
    BEFORE_GIVEN,
    COURTESY,
    NOBLE,
    RANKS,
    core_of,
    is_alias,
    sex,
    titled,
    titles_clash,
)
from qrmem.text.blocks import own_block
from qrmem.text.names import differ_in_number, split_key

MOST = 32
"""Maximum number of names in a block; a larger block decides nothing."""
NUMERIC = frozenset(
    "DATE TIME DURATION SET NUMBER ORDINAL CARDINAL QUANTITY PERCENT MONEY".split()  # noqa: SIM905
)
"""Types whose names match only if they are equal."""
_OCCASIONAL = RANKS | NOBLE | {"mr", "monsieur", "miss", "master", "comrade", "brother"}
"""Titles that some speakers give to a person who usually goes without."""
_FORMAL = frozenset(("mr", "master", "hon", "monsieur"))
"""Titles that servants, and a polite author, put before a given name."""
_FAR_MORE = 4
"""A surname refers to the person who is named this many times as often as all others with it."""
_ENOUGH = 5
"""Least number of occurrences of the two names for such a comparison."""
_OFTEN = 3
"""Occurrences of a title with a full name from which on the given name tells two people apart."""
_RARELY = 8
"""A name with such a title is this many times rarer than the name alone."""
_SELDOM = 20
"""A name this many times rarer than another is ignored as its alternative."""


class Judge:
    """Finds the parents of names from their spellings and counts."""

    def __init__(self, uses: Mapping[str, NameUse]) -> None:
        """Take names.

        Args:
            uses: by key; names may be added to it while the judge is used.
        """
        self._uses = uses

    def parent(self, key: str, block: Sequence[str] | None, equal: Sequence[str]) -> str:
        """Return the name that a name joins, or "".

        Args:
            block: the names of its own block; `None` if there are too many.
            equal: equal names with other types.
        """
        kind = split_key(key)[1]
        typed = [other for other in equal if other != key and split_key(other)[1]]
        if not kind and typed:
            return typed[0] if len(typed) == 1 else ""
        if not block or list(block) == [key] or kind in NUMERIC:
            return ""
        return _Case(self._uses, key, block).parent()


class _Case:
    """A name whose parent is wanted, and the names of its block."""

    def __init__(self, uses: Mapping[str, NameUse], key: str, block: Sequence[str]) -> None:
        self._uses = uses
        self._key = key
        self._norm, self._kind = split_key(key)
        self._titles, self._words = titled(self._norm)
        self._block = block

    def parent(self) -> str:
        """Return the name that the name joins, or ""."""
        if spelled := self._spelled_out():
            return spelled
        if self._is_told_apart(self._key, self._block):
            return ""
        return self._fuller() or self._usual() or self._of_another_rank()

    def _spelled_out(self) -> str:
        """Return the same name with a title spelled out, Doctor for Dr., or ""."""
        own, name = fullness(self._norm), (self._titles, self._words)
        same = [n for n in self._block if titled(split_key(n)[0]) == name]
        same = [n for n in same if fullness(split_key(n)[0]) > own and types_agree(n, self._key)]
        return max(same, key=by_fullness, default="")

    def _fuller(self) -> str:
        """Return the fuller name that the name is short for, or ""."""
        fitting = self._fitting()
        block = self._without_rare_names(self._block, fitting)
        block = self._without_rare_titles(block, [n for n in fitting if n in block])
        fitting = [other for other in fitting if other in block]
        kind = self._kind
        fitting = [n for n in fitting if self._has_rank_of(n)] or fitting
        of_type = [other for other in fitting if kind and is_of_type(other, kind, self._norm)]
        return self._parent_of(of_type or fitting, block)

    def _fitting(self) -> list[str]:
        """Return the fuller names that the name may stand for."""
        own = fullness(self._norm)
        fuller = [other for other in self._block if fullness(split_key(other)[0]) > own]
        return [other for other in fuller if self._may_stand_for(other)]

    def _has_rank_of(self, other: str) -> bool:
        """Whether a full name has the name's rank: Captain Jacot is Captain Armand Jacot."""
        norm = split_key(other)[0]
        return len(core_of(norm)) > 1 and bool(ranks_of(self._norm) & ranks_of(norm))

    def _usual(self) -> str:
        """Return the bare name of a person whom the name gives a title that is rare, or "".

        Where Emma is Emma throughout, Miss Emma is Emma, and General Kutuzov is Kutuzov. Who has a
        rank may be a relative, though, if the text knows a family of the surname.
        """
        titles, words = self._titles, self._words
        if not titles or not words or not (_OCCASIONAL | _FORMAL).issuperset(titles):
            return ""
        if is_of_family(words, self._block):
            return ""
        if sex(titles, ()) == "f" and sex((), (words[0], "")) != "f":
            return ""
        bare = " ".join(words)
        keys = [key for key in self._block if split_key(key)[0] == bare]
        count = self._count(bare)
        if not keys or any(split_key(key)[1] not in ("", "PERSON") for key in keys):
            return ""
        is_first = _FORMAL.issuperset(titles) and self._is_first_name()
        if not is_first and self._count(self._norm) * _RARELY > count:
            return ""
        return max(keys, key=lambda key: (self._uses[key].count, key))

    def _of_another_rank(self) -> str:
        """Return the usual title and surname of a man whom the name gives a rare rank, or "".

        Captain Weston is Mr. Weston, and Captain Croft is Admiral Croft, where the text knows no
        man of the surname by a given name.
        """
        if len(self._words) != 1 or not RANKS.intersection(self._titles):
            return ""
        full, by_title = men_of(self._words[0], self._block)
        counts = {name: self._uses[name].count for name in by_title if name != self._key}
        usual = max(counts, key=lambda name: (counts[name], name), default="")
        most = counts.get(usual, 0)
        if not usual or any(not self._is_by_chance(name, most) for name in full):
            return ""
        is_clear = most >= _FAR_MORE * (sum(counts.values()) - most)
        return usual if is_clear and most >= _RARELY * self._uses[self._key].count else ""

    def _is_first_name(self) -> bool:
        """Whether full names begin with the name, and none ends with it: Edgar, in Mr. Edgar."""
        names = [split_key(name)[0] for name in self._block]
        cores = [core_of(name) for name in names if not WIFE.intersection(titles_of(name))]
        full = [core for core in cores if len(core) > 1]
        return bool(full) and all(core[:1] == core_of(self._norm) for core in full)

    def _without_rare_names(self, block: Sequence[str], fitting: Sequence[str]) -> Sequence[str]:
        """Return a block without fuller names that are too rare to be meant by a common name.

        Where John is named often, and John Thorpe sometimes, one John Murray is no other John.
        """
        own, count = own_block(self._key), self._count(self._norm)
        if count < _SELDOM:
            return block
        counts = {n: self._count(split_key(n)[0]) for n in block}
        most = max((counts[n] for n in fitting if own_block(n) != own), default=0)
        if most < _FAR_MORE:
            return block
        return [
            n
            for n in block
            if own_block(n) == own or counts[n] * _FAR_MORE > most or counts[n] * _SELDOM > count
        ]

    def _without_rare_titles(self, block: Sequence[str], fitting: Sequence[str]) -> Sequence[str]:
        """Return a block without titles before a given name that is nearly always bare.

        Where Edmund Bertram is Edmund throughout, a Sir Edmund in jest is no other Edmund.
        """
        has_surname = any(len(core_of(split_key(name)[0])) > 1 for name in fitting)
        if " " in self._norm or not has_surname:
            return block
        own, is_first = own_block(self._key), self._is_first_name()
        return [n for n in block if own_block(n) != own or not self._is_extra(n, is_first)]

    def _is_extra(self, other: str, is_first: bool) -> bool:
        """Whether the name after a title is the name alone: Mr. Edgar, or a rare Sir Edmund."""
        titles = titles_of(split_key(other)[0])
        if titles and is_first and _FORMAL.issuperset(titles):
            return True
        is_rare = self._uses[other].count * _RARELY <= self._count(self._norm)
        return is_rare and bool((BEFORE_GIVEN | NOBLE).intersection(titles))

    def _parent_of(self, fitting: Sequence[str], block: Sequence[str]) -> str:
        """Return which of some fuller names a name is short for, or ""."""
        ranked = sorted(fitting, key=by_fullness, reverse=True)
        if not ranked or self._is_contested(ranked[0], block):
            return ""
        others = dict.fromkeys([*ranked[1:], *self._rivals(block)])
        if all(self._leads(other, ranked) for other in others if other != ranked[0]):
            return ranked[0]
        return self._most_named(ranked, list(others))

    def _weight(self, name: str, names: Sequence[str]) -> int:
        """Return how often a name is used, with those of some names that are short for it."""
        return sum(self._uses[n].count for n in names if n == name or self._leads(n, [name]))

    def _leads(self, other: str, ranked: Sequence[str]) -> bool:
        """Whether a name is itself short for one of some names, so that it is no second meaning."""
        norm, kind = split_key(other)
        for fuller in ranked:
            if fuller == other:
                continue
            if not kind and split_key(fuller)[0] == norm:
                return True
            if self._is_short_for(other, fuller):
                return True
        return False

    def _most_named(self, ranked: Sequence[str], others: Sequence[str]) -> str:
        """Return the one person of a surname who is named far more often than all others, or "".

        A bare surname does not mean those who are called by title and surname, if they are fewer:
        beside Mr. Darcy, Darcy is not Miss Darcy. Nor does it mean Mrs. John Knightley.
        """
        words = plain_words(self._norm)
        if not any(is_person(*split_key(n)) for n in ranked):
            return ""
        names_meant = [
            name
            for name in dict.fromkeys([*ranked, *others])
            if plain_words(split_key(name)[0])[-len(words) :] == words
        ]
        fullest = [name for name in names_meant if not self._leads(name, names_meant)]
        if not self._titles:
            fullest = [name for name in fullest if not is_titled_woman(name, words)] or fullest
            names_meant = [n for n in names_meant if not is_titled_woman(n, words)] or names_meant
        weights = {name: self._weight(name, names_meant) for name in fullest}
        if not weights:
            return ""
        best = max(weights, key=lambda name: (weights[name], by_fullness(name)))
        rest = sum(
            self._uses[other].count
            for other in {*names_meant, *others}
            if other != best
            and not self._leads(other, [best])
            and not self._is_never_meant(other, best, weights[best])
        )
        evidence = weights[best] + self._uses[self._key].count
        is_clear = evidence >= _ENOUGH and weights[best] >= _FAR_MORE * rest
        return best if is_clear and best in ranked else ""

    def _is_never_meant(self, other: str, best: str, weight: int) -> bool:
        """Whether a bare surname cannot mean somebody, as a man is named who has it, too."""
        words = plain_words(self._norm)
        titles = titles_of(split_key(other)[0])
        if self._titles or sex(*titled(split_key(best)[0])) == "f" or not titles:
            return False
        if sex(titles, ()) == "f":
            return True
        if titles_clash(titles_of(split_key(best)[0]), titles):
            return False
        return plain_words(split_key(other)[0]) == words and self._uses[other].count < weight

    def _may_stand_for(self, other: str) -> bool:
        """Whether the name is short for another, and no title of the other speaks against it.

        Miss de Bourgh is not Catherine de Bourgh where a text speaks of Lady Catherine de Bourgh,
        and Catherine alone is not Lady Catherine. Nobody with a rank goes by a diminutive.
        """
        if not self._is_short_for(self._key, other):
            return False
        norm, titles, block = self._norm, self._titles, self._block
        fuller = split_key(other)[0]
        if is_of_husband(other) and not WIFE.intersection(titles):
            return False
        if self._is_run_on(other) or is_of_wife(norm, fuller):
            return False
        if is_daughter(norm, fuller) or self._is_elder(other):
            return False
        alike = [n for n in block if own_block(n) == own_block(other) and not is_of_husband(n)]
        alike = [other] if is_of_husband(other) else alike
        ranks = [titles_of(split_key(n)[0]) for n in alike]
        if len(norm.split()) == 1 and any("lady" in rank for rank in ranks):
            return False
        is_his = len(core_of(fuller)) > 1 and any(set(titles) & set(rank) for rank in ranks)
        if titles and not is_his and any(speak_of_two(titles, rank) for rank in ranks if rank):
            return False
        if "mrs" in titles and not any("mrs" in rank for rank in ranks) and is_wife(norm, block):
            return False
        given, rank = core_of(norm), (BEFORE_GIVEN - COURTESY).intersection(titles)
        is_given = core_of(fuller)[: len(given)] == given or bool(sex((), (*given, "")))
        if rank and is_given and not any(rank.intersection(others) for others in ranks):
            return False  # Prince Harry is no Harry Styles: nobody calls him Prince Harry Styles.
        is_short_form = self._words != core_of(norm)
        if self._words[:1] == titled(fuller)[1][:1]:
            return True
        return not is_short_form or not any(ranks_of(split_key(name)[0]) for name in alike)

    def _is_elder(self, other: str) -> bool:
        """Whether a title and surname mean an elder of somebody who goes by a given name.

        Professor Maxon is not Virginia Maxon, whom the text calls Virginia more often than it says
        Professor Maxon, and never Professor Virginia Maxon.
        """
        titles, words = self._titles, titled(split_key(other)[0])[1]
        if not titles or "master" in titles or sex(titles, ()) == "f" or len(words) < 2:
            return False
        if self._words != words[-len(self._words) :] or not is_given_name(words[0]):
            return False
        alike = [n for n in self._block if own_block(n) == own_block(other)]
        if any(titles_of(split_key(n)[0]) == titles for n in alike):
            return False
        return self._count(self._norm) < self._count(words[0])

    def _is_run_on(self, other: str) -> bool:
        """Whether a given name closes a longer name as no surname: dearest Jane, (on) Earth Asa.

        Such a name is known, or begins full names beside which the longer name is rare.
        """
        given, (titles, words) = self._words, titled(split_key(other)[0])
        if titles or len(given) != 1 or len(words) < 2 or words[-1:] != given or len(words[0]) < 2:
            return False
        if not sex((), words) and is_given_name(given[0]):
            return True
        count = self._uses[other].count
        is_name = len(words) == 2 and bool(sex((), words))
        if is_name or count * _SELDOM > self._count(self._norm):
            return False
        full = [n for n in self._block if titled(split_key(n)[0])[1][:-1][:1] == given]
        return sum(self._uses[n].count for n in full) > count

    def _is_told_apart(self, key: str, others: Sequence[str]) -> bool:
        """Whether a title and surname mean somebody else than one of some full names with it.

        A text that often says Mr. (or Mrs.) John Knightley beside Mr. Knightley speaks of his
        brother, if anybody else may be meant by Mr. Knightley: he has a wife, too, or a second
        full name. Mr. Wilson is Mr. Jabez Wilson if no other Wilson is there.
        """
        norm = split_key(key)[0]
        titles, words = titled(norm)
        if not titles or len(words) != 1:
            return False
        before, count = norm.removesuffix(words[0]), self._uses[key].count
        is_husband = sex(titles, ()) != "f" and self._count(f"mrs {words[0]}") > count
        for full in (titled(split_key(other)[0])[1] for other in others):
            if full[1:][-1:] == words:
                of_two = max(self._count(f"{title}{' '.join(full)}") for title in (before, "mrs "))
                is_often = of_two >= (1 if is_husband else _OFTEN)
                if is_often and self._may_be_another(titles, full, count):
                    return True
        return False

    def _may_be_another(self, titles: tuple[str, ...], full: tuple[str, ...], count: int) -> bool:
        """Whether a surname after a title may mean somebody else than a person of a full name."""
        is_woman = sex(titles, ()) == "f"
        others = (name for name in self._block if not self._is_by_chance(name, count))
        for other_titles, words in (titled(split_key(other)[0]) for other in others):
            if words[-1:] != full[-1:] or words[-len(full) :] == full:
                continue
            other_sex = sex(other_titles, words)
            if len(words) == 1:
                if not is_woman and WIFE.intersection(other_titles):
                    return True
            elif not other_sex or (other_sex == "f") == is_woman:
                return True
        return False

    def _is_by_chance(self, name: str, count: int) -> bool:
        """Whether a name is rare and tells no person: Hitherto Turnbull."""
        titles, words = titled(split_key(name)[0])
        return self._uses[name].count * _SELDOM <= count and not titles and not sex((), words)

    def _has_wife(self, norm: str) -> bool:
        """Whether a title of either sex is a man's: beside Captain Harville there is his Mrs."""
        titles, words = titled(norm)
        return bool(titles) and not sex(titles, ()) and self._count(f"mrs {' '.join(words)}") > 0

    def _count(self, norm: str) -> int:
        uses = self._uses.get(f"{norm}|"), self._uses.get(f"{norm}|PERSON")
        return sum(use.count for use in uses if use)

    def _is_short_for(self, key: str, other: str) -> bool:
        (norm, kind), (fuller, other_kind) = split_key(key), split_key(other)
        if kind in NUMERIC or other_kind in NUMERIC or (kind and other_kind and kind != other_kind):
            return False
        if fullness(fuller) <= fullness(norm) or self._is_told_apart(key, [other]):
            return False
        if is_of_another_given(norm, fuller):
            return False
        if self._has_wife(norm) and sex((), core_of(fuller)) == "f":
            return False
        if self._display(key).islower() and not self._display(other).islower():
            return False
        few, many = plain_words(norm), plain_words(fuller)
        if all(word.isdigit() for word in few):
            return False
        is_acronym = len(few) == 1 and few[0] not in many
        if not is_acronym and len(few) != len(many) and not self._may_be_part(key, other):
            return False
        return is_alias(self._display(key), self._display(other)) and not differ_in_number(
            norm, fuller
        )

    def _may_be_part(self, key: str, other: str) -> bool:
        """Whether a name with fewer words may mean the fuller one.

        That is how texts speak of people; of other things it often names another (Wyoming, Wyoming
        State Senate), unless the types agree and the fuller name begins with it.
        """
        (norm, kind), (fuller, other_kind) = split_key(key), split_key(other)
        if self._display(other).islower():
            return False
        if is_person(norm, kind) or is_person(fuller, other_kind):
            return True
        return bool(kind) and kind == other_kind and fuller.startswith(f"{norm} ")

    def _rivals(self, block: Sequence[str]) -> list[str]:
        """Return people whose names begin or end with a name's words.

        Such a person may be meant even where the rules for aliases have doubts: Mary could be Mary
        King. A name with a title has no rivals, as the title identifies the person; but a rank
        alone does not tell who of a family has it. Thomas is no second meaning of Tom.
        """
        norm, key = self._norm, self._key
        words, own_fullness = plain_words(norm), fullness(norm)
        if self._titles:
            return [] if sex(self._titles, ()) else family_of(norm, block)
        is_short_form = self._words != core_of(norm)
        rivals = []
        for other in block:
            fuller, kind = split_key(other)
            if is_of_husband(other) or self._is_run_on(other):
                continue
            if is_short_form and (ranks_of(fuller) or own_block(other) == own_block(key)):
                continue
            if kind == "PERSON" and fullness(fuller) > own_fullness:
                many = plain_words(fuller)
                if words in (many[: len(words)], many[-len(words) :]):
                    rivals.append(other)
        return rivals

    def _is_contested(self, target: str, block: Sequence[str]) -> bool:
        """Whether names equal in their words, but not in what they are, claim one fuller name.

        Two known types may fit one name without a type (Lincoln, the person and the place), and
        titles of two people one name without a title (Mr and Miss Darcy: Fitzwilliam Darcy).
        """
        block_of_key = own_block(self._key)
        alike = [k for k in block if own_block(k) == block_of_key and self._is_short_for(k, target)]
        most = self._uses[self._key].count
        alike = [
            k
            for k in alike
            if self._uses[k].count * _SELDOM >= most or "miss" in titles_of(split_key(k)[0])
        ]
        kinds = {split_key(other)[1] for other in alike} - {""}
        if self._kind and not split_key(target)[1] and len(kinds) > 1:
            return True
        titles = {titles_of(split_key(other)[0]) for other in alike}
        if "miss" in self._titles:  # A wife is rarely named in full: such a name is the Miss's.
            titles = {one for one in titles if not WIFE.intersection(one)}
        of_two = any(speak_of_two(a, b) for a, b in combinations(sorted(titles), 2))
        return of_two and bool(self._titles)

    def _display(self, key: str) -> str:
        return self._uses[key].display
