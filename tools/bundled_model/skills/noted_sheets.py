"""Texts that tell many things of one matter: rules, letters, minutes, plans, and what may be asked of them.

A document has some of the parts of its kind. What the others would tell is near to what stands there and is not there.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from words import DAYS, MONTHS, Words, capitalised

from skills.noted import Asked, Noted, _number, _of, tidy
from skills.noted_further import agreed, claimed, once
from skills.noted_more import _clock, _day, _digits, _host, _title, _version

Draw = Callable[[Words], str]


@dataclass(frozen=True)
class Part(Noted):
    """One thing that such a text may tell.

    Attributes:
        checks: ask whether a value is ``{z}``: the question, the letter of the value, and the answer that tells it.
    """

    checks: tuple[tuple[str, str, str], ...] = ()


# Parts of which a text has one at most.
Slot = tuple[Part, ...]


@dataclass(frozen=True)
class Sheet:
    """A kind of text.

    Attributes:
        heads: what may stand first.
        tails: and last.
        slots: what it may tell, in the order of a tidy writer.
        spoken: whether each part is somebody's message, and so begins a line.
    """

    heads: tuple[str, ...]
    tails: tuple[str, ...]
    slots: tuple[Slot, ...]
    spoken: bool = False


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|")) if text else ()


def _part(draws: Mapping[str, Draw], told: str, *groups: tuple[str, ...]) -> Slot:
    """A part; each group has a letter, its answer, its questions, and perhaps those that ask for yes or no."""
    asks: list[tuple[str, str, str]] = []
    checks: list[tuple[str, str, str]] = []
    for letter, answer, questions, *others in groups:
        asks += [(question, answer, letter) for question in _split(questions)]
        checks += [(question, letter, answer) for other in others for question in _split(other)]
    return (Part(draws, _split(told), tuple(asks), tuple(checks)),)


def _either(yes: str, no: str, yes_answer: str, no_answer: str, questions: str) -> Slot:
    """Something that is so, or is not; who asks hears yes or no and why."""

    def one(told: str, word: str, answer: str) -> Part:
        asks = tuple((question, f"{word}, {answer}", "y") for question in _split(questions))
        return Part({"y": lambda _: word}, _split(told), asks)

    return one(yes, "Yes", yes_answer), one(no, "No", no_answer)


def _sheet(heads: str, tails: str, *slots: Slot, spoken: bool = False) -> Sheet:
    return Sheet(_split(heads), _split(tails), slots, spoken)


def _dated(words: Words) -> str:
    return f"{words.number(1, 28)} {words.rng.choice(MONTHS)}"


def _early(words: Words) -> str:
    return f"{words.number(1, 28)} {words.rng.choice(MONTHS[:6])}"


def _late(words: Words) -> str:
    return f"{words.number(1, 28)} {words.rng.choice(MONTHS[6:])}"


def _weekday(words: Words) -> str:
    return words.rng.choice(DAYS)


def _phone(words: Words) -> str:
    return words.digits(words.number(5, 7))


SHEETS: tuple[Sheet, ...] = (
    _sheet(
        "House rules|Rules of the house|To all tenants|Notice in the stairwell",
        "Thank you, the caretaker|Please keep to it.|We wish you a good time here.",
        _part(
            {"a": _clock(20, 23), "b": _clock(5, 8)},
            "No loud music between {a} and {b}.|It has to be quiet from {a} until {b}.|After {a} and before {b} please "
            "make no noise.",
            (
                "a",
                "It must be quiet from {a} on.",
                "How late can I practise the piano?|When do I have to turn the music down in the evening?|"
                "from when on must i be quiet",
                "Does it have to be quiet from {z} on?",
            ),
            (
                "b",
                "It must be quiet until {b}.",
                "How early may I hammer in the morning?|When does the quiet time end?|Until when do people sleep here?",
            ),
        ),
        _part(
            {"d": _weekday, "t": _clock(9, 19)},
            "The laundry room is ours on {d} until {t}.|You may wash on {d}, but only until {t}.|Washing day is {d}; "
            "leave the laundry room by {t}.",
            (
                "d",
                "You can wash on {d}.",
                "On which day can I do my laundry?|When can I clean my clothes?|What is washing day?",
                "Can I wash my shirts on {z}?|Is washing day on {z}?",
            ),
            (
                "t",
                "The laundry room is free for you until {t}.",
                "By when must my clothes be out of the laundry room?|How late can I wash?",
            ),
        ),
        _part(
            {"p": _weekday, "r": _weekday},
            "Put out the paper on {p} and the rubbish on {r}.|Bins: {r} rubbish, {p} paper.|The men come for the "
            "rubbish "
            "on {r}, for the paper on {p}.",
            ("p", "Paper is put out on {p}.", "When are old newspapers taken?|On which day do my boxes go out?"),
            ("r", "Rubbish is put out on {r}.", "When does the smelly bin go out?|What day is for the rubbish?"),
        ),
        _either(
            "Smoking is allowed on the balcony.|You may smoke on the balcony.",
            "Nobody may smoke, not even on the balcony.|There is no smoking on the balcony.",
            "smoking is allowed on the balcony.",
            "smoking is not allowed on the balcony.",
            "May I have a cigarette on the balcony?|Can my guest smoke outside on the balcony?|"
            "Is it all right to smoke on the balcony?",
        ),
        _either(
            "Bicycles may stand in the hall.|You can leave your bike in the hall.",
            "Bicycles must not stand in the hall.|No bikes in the hall, please.",
            "bikes may stand in the hall.",
            "bikes must not stand in the hall.",
            "Can I put my bike in the hall?|Is the hall a place for my bicycle?|Am I allowed to leave a bike in the "
            "hall?",
        ),
        _part(
            {"q": _number(20, 200)},
            "A lost key costs {q} euros.|Who loses the key pays {q} euros.",
            ("q", "A lost key costs {q} euros.", "I cannot find my key. What will that cost?|How much is a new key?"),
        ),
        _part(
            {"n": Words.name, "f": _number(1, 9)},
            "If anything breaks, tell {n} on floor {f}.|{n}, floor {f}, repairs what is broken.",
            (
                "n",
                "{n} repairs it.",
                "The tap drips. Whom do I tell?|Who mends things here?|Who is the one with the tools?",
                "Is {z} the one who repairs things?",
            ),
            (
                "f",
                "{n} is on floor {f}.",
                "On which floor do I find the one who repairs things?|Up to which floor do I go "
                "if my heating is broken?",
            ),
        ),
    ),
    _sheet(
        "FAQ|Questions that we often hear|About our shop|Help page",
        "Still unsure? Just write to us.|We are happy to help.",
        _part(
            {"a": _number(2, 5), "b": _number(6, 20)},
            "How long does delivery take? {a} days in this country, {b} days abroad.|Parcels take {a} days here and "
            "{b} "
            "days to other countries.|Abroad you wait {b} days for your parcel, at home {a} days.",
            (
                "a",
                "Delivery in this country takes {a} days.",
                "I live here. How long until my order comes?|After how many days is a parcel here, inside the country?",
                "Does a parcel inside the country take {z} days?",
            ),
            (
                "b",
                "Delivery abroad takes {b} days.",
                "I live in another country. How long do I wait?|How many days does a parcel need across the border?",
            ),
        ),
        _part(
            {"c": _number(3, 9), "f": _number(30, 150)},
            "Shipping costs {c} euros; from {f} euros on it is free.|We send orders over {f} euros for free, all "
            "others "
            "for {c} euros.",
            (
                "c",
                "Shipping costs {c} euros.",
                "What do I pay for sending a small order?|How much is the postage?",
                "Is the postage {z} euros?",
            ),
            (
                "f",
                "Shipping is free from {f} euros on.",
                "How much must I buy so that postage costs nothing?|From which sum on is shipping free?",
            ),
        ),
        _part(
            {"d": _number(10, 28), "m": _number(30, 90)},
            "You can send things back within {d} days; faulty ones within {m} days.|Returns: {d} days, or {m} days if "
            "something is broken.",
            (
                "d",
                "You can send it back within {d} days.",
                "I just do not like it. How long may I wait before I return it?|"
                "How many days do I have to change my mind?",
            ),
            (
                "m",
                "Faulty things can be sent back within {m} days.",
                "Mine arrived broken. How much time do I have?|"
                "For how many days can I return something that does not work?",
            ),
        ),
        _either(
            "You can pay by card.|We take cards.",
            "We do not take cards.|You cannot pay by card.",
            "you can pay by card.",
            "you cannot pay by card.",
            "Can I use my credit card?|Is a card fine for paying?|Do you accept plastic money?",
        ),
        _either(
            "The shop is open on Sunday, too.|We are also there on Sunday.",
            "On Sunday the shop stays closed.|We are closed on Sunday.",
            "the shop is open on Sunday.",
            "the shop is closed on Sunday.",
            "Can I come by on Sunday?|Is anybody in the shop on Sunday?|are you open sundays",
        ),
        _part(
            {"g": _number(2, 9), "e": _number(10, 29)},
            "Wrapping a gift costs {g} euros, an engraving {e} euros.|We wrap for {g} euros and engrave for {e} euros.",
            (
                "g",
                "Wrapping costs {g} euros.",
                "It is a present. What is nice paper around it?|What do I pay for wrapping?",
            ),
            (
                "e",
                "An engraving costs {e} euros.",
                "I want my name cut into it. How much is that?|What does it cost to have letters cut into it?",
            ),
        ),
        _part(
            {"p": _phone, "t": _clock(8, 11), "u": _clock(15, 19)},
            "Call {p} between {t} and {u}.|Our hotline is {p}, from {t} until {u}.",
            ("p", "The number is {p}.", "How do I reach you by phone?|Which number do I dial?"),
            (
                "t",
                "You can call from {t} on.",
                "How early can I phone you?|When does somebody pick up the phone first?",
            ),
            ("u", "You can call until {u}.", "How late can I phone you?|When does the hotline go home?"),
        ),
    ),
    _sheet(
        "Data sheet|Product sheet|Technical data|Facts about the lamp X1",
        "Subject to change.|Made with care.",
        _part(
            {"w": _number(100, 900), "p": _number(10, 99)},
            "Weight: {w} g, with box {p} g more|The lamp weighs {w} grams; the box adds {p} grams.",
            (
                "w",
                "The lamp weighs {w} grams.",
                "How heavy is it without its box?|How many grams has the lamp itself?",
                "Does the lamp itself weigh {z} grams?",
            ),
            ("p", "The box weighs {p} grams.", "How much does the packaging weigh?|How heavy is the box alone?"),
        ),
        _part(
            {"b": _number(6, 60), "c": _number(2, 5)},
            "Battery: {b} hours, charging: {c} hours|It shines for {b} hours and charges in {c} hours.|After {c} "
            "hours at "
            "the plug it gives light for {b} hours.",
            (
                "b",
                "It shines for {b} hours.",
                "How long do I have light without a plug?|After how many hours is it dark?",
            ),
            ("c", "It charges in {c} hours.", "How long must it be plugged in?|How long until an empty one is full?"),
        ),
        _part(
            {"y": _number(2, 10), "s": _number(11, 25)},
            "Guarantee: {y} years; spare parts: {s} years|We give a guarantee of {y} years and keep spare parts for "
            "{s}.",
            (
                "y",
                "The guarantee is {y} years.",
                "For how long is it repaired for free?|How long is it under guarantee?",
            ),
            (
                "s",
                "Spare parts are kept for {s} years.",
                "For how many years can I still get parts?|How long do you store what I need for a repair?",
            ),
        ),
        _either(
            "Waterproof: yes|It does not mind rain.",
            "Waterproof: no|It must not get wet.",
            "it can stand water.",
            "it must not get wet.",
            "Can I leave it out in the rain?|Does it survive a shower?|Is water no problem for it?",
        ),
        _part(
            {"c": Words.colour, "d": Words.colour},
            "Comes in {c} and, for a higher price, in {d}.|Colours: {c} (standard), {d} (extra charge)",
            ("c", "The standard colour is {c}.", "Which colour costs nothing more?|What colour is the plain one?"),
            (
                "d",
                "The colour at a higher price is {d}.",
                "For which colour do I pay more?|Which colour is the dear one?",
            ),
        ),
        _part(
            {"c": Words.city, "d": Words.city},
            "Designed in {c}, made in {d}.|Made in {d} after a design from {c}.",
            ("c", "It was designed in {c}.", "Where was it thought up?|Where do the people sit who drew it?"),
            (
                "d",
                "It is made in {d}.",
                "Where is it built?|From which town does the finished lamp come?",
                "Is it built in {z}?",
            ),
        ),
        _part(
            {"l": _number(20, 60), "m": _number(61, 99)},
            "Price: {m} euros, online {l} euros|In shops it costs {m} euros, on the web {l}.",
            (
                "l",
                "Online it costs {l} euros.",
                "What do I pay if I order it from my sofa?|What is the internet price?",
            ),
            ("m", "In shops it costs {m} euros.", "What must I pay at the counter?|How much is it in a store?"),
        ),
    ),
    _sheet(
        "Dear all, here is some news.|Hello my dears,|Hi! A few lines from us.|A letter from my aunt",
        "Lots of love|See you soon!|Hugs from all of us",
        _part(
            {"d": _day, "e": _day},
            "We come to you on {d} and leave again on {e}.|Expect us on {d}; on {e} we have to go home.",
            (
                "d",
                "They come on {d}.",
                "When must the guest bed be made?|On what day does the visit begin?",
                "Do they come on {z}?",
            ),
            ("e", "They leave on {e}.", "When is the house ours again?|On which day does the visit end?"),
        ),
        _part(
            {"n": Words.name, "m": Words.name},
            "{n} has started school and {m} has learned to walk.|Our little {m} can walk now, and {n} goes to school.",
            (
                "n",
                "{n} goes to school now.",
                "Which child is a pupil now?|Who is the older of the two children?",
                "Is {z} the one who goes to school?",
            ),
            ("m", "{m} can walk now.", "Who has just made the first steps?|Which child is the baby?"),
        ),
        _part(
            {"n": Words.name, "c": Words.city, "d": Words.city},
            "{n} has moved from {c} to {d}.|{n} is now in {d} and no longer in {c}.",
            (
                "d",
                "{n} is now in {d}.",
                "Where would I visit {n} today?|To what place do I send {n}'s post from now on?",
                "Do I find {n} in {z} now?",
            ),
            ("c", "{n} used to be in {c}.", "Where was {n} before?|Which town has {n} left?"),
            ("n", "{n} has moved.", "Who has a new home?|Who changed towns?"),
        ),
        _part(
            {
                "a": _of("jam", "honey", "a quilt", "seeds", "photos", invented=0),
                "b": _of("boots", "a puzzle", "books", "paint", "a kite", invented=0),
            },
            "For you I have {a}, and for the children {b}.|We bring {b} for the children and {a} for you.",
            ("a", "You get {a}.", "What is my present?|What will I be given?"),
            ("b", "The children get {b}.", "What do the little ones get?|What is the present for the kids?"),
        ),
        _part(
            {"p": _of("cat", "pony", "parrot", "rabbit", invented=0), "x": Words.name, "y": _number(2, 20)},
            "The {p} is called {x} and is {y} years old.|{x}, our {p}, has turned {y}.",
            ("x", "The {p} is called {x}.", "What do they call their {p}?|What name does the {p} have?"),
            ("y", "{x} is {y} years old.", "How old is the animal?|What is the age of their {p}?"),
        ),
        _part(
            {"d": _day, "n": Words.name},
            "On {d} I broke my arm, so {n} types this for me.|{n} is writing for me, as I have had a bad arm since "
            "{d}.",
            ("n", "{n} is writing.", "Whose hand wrote these lines?|Who types the letter?"),
            (
                "d",
                "It happened on {d}.",
                "When did the accident with the arm happen?|Since which day does the arm hurt?",
            ),
        ),
    ),
    _sheet(
        "Minutes|Minutes of the meeting|Notes from today's meeting|Protocol",
        "End of the meeting.|No other business.",
        _part(
            {"n": Words.name, "m": Words.name},
            "{n} was in the chair; {m} kept the minutes.|Chair: {n}. Written down by {m}.",
            (
                "n",
                "{n} was in the chair.",
                "Who led the meeting?|Who decided who may speak?",
                "Did {z} lead the meeting?",
            ),
            ("m", "{m} kept the minutes.", "Who wrote all this?|Whom do I tell about a mistake in the text?"),
        ),
        _part(
            {"n": Words.name, "m": Words.name},
            "{n} was ill and {m} came late.|Absent: {n} (ill). {m} joined later.",
            ("n", "{n} was ill.", "Who missed the meeting?|Who stayed in bed?"),
            ("m", "{m} came late.", "Who did not come on time?|Who missed only the beginning?"),
        ),
        _part(
            {"a": _number(100, 900), "b": _number(1000, 9000)},
            "We approved {a} euros for chairs and {b} euros for a printer.|Money: {b} euros for a printer, {a} for "
            "chairs.",
            ("a", "{a} euros go to chairs.", "How much may we spend so that people can sit?|What can the chairs cost?"),
            (
                "b",
                "{b} euros go to a printer.",
                "What may the printer cost?|How much money is there for the new machine?",
                "Are there {z} euros for the printer?",
            ),
        ),
        _part(
            {"n": Words.name, "d": _dated, "m": Words.name, "e": _dated},
            "{n} writes the report by {d}; {m} books a room by {e}.|To do: report ({n}, {d}), room ({m}, {e}).",
            ("n", "{n} writes the report.", "Who has to write something?|Who is the author of the report?"),
            ("m", "{m} books a room.", "Who makes sure that we have a room?|Who takes care of where we meet?"),
            ("d", "The report is due on {d}.", "By when can we read the report?|When must the writing be done?"),
            ("e", "The room must be booked by {e}.", "By when is the room to be booked?|When must we have a room?"),
        ),
        _part(
            {"y": _number(5, 30), "x": _number(2, 4)},
            "The plan was accepted with {y} votes to {x}.|{y} were for the plan and {x} against it.",
            ("y", "{y} were for the plan.", "How many liked the plan?|How many hands went up for it?"),
            ("x", "{x} were against the plan.", "How many said no?|How many did not want the plan?"),
        ),
        _part(
            {"d": _dated, "t": _clock(9, 18), "r": _number(1, 200)},
            "We meet again on {d} at {t} in room {r}.|Next meeting: {d}, {t}, room {r}.",
            (
                "d",
                "The next meeting is on {d}.",
                "When do we see each other again?|Which day do I keep free?",
                "Is the next one on {z}?",
            ),
            ("t", "The next meeting begins at {t}.", "At what time do we start next time?|What hour is the next one?"),
            (
                "r",
                "The next meeting is in room {r}.",
                "Where do we sit next time?|Which room do I go to for the next one?",
            ),
        ),
    ),
    _sheet(
        "Travel plan|Our trip|Itinerary|Plan for the holiday",
        "Have a good trip!|Do not forget your passport.",
        _part(
            {"t": _clock(5, 9), "u": _clock(10, 14)},
            "The taxi comes at {t} and the plane leaves at {u}.|{t} taxi, {u} take-off.",
            (
                "t",
                "The taxi comes at {t}.",
                "When must I stand at the front door with my bags?|When does the car pick us up?",
            ),
            (
                "u",
                "The plane leaves at {u}.",
                "When are we in the air?|What time is our flight?",
                "Do we take off at {z}?",
            ),
        ),
        _part(
            {"a": Words.city, "b": Words.city, "c": Words.city},
            "We start in {a}, go on to {b} and end in {c}.|Route: {a} - {b} - {c}|First {a}, then {b}, at last {c}.",
            (
                "a",
                "They start in {a}.",
                "Which town do we see first?|Where does the tour begin?",
                "Do we begin in {z}?",
            ),
            (
                "b",
                "The middle stop is {b}.",
                "Which town lies between the first and the last?|What is the second stop?",
            ),
            ("c", "The trip ends in {c}.", "Where is the tour over?|What is the last town?"),
        ),
        _part(
            {"h": _title, "k": _number(2, 9), "p": _number(40, 200)},
            "We stay {k} nights at the {h} for {p} euros a night.|Hotel: {h}, {k} nights, {p} euros each",
            ("h", "The hotel is the {h}.", "Where do we sleep?|What is written over the door of our hotel?"),
            ("k", "They stay {k} nights.", "How many times do we wake up there?|For how long is the room ours?"),
            ("p", "A night costs {p} euros.", "What do we pay for one night?|What does a night in the room cost?"),
        ),
        _part(
            {"n": Words.name, "m": Words.name},
            "{n} has the tickets and {m} has the passports.|Passports: {m}. Tickets: {n}.",
            ("n", "{n} has the tickets.", "Who must be asked when the conductor comes?|Who carries the tickets?"),
            ("m", "{m} has the passports.", "Who must be there at the border?|Who keeps our papers?"),
        ),
        _part(
            {"d": _day, "e": _day},
            "On {d} we visit the castle and on {e} we rest at the beach.|{d}: castle, {e}: beach",
            (
                "d",
                "They visit the castle on {d}.",
                "When do we look at old walls?|On which day is the castle?",
                "Are we in the castle on {z}?",
            ),
            (
                "e",
                "They are at the beach on {e}.",
                "On what day do I need my swimming things?|When can I lie in the sun?",
            ),
        ),
        _part(
            {"q": _number(10, 25), "r": _number(5, 9)},
            "Each may take one bag of {q} kilos and one of {r} kilos into the cabin.|Bags: {q} kg below, {r} kg in the "
            "cabin",
            (
                "q",
                "The big bag may weigh {q} kilos.",
                "How heavy can my large suitcase be?|What may the bag below weigh?",
            ),
            (
                "r",
                "The cabin bag may weigh {r} kilos.",
                "How heavy can the bag be that stays with me?|What may I carry to my seat, in kilos?",
            ),
        ),
    ),
    _sheet(
        "For the one who looks after our cat|Cat notes|Thanks for feeding our cat!|How to look after the cat",
        "Thank you so much!|See you soon.",
        _part(
            {"x": Words.name, "y": Words.name},
            "The black cat is {x}, the white one {y}.|{y} is white and {x} is black.",
            (
                "x",
                "The black cat is {x}.",
                "What do I call the dark one?|Which cat is hard to see at night?",
                "Is the black one {z}?",
            ),
            ("y", "The white cat is {y}.", "What is the name of the pale one?|Which cat looks like snow?"),
        ),
        _part(
            {"a": _clock(6, 9), "b": _clock(16, 20)},
            "They eat at {a} and again at {b}.|Food: {a} and {b}",
            ("a", "The first meal is at {a}.", "When is breakfast for the cats?|When do I open the first tin?"),
            ("b", "The second meal is at {b}.", "When do they get dinner?|When do I come in the evening?"),
        ),
        _part(
            {"v": _phone, "w": _phone},
            "Vet: {v}. My own phone: {w}.|You reach me at {w} and the vet at {v}.",
            ("v", "The number of the vet is {v}.", "A cat is ill. Which number do I dial?|How do I reach the doctor?"),
            (
                "w",
                "The owner's number is {w}.",
                "How can I reach the owner?|Which number do I dial to ask the writer something?",
            ),
        ),
        _part(
            {
                "k": _of("under the pot", "in the shed", "behind the bin", "at the bakery", invented=0),
                "f": _of("in the cellar", "in the fridge", "on the top shelf", "under the sink", invented=0),
            },
            "The key is {k} and the food {f}.|You find the food {f}. The key is {k}.",
            ("k", "The key is {k}.", "How do I get in?|Where do I look if the door is locked?"),
            ("f", "The food is {f}.", "Where are the tins?|Where do I find what the cats eat?", "Is the food {z}?"),
        ),
        _either(
            "The cats may go out.|They are allowed into the garden.",
            "The cats must stay in.|Never let them into the garden.",
            "they may go out.",
            "they must stay in.",
            "Can I open the garden door for them?|May they have a walk outside?|Are they outdoor cats?",
        ),
        _part(
            {"d": _day, "e": _day},
            "Water the plants on {d} and put out the bin on {e}.|{e}: bin, {d}: plants",
            (
                "d",
                "The plants get water on {d}.",
                "When do I need the watering can?|On which day are the flowers thirsty?",
            ),
            (
                "e",
                "The bin goes out on {e}.",
                "When is the rubbish taken?|On what day must the bin stand at the street?",
            ),
        ),
    ),
    _sheet(
        "For the babysitter|Tonight|Notes for tonight",
        "We will be quiet when we come home.|Have a nice evening!",
        _part(
            {"n": Words.name, "t": _clock(18, 19), "m": Words.name, "u": _clock(20, 21)},
            "{n} goes to bed at {t}, {m} at {u}.|Bed: {n} {t}, {m} {u}",
            (
                "t",
                "{n} goes to bed at {t}.",
                "When must {n} sleep?|At what time do I turn off the light for {n}?",
                "Is {z} the bedtime of {n}?",
            ),
            ("u", "{m} goes to bed at {u}.", "When must {m} sleep?|How long may {m} stay up?"),
            ("m", "{m} may stay up longer.", "Which child is allowed to stay up longer?|Who goes to bed last?"),
            ("n", "{n} goes to bed first.", "Which child do I put to bed first?|Who has to sleep earlier?"),
        ),
        _part(
            {
                "x": _of("nuts", "milk", "eggs", "fish", invented=0),
                "f": _of("soup", "rice", "pasta", "toast", invented=0),
            },
            "They get {f}, but nothing with {x}.|For dinner there is {f}. No {x}, please!",
            ("f", "They get {f}.", "What do I cook?|What is on the plate tonight?"),
            ("x", "They must not have {x}.", "What could make them ill?|Which food is forbidden?"),
        ),
        _part(
            {"t": _clock(22, 23), "p": _phone},
            "We are back at {t}. Our number is {p}.|Call {p} if you need us; we come home at {t}.",
            ("t", "The parents are back at {t}.", "How long will I be alone with them?|When am I free to go?"),
            ("p", "The number is {p}.", "What do I dial if somebody cries all the time?|How do I reach the parents?"),
        ),
        _either(
            "They may watch a film.|A film is fine.",
            "No films tonight.|They must not watch anything.",
            "they may watch a film.",
            "they must not watch a film.",
            "Can I let them see a film?|Is television all right?|They beg for a cartoon film. May they?",
        ),
        _part(
            {"a": _number(8, 15), "b": _number(16, 25)},
            "We pay {a} euros an hour, after midnight {b}.|Pay: {a} euros per hour ({b} after midnight)",
            (
                "a",
                "The pay is {a} euros an hour.",
                "What do I earn per hour before midnight?|How much is an early hour worth?",
            ),
            (
                "b",
                "After midnight the pay is {b} euros an hour.",
                "What do I get per hour when it is very late?|How much is an hour after midnight?",
            ),
        ),
        _part(
            {"t": Words.title, "n": Words.name},
            'Please read "{t}" to them; {n}, the bear, must lie in the bed.|Story: "{t}". The bear is called {n}.',
            ("t", 'The story is "{t}".', "Which book do I take?|What do they want to hear before they sleep?"),
            ("n", "The bear is called {n}.", "What is the name of the cuddly toy?|Whom do they hold in bed?"),
        ),
    ),
    _sheet(
        "Dear parents|Letter to parents|School trip|Information about the class trip",
        "Kind regards, the school|Please sign and return this letter.",
        _part(
            {"t": _clock(6, 9), "u": _clock(15, 19), "d": _dated},
            "On {d} the bus leaves at {t}; we are back at {u}.|Trip on {d}: {t} to {u}, by bus",
            ("d", "The trip is on {d}.", "Which day is it?|When does the class go away?", "Is the trip on {z}?"),
            ("t", "The bus leaves at {t}.", "When must my child be at the bus?|By when do we have to be at school?"),
            ("u", "They are back at {u}.", "When do I pick up my child?|When does the bus bring them home?"),
        ),
        _part(
            {"a": _number(10, 60), "b": _number(2, 9)},
            "The trip costs {a} euros; {b} euros of pocket money are enough.|Price: {a} euros. Pocket money: {b} "
            "euros at "
            "most.",
            ("a", "The trip costs {a} euros.", "What do I owe the school?|How much is it?"),
            (
                "b",
                "{b} euros of pocket money are enough.",
                "How much money may my child carry?|With how many coins do I send my child?",
            ),
        ),
        _part(
            {"n": Words.full_name, "m": Words.full_name},
            "{n} is in charge, and {m} is the driver.|Driver: {m}. Teacher: {n}.",
            ("n", "{n} is in charge.", "Which grown-up is responsible?|Who looks after the children?"),
            ("m", "{m} is the driver.", "Who sits at the wheel?|Who steers the bus?", "Does {z} drive the bus?"),
        ),
        _part(
            {"f": _of("a zoo", "a farm", "a mine", "a castle", "a cave", invented=0), "w": Words.city},
            "We visit {f} near {w}.|The class goes to {w} and sees {f}.",
            ("f", "They visit {f}.", "What is there to see?|What do the children look at?"),
            ("w", "The trip goes to {w}.", "To what town do they go?|Which town is it near?"),
        ),
        _either(
            "Phones may come along.|Your child may take a phone.",
            "Phones stay at home.|No phones on the trip.",
            "phones may come along.",
            "phones stay at home.",
            "Can I reach my child by its own phone?|May my daughter take a phone?|Are phones allowed?",
        ),
        _part(
            {"a": _of("boots", "a raincoat", "a hat", invented=0), "b": _of("sweets", "knives", "balls", invented=0)},
            "Bring {a}; leave {b} at home.|Needed: {a}. Not allowed: {b}.",
            ("a", "You need {a}.", "What should be packed?|What has to be put on or into the bag?"),
            ("b", "You must leave {b} at home.", "What is forbidden?|What must not be in the bag?"),
        ),
    ),
    _sheet(
        "Welcome to the gym|Gym info|About our studio|Fitness club",
        "Train well!|Ask at the desk.",
        _part(
            {"a": _clock(5, 8), "b": _clock(9, 11)},
            "On weekdays we open at {a}, at the weekend at {b}.|Doors open: Monday to Friday {a}, Saturday and "
            "Sunday {b}",
            (
                "a",
                "On weekdays the gym opens at {a}.",
                "It is Tuesday. How early can I train?|When can I come in on a Wednesday?",
            ),
            (
                "b",
                "At the weekend the gym opens at {b}.",
                "It is Sunday. From when on can I train?|When do the doors open on Saturday?",
                "Can I come in from {z} on at the weekend?",
            ),
        ),
        _part(
            {"a": _number(15, 45), "b": _number(46, 90), "c": _number(5, 14)},
            "Students pay {a} euros a month, all others {b}; a single visit is {c} euros.|{b} euros a month ({a} for "
            "students), {c} euros for one visit",
            (
                "a",
                "Students pay {a} euros a month.",
                "I study. What do I pay each month?|What is the monthly fee at university age, with a student card?",
            ),
            (
                "b",
                "The normal fee is {b} euros a month.",
                "I have a job. What is my fee?|What do people pay who do not study?",
            ),
            ("c", "One visit costs {c} euros.", "I want to come only once. What is it?|How much for a single day?"),
        ),
        _part(
            {"n": Words.name, "m": Words.name},
            "{n} teaches yoga, {m} teaches boxing.|Boxing with {m}, yoga with {n}",
            (
                "n",
                "{n} teaches yoga.",
                "Who helps me to stretch and breathe?|Who leads the yoga class?",
                "Is yoga with {z}?",
            ),
            ("m", "{m} teaches boxing.", "Who shows me how to punch?|Who leads the boxing class?"),
        ),
        _either(
            "Towels are free.|We lend you a towel for nothing.",
            "There are no towels here.|Bring your own towel, we have none.",
            "towels are free.",
            "there are no towels.",
            "Can I come without a towel?|Do you have something for me to dry myself?|Do I get a towel?",
        ),
        _part(
            {"a": _number(2, 12), "b": _number(13, 30)},
            "You can leave with {a} weeks' notice; the first {b} days are a trial.|Notice: {a} weeks. Trial: {b} days.",
            (
                "a",
                "The notice is {a} weeks.",
                "How long before I stop must I tell you?|How many weeks do I pay after I quit?",
            ),
            (
                "b",
                "The trial is {b} days.",
                "How long can I test it?|How many days do I have to find out if I like it?",
            ),
        ),
        _part(
            {"f": _number(2, 9), "g": _number(10, 19)},
            "Showers are on floor {f} and the sauna is on floor {g}.|Sauna: floor {g}; showers: floor {f}",
            ("f", "The showers are on floor {f}.", "Where can I wash?|On which floor do I get clean?"),
            ("g", "The sauna is on floor {g}.", "Where is it really hot?|On which floor do I sweat on a bench?"),
        ),
    ),
    _sheet(
        "You are invited!|Invitation|Our wedding|Save the date",
        "We look forward to you!|Please tell us if you come.",
        _part(
            {"a": _clock(10, 13), "b": _clock(17, 20)},
            "We marry at {a} and the party begins at {b}.|{a} church, {b} party",
            ("a", "They marry at {a}.", "When do they say yes to each other?|When should I sit in church?"),
            (
                "b",
                "The party begins at {b}.",
                "When does the dancing start?|I only come in the evening. When?",
                "Does the party begin at {z}?",
            ),
        ),
        _part(
            {"n": Words.name, "m": Words.name},
            "{n} plays the organ and {m} takes the pictures.|Photos: {m}. Organ: {n}.",
            ("n", "{n} plays the organ.", "Who makes the music in church?|Whom do I thank for the music?"),
            ("m", "{m} takes the pictures.", "Who is the one with the camera?|From whom do I get the photos?"),
        ),
        _part(
            {"d": _late, "e": _early},
            "The wedding is on {d}; please answer by {e}.|Answer by {e}. We marry on {d}.",
            (
                "d",
                "The wedding is on {d}.",
                "Which day is the big one?|When are they going to be a couple?",
                "Is the wedding on {z}?",
            ),
            ("e", "The answer is due on {e}.", "How long can I think about coming?|By when must I say yes or no?"),
        ),
        _part(
            {"h": _title, "q": _number(60, 150), "p": _phone},
            "Rooms at the {h} cost {q} euros; book them at {p}.|Sleep at the {h} ({q} euros, phone {p}).",
            ("h", "Rooms are at the {h}.", "Where can I stay the night?|Which hotel do they name?"),
            ("q", "A room costs {q} euros.", "What do I pay for a bed?|How much is the hotel?"),
            ("p", "The number is {p}.", "Where do I call to get a room?|How do I book the hotel?"),
        ),
        _either(
            "Children are welcome.|Bring your children.",
            "It is a party without children.|Please leave the children at home.",
            "children are welcome.",
            "children should stay at home.",
            "May I bring my little son?|Can we come with the kids?|Is it a party for the young ones, too?",
        ),
        _part(
            {"c": Words.colour, "d": Words.colour},
            "The bride wears {c}; guests, please wear {d}.|Dress: {d} for guests. Only the bride is in {c}.",
            ("c", "The bride wears {c}.", "In which colour should I not come?|What colour is her dress?"),
            ("d", "The guests wear {d}.", "What colour should my clothes be?|What do visitors wear?"),
        ),
    ),
    _sheet(
        "Your first day|Welcome to the firm|For our new colleague|First day at work",
        "We are glad to have you.|See you soon!",
        _part(
            {"t": _clock(7, 9), "u": _clock(11, 13), "v": _clock(15, 18)},
            "Come at {t}, lunch is at {u}, and at {v} you can go.|{t} start, {u} lunch, {v} end",
            ("t", "The day starts at {t}.", "When must I be there?|For what time do I set out to work?"),
            (
                "u",
                "Lunch is at {u}.",
                "When do we eat?|When is the break in the middle of the day?",
                "Do we eat at {z}?",
            ),
            ("v", "The day ends at {v}.", "When can I go home?|How late will it get?"),
        ),
        _part(
            {"n": Words.name, "m": Words.name, "o": Words.name},
            "{n} meets you at the door, {m} is your boss and {o} sets up your laptop.|Boss: {m}. Laptop: {o}. At "
            "the door: "
            "{n}.",
            ("n", "{n} meets you at the door.", "Whom do I look for when I arrive?|Who says hello first?"),
            ("m", "Your boss is {m}.", "Who tells me what to do?|To whom do I report?", "Do I work for {z}?"),
            ("o", "{o} sets up your laptop.", "My computer does not work. Whom do I ask?|Who knows about the machine?"),
        ),
        _part(
            {"f": _number(2, 9), "g": _number(10, 30)},
            "Your desk is on floor {f}, the canteen on floor {g}.|Canteen: floor {g}. Desk: floor {f}.",
            ("f", "The desk is on floor {f}.", "On which floor will I sit?|Where do I work?"),
            ("g", "The canteen is on floor {g}.", "On which floor is food?|Where do I go when I am hungry?"),
        ),
        _part(
            {"a": _digits(4), "b": _digits(4)},
            "The code of the door is {a}, that of the printer {b}.|Printer: {b}. Door: {a}.",
            ("a", "The code of the door is {a}.", "What do I type to get in?|I stand outside. Which code?"),
            (
                "b",
                "The code of the printer is {b}.",
                "What do I type to get my pages?|Which code do I need for paper copies?",
            ),
        ),
        _either(
            "You may park in the yard.|There is a parking space for you in the yard.",
            "You cannot park here.|There is no parking for staff.",
            "you may park in the yard.",
            "there is no parking.",
            "Can I come by car?|Is there room for my car?|Do I find a place for my car?",
        ),
        _part(
            {"d": _day, "e": _day},
            "On {d} we all work at home and on {e} the whole team meets.|Team day: {e}. Home day: {d}.",
            (
                "d",
                "Everybody works at home on {d}.",
                "On which day is the office empty?|When may I stay in my slippers?",
            ),
            ("e", "The team meets on {e}.", "When is everybody in one room?|Which day brings all of us together?"),
        ),
    ),
    _sheet(
        "To do|To-do list|What is left to do|Jobs for this week",
        "Tick it off when it is done.|Nothing else for now.",
        _part(
            {"n": Words.name, "m": Words.name},
            "[ ] {n}: mow the lawn\n[ ] {m}: sweep the path|{n} cuts the grass, {m} sweeps the path.",
            ("n", "{n} does the lawn.", "Who needs the mower?|Whose job is the grass?", "Is the grass {z}'s job?"),
            ("m", "{m} sweeps the path.", "Who needs the broom?|Who makes the way to the door clean?"),
        ),
        _part(
            {"d": _day, "e": _day},
            "[ ] ring the bank ({d})\n[ ] ring the dentist ({e})|Call the dentist on {e} and the bank on {d}.",
            ("d", "The bank is called on {d}.", "On which day is it about money?|When do I phone about my account?"),
            (
                "e",
                "The dentist is called on {e}.",
                "On which day is it about my teeth?|When do I phone for a visit to the dentist?",
            ),
        ),
        _part(
            {"n": Words.name, "x": Words.items, "m": Words.name, "z": Words.items},
            "[x] {n} bought {x}\n[ ] {m} still has to buy {z}|{n} has got the {x} already; the {z} are still to be "
            "bought by "
            "{m}.",
            ("x", "The {x} have been bought.", "What has somebody bought already?|What is done from the shopping?"),
            ("z", "The {z} are still missing.", "What is still missing from the shopping?|What remains to be bought?"),
            (
                "n",
                "{n} has done the shopping already.",
                "Who has been to the shop?|Who has kept the promise to buy something?",
            ),
            (
                "m",
                "{m} still has to go shopping.",
                "Who has not yet been to the shop?|Whom should I remind of the shopping?",
            ),
        ),
        _part(
            {"a": _clock(8, 11), "b": _clock(13, 17)},
            "[ ] fetch the parcel before {a}\n[ ] fetch the kids at {b}|Get the parcel before {a}, the kids at {b}.",
            (
                "a",
                "The parcel must be fetched before {a}.",
                "By when do I have to be at the post office?|How long can I wait with the parcel?",
            ),
            (
                "b",
                "The kids must be fetched at {b}.",
                "When is school out, so that I must be there?|When do the children wait for me?",
            ),
        ),
        _part(
            {"q": _number(20, 90), "r": _number(100, 900)},
            "[ ] pay {q} euros for water\n[ ] pay {r} euros of rent|Bills: water {q} euros, rent {r} euros.",
            ("q", "Water costs {q} euros.", "What does it cost us to wash and drink?|How much is the smaller bill?"),
            ("r", "The rent is {r} euros.", "What does the landlord get?|How much is the bigger bill?"),
        ),
    ),
    _sheet(
        "Estimate|Repair of your car|From the garage|Offer for the repair",
        "Please call us if you agree.|Prices with tax.",
        _part(
            {"a": _number(100, 400), "b": _number(20, 90), "c": _number(500, 900)},
            "Brakes {a} euros, oil {b} euros, new clutch {c} euros.|The clutch is {c} euros; we ask {a} euros for "
            "the brakes "
            "and {b} for oil.",
            ("a", "The brakes cost {a} euros.", "What do I pay so that the car stops well?|How much for the brakes?"),
            (
                "b",
                "The oil costs {b} euros.",
                "How much is the cheapest item?|How much for the oil?",
                "Does the oil cost {z} euros?",
            ),
            ("c", "The clutch costs {c} euros.", "What is the dearest item, in euros?|How much for the clutch?"),
        ),
        _part(
            {"d": _day, "e": _day},
            "Bring the car on {d}; it is ready on {e}.|Ready on {e}, if we have it on {d}.",
            ("d", "The car must come on {d}.", "When do I leave it with you?|From which day am I without a car?"),
            ("e", "The car is ready on {e}.", "When can I drive again?|On which day do I pick it up?"),
        ),
        _part(
            {"n": Words.name, "m": Words.name},
            "{n} does the work, {m} writes the bill.|Mechanic: {n}. Office: {m}.",
            ("n", "{n} does the work.", "Who lies under my car?|Whose hands will be oily?"),
            ("m", "{m} writes the bill.", "Whom do I ask about the sum?|Who sends me the paper with the price?"),
        ),
        _part(
            {"k": _number(20000, 90000), "x": _number(91000, 180000)},
            "The next check is due at {x} km; now the car has {k} km.|Mileage {k} km, next check at {x} km",
            ("k", "The car has {k} km.", "How far has the car gone so far?|What does the counter show today?"),
            (
                "x",
                "The next check is at {x} km.",
                "What will the counter show when I have to come again?|At how many km must it be looked at?",
            ),
        ),
        _either(
            "You get another car for the time.|We lend you a car meanwhile.",
            "We have no car to lend you.|There is no spare car.",
            "you get a car meanwhile.",
            "there is no spare car.",
            "Can I drive something else while you work?|Do you lend me a car?|I need to drive. Is there a spare one?",
        ),
    ),
    _sheet(
        "CHANGELOG|What is new|Release notes|Notes on the update",
        "Please update soon.|As always, make a copy first.",
        _part(
            {"a": _number(2, 9), "b": _number(10, 60)},
            "- timeout raised from {a} to {b} seconds|The timeout was {a} seconds and is now {b}.",
            (
                "a",
                "The old timeout was {a} seconds.",
                "How long did it wait before the update?|What was the timeout earlier?",
            ),
            (
                "b",
                "The timeout is now {b} seconds.",
                "How long does it wait today?|What is the current timeout?",
                "Is the timeout {z} seconds now?",
            ),
        ),
        _part(
            {"x": _host, "z": _host},
            "- removed: {x}\n- added: {z}|{z} is new, {x} is gone.",
            ("x", "The update removed {x}.", "What can I no longer use?|What has been thrown out?"),
            ("z", "The update added {z}.", "What is there that was not there before?|What did we get in addition?"),
        ),
        _part(
            {"p": _number(2000, 4999), "q": _number(5000, 9999)},
            "- default port {p}, admin port {q}|It listens on {p}; administrators use {q}.",
            ("p", "The default port is {p}.", "To which port do ordinary clients connect?|Which port do users take?"),
            ("q", "The admin port is {q}.", "Which port is for administrators?|Where do admins connect?"),
        ),
        _part(
            {"m": _version, "o": _version},
            "- needs at least Python {m}; built with compiler {o}|Python must be {m} or newer. The compiler was {o}.",
            ("m", "It needs Python {m} or newer.", "How old may my Python be?|What is the minimum Python?"),
            ("o", "The compiler was {o}.", "Which compiler made it?|With what was it compiled?"),
        ),
        _part(
            {"n": Words.name, "m": Words.name},
            "- thanks to {n} for the report and to {m} for the patch|{m} wrote the patch after {n} found the bug.",
            ("n", "{n} reported the bug.", "Who noticed that something was wrong?|Who found the mistake?"),
            ("m", "{m} wrote the patch.", "Who repaired it?|Whose code solved it?", "Did {z} repair it?"),
        ),
        _either(
            "- old config files still work|Your old config files can stay.",
            "- old config files no longer work|You need new config files, old ones fail.",
            "old config files still work.",
            "old config files no longer work.",
            "Can I keep my config?|Is it compatible with the config files I have?|Will my present config file be read?",
        ),
        _part(
            {"a": _number(20, 80), "b": _number(100, 900)},
            "- starts in {a} ms and uses {b} MB|Memory: {b} MB. Start: {a} ms.",
            ("a", "It starts in {a} ms.", "How fast is it up?|How long does starting take?"),
            ("b", "It uses {b} MB.", "How much RAM does it eat?|What does it take from my memory?"),
        ),
    ),
    _sheet(
        "README|Runbook|Settings of the service|How our service is set up",
        "Keep this file up to date.|Ask before you change anything.",
        _part(
            {"r": _number(2, 9), "w": _number(10, 60)},
            "max_retries: {r}\nwait: {w}s|It tries {r} times and waits {w} seconds in between.",
            ("r", "It tries {r} times.", "How often does it try again?|After how many attempts does it give up?"),
            (
                "w",
                "It waits {w} seconds.",
                "How long is the pause between attempts?|How many seconds pass before it tries again?",
            ),
        ),
        _part(
            {"n": Words.name, "m": Words.name},
            "owner: {n}\non_call: {m}|{n} owns the service, and {m} is on call this week.",
            ("n", "The owner is {n}.", "Whose service is it?|Who decides about it in the long run?"),
            (
                "m",
                "{m} is on call.",
                "It is down at 3 at night. Whom do I phone?|Who gets up if it fails?",
                "Is {z} the one on call?",
            ),
        ),
        _part(
            {"h": _host, "k": _host},
            "primary: {h}\nreplica: {k}|It runs on {h}; {k} holds a copy.",
            ("h", "It runs on {h}.", "Which machine does the work?|Where is the main one?"),
            ("k", "The copy is on {k}.", "Which host takes over if the first dies?|Where is the second copy?"),
        ),
        _part(
            {"u": _number(5, 90), "l": _number(100, 900)},
            "upload_limit: {u} MB\nlog_limit: {l} MB|Uploads end at {u} MB, logs at {l} MB.",
            ("u", "Uploads can have {u} MB.", "How large can a file be that I send?|What is the maximum upload?"),
            ("l", "Logs can have {l} MB.", "How large does the log get?|At how many MB is the log cut?"),
        ),
        _part(
            {"d": _day, "t": _clock(0, 5), "c": Words.city},
            "maintenance: {d} {t}\nregion: {c}|Maintenance is on {d} at {t}; the data centre is in {c}.",
            ("d", "Maintenance is on {d}.", "On which day can it be down on purpose?|When is it serviced?"),
            (
                "t",
                "Maintenance begins at {t}.",
                "At what hour does the service window open?|What is the hour of the maintenance?",
            ),
            ("c", "The data centre is in {c}.", "Where are the machines?|In which town is our data?"),
        ),
        _either(
            "debug: on|Debug output is switched on.",
            "debug: off|Debug output is switched off.",
            "debug is on.",
            "debug is off.",
            "Does it print debug output?|Is debugging enabled?|Will I see debug lines?",
        ),
    ),
    _sheet(
        "Library rules|How the library works|Using the library|Library card: please read",
        "Enjoy reading!|Handle with care.",
        _part(
            {"a": _number(14, 40), "b": _number(2, 10)},
            "Books can be kept for {a} days, films for {b} days.|Films: {b} days. Books: {a} days.",
            (
                "a",
                "Books can be kept for {a} days.",
                "How long may I read before I return it?|After how many days must a novel be back?",
                "May I keep a book for {z} days?",
            ),
            (
                "b",
                "Films can be kept for {b} days.",
                "How long may I have a movie?|After how many days must a film be back?",
            ),
        ),
        _part(
            {"a": _number(2, 9), "c": _number(10, 40)},
            "A late book costs {a} cents a day and a lost card {c} euros.|Fees: lost card {c} euros, late book {a} "
            "cents a "
            "day",
            ("a", "A late book costs {a} cents a day.", "What do I pay if I am not on time?|What is one day too many?"),
            (
                "c",
                "A lost card costs {c} euros.",
                "My card is gone. What is a new one?|What if I lose the card, what does it cost?",
            ),
        ),
        _part(
            {"f": _number(1, 4), "g": _number(5, 9)},
            "Children find their books on floor {f}, maps are on floor {g}.|Floor {g}: maps. Floor {f}: children.",
            (
                "f",
                "Books for children are on floor {f}.",
                "Where do I take my little daughter?|On which floor are the picture books?",
            ),
            (
                "g",
                "Maps are on floor {g}.",
                "Where can I see what a country looks like?|On which floor do I find a map?",
            ),
        ),
        _part(
            {"d": _day, "e": _day, "t": _clock(14, 17)},
            "Story hour is on {d} at {t}; on {e} we are closed.|Closed on {e}. Story hour: {d}, {t}.",
            (
                "d",
                "The story hour is on {d}.",
                "When do they read to children?|On which day is somebody reading aloud?",
            ),
            (
                "e",
                "The library is closed on {e}.",
                "On which day should I not come?|When do I stand at a locked door?",
                "Is it closed on {z}?",
            ),
            (
                "t",
                "The story hour begins at {t}.",
                "At what time does the reading aloud begin?|When must the kids sit down for the stories?",
            ),
        ),
        _either(
            "Drinks are allowed in the reading room.|You may drink in the reading room.",
            "Drinks are not allowed in the reading room.|No drinks in the reading room.",
            "drinks are allowed in the reading room.",
            "drinks are not allowed in the reading room.",
            "May I have a coffee while I read in the reading room?|Can I take my tea into the reading room?|"
            "is my water bottle ok in the reading room",
        ),
        _part(
            {"q": _number(3, 9), "r": _number(10, 30)},
            "Children may take {q} books and adults {r}.|Up to {r} books for adults, {q} for children.",
            (
                "q",
                "Children may take {q} books.",
                "How many books can my six-year-old carry home?|What is the limit for kids?",
            ),
            (
                "r",
                "Adults may take {r} books.",
                "How many books can I, a grown-up, take?|What is the limit for older people?",
            ),
        ),
    ),
    _sheet(
        "Your order|Order confirmation|Thank you for your order|Mail from the shop",
        "Your shop|We hope to see you again.",
        _part(
            {"o": _digits(6), "c": _digits(5)},
            "Your order number is {o} and your customer number {c}.|Order: {o}. Customer: {c}.",
            (
                "o",
                "The order number is {o}.",
                "Under which number is this purchase?|What number do I name for this order?",
            ),
            (
                "c",
                "The customer number is {c}.",
                "Which number is mine in every purchase?|What is my own number as a buyer?",
            ),
        ),
        _part(
            {"a": _number(20, 80), "b": _number(3, 9), "t": _number(90, 200)},
            "Goods {t} euros, discount {a} euros, postage {b} euros.|You save {a} euros; goods are {t} euros and "
            "postage is "
            "{b}.",
            ("t", "The goods cost {t} euros.", "What are the things themselves worth?|What do the goods come to?"),
            ("a", "The discount is {a} euros.", "How much do I save?|What was taken off the price?"),
            (
                "b",
                "The postage is {b} euros.",
                "What is the sending?|How much does the carrier cost me?",
                "Is the postage {z} euros?",
            ),
        ),
        _part(
            {"d": _early, "e": _late},
            "Ordered on {d}, delivery on {e}.|It comes on {e}; you ordered on {d}.",
            ("d", "It was ordered on {d}.", "When did I buy it?|What day did I click on the button?"),
            ("e", "It comes on {e}.", "When must I be at home?|When is it here?", "Does it come on {z}?"),
        ),
        _part(
            {"c": Words.city, "d": Words.city},
            "It goes to {c}; the bill goes to {d}.|Bill to: {d}. Ship to: {c}.",
            ("c", "It is sent to {c}.", "Where does the carrier ring?|To which town does the box go?"),
            (
                "d",
                "The bill goes to {d}.",
                "Where does the invoice land?|To which town is the paper sent that must be paid?",
            ),
        ),
        _part(
            {"q": _number(2, 9), "x": Words.items, "r": _number(10, 30), "z": Words.items},
            "{q} {x}, {r} {z}|You get {r} {z} and {q} {x}.",
            ("q", "{q} {x} were ordered.", "How many {x} will be in the box?|What is the number of {x}?"),
            ("r", "{r} {z} were ordered.", "How many {z} will be in the box?|What is the number of {z}?"),
            ("z", "There are more {z}.", "Of what do I get more?|What is ordered in the greater number?"),
            ("x", "There are fewer {x}.", "Of what do I get less?|What is ordered in the smaller number?"),
        ),
    ),
    _sheet(
        "Our offer to you|Job offer|The position|Letter from the personnel office",
        "We hope that you say yes.|Please sign both copies.",
        _part(
            {"a": _number(2000, 2900), "b": _number(3000, 4000)},
            "You earn {a} euros in the first year and {b} after that.|Pay: {a} euros, from year two on {b} euros",
            (
                "a",
                "In the first year the pay is {a} euros.",
                "What do I earn at the beginning?|What is the starting pay?",
            ),
            (
                "b",
                "After the first year the pay is {b} euros.",
                "What will I earn in year three?|To what does the pay rise?",
                "Is the pay {z} euros from year two on?",
            ),
        ),
        _part(
            {"d": _late, "e": _early},
            "The job begins on {d}; tell us by {e}.|We need your answer by {e}. First day: {d}.",
            (
                "d",
                "The job begins on {d}.",
                "When would I come to work for the first time?|From what day am I employed?",
            ),
            ("e", "The answer is due on {e}.", "How long can I think about it?|By when must I accept or refuse?"),
        ),
        _part(
            {"h": _number(20, 40), "v": _number(41, 60)},
            "You work {h} hours a week and, in busy weeks, up to {v}.|Hours: {h}, at most {v}",
            (
                "h",
                "The normal week has {h} hours.",
                "How much do I work in a usual week?|How many hours is the ordinary week?",
            ),
            (
                "v",
                "At most it is {v} hours.",
                "What is the worst that a week can bring, in hours?|How many hours when it is busy?",
            ),
        ),
        _part(
            {"q": _number(20, 35), "p": _number(3, 9)},
            "There are {q} days of holiday; the trial time is {p} months.|Trial: {p} months. Holiday: {q} days.",
            (
                "q",
                "There are {q} days of holiday.",
                "How many days may I lie on the beach?|How much time off is there?",
            ),
            (
                "p",
                "The trial is {p} months.",
                "For how long do they test me?|When is my place safe, after how many months?",
            ),
        ),
        _part(
            {"c": Words.city, "d": Words.city, "n": Words.name},
            "The office is in {c}; once a month you go to {d}. Ask {n} if anything is unclear.|Place of work: {c}, "
            "monthly "
            "trip: {d}, contact: {n}",
            ("c", "The office is in {c}.", "Where would I work most days?|In which town would I need a flat?"),
            (
                "d",
                "The monthly trip goes to {d}.",
                "To which place do I travel now and then?|Where must I be once a month?",
            ),
            ("n", "The contact is {n}.", "Who answers my questions?|Whom do I call about this?"),
        ),
        _either(
            "You may work from home.|Working at home is possible.",
            "The work must be done in the office.|Working at home is not possible.",
            "you may work from home.",
            "it must be done in the office.",
            "Can I do it from my kitchen table?|Is home office allowed?|Could I stay at home and work there?",
        ),
    ),
    _sheet(
        "Evening class|Course sheet|Dear learners|Language course",
        "See you in class!|Places are few.",
        _part(
            {"d": _day, "e": _day},
            "Beginners come on {d}, the others on {e}.|{e}: advanced. {d}: beginners.",
            ("d", "Beginners come on {d}.", "I know nothing yet. Which day is mine?|On what day is the easy group?"),
            (
                "e",
                "The advanced group comes on {e}.",
                "I am already good. When do I come?|On what day is the hard group?",
                "Is {z} the day of the advanced group?",
            ),
        ),
        _part(
            {"n": Words.name, "m": Words.name},
            "{n} teaches; when {n} is ill, {m} does it.|Teacher: {n}. Stand-in: {m}.",
            ("n", "The teacher is {n}.", "Who usually stands at the board?|From whom do we learn?"),
            ("m", "The stand-in is {m}.", "Who comes when the teacher is ill?|Who helps out?"),
        ),
        _part(
            {"a": _number(40, 150), "b": _number(5, 30)},
            "The course costs {a} euros and the book {b} euros.|Book: {b} euros. Course: {a} euros.",
            ("a", "The course costs {a} euros.", "What do I pay for the lessons?|How much is the class?"),
            ("b", "The book costs {b} euros.", "What do I pay for something to read in?|How much is the material?"),
        ),
        _part(
            {"w": _number(6, 12), "x": _number(60, 180), "l": _number(13, 25)},
            "It is {w} weeks, each evening has {x} minutes, and at most {l} people can come.|{w} evenings of {x} "
            "minutes, up "
            "to {l} people",
            ("w", "It takes {w} weeks.", "How often do we meet in all?|After how many weeks is it over?"),
            ("x", "An evening has {x} minutes.", "How long do I sit there each time?|How long is a lesson?"),
            ("l", "At most {l} people can come.", "When is the class full?|How many can sign up?"),
        ),
        _part(
            {"r": _number(1, 60), "s": _number(61, 120)},
            "We meet in room {r}; the exam is in room {s}.|Exam: room {s}. Lessons: room {r}.",
            ("r", "The lessons are in room {r}.", "Where do I go each week?|In which room do we learn?"),
            (
                "s",
                "The exam is in room {s}.",
                "Where am I tested?|In which room do I write at the end?",
                "Am I tested in room {z}?",
            ),
        ),
    ),
    _sheet(
        "Insurance|Your policy in short|What you are insured for|Bike insurance",
        "Read the small print.|Your insurer",
        _part(
            {"a": _number(5, 20), "b": _number(50, 200)},
            "It costs {a} euros a month, or {b} euros if you pay for the year.|{b} euros a year or {a} euros a month",
            (
                "a",
                "It costs {a} euros a month.",
                "What is taken from my account each month?|What is the monthly price?",
            ),
            (
                "b",
                "It costs {b} euros a year.",
                "What if I pay everything at once?|What is the price for twelve months in one go?",
            ),
        ),
        _part(
            {"c": _number(2000, 9000), "o": _number(100, 400)},
            "We pay up to {c} euros; the first {o} euros are yours to pay.|Own share: {o} euros. Limit: {c} euros.",
            (
                "c",
                "They pay up to {c} euros.",
                "What is the most that I can get?|Where does their help end?",
                "Is the limit {z} euros?",
            ),
            ("o", "The own share is {o} euros.", "How much of the damage is my problem?|What do I pay myself?"),
        ),
        _part(
            {"h": _number(12, 72), "p": _phone},
            "Tell us within {h} hours at {p}.|Damage? Call {p}, at the latest after {h} hours.",
            (
                "h",
                "It must be told within {h} hours.",
                "My bike was stolen. How long can I wait before I tell them?|How fast must I report it?",
            ),
            ("p", "The number is {p}.", "Where do I report a theft?|What do I dial when something has happened?"),
        ),
        _either(
            "It is also valid abroad.|You are insured in other countries, too.",
            "It is not valid abroad.|Outside the country you are not insured.",
            "it is valid abroad.",
            "it is not valid abroad.",
            "I cycle across the border. Am I covered?|Does it help me on holiday in another country?|"
            "Is it good outside my country?",
        ),
        _part(
            {"m": _number(2, 6), "d": _dated},
            "It runs until {d}; give notice {m} weeks before.|End: {d}. Notice: {m} weeks.",
            ("d", "It runs until {d}.", "When is it over?|What is the last day?"),
            (
                "m",
                "The notice is {m} weeks.",
                "How early must I say that I want to leave?|How many weeks before must I cancel?",
            ),
        ),
    ),
    _sheet(
        "Exercises|Plan from the physiotherapist|Your knee: what to do|After the operation",
        "Get well soon!|Stop if it hurts.",
        _part(
            {"a": _number(5, 12), "b": _number(13, 30)},
            "Bend the knee {a} times, then stretch it {b} times.|Stretch: {b} times. Bend: {a} times.",
            ("a", "The knee is bent {a} times.", "How often do I bend?|How many bends are there?"),
            (
                "b",
                "The knee is stretched {b} times.",
                "How often do I make it long?|How many stretches are there?",
                "Do I stretch it {z} times?",
            ),
        ),
        _part(
            {"d": _number(2, 6), "w": _number(7, 14)},
            "No stairs for {d} days and no running for {w} weeks.|You may climb stairs after {d} days and run after "
            "{w} "
            "weeks.",
            (
                "d",
                "Stairs are allowed after {d} days.",
                "When can I walk up to the first floor?|How long must I take the lift?",
            ),
            (
                "w",
                "Running is allowed after {w} weeks.",
                "When can I jog again?|How long until I can train for a race?",
            ),
        ),
        _part(
            {"d": _dated, "t": _clock(8, 17), "n": Words.full_name},
            "Come back on {d} at {t} to Dr {n}.|Next visit: {d}, {t}, Dr {n}",
            ("d", "The next visit is on {d}.", "When am I looked at again?|On which day do they want to see me?"),
            ("t", "The next visit is at {t}.", "At what time do I have to be there?|What hour do I see the doctor?"),
            ("n", "The doctor is Dr {n}.", "Who will look at me?|To whom do I go?"),
        ),
        _part(
            {
                "a": _of("ice", "a bandage", "cold water", invented=0),
                "b": _of("heat", "a long bath", "sun", invented=0),
            },
            "Use {a}, but avoid {b}.|Good: {a}. Bad: {b}.",
            ("a", "What helps is {a}.", "What helps?|What may I put on it?"),
            ("b", "What harms it is {b}.", "What makes it worse?|What should I keep away from?"),
        ),
        _either(
            "You may drive.|Driving is allowed.",
            "You must not drive yet.|Driving is not allowed yet.",
            "driving is allowed.",
            "driving is not allowed yet.",
            "Can I take the car?|May I sit at the wheel?|Is it all right to drive to work?",
        ),
    ),
    _sheet(
        "Family chat|Chat of the flat|Group chat|From our chat",
        "[end of chat]|(no more messages)",
        _part(
            {"n": Words.name, "t": _clock(16, 22)},
            "{n}: I'm home at {t} tonight|{n}: train is late, will be back at {t}",
            (
                "t",
                "{n} is home at {t}.",
                "When do I hear {n}'s key in the door?|When is {n} back?",
                "Is {n} here at {z}?",
            ),
        ),
        _part(
            {"n": Words.name, "x": Words.items},
            "{n}: can somebody get {x}? we have none left|{n}: pls buy {x}",
            ("x", "The {x} are needed.", "What should be bought?|What has run out?"),
            ("n", "{n} asks for {x}.", "Who wants something from the shop?|Who asks for {x}?"),
        ),
        _part(
            {"n": Words.name, "m": Words.name},
            "{n}: who took my charger?\n{m}: me, sorry!|{n}: where's my charger??\n{m}: i have it",
            (
                "m",
                "{m} has the charger.",
                "Where is the charger now, I mean with whom?|Who took something that belongs to another?",
            ),
            ("n", "The charger is {n}'s.", "Whose charger is it?|Who is looking for a charger?"),
        ),
        _part(
            {"n": Words.name, "d": _day, "e": _day},
            "{n}: party on {d}?\n{n}: no wait, {d} is bad, let's say {e}|{n}: dinner moved from {d} to {e}, ok?",
            ("e", "It is on {e}.", "Which day counts now?|When will we celebrate or dine together after all?"),
            ("d", "At first it was to be on {d}.", "What was the first plan for the day?|Which day was dropped?"),
        ),
        _part(
            {"n": Words.name, "m": Words.name, "q": _number(5, 90)},
            "{n}: {m}, you still owe me {q} euros|{n}: @{m} don't forget my {q} euros :)",
            ("q", "It is {q} euros.", "How big is the debt?|What sum has to be paid back?"),
            ("n", "{n} gets the money.", "Who gets money back?|To whom does somebody owe something?"),
            ("m", "{m} must pay.", "Who has a debt?|Who needs to open the purse?", "Is it {z} who must pay?"),
        ),
        spoken=True,
    ),
    _sheet(
        "Visiting the museum|Museum: what you should know|For visitors|Plan your visit",
        "Enjoy the old things!|No flash, please.",
        _part(
            {"a": _clock(9, 11), "b": _clock(16, 17), "c": _clock(19, 21)},
            "We open at {a} and close at {b}, on Thursday at {c}.|{a} to {b}; Thursday: {a} to {c}",
            ("a", "The museum opens at {a}.", "How early can I look at the pictures?|When is the door unlocked?"),
            (
                "b",
                "The museum normally closes at {b}.",
                "It is Tuesday. How late can I stay?|Until when can I stay on a normal day?",
            ),
            (
                "c",
                "On Thursday the museum closes at {c}.",
                "It is Thursday. How late can I stay?|How late is it open on the long day?",
                "Is it open until {z} on Thursday?",
            ),
        ),
        _part(
            {"a": _number(9, 19), "b": _number(2, 7), "c": _number(20, 40)},
            "Adults pay {a} euros, children {b}, families {c}.|Tickets: {b} (child), {a} (adult), {c} (family)",
            ("a", "Adults pay {a} euros.", "I am forty. What is my ticket?|What does one grown-up pay?"),
            (
                "b",
                "Children pay {b} euros.",
                "My son is eight. What does he pay?|What is a ticket for the little ones?",
            ),
            (
                "c",
                "Families pay {c} euros.",
                "We come with Mum, Dad and the kids. What is the ticket for all of us?|"
                "What do parents and children pay together?",
            ),
        ),
        _part(
            {"f": _number(1, 3), "g": _number(4, 6), "h": _number(7, 9)},
            "Coins on floor {f}, ships on floor {g}, café on floor {h}.|You find ships on floor {g}, coins on floor "
            "{f} and "
            "the café on floor {h}.",
            ("f", "Coins are on floor {f}.", "Where do I see old money?|On which floor is what people once paid with?"),
            (
                "g",
                "Ships are on floor {g}.",
                "Where is what once sailed the sea?|On which floor would a sailor feel at home?",
            ),
            ("h", "The café is on floor {h}.", "Where can I get some cake?|On which floor can I sit and drink?"),
        ),
        _part(
            {"n": Words.name, "t": _clock(10, 12), "m": Words.name, "u": _clock(13, 15)},
            "{n} guides at {t}, {m} guides in English at {u}.|Tours: {t} ({n}), {u} in English ({m})",
            ("n", "{n} guides at {t}.", "Who leads the first tour?|With whom do I walk at {t}?"),
            ("m", "{m} guides in English.", "Who can explain things in English?|Who leads the English tour?"),
            (
                "u",
                "The English tour is at {u}.",
                "I speak only English. When is my tour?|When do they explain in English?",
            ),
        ),
        _either(
            "Bags may be taken inside.|You can keep your bag.",
            "Bags must be left at the door.|Leave your bag at the entrance.",
            "bags may be taken inside.",
            "bags must be left at the door.",
            "Can I keep my rucksack with me?|May I carry my bag through the rooms?|Is a bag allowed inside?",
        ),
    ),
    _sheet(
        "Boat hire|Hire a boat|Boats on the lake|Prices and rules of the boat house",
        "Mind the swans.|Wear a life jacket.",
        _part(
            {"a": _number(5, 14), "b": _number(15, 29), "c": _number(30, 70)},
            "An hour costs {a} euros for a rowing boat, {b} for a pedal boat and {c} for a motor boat.|Per hour: "
            "pedal boat "
            "{b}, rowing boat {a}, motor boat {c} euros",
            (
                "a",
                "A rowing boat costs {a} euros an hour.",
                "What do I pay to use oars?|How much is the cheapest boat?",
                "Do I pay {z} euros for a rowing boat?",
            ),
            (
                "b",
                "A pedal boat costs {b} euros an hour.",
                "I want to use my feet. What is an hour?|How much is the boat with pedals?",
            ),
            (
                "c",
                "A motor boat costs {c} euros an hour.",
                "I do not want to work at all. What is an hour?|How much is the boat with an engine?",
            ),
        ),
        _part(
            {"a": _number(2, 3), "b": _number(4, 9)},
            "Up to {a} people fit into a canoe, up to {b} into a raft.|Raft: {b} people. Canoe: {a}.",
            ("a", "A canoe takes {a} people.", "How many of us can sit in the canoe?|When is the canoe full?"),
            ("b", "A raft takes {b} people.", "How many of us can sit on the raft?|When is the raft full?"),
        ),
        _part(
            {"a": _number(10, 15), "b": _number(16, 21)},
            "You must be {a} to row and {b} to steer a motor boat.|Age: rowing from {a}, motor from {b}",
            ("a", "Rowing is allowed from {a} on.", "How old must I be to row?|What is the smaller of the two ages?"),
            (
                "b",
                "Motor boats are allowed from {b} on.",
                "How old must I be for the engine?|When may my child steer a motor boat, at what age?",
            ),
        ),
        _part(
            {"q": _number(80, 200), "t": _clock(17, 20), "f": _number(20, 60)},
            "We keep {q} euros as a deposit; who is not back at {t} pays {f} euros.|Back by {t}! Late: {f} euros. "
            "Deposit: "
            "{q} euros.",
            ("q", "The deposit is {q} euros.", "What do I get back at the end?|Which sum do you keep while I row?"),
            ("t", "The boats must be back at {t}.", "How long may I stay on the water?|When does my trip have to end?"),
            ("f", "Being late costs {f} euros.", "What if I forget the time?|What is the fine?"),
        ),
        _either(
            "Dogs may come on board.|You can take your dog on board.",
            "Dogs must stay on land.|No dogs on board.",
            "dogs may come on board.",
            "dogs must stay on land.",
            "May my poodle row with us?|Can I take the dog?|Is there a place for my dog in the boat?",
        ),
    ),
    _sheet(
        "Hello team, a short status.|Project status|Weekly report|Mail to the customer",
        "Best regards|Talk to you next week.",
        _part(
            {"a": _number(10, 49), "b": _number(50, 95)},
            "The app is {b} per cent done, the website {a} per cent.|Website: {a} %. App: {b} %.",
            (
                "b",
                "The app is {b} per cent done.",
                "How far is the app?|How much of what runs on the phone is finished?",
            ),
            (
                "a",
                "The website is {a} per cent done.",
                "How far is the website?|How much of the pages on the web is finished?",
            ),
        ),
        _part(
            {"d": _dated, "e": _dated, "n": _weekday},
            "The test was planned for {d} and is now on {e}.|We move the test from {d} to {e}.",
            (
                "e",
                "The test is now on {e}.",
                "Which day is the test after all?|On what date do we really test?",
                "Is the test on {z} now?",
            ),
            ("d", "At first the test was planned for {d}.", "What was the old date?|Which date is no longer true?"),
        ),
        _part(
            {"n": Words.name, "m": Words.name},
            "{n} leaves the project; {m} takes over.|{m} replaces {n} from now on.",
            ("n", "{n} leaves.", "Who goes away?|To whom do we say goodbye?"),
            ("m", "{m} takes over.", "Who is new?|Whom do I write to from now on?", "Is {z} the one who takes over?"),
        ),
        _part(
            {"a": _number(1000, 4900), "b": _number(5000, 9900)},
            "Of the {b} euros we have used {a}.|Budget: {b} euros. Used: {a} euros.",
            ("a", "{a} euros have been used.", "How much has gone already?|What have we spent so far?"),
            ("b", "The budget is {b} euros.", "How much was there at the beginning?|How much may we spend in all?"),
        ),
        _part(
            {"x": _number(2, 9), "y": _number(10, 40)},
            "{y} bugs were found, {x} of them are bad.|Bugs: {y}, bad ones: {x}",
            ("y", "{y} bugs were found.", "How many mistakes are there altogether?|What is the total of the bugs?"),
            ("x", "{x} bugs are bad.", "How many should worry us?|How many are serious?"),
        ),
        _part(
            {"n": Words.name, "d": _day, "m": Words.name, "e": _day},
            "{n} is away on {d}, {m} on {e}.|Out of office: {m} ({e}), {n} ({d})",
            ("d", "{n} is away on {d}.", "On which day can I not reach {n}?|When is {n}'s chair empty?"),
            ("e", "{m} is away on {e}.", "On which day can I not reach {m}?|When is {m}'s chair empty?"),
            (
                "m",
                "{m} is away on {e}.",
                "Who does not work on {e}?|Whom do we miss on {e}?",
                "Is it {z} who is away on {e}?",
            ),
        ),
        _either(
            "The customer has said yes.|The customer agrees with the plan.",
            "The customer has said no.|The customer does not agree with the plan.",
            "the customer agrees.",
            "the customer does not agree.",
            "Does the customer like the plan?|Do we have the customer's go?|Is the customer happy with the plan?",
        ),
    ),
    _sheet(
        "News from the club|Newsletter|Dear members,|What is new in the chess club",
        "With kind regards, the board|See you at the table!",
        _part(
            {"a": _number(20, 60), "b": _number(61, 120)},
            "The fee goes up from {a} to {b} euros a year.|A year now costs {b} euros and no longer {a}.",
            (
                "b",
                "The fee is now {b} euros.",
                "What do I pay from now on?|How much is a year now?",
                "Do I pay {z} euros now?",
            ),
            ("a", "The fee was {a} euros.", "What did I pay until now?|How much was it before?"),
        ),
        _part(
            {"n": Words.full_name, "m": Words.full_name},
            "{n} was elected president; {m} gave up the office.|After {m}, {n} is now the president.",
            ("n", "{n} is the president now.", "Who leads us today?|Who was chosen?", "Is {z} the president now?"),
            ("m", "{m} was the president before.", "Who led us until now?|Whom do we thank for the years behind us?"),
        ),
        _part(
            {"n": Words.name, "q": _number(2, 20), "m": Words.name, "r": _number(21, 60)},
            "{n} won {q} games this year and {m} won {r}.|Games won: {m} {r}, {n} {q}",
            ("q", "{n} won {q} games.", "How often was {n} better than the others?|How many wins does {n} have?"),
            ("r", "{m} won {r} games.", "How often was {m} better than the others?|How many wins does {m} have?"),
            ("m", "{m} won more games.", "Which of the two players was stronger?|Who has more wins?"),
            ("n", "{n} won fewer games.", "Which of the two players was weaker?|Who has fewer wins?"),
        ),
        _part(
            {"d": _day, "e": _day},
            "We play on {e} instead of {d}.|The evening is moved from {d} to {e}.",
            ("e", "The evening is on {e} now.", "On which day do I come from now on?|What is the new day?"),
            (
                "d",
                "The evening used to be on {d}.",
                "On which day would I now find the door locked, though I always came then?|What was the old day?",
            ),
        ),
        _part(
            {"x": _number(3, 9), "y": _number(10, 25)},
            "{y} members have joined and {x} have left.|New: {y} members. Gone: {x}.",
            ("y", "{y} members have joined.", "How many new faces are there?|How many signed up?"),
            ("x", "{x} members have left.", "How many do not come any more?|How many said goodbye?"),
        ),
    ),
    _sheet(
        "Grandma's soup|Recipe|How to make it|Soup for a cold day",
        "Enjoy your meal!|It tastes even better the next day.",
        _part(
            {"a": _number(2, 5), "b": _number(6, 12)},
            "Peel {b} carrots and {a} onions.|You need {a} onions and {b} carrots.",
            ("a", "{a} onions are needed.", "How many times do I cry, one for each onion?|How many onions go in?"),
            (
                "b",
                "{b} carrots are needed.",
                "How many carrots go in?|How many orange roots do I peel?",
                "Are there {z} carrots in it?",
            ),
        ),
        _part(
            {"a": _number(5, 14), "b": _number(15, 60)},
            "Fry everything for {a} minutes, then boil it for {b}.|First {a} minutes in the pan, after that {b} "
            "minutes in "
            "the pot.",
            ("a", "It is fried for {a} minutes.", "How long is it in hot oil?|How long does it stay in the pan?"),
            (
                "b",
                "It boils for {b} minutes.",
                "How long does it cook in the pot?|How many minutes is it in hot water?",
            ),
        ),
        _part(
            {"a": _of("butter", "oil", "lard", invented=0), "b": _of("salt", "pepper", "thyme", "ginger", invented=0)},
            "Begin with {a}; add {b} at the very end.|{B} comes last, {a} first.",
            ("a", "It begins with {a}.", "What goes into the pan before all else?|What do I melt or heat first?"),
            ("b", "It ends with {b}.", "What do I add just before we eat?|What is the last thing to go in?"),
        ),
        _part(
            {"q": _number(2, 6), "d": _number(7, 20)},
            "It keeps {q} days in the fridge and {d} weeks if frozen.|Fridge: {q} days. Freezer: {d} weeks.",
            (
                "q",
                "It keeps {q} days in the fridge.",
                "I do not freeze it. How long is it good?|How many days later can I still eat it from the fridge?",
            ),
            (
                "d",
                "It keeps {d} weeks if frozen.",
                "How long is it good in the ice?|How many weeks can it wait in the freezer?",
            ),
        ),
        _either(
            "There is no meat in it.|It is made without meat.",
            "There is some meat in it.|It is made with meat.",
            "there is no meat in it.",
            "there is meat in it.",
            "My friend eats only plants, no meat. Is it meat-free?|Can I give it to somebody who never eats meat?|"
            "Is it free of meat?",
        ),
    ),
)


_NEVER = (
    "Where was {n} born?",
    "What is {n}'s favourite food?",
    "How tall is {n}?",
    "When is {n}'s birthday?",
    "What colour are the eyes of {n}?",
    "Which music does {n} like?",
)


@dataclass(frozen=True)
class Told:
    """A part as it stands in a text, and its values."""

    part: Part
    values: Mapping[str, str]

    def filled(self, pattern: str, **others: str) -> str:
        """A pattern with the values in it."""
        capitals = {letter.upper(): capitalised(value) for letter, value in self.values.items()}
        return tidy(pattern.format(**{**self.values, **capitals, **others}))


def _drawn(words: Words, part: Part, taken: dict[str, None]) -> Told:
    values: dict[str, str] = {}
    for letter, draw in part.draws.items():
        value = draw(words)
        for _ in range(30):
            if value not in taken or value in ("Yes", "No"):
                break
            value = draw(words)
        taken[value] = None
        values[letter] = value
    return Told(part, values)


def _other(words: Words, told: Told, letter: str, every: Sequence[Told]) -> str:
    """Another value of the kind of one, if possible one that stands in the text."""
    draw, value = told.part.draws[letter], told.values[letter]
    beside = [
        one.values[key]
        for one in every
        for key, drawn in one.part.draws.items()
        if one.values[key] != value and (drawn is draw or (":" in value and ":" in one.values[key]))
    ]
    if beside and words.rng.random() < 0.7:
        return words.rng.choice(beside)
    for _ in range(30):
        other = draw(words)
        if other != value:
            return other
    return value


def sheet(words: Words, absent: str) -> tuple[str, list[Asked]]:
    """A text of one matter, and questions about it, about a third of which it does not answer."""
    rng = words.rng
    kind = rng.choice(SHEETS)
    taken: dict[str, None] = {}
    every = [_drawn(words, rng.choice(slot), taken) for slot in kind.slots]
    count = min(len(every) - 1, rng.choice((1, 2, 3, 3, 4, 5, 6)))
    chosen = sorted(rng.sample(range(len(every)), count))
    if rng.random() < 0.3:
        rng.shuffle(chosen)
    told = [every[place] for place in chosen]
    left_out = [one for place, one in enumerate(every) if place not in chosen]
    flows = not kind.spoken and rng.random() < 0.5
    written = [one.filled(rng.choice(_flowing(one.part.told) if flows else one.part.told)) for one in told]
    asked: list[Asked] = []
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        one = rng.choice(told)
        if rng.random() < 0.32:
            people = [value for key, value in one.values.items() if one.part.draws[key] is Words.name]
            if people and rng.random() < 0.3:
                question = rng.choice(_NEVER).format(n=rng.choice(people))
            else:
                one = rng.choice(left_out)
                question, answer, letter = rng.choice(one.part.asks)
                is_claim = f"{{{letter}}}" in answer and rng.random() < 0.1
                question = one.filled(claimed(rng, answer) if is_claim else question)
            asked.append((question, absent, absent))
        elif one.part.checks and rng.random() < 0.3:
            question, letter, answer = rng.choice(one.part.checks)
            value = one.values[letter]
            said = _other(words, one, letter, told) if rng.random() < 0.5 else value
            reply = one.filled(agreed(answer, said == value))
            asked.append((one.filled(question, z=said), reply, "Yes" if said == value else "No"))
        else:
            question, answer, letter = rng.choice(one.part.asks)
            if f"{{{letter}}}" in answer and rng.random() < 0.1:
                said = _other(words, one, letter, told) if rng.random() < 0.5 else one.values[letter]
                reply = one.filled(agreed(answer, said == one.values[letter]))
                question = one.filled(claimed(rng, answer), **{letter: said})
                asked.append((question, reply, "Yes" if said == one.values[letter] else "No"))
                continue
            asked.append((one.filled(question), one.filled(answer), one.values[letter]))
    return _laid_out(rng, kind, written, flows), once(asked)


def _flowing(told: Sequence[str]) -> Sequence[str]:
    """Those that can stand in a paragraph, if there are any."""
    return [one for one in told if not re.match(r"- |\[|[a-z_]+: ", one)] or told


def _laid_out(rng: random.Random, kind: Sheet, written: Sequence[str], flows: bool) -> str:
    """The parts of a text in one paragraph, in lines or in points, perhaps with a head and a last line."""
    lines = any("\n" in one or re.match(r"- |\[", one) for one in written)
    form = "prose" if flows and not lines else rng.choice(("lines", "points", "numbers"))
    head = rng.choice(kind.heads) if rng.random() < 0.6 else ""
    tail = rng.choice(kind.tails) if rng.random() < 0.4 else ""
    if form == "prose":
        body = " ".join(one if one[-1] in ".!?" else f"{one}." for one in written)
        head = head and (head if head[-1] in ".!?," else f"{head}{rng.choice((':', '.'))}")
        return rng.choice((" ", "\n", "\n\n")).join(filter(None, (head, body, tail)))
    if form == "points" and not lines and not kind.spoken:
        body = "\n".join(f"- {one}" for one in written)
    elif form == "numbers" and not lines and not kind.spoken:
        body = "\n".join(f"{place}. {one}" for place, one in enumerate(written, 1))
    else:
        body = "\n".join(written)
    return "\n".join(filter(None, (head, body, tail)))
