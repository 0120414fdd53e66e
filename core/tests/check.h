// What the core's tests share: a check that names its place and lets the test go on, and the exit code.
#pragma once

#include <cstdio>

inline int failures = 0;

#define CHECK(condition)                                          \
  do {                                                            \
    if (!(condition)) {                                           \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                 \
    }                                                             \
  } while (false)

// For main to return.
inline int verdict(const char* name) {
  if (failures == 0) std::printf("%s: all checks passed\n", name);
  return failures == 0 ? 0 : 1;
}
