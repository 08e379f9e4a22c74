import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { inside, neededFiles, readManifest } from "../../src/manifest";
import { smallManifest, type Json } from "./small_bundle";

const shipped = readFileSync(new URL("../../../artifacts/tiny/journee.json", import.meta.url), "utf8");

function refused(change: (manifest: Json) => void): string {
  const manifest = smallManifest();
  change(manifest);
  return complaint(JSON.stringify(manifest));
}

function complaint(text: string): string {
  try {
    readManifest(text);
  } catch (error) {
    expect(error).toMatchObject({ name: "JourneeError", code: "bad-bundle" });
    return (error as Error).message;
  }
  throw new Error("it was taken");
}

test("the shipped bundle's", () => {
  const manifest = readManifest(shipped);
  expect(manifest.version).toBe(2);
  const { target, draft } = manifest;
  expect(target).toMatchObject({ name: "target", vocabularySize: 1024, contextLength: 4096, layers: 4, endOfSequence: [0] });
  expect(target.graph).toMatchObject({ id: "concat-fp32", stored: null, weights: ["target/onnx/model.onnx_data"] });
  expect(target.graph.inputs).toMatchObject({ positions: "position_ids", rowsKept: "num_logits_to_keep" });
  expect(target.graph.rowRule).toMatchObject({ rows: 2, multiple: 1, fixed: false });
  expect(draft?.graph.rowRule).toBeNull();
  expect(neededFiles(manifest)).toEqual([
    "target/tokenizer.json", "target/onnx/model.onnx", "target/onnx/model.onnx_data",
    "draft/onnx/model.onnx", "draft/onnx/model.onnx_data",
  ]);
  expect(neededFiles(manifest, false)).toHaveLength(3);
});

test("one for pages: the portable graph, wherever it stands, and what its rounding cost", () => {
  const { target } = readManifest(JSON.stringify(smallManifest()));
  expect(target.graph.id).toBe("concat-fp32");
  expect(target.graph.stored).toEqual({ precision: "float16", rows: 9, logits: 0.5, meanTv: 0.01, maxTv: 0.1 });
  expect(target.graph.weights).toHaveLength(2);
});

test("without a draft", () => {
  const manifest = smallManifest();
  delete manifest["roles"].draft;
  expect(readManifest(JSON.stringify(manifest)).draft).toBeNull();
});

test("fields that only the Python side reads may be whatever they are", () => {
  const manifest = smallManifest();
  manifest["roles"].target.graphs[1].operators = manifest["versions"] = manifest["roles"].target.source = null;
  readManifest(JSON.stringify(manifest));
});

describe("refusals name the field", () => {
  const target = (manifest: Json) => manifest["roles"].target;
  const graph = (manifest: Json) => target(manifest).graphs[1];
  test.each<[string, (manifest: Json) => void, string]>([
    ["another format", (m) => (m["format"] = "zip"), "'format' must be \"journee-bundle\", found \"zip\""],
    ["a newer version", (m) => (m["version"] = 4), "version 4 is newer than this journee-web reads (3); upgrade journee-web"],
    ["no version", (m) => delete m["version"], "top level: missing 'version'"],
    ["version 1.5", (m) => (m["version"] = 1.5), "version: expected an integer of at least 1, found 1.5"],
    ["no target", (m) => delete m["roles"].target, "roles: missing 'target'"],
    ["another role", (m) => (m["roles"].judge = {}), "roles: there are 'target' and 'draft', found \"judge\""],
    ["a role that is none", (m) => (m["roles"].target = 3), "roles.target: expected an object, found 3"],
    ["no layers", (m) => (target(m).layers = 0), "roles.target.layers: expected an integer of at least 1, found 0"],
    ["a count as text", (m) => (target(m).kv_heads = "1"), 'roles.target.kv_heads: expected an integer of at least 1, found "1"'],
    ["too long a context", (m) => (target(m).context_length = 2 ** 21), "roles.target.context_length: expected an integer from 1 to"],
    ["an end beyond the vocabulary", (m) => (target(m).end_of_sequence = [0, 300]), "roles.target.end_of_sequence[1]: expected"],
    ["another tokenizer", (m) => (target(m).vocabulary_hash = "a".repeat(64)), "roles.target.vocabulary_hash: expected the sha256 of"],
    ["no hash", (m) => (m["files"]["target/config.json"].sha256 = "A"), "files.target/config.json.sha256: expected a sha256"],
    ["a negative size", (m) => (m["files"]["target/config.json"].size = -1), "files.target/config.json.size: expected an integer"],
    ["no graph that runs here", (m) => target(m).graphs.pop(), 'roles.target.graphs: expected one whose cache is "concat"'],
    ["an unlisted file", (m) => (graph(m).file = "target/x.onnx"), "roles.target.graphs[1].file: \"target/x.onnx\" is not in 'files'"],
    ["the draft's weights", (m) => (graph(m).weights = ["draft/config.json"]), "graphs[1].weights[0]: expected a path below target/"],
    ["a name too few", (m) => graph(m).inputs.past_keys.pop(), "graphs[1].inputs.past_keys: expected one name a layer (2), found 1"],
    ["a name twice", (m) => (graph(m).outputs.logits = "K0"), "graphs[1].outputs: names must differ"],
    ["an input twice", (m) => (graph(m).inputs.mask = "k1"), "graphs[1].inputs: names must differ"],
    ["no mask", (m) => delete graph(m).inputs.mask, "graphs[1].inputs: missing 'mask'"],
    ["too large a rule", (m) => (graph(m).row_rule.rows = 64), "row_rule.rows: expected an integer from 1 to 32, found 64"],
    ["another storage", (m) => (graph(m).stored.precision = "int4"), 'stored.precision: expected "float16" or "int8", found "int4"'],
    ["a distance below 0", (m) => (graph(m).stored.max_tv = -1), "stored.max_tv: expected a number from 0 on, found -1"],
    ["stored before its time", (m) => (m["version"] = 2), "graphs[1].stored: version 2 has no such field"],
    ["another vocabulary", (m) => (m["roles"].draft.vocabulary_size = 301), "roles.draft.vocabulary_size: the draft has 301, the target 300"],
  ])("%s", (_, change, expected) => {
    const found = refused(change);
    expect(found).toContain(expected);
    expect(found).toMatch(/; (copy or download the bundle again|upgrade|give the address|export the checkpoint|train the draft)/);
  });

  test.each(["", "{", "[]", "null", "<!doctype html>"])("no JSON object: %s", (text) => {
    expect(complaint(text)).toContain("journee.json");
  });
});

test.each([
  "../outside", "target/../../outside", "/etc/hostname", "target//x", "./x", "target/", "", "..", "C:/x", "a\\b", "c:x", "a\0b", "a\nb",
  "https://elsewhere/x", "\\\\server\\share", "target/\ud800", "\udc00\ud800",
])("a path that could leave the bundle: %j", (name) => {
  expect(inside(name)).toBe(false);
  expect(refused((manifest) => (manifest["files"][name] = { size: 1, sha256: "a".repeat(64) }))).toContain(
    "files: expected paths inside the bundle",
  );
});

test.each(["a", "target/onnx/model.onnx_data_1", "a b/%2e%2e", "target/.hidden", "a..b/c"])("a path that stays: %j", (name) => {
  expect(inside(name)).toBe(true);
});
