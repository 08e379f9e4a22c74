/**
 * How a bundle's files come to a page: over the network or out of the browser's cache, and never unverified.
 *
 * Rules:
 *
 * 1. No byte is given out before the SHA-256 of its whole file was found to be what the manifest says, wherever the
 *    file came from.
 * 2. A cached file's key is its hash, and it is put there after it was verified: a broken download leaves nothing, files
 *    of the same content are kept once, and a new version of a bundle asks for what is new in it. What is damaged in the
 *    cache is deleted and fetched again.
 * 3. The manifest comes from the network. Only where the network can't be reached is it the one of the last load that
 *    was complete; a server that answers with an error is not an absent network.
 * 4. Whoever fetches a file holds a lock of its hash, so that two tabs download it once. Where there are no locks, both
 *    may; that is all.
 * 5. What goes another way than asked (no cache, no room in it, no network) is told in `notes`.
 *
 * In Node a path or a `file:` URL is read from disk, and there is no cache.
 */

import type { LoadOptions, Progress } from "./api";
import { JourneeError } from "./errors";
import { inside, MANIFEST, neededFiles, readManifest, type FileRecord, type Manifest } from "./manifest";

export interface OpenOptions extends Pick<LoadOptions, "signal" | "onProgress" | "cache"> {
  /** Whether the draft's files are needed (and count in `total`); default true. */
  draft?: boolean;
}

/** An opened bundle: its manifest is read, and its files are fetched as they are asked for. */
export interface OpenedBundle {
  readonly manifest: Manifest;
  /** The folder, with a slash at the end. */
  readonly url: string;
  /** The files that count in the progress: what the models, as asked for, are loaded from. */
  readonly needed: readonly string[];
  /** Verified bytes so far: over the network, and from the cache. */
  readonly networkBytes: number;
  readonly cachedBytes: number;
  /** What a user should be told: each a sentence. More may come with every `read`. */
  readonly notes: readonly string[];
  /** The verified content of a file that the manifest lists. The bytes are the caller's own. */
  read(path: string): Promise<Uint8Array<ArrayBuffer>>;
  /** Ends reads under way, with an error of code "disposed". */
  close(): void;
}

const CACHE = "journee-bundles-1";
/** Keys in the cache are URLs; this host can't exist. */
const KEYS = "https://journee.invalid/";

/** Read the manifest of the bundle in the folder `source`: a URL, or in Node also a path. */
export async function openBundle(source: string | URL, options: OpenOptions = {}): Promise<OpenedBundle> {
  options.signal?.throwIfAborted();
  if (!globalThis.crypto?.subtle) {
    throw new JourneeError(
      "unsupported-browser",
      "this page can't verify files: crypto.subtle is missing, as in every page that is not a secure context; " +
        "serve the page over https, or from localhost",
    );
  }
  const folder = await folderOf(source);
  const life = new Life(options.signal);
  try {
    const notes: string[] = [];
    const cache = await openCache(folder, options.cache ?? !inNode(), notes, life);
    options.onProgress?.({ stage: "manifest", file: MANIFEST, loaded: 0, total: 0, network: 0 });
    const text = await manifestText(folder, cache, notes, life);
    return new Bundle(folder, readManifest(text), text, cache, notes, life, options);
  } catch (error) {
    life.end(error);
    throw error;
  }
}

/** How long a bundle may be read: until the caller's signal, or `close`. */
class Life {
  private readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  private readonly follow = () => this.controller.abort(this.outer?.reason);

  constructor(private readonly outer: AbortSignal | undefined) {
    outer?.addEventListener("abort", this.follow, { once: true });
    if (outer?.aborted) this.follow();
  }

  end(reason: unknown): void {
    this.outer?.removeEventListener("abort", this.follow);
    this.controller.abort(reason);
  }

  check(): void {
    this.signal.throwIfAborted();
  }

  /** What `work` gives, or the signal's reason as soon as there is one: not all work can be ended. */
  async during<T>(work: Promise<T>): Promise<T> {
    work.catch(() => undefined); // whatever wins below, its failure is not unheard
    this.check();
    let leave = (): void => undefined;
    const ended = new Promise<never>((_, reject) => {
      leave = () => reject(this.signal.reason);
      this.signal.addEventListener("abort", leave, { once: true });
    });
    try {
      return await Promise.race([work, ended]);
    } catch (error) {
      this.check(); // what fails because of the end fails with the end's reason
      throw error;
    } finally {
      this.signal.removeEventListener("abort", leave);
    }
  }
}

class Bundle implements OpenedBundle {
  readonly url: string;
  readonly needed: readonly string[];
  networkBytes = 0;
  cachedBytes = 0;
  /** Bytes of each needed file that were received, and how many of them over the network. */
  private readonly received = new Map<string, { bytes: number; network: number }>();
  private readonly missing: Set<string>;
  private readonly total: number;

  constructor(
    private readonly folder: URL,
    readonly manifest: Manifest,
    private readonly text: string,
    private readonly cache: Cache | null,
    readonly notes: string[],
    private readonly life: Life,
    private readonly options: OpenOptions,
  ) {
    this.url = folder.href;
    this.needed = neededFiles(manifest, options.draft ?? true);
    this.missing = new Set(this.needed);
    this.total = this.needed.reduce((sum, path) => sum + (manifest.files.get(path)?.size ?? 0), 0);
    this.tell("");
  }

  async read(path: string): Promise<Uint8Array<ArrayBuffer>> {
    this.life.check();
    const record = this.manifest.files.get(path);
    if (!record) throw new JourneeError("bad-bundle", `${MANIFEST} lists no file ${JSON.stringify(path)}`);
    const found = this.cache ? await this.alone(this.cache, path, record) : await this.fetched(path, record);
    this.life.check();
    await this.complete(path);
    return found;
  }

  close(): void {
    this.life.end(new JourneeError("disposed", `the bundle ${this.url} was closed`));
  }

  /** The file from the cache, or fetched and put there, while nobody else does the same. */
  private async alone(cache: Cache, path: string, record: FileRecord): Promise<Uint8Array<ArrayBuffer>> {
    const either = async () => (await this.cached(cache, path, record)) ?? (await this.kept(cache, path, record));
    const work = () => this.life.during(either()); // whatever hangs, the end gives the lock back
    const locks = globalThis.navigator?.locks as LockManager | undefined;
    if (!locks) return work();
    return this.life.during(locks.request(`journee ${record.sha256}`, { signal: this.life.signal }, work));
  }

  private async cached(
    cache: Cache,
    path: string,
    record: FileRecord,
  ): Promise<Uint8Array<ArrayBuffer> | null> {
    try {
      const response = await this.life.during(cache.match(contentKey(record.sha256)));
      if (!response) return null;
      const bytes = new Uint8Array(await this.life.during(response.arrayBuffer()));
      if (bytes.length === record.size && (await this.life.during(sha256(bytes))) === record.sha256) {
        this.count(path, bytes.length, 0);
        this.cachedBytes += bytes.length;
        return bytes;
      }
      this.note(`the browser's cache held ${path} damaged; it is fetched again.`);
    } catch (error) {
      this.life.check();
      this.note(`the browser's cache could not be read (${reason(error)}); ${path} is fetched.`);
    }
    await this.life.during(cache.delete(contentKey(record.sha256)).catch(() => false));
    return null;
  }

  private async kept(cache: Cache, path: string, record: FileRecord): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = await this.fetched(path, record);
    await this.put(cache, contentKey(record.sha256), bytes);
    return bytes;
  }

  private async fetched(path: string, record: FileRecord): Promise<Uint8Array<ArrayBuffer>> {
    const disk = this.folder.protocol === "file:";
    const bytes = new Uint8Array(buffer(record.size, path));
    let at = 0;
    try {
      for await (const piece of disk ? fromDisk(this.folder, path) : fromNetwork(this.folder, path, this.life)) {
        this.life.check();
        if (at + piece.length > bytes.length) {
          throw mismatch(path, `longer than the ${record.size} bytes that ${MANIFEST} says`);
        }
        bytes.set(piece, at);
        at += piece.length;
        this.count(path, at, disk ? 0 : at);
      }
      if (at < bytes.length) throw mismatch(path, `${at} bytes, and ${MANIFEST} says ${record.size}`);
      const found = await this.life.during(sha256(bytes));
      if (found !== record.sha256) throw mismatch(path, `its sha256 is ${found}, and ${MANIFEST} says ${record.sha256}`);
    } catch (error) {
      this.count(path, 0, 0);
      throw error;
    }
    if (!disk) this.networkBytes += at;
    return bytes;
  }

  private async put(cache: Cache, key: string, body: Uint8Array<ArrayBuffer> | string): Promise<void> {
    try {
      await this.life.during(cache.put(key, new Response(body)));
    } catch (error) {
      this.life.check();
      this.note(`not everything could be kept in the browser's cache (${reason(error)}): the next load downloads it again.`);
    }
  }

  /** Keep the manifest once every needed file was verified, and drop what only the one before it listed. */
  private async complete(path: string): Promise<void> {
    if (!this.missing.delete(path) || this.missing.size > 0 || !this.cache) return;
    const key = manifestKey(this.folder);
    const before = await this.life.during(storedText(this.cache, key));
    if (before === this.text) return;
    await this.put(this.cache, key, this.text);
    if (before !== null) await this.life.during(sweep(this.cache, before).catch(() => undefined));
  }

  private count(path: string, bytes: number, network: number): void {
    if (!this.needed.includes(path) || this.life.signal.aborted) return;
    this.received.set(path, { bytes, network });
    this.tell(path);
  }

  private tell(file: string): void {
    const progress: Progress = { stage: "files", file, loaded: 0, total: this.total, network: 0 };
    for (const { bytes, network } of this.received.values()) {
      progress.loaded += bytes;
      progress.network += network;
    }
    this.options.onProgress?.(progress);
  }

  private note(sentence: string): void {
    if (!this.notes.includes(sentence)) this.notes.push(sentence);
  }
}

/** The folder as a URL that ends with a slash. */
async function folderOf(source: string | URL): Promise<URL> {
  const given = String(source);
  const path = inNode() && typeof source === "string" && !/^[a-z][a-z0-9+.-]+:/i.test(given);
  let url: URL;
  try {
    url = path ? (await node<typeof import("node:url")>("node:url")).pathToFileURL(given) : new URL(given, globalThis.location?.href);
  } catch (cause) {
    throw new JourneeError("bad-request", `no address of a bundle's folder: ${given}`, { cause });
  }
  if (url.search || url.hash) {
    throw new JourneeError("bad-request", `the address of a bundle's folder has no "?" and no "#": ${given}`);
  }
  if (!["http:", "https:", ...(inNode() ? ["file:"] : [])].includes(url.protocol)) {
    throw new JourneeError("bad-request", `a bundle is fetched by http or https, not ${url.protocol} (${given})`);
  }
  url.pathname = url.pathname.replace(/\/journee\.json$/, "/").replace(/\/*$/, "/");
  return url;
}

/** A module of Node's own, by a variable, so that no bundler looks for it when it builds a page. */
async function node<T>(name: string): Promise<T> {
  return (await import(/* @vite-ignore */ name)) as T;
}

function encodePath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

function inNode(): boolean {
  return typeof process !== "undefined" && Boolean(process.versions?.node) && typeof document === "undefined";
}

async function openCache(folder: URL, wanted: boolean, notes: string[], life: Life): Promise<Cache | null> {
  if (!wanted || folder.protocol === "file:") return null;
  const why = "the bundle is downloaded again with every load";
  if (typeof caches === "undefined") {
    notes.push(`this browser offers no cache here, as in some private windows: ${why}.`);
    return null;
  }
  try {
    return await life.during(caches.open(CACHE));
  } catch (error) {
    life.check();
    notes.push(`the browser's cache can't be used (${reason(error)}): ${why}.`);
    return null;
  }
}

/** From the network or disk; where the network can't be reached, that of the last complete load. */
async function manifestText(folder: URL, cache: Cache | null, notes: string[], life: Life): Promise<string> {
  try {
    const disk = folder.protocol === "file:";
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    for await (const piece of disk ? fromDisk(folder, MANIFEST) : fromNetwork(folder, MANIFEST, life)) pieces.push(piece);
    return decoded(await new Blob(pieces).arrayBuffer());
  } catch (error) {
    life.check();
    const stored = cache && error instanceof Unreachable ? await life.during(storedText(cache, manifestKey(folder))) : null;
    if (stored === null) throw error;
    notes.push("the network can't be reached: this is the bundle as of the last complete load.");
    return stored;
  }
}

function decoded(bytes: ArrayBuffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new JourneeError("bad-bundle", `${MANIFEST} is not UTF-8; copy or download the bundle again`, { cause });
  }
}

/** A "network" error where no server answered, or not to the end. */
class Unreachable extends JourneeError {}

async function* fromNetwork(folder: URL, path: string, life: Life): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const url = fileUrl(folder, path);
  let response: Response;
  try {
    // Our own cache is keyed by content; the browser's, by address, would keep all twice and give out what is stale.
    response = await fetch(url, { signal: life.signal, cache: "no-store" });
  } catch (cause) {
    life.check();
    throw new Unreachable("network", `${url} can't be reached: ${reason(cause)}; check the connection, and the page's CORS and CSP`, { cause });
  }
  if (!response.ok) {
    cancel(response.body);
    const hint = path === MANIFEST ? "check the address of the bundle's folder" : "the bundle there is incomplete";
    throw new JourneeError("network", `${url}: the server says ${response.status} ${response.statusText}; ${hint}`);
  }
  const reader = response.body?.getReader();
  try {
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      if (done) return;
      yield value;
    }
  } catch (cause) {
    life.check();
    throw new Unreachable("network", `${url}: the connection broke: ${reason(cause)}; try again`, { cause });
  } finally {
    cancel(reader);
  }
}

/** Without waiting: after an abort, Node's never settles. */
function cancel(body: { cancel(): Promise<void> } | null | undefined): void {
  body?.cancel().catch(() => undefined);
}

async function* fromDisk(folder: URL, path: string): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const { createReadStream, promises } = await node<typeof import("node:fs")>("node:fs");
  const url = new URL(fileUrl(folder, path));
  try {
    const [root, file] = await Promise.all([promises.realpath(folder), promises.realpath(url)]);
    if (!file.startsWith(root) || !/^[\\/]/.test(file.slice(root.length))) throw new JourneeError("bad-bundle", `${url}: a link leads out of the bundle's folder`);
    yield* createReadStream(file) as AsyncIterable<Uint8Array<ArrayBuffer>>;
  } catch (cause) {
    if (cause instanceof JourneeError) throw cause;
    const hint = path === MANIFEST ? "give the folder that journee-export wrote" : "the bundle there is incomplete";
    throw new JourneeError("bad-bundle", `${url} can't be read: ${reason(cause)}; ${hint}`, { cause });
  }
}

function fileUrl(folder: URL, path: string): string {
  if (!inside(path)) throw new JourneeError("bad-bundle", `${JSON.stringify(path)} leaves the bundle's folder`);
  return new URL(encodePath(path), folder).href;
}

function contentKey(hash: string): string {
  return `${KEYS}sha256/${hash}`;
}

function manifestKey(folder: URL): string {
  return `${KEYS}manifest/${encodeURIComponent(folder.href)}`;
}

async function storedText(cache: Cache, key: string): Promise<string | null> {
  try {
    const text = await (await cache.match(key))?.text();
    if (text !== undefined) readManifest(text); // one that is no good is as good as none
    return text ?? null;
  } catch {
    return null;
  }
}

/** Delete the files that the manifest `before` lists and none that is kept does. */
async function sweep(cache: Cache, before: string): Promise<void> {
  const keys = (await cache.keys()).filter(({ url }) => url.startsWith(`${KEYS}manifest/`));
  const texts = await Promise.all(keys.map(({ url }) => storedText(cache, url)));
  const kept = new Set(texts.flatMap((text) => (text === null ? [] : hashes(text))));
  await Promise.all(hashes(before).filter((hash) => !kept.has(hash)).map((hash) => cache.delete(contentKey(hash))));
}

function hashes(manifest: string): string[] {
  return [...readManifest(manifest).files.values()].map((record) => record.sha256);
}

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function buffer(size: number, path: string): ArrayBuffer {
  try {
    return new ArrayBuffer(size);
  } catch (cause) {
    throw new JourneeError("out-of-memory", `${path} needs ${size} bytes, which this browser does not give`, { cause });
  }
}

function mismatch(path: string, found: string): JourneeError {
  return new JourneeError("hash-mismatch", `${path} is not the file that was exported: ${found}; load again, and if it stays so, copy the bundle to the server again`);
}

function reason(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
