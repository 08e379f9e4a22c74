/** The card of one token: p, q, the coin, and what else could have come. */

import type { Judgement, Kind } from "journee-web";
import { make } from "./dom";
import { percent, probability, visible } from "./format";
import type { Names } from "./names";
import { recovery, verdict } from "./words";

/** What the card tells of: some text, and the judgements of the tokens that it took. */
export interface Told {
  text: string;
  kind: Kind;
  /** The index of its last token in the answer, from 1. */
  count: number;
  token: number;
  judgements: readonly Judgement[];
}

export class Card {
  constructor(
    private readonly place: HTMLElement,
    private readonly names: Names,
    private readonly step: (by: number) => void,
  ) {
    this.empty();
  }

  empty(): void {
    this.place.replaceChildren(make("p", { class: "note" }, "Point at a token, tap it, or move over them with the arrow keys, to see how it came to be."));
  }

  /** Open it again, should it have been closed. */
  open(): void {
    this.place.classList.remove("closed");
  }

  show(told: Told): void {
    const judgement = told.judgements.at(-1);
    const parts: Node[] = [this.head(told), this.subtitle(told)];
    if (judgement) parts.push(...this.last(judgement), ...this.earlier(told));
    else parts.push(make("p", { class: "note" }, "Its numbers come with the next pieces."));
    const scrolled = this.place.scrollTop;
    this.place.replaceChildren(...parts);
    this.place.scrollTop = scrolled;
  }

  private head(told: Told): Node {
    const previous = make("button", { type: "button", class: "step", "aria-label": "Previous token" }, "‹");
    const next = make("button", { type: "button", class: "step", "aria-label": "Next token" }, "›");
    const close = make("button", { type: "button", class: "step close", "aria-label": "Close the card" }, "×");
    previous.addEventListener("click", () => this.step(-1));
    next.addEventListener("click", () => this.step(1));
    close.addEventListener("click", () => this.place.classList.add("closed"));
    return make(
      "div",
      { class: "card-head" },
      make("bdi", { class: "token-name" }, visible(told.text, told.token)),
      make("div", { class: "steps" }, previous, next, close),
    );
  }

  private subtitle(told: Told): Node {
    const kind = make("span", { class: "sample", "data-kind": told.kind }, told.kind);
    return make("p", { class: "note" }, kind, ` token ${told.count} of the answer, #${told.token}`);
  }

  private last(judgement: Judgement): Node[] {
    const parts: Node[] = [];
    if (judgement.proposal !== null && judgement.kind === "recovered") {
      const name = make("bdi", { class: "inline-token" });
      this.names.write(judgement.proposal, name);
      parts.push(make("p", {}, "The draft proposed ", name, ": ", verdict(judgement)), make("p", {}, recovery(judgement)));
    } else {
      const said = verdict(judgement);
      parts.push(make("p", {}, said.charAt(0).toUpperCase() + said.slice(1)));
    }
    parts.push(scales(judgement), this.facts(judgement), this.alternatives(judgement));
    return parts;
  }

  private facts(judgement: Judgement): Node {
    const facts: [string, string][] = [["p of the token", probability(judgement.p)]];
    if (judgement.predicted !== null) facts.push(["A proposal's chance here", percent(judgement.predicted)]);
    if (judgement.tv !== null) facts.push(["Distance of q to p", probability(judgement.tv)]);
    const list = make("dl", { class: "mini" });
    for (const [name, value] of facts) list.append(make("dt", {}, name), make("dd", {}, value));
    return list;
  }

  private alternatives(judgement: Judgement): Node {
    const largest = Math.max(...judgement.top.map(([, p]) => p), 1e-9);
    const rows = judgement.top.map(([token, p]) => {
      const name = make("bdi", { class: "inline-token" });
      this.names.write(token, name);
      const bar = make("span", { class: "bar" });
      bar.style.width = percent(p / largest, 1);
      const row = make("li", {}, name, make("span", { class: "track", "aria-hidden": "true" }, bar), make("span", { class: "value" }, probability(p)));
      if (token === judgement.token) row.classList.add("chosen");
      return row;
    });
    return make("div", {}, make("h3", {}, "Likeliest under p"), make("ol", { class: "tops" }, ...rows));
  }

  private earlier(told: Told): Node[] {
    const before = told.judgements.slice(0, -1);
    if (before.length === 0) return [];
    const list = make("ul", { class: "bullets" });
    for (const each of before) list.append(make("li", {}, `#${each.token}, ${each.kind}: `, verdict(each)));
    return [make("h3", {}, "Earlier tokens of the same characters"), list];
  }
}

/** p and q of the proposal as bars, and the coin as a mark across both: below p it is kept. */
function scales(judgement: Judgement): Node {
  const { proposalP: p, proposalQ: q, coin } = judgement;
  if (p === null || q === null) return make("span");
  const largest = Math.max(p, q, 1e-12);
  const figure = make("div", { class: "scales", "aria-hidden": "true" });
  for (const [name, value] of [["q", q], ["p", p]] as const) {
    const bar = make("span", { class: `bar ${name}` });
    bar.style.width = percent(value / largest, 2);
    const track = make("span", { class: "track" }, bar);
    if (coin !== null) track.append(mark(coin / largest));
    figure.append(make("span", { class: "scale-name" }, name), track, make("span", { class: "value" }, probability(value)));
  }
  if (coin !== null) figure.append(make("span", { class: "scale-name" }, ""), make("span", { class: "coin-note" }, `the line is the coin, ${probability(coin)}`));
  return figure;
}

function mark(share: number): Node {
  const line = make("span", { class: "coin" });
  line.style.left = percent(share, 2);
  return line;
}
