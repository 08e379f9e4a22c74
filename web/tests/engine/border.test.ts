/** The worker's border, seen from the page: a worker that fails, that never answers, and what can't cross. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Answer, Call } from "../../src/calls";
import { plainError, revived } from "../../src/calls";
import { load } from "../../src/index";
import { openEngine } from "../../src/loading";

/** A worker that loads, and then does as told. */
class Fake {
  static made: Fake[] = [];
  static answer: (worker: Fake, call: Call) => void = () => {};
  onmessage: ((event: { data: Answer }) => void) | null = null;
  onerror: ((event: { message: string }) => void) | null = null;
  onmessageerror: (() => void) | null = null;
  ended = false;
  constructor() {
    Fake.made.push(this);
  }
  postMessage(call: Call) {
    structuredClone(call);
    queueMicrotask(() => Fake.answer(this, call));
  }
  tell(data: Answer) {
    this.onmessage?.({ data });
  }
  terminate() {
    this.ended = true;
  }
}

const loads = (worker: Fake, call: Call) => {
  if (call.kind === "load") worker.tell({ kind: "loaded", info: { draft: "none", rowRule: "" } as never });
};

beforeEach(() => {
  Fake.made = [];
  Fake.answer = loads;
  vi.stubGlobal("Worker", Fake);
  vi.stubGlobal("document", { baseURI: "https://here.example/page/" });
});
afterEach(() => vi.unstubAllGlobals());

const only = () => Fake.made[0] as Fake;

test("a worker that fails is ended, and what was asked of it or will be has the error", async () => {
  for (const fail of [() => only().onerror?.({ message: "boom" }), () => only().onmessageerror?.()]) {
    Fake.made = [];
    const lm = await load("/x/");
    const asked = [lm.encode("a"), lm.generate("a"), lm.nextToken("a"), lm.law("a", { way: "plain" }).next(), lm.decode([1])];
    const outcomes = Promise.all(asked.map((promise) => promise.then(() => "", (error: { code: string }) => error.code)));
    await Promise.resolve();
    fail();
    expect(await outcomes).toEqual(asked.map(() => "runtime"));
    await expect(lm.encode("b")).rejects.toMatchObject({ code: "runtime" });
    expect(only().ended).toBe(true);
    await lm.dispose();
  }
});

test("a worker that never answers is disposed of at once, and its callers are told", async () => {
  const lm = await load("/x/");
  const asked = lm.generate("a").catch((error: { code: string }) => error.code);
  await Promise.resolve();
  await Promise.all([lm.dispose(), lm.dispose()]);
  expect(await asked).toBe("disposed");
  expect(only().ended).toBe(true);
  await expect(lm.encode("b")).rejects.toMatchObject({ code: "disposed" });
});

test("what can't cross is a bad request, and nothing waits for it", async () => {
  const lm = await load("/x/");
  await expect(lm.encode((() => "a") as never)).rejects.toMatchObject({ code: "bad-request" });
  await expect(lm.generate((() => "a") as never)).rejects.toMatchObject({ code: "bad-request" });
  await expect(load("/x/", { draft: (() => "none") as never })).rejects.toMatchObject({ code: "bad-request" });
  expect(Fake.made.at(-1)?.ended).toBe(true);
});

test.each(["http://", "https://[", "//:80"])("no address: %s", async (address) => {
  await expect(load(address)).rejects.toMatchObject({ code: "bad-request" });
  expect(Fake.made).toEqual([]);
});

test("an abort ends a load with the signal's reason; a load that is over leaves nothing with the signal", async () => {
  const over = new AbortController();
  let listeners = 0;
  const [add, remove] = [over.signal.addEventListener.bind(over.signal), over.signal.removeEventListener.bind(over.signal)];
  over.signal.addEventListener = ((...args: Parameters<typeof add>) => (listeners++, add(...args))) as typeof add;
  over.signal.removeEventListener = ((...args: Parameters<typeof remove>) => (listeners--, remove(...args))) as typeof remove;
  await load("/x/", { signal: over.signal });
  expect(listeners).toBe(0);

  const leaving = new AbortController();
  Fake.answer = (worker, call) => {
    if (call.kind === "abort") setTimeout(() => worker.tell({ kind: "failed", error: { code: null, message: "", stack: "" } }));
  };
  const loading = load("/x/", { signal: leaving.signal });
  setTimeout(() => leaving.abort("enough"), 5);
  await expect(loading).rejects.toBe("enough");
  expect(Fake.made.at(-1)?.ended).toBe(true);
});

test.each([
  () => new Float32Array(2 ** 53),
  () => new ArrayBuffer(2 ** 53 - 1),
  () => { throw new RangeError("Array buffer allocation failed"); },
  () => { throw new RangeError("WebAssembly.Memory.grow(): could not allocate memory"); },
])("memory that isn't there is out-of-memory on the other side: %s", (allocate) => {
  let found: unknown = null;
  try {
    allocate();
  } catch (error) {
    found = error;
  }
  expect(revived(plainError(found)).code).toBe("out-of-memory");
  expect(revived(plainError(new RangeError("there is no vector 3"))).code).toBe("runtime");
});

test.each([{ drafts: "none" }, { thread: 1 }, { Cache: true }])("an option of load that there isn't: %o", async (options) => {
  const around = { threads: { isolated: false, most: 1, advice: "" }, controller: () => Promise.reject(new Error("not reached")) };
  await expect(openEngine("/x/", options as never, around, new AbortController().signal, () => {})).rejects.toMatchObject({ code: "bad-request" });
});
