"""One list has all deviations from the papers; the tests compare it with the code's switches."""

import re
from argparse import ArgumentParser
from dataclasses import fields
from typing import Any, get_args

from qrmem.agents.strategies.graph_expansion import SHOWN, TIE, WHOLE_GRAPH
from qrmem.agents.strategies.inner_loop import STANDS
from qrmem.agents.tree_building import PAPER
from qrmem.cli.parser import build_parser
from qrmem.config import Settings
from qrmem.eval.preset import Paper, all_deviations, deviations, preset_named, preset_names
from qrmem.eval.running import _SHAPING
from qrmem.eval.systems import adaleval_prompting, code_completion, session_replay
from qrmem.extraction.summaries import RETRY_TEMPERATURE
from qrmem.graph.expansion import QUERY_TOKENS
from qrmem.graph.segmenting import MILESTONE
from qrmem.graphstore.records import K1, B
from qrmem.retrieval.fragments.operators import EXACT, SAMPLE
from qrmem.retrieval.trees.clustering import (
    MOST_CLUSTERS,
    PATIENCE,
    ROWS_EACH,
    ClusterSettings,
)
from qrmem.retrieval.trees.retrieving import TOKENS, TOP
from qrmem.types.options import AskOptions

Json = Any

AS_IN_THE_PAPER = {
    "start": "entities",
    "on_exhausted": "force",
    "reflection": True,
    "navigation": True,
    "paper_exact": True,
}
"""Switches of a search that `paper_exact` has as QRMeM does, or that are its ablations."""
LEFT_OPEN = ("max_trials", "width", "depth", "threshold")
"""Switches of a search for which QRMeM gives no value; the list above names them."""
UNUSED = {
    "strategy": "named by the system",
    "documents": "all of the memory",
    "where": "all of the memory",
    "keep_trail": "the run's folder has it",
    "checkpointer": "a run of evaluation goes on by its items",
    "caps": "those of the settings",
    "orientation": "the memory is built for the question",
    "share_orientation": "one memory, one question",
    "fragments": "FragRel's alone",
    "hits": "of a start by search",
    "nearest": "of the orientation `local`",
    "expansions": "one between two readings",
    "surprise": "of trees alone",
    "as_of": "a memory is asked as it is now",
    "reranker": "off",
    "types": "of what is searched, and no preset names any",
    "segments": "what types narrow a search to",
    "single_types": "of a schema, and no preset has one",
}
"""Switches of a search that have no say with `paper_exact`."""


def test_every_switch_is_as_in_the_paper_or_in_the_list() -> None:
    exact = AskOptions(question="Who?", paper_exact=True)
    named = {*AS_IN_THE_PAPER, *LEFT_OPEN, *UNUSED, "question", "choices", "window"}
    assert {field.name for field in fields(AskOptions)} == named
    for name, value in AS_IN_THE_PAPER.items():
        assert getattr(exact, name) == value, name
    told = " ".join(one.what for one in all_deviations())
    assert all(name in told for name in LEFT_OPEN if name != "max_trials")
    assert f"3 edges a step (width), {exact.depth} steps (depth)" in told
    assert f"cosine {exact.threshold}" in told
    assert f"one sentence in {MILESTONE} " in told
    assert f"cut to {QUERY_TOKENS} tokens" in told
    assert f"from {SHOWN} relations at most" in told
    assert f"of up to {WHOLE_GRAPH:,} entities" in told
    assert f"up to {TIE} for its own" in told
    assert f"over {EXACT:,} fragments {SAMPLE:,} of" in told
    assert f"k1 {K1} and b {B}" in told
    assert f"{session_replay.REPLY} in a chat, {code_completion.REPLY} in code" in told
    settings = {one.setting for one in all_deviations()}
    assert set(_SHAPING) - {"model", "base_url"} <= settings
    assert all(one.why for one in all_deviations())


def test_what_ilm_tr_and_ada_leval_leave_open_is_in_the_list_with_the_code_s_values() -> None:
    told = {"ILM-TR": told_of("ilm-tr-figure-3"), "Ada-LEval": told_of("ada-leval-tsort")}
    values = ClusterSettings()
    wanted = {
        "ILM-TR": [
            f"up to {MOST_CLUSTERS} clusters of {ROWS_EACH} rows",
            f"after {PATIENCE} counts",
            f"over {values.tokens:,} tokens",
            f"with {values.few} nodes, or at {PAPER.levels} levels",
            f"{TOP} texts and {TOKENS:,} tokens",
            f"two memories is {STANDS},",
            f"temperature {RETRY_TEMPERATURE}",
            "one text of the table",
            "tokens counted by",
        ],
        "Ada-LEval": [
            f"{adaleval_prompting.REPLY} tokens",
            "the model's sampling",
            "tokens counted by",
        ],
    }
    for paper, words in wanted.items():
        assert [word for word in words if word not in told[paper]] == []
    assert "Contriever" not in told["ILM-TR"] + told["Ada-LEval"]
    assert "CoreNLP" not in told["ILM-TR"] + told["Ada-LEval"]
    presets = [preset_named(name) for name in preset_names()]
    of_papers = [preset for preset in presets if preset.title.startswith(get_args(Paper))]
    assert all(deviations(preset, {"settings": {}}) for preset in of_papers)


def test_a_table_lists_what_touches_its_systems() -> None:
    presets = [preset_named(name) for name in preset_names()]
    has = {word.partition(":")[0] for preset in presets for word in preset.systems.values()}
    has |= {part.task for preset in presets for part in preset.parts}
    assert all(has >= {*one.touches} for one in all_deviations())
    told = {name: told_of(name) for name in ("figure-5", "table-1", "table-2", "table-6")}
    tables = {
        "Entity Trial": {"table-1"},
        "Contriever": {"table-1", "table-2", "table-6"},
        "Graph Expansion": {"table-1"},
        "SlidingWindow's": {"table-6"},
        "MemWalker's tree": {"table-1", "table-6"},
        "is cut at a word": {"table-1", "figure-5"},
        "tokens counted by": {*told},
    }
    for words, names in tables.items():
        assert {name for name, lines in told.items() if words in lines} == names, words
    retries = "an empty or unreadable reply"
    assert all(retries in told_of(f"fragrel-table-{n}") for n in (1, 2, 3, 4))
    assert retries not in told["table-1"], "QRMeM's own retries"
    assert "shortens answers" not in told_of("fragrel-table-1"), "code is compared unchanged"
    ada = {name: told_of(f"ada-leval-{name}") for name in ("tsort", "embeddings", "truncation")}
    assert [name for name, lines in ada.items() if "distractors" in lines] == [
        "embeddings",
        "truncation",
    ]
    assert [name for name, lines in ada.items() if "are added" in lines] == ["tsort", "truncation"]


def told_of(name: str) -> str:
    """Return the list of a preset, with no setting as in its paper."""
    return " ".join(deviations(preset_named(name), {"settings": {}}))


def test_a_setting_as_in_the_paper_is_no_deviation() -> None:
    ours: dict[str, Json] = {"tagger": "rules", "embedder": "none", "window": 1000}
    ours |= {"segment_tokens": 100, "paper_exact": False, "similar_names": 0.9}
    theirs = {"tagger": "corenlp:http://x", "embedder": "contriever", "window": 4096}
    theirs |= {"segment_tokens": 600, "paper_exact": True, "similar_names": 0.0}
    more, fewer = (deviations(preset_named("table-2"), {"settings": s}) for s in (ours, theirs))
    assert len(more) - len(fewer) == len(ours)
    assert any("entity tagger rules, not CoreNLP" in line for line in more)
    of_fragrel = deviations(preset_named("fragrel-table-4"), {"settings": ours})
    assert any("temperature 0, not 1.0" in line for line in of_fragrel)
    assert any("no completion of a base model" in line for line in of_fragrel)
    assert not any("Algorithm 1" in line for line in of_fragrel)


def test_advised_options_are_accepted_by_a_run() -> None:
    advised = {
        word for one in all_deviations() for word in re.findall(r"--[a-z-]+|QRMEM_\w+", one.why)
    }
    settings = {f"QRMEM_{field.name.upper()}" for field in fields(Settings)}
    assert advised, "there is advice"
    assert advised <= settings | _options(build_parser(), "eval", "run")


def _options(parser: ArgumentParser, *command: str) -> set[str]:
    for name in command:
        (commands,) = (a.choices for a in parser._actions if isinstance(a.choices, dict))
        parser = commands[name]
    return {option for action in parser._actions for option in action.option_strings}
