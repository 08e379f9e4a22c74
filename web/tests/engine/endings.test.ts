/** How an engine's work ends: disposed of, left or failed, at any moment, over a graph that is none and the shipped controller. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ModelInfo } from "../../src/api";
import { Client } from "../../src/client";
import { createController, type PythonController } from "../../src/controller/controller";
import { Engine } from "../../src/engine";
import { Model, type Cache, type Forward } from "../../src/rows/slots";
import type { Codec } from "../../src/text";
import type { Controller } from "../../src/types";

const SIZE = 20;
const CONTEXT = 400;

/** Rows that depend on the last token alone; `during` is awaited in every run. */
class Flat implements Forward {
  readonly name = "flat";
  readonly vocabularySize = SIZE;
  during: () => Promise<void> | void = () => {};
  runs = 0;
  constructor(readonly contextLength = CONTEXT) {}
  empty = (): Cache => ({ length: 0, parts: [] });
  trim = (_: Cache, length: number): Cache => ({ length, parts: [] });
  invent = (length: number): Cache => ({ length, parts: [] });
  async close() {}
  async run(past: Cache, tokens: readonly number[], _padding: number, keep: number) {
    this.runs++;
    await this.during();
    const rows = tokens.slice(-keep).map((token) => Float32Array.from({ length: SIZE }, (_, i) => ((i * 7 + token * 3) % 11) / 4));
    return { rows, cache: { length: past.length + tokens.length, parts: [] } };
  }
}

const codec = {
  size: SIZE,
  encode: (text: string) => Array.from(text, (letter) => letter.charCodeAt(0) - 97),
  decode: (tokens: readonly number[]) => String.fromCharCode(...tokens.map((token) => 97 + token)),
  check: () => {},
  last: (tokens: readonly number[], count: number) => tokens.slice(-count),
} as unknown as Codec;

let python: PythonController;
beforeAll(async () => {
  python = await createController({ kind: "micropython" });
});
afterAll(() => {
  expect(python.usage.live).toBe(0);
  python.dispose();
});

/** As in Node, where one interpreter serves all models: to dispose of one's share leaves it running. */
function opened(draftContext = CONTEXT) {
  const [target, draft] = [new Flat(), new Flat(draftContext)];
  const controller: Controller = { name: python.name, version: python.version, begin: (spec, ops) => python.begin(spec, ops), dispose: () => {} };
  const models = { target: new Model(target, 64), draft: new Model(draft, 64) };
  const info = { draft: "model", rowRule: "", contextLength: CONTEXT } as ModelInfo;
  const engine = new Engine(info, codec, controller, models, []);
  const slots = () => Object.values(models).map((model) => (model as unknown as { slots: Map<number, unknown> }).slots.size);
  return { target, draft, engine, lm: new Client(info, engine, false), slots };
}

const LONG = Array.from({ length: 200 }, (_, i) => i % SIZE);
const outcome = (promise: Promise<unknown>) => promise.then(() => "ends", (error: { code?: string }) => error.code ?? String(error));

describe("a model disposed of in the midst of a run ends what it does with an error of code disposed", () => {
  test.each([1, 2, 3, 5, 9])("run %d", async (nth) => {
    for (const ask of [
      (lm: Client) => lm.generate("abc", { seed: 1, maxNewTokens: 60 }),
      (lm: Client) => lm.generate(LONG, { seed: 1, maxNewTokens: 60 }),
      (lm: Client) => lm.generate("abc", { seed: 1, speculationLength: "auto", maxNewTokens: 60 }),
      (lm: Client) => lm.generate("abc", { draft: false, maxNewTokens: 60 }),
    ]) {
      const { target, lm, slots } = opened();
      let disposing: Promise<void> | null = null;
      target.during = () => {
        if (target.runs === nth) disposing = lm.dispose();
      };
      expect(await outcome(ask(lm))).toBe("disposed");
      await disposing;
      expect(slots()).toEqual([0, 0]);
      expect(python.usage.live).toBe(0);
    }
  });

  test("in a law and a look at the next token", async () => {
    for (const ask of [
      (lm: Client) => lm.nextToken(LONG),
      async (lm: Client) => { for await (const _ of lm.law(LONG, { way: "speculative", draws: 1000, every: 10 })); },
    ]) {
      const { target, lm, slots } = opened();
      target.during = () => void (target.runs === 2 && lm.dispose());
      expect(await outcome(ask(lm))).toBe("disposed");
      expect(slots()).toEqual([0, 0]);
    }
    expect(python.usage.live).toBe(0);
  });
});

test("a stream that is left in the chunks of its prompt is done, and is no error", async () => {
  const { target, lm, slots } = opened();
  const stream = lm.stream(LONG, { seed: 1 });
  let left: Promise<unknown> | undefined;
  target.during = () => void (left ??= stream.return?.());
  expect(await stream.next()).toEqual({ done: true, value: undefined });
  await left;
  expect(target.runs).toBe(1);
  expect(slots()).toEqual([0, 0]);
});

test("two that ask for speculationLength auto at once measure once", async () => {
  const [once, twice] = [opened(), opened()];
  const auto = { speculationLength: "auto", maxNewTokens: 1, seed: 1 } as const;
  await once.lm.generate("abc", auto);
  await Promise.all([twice.lm.generate("abc", auto), twice.lm.generate("abc", auto)]);
  expect(twice.target.runs - once.target.runs).toBeLessThan(5);
});

test("after a run that failed, other generations and later ones are what they would have been", async () => {
  const { target, lm, slots } = opened();
  const options = { seed: 5, maxNewTokens: 40 };
  const expected = (await lm.generate("abc", options)).tokens;
  const other = lm.stream("abc", options);
  await other.next();
  for (const nth of [1, 2, 3]) {
    const start = target.runs;
    target.during = () => {
      if (target.runs === start + nth) throw new RangeError("Array buffer allocation failed");
    };
    expect(await outcome(lm.generate(LONG, options))).not.toBe("ends");
    target.during = () => {};
  }
  for await (const _ of other);
  expect(other.generation().tokens).toEqual(expected);
  expect((await lm.generate("abc", options)).tokens).toEqual(expected);
  expect(slots()).toEqual([0, 0]);
});

test.each([1, 2, 3, 5, 50, 199, 200, 201, 203, 399])("a draft with a context of 200, a prompt of %d: text to the end of the target's context", async (length) => {
  const { lm, slots } = opened(200);
  const prompt = Array.from({ length }, (_, i) => i % SIZE);
  const found = await lm.generate(prompt, { maxNewTokens: 10_000, seed: 3, sample: 1, speculationLength: 64 });
  expect([found.tokens.length, found.report.reason]).toEqual([CONTEXT - length, "context"]);
  if (length < CONTEXT - 1) {
    let last;
    for await (const counts of lm.law(prompt, { way: "speculative", draws: 20, every: 7 })) last = counts;
    expect(last?.draws).toBe(20);
    expect((await lm.nextToken(prompt)).q === null).toBe(length > 200);
  }
  expect(slots()).toEqual([0, 0]);
});
