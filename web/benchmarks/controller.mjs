// Microseconds a controller's step by interpreter, and microseconds an op by vocabulary: `node benchmarks/controller.mjs`.
//
// A step is one call of `next`: asking for a run, or emitting. Ops are timed apart from the steps: the steps' vocabulary has
// 16 tokens. Figures are processor time (a busy machine would lengthen the clock's), medians over repetitions, with the least
// and the most.

import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'vite';

// Built as for a page: Vite's way of running sources makes every imported constant a property, a hundred times slower.
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const outDir = join(root, 'node_modules/.benchmarks');
await build({
  root,
  configFile: false,
  logLevel: 'error',
  build: {
    outDir,
    target: 'es2022',
    ssr: true,
    rollupOptions: { input: { controller: 'src/controller/index.ts', ops: 'src/ops/index.ts' } },
  },
});
const built = name => import(pathToFileURL(join(outDir, `${name}.js`)).href);
const { createController } = await built('controller');
const { createOps, DEFAULT_SAMPLING, firstDart, Philox } = await built('ops');

const REPEATS = 9;

function rowsOf(size, count, spread) {
  let word = 1;
  const next = () => (word = Math.imul(word, 1664525) + 1013904223) >>> 8;
  return Array.from({ length: count }, () =>
    Float32Array.from({ length: size }, () => (spread * ((next() % 4096) + (next() % 4096) + (next() % 4096))) / 4096),
  );
}

function median(times) {
  const sorted = times.toSorted((a, b) => a - b);
  const show = time => time.toFixed(time < 10 ? 1 : 0);
  return `${show(sorted[sorted.length >> 1])} (${show(sorted[0])} to ${show(sorted.at(-1))})`;
}

function repeated(act, count) {
  act(); // warm
  return median(
    Array.from({ length: REPEATS }, () => {
      const start = process.cpuUsage();
      const steps = act();
      return process.cpuUsage(start).user / (steps ?? count);
    }),
  );
}

/** A generation of so many tokens; how many steps it took. */
function generate(controller, rule, size, limit) {
  const rows = { target: rowsOf(size, 5, 3), draft: rowsOf(size, 5, 2.5) };
  return () => {
    const ops = createOps({ size, prompt: [1], sampling: DEFAULT_SAMPLING });
    const generation = controller.begin(
      {
        prompt: [1],
        rule,
        draft: { kind: 'model', context: 0 },
        pace: { kind: 'constant', length: 4 },
        seed: 7n,
        sample: 0,
        stops: { limit, reason: 'length', ends: [], sequences: [], strings: null },
        trace: false,
      },
      ops,
    );
    let steps = 0;
    let answer = null;
    for (;;) {
      steps++;
      const wish = generation.next(answer);
      if (wish === null) return steps;
      answer = wish.kind === 'run' ? wish.runs.map(run => ops.hold(run.role, 1, rows[run.role].slice(0, run.keep))) : null;
    }
  };
}

console.log('microseconds a step (V = 16, K = 4)');
for (const [kind, draws] of [
  ['micropython', 'ops'],
  ['micropython', 'python'],
  ['pyodide', 'ops'],
]) {
  const begun = performance.now();
  const controller = await createController({ kind, draws });
  const boot = Math.round(performance.now() - begun);
  for (const rule of ['residual', 'coupled']) {
    const limit = draws === 'python' && rule === 'coupled' ? 40 : 400;
    const time = repeated(generate(controller, rule, 16, limit));
    console.log(`  ${kind} ${controller.version}, ${rule}, drawing in ${draws}: ${time}`);
  }
  console.log(`  ${kind}: boots in ${boot} ms`);
  controller.dispose();
}

console.log('microseconds an op');
for (const size of [1024, 32000, 50257]) {
  const rows = rowsOf(size, 8, 4);
  const settings = {
    'distribution, T = 1': { ...DEFAULT_SAMPLING },
    'distribution, top-k 50': { ...DEFAULT_SAMPLING, topK: 50 },
    'distribution, T = 0.8, top-p 0.95': { ...DEFAULT_SAMPLING, temperature: 0.8, topP: 0.95 },
    'distribution, T = 0': { ...DEFAULT_SAMPLING, temperature: 0 },
  };
  for (const [name, sampling] of Object.entries(settings)) {
    const ops = createOps({ size, prompt: [1], sampling });
    const act = () => {
      for (let i = 0; i < 64; i++) {
        ops.clear();
        ops.distribution(ops.hold('target', 1, [rows[i % 8]]));
      }
    };
    console.log(`  V = ${size}, ${name}: ${repeated(act, 64)}`);
  }
  const ops = createOps({ size, prompt: [1], sampling: DEFAULT_SAMPLING });
  const handles = rows.map(row => ops.distribution(ops.hold('target', 1, [row])));
  const draws = new Philox(7n);
  const per = {
    'first dart': i => firstDart(ops, draws, handles[i % 8], i),
    locate: i => ops.locate(handles[i % 8], draws.below(2 ** 50, [0, i, 0]) / 2 ** 50),
    overlap: i => ops.overlap(handles[i % 8], handles[(i + 1) % 8]),
  };
  for (const [name, act] of Object.entries(per)) {
    console.log(`  V = ${size}, ${name}: ${repeated(() => { for (let i = 0; i < 64; i++) act(i); }, 64)}`);
  }
}
