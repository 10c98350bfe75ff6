// :: version
MATCH (v:QrmemSchema {ns: '', key: 'schema'}) RETURN v.version

// :: set_version
MERGE (v:QrmemSchema {ns: '', key: 'schema'})
SET v.version = $all.version

// :: await
CALL db.awaitIndexes(300)

// :: name_labels
UNWIND $all.names AS name
CALL db.createLabel(name)
RETURN count(*)

// :: name_types
UNWIND $all.names AS name
CALL db.createRelationshipType(name)
RETURN count(*)

// :: name_properties
UNWIND $all.names AS name
CALL db.createProperty(name)
RETURN count(*)
