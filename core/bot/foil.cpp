// The foil as a bot.
#include "loong/foil.h"

#include "bot/bot.h"

int main() {
  using namespace sparring::loong;
  static FoilScratch scratch;
  static const Wishes wishes;
  constexpr sparring::u64 build = kFoilBuild;
  const auto decide = [](const Identity& who, const View& view, Memory& memory, sparring::u64 key, ActionRow& action) {
    play_foil(wishes, who, view, memory, key, scratch, action);
  };
  sparring::bot::NoProbe probe;
  return sparring::bot::run(build, decide, probe);
}
