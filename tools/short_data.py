"""Makes a folder of data for all presets: the real files' first questions, over shortened texts.

Good for proving that something runs, and for nothing else: what answers a question may be cut off.
QuALITY is taken from L-Eval, which does not say what is hard: every other question is called so.
RepoEval's repository is a part of this checkout.
"""

import json
import tempfile
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from qrmem.eval import Corpus, load
from qrmem.eval.datasets.books import leval
from qrmem.eval.registry import build

Json = Any

CODE = Path(__file__).parent.parent / "qrmem" / "eval"
HOLES_IN = "metrics.py"
ARRANGED = 8
"""Questions with ten passages or more each: enough for the 40 that Table 3 and Figure 5 want."""


TURNS = 5
"""Of a conversation."""


def write_data(folder: Path, data: Path, *, items: int, words: int) -> None:
    """Write the files of all presets.

    Args:
        data: with the real files.
        items: of each file.
        words: of each text; half as many of those that a memory is built of for every question.
    """
    (folder / "longbench").mkdir(parents=True, exist_ok=True)
    lengths = {"hotpotqa": words // 2, "2wikimqa": words // 2, "musique": words // 2}
    for name, length in {**lengths, "narrativeqa": words, "gov_report": words}.items():
        lines = _longbench(name, data / "longbench" / f"{name}.json", items, length)
        _write_lines(folder / "longbench" / f"{name}.jsonl", lines)
    quality = _quality(data / "quality" / "leval_quality15docs.jsonl", items, words)
    _write_lines(folder / "QuALITY.v1.0.1.htmlstripped.dev", [quality])
    sessions = _json(data / "mtbenchplus" / "mtbenchplus.json")[:items]
    _write(folder / "mtbenchplus.json", [_shorter_session(session, words) for session in sessions])
    _arranged(folder, data)
    _repoeval(folder, items)
    _adaleval(folder, data, items, words)
    with tempfile.TemporaryDirectory() as out:
        _needles(folder, data, Path(out))


def _adaleval(folder: Path, data: Path, items: int, words: int) -> None:
    """Write the same short cases under the name of each length."""
    with tempfile.TemporaryDirectory() as out:
        build("tsort", data / "gutenberg", Path(out) / "set", ("length=2k", f"count={items}"))
        lines = (Path(out) / "set" / "tsort_2k.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    for case in cases:
        case["segments"] = [_beginning(text, words // 2) for text in case["segments"]]
        case |= {side: _beginning(case[side], words // 2) for side in ("before", "after")}
    asked = _json(data / "adaleval" / "bestanswer_1k_first500.json")[:items]
    for item in asked:
        item["all_answers"] = [_beginning(text, words // 2) for text in item["all_answers"]]
    for length in (1, 2, 4, 6, 8, 12, 16, 32, 64, 128):
        _write_lines(folder / f"tsort_{length}k.jsonl", cases)
        _write_lines(folder / f"bestanswer_{length}k.jsonl", asked)


def _needles(folder: Path, data: Path, out: Path) -> None:
    """Write five cases of M-NIAH and of BABILong."""
    build("niah", data / "niah" / "PaulGrahamEssays", out / "niah", ("length=1k",))
    build("babilong", data / "babi" / "en", out / "babilong", ("length=0k", "cases=1"))
    for name in ("niah", "babilong"):
        lines = (out / name / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        _write_lines(folder / f"{name}.jsonl", map(json.loads, lines))


def _longbench(name: str, path: Path, items: int, words: int) -> Iterable[Json]:
    found = load(f"longbench-{name}", path, Corpus())
    for item in found.items[:items]:
        text = found.contexts[item.context].documents[0].text
        yield {
            "_id": item.id,
            "input": item.question,
            "context": _beginning(text, words),
            "answers": list(item.answers),
        }


def _quality(path: Path, items: int, words: int) -> Json:
    found = leval(path)
    first = found.items[0].context
    own = [item for item in found.items if item.context == first][:items]
    questions = [
        {
            "question": item.question,
            "question_unique_id": item.id,
            "options": list(item.choices),
            "gold_label": (item.choice or 0) + 1,
            "difficult": n % 2,
        }
        for n, item in enumerate(own)
    ]
    text = _beginning(found.contexts[first].documents[0].text, words)
    return {"article_id": first, "title": "", "article": text, "questions": questions}


def _shorter_session(session: Json, words: int) -> Json:
    """Return the end of a session, its turns cut; the last one is the question."""
    turns = [turn for turn in session["conversations"] if turn["from"] == "human"][-TURNS:]
    each = max(8, words // len(turns))
    cut = [{**turn, "value": _beginning(turn["value"], each)} for turn in turns]
    return {**session, "conversations": cut}


def _arranged(folder: Path, data: Path) -> None:
    """Write what Table 3 and Figure 5 arrange: all passages, cut to a few words."""
    hotpot = _json(data / "hotpotqa" / "hippo_train100.json")[:ARRANGED]
    wiki = _json(data / "2wikimultihopqa" / "migres_train500_llm_decomp.jsonl")[:ARRANGED]
    for name, records in (("hotpotqa", hotpot), ("2wikimultihopqa", wiki)):
        for record in records:
            record["context"] = [[title, [_few(text)]] for title, text in record["context"]]
        _write(folder / f"{name}.json", records)
    musique = _json(data / "musique" / "hippo_train100.json")[:ARRANGED]
    for record in musique:
        for paragraph in record["paragraphs"]:
            paragraph["paragraph_text"] = _few([paragraph["paragraph_text"]])
    _write_lines(folder / "musique.json", musique)


def _few(sentences: Iterable[str]) -> str:
    return _beginning(" ".join(sentences), 3)


def _repoeval(folder: Path, items: int) -> None:
    """Write holes in our own code: each line is asked for from what stands before it."""
    code = folder / "repositories" / "qrmem_eval" / "eval"
    code.mkdir(parents=True, exist_ok=True)
    for path in CODE.glob("*.py"):
        (code / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    lines = (CODE / HOLES_IN).read_text(encoding="utf-8").splitlines()
    holes = [n for n, line in enumerate(lines) if n > 10 and len(line.split()) > 3]
    records = [_hole(lines, n) for n in islice(holes, items)]
    for level in ("line", "api"):
        _write_lines(folder / f"{level}_level_completion_2k_context_codex.test.jsonl", records)


def _hole(lines: list[str], n: int) -> Mapping[str, Json]:
    first = max(0, n - 12)
    return {
        "prompt": "".join(f"{line}\n" for line in lines[first:n]),
        "metadata": {
            "task_id": f"qrmem_eval/{n}",
            "ground_truth": lines[n],
            "fpath_tuple": ["qrmem_eval", "eval", HOLES_IN],
            "context_start_lineno": first,
            "line_no": n,
        },
    }


def _beginning(text: str, words: int) -> str:
    return " ".join(text.split()[:words])


def _json(path: Path) -> Json:
    return json.loads(path.read_text(encoding="utf-8"))


def _write(path: Path, value: Json) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def _write_lines(path: Path, values: Iterable[Json]) -> None:
    lines = (json.dumps(value, ensure_ascii=False) for value in values)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
