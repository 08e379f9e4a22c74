import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { readManifest, type Manifest } from "../../src/manifest";
import { seeded } from "../../src/rows/random";
import { CANDIDATES, NO_RULE, RowRule } from "../../src/rows/row_rule";
import { findRowRule } from "../../src/rows/self_test";
import { type Cache, type Forward, Model, noCounters, Runner } from "../../src/rows/slots";
import { openForward, prepare } from "../../src/session";

const bundle = new URL("../../../artifacts/tiny/", import.meta.url);

/** A row is a hash of its prefix; `flaw` says how a run's shape leaks into it. */
class Toy implements Forward {
  readonly name = "toy";
  readonly vocabularySize = 8;
  readonly contextLength = 3000;
  runs: { past: number; tokens: number; keep: number }[] = [];

  constructor(private readonly flaw: (past: number, rows: number) => number = () => 0) {}

  empty(): Cache {
    return { length: 0, parts: [new Float32Array(0)] };
  }

  async run(past: Cache, tokens: readonly number[], padding: number, keep: number) {
    this.runs.push({ past: past.length, tokens: tokens.length, keep });
    const state = [...(past.parts[0] as Float32Array)];
    for (const token of tokens) state.push(((state.at(-1) ?? 1) * 31 + token + 7) % 65_521);
    const leak = this.flaw(past.length, tokens.length);
    const rows = state.slice(state.length - keep).map((value) => Float32Array.from({ length: 8 }, (_, i) => value * (i + 1) + leak));
    void padding;
    return { rows, cache: { length: state.length, parts: [Float32Array.from(state)] } };
  }

  trim(cache: Cache, length: number): Cache {
    return { length, parts: [(cache.parts[0] as Float32Array).slice(0, length)] };
  }

  invent(length: number, random: () => number): Cache {
    return { length, parts: [Float32Array.from({ length }, () => Math.floor(random() * 65_521))] };
  }

  async close() {}
}

describe("the self-test finds the cheapest rule that holds", () => {
  const flaws: [string, (past: number, rows: number) => number, RowRule | null][] = [
    ["a sound graph", () => 0, NO_RULE],
    ["one row alone differs", (_, rows) => Number(rows === 1), new RowRule(2, 1)],
    ["a total that isn't a multiple of 4 differs", (past, rows) => (past + rows) % 4, new RowRule(1, 4)],
    ["both", (past, rows) => ((past + rows) % 4) + 8 * Number(rows === 1), new RowRule(2, 4)],
    ["a total that isn't a multiple of 8 differs", (past, rows) => (past + rows) % 8, new RowRule(2, 8)],
    ["any run that isn't 8 rows differs", (_, rows) => rows - 8, new RowRule(8, 8, true)],
    ["a row differs from run to run", () => Math.random(), null],
    ["only a past beyond 2,000 differs", (past, rows) => Number(past > 2000) * rows, new RowRule(8, 8, true)],
  ];
  test.each(flaws)("%s", async (_, flaw, rule) => {
    expect((await findRowRule(new Runner(new Toy(flaw), 64))).rule).toEqual(rule);
  });

  test("and ends when it is told to", async () => {
    const end = async () => Promise.reject(new Error("told"));
    await expect(findRowRule(new Runner(new Toy(), 64), end)).rejects.toThrow("told");
  });
});

describe("slots", () => {
  test("under every rule, random steps and rewinds give the rows of the prefix", async () => {
    const text = Array.from({ length: 400 }, (_, i) => (i * i + 3 * i) % 8);
    const expected = (await new Toy().run(new Toy().empty(), text, 0, text.length)).rows;
    for (const rule of CANDIDATES) {
      const runner = new Runner(new Toy(), 64);
      const slot = runner.fresh();
      const random = seeded(rule.rows * 100 + rule.multiple);
      for (let i = 0; i < 60; i++) {
        const start = Math.floor(random() * (slot.tokens.length + 1));
        const count = 1 + Math.floor(random() * Math.min(90, 399 - start));
        const keep = 1 + Math.floor(random() * count);
        const rows = await runner.step(slot, text.slice(start, start + count), start, keep, rule, noCounters());
        expect(rows).toEqual(expected.slice(start + count - keep, start + count));
        expect(slot.tokens).toEqual(text.slice(0, start + count));
      }
    }
  });

  test("plain decoding at two rows a run trims nothing and has no padding but the first", async () => {
    const toy = new Toy();
    let trims = 0;
    const trim = toy.trim.bind(toy);
    toy.trim = (cache, length) => (trims++, trim(cache, length));
    const runner = new Runner(toy);
    const slot = runner.fresh();
    const counters = noCounters();
    for (let at = 0; at < 40; at++) await runner.step(slot, [at % 8], at, 1, new RowRule(2, 1), counters);
    expect(trims).toBe(0);
    expect(counters).toMatchObject({ runs: 40, rows: 40, padding: 40 });
  });

  test.each([
    [[], 0, 1, /without tokens/],
    [[1], 0, 2, /keep/],
    [[1], 3, 1, /start is 3/],
    [[9], 0, 1, /token 9/],
    [new Array(3001).fill(1), 0, 1, /context/],
  ])("refuse a step that is wrong", async (tokens: number[], start, keep, message) => {
    await expect(new Model(new Toy()).run(1, tokens, start, keep)).rejects.toThrow(message);
  });

  test("a run that fails leaves what was run", async () => {
    const toy = new Toy();
    const runner = new Runner(toy, 64);
    const slot = runner.fresh();
    const run = toy.run.bind(toy);
    let left = 2;
    toy.run = async (...args) => (left-- ? run(...args) : Promise.reject(new Error("no memory")));
    const text = new Array<number>(200).fill(3);
    await expect(runner.step(slot, text, 0, 1, NO_RULE, noCounters())).rejects.toThrow("no memory");
    expect(slot.tokens.length).toBe(128);
    toy.run = run;
    const expected = (await toy.run(toy.empty(), text, 0, 1)).rows;
    expect(await runner.step(slot, text.slice(128), 128, 1, NO_RULE, noCounters())).toEqual(expected);
  });
});

describe("the trained pair in WebAssembly", () => {
  let manifest: Manifest;
  const open = async (name: "target" | "draft") => {
    const role = manifest[name];
    if (!role) throw new Error(`no ${name}`);
    const files = [role.graph.file, ...role.graph.weights].map((file): [string, Uint8Array] => [file, readFileSync(new URL(file, bundle))]);
    return openForward(role, new Map(files));
  };
  beforeAll(() => {
    prepare(1);
    manifest = readManifest(readFileSync(new URL("journee.json", bundle), "utf8"));
  });

  test("the target has a row rule", async () => {
    const forward = await open("target");
    const found = await findRowRule(new Runner(forward));
    expect(found.rule).not.toBeNull();
    expect(found.rows).toBeGreaterThan(700);
    console.log(`row rule of the tiny target in WebAssembly: ${found.rule}, ${found.rows} rows compared`);
    await forward.close();
    await expect(forward.run(forward.empty(), [1], 0, 1)).rejects.toMatchObject({ code: "disposed" });
  }, 60_000);

  test("a graph that isn't what the manifest says is refused by name", async () => {
    const draft = manifest.draft as NonNullable<Manifest["draft"]>;
    manifest = { ...manifest, draft: { ...draft, kvHeads: 7 } };
    await expect(open("draft")).rejects.toMatchObject({ code: "bad-bundle", message: expect.stringMatching(/past_key_values\.0\.key/) });
    manifest = { ...manifest, draft: { ...draft, graph: { ...draft.graph, inputs: { ...draft.graph.inputs, mask: "mask" } } } };
    await expect(open("draft")).rejects.toMatchObject({ code: "bad-bundle", message: expect.stringMatching(/mask/) });
  });
});
