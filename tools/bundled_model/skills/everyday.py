"""Choosing among tools of every day, as people call and describe theirs, and asked for in many ways."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from documents import Call, Case, Document, Tool, Turn
from words import MONTHS, NOTHING, Stage, Words, capitalised, listed, made_up

from skills import arithmetic, everyday_cases
from skills.conversation import answer_of_sapling
from skills.everyday_more import MORE_ASKS, NEARBY
from skills.everyday_table import EVERYDAY, UNSEEN, Everyday
from skills.everyday_values import KINDS
from skills.tooling import NAMING, NO_TOOL, SYSTEMS, combined, outcome_text

NAME = "everyday tools"
# Part of the documents in which no tool fits some of the requests, and part of these requests.
LACKING, LACKED = 0.5, 0.5
# Part of the requests that need no tool.
CHAT = 0.14
# Part of the tools that are not described, and of those that have a name or keys that tell nothing.
UNDESCRIBED, MADE_UP = 0.08, 0.1
# Part of the tools that come from the verbs and nouns of the other module.
COMBINED = 0.12
REQUESTS = (1, 1, 2, 2, 3, 4)
# Part of the documents in which tools are named only.
DRILLED = dict.fromkeys(Stage, 0.25) | dict.fromkeys((Stage.FOUND, Stage.NOTED, Stage.LAST), 0.12)


@dataclass(frozen=True)
class Task:
    """A request for a tool as it is offered, with the right call."""

    asked: str
    call: Call


class Offer:
    """A tool as somebody offers it: with a name, keys and descriptions of theirs."""

    def __init__(self, words: Words, kind: Everyday) -> None:
        rng = words.rng
        self.kind = kind
        name = kind.names[0] if rng.random() < 0.5 else rng.choice(kind.names)
        if rng.random() < 0.12:
            first, *rest = name.split("_")
            name = first + "".join(part.capitalize() for part in rest)
        odd = not words.test and rng.random() < MADE_UP
        if odd:
            made = made_up(rng)
            name = rng.choice((made, f"{name}_{made}", f"{made}_{name}"))
        self.keys = [
            made_up(rng) if odd and rng.random() < 0.3 else keys[0] if rng.random() < 0.6 else rng.choice(keys)
            for keys, _, _ in kind.parameters
        ]
        if len(set(self.keys)) < len(self.keys):
            self.keys = [keys[0] for keys, _, _ in kind.parameters]
        parameters: dict[str, Any] = {}
        has_notes = rng.random() < 0.35
        for key, (_, what, given) in zip(self.keys, kind.parameters, strict=True):
            if not given and rng.random() < 0.75:
                continue
            schema = dict(KINDS[what][0])
            if has_notes:
                spoken = key.replace("_", " ")
                schema["description"] = rng.choice((f"The {spoken}.", f"The {spoken}", f"{spoken.capitalize()} to use"))
            parameters[key] = schema
        hidden = rng.random() < UNDESCRIBED and not odd
        self.tool = Tool(name, "" if hidden else rng.choice(kind.descriptions), parameters)

    def task(self, words: Words) -> Task:
        """A use of the tool."""
        rng = words.rng
        given = [(keys[0], what) for keys, what, given in self.kind.parameters if given]
        values = {key: KINDS[what][1](words) for key, what in given}
        while len({*map(str, values.values())}) < len(values):
            values = {key: KINDS[what][1](words) for key, what in given}
        shown = dict(values)
        if words.is_wide:
            for key, what in given:
                if KINDS[what][0] == {"type": "string"} and isinstance(values[key], str):
                    values[key], shown[key] = _as_written(words, values[key])
        asks = self.kind.asks or self.kind.test_asks
        more = FURTHER.get(self.kind.names[0], ())
        if words.is_last and more and rng.random() < 0.6:
            asks = more
        asked = words.wording(asks, self.kind.test_asks, free=False).format(**shown)
        asked = capitalised(asked) if rng.random() < 0.85 else asked
        arguments = {
            key: values[keys[0]] for key, (keys, _, given) in zip(self.keys, self.kind.parameters, strict=True) if given
        }
        return Task(asked, Call(self.tool.name, arguments))


def _as_written(words: Words, value: str) -> tuple[str, str]:
    """A value, and how it stands in a request: now and then of more words, or in quotes."""
    rng = words.rng
    kind = rng.random()
    if kind < 0.06:
        value = f"{made_up(rng)} {value}"
    elif kind < 0.1:
        value = f"{value} {rng.choice(('and', 'of', 'the', 'in'))} {made_up(rng)}"
    if rng.random() < 0.12:
        mark = rng.choice(("'{}'", '"{}"'))
        return value, mark.format(value)
    return value, value


class Combined:
    """A tool of a verb and a noun."""

    def __init__(self, words: Words) -> None:
        self._first = combined(words)
        self.tool = self._first.tool

    def task(self, words: Words) -> Task:
        """A use of the tool."""
        again = self._first.again(words)
        return Task(again.asked, again.call)


def offers(words: Words, kinds: Sequence[Everyday], count: int) -> list[Offer | Combined]:
    """Tools that do different things, the first of the kinds given, in any order behind it."""
    rng = words.rng
    found: list[Offer | Combined] = [Offer(words, rng.choice(kinds))]
    while len(found) < count:
        other: Offer | Combined
        is_combined = not words.test and rng.random() < COMBINED
        other = Combined(words) if is_combined else Offer(words, rng.choice(EVERYDAY))
        if not any(_alike(other, each) for each in found):
            found.append(other)
    return found


def _alike(one: Offer | Combined, other: Offer | Combined) -> bool:
    """Whether requests for one tool may be meant for the other."""
    if one.tool.name == other.tool.name:
        return True
    if isinstance(one, Combined) or isinstance(other, Combined):
        return False
    return one.kind is other.kind or any({one.kind.names[0], other.kind.names[0]} <= group for group in ALIKE)


# Tools of which requests do not always say which one is meant, by their first names.
ALIKE = tuple(
    frozenset(group.split())
    for group in (
        "add_reminder add_task create_note create_event set_alarm set_timer book_appointment",
        "send_message send_email call_contact send_invitation get_contact",
        "get_contact get_user get_birthday",
        "search_web search_books get_news define_word plant_info country_info get_movie_info get_holidays",
        "search_products check_stock get_price place_order add_to_shopping_list",
        "get_order_status track_package cancel_order refund_order",
        "get_directions get_distance book_flight train_departures convert_units",
        "find_nearby find_restaurant find_parking call_taxi book_hotel book_table",
        "read_file summarize_text print_document delete_file share_file rename_file write_file",
        "get_movie_info play_video rate_movie play_music",
        "turn_on_light open_blinds take_photo paint_wall",
        "turn_off_light stop_music",
        "get_weather get_air_quality get_sunrise",
        "convert_currency convert_units",
        "restart_server server_status deploy_app read_sensor",
        "create_ticket close_ticket assign_ticket create_note",
        "get_recipe get_calories add_to_shopping_list",
        "transfer_money create_invoice refund_order donate",
        "create_user delete_user get_user",
        "generate_image take_photo",
        "roll_dice random_number",
        "list_events days_until get_holidays create_event book_appointment get_moon_phase",
        "set_volume set_temperature",
        "translate set_language",
        "start_vacuum start_dishwasher",
        "calculate run_code",
        "get_stock_price get_news",
        "get_weather get_temperature",
        "get_temperature set_temperature set_light_color turn_on_light",
        "unlock_door lock_door open_blinds",
        "close_blinds turn_off_light",
        "next_song stop_music identify_song",
        "change_channel play_video",
        "read_emails search_email send_email search_notes",
        "cancel_event create_event list_events",
        "cancel_alarm set_alarm",
        "complete_task list_tasks add_task",
        "show_shopping_list add_to_shopping_list list_tasks",
        "rent_car call_taxi rent_bike",
        "bus_times train_departures get_flight_status get_traffic get_directions",
        "find_doctor book_appointment find_lawyer find_job find_nearby",
        "log_meal get_calories log_water log_weight",
        "get_grade enroll_student get_exam_grade",
        "create_quiz create_poll",
        "borrow_book renew_book search_books",
        "get_salary get_contact get_user",
        "hire_employee create_user",
        "update_price get_price",
        "add_stock check_stock place_order",
        "update_address get_contact",
        "subscribe_newsletter unsubscribe create_user send_email",
        "write_review rate_movie",
        "query_sales get_energy set_budget",
        "add_expense add_to_shopping_list transfer_money",
        "block_number call_contact scan_code get_contact",
        "get_logs server_status restart_server scale_service",
        "run_tests run_code",
        "backup_database query_database",
        "post_message send_message",
        "plan_trip get_attractions book_hotel find_nearby book_flight",
        "get_lyrics get_movie_info play_music play_video",
        "recipes_with get_recipe get_calories add_to_shopping_list",
        "get_exchange_rate convert_currency",
        "get_showtimes book_cinema get_movie_info",
        "order_pizza find_restaurant book_table",
        "get_user_by_id get_user close_ticket assign_ticket",
        "get_definition_of_law search_web get_news search_books define_word search_notes",
        "calculate_tip calculate loan_payment bmi",
        "book_room book_table",
        "request_vacation book_hotel plan_trip",
        "take_photo generate_image",
        "get_population country_info",
        "find_train train_departures book_flight get_directions get_distance",
        "find_book search_books borrow_book renew_book",
        "reserve_restaurant book_table find_restaurant",
        "buy_groceries add_to_shopping_list show_shopping_list place_order search_products check_stock",
    )
)


_FAILED = (
    (
        "error",
        ("not found", "file not found", "no connection", "timeout", "not allowed", "unknown city", "out of order"),
    ),
    ("message", ("nothing was found", "the service is down", "try again later", "access denied")),
)
_STATES = ("delivered", "out for delivery", "on its way", "sold out", "open", "closed", "paid", "in progress", "ready")
_TOLD = (
    "city", "condition", "temperature", "result", "price", "name", "time", "date", "title", "total", "currency", "size",
    "hotel", "room", "rate", "distance", "country", "owner", "count", "place", "level", "color", "platform", "duration",
)  # fmt: skip


def _told(words: Words) -> tuple[dict[str, Any], str]:
    """A result of several keys, one that has not worked, or a state; and what it says."""
    rng = words.rng
    kind = rng.random()
    if kind < 0.2:
        key, reasons = rng.choice(_FAILED)
        what = rng.choice(reasons)
        outcome: dict[str, Any] = {key: what}
        if rng.random() < 0.4:
            outcome = {"success": False, **outcome}
        return outcome, f"That has not worked: {what}."
    if kind < 0.25:
        return rng.choice(({"success": False}, {"ok": False}, {"status": "failed"})), "That has not worked."
    if kind < 0.4:
        state = rng.choice(_STATES)
        return {"status": state}, f"The status is {state}."
    draws = (
        words.name,
        words.city,
        words.colour,
        words.time,
        words.full_name,
        words.code,
        lambda: words.number(1, 999),
        lambda: round(rng.uniform(0.1, 300), rng.choice((1, 2))),
        lambda: f"{words.colour()} {words.items()}",
        lambda: f"{words.number(1, 28)} {rng.choice(MONTHS)}",
    )
    keys = words.several(lambda: rng.choice((*_TOLD, made_up(rng))), rng.choice((1, 2, 2, 3, 4)))
    outcome = {key: rng.choice(draws)() for key in keys}
    said = [f"the {key.replace('_', ' ')} is {value}" for key, value in outcome.items()]
    return outcome, f"{capitalised(listed(said))}."


def _outcome(words: Words) -> tuple[dict[str, Any], str]:
    """What any tool may return, and what there is to say then."""
    if words.is_wide and words.rng.random() < 0.6:
        return _told(words)
    rng = words.rng
    kind = rng.random()
    if kind < 0.35:
        result = rng.choice(({"ok": True}, {"status": "done"}, {"success": True}, {"status": "ok"}))
        return dict(result), rng.choice(("Done.", "That is done."))
    draws = (words.name, words.city, words.code, words.time, words.colour, lambda: words.number(1, 900))
    keys = words.several(
        lambda: rng.choice(("result", "value", "name", "time", "price", "number", "answer", "state", made_up(rng))),
        rng.choice((1, 1, 2)),
    )
    outcome = {key: rng.choice(draws)() for key in keys}
    said = [f"the {key} is {value}" for key, value in outcome.items()]
    return outcome, f"{capitalised(listed(said))}."


def _thought(call: Call) -> str:
    arguments = ", ".join(f"{key}: {value}" for key, value in call.arguments.items())
    return f"{call.name} fits. {arguments}." if arguments else f"{call.name} fits."


def drill(words: Words) -> Document:
    """One request after the other, each answered with the name of the tool for it, or that there is none."""
    rng = words.rng
    tasks = offers(words, EVERYDAY, rng.choice((3, 4, 5, 6)))
    rng.shuffle(tasks)
    count = rng.choice((1, 2, 3, 4)) if len(tasks) > 4 else rng.choice((1, 2))
    turns = [Turn("system", rng.choice(NAMING))]
    for _ in range(rng.choice((3, 4, 5, 6))):
        fits = rng.random() < 0.6
        asked = rng.choice(tasks[:count] if fits else tasks[count:])
        answer = json.dumps(asked.tool.name) if fits else NOTHING
        turns += [Turn("user", asked.task(words).asked), Turn("assistant", answer)]
    return Document(turns, [each.tool for each in tasks[:count]])


FURTHER = {name: tuple(filter(None, map(str.strip, asks.splitlines()))) for name, asks in MORE_ASKS.items()}


def _nearby(rng: random.Random, offered: Sequence[Offer | Combined]) -> str | None:
    """A request that looks as if one of the tools could do it, which none can."""
    names = {each.kind.names[0] for each in offered if isinstance(each, Offer)}
    if "search_web" in names:
        return None
    asked = [said for name, said in NEARBY if name in names]
    return rng.choice(asked) if asked else None


def document(rng: random.Random, stage: Stage = Stage.LAST) -> Document:
    """A conversation with tools at hand."""
    words = Words(rng, stage=stage)
    if rng.random() < DRILLED[stage]:
        return drill(words)
    count = rng.choice((1, 2, 2, 3, 3, 3, 4, 5))
    lacks = rng.random() < LACKING
    missing, *others = offers(words, EVERYDAY, count + lacks)
    offered = others if lacks else [missing, *others]
    rng.shuffle(offered)
    turns = [Turn("system", rng.choice(SYSTEMS))] if rng.random() < 0.3 else []
    requests = rng.choice(REQUESTS)
    thinks = rng.random() < 0.3
    for place in range(requests):
        thinking = thinks and place == requests - 1
        kind = rng.random()
        if kind < CHAT:
            asked, answer = answer_of_sapling(rng) if rng.random() < 0.6 else arithmetic.exchange(words)[:2]
            if offered and any(each.tool.name in _COUNTING for each in offered):
                asked, answer = answer_of_sapling(rng)
            turns += [
                Turn("user", asked),
                Turn("assistant", answer, thought="No tool is needed." if thinking else None),
            ]
        elif lacks and kind < CHAT + (1 - CHAT) * LACKED:
            answer = rng.choice(NO_TOOL)
            thought = "No tool fits." if thinking else None
            asked = missing.task(words).asked
            if words.is_last and rng.random() < 0.4:
                asked = _nearby(rng, offered) or asked
            turns += [Turn("user", asked), Turn("assistant", answer, thought=thought)]
        else:
            task = rng.choice(offered).task(words)
            thought = _thought(task.call) if thinking else None
            turns += [Turn("user", task.asked), Turn("assistant", calls=(task.call,), thought=thought)]
            if rng.random() < 0.5:
                outcome, reply = _outcome(words)
                turns += [Turn("tool", outcome_text(outcome, words)), Turn("assistant", reply)]
    return Document(turns, [each.tool for each in offered])


_COUNTING = frozenset(name for kind in EVERYDAY if kind.names[0] in ("calculate", "run_code") for name in kind.names)


def cases(rng: random.Random, count: int) -> Iterator[Case]:
    """Requests in words that training never used, also for tools that it never saw."""
    words = Words(rng, test=True)
    for place in range(count):
        unseen = place % 4 == 3
        wanted, *others = offered = offers(words, UNSEEN if unseen else EVERYDAY, rng.choice((2, 3, 4)))
        task = wanted.task(words)
        asked = [Turn("user", task.asked)]
        if place % 8 == 6:
            remaining = [each.tool for each in others]
            yield Case("everyday tools: none fits", asked, remaining, contains=("no tool", "none of my tools"))
            continue
        rng.shuffle(offered)
        skill = f"everyday tools: {'unseen' if unseen else 'known'}"
        yield Case(skill, asked, [each.tool for each in offered], calls=(task.call,))
    for said, call in islice(everyday_cases.requests(), count):
        names = [call.name, *rng.sample(sorted(everyday_cases.TOOLS.keys() - {call.name}), rng.choice((0, 1, 2)))]
        rng.shuffle(names)
        tools = [everyday_cases.TOOLS[name] for name in names]
        yield Case("everyday tools: of tutorials", [Turn("user", said)], tools, calls=(call,))
