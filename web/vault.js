// What survives a reload, per user and device, in the browser's local storage. Knows keys and text, not meaning.

const PREFIX = "throng/1";

export class Vault {
  #storage;
  #base;

  constructor(storage, user, device) {
    this.#storage = storage;
    this.#base = `${PREFIX}/${user}/${device}/`;
  }

  /** Everything stored under a kind ("conv"), as [id, value] pairs. What cannot be read is left out. */
  all(kind) {
    const start = `${this.#base}${kind}/`;
    const found = [];
    for (let i = 0; i < this.#storage.length; i += 1) {
      const key = this.#storage.key(i);
      if (!key.startsWith(start)) continue;
      const value = this.#parse(key);
      if (value !== undefined) found.push([key.slice(start.length), value]);
    }
    return found;
  }

  get(kind, id, otherwise) {
    return this.#parse(`${this.#base}${kind}/${id}`) ?? otherwise;
  }

  /** False when the browser has no room: then nothing may be acknowledged. */
  put(kind, id, value) {
    try {
      this.#storage.setItem(`${this.#base}${kind}/${id}`, JSON.stringify(value));
      return true;
    } catch {
      return false;
    }
  }

  #parse(key) {
    try {
      return JSON.parse(this.#storage.getItem(key)) ?? undefined;
    } catch {
      return undefined;
    }
  }
}

/** Values that belong to the browser profile, not to one device. */
export class Profile {
  #storage;

  constructor(storage) {
    this.#storage = storage;
  }

  get(name, otherwise) {
    try {
      return JSON.parse(this.#storage.getItem(`${PREFIX}/${name}`)) ?? otherwise;
    } catch {
      return otherwise;
    }
  }

  put(name, value) {
    try {
      this.#storage.setItem(`${PREFIX}/${name}`, JSON.stringify(value));
    } catch {
      // Only conveniences are kept here.
    }
  }
}
