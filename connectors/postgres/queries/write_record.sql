INSERT INTO pipelines
    (pipeline, source_system, source_timeline, source_database, source_epoch,
     fingerprint, fence, checkpoint, snapshot_epoch, snapshot_complete)
VALUES ($1, $2, $3, $4, $5, $6, $7::text::numeric, $8, $9, $10)
ON CONFLICT (pipeline) DO UPDATE
SET source_system = excluded.source_system,
    source_timeline = excluded.source_timeline,
    source_database = excluded.source_database,
    source_epoch = excluded.source_epoch,
    fingerprint = excluded.fingerprint,
    fence = excluded.fence,
    checkpoint = excluded.checkpoint,
    snapshot_epoch = excluded.snapshot_epoch,
    snapshot_complete = excluded.snapshot_complete
