// The real server as a test sees it: started on a port that stays the same, killed, started again.

import { spawn } from "node:child_process";
import { openSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const START_MAX_MS = 20_000;
const ASK_EVERY_MS = 50;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A port that was free a moment ago. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

export class Server {
  #child = null;
  #log;

  static async create() {
    const server = new Server();
    server.port = await freePort();
    server.base = `http://127.0.0.1:${server.port}`;
    server.data = await mkdtemp(join(tmpdir(), "throng-browser-"));
    server.#log = openSync(join(process.env.BROWSER_TARGET, "browser", "server.log"), "a");
    // Whatever happens to this process, the server must not outlive it.
    process.on("exit", () => server.#child?.kill("SIGKILL"));
    await server.start();
    return server;
  }

  async start() {
    const listen = `127.0.0.1:${this.port}`;
    const options = ["serve", "--dev", "--shards", "2", "--listen", listen, "--data", this.data];
    this.#child = spawn(process.env.THRONG_BIN, options, { stdio: ["ignore", this.#log, this.#log] });
    const child = this.#child;
    child.ended = new Promise((resolve) => child.on("exit", (code, signal) => resolve(code ?? signal)));
    const end = Date.now() + START_MAX_MS;
    for (;;) {
      const ended = await Promise.race([child.ended, sleep(ASK_EVERY_MS)]);
      if (ended !== undefined) throw new Error(`the server ended with ${ended}; see its log in target/browser/server.log`);
      const answer = await fetch(`${this.base}/livez`).catch(() => null);
      if (answer?.ok) return;
      if (Date.now() > end) throw new Error("the server did not answer in time");
    }
  }

  /** Ends it and waits for its end; returns the exit code or the signal. */
  async end(signal) {
    this.#child.kill(signal);
    return this.#child.ended;
  }

  async remove() {
    await this.end("SIGKILL");
    await rm(this.data, { recursive: true, force: true });
  }
}
