INSERT INTO documents (pipeline, collection, key, partition_key, document, content_hash, change_id)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (pipeline, collection, key) DO UPDATE
SET partition_key = excluded.partition_key,
    document = excluded.document,
    content_hash = excluded.content_hash,
    change_id = excluded.change_id
