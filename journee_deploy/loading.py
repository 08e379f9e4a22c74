"""From a path to a `LanguageModel`: bundles, runtimes by name, a provider a role."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Literal, get_args

from journee_deploy.bundle import Bundle, BundleError, open_bundle
from journee_deploy.costs import Costs
from journee_deploy.language_model import DraftKind, LanguageModel
from journee_deploy.runtime import Model, OpenOptions, find_runtime
from journee_deploy.text import Codec

DraftChoice = Literal["auto", "model", "ngram", "uniform", "none"]
DRAFTS: tuple[DraftChoice, ...] = get_args(DraftChoice)


def load(
    bundle: str | Path,
    *,
    draft: DraftChoice = "auto",
    runtime: str = "onnxruntime",
    provider: str = "cpu",
    draft_provider: str | None = None,
    threads: int = 0,
    row_rule: bool = True,
    verify: bool = True,
    costs: Costs | None = None,
) -> LanguageModel:
    """Open the folder that `journee-export` wrote.

    draft           "auto" takes the bundle's model if it has one, or none; "model" insists; "ngram" proposes what
                    followed the last tokens earlier in the text; "uniform" is useless, for tests; "none" is plain
    runtime         the name of an installed runtime
    provider        where the target runs, such as "cpu" or "cuda"; `draft_provider` the draft, the same if None
    threads         a model's threads; 0 lets the runtime choose
    row_rule        False runs the target without padding, a little faster: then rows may change with the run they are
                    in, and no promise holds exactly
    verify          hash every file first; sizes, names and paths are checked always
    costs           what drafting costs, for speculation_length="auto"; None measures it when that is first asked for

    Raises BundleError for a bundle that is broken, RuntimeFailure for a runtime or provider that is not there.
    """
    opened = open_bundle(bundle, verify=verify)
    kind = _draft_kind(opened, draft)
    found = find_runtime(runtime)
    role = opened.role("target")
    codec = Codec.from_file(role.tokenizer)
    with ExitStack() as opened_models:

        def open_role(name: str, where: str, ruled: bool) -> Model:
            options = OpenOptions(where, threads, row_rule=ruled, verify=False)  # hashed above, if at all
            model = found.open(opened.role(name).folder, name, options)
            opened_models.callback(model.close)
            return model

        target = open_role("target", provider, row_rule)
        drafting: Model | DraftKind = kind
        if kind == "model":
            drafting = open_role("draft", draft_provider or provider, False)
        lm = LanguageModel(str(bundle), target, codec, draft=drafting, ends=role.end_of_sequence, costs=costs)
        opened_models.pop_all()  # they are the language model's now
        return lm


def _draft_kind(bundle: Bundle, draft: DraftChoice) -> DraftKind:
    if draft == "auto":
        return "model" if "draft" in bundle.roles else "none"
    if draft == "model" and "draft" not in bundle.roles:
        raise BundleError(
            f'{bundle.root} has no draft; export it with --draft, or load it with draft="ngram" or draft="none"'
        )
    if draft not in DRAFTS:
        raise ValueError(f"there is no draft {draft!r}; there is: {', '.join(DRAFTS)}")
    return draft
