/** Sentences and numbers that a reader is given. */

import type { Judgement } from "journee-web";
import { describe, expect, it } from "vitest";
import { sameOrigin } from "../../page/bundle";
import { described } from "../../page/failures";
import { apart, megabytes, probability, visible } from "../../page/format";
import { median, ratios } from "../../page/speed";
import { recovery, verdict } from "../../page/words";
import { JourneeError } from "../../src/errors";

const JUDGED: Judgement = {
  token: 3,
  kind: "accepted",
  p: 0.6,
  proposal: 3,
  proposalP: 0.6,
  proposalQ: 0.52,
  coin: 0.31,
  tv: 0.1,
  predicted: 0.9,
  top: [],
  logits: [],
};

describe("verdicts", () => {
  it("tells what the coin decided", () => {
    expect(verdict(JUDGED)).toBe("coin 0.310 of q 0.520 < p 0.600: accepted.");
    expect(verdict({ ...JUDGED, kind: "recovered", proposalP: 0.2 })).toBe("coin 0.310 of q 0.520 ≥ p 0.200: rejected.");
  });

  it("never shows a coin and p as equal where they differ", () => {
    expect(verdict({ ...JUDGED, coin: 0.59999, proposalQ: 0.7 })).toBe("coin 0.59999 of q 0.700 < p 0.60000: accepted.");
    expect(apart(0.5, 0.5)).toEqual(["0.500", "0.500"]);
  });

  it("tells of bonus tokens and of the coupled rule, which tosses none", () => {
    const bonus = { ...JUDGED, kind: "bonus" as const, proposal: null, proposalP: null, proposalQ: null };
    expect(verdict(bonus)).toMatch(/drawn from p, where it has 0\.600: coin 0\.310/);
    expect(verdict({ ...JUDGED, coin: null })).toMatch(/first dart under p as under q/);
    expect(recovery({ ...JUDGED, coin: null })).toMatch(/first dart/);
  });
});

describe("format", () => {
  it("shows spaces, ends of lines and steering characters", () => {
    expect(visible(" a\n")).toBe("␣a⏎");
    expect(visible("\u202egpj\u200b")).toBe("‹202E›gpj‹200B›");
    expect(visible("", 7)).toBe("#7");
  });

  it("keeps small numbers apart from nothing", () => {
    expect([0, 1, 0.25, 0.00012].map(probability)).toEqual(["0", "1", "0.250", "0.00012"]);
    expect(megabytes(15_300_000)).toBe("15.3 MB");
  });
});

describe("addresses", () => {
  const page = "https://here.example/demo/?bundle=x";

  it("stay on this origin", () => {
    expect(sameOrigin("/models/a", page, "x").href).toBe("https://here.example/models/a/");
    expect(sameOrigin("../b/", page, "x").href).toBe("https://here.example/b/");
    for (const other of ["https://there.example/m/", "//there.example/m/", "\\\\there.example\\m", "data:text/plain,x", "javascript:alert(1)", "blob:https://here.example/x"]) {
      expect(() => sameOrigin(other, page, "bundle"), other).toThrow(/another origin/);
    }
  });
});

describe("failures", () => {
  it("keeps the codes of the package, and no others", () => {
    expect(described(new JourneeError("network", "gone"))).toEqual({ code: "network", message: "gone" });
    expect(described(Object.assign(new Error("x"), { code: "ENOENT" })).code).toBe("unexpected");
    expect(described("odd")).toEqual({ code: "unexpected", message: "odd" });
  });
});

describe("speeds", () => {
  it("has medians, and ratios seed by seed", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(ratios({ plain: [1, 2], speculative: [2, 3, 9] })).toEqual([2, 1.5]);
  });
});
