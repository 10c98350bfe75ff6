"""Names: keys and forms, where they stand in a text, and when one can be an alias of another.

Merging two people is worse than splitting one, so every rule refuses in doubt. An alias means that
a name can refer to another one; `qrmem.graph.resolution`, which has all names of a memory, decides
whether it does.
"""

from qrmem.text.names.aliases import is_alias
from qrmem.text.names.keys import (
    best_form,
    camel_case,
    differ_in_number,
    is_type,
    meant_name,
    name_key,
    spells,
    split_key,
    type_key,
)
from qrmem.text.names.occurrences import Occurrences, occurrences, occurs_in
from qrmem.text.names.words import (
    NameWords,
    forms_of,
    lead_name,
    longest_names,
    plain,
    possible_names,
    title_forms,
    words_of,
)
from qrmem.text.spelling import normalise_name

__all__ = [
    "NameWords",
    "Occurrences",
    "best_form",
    "camel_case",
    "differ_in_number",
    "forms_of",
    "is_alias",
    "is_type",
    "lead_name",
    "longest_names",
    "meant_name",
    "name_key",
    "normalise_name",
    "occurrences",
    "occurs_in",
    "plain",
    "possible_names",
    "spells",
    "split_key",
    "title_forms",
    "type_key",
    "words_of",
]
