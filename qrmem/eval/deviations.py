"""The deviations of presets from their papers, each with the reason; every report prints them.

One list has all of them: fixed ones, those that depend on the settings of the run, and points that
the papers leave open. A test compares it with the switches of the code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Paper = Literal["QRMeM", "FragRel", "ILM-TR", "Ada-LEval"]


@dataclass(frozen=True, slots=True)
class Deviation:
    """One deviation from a paper.

    Attributes:
        what: description; `{}` is the setting's value in this run.
        why: the reason.
        setting: the setting that it depends on; "" for a fixed deviation.
        value: the setting's value in the paper; another value is reported.
        papers: the papers whose presets it applies to.
    """

    what: str
    why: str
    setting: str = ""
    value: Any = None
    papers: tuple[Paper, ...] = ("QRMeM", "FragRel")


_QRMEM: tuple[Paper, ...] = ("QRMeM",)
_FRAGREL: tuple[Paper, ...] = ("FragRel",)
_ILM_TR: tuple[Paper, ...] = ("ILM-TR",)
_ADA_LEVAL: tuple[Paper, ...] = ("Ada-LEval",)
_ALL: tuple[Paper, ...] = ("QRMeM", "FragRel", "ILM-TR", "Ada-LEval")

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
        papers=_ALL,
    ),
    Deviation(
        "segments of {} tokens; the paper says 600 and no unit",
        "QRMEM_SEGMENT_TOKENS",
        setting="segment_tokens",
        value=600,
        papers=("QRMeM", "ILM-TR"),
    ),
    Deviation(
        "segments are whole sentences, and end with a heading, a page or a passage too; one "
        "sentence in 256 begins a new one where the last is half full",
        "the paper gives a size alone; so an edited text meets its old segments again",
        papers=("QRMeM", "ILM-TR"),
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
        papers=("QRMeM", "FragRel"),
    ),
    Deviation(
        "prompts in our own words, with the papers' steps, inputs and reply forms",
        "the printed ones are not ours to copy: --prompts FOLDER loads them",
        papers=_ALL,
    ),
    Deviation(
        "texts stand between marks that they cannot close, not between triple quotes",
        "a text could end its quotation and give orders",
        papers=("QRMeM", "FragRel", "ILM-TR"),
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
        papers=("QRMeM", "FragRel", "ILM-TR"),
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
    Deviation(
        "embedder {}, not multi-qa-mpnet-base-cos-v1; with none, the table is ranked by TF-IDF and "
        "clusters are formed over latent semantic analysis",
        "the encoder has to lie on this machine: --embedder "
        "sentence-transformers:multi-qa-mpnet-base-cos-v1",
        setting="embedder",
        value="sentence-transformers:multi-qa-mpnet-base-cos-v1",
        papers=_ILM_TR,
    ),
    Deviation(
        "window {}",
        "the paper names none; it bounds what is retrieved beside RAPTOR's 3,500 tokens",
        setting="window",
        papers=_ILM_TR,
    ),
    Deviation(
        "PCA reduces the vectors where umap-learn is not installed; UMAP has a fixed seed, and two "
        "neighbours at least",
        "RAPTOR's own code gives other clusters in every run, and fails on few rows",
        papers=_ILM_TR,
    ),
    Deviation(
        "the mixture's covariance is diagonal and regularised; it has up to 50 clusters of 3 rows "
        "on average; the search for the least BIC ends after 5 counts without a lower one",
        "few or equal rows make RAPTOR's fail, and BIC falls without end where each row is one",
        papers=_ILM_TR,
    ),
    Deviation(
        "a cluster over 3,500 tokens that the mixture finds to be one is divided by two at least, "
        "each row in one of them; equal rows in their order",
        "RAPTOR's own code divides it without end",
        papers=_ILM_TR,
    ),
    Deviation(
        "a tree ends with 11 nodes, or at 5 levels",
        "the paper says where clustering becomes impractical; these are RAPTOR's values",
        papers=_ILM_TR,
    ),
    Deviation(
        "the surprises of a node are one text of the table, with one vector",
        "as Figure 2 has one square for each; the text does not say",
        papers=_ILM_TR,
    ),
    Deviation(
        "a reply without the two labels is asked for once more, at temperature 0.7; then it is the "
        "summary if it is about the text, else sentences of the text are; the report counts them",
        "the paper does not say what it did with them",
        papers=_ILM_TR,
    ),
    Deviation(
        "a query is the question, a line end and the memory; 10 texts and 3,500 tokens are read at "
        "most, and the first text that does not fit ends it",
        "the paper gives no form and no numbers; these are RAPTOR's",
        papers=_ILM_TR,
    ),
    Deviation(
        "the loop ends where 2L/(a+b) of two memories is 0.9, L the longest common subsequence of "
        "their words",
        "the paper names no bound; its own example would have ended early below 0.77",
        papers=_ILM_TR,
    ),
    Deviation(
        "parameters of sampling that appendix A.3 switches off are left out; a server that refuses "
        "one is asked without",
        "they are llama.cpp's, and other servers do not know them",
        papers=_ILM_TR,
    ),
    Deviation(
        "RAPTOR's segments keep their full stops and their order",
        "its own code loses both where a sentence is too long",
        papers=_ILM_TR,
    ),
    Deviation(
        "`raptor-layered` gives each level its share of the 3,500 tokens; no table of the paper "
        "has it",
        "summaries above would leave no room for segments",
        papers=_ILM_TR,
    ),
    Deviation(
        "texts are your own: M-NIAH's are repeated up to the length, BABILong's noise is what "
        "`background=` names, and lengths are counted by the counter above, not GPT-2's",
        "the paper's are not printed",
        papers=_ILM_TR,
    ),
    Deviation(
        "temperature 0; `Prompt (the model's sampling)` sends none",
        "appendix B has 0 for models behind an API, and open models' own defaults",
        papers=_ADA_LEVAL,
    ),
    Deviation(
        "a reply has 1024 tokens; a case that does not fit the model's context counts as wrong",
        "as in the released script; the paper does not say",
        papers=_ADA_LEVAL,
    ),
    Deviation(
        "distractors of a short case of BestAnswer stand in the longer ones of its question, and "
        "40 % are of the question's own tags",
        "the paper does not say of which tags, nor how lengths are related",
        papers=_ADA_LEVAL,
    ),
    Deviation(
        "texts in verse and in letters, headings and notes are found by rules",
        "the paper leaves them out and does not say how",
        papers=_ADA_LEVAL,
    ),
    Deviation(
        "Reflection, FragRel, ILM-TR, RAPTOR, BM25, Full text and Rules stand beside",
        "the paper has prompts and perplexity alone; these are asked by the readers of this "
        "package, with its window",
        papers=_ADA_LEVAL,
    ),
)


def deviations(title: str, config: Mapping[str, Any]) -> Sequence[str]:
    """Return a run's deviations from the paper of a preset, one line each.

    Args:
        title: title of the preset; it begins with the paper's name.
        config: configuration of the run, with its settings.
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
