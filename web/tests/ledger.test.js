import assert from "node:assert/strict";
import { test } from "node:test";
import { Conversation, ENTRIES_MAX, entryOf, Outbox } from "../ledger.js";

const ME = "me";
const BOB = "bob";
const CAROL = "carol";

const theirs = (seq) => ({ seq, from: BOB, ts: seq, client_id: `c${seq}`, text: `t${seq}` });
const mine = (seq) => ({ ...theirs(seq), from: ME });
const seqs = (conversation) => conversation.entries.map((e) => e.seq);

test("pushes in order move the cursor, and repeats change nothing", () => {
  const c = new Conversation("x");
  assert.equal(c.pushed(theirs(1)), true);
  assert.equal(c.pushed(theirs(2)), true);
  assert.equal(c.pushed(theirs(1)), false);
  assert.deepEqual(seqs(c), [1, 2]);
  assert.equal(c.dueRecv(), 2);
  assert.equal(c.dueRecv(), null);
});

test("a device that begins at the head starts its cursor with the first push", () => {
  const c = new Conversation("x");
  c.pushed(theirs(41));
  assert.equal(c.cursor, 41);
});

test("our own message, answered first, does not acknowledge what has not arrived", () => {
  const c = new Conversation("x");
  c.committed(mine(4));
  assert.equal(c.dueRecv(), null);
  c.pushed(theirs(2));
  assert.equal(c.dueRecv(), 2);
  c.pushed(theirs(3));
  assert.equal(c.dueRecv(), 4, "our own entry at 4 closes the row");
  assert.deepEqual(seqs(c), [2, 3, 4]);
});

test("our own message that is pushed and answered is there once", () => {
  const c = new Conversation("x");
  assert.equal(c.pushed(mine(1)), true);
  assert.equal(c.committed(mine(1)), false);
  assert.deepEqual(seqs(c), [1]);
});

test("a gap stops the cursor until sync fills it", () => {
  const c = new Conversation("x");
  c.pushed(theirs(1));
  c.pushed(theirs(4));
  assert.equal(c.dueRecv(), 1);
  assert.equal(c.gap(), 1);
  assert.equal(c.page(1, { messages: [theirs(2), theirs(3), theirs(4)], more: false }), 2);
  assert.equal(c.gap(), null);
  assert.equal(c.dueRecv(), 4);
});

test("what the server no longer keeps is passed over, but only as far as the page reaches", () => {
  const c = new Conversation("x");
  c.pushed(theirs(1));
  c.pushed(theirs(9));
  c.page(1, { messages: [theirs(5)], more: true });
  assert.equal(c.cursor, 5);
  assert.equal(c.gap(), 5);
  c.page(5, { messages: [theirs(9)], more: false });
  assert.equal(c.cursor, 9);
});

test("a page of history from before the first push acknowledges nothing", () => {
  const c = new Conversation("x");
  c.page(0, { messages: [theirs(1), theirs(2)], more: false });
  assert.equal(c.dueRecv(), null);
  assert.deepEqual(seqs(c), [1, 2]);
});

test("an acknowledgement lost with its connection is repeated on the next", () => {
  const c = new Conversation("x");
  c.pushed(theirs(1));
  assert.equal(c.dueRecv(), 1);
  c.newConnection();
  c.pushed(theirs(1));
  assert.equal(c.dueRecv(), 1);
});

test("ticks need every other member, and never go back", () => {
  const c = new Conversation("x", { members: [ME, BOB, CAROL] });
  const entry = mine(3);
  c.committed(entry);
  assert.equal(c.tick(entry, ME), "sent");
  c.receipt({ user: BOB, delivered: 3, read: 3 });
  assert.equal(c.tick(entry, ME), "sent");
  c.receipt({ user: CAROL, delivered: 3, read: 0 });
  assert.equal(c.tick(entry, ME), "delivered");
  c.receipt({ user: CAROL, delivered: 3, read: 3 });
  assert.equal(c.tick(entry, ME), "read");
  c.receipt({ user: CAROL, delivered: 1, read: 1 });
  assert.equal(c.tick(entry, ME), "read");
});

test("a conversation of one has nobody to deliver to", () => {
  const c = new Conversation("x", { members: [ME] });
  assert.equal(c.tick(mine(1), ME), "sent");
});

test("unread counts the messages of others after what was read", () => {
  const c = new Conversation("x");
  c.pushed({ seq: 1, from: undefined, ts: 1, system: { event: "created", users: [] } });
  c.pushed(theirs(2));
  c.pushed(theirs(3));
  c.committed(mine(4));
  assert.equal(c.unread(ME), 2);
  assert.equal(c.dueRead(ME), 3, "our own last message is not read by us");
  c.readUpTo(ME, 3);
  assert.equal(c.unread(ME), 0);
  assert.equal(c.dueRead(ME), null);
});

test("what another of our devices has read is read here too", () => {
  const c = new Conversation("x");
  c.pushed(theirs(1));
  c.pushed(theirs(2));
  c.receipt({ user: ME, delivered: 2, read: 1 });
  assert.equal(c.unread(ME), 1);
  c.receipt({ user: ME, delivered: 2, read: 2 });
  assert.equal(c.unread(ME), 0);
  assert.equal(c.dueRead(ME), null);
});

test("read never runs ahead of what this device has", () => {
  const c = new Conversation("x");
  c.pushed(theirs(1));
  c.pushed(theirs(5));
  assert.equal(c.dueRead(ME), 1);
});

test("a saved conversation comes back as it was", () => {
  const c = new Conversation("x");
  c.describe({ kind: "direct", members: [ME, BOB] });
  c.pushed(theirs(1));
  c.receipt({ user: BOB, delivered: 1, read: 1 });
  const back = new Conversation("x", JSON.parse(JSON.stringify(c.saved())));
  assert.deepEqual(back.saved(), c.saved());
  assert.equal(back.pushed(theirs(1)), false);
});

test("old entries go first when there are too many, and the cursor stays", () => {
  const c = new Conversation("x");
  for (let seq = 1; seq <= ENTRIES_MAX + 5; seq += 1) c.pushed(theirs(seq));
  assert.equal(c.entries.length, ENTRIES_MAX);
  assert.equal(c.entries[0].seq, 6);
  assert.equal(c.cursor, ENTRIES_MAX + 5);
});

test("any order of arrival gives the same log", () => {
  const seed = Number(process.env.THRONG_SEED ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`THRONG_SEED=${seed}`);
  let state = seed;
  const random = (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  for (let round = 0; round < 200; round += 1) {
    const c = new Conversation("x", { cursor: 0 });
    const left = Array.from({ length: 20 }, (_, i) => i + 1);
    while (left.length > 0) {
      const [seq] = left.splice(random(left.length), 1);
      const insert = () => (seq % 3 === 0 ? c.committed(mine(seq)) : c.pushed(theirs(seq)));
      insert();
      if (random(4) === 0) assert.equal(insert(), false);
      const holes = left.length > 0 ? Math.min(...left) - 1 : 20;
      assert.equal(c.cursor, holes, "the cursor stands before the first missing entry");
    }
    assert.deepEqual(seqs(c), Array.from({ length: 20 }, (_, i) => i + 1));
  }
});

test("a pushed message becomes an entry, a change becomes a system entry", () => {
  const decode = (payload) => ({ text: payload, name: null });
  assert.deepEqual(
    entryOf({ conv: "x", seq: 2, from: BOB, device: 4, ts: 9, client_id: "c", payload: "p" }, decode),
    { seq: 2, from: BOB, device: 4, ts: 9, client_id: "c", text: "p", name: null },
  );
  const system = { event: "left", users: [BOB], by: BOB };
  assert.deepEqual(entryOf({ conv: "x", seq: 3, ts: 9, system }, decode).system, system);
});

test("one message per conversation is in flight, in the order typed", () => {
  const outbox = new Outbox();
  outbox.add({ client_id: "1", conv: "a" });
  outbox.add({ client_id: "2", conv: "a" });
  outbox.add({ client_id: "3", conv: "b" });
  assert.deepEqual(outbox.due().map((i) => i.client_id), ["1", "3"]);
  outbox.find("1").state = "sending";
  assert.deepEqual(outbox.due().map((i) => i.client_id), ["3"]);
  outbox.remove("1");
  assert.deepEqual(outbox.due().map((i) => i.client_id), ["2", "3"]);
});

test("what was in flight when the connection broke goes out again under its id", () => {
  const outbox = new Outbox();
  outbox.add({ client_id: "1", conv: "a" });
  outbox.find("1").state = "sending";
  outbox.newConnection();
  assert.deepEqual(outbox.due().map((i) => i.client_id), ["1"]);
  outbox.find("1").state = "sending";
  const reloaded = new Outbox(JSON.parse(JSON.stringify(outbox.saved())));
  assert.deepEqual(reloaded.due().map((i) => i.client_id), ["1"]);
});

test("a refused message waits for its owner and holds up nobody", () => {
  const outbox = new Outbox();
  outbox.add({ client_id: "1", conv: "a" });
  outbox.add({ client_id: "2", conv: "a" });
  outbox.find("1").state = "failed";
  assert.deepEqual(outbox.due().map((i) => i.client_id), ["2"]);
  const reloaded = new Outbox(JSON.parse(JSON.stringify(outbox.saved())));
  assert.equal(reloaded.find("1").state, "failed");
});
