// Maps that tests draw up in a few lines.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "loong/map.h"

namespace sparring::loong {

// A map file in the making.
struct Sketch {
  int width, height;
  std::string lines;
  int tiles = 0, edges = 0, dragons = 0;

  Sketch& tile(int x, int y, int least, int most) {
    lines += "TILE " + std::to_string(x) + " " + std::to_string(y) + " " + std::to_string(least) + " " +
             std::to_string(most) + "\n";
    ++tiles;
    return *this;
  }
  Sketch& edge(int row, int column, const char* kind) {
    lines += "EDGE " + std::to_string(row * (width + 1) + column) + " " + kind + "\n";
    ++edges;
    return *this;
  }
  Sketch& north(int x, int y, const char* kind = "1 0") { return edge(2 * y, x, kind); }
  Sketch& west(int x, int y, const char* kind = "1 0") { return edge(2 * y + 1, x, kind); }
  Sketch& dragon(int team, int length, const char* body) {
    lines += "DRAGON " + std::to_string(team) + " " + std::to_string(length) + " " + body + "\n";
    ++dragons;
    return *this;
  }

  std::vector<u64> level() const {
    const std::string map = "MAP " + std::to_string(width) + " " + std::to_string(height) + "\nTILE_COUNT " +
                            std::to_string(tiles) + "\nEDGE_COUNT " + std::to_string(edges) + "\nDRAGON_COUNT " +
                            std::to_string(dragons) + "\n" + lines;
    const u8* file = reinterpret_cast<const u8*>(map.data());
    const MapNeeds needs = map_needs(file, map.size());
    std::vector<u64> memory(needs.level_bytes / 8 + 8), scratch(needs.scratch_bytes / 8 + 8);
    u8 error[256] = {};
    Out out{error, sizeof error - 1, 0};
    if (read_map(file, map.size(), memory.data(), scratch.data(), out) == nullptr) {
      std::printf("bad map: %s\n%s", reinterpret_cast<char*>(error), map.c_str());
      std::exit(1);
    }
    return memory;
  }
};

// Pearls everywhere, pillars of kelp, portals, two dragons a team, of which six may live.
inline Sketch meadow(int side) {
  Sketch sketch{side, side, {}};
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) sketch.tile(x, y, 1, 40);
  }
  for (int i = 2; i + 2 < side; i += 4) sketch.north(i, i).west(i, i).north(side - i - 1, i);
  for (int y = 0; y < side; y += 2) {
    const std::string portal = "2 " + std::to_string(y);
    sketch.west(0, y, portal.c_str()).west(side / 2, side - 1 - y, portal.c_str());
  }
  sketch.lines += "UNIT_LIMIT 6\n";
  sketch.dragon(0, 4, "4 1 3 1 2 1 1 1").dragon(1, 4, "4 5 3 5 2 5 1 5");
  return sketch.dragon(0, 2, "1 3 1 2").dragon(1, 2, "6 3 6 2");
}

}  // namespace sparring::loong
