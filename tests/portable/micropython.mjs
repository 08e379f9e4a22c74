// Runs the portable suite in MicroPython: the shipped files, unchanged, in the interpreter that a page uses.
// `node micropython.mjs` prints a line a test and exits with 0 if all passed.

import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(dirname(here));

// What the interpreter lacks of the two modules that annotations need, and package files.
const files = {
  '/__future__.py': 'annotations = None\n',
  '/typing.py': 'TYPE_CHECKING = False\n',
  '/journee_deploy/__init__.py': '',
  '/tests/__init__.py': '',
  '/tests/portable/__init__.py': '',
};

function take(folder, wanted) {
  for (const name of readdirSync(join(root, folder))) {
    if (wanted(name)) files[`/${folder}/${name}`] = readFileSync(join(root, folder, name), 'utf8');
  }
}

take('journee_deploy/controller', name => name.endsWith('.py'));
take('journee_deploy/arithmetic', name => name.endsWith('.py') && name !== 'vectors.py');
take('tests/portable', name => /^(suite_.*|toys|recorded|runner|long_text)\.py$/.test(name));

let loadMicroPython;
try {
  ({ loadMicroPython } = await import('@micropython/micropython-webassembly-pyscript'));
} catch {
  console.error('MicroPython is not installed: npm ci --prefix tests/portable');
  process.exit(3);
}

const python = await loadMicroPython({ heapsize: 1 << 20, linebuffer: true, stdout: line => console.log(line) });
for (const [path, source] of Object.entries(files)) {
  path.split('/').slice(1, -1).reduce((above, folder) => {
    const full = `${above}/${folder}`;
    if (!python.FS.analyzePath(full).exists) python.FS.mkdir(full);
    return full;
  }, '');
  python.FS.writeFile(path, source);
}

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
