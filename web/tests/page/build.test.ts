/** A page and its package go together: whatever an older page left in a cache, no file of its package has a newer one's address. */

import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { expect, test } from "vitest";
import { buildPage } from "../../scripts/build_page.mjs";

test("the package's address changes with any of its files, and with nothing else; the page asks for that one alone", async () => {
  const folder = await mkdtemp(join(tmpdir(), "journee-build-"));
  try {
    const dist = join(folder, "dist");
    const outDir = join(folder, "page");
    const names = ["index.js", "worker.js", "some.wasm"];
    const addressOf = async (changed: string) => {
      await rm(folder, { recursive: true });
      await mkdir(dist, { recursive: true });
      for (const name of names) await writeFile(join(dist, name), name === changed ? "changed" : name);
      await writeFile(join(dist, "node.js"), changed); // no part of a page
      await buildPage({ dist, outDir });
      const packages = (await readdir(outDir)).filter((name) => name.startsWith("journee"));
      expect(packages).toHaveLength(1);
      const address = packages[0] as string;
      expect((await readdir(join(outDir, address))).sort()).toEqual([...names].sort());
      const scripts = (await readdir(outDir)).filter((name) => name.startsWith("page-"));
      const text = (await Promise.all(scripts.map((name) => readFile(join(outDir, name), "utf8")))).join("");
      expect(new Set(text.match(/\.\/journee[^"'`/]*\//g))).toEqual(new Set([`./${address}/`]));
      return address;
    };
    const first = await addressOf("none");
    expect(await addressOf("node.js")).toBe(first);
    const found = [first];
    for (const name of names) found.push(await addressOf(name));
    expect(new Set(found).size).toBe(found.length);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}, 60_000);

const DIST = fileURLToPath(new URL("../../dist", import.meta.url));

test.skipIf(!existsSync(join(DIST, "worker.js")))("a bundler that takes the package takes along what its worker fetches", async () => {
  const folder = await mkdtemp(join(tmpdir(), "journee-app-"));
  try {
    await writeFile(join(folder, "index.html"), '<script type="module" src="./main.js"></script>');
    await writeFile(join(folder, "main.js"), 'import { load } from "journee-web"; console.log(load);');
    await build({
      root: folder,
      configFile: false,
      logLevel: "silent",
      resolve: { alias: { "journee-web": join(DIST, "index.js") } },
      build: { outDir: join(folder, "out"), assetsInlineLimit: 0, reportCompressedSize: false, rolldownOptions: { treeshake: false } },
      worker: { rolldownOptions: { external: ["pyodide"] } },
    });
    const assets = (await readdir(join(folder, "out/assets"))).map((name) => name.replace(/-[\w-]{8}(?=\.\w+$)/, "")).sort();
    expect(assets).toEqual(expect.arrayContaining(["worker.js", "micropython.wasm", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"]));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}, 60_000);
