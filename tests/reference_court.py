"""A second tennis court, written from the rules of docs/tennis.md in plain Python, one court at a time.

It exists to be compared with the core, so it shares no code with it. All arithmetic is in np.float32 scalars and in the
order that docs/tennis.md states, so the two must agree in every bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

F = np.float32
A, B, NOBODY = 0, 1, -1
SIDE = (F(1), F(-1))
"""What a racket multiplies x with to see its own side as negative."""

STEP = F(0.02)
FALL = F(9.81) * STEP
"""Speed that gravity adds in one physics step."""
BALL_MASS, RACKET_MASS = F(0.75), F(4)
RADIUS = F(0.5)
TOUCH = F(0.02)
"""Two bodies nearer than this are in contact."""
TILT = np.deg2rad(55.0)
COS, SIN = F(np.cos(TILT)), F(np.sin(TILT))
HALF_THICK, HALF_LONG = F(1.1 / 2), F(1.875 / 2)
OFFSET_X, OFFSET_Y = F(-0.2868), F(-0.4096)
"""From A's transform to the centre of its box."""
FOOT, BACK = F(1.398), F(1.3703)
"""The box's lowest corner below the transform, its hindmost corner behind it."""
FLOOR, WALL = F(-3.25), F(12.27)
NET_HALF_WIDTH, NET_TOP = F(0.05), F(-1)
PLANE_BOTTOM, PLANE_TOP = F(-1), F(9)
ZERO, ONE, NINE = F(0), F(1), F(9)


# Of two equal numbers (+0 and -0) these give the second, as `a < b ? a : b` does: the sign of a zero is observable.
def smaller(a: np.float32, b: np.float32) -> np.float32:
    return a if a < b else b


def larger(a: np.float32, b: np.float32) -> np.float32:
    return a if a > b else b


def within(value: np.float32, low: np.float32, high: np.float32) -> np.float32:
    return smaller(larger(value, low), high)


class Generator:
    """The binary's random numbers: xorshift128 with shifts 11, 8 and 19."""

    def __init__(self, seed: int) -> None:
        self.words = [seed]
        for _ in range(3):
            self.words.append((1812433253 * self.words[-1] + 1) % 2**32)

    def next(self) -> int:
        first, *rest = self.words
        mixed = (first ^ (first << 11)) % 2**32
        self.words = [*rest, rest[-1] ^ (rest[-1] >> 19) ^ mixed ^ (mixed >> 8)]
        return self.words[-1]

    def uniform(self, low: np.float32, high: np.float32) -> np.float32:
        return high - (high - low) * (F(self.next() % 2**23) / F(2**23 - 1))


@dataclass
class Body:
    x: np.float32
    y: np.float32
    vx: np.float32 = ZERO
    vy: np.float32 = ZERO


@dataclass
class Seen:
    """What Python is told at a decision point; index 0 is racket B, index 1 is racket A."""

    observations: NDArray[np.float32]
    rewards: list[np.float32]
    done: bool
    max_reached: bool
    global_done: bool


@dataclass
class Touch:
    """Nearest features of ball and racket: the direction from racket to ball, and the gap (negative in overlap)."""

    nx: np.float32
    ny: np.float32
    gap: np.float32


def push(gap: np.float32) -> np.float32:
    """How far overlapping bodies are moved apart in one step."""
    return smaller(F(0.8) * -gap, F(0.2)) if gap < 0 else ZERO


@dataclass
class ReferenceCourt:
    seed: int
    true_velocity: bool = False
    generator: Generator = field(init=False)
    ball: Body = field(init=False)
    rackets: list[Body] = field(init=False)
    stacks: list[list[np.float32]] = field(init=False)
    last: list[list[np.float32]] = field(init=False)

    def __post_init__(self) -> None:
        self.generator = Generator(self.seed)
        self.actions = [[ZERO, ZERO], [ZERO, ZERO]]
        self.pending = [ZERO, ZERO]
        self.score = [ZERO, ZERO]
        self.length = 0
        self.touched = [False, False]
        self.in_plane = False
        self.done = self.max_reached = self.rally_over = self.last_known = False
        self.agent_steps = self.academy_steps = 0
        self.trace: list[list[np.float32]] = []
        self.stacks = [[ZERO] * 24, [ZERO] * 24]
        self.last = [[ZERO] * 24, [ZERO] * 24]
        self.rackets = [Body(ZERO, ZERO), Body(ZERO, ZERO)]
        self.serve()
        self.place_rackets()
        self.seen = self.decision_point()

    # --- what Python calls

    def step(self, actions: NDArray[np.float32]) -> Seen:
        """One decision; `actions` is [B, A][run, jump]."""
        if self.rally_over:
            self.begin_rally()
        self.actions = [[within(value, -ONE, ONE) for value in actions[row]] for row in (1, 0)]
        self.length += 1
        self.trace = []
        for _ in range(5):
            self.fixed_update()
        self.seen = self.decision_point()
        return self.seen

    def reset(self) -> Seen:
        """env.reset(): the update in which it arrives still ends with a physics step under the held actions."""
        self.fixed_update()
        self.academy_steps = 0
        self.place_rackets()
        self.seen = self.decision_point()
        self.begin_rally()
        return self.seen

    def bodies(self) -> list[np.float32]:
        return [value for body in (self.ball, *self.rackets) for value in (body.x, body.y)]

    # --- starts

    def serve(self) -> None:
        x = self.generator.uniform(F(6), F(8))
        left = self.generator.next() % 2 == 0
        self.ball = Body(-x if left else x, F(6))
        self.last_toucher = NOBODY

    def place_rackets(self) -> None:
        for racket in (B, A):
            self.rackets[racket] = Body(-SIDE[racket] * self.generator.uniform(F(6), F(8)), F(-1.5))
            self.stacks[racket] = [ZERO] * 24
        self.agent_steps = 0

    def begin_rally(self) -> None:
        self.score = [ZERO, ZERO]
        self.length = 0
        self.rally_over = False

    # --- what Python sees

    def frame(self, racket: int) -> list[np.float32]:
        own, m = self.rackets[racket], SIDE[racket]
        moving = self.ball if self.true_velocity else own
        return [m * own.x, own.y, m * own.vx, own.vy, m * self.ball.x, self.ball.y, m * moving.vx, moving.vy]

    def remember_last(self) -> None:
        if not self.last_known:
            self.last = [self.stacks[r][8:] + self.frame(r) for r in (A, B)]
            self.last_known = True

    def decision_point(self) -> Seen:
        global_done = self.academy_steps >= 25000
        if global_done:
            self.done = self.max_reached = True
            self.academy_steps = 0
        if self.done:
            self.remember_last()
            self.place_rackets()
        self.stacks = [self.stacks[r][8:] + self.frame(r) for r in (A, B)]
        seen = Seen(
            observations=np.array([self.stacks[B], self.stacks[A]], F),
            rewards=[self.pending[B], self.pending[A]],
            done=self.done,
            max_reached=self.max_reached,
            global_done=global_done,
        )
        self.score = [total + new for total, new in zip(self.score, self.pending, strict=True)]
        self.pending = [ZERO, ZERO]
        self.rally_over = self.done
        self.done = self.max_reached = self.last_known = False
        return seen

    # --- one physics step

    def fixed_update(self) -> None:
        for racket, m, (run, jump) in zip(self.rackets, SIDE, self.actions, strict=True):
            if jump > 0.5 and racket.y < F(-1.5):
                racket.vy = F(7)
            racket.vx = F(30) * run * m
            if m * racket.x > -1:
                racket.x = -m
        if self.agent_steps >= 5000:
            self.done = self.max_reached = True
        self.agent_steps += 1
        self.academy_steps += 1
        self.ball.vx = within(self.ball.vx, -NINE, NINE)
        self.ball.vy = within(self.ball.vy, -NINE, NINE)

        stood = Body(self.ball.x, self.ball.y)
        touches = [self.touch(racket) for racket in (A, B)]
        self.move(touches)
        self.trace.append(self.bodies())  # where the ball met its end, not where it is served again
        self.callbacks(stood, touches)

    def touch(self, which: int) -> Touch:
        racket, m = self.rackets[which], SIDE[which]
        # As seen from A's side, in the box's own axes: u through the face, v along it.
        right = m * (self.ball.x - racket.x) - OFFSET_X
        up = self.ball.y - racket.y - OFFSET_Y
        u, v = right * COS + up * SIN, up * COS - right * SIN
        near_u, near_v = within(u, -HALF_THICK, HALF_THICK), within(v, -HALF_LONG, HALF_LONG)
        if near_u == u and near_v == v:
            depth_u, depth_v = HALF_THICK - abs(u), HALF_LONG - abs(v)
            if depth_u < depth_v:
                nu, nv, distance = (-ONE if u < 0 else ONE), ZERO, -depth_u
            else:
                nu, nv, distance = ZERO, (-ONE if v < 0 else ONE), -depth_v
        else:
            du, dv = u - near_u, v - near_v
            distance = np.sqrt(du * du + dv * dv)
            nu, nv = du / distance, dv / distance
        return Touch(m * (nu * COS - nv * SIN), nu * SIN + nv * COS, distance - RADIUS)

    def move(self, touches: list[Touch]) -> None:
        ball = self.ball
        ball.vy -= FALL
        ball_push_x = ball_push_y = ZERO
        for racket, m, touch in zip(self.rackets, SIDE, touches, strict=True):
            racket.vy -= FALL
            push_x = push_y = ZERO
            wall_gap = m * racket.x - BACK + WALL
            if wall_gap <= TOUCH:
                racket.vx = m * larger(m * racket.vx, -larger(wall_gap, ZERO) / STEP)
                push_x = push_x + m * push(wall_gap)
            floor_gap = racket.y - FOOT - FLOOR
            grounded = floor_gap <= TOUCH
            if grounded:
                racket.vy = larger(racket.vy, -larger(floor_gap, ZERO) / STEP)
                push_y = push_y + push(floor_gap)
            if touch.gap <= TOUCH:
                nx, ny = touch.nx, touch.ny
                yield_x = ONE / RACKET_MASS
                yield_y = ZERO if grounded else ONE / RACKET_MASS
                softness = ONE / BALL_MASS + nx * nx * yield_x + ny * ny * yield_y
                speed = (ball.vx - racket.vx) * nx + (ball.vy - racket.vy) * ny
                just_closes = -larger(touch.gap, ZERO) / STEP
                bounces = -speed > 2 and speed < just_closes
                after = -speed if bounces else larger(speed, just_closes)
                impulse = (after - speed) / softness
                ball.vx += impulse * nx / BALL_MASS
                ball.vy += impulse * ny / BALL_MASS
                racket.vx -= impulse * nx * yield_x
                racket.vy -= impulse * ny * yield_y
                apart = push(touch.gap) / softness
                ball_push_x = ball_push_x + apart * nx / BALL_MASS
                ball_push_y = ball_push_y + apart * ny / BALL_MASS
                push_x = push_x - apart * nx * yield_x
                push_y = push_y - apart * ny * yield_y
            racket.x += racket.vx * STEP + push_x
            racket.y += racket.vy * STEP + push_y
        ball.x += ball.vx * STEP + ball_push_x
        ball.y += ball.vy * STEP + ball_push_y

    def callbacks(self, stood: Body, touches: list[Touch]) -> None:
        """The scripts' answer to contacts and triggers, found where the bodies stood before this step's move."""
        for which, touch in enumerate(touches):
            touching = bool(touch.gap <= TOUCH)
            if touching and not self.touched[which]:
                self.last_toucher = which
            self.touched[which] = touching

        beyond = larger(larger(PLANE_BOTTOM - stood.y, stood.y - PLANE_TOP), ZERO)
        in_plane = bool(stood.x * stood.x + beyond * beyond < RADIUS * RADIUS)
        if self.in_plane and not in_plane:
            self.pending[A if self.last_toucher == A else B] += F(0.1)
            self.last_toucher = A
        self.in_plane = in_plane

        net_x = larger(abs(stood.x) - NET_HALF_WIDTH, ZERO)
        net_y = larger(stood.y - NET_TOP, ZERO)
        reach = RADIUS + TOUCH
        if abs(stood.x) >= WALL - reach or net_x * net_x + net_y * net_y <= reach * reach:
            self.lose(A if self.last_toucher == A else B)
        elif stood.y <= FLOOR + reach:
            self.lose(A if stood.x < 0 else B)

    def lose(self, loser: int) -> None:
        self.pending[loser] += F(-0.01)
        self.pending[1 - loser] = ZERO
        self.remember_last()
        self.done = True
        self.serve()
