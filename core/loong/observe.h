// The actor's inputs: all that a dragon knows, as bytes from 0 to 127 in its own frame.
#pragma once

#include "actions.h"
#include "sight.h"

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

// One store where four bytes are told by one number, the first the lowest.
SPARRING_FN void store(u8* bytes, u32 four) {
  bytes[0] = static_cast<u8>(four);
  bytes[1] = static_cast<u8>(four >> 8);
  bytes[2] = static_cast<u8>(four >> 16);
  bytes[3] = static_cast<u8>(four >> 24);
}

SPARRING_FN u32 join(u32 first, u32 second, u32 third, u32 fourth) {
  return first | second << 8 | third << 16 | fourth << 24;
}

SPARRING_FN u32 lowest_bit(u64 bits) {
#if defined(__GNUC__) && !defined(__CUDACC__)
  return static_cast<u32>(__builtin_ctzll(bits));
#else
  return count((bits & (0 - bits)) - 1);
#endif
}

// Tiles of the crop with north up: 16 bits for each row, four rows in a word, one bit for each column.
struct CropTiles {
  static constexpr u32 kWords = 4, kRowBits = 16, kRowsOfWord = 4;
  u64 word[kWords];

  SPARRING_FN void put(u32 row, u32 columns) {
    word[row / kRowsOfWord] |= static_cast<u64>(columns) << kRowBits * (row % kRowsOfWord);
  }
};

struct Barriers {
  CropTiles open_east, open_south;  // no kelp and no portal is known between the tile and the next one
  CropTiles free;                   // nobody is known to be there
};

// Calls `reached(row, column, steps)` for all tiles that can be reached from `start` in at most so many steps. Portals
// are not taken, and what is not known is taken to be open.
template <typename Reached>
SPARRING_FN void flood(const Barriers& crop, const CropTiles& start, u32 most, Reached&& reached) {
  constexpr u32 words = CropTiles::kWords, row_bits = CropTiles::kRowBits, rest = 64 - row_bits;
  CropTiles front = start, left = crop.free;
  for (u32 i = 0; i < words; ++i) left.word[i] &= ~start.word[i];
  for (u32 steps = 1; steps <= most; ++steps) {
    u64 south[words];  // those that can go on to the south
    for (u32 i = 0; i < words; ++i) south[i] = front.word[i] & crop.open_south.word[i];
    CropTiles next;
    u64 any = 0;
    for (u32 i = 0; i < words; ++i) {
      const u64 here = front.word[i], east = crop.open_east.word[i];
      const u64 from_north = south[i] << row_bits | (i > 0 ? south[i - 1] >> rest : 0);
      const u64 below = here >> row_bits | (i + 1 < words ? front.word[i + 1] << rest : 0);
      next.word[i] =
          ((here & east) << 1 | (here >> 1 & east) | from_north | (below & crop.open_south.word[i])) & left.word[i];
      left.word[i] ^= next.word[i];
      any |= next.word[i];
    }
    if (any == 0) return;
    for (u32 i = 0; i < words; ++i) {
      for (u64 bits = next.word[i]; bits != 0; bits &= bits - 1) {
        const u32 place = i * 64 + lowest_bit(bits);
        reached(place / row_bits, place % row_bits, steps);
      }
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

// One byte for each side in the frame, by the sides on the board.
struct Sides {
  u32 bytes[16];

  SPARRING_FN static Sides of(const Frame& frame) {
    Sides sides{};
    for (u32 turn = 0; turn < 4; ++turn) sides.bytes[1u << frame.world(turn)] = table::kFull << 8 * turn;
    for (u32 set = 1; set < 16; ++set) sides.bytes[set] = sides.bytes[set & (set - 1)] | sides.bytes[set & (0u - set)];
    return sides;
  }
};

// The planes of one tile that say who is there, if anybody was.
SPARRING_FN void fill_occupant(const Sides& sides, u32 code, u32 clears, u8* cell) {
  const bool other = occupant::somebody_else(code), enemy = occupant::enemy(code), is_head = occupant::head(code);
  store(cell + crop::kHeading, is_head ? sides.bytes[1u << (code & occupant::kFacing)] : 0);
  store(cell + crop::kOwn, join(table::flag(clears != 0), clears < table::kFull ? clears : table::kFull,
                                table::flag(other && !enemy && is_head), table::flag(other && !enemy && !is_head)));
  cell[crop::kEnemyHead] = table::flag(enemy && is_head);
  cell[crop::kEnemyBody] = table::flag(enemy && !is_head);
}

SPARRING_FN void fill_hearsay(u32 note, u32 now, u8* cell) {
  const u32 since = now - (note & sight::kRound), what = note >> Hearsay::kWhatAt;
  if (since >= kToldRounds) return;
  const u8 value = table::recent(since, 8, 1);
  if (what == Hearsay::kPearl) cell[crop::kToldPearl] = value;
  if (what == Hearsay::kAlly) cell[crop::kToldAlly] = value;
  if (what == Hearsay::kEnemyHead) cell[crop::kToldEnemy] = value;
}

SPARRING_FN u32 fill_crop(const Memory& memory, const Frame& frame, u8* out) {
  const Life& life = memory.life;
  const u32 now = life.round(), width = memory.width, height = memory.height;
  const u32 head_x = memory.x(life.head), head_y = memory.y(life.head);
  const Turned turned = Turned::of(frame);
  const Sides sides = Sides::of(frame);
  u32 xs[kCropSide];
  for (u32 c = 0; c < kCropSide; ++c) xs[c] = (head_x + c + width - kCropReach) % width;

  for (u32 i = 0; i < kCropTiles * kCropPlanes; ++i) out[i] = 0;
  Barriers barriers{};
  CropTiles enemies{};
  u32 open_south = 0;  // of the row before
  for (u32 r = 0; r < kCropSide; ++r) {
    const u32 y = (head_y + r + height - kCropReach) % height, first = y * width;
    u32 north = 0, east = 0, south = 0, west = 0, taken = 0, hostile = 0;
    u8* cell = out + turned.place(r, 0) * kCropPlanes;
    for (u32 c = 0; c < kCropSide; ++c, cell += turned.by_column * static_cast<i32>(kCropPlanes)) {
      const u32 tile = first + xs[c];
      const Page& page = memory.pages[memory.table[tile / kPageTiles]];
      const u32 word = page.sight[tile % kPageTiles], note = page.told[tile % kPageTiles];
      Ground ground{};
      if ((word & sight::kSeen) != 0) {
        ground = memory.ground(tile);
        const u32 age = now - sight::round(word), attempt = sight::attempt(word), code = sight::occupant(word);
        store(cell + crop::kKnown,
              join(table::kFull, age < table::kFull ? age : table::kFull, table::flag(age == 0), 0));
        u32 pearl = (word & sight::kPearl) != 0 ? table::kFull : 0, due = 0;
        if (attempt > now) {
          due = table::kFull - table::wide(attempt - now - 1);
        } else if (attempt != 0 && pearl == 0) {
          pearl = table::kFull / 2;
        }
        store(cell + crop::kPearl, join(pearl, due, table::flag(ground.spawns),
                                        table::flag(occupant::somebody_else(code) && occupant::queen(code))));
        if (code != occupant::kNobody) {
          const u32 clears = code == occupant::kOwn ? memory.own_clears(tile) : 0;
          taken |= (clears != 0 || (code != occupant::kOwn && age < kBodyRounds)) << c;
          hostile |= (occupant::enemy(code) && occupant::head(code) && age == 0) << c;
          fill_occupant(sides, code, clears, cell);
        }
        if (note != 0 && code != occupant::kOwn) fill_hearsay(note, now, cell);
      } else {
        if (life.symmetry != 0 && memory.infer_at(xs[c], y, ground)) {
          cell[crop::kInferred] = table::kFull;
          cell[crop::kSpawns] = table::flag(ground.spawns);
        } else {
          ground = Ground{};
        }
        if (note != 0) fill_hearsay(note, now, cell);
      }
      const u32 shut = ground.kelp | ground.portals;
      if (shut == 0) continue;
      store(cell + crop::kKelp, sides.bytes[ground.kelp]);
      store(cell + crop::kPortal, sides.bytes[ground.portals]);
      north |= (shut >> kNorth & 1) << c;
      east |= (shut >> kEast & 1) << c;
      south |= (shut >> kSouth & 1) << c;
      west |= (shut >> kWest & 1) << c;
    }
    constexpr u32 all = (1u << kCropSide) - 1;
    barriers.open_east.put(r, ~(east | west >> 1) & all >> 1);
    if (r > 0) barriers.open_south.put(r - 1, open_south & ~north);
    open_south = ~south & all;
    barriers.free.put(r, ~taken & all);
    enemies.put(r, hostile);
  }

  CropTiles head{};
  head.put(kCropReach, 1u << kCropReach);
  u32 room = 1;
  out[turned.place(kCropReach, kCropReach) * kCropPlanes + crop::kReach] = table::kFull;
  flood(barriers, head, kFarthest, [&](u32 row, u32 column, u32 steps) {
    out[turned.place(row, column) * kCropPlanes + crop::kReach] = static_cast<u8>(table::kFull - 4 * steps);
    ++room;
  });
  flood(barriers, enemies, kThreatSteps, [&](u32 row, u32 column, u32 steps) {
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
  // The number of the block at (r, c) is down[r] + across[c].
  u32 down[kOverviewSide], across[kOverviewSide];
  const auto block_at = [](u32 head, i32 offset, u32 count) {
    return (head + static_cast<u32>(offset + static_cast<i32>(kOverviewSide * count))) % count;
  };
  const u32 head_column = memory.x(life.head) / block_width, head_row = memory.y(life.head) / block_height;
  for (u32 i = 0; i < kOverviewSide; ++i) {
    constexpr i32 middle = kOverviewSide / 2;
    const i32 ahead = middle - static_cast<i32>(i), right = -ahead;
    if (frame.fx == 0) {
      down[i] = block_at(head_row, frame.dy(ahead, 0), rows) * kOverviewSide;
      across[i] = block_at(head_column, frame.dx(0, right), columns);
    } else {
      down[i] = block_at(head_column, frame.dx(ahead, 0), columns);
      across[i] = block_at(head_row, frame.dy(0, right), rows) * kOverviewSide;
    }
  }
  for (u32 i = 0; i < kOverviewSide * kOverviewSide * kOverviewPlanes; ++i) out[i] = 0;
  for (u32 r = 0; r < kOverviewSide; ++r) {
    for (u32 c = 0; c < kOverviewSide; ++c, out += kOverviewPlanes) {
      const u8* const block = life.overview[down[r] + across[c]];
      if (block[overview::kKnown] == 0) continue;
      const u32 age = life.round() - 2 * (block[overview::kSeenAt] - 1u);
      store(out, join(table::share(block[overview::kKnown], tiles), table::share(block[overview::kKelp], 2 * tiles),
                      table::few(block[overview::kPearls]), table::share(block[overview::kSpawns], tiles)));
      store(out + 4, join(table::few(block[overview::kAllies]), table::few(block[overview::kEnemies]),
                          table::recent(age / 4, 1, 1), table::few(block[overview::kPortals])));
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
