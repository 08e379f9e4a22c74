/** The public types of `journee-web`: what `load` takes, and what a language model offers. `index.ts` exports them. */

import type { Judgement, Kind, Round, RuleName } from "./types";

/** How far a load has come. Byte counts are true: what was received, verified or not, of all files that are needed. */
export interface Progress {
  /** manifest, files (download or cache), models (sessions made), row rule (self-test), ready */
  stage: "manifest" | "files" | "models" | "row-rule" | "ready";
  /** The file that these bytes belong to; "" where the stage has none. */
  file: string;
  /** Bytes so far, of all files. */
  loaded: number;
  /** Bytes in all; 0 until the manifest is read. */
  total: number;
  /** Of `loaded`, bytes that came over the network. */
  network: number;
}

export interface LoadOptions {
  /** "auto" (default) takes the bundle's draft model if it has one, or none. */
  draft?: "auto" | "model" | "ngram" | "uniform" | "none";
  /** Threads of the target and the draft; 0 (default) lets the package choose. More than 1 needs `crossOriginIsolated`. */
  threads?: number;
  /** Which interpreter runs the controller. Pyodide is an optional peer dependency. */
  controller?: "micropython" | "pyodide";
  /** Where Pyodide's files are; needed for `controller: "pyodide"` in a page. */
  pyodideUrl?: string | URL;
  /** Keep verified files in the browser's cache, and take them from there; default true. */
  cache?: boolean;
  /** Called with every change; must not throw. */
  onProgress?: (progress: Progress) => void;
  /** Ends the load: the promise is rejected with the signal's reason. */
  signal?: AbortSignal;
}

/** Options of one generation: those of journee_deploy.Request, in the names of this language. */
export interface GenerateOptions {
  maxNewTokens?: number;
  /** 0 to 2^64 - 1, a bigint above 2^53; drawn from the system if left out. */
  seed?: number | bigint;
  sample?: number;
  rule?: RuleName;
  /** false is plain decoding. */
  draft?: boolean;
  /** K, 1 to 64; "auto" adapts. Default 4. */
  speculationLength?: number | "auto";
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repetitionPenalty?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  logitBias?: Readonly<Record<number, number>>;
  minNewTokens?: number;
  stop?: string | readonly string[];
  stopTokens?: readonly (number | readonly number[])[];
  /** The text of special tokens in the prompt becomes those tokens; otherwise it is plain text. */
  special?: boolean;
  /** Pieces and the report tell how each token came to be. */
  trace?: boolean;
  /** Ends the generation: at most one more round runs. The iteration throws the signal's reason. */
  signal?: AbortSignal;
}

/** Some characters of the text, none of them split, and the token that completed them. */
export interface Piece {
  text: string;
  kind: Kind;
  token: number;
  /** The tokens of the text so far, this one included. */
  count: number;
  /** How the token came to be; null without `trace`. */
  judgement: Judgement | null;
}

/** What one model cost in a generation. */
export interface RoleCounts {
  runs: number;
  rows: number;
  padding: number;
  seconds: number;
}

export interface Report {
  rule: RuleName;
  draft: "model" | "ngram" | "uniform" | "none";
  seed: bigint;
  sample: number;
  promptTokens: number;
  /** Why the text ended: end-of-sequence, stop, length, context; "" while it goes on. */
  reason: string;
  /** "" where no rule is in force: then nothing is promised exactly. */
  rowRule: string;
  rowRuleNote: string;
  /** Whether the text is exact: the emitted law is the target's (a row rule is in force). */
  exact: boolean;
  pace: Readonly<Record<string, number | string>>;
  rounds: readonly Round[];
  judgements: readonly Judgement[];
  models: Readonly<Record<string, RoleCounts>>;
  /** Seconds in all, until the first token was final, and inside the controller's interpreter and the ops. */
  seconds: number;
  firstSeconds: number;
  controllerSeconds: number;
  proposed: number;
  judged: number;
  accepted: number;
  /** accepted / judged; null where nothing was judged. */
  acceptance: number | null;
  /** The mean of what the rule predicts for the verdicts; null without `trace`. */
  predicted: number | null;
}

export interface Generation {
  text: string;
  tokens: readonly number[];
  kinds: readonly Kind[];
  report: Report;
}

/** A generation under way. Leaving the loop ends it. */
export interface Stream extends AsyncIterableIterator<Piece> {
  /** What there is so far, or in all: the text of the pieces that were read, the tokens of the rounds they came from. */
  generation(): Generation;
}

/** One model's facts, for a page to show. */
export interface RoleInfo {
  parameters: number;
  layers: number;
  graph: string;
  /** How weights are stored, and what arithmetic runs. */
  precision: string;
  bytes: number;
}

export interface ModelInfo {
  url: string;
  /** Whether the page is cross-origin isolated, and how many threads the models use for that. */
  isolated: boolean;
  threads: number;
  controller: { name: "micropython" | "pyodide"; version: string };
  runtime: string;
  draft: "model" | "ngram" | "uniform" | "none";
  vocabularySize: number;
  contextLength: number;
  rowRule: string;
  rowRuleNote: string;
  roles: Readonly<Record<string, RoleInfo>>;
  /** Bytes that the load took from the network and from the cache. */
  networkBytes: number;
  cachedBytes: number;
  /** Milliseconds of the load's stages. */
  milliseconds: Readonly<Record<string, number>>;
  /** What went another way than asked, such as a cache that could not be used; each a sentence. */
  notes: readonly string[];
}

export interface LawOptions
  extends Pick<
    GenerateOptions,
    "rule" | "seed" | "temperature" | "topK" | "topP" | "minP" | "special" | "signal"
  > {
  /** Draws in all; default 10,000. */
  draws?: number;
  /** Draws between two reports; default 500. */
  every?: number;
  /**
   * How a token is drawn: "plain" decoding, "speculative" with one proposal of the draft, or "wrong": speculative with the
   * mistake that a rejected proposal's place is taken by a draw from p instead of the residual.
   */
  way: "plain" | "speculative" | "wrong";
}

/** How often each token came first after a prompt, in `draws` runs of the shipped controller with fresh seeds. */
export interface LawCounts {
  draws: number;
  /** A count a token of the vocabulary. */
  counts: Uint32Array;
}

/** Exact next-token distributions after a prompt: p of the target and q of the draft (null where none drafts). */
export interface NextToken {
  p: Float64Array;
  q: Float64Array | null;
}

export interface LanguageModel {
  readonly info: ModelInfo;
  /** The text after `prompt` (or its tokens) in pieces as they become final. */
  stream(prompt: string | readonly number[], options?: GenerateOptions): Stream;
  /** The whole text. */
  generate(prompt: string | readonly number[], options?: GenerateOptions): Promise<Generation>;
  /** The tokens of a text. */
  encode(text: string, options?: { special?: boolean }): Promise<number[]>;
  /** The text of tokens, special ones left out. */
  decode(tokens: readonly number[]): Promise<string>;
  /** p and q after a prompt, as the sampler has them: multiples of 2^-50 that sum to exactly 1. */
  nextToken(
    prompt: string | readonly number[],
    options?: Omit<LawOptions, "way" | "draws" | "every">,
  ): Promise<NextToken>;
  /** The law of the next token, drawn: the models run once, the controller `draws` times over their rows. */
  law(prompt: string | readonly number[], options: LawOptions): AsyncIterableIterator<LawCounts>;
  /** Free models and worker. Generations under way end with an error of code "disposed". */
  dispose(): Promise<void>;
}
