// Names of people and words for system entries. A server that relays ciphertext knows no names: this page learns them
// from what was typed into it and from the payloads it reads.

/** Names compare without regard to case and outer space, and are what the development token is made for. */
export function normalName(text) {
  return text.trim().toLowerCase().replace(/\s+/g, " ");
}

/** Several names in one field, separated by commas; each once. */
export function splitNames(text) {
  return [...new Set(text.split(",").map(normalName).filter((name) => name !== ""))];
}

export function displayName(name) {
  return name.replace(/(^|[\s-])(\p{L})/gu, (_, before, letter) => before + letter.toUpperCase());
}

export function initials(name) {
  const words = name.trim().split(/\s+/);
  return (words[0][0] + (words.length > 1 ? words[words.length - 1][0] : "")).toUpperCase();
}

/** One of eight hues, the same for the same id on every page. */
export function hueOf(id) {
  let sum = 0;
  for (const c of id) sum = (sum * 31 + c.codePointAt(0)) >>> 0;
  return sum % 8;
}

export class Names {
  #map;

  constructor(saved = {}) {
    this.#map = new Map(Object.entries(saved));
  }

  saved() {
    return Object.fromEntries(this.#map);
  }

  /** True when that is news. */
  learn(user, name) {
    const normal = normalName(name ?? "").slice(0, 64);
    if (normal === "" || this.#map.get(user) === normal) return false;
    this.#map.set(user, normal);
    return true;
  }

  of(user) {
    const name = this.#map.get(user);
    return name === undefined ? `user ${user.slice(0, 8)}` : displayName(name);
  }

  /** What a conversation is called by `me`. */
  title(conversation, me) {
    const others = conversation.members.filter((member) => member !== me);
    if (others.length === 0) return conversation.members.length === 0 ? "New conversation" : "Only you";
    return others.map((member) => this.of(member)).join(", ");
  }
}

const EVENTS = {
  created: (who, by) => `${by} began the conversation with ${who}`,
  added: (who, by) => `${by} added ${who}`,
  removed: (who, by) => `${by} removed ${who}`,
  left: (who) => `${who} left`,
};

/** A system entry in words; the bare event for kinds that this page does not know. */
export function systemText({ event = "changed", users = [], by }, names, me) {
  const called = (user) => (user === me ? "you" : names.of(user));
  const others = event === "created" ? users.filter((user) => user !== by) : users;
  const words = EVENTS[event]?.(others.map(called).join(", "), by === undefined ? "somebody" : called(by));
  const text = words ?? event.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
