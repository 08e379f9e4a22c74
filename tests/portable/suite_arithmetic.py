"""The plain arithmetic against what NumPy gave, recorded as whole numbers, in any Python: asserts only.

Decimal literals are not read alike everywhere, and whole numbers above 2^53 do not compare with floats; so numbers are
recorded as (m, e) for m * 2^e, and distributions as units of 2^-50.
"""

from __future__ import annotations

from journee_deploy.arithmetic import exponential as constants
from journee_deploy.arithmetic.arena import EMPTY, LogitsError
from journee_deploy.arithmetic.plain import PlainOps, exponential
from journee_deploy.arithmetic.sampling import LARGEST, Sampling, SamplingError
from journee_deploy.arithmetic.units import SCALE
from tests.portable import recorded
from tests.portable.toys import refusal

INFINITY = float("inf")


def number(pair):
    if pair is None:
        return -INFINITY
    m, e = pair
    return float(m * (1 << e)) if e >= 0 else m / (1 << -e)


def sampling(options):
    changes = {}
    for name, value in sorted(options.items()):
        if name == "logit_bias":
            changes[name] = {token: number(amount) for token, amount in value}
        elif name in ("top_k", "min_new_tokens"):
            changes[name] = value
        else:
            changes[name] = number(value)
    return Sampling(**changes)


def units(vector):
    return [int(value * SCALE) for value in vector]


def test_constants():
    """Against the recorded m * 2^e of each, so that from_bits is right in this interpreter."""
    ours = [constants.LOG2E, constants.LN2_HIGH, constants.LN2_LOW]
    ours += constants.COEFFICIENTS
    assert ours == [number(pair) for pair in recorded.CONSTANTS]
    assert constants.POWERS[53] * (1 << 53) == 1.0
    assert number((16777215, 104)) == LARGEST


def test_exponential():
    for z, value in recorded.EXPONENTIALS:
        assert exponential(number(z)) == number(value)


def test_recorded_distributions():
    for size, logits, options, prompt, generated, ends, wanted in recorded.DISTRIBUTIONS:
        ops = PlainOps(list(prompt), size, sampling(options), ends)
        for token in generated:
            ops.push(token)
        row = [number(logit) for logit in logits]
        handle = ops.distribution(ops.hold("draft", len(ops.history), [row]))
        if wanted is None:
            assert handle == EMPTY
        else:
            assert units(ops.vector(handle)) == list(wanted)
            assert ops.total(handle) == 1.0


def test_residuals_and_locate():
    for first, second in zip(recorded.DISTRIBUTIONS, recorded.DISTRIBUTIONS[1:]):
        if first[0] != second[0] or first[6] is None or second[6] is None:
            continue
        ops = PlainOps([0], first[0], Sampling())
        p = ops.keep([count / (1 << 50) for count in first[6]])
        q = ops.keep([count / (1 << 50) for count in second[6]])
        left = units(ops.vector(ops.residual(p, q)))
        kept = [min(a, b) for a, b in zip(first[6], second[6])]
        assert [a + b for a, b in zip(left, kept)] == list(first[6])
        assert int(ops.overlap(p, q) * SCALE) == sum(kept)
        reached = 0
        for token, count in enumerate(first[6]):
            if count:
                assert ops.locate(p, reached / (1 << 50)) == token
                assert ops.locate(p, (reached + count - 1) / (1 << 50)) == token
            reached += count


def test_top_orders_ties_by_index():
    ops = PlainOps([0], 6, Sampling())
    handle = ops.uniform()
    ops.keep([0.25, 0.125, 0.25, 0.125, 0.25, 0.0])
    assert [token for token, _ in ops.top(handle + 1, 6)] == [0, 2, 4, 1, 3, 5]


def test_broken_logits():
    for bad in (INFINITY, float("nan")):
        ops = PlainOps([0], 2, Sampling())
        row = ops.hold("target", 7, [[0.0, bad]])
        said = refusal(LogitsError, lambda ops=ops, row=row: ops.distribution(row))
        assert "target logits at position 7: token 1 is" in said


def test_options_out_of_range():
    wrong = [("temperature", -1.0), ("top_k", -1), ("top_k", 1.5), ("top_p", 0.0), ("min_p", 2.0)]
    wrong += [("repetition_penalty", 0.0), ("presence_penalty", INFINITY), ("logit_bias", {0: float("nan")})]
    for name, value in wrong:
        assert name in refusal(SamplingError, lambda name=name, value=value: Sampling(**{name: value}))
