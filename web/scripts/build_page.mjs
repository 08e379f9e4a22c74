/**
 * The page's build: web/page into dist/page, and the shipped package's files beside it, byte for byte.
 *
 * The page imports the package as `journee-web`. That import stays as it is, under the address ./journee-HASH/index.js, so the page
 * runs what others install. The hash is of the package's files: whatever is cached, a page runs the package that it was built
 * with, all of it. With `engine`, a module's path, that module is built in instead: the tests' model.
 */

import { createHash } from "node:crypto";
import { cp, readdir, readFile, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const WEB = resolve(dirname(fileURLToPath(import.meta.url)), "..");
/** What of the package's dist has no use in a page. */
const LEFT_OUT = new Set(["page", "types", "node.js", "node.js.map"]);

/** @param {string} folder @param {string | null} engine */
function packagePlugin(folder, engine) {
  return {
    name: "journee-web-as-it-ships",
    enforce: /** @type {const} */ ("pre"),
    /** @param {string} id */
    resolveId(id) {
      if (id !== "journee-web") return null;
      return engine === null ? { id: `${folder}index.js`, external: /** @type {const} */ (true) } : engine;
    },
  };
}

/** The package's files that a page needs, and their folder beside it. @param {string} from */
async function packageIn(from) {
  if (!(await stat(join(from, "index.js")).catch(() => null))) {
    throw new Error(`${join(from, "index.js")} is not there: build the package before its page`);
  }
  const files = (await readdir(from)).filter((name) => !LEFT_OUT.has(name)).sort();
  const hash = createHash("sha256");
  for (const name of files) hash.update(`${name}\n`).update(createHash("sha256").update(await readFile(join(from, name))).digest());
  return { files, folder: `./journee-${hash.digest("hex").slice(0, 12)}/` };
}

/**
 * Build the page. `dist` holds the built package; the page goes to `outDir`, which is emptied.
 *
 * @param {{ dist?: string, outDir?: string, engine?: string | null }} [options]
 * @returns {Promise<string>} where the page is
 */
export async function buildPage({ dist = join(WEB, "dist"), outDir = join(dist, "page"), engine = null } = {}) {
  const { files, folder } = engine === null ? await packageIn(dist) : { files: [], folder: "./journee/" };
  await build({
    root: join(WEB, "page"),
    base: "./",
    configFile: false,
    logLevel: "warn",
    publicDir: false,
    plugins: [packagePlugin(folder, engine)],
    define: { JOURNEE_PACKAGE: JSON.stringify(engine === null ? folder : null) },
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
  for (const name of files) await cp(join(dist, name), join(outDir, folder, name));
  return outDir;
}
