// Runs a graph in onnxruntime-web, as a page would: reads {graph, feeds: {name: [type, dims, values]}} as JSON from
// standard input, with the weights beside the graph, and writes the logits as JSON. tests/export/test_page.py calls it.
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import * as ort from "onnxruntime-web/wasm";

const { graph, feeds } = JSON.parse(readFileSync(0, "utf8"));
ort.env.wasm.numThreads = 1;
const folder = dirname(graph);
const beside = readdirSync(folder).filter((name) => name.startsWith(`${basename(graph)}_data`));
const session = await ort.InferenceSession.create(readFileSync(graph), {
  executionProviders: ["wasm"],
  externalData: beside.map((path) => ({ path, data: readFileSync(join(folder, path)) })),
});
const tensors = {};
for (const [name, [type, dims, values]] of Object.entries(feeds)) {
  const data = type === "int64" ? BigInt64Array.from(values, BigInt) : Float32Array.from(values);
  tensors[name] = new ort.Tensor(type, data, dims);
}
const { logits } = await session.run(tensors);
process.stdout.write(JSON.stringify({ dims: logits.dims, logits: [...logits.data] }));
