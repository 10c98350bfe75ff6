// :: living
MATCH (e:Entity)
  USING INDEX SEEK e:Entity(ns, key)
WHERE e.ns = $ns AND e.key IS NOT NULL
  AND (e.name IN $words OR coalesce(e.full, e.key) IN $words)
UNWIND [e.name, coalesce(e.full, e.key)] AS word
RETURN DISTINCT word
