// The scripted players, orders and batches: what a View tells is enough, nothing depends on the order of lanes, and
// each player does what it is for.
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "loong/batch.h"
#include "loong/text.h"
#include "sketch.h"

namespace {

using namespace sparring;
using namespace sparring::loong;

std::string reply_of(const ActionRow& row) {
  u8 text[256];
  Out out{text, sizeof text, 0};
  write_reply(row.action(), out);
  return std::string(reinterpret_cast<char*>(text), out.size);
}

// Many matches on one level, as a caller holds them.
struct Matches {
  std::vector<u64> level_memory;
  const Level* level;
  std::vector<u64> memory;
  std::vector<LaneRow> rows;
  std::vector<View> views;
  std::vector<ActionRow> actions;
  Script scripts[2];
  Batch batch;

  Matches(const Sketch& sketch, u64 lanes, Script a, Script b)
      : level_memory(sketch.level()),
        level(reinterpret_cast<const Level*>(level_memory.data())),
        rows(lanes),
        views(lanes),
        actions(lanes),
        scripts{a, b} {
    const Layout layout = Layout::of(full_room(*level));
    memory.resize(lanes * layout.bytes / sizeof(u64));
    batch = Batch{lanes, layout, reinterpret_cast<u8*>(memory.data()), &level, rows.data(), views.data()};
  }
  Matches(const Matches&) = delete;

  void start(u64 index, u64 seed) { sparring::loong::start(batch, index, 0, seed); }
  void decide(u64 index, u64 seed = 1) { decide_in(batch, index, scripts, seed, actions[index]); }
  void act(u64 index) { sparring::loong::act(batch, index, actions[index]); }
  void step(u64 index, u32 direction) {
    actions[index] = ActionRow{};
    actions[index].step(direction);
    act(index);
  }
  std::string reply(u64 index) const { return reply_of(actions[index]); }

  // Plays a lane until its match is over. Returns the turns.
  int finish(u64 index) {
    int turns = 0;
    for (; rows[index].waiting != 0; ++turns) {
      decide(index);
      CHECK(actions[index].valid());
      act(index);
    }
    return turns;
  }
};

// What happens to whom.
struct Deaths : Silence {
  int of[2][5] = {};
  int queens = 0;
  void dies(const Dragon& dragon, Death why, i32) {
    ++of[dragon.team][static_cast<int>(why)];
    queens += dragon.id < 2;
  }
};

Deaths deaths_of(const Sketch& sketch, Script a, Script b, u64 matches) {
  Matches lanes(sketch, 1, a, b);
  Deaths deaths;
  for (u64 seed = 0; seed < matches; ++seed) {
    lanes.start(0, seed);
    Lane lane = lanes.batch.lane(0);
    do {
      lanes.decide(0);
      apply(lane, lanes.actions[0].action(), deaths);
      go_on(lanes.batch, 0);
    } while (lanes.rows[0].waiting != 0);
  }
  return deaths;
}

// What the first dragon that acts replies.
std::string first_reply(const Sketch& sketch, Script script) {
  Matches lanes(sketch, 1, script, Script::kLegal);
  lanes.start(0, 7);
  lanes.decide(0);
  return lanes.reply(0);
}

void sets_of_tiles_move_as_tiles_do() {
  CHECK(count(0) == 0 && count((1ull << kWindowTiles) - 1) == kWindowTiles && count(0x8000000000000001ull) == 2);
  for (u32 d = 0; d < 4; ++d) {
    CHECK(count(side(d)) == 21);
    CHECK((side(d) & side(opposite(d))) == 0 && (side(d) >> kWindowCentre & 1) == 0);
    const Tiles next = shifted(1ull << kWindowCentre, d);
    CHECK((next & side(d)) == next && shifted(next, opposite(d)) == 1ull << kWindowCentre);
  }
}

// What a bot reads in the judge's text leads to the same action as the state itself, and a reply says all of an action.
void text_is_enough() {
  for (u32 script = 0; script < kScripts; ++script) {
    Matches lanes(meadow(13), 1, static_cast<Script>(script), Script::kReckless);
    lanes.start(0, script);
    std::vector<u8> block(1 << 16), steps(1 << 12);
    for (int turn = 0; turn < 3000 && lanes.rows[0].waiting != 0; ++turn) {
      const Lane lane = lanes.batch.lane(0);
      Out out{block.data(), block.size(), 0};
      write_block(lane, lane.match.acting, out);
      View told{};
      const Identity who = identity_of(lane, lane.dragons[lane.match.acting]);
      CHECK(read_block(block.data(), out.size, who, told));
      const Glance near = Glance::of(lane, lane.match.acting), read_near = Glance::of(told);
      CHECK(std::memcmp(&near, &read_near, sizeof near) == 0);
      Draws draws = Draws::of(1, lane.match.seed, who.id, told.round);
      ActionRow action;
      decide(lanes.scripts[who.team], who, told, draws, action);
      lanes.decide(0);
      CHECK(std::memcmp(&action, &lanes.actions[0], sizeof action) == 0);

      const std::string reply = reply_of(action);
      NoNotes notes;
      const Action read = read_reply(reinterpret_cast<const u8*>(reply.data()), reply.size(), steps.data(), notes);
      const Action meant = action.action();
      CHECK(read.kind == meant.kind && read.step_count == meant.step_count && read.split == meant.split);
      CHECK(meant.step_count == 0 || std::memcmp(read.steps, meant.steps, meant.step_count) == 0);
      CHECK(read.aimed_directions == meant.aimed_directions && read.sends_ahead == meant.sends_ahead);
      for (u32 d = 0; d < 4; ++d) CHECK((meant.aimed_directions >> d & 1) == 0 || read.aimed[d] == meant.aimed[d]);
      CHECK(read.ahead == meant.ahead && read.sets_protocol == meant.sets_protocol && read.protocol == meant.protocol);
      lanes.act(0);
    }
  }
}

// Played side by side, one after another or backwards: the same bytes.
void the_order_of_lanes_does_not_matter() {
  const u64 lanes = 6;
  Matches together(meadow(11), lanes, Script::kHunter, Script::kSplitter);
  Matches apart(meadow(11), lanes, Script::kHunter, Script::kSplitter);
  for (u64 i = 0; i < lanes; ++i) together.start(i, 100 + i);
  for (bool any = true; any;) {
    any = false;
    for (u64 i = 0; i < lanes; ++i) {
      together.decide(i);
      together.act(i);
      any |= together.rows[i].waiting != 0;
    }
  }
  for (u64 i = lanes; i-- > 0;) {
    apart.start(i, 100 + i);
    CHECK(apart.finish(i) > 50);
  }
  CHECK(together.memory == apart.memory);
  CHECK(std::memcmp(together.rows.data(), apart.rows.data(), lanes * sizeof(LaneRow)) == 0);
  CHECK(std::memcmp(together.rows[0].dragons, together.rows[1].dragons, 8 * sizeof(i32)) !=
        0);  // other seeds, other matches

  apart.start(0, 104);  // a lane that was used before
  apart.finish(0);
  const u64 words = apart.batch.layout.bytes / sizeof(u64);
  CHECK(std::memcmp(apart.memory.data(), apart.memory.data() + 4 * words, words * sizeof(u64)) == 0);
}

void draws_depend_on_all_of_their_key() {
  const auto first = [](u64 seed, u64 match, u32 dragon, i32 round) {
    return Draws::of(seed, match, dragon, round).word();
  };
  const u32 base = first(1, 2, 3, 4);
  CHECK(base == first(1, 2, 3, 4));
  CHECK(base != first(0, 2, 3, 4) && base != first(1, 0, 3, 4) && base != first(1, 2, 0, 4) &&
        base != first(1, 2, 3, 0));
  Draws draws = Draws::of(1, 2, 3, 4);
  u32 seen[12];
  for (u32& word : seen) word = draws.word();
  for (u32 i = 0; i < 12; ++i) {
    for (u32 j = 0; j < i; ++j) CHECK(seen[i] != seen[j]);
  }
  const auto held = [](i32 round) { return Draws::of(1, 2, 3, round).held(10); };
  CHECK(held(20) == held(29) && held(29) != held(30));
}

void legal_players_break_no_rule_and_reckless_ones_die_of_everything() {
  const Deaths deaths = deaths_of(meadow(12), Script::kLegal, Script::kReckless, 300);
  CHECK(deaths.of[0][static_cast<int>(Death::kNoAction)] == 0);
  for (const int count : deaths.of[1]) CHECK(count > 0);
}

void a_forager_takes_the_nearest_pearl() {
  Sketch sketch{15, 15, {}};
  sketch.dragon(0, 2, "7 7 7 8").dragon(1, 2, "0 0 1 0");
  CHECK(first_reply(Sketch(sketch).tile(8, 7, 1, 1), Script::kForager) == "MOVE E\n");
  CHECK(first_reply(Sketch(sketch).tile(6, 7, 1, 1), Script::kForager) == "MOVE W\n");
  CHECK(first_reply(Sketch(sketch).tile(10, 7, 1, 1).tile(7, 5, 1, 1), Script::kForager) == "MOVE N\n");
  const Sketch behind_kelp = Sketch(sketch).tile(6, 7, 1, 1).west(7, 7).north(7, 7);
  CHECK(first_reply(behind_kelp, Script::kForager) == "MOVE E\n");
}

void a_forager_leaves_pearls_to_its_queen_and_in_dead_ends() {
  // The third dragon acts last; by then the queen of A is one step from the pearl, too.
  Sketch sketch{15, 15, {}};
  sketch.tile(7, 5, 1, 1).dragon(0, 2, "6 4 5 4").dragon(1, 2, "0 0 1 0").dragon(0, 2, "8 5 9 5");
  Matches lanes(sketch, 1, Script::kForager, Script::kLegal);
  lanes.start(0, 3);
  lanes.step(0, kEast);
  lanes.step(0, kSouth);
  CHECK(lanes.rows[0].dragon == 2);
  int takes = 0;  // a step that way may have other reasons, but not always
  for (u64 seed = 0; seed < 40; ++seed) {
    lanes.decide(0, seed);
    takes += lanes.reply(0) == "MOVE W\n";
  }
  CHECK(takes < 20);

  // The same pearl beside the head, in a pocket of two tiles with one way in.
  Sketch pocket{15, 15, {}};
  pocket.tile(8, 7, 1, 1).dragon(0, 2, "7 7 6 7").dragon(1, 2, "0 0 1 0");
  CHECK(first_reply(pocket, Script::kForager) == "MOVE E\n");
  pocket.north(8, 7).north(9, 7).north(8, 8).north(9, 8).west(10, 7);
  CHECK(first_reply(pocket, Script::kForager) != "MOVE E\n");
}

void long_foragers_use_their_free_steps() {
  Sketch sketch{15, 15, {}};
  sketch.dragon(0, 9, "7 7 7 8 7 9 7 10 7 11 7 12 8 12 9 12 10 12").dragon(1, 2, "0 0 1 0");
  sketch.tile(8, 7, 1, 1).tile(8, 6, 1, 1).tile(9, 6, 1, 1);
  Matches lanes(sketch, 1, Script::kForager, Script::kLegal);
  lanes.start(0, 7);
  lanes.batch.lane(0).match.round = 300;  // queens split no more
  lanes.decide(0);
  CHECK(lanes.reply(0) == "MOVE ENE\n");
}

void hunters_ram_a_queen_that_they_can_reach() {
  // The third dragon is four long: one step is free, two it can pay for. The queen of B is two steps away, or five.
  Sketch sketch{15, 15, {}};
  sketch.dragon(0, 2, "0 0 1 0").dragon(1, 5, "7 5 7 4 7 3 7 2 7 1").dragon(0, 4, "7 8 7 9 7 10 7 11");
  for (const Script script : {Script::kForager, Script::kHunter}) {
    Matches lanes(sketch, 1, script, Script::kLegal);
    for (const bool near : {true, false}) {
      lanes.start(0, 3);
      lanes.step(0, kSouth);
      lanes.actions[0] = ActionRow{};
      for (u32 i = 0; i < (near ? 1u : 2u); ++i) lanes.actions[0].step(near ? kSouth : kEast);
      lanes.act(0);
      CHECK(lanes.rows[0].dragon == 2);
      lanes.decide(0);
      CHECK((lanes.reply(0) == "MOVE NN\n") == (near && script == Script::kHunter));
      CHECK(near || lanes.actions[0].step_count <= 1);
    }
  }
  CHECK(deaths_of(meadow(14), Script::kHunter, Script::kForager, 12).queens > 6);
}

void splitters_split_even_a_short_queen() {
  for (const bool long_queen : {false, true}) {
    Sketch sketch{15, 15, {}};
    const char* body = "7 7 7 8 7 9 7 10 7 11 7 12 7 13 7 14";
    sketch.dragon(0, long_queen ? 8 : 6, long_queen ? body : "7 7 7 8 7 9 7 10 7 11 7 12").dragon(1, 2, "0 0 1 0");
    CHECK(first_reply(sketch, Script::kSplitter) == (long_queen ? "SPLIT 4\n" : "SPLIT 3\n"));
    CHECK((first_reply(sketch, Script::kForager) == "SPLIT 4\n") == long_queen);
  }
}

// The lane stops and says so, whatever the bytes are.
void bytes_that_are_no_action_are_a_fault() {
  Matches lanes(meadow(9), 1, Script::kLegal, Script::kLegal);
  for (int fault = 0; fault < 6; ++fault) {
    lanes.start(0, 1);
    ActionRow action{};
    action.step(kEast);
    CHECK(action.valid());
    if (fault == 0) action.kind = static_cast<Kind>(3);
    if (fault == 1) action.steps[0] = 4;
    if (fault == 2) action.step_count = 0;
    if (fault == 3) action.step_count = ActionRow::kMostSteps + 1;
    if (fault == 4) action.aimed_directions = 16;
    if (fault == 5) action.extras = 4;
    CHECK(!action.valid());
    lanes.actions[0] = action;
    lanes.act(0);
    CHECK(lanes.rows[0].waiting == 0 && lanes.rows[0].over == 0 &&
          lanes.rows[0].fault == static_cast<u8>(Fault::kNoAction));
  }
}

}  // namespace

int main() {
  sets_of_tiles_move_as_tiles_do();
  text_is_enough();
  the_order_of_lanes_does_not_matter();
  draws_depend_on_all_of_their_key();
  legal_players_break_no_rule_and_reckless_ones_die_of_everything();
  a_forager_takes_the_nearest_pearl();
  a_forager_leaves_pearls_to_its_queen_and_in_dead_ends();
  long_foragers_use_their_free_steps();
  hunters_ram_a_queen_that_they_can_reach();
  splitters_split_even_a_short_queen();
  bytes_that_are_no_action_are_a_fault();
  return verdict("scripted");
}
