SELECT to_regnamespace(quote_ident($1)) IS NOT NULL AS schema,
       to_regclass(quote_ident($1) || '.metadata') IS NOT NULL AS metadata,
       to_regclass(quote_ident($1) || '.pipelines') IS NOT NULL
           OR to_regclass(quote_ident($1) || '.documents') IS NOT NULL AS others,
       current_setting('server_encoding') AS encoding,
       current_setting('transaction_read_only') = 'on' AS read_only
