// :: known_segments
UNWIND $rows AS key
MATCH (s:Segment {ns: $ns, key: key})
RETURN collect(key)

// :: put_ledger
UNWIND $rows AS row
MATCH (s:Segment {ns: $ns, key: row.key})
SET s.state = row.state, s.reason = row.reason, s.reasoner = row.reasoner

// :: put_contributions
UNWIND $rows AS row
MATCH (s:Segment {ns: $ns, key: row.segment})
MERGE (c:Contribution {ns: $ns, key: row.key})
SET c.kind = row.kind, c.body = row.body
MERGE (s)-[:CONTRIBUTED]->(c)

// :: ledger
MATCH (s:Segment)
WHERE s.ns = $ns AND s.key IS NOT NULL
RETURN s.document, s.index, coalesce(s.full, s.key), s.state, coalesce(s.reason, ''),
  coalesce(s.reasoner, '')

// :: ledger_of
UNWIND $rows AS row
MATCH (:Document {ns: $ns, key: row[1]})-[:HAS]->(s:Segment)
RETURN row[0], s.index, coalesce(s.full, s.key), s.state, coalesce(s.reason, ''),
  coalesce(s.reasoner, '')

// :: contributions
UNWIND $rows AS row
MATCH (:Document {ns: $ns, key: row[1]})-[:HAS]->(s:Segment)-[:CONTRIBUTED]->(c:Contribution)
WHERE c.kind IN $kinds
RETURN row[0], s.index, c.body

// :: decide
MERGE (d:Decision {ns: $ns, key: $key})
SET d.first = $first, d.second = $second, d.same = $same

// :: decisions
MATCH (d:Decision)
WHERE d.ns = $ns AND d.key IS NOT NULL
RETURN d.first, d.second, d.same

// :: stale_names
MATCH (s:Stale)
WHERE s.ns = $ns AND s.key IS NOT NULL
RETURN coalesce(s.full, s.key), s.entity

// :: mark_called
UNWIND $rows AS prefix
MATCH (n:Name)-[:NAMES]->(e:Entity)
WHERE n.ns = $ns AND n.key STARTS WITH prefix
MERGE (s:Stale {ns: $ns, key: n.key})
ON CREATE SET s.full = n.full, s.entity = coalesce(e.full, e.key)
