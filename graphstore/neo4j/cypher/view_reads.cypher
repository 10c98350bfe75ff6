// :: names
// A person may have named an entity that has no key; only this name leads to it.
MATCH (n:Name)-[:NAMES]->(e:Entity)
WHERE n.ns = $ns AND n.key IS NOT NULL
RETURN coalesce(n.full, n.key), coalesce(e.full, e.key, elementId(e)), n.forms, n.counts,
  coalesce(e.full_name, e.name, ''), coalesce(e.type, ''), n.said IS NOT NULL

// :: names_where
UNWIND $all.rows AS row
CALL (row) {
  WITH * WHERE row[0] = 'norm'
  MATCH (n:Name)
  WHERE n.ns = $ns AND n.key STARTS WITH row[1]
  RETURN n
  UNION
  WITH * WHERE row[0] = 'entity'
  MATCH (:Entity {ns: $ns, key: row[1]})<-[:NAMES]-(n:Name)
  RETURN n
  UNION
  WITH * WHERE row[0] = 'block'
  MATCH (b:QrmemBlock {ns: $ns, key: row[1]})
  CALL (b) {
    MATCH (b)<-[:IN]-(n:Name)
    RETURN n
    LIMIT $all.most
  }
  RETURN n
}
WITH DISTINCT n
MATCH (n)-[:NAMES]->(e:Entity) WHERE e.key IS NOT NULL
RETURN collect([coalesce(n.full, n.key), coalesce(e.full, e.key), n.forms, n.counts,
  coalesce(e.full_name, e.name, ''), coalesce(e.type, ''), n.said IS NOT NULL])

// :: places
// by the mentions of their entities, as a mention leads to no name
UNWIND $all.rows AS key
MATCH (n:Name {ns: $ns, key: key})-[:NAMES]->(e:Entity)<-[m:MENTIONS]-(s:Segment)
WHERE m.name = key
WITH n, s.document AS document, sum(reduce(all = 0, count IN m.counts | all + count)) AS count
RETURN collect([coalesce(n.full, n.key), document, count])

// :: entities
UNWIND $all.rows AS key
MATCH (e:Entity {ns: $ns, key: key})
CALL (e) {
  MATCH (e)<-[m:MENTIONS]-(s:Segment)
  RETURN collect([s.document, s.index, m.name, coalesce(s.full, s.key), m.question,
    [name IN coalesce(m.qrmem_own, []) | [name, m[name]]]]) AS mentions
}
CALL (e) {
  MATCH (e)<-[:NAMES]-(n:Name)
  RETURN collect([n.forms, n.counts]) AS forms
}
RETURN coalesce(e.full, e.key), coalesce(e.full_name, e.name, ''), coalesce(e.type, ''), forms, mentions

// :: list
MATCH (e:Entity)
WHERE e.ns = $ns AND e.key IS NOT NULL
WITH e ORDER BY COUNT { (e)<-[:MENTIONS]-() } DESC, e.key LIMIT $all.candidates
MATCH (e)<-[:MENTIONS]-(s:Segment)
WITH e, count(DISTINCT s) AS segments
RETURN coalesce(e.full, e.key), coalesce(e.full_name, e.name, ''), coalesce(e.type, ''), segments

// :: types
CALL () {
  MATCH (e:Entity) WHERE e.ns = $ns AND e.key IS NOT NULL
  RETURN DISTINCT e.type AS type
  UNION
  MATCH (f:Statement) WHERE f.ns = $ns AND f.key IS NOT NULL
  RETURN DISTINCT f.type AS type
}
WITH DISTINCT type WHERE type <> ''
RETURN type

// :: segments_of_types
CALL () {
  MATCH (e:Entity) WHERE e.ns = $ns AND e.key IS NOT NULL AND e.type IN $all.types
  MATCH (e)<-[:MENTIONS]-(s:Segment)
  RETURN s
  UNION
  MATCH (f:Statement) WHERE f.ns = $ns AND f.key IS NOT NULL AND f.type IN $all.types
  MATCH (s:Segment)-[:STATES]->(f)
  RETURN s
}
RETURN collect(DISTINCT coalesce(s.full, s.key))

// :: around
UNWIND $all.rows AS key
MATCH (e:Entity {ns: $ns, key: key})
CALL (e) {
  MATCH (e)<-[:MENTIONS]-(s:Segment)
  WITH DISTINCT s
  RETURN collect(CASE WHEN $all.texts
    THEN [s.document, s.index, coalesce(s.full, s.key), s.qrmem_start, s.qrmem_stop, s.text, s.tokens, s.part]
    ELSE [s.document, s.index, coalesce(s.full, s.key)] END) AS segments
}
CALL (e) {
  MATCH (e)<-[own:FROM|TO]-(f:Statement)-[other:FROM|TO]->(o:Entity)
  WHERE o.key IS NOT NULL AND type(own) <> type(other)
  MATCH (s:Segment)-[:STATES]->(f)
  RETURN collect([s.document, s.index, f.n, coalesce(o.full, o.key),
    coalesce(o.full_name, o.name, ''), type(own) = 'FROM', f.description,
    coalesce(s.full, s.key), f.question, coalesce(f.said_at, ''), coalesce(f.valid_from, ''),
    coalesce(f.valid_until, ''), f.n, coalesce(f.type, ''),
    [name IN coalesce(f.qrmem_own, []) | [name, f[name]]]]) AS facts
}
RETURN collect([coalesce(e.full, e.key), coalesce(e.full_name, e.name, ''), segments, facts])

// :: relations
UNWIND $all.rows AS key
MATCH (e:Entity {ns: $ns, key: key})
MATCH (e)-[r]-(o:Entity) WHERE o.key IS NOT NULL AND r.statements IS NOT NULL
RETURN collect([coalesce(e.full, e.key), coalesce(o.full, o.key), startNode(r) = e,
  coalesce(r.type, ''), r.description, coalesce(r.questions, [])])

// :: questions
MATCH (q:Question)
WHERE q.ns = $ns AND q.key IS NOT NULL
MATCH (q)-[:ASKED_OF]->(s:Segment)
RETURN s.document, s.index, q.n, q.text, coalesce(s.full, s.key), q.kind

// :: questions_of
UNWIND $all.rows AS key
MATCH (s:Segment {ns: $ns, key: key})<-[:ASKED_OF]-(q:Question)
RETURN s.document, s.index, q.n, q.text, coalesce(s.full, s.key), q.kind

// :: counts
RETURN
  COUNT {
    MATCH (d:Document)
    WHERE d.ns = $ns AND d.key IS NOT NULL
  } AS documents,
  COUNT {
    MATCH (s:Segment)
    WHERE s.ns = $ns AND s.key IS NOT NULL
  } AS segments,
  COUNT {
    MATCH (e:Entity)
    WHERE e.ns = $ns AND e.name IS NOT NULL // an entity that a person made may have no key
  } AS entities,
  COUNT {
    MATCH (f:Statement)
    WHERE f.ns = $ns AND f.key IS NOT NULL
  } AS facts,
  COUNT {
    MATCH (q:Question)
    WHERE q.ns = $ns AND q.key IS NOT NULL
  } AS questions,
  COUNT {
    MATCH (t:Trail)
    WHERE t.ns = $ns AND t.key IS NOT NULL
  } AS trails

// :: mentions
UNWIND $all.rows AS key
MATCH (s:Segment {ns: $ns, key: key})
CALL (s) {
  MATCH (s)-[m:MENTIONS]->(e:Entity) WHERE e.key IS NOT NULL
  WITH e, collect(m.forms) AS forms
  CALL (e) {
    WITH * WHERE $all.most > 0
    MATCH (e)<-[:MENTIONS]-(other:Segment)
    WITH DISTINCT other LIMIT $all.most + 1
    WITH other ORDER BY other.document, other.index
    WITH collect(coalesce(other.full, other.key)) AS ids
    RETURN CASE WHEN size(ids) > $all.most THEN [] ELSE ids END AS places
  }
  RETURN collect([coalesce(e.full, e.key), forms, places]) AS entities
}
RETURN coalesce(s.full, s.key), entities

// :: shared
MATCH (s:Segment)-[:MENTIONS]->(e:Entity) WHERE s.ns = $ns AND s.key IN $all.keys AND e.key IS NOT NULL
WITH e, collect(DISTINCT coalesce(s.full, s.key)) AS among WHERE size(among) > 1
CALL (e) {
  MATCH (e)<-[:MENTIONS]-(s:Segment)
  WITH DISTINCT s LIMIT $all.most + 1
  RETURN count(s) AS spread
}
WITH e, among, spread WHERE spread <= $all.most
RETURN collect([coalesce(e.full, e.key), among, spread])
