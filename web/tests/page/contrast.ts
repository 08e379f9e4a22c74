/** Contrast as WCAG 2 measures it, of the text that a page shows, on the backgrounds that lie behind it. */

import type { Page } from "playwright-core";

export interface Measured {
  text: string;
  ratio: number;
  needed: number;
}

type Colour = readonly [r: number, g: number, b: number, a: number];

interface Found {
  text: string;
  colour: string;
  /** Behind the text, the nearest first. */
  backgrounds: string[];
  large: boolean;
}

function parsed(colour: string): Colour {
  const [r = 0, g = 0, b = 0, a = 1] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  return [r, g, b, a];
}

function over(top: Colour, below: Colour): Colour {
  const mix = (i: 0 | 1 | 2): number => top[i] * top[3] + below[i] * (1 - top[3]);
  return [mix(0), mix(1), mix(2), 1];
}

function luminance([r, g, b]: Colour): number {
  const linear = (value: number): number => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

export function contrast(one: string, other: readonly string[]): number {
  const ground = [...other].reverse().reduce((below, colour) => over(parsed(colour), below), [255, 255, 255, 1] as Colour);
  const [light = 0, dark = 0] = [luminance(over(parsed(one), ground)), luminance(ground)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

/** Every element with text of its own that is shown. Disabled controls are exempt, as in WCAG. */
export async function measure(page: Page): Promise<Measured[]> {
  const found: Found[] = await page.evaluate(() => {
    const shown: Found[] = [];
    for (const element of document.querySelectorAll<HTMLElement>("body *")) {
      const own = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.textContent ?? "").join("").trim();
      if (!own || !element.checkVisibility() || element.closest(":disabled, .unseen, option, noscript")) continue;
      const style = getComputedStyle(element);
      const backgrounds: string[] = [];
      for (let at: Element | null = element; at; at = at.parentElement) backgrounds.push(getComputedStyle(at).backgroundColor);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      shown.push({ text: own.slice(0, 40), colour: element instanceof SVGElement ? style.fill : style.color, backgrounds, large });
    }
    return shown;
  });
  return found.map(({ text, colour, backgrounds, large }) => ({ text, ratio: contrast(colour, backgrounds), needed: large ? 3 : 4.5 }));
}
