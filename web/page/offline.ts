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
    const files = JOURNEE_PACKAGE === null ? [] : PACKAGE.map((name) => new URL(JOURNEE_PACKAGE + name, location.href).href);
    const names = new Set([...own, ...files]);
    const answers = await Promise.all([...names].map((name) => fetch(name)));
    if (answers.every(({ ok }) => ok)) await forgetAllBut(names);
  } catch {
    // a private window, or a policy: the page works as it did
  }
}

/** Delete what other versions of the page consisted of. */
async function forgetAllBut(names: ReadonlySet<string>): Promise<void> {
  const cache = await caches.open("journee-page-1");
  const plain = (url: string) => url.replace(/[?#].*$/, ""); // as the service worker looks for it
  const kept = new Set([...names].map(plain));
  const base = new URL("./", location.href).href; // another page of this origin keeps its own
  for (const request of await cache.keys())
    if (request.url.startsWith(base) && !kept.has(plain(request.url))) await cache.delete(request);
}

/** The package's folder, from the build: its name has the hash of what is in it. Null where a test's model is built in. */
declare const JOURNEE_PACKAGE: string | null;

/** What the engine's worker fetches: a page isn't told of that. */
const PACKAGE = [
  "index.js",
  "worker.js",
  "ort-wasm-simd-threaded.mjs",
  "ort-wasm-simd-threaded.wasm",
  "micropython.wasm",
];
