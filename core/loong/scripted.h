// Scripted players: opponents that punish what self-play alone does not, and random ones for tests and benchmarks.
// What they do is a function of one View and of draws keyed by whose decision it is: a bot could play them, and a batch
// may play its lanes in any action.
#pragma once

#include "../common/rng.h"
#include "rows.h"
#include "sight.h"
#include "view.h"

namespace sparring::loong {

enum class Script : u8 {
  kForager,       // careful: gathers, keeps out of reach, lets its queen grow
  kHunter,        // breeds small dragons that follow the enemy's queen and ram her
  kSplitter,      // swarms: splits down to the shortest dragons, trades them for longer ones
  kLegal,         // random, but never breaks a rule and never takes a first step that it sees is fatal
  kReckless,      // random, now and then without any care: it dies of everything
  kNobody = 255,  // somebody else decides
};
constexpr u32 kScripts = 5;
constexpr const char* kScriptNames[kScripts] = {"forager", "hunter", "splitter", "legal", "reckless"};

// Random words of one decision, keyed by who makes it: a dragon of a match decides at most once a round.
struct Draws {
  u64 key;
  u32 dragon, round;
  u32 used;
  Philox block;

  static constexpr u64 kStream = 0x736372697074;  // no other draws from the same seed share it
  static constexpr u32 kWords = 0, kHeld = 1;     // what is drawn

  SPARRING_FN static Draws of(u64 seed, u64 match_seed, u32 dragon, i32 round) {
    return Draws{stream_key(stream_key(seed, kStream), match_seed), dragon, static_cast<u32>(round), 0, Philox{}};
  }

  SPARRING_FN u32 word() {
    if (used % 4 == 0) block = philox(key, kWords, dragon, round, used / 4);
    return block.word[used++ % 4];
  }

  SPARRING_FN u32 below(u32 count) { return static_cast<u32>((static_cast<u64>(word()) * count) >> 32); }
  SPARRING_FN bool chance(u32 percent) { return below(100) < percent; }

  // A word that stays for so many rounds: what a dragon without memory can hold on to.
  SPARRING_FN u32 held(u32 rounds) const { return philox(key, kHeld, dragon, round / rounds, 0).word[0]; }
};

// What tells the thoughtful players apart. Steps are counted along the open tiles of the window.
struct Style {
  i32 split_at;        // splits in half from this length on
  i32 queen_split_at;  // the same for the queen
  i32 split_until;     // in rounds before this one
  i32 queen_split_until;
  i32 tiles_per_unit;  // wants at most one dragon per so many tiles of the board
  i32 trade;           // rams heads of enemies that show at least so many segments more than it has
  bool hunts;          // rams and follows the enemy's queen
  i32 caution;         // does not end a turn so few steps from an enemy's head
  i32 queen_caution;
  i32 feeds_from;  // from this round on dies beside its queen, for her to eat
};

constexpr i32 kNever = 1000;

namespace scripts {

SPARRING_FN Style style_of(Script script) {
  //                                            split queen until queen tiles trade hunts caution queen feeds
  if (script == Script::kForager) return Style{4, 8, 350, 60, 12, kNever, false, 1, 4, 470};
  if (script == Script::kHunter) return Style{4, 8, 400, 60, 10, 2, true, 0, 4, 470};
  return Style{4, 6, 400, 80, 8, 2, false, 0, 4, 440};
}

// What a step is worth.
constexpr i32 kToPearl = 100;   // it starts a shortest way to the nearest pearl
constexpr i32 kToPrey = 150;    // the same to the enemy's queen
constexpr i32 kDanger = 40;     // for each step that the end is too close to an enemy's head
constexpr i32 kWide = 40;       // half a point for each tile that it can reach there, up to so many
constexpr i32 kCramped = 25;    // for each tile that is lacking where it leads
constexpr u32 kBeyond = 6;      // tiles that a way out of the window counts for
constexpr i32 kUnknown = 20;    // through a portal
constexpr i32 kStraight = 6;    // on in the same direction
constexpr i32 kCompass = 14;    // where this dragon is drawn for a while
constexpr i32 kCrowd = 10;      // for each head of its own team on that side
constexpr i32 kPearlAhead = 4;  // for each pearl on that side
constexpr u32 kNoise = 6;

constexpr u32 kHeldRounds = 20;                 // for which the compass stays
constexpr i32 kLeastRoom = 10, kMostRoom = 24;  // tiles that a dragon wants to reach, by its length

// Percent of turns in which the random players do it, if they can.
constexpr u32 kSplits = 10, kSprints = 5, kSends = 5, kCareless = 15;
constexpr u32 kSwitches = 30;  // percent of careless turns in which it changes its protocol

}  // namespace scripts

// ---- The random players.

// What lies right around a head: all that the random players look at.
struct Glance {
  i32 length, units;
  u32 facing;
  u32 shut;  // a bit for each direction in which kelp or a body can be seen

  SPARRING_FN static Glance of(const View& view) {
    Glance glance{view.length, view.units, view.facing, 0};
    constexpr u32 row = kWindow / 2,
                  beside[4] = {kWindowCentre - kWindow, kWindowCentre + 1, kWindowCentre + kWindow, kWindowCentre - 1};
    const i32 edges[4] = {view.north[kWindowCentre], view.west[row * (kWindow + 1) + row + 1],
                          view.north[kWindowCentre + kWindow], view.west[row * (kWindow + 1) + row]};
    for (u32 d = 0; d < 4; ++d) {
      const bool shut = edges[d] == kKelp || (edges[d] == kOpen && view.body[beside[d]] != 0);
      glance.shut |= static_cast<u32>(shut) << d;
    }
    return glance;
  }

  // The same as of the whole View, without making one. Not on maps whose starting bodies visit a tile twice.
  SPARRING_FN static Glance of(const Lane& lane, u32 slot) {
    const Dragon& dragon = lane.dragons[slot];
    Glance glance{static_cast<i32>(dragon.length), static_cast<i32>(lane.match.team_alive[dragon.team]), dragon.facing,
                  0};
    const Tile& here = lane.tiles[lane.head_tile(dragon)];
    for (u32 d = 0; d < 4; ++d) {
      const bool shut = here.blocked(d) || (!here.portal(d) && lane.cells[here.ahead[d]].slot() != kNone);
      glance.shut |= static_cast<u32>(shut) << d;
    }
    return glance;
  }
};

namespace scripts {

SPARRING_FN u32 free_steps(i32 length) { return (static_cast<u32>(length) + 3) / 4; }
SPARRING_FN u32 payable_steps(i32 length) { return free_steps(length) + static_cast<u32>(length) - 2; }
SPARRING_FN u32 at_most(u32 value, u32 most) { return value < most ? value : most; }

SPARRING_FN void play_legal(const Identity& who, const Glance& glance, Draws& draws, ActionRow& action) {
  const bool can_split = glance.length >= 4 && glance.units < who.unit_limit;
  const bool stuck = glance.shut == 15;
  if (can_split && (stuck || draws.chance(kSplits))) {
    action.split_off(2 + draws.below(static_cast<u32>(glance.length) - 3));
  } else if (stuck) {
    action.step(glance.facing);
  } else {
    u32 direction = draws.below(4);
    while ((glance.shut >> direction & 1) != 0) direction = (direction + 1) % 4;
    action.step(direction);
    const u32 payable = at_most(payable_steps(glance.length), ActionRow::kMostSteps);
    if (payable > 1 && draws.chance(kSprints)) {
      for (u32 more = 1 + draws.below(payable - 1); more > 0; --more) {
        direction = (direction + 3 + draws.below(3)) % 4;  // any but back
        action.step(direction);
      }
    }
  }
  if (draws.chance(kSends)) action.send_ahead(draws.word());
}

SPARRING_FN void play_reckless(const Identity& who, const Glance& glance, Draws& draws, ActionRow& action) {
  if (!draws.chance(kCareless)) {
    play_legal(who, glance, draws, action);
    return;
  }
  const u32 kind = draws.below(20);
  if (kind < 13) {
    for (u32 count = 1 + draws.below(draws.chance(70) ? 2 : ActionRow::kMostSteps); count > 0; --count)
      action.step(draws.below(4));
  } else if (kind < 19) {
    action.split_off(draws.below(static_cast<u32>(glance.length) + 2));
  }  // else it dies of doing nothing
  if (draws.chance(kSwitches)) action.set_protocol(static_cast<i32>(1 + draws.below(4)));
  action.aimed_directions = static_cast<u8>(draws.below(16));
  for (u64& value : action.aimed) {
    value = draws.word();
    if (draws.chance(50)) value |= static_cast<u64>(draws.word()) << 32;
  }
}

// ---- The thoughtful players.

// A dragon that thinks about its turn, and the turn as far as it is planned.
struct Mind {
  const Style& style;
  const Identity& who;
  const View& view;
  const Sight sight;
  const bool is_queen;
  const u32 compass;

  Tiles at, taken, pearls;
  u32 facing;

  SPARRING_FN static Mind of(const Style& style, const Identity& who, const View& view, const Draws& draws) {
    const Sight sight = Sight::of(who, view);
    const u32 compass = style.hunts && sight.scent != kNowhere ? sight.scent : draws.held(kHeldRounds) & 3;
    return Mind{style,       who,          view,       sight, who.id < 2, compass, 1ull << kWindowCentre,
                sight.taken, sight.pearls, view.facing};
  }

  // How many steps closer than allowed an enemy's head would be.
  SPARRING_FN i32 danger(Tiles tile) const {
    i32 level = is_queen ? style.queen_caution : style.caution;
    for (Tiles reach = sight.enemies; level > 0 && reach != 0; --level) {
      reach |= sight.spread(reach) & (~taken | tile);
      if ((reach & tile) != 0) return level;
    }
    return 0;
  }

  // How many tiles a dragon at `tile` would reach before all others, who move first. A way out of the window counts for
  // some tiles more.
  SPARRING_FN i32 territory(Tiles tile) const {
    Tiles mine = tile, others = sight.enemies | sight.allies, last = 0;
    while (mine != last) {
      last = mine;
      others |= sight.spread(others) & ~taken & ~mine;
      mine |= sight.spread(mine) & ~taken & ~others;
    }
    return static_cast<i32>(count(mine) + kBeyond * count(mine & sight.exits));
  }

  // Where the first steps to the nearest pearls lead that no rival reaches sooner: those that lie there, and those that
  // will when the dragon comes.
  SPARRING_FN Tiles to_pearls() const {
    Flood mine = Flood::from(at);
    Tiles rivals = is_queen ? sight.enemies : sight.enemies | sight.allies, queen = sight.queen;
    const u32 pace = free_steps(view.length);
    for (u32 steps = 1; steps <= kFar; ++steps) {
      mine.grow(sight, taken, steps);
      queen |= sight.spread(queen) & ~taken;
      const u32 rounds = (steps + pace - 1) / pace;
      const Tiles wanted = mine.layer[steps] & ~rivals & ~queen & (pearls | sight.soon[at_most(rounds, kSoon)]);
      if (wanted != 0) return mine.first_steps(sight, wanted, steps);
      rivals |= sight.spread(rivals) & ~taken;
    }
    return 0;
  }

  // Where the first steps of the shortest ways to a tile beside `goals` lead.
  SPARRING_FN Tiles towards(Tiles goals) const {
    Flood mine = Flood::from(at);
    const Tiles beside = sight.before(goals) & ~taken;
    for (u32 steps = 1; steps <= kFar && beside != 0; ++steps) {
      mine.grow(sight, taken, steps);
      const Tiles met = mine.layer[steps] & beside;
      if (met != 0) return mine.first_steps(sight, met, steps);
    }
    return 0;
  }

  SPARRING_FN bool portal(u32 direction) const {
    constexpr u32 row = kWindow / 2, west = row * (kWindow + 1) + row;
    if (direction == kNorth) return view.north[kWindowCentre] >= 0;
    if (direction == kSouth) return view.north[kWindowCentre + kWindow] >= 0;
    return view.west[direction == kEast ? west + 1 : west] >= 0;
  }

  // The best next step, or kNowhere: only the first may be forced, and only the first may go through a portal.
  SPARRING_FN u32 best_step(bool first, Draws& draws) const {
    const Tiles to_pearl = to_pearls();
    const Tiles to_prey = style.hunts && !is_queen ? towards(sight.prey) : 0;
    const i32 danger_here = first ? kNever : danger(at);
    const i32 need = view.length < kLeastRoom ? kLeastRoom : view.length > kMostRoom ? kMostRoom : view.length;
    u32 best = kNowhere;
    i32 best_worth = 0;
    for (u32 d = 0; d < 4; ++d) {
      i32 worth = static_cast<i32>(draws.below(kNoise));
      if ((at & sight.open[d]) != 0) {
        const Tiles tile = shifted(at, d);
        if ((tile & taken) != 0) continue;
        const i32 dangerous = danger(tile), room = territory(tile), lacking = room < need ? need - room : 0;
        if (!first && (dangerous > danger_here || lacking > 0)) continue;
        worth -= kDanger * dangerous + kCramped * lacking;
        worth += (room < kWide ? room : kWide) / 2;
        worth += (tile & to_pearl) != 0 ? kToPearl : 0;
        worth += (tile & to_prey) != 0 ? kToPrey : 0;
      } else if (first && portal(d)) {
        worth -= kUnknown;
      } else {
        continue;
      }
      worth += d == facing ? kStraight : 0;
      worth += d == compass ? kCompass : 0;
      worth += kPearlAhead * static_cast<i32>(count(pearls & side(d)));
      worth -= kCrowd * static_cast<i32>(count(sight.allies & side(d)));
      if (best == kNowhere || worth > best_worth) {
        best = d;
        best_worth = worth;
      }
    }
    return best;
  }

  SPARRING_FN void forage(Draws& draws, ActionRow& action) {
    for (u32 left = at_most(free_steps(view.length), ActionRow::kMostSteps); left > 0; --left) {
      const u32 direction = best_step(action.step_count == 0, draws);
      if (direction == kNowhere) return;
      action.step(direction);
      if ((at & sight.open[direction]) == 0) return;  // a portal: nothing is known beyond it
      at = shifted(at, direction);
      taken |= at;
      pearls &= ~at;
      facing = direction;
    }
  }

  SPARRING_FN i32 segments_of(u32 id) const {
    i32 segments = 0;
    for (u32 place = 0; place < kWindowTiles; ++place) segments += view.body[place] != 0 && view.id[place] == id;
    return segments;
  }

  // Heads that are worth dying for.
  SPARRING_FN Tiles victims() const {
    if (is_queen) return 0;
    Tiles heads = style.hunts ? sight.prey : 0;
    for (u32 place = 0; place < kWindowTiles; ++place) {
      const Tiles here = sight.enemies & 1ull << place;
      if (here != 0 && segments_of(view.id[place]) >= view.length + style.trade) heads |= here;
    }
    return heads;
  }

  // Sprints into the nearest of `heads`, if it can pay for that.
  SPARRING_FN bool ram(Tiles heads, ActionRow& action) const {
    if (heads == 0) return false;
    Flood mine = Flood::from(at);
    const u32 most = at_most(payable_steps(view.length), kFar);
    for (u32 steps = 1; steps <= most; ++steps) {
      mine.grow(sight, taken & ~heads, steps);
      Tiles goals = mine.layer[steps] & heads;
      if (goals == 0) continue;
      u8 ways[kFar];
      goals &= ~(goals - 1);  // one of them
      for (u32 i = steps; i-- > 0;) {
        const Tiles from = sight.before(goals) & mine.layer[i];
        u32 d = 0;
        while ((shifted(from & sight.open[d], d) & goals) == 0) ++d;
        ways[i] = static_cast<u8>(d);
        goals = shifted(goals, opposite(d));
      }
      for (u32 i = 0; i < steps; ++i) action.step(ways[i]);
      return true;
    }
    return false;
  }

  // Does another dragon stand in the way, so that it may open by itself?
  SPARRING_FN bool hemmed_in() const {
    const Tiles around = sight.spread(at);
    for (u32 place = 0; place < kWindowTiles; ++place) {
      if ((around >> place & 1) != 0 && view.body[place] != 0 && view.id[place] != who.id) return true;
    }
    return false;
  }

  SPARRING_FN bool can_split() const { return view.length >= 4 && view.units < who.unit_limit; }

  SPARRING_FN bool wants_split() const {
    const i32 wanted = who.width * who.height / style.tiles_per_unit,
              reserve = 1 + who.unit_limit / 16;  // for those who get stuck
    return can_split() && view.units < wanted && view.units < who.unit_limit - reserve && danger(at) == 0 &&
           view.length >= (is_queen ? style.queen_split_at : style.split_at) &&
           view.round < (is_queen ? style.queen_split_until : style.split_until);
  }

  // Two steps from the queen, and no enemy as close to her.
  SPARRING_FN bool feeds_queen() const {
    if (view.round < style.feeds_from || sight.queen == 0) return false;
    const Tiles near = sight.spread(sight.queen), nearer = near | sight.spread(near);
    return (at & nearer) != 0 && (sight.enemies & nearer) == 0;
  }

  SPARRING_FN void play(Draws& draws, ActionRow& action) {
    const u32 length = static_cast<u32>(view.length);
    if (ram(victims(), action) || feeds_queen()) return;  // without an action it dies
    if (wants_split()) {
      action.split_off(length / 2);
      return;
    }
    forage(draws, action);
    if (action.kind == Kind::kMove) return;
    if (can_split()) {  // stuck: what splits off may clear the way
      action.split_off(hemmed_in() ? 2 : length - 2);
    } else if (!ram(sight.enemies, action)) {
      action.step(facing);
    }
  }
};

}  // namespace scripts

// ---- Whoever plays.

SPARRING_FN bool is_random(Script script) { return script == Script::kLegal || script == Script::kReckless; }

SPARRING_FN void decide_random(Script script, const Identity& who, const Glance& glance, Draws& draws,
                               ActionRow& action) {
  action = ActionRow{};
  if (script == Script::kLegal) {
    scripts::play_legal(who, glance, draws, action);
  } else {
    scripts::play_reckless(who, glance, draws, action);
  }
}

// What `script` does in the turn that `view` tells of.
SPARRING_FN void decide(Script script, const Identity& who, const View& view, Draws& draws, ActionRow& action) {
  if (is_random(script)) {
    decide_random(script, who, Glance::of(view), draws, action);
    return;
  }
  action = ActionRow{};
  const Style style = scripts::style_of(script);
  scripts::Mind::of(style, who, view, draws).play(draws, action);
}

// The same for the dragon that must act in `lane`.
SPARRING_FN void decide(Script script, const Lane& lane, u64 seed, ActionRow& action) {
  const u32 slot = lane.match.acting;
  const Dragon& dragon = lane.dragons[slot];
  const Identity who = identity_of(lane, dragon);
  Draws draws = Draws::of(seed, lane.match.seed, dragon.id, lane.match.round);
  if (is_random(script) && lane.level.repeats == 0) {
    decide_random(script, who, Glance::of(lane, slot), draws, action);
    return;
  }
  View view;
  look(lane, slot, view);
  decide(script, who, view, draws, action);
}

}  // namespace sparring::loong
