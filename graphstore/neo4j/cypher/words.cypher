// :: number
UNWIND $rows AS row
MATCH (s:Segment {ns: $ns, key: row[0]})
  USING INDEX SEEK s:Segment(ns, key)
SET s.number = row[1], s.length = row[2]

// :: unnumber
UNWIND $rows AS key
MATCH (s:Segment {ns: $ns, key: key})
  USING INDEX SEEK s:Segment(ns, key)
WHERE s.number IS NOT NULL
WITH s, s.number AS number
REMOVE s.number, s.length
RETURN number

// :: put
UNWIND $rows AS row
CREATE (:Postings {ns: $ns, key: row[0], run: row[1], first: row[2], last: row[3], terms: row[4],
  sizes: row[5], numbers: row[6], counts: row[7], rows: row[8]})

// :: find
MATCH (p:Postings)
  USING INDEX SEEK p:Postings(ns, key)
WHERE p.ns = $ns AND p.key IS NOT NULL
  AND any(mark IN $marks WHERE p.first <= mark <= p.last)
RETURN p.terms, p.sizes, p.numbers, p.counts ORDER BY p.run

// :: dropped
MATCH (n:Namespace {ns: $ns, key: 'namespace'})
  USING INDEX SEEK n:Namespace(ns, key)
RETURN n.dropped

// :: set_dropped
MATCH (n:Namespace {ns: $ns, key: 'namespace'})
  USING INDEX SEEK n:Namespace(ns, key)
SET n.dropped = $dropped

// :: runs
MATCH (p:Postings)
  USING INDEX SEEK p:Postings(ns, key)
WHERE p.ns = $ns AND p.key IS NOT NULL
RETURN p.run AS run, sum(p.rows) ORDER BY run

// :: run
MATCH (p:Postings)
  USING INDEX SEEK p:Postings(ns, key)
WHERE p.ns = $ns AND p.key IS NOT NULL AND p.run IN $runs
RETURN p.terms, p.sizes, p.numbers, p.counts ORDER BY p.run

// :: drop_runs
MATCH (p:Postings)
  USING INDEX SEEK p:Postings(ns, key)
WHERE p.ns = $ns AND p.key IS NOT NULL AND p.run IN $runs
DELETE p

// :: catalog
MATCH (s:Segment)
  USING INDEX SEEK s:Segment(ns, key)
WHERE s.ns = $ns AND s.key IS NOT NULL AND s.number IS NOT NULL
RETURN collect([s.number, s.length, s.index]), collect(coalesce(s.full, s.key)),
  collect(s.document)
