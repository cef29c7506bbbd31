SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1) AS schema,
       EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
               WHERE n.nspname = $1 AND c.relname = 'metadata') AS metadata,
       EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
               WHERE n.nspname = $1 AND c.relname IN ('pipelines', 'documents')) AS others,
       current_setting('server_encoding') AS encoding,
       current_setting('transaction_read_only') = 'on' AS read_only
