INSERT INTO pipelines VALUES ('tidegate preflight', '', 0, '', '', '', 0, NULL, NULL, false)
ON CONFLICT (pipeline) DO UPDATE SET fence = 0;
INSERT INTO documents VALUES ('tidegate preflight', '', '', NULL, '{}', '', '')
ON CONFLICT (pipeline, collection, key) DO UPDATE SET document = excluded.document;
DELETE FROM documents WHERE pipeline = 'tidegate preflight'
