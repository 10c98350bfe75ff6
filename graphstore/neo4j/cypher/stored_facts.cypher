// :: lock
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
WHERE n.deleting IS NULL
SET n.locked = true
WITH n
CALL () {
  UNWIND $all.keys AS key
  MATCH (s:Segment {ns: $ns, key: key})
  RETURN collect(key) AS known
}
RETURN known

// :: put_ledger
UNWIND $all.rows AS row
MATCH (s:Segment {ns: $ns, key: row.key})
SET s.state = row.state, s.reason = row.reason, s.reasoner = row.reasoner

// :: put_contributions
UNWIND $all.rows AS row
MATCH (s:Segment {ns: $ns, key: row.segment})
MERGE (c:QrmemContribution {ns: $ns, key: row.key})
SET c.kind = row.kind, c.body = row.body
MERGE (s)-[:CONTRIBUTED]->(c)

// :: put_summaries
UNWIND $all.rows AS row
MATCH (d:Document {ns: $ns, key: row.key})
SET d.summary = row.summary

// :: ledger
MATCH (s:Segment)
WHERE s.ns = $ns AND s.key IS NOT NULL
RETURN s.document, s.index, coalesce(s.full, s.key), s.state, coalesce(s.reason, ''),
  coalesce(s.reasoner, ''), coalesce(s.qrmem_merged, '')

// :: ledger_of
UNWIND $all.rows AS row
MATCH (:Document {ns: $ns, key: row[1]})-[:HAS]->(s:Segment)
RETURN row[0], s.index, coalesce(s.full, s.key), s.state, coalesce(s.reason, ''),
  coalesce(s.reasoner, ''), coalesce(s.qrmem_merged, '')

// :: contributions
UNWIND $all.rows AS row
MATCH (:Document {ns: $ns, key: row[1]})-[:HAS]->(s:Segment)-[:CONTRIBUTED]->(c:QrmemContribution)
WHERE c.kind IN $all.kinds
RETURN row[0], s.index, c.body

// :: edits
MATCH (c:QrmemContribution)
WHERE c.ns = $ns AND c.kind = 'edit'
MATCH (d:Document)-[:HAS]->(s:Segment)-[:CONTRIBUTED]->(c)
RETURN s.document, s.index, coalesce(d.meta_user, ''), c.body

// :: override_merge
MERGE (d:QrmemDecision {ns: $ns, key: $all.key})
SET d.first = $all.first, d.second = $all.second, d.same = $all.same

// :: unmerged
OPTIONAL MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
WHERE n.deleting IS NULL
CALL () {
  MATCH (s:QrmemStale)
  WHERE s.ns = $ns AND s.key IS NOT NULL
  RETURN collect([coalesce(s.full, s.key), s.entity]) AS stale
}
CALL () {
  MATCH (d:QrmemDecision)
  WHERE d.ns = $ns AND d.key IS NOT NULL
  RETURN collect([d.first, d.second, d.same]) AS decisions
}
RETURN coalesce(n.revision, 0), stale, decisions

// :: read
UNWIND $all.rows AS row
MATCH (d:Document {ns: $ns, key: row[1]})-[:HAS]->(s:Segment)
CALL (s) {
  MATCH (s)-[:CONTRIBUTED]->(c:QrmemContribution)
  WHERE c.kind IN $all.kinds
  RETURN collect(c.body) AS bodies
}
RETURN row[0], coalesce(s.full, s.key), s.document, s.index, s.qrmem_start, s.qrmem_stop, s.text, s.tokens,
  s.part, d.meta_at, d.meta_date, d.meta_user, s.qrmem_merged, bodies

// :: mark_called
UNWIND $all.rows AS prefix
MATCH (n:Name)-[:NAMES]->(e:Entity)
WHERE n.ns = $ns AND n.key STARTS WITH prefix
MERGE (s:QrmemStale {ns: $ns, key: n.key})
ON CREATE SET s.full = n.full, s.entity = coalesce(e.full, e.key, elementId(e))
