// What the unit limit stands for. tests/test_match.py reads the names from here.
#define STARTS_WITH_A_LOOP 0
enum {
  OBEYS = 1,
  LOOPS,
  EXITS,
  TRAPS,
  EXITS_HAVING_SPOKEN,
  EXITS_ONCE,
  EXITS_AFTER_EVERY_TURN,
  SAYS_TOO_MUCH,
  WRITES_TOO_OFTEN,
  TAKES_ALL_MEMORY,
  TALKS_NONSENSE,
  SAYS_NOTHING,
  NEVER_ENDS_A_TURN,
  LOOPS_WHEN_ALL_IS_OVER,
  WAITS,
  SPLITS = 64,
};
