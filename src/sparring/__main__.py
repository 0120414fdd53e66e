"""The command `sparring`, also `python -m sparring`: works far enough to examine a broken installation."""

import sys


def main() -> int:
    """Run the command line; where a part cannot be imported, run only `doctor`, and say so for every other verb."""
    try:
        from sparring.cli import main as command

        return command()
    except KeyboardInterrupt:
        print("sparring: stopped before it began", file=sys.stderr)
        return 130
    except ImportError as error:
        if sys.argv[1:2] == ["doctor"]:
            from sparring.doctor import doctor

            return doctor(json="--json" in sys.argv)
        print(
            f"sparring: the installation is not whole ({error}): sparring doctor says how to mend it", file=sys.stderr
        )
        return 2


if __name__ == "__main__":
    sys.exit(main())
