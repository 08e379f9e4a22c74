/**
 * Which tokens came before a row: what penalties look at. Prompt and generated text are kept apart: repetition sees both,
 * frequency and presence the generated text alone.
 */
export class History {
  /** Of generated tokens; only those with a count above 0. */
  readonly counts = new Map<number, number>();
  readonly prompt: ReadonlySet<number>;
  readonly #promptLength: number;
  readonly #generated: number[] = [];

  constructor(prompt: readonly number[]) {
    this.prompt = new Set(prompt);
    this.#promptLength = prompt.length;
  }

  get length(): number {
    return this.#promptLength + this.#generated.length;
  }

  /** How many tokens follow the prompt. */
  get generated(): number {
    return this.#generated.length;
  }

  push(token: number): void {
    this.#generated.push(token);
    this.counts.set(token, (this.counts.get(token) ?? 0) + 1);
  }

  /** Forget all but the first `length` tokens; never reaches into the prompt. */
  truncate(length: number): void {
    if (length < this.#promptLength || length > this.length) {
      throw new RangeError(
        `cannot truncate a history of ${this.length} tokens to ${length}: its prompt has ${this.#promptLength}`,
      );
    }
    while (this.length > length) {
      const token = this.#generated.pop()!;
      const count = this.counts.get(token)!;
      if (count === 1) this.counts.delete(token);
      else this.counts.set(token, count - 1);
    }
  }
}
