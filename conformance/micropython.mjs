// The MicroPython host: the shipped controller and arithmetic, unchanged, in the interpreter that a page uses.
// `node conformance/micropython.mjs` speaks the protocol of conformance/README.md.

import { createInterface } from 'node:readline';
import { boot } from '../tests/portable/interpreter.mjs';

const host = { folder: 'conformance/journee_conformance', as: 'journee_conformance', wanted: name => name === 'host.py' };
const python = await boot([host], { heapsize: 8 << 20, stdout: line => console.error(line) });

python.runPython('from journee_conformance.host import Host\nhost = Host(name="micropython")\nanswer = host.line');
const answer = python.globals.get('answer');
for await (const line of createInterface({ input: process.stdin })) {
  try {
    process.stdout.write(`${answer(line)}\n`);
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
process.exit(0);
