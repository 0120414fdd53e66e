// The reference: one product after another, summed in 32 bits that wrap as the hardware's do.
#pragma once

#include "layer.h"

namespace sparring::net {

struct Scalar {
  struct Sums {
    u32 row[kRowBlock];
  };

  SPARRING_FN static Sums none() { return Sums{}; }

  template <u32 kLength>
  SPARRING_FN static void add(const i8* weights, const i16* x, Sums& sums) {
    for (u32 row = 0; row < kRowBlock; ++row) {
      for (u32 i = 0; i < kLength; ++i) sums.row[row] += static_cast<u32>(weights[row * kLength + i] * x[i]);
    }
  }

  SPARRING_FN static void finish(const Sums& sums, const i32* bias, const i32* multiplier, u32 shift, Limits limits,
                                 i16* out) {
    for (u32 row = 0; row < kRowBlock; ++row) {
      const i32 sum = static_cast<i32>(sums.row[row] + static_cast<u32>(bias[row]));
      out[row] = static_cast<i16>(cut(scaled(sum, multiplier[row], shift), limits));
    }
  }

  SPARRING_FN static void finish(const Sums& sums, const i32* bias, const i32* multiplier, u32 shift, i32* out) {
    for (u32 row = 0; row < kRowBlock; ++row) {
      out[row] = scaled(static_cast<i32>(sums.row[row] + static_cast<u32>(bias[row])), multiplier[row], shift);
    }
  }
};

}  // namespace sparring::net
