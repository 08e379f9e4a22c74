"""Configurations: round trips, and refusals by name."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from journee.config import ConfigError, ModelConfig
from journee.cost import multiply_adds, parameters
from journee.model import Decoder
from journee.training.settings import SettingsError, parse_settings, read_settings

CONFIGS = Path(__file__).parents[2] / "configs"
SMALL = {"vocab_size": 300, "dim": 16, "layers": 4, "heads": 2, "kv_heads": 1, "ffn_dim": 24}
RUN = {
    "tokenizer": {"vocab_size": 300},
    "model": {name: value for name, value in SMALL.items() if name != "vocab_size"},
    "training": {"steps": 6, "batch": 2, "sequence": 16, "learning_rate": 0.01},
}


@pytest.mark.parametrize("moe", [None, {"expert_dim": 8, "layer": 3, "experts": 4, "active": 2}])
def test_a_configuration_survives_its_dictionary(moe):
    config = ModelConfig.from_dict(SMALL | {"moe": moe})
    assert ModelConfig.from_dict(config.to_dict()) == config
    assert config.context_length == 4096


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dim": 17}, "multiple of 4"),
        ({"dim": 0}, r"model\.dim is 0"),
        ({"layers": 2.5}, r"model\.layers is 2\.5"),
        ({"kv_heads": 3, "heads": 4}, "choose a divisor"),
        ({"rope_theta": 0.5}, "rope_theta > 1"),
        ({"moe": {"expert_dim": 8, "layer": 4}}, "blocks 0 to 3"),
        ({"moe": {"expert_dim": 8, "active": 5}}, "expected at most moe.experts = 4"),
        ({"moe": {"layer": 3}}, "lacks expert_dim"),
        ({"moe": {"expert_dim": 8, "expertz": 4}}, "no setting expertz"),
        ({"width": 3}, "no setting width"),
    ],
)
def test_a_bad_configuration_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        ModelConfig.from_dict(SMALL | changes)


def test_a_missing_setting_is_refused_by_name():
    with pytest.raises(ConfigError, match="lacks heads"):
        ModelConfig.from_dict({name: value for name, value in SMALL.items() if name != "heads"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sead": 3}, "no setting sead"),
        ({"training": RUN["training"] | {"stepz": 3}}, "no setting stepz"),
        ({"training": RUN["training"] | {"steps": "ten"}}, "training.steps is 'ten'; expected int"),
        ({"training": RUN["training"] | {"batch": 0}}, "training.batch is 0"),
        ({"training": RUN["training"] | {"learning_rate": -1}}, "must be above 0"),
        ({"training": RUN["training"] | {"sequence": 5000}}, "more than model.context_length = 4096"),
        ({"training": {"steps": 3}}, "lacks batch, sequence, learning_rate"),
        ({"model": RUN["model"] | {"vocab_size": 300}}, r"set it in \[tokenizer\]"),
        ({"tokenizer": {"size": 300}}, "no setting size"),
        ({"tokenizer": 300}, "expected a table"),
        ({"routing": {"prior": 0.1}}, "needs a mixture"),
        ({"distill": {}}, "lacks target"),
        ({"seed": "one"}, "seed is 'one'"),
        ({"corpus": 5}, "corpus is 5"),
    ],
)
def test_a_bad_run_is_refused(changes, message):
    with pytest.raises(SettingsError, match=message):
        parse_settings(RUN | changes, "draft")


def test_a_missing_table_is_refused():
    with pytest.raises(SettingsError, match=r"table \[model\] is missing"):
        parse_settings({name: value for name, value in RUN.items() if name != "model"}, "draft")


def test_a_missing_or_broken_file_is_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"gone\.toml does not exist"):
        read_settings(tmp_path / "gone.toml", "draft")
    (tmp_path / "broken.toml").write_text("seed =")
    with pytest.raises(SettingsError, match=r"broken\.toml is no TOML"):
        read_settings(tmp_path / "broken.toml", "draft")


@pytest.mark.parametrize("name", sorted(path.name for path in CONFIGS.glob("tiny_*.toml")))
def test_the_tiny_configurations_are_read_and_share_their_tokenizer(name):
    settings = read_settings(CONFIGS / name, "target" if "target" in name else "draft")
    assert settings.model.context_length == 4096
    target = tomllib.loads((CONFIGS / "tiny_target.toml").read_text())
    assert tomllib.loads((CONFIGS / name).read_text())["tokenizer"] == target["tokenizer"]


@pytest.mark.parametrize("name", ["tiny_draft.toml", "tiny_draft_distilled.toml"])
def test_a_tiny_draft_costs_at_most_a_tenth_of_the_target(name):
    target = read_settings(CONFIGS / "tiny_target.toml", "target").model
    draft = read_settings(CONFIGS / name, "draft").model
    assert multiply_adds(draft) <= multiply_adds(target) / 10


def test_the_tiny_target_has_about_two_million_parameters_and_a_mixture_in_the_fourth_block():
    target = read_settings(CONFIGS / "tiny_target.toml", "target").model
    assert 1.8e6 < parameters(Decoder(target)) < 2.2e6
    assert target.layers >= 4
    assert target.moe is not None
    assert (target.moe.layer, target.moe.experts, target.moe.active) == (3, 4, 2)


def test_multiply_adds_count_the_matrices_that_run():
    """Without attention over a past, a dense model's multiply-adds are its matrices' sizes."""
    config = ModelConfig.from_dict(SMALL)
    model = Decoder(config)
    matrices = sum(p.numel() for name, p in model.named_parameters() if p.dim() == 2 and name != "embedding.weight")
    own_key = 2 * config.dim * config.layers
    assert multiply_adds(config) == matrices + own_key
    sparse = ModelConfig.from_dict(SMALL | {"moe": {"expert_dim": 8}})
    routed = 3 * 16 * 8 * 2 + 16 * 5
    assert multiply_adds(sparse) == multiply_adds(config) - 3 * 16 * 24 + routed
