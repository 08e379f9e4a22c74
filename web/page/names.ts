/** The text of single tokens, asked of the model once each. */

import type { LanguageModel } from "journee-web";
import { visible } from "./format";

export class Names {
  private readonly known = new Map<number, Promise<string>>();

  constructor(private readonly model: LanguageModel) {}

  /** The token on one line; its number if it has no text of its own. */
  of(token: number): Promise<string> {
    let name = this.known.get(token);
    if (!name) {
      name = this.model.decode([token]).then(
        (text) => visible(text, token),
        () => visible("", token),
      );
      this.known.set(token, name);
    }
    return name;
  }

  /** Write the name where it belongs as soon as it is known. */
  write(token: number, place: Node): void {
    place.textContent = visible("", token);
    void this.of(token).then((name) => (place.textContent = name));
  }
}
