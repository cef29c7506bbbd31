DELETE FROM documents
WHERE pipeline = $1 AND collection = ANY ($2::text[])
