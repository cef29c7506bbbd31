SELECT source_system, source_timeline, source_database, source_epoch,
       fingerprint, fence, checkpoint, snapshot_epoch, snapshot_complete
FROM pipelines
WHERE pipeline = ?1
