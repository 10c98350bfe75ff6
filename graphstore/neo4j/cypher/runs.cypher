// :: put_trail
MERGE (t:Trail {ns: $ns, key: $key})
SET t += $properties, t.arrival = coalesce($arrival, t.arrival)

// :: drop_steps
MATCH (:Trail {ns: $ns, key: $key})-[:STEP]->(s:Step)
DETACH DELETE s

// :: put_steps
UNWIND $rows AS row
MATCH (t:Trail {ns: $ns, key: $key})
CREATE (t)-[:STEP]->(s:Step {ns: $ns})
SET s += row

// :: chain_steps
MATCH (t:Trail {ns: $ns, key: $key})-[:STEP]->(a:Step)
MATCH (t)-[:STEP]->(b:Step) WHERE b.n = a.n + 1
CREATE (a)-[:THEN]->(b)

// :: put_read
UNWIND $rows AS row
MATCH (p:Step {ns: $ns, key: row.step})
MATCH (s:Segment {ns: $ns, key: row.segment})
CREATE (p)-[r:READ]->(s)
SET r = row.properties

// :: put_dropped
UNWIND $rows AS row
MATCH (p:Step {ns: $ns, key: row.step})
MATCH (s:Segment {ns: $ns, key: row.segment})
CREATE (p)-[r:DROPPED]->(s)
SET r = row.properties

// :: entity_keys
UNWIND $rows AS word
CALL (word) {
  MATCH (e:Entity {ns: $ns, key: word})
  RETURN e.key AS key
  UNION
  MATCH (e:Entity {ns: $ns, name: word})
  RETURN e.key AS key
}
RETURN word, min(key)

// :: put_expanded
UNWIND $rows AS row
MATCH (p:Step {ns: $ns, key: row.step})
MATCH (e:Entity {ns: $ns, key: row.entity})
CREATE (p)-[r:EXPANDED]->(e)
SET r = row.properties

// :: trail
MATCH (t:Trail {ns: $ns, key: $key})
RETURN t.body

// :: trails
MATCH (t:Trail)
WHERE t.ns = $ns AND t.created IS NOT NULL AND t.arrival IS NOT NULL
// by ns first: so the index has the order, and the last are found without the others
WITH t ORDER BY t.ns DESC, t.created DESC, t.arrival DESC LIMIT $limit
RETURN t.body

// :: all_trails
MATCH (t:Trail)
WHERE t.ns = $ns AND t.key IS NOT NULL
RETURN t.body

// :: has_trails
MATCH (t:Trail)
WHERE t.ns = $ns AND t.key IS NOT NULL
RETURN 1 LIMIT 1

// :: put_calls
UNWIND $rows AS row
CREATE (c:Call {ns: $ns})
SET c += row

// :: calls
MATCH (c:Call)
WHERE c.ns = $ns AND c.key IS NOT NULL
RETURN c.body ORDER BY c.key

// :: put_cached
MERGE (r:Reply {ns: $ns, key: $key})
SET r += $properties
WITH r
OPTIONAL MATCH (r)-[old:ABOUT]->()
DELETE old

// :: tie_cached
UNWIND $rows AS segment
MATCH (r:Reply {ns: $ns, key: $key})
MATCH (s:Segment {ns: $ns, key: segment})
CREATE (r)-[:ABOUT]->(s)

// :: tie_to_all
MATCH (r:Reply {ns: $ns, key: $key})
MATCH (n:Namespace {ns: $ns, key: 'namespace'})
CREATE (r)-[:ABOUT]->(n)

// :: draw_node
MATCH (r:Reply {ns: $ns, key: $key})
SET r:TreeNode, r += $shown
WITH r
OPTIONAL MATCH (r)-[old:COVERS]->()
DELETE old

// :: cover_nodes
UNWIND $rows AS below
MATCH (r:Reply {ns: $ns, key: $key})
MATCH (c:Reply {ns: $ns, key: below})
CREATE (r)-[:COVERS]->(c)

// :: cover_segments
UNWIND $rows AS below
MATCH (r:Reply {ns: $ns, key: $key})
MATCH (c:Segment {ns: $ns, key: below})
CREATE (r)-[:COVERS]->(c)

// :: cached_keys
MATCH (r:Reply)
WHERE r.ns = $ns AND r.key STARTS WITH $start
RETURN collect(r.full)

// :: cached
UNWIND $rows AS key
MATCH (r:Reply {ns: $ns, key: key})
RETURN r.full, r.value, r.segments

// :: drop_cached
UNWIND $rows AS key
MATCH (r:Reply {ns: $ns, key: key})
DETACH DELETE r

// :: drop_cached_about
UNWIND $rows AS segment
MATCH (s:Segment {ns: $ns, key: segment})<-[:ABOUT]-(r:Reply)
DETACH DELETE r

// :: drop_untied
MATCH (n:Namespace {ns: $ns, key: 'namespace'})<-[:ABOUT]-(r:Reply)
DETACH DELETE r
