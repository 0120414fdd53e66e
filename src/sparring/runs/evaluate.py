"""Test play: how well a player does, without noise and without learning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparring.errors import SparringError
from sparring.games.api import AgentSpace, Decisions, Game, agent_spaces
from sparring.games.registry import make
from sparring.policies.team import Actors, action_size
from sparring.runs.learners import tennis_or_mpe_options
from sparring.runs.policy import TrainedPolicy, load

EPISODE_MATCHES = 10
"""The loop of the published Tennis recipe ends an episode after more matches than these,"""
EPISODE_DECISIONS = 2_500
"""or after this many decisions, and scores the sums (docs/tennis.md)."""
_RESAMPLES = 2_000
_EVEN = 1e-4
"""Scores nearer than this are a draw: sums of tenths in float32."""


class Actor(Protocol):
    """Answers observations, float32 [n, inputs], with actions, [n, ...]."""

    def act(self, observations: Tensor) -> Any: ...


Player = str | Path | Actor | Callable[[Tensor], Any]
"""A run's name or path, a policy, or a function from observations [n, inputs] to actions."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What test play showed.

    score:         mean over matches of the better agent's score: the official measure
    low, high:     its 95% interval (bootstrap over matches)
    agents:        each agent's mean score, by agent id
    length:        mean length of a match, in decisions
    capped:        share of the matches that a time limit cut
    episode_score: Tennis alone: mean over `episodes` of the better racket's sum over an episode of more than 10 rallies
                   or 2,500 decisions, the measure of the published curve; None without episodes
    wins, draws, losses, player_score, opponent_score: against an opponent, from the player's side; sides alternate. A
                   team's score is the mean of its agents'
    hash:          of the player's weights, None for a scripted player
    """

    player: str
    opponent: str | None
    game: str
    hash: str | None
    matches: int
    seed: int
    score: float
    low: float
    high: float
    agents: tuple[float, ...]
    length: float
    capped: float
    episodes: int
    episode_score: float | None
    wins: int | None = None
    draws: int | None = None
    losses: int | None = None
    player_score: float | None = None
    opponent_score: float | None = None

    def json(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self)


def evaluate(
    player: Player,
    *,
    opponent: Player | None = None,
    matches: int = 100,
    lanes: int = 50,
    seed: int = 1_000_000,
    episodes: int = 20,
    game: str | Callable[..., Game] | None = None,
    **options: Any,
) -> Evaluation:
    """Play matches and report; the same arguments give the same report.

    player:   plays every agent, or one team when there is an `opponent`
    opponent: plays the other team, team 1 in even lanes and team 0 in odd ones, so that no side's luck counts
    matches:  how many; each lane plays its share of them, so that short matches are not preferred
    lanes:    at once
    seed:     of the serves; the default is far from the seeds that runs train on
    episodes: Tennis alone: how many multi-rally episodes to play besides, 0 for none
    game, options: default: the game and options the player was trained on, or tennis as shipped

    Raises SparringError: unknown run, a player that does not fit the game, an opponent in a game without two teams.
    """
    for name, value, least in (
        ("matches", matches, 1),
        ("lanes", lanes, 1),
        ("seed", seed, 0),
        ("episodes", episodes, 0),
    ):
        if value < least:
            raise SparringError(f"{name} = {value}: must be at least {least}")
    player, opponent = _ready(player), None if opponent is None else _ready(opponent)
    refuse_other_game(player, opponent)
    if isinstance(player, TrainedPolicy):
        game = game or player.game
        options = (tennis_or_mpe_options(player.recipe) if game == player.game else {}) | options
    game = game or "tennis"
    lanes = min(lanes, matches)
    table = make(game, lanes=lanes, seed=seed, **options)
    if opponent is not None:
        needs_two_teams(table)
    refuse_other_agents(table, player, opponent)
    scores, lengths, capped, sides, teams = _matches(table, player, opponent, matches)
    best = scores.max(axis=1)
    low, high = _interval(best, seed)
    episode_score = None
    if table.name != "tennis":
        episodes = 0
    if episodes:
        episode_score = _episodes(make(game, lanes=episodes, seed=seed, **options), player, opponent)
    against: dict[str, Any] = {}
    if opponent is not None:
        by_team = np.stack([scores[:, teams == team].mean(axis=1) for team in range(2)], axis=1)
        mine = np.take_along_axis(by_team, sides[:, None], axis=1)[:, 0]
        other = np.take_along_axis(by_team, 1 - sides[:, None], axis=1)[:, 0]
        against = {
            "wins": int((mine > other + _EVEN).sum()),
            "draws": int((abs(mine - other) <= _EVEN).sum()),
            "losses": int((mine < other - _EVEN).sum()),
            "player_score": float(mine.mean()),
            "opponent_score": float(other.mean()),
        }
    return Evaluation(
        player=player_name(player),
        opponent=None if opponent is None else player_name(opponent),
        game=table.name,
        hash=player.hash if isinstance(player, TrainedPolicy) else None,
        matches=matches,
        seed=seed,
        score=float(best.mean()),
        low=low,
        high=high,
        agents=tuple(scores.mean(axis=0).tolist()),
        length=float(lengths.mean()),
        capped=float(capped.mean()),
        episodes=episodes,
        episode_score=episode_score,
        **against,
    )


def needs_two_teams(game: Game) -> None:
    """Raises SparringError where there is nothing to play against an opponent."""
    if game.teams != 2:
        raise SparringError(f"{game.name} has {game.teams} teams: an opponent needs a game of 2")


def refuse_other_game(player: Any, opponent: Any) -> None:
    """Raises SparringError for runs of different games."""
    both = isinstance(player, TrainedPolicy) and isinstance(opponent, TrainedPolicy)
    if both and opponent.game != player.game:
        raise SparringError(f"run {player.name} plays {player.game}, run {opponent.name} plays {opponent.game}")


def refuse_other_agents(game: Game, *players: Any) -> None:
    """Raises SparringError for a run with an actor for each agent, where those of the game are others."""

    def sizes(spaces: Sequence[AgentSpace]) -> list[tuple[int, int]]:
        return [(space.observation, action_size(space)) for space in spaces]

    for player in players:
        if isinstance(player, TrainedPolicy) and isinstance(player.actor, Actors):
            own, there = sizes(player.actor.spaces), sizes(agent_spaces(game))
            if own != there:
                raise SparringError(
                    f"run {player.name} was trained with agents of other sizes than those of this {game.name} "
                    f"(what each sees and does: {own}, here {there}): name a run of the same game"
                )


def player_name(player: Player) -> str:
    """What to call a player in reports."""
    if isinstance(player, str | Path):
        return Path(player).name
    return str(getattr(player, "name", None) or getattr(player, "__name__", None) or type(player).__name__)


def _ready(player: Player) -> Actor | Callable[[Tensor], Any]:
    return load(player) if isinstance(player, str | Path) else player


def _answer(player: Actor | Callable[[Tensor], Any], rows: Decisions) -> Tensor:
    act: Any = getattr(player, "act", player)
    with torch.no_grad():
        actions = torch.as_tensor(act(rows if isinstance(player, TrainedPolicy) else rows.obs))
    if len(actions) != len(rows):
        raise SparringError(f"player {player_name(player)} gave {len(actions)} actions for {len(rows)} observations")
    return actions


def answers(rows: Decisions, player: Any, opponent: Any) -> Tensor:
    """Actions for the rows, as the game takes them; an opponent plays team 1 in even lanes and team 0 in odd ones."""
    if opponent is None:
        return _answer(player, rows)
    own = rows.team == rows.lane % 2
    mine = _answer(player, rows[own])
    actions = mine.new_zeros((len(rows), *mine.shape[1:]))
    actions[own] = mine
    theirs = _answer(opponent, rows[~own])
    if theirs.shape[1:] != mine.shape[1:]:
        raise SparringError(
            f"player {player_name(player)} answers with actions of shape {list(mine.shape[1:])}, "
            f"{player_name(opponent)} with {list(theirs.shape[1:])}: they do not play the same game"
        )
    actions[~own] = theirs.to(mine.dtype)
    return actions


def _matches(
    game: Game, player: Any, opponent: Any, matches: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Of each match, in the order of lanes: scores [matches, agents], length, cut by the time limit, player's team; and
    each agent's team, -1 of those that never acted."""
    share = [matches // game.lanes + (lane < matches % game.lanes) for lane in range(game.lanes)]
    played: list[list[tuple[list[float], int, bool]]] = [[] for _ in share]
    teams = np.full(game.agents, -1)
    while any(len(done) < wanted for done, wanted in zip(played, share, strict=True)):
        rows = game.decisions()
        teams[rows.agent.numpy()] = rows.team.numpy()
        outcome = game.act(answers(rows, player, opponent))
        ended = zip(
            outcome.ended.tolist(),
            outcome.score.tolist(),
            outcome.length.tolist(),
            outcome.truncated.tolist(),
            strict=True,
        )
        for lane, score, length, truncated in ended:
            if len(played[lane]) < share[lane]:
                played[lane].append((score, length, truncated))
        if len(outcome.ended):
            game.restart(outcome.ended)  # the usual loop resets after every match, also where the game would go on
    ended_matches = [(lane % 2, *match) for lane, done in enumerate(played) for match in done]
    sides, scores, lengths, capped = zip(*ended_matches, strict=True)
    return np.array(scores), np.array(lengths), np.array(capped), np.array(sides), teams


def _episodes(game: Game, player: Any, opponent: Any) -> float:
    """Mean of the better racket's sum over one multi-rally episode a lane."""
    sums = torch.zeros(game.lanes, game.agents, dtype=torch.float64)
    ended = torch.zeros(game.lanes, dtype=torch.int64)
    running = torch.ones(game.lanes, dtype=torch.bool)
    for _ in range(EPISODE_DECISIONS):
        outcome = game.act(answers(game.decisions(), player, opponent))
        paid = torch.zeros_like(sums)
        paid[outcome.lane, outcome.agent] = outcome.reward.to(torch.float64)
        sums[running] += paid[running]
        ended[outcome.ended] += 1
        running &= ended <= EPISODE_MATCHES
        if not running.any():
            break
    return float(sums.max(dim=1).values.mean())


def _interval(values: NDArray[np.float64], seed: int) -> tuple[float, float]:
    """The bootstrap's 95% interval of the mean (Efron 1979, percentile method)."""
    random = np.random.default_rng(seed)
    # One after another: of all at once a hundred thousand matches would fill the memory.
    means = [random.choice(values, size=len(values)).mean() for _ in range(_RESAMPLES)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)
