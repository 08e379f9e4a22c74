/** The built page in Chromium, with a toy model whose laws are true. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { contrast, measure } from "./contrast";
import { browserThere, generated, Site, type Visit } from "./site";

describe.skipIf(!browserThere)("the page (skipped where there is no Chromium)", () => {
  let site: Site;
  const visits: Visit[] = [];

  beforeAll(async () => {
    site = await Site.open();
  });

  afterAll(async () => {
    await site?.close();
  });

  async function ready(...asked: Parameters<Site["ready"]>): Promise<Visit> {
    const visit = await site.ready(...asked);
    visits.push(visit);
    return visit;
  }

  /** No visit may ask another origin for anything, break the policy, or complain. */
  async function clean(visit: Visit): Promise<void> {
    expect(visit.complaints).toEqual([]);
    expect(visit.asked.filter((url) => !url.startsWith(`${site.origin}/`))).toEqual([]);
    await visit.close();
  }

  describe("generates", () => {
    it("tokens by kind, a summary, and one message at the end", async () => {
      const visit = await ready();
      const { page } = visit;
      await generated(page);
      expect(await page.locator(".token").count()).toBeGreaterThan(40);
      const kinds = await page.locator(".token").evaluateAll((tokens) => [...new Set(tokens.map((token) => (token as HTMLElement).dataset["kind"]))].sort());
      expect(kinds).toEqual(["accepted", "bonus", "recovered"]);
      expect(await page.textContent("#summary")).toMatch(/tokens\/s.*predicted \d+% ± \d+%.*Target runs a token0\.\d\d/s);
      expect(await page.textContent("#announcer")).toMatch(/^Finished: \d+ tokens, .* acceptance \d+%, predicted \d+%\.$/);
      await clean(visit);
    });

    it("again with the same seed gives the same text, with a new one another", async () => {
      const visit = await ready();
      const { page } = visit;
      const text = async (): Promise<string | null> => (await generated(page), page.textContent("#answer"));
      const first = await text();
      const seed = await page.inputValue("#seed");
      expect(seed).toMatch(/^\d+$/);
      await page.uncheck("#new-seed");
      expect(await text()).toBe(first);
      expect(await page.inputValue("#seed")).toBe(seed);
      await page.check("#new-seed");
      expect(await text()).not.toBe(first);
      await clean(visit);
    });

    it("plainly when the draft is off", async () => {
      const visit = await ready();
      await visit.page.uncheck("#draft");
      await generated(visit.page);
      expect(await visit.page.locator('.token:not([data-kind="bonus"])').count()).toBe(0);
      expect(await visit.page.textContent("#summary")).toMatch(/nothing was judged/);
      await clean(visit);
    });

    it("text of several tokens a piece, and tells of all of them", async () => {
      const visit = await ready("rough");
      await generated(visit.page);
      await visit.page.locator(".token").nth(3).click();
      expect(await visit.page.textContent("#card")).toMatch(/Earlier tokens of the same characters/);
      await clean(visit);
    });
  });

  describe("stops", () => {
    it("by the button, which then says Generate again and keeps the focus", async () => {
      const visit = await ready("slow");
      const { page } = visit;
      await page.click("#go");
      await page.waitForSelector(".token");
      expect(await page.textContent("#go")).toBe("Stop");
      expect(await page.isDisabled("#draw")).toBe(true);
      await page.click("#go");
      await page.waitForSelector("#summary > div");
      expect(await page.textContent("#go")).toBe("Generate");
      expect(await page.evaluate(() => document.activeElement?.id)).toBe("go");
      expect(await page.textContent("#announcer")).toMatch(/^Stopped/);
      expect(await page.locator(".token").count()).toBeLessThan(64);
      await clean(visit);
    });

    it("by Escape, and starts by Control and Enter", async () => {
      const visit = await ready("slow");
      const { page } = visit;
      await page.focus("#prompt");
      await page.keyboard.press("Control+Enter");
      await page.waitForSelector(".token");
      await page.keyboard.press("Escape");
      await page.waitForSelector("#summary > div");
      expect(await page.textContent("#summary")).toMatch(/stopped/);
      await clean(visit);
    });
  });

  describe("tells how a token came to be", () => {
    it("to the keyboard: one stop in the tab order, arrows, Home and End", async () => {
      const visit = await ready();
      const { page } = visit;
      await generated(page);
      expect(await page.locator('.token[tabindex="0"]').count()).toBe(1);
      await page.locator('.token[tabindex="0"]').focus();
      await page.keyboard.press("ArrowRight");
      const chosen = (): Promise<number> => page.locator(".token").evaluateAll((tokens) => tokens.findIndex((token) => token === document.activeElement));
      expect(await chosen()).toBe(1);
      expect(await page.locator('.token[aria-selected="true"]').count()).toBe(1);
      expect(await page.textContent("#card")).toMatch(/token 2 of the answer/);
      await page.keyboard.press("ArrowDown");
      expect(await chosen()).toBeGreaterThan(2);
      await page.keyboard.press("End");
      expect(await chosen()).toBe((await page.locator(".token").count()) - 1);
      await page.keyboard.press("Home");
      expect(await chosen()).toBe(0);
      await clean(visit);
    });

    it("in words that agree with the kind", async () => {
      const visit = await ready();
      const { page } = visit;
      await generated(page);
      for (const [kind, words] of [["accepted", /Coin .* < p .*: accepted/], ["recovered", /The draft proposed .* ≥ p .*: rejected.*residual/s], ["bonus", /Nothing was left to judge/]] as const) {
        await page.locator(`.token[data-kind="${kind}"]`).first().click();
        expect(await page.textContent("#card")).toMatch(words);
      }
      expect(await page.locator("#card .tops li").count()).toBe(5);
      await page.waitForFunction(() => !/#\d/.test(document.querySelector("#card .tops")?.textContent ?? "#1"));
      await clean(visit);
    });

    it("to the pointer, and goes back to the chosen one when it leaves", async () => {
      const visit = await ready();
      const { page } = visit;
      await generated(page);
      await page.locator(".token").first().click();
      await page.locator(".token").nth(5).hover();
      expect(await page.textContent("#card")).toMatch(/token 6 of/);
      await page.hover("h1");
      expect(await page.textContent("#card")).toMatch(/token 1 of/);
      await clean(visit);
    });
  });

  it("shows hostile text as text", async () => {
    const visit = await ready("hostile");
    const { page } = visit;
    const title = await page.title();
    await generated(page);
    await page.locator(".token").nth(1).click();
    await page.click("#draw");
    await page.waitForFunction(() => document.querySelector("#announcer")?.textContent?.startsWith("Distances"), null, { timeout: 60_000 });
    expect(await page.textContent("#answer")).toMatch(/<img src=x|<script>|<\/span>|&lt;b/);
    expect(await page.locator("#answer img, #answer script, #card img, #card script, #law img, #law script, #law b").count()).toBe(0);
    expect(await page.textContent("#law")).not.toMatch(/[\u202e\u200b]/);
    expect(await page.title()).toBe(title);
    await clean(visit);
  });

  it("compares speed in turns", async () => {
    const visit = await ready();
    const { page } = visit;
    await page.fill("#max-tokens", "24");
    await page.click("#compare");
    await page.waitForFunction(() => document.querySelector("#compare")?.textContent === "Compare speed" && document.querySelector(".ratio"));
    expect(await page.textContent(".ratio")).toMatch(/^Speculative is \d+\.\d\d times as fast as plain .*, over 3 seeds\./);
    expect(await page.locator(".dot").count()).toBe(6);
    await clean(visit);
  });

  describe("shows exactness", () => {
    it("plain and speculative within chance, the wrong rule beyond it", async () => {
      const visit = await ready();
      const { page } = visit;
      await page.click("#draw");
      await page.waitForFunction(() => document.querySelector("#announcer")?.textContent?.startsWith("Distances"), null, { timeout: 60_000 });
      const rows = await page.locator(".distances tbody tr").allTextContents();
      expect(rows[0]).toMatch(/plain.*within chance/);
      expect(rows[1]).toMatch(/speculative.*within chance/);
      expect(rows[2]).toMatch(/wrong rule.*beyond chance/);
      expect(await page.textContent(".distances caption")).toMatch(/10,000 draws/);
      expect(await page.locator(".histograms tbody tr").count()).toBe(21);
      expect(await page.textContent(".curve title")).toMatch(/after 10,000 draws/);
      await clean(visit);
    });

    it("pauses, goes on, and stops", async () => {
      const visit = await ready();
      const { page } = visit;
      await page.selectOption("#draws", "50000");
      await page.click("#draw");
      await page.waitForFunction(() => /\d/.test(document.querySelector("#draw-progress")?.textContent ?? ""));
      await page.click("#pause");
      const progress = await page.textContent("#draw-progress");
      await page.waitForTimeout(300);
      expect(await page.textContent("#draw-progress")).toBe(progress);
      await page.click("#pause");
      await page.waitForFunction((before) => document.querySelector("#draw-progress")?.textContent !== before, progress);
      await page.keyboard.press("Escape");
      await page.waitForFunction(() => document.querySelector("#draw-progress")?.textContent === "Stopped.");
      expect(await page.isVisible("#pause")).toBe(false);
      await clean(visit);
    });

    it("has plain draws alone where nothing drafts", async () => {
      const visit = await ready("none");
      const { page } = visit;
      expect(await page.isDisabled("#draft")).toBe(true);
      expect(await page.isDisabled("#compare")).toBe(true);
      await page.selectOption("#draws", "2000");
      await page.click("#draw");
      await page.waitForFunction(() => document.querySelector("#announcer")?.textContent?.startsWith("Distances"));
      expect(await page.locator(".distances tbody tr").count()).toBe(1);
      await clean(visit);
    });
  });

  describe("says what went wrong", () => {
    it.each([
      ["network", "the server answers 503"],
      ["memory", "WebAssembly memory"],
      ["hash", "sha256"],
      ["browser", "SIMD"],
      ["stray", "undefined is not a function"],
    ])("while loading: %s", async (name, words) => {
      const visit = await site.visit(`/?bundle=/models/${name}/`);
      await visit.page.waitForSelector("#failure:not([hidden])");
      expect(await visit.page.textContent("#failure")).toContain(words);
      expect(await visit.page.textContent("#announcer")).toMatch(/^Error/);
      expect(await visit.page.isDisabled("#go")).toBe(true);
      expect(await visit.page.isVisible("#loading")).toBe(false);
      await clean(visit);
    });

    it("while generating, with what came before it", async () => {
      const visit = await ready("broken");
      await visit.page.click("#go");
      await visit.page.waitForSelector("#generate-failure:not([hidden])");
      expect(await visit.page.textContent("#generate-failure")).toMatch(/runtime.*memory access out of bounds/s);
      expect(await visit.page.textContent("#go")).toBe("Generate");
      await clean(visit);
    });

    it("of a bundle on another origin, without asking it", async () => {
      const visit = await site.visit("/?bundle=https://elsewhere.example/m/");
      await visit.page.waitForSelector("#failure:not([hidden])");
      expect(await visit.page.textContent("#failure")).toMatch(/bad-request.*another origin/s);
      await clean(visit);
    });

    it("of the form, beside the field", async () => {
      const visit = await ready();
      const { page } = visit;
      for (const [field, value, words] of [["#temperature", "-1", /^Temperature: /], ["#top-p", "0", /^Top-p: /], ["#prompt", "", /^Write a prompt/]] as const) {
        const before = await page.inputValue(field);
        await page.fill(field, value);
        await page.click("#go");
        expect(await page.textContent("#form-problem")).toMatch(words);
        expect(await page.getAttribute(field, "aria-invalid")).toBe("true");
        await page.fill(field, before);
      }
      await page.uncheck("#new-seed");
      await page.fill("#seed", "18446744073709551616");
      await page.click("#go");
      expect(await page.textContent("#form-problem")).toMatch(/^Seed: /);
      expect(await page.isVisible("#result")).toBe(false);
      await clean(visit);
    });
  });

  it("tells what is loaded, and where nothing is promised", async () => {
    const exact = await ready();
    expect(await exact.page.textContent("#info")).toMatch(/Exact here.*6\.8 million parameters.*4 threads; the page is cross-origin isolated.*MicroPython 1\.27\.0/s);
    await clean(exact);
    const inexact = await ready("inexact");
    expect(await inexact.page.textContent("#info")).toMatch(/Not exact here/);
    expect(await inexact.page.locator('#rule option[value="coupled"]').isDisabled()).toBe(true);
    await generated(inexact.page);
    expect(await inexact.page.textContent("#verdict")).toMatch(/^Not exact/);
    await clean(inexact);
  });

  it("shows true progress while it loads", async () => {
    const visit = await site.visit("/?bundle=/models/slow/");
    await visit.page.waitForFunction(() => / of 15\.3 MB/.test(document.querySelector("#loading-bytes")?.textContent ?? ""));
    expect(await visit.page.locator('#loading-stages [aria-current="step"]').textContent()).toBe("Files");
    const value = await visit.page.locator("#loading-bar").evaluate((bar) => (bar as HTMLProgressElement).value);
    expect(value).toBeGreaterThan(0);
    expect(value).toBeLessThan(1);
    await clean(visit);
  });

  describe("can be read and touched", () => {
    it.each([320, 390, 768])("has no sideways scrolling at %i pixels, and targets of 44", async (width) => {
      const visit = await ready("toy", { viewport: { width, height: 700 }, hasTouch: true });
      const { page } = visit;
      await generated(page);
      await page.locator(".token").first().click();
      await page.selectOption("#draws", "2000");
      await page.click("#draw");
      await page.waitForFunction(() => document.querySelector("#announcer")?.textContent?.startsWith("Distances"));
      await page.click("summary");
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
      const small = await page.locator("button, select, input:not([type=checkbox]), textarea, label.check, nav a, summary").evaluateAll((all) =>
        all.filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < 43.9).map((each) => each.outerHTML.slice(0, 80)),
      );
      expect(small).toEqual([]);
      await clean(visit);
    });

    it.each(["light", "dark"] as const)("has the contrast of WCAG AA in %s", async (colorScheme) => {
      const visit = await ready("toy", { colorScheme, reducedMotion: "reduce" });
      const { page } = visit;
      await generated(page);
      await page.locator('.token[data-kind="recovered"]').first().click();
      await page.selectOption("#draws", "2000");
      await page.click("#draw");
      await page.waitForFunction(() => document.querySelector("#announcer")?.textContent?.startsWith("Distances"));
      await page.click("summary");
      await page.evaluate(() => document.querySelector(".failure")?.removeAttribute("hidden"));
      await page.waitForTimeout(100);
      const measured = await measure(page);
      expect(measured.length).toBeGreaterThan(150);
      expect(measured.filter(({ ratio, needed }) => ratio < needed)).toEqual([]);
      await clean(visit);
    });

    it("switches theme, and keeps the choice", async () => {
      const visit = await ready("toy", { colorScheme: "light" });
      const { page } = visit;
      const ground = (): Promise<string> => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const light = await ground();
      await page.click("#theme");
      await page.click("#theme");
      expect(await page.textContent("#theme")).toBe("Theme: dark");
      const dark = await ground();
      expect(contrast(light, [dark])).toBeGreaterThan(10);
      await page.reload();
      expect(await ground()).toBe(dark);
      await clean(visit);
    });

    it("names every control, and every figure", async () => {
      const visit = await ready();
      const { page } = visit;
      const nameless = await page.locator("button, input, select, textarea, [role=img], [role=listbox]").evaluateAll((all) =>
        all
          .filter((each) => {
            const labels = "labels" in each ? (each.labels as NodeList | null) : null;
            return !(each.getAttribute("aria-label") || each.textContent?.trim() || labels?.length);
          })
          .map((each) => each.outerHTML),
      );
      expect(nameless).toEqual([]);
      const levels = await page.locator("h1, h2, h3").evaluateAll((all) => all.filter((each) => each.checkVisibility()).map((each) => Number(each.tagName[1])));
      expect(levels[0]).toBe(1);
      expect(levels.every((level, i) => i === 0 || level <= (levels[i - 1] ?? 0) + 1)).toBe(true);
      await clean(visit);
    });
  });
});

describe.skipIf(!browserThere)("the page elsewhere (skipped where there is no Chromium)", () => {
  it("says why it has one thread where the server doesn't isolate it", async () => {
    const site = await Site.open({ isolated: false });
    const { page } = await site.ready();
    expect(await page.textContent("#info")).toMatch(/1 thread: the page isn't cross-origin isolated/);
    await site.close();
  });

  it.each([
    ['{"url": "https://elsewhere.example/m/"}', 200, /bad-request.*another origin/s],
    ["<html>", 200, /bad-bundle.*must be/s],
    ["", 404, /network.*404/s],
  ])("says what is wrong with bundle.json: %s", async (bundle, status, words) => {
    const site = await Site.open({ bundle, status });
    const { page } = await site.visit("/");
    await page.waitForSelector("#failure:not([hidden])");
    expect(await page.textContent("#failure")).toMatch(words);
    await site.close();
  });
});
