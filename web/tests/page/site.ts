/** The page as it is built, with the toy in the model's place, behind its headers, in Chromium. */

import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { buildPage } from "../../scripts/build_page.mjs";
import { serve } from "./serve";

export const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
export const SWITCHES =
  "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync".split(" ");

/** Whether there is a browser. In CI one must be there; elsewhere the tests that need it are reported as skipped. */
export const browserThere = existsSync(CHROMIUM);
if (!browserThere && process.env["CI"] === "true") {
  throw new Error(`there is no Chromium at ${CHROMIUM}; install it (Debian: apt-get install chromium), or set CHROMIUM to its path`);
}

/** A visit to the page, with all that it asked for and complained of. */
export interface Visit {
  page: Page;
  asked: string[];
  complaints: string[];
  close(): Promise<void>;
}

export class Site {
  private constructor(
    readonly origin: string,
    private readonly browser: Browser,
    private readonly end: () => Promise<void>,
  ) {}

  /** `isolated` false leaves out the headers that isolate. */
  static async open({ isolated = true, bundle = '{"url": "/models/toy/"}', status = 200 } = {}): Promise<Site> {
    const folder = await mkdtemp(join(tmpdir(), "journee-page-"));
    const engine = fileURLToPath(new URL("mock.ts", import.meta.url));
    await buildPage({ outDir: folder, engine });
    const server = await serve(folder, { isolated, extra: { "/bundle.json": { body: bundle, status } } });
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: SWITCHES });
    return new Site(server.origin, browser, async () => {
      await browser.close();
      await server.close();
      await rm(folder, { recursive: true, force: true });
    });
  }

  async visit(address = "/", options: BrowserContextOptions = {}): Promise<Visit> {
    const context = await this.browser.newContext({ viewport: { width: 1100, height: 900 }, ...options });
    const page = await context.newPage();
    const asked: string[] = [];
    const complaints: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("dialog", (dialog) => {
      complaints.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    await page.goto(this.origin + address);
    return { page, asked, complaints, close: () => context.close() };
  }

  /** A visit whose model is loaded. */
  async ready(name = "toy", options: BrowserContextOptions = {}): Promise<Visit> {
    const visit = await this.visit(`/?bundle=/models/${name}/`, options);
    await visit.page.waitForSelector("#go:enabled");
    return visit;
  }

  async close(): Promise<void> {
    await this.end();
  }
}

export async function generated(page: Page): Promise<void> {
  await page.click("#go");
  await page.waitForSelector("#summary > div");
}
