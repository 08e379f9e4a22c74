"""OpenVINO GenAI behind `run.py`'s protocol. It runs in an environment that has openvino-genai."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

import numpy as np
from protocol import Job, Result, serve

ov: Any = import_module("openvino")
genai: Any = import_module("openvino_genai")

EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
"""float32 throughout, as the others compute."""


class OpenVino:
    def __init__(self, settings: dict[str, Any]) -> None:
        folder, self._count = settings["openvino"], settings["tokens"]
        options = {"INFERENCE_NUM_THREADS": settings["threads"], **EXACT}
        self._prompt = ov.Tensor(np.array([settings["prompt"]], np.int64))
        self._plain = genai.LLMPipeline(f"{folder}/target", "CPU", **options)
        self._speculative = genai.LLMPipeline(
            f"{folder}/target",
            "CPU",
            scheduler_config=genai.SchedulerConfig(),
            draft_model=genai.draft_model(f"{folder}/draft", "CPU", **options),
            **options,
        )

    def run(self, job: Job) -> Result:
        config = genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos, config.apply_chat_template = self._count, True, False
        if job.length:
            config.num_assistant_tokens = job.length
        if job.sampled:
            config.do_sample, config.temperature, config.top_k, config.top_p = True, 1.0, 0, 1.0
            config.rng_seed = job.seed
        began = time.perf_counter()
        found = (self._speculative if job.length else self._plain).generate(self._prompt, config)
        return Result(tokens=len(found.tokens[0]), seconds=time.perf_counter() - began, facts={})


if __name__ == "__main__":
    serve(OpenVino)
