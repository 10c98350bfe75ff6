"""Plans against the truth: what the test server counted for the run that was planned."""

import json
from pathlib import Path
from typing import Any

import pytest
from contract.reference import ReferenceStore
from servers.courses import SERVERS
from servers.openai_server import OpenAIServer, Stats, serving

import qrmem
from qrmem.cli.costing import plan_lines
from qrmem.config import Settings
from qrmem.errors import NotFound, UsageError
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.graphstore.reads import cached_value
from qrmem.memory.dry_run import dry_store
from qrmem.memory.plan import worth_of_workers
from qrmem.types.usage import Plan

FOLDER = Path(qrmem.__file__).parent / "sample"
SAMPLE = FOLDER / "harbour.md"
QUESTIONS = [
    found["text"] for found in json.loads((FOLDER / "questions.json").read_text())["questions"]
]
CHAPTERS = SAMPLE.read_text().split("## ")


SEVERAL = {"shared_tokens": 600, "questions": 5}
"""Settings with a call for each long segment, and a second one for its questions."""


def opened(server: OpenAIServer, **settings: Any) -> Any:
    given: dict[str, Any] = {"model": "gpt-4o-mini", "base_url": server.url, "embedder": "none"}
    return qrmem.open("memory://", **given | settings)


def spent(stats: Stats) -> int:
    return stats.tokens_in + stats.tokens_out


def assert_true(plan: Plan, tokens: int, calls: int, within: float = 0.3) -> None:
    assert tokens in plan.tokens
    assert calls in plan.calls
    assert abs(plan.tokens.likely - tokens) <= within * tokens


@pytest.mark.parametrize("mode", ["compact", "paper"])
async def test_a_plan_of_an_add_holds_the_truth(mode: str) -> None:
    async with serving() as server, opened(server, mode=mode) as memory:
        plan = await memory.plan(SAMPLE)
        assert server.stats.requests == 0
        assert (await memory.namespaces()) == []
        report = await memory.add(SAMPLE)
        assert plan.segments == report.states["ok"]
        assert_true(plan, spent(server.stats), server.stats.answered)
        assert server.stats.tokens_in in plan.tokens_in
        assert server.stats.tokens_out in plan.tokens_out
        assert {stage.stage for stage in plan.stages} == set(report.usage.construction)
        money = sum(stage.cost or 0.0 for stage in report.usage.construction.values())
        assert plan.cost is not None
        assert money in plan.cost
        nothing = await memory.plan(SAMPLE)
        assert (nothing.segments, nothing.stages) == (0, ())


@pytest.mark.parametrize("mode", ["compact", "paper"])
async def test_a_large_text_is_represented_by_a_part_of_it(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qrmem.memory.plan.SAMPLE", 5_000)
    async with serving() as server, opened(server, mode=mode) as memory:
        plan = await memory.plan(SAMPLE)
        assert plan.sampled < plan.segments // 2
        report = await memory.add(SAMPLE)
        assert plan.segments == report.states["ok"]
        assert_true(plan, spent(server.stats), server.stats.answered)


@pytest.mark.parametrize("calls", [10, 24])
async def test_the_plan_of_a_stopped_large_text_has_only_the_rest(
    calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qrmem.memory.plan.SAMPLE", 5_000)
    async with serving() as server, opened(server, concurrency=1, **SEVERAL) as memory:
        await memory.add({"id": "other", "text": CHAPTERS[3]})
        await memory.add(SAMPLE, max_calls=calls)
        plan = await memory.plan([SAMPLE, {"id": "other", "text": CHAPTERS[4]}])
        assert [name for name, _ in plan.problems] == ["other"]  # it has another text
        assert plan_lines(plan)[0].startswith("to read: " if calls == 10 else "to finish: ")
        before, answered = spent(server.stats), server.stats.answered
        report = await memory.add(SAMPLE)
        assert plan.segments == report.read
        assert (report.read > 0) == (calls == 10)
        assert spent(server.stats) - before in plan.tokens
        assert server.stats.answered - answered in plan.calls


async def test_short_documents_that_share_calls_are_planned_as_such() -> None:
    short = [
        {"id": str(n), "text": part[:500]}
        for n, part in enumerate(SAMPLE.read_text().split("\n\n"))
        if len(part) > 200
    ]
    async with serving() as server, opened(server) as memory:
        plan = await memory.plan(short)
        assert plan.calls.likely < plan.segments
        await memory.add(short)
        assert_true(plan, spent(server.stats), server.stats.answered)


async def test_a_run_that_was_stopped_is_planned_for_what_is_missing() -> None:
    async with serving() as server, opened(server, concurrency=1, **SEVERAL) as memory:
        whole = await memory.plan(SAMPLE)
        await memory.add(SAMPLE, max_calls=24)
        before = spent(server.stats)
        rest = await memory.plan(SAMPLE)
        assert rest.tokens.likely < whole.tokens.likely
        await memory.add(SAMPLE)
        assert_true(rest, spent(server.stats) - before, server.stats.answered - 24)


async def test_a_changed_document_is_planned_for_what_changed() -> None:
    async with serving() as server, opened(server) as memory:
        await memory.add({"id": "book", "text": "## ".join(CHAPTERS)})
        changed = {"id": "book", "text": "## ".join([*CHAPTERS[:-1], "An end\n\nPip sailed."])}
        with pytest.raises(UsageError, match="another text"):
            await memory.plan(changed)
        plan = await memory.plan(changed, update=True)
        assert 0 < plan.segments < 4
        before = spent(server.stats)
        await memory.add(changed, update=True)
        assert spent(server.stats) - before in plan.tokens


async def test_a_change_of_a_document_that_a_server_embedded_is_planned() -> None:
    async with serving() as server, opened(server, embedder="openai:e") as memory:
        await memory.add({"id": "book", "text": "## ".join(CHAPTERS)})
        for text, how in (([*CHAPTERS, " An end\n\nPip sailed."], "update"), (CHAPTERS, "rebuild")):
            changed = {"id": "book", "text": "## ".join(text)}
            plan = await memory.plan(changed, update=True, rebuild=how == "rebuild")
            before, calls = spent(server.stats), server.stats.answered
            report = await memory.add(changed, update=True, rebuild=how == "rebuild")
            assert plan.segments == report.read > 0
            assert server.stats.answered - calls in plan.calls
            (embed,) = [stage for stage in plan.stages if stage.stage == "embed"]
            used = report.usage.construction["embed"]
            assert used.tokens_in in embed.tokens_in
            assert spent(server.stats) - before + used.tokens_in in plan.tokens


async def test_an_update_of_some_documents_among_others_is_planned() -> None:
    async with serving() as server, opened(server) as memory:
        chapters = [{"id": str(n), "text": text} for n, text in enumerate(CHAPTERS)]
        await memory.add(chapters)
        chapters[2]["text"] += "\n\nOld Tom Hale came to Skarrow."
        chapters[3]["title"] = "A New Title"
        chapters.insert(1, {"id": "new", "text": "Old Tom Hale left Skarrow for Dunmarrow."})
        before, calls = spent(server.stats), server.stats.answered
        plan = await memory.plan(chapters, update=True)
        report = await memory.add(chapters, update=True)
        assert (report.added, report.updated) == (("new",), ("2", "3"))
        assert plan.segments == report.read
        assert spent(server.stats) - before in plan.tokens
        assert server.stats.answered - calls in plan.calls


@pytest.mark.parametrize(
    "strategy",
    [
        "reflection",
        "graph-expansion",
        "entity-trial",
        "fragment",
        "temp-mem",
        "overview",
        "passages",
    ],
)
async def test_plans_of_questions_hold_the_truth(strategy: str) -> None:
    likely = truth = 0.0
    async with serving() as server, opened(server, cache=False) as memory:
        await memory.add(SAMPLE)
        questions = QUESTIONS if strategy == "entity-trial" else QUESTIONS[::2]
        for question in questions:
            before, calls = spent(server.stats), server.stats.answered
            plan = await memory.plan(ask=question, strategy=strategy)
            assert spent(server.stats) == before
            await memory.ask(question, strategy=strategy)
            used = spent(server.stats) - before
            assert used in plan.tokens, question
            assert server.stats.answered - calls in plan.calls, question
            likely, truth = likely + plan.tokens.likely, truth + used
        assert len(await memory.trails()) == len(questions), "a plan leaves none"
    assert abs(likely - truth) <= 0.5 * truth


async def test_plans_of_multiple_choice_hold_the_truth() -> None:
    choices = ["Mussel Island", "Dunmarrow", "Vantry", "the Grey Sow"]
    likely = truth = 0.0
    async with serving() as server, opened(server, cache=False) as memory:
        await memory.add(SAMPLE)
        for question in QUESTIONS[::2]:
            options: dict[str, Any] = {"strategy": "reflection", "choices": choices}
            before, calls = spent(server.stats), server.stats.answered
            plan = await memory.plan(ask=question, **options)
            await memory.ask(question, **options)
            used = spent(server.stats) - before
            assert used in plan.tokens, question
            assert server.stats.answered - calls in plan.calls, question
            likely, truth = likely + plan.tokens.likely, truth + used
    assert abs(likely - truth) <= 0.5 * truth


async def test_a_plan_of_a_question_says_its_strategy_and_its_window() -> None:
    async with serving() as server, opened(server) as memory:
        await memory.add(SAMPLE)
        for options in ({}, {"window": 2048}, {"strategy": "entity-trial"}):
            plan = await memory.plan(ask=QUESTIONS[0], **options)
            trail = (await memory.ask(QUESTIONS[0], **options)).trail
            assert (plan.strategy, plan.window) == (trail.strategy, trail.window)
            (said,) = [line for line in plan_lines(plan) if line.startswith("strategy: ")]
            assert said.startswith(f"strategy:  {trail.strategy}")
            assert said.endswith(f", window of {trail.window:,} tokens (--window)")


async def test_orientation_is_in_the_plan_of_a_question() -> None:
    async with serving() as server, opened(server) as memory:
        await memory.add(SAMPLE)
        before = spent(server.stats)
        plan = await memory.plan(ask=QUESTIONS[0], orientation="local")
        assert "extract" in {stage.stage for stage in plan.stages}
        assert spent(server.stats) == before
        await memory.ask(QUESTIONS[0], orientation="local")
        assert spent(server.stats) - before in plan.tokens


async def test_each_stage_has_its_model_and_an_unknown_price_is_reported() -> None:
    models = {"reading": "gpt-5-nano", "summary": "my-own"}
    async with serving() as server, opened(server, stage_models=models, **SEVERAL) as memory:
        plan = await memory.plan(SAMPLE)
        named = {stage.stage: stage.model for stage in plan.stages}
        assert named["extract"] == named["supplement"] == "gpt-5-nano"
        assert named["summary"] == "my-own"
        assert plan.unpriced == ("my-own",)
        await memory.add({"id": "a", "text": "Ahab met Pip in Nantucket. " * 60})
        found = {row.key: row.models for row in await memory.usage()}
        assert found["extract"] == ("gpt-5-nano",)
        asked = {body["model"] for body in server.stats.bodies}
        await memory.ask("Whom did Ahab meet in Nantucket?")
        assert asked | {"gpt-4o-mini"} == {body["model"] for body in server.stats.bodies}


async def test_embeddings_of_a_server_are_in_the_plan() -> None:
    embedding = {"model": "", "embedder": "openai:text-embedding-3-small"}
    async with serving() as server, opened(server, **embedding) as memory:
        plan = await memory.plan(SAMPLE)
        (embed,) = plan.stages
        assert embed.cost is not None
        assert server.stats.requests == 0
        await memory.add(SAMPLE)
        assert server.stats.requests in embed.calls
        (row,) = await memory.usage()
        assert row.tokens_in in embed.tokens_in
        plan = await memory.plan(ask=QUESTIONS[0])
        before = server.stats.requests
        await memory.ask(QUESTIONS[0])
        assert server.stats.requests - before in plan.stages[-1].calls


async def test_times_are_those_of_earlier_runs_where_there_are_enough() -> None:
    async with serving(latency=0.05) as server, opened(server, **SEVERAL) as memory:
        first = await memory.plan(SAMPLE)
        assert "assumed" in first.basis
        assert first.seconds.low < first.seconds.likely < first.seconds.high
        text = "## ".join(CHAPTERS[:4])
        await memory.add([{"id": n, "text": text} for n in "abc"])
        later = await memory.plan(SAMPLE)
        assert "assumed" not in later.basis
        assert later.seconds.likely < first.seconds.likely
        slow = await memory.plan(ask=QUESTIONS[0])
        assert slow.concurrency == 1


async def test_options_of_a_plan_are_those_of_the_run() -> None:
    async with serving() as server, opened(server) as memory:
        await memory.add({"id": "a", "text": "Ahab met Pip in Nantucket."})
        for wrong in (
            {"source": "a", "ask": "b"},
            {},
            {"ask": "Who?", "update": True},
            {"ask": "Who?", "strategy": "none"},
            {"source": SAMPLE, "max_cals": 3},
        ):
            with pytest.raises(UsageError):
                await memory.plan(**wrong)
        assert (await memory.plan(SAMPLE, max_calls=3)).segments > 0


def test_the_synchronous_face_plans_too() -> None:
    with qrmem.sync.open("memory://", model="gpt-4o-mini", embedder="none") as memory:
        assert memory.plan(SAMPLE).cost is not None


# --- nothing is written --------------------------------------------------------------------------


_FORGOTTEN = """
check clean clear_view close delete_documents delete_namespace drop_cache_entries finish_import
override_merge put_cache_entry put_documents put_trail put_vectors record set_embedder
set_single
"""
_REFUSED = "apply create_namespace"
_READS = """
around cache_entries cache_keys calls contributions counts document document_ids documents edits
entities entries ledger list_entities matching_each mentions misdrawn names namespace namespaces
nearest owners places questions relations segments segments_of_types shared_entities snapshot states
titled trails types unmerged vectors vocabulary
"""


def test_a_plan_reads_a_store_and_changes_nothing_of_it() -> None:
    store = ReferenceStore()
    dry: Any = dry_store(store)
    for name in _READS.split():
        assert getattr(dry, name) == getattr(store, name)
    assert (dry.location, dry.is_read_only) == (store.location, store.is_read_only)
    assert dry.has_snapshots == store.has_snapshots
    forgotten = {getattr(dry, name) for name in _FORGOTTEN.split()}
    assert len(forgotten) == 1
    assert not forgotten & {getattr(dry, name) for name in _READS.split()}
    for name in _REFUSED.split():
        with pytest.raises(AttributeError, match="may not use"):
            getattr(dry, name)
    own = {name for name in dir(GraphStore) if not name.startswith("_")}
    assert own == {*_FORGOTTEN.split(), *_REFUSED.split(), *_READS.split()}


async def test_writes_of_a_plan_are_discarded() -> None:
    store = ReferenceStore()
    await store.create_namespace("ns", NamespaceInfo("ns", "builtin", 600))
    await store.put_cache_entry("ns", "reply", "a", {"kept": True})
    dry = dry_store(store)
    await dry.drop_cache_entries("ns", "reply", ["a"])
    await dry.delete_namespace("ns")
    await dry.put_cache_entry("ns", "reply", "b", {})
    assert await cached_value(dry, "ns", "reply", "a") == {"kept": True}
    assert await cached_value(store, "ns", "reply", "b") is None
    with pytest.raises(AttributeError, match="may not use"):
        _ = dry.vacuum  # type: ignore[attr-defined]


async def test_a_tree_is_planned_before_it_is_built_and_existing_nodes_are_not() -> None:
    async with serving() as server, opened(server) as memory:
        both = await memory.plan(SAMPLE, tree=True)
        await memory.add(SAMPLE)
        before, calls = spent(server.stats), server.stats.answered
        plan = await memory.plan(tree=True)
        assert (server.stats.answered, await memory.trees()) == (calls, [])
        report = await memory.build_tree()
        used, made = spent(server.stats) - before, server.stats.answered - calls
        (stage,) = plan.stages
        assert (plan.run, stage.stage) == ("tree", "tree")
        assert made == report.usage.construction["tree"].calls
        assert_true(plan, used, made)
        (grown,) = (stage for stage in both.stages if stage.stage == "tree")
        assert used in grown.tokens_in + grown.tokens_out
        nothing = await memory.plan(tree=["harbour.md"])
        assert nothing.stages == ()


async def test_an_add_with_trees_is_planned_with_those_of_documents_that_are_read() -> None:
    half = {"id": "b", "text": "## ".join(CHAPTERS[:3])}
    whole = half | {"text": "## ".join(CHAPTERS)}
    async with serving() as server, opened(server) as memory:
        await memory.add([{"id": "a", "text": "Pip sailed to Nantucket. " * 200}, half])
        await memory.build_tree("b")
        source: list[Any] = [{"id": "a", "text": "Pip sailed to Nantucket. " * 200}, whole]
        plan = await memory.plan(source, update=True, tree=True)
        before, calls = spent(server.stats), server.stats.answered
        await memory.add(source, update=True)
        report = await memory.build_tree("a", "b")
        assert report.reused > 0
        (tree,) = (stage for stage in plan.stages if stage.stage == "tree")
        used = report.usage.construction["tree"].calls
        # Clusters depend on summaries, which a plan does not know: one may be another.
        assert tree.calls.likely == pytest.approx(used, abs=4)
        assert spent(server.stats) - before in plan.tokens
        assert server.stats.answered - calls in plan.calls
        nothing = await memory.plan(source, update=True, tree=True)
        assert nothing.stages == ()
        plan = await memory.plan(source, rebuild=True, tree=True)
        await memory.add(source, rebuild=True)
        report = await memory.build_tree("a", "b")
        assert report.reused == 0
        (tree,) = (stage for stage in plan.stages if stage.stage == "tree")
        used = report.usage.construction["tree"].calls
        assert tree.calls.likely == pytest.approx(used, abs=4)


async def test_the_plan_of_a_tree_that_grows_counts_what_a_server_embeds() -> None:
    given = {"model": "", "embedder": "openai:text-embedding-3-small"}
    half = {"id": "b", "text": "## ".join(CHAPTERS[:3])}
    async with serving() as server, opened(server, **given) as memory:
        await memory.add(half)
        await memory.build_tree()
        await memory.add(half | {"text": "## ".join(CHAPTERS)}, update=True)
        plan = await memory.plan(tree=True)
        report = await memory.build_tree()
        assert report.reused > 0
        (used,) = report.usage.construction.values()
        assert used.tokens_in in plan.tokens_in
        assert (await memory.plan(tree=True)).stages == ()


async def test_a_plan_of_a_tree_refuses_what_the_build_refuses() -> None:
    async with serving() as server, opened(server) as memory:
        await memory.add({"id": "a", "text": "Pip sailed."})
        with pytest.raises(UsageError, match="kind is 'oak'"):
            await memory.plan(tree=True, kind="oak")
        with pytest.raises(NotFound, match="no document 'b'"):
            await memory.plan(tree=["b"])


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("how", [("ilm", "default"), ("ilm", "paper"), ("raptor", "paper")])
async def test_the_plan_of_a_tree_holds_what_any_server_counts(
    how: tuple[Any, Any], kind: str, tmp_path: Path
) -> None:
    """Clusters depend on what a model writes; with one that leaves labels out a node costs two."""
    place: Any = str(tmp_path / "m.db")
    async with qrmem.open(place, model="", embedder="none", segment_tokens=200) as unread:
        await unread.add(SAMPLE)
    given: Any = {"model": "gpt-4o-mini", "embedder": "none"}
    async with (
        serving(answer=SERVERS[kind]) as server,
        qrmem.open(place, base_url=server.url, **given) as memory,
    ):
        plan = await memory.plan(tree=True, kind=how[0], preset=how[1])
        assert server.stats.requests == 0
        await memory.build_tree(kind=how[0], preset=how[1])
        assert server.stats.answered in plan.calls
        assert spent(server.stats) in plan.tokens
        assert plan.calls.low <= plan.calls.likely <= plan.calls.high


# --- workers -------------------------------------------------------------------------------------


async def test_a_plan_with_a_chat_model_says_that_workers_would_not_help() -> None:
    async with serving() as server, opened(server) as memory:
        plan = await memory.plan({"id": "a", "text": CHAPTERS[4]})
        assert plan.workers.startswith("more would not help: this process makes all calls")
        (line,) = [line for line in plan_lines(plan) if line.startswith("workers: ")]
        assert plan.workers in line
        await memory.add({"id": "a", "text": CHAPTERS[4]})
        done = await memory.plan({"id": "a", "text": CHAPTERS[4]})
        assert done.workers == ""


@pytest.mark.parametrize(
    ("changed", "segments", "cores", "said"),
    [
        ({}, 10_000, 2, "2 (--executor processes) would make it about 1.2 times as fast"),
        ({}, 100, 2, "more would not help: there is too little to read"),
        ({}, 10_000, 1, "more would not help: this machine has one core"),
        ({"tagger": "corenlp"}, 10_000, 2, "more would not help: the tagger runs as one server"),
        ({"tagger": "stanza"}, 10_000, 4, "4 (--executor processes) would run the tagger"),
        ({"model": "m", "concurrency": 8}, 10_000, 4, "8 at a time are some 4.0 a second"),
    ],
)
def test_what_workers_are_worth(
    changed: dict[str, Any], segments: int, cores: int, said: str
) -> None:
    assert said in worth_of_workers(Settings().with_(**changed), segments, 4.0, cores)
