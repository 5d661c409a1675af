import assert from "node:assert/strict";
import { test } from "node:test";
import { claimDevice } from "../device.js";
import { Profile, Vault } from "../vault.js";

class Storage {
  #map = new Map();
  room = Infinity;

  get length() {
    return this.#map.size;
  }

  key(i) {
    return [...this.#map.keys()][i];
  }

  getItem(key) {
    return this.#map.get(key) ?? null;
  }

  setItem(key, value) {
    if (value.length > this.room) throw new Error("QuotaExceededError");
    this.#map.set(key, value);
  }
}

/** What `navigator.locks` does, for one browser profile; a tab lets go of its locks when it is closed. */
class Locks {
  #held = new Map();

  tab() {
    const mine = new Set();
    return {
      request: async (name, options, use) => {
        if (this.#held.has(name)) {
          if (options.ifAvailable) return use(null);
          throw new Error("AbortError");
        }
        this.#held.set(name, true);
        mine.add(name);
        return use({ name });
      },
      close: () => {
        for (const name of mine) this.#held.delete(name);
      },
    };
  }
}

/** Random device numbers 101, 102, … */
function counter() {
  let next = 100;
  return { getRandomValues: (array) => array.fill((next += 1)) };
}

test("devices and users do not see each other's entries", () => {
  const storage = new Storage();
  const vault = new Vault(storage, "alice", 1);
  vault.put("conv", "x", { a: 1 });
  vault.put("outbox", "all", [1]);
  new Vault(storage, "alice", 11).put("conv", "y", {});
  new Vault(storage, "bob", 1).put("conv", "z", {});
  assert.deepEqual(vault.all("conv"), [["x", { a: 1 }]]);
  assert.deepEqual(new Vault(storage, "alice", 1).get("outbox", "all", []), [1]);
  assert.deepEqual(vault.get("outbox", "none", []), []);
});

test("damaged entries are left out", () => {
  const storage = new Storage();
  const vault = new Vault(storage, "alice", 1);
  vault.put("conv", "x", {});
  storage.setItem(storage.key(0), "{half");
  assert.deepEqual(vault.all("conv"), []);
});

test("a full browser says so", () => {
  const storage = new Storage();
  storage.room = 10;
  const vault = new Vault(storage, "alice", 1);
  assert.equal(vault.put("conv", "x", "short"), true);
  assert.equal(vault.put("conv", "x", "much too long for this"), false);
});

test("a reload keeps the device, a second tab gets another, a later tab takes up a free one", async () => {
  const locks = new Locks();
  const profile = new Profile(new Storage());
  const crypto = counter();
  const claim = (tab, held) => claimDevice({ name: "alice", tab, profile, locks: held, crypto });

  const firstTab = new Profile(new Storage());
  let first = locks.tab();
  assert.equal(await claim(firstTab, first), 101);
  assert.equal(await claim(new Profile(new Storage()), locks.tab()), 102);
  first.close();
  first = locks.tab();
  assert.equal(await claim(firstTab, first), 101, "after a reload");
  first.close();
  assert.equal(await claim(new Profile(new Storage()), locks.tab()), 101, "a tab opened later");
  assert.equal(await claim(firstTab, locks.tab()), 103, "the device went to another tab");
});

test("each name has its own devices", async () => {
  const locks = new Locks();
  const profile = new Profile(new Storage());
  const tab = new Profile(new Storage());
  const crypto = counter();
  const held = locks.tab();
  const alice = await claimDevice({ name: "alice", tab, profile, locks: held, crypto });
  const bob = await claimDevice({ name: "bob", tab, profile, locks: held, crypto });
  assert.notEqual(alice, bob);
  held.close();
  assert.equal(await claimDevice({ name: "alice", tab, profile, locks: locks.tab(), crypto }), alice);
});

test("without locks a tab keeps its own device", async () => {
  const tab = new Profile(new Storage());
  const options = { name: "alice", tab, profile: new Profile(new Storage()), locks: undefined, crypto: counter() };
  // `undefined` would fall back to the host's locks, which a page without a secure context does not have.
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { value: {}, configurable: true });
  try {
    const device = await claimDevice(options);
    assert.equal(await claimDevice(options), device);
  } finally {
    if (before === undefined) delete globalThis.navigator;
    else Object.defineProperty(globalThis, "navigator", before);
  }
});
