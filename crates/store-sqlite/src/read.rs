//! The requests that only look.
//!
//! Owns how rows become records. Deliberately changes nothing (but the noted moves, which are written before they are read).

use model::{
    Body, ConversationId, ConversationListing, ConversationSummary, DeviceKey, Entry, Receipt, Seq, UserId,
};
use store::{ConversationRecord, DeviceRecord, MemberRecord, PendingRecord};

use crate::execute::Tables;
use crate::rows::{self, SEQ_MAX};
use crate::trouble::Trouble;

impl Tables {
    pub(crate) fn load_conversation(
        &mut self,
        id: ConversationId,
    ) -> Result<Option<ConversationRecord>, Trouble> {
        self.write_moves()?;
        let Some(resident) = self.resident(id)? else { return Ok(None) };
        let mut members = self.members(resident.number)?;
        self.attach_cursors(resident.number, &mut members)?;
        members.sort_by_key(|member| (member.joined, member.user));
        Ok(Some(ConversationRecord {
            kind: resident.kind,
            head: Seq(resident.head),
            trimmed: Seq(resident.trimmed),
            members,
        }))
    }

    /// The members, ordered by id and still without devices.
    fn members(&mut self, number: i64) -> Result<Vec<MemberRecord>, Trouble> {
        let mut found = self.statements().members.query((number,))?;
        let mut members = Vec::new();
        while let Some(row) = found.next()? {
            members.push(MemberRecord {
                user: rows::user_id(row, 0)?,
                joined: rows::seq(row, 1)?,
                read: rows::seq(row, 2)?,
                devices: Vec::new(),
            });
        }
        Ok(members)
    }

    /// Both lists are ordered by user, so each cursor's member is at or after the one before.
    fn attach_cursors(&mut self, number: i64, members: &mut [MemberRecord]) -> Result<(), Trouble> {
        let mut found = self.statements().cursors.query((number,))?;
        let mut members = members.iter_mut().peekable();
        while let Some(row) = found.next()? {
            let user = rows::user_id(row, 0)?;
            while members.next_if(|member| member.user < user).is_some() {}
            match members.peek_mut() {
                Some(member) if member.user == user => member.devices.push(DeviceRecord {
                    device: rows::device(row, 1)?,
                    cursor: rows::seq(row, 2)?,
                    marked: row.get(3)?,
                    acknowledged: row.get(4)?,
                }),
                _ => return Err(Trouble::damaged("a cursor of somebody who is no member")),
            }
        }
        Ok(())
    }

    pub(crate) fn read_log(
        &mut self,
        id: ConversationId,
        after: Seq,
        up_to: Seq,
        limit: u32,
        bytes_max: usize,
    ) -> Result<Vec<Entry>, Trouble> {
        let mut page = Vec::new();
        let Some(resident) = self.resident(id)? else { return Ok(page) };
        let (after, up_to) = (after.0.max(resident.trimmed), up_to.0.min(resident.head).min(SEQ_MAX));
        if after >= up_to || limit == 0 {
            return Ok(page);
        }
        let bounds = (rows::place(resident.number, after + 1), rows::place(resident.number, up_to));
        let mut found = self.statements().page.query(bounds)?;
        let (mut bytes, mut expected) = (0, Seq(after + 1));
        while let Some(row) = found.next()? {
            let entry = rows::entry(row)?;
            if entry.seq != expected {
                break;
            }
            let length = match &entry.body {
                Body::Message { payload, .. } => payload.len(),
                Body::Change(_) => 0,
            };
            if !page.is_empty() && bytes + length > bytes_max {
                return Ok(page);
            }
            bytes += length;
            expected = expected.next();
            page.push(entry);
            if page.len() == limit as usize {
                return Ok(page);
            }
        }
        // Every place from the first kept one to the head has an entry; a log with a hole is not served (S2, D4).
        if expected != Seq(up_to + 1) {
            return Err(Trouble::damaged(format!("conversation {id} has no entry {expected}")));
        }
        Ok(page)
    }

    pub(crate) fn list_pending(&mut self, device: DeviceKey) -> Result<Vec<PendingRecord>, Trouble> {
        self.write_moves()?;
        let mut found = self.statements().pending.query((device.user.0, device.device.0))?;
        let mut pending = Vec::new();
        while let Some(row) = found.next()? {
            pending.push(PendingRecord {
                conversation: rows::conversation_id(row, 0)?,
                cursor: rows::seq(row, 1)?,
                head: rows::seq(row, 2)?,
            });
        }
        Ok(pending)
    }

    pub(crate) fn list_conversations(
        &mut self,
        user: UserId,
        receipts_members_max: usize,
    ) -> Result<Vec<ConversationListing>, Trouble> {
        self.write_moves()?;
        let statements = self.statements();
        let mut found = statements.conversations_of_user.query((user.0,))?;
        let mut conversations = Vec::new();
        while let Some(row) = found.next()? {
            let number: i64 = row.get(0)?;
            let mut members = Vec::new();
            let mut found_members = statements.members_by_arrival.query((number,))?;
            while let Some(row) = found_members.next()? {
                members.push(rows::user_id(row, 0)?);
            }
            let mut receipts = Vec::new();
            if members.len() <= receipts_members_max {
                let mut found_receipts = statements.receipts.query((number,))?;
                while let Some(row) = found_receipts.next()? {
                    let (read, delivered) = (rows::seq(row, 1)?, rows::seq(row, 2)?);
                    receipts.push(Receipt::new(rows::user_id(row, 0)?, delivered, read));
                }
            }
            let summary = ConversationSummary {
                id: rows::conversation_id(row, 1)?,
                kind: rows::kind(row.get(2)?)?,
                members: members.into(),
                head: rows::seq(row, 3)?,
            };
            conversations.push(ConversationListing { summary, receipts });
        }
        Ok(conversations)
    }

    /// Names every device with its number of marks.
    pub(crate) fn devices(&mut self, each: &mut dyn FnMut(DeviceKey, u32)) -> Result<(), Trouble> {
        let mut found = self.statements().devices.query(())?;
        while let Some(row) = found.next()? {
            each(DeviceKey { user: rows::user_id(row, 0)?, device: rows::device(row, 1)? }, row.get(2)?);
        }
        Ok(())
    }
}
