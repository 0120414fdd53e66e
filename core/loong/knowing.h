// What the dragons of a batch know: their memories, kept beside the lanes, and what is done to those of one lane.
#pragma once

#include "../common/rng.h"
#include "batch.h"
#include "observe.h"

namespace sparring::loong {

enum class Mirroring : u32 { kOff, kCoin, kAll };

// All arrays lie in the memory of the machine that plays.
struct Knowing {
  MemoryLayout layout;
  u8* memory;           // [lanes, layout.bytes], all 0 before the first match
  u64 build;            // whose packets are understood
  Mirroring mirroring;  // kCoin: half of all lives see the world mirrored

  SPARRING_FN Memories of(const Batch& batch, u64 index, i32 level) const {
    return Memories::at(memory + index * layout.bytes, layout, *batch.levels[static_cast<u64>(level)]);
  }
  SPARRING_FN Memories of(const Batch& batch, u64 index) const { return of(batch, index, batch.rows[index].level); }
};

// Hears who appears and who dies, and begins and ends memories.
struct Lives : Silence {
  Memories memories;
  const Dragon* dragons;  // of the lane
  u64 match_seed;
  Mirroring mirroring;

  static constexpr u64 kStream = 0x6D6972726F72;  // no other draws from the seed of a match share it

  SPARRING_FN Lives(const Memories& of, const Dragon* in_lane, u64 seed, Mirroring mirrored)
      : memories(of), dragons(in_lane), match_seed(seed), mirroring(mirrored) {}

  SPARRING_FN u32 slot(const Dragon& dragon) const { return static_cast<u32>(&dragon - dragons); }

  SPARRING_FN void appears(const Dragon& dragon) {
    const u32 coin = philox(stream_key(match_seed, kStream), dragon.id, 0, 0, 0).word[0] & 1;
    memories.of(slot(dragon)).begin(dragon.id, mirroring == Mirroring::kCoin ? coin : mirroring == Mirroring::kAll);
  }
  SPARRING_FN void dies(const Dragon& dragon, Death, i32) { memories.of(slot(dragon)).forget(); }
};

SPARRING_FN void start_knowing(const Batch& batch, const Knowing& knowing, u64 index, i32 level, u64 seed) {
  Memories memories = knowing.of(batch, index, level);
  memories.restart();
  batch.rows[index].level = level;
  Lives lives(memories, batch.lane(index).dragons, seed, knowing.mirroring);
  start(batch, index, level, seed, lives);
}

// The dragon that must act takes in what it is told, unless it has in this turn. False: nobody waits.
SPARRING_FN bool know_in(const Batch& batch, const Knowing& knowing, u64 index) {
  if (batch.rows[index].waiting == 0) return false;
  const Lane lane = batch.lane(index);
  const u32 slot = lane.match.acting;
  Memory memory = knowing.of(batch, index).of(slot);
  if (memory.life.seen_at == lane.match.round + 1) return true;
  look_in(batch, index);
  const Identity who = identity_of(lane, lane.dragons[slot]);
  remember(memory, who, batch.views[index], packet_key(who, knowing.build));
  return true;
}

SPARRING_FN void observe_in(const Batch& batch, const Knowing& knowing, u64 index, InputsRow& inputs, MaskRow& mask) {
  if (batch.rows[index].waiting == 0) return;
  look_in(batch, index);
  const Lane lane = batch.lane(index);
  Memory memory = knowing.of(batch, index).of(lane.match.acting);
  const Identity who = identity_of(lane, lane.dragons[lane.match.acting]);
  const View& view = batch.views[index];
  remember(memory, who, view, packet_key(who, knowing.build));
  observe(memory, who, view, inputs);
  fill_mask(memory.life, who, view, mask);
}

// The turn of the dragon that must act. Where memory ran out the lane has a fault.
SPARRING_FN void apply_knowing(Lane& lane, const Memories& memories, Mirroring mirroring, const Action& action) {
  if (action.kind == Kind::kMove) remember_steps(memories.lives[lane.match.acting], action.step_count);
  if (memories.pool.refused != 0) lane.match.fault = Fault::kTooMuchKnown;
  Lives lives(memories, lane.dragons, lane.match.seed, mirroring);
  apply(lane, action, lives);
}

// Carries out an action, of a policy or not, in a lane that waits.
SPARRING_FN void act_knowing(const Batch& batch, const Knowing& knowing, u64 index, const ActionRow& action) {
  if (batch.rows[index].waiting == 0) return;
  Lane lane = batch.lane(index);
  if (action.valid()) {
    apply_knowing(lane, knowing.of(batch, index), knowing.mirroring, action.action());
  } else {
    lane.match.acting = kNone;
    lane.match.fault = Fault::kNoAction;
  }
  go_on(batch, index);
}

// Is it a choice that the dragon that must act can make? It has taken in this turn.
SPARRING_FN bool choosable_in(const Batch& batch, const Knowing& knowing, u64 index, i64 packed) {
  return batch.rows[index].waiting == 0 ||
         choosable(knowing.of(batch, index).lives[batch.lane(index).match.acting], packed);
}

// Acts by a choosable choice, in a turn that was taken in.
SPARRING_FN void act_packed_in(const Batch& batch, const Knowing& knowing, u64 index, i64 packed) {
  if (batch.rows[index].waiting == 0) return;
  const Lane lane = batch.lane(index);
  Memory memory = knowing.of(batch, index).of(lane.match.acting);
  const Identity who = identity_of(lane, lane.dragons[lane.match.acting]);
  ActionRow action;
  choose(memory, packed, packet_key(who, knowing.build), action);
  act_knowing(batch, knowing, index, action);
}

// What a dragon in a slot knows that lives when its match is over.
SPARRING_FN void know_at_end_in(const Batch& batch, const Knowing& knowing, u64 index, u32 slot, InputsRow& inputs) {
  const Lane lane = batch.lane(index);
  const Identity who = identity_of(lane, lane.dragons[slot]);
  Memory memory = knowing.of(batch, index).of(slot);
  View view;
  look(lane, slot, view);
  remember(memory, who, view, packet_key(who, knowing.build));
  observe(memory, who, view, inputs);
}

}  // namespace sparring::loong
