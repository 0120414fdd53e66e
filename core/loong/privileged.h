// The critic's inputs, in training only: the true state as bytes from 0 to 127. No bot includes this, and nothing that
// acts reads it. docs/loong-knowledge.md says what each value means.
#pragma once

#include "observe.h"

namespace sparring::loong::privileged {

constexpr u32 kBoardSide = 16, kBoardPlanes = 16, kCropPlanes = 16, kDragonScalars = 32, kTeamScalars = 32;
constexpr u32 kBoardBytes = kBoardSide * kBoardSide * kBoardPlanes, kCropBytes = kCropSide * kCropSide * kCropPlanes;
constexpr i32 kSoon = 8;  // rounds within which an attempt is due

// A board lies as the world does: row 0 is the north. "own" and "enemy" are meant by the team whose board it is.
namespace board {
enum Plane : u32 {
  kInside,
  kKelp,
  kPortals,
  kSpawns,
  kPearls,
  kDue,
  kOwnHeads,
  kOwnSegments,
  kOwnQueen,
  kOwnLengths,
  kOwnToAct,
  kEnemyHeads,
  kEnemySegments,
  kEnemyQueen,
  kEnemyLengths,
  kEnemyToAct,
};
static_assert(kEnemyToAct + 1 == kBoardPlanes);
}  // namespace board

constexpr const char* kBoardNames[kBoardPlanes] = {"inside",         "kelp",        "portals",       "spawns",
                                                   "pearls",         "due",         "own heads",     "own segments",
                                                   "own queen",      "own lengths", "own to act",    "enemy heads",
                                                   "enemy segments", "enemy queen", "enemy lengths", "enemy to act"};

// The crop lies as the actor's does: forward is up, and a life that is mirrored sees it mirrored.
namespace crop {
enum Plane : u32 {
  kKelp,  // forward, right, back, left
  kPortals = kKelp + 4,
  kPearl,
  kAttempt,
  kSelf,
  kAllyHead,
  kAllyBody,
  kEnemyHead,
  kEnemyBody,
  kLength,
  kClears,
  kQueen,
  kLater,
};
static_assert(kLater + 1 == kCropPlanes);
}  // namespace crop

constexpr const char* kCropNames[kCropPlanes] = {
    "kelp forward", "kelp right", "kelp back",  "kelp left",  "portals", "pearl",  "attempt", "self",
    "ally head",    "ally body",  "enemy head", "enemy body", "length",  "clears", "queen",   "later"};

// What both the dragon's and the team's scalars say of the teams, in this order.
enum Versus : u32 {
  kOwnDragons,
  kEnemyDragons,
  kUnitLimit,
  kOwnTotal,
  kEnemyTotal,
  kOwnLongest,
  kEnemyLongest,
  kOwnQueen,
  kEnemyQueen,
  kTotalAhead,
  kTotalBehind,
  kLongestAhead,
  kLongestBehind,
  kQueenAhead,
  kQueenBehind,
  kVersusCount,
};

namespace dragon {
enum Scalar : u32 {
  kLength,
  kFreeSteps,
  kPayable,
  kQueen,
  kTeam,
  kRound,
  kRoundsLeft,
  kPlace,
  kLater,
  kCanSplit,
  kLongest,
  kVersus,
  kOwnQueenNear = kVersus + kVersusCount,
  kEnemyQueenNear,
  kAllyNear,
  kEnemyNear,
  kBoardAhead,
  kBoardAcross,
};
static_assert(kBoardAcross + 1 == kDragonScalars);
}  // namespace dragon

constexpr const char* kDragonNames[kDragonScalars] = {
    "length",        "free steps",    "payable steps",  "queen",
    "team",          "round",         "rounds left",    "place",
    "later",         "can split",     "longest",        "own dragons",
    "enemy dragons", "unit limit",    "own total",      "enemy total",
    "own longest",   "enemy longest", "own queen",      "enemy queen",
    "total ahead",   "total behind",  "longest ahead",  "longest behind",
    "queen ahead",   "queen behind",  "own queen near", "enemy queen near",
    "ally near",     "enemy near",    "board ahead",    "board across"};

namespace team {
enum Scalar : u32 {
  kTeam,
  kRound,
  kRoundsLeft,
  kActs,
  kVersus,
  kDragonsAhead = kVersus + kVersusCount,
  kDragonsBehind,
  kOwnToAct,
  kEnemyToAct,
  kOwnCanSplit,
  kEnemyCanSplit,
  kPearls,
  kDue,
  kSpawns,
  kKelp,
  kWidth,
  kHeight,
  kQueensNear,
};
static_assert(kQueensNear + 1 == kTeamScalars);
}  // namespace team

constexpr const char* kTeamNames[kTeamScalars] = {"team",
                                                  "round",
                                                  "rounds left",
                                                  "acts",
                                                  "own dragons",
                                                  "enemy dragons",
                                                  "unit limit",
                                                  "own total",
                                                  "enemy total",
                                                  "own longest",
                                                  "enemy longest",
                                                  "own queen",
                                                  "enemy queen",
                                                  "total ahead",
                                                  "total behind",
                                                  "longest ahead",
                                                  "longest behind",
                                                  "queen ahead",
                                                  "queen behind",
                                                  "dragons ahead",
                                                  "dragons behind",
                                                  "own to act",
                                                  "enemy to act",
                                                  "own can split",
                                                  "enemy can split",
                                                  "pearls",
                                                  "due",
                                                  "spawns",
                                                  "kelp",
                                                  "board width",
                                                  "board height",
                                                  "queens near"};

// Twelve for each doubling of 1 + count, linear in between: 127 from some 1,500 on.
SPARRING_FN u8 many(u32 count) {
  u32 doublings = 0;
  while (count + 1 >= 2u << doublings && doublings < 11) ++doublings;
  const u32 byte = 12 * doublings + 12 * (count + 1 - (1u << doublings)) / (1u << doublings);
  return static_cast<u8>(byte < table::kFull ? byte : table::kFull);
}

SPARRING_FN u8 ahead_by(i32 lead) { return table::wide(lead > 0 ? static_cast<u32>(lead) : 0); }

// A tile by its column and row.
struct Spot {
  u32 x, y;

  SPARRING_FN static Spot of(const Level& level, u32 tile) {
    const u32 width = static_cast<u32>(level.width);
    return Spot{tile % width, tile / width};
  }

  // Steps between two tiles if nothing were in the way and no portal there.
  SPARRING_FN u32 distance(const Level& level, const Spot& other) const {
    const auto around = [](u32 from, u32 to, i32 ring) {
      const u32 way = from < to ? to - from : from - to, back = static_cast<u32>(ring) - way;
      return way < back ? way : back;
    };
    return around(x, other.x, level.width) + around(y, other.y, level.height);
  }
};

// The nearer, the more; 0 only where there is nothing.
SPARRING_FN u8 near(u32 distance) {
  return static_cast<u8>(distance == kNone ? 0 : table::kFull - table::wide(distance));
}

// What a lane's teams have now.
struct Teams {
  Standing standing[2];
  u32 to_act[2];     // in this round, who waits included
  u32 can_split[2];  // by their length
  u32 queen[2];      // tile of her head, or kNone

  SPARRING_FN static Teams of(const Lane& lane) {
    Teams teams{{loong::standing(lane, 0), loong::standing(lane, 1)}, {}, {}, {kNone, kNone}};
    for (u32 i = 0; i < lane.match.alive; ++i) {
      const Dragon& each = lane.dragons[lane.order[i]];
      teams.to_act[each.team] += to_act_at(lane, i);
      teams.can_split[each.team] += each.length >= 2 * kLeastSegments;
      if (each.id < 2) teams.queen[each.team] = lane.head_tile(each);
    }
    return teams;
  }

  // Has the dragon at a place of Lane::order still to act in this round?
  SPARRING_FN static bool to_act_at(const Lane& lane, u32 place) {
    return place >= lane.match.cursor || lane.order[place] == lane.match.acting;
  }

  SPARRING_FN void fill_versus(const Level& level, u32 own_team, u8* out) const {
    const Standing &own = standing[own_team], &enemy = standing[1 - own_team];
    const auto amount = [](i32 count) { return table::wide(static_cast<u32>(count)); };
    out[kOwnDragons] = amount(own.dragons);
    out[kEnemyDragons] = amount(enemy.dragons);
    out[kUnitLimit] = amount(level.unit_limit);
    out[kOwnTotal] = amount(own.total);
    out[kEnemyTotal] = amount(enemy.total);
    out[kOwnLongest] = amount(own.longest);
    out[kEnemyLongest] = amount(enemy.longest);
    out[kOwnQueen] = amount(own.queen);
    out[kEnemyQueen] = amount(enemy.queen);
    out[kTotalAhead] = ahead_by(own.total - enemy.total);
    out[kTotalBehind] = ahead_by(enemy.total - own.total);
    out[kLongestAhead] = ahead_by(own.longest - enemy.longest);
    out[kLongestBehind] = ahead_by(enemy.longest - own.longest);
    out[kQueenAhead] = ahead_by(own.queen - enemy.queen);
    out[kQueenBehind] = ahead_by(enemy.queen - own.queen);
  }
};

// ---- Of one dragon.

// What lies on a tile, but for dragons.
SPARRING_FN void fill_tile(const Lane& lane, const observing::Sides& sides, u32 tile, u8* cell) {
  const Tile& ground = lane.tiles[tile];
  const u32 kelp = ground.kelp & 15u, portals = ground.portals & 15u;
  if (kelp != 0) observing::store(cell + crop::kKelp, sides.bytes[kelp]);
  if (portals != 0) cell[crop::kPortals] = static_cast<u8>(portals < 15 ? 32 * count(portals) : table::kFull);
  if (lane.cells[tile].pearl()) cell[crop::kPearl] = table::kFull;
  if (ground.spawns()) {
    const u32 due = table::kFull - table::wide(static_cast<u32>(lane.countdown(tile)) - 1);
    cell[crop::kAttempt] = static_cast<u8>(due > 0 ? due : 1);
  }
}

// Whoever holds the tile; when it clears is filled in by `fill_clears`.
SPARRING_FN void fill_holder(const Lane& lane, const Dragon& self, const Dragon& holder, u32 tile, u8* cell) {
  const bool ally = holder.team == self.team, head = lane.head_tile(holder) == tile;
  const u32 plane = &holder == &self ? crop::kSelf
                    : ally           ? (head ? crop::kAllyHead : crop::kAllyBody)
                                     : (head ? crop::kEnemyHead : crop::kEnemyBody);
  cell[plane] = table::kFull;
  cell[crop::kLength] = table::wide(holder.length);
  cell[crop::kClears] = table::kFull;
  cell[crop::kQueen] = table::flag(holder.id < 2);
  cell[crop::kLater] = table::flag(holder.id > self.id);
}

// The crop around the head of the dragon in a slot.
struct TrueCrop {
  const Lane& lane;
  u32 width, height;
  Spot head;
  observing::Turned turned;
  u8* out;

  SPARRING_FN u8* cell(u32 row, u32 column) const { return out + turned.place(row, column) * kCropPlanes; }

  // After how many steps of its tail a dragon leaves the tiles that it holds: 1 for that of the tail.
  SPARRING_FN void fill_clears(u32 slot) const {
    constexpr u32 reach = observing::kCropReach;
    const Dragon& holder = lane.dragons[slot];
    for (u32 n = 1, at = holder.tail; n <= holder.length && n < table::kFull; ++n, at = lane.cells[at].next) {
      const u32 tile = lane.tile_of(at);
      if (lane.cells[tile].slot() != slot) continue;
      const Spot spot = Spot::of(lane.level, tile);
      u32 first_row = spot.y + height - head.y + reach, first_column = spot.x + width - head.x + reach;
      while (first_row >= height) first_row -= height;  // quicker than a division
      while (first_column >= width) first_column -= width;
      for (u32 row = first_row; row < kCropSide; row += height) {
        for (u32 column = first_column; column < kCropSide; column += width) {
          cell(row, column)[crop::kClears] = static_cast<u8>(n);
        }
      }
    }
  }
};

SPARRING_FN void fill_crop(const Lane& lane, u32 slot, u32 mirrored, u8* out) {
  constexpr u32 reach = observing::kCropReach;
  const Dragon& self = lane.dragons[slot];
  const u32 width = static_cast<u32>(lane.level.width), height = static_cast<u32>(lane.level.height);
  const Spot head = Spot::of(lane.level, lane.head_tile(self));
  const Frame frame = Frame::of(self.facing, mirrored);
  const observing::Sides sides = observing::Sides::of(frame);
  const TrueCrop around{lane, width, height, head, observing::Turned::of(frame), out};
  for (u32 i = 0; i < kCropBytes; ++i) out[i] = 0;
  u32 columns[kCropSide];
  for (u32 c = 0; c < kCropSide; ++c) columns[c] = (head.x + c + width - reach) % width;
  u16 met[kCropSide * kCropSide];
  u32 met_count = 0;
  for (u32 r = 0; r < kCropSide; ++r) {
    const u32 first = (head.y + r + height - reach) % height * width;
    for (u32 c = 0; c < kCropSide; ++c) {
      const u32 tile = first + columns[c], holder = lane.cells[tile].slot();
      u8* const cell = around.cell(r, c);
      fill_tile(lane, sides, tile, cell);
      if (holder == kNone) continue;
      fill_holder(lane, self, lane.dragons[holder], tile, cell);
      u32 place = met_count;
      while (place > 0 && met[place - 1] != holder) --place;
      if (place == 0) met[met_count++] = static_cast<u16>(holder);
    }
  }
  for (u32 i = 0; i < met_count; ++i) around.fill_clears(met[i]);
}

SPARRING_FN void fill_dragon(const Lane& lane, const Teams& teams, u32 slot, u8* out) {
  const Dragon& self = lane.dragons[slot];
  const Spot head = Spot::of(lane.level, lane.head_tile(self));
  const u32 alive = lane.match.alive, round = static_cast<u32>(lane.match.round);
  constexpr u32 last_round = static_cast<u32>(kRounds) - 1;
  u32 place = 0, nearest[2] = {kNone, kNone}, queen[2] = {kNone, kNone};  // by team, how far
  for (u32 i = 0; i < alive; ++i) {
    const Dragon& other = lane.dragons[lane.order[i]];
    const u32 way = head.distance(lane.level, Spot::of(lane.level, lane.head_tile(other)));
    if (other.id < 2) queen[other.team] = way;
    if (lane.order[i] == slot) {
      place = i;
    } else if (way < nearest[other.team]) {
      nearest[other.team] = way;
    }
  }
  const bool below_limit = teams.standing[self.team].dragons < lane.level.unit_limit;
  const bool along_x = self.facing == kEast || self.facing == kWest;
  const u32 width = static_cast<u32>(lane.level.width), height = static_cast<u32>(lane.level.height);
  out[dragon::kLength] = table::wide(self.length);
  out[dragon::kFreeSteps] = table::wide(free_steps_of(self.length));
  out[dragon::kPayable] = table::wide(payable_steps_of(self.length));
  out[dragon::kQueen] = table::flag(self.id < 2);
  out[dragon::kTeam] = table::flag(self.team != 0);
  out[dragon::kRound] = table::share(round, last_round);
  out[dragon::kRoundsLeft] = table::wide(last_round - round);
  out[dragon::kPlace] = table::share(place, alive);
  out[dragon::kLater] = table::wide(alive - 1 - place);
  out[dragon::kCanSplit] = table::flag(below_limit && self.length >= 2 * kLeastSegments);
  out[dragon::kLongest] = table::flag(static_cast<i32>(self.length) == teams.standing[self.team].longest);
  teams.fill_versus(lane.level, self.team, out + dragon::kVersus);
  out[dragon::kOwnQueenNear] = near(queen[self.team]);
  out[dragon::kEnemyQueenNear] = near(queen[1 - self.team]);
  out[dragon::kAllyNear] = near(nearest[self.team]);
  out[dragon::kEnemyNear] = near(nearest[1 - self.team]);
  out[dragon::kBoardAhead] = table::wide(along_x ? width : height);
  out[dragon::kBoardAcross] = table::wide(along_x ? height : width);
}

// ---- Of a team.

// What lies in the blocks of a lane, and in all of them together. Blocks as those of the actor's overview: squares of
// ceil(side / 16) tiles a side, from the north-western corner on.
struct Blocks {
  struct Block {
    u32 tiles, kelp, portals, spawns, pearls, due;  // kelp and portals: on the north and west sides of tiles
    u32 heads[2], segments[2], queen[2], lengths[2], to_act[2];
  };
  Block block[kBoardSide * kBoardSide];
  Block whole;  // without what is of a team
  u32 tiles;    // of a block

  Blocks() = default;
  SPARRING_FN explicit Blocks(const Lane& lane) { count(lane); }

  SPARRING_FN void count(const Lane& lane) {
    for (Block& each : block) each = Block{};
    whole = Block{};
    const u32 width = static_cast<u32>(lane.level.width), height = static_cast<u32>(lane.level.height);
    const u32 block_width = overview::block_side(width), block_height = overview::block_side(height);
    tiles = block_width * block_height;
    for (u32 y = 0, tile = 0; y < height; ++y) {
      for (u32 x = 0; x < width; ++x, ++tile)
        add_tile(lane, tile, block[y / block_height * kBoardSide + x / block_width]);
    }
    for (u32 i = 0; i < lane.match.alive; ++i) {
      const Dragon& each = lane.dragons[lane.order[i]];
      const u32 head = lane.head_tile(each);
      Block& here = block[head / width / block_height * kBoardSide + head % width / block_width];
      ++here.heads[each.team];
      here.lengths[each.team] += each.length;
      here.to_act[each.team] += Teams::to_act_at(lane, i);
    }
    for (const Block& each : block) {
      whole.tiles += each.tiles;
      whole.kelp += each.kelp;
      whole.spawns += each.spawns;
      whole.pearls += each.pearls;
      whole.due += each.due;
    }
  }

  SPARRING_FN static void add_tile(const Lane& lane, u32 tile, Block& here) {
    const Tile& ground = lane.tiles[tile];
    const Cell& cell = lane.cells[tile];
    ++here.tiles;
    here.kelp += static_cast<u32>(ground.blocked(kNorth)) + ground.blocked(kWest);
    here.portals += static_cast<u32>(ground.portal(kNorth)) + ground.portal(kWest);
    here.pearls += cell.pearl();
    if (ground.spawns()) {
      ++here.spawns;
      here.due += lane.countdown(tile) <= kSoon;
    }
    if (cell.slot() == kNone) return;
    const Dragon& holder = lane.dragons[cell.slot()];
    ++here.segments[holder.team];
    here.queen[holder.team] += holder.id < 2;
  }

  SPARRING_FN void fill_board(u32 own, u8* out) const {
    const u32 enemy = 1 - own;
    for (const Block& each : block) {
      out[board::kInside] = table::share(each.tiles, tiles);
      out[board::kKelp] = table::share(each.kelp, 2 * tiles);
      out[board::kPortals] = table::few(each.portals);
      out[board::kSpawns] = table::share(each.spawns, tiles);
      out[board::kPearls] = many(each.pearls);
      out[board::kDue] = many(each.due);
      out[board::kOwnHeads] = table::few(each.heads[own]);
      out[board::kOwnSegments] = many(each.segments[own]);
      out[board::kOwnQueen] = many(each.queen[own]);
      out[board::kOwnLengths] = many(each.lengths[own]);
      out[board::kOwnToAct] = table::few(each.to_act[own]);
      out[board::kEnemyHeads] = table::few(each.heads[enemy]);
      out[board::kEnemySegments] = many(each.segments[enemy]);
      out[board::kEnemyQueen] = many(each.queen[enemy]);
      out[board::kEnemyLengths] = many(each.lengths[enemy]);
      out[board::kEnemyToAct] = table::few(each.to_act[enemy]);
      out += kBoardPlanes;
    }
  }

  SPARRING_FN void fill_team(const Lane& lane, const Teams& teams, u32 own, u8* out) const {
    const u32 round = static_cast<u32>(lane.match.round), acting = lane.match.acting;
    constexpr u32 last_round = static_cast<u32>(kRounds) - 1;
    const i32 lead = teams.standing[own].dragons - teams.standing[1 - own].dragons;
    out[team::kTeam] = table::flag(own != 0);
    out[team::kRound] = table::share(round, last_round);
    out[team::kRoundsLeft] = table::wide(last_round - round);
    out[team::kActs] = table::flag(acting != kNone && lane.dragons[acting].team == own);
    teams.fill_versus(lane.level, own, out + team::kVersus);
    out[team::kDragonsAhead] = ahead_by(lead);
    out[team::kDragonsBehind] = ahead_by(-lead);
    out[team::kOwnToAct] = table::wide(teams.to_act[own]);
    out[team::kEnemyToAct] = table::wide(teams.to_act[1 - own]);
    out[team::kOwnCanSplit] = table::wide(teams.can_split[own]);
    out[team::kEnemyCanSplit] = table::wide(teams.can_split[1 - own]);
    out[team::kPearls] = many(whole.pearls);
    out[team::kDue] = many(whole.due);
    out[team::kSpawns] = table::share(whole.spawns, whole.tiles);
    out[team::kKelp] = table::share(whole.kelp, 2 * whole.tiles);
    out[team::kWidth] = table::wide(static_cast<u32>(lane.level.width));
    out[team::kHeight] = table::wide(static_cast<u32>(lane.level.height));
    const bool both = teams.queen[0] != kNone && teams.queen[1] != kNone;
    const Level& level = lane.level;
    out[team::kQueensNear] =
        near(both ? Spot::of(level, teams.queen[0]).distance(level, Spot::of(level, teams.queen[1])) : kNone);
  }
};

}  // namespace sparring::loong::privileged
