"""The LlamaIndex retriever of the docs, with the real library."""

import importlib.util
from pathlib import Path

import pytest

import qrmem

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "llamaindex_retriever.py"


@pytest.mark.filterwarnings("default")
async def test_the_retriever_of_the_docs_returns_what_a_search_finds() -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    spec = importlib.util.spec_from_file_location("llamaindex_retriever", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add({"id": "a", "title": "A", "text": "Ada Lovelace met Charles Babbage."})
        await memory.add({"id": "b", "title": "B", "text": "The harbour freezes in January."})
        found = await module.MemoryRetriever(memory, k=1).aretrieve("Who met Babbage?")
        (hit,) = await memory.search("Who met Babbage?", k=1)
    assert [(one.node.node_id, one.text, one.score) for one in found] == [
        (hit.segment_id, hit.text, hit.score)
    ]
    assert found[0].metadata["document_id"] == "a"
