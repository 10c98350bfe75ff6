"""Totals of records of calls: of one run, and of all runs by stage, run or day."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from qrmem.errors import UsageError
from qrmem.types import CallRecord, StageUsage, Usage, UsageRow
from qrmem.types.models import COUNTS

Phase = Literal["construction", "online"]
By = Literal["stage", "run", "day"]

_PAID = frozenset({"ok", "repaired", "unparsable"})
"""Outcomes of calls with a reply; others are errors or `cached`."""

_KEYS: Mapping[str, Callable[[CallRecord], str]] = {
    "stage": lambda record: record.stage,
    "run": lambda record: record.run,
    "day": lambda record: record.created[:10],
}


def usage(records: Iterable[CallRecord], *, with_cached: bool = False) -> Usage:
    """Sum records by stage, separately for the phases construction and online.

    Args:
        records: the records.
        with_cached: count replies from the cache as if they had been paid for.
    """
    totals = Totals(with_cached=with_cached)
    for record in records:
        totals.add(record)
    return totals.usage


class Totals:
    """Running totals by stage; the records themselves are not kept."""

    def __init__(self, *, with_cached: bool = False) -> None:
        self._with_cached = with_cached
        self._stages: dict[Phase, dict[str, StageUsage]] = {"construction": {}, "online": {}}

    def add(self, record: CallRecord) -> None:
        """Add one record; a reply from the cache costs nothing."""
        if record.outcome != "cached" or self._with_cached:
            stages = self._stages[record.phase]
            stages[record.stage] = _added(stages.get(record.stage, StageUsage()), record)

    @property
    def usage(self) -> Usage:
        """The totals so far."""
        return Usage(**{phase: dict(stages) for phase, stages in self._stages.items()})


def together(usages: Iterable[Usage]) -> Usage:
    """Sum the usage of several runs by stage."""
    stages: dict[Phase, dict[str, StageUsage]] = {"construction": {}, "online": {}}
    for one in usages:
        for phase, sums in stages.items():
            for stage, usage in getattr(one, phase).items():
                sums[stage] = _plus(sums.get(stage, StageUsage()), usage)
    return Usage(**stages)


def _added(so_far: StageUsage, record: CallRecord) -> StageUsage:
    return _plus(so_far, StageUsage(calls=1, cost=record.cost, **_sums([record])))


def _plus(first: StageUsage, second: StageUsage) -> StageUsage:
    both = (first, second)
    return StageUsage(calls=first.calls + second.calls, cost=_cost(both), **_sums(both))


def _sums(counted: Sequence[StageUsage | CallRecord]) -> dict[str, Any]:
    """Sum the counts that a reply, a record and a row have under the same names."""
    return {name: sum(getattr(one, name) for one in counted) for name in (*COUNTS, "seconds")}


def _cost(counted: Sequence[StageUsage | CallRecord]) -> float | None:
    """Return the cost as far as it is known."""
    costs = [one.cost for one in counted if one.cost is not None]
    return sum(costs) if costs else None


def usage_by(records: Iterable[CallRecord], by: By) -> list[UsageRow]:
    """Sum all records, construction before online, in the order of their first calls.

    Raises:
        UsageError: `by` has an unknown value.
    """
    if by not in _KEYS:
        raise UsageError(f"usage is summed up by {', '.join(_KEYS)}, not by {by!r}")
    groups: dict[tuple[Phase, str], list[CallRecord]] = {}
    for record in records:
        groups.setdefault((record.phase, _KEYS[by](record)), []).append(record)
    rows = [_row(phase, key, stage_records) for (phase, key), stage_records in groups.items()]
    return sorted(rows, key=lambda row: row.phase)


def _row(phase: Phase, key: str, records: Sequence[CallRecord]) -> UsageRow:
    calls_paid = [record for record in records if record.outcome != "cached"]
    return UsageRow(
        phase=phase,
        key=key,
        models=tuple(dict.fromkeys(record.model for record in records)),
        calls=len(calls_paid),
        from_cache=len(records) - len(calls_paid),
        failed=sum(record.outcome not in _PAID for record in calls_paid),
        requests=sum(record.attempts for record in calls_paid),
        cost=_cost(calls_paid),
        unpriced=sum(record.cost is None for record in calls_paid),
        began=min(record.created for record in records),
        **_sums(calls_paid),
    )
