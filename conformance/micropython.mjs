// The MicroPython host: the shipped controller and arithmetic, unchanged, in the interpreter that a page uses.
// `node conformance/micropython.mjs` speaks the protocol of conformance/README.md.

import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createInterface } from 'node:readline';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

// What the interpreter lacks of the two modules that annotations need, and package files.
const files = {
  '/__future__.py': 'annotations = None\n',
  '/typing.py': 'TYPE_CHECKING = False\n',
  '/journee_deploy/__init__.py': '',
  '/journee_conformance/__init__.py': '',
};

function take(from, to, wanted) {
  for (const name of readdirSync(join(root, from))) {
    if (wanted(name)) files[`/${to}/${name}`] = readFileSync(join(root, from, name), 'utf8');
  }
}

take('journee_deploy/controller', 'journee_deploy/controller', name => name.endsWith('.py'));
take('journee_deploy/arithmetic', 'journee_deploy/arithmetic', name => name.endsWith('.py') && name !== 'vectors.py');
take('conformance/journee_conformance', 'journee_conformance', name => name === 'host.py');

let loadMicroPython;
try {
  const near = createRequire(join(root, 'tests', 'portable', 'package.json'));
  const found = near.resolve('@micropython/micropython-webassembly-pyscript/micropython.mjs');
  ({ loadMicroPython } = await import(pathToFileURL(found)));
} catch {
  console.error('MicroPython is not installed: npm ci --prefix tests/portable');
  process.exit(3);
}

const python = await loadMicroPython({ heapsize: 8 << 20, linebuffer: true, stdout: line => console.error(line) });
for (const [path, source] of Object.entries(files)) {
  path.split('/').slice(1, -1).reduce((above, folder) => {
    const full = `${above}/${folder}`;
    if (!python.FS.analyzePath(full).exists) python.FS.mkdir(full);
    return full;
  }, '');
  python.FS.writeFile(path, source);
}

python.runPython('from journee_conformance.host import Host\nhost = Host(name="micropython")\nanswer = host.line');
const answer = python.globals.get('answer');
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${answer(line)}\n`);
}
process.exit(0);
