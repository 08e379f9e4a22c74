/** Distance to p against draws, both logarithmic: what is right falls along the line of chance, what is wrong stays. */

import { drawn } from "./dom";
import { TITLES, WAYS, type Way } from "./histograms";
import { whole } from "./format";
import { chance } from "./laws";

export type Point = readonly [draws: number, distance: number];
export type Points = Readonly<Record<Way, readonly Point[]>>;

const HEIGHT = 260;
const PAD = { left: 46, right: 14, top: 12, bottom: 36 };
const TICKS = [1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003];

type Place = (draws: number, distance: number) => [x: number, y: number];

export interface CurveInput {
  points: Points;
  /** What chance gives, from the first draws shown to the last: `chanceLine`, which takes a pass over p a point. */
  chances: readonly Point[];
  /** Where the wrong rule is bound for; null if nothing drafts. */
  bound: number | null;
}

/** The expected distance of true draws, from the first batch on. */
export function chanceLine(p: Float64Array, draws: number): Point[] {
  const first = 200;
  const steps = 24;
  return Array.from({ length: steps + 1 }, (_, i) => {
    const n = Math.round(first * (draws / first) ** (i / steps));
    return [n, chance(n, p)];
  });
}

interface Frame {
  first: number;
  draws: number;
  low: number;
  high: number;
}

/** The ends of both axes. */
function frame({ chances, bound }: CurveInput): Frame {
  const [first, top] = chances[0] ?? [1, 1];
  const [draws, bottom] = chances.at(-1) ?? [1, 1];
  const high = Math.max(top, bound ?? 0) * 1.6;
  return { first, draws, low: Math.max(bottom / 2.5, 1e-5), high: Math.min(1, Math.max(high, 1e-4)) };
}

export function curve(input: CurveInput, width: number): SVGElement {
  const { first, draws, low, high } = frame(input);
  const across = (width - PAD.left - PAD.right) / Math.log(draws / first);
  const down = (HEIGHT - PAD.top - PAD.bottom) / Math.log(high / low);
  const place: Place = (n, distance) => [
    PAD.left + across * Math.log(Math.max(n, first) / first),
    PAD.top + down * Math.log(high / Math.min(high, Math.max(low, distance))),
  ];
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", class: "curve" });
  svg.append(drawn("title", {}, described(input)), ...axes(place, { first, draws, low, high }));
  svg.append(line(input.chances, place, "chance"));
  if (input.bound !== null && input.bound > low) svg.append(line([[first, input.bound], [draws, input.bound]], place, "bound"));
  for (const way of WAYS) svg.append(...series(way, input.points[way].filter(([n]) => n >= first), place));
  return svg;
}

function line(points: readonly Point[], place: Place, name: string): SVGElement {
  return drawn("polyline", { points: points.map(([n, d]) => place(n, d).map((v) => v.toFixed(1)).join(",")).join(" "), class: `line ${name}` });
}

function series(way: Way, points: readonly Point[], place: Place): SVGElement[] {
  const end = points.at(-1);
  if (!end) return [];
  const [x, y] = place(...end);
  return [line(points, place, way), marker(way, x, y)];
}

/** A shape of its own for each way: circle, square, triangle. */
function marker(way: Way, x: number, y: number): SVGElement {
  if (way === "plain") return drawn("circle", { cx: x, cy: y, r: 4.5, class: `marker ${way}` });
  if (way === "speculative") return drawn("rect", { x: x - 4, y: y - 4, width: 8, height: 8, class: `marker ${way}` });
  return drawn("path", { d: `M${x} ${y - 5.5}l5.5 9.5h-11z`, class: `marker ${way}` });
}

export function sample(way: Way): SVGElement {
  return drawn("svg", { viewBox: "0 0 14 14", width: 14, height: 14, "aria-hidden": "true" }, marker(way, 7, 7));
}

function axes(place: Place, { first, draws, low, high }: Frame): SVGElement[] {
  const parts: SVGElement[] = [];
  for (const tick of TICKS.filter((value) => value >= low && value <= high)) {
    const [x, y] = place(first, tick);
    parts.push(drawn("path", { d: `M${x} ${y}H${place(draws, tick)[0]}`, class: "grid" }));
    parts.push(drawn("text", { x: x - 6, y: y + 4, "text-anchor": "end" }, String(tick)));
  }
  parts.push(...drawsTick(place, first, low, "middle"), ...drawsTick(place, draws, low, "end"));
  for (let tick = 1000; tick < draws / 1.9; tick *= 10) parts.push(...drawsTick(place, tick, low, "middle"));
  const [x, y] = place(draws, low);
  parts.push(drawn("text", { x, y: y + 32, "text-anchor": "end" }, "draws, each way"));
  return parts;
}

function drawsTick(place: Place, tick: number, low: number, anchor: string): SVGElement[] {
  const [x, y] = place(tick, low);
  return [drawn("path", { d: `M${x} ${y}v4`, class: "grid" }), drawn("text", { x, y: y + 17, "text-anchor": anchor }, whole(tick))];
}

function described(input: CurveInput): string {
  const told = WAYS.flatMap((way) => {
    const end = input.points[way].at(-1);
    return end ? `${TITLES[way]} ${end[1].toFixed(4)} after ${whole(end[0])} draws` : [];
  });
  const ends = told.length ? ` Now: ${told.join("; ")}.` : "";
  return `Distance to p against draws, both axes logarithmic.${ends}`;
}
