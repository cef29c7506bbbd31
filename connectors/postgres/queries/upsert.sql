INSERT INTO documents (pipeline, collection, key, partition_key, document, content_hash, change_id)
SELECT $1, n.collection, n.key, n.partition_key, n.document, n.content_hash, n.change_id
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::text[])
         AS n (collection, key, partition_key, document, content_hash, change_id)
ON CONFLICT (pipeline, collection, key) DO UPDATE
SET partition_key = excluded.partition_key,
    document = excluded.document,
    content_hash = excluded.content_hash,
    change_id = excluded.change_id
