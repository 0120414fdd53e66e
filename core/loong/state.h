// One running match in one block of memory. Nothing here allocates; what does not fit is a fault of the lane.
#pragma once

#include "map.h"

namespace sparring::loong {

constexpr i32 kRounds = 500;
constexpr u32 kTwisterWords = 312;
constexpr u32 kDueBlock = 16;  // countdowns under one entry of Lane::soonest

// A body is a list of cells from the tail to the head. A cell has the number of its tile. Only on maps with bodies that
// visit a tile twice at the start (Level::repeats) there are spare cells behind them, one for each repeat.
struct Cell {
  u16 holds;  // kPearl, and 1 + the slot of the dragon on the tile, or 0; in a spare cell its tile
  u16 next;   // the next cell towards the head

  static constexpr u16 kPearl = 0x8000;
  SPARRING_FN bool pearl() const { return (holds & kPearl) != 0; }
  SPARRING_FN u32 slot() const { return (holds & 0x7FFFu) - 1u; }  // kNone if nobody is here
};

struct Dragon {
  u32 id;
  u32 length;
  u16 head, tail;  // cells
  u32 first_message, last_message, messages;
  u8 team, facing;
  u8 wide;       // protocol 3 or more: hears echoes and 64-bit messages
  u8 echoes[5];  // kelp, ally, ally's head, enemy, enemy's head
};

// A standing message: the inbox of a dragon is a list of them, in order of arrival.
struct Message {
  u32 half[2];  // of the 64-bit number: low, high
  u32 next;

  SPARRING_FN u64 number() const { return static_cast<u64>(half[1]) << 32 | half[0]; }
};

enum class Fault : u8 { kSound, kTooManyMessages, kTooManyDragons, kNoAction, kTooMuchKnown };
enum class Reason : u8 { kEliminated, kRoundLimit };

constexpr u32 kDeaths = 5;  // causes

struct Match {
  u64 seed;
  i32 round;
  u32 alive, team_alive[2];
  u32 cursor;  // place in Lane::order of the next to act
  u32 acting;  // slot of the dragon that must act now, or kNone
  u32 next_id;
  u32 twister_at;
  u32 free_message;   // of those given back
  u32 fresh_message;  // the first that was never used
  u32 first_newborn;  // ids from here on were born in this round
  u8 over, winner;    // winner: 0 nobody, 1 A, 2 B
  Reason reason;
  Fault fault;
  u32 deaths[2][kDeaths];  // of each team, by Death
};

// What a lane has room for. A level fits if it needs no more of anything.
struct Room {
  u32 cells, spare_cells, groups, dragons, messages;

  // Room for whatever fits into either.
  SPARRING_FN Room joined(const Room& other) const {
    return Room{larger(cells, other.cells), larger(spare_cells, other.spare_cells), larger(groups, other.groups),
                larger(dragons, other.dragons), larger(messages, other.messages)};
  }

  SPARRING_FN static u32 larger(u32 a, u32 b) { return a > b ? a : b; }
};

// Messages that can stand at once are at most 2 * (cells + repeats). Everything that stands was sent since the last
// turn of the dragon that acts next: by those before it in this round, or by it and those behind it in the last one. A
// dragon of length n and the children that split off it act at most n / 2 times in a round, the lengths of all living
// add up to at most cells + repeats, and a turn sends four messages.
SPARRING_FN Room full_room(const Level& level) {
  return Room{level.cells, level.repeats, level.groups, level.most_alive, 2 * (level.cells + level.repeats)};
}

// For training: six messages for each dragon that can live. To need more, dozens of dragons must be born, send and be
// killed between two turns of another; the lane that meets this is lost, and says so.
SPARRING_FN Room lean_room(const Level& level) {
  Room room = full_room(level);
  if (room.messages > 6 * room.dragons) room.messages = 6 * room.dragons;
  return room;
}

// Where the arrays of a lane lie.
struct Layout {
  Room room;
  u64 bytes;
  u64 messages_at, twister_at, cells_at, due_at, soonest_at, dragons_at, order_at;

  SPARRING_FN static Layout of(const Room& room) {
    Layout layout{};
    layout.room = room;
    u64 at = sizeof(Match);
    const auto take = [&at](u64 count) {
      const u64 start = at;
      at += (count + 7) / 8 * 8;
      return start;
    };
    layout.twister_at = take(kTwisterWords * sizeof(u64));
    layout.dragons_at = take(room.dragons * sizeof(Dragon));
    layout.order_at = take(room.dragons * sizeof(u16));
    layout.cells_at = take((room.cells + room.spare_cells) * sizeof(Cell));
    layout.soonest_at = take((room.groups + kDueBlock - 1) / kDueBlock * sizeof(u16));
    layout.due_at = take(room.groups * sizeof(u32));
    layout.messages_at = take(room.messages * sizeof(Message));
    // An odd number of cache lines, so that the same array of many lanes does not fall into the same sets of a cache.
    layout.bytes = ((at + 63) / 64 | 1) * 64;
    return layout;
  }
};

// A handle on a lane's memory and its level. Cheap to make and to pass.
struct Lane {
  const Level& level;
  const Tile* tiles;
  const Layout& layout;
  Match& match;
  u64* twister;
  Dragon* dragons;
  u16* order;  // slots: the living by id, then the free ones
  Cell* cells;
  u16* soonest;  // by block of groups: the earliest round in `due`, at most 65535
  u32* due;      // by group: the round of its next attempt
  Message* messages;

  SPARRING_FN static Lane at(void* memory, const Layout& layout, const Level& level) {
    u8* base = static_cast<u8*>(memory);
    return Lane{level,
                level.tiles(),
                layout,
                *reinterpret_cast<Match*>(base),
                reinterpret_cast<u64*>(base + layout.twister_at),
                reinterpret_cast<Dragon*>(base + layout.dragons_at),
                reinterpret_cast<u16*>(base + layout.order_at),
                reinterpret_cast<Cell*>(base + layout.cells_at),
                reinterpret_cast<u16*>(base + layout.soonest_at),
                reinterpret_cast<u32*>(base + layout.due_at),
                reinterpret_cast<Message*>(base + layout.messages_at)};
  }

  SPARRING_FN u32 tile_of(u32 cell) const { return cell < level.cells ? cell : cells[cell].holds; }
  SPARRING_FN u32 head_tile(const Dragon& dragon) const { return tile_of(dragon.head); }
  SPARRING_FN u32 tail_tile(const Dragon& dragon) const { return tile_of(dragon.tail); }

  SPARRING_FN u32 ahead(u32 tile, u32 direction) const {
    return tiles[tile].blocked(direction) ? kNone : tiles[tile].ahead[direction];
  }

  // Rounds until the tile's next attempt, or -1 if it never spawns.
  SPARRING_FN i32 countdown(u32 tile) const {
    return tiles[tile].spawns() ? static_cast<i32>(due[tiles[tile].group] - static_cast<u32>(match.round)) : -1;
  }

  // The dragon on a tile where several are: the one with the lowest id. Several can be where a body crossed itself at
  // the start and was split.
  SPARRING_FN u32 first_holder(u32 tile) const {
    for (u32 i = 0; i < match.alive; ++i) {
      if (is_on(dragons[order[i]], tile)) return order[i];
    }
    return kNone;
  }

  SPARRING_FN bool is_on(const Dragon& dragon, u32 tile) const {
    for (u32 i = 0, cell = dragon.tail; i < dragon.length; ++i, cell = cells[cell].next) {
      if (tile_of(cell) == tile) return true;
    }
    return false;
  }

  // After a segment left the tile or changed hands.
  SPARRING_FN void vacate(u32 tile) {
    cells[tile].holds = static_cast<u16>(cells[tile].holds & Cell::kPearl);
    if (level.repeats != 0) occupy(tile, first_holder(tile));
  }

  SPARRING_FN void occupy(u32 tile, u32 slot) {
    cells[tile].holds = static_cast<u16>((cells[tile].holds & Cell::kPearl) | (slot + 1));
  }

  SPARRING_FN void empty_inbox(Dragon& dragon) {
    if (dragon.messages == 0) return;
    messages[dragon.last_message].next = match.free_message;
    match.free_message = dragon.first_message;
    dragon.messages = 0;
  }

  SPARRING_FN void deliver(Dragon& dragon, u64 value) {
    u32 place = match.free_message;
    if (place != kNone) {
      match.free_message = messages[place].next;
    } else if (match.fresh_message < layout.room.messages) {
      place = match.fresh_message++;
    } else {
      match.fault = Fault::kTooManyMessages;
      return;
    }
    messages[place] = Message{{static_cast<u32>(value), static_cast<u32>(value >> 32)}, kNone};
    if (dragon.messages++ == 0) {
      dragon.first_message = place;
    } else {
      messages[dragon.last_message].next = place;
    }
    dragon.last_message = place;
  }
};

}  // namespace sparring::loong
