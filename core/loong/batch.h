// Many matches at once: the arrays of a batch, and what is done to one lane of it. A CPU and a GPU call the same
// functions.
#pragma once

#include "rows.h"
#include "scripted.h"
#include "view.h"

namespace sparring::loong {

// All arrays lie in the memory of the machine that plays. Lanes share nothing that is written.
struct Batch {
  u64 lanes;
  Layout layout;
  u8* memory;                  // [lanes, layout.bytes]
  const Level* const* levels;  // those that can be played
  LaneRow* rows;               // [lanes]
  View* views;                 // [lanes] what the dragon that must act is told, as of the last `look_in`

  SPARRING_FN u8* lane_memory(u64 index) const { return memory + index * layout.bytes; }
  SPARRING_FN Lane lane(u64 index) const {
    return Lane::at(lane_memory(index), layout, *levels[static_cast<u64>(rows[index].level)]);
  }
};

// Leads a lane to its next decision, or to its end.
SPARRING_FN void go_on(const Batch& batch, u64 index) {
  Silence silence;
  Lane lane = batch.lane(index);
  const Match& match = lane.match;
  LaneRow row{};
  row.waiting = advance(lane, silence);
  row.seed = match.seed;
  row.level = batch.rows[index].level;
  row.round = match.round;
  row.over = match.over;
  row.fault = static_cast<u8>(match.fault);
  if (row.waiting != 0) {
    row.slot = match.acting;
    row.dragon = lane.dragons[match.acting].id;
    row.team = lane.dragons[match.acting].team;
  }
  if (match.over != 0) {
    row.winner = match.winner;
    row.reason = static_cast<u16>(match.reason);
    for (u32 team = 0; team < 2; ++team) {
      const Standing end = standing(lane, team);
      row.dragons[team] = end.dragons;
      row.total[team] = end.total;
      row.queen[team] = end.queen;
      row.longest[team] = end.longest;
      for (u32 why = 0; why < kDeaths; ++why) row.deaths[team][why] = match.deaths[team][why];
    }
  }
  batch.rows[index] = row;
}

// Starts a match. What lies in the lane's room without being part of the match is 0.
template <typename Events>
SPARRING_FN void start(const Batch& batch, u64 index, i32 level, u64 seed, Events& events) {
  u64* memory = reinterpret_cast<u64*>(batch.lane_memory(index));
  for (u64 i = 0; i < batch.layout.bytes / sizeof(u64); ++i) memory[i] = 0;
  batch.rows[index].level = level;
  Lane lane = batch.lane(index);
  restart(lane, seed, events);
  go_on(batch, index);
}

SPARRING_FN void start(const Batch& batch, u64 index, i32 level, u64 seed) {
  Silence silence;
  start(batch, index, level, seed, silence);
}

// Carries out `action` in a lane that waits. A row that is no action is a fault of the lane.
SPARRING_FN void act(const Batch& batch, u64 index, const ActionRow& action) {
  if (batch.rows[index].waiting == 0) return;
  Silence silence;
  Lane lane = batch.lane(index);
  if (action.valid()) {
    apply(lane, action.action(), silence);
  } else {
    lane.match.acting = kNone;
    lane.match.fault = Fault::kNoAction;
  }
  go_on(batch, index);
}

SPARRING_FN void look_in(const Batch& batch, u64 index) {
  if (batch.rows[index].waiting == 0) return;
  const Lane lane = batch.lane(index);
  look(lane, lane.match.acting, batch.views[index]);
}

// What the scripted player of the team that must act does. `scripts` holds those of A and B; kNobody does nothing here.
SPARRING_FN void decide_in(const Batch& batch, u64 index, const Script* scripts, u64 seed, ActionRow& action) {
  const LaneRow& row = batch.rows[index];
  if (row.waiting == 0 || scripts[row.team] == Script::kNobody) return;
  decide(scripts[row.team], batch.lane(index), seed, action);
}

}  // namespace sparring::loong
