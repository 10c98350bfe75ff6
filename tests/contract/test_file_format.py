"""The file format of 0.1.0: a file that was made by it opens and answers.

The file is `data/version-7.db.gz`. To make one of a new version:

    python tests/contract/test_file_format.py
"""

import asyncio
import gzip
import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory

import qrmem
from qrmem.graphstore.sqlite.schema import SCHEMA, USUAL, VERSION

KEPT = Path(__file__).with_name("data") / f"version-{VERSION}.db.gz"
FORMAT = (7, "4f875b0c7e5e", "f4485a996c53")
"""The version, and the beginnings of the digests of what belongs to it."""
DOCUMENTS = [
    {
        "id": "log",
        "title": "The log",
        "text": "Captain Ahab lost a leg to Moby Dick off Japan. " * 3,
    },
    {"id": "inquiry", "title": "The inquiry", "text": "Captain Ahab met Owen Chase in Nantucket."},
]


def test_a_change_of_the_format_has_a_new_version() -> None:
    tables = "\n".join(line for line in SCHEMA.splitlines() if not line.strip().startswith("--"))
    digests = [hashlib.sha256(part.encode()).hexdigest()[:12] for part in (tables, USUAL)]
    assert (VERSION, *digests) == FORMAT, "raise VERSION, and make a file of it: see the module"


async def test_a_file_of_this_version_opens_and_answers(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    path.write_bytes(gzip.decompress(KEPT.read_bytes()))
    async with qrmem.open(str(path), embedder="none", model="") as memory:
        hits = await memory.search("Whom did Ahab meet in Nantucket?")
        assert hits[0].document_id == "inquiry"
        answer = await memory.ask("Who lost a leg?")
        assert answer.citations[0].document_id == "log"
        ids = [info.id for info in await memory.documents()]
        assert ids == ["inquiry", "log", "turn-00000001"]
        assert [turn.text for turn in await memory.turns()] == ["The flight is booked."]
        assert {trail.question for trail in await memory.trails()} >= {"Who met Owen Chase?"}
        read = await memory.repair()  # unpacks all that was read out of the texts
        assert read.differences == ()
        await memory.add([{"id": "new", "text": "Ishmael sailed with Captain Ahab."}])
        assert (await memory.search("Who sailed?"))[0].document_id == "new"


async def _make(path: Path) -> None:
    async with qrmem.open(str(path), embedder="none", model="") as memory:
        await memory.add(DOCUMENTS)
        await memory.add_turn("user", "The flight is booked.")
        await memory.merge("Owen Chase", "Captain Ahab")
        await memory.ask("Who met Owen Chase?")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        made = Path(folder) / "made.db"
        asyncio.run(_make(made))
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_bytes(gzip.compress(made.read_bytes(), mtime=0))
