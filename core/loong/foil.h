// The foil: a planner by hand. It searches its own steps against a forecast of all other bodies, on what it remembers.
// What a dragon does is a function of its memory and of this turn's View; draws that break ties are keyed by the dragon
// and the round, so that a lane and a bot, which is not told the seed of the match, do the same.
#pragma once

#include "actions.h"
#include "scripted.h"
#include "surroundings.h"

namespace sparring::loong {

// What the foil wants: the table of all its constants, tuned on generated maps by bench/tune_foil.py.
#define SPARRING_FOIL_WISHES(WISH)                                                               \
  WISH(pearl, 100)         /* a pearl eaten in this turn; the unit of all that follows */        \
  WISH(keep, 750)          /* thousandths of its worth that a pearl keeps for each round */      \
  WISH(coming, 60)         /* percent: a pearl that will come, against one that lies there */    \
  WISH(perhaps, 15)        /* percent: where pearls come, but nobody knows when */               \
  WISH(contested, 15)      /* percent: a pearl that another reaches first */                     \
  WISH(others, 10)         /* percent: all pearls but the best */                                \
  WISH(segment, 90)        /* against each step that is paid */                                  \
  WISH(cramped, 20)        /* against each tile that is lacking of those it needs to reach */    \
  WISH(least_room, 12)     /* tiles that the shortest needs */                                   \
  WISH(most_room, 30)      /* and the longest; between them it needs as many as its length */    \
  WISH(shared, 40)         /* percent: a tile that another reaches sooner, as room */            \
  WISH(exit, 6)            /* tiles that a way into the unknown counts for */                    \
  WISH(wide, 2)            /* for each tile that it reaches before all others */                 \
  WISH(most_wide, 40)      /* up to so many tiles */                                             \
  WISH(unknown, 60)        /* against a step into the unknown */                                 \
  WISH(explore, 6)         /* for a way into the unknown, as if a pearl lay there */             \
  WISH(compass, 10)        /* for each step in the direction that it is drawn to */              \
  WISH(compass_rounds, 20) /* for which that stays */                                            \
  WISH(prey, 40)           /* for each step towards the enemy's queen */                         \
  WISH(prey_rounds, 30)    /* for which a sight of her counts */                                 \
  WISH(danger, 20)         /* against each two segments within an enemy's reach */               \
  WISH(queen_reach, 1500)  /* against a queen within an enemy's reach */                         \
  WISH(queen_danger, 400)  /* against each step that she is too near to that */                  \
  WISH(queen_margin, 2)    /* steps that she keeps from it */                                    \
  WISH(queen_flight, 2)    /* paid steps that she takes to get there */                          \
  WISH(straight, 6)        /* for going on in the same direction */                              \
  WISH(noise, 6)           /* most that chance adds to a step */                                 \
  WISH(split_at, 4)        /* segments with which it splits in half */                           \
  WISH(split_until, 490)   /* in rounds before this one */                                       \
  WISH(queen_split_at, 4)  /* the same for the queen */                                          \
  WISH(queen_split_until, 120)                                                                   \
  WISH(queen_keep, 2)      /* segments that she keeps at least */                                \
  WISH(tiles_per_unit, 6)  /* of the board that each dragon of the team should have */           \
  WISH(reserve, 5)         /* dragons below the limit, for those who get stuck */                \
  WISH(trade, 1)           /* rams heads that show at least so many segments more than it has */ \
  WISH(guard, 2)           /* and heads with so many less where its queen is in sight */         \
  WISH(feeds_from, 440)    /* the round from which it dies beside its queen */                   \
  WISH(champion_from, 440) /* and beside a longer dragon */                                      \
  WISH(champion_lead, 3)   /* longer by so many segments */

constexpr u64 kFoilBuild = 0x666F696C;  // of its packets, in the judge

struct Wishes {
#define WISH(name, value) i32 name = value;
  SPARRING_FOIL_WISHES(WISH)
#undef WISH

  // Nothing overflows, and nothing is divided by 0.
  SPARRING_FN bool sound() const {
#define WISH(name, value) \
  if (name < -10000 || name > 10000) return false;
    SPARRING_FOIL_WISHES(WISH)
#undef WISH
    return keep >= 0 && keep <= 1000 && compass_rounds > 0 && tiles_per_unit > 0 && noise >= 0 && queen_flight >= 0;
  }
};
#define WISH(name, value) +1
constexpr u32 kWishes = 0 SPARRING_FOIL_WISHES(WISH);
#undef WISH
#define WISH(name, value) #name,
constexpr const char* kWishNames[kWishes] = {SPARRING_FOIL_WISHES(WISH)};
#undef WISH
static_assert(sizeof(Wishes) == kWishes * sizeof(i32), "wishes are a row of numbers");

// Steps of a turn, and where they end.
struct FoilPlan {
  static constexpr u32 kMost = 8;
  u32 count, eaten, paid;
  u16 at;
  u16 path[kMost];
  u8 steps[kMost];
  bool leaves;  // ends in the unknown
  i32 worth;
};

// What the planner works in; nothing of it is kept from turn to turn.
struct FoilScratch {
  static constexpr u32 kBeam = 12;
  Surroundings around;
  FoilPlan beam[2][kBeam];
  i32 to_goal[kNodes];  // steps
  i32 kept[64];         // 1024ths that something keeps of its worth, by rounds
};

struct Foil {
  const Wishes& wish;
  const Identity& who;
  const View& view;
  const Memory& memory;
  FoilScratch& scratch;
  Surroundings& around;
  Draws draws;
  const bool is_queen;
  const i32 length;
  i32 goal_worth;

  static constexpr i32 kHorizon = 14;  // steps that a flood is followed
  static constexpr i32 kCompassFar = 12;

  SPARRING_FN static Foil of(const Wishes& wishes, const Identity& who, const View& view, const Memory& memory,
                             FoilScratch& scratch) {
    return Foil{
        wishes,     who,         view, memory, scratch, scratch.around, Draws::of(0, who.team, who.id, view.round),
        who.id < 2, view.length, 0};
  }

  SPARRING_FN void play(ActionRow& action) {
    scratch.kept[0] = 1024;
    for (u32 i = 1; i < 64; ++i) scratch.kept[i] = scratch.kept[i - 1] * wish.keep / 1000;
    around.survey(memory, who, view);
    if (ram_prey(action) || feeds()) return;  // without an action it dies
    if (wants_split()) {
      action.split_off(is_queen && length - wish.queen_keep >= 2 ? static_cast<u32>(length - wish.queen_keep)
                                                                 : static_cast<u32>(length) / 2);
      return;
    }
    aim();
    if (!forage(action)) get_unstuck(action);
  }

  // ---- Steps.

  SPARRING_FN i32 kept(i32 rounds) const { return scratch.kept[rounds < 63 ? rounds : 63]; }

  // The best steps that it finds. False: there are none.
  SPARRING_FN bool forage(ActionRow& action) {
    const u32 free = free_steps_of(static_cast<u32>(length));
    u32 most = free;
    if (is_queen && around.lacks[0] <= wish.queen_margin) {
      most = scripts::at_most(payable_steps_of(static_cast<u32>(length)), free + static_cast<u32>(wish.queen_flight));
    }
    most = scripts::at_most(most, FoilPlan::kMost);
    FoilPlan best{};
    bool found = false;
    scratch.beam[0][0] = FoilPlan{};
    for (u32 depth = 1, many = 1; depth <= most && many > 0; ++depth) {
      const FoilPlan* const from = scratch.beam[(depth - 1) % 2];
      FoilPlan* const to = scratch.beam[depth % 2];
      u32 made = 0;
      for (u32 i = 0; i < many; ++i) {
        for (u32 d = 0; d < 4; ++d) {
          FoilPlan plan = from[i];
          if (!extend(plan, d, depth > free)) continue;
          plan.worth = value(plan) + static_cast<i32>(draws.below(static_cast<u32>(wish.noise) + 1));
          if (d == (depth > 1 ? plan.steps[depth - 2] : view.facing)) plan.worth += wish.straight;
          if (!found || plan.worth > best.worth) best = plan;
          found = true;
          if (!plan.leaves) keep_best(to, made, plan);
        }
      }
      many = made;
    }
    for (u32 i = 0; i < best.count; ++i) action.step(best.steps[i]);
    return found;
  }

  SPARRING_FN static void keep_best(FoilPlan* beam, u32& made, const FoilPlan& plan) {
    u32 at = made < FoilScratch::kBeam ? made++ : FoilScratch::kBeam;
    if (at == FoilScratch::kBeam && beam[--at].worth >= plan.worth) return;
    for (; at > 0 && beam[at - 1].worth < plan.worth; --at) beam[at] = beam[at - 1];
    beam[at] = plan;
  }

  // Adds a step, if it is not fatal. Only the first may lead into the unknown.
  SPARRING_FN bool extend(FoilPlan& plan, u32 direction, bool paid) const {
    const u16 to = around.next[plan.at][direction];
    if (to == kWallNode || (to == kBeyond && plan.count > 0)) return false;
    if (to != kBeyond) {
      if (to == 0 || around.clears[to] > 0) return false;
      for (u32 i = 0; i < plan.count; ++i) {
        if (plan.path[i] == to) return false;
      }
      // The tail has dropped as many tiles as steps were made, less those eaten, more those paid.
      if (around.own[to] + plan.eaten > plan.count + plan.paid) return false;
    }
    plan.steps[plan.count] = static_cast<u8>(direction);
    plan.path[plan.count++] = to;
    plan.paid += paid;
    plan.leaves = to == kBeyond;
    if (plan.leaves) return true;
    plan.at = to;
    plan.eaten += around.pearl[to];
    return true;
  }

  // What it is worth to end the turn so.
  SPARRING_FN i32 value(const FoilPlan& plan) {
    if (plan.leaves) return -wish.unknown;
    const i32 eaten = static_cast<i32>(plan.eaten), paid = static_cast<i32>(plan.paid), after = length + eaten - paid;
    i32 worth = eaten * wish.pearl - paid * wish.segment - goal_worth * scratch.to_goal[plan.at];
    u16 was[FoilPlan::kMost];
    for (u32 i = 0; i < plan.count; ++i) {  // it will be there until the whole body has followed
      was[i] = around.own[plan.path[i]];
      around.own[plan.path[i]] = static_cast<u16>(static_cast<u32>(length) + i + 1);
    }
    worth += outlook(plan, after);
    for (u32 i = plan.count; i-- > 0;) around.own[plan.path[i]] = was[i];

    const i32 lacks = around.lacks[plan.at];
    if (is_queen) {
      if (lacks <= 0) worth -= wish.queen_reach;
      if (lacks <= wish.queen_margin) worth -= wish.queen_danger * (wish.queen_margin + 1 - lacks);
    } else if (lacks <= 0) {
      worth -= wish.danger * (after / 2);
    }
    return worth;
  }

  // What can be reached from where the plan ends: pearls by the round of arrival, and room.
  SPARRING_FN i32 outlook(const FoilPlan& plan, i32 after) {
    const i32 pace = (after + 3) / 4;
    const i32 dropped = static_cast<i32>(plan.count + plan.paid) - static_cast<i32>(plan.eaten);  // tiles of the tail
    for (u32 n = 0; n < around.count; ++n) around.reached[n] = 255;
    u32 tail = 0;
    around.queue[tail++] = plan.at;
    around.reached[plan.at] = 0;
    around.first[plan.at] = true;
    i32 mine = 0, shared = 0, pearls = 0, best = 0;
    for (u32 head = 0; head < tail; ++head) {
      const u32 n = around.queue[head];
      const i32 steps = around.reached[n] + 1, rounds = (steps + pace - 1) / pace;
      if (steps > kHorizon) break;
      for (const u16 m : around.next[n]) {
        if (m == kWallNode) continue;
        if (m == kBeyond) {
          (around.first[n] ? mine : shared) += wish.exit;
          pearls += wish.explore * kept(rounds) / 1024;
          continue;
        }
        const bool first = around.first[n] && around.enemy[m] > rounds && around.ally[m] > rounds;
        if (around.reached[m] != 255) {
          if (around.reached[m] == steps && first && !around.first[m]) {
            around.first[m] = true;
            ++mine;
            --shared;
          }
          continue;
        }
        if (around.clears[m] > rounds || static_cast<i32>(around.own[m]) > dropped + steps - 1) continue;
        around.reached[m] = static_cast<u8>(steps);
        around.queue[tail++] = m;
        around.first[m] = first;
        ++(first ? mine : shared);
        const i32 here = pearl_at(plan, m, rounds);
        pearls += here;
        if (here > best) best = here;
      }
    }
    const i32 room = mine + shared * wish.shared / 100;
    const i32 need = after < wish.least_room ? wish.least_room : after > wish.most_room ? wish.most_room : after;
    const i32 lacking = room < need ? need - room : 0;
    return best + (pearls - best) * wish.others / 100 + (room < wish.most_wide ? room : wish.most_wide) * wish.wide -
           lacking * wish.cramped;
  }

  SPARRING_FN i32 pearl_at(const FoilPlan& plan, u16 node, i32 rounds) const {
    bool lies = around.pearl[node];
    for (u32 i = 0; i < plan.count && lies; ++i) lies = plan.path[i] != node;
    i32 percent = 100;
    if (!lies) {
      if (around.due[node] == 0 && !around.perhaps[node]) return 0;
      percent = around.perhaps[node] ? wish.perhaps : wish.coming;
      if (around.due[node] > rounds) rounds = around.due[node];
    }
    const i32 worth = wish.pearl * kept(rounds) / 1024 * percent / 100;
    const bool lost = around.enemy[node] <= rounds || (around.ally[node] <= rounds && !is_queen);
    return lost ? worth * wish.contested / 100 : worth;
  }

  // ---- Goals.

  // Steps from all nodes to where it wants to go: to the enemy's queen, else in the direction that it is drawn to.
  SPARRING_FN void aim() {
    goal_worth = wish.prey;
    u32 goal = is_queen ? kNone : sighted_prey();
    if (goal == kNone) {
      goal_worth = wish.compass;
      goal = memory.life.head;
      const u32 direction = draws.held(static_cast<u32>(wish.compass_rounds)) & 3;
      for (i32 i = 0; i < kCompassFar; ++i) goal = memory.beside(goal, direction);
    }
    for (u32 n = 0; n < around.count; ++n) {  // from where it can leave what is known it goes on straight
      i32& steps = scratch.to_goal[n];
      steps = around.tile[n] == goal ? 0 : kFarOff;
      bool rim = false;
      for (const u16 m : around.next[n]) rim = rim || m == kBeyond;
      const i32 straight = distance(around.tile[n], goal) + 1;
      if (rim && straight < steps) steps = straight;
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (u32 n = around.count; n-- > 0;) {
        for (const u16 m : around.next[n]) {
          if (m >= kBeyond || scratch.to_goal[m] + 1 >= scratch.to_goal[n]) continue;
          scratch.to_goal[n] = scratch.to_goal[m] + 1;
          changed = true;
        }
      }
    }
  }

  // The tile where it last saw the enemy's queen, her head rather than her body.
  SPARRING_FN u32 sighted_prey() const {
    u32 best = kNone, best_age = static_cast<u32>(wish.prey_rounds) * 2;
    for (u32 n = 1; n < around.count; ++n) {
      const u32 code = memory.occupant(around.tile[n]);
      if (!occupant::somebody_else(code) || !occupant::enemy(code) || !occupant::queen(code)) continue;
      const u32 age = memory.age(around.tile[n]) * 2 + (occupant::head(code) ? 0 : 1);
      if (age >= best_age) continue;
      best = around.tile[n];
      best_age = age;
    }
    return best;
  }

  SPARRING_FN i32 distance(u32 a, u32 b) const {
    const auto apart = [](u32 one, u32 other, u32 side) {
      const u32 straight = one > other ? one - other : other - one;
      return static_cast<i32>(straight < side - straight ? straight : side - straight);
    };
    return apart(memory.x(a), memory.x(b), memory.width) + apart(memory.y(a), memory.y(b), memory.height);
  }

  // ---- Fights, splits and sacrifices.

  // Sprints into the head on `goal`, if it can pay for that.
  SPARRING_FN bool ram(u16 goal, ActionRow& action) {
    const u32 most = scripts::at_most(payable_steps_of(static_cast<u32>(length)), kHorizon);
    u16 from[kNodes];
    u8 way[kNodes];
    for (u32 n = 0; n < around.count; ++n) around.reached[n] = 255;
    u32 tail = 0;
    around.queue[tail++] = 0;
    around.reached[0] = 0;
    for (u32 head = 0; head < tail; ++head) {
      const u32 n = around.queue[head], steps = around.reached[n] + 1u;
      if (steps > most) return false;
      for (u32 d = 0; d < 4; ++d) {
        const u16 m = around.next[n][d];
        if (m >= kBeyond || around.reached[m] != 255) continue;
        if (m != goal && (around.clears[m] > 0 || around.own[m] >= steps)) continue;
        around.reached[m] = static_cast<u8>(steps);
        around.queue[tail++] = m;
        from[m] = static_cast<u16>(n);
        way[m] = static_cast<u8>(d);
        if (m != goal) continue;
        u8 steps_back[kHorizon];
        u32 count = 0;
        for (u32 at = goal; at != 0; at = from[at]) steps_back[count++] = way[at];
        while (count > 0) action.step(steps_back[--count]);
        return true;
      }
    }
    return false;
  }

  // The enemy's queen, else the head that is worth most to die for.
  SPARRING_FN bool ram_prey(ActionRow& action) {
    if (is_queen) return false;
    if (around.prey != kBeyond && ram(around.prey, action)) return true;
    i32 best = -1;
    u16 victim = kBeyond;
    for (u32 i = 0; i < around.enemy_count; ++i) {
      const i32 gain = around.enemies[i].segments - length - wish.trade + (around.queen != kBeyond ? wish.guard : 0);
      if (gain <= best) continue;
      best = gain;
      victim = around.enemies[i].node;
    }
    return victim != kBeyond && ram(victim, action);
  }

  SPARRING_FN bool can_split() const { return length >= 4 && view.units < who.unit_limit; }

  SPARRING_FN bool wants_split() const {
    return can_split() && view.units < who.width * who.height / wish.tiles_per_unit &&
           view.units < who.unit_limit - wish.reserve && around.lacks[0] > 0 &&
           length >= (is_queen ? wish.queen_split_at : wish.split_at) &&
           view.round < (is_queen ? wish.queen_split_until : wish.split_until);
  }

  // Does it die for the queen, or for one who is longer, to eat?
  SPARRING_FN bool feeds() const {
    if (is_queen || around.enemy_count > 0) return false;
    if (view.round >= wish.feeds_from && around.queen != kBeyond && around.away[around.queen] <= 2) return true;
    for (u32 i = 0; i < around.ally_count && view.round >= wish.champion_from; ++i) {
      const Other& other = around.allies[i];
      if (around.away[other.node] <= 2 && other.segments >= length + wish.champion_lead) return true;
    }
    return false;
  }

  // What splits off may clear the way, and a split is a turn without a step.
  SPARRING_FN void get_unstuck(ActionRow& action) {
    if (can_split()) {
      bool hemmed_in = false;
      for (const u16 m : around.next[0]) hemmed_in = hemmed_in || (m < kBeyond && around.clears[m] > 0);
      action.split_off(hemmed_in ? 2 : static_cast<u32>(length) - 2);
      return;
    }
    for (u32 i = 0; i < around.enemy_count; ++i) {
      if (ram(around.enemies[i].node, action)) return;
    }
    action.step(view.facing);
  }
};

// What the foil does in the turn that `view` tells of and `memory` has taken in. `key`: of its packets.
SPARRING_FN void play_foil(const Wishes& wishes, const Identity& who, const View& view, Memory& memory, u64 key,
                           FoilScratch& scratch, ActionRow& action) {
  action = ActionRow{};
  Foil::of(wishes, who, view, memory, scratch).play(action);
  if (action.kind == Kind::kSuicide) return;
  const u32 facing = action.kind == Kind::kMove ? action.steps[action.step_count - 1] : view.facing;
  action.aimed[facing] = encode(status(memory), key);
  action.aimed_directions = static_cast<u8>(1u << facing);
  if (view.wide == 0) action.set_protocol(3);
}

}  // namespace sparring::loong
