"""Choosing among tools of every day, as people call and describe theirs, and asked for in many ways."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from documents import Call, Case, Document, Tool, Turn
from words import DAYS, MONTHS, NOTHING, Stage, Words, made_up

from skills import arithmetic, everyday_cases
from skills.conversation import answer_of_sapling
from skills.everyday_table import EVERYDAY, UNSEEN, Everyday
from skills.tooling import NAMING, NO_TOOL, SYSTEMS, combined

NAME = "everyday tools"
# Part of the documents in which no tool fits some of the requests, and part of these requests.
LACKING, LACKED = 0.4, 0.5
# Part of the requests that need no tool.
CHAT = 0.14
# Part of the tools that are not described, and of those that have a name or keys that tell nothing.
UNDESCRIBED, MADE_UP = 0.08, 0.1
# Part of the tools that come from the verbs and nouns of the other module.
COMBINED = 0.12
REQUESTS = (1, 1, 2, 2, 3, 4)
# Part of the documents in which tools are named only.
DRILLED = dict.fromkeys(Stage, 0.25) | {Stage.LAST: 0.12}


def _one(*values: str) -> Callable[[Words], str]:
    return lambda words: words.rng.choice(values)


def _held_out(train: tuple[str, ...], test: tuple[str, ...], invented: float = 0.0) -> Callable[[Words], str]:
    return lambda words: words.pick(train, test, invented)


def _clock(words: Words) -> str:
    rng = words.rng
    hour, minute = rng.randint(1, 23), rng.choice(("00", "05", "10", "15", "20", "30", "40", "45", "50"))
    if hour < 13 and rng.random() < 0.4:
        return (
            f"{hour} {rng.choice(('am', 'pm'))}"
            if rng.random() < 0.5
            else f"{hour}:{minute} {rng.choice(('am', 'pm'))}"
        )
    return f"{hour}:{minute}" if rng.random() < 0.9 else rng.choice(("noon", "midnight"))


def _day(words: Words) -> str:
    rng, kind = words.rng, words.rng.random()
    if kind < 0.55:
        return rng.choice(DAYS)
    if kind < 0.7:
        return f"{rng.randint(1, 28)} {rng.choice(('January', 'March', 'April', 'May', 'July', 'August', 'October'))}"
    if kind < 0.8:
        return f"2026-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    return rng.choice((f"next {rng.choice(DAYS)}", "Christmas", "New Year", "Easter"))


def _phrase(words: Words) -> str:
    """What somebody may want to be told, noted or translated."""
    rng = words.rng
    if words.test:
        return rng.choice(
            (
                f"the {words.event()} was wonderful",
                "the bus did not come",
                f"there are {words.items()} for everybody",
                f"{words.name()} has found the key",
                "all is well",
            )
        )
    return rng.choice(
        (
            "good morning",
            "good night",
            "thank you very much",
            "hello",
            "see you tomorrow",
            "I am late",
            "I will be there soon",
            "dinner is ready",
            "the train is late",
            "we are on our way",
            "where is the station",
            "how are you",
            "the meeting is cancelled",
            "my phone is broken",
            "I love you",
            "happy birthday",
            "the water is cold",
            "nobody is at home",
            "please come home",
            "it is raining",
            f"I am in {words.city()}",
            f"I have found the {words.items()}",
            f"the {words.event()} begins at {words.time()}",
            f"{words.name()} is waiting at the {words.place()}",
            f"we need {words.number(2, 30)} {words.items()}",
            f"I can not come on {rng.choice(DAYS)}",
            f"the {words.pet()} is ill",
            f"the code is {words.code()}",
            " ".join(made_up(rng) for _ in range(rng.randint(1, 4))),
        )
    )


def _errand(words: Words) -> str:
    """Something that is to be done."""
    rng = words.rng
    if words.test:
        return rng.choice((f"bake for the {words.event()}", f"sell the {words.items()}", f"thank {words.name()}"))
    return rng.choice(
        (
            f"buy {words.items()}",
            f"call {words.name()}",
            "water the plants",
            "pay the rent",
            "clean the windows",
            "take out the rubbish",
            "go to the doctor",
            "repair the bicycle",
            "write the report",
            "pick up the parcel",
            f"visit {words.name()}",
            f"feed the {words.pet()}",
            f"meet {words.name()} at the {words.place()}",
            f"return the {words.items()}",
            f"prepare the {words.event()}",
            f"{made_up(rng)} the {made_up(rng)}",
        )
    )


def _topic(words: Words) -> str:
    if words.test:
        return words.rng.choice(
            (f"{words.hobby()} in {words.city()}", words.hobby(), words.items(), f"the old {words.place()}")
        )
    topics = (
        "bees",
        "dolphins",
        "climate change",
        "electric cars",
        "football",
        "the moon",
        "old coins",
        "healthy food",
        "space travel",
        "the price of gas",
        "learning Spanish",
        "elections",
        "solar power",
        "wild mushrooms",
        "tennis",
        "house prices",
        "trains in Europe",
        "the history of tea",
        "robots",
        "sleep",
        "wolves",
        "chess openings",
        "knitting patterns",
        "the stock market",
        "volunteer work",
        words.hobby(),
        words.items(),
        f"how to grow {words.items()}",
        f"the history of {words.city()}",
        made_up(words.rng),
        f"{made_up(words.rng)} {made_up(words.rng)}",
    )
    return words.rng.choice(topics)


def _artist(words: Words) -> str:
    made = made_up(words.rng).capitalize()
    known = _one(
        "Mozart", "Bach", "the Beatles", "Madonna", "Queen", "Beethoven", "Chopin", "Elvis Presley", "Vivaldi", "jazz"
    )
    if words.test:
        return words.full_name()
    return words.rng.choice((known(words), words.full_name(), words.name(), f"the {made}s", made))


def _company(words: Words) -> str:
    known = _one("Apple", "Siemens", "Toyota", "Nokia", "Shell", "Bayer", "Amazon", "Tesla", "Philips", "Volvo")
    made = f"{words.name()} {words.rng.choice(('Steel', 'Motors', 'Foods', 'Bank', 'Software'))}"
    return made if words.test else words.rng.choice((known(words), made, made_up(words.rng).capitalize()))


def _expression(words: Words) -> str:
    """A formula without the sums and differences that are held out elsewhere."""
    rng = words.rng
    numbers, signs = [rng.randint(1, 999 if rng.random() < 0.4 else 99)], []
    while len(numbers) < 2 or (len(numbers) < 3 and rng.random() < 0.3):
        sign, number = rng.choice("+-*/"), rng.randint(1, 99)
        if sign in "*/" or not arithmetic.is_held_out(sign, numbers[-1], number):
            signs.append(sign)
            numbers.append(number)
    glue = rng.choice((" ", " ", ""))
    return str(numbers[0]) + "".join(f"{glue}{sign}{glue}{n}" for sign, n in zip(signs, numbers[1:], strict=True))


def _file(words: Words) -> str:
    rng = words.rng
    stem = (
        words.items().replace(" ", "_")
        if words.test
        else rng.choice(
            ("notes", "report", "budget", "readme", "letter", "data", "todo", "plan", made_up(rng), made_up(rng))
        )
    )
    suffix = rng.choice(("txt", "md", "csv", "json", "pdf", "log", "py"))
    return f"{stem}{rng.choice(('', '', '', '2', '_old', '-final'))}.{suffix}"


def _folder(words: Words) -> str:
    rng = words.rng
    part = words.items().replace(" ", "_") if words.test else rng.choice(("photos", "music", "work", made_up(rng)))
    return rng.choice((part, f"/home/{part}", f"{part}/2025", f"~/{part}"))


def _email(words: Words) -> str:
    rng = words.rng
    domain = rng.choice(("example.com", "mail.org", "example.org", f"{made_up(rng)}.com"))
    return f"{words.name().lower()}@{domain}"


def _server(words: Words) -> str:
    rng = words.rng
    part = words.pet() if words.test else rng.choice(("web", "db", "mail", "api", "cache", "worker", made_up(rng)))
    return rng.choice((f"{part}-{rng.randint(1, 20)}", f"{part}{rng.randint(1, 9)}", f"{part}.example.com"))


def _url(words: Words) -> str:
    part = words.items().replace(" ", "-") if words.test else made_up(words.rng)
    return words.rng.choice((f"https://{part}.com", f"www.{part}.org", f"{part}.net", f"https://example.com/{part}"))


def _flight(words: Words) -> str:
    rng = words.rng
    line = "".join(rng.choices("ABDEFHJKLMNQSTUVXYZ", k=2))
    return f"{line}{rng.choice(('', '', '-', ' '))}{rng.randint(10, 9999)}"


def _problem(words: Words) -> str:
    rng = words.rng
    if words.test:
        return rng.choice((f"the light at the {words.place()} flickers", f"the {words.items()} are missing"))
    return rng.choice(
        (
            "the login does not work",
            "the page is empty",
            "the printer is broken",
            "the app crashes",
            "the search is slow",
            "the heating is cold",
            "the door does not close",
            f"the {made_up(rng)} is broken",
            f"the {words.items()} are wrong",
            f"nobody can open the {made_up(rng)}",
        )
    )


def _scene(words: Words) -> str:
    rng = words.rng
    animal, place = words.pet(), words.place()
    if words.test:
        return f"a {animal} in front of a {place}"
    return rng.choice(
        (
            f"a {animal} on a bicycle",
            f"a {words.colour()} {animal}",
            f"a {place} at night",
            f"a {words.colour()} house by the sea",
            "a ship in a storm",
            f"a {words.job()} with a {animal}",
            f"a {words.colour()} {made_up(rng)}",
        )
    )


def _number(low: int, high: int) -> Callable[[Words], int]:
    return lambda words: words.rng.randint(low, high)


_STRING, _INTEGER, _NUMBER, _BOOLEAN = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
_ROOMS = ("kitchen", "bedroom", "bathroom", "hall", "cellar", "garage", "office", "attic", "living room", "nursery")
_LANGUAGES = ("French", "German", "Spanish", "Italian", "Polish", "Dutch", "Greek", "Danish", "Japanese", "Turkish")
_CURRENCIES = ("euros", "dollars", "pounds", "francs", "yen", "kronor", "EUR", "USD", "GBP", "CHF")
_UNITS = ("metres", "feet", "inches", "miles", "kilometres", "pounds", "kilograms", "litres", "gallons", "grams")
_COUNTRIES = ("France", "Japan", "Brazil", "Kenya", "Norway", "India", "Canada", "Peru", "Egypt", "Spain", "Ghana")
# How each kind of value is described and drawn.
KINDS: Mapping[str, tuple[Mapping[str, Any], Callable[[Words], Any]]] = {
    "account": (_STRING, _one("savings", "checking", "business", "holiday", "joint", "main")),
    "amount": (_NUMBER, _number(2, 900)),
    "app": (_STRING, lambda words: words.hobby()),
    "artist": (_STRING, _artist),
    "city": (_STRING, Words.city),
    "clock": (_STRING, _clock),
    "code": (_STRING, lambda words: words.rng.choice((words.code(), words.digits(5), words.code().replace("-", "")))),
    "code_line": (
        _STRING,
        lambda words: words.rng.choice(
            (
                f"print({words.number(1, 99)} * {words.number(1, 99)})",
                f"len('{words.items()}')",
                f"sum(range({words.number(2, 99)}))",
            )
        ),
    ),
    "colour": (_STRING, Words.colour),
    "company": (_STRING, _company),
    "country": (_STRING, _one(*_COUNTRIES)),
    "cuisine": (
        _STRING,
        _one("Italian", "Chinese", "Indian", "Thai", "French", "Greek", "Mexican", "Japanese", "vegan"),
    ),
    "currency": (_STRING, _one(*_CURRENCIES)),
    "day": (_STRING, _day),
    "degree": (_NUMBER, _number(14, 26)),
    "degrees": ({"type": "string", "enum": ["celsius", "fahrenheit"]}, _one("celsius")),
    "dish": (
        _STRING,
        _held_out(
            ("pancakes", "lasagne", "tomato soup", "apple pie", "fried rice", "pizza", "potato salad", "fish soup"),
            ("onion tart", "plum cake", "mushroom risotto"),
            0.4,
        ),
    ),
    "door": (_STRING, _one("front door", "back door", "garage door", "garden door", "cellar door", "side door")),
    "email": (_STRING, _email),
    "errand": (_STRING, _errand),
    "event": (_STRING, Words.event),
    "expression": (_STRING, _expression),
    "few": (_INTEGER, _number(2, 9)),
    "file": (_STRING, _file),
    "flag": (_BOOLEAN, _number(0, 1)),
    "folder": (_STRING, _folder),
    "garden": (_STRING, _one("lawn", "flower bed", "roses", "vegetable patch", "hedge", "greenhouse", "tomatoes")),
    "grams": (_INTEGER, _number(20, 500)),
    "grocery": (
        _STRING,
        _held_out(
            ("milk", "bread", "butter", "eggs", "coffee", "cheese", "rice", "soap", "olive oil", "washing powder"),
            ("honey", "flour", "pepper", "toilet paper"),
            0.3,
        ),
    ),
    "high": (_INTEGER, _number(50, 1000)),
    "items": (_STRING, Words.items),
    "language": (_STRING, _one(*_LANGUAGES)),
    "length": (_INTEGER, _number(8, 40)),
    "low": (_INTEGER, _number(0, 49)),
    "minutes": (_INTEGER, _number(1, 90)),
    "name": (_STRING, lambda words: words.name() if words.rng.random() < 0.7 else words.full_name()),
    "oddword": (_STRING, lambda words: words.pet() if words.test else made_up(words.rng)),
    "percent": (_INTEGER, _number(0, 100)),
    "pet": (_STRING, Words.pet),
    "phrase": (_STRING, _phrase),
    "place": (_STRING, Words.place),
    "plant": (
        _STRING,
        _held_out(("rose", "oak", "tulip", "fern", "birch", "lavender", "cactus"), ("orchid", "ivy"), 0.3),
    ),
    "priority": ({"type": "string", "enum": ["low", "normal", "high"]}, _one("high")),
    "problem": (_STRING, _problem),
    "professional": (
        _STRING,
        _held_out(("dentist", "doctor", "hairdresser", "vet", "plumber"), ("barber", "lawyer"), 0.2),
    ),
    "program": (_STRING, _one("eco", "intensive", "quick", "glass")),
    "quantity": (_INTEGER, _number(2, 60)),
    "room": (_STRING, _one(*_ROOMS)),
    "scene": (_STRING, _scene),
    "sensor": (_STRING, lambda words: words.rng.choice((words.code(), f"S{words.number(1, 99)}"))),
    "server": (_STRING, _server),
    "small": (_INTEGER, _number(1, 9)),
    "sport": (
        _STRING,
        _held_out(("running", "swimming", "cycling", "rowing", "yoga", "hiking"), ("skating", "archery")),
    ),
    "stars": (_INTEGER, _number(1, 5)),
    "table": (_STRING, lambda words: words.items().replace(" ", "_")),
    "team": (
        _STRING,
        lambda words: (
            f"{words.rng.choice(('FC ', '', 'the '))}{words.city()}{words.rng.choice(('', ' United', ' Tigers'))}"
        ),
    ),
    "ticket": (_INTEGER, _number(2, 9999)),
    "title": (_STRING, Words.title),
    "topic": (_STRING, _topic),
    "travel": ({"type": "string", "enum": ["car", "bike", "walk"]}, _one("car")),
    "unit": (_STRING, _one(*_UNITS)),
    "url": (_STRING, _url),
    "year": (_INTEGER, _number(2024, 2030)),
    "branch": (
        _STRING,
        lambda words: (
            words.rng.choice((made_up(words.rng), f"fix-{made_up(words.rng)}", "main", "develop"))
            if not words.test
            else f"fix-{words.pet()}"
        ),
    ),
    "calories": (_INTEGER, _number(20, 900)),
    "channel": (
        _STRING,
        lambda words: f"#{words.hobby().replace(' ', '-')}" if words.rng.random() < 0.5 else words.event(),
    ),
    "cm": (_INTEGER, _number(120, 210)),
    "flight": (_STRING, _flight),
    "job": (_STRING, Words.job),
    "kilos": (_NUMBER, _number(35, 140)),
    "loan": (_NUMBER, lambda words: words.rng.randint(3, 90) * words.rng.choice((50, 100, 1000))),
    "medicine": (_STRING, _held_out(("aspirin", "insulin", "cough syrup", "eye drops"), ("pills", "vitamins"), 0.6)),
    "ml": (_INTEGER, lambda words: words.rng.randint(2, 40) * 25),
    "month": (_STRING, lambda words: words.rng.choice(MONTHS)),
    "phone": (_STRING, lambda words: words.digits(words.rng.choice((6, 7, 8, 10)))),
    "size": ({"type": "string", "enum": ["small", "medium", "large"]}, _one("small", "medium", "large")),
    "subject": (
        _STRING,
        _held_out(("maths", "history", "music", "French", "biology", "sport", "physics"), ("chemistry", "art"), 0.2),
    ),
    "thing": (_STRING, _held_out(("phone", "key", "wallet", "watch", "bag", "ring"), ("umbrella", "passport"), 0.3)),
    "topping": (
        _STRING,
        _held_out(("cheese", "ham", "tuna", "onions", "salami", "spinach", "pineapple"), ("mushrooms", "olives"), 0.4),
    ),
    "years": (_INTEGER, _number(2, 40)),
}
_CHOICES = ("room", "language", "program", "account", "cuisine")


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
        asks = self.kind.asks or self.kind.test_asks
        asked = words.wording(asks, self.kind.test_asks, free=False).format(**values)
        asked = asked[:1].upper() + asked[1:] if rng.random() < 0.85 else asked
        arguments = {
            key: values[keys[0]] for key, (keys, _, given) in zip(self.keys, self.kind.parameters, strict=True) if given
        }
        return Task(asked, Call(self.tool.name, arguments))


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
    )
)


def _outcome(words: Words) -> tuple[dict[str, Any], str]:
    """What any tool may return, and what there is to say then."""
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
    return outcome, f"{' and '.join(said)}."[:1].upper() + f"{' and '.join(said)}."[1:]


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
            turns += [Turn("user", missing.task(words).asked), Turn("assistant", answer, thought=thought)]
        else:
            task = rng.choice(offered).task(words)
            thought = _thought(task.call) if thinking else None
            turns += [Turn("user", task.asked), Turn("assistant", calls=(task.call,), thought=thought)]
            if rng.random() < 0.5:
                outcome, reply = _outcome(words)
                turns += [Turn("tool", json.dumps(outcome, ensure_ascii=False)), Turn("assistant", reply)]
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
