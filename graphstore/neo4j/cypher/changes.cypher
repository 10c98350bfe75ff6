// :: names
UNWIND $all.rows AS key
MATCH (n:Name {ns: $ns, key: key})-[:NAMES]->(e:Entity)
RETURN n.key, coalesce(e.key, elementId(e)), n.forms, n.counts, n.mentions

// :: known_entities
UNWIND $all.rows AS key
MATCH (e:Entity {ns: $ns, key: key})
RETURN collect(key)

// :: before
UNWIND $all.rows AS key
MATCH (s:Segment {ns: $ns, key: key})
RETURN key, head([(d:Document)-[:HAS]->(s) | d.title]), s.length,
  [(s)-[m:MENTIONS]->(:Entity) | [m.name, m.forms, m.counts, m.own IS NOT NULL]],
  [(s)<-[:ASKED_OF]-(q:Question) | [q.text, q.n]],
  COLLECT {
    MATCH (:Entity)-[r:RELATES {ns: $ns, segment: key}]->(:Entity)
    RETURN r.n
    UNION
    // A relationship of another type is found from its end: no index knows all types.
    WITH s, key WHERE s.types IS NOT NULL
    MATCH (s)-[:MENTIONS]->(:Entity)-[r:$any(s.types)]->(:Entity)
    WHERE r.segment = key
    RETURN r.n
  }

// :: stated
UNWIND $all.rows AS key
CALL (key) {
  MATCH (h:Entity)-[r:RELATES {ns: $ns, segment: key}]->(t:Entity)
  RETURN h, r, t
  UNION
  MATCH (s:Segment {ns: $ns, key: key}) WHERE s.types IS NOT NULL
  MATCH (s)-[:MENTIONS]->(h:Entity)-[r:$any(s.types)]->(t:Entity)
  WHERE r.segment = key
  RETURN h, r, t
}
RETURN collect([key, r.n, coalesce(h.full, h.key), coalesce(t.full, t.key)])

// :: clear
UNWIND $all.rows AS key
MATCH (s:Segment {ns: $ns, key: key})
SET s.merged = null
WITH s
CALL (s) {
  WITH * WHERE s.types IS NOT NULL
  MATCH (s)-[:MENTIONS]->(:Entity)-[r:$any(s.types)]->(:Entity)
  WHERE r.segment = s.key
  WITH DISTINCT r
  DELETE r
}
CALL (s) {
  MATCH (s)-[m:MENTIONS]->(:Entity)
  DELETE m
}
CALL (s) {
  MATCH (s)<-[:ASKED_OF]-(q:Question)
  OPTIONAL MATCH (q)-[:ADDED]->(r:Relation)
  DETACH DELETE q, r
}
CALL (s) {
  MATCH (:Entity)-[r:RELATES {ns: $ns, segment: s.key}]->(:Entity)
  DELETE r
}
SET s.types = null

// :: drop_mentions
UNWIND $all.rows AS row
MATCH (s:Segment {ns: $ns, key: row.segment})-[m:MENTIONS {name: row.name}]->(:Entity)
OPTIONAL MATCH (s)<-[:ASKED_OF]-(:Question)-[a:ADDED {name: row.name}]->(:Entity)
DELETE m, a

// :: drop_facts
UNWIND $all.rows AS row
CALL (row) {
  MATCH (:Entity)-[r:RELATES {ns: $ns, segment: row.segment, n: row.n}]->(:Entity)
  RETURN r
  UNION
  MATCH (s:Segment {ns: $ns, key: row.segment}) WHERE s.types IS NOT NULL
  MATCH (s)-[:MENTIONS]->(:Entity)-[r:$any(s.types) {n: row.n}]->(:Entity)
  WHERE r.segment = row.segment
  RETURN r
}
OPTIONAL MATCH (x:Relation {ns: $ns, key: row.key})
DETACH DELETE r, x

// :: put_entities
UNWIND $all.rows AS row
MERGE (e:Entity {ns: $ns, key: row.entity.key})
// the label of the type that it had
WITH e, row, reduce(label = '', word IN split(coalesce(e.type, ''), '_') |
  label + toUpper(left(word, 1)) + toLower(substring(word, 1))) AS was
WITH e, row, [label IN labels(e) WHERE label = was AND label <> 'Entity'] AS old
REMOVE e:$(old)
SET e += row.entity
SET e:$(row.labels)

// :: put_names
UNWIND $all.rows AS row
MATCH (e:Entity {ns: $ns, key: row.entity})
MERGE (n:Name {ns: $ns, key: row.name.key})
SET n += row.name
WITH n, e
CALL (n, e) {
  MATCH (n)-[old:NAMES]->(other:Entity)
  WHERE other <> e
  DELETE old
}
MERGE (n)-[:NAMES]->(e)

// :: move_incoming
UNWIND $all.rows AS row
MATCH (e:Entity {ns: $ns, key: row.now})
MATCH (was:Entity {ns: $ns, key: row.was})<-[old]-(from)
WHERE (old:MENTIONS|ADDED|FROM|TO AND old.name = row.key) OR (from:Entity AND old.tail = row.key)
CREATE (from)-[new:$(type(old))]->(e)
SET new = properties(old)
DELETE old

// :: move_outgoing
UNWIND $all.rows AS row
MATCH (e:Entity {ns: $ns, key: row.now})
MATCH (was:Entity {ns: $ns, key: row.was})-[old]->(to:Entity)
WHERE old.head = row.key
CREATE (e)-[new:$(type(old))]->(to)
SET new = properties(old)
DELETE old

// :: put_blocks
UNWIND $all.rows AS row
MATCH (n:Name {ns: $ns, key: row.key})
UNWIND row.blocks AS block
MERGE (b:Block {ns: $ns, key: block})
MERGE (n)-[:IN]->(b)

// :: mark_stale
UNWIND $all.rows AS key
MATCH (n:Name {ns: $ns, key: key})-[:NAMES]->(e:Entity)
MERGE (s:Stale {ns: $ns, key: key})
ON CREATE SET s.full = n.full, s.entity = coalesce(e.full, e.key, elementId(e))

// :: resolve
UNWIND $all.rows AS key
MATCH (s:Stale {ns: $ns, key: key})
DELETE s

// :: drop_names
UNWIND $all.rows AS row
MATCH (n:Name {ns: $ns, key: row.key})
CALL (n) {
  MATCH (n)-[in:IN]->(b:Block)
  DELETE in
  WITH b
  WHERE NOT EXISTS { (b)<-[:IN]-(:Name) }
  DELETE b
}
CALL (row) {
  MATCH (:Entity {ns: $ns, key: row.was})-[r]-(:Entity)
  WHERE r.head = row.key OR r.tail = row.key
  WITH DISTINCT r
  DELETE r
}
CALL (row) {
  MATCH (:Entity {ns: $ns, key: row.was})<-[end:FROM|TO]-(r:Relation)
  WHERE end.name = row.key
  WITH DISTINCT r
  DETACH DELETE r
}
DETACH DELETE n

// :: put_mentions
UNWIND $all.rows AS row
MATCH (s:Segment {ns: $ns, key: row.segment})
UNWIND row.mentions AS mention
MATCH (e:Entity {ns: $ns, key: mention.entity})
CREATE (s)-[m:MENTIONS]->(e)
SET m = mention.properties

// :: put_facts
UNWIND $all.rows AS fact
MATCH (h:Entity {ns: $ns, key: fact.head})
MATCH (t:Entity {ns: $ns, key: fact.tail})
CREATE (h)-[r:$(fact.label) {ns: $ns}]->(t)
SET r += fact.properties

// :: put_types
UNWIND $all.rows AS row
MATCH (s:Segment {ns: $ns, key: row.segment})
SET s.types = row.types + [type IN coalesce(s.types, []) WHERE NOT type IN row.types]

// :: show_properties
// of several values the one said last
UNWIND $all.rows AS key
MATCH (e:Entity {ns: $ns, key: key})
CALL (e) {
  MATCH (e)<-[m:MENTIONS]-(s:Segment) WHERE m.own IS NOT NULL
  WITH m, s ORDER BY s.document, s.index, m.name
  UNWIND m.own AS name
  WITH name, last(collect(m[name])) AS value
  RETURN collect([name, value]) AS latest
}
WITH e, latest, [name IN coalesce(e.own, []) WHERE NOT name IN [pair IN latest | pair[0]]] AS gone
FOREACH (name IN gone | SET e[name] = null)
FOREACH (pair IN latest | SET e[pair[0]] = pair[1])
SET e.own = CASE latest WHEN [] THEN null ELSE [pair IN latest | pair[0]] END

// :: put_questions
UNWIND $all.rows AS row
MATCH (s:Segment {ns: $ns, key: row.segment})
MERGE (q:Question {ns: $ns, key: row.key})
SET q.n = row.n, q.text = row.text, q.kind = row.kind
MERGE (q)-[:ASKED_OF]->(s)

// :: link_entities
UNWIND $all.rows AS row
MATCH (:Segment {ns: $ns, key: row.segment})<-[:ASKED_OF]-(q:Question)
WHERE q.text = row.question
MATCH (e:Entity {ns: $ns, key: row.entity})
CREATE (q)-[:ADDED {name: row.name}]->(e)

// :: link_relations
UNWIND $all.rows AS row
MATCH (:Segment {ns: $ns, key: row.segment})<-[:ASKED_OF]-(q:Question)
WHERE q.text = row.question
MATCH (h:Entity {ns: $ns, key: row.head.entity})
MATCH (t:Entity {ns: $ns, key: row.tail.entity})
MERGE (r:Relation {ns: $ns, key: row.key})
SET r.description = row.description
CREATE (q)-[:ADDED]->(r)
CREATE (r)-[:FROM {name: row.head.name}]->(h)
CREATE (r)-[:TO {name: row.tail.name}]->(t)

// :: put_digests
UNWIND $all.rows AS row
MATCH (s:Segment {ns: $ns, key: row.segment})
SET s.merged = row.digest

// :: unnamed
UNWIND $all.rows AS key
MATCH (e:Entity {ns: $ns, key: key})
WHERE NOT EXISTS { (e)<-[:NAMES]-(:Name) }
RETURN coalesce(e.full, e.key), coalesce(e.full_name, e.name)

// :: drop_unnamed
UNWIND $all.rows AS key
MATCH (e:Entity {ns: $ns, key: key})
WHERE NOT EXISTS { (e)<-[:NAMES]-(:Name) }
DETACH DELETE e
