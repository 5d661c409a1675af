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
    face: face(conversation, me),
    last: lastWords(last, { isWaiting: last === waiting, group: isGroup(conversation), names, me }),
    ts: last?.ts,
    unread: conversation.unread(me),
    chosen: conversation.id === openId,
  };
}

function isGroup(conversation) {
  return conversation.kind === "group";
}

/** Whose colour it has: a direct conversation looks like the other person. */
function face(conversation, me) {
  const others = conversation.members.filter((member) => member !== me);
  return others.length === 1 && !isGroup(conversation) ? others[0] : conversation.id;
}

function lastWords(last, { isWaiting, group, names, me }) {
  if (last === undefined) return "No messages yet";
  if (last.system !== undefined) return systemText(last.system, names, me);
  const words = last.text ?? UNREADABLE;
  if (isWaiting || last.from === me) return `You: ${words}`;
  return group ? `${names.of(last.from)}: ${words}` : words;
}

/** Newest first; those without a message by title. */
export function byRecency(a, b) {
  return (b.ts ?? 0) - (a.ts ?? 0) || a.title.localeCompare(b.title);
}

/** The open conversation: the log in its order, then what still waits to be part of it. */
export function detail(conversation, { outbox, names, me }) {
  const group = isGroup(conversation);
  const committed = conversation.entries.map((entry) => entryRow(entry, conversation, { group, names, me }));
  const known = new Set(committed.map((row) => row.key));
  const waiting = outbox.of(conversation.id).map(waitingRow);
  return {
    id: conversation.id,
    title: names.title(conversation, me),
    face: face(conversation, me),
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
