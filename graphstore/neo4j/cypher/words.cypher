// :: put
UNWIND $rows AS row
MATCH (s:Segment {ns: $ns, key: row.key})
SET s += row

// :: drop
UNWIND $rows AS key
MATCH (s:Segment {ns: $ns, key: key})
REMOVE s.terms, s.of_title, s.length, s.space

// :: count
UNWIND $rows AS row
MATCH (n:Namespace {ns: $ns, key: 'namespace'})
SET n.indexed = coalesce(n.indexed, 0) + row.segments, n.terms = coalesce(n.terms, 0) + row.terms

// :: totals
MATCH (n:Namespace {ns: $ns, key: 'namespace'})
RETURN coalesce(n.indexed, 0), coalesce(n.terms, 0)

// :: indexed_titles
UNWIND $rows AS key
MATCH (d:Document {ns: $ns, key: key})-[:HAS]->(s:Segment) WHERE s.terms IS NOT NULL
RETURN s.key, d.title, s.terms, s.of_title

// :: untitle
UNWIND $rows AS key
MATCH (d:Document {ns: $ns, key: key})<-[means:MEANS]-(t:Title)
DELETE means
WITH DISTINCT t WHERE NOT EXISTS { (t)-[:MEANS]->() }
DELETE t

// :: title
UNWIND $rows AS row
MATCH (d:Document {ns: $ns, key: row.document})
MERGE (t:Title {ns: $ns, key: row.form})
CREATE (t)-[:MEANS {sure: row.sure}]->(d)

// :: titled
UNWIND $rows AS form
MATCH (t:Title {ns: $ns, key: form}) WHERE COUNT { (t)-[:MEANS]->() } <= $most
MATCH (t)-[means:MEANS]->(d:Document)
CALL (d) {
  MATCH (d)-[:HAS]->(s:Segment) WHERE s.terms IS NOT NULL
  WITH s ORDER BY s.index LIMIT $first
  RETURN collect(coalesce(s.full, s.key)) AS segments
}
RETURN form, coalesce(d.full, d.key), means.sure, segments

// :: frequencies
UNWIND $rows AS row
CALL db.index.fulltext.queryNodes('qrmem_terms', row.query) YIELD node
WITH row.term AS term, count(*) AS number
RETURN collect([term, number])

// :: matching
CALL db.index.fulltext.queryNodes('qrmem_terms', $asked, {limit: $limit}) YIELD node, score
RETURN collect([coalesce(node.full, node.key), score, node.document, node.index])

// :: matching_in
CALL db.index.fulltext.queryNodes('qrmem_terms', $asked) YIELD node, score
WHERE node.document IN $documents
WITH node, score ORDER BY score DESC LIMIT $limit
RETURN collect([coalesce(node.full, node.key), score, node.document, node.index])

// :: entries
UNWIND $rows AS key
MATCH (d:Document)-[:HAS]->(s:Segment {ns: $ns, key: key}) WHERE s.terms IS NOT NULL
RETURN collect([coalesce(s.full, s.key), s.document, s.index, d.title,
  [name IN keys(d) WHERE name STARTS WITH $metadata | [name, d[name]]],
  s.terms])
