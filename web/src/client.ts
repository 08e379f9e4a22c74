/** `LanguageModel` over a `Service`: streams, signals and reports, on the caller's side. */

import type {
  GenerateOptions,
  Generation,
  LanguageModel,
  LawCounts,
  LawOptions,
  ModelInfo,
  NextToken,
  Piece,
  Report,
  Stream,
} from "./api";
import type { Batch, Header, Meter, Service } from "./engine";
import { checkNames, readRequest, readRule, readSampling, type Request } from "./request";
import type { Judgement, Kind, Round } from "./types";

type Prompt = string | readonly number[];

const NEXT = ["rule", "seed", "temperature", "topK", "topP", "minP", "special"];
const LAW = [...NEXT, "way", "draws", "every"];

export class Client implements LanguageModel {
  constructor(
    readonly info: ModelInfo,
    private readonly service: Service,
    /** Whether the next round may run while the reader looks at this one: where the engine has a thread of its own. */
    private readonly ahead: boolean,
  ) {}

  stream(prompt: Prompt, options: GenerateOptions = {}): Stream {
    const own = Array.isArray(prompt) ? [...(prompt as number[])] : prompt; // it is read when the first piece is asked for
    return new Reading(this.service, this.info, own, readRequest(options), options.signal, this.ahead);
  }

  async generate(prompt: Prompt, options: GenerateOptions = {}): Promise<Generation> {
    const stream = this.stream(prompt, options);
    for await (const _ of stream);
    return stream.generation();
  }

  async encode(text: string, options: { special?: boolean } = {}): Promise<number[]> {
    return this.service.encode(text, options.special ?? false);
  }

  async decode(tokens: readonly number[]): Promise<string> {
    return this.service.decode([...tokens]);
  }

  async nextToken(prompt: Prompt, options: Omit<LawOptions, "way" | "draws" | "every"> = {}): Promise<NextToken> {
    const { signal, ...plain } = options;
    checkNames(plain, NEXT);
    readSampling(plain);
    signal?.throwIfAborted();
    return unlessAborted(signal, this.service.nextToken(prompt, { ...plain, way: "plain" }));
  }

  async *law(prompt: Prompt, options: LawOptions): AsyncGenerator<LawCounts, void, void> {
    const { signal, ...plain } = options;
    checkNames(plain, LAW);
    readRule(plain.rule);
    readSampling(plain);
    signal?.throwIfAborted();
    const starting = this.service.startLaw(prompt, plain, seedOf(plain.seed));
    try {
      const law = await unlessAborted(signal, starting);
      for (;;) {
        const counts = await unlessAborted(signal, this.service.nextLaw(law));
        if (!counts) return;
        yield counts;
      }
    } finally {
      await starting.then((law) => this.service.end(law)).catch(() => {});
    }
  }

  async dispose(): Promise<void> {
    await this.service.dispose();
  }
}

/** One generation as its reader sees it. Nothing starts before the first piece is asked for. */
class Reading implements Stream {
  private readonly seed: bigint;
  private starting: Promise<Header> | null = null;
  private header: Header | null = null;
  private coming: Promise<Batch | null> | null = null;
  private ready: Piece[] = [];
  private finished = false;
  /** Its reader wants no more: what still comes is dropped. */
  private left = false;
  /** Settles when the piece asked for last is there: pieces come one after another, however many are asked for at once. */
  private turn: Promise<unknown> = Promise.resolve();
  private text = "";
  private readonly tokens: number[] = [];
  private readonly kinds: Kind[] = [];
  private readonly rounds: Round[] = [];
  private readonly judgements: Judgement[] = [];
  private meter: Meter = { models: {}, seconds: 0, firstSeconds: 0, controllerSeconds: 0 };
  private reason = "";

  constructor(
    private readonly service: Service,
    private readonly info: ModelInfo,
    private readonly prompt: Prompt,
    private readonly request: Request,
    private readonly signal: AbortSignal | undefined,
    private readonly ahead: boolean,
  ) {
    this.seed = request.seed ?? seedOf(undefined);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Piece, undefined>> {
    const mine = this.turn.then(() => this.piece());
    this.turn = mine.catch(() => {});
    return mine;
  }

  private async piece(): Promise<IteratorResult<Piece, undefined>> {
    try {
      while (!this.ready.length) {
        if (this.finished) return { done: true, value: undefined };
        this.signal?.throwIfAborted();
        await this.round();
      }
    } catch (error) {
      await this.end();
      throw error;
    }
    const piece = this.ready.shift() as Piece;
    this.text += piece.text;
    return { done: false, value: piece };
  }

  async return(): Promise<IteratorResult<Piece, undefined>> {
    this.left = true;
    this.ready = [];
    await this.end();
    return { done: true, value: undefined };
  }

  private async round(): Promise<void> {
    this.starting ??= this.service.start(this.prompt, this.request, this.seed);
    this.header = await unlessAborted(this.signal, this.starting);
    const { stream } = this.header;
    if (this.left) return;
    const batch = await unlessAborted(this.signal, this.coming ?? this.service.next(stream));
    this.coming = null;
    if (!batch || this.left) {
      this.finished = true;
      return;
    }
    if (this.ahead && !batch.reason) {
      this.coming = this.service.next(stream);
      this.coming.catch(() => {}); // told when it is awaited
    }
    this.take(batch);
    if (batch.reason) await this.end();
  }

  private take(batch: Batch): void {
    this.tokens.push(...batch.tokens);
    this.kinds.push(...batch.kinds);
    this.rounds.push(batch.round);
    this.judgements.push(...batch.judgements);
    this.meter = batch.meter;
    this.reason = batch.reason;
    for (const { text, index } of batch.pieces)
      this.ready.push({
        text,
        kind: this.kinds[index] as Kind,
        token: this.tokens[index] as number,
        count: index + 1,
        judgement: this.judgements[index] ?? null,
      });
  }

  private async end(): Promise<void> {
    if (this.finished) return;
    this.finished = true;
    const header = await this.starting?.catch(() => null);
    if (header) await this.service.end(header.stream).catch(() => {});
  }

  generation(): Generation {
    return { text: this.text, tokens: [...this.tokens], kinds: [...this.kinds], report: this.report() };
  }

  private report(): Report {
    const sum = (name: "proposed" | "judged" | "accepted") => this.rounds.reduce((total, round) => total + round[name], 0);
    const judged = sum("judged");
    const predictions = this.judgements.flatMap(({ predicted }) => (predicted === null ? [] : [predicted]));
    return {
      rule: this.request.rule,
      draft: this.header?.draft ?? (this.request.draft ? this.info.draft : "none"),
      seed: this.seed,
      sample: this.request.sample,
      promptTokens: this.header?.promptTokens ?? 0,
      reason: this.reason,
      rowRule: this.info.rowRule,
      rowRuleNote: this.info.rowRuleNote,
      exact: this.info.rowRule !== "",
      pace: this.header?.pace ?? {},
      rounds: [...this.rounds],
      judgements: [...this.judgements],
      ...this.meter,
      proposed: sum("proposed"),
      judged,
      accepted: sum("accepted"),
      acceptance: judged ? sum("accepted") / judged : null,
      predicted: predictions.length ? predictions.reduce((total, p) => total + p, 0) / predictions.length : null,
    };
  }
}

/** A seed as given, checked by the request, or one from the system. */
function seedOf(given: number | bigint | undefined): bigint {
  if (given !== undefined) return readRequest({ seed: given }).seed as bigint;
  return crypto.getRandomValues(new BigUint64Array(1))[0] as bigint;
}

/** What `promise` gives, or the signal's reason as soon as it is aborted; the promise itself goes on. */
async function unlessAborted<T>(signal: AbortSignal | undefined, promise: Promise<T>): Promise<T> {
  if (!signal) return promise;
  promise.catch(() => {});
  signal.throwIfAborted();
  let abort: (() => void) | undefined;
  try {
    return await Promise.race([
      promise,
      new Promise<never>((_, reject) => signal.addEventListener("abort", (abort = () => reject(signal.reason)), { once: true })),
    ]);
  } finally {
    if (abort) signal.removeEventListener("abort", abort);
  }
}
