import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Progress } from "../../src/api";
import { openBundle, type OpenedBundle, type OpenOptions } from "../../src/store";
import { asBrowser, FakeCaches, FakeLocks } from "./browser";
import { smallFiles, smallManifest, SmallServer } from "./small_bundle";

const WEIGHTS = "target/onnx/model_fp16.onnx_data";
const NEEDED = 2 + 2 * (300 + 200_000 + 1000);

let server: SmallServer;
let caches: FakeCaches;

beforeEach(async () => {
  server = await new SmallServer().start();
  caches = new FakeCaches();
  asBrowser(caches, new FakeLocks());
});

afterEach(async () => {
  vi.unstubAllGlobals();
  await server.stop();
});

const open = (options: OpenOptions = {}) => openBundle(server.url, { cache: true, ...options });

/** Byte by byte, which `toEqual` takes a second for. */
const same = (found: Uint8Array, expected: Uint8Array | undefined) => expect(expected && Buffer.from(found).equals(expected)).toBe(true);

/** Reads all that is needed, as an engine does. */
async function load(options: OpenOptions = {}): Promise<OpenedBundle> {
  const bundle = await open(options);
  const read = await Promise.all(bundle.needed.map(async (path) => [path, await bundle.read(path)] as const));
  for (const [path, content] of read) same(content, server.files.get(path));
  return bundle;
}

const failure = (promise: Promise<unknown>) => promise.then(() => Promise.reject(new Error("it went well")), (error: unknown) => error);

describe("loading", () => {
  test("every needed file once over the network, then none", async () => {
    const first = await load();
    expect(first).toMatchObject({ networkBytes: NEEDED, cachedBytes: 0, notes: [], url: server.url });
    expect(server.asked).toEqual(["journee.json", ...first.needed]);
    expect(new Set(server.asked).size).toBe(server.asked.length);
    expect(first.needed.filter((path) => path.includes("tokenizer"))).toEqual(["target/tokenizer.json"]);
    server.asked = [];
    expect(await load()).toMatchObject({ networkBytes: 0, cachedBytes: NEEDED, notes: [] });
    expect(server.asked).toEqual(["journee.json"]);
  });

  test("without the draft", async () => {
    const bundle = await load({ draft: false });
    expect(bundle.networkBytes).toBe(2 + 300 + 200_000 + 1000);
    expect(server.weights.every((path) => path.startsWith("target/"))).toBe(true);
  });

  test("without a cache, if that is asked for", async () => {
    await load({ cache: false });
    expect(await load({ cache: false })).toMatchObject({ networkBytes: NEEDED, cachedBytes: 0, notes: [] });
    expect(caches.entries.size).toBe(0);
  });

  test("the address of the folder with and without a slash, or of the manifest", async () => {
    for (const source of [server.url, server.url.slice(0, -1), `${server.url}journee.json`, new URL(server.url)]) {
      expect((await openBundle(source)).url).toBe(server.url);
    }
  });

  test("what is read is the reader's own", async () => {
    const bundle = await load();
    (await bundle.read(WEIGHTS)).fill(0);
    same(await bundle.read(WEIGHTS), server.files.get(WEIGHTS));
  });

  test("a path that the manifest doesn't list", async () => {
    const bundle = await open();
    for (const path of ["../secret", "target/onnx/other", "/etc/hostname", "journee.json"]) {
      expect(await failure(bundle.read(path))).toMatchObject({ code: "bad-bundle", message: expect.stringContaining("lists no file") });
    }
    expect(server.weights).toEqual([]);
  });

  test("addresses that are none", async () => {
    for (const [source, message] of [
      ["ftp://here/bundle", "http or https, not ftp:"],
      ["http://", "no address of a bundle's folder"],
      ["http://here/bundle?key=1", 'no "?" and no "#"'],
      ["data:text/plain,x", "not data:"],
    ] as const) {
      expect(await failure(openBundle(source))).toMatchObject({ code: "bad-request", message: expect.stringContaining(message) });
    }
  });
});

describe("progress", () => {
  test("is true to the byte: it grows, and ends at the sums", async () => {
    for (const network of [NEEDED, 0]) {
      const seen: Progress[] = [];
      await load({ onProgress: (progress) => seen.push({ ...progress }) });
      expect(seen[0]).toEqual({ stage: "manifest", file: "journee.json", loaded: 0, total: 0, network: 0 });
      expect(seen[1]).toEqual({ stage: "files", file: "", loaded: 0, total: NEEDED, network: 0 });
      expect(seen.at(-1)).toMatchObject({ stage: "files", loaded: NEEDED, total: NEEDED, network });
      const steps = seen.slice(1);
      for (const [at, progress] of steps.entries()) {
        expect(progress.loaded).toBeGreaterThanOrEqual(steps[at - 1]?.loaded ?? 0);
        expect(progress.network).toBe(network ? progress.loaded : 0);
      }
      // Streaming: a large file is told of in parts.
      if (network) expect(seen.filter(({ file }) => file === WEIGHTS).length).toBeGreaterThan(2);
    }
  });

  test("takes back what turned out to be broken", async () => {
    server.trouble = (path, _, response) => {
      if (path !== WEIGHTS) return false;
      response.writeHead(200, { "content-length": 200_000 }).end(new Uint8Array(200_000));
      return true;
    };
    const seen: Progress[] = [];
    const bundle = await open({ onProgress: (progress) => seen.push(progress) });
    await failure(bundle.read(WEIGHTS));
    expect(Math.max(...seen.map(({ loaded }) => loaded))).toBe(200_000);
    expect(seen.at(-1)).toMatchObject({ loaded: 0, network: 0 });
    expect(bundle.networkBytes).toBe(0);
  });
});

describe("what comes broken is not given out, nor kept", () => {
  const content = () => smallFiles().get(WEIGHTS) as Uint8Array;
  test.each<[string, (response: import("node:http").ServerResponse) => void, string, string]>([
    ["a flipped bit", (r) => r.end(content().map((byte, at) => (at === 77_777 ? byte ^ 1 : byte))), "hash-mismatch", "its sha256 is"],
    ["too short", (r) => r.end(content().subarray(1)), "hash-mismatch", "199999 bytes, and journee.json says 200000"],
    ["empty", (r) => r.end(), "hash-mismatch", "0 bytes, and journee.json says 200000"],
    ["too long", (r) => r.end(Buffer.concat([content(), content()])), "hash-mismatch", "longer than the 200000 bytes"],
    ["404", (r) => r.writeHead(404).end("nothing"), "network", "the server says 404 Not Found; the bundle there is incomplete"],
    ["500", (r) => r.writeHead(500).end("oh"), "network", "the server says 500"],
    [
      "the connection breaks",
      (r) => {
        r.writeHead(200, { "content-length": 200_000 }).write(content().subarray(0, 70_000));
        setTimeout(() => r.destroy(), 20);
      },
      "network",
      "the connection broke",
    ],
  ])("%s", async (_, spoil, code, message) => {
    server.trouble = (path, __, response) => path === WEIGHTS && (spoil(response), true);
    const bundle = await open();
    const error = await failure(bundle.read(WEIGHTS));
    expect(error).toMatchObject({ name: "JourneeError", code, message: expect.stringContaining(message) });
    expect((error as Error).message).toContain(WEIGHTS);
    expect(caches.entries.size).toBe(0);
    expect(bundle.networkBytes).toBe(0);
    server.trouble = () => false;
    same(await bundle.read(WEIGHTS), content()); // the same bundle goes on once the trouble is over
    expect((await load()).networkBytes).toBe(NEEDED - 200_000);
  });

  test("the network goes while a file is asked for", async () => {
    const bundle = await open();
    await server.stop();
    expect(await failure(bundle.read(WEIGHTS))).toMatchObject({ code: "network", message: expect.stringContaining("can't be reached") });
    await server.start();
    await bundle.read(WEIGHTS);
  });
});

describe("the cache", () => {
  const key = (path: string) => `https://journee.invalid/sha256/${smallManifest(server.files)["files"][path].sha256}`;

  test.each([
    ["a flipped bit", (held: Uint8Array) => held.map((byte, at) => (at === 5 ? byte ^ 1 : byte))],
    ["half of it", (held: Uint8Array) => held.slice(0, held.length / 2)],
    ["nothing", () => new Uint8Array(0)],
  ])("damaged: %s; it is noticed, told, and fetched again", async (_, spoil) => {
    await load();
    caches.entries.set(key(WEIGHTS), spoil(caches.entries.get(key(WEIGHTS)) as Uint8Array) as Uint8Array<ArrayBuffer>);
    server.asked = [];
    const bundle = await load();
    expect(server.weights).toEqual([WEIGHTS]);
    expect(bundle).toMatchObject({ networkBytes: 200_000, cachedBytes: NEEDED - 200_000 });
    expect(bundle.notes).toEqual([`the browser's cache held ${WEIGHTS} damaged; it is fetched again.`]);
    expect((await load()).networkBytes).toBe(0);
  });

  test("damaged, and no network: the damaged file is gone, not given out", async () => {
    await load();
    caches.entries.set(key(WEIGHTS), new Uint8Array(200_000));
    await server.stop();
    const bundle = await open();
    expect(await failure(bundle.read(WEIGHTS))).toMatchObject({ code: "network" });
    expect(caches.entries.has(key(WEIGHTS))).toBe(false);
    await server.start();
  });

  test("full: it goes on without, and says so", async () => {
    caches.before = (operation, name) => {
      if (operation === "put" && name === key(WEIGHTS)) throw new DOMException("no room", "QuotaExceededError");
    };
    const bundle = await load();
    expect(bundle.notes).toEqual([expect.stringContaining("not everything could be kept in the browser's cache (QuotaExceededError")]);
    server.asked = [];
    expect((await load()).networkBytes).toBe(200_000);
    expect(server.weights).toEqual([WEIGHTS]);
  });

  test("absent, as in some private windows: it goes on without, and says so", async () => {
    vi.stubGlobal("caches", undefined);
    expect((await load()).notes).toEqual([expect.stringContaining("offers no cache here")]);
  });

  test("refused: it goes on without, and says so", async () => {
    caches.before = () => {
      throw new DOMException("insecure", "SecurityError");
    };
    const bundle = await load();
    expect(bundle.notes).toEqual([expect.stringContaining("can't be used (SecurityError")]);
    expect(bundle.networkBytes).toBe(NEEDED);
  });

  test("broken later: it goes on without, and says so", async () => {
    caches.before = (operation) => {
      if (operation !== "open") throw new DOMException("disk", "UnknownError");
    };
    const bundle = await load();
    expect(bundle.notes.join()).toContain("could not be read (UnknownError: disk)");
    expect(bundle.networkBytes).toBe(NEEDED);
  });

  test("a new version of the bundle asks for what is new, and drops what is old", async () => {
    await load();
    const before = new Set(caches.entries.keys());
    server.publish(smallFiles(2));
    server.asked = [];
    await load();
    expect(server.weights.sort()).toEqual([...server.files.keys()].filter((path) => path.includes("onnx_data")).sort());
    const old = [...before].filter((name) => !caches.entries.has(name));
    expect(old).toHaveLength(4);
    expect(caches.named("sha256")).toHaveLength(7);
    expect((await load()).networkBytes).toBe(0);
  });

  test("two bundles share what is the same in both, and neither drops it", async () => {
    await load();
    await openBundle(server.url.replace("small", "%73mall"), { cache: true }).then((other) =>
      Promise.all(other.needed.map((path) => other.read(path))),
    );
    expect(caches.named("manifest")).toHaveLength(2);
    expect(server.weights).toHaveLength(7);
    server.publish(smallFiles(2));
    await load();
    expect(caches.named("sha256")).toHaveLength(7 + 4);
  });
});

describe("offline", () => {
  test("the bundle of the last complete load", async () => {
    await load();
    await server.stop();
    const bundle = await load();
    expect(bundle).toMatchObject({ networkBytes: 0, cachedBytes: NEEDED });
    expect(bundle.notes).toEqual([expect.stringContaining("as of the last complete load")]);
    await server.start();
  });

  test("not of one that never was complete", async () => {
    const old = server.files;
    await load();
    server.publish(smallFiles(2));
    await (await open()).read(WEIGHTS);
    await server.stop();
    server.files = old;
    expect((await load()).networkBytes).toBe(0);
    await server.start();
  });

  test("with nothing kept it is an error", async () => {
    await server.stop();
    expect(await failure(open())).toMatchObject({ code: "network", message: expect.stringContaining("journee.json can't be reached") });
    await server.start();
  });

  test.each([404, 403, 500, 503])("a server that answers %i is not an absent network", async (status) => {
    await load();
    server.trouble = (_, __, response) => Boolean(response.writeHead(status).end());
    expect(await failure(open())).toMatchObject({ code: "network", message: expect.stringContaining(`the server says ${status}`) });
  });

  test("nor is one that sends something else", async () => {
    await load();
    server.manifest = "<!doctype html>";
    expect(await failure(open())).toMatchObject({ code: "bad-bundle" });
    server.manifest = "{}";
    expect(await failure(open())).toMatchObject({ code: "bad-bundle" });
  });
});

describe("two tabs at once", () => {
  test("download each file once", async () => {
    const bundles = await Promise.all([load(), load(), load()]);
    expect(server.weights).toHaveLength(7);
    expect(bundles.reduce((sum, bundle) => sum + bundle.networkBytes, 0)).toBe(NEEDED);
    expect(bundles.reduce((sum, bundle) => sum + bundle.cachedBytes, 0)).toBe(2 * NEEDED);
  });

  test("the second goes on where the first is closed", async () => {
    let hold = true;
    server.trouble = (path, _, response) => {
      if (path !== WEIGHTS || !hold) return false;
      hold = false;
      response.writeHead(200, { "content-length": 200_000 }).write("begun");
      return true;
    };
    const [first, second] = [await open(), await open()];
    const begun = failure(first.read(WEIGHTS));
    await vi.waitFor(() => expect(server.weights).toHaveLength(1));
    const waiting = second.read(WEIGHTS);
    first.close();
    expect(await begun).toMatchObject({ code: "disposed" });
    same(await waiting, server.files.get(WEIGHTS));
  });

  test("without Web Locks nothing breaks", async () => {
    asBrowser(caches, null);
    const bundles = await Promise.all([load(), load()]);
    for (const bundle of bundles) expect(bundle.networkBytes + bundle.cachedBytes).toBe(NEEDED);
    expect((await load()).networkBytes).toBe(0);
  });
});

describe("an abort", () => {
  const reason = new Error("enough");

  test("before anything", async () => {
    expect(await failure(open({ signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(server.asked).toEqual([]);
  });

  test("at every step of a load: the signal's reason, and nothing half is kept", async () => {
    let steps = 0;
    let aborted = 0;
    await load({ onProgress: () => (steps += 1) });
    for (let at = 1; at <= steps; at += 1) {
      caches.entries.clear();
      const controller = new AbortController();
      let seen = 0;
      const onProgress = () => void (++seen === at && controller.abort(reason));
      const error = await load({ signal: controller.signal, onProgress }).catch((error: unknown) => error);
      // The last steps may come after the last file; then the load is whole.
      if (!(error instanceof Error)) continue;
      aborted++;
      expect(error).toBe(reason);
      const files = smallManifest(server.files)["files"];
      for (const name of caches.named("sha256")) {
        const record = Object.values<any>(files).find(({ sha256 }) => name.endsWith(sha256));
        expect(caches.entries.get(name)?.length).toBe(record.size);
      }
    }
    expect(aborted).toBeGreaterThan(steps / 2);
    await load();
  });

  test.each(["journee.json", WEIGHTS])("while %s hangs: at once", async (path) => {
    server.trouble = (asked, _, response) => asked === path && (response.writeHead(200).write("begun"), true);
    const controller = new AbortController();
    const loading = failure(load({ signal: controller.signal }));
    await vi.waitFor(() => expect(server.asked).toContain(path));
    controller.abort(reason);
    expect(await loading).toBe(reason);
    server.trouble = () => false;
    await load();
  });

  test.each(["open", "match", "put"] as const)("while the cache hangs in %s: at once", async (operation) => {
    const controller = new AbortController();
    let hung = false;
    const original = caches[operation].bind(caches) as (...given: unknown[]) => Promise<unknown>;
    Object.assign(caches, { [operation]: () => ((hung = true), new Promise(() => undefined)) });
    const loading = failure(load({ signal: controller.signal }));
    await vi.waitFor(() => expect(hung).toBe(true));
    controller.abort(reason);
    expect(await loading).toBe(reason);
    Object.assign(caches, { [operation]: original });
    asBrowser(caches, new FakeLocks());
    await load();
  });

  test("after the end changes nothing; closing ends what comes after", async () => {
    const controller = new AbortController();
    const bundle = await load({ signal: controller.signal });
    bundle.close();
    controller.abort(reason);
    expect(await failure(bundle.read(WEIGHTS))).toMatchObject({ code: "disposed" });
    bundle.close();
  });

  test("no rejection goes unheard", async () => {
    const unheard: unknown[] = [];
    const hear = (error: unknown) => unheard.push(error);
    process.on("unhandledRejection", hear);
    const controller = new AbortController();
    const loading = failure(load({ signal: controller.signal, onProgress: ({ loaded }) => void (loaded && controller.abort(reason)) }));
    expect(await loading).toBe(reason);
    await new Promise((resolve) => setTimeout(resolve, 50));
    process.off("unhandledRejection", hear);
    expect(unheard).toEqual([]);
  });
});

test("a page that is no secure context can't verify, and says what to do", async () => {
  vi.stubGlobal("crypto", {});
  expect(await failure(open())).toMatchObject({ code: "unsupported-browser", message: expect.stringContaining("serve the page over https") });
  expect(server.asked).toEqual([]);
});

describe("in Node, from disk", () => {
  let folder: string;

  beforeEach(async () => {
    folder = join(await mkdtemp(join(tmpdir(), "journee web ")), "a bundle #1%");
    for (const [path, content] of server.files) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), content);
    }
    await writeFile(join(folder, "journee.json"), server.manifest);
  });

  afterEach(() => rm(dirname(folder), { recursive: true }));

  test("by path or by URL, verified, neither network nor cache", async () => {
    for (const source of [folder, `${folder}/`, pathToFileURL(folder), pathToFileURL(folder).href]) {
      const seen: Progress[] = [];
      const bundle = await openBundle(source, { onProgress: (progress) => seen.push(progress) });
      for (const path of bundle.needed) same(await bundle.read(path), server.files.get(path));
      expect(bundle).toMatchObject({ networkBytes: 0, cachedBytes: 0, notes: [] });
      expect(seen.at(-1)).toMatchObject({ loaded: NEEDED, total: NEEDED, network: 0 });
    }
    expect(server.asked).toEqual([]);
    expect(caches.entries.size).toBe(0);
  });

  test("damaged, missing, or a link that leads out", async () => {
    const bundle = await openBundle(folder);
    await writeFile(join(folder, WEIGHTS), new Uint8Array(200_000));
    expect(await failure(bundle.read(WEIGHTS))).toMatchObject({ code: "hash-mismatch" });
    await rm(join(folder, WEIGHTS));
    expect(await failure(bundle.read(WEIGHTS))).toMatchObject({ code: "bad-bundle", message: expect.stringContaining("ENOENT") });
    const outside = `${folder} outside`;
    await writeFile(outside, server.files.get(WEIGHTS) as Uint8Array);
    await symlink(outside, join(folder, WEIGHTS));
    expect(await failure(bundle.read(WEIGHTS))).toMatchObject({ code: "bad-bundle", message: expect.stringContaining("a link leads out") });
    expect(await failure(openBundle(join(folder, "nothing")))).toMatchObject({ code: "bad-bundle" });
  });
});
