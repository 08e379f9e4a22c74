"""ONNX Runtime GenAI behind `run.py`'s protocol. It runs in an environment that has onnxruntime-genai."""

from __future__ import annotations

import json
import shutil
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from protocol import Job, Result, serve

og: Any = import_module("onnxruntime_genai")


def speculative_folder(folder: Path, threads: int) -> Path:
    """Target and draft as one model folder, which is how the engine takes a draft. Thread pools that spin in both
    sessions fight for the cores, so spinning is off, in plain decoding too.
    """
    made = folder / "speculative"
    configs = {role: json.loads((folder / role / "genai_config.json").read_text()) for role in ("target", "draft")}
    for role, config in configs.items():
        options = config["model"]["decoder"]["session_options"]
        options |= {"intra_op_num_threads": threads, "session.intra_op.allow_spinning": "0"}
        (made / role).mkdir(parents=True, exist_ok=True)
        for name in ("model.onnx", "model.onnx.data"):
            if not (made / role / name).exists():
                shutil.copyfile(folder / role / name, made / role / name)
    (folder / "target" / "genai_config.json").write_text(json.dumps(configs["target"], indent=1))
    joint = configs["target"]
    joint["model"]["draft"] = configs["draft"]["model"]["decoder"]
    for role, part in (("target", "decoder"), ("draft", "draft")):
        joint["model"][part]["filename"] = f"{role}/model.onnx"
    joint["speculative"] = {"max_draft_tokens": 4}
    (made / "genai_config.json").write_text(json.dumps(joint, indent=1))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(folder / "target" / name, made / name)
    return made


class GenAI:
    def __init__(self, settings: dict[str, Any]) -> None:
        folder = Path(settings["genai"])
        self._settings = settings
        self._models = {"speculative": og.Model(str(speculative_folder(folder, settings["threads"])))}
        self._models["plain"] = og.Model(str(folder / "target"))

    def run(self, job: Job) -> Result:
        model = self._models["speculative" if job.length else "plain"]
        prompt = self._settings["prompt"]
        parameters = og.GeneratorParams(model)
        sampling = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "random_seed": job.seed} if job.sampled else {}
        length = len(prompt) + self._settings["tokens"]
        parameters.set_search_options(max_length=length, do_sample=job.sampled, **sampling)
        if job.length:
            parameters.set_speculative_options(max_draft_tokens=job.length)
        generator = og.Generator(model, parameters)
        began = time.perf_counter()
        generator.append_tokens(prompt)
        while not generator.is_done():
            generator.generate_next_token()
        seconds = time.perf_counter() - began
        return Result(tokens=len(generator.get_sequence(0)) - len(prompt), seconds=seconds, facts={})


if __name__ == "__main__":
    serve(GenAI)
