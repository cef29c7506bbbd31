DELETE FROM documents WHERE pipeline = $1
