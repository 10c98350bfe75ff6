"""Export and import on the command line: archives, stopped imports, foreign extractions."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from e2e.conftest import Shell
from e2e.test_bad_input import assert_one_line

import qrmem.sync
from qrmem.errors import UsageError

TEXTS = 300
"""Documents of a memory whose import takes long enough to be stopped."""
SLOW_AT_LAST = f"""
import asyncio, sys
from qrmem.io.archive.importing import _Filling as Filling
from qrmem.cli import main

take = Filling.take

async def slowly(self, kind, value):
    if len(self.documents) > {TEXTS // 3}:
        await asyncio.sleep(0.05)
    await take(self, kind, value)

Filling.take = slowly
sys.exit(main())
"""
"""The command as a program that takes its time after a while, so that it is not done too soon."""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The archive of a memory of many small documents, with their words in common."""
    shell = Shell(tmp_path_factory.mktemp("many"))
    for n in range(TEXTS):
        shell.write(f"texts/{n}.txt", f"Ada Lovelace met Charles Babbage in Room {n} of London.")
    assert shell("add", "texts").code == 0
    ran = shell("export", "many.qrmem")
    assert (ran.code, f"{TEXTS} documents" in ran.out) == (0, True), ran.err
    return (shell.folder / "many.qrmem").read_bytes()


def test_a_memory_moves_to_another_file_and_answers_there(read_sample: Shell, qrmem: Shell) -> None:
    before = read_sample("export", str(qrmem.folder / "sample.qrmem"), "--json")
    assert (before.code, before.json["documents"]) == (0, 1), before.err
    after = qrmem("import", "sample.qrmem", "--json")
    assert after.code == 0, after.err
    assert {**after.json, "path": ""} == {**before.json, "path": ""}
    for words in (("search", "Who keeps the light?"), ("show",)):
        ours, theirs = qrmem(*words, "--json").json, read_sample(*words, "--json").json
        for found in (ours, theirs):
            if isinstance(found, dict):
                for status in (found, found.get("status", {})):
                    status.pop("revision", None)
                    status.get("counts", {}).pop("trails", None)
        assert ours == theirs
    assert (
        "already read (by built-in rules); `--rebuild` reads it again"
        in qrmem("add", str(Path(__file__).parents[2] / "qrmem/sample/harbour.md")).out
    )
    assert qrmem("export", "again.qrmem").code == 0
    assert (qrmem.folder / "again.qrmem").read_bytes() == (
        qrmem.folder / "sample.qrmem"
    ).read_bytes()


def test_trails_move_with_all(qrmem: Shell) -> None:
    qrmem.write("a.txt", "Ada Lovelace met Charles Babbage in London.")
    assert qrmem("add", "a.txt").code == 0
    trail = qrmem("ask", "Whom did Ada Lovelace meet?", "--json").json["trail"]
    assert qrmem("export", "all.qrmem", "--all").code == 0
    assert qrmem("import", "all.qrmem", "--namespace", "two").code == 0
    assert qrmem("trail", trail["id"], "--namespace", "two", "--json").json == trail
    assert qrmem("export", "plain.qrmem", "--namespace", "two").code == 0
    assert trail["id"].encode() not in (qrmem.folder / "plain.qrmem").read_bytes()


def test_a_refusal_is_one_line_with_what_to_do(qrmem: Shell, exported: bytes) -> None:
    qrmem.write("good.qrmem", exported)
    qrmem.write("cut.qrmem", exported[:-200])
    qrmem.write("newer.qrmem", exported.replace(b'"version":1', b'"version":2'))
    qrmem.write("a.txt", "Ada Lovelace met Charles Babbage in London.")
    assert qrmem("add", "a.txt").code == 0
    before = qrmem("list").out
    for words, code, why in (
        (("import", "good.qrmem"), 2, "--namespace"),
        (("import", "cut.qrmem", "--namespace", "n"), 2, "cut or altered"),
        (("import", "newer.qrmem", "--namespace", "n"), 3, "upgrade qrmem"),
        (("import", "a.txt", "--namespace", "n"), 2, "not a qrmem archive"),
        (("import", "none.qrmem", "--namespace", "n"), 2, "No such file"),
        (("import", "good.qrmem", "--namespace", "n", "--embedder", "openai:x"), 3, "--embedder"),
        (("export", "out", "--namespace", "unknown"), 2, "no namespace 'unknown'"),
        (("export", "test.db"), 2, "is not an archive"),
        (("export", "out", "--graphml", "--all"), 2, "give --graphml or --all, not both"),
        (("export", "no/where"), 2, "no folder"),
    ):
        ran = qrmem(*words)
        assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1), ran
        assert why in ran.err
    assert qrmem("list").out == before
    assert sorted(path.name for path in qrmem.folder.iterdir() if "out" in path.name) == []


def _started_import(qrmem: Shell) -> subprocess.Popen[bytes]:
    """Return an import that has written something and is not done."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_AT_LAST, "import", "many.qrmem"],
        cwd=qrmem.folder,
        env=qrmem.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    path = qrmem.folder / "test.db"
    while process.poll() is None and not _documents(path):
        time.sleep(0.002)
    return process


def _documents(path: Path) -> int:
    """Return how many documents are in a memory that somebody is writing to."""
    if not path.exists():
        return 0
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=0)
    try:
        return int(db.execute("SELECT count(*) FROM document").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        db.close()


def test_a_killed_import_leaves_nothing_that_passes_for_a_memory(
    qrmem: Shell, exported: bytes
) -> None:
    qrmem.write("many.qrmem", exported)
    process = _started_import(qrmem)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it was done before it could be killed"
    assert 0 < _documents(qrmem.folder / "test.db") < TEXTS
    qrmem.write("a.txt", "Ada Lovelace met Charles Babbage in London.")
    for words in (
        ("status",),
        ("list",),
        ("search", "Ada"),
        ("add", "a.txt"),
        ("export", "half.qrmem"),
    ):
        ran = qrmem(*words)
        assert (ran.code, ran.out) == (2, ""), ran
        assert "run the same import again" in ran.err.splitlines()[-1], ran
    assert qrmem("import", "many.qrmem").code == 0
    assert qrmem("export", "again.qrmem").code == 0
    assert (qrmem.folder / "again.qrmem").read_bytes() == exported


def test_a_half_imported_namespace_can_be_forgotten(qrmem: Shell, exported: bytes) -> None:
    qrmem.write("many.qrmem", exported)
    process = _started_import(qrmem)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert qrmem("delete", "--all", "--yes").code == 0
    assert qrmem("list", "--json").json == {"namespaces": [], "documents": []}


def test_an_interrupted_import_leaves_nothing(qrmem: Shell, exported: bytes) -> None:
    qrmem.write("many.qrmem", exported)
    process = _started_import(qrmem)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert (process.returncode, err.count(b"\n")) == (130, 1), err
    assert [path.name for path in qrmem.folder.iterdir()] == ["many.qrmem"]


def test_extractions_made_elsewhere_are_read(qrmem: Shell) -> None:
    doc = {
        "title": "Ada",
        "text": "Ada Lovelace met Charles Babbage in London.",
        "extracted_entities": ["Ada Lovelace", "Paris"],
        "extracted_triples": [["Ada Lovelace", "met", "Charles Babbage"], ["Ada", "met"]],
    }
    qrmem.write("openie.json", json.dumps({"docs": [doc]}))
    ran = qrmem("import", "--openie", "openie.json")
    assert ran.code == 0, ran.err
    assert "1 new" in ran.out
    assert "1 names and 0 triples do not occur" in ran.out
    shown = qrmem("show", "Ada Lovelace", "--json").json
    assert [r["description"] for r in shown["relations"]] == ["Ada Lovelace met Charles Babbage"]
    qrmem.write("bad.tsv", "Ada\tmet\tBob\tnowhere\n")
    ran = qrmem("import", "--openie", "bad.tsv")
    assert (ran.code, ran.err.count("\n"), "line 1" in ran.err) == (2, 1, True)


def test_a_script_without_await_moves_a_memory(tmp_path: Path) -> None:
    with qrmem_sync(tmp_path / "a.db") as memory:
        memory.add({"id": "d", "text": "Ada Lovelace met Charles Babbage."})
        done = memory.export(tmp_path / "a.qrmem")
    with qrmem_sync(tmp_path / "b.db") as memory:
        assert memory.load(tmp_path / "a.qrmem") == done
        assert memory.search("Whom did Ada meet?")[0].document_id == "d"
        report = memory.load_openie(_triples(tmp_path))
        assert (report.attached, report.triples) == (1, 1)


def qrmem_sync(path: Path) -> qrmem.sync.Memory:
    return qrmem.sync.open(os.fspath(path), embedder="none")


def _triples(folder: Path) -> Path:
    path = folder / "t.tsv"
    path.write_text("Ada Lovelace\ttaught\tCharles Babbage\td\n")
    return path


def test_an_export_replaces_nothing_of_another_program(qrmem: Shell) -> None:
    qrmem.write("note.txt", "Ann met Bob in Oslo.")
    assert qrmem("add", "note.txt", "-m", "w.db").code == 0
    qrmem.write("art.svg", "<?xml version='1.0' encoding='utf-8'?>\n<svg/>")
    ran = qrmem("export", "art.svg", "--graphml", "--force", "-m", "w.db")
    assert_one_line(ran, 2, "art.svg exists and is not a GraphML file")
    for name in ("w.db-wal", "w.db-journal"):
        ran = qrmem("export", name, "-m", "w.db")
        assert_one_line(ran, 2, f"{name} belongs to the database beside it")
        assert not (qrmem.folder / name).exists()


@pytest.mark.parametrize("words", [(), ("--graphml",)])
def test_an_export_replaces_a_file_only_if_it_is_asked_to(
    qrmem: Shell, words: tuple[str, ...]
) -> None:
    qrmem("add", "-", "--id", "ann", "-n", "one", stdin=b"Ann met Bob in Rome.")
    qrmem("add", "-", "--id", "cid", "-n", "two", stdin=b"Cid left Dora in Oslo.")
    assert qrmem("export", "a.out", "-n", "one", *words).code == 0
    first = (qrmem.folder / "a.out").read_bytes()
    ran = qrmem("export", "a.out", "-n", "two", *words)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "a.out exists already" in ran.err
    assert "--force" in ran.err
    assert (qrmem.folder / "a.out").read_bytes() == first
    assert qrmem("export", "a.out", "-n", "two", "--force", *words).code == 0
    assert (qrmem.folder / "a.out").read_bytes() != first


def test_a_script_replaces_no_archive_unless_it_says_so(tmp_path: Path) -> None:
    place = tmp_path / "a.qrmem"
    with qrmem_sync(tmp_path / "a.db") as memory:
        memory.add({"id": "d", "text": "Ada Lovelace met Charles Babbage."})
        done = memory.export(place)
        with pytest.raises(UsageError, match="overwrite=True"):
            memory.export(place)
        assert memory.export(place, overwrite=True) == done
        for write in (memory.export, memory.graphml, memory.markdown, memory.load):
            for none in (None, ""):
                with pytest.raises(UsageError, match="path"):
                    write(none)  # type: ignore[arg-type]
