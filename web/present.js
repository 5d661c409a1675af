// From what is known to what is shown: a conversation, the outbox and the names become rows for the view. Pure.

import { systemText } from "./names.js";

const UNREADABLE = "A message this page cannot read";

/** The row of a conversation in the list. */
export function summary(conversation, { outbox, names, me, openId }) {
  const waiting = outbox.of(conversation.id).at(-1);
  const last = waiting ?? conversation.entries.at(-1);
  return {
    key: conversation.id,
    title: names.title(conversation, me),
    last: lastWords(last, last === waiting, { names, me }),
    ts: last?.ts,
    unread: conversation.unread(me),
    chosen: conversation.id === openId,
  };
}

function lastWords(last, isWaiting, { names, me }) {
  if (last === undefined) return "No messages yet";
  if (last.system !== undefined) return systemText(last.system, names, me);
  return (isWaiting || last.from === me ? "You: " : "") + (last.text ?? UNREADABLE);
}

/** Newest first; those without a message by title. */
export function byRecency(a, b) {
  return (b.ts ?? 0) - (a.ts ?? 0) || a.title.localeCompare(b.title);
}

/** The open conversation: the log in its order, then what still waits to be part of it. */
export function detail(conversation, { outbox, names, me }) {
  const group = conversation.kind === "group";
  const committed = conversation.entries.map((entry) => entryRow(entry, conversation, { group, names, me }));
  const known = new Set(committed.map((row) => row.key));
  const waiting = outbox.of(conversation.id).map(waitingRow);
  return {
    id: conversation.id,
    title: names.title(conversation, me),
    detail: group ? `${conversation.members.length} members` : "direct conversation",
    gone: conversation.gone,
    rows: [...committed, ...waiting.filter((row) => !known.has(row.key))],
  };
}

function entryRow(entry, conversation, { group, names, me }) {
  const { seq, ts, from } = entry;
  if (entry.system !== undefined) {
    return { key: `seq ${seq}`, kind: "system", text: systemText(entry.system, names, me), ts, seq };
  }
  const mine = from === me;
  return {
    // The key of a message of ours stays the same from the outbox to the log.
    key: mine ? `id ${entry.client_id}` : `seq ${seq}`,
    text: entry.text ?? UNREADABLE,
    unreadable: entry.text === null,
    from: group && !mine ? names.of(from) : undefined,
    fromId: from,
    mine,
    ts,
    seq,
    tick: mine ? conversation.tick(entry, me) : undefined,
  };
}

function waitingRow(item) {
  return {
    key: `id ${item.client_id}`,
    text: item.text,
    mine: true,
    ts: item.ts,
    tick: item.state === "failed" ? "failed" : "waiting",
    trouble: item.trouble,
    clientId: item.client_id,
  };
}
