/** How a token came to be, in a sentence. */

import type { Judgement } from "journee-web";
import { apart, probability } from "./format";

/** The verdict on the proposal: "coin 0.310 of q 0.520 is below p 0.600: accepted". */
export function verdict(judgement: Judgement): string {
  const { kind, coin, p, proposalP, proposalQ } = judgement;
  if (proposalP === null || proposalQ === null) {
    const drawn = coin === null ? "the first dart under p" : `coin ${probability(coin)} of 1 falls on it`;
    return `Nothing was left to judge, so it was drawn from p, where it has ${probability(p)}: ${drawn}.`;
  }
  if (coin === null) return darts(kind === "accepted", proposalP, proposalQ);
  const [toss, bar] = apart(coin, proposalP);
  const of = `coin ${toss} of q ${probability(proposalQ)}`;
  if (kind === "accepted") return `${of} < p ${bar}: accepted.`;
  return `${of} ≥ p ${bar}: rejected.`;
}

function darts(kept: boolean, p: number, q: number): string {
  const at = `p ${probability(p)}, q ${probability(q)}`;
  return kept ? `It is the first dart under p as under q (${at}): accepted.` : `It isn't the first dart under p (${at}): rejected.`;
}

/** What happened after a rejection. */
export function recovery(judgement: Judgement): string {
  return judgement.coin === null
    ? "In its place stands the first dart under p."
    : "In its place this token was drawn from the residual max(p − q, 0).";
}
