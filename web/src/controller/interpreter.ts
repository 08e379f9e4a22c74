/** The two interpreters, as far as they are needed: both import a module and call its functions with numbers and strings. */

import { JourneeError } from "../errors";
import source from "./journee_controller.py?raw";

/** What journee_bridge.py offers. */
export interface Bridge {
  attach(page: object): void;
  begin(key: number, spec: string): void;
  step(key: number, answer: string): string;
  end(key: number): void;
  version(): string;
  live(): number;
  used(): number;
}

export interface Interpreter {
  readonly name: "micropython" | "pyodide";
  readonly version: string;
  readonly bridge: Bridge;
  dispose(): void;
}

export interface InterpreterOptions {
  kind: "micropython" | "pyodide";
  /** Where micropython.wasm is; needed where a bundler has moved it. */
  micropythonUrl?: string | undefined;
  /** The folder that Pyodide's files are in; needed in a page. */
  pyodideUrl?: string | URL | undefined;
  /** Bytes of MicroPython's first heap; it grows. */
  heapSize?: number | undefined;
}

/** What this file uses of either. */
interface Python {
  runPython(code: string): unknown;
  pyimport(name: string): unknown;
}

const HEAP = 1 << 20;

/** MicroPython keeps its state in globals of the realm, so there is one at a time. */
let taken = false;

export function boot(options: InterpreterOptions): Promise<Interpreter> {
  return options.kind === "micropython" ? bootMicroPython(options) : bootPyodide(options);
}

async function bootMicroPython({ micropythonUrl, heapSize = HEAP }: InterpreterOptions): Promise<Interpreter> {
  if (taken) {
    throw new JourneeError(
      "runtime",
      "MicroPython runs in this realm already, and there can be one: dispose of its controller, or load in another worker",
    );
  }
  taken = true;
  try {
    const { loadMicroPython } = await import("@micropython/micropython-webassembly-pyscript");
    const python = await loadMicroPython({
      heapsize: heapSize,
      ...(micropythonUrl === undefined ? {} : { url: micropythonUrl }),
    });
    const bridge = load(python);
    return { name: "micropython", version: bridge.version(), bridge, dispose: () => void (taken = false) };
  } catch (error) {
    taken = false;
    throw failed("MicroPython", error);
  }
}

async function bootPyodide({ pyodideUrl }: InterpreterOptions): Promise<Interpreter> {
  const folder = pyodideUrl === undefined ? undefined : String(pyodideUrl).replace(/\/?$/, "/");
  try {
    const { loadPyodide } = (await (folder === undefined
      ? import("pyodide")
      : import(/* @vite-ignore */ `${folder}pyodide.mjs`))) as typeof import("pyodide");
    const python = await loadPyodide(folder === undefined ? {} : { indexURL: folder });
    return { name: "pyodide", version: python.version, bridge: load(python), dispose: () => undefined };
  } catch (error) {
    throw failed("Pyodide", error);
  }
}

/** Install the controller and import its bridge; each function is looked up once, since a look-up makes a proxy. */
function load(python: Python): Bridge {
  python.runPython(source);
  const { attach, begin, step, end, version, live, used } = python.pyimport("journee_bridge") as Bridge;
  return { attach, begin, step, end, version, live, used };
}

function failed(name: string, error: unknown): JourneeError {
  const what = error instanceof Error ? error.message : String(error);
  return new JourneeError("runtime", `${name} does not start: ${what}`, { cause: error });
}
