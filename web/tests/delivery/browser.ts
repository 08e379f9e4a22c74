/** What a browser has and Node 20 lacks, as far as the store uses it: the Cache API and Web Locks, by the specifications. */

import { vi } from "vitest";

/** A `CacheStorage` of one cache, by URL. `before` may throw what a browser throws. */
export class FakeCaches {
  readonly entries = new Map<string, Uint8Array<ArrayBuffer>>();
  before: (operation: "open" | "match" | "put" | "delete", key: string) => void = () => undefined;

  async open(): Promise<Cache> {
    this.before("open", "");
    return this as unknown as Cache;
  }

  async match(key: string): Promise<Response | undefined> {
    this.before("match", key);
    const held = this.entries.get(key);
    return held && new Response(held);
  }

  /** The entry appears once its whole body was read. */
  async put(key: string, response: Response): Promise<void> {
    const body = new Uint8Array(await response.arrayBuffer());
    this.before("put", key);
    this.entries.set(key, body);
  }

  async delete(key: string): Promise<boolean> {
    this.before("delete", key);
    return this.entries.delete(key);
  }

  async keys(): Promise<{ url: string }[]> {
    return [...this.entries.keys()].map((url) => ({ url }));
  }

  /** Keys of files, or of manifests. */
  named(kind: "sha256" | "manifest"): string[] {
    return [...this.entries.keys()].filter((key) => key.includes(`/${kind}/`));
  }
}

/** A `LockManager` of exclusive locks, first come first served. */
export class FakeLocks {
  readonly asked: string[] = [];
  private readonly last = new Map<string, Promise<unknown>>();

  async request<T>(name: string, options: { signal: AbortSignal }, work: () => Promise<T>): Promise<T> {
    this.asked.push(name);
    options.signal.throwIfAborted();
    const before = this.last.get(name) ?? Promise.resolve();
    const mine = before.then(() => {
      options.signal.throwIfAborted();
      return work();
    });
    this.last.set(name, mine.catch(() => undefined));
    return mine;
  }
}

export function asBrowser(caches: FakeCaches | null, locks: FakeLocks | null): void {
  if (caches) vi.stubGlobal("caches", caches);
  vi.stubGlobal("navigator", locks ? { locks } : {});
}
