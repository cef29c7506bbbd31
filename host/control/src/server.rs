//! The unix socket: one owner, a bounded number of connections, and the name that the kernel gives to each peer.

use std::fmt;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tidegate_api::{Error, Result, code};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::SocketAddr;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The name of the socket in `data_dir`.
pub const SOCKET: &str = "tidegate.sock";

/// So many connections are served at a time; further ones wait (Invariant 11).
const MAX_CONNECTIONS: usize = 32;

/// An address of a unix socket holds about this many bytes.
const MAX_ADDRESS_BYTES: usize = 100;

/// Opens the socket in `data_dir`, in place of one that a dead daemon left. The caller holds the lock on `data_dir`.
///
/// # Errors
/// When it cannot be made.
pub fn bind(data_dir: &Path) -> Result<UnixListener> {
    let failed = |error: io::Error| {
        Error::new(&code::DATA_DIR_UNUSABLE, "open control socket").with("path", data_dir.join(SOCKET).display()).because(error)
    };
    match std::fs::remove_file(data_dir.join(SOCKET)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let address = Address::of(data_dir).map_err(failed)?;
    // `data_dir` is open for its owner alone, so nobody can be quicker than the change of the mode.
    let listener = UnixListener::bind(&address.path).map_err(failed)?;
    std::fs::set_permissions(data_dir.join(SOCKET), std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

/// Connects to the daemon at `data_dir`.
///
/// # Errors
/// [`DAEMON_NOT_RUNNING`](code::DAEMON_NOT_RUNNING) when nobody listens there.
pub async fn connect(data_dir: &Path) -> Result<UnixStream> {
    let failed = |error: io::Error| {
        Error::new(&code::DAEMON_NOT_RUNNING, "connect to daemon").with("socket", data_dir.join(SOCKET).display()).because(error)
    };
    let address = Address::of(data_dir).map_err(failed)?;
    UnixStream::connect(&address.path).await.map_err(failed)
}

/// Serves `router` on `listener` until `stop` completes, then lets answers that have begun come to their end.
///
/// # Errors
/// When the socket fails.
pub async fn serve(listener: UnixListener, router: Router, stop: impl Future<Output = ()> + Send + 'static) -> Result<()> {
    let listener = BoundedListener { listener, permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)) };
    let service = router.into_make_service_with_connect_info::<Peer>();
    let served = axum::serve(listener, service).with_graceful_shutdown(stop).await;
    served.map_err(|error| Error::new(&code::DATA_DIR_UNUSABLE, "serve control socket").because(error))
}

/// A path to the socket that is short enough, and what keeps it valid.
struct Address {
    path: PathBuf,
    _folder: Option<std::fs::File>,
}

impl Address {
    fn of(data_dir: &Path) -> io::Result<Self> {
        let path = data_dir.join(SOCKET);
        if path.as_os_str().len() <= MAX_ADDRESS_BYTES {
            return Ok(Self { path, _folder: None });
        }
        let folder = std::fs::File::open(data_dir)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()));
        Ok(Self { path, _folder: Some(folder) })
    }
}

/// The user at the other end, as the kernel says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(Option<u32>);

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(uid) => write!(f, "uid {uid}"),
            None => f.write_str("unknown"),
        }
    }
}

impl Connected<IncomingStream<'_, BoundedListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, BoundedListener>) -> Self {
        Self(stream.io().stream.peer_cred().ok().map(|credentials| credentials.uid()))
    }
}

pub(crate) struct BoundedListener {
    listener: UnixListener,
    permits: Arc<Semaphore>,
}

impl Listener for BoundedListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // The semaphore is never closed: `ok` is always there.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Connection { stream, _permit: permit }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

pub(crate) struct Connection {
    stream: UnixStream,
    _permit: Option<OwnedSemaphorePermit>,
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
