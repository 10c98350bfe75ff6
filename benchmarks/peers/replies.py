"""The server's replies to each program's prompts: the stored extraction in the requested form.

The server recognises a form by words of its prompt. It invents nothing: names and triples are those
that GPT-3.5 once found. What the extraction does not have (types, descriptions) is filled in the
same way for all: one type, and a name's triples as its description. Prompts of questions, and those
that compare or summarise, are answered by fixed rules. What no form fits is answered by the
plainest text that its schema allows, and is counted.
"""

import ast
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from servers import answering

from benchmarks.replies_of_size import Replies

Json = Any
Request = Mapping[str, Json]
_WORD = re.compile(r"\w+")
FIRST_WORDS = 60
"""Words of a summary: the first ones of what is to be summarised."""


def folded(text: str) -> str:
    """Return the words of a text; programs change spaces, quotes and marks."""
    return " ".join(_WORD.findall(text.lower()))


class Triple(NamedTuple):
    """A statement of a passage about two names."""

    head: str
    relation: str
    tail: str

    @property
    def sentence(self) -> str:
        """The triple as words."""
        return " ".join(self)


@dataclass(frozen=True, slots=True)
class Extract:
    """GPT-3.5's extraction from a passage.

    Attributes:
        entities: the names that it listed.
        triples: those of three parts.
    """

    title: str
    text: str
    entities: tuple[str, ...]
    triples: tuple[Triple, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The listed names and all ends of triples, each once."""
        ends = (end for each in self.triples for end in (each.head, each.tail))
        return tuple(dict.fromkeys([*self.entities, *ends]))

    def about(self, name: str) -> str:
        """Return a name's triples as a description."""
        said = [each.sentence for each in self.triples if name in (each.head, each.tail)]
        return ". ".join(said) or name


def extract_of(doc: Mapping[str, Json]) -> Extract:
    """Return the extraction on one line of the file."""
    parts = (tuple(map(str.strip, triple)) for triple in doc["extracted_triples"])
    triples = tuple(Triple(*each) for each in parts if len(each) == 3 and all(each))
    entities = tuple(name.strip() for name in doc["extracted_entities"] if name.strip())
    return Extract(doc["title"], doc["text"], entities, triples)


class Prompt:
    """An analysed request.

    Attributes:
        all: the text of all messages.
        last: the text of the last message.
        schema: the name of the JSON schema that the request sends, or "".
        extract: what was found in the passage that stands in the last message, or before.
    """

    def __init__(self, request: Request, extracts: "Extracts") -> None:
        texts = [_text_of(message.get("content")) for message in request["messages"]]
        form = request.get("response_format") or {}
        self.request = request
        self.all, self.last = "\n".join(texts), texts[-1]
        self.schema = str((form.get("json_schema") or {}).get("name", ""))
        self.extract = extracts.within(self.last) or extracts.within(self.all)

    def after(self, mark: str, end: str = "\n") -> str:
        """Return what follows the last occurrence of a mark, up to an end."""
        return self.all.rpartition(mark)[2].partition(end)[0].strip()

    def between(self, tag: str) -> str:
        """Return the text of the last `<tag>…</tag>`."""
        return self.all.rpartition(f"</{tag}>")[0].rpartition(f"<{tag}>")[2].strip()


def _text_of(content: Json) -> str:
    """Return a message's text; it may come in parts."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return str(content or "")


class Extracts:
    """Finds the passage of a prompt by its text."""

    def __init__(self, extracts: Iterable[Extract]) -> None:
        self._by_text = {folded(extract.text): extract for extract in extracts}

    def within(self, text: str) -> Extract | None:
        """Return the extraction from the last passage in a text, or in JSON."""
        words = folded(_ESCAPE.sub(_unescaped, text))
        at, found = max(
            ((words.rfind(passage), passage) for passage in self._by_text),
            default=(-1, ""),
        )
        return self._by_text[found] if at >= 0 else None


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|n)")


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape.group(1), 16)) if escape.group(1) else "\n"


# --- rules ---------------------------------------------------------------------------------------


def keywords(question: str) -> tuple[list[str], list[str]]:
    """Return a question's names, and its other content words."""
    names = answering.names(question)
    inside = {word.lower() for name in names for word in _WORD.findall(name)}
    others = [
        word
        for word in dict.fromkeys(_WORD.findall(question.lower()))
        if word not in inside and word not in answering.COMMON and len(word) > 2
    ]
    return names or others, others or names


def first_words(text: str) -> str:
    """Return the beginning of a text, as its summary."""
    return " ".join(text.split()[:FIRST_WORDS]) or "nothing"


def dumped(value: Json) -> str:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False)


# --- LightRAG, nano-graphrag ---------------------------------------------------------------------


def nano_tuples(prompt: Prompt) -> str:
    """Return `("entity"<|>name<|>type<|>description)##…<|COMPLETE|>`."""
    if prompt.extract is None:
        return "<|COMPLETE|>"
    extract = prompt.extract
    rows = [("entity", name, "event", extract.about(name)) for name in extract.names]
    pairs = [("relationship", t.head, t.tail, t.sentence) for t in extract.triples]
    lines = ["<|>".join(f'"{_plain(part)}"' for part in row) for row in rows]
    lines += ["<|>".join(f'"{_plain(part)}"' for part in row) + "<|>1" for row in pairs]
    return "##\n".join(f"({line})" for line in lines) + "<|COMPLETE|>"


def lightrag_rows(prompt: Prompt) -> str:
    """Return rows of `entity<|#|>name<|#|>type<|#|>description`, then relations."""
    extract = prompt.extract
    rows: list[Sequence[str]] = []
    if extract is not None:
        rows += [("entity", name, "Other", extract.about(name)) for name in extract.names]
        rows += [("relation", t.head, t.tail, t.relation, t.sentence) for t in extract.triples]
    lines = ["<|#|>".join(map(_plain, row)) for row in rows]
    return "\n".join([*lines, "<|COMPLETE|>"])


def lightrag_keywords(prompt: Prompt) -> str:
    """Return the words of a question as JSON: its names are low, others high."""
    low, high = keywords(prompt.after("User Query:"))
    return dumped({"high_level_keywords": high, "low_level_keywords": low})


def community_report(prompt: Prompt) -> str:
    """Return a report with the beginning of its text."""
    said = first_words(prompt.last.rpartition("Text:\n```")[2])
    found = [{"summary": said, "explanation": said}]
    shape = {"title": said[:60], "summary": said, "rating": 1.0, "rating_explanation": "none"}
    return dumped(shape | {"findings": found})


# --- fast-graphrag, mem0 ------------------------------------------------------------------------


def fast_graph(prompt: Prompt) -> str:
    """Return a graph as JSON: `name`, `type`, `desc`; `source`, `target`, `desc`."""
    extract = prompt.extract
    entities, relations = [], []
    if extract is not None and "MANY entities were missed" not in prompt.last:
        entities = [{"name": n, "type": "Thing", "desc": extract.about(n)} for n in extract.names]
        relations = [
            {"source": t.head, "target": t.tail, "desc": t.sentence} for t in extract.triples
        ]
    return dumped({"entities": entities, "relationships": relations, "other_relationships": []})


def fast_keywords(prompt: Prompt) -> str:
    """Return the names of a question, and its other words."""
    named, generic = keywords(prompt.after("-INPUT-\nQuery:"))
    return dumped({"named": named, "generic": generic})


def fast_summary(prompt: Prompt) -> str:
    """Return the beginning of a description that the prompt asks to shorten."""
    return dumped({"description": first_words(prompt.after("Current:\n", "\n\nUpdated:"))})


def mem0_facts(prompt: Prompt) -> str:
    """Return each triple as a fact to store."""
    triples = prompt.extract.triples if prompt.extract else ()
    facts = [{"id": str(n), "text": t.sentence} for n, t in enumerate(triples)]
    return dumped({"memory": facts})


# --- HippoRAG ------------------------------------------------------------------------------------


def hippo_names(prompt: Prompt) -> str:
    """Return the listed names."""
    return dumped({"named_entities": prompt.extract.entities if prompt.extract else ()})


def hippo_triples(prompt: Prompt) -> str:
    """Return the triples as lists."""
    return dumped({"triples": prompt.extract.triples if prompt.extract else ()})


def hippo_filter(prompt: Prompt) -> str:
    """Return the first four facts that share a word with the question."""
    asked = prompt.last.partition("[[ ## question ## ]]")[2].partition("[[ ##")[0]
    facts = prompt.last.rpartition("[[ ## fact_before_filter ## ]]")[2].partition("\n\nRespond")[0]
    words = set(folded(asked).split()) - answering.COMMON
    near = [
        fact for fact in json.loads(facts)["fact"] if words & set(folded(" ".join(fact)).split())
    ]
    said = dumped({"fact": near[:4]})
    return f"[[ ## fact_after_filter ## ]]\n{said}\n\n[[ ## completed ## ]]"


# --- neo4j-graphrag ------------------------------------------------------------------------------


def neo4j_graph(prompt: Prompt) -> str:
    """Return nodes with ids, and relationships between ids."""
    extract = prompt.extract
    ids = {name: str(n) for n, name in enumerate(extract.names)} if extract else {}
    nodes = [{"id": id, "label": "Thing", "properties": {"name": name}} for name, id in ids.items()]
    relationships = [
        {
            "type": "_".join(_WORD.findall(t.relation.upper())) or "RELATES_TO",
            "start_node_id": ids[t.head],
            "end_node_id": ids[t.tail],
            "properties": {"description": t.sentence},
        }
        for t in (extract.triples if extract else ())
    ]
    return dumped({"nodes": nodes, "relationships": relationships})


# --- graphiti ------------------------------------------------------------------------------------


def graphiti_entities(prompt: Prompt) -> str:
    """Return the names, all of the first type."""
    names = prompt.extract.names if prompt.extract else ()
    found = [{"name": n, "entity_type_id": 0, "episode_indices": [0]} for n in names]
    return dumped({"extracted_entities": found})


def graphiti_facts(prompt: Prompt) -> str:
    """Return the triples as facts without dates."""
    facts = [
        {
            "source_entity_name": t.head,
            "target_entity_name": t.tail,
            "relation_type": "_".join(_WORD.findall(t.relation.upper())) or "RELATES_TO",
            "fact": t.sentence,
            "valid_at": None,
            "invalid_at": None,
            "episode_indices": [0],
        }
        for t in (prompt.extract.triples if prompt.extract else ())
    ]
    return dumped({"edges": facts})


def graphiti_same_names(prompt: Prompt) -> str:
    """Return for each new name the known name with the same spelling, if any."""
    known = {
        one["name"].casefold(): one["candidate_id"]
        for one in _listed_in(prompt, "EXISTING ENTITIES")
    }
    found = [
        {
            "id": one["id"],
            "name": one["name"],
            "duplicate_candidate_id": known.get(one["name"].casefold(), -1),
        }
        for one in _listed_in(prompt, "ENTITIES")
    ]
    return dumped({"entity_resolutions": found})


def graphiti_same_facts(prompt: Prompt) -> str:
    """Return the known facts that say the same word for word; none contradicts another."""
    new = folded(prompt.between("NEW FACT"))
    same = [
        one["idx"]
        for one in _listed_in(prompt, "EXISTING FACTS")
        if folded(str(one.get("fact", ""))) == new
    ]
    return dumped({"duplicate_facts": same, "contradicted_facts": []})


def graphiti_dates(prompt: Prompt) -> str:
    """Return no date."""
    return dumped({"valid_at": None, "invalid_at": None})


def _listed_in(prompt: Prompt, tag: str) -> list[Json]:
    """Return the list between two tags, in JSON or in Python's notation."""
    text = prompt.between(tag)
    try:
        return list(json.loads(text))
    except ValueError:
        pass
    try:
        return list(ast.literal_eval(text))
    except (ValueError, SyntaxError):
        return []


def _plain(part: str) -> str:
    """Return a field without separators of fields and rows, and without quotes."""
    return " ".join(re.sub(r'["<>|#]', " ", part).split())


# --- all -----------------------------------------------------------------------------------------


class Form(NamedTuple):
    """A form of prompts: how to recognise it, and how to reply."""

    name: str
    is_it: Callable[[Prompt], bool]
    reply: Callable[[Prompt], str]


def has(*marks: str) -> Callable[[Prompt], bool]:
    """Recognise a prompt by words in it."""
    return lambda prompt: all(mark in prompt.all for mark in marks)


def wants(schema: str) -> Callable[[Prompt], bool]:
    """Recognise a prompt by the name of the schema in its request."""
    return lambda prompt: prompt.schema == schema


def ends(mark: str) -> Callable[[Prompt], bool]:
    """Recognise a prompt by words of its last message."""
    return lambda prompt: mark in prompt.last


FORMS: Sequence[Form] = (
    Form("HippoRAG filter", ends("[[ ## fact_before_filter ## ]]"), hippo_filter),
    Form("HippoRAG names", has("extract named entities from the given paragraph"), hippo_names),
    Form("HippoRAG triples", has("construct an RDF"), hippo_triples),
    Form("neo4j graph", has("start_node_id", "Input text:"), neo4j_graph),
    Form("graphiti names", wants("ExtractedEntities"), graphiti_entities),
    Form("graphiti facts", wants("ExtractedEdges"), graphiti_facts),
    Form("graphiti same names", wants("NodeResolutions"), graphiti_same_names),
    Form("graphiti same facts", wants("EdgeDuplicate"), graphiti_same_facts),
    Form("graphiti dates", wants("EdgeTimestamps"), graphiti_dates),
    Form(
        "graphiti summaries", wants("SummarizedEntities"), lambda prompt: dumped({"summaries": []})
    ),
    Form("fast graph", has("other_relationships", "<<DOCUMENT_START>>"), fast_graph),
    Form("fast keywords", has('"named"', "-INPUT-"), fast_keywords),
    Form("fast summary", has("removing redundant and generic information"), fast_summary),
    Form("fast groups", has("grouped_facts"), lambda prompt: dumped({"grouped_facts": []})),
    Form("facts", has("# ROLE", "Memory Extractor", "## New Messages"), mem0_facts),
    Form("more tuples", ends("MANY entities were missed"), lambda prompt: "<|COMPLETE|>"),
    Form("more tuples?", ends("Answer YES | NO if there are still"), lambda prompt: "NO"),
    Form("more rows", ends("extract any missed or incorrectly"), lambda prompt: "<|COMPLETE|>"),
    Form("more rows", ends("extract any **missed"), lambda prompt: "<|COMPLETE|>"),
    Form("community report", has("report of a community"), community_report),
    Form("tuples", has('("entity"<|>'), nano_tuples),
    Form("rows", has("entity<|#|>", "---Input Text---"), lightrag_rows),
    Form("keywords", has("high_level_keywords", "User Query:"), lightrag_keywords),
    Form(
        "summary",
        has("---Input---", "Description List:"),
        lambda prompt: first_words(prompt.last.rpartition("Description List:")[2]),
    ),
    Form(
        "summary",
        has("comprehensive summary", "Description List:"),
        lambda prompt: first_words(prompt.last.rpartition("Description List:")[2]),
    ),
)
UNKNOWN = "not known"


class Call(NamedTuple):
    """A chat call: when it was answered (`time.monotonic`), its form and its tokens."""

    at: float
    form: str
    tokens_in: int
    tokens_out: int


@dataclass
class Answers:
    """Answers chat requests, and records the cost of each.

    Attributes:
        own: answers qrmem's prompts.
        unknown: beginnings of the prompts that no form fits.
    """

    extracts: Extracts
    own: Replies
    calls: list[Call] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)

    def __call__(self, request: Request) -> str:
        """Return the reply to a request."""
        prompt = Prompt(request, self.extracts)
        form, reply = self._answered(prompt)
        schema = request.get("response_format") or {}
        asked = [prompt.all, dumped(schema.get("json_schema", {}).get("schema", ""))]
        self.calls.append(
            Call(time.monotonic(), form, answering.words(asked), answering.words([reply]))
        )
        return reply

    def _answered(self, prompt: Prompt) -> tuple[str, str]:
        if answering.TEXT.search(prompt.all):
            return "qrmem", self.own(prompt.request)
        for form in FORMS:
            if form.is_it(prompt):
                return form.name, form.reply(prompt)
        self.unknown[prompt.all[:120]] += 1
        if answering.schema_of(prompt.request):
            return UNKNOWN, dumped(answering.filler(answering.schema_of(prompt.request)))
        return UNKNOWN, first_words(prompt.last)
