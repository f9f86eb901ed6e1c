"""Report every failure in one line: never a traceback, and never a message of another library."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from certsynth.cli import layout
from certsynth.cli.streams import flush_output, reserve_streams, tolerate_any_text
from certsynth.errors import BudgetNote, CertsynthError, CheckFailed

CHECK_FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
DEBUG = "CERTSYNTH_DEBUG"
HELP_WIDTH = 80
"""Columns of a page of help, at most."""
_TARGET = "certsynth.target"

_ARGUMENT = re.compile(r"`(?P<name>[a-z_]+)(?:=(?P<value>[^`]+))?`")
_QUOTED_WORD = re.compile(r"""^(["'])([\w.-]+)\1$""")


class Commands(click.Group):
    """A group of commands that report failures as one line on stderr and an exit code."""

    context_class = layout.HelpContext

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> NoReturn:
        """Parse, run and exit; click's own errors are reported in one line as well."""
        tolerate_any_text()
        if not os.environ.get(DEBUG):
            reserve_streams()
        interrupt_on_sigterm()
        args = list(sys.argv[1:] if args is None else args) or ["--help"]
        extra.setdefault("terminal_width", min(layout.width(), HELP_WIDTH) - 2)
        try:
            code = super().main(
                args,
                prog_name or "certsynth",
                complete_var,
                standalone_mode=False,
                windows_expand_args=windows_expand_args,
                **extra,
            )
        except click.UsageError as error:
            remedy = f" See {error.ctx.command_path} --help." if error.ctx else ""
            if isinstance(error, click.MissingParameter) and error.param and error.param.name == "schema_file":
                remedy = f" Draft one with `certsynth schema DATA`, then edit it.{remedy}"
            code = _fail(f"{_sentence(error.format_message())}{remedy}", BAD_INPUT)
        except click.ClickException as error:
            code = _fail(_sentence(error.format_message()), BAD_INPUT)
        except click.Abort:
            code = INTERRUPTED
        except OSError as error:  # while printing help: everything else happens in `invoke`
            code = _fail(f"{_system(error)}.", BAD_INPUT)
        code = code if isinstance(code, int) else 0
        sys.exit(code if flush_output() else code or BAD_INPUT)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they were added, which is the order of use."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command and report its errors while the context still knows what was written."""
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException, click.Abort, BrokenPipeError):
            raise
        except CheckFailed as error:
            ctx.exit(_fail(in_flags(f"{error}{_budget(error)}"), CHECK_FAILED))
        except CertsynthError as error:
            ctx.exit(_fail(in_flags(f"{error}{_budget(error)}"), BAD_INPUT))
        except OSError as error:
            if os.environ.get(DEBUG):
                raise
            ctx.exit(_fail(f"{_system(error)}; {_left(ctx)}.{_budget(error)}", BAD_INPUT))
        except KeyboardInterrupt as error:
            say(f"interrupted: {_left(ctx)}.{_budget(error)}")
            ctx.exit(INTERRUPTED)
        except Exception as error:
            if os.environ.get(DEBUG):
                raise
            what = f"internal error of certsynth ({type(error).__name__})"
            remedy = f"Set {DEBUG}=1 to see where, and report it."
            ctx.exit(_fail(f"{what}; {_left(ctx)}.{_budget(error)} {remedy}", BAD_INPUT))


def interrupt_on_sigterm() -> None:
    """Treat SIGTERM like Ctrl-C: partial output is removed, and the message is the same."""

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, interrupt)


def note_target(path: str | os.PathLike[str]) -> None:
    """Remember the path that a command will write, for error messages, unless it exists already."""
    if not os.path.lexists(path):
        click.get_current_context().meta[_TARGET] = path


def in_flags(text: str) -> str:
    """Replace the Python arguments named in a message of the library by command-line flags.

    `loss` becomes --loss, and `loss="path"` becomes --loss path. Other quoted words are unchanged.
    """
    ctx = click.get_current_context(silent=True)
    commands = getattr(ctx.find_root().command, "commands", {}) if ctx else {}
    own = commands.get(ctx.find_root().invoked_subcommand) if ctx else None
    flags = {
        parameter.name: parameter.opts[0]
        for command in [*commands.values(), *([own] if own else [])]  # its own last, so that they take precedence
        for parameter in command.params
        if isinstance(parameter, click.Option)
    }

    def flag(found: re.Match[str]) -> str:
        name, value = found["name"], found["value"]
        if name not in flags:
            return found[0]
        if value is None:
            return flags[name]
        word = _QUOTED_WORD.sub(r"\2", value)
        return f"{flags[name]} {word}"

    return _ARGUMENT.sub(flag, text)


def say(text: str) -> None:
    """Print one line on stderr, which a terminal shows wrapped. Control characters in paths and names are replaced, so
    that it stays one line."""
    layout.say_wrapped("".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text))


def _fail(message: str, code: int) -> int:
    say(f"error: {message}")
    return code


def _system(error: OSError) -> str:
    return f"system error: {error.strerror or type(error).__name__}"


def _left(ctx: click.Context) -> str:
    target = ctx.meta.get(_TARGET)
    return f"{target} was written" if target and os.path.lexists(target) else "nothing was written"


def _budget(error: BaseException) -> str:
    """The notes on the privacy budget. Notes of other libraries may quote cells and are ignored."""
    return "".join(f" {note}" for note in getattr(error, "__notes__", []) if isinstance(note, BudgetNote))


def _sentence(text: str) -> str:
    """Turn a message of click into the end of a line: "No such option: --x" becomes "no such option: --x."."""
    text = " ".join(text.split())
    return text[:1].lower() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")
