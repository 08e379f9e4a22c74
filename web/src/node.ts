/** The same package in Node: the engine runs in the caller's thread, and files come from disk. */

import { cpus } from "node:os";
import type { LanguageModel, LoadOptions } from "./api";
import { Client } from "./client";
import { createController } from "./controller";
import { openEngine, type Surroundings } from "./loading";

export type * from "./api";
export type { Judgement, Kind, Round, RuleName } from "./types";
export { JourneeError, type ErrorCode } from "./errors";

const around: Surroundings = {
  threads: { isolated: false, most: cpus().length, advice: "in Node the models run on one thread; leave threads out" },
  controller: (kind, pyodideUrl) => createController({ kind, ...(pyodideUrl === undefined ? {} : { pyodideUrl }) }),
};

/** Load the bundle in the folder `source`: a path, a file: URL or an http(s): URL. See the browser's `load`. */
export async function load(source: string | URL, options: LoadOptions = {}): Promise<LanguageModel> {
  const { signal, onProgress, ...plain } = options;
  const engine = await openEngine(source.toString(), { cache: false, ...plain }, around, signal ?? new AbortController().signal, onProgress ?? (() => {}));
  return new Client(engine.info, engine, false);
}
