// The kernels of matches whose dragons remember, and of what a critic is told. One thread has one lane, and calls the
// functions that the CPU calls.
#include "cuda/thread.h"
#include "loong/appraise.h"
#include "loong/players.h"

using namespace sparring;
using namespace sparring::loong;

// Starts matches in `count` lanes, each named once.
extern "C" __global__ void start_knowing_matches(const Batch* batch, const Knowing* knowing, const i64* lanes,
                                                 const i64* levels, const u64* seeds, u64 count) {
  const u64 i = thread_index();
  if (i < count) start_knowing(*batch, *knowing, static_cast<u64>(lanes[i]), static_cast<i32>(levels[i]), seeds[i]);
}

extern "C" __global__ void observe_in_lanes(const Batch* batch, const Knowing* knowing, InputsRow* inputs,
                                            MaskRow* masks) {
  const u64 i = thread_index();
  if (i < batch->lanes) observe_in(*batch, *knowing, i, inputs[i], masks[i]);
}

// In turns that were taken in. Where the choice is -1 the row of `given` is carried out, unless that is null. A number
// that is no choice of its dragon is a fault of the lane.
extern "C" __global__ void act_packed_in_lanes(const Batch* batch, const Knowing* knowing, const i64* choices,
                                               const ActionRow* given) {
  const u64 i = thread_index();
  if (i >= batch->lanes) return;
  if (given != nullptr && choices[i] == -1) {
    act_knowing(*batch, *knowing, i, given[i]);
  } else if (choosable_in(*batch, *knowing, i, choices[i])) {
    act_packed_in(*batch, *knowing, i, choices[i]);
  } else {
    ActionRow none{};
    none.kind = static_cast<Kind>(3);
    act_knowing(*batch, *knowing, i, none);
  }
}

// `players`: those of A and B, by lane. `scratch`: [lanes], or null where no foil plays.
extern "C" __global__ void play_in_lanes(const Batch* batch, const Knowing* knowing, const u8* players, u64 seed,
                                         FoilScratch* scratch) {
  const u64 i = thread_index();
  if (i < batch->lanes) play_in(*batch, knowing, i, players + 2 * i, seed, scratch != nullptr ? scratch + i : nullptr);
}

// What `count` dragons know that live in lanes whose matches are over; those of a lane stand together. One thread has
// them all, since they share its pages.
extern "C" __global__ void know_at_end(const Batch* batch, const Knowing* knowing, const i64* lanes, const i64* slots,
                                       InputsRow* inputs, u64 count) {
  const u64 first = thread_index();
  if (first >= count || (first > 0 && lanes[first - 1] == lanes[first])) return;
  for (u64 i = first; i < count && lanes[i] == lanes[first]; ++i) {
    know_at_end_in(*batch, *knowing, static_cast<u64>(lanes[i]), static_cast<u32>(slots[i]), inputs[i]);
  }
}

// ---- What a critic is told, and whoever keeps the books.

extern "C" __global__ void appraise_in_lanes(const Batch* batch, const Knowing* knowing, u8* crops, u8* scalars) {
  const u64 i = thread_index();
  if (i >= batch->lanes) return;
  appraise_in(*batch, knowing, i, crops + i * privileged::kCropBytes, scalars + i * privileged::kDragonScalars);
}

// Of `count` lanes; lane i writes its rows from `rows[i]` on.
extern "C" __global__ void appraise_all_in_lanes(const Batch* batch, const Knowing* knowing, const i64* lanes,
                                                 const i64* rows, i64* lane, i64* slot, i64* dragon, i64* team,
                                                 u8* crops, u8* scalars, u64 count) {
  const u64 i = thread_index();
  if (i >= count) return;
  appraise_all_in(*batch, knowing, static_cast<u64>(lanes[i]), static_cast<u64>(rows[i]),
                  Appraised{lane, slot, dragon, team, crops, scalars});
}

// Of `count` lanes. `blocks`: [count], room to work in.
extern "C" __global__ void boards_in_lanes(const Batch* batch, const i64* lanes, privileged::Blocks* blocks, u8* boards,
                                           u8* scalars, u64 count) {
  const u64 i = thread_index();
  if (i >= count) return;
  boards_in(*batch, static_cast<u64>(lanes[i]), blocks[i], boards + i * 2 * privileged::kBoardBytes,
            scalars + i * 2 * privileged::kTeamScalars);
}

extern "C" __global__ void standings_in_lanes(const Batch* batch, i32* numbers) {
  const u64 i = thread_index();
  if (i < batch->lanes) standings_in(*batch, i, numbers + i * 2 * kStandingNumbers);
}

// Of `count` lanes. `numbers` holds -1 everywhere.
extern "C" __global__ void roster_in_lanes(const Batch* batch, const i64* lanes, i32* numbers, u64 count) {
  const u64 i = thread_index();
  if (i >= count) return;
  roster_in(*batch, static_cast<u64>(lanes[i]), numbers + i * batch->layout.room.dragons * kRosterNumbers);
}

// `numbers` holds -1 everywhere.
extern "C" __global__ void frames_in_lanes(const Batch* batch, const Knowing* knowing, i32* numbers) {
  const u64 i = thread_index();
  if (i < batch->lanes) frame_in(*batch, knowing, i, numbers + i * kFrameNumbers);
}
