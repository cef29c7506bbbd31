//! The byte stream below: TCP with keepalives, or a unix socket.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tidegate_api::{Error, Result};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::{Role, Settings};

/// A connected stream, whatever is below it.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// The bare connection.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// Connects to the server's socket.
///
/// # Errors
/// Transient: whoever is not there now may be there later.
pub(crate) async fn open(settings: &Settings, role: Role) -> Result<Box<dyn Stream>> {
    Ok(Box::new(connect(settings, role).await?))
}

/// [`open`], as a type that has a name: a future that holds a boxed stream over generic code is not recognised as `Send`.
///
/// # Errors
/// As for [`open`].
pub(crate) async fn connect(settings: &Settings, role: Role) -> Result<Socket> {
    let away = |error: io::Error| Error::new(role.unreachable(), "connect").with("server", settings.place()).because(error).transient();
    if let Some(path) = settings.unix_socket() {
        return Ok(Socket::Unix(UnixStream::connect(path).await.map_err(away)?));
    }
    let stream = TcpStream::connect((settings.host.as_str(), settings.port)).await.map_err(away)?;
    stream.set_nodelay(true).map_err(away)?;
    keep_alive(&stream).map_err(|error| away(error.into()))?;
    Ok(Socket::Tcp(stream))
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
