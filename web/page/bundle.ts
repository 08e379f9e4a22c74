/**
 * Which bundle the page loads: the one named in `bundle.json` beside the page, {"url": "/models/NAME/"}, or the one in the
 * address, `?bundle=/models/OTHER/`. Only this origin is asked: a page elsewhere can't make this one load its files.
 * `?draft=` and `?threads=` choose as the options of `load` do.
 */

import type { LoadOptions } from "journee-web";

class BundleError extends Error {
  constructor(
    readonly code: "bad-bundle" | "bad-request" | "network",
    message: string,
  ) {
    super(message);
  }
}

/** An address on this page's origin, ending in a slash, or an error that names where it came from. */
export function sameOrigin(address: string, page: string, from: string): URL {
  let url: URL;
  try {
    url = new URL(address, page);
  } catch {
    throw new BundleError("bad-request", `${from} is not an address: ${address}`);
  }
  const home = new URL(page);
  if (url.origin !== home.origin || url.protocol !== home.protocol) {
    throw new BundleError("bad-request", `${from} leads to another origin (${url.origin}); give a path on ${home.origin}`);
  }
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

async function named(page: string): Promise<string> {
  const answer = await fetch(new URL("bundle.json", page), { cache: "no-cache" }).catch((error: unknown) => {
    throw new BundleError("network", `bundle.json can't be fetched: ${String(error)}`);
  });
  if (!answer.ok) throw new BundleError("network", `bundle.json: the server answers ${answer.status}`);
  const told: unknown = await answer.json().catch(() => null);
  if (typeof told === "object" && told !== null && "url" in told && typeof told.url === "string") return told.url;
  throw new BundleError("bad-bundle", 'bundle.json must be {"url": "/path/of/the/bundle/"}');
}

export async function bundleAddress(page: string): Promise<URL> {
  const asked = new URL(page).searchParams.get("bundle");
  if (asked !== null) return sameOrigin(asked, page, "bundle in the address");
  return sameOrigin(await named(page), page, "url in bundle.json");
}

const DRAFTS = ["auto", "model", "ngram", "uniform", "none"] as const;

export function loadOptions(page: string): LoadOptions {
  const asked = new URL(page).searchParams;
  const options: LoadOptions = {};
  const draft = asked.get("draft");
  if (draft !== null) {
    const known = DRAFTS.find((name) => name === draft);
    if (!known) throw new BundleError("bad-request", `draft in the address is ${draft}; it can be ${DRAFTS.join(", ")}`);
    options.draft = known;
  }
  const threads = asked.get("threads");
  if (threads !== null) {
    if (!/^\d{1,3}$/.test(threads)) throw new BundleError("bad-request", `threads in the address is ${threads}; give a number`);
    options.threads = Number(threads);
  }
  return options;
}
