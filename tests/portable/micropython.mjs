// Runs the portable suite in MicroPython: the shipped files, unchanged, in the interpreter that a page uses.
// `node micropython.mjs` prints a line a test and exits with 0 if all passed.

import { boot } from './interpreter.mjs';

const suite = { folder: 'tests/portable', wanted: name => /^(suite_.*|toys|recorded|runner|long_text)\.py$/.test(name) };
const python = await boot([suite], { heapsize: 1 << 20, stdout: line => console.log(line) });

let failed = 0;
const say = (passed, ...what) => {
  console.log(passed ? 'ok' : 'FAILED', ...what);
  failed += passed ? 0 : 1;
};

// A long text first, a step a call as a page drives it: the interpreter collects its garbage between calls only. What a
// round made must be gone after it; the text itself takes some 30 bytes a token in the lists that hold it.
const { advance, used } = python.pyimport('tests.portable.long_text');
const reach = count => {
  while (advance() < count);
  return used();
};
const early = reach(500);
const late = reach(2500);
say(late - early < 2000 * 100, 'long_text.memory_stays_flat', `${early} bytes, then ${late}`);

const { count, one } = python.pyimport('tests.portable.runner');
for (let i = 0; i < count(); i++) {
  const [name, trouble] = one(i).split('|');
  say(!trouble, name, trouble);
}
console.log(failed, 'failed');
process.exit(failed === 0 ? 0 : 1);
