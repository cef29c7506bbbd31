INSERT OR REPLACE INTO pipelines
    (pipeline, source_system, source_timeline, source_database, source_epoch,
     fingerprint, fence, checkpoint, snapshot_epoch, snapshot_complete)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
