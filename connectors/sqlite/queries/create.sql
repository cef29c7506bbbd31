CREATE TABLE metadata (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE pipelines (
    pipeline          TEXT NOT NULL PRIMARY KEY,
    source_system     TEXT NOT NULL,
    source_timeline   INTEGER NOT NULL,
    source_database   TEXT NOT NULL,
    source_epoch      TEXT NOT NULL,
    fingerprint       TEXT NOT NULL,
    fence             TEXT NOT NULL,
    checkpoint        TEXT,
    snapshot_epoch    TEXT,
    snapshot_complete INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE documents (
    pipeline      TEXT NOT NULL,
    collection    TEXT NOT NULL,
    key           TEXT NOT NULL,
    partition_key TEXT,
    document      BLOB NOT NULL,
    content_hash  BLOB NOT NULL,
    change_id     TEXT NOT NULL,
    PRIMARY KEY (pipeline, collection, key)
);

INSERT INTO metadata VALUES ('format', '1');
