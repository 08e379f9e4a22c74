"""Parity: the table holds for every variant, and whatever is not parity is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from journee_export.errors import ExportError
from journee_export.parity import CASES, Array, Case, Graph, measure, require
from tests.export.conftest import Exported
from tests.export.small_models import TARGET, make_decoder

CLOSE = 5e-6
"""What these small models reach; the table allows more, for larger ones."""

CASE = Case("last 3 of 8 rows", past=(6,), rows=(8,), kept=3)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_table(exported: Exported, case: Case) -> None:
    (found,) = measure(exported.decoder, exported.session, [case])
    assert found.difference < CLOSE
    assert found.tolerance == 1e-4
    require([found])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_table_without_a_mixture(draft: Exported, case: Case) -> None:
    (found,) = measure(draft.decoder, draft.session, [case])
    assert found.difference < CLOSE


@pytest.mark.parametrize("kept", [1, 3, 8, 9, 1000])
def test_rows_kept_beyond_the_rows_means_all(exported: Exported, kept: int) -> None:
    feeds = {}

    def remember(given: Mapping[str, Array]) -> dict[str, Array]:
        feeds.update(given)
        return exported.session(given)

    measure(exported.decoder, remember, [Case("", past=(2,), rows=(8,))])
    full = exported.session(feeds)["logits"]
    found = exported.session({**feeds, "num_logits_to_keep": np.array(kept)})["logits"]
    np.testing.assert_allclose(found, full[:, -kept:], atol=1e-5)


def test_another_model_is_out(exported: Exported) -> None:
    found = measure(make_decoder(TARGET, seed=2), exported.session, [CASE])
    assert found[0].difference > 0.1
    with pytest.raises(ExportError, match=r"nothing was written. last 3 of 8 rows: \S+ \(allowed 0.0001\)"):
        require(found)


def off_by(name: str, how: Callable[[Array], Array], session: Graph) -> Graph:
    def graph(feeds: Mapping[str, Array]) -> dict[str, Array]:
        outputs = session(feeds)
        return {**outputs, name: how(outputs[name])}

    return graph


WRONG = {
    "one logit": ("logits", lambda a: a + np.eye(1, a.shape[-1], 7, dtype=np.float32) * 1e-3),
    "the wrong rows": ("logits", lambda a: a[:, ::-1]),
    "too many rows": ("logits", lambda a: np.concatenate([a, a], axis=1)),
    "a NaN": ("logits", lambda a: np.where(a == a.max(), np.float32(np.nan), a)),
    "a new key": ("present.1.key", lambda a: a * 1.001),
    "an old value": ("present.0.value", lambda a: np.concatenate([a[:, :, :1] + 1, a[:, :, 1:]], axis=2)),
}


@pytest.mark.parametrize(("name", "how"), WRONG.values(), ids=WRONG)
def test_one_wrong_thing_is_out(exported: Exported, name: str, how: Callable[[Array], Array]) -> None:
    with pytest.raises(ExportError, match="does not compute what the PyTorch model computes"):
        require(measure(exported.decoder, off_by(name, how, exported.session), [CASE]))


def test_a_mask_that_is_ignored_is_out(exported: Exported) -> None:
    def blind(feeds: Mapping[str, Array]) -> dict[str, Array]:
        return exported.session({**feeds, "attention_mask": np.ones_like(feeds["attention_mask"])})

    ragged = [case for case in CASES if "ragged past" in case.name]
    assert len(ragged) == 2
    assert all(found.difference > 1e-2 for found in measure(exported.decoder, blind, ragged))


def test_positions_that_are_ignored_are_out(exported: Exported) -> None:
    def lost(feeds: Mapping[str, Array]) -> dict[str, Array]:
        return exported.session({**feeds, "position_ids": np.zeros_like(feeds["position_ids"])})

    assert measure(exported.decoder, lost, [CASE])[0].difference > 1e-2
