/** The engine's own thread: opens it, and answers calls until it is disposed of. */

import { plainError, type Answer, type Call } from "./calls";
import { createController } from "./controller";
import type { Engine } from "./engine";
import { openEngine, type Surroundings } from "./loading";

declare const self: DedicatedWorkerGlobalScope;

const isolated = self.crossOriginIsolated === true;
const around: Surroundings = {
  runtimeFiles: {
    wasm: new URL(/* @vite-ignore */ "./ort-wasm-simd-threaded.wasm", import.meta.url).href,
    mjs: new URL(/* @vite-ignore */ "./ort-wasm-simd-threaded.mjs", import.meta.url).href,
  },
  threads: {
    isolated,
    most: navigator.hardwareConcurrency,
    advice:
      "this page is not cross-origin isolated; serve it with the headers Cross-Origin-Opener-Policy: same-origin and " +
      "Cross-Origin-Embedder-Policy: require-corp, or leave threads out",
  },
  controller: (kind, pyodideUrl) =>
    createController({
      kind,
      wasmUrl: new URL(/* @vite-ignore */ "./micropython.wasm", import.meta.url).href,
      ...(pyodideUrl === undefined ? {} : { pyodideUrl }),
    }),
};

const loading = new AbortController();
let engine: Engine | null = null;

const answer = (message: Answer) => self.postMessage(message);

self.onmessage = async ({ data }: MessageEvent<Call>) => {
  if (data.kind === "abort") return loading.abort(new DOMException(data.reason, "AbortError"));
  if (data.kind === "load") {
    try {
      engine = await openEngine(data.source, data.options, around, loading.signal, (progress) => answer({ kind: "progress", progress }));
      answer({ kind: "loaded", info: engine.info });
    } catch (error) {
      answer({ kind: "failed", error: plainError(error) });
    }
    return;
  }
  try {
    const method = (engine as Engine)[data.name] as (...args: unknown[]) => Promise<unknown>;
    answer({ kind: "value", id: data.id, value: await method.apply(engine, data.args) });
  } catch (error) {
    answer({ kind: "error", id: data.id, error: plainError(error) });
  }
};
