/**
 * The engine: models, controller and text of one load, in whatever realm it runs. It answers the controller's runs and
 * passes on what it emits; it knows no rule and no distribution. Every method may be called from another realm: what it
 * takes and gives survives a structured clone.
 */

import type { LawOptions, ModelInfo, NextToken, RoleCounts } from "./api";
import { measureCosts, type Costs } from "./costs";
import { JourneeError } from "./errors";
import { createOps } from "./ops";
import { lengthOf, readRule, readSampling, refuse, type Request } from "./request";
import type { Model } from "./rows/slots";
import { Pieces, stopStrings, type Codec, type TextPiece } from "./text";
import { tick } from "./tick";
import type { Controller, Emit, Generation, Ops, Pace, Role, RuleName, Run, Sampling, Spec, Wish } from "./types";

export type DraftKind = ModelInfo["draft"];
export type Models = { target: Model; draft?: Model };

/** What one round of a generation gave. */
export interface Batch extends Emit {
  pieces: TextPiece[];
  meter: Meter;
}

/** What a generation cost so far; seconds by `performance.now`. */
export interface Meter {
  models: Record<string, RoleCounts>;
  seconds: number;
  firstSeconds: number;
  controllerSeconds: number;
}

/** What is known of a generation before its first round. */
export interface Header {
  stream: number;
  draft: DraftKind;
  promptTokens: number;
  pace: Record<string, number | string>;
}

/** Everything that a client may ask of an engine. A page's client asks across a worker's border, Node's directly. */
export interface Service {
  encode(text: string, special: boolean): Promise<number[]>;
  decode(tokens: readonly number[]): Promise<string>;
  start(prompt: string | readonly number[], request: Request, seed: bigint): Promise<Header>;
  /** The next round's tokens; null after the last. */
  next(stream: number): Promise<Batch | null>;
  startLaw(prompt: string | readonly number[], options: PlainLawOptions, seed: bigint): Promise<number>;
  /** Counts after `every` more draws; null after the last. */
  nextLaw(law: number): Promise<{ draws: number; counts: Uint32Array } | null>;
  /** End a generation or a law; what a model runs now runs to its end, the round doesn't. */
  end(id: number): Promise<void>;
  nextToken(prompt: string | readonly number[], options: PlainLawOptions): Promise<NextToken>;
  dispose(): Promise<void>;
}

export type PlainLawOptions = Omit<LawOptions, "signal">;

interface Work {
  /** Told between two runs of a model, and between two rounds. */
  ended: boolean;
  close(): void;
}

const LARGEST_LAW = 10_000_000;
const WAYS = ["plain", "speculative", "wrong"] as const;

export class Engine implements Service {
  private readonly works = new Map<number, Work & { next(): Promise<unknown> }>();
  private readonly costs = new Map<string, Costs>();
  private ids = 0;
  private turn: Promise<unknown> = Promise.resolve();
  private disposed = false;

  constructor(
    readonly info: ModelInfo,
    private readonly codec: Codec,
    private readonly controller: Controller,
    private readonly models: Models,
    private readonly ends: readonly number[],
  ) {}

  async encode(text: string, special: boolean): Promise<number[]> {
    this.check();
    return this.codec.encode(text, special);
  }

  async decode(tokens: readonly number[]): Promise<string> {
    this.check();
    this.codec.check(tokens);
    return this.codec.decode(tokens);
  }

  async start(prompt: string | readonly number[], request: Request, seed: bigint): Promise<Header> {
    this.check();
    const tokens = this.tokens(prompt, request.special);
    const room = this.info.contextLength - tokens.length;
    const limit = Math.min(request.maxNewTokens, room);
    const strings = stopStrings(this.codec, request.stops);
    for (const sequence of request.sequences) this.codec.check(sequence);
    const draft = this.drafting(request);
    this.checkRule(request.rule);
    const ops = createOps({ prompt: tokens, size: this.codec.size, sampling: request.sampling, ends: this.ends });
    const pace = await this.pace(request, draft);
    this.check();
    const stream = ++this.ids;
    const spec: Spec = {
      prompt: tokens,
      rule: request.rule,
      draft: this.draftSpec(draft),
      pace,
      seed,
      sample: request.sample,
      stops: {
        limit,
        reason: limit === request.maxNewTokens ? "length" : "context",
        ends: [...this.ends],
        sequences: request.sequences.map((sequence) => [...sequence]),
        strings: request.stops.length ? strings : null,
      },
      trace: request.trace,
    };
    const pieces = new Pieces(this.codec, request.stops, request.sequences);
    this.works.set(stream, new Stream(stream, spec, ops, this.controller, this.models, pieces));
    return { stream, draft, promptTokens: tokens.length, pace: told(pace) };
  }

  async next(stream: number): Promise<Batch | null> {
    return this.advance(stream) as Promise<Batch | null>;
  }

  async startLaw(prompt: string | readonly number[], options: PlainLawOptions, seed: bigint): Promise<number> {
    this.check();
    const { way, draws = 10_000, every = 500, rule = "residual" } = options;
    if (!WAYS.includes(way)) refuse(`way is ${JSON.stringify(way)}; it must be one of: ${WAYS.join(", ")}`);
    for (const [name, value] of Object.entries({ draws, every }))
      if (!Number.isSafeInteger(value) || value < 1 || value > LARGEST_LAW)
        refuse(`${name} is ${String(value)}; it must be a whole number from 1 to ${LARGEST_LAW}`);
    if (way === "wrong" && rule !== "residual") refuse('way "wrong" is a mistake of rule "residual"; leave the rule out');
    if (way !== "plain" && this.info.draft === "none") refuse(`way "${way}" needs a draft; load the bundle with one`);
    const tokens = this.tokens(prompt, options.special ?? false, 2);
    this.checkRule(readRule(rule));
    const rows = await this.alone(() => this.rowsAfter(tokens, way !== "plain"));
    this.check();
    const id = ++this.ids;
    const kind = way === "plain" ? "none" : this.info.draft;
    const law = new Law(rows, tokens, this.draftSpec(kind), way === "wrong" ? "wrong" : rule, readSampling(options), seed, draws, every, this.codec.size, this.ends, this.controller);
    this.works.set(id, law);
    return id;
  }

  async nextLaw(law: number): Promise<{ draws: number; counts: Uint32Array } | null> {
    return this.advance(law) as Promise<{ draws: number; counts: Uint32Array } | null>;
  }

  async end(id: number): Promise<void> {
    const work = this.works.get(id);
    if (!work) return;
    work.ended = true;
    await this.alone(async () => this.drop(id));
  }

  async nextToken(prompt: string | readonly number[], options: PlainLawOptions): Promise<NextToken> {
    this.check();
    const tokens = this.tokens(prompt, options.special ?? false, 2);
    const sampling = readSampling(options);
    return this.alone(async () => {
      const rows = await this.rowsAfter(tokens, true);
      const ops = createOps({ prompt: tokens, size: this.codec.size, sampling, ends: this.ends });
      const weights = (handle: number) => Float64Array.from({ length: this.codec.size }, (_, token) => ops.weight(handle, token));
      const of = (role: Role) => ops.distribution(ops.hold(role, tokens.length, [rows[role] as Float32Array]));
      const p = weights(of("target"));
      if (rows.draft) {
        const q = of("draft");
        return { p, q: q < 0 ? null : weights(q) };
      }
      return { p, q: this.info.draft === "uniform" ? weights(ops.uniform()) : null };
    });
  }

  /** Generations under way end with an error; what a model runs now runs to its end. */
  async dispose(): Promise<void> {
    if (this.disposed) return;
    this.disposed = true;
    for (const work of this.works.values()) work.ended = true;
    await this.alone(async () => {
      for (const id of [...this.works.keys()]) this.drop(id);
      this.controller.dispose();
      await this.models.target.close();
      await this.models.draft?.close();
    });
  }

  private check(): void {
    if (this.disposed) throw new JourneeError("disposed", "the model was disposed of; load it again");
  }

  /** One round at a time: models and interpreter are shared by all that runs here. */
  private async alone<T>(act: () => Promise<T>): Promise<T> {
    const mine = this.turn.then(act);
    this.turn = mine.catch(() => {});
    return mine;
  }

  private async advance(id: number): Promise<unknown> {
    return this.alone(async () => {
      await tick(); // an `end` that came meanwhile is heard first
      this.check();
      const work = this.works.get(id);
      if (!work || work.ended) return null;
      try {
        const found = await work.next();
        this.check(); // what was cut short by the disposal isn't an end
        if (found === null || work.ended) this.drop(id);
        return found;
      } catch (error) {
        this.drop(id);
        this.check();
        if (error === ENDED) return null;
        throw error;
      }
    });
  }

  private drop(id: number): void {
    const work = this.works.get(id);
    this.works.delete(id);
    work?.close();
  }

  /** The prompt's tokens, refused where there are none or too many. */
  private tokens(prompt: string | readonly number[], special: boolean, room = 1): number[] {
    if (typeof prompt !== "string" && !Array.isArray(prompt)) refuse("the prompt must be a text or a list of tokens");
    if (typeof prompt !== "string") this.codec.check(prompt);
    const tokens = typeof prompt === "string" ? this.codec.encode(prompt, special) : [...prompt];
    if (!tokens.length) refuse("the prompt is empty; give at least one character or token");
    const most = this.info.contextLength - room;
    if (tokens.length > most)
      refuse(`the prompt has ${tokens.length} tokens and the target a context of ${this.info.contextLength}; shorten it to at most ${most}`);
    return tokens;
  }

  private drafting(request: Request): DraftKind {
    if (request.draft && this.info.draft === "none" && request.length !== null)
      refuse(`speculationLength is ${request.length} and there is no draft; load the bundle with one, or leave the length out`);
    return request.draft ? this.info.draft : "none";
  }

  private draftSpec(kind: DraftKind): Spec["draft"] {
    return kind === "model" ? { kind, context: (this.models.draft as Model).forward.contextLength } : { kind };
  }

  private checkRule(rule: RuleName): void {
    if (rule === "coupled" && !this.info.rowRule)
      refuse(
        "rule coupled promises the same text with any draft, and rows of this target may change with the run they are in, " +
          `since it has no row rule (${this.info.rowRuleNote}); use rule "residual"`,
      );
  }

  private async pace(request: Request, draft: DraftKind): Promise<Pace> {
    const length = draft === "none" ? 0 : lengthOf(request);
    if (length !== "auto") return { kind: "constant", length };
    const greedy = request.sampling.temperature === 0;
    const key = `${draft} ${request.rule} ${greedy}`;
    const known = this.costs.get(key);
    if (known) return { kind: "adaptive", ...known };
    return this.alone(async () => {
      this.check();
      const costs =
        this.costs.get(key) ?? // by one that was asked for meanwhile
        (await measureCosts(this.models, this.draftSpec(draft), request.rule, greedy, this.codec.size, this.controller));
      this.costs.set(key, costs);
      return { kind: "adaptive", ...costs };
    });
  }

  /** A row of each model after a prompt. */
  private async rowsAfter(tokens: readonly number[], draft: boolean): Promise<Partial<Record<Role, Float32Array>>> {
    const slot = ++this.ids;
    const between = async () => {
      await tick();
      this.check();
    };
    const rows: Partial<Record<Role, Float32Array>> = {};
    for (const role of ["target", "draft"] as const) {
      const model = role === "draft" && !draft ? undefined : this.models[role];
      if (!model) continue;
      try {
        const most = role === "draft" ? Math.min(tokens.length, model.forward.contextLength) : tokens.length;
        if (most < tokens.length) continue; // the draft can't read so far, and proposes nothing
        rows[role] = (await model.run(slot, tokens, 0, 1, between))[0] as Float32Array;
      } finally {
        model.release(slot);
      }
    }
    return rows;
  }
}

function told(pace: Pace): Record<string, number | string> {
  return pace.kind === "constant" ? { ...pace } : { ...pace, source: "measured" };
}

/** One generation: its controller, its slots, its text. */
class Stream implements Work {
  ended = false;
  private readonly generation: Generation;
  private readonly meter: Meter = { models: {}, seconds: 0, firstSeconds: 0, controllerSeconds: 0 };
  private answer: number[] | null = null;

  constructor(
    private readonly slot: number,
    spec: Spec,
    private readonly ops: Ops,
    controller: Controller,
    private readonly models: Models,
    private readonly pieces: Pieces,
  ) {
    this.generation = controller.begin(spec, ops);
  }

  async next(): Promise<Batch | null> {
    const began = performance.now();
    const before = this.meter.seconds;
    const now = () => before + (performance.now() - began) / 1000;
    for (;;) {
      const wish = this.step();
      if (!wish) return null;
      if (wish.kind === "emit") {
        const pieces = this.pieces.feed(wish.tokens, wish.reason);
        this.meter.seconds = now();
        this.meter.firstSeconds ||= this.meter.seconds;
        return { ...wish, pieces, meter: structuredClone(this.meter) };
      }
      this.answer = [];
      for (const run of wish.runs) this.answer.push(await this.run(run));
      if (this.ended) return null;
    }
  }

  private step(): Wish | null {
    const began = performance.now();
    const wish = this.generation.next(this.answer);
    this.answer = null;
    this.meter.controllerSeconds += (performance.now() - began) / 1000;
    return wish;
  }

  private async run(run: Run): Promise<number> {
    const model = this.models[run.role] as Model;
    const { runs, rows, padding, milliseconds } = model.counters;
    const found = await model.run(this.slot, run.tokens, run.start, run.keep, async () => {
      await tick();
      if (this.ended) throw ENDED;
    });
    const counts = (this.meter.models[run.role] ??= { runs: 0, rows: 0, padding: 0, seconds: 0 });
    counts.runs += model.counters.runs - runs;
    counts.rows += model.counters.rows - rows;
    counts.padding += model.counters.padding - padding;
    counts.seconds += (model.counters.milliseconds - milliseconds) / 1000;
    return this.ops.hold(run.role, run.start + run.tokens.length - run.keep + 1, found);
  }

  close(): void {
    this.generation.close();
    this.models.target.release(this.slot);
    this.models.draft?.release(this.slot);
  }
}

/** Thrown through a long prompt's chunks when its reader has gone. */
const ENDED = new JourneeError("disposed", "the generation was ended by its reader");

/**
 * The law of the first token, drawn: the shipped controller over rows that were computed once, with a new stream of draws
 * (`sample`) each time. With one proposal and two tokens of room a round judges it; what follows the first token is dropped,
 * so that the row after it may be any.
 */
class Law implements Work {
  ended = false;
  private readonly counts: Uint32Array;
  private done = 0;
  private readonly ops: Ops;

  constructor(
    private readonly rows: Partial<Record<Role, Float32Array>>,
    private readonly prompt: number[],
    private readonly draft: Spec["draft"],
    private readonly rule: Spec["rule"],
    sampling: Sampling,
    private readonly seed: bigint,
    private readonly draws: number,
    private readonly every: number,
    size: number,
    ends: readonly number[],
    private readonly controller: Controller,
  ) {
    this.counts = new Uint32Array(size);
    this.ops = createOps({ prompt, size, sampling, ends });
  }

  async next(): Promise<{ draws: number; counts: Uint32Array } | null> {
    if (this.done === this.draws) return null;
    const stop = Math.min(this.draws, this.done + this.every);
    let since = performance.now();
    for (; this.done < stop && !this.ended; this.done++) {
      const token = this.first(this.done);
      this.counts[token] = (this.counts[token] ?? 0) + 1;
      if (performance.now() - since > 20) {
        await tick();
        since = performance.now();
      }
    }
    return { draws: this.done, counts: this.counts.slice() };
  }

  private first(sample: number): number {
    const { ops } = this;
    ops.clear();
    ops.truncate(this.prompt.length);
    const spec: Spec = {
      prompt: this.prompt,
      rule: this.rule,
      draft: this.draft,
      pace: { kind: "constant", length: this.draft.kind === "none" ? 0 : 1 },
      seed: this.seed,
      sample,
      stops: { limit: 2, reason: "length", ends: [], sequences: [], strings: null },
      trace: false,
    };
    const generation = this.controller.begin(spec, ops);
    try {
      for (let answer: number[] | null = null; ; ) {
        const wish = generation.next(answer);
        if (!wish) throw new JourneeError("runtime", "the controller ended without a token");
        if (wish.kind === "emit") return wish.tokens[0] as number;
        answer = wish.runs.map((run) => {
          const row = this.rows[run.role] as Float32Array;
          return ops.hold(run.role, run.start + run.tokens.length - run.keep + 1, new Array<Float32Array>(run.keep).fill(row));
        });
      }
    } finally {
      generation.close();
    }
  }

  close(): void {
    this.ops.clear();
  }
}
