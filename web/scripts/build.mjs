// Builds the package into dist/: what a page loads, what Node loads, types; prints what a page has to fetch, and fails
// where that is more than it may be; then the page, into dist/page.
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execFileSync } from "node:child_process";
import { gzipSync } from "node:zlib";
import { build } from "vite";
import { buildPage } from "./build_page.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const dist = join(root, "dist");
const require = createRequire(import.meta.url);
const folderOf = (name) => dirname(require.resolve(name));

/** Bytes of gzip that a page may have to fetch before its models. */
const MOST = 4_200_000;

const runtime = folderOf("onnxruntime-web/wasm");
const micropython = join(root, "node_modules/@micropython/micropython-webassembly-pyscript");

/** Files that the worker fetches by URL, as they come. */
const COPIED = [
  [join(runtime, "ort-wasm-simd-threaded.wasm"), "ort-wasm-simd-threaded.wasm"],
  [join(runtime, "ort-wasm-simd-threaded.mjs"), "ort-wasm-simd-threaded.mjs"],
  [join(micropython, "micropython.wasm"), "micropython.wasm"],
];

/** The interpreter's file stays a file: Vite would put it into the script, a third larger. */
const filesStayFiles = {
  name: "files-stay-files",
  enforce: "pre",
  transform(code, id) {
    return id.endsWith("/micropython.mjs") ? code.replaceAll("new URL(", "new URL(/* @vite-ignore */ ") : null;
  },
};

async function bundle(entry, options = {}) {
  await build({
    root,
    configFile: false,
    logLevel: "error", // it warns of Node's modules, which MicroPython imports in Node alone
    plugins: [filesStayFiles],
    publicDir: false,
    // The runtime whose worker threads have a file of their own: they must not run ours.
    resolve: { alias: options.external ? {} : { "onnxruntime-web/wasm": join(runtime, "ort.wasm.min.mjs") } },
    build: {
      outDir: dist,
      emptyOutDir: false,
      target: "es2022",
      minify: options.external ? false : "oxc",
      sourcemap: false,
      reportCompressedSize: false,
      lib: { entry: join(root, "src", `${entry}.ts`), formats: ["es"], fileName: () => `${entry}.js` },
      rolldownOptions: { external: options.external ?? ["pyodide"], output: { codeSplitting: false } },
    },
  });
}

await rm(dist, { recursive: true, force: true });
await mkdir(dist, { recursive: true });
await bundle("index");
await bundle("worker");
for (const name of ["index.js", "worker.js"]) await forBundlers(join(dist, name));
await bundle("node", { external: [/^node:/, /^onnxruntime-web/, /^@huggingface\//, /^@micropython\//, "pyodide"] });
for (const [from, name] of COPIED) await cp(from, join(dist, name));
await cp(join(root, "../LICENSE"), join(root, "LICENSE")).catch(() => {});
execFileSync(process.execPath, [require.resolve("typescript/bin/tsc"), "-p", join(root, "tsconfig.build.json")], { stdio: "inherit" });
await withExtensions(join(dist, "types"));
await check();
await buildPage();

/** Our own files beside a script were left alone by this build; a bundler that takes the package must follow them. */
async function forBundlers(path) {
  const text = await readFile(path, "utf8");
  await writeFile(path, text.replace(/(new URL\(\s*)\/\* @vite-ignore \*\/\s*(?=["'`]\.\/)/g, "$1"));
}

/** Relative imports of declarations get their extension, which Node's resolution asks for. */
async function withExtensions(folder) {
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.name.endsWith(".d.ts")) continue;
    const path = join(entry.parentPath ?? entry.path, entry.name);
    const text = await readFile(path, "utf8");
    await writeFile(path, text.replace(/((?:from|import\()\s*")(\.{1,2}\/[^"]+?)(?:\.js)?(")/g, "$1$2.js$3"));
  }
}

async function check() {
  let total = 0;
  const files = ["index.js", "worker.js", ...COPIED.map(([, name]) => name)];
  console.log("what a page fetches, in bytes:");
  for (const name of files) {
    const content = await readFile(join(dist, name));
    const packed = gzipSync(content, { level: 9 }).length;
    total += packed;
    console.log(`  ${name.padEnd(30)}${String(content.length).padStart(12)}${String(packed).padStart(12)} gzip`);
  }
  console.log(`  ${"in all".padEnd(30)}${"".padStart(12)}${String(total).padStart(12)} gzip, at most ${MOST}`);
  if (total > MOST) {
    console.error(`the package is too large: ${total} bytes of gzip, at most ${MOST}`);
    process.exitCode = 1;
  }
}
