"""The G-test of the shipped path: real speculative runs of the real models against exact probabilities.

An outcome is the whole text of one run: at most L tokens after a fixed prompt, at temperature 1 under top-k, one seed a
run. The exact probability of each comes from the target's own rows, by plain runs and whole fractions (laws). The
statistic, and the bound on its false alarms, are in concentration; samples of several prompts are tested jointly.

A test that can't fail proves nothing, so the same test is given a controller with a stated mistake (biases):

    power       the share of simulated samples of the mistaken law, which is known exactly, that it flags. The number of
                runs is the smallest at which this reaches POWER; if that takes more than the cap, the check fails
    control     as many real runs of the mistaken controller on the same models. Not flagging them, nor as many again
                with other seeds, fails the check: to a sound bundle that happens once in a million times

RATE bounds the false alarms of all G-tests of a verification together: each gets an equal share, and shares add up. It
takes the draws of different seeds to be independent, which is what Philox is trusted for. The prompts, the bias and the
number of runs are chosen from exact laws and simulations before any real run is made.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.enumeration import LawError, distance
from journee_deploy.language_model import LanguageModel
from journee_deploy.request import Request
from journee_deploy.verification.biases import BIASES, HONEST, Bias
from journee_deploy.verification.check import Figures, Finding
from journee_deploy.verification.concentration import degrees, divergence, false_alarms, threshold
from journee_deploy.verification.effort import GTest
from journee_deploy.verification.laws import BundlePlaces, Shape, Text, plain, text_law
from journee_deploy.verification.models import PROMPTS, Models

RATE = 1e-6
POWER = 0.999
SIMULATIONS = 2000
STEPS = (50, 75, 100, 150, 200, 300, 400, 600, 800, 1200, 1600, 2400, 3200, 4000)

Law = dict[Text, Fraction]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Experiment:
    """One prompt: the exact law of its texts, and their law under each bias."""

    prompt: Text
    exact: Law
    biased: dict[str, Law]

    def shift(self, bias: Bias) -> Fraction:
        """TV between the biased law and the exact one."""
        return distance(self.biased[bias.__name__], self.exact)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run: `runs` a prompt; the sample is flagged if the sum of statistics reaches `limit`."""

    experiments: tuple[Experiment, ...]
    bias: Bias
    degrees: int
    limit: float
    runs: int
    power: float


def sampling_finding(models: Models, rule: str, size: GTest, seed: int, rate: float = RATE) -> Finding:
    """One G-test of one rule, with a false-alarm rate of at most `rate`."""
    plan = make_plan(models, rule, size, seed, rate)
    figures = describe(plan, models, size)
    if plan.power < POWER:
        return Finding(False, _blind(plan), figures)
    honest = statistic(models.lm(), plan, rule, size, seed)
    control, tries = _control(models.lm(rule=plan.bias), plan, rule, size, seed)
    figures |= {"statistic": _finite(honest), "control": _finite(control), "control_tries": tries}
    return Finding(honest < plan.limit <= control, _sentence(plan, honest, control), figures)


def make_plan(models: Models, rule: str, size: GTest, seed: int, rate: float = RATE) -> Plan:
    """The first bias that can be seen with the runs allowed, the prompts in which it shows most, and how many runs."""
    experiments = [experiment(models, rule, text, size) for text in PROMPTS]
    plans: list[Plan] = []
    for bias in BIASES[rule]:
        plans.append(_against(bias, experiments, size, seed, rate))
        if plans[-1].power >= POWER:
            return plans[-1]
    return max(plans, key=lambda plan: plan.power)


def _against(bias: Bias, experiments: list[Experiment], size: GTest, seed: int, rate: float) -> Plan:
    chosen = tuple(sorted(experiments, key=lambda one: one.shift(bias), reverse=True)[: size.prompts])
    d = sum(degrees(one.exact) for one in chosen)
    limit = threshold(d, rate)
    runs, power = 0, 0.0
    for runs in (step for step in STEPS if step <= size.cap):
        power = power_of(chosen, bias, runs, limit, seed)
        if power >= POWER:
            break
    return Plan(chosen, bias, d, limit, runs, power)


def experiment(models: Models, rule: str, text: str, size: GTest) -> Experiment:
    """The laws after one prompt. The shipped rule's kernel must give the target's law, as an equality of fractions."""
    prompt = models.prompt(text, size.limit)
    draft = models.lm().drafting(Request())
    places = BundlePlaces(models, draft, prompt, Sampling(top_k=size.top_k))
    shape = Shape(size.limit, size.length, models.ends)
    exact = text_law(places, shape, plain)
    if text_law(places, shape, HONEST[rule][1]) != exact:
        raise LawError(f"the law of rule {rule} on these rows is not the target's; its kernel is wrong")
    return Experiment(prompt, exact, {bias.__name__: text_law(places, shape, bias.kernel) for bias in BIASES[rule]})


def power_of(experiments: tuple[Experiment, ...], bias: Bias, runs: int, limit: float, seed: int) -> float:
    """The share of SIMULATIONS samples of the biased laws that reach the limit."""
    generator = np.random.default_rng([seed, runs])
    total = np.zeros(SIMULATIONS)
    for one in experiments:
        total += _simulated(one.exact, one.biased[bias.__name__], runs, generator)
    return float(np.mean(total >= limit))


def _simulated(exact: Law, biased: Law, runs: int, generator: np.random.Generator) -> Floats:
    """n KL(shares || exact) of each simulated sample of the biased law."""
    outcomes = sorted(biased)
    weights = np.array([float(biased[outcome]) for outcome in outcomes])
    counts = generator.multinomial(runs, weights / weights.sum(), size=SIMULATIONS).astype(np.float64)
    expected = np.array([runs * float(exact.get(outcome, 0)) for outcome in outcomes])
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(counts > 0, counts * np.log(counts / expected), 0.0)
    found: Floats = terms.sum(axis=1)
    return found


def _control(lm: LanguageModel, plan: Plan, rule: str, size: GTest, seed: int) -> tuple[float, int]:
    """The statistic of the mistaken controller, and how many times it was asked: once more if it shows nothing."""
    for tries in (1, 2):
        control = statistic(lm, plan, rule, size, seed + (tries - 1) * plan.runs)
        if control >= plan.limit:
            break
    return control, tries


def statistic(lm: LanguageModel, plan: Plan, rule: str, size: GTest, seed: int) -> float:
    """The sum over prompts of n KL, from real runs: run i has seed + i, and each prompt a sample number of its own."""
    total = 0.0
    for number, one in enumerate(plan.experiments):
        counts: Counter[Text] = Counter()
        for run in range(plan.runs):
            counts[_text(lm, one.prompt, rule, size, seed + run, number)] += 1
        total += divergence(counts, one.exact)
    return total


def _text(lm: LanguageModel, prompt: Text, rule: str, size: GTest, seed: int, sample: int) -> Text:
    text = lm.generate(
        prompt,
        max_new_tokens=size.limit,
        top_k=size.top_k,
        speculation_length=size.length,
        rule=rule,
        seed=seed % (1 << 64),
        sample=sample,
    )
    return tuple(text.tokens)


def describe(plan: Plan, models: Models, size: GTest) -> Figures:
    """The plan's figures: all that was fixed before a run was made."""
    return {
        "draft": models.kind,
        "prompts": len(plan.experiments),
        "limit": size.limit,
        "top_k": size.top_k,
        "speculation_length": size.length,
        "cells": [len(one.exact) for one in plan.experiments],
        "degrees": plan.degrees,
        "threshold": plan.limit,
        "false_alarms": false_alarms(plan.limit, plan.degrees),
        "runs": plan.runs * len(plan.experiments),
        "runs_cap": size.cap * len(plan.experiments),
        "bias": plan.bias.sentence,
        "bias_tv": [float(one.shift(plan.bias)) for one in plan.experiments],
        "power": plan.power,
        "simulations": SIMULATIONS,
    }


def _finite(value: float) -> float | str:
    """JSON has no infinity."""
    return value if math.isfinite(value) else "infinite: a text of probability 0 occurred"


def _sentence(plan: Plan, honest: float, control: float) -> str:
    cells = " + ".join(str(len(one.exact)) for one in plan.experiments)
    shift = ", ".join(f"{float(one.shift(plan.bias)):.3f}" for one in plan.experiments)
    rate = false_alarms(plan.limit, plan.degrees)
    return (
        f"n KL = {honest:.1f} over {plan.runs * len(plan.experiments)} runs and {cells} texts; threshold "
        f"{plan.limit:.1f} for false alarms of at most {rate:.1e}; power {plan.power:.4f} against "
        f"'{plan.bias.sentence}' (TV {shift}); that mistake made on purpose gives {control:.1f}"
        + ("" if control >= plan.limit else ", which was NOT flagged")
        + ("" if honest < plan.limit else ": the texts do NOT have the target's law")
    )


def _blind(plan: Plan) -> str:
    return (
        f"can't see: {plan.runs} runs a prompt, the most allowed, have power {plan.power:.3f} against "
        f"'{plan.bias.sentence}', wanted {POWER}; try --thorough, or --draft uniform, whose mistakes show most"
    )
