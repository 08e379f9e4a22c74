/**
 * The answer as inline tokens: one is in the tab order, arrows move, pointing shows and choosing keeps.
 * A piece of text may have taken several tokens; the element stands for all of them.
 */

import type { Generation, Judgement, Piece } from "journee-web";
import type { Card, Told } from "./card";
import { make } from "./dom";
import { visible } from "./format";

export class Answer {
  private list = make("span");
  private tokens: HTMLElement[] = [];
  private told: Told[] = [];
  private chosen = -1;
  private count = 0;

  constructor(
    private readonly place: HTMLElement,
    private readonly card: Card,
  ) {
    place.addEventListener("keydown", (event) => this.key(event));
    place.addEventListener("pointerover", (event) => this.point(event.target));
    place.addEventListener("pointerleave", () => this.showChosen());
    place.addEventListener("click", (event) => this.choose(this.index(event.target)));
    place.addEventListener("focusin", (event) => this.choose(this.index(event.target), false));
  }

  begin(prompt: string): void {
    this.list = make("span", { role: "listbox", "aria-label": "Answer, token by token", "aria-orientation": "horizontal", "aria-busy": "true" });
    this.tokens = [];
    this.told = [];
    this.chosen = -1;
    this.count = 0;
    this.card.empty();
    this.place.replaceChildren(make("span", { class: "prompt" }, prompt), this.list);
  }

  add(piece: Piece): void {
    const judgements: Judgement[] = piece.judgement ? [piece.judgement] : [];
    this.append({ text: piece.text, kind: piece.kind, count: piece.count, token: piece.token, judgements });
  }

  /** All is known now: tokens without text of their own are shown, and pieces get the judgements of all their tokens. */
  end(generation: Generation): void {
    const { tokens, kinds, report } = generation;
    while (this.count < tokens.length) {
      const i = this.count;
      const judgement = report.judgements[i];
      this.append({ text: "", kind: kinds[i] ?? "bonus", count: i + 1, token: tokens[i] ?? 0, judgements: judgement ? [judgement] : [] });
    }
    let from = 0;
    for (const told of this.told) {
      if (report.judgements.length >= told.count) told.judgements = report.judgements.slice(from, told.count);
      from = told.count;
    }
    this.list.removeAttribute("aria-busy");
    this.showChosen();
  }

  /** To the neighbour, or from nothing to the first. */
  step(by: number): void {
    this.choose(this.chosen < 0 ? 0 : this.chosen + by);
  }

  private append(told: Told): void {
    const element = make("span", { class: "token", role: "option", "data-kind": told.kind, tabindex: "-1", "aria-selected": "false" });
    element.setAttribute("aria-label", `${visible(told.text, told.token)}, ${told.kind}`);
    element.textContent = told.text === "" ? `⟨#${told.token}⟩` : told.text;
    if (told.text === "") element.classList.add("textless");
    if (/^\s*\n/.test(told.text)) element.classList.add("break");
    if (this.tokens.length === 0) element.tabIndex = 0;
    this.tokens.push(element);
    this.told.push(told);
    this.count = told.count;
    this.list.append(element);
  }

  private choose(index: number, focus = true): void {
    const element = this.tokens[index];
    const told = this.told[index];
    if (!element || !told) return;
    for (const other of this.tokens) if (other !== element && other.tabIndex === 0) other.tabIndex = -1;
    this.tokens[this.chosen]?.setAttribute("aria-selected", "false");
    element.tabIndex = 0;
    element.setAttribute("aria-selected", "true");
    this.chosen = index;
    this.card.open();
    if (focus) element.focus({ preventScroll: false });
    this.card.show(told);
  }

  private showChosen(): void {
    const told = this.told[this.chosen];
    if (told) this.card.show(told);
  }

  private index(target: EventTarget | null): number {
    return target instanceof HTMLElement ? this.tokens.indexOf(target) : -1;
  }

  private point(target: EventTarget | null): void {
    const told = this.told[this.index(target)];
    if (told) this.card.show(told);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const to = this.destination(event.key);
    if (to === null) return;
    event.preventDefault();
    this.choose(Math.max(0, Math.min(this.tokens.length - 1, to)));
  }

  private destination(key: string): number | null {
    switch (key) {
      case "ArrowRight":
        return this.chosen + 1;
      case "ArrowLeft":
        return this.chosen - 1;
      case "ArrowDown":
        return this.line(1);
      case "ArrowUp":
        return this.line(-1);
      case "Home":
        return 0;
      case "End":
        return this.tokens.length - 1;
      default:
        return null;
    }
  }

  /** The token nearest to the chosen one's left edge, on the next or the previous line. */
  private line(direction: 1 | -1): number {
    const here = this.tokens[this.chosen]?.getClientRects()[0];
    if (!here) return 0;
    let best = this.chosen;
    let top: number | null = null;
    let distance = Infinity;
    for (let i = this.chosen + direction; i >= 0 && i < this.tokens.length; i += direction) {
      const there = this.tokens[i]?.getClientRects()[0];
      if (!there || Math.abs(there.top - here.top) < 4) continue;
      top ??= there.top;
      if (Math.abs(there.top - top) > 4) break;
      const off = Math.abs(there.left - here.left);
      if (off < distance) [best, distance] = [i, off];
    }
    return best;
  }
}
