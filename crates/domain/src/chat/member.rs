//! Members of a conversation, and where each of their devices stands.

use model::{DeviceId, DeviceKey, Seq, UserId};

/// Own places remembered beyond a device's cursor.
const OWN_MAX: usize = 1_024;

/// A member, in the order of joining.
pub struct Member {
    pub user: UserId,
    pub joined: Seq,
    pub read: Seq,
    pub devices: Vec<Device>,
}

/// Where one device of a member stands: `stored ≤ cursor ≤ issued`.
pub struct Device {
    pub device: DeviceId,
    /// Acknowledged by the device, and durable or passed over since the device sent it itself.
    pub cursor: Seq,
    /// The cursor the store has.
    pub stored: Seq,
    /// Acknowledged by the device, and perhaps still on its way to the store.
    pub issued: Seq,
    /// Whether it has acknowledged anything that is stored: where it began counts for nothing in receipts.
    pub acknowledged: bool,
    /// Whether the pending index is known to have it.
    pub marked: bool,
    /// Places after the cursor that this device sent itself, ascending.
    pub own: Vec<Seq>,
}

/// What is known of a device beyond what is stored, since it sent something itself.
pub struct Sender {
    pub key: DeviceKey,
    pub cursor: Seq,
    pub own: Vec<Seq>,
}

impl Member {
    /// Up to where a device of theirs has acknowledged, durably.
    pub fn delivered(&self) -> Seq {
        self.devices
            .iter()
            .filter(|device| device.acknowledged)
            .map(|device| device.stored)
            .max()
            .unwrap_or(Seq::ZERO)
    }
}

impl Device {
    /// One that stands at `cursor`, and has acknowledged nothing unless it is said so.
    pub fn new(device: DeviceId, cursor: Seq, marked: bool) -> Self {
        Device {
            device,
            cursor,
            stored: cursor,
            issued: cursor,
            acknowledged: false,
            marked,
            own: Vec::new(),
        }
    }

    /// The store has an acknowledgement up to `seq`.
    pub fn store(&mut self, seq: Seq) {
        if seq >= self.stored {
            self.stored = seq;
            self.acknowledged = true;
        }
    }

    /// Remembers a place that the device sent itself. False when too many are remembered already: then it is pushed its own message,
    /// which it knows by the client id.
    pub fn pass_over(&mut self, seq: Seq) -> bool {
        let fits = self.own.len() < OWN_MAX;
        if fits {
            self.own.push(seq);
            self.advance(Seq::ZERO);
        }
        fits
    }

    /// The device has everything up to `seq`; what follows directly and came from itself it has too.
    pub fn advance(&mut self, seq: Seq) {
        self.cursor = self.cursor.max(seq);
        let passed = self.own.iter().take_while(|own| {
            let follows = **own <= self.cursor.next();
            if follows {
                self.cursor = self.cursor.max(**own);
            }
            follows
        });
        let passed = passed.count();
        self.own.drain(..passed);
        self.issued = self.issued.max(self.cursor);
    }
}
