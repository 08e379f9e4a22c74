/**
 * Drives the shipped Python controller. The controller decides; this moves numbers and strings between it and the ops.
 *
 * An exception may not cross the interpreter: in MicroPython it would skip `finally` and switch the collector off. So an op
 * that throws answers FAILED, its error is held, and it is thrown when Python is back.
 */

import { JourneeError } from "../errors";
import { firstDart, Philox } from "../ops";
import type { Controller, Emit, Generation, Judgement, Kind, Ops, Role, Run, Spec, Wish } from "../types";
import { boot, type Interpreter, type InterpreterOptions } from "./interpreter";

export interface ControllerOptions extends InterpreterOptions {
  /** Who draws: "ops" (default) is Philox here; "python" is the reference, slower, and the same to the bit. */
  draws?: "ops" | "python";
}

const FAILED = -2;
const FAILED_TEXT = "!";

/** Start an interpreter and load the controller into it. */
export async function createController(options: ControllerOptions): Promise<PythonController> {
  return new PythonController(await boot(options), options.draws ?? "ops");
}

/** What the ops' functions need to know of the generation that is being stepped. */
interface Current {
  ops: Ops;
  draws: Philox;
  strings: Spec["stops"]["strings"];
  generated: number[];
  /** What was made for judgements and not yet sent: Python knows the numbers. */
  shown: [number, number][][];
  /** The first error of an op or a callback, in a box. */
  failure: { error: unknown } | null;
}

export class PythonController implements Controller {
  readonly name: "micropython" | "pyodide";
  readonly version: string;
  readonly #interpreter: Interpreter;
  readonly #draws: "ops" | "python";
  #current: Current | null = null;
  #keys = 0;
  #disposed = false;

  constructor(interpreter: Interpreter, draws: "ops" | "python") {
    this.#interpreter = interpreter;
    this.#draws = draws;
    this.name = interpreter.name;
    this.version = interpreter.version;
    interpreter.bridge.attach(this.#page());
  }

  begin(spec: Spec, ops: Ops): Generation {
    const current: Current = {
      ops,
      draws: new Philox(spec.seed, spec.sample),
      strings: spec.stops.strings,
      generated: [],
      shown: [],
      failure: null,
    };
    checkWhole(spec, ops.size);
    const key = ++this.#keys;
    const { bridge } = this.#interpreter;
    const text = written(spec, ops.size, this.#draws);
    this.#enter(current, "bad-request", () => bridge.begin(key, text));
    let live = true;
    return {
      next: answer => {
        if (!live) return null;
        let wish: string;
        try {
          wish = this.#enter(current, "runtime", () => bridge.step(key, answer === null ? "" : answer.join(",")));
        } catch (error) {
          live = false;
          // An op that failed in a `finally` doesn't end the generation in Python, which went on.
          if (!this.#disposed && current.failure) this.#finish(key, current);
          throw error;
        }
        if (wish === "") live = false;
        const read = wish === "" ? null : readWish(wish, current.shown);
        if (read?.kind === "emit") current.shown = [];
        return read;
      },
      close: () => {
        if (!live) return;
        live = false;
        if (!this.#disposed) this.#enter(current, "runtime", () => bridge.end(key));
      },
    };
  }

  /** Generations under way, and bytes that Python has in use (0 where the interpreter can't tell). */
  get usage(): { live: number; bytes: number } {
    const { bridge } = this.#interpreter;
    return { live: bridge.live(), bytes: bridge.used() };
  }

  /** Let Python forget a generation that failed; what fails on the way has been told. */
  #finish(key: number, current: Current): void {
    try {
      this.#enter(current, "runtime", () => this.#interpreter.bridge.end(key));
    } catch {
      // the first error is the one to throw
    }
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#interpreter.dispose();
  }

  /** Call Python for a generation; what an op threw goes before what Python made of it. */
  #enter<T>(current: Current, code: "bad-request" | "runtime", call: () => T): T {
    if (this.#disposed) throw new JourneeError("disposed", "the controller was disposed of");
    if (this.#current !== null) {
      throw new JourneeError("runtime", "the controller was called out of a function that it called; it can't be");
    }
    this.#current = current;
    let answer: T;
    try {
      answer = call();
    } catch (error) {
      if (current.failure) throw current.failure.error;
      throw fromPython(error, code);
    } finally {
      this.#current = null;
    }
    if (current.failure) throw current.failure.error;
    return answer;
  }

  /** The functions that Python calls. They answer for the current generation and never throw. */
  #page(): object {
    const guard =
      <A extends number[]>(act: (current: Current, ...args: A) => number) =>
      (...args: A): number => {
        const current = this.#current!;
        if (current.failure) return FAILED;
        try {
          return act(current, ...args);
        } catch (error) {
          current.failure = { error };
          return FAILED;
        }
      };
    /** Python's `finally` calls these two, after a failure too. */
    const always =
      <A extends number[]>(act: (current: Current, ...args: A) => void) =>
      (...args: A): number => {
        const current = this.#current!;
        try {
          act(current, ...args);
        } catch (error) {
          current.failure ??= { error };
        }
        return 0;
      };
    const show = (current: Current, found: [number, number][]) => current.shown.push(found) - 1;
    return {
      clear: always(({ ops }) => ops.clear()),
      truncate: always(({ ops }, length: number) => ops.truncate(length)),
      push: guard(({ ops }, token: number) => (ops.push(token), 0)),
      distribution: guard(({ ops }, row: number) => ops.distribution(row)),
      oneHot: guard(({ ops }, token: number) => ops.oneHot(token)),
      uniform: guard(({ ops }) => ops.uniform()),
      weight: guard(({ ops }, handle: number, token: number) => ops.weight(handle, token)),
      total: guard(({ ops }, handle: number) => ops.total(handle)),
      locate: guard(({ ops }, handle: number, fraction: number) => ops.locate(handle, fraction)),
      residual: guard(({ ops }, p: number, q: number) => ops.residual(p, q)),
      overlap: guard(({ ops }, p: number, q: number) => ops.overlap(p, q)),
      agreement: guard(({ ops }, p: number, q: number) => ops.agreement(p, q)),
      top: guard((current, handle: number, count: number) => show(current, current.ops.top(handle, count))),
      topLogits: guard((current, row: number, count: number) => show(current, current.ops.topLogits(row, count))),
      boxes: (handle: number): string => {
        let text = FAILED_TEXT;
        guard(({ ops }) => ((text = ops.boxes(handle).join(",")), 0))();
        return text;
      },
      below: guard(
        ({ draws }, bound: number, purpose: number, position: number, round: number) =>
          draws.below(bound * UNITS, [purpose, position, round]) / UNITS,
      ),
      firstDart: guard(({ ops, draws }, handle: number, position: number) => firstDart(ops, draws, handle, position).token),
      strings: (start: number, known: string, fresh: string): number =>
        guard(current => {
          current.generated.length = start;
          current.generated.push(...numbers(known));
          return current.strings!(current.generated, numbers(fresh)) ? 1 : 0;
        })(),
    };
  }
}

const UNITS = 2 ** 50;

/** Numbers that cross as whole ones are whole, and fit: 32 bits is all that MicroPython takes. */
function checkWhole({ prompt, pace, stops }: Spec, size: number): void {
  const most = 2 ** 31 - 1;
  const counts = { size, limit: stops.limit, ...(pace.kind === "constant" ? { length: pace.length } : { most: pace.most }) };
  for (const [name, value] of Object.entries(counts))
    if (!Number.isInteger(value) || Math.abs(value) > most)
      throw new JourneeError("bad-request", `${name} is ${value}; it must be a whole number, at most ${most}`);
  for (const tokens of [prompt, stops.ends, ...stops.sequences])
    for (const token of tokens)
      if (!Number.isInteger(token) || token < 0 || token > most)
        throw new JourneeError("bad-request", `${token} is no token; tokens are whole numbers`);
}

/** A spec as the bridge reads it: JSON without fractions, since decimals are not read alike everywhere. */
function written(spec: Spec, size: number, draws: string): string {
  const { pace, stops } = spec;
  return JSON.stringify({
    prompt: spec.prompt,
    rule: spec.rule,
    draft: spec.draft,
    pace: pace.kind === "constant" ? pace : { ...pace, draft: bits(pace.draft), row: bits(pace.row), free: bits(pace.free) },
    seed: String(spec.seed),
    sample: String(spec.sample),
    limit: stops.limit,
    reason: stops.reason,
    ends: stops.ends,
    sequences: stops.sequences,
    strings: stops.strings !== null,
    trace: spec.trace,
    size,
    draws,
  });
}

function readWish(wish: string, shown: readonly [number, number][][]): Wish {
  const parts = wish.split("|");
  if (parts[0] === "r") return { kind: "run", runs: parts[1]!.split(";").map(readRun) };
  return { kind: "emit", ...readEmit(parts, shown) };
}

function readRun(text: string): Run {
  const [role, start, keep, tokens] = text.split(" ") as [string, string, string, string];
  return { role: role as Role, tokens: numbers(tokens), start: Number(start), keep: Number(keep) };
}

function readEmit(parts: readonly string[], shown: readonly [number, number][][]): Emit {
  const [, tokens, kinds, counts, reason, judgements] = parts as [string, string, string, string, string, string];
  const [length, proposed, judged, accepted, emitted, empty, rows] = numbers(counts) as [
    number, number, number, number, number, number, number,
  ];
  return {
    tokens: numbers(tokens),
    kinds: kinds.split(",") as Kind[],
    round: { length, proposed, judged, accepted, emitted, empty, rows },
    reason,
    judgements: judgements === "" ? [] : judgements.split(";").map(text => readJudgement(text, shown)),
  };
}

function readJudgement(text: string, shown: readonly [number, number][][]): Judgement {
  const [token, kind, proposal, p, proposalP, proposalQ, coin, tv, predicted, top, logits] = text.split(" ") as [
    string, string, string, string, string, string, string, string, string, string, string,
  ];
  return {
    token: Number(token),
    kind: kind as Kind,
    p: double(p)!,
    proposal: proposal === "" ? null : Number(proposal),
    proposalP: double(proposalP),
    proposalQ: double(proposalQ),
    coin: double(coin),
    tv: double(tv),
    predicted: double(predicted),
    top: shown[Number(top)]!,
    logits: shown[Number(logits)]!,
  };
}

function numbers(text: string): number[] {
  return text === "" ? [] : text.split(",").map(Number);
}

const view = new DataView(new ArrayBuffer(8));

/** A float64 as sixteen hexadecimal digits. */
function bits(value: number): string {
  view.setFloat64(0, value);
  return view.getBigUint64(0).toString(16).padStart(16, "0");
}

function double(digits: string): number | null {
  if (digits === "") return null;
  view.setBigUint64(0, BigInt(`0x${digits}`));
  return view.getFloat64(0);
}

/** A Python exception as an error of this package: its traceback is the message. */
function fromPython(error: unknown, code: "bad-request" | "runtime"): JourneeError {
  const { type, message } = error as { type?: string; message?: string };
  const trace = String(message ?? error).trim();
  if (type === undefined) return new JourneeError("runtime", `the controller's interpreter failed: ${trace}`, { cause: error });
  if (type === "MemoryError") return new JourneeError("out-of-memory", `the controller is out of memory:\n${trace}`, { cause: error });
  if (code === "bad-request" && type === "ValueError") {
    return new JourneeError(code, trace.split("\n").at(-1)!.replace(/^ValueError: /, ""), { cause: error });
  }
  return new JourneeError("runtime", `the controller failed:\n${trace}`, { cause: error });
}
