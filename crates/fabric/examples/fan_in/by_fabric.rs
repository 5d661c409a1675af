//! The fan-in as throng does it: one thread per processor, each owning its share of the connections and of the
//! partitions. A job for a partition of the same thread is a call, any other is mail.

use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{self, Thread};
use std::time::Instant;

use fabric::{Outbox, Port, Waker, connect};

use crate::measure::Stretch;
use crate::report::Sample;
use crate::work::{CONNECTIONS, Key, PARTITIONS, Partition, Reply, check_logs, key_of, partition_of};

/// How many connections a turn reads, the same bound that a server's turn has.
const READ_PER_TURN: usize = 512;
/// How many blocks a turn takes.
const BLOCKS_PER_TURN: usize = 8;
/// With the next, at most 4,096 items lie between two threads.
pub const ITEMS_PER_BLOCK: usize = 256;
const BLOCKS_PER_RING: usize = 16;

/// What travels.
pub enum Mail {
    /// From the generator of an open loop: a connection has had something to send since `due`, in ns.
    Arrived { connection: u32, due: u32 },
    /// From the thread of a connection to the one of its partition.
    Job { connection: u32, partition: u8, key: Key },
    /// And back.
    Reply { connection: u32, reply: Reply },
    /// Its sender has all its replies, and sends no more jobs.
    Done,
}

/// Each port's owner, who sleeps by `park`.
pub type Owners = Vec<Arc<OnceLock<Thread>>>;

/// As many ports.
pub fn ports(count: usize) -> (Owners, Vec<Port<Mail>>) {
    let owners: Owners = (0..count).map(|_| Arc::default()).collect();
    let waker = |owner: &Arc<OnceLock<Thread>>| {
        let owner = owner.clone();
        Box::new(move || owner.get().expect("who sleeps has said who it is").unpark()) as Waker
    };
    let ports = connect(owners.iter().map(waker).collect(), BLOCKS_PER_RING);
    (owners, ports)
}

/// One run from nothing, in which all connections send as soon as all exist.
pub fn run(steps: u64, salt: u64, shards: usize) -> Sample {
    let stretch = Stretch::begin();
    let everybody_is_there = Barrier::new(shards);
    let (owners, ports) = ports(shards);
    let done: Vec<(Desk, Instant)> = thread::scope(|scope| {
        let shard = |(port, owner): (Port<Mail>, &Arc<OnceLock<Thread>>)| {
            let (owner, everybody_is_there) = (owner.clone(), &everybody_is_there);
            scope.spawn(move || {
                owner.set(thread::current()).expect("one thread for each port");
                let desk = Desk::new(port.id(), shards, steps, salt);
                everybody_is_there.wait();
                let start = Instant::now();
                (Shard { port, desk }.run(), start)
            })
        };
        let threads: Vec<_> = ports.into_iter().zip(&owners).map(shard).collect();
        threads.into_iter().map(|thread| thread.join().expect("a shard")).collect()
    });
    let steady = done.iter().map(|(_, start)| start.elapsed()).max().expect("a shard");
    let (total, cpu, memory) = stretch.end();
    let crossed = done.iter().map(|(desk, _)| desk.crossed).sum();
    check_logs(salt, (0..CONNECTIONS).map(|index| done[index % shards].0.connections[index / shards].seq));
    Sample { total, steady, cpu, memory, crossed }
}

/// One connection. Connection `index` lives on shard `index % shards`, whatever its key.
pub struct Connection {
    key: Key,
    /// The place its job got; 0 while it waits.
    seq: u32,
    /// In an open loop: when it was due, and from the reply on how long it took; in ns.
    pub time: u32,
}

/// All that one thread owns, but for its port.
pub struct Desk {
    outbox: Outbox<Mail>,
    /// Its own.
    pub connections: Vec<Connection>,
    /// Partition `index` lives on shard `index % shards`.
    partitions: Vec<Partition>,
    id: usize,
    shards: usize,
    salt: u64,
    /// Connections from here on have something to send that was not read.
    unread: usize,
    /// How many of its connections have no reply.
    unanswered: usize,
    /// How many other shards may still send jobs.
    others: usize,
    crossed: usize,
    /// In an open loop: its start, and who was answered in this turn.
    clock: Option<(Instant, Vec<u32>)>,
}

impl Desk {
    /// With its connections and partitions.
    pub fn new(id: usize, shards: usize, steps: u64, salt: u64) -> Self {
        let connection = |index| Connection { key: key_of(index), seq: 0, time: 0 };
        let connections: Vec<_> = (id..CONNECTIONS).step_by(shards).map(connection).collect();
        Self {
            // One more, where there is a generator.
            outbox: Outbox::new(shards + 1, ITEMS_PER_BLOCK),
            unanswered: connections.len(),
            connections,
            partitions: (id..PARTITIONS).step_by(shards).map(|_| Partition::new(steps)).collect(),
            id,
            shards,
            salt,
            unread: 0,
            others: shards - 1,
            crossed: 0,
            clock: None,
        }
    }

    /// Nothing to send until it arrives.
    pub fn in_open_loop(self, start: Instant) -> Self {
        Self { unread: self.connections.len(), clock: Some((start, Vec::new())), ..self }
    }

    /// Connections that have something to send, as far as a turn goes.
    fn read(&mut self) -> usize {
        let last = self.connections.len().min(self.unread + READ_PER_TURN);
        let read = last - self.unread;
        for index in self.unread..last {
            self.ask(index as u32);
        }
        self.unread = last;
        read
    }

    fn ask(&mut self, connection: u32) {
        let key = self.connections[connection as usize].key;
        let partition = partition_of(self.salt, key);
        let owner = partition % self.shards;
        if owner == self.id {
            let reply = self.partitions[partition / self.shards].handle(key);
            self.answer(connection, reply);
        } else {
            self.outbox.push(owner, Mail::Job { connection, partition: partition as u8, key });
            self.crossed += 1;
        }
    }

    fn answer(&mut self, index: u32, reply: Reply) {
        let connection = &mut self.connections[index as usize];
        assert!(connection.seq == 0 && reply.is_for(connection.key), "somebody else's reply");
        connection.seq = reply.seq;
        self.unanswered -= 1;
        if let Some((_, answered)) = &mut self.clock {
            answered.push(index);
        }
    }

    fn handle(&mut self, from: usize, mut block: Vec<Mail>) {
        for mail in block.drain(..) {
            match mail {
                Mail::Arrived { connection, due } => {
                    self.connections[connection as usize].time = due;
                    self.ask(connection);
                }
                Mail::Job { connection, partition, key } => {
                    let reply = self.partitions[usize::from(partition) / self.shards].handle(key);
                    self.outbox.push(from, Mail::Reply { connection, reply });
                }
                Mail::Reply { connection, reply } => self.answer(connection, reply),
                Mail::Done => self.others -= 1,
            }
        }
        self.outbox.recycle(block);
    }

    /// The time is read once for all that this turn answered, and after it.
    fn clock(&mut self) {
        let Some((start, answered)) = &mut self.clock else { return };
        if !answered.is_empty() {
            let now = start.elapsed().as_nanos() as u32;
            for index in answered.drain(..) {
                let time = &mut self.connections[index as usize].time;
                *time = now - *time;
            }
        }
    }
}

/// One thread.
pub struct Shard {
    /// Its door to the others.
    pub port: Port<Mail>,
    /// All else it has.
    pub desk: Desk,
}

impl Shard {
    /// Turns until all connections of all shards have their replies.
    pub fn run(mut self) -> Desk {
        let Self { port, desk } = &mut self;
        let (mut said_done, mut waiting) = (false, 0);
        while !(said_done && desk.others == 0 && waiting == 0) {
            let received = port.receive(&mut |from, block| desk.handle(from, block), BLOCKS_PER_TURN);
            let read = if waiting == 0 { desk.read() } else { 0 };
            if desk.unanswered == 0 && !said_done {
                said_done = true;
                let (id, shards) = (desk.id, desk.shards);
                (0..shards).filter(|to| *to != id).for_each(|to| desk.outbox.push(to, Mail::Done));
            }
            waiting = desk.outbox.flush(port);
            desk.clock();
            if received + read == 0 {
                if port.prepare_sleep() {
                    thread::park();
                }
                port.awake();
            }
        }
        self.desk
    }
}
