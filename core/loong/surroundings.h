// The part of the board that can be reached from the head, as a dragon remembers it, and a forecast of who will be
// where.
#pragma once

#include "remember.h"

namespace sparring::loong {

constexpr u32 kNodes = 250, kNodesDeep = 12;  // no more tiles, and none further away, are looked at
constexpr u16 kWallNode = 0xFFFF;             // kelp
constexpr u16 kBeyond = 0xFFFE;               // where nothing is known, or it is too far
constexpr u32 kNotSoon = 255;                 // rounds
constexpr i32 kFarOff = 120;                  // steps

// A head of another dragon in the window.
struct Other {
  u16 node;
  i32 segments;  // of it in the window
  bool queen;
};

// Tiles by numbers of their own, the head first, then by the steps of the way there: through portals, round the board.
struct Surroundings {
  u32 count;
  u32 tile[kNodes];
  u16 next[kNodes][4];
  u8 away[kNodes];  // steps, past all bodies
  bool pearl[kNodes];
  bool perhaps[kNodes];            // it spawns, and nobody knows when
  u16 due[kNodes];                 // rounds until the next attempt to place a pearl, or 0
  u8 clears[kNodes];               // another's segment leaves after so many rounds; 0: there is none
  u16 own[kNodes];                 // the own body leaves after so many steps of the tail; 0: it is not there
  u8 ally[kNodes], enemy[kNodes];  // rounds until one's head can be there
  i32 lacks[kNodes];               // steps that enemies lack to ram who stands there; 0 or less: one can
  Other allies[kWindowTiles], enemies[kWindowTiles];
  u32 ally_count, enemy_count;
  u16 queen, prey;  // the own and the enemy's queen, if she is another and her head is in the window, else kBeyond
  // For what is computed anew again and again.
  u16 queue[kNodes];
  u8 reached[kNodes];
  bool first[kNodes];  // nobody else gets there sooner

  SPARRING_FN u32 node_of(u32 of) const {
    for (u32 at = hash(of);; at = (at + 1) % kSlots) {
      if (slots[at] == 0 || tile[slots[at] - 1u] == of) return slots[at] == 0 ? kNone : slots[at] - 1u;
    }
  }

  // Looks around. The memory has taken in the View.
  SPARRING_FN void survey(const Memory& memory, const Identity& who, const View& view) {
    map(memory);
    note_bodies(memory, who, view);
    for (u32 i = 0; i < ally_count; ++i) arrive(allies[i], ally);
    for (u32 i = 0; i < enemy_count; ++i) {
      arrive(enemies[i], enemy);
      threaten(enemies[i]);
    }
  }

 private:
  static constexpr u32 kSlots = 1024;
  static constexpr i32 kOutrun = 6;      // steps beyond an enemy's reach that are told apart
  static constexpr i32 kForesight = 10;  // steps that others are followed
  static constexpr u32 kHidden = 4;      // segments that may follow one behind which the window ends
  u16 slots[kSlots];                     // 1 + the node, by a hash of its tile

  SPARRING_FN static u32 hash(u32 of) { return of * 2654435761u >> 22; }

  SPARRING_FN u16 add(u32 of, u32 steps) {
    u32 at = hash(of);
    while (slots[at] != 0) at = (at + 1) % kSlots;
    slots[at] = static_cast<u16>(count + 1);
    tile[count] = of;
    away[count] = static_cast<u8>(steps);
    return static_cast<u16>(count++);
  }

  SPARRING_FN void map(const Memory& memory) {
    count = 0;
    for (u16& slot : slots) slot = 0;
    add(memory.life.head, 0);
    for (u32 n = 0; n < count; ++n) {
      const u32 here = tile[n];
      for (u32 d = 0; d < 4; ++d) next[n][d] = step(memory, n, d);
      pearl[n] = memory.pearl(here) || (memory.told(here).what == Hearsay::kPearl && !memory.seen(here));
      const u32 attempt = memory.attempt(here);
      due[n] = static_cast<u16>(attempt == 0 ? 0 : attempt - memory.life.round());
      perhaps[n] = attempt == 0 && memory.spawns(here);
      clears[n] = 0;
      own[n] = static_cast<u16>(memory.own_clears(here));
      ally[n] = enemy[n] = static_cast<u8>(kNotSoon);
      lacks[n] = kFarOff;
    }
  }

  SPARRING_FN u16 step(const Memory& memory, u32 from, u32 direction) {
    const Side side = memory.side(tile[from], direction).side;
    if (side == Side::kKelpSide) return kWallNode;
    const u32 to = memory.neighbour(tile[from], direction);
    if (to == kNone) return kBeyond;
    const u32 node = node_of(to);
    if (node != kNone) return static_cast<u16>(node);
    if (!memory.seen(to) || count == kNodes || away[from] >= kNodesDeep) return kBeyond;
    return add(to, away[from] + 1u);
  }

  // The place one step ahead inside the window, or kNone.
  SPARRING_FN static u32 ahead(const View& view, u32 place, u32 direction) {
    const u32 row = place / kWindow, column = place % kWindow, west = row * (kWindow + 1) + column;
    const i32 edges[4] = {view.north[place], view.west[west + 1], view.north[place + kWindow], view.west[west]};
    const bool inside[4] = {row > 0, column + 1 < kWindow, row + 1 < kWindow, column > 0};
    if (edges[direction] != kOpen || !inside[direction]) return kNone;
    return direction == kNorth   ? place - kWindow
           : direction == kSouth ? place + kWindow
           : direction == kEast  ? place + 1
                                 : place - 1;
  }

  // May the next segment lie where the window does not show it?
  SPARRING_FN static bool hides(const View& view, u32 place) {
    const u32 row = place / kWindow, column = place % kWindow, west = row * (kWindow + 1) + column;
    const i32 edges[4] = {view.north[place], view.west[west + 1], view.north[place + kWindow], view.west[west]};
    for (u32 d = 0; d < 4; ++d) {
      if (edges[d] != kKelp && ahead(view, place, d) == kNone) return true;
    }
    return false;
  }

  SPARRING_FN void note_bodies(const Memory& memory, const Identity& who, const View& view) {
    const Window window = remembering::window_of(memory, view);
    u32 behind[kWindowTiles];
    for (u32& place : behind) place = kNone;
    for (u32 place = 0; place < kWindowTiles; ++place) {
      if (view.body[place] == 0 || (view.body[place] & View::kHead) != 0) continue;
      const u32 before = ahead(view, place, view.body[place] & View::kFacing);
      if (before != kNone && view.body[before] != 0 && view.id[before] == view.id[place]) behind[before] = place;
    }
    ally_count = enemy_count = 0;
    queen = prey = kBeyond;
    for (u32 place = 0; place < kWindowTiles; ++place) {
      if (view.body[place] == 0 || view.id[place] == who.id) continue;
      if (behind[place] == kNone) {  // from here on the segments clear one after another
        u32 rounds = hides(view, place) ? kHidden : 1;
        for (u32 at = place;; ++rounds) {
          const u32 node = node_of(window.tile(at));
          if (node != kNone) clears[node] = static_cast<u8>(rounds);
          if ((view.body[at] & View::kHead) != 0) break;
          const u32 before = ahead(view, at, view.body[at] & View::kFacing);
          if (before == kNone || behind[before] != at) break;
          at = before;
        }
      }
      const u32 node = node_of(window.tile(place));
      if ((view.body[place] & View::kHead) == 0 || node == kNone) continue;
      Other other{static_cast<u16>(node), 0, view.id[place] < 2};
      for (u32 at = 0; at < kWindowTiles; ++at) other.segments += view.body[at] != 0 && view.id[at] == view.id[place];
      if (((view.body[place] & View::kTeamB) != 0) == (who.team == 1)) {
        allies[ally_count++] = other;
        if (other.queen) queen = other.node;
      } else {
        enemies[enemy_count++] = other;
        if (other.queen) prey = other.node;
      }
    }
  }

  // Follows another's head over what is free by the time it comes.
  SPARRING_FN void arrive(const Other& other, u8* rounds_of) {
    const i32 pace = (other.segments + 3) / 4;
    for (u32 n = 0; n < count; ++n) reached[n] = 255;
    u32 tail = 0;
    queue[tail++] = other.node;
    reached[other.node] = 0;
    for (u32 head = 0; head < tail; ++head) {
      const u32 n = queue[head];
      const i32 steps = reached[n] + 1, rounds = (steps + pace - 1) / pace;
      if (steps > kForesight) return;
      for (const u16 m : next[n]) {
        if (m >= kBeyond || reached[m] != 255 || clears[m] > rounds || own[m] > rounds) continue;
        reached[m] = static_cast<u8>(steps);
        queue[tail++] = m;
        if (rounds < rounds_of[m]) rounds_of[m] = static_cast<u8>(rounds);
      }
    }
  }

  // All steps that it can pay, over what is free now.
  SPARRING_FN void threaten(const Other& other) {
    const i32 length = other.segments < 2 ? 2 : other.segments, reach = (length + 3) / 4 + length - 2;
    for (u32 n = 0; n < count; ++n) reached[n] = 255;
    u32 tail = 0;
    queue[tail++] = other.node;
    reached[other.node] = 0;
    for (u32 head = 0; head < tail; ++head) {
      const u32 n = queue[head];
      const i32 steps = reached[n] + 1;
      if (steps > reach + kOutrun) return;
      for (const u16 m : next[n]) {
        if (m >= kBeyond || reached[m] != 255 || (m != 0 && (clears[m] > 0 || own[m] > 1))) continue;
        reached[m] = static_cast<u8>(steps);
        queue[tail++] = m;
        if (steps - reach < lacks[m]) lacks[m] = steps - reach;
      }
    }
  }
};

}  // namespace sparring::loong
