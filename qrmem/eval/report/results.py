"""The results of a run folder: means, differences, costs; the data of every report."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from math import fsum, inf
from pathlib import Path
from typing import Any

from qrmem.errors import UsageError
from qrmem.eval.items import Built, Item, Row
from qrmem.eval.judging import Rating, ratings
from qrmem.eval.metrics import abstention, scores
from qrmem.eval.registry import DATASETS
from qrmem.eval.run_folder import RunFolder
from qrmem.eval.statistics import Difference, Mean, difference, mean
from qrmem.llm.budget import Price
from qrmem.types import StageUsage


@dataclass(frozen=True, slots=True)
class Spent:
    """Usage of a part of a run.

    Attributes:
        money: `None` if the model's price is unknown.
        tokens_out: reply tokens, included in `tokens`.
    """

    calls: float = 0
    tokens: float = 0
    money: float | None = None
    seconds: float = 0.0
    tokens_out: float = 0

    @property
    def tokens_in(self) -> float:
        """Prompt tokens, included in `tokens`."""
        return self.tokens - self.tokens_out


@dataclass(frozen=True, slots=True)
class Judged:
    """Numbers of rated and unrated answers; means leave out unrated ones."""

    judge: str
    rated: int
    missing: int


@dataclass(frozen=True, slots=True)
class Result:
    """One system over one sample.

    Attributes:
        scores: metric to item id to score.
        online: mean usage per item, with all calls.
        counted: the same without the step that shortens answers, as papers count calls.
        alone: usage of building all its memories, as if it ran alone.
        share: its share of that, if other systems used the same memories.
        errors: item id to error message; these items are unscored.
        judged: `None` without a judge.
        malformed: share of the nodes of its trees whose replies lacked the two labels twice; `None`
            without a tree.
    """

    system: str
    rows: Mapping[str, Row]
    scores: Mapping[str, Mapping[str, float]]
    statuses: Mapping[str, float]
    online: Spent
    counted: Spent
    alone: Spent
    share: Spent
    errors: Mapping[str, str]
    judged: Judged | None = None
    malformed: float | None = None

    @property
    def unmoved(self) -> tuple[int, int]:
        """How many questions read nothing new because the window was full, and of how many.

        It counts only questions that the first reading did not answer.
        """
        walks = [r for r in self.rows.values() if any(s.brought for s in r.prediction.steps)]
        return sum(_is_unmoved(row) for row in walks), len(walks)

    def mean(self, metric: str, only: Iterable[str] | None = None) -> Mean | None:
        """Return a metric's mean over the items with a score."""
        score_of = self.scores.get(metric, {})
        ids = score_of.keys() if only is None else score_of.keys() & set(only)
        return mean([score_of[item] for item in sorted(ids)])


def _is_unmoved(row: Row) -> bool:
    """Return whether the first segments filled the window, and nothing else was ever read."""
    readings = [step for step in row.prediction.steps if step.action == "read"]
    read = {frozenset(one.segment_id for one in step.read) for step in readings}
    return len(read) == 1 and bool(readings[0].dropped)


@dataclass(frozen=True, slots=True)
class Results:
    """A run: its configuration, items, and a result for each system.

    Attributes:
        unread: number of segments that were not read, or only in part, and of all segments.
        made_by: lines about the conditions of each of several runs; empty for a single run.
    """

    path: Path
    config: Mapping[str, Any]
    items: Mapping[str, Item]
    systems: Mapping[str, Result]
    unread: tuple[int, int] = (0, 0)
    made_by: Sequence[str] = ()

    @property
    def rows(self) -> Mapping[tuple[str, str], Row]:
        """Every result, by system and item."""
        return {
            (name, id): row
            for name, result in self.systems.items()
            for id, row in result.rows.items()
        }

    @property
    def metrics(self) -> list[str]:
        """The metrics with scores, the task's own first."""
        metric_names = {name for result in self.systems.values() for name in result.scores}
        metrics_of_task = (*DATASETS[self.config["task"]].metrics, "rating")
        metrics_shown = [name for name in metrics_of_task if name in metric_names]
        return metrics_shown or sorted(metric_names)

    @property
    def others(self) -> list[str]:
        """Further scores, such as those of raw answers, in order."""
        metrics_of_task = self.metrics
        metric_names = (name for result in self.systems.values() for name in result.scores)
        return [name for name in dict.fromkeys(metric_names) if name not in metrics_of_task]

    def by_label(self, label: str) -> dict[str, frozenset[str]]:
        """Return the ids of the items with each value of a label, the values in order."""
        ids: dict[str, set[str]] = defaultdict(set)
        for id, item in self.items.items():
            if value := item.labels.get(label):
                ids[value].add(id)
        return {value: frozenset(ids[value]) for value in sorted(ids, key=in_order)}

    @property
    def splits(self) -> dict[str, dict[str, frozenset[str]]]:
        """The labels that split the items into a few groups, each with its groups.

        A label such as the line of a file names nearly each item, and splits nothing.
        """
        names = dict.fromkeys(name for item in self.items.values() for name in item.labels)
        groups = {name: self.by_label(name) for name in names}
        most = min(MOST_GROUPS, len(self.items) - 1)
        return {name: found for name, found in groups.items() if 2 <= len(found) <= most}

    def difference(self, ours: str, theirs: str, metric: str) -> Difference | None:
        """Return the difference of two systems over the items that both have."""
        first, second = self.systems[ours].scores, self.systems[theirs].scores
        return difference(first.get(metric, {}), second.get(metric, {}))


MOST_GROUPS = 20
"""Maximum number of groups of a table by label."""


def in_order(name: str) -> tuple[float, str]:
    """Return the sort key for names of groups: numbers, `8k`, then words."""
    number = name.removesuffix("k")
    return (float(number), "") if number.replace(".", "", 1).isdigit() else (inf, name)


def read_results(path: Path) -> Results:
    """Read a run folder.

    Raises:
        UsageError: the folder has no run, or the run has no result yet.
    """
    folder = RunFolder(path)
    config, (items, rows_by_system) = folder.config(), folder.answered()
    rows: dict[str, dict[str, Row]] = defaultdict(dict)
    for (system, item), row in rows_by_system.items():
        rows[system][item] = row
    if not rows.keys() & set(config["systems"]):
        raise UsageError(f"{path} has no results yet: run the same `qrmem eval run` again")
    price = Price(**config["price"]) if config["price"] else None
    memory_entries = folder.memories()
    built, tree_counts = (
        _built(memory_entries, price),
        {one.memory: (one.nodes, one.malformed) for one in memory_entries},
    )
    users = _users(rows)
    rated = ratings(path)
    results = {
        name: _result(name, rows[name], items, config, built, tree_counts, users, price, rated)
        for name in config["systems"]
        if name in rows
    }
    return Results(path, config, items, results, folder.unread())


def _result(
    name: str,
    rows: Mapping[str, Row],
    items: Mapping[str, Item],
    config: Mapping[str, Any],
    built: Mapping[str, Spent],
    grown: Mapping[str, tuple[int, int]],
    users: Mapping[str, int],
    price: Price | None,
    rated: Mapping[tuple[str, str], Rating],
) -> Result:
    rule = DATASETS[config["task"]].rule
    by_metric: dict[str, dict[str, float]] = defaultdict(dict)
    for id, row in rows.items():
        for metric, value in scores(items[id], row, rule).items():
            by_metric[metric][id] = value
        rating = rated.get((name, id))
        if rating is not None and rating.share is not None:
            by_metric["rating"][id] = rating.share
    rows_done = [row for row in rows.values() if not row.error]
    memories = {row.prediction.memory for row in rows_done if row.prediction.memory}
    nothing = Spent(money=0.0 if price else None)
    preparations = [nothing, *_prepared(rows_done, items, price)]
    return Result(
        system=name,
        rows=rows,
        scores=dict(by_metric),
        statuses=abstention({id: (items[id], row) for id, row in rows.items()}),
        online=_mean_spent([_online(row, price) for row in rows_done]),
        counted=_mean_spent([_online(row, price, SHORTENING) for row in rows_done]),
        alone=_sum([*preparations, *(built.get(key, Spent()) for key in memories)]),
        share=_sum(
            [*preparations, *(_part(built.get(key, Spent()), users[key]) for key in memories)]
        ),
        errors={id: row.error for id, row in rows.items() if row.error},
        judged=_judged([one for (system, id), one in rated.items() if system == name]),
        malformed=_malformed([grown.get(key, (0, 0)) for key in memories]),
    )


def _malformed(trees: Sequence[tuple[int, int]]) -> float | None:
    nodes = sum(every for every, _ in trees)
    return sum(bad for _, bad in trees) / nodes if nodes else None


def _judged(rated: Sequence[Rating]) -> Judged | None:
    if not rated:
        return None
    missing = sum(one.rating is None for one in rated)
    return Judged(rated[0].judge, len(rated) - missing, missing)


def _prepared(rows: Sequence[Row], items: Mapping[str, Item], price: Price | None) -> list[Spent]:
    """Return the cost of a system's own preparation of each context, such as summaries."""
    stages = {items[row.item].context: row.prediction.usage.construction for row in rows}
    usages_of_preparations = [
        list(stage_usages.values()) for stage_usages in stages.values() if stage_usages
    ]
    return [
        _spent_of_stages(stage_usages, price, sum(stage.seconds for stage in stage_usages))
        for stage_usages in usages_of_preparations
    ]


def _users(rows: Mapping[str, Mapping[str, Row]]) -> dict[str, int]:
    """Return the number of systems that used each memory."""
    users: dict[str, set[str]] = defaultdict(set)
    for system, system_rows in rows.items():
        for row in system_rows.values():
            users[row.prediction.memory].add(system)
    return {memory: len(systems) for memory, systems in users.items()}


def _built(entries: Sequence[Built], price: Price | None) -> dict[str, Spent]:
    """Return the cost of each memory; time is summed over builds, the last one has all calls."""
    spent_by_memory: dict[str, Spent] = {}
    for entry in entries:
        stages = [usage for name, usage in entry.stages.items() if name != EMBED]
        before = spent_by_memory.get(entry.memory, Spent())
        spent_by_memory[entry.memory] = _spent_of_stages(
            stages, price, before.seconds + entry.seconds
        )
    return spent_by_memory


SHORTENING = "shorten"
"""Stage of the calls that shorten an answer, a step of our scoring that no paper has."""
EMBED = "embed"
"""Stage of embedding requests, which are not in the costs of the chat model."""


def _online(row: Row, price: Price | None, without: str = "") -> Spent:
    online = row.prediction.usage.online.items()
    stages = [usage for name, usage in online if name not in (without, EMBED)]
    return _spent_of_stages(stages, price, row.seconds)


def _spent_of_stages(stages: Sequence[StageUsage], price: Price | None, seconds: float) -> Spent:
    tokens_in, tokens_out = sum(s.tokens_in for s in stages), sum(s.tokens_out for s in stages)
    money = price.of(tokens_in, tokens_out) if price else None
    calls = sum(s.calls for s in stages)
    return Spent(calls, tokens_in + tokens_out, money, seconds, tokens_out)


def _sum(parts: Sequence[Spent]) -> Spent:
    columns = zip(*map(astuple, parts), strict=True)
    columns_known = [[value for value in column if value is not None] for column in columns]
    # Memories come from a set: an exact sum does not depend on the order.
    sums: list[Any] = [fsum(column) if column else None for column in columns_known]
    return Spent(*sums)


def _part(spent: Spent, users: int) -> Spent:
    shares: list[Any] = [None if value is None else value / users for value in astuple(spent)]
    return Spent(*shares)


def _mean_spent(parts: Sequence[Spent]) -> Spent:
    return _part(_sum(parts), max(1, len(parts)))
