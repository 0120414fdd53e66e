"""Everything that decides how a student is distilled, as one typed table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from sparring.settings import Range


@dataclass(frozen=True, kw_only=True)
class DistilConfig:
    """Whom to teach, and how. A round is `updates` rollouts and what is learnt from each."""

    preset: str = "student-tiny"
    """Size of the student: student-tiny or student."""
    off_policy: bool = False
    """The teacher plays in the student's place, and the student learns on the teacher's positions. For comparisons: it
    then never learns what to do after a mistake of its own."""
    seed: Annotated[int, Range(low=0, high=2**62)] = 0
    """Decides first weights, levels, choices and minibatches: the same seed and teachers give the same student."""
    lanes: Annotated[int, Range(low=1, high=65536)] = 64
    """Matches played side by side. More lanes make larger batches; after a change of teacher they burn in longer."""
    steps: Annotated[int, Range(low=1)] = 256
    """Decisions of each lane in a rollout."""
    updates: Annotated[int, Range(low=3)] = 12
    """Rollouts of a round; the last third of them trains with the bot's arithmetic."""
    epochs: Annotated[int, Range(low=1)] = 2
    """Times that an update goes through its rollout."""
    minibatch: Annotated[int, Range(low=1)] = 256
    """Decisions in a minibatch, about. More: faster passes and fewer steps, of which a new student needs many."""
    stretch: Annotated[int, Range(low=1)] = 16
    """Decisions of a life through which gradients flow back in time."""
    lr: Annotated[float, Range(low=0, high=1, low_open=True)] = 5e-4
    """AdamW's step size in the first two thirds of a round. student-tiny learns faster with 0.001, with which student
    stands still."""
    lr_end: Annotated[float, Range(low=0, high=1)] = 0.1
    """What is left of it at the end of the round, as a share; it falls over the last third."""
    warmup: Annotated[int, Range(low=0)] = 2
    """Updates of a new student until the step size is at its largest."""
    weight_decay: Annotated[float, Range(low=0, high=1)] = 1e-4
    """AdamW's decay of weights."""
    clip_norm: Annotated[float, Range(low=0, low_open=True)] = 1.0
    """Largest norm of the gradient."""
    balance: Annotated[float, Range(low=0)] = 0.01
    """Weight of the loss that keeps all experts in use."""
    threads: Annotated[int, Range(low=1, high=1024)] = 2
    """CPU threads for networks and game. Another count rounds otherwise."""
    save_seconds: Annotated[float, Range(low=0)] = 60.0
    """Seconds between checkpoints, the most that a kill can cost."""
