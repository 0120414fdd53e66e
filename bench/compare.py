"""MADDPG against independent DDPG on the particle environments: seeds, intervals, and the paper's measures.

    .venv/bin/python bench/compare.py [--task speaker-listener] [--methods maddpg ddpg] [--seeds 5] [--decisions 600000]
    .venv/bin/python bench/compare.py --scripted   (players that nobody trained)

One run after another, seed by seed, each an ordinary run named compare-TASK-METHOD-SEED. A finished run is measured
without noise on matches that no run trained on, and its row added to compare-TASK.jsonl in the folder of runs.
Interrupt it: the same command goes on with what is not in that file. The table at the end counts every row that is.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from rich.console import Console
from torch import Tensor

import sparring
from sparring.games.api import Decisions
from sparring.runs.folder import RunFolder, runs_folder
from sparring.runs.metrics import json_line, read_json_lines

MATCHES = 1_000
SEED = 1_000_000
"""Of the matches that measure: far from those of training."""
REACHED = 0.04 + 0.075
"""Speaker-listener: radii of landmark and listener; nearer than this they overlap."""
TOUCH = 0.15 + 0.15
"""Spread: radii of two agents."""


def measure(play: Callable[[Decisions], Tensor], scenario: str) -> dict[str, float]:
    """Mean scores of agents by name, and what the paper's tables count.

    Speaker-listener: how far from its goal the listener ends, and how often it stands on it. Spread: distance from a
    landmark to the agent nearest to it at the end, and collisions, pairs of agents that overlap, in a decision. Tag:
    touches in a match.
    """
    game: Any = sparring.make("mpe", lanes=100, seed=SEED, scenario=scenario)
    scores: list[Any] = []
    ends: list[NDArray[np.float64]] = []
    overlaps: list[NDArray[np.float64]] = []
    while len(scores) < MATCHES:
        rows = game.decisions()
        outcome = game.act(play(rows))
        scores += outcome.score.tolist()
        if scenario == "simple_speaker_listener_v4" and len(outcome.ended):
            ends.append(distances(outcome.last))
        if scenario == "simple_spread_v3":
            overlaps.append(collisions(rows))
            if len(outcome.ended):
                ends.append(uncovered(outcome.last))
        game.restart(outcome.ended)
    means = dict(zip(game.names, np.mean(scores, axis=0).tolist(), strict=True))
    if ends:
        means["distance"] = float(np.mean(np.concatenate(ends)))
    if scenario == "simple_speaker_listener_v4":
        means["reached"] = float(np.mean(np.concatenate(ends) < REACHED))
    if overlaps:
        means["score"] = float(np.mean(scores))
        means["collisions"] = float(np.mean(np.concatenate(overlaps)))
    if scenario == "simple_tag_v3":
        means["touches"] = means["adversary_0"] / 10  # a touch pays every predator 10
    return means


def distances(last: Decisions) -> NDArray[np.float64]:
    """From the listener to the landmark whose colour the speaker sees, of every match that ended."""
    speaker, listener = last.obs[last.agent == 0], last.obs[last.agent == 1]
    goal = speaker[:, :3].argmax(dim=1)
    away = listener[:, 2:8].view(-1, 3, 2)[torch.arange(len(goal)), goal]
    return np.asarray(away.norm(dim=1).double().numpy())


def uncovered(last: Decisions) -> NDArray[np.float64]:
    """From each landmark to the agent nearest to it, of every match that ended."""
    order = torch.argsort(last.lane * 3 + last.agent)
    away = last.obs[order, 4:10].view(-1, 3, 3, 2).norm(dim=3)  # match, agent, landmark
    return np.asarray(away.amin(dim=1).double().numpy().ravel())


def collisions(rows: Decisions) -> NDArray[np.float64]:
    """Pairs of agents that overlap, in every lane."""
    order = torch.argsort(rows.lane * 3 + rows.agent)
    away = rows.obs[order, 10:14].view(-1, 3, 2, 2).norm(dim=3)  # lane, agent, other agent: each pair is seen twice
    return np.asarray((away < TOUCH).double().sum(dim=(1, 2)).numpy()) / 2


def at_random(generator: torch.Generator, rows: Decisions) -> Tensor:
    legal = torch.ones(len(rows), 5) if rows.mask is None else rows.mask.float()
    return torch.multinomial(legal, 1, generator=generator).view(-1)


def script(rows: Decisions, *, heeds: bool) -> Tensor:
    """The speaker names its goal. The listener walks to what it hears of or, deaf, to the middle of the landmarks."""
    actions = torch.zeros(len(rows), dtype=torch.int64)
    speaks, hears = rows.agent == 0, rows.agent == 1
    actions[speaks] = rows.obs[speaks, :3].argmax(dim=1)
    own = rows.obs[hears]
    word = own[:, 8:11] if heeds else torch.zeros(len(own), 3)
    share = torch.where(word.sum(dim=1, keepdim=True) > 0, word, 1 / 3)
    goal = (own[:, 2:8].view(-1, 3, 2) * share.unsqueeze(2)).sum(dim=1)
    # A tenth of a second passes in a decision, and a quarter of the speed is lost: it coasts 0.4 of its velocity on.
    way = goal - 0.4 * own[:, :2]
    axis = way.abs().argmax(dim=1)
    along = way.gather(1, axis.unsqueeze(1)).squeeze(1)
    # Choices 1 to 4: left, right, down, up; 0 within half of what one push moves.
    actions[hears] = torch.where(along.abs() > 0.1, 1 + 2 * axis + (along > 0), 0)
    return actions


def interval(values: Sequence[float], statistic: Callable[..., Any] = np.mean) -> tuple[float, float]:
    """The 95% interval of the mean, or another statistic, over seeds, by the bootstrap (percentiles)."""
    random = np.random.default_rng(0)
    found = statistic(random.choice(values, size=(10_000, len(values))), axis=1)
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def main(
    task: str = "speaker-listener",
    methods: tuple[str, ...] = ("maddpg", "ddpg"),
    seeds: int = 5,
    decisions: int = 600_000,
    keep: bool = False,
    scripted: bool = False,
) -> None:
    """task: recipes TASK-METHOD are run. seeds: how many, from 0. keep: keep the replay of finished runs.
    scripted: train nothing; measure random choices, and on speaker-listener two scripts, too."""
    if scripted:
        players: dict[str, Callable[[Decisions], Tensor]] = {"random choices": partial(at_random, torch.Generator())}
        if task == "speaker-listener":
            players["listener heeds the speaker"] = partial(script, heeds=True)
            players["deaf listener"] = partial(script, heeds=False)
        for name, player in players.items():
            print(name, json.dumps(measure(player, sparring.load_recipe(f"{task}-maddpg").mpe.scenario)), flush=True)
        return
    table = runs_folder() / f"compare-{task}.jsonl"
    for seed in range(seeds):
        for method in methods:
            done = {(row["method"], row["seed"], row["decisions"]) for row in read_json_lines(table)}
            if (method, seed, decisions) not in done:
                play(task, method, seed, decisions, table, keep)
    rows = [row for row in read_json_lines(table) if row["decisions"] == decisions]
    show(rows, methods)
    if task == "tag":
        show_sides(rows)


def play(task: str, method: str, seed: int, decisions: int, table: Path, keep: bool) -> None:
    recipe = f"{task}-{method}"
    run = f"compare-{recipe}-{seed}"
    result = sparring.train(recipe, run=run, seed=seed, decisions=decisions, console=Console(quiet=True))
    if result.signal:  # Ctrl-C or SIGTERM: this run is saved, and the script is meant, too
        raise SystemExit(128 + result.signal)
    measured = measure(sparring.load(run).act, sparring.load_recipe(recipe).mpe.scenario)
    row = {"method": method, "seed": seed, "decisions": decisions, "minutes": result.minutes, **measured}
    with table.open("ab") as file:
        file.write(json_line(row))
    print(json.dumps(row), flush=True)
    if not keep:
        shutil.rmtree(RunFolder(run).replay)


def show(rows: list[dict[str, Any]], methods: tuple[str, ...]) -> None:
    names = [name for name in rows[0] if name not in ("method", "seed", "decisions", "minutes")]
    print("\n| method | seeds | measure | median | middle half | mean, 95% interval |")
    print("|---|---|---|---|---|---|")
    for method in methods:
        own = [row for row in rows if row["method"] == method]
        for name in names if own else []:
            values = [row[name] for row in own]
            first, middle, third = np.quantile(values, [0.25, 0.5, 0.75])
            low, high = interval(values)
            print(
                f"| {method} | {len(own)} | {name} | {middle:.3f} | {first:.3f} to {third:.3f} "
                f"| {np.mean(values):.3f} ({low:.3f} to {high:.3f}) |"
            )


def show_sides(rows: list[dict[str, Any]]) -> None:
    """Touches by the method of one side, both methods of the other side taken together."""
    random = np.random.default_rng(0)
    for place, side in enumerate(("predators", "prey")):
        touches = {
            method: [row["touches"] for row in rows if (row["method"].split("-") * 2)[place] == method]
            for method in ("maddpg", "ddpg")
        }
        if all(touches.values()):
            draws = [random.choice(own, size=(10_000, len(own))).mean(axis=1) for own in touches.values()]
            low, high = np.quantile(draws[0] - draws[1], [0.025, 0.975])
            means = {method: float(np.mean(own)) for method, own in touches.items()}
            print(
                f"{side} by maddpg {means['maddpg']:.2f} touches, by ddpg {means['ddpg']:.2f}: "
                f"difference {means['maddpg'] - means['ddpg']:.2f} ({low:.2f} to {high:.2f})"
            )


if __name__ == "__main__":
    tyro.cli(main)
