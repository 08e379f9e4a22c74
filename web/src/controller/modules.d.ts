declare module "@micropython/micropython-webassembly-pyscript" {
  export function loadMicroPython(options: {
    heapsize?: number;
    url?: string;
    stdout?: (line: string) => void;
    stderr?: (line: string) => void;
  }): Promise<{ runPython(code: string): unknown; pyimport(name: string): unknown }>;
}
