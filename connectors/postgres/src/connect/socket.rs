//! The byte stream below: TCP with keepalives, or a unix socket.

use std::time::Duration;

use tidegate_api::{Error, Result};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::{Role, Settings};

/// A connected stream, whatever is below it.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Connects to the server's socket.
///
/// # Errors
/// Transient: whoever is not there now may be there later.
pub(crate) async fn open(settings: &Settings, role: Role) -> Result<Box<dyn Stream>> {
    let away =
        |error: std::io::Error| Error::new(role.unreachable(), "connect").with("server", settings.place()).because(error).transient();
    if let Some(path) = settings.unix_socket() {
        return Ok(Box::new(UnixStream::connect(path).await.map_err(away)?));
    }
    let stream = TcpStream::connect((settings.host.as_str(), settings.port)).await.map_err(away)?;
    stream.set_nodelay(true).map_err(away)?;
    keep_alive(&stream).map_err(|error| away(error.into()))?;
    Ok(Box::new(stream))
}

/// A peer that vanished without a word is noticed after half a minute, also by a session that only waits.
fn keep_alive(stream: &TcpStream) -> rustix::io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(15))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(5))?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    sockopt::set_tcp_user_timeout(stream, 30_000)
}
