// What dragons know, under the sanitizers: a memory in a lane and one that is fed by text are the same, nothing that a
// dragon was not told reaches its inputs, and a lane without room for memories has a fault.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "check.h"
#include "loong/knowing.h"
#include "loong/lone.h"
#include "loong/text.h"
#include "sketch.h"

namespace {

using namespace sparring;
using namespace sparring::loong;

using Random = std::mt19937_64;

u32 below(Random& random, u32 limit) { return static_cast<u32>(random() % limit); }

// A lane of its own with what its dragons know.
struct Stage {
  std::vector<u64> level_memory;
  const Level* level;
  Layout layout;
  std::vector<u64> lane_memory, known;
  LaneRow row{};
  View view{};
  Batch batch;
  Knowing knowing;

  Stage(const std::vector<u64>& level_bytes, u32 pages, Mirroring mirroring)
      : level_memory(level_bytes),
        level(reinterpret_cast<const Level*>(level_memory.data())),
        layout(Layout::of(full_room(*level))),
        lane_memory(layout.bytes / 8),
        batch{1, layout, reinterpret_cast<u8*>(lane_memory.data()), &level, &row, &view} {
    const MemoryLayout memories = pages == 0 ? MemoryLayout::of(level->cells, level->most_alive)
                                             : MemoryLayout::with_pages(level->cells, level->most_alive, pages);
    known.resize(memories.bytes / 8);
    knowing = Knowing{memories, reinterpret_cast<u8*>(known.data()), 7, mirroring};
  }
  Stage(const Stage&) = delete;

  Lane lane() const { return batch.lane(0); }
  Memory memory() const { return knowing.of(batch, 0).of(lane().match.acting); }
};

struct Seen {
  InputsRow inputs;
  MaskRow mask;

  explicit Seen(const Stage& stage) : inputs{}, mask{} { observe_in(stage.batch, stage.knowing, 0, inputs, mask); }
  bool operator==(const Seen& other) const { return std::memcmp(this, &other, sizeof *this) == 0; }
};

i64 random_choice(Random& random, const Seen& seen) {
  Choice choice{};
  choice.role = seen.mask.role_due != 0 ? below(random, kRoles) : seen.mask.held;
  choice.claim = below(random, kNoClaim + 1);
  const u32 wish = below(random, 12);
  std::vector<u32> ways;
  const auto reach = [&](u32 row, u32 column) { return seen.inputs.crop[row][column][crop::kReach] != 0; };
  if (reach(6, 7)) ways.push_back(kForward);
  if (reach(7, 6)) ways.push_back(kLeft);
  if (reach(7, 8)) ways.push_back(kRight);
  if (ways.empty()) ways = {kForward, kLeft, kRight};
  if (wish == 0 && seen.mask.kinds[kChooseSplit] != 0) {
    choice.kind = kChooseSplit;
    choice.segments =
        kLeastSegments + below(random, static_cast<u32>(std::count(seen.mask.sizes, seen.mask.sizes + kSplitSizes, 1)));
  } else if (wish == 1 && seen.mask.kinds[kChooseSprint] != 0) {
    choice.kind = kChooseSprint;
    choice.step_count = 2 + below(random, seen.mask.payable - 1u);
    for (u32 i = 0; i < choice.step_count; ++i) choice.steps[i] = static_cast<u8>(below(random, 3));
    choice.steps[0] = static_cast<u8>(ways[below(random, static_cast<u32>(ways.size()))]);
  } else {
    choice.direction = ways[below(random, static_cast<u32>(ways.size()))];
  }
  return pack(choice);
}

void a_memory_fed_by_text_is_that_of_the_lane() {
  u64 turns = 0, deaths = 0, segments = 0, inexact = 0;
  for (const int side : {7, 9, 16, 21}) {
    Stage stage(meadow(side).level(), 0, Mirroring::kOff);
    Random random(static_cast<u64>(side));
    for (u64 seed = 0; seed < 6; ++seed) {
      start_knowing(stage.batch, stage.knowing, 0, 0, seed);
      std::map<u32, std::vector<u64>> alone;
      for (int turn = 0; turn < 250 && stage.row.waiting != 0; ++turn, ++turns) {
        const Seen seen(stage);
        CHECK(seen == Seen(stage));  // taken in once
        const Lane lane = stage.lane();
        const Memory memory = stage.memory();
        const Identity who = identity_of(lane, lane.dragons[lane.match.acting]);
        std::vector<u8> text(1 << 14);
        Out out{text.data(), text.size(), 0};
        write_block(lane, lane.match.acting, out);
        View told;
        CHECK(read_block(text.data(), out.size, who, told));
        std::vector<u64>& block = alone[who.id];
        if (block.empty()) {
          block.resize(Lone::bytes(lane.level.cells) / 8);
          Lone::begin(block.data(), who);
        }
        Lone lone = Lone::at(block.data());
        lone.take_in(told, packet_key(who, stage.knowing.build));
        CHECK(std::memcmp(&lone.memory.life, &memory.life, sizeof(Life)) == 0);
        for (u32 tile = 0; tile < lane.level.cells; ++tile) {
          CHECK(lone.memory.sight(tile) == memory.sight(tile) && lone.memory.note(tile) == memory.note(tile));
          CHECK(lone.memory.spawns(tile) == memory.spawns(tile));
          for (u32 d = 0; d < 4; ++d) {
            const KnownSide one = memory.side(tile, d), other = lone.memory.side(tile, d);
            CHECK(one.side == other.side && one.inferred == other.inferred);
            CHECK(memory.neighbour(tile, d) == lone.memory.neighbour(tile, d));
            if (one.side == Side::kUnknownSide || one.inferred) continue;
            CHECK((one.side == Side::kKelpSide) == lane.tiles[tile].blocked(d));
            CHECK((one.side == Side::kPortalSide) == lane.tiles[tile].portal(d));
            CHECK(memory.neighbour(tile, d) == kNone || memory.neighbour(tile, d) == lane.ahead(tile, d));
          }
        }
        // The own body is where it is remembered, and clears in its order; but for what a sprint left out of sight.
        const Dragon& dragon = lane.dragons[lane.match.acting];
        if (memory.life.decisions > 8 && dragon.length < 8) {
          for (u32 i = 0, cell = dragon.tail; i < dragon.length; ++i, cell = lane.cells[cell].next) {
            const u32 clears = memory.own_clears(lane.tile_of(cell));
            inexact += clears != i + 1;
            ++segments;
          }
        }
        InputsRow inputs;
        observe(lone.memory, who, told, inputs);
        CHECK(std::memcmp(&inputs, &seen.inputs, sizeof inputs) == 0);
        for (const u8* byte = &inputs.crop[0][0][0]; byte != &inputs.crop[0][0][0] + sizeof inputs; ++byte) {
          CHECK(*byte <= 127);
        }
        const i64 choice = random_choice(random, seen);
        ActionRow action;
        choose(lone.memory, choice, packet_key(who, stage.knowing.build), action);
        if (action.kind == Kind::kMove) remember_steps(lone.memory.life, action.step_count);
        const u32 before = lane.match.alive;
        act_packed_in(stage.batch, stage.knowing, 0, choice);
        deaths += lane.match.alive < before;
      }
      CHECK(stage.row.fault == 0);
      // Every page that was taken is held by a living dragon or free.
      const Memories memories = stage.knowing.of(stage.batch, 0);
      u32 pages = 0;
      for (u32 i = 0; i < stage.lane().match.alive; ++i) {
        const Memory memory = memories.of(stage.lane().order[i]);
        for (u32 at = 0; at < memory.table_size(); ++at) pages += memory.table[at] != 0;
      }
      for (u32 at = memories.pool.free; at != 0; at = memories.pages[at].sight[0]) ++pages;
      CHECK(pages == memories.pool.fresh && memories.pool.refused == 0);
    }
  }
  CHECK(turns > 1500 && deaths > 10 && segments > 3000 && inexact < segments / 100);
}

// Makes everything of the state anew that the dragon that must act is not told and never was.
void poison(const Stage& from, Stage& to, Random& random) {
  const Lane lane = from.lane();
  const Memory memory = from.memory();
  const u32 acting = lane.match.acting, cells = lane.level.cells;
  const Window window = Window::around(lane.level, lane.head_tile(lane.dragons[acting]));
  std::vector<bool> told(cells), known(cells);
  for (u32 place = 0; place < kWindowTiles; ++place) told[window.tile(place)] = true;
  for (u32 tile = 0; tile < cells; ++tile) known[tile] = told[tile] || memory.seen(tile);
  std::vector<u32> exits[4];  // of unseen portals
  for (u32 tile = 0; tile < cells; ++tile) {
    for (u32 d = 0; d < 4; ++d) {
      if (!known[tile] && !known[memory.beside(tile, opposite(d))]) exits[d].push_back(tile);
    }
  }

  to.level_memory = from.level_memory;
  to.lane_memory = from.lane_memory;
  to.known = from.known;
  to.row = from.row;
  Level& level = *reinterpret_cast<Level*>(to.level_memory.data());
  Tile* tiles = const_cast<Tile*>(level.tiles());
  i32* edges = const_cast<i32*>(level.edges());
  for (u32 tile = 0; tile < cells; ++tile) {
    for (u32 d = 0; d < 4; ++d) {
      if (known[tile] && !lane.tiles[tile].portal(d)) continue;
      const u32 exit = lane.tiles[tile].ahead[d];
      if (known[tile] && (known[exit] || known[memory.beside(exit, opposite(d))])) continue;
      if (!exits[d].empty())
        tiles[tile].ahead[d] = static_cast<u16>(exits[d][below(random, static_cast<u32>(exits[d].size()))]);
    }
    if (!known[tile]) {
      tiles[tile].kelp = static_cast<u8>(below(random, 16));
      tiles[tile].portals = static_cast<u8>(below(random, 32));
      tiles[tile].group = static_cast<u16>(below(random, level.groups));
    }
    for (const u32 d : {kNorth, kWest}) {
      if (!known[tile] && !known[memory.beside(tile, d)])
        edges[edge_of(level, tile, d)] = static_cast<i32>(below(random, 9)) - 2;
    }
  }
  Lane other = to.lane();
  std::vector<bool> group_told(level.groups);
  for (u32 tile = 0; tile < cells; ++tile) {
    if (told[tile] && lane.tiles[tile].spawns()) group_told[lane.tiles[tile].group] = true;
    if (!told[tile]) other.cells[tile].holds = static_cast<u16>(random());
  }
  for (u32 group = 0; group < level.groups; ++group) {
    if (!group_told[group]) other.due[group] = static_cast<u32>(lane.match.round) + 1 + below(random, 50);
  }
  for (u32 i = 0; i < kTwisterWords; ++i) other.twister[i] = random();
  for (u32 slot = 0; slot < lane.layout.room.dragons; ++slot) {
    Dragon& dragon = other.dragons[slot];
    const Dragon was = dragon;
    dragon.tail = static_cast<u16>(below(random, cells));
    if (slot == acting) continue;
    dragon.length = below(random, 100);
    dragon.wide = static_cast<u8>(below(random, 2));
    if (!told[was.head]) {
      dragon.facing = static_cast<u8>(below(random, 4));
      while (told[dragon.head]) dragon.head = static_cast<u16>(below(random, cells));
    }
    bool visible = false;
    for (u32 tile = 0; tile < cells; ++tile) visible = visible || (told[tile] && lane.cells[tile].slot() == slot);
    if (!visible) dragon.id = static_cast<u32>(random());
    if (!visible) dragon.team = static_cast<u8>(below(random, 2));
    Life& life = to.knowing.of(to.batch, 0).lives[slot];
    for (u64 i = 0; i < sizeof life; ++i) reinterpret_cast<u8*>(&life)[i] = static_cast<u8>(random());
  }
  other.match.seed = random();
  other.match.next_id = below(random, 1000);
  other.match.team_alive[1 - lane.dragons[acting].team] = below(random, 30);
  const Memories memories = to.knowing.of(to.batch, 0);
  const u16* const own = memory.table;
  for (u32 page = 1; page <= memories.pool.fresh; ++page) {
    if (std::find(own, own + memory.table_size(), page) != own + memory.table_size()) continue;
    // But for the first word: that of a free page names the next.
    u8* const bytes = reinterpret_cast<u8*>(memories.pages + page);
    for (u64 i = sizeof(u32); i < sizeof(Page); ++i) bytes[i] = static_cast<u8>(random());
  }
}

void what_a_dragon_was_not_told_reaches_no_byte_of_its_inputs() {
  u64 turns = 0;
  for (const int side : {11, 16, 24}) {
    const std::vector<u64> level = meadow(side).level();
    Stage stage(level, 0, Mirroring::kCoin), poisoned(level, 0, Mirroring::kCoin);
    Random random(static_cast<u64>(side));
    for (u64 seed = 0; seed < 5; ++seed) {
      start_knowing(stage.batch, stage.knowing, 0, 0, seed);
      for (int turn = 0; turn < 150 && stage.row.waiting != 0; ++turn, ++turns) {
        // Before the dragon takes in this turn: what it remembers is what it knew.
        poison(stage, poisoned, random);
        const Seen seen(stage), blind(poisoned);
        CHECK(seen == blind);
        act_packed_in(stage.batch, stage.knowing, 0, random_choice(random, seen));
      }
    }
  }
  CHECK(turns > 800);
}

void a_lane_without_room_for_memories_has_a_fault() {
  for (const u32 pages : {1u, 3u, 9u}) {
    Stage stage(meadow(24).level(), pages, Mirroring::kCoin);
    Random random(pages);
    start_knowing(stage.batch, stage.knowing, 0, 0, 3);
    int turns = 0;
    for (; turns < 2000 && stage.row.waiting != 0; ++turns) {
      act_packed_in(stage.batch, stage.knowing, 0, random_choice(random, Seen(stage)));
    }
    CHECK(stage.row.fault == static_cast<u8>(Fault::kTooMuchKnown) && stage.row.over == 0);
    CHECK((turns == 1) == (pages == 1));
    start_knowing(stage.batch, stage.knowing, 0, 0, 4);  // the next match is sound again
    CHECK(stage.row.fault == 0 && stage.row.waiting == 1);
  }
}

void the_largest_board_fits_a_static_block() {
  alignas(8) static u8 block[Lone::bytes(65536)];
  CHECK(sizeof block < 4u << 20);
  const Identity who{5, 1, 256, 256, 64};
  Lone::begin(block, who);
  Lone lone = Lone::at(block);
  View view{};
  view.length = 3;
  for (i32 round = 0; round < 500; ++round) {  // the portals' ends lie on all sides of the rim
    view.round = round;
    view.x = round % 32 * 8;
    view.y = round / 32 * 16;
    for (u32 i = 0; i < kWindowTiles; ++i) view.id[i] = kNone;
    for (u32 i = 0; i < kWindowEdges; ++i)
      view.north[i] = view.west[i] = i % 3 == 0 ? round * 50 + static_cast<i32>(i) : kKelp;
    lone.take_in(view, 1);
  }
  InputsRow inputs;
  observe(lone.memory, who, view, inputs);
  CHECK(lone.memory.pool.refused == 0 && lone.memory.life.known > 15000);
}

void packets_are_understood_by_the_team_alone() {
  Random random(1);
  const Identity who{4, 0, 32, 20, 8};
  u64 read = 0;
  for (int i = 0; i < 20000; ++i) {
    Packet packet{};
    packet.round = below(random, 4);
    packet.id = below(random, 1024);
    packet.x = below(random, 32);
    packet.y = below(random, 20);
    packet.length = below(random, 128);
    packet.role = below(random, 8);
    packet.claim = below(random, kNoClaim + 1);
    packet.queen = below(random, 2);
    packet.enemy = below(random, 2);
    packet.place = below(random, 2) != 0 ? below(random, kWindowTiles) : kNoReport;
    const u64 message = encode(packet, packet_key(who, 1));
    Packet found{};
    for (i32 round = 8; round < 12; ++round) {
      const bool fresh = ((static_cast<u32>(round) - packet.round) & 3) <= 1;
      CHECK(decode(message, packet_key(who, 1), who, round, found) == fresh);
      CHECK(std::memcmp(&found, &packet, sizeof packet) == 0);
    }
    for (const Identity& foreign : {Identity{4, 1, 32, 20, 8}, Identity{4, 0, 20, 32, 8}, Identity{4, 0, 32, 20, 9}}) {
      read += decode(message, packet_key(foreign, 1), who, static_cast<i32>(packet.round), found);
    }
    read += decode(message, packet_key(who, 2), who, static_cast<i32>(packet.round), found);
    read += decode(random(), packet_key(who, 1), who, 8, found);
    read += decode(message ^ 1ull << below(random, 64), packet_key(who, 1), who, static_cast<i32>(packet.round), found);
  }
  CHECK(read < 6 * 20000 / 4096 * 2);  // one in 4,096 by chance
}

}  // namespace

int main() {
  a_memory_fed_by_text_is_that_of_the_lane();
  what_a_dragon_was_not_told_reaches_no_byte_of_its_inputs();
  a_lane_without_room_for_memories_has_a_fault();
  the_largest_board_fits_a_static_block();
  packets_are_understood_by_the_team_alone();
  return verdict("knowledge");
}
