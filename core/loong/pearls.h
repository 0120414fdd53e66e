// When pearls appear: the 64-bit Mersenne twister of a match, and the countdowns that it sets.
#pragma once

#include "state.h"

namespace sparring::loong {

// Matsumoto and Nishimura's mt19937-64, its words renewed one at a time as they are used.
SPARRING_FN void seed_twister(Lane& lane) {
  u64 word = lane.match.seed;
  lane.twister[0] = word;
  for (u32 i = 1; i < kTwisterWords; ++i) {
    word = 6364136223846793005ull * (word ^ (word >> 62)) + i;
    lane.twister[i] = word;
  }
  lane.match.twister_at = 0;
}

SPARRING_FN u64 next_word(Lane& lane) {
  constexpr u64 kUpper = 0xFFFFFFFF80000000ull;
  const u32 at = lane.match.twister_at;
  const u32 after = at + 1 == kTwisterWords ? 0 : at + 1;
  const u32 middle = at < kTwisterWords / 2 ? at + kTwisterWords / 2 : at - kTwisterWords / 2;
  u64* const words = lane.twister;
  const u64 mixed = (words[at] & kUpper) | (words[after] & ~kUpper);
  u64 x = words[middle] ^ (mixed >> 1) ^ ((mixed & 1) != 0 ? 0xB5026F5AA96619E9ull : 0);
  words[at] = x;
  lane.match.twister_at = after;
  x ^= (x >> 29) & 0x5555555555555555ull;
  x ^= (x << 17) & 0x71D67FFFEDA60000ull;
  x ^= (x << 37) & 0xFFF7EEE000000000ull;
  return x ^ (x >> 43);
}

SPARRING_FN u32 draw_gap(Lane& lane, const Group& group) {
  return static_cast<u32>(group.least) + static_cast<u32>(next_word(lane) % group.span);
}

SPARRING_FN void refresh_soonest(Lane& lane, u32 block) {
  const u32 first = block * kDueBlock;
  const u32 last = first + kDueBlock < lane.level.groups ? first + kDueBlock : lane.level.groups;
  u32 soonest = 0xFFFF;
  for (u32 g = first; g < last; ++g) soonest = lane.due[g] < soonest ? lane.due[g] : soonest;
  lane.soonest[block] = static_cast<u16>(soonest);
}

// A countdown that starts at c is 1 lower in every round from round 0 on: its first attempt is in round c - 1.
template <typename Events>
SPARRING_FN void start_countdowns(Lane& lane, Events& events) {
  const Group* groups = lane.level.group_list();
  for (u32 g = 0; g < lane.level.groups; ++g) {
    const u32 gap = draw_gap(lane, groups[g]);
    lane.due[g] = gap - 1;
    events.countdown(groups[g].tile, static_cast<i32>(gap));
    if (groups[g].mirror != groups[g].tile) events.countdown(groups[g].mirror, static_cast<i32>(gap));
  }
  for (u32 block = 0; block * kDueBlock < lane.level.groups; ++block) refresh_soonest(lane, block);
}

template <typename Events>
SPARRING_FN void try_pearl(Lane& lane, u32 tile, Events& events) {
  if (lane.cells[tile].holds != 0) {
    events.pearl_blocked(tile);
    return;
  }
  lane.cells[tile].holds = Cell::kPearl;
  events.pearl(tile, true);
}

// The pearls of this round. Groups draw in their order, whether or not a pearl found room.
template <typename Events>
SPARRING_FN void tick_pearls(Lane& lane, Events& events) {
  const u32 round = static_cast<u32>(lane.match.round);
  const Group* groups = lane.level.group_list();
  for (u32 block = 0, first = 0; first < lane.level.groups; ++block, first += kDueBlock) {
    if (lane.soonest[block] != round) continue;
    const u32 last = first + kDueBlock < lane.level.groups ? first + kDueBlock : lane.level.groups;
    for (u32 g = first; g < last; ++g) {
      if (lane.due[g] != round) continue;
      const Group& group = groups[g];
      const bool alone = group.mirror == group.tile;
      try_pearl(lane, group.tile, events);
      if (!alone) try_pearl(lane, group.mirror, events);
      const u32 gap = draw_gap(lane, group);
      lane.due[g] = round + gap;
      events.countdown(group.tile, static_cast<i32>(gap));
      if (!alone) events.countdown(group.mirror, static_cast<i32>(gap));
    }
    refresh_soonest(lane, block);
  }
}

}  // namespace sparring::loong
