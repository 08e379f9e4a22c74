/** Short messages to screen readers: starts, ends and summaries, never every token. */

import { find } from "./dom";

export function announce(message: string): void {
  find("announcer", HTMLElement).textContent = message;
}
