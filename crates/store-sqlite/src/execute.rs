//! What each request does to the tables.
//!
//! Owns the `match` over requests and the memory that must agree with the tables. Deliberately knows no transaction: when something
//! fails half-way, whoever called undoes all of it.

use model::{ConversationId, ConversationKind, DeviceKey, HashKey, Seq, UserId, Wall};
use store::{ConversationRecord, FORGET_MAX, Reply, Request, digest};

use crate::moves::{Moves, Row};
use crate::residents::{Resident, Residents};
use crate::rows::{self, Columns, SEQ_MAX};
use crate::statements::{Prepared, Statements};
use crate::trouble::Trouble;

/// The tables and what is remembered of them.
pub(crate) struct Tables {
    pub(crate) prepared: Prepared,
    pub(crate) residents: Residents,
    moves: Moves,
}

impl Tables {
    pub(crate) fn new(prepared: Prepared, key: HashKey, residents_max: usize) -> Self {
        Tables { prepared, residents: Residents::new(key, residents_max), moves: Moves::new(key) }
    }

    /// Forgets what may no longer be true.
    pub(crate) fn forget(&mut self) {
        self.residents.clear();
        self.moves.clear();
    }

    pub(crate) fn execute(&mut self, request: &Request) -> Result<Reply, Trouble> {
        match request {
            Request::LoadConversation { conversation } => {
                Ok(Reply::Conversation(self.load_conversation(*conversation)?))
            }
            Request::ReadLog { conversation, after, up_to, limit, bytes_max } => {
                Ok(Reply::Page(self.read_log(*conversation, *after, *up_to, *limit, *bytes_max)?))
            }
            Request::ListPending { device } => Ok(Reply::Pending(self.list_pending(*device)?)),
            Request::ListConversations { user, receipts_members_max } => {
                Ok(Reply::Conversations(self.list_conversations(*user, *receipts_members_max)?))
            }
            Request::RegisterDevice { device, ts } => self.register_device(*device, *ts),
            Request::CreateConversation { conversation, kind, by, members, ts } => {
                self.create_conversation(*conversation, *kind, *by, members, *ts)
            }
            Request::Append { .. } => self.append(request),
            Request::AddMember { conversation, user, by, ts } => {
                self.add_member(*conversation, *user, *by, *ts)
            }
            Request::RemoveMember { conversation, user, by, ts } => {
                self.remove_member(*conversation, *user, *by, *ts)
            }
            Request::Acknowledge { conversation, device, seq } => {
                self.acknowledge(*conversation, *device, *seq)
            }
            Request::MarkRead { conversation, user, seq } => self.mark_read(*conversation, *user, *seq),
            Request::Settle { conversation, acknowledged, unmark, trim } => {
                self.settle(*conversation, acknowledged, unmark, *trim)
            }
            Request::ForgetClientIds { before } => self.forget_client_ids(*before),
            Request::Import { users, conversations, ts } => {
                Ok(Reply::Imported(self.import(users, conversations, *ts)?))
            }
            Request::Clean { phones } => Ok(Reply::Cleaned(self.clean(phones)?)),
        }
    }

    pub(crate) fn set_cache(&self, bytes: usize) -> Result<(), Trouble> {
        Ok(self.prepared.set_cache(bytes)?)
    }

    pub(crate) fn statements(&mut self) -> &mut Statements<'static> {
        self.prepared.statements()
    }

    /// What is known of a conversation, from memory or else from its row.
    pub(crate) fn resident(&mut self, id: ConversationId) -> Result<Option<Resident>, Trouble> {
        if let Some(resident) = self.residents.get(id) {
            return Ok(Some(*resident));
        }
        let mut found = self.prepared.statements().conversation.query((id.0,))?;
        let Some(row) = found.next()? else { return Ok(None) };
        let resident = Resident {
            number: row.get(0)?,
            kind: rows::kind(row.get(1)?)?,
            trimmed: rows::seq(row, 2)?.0,
            head: rows::seq(row, 3)?.0,
        };
        drop(found);
        self.residents.insert(id, resident);
        Ok(Some(resident))
    }

    /// Writes the moves that were only noted so far.
    pub(crate) fn write_moves(&mut self) -> Result<(), Trouble> {
        if self.moves.is_empty() {
            return Ok(());
        }
        let statements = self.prepared.statements();
        for (row, seq) in self.moves.take() {
            let (number, user, seq) = (row.number, row.user.0, *seq as i64);
            match row.device {
                Some(device) => statements.acknowledge.execute((number, user, device.0, seq))?,
                None => statements.mark_read.execute((number, user, seq))?,
            };
        }
        Ok(())
    }

    fn register_device(&mut self, device: DeviceKey, ts: Wall) -> Result<Reply, Trouble> {
        self.write_moves()?;
        let statements = self.statements();
        let (user, number) = (device.user.0, device.device.0);
        if statements.put_device.execute((user, number, ts.0 as i64))? == 0 {
            return Ok(Reply::Registered { fresh: false, conversations: self.list_pending(device)? });
        }
        let later: bool = statements.has_other_devices.query_row((user, number), |row| row.get(0))?;
        let start =
            if later { &mut statements.start_later_device } else { &mut statements.start_first_device };
        start.execute((user, number))?;
        Ok(Reply::Registered { fresh: true, conversations: self.list_pending(device)? })
    }

    fn create_conversation(
        &mut self,
        id: ConversationId,
        kind: ConversationKind,
        by: UserId,
        members: &[UserId],
        ts: Wall,
    ) -> Result<Reply, Trouble> {
        if self.resident(id)?.is_some() {
            let record = self.loaded(id)?;
            return Ok(Reply::Created { fresh: false, record });
        }
        self.statements().create_conversation.execute((id.0, rows::kind_code(kind)))?;
        let number = self.prepared.connection().last_insert_rowid();
        self.residents.insert(id, Resident { number, kind, head: 0, trimmed: 0 });
        let bytes: Vec<u8> = members.iter().flat_map(|user| user.0).collect();
        let seq = self.put_entry(id, ts, &Columns::created(by, &bytes))?;
        for user in members {
            self.join(number, *user, seq)?;
        }
        Ok(Reply::Created { fresh: true, record: self.loaded(id)? })
    }

    fn append(&mut self, request: &Request) -> Result<Reply, Trouble> {
        let Request::Append { conversation, from, client_id, ts, payload, mark } = request else {
            unreachable!("only appends come here");
        };
        let Some(resident) = self.resident(*conversation)? else { return Ok(Reply::Conflict) };
        if resident.head >= SEQ_MAX {
            return Ok(Reply::ReadOnly);
        }
        let digest = digest(*conversation, payload);
        let seq = resident.head + 1;
        let (user, ts_bits) = (from.user.0, ts.0 as i64);
        let statements = self.statements();
        let fresh = statements.put_client_id.execute((
            user,
            client_id.0,
            resident.number,
            seq as i64,
            ts_bits,
            digest,
        ))?;
        if fresh == 0 {
            let mut found = statements.client_id.query((user, client_id.0))?;
            let row =
                found.next()?.ok_or_else(|| Trouble::damaged("a client id that is there and is not"))?;
            return Ok(if rows::id(row, 2)? == digest {
                Reply::Duplicate { seq: rows::seq(row, 0)?, ts: rows::ts(row, 1)? }
            } else {
                Reply::ClientIdReused
            });
        }
        let seq = self.put_entry(*conversation, *ts, &Columns::message(*from, client_id, payload))?;
        for device in mark {
            self.statements().mark.execute((resident.number, device.user.0, device.device.0))?;
        }
        Ok(Reply::Appended { seq })
    }

    fn add_member(
        &mut self,
        id: ConversationId,
        user: UserId,
        by: UserId,
        ts: Wall,
    ) -> Result<Reply, Trouble> {
        self.write_moves()?;
        let Some(resident) = self.resident(id)? else { return Ok(Reply::Conflict) };
        if resident.head >= SEQ_MAX {
            return Ok(Reply::ReadOnly);
        }
        if !self.join(resident.number, user, Seq(resident.head + 1))? {
            return Ok(Reply::Conflict);
        }
        let seq = self.put_entry(id, ts, &Columns::added(by, &user))?;
        let statements = self.statements();
        statements.mark_all.execute((resident.number,))?;
        let mut found = statements.devices_of_user.query((user.0,))?;
        let mut devices = Vec::new();
        while let Some(row) = found.next()? {
            devices.push(rows::device(row, 0)?);
        }
        Ok(Reply::MemberAdded { seq, devices })
    }

    fn remove_member(
        &mut self,
        id: ConversationId,
        user: UserId,
        by: UserId,
        ts: Wall,
    ) -> Result<Reply, Trouble> {
        self.write_moves()?;
        let Some(resident) = self.resident(id)? else { return Ok(Reply::Conflict) };
        if resident.head >= SEQ_MAX {
            return Ok(Reply::ReadOnly);
        }
        let statements = self.statements();
        if statements.remove_member.execute((resident.number, user.0))? == 0 {
            return Ok(Reply::Conflict);
        }
        let mut found = statements.marks_of_member.query((resident.number, user.0))?;
        let mut unmarked = Vec::new();
        while let Some(row) = found.next()? {
            unmarked.push(rows::device(row, 0)?);
        }
        drop(found);
        statements.remove_cursors.execute((resident.number, user.0))?;
        statements.mark_all.execute((resident.number,))?;
        let seq = self.put_entry(id, ts, &Columns::removed(by, &user))?;
        Ok(Reply::MemberRemoved { seq, unmarked })
    }

    fn acknowledge(&mut self, id: ConversationId, device: DeviceKey, seq: Seq) -> Result<Reply, Trouble> {
        let Some(resident) = self.resident(id)? else { return Ok(Reply::Conflict) };
        self.note_cursor(&resident, device, seq);
        Ok(Reply::Done)
    }

    fn note_cursor(&mut self, resident: &Resident, device: DeviceKey, seq: Seq) {
        let row = Row { number: resident.number, user: device.user, device: Some(device.device) };
        self.moves.note(row, seq.0.min(resident.head));
    }

    fn mark_read(&mut self, id: ConversationId, user: UserId, seq: Seq) -> Result<Reply, Trouble> {
        let Some(resident) = self.resident(id)? else { return Ok(Reply::Conflict) };
        let row = Row { number: resident.number, user, device: None };
        self.moves.note(row, seq.0.min(resident.head));
        Ok(Reply::Done)
    }

    fn settle(
        &mut self,
        id: ConversationId,
        acknowledged: &[(DeviceKey, Seq)],
        unmark: &[DeviceKey],
        trim: Seq,
    ) -> Result<Reply, Trouble> {
        let Some(resident) = self.resident(id)? else { return Ok(Reply::Conflict) };
        for (device, seq) in acknowledged {
            self.note_cursor(&resident, *device, *seq);
        }
        let statements = self.statements();
        for device in unmark {
            statements.unmark.execute((resident.number, device.user.0, device.device.0))?;
        }
        let trimmed = trim.0.min(resident.head);
        if trimmed > resident.trimmed {
            let (first, last) = (resident.trimmed + 1, trimmed);
            statements
                .trim
                .execute((rows::place(resident.number, first), rows::place(resident.number, last)))?;
            statements.set_trimmed.execute((resident.number, trimmed as i64))?;
            self.residents.get(id).expect("it was just looked up").trimmed = trimmed;
        }
        Ok(Reply::Done)
    }

    /// Times from 2^63 on are negative in the table, so they come second there and here.
    fn forget_client_ids(&mut self, before: Wall) -> Result<Reply, Trouble> {
        let Some(last) = before.0.checked_sub(1) else { return Ok(Reply::Forgotten(0)) };
        let forget = &mut self.statements().forget_client_ids;
        let mut forgotten = forget.execute((0, i64::try_from(last).unwrap_or(i64::MAX), FORGET_MAX))?;
        if i64::try_from(last).is_err() && forgotten < FORGET_MAX as usize {
            forgotten += forget.execute((i64::MIN, last as i64, FORGET_MAX - forgotten as u32))?;
        }
        Ok(Reply::Forgotten(forgotten as u32))
    }

    /// Puts an entry at the end of a log that is in memory and not full.
    fn put_entry(&mut self, id: ConversationId, ts: Wall, columns: &Columns<'_>) -> Result<Seq, Trouble> {
        let resident = self.residents.get(id).expect("the caller looked it up");
        let seq = resident.head + 1;
        let place = rows::place(resident.number, seq);
        self.prepared.statements().put_entry.execute((
            place,
            ts.0 as i64,
            columns.kind,
            columns.user.0,
            columns.device,
            columns.name,
            columns.body,
        ))?;
        resident.head = seq;
        Ok(Seq(seq))
    }

    /// Makes somebody a member by the entry at `joined`, with a marked cursor before it for each device; says whether they were none.
    fn join(&mut self, number: i64, user: UserId, joined: Seq) -> Result<bool, Trouble> {
        let statements = self.statements();
        let fresh = statements.put_member.execute((number, user.0, joined.0 as i64))? == 1;
        if fresh {
            statements.start_member.execute((number, user.0, joined.0 as i64))?;
        }
        Ok(fresh)
    }

    fn loaded(&mut self, id: ConversationId) -> Result<ConversationRecord, Trouble> {
        self.load_conversation(id)?.ok_or_else(|| Trouble::damaged("a conversation that is there and is not"))
    }
}
