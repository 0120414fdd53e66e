// The course of a match: start, rounds, turns, deaths and the score.
#pragma once

#include "pearls.h"
#include "sonar.h"
#include "state.h"

namespace sparring::loong {

enum class Kind : u8 { kSuicide, kMove, kSplit };  // without a valid action a dragon dies
enum class Death : u8 { kWall, kSelf, kOther, kHeads, kNoAction };
static_assert(static_cast<u32>(Death::kNoAction) + 1 == kDeaths, "every cause is counted");

SPARRING_FN char letter(Death death) { return "WSOHA"[static_cast<int>(death)]; }

struct Action {
  const u8* steps;  // directions; in the caller's memory
  u32 step_count;
  i32 split;  // segments
  u64 aimed[4];
  u32 ahead;  // the message that goes where the dragon then faces
  Kind kind;
  u8 aimed_directions;  // one bit per direction
  bool sends_ahead;
  bool sets_protocol;
  i32 protocol;
};

// What can be heard of a match, in the order in which it happens. Listeners hide what they want to hear.
struct Silence {
  SPARRING_FN void round_starts(i32 /*round*/) {}
  SPARRING_FN void turn_starts(const Dragon& /*dragon*/, bool /*born_this_round*/) {}
  SPARRING_FN void countdown(u32 /*tile*/, i32 /*rounds*/) {}
  SPARRING_FN void pearl(u32 /*tile*/, bool /*lies*/) {}
  SPARRING_FN void pearl_blocked(u32 /*tile*/) {}
  SPARRING_FN void appears(const Dragon& /*dragon*/) {}  // at the start of a match, or inside a split
  SPARRING_FN void acts(const Dragon& /*dragon*/, const Action& /*action*/) {}
  SPARRING_FN void step(const Dragon& /*dragon*/, u32 /*index*/, bool /*paid*/, bool /*ate*/, bool /*portal*/) {}
  SPARRING_FN void body(const Lane& /*lane*/, const Dragon& /*dragon*/) {}  // has new ends or a new facing
  SPARRING_FN void cannot_pay(const Dragon& /*dragon*/, u32 /*step*/) {}
  SPARRING_FN void cannot_split(const Dragon& /*dragon*/, i32 /*segments*/, bool /*limit*/) {}
  SPARRING_FN void split(const Lane& /*lane*/, const Dragon& /*parent*/, const Dragon& /*child*/) {}
  SPARRING_FN void dies(const Dragon& /*dragon*/, Death /*why*/, i32 /*round*/) {}
  SPARRING_FN void ray(u32 /*sender*/, const Ray& /*ray*/) {}
};

// What a team has at the end of a round.
struct Standing {
  i32 dragons, longest, total, queen;
};

SPARRING_FN Standing standing(const Lane& lane, u32 team) {
  Standing sum{};
  for (u32 i = 0; i < lane.match.alive; ++i) {
    const Dragon& dragon = lane.dragons[lane.order[i]];
    if (dragon.team != team) continue;
    const i32 length = static_cast<i32>(dragon.length);
    ++sum.dragons;
    sum.total += length;
    sum.longest = length > sum.longest ? length : sum.longest;
    if (dragon.id < 2) sum.queen = length;
  }
  return sum;
}

// Forgets what was in the lane and starts a match. The level must fit into the lane's room.
template <typename Events>
SPARRING_FN void restart(Lane& lane, u64 seed, Events& events) {
  const Level& level = lane.level;
  Match& match = lane.match;
  match = Match{};
  match.seed = seed;
  match.acting = match.free_message = kNone;
  for (u32 i = 0; i < level.cells; ++i) lane.cells[i] = Cell{};
  for (u32 i = 0; i < lane.layout.room.dragons; ++i) lane.order[i] = static_cast<u16>(i);
  for (u32 id = 0, spare = level.cells; id < level.dragons; ++id) {
    const Start& start = level.starts()[id];
    const u16* body = level.segment_tiles() + start.first;
    Dragon& dragon = lane.dragons[id];
    dragon = Dragon{};
    dragon.id = id;
    dragon.length = start.length;
    dragon.team = static_cast<u8>(start.team);
    dragon.facing = static_cast<u8>(start.facing);
    for (u32 i = 0; i < start.length; ++i) {
      u32 cell = body[i];
      if (lane.cells[cell].holds != 0) {
        cell = spare++;
        lane.cells[cell].holds = body[i];
      }
      lane.cells[cell].next = dragon.tail;
      lane.occupy(body[i], id);
      if (i == 0) dragon.head = static_cast<u16>(cell);
      dragon.tail = static_cast<u16>(cell);
    }
    ++match.team_alive[start.team];
    events.appears(dragon);
  }
  match.alive = match.next_id = level.dragons;
  match.first_newborn = level.dragons;
  seed_twister(lane);
  start_countdowns(lane, events);
  for (u32 id = 0; id < level.dragons; ++id) events.body(lane, lane.dragons[id]);
  match.round = -1;
  match.cursor = match.alive;  // the first round starts with the first advance
}

// Ends the match if this round decided it.
SPARRING_FN void check_result(Lane& lane) {
  Match& match = lane.match;
  const bool a_out = match.team_alive[0] == 0, b_out = match.team_alive[1] == 0;
  if (a_out || b_out) {
    match.over = 1;
    match.reason = Reason::kEliminated;
    match.winner = a_out == b_out ? 0 : a_out ? 2 : 1;
  } else if (match.round == kRounds - 1) {
    match.over = 1;
    match.reason = Reason::kRoundLimit;
    const Standing a = standing(lane, 0), b = standing(lane, 1);
    i32 lead = a.queen - b.queen;
    if (lead == 0) lead = a.longest - b.longest;
    if (lead == 0) lead = a.total - b.total;
    match.winner = lead > 0 ? 1 : lead < 0 ? 2 : 0;
  }
}

// Goes on to the next decision. True: Match::acting must act. False: the match is over, or the lane has a fault.
template <typename Events>
SPARRING_FN bool advance(Lane& lane, Events& events) {
  Match& match = lane.match;
  if (match.acting != kNone) return true;
  while (match.over == 0 && match.fault == Fault::kSound) {
    if (match.cursor < match.alive) {
      match.acting = lane.order[match.cursor++];
      const Dragon& dragon = lane.dragons[match.acting];
      events.turn_starts(dragon, dragon.id >= match.first_newborn);
      return true;
    }
    if (match.round >= 0) check_result(lane);
    if (match.over != 0) break;
    ++match.round;
    match.cursor = 0;
    match.first_newborn = match.next_id;
    events.round_starts(match.round);
    tick_pearls(lane, events);
  }
  return false;
}

// Takes a dragon off the board. Its slot is free afterwards.
template <typename Events>
SPARRING_FN void kill(Lane& lane, u32 slot, Death why, Events& events) {
  Match& match = lane.match;
  Dragon& dragon = lane.dragons[slot];
  events.dies(dragon, why, match.round);
  // Turn the list round: pearls fall from the head on.
  const u32 length = dragon.length;
  u32 after = dragon.tail;
  for (u32 i = 1, cell = dragon.tail; i < length; ++i) {
    const u32 next = lane.cells[cell].next;
    lane.cells[cell].next = static_cast<u16>(after);
    after = cell;
    cell = next;
  }
  lane.cells[dragon.head].next = static_cast<u16>(after);
  dragon.length = 0;
  for (u32 i = 0, cell = dragon.head; i < length; ++i, cell = lane.cells[cell].next) {
    const u32 tile = lane.tile_of(cell);
    lane.vacate(tile);
    if (i % 2 == 0) {
      lane.cells[tile].holds |= Cell::kPearl;
      events.pearl(tile, true);
    }
  }
  lane.empty_inbox(dragon);
  --match.team_alive[dragon.team];
  ++match.deaths[dragon.team][static_cast<u32>(why)];
  --match.alive;
  u32 place = 0;
  while (lane.order[place] != slot) ++place;
  if (place < match.cursor) --match.cursor;
  for (; place < match.alive; ++place) lane.order[place] = lane.order[place + 1];
  lane.order[match.alive] = static_cast<u16>(slot);
}

SPARRING_FN void drop_tail(Lane& lane, Dragon& dragon) {
  const u32 tile = lane.tail_tile(dragon);
  dragon.tail = lane.cells[dragon.tail].next;
  --dragon.length;
  lane.vacate(tile);
}

// True if the dragon is still alive.
template <typename Events>
SPARRING_FN bool move(Lane& lane, u32 slot, const u8* steps, u32 count, Events& events) {
  Dragon& dragon = lane.dragons[slot];
  const u32 free_steps = (dragon.length + 3) / 4;
  for (u32 i = 0; i < count; ++i) {
    const bool paid = i >= free_steps;
    if (paid && dragon.length <= 2) {
      events.cannot_pay(dragon, i + 1);
      kill(lane, slot, Death::kNoAction, events);
      return false;
    }
    const u32 direction = steps[i];
    dragon.facing = static_cast<u8>(direction);
    const u32 from = lane.head_tile(dragon), to = lane.ahead(from, direction);
    if (to == kNone) {
      kill(lane, slot, Death::kWall, events);
      return false;
    }
    const u32 met = lane.cells[to].slot();
    if (met != kNone) {
      const bool self = met == slot || (lane.level.repeats != 0 && lane.is_on(dragon, to));
      Death why = self ? Death::kSelf : Death::kOther;
      if (!self && lane.head_tile(lane.dragons[met]) == to) {
        why = Death::kHeads;
        kill(lane, met, why, events);
      }
      kill(lane, slot, why, events);
      return false;
    }
    const bool ate = lane.cells[to].pearl();
    lane.cells[to].holds = 0;
    lane.cells[dragon.head].next = static_cast<u16>(to);
    dragon.head = static_cast<u16>(to);
    ++dragon.length;
    lane.occupy(to, slot);
    if (ate) {
      events.pearl(to, false);
    } else {
      drop_tail(lane, dragon);
    }
    if (paid) drop_tail(lane, dragon);
    events.step(dragon, i, paid, ate, lane.tiles[from].portal(direction));
    events.body(lane, dragon);
  }
  return true;
}

// True if the parent is still alive.
template <typename Events>
SPARRING_FN bool split(Lane& lane, u32 slot, i32 segments, Events& events) {
  Match& match = lane.match;
  Dragon& parent = lane.dragons[slot];
  const bool too_short = segments < 2 || segments > static_cast<i32>(parent.length) - 2;
  if (too_short || match.team_alive[parent.team] >= static_cast<u32>(lane.level.unit_limit)) {
    events.cannot_split(parent, segments, !too_short);
    kill(lane, slot, Death::kNoAction, events);
    return false;
  }
  if (match.alive == lane.layout.room.dragons) {
    match.fault = Fault::kTooManyDragons;
    return false;
  }
  const u32 child_slot = lane.order[match.alive++];
  Dragon& child = lane.dragons[child_slot];
  child = Dragon{};
  child.id = match.next_id++;
  child.length = static_cast<u32>(segments);
  child.team = parent.team;
  child.wide = parent.wide;
  child.head = child.tail = parent.tail;
  lane.occupy(lane.tile_of(parent.tail), child_slot);
  const u32 second = lane.cells[parent.tail].next;
  u32 cell = second;
  for (u32 i = 1; i < child.length; ++i) {
    const u32 next = lane.cells[cell].next;
    lane.cells[cell].next = child.tail;
    lane.occupy(lane.tile_of(cell), child_slot);
    child.tail = static_cast<u16>(cell);
    cell = next;
  }
  parent.tail = static_cast<u16>(cell);
  parent.length -= child.length;
  if (lane.level.repeats != 0) {
    cell = child.tail;
    for (u32 i = 0; i < child.length; ++i, cell = lane.cells[cell].next) lane.vacate(lane.tile_of(cell));
  }
  child.facing = static_cast<u8>(heading(lane.level, lane.tile_of(second), lane.head_tile(child)));
  ++match.team_alive[parent.team];
  events.split(lane, parent, child);
  events.appears(child);
  return true;
}

// The turn of Match::acting.
template <typename Events>
SPARRING_FN void apply(Lane& lane, const Action& action, Events& events) {
  const u32 slot = lane.match.acting;
  Dragon& dragon = lane.dragons[slot];
  lane.match.acting = kNone;
  lane.empty_inbox(dragon);
  for (u8& echo : dragon.echoes) echo = 0;
  if (action.sets_protocol) dragon.wide = action.protocol >= 3;
  events.acts(dragon, action);
  bool alive = false;
  if (action.kind == Kind::kMove) {
    alive = move(lane, slot, action.steps, action.step_count, events);
  } else if (action.kind == Kind::kSplit) {
    alive = split(lane, slot, action.split, events);
  } else {
    kill(lane, slot, Death::kNoAction, events);
  }
  if (alive) {
    const u32* ahead = action.sends_ahead ? &action.ahead : nullptr;
    cast_sonar(lane, slot, action.aimed_directions, action.aimed, ahead, events);
  }
}

}  // namespace sparring::loong
