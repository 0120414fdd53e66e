"""The learners that a recipe can name, and what a run needs of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from sparring.errors import SparringError
from sparring.games.api import Game
from sparring.games.loong import Loong
from sparring.learn.against import NETWORKS, Against
from sparring.learn.ddpg import DDPG
from sparring.learn.dqn import DQN
from sparring.learn.ippo import IPPO
from sparring.learn.maddpg import MADDPG
from sparring.learn.matches import EpisodeRow, LoongMatchRow, MatchRow
from sparring.learn.offpolicy import OffPolicy
from sparring.learn.selfplay import SelfPlay
from sparring.levels.pool import MapPool, named_maps
from sparring.levels.shipped import SHIPPED
from sparring.runs import checkpoint
from sparring.runs.folder import find_run
from sparring.runs.metrics import LoongMeasure, Measure
from sparring.runs.recipe import OTHERS, Recipe
from sparring.runs.segments import Replay
from sparring.settings import flat, show


class Learner(Protocol):
    """What trains. `state` holds everything that `load_state` needs to go on, but the rows of a replay."""

    episodes_ended: list[EpisodeRow]
    """Episodes of several matches that the last `step` ended."""

    @property
    def decisions(self) -> int: ...
    @property
    def updates(self) -> int: ...

    def step(self) -> Sequence[MatchRow | LoongMatchRow]:
        """Play on and learn. Returns the matches that ended."""

    def losses(self) -> dict[str, float]:
        """What the last update told."""

    def state(self) -> dict[str, Any]: ...
    def load_state(self, state: dict[str, Any]) -> None: ...


def game_options(recipe: Recipe, say: Callable[[str], None]) -> dict[str, Any]:
    """What the recipe's game is made with, besides lanes and seed. say: hears of what takes long."""
    if recipe.game == "loong":
        options = {"maps": training_maps(recipe.loong.maps, say), "observe": "inputs", "threads": recipe.threads}
        return options | {"device": recipe.device}
    if recipe.game == "tennis":
        return tennis_or_mpe_options(recipe) | {"threads": recipe.threads}
    return tennis_or_mpe_options(recipe)


def tennis_or_mpe_options(recipe: Recipe) -> dict[str, Any]:
    """Of `game_options` those that decide how tennis or mpe is played; of other games none."""
    tables: dict[str, Any] = {"tennis": recipe.tennis, "mpe": recipe.mpe}
    return dict(flat(tables[recipe.game])) if recipe.game in tables else {}


def training_maps(sources: Sequence[str], say: Callable[[str], None] = lambda line: None) -> MapPool:
    """The maps that these name, each once. Generated ones are kept in the cache folder.

    sources: each "generated:SEED:COUNT", a folder or a file
    say:     hears, every 500 maps, of those that are generated now

    Raises SparringError for a map that ships with the judge, one that the judge refuses, and where nothing is there.
    """

    def made(number: int) -> None:
        if number % 500 == 0:
            say(f"generating maps, about 50 a second, to be kept for the next time: {number:,} so far")

    maps = {each.hash: each for source in sources for each in named_maps(source, progress=made)}
    for shipped in SHIPPED.keys() & maps.keys():
        raise SparringError(
            f"loong.maps: {maps[shipped].source} is {SHIPPED[shipped]}, which ships with the judge: no run trains on "
            "those, so that they can tell how well training carries over; take it out"
        )
    return MapPool(maps=tuple(maps.values()))


def make_learner(recipe: Recipe, game: Game) -> Learner:
    """The recipe's learner before its first step. Raises SparringError for a game that it cannot learn."""
    if recipe.algorithm == "ppo":
        if not isinstance(game, Loong):
            raise SparringError(f'algorithm = "ppo": it learns loong alone; {game.name} needs {OTHERS}')
        return SelfPlay(game, recipe.selfplay, seed=recipe.seed, decisions=recipe.decisions, device=recipe.device)
    if recipe.algorithm == "maddpg":
        return MADDPG(game, recipe.maddpg, seed=recipe.seed, device=recipe.device)
    if recipe.algorithm == "ippo":
        return IPPO(game, recipe.ippo, seed=recipe.seed, decisions=recipe.decisions, device=recipe.device)
    if recipe.algorithm == "dqn":
        return DQN(game, recipe.dqn, seed=recipe.seed, device=recipe.device)
    if recipe.against.opponent != "itself":
        return Against(game, recipe.ddpg, recipe.against, seed=recipe.seed, device=recipe.device)
    return DDPG(game, recipe.ddpg, seed=recipe.seed, device=recipe.device)


def begin(learner: Learner) -> None:
    """What a learner takes from another run before its first step.

    Raises SparringError where that run is unknown, or has other networks.
    """
    if not isinstance(learner, Against) or not (run := learner.against.run):
        return
    path = find_run(run).checkpoint
    state = checkpoint.read(path)["learner"]
    own = learner.state()
    if unfit := checkpoint.misfit({name: state.get(name) for name in NETWORKS}, {name: own[name] for name in NETWORKS}):
        raise SparringError(f"against.run = {show(run)}: {path}: {unfit}: it must have the networks of this recipe")
    learner.start_from(state)


def replay_of(learner: Learner) -> Replay | None:
    """The learner's replay buffer, where it has one."""
    return learner.replay if isinstance(learner, OffPolicy) else None


def described(learner: Learner) -> Iterator[str]:
    """Lines that tell a person what is trained."""
    if isinstance(learner, SelfPlay):
        weights = (sum(each.numel() for each in net.parameters()) / 1e6 for net in (learner.teacher, learner.critic))
        names = ", ".join(learner.config.opponents) or "nobody"
        yield "teacher {} of {:.2f} M weights, critic of {:.2f} M".format(learner.config.preset, *weights)
        share = f"{learner.config.scripted:.0%} of the matches against {names}"
        yield f"{len(learner.game.maps):,} maps; {share}, the others against itself"
    if isinstance(learner, Against):
        against = learner.against
        pace = f", a share {against.follow:g} at each update" if against.opponent == "following" else ""
        start = f"both start from run {against.run}" if against.run else "both start untrained"
        yield f"plays one racket; opponent: {against.opponent}{pace}; {start}"


def make_measure(recipe: Recipe) -> Measure:
    """What counts the recipe's matches."""
    if recipe.game == "loong":
        return LoongMeasure(recipe.solved_score)
    return Measure(recipe.solved_score, words=words_of(recipe.game))


def words_of(game: str) -> tuple[str, str, str]:
    """What the game calls an agent, a match, and several."""
    return ("racket", "rally", "rallies") if game == "tennis" else ("agent", "match", "matches")


def title_of(recipe: Recipe) -> str:
    """The game's name on a picture."""
    return recipe.mpe.scenario if recipe.game == "mpe" else recipe.game.capitalize()
