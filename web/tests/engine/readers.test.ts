/** What readers may do to a generation: ask at once, leave, come back, change what they gave; and options that mean nothing. */

import { describe, expect, test } from "vitest";
import type { LawCounts, ModelInfo, Piece, Stream } from "../../src/api";
import { Client } from "../../src/client";
import type { Batch, Service } from "../../src/engine";
import type { Request } from "../../src/request";

const ROUNDS = 6;
const EACH = 3;

/** A service whose generations have tokens 0, 1, 2, ..., `EACH` a round, each its own text. */
class Counting implements Partial<Service> {
  readonly live = new Set<number>();
  prompts: unknown[] = [];
  requests: Request[] = [];
  private readonly rounds = new Map<number, number>();

  async start(prompt: string | readonly number[], request: Request) {
    this.prompts.push(structuredClone(prompt));
    this.requests.push(structuredClone(request));
    const stream = this.rounds.size + 1;
    this.rounds.set(stream, 0);
    this.live.add(stream);
    return { stream, draft: "none" as const, promptTokens: 1, pace: {} };
  }

  async next(stream: number): Promise<Batch | null> {
    const round = this.rounds.get(stream) as number;
    if (round === ROUNDS || !this.live.has(stream)) return null;
    this.rounds.set(stream, round + 1);
    await new Promise((resolve) => setTimeout(resolve, 2));
    const tokens = Array.from({ length: EACH }, (_, i) => round * EACH + i);
    return {
      tokens,
      kinds: tokens.map(() => "plain"),
      round: { proposed: 0, judged: 0, accepted: 0 },
      reason: round + 1 === ROUNDS ? "length" : "",
      judgements: [],
      pieces: tokens.map((token) => ({ text: `${token} `, index: token })),
      meter: { models: {}, seconds: 0, firstSeconds: 0, controllerSeconds: 0 },
    } as unknown as Batch;
  }

  async end(stream: number) {
    this.live.delete(stream);
  }
}

const WHOLE = Array.from({ length: ROUNDS * EACH }, (_, i) => i);
const client = (service: Counting, ahead: boolean) => new Client({ rowRule: "", draft: "none" } as ModelInfo, service as unknown as Service, ahead);

describe.each([
  ["where the engine has the caller's thread", false],
  ["where it has its own", true],
])("%s", (_, ahead) => {
  test.each([1, 2, 3, 7])("%d pieces asked for at once come in order, none lost and none twice", async (many) => {
    const service = new Counting();
    const stream = client(service, ahead).stream("a");
    const found: number[] = [];
    for (;;) {
      const got = await Promise.all(Array.from({ length: many }, () => stream.next()));
      found.push(...got.flatMap(({ done, value }) => (done ? [] : [(value as Piece).token])));
      if (got.some(({ done }) => done)) break;
    }
    expect(found).toEqual(WHOLE);
    expect(stream.generation()).toMatchObject({ tokens: WHOLE, text: WHOLE.map((token) => `${token} `).join("") });
    expect(service.live.size).toBe(0);
  });

  test("two loops over one stream share its pieces", async () => {
    const stream = client(new Counting(), ahead).stream("a");
    const found: number[] = [];
    const read = async () => {
      for await (const { token } of stream) found.push(token);
    };
    await Promise.all([read(), read()]);
    expect(found).toEqual(WHOLE);
  });

  test("a loop that was left is not gone on with", async () => {
    const service = new Counting();
    const stream = client(service, ahead).stream("a");
    for await (const _ of stream) break;
    const more: Piece[] = [];
    for await (const piece of stream) more.push(piece);
    expect(more).toEqual([]);
    expect(service.live.size).toBe(0);
  });

  test.each([
    ["before it began", async (_: Stream) => {}],
    ["in its first round", async (stream: Stream) => void stream.next()],
    ["in its second", async (stream: Stream) => { for (let i = 0; i <= EACH; i++) void stream.next(); await new Promise((resolve) => setTimeout(resolve, 3)); }],
  ] as [string, (stream: Stream) => Promise<void>][])("one that is left %s has no more pieces, and is freed", async (_name, before) => {
    const service = new Counting();
    const stream = client(service, ahead).stream("a");
    await before(stream);
    const waiting = stream.next();
    expect(await stream.return?.()).toEqual({ done: true, value: undefined });
    expect((await waiting).done).toBe(true);
    expect((await stream.next()).done).toBe(true);
    expect(service.live.size).toBe(0);
  });

  test("what was given is taken as it was", async () => {
    const service = new Counting();
    const [prompt, stop, sequence] = [[1, 2, 3], ["x"], [4, 5]];
    const stream = client(service, ahead).stream(prompt, { stop, stopTokens: [sequence] });
    prompt.length = 0;
    stop[0] = "y";
    sequence[0] = 9;
    for await (const _ of stream);
    expect(service.prompts).toEqual([[1, 2, 3]]);
    expect(service.requests[0]).toMatchObject({ stops: ["x"], sequences: [[4, 5]] });
  });
});

describe("options that mean nothing are refused", () => {
  const lm = client(new Counting(), false);
  const bad = { code: "bad-request" };
  const draw = async (options: object) => {
    for await (const _ of lm.law("a", options as never) as AsyncIterable<LawCounts>);
  };

  test.each([{ draw: 5 }, { way: "plain", rule: "wrong" }, { way: "plain", rule: "foo" }, { way: "plain", maxNewTokens: 3 }])("law: %o", async (options) => {
    await expect(draw(options)).rejects.toMatchObject(bad);
  });
  test.each([{ way: "plain" }, { topk: 5 }])("nextToken: %o", async (options) => {
    await expect(lm.nextToken("a", options as never)).rejects.toMatchObject(bad);
  });
  test.each([new Map([[1, 2]]), [1, 2], new Set([1])])("logitBias: %o", (logitBias) => {
    expect(() => lm.stream("a", { logitBias: logitBias as never })).toThrow(expect.objectContaining(bad));
  });
});
