"""Questions with their answers for BestAnswer, read one post at a time.

Sources: `Posts.xml` of a Stack Exchange dump, or JSON lines of threads:

    {"id": 1, "title": "…", "body": "…", "tags": ["…"], "views": 10, "accepted_answer_id": 7,
     "answers": [{"id": 7, "body": "…", "date": "2020-01-31T…"}, …]}

A body may be HTML. The builder keeps its data of a dump in a file, never in memory.
"""

import json
import re
import sqlite3
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappush, heappushpop
from html import unescape
from pathlib import Path

from lxml import etree

from qrmem.errors import UsageError
from qrmem.text.normalise import normalise
from qrmem.types import Tokenizer

PER_TAG, TAGS = 2500, 23
"""Number of tags whose most viewed questions are used (Ada-LEval, section 3.2)."""
_IMAGE = re.compile(r"<img\b|!\[[^\]]*\]\(", re.IGNORECASE)
_BREAK = re.compile(r"<(?:/p|/pre|/li|/h\d|br|/tr|/blockquote)\b[^<>]*>", re.IGNORECASE)
_MARK = re.compile(r"</?[a-zA-Z][^<>]*>")
_BLANK = re.compile(r"\n\s*\n\s*")


@dataclass(frozen=True, slots=True)
class Post:
    """A question, or an answer to the question `parent`.

    Attributes:
        accepted: id of the answer that the asker accepted.
        views: number of views of a question.
        date: date in ISO form, so that dates can be compared as texts.
    """

    id: str
    body: str
    date: str
    parent: str = ""
    title: str = ""
    tags: tuple[str, ...] = ()
    accepted: str = ""
    views: int = 0


def dump_in(source: Path) -> Path:
    """Return the file of a source: itself, or `Posts.xml` or the only JSON lines file of a folder.

    Raises:
        UsageError: there is no such file.
    """
    if source.is_file():
        return source
    dumps = [source / "Posts.xml"] if (source / "Posts.xml").is_file() else []
    dumps = dumps or sorted(source.glob("*.jsonl"))
    if len(dumps) != 1:
        raise UsageError(
            f"{source} holds {'several' if dumps else 'no'} files of threads; give Posts.xml of an "
            "unpacked dump, or one file of JSON lines"
        )
    return dumps[0]


def posts(path: Path) -> Iterator[Post]:
    """Yield the questions and answers of a source.

    Raises:
        UsageError: its format is unknown, or it is truncated.
    """
    with path.open("rb") as file:
        head = file.read(4096).lstrip(b"\xef\xbb\xbf \r\n\t")
    if head.startswith((b"<", BOM_UTF16_LE, BOM_UTF16_BE)):
        return _dump(path)
    if head.startswith(b"{"):
        return _lines(path)
    if not head:
        raise UsageError(f"{path} is empty")
    raise UsageError(f"{path} is neither a Posts.xml of Stack Exchange nor JSON lines of threads")


def _dump(path: Path) -> Iterator[Post]:
    try:
        for _, row in etree.iterparse(str(path), tag="row", huge_tree=True, no_network=True):
            values = {str(name): str(value) for name, value in row.attrib.items()}
            row.clear()
            while row.getprevious() is not None:
                del row.getparent()[0]
            if values.get("PostTypeId") in ("1", "2"):
                yield _post(values)
    except etree.XMLSyntaxError as exc:
        raise UsageError(
            f"{path} is incomplete or is not XML, at line {exc.lineno}: get the dump again"
        ) from exc


def _post(row: dict[str, str]) -> Post:
    is_answer = row["PostTypeId"] == "2"
    return Post(
        id=row.get("Id", ""),
        body=row.get("Body", ""),
        date=row.get("CreationDate", ""),
        parent=row.get("ParentId", "") if is_answer else "",
        title=row.get("Title", ""),
        tags=tuple(re.findall(r"[^<>|]+", row.get("Tags", ""))),
        accepted=row.get("AcceptedAnswerId", ""),
        views=_number(row.get("ViewCount") or row.get("Score")),
    )


def _lines(path: Path) -> Iterator[Post]:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for n, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield from _thread(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError) as exc:
                raise UsageError(
                    f"{path}: line {n} is not a thread (an object with id, body, tags, "
                    f"accepted_answer_id, and answers with id, body and date): {exc}"
                ) from exc


def _thread(found: dict[str, object]) -> Iterator[Post]:
    id, answers, tags = str(found["id"]), found.get("answers", []), found["tags"]
    if not isinstance(answers, list) or not isinstance(tags, list):
        raise TypeError("tags or answers are not a list")
    yield Post(
        id=id,
        body=_text(found["body"]),
        date=_text(found.get("date")),
        title=_text(found.get("title")),
        tags=tuple(map(str, tags)),
        accepted=str(found.get("accepted_answer_id") or ""),
        views=_number(found.get("views")),
    )
    for one in answers:
        yield Post(str(one["id"]), _text(one["body"]), _text(one["date"]), parent=id)


def _text(value: object) -> str:
    """Return a text; "" for null, which a removed post has."""
    return "" if value is None else str(value)


def _number(value: object) -> int:
    try:
        return int(str(value or 0))
    except ValueError:
        return 0


def plain(body: str) -> str:
    """Return a post without HTML; code is kept, as in the released items."""
    if "<" in body:
        body = unescape(_MARK.sub("", _BREAK.sub("\n", body)))
    return _BLANK.sub("\n", normalise(body)).strip()


# --- which questions are kept --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PostedAnswer:
    """An answer of a kept question.

    Attributes:
        is_text: whether it has text and no picture.
    """

    id: str
    text: str
    tokens: int
    is_text: bool


class Threads:
    """The kept questions and their answers, in a file beside the built set.

    Attributes:
        left_out: number of posts that were not kept, by reason.
    """

    def __init__(self, file: Path, counter: Tokenizer) -> None:
        self.left_out: Counter[str] = Counter()
        self._counter = counter
        self._db = sqlite3.connect(file)
        self._db.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-32000;"
            "CREATE TABLE question (id TEXT PRIMARY KEY, body, accepted, tags) WITHOUT ROWID;"
            "CREATE TABLE answer (id TEXT PRIMARY KEY, parent, date, body, tokens, is_text);"
        )

    def fill(self, path: Path, tags: tuple[str, ...], per_tag: int) -> None:
        """Read a source two or three times: its tags, its best questions, their texts.

        Args:
            path: the source.
            tags: tags of the questions to keep; empty uses the most frequent tags.
            per_tag: maximum number of questions per tag.

        Raises:
            UsageError: no question, or no question of a tag, has an accepted answer.
        """
        tags_taken = tags
        if not tags:
            counts = Counter(tag for post in posts(path) for tag in post.tags)
            tags_taken = tuple(tag for tag, _ in counts.most_common(TAGS))
        best = _popular(path, tags_taken, per_tag)
        absent = [tag for tag in tags if not best[tag]]
        if absent:
            raise UsageError(
                f"{path} has no question with an accepted answer and the tag {absent[0]}"
            )
        ids_chosen = frozenset(id for best_of_tag in best.values() for _, id in best_of_tag)
        if not ids_chosen:
            raise UsageError(f"{path} has no question with a tag and an accepted answer")
        for post in posts(path):
            if (post.parent or post.id) in ids_chosen:
                self._keep(post)
        self._db.execute("CREATE INDEX of_question ON answer (parent, date, id)")

    def _keep(self, post: Post) -> None:
        text = plain(post.body)
        if post.parent:
            row = (
                post.id,
                post.parent,
                post.date,
                text,
                self._counter.count(text),
                bool(text) and not _IMAGE.search(post.body),
            )
            self._db.execute("INSERT OR IGNORE INTO answer VALUES (?, ?, ?, ?, ?, ?)", row)
        else:
            body = f"{normalise(post.title)}\n{text}".strip()
            question_row = (post.id, body, post.accepted, json.dumps(post.tags))
            self._db.execute("INSERT OR IGNORE INTO question VALUES (?, ?, ?, ?)", question_row)

    def questions(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Yield id, id of the accepted answer and tags of each question, by id."""
        rows = self._db.execute("SELECT id, accepted, tags FROM question ORDER BY length(id), id")
        for id, accepted, tags in rows:
            yield id, accepted, tuple(json.loads(tags))

    def text(self, question: str) -> str:
        """Return a question's title and text."""
        row = self._db.execute("SELECT body FROM question WHERE id = ?", (question,)).fetchone()
        return str(row[0])

    def answers(self, question: str) -> list[PostedAnswer]:
        """Return a question's answers by date."""
        rows = self._db.execute(
            "SELECT id, body, tokens, is_text FROM answer WHERE parent = ? ORDER BY date, id",
            (question,),
        )
        return [PostedAnswer(*row) for row in rows]

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _popular(path: Path, tags: tuple[str, ...], per_tag: int) -> dict[str, list[tuple[int, str]]]:
    """Return views and id of the most viewed answered questions of each tag."""
    best: dict[str, list[tuple[int, str]]] = {tag: [] for tag in tags}
    for post in posts(path):
        if post.accepted:
            for tag in post.tags:
                heap = best.get(tag)
                if heap is not None:
                    entry = (post.views, post.id)
                    if len(heap) < per_tag:
                        heappush(heap, entry)
                    else:
                        heappushpop(heap, entry)
    return best
