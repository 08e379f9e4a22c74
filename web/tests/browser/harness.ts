/** Chromium on pages of a server of ours: the package as it is built, the trained pair, and headers as a test wants them. */

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import type { load } from "../../src/index";

export const WEB = fileURLToPath(new URL("../..", import.meta.url));
const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm",
  ".json": "application/json",
};
const PAGE = `<!doctype html><meta charset="utf-8"><title>test</title><script type="module" src="/setup.js"></script>`;
/** Notes what the page's thread may not do, and what it says to its workers, before the package is there. */
const SETUP = `
self.compiled = 0;
for (const name of ["instantiate", "instantiateStreaming", "compile", "compileStreaming"]) {
  const real = WebAssembly[name];
  WebAssembly[name] = (...args) => (self.compiled++, real.apply(WebAssembly, args));
}
self.log = [];
const Real = self.Worker;
self.Worker = class extends Real {
  constructor(...args) {
    super(...args);
    self.workers = (self.workers ?? 0) + 1;
    this.addEventListener("message", ({ data }) => self.log.push({ got: data.kind, id: data.id, empty: data.value === null, at: performance.now() }));
  }
  postMessage(message, ...rest) {
    self.log.push({ sent: message.name ?? message.kind, id: message.id, at: performance.now() });
    super.postMessage(message, ...rest);
  }
};
const { load } = await import("/journee/index.js");
self.load = load;
self.ready = true;
`;
export const STRICT =
  "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; object-src 'none'; base-uri 'none'";

/** What a test's page has as globals. */
declare global {
  var load: typeof import("../../src/index").load;
  var compiled: number;
  var workers: number;
  var log: { sent?: string; got?: string; id?: number; empty?: boolean; at: number }[];
  var ready: boolean;
}
export type Load = typeof load;

export interface Headers {
  isolated: boolean;
  csp: string;
}

export class Site {
  /** Paths asked for, in order. */
  readonly asked: string[] = [];
  private constructor(
    private readonly server: Server,
    readonly headers: Headers,
    private readonly folders: Record<string, string>,
  ) {}

  static async open(headers: Partial<Headers> = {}): Promise<Site> {
    const server = createServer();
    const site = new Site(
      server,
      { isolated: true, csp: STRICT, ...headers },
      {
        "/journee/": join(WEB, "dist"),
        "/models/tiny/": fileURLToPath(new URL("../../../../artifacts/tiny/", import.meta.url)),
        "/pyodide/": join(WEB, "node_modules/pyodide"),
      },
    );
    server.on("request", (request, response) => void site.answer(new URL(request.url ?? "/", "http://localhost").pathname, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return site;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  private async answer(path: string, response: ServerResponse): Promise<void> {
    this.asked.push(path);
    response.setHeader("Cross-Origin-Resource-Policy", "same-origin");
    if (this.headers.isolated) {
      response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
      response.setHeader("Cross-Origin-Embedder-Policy", "require-corp");
    }
    if (this.headers.csp) response.setHeader("Content-Security-Policy", this.headers.csp);
    if (path === "/") return send(response, ".html", PAGE);
    if (path === "/setup.js") return send(response, ".js", SETUP);
    if (path === "/favicon.ico") return send(response, ".json", "", 204);
    const found = Object.entries(this.folders).find(([prefix]) => path.startsWith(prefix));
    const file = found && normalize(join(found[1], path.slice(found[0].length)));
    if (!found || !file?.startsWith(found[1].endsWith(sep) ? found[1] : found[1] + sep) || !existsSync(file)) return send(response, ".html", "not here", 404);
    send(response, extname(file), await readFile(file));
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

function send(response: ServerResponse, extension: string, content: string | Buffer, status = 200): void {
  response.writeHead(status, { "Content-Type": TYPES[extension] ?? "application/octet-stream", "Content-Length": Buffer.byteLength(content), "Cache-Control": "no-cache" });
  response.end(content);
}

export async function launch(): Promise<Browser> {
  const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
  if (!existsSync(executablePath))
    throw new Error(`there is no Chromium at ${executablePath}; install it (Debian: apt-get install chromium), or set CHROMIUM to its path`);
  return chromium.launch({
    executablePath,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** A page of the site with the package imported. What it complains of is in `complaints`. */
export async function opened(context: BrowserContext, site: Site): Promise<{ page: Page; complaints: string[] }> {
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(site.url);
  await page.waitForFunction(() => globalThis.ready);
  return { page, complaints };
}
