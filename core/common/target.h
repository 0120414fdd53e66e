// What every header of the core may assume: fixed-width integers, a host/device marker and four math functions.
// No standard headers: NVRTC and the judge's toolchain compile the same text, and NVRTC has no <cstdint>.
#pragma once

#if defined(__CUDACC__)
#define SPARRING_FN __host__ __device__ inline
#else
#define SPARRING_FN inline
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#include <math.h>
#endif

namespace sparring {

using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;
static_assert(sizeof(u32) == 4 && sizeof(u64) == 8, "the core needs 32-bit int and 64-bit long long");

#if defined(__CUDACC__) || (defined(_MSC_VER) && !defined(__clang__))
SPARRING_FN float sqrt32(float x) { return sqrtf(x); }
SPARRING_FN double sqrt64(double x) { return sqrt(x); }
SPARRING_FN double log64(double x) { return log(x); }
SPARRING_FN double cos64(double x) { return cos(x); }
SPARRING_FN double sin64(double x) { return sin(x); }
#else
SPARRING_FN float sqrt32(float x) { return __builtin_sqrtf(x); }
SPARRING_FN double sqrt64(double x) { return __builtin_sqrt(x); }
SPARRING_FN double log64(double x) { return __builtin_log(x); }
SPARRING_FN double cos64(double x) { return __builtin_cos(x); }
SPARRING_FN double sin64(double x) { return __builtin_sin(x); }
#endif

SPARRING_FN float min32(float a, float b) { return a < b ? a : b; }
SPARRING_FN float max32(float a, float b) { return a > b ? a : b; }
SPARRING_FN float clamp32(float x, float low, float high) { return min32(max32(x, low), high); }
SPARRING_FN float abs32(float x) { return x < 0.0f ? -x : x; }

}  // namespace sparring
