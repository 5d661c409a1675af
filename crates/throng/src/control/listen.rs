//! The server's side of the control socket.
//!
//! One command at a time is served; the next one waits. Nothing that happens here ends or holds up the server.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use node::Handle;
use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use seeding::Plan;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use super::words::{Answer, LINE_BYTES_MAX, read_request, write_answer};
use super::{Address, NAME};
use crate::seed::Made;
use crate::token::wall_clock;

/// Users or members in one request to the store: some milliseconds, which the traffic between them waits.
const PEOPLE_PER_SLICE: usize = 500;
/// How long the other side may take to say or to hear a line.
const LINE_DEADLINE: Duration = Duration::from_secs(30);
/// Commands that may wait to be served.
const WAITING_MAX: i32 = 8;

/// The socket of a running server; gone with this.
pub struct Control {
    file: PathBuf,
    task: JoinHandle<()>,
}

impl Control {
    /// Makes the socket, in place of one that a server which died left, and serves it on the current runtime. Whoever calls has the lock of the
    /// data folder.
    ///
    /// # Errors
    /// When there is no socket; the server does without it.
    pub fn start(data: &Path, handle: Handle) -> io::Result<Control> {
        let file = data.join(NAME);
        let listener = UnixListener::from_std(open(data, &file)?.into())?;
        Ok(Control { file, task: tokio::spawn(serve(listener, handle)) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.task.abort();
        let _ = fs::remove_file(&self.file);
    }
}

fn open(data: &Path, file: &Path) -> io::Result<OwnedFd> {
    match fs::symlink_metadata(file) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(file)?,
        Ok(_) => {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "it is there already and is no socket"));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let address = Address::of(data)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Before it has a name: the file gets the mode that the socket has by then.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(&address.path)?)?;
    listen(&socket, WAITING_MAX)?;
    Ok(socket)
}

async fn serve(listener: UnixListener, handle: Handle) {
    loop {
        let served = match listener.accept().await {
            Ok((stream, _)) => answer(stream, &handle).await,
            Err(error) => {
                // Out of descriptors, most likely: no reason to spin.
                tokio::time::sleep(Duration::from_secs(1)).await;
                Err(error)
            }
        };
        if let Err(error) = served {
            tracing::warn!(%error, "a command over the control socket was broken off");
        }
    }
}

/// Hears one command and carries it out.
async fn answer(stream: UnixStream, handle: &Handle) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    let mut reader = BufReader::new(read.take(LINE_BYTES_MAX as u64));
    within(reader.read_line(&mut line)).await?;
    let last = match read_request(line.trim_end_matches('\n')) {
        Ok(plan) => import(plan, handle, &mut write).await?,
        Err(why) => Answer::Refused(why),
    };
    say(&mut write, &last).await
}

/// Makes everything, slice by slice, and tells of each.
async fn import(plan: Plan, handle: &Handle, write: &mut (impl AsyncWriteExt + Unpin)) -> io::Result<Answer> {
    tracing::info!(numbers = ?plan.numbers(), "seeding");
    let mut made = Made::default();
    for request in plan.requests(PEOPLE_PER_SLICE, wall_clock()) {
        match handle.import(request).await {
            Ok(imported) => made.add(&imported),
            Err(error) => return Ok(Answer::Refused(error.to_string())),
        }
        say(write, &Answer::Made(made)).await?;
        if made.phones_taken > 0 {
            break;
        }
    }
    tracing::info!(?made, "seeded");
    Ok(Answer::Done)
}

async fn say(write: &mut (impl AsyncWriteExt + Unpin), answer: &Answer) -> io::Result<()> {
    within(write.write_all(write_answer(answer).as_bytes())).await
}

async fn within<T>(what: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(LINE_DEADLINE, what).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}
