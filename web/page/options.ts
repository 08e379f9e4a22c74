/** The form: reading it, saying what is wrong with it, and what the loaded model makes impossible. */

import type { GenerateOptions, ModelInfo, RuleName } from "journee-web";
import { find } from "./dom";

export interface Asked {
  prompt: string;
  draft: boolean;
  /** All but prompt, draft, K and seed. */
  options: GenerateOptions;
  speculationLength: number | "auto";
}

/** The options of a run with the draft or without: K goes with a draft, and is refused without. */
export function drafting({ options, speculationLength }: Asked, draft: boolean): GenerateOptions {
  return draft ? { ...options, draft, speculationLength } : { ...options, draft };
}

/** A seed of 64 bits, from the system. */
export function freshSeed(): bigint {
  return crypto.getRandomValues(new BigUint64Array(1))[0] ?? 0n;
}

export class Form {
  readonly element = find("form", HTMLFormElement);
  private readonly prompt = find("prompt", HTMLTextAreaElement);
  private readonly maxTokens = find("max-tokens", HTMLInputElement);
  private readonly temperature = find("temperature", HTMLInputElement);
  private readonly topK = find("top-k", HTMLInputElement);
  private readonly topP = find("top-p", HTMLInputElement);
  private readonly length = find("speculation-length", HTMLSelectElement);
  private readonly rule = find("rule", HTMLSelectElement);
  private readonly draft = find("draft", HTMLInputElement);
  private readonly seed = find("seed", HTMLInputElement);
  private readonly newSeed = find("new-seed", HTMLInputElement);
  private readonly problem = find("form-problem", HTMLElement);

  constructor() {
    this.newSeed.addEventListener("change", () => this.showSeed());
    this.draft.addEventListener("change", () => this.showDraft());
    this.element.addEventListener("input", () => this.complain(""));
    this.showSeed();
  }

  /** Take away what this model can't do, and say why. */
  fit(info: ModelInfo): void {
    this.maxTokens.max = String(info.contextLength);
    if (Number(this.maxTokens.value) > info.contextLength) this.maxTokens.value = this.maxTokens.max;
    if (info.draft === "none") {
      this.draft.checked = false;
      this.draft.disabled = true;
    }
    if (info.rowRule === "") {
      this.rule.value = "residual";
      const coupled = this.rule.options[1];
      if (coupled) coupled.disabled = true;
      find("rule-note", HTMLElement).textContent = "coupled needs a row rule, and none was found here";
    }
    this.showDraft();
  }

  /** What is asked for; null if something is wrong, which the form then says. */
  read(): Asked | null {
    this.complain("");
    if (this.prompt.value === "") return this.refuse(this.prompt, "Write a prompt: at least one token has to come first.");
    for (const input of [this.maxTokens, this.temperature, this.topK, this.topP]) {
      if (!input.checkValidity()) return this.refuse(input, `${this.label(input)}: ${input.validationMessage}`);
    }
    if (Number(this.topP.value) === 0) return this.refuse(this.topP, "Top-p: give a number above 0, at most 1.");
    const speculationLength = this.length.value === "auto" ? "auto" : Number(this.length.value);
    return { prompt: this.prompt.value, draft: this.draft.checked, options: this.options(), speculationLength };
  }

  /** The seed to use, shown in its field; null if the one that was written is none. */
  nextSeed(): bigint | null {
    if (this.newSeed.checked || this.seed.value === "") this.seed.value = String(freshSeed());
    if (!/^\d{1,20}$/.test(this.seed.value) || BigInt(this.seed.value) >= 1n << 64n) {
      return this.refuse(this.seed, "Seed: give a whole number from 0 to 18446744073709551615.");
    }
    return BigInt(this.seed.value);
  }

  private options(): GenerateOptions {
    return {
      maxNewTokens: Number(this.maxTokens.value),
      temperature: Number(this.temperature.value),
      topK: Number(this.topK.value),
      topP: Number(this.topP.value),
      rule: this.rule.value as RuleName,
    };
  }

  private label(input: HTMLInputElement): string {
    return input.labels?.[0]?.firstChild?.textContent?.trim() ?? input.id;
  }

  private refuse(input: HTMLElement, message: string): null {
    this.complain(message);
    input.setAttribute("aria-invalid", "true");
    input.focus();
    return null;
  }

  private complain(message: string): void {
    for (const input of this.element.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
    this.problem.textContent = message;
    this.problem.hidden = message === "";
  }

  private showSeed(): void {
    this.seed.readOnly = this.newSeed.checked;
  }

  private showDraft(): void {
    this.length.disabled = !this.draft.checked;
  }
}
