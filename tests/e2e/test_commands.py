"""Every command on the sample: what a user sees, and the exit code."""

import json
import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from e2e.conftest import SAMPLE, Shell

QUESTIONS = json.loads((SAMPLE / "questions.json").read_text())["questions"]


def test_the_same_add_again_says_that_nothing_is_new(read_sample: Shell) -> None:
    ran = read_sample("add", str(SAMPLE / "harbour.md"))
    assert ran.code == 0
    assert "already read (by built-in rules); `--rebuild` reads it again" in ran.out


def test_one_segment_is_found_and_quoted(read_sample: Shell) -> None:
    ran = read_sample("ask", QUESTIONS[0]["text"], "--json")
    answer = ran.json
    assert (ran.code, answer["status"]) == (0, "passages")
    assert QUESTIONS[0]["answers"][0].lower() in answer["text"].lower()
    assert answer["citations"]


def test_quotes_are_exactly_what_stands_in_the_document(read_sample: Shell) -> None:
    text = (SAMPLE / "harbour.md").read_text()
    for question in QUESTIONS[:6]:
        for citation in read_sample("ask", question["text"], "--json").json["citations"]:
            assert citation["quote"] == text[citation["start"] : citation["end"]]


def test_two_distant_segments_are_read_for_a_question_that_needs_both(read_sample: Shell) -> None:
    (question,) = [q for q in QUESTIONS[:3] if q["kind"] == "two-segments"]
    answer = read_sample("ask", question["text"], "--json", "--window", "2048").json
    read = {s["segment_id"] for step in answer["trail"]["steps"] for s in step["read"]}
    hits = read_sample("search", question["text"], "-k", "100", "--json").json
    texts = {hit["segment_id"]: hit["text"] for hit in hits}
    for evidence in question["evidence"]:
        assert any(evidence in texts.get(segment, "") for segment in read), evidence


def test_a_question_without_an_answer_in_the_text_is_not_answered(read_sample: Shell) -> None:
    ran = read_sample("ask", "Where did Captain Zorblax keep the whale?", "--json")
    assert (ran.code, ran.json["status"]) == (0, "unanswerable")
    assert ran.json["reason"] == "not found in what was searched: Captain Zorblax"


@pytest.mark.parametrize("strategy", ["reflection", "graph-expansion", "entity-trial"])
def test_every_strategy_answers_and_leaves_a_trail(read_sample: Shell, strategy: str) -> None:
    ran = read_sample("ask", QUESTIONS[0]["text"], "--strategy", strategy, "--json")
    assert (ran.code, ran.json["status"]) == (0, "passages")
    kept = read_sample("trail", ran.json["trail"]["id"], "--json").json
    assert kept["strategy"] == strategy
    assert kept["steps"] == ran.json["trail"]["steps"]
    first = next(step for step in kept["steps"] if step["read"])
    told = [segment["via"] for segment in first["read"]]
    # What the walk over the graph alone reaches was found by no search that could say how.
    assert any(told) if strategy == "graph-expansion" else all(told)
    assert "why: " in read_sample("trail", ran.json["trail"]["id"]).out


def test_steps_are_streamed_before_the_answer(read_sample: Shell) -> None:
    ran = read_sample("ask", QUESTIONS[0]["text"], "--stream", "--json")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert all("step" in line for line in lines[:-1])
    assert lines[-1]["answer"]["status"] == "passages"


def test_choices_are_answered_by_one_of_them(read_sample: Shell) -> None:
    choices = [QUESTIONS[0]["answers"][0], "Nightingale", "Albatross", "Heron"]
    words = [word for choice in choices for word in ("--choice", choice)]
    answer = read_sample("ask", QUESTIONS[0]["text"], "--json", *words).json
    assert answer["text"] == choices[0]
    assert answer["choice"] == 0


def test_search_ranks_and_says_how_it_got_there(read_sample: Shell) -> None:
    hits = read_sample("search", QUESTIONS[0]["text"], "-k", "3", "--json").json
    assert len(hits) == 3
    assert hits[0]["score"] >= hits[1]["score"] >= hits[2]["score"]
    assert all(hit["via"] for hit in hits)


def test_show_knows_the_memory_and_an_entity(read_sample: Shell) -> None:
    shown = read_sample("show", "--json").json
    assert shown["status"]["counts"]["segments"] > 10
    name = shown["entities"][0]["name"]
    entity = read_sample("show", name, "--json").json
    assert entity["entity"]["name"] == name
    assert entity["relations"]
    assert entity["segments"]
    assert read_sample("show", "Nobody Atall").code == 2


def test_status_and_list_and_doctor_say_how_things_are(read_sample: Shell) -> None:
    assert read_sample("status").code == 0
    assert "harbour.md" in read_sample("list").out
    ran = read_sample("doctor")
    assert ran.code == 0
    assert "built-in rules read" in ran.out


def test_graphml_is_written_and_can_be_read_back(read_sample: Shell) -> None:
    import networkx

    ran = read_sample("export", "out.graphml", "--graphml")
    assert ran.code == 0
    graph = networkx.read_graphml(read_sample.folder / "out.graphml")
    assert graph.number_of_nodes() > 20
    assert graph.number_of_edges() > 20


def test_a_trail_as_a_page_says_in_words_who_answered(read_sample: Shell) -> None:
    read_sample("ask", "Who was Lucian Ashby?")
    assert read_sample("trail", "--html", "trail.html").code == 0
    page = (read_sample.folder / "trail.html").read_text(encoding="utf-8")
    assert " · built-in rules (local." in page


def test_deleting_needs_a_word_and_leaves_nothing_behind(qrmem: Shell) -> None:
    qrmem.write("a.txt", "Ada Lovelace met Charles Babbage in London.")
    qrmem.write("b.txt", "Grace Hopper lived in New York.")
    assert qrmem("add", "a.txt", "b.txt").code == 0
    refused = qrmem("delete", "a.txt")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert qrmem("delete", "a.txt", "--yes").code == 0
    assert qrmem("search", "Babbage", "--json").json == []
    names = [entity["name"] for entity in qrmem("show", "--json").json["entities"]]
    assert "Grace Hopper" in names
    assert not any("Lovelace" in name for name in names)
    assert "babbag" not in _everything(qrmem.folder / "test.db"), "the index has stems"


def test_a_deletion_that_was_killed_is_finished_by_the_same_command(qrmem: Shell) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        qrmem.write(name, f"Ada Lovelace met Charles Babbage in London. This is {name}.")
    qrmem("add", "a.txt", "b.txt", "c.txt")
    qrmem("delete", "a.txt", "--yes")
    ran = qrmem("delete", "a.txt", "b.txt", "--yes")
    assert (ran.code, ran.out) == (1, "deleted b.txt\n")
    assert ran.err == "qrmem: no document 'a.txt' in namespace 'default' of test.db\n"
    assert [one["id"] for one in qrmem("list", "--json").json["documents"]] == ["c.txt"]
    assert qrmem("delete", "a.txt", "b.txt", "--yes").code == 2


def _everything(path: Path) -> str:
    with closing(sqlite3.connect(path)) as database:
        listed = database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        ).fetchall()
        rows = [row for (name,) in listed for row in database.execute(f'SELECT * FROM "{name}"')]
    return "\n".join(
        value.decode("latin-1") if isinstance(value, bytes) else str(value)
        for row in rows
        for value in row
    ).lower()


def test_an_update_reads_only_what_changed(qrmem: Shell) -> None:
    chapters = [
        f"## Chapter {n}\n\nIn town {n} lived Anna Number{n}, who kept bees. " * 3
        for n in range(1, 9)
    ]
    qrmem.write("book.md", "\n\n".join(chapters))
    first = qrmem("add", "book.md", "--json").json
    chapters[3] = "## Chapter 4\n\nHere Bernard Newman built a mill."
    qrmem.write("book.md", "\n\n".join(chapters))
    refused = qrmem("add", "book.md")
    assert (refused.code, "--update" in refused.err) == (2, True)
    second = qrmem("add", "book.md", "--update", "--json").json
    assert second["updated"] == ["book.md"]
    assert second["read"] == 1
    assert second["reused"] == first["read"] - 1
    assert "Bernard Newman" in qrmem("search", "Who built a mill?").out


def test_merges_can_be_seen_refused_and_made(qrmem: Shell) -> None:
    qrmem.write(
        "a.txt",
        "Doctor Claudio Ranieri came to Leicester. Then Ranieri won the cup. The Fox cheered.",
    )
    assert qrmem("add", "a.txt").code == 0
    assert "Ranieri" in qrmem("show", "--merges").out
    apart = qrmem("separate", "Ranieri", "Doctor Claudio Ranieri")
    assert apart.out == 'kept: "Ranieri" and "Doctor Claudio Ranieri" are two entities\n'
    assert not [m for m in qrmem("show", "--merges", "--json").json if m["name"] == "Ranieri"]
    joined = qrmem("merge", "Ranieri", "Doctor Claudio Ranieri")
    assert joined.out == 'kept: "Ranieri" and "Doctor Claudio Ranieri" are one entity\n'
    assert [m for m in qrmem("show", "--merges", "--json").json if m["reason"] == "user"]


def test_folders_are_read_and_questions_narrowed(qrmem: Shell) -> None:
    qrmem.write("notes/one.txt", "Mira Stone sailed to Oslo in 1901.")
    qrmem.write("notes/deep/two.md", "# Two\n\nMira Stone sailed to Bergen in 1902.")
    qrmem.write(
        "notes/page.html", "<html><title>Three</title><p>Mira Stone sailed to Turku.</p></html>"
    )
    assert qrmem("add", "notes").code == 0
    assert {d["id"] for d in qrmem("list", "--json").json["documents"]} == {
        "one.txt",
        "deep/two.md",
        "page.html",
    }
    hits = qrmem("search", "Where did Mira Stone sail?", "--document", "deep/two.md", "--json").json
    assert [hit["document_id"] for hit in hits] == ["deep/two.md"]
    qrmem.write("four.txt", "Mira Stone sailed to Riga.")
    assert qrmem("add", "four.txt", "--meta", "year=1904").code == 0
    hits = qrmem("search", "Where did Mira Stone sail?", "--where", "year=1904", "--json").json
    assert [hit["document_id"] for hit in hits] == ["four.txt"]
    assert qrmem("search", "x", "--where", "year=1").code == 2


def test_standard_input_is_a_document(qrmem: Shell) -> None:
    ran = qrmem("add", "-", "--id", "piped", stdin=b"Ada Lovelace met Charles Babbage.")
    assert ran.code == 0
    assert qrmem("search", "Babbage", "--json").json[0]["document_id"] == "piped"


def test_a_namespace_is_a_wall(qrmem: Shell) -> None:
    qrmem.write("a.txt", "Ada Lovelace met Charles Babbage.")
    qrmem.write("b.txt", "Grace Hopper wrote a compiler.")
    assert qrmem("add", "a.txt", "--namespace", "one").code == 0
    assert qrmem("add", "b.txt", "--namespace", "two").code == 0
    assert qrmem("search", "Babbage", "--namespace", "two", "--json").json == []
    assert qrmem("show", "Ada Lovelace", "--namespace", "two").code == 2
    wrong = qrmem("search", "Babbage", "--namespace", "three")
    assert wrong.code == 2
    assert "one, two" in wrong.err


def test_a_misspelt_name_leads_to_those_that_are_near(read_sample: Shell) -> None:
    near = "names like those in the question: Lucian Ashby"
    for words in (
        ("search", "Lucain Ashbey"),
        ("search", "lucain ashbey"),
        ("ask", "Where was Lucain Ashbey born?"),
    ):
        assert near in read_sample(*words).err
    assert "names like" not in read_sample("ask", "Who is Xqzt Vbnm?").err
    of_bob = ("--where", "user=bob")
    assert "names like" not in read_sample("search", "Lucain Ashbey", *of_bob).err
    assert "qrmem show" not in read_sample("ask", "Lucian Ashby", *of_bob).err
    assert "names like" not in read_sample("ask", "Where was Lucian Ashby born?").err


def test_a_miss_says_that_the_words_of_the_question_are_not_there(read_sample: Shell) -> None:
    told = "words: this may be a miss"
    for question in (one["text"] for one in QUESTIONS if one["answers"]):
        assert told not in read_sample("ask", question).out
        assert told not in read_sample("search", question).err
    missed = "Why is the comet pilot unhappy about painting, music and dancing?"
    assert told in read_sample("ask", missed).out
    assert read_sample("search", missed).err.count(told) == 1


def test_words_that_no_passage_has_are_named(read_sample: Shell) -> None:
    asked = "Who took the zebra to Mussel Island?"
    told = "no passage mentions 'zebra'"
    assert f"reason: {told}" in read_sample("ask", asked).out
    assert read_sample("search", asked).err == f"qrmem: {told}\n"
    for question in (one["text"] for one in QUESTIONS if one["answers"]):
        assert "no passage mentions" not in read_sample("ask", question).out


def test_a_name_that_is_asked_for_alone_leads_to_what_is_known_of_it(read_sample: Shell) -> None:
    told = "qrmem: `qrmem show 'Lucian Ashby'` shows what the memory has about Lucian Ashby\n"
    for question in ("Lucian Ashby", "lucian ashby"):
        assert read_sample("ask", question).err == told
    assert read_sample("ask", "Lucian Ashby", "--quiet").err == ""
    for question in ("Who is Lucian Ashby?", "the harbour at night"):
        assert read_sample("ask", question).err == ""


def test_what_a_hint_says_is_done_to_the_memory_that_it_is_about(qrmem: Shell) -> None:
    qrmem.write("a.txt", "Ada Lovelace met Charles Babbage in London.")
    qrmem.write("b.txt", "Nell sails from Skarrow to Vantry.")
    qrmem("add", "a.txt")
    qrmem("add", "b.txt", "-m", "other.db", "-n", "boats")
    asked = qrmem("ask", "Where does Nell sail?", "-m", "other.db", "-n", "boats")
    (hint,) = re.findall(r"\(qrmem (trail .*) shows it\)", asked.out)
    assert "Nell" in qrmem(*shlex.split(hint)).out
    qrmem("export", "a.qrmem")
    refused = qrmem("import", "a.qrmem", "-m", "other.db", "-n", "boats")
    (hint,) = re.findall(r"\(qrmem (delete .*)\)", refused.err)
    assert qrmem(*shlex.split(hint), "--yes").out == "deleted namespace 'boats' from other.db\n"
    assert [one["id"] for one in qrmem("list", "--json").json["documents"]] == ["a.txt"]
