// The memory of a dragon that is fed by text alone, as every dragon of a bot is: one block that holds what it remembers
// and, in the place of a level, what it has seen of the board.
#pragma once

#include "remember.h"

namespace sparring::loong {

// An end of a portal that was seen.
struct PortalEnd {
  u32 portal;  // 1 + its id, or 0
  u32 edge;    // as in Level::edges: the north side of a tile, or `cells` + its west side
};

// A handle on such a block.
struct Lone {
  Identity& who;
  Memory memory;
  Tile* tiles;      // what was seen of them; else 0. Portals of which one end was seen: see Memory::kExitUnknownAt.
  PortalEnd* ends;  // by a hash of the id; there are more than can be seen
  u32 mask;

  // What a block for a board with so many tiles takes.
  SPARRING_FN static constexpr u64 bytes(u32 cells) {
    return ends_at(cells) + u64{end_slots(cells)} * sizeof(PortalEnd);
  }

  // Begins the life of `who` in a block whose bytes are 0, aligned to 8.
  SPARRING_FN static Lone begin(void* block, const Identity& who) {
    Lone lone = of(block, who.width, who.height);
    lone.who = who;
    lone.memory.pool.capacity = Memory::pages_of(lone.memory.cells);
    lone.memory.begin(who.id, 0);
    return lone;
  }

  // In a block in which a life began.
  SPARRING_FN static Lone at(void* block) {
    const Identity& who = *static_cast<const Identity*>(block);
    return of(block, who.width, who.height);
  }

  // What it is told in this turn. `key`: see packet_key.
  SPARRING_FN void take_in(const View& view, u64 key) {
    learn(view);
    remember(memory, who, view, key);
  }

  SPARRING_FN void learn(const View& view) {
    const Window window = remembering::window_of(memory, view);
    for (u32 i = 0; i < kWindowEdges; ++i) {
      learn_edge(view.north[i], window, i / kWindow, i % kWindow, kNorth);
      learn_edge(view.west[i], window, i / (kWindow + 1), i % (kWindow + 1), kWest);
    }
    for (u32 place = 0; place < kWindowTiles; ++place) {
      if (view.countdown[place] < 0) continue;
      Tile& tile = tiles[window.tile(place)];
      tile.portals = static_cast<u8>(tile.portals | Tile::kSpawns);
    }
  }

  // The north or west side of a tile of the window or just beyond it.
  SPARRING_FN void learn_edge(i32 edge, const Window& window, u32 row, u32 column, u32 direction) {
    if (edge == kOpen) return;
    const u32 tile = memory.tile(window.column(column), window.row(row));
    Tile &here = tiles[tile], &there = tiles[memory.beside(tile, direction)];
    const u32 back = opposite(direction);
    if (edge == kKelp) {
      here.kelp = static_cast<u8>(here.kelp | 1u << direction);
      there.kelp = static_cast<u8>(there.kelp | 1u << back);
      return;
    }
    if (here.portal(direction)) return;
    here.portals = static_cast<u8>(here.portals | 1u << direction);
    there.portals = static_cast<u8>(there.portals | 1u << back);
    const u32 portal = static_cast<u32>(edge) + 1;
    u32 at = static_cast<u32>(mix64(portal)) & mask;
    while (ends[at].portal != 0 && ends[at].portal != portal) at = (at + 1) & mask;
    if (ends[at].portal == 0) {
      ends[at] = PortalEnd{portal, direction == kNorth ? tile : tile + memory.cells};
      here.kelp = static_cast<u8>(here.kelp | 1u << (Memory::kExitUnknownAt + direction));
      there.kelp = static_cast<u8>(there.kelp | 1u << (Memory::kExitUnknownAt + back));
    } else {
      const u32 other = ends[at].edge % memory.cells;
      join(tile, other, direction);
      join(other, tile, direction);
    }
  }

  // Who crosses the edge on this side of `tile`, one way or the other, comes out of that of `other`.
  SPARRING_FN void join(u32 tile, u32 other, u32 direction) {
    lead(tile, direction, memory.beside(other, direction));
    lead(memory.beside(tile, direction), opposite(direction), other);
  }

  SPARRING_FN void lead(u32 from, u32 direction, u32 to) {
    Tile& tile = tiles[from];
    tile.ahead[direction] = static_cast<u16>(to);
    tile.kelp = static_cast<u8>(tile.kelp & ~(1u << (Memory::kExitUnknownAt + direction)));
  }

 private:
  static constexpr u64 kPoolAt = 24, kLifeAt = kPoolAt + sizeof(Pool), kTableAt = kLifeAt + sizeof(Life);

  SPARRING_FN static constexpr u64 up(u64 bytes) { return (bytes + 7) / 8 * 8; }
  SPARRING_FN static constexpr u64 pages_at(u32 cells) { return up(kTableAt + Memory::pages_of(cells) * sizeof(u16)); }
  SPARRING_FN static constexpr u64 tiles_at(u32 cells) {
    return up(pages_at(cells) + (Memory::pages_of(cells) + 1) * sizeof(Page));
  }
  SPARRING_FN static constexpr u64 ends_at(u32 cells) { return up(tiles_at(cells) + u64{cells} * sizeof(Tile)); }
  SPARRING_FN static constexpr u32 end_slots(u32 cells) {
    u32 slots = 1;
    while (slots < 2 * cells) slots *= 2;
    return slots;
  }

  SPARRING_FN static Lone of(void* block, i32 width, i32 height) {
    const u32 cells = static_cast<u32>(width) * static_cast<u32>(height);
    u8* base = static_cast<u8*>(block);
    Tile* const tiles = reinterpret_cast<Tile*>(base + tiles_at(cells));
    return Lone{*reinterpret_cast<Identity*>(base),
                Memory{static_cast<u32>(width), static_cast<u32>(height), cells, tiles,
                       *reinterpret_cast<Life*>(base + kLifeAt), reinterpret_cast<u16*>(base + kTableAt),
                       *reinterpret_cast<Pool*>(base + kPoolAt), reinterpret_cast<Page*>(base + pages_at(cells))},
                tiles, reinterpret_cast<PortalEnd*>(base + ends_at(cells)), end_slots(cells) - 1};
  }
};

}  // namespace sparring::loong
