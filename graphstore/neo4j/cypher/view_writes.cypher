// :: names
UNWIND $all.rows AS key
MATCH (n:Name {ns: $ns, key: key})-[:NAMES]->(e:Entity)
RETURN n.key, coalesce(e.key, elementId(e)), n.forms, n.counts, n.mentions, coalesce(n.said, 0)

// :: known_entities
UNWIND $all.rows AS key
MATCH (e:Entity {ns: $ns, key: key})
RETURN collect(key)

// :: before
UNWIND $all.rows AS key
MATCH (s:Segment {ns: $ns, key: key})
RETURN key, head([(d:Document)-[:HAS]->(s) | d.title]), s.qrmem_length,
  [(s)-[m:MENTIONS]->(:Entity) | [m.name, m.forms, m.counts, m.qrmem_own IS NOT NULL, m.said IS NOT NULL]],
  [(s)<-[:ASKED_OF]-(q:Question) | [q.text, q.n]],
  COLLECT {
    MATCH (s)-[:STATES]->(f:Statement)
    OPTIONAL MATCH (h:Entity)<-[:FROM]-(f)
    OPTIONAL MATCH (f)-[:TO]->(t:Entity)
    RETURN [f.n, h.key, t.key]
  }

// :: stated
UNWIND $all.rows AS key
MATCH (:Segment {ns: $ns, key: key})-[:STATES]->(f:Statement)
MATCH (h:Entity)<-[:FROM]-(f)-[:TO]->(t:Entity)
RETURN collect([key, f.n, coalesce(h.full, h.key), coalesce(t.full, t.key)])

// :: stated_of_names
// the pairs of entities in the statements about some names
UNWIND $all.rows AS row
MATCH (:Entity {ns: $ns, key: row.was})<-[own:FROM|TO]-(f:Statement) WHERE own.name = row.key
MATCH (h:Entity)<-[head:FROM]-(f)-[tail:TO]->(t:Entity)
RETURN collect(DISTINCT [head.name, h.key, tail.name, t.key])

// :: statements
// the statements of pairs of entities, read from the entity that has fewer
UNWIND $all.rows AS pair
MATCH (h:Entity {ns: $ns, key: pair[0]})
MATCH (t:Entity {ns: $ns, key: pair[1]})
CALL (h, t) {
  WITH * WHERE COUNT { (h)<-[:FROM]-() } <= COUNT { (t)<-[:TO]-() }
  MATCH (h)<-[:FROM]-(f:Statement)
  MATCH (f)-[:TO]->(e:Entity) WHERE e = t
  RETURN f
  UNION
  WITH * WHERE COUNT { (h)<-[:FROM]-() } > COUNT { (t)<-[:TO]-() }
  MATCH (t)<-[:TO]-(f:Statement)
  MATCH (f)-[:FROM]->(e:Entity) WHERE e = h
  RETURN f
}
MATCH (s:Segment)-[:STATES]->(f)
RETURN collect([h.key, t.key, s.document, s.index, f.n, coalesce(h.full, h.key),
  coalesce(t.full, t.key), f.description, coalesce(s.full, s.key), f.question,
  coalesce(f.said_at, ''), coalesce(f.valid_from, ''), coalesce(f.valid_until, ''), f.n,
  coalesce(f.type, ''), [name IN coalesce(f.qrmem_own, []) | [name, f[name]]]])

// :: pairs_beside
// the pairs with some heads that have a statement of some types, or any statement
UNWIND $all.rows AS key
MATCH (h:Entity {ns: $ns, key: key})<-[:FROM]-(f:Statement)
WHERE $all.types IS NULL OR f.type IN $all.types
MATCH (f)-[:TO]->(t:Entity) WHERE t.key IS NOT NULL
RETURN DISTINCT key, t.key

// :: pairs_of_type
// the pairs of which something of some types is stated
MATCH (f:Statement) WHERE f.ns = $ns AND f.key IS NOT NULL AND f.type IN $all.rows
WITH f
MATCH (f)-[:FROM]->(h:Entity) WHERE h.key IS NOT NULL
MATCH (f)-[:TO]->(t:Entity) WHERE t.key IS NOT NULL
RETURN DISTINCT h.key, t.key

// :: put_relations
// by their heads: between two known nodes, Neo4j searches all edges of the node with fewer
UNWIND $all.rows AS row
MATCH (h:Entity {ns: $ns, key: row.head})
CALL (h, row) {
  MATCH (h)-[old]->(t:Entity)
  WHERE old.statements IS NOT NULL AND t.key IN row.tails
  DELETE old
}
UNWIND row.relations AS relation
MATCH (t:Entity {ns: $ns, key: relation.tail})
CREATE (h)-[r:$(relation.label) {ns: $ns}]->(t)
SET r += relation.properties

// :: clear
UNWIND $all.rows AS key
MATCH (s:Segment {ns: $ns, key: key})
SET s.qrmem_merged = null
WITH s
CALL (s) {
  MATCH (s)-[m:MENTIONS]->(:Entity)
  DELETE m
}
CALL (s) {
  MATCH (s)<-[:ASKED_OF]-(q:Question)
  DETACH DELETE q
}
CALL (s) {
  MATCH (s)-[:STATES]->(f:Statement)
  DETACH DELETE f
}

// :: drop_mentions
UNWIND $all.rows AS row
MATCH (s:Segment {ns: $ns, key: row.segment})-[m:MENTIONS {name: row.name}]->(:Entity)
OPTIONAL MATCH (s)<-[:ASKED_OF]-(:Question)-[a:ADDED {name: row.name}]->(:Entity)
DELETE m, a

// :: drop_facts
UNWIND $all.rows AS row
MATCH (:Segment {ns: $ns, key: row.segment})-[:STATES]->(f:Statement {n: row.n})
DETACH DELETE f

// :: put_entities
UNWIND $all.rows AS row
MERGE (e:Entity {ns: $ns, key: row.entity.key})
// the label of its former type
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

// :: move
UNWIND $all.rows AS row
MATCH (e:Entity {ns: $ns, key: row.now})
MATCH (was:Entity {ns: $ns, key: row.was})<-[old:MENTIONS|ADDED|FROM|TO]-(from)
WHERE old.name = row.key
CREATE (from)-[new:$(type(old))]->(e)
SET new = properties(old)
DELETE old

// :: put_blocks
UNWIND $all.rows AS row
MATCH (n:Name {ns: $ns, key: row.key})
UNWIND row.blocks AS block
MERGE (b:QrmemBlock {ns: $ns, key: block})
MERGE (n)-[:IN]->(b)

// :: mark_stale
UNWIND $all.rows AS key
MATCH (n:Name {ns: $ns, key: key})-[:NAMES]->(e:Entity)
MERGE (s:QrmemStale {ns: $ns, key: key})
ON CREATE SET s.full = n.full, s.entity = coalesce(e.full, e.key, elementId(e))

// :: resolve
UNWIND $all.rows AS key
MATCH (s:QrmemStale {ns: $ns, key: key})
DELETE s

// :: drop_names
UNWIND $all.rows AS row
MATCH (n:Name {ns: $ns, key: row.key})
CALL (n) {
  MATCH (n)-[in:IN]->(b:QrmemBlock)
  DELETE in
  WITH b
  WHERE NOT EXISTS { (b)<-[:IN]-(:Name) }
  DELETE b
}
CALL (row) {
  MATCH (:Entity {ns: $ns, key: row.was})<-[end:FROM|TO]-(f:Statement)
  WHERE end.name = row.key
  WITH DISTINCT f
  DETACH DELETE f
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
UNWIND $all.rows AS row
MATCH (s:Segment {ns: $ns, key: row.segment})
UNWIND row.facts AS fact
MATCH (h:Entity {ns: $ns, key: fact.head})
MATCH (t:Entity {ns: $ns, key: fact.tail})
CREATE (s)-[:STATES]->(f:Statement {ns: $ns, key: fact.key})
CREATE (f)-[:FROM {name: fact.head_name}]->(h)
CREATE (f)-[:TO {name: fact.tail_name}]->(t)
SET f += fact.properties

// :: show_properties
// of several values the one said last
UNWIND $all.rows AS key
MATCH (e:Entity {ns: $ns, key: key})
CALL (e) {
  MATCH (e)<-[m:MENTIONS]-(s:Segment) WHERE m.qrmem_own IS NOT NULL
  MATCH (d:Document)-[:HAS]->(s)
  WITH m, s, coalesce(toString(d['meta_at']), toString(d['meta_date']), '') AS said
  ORDER BY CASE WHEN said =~ '\\d{4}(-.*)?' THEN said ELSE '' END, s.document, s.index, m.name
  UNWIND m.qrmem_own AS name
  WITH name, last(collect(m[name])) AS value
  RETURN collect([name, value]) AS latest
}
WITH e, latest, [name IN coalesce(e.qrmem_own, []) WHERE NOT name IN [pair IN latest | pair[0]]] AS gone
FOREACH (name IN gone | SET e[name] = null)
FOREACH (pair IN latest | SET e[pair[0]] = pair[1])
SET e.qrmem_own = CASE latest WHEN [] THEN null ELSE [pair IN latest | pair[0]] END

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

// :: link_statements
UNWIND $all.rows AS row
MATCH (:Segment {ns: $ns, key: row.segment})<-[:ASKED_OF]-(q:Question)
WHERE q.text = row.question
MATCH (f:Statement {ns: $ns, key: row.key})
CREATE (q)-[:ADDED]->(f)

// :: put_digests
UNWIND $all.rows AS row
MATCH (s:Segment {ns: $ns, key: row.segment})
SET s.qrmem_merged = row.digest

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

// :: drawn
// all edges that a person sees, and the pairs that have statements
CALL () {
  MATCH (h:Entity)-[r]->(t:Entity)
  WHERE h.ns = $ns AND h.key IS NOT NULL AND t.key IS NOT NULL AND r.statements IS NOT NULL
  RETURN collect([h.key, t.key, type(r),
    [name IN keys(r) WHERE name <> 'ns' | [name, r[name]]]]) AS drawn
}
CALL () {
  MATCH (h:Entity)<-[:FROM]-(:Statement)-[:TO]->(t:Entity)
  WHERE h.ns = $ns AND h.key IS NOT NULL AND t.key IS NOT NULL AND h <> t
  RETURN collect(DISTINCT [h.key, t.key]) AS stated
}
RETURN drawn, stated
