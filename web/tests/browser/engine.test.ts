/** The built package in a real browser, on the trained pair. */

import { type Browser, type BrowserContext, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { launch, opened, Site } from "./harness";

const PROMPT = "The proof obligation is";
let browser: Browser;
let site: Site;
let context: BrowserContext;

beforeAll(async () => {
  browser = await launch();
  site = await Site.open();
}, 60_000);

afterAll(async () => {
  await browser?.close();
  await site?.close();
});

afterEach(async () => {
  await context?.close();
  site.asked.length = 0;
});

async function fresh(at = site): Promise<{ page: Page; complaints: string[] }> {
  context = await browser.newContext();
  return opened(context, at);
}

const weights = () => site.asked.filter((path) => /\/onnx\//.test(path));

describe("a load", () => {
  test("is verified, cached, tells its progress, and a second one asks the network for nothing but the manifest", async () => {
    const { page, complaints } = await fresh();
    const load = () =>
      page.evaluate(async () => {
        const seen: { stage: string; loaded: number; total: number; network: number }[] = [];
        const lm = await load("/models/tiny/", { onProgress: ({ stage, loaded, total, network }) => seen.push({ stage, loaded, total, network }) });
        const { info } = lm;
        const { text } = await lm.generate("The proof obligation is", { maxNewTokens: 8, temperature: 0 });
        await lm.dispose();
        return { seen, info, text };
      });
    const first = await load();
    const last = first.seen.at(-1);
    expect(last).toMatchObject({ stage: "ready", loaded: last?.total, network: last?.total });
    for (const [i, progress] of first.seen.entries()) {
      expect(progress.loaded).toBeGreaterThanOrEqual(first.seen[i - 1]?.loaded ?? 0);
      expect(progress.loaded).toBeLessThanOrEqual(progress.total || Infinity);
    }
    expect(new Set(first.seen.map(({ stage }) => stage))).toEqual(new Set(["manifest", "files", "models", "row-rule", "ready"]));
    expect(first.info).toMatchObject({ isolated: true, draft: "model", vocabularySize: 1024, contextLength: 4096, cachedBytes: 0, notes: [] });
    expect(first.info.rowRule).not.toBe("");
    expect(weights().length).toBe(4);
    site.asked.length = 0;
    const second = await load();
    expect(site.asked.filter((path) => path.startsWith("/models/"))).toEqual(["/models/tiny/journee.json"]);
    expect(second.info).toMatchObject({ networkBytes: 0, cachedBytes: last?.total });
    expect(second.info.rowRuleNote).toMatch(/known from an earlier self-test/);
    expect(second.text).toBe(first.text);
    expect(complaints).toEqual([]);
  });

  test("works when the network is gone, after the first one", async () => {
    const { page } = await fresh();
    await page.evaluate(async () => (await load("/models/tiny/")).dispose());
    await page.route("**/models/**", (route) => route.abort());
    const notes = await page.evaluate(async () => (await load("/models/tiny/")).info.notes);
    expect(notes.join()).toMatch(/network|offline/i);
  });

  test("mends a cache that was damaged", async () => {
    const { page } = await fresh();
    await page.evaluate(async () => (await load("/models/tiny/")).dispose());
    site.asked.length = 0;
    const damaged = await page.evaluate(async () => {
      let count = 0;
      for (const name of await caches.keys()) {
        const cache = await caches.open(name);
        for (const key of await cache.keys()) {
          const content = new Uint8Array(await (await cache.match(key))!.arrayBuffer());
          if (content.length < 1_000_000) continue;
          content[12_345]! ^= 1;
          await cache.put(key, new Response(content));
          count++;
        }
      }
      const lm = await load("/models/tiny/");
      await lm.generate("a", { maxNewTokens: 4 });
      return count;
    });
    expect(damaged).toBeGreaterThan(0);
    expect(weights().length).toBe(damaged);
  });

  test("refuses a download that was damaged, and keeps nothing of it", async () => {
    const { page } = await fresh();
    await page.route("**/target/onnx/*_data", async (route) => {
      const response = await route.fetch();
      const body = await response.body();
      body[1000]! ^= 255;
      await route.fulfill({ response, body });
    });
    const code = await page.evaluate(async () => load("/models/tiny/").then(() => "loaded", (error) => error.code));
    expect(code).toBe("hash-mismatch");
    await page.unroute("**/target/onnx/*_data");
    const text = await page.evaluate(async () => (await (await load("/models/tiny/")).generate("a", { maxNewTokens: 4 })).tokens.length);
    expect(text).toBe(4);
  });

  test("ends with the signal's reason when it is aborted, and the next one works", async () => {
    const { page } = await fresh();
    const found = await page.evaluate(async () => {
      const reasons: unknown[] = [];
      for (const stage of ["manifest", "files", "models", "row-rule"]) {
        const aborting = new AbortController();
        const onProgress = (progress: { stage: string }) => {
          if (progress.stage === stage) aborting.abort(`at ${stage}`);
        };
        await load("/models/tiny/", { signal: aborting.signal, onProgress, cache: false }).then(
          () => reasons.push("loaded"),
          (error: unknown) => reasons.push(error),
        );
      }
      const lm = await load("/models/tiny/");
      return [...reasons, (await lm.generate("a", { maxNewTokens: 4 })).tokens.length];
    });
    expect(found).toEqual(["at manifest", "at files", "at models", "at row-rule", 4]);
  });

  test.each([
    ["/models/nothing/", {}, "network", /nothing/],
    ["/models/tiny/", { draft: "other" }, "bad-request", /draft/],
    ["/models/tiny/", { threads: -1 }, "bad-request", /threads/],
    ["/models/tiny/", { controller: "cpython" }, "bad-request", /controller/],
  ])("of %s with %j is refused by a code", async (source, options, code, message) => {
    const { page } = await fresh();
    const error = await page.evaluate(
      async ([source, options]) => load(source as string, options as object).then(() => null, ({ code, message }) => ({ code, message })),
      [source, options] as const,
    );
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
  });

  test("in two tabs at once downloads every file once", async () => {
    context = await browser.newContext();
    const tabs = await Promise.all([opened(context, site), opened(context, site)]);
    const texts = await Promise.all(
      tabs.map(({ page }) => page.evaluate(async () => (await (await load("/models/tiny/")).generate("The", { maxNewTokens: 8, seed: 1 })).text)),
    );
    expect(texts[0]).toBe(texts[1]);
    expect(weights().length).toBe(4);
  });
});

describe("where the page is served", () => {
  test("without isolation headers it runs on one thread and says so", async () => {
    const open = await Site.open({ isolated: false });
    const { page } = await fresh(open);
    const found = await page.evaluate(async () => {
      const { info } = await load("/models/tiny/");
      const refused = await load("/models/tiny/", { threads: 2 }).catch(({ code, message }) => ({ code, message }));
      return { info, refused };
    });
    expect(found.info).toMatchObject({ isolated: false, threads: 1 });
    expect(found.refused).toMatchObject({ code: "unsupported-browser", message: expect.stringMatching(/Cross-Origin-Opener-Policy/) });
    await open.close();
  });

  test("with them it runs on two if asked to, and gives the same text", async () => {
    const { page } = await fresh();
    const [one, two] = await page.evaluate(async () => {
      const found = [];
      for (const threads of [1, 2]) {
        const lm = await load("/models/tiny/", { threads });
        const { text } = await lm.generate("The proof obligation is", { maxNewTokens: 24, temperature: 0 });
        found.push({ threads: lm.info.threads, text });
        await lm.dispose();
      }
      return found;
    });
    expect([one?.threads, two?.threads]).toEqual([1, 2]);
    expect(two?.text).toBe(one?.text);
  });

  test("under a CSP that forbids WebAssembly it says what to allow", async () => {
    const open = await Site.open({ csp: "default-src 'self'; script-src 'self'; worker-src 'self'" });
    const { page } = await fresh(open);
    const error = await page.evaluate(async () => load("/models/tiny/").then(() => null, ({ code, message }) => ({ code, message })));
    expect(error).toMatchObject({ code: "unsupported-browser", message: expect.stringMatching(/wasm-unsafe-eval/) });
    await open.close();
  });
});

describe("a generation", () => {
  test("is the same plain and speculative: greedy, and with rule coupled for a seed", async () => {
    const { page } = await fresh();
    const texts = await page.evaluate(async (prompt) => {
      const lm = await load("/models/tiny/");
      const run = async (options: object) => (await lm.generate(prompt, { maxNewTokens: 48, ...options })).tokens;
      return {
        greedy: [await run({ temperature: 0, draft: false }), await run({ temperature: 0 }), await run({ temperature: 0, speculationLength: 7 }), await run({ temperature: 0, speculationLength: "auto" })],
        coupled: [await run({ rule: "coupled", seed: 5, draft: false }), await run({ rule: "coupled", seed: 5 }), await run({ rule: "coupled", seed: 5, speculationLength: 2 })],
        residual: [await run({ seed: 5 }), await run({ seed: 5 })],
        other: await run({ seed: 6 }),
      };
    }, PROMPT);
    for (const { 0: first, ...rest } of [texts.greedy, texts.coupled, texts.residual]) for (const tokens of Object.values(rest)) expect(tokens).toEqual(first);
    expect(texts.other).not.toEqual(texts.residual[0]);
  });

  test("streams whole characters with their kinds, and a trace that says how each token came to be", async () => {
    const { page } = await fresh();
    const { pieces, generation } = await page.evaluate(async (prompt) => {
      const lm = await load("/models/tiny/");
      const stream = lm.stream(prompt, { maxNewTokens: 32, seed: 3, trace: true });
      const pieces = [];
      for await (const piece of stream) pieces.push(piece);
      const { text, tokens, kinds, report } = stream.generation();
      return { pieces, generation: { text, tokens, kinds, report: { ...report, seed: String(report.seed) } } };
    }, PROMPT);
    expect(pieces.map(({ text }) => text).join("")).toBe(generation.text);
    expect(generation.tokens.length).toBe(32);
    for (const piece of pieces) {
      const judgement = piece.judgement!;
      expect(judgement.token).toBe(piece.token);
      expect(judgement.kind).toBe(piece.kind);
      if (piece.kind === "accepted") expect(judgement.coin!).toBeLessThan(judgement.proposalP!);
      if (piece.kind === "recovered") expect(judgement.coin!).toBeGreaterThanOrEqual(judgement.proposalP!);
    }
    const { report } = generation;
    expect(report).toMatchObject({ seed: "3", rule: "residual", draft: "model", reason: "length", exact: true });
    expect(report.accepted).toBe(generation.kinds.filter((kind) => kind === "accepted").length);
    expect(report.predicted).toBeGreaterThan(0);
    expect(report.models["target"]!.runs).toBe(report.rounds.length);
    expect(report.seconds).toBeGreaterThan(report.firstSeconds);
  });

  test("runs at most one more round once it is aborted", async () => {
    const { page } = await fresh();
    const found = await page.evaluate(async (prompt) => {
      const lm = await load("/models/tiny/");
      const counts = [];
      for (let i = 0; i < 10; i++) {
        const aborting = new AbortController();
        let at = 0;
        let reason: unknown = null;
        try {
          for await (const piece of lm.stream(prompt, { maxNewTokens: 400, seed: i, signal: aborting.signal }))
            if (piece.count > 3 * i) {
              at ||= log.length;
              aborting.abort("enough");
            }
        } catch (error) {
          reason = error;
        }
        await lm.encode("a"); // answered after all that was asked before
        const since = log.slice(at);
        const asked = new Set(log.filter(({ sent }) => sent === "next").map(({ id }) => id));
        counts.push({ reason, rounds: since.filter(({ got, id, empty }) => got === "value" && asked.has(id) && !empty).length });
      }
      return { counts, after: (await lm.generate(prompt, { maxNewTokens: 4 })).tokens.length };
    }, PROMPT);
    for (const { reason, rounds } of found.counts) {
      expect(reason).toBe("enough");
      expect(rounds).toBeLessThanOrEqual(1);
    }
    expect(found.after).toBe(4);
  });

  test("may run beside others on the same model", async () => {
    const { page } = await fresh();
    const { together, alone } = await page.evaluate(async () => {
      const lm = await load("/models/tiny/");
      const run = async (seed: number) => (await lm.generate("def f(", { maxNewTokens: 24, seed })).tokens;
      return { together: await Promise.all([1, 2, 3].map(run)), alone: [await run(1), await run(2), await run(3)] };
    });
    expect(together).toEqual(alone);
  });

  test("refuses options that can't be honoured, before anything runs", async () => {
    const { page } = await fresh();
    const errors = await page.evaluate(async () => {
      const lm = await load("/models/tiny/");
      const all: object[] = [{ temperature: -1 }, { topP: 0 }, { seed: -1 }, { maxNewTokens: 0 }, { rule: "other" }, { maxTokens: 5 }, { draft: false, speculationLength: 3 }, { stop: "" }, { stopTokens: [[]] }, { logitBias: { 5000: 1 } }, { stopTokens: [1024] }];
      const codes = [];
      for (const options of all) codes.push(await (async () => lm.generate("a", options))().then(() => null, ({ code }) => code));
      for (const prompt of ["", [], [1024], "\ud800", "a".repeat(20_000)]) codes.push(await (async () => lm.generate(prompt))().then(() => null, ({ code }) => code));
      return codes;
    });
    expect(errors).toEqual(errors.map(() => "bad-request"));
  });

  test("ends with an error of code disposed when its model is disposed of", async () => {
    const { page } = await fresh();
    const codes = await page.evaluate(async () => {
      const lm = await load("/models/tiny/");
      const running = lm.generate("a", { maxNewTokens: 4000 }).then(() => null, ({ code }) => code);
      await new Promise((resolve) => setTimeout(resolve, 50));
      await lm.dispose();
      await lm.dispose();
      return [await running, await lm.generate("a").then(() => null, ({ code }) => code), await lm.encode("a").then(() => null, ({ code }) => code)];
    });
    expect(codes).toEqual(["disposed", "disposed", "disposed"]);
  });

  test("of 2,000 tokens leaves memory as it was", async () => {
    const { page } = await fresh();
    const sizes = await page.evaluate(async () => {
      const lm = await load("/models/tiny/");
      const measure = async () => (await (performance as unknown as { measureUserAgentSpecificMemory(): Promise<{ bytes: number }> }).measureUserAgentSpecificMemory()).bytes;
      const bias = { 0: -Infinity };
      await lm.generate("a", { maxNewTokens: 2000, seed: 1, logitBias: bias });
      const before = await measure();
      const tokens = (await lm.generate("a", { maxNewTokens: 2000, seed: 2, logitBias: bias })).tokens.length;
      return { before, after: await measure(), tokens };
    });
    expect(sizes.tokens).toBe(2000);
    expect(sizes.after - sizes.before).toBeLessThan(4e6);
  }, 180_000);
});

describe("the engine", () => {
  test("keeps graphs and interpreter off the page's thread", async () => {
    const { page } = await fresh();
    const found = await page.evaluate(async (prompt) => {
      const lm = await load("/models/tiny/");
      await lm.generate(prompt, { maxNewTokens: 16 });
      return { compiled, workers };
    }, PROMPT);
    expect(found).toEqual({ compiled: 0, workers: 1 });
  });

  test("runs the controller in Pyodide too, with the same tokens", async () => {
    const { page } = await fresh();
    const [small, large] = await page.evaluate(async (prompt) => {
      const found = [];
      for (const controller of ["micropython", "pyodide"] as const) {
        const lm = await load("/models/tiny/", { controller, pyodideUrl: "/pyodide/" });
        const tokens = [];
        for (const rule of ["residual", "coupled"] as const) tokens.push((await lm.generate(prompt, { maxNewTokens: 24, seed: 9, rule })).tokens);
        found.push({ name: lm.info.controller.name, tokens });
        await lm.dispose();
      }
      return found;
    }, PROMPT);
    expect([small?.name, large?.name]).toEqual(["micropython", "pyodide"]);
    expect(large?.tokens).toEqual(small?.tokens);
  }, 60_000);

  test("asks no other origin for anything", async () => {
    context = await browser.newContext();
    const origins = new Set<string>();
    context.on("request", (request) => origins.add(new URL(request.url()).origin));
    const { page } = await opened(context, site);
    await page.evaluate(async () => (await load("/models/tiny/")).generate("a", { maxNewTokens: 8 }));
    expect([...origins].filter((origin) => origin !== "null")).toEqual([new URL(site.url).origin]);
  });
});

describe("the law of the next token", () => {
  test("drawn plain and speculative is p, and drawn with the mistake it isn't", async () => {
    const { page } = await fresh();
    const found = await page.evaluate(async (prompt) => {
      const lm = await load("/models/tiny/");
      const { p, q } = await lm.nextToken(prompt);
      const ways = [];
      for (const way of ["plain", "speculative", "wrong"] as const) {
        let last = null;
        for await (const counts of lm.law(prompt, { way, draws: 4000, every: 1000, seed: 7 })) last = counts;
        ways.push([...last!.counts]);
      }
      return { p: [...p], q: q && [...q], ways };
    }, PROMPT);
    expect(found.p.reduce((sum, value) => sum + value, 0)).toBe(1);
    expect(found.q?.reduce((sum, value) => sum + value, 0)).toBe(1);
    const statistic = (counts: number[]) => {
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(4000);
      // Pearson's statistic over tokens that are expected at least 5 times, the others together; standardised.
      let rest = [0, 0];
      let sum = 0;
      let cells = 0;
      found.p.forEach((p, token) => {
        if (4000 * p < 5) rest = [rest[0]! + counts[token]!, rest[1]! + 4000 * p];
        else {
          sum += (counts[token]! - 4000 * p) ** 2 / (4000 * p);
          cells++;
        }
      });
      sum += (rest[0]! - rest[1]!) ** 2 / rest[1]!;
      return (sum - cells) / Math.sqrt(2 * cells);
    };
    const [plain, speculative, wrong] = found.ways.map(statistic);
    expect(plain).toBeLessThan(4);
    expect(speculative).toBeLessThan(4);
    expect(wrong).toBeGreaterThan(10);
  }, 120_000);
});
