// What a bundle does in a page, in one run of Chromium: boot, first token, tokens a second plain and speculative in turns,
// the longest gap of the page's thread, and what the network was asked for.
//
//     node web/benchmarks/page.mjs BUNDLE [--seeds 5] [--tokens 128] [--lengths 2,4,auto] [--greedy]
//
// It needs the built package (make web), `journee` on the PATH, and Chromium (CHROMIUM, or /usr/bin/chromium).
import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: "string", default: "5" },
    tokens: { type: "string", default: "128" },
    lengths: { type: "string", default: "2,4,6,auto" },
    greedy: { type: "boolean", default: false },
    prompt: { type: "string", default: "The proof obligation is" },
    threads: { type: "string", default: "0" },
  },
});
if (positionals.length !== 1) {
  console.error("usage: node web/benchmarks/page.mjs BUNDLE [--seeds 5] [--tokens 128] [--lengths 2,4,auto] [--greedy]");
  process.exit(2);
}

// The package's folder beside the page is named after its content.
const built = new URL("../dist/page/", import.meta.url);
const folder = (await readdir(built)).find((name) => name.startsWith("journee-"));
if (!folder) throw new Error("web/dist/page has no package: run make web first");

const server = spawn("journee", ["web", positionals[0], "--port", "0", "--no-browser"], { stdio: ["ignore", "pipe", "inherit"] });
const address = await new Promise((resolve, reject) => {
  server.once("error", reject);
  server.once("exit", (code) => reject(new Error(`journee web ended with ${code}`)));
  server.stdout.on("data", (chunk) => {
    const found = /http:\S+/.exec(String(chunk));
    if (found) resolve(found[0]);
  });
});
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  const context = await browser.newContext();
  const requests = [];
  context.on("response", async (response) => {
    const size = Number(response.headers()["content-length"] ?? 0);
    requests.push({ path: new URL(response.url()).pathname, origin: new URL(response.url()).origin, status: response.status(), size });
  });
  const page = await context.newPage();
  // A page of the server's that does nothing by itself.
  await page.goto(new URL("bundle.json", address).href);
  const bundle = JSON.parse(await page.evaluate(() => document.body.textContent)).url;
  const measure = (options) =>
    page.evaluate(
      async ({ bundle, folder, seeds, tokens, lengths, greedy, prompt, threads }) => {
        const { load } = await import(`/${folder}/index.js`);
        let last = performance.now();
        let longest = 0;
        let busy = true;
        const channel = new MessageChannel();
        channel.port1.onmessage = () => {
          const now = performance.now();
          longest = Math.max(longest, now - last);
          last = now;
          if (busy) setTimeout(() => channel.port2.postMessage(0), 0);
        };
        channel.port2.postMessage(0);
        const began = performance.now();
        const lm = await load(bundle, { threads });
        const boot = performance.now() - began;
        const loading = longest;
        longest = 0;
        const ways = [{ name: "plain", draft: false }, ...lengths.map((k) => ({ name: `K = ${k}`, speculationLength: k }))];
        const runs = ways.map(() => []);
        const firsts = [];
        for (let seed = 0; seed <= seeds; seed++)
          for (let turn = 0; turn < ways.length; turn++) {
            const at = (turn + seed) % ways.length;
            const { name, ...options } = ways[at];
            const start = performance.now();
            let first = 0;
            const stream = lm.stream(prompt, { maxNewTokens: tokens, seed, logitBias: { 0: -Infinity }, ...(greedy ? { temperature: 0 } : {}), ...options });
            for await (const _ of stream) first ||= performance.now() - start;
            if (!seed) continue; // the first of each warms up
            const seconds = (performance.now() - start) / 1000;
            const { report, tokens: found } = stream.generation();
            runs[at].push({ speed: found.length / seconds, acceptance: report.acceptance, outside: 1 - Object.values(report.models).reduce((sum, model) => sum + model.seconds, 0) / report.seconds, steps: report.controllerSeconds / report.rounds.length });
            if (at === 0) firsts.push(first);
          }
        busy = false;
        return { info: lm.info, boot, firsts, ways: ways.map(({ name }) => name), runs, longest, loading };
      },
      options,
    );
  const found = await measure({
    bundle,
    folder,
    seeds: Number(values.seeds),
    tokens: Number(values.tokens),
    lengths: values.lengths.split(",").map((k) => (k === "auto" ? k : Number(k))),
    greedy: values.greedy,
    prompt: values.prompt,
    threads: Number(values.threads),
  });
  const middle = (list) => [...list].sort((a, b) => a - b)[Math.floor((list.length - 1) / 2)];
  const spread = (list, digits = 0) => `${middle(list).toFixed(digits)} (${Math.min(...list).toFixed(digits)} to ${Math.max(...list).toFixed(digits)})`;
  const { info } = found;
  console.log(`${info.runtime}, ${info.threads} threads, controller in ${info.controller.name} ${info.controller.version}; ${info.rowRule || "NO ROW RULE"}`);
  console.log(`load ${found.boot.toFixed(0)} ms: ${Object.entries(info.milliseconds).map(([name, ms]) => `${name} ${ms.toFixed(0)}`).join(", ")}`);
  console.log(`first piece of plain text after ${spread(found.firsts, 1)} ms`);
  console.log(`longest gap of the page's thread: ${found.loading.toFixed(0)} ms loading, ${found.longest.toFixed(0)} ms generating`);
  for (const [i, name] of found.ways.entries()) {
    const runs = found.runs[i];
    const ratios = runs.map(({ speed }, at) => speed / found.runs[0][at].speed);
    const accepted = runs.map(({ acceptance }) => acceptance).filter((value) => value !== null);
    console.log(
      `${name.padEnd(9)} ${spread(runs.map(({ speed }) => speed))} tokens/s, ${spread(ratios, 2)} of plain; ` +
        `${(100 * middle(runs.map(({ outside }) => outside))).toFixed(0)}% outside the graphs` +
        (accepted.length ? `; ${(100 * middle(accepted)).toFixed(0)}% accepted` : ""),
    );
  }
  const origins = new Set(requests.map(({ origin }) => origin));
  console.log(`network: ${requests.length} requests, ${origins.size} origin, ${requests.filter(({ path }) => path.startsWith(bundle)).length} of the bundle, ` +
    `${(requests.reduce((sum, { size }) => sum + size, 0) / 1e6).toFixed(1)} MB`);
} finally {
  await browser.close();
  server.kill("SIGINT");
}
