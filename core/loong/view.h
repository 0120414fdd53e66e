// What the judge tells a dragon in one turn. Training fills it from the state, a bot from the judge's text.
#pragma once

#include "state.h"

namespace sparring::loong {

constexpr u32 kWindow = 7, kWindowTiles = kWindow * kWindow, kWindowEdges = kWindow * (kWindow + 1);
constexpr u32 kWindowCentre = kWindowTiles / 2;
constexpr u32 kViewMessages = 32;

// What a dragon is told once, when it appears.
struct Identity {
  u32 id, team;
  i32 width, height, unit_limit;
};

// Tiles row by row from three tiles north and west of the head; all bytes have a meaning, so views compare as memory.
struct View {
  u64 newest[kViewMessages];  // the last of the messages, in order of arrival; the rest is 0
  u32 messages;               // all of them, those that are no longer in `newest` too
  i32 round;
  u32 facing;
  i32 length;
  i32 units;      // living dragons of the team
  i32 x, y;       // of the head
  u32 wide;       // 1 if echoes and 64-bit messages are told
  i32 echoes[5];  // kelp, ally, ally's head, enemy, enemy's head; 0 if not told
  i32 countdown[kWindowTiles];
  i32 north[kWindowEdges];  // 8 rows of 7: kOpen, kKelp or the id of a portal
  i32 west[kWindowEdges];   // 7 rows of 8
  u32 id[kWindowTiles];     // of the dragon on the tile, or kNone
  u8 body[kWindowTiles];    // kBody, kHead, kEnemy and the facing of the segment; 0 where nobody is
  u8 pearl[kWindowTiles];
  u8 unused[2];

  static constexpr u32 kFacing = 3, kBody = 4, kHead = 8, kTeamB = 16;
};

SPARRING_FN Identity identity_of(const Lane& lane, const Dragon& dragon) {
  return Identity{dragon.id, dragon.team, lane.level.width, lane.level.height, lane.level.unit_limit};
}

// Numbers above 32 bits are not told to a dragon of the narrow protocol.
SPARRING_FN bool is_told(const Dragon& dragon, const Message& message) { return dragon.wide || message.half[1] == 0; }

SPARRING_FN u32 messages_told(const Lane& lane, const Dragon& dragon) {
  u32 told = 0;
  for (u32 i = 0, at = dragon.first_message; i < dragon.messages; ++i, at = lane.messages[at].next) {
    told += is_told(dragon, lane.messages[at]);
  }
  return told;
}

SPARRING_FN u32 segment_facing(const Lane& lane, const Dragon& dragon, u32 cell) {
  if (cell == dragon.head) return dragon.facing;
  return heading(lane.level, lane.tile_of(cell), lane.tile_of(lane.cells[cell].next));
}

// The window around a tile: from its tiles to those of the board and back.
struct Window {
  u32 width, height, cells;
  u32 x, y;  // of the north-western tile

  SPARRING_FN static Window around(const Level& level, u32 tile) {
    const u32 width = static_cast<u32>(level.width), height = static_cast<u32>(level.height);
    const u32 x = tile % width, y = tile / width;
    return Window{width, height, level.cells, (x + width - kWindow / 2) % width, (y + height - kWindow / 2) % height};
  }

  SPARRING_FN u32 column(u32 place) const { return x + place < width ? x + place : x + place - width; }
  SPARRING_FN u32 row(u32 place) const { return y + place < height ? y + place : y + place - height; }
  SPARRING_FN u32 tile(u32 place) const { return row(place / kWindow) * width + column(place % kWindow); }

  // The place of a tile, or kNone outside the window.
  SPARRING_FN u32 place(u32 tile_x, u32 tile_y) const {
    const u32 dx = tile_x >= x ? tile_x - x : tile_x + width - x;
    const u32 dy = tile_y >= y ? tile_y - y : tile_y + height - y;
    return dx < kWindow && dy < kWindow ? dy * kWindow + dx : kNone;
  }
};

SPARRING_FN void put_segment(View& view, u32 place, const Dragon& dragon, bool head, u32 facing) {
  view.id[place] = dragon.id;
  view.body[place] =
      static_cast<u8>(View::kBody | (head ? View::kHead : 0) | (dragon.team ? View::kTeamB : 0) | facing);
}

// What the dragon in `slot` would be told if it were asked now.
SPARRING_FN void look(const Lane& lane, u32 slot, View& view) {
  const Dragon& self = lane.dragons[slot];
  const u32 centre = lane.head_tile(self);
  const Window window = Window::around(lane.level, centre);
  view = View{};
  view.round = lane.match.round;
  view.facing = self.facing;
  view.length = static_cast<i32>(self.length);
  view.units = static_cast<i32>(lane.match.team_alive[self.team]);
  view.x = static_cast<i32>(centre % window.width);
  view.y = static_cast<i32>(centre / window.width);
  view.wide = self.wide;
  for (u32 i = 0; i < 5 && self.wide; ++i) view.echoes[i] = self.echoes[i];

  view.messages = messages_told(lane, self);
  const u32 skipped = view.messages > kViewMessages ? view.messages - kViewMessages : 0;
  for (u32 i = 0, seen = 0, at = self.first_message; i < self.messages; ++i, at = lane.messages[at].next) {
    if (!is_told(self, lane.messages[at])) continue;
    if (seen >= skipped) view.newest[seen - skipped] = lane.messages[at].number();
    ++seen;
  }

  u32 columns[kWindow + 1];
  for (u32 column = 0; column <= kWindow; ++column) columns[column] = window.column(column);
  const i32* north = lane.level.edges();
  const i32* west = north + window.cells;
  for (u32 row = 0, place = 0; row <= kWindow; ++row) {
    const u32 first = window.row(row) * window.width;
    for (u32 column = 0; column < kWindow; ++column)
      view.north[row * kWindow + column] = north[first + columns[column]];
    if (row == kWindow) break;
    for (u32 column = 0; column <= kWindow; ++column)
      view.west[row * (kWindow + 1) + column] = west[first + columns[column]];
    for (u32 column = 0; column < kWindow; ++column, ++place) {
      const u32 tile = first + columns[column];
      view.countdown[place] = lane.countdown(tile);
      view.pearl[place] = lane.cells[tile].pearl();
      view.id[place] = kNone;
      const u32 met = lane.cells[tile].slot();
      if (met == kNone || lane.level.repeats != 0) continue;
      const Dragon& dragon = lane.dragons[met];
      put_segment(view, place, dragon, dragon.head == tile, segment_facing(lane, dragon, tile));
    }
  }
  if (lane.level.repeats != 0) {  // two segments on one tile: the one that the judge lists first counts
    for (u32 i = lane.match.alive; i-- > 0;) {
      const Dragon& dragon = lane.dragons[lane.order[i]];
      for (u32 n = 0, cell = dragon.tail; n < dragon.length; ++n, cell = lane.cells[cell].next) {
        const u32 tile = lane.tile_of(cell);
        const u32 place = window.place(tile % window.width, tile / window.width);
        if (place != kNone) put_segment(view, place, dragon, cell == dragon.head, segment_facing(lane, dragon, cell));
      }
    }
  }
}

}  // namespace sparring::loong
