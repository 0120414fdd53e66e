// One tennis court of the 2018 Tennis binary (Udacity build, ML-Agents v0.4), reproduced in two dimensions, quirks
// included.
//
// A decision is five physics steps of 0.02 s. Racket 0 in every public array is B (right side, mirrored view), racket 1
// is A; inside this file A = 0 and B = 1, as in the binary's own code. docs/tennis.md gives the rules and where they
// come from.
#pragma once

#include "../common/rng.h"
#include "../common/target.h"

namespace sparring::tennis {

constexpr float kStepSeconds = 0.02f;
constexpr float kGravity = 9.81f;
constexpr int kStepsPerDecision = 5;
constexpr int kAgentMaxSteps = 5000;     // physics steps; reported at decision 1001
constexpr int kAcademyMaxSteps = 25000;  // physics steps since the last reset

constexpr float kBallRadius = 0.5f;
constexpr float kBallMass = 0.75f;
constexpr float kBallMaxSpeed = 9.0f;  // per axis, limited before each physics step
constexpr float kRacketMass = 4.0f;
constexpr float kRacketHalfThickness = 0.55f;
constexpr float kRacketHalfLength = 0.9375f;
constexpr float kTiltCos = 0.57357644f;  // 55 degrees
constexpr float kTiltSin = 0.81915204f;
constexpr float kColliderX = 0.2868f;   // of the collider's centre, away from the net
constexpr float kColliderY = -0.4096f;  // the same for both rackets
constexpr float kRacketFoot = 1.398f;   // lowest corner below the transform
constexpr float kRacketBack = 1.3703f;  // hindmost corner behind the transform

constexpr float kFloorTop = -3.25f;
constexpr float kWallFace = 12.27f;
constexpr float kNetHalfWidth = 0.05f;
constexpr float kNetTop = -1.0f;
constexpr float kOverBottom = -1.0f;  // the trigger plane above the net
constexpr float kOverTop = 9.0f;

constexpr float kContactGap = 0.02f;      // two contact offsets of 0.01
constexpr float kBounceThreshold = 2.0f;  // slower approaches do not bounce
constexpr float kPushShare = 0.8f;        // of the penetration is removed per step,
constexpr float kPushLimit = 0.2f;        // at 10 units per second at most

constexpr float kRunSpeed = 30.0f;
constexpr float kJumpSpeed = 7.0f;
constexpr float kJumpBelow = -1.5f;
constexpr float kNetClamp = 1.0f;  // rackets are set back to this distance from the net

constexpr int kFrame = 8;
constexpr int kStack = 3;
constexpr int kObservation = kFrame * kStack;
constexpr int A = 0, B = 1, kNobody = -1;

// +1 for A and -1 for B: each racket sees the court with its own side negative.
SPARRING_FN float side(int racket) { return racket == A ? 1.0f : -1.0f; }

struct Body {
  float x, y, vx, vy;
};

struct Court {
  Xorshift rng;
  Body ball;
  Body racket[2];
  float action[2][2];            // held until the next decision
  float stack[2][kObservation];  // oldest frame first
  float last[2][kObservation];   // what the rackets would have seen when the rally ended
  float pending[2];              // reward since the last decision
  float score[2];                // reward since the rally's start; stays readable until the next decision after an end
  i32 length;                    // decisions of the rally, kept likewise
  i32 last_toucher;
  i32 agent_steps, academy_steps;
  u8 touching[2];  // ball against racket at the previous physics step
  u8 over;         // ball inside the plane above the net at the previous physics step
  u8 done, max_reached, last_kept, ended;
};

// What one decision reports; index 0 is B, 1 is A.
struct Report {
  float reward[2];
  u8 done, max_reached, global_done;
};

SPARRING_FN void serve(Court& c) {
  const float x = c.rng.range(6.0f, 8.0f);
  const bool left = c.rng.next() % 2u == 0u;
  c.ball = Body{left ? -x : x, 6.0f, 0.0f, 0.0f};
  c.last_toucher = kNobody;
}

SPARRING_FN void reset_racket(Court& c, int racket) {
  c.racket[racket] = Body{-side(racket) * c.rng.range(6.0f, 8.0f), -1.5f, 0.0f, 0.0f};
  for (int i = 0; i < kObservation; ++i) c.stack[racket][i] = 0.0f;
}

SPARRING_FN void reset_rackets(Court& c) {
  reset_racket(c, B);
  reset_racket(c, A);
  c.agent_steps = 0;
}

// Entries 6 and 7 repeat the racket's own velocity: the binary looks up the wrong body. `true_velocity` is our variant
// without that fault.
SPARRING_FN void push_frame(const Court& c, int racket, bool true_velocity, const float* from, float* to) {
  for (int i = 0; i < kObservation - kFrame; ++i) to[i] = from[i + kFrame];
  const float m = side(racket);
  const Body& own = c.racket[racket];
  const Body& last = true_velocity ? c.ball : own;
  float* frame = to + kObservation - kFrame;
  frame[0] = m * own.x;
  frame[1] = own.y;
  frame[2] = m * own.vx;
  frame[3] = own.vy;
  frame[4] = m * c.ball.x;
  frame[5] = c.ball.y;
  frame[6] = m * last.vx;
  frame[7] = last.vy;
}

// The binary never shows the end of a rally: its next frame is already the next rally's. Learners that bootstrap need
// it.
SPARRING_FN void keep_last(Court& c, bool true_velocity) {
  if (c.last_kept) return;
  push_frame(c, A, true_velocity, c.stack[A], c.last[A]);
  push_frame(c, B, true_velocity, c.stack[B], c.last[B]);
  c.last_kept = 1;
}

// The ball leaves the plane above the net. Whoever is charged, A counts as the last toucher from here on: the binary's
// own fault.
SPARRING_FN void ball_passed_net(Court& c) {
  c.pending[c.last_toucher == A ? A : B] += 0.1f;
  c.last_toucher = A;
}

SPARRING_FN void end_rally(Court& c, int loser, bool true_velocity) {
  c.pending[loser] += -0.01f;
  c.pending[1 - loser] = 0.0f;  // a +0.1 earned in the same window is lost
  keep_last(c, true_velocity);
  c.done = 1;
  serve(c);
}

struct Contact {
  float nx, ny;  // from racket to ball
  float gap;     // negative when they overlap
};

SPARRING_FN Contact ball_against_racket(const Body& ball, const Body& racket, int which) {
  const float m = side(which);
  const float dx = m * (ball.x - racket.x) + kColliderX;
  const float dy = ball.y - racket.y - kColliderY;
  // Into the box's own axes: u across the face (towards net and sky), v along it.
  const float u = dx * kTiltCos + dy * kTiltSin;
  const float v = -dx * kTiltSin + dy * kTiltCos;
  const float cu = clamp32(u, -kRacketHalfThickness, kRacketHalfThickness);
  const float cv = clamp32(v, -kRacketHalfLength, kRacketHalfLength);
  float nu, nv, distance;
  if (cu == u && cv == v) {  // the centre is inside: leave through the nearest face
    const float out_u = kRacketHalfThickness - abs32(u);
    const float out_v = kRacketHalfLength - abs32(v);
    const bool across = out_u < out_v;
    nu = across ? (u < 0.0f ? -1.0f : 1.0f) : 0.0f;
    nv = across ? 0.0f : (v < 0.0f ? -1.0f : 1.0f);
    distance = -(across ? out_u : out_v);
  } else {
    distance = sqrt32((u - cu) * (u - cu) + (v - cv) * (v - cv));
    nu = (u - cu) / distance;
    nv = (v - cv) / distance;
  }
  return Contact{m * (nu * kTiltCos - nv * kTiltSin), nu * kTiltSin + nv * kTiltCos, distance - kBallRadius};
}

SPARRING_FN float push_out(float gap) { return gap < 0.0f ? min32(kPushShare * -gap, kPushLimit) : 0.0f; }

// Floor and back wall stop a racket; neither bounces it.
SPARRING_FN bool racket_against_court(Body& racket, int which, float& push_x, float& push_y) {
  const float m = side(which);
  const float wall_gap = m * racket.x - kRacketBack + kWallFace;
  if (wall_gap <= kContactGap) {
    const float slowest = -max32(wall_gap, 0.0f) / kStepSeconds;
    racket.vx = m * max32(m * racket.vx, slowest);
    push_x += m * push_out(wall_gap);
  }
  const float floor_gap = racket.y - kRacketFoot - kFloorTop;
  if (floor_gap > kContactGap) return false;
  racket.vy = max32(racket.vy, -max32(floor_gap, 0.0f) / kStepSeconds);
  push_y += push_out(floor_gap);
  return true;
}

SPARRING_FN bool ball_over_net(const Body& ball) {
  const float dy = max32(max32(kOverBottom - ball.y, ball.y - kOverTop), 0.0f);
  return ball.x * ball.x + dy * dy < kBallRadius * kBallRadius;
}

// Who loses the rally because the ball touches wall, net or floor now; kNobody while it flies.
SPARRING_FN int rally_loser(const Body& ball, int last_toucher) {
  const float reach = kBallRadius + kContactGap;
  const float net_dx = max32(abs32(ball.x) - kNetHalfWidth, 0.0f);
  const float net_dy = max32(ball.y - kNetTop, 0.0f);
  const bool wall = abs32(ball.x) >= kWallFace - reach;
  const bool net = net_dx * net_dx + net_dy * net_dy <= reach * reach;
  if (wall || net) return last_toucher == A ? A : B;
  if (ball.y <= kFloorTop + reach) return ball.x < 0.0f ? A : B;
  return kNobody;
}

// Positions of ball, A, B: six floats that a picture needs.
SPARRING_FN void bodies(const Court& c, float* out) {
  out[0] = c.ball.x;
  out[1] = c.ball.y;
  out[2] = c.racket[A].x;
  out[3] = c.racket[A].y;
  out[4] = c.racket[B].x;
  out[5] = c.racket[B].y;
}

// One fixed update after the decision point: held action, speed limits, physics, callbacks. `trace` (6 floats) may be
// null.
SPARRING_FN void physics_step(Court& c, bool true_velocity, float* trace) {
  for (int r = 0; r < 2; ++r) {
    Body& racket = c.racket[r];
    const float m = side(r);
    if (c.action[r][1] > 0.5f && racket.y < kJumpBelow) racket.vy = kJumpSpeed;
    racket.vx = kRunSpeed * c.action[r][0] * m;
    if (m * racket.x > -kNetClamp) racket.x = -m * kNetClamp;
  }
  if (c.agent_steps >= kAgentMaxSteps) c.done = c.max_reached = 1;
  c.agent_steps += 1;
  c.academy_steps += 1;
  c.ball.vx = clamp32(c.ball.vx, -kBallMaxSpeed, kBallMaxSpeed);
  c.ball.vy = clamp32(c.ball.vy, -kBallMaxSpeed, kBallMaxSpeed);

  // Contacts and triggers are found where the bodies stand before they move (discrete detection).
  const Body found = c.ball;
  const bool over = ball_over_net(found);
  Contact contact[2];
  for (int r = 0; r < 2; ++r) contact[r] = ball_against_racket(c.ball, c.racket[r], r);

  float ball_push_x = 0.0f, ball_push_y = 0.0f;
  c.ball.vy -= kGravity * kStepSeconds;
  for (int r = 0; r < 2; ++r) {
    Body& racket = c.racket[r];
    float push_x = 0.0f, push_y = 0.0f;
    racket.vy -= kGravity * kStepSeconds;
    const bool grounded = racket_against_court(racket, r, push_x, push_y);
    const Contact& k = contact[r];
    if (k.gap <= kContactGap) {
      // A racket on the floor yields sideways only.
      const float inverse_y = grounded ? 0.0f : 1.0f / kRacketMass;
      const float inverse_x = 1.0f / kRacketMass;
      const float inverse_sum = 1.0f / kBallMass + k.nx * k.nx * inverse_x + k.ny * k.ny * inverse_y;
      const float approach = (c.ball.vx - racket.vx) * k.nx + (c.ball.vy - racket.vy) * k.ny;
      const float closing = -max32(k.gap, 0.0f) / kStepSeconds;
      float wanted = max32(approach, closing);
      if (-approach > kBounceThreshold && approach < closing) wanted = -approach;
      const float impulse = (wanted - approach) / inverse_sum;
      c.ball.vx += impulse * k.nx / kBallMass;
      c.ball.vy += impulse * k.ny / kBallMass;
      racket.vx -= impulse * k.nx * inverse_x;
      racket.vy -= impulse * k.ny * inverse_y;
      const float push = push_out(k.gap) / inverse_sum;
      ball_push_x += push * k.nx / kBallMass;
      ball_push_y += push * k.ny / kBallMass;
      push_x -= push * k.nx * inverse_x;
      push_y -= push * k.ny * inverse_y;
    }
    racket.x += racket.vx * kStepSeconds + push_x;
    racket.y += racket.vy * kStepSeconds + push_y;
  }
  c.ball.x += c.ball.vx * kStepSeconds + ball_push_x;
  c.ball.y += c.ball.vy * kStepSeconds + ball_push_y;
  if (trace != nullptr) bodies(c, trace);

  for (int r = 0; r < 2; ++r) {
    const u8 touching = contact[r].gap <= kContactGap ? 1 : 0;
    if (touching && !c.touching[r]) c.last_toucher = r;
    c.touching[r] = touching;
  }
  if (c.over && !over) ball_passed_net(c);
  c.over = over ? 1 : 0;
  const int loser = rally_loser(found, c.last_toucher);
  if (loser != kNobody) end_rally(c, loser, true_velocity);
}

// The decision point: rackets of an ended rally are reset, the new frame is seen, rewards are handed over.
SPARRING_FN Report observe(Court& c, bool true_velocity) {
  Report report{};
  if (c.academy_steps >= kAcademyMaxSteps) {
    report.global_done = c.done = c.max_reached = 1;
    c.academy_steps = 0;
  }
  if (c.done) {
    keep_last(c, true_velocity);
    reset_rackets(c);
  }
  push_frame(c, A, true_velocity, c.stack[A], c.stack[A]);
  push_frame(c, B, true_velocity, c.stack[B], c.stack[B]);
  report.done = c.done;
  report.max_reached = c.max_reached;
  report.reward[0] = c.pending[B];
  report.reward[1] = c.pending[A];
  for (int r = 0; r < 2; ++r) {
    c.score[r] += c.pending[r];
    c.pending[r] = 0.0f;
  }
  c.ended = c.done;
  c.done = c.max_reached = c.last_kept = 0;
  return report;
}

SPARRING_FN void start_rally(Court& c) {
  c.score[A] = c.score[B] = 0.0f;
  c.length = 0;
  c.ended = 0;
}

// A fresh scene, as when the binary starts with this seed.
SPARRING_FN Report start_scene(Court& c, u32 seed, bool true_velocity) {
  c = Court{};
  c.rng = Xorshift::from_seed(seed);
  serve(c);
  reset_rackets(c);
  return observe(c, true_velocity);
}

// `env.reset()` of the 2018 API: one more physics step with the held action, then rackets and stacks start anew.
// Neither the ball nor the last toucher is touched.
SPARRING_FN Report reset(Court& c, bool true_velocity) {
  physics_step(c, true_velocity, nullptr);
  c.academy_steps = 0;
  reset_rackets(c);
  const Report report = observe(c, true_velocity);
  start_rally(c);
  return report;
}

// One decision: `actions` is [B, A][run, jump]. `trace` holds kStepsPerDecision x 6 floats or is null.
SPARRING_FN Report decide(Court& c, const float* actions, bool true_velocity, float* trace) {
  if (c.ended) start_rally(c);
  for (int i = 0; i < 2; ++i) {
    c.action[B][i] = clamp32(actions[i], -1.0f, 1.0f);
    c.action[A][i] = clamp32(actions[2 + i], -1.0f, 1.0f);
  }
  c.length += 1;
  for (int step = 0; step < kStepsPerDecision; ++step) {
    physics_step(c, true_velocity, trace == nullptr ? nullptr : trace + 6 * step);
  }
  return observe(c, true_velocity);
}

}  // namespace sparring::tennis
