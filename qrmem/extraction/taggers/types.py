"""What taggers call the types of entities, in our words."""

from collections.abc import Mapping

TYPES: Mapping[str, str] = {
    **dict.fromkeys(("PERSON", "PER"), "PERSON"),
    **dict.fromkeys(("PLACE", "LOCATION", "LOC", "GPE", "FAC"), "PLACE"),
    **dict.fromkeys(("ORGANISATION", "ORGANIZATION", "ORG"), "ORGANISATION"),
    **dict.fromkeys(("DATE", "TIME", "DURATION", "SET"), "DATE"),
    **dict.fromkeys(("NUMBER", "MONEY", "PERCENT", "ORDINAL", "CARDINAL", "QUANTITY"), "NUMBER"),
    **dict.fromkeys(("WORK", "WORK_OF_ART"), "WORK"),
    "EVENT": "EVENT",
}
"""Labels of CoreNLP (CoNLL, SUTime) and of Stanza (OntoNotes, CoNLL); others are no type of ours,
so that such a name can meet any other."""

_FIGURES = frozenset({"DATE", "NUMBER"})


def type_of(label: str, text: str) -> str | None:
    """Return the type of what a tagger labelled; `None` if it is no entity worth keeping.

    "Now", "one" and "the first" are dates and numbers to a tagger, and in every second segment;
    only figures are kept of these.
    """
    kind = TYPES.get(label.upper(), "")
    if kind in _FIGURES and not any(char.isdigit() for char in text):
        return None
    return kind
