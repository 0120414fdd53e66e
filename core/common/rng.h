// Random numbers: a counter-based generator for everything we sample, and the generator of the 2018 Tennis binary.
#pragma once

#include "target.h"

namespace sparring {

// Philox 4x32 with 10 rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
// The draw is a pure function of (key, counter), so it depends neither on batch order nor on what was drawn before.
struct Philox {
  u32 word[4];
};

SPARRING_FN Philox philox(u64 key, u32 c0, u32 c1, u32 c2, u32 c3) {
  u32 k0 = static_cast<u32>(key);
  u32 k1 = static_cast<u32>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 p0 = static_cast<u64>(0xD2511F53u) * c0;
    const u64 p1 = static_cast<u64>(0xCD9E8D57u) * c2;
    c0 = static_cast<u32>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<u32>(p1);
    c2 = static_cast<u32>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<u32>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return Philox{{c0, c1, c2, c3}};
}

// SplitMix64's finaliser: spreads a seed and a stream number over 64 key bits.
SPARRING_FN u64 mix64(u64 x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

SPARRING_FN u64 stream_key(u64 seed, u64 stream) { return mix64(seed ^ mix64(stream)); }

// Two standard normals from two words (Box and Muller 1958); the +0.5 keeps the logarithm finite.
SPARRING_FN void box_muller(u32 a, u32 b, float& first, float& second) {
  const double radius = sqrt64(-2.0 * log64((static_cast<double>(a) + 0.5) / 4294967296.0));
  const double angle = 6.283185307179586 * (static_cast<double>(b) / 4294967296.0);
  first = static_cast<float>(radius * cos64(angle));
  second = static_cast<float>(radius * sin64(angle));
}

// The generator inside the 2018 binary: xorshift128 with shifts 11, 8, 19 and its seeding.
struct Xorshift {
  u32 s[4];

  SPARRING_FN static Xorshift from_seed(u32 seed) {
    Xorshift x{};
    x.s[0] = seed;
    for (int i = 1; i < 4; ++i) x.s[i] = 1812433253u * x.s[i - 1] + 1u;
    return x;
  }

  SPARRING_FN u32 next() {
    const u32 t = s[0] ^ (s[0] << 11);
    s[0] = s[1];
    s[1] = s[2];
    s[2] = s[3];
    s[3] = s[3] ^ (s[3] >> 19) ^ t ^ (t >> 8);
    return s[3];
  }

  // Runs from `high` at 0 down to `low`: the binary interpolates in that direction.
  SPARRING_FN float range(float low, float high) {
    const float share = static_cast<float>(next() & 0x7FFFFFu) / 8388607.0f;
    return high - (high - low) * share;
  }
};

}  // namespace sparring
