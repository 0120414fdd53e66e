// Whether the bytes of a lane are a state that play can go on from. Host only.
#pragma once

#include <vector>

#include "state.h"

namespace sparring::loong {

constexpr u32 kMostIds = 1u << 31;  // far more than can be born in a match

// What is wrong with a lane between two turns, or null. Bytes that come from a file must pass this before a lane plays
// on: its functions follow lists and indices without looking. Every list is walked no further than its cells.
inline const char* damage(const Lane& lane) {
  const Level& level = lane.level;
  const Match& match = lane.match;
  const Room& room = lane.layout.room;
  if (match.round < -1 || match.round >= kRounds) return "its round is not one of a match";
  if (match.alive > room.dragons || match.cursor > match.alive) return "it has more dragons than its room";
  if (match.over > 1 || match.winner > 2 || match.reason > Reason::kRoundLimit || match.fault > Fault::kTooMuchKnown)
    return "its end is none that a match can have";
  if (match.twister_at >= kTwisterWords) return "its twister is out of its words";
  if (match.next_id > kMostIds || match.first_newborn > match.next_id) return "it has ids that no match gives";
  if (match.acting != kNone &&
      (match.cursor == 0 || match.acting != lane.order[match.cursor - 1] || match.round < 0 || match.over != 0))
    return "a dragon has the turn that is not on";

  std::vector<bool> met(room.dragons);
  for (u32 i = 0; i < room.dragons; ++i) {
    if (lane.order[i] >= room.dragons || met[lane.order[i]]) return "its slots are not each there once";
    met[lane.order[i]] = true;
  }

  const u32 cells = level.cells + level.repeats;
  std::vector<bool> in_body(cells), message_met(room.messages);
  std::vector<u32> holder(level.cells, kNone);
  u32 teams[2] = {0, 0};
  u64 messages = 0;
  if (match.fresh_message > room.messages) return "it has more messages than its room";
  for (u32 i = 0; i < match.alive; ++i) {
    const Dragon& dragon = lane.dragons[lane.order[i]];
    if (dragon.id >= match.next_id || (i > 0 && lane.dragons[lane.order[i - 1]].id >= dragon.id))
      return "its dragons are not in the order of their ids";
    if (dragon.team > 1 || dragon.facing > 3 || dragon.wide > 1) return "a dragon is none that a match can have";
    if (dragon.length < 2 || dragon.length > cells) return "a dragon has an impossible length";
    ++teams[dragon.team];
    u32 cell = dragon.tail;
    for (u32 n = 1;; ++n) {
      if (cell >= cells || in_body[cell] || lane.tile_of(cell) >= level.cells) return "a body has a broken cell";
      in_body[cell] = true;
      u32& held_by = holder[lane.tile_of(cell)];
      if (held_by != kNone && level.repeats == 0) return "two bodies share a tile";
      if (held_by == kNone) held_by = lane.order[i];
      if (n == dragon.length) break;
      const u32 next = lane.cells[cell].next;
      if (next >= cells || lane.tile_of(next) >= level.cells ||
          heading(level, lane.tile_of(cell), lane.tile_of(next)) == kNowhere)
        return "a body is torn";
      cell = next;
    }
    if (cell != dragon.head) return "a body does not end in its head";
    if (dragon.messages > room.messages) return "an inbox has more messages than its room";
    for (u32 n = 0, at = dragon.first_message; n < dragon.messages; ++n, at = lane.messages[at].next) {
      if (at >= match.fresh_message || message_met[at]) return "an inbox is torn";
      message_met[at] = true;
      if (n + 1 == dragon.messages && at != dragon.last_message) return "an inbox does not end in its last message";
    }
    messages += dragon.messages;
  }
  if (teams[0] != match.team_alive[0] || teams[1] != match.team_alive[1]) return "its teams are miscounted";
  for (u32 at = match.free_message; at != kNone; at = lane.messages[at].next, ++messages) {
    if (at >= match.fresh_message || message_met[at]) return "its list of free messages is torn";
    message_met[at] = true;
  }
  if (messages != match.fresh_message) return "it has lost messages";

  for (u32 tile = 0; tile < level.cells; ++tile) {
    if (lane.cells[tile].slot() != holder[tile]) return "a tile tells of another dragon than the one on it";
    if (lane.cells[tile].pearl() && holder[tile] != kNone && level.repeats == 0) return "a pearl lies under a dragon";
  }
  for (u32 block = 0; block * kDueBlock < level.groups; ++block) {
    u32 soonest = 0xFFFF;
    for (u32 g = block * kDueBlock; g < level.groups && g < (block + 1) * kDueBlock; ++g) {
      const Group& group = level.group_list()[g];
      const i64 left = i64{lane.due[g]} - match.round, longest = i64{group.least} + group.span - 1;
      if (left < 1 || left > longest) return "a countdown is none that its tile can have";
      soonest = lane.due[g] < soonest ? lane.due[g] : soonest;
    }
    if (lane.soonest[block] != soonest) return "its countdowns are not those that are due";
  }
  return nullptr;
}

}  // namespace sparring::loong
