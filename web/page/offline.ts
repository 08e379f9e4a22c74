/** Lets the page open without a network, once it was open with one. Where that can't be, it is a page like others. */
export async function keepForOffline(): Promise<void> {
  if (!("serviceWorker" in navigator) || !isSecureContext) return;
  try {
    await navigator.serviceWorker.register("./sw.js");
    const worker = navigator.serviceWorker;
    if (!worker.controller) await new Promise((resolve) => worker.addEventListener("controllerchange", resolve, { once: true }));
    // What this page fetched before the worker was there is asked for once more, mostly out of the browser's own cache.
    const fetched = performance.getEntriesByType("resource").map(({ name }) => name);
    const own = [location.href, ...fetched].filter((name) => name.startsWith(new URL("./", location.href).href) && !name.includes("/models/"));
    await Promise.all([...new Set([...own, ...PACKAGE.map((name) => new URL(name, location.href).href)])].map((name) => fetch(name)));
  } catch {
    // a private window, or a policy: the page works as it did
  }
}

/** What the engine's worker fetches: a page isn't told of that. */
const PACKAGE = [
  "./journee/index.js",
  "./journee/worker.js",
  "./journee/ort-wasm-simd-threaded.mjs",
  "./journee/ort-wasm-simd-threaded.wasm",
  "./journee/micropython.wasm",
];
