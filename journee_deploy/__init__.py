"""Exact speculative decoding: faster text, the same distribution.

    import journee_deploy as jd

    lm = jd.load("artifacts/tiny")
    generation = lm.generate("The proof obligation is", max_new_tokens=64, seed=42)
    print(generation.text, generation.report.as_dict())

Names are looked up when they are used, so that importing the package is free and `journee_deploy.controller` stays
portable.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from journee_deploy.bundle import BundleError, open_bundle
    from journee_deploy.costs import Costs
    from journee_deploy.language_model import LanguageModel, Stream
    from journee_deploy.loading import load
    from journee_deploy.report import Generation, Report
    from journee_deploy.request import Request, RequestError

_WHERE = {
    "BundleError": "bundle",
    "Costs": "costs",
    "Generation": "report",
    "LanguageModel": "language_model",
    "Report": "report",
    "Request": "request",
    "RequestError": "request",
    "Stream": "language_model",
    "load": "loading",
    "open_bundle": "bundle",
}

__all__ = [
    "BundleError",
    "Costs",
    "Generation",
    "LanguageModel",
    "Report",
    "Request",
    "RequestError",
    "Stream",
    "load",
    "open_bundle",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
