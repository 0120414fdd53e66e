// What a dragon remembers of its board: six bytes a tile, in pages that are taken when something is learnt of them.
// A lane keeps the memories of all its dragons in one block; a bot keeps one. The functions are the same.
#pragma once

#include "packet.h"
#include "view.h"

namespace sparring::loong {

constexpr u32 kPageTiles = 64;
constexpr u32 kHeardPackets = 8;
constexpr u32 kOverviewSide = 16, kOverviewPlanes = 8;
constexpr u32 kHypotheses = 3;  // mirrors that a map may have: kMirrorX, kMirrorY, kMirrorXY, in this order

// What was last seen of a tile, in the bits of a word.
namespace sight {
constexpr u32 kRound = 511;     // when
constexpr u32 kSeen = 1u << 9;  // ever; what never changes (edges, spawning) is then known too
constexpr u32 kPearl = 1u << 15;
constexpr u32 kOccupantAt = 10, kAttemptAt = 16;
constexpr u32 kLatestAttempt = 1023;  // rounds of attempts beyond are not told apart: no match lasts as long

SPARRING_FN u32 round(u32 word) { return word & kRound; }
SPARRING_FN u32 occupant(u32 word) { return word >> kOccupantAt & 31; }
SPARRING_FN u32 attempt(u32 word) { return word >> kAttemptAt & 1023; }
}  // namespace sight

// Who was seen on a tile: 0 nobody, kOwn, else kSomebody and the bits.
namespace occupant {
constexpr u32 kNobody = 0, kOwn = 2;
constexpr u32 kBody = 1;                // a segment that is no head
constexpr u32 kHead = 16, kFacing = 3;  // a head and where it faces
constexpr u32 kEnemy = 8, kQueen = 4;

SPARRING_FN bool somebody_else(u32 code) { return code != kNobody && code != kOwn; }
SPARRING_FN bool ally(u32 code) { return somebody_else(code) && (code & kEnemy) == 0; }
SPARRING_FN bool enemy(u32 code) { return (code & kEnemy) != 0; }
SPARRING_FN bool head(u32 code) { return (code & kHead) != 0; }
SPARRING_FN bool queen(u32 code) { return (code & kQueen) != 0; }
}  // namespace occupant

// What a packet told of a tile.
struct Hearsay {
  u32 what, round;

  static constexpr u32 kNothing = 0, kPearl = 1, kAlly = 2, kEnemyHead = 3;
  static constexpr u32 kWhatAt = 9;
};

struct Page {
  u32 sight[kPageTiles];
  u16 told[kPageTiles];  // where the tile holds the own body: after how many steps of the tail it clears
};
static_assert(sizeof(Page) == 6 * kPageTiles, "six bytes a tile");

// One life and what it remembers besides the tiles. All bytes 0, but for `symmetry`, at birth.
struct Life {
  u64 heard[kHeardPackets];  // packets, the newest first, one of each sender
  u32 id;
  u32 length;
  u32 known;                    // tiles seen so far
  u32 unread;                   // messages of this turn that are no packets of the team
  u16 heard_at[kHeardPackets];  // 1 + the round of the packet; 0: none
  u16 seen_at;                  // 1 + the round of the last view; 0: not yet asked
  u16 decisions;                // asked so often
  u16 head;                     // tile
  u16 gone;                     // steps of the tail so far, modulo 65536
  u16 steps;                    // chosen since the last view
  u16 ally_queen, enemy_queen;  // 1 + the last round in which she is known to have lived; 0: never
  u8 facing;
  u8 symmetry;  // one bit for each hypothesis that nothing contradicts
  u8 mirrored;
  u8 role, claim;  // of the last choice
  u8 packets;      // read in this turn
  u8 report;       // what the packet of this turn tells: kind << 7 | place
  u8 sees_queen;   // it is its team's queen, or sees her
  u8 wide;         // it reads 64-bit messages
  u8 unused;
  u8 overview[kOverviewSide * kOverviewSide][kOverviewPlanes];  // counts, by block; see remember.h

  SPARRING_FN u32 round() const { return seen_at - 1u; }
  SPARRING_FN bool queen() const { return id < 2; }
};
static_assert(sizeof(Life) == 120 + 2048, "no hidden bytes");

constexpr u32 kRoleRounds = 16;  // a role is chosen at birth and whenever so many rounds have gone by

SPARRING_FN bool role_due(const Life& life) { return (life.decisions - 1u) % kRoleRounds == 0; }

// The pages of all who share them.
struct Pool {
  u32 capacity;
  u32 fresh;    // so many were ever taken
  u32 free;     // the first of those given back, or 0; each names the next in its first word
  u32 refused;  // how often there was none
};

// What is known of the edge on one side of a tile.
enum class Side : u8 { kUnknownSide, kOpenSide, kKelpSide, kPortalSide };

struct KnownSide {
  Side side;
  bool inferred;  // by symmetry, not seen
};

// What never changes of a tile.
struct Ground {
  u32 kelp, portals;  // one bit per direction
  bool spawns;

  SPARRING_FN bool operator==(const Ground& other) const {
    return kelp == other.kelp && portals == other.portals && spawns == other.spawns;
  }
};

// A handle on the memory of one dragon. Cheap to make and to pass.
struct Memory {
  u32 width, height, cells;
  const Tile* tiles;  // of the level, or of what the dragon saw of it: read where it is known, nowhere else
  Life& life;
  u16* table;  // by 64 tiles: their page; 0 if nothing is known of them
  Pool& pool;
  Page* pages;  // the first one is always empty

  static constexpr u8 kExitUnknownAt = 4;  // in Tile::kelp of a bot: a portal whose other end it has not seen

  SPARRING_FN u32 x(u32 tile) const { return tile % width; }
  SPARRING_FN u32 y(u32 tile) const { return tile / width; }
  SPARRING_FN u32 tile(u32 x_, u32 y_) const { return y_ * width + x_; }

  SPARRING_FN u32 sight(u32 tile) const { return pages[table[tile / kPageTiles]].sight[tile % kPageTiles]; }
  SPARRING_FN u32 note(u32 tile) const { return pages[table[tile / kPageTiles]].told[tile % kPageTiles]; }

  // ---- What is known of a tile.

  SPARRING_FN bool seen(u32 tile) const { return (sight(tile) & sight::kSeen) != 0; }

  // Rounds since it was last in the window, 0 for those of this turn; kNone if it never was.
  SPARRING_FN u32 age(u32 tile) const {
    const u32 word = sight(tile);
    return (word & sight::kSeen) != 0 ? life.round() - sight::round(word) : kNone;
  }

  // A pearl lay there when it was last seen.
  SPARRING_FN bool pearl(u32 tile) const { return (sight(tile) & sight::kPearl) != 0; }

  // The round of the next attempt to place a pearl, 0 if it is not known. Known from the tile's last sight on until it
  // comes.
  SPARRING_FN u32 attempt(u32 tile) const {
    const u32 round = sight::attempt(sight(tile));
    return round > life.round() ? round : 0;
  }

  // An attempt came since it was last seen: a pearl may lie there that nobody saw.
  SPARRING_FN bool attempted(u32 tile) const {
    const u32 round = sight::attempt(sight(tile));
    return round != 0 && round <= life.round();
  }

  // Who was there when it was last seen, as a code of `occupant`; where the own body has left since, nobody.
  SPARRING_FN u32 occupant(u32 tile) const {
    const u32 code = sight::occupant(sight(tile));
    return code == occupant::kOwn && own_clears(tile) == 0 ? occupant::kNobody : code;
  }

  // After how many steps of the own tail the own body leaves the tile; 0 where it is not. Exact while no pearl is eaten
  // and nothing is paid, but for a starting body that was never seen whole.
  SPARRING_FN u32 own_clears(u32 tile) const {
    if (sight::occupant(sight(tile)) != occupant::kOwn) return 0;
    const u32 left = (note(tile) - life.gone) & 0xFFFFu;
    return left < 0x8000u ? left : 0;
  }

  // Newer than any sight of the tile.
  SPARRING_FN Hearsay told(u32 tile) const {
    if (sight::occupant(sight(tile)) == occupant::kOwn) return Hearsay{Hearsay::kNothing, 0};
    const u32 word = note(tile);
    return Hearsay{word >> Hearsay::kWhatAt, word & sight::kRound};
  }

  // ---- Edges and ways.

  // The tile beside it as if no portal were there.
  SPARRING_FN u32 beside(u32 tile, u32 direction) const {
    if (direction == kNorth) return tile < width ? tile + cells - width : tile - width;
    if (direction == kSouth) return tile + width < cells ? tile + width : tile + width - cells;
    const u32 column = tile % width;
    if (direction == kEast) return column + 1 == width ? tile + 1 - width : tile + 1;
    return column == 0 ? tile + width - 1 : tile - 1;
  }

  // Seen, or inferred from what was seen.
  SPARRING_FN KnownSide side(u32 tile, u32 direction) const {
    if (seen(tile)) return KnownSide{side_of(ground(tile), direction), false};
    const u32 other = beside(tile, direction);
    if (seen(other)) return KnownSide{side_of(ground(other), opposite(direction)), false};
    Ground guess{};
    if (infer(tile, guess)) return KnownSide{side_of(guess, direction), true};
    if (infer(other, guess)) return KnownSide{side_of(guess, opposite(direction)), true};
    return KnownSide{Side::kUnknownSide, false};
  }

  // Where a step leads, as far as that was seen; kNone where it is not known, and where kelp is.
  SPARRING_FN u32 neighbour(u32 tile, u32 direction) const {
    const KnownSide known = side(tile, direction);
    if (known.side == Side::kOpenSide) return beside(tile, direction);
    if (known.side != Side::kPortalSide || known.inferred) return kNone;
    if ((tiles[tile].kelp >> (kExitUnknownAt + direction) & 1) != 0) return kNone;
    const u32 exit = tiles[tile].ahead[direction];
    return seen(exit) || seen(beside(exit, opposite(direction))) ? exit : kNone;
  }

  SPARRING_FN bool spawns(u32 tile) const {
    Ground guess{};
    return seen(tile) ? tiles[tile].spawns() : infer(tile, guess) && guess.spawns;
  }

  // Of a tile that was seen.
  SPARRING_FN Ground ground(u32 tile) const {
    return Ground{tiles[tile].kelp & 15u, tiles[tile].portals & 15u, tiles[tile].spawns()};
  }

  SPARRING_FN static Side side_of(const Ground& ground, u32 direction) {
    return (ground.kelp >> direction & 1) != 0      ? Side::kKelpSide
           : (ground.portals >> direction & 1) != 0 ? Side::kPortalSide
                                                    : Side::kOpenSide;
  }

  // ---- Symmetry.

  SPARRING_FN u32 mirror_tile(u32 tile_x, u32 tile_y, u32 mirror) const {
    return tile(mirror != kMirrorX ? width - 1 - tile_x : tile_x, mirror != kMirrorY ? height - 1 - tile_y : tile_y);
  }

  SPARRING_FN static u32 mirror_sides(u32 sides, u32 mirror) {
    const u32 north_south = mirror != kMirrorY ? (sides & 1) << 2 | (sides >> 2 & 1) : sides & 5;
    const u32 east_west = mirror != kMirrorX ? (sides & 2) << 2 | (sides >> 2 & 2) : sides & 10;
    return north_south | east_west;
  }

  SPARRING_FN static Ground mirrored(const Ground& ground, u32 mirror) {
    return Ground{mirror_sides(ground.kelp, mirror), mirror_sides(ground.portals, mirror), ground.spawns};
  }

  // What an unseen tile must be if the map is symmetric: all hypotheses that are left have seen its mirror and agree.
  SPARRING_FN bool infer(u32 tile, Ground& guess) const { return infer_at(x(tile), y(tile), guess); }

  SPARRING_FN bool infer_at(u32 tile_x, u32 tile_y, Ground& guess) const {
    bool found = false;
    for (u32 mirror = kMirrorX; mirror <= kMirrorXY; ++mirror) {
      if ((life.symmetry >> (mirror - kMirrorX) & 1) == 0) continue;
      const u32 image = mirror_tile(tile_x, tile_y, mirror);
      if (!seen(image)) return false;
      const Ground image_ground = mirrored(ground(image), mirror);
      if (found && !(guess == image_ground)) return false;
      guess = image_ground;
      found = true;
    }
    return found;
  }

  // ---- Pages.

  // The page of a tile, to write on; null if there is none left.
  SPARRING_FN Page* page(u32 tile) {
    u16& at = table[tile / kPageTiles];
    if (at == 0) {
      const u32 taken = take_page();
      if (taken == 0) return nullptr;
      at = static_cast<u16>(taken);
    }
    return pages + at;
  }

  SPARRING_FN u32 take_page() {
    u32 taken = pool.free;
    if (taken != 0) {
      pool.free = pages[taken].sight[0];
    } else if (pool.fresh < pool.capacity) {
      taken = ++pool.fresh;
    } else {
      ++pool.refused;
      return 0;
    }
    pages[taken] = Page{};
    return taken;
  }

  SPARRING_FN u32 table_size() const { return pages_of(cells); }
  SPARRING_FN static constexpr u32 pages_of(u32 tiles_of_map) { return (tiles_of_map + kPageTiles - 1) / kPageTiles; }

  // Begins a life; what the memory held before has been given back.
  SPARRING_FN void begin(u32 id, u32 mirrored_) {
    life = Life{};
    life.id = id;
    life.symmetry = (1 << kHypotheses) - 1;
    life.mirrored = static_cast<u8>(mirrored_);
    life.claim = kNoClaim;
    for (u32 i = 0; i < table_size(); ++i) table[i] = 0;
  }

  // Gives all pages back.
  SPARRING_FN void forget() {
    for (u32 i = 0; i < table_size(); ++i) {
      if (table[i] == 0) continue;
      pages[table[i]].sight[0] = pool.free;
      pool.free = table[i];
      table[i] = 0;
    }
    life = Life{};
  }
};

// ---- The memories of a lane.

// Where they lie. Pages for sixteen dragons that know all of the map, and for half of it by each further one.
struct MemoryLayout {
  u32 dragons, table, capacity;
  u64 bytes, lives_at, tables_at, pages_at;

  SPARRING_FN static MemoryLayout of(u32 cells, u32 dragons) {
    constexpr u64 most = 65535;  // what a table can name
    const u64 map = Memory::pages_of(cells);
    const u64 whole = dragons < 16 ? dragons : 16;
    const u64 pages = map * whole + (map * (dragons - whole) + 1) / 2;
    return with_pages(cells, dragons, static_cast<u32>(pages < most ? pages : most));
  }

  SPARRING_FN static MemoryLayout with_pages(u32 cells, u32 dragons, u32 capacity) {
    return placed(Memory::pages_of(cells), dragons, capacity);
  }

  // Room for whatever fits into either.
  SPARRING_FN MemoryLayout joined(const MemoryLayout& other) const {
    return placed(Room::larger(table, other.table), Room::larger(dragons, other.dragons),
                  Room::larger(capacity, other.capacity));
  }

  SPARRING_FN static MemoryLayout placed(u32 table, u32 dragons, u32 capacity) {
    MemoryLayout layout{};
    layout.dragons = dragons;
    layout.table = table;
    layout.capacity = capacity;
    layout.lives_at = sizeof(Pool);
    layout.tables_at = layout.lives_at + u64{dragons} * sizeof(Life);
    layout.pages_at = (layout.tables_at + u64{dragons} * table * sizeof(u16) + 63) / 64 * 64;
    layout.bytes = (layout.pages_at + (u64{capacity} + 1) * sizeof(Page) + 63) / 64 * 64;
    return layout;
  }
};

// A handle on the memories of a lane.
struct Memories {
  const Level& level;
  const MemoryLayout& layout;
  Pool& pool;
  Life* lives;
  u16* tables;
  Page* pages;

  SPARRING_FN static Memories at(void* memory, const MemoryLayout& layout, const Level& level) {
    u8* base = static_cast<u8*>(memory);
    return Memories{level,
                    layout,
                    *reinterpret_cast<Pool*>(base),
                    reinterpret_cast<Life*>(base + layout.lives_at),
                    reinterpret_cast<u16*>(base + layout.tables_at),
                    reinterpret_cast<Page*>(base + layout.pages_at)};
  }

  // Of the dragon in a slot of the lane.
  SPARRING_FN Memory of(u32 slot) const {
    return Memory{static_cast<u32>(level.width),
                  static_cast<u32>(level.height),
                  level.cells,
                  level.tiles(),
                  lives[slot],
                  tables + u64{slot} * layout.table,
                  pool,
                  pages};
  }

  // Before a match. Lives begin when dragons appear, and pages are emptied when they are taken: memory that no dragon
  // has used yet stays untouched.
  SPARRING_FN void restart() { pool = Pool{layout.capacity, 0, 0, 0}; }
};

}  // namespace sparring::loong
