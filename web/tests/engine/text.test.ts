import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Codec, Pieces, stopStrings } from "../../src/text";
import { RowRule } from "../../src/rows/row_rule";

interface Recorded {
  size: number;
  encodings: { text: string; plain: number[]; special: number[] }[];
  decodings: { tokens: number[]; text: string }[];
  pieces: { stops: string[]; sequences: number[][]; asked: boolean[]; feeds: { tokens: number[]; reason: string; pieces: string[] }[] }[];
  plans: { rule: [number, number, boolean]; says: string; asked: [number, number, number, number]; pieces: [number, number, number, number, number][] }[];
}

const here = new URL(".", import.meta.url);
const recorded = JSON.parse(readFileSync(new URL("../recorded.json", here), "utf8")) as Recorded;
const tokenizer = readFileSync(new URL("../../../artifacts/tiny/target/tokenizer.json", here), "utf8");
const codec = new Codec(tokenizer, "tokenizer.json");

test("the vocabulary has the size that Python finds", () => expect(codec.size).toBe(recorded.size));

describe("texts become the tokens that Python's tokenizer gives", () => {
  test.each(recorded.encodings)("$text", ({ text, plain, special }) => {
    expect(codec.encode(text)).toEqual(plain);
    expect(codec.encode(text, true)).toEqual(special);
  });
});

test("tokens become the text that Python's tokenizer gives, bytes that are no UTF-8 too", () => {
  for (const { tokens, text } of recorded.decodings) expect(codec.decode(tokens)).toBe(text);
});

test("a stream has the pieces that Python's has", () => {
  for (const { stops, sequences, asked, feeds } of recorded.pieces) {
    const pieces = new Pieces(codec, stops, sequences);
    const strings = stopStrings(codec, stops);
    const done: number[] = [];
    const answers: boolean[] = [];
    for (const feed of feeds) {
      for (const count of feed.tokens.keys()) if (answers.length < asked.length) answers.push(strings(done, feed.tokens.slice(0, count + 1)));
      done.push(...feed.tokens);
      expect(pieces.feed(feed.tokens, feed.reason).map((piece) => piece.text)).toEqual(feed.pieces);
    }
    expect(answers).toEqual(asked);
  }
});

test("a row rule plans the runs that Python's plans", () => {
  for (const { rule, says, asked, pieces } of recorded.plans) {
    const mine = new RowRule(...rule);
    expect(mine.toString()).toBe(says);
    expect(mine.plan(...asked).map(({ start, real, padding, keep, take }) => [start, real, padding, keep, take])).toEqual(pieces);
  }
});

describe("what is no text is refused", () => {
  test.each(["\ud800", "a\udc00b", "\ud83d"])("half a surrogate pair", (text) => expect(() => codec.encode(text)).toThrow(/surrogate/));
  test.each(["", "\ufffd"])("as a stop string", (stop) => expect(() => stopStrings(codec, [stop])).toThrow(/stop string/));
  test.each(["", "{", "[]", "{}"])("as a tokenizer", (content) => expect(() => new Codec(content, "t.json")).toThrow(/t\.json/));
});
