"""The loop of the 2018 course notebooks, unchanged but for its import line.

    python examples/tutorial_loop.py                      on the built-in court
    python examples/tutorial_loop.py path/to/Tennis       on the real binary (pip install 'sparring[unity]')

It plays random actions; put your own agent where the comment says.
"""

import sys

import numpy as np

from sparring.compat.unityagents import UnityEnvironment  # was: from unityagents import UnityEnvironment

env = UnityEnvironment(file_name=sys.argv[1] if len(sys.argv) > 1 else None)

brain_name = env.brain_names[0]
brain = env.brains[brain_name]

env_info = env.reset(train_mode=True)[brain_name]
num_agents = len(env_info.agents)
action_size = brain.vector_action_space_size
state_size = env_info.vector_observations.shape[1]
print(f"{num_agents} agents, states of {state_size} numbers, actions of {action_size}")

for episode in range(1, 6):
    env_info = env.reset(train_mode=True)[brain_name]
    states = env_info.vector_observations
    scores = np.zeros(num_agents)
    while True:
        actions = np.random.randn(num_agents, action_size)  # noqa: NPY002 - instead: actions = agent.act(states)
        actions = np.clip(actions, -1, 1)
        env_info = env.step(actions)[brain_name]
        next_states = env_info.vector_observations
        rewards = env_info.rewards
        dones = env_info.local_done
        # agent.step(states, actions, rewards, next_states, dones)
        scores += rewards
        states = next_states
        if np.any(dones):
            break
    print(f"episode {episode}: score of the better racket {np.max(scores):.3f}")

env.close()
