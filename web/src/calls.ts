/** Calls across a worker's border: what is posted, and how errors keep their code on the way. */

import type { LoadOptions, ModelInfo, Progress } from "./api";
import type { Service } from "./engine";
import { type ErrorCode, JourneeError } from "./errors";

/** The first message to a worker; the answer is a `ModelInfo`. */
export interface LoadCall {
  kind: "load";
  source: string;
  options: Omit<LoadOptions, "onProgress" | "signal">;
}

export type Call = LoadCall | { kind: "abort"; reason: string } | { kind: "call"; id: number; name: keyof Service; args: unknown[] };

export type Answer =
  | { kind: "progress"; progress: Progress }
  | { kind: "loaded"; info: ModelInfo }
  | { kind: "failed"; error: PlainError }
  | { kind: "value"; id: number; value: unknown }
  | { kind: "error"; id: number; error: PlainError };

export interface PlainError {
  code: ErrorCode | null;
  message: string;
  stack: string;
}

export function plainError(error: unknown): PlainError {
  if (error instanceof JourneeError) return { code: error.code, message: error.message, stack: error.stack ?? "" };
  const known = error instanceof Error;
  const memory = known && error.name === "RangeError" && /alloc|out of memory|typed array length|array size/i.test(error.message);
  return { code: memory ? "out-of-memory" : null, message: known ? error.message : String(error), stack: known ? (error.stack ?? "") : "" };
}

/** The error again, with the worker's stack as its cause. */
export function revived({ code, message, stack }: PlainError): JourneeError {
  return new JourneeError(code ?? "runtime", message, { cause: stack });
}
