// Keeps the page's own files, so that it opens without a network. Each comes from the network where there is one. What a
// model consists of is none of its business: the package keeps that, verified.
const CACHE = "journee-page-1";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  const ours = url.origin === self.location.origin && url.href.startsWith(self.registration.scope);
  if (request.method !== "GET" || !ours || url.pathname.includes("/models/")) return;
  event.respondWith(answer(request));
});

async function answer(request) {
  const cache = await caches.open(CACHE);
  let response;
  try {
    response = await fetch(request);
  } catch (error) {
    const kept = await cache.match(request, { ignoreSearch: true });
    if (kept) return kept;
    throw error;
  }
  if (response.ok) await cache.put(request, response.clone()).catch(() => {}); // no room: then there is no page offline
  return response;
}
