/** The page as it ships, with the real engine and the committed pair: what the toy's tests can't know. Built by `make web`. */

import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { expect, it } from "vitest";
import { serve } from "./serve";
import { browserThere, CHROMIUM, SWITCHES } from "./site";

const PAGE = fileURLToPath(new URL("../../dist/page", import.meta.url));
const PAIR = fileURLToPath(new URL("../../../artifacts/tiny", import.meta.url));
/** "journee-HASH": a page and its package go together. */
const FOLDER = existsSync(PAGE) ? readdirSync(PAGE).find((name) => /^journee-[0-9a-f]{12}$/.test(name)) : undefined;
const built = existsSync(`${PAGE}/${FOLDER}/worker.js`);
if (!built && process.env["CI"] === "true") throw new Error(`${PAGE} is not there; build the package and its page: make web`);

it.skipIf(!built || !browserThere)(
  "loads, generates, compares and draws, and asks no other origin",
  async () => {
    const extra = { "/bundle.json": { status: 200, body: '{"url": "/models/tiny/"}' } };
    const server = await serve(PAGE, { extra, folders: { "/models/tiny/": PAIR } });
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: SWITCHES });
    let closed = false;
    try {
      const page = await browser.newPage();
      const complaints: string[] = [];
      page.on("console", (message) => void (["error", "warning"].includes(message.type()) && complaints.push(message.text())));
      page.on("pageerror", (error) => complaints.push(String(error)));
      page.on("request", (request) => void (request.url().startsWith(`${server.origin}/`) || complaints.push(request.url())));
      // What an earlier version of the page left is forgotten.
      await page.addInitScript(async () => (await caches.open("journee-page-1")).put("/journee-of-before/worker.js", new Response("old")));
      await page.goto(`${server.origin}/`);
      await page.waitForSelector("#go:enabled", { timeout: 120_000 });
      expect(await page.textContent("#info")).toMatch(/Exact here/);

      await page.fill("#max-tokens", "32");
      await page.click("#go");
      await page.waitForSelector("#summary > div, #generate-failure:not([hidden])", { timeout: 60_000 });
      expect(await page.textContent("#summary")).toMatch(/tokens\/s.*predicted \d+% ±/s);
      expect(await page.textContent("#verdict")).toMatch(/exactly the model's distribution/);

      await page.uncheck("#draft");
      await page.click("#go");
      await page.waitForFunction(() => /nothing was judged/.test(document.querySelector("#summary")?.textContent ?? ""), null, { timeout: 60_000 });

      await page.click("#compare");
      await page.waitForFunction(() => /over 3 seeds/.test(document.querySelector(".ratio")?.textContent ?? ""), null, { timeout: 120_000 });

      await page.selectOption("#draws", "2000");
      await page.click("#draw");
      await page.waitForFunction(() => document.querySelector("#announcer")?.textContent?.startsWith("Distances"), null, { timeout: 120_000 });
      const rows = await page.locator(".distances tbody tr").allTextContents();
      expect(rows[0]).toMatch(/plain.*within chance/);
      expect(rows[1]).toMatch(/speculative.*within chance/);
      expect(complaints).toEqual([]);

      // Without a network it opens again, with the model that it has.
      const own = ["/", "/bundle.json", ...["worker.js", "micropython.wasm", "ort-wasm-simd-threaded.wasm"].map((name) => `/${FOLDER}/${name}`)];
      await page.evaluate(async (own) => {
        for (;;) {
          const kept = (await (await caches.open("journee-page-1")).keys()).map(({ url }) => new URL(url).pathname);
          if (own.every((path) => kept.includes(path)) && !kept.includes("/journee-of-before/worker.js")) return;
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      }, own);
      await server.close();
      await page.reload();
      await page.waitForSelector("#go:enabled", { timeout: 120_000 });
      await page.fill("#max-tokens", "8");
      await page.click("#go");
      await page.waitForSelector("#summary > div", { timeout: 60_000 });
      closed = true;
    } finally {
      await browser.close();
      if (!closed) await server.close();
    }
  },
  300_000,
);
