// :: What this memory holds
MATCH (d:Document) WHERE d.ns = $ns AND d.key IS NOT NULL
OPTIONAL MATCH (d)-[:HAS]->(s:Segment)
RETURN d.key AS document, d.title AS title, count(s) AS segments,
  count(CASE WHEN s.state = 'ok' THEN 1 END) AS read,
  count(CASE WHEN s.state IN ['partial', 'failed'] THEN 1 END) AS incomplete
ORDER BY document LIMIT 100

// :: The entities that occur most, and what relates them
MATCH (e:Entity) WHERE e.ns = $ns AND e.key IS NOT NULL
WITH e ORDER BY COUNT { (e)<-[:MENTIONS]-() } DESC, e.key LIMIT 16
WITH collect(e) AS entities
UNWIND entities AS a
OPTIONAL MATCH (a)-[r]->(b:Entity) WHERE b IN entities AND a <> b
RETURN a, r, b LIMIT 60

// :: The memory around an entity
MATCH (e:Entity) WHERE e.ns = $ns AND e.key IS NOT NULL
  AND toLower(e.name) CONTAINS toLower($name)
WITH e ORDER BY toLower(e.name) = toLower($name) DESC, COUNT { (e)<-[:MENTIONS]-() } DESC, e.key
  LIMIT 1
CALL (e) {
  MATCH (e)-[r]-(x:Entity) WHERE x <> e
  WITH x, head(collect(r)) AS r ORDER BY COUNT { (x)<-[:MENTIONS]-() } DESC, x.key LIMIT 10
  RETURN r, x
  UNION
  MATCH (e)<-[r:MENTIONS]-(x:Segment)
  WITH x, head(collect(r)) AS r ORDER BY x.document, x.index LIMIT 3
  RETURN r, x
  UNION
  MATCH (e)<-[r:NAMES]-(x:Name) WHERE x.surface <> e.name
  RETURN r, x ORDER BY x.count DESC, x.key LIMIT 4
}
RETURN e, r, x LIMIT 25

// :: What is said of an entity, and where
MATCH (e:Entity) WHERE e.ns = $ns AND e.key IS NOT NULL
  AND toLower(e.name) CONTAINS toLower($name)
WITH e ORDER BY toLower(e.name) = toLower($name) DESC, COUNT { (e)<-[:MENTIONS]-() } DESC, e.key
  LIMIT 1
MATCH (e)<-[end:FROM|TO]-(f:Statement)-[:FROM|TO]->(x:Entity) WHERE x <> e
MATCH (s:Segment)-[:STATES]->(f)
RETURN e.name AS entity, CASE type(end) WHEN 'FROM' THEN '→' ELSE '←' END AS direction,
  x.name AS other, f.description AS said, s.document AS document, s.index AS segment,
  f.question AS question
ORDER BY document, segment, f.n LIMIT 200

// :: The statements behind the relation of an entity that is stated most often
MATCH (e:Entity) WHERE e.ns = $ns AND e.key IS NOT NULL
  AND toLower(e.name) CONTAINS toLower($name)
WITH e ORDER BY toLower(e.name) = toLower($name) DESC, COUNT { (e)<-[:MENTIONS]-() } DESC, e.key
  LIMIT 1
MATCH (e)-[r]-(x:Entity) WHERE x <> e AND r.statements > 0
WITH r, startNode(r) AS head, endNode(r) AS tail ORDER BY r.statements DESC, x.key LIMIT 1
MATCH (head)<-[a:FROM]-(f:Statement)-[b:TO]->(tail)
  WHERE coalesce(f.type, '') = coalesce(r.type, '')
MATCH (s:Segment)-[states:STATES]->(f)
WITH head, r, tail, a, f, b, states, s ORDER BY s.document, s.index, f.n LIMIT 12
RETURN head, r, tail, a, f, b, states, s

// :: A document's chain of segments
MATCH (d:Document) WHERE d.ns = $ns AND d.key IS NOT NULL AND ($document = '' OR d.key = $document)
WITH d ORDER BY d.key LIMIT 1
MATCH (d)-[:HAS]->(s:Segment) WHERE s.index >= coalesce(toInteger($from), 0)
WITH s ORDER BY s.index LIMIT 15
OPTIONAL MATCH (s)-[next:NEXT]->(t:Segment)
RETURN s, next, t LIMIT 15

// :: Generated questions and what each added
MATCH (q:Question) WHERE q.ns = $ns AND q.key IS NOT NULL
MATCH (q)-[:ASKED_OF]->(s:Segment) WHERE ($document = '' OR s.document = $document)
  AND s.index >= coalesce(toInteger($from), 0)
WITH q, s ORDER BY s.document, s.index, q.n LIMIT 200
RETURN q.text AS question,
  COLLECT { MATCH (q)-[:ADDED]->(e:Entity) RETURN DISTINCT e.name } AS `added entities`,
  COLLECT { MATCH (q)-[:ADDED]->(f:Statement) RETURN DISTINCT f.description } AS `added relations`,
  s.document AS document, s.index AS segment
ORDER BY document, segment, q.n LIMIT 200

// :: Questions as a picture, with the entities and relations that they added
MATCH (q:Question) WHERE q.ns = $ns AND q.key IS NOT NULL
MATCH (q)-[asked:ASKED_OF]->(s:Segment) WHERE ($document = '' OR s.document = $document)
  AND s.index >= coalesce(toInteger($from), 0)
WITH q, asked, s ORDER BY s.document, s.index, q.n LIMIT 10
OPTIONAL MATCH (q)-[added:ADDED]->(x)
OPTIONAL MATCH (x)-[end:FROM|TO]->(e:Entity)
RETURN q, asked, s, added, x, end, e LIMIT 60

// :: The tree of summaries as a picture: from its roots down to some segments
MATCH (root:TreeNode) WHERE root.ns = $ns AND root.key IS NOT NULL
  AND NOT (root)<-[:COVERS]-(:TreeNode)
WITH root ORDER BY root.level DESC, root.key LIMIT 3
OPTIONAL MATCH (root)-[a:COVERS]->(below)
WITH root, a, below ORDER BY below.key LIMIT 24
OPTIONAL MATCH (below)-[b:COVERS]->(lowest)
RETURN root, a, below, b, lowest LIMIT 60

// :: Trails, newest first
MATCH (t:Trail) WHERE t.ns = $ns AND t.key IS NOT NULL
RETURN t.key AS trail, t.question AS question, t.strategy AS strategy, t.status AS status,
  t.answer AS answer, t.created AS at
ORDER BY at DESC, t.arrival DESC LIMIT 50

// :: A trail as a picture: its steps in order, what they read, dropped and expanded
MATCH (t:Trail) WHERE t.ns = $ns AND t.key IS NOT NULL AND ($trail = '' OR t.key = $trail)
WITH t ORDER BY t.created DESC, t.arrival DESC LIMIT 1
MATCH (t)-[step:STEP]->(p:Step) WHERE p.n <= 12
OPTIONAL MATCH (p)-[then:THEN]->(after:Step) WHERE after.n <= 12
OPTIONAL CALL (p) {
  MATCH (p)-[r:READ]->(x:Segment) RETURN r, x ORDER BY r.n LIMIT 8
  UNION
  MATCH (p)-[r:DROPPED]->(x:Segment) RETURN r, x ORDER BY r.n LIMIT 3
  UNION
  MATCH (p)-[r:EXPANDED]->(x:Entity) RETURN r, x ORDER BY r.taken DESC, r.n LIMIT 4
}
RETURN t, CASE WHEN p.n = 1 THEN step END AS begins, p, then, after, r, x LIMIT 100

// :: A trail as a table: each step with its verdict, scores and reasons
MATCH (t:Trail) WHERE t.ns = $ns AND t.key IS NOT NULL AND ($trail = '' OR t.key = $trail)
WITH t ORDER BY t.created DESC, t.arrival DESC LIMIT 1
MATCH (t)-[:STEP]->(p:Step)
CALL (p) {
  MATCH (p)-[r:READ]->(s:Segment)
  WITH r, s ORDER BY r.n LIMIT 30
  RETURN collect(s.document + ' ' + s.index + ' (' + round(r.score, 2) + ')') AS read
}
CALL (p) {
  MATCH (p)-[r:DROPPED]->(s:Segment)
  WITH r, s ORDER BY r.n LIMIT 30
  RETURN collect(s.document + ' ' + s.index + ' (' + round(r.score, 2) + ')') AS dropped
}
CALL (p) {
  MATCH (p)-[r:EXPANDED]->(e:Entity)
  WITH r, e ORDER BY r.n LIMIT 20
  RETURN collect(DISTINCT CASE WHEN r.taken THEN '' ELSE 'not taken: ' END + r.description
    + ' (' + round(r.score, 2) + ')') AS expanded
}
RETURN p.n AS step, p.action AS action, p.verdict AS verdict, p.reason AS reason, read, expanded,
  dropped, p.entities[..12] AS entities, p.tokens AS tokens
ORDER BY step LIMIT 100

// :: Two trails of one question, side by side
MATCH (t:Trail) WHERE t.ns = $ns AND t.key IS NOT NULL
  AND ($question = '' OR t.question = $question)
WITH t ORDER BY t.created DESC, t.arrival DESC
WITH t.question AS question, collect(t)[..2] AS trails, max(t.created) AS newest
WHERE size(trails) = 2
WITH trails ORDER BY newest DESC, question LIMIT 1
UNWIND trails AS t
CALL (t) {
  RETURN 0 AS step, t.strategy + ': ' + t.status + CASE WHEN t.answer = '' THEN '' ELSE ': ' END
    + t.answer AS does
  UNION
  MATCH (t)-[:STEP]->(p:Step)
  OPTIONAL MATCH (p)-[r:READ]->(s:Segment)
  WITH p, r, s ORDER BY p.n, r.n
  WITH p, collect(s.document + ' ' + s.index) AS read
  OPTIONAL MATCH (p)-[r:EXPANDED]->(e:Entity) WHERE r.taken
  WITH p, read, collect(DISTINCT e.name) AS taken
  RETURN p.n AS step, p.action + CASE WHEN read + taken = [] THEN '' ELSE ': ' END
    + reduce(all = '', one IN read + taken | all + CASE all WHEN '' THEN '' ELSE ', ' END + one)
    + CASE WHEN p.verdict = '' THEN '' ELSE ' → ' + p.verdict END
    + CASE WHEN p.reason = '' THEN '' ELSE ' (' + p.reason + ')' END AS does
}
WITH trails, t, step, CASE WHEN size(does) > 85 THEN left(does, 84) + '…' ELSE does END AS does
RETURN step, collect(CASE WHEN t = trails[1] THEN does END)[0] AS `the earlier one`,
  collect(CASE WHEN t = trails[0] THEN does END)[0] AS `the later one`
ORDER BY step LIMIT 50

// :: Two trails of one question as a picture: what both read, and what only one
MATCH (t:Trail) WHERE t.ns = $ns AND t.key IS NOT NULL
  AND ($question = '' OR t.question = $question)
WITH t ORDER BY t.created DESC, t.arrival DESC
WITH t.question AS question, collect(t)[..2] AS trails, max(t.created) AS newest
WHERE size(trails) = 2
WITH trails ORDER BY newest DESC, question LIMIT 1
UNWIND trails AS t
MATCH (t)-[step:STEP]->(p:Step) WHERE p.n <= 10
OPTIONAL MATCH (p)-[then:THEN]->(after:Step) WHERE after.n <= 10
OPTIONAL CALL (p) {
  MATCH (p)-[r:READ]->(s:Segment) RETURN r, s ORDER BY r.n LIMIT 8
}
RETURN t, CASE WHEN p.n = 1 THEN step END AS begins, p, then, after, r, s LIMIT 100

// :: Names that were merged into one entity, and why
MATCH (n:Name) WHERE n.ns = $ns AND n.key IS NOT NULL
MATCH (n)-[:NAMES]->(e:Entity) WHERE toLower(e.name) CONTAINS toLower($name)
WITH e, n ORDER BY n.count DESC, n.key
WITH e, collect(n) AS names WHERE size(names) > 1
WITH e, names, COUNT { (e)<-[:MENTIONS]-() } AS mentions
ORDER BY size(names) DESC, mentions DESC, e.key LIMIT 100
WITH e, names, mentions, split(split(e.key, '|')[0], ' ') AS whole
UNWIND names AS n
WITH e, n, mentions, whole, split(split(n.key, '|')[0], ' ') AS words,
  COLLECT { MATCH (d:QrmemDecision) WHERE d.ns = $ns AND d.key IS NOT NULL
    WITH properties(d) AS d
    WHERE d.same AND toLower(n.surface) IN [toLower(d.first), toLower(d.second)]
    RETURN 'you said that ' + d.first + ' is ' + d.second } AS decided
WHERE n.key <> e.key
RETURN e.name AS entity, n.surface AS name, n.count AS times, CASE
    WHEN decided <> [] THEN decided[0]
    WHEN words = whole THEN 'the same name, of unknown type'
    WHEN reduce(all = '', word IN words | all + word)
      = reduce(all = '', word IN whole | all + left(word, 1)) THEN 'its initials'
    WHEN all(word IN words WHERE word IN whole) THEN 'a part of the name'
    WHEN all(word IN whole WHERE word IN words) THEN 'a longer form'
    WHEN any(word IN words WHERE word IN whole) THEN 'shares ' + [w IN words WHERE w IN whole][0]
    ELSE 'an alias' END AS why, e.type AS type
ORDER BY mentions DESC, entity, times DESC LIMIT 200

// :: Merged names as a picture
MATCH (n:Name) WHERE n.ns = $ns AND n.key IS NOT NULL
MATCH (n)-[:NAMES]->(e:Entity) WHERE toLower(e.name) CONTAINS toLower($name)
WITH e, count(n) AS names WHERE names > 1
WITH e ORDER BY names DESC, COUNT { (e)<-[:MENTIONS]-() } DESC, e.key LIMIT 12
MATCH p = (e)<-[:NAMES]-(:Name)
RETURN p LIMIT 60

// :: Possible contradictions: what distant segments say of the same two entities
MATCH (e:Entity) WHERE e.ns = $ns AND e.key IS NOT NULL AND COUNT { (e)<-[:MENTIONS]-() } > 1
  AND toLower(e.name) CONTAINS toLower($name)
WITH e ORDER BY COUNT { (e)<-[:MENTIONS]-() } DESC, e.key LIMIT 1000
MATCH (e)-[r]-(x:Entity) WHERE x <> e AND r.statements > 0
WITH e, x, sum(r.statements) AS stated WHERE stated > 1
WITH DISTINCT CASE WHEN e.key < x.key THEN [e, x] ELSE [x, e] END AS pair, stated
ORDER BY stated DESC LIMIT 200
WITH pair, pair[0] AS e, pair[1] AS x
MATCH (e)<-[:FROM|TO]-(f:Statement)-[:FROM|TO]->(x)
MATCH (s:Segment)-[:STATES]->(f)
WITH pair, f, s ORDER BY s.document, s.index, f.n
WITH pair, collect([s.document, s.index, f.description])[..10] AS said,
  max(s.index) - min(s.index) AS apart, count(DISTINCT s.document) AS documents
WHERE apart > 1 OR documents > 1
WITH pair, said, apart, documents ORDER BY documents DESC, apart DESC LIMIT 40
UNWIND said AS one
RETURN pair[0].name + ' – ' + pair[1].name AS between, one[2] AS said, one[0] AS document,
  one[1] AS segment
ORDER BY documents DESC, apart DESC, between, document, segment LIMIT 200

// :: The same as a picture: two entities, and the statements between them
MATCH (e:Entity) WHERE e.ns = $ns AND e.key IS NOT NULL AND COUNT { (e)<-[:MENTIONS]-() } > 1
  AND toLower(e.name) CONTAINS toLower($name)
WITH e ORDER BY COUNT { (e)<-[:MENTIONS]-() } DESC, e.key LIMIT 1000
MATCH (e)-[r]-(x:Entity) WHERE x <> e AND r.statements > 0
WITH e, x, sum(r.statements) AS stated WHERE stated > 1
WITH DISTINCT CASE WHEN e.key < x.key THEN [e, x] ELSE [x, e] END AS pair, stated
ORDER BY stated DESC LIMIT 200
WITH pair, pair[0] AS e, pair[1] AS x
MATCH (e)<-[:FROM|TO]-(f:Statement)-[:FROM|TO]->(x)
MATCH (s:Segment)-[:STATES]->(f)
WITH pair, collect(DISTINCT f)[..6] AS said, max(s.index) - min(s.index) AS apart,
  count(DISTINCT s.document) AS documents
WHERE apart > 1 OR documents > 1
WITH pair, said ORDER BY documents DESC, apart DESC LIMIT 6
UNWIND said AS f
MATCH (one:Entity)<-[a:FROM]-(f)-[b:TO]->(other:Entity)
RETURN one, a, f, b, other LIMIT 36

// :: Segments that were not read completely, and why
MATCH (s:Segment) WHERE s.ns = $ns AND s.key IS NOT NULL AND s.state <> 'ok'
RETURN s.document AS document, s.index AS segment, s.state AS state, s.reason AS reason
ORDER BY document, segment LIMIT 100
