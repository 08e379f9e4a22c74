"""Mistakes as data: what design section 9 lists, made in the shipped code, each with the test that must see it.

A row is one mistake in one place. `edits` are (exact source text, what to put there); each text stands in its file
exactly once. `killer` is the test that must fail. A new mutant is one more row.
"""

from __future__ import annotations

from typing import NamedTuple

Edits = tuple[tuple[str, str], ...]


class Mutant(NamedTuple):
    """One mistake.

    name      a word for tables and test ids
    mistake   the item of design section 9, or what else is promised
    part      whose work it is
    file      where it is made
    edits     how
    killer    the test that must fail: file::name, of any parameters
    """

    name: str
    mistake: str
    part: str
    file: str
    edits: Edits
    killer: str


SPECULATE = "journee_deploy/controller/speculate.py"
RESIDUAL = "journee_deploy/controller/residual.py"
COUPLED = "journee_deploy/controller/coupled.py"
CHANCE = "journee_deploy/controller/chance.py"
PHILOX = "journee_deploy/controller/philox.py"
DARTS = "journee_deploy/controller/darts.py"
DRAFTS = "journee_deploy/controller/drafts.py"
CACHES = "journee_deploy/controller/caches.py"
STOPS = "journee_deploy/controller/stops.py"
PACE = "journee_deploy/controller/pace.py"
COSTS = "journee_deploy/costs.py"
PLAIN = "journee_deploy/arithmetic/plain.py"
VECTORS = "journee_deploy/arithmetic/vectors.py"
VECTOR_STEPS = "journee_deploy/arithmetic/vector_steps.py"
ARENA = "journee_deploy/arithmetic/arena.py"
HISTORY = "journee_deploy/arithmetic/history.py"
MODEL = "journee_deploy/language_model.py"
RUNNER = "journee_deploy/slot_runner.py"
SLOTS = "journee_deploy/slots.py"
ENGINE = "journee_deploy/engine.py"
TEXT = "journee_deploy/text.py"
ONNX = "runtimes/journee_runtimes/onnx.py"
BUNDLE = "journee_deploy/bundle.py"
ENUMERATION = "journee_deploy/enumeration.py"
SHARED = "runtimes/journee_runtimes/shared.py"
SHARED_GRAPH = "export/journee_export/shared_cache.py"
FOREIGN = "journee/hugging_face/decoder.py"

BUFFERS = "tests/runtime/test_shared.py"
FOREIGN_TESTS = "tests/export/test_hugging_face.py"

TOYS = "tests/test_exactness.py::test_the_named_toys_are_exact"
RULE = "tests/controller/test_chance.py::test_the_rule_emits_p_and_accepts_exactly_the_overlap"
PACES = "tests/controller/test_pace.py"
CASES = "tests/conformance/test_hosts.py::test_the_python_host_conforms"
DARTS_BOTH = "tests/controller/test_darts.py::test_both_hosts_throw_the_specified_dart"
SAME = "tests/controller/test_coupled.py::test_the_text_of_a_seed_is_the_same_with_any_draft_and_any_length"

Q_DIFFERS = "q reported differs from q sampled (temperature, dtype, truncation)"
GREEDY = "greedy draft scored with a softmax q"
FROM_P = "resampling from p instead of the residual"
WRONG_ROW = "residual of the wrong row"
ZERO = "`u <= p/q` with u = 0 accepting a zero-probability token"
INVERTED = "ratio inverted"
COARSE = "uniform from a coarse grid"
TWICE = "a draw used twice (counter without the round)"
THROWN = "drafted token thrown away after seeing it"
LEFT = "sum of the weights taken left to right"
PENALTIES = "penalties frozen at the start of the round, or a token counted twice"
BONUS_ONLY = "truncation on the bonus row only"
MIN_P = "min-p ignored"
AFTER_END = "tokens after an accepted end-of-sequence emitted or counted"
HIDING = "length limit hiding an earlier stop"
TRIM = "a cache trim that silently does nothing"
PADDING = "padding leaking into the cache"
ONE_STREAM = "one random stream shared by all requests"
FALLBACK = "silent fallback from CUDA to CPU"
DOWNLOAD = "a partial download poisoning a cache"
DART = "not on the list: the darts of rule coupled"
OTHER = "not on the list"

ABSENT = {
    DOWNLOAD: "only pages download, and web/tests/delivery damages that; here, a bundle with such a file is refused",
}

SIGNATURE = (
    "    def propose(self, q: int, position: int, number: int, chance: ChanceLike) -> tuple[int, float | None]:\n"
)
PICKED = "        return chance.pick(q, (PROPOSE, position, number))\n"
ACCEPT = (
    "        coin = self._draws.below(self._whole(q), key)\n        return coin < self._whole(p), coin / self._units\n"
)
DRAWN = "        coin = self._draws.below(self._whole(self._ops.total(handle)), key) / self._units\n"
PROPOSED = "            token, _ = self.rule.propose(q, position, current.number, self.chance)\n"
APPENDED = "            current.proposals.append(token)\n"
KEPT_Q = "            current.distributions.append(q)\n"
DISTRIBUTED = "        vector = self._distribute(role, position, logits)\n"

MUTANTS = [
    Mutant(
        "q-of-equal-chances",
        Q_DIFFERS,
        "controller",
        SPECULATE,
        ((KEPT_Q, "            current.distributions.append(self.ops.uniform())\n"),),
        TOYS,
    ),
    Mutant(
        "q-in-a-coarser-dtype",
        Q_DIFFERS,
        "chance",
        CHANCE,
        ((ACCEPT, ACCEPT.replace("self._whole(q)", "max(self._whole(q) >> 1 << 1, 1)", 1)),),
        RULE,
    ),
    Mutant(
        "q-sampled-at-another-temperature",
        Q_DIFFERS,
        "controller",
        SPECULATE,
        (
            (
                PROPOSED,
                PROPOSED.replace(
                    "propose(q,",
                    "propose(self.ops.residual(q, self.ops.uniform()) if"
                    " self.ops.total(self.ops.residual(q, self.ops.uniform())) else q,",
                ),
            ),
        ),
        TOYS,
    ),
    Mutant(
        "greedy-draft-softmax-q",
        GREEDY,
        "controller",
        SPECULATE,
        ((PROPOSED, "            token = self.ops.top(q, 1)[0][0]\n"),),
        TOYS,
    ),
    Mutant(
        "recover-from-p",
        FROM_P,
        "rule residual",
        RESIDUAL,
        (("chance.pick(ops.residual(p, q), ", "chance.pick(p, "),),
        TOYS,
    ),
    Mutant(
        "residual-turned-round",
        WRONG_ROW,
        "rule residual",
        RESIDUAL,
        (("ops.residual(p, q)", "(ops.residual(q, p) if ops.total(ops.residual(q, p)) else p)"),),
        TOYS,
    ),
    Mutant(
        "q-of-the-first-proposal",
        WRONG_ROW,
        "controller",
        SPECULATE,
        (("            q = current.distributions[i]\n", "            q = current.distributions[0]\n"),),
        TOYS,
    ),
    Mutant(
        "p-of-the-next-row",
        WRONG_ROW,
        "controller",
        SPECULATE,
        (
            (
                "            p = self.ops.distribution(first + i)\n            position",
                "            p = self.ops.distribution(first + i + 1)\n            position",
            ),
        ),
        TOYS,
    ),
    Mutant(
        "coin-equal-to-p",
        ZERO,
        "chance",
        CHANCE,
        (("return coin < self._whole(p)", "return coin <= self._whole(p)"),),
        "tests/controller/test_chance.py::test_a_zero_is_never_accepted_and_a_larger_p_always",
    ),
    Mutant(
        "ratio-inverted",
        INVERTED,
        "chance",
        CHANCE,
        (
            (
                ACCEPT,
                ACCEPT.replace("self._whole(q)", "max(self._whole(p), 1)").replace(
                    "< self._whole(p)", "< self._whole(q)"
                ),
            ),
        ),
        RULE,
    ),
    Mutant(
        "verdict-inverted",
        INVERTED,
        "chance",
        CHANCE,
        (("return coin < self._whole(p)", "return coin >= self._whole(p)"),),
        RULE,
    ),
    Mutant(
        "coarse-coin",
        COARSE,
        "chance",
        CHANCE,
        (
            (
                ACCEPT,
                ACCEPT.replace(
                    "self._draws.below(self._whole(q), key)", "self._draws.below(1 << 24, key) * self._whole(q) >> 24"
                ),
            ),
        ),
        RULE,
    ),
    Mutant(
        "coarse-pick",
        COARSE,
        "chance",
        CHANCE,
        (
            (
                DRAWN,
                "        total = self._whole(self._ops.total(handle))\n"
                "        coin = (self._draws.below(1 << 24, key) * total >> 24) / self._units\n",
            ),
        ),
        "tests/controller/test_chance.py::test_the_bonus_is_p",
    ),
    Mutant(
        "remainder-instead-of-a-redraw",
        COARSE,
        "draws",
        PHILOX,
        (("        if value < n:\n            return value\n", "        return value % n\n"),),
        "tests/controller/test_philox.py::test_every_sequence_of_small_words_gives_every_value_equally_often",
    ),
    Mutant(
        "proposals-without-the-round",
        TWICE,
        "rule residual",
        RESIDUAL,
        ((PICKED, PICKED.replace("number))", "0))")),),
        TOYS,
    ),
    Mutant(
        "one-purpose-for-two-draws",
        TWICE,
        "rule residual",
        RESIDUAL,
        (("(RECOVER, position, number)", "(JUDGE, position, number)"),),
        TOYS,
    ),
    Mutant(
        "counter-without-the-round",
        TWICE,
        "draws",
        PHILOX,
        (
            (
                "philox((block, position, round_, purpose), self._key)",
                "philox((block, position, 0, purpose), self._key)",
            ),
        ),
        "tests/controller/test_philox.py::test_counters_are_block_position_round_purpose_under_the_samples_key",
    ),
    Mutant(
        "counter-without-the-round-in-numpy",
        TWICE,
        "draws",
        "journee_deploy/draws.py",
        (
            (
                "_sweep(block, position, round_, purpose, self._key)",
                "_sweep(block, position, 0 * round_, purpose, self._key)",
            ),
        ),
        "tests/controller/test_darts.py::test_both_generators_give_the_same_words",
    ),
    Mutant(
        "counter-without-the-block",
        TWICE,
        "draws",
        PHILOX,
        (("            block += 1\n", "            block += 0\n"),),
        "tests/controller/test_philox.py::test_counters_are_block_position_round_purpose_under_the_samples_key",
    ),
    Mutant(
        "repetition-thrown-away",
        THROWN,
        "controller",
        SPECULATE,
        ((APPENDED, "            if token in current.proposals:\n                return\n" + APPENDED),),
        TOYS,
    ),
    Mutant(
        "drawn-again-if-disliked",
        THROWN,
        "rule residual",
        RESIDUAL,
        (
            (
                PICKED,
                "        token, coin = chance.pick(q, (PROPOSE, position, number))\n"
                "        return (token, coin) if token else chance.pick(q, (9, position, number))\n",
            ),
        ),
        TOYS,
    ),
    Mutant(
        "sum-left-to-right",
        LEFT,
        "arithmetic",
        PLAIN,
        (("        h = float(int(value / HALF))\n", "        h = 0.0\n"),),
        "tests/arithmetic/test_distribution.py::test_normalising_divides_by_the_sum_rounded_once",
    ),
    Mutant(
        "sum-in-one-go-in-numpy",
        LEFT,
        "arithmetic",
        VECTOR_STEPS,
        (
            (
                "    total = float(np.add.reduce(k))\n    if total < EXACT:\n",
                "    total = float(k.cumsum()[-1])\n    if total:\n",
            ),
        ),
        "tests/arithmetic/test_distribution.py::test_normalising_divides_by_the_sum_rounded_once",
    ),
    Mutant(
        "penalties-frozen-while-judging",
        PENALTIES,
        "controller",
        SPECULATE,
        (
            (
                "self._judgement(token, kind, coin, row, p, q, proposal))\n        self.ops.push(token)\n",
                "self._judgement(token, kind, coin, row, p, q, proposal))\n",
            ),
            (
                "        self.text += current.tokens\n",
                "        self.text += current.tokens\n        [self.ops.push(token) for token in current.tokens]\n",
            ),
        ),
        TOYS,
    ),
    Mutant(
        "penalties-frozen-while-drafting",
        PENALTIES,
        "controller",
        SPECULATE,
        ((KEPT_Q + "            self.ops.push(token)\n", KEPT_Q),),
        CASES,
    ),
    Mutant(
        "proposals-counted-twice",
        PENALTIES,
        "controller",
        SPECULATE,
        (
            (
                "        yield from self._propose(current)\n        self.ops.truncate(len(self.text))\n",
                "        yield from self._propose(current)\n",
            ),
        ),
        TOYS,
    ),
    Mutant(
        "counts-left-behind",
        PENALTIES,
        "arithmetic",
        HISTORY,
        (("                self.counts[token] -= 1\n", "                pass\n"),),
        "tests/arithmetic/test_options.py::test_a_history_is_what_its_pushes_and_truncations_leave",
    ),
    Mutant(
        "truncation-on-the-bonus-row-only",
        BONUS_ONLY,
        "arithmetic",
        ARENA,
        (
            (
                DISTRIBUTED,
                "        whole = self.sampling\n"
                '        if role == "target" and row + 1 < len(self._rows):\n'
                "            self.sampling = Sampling(temperature=whole.temperature)\n"
                + DISTRIBUTED
                + "        self.sampling = whole\n",
            ),
        ),
        "tests/test_exactness.py::test_truncation_and_penalties",
    ),
    Mutant(
        "min-p-ignored",
        MIN_P,
        "arithmetic",
        PLAIN,
        (("[value if value >= least * SCALE else 0.0 for value in k]", "list(k)"),),
        "tests/arithmetic/test_options.py::test_min_p_is_relative_to_the_best_and_includes_equality",
    ),
    Mutant(
        "min-p-ignored-in-numpy",
        MIN_P,
        "arithmetic",
        VECTOR_STEPS,
        (
            ("    if sampling.min_p > 0.0:\n", "    if sampling.min_p > 1.0:\n"),
            ("    if sampling.min_p == 0.0 or", "    if sampling.min_p <= 1.0 or"),
        ),
        CASES,
    ),
    Mutant(
        "min-p-strict",
        MIN_P,
        "arithmetic",
        PLAIN,
        (("value >= least * SCALE", "value > least * SCALE"),),
        "tests/arithmetic/test_options.py::test_min_p_is_relative_to_the_best_and_includes_equality",
    ),
    Mutant(
        "emitted-after-an-end",
        AFTER_END,
        "stops",
        STOPS,
        (("                return count, reason\n", "                return len(new), reason\n"),),
        "tests/controller/test_stops.py::test_the_earliest_wins",
    ),
    Mutant(
        "judged-and-counted-after-an-end",
        AFTER_END,
        "controller",
        SPECULATE,
        (
            ("            if not kept or current.reason:\n", "            if not kept:\n"),
            ("        _, current.reason = ", "        current.reason = current.reason or "),
            ("self.stops.cut(self.generated, [token])\n", "self.stops.cut(self.generated, [token])[1]\n"),
        ),
        "tests/controller/test_speculate.py::test_nothing_after_an_accepted_end_is_emitted_or_counted",
    ),
    Mutant(
        "end-seen-in-accepted-tokens-only-at-the-last",
        AFTER_END,
        "stops",
        STOPS,
        (("        for count in range(1, len(new) + 1):\n", "        for count in range(len(new), len(new) + 1):\n"),),
        "tests/controller/test_stops.py::test_the_earliest_wins",
    ),
    Mutant(
        "length-before-ends",
        HIDING,
        "stops",
        STOPS,
        (
            (
                "        if new[-1] in self._ends:\n",
                "        if len(generated) + len(new) >= self._limit:\n            return self._reason\n"
                "        if new[-1] in self._ends:\n",
            ),
        ),
        "tests/controller/test_stops.py::test_at_one_token_an_end_or_a_stop_goes_before_the_length",
    ),
    Mutant(
        "rewind-keeps-the-later-cache",
        TRIM,
        "runtime",
        RUNNER,
        (("            if held.length == length:\n", "            if held.length >= length > 0:\n"),),
        "tests/runtime/test_slots.py::test_every_step_gives_the_rows_of_its_text",
    ),
    Mutant(
        "tokens-not-forgotten",
        TRIM,
        "runtime",
        RUNNER,
        (("        del self.tokens[length:]\n", ""),),
        "tests/runtime/test_slots.py::test_every_step_gives_the_rows_of_its_text",
    ),
    Mutant(
        "start-past-the-cache-allowed",
        TRIM,
        "runtime",
        SLOTS,
        (("        if not 0 <= step.start <= held:\n", "        if not 0 <= step.start:\n"),),
        "tests/runtime/test_slots.py::test_unsound_steps_are_refused_and_change_nothing",
    ),
    Mutant(
        "rejected-proposals-counted-as-cached",
        TRIM,
        "controller",
        CACHES,
        (("min(self._written[role], length)", "self._written[role]"),),
        "tests/controller/test_caches.py::test_the_invariant_holds_at_every_yield_and_after_every_close",
    ),
    Mutant(
        "caches-not-lowered-before-a-run",
        TRIM,
        "controller",
        CACHES,
        (("min(self.valid(role), length)", "self.valid(role)"),),
        "tests/controller/test_caches.py::test_a_text_whose_end_was_accepted_can_be_taken_up_again",
    ),
    Mutant(
        "proposals-behind-the-end-counted-as-cached",
        TRIM,
        "controller",
        SPECULATE,
        (
            (
                "self.caches.decide(len(self.text) + current.accepted)",
                "self.caches.decide(len(self.text) + (len(current.proposals) if current.reason else current.accepted))",
            ),
        ),
        "tests/controller/test_caches.py::test_a_text_whose_end_was_accepted_can_be_taken_up_again",
    ),
    Mutant(
        "padding-taken-for-tokens",
        PADDING,
        "runtime",
        RUNNER,
        (("        slot.advance(tokens, cache, total)\n", "        slot.advance(tokens, cache, piece.end)\n"),),
        "tests/runtime/test_slots.py::test_every_step_gives_the_rows_of_its_text",
    ),
    Mutant(
        "padding-not-masked",
        PADDING,
        "runtime",
        RUNNER,
        (("np.array([1, 0], np.int64)", "np.array([1, 1], np.int64)"),),
        "tests/runtime/test_slots.py::test_counters_and_masks_tell_padding_from_rows_asked_for",
    ),
    Mutant(
        "rows-of-the-padding-given",
        PADDING,
        "runtime",
        RUNNER,
        (("        return rows[last - piece.take : last]\n", "        return rows[len(rows) - piece.take :]\n"),),
        "tests/runtime/test_slots.py::test_every_step_gives_the_rows_of_its_text",
    ),
    Mutant(
        "samples-of-a-seed-alike",
        ONE_STREAM,
        "draws",
        PHILOX,
        (("philox((sample, 0, 0, WORD)", "philox((0, 0, 0, WORD)"),),
        "tests/controller/test_philox.py::test_draws_are_functions_of_seed_sample_and_key",
    ),
    Mutant(
        "sample-not-passed-on",
        ONE_STREAM,
        "engine",
        MODEL,
        (("VectorPhilox(seed, request.sample)", "VectorPhilox(seed)"),),
        "tests/engine/test_language_model.py::test_a_seed_gives_the_same_text_again_and_samples_differ",
    ),
    Mutant(
        "one-seed-for-all",
        ONE_STREAM,
        "engine",
        MODEL,
        (("secrets.randbits(64) if request.seed is None", "0 if request.seed is None"),),
        "tests/engine/test_language_model.py::test_without_a_seed_one_is_drawn_and_told",
    ),
    Mutant(
        "one-slot-for-all",
        ONE_STREAM,
        "engine",
        ENGINE,
        (("        slot = next(self._slots)\n", "        slot = 0\n"),),
        "tests/engine/test_language_model.py::test_generations_interleave_and_run_in_threads",
    ),
    Mutant(
        "provider-not-looked-at",
        FALLBACK,
        "runtime",
        ONNX,
        (("    if not found or found[0] != PROVIDERS[provider]:\n", "    if not found:\n"),),
        "tests/runtime/test_onnx.py::test_a_session_elsewhere_than_asked_is_refused",
    ),
    Mutant(
        "cpu-where-there-is-no-cuda",
        FALLBACK,
        "runtime",
        ONNX,
        (("        if provider in self.providers():\n", '        if provider in (*self.providers(), "cuda"):\n'),),
        "tests/runtime/test_refusals.py::test_cuda_where_there_is_none_says_what_to_install",
    ),
    Mutant(
        "sizes-not-compared",
        DOWNLOAD,
        "bundle",
        BUNDLE,
        (("        if size != record.size:\n", "        if size > record.size:\n"),),
        "tests/bundle/test_refusals.py::test_a_truncated_file_names_both_sizes",
    ),
    Mutant(
        "hashes-not-compared",
        DOWNLOAD,
        "bundle",
        BUNDLE,
        (("!= record.sha256:", "== '':"),),
        "tests/bundle/test_refusals.py::test_a_flipped_bit_names_both_hashes",
    ),
    Mutant(
        "darts-of-a-round",
        DART,
        "rule coupled",
        COUPLED,
        (
            (
                "        return chance.first_dart(q, position)[0], None\n",
                "        return chance.first_dart(q, position + number)[0], None\n",
            ),
        ),
        "tests/controller/test_coupled.py::test_a_draft_equal_to_the_target_is_always_right_and_a_sure_draft_sometimes",
    ),
    Mutant(
        "target-darts-of-a-round",
        DART,
        "rule coupled",
        COUPLED,
        (
            (
                "        token, _ = chance.first_dart(p, position)\n",
                "        token, _ = chance.first_dart(p, position + number)\n",
            ),
        ),
        SAME,
    ),
    Mutant(
        "draft-decides",
        DART,
        "rule coupled",
        COUPLED,
        (("        return token, token == proposal, None\n", "        return proposal, True, None\n"),),
        SAME,
    ),
    Mutant(
        "ties-won-by-the-first-box",
        DART,
        "darts",
        DARTS,
        (("                    found = -1\n", "                    pass\n"),),
        "tests/controller/test_darts.py::test_a_tie_of_the_earliest_drops_the_window_and_a_later_tie_does_not",
    ),
    Mutant(
        "floor-ignored",
        DART,
        "darts",
        DARTS,
        (("            if ground <= height < curve(token):\n", "            if height < curve(token):\n"),),
        "tests/controller/test_darts.py::test_a_dart_above_the_curve_or_below_the_floor_does_not_count",
    ),
    Mutant(
        "curve-touched-counts",
        DART,
        "darts",
        DARTS,
        (("            if ground <= height < curve(token):\n", "            if ground <= height <= curve(token):\n"),),
        "tests/controller/test_darts.py::test_a_dart_above_the_curve_or_below_the_floor_does_not_count",
    ),
    Mutant(
        "poisson-guard-strict",
        DART,
        "darts",
        DARTS,
        (("        elif i >= guard:\n", "        elif i > guard:\n"),),
        "tests/controller/test_darts.py::test_the_number_of_darts_has_the_poisson_law",
    ),
    Mutant(
        "later-dart-wins",
        DART,
        "darts",
        DARTS,
        (("time < first:", "time > first:"),),
        "tests/controller/test_darts.py::test_the_earliest_hit_wins_whatever_the_order_of_boxes",
    ),
    Mutant(
        "same-darts-in-every-window",
        DART,
        "chance",
        CHANCE,
        (("box << 8, position, window)", "box << 8, position, window // 2)"),),
        DARTS_BOTH,
    ),
    Mutant(
        "lowest-tier-never-opened",
        DART,
        "arithmetic",
        PLAIN,
        (("        for tier, width in enumerate(WIDTHS):\n", "        for tier, width in enumerate(WIDTHS[:-1]):\n"),),
        "tests/controller/test_darts.py::test_both_hosts_open_the_same_boxes",
    ),
    Mutant(
        "boxes-at-the-floor-in-numpy",
        DART,
        "arithmetic",
        VECTORS,
        (("np.flatnonzero(tallest > floor(tier))", "np.flatnonzero(tallest > floor(tier) * 2)"),),
        "tests/controller/test_darts.py::test_both_hosts_open_the_same_boxes",
    ),
    Mutant(
        "ngram-looks-ahead",
        OTHER,
        "draft",
        DRAFTS,
        (("            if n > best:\n", "            if n >= best > 0:\n"),),
        "tests/controller/test_ngram.py::test_it_proposes_what_followed_the_latest_longest_match",
    ),
    Mutant(
        "ngram-of-three-tokens",
        OTHER,
        "draft",
        DRAFTS,
        (("most: int = 4", "most: int = 3"),),
        CASES,
    ),
    Mutant(
        "top-p-past-the-mass",
        OTHER,
        "arithmetic",
        PLAIN,
        (("        if before >= mass:\n", "        if before > mass:\n"),),
        CASES,
    ),
    Mutant(
        "frequency-subtracted-time-by-time",
        OTHER,
        "arithmetic",
        PLAIN,
        (
            (
                "            x[token] = x[token] - sampling.frequency_penalty * history.counts[token]\n",
                "            for _ in range(history.counts[token]):\n"
                "                x[token] = x[token] - sampling.frequency_penalty\n",
            ),
        ),
        CASES,
    ),
    Mutant(
        "stop-sequences-of-two-tokens",
        OTHER,
        "stops",
        STOPS,
        (("generated[-self._longest :] + new", "generated[-1:] + new"),),
        CASES,
    ),
    Mutant(
        "round-counted-by-tokens",
        TWICE,
        "controller",
        SPECULATE,
        (("_Round(len(self.history), len(self.text)", "_Round(len(self.generated), len(self.text)"),),
        CASES,
    ),
    Mutant(
        "top-k-breaks-ties",
        OTHER,
        "arithmetic",
        PLAIN,
        (("    return [value >= least for value in x]\n", "    return [value > least for value in x]\n"),),
        "tests/arithmetic/test_options.py::test_top_k_keeps_ties",
    ),
    Mutant(
        "reciprocal-temperature",
        OTHER,
        "arithmetic",
        VECTOR_STEPS,
        (("        z /= sampling.temperature\n", "        z *= 1 / sampling.temperature\n"),),
        "tests/arithmetic/test_distribution.py::test_the_code_does_what_the_document_says",
    ),
    Mutant(
        "rounded-sums-taken-for-exact",
        OTHER,
        "arithmetic",
        VECTOR_STEPS,
        (("    if total < EXACT:\n", "    if total < 2 * EXACT:\n"),),
        "tests/arithmetic/test_vector_paths.py::test_a_sum_about_the_largest_exact_one",
    ),
    Mutant(
        "min-p-without-its-margin",
        OTHER,
        "arithmetic",
        VECTOR_STEPS,
        (("math.log(sampling.min_p) - 1e-9", "math.log(sampling.min_p) + 1e-9"),),
        "tests/arithmetic/test_vector_paths.py::test_min_p_leaves_out_nothing_that_it_keeps",
    ),
    Mutant(
        "top-p-drops-the-wrong-equals",
        OTHER,
        "arithmetic",
        VECTOR_STEPS,
        (("    if p[best] == least:", "    if p[best] < least:"),),
        "tests/arithmetic/test_vector_paths.py::test_among_equals_top_p_keeps_the_best_token_and_then_the_lowest",
    ),
    Mutant(
        "sums-of-the-round-before",
        OTHER,
        "arithmetic",
        VECTORS,
        (("        self._running.clear()\n", ""),),
        "tests/arithmetic/test_vector_paths.py::test_ops_used_over_many_rounds_give_what_new_ones_give",
    ),
    Mutant(
        "shown-vectors-overwritten",
        OTHER,
        "arithmetic",
        VECTORS,
        (("        self._lent = [vector for vector in self._lent if vector is not held]\n", ""),),
        "tests/arithmetic/test_vector_paths.py::test_a_vector_that_was_shown_is_never_overwritten",
    ),
    Mutant(
        "vectors-overwritten-in-their-round",
        OTHER,
        "arithmetic",
        VECTORS,
        (("self._spare.pop() if self._spare", "self._spare[-1] if self._spare"),),
        "tests/arithmetic/test_vector_paths.py::test_live_vectors_share_no_memory",
    ),
    Mutant(
        "chance-that-branches-afresh",
        OTHER,
        "enumeration",
        ENUMERATION,
        (("        self._intervals[key] = (a, b)\n", ""),),
        "tests/test_exactness.py::test_the_enumerator_refines_one_number_a_key",
    ),
    Mutant(
        "darts-that-forget",
        OTHER,
        "enumeration",
        ENUMERATION,
        (("        dart.covered = covered\n", ""),),
        "tests/test_exactness.py::test_the_darts_of_a_position_are_one_process",
    ),
    Mutant(
        "stop-strings-leak",
        OTHER,
        "text",
        TEXT,
        (
            (
                "                return start\n        return len(text)\n",
                "                return len(text)\n        return len(text)\n",
            ),
        ),
        "tests/engine/test_text.py::test_the_text_ends_where_a_stop_string_begins_and_never_leaks_it",
    ),
    Mutant(
        "pace-that-takes-back-what-it-saw",
        THROWN,
        "pace",
        PACE,
        (
            (
                "        return True\n\n    def cost(",
                "        if drafted[-1] == 0:\n            drafted.pop()\n        return True\n\n    def cost(",
            ),
        ),
        TOYS,
    ),
    Mutant(
        "pace-that-remembers-another-history",
        OTHER,
        "pace",
        PACE,
        (
            (
                "        if history[: len(self._seen)] != self._seen:\n",
                "        if len(history) < len(self._seen):\n",
            ),
        ),
        f"{PACES}::test_the_same_history_gives_the_same_length_in_any_order",
    ),
    Mutant(
        "pace-that-counts-no-rejection",
        OTHER,
        "pace",
        PACE,
        (("        for i in range(min(accepted + 1, proposed)):\n", "        for i in range(accepted):\n"),),
        f"{PACES}::test_a_useless_draft_costs_next_to_nothing",
    ),
    Mutant(
        "pauses-that-do-not-double",
        OTHER,
        "pace",
        PACE,
        (("min(2 * self._pause, LONGEST)", "min(self._pause, LONGEST)"),),
        f"{PACES}::test_pauses_double_up_to_the_longest",
    ),
    Mutant(
        "history-of-what-was-asked-for",
        OTHER,
        "controller",
        SPECULATE,
        (
            (
                "self.history.append((len(current.proposals), current.accepted))",
                "self.history.append((current.length, current.accepted))",
            ),
        ),
        f"{PACES}::test_the_controller_tells_what_was_proposed_and_accepted",
    ),
    Mutant(
        "proposals-that-cost-their-model-alone",
        OTHER,
        "costs",
        COSTS,
        (("(timings.draft + proposal) / plain", "timings.draft / plain"),),
        "tests/engine/test_costs.py::test_costs_are_the_models_times_in_plain_runs",
    ),
    Mutant(
        "a-buffer-that-forgets-when-it-grows",
        TRIM,
        "shared cache",
        SHARED,
        (("new[:, :, :held] = old[:, :, :held]", "new[:, :, :0] = old[:, :, :0]"),),
        f"{BUFFERS}::test_single_rows_up_to_the_end_of_a_buffer",
    ),
    Mutant(
        "a-buffer-without-room-for-the-padded-row",
        PADDING,
        "shared cache",
        SHARED,
        (("LEAST_ROWS = 2\n", "LEAST_ROWS = 1\n"),),
        f"{BUFFERS}::test_single_rows_up_to_the_end_of_a_buffer",
    ),
    Mutant(
        "logits-bound-for-another-number-of-rows",
        WRONG_ROW,
        "shared cache",
        SHARED,
        (("if buffer.kept != rows or rows > KEPT:", "if not buffer.kept or rows > KEPT:"),),
        f"{BUFFERS}::test_rows_agree_bitwise_under_random_splits",
    ),
    Mutant(
        "tokens-bound-for-another-number-of-rows",
        WRONG_ROW,
        "shared cache",
        SHARED,
        (("if buffer.rows == rows:", "if buffer.rows:"),),
        f"{BUFFERS}::test_runs_of_any_rows_follow_each_other",
    ),
    Mutant(
        "logits-that-the-next-run-overwrites",
        WRONG_ROW,
        "shared cache",
        SHARED,
        (("return np.array(logits[0], np.float32), past", "return logits[0], past"),),
        f"{BUFFERS}::test_rows_stay_when_the_model_goes_on",
    ),
    Mutant(
        "a-released-buffer-kept-by-its-old-slot",
        ONE_STREAM,
        "shared cache",
        SHARED,
        (("return self._spare.pop() if self._spare else", "return self._spare[-1] if self._spare else"),),
        f"{BUFFERS}::test_slots_have_buffers_of_their_own",
    ),
    Mutant(
        "a-window-one-token-too-wide",
        OTHER,
        "foreign models",
        FOREIGN,
        (("visible & (distance < window)", "visible & (distance <= window)"),),
        f"{FOREIGN_TESTS}::test_the_decoder_computes_what_transformers_computes",
    ),
    Mutant(
        "a-window-in-places-instead-of-tokens",
        OTHER,
        "foreign models",
        FOREIGN,
        (("(attention_mask != 0).cumsum(1)", "torch.ones_like(attention_mask).cumsum(1)"),),
        f"{FOREIGN_TESTS}::test_padding_in_the_past_moves_no_window",
    ),
]
