SELECT source_system, source_timeline, source_database, source_epoch,
       fingerprint, fence::text, checkpoint, snapshot_epoch, snapshot_complete
FROM pipelines
WHERE pipeline = $1
FOR UPDATE
