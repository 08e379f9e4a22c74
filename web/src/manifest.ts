/**
 * `journee.json`, as far as a page needs it: what is read is checked, the rest is left to the Python side.
 *
 * Rules (docs/bundle.md has the whole format):
 *
 * 1. A newer version is refused. Versions 1 and 2 have no `stored`; there weights are float32.
 * 2. Every path stays in the bundle's folder, below its role's, and is in `files` with size and SHA-256.
 * 3. The graph is the first whose cache is "concat": no other can run here.
 * 4. A draft has the target's vocabulary.
 */

import { JourneeError } from "./errors";
import type { Role } from "./types";

/** The name of the manifest in a bundle's folder. */
export const MANIFEST = "journee.json";
const FORMAT = "journee-bundle";
/** The newest version that is read here. */
const VERSION = 3;
const LONGEST_CONTEXT = 2 ** 20;
/** Rows or multiple of the largest row rule there is. */
const LARGEST_RULE = 32;

export interface FileRecord {
  /** Bytes. */
  size: number;
  /** 64 lower-case hexadecimal digits. */
  sha256: string;
}

/** Names of a graph's inputs; null where there is no such input. */
export interface Inputs {
  tokens: string;
  mask: string;
  positions: string | null;
  pastKeys: readonly string[];
  pastValues: readonly string[];
  rowsKept: string | null;
}

/** Names of a graph's outputs. */
export interface Outputs {
  logits: string;
  presentKeys: readonly string[];
  presentValues: readonly string[];
}

/** Weights rounded for storage, and how far that took the model from the one that was trained. */
export interface Stored {
  precision: "float16" | "int8";
  /** Next tokens of a sample text that were compared. */
  rows: number;
  /** The largest absolute difference of a logit. */
  logits: number;
  /** The mean and the largest total variation between the next-token distributions, at temperature 1. */
  meanTv: number;
  maxTv: number;
}

/** The row rule that the exporter's machine found; another machine looks for its own. */
export interface FoundRule {
  rows: number;
  multiple: number;
  fixed: boolean;
  where: string;
}

export interface Graph {
  id: string;
  /** What the arithmetic runs in. */
  precision: string;
  /** How the weights are stored; null where they are stored as they are. */
  stored: Stored | null;
  file: string;
  weights: readonly string[];
  inputs: Inputs;
  outputs: Outputs;
  rowRule: FoundRule | null;
}

export interface RoleManifest {
  name: Role;
  vocabularySize: number;
  contextLength: number;
  layers: number;
  kvHeads: number;
  headDim: number;
  parameters: number;
  endOfSequence: readonly number[];
  tokenizer: string;
  graph: Graph;
}

export interface Manifest {
  version: number;
  target: RoleManifest;
  draft: RoleManifest | null;
  files: ReadonlyMap<string, FileRecord>;
}

/** The manifest that `text` holds; a `JourneeError` of code "bad-bundle" names the field that is wrong. */
export function readManifest(text: string): Manifest {
  const top = object(parsed(text), "top level");
  const version = readVersion(top);
  const files = readFiles(top);
  const roles = object(field(top, "roles", ""), "roles");
  for (const name of Object.keys(roles)) {
    if (name !== "target" && name !== "draft") {
      throw wrong("roles", `there are 'target' and 'draft', found ${short(name)}`);
    }
  }
  const target = readRole("target", field(roles, "target", "roles"), files, version);
  const draft = Object.hasOwn(roles, "draft") ? readRole("draft", roles["draft"], files, version) : null;
  if (draft) checkPair(roles, target, draft);
  return { version, target, draft, files };
}

/** The files that the models of a manifest are loaded from, each once; without the draft's where it isn't wanted. */
export function neededFiles(manifest: Manifest, draft = true): string[] {
  const { target } = manifest;
  const roles = draft && manifest.draft ? [target, manifest.draft] : [target];
  const graphs = roles.flatMap(({ graph }) => [graph.file, ...graph.weights]);
  return [...new Set([target.tokenizer, ...graphs])];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new JourneeError("bad-bundle", `${MANIFEST} is no JSON: ${String(cause)}; ${AGAIN}`, { cause });
  }
}

function readVersion(top: Fields): number {
  if (top["format"] !== FORMAT) {
    throw new JourneeError(
      "bad-bundle",
      `${MANIFEST} is not a bundle's: 'format' must be "${FORMAT}", found ${short(top["format"])}; give the address of ` +
        "a folder that journee-export wrote",
    );
  }
  const version = whole(field(top, "version", ""), "version", 1);
  if (version > VERSION) {
    throw new JourneeError(
      "bad-bundle",
      `${MANIFEST}: version ${version} is newer than this journee-web reads (${VERSION}); upgrade journee-web, or ` +
        "export the checkpoint again with the journee-deploy that belongs to it",
    );
  }
  return version;
}

function readFiles(top: Fields): ReadonlyMap<string, FileRecord> {
  const found = new Map<string, FileRecord>();
  for (const [name, value] of Object.entries(object(field(top, "files", ""), "files"))) {
    if (!inside(name)) {
      throw wrong("files", `expected paths inside the bundle, with forward slashes, found ${short(name)}`);
    }
    const place = `files.${name}`;
    const record = object(value, place);
    const size = whole(field(record, "size", place), `${place}.size`, 0);
    found.set(name, { size, sha256: hash(field(record, "sha256", place), `${place}.sha256`) });
  }
  return found;
}

function readRole(
  name: Role,
  value: unknown,
  files: ReadonlyMap<string, FileRecord>,
  version: number,
): RoleManifest {
  const place = `roles.${name}`;
  const record = object(value, place);
  const count = (key: string, most?: number) => whole(field(record, key, place), `${place}.${key}`, 1, most);
  const vocabularySize = count("vocabulary_size");
  const layers = count("layers");
  const tokenizer = listed(field(record, "tokenizer", place), `${place}.tokenizer`, name, files);
  const vocabulary = hash(field(record, "vocabulary_hash", place), `${place}.vocabulary_hash`);
  if (files.get(tokenizer)?.sha256 !== vocabulary) {
    throw wrong(`${place}.vocabulary_hash`, `expected the sha256 of ${tokenizer}`);
  }
  return {
    name,
    vocabularySize,
    contextLength: count("context_length", LONGEST_CONTEXT),
    layers,
    kvHeads: count("kv_heads"),
    headDim: count("head_dim"),
    parameters: count("parameters"),
    endOfSequence: list(field(record, "end_of_sequence", place), `${place}.end_of_sequence`).map((token, at) =>
      whole(token, `${place}.end_of_sequence[${at}]`, 0, vocabularySize - 1),
    ),
    tokenizer,
    graph: readGraph(record, name, layers, files, version),
  };
}

function readGraph(
  role: Fields,
  name: Role,
  layers: number,
  files: ReadonlyMap<string, FileRecord>,
  version: number,
): Graph {
  const graphs = list(field(role, "graphs", `roles.${name}`), `roles.${name}.graphs`);
  const at = graphs.findIndex((graph) => isObject(graph) && graph["cache"] === "concat");
  if (at < 0) {
    throw wrong(
      `roles.${name}.graphs`,
      'expected one whose cache is "concat", the only kind that runs here; export the checkpoint with --for web',
    );
  }
  const place = `roles.${name}.graphs[${at}]`;
  const graph = object(graphs[at], place);
  const stored = graph["stored"] ?? null;
  if (stored !== null && version < 3) throw wrong(`${place}.stored`, `version ${version} has no such field`);
  const weights = list(field(graph, "weights", place), `${place}.weights`);
  return {
    id: string(field(graph, "id", place), `${place}.id`),
    precision: string(field(graph, "precision", place), `${place}.precision`),
    stored: stored === null ? null : readStored(stored, `${place}.stored`),
    file: listed(field(graph, "file", place), `${place}.file`, name, files),
    weights: weights.map((file, nth) => listed(file, `${place}.weights[${nth}]`, name, files)),
    inputs: readInputs(field(graph, "inputs", place), `${place}.inputs`, layers),
    outputs: readOutputs(field(graph, "outputs", place), `${place}.outputs`, layers),
    rowRule: readRule(field(graph, "row_rule", place), `${place}.row_rule`),
  };
}

function readStored(value: unknown, place: string): Stored {
  const stored = object(value, place);
  const precision = string(field(stored, "precision", place), `${place}.precision`);
  if (precision !== "float16" && precision !== "int8") {
    throw wrong(`${place}.precision`, `expected "float16" or "int8", found ${short(precision)}`);
  }
  const number = (key: string) => distance(field(stored, key, place), `${place}.${key}`);
  return {
    precision,
    rows: whole(field(stored, "rows", place), `${place}.rows`, 1),
    logits: number("logits"),
    meanTv: number("mean_tv"),
    maxTv: number("max_tv"),
  };
}

function readInputs(value: unknown, place: string, layers: number): Inputs {
  const inputs = object(value, place);
  const read: Inputs = {
    tokens: string(field(inputs, "tokens", place), `${place}.tokens`),
    mask: string(field(inputs, "mask", place), `${place}.mask`),
    positions: maybe(field(inputs, "positions", place), `${place}.positions`),
    pastKeys: names(field(inputs, "past_keys", place), `${place}.past_keys`, layers),
    pastValues: names(field(inputs, "past_values", place), `${place}.past_values`, layers),
    rowsKept: maybe(field(inputs, "rows_kept", place), `${place}.rows_kept`),
  };
  const single = [read.tokens, read.mask, read.positions, read.rowsKept].filter((name) => name !== null);
  differ([...single, ...read.pastKeys, ...read.pastValues], place);
  return read;
}

function readOutputs(value: unknown, place: string, layers: number): Outputs {
  const outputs = object(value, place);
  const read: Outputs = {
    logits: string(field(outputs, "logits", place), `${place}.logits`),
    presentKeys: names(field(outputs, "present_keys", place), `${place}.present_keys`, layers),
    presentValues: names(field(outputs, "present_values", place), `${place}.present_values`, layers),
  };
  differ([read.logits, ...read.presentKeys, ...read.presentValues], place);
  return read;
}

function readRule(value: unknown, place: string): FoundRule | null {
  if (value === null) return null;
  const rule = object(value, place);
  const fixed = field(rule, "fixed", place);
  if (typeof fixed !== "boolean") throw wrong(`${place}.fixed`, `expected true or false, found ${short(fixed)}`);
  return {
    rows: whole(field(rule, "rows", place), `${place}.rows`, 1, LARGEST_RULE),
    multiple: whole(field(rule, "multiple", place), `${place}.multiple`, 1, LARGEST_RULE),
    fixed,
    where: string(field(rule, "where", place), `${place}.where`, 0),
  };
}

function checkPair(roles: Fields, target: RoleManifest, draft: RoleManifest): void {
  const [ours, theirs] = [roles["target"] as Fields, roles["draft"] as Fields];
  for (const key of ["vocabulary_hash", "vocabulary_size"]) {
    if (ours[key] !== theirs[key]) {
      throw wrong(
        `roles.draft.${key}`,
        `the ${draft.name} has ${short(theirs[key])}, the ${target.name} ${short(ours[key])}; train the draft with the ` +
          "target's tokenizer and export the pair again",
      );
    }
  }
}

/** Whether `name` is a relative path with forward slashes that stays where it starts. */
export function inside(name: string): boolean {
  const parts = name.split("/");
  // Half of a surrogate pair has no place in an address.
  return parts.every((part) => part !== "" && part !== "." && part !== "..") && !/[\\:\x00-\x1f\x7f]|\p{Surrogate}/u.test(name);
}

type Fields = Readonly<Record<string, unknown>>;
const AGAIN = "copy or download the bundle again, or export it again";

function wrong(place: string, complaint: string): JourneeError {
  return new JourneeError("bad-bundle", `${MANIFEST}: ${place}: ${complaint}; ${AGAIN}`);
}

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length <= 60 ? text : `${text.slice(0, 57)}...`;
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function object(value: unknown, place: string): Fields {
  if (!isObject(value)) throw wrong(place, `expected an object, found ${short(value)}`);
  return value;
}

function field(record: Fields, key: string, place: string): unknown {
  if (!Object.hasOwn(record, key)) throw wrong(place || "top level", `missing '${key}'`);
  return record[key];
}

function list(value: unknown, place: string): readonly unknown[] {
  if (!Array.isArray(value)) throw wrong(place, `expected a list, found ${short(value)}`);
  return value;
}

function string(value: unknown, place: string, least = 1): string {
  if (typeof value !== "string" || value.length < least) throw wrong(place, `expected a text, found ${short(value)}`);
  return value;
}

function maybe(value: unknown, place: string): string | null {
  return value === null ? null : string(value, place);
}

function whole(value: unknown, place: string, least: number, most = Number.MAX_SAFE_INTEGER): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most) {
    const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
    throw wrong(place, `expected an integer ${range}, found ${short(value)}`);
  }
  return value;
}

function distance(value: unknown, place: string): number {
  if (typeof value !== "number" || !(value >= 0)) throw wrong(place, `expected a number from 0 on, found ${short(value)}`);
  return value;
}

function hash(value: unknown, place: string): string {
  if (typeof value !== "string" || !/^[0-9a-f]{64}$/.test(value)) {
    throw wrong(place, `expected a sha256, 64 lower-case hexadecimal digits, found ${short(value)}`);
  }
  return value;
}

function listed(value: unknown, place: string, role: Role, files: ReadonlyMap<string, FileRecord>): string {
  const name = string(value, place);
  if (!name.startsWith(`${role}/`)) throw wrong(place, `expected a path below ${role}/, found ${short(name)}`);
  if (!files.has(name)) throw wrong(place, `${short(name)} is not in 'files'`);
  return name;
}

/** One name a layer. */
function names(value: unknown, place: string, layers: number): readonly string[] {
  const found = list(value, place).map((name, at) => string(name, `${place}[${at}]`));
  if (found.length !== layers) throw wrong(place, `expected one name a layer (${layers}), found ${found.length}`);
  return found;
}

function differ(found: readonly string[], place: string): void {
  if (new Set(found).size < found.length) throw wrong(place, "names must differ");
}
