"""How wrong a stored rally becomes while the other side learns, from runs against an opponent (docs/staleness.md).

A stored step says: in this state, after this action, that much was paid and that is what followed. It was true against
the opponent of its time. A critic that is fitted to rallies of now, learner and opponent as they are, is the judge: the
TD error that it finds in steps of some age, against the one that it finds in new rallies which it was not fitted to.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray
from torch import Tensor, nn

from sparring.errors import SparringError
from sparring.files import refuse_place, written_beside
from sparring.learn.against import Against
from sparring.learn.ddpg import DDPG
from sparring.learn.offpolicy import averaged_tensors
from sparring.learn.replay import Replay
from sparring.pictures.chart import COLOURS, FAINT, INK, new_charts, save_chart
from sparring.runs.folder import find_run
from sparring.runs.reading import one_thread, read_learner

STREAM_FIT = 9
"""Of the counter-based generator: minibatches of the judge."""
_AGES = 12
"""Past opponents that play."""
_SERVES = 2_000_000
"""Scene of the first court in which past opponents play; far from those that runs train on."""
_BATCH, _LR, _TAU = 256, 1e-3, 5e-3
_BLOCK_STEPS = 100
"""Decisions of all lanes that the bootstrap draws as one: steps of a rally resemble each other."""
_RESAMPLES = 1_000


@dataclass(frozen=True, kw_only=True)
class Point:
    """at: age in updates, or a buffer's size in steps; ratio: TD error there against that of new rallies, 1 where what
    is stored is as good as new; low, high: its 95% interval."""

    at: float
    ratio: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class RunStaleness:
    """What one run shows.

    opponent:    frozen, following or ladder; follow: the share of a following one
    updates:     how long it had learnt
    error:       mean absolute TD error of new rallies that the judge was not fitted to, in points of the game
    stored:      by age, of the steps in its replay
    opponent_of: by age, of new rallies of the learner as it is now against the opponent as it was then: what its change
                 alone does
    change:      by age, mean absolute difference of the opponent's actions then and now, where the learner stands now
    buffers:     by size, of a replay that had held so many of the newest steps
    """

    run: str
    opponent: str
    follow: float
    seed: int
    updates: int
    error: float
    stored: tuple[Point, ...]
    opponent_of: tuple[Point, ...]
    change: tuple[tuple[float, float], ...]
    buffers: tuple[Point, ...]


@dataclass(frozen=True, kw_only=True)
class GroupStaleness:
    """Runs that differ only in their seed: means over runs, with 95% intervals of the mean (bootstrap over runs)."""

    name: str
    runs: tuple[str, ...]
    stored: tuple[Point, ...]
    opponent_of: tuple[Point, ...]
    change: tuple[tuple[float, float], ...]
    buffers: tuple[Point, ...]


@dataclass(frozen=True, kw_only=True)
class Staleness:
    """The whole study; `json` is what its data file holds."""

    runs: tuple[RunStaleness, ...]
    groups: tuple[GroupStaleness, ...]

    def json(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self)


def staleness(
    runs: Sequence[str | Path],
    *,
    out: Path | None = None,
    fresh: int = 40_000,
    fit: int = 3_000,
    width: int = 1_000,
    sizes: Sequence[int] = (10_000, 20_000, 40_000, 80_000, 160_000),
    say: Callable[[str], None] = lambda line: None,
) -> Staleness:
    """Measure some runs that were trained against an opponent, and draw them.

    out:   the picture, PNG; the data lie beside it as JSON
    fresh: steps of new rallies: half to fit the judge to, half to compare with
    fit:   updates of the judge
    width: updates that a slice of ages spans
    sizes: of buffers
    say:   hears which run is looked at

    Raises SparringError: unknown run, one without an opponent of its own or with TD3, a file that cannot be written.
    """
    if not runs:
        raise SparringError("sparring study staleness: name runs, such as one of recipe tennis-frozen")
    for name, value, least in (("fresh", fresh, 1_000), ("fit", fit, 1), ("width", width, 1)):
        if value < least:
            raise SparringError(f"{name} = {value}: must be at least {least}")
    if out is not None:
        refuse_place(out)
        if out.suffix == ".json":
            raise SparringError(f"out = {out}: that is where the data will lie: give the picture another ending")
    found = []
    with one_thread():
        for number, run in enumerate(runs, start=1):
            say(f"run {number} of {len(runs)}: {Path(run).name}")
            found.append(_measure(run, fresh=fresh, fit=fit, width=width, sizes=sizes))
    groups: dict[str, list[RunStaleness]] = {}
    for each in found:
        groups.setdefault(_label(each), []).append(each)
    study = Staleness(runs=tuple(found), groups=tuple(_group(name, same) for name, same in groups.items()))
    if out is not None:
        with written_beside(out.with_suffix(".json")) as beside:
            beside.write_text(json.dumps(study.json(), indent=1) + "\n")
        draw(study, out)
    return study


def _measure(run: str | Path, *, fresh: int, fit: int, width: int, sizes: Sequence[int]) -> RunStaleness:
    recipe, learner = read_learner(run)
    name = find_run(run).name
    if not isinstance(learner, Against):
        raise SparringError(f'run {name} has no opponent of its own: train one with against.opponent, not "itself"')
    if recipe.ddpg.td3:
        raise SparringError(f"run {name} has two critics (ddpg.td3): the study takes runs with one")
    replay, lanes = learner.replay, recipe.lanes
    stored = replay.rows(replay.rows_written - len(replay), replay.rows_written)
    held = len(stored["reward"])
    pace = recipe.ddpg.burst / recipe.ddpg.update_every / lanes  # updates for a stored step
    age = torch.arange(held - 1, -1, -1) * pace

    rows = _play(learner, fresh)
    half = fresh // 2
    judge = _fit(learner, {column: values[:half] for column, values in rows.items()}, fit)
    scale = recipe.ddpg.reward_scale
    reference = judge({column: values[half:] for column, values in rows.items()}) / scale
    error = float(reference.mean())

    errors = judge(stored) / scale
    block = _BLOCK_STEPS * lanes
    random = np.random.default_rng(0)

    def point(at: float, chosen: Tensor) -> Point:
        low, high = _interval(chosen.numpy(), reference.numpy(), block, random)
        return Point(at=at, ratio=float(chosen.mean()) / error, low=low, high=high)

    slices = [
        point((start + 0.5) * width, errors[(age >= start * width) & (age < (start + 1) * width)])
        for start in range(int((held * pace) // width))
    ]
    buffers = [point(size, errors[-size:]) for size in sizes if size <= held]
    now = copy.deepcopy(learner.opponent.state_dict())
    # The same serves and the same noise against every opponent.
    learner.game.restart(torch.arange(lanes), torch.arange(lanes) + _SERVES)
    scene = learner.game.state()
    base = judge(_play(learner, half, scene=scene)) / scale
    obs = rows["obs"]
    with torch.no_grad():
        played = learner.opponent(obs)
    then: list[Point] = []
    change: list[tuple[float, float]] = []
    for updates, weights in learner.past[:: -max(1, len(learner.past) // _AGES)]:
        learner.opponent.load_state_dict(weights)
        old = judge(_play(learner, half, scene=scene)) / scale
        low, high = _interval(old.numpy(), base.numpy(), block, random)
        ago = float(learner.updates - updates)
        then.append(Point(at=ago, ratio=float(old.mean() / base.mean()), low=low, high=high))
        with torch.no_grad():
            change.append((ago, float((learner.opponent(obs) - played).abs().mean())))
    learner.opponent.load_state_dict(now)
    return RunStaleness(
        run=name,
        opponent=recipe.against.opponent,
        follow=recipe.against.follow,
        seed=recipe.seed,
        updates=learner.updates,
        error=error,
        stored=tuple(slices),
        opponent_of=tuple(then),
        change=tuple(change),
        buffers=tuple(buffers),
    )


def _play(learner: Against, steps: int, *, scene: dict[str, Tensor] | None = None) -> dict[str, Tensor]:
    """That many steps of new rallies, noise as in training, nothing learnt. They begin with `scene`, a game's state;
    without one rallies go on."""
    config, replay = learner.config, learner.replay
    rows_held = steps + learner.game.lanes * config.n_step
    learner.config = replace(config, learn_from=rows_held + 1, warmup=0)  # the actor plays from the first decision on
    learner.replay = Replay(rows_held, replay.columns()["obs"].shape[1], learner.action_size)
    if scene is not None:
        learner.noise.x.zero_()
        learner.stand(scene)
    while len(learner.replay) < steps:
        DDPG.step(learner)  # a ladder is not climbed meanwhile
    rows = learner.replay.rows(0, steps)
    learner.config, learner.replay = config, replay
    return rows


def _fit(learner: Against, rows: Mapping[str, Tensor], updates: int) -> Callable[[Mapping[str, Tensor]], Tensor]:
    """The judge: the run's critic, fitted to the value of the actor as it is now in new rallies.

    It answers rows with their absolute TD errors, float32 [n].
    """
    critic, target = copy.deepcopy(learner.critic_target).train(), copy.deepcopy(learner.critic_target).eval()
    actor = learner.actor_target
    replay = Replay(len(rows["reward"]), rows["obs"].shape[1], rows["action"].shape[1])
    replay.add(**rows)
    optimiser = torch.optim.Adam(critic.parameters(), lr=_LR)
    online, slow = averaged_tensors(critic), averaged_tensors(target)
    for update in range(updates):
        batch = replay.sample(_BATCH, seed=0, stream=STREAM_FIT, counter=update)
        with torch.no_grad():
            goal = batch["reward"] + batch["discount"] * target(batch["next_obs"], actor(batch["next_obs"]))
        loss = nn.functional.mse_loss(critic(batch["obs"], batch["action"]), goal)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        torch._foreach_lerp_(slow, online, _TAU)

    def errors(rows: Mapping[str, Tensor]) -> Tensor:
        with torch.no_grad():
            goal = rows["reward"] + rows["discount"] * target(rows["next_obs"], actor(rows["next_obs"]))
            missed: Tensor = (goal - target(rows["obs"], rows["action"])).abs()
        return missed

    return errors


def _interval(
    values: NDArray[np.float32], reference: NDArray[np.float32], block: int, random: np.random.Generator
) -> tuple[float, float]:
    """95% of the ratio of two means, by a bootstrap over blocks of steps that followed each other."""

    def means(numbers: NDArray[np.float32]) -> NDArray[np.float64]:
        blocks = [part.mean() for part in np.array_split(numbers, max(1, len(numbers) // block))]
        drawn: NDArray[np.float64] = random.choice(np.array(blocks, dtype=np.float64), size=(_RESAMPLES, len(blocks)))
        return np.asarray(drawn.mean(axis=1))

    low, high = np.quantile(means(values) / means(reference), [0.025, 0.975])
    return float(low), float(high)


def _label(run: RunStaleness) -> str:
    return f"following, {run.follow:g}" if run.opponent == "following" else run.opponent


def _group(name: str, runs: Sequence[RunStaleness]) -> GroupStaleness:
    random = np.random.default_rng(0)

    def means(series: Sequence[Sequence[Point]]) -> tuple[Point, ...]:
        by_place: dict[float, list[Point]] = {}
        for points in series:
            for point in points:
                by_place.setdefault(point.at, []).append(point)
        return tuple(mean(at, points) for at, points in sorted(by_place.items()) if len(points) == len(runs))

    def mean(at: float, points: Sequence[Point]) -> Point:
        if len(points) == 1:
            return points[0]
        ratios = np.array([point.ratio for point in points])
        low, high = np.quantile(random.choice(ratios, size=(_RESAMPLES, len(ratios))).mean(axis=1), [0.025, 0.975])
        return Point(at=at, ratio=float(ratios.mean()), low=float(low), high=float(high))

    changes = {at: [dict(run.change)[at] for run in runs] for at in dict(runs[0].change) if _all_have(runs, at)}
    return GroupStaleness(
        name=name,
        runs=tuple(run.run for run in runs),
        stored=means([run.stored for run in runs]),
        opponent_of=means([run.opponent_of for run in runs]),
        change=tuple((at, float(np.mean(values))) for at, values in changes.items()),
        buffers=means([run.buffers for run in runs]),
    )


def _all_have(runs: Sequence[RunStaleness], at: float) -> bool:
    return all(at in dict(run.change) for run in runs)


def draw(study: Staleness, path: Path) -> None:
    """Three panels: by age what is stored, by age what the opponent's change alone does, by size of the buffer.

    Raises SparringError where the file cannot be written.
    """
    titles = ("what is stored", "the learner of now, the opponent of then", "an average step of a buffer")
    xlabels = ("age in updates", "age of the opponent in updates", "steps in the buffer")
    figure, panels = new_charts(titles, xlabels=xlabels, ylabel="TD error, new rallies = 1")
    for index, group in enumerate(study.groups):
        colour = COLOURS[index % len(COLOURS)]
        for axes, points in zip(panels, (group.stored, group.opponent_of, group.buffers), strict=True):
            _draw_points(axes, points, colour, f"{group.name}: {len(group.runs)} runs")
    if sizes := sorted({point.at for group in study.groups for point in group.buffers}):
        panels[2].set_xscale("log")
        panels[2].set_xticks(sizes, [f"{size:,.0f}" for size in sizes])
        panels[2].minorticks_off()
    for axes in panels:
        axes.axhline(1.0, color=FAINT, lw=1, ls=(0, (5, 3)))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, labelcolor=INK, title="opponent")
    save_chart(figure, path)


def _draw_points(axes: Axes, points: Sequence[Point], colour: str, label: str) -> None:
    at = [point.at for point in points]
    axes.fill_between(at, [p.low for p in points], [p.high for p in points], color=colour, alpha=0.15, lw=0)
    axes.plot(at, [p.ratio for p in points], color=colour, lw=2.2, marker="o", ms=3.5, label=label)
