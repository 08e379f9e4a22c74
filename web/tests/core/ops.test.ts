/** The ops against the project's conformance cases: equal to the bit. */

import { describe, expect, test } from "vitest";
import { JourneeError } from "../../src/errors";
import { createOps, DEFAULT_SAMPLING, EMPTY, firstDart, Philox, philox, poisson, type TypedOps } from "../../src/ops";
import type { Sampling } from "../../src/types";
import { cases, floats, refusedName, sampling, unitsOf, vector, type Case } from "./cases";

type Input = Case["input"];

function opsOf(input: Input, chosen: Sampling = sampling(input.options)): TypedOps {
  return createOps({ size: input.size, prompt: input.prompt, sampling: chosen, ends: input.ends ?? [] });
}

function opsOver(...units: number[][]): TypedOps {
  const ops = createOps({ size: units[0]!.length, prompt: [0], sampling: DEFAULT_SAMPLING });
  for (const each of units) ops.keep(vector(each));
  return ops;
}

/** The answer, or the name of what was refused. */
function refusing(ask: () => unknown): unknown {
  try {
    return ask();
  } catch (error) {
    if (!(error instanceof JourneeError && error.code === "bad-request")) throw error;
    return { refused: refusedName(error.message) };
  }
}

const ANSWERS: Record<string, (input: Input) => unknown> = {
  philox: ({ counter, key }) => ({ words: philox(counter, key) }),

  below: ({ seed, sample, key, n }) => {
    const asked = refusing(() => new Philox(BigInt(`0x${seed}`), sample));
    if (!(asked instanceof Philox)) return asked;
    return n < 1 ? refusesBound(asked, key) : { value: asked.below(n, key) };
  },

  pick: ({ units, coin }) => ({ token: opsOver(units).locate(0, coin / 2 ** 50) }),

  distribution: input =>
    refusing(() => {
      const ops = opsOf(input);
      for (const token of input.generated) ops.push(token);
      try {
        const handle = ops.distribution(ops.hold(input.role, 0, [floats(input.logits)]));
        return handle === EMPTY ? { empty: true } : { units: unitsOf(ops.vector(handle)) };
      } catch (error) {
        const { code } = error as JourneeError;
        return { refused: code === "runtime" ? "logits" : "masked" };
      }
    }),

  poisson: ({ words }) => {
    let read = 0;
    const darts = poisson({ next: () => words[read++] });
    return { darts, words: read };
  },

  // The rules are Python's; here, what they answer follows from ops and draws alone (docs/distributions.md, 6 and 7).
  verdict: ({ rule, p, q, proposal, seed, sample, position, round }) => {
    const ops = opsOver(p, q);
    const draws = new Philox(BigInt(`0x${seed}`), sample);
    if (rule === "coupled") {
      const { token } = firstDart(ops, draws, 0, position);
      return { accepted: token === proposal, token };
    }
    const accepted = draws.below(q[proposal], [1, position, round]) < p[proposal];
    if (accepted) return { accepted, token: proposal };
    const left = ops.residual(0, 1);
    const coin = draws.below(ops.total(left) * 2 ** 50, [2, position, round]);
    return { accepted, token: ops.locate(left, coin / 2 ** 50) };
  },

  dart: ({ units, seed, sample, position }) =>
    firstDart(opsOver(units), new Philox(BigInt(`0x${seed}`), sample), 0, position),

  refusal: input =>
    refusing(() => {
      new Philox(BigInt(`0x${input.seed}`), input.sample);
      opsOf(input);
      return { accepted: true };
    }),
};

function refusesBound(draws: Philox, key: [number, number, number]): unknown {
  expect(() => draws.below(0, key)).toThrow("at least 1");
  return { refused: "n" };
}

describe("conformance", () => {
  test.each(Object.keys(ANSWERS))("%s", kind => {
    for (const { id, input, answer } of cases(kind)) expect(ANSWERS[kind]!(input), id).toEqual(answer);
  });
});

test("a spike is what its vector is", () => {
  const size = 70_000;
  const token = 66_000;
  const ops = createOps({ size, prompt: [0], sampling: DEFAULT_SAMPLING });
  const spike = ops.oneHot(token);
  const dense = ops.keep(ops.vector(spike));
  const row = Float32Array.from({ length: size }, (_, i) => Math.sin(i) * 4);
  const p = ops.distribution(ops.hold("target", 1, [row]));
  for (const other of [p, spike]) {
    expect(ops.overlap(other, spike)).toBe(ops.overlap(other, dense));
    expect(ops.overlap(spike, other)).toBe(ops.overlap(dense, other));
    expect(ops.agreement(spike, other)).toBe(ops.agreement(dense, other));
    expect(ops.vector(ops.residual(other, spike))).toEqual(ops.vector(ops.residual(other, dense)));
    expect(ops.vector(ops.residual(spike, other))).toEqual(ops.vector(ops.residual(dense, other)));
  }
  expect(ops.boxes(spike)).toEqual(ops.boxes(dense));
  expect(ops.top(spike, 3)).toEqual(ops.top(dense, 3));
  expect(ops.total(spike)).toBe(1);
  expect(ops.locate(spike, 0.5)).toBe(token);
});

test.each([50, 1000])("top-k of %d by a heap and by a sort keeps what a sort of all keeps", k => {
  const size = 4096;
  const row = Float32Array.from({ length: size }, (_, i) => Math.round(Math.sin(i * i) * 300) / 64); // with ties
  const ops = createOps({ size, prompt: [0], sampling: { ...DEFAULT_SAMPLING, topK: k } });
  const p = ops.vector(ops.distribution(ops.hold("target", 1, [row])));
  const least = row.slice().sort()[size - k]!;
  for (let token = 0; token < size; token++) expect(p[token]! > 0, String(token)).toBe(row[token]! >= least);
});

test("handles mean nothing after clear, and arrays are used again", () => {
  const ops = createOps({ size: 3, prompt: [0], sampling: DEFAULT_SAMPLING });
  const ask = () => ops.vector(ops.distribution(ops.hold("target", 1, [Float32Array.of(1, 2, 3)])));
  const once = ask();
  ops.clear();
  expect(() => ops.weight(0, 0)).toThrow("no vector 0");
  expect(() => ops.distribution(0)).toThrow("no row 0");
  expect(ask()).toEqual(once);
});

test("history is kept within the text", () => {
  const ops = createOps({ size: 3, prompt: [0, 1], sampling: DEFAULT_SAMPLING });
  ops.push(2);
  expect(() => ops.truncate(1)).toThrow("its prompt has 2");
  expect(() => ops.truncate(4)).toThrow("a history of 3");
});

test("a bias names a token once", () => {
  const twice = { ...DEFAULT_SAMPLING, logitBias: [[1, 1], [1, 2]] as const };
  expect(() => createOps({ size: 3, prompt: [0], sampling: twice })).toThrow("token 1 twice");
});
