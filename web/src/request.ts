/** What a caller may ask of a generation, checked before anything runs, as journee_deploy/request.py does it. */

import type { GenerateOptions } from "./api";
import { JourneeError } from "./errors";
import type { RuleName, Sampling } from "./types";

export const RULES: readonly RuleName[] = ["residual", "coupled"];
const DEFAULT_LENGTH = 4;
const LONGEST = 64;
/** float32's largest: keeps every sum and product below finite. */
const LARGEST = 2 ** 128 - 2 ** 104;

/** One generation's options, all given. `length` is K; null where nothing is said. */
export interface Request {
  maxNewTokens: number;
  seed: bigint | null;
  sample: number;
  rule: RuleName;
  draft: boolean;
  length: number | "auto" | null;
  sampling: Sampling;
  stops: readonly string[];
  sequences: readonly (readonly number[])[];
  special: boolean;
  trace: boolean;
}

/** The options' names; a caller's typing error must not be an option that does nothing. */
const NAMES: readonly (keyof GenerateOptions)[] = [
  "maxNewTokens",
  "seed",
  "sample",
  "rule",
  "draft",
  "speculationLength",
  "temperature",
  "topK",
  "topP",
  "minP",
  "repetitionPenalty",
  "frequencyPenalty",
  "presencePenalty",
  "logitBias",
  "minNewTokens",
  "stop",
  "stopTokens",
  "special",
  "trace",
  "signal",
];

/** Refuse options of other names than these. */
export function checkNames(options: object, names: readonly string[]): void {
  for (const name of Object.keys(options))
    if (!names.includes(name)) refuse(`there is no option ${name}; there is: ${names.join(", ")}`);
}

export function readRule(rule: RuleName = "residual"): RuleName {
  if (!RULES.includes(rule)) refuse(`there is no rule ${shown(rule)}; there is: ${RULES.join(", ")}`);
  return rule;
}

export function readRequest(options: GenerateOptions): Request {
  checkNames(options, NAMES);
  const { speculationLength } = options;
  const rule = readRule(options.rule);
  const draft = flag("draft", options.draft, true);
  if (speculationLength !== undefined && !draft)
    refuse("speculationLength goes with a draft: leave it out, or leave out draft: false");
  return {
    maxNewTokens: whole("maxNewTokens", options.maxNewTokens, 64, 1),
    seed: options.seed === undefined ? null : seed(options.seed),
    sample: whole("sample", options.sample, 0, 0, 2 ** 32 - 1),
    rule,
    draft,
    length: speculationLength === undefined ? null : length(speculationLength),
    sampling: readSampling(options),
    stops: stopStrings(options.stop),
    sequences: stopSequences(options.stopTokens),
    special: flag("special", options.special, false),
    trace: flag("trace", options.trace, false),
  };
}

/** K, where there is a draft, or "auto". */
export const lengthOf = (request: Request): number | "auto" => request.length ?? DEFAULT_LENGTH;

/** The options that make distributions. */
export function readSampling(options: GenerateOptions): Sampling {
  const finite = "a number within float32's range (0 is off)";
  const topP = number("topP", options.topP, 1, 0, 1, "above 0 and at most 1 (1 is off)");
  if (topP === 0) refuse("topP is 0; it must be above 0 and at most 1 (1 is off)");
  return {
    temperature: number("temperature", options.temperature, 1, 0, Number.MAX_VALUE, "0 for greedy, or positive and finite"),
    topK: whole("topK", options.topK, 0, 0),
    topP,
    minP: number("minP", options.minP, 0, 0, 1, "from 0 (off) to 1"),
    repetitionPenalty: number("repetitionPenalty", options.repetitionPenalty, 1, 0.01, 100, "from 0.01 to 100 (1 is off)"),
    frequencyPenalty: number("frequencyPenalty", options.frequencyPenalty, 0, -LARGEST, LARGEST, finite),
    presencePenalty: number("presencePenalty", options.presencePenalty, 0, -LARGEST, LARGEST, finite),
    minNewTokens: whole("minNewTokens", options.minNewTokens, 0, 0),
    logitBias: biases(options.logitBias),
  };
}

function biases(given: Readonly<Record<number, number>> = {}): [number, number][] {
  if (typeof given !== "object" || given === null || Symbol.iterator in given) refuse(`logitBias is ${shown(given)}; give amounts by token`);
  return Object.entries(given)
    .map(([token, amount]): [number, number] => {
      if (!/^\d+$/.test(token)) refuse(`a token of logitBias is ${shown(token)}; tokens are whole numbers, at least 0`);
      if (amount !== -Infinity) number(`the amount of logitBias for token ${token}`, amount, 0, -LARGEST, LARGEST, "within float32's range, or minus infinity");
      return [Number(token), amount];
    })
    .sort(([a], [b]) => a - b);
}

function stopStrings(given: GenerateOptions["stop"]): string[] {
  if (given === undefined) return [];
  const strings: unknown[] = typeof given === "string" ? [given] : listed("stop", given);
  for (const string of strings) if (typeof string !== "string") refuse(`stop has ${shown(string)}; give a string, or several`);
  return [...(strings as string[])];
}

function stopSequences(given: GenerateOptions["stopTokens"]): number[][] {
  if (given === undefined) return [];
  return listed("stopTokens", given).map((stop) => {
    const sequence: unknown[] = Array.isArray(stop) ? stop : [stop];
    if (!sequence.length) refuse("stopTokens has an empty sequence; it would stop every text before it begins");
    return sequence.map((token) => whole("a token of stopTokens", token as number, 0, 0));
  });
}

function listed(name: string, given: unknown): unknown[] {
  if (!Array.isArray(given)) refuse(`${name} is ${shown(given)}; give a list`);
  return given as unknown[];
}

function length(given: number | "auto"): number | "auto" {
  return given === "auto" ? given : whole("speculationLength", given, 0, 1, LONGEST, ', or "auto"; plain decoding is draft: false');
}

function seed(given: number | bigint): bigint {
  if (typeof given === "number" && !Number.isSafeInteger(given))
    refuse(`seed is ${shown(given)}; give a whole number, or a bigint beyond 2^53`);
  if (typeof given !== "number" && typeof given !== "bigint") refuse(`seed is ${shown(given)}; give a whole number`);
  const value = BigInt(given);
  if (value < 0n || value >= 1n << 64n) refuse(`seed is ${value}; it must be from 0 to 2^64 - 1`);
  return value;
}

function flag(name: string, given: boolean | undefined, otherwise: boolean): boolean {
  if (given === undefined) return otherwise;
  if (typeof given !== "boolean") refuse(`${name} is ${shown(given)}; it must be true or false`);
  return given;
}

export function whole(name: string, given: number | undefined, otherwise: number, least: number, most = Infinity, advice = ""): number {
  if (given === undefined) return otherwise;
  if (!Number.isSafeInteger(given) || given < least || given > most) {
    const allowed = most === Infinity ? `at least ${least}` : `from ${least} to ${most}`;
    refuse(`${name} is ${shown(given)}; it must be a whole number, ${allowed}${advice}`);
  }
  return given;
}

function number(name: string, given: number | undefined, otherwise: number, least: number, most: number, allowed: string): number {
  if (given === undefined) return otherwise;
  if (typeof given !== "number" || !(given >= least && given <= most)) refuse(`${name} is ${shown(given)}; it must be ${allowed}`);
  return given;
}

function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

export function refuse(message: string): never {
  throw new JourneeError("bad-request", message);
}
