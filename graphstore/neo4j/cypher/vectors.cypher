// :: put
UNWIND $all.rows AS row
MATCH (s:Segment {ns: $ns, key: row.segment})
CREATE (s)-[:WINDOW]->(w:QrmemWindow {ns: $ns, key: row.key, n: row.n})
SET w += row.vector

// :: drop
UNWIND $all.rows AS key
MATCH (:Segment {ns: $ns, key: key})-[:WINDOW]->(w:QrmemWindow)
DETACH DELETE w

// :: drop_all
MATCH (w:QrmemWindow) WHERE w.ns = $ns AND w.key IS NOT NULL
DETACH DELETE w

// :: of_segments
UNWIND $all.rows AS key
MATCH (s:Segment {ns: $ns, key: key})-[:WINDOW]->(w:QrmemWindow)
RETURN collect([s.document, s.index, w.n, coalesce(s.full, s.key), w[$all.property]])

// :: owners
MATCH (s:Segment) WHERE s.ns = $ns AND s.key IS NOT NULL AND EXISTS { (s)-[:WINDOW]->() }
RETURN collect([s.document, s.index, coalesce(s.full, s.key)])

// :: owners_among
UNWIND $all.rows AS key
MATCH (s:Segment {ns: $ns, key: key}) WHERE EXISTS { (s)-[:WINDOW]->() }
RETURN collect([s.document, s.index, coalesce(s.full, s.key)])

// :: has_many
MATCH (w:QrmemWindow) WHERE w.ns = $ns AND w.key IS NOT NULL
WITH w LIMIT $all.most
RETURN count(w) = $all.most

// :: nearest
MATCH (s:Segment)-[:WINDOW]->(w:QrmemWindow) WHERE w.ns = $ns AND w.key IS NOT NULL
WITH s, max(vector.similarity.cosine(w[$all.property], $all.vector)) AS score
ORDER BY score DESC, s.document, s.index LIMIT $all.limit
RETURN coalesce(s.full, s.key), score

// :: nearest_of_documents
MATCH (s:Segment)-[:WINDOW]->(w:QrmemWindow) WHERE s.ns = $ns AND s.document IN $all.documents
WITH s, max(vector.similarity.cosine(w[$all.property], $all.vector)) AS score
ORDER BY score DESC, s.document, s.index LIMIT $all.limit
RETURN coalesce(s.full, s.key), score

// :: nearest_among
UNWIND $all.rows AS key
MATCH (s:Segment {ns: $ns, key: key})-[:WINDOW]->(w:QrmemWindow)
WITH s, max(vector.similarity.cosine(w[$all.property], $all.vector)) AS score
RETURN coalesce(s.full, s.key), score, s.document

// :: nearest_by_index
CALL db.index.vector.queryNodes($all.index, $all.k, $all.vector) YIELD node AS w, score
WHERE w.ns = $ns
MATCH (s:Segment)-[:WINDOW]->(w)
RETURN coalesce(s.full, s.key), max(score) AS score ORDER BY score DESC LIMIT $all.limit

// :: put_relations
UNWIND $all.rows AS row
MERGE (v:QrmemRelationVector {ns: $ns, key: row.key})
SET v.owner = row.owner, v.vector = row.vector

// :: relations
MATCH (v:QrmemRelationVector) WHERE v.ns = $ns AND v.key IN $all.keys
RETURN v.owner, v.vector ORDER BY v.owner

// :: relation_owners
MATCH (v:QrmemRelationVector) WHERE v.ns = $ns AND v.key IS NOT NULL
RETURN collect(v.owner)

// :: drop_relations
MATCH (v:QrmemRelationVector) WHERE v.ns = $ns AND v.key IS NOT NULL
DELETE v
