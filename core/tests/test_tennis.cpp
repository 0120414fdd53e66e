// The court and its random numbers under the sanitizers: courts at extremes, long random play, known
// answers. Rules are tested from Python, against a second implementation; here is what a sanitizer or a compiled loop
// sees better.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "check.h"
#include "common/rng.h"
#include "tennis/court.h"

namespace {

using namespace sparring;
using namespace sparring::tennis;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

bool equal(const Philox& block, u32 a, u32 b, u32 c, u32 d) {
  return block.word[0] == a && block.word[1] == b && block.word[2] == c && block.word[3] == d;
}

// The published answers of Philox4x32-10: all zeros, all ones, digits of pi.
void philox_gives_its_published_answers() {
  CHECK(equal(philox(0, 0, 0, 0, 0), 0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  const u32 ones = 0xffffffffu;
  CHECK(equal(philox(~0ull, ones, ones, ones, ones), 0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  CHECK(equal(philox(0x299f31d0a4093822ull, 0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u), 0xd16cfe09u,
              0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

// The sequence of SplitMix64 from seed 0.
void mix64_gives_its_published_answers() {
  CHECK(mix64(0) == 0xE220A8397B1DCDAFull);
  CHECK(mix64(0x9E3779B97F4A7C15ull) == 0x6E789E6AA1B965F4ull);
}

void normals_are_finite_at_the_edges_of_their_words() {
  for (const u32 a : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    for (const u32 b : {0u, 1u, 0x40000000u, 0x80000000u, 0xffffffffu}) {
      float first = kNotANumber, second = kNotANumber;
      box_muller(a, b, first, second);
      CHECK(std::isfinite(first) && std::isfinite(second));
      CHECK(first * first + second * second < 46.2f);  // -2 ln(2^-33) at most
    }
  }
}

void places_stay_within_their_range() {
  Xorshift rng = Xorshift::from_seed(0);
  CHECK(rng.s[1] == 1u && rng.s[2] == 1812433254u);
  for (int i = 0; i < 100000; ++i) {
    const float x = rng.range(6.0f, 8.0f);
    CHECK(x >= 6.0f && x <= 8.0f);
  }
}

bool finite(const float* values, int n) {
  for (int i = 0; i < n; ++i) {
    if (!std::isfinite(values[i])) return false;
  }
  return true;
}

bool inside(const Body& body, float x, float low, float high) {
  return std::isfinite(body.vx) && std::isfinite(body.vy) && std::fabs(body.x) <= x && body.y >= low && body.y <= high;
}

// All that a court holds is finite, in its place, and its flags are flags.
bool sound(const Court& c) {
  const bool placed = inside(c.ball, 13.5f, -4.5f, 30.0f) && inside(c.racket[A], 12.5f, -2.5f, 3.0f) &&
                      inside(c.racket[B], 12.5f, -2.5f, 3.0f);
  const bool numbers = finite(c.stack[0], 2 * kObservation) && finite(c.last[0], 2 * kObservation) &&
                       finite(c.action[0], 4) && finite(c.pending, 2) && finite(c.score, 2);
  const bool flags = c.over <= 1 && c.touching[0] <= 1 && c.touching[1] <= 1 && c.ended <= 1;
  const bool between_decisions =
      c.done == 0 && c.max_reached == 0 && c.last_kept == 0 && c.pending[A] == 0.0f && c.pending[B] == 0.0f;
  return placed && numbers && flags && between_decisions && c.last_toucher >= kNobody && c.last_toucher <= B;
}

// Actions of many characters, keyed by lane and decision: mild, extreme, and not numbers at all.
void draw_actions(u32 lane, u32 decision, float (&actions)[4]) {
  const Philox block = philox(stream_key(7, 0), lane, decision, 0, 0);
  for (int i = 0; i < 4; ++i) {
    const float uniform = static_cast<float>(block.word[i] >> 8) / 8388608.0f - 1.0f;
    actions[i] = lane % 3 == 0 ? uniform : (lane % 3 == 1 ? (uniform < 0.0f ? -1.0f : 1.0f) : 4.0f * uniform);
    if (lane % 5 == 4 && block.word[i] % 16u == 0u) actions[i] = uniform < 0.0f ? -kInfinity : kNotANumber;
  }
}

void a_hundred_thousand_random_decisions_stay_sound() {
  for (u32 lane = 0; lane < 20; ++lane) {
    const bool true_velocity = lane % 2 == 1;
    Court c;
    start_scene(c, lane * 7919u, true_velocity);
    int rallies = 0;
    for (u32 decision = 0; decision < 5000; ++decision) {
      float actions[4], trace[6 * kStepsPerDecision];
      draw_actions(lane, decision, actions);
      const Report report = decide(c, actions, true_velocity, trace);
      CHECK(sound(c) && finite(trace, 6 * kStepsPerDecision));
      CHECK(report.reward[0] >= -0.011f && report.reward[0] <= 0.21f && report.reward[1] >= -0.011f &&
            report.reward[1] <= 0.21f);
      rallies += report.done;
      if (report.done ? lane % 4 == 0 : decision % 97 == 0) {
        reset(c, true_velocity);
        CHECK(sound(c));
      }
    }
    CHECK(rallies > 100);
  }
}

// The ball anywhere in or at a racket, at any speed, exactly on corners and centres too: always a unit normal, no NaN.
void contacts_have_a_direction_everywhere() {
  for (int which = 0; which < 2; ++which) {
    Court start;
    start_scene(start, 1, false);
    const Body racket = start.racket[which];
    const float m = side(which);
    for (int iu = -20; iu <= 20; ++iu) {
      for (int iv = -20; iv <= 20; ++iv) {
        // Multiples of a quarter of the box's half sizes, so that centre, faces and corners are among them.
        const float u = kRacketHalfThickness * static_cast<float>(iu) / 4.0f;
        const float v = kRacketHalfLength * static_cast<float>(iv) / 4.0f;
        for (const float speed : {0.0f, 9.0f, -9.0f, 1e6f}) {
          Court c = start;
          c.ball.x = racket.x + m * (u * kTiltCos - v * kTiltSin - kColliderX);
          c.ball.y = racket.y + u * kTiltSin + v * kTiltCos + kColliderY;
          c.ball.vx = speed;
          c.ball.vy = -speed;
          const Contact k = ball_against_racket(c.ball, c.racket[which], which);
          CHECK(std::fabs(k.nx * k.nx + k.ny * k.ny - 1.0f) < 1e-4f);
          CHECK(std::isfinite(k.gap) && k.gap >= -kBallRadius - kRacketHalfThickness - 1e-4f);
          const float actions[4] = {1.0f, 1.0f, -1.0f, 1.0f};
          decide(c, actions, true, nullptr);
          CHECK(finite(c.stack[0], 2 * kObservation) && finite(&c.ball.x, 1) && finite(&c.ball.y, 1));
        }
      }
    }
  }
}

// A racket driven into the wall, the net and the floor for long stays where it belongs, also when it is put inside
// them.
void rackets_come_back_from_anywhere() {
  for (const float x : {-13.5f, -11.5f, -0.4f, 3.0f}) {
    for (const float y : {-4.0f, -1.9f, 2.0f}) {
      Court c;
      start_scene(c, 5, false);
      c.racket[A] = Body{x, y, -1e6f, -9.0f};
      c.racket[B] = Body{-x, y, 1e6f, -9.0f};
      c.ball = Body{0.0f, 25.0f, 0.0f, 9.0f};
      const float actions[4] = {-1.0f, 0.0f, -1.0f, 0.0f};
      for (int decision = 0; decision < 20; ++decision) decide(c, actions, false, nullptr);
      CHECK(std::fabs(c.racket[A].x + 10.90f) < 0.01f && std::fabs(c.racket[B].x - 10.90f) < 0.01f);
      CHECK(std::fabs(c.racket[A].y + 1.852f) < 0.001f && std::fabs(c.racket[B].y + 1.852f) < 0.001f);
    }
  }
}

void counters_at_their_limits_end_rallies() {
  Court c;
  const float idle[4] = {};
  start_scene(c, 3, false);
  c.agent_steps = kAgentMaxSteps - 5;
  CHECK(decide(c, idle, false, nullptr).done == 0);
  const Report cut = decide(c, idle, false, nullptr);
  CHECK(cut.done == 1 && cut.max_reached == 1 && cut.global_done == 0);
  CHECK(c.agent_steps == 0);
  c.academy_steps = kAcademyMaxSteps - 5;
  const Report over = decide(c, idle, false, nullptr);
  CHECK(over.done == 1 && over.max_reached == 1 && over.global_done == 1);
  CHECK(decide(c, idle, false, nullptr).global_done == 0);
}

// A court is a pure function of its bytes: copies continue alike, and no byte (padding included) differs by chance.
void equal_courts_stay_equal_in_every_byte() {
  Court first, second;
  std::memset(static_cast<void*>(&first), 0x00, sizeof first);
  std::memset(static_cast<void*>(&second), 0x00, sizeof second);
  start_scene(first, 11, false);
  start_scene(second, 11, false);
  for (u32 decision = 0; decision < 500; ++decision) {
    float actions[4];
    draw_actions(1, decision, actions);
    decide(first, actions, false, nullptr);
    float trace[6 * kStepsPerDecision];
    decide(second, actions, false, trace);
    if (decision == 250) std::memcpy(static_cast<void*>(&second), &first, sizeof first);
    CHECK(std::memcmp(&first, &second, sizeof first) == 0);
  }
}

}  // namespace

int main() {
  philox_gives_its_published_answers();
  mix64_gives_its_published_answers();
  normals_are_finite_at_the_edges_of_their_words();
  places_stay_within_their_range();
  a_hundred_thousand_random_decisions_stay_sound();
  contacts_have_a_direction_everywhere();
  rackets_come_back_from_anywhere();
  counters_at_their_limits_end_rallies();
  equal_courts_stay_equal_in_every_byte();
  return verdict("tennis");
}
