/** One graph in ONNX Runtime's WebAssembly build, run over explicit caches. */

import * as ort from "onnxruntime-web/wasm";
import { JourneeError } from "./errors";
import type { Inputs, Outputs, RoleManifest } from "./manifest";
import type { Cache, Forward } from "./rows/slots";

export const RUNTIME = `onnxruntime-web ${ort.env.versions.web ?? ort.env.versions.common}, wasm`;

/** Settle the threads, once a realm; where the runtime's files are, if it can't tell. */
export function prepare(threads: number, files?: { wasm: string; mjs: string }): void {
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.proxy = false; // it detaches what a run is fed
  ort.env.logLevel = "error";
  if (files) ort.env.wasm.wasmPaths = files;
}

/** The graph of one role, opened. Weights are verified before they come here. */
export async function openForward(role: RoleManifest, files: ReadonlyMap<string, Uint8Array>): Promise<Forward> {
  const { graph } = role;
  const folder = graph.file.slice(0, graph.file.lastIndexOf("/") + 1);
  const externalData = graph.weights.map((file) => ({
    path: file.startsWith(folder) ? file.slice(folder.length) : file,
    data: files.get(file) as Uint8Array,
  }));
  const session = await opened(role, () =>
    ort.InferenceSession.create(files.get(graph.file) as Uint8Array, {
      executionProviders: ["wasm"],
      graphOptimizationLevel: "all",
      externalData,
      logSeverityLevel: 3,
    }),
  );
  try {
    checkPorts(role, session);
    return new WasmForward(session, role);
  } catch (error) {
    await session.release();
    throw error;
  }
}

async function opened(role: RoleManifest, open: () => Promise<ort.InferenceSession>): Promise<ort.InferenceSession> {
  try {
    return await open();
  } catch (error) {
    throw runtimeError(role.graph.file, error);
  }
}

/** What ONNX Runtime raised, by kind. It throws numbers where an exception of C++ was not translated. */
function runtimeError(place: string, error: unknown): JourneeError {
  const message = typeof error === "number" ? `the runtime stopped with code ${error}` : (error as Error)?.message ?? String(error);
  const first = message.split("\n", 1)[0] ?? "";
  if (typeof error === "number" || /out of memory|bad_alloc|allocat|Array buffer|memory access/i.test(message))
    return new JourneeError("out-of-memory", `${place}: not enough memory: ${first}; close other tabs, or take a smaller model`, { cause: error });
  if (/no available backend|WebAssembly|both async and sync fetching/i.test(message))
    return new JourneeError(
      "unsupported-browser",
      `WebAssembly with SIMD can't run here: ${first}; use a current browser, and under a CSP allow script-src 'wasm-unsafe-eval'`,
      { cause: error },
    );
  return new JourneeError("runtime", `${place}: ${first}`, { cause: error });
}

/** Inputs and outputs are those of the manifest, by name, type and shape. A defaulted input isn't listed by the runtime. */
function checkPorts(role: RoleManifest, session: ort.InferenceSession): void {
  const { inputs, outputs, file } = role.graph;
  const expected = new Map<string, readonly [type: string, shape: readonly (number | null)[]]>();
  for (const name of [inputs.tokens, inputs.mask, inputs.positions]) if (name) expected.set(name, ["int64", [null, null]]);
  for (const name of [...inputs.pastKeys, ...inputs.pastValues]) expected.set(name, ["float32", [null, role.kvHeads, null, role.headDim]]);
  compare(file, "inputs", session.inputMetadata, expected, inputs.rowsKept);
  const made = new Map<string, readonly [type: string, shape: readonly (number | null)[]]>([
    [outputs.logits, ["float32", [null, null, role.vocabularySize]]],
  ]);
  for (const name of [...outputs.presentKeys, ...outputs.presentValues]) made.set(name, ["float32", [null, role.kvHeads, null, role.headDim]]);
  compare(file, "outputs", session.outputMetadata, made, null);
}

function compare(
  file: string,
  side: string,
  found: readonly ort.InferenceSession.ValueMetadata[],
  expected: ReadonlyMap<string, readonly [string, readonly (number | null)[]]>,
  optional: string | null,
): void {
  const wrong = (what: string): never => {
    throw new JourneeError("bad-bundle", `${file}: ${what}; export the model again`);
  };
  const names = new Set(found.map((port) => port.name));
  for (const name of expected.keys()) if (!names.has(name)) wrong(`its ${side} lack ${name}, which the manifest names`);
  for (const port of found) {
    if (port.name === optional) continue;
    const [type, shape] = expected.get(port.name) ?? wrong(`its ${side} have ${port.name}, which the manifest doesn't name`);
    if (!port.isTensor || port.type !== type)
      wrong(`${port.name} is ${port.isTensor ? port.type : "no tensor"}, and pages run ${type} alone`);
    else if (port.shape.length !== shape.length || shape.some((size, i) => size !== null && typeof port.shape[i] === "number" && port.shape[i] !== size))
      wrong(`${port.name} has the shape [${port.shape.join(", ")}], expected [${shape.map((size) => size ?? "any").join(", ")}]`);
  }
}

class WasmForward implements Forward {
  readonly name: string;
  readonly vocabularySize: number;
  readonly contextLength: number;
  private readonly inputs: Inputs;
  private readonly outputs: Outputs;
  private readonly past: readonly string[];
  private readonly present: readonly string[];
  private readonly heads: number;
  private readonly width: number;
  private readonly takesKept: boolean;
  private session: ort.InferenceSession | null;

  constructor(session: ort.InferenceSession, role: RoleManifest) {
    const { inputs, outputs } = role.graph;
    this.session = session;
    this.name = role.graph.file;
    this.vocabularySize = role.vocabularySize;
    this.contextLength = role.contextLength;
    this.inputs = inputs;
    this.outputs = outputs;
    this.past = inputs.pastKeys.flatMap((key, i) => [key, inputs.pastValues[i] as string]);
    this.present = outputs.presentKeys.flatMap((key, i) => [key, outputs.presentValues[i] as string]);
    this.heads = role.kvHeads;
    this.width = role.headDim;
    // An input with a default can't be fed here: such a graph gives every row.
    this.takesKept = inputs.rowsKept !== null && session.inputNames.includes(inputs.rowsKept);
  }

  empty(): Cache {
    return { length: 0, parts: this.past.map(() => new Float32Array(0)) };
  }

  async run(past: Cache, tokens: readonly number[], padding: number, keep: number): Promise<{ rows: Float32Array[]; cache: Cache }> {
    if (!this.session) throw new JourneeError("disposed", `${this.name} is closed; load the model again`);
    const total = past.length + tokens.length;
    const feeds: Record<string, ort.Tensor> = {
      [this.inputs.tokens]: integers(tokens.length, (i) => tokens[i] ?? 0),
      [this.inputs.mask]: integers(total, (i) => (i < total - padding ? 1 : 0)),
    };
    if (this.inputs.positions) feeds[this.inputs.positions] = integers(tokens.length, (i) => past.length + i);
    if (this.takesKept && this.inputs.rowsKept) feeds[this.inputs.rowsKept] = new ort.Tensor("int64", BigInt64Array.of(BigInt(keep)), []);
    this.past.forEach((name, i) => {
      feeds[name] = new ort.Tensor("float32", past.parts[i] as Float32Array, [1, this.heads, past.length, this.width]);
    });
    const found = await this.answer(feeds);
    const parts = this.present.map((name) => found[name]?.data as Float32Array);
    return { rows: this.rows(found[this.outputs.logits], tokens.length, keep), cache: { length: total, parts } };
  }

  private async answer(feeds: Record<string, ort.Tensor>): Promise<ort.InferenceSession.OnnxValueMapType> {
    try {
      return await (this.session as ort.InferenceSession).run(feeds);
    } catch (error) {
      throw runtimeError(this.name, error);
    }
  }

  private rows(logits: ort.OnnxValue | undefined, count: number, keep: number): Float32Array[] {
    const tensor = logits as ort.Tensor;
    const [batch, given = 0, size] = tensor.dims;
    if (batch !== 1 || size !== this.vocabularySize || given !== (this.takesKept ? keep : count))
      throw new JourneeError("bad-bundle", `${this.name}: logits have the shape [${tensor.dims.join(", ")}]; export the model again`);
    const data = tensor.data as Float32Array;
    return Array.from({ length: keep }, (_, i) => data.subarray((given - keep + i) * size, (given - keep + i + 1) * size));
  }

  trim(cache: Cache, length: number): Cache {
    const parts = cache.parts.map((part) => {
      const cut = new Float32Array(this.heads * length * this.width);
      for (let head = 0; head < this.heads; head++) {
        const from = head * cache.length * this.width;
        cut.set(part.subarray(from, from + length * this.width), head * length * this.width);
      }
      return cut;
    });
    return { length, parts };
  }

  invent(length: number, random: () => number): Cache {
    const parts = this.past.map(() => {
      const part = new Float32Array(this.heads * length * this.width);
      for (let i = 0; i < part.length; i++) part[i] = 2 * (random() + random() + random()) - 3; // about normal
      return part;
    });
    return { length, parts };
  }

  async close(): Promise<void> {
    const session = this.session;
    this.session = null;
    await session?.release();
  }
}

/** [1, count] of 64-bit integers. */
function integers(count: number, value: (i: number) => number): ort.Tensor {
  const data = new BigInt64Array(count);
  for (let i = 0; i < count; i++) data[i] = BigInt(value(i));
  return new ort.Tensor("int64", data, [1, count]);
}
