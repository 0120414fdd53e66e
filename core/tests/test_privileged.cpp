// What a critic is told, under the sanitizers: it stays in its arrays, on boards that are smaller than the crop too,
// and all bytes are small.
#include <vector>

#include "check.h"
#include "loong/batch.h"
#include "loong/privileged.h"
#include "sketch.h"

namespace {

using namespace sparring;
using namespace sparring::loong;

bool all_small(const std::vector<u8>& bytes) {
  for (const u8 byte : bytes) {
    if (byte > table::kFull) return false;
  }
  return true;
}

void check_lane(const Lane& lane) {
  const privileged::Teams teams = privileged::Teams::of(lane);
  for (u32 i = 0; i < lane.match.alive; ++i) {
    std::vector<u8> crop(privileged::kCropBytes), scalars(privileged::kDragonScalars);
    privileged::fill_crop(lane, lane.order[i], i & 1, crop.data());
    privileged::fill_dragon(lane, teams, lane.order[i], scalars.data());
    constexpr u32 middle = (kCropSide * kCropSide / 2) * privileged::kCropPlanes;
    CHECK(crop[middle + privileged::crop::kSelf] == table::kFull);
    CHECK(all_small(crop) && all_small(scalars));
  }
  const privileged::Blocks blocks(lane);
  for (u32 team = 0; team < 2; ++team) {
    std::vector<u8> board(privileged::kBoardBytes), scalars(privileged::kTeamScalars);
    blocks.fill_board(team, board.data());
    blocks.fill_team(lane, teams, team, scalars.data());
    CHECK(all_small(board) && all_small(scalars));
  }
}

void play(const std::vector<u64>& level_bytes) {
  const Level* const level = reinterpret_cast<const Level*>(level_bytes.data());
  const Layout layout = Layout::of(full_room(*level));
  std::vector<u64> memory(layout.bytes / sizeof(u64));
  LaneRow row{};
  View view{};
  const Batch batch{1, layout, reinterpret_cast<u8*>(memory.data()), &level, &row, &view};
  const Script scripts[2] = {Script::kSplitter, Script::kReckless};
  start(batch, 0, 0, 5);
  for (u32 turns = 0; row.waiting != 0 && turns < 400; ++turns) {
    if (turns % 5 == 0) check_lane(batch.lane(0));
    ActionRow action;
    decide_in(batch, 0, scripts, 3, action);
    act(batch, 0, action);
  }
  check_lane(batch.lane(0));
}

}  // namespace

int main() {
  for (const int side : {7, 9, 16, 33}) play(meadow(side).level());
  play(Sketch{256, 7, {}}.tile(3, 3, 1, 9000).dragon(0, 2, "0 0 255 0").dragon(1, 3, "9 6 9 0 9 1").level());
  return verdict("privileged");
}
