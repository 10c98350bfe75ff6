"""The report of one or several runs, as tables."""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from qrmem.errors import UsageError
from qrmem.eval.report.plots import draw_bars
from qrmem.eval.report.results import Result, Results, Spent, read_results
from qrmem.eval.run_folder import REPORT, runs_in
from qrmem.eval.sampling import require_same_sample
from qrmem.text.numbers import counted


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: name of its CSV file, without the suffix.
        notes: lines below the table.
    """

    name: str
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default_factory=tuple)

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        table = "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)
        notes = "".join(f"\n\n{note}" for note in self.notes)
        return f"## {self.title}\n\n{table}{notes}\n"

    def csv(self) -> str:
        """Return the table as CSV."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows(map(_as_text, line) for line in (self.head, *self.rows))
        return file.getvalue()


_FORMULA = re.compile(r"\s*([=@\t]|[+-](?![\d.,]+%?$))")


def _as_text(cell: str) -> str:
    """Return a cell that no spreadsheet runs as a formula: it may come from somebody else."""
    cell = cell.replace("\r", " ")  # else it would end the row
    return f"'{cell}" if _FORMULA.match(cell) else cell


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def percent(value: float | None, digits: int = 1) -> str:
    """Return a value in [0, 1] as percent, "" for `None`."""
    return "" if value is None else f"{100 * value:.{digits}f}"


def number(value: float | None) -> str:
    """Return a count or an amount as short text."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 0.1 or not value else f"{value:.4f}"


FILE = "summary.json"


def summaries(path: Path) -> list[dict[str, Any]]:
    """Return the summaries in a folder: of its run, or of a preset's parts."""
    files = [run / REPORT / FILE for run in runs_in(path)]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]


def summary(results: Results, against: str) -> dict[str, Any]:
    """Return the summary of a run as plain values.

    Args:
        results: the run.
        against: the system to compare with.
    """
    return {
        "config": results.config,
        "metrics": results.metrics,
        "against": against,
        "systems": {
            name: _system(results, result, against) for name, result in results.systems.items()
        },
    }


def _system(results: Results, result: Result, against: str) -> Mapping[str, Any]:
    gaps = {
        metric: results.difference(result.system, against, metric) for metric in results.metrics
    }
    return {
        "means": _plain({metric: result.mean(metric) for metric in result.scores}),
        "differences": _plain(gaps) if result.system != against else {},
        "by": {
            label: {
                value: means
                for value, ids in groups.items()
                if (means := _plain({m: result.mean(m, ids) for m in results.metrics}))
            }
            for label, groups in results.splits.items()
        },
        "statuses": {name: round(value, 6) for name, value in result.statuses.items()},
        "online": asdict(result.online),
        "built alone": asdict(result.alone),
        "failed": len(result.errors),
    }


def _plain(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {field: round(number, 6) for field, number in asdict(value).items()}
        for name, value in found.items()
        if value is not None
    }


DRAWN = ("rating", "accuracy", "f1")
"""Metrics to plot: the first one that the run has, else the run's first metric."""


def write_report(results: Results, against: str = "", inside: str = "") -> Path:
    """Write Markdown and CSV files in a run's folder; return the path of the Markdown file.

    Args:
        results: the run.
        against: the system to compare with; "" is the first.
        inside: name of a separate folder within the run's report.
    """
    folder = results.path / REPORT / inside
    folder.mkdir(parents=True, exist_ok=True)
    against = against or next(iter(results.systems))
    if against not in results.systems:
        names = ", ".join(results.systems)
        raise UsageError(f"the run has no system {against!r}; it has {names}")
    report_tables = tables(results, against)
    if not results.made_by:
        text = json.dumps(summary(results, against), indent=1, ensure_ascii=False)
        (folder / FILE).write_text(f"{text}\n", encoding="utf-8")
    for table in report_tables:
        file = folder / f"{table.name}.csv"
        if table.rows:
            file.write_text(table.csv(), encoding="utf-8")
        else:
            # An earlier report may have had rows, for example of items that failed then.
            file.unlink(missing_ok=True)
    pieces = [
        heading(results),
        *(() if results.made_by else conditions(results.config)),
        "",
        *(table.markdown() for table in report_tables if table.rows),
    ]
    metric_drawn = next(
        (name for name in (*DRAWN, *results.metrics) if name in results.metrics), ""
    )
    if draw_bars(folder / "results.png", results, metric_drawn):
        pieces.insert(6, f"![{metric_drawn}](results.png)\n")
    path = folder / "report.md"
    path.write_text("\n".join(pieces), encoding="utf-8")
    return path


def heading(results: Results) -> str:
    """Return lines about the run, so that every number comes with its conditions."""
    config = results.config
    items = config["items"]
    files_in_words = ", ".join(_file(file) for file in config["files"])
    lines = [
        f"# {config['task']}: {', '.join(results.systems)}",
        "",
        f"- items: {items['n']} of {items['of']} (seed {config['seed']}, sample "
        f"{items['sample']}), corpus: {config['corpus']}",
        f"- data: {files_in_words}",
        *_absent(results),
        *_unmoved(results),
        *(results.made_by or made_by(results)),
        "- in brackets: 95 % bootstrap interval over items; items without a score are left out",
        "",
    ]
    return "\n".join(lines)


def _absent(results: Results) -> list[str]:
    """Return a note on evidence of the data set that does not exist in its texts."""
    lacking = [item.absent for item in results.items.values() if item.absent]
    if not lacking:
        return []
    how_much = f"{counted(sum(lacking), 'pieces')}, of {counted(len(lacking), 'items')}"
    return [f"- evidence in the data that no text contains: {how_much}; scores use the rest"]


def _unmoved(results: Results) -> list[str]:
    """Return a note on questions whose walk could add nothing to a full window."""
    return [
        f"- {name}: {unmoved} of {counted(walks, 'questions')} that the first reading did not "
        "answer never navigated: what was found first filled the window"
        for name, result in results.systems.items()
        for unmoved, walks in [result.unmoved]
        if walks
    ]


def made_by(results: Results) -> list[str]:
    """Return lines about a run's reader and code, and about unread segments."""
    config, settings = results.config, results.config["settings"]
    reader = settings["model"] or "local reasoner (no chat model), which builds memories too"
    about = config["about"]
    commit = f"commit {about['git']}" if about["git"] else ""
    lines = [
        f"- reader: {reader}; window {settings['window']} tokens; embedder {settings['embedder']}; "
        f"answers: {config['answers']}",
        ", ".join(filter(None, (f"- qrmem {about['qrmem']}", commit, about["started"]))),
    ]
    missing, of = results.unread
    if missing:
        lines.append(f"- {missing} of {of} segments of its memories were not read, or only in part")
    return lines


def conditions(config: Mapping[str, Any]) -> list[str]:
    """Return lines about other conditions: tagger, embedder, edge scorer, prompts, limits."""
    settings, prompts = config["settings"], config["prompts"]
    embedder = settings["embedder"]
    edges = "BM25 over the question's maximum" if embedder == "none" else f"cosine by {embedder}"
    versions = ", ".join(prompts.get("versions", ()))
    return [
        f"- entity tagger: {settings['tagger']}; embedder: {embedder}; edges and segments scored "
        f"by {edges}",
        f"- tokenizer: {settings['tokenizer']}; segments of {settings['segment_tokens']} tokens; "
        f"window {settings['window']}, of which {settings['reserve']} for a reply; "
        f"{settings['questions']} questions a segment",
        f"- prompts, in our own words: set {prompts['set']}: {versions}"
        if prompts
        else "- prompts: none, there is no chat model",
    ]


def _file(file: dict[str, object]) -> str:
    checksum_in_words = {
        True: "published checksum",
        False: "CHECKSUM DIFFERS from the published one",
    }
    note = checksum_in_words.get(file["verified"], "no published checksum")  # type: ignore[call-overload]
    return f"{file['name']} (sha256 {str(file['sha256'])[:12]}…, {note})"


def tables(results: Results, against: str) -> list[Table]:
    """Return the tables of a report; some may be empty."""
    return [
        _scores(results, "results", "Results (%)", results.metrics),
        *by_label(results, results.metrics),
        _scores(results, "other-scores", "Scored too (%; raw: not shortened)", results.others),
        _differences(results, against),
        _costs(results),
        _statuses(results),
        _ratings(results),
        _errors(results),
    ]


def _scores(results: Results, name: str, title: str, metrics: Sequence[str]) -> Table:
    rows = []
    for system, result in results.systems.items():
        cells = [_with_interval(result, metric) for metric in metrics]
        n = max((len(scores) for scores in result.scores.values()), default=0)
        rows.append([system, str(n), *cells])
    notes = [note] if metrics == results.metrics and (note := passages_note(results)) else []
    return Table(name, title, ["system", "n", *metrics], rows if metrics else [], notes)


def by_label(results: Results, metrics: Sequence[str]) -> list[Table]:
    """Return a table of each metric by each label that splits the items; systems are columns."""
    return [_by_label(results, label, metric) for label in results.splits for metric in metrics]


def _by_label(results: Results, label: str, metric: str) -> Table:
    rows = []
    for value, ids in results.splits[label].items():
        cells = [_with_interval(result, metric, ids) for result in results.systems.values()]
        scored = [result.scores.get(metric, {}) for result in results.systems.values()]
        if any(cells):
            rows.append([value, str(max(len(ids & one.keys()) for one in scored)), *cells])
    name = re.sub(r"[^\w-]+", "-", f"{metric}-by-{label}")
    return Table(name, f"{metric} by {label} (%)", [label, "n", *results.systems], rows)


def passages_note(results: Results) -> str:
    """Return a note on the scores of passages without answers, or ""."""
    if not any(result.statuses.get("passages") for result in results.systems.values()):
        return ""
    return WITHOUT_A_MODEL + (EXACT if "em" in results.metrics else OTHERS)


def _with_interval(result: Result, metric: str, only: Iterable[str] | None = None) -> str:
    mean = result.mean(metric, only)
    if mean is None:
        return ""
    return f"{percent(mean.value)} [{percent(mean.low)}, {percent(mean.high)}]"


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
    head = [
        "system",
        "calls / item, as papers count",
        *_spent_names("item"),
        *_spent_names("built alone"),
        "share of building, s",
    ]
    rows = [
        [
            name,
            number(result.counted.calls),
            *_spent_cells(result.online),
            *_spent_cells(result.alone),
            number(result.share.seconds),
        ]
        for name, result in results.systems.items()
    ]
    return Table(
        "costs",
        "Cost: one item (mean), and building all memories",
        head,
        rows,
        [
            "A memory that several systems use is built once: `built alone` is what one of them "
            "would have paid by itself. Replies from the cache count as paid. Papers do not count "
            "the call that shortens an answer to score it."
        ],
    )


def _spent_names(what: str) -> list[str]:
    return [f"calls / {what}", f"tokens / {what}", f"money / {what}", f"s / {what}"]


def _spent_cells(spent: Spent) -> list[str]:
    return [number(v) for v in (spent.calls, spent.tokens, spent.money, spent.seconds)]


def _statuses(results: Results) -> Table:
    names = (
        "answered",
        "passages",
        "forced",
        "unanswerable",
        "false_abstention",
        "false_acceptance",
    )
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


WITHOUT_A_MODEL = "Without a chat model the answers are passages. "
EXACT = (
    "`em` and `f1` compare whole passages with the short answer, so they stay low; `cover_em` says "
    "whether they contain it."
)
OTHERS = "Scores of answers are for short answers, so they stay low; scores of retrieval are valid."
ALIKE = ("task", "corpus", "arrange", "answers", "files")


def write_comparison(folders: Sequence[Path], against: str) -> Path:
    """Write a report over all runs into the first one's folder; systems are named by run.

    Raises:
        UsageError: the runs cannot be compared.
    """
    runs = {folder.resolve().name: read_results(folder) for folder in folders}
    if len(runs) < len(folders):
        raise UsageError("two of the runs have the same name; rename a folder")
    require_comparable(runs)
    first = next(iter(runs.values()))
    systems = {
        f"{name}: {system}": replace(result, system=f"{name}: {system}")
        for name, run in runs.items()
        for system, result in run.systems.items()
    }
    lines = [
        f"- {name}: {line[2:]}"
        for name, run in runs.items()
        for line in (*made_by(run), *conditions(run.config))
    ]
    others = "-".join(["with", *list(runs)[1:]])
    return write_report(replace(first, systems=systems, made_by=lines), against, others)


def require_comparable(runs: dict[str, Results]) -> None:
    """Check that runs have the same items and conditions."""
    require_same_sample({name: list(run.items) for name, run in runs.items()})
    (first, one), *others = runs.items()
    for name, run in others:
        for what in ALIKE:
            if run.config[what] != one.config[what]:
                raise UsageError(f"{first} and {name} differ in {what}; they cannot be compared")
        windows = [r.config["settings"]["window"] for r in (one, run)]
        if windows[0] != windows[1]:
            raise UsageError(
                f"{first} and {name} have windows of {windows[0]} and {windows[1]} tokens; "
                "results under different budgets cannot be compared"
            )
