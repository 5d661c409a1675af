// Frames and payloads as text: what `throng.v1.json` puts on the socket. Knows no connection and no page.

export const SUBPROTOCOL = "throng.v1.json";

/** One command as the server reads it. */
export function encodeCommand(id, verb, fields) {
  return JSON.stringify({ id, [verb]: fields });
}

/** The objects of one text frame, in order. A line that is no JSON object is dropped: the server never sends one. */
export function decodeFrame(text) {
  const items = [];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    try {
      const item = JSON.parse(line);
      if (item !== null && typeof item === "object" && !Array.isArray(item)) items.push(item);
    } catch {
      // Nothing sensible can be done about half an object; the next frame stands on its own.
    }
  }
  return items;
}

/** What a decoded object is: a reply (it has our id), a push, or nothing we know. */
export function classify(item) {
  const { id, ...rest } = item;
  const [name] = Object.keys(rest);
  if (name === undefined) return { kind: "unknown" };
  if (name === "error") return { kind: "error", id: id ?? null, error: rest.error };
  if (id !== undefined) return { kind: "reply", id, verb: name, body: rest[name] };
  return { kind: "push", name, body: rest[name] };
}

/** Base64 of the UTF-8 JSON that this page uses as its payload. */
export function encodePayload(content) {
  const bytes = new TextEncoder().encode(JSON.stringify(content));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** The content of a payload; `{ text: null }` when another kind of client made it. */
export function decodePayload(base64) {
  try {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const content = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (typeof content?.text !== "string") return { text: null, name: null };
    return { text: content.text, name: typeof content.name === "string" ? content.name : null };
  } catch {
    return { text: null, name: null };
  }
}

/** A random version 4 UUID, also on pages that are no secure context (a phone on the local network). */
export function newClientId(crypto = globalThis.crypto) {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
