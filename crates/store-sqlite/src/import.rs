//! Many users and conversations at once.
//!
//! Owns the fast way in: one row after the other in the order of asking, with nothing read back. Who asks in the order of the ids fills
//! the trees from one side, page after page.

use model::{Seq, Wall};
use store::{Imported, ImportedConversation, ImportedUser};

use crate::execute::Tables;
use crate::rows::{self, Columns};
use crate::trouble::Trouble;

impl Tables {
    pub(crate) fn import(
        &mut self,
        users: &[ImportedUser],
        conversations: &[ImportedConversation],
        ts: Wall,
    ) -> Result<Imported, Trouble> {
        let mut imported = Imported::default();
        for user in users {
            self.import_user(user, ts, &mut imported)?;
        }
        for conversation in conversations {
            self.import_conversation(conversation, ts, &mut imported)?;
        }
        Ok(imported)
    }

    fn import_user(
        &mut self,
        wanted: &ImportedUser,
        ts: Wall,
        imported: &mut Imported,
    ) -> Result<(), Trouble> {
        let (user, device, ts) = (wanted.device.user.0, wanted.device.device.0, ts.0 as i64);
        let statements = self.statements();
        if statements.put_user.execute((user, wanted.phone.0 as i64, ts))? == 0 {
            let there: bool = statements.has_number.query_row((user,), |row| row.get(0))?;
            *(if there { &mut imported.users_there } else { &mut imported.phones_taken }) += 1;
            return Ok(());
        }
        imported.users += 1;
        if statements.put_first_device.execute((user, device, ts))? == 1 {
            imported.devices.push(wanted.device);
        }
        Ok(())
    }

    fn import_conversation(
        &mut self,
        wanted: &ImportedConversation,
        ts: Wall,
        imported: &mut Imported,
    ) -> Result<(), Trouble> {
        let ImportedConversation { conversation, kind, members } = wanted;
        let (statements, connection) = self.prepared.parts();
        if statements.import_conversation.execute((conversation.0, rows::kind_code(*kind)))? == 0 {
            imported.conversations_there += 1;
            return Ok(());
        }
        let number = connection.last_insert_rowid();
        let bytes: Vec<u8> = members.iter().flat_map(|user| user.0).collect();
        let entry = Columns::created(members[0], &bytes);
        let (first, ts) = (Seq(1).0, ts.0 as i64);
        statements.put_entry.execute((
            rows::place(number, first),
            ts,
            entry.kind,
            entry.user.0,
            entry.device,
            entry.name,
            entry.body,
        ))?;
        for user in members {
            statements.put_member.execute((number, user.0, first as i64))?;
            statements.start_imported.execute((number, user.0))?;
        }
        imported.conversations += 1;
        Ok(())
    }
}
