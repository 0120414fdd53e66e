// A choice: what a policy decides in one turn, as one number, and what it does on the board.
#pragma once

#include "remember.h"
#include "rows.h"

namespace sparring::loong {

constexpr u32 kChooseMove = 0, kChooseSprint = 1, kChooseSplit = 2;
constexpr u32 kRoles = 8, kSplitSizes = 32, kMostSprint = 8;
constexpr u32 kLeastSegments = 2;  // of a dragon; what a split leaves on either side

// All in the dragon's own frame. The packed form, bits from the lowest: role (3), kind (2), direction of a move (2),
// size of a split - 2 (5), number of sprint steps (4), the steps (8 times 2, the first lowest), claim (5). What the
// kind does not use is 0.
struct Choice {
  u32 role;
  u32 kind;
  u32 direction;  // of a move: kForward, kLeft or kRight
  u32 segments;   // of a split
  u32 step_count;
  u8 steps[kMostSprint];  // of a sprint, each relative to the facing after the one before
  u32 claim;              // a tile of the 5x5 around the head, row by row with forward up, or kNoClaim
};

SPARRING_FN i64 pack(const Choice& choice) {
  u64 packed = choice.role | choice.kind << 3 | static_cast<u64>(choice.claim) << 32;
  if (choice.kind == kChooseMove) packed |= choice.direction << 5;
  if (choice.kind == kChooseSplit) packed |= (choice.segments - kLeastSegments) << 7;
  if (choice.kind == kChooseSprint) {
    packed |= choice.step_count << 12;
    for (u32 i = 0; i < choice.step_count; ++i) packed |= static_cast<u64>(choice.steps[i]) << (16 + 2 * i);
  }
  return static_cast<i64>(packed);
}

// False: the number is no choice.
SPARRING_FN bool unpack(i64 number, Choice& choice) {
  const u64 packed = static_cast<u64>(number);
  const auto bits = [packed](u32 at, u32 count) { return static_cast<u32>(packed >> at) & ((1u << count) - 1); };
  choice = Choice{};
  choice.role = bits(0, 3);
  choice.kind = bits(3, 2);
  choice.claim = bits(32, 5);
  if (choice.kind == kChooseMove) choice.direction = bits(5, 2);
  if (choice.kind == kChooseSplit) choice.segments = bits(7, 5) + kLeastSegments;
  if (choice.kind == kChooseSprint) {
    choice.step_count = bits(12, 4);
    if (choice.step_count < 2 || choice.step_count > kMostSprint) return false;
    for (u32 i = 0; i < choice.step_count; ++i) {
      choice.steps[i] = static_cast<u8>(bits(16 + 2 * i, 2));
      if (choice.steps[i] > kRight) return false;
    }
  }
  return choice.kind <= kChooseSplit && choice.direction <= kRight && choice.claim <= kNoClaim &&
         pack(choice) == number;
}

// What may be chosen. Fatal moves may.
struct MaskRow {
  u8 kinds[3];            // move, sprint, split
  u8 sizes[kSplitSizes];  // of a split, from kLeastSegments on
  u8 payable;             // sprint steps that can be paid, pearls on the way left out; at most kMostSprint
  u8 role_due;            // a new role is chosen; else it is `held`
  u8 held;
  u8 unused[2];
};
static_assert(sizeof(MaskRow) == 40, "rows have no hidden bytes");

SPARRING_FN u32 free_steps_of(u32 length) { return (length + 3) / 4; }
SPARRING_FN u32 payable_steps_of(u32 length) { return free_steps_of(length) + length - kLeastSegments; }

// Of a dragon that remembers this turn's View.
SPARRING_FN void fill_mask(const Life& life, const Identity& who, const View& view, MaskRow& mask) {
  mask = MaskRow{};
  const u32 payable = payable_steps_of(life.length);
  mask.payable = static_cast<u8>(payable < kMostSprint ? payable : kMostSprint);
  mask.kinds[kChooseMove] = 1;
  mask.kinds[kChooseSprint] = mask.payable >= 2;
  if (view.units < who.unit_limit && life.length >= 2 * kLeastSegments) {
    mask.kinds[kChooseSplit] = 1;
    const u32 most = life.length - kLeastSegments;
    for (u32 i = 0; i < kSplitSizes; ++i) mask.sizes[i] = i + kLeastSegments <= most;
  }
  mask.role_due = role_due(life);
  mask.held = life.role;
}

// The status packet of a turn whose choice is made.
SPARRING_FN Packet status(const Memory& memory) {
  const Life& life = memory.life;
  Packet packet{};
  packet.round = life.round() & 3;
  packet.id = life.id % Packet::kIds;
  packet.x = memory.x(life.head);
  packet.y = memory.y(life.head);
  packet.length = life.length;
  packet.role = life.role;
  packet.claim = kNoClaim;
  if (life.claim < kNoClaim) {
    constexpr i32 reach = kClaimSide / 2, side = kClaimSide;
    const Frame frame = Frame::of(life.facing, life.mirrored);
    const i32 ahead = reach - static_cast<i32>(life.claim) / side, right = static_cast<i32>(life.claim) % side - reach;
    packet.claim = static_cast<u32>((frame.dy(ahead, right) + reach) * side + frame.dx(ahead, right) + reach);
  }
  packet.queen = life.sees_queen;
  packet.enemy = life.report >> 7;
  packet.place = life.report & 127;
  return packet;
}

// Can the dragon, as it remembers this turn, make this choice? What dies of it is legal, another role than the held one
// is not.
SPARRING_FN bool choosable(const Life& life, i64 packed) {
  Choice choice;
  return unpack(packed, choice) && (role_due(life) || choice.role == life.role);
}

// Makes a choice: remembers its role and claim, and gives the action, with the status packet along the facing
// that it ends with, and with protocol 3 where it is not yet set. The packed number is a choosable one.
// Steps are remembered by `remember_steps`, as those of any action.
SPARRING_FN void choose(Memory& memory, i64 packed, u64 key, ActionRow& action) {
  Life& life = memory.life;
  Choice choice;
  unpack(packed, choice);
  action = ActionRow{};
  u32 facing = life.facing;
  if (choice.kind == kChooseSplit) {
    action.split_off(choice.segments);
  } else {
    const u32 steps = choice.kind == kChooseMove ? 1 : choice.step_count;
    for (u32 i = 0; i < steps; ++i) {
      const u32 relative = choice.kind == kChooseMove ? choice.direction : choice.steps[i];
      facing = Frame::of(facing, life.mirrored).direction(relative);
      action.step(facing);
    }
  }
  life.role = static_cast<u8>(choice.role);
  life.claim = static_cast<u8>(choice.claim);
  action.aimed[facing] = encode(status(memory), key);
  action.aimed_directions = static_cast<u8>(1u << facing);
  if (life.wide == 0) action.set_protocol(3);
}

}  // namespace sparring::loong
