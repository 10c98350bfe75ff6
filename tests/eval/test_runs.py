"""A run from the command line: results, resuming, refusals, failures of single items."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from qrmem.cli import main
from qrmem.config import Secret, Settings
from qrmem.eval import read_results
from qrmem.eval.report.tables import Table
from qrmem.eval.run_folder import RunFolder
from qrmem.eval.running import _git_hash, _plain

pytestmark = pytest.mark.usefixtures("own_folder")

DATA = Path(__file__).parent / "data"
HOTPOT = str(DATA / "hotpot.json")


def run(*words: str, task: str = "hotpotqa", data: str = HOTPOT) -> int:
    return main(["eval", "run", task, "--data", data, "--embedder", "none", "--quiet", *words])


def rows(folder: str) -> dict[tuple[str, str], tuple[str, tuple[str, ...], str]]:
    found = read_results(Path(folder)).rows
    return {key: (row.short, row.prediction.ranked, row.error) for key, row in found.items()}


def test_systems_answer_with_no_model_and_the_report_says_what_was_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("--system", "reflection,bm25:k=1", "--out", "r") == 0
    short = capsys.readouterr().out
    assert re.search(r"^  reflection +3 +[0-9. ]+$", short, re.MULTILINE)
    assert "em and f1 compare whole passages with the short answer" in short
    assert short.endswith("all tables: qrmem eval report r\n")
    assert main(["eval", "report", "r"]) == 0
    told = capsys.readouterr().out
    assert "`em` and `f1` compare whole passages with the short answer" in told
    assert "| reflection | 3 |" in told
    assert "| bm25:k=1 | 3 |" in told
    assert "local reasoner (no chat model)" in told
    others = Path("r/report/other-scores.csv").read_text().splitlines()
    assert {"raw_f1", "recall@1"} <= set(others[0].split(","))
    assert [line.split(",")[0] for line in others[1:]] == ["reflection", "bm25:k=1"]
    short, _, error = rows("r")["reflection", "h2"]
    assert "1832" in short
    assert error == ""


def test_a_run_is_printed_as_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--system", "bm25,search", "--out", "r", "--json") == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert list(told["systems"]) == ["bm25", "search"]
    assert main(["eval", "report", "r", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [told]
    assert main(["eval", "report", "r", "r2", "--json"]) == 2


def test_the_first_items_can_be_left_out_and_their_passages_stay(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--system", "bm25", "--corpus", "union")
    assert run(*words, "--out", "all") == 0
    assert run(*words, "--out", "r", "--skip", "1") == 0
    assert {item for _, item in rows("r")} == {"h2", "h3"}
    assert rows("r").items() <= rows("all").items()
    assert run(*words, "--out", "none", "--skip", "3") == 2
    assert "has no items to run: --skip 3 leaves none" in capsys.readouterr().err


def test_a_run_continues_where_it_stopped() -> None:
    assert run("--system", "bm25,search", "--out", "whole") == 0
    assert run("--system", "bm25,search", "--out", "r") == 0
    kept = Path("r/rows.jsonl")
    lines = kept.read_text().splitlines()
    # Stopped while the third line was written.
    kept.write_text("\n".join([*lines[:2], lines[2][: len(lines[2]) // 2]]))
    before = kept.read_text().splitlines()[:2]
    assert run("--system", "bm25,search", "--out", "r") == 0
    assert kept.read_text().splitlines()[:2] == before
    assert len(kept.read_text().splitlines()) == 6
    assert rows("r") == rows("whole")


def test_every_commit_that_made_results_of_a_run_is_kept() -> None:
    assert run("--system", "bm25", "--out", "r") == 0
    file, kept = Path("r/run.json"), Path("r/rows.jsonl")
    config = json.loads(file.read_text())
    now = config["about"]["git"]
    config["about"]["git"] = "0ldc0de"
    file.write_text(json.dumps(config))
    assert run("--system", "bm25", "--out", "r") == 0
    assert read_results(Path("r")).config["about"]["git"] == "0ldc0de", "nothing was made"
    for _ in range(2):
        kept.write_text("".join(kept.read_text().splitlines(keepends=True)[:2]))
        assert run("--system", "bm25", "--out", "r") == 0
        both = ", ".join(filter(None, ["0ldc0de", now]))
        assert read_results(Path("r")).config["about"]["git"] == both
    assert f"commit {both}" in Path("r/report/report.md").read_text()


def test_outside_a_checkout_no_commit_is_named() -> None:
    assert run("--system", "bm25", "--out", "r") == 0
    file = Path("r/run.json")
    config = json.loads(file.read_text())
    config["about"]["git"] = ""
    file.write_text(json.dumps(config))
    assert main(["eval", "report", "r"]) == 0
    assert "commit" not in Path("r/report/report.md").read_text()


def test_the_list_of_tasks_and_systems_has_no_empty_brackets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["eval", "list"]) == 0
    told = capsys.readouterr().out
    assert "()" not in told
    assert "; your own\n" not in told
    assert "needs a chat model" in told
    assert "qrmem eval build KIND KEY=VALUE … --data" in told, "options stand after the kind"
    assert not [line for line in told.splitlines() if not line.strip()]


def test_a_folder_with_another_configuration_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("--system", "bm25", "--out", "r") == 0
    assert run("--system", "bm25", "--out", "r", "--sample", "2") == 2
    told = capsys.readouterr().err
    assert "another configuration: items.n was 3, now 2; items.sample was '" in told
    assert run("--system", "bm25,search", "--out", "r") == 0, "a system may be added"
    assert len(rows("r")) == 6


def test_two_runs_in_one_folder_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--system", "bm25", "--out", "r") == 0
    folder = RunFolder(Path("r"))
    config = folder.config()
    with folder.begin(config, []):
        assert run("--system", "bm25,search", "--out", "r") == 4
    assert "another run is working in r; wait until it ends" in capsys.readouterr().err
    assert run("--system", "bm25,search", "--out", "r") == 0


def test_a_run_works_where_python_has_no_fcntl() -> None:
    """Windows has none, and another way to lock a file."""
    words = ["eval", "run", "hotpotqa", "--data", HOTPOT, "--system", "search", "--out", "r"]
    code = (
        "import sys; sys.modules['fcntl'] = None\n"
        "from qrmem.cli import main\n"
        f"sys.exit(main({[*words, '--embedder', 'none', '--quiet']!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert len(rows("r")) == 3


def test_a_worker_knows_whether_a_window_was_chosen() -> None:
    for given in (Settings(model="gpt-4o"), Settings(window=900, api_key=Secret("k"))):
        got = Settings().with_(**_plain(given))
        assert (got, got.has_usual_window) == (given, given.has_usual_window)


def test_an_item_that_crashes_is_reported_and_the_others_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    long = json.loads(Path(HOTPOT).read_text())
    long[1]["question"] = "Why " * 5000 + "?"
    Path("long.json").write_text(json.dumps(long))
    assert run("--system", "bm25", "--out", "r", data="long.json") == 1
    assert "failed and not scored: bm25, 1 item: WindowTooSmall" in capsys.readouterr().out
    assert "| bm25 | h2 | WindowTooSmall" in Path("r/report/report.md").read_text()
    done = rows("r")
    assert [item for (_, item), row in done.items() if not row[2]] == ["h1", "h3"]
    assert "| bm25 | 2 |" in Path("r/report/report.md").read_text(), "unscored is not zero"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--system", "bm26"), 2, "did you mean bm25"),
        (("--system", "bm25:q=1"), 2, "has no parameter 'q'"),
        (("--system", "bm25:k=x"), 2, "not a number"),
        (("--system", "dense"), 3, "needs an embedder"),
        ((), 2, "name at least one system"),
        (("--system", "bm25:k=-1"), 2, "-1 is not 0 or more"),
        (("--system", "fragment:alpha=nan"), 2, "nan is not 0 or more"),
        (("--system", "fragment:w_rel=7"), 2, "w_rel must be between 0 and 1"),
        (("--system", "bm25", "--sample", "0"), 2, "at least one item, not 0"),
        (("--system", "bm25", "--sample", "-3"), 2, "at least one item, not -3"),
        (("--system", "bm25,keep-left", "--retrieve"), 2, "'keep-left' only answers"),
        (("--system", "passages", "--retrieve"), 2, "systems that rank, such as search, bm25"),
        (("--system", "bm25", "--first", "-1"), 2, "--first is a number of items, 0 or more"),
        (("--system", "bm25", "--skip", "-1"), 2, "--skip is a number of items, 0 or more"),
        (("--system", "bm25", "--first", "2", "--skip", "2"), 2, "--first 2, --skip 2 leaves none"),
    ],
)
def test_wrong_words_are_refused(
    words: tuple[str, ...], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words, "--out", "r") == code
    assert told in capsys.readouterr().err
    assert not Path("r").exists()


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("rows.jsonl", b"\xff\xfe\n", "rows.jsonl: line 1 cannot be read"),
        ("memories.jsonl", b"nothing\n", "memories.jsonl: line 1 cannot be read"),
        ("memories.jsonl", b"{}\n", "memories.jsonl: line 1 cannot be read (has no build)"),
        ("rows.jsonl", b"[" * 100_000 + b"\n", "rows.jsonl: line 1 cannot be read (maximum rec"),
        ("run.json", b'{"task": "hotpotqa"}', "it lacks 'corpus', or has it in another form)"),
        ("run.json", b"[]", "it has no configuration): name another --out"),
        ("run.json", b"{}", "it has no configuration): name another --out"),
        ("preset.json", b"x", "preset.json cannot be read"),
        ("rows.jsonl", b"", "r has no results yet: run the same `qrmem eval run` again"),
        ("items.jsonl", b"", "items.jsonl lacks the item 'h1', which has a result: delete"),
    ],
)
def test_a_damaged_folder_is_reported_in_words(
    file: str, content: bytes, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--system", "bm25", "--out", "r") == 0
    (Path("r") / file).write_bytes(content)
    assert main(["eval", "report", "r"]) == 2
    assert told in capsys.readouterr().err


def test_the_folder_of_a_preset_is_no_run_to_compare(capsys: pytest.CaptureFixture[str]) -> None:
    Path("p").mkdir()
    Path("p/preset.json").write_text('{"preset": "table-1"}')
    assert run("--system", "bm25", "--out", "r") == 0
    assert main(["eval", "report", "p", "r"]) == 2
    assert "p holds the runs of table-1, each in a folder: name one" in capsys.readouterr().err


def test_every_score_of_passages_is_labelled_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    case: dict[str, object] = {
        "id": "1",
        "question": "Where is Ann?",
        "answer": "hall",
        "answers": ["hall"],
    }
    case |= {"text": "Ann went to the hall.", "spans": [[0, 21]], "task": "qa1", "length": "0k"}
    Path("babilong.jsonl").write_text(json.dumps(case))
    assert run("--system", "bm25", "--out", "r", task="babilong", data="babilong.jsonl") == 0
    assert "the answers are passages. Scores of answers are for short" in capsys.readouterr().out


def test_items_that_were_deleted_are_written_again() -> None:
    assert run("--system", "bm25", "--out", "r") == 0
    items = Path("r/items.jsonl")
    before = items.read_text()
    items.unlink()
    assert run("--system", "bm25", "--out", "r") == 0
    assert items.read_text() == before


def test_answers_that_there_are_not_cannot_be_rated(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--system", "bm25", "--retrieve", "--out", "r") == 0
    model = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    assert main(["eval", "judge", "r", *model]) == 2
    assert "r has no answers to rate: it was run with --retrieve" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["run", "plan"])
def test_a_preset_refuses_what_it_would_not_look_at(
    action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--corpus", "union", "--skip", "2", "--abstain", "--retrieve")
    assert main(["eval", action, "table-1", "--data", ".", *words]) == 2
    told = capsys.readouterr().err
    assert "table-1 is a preset, which sets this itself: leave --corpus, --skip, --abstain" in told


def test_a_report_keeps_no_table_of_failures_that_are_mended() -> None:
    assert run("--system", "bm25", "--out", "r") == 0
    kept = Path("r/rows.jsonl")
    lines = kept.read_text().splitlines()
    failed = {**json.loads(lines[0]), "error": "it failed"}
    kept.write_text("\n".join([json.dumps(failed), *lines[1:], ""]))
    assert main(["eval", "report", "r"]) == 0
    assert "it failed" in Path("r/report/errors.csv").read_text()
    assert run("--system", "bm25", "--out", "r") == 0
    assert not Path("r/report/errors.csv").exists()


def test_sums_over_memories_are_exact_in_any_order() -> None:
    assert run("--system", "reflection", "--out", "r") == 0
    kept = Path("r/memories.jsonl")
    built = [json.loads(line) for line in kept.read_text().splitlines()]
    assert len(built) == 3
    # Added one after the other in any order, they lose the last two.
    for entry, seconds in zip(built, (2.0**53, 1.0, 2.0**-60), strict=True):
        entry["seconds"] = seconds
    kept.write_text("".join(f"{json.dumps(entry)}\n" for entry in built))
    assert read_results(Path("r")).systems["reflection"].alone.seconds == 2.0**53 + 2


@pytest.mark.parametrize(
    ("task", "data", "told"),
    [
        ("hotpotqa", "nowhere", "hotpotqa.github.io"),
        ("hotpotqa", ".", "holds none of"),
        ("hotpotqa", "nowhere", "there is no file or folder nowhere: give --data the file"),
        (
            "narrativeqa",
            ".",
            "not a folder with qaps.csv; the data: https://github.com/google-deep",
        ),
        (
            "plain",
            ".",
            "not a folder with questions.jsonl; how to write it: https://",
        ),
        ("tabel-2", ".", "no task or preset is called 'tabel-2'; did you mean table-2?"),
        ("xyz", ".", "no task or preset is called 'xyz'; `qrmem eval list` shows them"),
        ("hotpotq", HOTPOT, "did you mean hotpotqa"),
        ("musique", HOTPOT, "has no field 'paragraphs': is it a file of another data set?"),
    ],
)
def test_wrong_data_is_refused_with_where_to_get_it(
    task: str, data: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--system", "bm25", task=task, data=data) == 2
    assert told in capsys.readouterr().err


def test_two_workers_give_the_results_of_one() -> None:
    words = ("--system", "reflection,bm25", "--corpus", "union")
    assert run(*words, "--out", "one") == 0
    assert run(*words, "--out", "two", "--workers", "2") == 0
    assert rows("one") == rows("two")
    built = RunFolder(Path("two")).memories()
    assert len(built) == 1, "one of them builds, the other waits"


def test_workers_keep_no_cap(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--system", "bm25", "--out", "r", "--workers", "2", "--max-calls", "3") == 2
    assert "leave --workers out" in capsys.readouterr().err


def test_a_memory_that_a_question_shapes_is_that_questions_own() -> None:
    full = "reflection:orientation=full"
    words = ("--system", f"{full},bm25", "--corpus", "union")
    assert run(*words, "--out", "r") == 0
    built = RunFolder(Path("r")).memories()
    assert sorted(one.build.question for one in built)[0] == ""
    assert len({one.memory for one in built}) == len(built) == 4
    assert all(one.states == {"ok": 6} for one in built), "every segment is read"
    found = read_results(Path("r")).rows
    assert len({row.prediction.memory for (name, _), row in found.items() if name == full}) == 3


def test_a_line_of_a_run_that_cannot_be_read_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--system", "bm25", "--out", "r") == 0
    lines = Path("r/rows.jsonl").read_text().splitlines()
    Path("r/rows.jsonl").write_text("\n".join([lines[0], lines[1][:50], lines[2], ""]))
    assert run("--system", "bm25", "--out", "r") == 2
    assert "rows.jsonl: line 2 cannot be read" in capsys.readouterr().err
    Path("r/rows.jsonl").write_text("\n".join([lines[0], lines[2], ""]))
    assert run("--system", "bm25", "--out", "r") == 0
    assert len(rows("r")) == 3


def test_an_invalid_memory_fails_only_its_own_items(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--system", "bm25", "--out", "r") == 0
    first = read_results(Path("r")).rows["bm25", "h1"].prediction.memory
    Path(f"r/memories/{first}.db").write_text("this is no memory")
    assert run("--system", "bm25,search", "--out", "r") == 1
    told = capsys.readouterr().out
    assert "not scored: search, 1 item: UsageError: " in told
    assert f"r/memories/{first}.db is not a qrmem memory" in told
    failed = [key for key, row in rows("r").items() if row[2]]
    assert failed == [("search", "h1")]


def test_a_system_without_its_extra_says_how_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--system", "llmlingua-2", "--out", "r") == 3
    assert '-m pip install "qrmem[llmlingua]"' in capsys.readouterr().err


@pytest.mark.parametrize("system", ["memwalker", "decom", "read-agent-p", "latest-chat"])
def test_a_system_that_needs_a_model_says_so(
    system: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--system", f"bm25,{system}", "--out", "r") == 3
    assert f"{system!r} needs a chat model: --model and --base-url" in capsys.readouterr().err
    assert not Path("r").exists(), "nothing is begun"


def test_a_folder_that_holds_something_else_is_not_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("mine").mkdir()
    Path("mine/thesis.txt").write_text("Chapter 1")
    assert run("--system", "bm25", "--out", "mine") == 2
    assert "mine is not a run folder (it holds thesis.txt)" in capsys.readouterr().err
    assert [path.name for path in Path("mine").iterdir()] == ["thesis.txt"]


def test_for_rankings_alone_nothing_is_answered() -> None:
    assert run("--system", "bm25,search,fragment", "--retrieve", "--out", "r") == 0
    found = read_results(Path("r")).rows.values()
    assert all(row.prediction.ranked and row.prediction.is_ranking for row in found)


def test_evidence_turns_within_a_budget_are_measured_without_a_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = str(DATA / "locomo.json")
    systems = "recall:tokens=14,recall-bm25:tokens=14,recall-search,recall-fragrel"
    words = ("--system", systems, "--retrieve", "--out", "r")
    assert run(*words, task="locomo", data=data) == 0
    told = capsys.readouterr().out
    assert "evidence" in told
    found = rows("r")
    report = Path("r/report/report.md").read_text(encoding="utf-8")
    assert "evidence in the data that no text contains: 1 piece, of 1 item" in report
    assert found["recall:tokens=14", "locomo-1"][1][0] == "turn-00000001"
    assert len(found["recall:tokens=14", "locomo-1"][1]) < 3
    assert set(found["recall-search", "locomo-2"][1]) >= {"turn-00000002", "turn-00000003"}


def test_a_recalling_system_refuses_what_is_no_conversation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run("--system", "recall", "--retrieve", "--out", "r")
    assert all("LoCoMo" in error for _, _, error in rows("r").values())


def test_a_comparison_stands_beside_the_reports_of_its_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--system", "bm25,search", "--out", "a") == 0
    monkeypatch.setenv("QRMEM_SEGMENT_TOKENS", "100")
    assert run("--system", "search", "--out", "b") == 0
    own = {path: path.read_bytes() for path in Path("a/report").iterdir()}
    capsys.readouterr()
    assert main(["eval", "report", "a", "b", "--against", "b: search"]) == 0
    told = capsys.readouterr().out
    assert "Differences from b: search" in told
    for line in ("- a: tokenizer: ", "- b: tokenizer: "):
        assert told.count(line) == 1, "what shaped each run is said of each"
    assert "segments of 100 tokens" in told
    assert Path("a/report/with-b/report.md").read_text() == told.removesuffix("\n")
    kept = {path: path.read_bytes() for path in Path("a/report").iterdir() if path.is_file()}
    assert kept == own
    monkeypatch.chdir("a")
    assert main(["eval", "report", ".", "../b"]) == 0
    assert "| a: bm25 | 3 |" in capsys.readouterr().out, "a run has the name of its folder"


def test_a_run_that_was_refused_at_its_first_call_leaves_the_folder_free(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert run("--system", "full-text", "--out", "r", "--model", "gpt-5-nano") == 3
    assert "no key" in capsys.readouterr().err
    assert run("--system", "bm25", "--out", "r", "--sample", "2") == 0
    assert len(rows("r")) == 2
    assert run("--system", "full-text", "--out", "r", "--sample", "2", "--model", "m") == 2
    assert "settings.model was '', now 'm'" in capsys.readouterr().err


def test_the_commit_of_a_checkout_around_the_package_is_not_named(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        return subprocess.run(
            ["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    own, installed = tmp_path / "own.py", tmp_path / ".venv" / "running.py"
    installed.parent.mkdir()
    for file in (own, installed):
        file.write_text("a = 1\n")
    git("init", "-q")
    git("add", "own.py")
    git("commit", "-qm", "first")
    assert _git_hash(installed) == ""
    assert _git_hash(own) == git("rev-parse", "--short", "HEAD")
    own.write_text("a = 2\n")
    assert _git_hash(own).endswith("+")


def test_no_cell_of_a_csv_file_is_a_formula() -> None:
    formulas = ["=1+1", "@SUM(A1)", "+1+cmd|' /C calc'!A0", "-2+3", "\t=1", "\r=1", "-", "+x"]
    numbers = ["-1.2", "+3", "4,000", "-5%", "", "12.3 [-1.0, 2.0]", "a=b"]
    table = Table("errors", "", formulas, [[*numbers, ""], formulas])
    head, plain, row = csv.reader(io.StringIO(table.csv(), newline=""))
    assert head == row == [f"'{cell}".replace("\r", " ") for cell in formulas]
    assert plain == [*numbers, ""]
