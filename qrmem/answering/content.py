"""The words of a question or sentence that carry content, irregular forms brought together."""

from functools import lru_cache

from qrmem.text.words import terms

_IRREGULAR = """
arise arose arisen; bear bore borne; beat beaten; become became; begin began begun; bend bent;
bind bound; bite bit bitten; bleed bled; blow blew blown; break broke broken; breed bred; bring
brought; build built; burn burnt; buy bought; catch caught; choose chose chosen; cling clung; come
came; creep crept; deal dealt; dig dug; draw drew drawn; dream dreamt; drink drank drunk; drive
drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought; find found; flee
fled; fly flew flown; forbid forbade forbidden; forget forgot forgotten; forgive forgave forgiven;
freeze froze frozen; get got gotten; give gave given; go went gone; grow grew grown; hang hung;
hear heard; hide hid hidden; hold held; keep kept; know knew known; lay laid; lead led; lean
leant; leap leapt; learn learnt; leave left; lend lent; light lit; lose lost; make made; mean
meant; meet met; pay paid; ride rode ridden; ring rang rung; rise rose risen; run ran; see saw
seen; seek sought; sell sold; send sent; shake shook shaken; shine shone; shoot shot; show shown;
shrink shrank; sing sang sung; sink sank sunk; sit sat; slay slew slain; sleep slept; slide slid;
speak spoke spoken; spend spent; spin spun; stand stood; steal stole stolen; stick stuck; sting
stung; strike struck stricken; strive strove; swear swore sworn; sweep swept; swim swam swum;
swing swung; take took taken; teach taught; tear tore torn; tell told; think thought; throw threw
thrown; understand understood; wake woke woken; wear wore worn; weave wove woven; weep wept; win
won; wind wound; write wrote written; die died death dead; marry married marriage; weigh weight;
foot feet; man men; woman women; child children; wife wives; life lives; knife knives; tooth
teeth; mouse mice; goose geese; long length; high height; wide width; deep depth; strong strength;
born birth; try trial; arrive arrival; survive survival; refuse refusal; decide decision; invade
invasion; divide division; destroy destruction; describe description; receive reception; believe
belief; lose loss; sell sale; speak speech; sing song; succeed success; fail failure; depart
departure; prove proof; grow growth; defend defence defense; advise advice; enter entrance;
explain explanation; choose choice;
"""


@lru_cache(maxsize=1)
def _bases() -> dict[str, str]:
    """Stem of an irregular form to the stem of its base."""
    found: dict[str, str] = {}
    for line in _IRREGULAR.split(";"):
        stems = terms(line)
        found.update({stem: stems[0] for stem in stems[1:] if stem != stems[0]})
    return found


def content(text: str) -> list[str]:
    """Return the terms of a text with irregular forms as their base ("struck" meets "strike")."""
    bases = _bases()
    return [bases.get(term, term) for term in terms(text)]
