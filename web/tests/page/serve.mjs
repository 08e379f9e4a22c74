/** The page behind the headers that it is meant for, on this machine alone. `node serve.mjs [folder] [port]` serves the toy. */

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

export const POLICY =
  "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; worker-src 'self'; connect-src 'self'";

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".json": "application/json",
  ".wasm": "application/wasm",
};

const HEADERS = {
  "content-security-policy": POLICY,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "same-origin",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

/**
 * Serve `folder`; `extra` are answers by path, which come first. `isolated` false leaves out the headers that isolate.
 *
 * @param {string} folder
 * @param {{ extra?: Record<string, { status?: number, body?: string, type?: string }>, isolated?: boolean, port?: number }} [options]
 * @returns {Promise<{ origin: string, close: () => Promise<void> }>}
 */
export async function serve(folder, { extra = {}, isolated = true, port = 0 } = {}) {
  const root = resolve(folder);
  const headers = Object.fromEntries(Object.entries(HEADERS).filter(([name]) => isolated || !name.startsWith("cross-origin")));
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname);
    const given = extra[path];
    if (given) {
      response.writeHead(given.status ?? 200, { ...headers, "content-type": given.type ?? "application/json" }).end(given.body ?? "");
      return;
    }
    const file = normalize(join(root, path.endsWith("/") ? `${path}index.html` : path));
    const inside = file.startsWith(root + sep);
    readFile(inside ? file : join(root, "nothing")).then(
      (body) => response.writeHead(200, { ...headers, "content-type": TYPES[/** @type {keyof typeof TYPES} */ (extname(file))] ?? "application/octet-stream" }).end(body),
      () => response.writeHead(404, headers).end("not found"),
    );
  });
  await new Promise((done) => server.listen(port, "127.0.0.1", () => done(undefined)));
  const address = server.address();
  const bound = typeof address === "object" && address ? address.port : port;
  return {
    origin: `http://127.0.0.1:${bound}`,
    close: () => new Promise((done) => (server.closeAllConnections(), server.close(() => done(undefined)))),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder = ".", port = "8080"] = process.argv.slice(2);
  const { origin } = await serve(folder, { port: Number(port), extra: { "/bundle.json": { body: '{"url": "/models/toy/"}' } } });
  console.log(`${origin}/`);
}
