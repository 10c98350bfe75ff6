"""FragRel over a source tree and a conversation: the same on Neo4j as in a file."""

from pathlib import Path

import pytest
from servers.neo4j_server import Server

from qrmem.config import Settings
from qrmem.graphstore import open_store
from qrmem.graphstore.protocol import GraphStore
from qrmem.memory import Memory

pytestmark = pytest.mark.neo4j

TREE = {
    "pkg/store.py": "def open_store(path):\n    return path\n\n\nclass Store:\n    anchors = 3\n",
    "pkg/use.py": "from pkg.store import open_store\n\n\ndef captain():\n    open_store('a')\n",
    "lib/far.py": "def lonely():\n    return 'anchors'\n",
}


async def assessed(store: GraphStore, namespace: str, folder: Path) -> list[object]:
    memory = Memory(store, Settings(embedder="none", namespace=namespace, window=2048))
    await memory.add(str(folder))
    for path in ("pkg/use.py", "pkg/use.py"):
        (folder / path).write_text(TREE[path] + "\n\ndef cook():\n    return open_store('b')\n")
        await memory.add(str(folder), update=True)
    (folder / "pkg" / "use.py").write_text(TREE["pkg/use.py"])
    answer = await memory.ask("How many anchors?", strategy="fragment")
    for n in range(12):
        await memory.add_turn("user", f"Anchor {n} is heavy.", at="2026-01-01T10:00")
    await memory.add_turn("user", "Actually anchor 3 is light, it changed.", at="2026-01-02T10:00")
    recalled = await memory.recall("Which anchor is light?", tokens=200)
    read = [(s.segment_id, s.score) for step in answer.trail.steps for s in step.read]
    return [answer.text, read, recalled, sorted(await store.cache_keys(namespace, "code"))]


async def test_code_and_turns_are_assessed_alike(neo4j: Server, tmp_path: Path) -> None:
    neo4j.clear()
    found = []
    for name in ("file", "server"):
        folder = tmp_path / name
        for path, text in TREE.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        if name == "file":
            store = await open_store(str(tmp_path / "memory.db"), Settings())
        else:
            store = await open_store(neo4j.uri, neo4j.settings)
        try:
            found.append(await assessed(store, "fragments", folder))
        finally:
            await store.close()
    assert found[0] == found[1]
    assert found[0][1]
