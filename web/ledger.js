// One conversation as this device sees it: the order of entries, the cursor, ticks and what is unread.
// Pure: it is told what happened and asked what follows. Knows no storage, no connection, no page.
//
// `entries` is sorted by seq and holds each seq once. `cursor` is how far this device has everything: it moves only
// over entries it holds, or over places the server no longer keeps. It is null until the server's first push tells
// where this device starts, because our own message may be answered before earlier ones have arrived.

/** Entries kept per conversation; older ones are dropped from this page's memory and storage. */
export const ENTRIES_MAX = 500;

export class Conversation {
  constructor(id, saved = {}) {
    this.id = id;
    this.kind = saved.kind ?? null;
    this.members = saved.members ?? [];
    this.entries = saved.entries ?? [];
    this.cursor = saved.cursor ?? null;
    this.receipts = saved.receipts ?? {};
    this.gone = saved.gone ?? false;
    // What we have told the server on this connection; forgotten with it, because a lost `recv` must be repeated.
    this.toldRecv = 0;
    this.toldRead = 0;
  }

  /** What must survive a reload. */
  saved() {
    const { kind, members, entries, cursor, receipts, gone } = this;
    return { kind, members, entries, cursor, receipts, gone };
  }

  newConnection() {
    this.toldRecv = 0;
    this.toldRead = 0;
  }

  /** What `GET /v1/conversations` says. */
  describe({ kind, members, receipts }) {
    this.kind = kind ?? this.kind;
    if (Array.isArray(members)) this.members = members.map((m) => (typeof m === "string" ? m : m.user));
    if (Array.isArray(receipts)) for (const receipt of receipts) this.receipt(receipt);
    this.gone = false;
  }

  /** An entry the server pushed. True when it is new to us. */
  pushed(entry) {
    if (this.cursor === null) this.cursor = entry.seq - 1;
    const isNew = this.#insert(entry);
    this.#advance();
    return isNew;
  }

  /** Our own message, committed at `seq`. True when it is new to us (it may have been pushed before the reply). */
  committed(entry) {
    const isNew = this.#insert(entry);
    this.#advance();
    return isNew;
  }

  /** Where entries are missing between the cursor and what we hold: ask `sync` after this place. Null when nowhere. */
  gap() {
    if (this.cursor === null || this.head() <= this.cursor) return null;
    return this.cursor;
  }

  /** A page of `sync` that was asked after `after`. What it leaves out before its last entry is no longer kept. */
  page(after, { messages, more }) {
    let added = 0;
    for (const entry of messages) if (this.#insert(entry)) added += 1;
    const covered = more && messages.length > 0 ? messages[messages.length - 1].seq : this.head();
    if (this.cursor !== null && after <= this.cursor && covered > this.cursor) this.cursor = covered;
    this.#advance();
    return added;
  }

  /** The last place we hold an entry for, 0 when there is none. */
  head() {
    return this.entries.length === 0 ? 0 : this.entries[this.entries.length - 1].seq;
  }

  #insert(entry) {
    let at = this.entries.length;
    while (at > 0 && this.entries[at - 1].seq > entry.seq) at -= 1;
    if (at > 0 && this.entries[at - 1].seq === entry.seq) return false;
    this.entries.splice(at, 0, entry);
    if (this.entries.length > ENTRIES_MAX) this.entries.splice(0, this.entries.length - ENTRIES_MAX);
    return true;
  }

  #advance() {
    if (this.cursor === null) return;
    let at = this.entries.length;
    while (at > 0 && this.entries[at - 1].seq > this.cursor) at -= 1;
    for (; at < this.entries.length && this.entries[at].seq === this.cursor + 1; at += 1) this.cursor += 1;
  }

  /** The `recv` that is due, or null. Call it only after `saved()` is safe. */
  dueRecv() {
    if (this.cursor === null || this.cursor <= this.toldRecv || this.cursor === 0) return null;
    this.toldRecv = this.cursor;
    return this.cursor;
  }

  /** The `read` that is due now that somebody looks at the conversation, or null. */
  dueRead(me) {
    const seq = this.cursor;
    if (seq === null || seq <= this.toldRead || seq <= this.#readBy(me)) return null;
    // Our own words need no reading; a log that ends in them is read as far as the last other entry.
    const last = this.entries.findLast((e) => e.seq <= seq && e.from !== me);
    if (last === undefined || last.seq <= this.toldRead || last.seq <= this.#readBy(me)) return null;
    this.toldRead = last.seq;
    return last.seq;
  }

  /** What a `receipt` push says; cumulative, so it never moves back. */
  receipt({ user, delivered = 0, read = 0 }) {
    const before = this.receipts[user] ?? { delivered: 0, read: 0 };
    this.receipts[user] = {
      delivered: Math.max(before.delivered, delivered),
      read: Math.max(before.read, read),
    };
  }

  #readBy(user) {
    return this.receipts[user]?.read ?? 0;
  }

  /** "sent" | "delivered" | "read" for a committed entry of ours: what all the other members have reached. */
  tick(entry, me) {
    const others = this.members.filter((member) => member !== me);
    if (others.length === 0) return "sent";
    if (others.every((member) => this.#readBy(member) >= entry.seq)) return "read";
    if (others.every((member) => (this.receipts[member]?.delivered ?? 0) >= entry.seq)) return "delivered";
    return "sent";
  }

  /** Messages of others after what we have read. */
  unread(me) {
    const read = this.#readBy(me);
    return this.entries.filter((e) => e.seq > read && e.from !== me && e.system === undefined).length;
  }

  /** Read up to here as far as this page is concerned, without waiting for the server's word. */
  readUpTo(me, seq) {
    this.receipt({ user: me, read: seq });
  }
}

/** A pushed or synced message in the form we keep. */
export function entryOf(message, decodePayload) {
  const { seq, from, device, ts, client_id } = message;
  if (message.system !== undefined) return { seq, from, ts, system: message.system };
  return { seq, from, device, ts, client_id, ...decodePayload(message.payload) };
}

/**
 * What was typed and not yet answered, in order. One message per conversation is in flight, so that a refusal of
 * one never lets a later one overtake it.
 */
export class Outbox {
  constructor(saved = []) {
    this.items = saved.map((item) => ({ ...item, state: item.state === "failed" ? "failed" : "waiting" }));
  }

  saved() {
    return this.items;
  }

  add(item) {
    this.items.push({ ...item, state: "waiting" });
  }

  of(conv) {
    return this.items.filter((item) => item.conv === conv);
  }

  find(clientId) {
    return this.items.find((item) => item.client_id === clientId);
  }

  /** The items that may go out now: the first of each conversation, unless it is in flight or refused. */
  due() {
    const seen = new Set();
    const due = [];
    for (const item of this.items) {
      if (item.state === "failed" || seen.has(item.conv)) continue;
      seen.add(item.conv);
      if (item.state === "waiting") due.push(item);
    }
    return due;
  }

  /** The connection is gone: whatever was in flight is sent again later under the same client id. */
  newConnection() {
    for (const item of this.items) if (item.state === "sending") item.state = "waiting";
  }

  remove(clientId) {
    this.items = this.items.filter((item) => item.client_id !== clientId);
  }
}
