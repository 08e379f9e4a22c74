"""From a path to a `LanguageModel`: bundles, runtimes by name, a provider a role."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from journee_deploy.bundle import Bundle, BundleError, open_bundle
from journee_deploy.language_model import DraftKind, LanguageModel
from journee_deploy.runtime import Model, OpenOptions, find_runtime
from journee_deploy.text import Codec

DraftChoice = Literal["auto", "model", "uniform", "none"]


def load(
    bundle: str | Path,
    *,
    draft: DraftChoice = "auto",
    runtime: str = "onnxruntime",
    provider: str = "cpu",
    draft_provider: str | None = None,
    threads: int = 0,
    verify: bool = True,
) -> LanguageModel:
    """Open the folder that `journee-export` wrote.

    draft           "auto" takes the bundle's if it has one; "model" insists; "uniform" is useless, for tests; "none"
    runtime         the name of an installed runtime
    provider        where the target runs, such as "cpu" or "cuda"; `draft_provider` the draft, the same if None
    threads         a model's threads; 0 lets the runtime choose
    verify          hash every file first; sizes, names and paths are checked always

    Raises BundleError for a bundle that is broken, RuntimeFailure for a runtime or provider that is not there.
    """
    opened = open_bundle(bundle, verify=verify)
    kind = _draft_kind(opened, draft)
    found = find_runtime(runtime)
    role = opened.role("target")
    codec = Codec.from_file(role.tokenizer)
    target = found.open(role.folder, "target", OpenOptions(provider, threads, verify=False))
    try:
        chosen: Model | DraftKind = kind
        if kind == "model":
            options = OpenOptions(draft_provider or provider, threads, row_rule=False, verify=False)
            chosen = found.open(opened.role("draft").folder, "draft", options)
        return LanguageModel(str(bundle), target, codec, draft=chosen, ends=role.end_of_sequence)
    except BaseException:
        target.close()
        raise


def _draft_kind(bundle: Bundle, draft: DraftChoice) -> DraftKind:
    if draft == "auto":
        return "model" if "draft" in bundle.roles else "none"
    if draft == "model" and "draft" not in bundle.roles:
        raise BundleError(f'{bundle.root} has no draft; export it with --draft, or load it with draft="none"')
    if draft not in ("model", "uniform", "none"):
        raise ValueError(f"there is no draft {draft!r}; there is: auto, model, uniform, none")
    return draft
