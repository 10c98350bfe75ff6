// :: version
MATCH (v:QrmemSchema {ns: '', key: 'schema'}) RETURN v.version

// :: set_version
MERGE (v:QrmemSchema {ns: '', key: 'schema'})
SET v.version = $version

// :: await
CALL db.awaitIndexes(300)
