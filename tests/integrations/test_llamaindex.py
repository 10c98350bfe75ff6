"""The LlamaIndex retriever of the docs, with the real library."""

import importlib.util
from pathlib import Path

import pytest

import qrmem.sync

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "llamaindex_retriever.py"


@pytest.mark.filterwarnings("default")
async def test_the_retriever_of_the_docs_returns_what_a_search_finds() -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    spec = importlib.util.spec_from_file_location("llamaindex_retriever", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with qrmem.sync.open("memory://", embedder="none") as memory:
        memory.add({"id": "a", "title": "A", "text": "Ada Lovelace met Charles Babbage."})
        memory.add({"id": "b", "title": "B", "text": "The harbour freezes in January."})
        retriever = module.MemoryRetriever(memory, k=1)
        both = retriever.retrieve("Who met Babbage?"), await retriever.aretrieve("Who met Babbage?")
        (hit,) = memory.search("Who met Babbage?", k=1)
    for found in both:
        assert [(one.node.node_id, one.text, one.score) for one in found] == [
            (hit.segment_id, hit.text, hit.score)
        ]
        assert found[0].metadata["document_id"] == "a"
