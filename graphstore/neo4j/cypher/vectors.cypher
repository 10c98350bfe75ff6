// :: put
UNWIND $rows AS row
CREATE (:Vectors {ns: $ns, key: row[0], kind: $kind, owners: row[1], data: row[2]})

// :: last
MATCH (v:Vectors)
  USING INDEX SEEK v:Vectors(ns, key)
WHERE v.ns = $ns AND v.key IS NOT NULL RETURN v.key ORDER BY v.key DESC LIMIT 1

// :: all
MATCH (v:Vectors)
  USING INDEX SEEK v:Vectors(ns, key)
WHERE v.ns = $ns AND v.key IS NOT NULL AND v.kind = $kind
RETURN v.key, v.owners, v.data ORDER BY v.key

// :: of_owners
MATCH (v:Vectors)
  USING INDEX SEEK v:Vectors(ns, key)
WHERE v.ns = $ns AND v.key IS NOT NULL AND v.kind = $kind
  AND any(owner IN v.owners WHERE owner IN $owners)
RETURN v.key, v.owners, v.data ORDER BY v.key

// :: small
MATCH (v:Vectors)
  USING INDEX SEEK v:Vectors(ns, key)
WHERE v.ns = $ns AND v.key IS NOT NULL AND v.kind = $kind
  AND size(v.owners) < $rows
RETURN v.key, v.owners, v.data ORDER BY v.key

// :: owners
MATCH (v:Vectors)
  USING INDEX SEEK v:Vectors(ns, key)
WHERE v.ns = $ns AND v.key IS NOT NULL AND v.kind = $kind
UNWIND v.owners AS owner
RETURN collect(DISTINCT owner)

// :: drop
MATCH (v:Vectors)
  USING INDEX SEEK v:Vectors(ns, key)
WHERE v.ns = $ns AND v.key IN $keys DELETE v

// :: drop_kind
MATCH (v:Vectors)
  USING INDEX SEEK v:Vectors(ns, key)
WHERE v.ns = $ns AND v.key IS NOT NULL AND v.kind = $kind DELETE v

// :: drop_all
MATCH (v:Vectors)
  USING INDEX SEEK v:Vectors(ns, key)
WHERE v.ns = $ns AND v.key IS NOT NULL DELETE v

// :: places
UNWIND $rows AS key
MATCH (s:Segment {ns: $ns, key: key})
  USING INDEX SEEK s:Segment(ns, key)
RETURN collect([coalesce(s.full, s.key), s.document, s.index])

// :: all_places
MATCH (s:Segment)
  USING INDEX SEEK s:Segment(ns, key)
WHERE s.ns = $ns AND s.key IS NOT NULL
RETURN collect(coalesce(s.full, s.key)), collect(s.document), collect(s.index)
