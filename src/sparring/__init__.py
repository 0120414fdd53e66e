"""Sparring trains game-playing agents by self-play.

    import sparring

    result = sparring.train("tennis", minutes=4)
    policy = sparring.load(result.run)
    actions = policy.act(observations)

What is listed here is the public interface; parts are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sparring.errors import SparringError

if TYPE_CHECKING:
    from sparring.distil.run import DistilResult, distil_student
    from sparring.distil.students import load_student
    from sparring.export.bot import Exported, export_bot
    from sparring.games.registry import make
    from sparring.judge.runs import evaluate, play
    from sparring.runs.evaluate import Evaluation
    from sparring.runs.listing import compare, list_runs, prune
    from sparring.runs.policy import TrainedPolicy, TrainedTeacher, load, load_teacher
    from sparring.runs.recipe import Recipe, load_recipe
    from sparring.runs.train import RunResult, train

_HOMES = {
    "export_bot": "export.bot",
    "Exported": "export.bot",
    "make": "games.registry",
    "Recipe": "runs.recipe",
    "load_recipe": "runs.recipe",
    "train": "runs.train",
    "RunResult": "runs.train",
    "load": "runs.policy",
    "TrainedPolicy": "runs.policy",
    "TrainedTeacher": "runs.policy",
    "load_teacher": "runs.policy",
    "evaluate": "judge.runs",
    "Evaluation": "runs.evaluate",
    "play": "judge.runs",
    "list_runs": "runs.listing",
    "distil_student": "distil.run",
    "DistilResult": "distil.run",
    "load_student": "distil.students",
    "compare": "runs.listing",
    "prune": "runs.listing",
}

__all__ = [
    "DistilResult",
    "Evaluation",
    "Exported",
    "Recipe",
    "RunResult",
    "SparringError",
    "TrainedPolicy",
    "TrainedTeacher",
    "compare",
    "distil_student",
    "evaluate",
    "export_bot",
    "list_runs",
    "load",
    "load_recipe",
    "load_student",
    "load_teacher",
    "make",
    "play",
    "prune",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sparring' has no attribute '{name}'")
    return getattr(importlib.import_module(f"sparring.{_HOMES[name]}"), name)
