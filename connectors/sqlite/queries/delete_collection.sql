DELETE FROM documents WHERE pipeline = ?1 AND collection = ?2
