// A View as sets of tiles, and the ways through them.
#pragma once

#include "view.h"

namespace sparring::loong {

using Tiles = u64;  // of the window: bit 7 * row + column

constexpr u32 kFar = 9;   // steps that a flood is followed
constexpr u32 kSoon = 6;  // rounds; pearls that are due later are not told apart

SPARRING_FN u32 count(Tiles tiles) {
  tiles -= tiles >> 1 & 0x5555555555555555ull;
  tiles = (tiles & 0x3333333333333333ull) + (tiles >> 2 & 0x3333333333333333ull);
  tiles = (tiles + (tiles >> 4)) & 0x0F0F0F0F0F0F0F0Full;
  return static_cast<u32>(tiles * 0x0101010101010101ull >> 56);
}

// All tiles one step further, without asking what lies between.
SPARRING_FN Tiles shifted(Tiles tiles, u32 direction) {
  if (direction == kNorth) return tiles >> kWindow;
  if (direction == kSouth) return tiles << kWindow;
  return direction == kEast ? tiles << 1 : tiles >> 1;
}

// The three rows or columns of the window on one side of the head.
SPARRING_FN Tiles side(u32 direction) {
  constexpr Tiles rows = (1ull << 21) - 1, columns = 0x1C3870E1C387ull;
  if (direction == kNorth) return rows;
  if (direction == kSouth) return rows << 28;
  return direction == kWest ? columns : columns << 4;
}

// A View as sets.
struct Sight {
  Tiles open[4];  // from here one step leads to another tile of the window, and not through a portal
  Tiles exits;    // from here some step leads elsewhere
  Tiles taken, pearls;
  Tiles soon[kSoon + 1];  // free, and the next attempt is at most so many rounds away
  Tiles allies, enemies;  // heads of others
  Tiles queen;            // head of the own team's queen, if she is another
  Tiles prey;             // head of the enemy's queen
  u32 scent;  // where the enemy's queen went, if her head is out of sight; kNowhere if nothing of her is seen

  SPARRING_FN static Sight of(const Identity& who, const View& view) {
    Sight sight{};
    sight.scent = kNowhere;
    for (u32 place = 0; place < kWindowTiles; ++place) {
      const Tiles here = 1ull << place;
      const u32 row = place / kWindow, column = place % kWindow, west = row * (kWindow + 1) + column;
      const i32 edges[4] = {view.north[place], view.west[west + 1], view.north[place + kWindow], view.west[west]};
      const bool inside[4] = {row > 0, column < kWindow - 1, row < kWindow - 1, column > 0};
      for (u32 d = 0; d < 4; ++d) {
        if (edges[d] == kOpen && inside[d]) {
          sight.open[d] |= here;
        } else if (edges[d] != kKelp) {
          sight.exits |= here;
        }
      }
      if (view.pearl[place] != 0) sight.pearls |= here;
      if (view.body[place] != 0) {
        sight.taken |= here;
        if (view.id[place] != who.id) sight.meet(who, view, place);
      } else if (view.countdown[place] > 0) {
        for (u32 i = static_cast<u32>(view.countdown[place]); i <= kSoon; ++i) sight.soon[i] |= here;
      }
    }
    return sight;
  }

  // Notes a segment of another dragon.
  SPARRING_FN void meet(const Identity& who, const View& view, u32 place) {
    const Tiles here = 1ull << place;
    const u32 body = view.body[place], facing = body & View::kFacing;
    const bool head = (body & View::kHead) != 0, ally = ((body & View::kTeamB) != 0) == (who.team == 1);
    const bool is_queen = view.id[place] < 2;
    if (head) (ally ? allies : enemies) |= here;
    if (!is_queen) return;
    if (ally) {
      if (head) queen = here;
    } else if (head) {
      prey = here;
    } else if ((open[facing] & here) == 0) {  // the segment before it is out of sight
      scent = facing;
    }
  }

  SPARRING_FN Tiles spread(Tiles from) const {
    return (from & open[kNorth]) >> kWindow | (from & open[kSouth]) << kWindow | (from & open[kEast]) << 1 |
           (from & open[kWest]) >> 1;
  }

  // From where one step leads into `to`.
  SPARRING_FN Tiles before(Tiles to) const {
    return (to << kWindow & open[kNorth]) | (to >> kWindow & open[kSouth]) | (to >> 1 & open[kEast]) |
           (to << 1 & open[kWest]);
  }
};

// Tiles by the steps that it takes to get there over free ones.
struct Flood {
  Tiles layer[kFar + 1];
  Tiles reached;

  SPARRING_FN static Flood from(Tiles start) {
    Flood flood{};
    flood.layer[0] = flood.reached = start;
    return flood;
  }

  SPARRING_FN void grow(const Sight& sight, Tiles taken, u32 steps) {
    layer[steps] = sight.spread(layer[steps - 1]) & ~reached & ~taken;
    reached |= layer[steps];
  }

  // The tiles of the first step of all shortest ways to `goals`, which lie `steps` away.
  SPARRING_FN Tiles first_steps(const Sight& sight, Tiles goals, u32 steps) const {
    for (; steps > 1; --steps) goals = sight.before(goals) & layer[steps - 1];
    return goals;
  }
};

}  // namespace sparring::loong
