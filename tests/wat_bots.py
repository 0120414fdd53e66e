"""Bots for the judge's sandbox in WebAssembly's own text: they need no compiler, and are ready in milliseconds."""

from __future__ import annotations

from pathlib import Path

# Reads a turn to 1024 and counts it in $turns; $dir, $length and $units point to what the block says. 0: end of input.
_BOT = r"""
(module
  (import "env" "memory" (memory 4 768 shared))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (data (i32.const 512) "MOVE N\nENDTURN\n")
  (data (i32.const 544) "SPLIT 2\nENDTURN\n")
  (global $turns (mut i32) (i32.const 0))
  (func $seek (param $word i32) (result i32) (local $at i32)
    (local.set $at (i32.const 1024))
    (loop $on
      (if (i32.eq (i32.load (local.get $at)) (local.get $word)) (then (return (i32.add (local.get $at) (i32.const 4)))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br $on))
    unreachable)
  (func $say (param $text i32) (param $size i32)
    (i32.store (i32.const 16) (local.get $text)) (i32.store (i32.const 20) (local.get $size))
    (drop (call $fd_write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 8))))
  (func $move (param $letter i32)
    (i32.store8 (i32.const 517) (local.get $letter))
    (call $say (i32.const 512) (i32.const 15)))
  (func $right (param $letter i32) (result i32)
    (if (i32.eq (local.get $letter) (i32.const 78)) (then (return (i32.const 69))))  ;; N E
    (if (i32.eq (local.get $letter) (i32.const 69)) (then (return (i32.const 83))))  ;; E S
    (if (i32.eq (local.get $letter) (i32.const 83)) (then (return (i32.const 87))))  ;; S W
    (i32.const 78))
  (func (export "_start") (local $dir i32) (local $length i32) (local $units i32)
    (loop $turn
      (i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 65536))
      (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
      (if (i32.eqz (i32.load (i32.const 8))) (then return))
      (global.set $turns (i32.add (global.get $turns) (i32.const 1)))
      (local.set $dir (call $seek (i32.const 0x20524944)))     ;; "DIR "
      (local.set $length (call $seek (i32.const 0x20485447)))  ;; "GTH "
      (local.set $units (call $seek (i32.const 0x20544E55)))   ;; "UNT "
      %s
      (br $turn))))
"""

BODIES = {
    # Straight on.
    "straight": "(call $move (i32.load8_u (local.get $dir)))",
    # Splits whenever it can while its team has fewer than six, and turns right in every fifth turn of its life.
    "breeder": """
      (if (i32.and
            (i32.or (i32.ge_u (i32.load8_u (local.get $length)) (i32.const 52))
                    (i32.ne (i32.load8_u offset=1 (local.get $length)) (i32.const 10)))
            (i32.and (i32.lt_u (i32.load8_u (local.get $units)) (i32.const 54))
                     (i32.eq (i32.load8_u offset=1 (local.get $units)) (i32.const 10))))
        (then (call $say (i32.const 544) (i32.const 16)) (br $turn)))
      (if (i32.rem_u (global.get $turns) (i32.const 5))
        (then (call $move (i32.load8_u (local.get $dir))))
        (else (call $move (call $right (i32.load8_u (local.get $dir))))))""",
    # Straight on for three turns, then it traps in the middle of a reply.
    "crash": """
      (if (i32.gt_u (global.get $turns) (i32.const 3)) (then (call $say (i32.const 512) (i32.const 7)) unreachable))
      (call $move (i32.load8_u (local.get $dir)))""",
    # Straight on for three turns, then it loops without a word: the judge starts it again, and it goes on.
    "loop": """
      (if (i32.gt_u (global.get $turns) (i32.const 3)) (then (loop $ever (br $ever))))
      (call $move (i32.load8_u (local.get $dir)))""",
    # Straight on for three turns, then it writes until its points are gone.
    "flood": """
      (if (i32.gt_u (global.get $turns) (i32.const 3))
        (then (loop $ever (call $say (i32.const 1024) (i32.const 4096)) (br $ever))))
      (call $move (i32.load8_u (local.get $dir)))""",
}
"""What the bots do, by name."""


def write_bot(folder: Path, name: str) -> Path:
    """The file of one of `BODIES`."""
    from wasmtime import wat2wasm

    path = folder / f"{name}.wasm"
    path.write_bytes(wat2wasm(_BOT % BODIES[name]))
    return path
