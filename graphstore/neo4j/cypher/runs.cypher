// :: put_trail
MERGE (t:Trail {ns: $ns, key: $all.key})
SET t += $all.properties, t.arrival = coalesce(t.arrival, $all.arrival)

// :: drop_steps
MATCH (:Trail {ns: $ns, key: $all.key})-[:STEP]->(s:Step)
DETACH DELETE s

// :: put_steps
UNWIND $all.rows AS row
MATCH (t:Trail {ns: $ns, key: $all.key})
CREATE (t)-[:STEP]->(s:Step {ns: $ns})
SET s += row

// :: chain_steps
MATCH (t:Trail {ns: $ns, key: $all.key})-[:STEP]->(a:Step)
MATCH (t)-[:STEP]->(b:Step) WHERE b.n = a.n + 1
CREATE (a)-[:THEN]->(b)

// :: put_read
UNWIND $all.rows AS row
MATCH (p:Step {ns: $ns, key: row.step})
MATCH (s:Segment {ns: $ns, key: row.segment})
CREATE (p)-[r:READ]->(s)
SET r = row.properties

// :: put_dropped
UNWIND $all.rows AS row
MATCH (p:Step {ns: $ns, key: row.step})
MATCH (s:Segment {ns: $ns, key: row.segment})
CREATE (p)-[r:DROPPED]->(s)
SET r = row.properties

// :: entity_keys
UNWIND $all.rows AS word
CALL (word) {
  MATCH (e:Entity {ns: $ns, key: word})
  RETURN e.key AS key
  UNION
  MATCH (e:Entity {ns: $ns, name: word})
  RETURN e.key AS key
}
RETURN word, min(key)

// :: put_expanded
UNWIND $all.rows AS row
MATCH (p:Step {ns: $ns, key: row.step})
MATCH (e:Entity {ns: $ns, key: row.entity})
CREATE (p)-[r:EXPANDED]->(e)
SET r = row.properties

// :: trail
MATCH (t:Trail {ns: $ns, key: $all.key})
RETURN t.qrmem_body

// :: trails
MATCH (t:Trail)
WHERE t.ns = $ns AND t.created IS NOT NULL AND t.arrival IS NOT NULL
// ns first: the index then has this order, and the query reads only the last rows
WITH t ORDER BY t.ns DESC, t.created DESC, t.arrival DESC SKIP $all.skip LIMIT $all.limit
RETURN t.qrmem_body

// :: trails_oldest_first
MATCH (t:Trail)
WHERE t.ns = $ns AND t.created IS NOT NULL AND t.arrival IS NOT NULL
WITH t ORDER BY t.ns, t.created, t.arrival SKIP $all.skip LIMIT $all.limit
RETURN t.qrmem_body

// :: trails_after
MATCH (t:Trail)
WHERE t.ns = $ns AND t.key > $all.key
// ns first: the index then has this order
WITH t ORDER BY t.ns, t.key LIMIT $all.limit
RETURN t.key, t.qrmem_body

// :: has_trails
MATCH (t:Trail)
WHERE t.ns = $ns AND t.key IS NOT NULL
RETURN 1 LIMIT 1

// :: put_calls
UNWIND $all.rows AS row
CREATE (c:QrmemCall {ns: $ns})
SET c += row

// :: calls
MATCH (c:QrmemCall)
WHERE c.ns = $ns AND c.key IS NOT NULL
RETURN c.body ORDER BY c.key

// :: put_cache_entry
MERGE (r:QrmemReply {ns: $ns, key: $all.key})
SET r += $all.properties
WITH r
OPTIONAL MATCH (r)-[old:ABOUT]->()
DELETE old

// :: tie_cached
UNWIND $all.rows AS segment
MATCH (r:QrmemReply {ns: $ns, key: $all.key})
MATCH (s:Segment {ns: $ns, key: segment})
CREATE (r)-[:ABOUT]->(s)

// :: tie_to_all
MATCH (r:QrmemReply {ns: $ns, key: $all.key})
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
CREATE (r)-[:ABOUT]->(n)

// :: draw_node
MATCH (r:QrmemReply {ns: $ns, key: $all.key})
SET r:TreeNode, r += $all.shown
WITH r
OPTIONAL MATCH (r)-[old:COVERS]->()
DELETE old

// :: cover_nodes
UNWIND $all.rows AS below
MATCH (r:QrmemReply {ns: $ns, key: $all.key})
MATCH (c:QrmemReply {ns: $ns, key: below})
CREATE (r)-[:COVERS]->(c)

// :: cover_segments
UNWIND $all.rows AS below
MATCH (r:QrmemReply {ns: $ns, key: $all.key})
MATCH (c:Segment {ns: $ns, key: below})
CREATE (r)-[:COVERS]->(c)

// :: cache_keys
MATCH (r:QrmemReply)
WHERE r.ns = $ns AND r.key STARTS WITH $all.start
RETURN collect(r.qrmem_key)

// :: cache_entries
UNWIND $all.rows AS key
MATCH (r:QrmemReply {ns: $ns, key: key})
RETURN r.qrmem_key, r.qrmem_value, r.qrmem_segments

// :: drop_cache_entries
UNWIND $all.rows AS key
MATCH (r:QrmemReply {ns: $ns, key: key})
DETACH DELETE r

// :: drop_cached_about
UNWIND $all.rows AS segment
MATCH (s:Segment {ns: $ns, key: segment})<-[:ABOUT]-(r:QrmemReply)
DETACH DELETE r

// :: drop_untied
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})<-[:ABOUT]-(r:QrmemReply)
DETACH DELETE r
