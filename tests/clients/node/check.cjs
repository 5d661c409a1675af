#!/usr/bin/env node
// Checks a running throng server by what docs/protocol.md promises, with the `ws` library, in JSON.
//
//   node check.cjs BASE_URL SECRET_FILE      an HS256 secret; or THRONG_TOKEN_COMMAND='throng token --data DIR'
//
// Each check uses people and conversations of its own. One line a check; the first failure ends the run.
"use strict";

const assert = require("node:assert/strict");
const crypto = require("node:crypto");
const fs = require("node:fs");
const { execFileSync } = require("node:child_process");
const { setTimeout: sleep } = require("node:timers/promises");
const WebSocket = require("ws");

/** How long an answer or a push may take before it counts as missing, in milliseconds. */
const PATIENCE = 10_000;

const [base, secretFile = process.env.THRONG_SECRET_FILE] = process.argv.slice(2);
const tokenCommand = process.env.THRONG_TOKEN_COMMAND;
const audience = process.env.THRONG_AUDIENCE ?? "throng";

const checks = [];
const check = (what, run) => checks.push({ what, run });
const opened = [];

// ---- a small client --------------------------------------------------------------------------------------------

class Refused extends Error {
  constructor({ code, name, message, temporary, retry_after_ms }) {
    super(`${code} ${name}: ${message}`);
    Object.assign(this, { code, refusal: name, detail: message, temporary, retryAfterMs: retry_after_ms });
  }
}

function base64url(bytes) {
  return Buffer.from(bytes).toString("base64url");
}

/** The secret itself; a file that is text is taken without its line end. */
function secret() {
  const whole = fs.readFileSync(secretFile);
  return whole.every((byte) => byte < 0x80) ? Buffer.from(whole.toString("ascii").replace(/[\r\n]+$/, "")) : whole;
}

function token(user, device, ttl = 3600) {
  if (!secretFile) {
    const [program, ...fixed] = tokenCommand.split(" ");
    const asked = [...fixed, "--user", user, "--device", String(device), "--ttl", `${ttl}s`];
    return execFileSync(program, asked, { encoding: "utf8" }).trim();
  }
  const now = Math.floor(Date.now() / 1000);
  const claims = { sub: user, dev: device, sid: crypto.randomUUID(), iat: now, exp: now + ttl, aud: audience };
  const signed = `${base64url('{"alg":"HS256","typ":"JWT"}')}.${base64url(JSON.stringify(claims))}`;
  const signature = crypto.createHmac("sha256", secret()).update(signed).digest();
  return `${signed}.${base64url(signature)}`;
}

/** One connection of one device. Pushes wait in order until somebody asks for them. */
class Device {
  #next = 1;
  #replies = new Map();
  #waiting = new Set();
  pushes = [];
  orphans = [];
  closed;

  constructor(socket) {
    this.socket = socket;
    this.closed = new Promise((resolve) => socket.on("close", resolve));
    socket.on("error", () => {});
    socket.on("message", (data, binary) => {
      assert.equal(binary, false, "a binary frame on a JSON connection");
      for (const line of data.toString("utf8").split("\n")) {
        if (line.trim() !== "") this.#take(JSON.parse(line));
      }
      this.#wake();
    });
    socket.on("close", () => {
      for (const { reject } of this.#replies.values()) reject(new Error("closed before the reply"));
      this.#wake();
    });
    opened.push(this);
  }

  static async open({ headers = {}, origin, query = "", protocols = ["throng.v1.json"] } = {}) {
    const url = `${base.replace(/^http/, "ws")}/v1/socket${query}`;
    const socket = new WebSocket(url, protocols, { headers, origin, perMessageDeflate: false });
    const device = new Device(socket);
    await new Promise((resolve, reject) => {
      socket.on("open", resolve);
      socket.on("unexpected-response", (_, response) => {
        socket.terminate();
        reject(Object.assign(new Error("no upgrade"), { status: response.statusCode }));
      });
    });
    return device;
  }

  #take(item) {
    const { id, ...rest } = item;
    const [[name, body]] = Object.entries(rest);
    if (id !== undefined) {
      const { resolve, reject } = this.#replies.get(id);
      this.#replies.delete(id);
      if (name === "error") reject(new Refused(body));
      else resolve(body);
    } else if (name === "error") this.orphans.push(body);
    else this.pushes.push({ name, body });
  }

  #wake() {
    for (const wake of this.#waiting) wake();
  }

  command(verb, fields = {}) {
    const id = this.#next++;
    const reply = new Promise((resolve, reject) => {
      this.#replies.set(id, { resolve, reject });
      setTimeout(() => reject(new Error(`no answer to ${verb}`)), PATIENCE).unref();
    });
    reply.catch(() => {});
    this.socket.send(JSON.stringify({ id, [verb]: fields }));
    return reply;
  }

  async #until(ready, what) {
    const end = Date.now() + PATIENCE;
    for (;;) {
      const found = ready();
      if (found !== undefined) return found;
      if (this.socket.readyState === WebSocket.CLOSED) throw new Error(`closed while waiting for ${what}`);
      const left = end - Date.now();
      if (left <= 0) throw new Error(`no ${what}; there is ${JSON.stringify(this.pushes)}`);
      await new Promise((resolve) => {
        const timer = setTimeout(done, left);
        const waiting = this.#waiting;
        function done() {
          clearTimeout(timer);
          waiting.delete(done);
          resolve();
        }
        waiting.add(done);
      });
    }
  }

  #find(name, wanted) {
    return this.pushes.findIndex(
      (push) => push.name === name && Object.entries(wanted).every(([key, value]) => push.body[key] === value),
    );
  }

  /** The first push of that name with these values, waiting for it if need be. Takes it out of the line. */
  push(name, wanted = {}) {
    return this.#until(
      () => {
        const index = this.#find(name, wanted);
        return index < 0 ? undefined : this.pushes.splice(index, 1)[0].body;
      },
      `push ${name} ${JSON.stringify(wanted)}`,
    );
  }

  async noPush(name, wanted = {}, within = 400) {
    await sleep(within);
    const index = this.#find(name, wanted);
    assert.ok(index < 0, `a push that should not be: ${JSON.stringify(this.pushes[index])}`);
  }

  orphan() {
    return this.#until(() => this.orphans.shift(), "error without an id");
  }

  async close() {
    if (this.socket.readyState === WebSocket.CLOSED) return;
    this.socket.close();
    await this.closed;
  }

  /** Drops the connection without a word. */
  async cut() {
    this.socket.terminate();
    await this.closed;
  }
}

class Person {
  id = crypto.randomUUID();

  token(device, ttl) {
    return token(this.id, device, ttl);
  }

  async device(number = 1, { caughtUp = true } = {}) {
    const device = await Device.open();
    device.welcome = await device.command("connect", { token: this.token(number) });
    if (caughtUp) await device.push("caught_up");
    return device;
  }

  async ask(method, path, body) {
    const answer = await fetch(base + path, {
      method,
      headers: { authorization: `Bearer ${this.token(0)}`, "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === "" ? undefined : JSON.parse(text) };
  }

  async create(kind, ...others) {
    const members = others.map((other) => other.id);
    const { status, body } = await this.ask("POST", "/v1/conversations", { kind, members });
    assert.ok(status === 200 || status === 201, `creating a conversation: ${status} ${JSON.stringify(body)}`);
    return body.id;
  }
}

/** Two people in a direct conversation, one connected device each, nothing pending. */
async function pair() {
  const [alice, bob] = [new Person(), new Person()];
  const [a, b] = [await alice.device(), await bob.device()];
  const conv = await alice.create("direct", bob);
  for (const device of [a, b]) {
    await device.push("message", { conv, seq: 1 });
    await device.command("recv", { conv, seq: 1 });
  }
  return { alice, bob, a, b, conv };
}

const bytes = (text) => Buffer.from(text).toString("base64");
const send = (device, conv, text, client_id = crypto.randomUUID()) =>
  device.command("send", { conv, client_id, payload: bytes(text) });

async function refused(reply, name, code, ...parts) {
  let answer;
  try {
    answer = await reply;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    assert.deepEqual([error.refusal, error.code], [name, code]);
    for (const part of parts) assert.ok(error.detail.includes(part), `${part} is not named in ${error.detail}`);
    return;
  }
  assert.fail(`answered with ${JSON.stringify(answer)}, and not refused as ${name}`);
}

// ---- the checks ------------------------------------------------------------------------------------------------

check("connect says who it is and when to come back", async () => {
  const alice = new Person();
  const { welcome, ...device } = await alice.device(7);
  assert.deepEqual([welcome.user, welcome.device], [alice.id, 7]);
  assert.match(welcome.session, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.ok(Math.abs(welcome.server_time - Date.now()) < 60_000);
  const [low, high] = welcome.reconnect_ms;
  assert.ok(0 <= low && low <= high && welcome.ping_ms > 0);
  assert.equal(device.socket.extensions, "");
});

check("the token may come with the upgrade, and no subprotocol means JSON", async () => {
  const alice = new Person();
  const headers = { authorization: `Bearer ${alice.token(1)}` };
  const device = await Device.open({ headers, protocols: [] });
  assert.equal((await device.command("connect")).user, alice.id);
});

check("a bad token is refused and the connection closed with 4401", async () => {
  const good = new Person().token(1);
  for (const bad of ["", "nonsense", good.slice(0, -8), `${good.slice(0, good.lastIndexOf("."))}.`]) {
    const device = await Device.open();
    await refused(device.command("connect", { token: bad }), "unauthorised", 2001);
    assert.equal(await device.closed, 4401);
    assert.equal((await device.push("disconnect")).reconnect, false);
  }
});

check("upgrades that may not be are refused by status", async () => {
  const alice = new Person();
  const status = async (options) => {
    try {
      await (await Device.open(options)).close();
      return 101;
    } catch (error) {
      return error.status;
    }
  };
  assert.equal(await status({ query: `?token=${alice.token(1)}` }), 400);
  assert.equal(await status({ protocols: ["throng.v1.yaml"] }), 400);
  assert.equal(await status({ origin: "https://evil.example" }), 403);
  assert.equal(await status({ headers: { authorization: "Bearer nonsense" } }), 401);
  assert.equal(await status({ origin: base }), 101);
});

check("a message reaches every other device with its bytes, and the sender gets its place", async () => {
  const { alice, a, b, conv } = await pair();
  const second = await alice.device(2);
  const client_id = crypto.randomUUID();
  const payload = Buffer.from(Array.from({ length: 256 }, (_, index) => index)).toString("base64");
  const { seq, ts } = await a.command("send", { conv, client_id, payload });
  assert.equal(seq, 2);
  for (const device of [b, second]) {
    const expected = { conv, seq, from: alice.id, device: 1, ts, client_id, payload };
    assert.deepEqual(await device.push("message", { conv }), expected);
  }
  await a.noPush("message", { conv });
});

check("recv and read come back to the other side as receipts", async () => {
  const { bob, a, b, conv } = await pair();
  const { seq } = await send(a, conv, "hello");
  await b.push("message", { conv, seq });
  await refused(b.command("read", { conv, seq }), "bad_request", 1001, "read");
  await refused(b.command("recv", { conv, seq: seq + 1 }), "bad_request", 1001, "recv");
  assert.deepEqual(await b.command("recv", { conv, seq }), {});
  await a.push("receipt", { conv, user: bob.id, delivered: seq });
  assert.deepEqual(await b.command("read", { conv, seq }), {});
  await a.push("receipt", { conv, user: bob.id, delivered: seq, read: seq });
});

check("a repeated client_id is stored once, with other bytes refused", async () => {
  const { alice, a, b, conv } = await pair();
  const client_id = crypto.randomUUID();
  const first = await send(a, conv, "once", client_id);
  assert.deepEqual(await send(a, conv, "once", client_id), { ...first, duplicate: true });
  await refused(send(a, conv, "twice", client_id), "client_id_reused", 2006);
  await a.cut();
  const back = await alice.device();
  assert.deepEqual(await send(back, conv, "once", client_id), { ...first, duplicate: true });
  await b.push("message", { conv, seq: first.seq });
  await b.noPush("message", { conv });
});

check("a passing message reaches who is there, has no place and is not kept", async () => {
  const { alice, bob, a, b, conv } = await pair();
  assert.deepEqual(await a.command("send", { conv, passing: true, payload: bytes("now") }), {});
  const { ts, ...message } = await b.push("message", { conv });
  assert.ok(ts > 0);
  assert.deepEqual(message, { conv, from: alice.id, device: 1, payload: bytes("now") });
  await b.close();
  await a.command("send", { conv, passing: true, payload: bytes("missed") });
  const back = await bob.device();
  await back.noPush("message");
});

check("an outsider can do nothing, and cannot tell what exists", async () => {
  const { conv } = await pair();
  const eve = new Person();
  const e = await eve.device();
  for (const place of [conv, crypto.randomUUID()]) {
    await refused(send(e, place, "x"), "not_member", 2003);
    await refused(e.command("recv", { conv: place, seq: 1 }), "not_member", 2003);
    await refused(e.command("sync", { conv: place, after: 0, limit: 1 }), "not_member", 2003);
    const { status, body } = await eve.ask("POST", `/v1/conversations/${place}/members/${eve.id}`);
    assert.deepEqual([status, body.code], [403, 2003]);
  }
});

check("what is wrong with a command is named, and spoils no other", async () => {
  const { a, conv } = await pair();
  await refused(a.command("send", { conv, payload: "" }), "bad_request", 1001, "client_id");
  await refused(a.command("recv", { conv, seq: 0 }), "bad_request", 1001, "seq");
  await refused(a.command("ping", { colour: "red" }), "bad_request", 1001, "colour");
  await refused(a.command("sing"), "unknown_verb", 1003, "sing");
  a.socket.send('{"ping":{}}\nnonsense\n\n{"ping":{}}');
  assert.equal((await a.orphan()).code, 1001);
  assert.deepEqual(await a.command("ping"), {});
  assert.deepEqual(a.orphans, []);
});

check("what was sent to a device that was away is pushed in order, a window at a time", async () => {
  const { bob, a, b, conv } = await pair();
  await b.close();
  const count = 300;
  const sent = await Promise.all(Array.from({ length: count }, (_, index) => send(a, conv, `${index}`)));
  const last = sent.at(-1).seq;
  assert.equal(last, count + 1);
  const back = await bob.device(1, { caughtUp: false });
  for (let index = 0; index < count; index++) {
    if (index === 256) {
      await back.noPush("message");
      await back.noPush("caught_up", {}, 0);
      await back.command("recv", { conv, seq: 257 });
    }
    const message = await back.push("message", { conv });
    assert.deepEqual([message.seq, message.payload], [index + 2, bytes(`${index}`)]);
  }
  await back.push("caught_up");
  // What was not acknowledged comes again.
  await back.cut();
  const again = await bob.device(1, { caughtUp: false });
  assert.equal((await again.push("message", { conv })).seq, 258);
  await again.push("caught_up");
  await again.command("recv", { conv, seq: last });
  await again.close();
  const end = await bob.device();
  await end.noPush("message");
});

check("a first device gets everything since its user became a member, a later one starts at the end", async () => {
  const [alice, bob] = [new Person(), new Person()];
  const a = await alice.device();
  const conv = await alice.create("group", bob);
  const { seq } = await send(a, conv, "waiting");
  const b = await bob.device(1, { caughtUp: false });
  assert.equal((await b.push("message", { conv, seq: 1 })).system.event, "created");
  assert.equal((await b.push("message", { conv })).seq, seq);
  const later = await bob.device(2);
  await later.noPush("message");
});

check("sync gives the log in pages", async () => {
  const [alice, bob] = [new Person(), new Person()];
  const a = await alice.device();
  const conv = await alice.create("group", bob);
  for (let index = 0; index < 5; index++) await send(a, conv, `${index}`);
  const seqs = [];
  for (let after = 0, more = true; more; ) {
    const page = await a.command("sync", { conv, after, limit: 2 });
    assert.equal(page.head, 6);
    seqs.push(...page.messages.map((message) => message.seq));
    after = seqs.at(-1);
    more = page.more;
  }
  assert.deepEqual(seqs, [1, 2, 3, 4, 5, 6]);
});

check("the same device connecting again replaces the older connection", async () => {
  const { bob, a, b, conv } = await pair();
  const { seq } = await send(a, conv, "before");
  const newer = await bob.device(1, { caughtUp: false });
  assert.equal(await b.closed, 4409);
  assert.equal((await b.push("disconnect")).code, 4409);
  await newer.push("message", { conv, seq });
  await newer.push("caught_up");
  assert.equal((await send(a, conv, "after")).seq, seq + 1);
  await newer.push("message", { conv, seq: seq + 1 });
});

check("members come, go and leave, and everybody is told in the log", async () => {
  const [alice, bob, carol] = [new Person(), new Person(), new Person()];
  const [a, b, c] = [await alice.device(), await bob.device(), await carol.device()];
  const conv = await alice.create("group", bob);
  await b.push("conversation", { conv, event: "added" });
  const path = `/v1/conversations/${conv}/members`;
  assert.equal((await alice.ask("POST", `${path}/${carol.id}`)).status, 200);
  await c.push("conversation", { conv, event: "added" });
  for (const device of [a, b, c]) {
    const { system } = await device.push("message", { conv, seq: 2 });
    assert.deepEqual(system, { event: "added", users: [carol.id], by: alice.id });
  }
  assert.equal((await bob.ask("DELETE", `${path}/${carol.id}`)).status, 204);
  await c.push("conversation", { conv, event: "removed" });
  await refused(send(c, conv, "still here?"), "not_member", 2003);
  assert.equal((await bob.ask("DELETE", `${path}/me`)).status, 204);
  const { system } = await a.push("message", { conv, seq: 4 });
  assert.deepEqual(system, { event: "left", users: [bob.id], by: bob.id });
  const { body } = await alice.ask("GET", "/v1/conversations");
  const receipts = [{ user: alice.id, delivered: 0, read: 0 }];
  assert.deepEqual(body.conversations, [{ id: conv, kind: "group", members: [alice.id], head: 4, receipts }]);
  await c.noPush("message", { conv });
});

check("refresh extends the session of the same device and no other", async () => {
  const [alice, bob] = [new Person(), new Person()];
  const a = await alice.device();
  const { expires_at } = await a.command("refresh", { token: alice.token(1, 7200) });
  assert.ok(Math.abs(expires_at - Date.now() - 7_200_000) < 100_000);
  await refused(a.command("refresh", { token: bob.token(1) }), "unauthorised", 2001);
  assert.deepEqual(await a.command("ping"), {});
});

async function main() {
  if (base === undefined || !(secretFile || tokenCommand)) {
    console.error("usage: check.cjs BASE_URL SECRET_FILE");
    return 2;
  }
  let passed = 0;
  for (const { what, run } of checks) {
    try {
      await run();
    } catch (error) {
      console.log(`FAIL node json: ${what}\n     ${error.stack}`);
      console.log(`${passed} passed, 1 failed`);
      return 1;
    }
    await Promise.all(opened.splice(0).map((device) => device.close()));
    passed += 1;
    console.log(`ok   node json: ${what}`);
  }
  console.log(`${passed} passed, 0 failed`);
  return 0;
}

main().then((code) => process.exit(code));
