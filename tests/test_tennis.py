"""The court keeps every rule and quirk of docs/tennis.md, and agrees with a second implementation in every bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scripted
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference_court import Body, Generator, ReferenceCourt

import sparring
from sparring import _core
from sparring.errors import SparringError
from sparring.games.tennis import Tennis, TennisOptions

A, B, NOBODY = 0, 1, -1
F = np.float32
Floats = NDArray[np.float32]

LANE = np.dtype(
    [
        ("generator", "u4", 4),
        ("ball", "f4", 4),
        ("rackets", "f4", (2, 4)),
        ("actions", "f4", (2, 2)),
        ("stacks", "f4", (2, 24)),
        ("last", "f4", (2, 24)),
        ("pending", "f4", 2),
        ("score", "f4", 2),
        ("length", "i4"),
        ("last_toucher", "i4"),
        ("agent_steps", "i4"),
        ("academy_steps", "i4"),
        ("touched", "u1", 2),
        ("in_plane", "u1"),
        ("done", "u1"),
        ("max_reached", "u1"),
        ("last_known", "u1"),
        ("rally_over", "u1"),
        ("unused", "u1"),
    ]
)
"""A court as the core saves it, under the names of the reference."""

IDLE = np.zeros((2, 2), F)
AWAY = np.array([[-1, 0], [-1, 0]], F)
"""Both rackets run to their back walls, out of the way of any serve."""


def rows(*, a: tuple[float, float] = (0, 0), b: tuple[float, float] = (0, 0)) -> Floats:
    """Actions in Python's order, B first."""
    return np.array([b, a], F)


class Both:
    """One court twice, the core's and the reference's: whatever a test does to it is also compared bit by bit."""

    def __init__(self, seed: int = 0, *, true_velocity: bool = False, **fields: Any) -> None:
        self.core = _core.TennisCourts(1, true_velocity=true_velocity)
        self.core.seed(np.array([0]), np.array([seed], np.uint32))
        self.reference = ReferenceCourt(seed, true_velocity)
        self.set(**fields)

    def set(self, **fields: Any) -> None:
        """Put the court into another situation: fields of LANE; rackets as `a` and `b`; bodies as x, y, vx, vy."""
        lane = self.lane()
        for name, value in fields.items():
            if name in ("a", "b"):
                lane["rackets"]["ab".index(name)] = value
            else:
                lane[name] = value
        self.core.load_state(np.array([lane]).view(np.uint8).reshape(1, -1))
        for name, value in fields.items():
            if name == "ball":
                self.reference.ball = body(value)
            elif name in ("a", "b"):
                self.reference.rackets["ab".index(name)] = body(value)
            elif name == "touched":
                self.reference.touched = [bool(flag) for flag in value]
            elif name in ("in_plane", "rally_over"):
                setattr(self.reference, name, bool(value))
            elif name in ("last_toucher", "agent_steps", "academy_steps"):
                setattr(self.reference, name, int(value))
            else:
                raise KeyError(name)

    def lane(self) -> Any:
        return self.core.state().view(LANE)[0, 0]

    def step(self, actions: Floats = IDLE) -> tuple[float, float]:
        """One decision; the rewards of A and B."""
        self.core.step(np.asarray(actions, F)[None])
        self.reference.step(np.asarray(actions, F))
        self.compare()
        same_bits(self.core.trace[0], self.reference.trace)
        b, a = self.core.rewards[0]
        return float(a), float(b)

    def reset(self) -> None:
        self.core.reset(np.array([0]))
        self.reference.reset()
        self.compare()

    def compare(self) -> None:
        compare(self.core, 0, self.reference)

    @property
    def done(self) -> bool:
        return bool(self.core.done[0])


def body(values: Any) -> Body:
    return Body(*np.asarray(values, F))


def same_bits(core: Any, reference: Any) -> None:
    mine, theirs = np.asarray(core, F).reshape(-1).view(np.uint32), np.asarray(reference, F).reshape(-1).view(np.uint32)
    assert mine.tolist() == theirs.tolist(), f"core {core}\nreference {reference}"


def compare(core: Any, lane: int, reference: ReferenceCourt) -> None:
    """All that a court shows and keeps, in every bit: also what only later decisions would show."""
    seen = reference.seen
    same_bits(core.observations[lane], seen.observations)
    same_bits(core.rewards[lane], seen.rewards)
    flags = core.done[lane], core.max_reached[lane], core.global_done[lane]
    assert flags == (seen.done, seen.max_reached, seen.global_done)
    same_bits(core.scores[lane], [reference.score[B], reference.score[A]])
    assert core.lengths[lane] == reference.length
    same_bits(core.bodies[lane], reference.bodies())
    if seen.done:
        same_bits(core.last_observations[lane], [reference.last[B], reference.last[A]])
    saved = core.state()[lane].view(LANE)[0]
    assert saved["generator"].tolist() == reference.generator.words
    for name, mine in (("ball", reference.ball), *((("rackets", r), reference.rackets[r]) for r in (A, B))):
        kept = saved[name] if isinstance(name, str) else saved[name[0]][name[1]]
        same_bits(kept, [mine.x, mine.y, mine.vx, mine.vy])
    assert saved["last_toucher"] == reference.last_toucher
    assert saved["agent_steps"] == reference.agent_steps
    assert saved["academy_steps"] == reference.academy_steps
    assert saved["touched"].tolist() == reference.touched
    assert saved["in_plane"] == reference.in_plane


def keeper(observations: Floats) -> Floats:
    """The scripted player that never drops a ball; observations float32 [..., 24], actions float32 [..., 2]."""
    actions = scripted.keeper(torch.from_numpy(observations.reshape(-1, 24)))
    return actions.numpy().reshape(*observations.shape[:-1], 2)


# --- the second implementation


@pytest.mark.parametrize("true_velocity", [False, True], ids=["as-shipped", "true"])
@pytest.mark.parametrize("player", ["random", "keeper", "careless keeper"])
def test_core_and_reference_agree_bit_by_bit_over_rallies(player: str, true_velocity: bool) -> None:
    seeds = [0, 42, 1, 987654321, 2**32 - 1]
    lanes = len(seeds)
    core = _core.TennisCourts(lanes, true_velocity=true_velocity)
    core.seed(np.arange(lanes), np.array(seeds, np.uint32))
    references = [ReferenceCourt(seed, true_velocity) for seed in seeds]
    rng = np.random.default_rng(5)
    rallies, longest = 0, 0
    for decision in range(300):
        if player == "random":
            actions = rng.uniform(-1.3, 1.3, (lanes, 2, 2)).astype(F)
        else:
            noise = 0.3 if player == "careless keeper" else 0.02
            actions = keeper(core.observations) + noise * rng.standard_normal((lanes, 2, 2)).astype(F)
        core.step(actions)
        for lane, reference in enumerate(references):
            reference.step(actions[lane])
            compare(core, lane, reference)
            same_bits(core.trace[lane], reference.trace[-5:])
        rallies += int(core.done.sum())
        longest = max(longest, int(core.lengths.max()))
        # Lanes 0 and 1 never reset, 2 and 3 after each rally as the usual loop does, 4 also in mid-rally.
        resets = [lane for lane in (2, 3) if core.done[lane]] + [4] * (decision % 37 == 36)
        if resets:
            core.reset(np.array(resets))
            for lane in resets:
                references[lane].reset()
                compare(core, lane, references[lane])
    assert rallies >= 20 if player == "random" else longest >= (299 if player == "keeper" else 60)


anywhere = st.tuples(st.floats(-12.5, 12.5, width=32), st.floats(-4, 10, width=32), *[st.floats(-32, 32, width=32)] * 2)
near = st.tuples(*[st.floats(-2, 2, width=32)] * 2, *[st.floats(-32, 32, width=32)] * 2)
any_action = st.lists(st.floats(width=32), min_size=4, max_size=4)


@settings(max_examples=400)
@given(anywhere, anywhere, near, st.booleans(), st.tuples(*[st.booleans()] * 3), st.integers(-1, 1), any_action)
def test_core_and_reference_agree_from_any_situation(
    a: tuple[float, ...],
    b: tuple[float, ...],
    beside: tuple[float, ...],
    at_a: bool,
    flags: tuple[bool, bool, bool],
    last_toucher: int,
    actions: list[float],
) -> None:
    """The ball near one racket at any speed, rackets anywhere, any held flags, actions up to infinities and NaN."""
    racket = a if at_a else b
    ball = (racket[0] + beside[0], racket[1] + beside[1], *beside[2:])
    court = Both(a=a, b=b, ball=ball, touched=flags[:2], in_plane=flags[2], last_toucher=last_toucher)
    with np.errstate(over="raise", invalid="raise"):
        court.step(np.array(actions, F).reshape(2, 2))
        court.reset()
        court.step(np.array(actions[::-1], F).reshape(2, 2))


# --- first states and random numbers


def test_seeds_0_and_42_give_the_known_first_states() -> None:
    core = _core.TennisCourts(2)
    core.seed(np.arange(2), np.array([0, 42], np.uint32))
    # The newest frame that public notebooks print for agent 0 of seed 0.
    assert [f"{value:.8f}" for value in core.observations[0, 0, 16:].astype(float)] == [
        "-6.65278625", "-1.50000000", "-0.00000000", "0.00000000",
        "6.83172083", "6.00000000", "-0.00000000", "0.00000000",
    ]  # fmt: skip
    assert [f"{x:.6g}" for x in core.observations[0, :, 16]] == ["-6.65279", "-6.46699"]
    assert [f"{x:.6g}" for x in core.observations[0, :, 20]] == ["6.83172", "-6.83172"]
    assert f"{core.observations[1, 0, 16]:.6g}" == "-6.64731"
    assert f"{core.observations[1, 0, 20]:.6g}" == "7.99828"
    assert not core.observations[:, :, :16].any()


def test_agent_0_is_the_mirrored_right_racket_and_the_sign_of_zero_shows_it() -> None:
    core = _core.TennisCourts(1)
    assert np.signbit(core.observations[0, 0, [18, 22]]).tolist() == [True, True]
    assert np.signbit(core.observations[0, 1, [18, 22]]).tolist() == [False, False]
    ball_x, _, a_x, _, b_x, _ = core.bodies[0]
    assert a_x < 0 < b_x
    assert core.observations[0, 0, [16, 20]].tolist() == [-b_x, -ball_x]
    assert core.observations[0, 1, [16, 20]].tolist() == [a_x, ball_x]


def test_places_are_drawn_in_the_binarys_order() -> None:
    """Ball x, coin, B, A at the start; ball x, coin, B, A at an end; B, A once more at a reset."""
    court, generator = Both(seed=9), Generator(9)

    def place() -> float:
        return float(generator.uniform(F(6), F(8)))

    def serve() -> float:
        x = place()
        return x if generator.next() % 2 else -x

    bodies = court.core.bodies  # a view
    assert bodies[0, 0] == serve()
    assert (bodies[0, 4], -bodies[0, 2]) == (place(), place())
    for rally in range(6):
        while not court.done or court.core.lengths[0] == 0:
            court.step(AWAY)
        assert bodies[0, 0] == serve()
        assert (bodies[0, 4], -bodies[0, 2]) == (place(), place())
        if rally % 2:
            court.reset()
            assert (bodies[0, 4], -bodies[0, 2]) == (place(), place())
        court.step(AWAY)


def test_serves_fall_on_both_sides_between_6_and_8() -> None:
    core = _core.TennisCourts(4000)
    core.seed(np.arange(4000), np.arange(4000, dtype=np.uint32) * 2654435761)
    ball, a, b = core.bodies[:, 0], core.bodies[:, 2], core.bodies[:, 4]
    assert abs((ball < 0).mean() - 0.5) < 4 * 0.5 / math.sqrt(4000)
    for x in (abs(ball), -a, b):
        assert x.min() >= 6
        assert x.max() <= 8
        assert abs(x.mean() - 7) < 4 * (2 / math.sqrt(12)) / math.sqrt(4000)


# --- observations


@pytest.mark.parametrize("velocity", ["as-shipped", "true"])
def test_entries_6_and_7_repeat_the_rackets_velocity_unless_the_variant_mends_it(velocity: str) -> None:
    core = _core.TennisCourts(8, true_velocity=velocity == "true")
    rng = np.random.default_rng(0)
    for _ in range(200):
        core.step(rng.uniform(-1, 1, (8, 2, 2)).astype(F))
        frame = core.observations[:, :, 16:]
        if velocity == "as-shipped":
            assert np.array_equal(frame[..., 6:8].view(np.uint32), frame[..., 2:4].view(np.uint32))
        else:
            ball = core.state().view(LANE)[:, 0]["ball"]
            assert np.array_equal(frame[:, 0, 6:8], ball[:, 2:] * np.array([-1, 1], F))
            assert np.array_equal(frame[:, 1, 6:8], ball[:, 2:])
            assert not np.array_equal(frame[..., 6:8], frame[..., 2:4])


def test_three_frames_are_stacked_the_oldest_first() -> None:
    court = Both()
    seen = [court.core.observations[0, :, 16:].copy()]
    for _ in range(4):
        court.step(rows(a=(0.2, 1), b=(-0.1, 0)))
        seen.append(court.core.observations[0, :, 16:].copy())
    assert np.array_equal(court.core.observations[0], np.concatenate(seen[-3:], axis=-1))


def test_a_racket_rests_at_the_stated_height() -> None:
    court = Both()
    for _ in range(5):
        court.step()
    assert court.core.observations[0, :, 17] == pytest.approx(-1.852, abs=5e-4)
    assert court.core.observations[0, :, 19].tolist() == [0, 0]


# --- actions


def far(**fields: Any) -> Both:
    """A court whose ball is high above the left side, out of everybody's way for a decision or two."""
    return Both(**{"ball": (-7, 9, 0, 0), "a": (-7, -1.852, 0, 0), "b": (7, -1.852, 0, 0), **fields})


@pytest.mark.parametrize(("run", "units"), [(1, 3.0), (0.5, 1.5), (-0.25, -0.75), (7, 3.0), (-9, -3.0)])
def test_a_full_run_covers_three_units_a_decision_towards_the_net(run: float, units: float) -> None:
    court = far()
    court.step(rows(a=(run, 0), b=(run, 0)))
    assert court.core.bodies[0, 2] == pytest.approx(-7 + units, abs=1e-4)
    assert court.core.bodies[0, 4] == pytest.approx(7 - units, abs=1e-4)
    assert court.core.observations[0, :, 18] == pytest.approx(30 * np.clip(run, -1, 1))


def test_a_racket_at_the_net_is_set_back_to_1_and_overshoots_by_one_step_at_most() -> None:
    court = far()
    reached = -math.inf
    for _ in range(5):
        court.step(rows(a=(1, 0), b=(1, 0)))
        assert court.core.trace[0, :, 2].tolist() == (-court.core.trace[0, :, 4]).tolist()
        reached = max(reached, court.core.trace[0, :, 2].max())
    assert reached == pytest.approx(-0.4)
    court.step(rows(a=(0, 0), b=(0, 0)))
    assert court.core.bodies[0, [2, 4]].tolist() == [-1, 1]


def test_the_back_wall_stops_a_racket() -> None:
    court = far()
    for _ in range(4):
        court.step(AWAY)
    assert court.core.bodies[0, 2] == pytest.approx(-10.90, abs=5e-3)
    assert court.core.bodies[0, 4] == pytest.approx(10.90, abs=5e-3)
    assert court.core.observations[0, :, 18] == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(
    ("jump", "jumps"), [(0.5, False), (float(np.nextafter(F(0.5), F(1))), True), (1, True), (-1, False)]
)
def test_jumping_needs_more_than_half(jump: float, jumps: bool) -> None:
    court = far()
    court.step(rows(a=(0, jump)))
    assert (court.core.bodies[0, 3] > -1.5) == jumps
    assert court.core.bodies[0, 5] == pytest.approx(-1.852, abs=1e-3)


def test_a_jump_is_renewed_only_below_its_height_and_is_ballistic_above() -> None:
    court = far(ball=(7, 9, 0, 9))
    heights = []
    for _ in range(10):
        court.step(rows(a=(0, 1)))
        heights.extend(court.core.trace[0, :, 3].tolist())
    speeds = np.diff([-1.852, *heights])[:40] / 0.02
    assert speeds == pytest.approx([7 - 0.1962] * 3 + [7 - 0.1962 * n for n in range(2, 39)], abs=1e-3)
    assert max(heights) == pytest.approx(0.848, abs=1e-3)
    above = far(a=(-7, -1.5, 0, 0))  # exactly at the height: not below it
    above.step(rows(a=(0, 1)))
    assert above.core.trace[0, 0, 3] < -1.5
    assert above.core.trace[0, 1, 3] > above.core.trace[0, 0, 3]


# --- the ball against things


def test_the_ball_keeps_to_9_units_a_second_per_axis() -> None:
    court = far(ball=(-7, 9, 30, -30))
    court.step()
    x, y = court.core.trace[0, :, 0], court.core.trace[0, :, 1]
    assert np.diff(x) == pytest.approx(0.18, abs=1e-5)
    assert np.diff(y) == pytest.approx(-(9 + 0.1962) * 0.02, abs=1e-5)


def test_a_hit_moves_the_ball_one_step_at_unlimited_speed() -> None:
    # The racket runs into a ball that lies against its face: 30 units/s, of which the ball gets up to 1.684 times.
    normal = np.array([math.cos(math.radians(55)), math.sin(math.radians(55))])
    centre = np.array([-7 - 0.2868, -1.0 - 0.4096])
    ball = centre + normal * (0.55 + 0.5 + 0.005)
    court = Both(a=(-7, -1, 0, 0), ball=(*ball, 0, 0))
    court.step(rows(a=(1, 0)))
    moves = np.diff(np.concatenate([[ball[0]], court.core.trace[0, :, 0]]))
    assert moves[0] > 0.25
    assert moves[1] == pytest.approx(0.18, abs=1e-5)


FACE = (math.cos(math.radians(55)), math.sin(math.radians(55)))


def against_face(speed: float, height: float, gap: float = 0.005) -> Both:
    """The ball flies at `speed` straight into the face of A, which falls freely with it so that gravity drops out."""
    centre = (-7 - 0.2868, height - 0.4096)
    ball = [c + n * (0.55 + 0.5 + gap) for c, n in zip(centre, FACE, strict=True)]
    return Both(a=(-7, height, 0, 0), ball=(*ball, -speed * FACE[0], -speed * FACE[1]))


def first_step_speed(court: Both) -> tuple[float, float]:
    """Of the ball along A's normal and across it, after the first physics step."""
    start = court.lane()["ball"]
    court.step()
    moved = (court.core.trace[0, 0, 0] - start[0]) / 0.02, (court.core.trace[0, 0, 1] - start[1]) / 0.02 + 0.1962
    return moved[0] * FACE[0] + moved[1] * FACE[1], moved[0] * -FACE[1] + moved[1] * FACE[0]


def test_a_free_racket_gives_the_ball_1_684_times_the_approach() -> None:
    along, across = first_step_speed(against_face(8, height=0))
    assert along == pytest.approx(-8 + 1.684 * 8, abs=0.02)
    assert across == pytest.approx(0, abs=0.02)


def test_a_racket_on_the_floor_yields_sideways_only() -> None:
    court = against_face(8, height=-1.852)
    along, _ = first_step_speed(court)
    approach = 8 + 0.1962 * FACE[1]  # the racket does not fall with the ball
    inverse = 1 / 0.75 + FACE[0] ** 2 / 4
    assert along == pytest.approx(-8 + 2 * approach / inverse / 0.75, abs=0.02)
    assert court.core.bodies[0, 3] == pytest.approx(-1.852, abs=1e-3)


@pytest.mark.parametrize(("approach", "leaves"), [(1.95, -0.25), (2.05, 2.05)], ids=["slow", "fast enough"])
def test_an_approach_of_2_or_less_does_not_bounce_but_only_closes_the_gap(approach: float, leaves: float) -> None:
    along, _ = first_step_speed(against_face(approach, height=0, gap=0.005))
    common = -approach * 0.75 / 4.75  # of ball and racket together, which no contact changes
    assert along == pytest.approx(common + leaves * 4 / 4.75, abs=0.02)


def test_a_slow_ball_inside_the_gap_flies_on_as_long_as_it_cannot_arrive() -> None:
    along, _ = first_step_speed(against_face(0.5, height=0, gap=0.015))
    assert along == pytest.approx(-0.5, abs=0.02)


@pytest.mark.parametrize(("gap", "bounces"), [(0.0199, True), (0.0201, False)])
def test_a_contact_starts_at_a_gap_of_0_02(gap: float, bounces: bool) -> None:
    court = against_face(8, height=0, gap=gap)
    along, _ = first_step_speed(court)
    assert along == pytest.approx(-8 + 1.684 * 8 if bounces else -8, abs=0.02)


@pytest.mark.parametrize(("depth", "pushed"), [(0.1, 0.08), (0.2, 0.16), (0.5, 0.2), (0.9, 0.2)])
def test_overlap_is_pushed_out_by_four_fifths_at_most_a_fifth_of_a_unit(depth: float, pushed: float) -> None:
    court = against_face(0, height=0, gap=-depth)
    before = court.core.state().view(LANE)[0, 0]
    court.step()
    ball, racket = court.core.trace[0, 0, :2], court.core.trace[0, 0, 2:4]
    moved = (ball - racket) - (before["ball"][:2] - before["rackets"][A][:2])
    assert moved @ FACE == pytest.approx(pushed, abs=1e-4)
    assert court.lane()["ball"][2] == pytest.approx(0, abs=1e-4)  # the push leaves no velocity


# --- rewards, row by row


def crossing(last_toucher: int, *, x: float = 0.4, vx: float = 9, y: float = 3) -> Both:
    """The ball is inside the plane above the net and leaves it in the next decision."""
    return far(ball=(x, y, vx, 0), in_plane=1, last_toucher=last_toucher)


def after(court: Both) -> int:
    return int(court.lane()["last_toucher"])


@pytest.mark.parametrize("vx", [9, -9], ids=["to the right", "to the left"])
def test_a_crossing_after_a_touch_of_a_pays_a(vx: float) -> None:
    court = crossing(A, x=math.copysign(0.4, vx), vx=vx)
    assert court.step() == (pytest.approx(0.1), 0)
    assert after(court) == A


@pytest.mark.parametrize("vx", [9, -9], ids=["to the right", "to the left"])
def test_a_crossing_after_a_touch_of_b_pays_b_and_makes_a_the_last_toucher(vx: float) -> None:
    court = crossing(B, x=math.copysign(0.4, vx), vx=vx)
    assert court.step() == (0, pytest.approx(0.1))
    assert after(court) == A


def test_a_crossing_that_nobody_touched_pays_b_and_makes_a_the_last_toucher() -> None:
    court = crossing(NOBODY)
    assert court.step() == (0, pytest.approx(0.1))
    assert after(court) == A


def test_a_ball_that_turns_back_inside_the_plane_pays_too() -> None:
    court = far(ball=(-0.55, 3, 2, 0), last_toucher=A)
    assert court.step() == (0, 0)
    assert court.lane()["in_plane"]
    court.set(ball=(-0.45, 3, -9, 0))
    assert court.step() == (pytest.approx(0.1), 0)


@pytest.mark.parametrize(("y", "pays"), [(9.2, True), (9.8, False)])
def test_a_crossing_above_the_plane_pays_nothing(y: float, pays: bool) -> None:
    court = far(ball=(-0.6, y, 9, 0), last_toucher=B)
    rewards = [court.step(), court.step(), court.step()]
    assert court.lane()["ball"][0] > 1
    assert sum(b for _, b in rewards) == pytest.approx(0.1 * pays)
    assert after(court) == (A if pays else B)


@pytest.mark.parametrize("wall", [-1, 1], ids=["wallA", "wallB"])
@pytest.mark.parametrize("last_toucher", [A, B, NOBODY])
def test_a_wall_costs_the_last_toucher_and_b_if_there_is_none(wall: int, last_toucher: int) -> None:
    court = far(ball=(11.6 * wall, 4, 9 * wall, 0), last_toucher=last_toucher)
    assert court.step() == ((pytest.approx(-0.01), 0) if last_toucher == A else (0, pytest.approx(-0.01)))
    assert court.done


@pytest.mark.parametrize("last_toucher", [A, B, NOBODY])
def test_the_net_costs_the_last_toucher_and_b_if_there_is_none(last_toucher: int) -> None:
    court = far(ball=(-0.8, -2, 9, 0), last_toucher=last_toucher)
    assert court.step() == ((pytest.approx(-0.01), 0) if last_toucher == A else (0, pytest.approx(-0.01)))
    assert court.done


@pytest.mark.parametrize("last_toucher", [A, B, NOBODY])
@pytest.mark.parametrize("x", [-4, 4], ids=["floorA", "floorB"])
def test_a_floor_costs_its_owner_whoever_touched_last(x: float, last_toucher: int) -> None:
    court = far(ball=(x, -2.5, 0, -9), last_toucher=last_toucher)
    assert court.step() == ((pytest.approx(-0.01), 0) if x < 0 else (0, pytest.approx(-0.01)))
    assert court.done


def test_a_long_shot_of_b_pays_b_at_the_net_and_costs_a_at_the_wall() -> None:
    court = far(ball=(0.4, 8.9, -9, 9), in_plane=1, last_toucher=B, a=(-3, -1.852, 0, 0))
    earned = np.zeros(2)
    while not court.done:
        earned += court.step()
    assert court.core.lengths[0] < 20
    assert court.core.trace[0, :, 0].min() < -11
    assert earned == pytest.approx([-0.01, 0.1])
    assert court.core.scores[0] == pytest.approx([0.1, -0.01])  # B first


def test_a_serve_that_reaches_the_net_untouched_costs_b() -> None:
    court = Both()
    ball = court.lane()["ball"]
    ball[2] = -4.8 * np.sign(ball[0])  # as if the serve drifted to the net
    court.set(ball=ball, a=(-10, -1.852, 0, 0), b=(10, -1.852, 0, 0))
    earned = np.zeros(2)
    while not court.done:
        earned += court.step()
        assert court.lane()["last_toucher"] == NOBODY
    assert earned == pytest.approx([0, -0.01])


def clip_of_the_net(last_toucher: int) -> Both:
    """The ball leaves the plane sideways and touches the net's edge within the same decision."""
    return far(ball=(0.495, -0.5, 1, -9), in_plane=1, last_toucher=last_toucher)


def test_an_end_takes_back_what_the_other_racket_earned_in_the_same_decision() -> None:
    court = clip_of_the_net(B)  # B +0.1, from then on A is the last toucher, so the net costs A
    assert court.step() == (pytest.approx(-0.01), 0)
    assert court.done
    assert court.core.scores[0].tolist() == [0, pytest.approx(-0.01)]


def test_the_charged_racket_keeps_what_it_earned_in_the_same_decision() -> None:
    court = clip_of_the_net(A)
    assert court.step() == (pytest.approx(0.09), 0)
    assert court.done


def test_a_rally_that_ends_on_top_of_the_net_pays_b_for_the_next_serve() -> None:
    court = far(ball=(0.1, -0.4, 0, -9), in_plane=1, last_toucher=A)
    assert court.step() == (pytest.approx(-0.01), pytest.approx(0.1))
    assert court.done
    assert after(court) == A  # although the new serve touched nobody


def test_the_last_toucher_is_set_when_a_contact_starts_and_not_while_it_lasts() -> None:
    starts = against_face(0.5, height=0)
    starts.set(last_toucher=B)
    starts.step()
    assert after(starts) == A
    lasts = against_face(0.5, height=0)
    lasts.set(last_toucher=B, touched=(1, 0))
    lasts.step()
    assert after(lasts) == B


def test_touching_twice_is_allowed() -> None:
    court = against_face(3, height=0)
    court.set(last_toucher=A)
    assert court.step() == (0, 0)
    assert after(court) == A
    assert not court.done


# --- the end of a rally


def to_the_end(court: Both, actions: Floats = AWAY) -> None:
    while True:
        court.step(actions)
        if court.done:
            return


def test_both_rackets_are_done_and_already_see_the_next_rally() -> None:
    game = Tennis(seed=3)
    done_at = 0
    for decision in range(1, 20):
        outcome = game.act(torch.tensor([[-1.0, 0.0]] * 2))
        if len(outcome.ended):
            done_at = decision
            break
    assert done_at in (14, 15)
    obs = game.decisions().obs
    assert not obs[:, :16].any()
    assert obs[:, 17].tolist() == [-1.5, -1.5]  # rackets where they start
    assert ((obs[:, 16] <= -6) & (obs[:, 16] >= -8)).all()
    assert (obs[:, 21] > 5.9).all()  # the ball of the next serve, up to four steps old
    assert (outcome.last.obs[:, 21] < -2.5).all()  # the ball at the floor
    assert outcome.last.obs[:, :16].any()
    assert not outcome.truncated.any()


def test_the_ball_is_served_at_once_and_the_rackets_move_at_the_next_decision() -> None:
    court = far(ball=(-4, -2.75, 0, 0))  # ends at the first physics step
    court.step(rows(a=(0.1, 0), b=(0.1, 0)))
    assert court.done
    trace = court.core.trace[0]
    assert trace[0, 1] < -2.7
    fallen = [6 - 0.1962 * 0.02 * n * (n + 1) / 2 for n in range(1, 5)]
    assert trace[1:, 1] == pytest.approx(fallen, abs=1e-4)
    assert trace[:, 2] == pytest.approx(-7 + 0.06 * np.arange(1, 6), abs=1e-4)  # old places, still running
    assert court.core.bodies[0, [3, 5]].tolist() == [-1.5, -1.5]


def test_the_last_observation_is_that_of_the_end_and_stays_readable() -> None:
    court = far()
    before = court.core.observations[0].copy()
    court.set(ball=(-4, -2.4, 0, -9))
    court.step(rows(a=(0.1, 0), b=(0.2, 0)))
    last = court.core.last_observations[0].copy()
    assert np.array_equal(last[:, :16], before[:, 8:])
    landed = int(np.argmax(court.core.trace[0, :, 1] > 5)) - 1  # the step before the next serve shows
    ball_x, ball_y, a_x, a_y, b_x, b_y = court.core.trace[0, landed]
    assert last[0, [16, 17, 20, 21]].tolist() == [-b_x, b_y, -ball_x, ball_y]
    assert last[1, [16, 17, 20, 21]].tolist() == [a_x, a_y, ball_x, ball_y]
    court.step()
    assert np.array_equal(court.core.last_observations[0], last)


def test_scores_and_length_stay_readable_until_the_next_decision() -> None:
    court = far(ball=(-4, -2.4, 0, -9))
    court.step()
    assert court.core.scores[0].tolist() == [0, pytest.approx(-0.01)]
    assert court.core.lengths[0] == 1
    court.step()
    assert court.core.scores[0].tolist() == [0, 0]
    assert court.core.lengths[0] == 1
    court.step()
    assert court.core.lengths[0] == 2


# --- reset


def test_a_reset_costs_one_physics_step_under_the_held_action() -> None:
    court = far()
    court.step(rows(a=(0.5, 0)))
    ball = court.lane()["ball"]
    court.reset()
    now = court.lane()["ball"]
    assert now[3] == pytest.approx(ball[3] - 0.1962, abs=1e-5)
    assert now[1] == pytest.approx(ball[1] + 0.02 * now[3], abs=1e-5)
    # The held action counts: a racket that hits the ball in this very step changes its flight.
    centre = np.array([-7 - 0.2868, -1.0 - 0.4096])
    for run, hit in ((0, False), (1, True)):
        court = far()
        court.step(rows(a=(run, 0)))
        court.set(a=(-7, -1, 0, 0), ball=(*(centre + np.array(FACE) * 1.055), 0, 0))
        court.reset()
        assert (court.lane()["ball"][2] > 5) == hit


def test_a_reset_in_mid_rally_leaves_the_ball_and_the_last_toucher() -> None:
    court = far(ball=(-3, 4, 5, 2), last_toucher=B)
    court.step()
    ball = court.lane()["ball"]
    court.reset()
    now = court.lane()["ball"]
    assert now[:3] == pytest.approx([ball[0] + 0.1, ball[1] + 0.02 * now[3], 5], abs=1e-5)
    assert after(court) == B
    obs = court.core.observations[0]
    assert not obs[:, :16].any()
    assert obs[:, 17].tolist() == [-1.5, -1.5]
    assert court.core.lengths[0] == 0
    assert not court.done


def test_a_rally_that_ends_in_the_step_of_a_reset_places_the_rackets_twice() -> None:
    court, generator = Both(seed=4, ball=(-4, -2.74, 0, -1)), Generator(4)
    for _ in range(4):
        generator.next()
    court.reset()
    assert court.done
    draws = [float(generator.uniform(F(6), F(8))) if draw != 1 else float(generator.next() % 2) for draw in range(6)]
    ball_x, _, _, _, b, a = draws
    assert abs(court.core.bodies[0, 0]) == ball_x
    assert court.core.bodies[0, [4, 2]].tolist() == [b, -a]


# --- time limits


def test_an_untouched_serve_takes_72_physics_steps() -> None:
    court = Both()
    y = []
    while not court.done:
        court.step(AWAY)
        y += court.core.trace[0, :, 1].tolist()
    assert int(np.argmax(np.diff(y) > 1)) + 1 == 72


@pytest.mark.parametrize(("resets", "cycle"), [(True, [14, 14, 14, 14, 15]), (False, [14, 14, 15, 14, 15])])
@pytest.mark.parametrize("away", [-1.0, 1.0], ids=["at the walls", "at the net"])
def test_untouched_rallies_last_14_20_decisions_with_resets_and_14_40_without(
    resets: bool, cycle: list[int], away: float
) -> None:
    core = _core.TennisCourts(1)
    core.seed(np.array([0]), np.array([8], np.uint32))
    lengths: list[int] = []
    while len(lengths) < 101:
        core.step(np.full((1, 2, 2), [away, 0], F))
        if core.done[0]:
            lengths.append(int(core.lengths[0]))
            if resets:
                core.reset(np.array([0]))
    assert lengths.pop(0) == 15  # the scene's first serve falls for a whole number of decisions and two steps
    assert float(np.mean(lengths)) == pytest.approx(14.20 if resets else 14.40)
    turn = next(turn for turn in range(5) if np.roll(cycle, turn).tolist() == lengths[:5])
    assert lengths == np.roll(cycle, turn).tolist() * 20


def capped(lanes: int) -> tuple[Tennis, Any, NDArray[np.float64]]:
    """Keepers up to the limit: the game, the outcome of its last decision, the rewards [decision, lane, B and A]."""
    game = Tennis(lanes=lanes, seed=1)
    rewards = []
    for _ in range(1001):
        obs = game.decisions().obs.numpy().reshape(lanes, 2, 24)
        outcome = game.act(torch.from_numpy(keeper(obs).reshape(-1, 2)))
        rewards.append(outcome.reward.numpy().reshape(lanes, 2).copy())
        if len(rewards) < 1001:
            assert not len(outcome.ended), f"a keeper dropped a ball at decision {len(rewards)}"
    return game, outcome, np.array(rewards, float)


def test_a_rally_is_cut_at_decision_1001_and_the_ball_flies_on() -> None:
    game, outcome, _ = capped(4)
    assert outcome.ended.tolist() == [0, 1, 2, 3]
    assert outcome.truncated.all()
    assert outcome.length.tolist() == [1001] * 4
    assert game.courts.max_reached.all()
    assert not game.courts.global_done.any()
    # The ball goes on from where it was: the next decision continues its path, no serve at (6 to 8, 6).
    ends = game.courts.trace[:, -1, :2].copy()
    assert np.array_equal(game.courts.bodies[:, :2], ends)
    assert np.array_equal(game.courts.observations[:, 1, 20:22], ends)
    assert np.array_equal(game.courts.bodies[:, [3, 5]], np.full((4, 2), -1.5, F))
    assert np.array_equal(outcome.last.obs.numpy()[1::2, 20:22], ends)  # agent A's view of the true last moment
    assert (game.courts.state().view(LANE)["last_toucher"] != NOBODY).all()
    # The count starts anew: no end in the very next decision.
    outcome = game.act(torch.from_numpy(keeper(game.decisions().obs.numpy())))
    assert not outcome.truncated.any()
    assert game.courts.max_reached.tolist() == [0] * 4


def test_a_capped_rally_has_one_crossing_every_1_9_seconds_and_pays_at_most_2_7() -> None:
    _, outcome, rewards = capped(4)
    crossings = np.rint(rewards.sum((0, 2)) / 0.1) / 100.1  # per second
    assert (crossings >= 0.515).all()
    assert (crossings <= 0.545).all()
    best = outcome.score.max(1).values.numpy()
    assert (best >= 2.59).all()
    assert (best <= 2.71).all()


@pytest.mark.parametrize("reset_before", [False, True])
def test_the_academy_ends_everything_after_25000_physics_steps_without_reset(reset_before: bool) -> None:
    core = _core.TennisCourts(1)
    core.seed(np.array([0]), np.array([0], np.uint32))
    action = np.zeros((1, 2, 2), F)
    for decision in range(1, 5101):
        core.step(action)
        if reset_before and decision == 100:
            core.reset(np.array([0]))
        expected = decision == (5100 if reset_before else 5000)
        assert bool(core.global_done[0]) == expected, decision
        if expected:
            assert core.done[0]
            assert core.max_reached[0]
            return
    pytest.fail("the limit never came")


def test_the_academys_limit_places_the_rackets_and_leaves_the_ball() -> None:
    court = far(academy_steps=24995)
    court.step()
    assert court.core.global_done[0]
    assert court.core.bodies[0, :2] == pytest.approx(court.core.trace[0, -1, :2])
    assert court.core.bodies[0, 3] == -1.5
    assert not court.core.observations[0, :, :16].any()
    court.step()
    assert not court.core.global_done[0]


def test_the_rackets_limit_is_reported_with_the_decision_after_5000_steps() -> None:
    court = far(agent_steps=4995)
    court.step()
    assert not court.done
    court.step()
    assert court.done
    assert court.core.max_reached[0]


# --- what players without skill reach

Draw = Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float64]]


@pytest.mark.parametrize(
    ("draw", "decisions", "score", "share"),
    [
        pytest.param(lambda rng, shape: rng.uniform(-1, 1, shape), 18.4, 0.0195, 0.195, id="uniform"),
        pytest.param(lambda rng, shape: np.clip(rng.standard_normal(shape), -1, 1), 18.3, 0.0197, 0.199, id="normal"),
        pytest.param(lambda rng, shape: np.zeros(shape), 20.2, 0.0042, None, id="zero"),
    ],
)
def test_unskilled_players_reach_the_known_figures(
    draw: Draw, decisions: float, score: float, share: float | None
) -> None:
    """The usual loop: reset, then step until done. The figures come from 2,000 rallies of another implementation of the
    same recipe, so theirs is the larger standard error; bands are 3.5 of the two together."""
    lanes, rallies = 100, 120
    rng = np.random.default_rng(11)
    core = _core.TennisCourts(lanes)
    core.seed(np.arange(lanes), rng.integers(0, 2**32, lanes).astype(np.uint32))
    lengths: list[list[int]] = [[] for _ in range(lanes)]
    scores: list[list[float]] = [[] for _ in range(lanes)]
    while min(map(len, lengths)) < rallies:
        core.step(draw(rng, (lanes, 2, 2)).astype(F))
        ended = np.flatnonzero(core.done)
        for lane in ended:
            lengths[lane].append(int(core.lengths[lane]))
            scores[lane].append(float(core.scores[lane].max()))
        core.reset(ended)
    # The same number of rallies of every lane: stopping by the clock would favour short ones.
    length = np.array([lane[:rallies] for lane in lengths], float).ravel()
    best = np.array([lane[:rallies] for lane in scores]).ravel()

    def band(values: NDArray[np.float64]) -> float:
        return 3.5 * float(values.std()) * math.sqrt(1 / 2000 + 1 / len(values))

    assert length.mean() == pytest.approx(decisions, abs=band(length))
    assert best.mean() == pytest.approx(score, abs=band(best))
    if share is not None:
        good = (best > 0.0895).astype(float)
        assert good.mean() == pytest.approx(share, abs=band(good))


# --- lanes, threads, state


def play(core: Any, decisions: int, seed: int = 0) -> list[bytes]:
    """Everything that a mixed crowd's decisions show, resets included."""
    rng = np.random.default_rng(seed)
    shown = []
    for decision in range(decisions):
        noise = rng.standard_normal((core.lanes, 2, 2)).astype(F)
        core.step(keeper(core.observations) + noise * (np.arange(core.lanes) % 4)[:, None, None].astype(F) / 3)
        views = (core.observations, core.last_observations[core.done != 0], core.rewards, core.scores, core.lengths)
        flags = (core.done, core.max_reached, core.global_done, core.bodies, core.trace)
        shown.append(b"".join(view.tobytes() for view in (*views, *flags)))
        if decision % 10 == 9:
            core.reset(np.flatnonzero(core.done) if decision % 20 == 9 else np.array([core.lanes - 1]))
    return shown


def seeded(lanes: int, **options: Any) -> Any:
    core = _core.TennisCourts(lanes, **options)
    core.seed(np.arange(lanes), np.arange(lanes, dtype=np.uint32) + 50)
    return core


@pytest.mark.parametrize("lanes", [37, 700])  # threads share 500 and more
def test_the_number_of_threads_changes_nothing(lanes: int) -> None:
    alone = seeded(lanes)
    expected = play(alone, 30)
    for threads in (2, 3, 8):
        core = seeded(lanes, threads=threads)
        assert play(core, 30) == expected
        assert np.array_equal(core.state(), alone.state())


def test_a_lane_plays_the_same_in_any_batch() -> None:
    together, alone = seeded(5), _core.TennisCourts(1)
    alone.seed(np.array([0]), np.array([53], np.uint32))
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = rng.uniform(-1, 1, (5, 2, 2)).astype(F)
        together.step(actions)
        alone.step(actions[3:4])
        assert np.array_equal(together.observations[3], alone.observations[0])
    assert np.array_equal(together.state()[3], alone.state()[0])


def test_lanes_differ() -> None:
    core = _core.TennisCourts(64)
    assert len({lane.tobytes() for lane in core.bodies}) == 64
    game = Tennis(lanes=64, seed=5)
    assert len({lane.tobytes() for lane in game.courts.bodies}) == 64
    other = Tennis(lanes=64, seed=6)
    assert not (game.courts.bodies == other.courts.bodies).all(1).any()


def test_a_saved_state_continues_bit_by_bit() -> None:
    core = seeded(6)
    play(core, 33)
    saved = core.state()
    expected = play(core, 50, seed=1)
    again = _core.TennisCourts(6, threads=2)
    again.load_state(saved)
    assert play(again, 50, seed=1) == expected
    assert np.array_equal(again.state(), core.state())
    again.load_state(saved)
    assert np.array_equal(again.state(), saved)
    assert not again.rewards.any()
    assert not again.done.any()


def test_a_saved_state_is_a_copy() -> None:
    core = seeded(2)
    saved = core.state()
    kept = saved.copy()
    core.step(np.ones((2, 2, 2), F))
    assert np.array_equal(saved, kept)
    assert saved.shape == (2, _core.TennisCourts.lane_bytes)
    assert saved.dtype == np.uint8
    assert _core.TennisCourts.lane_bytes == LANE.itemsize


def test_views_show_the_present_and_outlive_their_courts() -> None:
    core = seeded(2)
    observations = core.observations
    before = observations.copy()
    core.step(np.ones((2, 2, 2), F))
    assert not np.array_equal(observations, before)
    after_step = observations.copy()
    del core
    assert np.array_equal(observations, after_step)


@pytest.mark.parametrize(
    "shape", [(2, _core.TennisCourts.lane_bytes), (3, _core.TennisCourts.lane_bytes - 1), (3, 0), (0, 0)]
)
def test_a_state_of_another_shape_is_refused(shape: tuple[int, int]) -> None:
    core = seeded(3)
    before = core.state()
    with pytest.raises(ValueError, match="lane_bytes"):
        core.load_state(np.zeros(shape, np.uint8))
    assert np.array_equal(core.state(), before)


def test_wrong_calls_are_refused() -> None:
    core = seeded(3)
    with pytest.raises(ValueError, match="lanes"):
        _core.TennisCourts(0)
    with pytest.raises(ValueError, match="threads"):
        _core.TennisCourts(1, threads=0)
    with pytest.raises(ValueError, match="actions"):
        core.step(np.zeros((2, 2, 2), F))
    with pytest.raises(TypeError):
        core.step(np.zeros((3, 4), F))
    with pytest.raises(IndexError):
        core.reset(np.array([3]))
    with pytest.raises(IndexError):
        core.seed(np.array([-1]), np.array([0], np.uint32))
    with pytest.raises(ValueError, match="same length"):
        core.seed(np.array([0, 1]), np.array([0], np.uint32))


# --- the game on top


def test_make_gives_the_court_of_a_seed_in_lane_0() -> None:
    game = sparring.make("tennis", lanes=3, seed=0)
    assert f"{game.decisions().obs[0, 20]:.6g}" == "6.83172"
    single = sparring.make("tennis", lanes=1, seed=0)
    assert torch.equal(game.decisions().obs[:2], single.decisions().obs)
    assert (game.name, game.agents, game.teams, game.restarts_itself) == ("tennis", 2, 2, True)


def test_a_level_is_a_scene_seed_and_no_level_is_a_reset() -> None:
    game = Tennis(lanes=2, seed=0)
    game.act(torch.zeros(4, 2))
    game.restart(torch.tensor([1]), torch.tensor([42]))
    obs = game.decisions().obs
    assert f"{obs[2, 20]:.6g}" == "7.99828"
    assert obs[0, 21] < 6
    twin = Both(seed=42)
    same_bits(obs[2:].numpy(), twin.reference.seen.observations)
    actions = torch.tensor([[0.3, 1.0]] * 4)
    game.act(actions)
    twin.step(actions[2:].numpy())
    game.restart(torch.tensor([1]))
    twin.reset()
    same_bits(game.decisions().obs[2:].numpy(), twin.reference.seen.observations)


def test_ids_and_scores_follow_the_rallies() -> None:
    game = Tennis(lanes=3, seed=2)
    matches = np.zeros(3, int)
    earned = np.zeros((3, 2))
    lengths = np.zeros(3, int)
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        decisions = game.decisions()
        assert decisions.lane.tolist() == [0, 0, 1, 1, 2, 2]
        assert decisions.agent.tolist() == decisions.team.tolist() == [0, 1] * 3
        assert decisions.match.tolist() == matches.repeat(2).tolist()
        assert decisions.decision.tolist() == lengths.repeat(2).tolist()
        outcome = game.act(torch.rand(6, 2, generator=generator) * 2 - 1)
        earned += outcome.reward.numpy().reshape(3, 2)
        lengths += 1
        for at, lane in enumerate(outcome.ended.tolist()):
            assert outcome.score[at].numpy() == pytest.approx(earned[lane], abs=1e-6)
            assert outcome.length[at] == lengths[lane]
            earned[lane], lengths[lane] = 0, 0
            matches[lane] += 1
        assert outcome.last.lane.tolist() == outcome.ended.repeat_interleave(2).tolist()
    assert matches.min() > 5


def test_a_saved_game_continues_bit_by_bit() -> None:
    generator = torch.Generator().manual_seed(0)
    actions = torch.rand(40, 4, 2, generator=generator) * 2 - 1
    game = Tennis(lanes=2, seed=9)
    for action in actions[:20]:
        game.act(action)
    saved = game.state()
    other = Tennis(lanes=2, seed=1)
    other.load_state(saved)
    for action in actions[20:]:
        mine, theirs = game.act(action), other.act(action)
        assert torch.equal(mine.reward, theirs.reward)
        assert torch.equal(mine.score, theirs.score)
        assert torch.equal(mine.last.obs, theirs.last.obs)
        assert torch.equal(game.decisions().obs, other.decisions().obs)
        assert torch.equal(game.decisions().match, other.decisions().match)


def test_the_outcome_survives_the_next_decision() -> None:
    game = Tennis(lanes=1, seed=0)
    outcome = game.act(torch.ones(2, 2))
    obs = game.decisions().obs
    kept = obs.clone(), outcome.reward.clone()
    for _ in range(30):
        game.act(torch.ones(2, 2))
    assert torch.equal(obs, kept[0])
    assert torch.equal(outcome.reward, kept[1])


def test_wrong_options_are_one_line() -> None:
    with pytest.raises(SparringError, match='velocity must be "as-shipped" or "true", got "fast"'):
        Tennis(velocity="fast")
    with pytest.raises(SparringError, match="lanes must be 1 or more, got 0"):
        Tennis(lanes=0)
    with pytest.raises(SparringError, match="threads must be 1 or more, got 0"):
        Tennis(threads=0)
    with pytest.raises(SparringError, match=r"actions must be \[2, 2\], got \[1, 2\]"):
        Tennis().act(torch.zeros(1, 2))
    assert TennisOptions().velocity == "as-shipped"
