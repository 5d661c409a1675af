// Somebody in front of the demo page: what they can do with it and what they see.

import assert from "node:assert/strict";

/** What a page may complain about while the server is down or the network is cut. */
const EXPECTED_COMPLAINTS = [
  /WebSocket connection to '.*' failed/,
  /Failed to load resource: net::ERR_(CONNECTION_REFUSED|CONNECTION_RESET|INTERNET_DISCONNECTED|EMPTY_RESPONSE)/,
];

export class Person {
  complaints = [];

  constructor(context, base, name) {
    this.context = context;
    this.base = base;
    this.name = name;
  }

  /** Somebody with a browser profile of their own, on the page and connected. */
  static async enter(browser, base, name, options = {}) {
    const person = new Person(await browser.newContext(options), base, name);
    await person.openPage();
    return person;
  }

  async openPage() {
    this.page = await this.context.newPage();
    this.page.on("console", (message) => {
      if (message.type() === "error") this.#complain(message.text());
    });
    this.page.on("pageerror", (error) => this.#complain(String(error)));
    await this.page.goto(`${this.base}/#${this.name}`);
    await this.connected();
  }

  #complain(text) {
    if (!EXPECTED_COMPLAINTS.some((pattern) => pattern.test(text))) this.complaints.push(text);
  }

  connected() {
    return this.page.waitForSelector('body[data-connection="online"]');
  }

  disconnected() {
    return this.page.waitForSelector('body:not([data-connection="online"])');
  }

  async startConversation(names) {
    await this.page.fill("#new-names", names);
    await this.page.press("#new-names", "Enter");
    await this.page.waitForSelector("#send-form:not([hidden])");
  }

  conversation(title) {
    return this.page.locator(".conversation", { has: this.page.locator(".title", { hasText: title }) });
  }

  open(title) {
    return this.conversation(title).click();
  }

  /** Type and send, as by hand. */
  async say(...texts) {
    for (const text of texts) {
      await this.page.fill("#text", text);
      await this.page.press("#text", "Enter");
    }
  }

  /** Send many at once, faster than by hand. */
  sayAll(texts) {
    return this.page.evaluate((all) => {
      for (const text of all) {
        document.getElementById("text").value = text;
        document.getElementById("send-form").requestSubmit();
      }
    }, texts);
  }

  /** Everything said in the open conversation, in the order shown. */
  words() {
    return this.page.locator("#messages .words").allTextContents();
  }

  /** Waits until the words are these, and no others. */
  async reads(expected) {
    await this.#until(async () => {
      const words = await this.words();
      return words.length >= expected.length && words[words.length - 1] === expected[expected.length - 1];
    });
    assert.deepEqual(await this.words(), expected, `what ${this.name} reads`);
  }

  /** Waits for the tick of a message of ours. */
  async tick(text, expected) {
    const message = this.page.locator("#messages .message.mine", { hasText: text }).last();
    const tick = () => message.getAttribute("data-tick");
    await this.#until(async () => (await tick()) === expected).catch(() => {});
    assert.equal(await tick(), expected, `the tick of "${text}" at ${this.name}'s`);
  }

  /** Waits for the number of unread messages beside a conversation; 0 means that no number is shown. */
  async unread(title, expected) {
    const badge = this.conversation(title).locator(".unread");
    const count = async () => ((await badge.count()) === 0 ? 0 : Number(await badge.textContent()));
    await this.conversation(title).waitFor();
    await this.#until(async () => (await count()) === expected).catch(() => {});
    assert.equal(await count(), expected, `unread at ${this.name}'s from ${title}`);
  }

  banner() {
    return this.page.locator("#banner-text");
  }

  async #until(holds, limit = 15_000) {
    const end = Date.now() + limit;
    while (!(await holds())) {
      if (Date.now() > end) throw new Error(`${this.name} waited in vain`);
      await this.page.waitForTimeout(30);
    }
  }

  screenshot(name) {
    return this.page.screenshot({ path: `${process.env.BROWSER_TARGET}/screenshots/${name}.png` });
  }

  async leave() {
    assert.deepEqual(this.complaints, [], `the console of ${this.name}'s page`);
    await this.context.close();
  }
}
