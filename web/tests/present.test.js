import assert from "node:assert/strict";
import { test } from "node:test";
import { Conversation, Outbox } from "../ledger.js";
import { displayName, hueOf, initials, Names, normalName, splitNames, systemText } from "../names.js";
import { byRecency, detail, summary } from "../present.js";

const ME = "11111111-0000-4000-8000-000000000000";
const BOB = "22222222-0000-4000-8000-000000000000";
const CAROL = "33333333-0000-4000-8000-000000000000";

function context(more = {}) {
  return { outbox: new Outbox(), names: new Names({ [ME]: "alice", [BOB]: "bob" }), me: ME, openId: null, ...more };
}

test("names are compared without case and outer space", () => {
  assert.equal(normalName("  Bob  Smith "), "bob smith");
  assert.deepEqual(splitNames("Bob, carol,, BOB ,"), ["bob", "carol"]);
  assert.equal(displayName("bob smith-jones"), "Bob Smith-Jones");
  assert.equal(displayName("élodie"), "Élodie");
  assert.equal(initials("bob smith"), "BS");
  assert.equal(initials("Alice"), "A");
});

test("a hue is one of eight and stays the same", () => {
  for (const id of [ME, BOB, CAROL, ""]) {
    assert.ok(hueOf(id) >= 0 && hueOf(id) < 8);
    assert.equal(hueOf(id), hueOf(id));
  }
});

test("somebody without a name is shown by the start of the id", () => {
  const names = new Names();
  assert.equal(names.of(CAROL), "user 33333333");
  assert.equal(names.learn(CAROL, "Carol"), true);
  assert.equal(names.learn(CAROL, "carol"), false);
  assert.equal(names.of(CAROL), "Carol");
  assert.equal(names.learn(CAROL, "  "), false);
});

test("membership changes in words", () => {
  const names = new Names({ [BOB]: "bob", [CAROL]: "carol" });
  const say = (system) => systemText(system, names, ME);
  assert.equal(say({ event: "created", users: [ME, BOB, CAROL], by: ME }), "You began the conversation with Bob, Carol");
  assert.equal(say({ event: "created", users: [ME, BOB], by: BOB }), "Bob began the conversation with you");
  assert.equal(say({ event: "added", users: [CAROL], by: BOB }), "Bob added Carol");
  assert.equal(say({ event: "removed", users: [ME], by: BOB }), "Bob removed you");
  assert.equal(say({ event: "left", users: [CAROL], by: CAROL }), "Carol left");
  assert.equal(say({ event: "missed_call" }), "Missed call");
});

test("a row of the list has the last words, and those still waiting count as last", () => {
  const c = new Conversation("x", { kind: "direct", members: [ME, BOB] });
  const ctx = context();
  assert.equal(summary(c, ctx).last, "No messages yet");
  c.pushed({ seq: 1, from: BOB, ts: 5, client_id: "a", text: "hello" });
  assert.deepEqual(summary(c, ctx), {
    key: "x",
    title: "Bob",
    face: BOB,
    last: "hello",
    ts: 5,
    unread: 1,
    chosen: false,
  });
  c.committed({ seq: 2, from: ME, ts: 6, client_id: "b", text: "hi" });
  assert.equal(summary(c, ctx).last, "You: hi");
  ctx.outbox.add({ client_id: "c", conv: "x", text: "later", ts: 7 });
  assert.equal(summary(c, ctx).last, "You: later");
});

test("the list is newest first", () => {
  const rows = [{ title: "a" }, { title: "b", ts: 1 }, { title: "c", ts: 2 }, { title: "A" }];
  assert.deepEqual(rows.sort(byRecency).map((r) => r.title).slice(0, 2), ["c", "b"]);
});

test("a message keeps its row from the outbox to the log, and is never shown twice", () => {
  const c = new Conversation("x", { kind: "direct", members: [ME, BOB] });
  const ctx = context();
  ctx.outbox.add({ client_id: "a", conv: "x", text: "hi", ts: 1 });
  assert.deepEqual(detail(c, ctx).rows.map((r) => [r.key, r.tick]), [["id a", "waiting"]]);
  c.committed({ seq: 1, from: ME, ts: 2, client_id: "a", text: "hi" });
  assert.deepEqual(detail(c, ctx).rows.map((r) => [r.key, r.tick]), [["id a", "sent"]]);
});

test("a group names the senders, a direct conversation does not", () => {
  const entries = [{ seq: 1, from: BOB, ts: 1, client_id: "a", text: "hi" }];
  const group = new Conversation("x", { kind: "group", members: [ME, BOB, CAROL], entries });
  assert.equal(detail(group, context()).rows[0].from, "Bob");
  assert.equal(detail(group, context()).title, "Bob, user 33333333");
  assert.equal(summary(group, context()).last, "Bob: hi");
  assert.equal(summary(group, context()).face, "x");
  const direct = new Conversation("x", { kind: "direct", members: [ME, BOB], entries });
  assert.equal(detail(direct, context()).rows[0].from, undefined);
});

test("what cannot be read is shown as such", () => {
  const entries = [{ seq: 1, from: BOB, ts: 1, client_id: "a", text: null }];
  const c = new Conversation("x", { kind: "direct", members: [ME, BOB], entries });
  const [row] = detail(c, context()).rows;
  assert.equal(row.unreadable, true);
  assert.match(row.text, /cannot read/);
});
