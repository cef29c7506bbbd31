//! The one table of everything that can go wrong: a stable number, a name, a summary and the way out.
//!
//! `docs/errors/` is made from this table and a test holds them together. A number is never used for another meaning.
//! Ranges: 00xx configuration and command line, 01xx PostgreSQL as a source, 02xx relay, 03xx programs and sandbox,
//! 04xx pipelines, 05xx destinations, 06xx file source, 07xx control.

use std::fmt;

/// Who has to act, which is also what the process exits with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The configuration, a program or an argument is wrong: exit code 2.
    Invalid,
    /// The surroundings are: a server, a right, a file, a disk: exit code 3.
    Environment,
    /// It happened while running: exit code 1.
    Runtime,
}

impl Class {
    /// The exit code of a process that ends with an error of this class.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Runtime => 1,
            Self::Invalid => 2,
            Self::Environment => 3,
        }
    }
}

/// A stable error code. Compared by number.
#[derive(Debug)]
pub struct Code {
    /// The number behind `TG`.
    pub number: u16,
    /// The stable name, in kebab case.
    pub name: &'static str,
    /// Who has to act.
    pub class: Class,
    /// What it means: lower case, no full stop.
    pub summary: &'static str,
    /// What to do about it, where the error itself says nothing more exact.
    pub fix: &'static str,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TG{:04}", self.number)
    }
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Code {}

macro_rules! codes {
    ($($constant:ident $number:literal $name:literal $class:ident $summary:literal $fix:literal)*) => {
        $(#[doc = concat!("`", $name, "`: ", $summary, ".")]
        pub static $constant: Code = Code { number: $number, name: $name, class: Class::$class, summary: $summary, fix: $fix };)*

        /// Every code, by number.
        pub static ALL: &[&Code] = &[$(&$constant),*];
    };
}

codes! {
    CONFIG_UNREADABLE 1 "config-unreadable" Environment "the configuration file cannot be read" "check the path behind -c and the file's rights"
    CONFIG_SYNTAX 2 "config-syntax" Invalid "the configuration is not valid" "correct the place that is named; `tidegate schema config` prints what is allowed"
    CONFIG_VALUE 3 "config-value" Invalid "a value of the configuration is not allowed" "correct the place that is named; `tidegate schema config` prints what is allowed"
    CONFIG_REFERENCE 4 "config-reference" Invalid "the configuration names something that it does not declare" "declare it or correct the name"
    CONFIG_SECRET 5 "config-secret" Invalid "a secret that the configuration refers to cannot be read" "set the environment variable, or make the file readable by the daemon"
    CONFIG_VERSION 6 "config-version" Invalid "the configuration has a version that this release does not read" "write version: 1, or use a release that reads it"
    USAGE 7 "usage" Invalid "the command line is not valid" "see `tidegate --help`"
    INPUT_UNREADABLE 8 "input-unreadable" Environment "an input file cannot be read" "check the path and the file's rights"
    DATA_DIR_LOCKED 9 "data-dir-locked" Environment "another daemon uses this data_dir" "stop the other daemon, or give this one a data_dir of its own"
    DATA_DIR_UNUSABLE 10 "data-dir-unusable" Environment "the data_dir cannot be used" "create it, writable for the daemon alone, on a local disk"
    DAEMON_NOT_RUNNING 11 "daemon-not-running" Environment "no daemon answers at this data_dir" "start it with `tidegate run -c …`, or correct the data_dir"
    DAEMON_REFUSED 12 "daemon-refused" Runtime "the daemon refused the request" "see the message of the daemon"
    INTERNAL 13 "internal" Runtime "an internal rule was broken: this is a defect of tidegate" "report it with the log; nothing was acknowledged that is not durable"
    OUTPUT_FAILED 14 "output-failed" Runtime "the output cannot be written" "check where the standard output goes"
    NO_SUCH_PIPELINE 15 "no-such-pipeline" Invalid "there is no pipeline of this name" "`tidegate pipeline list` shows the names"
    NO_SUCH_SOURCE 16 "no-such-source" Invalid "there is no source of this name" "`tidegate slots list` shows the names"
    INPUT_MALFORMED 17 "input-malformed" Invalid "a line of the input is not a mutation" "a line is {\"kind\":\"upsert\",\"document\":…}, {\"kind\":\"delete\"} or {\"kind\":\"delete-collection\"}, with \"partition_key\" and \"content_type\" where wanted"

    SOURCE_UNREACHABLE 101 "source-unreachable" Environment "the source cannot be reached" "check that the server runs and that host, port and firewall are right; the daemon keeps trying"
    SOURCE_AUTHENTICATION 102 "source-authentication" Environment "the source refused the login" "correct user, password or database in the source's url, or pg_hba.conf on the server"
    SOURCE_TLS 103 "source-tls" Environment "no trusted TLS connection to the source" "see sslmode and sslrootcert in the source's url; a self-signed server certificate must be issued by a separate CA certificate"
    WAL_LEVEL 104 "wal-level" Environment "wal_level is not logical" "ALTER SYSTEM SET wal_level = 'logical'; then restart the server"
    SERVER_VERSION 105 "server-version" Environment "the server is too old" "use PostgreSQL 15 or newer"
    REPLICATION_RIGHT 106 "replication-right" Environment "the role may not replicate" "ALTER ROLE … REPLICATION"
    TABLE_MISSING 107 "table-missing" Environment "a table of the pipeline does not exist" "correct the name in the pipeline's tables, or create the table"
    TABLE_RIGHT 108 "table-right" Environment "the role may not read a table" "GRANT SELECT ON … TO …"
    TABLE_WITHOUT_KEY 109 "table-without-key" Environment "a table has no usable key" "add a primary key, or a unique index over not-null columns and ALTER TABLE … REPLICA IDENTITY USING INDEX …"
    PUBLICATION_MISSING 110 "publication-missing" Environment "the publication does not exist and the role may not create it" "CREATE PUBLICATION … FOR TABLE …"
    PUBLICATION_TABLES 111 "publication-tables" Environment "the publication lacks a table of the pipeline" "ALTER PUBLICATION … ADD TABLE …"
    PUBLICATION_OPERATIONS 112 "publication-operations" Environment "the publication does not publish every operation" "ALTER PUBLICATION … SET (publish = 'insert, update, delete, truncate')"
    SLOT_IN_USE 113 "slot-in-use" Environment "the replication slot is in use by another process" "stop the other reader, or give this source a slot of its own; the daemon keeps trying"
    SLOT_MISSING 114 "slot-missing" Environment "the replication slot is gone" "changes may have been lost: `tidegate pipeline reset` of every pipeline of the source starts again with a new slot and snapshot"
    SLOT_LOST 115 "slot-lost" Environment "the server has given up the replication slot's WAL" "changes were lost: raise max_slot_wal_keep_size, then `tidegate pipeline reset` of every pipeline of the source"
    SLOT_FOREIGN 116 "slot-foreign" Environment "a slot of this name exists, but is not ours" "drop it (`tidegate slots drop`), or choose another slot name"
    SLOTS_EXHAUSTED 117 "slots-exhausted" Environment "the server has no free replication slot" "ALTER SYSTEM SET max_replication_slots = …; then restart the server"
    WALSENDERS_EXHAUSTED 118 "walsenders-exhausted" Environment "the server has no free walsender" "ALTER SYSTEM SET max_wal_senders = …; then restart the server"
    WAL_KEEP_UNLIMITED 119 "wal-keep-unlimited" Environment "max_slot_wal_keep_size is unlimited: a stopped pipeline can fill the server's disk" "ALTER SYSTEM SET max_slot_wal_keep_size = '20GB'; SELECT pg_reload_conf()"
    SOURCE_AHEAD_OF_RELAY 120 "source-ahead-of-relay" Environment "the slot has confirmed more than the relay holds: transactions in between are lost" "the relay folder was lost or restored, or the slot belongs to another daemon: `tidegate pipeline reset` of every pipeline of the source"
    SOURCE_IDENTITY 121 "source-identity" Environment "this is not the source that the relay was filled from" "point the url at the same system, timeline and database, or `tidegate pipeline reset` of every pipeline of the source"
    UNCHANGED_TOAST 122 "unchanged-toast" Environment "updates of this table may come without their large values" "ALTER TABLE … REPLICA IDENTITY FULL"
    TYPE_MOVED 123 "type-moved" Runtime "a value does not fit the type that the catalogue names" "a type was changed while its values were on the way: `tidegate pipeline reset`"
    PROTOCOL 124 "protocol" Runtime "the source sent something that the protocol does not allow here" "report it with the server's version"
    KEY_MOVED 125 "key-moved" Runtime "the replica identity of a table changed while its changes were on the way" "`tidegate pipeline reset` of the pipelines that read the table"
    SNAPSHOT_LOST 126 "snapshot-lost" Runtime "the connection that holds the snapshot was lost" "the snapshot starts again by itself"
    SNAPSHOT_WAITS 127 "snapshot-waits" Environment "the snapshot waits for an open transaction of the source" "end the transaction of the process that is named"
    ENCODING 128 "encoding" Environment "the database has no UTF-8-compatible encoding" "SQL_ASCII databases are refused: dump and restore into UTF8"
    SOURCE_FAILED 129 "source-failed" Runtime "the source answered with an error" "see the server's message"
    SOURCE_SETTING 130 "source-setting" Invalid "the source's settings are not valid" "see the message"
    ROW_TOO_LARGE 131 "row-too-large" Runtime "a row of the source is larger than the source takes" "make the row smaller, then `tidegate pipeline reset` of every pipeline of the source"

    RELAY_WRITE 201 "relay-write" Runtime "the relay cannot be written: nothing was acknowledged" "free disk space or repair the disk; the daemon keeps trying"
    RELAY_CORRUPT 202 "relay-corrupt" Runtime "the relay holds a damaged record" "restore the relay folder, or `tidegate pipeline reset` of the pipelines that have not passed the position"
    RELAY_FORMAT 203 "relay-format" Environment "the relay was written by a release that this one does not read" "use that release, or a new data_dir"
    RELAY_FENCED 204 "relay-fenced" Runtime "another worker has taken this group over" "only one daemon may run on a data_dir"
    RELAY_BEHIND 205 "relay-behind" Runtime "the group is behind what the relay still holds" "`tidegate pipeline reset`"
    RELAY_METADATA 206 "relay-metadata" Runtime "the relay's metadata cannot be read or written" "free disk space or repair the disk; the daemon keeps trying"
    RELAY_FULL 207 "relay-full" Runtime "the relay has reached its limit of bytes: the source is not read on" "let the slowest pipeline catch up, or raise relay.max_bytes"
    CHUNK_MALFORMED 208 "chunk-malformed" Runtime "stored bytes do not fit their format" "restore the data_dir, or `tidegate pipeline reset`"
    RELAY_READ 209 "relay-read" Runtime "the relay cannot be read" "repair the disk; the daemon keeps trying"
    RELAY_RESET 210 "relay-reset" Runtime "the source was begun anew: what the relay held of it is gone" "`tidegate pipeline reset` of this and every other pipeline of the source"

    PROGRAM_UNREADABLE 301 "program-unreadable" Environment "the program file cannot be read" "check the path and the file's rights"
    PROGRAM_SYNTAX 302 "program-syntax" Invalid "the program is not one JSON object in UTF-8" "correct the place that is named; `tidegate schema program` prints what is allowed"
    PROGRAM_INVALID 303 "program-invalid" Invalid "the program is not allowed" "correct the place that is named; `tidegate schema program` prints what is allowed"
    POISON 304 "poison" Runtime "the transform refused a change" "mend the row at the source or the program, then `tidegate pipeline reset`: the refused transaction itself stays as it was committed"
    MODULE_REFUSED 305 "module-refused" Invalid "the module is not a transform that may run here" "see the message"
    MODULE_MISSING 306 "module-missing" Environment "a module that a pipeline is pinned to is not in the module store" "restore data_dir/modules, then `tidegate pipeline resume`; or `tidegate pipeline reset`: it moves to this release's module"
    MODULE_COMPILE 307 "module-compile" Environment "the module cannot be compiled within its bounds" "see the message"
    SANDBOX_FAILED 308 "sandbox-failed" Runtime "the sandbox cannot run the transform" "report it with the log; nothing was acknowledged"
    STAGE_UNSUPPORTED 309 "stage-unsupported" Invalid "this release has no such transform stage" "this release runs program stages"
    MODULE_STORE 310 "module-store" Environment "the module store cannot be read or written" "free disk space, or make data_dir/modules writable for the daemon alone"

    PIPELINE_FAULTED 401 "pipeline-faulted" Runtime "the pipeline has stopped on an error" "see the cause, then `tidegate pipeline resume`"
    REBUILD_REQUIRED 402 "rebuild-required" Runtime "the destination was filled by another transform" "`tidegate pipeline reset` empties this pipeline's documents and fills them anew"
    TRANSACTION_TOO_LARGE 403 "transaction-too-large" Runtime "a transaction is larger than max_transaction allows" "raise max_transaction of the pipeline, then `tidegate pipeline resume`"
    POSITION_MISMATCH 404 "position-mismatch" Runtime "the destination did not confirm exactly the position of the batch" "this is a defect of the destination's connector: report it"
    STATE_REFUSED 405 "state-refused" Runtime "the pipeline is in a state that does not allow this" "see `tidegate status`"
    SPOOL_FAILED 406 "spool-failed" Runtime "a large batch cannot be spooled to disk" "free disk space in the data_dir, then `tidegate pipeline resume`"
    DESTINATION_BEHIND 407 "destination-behind" Runtime "the destination's checkpoint is behind what the relay still holds" "the destination was restored: `tidegate pipeline reset`"
    DESTINATION_AHEAD 408 "destination-ahead" Runtime "the destination's checkpoint is ahead of everything that the relay has seen" "the relay or the source was restored: `tidegate pipeline reset`"
    PIPELINE_CONFIGURED 409 "pipeline-configured" Invalid "the pipeline is configured: what is held for it is needed" "take it out of the configuration and start the daemon again, then `tidegate pipeline remove`"
    PIPELINE_REMOVED 410 "pipeline-removed" Runtime "the relay holds transactions for a pipeline that is not configured any more" "`tidegate pipeline remove` lets them go; where it is configured again, it goes on"

    DESTINATION_UNREACHABLE 501 "destination-unreachable" Environment "the destination cannot be reached" "check that the server runs; the daemon keeps trying"
    DESTINATION_AUTHENTICATION 502 "destination-authentication" Environment "the destination refused the login" "correct user, password or database in the destination's url"
    DESTINATION_UNUSABLE 503 "destination-unusable" Environment "the destination cannot be used" "see the message"
    DESTINATION_FAILED 504 "destination-failed" Runtime "the destination answered with an error" "see the message, then `tidegate pipeline resume`"
    DESTINATION_FORMAT 505 "destination-format" Environment "the destination's tables were written by a release that this one does not read" "use that release, or another schema or file"
    DESTINATION_OWNED 506 "destination-owned" Runtime "this pipeline's documents belong to another source" "use another pipeline name or destination, or `tidegate pipeline reset`"
    DESTINATION_FENCED 507 "destination-fenced" Runtime "a newer worker writes to this destination" "only one daemon may run a pipeline"
    DOCUMENT_TOO_LARGE 508 "document-too-large" Runtime "a document is larger than the destination takes" "mend the row at the source or drop it in the transform, then `tidegate pipeline resume`"
    KEY_TOO_LARGE 509 "key-too-large" Runtime "pipeline, collection and key together are longer than 2,600 bytes" "mend the row at the source or drop it in the transform, then `tidegate pipeline resume`"
    DESTINATION_SETTING 510 "destination-setting" Invalid "the destination's settings are not valid" "see the message"
    SNAPSHOT_REFUSED 511 "snapshot-refused" Runtime "the destination holds no open snapshot of this epoch" "`tidegate pipeline reset`"
    DESTINATION_CONTENT 512 "destination-content" Runtime "the destination cannot store what a document holds" "mend the row at the source or remove the member in the transform, then `tidegate pipeline resume`"

    FILE_UNREADABLE 601 "file-unreadable" Environment "the source file cannot be read" "check the path and the file's rights"
    FILE_MALFORMED 602 "file-malformed" Runtime "a line of the source file is not a transaction" "correct the line that is named; the daemon goes on by itself when it is whole"
    FILE_ORDER 603 "file-order" Runtime "a line of the source file does not move forward" "positions must grow from line to line"
    FILE_CHANGED 604 "file-changed" Environment "the source file is not the one that the relay was filled from" "restore it, or `tidegate pipeline reset` of every pipeline of the source"

    AUDIT_FAILED 701 "audit-failed" Runtime "the audit log cannot be written: nothing was changed" "free disk space in the data_dir, then try again"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_and_texts_follow_the_style() {
        assert!(ALL.windows(2).all(|pair| pair[0].number < pair[1].number));
        for code in ALL {
            for text in [code.summary, code.fix] {
                assert!(!text.ends_with('.'), "{code}: no full stop");
                assert!(!text.is_empty());
            }
            assert!(code.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{code}: kebab case");
        }
    }
}
