"""The report of one run: what was run, how well, how sure, at what cost, what went wrong."""

from collections.abc import Sequence
from pathlib import Path

from qrmem.errors import UsageError
from qrmem.eval.report.plots import draw_bars
from qrmem.eval.report.results import Result, Results, Spent
from qrmem.eval.report.summary import write_summary
from qrmem.eval.report.tables import Table, number, percent
from qrmem.eval.rundir import REPORT

DRAWN = ("rating", "accuracy", "f1")
"""Of these the first that there is is drawn, else the run's first."""


def write_report(results: Results, against: str = "") -> Path:
    """Write Markdown and CSV files beside a run; returns the Markdown file's path.

    Args:
        against: the system that the others are compared with; "": the first.
    """
    folder = results.path / REPORT
    folder.mkdir(exist_ok=True)
    against = against or next(iter(results.systems))
    if against not in results.systems:
        known = ", ".join(results.systems)
        raise UsageError(f"the run has no system {against!r}; it has {known}")
    found = tables(results, against)
    if not results.made_by:
        write_summary(results, against, folder)
    for table in found:
        (folder / f"{table.name}.csv").write_text(table.csv(), encoding="utf-8")
    pieces = [heading(results), *(table.markdown() for table in found)]
    shown = next((name for name in (*DRAWN, *results.metrics) if name in results.metrics), "")
    if draw_bars(folder / "results.png", results, shown):
        pieces.insert(2, f"![{shown}](results.png)\n")
    text = "\n".join(pieces)
    path = folder / "report.md"
    path.write_text(text, encoding="utf-8")
    return path


def heading(results: Results) -> str:
    """Return what was run, so that a number never stands alone."""
    config = results.config
    items = config["items"]
    checked = ", ".join(_file(file) for file in config["files"])
    lines = [
        f"# {config['task']}: {', '.join(results.systems)}",
        "",
        f"- items: {items['n']} of {items['of']} (seed {config['seed']}, sample "
        f"{items['sample']}), corpus: {config['corpus']}",
        f"- data: {checked}",
        *(results.made_by or made_by(results)),
        "- in brackets: 95 % bootstrap interval over items; what could not be scored is left out",
        "",
    ]
    return "\n".join(lines)


def made_by(results: Results) -> list[str]:
    """Return with which reader and by which code a run was made, and what it did not read."""
    config, settings = results.config, results.config["settings"]
    reader = settings["model"] or "local reasoner (no chat model), which builds memories too"
    lines = [
        f"- reader: {reader}; window {settings['window']} tokens; embedder {settings['embedder']}; "
        f"answers: {config['answers']}",
        f"- qrmem {config['about']['qrmem']}, commit {config['about']['git'] or 'unknown'}, "
        f"{config['about']['started']}",
    ]
    missing, of = results.unread
    if missing:
        lines.append(f"- {missing} of {of} segments of its memories were not read, or not wholly")
    return lines


def _file(file: dict[str, object]) -> str:
    told = {True: "published checksum", False: "CHECKSUM DIFFERS from the published one"}
    note = told.get(file["verified"], "no published checksum")  # type: ignore[call-overload]
    return f"{file['name']} (sha256 {str(file['sha256'])[:12]}…, {note})"


def tables(results: Results, against: str) -> list[Table]:
    """Return the tables of a report."""
    found = [
        _scores(results, "results", "Results (%)", results.metrics),
        _scores(results, "other-scores", "Scored too (%; raw: not shortened)", results.others),
        _differences(results, against),
        _costs(results),
        _statuses(results),
        _ratings(results),
        _errors(results),
    ]
    return [table for table in found if table.rows]


def _scores(results: Results, name: str, title: str, metrics: Sequence[str]) -> Table:
    rows = []
    for system, result in results.systems.items():
        cells = [_with_interval(result, metric) for metric in metrics]
        n = max((len(found) for found in result.scores.values()), default=0)
        rows.append([system, str(n), *cells])
    return Table(name, title, ["system", "n", *metrics], rows if metrics else [])


def _with_interval(result: Result, metric: str) -> str:
    found = result.mean(metric)
    if found is None:
        return ""
    return f"{percent(found.value)} [{percent(found.low)}, {percent(found.high)}]"


def _differences(results: Results, against: str) -> Table:
    rows = []
    for name in results.systems:
        for metric in results.metrics if name != against else ():
            gap = results.difference(name, against, metric)
            if gap is not None:
                interval = f"[{percent(gap.low)}, {percent(gap.high)}]"
                rows.append(
                    [name, metric, str(gap.n), percent(gap.value), interval, f"{gap.p:.4f}"]
                )
    head = ["system", "metric", "n", "difference", "95 % interval", "p"]
    return Table(
        "differences",
        f"Differences from {against} (points)",
        head,
        rows,
        ["Paired over the items that both have; p of a two-sided sign-flip test."],
    )


def _costs(results: Results) -> Table:
    head = ["system", *_spent_names("item"), *_spent_names("built alone"), "share of building, s"]
    rows = [
        [name, *_spent(result.online), *_spent(result.alone), number(result.share.seconds)]
        for name, result in results.systems.items()
    ]
    return Table(
        "costs",
        "Cost: one item (mean), and building all memories",
        head,
        rows,
        [
            "A memory that several systems use is built once: `built alone` is what one of them "
            "would have paid by itself. Replies from the cache count as paid."
        ],
    )


def _spent_names(what: str) -> list[str]:
    return [f"calls / {what}", f"tokens / {what}", f"money / {what}", f"s / {what}"]


def _spent(spent: Spent) -> list[str]:
    return [number(v) for v in (spent.calls, spent.tokens, spent.money, spent.seconds)]


def _statuses(results: Results) -> Table:
    names = ("answered", "forced", "unanswerable", "false_abstention", "false_acceptance")
    rows = [
        [name, *(percent(result.statuses.get(status)) for status in names)]
        for name, result in results.systems.items()
        if result.statuses
    ]
    return Table("statuses", "How answers ended (%)", ["system", *names], rows)


def _ratings(results: Results) -> Table:
    rows = [
        [name, result.judged.judge, str(result.judged.rated), str(result.judged.missing)]
        for name, result in results.systems.items()
        if result.judged
    ]
    notes = ["An answer without a rating is left out of the mean; it is not zero."]
    return Table(
        "ratings", "Ratings", ["system", "judge", "rated", "without a rating"], rows, notes
    )


def _errors(results: Results) -> Table:
    rows: Sequence[Sequence[str]] = [
        [name, id, error]
        for name, result in results.systems.items()
        for id, error in result.errors.items()
    ]
    return Table("errors", "Items that failed (unscored)", ["system", "item", "error"], rows)
