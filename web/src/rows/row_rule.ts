/**
 * The row rule: padding under which a row of logits depends on its prefix alone, bit for bit.
 *
 * The same definitions as journee_deploy/row_rule.py, which says why: *flexible*, at least `rows` rows a run, and start +
 * rows a multiple of `multiple`, padding last; *fixed*, every run is one aligned block of exactly `rows` rows.
 */

/** Rows of the longest run, so that a long prompt needs bounded memory. */
export const CHUNK = 256;
/** The most a rule may ask for. */
export const LARGEST = 32;

/**
 * One run of the graph for a part of a step: the text from `start` on, `real` tokens of it, then `padding` rows. `keep` is
 * how many last rows the graph is asked for, padding included; of those, `take` real rows are the caller's: they end where
 * the padding begins.
 */
export interface Piece {
  readonly start: number;
  readonly real: number;
  readonly padding: number;
  readonly keep: number;
  readonly take: number;
}

export class RowRule {
  constructor(
    readonly rows: number,
    readonly multiple: number,
    readonly fixed = false,
  ) {}

  toString(): string {
    if (this.fixed) return `aligned blocks of ${this.rows} rows`;
    const least = `at least ${this.rows} row${this.rows > 1 ? "s" : ""} a run`;
    return this.multiple === 1 ? least : `${least}, start + rows a multiple of ${this.multiple}`;
  }

  /** Rows of padding after `count` rows from `start` on, run as one piece. */
  padding(start: number, count: number): number {
    if (this.fixed) return lacking(start + count, this.multiple);
    const rows = Math.max(this.rows, count);
    return rows + lacking(start + rows, this.multiple) - count;
  }

  /** The latest place from which a run that covers row `start` may begin. */
  origin(start: number): number {
    return this.fixed ? start - (start % this.multiple) : start;
  }

  /** The runs for `count` rows from `start` on, of which the last `keep` are wanted. Only the last has padding. */
  plan(start: number, count: number, keep: number, chunk = CHUNK): Piece[] {
    const end = start + count;
    const pieces: Piece[] = [];
    for (let at = this.origin(start); at < end; ) {
      const stop = this.stop(at, end, chunk);
      const take = Math.max(0, stop - Math.max(at, end - keep));
      const padding = this.padding(at, stop - at);
      const rows = stop - at + padding;
      const least = take ? this.rows : 1;
      pieces.push({ start: at, real: stop - at, padding, keep: Math.min(rows, Math.max(least, take + padding)), take });
      at = stop;
    }
    return pieces;
  }

  private stop(at: number, end: number, chunk: number): number {
    if (this.fixed) return Math.min(end, at + this.rows);
    return end - at <= chunk ? end : Math.floor((at + chunk) / this.multiple) * this.multiple;
  }
}

function lacking(length: number, multiple: number): number {
  return (multiple - (length % multiple)) % multiple;
}

/** What a run looks like where no rule is in force: exactly the rows asked for. It is also the cheapest candidate. */
export const NO_RULE = new RowRule(1, 1);

/** Tried in this order: the cheapest first. */
export const CANDIDATES: readonly RowRule[] = [
  NO_RULE,
  new RowRule(2, 1),
  new RowRule(1, 4),
  new RowRule(2, 4),
  new RowRule(2, 8),
  new RowRule(2, 16),
  new RowRule(8, 8, true),
  new RowRule(16, 16, true),
];
