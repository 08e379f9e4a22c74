/** Whole generations: both interpreters give the tokens that CPython gave, from the same rows. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createController } from "../../src/controller";
import type { Controller, Spec } from "../../src/types";
import { cases, floats, sampling, type Case } from "./cases";
import { drive } from "./drive";

function specOf(input: Case["input"]): Spec {
  return {
    prompt: input.prompt,
    rule: input.rule,
    draft: input.draft === "model" ? { kind: "model", context: input.draft_context } : { kind: input.draft },
    pace: { kind: "constant", length: input.length },
    seed: BigInt(`0x${input.seed}`),
    sample: input.sample,
    stops: { limit: input.limit, reason: "length", ends: input.ends, sequences: input.stops, strings: null },
    trace: false,
  };
}

function answerOf(controller: Controller, input: Case["input"]): unknown {
  const known = new Map<string, string>(
    input.rows.map((row: Case["input"]) => [`${row.role} ${row.after.join(",")}`, row.logits]),
  );
  const emits = drive(controller, {
    spec: specOf(input),
    size: input.size,
    sampling: sampling(input.options),
    rows: (role, before) => floats(known.get(`${role} ${before.slice(input.prompt.length).join(",")}`)!),
  });
  return {
    tokens: emits.flatMap(emit => emit.tokens),
    kinds: emits.flatMap(emit => emit.kinds),
    reason: emits.at(-1)!.reason,
    rounds: emits.map(({ round: r }) => [r.length, r.proposed, r.judged, r.accepted, r.emitted, r.empty]),
  };
}

describe.each([
  ["micropython", "ops"],
  ["pyodide", "ops"],
  ["pyodide", "python"],
] as const)("%s, drawing in %s", (kind, draws) => {
  let controller: Controller;
  beforeAll(async () => {
    controller = await createController({ kind, draws });
  }, 60_000);
  afterAll(() => controller.dispose());

  test.each(["generation", "recorded"])("%s", name => {
    for (const { id, input, answer } of cases(name)) expect(answerOf(controller, input), id).toEqual(answer);
  }, 60_000);
});
