DELETE FROM documents WHERE pipeline = ?1 AND collection = ?2 AND key = ?3
