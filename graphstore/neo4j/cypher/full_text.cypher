// :: put
UNWIND $all.rows AS row
MATCH (s:Segment {ns: $ns, key: row.key})
SET s += row

// :: drop
UNWIND $all.rows AS key
MATCH (s:Segment {ns: $ns, key: key})
REMOVE s.qrmem_terms, s.qrmem_of_title, s.qrmem_length, s.qrmem_space

// :: count
UNWIND $all.rows AS row
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
SET n.indexed = coalesce(n.indexed, 0) + row.segments, n.terms = coalesce(n.terms, 0) + row.terms

// :: vocabulary
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
CALL () {
  UNWIND $all.rows AS row
  CALL db.index.fulltext.queryNodes('qrmem_terms', row.query) YIELD node
  WITH row.term AS term, count(*) AS number
  RETURN collect([term, number]) AS counts
}
RETURN coalesce(n.indexed, 0), coalesce(n.terms, 0), counts

// :: indexed_titles
UNWIND $all.rows AS key
MATCH (d:Document {ns: $ns, key: key})-[:HAS]->(s:Segment) WHERE s.qrmem_terms IS NOT NULL
RETURN s.key, d.title, s.qrmem_terms, s.qrmem_of_title

// :: untitle
UNWIND $all.rows AS key
MATCH (d:Document {ns: $ns, key: key})<-[means:MEANS]-(t:QrmemTitle)
DELETE means
WITH DISTINCT t WHERE NOT EXISTS { (t)-[:MEANS]->() }
DELETE t

// :: title
UNWIND $all.rows AS row
MATCH (d:Document {ns: $ns, key: row.document})
MERGE (t:QrmemTitle {ns: $ns, key: row.form})
CREATE (t)-[:MEANS {sure: row.sure}]->(d)

// :: titled
// The driver sends the lines of one text faster than a list. Most long names begin like no title,
// and many begin alike, so one lookup in the index excludes them.
WITH split($all.long, '\n') AS long
CALL (long) {
  UNWIND split($all.short, '\n') AS form
  MATCH (t:QrmemTitle {ns: $ns, key: form})
  RETURN t
  UNION ALL
  UNWIND split($all.beginnings, '\n') AS beginning
  MATCH (t:QrmemTitle) WHERE t.ns = $ns AND t.key STARTS WITH beginning
  WITH t, long WHERE t.key IN long
  RETURN t
}
WITH t WHERE COUNT { (t)-[:MEANS]->() } <= $all.most
MATCH (t)-[means:MEANS]->(d:Document)
CALL (d) {
  MATCH (d)-[:HAS]->(s:Segment) WHERE s.qrmem_terms IS NOT NULL
  WITH s ORDER BY s.index LIMIT $all.first
  RETURN collect(coalesce(s.full, s.key)) AS segments
}
RETURN t.key, coalesce(d.full, d.key), means.sure, segments

// :: matching
UNWIND $all.rows AS asked
CALL (asked) {
  CALL db.index.fulltext.queryNodes('qrmem_terms', asked, {limit: $all.limit}) YIELD node, score
  RETURN collect([coalesce(node.full, node.key), score, node.document, node.index]) AS found
}
RETURN asked, found

// :: matching_in
UNWIND $all.rows AS asked
CALL (asked) {
  CALL db.index.fulltext.queryNodes('qrmem_terms', asked) YIELD node, score
  WHERE ($all.documents IS NULL OR node.document IN $all.documents)
    AND ($all.among IS NULL OR node.key IN $all.among)
  WITH node, score ORDER BY score DESC LIMIT $all.limit
  RETURN collect([coalesce(node.full, node.key), score, node.document, node.index]) AS found
}
RETURN asked, found

// :: entries
UNWIND $all.rows AS key
MATCH (d:Document)-[:HAS]->(s:Segment {ns: $ns, key: key}) WHERE s.qrmem_terms IS NOT NULL
RETURN collect([coalesce(s.full, s.key), s.document, s.index, d.title,
  [name IN keys(d) WHERE name STARTS WITH $all.metadata | [name, d[name]]],
  s.qrmem_terms])
