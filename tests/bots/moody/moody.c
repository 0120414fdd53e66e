// A bot that does what its map's UNIT_LIMIT says: one build for all that can go wrong in the judge.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "moods.h"

static char line[1 << 16];
static char* volatile taken;
static int mood, id, turns, round_number;
static char direction;

static int read_block(void) {
  int seen = 0;
  while (fgets(line, sizeof line, stdin) && line[0] != '\n') {
    seen |= sscanf(line, "UNIT_LIMIT %d", &mood) == 1 || sscanf(line, "ID %d", &id) == 1;
    seen |= sscanf(line, "ROUND %d", &round_number) == 1 || sscanf(line, "DIR %c", &direction) == 1;
  }
  return seen;
}

static void forever(void) {
  for (volatile long i = 0;; ++i) {
  }
}

int main(void) {
  if (STARTS_WITH_A_LOOP) forever();
  setvbuf(stdout, NULL, _IOFBF, 1 << 16);
  for (; read_block(); ++turns) {
    uint32_t luck;
    getentropy(&luck, sizeof luck);
    switch (mood) {
      case LOOPS:
        forever();
      case EXITS:
        exit(3);
      case TRAPS:
        __builtin_trap();
      case WAITS:
        __builtin_wasm_memory_atomic_wait32(&mood, mood, -1);
      case EXITS_HAVING_SPOKEN:
        printf("MOVE %c\n", direction);
        fflush(stdout);
        exit(0);
      case EXITS_ONCE:  // the next instance knows nothing of the first turn
        if (turns == 1) exit(0);
        break;
      case EXITS_AFTER_EVERY_TURN:
        printf("MOVE %c\nENDTURN\n", direction);
        fflush(stdout);
        exit(0);
      case SAYS_TOO_MUCH:
        for (int i = 0; i < 1200; ++i) printf("LOG 45678\n");
        break;
      case WRITES_TOO_OFTEN:
        for (;;) {
          printf("LOG on\n");
          fflush(stdout);
        }
      case TAKES_ALL_MEMORY:
        while ((taken = malloc(1 << 20)) != NULL) *taken = 1;
        break;
      case TALKS_NONSENSE:
        printf("FLY %c\nENDTURN\n", direction);
        fflush(stdout);
        continue;
      case SAYS_NOTHING:
        printf("ENDTURN\n");
        fflush(stdout);
        continue;
      case NEVER_ENDS_A_TURN:
        printf("MOVE %c\n", direction);
        fflush(stdout);
        continue;
      case SPLITS:
        if (id < 2 && round_number % 2 == 0) {
          printf("SPLIT 2\nENDTURN\n");
          fflush(stdout);
          continue;
        }
    }
    printf("LOG %u %ld\nMOVE %c\nENDTURN\n", luck, (long)clock(), direction);
    fflush(stdout);
  }
  if (mood == LOOPS_WHEN_ALL_IS_OVER) forever();
  return 0;
}
