//! The floor: a bare epoll echo of 220 bytes, one thread each side, nothing but system calls.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll;

/// Bytes of one message.
const BYTES: usize = 220;

/// Round trips a second over so many connections, for so long. Each connection has one message on its way.
pub fn round_trips_per_second(connections: usize, time: Duration) -> Result<f64, String> {
    let told = |error: std::io::Error| error.to_string();
    let listener = TcpListener::bind("127.0.0.1:0").map_err(told)?;
    let address = listener.local_addr().map_err(told)?;
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(address).map_err(told)?;
        stream.set_nodelay(true).map_err(told)?;
        stream.set_nonblocking(true).map_err(told)?;
        let (accepted, _) = listener.accept().map_err(told)?;
        accepted.set_nodelay(true).map_err(told)?;
        accepted.set_nonblocking(true).map_err(told)?;
        ours.push(stream);
        theirs.push(accepted);
    }
    let server = std::thread::spawn(move || serve(theirs));
    let done = drive(ours, time);
    server.join().map_err(|_| "the echo thread panicked".to_owned())??;
    done
}

fn watch(streams: &[TcpStream]) -> Result<std::os::fd::OwnedFd, String> {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| error.to_string())?;
    for (index, stream) in streams.iter().enumerate() {
        // SAFETY: the stream outlives the borrow.
        let fd = unsafe { BorrowedFd::borrow_raw(stream.as_raw_fd()) };
        epoll::add(&set, fd, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)
            .map_err(|error| error.to_string())?;
    }
    Ok(set)
}

fn serve(mut streams: Vec<TcpStream>) -> Result<(), String> {
    let set = watch(&streams)?;
    let mut events = Vec::with_capacity(512);
    let mut buffer = [0; 4096];
    let mut open = streams.len();
    while open > 0 {
        events.clear();
        epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), None)
            .map_err(|error| error.to_string())?;
        for event in &events {
            let index = event.data.u64() as usize;
            match streams[index].read(&mut buffer) {
                Ok(0) | Err(_) => {
                    let _ = epoll::delete(&set, &streams[index]);
                    open -= 1;
                }
                Ok(count) => streams[index].write_all(&buffer[..count]).map_err(|error| error.to_string())?,
            }
        }
    }
    Ok(())
}

fn drive(mut streams: Vec<TcpStream>, time: Duration) -> Result<f64, String> {
    let set = watch(&streams)?;
    let message = [b'x'; BYTES];
    let mut received = vec![0; streams.len()];
    for stream in &mut streams {
        stream.write_all(&message).map_err(|error| error.to_string())?;
    }
    let mut events = Vec::with_capacity(512);
    let mut buffer = [0; 4096];
    let mut round_trips = 0u64;
    let began = Instant::now();
    while began.elapsed() < time {
        events.clear();
        epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), None)
            .map_err(|error| error.to_string())?;
        for event in &events {
            let index = event.data.u64() as usize;
            received[index] += streams[index].read(&mut buffer).map_err(|error| error.to_string())?;
            if received[index] >= BYTES {
                received[index] -= BYTES;
                round_trips += 1;
                streams[index].write_all(&message).map_err(|error| error.to_string())?;
            }
        }
    }
    Ok(round_trips as f64 / began.elapsed().as_secs_f64())
}
