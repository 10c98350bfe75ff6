// :: existing
UNWIND $all.rows AS key
MATCH (d:Document {ns: $ns, key: key})
RETURN collect(key)

// :: put
UNWIND $all.rows AS row
MERGE (d:Document {ns: $ns, key: row.key})
WITH d, row, coalesce(d.summary, '') AS summary
SET d = row, d.ns = $ns, d.summary = summary

// :: taken
UNWIND $all.rows AS row
MATCH (s:Segment {ns: $ns, key: row.key})
WHERE s.document <> row.document
RETURN row.document, coalesce(s.full, s.key)

// :: segment_ids
UNWIND $all.rows AS key
MATCH (:Document {ns: $ns, key: key})-[:HAS]->(s:Segment)
RETURN coalesce(s.full, s.key)

// :: put_segments
UNWIND $all.rows AS row
MATCH (d:Document {ns: $ns, key: row.owner})
MERGE (s:Segment {ns: $ns, key: row.segment.key})
ON CREATE SET s.state = 'pending'
SET s += row.segment
MERGE (d)-[:HAS]->(s)

// :: unchain
UNWIND $all.rows AS key
MATCH (:Document {ns: $ns, key: key})-[:HAS]->(:Segment)-[next:NEXT]->(:Segment)
DELETE next

// :: chain
UNWIND $all.rows AS row
MATCH (a:Segment {ns: $ns, key: row.first})
MATCH (b:Segment {ns: $ns, key: row.second})
CREATE (a)-[:NEXT]->(b)

// :: get
MATCH (d:Document {ns: $ns, key: $all.key})
RETURN properties(d)

// :: texts
MATCH (:Document {ns: $ns, key: $all.key})-[:HAS]->(s:Segment)
RETURN s.index, s.text

// :: ids
MATCH (d:Document)
WHERE d.ns = $ns AND d.key IS NOT NULL AND d.key STARTS WITH $all.prefix
  AND all(own IN $all.marks WHERE any(mark IN own WHERE mark IN d.qrmem_metadata))
  AND all(field IN $all.lists WHERE valueType(d[field]) STARTS WITH 'LIST')
  AND all(range IN $all.ranges WHERE any(
    item IN CASE WHEN valueType(d[range.field]) STARTS WITH 'LIST' THEN d[range.field] ELSE [d[range.field]] END
    WHERE coalesce((range.below IS NULL OR item < range.below)
      AND (range.most IS NULL OR item <= range.most)
      AND (range.above IS NULL OR item > range.above)
      AND (range.least IS NULL OR item >= range.least), false)))
  AND ($all.field IS NULL OR $all.least <= toString(d[$all.field]) < $all.end)
// ns first: the index then has this order, and the query reads only the last rows
WITH d ORDER BY d.ns DESC, d.key DESC LIMIT $all.last
RETURN collect(coalesce(d.full, d.key))

// :: all
MATCH (d:Document)
WHERE d.ns = $ns AND d.key IS NOT NULL
CALL (d) {
  MATCH (d)-[:HAS]->(s:Segment)
  WITH s.state AS state, count(*) AS number,
    sum(COUNT { (s)-[:STATES]->(:Statement) }) AS stated
  RETURN collect([state, number]) AS states, sum(stated) AS facts
}
RETURN d {.*, text: null}, states, facts

// :: some
UNWIND $all.rows AS key
MATCH (d:Document {ns: $ns, key: key})
CALL (d) {
  MATCH (d)-[:HAS]->(s:Segment)
  WITH s.state AS state, count(*) AS number,
    sum(COUNT { (s)-[:STATES]->(:Statement) }) AS stated
  RETURN collect([state, number]) AS states, sum(stated) AS facts
}
RETURN collect([d {.*, text: null}, states, facts])

// :: states
MATCH (s:Segment)
WHERE s.ns = $ns AND s.key IS NOT NULL
RETURN s.state, count(*)

// :: has_any
MATCH (d:Document)
WHERE d.ns = $ns AND d.key IS NOT NULL
RETURN 1 LIMIT 1

// :: drop
UNWIND $all.rows AS key
MATCH (d:Document {ns: $ns, key: key})
DETACH DELETE d

// :: segments
UNWIND $all.rows AS key
MATCH (s:Segment {ns: $ns, key: key})
RETURN coalesce(s.full, s.key), s.document, s.index, s.qrmem_start, s.qrmem_stop, s.text, s.tokens, s.part

// :: segments_of
UNWIND $all.rows AS row
MATCH (:Document {ns: $ns, key: row[1]})-[:HAS]->(s:Segment)
RETURN row[0], coalesce(s.full, s.key), s.document, s.index, s.qrmem_start, s.qrmem_stop, s.text, s.tokens, s.part

// :: drop_segments
UNWIND $all.rows AS key
MATCH (s:Segment {ns: $ns, key: key})
OPTIONAL MATCH (s)-[:CONTRIBUTED]->(c:QrmemContribution)
DETACH DELETE c, s

// :: drop_loose_names
MATCH (n:Name)
WHERE n.ns = $ns AND n.key IS NOT NULL AND NOT EXISTS { (n)-[:NAMES]->(:Entity) }
CALL (n) {
  MATCH (n)-[in:IN]->(b:QrmemBlock)
  DELETE in
  WITH b
  WHERE NOT EXISTS { (b)<-[:IN]-(:Name) }
  DELETE b
}
DETACH DELETE n

// :: clear_digests
MATCH (s:Segment)
WHERE s.ns = $ns AND s.key IS NOT NULL
REMOVE s.qrmem_merged

// :: living_words
UNWIND $all.rows AS word
CALL (word) {
  MATCH (:Entity {ns: $ns, name: word.key})
  RETURN word.full AS found LIMIT 1
  UNION
  MATCH (:Entity {ns: $ns, key: word.key})
  RETURN word.full AS found LIMIT 1
}
RETURN DISTINCT found
