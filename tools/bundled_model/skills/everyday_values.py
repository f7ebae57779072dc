"""What people ask tools of every day for: a value of each kind, and how it is described."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from words import DAYS, MONTHS, Words, made_up

from skills import arithmetic


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
    "restaurant": (
        _STRING,
        lambda words: (
            words.rng.choice((f"{words.name()}'s", f"Chez {words.name()}", f"the {made_up(words.rng)}"))
            if not words.test
            else f"the golden {words.pet()}"
        ),
    ),
    "years": (_INTEGER, _number(2, 40)),
}
