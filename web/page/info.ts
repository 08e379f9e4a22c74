/** What was loaded, and what it promises here. */

import type { ModelInfo, RoleInfo } from "journee-web";
import { find, make } from "./dom";
import { count, megabytes, seconds } from "./format";
import { sources } from "./loading";

const CONTROLLERS = { micropython: "MicroPython", pyodide: "Pyodide" } as const;

function role(info: RoleInfo): string {
  return `${count(info.parameters)} parameters, ${info.layers} layers, ${megabytes(info.bytes)}, ${info.precision}`;
}

function draft(info: ModelInfo): string {
  const model = info.roles["draft"];
  if (info.draft === "model" && model) return role(model);
  if (info.draft === "ngram") return "n-gram: what followed these tokens earlier in the text";
  return info.draft === "uniform" ? "uniform: any token, equally likely" : "none: nothing drafts";
}

function threads(info: ModelInfo): string {
  const number = info.threads === 1 ? "1 thread" : `${info.threads} threads`;
  if (info.isolated) return `${number}; the page is cross-origin isolated`;
  return `${number}: the page isn't cross-origin isolated (its server sends no COOP and COEP headers), so no more can be used`;
}

/** The rule and its note, which may begin with the rule. */
function rowRule({ rowRule: rule, rowRuleNote: note }: ModelInfo): string {
  if (rule !== "" && note.startsWith(rule)) return note;
  return [rule || "none", note].filter(Boolean).join(": ");
}

function loaded(info: ModelInfo): string {
  const bytes = info.networkBytes + info.cachedBytes;
  const total = Object.values(info.milliseconds).reduce((sum, each) => sum + each, 0);
  return `${megabytes(bytes)} ${sources(bytes, info.networkBytes)}, in ${seconds(total / 1000)}`;
}

function promise(info: ModelInfo): HTMLElement {
  const exact = info.rowRule !== "";
  const words = exact
    ? "Exact here: each row of the model depends on its text alone, under the row rule found on this machine."
    : "Not exact here: no row rule was found on this machine, so nothing is promised exactly.";
  return make("p", { class: exact ? "promise" : "promise broken" }, make("span", { "aria-hidden": "true" }, exact ? "✓ " : "! "), words);
}

export function showInfo(info: ModelInfo): void {
  const target = info.roles["target"];
  const facts: [string, string][] = [
    ["Model", target ? role(target) : "unknown"],
    ["Draft", draft(info)],
    ["Vocabulary, context", `${count(info.vocabularySize)} tokens, ${count(info.contextLength)} tokens`],
    ["Threads", threads(info)],
    ["Controller", `${CONTROLLERS[info.controller.name]} ${info.controller.version}`],
    ["Runtime", info.runtime],
    ["Row rule", rowRule(info)],
    ["Loaded", loaded(info)],
    ["Bundle", new URL(info.url, location.href).pathname],
    ...info.notes.map((note): [string, string] => ["Note", note]),
  ];
  const list = make("dl", { class: "facts" });
  for (const [name, value] of facts) list.append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  const place = find("info", HTMLElement);
  place.replaceChildren(
    promise(info),
    make("p", { class: "brief note" }, brief(info)),
    make("details", {}, make("summary", {}, "What is running here"), list),
  );
  place.hidden = false;
}

/** The line that is always seen. */
function brief(info: ModelInfo): string {
  const parts = [];
  const target = info.roles["target"];
  const model = info.roles["draft"];
  if (target) parts.push(`${count(target.parameters)} parameters`);
  if (info.draft === "model" && model) parts.push(`draft of ${count(model.parameters)}`);
  else parts.push(info.draft === "none" ? "no draft" : `${info.draft} draft`);
  parts.push(info.threads === 1 ? "1 thread" : `${info.threads} threads`, `controller in ${CONTROLLERS[info.controller.name]}`, info.runtime);
  return parts.join(" · ");
}
