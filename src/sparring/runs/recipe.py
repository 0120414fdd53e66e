"""A recipe: everything that decides a training run, as one typed table and one TOML file."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from sparring.errors import SparringError
from sparring.games.loong import Loong
from sparring.games.loong_rows import PLAYERS
from sparring.games.tennis import Tennis, TennisOptions
from sparring.learn.against import AgainstConfig
from sparring.learn.ddpg import DDPGConfig
from sparring.learn.dqn import DQNConfig
from sparring.learn.ippo import IPPOConfig
from sparring.learn.maddpg import MADDPGConfig
from sparring.learn.offpolicy import OffPolicyConfig
from sparring.learn.selfplay import SelfPlayConfig
from sparring.settings import Range, check, from_table, override, read_toml, show

RECIPES = Path(__file__).resolve().parent.parent / "recipes"
"""The recipes that come with Sparring, one TOML file each."""
OTHERS = "ddpg, dqn, ippo or maddpg"
"""The algorithms for games other than Loong, in words."""


@dataclass(frozen=True, kw_only=True)
class LoongOptions:
    """What matches of Loong are played on."""

    maps: tuple[str, ...] = ("generated:0:4096",)
    """Maps to train on, each "generated:SEED:COUNT", a folder of map files, or a file. The judge's own never train."""


@dataclass(frozen=True, kw_only=True)
class MPEOptions:
    """Which of the particle environments is played, and how."""

    scenario: Literal[
        "simple_spread_v3",
        "simple_speaker_listener_v4",
        "simple_reference_v3",
        "simple_adversary_v3",
        "simple_tag_v3",
        "simple_push_v3",
        "simple_crypto_v3",
        "simple_world_comm_v3",
    ] = "simple_spread_v3"
    """The scenario, a module of the package mpe2."""
    continuous: bool = False
    """Forces and messages as numbers; false: choices, a direction and a word."""
    max_cycles: Annotated[int, Range(low=1)] = 25
    """Decisions after which a match is truncated."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A training run. A recipe file holds some of these keys; the others keep the defaults shown."""

    game: str = "tennis"
    """The game's name: tennis, mpe, loong, or that of the game given to `sparring.train(game=...)`."""
    algorithm: Literal["ddpg", "dqn", "ippo", "maddpg", "ppo"] = "ddpg"
    """The learner: ddpg (table ddpg) for tennis and games like it, dqn (table dqn) for games with discrete actions and
    for tennis on a grid, ippo (table ippo) for PPO on either kind, maddpg (table maddpg) for games of several agents
    that differ, ppo (table selfplay) for loong."""
    seed: Annotated[int, Range(low=0, high=2**62)] = 0
    """Decides first weights, serves, noise and minibatches: the same seed gives the same run."""
    lanes: Annotated[int, Range(low=1, high=65536)] = 1
    """Matches played side by side. More lanes gather experience faster per second, and older per update."""
    threads: Annotated[int, Range(low=1, high=1024)] = 2
    """CPU threads for networks and game. Another count rounds otherwise: runs are bit for bit equal at the same one."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where the networks live. Nets of a few hundred units are faster on a CPU than behind a GPU's launch times."""
    decisions: Annotated[int, Range(low=1)] = 1_000_000
    """Length of the run: decisions of one lane, summed over lanes."""
    solved_score: Annotated[float, Range(low=-1e9, high=1e9)] = 0.5
    """The run is solved when a mean over 100 matches first reaches this: of the better agent's score; in loong of the
    score against scripted players, 1 a win, 0.5 a draw."""
    stop_after_solved: Annotated[int, Range(low=0)] = 0
    """Stop this many matches after the run was solved; 0 trains on to the end."""
    save_seconds: Annotated[float, Range(low=0)] = 60.0
    """Seconds between checkpoints, the most that a kill can cost. The training itself does not depend on it."""
    save_updates: Annotated[int, Range(low=0)] = 0
    """Updates between checkpoints, where they come before those seconds are over; 0: time alone decides."""
    metrics_every: Annotated[int, Range(low=1)] = 1_000
    """Decisions between two rows of metrics.jsonl."""
    tennis: TennisOptions = field(default_factory=TennisOptions)
    ddpg: DDPGConfig = field(default_factory=DDPGConfig)
    against: AgainstConfig = field(default_factory=AgainstConfig)
    dqn: DQNConfig = field(default_factory=DQNConfig)
    ippo: IPPOConfig = field(default_factory=IPPOConfig)
    mpe: MPEOptions = field(default_factory=MPEOptions)
    maddpg: MADDPGConfig = field(default_factory=MADDPGConfig)
    loong: LoongOptions = field(default_factory=LoongOptions)
    selfplay: SelfPlayConfig = field(default_factory=SelfPlayConfig)


def load_recipe(recipe: str | Path) -> Recipe:
    """The recipe of that name (`tennis`) or file (`my.toml`, anything with a separator or ending in .toml).

    Raises SparringError: no such recipe (with the near names), not TOML, or a setting that is unknown or not allowed.
    """
    named = str(recipe)
    if isinstance(recipe, Path) or named.endswith(".toml") or os.sep in named:
        path = Path(recipe)
    else:
        path = RECIPES / f"{named}.toml"
        if not path.is_file():
            names = recipe_names()
            near = difflib.get_close_matches(named, names, n=1, cutoff=0.4)
            known = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}, or give a .toml file"
            raise SparringError(f"no recipe {named}: {known}")
    return cross_check(from_table(Recipe, read_toml(path), where=str(path)), where=str(path))


def recipe_names() -> list[str]:
    """The recipes that come with Sparring."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


def change_recipe(recipe: Recipe, changes: Mapping[str, Any], *, where: str) -> Recipe:
    """The recipe with some settings replaced, by dotted key or nested table, checked like a file."""
    return cross_check(override(recipe, changes, where=where), where=where)


def check_recipe(recipe: Recipe, *, where: str) -> Recipe:
    """The recipe, every setting and every relation between settings checked."""
    return cross_check(check(recipe, where=where), where=where)


def cross_check(recipe: Recipe, *, where: str) -> Recipe:
    """The recipe. Raises SparringError when settings that are allowed alone do not go together."""
    learner: Faults = []
    if recipe.algorithm == "ddpg":
        learner = [*_ddpg_faults(recipe), *_replay_faults(recipe, "ddpg", recipe.ddpg)]
    elif recipe.algorithm == "dqn":
        learner = [
            (not recipe.dqn.hidden, "dqn.hidden = []", "must have at least one layer"),
            (not recipe.dqn.levels, "dqn.levels = []", "must have at least one entry"),
            *_replay_faults(recipe, "dqn", recipe.dqn),
        ]
    elif recipe.algorithm == "maddpg":
        learner = [
            (not recipe.maddpg.hidden, "maddpg.hidden = []", "must have at least one layer"),
            *_replay_faults(recipe, "maddpg", recipe.maddpg),
        ]
    elif recipe.algorithm == "ippo":
        learner = [
            (not recipe.ippo.hidden, "ippo.hidden = []", "must have at least one layer"),
            _too_short(recipe, recipe.ippo.steps),
        ]
    for fault, what, must in (*_faults(recipe), *learner):
        if fault:
            raise SparringError(f"{where}: {what}: {must}")
    return recipe


Faults = list[tuple[bool, str, str]]
"""Whether something is wrong, what was given, and what it must be."""


def _faults(recipe: Recipe) -> Faults:
    selfplay, ppo = recipe.selfplay, recipe.selfplay.ppo
    loong = recipe.game == Loong.name
    unknown = [name for name in selfplay.opponents if name not in PLAYERS]
    return [
        (
            loong != (recipe.algorithm == "ppo"),
            f"algorithm = {show(recipe.algorithm)}",
            f"{recipe.game} needs {show('ppo') if loong else OTHERS}",
        ),
        (
            recipe.algorithm != "ddpg" and recipe.against.opponent != "itself",
            f"against.opponent = {show(recipe.against.opponent)}",
            'needs algorithm = "ddpg"',
        ),
        (not recipe.loong.maps, "loong.maps = []", 'must name maps, such as ["generated:0:4096"]'),
        (
            bool(unknown),
            f"selfplay.opponents = {show(selfplay.opponents)}",
            f"no player {''.join(unknown[:1])}: there are {', '.join(PLAYERS)}",
        ),
        (
            len(set(selfplay.opponents)) < len(selfplay.opponents),
            f"selfplay.opponents = {show(selfplay.opponents)}",
            "one is named twice",
        ),
        (
            selfplay.scripted > 0 and not selfplay.opponents,
            "selfplay.opponents = []",
            f"must name players, as selfplay.scripted is {selfplay.scripted:g}: there are {', '.join(PLAYERS)}",
        ),
        *(
            (len(ends) != 2, f"selfplay.ppo.{name} = {show(ends)}", "must be two numbers, for the start and the end")
            for name, ends in (("entropy", ppo.entropy), ("shaping", ppo.shaping))
        ),
        *([_too_short(recipe, ppo.steps)] if loong else []),
    ]


def _too_short(recipe: Recipe, steps: int) -> tuple[bool, str, str]:
    """Whether the run is over before its first update, which takes `steps` decisions of each lane."""
    least = recipe.lanes * steps
    return (
        recipe.decisions < least,
        f"decisions = {recipe.decisions}",
        f"must be at least {least}: an update takes {steps} of each of {recipe.lanes} lanes",
    )


def _ddpg_faults(recipe: Recipe) -> Faults:
    ddpg = recipe.ddpg
    return [
        (
            recipe.against.run != "" and recipe.against.opponent == "itself",
            f"against.run = {show(recipe.against.run)}",
            'must be empty where against.opponent is "itself"',
        ),
        (not ddpg.actor_hidden, "ddpg.actor_hidden = []", "must have at least one layer"),
        (not ddpg.critic_hidden, "ddpg.critic_hidden = []", "must have at least one layer"),
        (
            ddpg.actor_normalised > len(ddpg.actor_hidden),
            f"ddpg.actor_normalised = {ddpg.actor_normalised}",
            f"must be at most the {len(ddpg.actor_hidden)} layers of ddpg.actor_hidden",
        ),
        (
            ddpg.critic_normalised > len(ddpg.critic_hidden),
            f"ddpg.critic_normalised = {ddpg.critic_normalised}",
            f"must be at most the {len(ddpg.critic_hidden)} layers of ddpg.critic_hidden",
        ),
        (
            (ddpg.noise_sigma_low == 0) != (ddpg.noise_sigma == 0),
            f"ddpg.noise_sigma_low = {ddpg.noise_sigma_low}",
            f"must be 0 together with ddpg.noise_sigma, which is {ddpg.noise_sigma}: lanes go up in equal ratios",
        ),
    ]


def _replay_faults(recipe: Recipe, table: str, config: OffPolicyConfig) -> Faults:
    agents = Tennis.agents if recipe.game == Tennis.name and table != "maddpg" else 1
    at_once = recipe.lanes * agents * config.n_step
    return [
        (
            config.learn_from > config.buffer,
            f"{table}.learn_from = {config.learn_from}",
            f"must be at most {table}.buffer, which is {config.buffer}: learning would never begin",
        ),
        (
            config.batch > config.buffer,
            f"{table}.batch = {config.batch}",
            f"must be at most {table}.buffer, which is {config.buffer}",
        ),
        (
            at_once > config.buffer,
            f"{table}.buffer = {config.buffer}",
            f"must be at least {at_once}: a step of {recipe.lanes} lanes can end that many transitions",
        ),
    ]
