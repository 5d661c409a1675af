// The document: shows what it is told and reports what somebody does. Knows no network and decides nothing.

import { hueOf, initials } from "./names.js";

const $ = (id) => document.getElementById(id);

const TICKS = {
  waiting: { label: "waiting for a connection", paths: ["M10 3.2v4l2.6 1.6", "M10 1a5.5 5.5 0 1 0 .01 0z"] },
  sent: { label: "sent", paths: ["M5 7l3.2 3.4L15 3"] },
  delivered: { label: "delivered", paths: ["M1.5 7l3.2 3.4L11 3", "M8.6 9.6l.8.8L16.5 3"] },
  read: { label: "read", paths: ["M1.5 7l3.2 3.4L11 3", "M8.6 9.6l.8.8L16.5 3"] },
  failed: { label: "not sent", paths: ["M10 2.5v5", "M10 10.2v.3"] },
};

function element(tag, { className = "", text, ...attributes } = {}, ...children) {
  const node = document.createElement(tag);
  if (className !== "") node.className = className;
  if (text !== undefined) node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function tickElement(tick) {
  const { label, paths } = TICKS[tick];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", `tick ${tick}`);
  svg.setAttribute("viewBox", "0 0 18 13");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  for (const d of paths) {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", d);
    svg.append(path);
  }
  return svg;
}

function showAvatar(node, id, name) {
  node.className = `avatar hue-${hueOf(id)}`;
  node.textContent = initials(name);
}

function clock(ts) {
  return new Date(ts).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

function day(ts) {
  const date = new Date(ts);
  if (date.toDateString() === new Date().toDateString()) return "Today";
  return date.toLocaleDateString([], { weekday: "long", day: "numeric", month: "long" });
}

/** A short form for the list: the time today, the date before. */
function when(ts) {
  if (ts === undefined) return "";
  return day(ts) === "Today" ? clock(ts) : new Date(ts).toLocaleDateString([], { day: "numeric", month: "short" });
}

/**
 * Make the children of `list` those of `items`, reusing nodes by key, so that a screen reader hears only what is new
 * and the scroll position stays.
 */
function reconcile(list, items, make, update) {
  const nodes = new Map(Array.from(list.children, (node) => [node.dataset.key, node]));
  let at = list.firstElementChild;
  for (const item of items) {
    let node = nodes.get(item.key);
    nodes.delete(item.key);
    if (node === undefined) {
      node = make(item);
      node.dataset.key = item.key;
    }
    if (node === at) at = at.nextElementSibling;
    else list.insertBefore(node, at);
    update(node, item);
  }
  for (const node of nodes.values()) node.remove();
}

function makeConversation(on) {
  return ({ key }) => {
    const button = element("button", { className: "conversation", type: "button" });
    button.append(
      element("span", { className: "avatar", "aria-hidden": "true" }),
      element("span", { className: "title" }),
      element("span", { className: "when" }),
      element("span", { className: "last" }),
    );
    button.addEventListener("click", () => on.open(key));
    return element("li", {}, button);
  };
}

function updateConversation(node, { title, face, last, ts, unread, chosen }) {
  const button = node.firstElementChild;
  button.setAttribute("aria-current", String(chosen));
  showAvatar(button.querySelector(".avatar"), face, title);
  button.querySelector(".title").textContent = title;
  button.querySelector(".last").textContent = last;
  button.querySelector(".when").textContent = when(ts);
  const badge = button.querySelector(".unread");
  if (unread === 0) badge?.remove();
  else if (badge === null) button.append(unreadBadge(unread));
  else badge.replaceWith(unreadBadge(unread));
}

function unreadBadge(unread) {
  return element("span", { className: "unread", text: String(unread), "aria-label": `${unread} unread` });
}

function makeMessage(on) {
  return ({ kind, text, unreadable, from, fromId, mine, ts, clientId }) => {
    if (kind === "day") return element("li", { className: "day", text });
    if (kind === "system") return element("li", { className: "message system", text });
    const node = element("li", { className: mine ? "message mine" : "message" });
    if (from !== undefined) {
      const hue = `from hue-${hueOf(fromId)}`;
      node.append(element("div", { className: hue, text: from }));
    }
    const words = element("div", { className: unreadable ? "words unreadable" : "words", text });
    const meta = element("div", { className: "meta" }, element("time", { text: clock(ts) }));
    node.append(words, meta);
    if (clientId !== undefined) node.dataset.clientId = clientId;
    node.addEventListener("click", (event) => {
      const action = event.target.dataset?.action;
      if (action === "retry") on.retry(clientId);
      if (action === "discard") on.discard(clientId);
    });
    return node;
  };
}

function updateMessage(node, { tick, trouble, seq }) {
  if (seq !== undefined) node.dataset.seq = seq;
  if (tick === undefined || node.dataset.tick === tick) return;
  node.dataset.tick = tick;
  node.classList.toggle("failed", tick === "failed");
  const meta = node.querySelector(".meta");
  meta.replaceChildren(meta.querySelector("time"), tickElement(tick));
  if (tick === "failed") {
    meta.prepend(element("span", { text: `Not sent: ${trouble}` }));
    meta.append(
      element("button", { type: "button", text: "Try again", "data-action": "retry" }),
      element("button", { type: "button", text: "Discard", "data-action": "discard" }),
    );
  }
}

/** `on` has: enter(name), leave(), create(text), open(id), back(), send(text), retry(id), discard(id), banner(). */
export class View {
  #on;
  #openId = null;

  constructor(on) {
    this.#on = on;
    for (const button of document.querySelectorAll(".choice")) {
      button.addEventListener("click", () => on.enter(button.dataset.name));
    }
    this.#form("name-form", "name", (text) => on.enter(text));
    this.#form("new-form", "new-names", (text) => on.create(text));
    this.#form("send-form", "text", (text) => on.send(text));
    $("leave").addEventListener("click", () => on.leave());
    $("back").addEventListener("click", () => on.back());
    $("banner-button").addEventListener("click", () => on.banner());
    $("text").addEventListener("keydown", (event) => {
      // While an input method composes, Enter chooses a word.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      $("send-form").requestSubmit();
    });
  }

  #form(id, field, use) {
    $(id).addEventListener("submit", (event) => {
      event.preventDefault();
      const text = $(field).value;
      if (text.trim() === "") return;
      use(text);
      if (field !== "name") $(field).value = "";
      if (field === "text") $(field).focus();
    });
  }

  page(name) {
    document.body.dataset.page = name;
    $("welcome").hidden = name !== "welcome";
    $("chat").hidden = name === "welcome";
  }

  me({ name, user, device }) {
    $("me-name").textContent = name;
    $("me-device").textContent = `device ${device}`;
    showAvatar($("me-avatar"), user, name);
  }

  error(where, text) {
    const node = $(where === "welcome" ? "welcome-error" : "new-error");
    node.textContent = text ?? "";
    node.hidden = text === undefined;
  }

  /** `state` is also put on the body, for whoever styles or tests the page. */
  connection(state, banner) {
    document.body.dataset.connection = state;
    $("banner").hidden = banner === null;
    $("banner-text").textContent = banner?.text ?? "";
    $("banner-button").hidden = banner?.button === undefined;
    $("banner-button").textContent = banner?.button ?? "";
  }

  conversations(items) {
    reconcile($("conversations"), items, makeConversation(this.#on), updateConversation);
    $("none-yet").hidden = items.length > 0;
    const unread = items.reduce((sum, item) => sum + item.unread, 0);
    document.title = unread > 0 ? `(${unread}) throng` : "throng";
  }

  /** The open conversation, or null. */
  conversation(open) {
    $("nothing-open").hidden = open !== null;
    for (const id of ["pane-head", "messages", "send-form"]) $(id).hidden = open === null;
    const list = $("messages");
    if (open === null) {
      this.#openId = null;
      list.replaceChildren();
      return;
    }
    const another = open.id !== this.#openId;
    this.#openId = open.id;
    if (another) list.replaceChildren();
    const atEnd = another || list.scrollHeight - list.scrollTop - list.clientHeight < 80;
    $("pane-title").textContent = open.title;
    $("pane-detail").textContent = open.detail;
    showAvatar($("pane-avatar"), open.face, open.title);
    $("text").disabled = open.gone;
    $("text").placeholder = open.gone ? "You are no longer a member" : "Message";
    reconcile(list, this.#withDays(open.rows), makeMessage(this.#on), updateMessage);
    if (atEnd) list.scrollTop = list.scrollHeight;
    if (another) $("text").focus({ preventScroll: true });
  }

  #withDays(rows) {
    const out = [];
    let last = null;
    for (const row of rows) {
      const label = day(row.ts);
      if (label !== last) out.push({ key: `day ${row.key}`, kind: "day", text: label });
      last = label;
      out.push(row);
    }
    return out;
  }
}
