"""The command `sparring`: one function for each verb; everything they do can be done from Python."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from collections.abc import Sequence
from importlib.metadata import version
from typing import cast

from sparring.cli.words import Switch, Verb, parsed, pick, printable
from sparring.errors import SparringError

HELP = """Sparring trains game-playing agents by self-play.

usage: sparring VERB ...

train, any game:
  train      train a recipe, or continue its run where it stands
  evaluate   how well a run plays, without noise
  play       watch a match of a run, and write it as a picture
  runs       list runs, compare their curves, free their disk space
  study      what runs show about learning itself, and figures that explain it

Loong (UNSW Battlecode 2026), from a trained run to a bot:
  distil     make a bot's small network from a trained teacher
  export     write that network as a bot, and the zip to submit
  gate       prove that an exported bot plays as its network does
  bot        write the foil, a strong planner by hand, as a bot

Loong, matches between bots:
  match      play two bots against each other in the organisers' engine and sandbox
  verdict    is one player better than another? plays until a sequential test can say
  ladder     rate players by a round robin
  inspect    ask a bot again what was asked in a recorded match, and compare
  look       what a dragon of a recorded match knew, beside the true board
  replay     show replays, play them again, make films of them
  maps       check, show and generate maps
  lockstep   compare our engine with the organisers', byte for byte

  doctor     check this machine

examples:
  sparring train tennis                        # makes ./runs/tennis; Ctrl-C saves, the same command goes on
  sparring evaluate tennis
  sparring play tennis --out rally.gif
  sparring train tennis --seed 3 --minutes 4   # makes ./runs/tennis-seed-3
  sparring runs compare tennis tennis-seed-3

  sparring train loong-tiny --minutes 30       # from nothing to a bot
  sparring distil loong-tiny --minutes 10
  sparring export loong-tiny --out my-bot --zip
  sparring gate my-bot
  sparring verdict my-bot starter

Every verb explains itself: sparring train --help
"""


def doctor(*, json: Switch = False) -> int:
    """Check this machine: each line says ok, or what is missing and how to mend it.

    Args:
        json: Print JSON.
    """
    from sparring.doctor import doctor as examine

    return examine(json=json)


def _room(module: str, name: str) -> Verb:
    """A verb whose module is imported when it is called, so that no verb waits for what another needs."""

    def run(given: list[str]) -> int:
        return cast(Verb, getattr(importlib.import_module(f"sparring.cli.{module}"), name))(given)

    return run


_VERBS: dict[str, Verb] = {
    "train": _room("runs", "train_verb"),
    "evaluate": _room("runs", "evaluate_verb"),
    "play": _room("runs", "play_verb"),
    "distil": _room("distil", "distil_verb"),
    "runs": _room("runs", "runs_verb"),
    "study": _room("study", "study_verb"),
    "maps": _room("loong", "maps_verb"),
    "bot": _room("bot", "bot_verb"),
    "export": _room("bot", "export_verb"),
    "gate": _room("gate", "gate_verb"),
    "match": _room("judge", "match_verb"),
    "inspect": _room("judge", "inspect_verb"),
    "look": _room("look", "look_verb"),
    "verdict": _room("judge", "verdict_verb"),
    "ladder": _room("judge", "ladder_verb"),
    "replay": _room("replay", "replay_verb"),
    "lockstep": _room("loong", "lockstep_verb"),
    "doctor": parsed(
        "sparring doctor", doctor, "Check this machine: each line says ok, or what is missing and how to mend it."
    ),
}


_KEPT = {
    "train": "what the last checkpoint holds is safe",
    "distil": "what the last checkpoint holds is safe, and so are all rounds",
    "verdict": "finished matches are on record, and the same command goes on",
    "ladder": "finished matches are on record, and the same command goes on",
    "lockstep": "finished games are noted, and the same command goes on",
}
"""What is left of a verb that was interrupted."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns its exit code: 0, 2 for what the person can mend, 128 + n when stopped by signal n."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _hear_interrupts()
    if given == ["--version"]:
        print(f"sparring {version('sparring')}")
        return 0
    try:
        return pick("sparring", given, _VERBS, HELP)
    except SparringError as error:
        print(f"sparring: {printable(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept = _KEPT.get(given[0]) if given else None
        print(f"sparring: stopped at once{f'; {kept}' if kept else ''}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _close_stdout()
        return 141
    except OSError as error:  # of the machine: a full disk, say
        print(f"sparring: {error.strerror or error}{f': {error.filename}' if error.filename else ''}", file=sys.stderr)
        _close_stdout()
        return 2


def _hear_interrupts() -> None:
    """Jobs that a shell starts in the background ignore SIGINT, and so does Python; but who sends it means it."""
    here = threading.current_thread() is threading.main_thread()
    if here and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _close_stdout() -> None:
    """Write no more, or Python complains again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
