// Puts the page together: one person, one device, one link, the conversations and the outbox.

import { claimDevice } from "./device.js";
import { Conversation, entryOf, Outbox } from "./ledger.js";
import { Link, LinkClosed, WireError } from "./link.js";
import { displayName, Names, normalName, splitNames } from "./names.js";
import { byRecency, detail, summary } from "./present.js";
import { Profile, Vault } from "./vault.js";
import { View } from "./view.js";
import { decodePayload, encodePayload, newClientId, SUBPROTOCOL } from "./wire.js";

/** A token this close to its end is not worth connecting with. */
const TOKEN_MARGIN_MS = 30_000;
/** How long a gap may last before it is asked for: the missing entry may be in our own outbox. */
const GAP_PATIENCE_MS = 1_000;
const SYNC_LIMIT = 100;
/** A temporary refusal that names no time to come back. */
const RETRY_DEFAULT_MS = 1_000;

const STOPPED = {
  replaced: { text: "Opened elsewhere: this device is connected in another tab or window.", button: "Use it here" },
  revoked: { text: "This session was revoked.", button: "Try again" },
  unauthorised: { text: "The server does not accept our token.", button: "Try again" },
};

const tab = new Profile(sessionStorage);
const profile = new Profile(localStorage);

/** A JSON request to the server; rejects with the title or detail of its problem document. */
async function request(method, path, body, token) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (token !== undefined) headers.Authorization = `Bearer ${token}`;
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.detail ?? answer.title ?? `the server answered ${response.status}`);
  return answer;
}

class App {
  #view;
  #me = null;
  #token = null;
  #vault = null;
  #link = null;
  #names = new Names(profile.get("names", {}));
  #conversations = new Map();
  #outbox = new Outbox();
  #openId = null;
  #changed = new Set();
  #gapTimers = new Map();
  #historyAsked = new Set();
  #listing = null;
  #storageFull = false;
  #linkState = { state: "idle", why: {} };

  constructor() {
    this.#view = new View({
      enter: (name) => this.enter(normalName(name)),
      leave: () => this.#leave(),
      create: (text) => this.#create(splitNames(text)),
      open: (id) => this.#open(id),
      back: () => this.#back(),
      send: (text) => this.#compose(text),
      retry: (id) => this.#retry(id),
      discard: (id) => this.#discard(id),
      banner: () => this.#bannerPressed(),
    });
    document.addEventListener("visibilitychange", () => this.#looked());
    addEventListener("focus", () => this.#looked());
    addEventListener("online", () => this.#link?.nudge());
    addEventListener("offline", () => this.#link?.nudge());
  }

  // ---- who we are ------------------------------------------------------------------------------------------------

  async enter(name) {
    if (this.#me !== null || name === "") return;
    try {
      const device = await claimDevice({ name, tab, profile });
      this.#me = { name, device, user: null };
      await this.#getToken(true);
    } catch (error) {
      this.#me = null;
      this.#view.error("welcome", `Cannot enter: ${error.message}.`);
      return;
    }
    tab.put("name", name);
    this.#learn(this.#me.user, name);
    this.#load();
    this.#view.me({ ...this.#me, name: displayName(name) });
    this.#view.page("list");
    this.#render();
    this.#link = new Link({
      open: () => new WebSocket(new URL("/v1/socket", location.href.replace(/^http/, "ws")), [SUBPROTOCOL]),
      token: (fresh) => this.#getToken(fresh),
      on: {
        state: (state, why) => this.#linkChanged(state, why),
        ready: () => this.#ready(),
        push: (kind, body) => this.#pushed(kind, body),
        settled: () => this.#settled(),
      },
    });
    this.#link.start();
  }

  #leave() {
    this.#link.stop();
    tab.put("name", null);
    location.hash = "";
    location.reload();
  }

  #load() {
    this.#vault = new Vault(localStorage, this.#me.user, this.#me.device);
    for (const [id, saved] of this.#vault.all("conv")) this.#conversations.set(id, new Conversation(id, saved));
    this.#outbox = new Outbox(this.#vault.get("outbox", "all", []));
    const open = tab.get("open");
    if (this.#conversations.has(open)) this.#openId = open;
    if (this.#openId !== null) this.#view.page("conversation");
  }

  async #getToken(fresh) {
    if (!fresh && this.#token !== null && this.#token.expires_at - Date.now() > TOKEN_MARGIN_MS) {
      return this.#token.token;
    }
    const { name, device } = this.#me;
    this.#token = await request("POST", "/dev/token", { user: name, device });
    this.#me.user = this.#token.user;
    return this.#token.token;
  }

  async #refreshToken() {
    try {
      await this.#link.command("refresh", { token: await this.#getToken(true) });
    } catch {
      // The session ends when the old token does; coming back then fetches another.
    }
  }

  // ---- the link --------------------------------------------------------------------------------------------------

  #linkChanged(state, why) {
    if (this.#linkState.state === "online") this.#outbox.newConnection();
    this.#linkState = { state, why };
    this.#showConnection();
    this.#render();
  }

  #showConnection() {
    const { state, why } = this.#linkState;
    let banner = null;
    if (state === "stopped") {
      banner = STOPPED[why.reason] ?? { text: `The server closed the connection: ${why.reason}.`, button: "Try again" };
    } else if (state === "waiting") {
      banner = { text: "Reconnecting… What you write is kept and sent later.", button: "Now" };
    } else if (state === "opening") {
      banner = { text: "Connecting…" };
    } else if (this.#storageFull) {
      banner = { text: "This browser has no room left, so new messages stay unacknowledged." };
    }
    this.#view.connection(state, banner);
  }

  #bannerPressed() {
    if (this.#link.state === "stopped") this.#link.start();
    else this.#link.nudge();
  }

  #ready() {
    for (const conversation of this.#conversations.values()) conversation.newConnection();
    this.#historyAsked.clear();
    this.#outbox.newConnection();
    this.#pump();
    this.#list();
    if (this.#openId !== null) this.#history(this.#conversations.get(this.#openId));
  }

  #pushed(kind, body) {
    if (kind === "message") this.#message(body);
    else if (kind === "receipt") this.#receipt(body);
    else if (kind === "conversation") this.#list();
    else if (kind === "token_expiring") this.#refreshToken();
  }

  #message(message) {
    // A passing message has no place in the log; this page has no use for one.
    if (message.seq === undefined) return;
    const conversation = this.#conversation(message.conv);
    const entry = entryOf(message, decodePayload);
    conversation.pushed(entry);
    if (entry.name) this.#learn(entry.from, entry.name);
    // Our own message may come back as a push when the connection broke before its reply.
    if (entry.from === this.#me.user && this.#outbox.find(entry.client_id)) this.#sent(entry.client_id);
    this.#changed.add(conversation);
    if (entry.system !== undefined) this.#list();
  }

  #receipt(receipt) {
    const conversation = this.#conversation(receipt.conv);
    conversation.receipt(receipt);
    this.#changed.add(conversation);
  }

  /** After every frame: store, then acknowledge, then show. */
  #settled() {
    if (this.#changed.size === 0) return;
    for (const conversation of this.#changed) {
      if (!this.#save(conversation)) continue;
      this.#tell("recv", conversation, conversation.dueRecv());
      this.#readIfSeen(conversation);
      this.#watchGap(conversation);
    }
    this.#changed.clear();
    this.#render();
  }

  #save(conversation) {
    const saved = this.#vault.put("conv", conversation.id, conversation.saved());
    if (saved === this.#storageFull) {
      this.#storageFull = !saved;
      this.#showConnection();
    }
    return saved;
  }

  #tell(verb, conversation, seq) {
    if (seq === null) return;
    this.#link.command(verb, { conv: conversation.id, seq }).catch((error) => {
      if (error.name === "not_member") this.#list();
    });
  }

  #seen(conversation) {
    return (
      conversation.id === this.#openId &&
      document.visibilityState === "visible" &&
      document.body.dataset.page === "conversation"
    );
  }

  #readIfSeen(conversation) {
    if (!this.#seen(conversation) || this.#link.state !== "online") return;
    const seq = conversation.dueRead(this.#me.user);
    if (seq === null) return;
    conversation.readUpTo(this.#me.user, seq);
    this.#save(conversation);
    this.#tell("read", conversation, seq);
  }

  /** Somebody looks at the page again. */
  #looked() {
    if (this.#link === null || document.visibilityState !== "visible") return;
    if (this.#link.state === "waiting") this.#link.nudge();
    const conversation = this.#conversations.get(this.#openId);
    if (conversation === undefined) return;
    this.#readIfSeen(conversation);
    this.#render();
  }

  // ---- what is missing -------------------------------------------------------------------------------------------

  #watchGap(conversation) {
    if (conversation.gap() === null || this.#gapTimers.has(conversation.id)) return;
    const timer = setTimeout(() => {
      this.#gapTimers.delete(conversation.id);
      this.#fill(conversation);
    }, GAP_PATIENCE_MS);
    this.#gapTimers.set(conversation.id, timer);
  }

  async #fill(conversation) {
    try {
      for (let after = conversation.gap(); after !== null; after = conversation.gap()) {
        await this.#page(conversation, after);
      }
    } catch {
      // Closed or refused: the next push notices the gap again.
    }
  }

  /** What is still kept from before this device came, asked for once when a conversation is opened. */
  async #history(conversation) {
    if (conversation === undefined || this.#historyAsked.has(conversation.id)) return;
    const first = conversation.entries[0]?.seq ?? Infinity;
    if (this.#link?.state !== "online" || first === 1 || conversation.entries.length > SYNC_LIMIT) return;
    this.#historyAsked.add(conversation.id);
    try {
      const end = Math.min(first - 1, conversation.listedHead ?? 0);
      await this.#page(conversation, Math.max(0, end - SYNC_LIMIT));
    } catch {
      // Only a convenience.
    }
  }

  async #page(conversation, after) {
    const page = await this.#link.command("sync", { conv: conversation.id, after, limit: SYNC_LIMIT });
    const messages = page.messages.map((message) => entryOf(message, decodePayload));
    for (const entry of messages) if (entry.name) this.#learn(entry.from, entry.name);
    conversation.page(after, { messages, more: page.more });
    this.#changed.add(conversation);
    this.#settled();
  }

  // ---- conversations ---------------------------------------------------------------------------------------------

  /** The conversation, made when it is new to us. */
  #conversation(id) {
    let conversation = this.#conversations.get(id);
    if (conversation === undefined) {
      conversation = new Conversation(id);
      this.#conversations.set(id, conversation);
      this.#list();
    }
    return conversation;
  }

  /** Ask which conversations we are in; a question that comes up while one is under way is asked after it. */
  #list() {
    if (this.#listing !== null) {
      this.#listing.again = true;
      return;
    }
    this.#listing = { again: false };
    this.#listOnce().then(() => {
      const { again } = this.#listing;
      this.#listing = null;
      if (again) this.#list();
    });
  }

  async #listOnce() {
    const before = new Set(this.#conversations.keys());
    let answer;
    try {
      answer = await request("GET", "/v1/conversations", undefined, await this.#getToken(false));
    } catch {
      // Asked again with the next connection.
      return;
    }
    const listed = Array.isArray(answer) ? answer : (answer.conversations ?? []);
    for (const description of listed) {
      before.delete(description.id);
      this.#describe(description);
    }
    for (const id of before) {
      const conversation = this.#conversations.get(id);
      conversation.gone = true;
      this.#save(conversation);
    }
    this.#render();
  }

  #describe(description) {
    let conversation = this.#conversations.get(description.id);
    if (conversation === undefined) {
      conversation = new Conversation(description.id);
      this.#conversations.set(description.id, conversation);
    }
    conversation.describe(description);
    conversation.listedHead = description.head;
    this.#save(conversation);
    return conversation;
  }

  async #create(names) {
    this.#view.error("new");
    const others = names.filter((name) => name !== this.#me.name);
    if (others.length === 0) {
      this.#view.error("new", "Name somebody other than yourself.");
      return;
    }
    try {
      const members = [];
      for (const name of others) {
        const { user } = await request("POST", "/dev/resolve", { name });
        this.#learn(user, name);
        members.push(user);
      }
      const kind = members.length === 1 ? "direct" : "group";
      const token = await this.#getToken(false);
      const description = await request("POST", "/v1/conversations", { kind, members }, token);
      this.#describe(description);
      this.#open(description.id);
    } catch (error) {
      this.#view.error("new", `Cannot start it: ${error.message}.`);
    }
  }

  #open(id) {
    this.#openId = id;
    tab.put("open", id);
    this.#view.page("conversation");
    const conversation = this.#conversations.get(id);
    this.#readIfSeen(conversation);
    this.#history(conversation);
    this.#render();
  }

  #back() {
    this.#openId = null;
    tab.put("open", null);
    this.#view.page("list");
    this.#render();
  }

  // ---- what we say -----------------------------------------------------------------------------------------------

  #compose(text) {
    this.#outbox.add({ client_id: newClientId(), conv: this.#openId, text: text.trim(), ts: Date.now() });
    this.#saveOutbox();
    this.#render();
    this.#pump();
  }

  #saveOutbox() {
    this.#vault.put("outbox", "all", this.#outbox.saved());
  }

  #pump() {
    if (this.#link?.state !== "online") return;
    for (const item of this.#outbox.due()) {
      item.state = "sending";
      this.#transmit(item);
    }
  }

  async #transmit(item) {
    // The payload must be the same bytes each time, so it is made from what the outbox keeps and nothing else.
    const payload = encodePayload({ text: item.text, name: displayName(this.#me.name) });
    try {
      const { seq, ts } = await this.#link.command("send", { conv: item.conv, client_id: item.client_id, payload });
      const { user, device } = this.#me;
      const conversation = this.#conversation(item.conv);
      conversation.committed({ seq, from: user, device, ts, client_id: item.client_id, text: item.text });
      this.#changed.add(conversation);
      this.#settled();
      this.#sent(item.client_id);
      this.#render();
    } catch (error) {
      this.#refused(item, error);
    }
    this.#pump();
  }

  #sent(clientId) {
    this.#outbox.remove(clientId);
    this.#saveOutbox();
  }

  #refused(item, error) {
    if (error instanceof LinkClosed) return;
    if (error instanceof WireError && error.temporary) {
      setTimeout(() => {
        if (item.state === "sending") item.state = "waiting";
        this.#pump();
      }, error.retryAfterMs || RETRY_DEFAULT_MS);
      return;
    }
    item.state = "failed";
    item.trouble = error.message;
    this.#saveOutbox();
    this.#render();
  }

  #retry(clientId) {
    const item = this.#outbox.find(clientId);
    if (item === undefined) return;
    item.state = "waiting";
    this.#saveOutbox();
    this.#render();
    this.#pump();
  }

  #discard(clientId) {
    this.#sent(clientId);
    this.#render();
  }

  // ---- what is shown ---------------------------------------------------------------------------------------------

  #learn(user, name) {
    if (this.#names.learn(user, name)) profile.put("names", { ...profile.get("names", {}), ...this.#names.saved() });
  }

  #render() {
    if (this.#vault === null) return;
    const context = { outbox: this.#outbox, names: this.#names, me: this.#me.user, openId: this.#openId };
    const rows = [...this.#conversations.values()].map((conversation) => summary(conversation, context));
    this.#view.conversations(rows.sort(byRecency));
    const open = this.#conversations.get(this.#openId);
    this.#view.conversation(open === undefined ? null : detail(open, context));
  }
}

const app = new App();
const name = normalName(decodeURIComponent(location.hash.slice(1))) || tab.get("name");
if (name) app.enter(name);
