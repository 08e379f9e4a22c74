/** The row rule of a graph in this browser: remembered, or found by the self-test now. */

import type { RoleManifest } from "../manifest";
import type { OpenedBundle } from "../store";
import { tick } from "../tick";
import { CANDIDATES } from "./row_rule";
import { findRowRule, SELF_TEST_VERSION, type Finding } from "./self_test";
import type { Model } from "./slots";

const CACHE = "journee-row-rules-1";

/** Put the rule in force. What it depends on is in the key: graph, weights, runtime, threads, browser and machine. */
export async function settleRule(
  model: Model,
  bundle: OpenedBundle,
  role: RoleManifest,
  runtime: string,
  signal: AbortSignal,
  remember: boolean,
): Promise<void> {
  const files = [role.graph.file, ...role.graph.weights].map((file) => bundle.manifest.files.get(file)?.sha256 ?? file);
  const machine = typeof navigator === "undefined" ? "" : `${navigator.userAgent}, ${navigator.hardwareConcurrency} cores`;
  const key = [SELF_TEST_VERSION, runtime, machine, ...files].join("\n");
  const cache = remember ? await opened() : null;
  const address = cache ? await addressOf(key) : "";
  const known = cache ? await recall(cache, address) : null;
  if (known) return adopt(model, known, "known from an earlier self-test here");
  const found = await findRowRule(model.runner, async () => {
    await tick();
    signal.throwIfAborted();
  });
  const kept = cache ? await keep(cache, address, found) : false;
  adopt(model, found, kept || !remember ? "self-test now" : "self-test now, not kept");
}

function adopt(model: Model, finding: Finding, source: string): void {
  model.rule = finding.rule;
  model.note = finding.rule
    ? `${finding.rule}: ${finding.rows.toLocaleString("en")} rows compared, 0 differ (${source})`
    : `no row rule holds: rows depend on more than their prefix under every rule tried (${source})`;
}

async function opened(): Promise<Cache | null> {
  try {
    return typeof caches === "undefined" ? null : await caches.open(CACHE);
  } catch {
    return null; // private windows may refuse; the test then runs at each load, and the note says that it wasn't kept
  }
}

async function addressOf(key: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key)));
  return `https://journee.invalid/${Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** A damaged entry is as good as none, and so is a rule that no self-test finds. */
async function recall(cache: Cache, address: string): Promise<Finding | null> {
  try {
    const entry = (await (await cache.match(address))?.json()) as { rows: number; rule: [number, number, boolean] | null } | undefined;
    if (!entry || !Number.isSafeInteger(entry.rows)) return null;
    if (entry.rule === null) return { rows: entry.rows, rule: null };
    const [rows, multiple, fixed] = entry.rule;
    const rule = CANDIDATES.find((one) => one.rows === rows && one.multiple === multiple && one.fixed === fixed);
    return rule ? { rows: entry.rows, rule } : null;
  } catch {
    return null;
  }
}

async function keep(cache: Cache, address: string, { rule, rows }: Finding): Promise<boolean> {
  try {
    await cache.put(address, Response.json({ rows, rule: rule && [rule.rows, rule.multiple, rule.fixed] }));
    return true;
  } catch {
    return false;
  }
}
