/** The project's conformance cases (conformance/README.md), and what reads their numbers. */

import { readFileSync } from "node:fs";
import { DEFAULT_SAMPLING } from "../../src/ops";
import type { Sampling } from "../../src/types";

const FOLDER = new URL("../../../conformance/journee_conformance/cases/", import.meta.url);

export interface Case {
  id: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  input: any;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  answer: any;
}

/** The cases of a file; its first line says how many. */
export function cases(name: string): Case[] {
  const [head, ...lines] = readFileSync(new URL(`${name}.jsonl`, FOLDER), "utf8").trim().split("\n");
  const { count } = JSON.parse(head!) as { count: number };
  if (lines.length !== count) throw new Error(`${name}.jsonl has ${lines.length} cases, and says ${count}`);
  return lines.map(line => JSON.parse(line) as Case);
}

const view = new DataView(new ArrayBuffer(8));

/** A row of logits: eight hexadecimal digits a float32. */
export function floats(digits: string): Float32Array {
  return Float32Array.from({ length: digits.length / 8 }, (_, i) => {
    view.setUint32(0, parseInt(digits.slice(8 * i, 8 * i + 8), 16));
    return view.getFloat32(0);
  });
}

export function double(digits: string): number {
  view.setBigUint64(0, BigInt(`0x${digits}`));
  return view.getFloat64(0);
}

export function vector(units: readonly number[]): Float64Array {
  return Float64Array.from(units, unit => unit / 2 ** 50);
}

export function unitsOf(values: Float64Array): number[] {
  return Array.from(values, value => value * 2 ** 50);
}

const NAMES = {
  temperature: "temperature",
  top_k: "topK",
  top_p: "topP",
  min_p: "minP",
  repetition_penalty: "repetitionPenalty",
  frequency_penalty: "frequencyPenalty",
  presence_penalty: "presencePenalty",
  min_new_tokens: "minNewTokens",
  logit_bias: "logitBias",
} as const;

type Given = Partial<Record<keyof typeof NAMES, number | string | [number, string][]>>;

export function sampling(given: Given): Sampling {
  const found: Record<string, unknown> = { ...DEFAULT_SAMPLING };
  for (const [name, value] of Object.entries(given)) {
    found[NAMES[name as keyof typeof NAMES]] =
      typeof value === "string"
        ? double(value)
        : typeof value === "number"
          ? value
          : value.map(([token, amount]) => [token, double(amount)]);
  }
  return found as unknown as Sampling;
}

/** The option of the cases that an error of ours begins with. */
export function refusedName(message: string): string {
  const name = /^(the )?\w+/.exec(message)![0].replace("the ", "");
  return Object.entries(NAMES).find(([, ours]) => ours === name)?.[0] ?? name;
}
