/** A folder behind the headers that the page is meant for, on this machine alone. */

import { readFile } from "node:fs/promises";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize, resolve, sep } from "node:path";

const POLICY =
  "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; worker-src 'self'; connect-src 'self'";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".json": "application/json",
  ".wasm": "application/wasm",
};

const PLAIN = { "content-security-policy": POLICY, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" };
const ISOLATING = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "same-origin",
};

export interface Served {
  origin: string;
  close(): Promise<void>;
}

export interface Extra {
  status: number;
  body: string;
}

/** Serve `folder`, and other folders by the path they appear under; `extra` are answers by path, which come first. */
export async function serve(
  folder: string,
  { extra = {}, folders = {}, isolated = true }: { extra?: Record<string, Extra>; folders?: Record<string, string>; isolated?: boolean } = {},
): Promise<Served> {
  const headers = isolated ? { ...PLAIN, ...ISOLATING } : PLAIN;
  const send = (response: ServerResponse, status: number, type: string, body: string | Buffer): void => {
    response.writeHead(status, { ...headers, "content-type": type }).end(body);
  };
  const answer = async (path: string, response: ServerResponse): Promise<void> => {
    const given = extra[path];
    if (given) return send(response, given.status, "application/json", given.body);
    const [prefix, root] = Object.entries(folders).find(([start]) => path.startsWith(start)) ?? ["/", folder];
    const body = await inside(root, path.slice(prefix.length));
    if (!body) return send(response, 404, "text/plain", "not found");
    send(response, 200, TYPES[extname(path.endsWith("/") ? "index.html" : path)] ?? "application/octet-stream", body);
  };
  const server = createServer((request, response) => {
    void answer(decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname), response);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => closed(server) };
}

/** The file, or null where there is none or the path leads out of the folder. */
async function inside(root: string, path: string): Promise<Buffer | null> {
  const file = normalize(join(resolve(root), path.endsWith("/") || path === "" ? `${path}index.html` : path));
  return file.startsWith(resolve(root) + sep) ? readFile(file).catch(() => null) : null;
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((done) => server.close(() => done()));
}
