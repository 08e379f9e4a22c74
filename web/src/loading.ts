/** From a bundle's address to an engine: files, sessions, the row rule, the controller, in the worker or in Node. */

import type { LoadOptions, ModelInfo, Progress, RoleInfo } from "./api";
import { Engine, type DraftKind } from "./engine";
import { JourneeError } from "./errors";
import type { Manifest, RoleManifest } from "./manifest";
import { settleRule } from "./rows/settle";
import { type Forward, Model } from "./rows/slots";
import { openForward, prepare, RUNTIME } from "./session";
import { openBundle, type OpenedBundle } from "./store";
import { Codec } from "./text";
import type { Controller, Role } from "./types";

/** What differs between a page's worker and Node. */
export interface Surroundings {
  /** Where ONNX Runtime's files are; left out where it knows. */
  runtimeFiles?: { wasm: string; mjs: string };
  /** Threads that there may be: more than 1 only where memory can be shared. */
  threads: { isolated: boolean; most: number; advice: string };
  controller(kind: "micropython" | "pyodide", pyodideUrl: string | undefined): Promise<Controller>;
}

/** The options that cross to a worker: no functions, no signal. */
export type PlainOptions = Omit<LoadOptions, "onProgress" | "signal">;

const DRAFTS = ["auto", "model", "ngram", "uniform", "none"] as const;
const OPTIONS: readonly string[] = ["draft", "threads", "controller", "pyodideUrl", "cache"];
const CONTROLLERS = ["micropython", "pyodide"] as const;

export async function openEngine(
  source: string,
  options: PlainOptions,
  around: Surroundings,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<Engine> {
  check(options);
  const threads = threadsFor(options.threads ?? 0, around);
  prepare(threads, around.runtimeFiles);
  const clock = new Stopwatch();
  const opened: (() => Promise<void> | void)[] = [];
  let last: Progress = { stage: "manifest", file: "", loaded: 0, total: 0, network: 0 };
  const tell = (progress: Progress) => onProgress((last = progress));
  const stage = (name: Progress["stage"], file = "") => tell({ ...last, stage: name, file });
  try {
    const starting = around.controller(options.controller ?? "micropython", options.pyodideUrl?.toString());
    starting.catch(() => {}); // awaited below; until then it is nobody's failure
    opened.push(async () => (await starting.catch(() => null))?.dispose());
    const wanted = options.draft ?? "auto";
    const bundle = await openBundle(source, {
      signal,
      onProgress: tell,
      draft: wanted === "auto" || wanted === "model",
      ...(options.cache === undefined ? {} : { cache: options.cache }),
    });
    opened.push(() => bundle.close());
    const { manifest } = bundle;
    const draft = draftKind(manifest, wanted, source);
    clock.lap("manifest");
    const codec = await openCodec(bundle, manifest.target);
    const roles: RoleManifest[] = draft === "model" && manifest.draft ? [manifest.target, manifest.draft] : [manifest.target];
    const files = new Map<string, Uint8Array>();
    const wantedFiles = new Set(roles.flatMap(({ graph }) => [graph.file, ...graph.weights]));
    await Promise.all([...wantedFiles].map(async (file) => files.set(file, await bundle.read(file))));
    clock.lap("files");
    const models: Partial<Record<Role, Model>> = {};
    for (const role of roles) {
      stage("models", role.graph.file);
      signal.throwIfAborted();
      const forward = await openForward(role, files);
      opened.push(() => forward.close());
      if (forward.vocabularySize < codec.size) throw tooFewLogits(forward, codec);
      models[role.name] = new Model(forward);
    }
    files.clear(); // the sessions hold their own copies
    clock.lap("models");
    stage("row-rule");
    const target = models.target as Model;
    await settleRule(target, bundle, manifest.target, `${RUNTIME}, ${threads} threads`, signal, options.cache ?? true);
    clock.lap("rowRule");
    const controller = await starting;
    clock.lap("controller");
    signal.throwIfAborted();
    stage("ready");
    const info: ModelInfo = {
      url: bundle.url,
      isolated: around.threads.isolated,
      threads,
      controller: { name: controller.name, version: controller.version },
      runtime: RUNTIME,
      draft,
      vocabularySize: codec.size,
      contextLength: target.forward.contextLength,
      rowRule: target.rule?.toString() ?? "",
      rowRuleNote: target.note,
      roles: Object.fromEntries(roles.map((role) => [role.name, roleInfo(manifest, role)])),
      networkBytes: bundle.networkBytes,
      cachedBytes: bundle.cachedBytes,
      milliseconds: clock.laps,
      notes: [...bundle.notes],
    };
    bundle.close();
    return new Engine(info, codec, controller, models as Record<"target", Model>, manifest.target.endOfSequence);
  } catch (error) {
    for (const undo of opened.reverse()) await undo();
    throw signal.aborted ? signal.reason : error;
  }
}

function check(options: PlainOptions): void {
  for (const name of Object.keys(options))
    if (!OPTIONS.includes(name))
      throw new JourneeError("bad-request", `load has no option ${name}; there is: ${[...OPTIONS, "onProgress", "signal"].join(", ")}`);
  const among = (name: string, value: unknown, allowed: readonly unknown[]) => {
    if (value !== undefined && !allowed.includes(value))
      throw new JourneeError("bad-request", `${name} is ${JSON.stringify(value)}; it must be one of: ${allowed.join(", ")}`);
  };
  among("draft", options.draft, DRAFTS);
  among("controller", options.controller, CONTROLLERS);
  among("cache", options.cache, [true, false]);
  const { threads = 0 } = options;
  if (!Number.isSafeInteger(threads) || threads < 0)
    throw new JourneeError("bad-request", `threads is ${String(threads)}; it must be a whole number, or 0 to let the package choose`);
}

function threadsFor(asked: number, { threads }: Surroundings): number {
  if (asked <= 1) return asked || (threads.isolated ? Math.max(1, Math.min(4, Math.floor(threads.most / 2))) : 1);
  if (!threads.isolated) throw new JourneeError("unsupported-browser", `threads is ${asked}: ${threads.advice}`);
  return asked;
}

function draftKind(manifest: Manifest, wanted: NonNullable<LoadOptions["draft"]>, source: string): DraftKind {
  if (wanted === "auto") return manifest.draft ? "model" : "none";
  if (wanted === "model" && !manifest.draft)
    throw new JourneeError("bad-request", `${source} has no draft; export it with --draft, or load it with draft: "ngram" or "none"`);
  return wanted;
}

async function openCodec(bundle: OpenedBundle, role: RoleManifest): Promise<Codec> {
  return new Codec(new TextDecoder().decode(await bundle.read(role.tokenizer)), role.tokenizer);
}

function tooFewLogits(forward: Forward, codec: Codec): JourneeError {
  return new JourneeError(
    "bad-bundle",
    `${forward.name} gives ${forward.vocabularySize} logits a row, the tokenizer has ${codec.size} tokens; ` +
      "export the model again with its own tokenizer",
  );
}

function roleInfo(manifest: Manifest, role: RoleManifest): RoleInfo {
  const { graph } = role;
  const bytes = [graph.file, ...graph.weights].reduce((sum, file) => sum + (manifest.files.get(file)?.size ?? 0), 0);
  const stored = graph.stored ? `, weights stored as ${graph.stored.precision}` : "";
  return { parameters: role.parameters, layers: role.layers, graph: graph.id, precision: `${graph.precision}${stored}`, bytes };
}

class Stopwatch {
  readonly laps: Record<string, number> = {};
  private last = performance.now();

  lap(name: string): void {
    const now = performance.now();
    this.laps[name] = now - this.last;
    this.last = now;
  }
}
