// The status packet: the one message that a dragon sends in a turn, along its facing.
#pragma once

#include "../common/rng.h"
#include "view.h"

namespace sparring::loong {

constexpr u32 kClaimSide = 5, kNoClaim = kClaimSide * kClaimSide;
constexpr u32 kNoReport = 127;

// In the frame of the board. Bits from the lowest: round modulo 4 (2), id modulo 1024 (10), x (8), y (8), length (7),
// role (3), claim (5), queen (1), kind of the report (1) and its place (7), check (12).
struct Packet {
  u32 round;  // modulo 4
  u32 id;     // modulo 1024
  u32 x, y;   // of the head as the turn began
  u32 length;
  u32 role;
  u32 claim;  // a tile of the 5x5 around the head, row by row from the north-west, or kNoClaim
  u32 queen;  // 1: it is its team's queen, or sees her
  u32 enemy;  // the report: 1 the head of an enemy, 0 a pearl
  u32 place;  // where, in the window of the sender, or kNoReport

  static constexpr u32 kMostLength = 127, kIds = 1024;
};

// Whose packets a dragon understands: those of its own team, on such a map, from the same build of a bot.
SPARRING_FN u64 packet_key(const Identity& who, u64 build) {
  const u64 size = static_cast<u64>(who.width) << 32 | static_cast<u32>(who.height);
  return mix64(mix64(build * 2 + who.team) ^ size) ^ static_cast<u32>(who.unit_limit);
}

constexpr u32 kPacketBits = 52;

SPARRING_FN u64 packet_check(u64 payload, u64 key) { return mix64(key ^ payload) >> kPacketBits; }

SPARRING_FN u64 encode(const Packet& packet, u64 key) {
  u64 payload = 0;
  u32 at = 0;
  const auto put = [&](u32 value, u32 bits) {
    payload |= static_cast<u64>(value & ((1u << bits) - 1)) << at;
    at += bits;
  };
  put(packet.round, 2);
  put(packet.id, 10);
  put(packet.x, 8);
  put(packet.y, 8);
  put(packet.length < Packet::kMostLength ? packet.length : Packet::kMostLength, 7);
  put(packet.role, 3);
  put(packet.claim, 5);
  put(packet.queen, 1);
  put(packet.enemy, 1);
  put(packet.place, 7);
  return packet_check(payload, key) << kPacketBits | payload;
}

// What the fields say, whoever sent them.
SPARRING_FN Packet unpack_fields(u64 message) {
  const auto take = [&](u32 bits) {
    const u32 value = static_cast<u32>(message) & ((1u << bits) - 1);
    message >>= bits;
    return value;
  };
  Packet packet{};
  packet.round = take(2);
  packet.id = take(10);
  packet.x = take(8);
  packet.y = take(8);
  packet.length = take(7);
  packet.role = take(3);
  packet.claim = take(5);
  packet.queen = take(1);
  packet.enemy = take(1);
  packet.place = take(7);
  return packet;
}

// False: sent by somebody else, in an earlier round than the last, or no packet at all.
SPARRING_FN bool decode(u64 message, u64 key, const Identity& who, i32 round, Packet& packet) {
  constexpr u64 payload = (1ull << kPacketBits) - 1;
  if (packet_check(message & payload, key) != message >> kPacketBits) return false;
  packet = unpack_fields(message);
  if (((static_cast<u32>(round) - packet.round) & 3) > 1) return false;
  return packet.x < static_cast<u32>(who.width) && packet.y < static_cast<u32>(who.height) &&
         packet.claim <= kNoClaim && (packet.place < kWindowTiles || packet.place == kNoReport);
}

}  // namespace sparring::loong
