// :: all
MATCH (n:QrmemNamespace) WHERE n.deleting IS NULL RETURN coalesce(n.full, n.ns)

// :: get
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
WHERE n.deleting IS NULL
RETURN coalesce(n.full, n.ns), n.tokenizer, n.segment_tokens, n.embedder, n.dimension, n.revision,
  coalesce(n.importing, ''), coalesce(n.single_types, []), coalesce(n.turns, 0)

// :: create
MERGE (n:QrmemNamespace {ns: $ns, key: 'namespace'})
ON CREATE SET n += $all.properties, n.revision = 0, n.arrivals = 0

// :: finish_import
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
WHERE n.deleting IS NULL AND n.importing = $all.token
SET n.importing = ''
RETURN 1

// :: lock
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
WHERE n.deleting IS NULL
SET n.locked = true
RETURN n.revision

// :: raise_revision
UNWIND $all.rows AS by
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
SET n.revision = n.revision + by

// :: take_arrivals
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
SET n.arrivals = n.arrivals + $all.count
RETURN n.arrivals

// :: set_embedder
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
SET n.embedder = $all.embedder, n.dimension = $all.dimension

// :: set_single
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
SET n.single_types = $all.single

// :: raise_turns
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
WHERE coalesce(n.turns, 0) < $all.turns
SET n.turns = $all.turns

// :: replacing
// what statements are replaced by: types of which an entity has one at a time, and judgements
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
RETURN coalesce(n.single_types, []), EXISTS {
  MATCH (r:QrmemReply)
  WHERE r.ns = $ns AND r.key STARTS WITH 'judgement:'
}

// :: mark_deleted
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
SET n.deleting = true
RETURN 1

// :: is_half_deleted
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
WHERE n.deleting
RETURN 1

// :: drop
MATCH (n:QrmemNamespace {ns: $ns, key: 'namespace'})
DETACH DELETE n
