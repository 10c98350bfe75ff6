// :: What this memory holds
MATCH (d:Document) WHERE d.ns = $ns AND d.key IS NOT NULL
OPTIONAL MATCH (d)-[:HAS]->(s:Segment)
RETURN d.key AS document, d.title AS title, count(s) AS segments,
  count(CASE WHEN s.state = 'ok' THEN 1 END) AS read,
  count(CASE WHEN s.state IN ['partial', 'failed'] THEN 1 END) AS incomplete
ORDER BY document LIMIT 100

// :: The entities that occur most, and what relates them
MATCH (e:Entity) WHERE e.ns = $ns AND e.key IS NOT NULL
WITH e ORDER BY e.mentions DESC, e.key LIMIT 25
WITH collect(e) AS entities
UNWIND entities AS a
OPTIONAL MATCH (a)-[r:RELATES]->(b:Entity) WHERE b IN entities
RETURN a, r, b LIMIT 150

// :: The memory around an entity
MATCH (e:Entity) WHERE e.ns = $ns AND e.key IS NOT NULL
  AND toLower(e.name) CONTAINS toLower($name)
WITH e ORDER BY e.mentions DESC, e.key LIMIT 1
CALL (e) {
  MATCH p = (e)-[:RELATES]-(:Entity) RETURN p LIMIT 40
  UNION
  MATCH p = (e)<-[:MENTIONS]-(:Segment) RETURN p LIMIT 15
  UNION
  MATCH p = (e)<-[:NAMES]-(:Name) RETURN p LIMIT 10
}
RETURN p LIMIT 65

// :: A document and its chain of segments
MATCH (d:Document) WHERE d.ns = $ns AND d.key IS NOT NULL AND ($document = '' OR d.key = $document)
WITH d ORDER BY d.key LIMIT 1
MATCH (d)-[has:HAS]->(s:Segment)
WITH d, has, s ORDER BY s.index LIMIT 40
OPTIONAL MATCH (s)-[next:NEXT]->(t:Segment)
RETURN d, has, s, next, t LIMIT 40

// :: Generated questions and what each added
MATCH (q:Question) WHERE q.ns = $ns AND q.key IS NOT NULL
MATCH (q)-[:ASKED_OF]->(s:Segment)
WITH q, s ORDER BY s.document, s.index, q.n LIMIT 200
OPTIONAL MATCH (s)-[m:MENTIONS]->(e:Entity) WHERE m.question = q.text
WITH q, s, collect(DISTINCT e.name) AS entities
OPTIONAL MATCH (h:Entity)-[r:RELATES {ns: $ns, segment: s.key}]->(:Entity)
WHERE r.question = q.text
RETURN s.document AS document, s.index AS segment, q.text AS question, entities,
  collect(DISTINCT r.description) AS relations
ORDER BY document, segment LIMIT 200

// :: Questions in the picture, with the entities that they added
MATCH (q:Question) WHERE q.ns = $ns AND q.key IS NOT NULL
MATCH (q)-[asked:ASKED_OF]->(s:Segment)
WITH q, asked, s ORDER BY s.document, s.index, q.n LIMIT 25
OPTIONAL MATCH (s)-[m:MENTIONS]->(e:Entity) WHERE m.question = q.text
RETURN q, asked, s, m, e LIMIT 100

// :: Trails, newest first
MATCH (t:Trail) WHERE t.ns = $ns AND t.key IS NOT NULL
RETURN t.key AS trail, t.created AS at, t.question AS question, t.strategy AS strategy,
  t.status AS status, t.answer AS answer
ORDER BY at DESC, t.arrival DESC LIMIT 50

// :: A trail as a picture: its steps in order, what they read, dropped and expanded
MATCH (t:Trail) WHERE t.ns = $ns AND t.key IS NOT NULL AND ($trail = '' OR t.key = $trail)
WITH t ORDER BY t.created DESC, t.arrival DESC LIMIT 1
MATCH (t)-[step:STEP]->(p:Step)
CALL (p) {
  MATCH (p)-[r:READ|DROPPED]->(x:Segment) RETURN r, x ORDER BY r.n LIMIT 12
  UNION
  MATCH (p)-[r:EXPANDED]->(x:Entity) RETURN r, x ORDER BY r.taken DESC, r.n LIMIT 4
}
OPTIONAL MATCH (p)-[then:THEN]->(after:Step)
RETURN t, step, p, r, x, then, after LIMIT 120

// :: A trail as a table: each step, with its scores and reasons
MATCH (t:Trail) WHERE t.ns = $ns AND t.key IS NOT NULL AND ($trail = '' OR t.key = $trail)
WITH t ORDER BY t.created DESC, t.arrival DESC LIMIT 1
MATCH (t)-[:STEP]->(p:Step)
OPTIONAL MATCH (p)-[r:READ|DROPPED]->(s:Segment)
WITH p, r, s ORDER BY p.n, r.n
WITH p, collect(CASE WHEN s IS NOT NULL THEN
  {what: toLower(type(r)), score: r.score, document: s.document, segment: s.index,
   begins: left(s.text, 80)} END) AS segments
RETURN p.n AS step, p.action AS action, p.entities AS entities, segments, p.verdict AS verdict,
  p.reason AS reason, p.tokens AS tokens
ORDER BY step LIMIT 100

// :: Two trails of one question, side by side
MATCH (t:Trail) WHERE t.ns = $ns AND t.key IS NOT NULL
  AND ($question = '' OR t.question = $question)
WITH t ORDER BY t.created DESC, t.arrival DESC
WITH t.question AS question, collect(t)[..2] AS trails, max(t.arrival) AS newest
WHERE size(trails) = 2
WITH trails ORDER BY newest DESC LIMIT 1
UNWIND trails AS t
MATCH (t)-[step:STEP]->(p:Step)
OPTIONAL MATCH (p)-[r:READ|DROPPED]->(s:Segment)
OPTIONAL MATCH (p)-[then:THEN]->(after:Step)
RETURN t, step, p, r, s, then, after LIMIT 200

// :: Names that were merged into one entity
MATCH (n:Name) WHERE n.ns = $ns AND n.key IS NOT NULL
MATCH (n)-[:NAMES]->(e:Entity)
WITH e, n ORDER BY n.count DESC, n.key
WITH e, collect(n.surface + ' (' + toString(n.count) + ')') AS names, collect(n.surface) AS all
WHERE size(names) > 1
OPTIONAL MATCH (d:Decision {ns: $ns}) WHERE d.key IS NOT NULL AND d.first IN all AND d.second IN all
RETURN e.name AS entity, e.type AS type, names,
  collect(DISTINCT d.first + (CASE WHEN d.same THEN ' = ' ELSE ' ≠ ' END) + d.second) AS decided
ORDER BY size(names) DESC, entity LIMIT 100

// :: Merged names as a picture
MATCH (n:Name) WHERE n.ns = $ns AND n.key IS NOT NULL
MATCH (n)-[:NAMES]->(e:Entity)
WITH e, count(n) AS names WHERE names > 1
WITH e ORDER BY names DESC, e.key LIMIT 20
MATCH p = (e)<-[:NAMES]-(:Name)
RETURN p LIMIT 100

// :: Possible contradictions: what distant segments say of the same two entities
MATCH (a:Entity)-[r:RELATES]->(b:Entity) WHERE r.ns = $ns AND r.segment IS NOT NULL AND a <> b
WITH CASE WHEN a.key < b.key THEN [a, b] ELSE [b, a] END AS pair, count(DISTINCT r.segment) AS said
WHERE said > 1
WITH pair, said ORDER BY said DESC LIMIT 50
WITH pair[0] AS a, pair[1] AS b
MATCH (a)-[r:RELATES]-(b)
MATCH (s:Segment {ns: $ns, key: r.segment})
WITH a, b, collect({document: s.document, segment: s.index, says: r.description}) AS said,
  max(s.index) - min(s.index) AS apart, count(DISTINCT s.document) AS documents
WHERE apart > 1 OR documents > 1
RETURN a.name AS one, b.name AS other, documents, apart, said[..10] AS said
ORDER BY documents DESC, apart DESC LIMIT 25

// :: The same in a picture: parallel relations between two entities
MATCH (a:Entity)-[r:RELATES]->(b:Entity) WHERE r.ns = $ns AND r.segment IS NOT NULL AND a <> b
WITH CASE WHEN a.key < b.key THEN [a, b] ELSE [b, a] END AS pair, count(DISTINCT r.segment) AS said
WHERE said > 1
WITH pair ORDER BY said DESC LIMIT 8
WITH pair[0] AS a, pair[1] AS b
MATCH p = (a)-[:RELATES]-(b)
RETURN p LIMIT 60

// :: Segments that were not read completely, and why
MATCH (s:Segment) WHERE s.ns = $ns AND s.key IS NOT NULL AND s.state <> 'ok'
RETURN s.document AS document, s.index AS segment, s.state AS state, s.reason AS reason
ORDER BY document, segment LIMIT 100
