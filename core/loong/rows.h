// What the world outside reads and writes of a batch: an action and the state of a lane as rows of bytes.
#pragma once

#include "out.h"
#include "turn.h"

namespace sparring::loong {

// An action that holds its own steps. The fields are told to Python in bind_loong.cpp.
struct ActionRow {
  u64 aimed[4];  // messages by direction, for those in `aimed_directions`
  i32 split, protocol;
  u32 ahead;
  Kind kind;
  u8 step_count, aimed_directions, extras;
  u8 steps[32];

  static constexpr u32 kMostSteps = sizeof steps;
  static constexpr u8 kSendsAhead = 1, kSetsProtocol = 2;

  SPARRING_FN void step(u32 direction) {
    kind = Kind::kMove;
    steps[step_count++] = static_cast<u8>(direction);
  }

  SPARRING_FN void split_off(u32 segments) {
    kind = Kind::kSplit;
    split = static_cast<i32>(segments);
  }

  SPARRING_FN void send_ahead(u32 value) {
    extras |= kSendsAhead;
    ahead = value;
  }

  SPARRING_FN void set_protocol(i32 number) {
    extras |= kSetsProtocol;
    protocol = number;
  }

  SPARRING_FN bool valid() const {
    if (kind > Kind::kSplit || step_count > kMostSteps || aimed_directions > 15 || extras > 3) return false;
    if (kind == Kind::kMove && step_count == 0) return false;
    for (u32 i = 0; i < step_count; ++i) {
      if (steps[i] > 3) return false;
    }
    return true;
  }

  // Points to the steps of this row.
  SPARRING_FN Action action() const {
    return Action{steps,
                  step_count,
                  split,
                  {aimed[0], aimed[1], aimed[2], aimed[3]},
                  ahead,
                  kind,
                  aimed_directions,
                  (extras & kSendsAhead) != 0,
                  (extras & kSetsProtocol) != 0,
                  protocol};
  }
};
static_assert(sizeof(ActionRow) == 80, "rows have no hidden bytes");

// The action as a reply to the judge.
SPARRING_FN void write_reply(const Action& action, Out& out) {
  if (action.sets_protocol) out.put("PROTOCOL ").number(action.protocol).put('\n');
  if (action.kind == Kind::kSplit) out.put("SPLIT ").number(action.split).put('\n');
  if (action.kind == Kind::kMove) {
    out.put("MOVE ");
    for (u32 i = 0; i < action.step_count; ++i) out.put("NESW"[action.steps[i]]);
    out.put('\n');
  }
  for (u32 d = 0; d < 4; ++d) {
    if ((action.aimed_directions >> d & 1) == 0) continue;
    out.put("SONAR ").put("NESW"[d]).put(' ').number(action.aimed[d]).put('\n');
  }
  if (action.sends_ahead) out.put("SONAR ").number(action.ahead).put('\n');
}

// Where a lane stands.
struct LaneRow {
  u64 seed;
  i32 level, round;
  u32 dragon;  // that must act
  u8 waiting, team, over, fault;
  u32 slot;  // of the dragon that must act
  u16 winner, reason;
  i32 dragons[2], total[2], queen[2], longest[2];  // of a match that is over
  u32 deaths[2][kDeaths];
};
static_assert(sizeof(LaneRow) == 104, "rows have no hidden bytes");

}  // namespace sparring::loong
