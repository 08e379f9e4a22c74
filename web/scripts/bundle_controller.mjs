// Makes src/controller/journee_controller.py: the shipped package's portable controller and src/python/bridge.py in one file.
//
// The file is a Python program that writes its modules, unchanged, below a folder and puts that on the import path; so modules
// are modules, and `from x import y` works as everywhere. It holds bridge.py and what that imports, directly or not. All of it
// must be portable by tests/portable/portability.py, which is read for that.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(web);
const out = join(web, 'src/controller/journee_controller.py');
const PORTABILITY = 'tests/portable/portability.py';

/** What MicroPython lacks; where an interpreter has them, its own come first. */
const SHIMS = { '__future__.py': 'annotations = None\n', 'typing.py': 'TYPE_CHECKING = False\n' };

function fail(message) {
  console.error(`bundle_controller: ${message}`);
  process.exit(1);
}

function read(path) {
  const full = join(root, path);
  if (!existsSync(full)) fail(`${path} is missing; run this in a clone of the whole project, of which web/ is a part`);
  return readFileSync(full, 'utf8');
}

/** A tuple of strings that portability.py assigns. */
function tuple(source, name) {
  const found = new RegExp(`^${name} = \\(([^)]*)\\)`, 'm').exec(source);
  if (!found) fail(`${PORTABILITY} no longer assigns the tuple ${name}, which says what is portable`);
  return [...found[1].matchAll(/"([^"]+)"/g)].map(match => match[1]);
}

/** The modules of the project that a source imports when it runs; what stands under `if TYPE_CHECKING:` is indented. */
function imports(source) {
  return [...source.matchAll(/^from (journee_deploy[\w.]*) import (\([^)]*\)|[^\n]*)/gm)].flatMap(([, module, names]) => [
    module,
    ...[...names.matchAll(/\w+/g)].map(([name]) => `${module}.${name}`), // which may be modules
  ]);
}

function fileOf(module) {
  const path = module.replaceAll('.', '/');
  return [`${path}/__init__.py`, `${path}.py`].find(file => existsSync(join(root, file)));
}

function add(path, source) {
  files[path] = source;
  for (const module of imports(source)) {
    const found = fileOf(module);
    if (!found) continue; // a name in a module
    const package_ = `${dirname(found)}/__init__.py`;
    for (const file of [package_, found]) {
      if (file in files) continue;
      if (!isPortable(file)) fail(`${path} imports ${module}, which ${PORTABILITY} does not count as portable`);
      add(file, read(file));
    }
  }
}

function isPortable(path) {
  return folders.includes(dirname(path)) && !excluded.includes(path);
}

/** A Python string literal over several lines: nothing in it is changed, but for what would end it. */
function literal(source) {
  return `"""\\\n${source.replaceAll('\\', '\\\\').replaceAll('"""', '\\"\\"\\"')}"""`;
}

if (!existsSync(join(root, 'journee_deploy/controller/__init__.py'))) {
  fail('journee_deploy/controller is missing beside web/; run this in a clone of the whole project');
}
const portability = read(PORTABILITY);
const folders = tuple(portability, 'FOLDERS');
const excluded = tuple(portability, 'NOT_PORTABLE');

// `journee_deploy` itself is a name alone: its own __init__ offers what only CPython has.
const files = { ...SHIMS, 'journee_deploy/__init__.py': '' };
add('journee_bridge.py', read('web/src/python/bridge.py'));

const entries = Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1));
writeFileSync(
  out,
  `"""Made by web/scripts/bundle_controller.mjs from the project's portable Python; not to be edited."""

import os
import sys

FOLDER = "/journee"
FILES = (
${entries.map(([path, source]) => `    ("${path}", ${literal(source)}),\n`).join('')})


def install():
    made = [FOLDER]
    os.mkdir(FOLDER)
    for path, source in FILES:
        parts = path.split("/")[:-1]
        for count in range(1, len(parts) + 1):
            folder = "/".join([FOLDER] + parts[:count])
            if folder not in made:
                os.mkdir(folder)
                made.append(folder)
        with open(FOLDER + "/" + path, "w") as file:
            file.write(source)
    sys.path.append(FOLDER)


install()
`,
);
const characters = entries.reduce((sum, [, source]) => sum + source.length, 0);
console.log(`src/controller/journee_controller.py: ${entries.length} modules, ${characters} characters`);
