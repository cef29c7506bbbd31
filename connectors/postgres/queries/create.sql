CREATE TABLE metadata (
    name  text COLLATE "C" NOT NULL PRIMARY KEY,
    value text NOT NULL
);

-- One small row a pipeline, written with every run: room in its page keeps the updates there.
CREATE TABLE pipelines (
    pipeline          text COLLATE "C" NOT NULL PRIMARY KEY,
    source_system     text NOT NULL,
    source_timeline   bigint NOT NULL,
    source_database   text NOT NULL,
    source_epoch      text NOT NULL,
    fingerprint       text NOT NULL,
    fence             numeric(20, 0) NOT NULL,
    checkpoint        pg_lsn,
    snapshot_epoch    text,
    snapshot_complete boolean NOT NULL
) WITH (fillfactor = 20);

CREATE TABLE documents (
    pipeline      text COLLATE "C" NOT NULL,
    collection    text COLLATE "C" NOT NULL,
    key           text COLLATE "C" NOT NULL,
    partition_key text COLLATE "C",
    document      text NOT NULL,
    content_hash  bytea NOT NULL,
    change_id     text COLLATE "C" NOT NULL,
    PRIMARY KEY (pipeline, collection, key)
);

INSERT INTO metadata VALUES ('format', '1');
