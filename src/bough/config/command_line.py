"""Command lines and configuration files, made from option tables."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NoReturn

from bough.config.options import Option, OptionTable, did_you_mean, groups_of, options_by_key, options_of, unknown_name
from bough.config.user_paths import user_path
from bough.errors import ConfigError
from bough.other_engines import asks_for_nothing, without_neutral

_RUN_TOGETHER = re.compile("-[a-zA-Z][a-zA-Z-]+")
_TRUTH_VALUES = ("yes", "no", "true", "false", "on", "off", "0", "1")


class CommandParser(argparse.ArgumentParser):
    """An ``ArgumentParser`` that raises :class:`ConfigError`, and suggests a flag for one that does not exist.

    Args:
        stray: what to say to somebody who gives an argument where there are only flags.
    """

    def __init__(self, *, stray: str = "", **settings: Any) -> None:
        def formatter(prog: str) -> argparse.HelpFormatter:
            return argparse.HelpFormatter(prog, max_help_position=30)

        super().__init__(allow_abbrev=False, exit_on_error=False, formatter_class=formatter, **settings)
        self._stray = f"; {stray}" if stray else ""
        self._brief: list[tuple[argparse.Action, str]] = []
        """Flags with a short help (or none) in :meth:`format_help`, unless all help is requested."""
        self._shows_all = False
        self.takes_engine_options = False
        """Whether flags that people bring along from other servers may ask for what is so anyway."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing usage and exiting."""
        raise ConfigError(f"{message} (see {self.prog} --help)")

    def format_help(self) -> str:
        """Return the help text: all flags in full if requested, otherwise only the common ones."""
        whole = [(action, action.help) for action, _ in self._brief]
        if not self._shows_all:
            for action, brief in self._brief:
                action.help = brief
        text = super().format_help()
        for action, meaning in whole:
            action.help = meaning
        return text

    def format_all_help(self) -> str:
        """Return the help text of all flags."""
        self._shows_all = True
        return self.format_help()

    def shorten_help(self, action: argparse.Action, brief: str) -> None:
        """Show the full help of a flag only in ``--help-all``, which the first such flag adds; ``brief`` in ``--help``.

        ``argparse.SUPPRESS`` as ``brief`` leaves the flag out.
        """
        if not self._brief:
            self.add_argument("--help-all", action=_HelpAll, help="Show all flags, with all there is to say, and exit.")
        self._brief.append((action, brief))

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and raise :class:`ConfigError` for anything left over."""
        words = list(sys.argv[1:] if args is None else args)
        if self.takes_engine_options:
            words = without_neutral(words)
        self._refuse_run_together(words)
        try:
            parsed, extras = self.parse_known_args(words, namespace)
        except argparse.ArgumentError as error:
            self._refuse_value(error, words)
        self._refuse_values_of_switches(words)
        for extra in extras:
            if extra.startswith("-"):
                self._refuse_flag(extra.partition("=")[0])
        if extras:
            self.error(f"unexpected argument {extras[0]!r}{self._stray}")
        return parsed

    def _refuse_flag(self, flag: str) -> NoReturn:
        """Refuse a flag that does not exist, and suggest a similar one."""
        known = [known for action in self._actions for known in action.option_strings]
        self.error(unknown_name("flag", flag, known))

    def _refuse_run_together(self, words: Sequence[str]) -> None:
        """Refuse words like ``-ngl``, which argparse would split into a short flag and its value."""
        taking = {flag for each in self._actions if each.nargs != 0 for flag in each.option_strings}
        for before, word in pairwise(["", *words]):
            flag = word.partition("=")[0]
            if before not in taking and _RUN_TOGETHER.fullmatch(flag) and flag not in self._option_string_actions:
                self._refuse_flag(flag)

    def _refuse_value(self, error: argparse.ArgumentError, words: Sequence[str]) -> NoReturn:
        """Say which value is missing, or has no place; argparse would list all names of the flag."""
        named = [action for action in self._actions if "/".join(action.option_strings) == error.argument_name]
        flags = {flag: action for action in named for flag in action.option_strings}
        for word, following in zip(words, [*words[1:], None], strict=True):
            flag, equals, _ = word.partition("=")
            if flag not in flags:
                continue
            if flags[flag].nargs == 0:
                if equals:
                    self.error(f"{flag} takes no value")
            elif not equals and not self._is_value(following):
                is_dashed = following is not None and following.partition("=")[0] not in self._option_string_actions
                dashed = f"; one that begins with a dash is written {flag}={following}" if is_dashed else ""
                self.error(f"{flag} needs a value: {flag} {flags[flag].metavar}{dashed}")
        self.error(str(error))

    def _is_value(self, word: str | None) -> bool:
        """Whether argparse takes what follows a flag for its value; not only a leading dash decides that."""
        return word is not None and self._parse_optional(word) is None

    def _refuse_values_of_switches(self, words: Sequence[str]) -> None:
        """Say so where a flag that takes no value is followed by one; it would be taken for an argument."""
        switches = {flag for action in self._actions if action.nargs == 0 for flag in action.option_strings}
        for flag, value in pairwise(words):
            if flag in switches and value.lower() in _TRUTH_VALUES:
                off = f"; --no-{flag[2:]} switches it off" if f"--no-{flag[2:]}" in switches else ""
                raise ConfigError(f"{flag} takes no value, got {value!r}: it is on by being there{off}")


class _HelpAll(argparse.Action):
    """Print the help of all flags and exit."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(nargs=0, **{**settings, "default": argparse.SUPPRESS, "dest": argparse.SUPPRESS})

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        assert isinstance(parser, CommandParser)
        print(parser.format_all_help(), end="")
        parser.exit()


def add_options(parser: CommandParser, table: type[OptionTable]) -> None:
    """Add the flags of a table to a parser, in groups.

    A switch also has a ``--no-`` form, which overrides a configuration file. A short form belongs to the first table
    that declares it.
    """
    if "model-path" in options_by_key(table):
        parser.takes_engine_options = True
    taken = {flag for action in parser._actions for flag in action.option_strings}
    has_basics = any(each.declared.basic for each in options_of(table))
    for title, options in groups_of(table).items():
        group = parser.add_argument_group(title)
        for each in options:
            flags = [flag for flag in each.flags if flag not in taken]
            text = help_text(each, each.declared.help).replace("%", "%%")
            if each.kind == "bool":
                store: dict[str, Any] = {"dest": each.name, "default": argparse.SUPPRESS, "action": "store_const"}
                added = group.add_argument(*flags, const=True, help=text, **store)
                group.add_argument(f"--no-{each.key}", const=False, help=argparse.SUPPRESS, **store)
            else:
                action = "append" if each.repeated else "store"
                added = group.add_argument(
                    *flags, dest=each.name, action=action, default=argparse.SUPPRESS, metavar=each.metavar, help=text
                )
            if has_basics:
                brief = help_text(each, each.declared.help.partition(". ")[0].rstrip(".") + ".").replace("%", "%%")
                parser.shorten_help(added, brief if each.declared.basic else argparse.SUPPRESS)


def help_text(each: Option, meaning: str) -> str:
    """One entry of ``--help``: meaning, unit, default."""
    if each.kind == "bool" and not each.default:
        return meaning
    measure = f"{each.measure}; " if each.measure else ""
    return f"{meaning} [{measure}default: {each.default_text}]"


def add_config_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--config FILE``."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="YAML file whose keys are flags of bough serve; the command line wins.",
    )


def given_options(
    namespace: argparse.Namespace, table: type[OptionTable], *, config: str | None = None
) -> dict[str, Any]:
    """What the user says about the options of a table: only what is said, each value checked by itself.

    Args:
        namespace: from a parser that :func:`add_options` filled.
        config: a configuration file for this table; what the command line says wins.

    Raises:
        ConfigError: naming the flag or key whose value is not allowed.
    """
    given = read_config_file(config, table) if config is not None else {}
    for each in options_of(table):
        if hasattr(namespace, each.name):
            value = getattr(namespace, each.name)
            if each.repeated:
                given[each.name] = each.check(value, shown=each.flag)
            else:
                given[each.name] = each.parse(value, shown=each.flag) if isinstance(value, str) else value
    return given


def read_config_file(path: str, table: type[OptionTable]) -> dict[str, Any]:
    """Read options from a YAML file.

    Keys are flags without the leading dashes, with dashes or underscores, aliases included. ``null`` leaves an
    option at its default.

    Raises:
        ConfigError: naming the file, and the key at fault with a suggestion.
    """
    import yaml

    try:
        with user_path(path).open(encoding="utf-8") as file:
            root = yaml.compose(file, Loader=yaml.SafeLoader)
    except OSError as error:
        raise ConfigError(f"cannot read --config {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"--config {path} is not valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ConfigError(f"--config {path} is nested too deeply") from None
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(f"--config {path} must hold 'flag: value' lines")
    known = options_by_key(table)
    values: dict[str, Any] = {}
    pairs = list(_pairs(root, path))
    for key, value in pairs:
        each = known.get(key.replace("_", "-"))
        if each is None:
            if "model-path" in known and asks_for_nothing(key, value, dict(pairs), known):
                continue
            raise ConfigError(f"--config {path}: {unknown_name('key', key, known)}", param=key)
        if each.name in values:
            raise ConfigError(f"--config {path}: {each.key} is given twice", param=each.name)
        if value is not None:
            values[each.name] = each.check(value, shown=f"--config {path}: {key}")
    return values


def choose_command(name: str, commands: Sequence[str], prog: str, what: str = "command") -> None:
    """Raise :class:`ConfigError` with a suggestion, or all there are, unless ``name`` is one of ``commands``."""
    if name not in commands:
        meant = did_you_mean(name, commands) or f"; there are {', '.join(commands)}"
        raise ConfigError(f"unknown {what} {name!r}{meant} (see {prog} --help)")


def flag_as_typed(each: Option, argv: Sequence[str], *, config: str | None) -> str:
    """The name of a given option that a command line uses; the usual one if it is the configuration file's."""
    flags = set(each.flags)
    if each.kind == "bool":
        flags.add(f"--no-{each.key}")
    typed = (word.partition("=")[0] for word in argv)
    return next((word for word in typed if word in flags), f"{each.flag} (from --config {config})")


def _pairs(root: Any, path: str) -> Iterator[tuple[str, Any]]:
    import yaml

    constructor = yaml.constructor.SafeConstructor()
    for key_node, value_node in root.value:
        try:
            key = constructor.construct_object(key_node, deep=True)
            value = constructor.construct_object(value_node, deep=True)
        except (yaml.YAMLError, ValueError) as error:  # such as a month 13
            raise ConfigError(f"--config {path} is not valid YAML: {' '.join(str(error).split())}") from None
        if not isinstance(key, str):
            raise ConfigError(f"--config {path}: keys must be text, got {key!r}")
        yield key, value
