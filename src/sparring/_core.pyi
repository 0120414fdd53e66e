"""Types of the compiled core (core/module.cpp)."""

from numpy import float32, int32, int64, uint8, uint32
from numpy.typing import NDArray

source_hash: str

def normals(seed: int, stream: int, counters: NDArray[int64]) -> NDArray[float32]:
    """Standard normals float32 [n, 4], a pure function of (seed, stream, row of counters int64 [n, 4])."""

def integers(seed: int, stream: int, counter: int, n: int, high: int) -> NDArray[int64]:
    """int64 [n] uniform in [0, high), a pure function of (seed, stream, counter, index)."""

def mix64(x: int) -> int:
    """SplitMix64's finaliser on an unsigned 64-bit integer."""

class TennisCourts:
    """A batch of tennis courts. Racket 0 is B (right side, mirrored view), racket 1 is A. Array attributes are views of
    the core's memory: they change with every call.

    observations, last_observations: float32 [lanes, 2, 24]; rewards, scores: float32 [lanes, 2];
    lengths: int32 [lanes]; done, max_reached, global_done: uint8 [lanes];
    bodies: float32 [lanes, 6], x and y of ball, A and B;
    trace: float32 [lanes, 5, 6], bodies after each physics step (0.02 s) of the last decision.
    """

    lane_bytes: int
    lanes: int
    observations: NDArray[float32]
    last_observations: NDArray[float32]
    rewards: NDArray[float32]
    scores: NDArray[float32]
    lengths: NDArray[int32]
    done: NDArray[uint8]
    max_reached: NDArray[uint8]
    global_done: NDArray[uint8]
    bodies: NDArray[float32]
    trace: NDArray[float32]

    def __init__(self, lanes: int, *, true_velocity: bool = False, threads: int = 1) -> None: ...
    def seed(self, lanes: NDArray[int64], seeds: NDArray[uint32]) -> None:
        """Start fresh scenes, as the binary does with these seeds. Both arrays [k]."""

    def reset(self, lanes: NDArray[int64]) -> None:
        """`env.reset()` of the 2018 API in these lanes: rackets and stacks start anew, the ball flies on."""

    def step(self, actions: NDArray[float32]) -> None:
        """One decision of 0.1 s in every lane; actions [lanes, 2, 2] are (run, jump), limited to [-1, 1]."""

    def state(self) -> NDArray[uint8]:
        """All lanes as bytes [lanes, lane_bytes]."""

    def load_state(self, state: NDArray[uint8]) -> None: ...
