"""MADDPG beside BenchMARL's on cooperative navigation (mpe2's simple_spread_v3): decisions a second, and scores.

    .venv/bin/python bench/marl.py [--rounds 3] [--decisions 100000]

Needs `pip install benchmarl==1.5.2` beside extra `zoo`. A round trains both from its own seed, ours first in even
rounds and theirs in odd ones, and times the environment alone. What is equal: actions are numbers (theirs takes no
choices), networks 2x64 ReLU, an actor and a central critic for each agent, batch, replay, step sizes, discount, soft
targets, noise, no clipping, lanes, and when it is learned; one thread each. Theirs moves every actor by the values of
all agents; ours is trained that way (`climb = "team"`), and as in the paper, each actor by its own agent's. Trained
policies play the same matches without noise, by the same code. Times are of the process (CPU), so other programs count
little, and by the wall.

Rows go to marl.jsonl in the folder of runs. Interrupt it: the same command goes on with what is not in that file.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
import tyro
from compare import interval
from mpe2 import simple_spread_v3
from numpy.typing import NDArray
from pettingzoo.utils.conversions import aec_to_parallel

import sparring
from sparring.learn.maddpg import MADDPG, MADDPGConfig
from sparring.runs.folder import runs_folder
from sparring.runs.metrics import json_line, read_json_lines

torch.set_num_threads(1)  # before torchrl looks, which gives back as many threads whenever an environment is closed
try:
    from benchmarl.algorithms import MaddpgConfig
    from benchmarl.environments.pettingzoo.common import PettingZooClass
    from benchmarl.experiment import Experiment, ExperimentConfig
    from benchmarl.models.mlp import MlpConfig
    from tensordict import TensorDict
    from torchrl.envs import PettingZooWrapper
    from torchrl.envs.utils import ExplorationType, set_exploration_type
except ImportError as error:
    raise SystemExit(f"bench/marl.py compares with BenchMARL ({error}): pip install benchmarl==1.5.2") from None

LANES = 25
EACH = 10
"""Decisions of each lane between bursts of as many updates."""
HIDDEN = (64, 64)
BATCH = 512
LR = 1e-3
GAMMA = 0.95
TAU = 1e-2
NOISE = 0.1
"""Standard deviation of the exploration noise, of actions in [0, 1]."""
CYCLES = 25
"""Decisions of a match."""
MATCHES, SIDE_BY_SIDE = 400, 50
SEED = 1_000_000
"""Of the first match that measures: far from those of training."""
OURS, PAPER, THEIRS, WORLD = "Sparring", "Sparring, as in the paper", "BenchMARL", "environment alone"

Play = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""From observations [matches, agents, observation] to actions in [0, 1], [matches, agents, action]."""


@dataclass
class Times:
    cpu: float
    wall: float


def timed(work: Callable[[], None]) -> Times:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Times(time.process_time() - cpu, time.perf_counter() - wall)


def world() -> Any:
    """One lane's environment as both get it: without the wrappers that check actions again."""
    return aec_to_parallel(simple_spread_v3.raw_env(continuous_actions=True, max_cycles=CYCLES))


def score(play: Play) -> float:
    """Mean over matches and agents of the sum of rewards."""
    worlds, total = [world() for _ in range(SIDE_BY_SIDE)], 0.0
    names = worlds[0].possible_agents
    for first in range(SEED, SEED + MATCHES, SIDE_BY_SIDE):
        seen = [each.reset(seed=first + number)[0] for number, each in enumerate(worlds)]
        for _ in range(CYCLES):
            actions = play(np.array([[each[name] for name in names] for each in seen], dtype=np.float32))
            for number, each in enumerate(worlds):
                seen[number], rewards, *_ = each.step(dict(zip(names, actions[number], strict=True)))
                total += sum(rewards.values())
    return total / (MATCHES * len(names))


def ours(seed: int, decisions: int, *, climb: Literal["own", "team"] = "team") -> tuple[Times, Play]:
    config = MADDPGConfig(
        climb=climb,
        hidden=HIDDEN,
        buffer=decisions,
        batch=BATCH,
        actor_lr=LR,
        critic_lr=LR,
        gamma=GAMMA,
        tau=TAU,
        noise_sigma=2 * NOISE,  # our actions are in [-1, 1]
        logit_penalty=0.0,
        clip_norm=1e9,
        update_every=EACH,
        burst=EACH,
        learn_from=LANES * EACH,
    )
    game = sparring.make("mpe", lanes=LANES, seed=seed, scenario="simple_spread_v3", continuous=True, max_cycles=CYCLES)
    learner = MADDPG(game, config, seed=seed)

    def train() -> None:
        while learner.decisions < decisions:
            learner.step()

    times = timed(train)
    actors = learner.policy()

    @torch.no_grad()
    def play(seen: NDArray[np.float32]) -> NDArray[np.float32]:
        answers = [actors.member(agent, 0)(torch.from_numpy(seen[:, agent])) for agent in range(seen.shape[1])]
        return ((torch.stack(answers, dim=1) + 1) / 2).numpy()

    return times, play


class Particles(PettingZooClass):
    """BenchMARL's own task takes its environment from a package that is no more; its lanes all have the same seed."""

    def get_env_fun(self, num_envs: int, continuous_actions: bool, seed: int | None, device: Any) -> Callable[[], Any]:
        seeds = iter(range(1000 * (seed or 0), 1000 * (seed or 0) + 1000))
        return lambda: PettingZooWrapper(world(), return_state=self.has_state(), seed=next(seeds), device=device)


def theirs(seed: int, decisions: int) -> tuple[Times, Play]:
    with tempfile.TemporaryDirectory() as folder:
        config = ExperimentConfig.get_from_yaml()
        config.share_policy_params = False
        config.gamma, config.lr, config.adam_eps = GAMMA, LR, 1e-8
        config.clip_grad_val = 1e9
        config.polyak_tau = TAU
        config.exploration_eps_init = config.exploration_eps_end = NOISE
        config.max_n_frames = decisions
        config.off_policy_n_envs_per_worker = LANES
        config.off_policy_collected_frames_per_batch = LANES * EACH
        config.off_policy_n_optimizer_steps = EACH
        config.off_policy_train_batch_size = BATCH
        config.off_policy_memory_size = decisions
        config.evaluation = config.render = config.create_json = False
        config.loggers = []
        config.save_folder = folder
        network = MlpConfig(num_cells=list(HIDDEN), layer_class=torch.nn.Linear, activation_class=torch.nn.ReLU)
        experiment = Experiment(
            task=Particles("SIMPLE_SPREAD", {"max_cycles": CYCLES}),
            algorithm_config=MaddpgConfig(
                share_param_critic=False, loss_function="l2", delay_value=True, use_tanh_mapping=True
            ),
            model_config=network,
            seed=seed,
            config=config,
        )
        times = timed(experiment.run)

    @torch.no_grad()
    def play(seen: NDArray[np.float32]) -> NDArray[np.float32]:
        rows = TensorDict({"agent": {"observation": torch.from_numpy(seen)}}, batch_size=[len(seen)])
        with set_exploration_type(ExplorationType.DETERMINISTIC):
            return np.asarray(experiment.policy(rows)["agent", "action"].numpy())

    return times, play


def alone(seed: int, decisions: int) -> tuple[Times, Play]:
    """The environment's own work and no learner: each agent's action and one look. Its actions are random."""
    random, env = np.random.default_rng(seed), world().aec_env

    def step() -> None:
        for number in range(decisions // 10):
            if number % CYCLES == 0:
                env.reset(seed=seed + number)
                for name in env.agents:
                    env.observe(name)
            for action in random.random((len(env.agents), 5), dtype=np.float32):
                env.step(action)
            for name in env.agents:
                env.observe(name)

    times = timed(step)
    play = np.random.default_rng(SEED)
    return Times(10 * times.cpu, 10 * times.wall), lambda seen: play.random((*seen.shape[:2], 5), dtype=np.float32)


def main(rounds: int = 3, decisions: int = 100_000) -> None:
    """rounds: seeds, from 0. decisions: of lanes, that each learner trains for."""
    contenders = {OURS: ours, THEIRS: theirs, PAPER: partial(ours, climb="own"), WORLD: alone}
    table = runs_folder() / "marl.jsonl"
    for seed in range(rounds):
        for name in (OURS, THEIRS, PAPER, WORLD) if seed % 2 == 0 else (PAPER, THEIRS, OURS, WORLD):
            done = {(row["who"], row["seed"], row["decisions"]) for row in read_json_lines(table)}
            if (name, seed, decisions) in done:
                continue
            times, play = contenders[name](seed, decisions)
            row = {"who": name, "seed": seed, "decisions": decisions, "cpu": times.cpu, "wall": times.wall}
            row["score"] = score(play)
            with table.open("ab") as file:
                file.write(json_line(row))
            print(json.dumps(row), flush=True)
    show({(row["who"], row["seed"]): row for row in read_json_lines(table) if row["decisions"] == decisions}, rounds)


def show(rows: dict[tuple[str, int], dict[str, Any]], rounds: int) -> None:
    print("\n| who | decisions/s of CPU | of wall | times BenchMARL's, CPU (range) | score, 95% interval |")
    print("|---|---|---|---|---|")
    for who in (OURS, PAPER, THEIRS, WORLD):
        own = [rows[who, seed] for seed in range(rounds)]
        cpu, wall = (statistics.median(row["decisions"] / row[clock] for row in own) for clock in ("cpu", "wall"))
        ratios = [rows[THEIRS, seed]["cpu"] / rows[who, seed]["cpu"] for seed in range(rounds)]
        scores = [row["score"] for row in own]
        low, high = interval(scores)
        faster = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        played = f"{statistics.mean(scores):.2f} ({low:.2f} to {high:.2f})"
        print(f"| {who} | {cpu:.0f} | {wall:.0f} | {faster} | {played} |")
    print()
    for who in (OURS, PAPER):
        ahead = [rows[who, seed]["score"] - rows[THEIRS, seed]["score"] for seed in range(rounds)]
        low, high = interval(ahead)
        print(f"{who}: {statistics.mean(ahead):+.2f} ({low:+.2f} to {high:+.2f}) ahead of BenchMARL's score, by seed.")


if __name__ == "__main__":
    tyro.cli(main)
