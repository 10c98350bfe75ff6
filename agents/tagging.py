"""Entities of a schema-based tagger, united with the reasoner's."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qrmem.extraction.reply_items import names_of
from qrmem.extraction.rules_tagger import RulesTagger
from qrmem.text.names import normalise_name
from qrmem.types import Contribution, EntityTagger, Loss, Mention


@dataclass(frozen=True, slots=True)
class Tagged:
    """What a tagger found in a segment.

    Attributes:
        tagger: what a contribution records: its name, `!name` where it failed, "" for no tagger.
        losses: why it failed; the built-in rules then found the entities.
    """

    mentions: tuple[Mention, ...] = ()
    tagger: str = ""
    losses: tuple[Loss, ...] = ()


async def tagged(tagger: EntityTagger | None, text: str) -> Tagged:
    """Return a tagger's entities; whatever it raises costs these alone, and the rules step in."""
    if tagger is None:
        return Tagged()
    try:
        return Tagged(tuple(await tagger.tag(text)), tagger.name)
    except Exception as exc:
        why = " ".join(str(exc).split()) or type(exc).__name__
        # No reply of a model was lost: its first try is still the one to repeat, from the cache.
        loss = Loss(f"tagger {tagger.name}: {why}; tagged by the rules", raw="", attempt=-1)
        return Tagged(tuple(await RulesTagger().tag(text)), f"!{tagger.name}", (loss,))


def of_tagger_alone(made: Contribution, mentions: Sequence[Mention]) -> Contribution:
    """Return a reading whose entities are the tagger's alone (ablation of QRMeM, section 3.5).

    The model still says how these are related; what it says of other entities is left out.

    Args:
        mentions: the tagger's, in the segment.
    """
    names = names_of(mentions)

    def of(end: str) -> str:
        return names.get(normalise_name(end), "")

    stated = [replace(s, head=of(s.head), tail=of(s.tail)) for s in made.statements]
    kept = tuple(s for s in stated if s.head and s.tail and s.head != s.tail)
    return replace(made, mentions=(), statements=kept)


def united(contribution: Contribution, found: Tagged) -> Contribution:
    """Add a tagger's entities, and what it failed in, to a contribution.

    A name that both found, under any of its forms, stays the reasoner's: its type wins unless it is
    unknown, its forms are completed.
    """
    mentions = list(contribution.mentions)
    at = {norm: i for i, mention in enumerate(mentions) for norm in _norms(mention)}
    for extra in found.mentions:
        place = at.get(normalise_name(extra.name))
        if place is None:
            place = len(mentions)
            mentions.append(extra)
        else:
            mentions[place] = _joined(mentions[place], extra)
        at |= {norm: place for norm in _norms(extra) if norm not in at}
    return replace(
        contribution,
        mentions=tuple(mentions),
        tagger=found.tagger,
        losses=contribution.losses + found.losses,
    )


def _norms(mention: Mention) -> list[str]:
    return [norm for form in (mention.name, *mention.forms) if (norm := normalise_name(form))]


def _joined(known: Mention, extra: Mention) -> Mention:
    return replace(
        known,
        type=known.type or extra.type,
        forms=tuple(dict.fromkeys((*known.forms, *extra.forms))),
        count=max(known.count, extra.count),
    )
