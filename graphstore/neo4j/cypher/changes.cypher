// :: names
UNWIND $rows AS key
MATCH (n:Name {ns: $ns, key: key})-[:NAMES]->(e:Entity)
  USING INDEX SEEK n:Name(ns, key)
RETURN collect([n.key, coalesce(e.full, e.key), n.forms, n.mentions])

// :: known_entities
UNWIND $rows AS key
MATCH (e:Entity {ns: $ns, key: key})
  USING INDEX SEEK e:Entity(ns, key)
RETURN collect(key)

// :: mentions
UNWIND $rows AS key
MATCH (s:Segment {ns: $ns, key: key})-[m:MENTIONS]->(:Entity)
  USING INDEX SEEK s:Segment(ns, key)
RETURN collect([key, m.name, m.forms])

// :: drop_mentions
UNWIND $rows AS row
MATCH (s:Segment {ns: $ns, key: row[0]})-[m:MENTIONS]->(:Entity)
  USING INDEX SEEK s:Segment(ns, key)
WHERE m.name = row[1]
DELETE m

// :: drop_facts
UNWIND $rows AS row
MATCH (:Entity)-[r:RELATES {ns: $ns, segment: row[0]}]->(:Entity)
  USING INDEX SEEK r:RELATES(ns, segment)
WHERE r.n = row[1]
DELETE r

// :: stated
UNWIND $rows AS key
MATCH (h:Entity)-[r:RELATES {ns: $ns, segment: key}]->(t:Entity)
  USING INDEX SEEK r:RELATES(ns, segment)
RETURN collect([key, r.n, coalesce(h.full, h.key), coalesce(t.full, t.key)])

// :: clear_mentions
UNWIND $rows AS key
MATCH (s:Segment {ns: $ns, key: key})-[m:MENTIONS]->(:Entity)
  USING INDEX SEEK s:Segment(ns, key)
DELETE m

// :: clear_facts
UNWIND $rows AS key
MATCH (:Entity)-[r:RELATES {ns: $ns, segment: key}]->(:Entity)
  USING INDEX SEEK r:RELATES(ns, segment)
DELETE r

// :: clear_questions
UNWIND $rows AS key
MATCH (s:Segment {ns: $ns, key: key})<-[:ASKED_OF]-(q:Question)
  USING INDEX SEEK s:Segment(ns, key)
DETACH DELETE q

// :: clear_digests
UNWIND $rows AS key
MATCH (s:Segment {ns: $ns, key: key})
  USING INDEX SEEK s:Segment(ns, key)
REMOVE s.merged

// :: add_entities
UNWIND $rows AS row
CREATE (e:Entity {ns: $ns, key: row[0], full: row[1], name: row[2], type: row[3], mentions: row[4]})
WITH e, row[5] AS names
UNWIND names AS name
CREATE (:Name {ns: $ns, key: name[0], full: name[5], forms: name[1], mentions: name[2],
  surface: name[3], count: name[4]})-[:NAMES]->(e)

// :: update_entities
UNWIND $rows AS row
MATCH (e:Entity {ns: $ns, key: row[0]})
  USING INDEX SEEK e:Entity(ns, key)
SET e.name = row[1], e.type = row[2]

// :: add_names
UNWIND $rows AS row
MATCH (e:Entity {ns: $ns, key: row[6]})
  USING INDEX SEEK e:Entity(ns, key)
CREATE (:Name {ns: $ns, key: row[0], full: row[5], forms: row[1], mentions: row[2],
  surface: row[3], count: row[4]})-[:NAMES]->(e)

// :: update_names
UNWIND $rows AS row
MATCH (n:Name {ns: $ns, key: row[0]})-[:NAMES]->(e:Entity)
  USING INDEX SEEK n:Name(ns, key)
SET n.forms = row[1], n.mentions = row[2], n.surface = row[3], n.count = row[4],
  e.mentions = e.mentions + row[5]

// :: drop_names
UNWIND $rows AS row
MATCH (n:Name {ns: $ns, key: row[0]})
  USING INDEX SEEK n:Name(ns, key)
DETACH DELETE n

// :: drop_facts_of_names
UNWIND $rows AS row
MATCH (e:Entity {ns: $ns, key: row[1]})-[r:RELATES]-(:Entity)
  USING INDEX SEEK e:Entity(ns, key)
WHERE r.head = row[0] OR r.tail = row[0]
WITH DISTINCT r
DELETE r

// :: move_names
UNWIND $rows AS row
MATCH (n:Name {ns: $ns, key: row[0]})-[old:NAMES]->(:Entity)
  USING INDEX SEEK n:Name(ns, key)
MATCH (e:Entity {ns: $ns, key: row[2]})
  USING INDEX SEEK e:Entity(ns, key)
DELETE old
CREATE (n)-[:NAMES]->(e)

// :: move_mentions
UNWIND $rows AS row
MATCH (was:Entity {ns: $ns, key: row[1]})<-[old:MENTIONS]-(s:Segment)
  USING INDEX SEEK was:Entity(ns, key)
WHERE old.name = row[0]
MATCH (e:Entity {ns: $ns, key: row[2]})
  USING INDEX SEEK e:Entity(ns, key)
CREATE (s)-[new:MENTIONS]->(e)
SET new = properties(old)
DELETE old

// :: move_heads
UNWIND $rows AS row
MATCH (was:Entity {ns: $ns, key: row[1]})-[old:RELATES]->(t:Entity)
  USING INDEX SEEK was:Entity(ns, key)
WHERE old.head = row[0]
MATCH (e:Entity {ns: $ns, key: row[2]})
  USING INDEX SEEK e:Entity(ns, key)
CREATE (e)-[new:RELATES]->(t)
SET new = properties(old)
DELETE old

// :: move_tails
UNWIND $rows AS row
MATCH (was:Entity {ns: $ns, key: row[1]})<-[old:RELATES]-(h:Entity)
  USING INDEX SEEK was:Entity(ns, key)
WHERE old.tail = row[0]
MATCH (e:Entity {ns: $ns, key: row[2]})
  USING INDEX SEEK e:Entity(ns, key)
CREATE (h)-[new:RELATES]->(e)
SET new = properties(old)
DELETE old

// :: add_mentions
UNWIND $rows AS row
MATCH (s:Segment {ns: $ns, key: row[0]})
  USING INDEX SEEK s:Segment(ns, key)
UNWIND row[1] AS mention
MATCH (e:Entity {ns: $ns, key: coalesce(mention[1], mention[0])})
  USING INDEX SEEK e:Entity(ns, key)
CREATE (s)-[:MENTIONS {name: mention[0], forms: mention[2], question: mention[3]}]->(e)

// :: add_facts
UNWIND $rows AS row
UNWIND row[1] AS fact
MATCH (h:Entity {ns: $ns, key: coalesce(fact[3], fact[1])})
  USING INDEX SEEK h:Entity(ns, key)
MATCH (t:Entity {ns: $ns, key: coalesce(fact[4], fact[2])})
  USING INDEX SEEK t:Entity(ns, key)
CREATE (h)-[:RELATES {ns: $ns, segment: row[0], n: fact[0], head: fact[1], tail: fact[2],
  description: fact[5], question: fact[6]}]->(t)

// :: questions
UNWIND $rows AS key
MATCH (s:Segment {ns: $ns, key: key})<-[:ASKED_OF]-(q:Question)
  USING INDEX SEEK s:Segment(ns, key)
RETURN key, q.text, q.n

// :: put_questions
UNWIND $rows AS row
MATCH (s:Segment {ns: $ns, key: row[0]})
  USING INDEX SEEK s:Segment(ns, key)
MERGE (q:Question {ns: $ns, key: row[1]})
SET q.n = row[2], q.text = row[3], q.kind = row[4]
MERGE (q)-[:ASKED_OF]->(s)

// :: put_digests
UNWIND $rows AS row
MATCH (s:Segment {ns: $ns, key: row[0]})
  USING INDEX SEEK s:Segment(ns, key)
SET s.merged = row[1]

// :: miscounted
MATCH (n:Name)
  USING INDEX SEEK n:Name(ns, key)
WHERE n.ns = $ns AND n.key IS NOT NULL
MATCH (n)-[:NAMES]->(e:Entity)
CALL (n, e) {
  MATCH (e)<-[m:MENTIONS]-(:Segment)
  WHERE m.name = n.key
  RETURN collect(m.forms) AS forms
}
WITH n, e, forms
WHERE n.mentions <> size(forms)
RETURN n.key, e.key, forms

// :: put_counts
UNWIND $rows AS row
MATCH (n:Name {ns: $ns, key: row[0]})
  USING INDEX SEEK n:Name(ns, key)
SET n.forms = row[1], n.mentions = row[2], n.surface = row[3], n.count = row[4]

// :: recount
UNWIND $rows AS key
MATCH (e:Entity {ns: $ns, key: key})
  USING INDEX SEEK e:Entity(ns, key)
CALL (e) {
  MATCH (e)<-[:NAMES]-(n:Name)
  RETURN count(n) AS names, sum(n.count) AS mentions
}
SET e.mentions = mentions
WITH e, names WHERE names = 0
RETURN coalesce(e.full, e.key), e.name

// :: drop_entities
UNWIND $rows AS key
MATCH (e:Entity {ns: $ns, key: key})
  USING INDEX SEEK e:Entity(ns, key)
DETACH DELETE e
