/** A bundle of a few kilobytes that no runtime would load, and a server for it that can misbehave. */

import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Json = { [key: string]: any };

const hash = (content: Uint8Array) => createHash("sha256").update(content).digest("hex");
const bytes = (length: number, seed: number) => Uint8Array.from({ length }, (_, at) => (at * 31 + seed * 7 + (at >> 8)) & 255);

/** Files by path; the two tokenizers are the same. `seed` makes other weights. */
export function smallFiles(seed = 1): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  for (const [role, at] of [["target", 1], ["draft", 2]] as const) {
    files.set(`${role}/tokenizer.json`, new TextEncoder().encode("{}"));
    files.set(`${role}/config.json`, bytes(30, at));
    files.set(`${role}/onnx/model_fp16.onnx`, bytes(300, at));
    files.set(`${role}/onnx/model_fp16.onnx_data`, bytes(200_000, at + 10 * seed));
    files.set(`${role}/onnx/model_fp16.onnx_data_1`, bytes(1000, at + 10 * seed + 5));
  }
  return files;
}

export function smallManifest(files = smallFiles()): Json {
  const records = [...files].map(([name, content]) => [name, { size: content.length, sha256: hash(content) }] as const);
  const vocabulary = hash(files.get("target/tokenizer.json") as Uint8Array);
  const role = (name: string): Json => ({
    vocabulary_size: 300, context_length: 64, layers: 2, kv_heads: 1, head_dim: 8, parameters: 1000, dtype: "float32",
    end_of_sequence: [0], tokenizer: `${name}/tokenizer.json`, vocabulary_hash: vocabulary, corpus_hash: "c".repeat(64),
    graphs: [
      graph(name, "shared", null),
      graph(name, "concat", { precision: "float16", rows: 9, logits: 0.5, mean_tv: 0.01, max_tv: 0.1 }),
    ],
    source: {},
  });
  return {
    format: "journee-bundle", version: 3, roles: { target: role("target"), draft: role("draft") },
    files: Object.fromEntries(records), versions: {},
  };
}

function graph(role: string, cache: string, stored: Json | null): Json {
  return {
    id: `${cache}-fp32`, cache, precision: "float32", opset: 24, accuracy_level: null, router: "none", operators: {}, parity: [],
    file: `${role}/onnx/model_fp16.onnx`,
    weights: [`${role}/onnx/model_fp16.onnx_data`, `${role}/onnx/model_fp16.onnx_data_1`],
    inputs: {
      tokens: "input_ids", mask: "attention_mask", positions: cache === "shared" ? null : "position_ids",
      past_keys: ["k0", "k1"], past_values: ["v0", "v1"], rows_kept: "num_logits_to_keep",
    },
    outputs: { logits: "logits", present_keys: ["K0", "K1"], present_values: ["V0", "V1"] },
    row_rule: { rows: 2, multiple: 1, fixed: false, where: "somewhere" },
    ...(stored ? { stored } : {}),
  };
}

/** Answers a request in place of the file; false leaves it to the file. */
export type Trouble = (path: string, request: IncomingMessage, response: ServerResponse) => boolean;

/** Serves files under /models/small/ and counts what is asked for. */
export class SmallServer {
  asked: string[] = [];
  trouble: Trouble = () => false;
  private server: Server | null = null;
  private port = 0;

  constructor(
    public files = smallFiles(),
    public manifest: string = JSON.stringify(smallManifest(files)),
  ) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}/models/small/`;
  }

  /** Of those asked for, all but the manifest. */
  get weights(): string[] {
    return this.asked.filter((path) => path !== "journee.json");
  }

  publish(files: Map<string, Uint8Array>): void {
    this.files = files;
    this.manifest = JSON.stringify(smallManifest(files));
  }

  async start(): Promise<this> {
    this.server = createServer((request, response) => this.answer(request, response));
    await new Promise<void>((resolve) => this.server?.listen(this.port, "127.0.0.1", resolve));
    this.port = (this.server.address() as AddressInfo).port;
    return this;
  }

  /** As if the network were gone; `start` comes back to the same port. */
  async stop(): Promise<void> {
    this.server?.closeAllConnections();
    await new Promise((resolve) => this.server?.close(resolve));
  }

  private answer(request: IncomingMessage, response: ServerResponse): void {
    const path = decodeURIComponent(request.url ?? "").replace("/models/small/", "");
    this.asked.push(path);
    if (this.trouble(path, request, response)) return;
    const content = path === "journee.json" ? this.manifest : this.files.get(path);
    if (content === undefined) response.writeHead(404).end("nothing");
    else response.writeHead(200, { "content-length": Buffer.byteLength(content) }).end(content);
  }
}
