/**
 * Exact speculative decoding in a page.
 *
 *     import { load } from "journee-web";
 *     const lm = await load("/models/tiny/", { onProgress, signal });
 *     for await (const piece of lm.stream("The proof obligation is", { maxNewTokens: 64, seed: 42, signal })) show(piece);
 *
 * The engine has a worker of its own: no graph and no step of the controller runs on the page's thread.
 */

import type { LanguageModel, LoadOptions, ModelInfo } from "./api";
import { revived, type Answer, type Call } from "./calls";
import { Client } from "./client";
import type { Service } from "./engine";
import { JourneeError } from "./errors";

export type * from "./api";
export type { Judgement, Kind, Round, RuleName } from "./types";
export { JourneeError, type ErrorCode } from "./errors";

/**
 * Load the bundle in the folder `source`, which `journee-export` wrote.
 *
 * Rejects with a `JourneeError` (its `code` says what kind), or with the signal's reason.
 */
export async function load(source: string | URL, options: LoadOptions = {}): Promise<LanguageModel> {
  const { signal, onProgress, ...plain } = options;
  signal?.throwIfAborted();
  const call: Call = { kind: "load", source: absolute(source), options: withPlainUrl(plain) };
  const worker = begun();
  const post = (call: Call) => worker.postMessage(call);
  let abort = () => {};
  try {
    const info = await new Promise<ModelInfo>((resolve, reject) => {
      abort = () => {
        post({ kind: "abort", reason: "the load was aborted" });
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
      worker.onerror = (event) => reject(noWorker(event.message));
      worker.onmessageerror = () => reject(new JourneeError("runtime", "an answer of the engine's worker can't be read; load again"));
      worker.onmessage = ({ data }: MessageEvent<Answer>) => {
        if (data.kind === "progress") {
          try {
            onProgress?.(data.progress);
          } catch (error) {
            reject(error);
          }
        } else if (data.kind === "loaded") resolve(data.info);
        else if (data.kind === "failed") reject(revived(data.error));
      };
      send(worker, call);
    });
    return new Client(info, remote(worker), true);
  } catch (error) {
    if (signal?.aborted) await stopped(worker);
    worker.terminate();
    throw error;
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}

function begun(): Worker {
  if (typeof Worker === "undefined" || typeof WebAssembly === "undefined")
    throw new JourneeError("unsupported-browser", "there are no workers or no WebAssembly here; use a current browser");
  try {
    return new Worker(new URL(/* @vite-ignore */ "./worker.js", import.meta.url), { type: "module", name: "journee" });
  } catch (error) {
    throw noWorker(error instanceof Error ? error.message : String(error));
  }
}

function noWorker(message: string | undefined): JourneeError {
  return new JourneeError(
    "unsupported-browser",
    `the engine's worker can't start${message ? `: ${message}` : ""}; is worker.js served beside index.js, and does the page's CSP allow it (worker-src 'self')?`,
  );
}

/** Give an aborted load a moment to stop its downloads and to give back its locks. */
async function stopped(worker: Worker): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, 1000);
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      if (data.kind !== "failed" && data.kind !== "loaded") return;
      clearTimeout(timer);
      resolve();
    };
  });
}

function withPlainUrl(options: Omit<LoadOptions, "signal" | "onProgress">): Omit<LoadOptions, "signal" | "onProgress"> {
  return options.pyodideUrl === undefined
    ? options
    : { ...options, pyodideUrl: absolute(options.pyodideUrl) };
}

function absolute(address: string | URL): string {
  try {
    return new URL(address, globalThis.document?.baseURI ?? globalThis.location?.href).href;
  } catch (cause) {
    throw new JourneeError("bad-request", `no address: ${String(address)}`, { cause });
  }
}

/** Post a call; what can't cross, such as a function among the options, is refused. */
function send(worker: Worker, call: Call): void {
  try {
    worker.postMessage(call);
  } catch (cause) {
    throw new JourneeError("bad-request", `what was asked can't be sent to the engine's worker: ${String(cause)}`, { cause });
  }
}

/** The service behind the worker's border. */
function remote(worker: Worker): Service {
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();
  let ids = 0;
  let gone: JourneeError | null = null;
  const lose = (error: JourneeError) => {
    worker.terminate();
    gone ??= error;
    for (const { reject } of waiting.values()) reject(gone);
    waiting.clear();
  };
  worker.onmessage = ({ data }: MessageEvent<Answer>) => {
    if (data.kind !== "value" && data.kind !== "error") return;
    const caller = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.kind === "value") caller?.resolve(data.value);
    else caller?.reject(revived(data.error));
  };
  const failed = (what: string) => lose(new JourneeError("runtime", `the engine's worker failed: ${what}; load the model again`));
  worker.onerror = (event) => failed(event.message);
  worker.onmessageerror = () => failed("an answer of its can't be read");
  const call = <Name extends keyof Service>(name: Name, ...args: Parameters<Service[Name]>) =>
    new Promise((resolve, reject) => {
      if (gone) return reject(gone);
      send(worker, { kind: "call", id: ++ids, name, args });
      waiting.set(ids, { resolve, reject });
    }) as ReturnType<Service[Name]>;
  const disposed = new JourneeError("disposed", "the model was disposed of; load it again");
  return {
    encode: (text, special) => call("encode", text, special),
    decode: (tokens) => call("decode", tokens),
    start: (prompt, request, seed) => call("start", prompt, request, seed),
    next: (stream) => call("next", stream),
    startLaw: (prompt, options, seed) => call("startLaw", prompt, options, seed),
    nextLaw: (law) => call("nextLaw", law),
    end: (id) => call("end", id),
    nextToken: (prompt, options) => call("nextToken", prompt, options),
    async dispose() {
      lose(disposed); // with the worker goes all that it has, whatever it is doing
    },
  };
}
