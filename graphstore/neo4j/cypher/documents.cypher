// :: existing
UNWIND $rows AS key
MATCH (d:Document {ns: $ns, key: key})
  USING INDEX SEEK d:Document(ns, key)
RETURN collect(key)

// :: put
UNWIND $rows AS row
MERGE (d:Document {ns: $ns, key: row[0]})
ON CREATE SET d.full = row[1], d.summary = ''
SET d.title = row[2], d.metadata = row[3], d.parts = row[4], d.characters = row[5],
  d.digest = row[6], d.text = row[7]

// :: taken
UNWIND $rows AS row
MATCH (s:Segment {ns: $ns, key: row[0]})
  USING INDEX SEEK s:Segment(ns, key)
WHERE s.document <> row[1]
RETURN row[1], coalesce(s.full, s.key)

// :: segment_ids
UNWIND $rows AS key
MATCH (d:Document {ns: $ns, key: key})-[:HAS]->(s:Segment)
  USING INDEX SEEK d:Document(ns, key)
RETURN coalesce(s.full, s.key)

// :: add_segments
UNWIND $rows AS row
WITH row[0] AS document_key, row[1] AS document, row[2] AS key, row[3] AS full, row[4] AS index,
  row[5] AS start, row[6] AS stop, row[7] AS text, row[8] AS tokens, row[9] AS part
MATCH (d:Document {ns: $ns, key: document_key})
  USING INDEX SEEK d:Document(ns, key)
CREATE (d)-[:HAS]->(:Segment {ns: $ns, key: key, full: full, document: document, index: index,
  start: start, stop: stop, text: text, tokens: tokens, part: part, state: 'pending'})

// :: update_segments
UNWIND $rows AS row
MATCH (s:Segment {ns: $ns, key: row[2]})
  USING INDEX SEEK s:Segment(ns, key)
SET s.index = row[4], s.start = row[5], s.stop = row[6], s.text = row[7], s.tokens = row[8],
  s.part = row[9]

// :: unchain
UNWIND $rows AS key
MATCH (d:Document {ns: $ns, key: key})-[:HAS]->(:Segment)-[next:NEXT]->(:Segment)
  USING INDEX SEEK d:Document(ns, key)
DELETE next

// :: chain
UNWIND $rows AS row
MATCH (a:Segment {ns: $ns, key: row[0]})
  USING INDEX SEEK a:Segment(ns, key)
MATCH (b:Segment {ns: $ns, key: row[1]})
  USING INDEX SEEK b:Segment(ns, key)
CREATE (a)-[:NEXT]->(b)

// :: get
MATCH (d:Document {ns: $ns, key: $key})
  USING INDEX SEEK d:Document(ns, key)
RETURN d.title, d.metadata, d.parts, d.text

// :: texts
MATCH (d:Document {ns: $ns, key: $key})-[:HAS]->(s:Segment)
  USING INDEX SEEK d:Document(ns, key)
RETURN s.index, s.text

// :: all
MATCH (d:Document)
  USING INDEX SEEK d:Document(ns, key)
WHERE d.ns = $ns AND d.key IS NOT NULL
CALL (d) {
  MATCH (d)-[:HAS]->(s:Segment)
  WITH s.state AS state, count(*) AS number
  RETURN collect([state, number]) AS states
}
RETURN coalesce(d.full, d.key), d.title, d.metadata, d.characters, d.summary, states

// :: digests
MATCH (d:Document)
  USING INDEX SEEK d:Document(ns, key)
WHERE d.ns = $ns AND d.key IS NOT NULL
RETURN coalesce(d.full, d.key), d.digest

// :: set_summary
MATCH (d:Document {ns: $ns, key: $key})
  USING INDEX SEEK d:Document(ns, key)
SET d.summary = $summary RETURN 1

// :: drop
MATCH (d:Document {ns: $ns, key: $key})
  USING INDEX SEEK d:Document(ns, key)
DETACH DELETE d

// :: segments
UNWIND $rows AS key
MATCH (s:Segment {ns: $ns, key: key})
  USING INDEX SEEK s:Segment(ns, key)
RETURN coalesce(s.full, s.key), s.document, s.index, s.start, s.stop, s.text, s.tokens, s.part

// :: segments_of
UNWIND $rows AS row
MATCH (d:Document {ns: $ns, key: row[1]})-[:HAS]->(s:Segment)
  USING INDEX SEEK d:Document(ns, key)
RETURN row[0], coalesce(s.full, s.key), s.document, s.index, s.start, s.stop, s.text, s.tokens, s.part

// :: drop_segments
UNWIND $rows AS key
MATCH (s:Segment {ns: $ns, key: key})
  USING INDEX SEEK s:Segment(ns, key)
OPTIONAL MATCH (s)-[:CONTRIBUTED]->(c:Contribution)
DETACH DELETE c, s
