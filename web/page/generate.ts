/** The first section: a prompt, its answer as it comes, and what it came to. */

import type { Generation, LanguageModel, Stream } from "journee-web";
import { announce } from "./announce";
import { Answer } from "./answer";
import { Card } from "./card";
import { find } from "./dom";
import { clearFailure, showFailure } from "./failures";
import { JobButton, type Jobs } from "./jobs";
import { Names } from "./names";
import { drafting, type Form } from "./options";
import { promised, showSummary, spoken } from "./summary";

export class GenerateSection {
  private readonly result = find("result", HTMLElement);
  private readonly failure = find("generate-failure", HTMLElement);
  private readonly summary = find("summary", HTMLElement);
  private readonly verdict = find("verdict", HTMLElement);
  private readonly answer: Answer;
  private text = "";

  constructor(
    private readonly model: LanguageModel,
    private readonly form: Form,
    jobs: Jobs,
  ) {
    const card = new Card(find("card", HTMLElement), new Names(model), (by) => this.answer.step(by));
    this.answer = new Answer(find("answer", HTMLElement), card);
    const button = new JobButton(find("go", HTMLButtonElement), jobs, (signal) => this.run(signal));
    form.element.addEventListener("submit", (event) => {
      event.preventDefault();
      void button.press();
    });
    form.element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || jobs.busy) return;
      event.preventDefault();
      void button.press();
    });
    find("copy", HTMLButtonElement).addEventListener("click", () => void this.copy());
    button.enable();
  }

  private async run(signal: AbortSignal): Promise<void> {
    clearFailure(this.failure);
    const asked = this.form.read();
    const seed = asked && this.form.nextSeed();
    if (!asked || seed === null) return;
    this.summary.replaceChildren();
    this.verdict.textContent = "";
    this.answer.begin(asked.prompt);
    this.result.hidden = false;
    announce("Generating.");
    const stream = this.model.stream(asked.prompt, { ...drafting(asked, asked.draft), seed, trace: true, signal });
    try {
      for await (const piece of stream) this.answer.add(piece);
      this.end(stream.generation(), false);
    } catch (error) {
      this.broken(error, stream, signal);
    }
  }

  private broken(error: unknown, stream: Stream, signal: AbortSignal): void {
    if (signal.aborted) this.end(stream.generation(), true);
    else showFailure(this.failure, error, { label: "Load the page again", run: () => location.reload() });
  }

  private end(generation: Generation, stopped: boolean): void {
    this.text = generation.text;
    this.answer.end(generation);
    showSummary(this.summary, generation, stopped);
    this.verdict.textContent = promised(generation.report, stopped);
    announce(spoken(generation, stopped));
  }

  private async copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(this.text);
      announce("Copied.");
    } catch {
      announce("This browser doesn't let the page copy; select the text instead.");
    }
  }
}
