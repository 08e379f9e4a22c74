/**
 * The page's build: web/page into dist/page, and the shipped package's files beside it, byte for byte.
 *
 * The page imports the package as `journee-web`. That import stays as it is, under the address ./journee/index.js, so the page runs
 * what others install. With `engine`, a module's path, that module is built in instead: the tests' model.
 */

import { cp, readdir, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const WEB = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const PACKAGE = "./journee/index.js";
/** What of the package's dist has no use in a page. */
const LEFT_OUT = new Set(["page", "types", "node.js", "node.js.map"]);

/** @param {string | null} engine */
function packagePlugin(engine) {
  return {
    name: "journee-web-as-it-ships",
    enforce: /** @type {const} */ ("pre"),
    /** @param {string} id */
    resolveId(id) {
      if (id !== "journee-web") return null;
      return engine === null ? { id: PACKAGE, external: /** @type {const} */ (true) } : engine;
    },
  };
}

/** @param {string} from @param {string} to */
async function copyPackage(from, to) {
  if (!(await stat(join(from, "index.js")).catch(() => null))) {
    throw new Error(`${join(from, "index.js")} is not there: build the package before its page`);
  }
  await rm(to, { recursive: true, force: true });
  for (const name of await readdir(from)) {
    if (!LEFT_OUT.has(name)) await cp(join(from, name), join(to, name), { recursive: true });
  }
}

/**
 * Build the page. `dist` holds the built package; the page goes to `outDir`, which is emptied.
 *
 * @param {{ dist?: string, outDir?: string, engine?: string | null }} [options]
 * @returns {Promise<string>} where the page is
 */
export async function buildPage({ dist = join(WEB, "dist"), outDir = join(dist, "page"), engine = null } = {}) {
  await build({
    root: join(WEB, "page"),
    base: "./",
    configFile: false,
    logLevel: "warn",
    publicDir: false,
    plugins: [packagePlugin(engine)],
    build: {
      outDir,
      emptyOutDir: true,
      target: "es2022",
      cssTarget: ["chrome123", "firefox120", "safari17.5"],
      assetsInlineLimit: 0,
      modulePreload: false,
      rolldownOptions: {
        output: { entryFileNames: "page-[hash].js", chunkFileNames: "page-[name]-[hash].js", assetFileNames: "[name]-[hash][extname]" },
      },
    },
  });
  await cp(join(WEB, "page/sw.js"), join(outDir, "sw.js"));
  if (engine === null) await copyPackage(dist, join(outDir, "journee"));
  return outDir;
}
