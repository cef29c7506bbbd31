//! One connection to a server, speaking the protocol itself: replication and ordinary sessions alike.
//!
//! tokio-postgres has no replication mode, and with this client the capture, the catalogue and the snapshot read the same
//! text in the same way.

pub(crate) mod login;

use bytes::{Buf as _, BytesMut};
use postgres_protocol::message::frontend;
use tidegate_api::{Error, Result, code};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::connect::failure::Refusal;
use crate::connect::socket::Stream;
use crate::connect::{Role, Settings};

/// How much is asked of the socket in one read.
const GULP: usize = 256 << 10;

/// A read buffer that a large message made bigger than this is given back once it is empty.
const KEEP: usize = 1 << 20;

/// The server sends no message above 1 GiB; what claims to be larger is no message.
const MAX_MESSAGE: usize = (1 << 30) + (1 << 20);

/// What a session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// SQL.
    Ordinary,
    /// SQL and replication commands, in a walsender.
    Replication,
}

/// A connection after its login.
pub(crate) struct Wire {
    stream: Box<dyn Stream>,
    input: BytesMut,
    output: BytesMut,
    /// `server_version_num`, as far as the start-up tells it: 150018 for 15.18.
    pub(crate) version: u32,
}

/// A row in text form.
pub(crate) type Row = Vec<Option<String>>;

/// The place of one whole message in the input: its tag, and its body as `start..end`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) tag: u8,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Wire {
    /// Connects and logs in.
    ///
    /// # Errors
    /// As [`connect`](crate::connect::connect) says; [`REPLICATION_RIGHT`](code::REPLICATION_RIGHT) where the role may not
    /// replicate.
    pub(crate) async fn open(settings: &Settings, mode: Mode) -> Result<Self> {
        let timed = tokio::time::timeout(settings.connect_timeout, login::open(settings, mode)).await;
        timed.unwrap_or_else(|_| Err(crate::connect::unanswered(settings, Role::Source, "connect")))
    }

    /// Runs SQL or a replication command and gives its rows, all of them: for answers that are small by nature.
    ///
    /// # Errors
    /// What the server refuses, and a lost connection (transient).
    pub(crate) async fn query(&mut self, sql: &str, operation: &'static str) -> Result<Vec<Row>> {
        self.try_query(sql, operation).await?.map_err(|refusal| refusal.into_error(Role::Source, operation))
    }

    /// As [`query`](Self::query), with the server's refusal as a value that can be looked at.
    pub(crate) async fn try_query(&mut self, sql: &str, operation: &'static str) -> Result<Result<Vec<Row>, Refusal>> {
        self.send_query(sql, operation).await?;
        let mut rows = Vec::new();
        let mut refused = None;
        loop {
            let frame = self.message(operation).await?;
            let body = self.body(frame);
            match frame.tag {
                b'D' => rows.push(data_row(body).ok_or_else(|| malformed(operation, frame.tag))?),
                b'E' => refused = Some(refusal(body)),
                b'Z' => {
                    self.consume(frame);
                    return Ok(match refused {
                        Some(refusal) => Err(refusal),
                        None => Ok(rows),
                    });
                }
                b'T' | b'C' | b'I' => {}
                tag => return Err(malformed(operation, tag)),
            }
            self.consume(frame);
        }
    }

    /// Starts a command that answers with a copy (`COPY … TO STDOUT`, `START_REPLICATION`) and waits for its start.
    pub(crate) async fn start_copy(&mut self, sql: &str, operation: &'static str) -> Result<Result<(), Refusal>> {
        self.send_query(sql, operation).await?;
        let frame = self.message(operation).await?;
        let answer = match frame.tag {
            // Copy out, copy both.
            b'H' | b'W' => Ok(()),
            b'E' => Err(refusal(self.body(frame))),
            tag => return Err(malformed(operation, tag)),
        };
        self.consume(frame);
        Ok(answer)
    }

    /// Reads on behind a refused command until the server waits for the next one.
    pub(crate) async fn until_ready(&mut self, operation: &'static str) -> Result<()> {
        loop {
            let frame = self.message(operation).await?;
            self.consume(frame);
            if frame.tag == b'Z' {
                return Ok(());
            }
        }
    }

    async fn send_query(&mut self, sql: &str, operation: &'static str) -> Result<()> {
        self.output.clear();
        frontend::query(sql, &mut self.output).map_err(|error| lost(operation, error))?;
        self.flush(operation).await
    }

    async fn flush(&mut self, operation: &'static str) -> Result<()> {
        let written = self.stream.write_all(&self.output).await;
        self.output.clear();
        written.map_err(|error| lost(operation, error))?;
        self.stream.flush().await.map_err(|error| lost(operation, error))
    }

    /// Sends a message of the copy that runs.
    ///
    /// # Errors
    /// A lost connection (transient).
    pub(crate) async fn send_copy_data(&mut self, data: &[u8], operation: &'static str) -> Result<()> {
        self.output.clear();
        let message = frontend::CopyData::new(data).map_err(|error| lost(operation, error))?;
        message.write(&mut self.output);
        self.flush(operation).await
    }

    /// Says goodbye, as far as that is possible without waiting for an answer.
    pub(crate) async fn close(mut self) {
        self.output.clear();
        frontend::terminate(&mut self.output);
        if self.flush("close").await.is_ok() {
            let _ = self.stream.shutdown().await;
        }
    }

    /// Waits for the next whole message that is no notice. It stays in the input until it is consumed: safe to drop and
    /// call again.
    pub(crate) async fn message(&mut self, operation: &'static str) -> Result<Frame> {
        loop {
            match self.frame(0)? {
                Some(frame) if matches!(frame.tag, b'N' | b'S' | b'A') => self.consume(frame),
                Some(frame) => return Ok(frame),
                None => {
                    self.read(operation).await?;
                }
            }
        }
    }

    /// Reads what is there, at least one byte. Safe to drop and call again.
    ///
    /// # Errors
    /// A lost connection (transient).
    pub(crate) async fn read(&mut self, operation: &'static str) -> Result<usize> {
        if self.input.is_empty() && self.input.capacity() > KEEP {
            self.input = BytesMut::new();
        }
        self.input.reserve(GULP);
        match self.stream.read_buf(&mut self.input).await {
            Ok(0) => Err(lost(operation, std::io::Error::from(std::io::ErrorKind::UnexpectedEof))),
            Ok(count) => Ok(count),
            Err(error) => Err(lost(operation, error)),
        }
    }

    /// The whole message that begins at `at` in the input, if it is there.
    ///
    /// # Errors
    /// When the bytes are no message.
    pub(crate) fn frame(&mut self, at: usize) -> Result<Option<Frame>> {
        let Some((&[tag, a, b, c, d], _)) = self.input.get(at..).and_then(|input| input.split_first_chunk::<5>()) else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if !(4..=MAX_MESSAGE).contains(&length) {
            return Err(malformed("read message", tag));
        }
        let frame = Frame { tag, start: at + 5, end: at + 1 + length };
        if frame.end > self.input.len() {
            self.input.reserve(frame.end - self.input.len());
            return Ok(None);
        }
        Ok(Some(frame))
    }

    /// The bytes of a message.
    pub(crate) fn body(&self, frame: Frame) -> &[u8] {
        self.input.get(frame.start..frame.end).unwrap_or_default()
    }

    /// Drops the input up to and with this message.
    pub(crate) fn consume(&mut self, frame: Frame) {
        self.advance(frame.end);
    }

    /// Drops this many bytes of the input.
    pub(crate) fn advance(&mut self, count: usize) {
        self.input.advance(count.min(self.input.len()));
    }
}

/// The error for a connection that broke.
pub(crate) fn lost(operation: &'static str, error: std::io::Error) -> Error {
    let told = Error::new(&code::SOURCE_UNREACHABLE, operation);
    let told = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => told.because("the server closed the connection"),
        _ => told.because(error),
    };
    told.transient()
}

/// The error for a message that may not come here.
pub(crate) fn malformed(operation: &'static str, tag: u8) -> Error {
    Error::new(&code::PROTOCOL, operation).with("message", char::from(tag).escape_default())
}

/// What an ErrorResponse says.
pub(crate) fn refusal(body: &[u8]) -> Refusal {
    let mut refusal = Refusal { state: String::new(), message: String::new() };
    for field in body.split(|byte| *byte == 0) {
        let Some((kind, text)) = field.split_first() else { break };
        let text = String::from_utf8_lossy(text);
        match kind {
            b'C' => refusal.state = text.into_owned(),
            b'M' => refusal.message = text.into_owned(),
            _ => {}
        }
    }
    refusal
}

fn data_row(body: &[u8]) -> Option<Row> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut row = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = i32::from_be_bytes(*length);
        if length < 0 {
            row.push(None);
            rest = after;
            continue;
        }
        let (text, after) = after.split_at_checked(usize::try_from(length).ok()?)?;
        row.push(Some(String::from_utf8_lossy(text).into_owned()));
        rest = after;
    }
    Some(row)
}

/// The text of a column that is never null; empty where it is missing all the same.
pub(crate) fn text(row: &Row, column: usize) -> &str {
    row.get(column).and_then(Option::as_deref).unwrap_or_default()
}

/// `value` as an SQL literal.
pub(crate) fn literal(value: &str) -> String {
    // standard_conforming_strings is pinned: a backslash is a backslash.
    format!("'{}'", value.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_response_gives_its_state_and_message_only() {
        let body = b"SERROR\0VERROR\0C23505\0Mduplicate key\0DKey (id)=(secret)\0\0";
        assert_eq!(refusal(body), Refusal { state: "23505".into(), message: "duplicate key".into() });
    }

    #[test]
    fn a_data_row_that_ends_early_is_no_row() {
        let whole = [0, 2, 255, 255, 255, 255, 0, 0, 0, 2, b'o', b'k'];
        assert_eq!(data_row(&whole), Some(vec![None, Some("ok".into())]));
        for end in 0..whole.len() {
            assert_eq!(data_row(&whole[..end]), None);
        }
    }
}
