/** Numbers and tokens in words that a reader can compare. */

export function whole(value: number): string {
  return value.toLocaleString("en");
}

/** A probability, with three decimals where that says something. */
export function probability(value: number): string {
  if (value === 0 || value === 1) return String(value);
  return value >= 0.001 ? value.toFixed(3) : value.toPrecision(2);
}

/** Two probabilities with as many decimals as it takes to tell them apart. */
export function apart(a: number, b: number): [string, string] {
  for (let digits = 3; digits < 16; digits++) {
    if (a === b || a.toFixed(digits) !== b.toFixed(digits)) return [a.toFixed(digits), b.toFixed(digits)];
  }
  return [String(a), String(b)];
}

export function percent(value: number, digits = 0): string {
  return `${(100 * value).toFixed(digits)}%`;
}

export function megabytes(bytes: number): string {
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(bytes < 1e4 ? 1 : 0)} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}

export function count(value: number): string {
  if (value < 1e4) return whole(value);
  if (value < 1e6) return `${(value / 1e3).toFixed(0)} thousand`;
  return value < 1e9 ? `${(value / 1e6).toFixed(value < 1e7 ? 1 : 0)} million` : `${(value / 1e9).toFixed(1)} billion`;
}

export function seconds(value: number): string {
  return value < 1 ? `${(1000 * value).toFixed(0)} ms` : `${value.toFixed(2)} s`;
}

export function rate(value: number): string {
  return value.toFixed(value < 100 ? 1 : 0);
}

/** A token on one line: spaces and line ends are seen, and characters that would steer the page's text are named. */
export function visible(text: string, token?: number): string {
  if (text === "") return token === undefined ? "(no text)" : `#${token}`;
  return text
    .replace(/\r\n|\n/g, "⏎")
    .replace(/\t/g, "⇥")
    .replace(/ /g, "␣")
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => `‹${character.codePointAt(0)!.toString(16).toUpperCase()}›`);
}
