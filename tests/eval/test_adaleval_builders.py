"""`qrmem eval build tsort|bestanswer`: what is built, that it is built again, what is refused."""

import json
from html import escape
from pathlib import Path
from typing import Any

import pytest
from documents import epub_file
from e2e.conftest import Shell

from benchmarks.adaleval import built, write_dump
from qrmem.errors import QrmemError, UsageError
from qrmem.eval.builders.threads import plain
from qrmem.eval.builders.tsort import cleaned
from qrmem.eval.registry import build
from qrmem.llm.tokenizers import open_tokenizer

COUNT = open_tokenizer("builtin").count


def story(paragraphs: int, words: int = 40) -> str:
    """Return prose in paragraphs that all differ, under chapter headings."""
    parts = []
    for n in range(paragraphs):
        if n % 20 == 0:
            parts.append(f"CHAPTER {n // 20 + 1}")
        parts.append(
            f"On day {n} " + " ".join(f"word{n}x{k}" for k in range(words // 4)) + " ended."
        )
    return "\n\n".join(parts)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def in_order(case: dict[str, Any]) -> str:
    """Return a case's text as its answer says."""
    parts = [case["segments"][n - 1] for n in case["answer"]]
    return "\n\n".join([case["before"], *parts, case["after"]])


def thread(n: int, answers: int = 4, **changes: Any) -> dict[str, Any]:
    """Return a thread whose last answer but one is accepted."""
    found = [
        {"id": n * 100 + k, "body": f"Reply {k} to question {n}. " * 8, "date": f"2020-01-0{k + 1}"}
        for k in range(answers)
    ]
    return {
        "id": n,
        "title": f"Question {n}",
        "body": f"How is thing {n} done?",
        "tags": ["python", f"tag{n % 3}"],
        "views": n,
        "accepted_answer_id": n * 100 + max(0, answers - 2),
        "answers": found,
    } | changes


def written(path: Path, threads: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, threads)), encoding="utf-8")
    return path


def dump(path: Path, threads: list[dict[str, Any]]) -> Path:
    """Write threads as Stack Exchange's `Posts.xml`."""
    rows = []
    for t in threads:
        tags = escape("".join(f"<{tag}>" for tag in t["tags"]))
        body = escape(f"<p>{t['body']}</p>", quote=True)
        rows.append(
            f'<row Id="{t["id"]}" PostTypeId="1" AcceptedAnswerId="{t["accepted_answer_id"]}" '
            f'CreationDate="2020" ViewCount="{t["views"]}" Body="{body}" Title="{t["title"]}" '
            f'Tags="{tags}" />'
        )
        rows += [
            f'<row Id="{a["id"]}" PostTypeId="2" ParentId="{t["id"]}" CreationDate="{a["date"]}" '
            f'Body="{escape("<p>" + a["body"] + "</p>", quote=True)}" />'
            for a in t["answers"]
        ]
    path.write_text("<?xml version='1.0'?><posts>\n" + "\n".join(rows) + "\n</posts>")
    return path


# --- TSort ---------------------------------------------------------------------------------------


def test_labels_at_the_head_of_a_long_paragraph_do_not_tell_its_place() -> None:
    told = "First: the whale is the largest of all that live in the sea, and nobody doubts it. " * 3
    heads = ("BOOK I. (Folio), CHAPTER II. (Right Whale).—", "CHAPTER 3. ", "Part II.--Chapter 4: ")
    for head in heads:
        assert [text for text, _ in cleaned(head + told)] == [told.strip()]
    for kept in ("Chapter 3 was long, he said. ", "Part of it was lost. ", "I. said nothing. "):
        assert [text for text, _ in cleaned(kept + told)] == [(kept + told).strip()]


def test_a_case_is_consecutive_text_and_its_answer_puts_it_right(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(story(300))
    build("tsort", tmp_path / "book.txt", tmp_path / "out", ("length=2k", "seed=7"))
    cases = lines(tmp_path / "out" / "tsort_2k.jsonl")
    whole = "\n\n".join(text for text, _ in cleaned(story(300)))
    assert len(cases) >= 3
    assert len({tuple(case["answer"]) for case in cases}) > 1
    for case in cases:
        assert in_order(case) in whole
        assert all(COUNT(segment) <= 350 for segment in case["segments"])
        assert max(COUNT(case["before"]), COUNT(case["after"])) <= 200
        assert 1500 < case["tokens"] <= 2000
        assert "CHAPTER" not in json.dumps(case)


def test_prose_that_tells_a_part_s_number_is_in_no_case(tmp_path: Path) -> None:
    whole = story(300)
    told = "Thus ends BOOK II (Octavo), and begins BOOK III of the whales, said the old sailor."
    kept = "On day 150 he played a Part in it, and the Book Is Open stood on Volume after volume."
    for name, text in (("plain", "On day 150"), ("kept", kept), ("told", told)):
        (tmp_path / f"{name}.txt").write_text(whole.replace("On day 150 ", f"{text} "))
        build("tsort", tmp_path / f"{name}.txt", tmp_path / name, ("length=2k", "stride=4"))
    cases = {name: lines(tmp_path / name / "tsort_2k.jsonl") for name in ("plain", "kept", "told")}
    assert "BOOK I" not in json.dumps([case["segments"] for case in cases["told"]])
    assert "played a Part" in json.dumps([case["segments"] for case in cases["kept"]])
    about = json.loads((tmp_path / "told" / "manifest.json").read_text())
    (left,) = (n for why, n in about["left_out"].items() if "tells a chapter's number" in why)
    assert len(cases["kept"]) == len(cases["plain"]) == len(cases["told"]) + left


def test_the_same_seed_makes_the_same_bytes_and_a_manifest_makes_them_again(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(story(400))
    source = tmp_path / "book.txt"
    build("tsort", source, tmp_path / "a", ("length=1k,2k", "seed=3", "count=4"))
    build("tsort", source, tmp_path / "b", (f"manifest={tmp_path / 'a' / 'manifest.json'}",))
    build("tsort", source, tmp_path / "c", ("length=1k,2k", "seed=4", "count=4"))
    for name in ("tsort_1k.jsonl", "tsort_2k.jsonl", "manifest.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
        assert (tmp_path / "a" / name).read_bytes() != (tmp_path / "c" / name).read_bytes()
    found = json.loads((tmp_path / "a" / "manifest.json").read_text())
    assert [one["cases"] for one in found["files"]] == [4, 4]
    assert found["counter"] == "builtin-v1"
    source.write_text(story(401))
    with pytest.raises(UsageError, match="the sources differ from those"):
        build("tsort", source, tmp_path / "d", (f"manifest={tmp_path / 'a' / 'manifest.json'}",))
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("seed=9", "seed=9 contradicts .*manifest.json, which has seed=3"),
        ("length=4k", "length=4k contradicts .* length=1k,2k"),
        ("count=0", "count=0 contradicts .* count=4"),
        ("tokenizer=cl100k", "tokenizer=cl100k contradicts .* tokenizer=builtin-v1"),
    ],
)
def test_an_option_that_contradicts_the_manifest_is_refused(
    tmp_path: Path, option: str, told: str
) -> None:
    source, manifest = tmp_path / "book.txt", tmp_path / "a" / "manifest.json"
    source.write_text(story(400))
    build("tsort", source, tmp_path / "a", ("length=1k,2k", "seed=3", "count=4"))
    with pytest.raises(UsageError, match=told) as caught:
        build("tsort", source, tmp_path / "b", (f"manifest={manifest}", option))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "b").exists()
    build("tsort", source, tmp_path / "b", (f"manifest={manifest}", "seed=3"))
    assert manifest.read_bytes() == (tmp_path / "b" / "manifest.json").read_bytes()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"counter": None}, "has no field 'counter'"),
        ({"sources": None}, "has no field 'sources'"),
        ({"files": [{"file": "x"}]}, "has no field 'sha256'"),
        ({"files": 3}, "not iterable"),
        ({"options": ["seed"]}, "not a mapping"),
        ({"options": {"seed": [1]}}, "texts and numbers"),
        ({"options": {"seed": "one"}}, "seed: 'one' is not a number"),
        ({"options": {"sed": 1}}, "no parameter 'sed'"),
        ({"counter": "none"}, "no tokenizer 'none'"),
        ({"builder": "bestanswer"}, "of the builder bestanswer"),
    ],
)
def test_a_manifest_that_was_changed_is_refused_on_one_line(
    tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    source, manifest = tmp_path / "book.txt", tmp_path / "a" / "manifest.json"
    source.write_text(story(100))
    build("tsort", source, tmp_path / "a", ("length=1k",))
    changed = {**json.loads(manifest.read_text()), **change}
    manifest.write_text(json.dumps({k: v for k, v in changed.items() if v is not None}))
    with pytest.raises(UsageError, match=told) as caught:
        build("tsort", source, tmp_path / "b", (f"manifest={manifest}",))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "b").exists()


def test_a_length_that_is_named_twice_is_built_once(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(story(100))
    build("tsort", tmp_path / "book.txt", tmp_path / "out", ("length=1k,1000,1K,0.5k",))
    found = {path.name for path in (tmp_path / "out").glob("*.jsonl")}
    assert found == {"tsort_0.5k.jsonl", "tsort_1k.jsonl"}


def test_a_tokenizer_whose_files_are_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("HTTPS_PROXY", "https_proxy"):  # nothing is downloaded here
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (tmp_path / "book.txt").write_text(story(100))
    for name in ("cl100k", "tiktoken:cl100k_base"):
        with pytest.raises(QrmemError, match="cannot get its file for 'cl100k_base'") as caught:
            build("tsort", tmp_path / "book.txt", tmp_path / "out", (f"tokenizer={name}",))
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("length", "parts"), [("3000", 4), ("16k", 4), ("2k", 5), ("128k", 4)])
def test_other_lengths_and_numbers_of_parts(tmp_path: Path, length: str, parts: int) -> None:
    (tmp_path / "book.txt").write_text(story(2600 if length == "128k" else 400, 160))
    build("tsort", tmp_path, tmp_path / "out", (f"length={length}", f"parts={parts}", "stride=900"))
    (case, *_) = lines(next((tmp_path / "out").glob("*.jsonl")))
    assert sorted(case["answer"]) == list(range(1, parts + 1))
    wanted = 1000 * int(length[:-1]) if length.endswith("k") else int(length)
    assert 0.65 * wanted < case["tokens"] <= wanted


def test_chapters_in_numbered_files_and_in_booksums_rows_are_one_book(tmp_path: Path) -> None:
    chapters = [story(60).replace("word", f"chapter{n}word") for n in range(12)]
    folder = tmp_path / "books" / "Some Novel"
    folder.mkdir(parents=True)
    rows = []
    for n, text in enumerate(chapters):
        (folder / f"chapter_{n}.txt").write_text(text)
        row = {"bid": 7, "chapter_path": f"c{n}", "chapter": text, "is_aggregate": False}
        rows += [row, row, row | {"is_aggregate": True, "chapter_path": f"c{n}-all"}]
    written(tmp_path / "booksum.jsonl", rows)
    build("tsort", tmp_path / "books", tmp_path / "a", ("length=8k",))
    build("tsort", tmp_path / "booksum.jsonl", tmp_path / "b", ("length=8k",))
    cases = [lines(tmp_path / out / "tsort_8k.jsonl") for out in "ab"]
    assert [case["book_id"] for case in cases[0]] == ["Some Novel"] * len(cases[0])
    assert [case["before"] for case in cases[0]] == [case["before"] for case in cases[1]]
    assert any("chapter11word" in case["after"] + case["before"] for case in cases[0])


def test_a_book_is_the_same_as_text_and_as_epub(tmp_path: Path) -> None:
    whole = story(300)
    halves = [whole[: whole.index("CHAPTER 8")], whole[whole.index("CHAPTER 8") :]]
    pages = [
        "<html><body>"
        + "".join(
            f"<h2>{text}</h2>" if text.startswith("CHAPTER") else f"<p>{escape(text)}</p>"
            for text in half.strip().split("\n\n")
        )
        + "</body></html>"
        for half in halves
    ]
    (tmp_path / "book.txt").write_text(whole)
    chapters: dict[str, Any] = {"c 0": pages[0], "c1": pages[1]}
    (tmp_path / "book.epub").write_bytes(epub_file(**chapters))
    for kind in ("txt", "epub"):
        build("tsort", tmp_path / f"book.{kind}", tmp_path / kind, ("length=2k", "seed=7"))
    ours, theirs = (lines(tmp_path / kind / "tsort_2k.jsonl") for kind in ("txt", "epub"))
    assert len(ours) >= 3
    assert [in_order(case) for case in ours] == [in_order(case) for case in theirs]
    (tmp_path / "cut.epub").write_bytes((tmp_path / "book.epub").read_bytes()[:-200])
    with pytest.raises(QrmemError, match=r"cut\.epub"):
        build("tsort", tmp_path / "cut.epub", tmp_path / "none", ())
    assert not (tmp_path / "none").exists()


def test_an_edition_s_marks_are_taken_out() -> None:
    text = (
        "The Project Gutenberg eBook\n\n*** START OF THE PROJECT GUTENBERG EBOOK X ***\n\n"
        "CHAPTER IV.\n\nHe came[12] in\nand [Illustration: a door] sat.\n\nXII\n\n* * *\n\n"
        "She left.\n\n*** END OF THE PROJECT GUTENBERG EBOOK X ***\n\nlicence"
    )
    assert [t for t, _ in cleaned(text)] == ["He came in and sat.", "She left."]


def test_lines_without_blank_ones_between_are_joined_to_whole_sentences() -> None:
    lines = [f"Line {n} goes on\nand on, until it\nends in {n}." for n in range(60)]
    found = [text for text, _ in cleaned("\n".join(lines))]
    assert found[:2] == [
        "Line 0 goes on and on, until it ends in 0.",
        "Line 1 goes on and on, until it ends in 1.",
    ]
    whole = "\n".join(f"Paragraph {n} is a line." for n in range(60))
    assert len(list(cleaned(whole))) == 60


_PROSE = [text for text in story(180).split("\n\n") if not text.startswith("CHAPTER")]
TWICE = "\n\n".join(text for n in range(0, 180, 30) for text in _PROSE[n : n + 30] * 2)
VERSE = "\n\n".join(
    f"The moon {n} is low,\nThe tide {n} is slow,\nAnd far away\nAll {n} men pray."
    for n in range(400)
)
LETTERS = "\n\n".join(
    f"My dear Mr. Brown {n},\n\n{'I write to you of day ' + str(n) + '. ' * 30}" for n in range(200)
)


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        ("12345 ---", (), "without text"),
        ("", (), "is empty"),
        ("word " * 200_000, (), "longer than its part may be"),
        (
            "\n\n".join(["The same paragraph stands here again and again."] * 1500),
            (),
            "repeat most of their paragraphs",
        ),
        (TWICE, ("stride=1000",), "occur twice"),
        (VERSE, (), "in verse"),
        (LETTERS, (), "in letters"),
        (story(10), (), "too near to the end"),
        (story(300), ("length=150",), "no room for 4 parts"),
        (story(300), ("length=eight",), "not a number of tokens"),
        (story(300), ("parts=1",), "parts are 2 to 7"),
        (story(300), ("tokenizer=hf:nowhere.json",), "no such tokenizer file"),
        (story(300), ("manifest=nowhere.json",), "not a manifest"),
    ],
)
def test_a_source_that_gives_no_case_is_refused_and_nothing_is_left(
    tmp_path: Path, text: str, options: tuple[str, ...], told: str
) -> None:
    (tmp_path / "book.txt").write_text(text)
    with pytest.raises(QrmemError, match=told) as caught:
        build("tsort", tmp_path / "book.txt", tmp_path / "out", options)
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["book.txt"]


def test_a_file_in_the_folder_that_is_no_book_is_named(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(story(300))
    (tmp_path / "questions.json").write_text('["Who?"]')
    with pytest.raises(UsageError, match=r"questions\.json: line 1 .*; remove the file"):
        build("tsort", tmp_path, tmp_path / "out", ())


# --- BestAnswer ----------------------------------------------------------------------------------


def test_lengths_have_the_same_questions_and_distractors_are_nested(tmp_path: Path) -> None:
    source = written(tmp_path / "threads.jsonl", [thread(n) for n in range(60)])
    build("bestanswer", source, tmp_path / "all", ("length=1k,2k,4k", "seed=7"))
    build("bestanswer", source, tmp_path / "one", ("length=2k", "seed=7"))
    short, middle, long = (lines(tmp_path / "all" / f"bestanswer_{n}k.jsonl") for n in (1, 2, 4))
    assert middle == lines(tmp_path / "one" / "bestanswer_2k.jsonl")
    assert len(short) == len(middle) == len(long) > 10
    for a, b, c in zip(short, middle, long, strict=True):
        assert a["question"] == b["question"] == c["question"]
        assert set(a["all_answers"]) < set(b["all_answers"]) < set(c["all_answers"])
        n = int(a["question_id"])
        right = a["all_answers"][int(a["answer"][1:]) - 1]
        assert right.startswith(f"Reply 2 to question {n}.")
        # Only answers that were posted before the accepted one stand against it.
        assert not any(t.startswith(f"Reply 3 to question {n}.") for t in c["all_answers"])
        assert all(
            any(t.startswith(f"Reply {k} to question {n}.") for t in a["all_answers"])
            for k in (0, 1)
        )
    places = {case["answer"] for case in long}
    assert len(places) > 5


def test_a_dump_and_lines_of_the_same_threads_give_the_same_cases(tmp_path: Path) -> None:
    threads = [thread(n) for n in range(40)]
    build(
        "bestanswer", written(tmp_path / "t.jsonl", threads), tmp_path / "a", ("count=5", "seed=1")
    )
    build(
        "bestanswer", dump(tmp_path / "Posts.xml", threads), tmp_path / "b", ("count=5", "seed=1")
    )
    utf_16 = tmp_path / "utf-16" / "Posts.xml"
    utf_16.parent.mkdir()
    utf_16.write_text((tmp_path / "Posts.xml").read_text(encoding="utf-8"), encoding="utf-16")
    build("bestanswer", utf_16, tmp_path / "c", ("count=5", "seed=1"))
    ours, theirs, wide = (lines(tmp_path / out / "bestanswer_1k.jsonl") for out in "abc")
    assert ours == theirs == wide
    assert len(ours) == 5


def test_similar_questions_share_tags_and_from_32k_on_one_tag_does(tmp_path: Path) -> None:
    far = [thread(n, tags=["python", "x1", "x2"]) for n in range(400, 500)]
    near = [thread(n, tags=["python", "b", "c"]) for n in range(100)]
    source = written(tmp_path / "t.jsonl", [*near, *far])
    build("bestanswer", source, tmp_path / "out", ("length=16k,32k", "count=3", "tags=b"))
    build("bestanswer", source, tmp_path / "far", ("length=16k,32k", "count=3"))
    for name, has_far in (("16k", False), ("32k", True)):
        for case in lines(tmp_path / "far" / f"bestanswer_{name}.jsonl"):
            is_near = int(case["question_id"]) < 400
            others = [int(text.split("question ")[1].split(".")[0]) for text in case["all_answers"]]
            assert has_far == any((n < 400) != is_near for n in others)
    assert all(
        int(c["question_id"]) < 400 for c in lines(tmp_path / "out" / "bestanswer_16k.jsonl")
    )


def test_pictures_unanswered_and_absent_accepted_answers_are_left_out(tmp_path: Path) -> None:
    threads = [thread(n) for n in range(40)]
    threads[1]["answers"][2]["body"] += '<img src="x.png">'
    threads[2]["accepted_answer_id"] = None
    threads[3]["accepted_answer_id"] = 9999
    threads[4]["answers"][2]["body"] = None
    threads[5]["body"] = None
    source = written(tmp_path / "t.jsonl", threads)
    build("bestanswer", source, tmp_path / "out", ())
    assert "None" not in (tmp_path / "out" / "bestanswer_1k.jsonl").read_text(encoding="utf-8")
    ids = {case["question_id"] for case in lines(tmp_path / "out" / "bestanswer_1k.jsonl")}
    assert ids == {str(n) for n in range(40)} - {"1", "2", "3", "4"}
    left = json.loads((tmp_path / "out" / "manifest.json").read_text())["left_out"]
    assert left["questions whose accepted answer is more than text"] == 2
    assert left["questions whose accepted answer is missing"] == 1


def test_memory_does_not_grow_with_the_dump(tmp_path: Path) -> None:
    most = []
    for megabytes in (1, 12):
        folder = tmp_path / str(megabytes)
        folder.mkdir()
        write_dump(folder / "Posts.xml", megabytes * 1_000_000)
        words = ("per_tag=20", "--count", "20", "--length", "1k")
        most.append(built("bestanswer", folder / "Posts.xml", *words).megabytes)
    assert most[0] < 200
    assert most[1] - most[0] < 6, "11 MB more are read"


def test_a_folder_with_the_dump_is_a_source(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    dump(tmp_path / "dump" / "Posts.xml", [thread(n) for n in range(40)])
    (tmp_path / "dump" / "Users.xml").write_text("<users/>")
    build("bestanswer", tmp_path / "dump", tmp_path / "a", ("count=5", "seed=1"))
    manifest = tmp_path / "a" / "manifest.json"
    build("bestanswer", tmp_path / "dump" / "Posts.xml", tmp_path / "b", (f"manifest={manifest}",))
    for name in ("bestanswer_1k.jsonl", "manifest.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"holds no files of threads; give Posts\.xml"):
        build("bestanswer", tmp_path / "empty", tmp_path / "c", ())


def test_html_becomes_text_and_code_stays() -> None:
    code = "<pre><code>if a &lt; b:\n    go()</code></pre>"
    body = f"<p>Use <code>a &lt; b</code>:</p>\n\n{code}<ul><li>x</li></ul>"
    assert plain(body) == "Use a < b:\nif a < b:\n    go()\nx"


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        ("just text", (), "neither a Posts.xml"),
        ("", (), "is empty"),
        ('{"id": 1}', (), "line 1 is not a thread"),
        ("<posts><row Id='1' PostTypeId='1' Ti", (), "is incomplete"),
        ("<posts></posts>", (), "no question with a tag and an accepted answer"),
        (json.dumps(thread(1, accepted_answer_id=None)), (), "no question with a tag and an acc"),
        (json.dumps(thread(1, answers=1)), (), "too few answers"),
        (json.dumps(thread(1)), ("length=64k",), "too few answers for 64k"),
        (json.dumps(thread(1)), ("length=100",), "leaves no room"),
        (json.dumps(thread(1)), ("length=0",), "not a number of tokens"),
        (json.dumps(thread(1)), ("tokenizer=none",), "no tokenizer"),
        (json.dumps(thread(1)), ("tags=cobol",), "and the tag cobol"),
    ],
)
def test_threads_that_give_no_case_are_refused_and_nothing_is_left(
    tmp_path: Path, content: str, options: tuple[str, ...], told: str
) -> None:
    (tmp_path / "source").write_text(content)
    with pytest.raises(QrmemError, match=told) as caught:
        build("bestanswer", tmp_path / "source", tmp_path / "out", options)
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_the_command_says_how_many_cases_there_are(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(story(400), encoding="utf-8")
    words = ("tsort", "--source", "book.txt", "--length", "2k", "--count", "3", "--out", "made")
    ran = Shell(tmp_path)("eval", "build", *words)
    assert "built tsort in made: tsort_2k.jsonl with 3 cases" in ran.err
    ran = Shell(tmp_path)("eval", "build", *words, "parts=3")
    assert ran.code == 2
    assert "not understood: parts=3; write KEY=VALUE right after the kind" in ran.err


def test_no_questions_of_a_tag_are_refused_by_their_name(tmp_path: Path) -> None:
    (tmp_path / "threads.jsonl").write_text("{}", encoding="utf-8")
    with pytest.raises(UsageError, match="per_tag must be at least 1, not 0"):
        build("bestanswer", tmp_path / "threads.jsonl", tmp_path / "made", ("per_tag=0",))
