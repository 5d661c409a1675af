// The report in a real browser, opened from a file: no network, no complaint, nothing sticks out, and the numbers are the files'.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { runFile, sampleFile } from "./report_files.mjs";

const require = createRequire(`${process.env.BROWSER_TARGET}/browser/`);
const { chromium } = require("playwright-core");

const LIMIT = { timeout: 120_000 };
const COMMAND = "throng load chat --threshold '<script>alert(1)</script>&amp;' --steps 250,500,1000,1500";
const PHONE = { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };
const DESKTOP = { viewport: { width: 1280, height: 900 } };

let browser;
let folder;
let run;
let sample;
let address;

before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    headless: true,
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"],
  });
  folder = await mkdtemp(join(tmpdir(), "throng-report-"));
  const made = runFile({ seed: 4, steps: [250, 500, 1000, 1500], ramp: 5, hold: 40, command: COMMAND });
  run = made.text;
  sample = sampleFile({ seed: 5, seconds: made.seconds });
  await writeFile(join(folder, "run.csv"), run);
  await writeFile(join(folder, "sample.csv"), sample);
  const ended = spawnSync(process.env.THRONG_BIN, ["report", "run.csv", "sample.csv"], { cwd: folder, encoding: "utf8" });
  assert.equal(ended.status, 0, ended.stderr);
  assert.match(ended.stdout, /^Knee at 1000 messages a second \(step 3\)/);
  address = pathToFileURL(join(folder, "report.html")).href;
});

after(async () => {
  await browser?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

/** The rows of a file as numbers, words, or null where nothing stands; read here by other code than the page's. */
function rowsOf(text) {
  const lines = text.split("\n").filter((line) => line && !line.startsWith("#"));
  const names = lines[0].split(",");
  const value = (cell) => (cell === "" ? null : /^-?[0-9.]+$/.test(cell) ? Number(cell) : cell);
  return lines.slice(1).map((line) => Object.fromEntries(line.split(",").map((cell, at) => [names[at], value(cell)])));
}

/** Opens the report, does something with it, and looks whether it complained or asked a network. */
async function opened(options, name, look) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints = [];
  const requests = [];
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  page.on("dialog", (dialog) => complaints.push(`a dialog: ${dialog.message()}`));
  await page.goto(address);
  await look(page);
  await page.screenshot({ path: `${process.env.BROWSER_TARGET}/screenshots/${name}.png`, fullPage: true });
  assert.deepEqual(complaints, []);
  assert.deepEqual(requests.filter((url) => url !== address && !url.startsWith("data:")), []);
  await context.close();
}

async function nothingSticksOut(page) {
  const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(content <= window, `${content} wide in a window of ${window}`);
}

test("on a phone, in the dark, everything fits and a touch reads a moment", LIMIT, async () => {
  await opened({ ...PHONE, colorScheme: "dark" }, "report-phone", async (page) => {
    await nothingSticksOut(page);
    const small = await page.evaluate(() => {
      const scale = (svg) => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
      const size = (text) => parseFloat(getComputedStyle(text).fontSize) * scale(text.ownerSVGElement);
      return Math.min(...[...document.querySelectorAll("svg[data-across] text")].map(size));
    });
    assert.ok(small >= 9.5, `text of ${small} pixels`);
    await page.locator("#delivery svg[data-across]").tap();
    assert.notEqual(await page.locator("#delivery output").first().textContent(), "");
    await page.locator("details[data-file=run] summary").tap();
    await nothingSticksOut(page);
  });
});

test("on a desktop the values of a moment are those of its rows, in every chart", LIMIT, async () => {
  await opened({ ...DESKTOP, colorScheme: "light" }, "report-desktop", async (page) => {
    await nothingSticksOut(page);
    const svg = page.locator("#delivery svg[data-across]");
    await svg.focus();
    for (let press = 0; press < 25; press += 1) await page.keyboard.press("ArrowRight");
    // A quarter of 180 seconds.
    const second = rowsOf(run).find((row) => row.kind === "second" && row.elapsed_s === 45);
    const shown = (id, column) => page.locator(`#${id} output[data-column="${column}"]`).textContent();
    const text = (number) => number.toLocaleString("en", { maximumFractionDigits: 3 });
    assert.equal(await shown("delivery", "delivery_p95_ms"), text(second.delivery_p95_ms));
    assert.equal(await shown("rates", "ok"), text(second.ok));
    const sampled = rowsOf(sample).filter((row) => Math.abs(row.time_ms - second.time_ms) <= 1000);
    assert.ok(sampled.map((row) => text(row.cpu_busy_pct)).includes(await shown("cpu", "cpu_busy_pct")));
  });
});

test("the data, the tables and the points of the charts are those of the files", LIMIT, async () => {
  await opened({ ...DESKTOP, colorScheme: "dark" }, "report-desktop-dark", async (page) => {
    const rows = { run: rowsOf(run), sample: rowsOf(sample) };
    const data = await page.evaluate(() => JSON.parse(document.getElementById("data").textContent));
    for (const name of ["run", "sample"]) {
      const embedded = data[name].rows.map((row) => Object.fromEntries(row.map((cell, at) => [data[name].columns[at], cell])));
      // A status is a word, even if it looks like a number.
      const wanted = rows[name].map((row) => (row.api_status ? { ...row, api_status: String(row.api_status) } : row));
      assert.deepEqual(embedded, wanted);
    }

    const steps = rows.run.filter((row) => row.kind === "step");
    const table = await page.locator("#steps tbody tr").evaluateAll((lines) =>
      lines.map((line) =>
        [...line.querySelectorAll("[data-column]")].map((cell) => [cell.dataset.column, cell.dataset.value, cell.textContent]),
      ),
    );
    assert.equal(table.length, steps.length);
    table.forEach((cells, at) => {
      for (const [column, value, shown] of cells) {
        assert.equal(value === "" ? null : Number(value), steps[at][column], `${column} of step ${at + 1}`);
        assert.equal(shown.replaceAll("\u202f", ""), value === "" ? "–" : value);
      }
    });
    const sum = (column) => rows.run.filter((row) => row.kind === "second").reduce((all, row) => all + row[column], 0);
    assert.equal(Number(await page.locator("#totals dd").nth(0).getAttribute("data-value")), sum("due"));
    assert.equal(Number(await page.locator("#totals dd").nth(2).getAttribute("data-value")), sum("refused"));
    assert.equal(Number(await page.locator('#names [data-name="rate_limited"]').getAttribute("data-value")), sum("refused"));

    const paths = await page.locator("svg[data-across] path[data-column]").evaluateAll((all) =>
      all.map((path) => ({ ...path.dataset, d: path.getAttribute("d"), axis: { ...path.ownerSVGElement.dataset } })),
    );
    assert.ok(paths.length > 40, `${paths.length} lines`);
    for (const { source, column, d, axis } of paths) {
      const [left, right, top, bottom] = [axis.left, axis.right, axis.top, axis.bottom].map(Number);
      const [low, high, end] = [axis.low, axis.high, axis.end].map(Number);
      const up = (value) => {
        const share = axis.log === "true" ? Math.log(Math.max(value, low) / low) / Math.log(high / low) : (value - low) / (high - low);
        return bottom - (bottom - top) * Math.min(1, Math.max(0, share));
      };
      const from = { run: rows.run.filter((row) => row.kind === "second"), steps, sample: rows.sample }[source];
      const places = from
        .map((row) => [source === "steps" ? row.target : (row.time_ms - data.start_ms) / 1000, row[column]])
        .filter(([at, value]) => value !== null && at >= 0 && at <= end)
        .map(([at, value]) => [left + ((right - left) * at) / end, up(value)]);
      const drawn = [...d.matchAll(/[ML]([0-9.]+) ([0-9.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]);
      // These runs are short, so that every value is a point, and no point is anything else.
      assert.equal(drawn.length, places.length, `${source} ${column}`);
      drawn.forEach(([x, y], at) => {
        const isNear = Math.abs(x - places[at][0]) <= 0.051 && Math.abs(y - places[at][1]) <= 0.051;
        assert.ok(isNear, `${source} ${column}: point ${at} is drawn at ${x} ${y} and belongs at ${places[at]}`);
      });
    }

    await page.locator("details[data-file=sample] summary").click();
    // The page fills the table when it hears that it is open.
    const fourth = page.locator("details[data-file=sample] tbody tr").nth(3);
    await fourth.waitFor();
    const cells = await fourth.locator("td").allTextContents();
    assert.deepEqual(cells, Object.values(rows.sample[3]).map((cell) => (cell === null ? "" : String(cell))));
  });
});

test("a command line cannot bring markup into the page", LIMIT, async () => {
  await opened({ ...DESKTOP, javaScriptEnabled: true }, "report-markup", async (page) => {
    assert.equal(await page.locator("pre").first().textContent(), COMMAND);
    assert.equal(await page.locator("script").count(), 2);
  });
});
