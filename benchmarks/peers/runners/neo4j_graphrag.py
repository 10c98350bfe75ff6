"""neo4j-graphrag: `SimpleKGPipeline` without a schema, then `HybridRetriever` over its chunks."""

from collections.abc import Sequence

from benchmarks.peers.runners.job import CHAT, EMBEDDER, KEY, Job, Passage, Shown, run, said

VECTORS, WORDS = "chunk-vectors", "chunk-words"


class Neo4jGraphRAG:
    """A graph in a database."""

    def __init__(self, job: Job) -> None:
        from neo4j import GraphDatabase
        from neo4j_graphrag.embeddings import OpenAIEmbeddings
        from neo4j_graphrag.experimental.pipeline.kg_builder import SimpleKGPipeline
        from neo4j_graphrag.indexes import create_fulltext_index, create_vector_index
        from neo4j_graphrag.llm import OpenAILLM
        from neo4j_graphrag.retrievers import HybridRetriever

        self._k = job.k
        driver = GraphDatabase.driver(job.neo4j["uri"], auth=("neo4j", job.neo4j["password"]))
        embedder = OpenAIEmbeddings(model=EMBEDDER, base_url=job.url, api_key=KEY)
        chat = OpenAILLM(model_name=CHAT, base_url=job.url, api_key=KEY)
        create_vector_index(
            driver,
            VECTORS,
            label="Chunk",
            embedding_property="embedding",
            dimensions=job.dimension,
            similarity_fn="cosine",
        )
        create_fulltext_index(driver, WORDS, label="Chunk", node_properties=["text"])
        self._pipeline = SimpleKGPipeline(
            llm=chat, driver=driver, embedder=embedder, schema="FREE", from_file=False
        )
        self._retriever = HybridRetriever(driver, VECTORS, WORDS, embedder, ["text"])

    async def build(self, passages: Sequence[Passage]) -> Sequence[str]:
        """Run the pipeline on one passage after the other; return what failed."""
        problems = []
        for passage in passages:
            try:
                await self._pipeline.run_async(text=passage.whole, file_path=passage.id)
            except Exception as exc:
                problems.append(f"build: {said(exc)}")
        return problems

    async def ask(self, question: str) -> Sequence[Shown]:
        """Retrieve chunks."""
        found = self._retriever.search(query_text=question, top_k=self._k)
        return [Shown(text=str(item.content)) for item in found.items]


async def opened(job: Job) -> Neo4jGraphRAG:
    """Return an empty graph with its indexes."""
    return Neo4jGraphRAG(job)


if __name__ == "__main__":
    run(opened)
