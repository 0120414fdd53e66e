"""Types of the compiled core (core/module.cpp, core/bind_*.cpp)."""

from typing import Any

from numpy import float32, int16, int32, int64, uint8, uint16, uint32, uint64
from numpy.typing import NDArray

source_hash: str

def normals(seed: int, stream: int, counters: NDArray[int64]) -> NDArray[float32]:
    """Standard normals float32 [n, 4], a pure function of (seed, stream, row of counters int64 [n, 4])."""

def uniforms(seed: int, stream: int, counters: NDArray[int64]) -> NDArray[float32]:
    """Uniforms float32 [n, 4] in [0, 1), multiples of 2^-23, a pure function of (seed, stream, row of counters)."""

def integers(seed: int, stream: int, counter: int, n: int, high: int) -> NDArray[int64]:
    """int64 [n] uniform in [0, high), a pure function of (seed, stream, counter, index)."""

def mix64(x: int) -> int:
    """SplitMix64's finaliser on an unsigned 64-bit integer."""

def net_step(
    blob: bytes, inputs: NDArray[uint8], mask: NDArray[uint8], memory: NDArray[int16]
) -> tuple[NDArray[int64], NDArray[int16]]:
    """One decision of each of n dragons by a student in integers: packed actions int64 [n], next memory int16 [n, m].

    blob: `IntegerStudent.blob()`; inputs: uint8 [n, 9424]; mask: uint8 [n, 40]; memory: int16 [n, m]. By the scalar
    reference of core/net. Raises ValueError where the bytes are no weights or shapes do not fit.
    """

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

    @property
    def memory(self) -> NDArray[uint8]:
        """All that matches are played in, uint8 [lanes, lane_bytes]."""

    @property
    def knowledge(self) -> NDArray[uint8]:
        """All that dragons know, uint8 [lanes, knowledge_bytes]."""

    def take_over(self, memory: NDArray[uint8], rows: NDArray[uint8], knowledge: NDArray[uint8] | None = None) -> None:
        """Goes on where a batch on another device stands, which was made likewise: the bytes are not looked at, so no
        file may be where they come from. Raises ValueError for other shapes.
        """

    def state(self) -> NDArray[uint8]:
        """All lanes as bytes [lanes, lane_bytes]."""

    def load_state(self, state: NDArray[uint8]) -> None: ...

LOONG_COVERAGE: tuple[str, ...]
"""Names of what LoongTextMatch.coverage counts."""

LOONG_ACTION: Any
"""Argument of numpy.dtype for one action: aimed (messages to N, E, S, W), split (segments), protocol, ahead (the
message along the facing), kind (0 none, 1 move, 2 split), step_count, aimed_directions (one bit each), extras (1: sends
`ahead`, 2: sets the protocol), steps (up to 32 directions: 0 N, 1 E, 2 S, 3 W)."""

LOONG_LANE: Any
"""Argument of numpy.dtype for one lane: seed, level, round, and dragon (id), slot and team of the one that must act if
waiting.
A lane that does not wait is over (winner 0 nobody, 1 A, 2 B; reason 0 a team was out, 1 the round limit; dragons,
total, queen and longest of A and B, and their deaths by the judge's letters W, S, O, H, A), or has a fault: 1 too
many messages, 2 too many dragons for its room, 3 a row that is no action (only on a GPU: the CPU refuses it), 4 no
room for what its dragons remember."""

LOONG_VIEW: Any
"""Argument of numpy.dtype for what a dragon is told: the 7x7 window around its head with countdown (-1 never), pearl,
body (facing, +4 somebody is here, +8 a head, +16 team B) and id; edges north [8, 7] and west [7, 8] (-1 open, -2 kelp,
else a portal's id); newest: the last 32 of all `messages`, in order of arrival; echoes: kelp, ally, ally's head, enemy,
enemy's head."""

LOONG_INPUTS: Any
"""Argument of numpy.dtype for what a dragon knows, in bytes from 0 to 127 and in its own frame: crop [15, 15, 32] with
forward up and the head at [7, 7], overview [16, 16, 8] with the head's block at [8, 8], scalars [48], sonar [8, 16] the
newest packet first. docs/loong-knowledge.md says what the bytes mean."""

LOONG_MASK: Any
"""Argument of numpy.dtype for what a dragon may choose: kinds [3] (move, sprint, split), sizes [32] (segments of a
split - 2), payable (the most sprint steps that can be paid, at most 8), role_due (a new role is chosen), held (the
role)."""

LOONG_LIFE: Any
"""Argument of numpy.dtype for some of what a dragon remembers besides tiles, as `remembered` gives it; see Life in
core/loong/memory.h."""

LOONG_PLANES: dict[str, list[str]]
"""Names of the last axis of each field of LOONG_INPUTS."""

LOONG_PRIVILEGED: dict[str, list[str]]
"""Names of what a critic is told, in training only: "board" (the last axis of [16, 16, 16]), "crop" (that of
[15, 15, 16]), "scalars" of a dragon [32] and "team" of a team [32]. docs/loong-knowledge.md says what they mean."""

LOONG_SCRIPTS: tuple[str, ...]
LOONG_PLAYERS: tuple[str, ...]
"""Names of the scripted players, by number: forager, hunter, splitter, legal, reckless."""

LOONG_FOIL: dict[str, int]
"""What the foil wants, by name: the usual wishes (the table in core/loong/foil.h says what each means)."""

LOONG_FOIL_BUILD: int
"""`build` of matches in which the foil's packets are those that its bot sends."""

class LoongLevel:
    """A map that matches share. Made by loong_level."""

    width: int
    height: int
    unit_limit: int
    symmetry: str
    """"", "x", "y" or "xy"."""
    groups: int
    """Countdowns: a tile and its mirror share one."""
    edges: NDArray[int32]
    """[2, height, width]: the north sides of all tiles, then the west sides; -1 open, -2 kelp, else a portal's id."""
    gaps: NDArray[int32]
    """[height, width, 2]: shortest and longest gap between attempts in rounds; 0 0 where nothing spawns."""
    bodies: list[tuple[str, list[tuple[int, int]]]]
    """Team and tiles (x, y), head first, of each dragon at the start."""

def loong_level(map: bytes) -> LoongLevel | bytes:
    """Read a map file: the level, or the organisers' error text."""

def loong_reply(action: bytes) -> bytes:
    """A row of LOONG_ACTION as a reply to the judge. Raises ValueError if it is no action."""

def loong_view(init: bytes, block: bytes) -> bytes:
    """A round block as a row of LOONG_VIEW, for the dragon of this init block. Raises ValueError if one is no block."""

def loong_decide(script: int, init: bytes, block: bytes, seed: int, match_seed: int) -> bytes:
    """What a scripted player, by its place in LOONG_SCRIPTS, replies to a dragon's init block and round block.

    The same as `LoongMatches.decide` with this `seed` does in a lane whose match has the seed `match_seed`. Raises
    ValueError for another number, or a block that is none.
    """

def loong_decide_rows(
    scripts: NDArray[uint8],
    identities: NDArray[int32],
    views: NDArray[uint8],
    seed: int,
    match_seeds: NDArray[uint64],
    actions: NDArray[uint8],
) -> None:
    """The same for n dragons at once, told by rows of LOONG_VIEW, into rows of LOONG_ACTION.

    scripts: [n, 1]; identities: [n, 5], id, team (0 A, 1 B), width, height and unit limit of the map; views, actions:
    [n, itemsize]; match_seeds: [n]
    """

def loong_lane_bytes(levels: list[LoongLevel], lean: bool) -> int:
    """Bytes of a lane that can play all of these levels."""

def loong_room(levels: list[LoongLevel], lean: bool) -> dict[str, int]:
    """What lanes take that can play all of these levels: bytes of the `lane`, of `knowledge` of it, and of room to work
    in for `blocks` of boards and a `foil`; `slots` of dragons."""

def loong_knowing(levels: list[LoongLevel], mirror: str, build: int, memory: int) -> bytes:
    """What a kernel is given beside `loong_batch` of dragons that know: memory is the address of their knowledge, uint8
    [lanes, bytes of knowledge], all 0 at first; mirror and build as of LoongMatches.
    """

def loong_pool(levels: list[LoongLevel]) -> tuple[bytes, list[int]]:
    """The levels one after another, as a GPU holds them, and where each begins."""

def loong_batch(
    levels: list[LoongLevel], lanes: int, lean: bool, memory: int, table: int, rows: int, views: int
) -> bytes:
    """What a kernel is given: a batch whose arrays lie at these addresses of its machine.

    memory: uint8 [lanes, lane bytes]; table: int64 [levels], their addresses; rows: uint8 [lanes, itemsize of
    LOONG_LANE]; views: uint8 [lanes, itemsize of LOONG_VIEW].
    """

def loong_pack(role: int, kind: str, direction: int, segments: int, steps: list[int], claim: int) -> int:
    """A choice as one number. Raises ValueError if no choice has these parts.

    kind: "move", "sprint" or "split". direction of a move and steps (2 to 8) of a sprint: 0 forward, 1 left, 2 right,
    steps relative to the one before. segments: 2 to 33 of a split. What the kind does not use is 0 or empty. claim: a
    tile of the 5x5 around the head, row by row with forward up, or 25 for none.
    """

def loong_unpack(packed: int) -> tuple[int, str, int, int, list[int], int]:
    """The arguments of loong_pack. Raises ValueError if the number is no choice."""

class LoongMatches:
    """A batch of matches. Each lane stands at a decision, or its match is over.

    levels: those that lanes may play; they set the room of a lane. lean: less room for messages; a lane that would
    need more gets a fault, which only a match with dozens of deaths between two turns of a dragon can meet.
    `rows` uint8 [lanes, itemsize of LOONG_LANE] and `views` [lanes, itemsize of LOONG_VIEW] are views of the core's
    memory. Lane i starts with level i (modulo their number) and seed i.

    knowledge: dragons remember, for `observe` and `act_packed`; takes room for knowledge_bytes more in each lane, of
    which only what is used takes memory. mirror: "coin" lets half of all lives, drawn by match and dragon, see the
    world mirrored, "never" and "always" none and all. build: dragons understand the packets of their own build alone.
    """

    lanes: int
    lane_bytes: int
    knowledge_bytes: int
    slots: int
    """The most dragons that can live at once in a lane, each in a slot that is free again when it is dead."""
    rows: NDArray[uint8]
    views: NDArray[uint8]

    def __init__(
        self,
        levels: list[LoongLevel],
        lanes: int,
        *,
        threads: int = 1,
        lean: bool = False,
        knowledge: bool = False,
        mirror: str = "coin",
        build: int = 0,
    ) -> None: ...
    def restart(self, lanes: NDArray[int64], levels: NDArray[int64], seeds: NDArray[uint64]) -> None:
        """Start matches in these lanes. All arrays [k]."""

    def look(self) -> None:
        """Fill `views` for the lanes that wait."""

    def act(self, actions: NDArray[uint8]) -> None:
        """Act in every lane that waits, and go on to its next decision. actions: [lanes, itemsize of LOONG_ACTION]."""

    def observe(self, inputs: NDArray[uint8], mask: NDArray[uint8]) -> None:
        """Fill the rows of the lanes that wait with what their dragons know and may choose: inputs [lanes, itemsize of
        LOONG_INPUTS], mask [lanes, itemsize of LOONG_MASK].

        A dragon remembers what it is told when it is asked here or acts packed; once in a turn, however often. Where a
        lane has no room for it, it has a fault after this turn.
        """

    def act_packed(self, choices: NDArray[int64], actions: NDArray[uint8] | None = None) -> None:
        """Act in every lane that waits by the numbers of loong_pack [lanes], each with its status packet along the
        facing, and go on. Where the number is -1 the row of `actions`, as `act` takes them, is carried out.

        Raises ValueError, and does nothing, if a number is no choice of its dragon.
        """

    def known_at_end(self, lane: int, slot: int) -> NDArray[uint8]:
        """A row of LOONG_INPUTS: what a living dragon would know if it were asked once more. Only of a match that is
        over, for a dragon takes in what it is told once in a turn."""

    def remembered(self, lane: int) -> tuple[NDArray[uint32], NDArray[uint16], bytes]:
        """What the dragon that must act remembers: sights and notes [height, width] (core/loong/memory.h), its Life."""

    def decide_foil(self, wishes_of: NDArray[uint8], wishes: NDArray[int32], actions: NDArray[uint8]) -> None:
        """Fill the rows of the waiting lanes in which the foil plays the team that must act; once a turn.

        wishes_of: [lanes, 2], for teams A and B the row of `wishes` of their foil, or 255 where another plays; wishes:
        [k, len(LOONG_FOIL)], each row like the values of LOONG_FOIL. It draws nothing from the seed of the match, so
        a lane with mirror="never" and build=LOONG_FOIL_BUILD does what its bot does. Needs knowledge=True.
        """

    def decide(self, scripts: NDArray[uint8], seed: int, actions: NDArray[uint8]) -> None:
        """Fill the rows of `actions`, as `act` takes them, with what scripted players do in the lanes that wait.

        scripts [lanes, 2]: the players of teams A and B, by their place in LOONG_SCRIPTS; 255 leaves the row as it is.
        What they do depends on what a dragon is told and on `seed`, the seed of the match, the dragon and the round,
        and on nothing else.
        """

    def play(self, scripts: NDArray[uint8], seed: int) -> None:
        """Let players, by their place in LOONG_PLAYERS, act until in every lane a dragon of a team without one waits,
        or the match is over. Scripted ones do what `decide` tells.

        The foil does what its bot does, whatever `mirror` and `build` are; it needs knowledge=True.
        """

    def appraise(self, crop: NDArray[uint8], scalars: NDArray[uint8]) -> None:
        """Fill the rows of the lanes that wait with the truth around their dragons, for a critic: crop [lanes, 3600],
        [15, 15, 16] with forward up, mirrored where the life is; scalars [lanes, 32]. Names: LOONG_PRIVILEGED."""

    def boards(self, lanes: NDArray[int64]) -> tuple[NDArray[uint8], NDArray[uint8]]:
        """The truth as the teams of these lanes [k] see it: boards [k, 2, 4096], each [16, 16, 16] with north up, and
        scalars [k, 2, 32]."""

    def standings(self) -> NDArray[int32]:
        """[lanes, 2, 4], of both teams as of now: living dragons, their total length, the queen's or 0, the longest."""

    def roster(self, lanes: NDArray[int64]) -> NDArray[int32]:
        """[k, slots, 5], by slot of these lanes: the dragon's id, its team, column and row of its head, its length; -1
        where no dragon lives."""

    def frames(self) -> NDArray[int32]:
        """[lanes, 6], of the dragon that must act: column and row of its head, facing, 1 if its life is mirrored, width
        and height of the board; -1 where none waits."""

    def everyone(
        self, lanes: NDArray[int64]
    ) -> tuple[NDArray[int64], NDArray[int64], NDArray[int64], NDArray[int64], NDArray[uint8], NDArray[uint8]]:
        """As `appraise`, of every dragon that lives in these lanes as if it acted now: lane, slot, id and team [m],
        crop [m, 3600], scalars [m, 32]; by lane as they are given, then by id."""

    def dragons(self, lane: int) -> list[tuple[int, int, int, int, NDArray[int32]]]:
        """The living by id: id, slot, team, facing and body, int32 [n, 2], column and row from the head on."""

    def pearls(self, lane: int) -> NDArray[uint8]:
        """[height, width], 1 where a pearl lies."""

    def view_of(self, lane: int, slot: int) -> NDArray[uint8]:
        """What a living dragon would be told if it were asked now: one row of LOONG_VIEW. Raises IndexError."""

    def init(self, lane: int) -> bytes:
        """The init block of the dragon that must act."""

    def block(self, lane: int) -> bytes:
        """The round block of the dragon that must act."""

    def reply(self, lane: int, text: bytes) -> None:
        """Act in one lane by the judge's text, and go on to its next decision."""

    @property
    def memory(self) -> NDArray[uint8]:
        """All that matches are played in, uint8 [lanes, lane_bytes]."""

    @property
    def knowledge(self) -> NDArray[uint8]:
        """All that dragons know, uint8 [lanes, knowledge_bytes]."""

    def take_over(self, memory: NDArray[uint8], rows: NDArray[uint8], knowledge: NDArray[uint8] | None = None) -> None:
        """Goes on where a batch on another device stands, which was made likewise: the bytes are not looked at, so no
        file may be where they come from. Raises ValueError for other shapes.
        """

    def state(self) -> NDArray[uint8]:
        """All lanes as bytes [lanes, lane_bytes + 8], with knowledge so many columns more as the fullest lane needs."""

    def load_state(self, state: NDArray[uint8]) -> None:
        """Go on from a state of a batch with the same levels."""

class LoongDragons:
    """Dragons that are no lane's, each with a memory of its own, as in a bot or in served play. They never mirror."""

    slots: int

    def __init__(self, slots: int = 1, *, build: int = 0) -> None: ...
    def observe(self, init: bytes, block: bytes, slot: int = 0) -> tuple[NDArray[uint8], NDArray[uint8]]:
        """A row of LOONG_INPUTS and one of LOONG_MASK of a dragon that is told this by the judge.

        Another init block than before, or an earlier round, begins another life in the slot. Raises ValueError if a
        block is none.
        """

    def observe_views(
        self, slots: NDArray[int64], identities: NDArray[int32], views: NDArray[uint8]
    ) -> tuple[NDArray[uint8], NDArray[uint8]]:
        """The same for dragons in these slots [n], by identities int32 [n, 5] (id, team, width, height, unit limit) and
        rows of LOONG_VIEW [n, ...]."""

    def act(self, packed: int, slot: int = 0) -> bytes:
        """The reply to the judge for a choice. Raises ValueError if the dragon cannot choose it."""

    def act_rows(self, packed: NDArray[int64], slots: NDArray[int64]) -> NDArray[uint8]:
        """The same for dragons in these slots, both [n], as rows of LOONG_ACTION."""

    def forget(self, slot: int = 0) -> None:
        """End the life in a slot."""

    def remembered(self, slot: int = 0) -> tuple[NDArray[uint32], NDArray[uint16], bytes]:
        """As LoongMatches.remembered."""

class LoongTextMatch:
    """One match as the judge's host sees it. debug: the judge's mask of notes, which decides the count of events.
    room: words of int32 that the events may say, for a replay; those after are only counted."""

    def __init__(self, level: LoongLevel, seed: int, debug: int = 0, room: int = 0) -> None: ...
    def next(self) -> tuple[Any, ...]:
        """("spawn", id, init), ("death", id, round, letter), ("ask", id, block) or ("end", twelve numbers)."""

    def reply(self, text: bytes) -> None:
        """Answer the dragon that was asked last."""

    def views_agree(self) -> bool:
        """Whether the View of the dragon that is asked is, from the state and from its block, the same bytes."""

    def recording(self) -> tuple[int, int, bytes, bytes]:
        """Width and height of the map, the events so far in int32 words, and the texts that some of them say the size
        of. Both are empty without `room`."""

    def coverage(self) -> dict[str, int]:
        """How often what was met, by LOONG_COVERAGE."""
