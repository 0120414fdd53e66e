// The actor's inputs: all that a dragon knows, as bytes from 0 to 127 in its own frame.
#pragma once

#include "actions.h"

namespace sparring::loong {

// ---- The planes. docs/loong-knowledge.md says what each value means.

constexpr u32 kCropSide = 15, kCropPlanes = 32, kScalars = 48, kSonarBytes = 16;

// Groups of four follow the frame: forward, right, back, left.
namespace crop {
enum Plane : u32 {
  kKnown,
  kAge,
  kFresh,
  kInferred,
  kPearl,
  kAttempt,
  kSpawns,
  kQueen,
  kKelp,
  kPortal = kKelp + 4,
  kHeading = kPortal + 4,
  kOwn = kHeading + 4,
  kOwnClears,
  kAllyHead,
  kAllyBody,
  kEnemyHead,
  kEnemyBody,
  kToldPearl,
  kToldAlly,
  kToldEnemy,
  kClaimed,
  kReach,
  kThreat,
};
static_assert(kThreat + 1 == kCropPlanes);
}  // namespace crop

constexpr const char* kCropNames[kCropPlanes] = {
    "known",       "age",          "fresh",           "inferred",      "pearl",        "attempt",        "spawns",
    "queen",       "kelp forward", "kelp right",      "kelp back",     "kelp left",    "portal forward", "portal right",
    "portal back", "portal left",  "heading forward", "heading right", "heading back", "heading left",   "own body",
    "own clears",  "ally head",    "ally body",       "enemy head",    "enemy body",   "told pearl",     "told ally",
    "told enemy",  "claimed",      "reach",           "threat"};
constexpr const char* kOverviewNames[kOverviewPlanes] = {"known",  "kelp",    "pearls", "spawns",
                                                         "allies", "enemies", "recent", "portals"};

namespace scalar {
enum Scalar : u32 {
  kLength,
  kFreeSteps,
  kPayable,
  kUnits,
  kUnitLimit,
  kUnitsLeft,
  kRound,
  kRoundsLeft,
  kQueen,
  kAllyQueen,
  kEnemyQueen,
  kTeam,
  kEchoes,
  kMessages = kEchoes + 5,
  kPackets,
  kUnread,
  kBoardAhead,
  kBoardAcross,
  kBlockAhead,
  kBlockAcross,
  kOffsetAhead,
  kOffsetAcross,
  kRole,
  kNextRole = kRole + 8,
  kRoleDue,
  kBirth,
  kLived,
  kWide,
  kMirrorAhead,
  kMirrorAcross,
  kMirrorBoth,
  kKnown,
  kCanSplit,
  kAllies,
  kEnemies,
  kPearls,
  kRoom,
};
static_assert(kRoom + 1 == kScalars);
}  // namespace scalar

constexpr const char* kScalarNames[kScalars] = {"length",
                                                "free steps",
                                                "payable steps",
                                                "units",
                                                "unit limit",
                                                "units left",
                                                "round",
                                                "rounds left",
                                                "queen",
                                                "ally queen",
                                                "enemy queen",
                                                "team",
                                                "echoes kelp",
                                                "echoes ally",
                                                "echoes ally head",
                                                "echoes enemy",
                                                "echoes enemy head",
                                                "messages",
                                                "packets",
                                                "unread",
                                                "board ahead",
                                                "board across",
                                                "block ahead",
                                                "block across",
                                                "offset ahead",
                                                "offset across",
                                                "role 0",
                                                "role 1",
                                                "role 2",
                                                "role 3",
                                                "role 4",
                                                "role 5",
                                                "role 6",
                                                "role 7",
                                                "next role",
                                                "role due",
                                                "birth",
                                                "lived",
                                                "wide",
                                                "mirror ahead",
                                                "mirror across",
                                                "mirror both",
                                                "known",
                                                "can split",
                                                "allies",
                                                "enemies",
                                                "pearls",
                                                "room"};

namespace heard {
enum Field : u32 {
  kValid,
  kAge,
  kLength,
  kAhead,
  kBehind,
  kLeftward,
  kRightward,
  kRole,
  kClaimAhead = kRole + 3,
  kClaimAcross,
  kQueen,
  kReport,
  kReportAhead,
  kReportAcross,
};
static_assert(kReportAcross + 1 == kSonarBytes);
}  // namespace heard

constexpr const char* kSonarNames[kSonarBytes] = {
    "valid",      "age",        "length",      "ahead",        "behind", "left",   "right",        "role bit 0",
    "role bit 1", "role bit 2", "claim ahead", "claim across", "queen",  "report", "report ahead", "report across"};

struct InputsRow {
  u8 crop[kCropSide][kCropSide][kCropPlanes];
  u8 overview[kOverviewSide][kOverviewSide][kOverviewPlanes];
  u8 scalars[kScalars];
  u8 sonar[kHeardPackets][kSonarBytes];
};
static_assert(sizeof(InputsRow) == 9424, "rows have no hidden bytes");

// ---- The tables, all monotone.

namespace table {
constexpr u32 kFull = 127;

SPARRING_FN u8 flag(bool set) { return set ? kFull : 0; }

// Exact below 64, then in ever coarser steps to 4096.
SPARRING_FN u8 wide(u32 value) {
  const u32 byte = value < 64     ? value
                   : value < 256  ? 64 + (value - 64) / 8
                   : value < 1024 ? 88 + (value - 256) / 32
                   : value < 4096 ? 112 + (value - 1024) / 205
                                  : kFull;
  return static_cast<u8>(byte);
}

SPARRING_FN u8 share(u32 part, u32 whole) { return static_cast<u8>(part < whole ? part * kFull / whole : kFull); }

// 25 times the binary logarithm of 1 + count.
SPARRING_FN u8 few(u32 count) {
  constexpr u8 bytes[33] = {0,   25,  39,  50,  58,  64,  70,  75,  79,  83,  86,  89,  92,  95,  97,  100, 102,
                            104, 106, 108, 109, 111, 113, 114, 116, 117, 118, 120, 121, 122, 123, 125, 126};
  return count < 33 ? bytes[count] : static_cast<u8>(kFull);
}

// The older, the less: 127 for age 0, `step` less for each round, never less than `least`.
SPARRING_FN u8 recent(u32 age, u32 step, u32 least) {
  return static_cast<u8>(age * step + least < kFull ? kFull - age * step : least);
}
}  // namespace table

namespace observing {

constexpr u32 kCropTiles = kCropSide * kCropSide, kCropReach = kCropSide / 2;
constexpr u32 kFarthest = 31;    // steps that reach is followed
constexpr u32 kThreatSteps = 7;  // the same from heads of enemies
constexpr u32 kBodyRounds = 4;   // bodies of others seen within so many rounds still bar the way
constexpr u32 kToldRounds = 16;  // for which told facts and packets are shown
constexpr u32 kClaimRounds = 4;

SPARRING_FN void store(u8* bytes, u32 first, u32 second, u32 third, u32 fourth) {
  bytes[0] = static_cast<u8>(first);
  bytes[1] = static_cast<u8>(second);
  bytes[2] = static_cast<u8>(third);
  bytes[3] = static_cast<u8>(fourth);
}

SPARRING_FN void store(u8* bytes, u32 four) { store(bytes, four, four >> 8, four >> 16, four >> 24); }

SPARRING_FN u32 lowest_bit(u32 bits) {
  constexpr u8 places[32] = {0,  1,  28, 2,  29, 14, 24, 3, 30, 22, 20, 15, 25, 17, 4,  8,
                             31, 27, 13, 23, 21, 19, 16, 7, 26, 12, 18, 6,  11, 5,  10, 9};
  return places[((bits & (0u - bits)) * 0x077CB531u) >> 27];
}

// The crop with north up: a bit for each column of a row, and an empty row at either end.
struct Rows {
  u32 row[kCropSide + 2];
};

struct Crop {
  Rows open_east, open_south;  // no kelp and no portal is known between the tile and the next one
  Rows free;                   // nobody is known to be there
  Rows enemies;                // heads seen in this turn
};

// Calls `reached(row, column, steps)` for all tiles that can be reached from `start` in at most so many steps. Portals
// are not taken, and what is not known is taken to be open.
template <typename Reached>
SPARRING_FN void flood(const Crop& crop, const Rows& start, u32 most, Reached&& reached) {
  Rows front = start, left = crop.free;
  for (u32 r = 1; r <= kCropSide; ++r) left.row[r] &= ~start.row[r];
  for (u32 steps = 1; steps <= most; ++steps) {
    Rows next{};
    u32 any = 0;
    for (u32 r = 1; r <= kCropSide; ++r) {
      const u32 here = front.row[r], east = crop.open_east.row[r];
      const u32 into = (here & east) << 1 | (here >> 1 & east) | (front.row[r - 1] & crop.open_south.row[r - 1]) |
                       (front.row[r + 1] & crop.open_south.row[r]);
      next.row[r] = into & left.row[r];
      any |= next.row[r];
    }
    if (any == 0) return;
    for (u32 r = 1; r <= kCropSide; ++r) {
      left.row[r] &= ~next.row[r];
      for (u32 bits = next.row[r]; bits != 0; bits &= bits - 1) reached(r - 1, lowest_bit(bits), steps);
    }
    front = next;
  }
}

// Where a tile of the crop with north up lies in that of the frame.
struct Turned {
  i32 origin, by_row, by_column;

  SPARRING_FN static Turned of(const Frame& frame) {
    constexpr i32 side = kCropSide, reach = kCropReach;
    const i32 by_column = -frame.fx * side + frame.rx, by_row = -frame.fy * side + frame.ry;
    return Turned{reach * side + reach - reach * (by_row + by_column), by_row, by_column};
  }

  SPARRING_FN u32 place(u32 row, u32 column) const {
    return static_cast<u32>(origin + static_cast<i32>(row) * by_row + static_cast<i32>(column) * by_column);
  }
};

SPARRING_FN u32 fill_crop(const Memory& memory, const Frame& frame, u8* out) {
  const Life& life = memory.life;
  const u32 now = life.round(), width = memory.width, height = memory.height;
  const u32 head_x = memory.x(life.head), head_y = memory.y(life.head);
  const Turned turned = Turned::of(frame);
  u32 sides[16];  // one byte for each side in the frame, by the sides on the board
  for (u32 set = 0; set < 16; ++set) {
    sides[set] = 0;
    for (u32 turn = 0; turn < 4; ++turn) sides[set] |= (set >> frame.world(turn) & 1) * table::kFull << 8 * turn;
  }
  u32 xs[kCropSide];
  for (u32 c = 0; c < kCropSide; ++c) xs[c] = (head_x + c + width - kCropReach) % width;

  Crop board{};
  for (u32 r = 0; r < kCropSide; ++r) {
    const u32 y = (head_y + r + height - kCropReach) % height, first = y * width;
    u32 north = 0, east = 0, south = 0, west = 0, taken = 0, enemies = 0;
    for (u32 c = 0; c < kCropSide; ++c) {
      const u32 tile = first + xs[c], bit = 1u << c;
      const Page& page = memory.pages[memory.table[tile / kPageTiles]];
      const u32 word = page.sight[tile % kPageTiles], note = page.told[tile % kPageTiles];
      u8* const cell = out + turned.place(r, c) * kCropPlanes;
      Ground ground{};
      bool inferred = false;
      const bool seen = (word & sight::kSeen) != 0;
      if (seen) {
        ground = memory.ground(tile);
      } else {
        inferred = life.symmetry != 0 && memory.infer_at(xs[c], y, ground);
        if (!inferred) ground = Ground{};
      }
      const u32 shut = ground.kelp | ground.portals;
      north |= (shut >> kNorth & 1) * bit;
      east |= (shut >> kEast & 1) * bit;
      south |= (shut >> kSouth & 1) * bit;
      west |= (shut >> kWest & 1) * bit;

      const u32 age = seen ? now - sight::round(word) : 0;
      const u32 code = sight::occupant(word);
      const u32 clears = code == occupant::kOwn ? memory.own_clears(tile) : 0;
      const bool other = occupant::somebody_else(code), enemy = occupant::enemy(code), is_head = occupant::head(code);
      if (clears != 0 || (other && age < kBodyRounds)) taken |= bit;
      if (enemy && is_head && age == 0) enemies |= bit;

      store(cell + crop::kKnown, table::flag(seen), age < table::kFull ? age : table::kFull,
            table::flag(seen && age == 0), table::flag(inferred));
      const u32 attempt = sight::attempt(word);
      u32 pearl = 0, due = 0;
      if ((word & sight::kPearl) != 0) {
        pearl = table::kFull;
      } else if (attempt != 0 && attempt <= now) {
        pearl = table::kFull / 2;
      }
      if (attempt > now) due = table::kFull - table::wide(attempt - now - 1);
      const bool queen = occupant::queen(code) && other;
      store(cell + crop::kPearl, pearl, due, table::flag(ground.spawns), table::flag(queen));
      store(cell + crop::kKelp, sides[ground.kelp]);
      store(cell + crop::kPortal, sides[ground.portals]);
      store(cell + crop::kHeading, is_head ? sides[1u << (code & occupant::kFacing)] : 0);
      store(cell + crop::kOwn, table::flag(clears != 0), clears < table::kFull ? clears : table::kFull,
            table::flag(other && !enemy && is_head), table::flag(other && !enemy && !is_head));
      u32 told_pearl = 0, told_ally = 0, told_enemy = 0;
      if (note != 0 && code != occupant::kOwn) {
        const u32 since = now - (note & sight::kRound), what = note >> Hearsay::kWhatAt;
        const u32 value = since < kToldRounds ? table::recent(since, 8, 1) : 0;
        told_pearl = what == Hearsay::kPearl ? value : 0;
        told_ally = what == Hearsay::kAlly ? value : 0;
        told_enemy = what == Hearsay::kEnemyHead ? value : 0;
      }
      store(cell + crop::kEnemyHead, table::flag(enemy && is_head), table::flag(enemy && !is_head), told_pearl,
            told_ally);
      store(cell + crop::kToldEnemy, told_enemy);
    }
    constexpr u32 all = (1u << kCropSide) - 1;
    board.open_east.row[r + 1] = ~(east | west >> 1) & all >> 1;
    board.open_south.row[r + 1] = r + 1 < kCropSide ? ~south & all : 0;
    if (r > 0) board.open_south.row[r] &= ~north;
    board.free.row[r + 1] = ~taken & all;
    board.enemies.row[r + 1] = enemies;
  }

  Rows head{};
  head.row[kCropReach + 1] = 1u << kCropReach;
  u32 room = 1;
  out[turned.place(kCropReach, kCropReach) * kCropPlanes + crop::kReach] = table::kFull;
  flood(board, head, kFarthest, [&](u32 row, u32 column, u32 steps) {
    out[turned.place(row, column) * kCropPlanes + crop::kReach] = static_cast<u8>(table::kFull - 4 * steps);
    ++room;
  });
  flood(board, board.enemies, kThreatSteps, [&](u32 row, u32 column, u32 steps) {
    out[turned.place(row, column) * kCropPlanes + crop::kThreat] = static_cast<u8>(table::kFull - 16 * steps);
  });

  for (u32 i = 0; i < kHeardPackets && life.heard_at[i] != 0; ++i) {
    const u32 age = life.seen_at - life.heard_at[i];
    const Packet packet = unpack_fields(life.heard[i]);
    if (age >= kClaimRounds || packet.claim == kNoClaim) continue;
    constexpr u32 reach = kClaimSide / 2;
    const u32 x = packet.x + packet.claim % kClaimSide + width - reach;
    const u32 y = packet.y + packet.claim / kClaimSide + height - reach;
    for (u32 r = (y + height - head_y + kCropReach) % height; r < kCropSide; r += height) {
      for (u32 c = (x + width - head_x + kCropReach) % width; c < kCropSide; c += width) {
        u8& claimed = out[turned.place(r, c) * kCropPlanes + crop::kClaimed];
        const u8 value = table::recent(age, 32, 1);
        claimed = claimed < value ? value : claimed;
      }
    }
  }
  return room;
}

// The block of the head lies at [8][8]; forward is up. Beyond the rim the map goes on round the board.
SPARRING_FN void fill_overview(const Memory& memory, const Frame& frame, u8* out) {
  const Life& life = memory.life;
  const u32 block_width = overview::block_side(memory.width), block_height = overview::block_side(memory.height);
  const u32 columns = (memory.width + block_width - 1) / block_width;
  const u32 rows = (memory.height + block_height - 1) / block_height;
  const u32 tiles = block_width * block_height;
  const u32 head_column = memory.x(life.head) / block_width, head_row = memory.y(life.head) / block_height;
  constexpr i32 middle = kOverviewSide / 2, side = kOverviewSide;
  // Twice the side of the overview and of the torus of blocks is more than any offset: sums stay positive.
  u32 column_of[2 * kOverviewSide + 1], row_of[2 * kOverviewSide + 1];  // by offset + side
  for (u32 i = 0; i <= 2 * kOverviewSide; ++i) {
    column_of[i] = (head_column + i + kOverviewSide * (columns - 1)) % columns;
    row_of[i] = (head_row + i + kOverviewSide * (rows - 1)) % rows;
  }
  for (i32 r = 0; r < side; ++r) {
    for (i32 c = 0; c < side; ++c, out += kOverviewPlanes) {
      const i32 ahead = middle - r, right = c - middle;
      const u32 row = row_of[frame.dy(ahead, right) + side], column = column_of[frame.dx(ahead, right) + side];
      const u8* const block = life.overview[row * kOverviewSide + column];
      if (block[overview::kKnown] == 0) {
        store(out, 0);
        store(out + 4, 0);
        continue;
      }
      const u32 age = life.round() - 2 * (block[overview::kSeenAt] - 1u);
      store(out, table::share(block[overview::kKnown], tiles), table::share(block[overview::kKelp], 2 * tiles),
            table::few(block[overview::kPearls]), table::share(block[overview::kSpawns], tiles));
      store(out + 4, table::few(block[overview::kAllies]), table::few(block[overview::kEnemies]),
            table::recent(age / 4, 1, 1), table::few(block[overview::kPortals]));
    }
  }
}

// How far `to` lies ahead of `from` (positive) on a ring of so many tiles. Half way round is both ways.
SPARRING_FN i32 offset(u32 from, u32 to, u32 ring, bool& both) {
  const u32 on = (to + ring - from) % ring;
  both = 2 * on == ring;
  return 2 * on <= ring ? static_cast<i32>(on) : static_cast<i32>(on) - static_cast<i32>(ring);
}

SPARRING_FN void fill_sonar(const Memory& memory, const Frame& frame, u8* out) {
  const Life& life = memory.life;
  for (u32 i = 0; i < kHeardPackets; ++i, out += kSonarBytes) {
    for (u32 j = 0; j < kSonarBytes; ++j) out[j] = 0;
    const u32 age = life.seen_at - life.heard_at[i];
    if (life.heard_at[i] == 0 || age >= kToldRounds) continue;
    const Packet packet = unpack_fields(life.heard[i]);
    bool both_x = false, both_y = false;
    const i32 dx = offset(memory.x(life.head), packet.x, memory.width, both_x);
    const i32 dy = offset(memory.y(life.head), packet.y, memory.height, both_y);
    const i32 ahead = frame.forward(dx, dy), right = frame.right(dx, dy);
    const bool along_x = frame.fx != 0;
    const auto distance = [](i32 way, bool both) {
      return table::wide(static_cast<u32>(way > 0 ? way : both ? -way : 0));
    };
    out[heard::kValid] = table::kFull;
    out[heard::kAge] = table::recent(age, 8, 1);
    out[heard::kLength] = static_cast<u8>(packet.length);
    out[heard::kAhead] = distance(ahead, along_x ? both_x : both_y);
    out[heard::kBehind] = distance(-ahead, along_x ? both_x : both_y);
    out[heard::kLeftward] = distance(-right, along_x ? both_y : both_x);
    out[heard::kRightward] = distance(right, along_x ? both_y : both_x);
    for (u32 bit = 0; bit < 3; ++bit) out[heard::kRole + bit] = table::flag((packet.role >> bit & 1) != 0);
    if (packet.claim != kNoClaim) {
      constexpr i32 claim_side = kClaimSide, reach = kClaimSide / 2;
      const i32 claim = static_cast<i32>(packet.claim), east = claim % claim_side - reach,
                south = claim / claim_side - reach;
      out[heard::kClaimAhead] = static_cast<u8>(24 * (frame.forward(east, south) + reach + 1));
      out[heard::kClaimAcross] = static_cast<u8>(24 * (frame.right(east, south) + reach + 1));
    }
    out[heard::kQueen] = table::flag(packet.queen != 0);
    if (packet.place != kNoReport) {
      constexpr i32 window = kWindow, reach = kWindow / 2;
      const i32 place = static_cast<i32>(packet.place), east = place % window - reach, south = place / window - reach;
      out[heard::kReport] = packet.enemy != 0 ? table::kFull : table::kFull / 2;
      out[heard::kReportAhead] = static_cast<u8>(16 * (frame.forward(east, south) + reach + 1));
      out[heard::kReportAcross] = static_cast<u8>(16 * (frame.right(east, south) + reach + 1));
    }
  }
}

SPARRING_FN void fill_scalars(const Memory& memory, const Identity& who, const View& view, const Frame& frame, u32 room,
                              u8* out) {
  const Life& life = memory.life;
  const u32 round = static_cast<u32>(view.round), units = static_cast<u32>(view.units);
  const u32 limit = static_cast<u32>(who.unit_limit), lived = life.decisions - 1u;
  constexpr u32 last_round = static_cast<u32>(kRounds) - 1;
  const auto known_alive = [&](u32 seen_at) {
    return seen_at == 0 ? u8{0} : table::recent(life.seen_at - seen_at, 1, 1);
  };
  out[scalar::kLength] = table::wide(life.length);
  out[scalar::kFreeSteps] = table::wide(free_steps_of(life.length));
  out[scalar::kPayable] = table::wide(payable_steps_of(life.length));
  out[scalar::kUnits] = table::wide(units);
  out[scalar::kUnitLimit] = table::wide(limit);
  out[scalar::kUnitsLeft] = table::wide(limit > units ? limit - units : 0);
  out[scalar::kRound] = table::share(round, last_round);
  out[scalar::kRoundsLeft] = table::wide(last_round - round);
  out[scalar::kQueen] = table::flag(life.queen());
  out[scalar::kAllyQueen] = known_alive(life.ally_queen);
  out[scalar::kEnemyQueen] = known_alive(life.enemy_queen);
  out[scalar::kTeam] = table::flag(who.team != 0);
  for (u32 i = 0; i < 5; ++i) {
    out[scalar::kEchoes + i] =
        static_cast<u8>(view.echoes[i] < 4 ? 31 * view.echoes[i] : static_cast<i32>(table::kFull));
  }
  out[scalar::kMessages] = table::few(view.messages);
  out[scalar::kPackets] = table::few(life.packets);
  out[scalar::kUnread] = table::few(life.unread);

  const bool along_x = frame.fx != 0;
  const u32 block_width = overview::block_side(memory.width), block_height = overview::block_side(memory.height);
  const u32 in_x = memory.x(life.head) % block_width, in_y = memory.y(life.head) % block_height;
  const auto offset_along = [&](u32 in, u32 side, i32 way) {
    return static_cast<u8>(8 * (way > 0 ? in : side - 1 - in));
  };
  const u8 offset_x = offset_along(in_x, block_width, along_x ? frame.fx : frame.rx);
  const u8 offset_y = offset_along(in_y, block_height, along_x ? frame.ry : frame.fy);
  out[scalar::kBoardAhead] = table::wide(along_x ? memory.width : memory.height);
  out[scalar::kBoardAcross] = table::wide(along_x ? memory.height : memory.width);
  out[scalar::kBlockAhead] = static_cast<u8>(7 * (along_x ? block_width : block_height));
  out[scalar::kBlockAcross] = static_cast<u8>(7 * (along_x ? block_height : block_width));
  out[scalar::kOffsetAhead] = along_x ? offset_x : offset_y;
  out[scalar::kOffsetAcross] = along_x ? offset_y : offset_x;

  for (u32 role = 0; role < kRoles; ++role) out[scalar::kRole + role] = table::flag(lived > 0 && life.role == role);
  const u32 held_for = lived % kRoleRounds;
  out[scalar::kNextRole] = static_cast<u8>(held_for == 0 ? 0 : 7 * (kRoleRounds - held_for));
  out[scalar::kRoleDue] = table::flag(role_due(life));
  out[scalar::kBirth] = table::flag(lived == 0);
  out[scalar::kLived] = table::share(lived, last_round);
  out[scalar::kWide] = table::flag(view.wide != 0);
  const u32 ahead_bit = along_x ? kMirrorY - kMirrorX : 0, across_bit = 1 - ahead_bit;
  out[scalar::kMirrorAhead] = table::flag((life.symmetry >> ahead_bit & 1) != 0);
  out[scalar::kMirrorAcross] = table::flag((life.symmetry >> across_bit & 1) != 0);
  out[scalar::kMirrorBoth] = table::flag((life.symmetry >> (kMirrorXY - kMirrorX) & 1) != 0);
  out[scalar::kKnown] = table::share(life.known, memory.cells);
  out[scalar::kCanSplit] = table::flag(units < limit && life.length >= 2 * kLeastSegments);

  u32 allies = 0, enemies = 0, pearls = 0;
  for (u32 place = 0; place < kWindowTiles; ++place) {
    pearls += view.pearl[place] != 0;
    const u32 code = remembering::occupant_code(who, view, place);
    if (!occupant::head(code)) continue;
    ++(occupant::enemy(code) ? enemies : allies);
  }
  out[scalar::kAllies] = table::few(allies);
  out[scalar::kEnemies] = table::few(enemies);
  out[scalar::kPearls] = table::few(pearls);
  out[scalar::kRoom] = table::wide(room);
}

}  // namespace observing

// Of a dragon that remembers this turn's View.
SPARRING_FN void observe(const Memory& memory, const Identity& who, const View& view, InputsRow& inputs) {
  const Frame frame = Frame::of(memory.life.facing, memory.life.mirrored);
  const u32 room = observing::fill_crop(memory, frame, &inputs.crop[0][0][0]);
  observing::fill_overview(memory, frame, &inputs.overview[0][0][0]);
  observing::fill_scalars(memory, who, view, frame, room, inputs.scalars);
  observing::fill_sonar(memory, frame, &inputs.sonar[0][0]);
}

}  // namespace sparring::loong
