COPY documents (pipeline, collection, key, partition_key, document, content_hash, change_id)
FROM STDIN (FORMAT binary)
