"""What a preset does otherwise than its paper, each with the reason: printed beside every table.

One list holds all of it: what is fixed, what the settings of the run decide, and what the papers
leave open. A test compares it with the switches of the code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Paper = Literal["QRMeM", "FragRel"]


@dataclass(frozen=True, slots=True)
class Deviation:
    """One thing that is not as a paper has it.

    Attributes:
        what: in words; `{}` is the value of this run.
        why: the reason.
        setting: that decides it; "" for what is always so.
        value: of the setting in the paper; with another one the deviation is told.
        papers: whose presets it is about.
    """

    what: str
    why: str
    setting: str = ""
    value: Any = None
    papers: tuple[Paper, ...] = ("QRMeM", "FragRel")


_QRMEM: tuple[Paper, ...] = ("QRMeM",)
_FRAGREL: tuple[Paper, ...] = ("FragRel",)

DEVIATIONS = (
    Deviation(
        "entity tagger {}, not CoreNLP",
        "CoreNLP needs Java and its own jars: QRMEM_TAGGER=corenlp",
        setting="tagger",
        value="corenlp",
        papers=_QRMEM,
    ),
    Deviation(
        "embedder {}, not Contriever; with none, edges and segments are scored by BM25",
        "the encoder has to lie on this machine: --embedder contriever",
        setting="embedder",
        value="contriever",
    ),
    Deviation(
        "window {}, not 4,096 tokens",
        "--window, or the context that this table of the paper needs",
        setting="window",
        value=4096,
        papers=_QRMEM,
    ),
    Deviation(
        "tokens counted by {}, not by the model's own tokenizer",
        "another count needs a file of its own: QRMEM_TOKENIZER",
        setting="tokenizer",
        value="",
    ),
    Deviation(
        "segments of {} tokens; the paper says 600 and no unit",
        "QRMEM_SEGMENT_TOKENS",
        setting="segment_tokens",
        value=600,
        papers=_QRMEM,
    ),
    Deviation(
        "segments are whole sentences, and end with a heading, a page or a passage too; one "
        "sentence in 256 begins a new one where the last is half full",
        "the paper gives a size alone; so an edited text meets its old segments again",
        papers=_QRMEM,
    ),
    Deviation(
        "without `paper_exact`: reading and searching have our own changes",
        "--paper-exact turns them off",
        setting="paper_exact",
        value=True,
        papers=_QRMEM,
    ),
    Deviation(
        "names are alike from a cosine of {} on",
        "the paper does not say how names are matched; 0 compares them by rules alone",
        setting="similar_names",
        value=0.0,
        papers=_QRMEM,
    ),
    Deviation(
        "rules say which names are one entity: by spelling, titles and parts of full names, and "
        "equal names of different types stay apart",
        "the paper has a disambiguation and does not say how",
        papers=_QRMEM,
    ),
    Deviation(
        "{} generated questions a segment of 600 tokens, fewer in shorter ones",
        "the paper gives no number",
        setting="questions",
        papers=_QRMEM,
    ),
    Deviation(
        "{} tokens of the window are kept for a reply",
        "the paper gives no number",
        setting="reserve",
    ),
    Deviation(
        "prompts in our own words, with the papers' steps, inputs and reply forms",
        "the printed ones are not ours to copy: --prompts FOLDER loads them",
    ),
    Deviation(
        "texts stand between marks that they cannot close, not between triple quotes",
        "a text could end its quotation and give orders",
    ),
    Deviation(
        "entities, relations and questions are asked for as JSON",
        "the papers give no form for these replies",
        papers=_QRMEM,
    ),
    Deviation(
        "where JSON is asked for, the first of the four retries shows the model its error",
        "it is cheaper than a new reply at temperature 0.7, which the other three have",
    ),
    Deviation(
        "the prompt for entities also shows the question",
        "section 2.1 seeks them according to it; the printed prompt has no place for it",
        papers=_QRMEM,
    ),
    Deviation(
        "an entity that does not stand in its segment is left out",
        "the paper's prompt asks for it; small models do not keep to it",
        papers=_QRMEM,
    ),
    Deviation(
        "a document's summary has 300 tokens at most",
        "the paper sets no bound, and it is in every prompt",
        papers=_QRMEM,
    ),
    Deviation(
        "relations are merged in one call that also asks for the questions Q_s, as printed; those "
        "of several segments one after the other, in the order of their document",
        "the text of the paper generates Q_s first, and merges two; Q_s are kept with the result",
        papers=_QRMEM,
    ),
    Deviation(
        "Algorithm 1 corrected: E begins as E_s and grows, an edge is taken once, its far end is "
        "the node, lines 4 and 7 are one call; trials are bounded, and an answer is forced at the "
        "last one",
        "as printed it never ends and reads what it never sets",
        papers=_QRMEM,
    ),
    Deviation(
        "passages that were read before are not read again, and are no call; the report says how "
        "many questions read nothing else, as what was found first filled the window",
        "the paper does not say what happens where a node brings nothing that fits the window",
        papers=_QRMEM,
    ),
    Deviation(
        "a name in the question that no entity has starts at the nearest one, a question without "
        "a name at the entity nearest to it",
        "the paper does not say where they start",
        papers=_QRMEM,
    ),
    Deviation(
        "[Q;R;E] is cut to 512 tokens: E has at most half of what Q leaves, then R is cut",
        "Contriever reads no more",
        papers=_QRMEM,
    ),
    Deviation(
        "segments are read in the order of the document",
        "the paper does not say in which order they are concatenated",
        papers=_QRMEM,
    ),
    Deviation(
        "where S_imp alone is over the window, its best by likeness to the question are read",
        "the paper only says how S_add is shortened",
        papers=_QRMEM,
    ),
    Deviation(
        "five readings (max_trials), 3 edges a step (width), 3 steps (depth), cosine 0.3 "
        "(threshold; without an embedder the mean of the scores and a standard deviation)",
        "the paper gives no numbers",
        papers=_QRMEM,
    ),
    Deviation(
        "Graph Expansion elaborates the question from 30 relations at most; the result is compared "
        "with all relations of up to 2,000 entities, with those around E in a larger memory; a "
        "segment has the score of its best relation, and up to 0.01 for its own likeness",
        "the paper does not say how relations lead to segments, nor how many the model sees",
        papers=_QRMEM,
    ),
    Deviation(
        "SlidingWindow's five parts end with a sentence or two, and are more where a text does not "
        "fit into five; the text of full-text systems is cut at a word",
        "Table 6 gives a count alone; LongBench cuts at a token",
        papers=_QRMEM,
    ),
    Deviation(
        "where MemWalker or SlidingWindow finds no answer, one is forced from what it read last; "
        "of MemWalker from the summaries on its way, where it read nothing",
        "the paper scores every question, and does not say what an empty reply counts",
        papers=_QRMEM,
    ),
    Deviation(
        "Entity Trial shows the names of the graph with their counts, the most frequent that fit",
        "the paper does not say which names the model sees",
        papers=_QRMEM,
    ),
    Deviation(
        "BM25 has k1 1.5 and b 0.75, over English stems without stop words",
        "the papers name neither values nor words",
    ),
    Deviation(
        "no top_p is sent",
        "the papers sample by top-p and give no value; at temperature 0 it has no say",
        papers=_QRMEM,
    ),
    Deviation(
        "answers are shortened by one more call before exact match and F1; it is counted apart",
        "all systems are scored in one form; the papers do not say how answers were cut",
    ),
    Deviation(
        "temperature 0, not 1.0",
        "1.0 is LongBench's default, which is greedy for open models",
        papers=_FRAGREL,
    ),
    Deviation(
        "chat messages, no completion of a base model, no [INST] around a prompt",
        "servers put their model's own template around messages",
        papers=_FRAGREL,
    ),
    Deviation(
        "a reply has as many tokens as are kept for it: 512 in a chat, 200 in code",
        "the paper gives no numbers; LongBench has 128 for a story",
        papers=_FRAGREL,
    ),
    Deviation(
        "cosines below 0 count as 0 in the semantic relation; over 10,000 fragments 4,096 of "
        "them stand for all",
        "Equation 9 divides by their sum; all pairs would take minutes a question",
        papers=_FRAGREL,
    ),
    Deviation(
        "the code relation leaves out definitions with over 50 calls and names with over 8 "
        "definitions, and paths weaker than 0.025 (`cutoff`)",
        "with them every fragment of a large repository is near every other",
        papers=_FRAGREL,
    ),
)


def deviations(title: str, config: Mapping[str, Any]) -> Sequence[str]:
    """Return what a run does otherwise than the paper of a preset, a line for each.

    Args:
        title: of the preset; it begins with the paper's name.
        config: of the run, with its settings.
    """
    settings = config["settings"]
    return [
        f"- {one.what.format(settings.get(one.setting) or 'none')}: {one.why}"
        for one in DEVIATIONS
        if title.startswith(one.papers) and _holds(one, settings)
    ]


def _holds(one: Deviation, settings: Mapping[str, Any]) -> bool:
    if not one.setting or one.value is None:
        return True
    now = settings.get(one.setting)
    if isinstance(one.value, str):
        return not str(now).startswith(one.value) if one.value else True
    return bool(now != one.value)
