/** The row rule that is remembered: taken where it is one, and found anew where what was kept is damaged. */

import { afterEach, expect, test, vi } from "vitest";
import type { RoleManifest } from "../../src/manifest";
import { settleRule } from "../../src/rows/settle";
import { Model, type Cache as Rows, type Forward } from "../../src/rows/slots";
import type { OpenedBundle } from "../../src/store";

/** Rows that depend on the last token alone: the first candidate holds. */
function model(): Model {
  const none = (length: number): Rows => ({ length, parts: [] });
  const forward: Forward = {
    name: "flat",
    vocabularySize: 4,
    contextLength: 64,
    empty: () => none(0),
    trim: (_, length) => none(length),
    invent: none,
    close: async () => {},
    run: async (past, tokens, _, keep) => ({ rows: tokens.slice(-keep).map((token) => Float32Array.of(token, 0, 0, 0)), cache: none(past.length + tokens.length) }),
  };
  return new Model(forward);
}

const role = { graph: { file: "g", weights: [] } } as unknown as RoleManifest;
const bundle = { manifest: { files: new Map() } } as unknown as OpenedBundle;

async function settled(entry: string | null): Promise<{ model: Model; kept: string }> {
  let kept = "";
  const match = async () => (entry === null ? undefined : new Response(entry));
  const put = async (_: string, response: Response) => void (kept = await response.text());
  vi.stubGlobal("caches", { open: async () => ({ match, put }) });
  const held = model();
  await settleRule(held, bundle, role, "here", new AbortController().signal, true);
  return { model: held, kept };
}
afterEach(() => vi.unstubAllGlobals());

test.each(['{"rows":9,"rule":[2,4,false]}', '{"rows":9,"rule":[8,8,true]}'])("a rule that was found is taken: %s", async (entry) => {
  const { model, kept } = await settled(entry);
  const rule = model.rule;
  expect([rule?.rows, rule?.multiple, rule?.fixed]).toEqual((JSON.parse(entry) as { rule: unknown }).rule);
  expect([model.note.includes("earlier"), kept]).toEqual([true, ""]);
});

test("that none holds is remembered too", async () => expect((await settled('{"rows":9,"rule":null}')).model.rule).toBeNull());

test.each([
  null, "", "{", "null", "[]", '{"rows":9}', '{"rows":"9","rule":null}', '{"rows":9,"rule":[0,0,false]}', '{"rows":9,"rule":[1]}',
  '{"rows":9,"rule":[1,1,true]}', '{"rows":9,"rule":[3,5,false]}', '{"rows":9,"rule":"1,1"}', '{"rows":9,"rule":{"rows":1}}',
])("the test runs where nothing good is kept: %s", async (entry) => {
  const { model, kept } = await settled(entry);
  expect(model.rule?.toString()).toBe("at least 1 row a run");
  expect(model.note).toContain("self-test now");
  expect(JSON.parse(kept)).toMatchObject({ rule: [1, 1, false] });
});
