// Boots MicroPython with the shipped portable packages in its file system, unchanged: the interpreter that a page uses.
//
//   const python = await boot([{ folder: 'tests/portable', wanted: name => … }], { heapsize: 1 << 20, stdout: line => … });
//
// `folder` is relative to the repository, `as` where it is imported from, if that is another path.

import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

const SHIPPED = [
  { folder: 'journee_deploy/controller', wanted: name => name.endsWith('.py') },
  { folder: 'journee_deploy/arithmetic', wanted: name => name.endsWith('.py') && !name.startsWith('vector') },
];

// What the interpreter lacks of the two modules that annotations need.
const MISSING = { '/__future__.py': 'annotations = None\n', '/typing.py': 'TYPE_CHECKING = False\n' };

export async function boot(more, options) {
  let loadMicroPython;
  try {
    ({ loadMicroPython } = await import('@micropython/micropython-webassembly-pyscript'));
  } catch {
    console.error('MicroPython is not installed: npm ci --prefix tests/portable');
    process.exit(3);
  }
  const python = await loadMicroPython({ linebuffer: true, ...options });
  for (const [path, source] of Object.entries(MISSING)) python.FS.writeFile(path, source);
  for (const { folder, as = folder, wanted } of [...SHIPPED, ...more]) {
    makeFolder(python.FS, as);
    for (const name of readdirSync(join(root, folder)).filter(wanted)) {
      python.FS.writeFile(`/${as}/${name}`, readFileSync(join(root, folder, name), 'utf8'));
    }
  }
  return python;
}

function makeFolder(FS, folder) {
  folder.split('/').reduce((above, name) => {
    const full = `${above}/${name}`;
    if (!FS.analyzePath(full).exists) FS.mkdir(full);
    if (!FS.analyzePath(`${full}/__init__.py`).exists) FS.writeFile(`${full}/__init__.py`, '');
    return full;
  }, '');
}
