// A map as all matches on it share it, and the reader of the organisers' map files with the organisers' error texts.
#pragma once

#include "../common/target.h"
#include "out.h"

namespace sparring::loong {

using u16 = unsigned short;

constexpr i32 kSmallestSide = 7, kLargestSide = 256;
constexpr i32 kDefaultUnitLimit = 64;
constexpr u32 kNorth = 0, kEast = 1, kSouth = 2, kWest = 3, kNowhere = 4;  // the order in which everything is searched
constexpr u32 kNone = 0xFFFFFFFFu;
constexpr i32 kOpen = -1, kKelp = -2;  // an edge that is neither is the id of its portal
constexpr u32 kMirrorNone = 0, kMirrorX = 1, kMirrorY = 2, kMirrorXY = 3;

SPARRING_FN u32 opposite(u32 direction) { return direction ^ 2u; }

// What lies around one tile. Tiles are numbered y * width + x.
struct Tile {
  u16 ahead[4];  // the tile one step away, through a portal where there is one; meaningless where kelp is
  u16 group;     // which countdown it follows, if it spawns
  u8 kelp;       // one bit per direction
  u8 portals;    // one bit per direction, and kSpawns

  static constexpr u8 kSpawns = 16;
  SPARRING_FN bool spawns() const { return (portals & kSpawns) != 0; }
  SPARRING_FN bool blocked(u32 direction) const { return (kelp >> direction & 1) != 0; }
  SPARRING_FN bool portal(u32 direction) const { return (portals >> direction & 1) != 0; }
};

// A tile and its mirror, which share one countdown. The next one is `least` + random % `span`.
struct Group {
  u16 tile, mirror;
  i32 least;
  u32 span;
};

struct Start {
  u32 first, length;  // of the body in `segments`, head first
  u32 team, facing;
};

// One block of memory without pointers: it can be copied anywhere. The arrays follow it.
struct Level {
  u64 bytes;
  i32 width, height;
  u32 cells;
  i32 unit_limit;
  u32 mirror;
  u32 dragons, segments, groups;
  u32 repeats;     // segments of starting bodies on a tile that the same body holds already
  u32 most_alive;  // dragons that can live at once
  u32 edges_at, starts_at, segments_at, groups_at;

  SPARRING_FN const Tile* tiles() const { return array<Tile>(sizeof(Level)); }
  // The north sides of all tiles, then the west sides.
  SPARRING_FN const i32* edges() const { return array<i32>(edges_at); }
  SPARRING_FN const Start* starts() const { return array<Start>(starts_at); }
  SPARRING_FN const u16* segment_tiles() const { return array<u16>(segments_at); }
  SPARRING_FN const Group* group_list() const { return array<Group>(groups_at); }

  template <typename T>
  SPARRING_FN const T* array(u64 at) const {
    return reinterpret_cast<const T*>(reinterpret_cast<const u8*>(this) + at);
  }
};

// The first direction in which `from` leads to `to`.
SPARRING_FN u32 heading(const Level& level, u32 from, u32 to) {
  const Tile& tile = level.tiles()[from];
  for (u32 d = 0; d < 4; ++d) {
    if (!tile.blocked(d) && tile.ahead[d] == to) return d;
  }
  return kNowhere;
}

SPARRING_FN u32 mirror_of(const Level& level, u32 tile) {
  const u32 width = static_cast<u32>(level.width), height = static_cast<u32>(level.height);
  const u32 x = tile % width, y = tile / width;
  const u32 mx = level.mirror == kMirrorY || level.mirror == kMirrorXY ? width - 1 - x : x;
  const u32 my = level.mirror == kMirrorX || level.mirror == kMirrorXY ? height - 1 - y : y;
  return my * width + mx;
}

// The edge on one side of a tile, as an index into Level::edges.
SPARRING_FN u32 edge_of(const Level& level, u32 tile, u32 direction) {
  const u32 width = static_cast<u32>(level.width);
  if (direction == kNorth) return tile;
  if (direction == kSouth) return (tile + width) % level.cells;
  const u32 x = tile % width;
  if (direction == kWest) return level.cells + tile;
  return level.cells + tile - x + (x + 1) % width;
}

// The tile on the far side of an edge for one who crosses it in `direction`.
SPARRING_FN u32 beyond(const Level& level, u32 edge, u32 direction) {
  const u32 width = static_cast<u32>(level.width);
  const u32 tile = edge % level.cells;
  if (direction == kNorth) return (tile + level.cells - width) % level.cells;
  if (direction == kWest) return tile % width == 0 ? tile + width - 1 : tile - 1;
  return tile;
}

namespace reading {

// As C++ streams read an int: blanks, a sign, digits. False without digits, or outside 32 bits.
SPARRING_FN bool number(Span& text, i32& value) {
  text.skip_blanks();
  bool negative = false;
  if (!text.empty() && (*text.at == '-' || *text.at == '+')) negative = *text.at++ == '-';
  if (text.empty() || !is_digit(*text.at)) return false;
  i64 sum = 0;
  for (; !text.empty() && is_digit(*text.at); ++text.at) {
    if (sum < 1ll << 32) sum = sum * 10 + (*text.at - '0');
  }
  if (sum > (negative ? 1ll << 31 : (1ll << 31) - 1)) return false;
  value = static_cast<i32>(negative ? -sum : sum);
  return true;
}

SPARRING_FN Span map_line(Span& text) {
  Span line = text.line();
  if (!line.empty() && line.end[-1] == '\r') --line.end;
  return line;
}

// In place, without recursion.
SPARRING_FN void sort(u64* values, u64 count) {
  for (u64 built = count / 2, left = count; left > 1;) {
    if (built > 0) {
      --built;
    } else {
      --left;
      const u64 largest = values[0];
      values[0] = values[left];
      values[left] = largest;
    }
    for (u64 root = built, child = 2 * root + 1; child < left; root = child, child = 2 * root + 1) {
      if (child + 1 < left && values[child] < values[child + 1]) ++child;
      if (values[root] >= values[child]) break;
      const u64 smaller = values[root];
      values[root] = values[child];
      values[child] = smaller;
    }
  }
}

}  // namespace reading

// Memory that read_map needs for a file: bounds taken from a first look at its lines.
struct MapNeeds {
  u64 level_bytes, scratch_bytes;
  u32 cells, edge_lines, dragons, segments;
};

SPARRING_FN MapNeeds map_needs(const u8* bytes, u64 size) {
  MapNeeds needs{};
  bool sized = false;
  for (Span text{bytes, bytes + size}; !text.empty();) {
    Span line = reading::map_line(text);
    const Span key = line.word();
    i32 width = 0, height = 0;
    if (key.is("MAP") && !sized && reading::number(line, width) && reading::number(line, height)) {
      sized = true;
      const bool fits =
          width >= kSmallestSide && height >= kSmallestSide && width <= kLargestSide && height <= kLargestSide;
      needs.cells = fits ? static_cast<u32>(width * height) : 0;
    }
    needs.edge_lines += key.is("EDGE");
    if (key.is("DRAGON")) {
      ++needs.dragons;
      needs.segments += static_cast<u32>(line.size() / 2);  // a segment takes two digits and more
    }
  }
  const u64 cells = needs.cells;
  needs.level_bytes = sizeof(Level) + cells * (sizeof(Tile) + 2 * sizeof(i32) + sizeof(Group)) +
                      needs.dragons * sizeof(Start) + needs.segments * sizeof(u16) + 16;
  needs.scratch_bytes = needs.edge_lines * (sizeof(u64) + sizeof(u32)) + cells * 5 * sizeof(u32);
  return needs;
}

namespace reading {

struct MapReader {
  Level& level;
  MapNeeds needs;
  Out& error;
  Tile* tiles;
  i32* edges;
  Start* starts;
  u16* segments;
  u64* ends;      // of portals: id << 32 | place in the file; sorted by check_portals
  u32* end_edge;  // by place in the file
  u32* partner;   // by edge: the portal's other edge
  i32* least;     // by tile: the gap range, 0 0 where nothing spawns
  i32* most;
  u32* holder;  // by tile: 1 + the dragon that starts there
  u32 end_count;
  bool sized;

  SPARRING_FN bool fail(const char* text) {
    error.put(text);
    return false;
  }

  SPARRING_FN bool fail(const char* text, Span line) {
    error.put(text).put(": ").put(line.at, line.size());
    return false;
  }

  SPARRING_FN Out& place(u32 tile) {
    const u32 width = static_cast<u32>(level.width);
    return error.put('(').number(tile % width).put(", ").number(tile / width).put(')');
  }

  SPARRING_FN bool on_map(i32 x, i32 y) const { return x >= 0 && y >= 0 && x < level.width && y < level.height; }
  SPARRING_FN u32 tile_at(i32 x, i32 y) const { return static_cast<u32>(y * level.width + x); }

  SPARRING_FN bool read_size(Span line, Span fields) {
    if (sized) return fail("MAP appears twice", line);
    if (!number(fields, level.width) || !number(fields, level.height))
      return fail("MAP needs a width and a height", line);
    const i32 width = level.width, height = level.height;
    if (width < kSmallestSide || height < kSmallestSide || width > kLargestSide || height > kLargestSide) {
      const bool small = width < kSmallestSide || height < kSmallestSide;
      error.put(small ? "map must be at least 7x7, got " : "map must be at most 256x256, got ");
      error.number(width).put('x').number(height);
      return false;
    }
    sized = true;
    level.cells = static_cast<u32>(width * height);
    for (u32 i = 0; i < 2 * level.cells; ++i) edges[i] = kOpen;
    for (u32 i = 0; i < level.cells; ++i) least[i] = most[i] = 0;
    for (u32 i = 0; i < level.cells; ++i) holder[i] = 0;
    return true;
  }

  SPARRING_FN bool read_symmetry(Span line, Span fields) {
    const Span word = fields.word();
    if (word.empty() || !fields.word().empty()) return fail("SYMMETRY needs one of x, y, xy", line);
    level.mirror = word.is("x") ? kMirrorX : word.is("y") ? kMirrorY : word.is("xy") ? kMirrorXY : kNone;
    return level.mirror != kNone || fail("SYMMETRY must be x, y or xy", line);
  }

  SPARRING_FN bool read_tile(Span line, Span fields) {
    i32 x = 0, y = 0, low = 0, high = 0;
    if (!number(fields, x) || !number(fields, y) || !number(fields, low) || !number(fields, high)) {
      return fail("TILE needs x y minGap maxGap", line);
    }
    if (!on_map(x, y)) return fail("TILE out of bounds", line);
    if (low < 0 || high < 0 || (high > 0 && (low < 1 || low > high))) return fail("TILE has bad gaps", line);
    least[tile_at(x, y)] = high > 0 ? low : 0;
    most[tile_at(x, y)] = high;
    return true;
  }

  SPARRING_FN bool read_edge(Span line, Span fields) {
    i32 index = 0, kind = 0, portal = 0;
    if (!number(fields, index) || !number(fields, kind) || !number(fields, portal)) {
      return fail("EDGE needs index kind portalId", line);
    }
    const i32 stride = level.width + 1, rows = 2 * level.height + 1;
    if (index < 0 || index >= rows * stride) return fail("EDGE index is off the map", line);
    const i32 row = index / stride, column = index % stride;
    if (column == level.width || row == rows - 1) return true;  // the far rim repeats the near one
    const u32 edge = tile_at(column, row / 2) + (row % 2 == 0 ? 0 : level.cells);
    if (kind == 2) {
      if (portal < 0) return fail("portal EDGE needs a portal id", line);
      edges[edge] = portal;
      ends[end_count] = static_cast<u64>(portal) << 32 | end_count;
      end_edge[end_count++] = edge;
    } else if (kind == 0 || kind == 1) {
      edges[edge] = kind == 0 ? kOpen : kKelp;
    } else {
      return fail("EDGE has unknown kind", line);
    }
    return true;
  }

  SPARRING_FN bool read_dragon(Span line, Span fields) {
    i32 team = 0, count = 0;
    if (!number(fields, team) || !number(fields, count)) return fail("DRAGON needs team and segment count", line);
    if (team != 0 && team != 1) return fail("DRAGON team must be 0 or 1", line);
    if (count < 2) return fail("DRAGON is too short", line);
    if (level.dragons > 0 && starts[level.dragons - 1].team == static_cast<u32>(team)) {
      return fail("DRAGON teams must alternate, so dragons 0 and 1 are on different teams", line);
    }
    Start& start = starts[level.dragons++];
    start = Start{level.segments, static_cast<u32>(count), static_cast<u32>(team), kNowhere};
    for (i32 i = 0; i < count; ++i) {
      i32 x = 0, y = 0;
      if (!number(fields, x) || !number(fields, y)) return fail("DRAGON ran out of segments", line);
      if (!on_map(x, y)) return fail("DRAGON segment out of bounds", line);
      u32& held = holder[tile_at(x, y)];
      if (held != 0 && held != level.dragons) return fail("DRAGON overlaps another dragon", line);
      level.repeats += held != 0;
      held = level.dragons;
      segments[level.segments++] = static_cast<u16>(tile_at(x, y));
    }
    return true;
  }

  SPARRING_FN bool check_count(const char* key, i32 declared, i32 read) {
    if (declared == read) return true;
    error.put(key).put(" is ").number(declared).put(" but read ").number(read);
    return false;
  }

  SPARRING_FN bool check_mirror() {
    for (u32 tile = 0; tile < level.cells; ++tile) {
      const u32 mirror = mirror_of(level, tile);
      if (least[tile] == least[mirror] && most[tile] == most[mirror]) continue;
      error.put("pearl bed at ");
      place(tile).put(" doesn't match its mirror at ");
      place(mirror);
      return false;
    }
    return true;
  }

  SPARRING_FN bool check_portals() {
    sort(ends, end_count);
    const auto id_of = [&](u32 i) { return static_cast<i32>(ends[i] >> 32); };
    const auto edge_at = [&](u32 i) { return end_edge[ends[i] & kNone]; };
    for (u32 i = 0; i < 2 * level.cells; ++i) partner[i] = kNone;
    for (u32 i = 0, next = 0; i < end_count; i = next) {
      for (next = i; next < end_count && id_of(next) == id_of(i); ++next) {
        const u32 edge = edge_at(next);
        const bool taken = partner[edge] != kNone;
        if (taken || edges[edge] < 0) {
          error.put("portal ").number(id_of(next));
          error.put(taken ? " reuses an edge of another portal at " : " end at ");
          place(edge % level.cells).put(taken ? "" : " was overwritten");
          return false;
        }
        partner[edge] = edge_at(i);  // the second end's partner; the first one's follows
      }
      if (next - i != 2) continue;
      if (edge_at(i) / level.cells != edge_at(i + 1) / level.cells) {
        error.put("portal ").number(id_of(i)).put(" joins a horizontal edge to a vertical one");
        return false;
      }
      partner[edge_at(i)] = edge_at(i + 1);
    }
    for (u32 i = 0, next = 0; i < end_count; i = next) {
      for (next = i; next < end_count && id_of(next) == id_of(i);) ++next;
      if (next - i == 2) continue;
      error.put("portal ").number(id_of(i)).put(" has ").number(next - i).put(" end(s) and joins nothing at ");
      error.put(edge_at(i) < level.cells ? "top" : "left").put(" of ");
      place(edge_at(i) % level.cells);
      return false;
    }
    return true;
  }

  SPARRING_FN void join_tiles() {
    for (u32 i = 0; i < level.cells; ++i) {
      Tile& tile = tiles[i];
      tile = Tile{};
      for (u32 d = 0; d < 4; ++d) {
        const u32 edge = edge_of(level, i, d);
        const bool portal = edges[edge] >= 0;
        tile.ahead[d] = static_cast<u16>(beyond(level, portal ? partner[edge] : edge, d));
        if (edges[edge] == kKelp) tile.kelp = static_cast<u8>(tile.kelp | 1u << d);
        if (portal) tile.portals = static_cast<u8>(tile.portals | 1u << d);
      }
    }
  }

  SPARRING_FN bool check_bodies() {
    for (u32 dragon = 0; dragon < level.dragons; ++dragon) {
      Start& start = starts[dragon];
      const u16* body = segments + start.first;
      for (u32 i = 1; i < start.length; ++i) {
        if (heading(level, body[i], body[i - 1]) != kNowhere) continue;
        error.put("dragon ").number(dragon).put(" segment ").number(i).put(" is not adjacent to the one before it");
        return false;
      }
      start.facing = heading(level, body[1], body[0]);
    }
    return true;
  }

  // In row-major order of the owner, the smaller tile of the two. Written behind everything else.
  SPARRING_FN void group_tiles(Group* groups) {
    for (u32 tile = 0; tile < level.cells; ++tile) {
      const u32 mirror = mirror_of(level, tile);
      if (most[tile] == 0 || mirror < tile) continue;
      const u32 span = static_cast<u32>(most[tile]) - static_cast<u32>(least[tile]) + 1;
      groups[level.groups] = Group{static_cast<u16>(tile), static_cast<u16>(mirror), least[tile], span};
      for (u32 t = tile;; t = mirror) {
        tiles[t].group = static_cast<u16>(level.groups);
        tiles[t].portals |= Tile::kSpawns;
        if (t == mirror) break;
      }
      ++level.groups;
    }
  }

  SPARRING_FN bool read(Span text) {
    i32 tile_count = -1, edge_count = -1, dragon_count = -1, tile_lines = 0, edge_lines = 0;
    level.unit_limit = kDefaultUnitLimit;
    while (!text.empty()) {
      const Span line = map_line(text);
      if (line.empty()) continue;
      if (line.is("END")) break;
      Span fields = line;
      const Span key = fields.word();
      bool good = true;
      if (key.is("MAP")) {
        good = read_size(line, fields);
      } else if (!sized) {
        error.put("MAP must come before ").put(key.at, key.size());
        good = false;
      } else if (key.is("TILE")) {
        ++tile_lines;
        good = read_tile(line, fields);
      } else if (key.is("EDGE")) {
        ++edge_lines;
        good = read_edge(line, fields);
      } else if (key.is("DRAGON")) {
        good = read_dragon(line, fields);
      } else if (key.is("SYMMETRY")) {
        good = read_symmetry(line, fields);
      } else if (key.is("UNIT_LIMIT")) {
        good = (number(fields, level.unit_limit) && level.unit_limit > 0) ||
               fail("UNIT_LIMIT needs a positive count", line);
      } else if (key.is("TILE_COUNT")) {
        good = number(fields, tile_count) || fail("TILE_COUNT needs a count", line);
      } else if (key.is("EDGE_COUNT")) {
        good = number(fields, edge_count) || fail("EDGE_COUNT needs a count", line);
      } else if (key.is("DRAGON_COUNT")) {
        good = number(fields, dragon_count) || fail("DRAGON_COUNT needs a count", line);
      } else if (!key.is("MAP_NAME")) {
        good = fail("unknown map line", line);
      }
      if (!good) return false;
    }
    if (!sized) return fail("map has no MAP line");
    return check_count("TILE_COUNT", tile_count, tile_lines) && check_count("EDGE_COUNT", edge_count, edge_lines) &&
           check_count("DRAGON_COUNT", dragon_count, static_cast<i32>(level.dragons)) && check_mirror() &&
           check_portals();
  }
};

}  // namespace reading

// Reads a map file. `level` and `scratch` hold at least the bytes that map_needs names, aligned to 8; the level then
// takes the first `Level::bytes` of them. On a bad file `error` gets the organisers' text, and nothing is returned.
SPARRING_FN const Level* read_map(const u8* bytes, u64 size, void* memory, void* scratch, Out& error) {
  const MapNeeds needs = map_needs(bytes, size);
  Level& level = *static_cast<Level*>(memory);
  level = Level{};
  u8* base = static_cast<u8*>(memory);
  u64 at = sizeof(Level);
  const auto take = [&](u64 count) {
    const u64 start = at;
    at += (count + 3) / 4 * 4;
    return static_cast<u32>(start);
  };
  take(needs.cells * sizeof(Tile));
  level.edges_at = take(2 * needs.cells * sizeof(i32));
  level.starts_at = take(needs.dragons * sizeof(Start));
  level.segments_at = take(needs.segments * sizeof(u16));
  level.groups_at = static_cast<u32>(at);

  u64* const ends = static_cast<u64*>(scratch);
  u32* const words = reinterpret_cast<u32*>(ends + needs.edge_lines);
  u32* const partner = words + needs.edge_lines;
  i32* const gaps = reinterpret_cast<i32*>(partner + 2 * needs.cells);
  reading::MapReader reader{level,
                            needs,
                            error,
                            reinterpret_cast<Tile*>(base + sizeof(Level)),
                            reinterpret_cast<i32*>(base + level.edges_at),
                            reinterpret_cast<Start*>(base + level.starts_at),
                            reinterpret_cast<u16*>(base + level.segments_at),
                            ends,
                            words,
                            partner,
                            gaps,
                            gaps + needs.cells,
                            reinterpret_cast<u32*>(gaps + 2 * needs.cells),
                            0,
                            false};
  if (!reader.read(Span{bytes, bytes + size})) return nullptr;
  reader.join_tiles();
  if (!reader.check_bodies()) return nullptr;
  reader.group_tiles(reinterpret_cast<Group*>(base + level.groups_at));
  level.bytes = (level.groups_at + level.groups * sizeof(Group) + 7) / 8 * 8;

  // A team grows by splits alone, and a split needs room below the limit; every dragon has two segments, and no tile
  // ever holds more segments than at the start, or one.
  u64 alive = 0;
  for (u32 team = 0; team < 2; ++team) {
    u64 start = 0;
    for (u32 i = 0; i < level.dragons; ++i) start += reader.starts[i].team == team;
    alive += start > static_cast<u64>(level.unit_limit) ? start : static_cast<u64>(level.unit_limit);
  }
  const u64 room = (level.cells + level.repeats) / 2;
  level.most_alive = static_cast<u32>(alive < room ? alive : room);
  return &level;
}

}  // namespace sparring::loong
