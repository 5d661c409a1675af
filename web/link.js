// One connection to the server: opening it, matching replies, noticing that it died, coming back at the right time.
// Knows nothing of conversations and nothing of the page; time, chance and the socket are handed in.
//
//   idle ──start──▶ opening ──connect reply──▶ online
//                     ▲  │ closed                 │ closed
//          time is up │  ▼                        ▼
//                    waiting ◀────────────── (code says: come back)
//                                  (code says: do not) ──▶ stopped(reason)

import { classify, decodeFrame, encodeCommand } from "./wire.js";

/** What the window to come back is when the server has never told us one. */
export const WINDOW_DEFAULT = [500, 2000];
/** A window is doubled for every attempt that failed in a row, up to this. */
export const WAIT_MAX_MS = 30_000;
/** How long a reply to our own liveness question may take. */
export const PONG_MAX_MS = 5_000;
/** From opening the socket to the connect reply. */
export const OPENING_MAX_MS = 10_000;

/** An error reply, as the table of the protocol names it. */
export class WireError extends Error {
  constructor({ code = 0, name = "internal", message = "", temporary = false, retry_after_ms = 0 } = {}) {
    super(message || name);
    this.code = code;
    this.name = name;
    this.temporary = temporary;
    this.retryAfterMs = retry_after_ms;
  }
}

/** The connection went away before the reply: whether the command took effect is unknown. */
export class LinkClosed extends Error {}

const TERMINAL = new Map([
  [1000, "closed"],
  [1002, "protocol_error"],
  [1003, "unsupported_data"],
  [1007, "invalid_data"],
  [1008, "policy_violation"],
  [1009, "message_too_big"],
  [4400, "bad_message"],
  [4403, "forbidden"],
  [4408, "connect_timeout"],
  [4409, "replaced"],
  [4410, "revoked"],
]);

/**
 * What to do after a close. `attempt` counts failures in a row, `window` is what the server last said.
 * 4401 is worth one more try, with a new token; a second one in a row is not.
 */
export function afterClose({ code, attempt, unauthorised, window }) {
  if (TERMINAL.has(code)) return { kind: "stop", reason: TERMINAL.get(code) };
  if (code === 4401) {
    return unauthorised > 0
      ? { kind: "stop", reason: "unauthorised" }
      : { kind: "again", freshToken: true, window: [0, 0] };
  }
  const factor = 2 ** Math.min(attempt, 10);
  const [min, max] = window.map((ms) => Math.min(ms * factor, WAIT_MAX_MS));
  return { kind: "again", freshToken: false, window: [min, max] };
}

/** A moment in the window: uniformly at random, so that a crowd does not come back as one. */
export function pick([min, max], random) {
  return Math.round(min + (max - min) * random());
}

/** Timers of the host, cancellable. */
export const hostClock = {
  now: () => Date.now(),
  after(ms, fn) {
    const timer = setTimeout(fn, ms);
    return () => clearTimeout(timer);
  },
};

export class Link {
  #open;
  #token;
  #clock;
  #random;
  #on;
  #socket = null;
  #generation = 0;
  #nextId = 1;
  #waiting = new Map();
  #window = WINDOW_DEFAULT;
  #announced = null;
  #attempt = 0;
  #unauthorised = 0;
  #freshToken = false;
  #pingMs = 60_000;
  #cancelTimer = () => {};
  #cancelLiveness = () => {};
  #cancelOpening = () => {};

  /** "idle" | "opening" | "online" | "waiting" | "stopped" */
  state = "idle";

  /**
   * `open()` makes a socket, `token(fresh)` promises a token, `on` has `state(state, detail)`, `ready(reply)`,
   * `push(name, body)` and `settled()`, called once after all
   * that one frame held was handed out.
   */
  constructor({ open, token, on, clock = hostClock, random = Math.random }) {
    this.#open = open;
    this.#token = token;
    this.#on = on;
    this.#clock = clock;
    this.#random = random;
  }

  /** Begin, or begin again after `stopped`. */
  start() {
    if (this.state === "opening" || this.state === "online") return;
    this.#attempt = 0;
    this.#unauthorised = 0;
    this.#dial();
  }

  /** Leave for good. */
  stop() {
    this.#drop(1000);
    this.#enter("idle");
  }

  /** Something suggests that now is a good moment: the network came back, somebody looks at the page. */
  nudge() {
    if (this.state === "waiting") this.#dial();
    else if (this.state === "online") this.#ask();
  }

  /** Send one command; promises the reply's body, or rejects with WireError or LinkClosed. */
  command(verb, fields) {
    if (this.state !== "online") return Promise.reject(new LinkClosed());
    return this.#send(verb, fields);
  }

  #send(verb, fields) {
    return new Promise((resolve, reject) => this.#write(verb, fields, { resolve, reject }));
  }

  #write(verb, fields, waiting) {
    const id = this.#nextId++;
    this.#waiting.set(id, waiting);
    this.#socket.send(encodeCommand(id, verb, fields));
  }

  #enter(state, detail = {}) {
    this.state = state;
    this.#on.state(state, detail);
  }

  async #dial() {
    this.#drop(1000);
    const generation = this.#generation;
    this.#announced = null;
    this.#enter("opening");
    let token;
    try {
      token = await this.#token(this.#freshToken);
    } catch {
      if (generation === this.#generation) this.#closed(1006);
      return;
    }
    if (generation !== this.#generation) return;
    this.#freshToken = false;
    const socket = this.#open();
    this.#socket = socket;
    // A stale socket's events must never be taken for the present one's.
    const mine = (fn) => (event) => generation === this.#generation && fn(event);
    this.#cancelOpening = this.#clock.after(OPENING_MAX_MS, mine(() => this.#fail()));
    socket.onopen = mine(() => this.#connect(token));
    socket.onmessage = mine((event) => this.#frame(event.data));
    socket.onclose = mine((event) => this.#closed(event.code));
    socket.onerror = () => {};
  }

  #connect(token) {
    // Not a promise: pushes may follow in the same frame, and must find us online.
    this.#write("connect", { token }, {
      resolve: (reply) => this.#connected(reply),
      // The close that follows an error reply says what to do next.
      reject: () => {},
    });
  }

  #connected(reply) {
    this.#cancelOpening();
    this.#attempt = 0;
    this.#unauthorised = 0;
    if (Array.isArray(reply.reconnect_ms)) this.#window = reply.reconnect_ms;
    if (reply.ping_ms > 0) this.#pingMs = reply.ping_ms;
    this.#enter("online");
    this.#heard();
    this.#on.ready(reply);
  }

  #frame(data) {
    this.#heard();
    for (const item of decodeFrame(data)) {
      const what = classify(item);
      if (what.kind === "push") this.#pushed(what.name, what.body);
      else if (what.kind === "reply") this.#take(what.id)?.resolve(what.body);
      else if (what.kind === "error") this.#take(what.id)?.reject(new WireError(what.error));
    }
    this.#on.settled();
  }

  #pushed(name, body) {
    if (name === "disconnect") this.#announced = Array.isArray(body.after_ms) ? body.after_ms : null;
    this.#on.push(name, body);
  }

  #take(id) {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }

  /** Bytes came: the connection lives; ask only after a longer silence than the server's own pings leave. */
  #heard() {
    if (this.state !== "online") return;
    this.#cancelLiveness();
    this.#cancelLiveness = this.#clock.after(this.#pingMs * 1.5, () => this.#ask());
  }

  /** Browsers hide the server's pings, so silence is answered with a question of our own. */
  #ask() {
    if (this.state !== "online") return;
    this.#cancelLiveness();
    this.#cancelLiveness = this.#clock.after(PONG_MAX_MS, () => this.#fail());
    this.#send("ping", {}).catch(() => {});
  }

  #fail() {
    this.#drop(4000);
    this.#closed(1006);
  }

  #closed(code) {
    const window = this.#announced ?? this.#window;
    this.#drop(1000);
    const next = afterClose({ code, attempt: this.#attempt, unauthorised: this.#unauthorised, window });
    if (next.kind === "stop") {
      this.#enter("stopped", { reason: next.reason });
      return;
    }
    this.#attempt += 1;
    if (code === 4401) this.#unauthorised += 1;
    this.#freshToken ||= next.freshToken;
    const ms = pick(next.window, this.#random);
    this.#cancelTimer = this.#clock.after(ms, () => this.#dial());
    this.#enter("waiting", { ms });
  }

  /** Forget the present socket and everything that hangs on it. */
  #drop(code) {
    this.#generation += 1;
    this.#cancelTimer();
    this.#cancelLiveness();
    this.#cancelOpening();
    const socket = this.#socket;
    this.#socket = null;
    if (socket !== null) {
      try {
        socket.close(code);
      } catch {
        // It was already closed.
      }
    }
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(new LinkClosed());
  }
}
