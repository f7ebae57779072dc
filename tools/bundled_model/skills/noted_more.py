"""More of what people write down: notes with several values of a type, told apart by the words around them."""

from __future__ import annotations

from collections.abc import Callable

from words import DAYS, MONTHS, Words, made_up

from skills.noted import Noted, _date, _number, _of


def _asks(letter: str, answer: str, *questions: str) -> tuple[tuple[str, str, str], ...]:
    """Questions that all ask for the same value, and so have the same answer."""
    return tuple((question, answer, letter) for question in questions)


def _clock(low: int, high: int) -> Callable[[Words], str]:
    """A time of day between two hours."""
    return lambda words: (
        f"{words.number(low, high)}:{words.rng.choice(('00', '10', '15', '20', '30', '40', '45', '50'))}"
    )


def _digits(count: int) -> Callable[[Words], str]:
    return lambda words: words.digits(count)


def _day(words: Words) -> str:
    return words.rng.choice(DAYS)


def _month(words: Words) -> str:
    return words.rng.choice(MONTHS)


def _version(words: Words) -> str:
    return f"{words.number(1, 19)}.{words.number(0, 30)}"


def _host(words: Words) -> str:
    bare = made_up(words.rng)
    numbers = f"10.{words.number(0, 99)}.{words.number(0, 99)}.{words.number(1, 250)}"
    return words.rng.choice((bare, f"{bare}{words.number(1, 9)}", f"{bare}.local", numbers))


def _title(words: Words) -> str:
    """A name of a house, a boat or a firm."""
    return made_up(words.rng).capitalize()


_OPEN = _of("bakery", "museum", "pool", "library", "post office", "town hall", "swimming hall", "farm shop", "bookshop")
_DISH = _of("cake", "bread", "pie", "stew", "soup", "pizza", "pudding", "lasagne", "roast", "strudel")
_MACHINE = _of("saw", "press", "pump", "oven", "mixer", "mower", "dryer", "lathe", "printer", "coffee machine")
_GADGET = _of("drill", "radio", "phone", "torch", "camera", "watch", "speaker", "scooter", "vacuum cleaner", "tablet")
_FURNITURE = _of("desk", "shelf", "wardrobe", "bench", "cupboard", "crate", "window", "carpet", "chest")
_PLANT = _of("fern", "orchid", "cactus", "rose", "palm", "ivy", "lily", "basil", "lavender", "fig tree")
_CROP = _of("spinach", "corn", "garlic", "barley", "parsley", "cabbage", "lettuce", "rye", "wheat")
_CLUB = _of(
    "rowing club", "judo club", "tennis club", "chess club", "choir", "running club", "hockey club", invented=0.2
)
_SERVER = _of("server", "router", "mail server", "shop system", "test machine", "cluster", "proxy", invented=0.4)
_ANIMAL = _of("hedgehog", "otter", "badger", "owl", "beaver", "lynx", "fox", "seal", "bear", "heron")
_GREEN = _of(
    "carrots", "beans", "onions", "roses", "tulips", "leeks", "peas", "herbs", "radishes", "potatoes", "dahlias"
)
_FEED = _of("hay", "fish", "oats", "apples", "seeds", "carrots", "grass", "corn", "beetles", "rice")
_TRIP = _of("castle", "lake", "market", "zoo", "beach", "museum", "harbour", "forest", "dentist", "station", "church")
_GROUP = _of("board", "parents", "council", "team", "choir", "garden club", "neighbours", "staff", invented=0.2)
_BROUGHT = _of("salad", "bread", "plates", "chairs", "cake", "juice", "grill", "music", "cheese", "cups", "guitar")

_HOUSE: tuple[Noted, ...] = (
    Noted(
        {"p": _OPEN, "o": _clock(6, 11), "c": _clock(15, 22)},
        (
            "The {p} opens at {o} and closes at {c}.",
            "The {p} is open from {o} to {c}.",
            "{P}: {o} - {c}",
            "{P} hours: open {o}, close {c}",
            "At {c} the {p} closes, having opened at {o}.",
            "The doors of the {p} are locked at {c} and unlocked at {o}.",
        ),
        (
            *_asks(
                "o",
                "The {p} opens at {o}.",
                "When can I come into the {p}?",
                "At what time does the {p} open?",
                "From what time on can visitors enter the {p}?",
                "How early can I go to the {p}?",
                "When does the day begin at the {p}?",
                "What is the opening time of the {p}?",
            ),
            *_asks(
                "c",
                "The {p} closes at {c}.",
                "Until when can I stay in the {p}?",
                "When does the {p} shut?",
                "How late can I go to the {p}?",
                "By what time must everybody leave the {p}?",
                "What is the closing time of the {p}?",
            ),
        ),
    ),
    Noted(
        {"p": _OPEN, "s": _clock(6, 9), "w": _clock(9, 12)},
        (
            "The {p} opens at {s} in summer and at {w} in winter.",
            "In winter the {p} opens at {w}, in summer at {s}.",
            "{P} - summer: from {s}, winter: from {w}",
            "Winter hours of the {p} begin at {w}, summer hours at {s}.",
            "The {p} is open from {s} on in summer, but only from {w} on in winter.",
        ),
        (
            *_asks(
                "s",
                "In summer the {p} opens at {s}.",
                "When does the {p} open in summer?",
                "It is summer: from when on can I visit the {p}?",
                "How early can we go to the {p} in the warm months?",
                "At what time can one enter the {p} in summer?",
                "What is the summer opening time of the {p}?",
            ),
            *_asks(
                "w",
                "In winter the {p} opens at {w}.",
                "When does the {p} open in winter?",
                "It is winter: from when on can I visit the {p}?",
                "How early can we go to the {p} in the cold months?",
                "At what time can one enter the {p} in winter?",
                "What is the winter opening time of the {p}?",
            ),
        ),
    ),
    Noted(
        {
            "p": _of("house", "camp", "hostel", "library", "dormitory", "cabin", "yard"),
            "q": _clock(19, 23),
            "e": _clock(5, 8),
        },
        (
            "House rule: in the {p} it is quiet from {q} until {e}.",
            "Quiet hours of the {p}: {q} to {e}",
            "Nobody makes noise in the {p} after {q} or before {e}.",
            "Please be quiet in the {p} from {q} on; from {e} on you may be loud.",
            "Silence in the {p} ends at {e}. It starts at {q}.",
        ),
        (
            *_asks(
                "q",
                "The quiet hours of the {p} begin at {q}.",
                "From when on must I be quiet in the {p}?",
                "When do the quiet hours of the {p} start?",
                "How late can I play the trumpet in the {p}?",
                "When does the night's rest begin in the {p}?",
                "After what time is noise forbidden in the {p}?",
            ),
            *_asks(
                "e",
                "The quiet hours of the {p} end at {e}.",
                "When may I be loud again in the {p}?",
                "When are the quiet hours of the {p} over?",
                "Until what time in the morning is noise forbidden in the {p}?",
                "How early can I use the drill in the {p}?",
                "Up to which hour must everybody sleep in peace in the {p}?",
            ),
        ),
    ),
    Noted(
        {"s": _of("Mill Road", "Elm Street", "Lake Road", "the yard", "house 3", "High Street"), "p": _day, "g": _day},
        (
            "In {s} paper is collected on {p} and glass on {g}.",
            "Bins, {s}: paper {p}, glass {g}",
            "The glass bin of {s} goes out on {g}, the paper bin on {p}.",
            "On {p} they take the paper from {s}; on {g} they take the glass.",
            "{S} - glass: {g}, paper: {p}",
        ),
        (
            *_asks(
                "p",
                "Paper is collected on {p}.",
                "When do I put out old newspapers in {s}?",
                "On which day is the paper bin of {s} emptied?",
                "When is paper collected in {s}?",
                "What day is for paper in {s}?",
                "When are boxes of cardboard taken from {s}?",
            ),
            *_asks(
                "g",
                "Glass is collected on {g}.",
                "When do I put out empty bottles in {s}?",
                "On which day is the glass bin of {s} emptied?",
                "When is glass collected in {s}?",
                "What day is for glass in {s}?",
                "When are old jars taken from {s}?",
            ),
        ),
    ),
    Noted(
        {
            "o": _of("machine", "dryer", "washer", "laundry room", "basement"),
            "c": _number(40, 95),
            "w": _number(15, 39),
        },
        (
            "In the {o} wash cotton at {c} degrees and wool at {w} degrees.",
            "{O} - cotton: {c} degrees, wool: {w} degrees",
            "Wool is washed at {w} degrees in the {o}, cotton at {c}.",
            "Set the {o} to {c} degrees for cotton, to {w} for wool.",
            "Only {w} degrees for wool in the {o}! Cotton may have {c}.",
        ),
        (
            *_asks(
                "c",
                "Cotton is washed at {c} degrees.",
                "How hot do I wash cotton in the {o}?",
                "Which setting of the {o} is for cotton?",
                "How many degrees are right for a cotton shirt in the {o}?",
                "At what temperature does the {o} wash cotton?",
            ),
            *_asks(
                "w",
                "Wool is washed at {w} degrees.",
                "How hot do I wash wool in the {o}?",
                "Which setting of the {o} is for wool?",
                "How many degrees are right for a woollen jumper in the {o}?",
                "At what temperature does the {o} wash wool?",
            ),
        ),
    ),
    Noted(
        {
            "f": _of("flat", "cottage", "studio", "attic room", "workshop", "boathouse"),
            "r": _number(300, 999),
            "d": _number(1000, 3000),
        },
        (
            "The rent of the {f} is {r} euros a month, the deposit {d} euros.",
            "{F}: rent {r} euros, deposit {d} euros",
            "The tenant of the {f} pays a deposit of {d} euros once and {r} euros every month.",
            "Deposit for the {f}: {d} euros. Rent: {r} euros.",
            "For the {f} we agree on {r} euros of rent and {d} euros of deposit.",
        ),
        (
            *_asks(
                "r",
                "The rent of the {f} is {r} euros.",
                "What must be paid every month for the {f}?",
                "How high is the rent of the {f}?",
                "How much does it cost to live in the {f} for a month?",
                "What does the landlord of the {f} get each month?",
                "What is the monthly price of the {f}?",
            ),
            *_asks(
                "d",
                "The deposit of the {f} is {d} euros.",
                "How much do I leave as a deposit for the {f}?",
                "How high is the deposit of the {f}?",
                "What do I get back when I leave the {f}?",
                "What is paid once, at the start, for the {f}?",
                "Which sum is kept as a security for the {f}?",
            ),
        ),
    ),
    Noted(
        {"n": _title, "s": _date, "e": _date},
        (
            "The contract with {n} starts on {s} and ends on {e}.",
            "{n} contract: from {s} to {e}",
            "On {e} the contract with {n} ends; it began on {s}.",
            "This agreement with {n} is valid from {s} until {e}.",
            "Contract {n}. Start: {s}. End: {e}.",
        ),
        (
            *_asks(
                "s",
                "The contract with {n} starts on {s}.",
                "From when on is the contract with {n} valid?",
                "When does the agreement with {n} begin?",
                "What is the first day of the contract with {n}?",
                "On what day do we start with {n}?",
            ),
            *_asks(
                "e",
                "The contract with {n} ends on {e}.",
                "When does the agreement with {n} run out?",
                "Until when are we bound to {n}?",
                "What is the last day of the contract with {n}?",
                "On what day is it over with {n}?",
                "When does the contract with {n} expire?",
            ),
        ),
    ),
    Noted(
        {"n": _title, "t": _number(2, 9), "l": _number(10, 30)},
        (
            "At {n} the worker gives {t} weeks of notice, the firm {l} weeks.",
            "{n} - notice: worker {t} weeks, firm {l} weeks",
            "The firm {n} must give {l} weeks of notice, the worker only {t} weeks.",
            "Who works for {n} can leave after {t} weeks; {n} itself has to wait {l} weeks.",
            "Notice at {n}: {l} weeks by the firm, {t} weeks by the worker.",
        ),
        (
            *_asks(
                "t",
                "The worker gives {t} weeks of notice.",
                "How many weeks before leaving must a worker tell {n}?",
                "What notice does a worker of {n} give?",
                "As a worker, how long do I have to wait after giving notice at {n}?",
                "How long is the worker's notice at {n}?",
            ),
            *_asks(
                "l",
                "The firm gives {l} weeks of notice.",
                "How many weeks before must the firm {n} tell its worker?",
                "What notice does the firm {n} give?",
                "If the firm {n} ends the contract, how many weeks remain?",
                "How long is the firm's own notice at {n}?",
            ),
        ),
    ),
)

_TRAVEL: tuple[Noted, ...] = (
    Noted(
        {"c": Words.city, "d": _clock(6, 13), "a": _clock(14, 23)},
        (
            "The train to {c} departs at {d} and arrives at {a}.",
            "{c}: dep. {d}, arr. {a}",
            "We leave for {c} at {d} and are there at {a}.",
            "Arrival in {c}: {a}. Departure: {d}.",
            "The {d} train gets to {c} at {a}.",
            "Train to {c} - departure {d} - arrival {a}",
        ),
        (
            *_asks(
                "d",
                "The train to {c} departs at {d}.",
                "When does the train to {c} leave?",
                "At what time must I be on the train to {c}?",
                "When does the journey to {c} begin?",
                "When do we set off for {c}?",
                "What is the departure time of the {c} train?",
            ),
            *_asks(
                "a",
                "The train arrives in {c} at {a}.",
                "When will I be in {c}?",
                "At what time does the train reach {c}?",
                "When does the journey to {c} end?",
                "When should somebody pick me up in {c}?",
                "What is the arrival time in {c}?",
            ),
        ),
    ),
    Noted(
        {"n": _number(1, 99), "f": _clock(4, 7), "l": _clock(20, 23)},
        (
            "The first bus of line {n} goes at {f}, the last one at {l}.",
            "Line {n}: first bus {f}, last bus {l}",
            "Line {n} runs from {f} to {l}.",
            "The last bus of line {n} leaves at {l}, the first at {f}.",
            "Buses of line {n} start at {f} in the morning; the final one is at {l}.",
        ),
        (
            *_asks(
                "f",
                "The first bus of line {n} goes at {f}.",
                "When does line {n} begin to run?",
                "What is the earliest bus of line {n}?",
                "From when on are there buses of line {n}?",
                "When can I catch line {n} at the earliest?",
                "At what time does line {n} start in the morning?",
            ),
            *_asks(
                "l",
                "The last bus of line {n} goes at {l}.",
                "When does line {n} stop running?",
                "What is the latest bus of line {n}?",
                "Until when are there buses of line {n}?",
                "When can I catch line {n} at the latest?",
                "At what time at night does the final bus of line {n} leave?",
            ),
        ),
    ),
    Noted(
        {"h": _title, "i": _clock(13, 17), "o": _clock(8, 12)},
        (
            "At Hotel {h}, check-in is from {i} on and check-out until {o}.",
            "Hotel {h} - check-in: {i}, check-out: {o}",
            "Guests of Hotel {h} get their rooms at {i} and leave them by {o}.",
            "Rooms of Hotel {h} must be free at {o}; new guests may come at {i}.",
            "Check-out of Hotel {h}: {o}. Check-in: {i}.",
        ),
        (
            *_asks(
                "i",
                "Check-in at Hotel {h} is from {i} on.",
                "When can I get into my room at Hotel {h}?",
                "From when on is the room at Hotel {h} ready?",
                "At what time can we check in at Hotel {h}?",
                "How early may new guests come to Hotel {h}?",
                "When can I have the key at Hotel {h} on the first day?",
            ),
            *_asks(
                "o",
                "Check-out at Hotel {h} is until {o}.",
                "When do I have to leave my room at Hotel {h}?",
                "Until when can I keep the room at Hotel {h}?",
                "At what time do we check out at Hotel {h}?",
                "By when must I give back the key at Hotel {h}?",
                "How late can I pack on the last day at Hotel {h}?",
            ),
        ),
    ),
    Noted(
        {"h": _title, "b": _clock(6, 9), "d": _clock(17, 20), "f": _number(1, 30)},
        (
            "Hotel {h} serves breakfast at {b} and dinner at {d} on floor {f}.",
            "Hotel {h}: breakfast {b}, dinner {d}, dining room on floor {f}",
            "On floor {f} of Hotel {h} there is dinner at {d} and breakfast at {b}.",
            "Meals at Hotel {h} (floor {f}): {b} breakfast, {d} dinner.",
            "Dinner at Hotel {h} begins at {d}, breakfast at {b}. Go to floor {f}.",
        ),
        (
            *_asks(
                "b",
                "Breakfast at Hotel {h} is at {b}.",
                "When can I have my morning coffee at Hotel {h}?",
                "What time is breakfast at Hotel {h}?",
                "When is the first meal of the day at Hotel {h}?",
                "From when on can we eat in the morning at Hotel {h}?",
            ),
            *_asks(
                "d",
                "Dinner at Hotel {h} is at {d}.",
                "When can we eat in the evening at Hotel {h}?",
                "What time is dinner at Hotel {h}?",
                "When is the last meal of the day at Hotel {h}?",
                "At what time does the evening meal start at Hotel {h}?",
            ),
            *_asks(
                "f",
                "The dining room of Hotel {h} is on floor {f}.",
                "On which floor do we eat at Hotel {h}?",
                "Where is the dining room of Hotel {h}?",
                "To which floor do I go for meals at Hotel {h}?",
                "Which floor of Hotel {h} has the dining room?",
            ),
        ),
    ),
    Noted(
        {
            "h": _title,
            "s": _number(1, 9),
            "g": _number(10, 30),
            "v": lambda w: w.rng.choice((w.code(), made_up(w.rng))),
        },
        (
            "In Hotel {h} the sauna is on floor {s}, the gym on floor {g}; the wifi password is {v}.",
            "Hotel {h} - wifi: {v}, sauna: floor {s}, gym: floor {g}",
            "The gym of Hotel {h} is on floor {g} and the sauna on floor {s}. For the wifi type {v}.",
            "Use {v} for the wifi of Hotel {h}. Floor {s}: sauna. Floor {g}: gym.",
        ),
        (
            *_asks(
                "s",
                "The sauna of Hotel {h} is on floor {s}.",
                "Where can I sweat in the heat at Hotel {h}?",
                "On which floor is the sauna of Hotel {h}?",
                "Which button of the lift takes me to the sauna of Hotel {h}?",
                "Where do I find the sauna in Hotel {h}?",
            ),
            *_asks(
                "g",
                "The gym of Hotel {h} is on floor {g}.",
                "Where can I lift weights at Hotel {h}?",
                "On which floor is the gym of Hotel {h}?",
                "Which button of the lift takes me to the gym of Hotel {h}?",
                "Where do I find the gym in Hotel {h}?",
            ),
            *_asks(
                "v",
                "The wifi password of Hotel {h} is {v}.",
                "How do I get online at Hotel {h}?",
                "What is the wifi password of Hotel {h}?",
                "What do I type to use the internet at Hotel {h}?",
                "Which password does Hotel {h} give to its guests?",
            ),
        ),
    ),
    Noted(
        {"n": Words.name, "o": _date, "b": _date, "c": Words.city},
        (
            "{n} flies to {c} on {o} and comes back on {b}.",
            "{n}, {c}: out {o}, back {b}",
            "On {o} {n} leaves for {c}; on {b} {n} is home again.",
            "Return flight of {n}: {b}. Flight to {c}: {o}.",
            "{n} is back from {c} on {b}, having left on {o}.",
        ),
        (
            *_asks(
                "o",
                "{n} flies to {c} on {o}.",
                "When does {n} leave for {c}?",
                "On which day does {n}'s trip to {c} start?",
                "When is {n}'s flight out?",
                "When do we say goodbye to {n}?",
                "From when on will {n} be away?",
            ),
            *_asks(
                "b",
                "{n} comes back on {b}.",
                "When does {n} return from {c}?",
                "On which day does {n}'s trip to {c} end?",
                "When is {n}'s flight home?",
                "When will {n} be here again?",
                "Until when is {n} away?",
            ),
            *_asks(
                "c",
                "{n} flies to {c}.",
                "Where does {n} fly?",
                "Which city will {n} visit?",
                "What is the goal of {n}'s flight?",
                "Where does {n} go by plane?",
            ),
        ),
    ),
    Noted(
        {"n": Words.name, "a": Words.city, "b": Words.city, "x": _number(2, 9), "y": _number(10, 20)},
        (
            "{n} first stays in {a} for {x} nights, then in {b} for {y} nights.",
            "{n}'s route: 1. {a} ({x} nights), 2. {b} ({y} nights)",
            "After {x} nights in {a}, {n} goes on to {b} for {y} nights.",
            "{n} spends {y} nights in {b}, but before that {x} nights in {a}.",
            "Trip of {n}: {a}, {x} nights; after that {b}, {y} nights.",
        ),
        (
            *_asks(
                "a",
                "{n} first goes to {a}.",
                "What is the first stop of {n}?",
                "Where does {n}'s trip begin?",
                "Which town does {n} see first?",
                "Where is {n} before the second stop?",
            ),
            *_asks(
                "b",
                "{n} then goes to {b}.",
                "What is the second stop of {n}?",
                "Where does {n}'s trip end?",
                "Which town does {n} see last?",
                "Where does {n} go after the first stop?",
            ),
            *_asks(
                "x",
                "{n} stays in {a} for {x} nights.",
                "How many nights is {n} in {a}?",
                "How long does {n} stay in {a}?",
                "For how many nights does {n} need a bed in {a}?",
                "How many nights does {n} spend at the first stop?",
            ),
            *_asks(
                "y",
                "{n} stays in {b} for {y} nights.",
                "How many nights is {n} in {b}?",
                "How long does {n} stay in {b}?",
                "For how many nights does {n} need a bed in {b}?",
                "How many nights does {n} spend at the second stop?",
            ),
        ),
    ),
    Noted(
        {"b": _title, "s": _number(1, 40), "w": _number(41, 99), "n": Words.name},
        (
            "The boat {b} of captain {n} lies at berth {s} in summer and at berth {w} in winter.",
            "{b} (captain {n}): summer berth {s}, winter berth {w}",
            "In winter the {b} is at berth {w}, in summer at berth {s}. {n} is the captain.",
            "Captain {n} keeps the {b} at berth {s} all summer and at berth {w} all winter.",
        ),
        (
            *_asks(
                "s",
                "In summer the {b} lies at berth {s}.",
                "Where is the {b} in July?",
                "Which berth does the {b} have in summer?",
                "At which berth do I find the {b} in the warm months?",
                "What is the summer berth of the {b}?",
            ),
            *_asks(
                "w",
                "In winter the {b} lies at berth {w}.",
                "Where is the {b} in January?",
                "Which berth does the {b} have in winter?",
                "At which berth do I find the {b} in the cold months?",
                "What is the winter berth of the {b}?",
            ),
            *_asks(
                "n",
                "The captain of the {b} is {n}.",
                "Who is in command of the {b}?",
                "Who steers the {b}?",
                "Whom do I ask to come aboard the {b}?",
                "Under which captain does the {b} sail?",
            ),
        ),
    ),
    Noted(
        {"b": _of("ferry", "barge", "yacht", "tug", "canoe", "trawler"), "l": _number(21, 90), "w": _number(2, 20)},
        (
            "The {b} is {l} metres long and {w} metres wide.",
            "{B}: length {l} metres, width {w} metres",
            "The {b} has a length of {l} metres and a width of {w} metres.",
            "With a width of {w} metres, the {b} is {l} metres long.",
            "From bow to stern the {b} has {l} metres, from side to side {w} metres.",
        ),
        (
            *_asks(
                "l",
                "The {b} is {l} metres long.",
                "How long is the {b}?",
                "What is the length of the {b}?",
                "How many metres are there from bow to stern of the {b}?",
                "How much room does the {b} need along the quay?",
            ),
            *_asks(
                "w",
                "The {b} is {w} metres wide.",
                "How wide is the {b}?",
                "What is the width of the {b}?",
                "How many metres are there from one side of the {b} to the other?",
                "How broad is the {b}?",
            ),
        ),
    ),
)

_KITCHEN: tuple[Noted, ...] = (
    Noted(
        {"d": _DISH, "h": _number(150, 250), "m": _number(10, 90)},
        (
            "Bake the {d} at {h} degrees for {m} minutes.",
            "{D}: {h} degrees, {m} minutes",
            "The {d} stays in the oven for {m} minutes at {h} degrees.",
            "Heat the oven to {h} degrees and leave the {d} in it for {m} minutes.",
            "After {m} minutes at {h} degrees the {d} is done.",
        ),
        (
            *_asks(
                "h",
                "The {d} needs {h} degrees.",
                "How hot must the oven be for the {d}?",
                "At what temperature do I bake the {d}?",
                "To how many degrees do I set the oven for the {d}?",
                "What heat does the {d} need?",
            ),
            *_asks(
                "m",
                "The {d} needs {m} minutes.",
                "How long does the {d} bake?",
                "When can I take the {d} out of the oven?",
                "How much time does the {d} need?",
                "To how many minutes do I set the timer for the {d}?",
                "How long is the {d} in the oven?",
            ),
        ),
    ),
    Noted(
        {"d": _DISH, "f": _number(300, 900), "s": _number(20, 250)},
        (
            "For the {d} take {f} grams of flour and {s} grams of sugar.",
            "{D}: {f} g flour, {s} g sugar",
            "Mix {s} grams of sugar with {f} grams of flour for the {d}.",
            "The {d} is made of {f} grams of flour and {s} grams of sugar.",
            "{D} - sugar: {s} grams, flour: {f} grams",
        ),
        (
            *_asks(
                "f",
                "The {d} needs {f} grams of flour.",
                "How much flour goes into the {d}?",
                "How many grams of flour do I weigh for the {d}?",
                "What amount of flour is in the {d}?",
                "How much flour should I buy for the {d}?",
            ),
            *_asks(
                "s",
                "The {d} needs {s} grams of sugar.",
                "How much sugar goes into the {d}?",
                "How many grams of sugar do I weigh for the {d}?",
                "What amount of sugar is in the {d}?",
                "How much sugar should I buy for the {d}?",
            ),
        ),
    ),
    Noted(
        {"d": _DISH, "r": _number(60, 180), "b": _number(15, 55), "c": _number(4, 14)},
        (
            "Let the dough of the {d} rest for {r} minutes, bake it for {b} and let it cool for {c}.",
            "{D}: rest {r} min, bake {b} min, cool {c} min",
            "Before baking, the dough of the {d} rests {r} minutes. It bakes {b} minutes. Then it cools {c} minutes.",
            "The {d} is baked for {b} minutes after {r} minutes of rest, and cools for {c} minutes.",
        ),
        (
            *_asks(
                "r",
                "The dough of the {d} rests for {r} minutes.",
                "How long do I wait before I bake the {d}?",
                "For how long does the dough of the {d} rest?",
                "How many minutes must the dough of the {d} be left alone?",
                "How much rest does the dough of the {d} need?",
            ),
            *_asks(
                "b",
                "The {d} bakes for {b} minutes.",
                "How long is the {d} in the oven?",
                "What is the baking time of the {d}?",
                "For how many minutes do I bake the {d}?",
                "How long does the oven have to be on for the {d}?",
            ),
            *_asks(
                "c",
                "The {d} cools for {c} minutes.",
                "How long do I wait before I eat the {d}?",
                "For how long must the {d} cool?",
                "How many minutes after baking can I cut the {d}?",
                "How long does the {d} stand outside the oven?",
            ),
        ),
    ),
    Noted(
        {
            "d": _of("coffee", "tea", "soup", "cocoa", "lemonade", "ice cream", "juice"),
            "s": _number(2, 4),
            "l": _number(5, 9),
        },
        (
            "A small {d} costs {s} euros, a large one {l} euros.",
            "{D}: small {s} euros, large {l} euros",
            "Prices of the {d} - large: {l} euros, small: {s} euros",
            "We sell the {d} for {s} euros (small) and {l} euros (large).",
            "You pay {l} euros for a large {d} and {s} euros for a small one.",
        ),
        (
            *_asks(
                "s",
                "A small {d} costs {s} euros.",
                "How much is a small {d}?",
                "What is the price of the little {d}?",
                "I want only a little {d}: what do I pay?",
                "How many euros do I need for a small {d}?",
            ),
            *_asks(
                "l",
                "A large {d} costs {l} euros.",
                "How much is a large {d}?",
                "What is the price of the big {d}?",
                "I want a lot of {d}: what do I pay?",
                "How many euros do I need for a large {d}?",
            ),
        ),
    ),
    Noted(
        {
            "p": _of("zoo", "pool", "castle", "museum", "cave", "circus", "cinema"),
            "a": _number(10, 40),
            "c": _number(2, 9),
        },
        (
            "Tickets for the {p} cost {a} euros for adults and {c} euros for children.",
            "{P}: adults {a} euros, children {c} euros",
            "Children pay {c} euros at the {p}, adults {a} euros.",
            "Entry to the {p} - child: {c} euros - adult: {a} euros",
            "An adult gets into the {p} for {a} euros, a child for {c} euros.",
        ),
        (
            *_asks(
                "a",
                "An adult pays {a} euros.",
                "What do I pay at the {p} as a grown-up?",
                "How much is the {p} for adults?",
                "What does a ticket for my mother cost at the {p}?",
                "What is the adult price of the {p}?",
                "How many euros does the {p} take from grown-ups?",
            ),
            *_asks(
                "c",
                "A child pays {c} euros.",
                "What does my little daughter pay at the {p}?",
                "How much is the {p} for children?",
                "What does a ticket for a child cost at the {p}?",
                "What is the price of the {p} for kids?",
                "How many euros does the {p} take from boys and girls?",
            ),
        ),
    ),
    Noted(
        {"e": Words.event, "n": Words.name, "x": _BROUGHT, "m": Words.name, "y": _BROUGHT},
        (
            "For the {e}, {n} brings the {x} and {m} brings the {y}.",
            "{E}: {n} - {x}, {m} - {y}",
            "The {x} for the {e} will come from {n}, the {y} from {m}.",
            "{n} has promised the {x} for the {e}; {m} will bring the {y}.",
            "Who brings what to the {e}? {X}: {n}. {Y}: {m}.",
        ),
        (
            *_asks(
                "n",
                "{n} brings the {x}.",
                "Who brings the {x} to the {e}?",
                "From whom do we get the {x}?",
                "Who has promised the {x}?",
                "Who must not forget the {x}?",
                "Whom do I ask about the {x} for the {e}?",
            ),
            *_asks(
                "m",
                "{m} brings the {y}.",
                "Who brings the {y} to the {e}?",
                "From whom do we get the {y}?",
                "Who has promised the {y}?",
                "Who must not forget the {y}?",
                "Whom do I ask about the {y} for the {e}?",
            ),
            *_asks(
                "x",
                "{n} brings the {x}.",
                "What does {n} bring to the {e}?",
                "What do we get from {n} for the {e}?",
                "What must {n} not forget?",
                "What has {n} promised for the {e}?",
            ),
            *_asks(
                "y",
                "{m} brings the {y}.",
                "What does {m} bring to the {e}?",
                "What do we get from {m} for the {e}?",
                "What must {m} not forget?",
                "What has {m} promised for the {e}?",
            ),
        ),
    ),
)

_WORK: tuple[Noted, ...] = (
    Noted(
        {"m": _MACHINE, "a": Words.colour, "b": Words.colour},
        (
            "To start the {m}, first press the {a} button, then the {b} button.",
            "Starting the {m}: 1. {a} button, 2. {b} button",
            "Press the {b} button of the {m} only after the {a} one.",
            "The {m} starts if you push the {a} button and after that the {b} button.",
            "{M} on: {a} button first, {b} button second",
        ),
        (
            *_asks(
                "a",
                "First press the {a} button.",
                "Which button of the {m} comes first?",
                "What do I press first to start the {m}?",
                "With which button do I begin at the {m}?",
                "What colour is the first button of the {m}?",
                "Which button do I push before the other one at the {m}?",
            ),
            *_asks(
                "b",
                "Then press the {b} button.",
                "Which button of the {m} comes second?",
                "What do I press last to start the {m}?",
                "With which button do I end at the {m}?",
                "What colour is the second button of the {m}?",
                "Which button do I push after the other one at the {m}?",
            ),
        ),
    ),
    Noted(
        {"m": _MACHINE, "o": _number(100, 400), "f": _number(500, 999)},
        (
            "Change the oil of the {m} after {o} hours and its filter after {f} hours.",
            "{M} service: oil {o} hours, filter {f} hours",
            "The {m} needs a new filter every {f} hours and new oil every {o} hours.",
            "Every {o} hours the {m} gets new oil, every {f} hours a new filter.",
            "Filter of the {m}: {f} hours. Oil: {o} hours.",
        ),
        (
            *_asks(
                "o",
                "The oil of the {m} is changed after {o} hours.",
                "When do I change the oil of the {m}?",
                "How many hours does the {m} run with the same oil?",
                "How often does the {m} need fresh oil?",
                "How long can the oil stay in the {m}?",
            ),
            *_asks(
                "f",
                "The filter of the {m} is changed after {f} hours.",
                "When do I change the filter of the {m}?",
                "How many hours does the {m} run with the same filter?",
                "How often does the {m} need another filter?",
                "How long can the filter stay in the {m}?",
            ),
        ),
    ),
    Noted(
        {"g": _GROUP, "n": Words.full_name, "m": Words.full_name, "d": _date},
        (
            "Minutes of the {g}, {d}. Chair: {n}. Written by {m}.",
            "{n} led the talk of the {g} on {d}, {m} wrote the minutes.",
            "On {d} the {g} met. {m} took the minutes and {n} was in the chair.",
            "{G}, {d}: chair {n}, minutes {m}",
        ),
        (
            *_asks(
                "n",
                "{n} was in the chair.",
                "Who led the meeting of the {g}?",
                "Who was in the chair when the {g} met?",
                "Who gave people the word at the meeting of the {g}?",
                "Under whom did the {g} meet?",
            ),
            *_asks(
                "m",
                "{m} wrote the minutes.",
                "Who wrote down what the {g} said?",
                "Who took notes for the {g}?",
                "From whose pen are the minutes of the {g}?",
                "Who made the minutes of the {g}?",
            ),
            *_asks(
                "d",
                "The {g} met on {d}.",
                "When did the {g} meet?",
                "On which day did the {g} come together?",
                "What is the date of the minutes of the {g}?",
                "When was the meeting of the {g}?",
            ),
        ),
    ),
    Noted(
        {
            "t": _of("new roof", "summer party", "higher fee", "bike shed", "new website", "longer break"),
            "f": _number(12, 40),
            "a": _number(2, 11),
        },
        (
            "{f} members voted for the {t}, {a} voted against it.",
            "Vote on the {t}: {f} for, {a} against",
            "The {t} was accepted with {f} votes to {a}.",
            "There were {a} votes against the {t} and {f} in favour.",
            "{T} - yes: {f}, no: {a}",
        ),
        (
            *_asks(
                "f",
                "{f} members voted for the {t}.",
                "How many members wanted the {t}?",
                "How many people said yes to the {t}?",
                "How many votes did the {t} get?",
                "How many hands went up for the {t}?",
                "How many were in favour of the {t}?",
            ),
            *_asks(
                "a",
                "{a} members voted against the {t}.",
                "How many members did not want the {t}?",
                "How many people said no to the {t}?",
                "How many votes did the {t} have against it?",
                "How many were opposed to the {t}?",
            ),
        ),
    ),
    Noted(
        {"d": _day, "e": Words.name, "l": Words.name},
        (
            "On {d} {e} has the early shift and {l} the late shift.",
            "{d}: early {e}, late {l}",
            "{d} - late shift: {l}, early shift: {e}",
            "{e} works on {d} morning, {l} takes over in the evening.",
            "The late shift on {d} is for {l}, the early one for {e}.",
        ),
        (
            *_asks(
                "e",
                "{e} has the early shift on {d}.",
                "Who works in the morning on {d}?",
                "Who has the early shift on {d}?",
                "Who must get up early on {d}?",
                "Whom do I meet at work on {d} morning?",
                "Who opens up on {d}?",
            ),
            *_asks(
                "l",
                "{l} has the late shift on {d}.",
                "Who works in the evening on {d}?",
                "Who has the late shift on {d}?",
                "Who can sleep longer on {d}?",
                "Whom do I meet at work on {d} evening?",
                "Who locks up on {d}?",
            ),
        ),
    ),
    Noted(
        {"n": Words.name, "o": _digits(6), "h": _digits(5)},
        (
            "{n}: office {o}, home {h}",
            "At work {n} has the number {o}, at home {h}.",
            "Call {n} at {o} in the office and at {h} at home.",
            "{n}'s home number is {h}, the office number is {o}.",
            "Phone {n} - home: {h}, office: {o}",
        ),
        (
            *_asks(
                "o",
                "{n}'s office number is {o}.",
                "What is {n}'s number at work?",
                "How do I reach {n} in the office?",
                "Which number of {n} do I call during working hours?",
                "{n} is at the office. What do I dial?",
                "What is the office number of {n}?",
            ),
            *_asks(
                "h",
                "{n}'s home number is {h}.",
                "What is {n}'s private number?",
                "How do I reach {n} at home?",
                "Which number of {n} do I call on a Sunday evening?",
                "{n} is at home. What do I dial?",
                "What is the home number of {n}?",
            ),
        ),
    ),
    Noted(
        {"g": _GADGET, "b": _number(7, 40), "c": _number(2, 6)},
        (
            "The battery of the {g} lasts {b} hours and charges in {c} hours.",
            "{G}: battery {b} hours, charging {c} hours",
            "After {c} hours of charging the {g} runs for {b} hours.",
            "The {g} works for {b} hours; charging it takes {c} hours.",
            "Charging time of the {g}: {c} hours. Running time: {b} hours.",
        ),
        (
            *_asks(
                "b",
                "The battery of the {g} lasts {b} hours.",
                "How long can I use the {g}?",
                "When will the {g} be empty?",
                "How long does the {g} run without a cable?",
                "How many hours does the battery of the {g} last?",
                "For how long does the {g} work?",
            ),
            *_asks(
                "c",
                "The {g} charges in {c} hours.",
                "How long must the {g} be plugged in?",
                "When will the {g} be full again?",
                "How long does it take to charge the {g}?",
                "For how many hours is the {g} on the cable?",
                "What is the charging time of the {g}?",
            ),
        ),
    ),
    Noted(
        {"f": _FURNITURE, "w": _number(40, 99), "h": _number(100, 220), "d": _number(10, 39)},
        (
            "The {f} is {w} cm wide, {h} cm high and {d} cm deep.",
            "{F}: width {w} cm, height {h} cm, depth {d} cm",
            "With a height of {h} cm and a depth of {d} cm, the {f} is {w} cm wide.",
            "Size of the {f} - {h} cm high, {w} cm wide, {d} cm deep",
        ),
        (
            *_asks(
                "w",
                "The {f} is {w} cm wide.",
                "How broad is the {f}?",
                "What is the width of the {f}?",
                "How much room does the {f} take from left to right?",
                "How many centimetres wide is the {f}?",
            ),
            *_asks(
                "h",
                "The {f} is {h} cm high.",
                "How tall is the {f}?",
                "What is the height of the {f}?",
                "How far up does the {f} go?",
                "How many centimetres high is the {f}?",
            ),
            *_asks(
                "d",
                "The {f} is {d} cm deep.",
                "How far is it from the front of the {f} to its back?",
                "What is the depth of the {f}?",
                "How much room does the {f} take from front to back?",
                "How many centimetres deep is the {f}?",
            ),
        ),
    ),
    Noted(
        {"g": _GADGET, "y": _number(2, 10), "d": _number(14, 90)},
        (
            "The {g} has a guarantee of {y} years and can be sent back within {d} days.",
            "{G}: {y} years guarantee, {d} days return",
            "You can return the {g} for {d} days; the guarantee lasts {y} years.",
            "Returns of the {g}: {d} days. Guarantee: {y} years.",
            "If you do not like the {g}, bring it back within {d} days. If it breaks within {y} years, we repair it.",
        ),
        (
            *_asks(
                "y",
                "The guarantee of the {g} lasts {y} years.",
                "How long is the guarantee of the {g}?",
                "For how many years is the {g} repaired for free?",
                "How many years of guarantee come with the {g}?",
                "For how long does the maker answer for the {g} if it breaks?",
            ),
            *_asks(
                "d",
                "The {g} can be sent back within {d} days.",
                "How many days do I have to return the {g}?",
                "I do not like the {g}: for how many days can I give it back?",
                "Within how many days can the {g} be sent back?",
                "How long can I try out the {g} and still return it?",
            ),
        ),
    ),
)

_MACHINES: tuple[Noted, ...] = (
    Noted(
        {"s": _SERVER, "w": _number(3000, 6999), "d": _number(7000, 9999)},
        (
            "On the {s} the website runs on port {w} and the database on port {d}.",
            "{S}: web_port={w} db_port={d}",
            "The database of the {s} listens on port {d}, the website on port {w}.",
            "{S} ports - database: {d}, website: {w}",
            "Port {w} of the {s} is for the website, port {d} for the database.",
        ),
        (
            *_asks(
                "w",
                "The website of the {s} is on port {w}.",
                "On which port is the website of the {s}?",
                "Which port do I type into my browser for the {s}?",
                "What is the web port of the {s}?",
                "Where do the pages of the {s} come from?",
            ),
            *_asks(
                "d",
                "The database of the {s} is on port {d}.",
                "On which port is the database of the {s}?",
                "Which port do I use to query tables on the {s}?",
                "What is the database port of the {s}?",
                "To which port of the {s} does the database listen?",
            ),
        ),
    ),
    Noted(
        {"s": _SERVER, "o": _version, "n": _version},
        (
            "The {s} was updated from version {o} to version {n}.",
            "{S}: {o} -> {n}",
            "{S} update. Old version: {o}. New version: {n}.",
            "Version {n} now runs on the {s}; before, it was version {o}.",
            "Before the update the {s} had version {o}, now it has version {n}.",
        ),
        (
            *_asks(
                "o",
                "The old version of the {s} was {o}.",
                "What did the {s} run before the update?",
                "Which version did the {s} have earlier?",
                "What was the old version of the {s}?",
                "From which version was the {s} updated?",
                "To what do I go back if the new {s} fails?",
            ),
            *_asks(
                "n",
                "The new version of the {s} is {n}.",
                "What does the {s} run now?",
                "Which version does the {s} have today?",
                "What is the new version of the {s}?",
                "To which version was the {s} updated?",
                "What did the update install on the {s}?",
            ),
        ),
    ),
    Noted(
        {"s": _of("shop", "forum", "wiki", "calendar", "game", "mail system", "archive"), "t": _host, "l": _host},
        (
            "The {s} is tested on {t} and live on {l}.",
            "{S}: test={t} live={l}",
            "The live host of the {s} is {l}, the test host is {t}.",
            "Try changes of the {s} on {t}; visitors use {l}.",
            "{S} hosts - live: {l} - test: {t}",
        ),
        (
            *_asks(
                "t",
                "The test host of the {s} is {t}.",
                "Where do I try out changes of the {s}?",
                "On which host is the {s} tested?",
                "Which host of the {s} may I break?",
                "What is the test machine of the {s}?",
                "Where can developers play with the {s}?",
            ),
            *_asks(
                "l",
                "The live host of the {s} is {l}.",
                "Which host of the {s} do visitors use?",
                "On which host is the {s} live?",
                "Where does the real {s} run?",
                "What is the live machine of the {s}?",
                "Which host of the {s} must always be up?",
            ),
        ),
    ),
    Noted(
        {"s": _SERVER, "t": _clock(0, 5), "k": _number(7, 90), "r": _clock(6, 23)},
        (
            "The {s} is backed up at {t} and restarted at {r}; copies are kept for {k} days.",
            "{S}: backup={t} restart={r} keep_days={k}",
            "A copy of the {s} is made at {t} and kept for {k} days. It restarts at {r}.",
            "At {r} the {s} restarts. Its backup is at {t}. Backups older than {k} days are deleted.",
        ),
        (
            *_asks(
                "t",
                "The backup of the {s} is made at {t}.",
                "When is the {s} copied?",
                "At what time does the backup of the {s} run?",
                "When is the data of the {s} saved?",
                "What is the backup time of the {s}?",
            ),
            *_asks(
                "k",
                "The backups of the {s} are kept for {k} days.",
                "How long are copies of the {s} kept?",
                "After how many days are backups of the {s} deleted?",
                "For how many days can I get back old data of the {s}?",
                "How old can a backup of the {s} be?",
            ),
            *_asks(
                "r",
                "The {s} restarts at {r}.",
                "When is the {s} down for a moment?",
                "At what time does the {s} restart?",
                "When does the {s} go off and on again?",
                "What is the restart time of the {s}?",
            ),
        ),
    ),
)

_NATURE: tuple[Noted, ...] = (
    Noted(
        {"p": _PLANT, "s": _number(2, 7), "w": _number(8, 30)},
        (
            "Water the {p} every {s} days in summer and every {w} days in winter.",
            "{P}: summer every {s} days, winter every {w} days",
            "In winter the {p} gets water every {w} days, in summer every {s} days.",
            "The {p} drinks every {s} days in summer, but only every {w} days in winter.",
            "Watering the {p} - winter: {w} days, summer: {s} days",
        ),
        (
            *_asks(
                "s",
                "In summer the {p} needs water every {s} days.",
                "How often do I water the {p} in summer?",
                "It is July: how many days can the {p} go without water?",
                "How often does the {p} get water when it is hot?",
                "After how many days is the {p} thirsty in summer?",
            ),
            *_asks(
                "w",
                "In winter the {p} needs water every {w} days.",
                "How often do I water the {p} in winter?",
                "It is January: how many days can the {p} go without water?",
                "How often does the {p} get water when it is cold?",
                "After how many days is the {p} thirsty in winter?",
            ),
        ),
    ),
    Noted(
        {"c": _CROP, "s": _month, "h": _month},
        (
            "The {c} is sown in {s} and harvested in {h}.",
            "{C}: sow {s}, harvest {h}",
            "In {h} we bring in the {c} that we put into the ground in {s}.",
            "Harvest of the {c}: {h}. Sowing: {s}.",
            "Sow the {c} in {s}; you can pick it in {h}.",
        ),
        (
            *_asks(
                "s",
                "The {c} is sown in {s}.",
                "When do I put the {c} into the ground?",
                "In which month is the {c} sown?",
                "When do I need the seeds of the {c}?",
                "When does the season of the {c} begin?",
                "Which month is right for planting the {c}?",
            ),
            *_asks(
                "h",
                "The {c} is harvested in {h}.",
                "When is the {c} ripe?",
                "In which month do we bring in the {c}?",
                "When can I eat fresh {c} from the field?",
                "When does the season of the {c} end?",
                "Which month is right for picking the {c}?",
            ),
        ),
    ),
    Noted(
        {"n": Words.name, "f": _GREEN, "b": _GREEN},
        (
            "In {n}'s garden the {f} grow in the front bed and the {b} in the back bed.",
            "{n}'s garden: front {f}, back {b}",
            "The back bed of {n}'s garden is full of {b}, the front bed is for the {f}.",
            "{n} plants {f} in the front bed, {b} in the back bed.",
            "Garden of {n} - back bed: {b} - front bed: {f}",
        ),
        (
            *_asks(
                "f",
                "In the front bed there are {f}.",
                "What grows at the front of {n}'s garden?",
                "What is in the front bed of {n}'s garden?",
                "What does {n} plant in front?",
                "What do I see first in {n}'s garden, in the front bed?",
            ),
            *_asks(
                "b",
                "In the back bed there are {b}.",
                "What grows at the back of {n}'s garden?",
                "What is in the back bed of {n}'s garden?",
                "What does {n} plant behind the front bed?",
                "What do I find in the rear bed of {n}'s garden?",
            ),
        ),
    ),
    Noted(
        {"p": _PLANT, "m": _month, "c": Words.colour, "q": _number(30, 300)},
        (
            "The {p} blooms in {m}, has {c} flowers and grows {q} cm tall.",
            "{P}: {c} flowers, blooms {m}, height {q} cm",
            "In {m} you can see the {c} flowers of the {p}, which is up to {q} cm tall.",
            "Up to {q} cm tall, the {p} shows its {c} flowers in {m}.",
        ),
        (
            *_asks(
                "m",
                "The {p} blooms in {m}.",
                "When does the {p} have flowers?",
                "In which month can I see the {p} bloom?",
                "When is the {p} at its most beautiful?",
                "When does the {p} flower?",
            ),
            *_asks(
                "c",
                "The flowers of the {p} are {c}.",
                "What colour are the flowers of the {p}?",
                "What do the flowers of the {p} look like?",
                "In what colour does the {p} bloom?",
                "Which colour does the {p} bring to the garden?",
            ),
            *_asks(
                "q",
                "The {p} grows {q} cm tall.",
                "How big does the {p} get?",
                "What is the height of the {p}?",
                "How far up does the {p} grow?",
                "How many centimetres does the {p} reach?",
            ),
        ),
    ),
    Noted(
        {"a": _ANIMAL, "b": _number(50, 900), "g": _number(2, 40)},
        (
            "At birth the {a} weighs {b} grams, fully grown {g} kilos.",
            "{A}: {b} grams at birth, {g} kilos grown",
            "A grown {a} weighs {g} kilos, a newborn one {b} grams.",
            "The {a} comes into the world with {b} grams and reaches {g} kilos.",
            "Weight of the {a} - adult: {g} kilos, newborn: {b} grams",
        ),
        (
            *_asks(
                "b",
                "At birth the {a} weighs {b} grams.",
                "How heavy is the {a} when it is born?",
                "How many grams does the young {a} weigh on its first day?",
                "What does a baby {a} weigh?",
                "With what weight does the {a} start its life?",
            ),
            *_asks(
                "g",
                "Fully grown, the {a} weighs {g} kilos.",
                "How heavy does the {a} get?",
                "How many kilos does the adult {a} weigh?",
                "What does an old {a} weigh?",
                "What weight does the {a} have in the end?",
            ),
        ),
    ),
    Noted(
        {"n": Words.name, "m": _FEED, "e": _FEED},
        (
            "In the morning we feed {n} {m}, in the evening {e}.",
            "{n}: {m} in the morning, {e} in the evening",
            "{n} gets {e} in the evening and {m} in the morning.",
            "Feeding {n} - morning: {m}, evening: {e}",
            "Before noon {n} eats {m}, at night it is {e}.",
        ),
        (
            *_asks(
                "m",
                "In the morning {n} gets {m}.",
                "What does {n} eat early in the day?",
                "What is {n}'s breakfast?",
                "What do I feed {n} in the morning?",
                "What does {n} get before noon?",
            ),
            *_asks(
                "e",
                "In the evening {n} gets {e}.",
                "What does {n} eat late in the day?",
                "What is {n}'s supper?",
                "What do I feed {n} in the evening?",
                "What does {n} get when it gets dark?",
            ),
        ),
    ),
    Noted(
        {"a": _ANIMAL, "w": _month, "s": _month, "y": _number(2, 9)},
        (
            "The {a} goes to sleep in {s}, wakes up in {w} and has {y} young a year.",
            "{A}: asleep from {s}, awake from {w}, young: {y}",
            "In {w} the {a} wakes up from the long sleep that began in {s}. It has {y} young.",
            "With {y} young to raise, the {a} is awake from {w} on; in {s} it falls asleep.",
        ),
        (
            *_asks(
                "s",
                "The {a} goes to sleep in {s}.",
                "When does the {a} fall asleep?",
                "In which month does the {a} go into its den for the long sleep?",
                "When does the long sleep of the {a} begin?",
                "From which month on is there no {a} to be seen?",
            ),
            *_asks(
                "w",
                "The {a} wakes up in {w}.",
                "When does the {a} come out again?",
                "In which month does the {a} open its eyes again?",
                "When is the long sleep of the {a} over?",
                "From which month on is the {a} awake?",
            ),
            *_asks(
                "y",
                "The {a} has {y} young a year.",
                "How many babies does the {a} have?",
                "How many young does the {a} raise?",
                "How big is the litter of the {a}?",
                "How many little ones follow the {a}?",
            ),
        ),
    ),
    Noted(
        {"h": _number(1, 20), "l": _number(21, 40), "t": _number(41, 60), "c": Words.colour},
        (
            "Hive {h} ({c} roof) gave {l} kilos of honey last year and {t} kilos this year.",
            "Hive {h}: {c} roof, last year {l} kilos, this year {t} kilos",
            "This year there were {t} kilos in hive {h} with the {c} roof, last year {l} kilos.",
            "From hive {h} we took {t} kilos of honey this year, after {l} kilos last year. Its roof is {c}.",
        ),
        (
            *_asks(
                "l",
                "Last year hive {h} gave {l} kilos.",
                "How much honey was there in hive {h} last year?",
                "What did the bees of hive {h} make a year ago?",
                "How many kilos came from hive {h} last year?",
                "How good was the past year for hive {h}?",
            ),
            *_asks(
                "t",
                "This year hive {h} gave {t} kilos.",
                "How much honey is there from hive {h} this year?",
                "What did the bees of hive {h} make in the present year?",
                "How many kilos came from hive {h} this year?",
                "How good was this year for hive {h}?",
            ),
            *_asks(
                "c",
                "The roof of hive {h} is {c}.",
                "What colour is the roof of hive {h}?",
                "How do I know hive {h} from afar?",
                "In which colour did we paint the roof of hive {h}?",
                "Which roof colour belongs to hive {h}?",
            ),
        ),
    ),
)

_PEOPLE: tuple[Noted, ...] = (
    Noted(
        {"c": _CLUB, "k": _clock(14, 16), "a": _clock(18, 21), "d": _day},
        (
            "On {d} the {c} trains children at {k} and adults at {a}.",
            "{C}, {d}: children {k}, adults {a}",
            "Adults of the {c} meet at {a} on {d}, children at {k}.",
            "The {c} is there for children at {k} and for adults at {a}, always on {d}.",
        ),
        (
            *_asks(
                "k",
                "The children of the {c} meet at {k}.",
                "When can my son go to the {c}?",
                "At what time do the little ones of the {c} start?",
                "When is the {c} open to kids?",
                "When do I bring my children to the {c}?",
            ),
            *_asks(
                "a",
                "The adults of the {c} meet at {a}.",
                "When can grown-ups go to the {c}?",
                "At what time do adults start at the {c}?",
                "I am forty: when is the {c} open to me?",
                "When do parents train at the {c} themselves?",
            ),
            *_asks(
                "d",
                "The {c} meets on {d}.",
                "On which day does the {c} meet?",
                "Which day of the week is for the {c}?",
                "Which day do I keep free for the {c}?",
                "When in the week is the {c}?",
            ),
        ),
    ),
    Noted(
        {"c": _CLUB, "t": Words.name, "k": Words.name, "m": Words.name},
        (
            "{t} trains the {c}, {k} is its captain and {m} counts the money.",
            "{C}: coach {t}, captain {k}, money {m}",
            "The captain of the {c} is {k}, the coach is {t}; {m} keeps the money.",
            "Money of the {c}: {m}. Coach: {t}. Captain: {k}.",
        ),
        (
            *_asks(
                "t",
                "The coach of the {c} is {t}.",
                "Who trains the {c}?",
                "Who tells the {c} how to get better?",
                "Who is the coach of the {c}?",
                "From whom does the {c} learn?",
            ),
            *_asks(
                "k",
                "The captain of the {c} is {k}.",
                "Who is the captain of the {c}?",
                "Who leads the {c} as its captain?",
                "Who wears the captain's band at the {c}?",
                "Whom did the {c} make its captain?",
            ),
            *_asks(
                "m",
                "{m} keeps the money of the {c}.",
                "Whom do I pay at the {c}?",
                "Who takes care of the money of the {c}?",
                "Who knows how much the {c} has in the bank?",
                "To whom do I give my fee for the {c}?",
            ),
        ),
    ),
    Noted(
        {"a": _title, "b": _title, "x": _number(4, 9), "y": _number(2, 3)},
        (
            "{a} beat {b} {x} to {y}.",
            "{a} won against {b} with {x} goals to {y}.",
            "{b} shot {y} goals and {a} shot {x}, so {b} lost.",
            "Result: {a} {x}, {b} {y}",
            "With {y} goals {b} lost to {a}, which had {x}.",
        ),
        (
            *_asks(
                "a",
                "{a} won the match.",
                "Who won, {a} or {b}?",
                "Which team was better, {b} or {a}?",
                "Who beat {b}?",
                "Against whom did {b} lose?",
            ),
            *_asks(
                "b",
                "{b} lost the match.",
                "Who lost, {a} or {b}?",
                "Which team was worse, {b} or {a}?",
                "Who was beaten by {a}?",
                "Against whom did {a} win?",
            ),
            *_asks(
                "x",
                "{a} had {x} goals.",
                "How many goals did {a} have?",
                "How often did {a} score?",
                "With how many goals did {a} win?",
                "What did {a} reach against {b}?",
            ),
            *_asks(
                "y",
                "{b} had {y} goals.",
                "How many goals did {b} have?",
                "How often did {b} score?",
                "With how many goals did {b} lose?",
                "What did {b} reach against {a}?",
            ),
        ),
    ),
    Noted(
        {"t": Words.title, "n": Words.full_name, "y": _number(1600, 1850), "b": _number(1900, 2020)},
        (
            '"{t}" was painted by {n} in {y}. The museum bought it in {b}.',
            '{n}: "{t}", {y}. Bought in {b}.',
            'Since {b} the museum has owned "{t}", which {n} painted in {y}.',
            '"{t}" - painter: {n} - painted: {y} - bought: {b}',
        ),
        (
            *_asks(
                "n",
                '"{t}" was painted by {n}.',
                'Who painted "{t}"?',
                'Whose work is "{t}"?',
                'From whose brush is "{t}"?',
                'Which artist made "{t}"?',
            ),
            *_asks(
                "y",
                '"{t}" was painted in {y}.',
                'When was "{t}" painted?',
                'From which year is "{t}"?',
                'In which year was "{t}" made?',
                'When did the painter work on "{t}"?',
            ),
            *_asks(
                "b",
                'The museum bought "{t}" in {b}.',
                'When did the museum get "{t}"?',
                'Since when has the museum owned "{t}"?',
                'In which year did the museum pay for "{t}"?',
                'When did "{t}" come to the museum?',
            ),
        ),
    ),
    Noted(
        {"n": Words.name, "m": _TRIP, "a": _TRIP, "d": _date},
        (
            "Diary of {n}, {d}: in the morning at the {m}, in the afternoon at the {a}.",
            "On {d} {n} went to the {m} in the morning and to the {a} after lunch.",
            "{n}, {d}. Morning: {m}. Afternoon: {a}.",
            "{n} spent the afternoon of {d} at the {a}, after a morning at the {m}.",
        ),
        (
            *_asks(
                "m",
                "In the morning {n} was at the {m}.",
                "Where was {n} in the morning?",
                "Where did {n} go before lunch?",
                "What did {n} visit first?",
                "Where did {n}'s day begin?",
            ),
            *_asks(
                "a",
                "In the afternoon {n} was at the {a}.",
                "Where was {n} in the afternoon?",
                "Where did {n} go after lunch?",
                "What did {n} visit last?",
                "Where did {n}'s day end?",
            ),
            *_asks(
                "d",
                "It was on {d}.",
                "On which day was {n} at the {m} and at the {a}?",
                "When did {n} write this?",
                "Which day does {n} write about?",
                "What is the date in {n}'s diary?",
            ),
        ),
    ),
    Noted(
        {"f": Words.name, "t": Words.name, "c": Words.city, "d": _date},
        (
            "Dear {t}, I am writing to you from {c} on {d}. Yours, {f}",
            "Letter from {f} to {t}, {c}, {d}",
            "{f} wrote this letter to {t} in {c} on {d}.",
            "{c}, {d}. My dear {t}, all is well here. Love, {f}",
            "On {d} {t} got a letter that {f} had written in {c}.",
        ),
        (
            *_asks(
                "f",
                "The letter is from {f}.",
                "Who wrote the letter to {t}?",
                "Who sent {t} a letter?",
                "From whom did {t} hear?",
                "Whose name is at the end of the letter to {t}?",
            ),
            *_asks(
                "t",
                "The letter is for {t}.",
                "To whom did {f} write?",
                "Whom does {f} tell the news?",
                "For whom is the letter from {f}?",
                "Who will read the letter from {f}?",
            ),
            *_asks(
                "c",
                "{f} wrote from {c}.",
                "Where was {f} when the letter was written?",
                "From which city did {f} write?",
                "Where does the letter from {f} come from?",
                "In which town did {f} write the letter?",
            ),
        ),
    ),
    Noted(
        {
            "n": Words.name,
            "m": _of("white", "red", "yellow", invented=0.2),
            "e": _of("blue", "green", "pink", invented=0.2),
            "q": _number(2, 9),
        },
        (
            "{n} takes the {m} pill in the morning and the {e} pill in the evening, for {q} weeks.",
            "{n} - morning: {m} pill, evening: {e} pill, {q} weeks",
            "In the evening {n} gets the {e} pill, in the morning the {m} pill. This goes on for {q} weeks.",
            "For {q} weeks: {m} pill before breakfast, {e} pill before bed ({n}).",
        ),
        (
            *_asks(
                "m",
                "In the morning {n} takes the {m} pill.",
                "Which pill does {n} take when getting up?",
                "What does {n} take in the morning?",
                "Which pill is for {n}'s morning?",
                "What do I give {n} before breakfast?",
            ),
            *_asks(
                "e",
                "In the evening {n} takes the {e} pill.",
                "Which pill does {n} take before going to sleep?",
                "What does {n} take in the evening?",
                "Which pill is for {n}'s evening?",
                "What do I give {n} at night?",
            ),
            *_asks(
                "q",
                "{n} takes the pills for {q} weeks.",
                "How long does {n} need the pills?",
                "For how many weeks does {n} take pills?",
                "After how many weeks can {n} stop with the pills?",
                "How many weeks of pills does {n} have to take?",
            ),
        ),
    ),
    Noted(
        {
            "s": _of("maths", "history", "biology", "French", "art", "physics", "music"),
            "h": _date,
            "t": _date,
            "q": _number(5, 200),
        },
        (
            "In {s} the homework on page {q} is due on {h} and the test is on {t}.",
            "{S}: homework for {h} (page {q}), test on {t}",
            "The {s} test is on {t}. Until {h} we do page {q} at home.",
            "{S} - test {t} - homework page {q} - due {h}",
        ),
        (
            *_asks(
                "h",
                "The {s} homework is due on {h}.",
                "By when must I do the homework in {s}?",
                "When does the teacher want to see the {s} homework?",
                "When do I hand in what I did at home for {s}?",
                "How long do I have for the {s} homework?",
            ),
            *_asks(
                "t",
                "The {s} test is on {t}.",
                "When do we write the test in {s}?",
                "By when must I have learned everything in {s}?",
                "On which day are we tested in {s}?",
                "What is the date of the {s} test?",
            ),
            *_asks(
                "q",
                "The {s} homework is on page {q}.",
                "Which page do I open for the {s} homework?",
                "Where is the {s} homework in the book?",
                "What page are we to do in {s}?",
                "On which page do I find the {s} homework?",
            ),
        ),
    ),
    Noted(
        {
            "k": lambda w: f"{w.number(1, 12)}{w.rng.choice('abcd')}",
            "n": Words.name,
            "r": _number(100, 400),
            "c": _number(13, 35),
        },
        (
            "Class {k} has {c} pupils, is taught by {n} and sits in room {r}.",
            "{k}: teacher {n}, room {r}, {c} pupils",
            "{n} teaches the {c} pupils of class {k} in room {r}.",
            "In room {r} you find class {k} with its teacher {n} and {c} pupils.",
        ),
        (
            *_asks(
                "n",
                "The teacher of class {k} is {n}.",
                "Who teaches class {k}?",
                "Whom do parents of class {k} talk to?",
                "Who is in charge of class {k}?",
                "Which teacher does class {k} have?",
            ),
            *_asks(
                "r",
                "Class {k} is in room {r}.",
                "Where is class {k}?",
                "In which room do I find class {k}?",
                "To which room do pupils of class {k} go?",
                "What is the room of class {k}?",
            ),
            *_asks(
                "c",
                "Class {k} has {c} pupils.",
                "How many children are in class {k}?",
                "How big is class {k}?",
                "How many pupils does class {k} have?",
                "How many desks does class {k} need?",
            ),
        ),
    ),
)

MORE_NOTES: tuple[Noted, ...] = (*_HOUSE, *_TRAVEL, *_KITCHEN, *_WORK, *_MACHINES, *_NATURE, *_PEOPLE)
