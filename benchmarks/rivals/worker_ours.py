"""Our engine behind `run.py`'s protocol. It runs in the project's own environment."""

from __future__ import annotations

from typing import Any

from protocol import Job, Result, serve

from journee_deploy import LanguageModel, load


class Ours:
    """The models of a setting are opened once, when they are first asked for."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._models: dict[str, LanguageModel] = {}

    def _model(self, kind: str) -> LanguageModel:
        """`kind`: unpadded, or a bundle's name in the settings, or that and a draft without a model: fp32:ngram."""
        if kind not in self._models:
            bundle, _, draft = kind.partition(":")
            options: dict[str, Any] = {"draft": draft or "auto"}
            if bundle == "unpadded":
                bundle, options = "fp32", {"draft": "none", "row_rule": False}
            path = self._settings["bundles"][bundle]
            self._models[kind] = load(path, threads=self._settings["threads"], verify=False, **options)
        return self._models[kind]

    def run(self, job: Job) -> Result:
        options: dict[str, Any] = {"speculation_length": job.length} if job.length else {"draft": False}
        text = self._model(job.model).generate(
            self._settings["prompt"],
            max_new_tokens=self._settings["tokens"],
            temperature=1.0 if job.sampled else 0.0,
            seed=job.seed,
            **options,
        )
        report = text.report
        seconds = report.seconds()
        return Result(
            tokens=len(text.tokens),
            seconds=seconds["total"],
            facts={
                "rounds": len(report.rounds),
                "judged_acceptance": report.judged_acceptance,
                "outside": seconds["rest"] / seconds["total"],
                "lengths": [round_.length for round_ in report.rounds] if job.length == "auto" else None,
            },
        )


if __name__ == "__main__":
    serve(Ours)
