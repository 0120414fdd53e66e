// The bot that carries a student: `sparring export` puts its weights beside this file.
#include "bot/student.h"
#include "weights.h"

int main() {
  using namespace sparring;
  using namespace sparring::bot;
  static NoProbe probe;
  static StudentPlayer player(weights(), kWeightsBytes);
  const auto decide = [](const Identity& who, const View& view, Memory& memory, u64 key, ActionRow& action) {
    player.decide(who, view, memory, key, action, probe);
  };
  return run(kBuild, decide, probe);
}
