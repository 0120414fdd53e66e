// What is told of the lanes of a batch to a critic, and to whoever keeps the books. A CPU and a GPU call the same
// functions. `knowing` may be null: then no life is mirrored.
#pragma once

#include "knowing.h"
#include "privileged.h"

namespace sparring::loong {

constexpr u32 kStandingNumbers = 4, kRosterNumbers = 5, kFrameNumbers = 6;

SPARRING_FN u32 mirrored_in(const Batch& batch, const Knowing* knowing, u64 index, u32 slot) {
  return knowing != nullptr ? knowing->of(batch, index).lives[slot].mirrored : 0u;
}

// The truth around the dragon that must act, where one waits.
SPARRING_FN void appraise_in(const Batch& batch, const Knowing* knowing, u64 index, u8* crop, u8* scalars) {
  if (batch.rows[index].waiting == 0) return;
  const Lane lane = batch.lane(index);
  const u32 slot = lane.match.acting;
  privileged::fill_crop(lane, slot, mirrored_in(batch, knowing, index, slot), crop);
  privileged::fill_dragon(lane, privileged::Teams::of(lane), slot, scalars);
}

// Where the rows of the dragons of a lane go that `appraise_all_in` tells of.
struct Appraised {
  i64 *lane, *slot, *dragon, *team;
  u8 *crop, *scalars;
};

// The truth around every dragon that lives in a lane, as if it acted now, by id in the rows from `row` on.
SPARRING_FN void appraise_all_in(const Batch& batch, const Knowing* knowing, u64 index, u64 row, const Appraised& out) {
  const Lane lane = batch.lane(index);
  const privileged::Teams teams = privileged::Teams::of(lane);
  for (u32 place = 0; place < lane.match.alive; ++place, ++row) {
    const u32 slot = lane.order[place];
    out.lane[row] = static_cast<i64>(index);
    out.slot[row] = slot;
    out.dragon[row] = lane.dragons[slot].id;
    out.team[row] = lane.dragons[slot].team;
    privileged::fill_crop(lane, slot, mirrored_in(batch, knowing, index, slot),
                          out.crop + row * privileged::kCropBytes);
    privileged::fill_dragon(lane, teams, slot, out.scalars + row * privileged::kDragonScalars);
  }
}

// Boards [2, kBoardBytes] and scalars [2, kTeamScalars] of both teams. `blocks`: room to work in.
SPARRING_FN void boards_in(const Batch& batch, u64 index, privileged::Blocks& blocks, u8* boards, u8* scalars) {
  const Lane lane = batch.lane(index);
  blocks.count(lane);
  const privileged::Teams teams = privileged::Teams::of(lane);
  for (u32 team = 0; team < 2; ++team) {
    blocks.fill_board(team, boards + team * privileged::kBoardBytes);
    blocks.fill_team(lane, teams, team, scalars + team * privileged::kTeamScalars);
  }
}

// Of both teams as of now, [2, kStandingNumbers]: living dragons, their total length, that of the queen, the longest.
SPARRING_FN void standings_in(const Batch& batch, u64 index, i32* out) {
  const Lane lane = batch.lane(index);
  for (u32 team = 0; team < 2; ++team, out += kStandingNumbers) {
    const Standing now = standing(lane, team);
    out[0] = now.dragons;
    out[1] = now.total;
    out[2] = now.queen;
    out[3] = now.longest;
  }
}

// By slot, [dragons, kRosterNumbers]: the dragon's id, its team, column and row of its head, its length. Rows of slots
// in which none lives are left as they are.
SPARRING_FN void roster_in(const Batch& batch, u64 index, i32* out) {
  const Lane lane = batch.lane(index);
  for (u32 place = 0; place < lane.match.alive; ++place) {
    const u32 slot = lane.order[place];
    const Dragon& dragon = lane.dragons[slot];
    const i32 head = static_cast<i32>(lane.head_tile(dragon));
    i32* const row = out + kRosterNumbers * slot;
    row[0] = static_cast<i32>(dragon.id);
    row[1] = dragon.team;
    row[2] = head % lane.level.width;
    row[3] = head / lane.level.width;
    row[4] = static_cast<i32>(dragon.length);
  }
}

// Of the dragon that must act, where one waits: column and row of its head, its facing, whether its life is mirrored,
// the sides of the board.
SPARRING_FN void frame_in(const Batch& batch, const Knowing* knowing, u64 index, i32* out) {
  if (batch.rows[index].waiting == 0) return;
  const Lane lane = batch.lane(index);
  const u32 slot = lane.match.acting;
  const i32 head = static_cast<i32>(lane.head_tile(lane.dragons[slot]));
  out[0] = head % lane.level.width;
  out[1] = head / lane.level.width;
  out[2] = static_cast<i32>(lane.dragons[slot].facing);
  out[3] = static_cast<i32>(mirrored_in(batch, knowing, index, slot));
  out[4] = lane.level.width;
  out[5] = lane.level.height;
}

}  // namespace sparring::loong
