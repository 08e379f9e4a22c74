/** The engine in Node, on the trained pair: texts against those of ONNX Runtime on CPU, by the same controller. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { GenerateOptions, LanguageModel } from "../../src/api";
import { load } from "../../src/node";

interface Live {
  prompt: string;
  options: Record<string, unknown> & { seed?: string };
  text: string;
  tokens: number[];
  kinds: string[];
  reason: string;
  margins: number[];
  p: number[];
}

const live = JSON.parse(readFileSync(new URL("../live.json", import.meta.url), "utf8")) as Live[];
const BUNDLE = fileURLToPath(new URL("../../../artifacts/tiny", import.meta.url));
/** Logits of the two runtimes differ by less. */
const CLOSE = 1e-3;

let lm: LanguageModel;
beforeAll(async () => {
  lm = await load(BUNDLE);
});
afterAll(async () => lm?.dispose());

const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
const asked = ({ options }: Live): GenerateOptions => ({
  maxNewTokens: 48,
  trace: true,
  ...Object.fromEntries(Object.entries(options).map(([name, value]) => [camel(name), value])),
  ...(options.seed === undefined ? {} : { seed: BigInt(options.seed) }),
});

test("it says what was loaded", () => {
  expect(lm.info).toMatchObject({ draft: "model", vocabularySize: 1024, contextLength: 4096, threads: 1, isolated: false });
  expect(lm.info.controller.name).toBe("micropython");
  expect(lm.info.rowRule).toBe("at least 1 row a run, start + rows a multiple of 4");
});

describe("texts are those of CPython and ONNX Runtime on CPU, up to decisions that were close", () => {
  let compared = 0;
  test.each(live.map((one) => [JSON.stringify(one.options), JSON.stringify(one.prompt), one] as const))("%s after %s", async (_, __, one) => {
    const found = await lm.generate(one.prompt, asked(one));
    const at = found.tokens.findIndex((token, i) => token !== one.tokens[i]);
    if (at < 0) {
      expect(found).toMatchObject({ text: one.text, kinds: one.kinds });
      expect(found.report.reason).toBe(one.reason);
      compared += found.tokens.length;
      return;
    }
    const judgement = found.report.judgements[at];
    console.log(`first difference at token ${at}: ${found.tokens[at]} for ${one.tokens[at]}, margin ${one.margins[at]}, p ${judgement?.p}, coin ${judgement?.coin}`);
    if (one.options["temperature"] === 0) expect(one.margins[at]).toBeLessThan(CLOSE);
    else expect(judgement?.coin !== null && Math.abs((judgement?.coin ?? 1) - (judgement?.proposalP ?? 0)) < CLOSE).toBe(true);
  });
  test("most of them to their end", () => expect(compared).toBeGreaterThan(0.9 * live.reduce((sum, { tokens }) => sum + tokens.length, 0)));
});

test("a seed gives the same text under rule coupled with any draft, and the greedy text is one", async () => {
  for (const options of [{ rule: "coupled", seed: 11 }, { temperature: 0 }] as const) {
    const texts: string[] = [];
    for (const draft of ["model", "ngram", "uniform", "none"] as const) {
      const one = await load(BUNDLE, { draft });
      texts.push((await one.generate("import os\n", { ...options, maxNewTokens: 32 })).text);
      await one.dispose();
    }
    expect(new Set(texts).size).toBe(1);
  }
});
