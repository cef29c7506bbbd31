//! From a socket to a session: TLS, start-up, authentication.

use std::sync::Arc;

use bytes::{Buf as _, BytesMut};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256};
use postgres_protocol::message::frontend;
use rustls::pki_types::{CertificateDer, ServerName};
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use tidegate_api::{Error, Result, code};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;

use super::{Mode, Wire, lost, malformed, refusal};
use crate::connect::failure::Refusal;
use crate::connect::socket::{self, Stream};
use crate::connect::{PINNED, Role, Settings, SslMode, tls};

const OPERATION: &str = "connect";

/// Row security would leave rows out of a snapshot without a word: with it off, the server refuses instead.
const SOURCE_PINNED: &[(&str, &str)] = &[("row_security", "off")];

pub(super) async fn open(settings: &Settings, mode: Mode) -> Result<Wire> {
    let socket = socket::open(settings, Role::Source).await?;
    let (stream, binding) = secure(settings, socket).await?;
    let mut wire = Wire { stream, input: BytesMut::new(), output: BytesMut::new(), version: 0 };
    let at = |error: Error| error.with("server", settings.place());
    let mut parameters =
        vec![("user", settings.user.as_str()), ("database", &settings.database), ("application_name", &settings.application_name)];
    parameters.extend(PINNED);
    parameters.extend(SOURCE_PINNED);
    if mode == Mode::Replication {
        parameters.push(("replication", "database"));
    }
    frontend::startup_message(parameters, &mut wire.output).map_err(|error| lost(OPERATION, error))?;
    wire.flush(OPERATION).await.map_err(at)?;
    authenticate(&mut wire, settings, binding).await.map_err(at)?;
    until_ready(&mut wire, mode).await.map_err(at)?;
    Ok(wire)
}

/// Asks for TLS where the settings want it; gives the stream and what binds the login to it.
async fn secure(settings: &Settings, mut socket: Box<dyn Stream>) -> Result<(Box<dyn Stream>, Option<Vec<u8>>)> {
    let mode = settings.effective_ssl_mode();
    if mode == SslMode::Disable {
        return Ok((socket, None));
    }
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    socket.write_all(&request).await.map_err(|error| lost(OPERATION, error))?;
    let answer = socket.read_u8().await.map_err(|error| lost(OPERATION, error))?;
    let untrusted = || Error::new(&code::SOURCE_TLS, OPERATION).with("server", settings.place());
    if answer != b'S' {
        return match mode {
            SslMode::Prefer => Ok((socket, None)),
            _ => Err(untrusted().because("the server offers no TLS")),
        };
    }
    let connector = TlsConnector::from(Arc::new(tls::client_config(settings, Role::Source)?));
    let name = ServerName::try_from(settings.host.clone()).map_err(|error| untrusted().because(error))?;
    let stream = connector.connect(name, socket).await.map_err(|error| match error.kind() {
        // rustls reports what it does not trust as invalid data; every other kind is a connection that broke.
        std::io::ErrorKind::InvalidData => untrusted().because(error),
        _ => lost(OPERATION, error),
    })?;
    let binding = stream.get_ref().1.peer_certificates().and_then(<[_]>::first).and_then(server_end_point);
    Ok((Box::new(stream), binding))
}

/// RFC 5929 `tls-server-end-point`: the certificate's hash by its own signature's hash function, SHA-256 in place of MD5
/// and SHA-1; `None` for signatures without one (Ed25519) or that name it elsewhere (RSA-PSS).
fn server_end_point(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
    // Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { OBJECT IDENTIFIER, … }, … }
    let (certificate_body, _) = der(0x30, certificate)?;
    let (_, after) = der(0x30, certificate_body)?;
    let (algorithm, _) = der(0x30, after)?;
    let (name, _) = der(0x06, algorithm)?;
    let bits = match (name.strip_prefix(RSA), name.strip_prefix(ECDSA)) {
        (Some([4 | 5 | 11]), _) | (_, Some([1] | [3, 2])) => 256,
        (Some([12]), _) | (_, Some([3, 3])) => 384,
        (Some([13]), _) | (_, Some([3, 4])) => 512,
        _ => return None,
    };
    Some(match bits {
        256 => Sha256::digest(certificate).to_vec(),
        384 => Sha384::digest(certificate).to_vec(),
        _ => Sha512::digest(certificate).to_vec(),
    })
}

/// The content of the first element, which must have this tag, and what follows it.
fn der(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[found, first], mut rest) = bytes.split_first_chunk::<2>()?;
    if found != tag {
        return None;
    }
    let mut length = usize::from(first);
    if first >= 0x80 {
        let (digits, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
        length = digits.iter().try_fold(0usize, |value, digit| value.checked_mul(256)?.checked_add(usize::from(*digit)))?;
        rest = after;
    }
    rest.split_at_checked(length)
}

async fn authenticate(wire: &mut Wire, settings: &Settings, binding: Option<Vec<u8>>) -> Result<()> {
    let password =
        || settings.password.as_deref().map(str::as_bytes).ok_or_else(|| denied("the server asks for a password, the url has none"));
    loop {
        let (kind, data) = request(wire).await?;
        match kind {
            0 => return Ok(()),
            3 => send_password(wire, password()?).await?,
            5 => {
                let salt = data.first_chunk::<4>().ok_or_else(|| malformed(OPERATION, b'R'))?;
                let hash = md5_hash(settings.user.as_bytes(), password()?, *salt);
                send_password(wire, hash.as_bytes()).await?;
            }
            10 => scram(wire, &data, password()?, binding.clone()).await?,
            _ => return Err(denied("the server asks for a method other than scram-sha-256, md5 or password")),
        }
    }
}

/// The next authentication request: its kind and data.
async fn request(wire: &mut Wire) -> Result<(u32, Vec<u8>)> {
    let frame = wire.message(OPERATION).await?;
    let mut body = wire.body(frame);
    let answer = match frame.tag {
        b'R' if body.len() >= 4 => Ok((body.get_u32(), body.to_vec())),
        b'E' => Err(refused(refusal(body))),
        tag => Err(malformed(OPERATION, tag)),
    };
    wire.consume(frame);
    answer
}

async fn send_password(wire: &mut Wire, password: &[u8]) -> Result<()> {
    frontend::password_message(password, &mut wire.output).map_err(|error| lost(OPERATION, error))?;
    wire.flush(OPERATION).await
}

async fn scram(wire: &mut Wire, mechanisms: &[u8], password: &[u8], binding: Option<Vec<u8>>) -> Result<()> {
    let offers = |wanted: &str| mechanisms.split(|byte| *byte == 0).any(|name| name == wanted.as_bytes());
    let (mechanism, binding) = match binding {
        Some(hash) if offers(SCRAM_SHA_256_PLUS) => (SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(hash)),
        // Saying that we could have bound it lets the server notice that its offer was taken away on the way.
        Some(_) if offers(SCRAM_SHA_256) => (SCRAM_SHA_256, ChannelBinding::unrequested()),
        None if offers(SCRAM_SHA_256) => (SCRAM_SHA_256, ChannelBinding::unsupported()),
        _ => return Err(denied("the server offers no scram-sha-256")),
    };
    let mut exchange = ScramSha256::new(password, binding);
    frontend::sasl_initial_response(mechanism, exchange.message(), &mut wire.output).map_err(|error| lost(OPERATION, error))?;
    wire.flush(OPERATION).await?;
    let (11, challenge) = request(wire).await? else { return Err(malformed(OPERATION, b'R')) };
    exchange.update(&challenge).map_err(|error| denied(error.to_string()))?;
    frontend::sasl_response(exchange.message(), &mut wire.output).map_err(|error| lost(OPERATION, error))?;
    wire.flush(OPERATION).await?;
    let (12, proof) = request(wire).await? else { return Err(malformed(OPERATION, b'R')) };
    exchange.finish(&proof).map_err(|error| denied(error.to_string()))
}

/// Reads the server's parameters until it waits for a command.
async fn until_ready(wire: &mut Wire, mode: Mode) -> Result<()> {
    loop {
        let Some(frame) = wire.frame(0)? else {
            wire.read(OPERATION).await?;
            continue;
        };
        let body = wire.body(frame);
        match frame.tag {
            b'Z' => {
                wire.consume(frame);
                return Ok(());
            }
            b'S' => {
                if let Some(version) = body.strip_prefix(b"server_version\0") {
                    wire.version = version_number(version);
                }
            }
            b'E' => {
                let refusal = refusal(body);
                return Err(match (mode, refusal.state.as_str()) {
                    (Mode::Replication, "42501") => Error::new(&code::REPLICATION_RIGHT, OPERATION).because(refusal.message),
                    _ => refused(refusal),
                });
            }
            b'K' | b'N' => {}
            tag => return Err(malformed(OPERATION, tag)),
        }
        wire.consume(frame);
    }
}

fn refused(refusal: Refusal) -> Error {
    refusal.into_error(Role::Source, OPERATION)
}

fn denied(why: impl Into<String>) -> Error {
    Error::new(&code::SOURCE_AUTHENTICATION, OPERATION).because(why.into())
}

/// `15.18 (Debian 15.18-0+deb12u1)` is 150018, `18beta1` is 180000.
fn version_number(text: &[u8]) -> u32 {
    let mut parts = text
        .split(|byte| !byte.is_ascii_digit())
        .map(|digits| digits.iter().take(4).fold(0u32, |value, digit| value * 10 + u32::from(digit - b'0')));
    let major = parts.next().unwrap_or(0);
    let minor = if text.iter().find(|byte| !byte.is_ascii_digit()) == Some(&b'.') { parts.next().unwrap_or(0) } else { 0 };
    major * 10_000 + minor.min(9_999)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_version_is_read_as_the_server_numbers_it() {
        for (text, number) in [("15.18 (Debian 15.18-0+deb12u1)\0", 150_018), ("18beta1\0", 180_000), ("17.0\0", 170_000), ("\0", 0)] {
            assert_eq!(version_number(text.as_bytes()), number);
        }
    }

    #[test]
    fn a_certificate_is_hashed_by_its_own_signature_algorithm() {
        let certificate = |algorithm: &[u8]| {
            let name = [&[0x06, algorithm.len() as u8], algorithm].concat();
            let body = [&[0x30, 0x00, 0x30, name.len() as u8], name.as_slice(), &[0x03, 0x00]].concat();
            CertificateDer::from([&[0x30, body.len() as u8], body.as_slice()].concat())
        };
        let sha384_rsa = certificate(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 12]);
        assert_eq!(server_end_point(&sha384_rsa), Some(Sha384::digest(&sha384_rsa).to_vec()));
        let sha256_ecdsa = certificate(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 3, 2]);
        assert_eq!(server_end_point(&sha256_ecdsa), Some(Sha256::digest(&sha256_ecdsa).to_vec()));
        assert_eq!(server_end_point(&certificate(&[0x2b, 0x65, 0x70])), None);
        assert_eq!(server_end_point(&CertificateDer::from(vec![0x30, 0x82, 0xff])), None);
    }
}
