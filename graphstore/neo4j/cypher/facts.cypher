// :: known_segments
UNWIND $rows AS key
MATCH (s:Segment {ns: $ns, key: key})
  USING INDEX SEEK s:Segment(ns, key)
RETURN collect(key)

// :: put_ledger
UNWIND $rows AS row
MATCH (s:Segment {ns: $ns, key: row[0]})
  USING INDEX SEEK s:Segment(ns, key)
SET s.state = row[1], s.reason = row[2], s.reasoner = row[3]

// :: put_contributions
UNWIND $rows AS row
MATCH (s:Segment {ns: $ns, key: row[0]})
  USING INDEX SEEK s:Segment(ns, key)
MERGE (c:Contribution {ns: $ns, key: row[1]})
ON CREATE SET c.kind = row[2]
SET c.body = row[3]
MERGE (s)-[:CONTRIBUTED]->(c)

// :: ledger
MATCH (s:Segment)
  USING INDEX SEEK s:Segment(ns, key)
WHERE s.ns = $ns AND s.key IS NOT NULL
RETURN s.document, s.index, coalesce(s.full, s.key), s.state, coalesce(s.reason, ''),
  coalesce(s.reasoner, '')

// :: ledger_of
UNWIND $rows AS row
MATCH (d:Document {ns: $ns, key: row[1]})-[:HAS]->(s:Segment)
  USING INDEX SEEK d:Document(ns, key)
RETURN row[0], s.index, coalesce(s.full, s.key), s.state, coalesce(s.reason, ''),
  coalesce(s.reasoner, '')

// :: contributions
UNWIND $rows AS row
MATCH (d:Document {ns: $ns, key: row[1]})-[:HAS]->(s:Segment)-[:CONTRIBUTED]->(c:Contribution)
  USING INDEX SEEK d:Document(ns, key)
WHERE c.kind IN $kinds
RETURN row[0], s.index, c.body

// :: decide
MERGE (d:Decision {ns: $ns, key: $key})
ON CREATE SET d.first = $first, d.second = $second
SET d.same = $same

// :: decisions
MATCH (d:Decision)
  USING INDEX SEEK d:Decision(ns, key)
WHERE d.ns = $ns AND d.key IS NOT NULL
RETURN d.first, d.second, d.same
