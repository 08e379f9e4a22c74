/** The same package in Node: the engine runs in the caller's thread, and files come from disk. */

import { cpus } from "node:os";
import type { LanguageModel, LoadOptions } from "./api";
import { Client } from "./client";
import { createController } from "./controller";
import { openEngine, type Surroundings } from "./loading";
import type { Controller } from "./types";

export type * from "./api";
export type { Judgement, Kind, Round, RuleName } from "./types";
export { JourneeError, type ErrorCode } from "./errors";

/** MicroPython keeps its state in globals, so that a realm has one; all models of this thread share it. */
const shared = new Map<string, { controller: Promise<Controller>; users: number }>();

async function sharedController(kind: "micropython" | "pyodide", pyodideUrl: string | undefined): Promise<Controller> {
  const held = shared.get(kind) ?? { controller: createController({ kind, pyodideUrl }), users: 0 };
  shared.set(kind, held);
  held.users++;
  let mine = true;
  const dispose = () => {
    if (!mine) return;
    mine = false;
    if (--held.users) return;
    shared.delete(kind);
    void held.controller.then((controller) => controller.dispose()).catch(() => {});
  };
  try {
    const controller = await held.controller;
    return { name: controller.name, version: controller.version, begin: (spec, ops) => controller.begin(spec, ops), dispose };
  } catch (error) {
    dispose();
    throw error;
  }
}

const around: Surroundings = {
  threads: { isolated: false, most: cpus().length, advice: "in Node the models run on one thread; leave threads out" },
  controller: sharedController,
};

/** Load the bundle in the folder `source`: a path, a file: URL or an http(s): URL. See the browser's `load`. */
export async function load(source: string | URL, options: LoadOptions = {}): Promise<LanguageModel> {
  const { signal, onProgress, ...plain } = options;
  const engine = await openEngine(source.toString(), { cache: false, ...plain }, around, signal ?? new AbortController().signal, onProgress ?? (() => {}));
  return new Client(engine.info, engine, false);
}
