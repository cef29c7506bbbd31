DELETE FROM documents AS d
USING unnest($2::text[], $3::text[]) AS n (collection, key)
WHERE d.pipeline = $1 AND d.collection = n.collection AND d.key = n.key
