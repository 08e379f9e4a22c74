/** Runs a generation to its end over rows of logits by the text before them, through caches that hold what was run. */

import { createOps, type TypedOps } from "../../src/ops";
import type { Controller, Emit, Run, Sampling, Spec } from "../../src/types";

export type Rows = (role: string, before: readonly number[]) => Float32Array;

export interface Asked {
  spec: Spec;
  size: number;
  sampling: Sampling;
  rows: Rows;
  /** Rounds after which to leave; all, if left out. */
  most?: number;
  ops?: TypedOps;
}

export function drive(controller: Controller, asked: Asked): Emit[] {
  const { spec, size, sampling } = asked;
  const ops = asked.ops ?? createOps({ size, prompt: spec.prompt, sampling, ends: spec.stops.ends });
  const generation = controller.begin(spec, ops);
  const caches = new Map<string, number[]>();
  const emits: Emit[] = [];
  try {
    let answer: number[] | null = null;
    for (;;) {
      const wish = generation.next(answer);
      if (wish === null) return emits;
      if (wish.kind === "run") answer = wish.runs.map(run => serve(run, caches, ops, asked.rows));
      else {
        emits.push(wish);
        answer = null;
        if (emits.length === asked.most) return emits;
      }
    }
  } finally {
    generation.close();
  }
}

function serve(run: Run, caches: Map<string, number[]>, ops: TypedOps, rows: Rows): number {
  const held = caches.get(run.role) ?? [];
  if (run.start > held.length || run.keep < 1 || run.keep > run.tokens.length) throw new Error("a run that does not fit");
  const text = [...held.slice(0, run.start), ...run.tokens];
  caches.set(run.role, text);
  const first = text.length - run.keep + 1;
  return ops.hold(
    run.role,
    first,
    Array.from({ length: run.keep }, (_, i) => rows(run.role, text.slice(0, first + i))),
  );
}

export function tokensOf(emits: readonly Emit[]): number[] {
  return emits.flatMap(emit => emit.tokens);
}
