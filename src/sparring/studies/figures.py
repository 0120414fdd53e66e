"""The figures that a tutorial of Tennis needs, each drawn from code or from a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from sparring.errors import SparringError
from sparring.games.tennis import OBSERVATION, Tennis
from sparring.learn.ddpg import DDPG, STREAM_REPLAY
from sparring.learn.dqn import DQN
from sparring.pictures.chart import COLOURS, FAINT, INK, PAPER, new_chart, new_charts, save_chart
from sparring.pictures.curve import draw_curve
from sparring.runs.folder import find_run
from sparring.runs.metrics import read_matches
from sparring.runs.policy import TrainedPolicy, load
from sparring.runs.reading import one_thread, read_learner
from sparring.runs.recipe import load_recipe

FRAME = ("x", "y", "vx", "vy", "ball x", "ball y", "vx again", "vy again")
"""The eight numbers of a frame; the last two repeat the racket's own velocity (docs/tennis.md)."""
RALLIES = 12
"""Of the reward ledger."""
_UPDATES = 400
"""Shown of a weight and its slow copy."""
_MOST_CLEARS = 8
"""Of the rallies whose scores are shown: in higher ones 0.01 could not be seen."""


@dataclass(frozen=True, kw_only=True)
class _Source:
    """The run that figures are drawn from, and a run of DQN where there is one."""

    run: str | Path
    name: str
    learner: DDPG
    policy: TrainedPolicy
    values: DQN | None = field(default=None)


def figures(run: str | Path, *, out: Path, dqn: str | Path | None = None, only: Sequence[str] = ()) -> list[Path]:
    """Draw figures into the folder `out`, PNG; returns their paths.

    run:  of recipe tennis, or another one of DDPG on Tennis
    dqn:  of recipe tennis-dqn; without one the figure of choices shows an untrained network
    only: names of figures, such as "frames"; default: all

    Raises SparringError: no such figure, unknown run, another game or algorithm, an empty replay, a file that cannot be
    written.
    """
    for title in only:
        if title not in _FIGURES:
            raise SparringError(f"no figure {title}: there are {', '.join(_FIGURES)}")
    _, learner = read_learner(run)
    name = find_run(run).name
    if not isinstance(learner, DDPG) or learner.game.observation.shape != (OBSERVATION,):
        raise SparringError(f"run {name} is none of DDPG on Tennis: sparring study figures draws those")
    if not len(learner.replay):
        raise SparringError(f"run {name} has nothing in its replay yet: train it longer")
    values = None
    if dqn is not None:
        _, other = read_learner(dqn)
        if not isinstance(other, DQN) or other.game.observation.shape != (OBSERVATION,):
            raise SparringError(f"run {find_run(dqn).name} is none of DQN on Tennis")
        values = other
    source = _Source(run=run, name=name, learner=learner, policy=load(run), values=values)
    paths = []
    with one_thread():
        for title, draw in _FIGURES.items():
            if only and title not in only:
                continue
            path = out / f"{title}.png"
            draw(source, path)
            paths.append(path)
    return paths


class _Counting(DDPG):
    """DDPG whose updates are counted and not made: the schedule alone."""

    def _update(self) -> None:
        self.updates += 1


def _timeline(source: _Source, path: Path) -> None:
    """Acting, storing and bursts of the published schedule, as the learner itself makes them."""
    config = load_recipe("tennis-classic").ddpg
    learner = _Counting(Tennis(), replace(config, actor_hidden=(8,), actor_normalised=0, buffer=10_000), seed=0)
    stored, updates = [0], [0]
    for _ in range(200):
        learner.step()
        stored.append(len(learner.replay))
        updates.append(learner.updates)
    figure, axes = new_chart("Act, remember, learn in bursts", xlabel="decisions of the court", ylabel="so far")
    decisions = np.arange(len(stored))
    axes.plot(decisions, stored, color=COLOURS[0], lw=2.2, label="steps stored: two at every decision, one per racket")
    axes.step(decisions, updates, where="post", color=COLOURS[1], lw=2.2, label="updates made")
    for at in (np.flatnonzero(np.diff(updates)) + 1).tolist():
        axes.axvline(at, color=COLOURS[1], alpha=0.25, lw=6)
        axes.text(
            at - 3, updates[at], f"{updates[at] - updates[at - 1]} updates", color=COLOURS[1], ha="right", va="bottom"
        )
    _legend(figure)
    save_chart(figure, path)


def _frames(source: _Source, path: Path) -> None:
    """What a racket sees: three frames in a row, and the columns that say nothing new."""
    game = Tennis()
    for _ in range(8):
        rows = game.decisions()
        game.act(source.policy.act(rows))
    stack = game.decisions().obs[0].view(3, len(FRAME)).numpy()
    figure, axes = _blank("Three frames of eight numbers are one observation of 24", (10.0, 3.4))
    for row, when in enumerate(("two decisions ago", "one decision ago", "now")):
        axes.text(-0.15, 2 - row, when, ha="right", va="center", color=INK, fontsize=10)
        for column, value in enumerate(stack[row].tolist()):
            repeats = column >= 6
            _box(axes, column + 0.5, 2 - row, f"{value:.2f}", COLOURS[4] if repeats else COLOURS[0], (0.9, 0.7))
    for column, what in enumerate(FRAME):
        axes.text(column + 0.5, 2.65, what, ha="center", color=INK, fontsize=10)
    same = bool((stack[:, 6:] == stack[:, 2:4]).all())
    note = "repeat vx and vy: the fault of the 2018 binary" if same else "the true velocity of the ball"
    axes.text(7, -0.7, note, ha="center", color=COLOURS[4], fontsize=10)
    axes.set_xlim(-1.9, 8.1)
    axes.set_ylim(-1.0, 3.0)
    save_chart(figure, path)


def _ledger(source: _Source, path: Path) -> None:
    """What both rackets are paid in a stretch of rallies with noise, event by event."""
    game = Tennis(seed=1)
    sums = [np.zeros(2)]
    ends: list[int] = []
    events: list[tuple[int, int, float]] = []
    noise = torch.Generator().manual_seed(0)
    while len(ends) < RALLIES and len(sums) < 1500:
        rows = game.decisions()
        outcome = game.act(_noisy(source.policy, 0.5, noise, rows.obs))
        paid = outcome.reward.numpy()[np.argsort(outcome.agent.numpy())][::-1]  # racket A first
        sums.append(sums[-1] + paid)
        events += [(len(sums) - 1, side, amount) for side, amount in enumerate(paid.tolist()) if amount]
        if len(outcome.ended):
            ends.append(len(sums) - 1)
            game.restart(outcome.ended)
    figure, axes = new_chart(f"What {len(ends)} rallies paid", xlabel="decisions", ylabel="sum of rewards")
    for side, name in enumerate("AB"):
        clears = sum(1 for _, who, amount in events if who == side and amount > 0.05)
        drops = sum(1 for _, who, amount in events if who == side and amount < 0.05)
        label = f"racket {name}: {clears} x 0.1 for a ball over the net, {drops} x -0.01, sum {sums[-1][side]:.2f}"
        axes.step(range(len(sums)), [each[side] for each in sums], where="post", color=COLOURS[side], lw=2, label=label)
    for end in ends:
        axes.axvline(end, color=FAINT, lw=0.8, ls=":")
    _legend(figure, columns=1)
    save_chart(figure, path)


def _target(source: _Source, path: Path) -> None:
    """One stored step, and the number that the critic is moved towards."""
    learner = source.learner
    rows = learner.replay.sample(4096, seed=0, stream=STREAM_REPLAY, counter=0)
    chosen = int(torch.argmax((rows["reward"] > 0.5).float() * (rows["discount"] > 0).float()))
    step = {name: column[chosen : chosen + 1] for name, column in rows.items()}
    with torch.no_grad():
        next_value = float(_lower(learner.critic_target(step["next_obs"], learner.actor_target(step["next_obs"]))))
        learner.critic.eval()
        now = float(_lower(learner.critic(step["obs"], step["action"][:, : learner.action_size])))
        learner.critic.train()
    reward, discount = float(step["reward"]), float(step["discount"])
    goal = reward + discount * next_value
    n, scale = learner.config.n_step, learner.config.reward_scale
    figure, axes = _blank("One stored step becomes one number to learn", (10.0, 3.6))
    cells = (
        (f"{reward:.3f}", f"r: {n} decisions' rewards,\ntimes {scale:g}"),
        (f"{discount:.4f}", f"discount {learner.config.gamma:g}^k,\n0 at an end"),
        (f"{next_value:.3f}", "target critic of what\nthe target actor does next"),
        (f"{goal:.3f}", "y: what the critic\nis moved towards"),
        (f"{now:.3f}", f"what it says now:\nTD error {goal - now:+.3f}"),
    )
    for place, (number, what) in enumerate(cells):
        _box(axes, 2 * place + 1, 1.2, number, COLOURS[1] if place == 3 else COLOURS[0], (1.5, 0.8))
        axes.text(2 * place + 1, 0.35, what, ha="center", va="center", color=INK, fontsize=9.5)
    for place, sign in enumerate(("+", "*", "=", "vs")):
        axes.text(2 * place + 2, 1.2, sign, ha="center", va="center", color=INK, fontsize=14)
    axes.set_xlim(0, 10)
    axes.set_ylim(-0.1, 2.0)
    save_chart(figure, path)


def _slow_copy(source: _Source, path: Path) -> None:
    """The weight that moves most, and its copy in the target network, over real updates."""
    learner = source.learner
    first = _first_weights(learner)
    weight, slow = learner.critic.get_parameter(first), learner.critic_target.get_parameter(first)
    before = weight.detach().clone()
    pairs = []
    for _ in range(_UPDATES):
        learner._update()
        pairs.append((weight.detach().clone(), slow.detach().clone()))
    most = int((weight.detach() - before).abs().argmax())
    tau = learner.config.tau
    half = np.log(0.5) / np.log(1 - tau)
    title = f"One weight and its slow copy: tau {tau:g}, half of the way in {half:,.0f} updates"
    figure, axes = new_chart(title, xlabel="updates", ylabel="weight")
    axes.plot([float(a.flatten()[most]) for a, _ in pairs], color=COLOURS[0], lw=1.4, label="in the critic")
    axes.plot([float(b.flatten()[most]) for _, b in pairs], color=COLOURS[1], lw=2.4, label="in the target critic")
    _legend(figure)
    save_chart(figure, path)


def _curve(source: _Source, path: Path) -> None:
    """Every rally's score and the mean over a hundred."""
    draw_curve({source.name: read_matches(find_run(source.run).matches)}, path)


def _clears(source: _Source, path: Path) -> None:
    """What a rally pays the racket that drops the ball and the other one, by the balls they got over the net."""
    noise = torch.Generator().manual_seed(0)
    scores: list[float] = []
    for size in (0.3, 0.6):  # so that rallies of all lengths are among them
        rallies = _rally_scores(partial(_noisy, source.policy, size, noise), 40)
        scores += [score for score in rallies if round(10 * score) <= _MOST_CLEARS]
    figure, axes = new_chart("Score of a rally by balls over the net", xlabel="balls over the net", ylabel="score")
    clears = np.arange(_MOST_CLEARS + 1)
    axes.plot(clears, 0.1 * clears, color=COLOURS[0], lw=1.6, label="the other racket: 0.1 n")
    axes.plot(clears, 0.1 * clears - 0.01, color=COLOURS[1], lw=1.6, label="the racket that drops it: 0.1 n - 0.01")
    axes.scatter(
        [round(10 * score) for score in scores],
        scores,
        s=26,
        color=INK,
        alpha=0.5,
        lw=0,
        label="real rallies, short ones",
    )
    axes.axhline(0.5, color=FAINT, lw=1, ls=(0, (5, 3)))
    axes.text(_MOST_CLEARS, 0.5, "solved, as a mean", ha="right", va="bottom", color=FAINT)
    _legend(figure)
    save_chart(figure, path)


def _noisy(policy: TrainedPolicy, size: float, noise: torch.Generator, obs: torch.Tensor) -> torch.Tensor:
    action = policy.act(obs)
    return (action + size * torch.randn(action.shape, generator=noise)).clamp(-1.0, 1.0)


def _rally_scores(act: Callable[[torch.Tensor], torch.Tensor], rallies: int) -> list[float]:
    """Both rackets' scores of the first rally on each of so many courts."""
    game = Tennis(lanes=rallies, seed=1_000_000)
    scores: dict[int, list[float]] = {}
    while len(scores) < rallies:
        outcome = game.act(act(game.decisions().obs))
        for lane, score in zip(outcome.ended.tolist(), outcome.score.tolist(), strict=True):
            scores.setdefault(lane, score)
    return [score for both in scores.values() for score in both]


def _inputs(source: _Source, path: Path) -> None:
    """What a critic of one racket's own sees, and what one that sees both is given."""
    own = source.learner.critic.get_parameter(_first_weights(source.learner)).shape[1]
    obs, actions = OBSERVATION, source.learner.action_size
    figure, axes = _blank("What a critic is told", (10.0, 3.4))
    for row, (name, parts) in enumerate(
        (
            (f"each racket's own: {own} numbers", (("own view", obs), ("own action", actions))),
            (
                f"a central one (MADDPG): {2 * (obs + actions)} numbers",
                (("view of A", obs), ("view of B", obs), ("action of A", actions), ("action of B", actions)),
            ),
        )
    ):
        left = 0.0
        axes.text(0, 1.62 - row * 1.3, name, color=INK, fontsize=11, fontweight="bold")
        for index, (what, size) in enumerate(parts):
            width = 0.12 * size if size > 2 else 1.3
            _box(axes, left + width / 2, 1.2 - row * 1.3, f"{what}: {size}", COLOURS[index % 4], (width - 0.08, 0.5))
            left += width
    axes.set_xlim(-0.1, 8.6)
    axes.set_ylim(-0.6, 2.0)
    save_chart(figure, path)


def _one_action(source: _Source, path: Path) -> None:
    """One view, three ways to an action: DQN's list of values, DDPG's two numbers, self-play's one actor for both."""
    values = source.values or DQN(Tennis(), load_recipe("tennis-dqn").dqn, seed=0)
    game = Tennis(seed=3)
    for _ in range(10):
        game.act(source.policy.act(game.decisions()))
    rows = game.decisions()
    with torch.no_grad():
        rated = values.q_target(rows.obs)[0].tolist()
        both = source.policy.act(rows)
    assert values.actions is not None
    titles = ("DQN: rate every choice, play the best", "DDPG: the actor answers", "Self-play: one actor, both views")
    figure, panels = new_charts(titles, xlabels=("value", "action", "action"), ylabel="")
    names = [f"run {run:+.1f}{', jump' if jump > 0.5 else ''}" for run, jump in values.actions.tolist()]
    best = int(np.argmax(rated))
    colours = [COLOURS[1] if index == best else COLOURS[0] for index in range(len(rated))]
    panels[0].barh(range(len(rated)), rated, color=colours)
    for index, name in enumerate(names):
        panels[0].text(min(0, *rated), index, f"{name} ", ha="right", va="center", fontsize=8, color=INK)
    for axes, rackets in ((panels[1], (0,)), (panels[2], (0, 1))):
        bars = [(f"{'BA'[racket]}: {what}", float(both[racket, number]), COLOURS[racket * 2])
                for racket in rackets for number, what in enumerate(("run", "jump"))]  # fmt: skip
        axes.barh([2.5 * place for place in range(len(bars))], [value for _, value, _ in bars],
                  color=[colour for _, _, colour in bars], height=1.4)  # fmt: skip
        for place, (name, value, _) in enumerate(bars):
            axes.text(-1.02, 2.5 * place, f"{name} {value:+.2f} ", ha="right", va="center", fontsize=9, color=INK)
        axes.set_xlim(-1, 1)
    for axes in panels:
        axes.set_yticks([])
        axes.xaxis.set_major_formatter("{x:g}")
    save_chart(figure, path)


_FIGURES: dict[str, Callable[[_Source, Path], None]] = {
    "timeline": _timeline,
    "frames": _frames,
    "ledger": _ledger,
    "target": _target,
    "curve": _curve,
    "clears": _clears,
    "critic-inputs": _inputs,
    "one-action": _one_action,
    "slow-copy": _slow_copy,  # the last one: it trains the learner on
}


def _first_weights(learner: DDPG) -> str:
    """The name of the critic's first layer of weights."""
    return next(iter(dict(learner.critic.named_parameters())))


def _lower(value: torch.Tensor) -> torch.Tensor:
    """Of two critics the lower value."""
    return value.amin(dim=0) if value.ndim == 2 else value


def _legend(figure: Figure, columns: int = 3) -> None:
    figure.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize=9.5, labelcolor=INK)


def _blank(title: str, inches: tuple[float, float]) -> tuple[Figure, Axes]:
    """A chart without axes, to put boxes in."""
    figure, axes = new_chart(title, xlabel="", ylabel="", inches=inches)
    axes.grid(visible=False)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines["bottom"].set_visible(False)
    return figure, axes


def _box(axes: Axes, x: float, y: float, text: str, colour: str, size: tuple[float, float]) -> None:
    width, height = size
    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2), width, height, boxstyle="round,pad=0,rounding_size=0.08",
            facecolor=PAPER, edgecolor=colour, lw=1.6,
        )
    )  # fmt: skip
    axes.text(x, y, text, ha="center", va="center", color=INK, fontsize=10)
