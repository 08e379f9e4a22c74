/** How far the load has come: stages, and true byte counts. */

import type { Progress } from "journee-web";
import { find } from "./dom";
import { megabytes } from "./format";

const STAGES = ["manifest", "files", "models", "row-rule", "ready"] as const;
const DOING: Readonly<Record<Progress["stage"], string>> = {
  manifest: "Reading the bundle's manifest",
  files: "Receiving and verifying files",
  models: "Preparing the models",
  "row-rule": "Testing how this machine computes rows",
  ready: "Ready",
};

/** Where the bytes came from, in words. */
export function sources(loaded: number, network: number): string {
  const cached = loaded - network;
  if (cached <= 0) return "from the network";
  return network <= 0 ? "from the cache" : `${megabytes(network)} from the network, ${megabytes(cached)} from the cache`;
}

export class Loading {
  private readonly panel = find("loading", HTMLElement);
  private readonly title = find("loading-title", HTMLElement);
  private readonly bytes = find("loading-bytes", HTMLElement);
  private readonly file = find("loading-file", HTMLElement);
  private readonly bar = find("loading-bar", HTMLProgressElement);
  private readonly stages = [...find("loading-stages", HTMLElement).children] as HTMLElement[];

  begin(): void {
    this.panel.hidden = false;
    this.show({ stage: "manifest", file: "", loaded: 0, total: 0, network: 0 });
  }

  show(progress: Progress): void {
    const { stage, file, loaded, total, network } = progress;
    this.title.textContent = DOING[stage];
    this.file.textContent = file;
    this.bytes.textContent = total > 0 ? `${megabytes(loaded)} of ${megabytes(total)}, ${sources(loaded, network)}` : "";
    if (stage === "files" && total > 0) this.bar.value = Math.min(1, loaded / total);
    else this.bar.removeAttribute("value");
    const now = STAGES.indexOf(stage);
    this.stages.forEach((item, i) => {
      item.dataset["state"] = i < now ? "done" : i === now ? "now" : "later";
      if (i === now) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
    });
  }

  end(): void {
    this.panel.hidden = true;
  }
}
