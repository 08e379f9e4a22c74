/** What went wrong, by code, in the words of the error, and what a reader can do about it. */

import { announce } from "./announce";
import { make } from "./dom";

const ADVICE: Readonly<Record<string, string>> = {
  "unsupported-browser": "A current version of Firefox, Chrome, Edge or Safari runs this page.",
  "out-of-memory": "Close other tabs, or load the page again: the model needs more memory than the browser gave.",
  network: "Check the connection and try again. Files that arrived whole are kept.",
  "hash-mismatch": "The file that came is not the one the bundle names. Try again; if it stays so, the server's copy is damaged.",
  "bad-bundle": "Whoever serves this page has to mend the bundle: `journee inspect` says more.",
  "bad-request": "Change what the message names, and try again.",
  runtime: "Load the page again. If it happens again with the same prompt, please report it.",
  disposed: "The model was closed. Load the page again.",
  unexpected: "Load the page again. If it happens again, please report it with this message.",
};

interface Failure {
  code: string;
  message: string;
}

/** Errors of the package have a code; others get one that says so. Told by shape: the package is another module. */
export function described(error: unknown): Failure {
  if (!(error instanceof Error)) return { code: "unexpected", message: String(error) };
  const code = "code" in error && typeof error.code === "string" ? error.code : "unexpected";
  return { code: code in ADVICE ? code : "unexpected", message: error.message };
}

export function showFailure(place: HTMLElement, error: unknown, action?: { label: string; run: () => void }): void {
  const { code, message } = described(error);
  place.replaceChildren(
    make("p", { class: "failure-head" }, make("strong", {}, "It didn't work"), " ", make("code", {}, code)),
    make("p", {}, message),
    make("p", { class: "note" }, ADVICE[code] ?? ""),
  );
  if (action) {
    const button = make("button", { type: "button" }, action.label);
    button.addEventListener("click", action.run);
    place.append(button);
  }
  place.hidden = false;
  announce(`Error, ${code}: ${message}`);
}

export function clearFailure(place: HTMLElement): void {
  place.hidden = true;
  place.replaceChildren();
}
