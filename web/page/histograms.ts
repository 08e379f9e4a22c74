/** Three histograms side by side: a table with a row a token, so that bars, marks and numbers are read together. */

import { drawn, make } from "./dom";
import { percent, probability } from "./format";
import { largest } from "./laws";
import type { Names } from "./names";

export const WAYS = ["plain", "speculative", "wrong"] as const;
export type Way = (typeof WAYS)[number];
export const TITLES: Readonly<Record<Way, string>> = { plain: "plain", speculative: "speculative", wrong: "wrong rule" };

const SHOWN = 20;

interface Cell {
  bar: HTMLElement;
  mark: HTMLElement;
  value: HTMLElement;
}

interface Row {
  /** Null is all other tokens together. */
  token: number | null;
  p: number;
  cells: Map<Way, Cell>;
}

export class Histograms {
  readonly element: HTMLElement;
  private readonly rows: Row[];
  private readonly kept: number[];

  constructor(
    p: Float64Array,
    private readonly ways: readonly Way[],
    names: Names,
  ) {
    this.kept = largest(p, SHOWN);
    const shown = this.kept.map((token) => ({ token, p: p[token] ?? 0 }));
    const rest = p.reduce((sum, each) => sum + each, 0) - shown.reduce((sum, each) => sum + each.p, 0);
    const body = make("tbody");
    this.rows = shown.map((each) => this.row(each.token, each.p, names, body));
    if (this.kept.length < p.length) this.rows.push(this.row(null, Math.max(0, rest), names, body));
    const heads = ways.map((way) => make("th", { scope: "col" }, TITLES[way].replace("specul", "specu\u00adl")));
    this.element = make(
      "table",
      { class: "histograms" },
      make("caption", { class: "unseen" }, "How often each token came, by way of drawing, beside its exact probability p"),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "token"), make("th", { scope: "col", class: "number" }, make("i", {}, "p")), ...heads)),
      body,
    );
  }

  /** Frequencies of one way after so many draws. */
  fill(way: Way, counts: Uint32Array, draws: number): void {
    const shares = this.shares(counts, draws);
    this.rows.forEach((row, i) => {
      const cell = row.cells.get(way);
      if (!cell) return;
      const share = shares[i] ?? 0;
      cell.value.textContent = draws > 0 ? percent(share, 1) : "";
      cell.bar.dataset["share"] = String(share);
    });
  }

  /** One scale for the bars of single tokens, so that they can be compared. All others together are told in numbers alone. */
  scale(): void {
    const cells = this.rows.filter((row) => row.token !== null).flatMap((row) => [...row.cells.values()].map((cell) => ({ row, cell })));
    const most = Math.max(...cells.map(({ row, cell }) => Math.max(row.p, Number(cell.bar.dataset["share"] ?? 0)))) * 1.04;
    for (const { row, cell } of cells) {
      cell.bar.style.width = percent(Number(cell.bar.dataset["share"] ?? 0) / most, 2);
      cell.mark.style.left = percent(row.p / most, 2);
    }
  }

  private shares(counts: Uint32Array, draws: number): number[] {
    const shown = this.kept.map((token) => (counts[token] ?? 0) / Math.max(1, draws));
    const all = counts.reduce((sum, each) => sum + each, 0) / Math.max(1, draws);
    return [...shown, Math.max(0, all - shown.reduce((sum, each) => sum + each, 0))];
  }

  private row(token: number | null, p: number, names: Names, body: HTMLElement): Row {
    const name = make("bdi", {}, "others");
    if (token !== null) names.write(token, name);
    const line = make("tr", token === null ? { class: "others" } : {}, make("th", { scope: "row" }, name), make("td", { class: "number" }, probability(p)));
    const cells = new Map<Way, Cell>();
    for (const way of this.ways) {
      const cell = { bar: make("span", { class: `bar ${way}` }), mark: make("span", { class: "mark" }), value: make("span", { class: "value" }) };
      const track = make("span", { class: "track", "aria-hidden": "true" }, cell.bar, cell.mark);
      if (token === null) track.replaceChildren();
      line.append(make("td", { class: "histogram" }, track, cell.value));
      cells.set(way, cell);
    }
    body.append(line);
    return { token, p, cells };
  }
}

/** How the marks and bars are read. */
export function histogramLegend(): Node {
  const mark = drawn("svg", { viewBox: "0 0 10 14", width: 10, height: 14, "aria-hidden": "true", class: "mark-sample" }, drawn("path", { d: "M5 0v14" }));
  return make("p", { class: "note" }, mark, " the exact p of the token, the same on all three");
}
