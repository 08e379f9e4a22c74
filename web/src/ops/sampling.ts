/** The options of a distribution: their defaults and their ranges, as journee_deploy.arithmetic.sampling has them. */

import { JourneeError } from "../errors";
import type { Sampling } from "../types";

/** An option at its default does nothing at all, to the bit. */
export const DEFAULT_SAMPLING: Sampling = {
  temperature: 1,
  topK: 0,
  topP: 1,
  minP: 0,
  repetitionPenalty: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  minNewTokens: 0,
  logitBias: [],
};

/** float32's largest: keeps every sum and product below finite in float64. */
const LARGEST = 2 ** 128 - 2 ** 104;

/** Refuse an option outside its range; the message begins with its name. */
export function checkSampling(sampling: Sampling, size: number): void {
  number("temperature", sampling.temperature, 0, Infinity, "0 for greedy, or positive and finite");
  whole("topK", sampling.topK);
  number("topP", sampling.topP, 0, 1, "above 0 and at most 1 (1 is off)");
  if (sampling.topP === 0) refuse("topP", 0, "above 0 and at most 1 (1 is off)");
  number("minP", sampling.minP, 0, 1, "from 0 (off) to 1");
  number("repetitionPenalty", sampling.repetitionPenalty, 0.01, 100, "from 0.01 to 100 (1 is off)");
  const finite = "a number within float32's range (0 is off)";
  number("frequencyPenalty", sampling.frequencyPenalty, -LARGEST, LARGEST, finite);
  number("presencePenalty", sampling.presencePenalty, -LARGEST, LARGEST, finite);
  whole("minNewTokens", sampling.minNewTokens);
  const seen = new Set<number>();
  for (const [token, amount] of sampling.logitBias) {
    whole("logitBias's token", token);
    if (token >= size) throw bad(`logitBias names token ${token}; the vocabulary has ${size} tokens`);
    if (seen.has(token)) throw bad(`logitBias names token ${token} twice; give one amount a token`);
    seen.add(token);
    if (amount !== -Infinity) {
      number(`logitBias for token ${token}`, amount, -LARGEST, LARGEST, "within float32's range, or minus infinity");
    }
  }
}

function number(name: string, value: number, low: number, high: number, allowed: string): void {
  if (!(typeof value === "number" && value >= low && value <= high && value - value === 0)) refuse(name, value, allowed);
}

function whole(name: string, value: number): void {
  if (!(Number.isSafeInteger(value) && value >= 0)) refuse(name, value, "a whole number, at least 0");
}

function refuse(name: string, value: unknown, allowed: string): never {
  throw bad(`${name} is ${String(value)}; it must be ${allowed}`);
}

export function bad(message: string): JourneeError {
  return new JourneeError("bad-request", message);
}
