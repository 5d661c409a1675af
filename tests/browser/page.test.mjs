// The demo page in a real browser, against the real server.

import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { Person } from "./person.mjs";
import { Server } from "./server.mjs";

const require = createRequire(`${process.env.BROWSER_TARGET}/browser/`);
const { chromium } = require("playwright-core");

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const LIMIT = { timeout: 90_000 };

let browser;
let server;

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, headless: true, args: FLAGS });
  server = await Server.create();
});

after(async () => {
  await browser?.close();
  await server?.remove();
});

const enter = (name, options) => Person.enter(browser, server.base, name, options);
const numbered = (word, count) => Array.from({ length: count }, (_, i) => `${word} ${i + 1}`);

test("somebody chooses a name and is let in", LIMIT, async () => {
  const context = await browser.newContext({ viewport: { width: 1100, height: 720 } });
  const page = await context.newPage();
  await page.goto(server.base);
  await page.screenshot({ path: `${process.env.BROWSER_TARGET}/screenshots/welcome.png` });
  await page.fill("#name", "Dora  Day");
  await page.press("#name", "Enter");
  await page.waitForSelector('body[data-connection="online"]');
  assert.equal(await page.textContent("#me-name"), "Dora Day");
  await page.reload();
  await page.waitForSelector('body[data-connection="online"]');
  assert.equal(await page.textContent("#me-name"), "Dora Day", "a reload keeps the name");
  await page.click("#leave");
  await page.waitForSelector("#welcome:not([hidden])");
  await context.close();
});

test("the page is allowed nothing from elsewhere", LIMIT, async () => {
  const answer = await fetch(server.base);
  const policy = answer.headers.get("content-security-policy");
  assert.match(policy, /default-src 'self'/);
  assert.doesNotMatch(policy, /unsafe/);
});

test("two people chat both ways, through a cut network and a killed server", LIMIT, async () => {
  const alice = await enter("alice", { viewport: { width: 1100, height: 720 } });
  const bob = await enter("bob", { viewport: { width: 1100, height: 720 } });

  await alice.startConversation("Bob");
  await alice.say("Hello Bob");
  await alice.tick("Hello Bob", "delivered");
  await bob.unread("Alice", 1);
  await bob.screenshot("unread");
  await bob.open("Alice");
  await alice.tick("Hello Bob", "read");
  await bob.unread("Alice", 0);

  await bob.say("Hi Alice", "How are you?");
  await alice.say("Fine");
  await alice.tick("Fine", "read");
  await alice.reads(["Hello Bob", "Hi Alice", "How are you?", "Fine"]);
  await bob.reads(["Hello Bob", "Hi Alice", "How are you?", "Fine"]);
  await alice.screenshot("chat");

  // Bob's network is cut: what he is sent waits for him, what he writes waits with him.
  await bob.context.setOffline(true);
  await bob.disconnected();
  await alice.say("Are you there?");
  await alice.tick("Are you there?", "sent");
  await bob.say("I am in a tunnel");
  await bob.tick("I am in a tunnel", "waiting");
  await bob.screenshot("offline");

  // The server dies without a word; what Alice writes now waits with her.
  await server.end("SIGKILL");
  await alice.disconnected();
  await alice.say("Is anybody there?");
  await alice.tick("Is anybody there?", "waiting");
  await alice.screenshot("reconnecting");

  await server.start();
  await alice.connected();
  await alice.tick("Is anybody there?", "sent");
  await bob.context.setOffline(false);
  await bob.connected();
  await bob.tick("I am in a tunnel", "read");
  await alice.tick("Is anybody there?", "read");
  await alice.tick("Are you there?", "read");

  const end = ["Are you there?", "Is anybody there?", "I am in a tunnel"];
  const everything = ["Hello Bob", "Hi Alice", "How are you?", "Fine", ...end];
  await bob.reads(everything);
  await alice.reads(everything);

  // The log is the page's own: a reload shows it again, and nothing twice.
  await bob.page.reload();
  await bob.connected();
  await bob.reads(everything);
  await alice.leave();
  await bob.leave();
});

test("what was sent while a page was closed arrives when it is opened again, once and in order", LIMIT, async () => {
  const erin = await enter("erin");
  const frank = await enter("frank");
  await erin.startConversation("frank");
  await erin.say("before");
  await frank.open("Erin");
  await erin.tick("before", "read");
  await frank.page.close();

  // More than a window of 256, with the server killed in the middle.
  const many = numbered("message", 300);
  await erin.sayAll(many.slice(0, 150));
  await server.end("SIGKILL");
  await erin.disconnected();
  await erin.sayAll(many.slice(150));
  await server.start();
  await erin.connected();
  await erin.tick("message 300", "sent");
  await frank.openPage();
  await frank.unread("Erin", 300);
  await frank.open("Erin");
  await frank.reads(["before", ...many]);
  await erin.tick("message 300", "read");
  await erin.reads(["before", ...many]);
  await erin.leave();
  await frank.leave();
});

test("whoever was away while others received and read sees it on coming back", LIMIT, async () => {
  const quinn = await enter("quinn");
  const rosa = await enter("rosa");
  // Another device of Quinn's stays, and tells this test when the server has a receipt.
  const witness = await enter("quinn");
  await quinn.startConversation("rosa");
  await quinn.say("one");
  await rosa.open("Quinn");
  await quinn.tick("one", "read");
  await rosa.say("Hello Quinn");
  await witness.open("Rosa");
  await rosa.page.close();
  await quinn.say("two");
  await quinn.tick("two", "sent");
  await witness.tick("two", "sent");

  // Cut off while Rosa receives.
  await quinn.context.setOffline(true);
  await quinn.disconnected();
  await rosa.openPage();
  await rosa.unread("Quinn", 1);
  await witness.tick("two", "delivered");
  await quinn.tick("two", "sent");
  await quinn.context.setOffline(false);
  await quinn.connected();
  await quinn.tick("two", "delivered");

  // Gone while Rosa reads.
  await quinn.page.close();
  await rosa.open("Quinn");
  await witness.tick("two", "read");
  await quinn.openPage();
  await quinn.open("Rosa");
  await quinn.tick("two", "read");
  await quinn.tick("one", "read");
  for (const person of [quinn, witness, rosa]) await person.leave();
});

test("a group shows who speaks, and its ticks wait for everybody", LIMIT, async () => {
  const gina = await enter("gina", { viewport: { width: 1100, height: 720 } });
  const hugo = await enter("hugo");
  const ines = await enter("ines");
  await gina.startConversation("hugo, ines");
  await gina.say("Welcome");
  await gina.tick("Welcome", "delivered");
  await hugo.open("Gina");
  await hugo.say("Thanks");
  await ines.unread("Gina", 2);
  await gina.tick("Welcome", "delivered");
  await ines.open("Gina");
  await gina.tick("Welcome", "read");
  await ines.say("Me too");
  await gina.reads(["Welcome", "Thanks", "Me too"]);
  const from = await gina.page.locator("#messages .from").allTextContents();
  assert.deepEqual(from, ["Hugo", "Ines"]);
  await gina.screenshot("group");
  for (const person of [gina, hugo, ines]) await person.leave();
});

test("two tabs of one person are two devices with the same conversation", LIMIT, async () => {
  const jack = await enter("jack");
  const kate = await enter("kate");
  const second = new Person(jack.context, server.base, "jack");
  await second.openPage();
  const device = (person) => person.page.textContent("#me-device");
  assert.notEqual(await device(jack), await device(second));
  await kate.startConversation("jack");
  await kate.say("to both");
  await jack.open("Kate");
  await second.open("Kate");
  await jack.say("from one");
  await second.reads(["to both", "from one"]);
  await kate.reads(["to both", "from one"]);
  assert.deepEqual(second.complaints, []);
  await jack.leave();
  await kate.leave();
});

test("the same device opened elsewhere takes over, and can be taken back", LIMIT, async () => {
  const lena = await enter("lena");
  const device = await lena.page.evaluate(() => sessionStorage.getItem("throng/1/device/lena"));
  const context = await browser.newContext();
  await context.addInitScript((value) => sessionStorage.setItem("throng/1/device/lena", value), device);
  const elsewhere = new Person(context, server.base, "lena");
  await elsewhere.openPage();
  await lena.page.waitForSelector('body[data-connection="stopped"]');
  assert.match(await lena.banner().textContent(), /Opened elsewhere/);
  await lena.screenshot("elsewhere");
  await lena.page.click("#banner-button");
  await lena.connected();
  await elsewhere.page.waitForSelector('body[data-connection="stopped"]');
  await elsewhere.leave();
  await lena.leave();
});

test("what is typed is text, never markup", LIMIT, async () => {
  const mona = await enter("mona");
  const nick = await enter("nick");
  const text = '<img src=x onerror="document.title=1"><script>alert(1)</script> & \u202e 🎉';
  await mona.startConversation("nick");
  await mona.say(text);
  await nick.open("Mona");
  await nick.reads([text]);
  assert.equal(await nick.page.locator("#messages img, #messages script").count(), 0);
  await mona.leave();
  await nick.leave();
});

test("on a phone one pane is shown at a time, and nothing sticks out", LIMIT, async () => {
  const options = { viewport: { width: 360, height: 700 }, hasTouch: true, isMobile: true, colorScheme: "dark" };
  const olga = await enter("olga", options);
  const paul = await enter("paul");
  await paul.startConversation("olga");
  await paul.say("A rather long message that has to be broken into several lines on so small a screen", "x".repeat(200));
  await olga.unread("Paul", 2);
  const sticksOut = () => olga.page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  assert.equal(await sticksOut(), false);
  assert.equal(await olga.page.isVisible("#messages"), false);
  await olga.screenshot("phone-list");
  await olga.open("Paul");
  await olga.page.waitForSelector("#messages .message");
  await olga.say("A short answer");
  await paul.tick("A rather long", "read");
  assert.equal(await sticksOut(), false);
  assert.equal(await olga.page.isVisible("#conversations"), false);
  await olga.screenshot("phone-chat");
  await olga.page.click("#back");
  assert.equal(await olga.page.isVisible("#conversations"), true);
  await olga.leave();
  await paul.leave();
});

test("a page of another origin cannot connect", LIMIT, async () => {
  const stranger = createServer((_, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end("<!doctype html><title>stranger</title>");
  });
  await new Promise((resolve) => stranger.listen(0, "127.0.0.1", resolve));
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    const attempt = (url) =>
      page.evaluate(
        (address) =>
          new Promise((resolve) => {
            const socket = new WebSocket(address, ["throng.v1.json"]);
            const seen = [];
            socket.onopen = () => seen.push("open");
            socket.onerror = () => seen.push("error");
            socket.onclose = (event) => resolve([...seen, event.code]);
            setTimeout(() => socket.close(), 3000);
          }),
        url,
      );
    const socket = `${server.base.replace("http", "ws")}/v1/socket`;
    await page.goto(`http://127.0.0.1:${stranger.address().port}/`);
    assert.deepEqual(await attempt(socket), ["error", 1006]);
    // The same attempt from the server's own page gets through, so it is the origin that was refused.
    await page.goto(server.base);
    assert.equal((await attempt(socket))[0], "open");
  } finally {
    await context.close();
    stranger.close();
  }
  const status = (origin) =>
    new Promise((resolve, reject) => {
      const headers = {
        Connection: "Upgrade",
        Upgrade: "websocket",
        Origin: origin,
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
      };
      const ask = request(`${server.base}/v1/socket`, { headers, agent: false });
      ask.on("response", (response) => resolve(response.resume().statusCode));
      ask.on("upgrade", (response, socket) => {
        socket.destroy();
        resolve(response.statusCode);
      });
      ask.on("error", reject);
      ask.end();
    });
  for (const origin of ["null", "https://example.org", `${server.base}.example.org`, server.base.replace("http", "https")]) {
    assert.equal(await status(origin), 403, origin);
  }
  assert.equal(await status(server.base), 101);
});
