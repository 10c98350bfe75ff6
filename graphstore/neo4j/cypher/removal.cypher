// :: living
MATCH (e:Entity) WHERE e.ns = $ns AND e.key IS NOT NULL
  AND (e.name IN $words OR coalesce(e.full, e.key) IN $words)
UNWIND [e.name, coalesce(e.full, e.key)] AS word
RETURN DISTINCT word
