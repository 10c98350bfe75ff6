// :: put_trail
MERGE (t:Trail {ns: $ns, key: $key})
SET t.full = $full, t.question = $question, t.strategy = $strategy, t.status = $status,
  t.answer = $answer, t.created = $created, t.body = $body, t.arrival = coalesce($arrival, t.arrival)

// :: drop_steps
MATCH (t:Trail {ns: $ns, key: $key})-[:STEP]->(s:Step)
  USING INDEX SEEK t:Trail(ns, key)
DETACH DELETE s

// :: put_steps
UNWIND $rows AS row
MATCH (t:Trail {ns: $ns, key: $key})
  USING INDEX SEEK t:Trail(ns, key)
CREATE (t)-[:STEP]->(:Step {ns: $ns, key: row[0], n: row[1], action: row[2], entities: row[3],
  verdict: row[4], reason: row[5], tokens: row[6]})

// :: chain_steps
MATCH (t:Trail {ns: $ns, key: $key})-[:STEP]->(a:Step)
  USING INDEX SEEK t:Trail(ns, key)
MATCH (t)-[:STEP]->(b:Step) WHERE b.n = a.n + 1
CREATE (a)-[:THEN]->(b)

// :: put_read
UNWIND $rows AS row
MATCH (p:Step {ns: $ns, key: row[0]})
  USING INDEX SEEK p:Step(ns, key)
MATCH (s:Segment {ns: $ns, key: row[1]})
  USING INDEX SEEK s:Segment(ns, key)
CREATE (p)-[:READ {score: row[2], tokens: row[3], n: row[4]}]->(s)

// :: put_dropped
UNWIND $rows AS row
MATCH (p:Step {ns: $ns, key: row[0]})
  USING INDEX SEEK p:Step(ns, key)
MATCH (s:Segment {ns: $ns, key: row[1]})
  USING INDEX SEEK s:Segment(ns, key)
CREATE (p)-[:DROPPED {score: row[2], tokens: row[3], n: row[4]}]->(s)

// :: entity_keys
MATCH (e:Entity)
  USING INDEX SEEK e:Entity(ns, key)
WHERE e.ns = $ns AND e.key IS NOT NULL AND (e.name IN $words OR e.key IN $words)
RETURN e.key, e.name

// :: put_expanded
UNWIND $rows AS row
MATCH (p:Step {ns: $ns, key: row[0]})
  USING INDEX SEEK p:Step(ns, key)
MATCH (e:Entity {ns: $ns, key: row[1]})
  USING INDEX SEEK e:Entity(ns, key)
CREATE (p)-[:EXPANDED {score: row[2], description: row[3], taken: row[4], n: row[5]}]->(e)

// :: trail
MATCH (t:Trail {ns: $ns, key: $key})
  USING INDEX SEEK t:Trail(ns, key)
RETURN t.body

// :: trails
MATCH (t:Trail)
  USING INDEX SEEK t:Trail(ns, key)
WHERE t.ns = $ns AND t.key IS NOT NULL
RETURN t.body ORDER BY t.created DESC, t.arrival DESC LIMIT $limit

// :: all_trails
MATCH (t:Trail)
  USING INDEX SEEK t:Trail(ns, key)
WHERE t.ns = $ns AND t.key IS NOT NULL RETURN t.body

// :: has_trails
MATCH (t:Trail)
  USING INDEX SEEK t:Trail(ns, key)
WHERE t.ns = $ns AND t.key IS NOT NULL RETURN 1 LIMIT 1

// :: put_calls
UNWIND $rows AS row
CREATE (:Call {ns: $ns, key: row[0], stage: row[1], body: row[2]})

// :: calls
MATCH (c:Call)
  USING INDEX SEEK c:Call(ns, key)
WHERE c.ns = $ns AND c.key IS NOT NULL
RETURN c.body ORDER BY c.key

// :: cached
MATCH (r:Reply {ns: $ns, key: $key})
  USING INDEX SEEK r:Reply(ns, key)
RETURN r.value

// :: put_cached
MERGE (r:Reply {ns: $ns, key: $key})
SET r.full = $full, r.value = $value, r.segments = $segments

// :: kept_keys
MATCH (r:Reply)
  USING INDEX SEEK r:Reply(ns, key)
WHERE r.ns = $ns AND r.key IS NOT NULL RETURN collect(coalesce(r.full, r.key))

// :: kept
UNWIND $rows AS key
MATCH (r:Reply {ns: $ns, key: key})
  USING INDEX SEEK r:Reply(ns, key)
RETURN coalesce(r.full, r.key), r.value, r.segments

// :: drop_kept
UNWIND $rows AS key
MATCH (r:Reply {ns: $ns, key: key})
  USING INDEX SEEK r:Reply(ns, key)
DELETE r

// :: drop_cached
MATCH (r:Reply)
  USING INDEX SEEK r:Reply(ns, key)
WHERE r.ns = $ns AND r.key IS NOT NULL
    AND (size(r.segments) = 0 OR any(s IN r.segments WHERE s IN $segments))
DELETE r
