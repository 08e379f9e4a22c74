/**
 * Text in, tokens in; tokens out, text out, by the `@huggingface/tokenizers` library, as journee_deploy/text.py does it.
 *
 * Special-token text in a prompt is plain text unless asked for; an end-of-sequence token, or the tokens of a stop sequence,
 * are in the tokens and not in the text; the text ends where a stop string begins; no piece splits a character.
 */

import { Tokenizer } from "@huggingface/tokenizers";
import { JourneeError } from "./errors";

/** What a character that isn't complete decodes to. */
const INCOMPLETE = "\ufffd";

interface TokenizerFile {
  added_tokens?: { id: number; content: string; special: boolean }[];
}

export class Codec {
  /** The number of tokens: columns of logits past it mean nothing. */
  readonly size: number;
  private readonly plain: Tokenizer;
  private readonly aware: Tokenizer;
  private readonly special: ReadonlySet<number>;

  constructor(content: string, name: string) {
    try {
      const file = JSON.parse(content) as TokenizerFile;
      const added = file.added_tokens ?? [];
      this.aware = new Tokenizer(file, {});
      // Text of a special token is plain text to a tokenizer that doesn't know the token.
      this.plain = new Tokenizer({ ...file, added_tokens: added.filter((token) => !token.special) }, {});
      this.special = new Set(added.filter((token) => token.special).map((token) => token.id));
      this.size = 1 + Math.max(-1, ...this.aware.get_vocab(true).values());
    } catch (error) {
      throw new JourneeError("bad-bundle", `${name} can't be used as a tokenizer: ${text(error)}; export the bundle again`, {
        cause: error,
      });
    }
  }

  encode(prompt: string, special = false): number[] {
    checkUnicode("the prompt", prompt);
    return [...(special ? this.aware : this.plain).encode(prompt).ids];
  }

  /** The text of tokens, special ones left out; bytes that are no UTF-8 become U+FFFD. */
  decode(tokens: readonly number[]): string {
    const spoken = tokens.filter((token) => !this.special.has(token));
    return spoken.length ? this.aware.decode(spoken, { skip_special_tokens: true, clean_up_tokenization_spaces: false }) : "";
  }

  /** Refuse token ids outside the vocabulary. */
  check(tokens: readonly number[]): void {
    for (const token of tokens)
      if (!Number.isInteger(token) || token < 0 || token >= this.size)
        throw new JourneeError("bad-request", `${String(token)} is no token; tokens are whole numbers from 0 to ${this.size - 1}`);
  }

  /** The last `count` tokens that have text. */
  last(tokens: readonly number[], count: number): number[] {
    const found: number[] = [];
    for (let i = tokens.length - 1; i >= 0 && found.length < count; i--) {
      const token = tokens[i];
      if (token !== undefined && !this.special.has(token)) found.push(token);
    }
    return found.reverse();
  }
}

/** The characters that each token of a text completes. Few tokens are decoded at a time, whatever the length. */
class Decoding {
  private tokens: number[] = [];
  private prefix = "";
  private read = 0; // tokens that `prefix` is the text of

  constructor(private readonly codec: Codec) {}

  step(token: number): string {
    this.tokens.push(token);
    const all = this.codec.decode(this.tokens);
    if (all.length <= this.prefix.length || all.endsWith(INCOMPLETE)) return "";
    const fresh = all.slice(this.prefix.length);
    // The tokens read last stay, since what a token adds may depend on those before it.
    const reading = this.tokens.length - this.read;
    this.tokens = this.tokens.slice(this.read);
    this.prefix = this.codec.decode(this.tokens);
    this.read = reading;
    return fresh;
  }
}

/**
 * Whether the text of some tokens contains a stop string: a pure function of the tokens, asked after every one. A stop
 * string that is there now ends in the last token's text; every token with text has at least a byte of it, so the last
 * tokens, one more than the longest stop has bytes, tell.
 */
export function stopStrings(codec: Codec, strings: readonly string[]) {
  for (const string of strings) {
    checkUnicode("a stop string", string);
    if (!string || string.includes(INCOMPLETE))
      throw new JourneeError("bad-request", `stop string ${JSON.stringify(string)} must have a character, and none that is U+FFFD`);
  }
  const bytes = strings.map((string) => new TextEncoder().encode(string).length);
  const window = 1 + Math.max(0, ...bytes);
  return (generated: readonly number[], fresh: readonly number[]): boolean => {
    let recent = codec.last(fresh, window);
    if (recent.length < window) recent = [...codec.last(generated, window - recent.length), ...recent];
    const said = codec.decode(recent);
    return strings.some((string) => said.includes(string));
  };
}

/** Some characters, and the token that completed them, by its place among the tokens of the text. */
export interface TextPiece {
  text: string;
  index: number;
}

/** Decodes one generation as it streams. Joined, the pieces are its text. */
export class Pieces {
  private readonly decoding: Decoding;
  private waiting: number[] = []; // not decoded yet: they may belong to a stop sequence
  private readonly decoded: number[] = [];
  private length = 0; // characters decoded so far, held ones included
  private held: TextPiece[] = []; // decoded, not released yet: they may belong to a stop string

  constructor(
    private readonly codec: Codec,
    private readonly stops: readonly string[] = [],
    private readonly sequences: readonly (readonly number[])[] = [],
  ) {
    this.decoding = new Decoding(codec);
  }

  /** The pieces that these tokens make final; `reason` says why the text ends with them ("" if it goes on). */
  feed(tokens: readonly number[], reason: string): TextPiece[] {
    this.waiting.push(...tokens);
    const end = reason === "stop" ? this.stopString() : null;
    if (reason === "end-of-sequence") this.waiting.pop();
    else if (reason === "stop") this.dropSequence();
    const keep = reason ? 0 : this.mayBeStop();
    while (this.waiting.length > keep) this.decode(this.waiting.shift() ?? 0);
    return reason ? this.finish(end) : this.release();
  }

  /** Where in the text the first stop string begins, if one is there. */
  private stopString(): number | null {
    const said = this.codec.decode([...this.decoded, ...this.waiting]);
    const places = this.stops.map((stop) => said.indexOf(stop)).filter((place) => place >= 0);
    return places.length ? Math.min(...places) : null;
  }

  private decode(token: number): void {
    this.decoded.push(token);
    const said = this.decoding.step(token);
    if (!said) return;
    this.held.push({ text: said, index: this.decoded.length - 1 });
    this.length += said.length;
  }

  /** Take back the longest stop sequence that the tokens end with, if they do. */
  private dropSequence(): void {
    const ends = this.sequences.filter((sequence) => endsWith(this.waiting, sequence));
    this.waiting.length -= Math.max(0, ...ends.map((sequence) => sequence.length));
  }

  /** How many of the last tokens are a proper beginning of a stop sequence. */
  private mayBeStop(): number {
    let most = 0;
    for (const sequence of this.sequences)
      for (let count = Math.min(sequence.length - 1, this.waiting.length); count > most; count--)
        if (endsWith(this.waiting, sequence.slice(0, count))) most = count;
    return most;
  }

  private release(): TextPiece[] {
    if (this.stops.length) return this.take(this.safe());
    const released = this.held;
    this.held = [];
    return released;
  }

  /** How many characters can't belong to a stop string any more. */
  private safe(): number {
    const said = joined(this.held);
    for (let start = 0; start < said.length; start++) {
      const tail = said.slice(start);
      if (this.stops.some((stop) => stop.startsWith(tail))) return start;
    }
    return said.length;
  }

  /** All that is left, up to the character `end` of the text. */
  private finish(end: number | null): TextPiece[] {
    const released = this.length - joined(this.held).length;
    const rest = this.codec.decode(this.decoded).slice(this.length); // a character that never was completed
    if (rest) this.held.push({ text: rest, index: this.decoded.length - 1 });
    const length = joined(this.held).length;
    const pieces = this.take(end === null ? length : Math.min(end - released, length));
    this.held = [];
    return pieces;
  }

  /** Release the first `count` characters held, piece by piece. */
  private take(count: number): TextPiece[] {
    const taken: TextPiece[] = [];
    let left = count;
    while (this.held.length && left > 0) {
      const piece = this.held.shift() as TextPiece;
      if (piece.text.length > left) this.held.unshift({ ...piece, text: piece.text.slice(left) });
      taken.push({ ...piece, text: piece.text.slice(0, left) });
      left -= Math.min(left, piece.text.length);
    }
    return taken;
  }
}

const joined = (pieces: readonly TextPiece[]): string => pieces.map((piece) => piece.text).join("");

const endsWith = (tokens: readonly number[], end: readonly number[]): boolean =>
  end.length <= tokens.length && end.every((token, i) => tokens[tokens.length - end.length + i] === token);

function checkUnicode(what: string, value: string): void {
  const at = value.search(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/);
  if (at >= 0)
    throw new JourneeError("bad-request", `${what} is no Unicode text at position ${at}: half of a surrogate pair; give whole characters`);
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
