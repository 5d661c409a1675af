import assert from "node:assert/strict";
import { test } from "node:test";
import { classify, decodeFrame, decodePayload, encodeCommand, encodePayload, newClientId } from "../wire.js";

test("a command is one JSON object with the id and one verb", () => {
  assert.equal(encodeCommand(7, "ping", {}), '{"id":7,"ping":{}}');
});

test("a frame holds several objects, and a broken line costs only itself", () => {
  const items = decodeFrame('{"id":1,"ping":{}}\n{"message":{"seq":2}}\n{"half\n\n3\n[4]\n{"caught_up":{}}');
  assert.deepEqual(items, [{ id: 1, ping: {} }, { message: { seq: 2 } }, { caught_up: {} }]);
});

test("replies, errors and pushes are told apart", () => {
  assert.deepEqual(classify({ id: 3, send: { seq: 9 } }), { kind: "reply", id: 3, verb: "send", body: { seq: 9 } });
  assert.deepEqual(classify({ id: 3, error: { code: 2003 } }), { kind: "error", id: 3, error: { code: 2003 } });
  assert.deepEqual(classify({ error: { code: 1001 } }), { kind: "error", id: null, error: { code: 1001 } });
  assert.deepEqual(classify({ receipt: { read: 1 } }), { kind: "push", name: "receipt", body: { read: 1 } });
  assert.deepEqual(classify({ id: 3 }), { kind: "unknown" });
});

test("a payload is base64 of UTF-8 JSON", () => {
  // printf '{"text":"h\xc3\xa9","name":"Al"}' | base64
  assert.equal(encodePayload({ text: "hé", name: "Al" }), "eyJ0ZXh0IjoiaMOpIiwibmFtZSI6IkFsIn0=");
  assert.deepEqual(decodePayload("eyJ0ZXh0IjoiaMOpIiwibmFtZSI6IkFsIn0="), { text: "hé", name: "Al" });
});

test("text beyond the basic plane survives", () => {
  const text = "🎉 ‮ mixed 漢字\nline";
  assert.equal(decodePayload(encodePayload({ text, name: "x" })).text, text);
});

test("what another kind of client sent is not text", () => {
  for (const payload of ["", "AAAA", "/////w==", btoa("{}"), btoa('{"text":5}'), btoa("null"), "not base64!"]) {
    assert.deepEqual(decodePayload(payload), { text: null, name: null }, payload);
  }
  assert.deepEqual(decodePayload(btoa('{"text":"a","name":7}')), { text: "a", name: null });
});

test("a client id is a version 4 UUID", () => {
  const zeros = { getRandomValues: (bytes) => bytes.fill(0) };
  assert.equal(newClientId(zeros), "00000000-0000-4000-8000-000000000000");
  const ones = { getRandomValues: (bytes) => bytes.fill(255) };
  assert.equal(newClientId(ones), "ffffffff-ffff-4fff-bfff-ffffffffffff");
});
