// :: all
MATCH (n:Namespace) WHERE n.deleting IS NULL RETURN coalesce(n.full, n.ns)

// :: get
MATCH (n:Namespace {ns: $ns, key: 'namespace'})
  USING INDEX SEEK n:Namespace(ns, key)
WHERE n.deleting IS NULL
RETURN coalesce(n.full, n.ns), n.tokenizer, n.segment_tokens, n.embedder, n.dimension, n.revision,
  coalesce(n.importing, '')

// :: create
MERGE (n:Namespace {ns: $ns, key: 'namespace'})
ON CREATE SET n.full = $full, n.tokenizer = $tokenizer, n.segment_tokens = $segment_tokens,
  n.embedder = $embedder, n.dimension = $dimension, n.importing = $importing, n.revision = 0, n.numbers = 0,
  n.arrivals = 0

// :: finish_import
MATCH (n:Namespace {ns: $ns, key: 'namespace'})
  USING INDEX SEEK n:Namespace(ns, key)
WHERE n.deleting IS NULL AND n.importing = $token
SET n.importing = ''
RETURN 1

// :: lock
MATCH (n:Namespace {ns: $ns, key: 'namespace'})
  USING INDEX SEEK n:Namespace(ns, key)
WHERE n.deleting IS NULL
SET n.locked = true
RETURN n.revision, coalesce(n.ahead, false)

// :: raise_revision
MATCH (n:Namespace {ns: $ns, key: 'namespace'})
  USING INDEX SEEK n:Namespace(ns, key)
SET n.revision = n.revision + 1
RETURN n.revision

// :: advance
MATCH (n:Namespace {ns: $ns, key: 'namespace'})
  USING INDEX SEEK n:Namespace(ns, key)
SET n.revision = n.revision + 1, n.ahead = $ahead
RETURN n.revision

// :: take_numbers
MATCH (n:Namespace {ns: $ns, key: 'namespace'})
  USING INDEX SEEK n:Namespace(ns, key)
SET n.numbers = n.numbers + $count
RETURN n.numbers

// :: take_arrivals
MATCH (n:Namespace {ns: $ns, key: 'namespace'})
  USING INDEX SEEK n:Namespace(ns, key)
SET n.arrivals = n.arrivals + $count
RETURN n.arrivals

// :: set_embedder
MATCH (n:Namespace {ns: $ns, key: 'namespace'})
  USING INDEX SEEK n:Namespace(ns, key)
SET n.embedder = $embedder, n.dimension = $dimension

// :: doom
MATCH (n:Namespace {ns: $ns, key: 'namespace'})
  USING INDEX SEEK n:Namespace(ns, key)
SET n.deleting = true RETURN 1

// :: is_doomed
MATCH (n:Namespace {ns: $ns, key: 'namespace'})
  USING INDEX SEEK n:Namespace(ns, key)
WHERE n.deleting RETURN 1

// :: drop
MATCH (n:Namespace {ns: $ns, key: 'namespace'})
  USING INDEX SEEK n:Namespace(ns, key)
DETACH DELETE n
