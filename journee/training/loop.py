"""One training run: from settings to a checkpoint.

The batch of a step is a function of (seed, step), and the state file beside the checkpoint holds the parameters, both
optimizers and the step, as they are between two steps. So a run that is broken off and resumed computes what an
unbroken one would have computed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from journee.checkpoint import CheckpointError, read_atomic, write_atomically
from journee.model import Decoder
from journee.routing import router_scores
from journee.training.interrupt import held_interrupt
from journee.training.losses import distillation, load_balance, routing_prior
from journee.training.optimizer import Muon, decay_start, learning_rate, split_parameters
from journee.training.settings import RoutingSettings, Settings
from journee.training.windows import Windows

StepDone = Callable[[int, float], None]


@dataclass
class Trainer:
    """A model in training. `classes` holds the word class of each token id; `target` is a model to distil from."""

    settings: Settings
    windows: Windows
    classes: Tensor
    target: Decoder | None = None

    def __post_init__(self) -> None:
        torch.manual_seed(self.settings.seed)  # pyright: ignore[reportUnknownMemberType]
        self.model = Decoder(self.settings.model)
        self.step = 0
        rate, decay = self.settings.training.learning_rate, self.settings.training.weight_decay
        matrices, others = split_parameters(self.model)
        self._optimizers: tuple[torch.optim.Optimizer, ...] = (
            Muon(matrices, rate, weight_decay=decay),
            torch.optim.AdamW(others, rate, betas=(0.9, 0.95), weight_decay=0.0),
        )

    @property
    def state_path(self) -> Path:
        """Where an unfinished run is kept."""
        return self.settings.out.with_suffix(".state")

    def run(self, done: StepDone) -> None:
        """Train to the last step, saving the state now and then, and when interrupted.

        Ctrl-C takes effect after the step that is under way: KeyboardInterrupt, with the state saved. A second one
        takes effect at once, and saves nothing.
        """
        self.model.train()
        saved = time.monotonic()
        with held_interrupt() as interrupt:
            while self.step < self.settings.training.steps:
                loss = self._take_step(self.windows.at(self.step))
                self.step += 1
                done(self.step, loss)
                if interrupt.wanted or time.monotonic() - saved >= self.settings.training.save_every:
                    self.save_state()
                    saved = time.monotonic()
                if interrupt.wanted:
                    raise KeyboardInterrupt
        self.model.eval()

    def _take_step(self, batch: Tensor) -> float:
        """One update; the cross-entropy of the batch before it, in nats a token."""
        training = self.settings.training
        factor = learning_rate(self.step, training.steps, training.warmup)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = training.learning_rate * factor
        entropy, loss = self._losses(batch[:, :-1], batch[:, 1:])
        loss.backward()  # type: ignore[no-untyped-call]  # pyright: ignore[reportUnknownMemberType]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), training.clip)
        for optimizer in self._optimizers:
            optimizer.step()
            optimizer.zero_grad()
        return entropy.item()

    def _losses(self, tokens: Tensor, following: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy, and the loss to minimize."""
        mixture = self.model.mixture
        if mixture is None or self.settings.routing is None:
            return self._language_losses(self.model.logits(tokens), tokens, following)
        with router_scores(mixture) as seen:
            logits = self.model.logits(tokens)
        entropy, loss = self._language_losses(logits, tokens, following)
        scores = seen[0].flatten(0, 1)
        return entropy, loss + self._routing_loss(self.settings.routing, scores, self.classes[tokens.flatten()])

    def _language_losses(self, logits: Tensor, tokens: Tensor, following: Tensor) -> tuple[Tensor, Tensor]:
        entropy = functional.cross_entropy(logits.flatten(0, 1), following.flatten())
        if self.target is None or self.settings.distill is None:
            return entropy, entropy
        with torch.no_grad():
            learnt_from = self.target.logits(tokens)
        weight = self.settings.distill.weight
        return entropy, (1 - weight) * entropy + weight * distillation(logits.flatten(0, 1), learnt_from.flatten(0, 1))

    def _routing_loss(self, routing: RoutingSettings, scores: Tensor, classes: Tensor) -> Tensor:
        assert self.settings.model.moe is not None
        active = self.settings.model.moe.active
        prior = routing_prior(scores, classes, active, routing.margin)
        return routing.prior * prior + routing.balance * load_balance(scores, active)

    def save_state(self) -> None:
        """Write the state file, atomically."""
        state = {
            "settings": self._fingerprint(),
            "step": self.step,
            "steps": self.settings.training.steps,
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self._optimizers],
        }
        write_atomically(state, self.state_path)

    def resume(self) -> None:
        """Continue from the state file; refused if there is none or if it is of a run with other settings."""
        path = self.state_path
        if not path.is_file():
            raise CheckpointError(f"there is no {path} to resume from; run without --resume")
        state = _checked_state(path, read_atomic(path))
        mine = self._fingerprint()
        changed = [name for name, value in mine.items() if state["settings"].get(name) != value]
        if changed:
            raise CheckpointError(
                f"{path} is of a run with another {', '.join(changed)}; take the settings back, or run without --resume"
            )
        self._check_length(state["step"], state["steps"])
        try:
            self.model.load_state_dict(state["model"])
            for optimizer, held in zip(self._optimizers, state["optimizers"], strict=True):
                optimizer.load_state_dict(held)
        except (RuntimeError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{path} does not fit this model: {error}; run without --resume") from error
        self.step = state["step"]

    def _fingerprint(self) -> dict[str, Any]:
        """The settings and the text that a resumed run must share with the broken one."""
        return self.settings.fingerprint() | {"text": sha256(self.windows.tokens.tobytes()).hexdigest()}

    def _check_length(self, step: int, planned: int) -> None:
        """A run may be lengthened or shortened as long as its learning rate hasn't begun to fall."""
        steps = self.settings.training.steps
        latest = min(decay_start(planned), decay_start(steps))
        if steps != planned and step > latest:
            raise CheckpointError(
                f"{self.state_path} is at step {step} of {planned}; it can't become a run of {steps} steps after step "
                f"{latest}, when the learning rate falls; resume with --steps {planned}"
            )


STATE = {"settings": dict, "step": int, "steps": int, "model": dict, "optimizers": list}
"""What a state file holds."""


def _checked_state(path: Path, content: object) -> dict[str, Any]:
    """`content` of the file `path`, if it is a state."""
    state = cast(dict[str, Any], content if isinstance(content, dict) else {})
    wrong = [name for name, kind in STATE.items() if not isinstance(state.get(name), kind)]
    if wrong:
        raise CheckpointError(f"{path} is no state of a run: no good {', '.join(wrong)} in it; run without --resume")
    return state
