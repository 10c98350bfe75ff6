"""Entities of a schema-based tagger, united with the reasoner's (Q05)."""

from collections.abc import Sequence
from dataclasses import replace

from qrmem.ports import EntityTagger
from qrmem.records import Contribution, Mention
from qrmem.text.names import normalise_name


async def tagged(tagger: EntityTagger | None, text: str) -> tuple[tuple[Mention, ...], str]:
    """Return a tagger's entities, and what a contribution records of it.

    Whatever a tagger raises costs its entities only; `!name` then marks that they are missing.
    """
    if tagger is None:
        return (), ""
    try:
        return tuple(await tagger.tag(text)), tagger.name
    except Exception:
        return (), f"!{tagger.name}"


def united(contribution: Contribution, found: Sequence[Mention], tagger: str) -> Contribution:
    """Add a tagger's entities to a contribution.

    A name that both found, under any of its forms, stays the reasoner's: its type wins unless it is
    unknown, its forms are completed.
    """
    mentions = list(contribution.mentions)
    at = {norm: i for i, mention in enumerate(mentions) for norm in _norms(mention)}
    for extra in found:
        place = at.get(normalise_name(extra.name))
        if place is None:
            place = len(mentions)
            mentions.append(extra)
        else:
            mentions[place] = _joined(mentions[place], extra)
        at |= {norm: place for norm in _norms(extra) if norm not in at}
    return replace(contribution, mentions=tuple(mentions), tagger=tagger)


def _norms(mention: Mention) -> list[str]:
    return [norm for form in (mention.name, *mention.forms) if (norm := normalise_name(form))]


def _joined(known: Mention, extra: Mention) -> Mention:
    return replace(
        known,
        type=known.type or extra.type,
        forms=tuple(dict.fromkeys((*known.forms, *extra.forms))),
        count=max(known.count, extra.count),
    )
