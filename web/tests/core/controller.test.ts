/** What the bridge must hold to, in both interpreters: CPython's answers, errors held, `finally` run, nothing kept. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createController, type PythonController } from "../../src/controller";
import { JourneeError } from "../../src/errors";
import { createOps, DEFAULT_SAMPLING, TypedOps } from "../../src/ops";
import type { Emit, Judgement, Run, Spec, Wish } from "../../src/types";
import { cases, double, vector } from "./cases";
import { drive, tokensOf } from "./drive";
import { paceOf, recorded, samplingOf, SIZE, textOf, toyRows, type Recorded } from "./toys";

const PROMPT = [1, 2, 1];

function spec(changes: Partial<Spec> = {}, stops: Partial<Spec["stops"]> = {}): Spec {
  return {
    prompt: PROMPT,
    rule: "residual",
    draft: { kind: "model", context: 0 },
    pace: { kind: "constant", length: 3 },
    seed: 5n,
    sample: 3,
    trace: false,
    ...changes,
    stops: { limit: 30, reason: "length", ends: [], sequences: [], strings: null, ...stops },
  };
}

function toyOps(): TypedOps {
  return createOps({ size: SIZE, prompt: PROMPT, sampling: DEFAULT_SAMPLING });
}

function tokens(controller: PythonController, asked: Spec): number[] {
  return tokensOf(drive(controller, { spec: asked, size: SIZE, sampling: DEFAULT_SAMPLING, rows: toyRows }));
}

function again(controller: PythonController, one: Recorded): unknown {
  const asked = spec(
    {
      rule: one.rule,
      draft: one.draft === "model" ? { kind: "model", context: 0 } : { kind: one.draft },
      pace: paceOf(one),
      seed: BigInt(`0x${one.seed}`),
      trace: true,
    },
    {
      ends: [0],
      sequences: [[7, 7]],
      strings: one.stop === "" ? null : (old, fresh) => textOf([...old, ...fresh]).includes(one.stop),
    },
  );
  const emits = drive(controller, { spec: asked, size: SIZE, sampling: samplingOf(one), rows: toyRows });
  return {
    tokens: tokensOf(emits),
    kinds: emits.flatMap(emit => emit.kinds.map(kind => kind[0])).join(""),
    rounds: emits.map(({ round: r }) => [r.length, r.proposed, r.judged, r.accepted, r.emitted, r.empty, r.rows]),
    reason: emits.at(-1)!.reason,
    judgements: emits.at(-1)!.judgements.map(it => flat(it, one.rule)),
  };
}

function flat(it: Judgement, rule: string): unknown[] {
  const predicted = rule === "coupled" ? null : it.predicted;
  return [it.token, it.kind, it.proposal, it.p, it.proposalP, it.proposalQ, it.coin, it.tv, predicted, it.top, it.logits];
}

function readFloats(judgement: Recorded["judgements"][number]): unknown[] {
  const pairs = (found: unknown) => (found as [number, string][]).map(([token, value]) => [token, double(value)]);
  return judgement.map((value, i) =>
    i > 8 ? pairs(value) : i > 2 && value !== null ? double(value as string) : value,
  );
}

/** A round over distributions as given: rows are handles to them. */
class Given extends TypedOps {
  constructor(length: number, size: number) {
    super({ size, prompt: new Array<number>(length).fill(0), sampling: DEFAULT_SAMPLING });
  }

  give(units: readonly (readonly number[] | null)[]): number {
    const handles = units.map(each => (each === null ? -1 : this.keep(vector(each))));
    return this.hold("given", 0, handles.map(handle => Float32Array.of(handle)));
  }

  override distribution(row: number): number {
    return this.topLogits(row, 1)[0]![1];
  }
}

describe.each([
  ["micropython", "ops"],
  ["pyodide", "ops"],
  ["micropython", "python"],
] as const)("%s, drawing in %s", (kind, draws) => {
  let controller: PythonController;
  beforeAll(async () => {
    controller = await createController({ kind, draws });
  }, 60_000);
  afterAll(() => controller.dispose());

  test("gives what CPython gave: rules, drafts, paces, options, stops, seeds to 2^64 - 1, traces", () => {
    for (const [number, one] of recorded().entries()) {
      if (draws === "python" && number % 6) continue; // slow, and the same
      const { tokens, kinds, rounds, reason } = one;
      const judgements = one.judgements.map(readFloats);
      expect(again(controller, one), JSON.stringify([one.rule, one.draft, one.options, one.pace])).toEqual({
        tokens, kinds, rounds, reason, judgements,
      });
    }
  }, 120_000);

  test("rounds of the conformance cases", () => {
    for (const { id, input, answer } of cases("round")) {
      const { position, p, q } = input as { position: number; p: number[][]; q: (number[] | null)[] };
      const ops = new Given(position, p[0]!.length);
      const asked = spec(
        {
          prompt: new Array<number>(position).fill(0),
          rule: input.rule,
          pace: { kind: "constant", length: q.length },
          seed: BigInt(`0x${input.seed}`),
          sample: input.sample,
        },
        { limit: 1 << 20 },
      );
      const generation = controller.begin(asked, ops);
      let wish = generation.next(null);
      let drafted = 0;
      let proposals: number[] = [];
      while (wish?.kind === "run") {
        const [run] = wish.runs;
        if (run!.role === "target") proposals = [...run!.tokens.slice(position - run!.start)];
        wish = generation.next([run!.role === "target" ? ops.give(p) : ops.give([q[drafted++]!])]);
      }
      generation.close();
      const { tokens, kinds } = wish as Emit;
      expect({ proposals, tokens, kinds }, id).toEqual(answer);
    }
  });

  test("an op that throws: its error comes out, `finally` ran, and the interpreter is as good as before", () => {
    const before = tokens(controller, spec());
    for (const name of ["distribution", "locate", "weight", "push", "boxes", "clear", "truncate"] as const) {
      const ops = toyOps();
      const calls: string[] = [];
      const wrong = new Error(`no ${name}`);
      ops.clear = () => (calls.push("clear"), TypedOps.prototype.clear.call(ops));
      ops.truncate = length => (calls.push(`truncate ${length}`), TypedOps.prototype.truncate.call(ops, length));
      ops[name] = () => {
        throw wrong;
      };
      const asked = spec(name === "boxes" ? { rule: "coupled" } : {});
      const run = () => drive(controller, { spec: asked, size: SIZE, sampling: DEFAULT_SAMPLING, rows: toyRows, ops });
      expect(run, name).toThrow(wrong);
      if (name !== "clear" && name !== "truncate") expect(calls.slice(-2)).toEqual(["truncate 3", "clear"]);
      expect(controller.usage.live).toBe(0);
    }
    expect(tokens(controller, spec())).toEqual(before);
  });

  test("a stop callback that throws", () => {
    const wrong = new Error("no text");
    const strings = (): boolean => {
      throw wrong;
    };
    expect(() => tokens(controller, spec({}, { strings }))).toThrow(wrong);
    expect(controller.usage.live).toBe(0);
  });

  test("a stop callback sees the whole text, a token at a time", () => {
    const seen: string[] = [];
    const strings = (old: number[], fresh: number[]) => (seen.push(`${old.join()}|${fresh.join()}`), false);
    const all = tokens(controller, spec({}, { strings }));
    expect(seen).toEqual(all.map((token, i) => `${all.slice(0, i).join()}|${token}`));
  });

  test("closing in the middle runs `finally`, once", () => {
    for (const steps of [0, 1, 2, 5]) {
      const ops = toyOps();
      let truncated = 0;
      ops.truncate = length => (truncated++, TypedOps.prototype.truncate.call(ops, length));
      const generation = controller.begin(spec(), ops);
      let answer: number[] | null = null;
      for (let i = 0; i < steps; i++) {
        const wish: Wish = generation.next(answer)!;
        const rows = (run: Run) => new Array<Float32Array>(run.keep).fill(toyRows("target", PROMPT));
        answer = wish.kind === "run" ? wish.runs.map(run => ops.hold(run.role, 1, rows(run))) : null;
      }
      const before = truncated;
      generation.close();
      expect(truncated - before).toBe(steps === 0 ? 0 : 1);
      generation.close();
      expect(truncated - before).toBe(steps === 0 ? 0 : 1);
      expect(generation.next(null)).toBeNull();
      expect(controller.usage.live).toBe(0);
    }
  });

  test("two generations may take turns", () => {
    const seeds = [8n, 9n];
    const alone = seeds.map(seed => tokens(controller, spec({ seed, draft: { kind: "none" } })));
    const every = seeds.map(seed => {
      const ops = toyOps();
      return { ops, generation: controller.begin(spec({ seed, draft: { kind: "none" } }), ops), answer: null as number[] | null, text: [...PROMPT] };
    });
    for (let i = 0; i < 60; i++) {
      for (const one of every) {
        const wish = one.generation.next(one.answer)!;
        one.answer = wish.kind === "run" ? [one.ops.hold("target", one.text.length, [toyRows("target", one.text)])] : null;
        if (wish.kind === "emit") one.text.push(...wish.tokens);
      }
    }
    every.forEach(one => one.generation.close());
    expect(every.map(one => one.text.slice(3))).toEqual(alone);
  });

  test("generations over vocabularies of different sizes keep theirs", () => {
    const asked = spec({ rule: "coupled", draft: { kind: "none" } });
    const alone = tokens(controller, asked);
    const ops = toyOps();
    const generation = controller.begin(asked, ops);
    controller.begin(spec(), createOps({ size: 4, prompt: PROMPT, sampling: DEFAULT_SAMPLING })).close();
    const text = [...PROMPT];
    for (let answer: number[] | null = null; ; ) {
      const wish = generation.next(answer);
      if (!wish) break;
      answer = wish.kind === "run" ? [ops.hold("target", text.length, [toyRows("target", text)])] : null;
      if (wish.kind === "emit") text.push(...wish.tokens);
    }
    generation.close();
    expect(text.slice(PROMPT.length)).toEqual(alone);
  });

  test.each([
    ["limit", spec({}, { limit: 0 }), "the limit is 0 new tokens; it must be at least 1"],
    ["prompt", spec({ prompt: [] }), "the prompt has no tokens"],
    ["K", spec({ pace: { kind: "constant", length: -1 } }), "speculation length is -1"],
    ["cost", spec({ pace: { kind: "adaptive", draft: NaN, row: 0, free: 1, most: 4 } }), "the cost `draft` is nan"],
    ["most", spec({ pace: { kind: "adaptive", draft: 0, row: 0, free: 1, most: 17 } }), "from 1 to 16"],
    ["sequence", spec({}, { sequences: [[]] }), "a stop sequence has no tokens"],
    ["seed", spec({ seed: 1n << 64n }), "seed is 18446744073709551616"],
    ["sample", spec({ sample: -1 }), "sample is -1"],
    ["broken K", spec({ pace: { kind: "constant", length: 1.5 } }), "length is 1.5"],
    ["broken limit", spec({}, { limit: 2.5 }), "limit is 2.5"],
    ["huge limit", spec({}, { limit: 2 ** 40 }), "limit is 1099511627776"],
    ["broken token", spec({ prompt: [1.5] }), "1.5 is no token"],
  ])("refuses a bad %s at once", (_, asked, message) => {
    let error: unknown;
    try {
      controller.begin(asked, toyOps());
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(JourneeError);
    expect((error as JourneeError).code).toBe("bad-request");
    expect((error as JourneeError).message).toContain(message);
    expect((error as JourneeError).message).not.toContain("Traceback");
    expect(controller.usage.live).toBe(0);
  });

  test("an error of Python's own has its traceback", () => {
    const ops = toyOps();
    const generation = controller.begin(spec({ draft: { kind: "none" } }), ops);
    generation.next(null);
    let error: unknown;
    try {
      generation.next([0, 1]); // one run was asked for
    } catch (caught) {
      error = caught;
    }
    expect(error).toMatchObject({ name: "JourneeError", code: "runtime" });
    expect((error as Error).message).toMatch(/Traceback[^]*speculate\.py[^]*ValueError/);
  });

  test("broken logits", () => {
    const rows = () => new Float32Array(SIZE).fill(NaN);
    const run = () => drive(controller, { spec: spec(), size: SIZE, sampling: DEFAULT_SAMPLING, rows });
    expect(run).toThrow("draft logits at position 3: token 0 is NaN");
  });

  test("a callback may not call the controller", () => {
    const strings = () => tokens(controller, spec()).length > 0;
    expect(() => tokens(controller, spec({}, { strings }))).toThrow("out of a function that it called");
    expect(controller.usage.live).toBe(0);
  });

  test("rule wrong emits draws from p where residual emits what is left of it", () => {
    const [p, q] = [[2 ** 49, 2 ** 49], [2 ** 50, 0]];
    const count = (rule: Spec["rule"]): number => {
      let zeros = 0;
      for (let seed = 0n; seed < 400n; seed++) {
        const ops = new Given(1, 2);
        const generation = controller.begin(spec({ rule, seed, prompt: [0], pace: { kind: "constant", length: 1 } }), ops);
        let wish = generation.next(null);
        while (wish?.kind === "run") wish = generation.next([ops.give(wish.runs[0]!.role === "target" ? [p, p] : [q])]);
        generation.close();
        if ((wish as Emit).tokens[0] === 0) zeros++;
      }
      return zeros;
    };
    expect(Math.abs(count("residual") - 200)).toBeLessThan(60); // six standard deviations; half of all
    expect(Math.abs(count("wrong") - 300)).toBeLessThan(52); // and here three quarters
  });

  test.runIf(kind === "micropython" && draws === "ops")("5,000 tokens and 300 generations leave nothing behind", () => {
    const ops = toyOps();
    const generation = controller.begin(spec({ rule: "coupled" }, { limit: 1 << 30 }), ops);
    const handles = () => (globalThis as { proxy_js_ref?: unknown[] }).proxy_js_ref?.length ?? 0;
    const caches = new Map<string, number[]>();
    let answer: number[] | null = null;
    let emitted = 0;
    const marks: { bytes: number; handles: number }[] = [];
    while (emitted < 5000) {
      const wish: Wish = generation.next(answer)!;
      answer = null;
      if (wish.kind === "emit") {
        emitted += wish.tokens.length;
        if (emitted >= 1000 * (marks.length + 1)) marks.push({ bytes: controller.usage.bytes, handles: handles() });
        continue;
      }
      answer = wish.runs.map(run => {
        const text = (caches.get(run.role) ?? []).slice(0, run.start).concat(run.tokens);
        caches.set(run.role, text);
        const first = text.length - run.keep + 1;
        return ops.hold(run.role, first, Array.from({ length: run.keep }, (_, i) => toyRows(run.role, text.slice(first + i - 2, first + i))));
      });
    }
    generation.close();
    // What stays is the text and a pair of counts a round, some 50 bytes a token.
    expect(marks.at(-1)!.bytes - marks[0]!.bytes).toBeLessThan(4000 * 80);
    expect(marks.at(-1)!.handles).toBe(marks[0]!.handles);

    tokens(controller, spec());
    const before = controller.usage.bytes;
    for (let i = 0; i < 300; i++) tokens(controller, spec({ seed: BigInt(i) }, { limit: 5 }));
    expect(controller.usage.bytes - before).toBeLessThan(4096);
    expect(handles()).toBe(marks[0]!.handles);
  }, 60_000);
});

test("one MicroPython a realm; after dispose another may come, and the old one refuses", async () => {
  const first = await createController({ kind: "micropython" });
  await expect(createController({ kind: "micropython" })).rejects.toThrow("one");
  first.dispose();
  expect(() => first.begin(spec(), toyOps())).toThrow("disposed");
  const second = await createController({ kind: "micropython" });
  expect(second.version).toBe("1.27.0");
  expect(tokens(second, spec())).toHaveLength(30);
  second.dispose();
});
