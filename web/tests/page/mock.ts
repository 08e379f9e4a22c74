/**
 * A toy in the model's place, for tests and for work on the page: forty tokens, p and q that depend on the last one, and the real rules
 * over them, so that laws, acceptance and predictions are true. The bundle's name chooses what it does: /models/toy/, hostile, slow, broken,
 * network, memory, hash, stray, none, inexact, rough. It never ships.
 */

import type { Generation, GenerateOptions, LanguageModel, LawCounts, LawOptions, LoadOptions, ModelInfo, NextToken, Piece, Report, Stream } from "../../src/api";
import type { Judgement, Kind, Round, RuleName } from "../../src/types";
import { type ErrorCode, JourneeError } from "../../src/errors";

export { JourneeError };

const WORDS =
  " the| a| of| to| is| in| that| for| each| proof| law| token| draft| model| step| list| set| function| map| type| value| holds| follows| gives| by| with| and| or| not| equal| exact| obligation|.|,|:|;|\n|ing|s|é";
const HOSTILE = [
  "<img src=x onerror=alert(1)>",
  "<script>document.title='owned'</script>",
  "</span></body>",
  "&lt;b&gt;",
  "\u202egnp.exe\u202c",
  "javascript:alert(1)",
  "\u200b",
  "ض",
];
const SIZE = 40;
const END = 31;

type Vector = Float64Array;
type Drawing = (...key: number[]) => number;

/** Numbers in [0, 1) as a function of a seed and a key. */
function chances(seed: bigint): Drawing {
  const low = Number(seed & 0xffffffffn);
  const high = Number((seed >> 32n) & 0xffffffffn);
  return (...key) => {
    let state = low ^ Math.imul(high, 0x9e3779b1);
    for (const part of key) state = mix(state ^ Math.imul(part + 1, 0x85ebca6b));
    return (mix(state) >>> 0) / 2 ** 32;
  };
}

function mix(value: number): number {
  let x = (value + 0x6d2b79f5) | 0;
  x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d);
  x = Math.imul(x ^ (x >>> 12), 0x297a2d39);
  return x ^ (x >>> 15);
}

function normal(draw: Drawing, ...key: number[]): number {
  const radius = Math.sqrt(-2 * Math.log(1 - draw(...key, 1)));
  return radius * Math.cos(2 * Math.PI * draw(...key, 2));
}

const TABLE = chances(20240229n);
const target = (last: number): number[] => Array.from({ length: SIZE }, (_, i) => 1.7 * normal(TABLE, last, i, 0));
const draftOf = (last: number): number[] => target(last).map((logit, i) => 0.75 * logit + 0.7 * normal(TABLE, last, i, 7));

interface Shape {
  temperature: number;
  topK: number;
  topP: number;
}

function distribution(logits: readonly number[], { temperature, topK, topP }: Shape): Vector {
  const most = Math.max(...logits);
  const weights = Float64Array.from(logits, (z) => (temperature === 0 ? Number(z === most) : Math.exp((z - most) / temperature)));
  const order = [...weights.keys()].sort((a, b) => (weights[b] ?? 0) - (weights[a] ?? 0));
  if (topK > 0) for (const i of order.slice(topK)) weights[i] = 0;
  const total = sum(weights);
  let seen = 0;
  for (const i of order) {
    if (seen >= topP * total) weights[i] = 0;
    seen += weights[i] ?? 0;
  }
  const kept = sum(weights);
  return weights.map((weight) => weight / kept);
}

function sum(vector: Vector): number {
  return vector.reduce((total, each) => total + each, 0);
}

function pick(vector: Vector, fraction: number): number {
  let left = fraction * sum(vector);
  let last = 0;
  for (let i = 0; i < vector.length; i++) {
    if ((vector[i] ?? 0) > 0) last = i;
    left -= vector[i] ?? 0;
    if (left < 0) return i;
  }
  return last;
}

function residual(p: Vector, q: Vector): Vector {
  return p.map((each, i) => Math.max(0, each - (q[i] ?? 0)));
}

/** The first arrival of exponential clocks with rates p: a coupling of the first-dart kind. */
function first(p: Vector, draw: Drawing, position: number): number {
  let best = 0;
  let time = Infinity;
  p.forEach((rate, i) => {
    const arrival = rate > 0 ? -Math.log(1 - draw(9, position, i)) / rate : Infinity;
    if (arrival < time) [best, time] = [i, arrival];
  });
  return best;
}

interface Verdict {
  token: number;
  kept: boolean;
  coin: number | null;
}

function judge(rule: RuleName, p: Vector, q: Vector, x: number, draw: Drawing, position: number, round: number, wrong = false): Verdict {
  if (rule === "coupled") {
    const token = first(p, draw, position);
    return { token, kept: token === x, coin: null };
  }
  const coin = draw(1, position, round) * (q[x] ?? 0);
  if (coin < (p[x] ?? 0)) return { token: x, kept: true, coin };
  return { token: pick(wrong ? p : residual(p, q), draw(2, position, round)), kept: false, coin };
}

function propose(rule: RuleName, q: Vector, draw: Drawing, position: number, round: number): number {
  return rule === "coupled" ? first(q, draw, position) : pick(q, draw(0, position, round));
}

const sleep = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

interface Manner {
  words: readonly string[];
  /** Milliseconds of a target run and of a draft run. */
  target: number;
  draft: number;
  drafts: boolean;
  exact: boolean;
  /** After how many tokens it breaks. */
  breaks: number;
  /** How many tokens one piece takes. */
  together: number;
}

const TOY: Manner = { words: WORDS.split("|"), target: 9, draft: 1, drafts: true, exact: true, breaks: Infinity, together: 1 };
const MANNERS: Readonly<Record<string, Partial<Manner>>> = {
  toy: {},
  hostile: { words: WORDS.split("|").map((word, i) => HOSTILE[i % 10] ?? word) },
  slow: { target: 60, draft: 8 },
  broken: { breaks: 6 },
  none: { drafts: false },
  inexact: { exact: false },
  rough: { together: 2 },
};
const BROKEN_LOADS: Readonly<Record<string, [ErrorCode, string]>> = {
  network: ["network", "target/onnx/model.onnx_data: the server answers 503; try again later"],
  memory: ["out-of-memory", "the models need 310 MB of WebAssembly memory and the browser gave 64 MB"],
  hash: ["hash-mismatch", "draft/onnx/model.onnx: sha256 is 9f2a…, the bundle says 41c7…; fetch the bundle again"],
  browser: ["unsupported-browser", "WebAssembly SIMD isn't there; update the browser"],
};

export async function load(url: string | URL, options: LoadOptions = {}): Promise<LanguageModel> {
  const name = new URL(url, location.href).pathname.split("/").at(-2) ?? "";
  await progress(options, name);
  return new ToyModel(String(url), { ...TOY, ...MANNERS[name] }, options);
}

async function progress({ onProgress = () => {} }: LoadOptions, name: string): Promise<void> {
  const total = 15_300_000;
  const wait = name === "slow" ? 400 : 8;
  onProgress({ stage: "manifest", file: "journee.json", loaded: 0, total: 0, network: 0 });
  await sleep(wait);
  for (let part = 1; part <= 10; part++) {
    onProgress({ stage: "files", file: "target/onnx/model.onnx_data", loaded: (total * part) / 10, total, network: (total * Math.max(0, part - 2)) / 10 });
    const broken = BROKEN_LOADS[name];
    if (broken && part === 5) throw new JourneeError(...broken);
    if (name === "stray" && part === 5) throw new TypeError("undefined is not a function");
    await sleep(wait);
  }
  for (const stage of ["models", "row-rule", "ready"] as const) {
    onProgress({ stage, file: "", loaded: total, total, network: total * 0.8 });
    await sleep(wait);
  }
}

class ToyModel implements LanguageModel {
  readonly info: ModelInfo;

  constructor(
    url: string,
    private readonly manner: Manner,
    options: LoadOptions,
  ) {
    const bytes = { graph: "onnx/model.onnx", precision: "fp16 weights, fp32 arithmetic" };
    const draft = { parameters: 420_000, layers: 2, bytes: 1_700_000, ...bytes };
    this.info = {
      url,
      isolated: crossOriginIsolated,
      threads: crossOriginIsolated ? (options.threads ?? 4) : 1,
      controller: { name: "micropython", version: "1.27.0" },
      runtime: "onnxruntime-web 1.30.0 (wasm)",
      draft: manner.drafts ? "model" : "none",
      vocabularySize: SIZE,
      contextLength: 512,
      rowRule: manner.exact ? "at least 1 row, start + rows a multiple of 4" : "",
      rowRuleNote: manner.exact ? "found by the self-test on this machine, 40 splits" : "rows differ under every rule that was tried",
      roles: { target: { parameters: 6_800_000, layers: 6, bytes: 13_600_000, ...bytes }, ...(manner.drafts ? { draft } : {}) },
      networkBytes: 12_240_000,
      cachedBytes: 3_060_000,
      milliseconds: { manifest: 12, files: 640, models: 310, "row-rule": 95 },
      notes: [],
    };
  }

  stream(prompt: string | readonly number[], options: GenerateOptions = {}): Stream {
    if (options.draft === false && options.speculationLength !== undefined)
      throw new JourneeError("bad-request", "speculationLength goes with a draft: leave it out, or leave out draft: false");
    const run = new Run(this.manner, last(this.tokens(prompt)), options);
    const pieces = run.pieces();
    return Object.assign(pieces, { generation: () => run.generation(), [Symbol.asyncIterator]: () => pieces }) as unknown as Stream;
  }

  async generate(prompt: string | readonly number[], options: GenerateOptions = {}): Promise<Generation> {
    const stream = this.stream(prompt, options);
    for await (const _ of stream);
    return stream.generation();
  }

  async encode(text: string): Promise<number[]> {
    return this.tokens(text);
  }

  async decode(tokens: readonly number[]): Promise<string> {
    await sleep(1);
    return tokens.map((token) => this.manner.words[token] ?? "").join("");
  }

  async nextToken(prompt: string | readonly number[], options: Partial<Shape> & { signal?: AbortSignal } = {}): Promise<NextToken> {
    await sleep(this.manner.target);
    options.signal?.throwIfAborted();
    const shape = shapeOf(options);
    const before = last(this.tokens(prompt));
    return { p: distribution(target(before), shape), q: this.manner.drafts ? distribution(draftOf(before), shape) : null };
  }

  async *law(prompt: string | readonly number[], options: LawOptions): AsyncIterableIterator<LawCounts> {
    const { p, q } = await this.nextToken(prompt, options);
    const { draws = 10_000, every = 500, rule = "residual", seed = 1 } = options;
    const counts = new Uint32Array(SIZE);
    for (let n = 1; n <= draws; n++) {
      const draw = chances(BigInt(seed) + BigInt(n) * 0x9e3779b97f4a7c15n);
      const token = one(options.way, rule, p, q, draw);
      counts[token] = (counts[token] ?? 0) + 1;
      if (n % every && n < draws) continue;
      await sleep(1);
      options.signal?.throwIfAborted();
      yield { draws: n, counts: counts.slice() };
    }
  }

  async dispose(): Promise<void> {}

  private tokens(prompt: string | readonly number[]): number[] {
    if (typeof prompt !== "string") return [...prompt];
    return [...prompt].map((character) => (character.codePointAt(0) ?? 0) % SIZE);
  }
}

function one(way: LawOptions["way"], rule: RuleName, p: Vector, q: Vector | null, draw: Drawing): number {
  if (way === "plain" || !q) return rule === "coupled" ? first(p, draw, 0) : pick(p, draw(3, 0, 0));
  return judge(rule, p, q, propose(rule, q, draw, 0, 0), draw, 0, 0, way === "wrong").token;
}

function last(tokens: readonly number[]): number {
  const token = tokens.at(-1);
  if (token === undefined) throw new JourneeError("bad-request", "the prompt is empty; give at least one token");
  return token;
}

function shapeOf({ temperature = 1, topK = 0, topP = 1 }: Partial<Shape>): Shape {
  return { temperature, topK, topP };
}

/** One generation: rounds as the controller has them. */
class Run {
  private readonly tokens: number[] = [];
  private readonly kinds: Kind[] = [];
  private readonly judgements: Judgement[] = [];
  private readonly rounds: Round[] = [];
  private readonly started = performance.now();
  private readonly draw: Drawing;
  private readonly seed: bigint;
  private readonly length: number;
  private readonly rule: RuleName;
  private reason = "";
  private firstAt = 0;
  private draftRuns = 0;
  private ended = 0;

  constructor(
    private readonly manner: Manner,
    private readonly before: number,
    private readonly options: GenerateOptions,
  ) {
    this.seed = BigInt(options.seed ?? 1);
    this.draw = chances(this.seed);
    const asked = options.speculationLength ?? 4;
    this.length = options.draft === false || !manner.drafts ? 0 : asked === "auto" ? 3 : asked;
    this.rule = options.rule ?? "residual";
  }

  async *pieces(): AsyncGenerator<Piece> {
    const limit = this.options.maxNewTokens ?? 64;
    let held = "";
    while (!this.reason) {
      this.options.signal?.throwIfAborted();
      const from = this.tokens.length;
      await this.round(limit);
      if (this.tokens.length >= this.manner.breaks) throw new JourneeError("runtime", "the target's run failed: memory access out of bounds");
      for (let i = from; i < this.tokens.length; i++) {
        held += this.text(i);
        if ((i + 1) % this.manner.together) continue;
        yield this.piece(held, i);
        held = "";
      }
    }
  }

  generation(): Generation {
    const text = this.tokens.map((_, i) => this.text(i)).join("");
    return { text, tokens: this.tokens, kinds: this.kinds, report: this.report() };
  }

  private text(i: number): string {
    return this.tokens[i] === END ? "" : (this.manner.words[this.tokens[i] ?? 0] ?? "");
  }

  private piece(text: string, i: number): Piece {
    const judgement = this.options.trace ? (this.judgements[i] ?? null) : null;
    return { text, kind: this.kinds[i] ?? "bonus", token: this.tokens[i] ?? 0, count: i + 1, judgement };
  }

  /** Propose, judge in order, and a bonus if all were kept. */
  private async round(limit: number): Promise<void> {
    const shape = shapeOf(this.options);
    const length = Math.min(this.length, limit - this.tokens.length - 1);
    const number = this.rounds.length;
    let context = this.tokens.at(-1) ?? this.before;
    const proposals: { x: number; q: Vector; p: Vector }[] = [];
    for (let i = 0; i < length; i++) {
      const q = distribution(draftOf(context), shape);
      const x = propose(this.rule, q, this.draw, this.tokens.length + i, number);
      proposals.push({ x, q, p: distribution(target(context), shape) });
      context = x;
      this.draftRuns++;
    }
    await sleep(this.manner.target + this.manner.draft * length);
    const start = this.tokens.length;
    const accepted = this.judge(proposals, number, limit);
    if (accepted === proposals.length && !this.reason) this.bonus(distribution(target(context), shape), number, limit);
    const emitted = this.tokens.length - start;
    this.firstAt ||= performance.now();
    this.ended = performance.now();
    this.rounds.push({ length, proposed: length, judged: Math.min(length, accepted + 1), accepted, emitted, empty: 0, rows: length + 1 });
  }

  private judge(proposals: readonly { x: number; q: Vector; p: Vector }[], round: number, limit: number): number {
    let accepted = 0;
    for (const { x, q, p } of proposals) {
      const { token, kept, coin } = judge(this.rule, p, q, x, this.draw, this.tokens.length, round);
      const distance = sum(residual(p, q));
      this.emit(token, kept ? "accepted" : "recovered", p, limit, {
        proposal: x,
        proposalP: p[x] ?? 0,
        proposalQ: q[x] ?? 0,
        coin,
        tv: distance,
        predicted: this.rule === "coupled" ? agreement(p, q, distance) : 1 - distance,
      });
      if (!kept) break;
      accepted++;
      if (this.reason) break;
    }
    return accepted;
  }

  private bonus(p: Vector, round: number, limit: number): void {
    const coin = this.rule === "coupled" ? null : this.draw(3, this.tokens.length, round);
    const token = coin === null ? first(p, this.draw, this.tokens.length) : pick(p, coin);
    this.emit(token, "bonus", p, limit, { proposal: null, proposalP: null, proposalQ: null, coin, tv: null, predicted: null });
  }

  private emit(token: number, kind: Kind, p: Vector, limit: number, told: Omit<Judgement, "token" | "kind" | "p" | "top" | "logits">): void {
    const order = [...p.keys()].sort((a, b) => (p[b] ?? 0) - (p[a] ?? 0)).slice(0, 5);
    const top = order.map((i): [number, number] => [i, p[i] ?? 0]);
    this.judgements.push({ token, kind, p: p[token] ?? 0, ...told, top, logits: top.map(([i, w]) => [i, Math.log(w)]) });
    this.tokens.push(token);
    this.kinds.push(kind);
    if (token === END && this.tokens.length > 40) this.reason = "end-of-sequence";
    else if (this.tokens.length >= limit) this.reason = "length";
  }

  private report(): Report {
    const judged = this.kinds.filter((kind) => kind !== "bonus").length;
    const accepted = this.kinds.filter((kind) => kind === "accepted").length;
    const predicted = this.judgements.flatMap((judgement) => judgement.predicted ?? []);
    const traced = this.options.trace === true;
    const cost = (runs: number, each: number) => ({ runs, rows: runs, padding: 0, seconds: (runs * each) / 1000 });
    return {
      rule: this.rule,
      draft: this.length ? "model" : "none",
      seed: this.seed,
      sample: 0,
      promptTokens: 1,
      reason: this.reason,
      rowRule: this.manner.exact ? "at least 1 row, start + rows a multiple of 4" : "",
      rowRuleNote: this.manner.exact ? "" : "rows differ under every rule that was tried",
      exact: this.manner.exact,
      pace: {},
      rounds: this.rounds,
      judgements: traced ? this.judgements : [],
      models: { target: cost(this.rounds.length, this.manner.target), draft: cost(this.draftRuns, this.manner.draft) },
      seconds: ((this.ended || performance.now()) - this.started) / 1000,
      firstSeconds: Math.max(0, this.firstAt - this.started) / 1000,
      controllerSeconds: this.rounds.length * 0.0004,
      proposed: this.rounds.reduce((total, round) => total + round.proposed, 0),
      judged,
      accepted,
      acceptance: judged ? accepted / judged : null,
      predicted: traced && predicted.length ? predicted.reduce((total, each) => total + each, 0) / predicted.length : null,
    };
  }
}

/** What the coupled rule's acceptance comes to (docs/distributions.md, section 7). */
function agreement(p: Vector, q: Vector, distance: number): number {
  return p.reduce((total, each, i) => total + Math.min(each, q[i] ?? 0) * (1 + Math.abs(each - (q[i] ?? 0))), 0) / (1 + distance);
}
