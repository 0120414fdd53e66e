# %% [markdown]
# # From random rackets to self-play, and on to an opponent that learns
#
# Two rackets, one ball, one net. At first the rackets move at random. At the end they keep rallies up until the clock
# stops them, and nobody ever showed them how. This tutorial goes the whole way: what a racket sees and is paid, an
# actor and a critic that learn from it (DDPG), self-play, what goes wrong when the other side learns too, a critic
# that sees both sides (MADDPG), and deep Q-learning (DQN) to compare with.
#
# You should know what a neural network and gradient descent are. Everything else is explained where it is first
# needed.
#
# The same text is a [script](tutorial.py), a [notebook](tutorial.ipynb) and a page with all results. Run it from top
# to bottom, from the folder of the repository:
#
# ```
# python docs/tutorial/tutorial.py                            # some minutes of one CPU core
# SPARRING_TUTORIAL=short python docs/tutorial/tutorial.py    # seconds; everything runs, nothing is learnt
# ```
#
# Runs are kept in `./runs` and continue where they stopped, so a second time is quick. All results on the page were
# printed by this script with seed 0 (`python docs/tutorial/pages.py` writes the page); the same torch version on the
# same kind of processor prints the same ones. `assert` lines hold what the text says: the script stops if one is no
# longer true.

# %%
import os
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

import sparring
from sparring.studies.figures import figures
from sparring.studies.staleness import staleness

SHORT = os.environ.get("SPARRING_TUTORIAL") == "short"
PICTURES = Path("runs/tutorial-pictures")
progress = Console(stderr=True)
torch.set_num_threads(1)  # networks this small are fastest on one core


def train(recipe, run, *, short, **settings):
    """`sparring.train`; the settings in `short` replace the others where this only has to run."""
    return sparring.train(recipe, run=run, console=progress, **(settings | short if SHORT else settings))


def show(pictures):
    """Pictures in a notebook, their names in a script."""
    for picture in pictures:
        if "get_ipython" in globals():
            from IPython.display import Image, display

            display(Image(picture))
        else:
            print(f"picture: {picture}")


# %% [markdown]
# ## 1. The court
#
# `sparring.make` gives a game. A game asks for **decisions**: its rows are the agents that must act now. On this
# court both rackets act at once, ten times a second. Racket B plays on the right and is agent 0, racket A on the left
# is agent 1.

# %%
court = sparring.make("tennis", seed=0)
rows = court.decisions()
print("agents:", rows.agent.tolist(), "observations:", list(rows.obs.shape))

# %% [markdown]
# ### What a racket sees
#
# What an agent is told is its **observation**. Here it is one frame of eight numbers: where the racket is, how fast
# it moves, where the ball is, and two more. Each racket sees the court mirrored, so that its own side is always
# negative: whatever works on the left then works on the right, too. The other racket is not in it.
#
# One frame does not say where the ball is going. So the last **three frames are stacked**, the oldest first: 24
# numbers. The ball's movement can be read from its three places. Let the rackets move at random and look.

# %%
random = torch.Generator().manual_seed(0)


def random_rackets(observations):
    """Two numbers for each observation, uniform in [-1, 1]: run (positive is towards the net), and jump (above 0.5)."""
    return 2 * torch.rand(len(observations), 2, generator=random) - 1


def frames(court):
    return court.decisions().obs[0].view(3, 8)


for _ in range(4):
    court.act(random_rackets(court.decisions().obs))
before = frames(court)
court.act(random_rackets(court.decisions().obs))
now = frames(court)
print("   x, y, vx, vy, ball x, ball y, and two more")
print(now.numpy().round(2))
assert torch.equal(now[:2], before[1:])  # what was new has become older
assert torch.equal(now[:, 6:], now[:, 2:4])  # the last two columns say nothing new

# %% [markdown]
# The last two numbers were meant to be the velocity of the ball. The program of 2018 that this court copies looks up
# the wrong body, and so they repeat the velocity of the racket. Many published results were made with that fault, so
# it is kept ([docs/tennis.md](../tennis.md)). All the better that there are three frames.
#
# ### What a racket is paid
#
# A racket gets 0.1 when the ball flies over the net after its stroke. It pays 0.01 when it lets the ball drop, or
# hits it into the net or a wall, and then the **rally** is over. (The program of 2018 has its quirks here, too, and
# they are kept.) Below is everything that random rackets are paid in 150 decisions.

# %%
court = sparring.make("tennis", seed=4)
for decision in range(150):
    outcome = court.act(random_rackets(court.decisions().obs))
    for agent, reward in zip(outcome.agent.tolist(), outcome.reward.tolist(), strict=True):
        if reward:
            print(f"decision {decision:3}: racket {'BA'[agent]} {reward:+.2f}")
    if len(outcome.ended):
        print(f"              rally over, scores B {outcome.score[0, 0]:+.2f}, A {outcome.score[0, 1]:+.2f}")

# %% [markdown]
# Nobody gains by winning. A racket earns most when the other one gives the ball back, so this game is a cooperative
# one in disguise. The **official score** of a rally is that of the better racket, and the game counts as solved when
# the mean of 100 rallies in a row reaches +0.5. How far are random rackets from that, and rackets that do nothing?


# %%
def idle_rackets(observations):
    return torch.zeros(len(observations), 2)


for player in (random_rackets, idle_rackets):
    played = sparring.evaluate(player, matches=1000, episodes=0)
    print(
        f"{player.__name__}: score {played.score:.4f} ({played.low:.4f} to {played.high:.4f}), "
        f"{played.length:.1f} decisions a rally"
    )
    assert played.score < 0.03

# %% [markdown]
# In parentheses: the 95% interval of the mean. Random rackets get the ball over the net now and then, by luck. That
# luck is all that a learner has to start from.
#
# ## 2. Self-play with DDPG
#
# Let the learner start now; it takes a minute or so of one core. The rest of this chapter explains what it does. A
# **recipe** is a file with all settings of a training; `tennis` is one of those that come with Sparring. This one
# stops 300 rallies after the game counts as solved.

# %%
self_play = train("tennis", "tutorial-self-play", stop_after_solved=300, short={"decisions": 4_000})


def told(result):
    solved = f"solved after {result.solved.match:,} rallies" if result.solved else "not solved"
    print(f"{result.matches:,} rallies, {result.updates:,} updates, {solved}; last 100 rallies: {result.score:.2f}")


told(self_play)
assert SHORT or self_play.solved

# %% [markdown]
# ### Actor and critic
#
# DDPG, *deep deterministic policy gradient*, has two networks.
#
# - The **actor** takes an observation, 24 numbers, and answers with an action, 2 numbers. It is the player.
# - The **critic** takes an observation and an action, 26 numbers, and answers with a value: how much will be paid
#   from here on, if this is done now and the actor decides later. Later pay counts less, by a factor of 0.99 a
#   decision, the **discount**.
#
# The critic learns from what happened. The actor learns from the critic: it moves its answer a little to where the
# critic says that more will be paid. That is all; the rest of the algorithm is there to keep it from falling over.
# These are the 24 numbers that the actor is given at one moment of a rally:

# %%
show(figures("tutorial-self-play", out=PICTURES, only=["frames"]))

# %% [markdown]
# ### Self-play: one actor in two rackets
#
# There is only one actor. It plays both rackets, each with its own mirrored view, and everything that either racket
# lives through goes into one memory. A good partner is needed to learn long rallies, and here the partner is always
# exactly as good as the learner.

# %%
actor = sparring.load("tutorial-self-play")
court = sparring.make("tennis", seed=0)
for _ in range(10):
    rows = court.decisions()
    court.act(actor.act(rows))
for agent, (run, jump) in zip(rows.agent.tolist(), actor.act(rows).tolist(), strict=True):
    print(f"racket {'BA'[agent]}: run {run:+.2f}, jump {jump:+.2f}")

# %% [markdown]
# ### Exploration: noise that drifts
#
# An actor that always does what it thinks best never finds out that something else is better. So noise is added to
# its answers while it learns. If it were new at each decision the racket would only tremble in place.
# **Ornstein-Uhlenbeck noise** remembers: each value is most of the last one plus a random step, so it pushes a racket
# in one direction for a while.

# %%
theta, sigma = 0.15, 0.15  # how fast it returns to zero, and how large its steps are
step = np.random.default_rng(0)
x, noise = 0.0, []
for _ in range(20_000):
    x = x - theta * x + sigma * step.normal()
    noise.append(x)
alike = np.corrcoef(noise[:-1], noise[1:])[0, 1]
print(f"spread {np.std(noise):.2f}; correlation with the value before {alike:.2f}")
assert abs(alike - (1 - theta)) < 0.02

# %% [markdown]
# ### Replay: learning from a memory
#
# Every decision is stored: what was seen, what was done, what was paid, what was seen next. That memory is the
# **replay**. For each **update** of the networks, 256 steps are drawn from it at random. Steps that follow each other
# resemble each other, and a network that is shown them in a row forgets everything else; drawn at random they are a
# fair sample of what was lived through. And each step is learnt from many times.
#
# What does the critic learn from one step? It is moved towards the **target**
#
# > y = reward + discount x (value of what comes next)
#
# where the value of what comes next is again the critic's own answer, for what the actor would do there. At the end
# of a rally nothing comes next, and the discount is 0. This recipe adds up the rewards of five decisions before it
# asks for a value, so that the pay for a stroke, which comes when the ball passes the net one or two seconds later,
# is known sooner. Below is a real step of this run: rewards count tenfold in this recipe, and the discount over five
# decisions is 0.99 to the power of 5.

# %%
show(figures("tutorial-self-play", out=PICTURES, only=["target"]))

# %% [markdown]
# ### Target networks: a slow copy
#
# The critic learns towards its own answers: a target that moves whenever the critic moves, and that can run away. So
# the target is computed with **slow copies** of actor and critic. At every update a share *tau* of the difference
# flows into the copies.

# %%
for tau in (0.005, 0.001):
    print(f"tau {tau}: half of the way takes {np.log(0.5) / np.log(1 - tau):.0f} updates")
show(figures("tutorial-self-play", out=PICTURES, only=["slow-copy"]))

# %% [markdown]
# ### Bursts: when to act and when to learn
#
# Acting and learning take turns. The best known recipe for this game, `tennis-classic`, plays 64 decisions and then
# makes 128 updates in one **burst**. Recipe `tennis` plays 16 courts side by side and makes one update after each
# decision of all of them: a thirty-second part of the updates for each decision.

# %%
show(figures("tutorial-self-play", out=PICTURES, only=["timeline"]))

# %% [markdown]
# ### Batch norm, and why acting must not use the batch
#
# `tennis-classic` has **batch norm** in its networks: numbers between layers are shifted and scaled so that over the
# batch their mean is 0 and their spread 1. Learning gets easier when inputs are of very different sizes. But in
# training mode the answer for one observation then depends on which others are in the batch:

# %%
norm = torch.nn.BatchNorm1d(1)
left, middle, right = torch.tensor([[-7.0]]), torch.tensor([[-6.5]]), torch.tensor([[-2.0]])


def normed_middle(other):
    return norm(torch.cat([other, middle]))[1].item()


with torch.no_grad():
    beside_left, beside_right = normed_middle(left), normed_middle(right)
    norm.eval()
    assert normed_middle(left) == normed_middle(right)
print(f"-6.5 beside -7 becomes {beside_left:+.2f}, beside -2 {beside_right:+.2f}; in evaluation mode always the same")

# %% [markdown]
# So an actor that plays must be in evaluation mode, where the running means of training are used, and those must
# reach the target networks, too; to forget either is a classic fault. Recipe `tennis` does without batch norm; with
# it, it learnt slower ([docs/experiments.md](../experiments.md)).
#
# ### Did it learn?
#
# The curve shows every rally, and the mean of the last 100. It is typical: long nothing, then a steep rise. During
# training there is noise in the actions, so we also measure without.

# %%
show(figures("tutorial-self-play", out=PICTURES, only=["curve"]))
alone = sparring.evaluate("tutorial-self-play", matches=100, episodes=0)
print(f"without noise: {alone.score:.2f} ({alone.low:.2f} to {alone.high:.2f}), {alone.length:.0f} decisions a rally")
print(f"cut by the time limit of 1,001 decisions: {alone.capped:.0%} of the rallies")
assert SHORT or alone.score > 1.0

# %% [markdown]
# What are scores made of? Below is the account of a few rallies of this actor with strong noise added, event by
# event, and then the scores of many rallies by the number of balls over the net. A racket that got n balls over the
# net has 0.1 n, and 0.01 less if it was the one to drop the last.

# %%
show(figures("tutorial-self-play", out=PICTURES, only=["ledger", "clears"]))

# %% [markdown]
# And since the game is a cooperative one, the best actor is worth little beside a partner that plays at random:

# %%
mixed = sparring.evaluate("tutorial-self-play", opponent=random_rackets, matches=100, episodes=0)
print(f"beside a random racket: {mixed.score:.2f} ({mixed.low:.2f} to {mixed.high:.2f})")
assert SHORT or mixed.score < alone.score / 2

# %% [markdown]
# ## 3. The other side learns, too
#
# What is stored in the replay says: *here, after this, that came back*. It came back because the other racket was
# where it was. But the other racket is the learner, too, and is not there any more. What was true when it was stored
# is less and less true. To a learner its opponent is a part of the world, and that part moves: the world is **not
# stationary**, and the memory of it grows **stale**.
#
# How much does that matter? Let us measure. We stop a self-play run early and let it go on in two ways that differ in
# one thing only. In the first the opponent is **frozen**: it stays as it is for ever. In the second it **follows**
# the learner closely, nearly as in self-play. In both, only one racket learns.

# %%
start = train("tennis", "tutorial-start", solved_score=0.2, stop_after_solved=1, short={"decisions": 4_000})
print(f"start: {start.matches:,} rallies, {start.updates:,} updates; last 100 rallies: {start.score:.2f}")
few = {"decisions": 3_200, "ddpg.learn_from": 1_000, "against.keep_every": 25}
for pace in ("frozen", "fast"):
    one_side = train(f"tennis-{pace}", f"tutorial-{pace}", short=few, **{"against.run": "tutorial-start"})
    print(f"{pace}: {one_side.updates:,} more updates; last 100 rallies: {one_side.score:.2f}")

# %% [markdown]
# Now a judge. A critic is fitted to new rallies of the learner and its opponent as both are *now*; so it knows what
# is true now. How far is it off, on average, on something that was stored? That distance from the target is the **TD
# error** (temporal difference). On new rallies it is some number, which we call 1.
#
# - Left: steps of the replay by their age. They are also older because the learner itself has changed since; the
#   frozen opponent shows how much that is.
# - Middle: new rallies of the learner of now against the opponent *as it was then*. All that differs is the opponent,
#   so a frozen one gives exactly 1.
# - Right: what that does to a memory: the average step of buffers of different sizes.

# %%
measure = {"fresh": 16_000, "fit": 1_000, "width": 500}
if SHORT:
    measure = {"fresh": 1_000, "fit": 50, "width": 40, "sizes": (1_000, 2_000)}
study = staleness(["tutorial-frozen", "tutorial-fast"], out=PICTURES / "staleness.png", **measure)
show([PICTURES / "staleness.png"])
frozen, fast = study.groups


def oldest(points):
    point = max(points, key=lambda point: point.at)
    return f"{point.ratio:.2f} ({point.low:.2f} to {point.high:.2f}), {point.at:,.0f} updates ago"


print("frozen, what is stored:    ", oldest(frozen.stored))
print("fast, what is stored:      ", oldest(fast.stored))
print("fast, the opponent of then:", oldest(fast.opponent_of))
assert all(point.ratio == 1.0 for point in frozen.opponent_of)

# %% [markdown]
# Two things can be read from the runs on this page. First, an opponent that learns does make old rallies wrong:
# against the opponent of long ago the same learner is off by more than against that of today, and the interval does
# not reach down to 1. Second, that is not the whole story: what is stored grows wrong beside a frozen opponent, too,
# and as much. The learner itself has changed: it stood elsewhere then, in situations that new rallies hardly contain.
#
# And it did no visible harm here. The learner beside the fast opponent reached the higher score in the same number of
# updates, perhaps because in a game like this one a partner that gets better is the better partner. One run of each
# cannot prove that. The study, with a third opponent and all its data, is [docs/staleness.md](../staleness.md).
#
# What can be done about it? Keep a smaller memory; let the opponent change slowly, or step by step (recipes
# `tennis-slow`, `tennis-ladder`); guess what the other does (`tennis-predict`); or tell the critic what the other
# does. That last one is the next chapter.
#
# ## 4. MADDPG: a critic that sees everybody
#
# Take the smallest game in which this matters: two agents each choose -1 or +1, and both are paid the product. The
# other one chooses at random. What is my choice worth?

# %%
choice = np.random.default_rng(1)
mine, other = choice.choice([-1, 1], 10_000), choice.choice([-1, 1], 10_000)
pay = mine * other
own_critic = sum(((pay - pay[mine == a].mean()) ** 2)[mine == a].sum() for a in (-1, 1)) / len(pay)
central_critic = sum(
    ((pay - pay[both].mean()) ** 2)[both].sum()
    for both in ((mine == a) & (other == b) for a in (-1, 1) for b in (-1, 1))
) / len(pay)
print(f"mean squared error: told of my choice {own_critic:.2f}, told of both choices {central_critic:.2f}")
assert own_critic > 0.99 and central_critic == 0

# %% [markdown]
# To a critic that knows only my choice the pay is noise, and no amount of learning makes it less. And if the other
# one changes its ways, all that this critic has learnt is wrong. A critic that is told both choices has nothing left
# to guess, and what it knows stays true *whatever* the other one does. (In games of many decisions, what comes later
# still depends on what the others will do then; but what they do now is no longer a riddle.)
#
# That is the idea of **MADDPG** (Lowe and others, 2017): every agent has an actor of its own, which sees only what
# that agent sees, and a **central critic**, which sees what all see and do. Critics are needed in training alone, so
# nobody cheats when it counts. On this court a critic is told 52 numbers instead of 26.

# %%
show(figures("tutorial-self-play", out=PICTURES, only=["critic-inputs"]))
few = {"decisions": 1_600, "maddpg.warmup": 500, "maddpg.learn_from": 500}
maddpg = train("tennis-maddpg", "tutorial-maddpg", stop_after_solved=300, short=few)
told(maddpg)
team = sparring.load("tutorial-maddpg")
view = rows.obs[0]
for agent in (0, 1):
    run, jump = team.of(agent).act(view).tolist()
    print(f"the same view, shown to the actor of racket {'BA'[agent]}: run {run:+.2f}, jump {jump:+.2f}")
assert not torch.equal(team.of(0).act(view), team.of(1).act(view))

# %% [markdown]
# There are two actors now, and they are not the same. Each learns from its own racket alone, so from one decision of
# the court an actor gets half of what the shared one gets, and an update trains four networks instead of two. MADDPG
# was made for agents that differ: one that sees the goal and can only speak, say, and another that hears it and can
# only walk. Such games are in [docs/marl.md](../marl.md). Two rackets that are mirror images of each other have the
# least use for it.
#
# ## 5. DQN: rate every choice
#
# **Deep Q-learning** is older and simpler, and does without an actor. One network takes an observation and gives a
# value for *every* choice at once; the best one is played. So there must be a list of choices, and the court's two
# numbers have to be cut into one: recipe `tennis-dqn` runs at one of five speeds and jumps or not, ten choices. To
# explore, a share of the choices is random: all at first, 2% later. Replay, targets, slow copy and self-play are as
# before.

# %%
dqn = train("tennis-dqn", "tutorial-dqn", stop_after_solved=300, short={"decisions": 4_000})
told(dqn)
show(figures("tutorial-self-play", dqn="tutorial-dqn", out=PICTURES, only=["one-action"]))

# %% [markdown]
# On the left ten values for one view, the best in orange: they differ by little, since much can still be put right
# after one poor choice. In the middle what the actor of chapter 2 answers to the same view. On the right that actor
# again, for both rackets.
#
# ## 6. Side by side

# %%
runs = ["tutorial-self-play", "tutorial-maddpg", "tutorial-dqn"]
comparison = sparring.compare(runs, out=PICTURES / "comparison.png")
show([comparison.picture])
print("run                   solved after  last 100  without noise")
for info in comparison.runs:
    solved = f"{info.solved.match:,} rallies" if info.solved else "not solved"
    greedy = sparring.evaluate(info.run, matches=100, episodes=0)
    print(f"{info.run:20} {solved:>13} {info.score:9.2f}  {greedy.score:.2f} ({greedy.low:.2f} to {greedy.high:.2f})")

# %% [markdown]
# The first column counts rallies until the mean of 100 reached +0.5. The second is that mean 300 rallies later, with
# the noise of training; the third is measured without.
#
# All three learn this game. Which one is best cannot be said from one seed each: ten seeds of recipe `tennis` alone
# needed from 914 to 3,968 rallies ([docs/experiments.md](../experiments.md)). What can be said is that this game can
# be learnt without a central critic; that ten choices are enough to play well, so that DQN, without any actor, is a
# serious rival; and that the last two columns must not be mixed up: noise in the actions costs strokes, and each
# recipe has its own.
#
# ## Where to go from here
#
# - Watch it: `sparring play tutorial-self-play`.
# - Change one thing and compare: `sparring.train("tennis", run="bold", ddpg={"noise_sigma": 0.3})`, then
#   `sparring.compare(["tutorial-self-play", "bold"])`. One seed proves little: use several.
# - Take the penalty on the actor's outputs away (`ddpg={"logit_penalty": 0.0}`) and see what seeds 0, 1 and 2 do.
# - Change what is paid: [examples/own_reward.py](../../examples/own_reward.py). Bring a game of your own:
#   [examples/own_pettingzoo.py](../../examples/own_pettingzoo.py).
# - How the algorithms work in detail: [docs/tennis-training.md](../tennis-training.md), [docs/marl.md](../marl.md);
#   the study of old rallies: [docs/staleness.md](../staleness.md); all measurements:
#   [docs/experiments.md](../experiments.md).
