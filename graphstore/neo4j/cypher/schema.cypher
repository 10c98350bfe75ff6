// :: version
MATCH (v:QrmemSchema {ns: '', key: 'schema'}) RETURN v.version

// :: set_version
MERGE (v:QrmemSchema {ns: '', key: 'schema'})
SET v.version = CASE WHEN v.version > $version THEN v.version ELSE $version END

// :: await
CALL db.awaitIndexes(300)
