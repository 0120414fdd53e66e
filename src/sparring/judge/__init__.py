"""Loong's judge: our engine in the place of the organisers', and the proof that both are the same.

from sparring.judge import NativeEngine

result = NativeEngine().run(map_bytes, bot_reply, on_death, bot_spawn)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparring.judge.ladder import Ladder, run_ladder
    from sparring.judge.looking import look
    from sparring.judge.native import MatchResult, NativeEngine
    from sparring.judge.replay_format import Replay, read_replay, write_replay
    from sparring.judge.replay_report import check_replay, report_replay
    from sparring.judge.replays import resimulate
    from sparring.judge.verdicts import Verdict, run_verdict

_HOMES = {
    "Ladder": "ladder",
    "MatchResult": "native",
    "NativeEngine": "native",
    "Replay": "replay_format",
    "check_replay": "replay_report",
    "Verdict": "verdicts",
    "look": "looking",
    "read_replay": "replay_format",
    "report_replay": "replay_report",
    "resimulate": "replays",
    "run_ladder": "ladder",
    "run_verdict": "verdicts",
    "write_replay": "replay_format",
}

__all__ = [
    "Ladder",
    "MatchResult",
    "NativeEngine",
    "Replay",
    "Verdict",
    "check_replay",
    "look",
    "read_replay",
    "report_replay",
    "resimulate",
    "run_ladder",
    "run_verdict",
    "write_replay",
]


def __getattr__(name: str) -> Any:  # loaded at first use: the doctor looks in here where the core cannot be imported
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
