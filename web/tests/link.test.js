import assert from "node:assert/strict";
import { test } from "node:test";
import { afterClose, Link, LinkClosed, OPENING_MAX_MS, pick, PONG_MAX_MS, WireError } from "../link.js";

/** A clock that stands still until told. */
class Clock {
  time = 0;
  #timers = new Set();

  now() {
    return this.time;
  }

  after(ms, fn) {
    const timer = { at: this.time + ms, fn };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  pass(ms) {
    const end = this.time + ms;
    for (;;) {
      const next = [...this.#timers].filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers.delete(next);
      this.time = next.at;
      next.fn();
    }
    this.time = end;
  }
}

class Socket {
  sent = [];
  closedWith = null;

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close(code) {
    this.closedWith = code;
  }

  says(...items) {
    this.onmessage({ data: items.map((item) => JSON.stringify(item)).join("\n") });
  }
}

/** A link over fakes, with a log of what it reported. */
function harness({ random = () => 0, token = async () => "t" } = {}) {
  const clock = new Clock();
  const sockets = [];
  const log = [];
  const link = new Link({
    open: () => {
      sockets.push(new Socket());
      return sockets.at(-1);
    },
    token: async (fresh) => {
      log.push(fresh ? "fresh token" : "token");
      return token(fresh);
    },
    on: {
      state: (state, detail) => log.push(detail.reason ? `${state} ${detail.reason}` : state),
      ready: () => log.push("ready"),
      push: (name) => log.push(`push ${name}`),
      settled: () => log.push("settled"),
    },
    clock,
    random,
  });
  return { link, clock, sockets, log, last: () => sockets.at(-1) };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
const CONNECTED = { session: "s", user: "u", device: 1, server_time: 0, ping_ms: 60_000, reconnect_ms: [1000, 5000] };

async function online(h) {
  h.link.start();
  await turn();
  h.last().onopen();
  h.last().says({ id: h.last().sent[0].id, connect: CONNECTED });
}

test("connect goes first, and pushes in the frame of its reply find the link online", async () => {
  const h = harness();
  h.link.start();
  await turn();
  h.last().onopen();
  assert.deepEqual(h.last().sent, [{ id: 1, connect: { token: "t" } }]);
  h.last().says({ id: 1, connect: CONNECTED }, { message: { seq: 1 } });
  assert.deepEqual(h.log, ["opening", "token", "online", "ready", "push message", "settled"]);
});

test("a reply reaches its command, an error reply rejects it", async () => {
  const h = harness();
  await online(h);
  const sent = h.link.command("send", { a: 1 });
  const refused = h.link.command("send", { a: 2 });
  const [, first, second] = h.last().sent;
  h.last().says({ id: second.id, error: { code: 2003, name: "not_member", message: "no", temporary: false } });
  h.last().says({ id: first.id, send: { seq: 8 } });
  assert.deepEqual(await sent, { seq: 8 });
  await assert.rejects(refused, (e) => e instanceof WireError && e.name === "not_member" && !e.temporary);
});

test("after a break it comes back within the server's window, and commands in flight are given up", async () => {
  const h = harness({ random: () => 0.5 });
  await online(h);
  const command = h.link.command("send", {});
  h.last().onclose({ code: 1006 });
  await assert.rejects(command, LinkClosed);
  assert.equal(h.link.state, "waiting");
  h.clock.pass(2999);
  assert.equal(h.sockets.length, 1);
  h.clock.pass(1);
  await turn();
  assert.equal(h.sockets.length, 2);
});

test("the window of a disconnect push wins over that of connect", async () => {
  const h = harness();
  await online(h);
  h.last().says({ disconnect: { code: 4501, reason: "draining", reconnect: true, after_ms: [200, 300] } });
  h.last().onclose({ code: 4501 });
  h.clock.pass(200);
  await turn();
  assert.equal(h.sockets.length, 2);
});

test("waiting doubles while it fails, starts small again after a success", async () => {
  const h = harness();
  await online(h);
  h.last().onclose({ code: 1006 });
  for (const ms of [1000, 2000, 4000]) {
    h.clock.pass(ms - 1);
    await turn();
    assert.equal(h.link.state, "waiting", `before ${ms}`);
    h.clock.pass(1);
    await turn();
    assert.equal(h.link.state, "opening", `after ${ms}`);
    h.last().onclose({ code: 1006 });
  }
  h.link.nudge();
  await turn();
  h.last().onopen();
  h.last().says({ id: h.last().sent[0].id, connect: CONNECTED });
  h.last().onclose({ code: 1006 });
  h.clock.pass(1000);
  assert.equal(h.link.state, "opening");
});

test("what comes back and what does not", () => {
  const window = [1000, 5000];
  const after = (code, attempt = 0, unauthorised = 0) => afterClose({ code, attempt, unauthorised, window });
  for (const code of [1001, 1006, 1011, 4429, 4500, 4501, 4503, 4504, 4505]) {
    assert.deepEqual(after(code), { kind: "again", freshToken: false, window }, String(code));
  }
  for (const code of [1000, 1002, 1003, 1007, 1008, 1009, 4400, 4403, 4408, 4409, 4410]) {
    assert.equal(after(code).kind, "stop", String(code));
  }
  assert.deepEqual(after(4401), { kind: "again", freshToken: true, window: [0, 0] });
  assert.deepEqual(after(4401, 1, 1), { kind: "stop", reason: "unauthorised" });
  assert.deepEqual(after(1006, 30).window, [30_000, 30_000]);
});

test("an unauthorised close tries a fresh token once", async () => {
  const h = harness();
  await online(h);
  h.last().onclose({ code: 4401 });
  h.clock.pass(0);
  await turn();
  h.last().onopen();
  h.last().onclose({ code: 4401 });
  assert.deepEqual(h.log.slice(-4), ["waiting", "opening", "fresh token", "stopped unauthorised"]);
});

test("replaced by another connection stops, and can be started again", async () => {
  const h = harness();
  await online(h);
  h.last().onclose({ code: 4409 });
  assert.equal(h.log.at(-1), "stopped replaced");
  h.clock.pass(100_000);
  assert.equal(h.sockets.length, 1);
  h.link.start();
  await turn();
  assert.equal(h.sockets.length, 2);
});

test("a silent connection is questioned and then given up", async () => {
  const h = harness();
  await online(h);
  h.clock.pass(90_000);
  assert.deepEqual(Object.keys(h.last().sent.at(-1)), ["id", "ping"]);
  h.last().says({ id: h.last().sent.at(-1).id, ping: {} });
  h.clock.pass(PONG_MAX_MS + 1);
  assert.equal(h.link.state, "online");
  h.clock.pass(90_000);
  assert.equal(h.link.state, "waiting");
  assert.equal(h.sockets[0].closedWith, 4000);
});

test("a socket that never opens is given up", async () => {
  const h = harness();
  h.link.start();
  await turn();
  h.clock.pass(OPENING_MAX_MS);
  assert.equal(h.link.state, "waiting");
});

test("a token that cannot be had counts as a failed attempt", async () => {
  let fail = true;
  const h = harness({
    token: async () => {
      if (fail) throw new Error("unreachable");
      return "t";
    },
  });
  h.link.start();
  await turn();
  assert.equal(h.link.state, "waiting");
  fail = false;
  h.clock.pass(500);
  await turn();
  assert.equal(h.sockets.length, 1);
});

test("events of a socket that was left are not taken for the present one's", async () => {
  const h = harness();
  await online(h);
  const old = h.last();
  old.onclose({ code: 1006 });
  h.link.nudge();
  await turn();
  old.onclose({ code: 4409 });
  old.onmessage({ data: '{"message":{}}' });
  assert.equal(h.link.state, "opening");
  assert.equal(h.log.includes("push message"), false);
});

test("commands without a connection are refused at once", async () => {
  const h = harness();
  await assert.rejects(h.link.command("ping", {}), LinkClosed);
});

test("leaving closes and stays away", async () => {
  const h = harness();
  await online(h);
  h.link.stop();
  assert.equal(h.last().closedWith, 1000);
  h.clock.pass(100_000);
  assert.equal(h.sockets.length, 1);
});

test("a moment is picked between both ends of the window", () => {
  assert.equal(pick([1000, 5000], () => 0), 1000);
  assert.equal(pick([1000, 5000], () => 0.25), 2000);
  assert.equal(pick([1000, 5000], () => 0.9999), 5000);
});
