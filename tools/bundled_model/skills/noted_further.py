"""Lists that people keep, of which each row has several values, and what may be asked of one row or of all of them.

The questions do not repeat the words of the list: they name a role, ask the other way round, compare, count, or want
to hear yes or no.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from words import DAYS, MONTHS, Words, capitalised, is_held_out, made_up

from skills.noted import Asked, Noted, _number, _of, tidy
from skills.noted_more import _clock, _day, _host, _month, _title, _version

Draw = Callable[[Words], str]


@dataclass(frozen=True)
class Field:
    """What a list says of each row.

    Attributes:
        letter: of the value in what is told.
        label: over the column.
        draw: the value.
        answer: tells the value ``{v}`` of the row ``{n}``.
        asks: for the value of a row.
        back: ask for the row that has a value.
        high: the answer that tells the row with the most, the one for two rows, and the questions, with ``{a}`` and
            ``{b}`` where they are of two.
        low: the same for the least.
        check: ask whether a row has a value.
    """

    letter: str
    label: str
    draw: Draw
    answer: str
    asks: tuple[str, ...]
    back: tuple[str, ...] = ()
    high: tuple[str, ...] = ()
    low: tuple[str, ...] = ()
    check: tuple[str, ...] = ()


@dataclass(frozen=True)
class Listed:
    """A kind of list.

    Attributes:
        heads: what may stand above it.
        column: over the names of the rows.
        entity: the name of a row.
        told: ways to tell a row in one sentence or line.
        fields: of each row.
        counts: the answer that tells how many rows there are, and its questions.
        never: ask what no such list says of a row.
    """

    heads: tuple[str, ...]
    column: str
    entity: Draw
    told: tuple[str, ...]
    fields: tuple[Field, ...]
    counts: tuple[str, ...]
    never: tuple[str, ...]


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|")) if text else ()


def _field(
    letter: str,
    label: str,
    draw: Draw,
    answer: str,
    asks: str,
    back: str = "",
    high: str = "",
    low: str = "",
    check: str = "",
) -> Field:
    return Field(letter, label, draw, answer, *map(_split, (asks, back, high, low, check)))


def _list(heads: str, column: str, entity: Draw, told: str, counts: str, never: str, *fields: Field) -> Listed:
    return Listed(_split(heads), column, entity, _split(told), fields, _split(counts), _split(never))


def _code(words: Words) -> str:
    return words.code()


def _proper(draw: Draw) -> Draw:
    return lambda words: capitalised(draw(words))


LISTS: tuple[Listed, ...] = (
    _list(
        "Parcels in the post room|Parcels today|What the carrier left",
        "parcel",
        _code,
        "Parcel {n} is from {s}, weighs {w} kilos and lies on shelf {h}.|"
        "{n}: sender {s}, {w} kg, shelf {h}|"
        "On shelf {h} there is parcel {n}, {w} kilos, sent by {s}.|"
        "{s} has sent us {n}; with its {w} kilos it went to shelf {h}.",
        "There are {q} parcels.|How many parcels came?|How many packages are waiting?|what's the number of parcels?",
        "When was parcel {n} sent?|What is inside {n}?|What did it cost to send {n}?",
        _field(
            "s",
            "sender",
            Words.name,
            "Parcel {n} is from {v}.",
            "Who sent {n}?|From whom is parcel {n}?|Who do I thank for {n}?|Whose name is on the back of {n}?",
            "Which parcel did {v} send?|What came from {v}?|Which package has {v} posted to us?",
            check="Is {n} from {v}?|Did {v} send parcel {n}?",
        ),
        _field(
            "w",
            "kilos",
            _number(2, 60),
            "Parcel {n} weighs {v} kilos.",
            "How heavy is {n}?|What would the scales say for {n}?|How many kilos do I lift if I carry {n}?",
            "Which parcel has {v} kilos?|Which one weighs {v}?",
            "Parcel {n} is the heaviest.|Parcel {n} is heavier than {m}.|Which parcel is the heaviest?|"
            "Which of them is hardest to carry?|Which is heavier, {a} or {b}?",
            "Parcel {n} is the lightest.|Parcel {n} is lighter than {m}.|Which parcel is the lightest?|"
            "Which one can a child carry best?|Which is lighter, {a} or {b}?",
            "Does {n} weigh {v} kilos?",
        ),
        _field(
            "h",
            "shelf",
            _number(1, 40),
            "Parcel {n} is on shelf {v}.",
            "Where do I find {n}?|On which shelf is {n}?|Where did they put parcel {n}?",
            "What lies on shelf {v}?|Which parcel do I take from shelf {v}?",
            check="Is {n} on shelf {v}?|Do I find {n} on shelf {v}?",
        ),
    ),
    _list(
        "Helpers at the festival|Our volunteers|Who does what on Saturday",
        "helper",
        Words.name,
        "{n} does the {t} from {s} to {e}.|{n}: {t}, {s}-{e}|The {t} is done by {n}, who starts at {s} and stops at "
        "{e}.|From {s} until {e} {n} is responsible for the {t}.",
        "There are {q} helpers.|How many people help?|How many helpers do we have?|On how many volunteers can we "
        "count?",
        "What does {n} wear?|How old is {n}?|What is the phone number of {n}?",
        _field(
            "t",
            "task",
            _of("cloakroom", "parking", "bar", "till", "cleaning", "sound", "lighting", "entrance", "cooking"),
            "{n} does the {v}.",
            "What is {n}'s task?|What is {n} in charge of?|Where is {n} needed?|What does {n} take care of?",
            "Who does the {v}?|Who is the one in charge of the {v}?|Whom do I ask about the {v}?",
            check="Is {n} in charge of the {v}?|Does {n} do the {v}?",
        ),
        _field(
            "s",
            "from",
            _clock(7, 13),
            "{n} starts at {v}.",
            "When does {n} begin?|At what time must {n} be there?|From when on can I count on {n}?|When is {n} on?",
            "Who begins at {v}?|Who has to be there at {v}?",
            "{n} starts last.|{n} starts later than {m}.|Who is the last to begin?|Who can sleep longest?|"
            "Who starts later, {a} or {b}?",
            "{n} starts first.|{n} starts earlier than {m}.|Who is the first to begin?|Who must get up earliest?|"
            "Who starts earlier, {a} or {b}?",
            "Does {n} start at {v}?",
        ),
        _field(
            "e",
            "until",
            _clock(15, 23),
            "{n} stops at {v}.",
            "When can {n} go home?|Until when does {n} work?|When is {n} done?|At what time is {n} free?",
            "Who goes home at {v}?|Who is done at {v}?",
            "{n} stays the longest in the evening.|{n} stops later than {m}.|Who goes home last?|"
            "Who is done later, {a} or {b}?",
            "{n} is done first.|{n} is done earlier than {m}.|Who may go home first?|Who is done earlier, {a} or {b}?",
            "Is {n} done at {v}?|Can {n} go at {v}?",
        ),
    ),
    _list(
        "Cars for hire|Our fleet|Rental cars",
        "car",
        _title,
        "The {n} has {s} seats, costs {p} euros a day and uses {f} litres.|{n} - {s} seats - {p} euros/day - {f} l|"
        "For {p} euros a day you get the {n} with {s} seats; it needs {f} litres for 100 km.",
        "There are {q} cars.|How many cars can I choose from?|How many cars do you have?|what is the size of the "
        "fleet?",
        "How old is the {n}?|What colour is the {n}?|How fast is the {n}?",
        _field(
            "s",
            "seats",
            _number(2, 9),
            "The {n} has {v} seats.",
            "How many people fit into the {n}?|How many can ride in the {n}?|How many seats are in the {n}?",
            "Which car has {v} seats?|Which car do I take for exactly {v} people?",
            "The {n} has the most seats.|The {n} has more seats than the {m}.|Which car is best for a big family?|"
            "Which one takes the most people?|Which takes more people, the {a} or the {b}?",
            "The {n} has the fewest seats.|The {n} has fewer seats than the {m}.|Which car takes the fewest people?|"
            "Which has fewer seats, the {a} or the {b}?",
            "Do {v} people fit into the {n}, with no seat to spare?",
        ),
        _field(
            "p",
            "euros a day",
            _number(20, 180),
            "The {n} costs {v} euros a day.",
            "What do I pay for one day with the {n}?|How much is the {n}?|What is the price of the {n}?",
            "Which car costs {v} euros?|What do I get for {v} euros?|Which of them is {v} a day?",
            "The {n} is the most expensive.|The {n} is more expensive than the {m}.|Which car is the dearest?|"
            "For which of them do I pay the most?|What costs more, the {a} or the {b}?",
            "The {n} is the cheapest.|The {n} is cheaper than the {m}.|Which car is the cheapest?|"
            "I want to spend as little as possible. Which car?|What costs less, the {a} or the {b}?",
            "Is the {n} {v} euros a day?",
        ),
        _field(
            "f",
            "litres per 100 km",
            _number(3, 19),
            "The {n} uses {v} litres.",
            "How much fuel does the {n} need?|How thirsty is the {n}?|How many litres does the {n} burn?",
            "Which car needs {v} litres?",
            "The {n} uses the most fuel.|The {n} uses more fuel than the {m}.|Which car is the thirstiest?|"
            "Which uses more fuel, the {a} or the {b}?",
            "The {n} uses the least fuel.|The {n} uses less fuel than the {m}.|Which car needs the least fuel?|"
            "Which one is kindest to the climate?|Which uses less fuel, the {a} or the {b}?",
        ),
    ),
    _list(
        "Pitches|Camp site bookings|This week at the camp site",
        "pitch",
        _number(1, 80),
        "Pitch {n} is booked by {g}, who arrives on {a} and stays {k} nights.|Pitch {n}: {g}, from {a}, {k} nights|"
        "On {a} {g} comes to pitch {n} for {k} nights.|{g} has pitch {n} for {k} nights, beginning on {a}.",
        "{q} pitches are booked.|How many pitches are taken?|How many bookings are there?",
        "What did pitch {n} cost?|Does pitch {n} have electricity?|How big is pitch {n}?",
        _field(
            "g",
            "guest",
            Words.name,
            "Pitch {n} is booked by {v}.",
            "Who sleeps on pitch {n}?|Whose tent stands on pitch {n}?|Which guest has pitch {n}?|Who booked pitch {n}?",
            "Where does {v} camp?|Which pitch is {v}'s?|Where do I find the tent of {v}?",
            check="Is pitch {n} for {v}?|Does {v} have pitch {n}?",
        ),
        _field(
            "a",
            "arrives",
            _day,
            "The guest of pitch {n} arrives on {v}.",
            "When will somebody come to pitch {n}?|On which day is pitch {n} taken?|Until what day is pitch {n} empty?",
            "Which pitch gets its guest on {v}?|Which pitch must be ready on {v}?",
        ),
        _field(
            "k",
            "nights",
            _number(2, 21),
            "Pitch {n} is booked for {v} nights.",
            "How long is pitch {n} taken?|For how many nights does somebody sleep on pitch {n}?",
            "Which pitch is booked for {v} nights?",
            "Pitch {n} is booked the longest.|Pitch {n} is booked longer than pitch {m}.|Which pitch is taken longest?|"
            "Which is booked for more nights, pitch {a} or pitch {b}?",
            "Pitch {n} is booked the shortest.|Pitch {n} is booked for fewer nights than pitch {m}.|"
            "Which pitch has the shortest stay?|Which is booked for fewer nights, pitch {a} or pitch {b}?",
            "Is pitch {n} booked for {v} nights?",
        ),
    ),
    _list(
        "Open invoices|Invoices|What customers owe us",
        "invoice",
        lambda w: w.digits(4),
        "Invoice {n} for {c} is over {m} euros and due on {d}.|{n}: {c}, {m} euros, due {d}|"
        "{c} must pay {m} euros by {d} (invoice {n}).|By {d} we expect {m} euros from {c} for invoice {n}.",
        "There are {q} invoices.|How many invoices are open?|How many bills have not been paid?",
        "Who wrote invoice {n}?|What was sold on invoice {n}?|What is the bank account for invoice {n}?",
        _field(
            "c",
            "customer",
            _title,
            "Invoice {n} is for {v}.",
            "Who has to pay invoice {n}?|Which customer got invoice {n}?|To whom did {n} go?|Whose debt is {n}?",
            "Which invoice did {v} get?|What is the number of the bill for {v}?|Under what number do I find {v}?",
            check="Does {v} have to pay invoice {n}?",
        ),
        _field(
            "m",
            "euros",
            _number(40, 9800),
            "Invoice {n} is over {v} euros.",
            "How much is invoice {n}?|What sum do we get for {n}?|How much money will {n} bring?",
            "Which invoice is over {v} euros?|For which one do we get {v} euros?",
            "Invoice {n} is the highest.|Invoice {n} is higher than {m}.|Which invoice is the largest?|"
            "Which one brings us the most money?|Which is higher, {a} or {b}?",
            "Invoice {n} is the lowest.|Invoice {n} is lower than {m}.|Which invoice is the smallest?|"
            "Which one hurts least if it is never paid?|Which is lower, {a} or {b}?",
            "Is invoice {n} over {v} euros?",
        ),
        _field(
            "d",
            "due",
            lambda w: f"{w.number(1, 28)} {w.rng.choice(MONTHS)}",
            "Invoice {n} is due on {v}.",
            "By when must {n} be paid?|When should the money for {n} be here?|What is the last day for paying {n}?",
            "Which invoice must be paid by {v}?|What is due on {v}?",
            check="Is {n} due on {v}?",
        ),
    ),
    _list(
        "Results of the race|Village run|Who ran how fast",
        "runner",
        Words.name,
        "{n} from {c} needed {t} minutes and wore number {b}.|{n} ({c}), number {b}: {t} min|"
        "With number {b}, {n} of {c} was in after {t} minutes.|After {t} minutes number {b} arrived: {n}, from {c}.",
        "{q} people ran.|How many people took part?|How many runners were there?|how many finished?",
        "How old is {n}?|Which shoes did {n} wear?|Who trains {n}?",
        _field(
            "c",
            "from",
            Words.city,
            "{n} is from {v}.",
            "Where does {n} come from?|Which town cheers for {n}?|What is {n}'s home town?",
            "Who is from {v}?|Which runner came from {v}?|Who is the pride of {v}?",
            check="Is {n} from {v}?|Does {n} come from {v}?",
        ),
        _field(
            "t",
            "minutes",
            _number(31, 99),
            "{n} needed {v} minutes.",
            "How long did {n} run?|After how many minutes was {n} there?|What was {n}'s time?",
            "Who needed {v} minutes?|Who was in after {v} minutes?",
            "{n} was the slowest.|{n} was slower than {m}.|Who was the slowest?|Who came in last?|"
            "For whom did we wait the longest?|Who was slower, {a} or {b}?|Who lost to the other, {a} or {b}?",
            "{n} was the fastest.|{n} was faster than {m}.|Who won?|Who was the fastest?|Who gets the gold medal?|"
            "Who came in first?|Who was faster, {a} or {b}?|Who was ahead, {a} or {b}?",
            "Did {n} need {v} minutes?",
        ),
        _field(
            "b",
            "number",
            _number(100, 900),
            "{n} wore number {v}.",
            "What number was on {n}'s shirt?|Which number do I look for in the photos of {n}?|What number had {n}?",
            "Who was number {v}?|Who had {v} on the shirt?|Whom do I see in the photo with the number {v}?",
            check="Was {n} number {v}?|Did {n} wear {v}?",
        ),
    ),
    _list(
        "Dogs in our care|Kennel|Guests with four legs",
        "dog",
        Words.name,
        "{n} belongs to {o}, gets {f} grams of food and goes for a walk at {w}.|{n} (owner: {o}): {f} g, walk {w}|"
        "{o}'s dog {n} is taken out at {w} and eats {f} grams.|At {w} somebody walks {n}, the dog of {o}; "
        "the bowl takes {f} grams.",
        "There are {q} dogs.|How many dogs do we look after?|How many animals are here?",
        "How old is the dog {n}?|What breed is {n}?|Where does {n} sleep?",
        _field(
            "o",
            "owner",
            Words.name,
            "{n} belongs to {v}.",
            "Whose dog is {n}?|Whom do I call if {n} is ill?|Who comes to fetch {n}?|Who is the master of {n}?",
            "What is {v}'s dog called?|Which dog does {v} have?|Which dog do I hand to {v}?",
            check="Is {n} the dog of {v}?|Does {n} belong to {v}?",
        ),
        _field(
            "f",
            "grams",
            _number(90, 700),
            "{n} gets {v} grams of food.",
            "How much do I put into the bowl of {n}?|How much does {n} eat?|How big is {n}'s meal?",
            "Which dog gets {v} grams?|Who eats {v} grams?",
            "{n} eats the most.|{n} eats more than {m}.|Which dog is the greediest?|Who eats the most?|"
            "Who eats more, {a} or {b}?",
            "{n} eats the least.|{n} eats less than {m}.|Which dog eats the least?|Whose bowl is the emptiest?|"
            "Who eats less, {a} or {b}?",
        ),
        _field(
            "w",
            "walk",
            _clock(7, 18),
            "{n} goes for a walk at {v}.",
            "When do I take {n} out?|At what time is {n} in the park?|When does {n} need the lead?",
            "Which dog goes out at {v}?|With whom do I walk at {v}?",
            "{n} goes out last.|{n} goes out later than {m}.|Which dog waits longest for its walk?|"
            "Who goes out later, {a} or {b}?",
            "{n} goes out first.|{n} goes out earlier than {m}.|Which dog is walked first?|"
            "Who goes out earlier, {a} or {b}?",
            "Is {n}'s walk at {v}?",
        ),
    ),
    _list(
        "Agenda|What we talk about|Plan of the meeting",
        "topic",
        _of("parking", "the budget", "holidays", "heating", "hiring", "the canteen", "the website", "the summer party"),
        "{S} opens the talk about {n} at {t}; it takes {m} minutes.|{t} {n} ({s}, {m} min)|"
        "At {t} {s} speaks about {n} for {m} minutes.|The topic of {n}, {m} minutes long, is up at {t} and led by {s}.",
        "There are {q} topics.|How many items are on the agenda?|How many topics do we have?",
        "What was decided about {n}?|Who is against the plan for {n}?|In which room is the talk about {n}?",
        _field(
            "s",
            "speaker",
            Words.name,
            "{v} speaks about {n}.",
            "Who leads the talk about {n}?|Who has prepared something on {n}?|Whom do I send my questions about {n}?",
            "What is {v} going to tell us about?|Which topic is {v}'s?|What has {v} prepared?",
            check="Does {v} speak about {n}?",
        ),
        _field(
            "t",
            "time",
            _clock(9, 16),
            "The topic of {n} begins at {v}.",
            "When do we come to {n}?|I only care about {n}. When should I join?|At what time is it {n}'s turn?",
            "What do we discuss at {v}?|What is up at {v}?",
            "The topic of {n} comes last.|The topic of {n} comes after {m}.|What is the last topic?|"
            "What comes later, {a} or {b}?",
            "The topic of {n} comes first.|The topic of {n} comes before {m}.|What is the first topic?|"
            "With what do we begin?|What comes first, {a} or {b}?",
            "Does {n} begin at {v}?",
        ),
        _field(
            "m",
            "minutes",
            _number(5, 59),
            "The topic of {n} takes {v} minutes.",
            "How long do we talk about {n}?|How much time is there for {n}?|How many minutes does {n} get?",
            "Which topic gets {v} minutes?",
            "The topic of {n} takes the longest.|The topic of {n} takes longer than {m}.|"
            "Which topic needs the most time?|What takes longer, {a} or {b}?",
            "The topic of {n} is the shortest.|The topic of {n} is shorter than {m}.|Which topic is over soonest after "
            "it began?|What is shorter, {a} or {b}?",
        ),
    ),
    _list(
        "Changelog|Releases|Versions of the program",
        "version",
        _version,
        "Version {n} came out in {m}, was built by {a} and mends {f} bugs.|v{n} ({m}, {a}): {f} fixes|"
        "In {m} {a} released {n} with {f} repaired bugs.|{f} bugs are gone in {n}, which {a} put out in {m}.",
        "There are {q} versions.|How many releases are listed?|How many versions were there?",
        "How big is the download of {n}?|Which language is {n} written in?|What does version {n} cost?",
        _field(
            "m",
            "month",
            _month,
            "Version {n} came out in {v}.",
            "When could people first download {n}?|From which month is {n}?|When was {n} released?",
            "Which version is from {v}?|What was released in {v}?",
            check="Did {n} come out in {v}?|Is {n} from {v}?",
        ),
        _field(
            "a",
            "built by",
            Words.name,
            "Version {n} was built by {v}.",
            "Who is responsible for {n}?|Whose work is {n}?|Who released version {n}?|Whom do I blame for {n}?",
            "Which version is the work of {v}?|What did {v} release?",
            check="Was {n} built by {v}?|Did {v} release {n}?",
        ),
        _field(
            "f",
            "fixes",
            _number(2, 90),
            "Version {n} mends {v} bugs.",
            "How many bugs are gone with {n}?|How many repairs are in {n}?|How many fixes does {n} have?",
            "Which version has {v} fixes?|Where were {v} bugs repaired?",
            "Version {n} mends the most bugs.|Version {n} mends more bugs than {m}.|Which release has the most fixes?|"
            "Which mends more, {a} or {b}?",
            "Version {n} mends the fewest bugs.|Version {n} mends fewer bugs than {m}.|"
            "Which release has the fewest fixes?|Which mends less, {a} or {b}?",
        ),
    ),
    _list(
        "Tickets|Open bugs|Issues of this week",
        "ticket",
        lambda w: f"#{w.number(10, 999)}",
        "{n} was reported by {r} and is being worked on by {a}; {h} hours are planned.|{n}: from {r}, for {a}, {h} h|"
        "{a} works on {n}, about which {r} complained, for {h} hours.|"
        "Reported by {r}: {n}. Assigned to {a}. Estimate: {h} hours.",
        "There are {q} tickets.|How many tickets are open?|How many issues do we have?|count the tickets",
        "When was {n} opened?|Is {n} urgent?|Which version has the bug {n}?",
        _field(
            "r",
            "reported by",
            Words.name,
            "{n} was reported by {v}.",
            "Who found {n}?|Who complained in {n}?|Whom do I tell when {n} is mended?|Who opened {n}?",
            "Which ticket did {v} open?|What is the number of {v}'s complaint?|Which bug was found by {v}?",
            check="Was {n} reported by {v}?|Did {v} open {n}?",
        ),
        _field(
            "a",
            "assigned to",
            Words.name,
            "{v} works on {n}.",
            "Who has to mend {n}?|On whose desk is {n}?|Who is busy with {n}?|Who is going to repair {n}?",
            "What is {v} working on?|Which bug must {v} mend?|What is on {v}'s desk?",
            check="Does {v} work on {n}?|Is it {v} who must mend {n}?",
        ),
        _field(
            "h",
            "hours",
            _number(2, 60),
            "{v} hours are planned for {n}.",
            "How long will {n} take?|What is the estimate for {n}?|How much work is {n}?",
            "Which ticket will take {v} hours?",
            "{n} takes the most time.|{n} takes more time than {m}.|Which ticket is the most work?|"
            "Which takes longer, {a} or {b}?",
            "{n} takes the least time.|{n} takes less time than {m}.|Which one is quickest to do?|"
            "Which is quicker to do, {a} or {b}?",
        ),
    ),
    _list(
        "Departures|Flights this morning|Board at the airport",
        "flight",
        lambda w: f"{w.rng.choice('ABKLQTXZ')}{w.rng.choice('ABKLQTXZ')}{w.number(100, 999)}",
        "Flight {n} to {c} leaves at {t} from gate {g}.|{t} {n} {c} gate {g}|Gate {g}: {n}, {c}, {t}|"
        "At {t} flight {n} takes off for {c}; passengers go to gate {g}.",
        "There are {q} flights.|How many flights are listed?|How many planes leave?",
        "How long is flight {n}?|What does a seat on {n} cost?|When does {n} land?",
        _field(
            "c",
            "to",
            Words.city,
            "Flight {n} goes to {v}.",
            "Where does {n} go?|Where do I land if I take {n}?|What is the destination of {n}?",
            "Which flight takes me to {v}?|Which flight goes to {v}?|I want to see {v}. Which flight is mine?",
            check="Does {n} go to {v}?|Is {n} the one to {v}?",
        ),
        _field(
            "t",
            "leaves",
            _clock(5, 22),
            "Flight {n} leaves at {v}.",
            "When does {n} take off?|At what time is {n} in the air?|By what time must I sit in {n}?",
            "Which flight leaves at {v}?|What takes off at {v}?",
            "Flight {n} leaves last.|Flight {n} leaves later than {m}.|Which flight is the last of the day?|"
            "Which leaves later, {a} or {b}?",
            "Flight {n} leaves first.|Flight {n} leaves earlier than {m}.|Which flight is the first of the day?|"
            "Which is the earliest flight?|Which takes off before the other, {a} or {b}?",
            "Does {n} take off at {v}?",
        ),
        _field(
            "g",
            "gate",
            _number(1, 60),
            "Flight {n} leaves from gate {v}.",
            "Where do I board {n}?|To which gate must passengers of {n} go?|Where does the plane {n} stand?",
            "Which flight boards at gate {v}?|What leaves from gate {v}?",
            check="Is {n} at gate {v}?",
        ),
    ),
    _list(
        "Films tonight|Cinema programme|What is on at the cinema",
        "film",
        Words.title,
        '"{n}" starts at {t} in hall {h} and lasts {m} minutes.|{n}: hall {h}, {t}, {m} min|'
        'In hall {h} they show "{n}" at {t}; the film is {m} minutes long.',
        "{q} films are shown.|How many films can I choose from?|How many films are on?",
        'Who plays in "{n}"?|What does a ticket for "{n}" cost?|From which year is "{n}"?',
        _field(
            "t",
            "starts",
            _clock(13, 23),
            '"{n}" starts at {v}.',
            'When should I be in my seat for "{n}"?|When does "{n}" begin?|At what time do they show "{n}"?',
            "What can I watch at {v}?|Which film begins at {v}?",
            '"{n}" starts last.|"{n}" starts later than "{m}".|Which film is for night owls?|Which film starts last?|'
            'What starts later, "{a}" or "{b}"?',
            '"{n}" starts first.|"{n}" starts earlier than "{m}".|Which film starts first?|'
            'What starts earlier, "{a}" or "{b}"?',
            'Does "{n}" begin at {v}?',
        ),
        _field(
            "h",
            "hall",
            _number(1, 12),
            '"{n}" is shown in hall {v}.',
            'Where do I sit to see "{n}"?|Which hall is for "{n}"?|In which hall do they show "{n}"?',
            "What is shown in hall {v}?|Which film runs in hall {v}?",
            check='Is "{n}" in hall {v}?',
        ),
        _field(
            "m",
            "minutes",
            _number(60, 200),
            '"{n}" lasts {v} minutes.',
            'How long must I sit still for "{n}"?|How long is "{n}"?|After how many minutes is "{n}" over?',
            "Which film lasts {v} minutes?",
            '"{n}" is the longest film.|"{n}" is longer than "{m}".|Which film is the longest?|'
            'Which is longer, "{a}" or "{b}"?',
            '"{n}" is the shortest film.|"{n}" is shorter than "{m}".|Which film is the shortest?|'
            'I have little time. Which film is over fastest?|Which is shorter, "{a}" or "{b}"?',
        ),
    ),
    _list(
        "My books|Books on the list|What is on my shelf",
        "book",
        Words.title,
        '"{n}" by {a} has {p} pages; {l} has borrowed it.|{n} ({a}), {p} pages, with {l} now|'
        '{l} took home "{n}", {p} pages, written by {a}.|{a} wrote "{n}". It has {p} pages and is at {l}\'s house.',
        "There are {q} books.|How many books are these?|How many titles are on the list?",
        'What did "{n}" cost?|In which language is "{n}"?|When was "{n}" printed?',
        _field(
            "a",
            "author",
            Words.full_name,
            '"{n}" was written by {v}.',
            'Who is the author of "{n}"?|Whose book is "{n}", I mean who wrote it?|From whose pen is "{n}"?',
            "What did {v} write?|Which book is by {v}?",
            check='Did {v} write "{n}"?',
        ),
        _field(
            "p",
            "pages",
            _number(60, 900),
            '"{n}" has {v} pages.',
            'How thick is "{n}"?|How much is there to read in "{n}"?|How many pages do I have to read in "{n}"?',
            "Which book has {v} pages?",
            '"{n}" is the thickest book.|"{n}" has more pages than "{m}".|Which book is the thickest?|'
            'Which book takes longest to read?|Which is thicker, "{a}" or "{b}"?',
            '"{n}" is the thinnest book.|"{n}" has fewer pages than "{m}".|Which book is the thinnest?|'
            'Which is thinner, "{a}" or "{b}"?',
        ),
        _field(
            "l",
            "lent to",
            Words.name,
            '{v} has borrowed "{n}".',
            'Who has "{n}" at the moment?|From whom do I get "{n}" back?|Who is reading "{n}" now?',
            "What is {v} reading?|Which book must {v} bring back?|What did {v} borrow?",
            check='Is "{n}" with {v}?|Has {v} borrowed "{n}"?',
        ),
    ),
    _list(
        "League table|Standings|After nine rounds",
        "team",
        _title,
        "{n} has {p} points, {g} goals and is coached by {c}.|{n}: {p} points, {g} goals, coach {c}|"
        "Under coach {c}, {n} has scored {g} times and made {p} points.|{p} points and {g} goals: {n}, with coach {c}.",
        "There are {q} teams.|How many teams are in the table?|How many teams play?",
        "Where does {n} play at home?|Who is the captain of {n}?|When was {n} founded?",
        _field(
            "p",
            "points",
            _number(3, 60),
            "{n} has {v} points.",
            "How many points does {n} have?|What is the score of {n} in the table?|What has {n} collected so far?",
            "Who has {v} points?|Which team is at {v} points?",
            "{n} has the most points.|{n} has more points than {m}.|Who leads the table?|Which team is first?|"
            "Who would win the title today?|Who is ahead, {a} or {b}?",
            "{n} has the fewest points.|{n} has fewer points than {m}.|Who is at the bottom of the table?|"
            "Which team is last?|Who is behind, {a} or {b}?",
            "Does {n} have {v} points?",
        ),
        _field(
            "g",
            "goals",
            _number(2, 70),
            "{n} has {v} goals.",
            "How often did {n} score?|How often did the ball go into the net for {n}?|How many goals has {n} shot?",
            "Who has {v} goals?|Which team scored {v} times?",
            "{n} has the most goals.|{n} has more goals than {m}.|Which team scored most?|"
            "Who shot more goals, {a} or {b}?",
            "{n} has the fewest goals.|{n} has fewer goals than {m}.|Which team scored least?|"
            "Who shot fewer goals, {a} or {b}?",
        ),
        _field(
            "c",
            "coach",
            Words.name,
            "The coach of {n} is {v}.",
            "Who trains {n}?|Who tells {n} how to play?|Who stands at the side and shouts at {n}?",
            "Which team does {v} train?|For which team does {v} work?",
            check="Is {v} the coach of {n}?|Does {v} train {n}?",
        ),
    ),
    _list(
        "Phones|Offers this week|Phones we sell",
        "phone",
        lambda w: f"{made_up(w.rng).capitalize()} {w.number(2, 15)}",
        "The {n} weighs {w} grams, runs {h} hours and costs {p} euros.|{n}: {w} g, battery {h} h, {p} euros|"
        "For {p} euros there is the {n}: {h} hours of battery at {w} grams.",
        "There are {q} phones.|How many phones are on offer?|How many models do you sell?",
        "How big is the screen of the {n}?|Which colours does the {n} come in?|How many cameras does the {n} have?",
        _field(
            "w",
            "grams",
            _number(110, 320),
            "The {n} weighs {v} grams.",
            "How heavy is the {n}?|What does the {n} weigh in the hand?|How many grams are in my pocket with the {n}?",
            "Which phone has {v} grams?|Which one weighs {v}?",
            "The {n} is the heaviest.|The {n} is heavier than the {m}.|Which phone is the heaviest?|"
            "Which is heavier, the {a} or the {b}?",
            "The {n} is the lightest.|The {n} is lighter than the {m}.|Which phone is the lightest?|"
            "Which is lighter, the {a} or the {b}?",
        ),
        _field(
            "h",
            "hours",
            _number(8, 60),
            "The {n} runs for {v} hours.",
            "How long can I use the {n} without a plug?|How long does the {n} last?|After how many hours is the {n} "
            "empty?",
            "Which phone runs for {v} hours?",
            "The {n} lasts the longest.|The {n} lasts longer than the {m}.|Which phone has the best battery?|"
            "Which lasts longer, the {a} or the {b}?",
            "The {n} lasts the shortest.|The {n} is empty sooner than the {m}.|Which phone has the worst battery?|"
            "Which is empty sooner, the {a} or the {b}?",
        ),
        _field(
            "p",
            "euros",
            _number(99, 999),
            "The {n} costs {v} euros.",
            "What must I pay for the {n}?|How much is the {n}?|What is the price of the {n}?",
            "Which phone can I have for {v} euros?|What costs {v}?",
            "The {n} is the most expensive.|The {n} is more expensive than the {m}.|Which phone is the dearest?|"
            "Which is more expensive, the {a} or the {b}?",
            "The {n} is the cheapest.|The {n} is cheaper than the {m}.|Which phone is the cheapest?|"
            "I do not have much money. Which one?|Which is cheaper, the {a} or the {b}?",
            "Does the {n} cost {v} euros?",
        ),
    ),
    _list(
        "Teas|Our tea shelf|How to brew them",
        "tea",
        _proper(_of("Oolong", "Sencha", "Assam", "Rooibos", "Fennel", "Mint", "Camomile", "Nettle", "Earl Grey")),
        "{n} tea stands {m} minutes at {d} degrees and comes from {c}.|{n}: {m} min, {d} degrees, from {c}|"
        "Pour water of {d} degrees over {n}, a tea from {c}, and wait {m} minutes.",
        "There are {q} teas.|How many teas are there?|How many sorts are on the shelf?",
        "What does {n} tea cost?|How much caffeine is in {n} tea?|What colour is {n} tea?",
        _field(
            "m",
            "minutes",
            _number(2, 15),
            "{n} tea stands {v} minutes.",
            "How long do I brew {n}?|When may I take out the bag of {n}?|For how long does {n} stay in the pot?",
            "Which tea needs {v} minutes?",
            "{n} tea needs the longest.|{n} tea needs longer than {m}.|Which tea needs the most patience?|"
            "Which needs longer, {a} or {b}?",
            "{n} tea is ready first.|{n} tea is ready sooner than {m}.|Which tea is ready fastest?|"
            "Which is ready sooner, {a} or {b}?",
        ),
        _field(
            "d",
            "degrees",
            _number(60, 100),
            "{n} tea needs {v} degrees.",
            "How hot is the water for {n}?|At what temperature do I make {n}?|How warm must the kettle be for {n}?",
            "Which tea is made at {v} degrees?",
            "{n} tea needs the hottest water.|{n} tea needs hotter water than {m}.|Which tea wants the hottest water?|"
            "Which needs hotter water, {a} or {b}?",
            "{n} tea needs the coolest water.|{n} tea needs cooler water than {m}.|Which tea wants the coolest water?|"
            "Which needs cooler water, {a} or {b}?",
            "Is {n} made at {v} degrees?",
        ),
        _field(
            "c",
            "from",
            Words.city,
            "{n} tea comes from {v}.",
            "Where was {n} bought?|From which place is {n}?|What is the origin of {n}?",
            "Which tea is from {v}?|What was brought from {v}?",
            check="Is {n} from {v}?",
        ),
    ),
    _list(
        "Guests|Seating plan|Dinner on Friday",
        "guest",
        Words.name,
        "{n} sits in seat {s}, cannot eat {x} and brings {b}.|{n}: seat {s}, no {x}, brings {b}|"
        "In seat {s} we have {n}, who brings {b} and must not get {x}.|{n} gets a plate without {x} (seat {s}) and "
        "promised {b}.",
        "{q} guests come.|How many people sit at the table?|How many plates do we need?|how many are coming?",
        "How old is {n}?|When does {n} arrive?|What does {n} drink?",
        _field(
            "s",
            "seat",
            _number(1, 24),
            "{n} sits in seat {v}.",
            "Where do I put the card with {n}'s name?|Where does {n} sit?|Which chair is for {n}?",
            "Who is in seat {v}?|Whose name stands on chair {v}?",
            check="Does {n} sit in seat {v}?",
        ),
        _field(
            "x",
            "cannot eat",
            _of("nuts", "milk", "eggs", "fish", "gluten", "celery", "soy", "mustard", "shrimp", invented=0.1),
            "{n} cannot eat {v}.",
            "What must not be on {n}'s plate?|What makes {n} ill?|Which food is bad for {n}?|What does {n} not eat?",
            "Who must not get {v}?|For whom is {v} a danger?|Who gets a dish without {v}?",
            check="Should I keep {v} away from {n}?",
        ),
        _field(
            "b",
            "brings",
            _of("a cake", "flowers", "wine", "bread", "a game", "candles", "cheese", "a guitar", "salad", invented=0.1),
            "{n} brings {v}.",
            "What does {n} have in the bag?|What do we get from {n}?|What will {n} put on the table?|{n} comes with "
            "what?",
            "Who brings {v}?|Whom do we thank for {v}?|From whom is the gift, {v}?",
            check="Does {n} bring {v}?|Is it {n} who comes with {v}?",
        ),
    ),
    _list(
        "Mountains|Peaks we climbed|Hills around the valley",
        "mountain",
        lambda w: f"Mount {made_up(w.rng).capitalize()}",
        "{n} is {h} metres high and was first climbed by {c} in {y}.|{n}: {h} m, first climbed {y} ({c})|"
        "{c} was the first on {n}, {h} metres, in {y}.|In {y} {c} stood on top of {n}, at {h} metres.",
        "There are {q} mountains.|How many peaks are listed?|How many mountains are these?",
        "How cold is it on {n}?|In which country is {n}?|How long does it take to climb {n}?",
        _field(
            "h",
            "metres",
            _number(900, 8200),
            "{n} is {v} metres high.",
            "How tall is {n}?|How far above the sea is the top of {n}?|What is the height of {n}?",
            "Which peak reaches {v} metres?|What is {v} metres high?",
            "{n} is the highest.|{n} is higher than {m}.|Which mountain is the tallest?|From where can I look down on "
            "all the others?|Which is higher, {a} or {b}?",
            "{n} is the lowest.|{n} is lower than {m}.|Which mountain is the smallest?|Which is lower, {a} or {b}?",
            "Is {n} {v} metres high?",
        ),
        _field(
            "c",
            "first climbed by",
            Words.full_name,
            "{v} was the first on {n}.",
            "Who reached the top of {n} before all others?|Who conquered {n}?|Whose feet were first on {n}?",
            "Which mountain did {v} climb?|Where was {v} the first?|Which peak is tied to the name of {v}?",
            check="Was {v} the first on {n}?",
        ),
        _field(
            "y",
            "first climbed in",
            _number(1780, 1960),
            "{n} was first climbed in {v}.",
            "When did somebody first stand on {n}?|In which year was {n} conquered?|Since when do we know the view "
            "from "
            "{n}?",
            "Which mountain was first climbed in {v}?|Which peak was conquered in {v}?",
            "{n} was first climbed last of all.|{n} was first climbed later than {m}.|"
            "Which peak was the last to be conquered?|Which was conquered later, {a} or {b}?",
            "{n} was first climbed before all others.|{n} was first climbed earlier than {m}.|"
            "Which peak was the first to be conquered?|Which was conquered earlier, {a} or {b}?",
        ),
    ),
    _list(
        "Tram lines|Trams in town|Lines",
        "line",
        _number(1, 40),
        "Line {n} ends at {e}, runs every {m} minutes and is {c} on the map.|Line {n} ({c}): every {m} min, to {e}|"
        "To get to {e} take the {c} line {n}, which comes every {m} minutes.",
        "There are {q} lines.|How many lines are there?|How many tram lines does the town have?",
        "How old is line {n}?|What is the fare on line {n}?|Who drives line {n}?",
        _field(
            "e",
            "to",
            Words.city,
            "Line {n} ends at {v}.",
            "What is the last stop of line {n}?|Where does line {n} turn round?|How far can I go with line {n}?",
            "Which tram takes me to {v}?|What do I take to get to {v}?|Which line has its last stop at {v}?",
            check="Does line {n} end at {v}?|Can I get to {v}, the last stop, with line {n}?",
        ),
        _field(
            "m",
            "every (minutes)",
            _number(3, 60),
            "Line {n} runs every {v} minutes.",
            "I just missed line {n}. How long until the next one?|How often does line {n} come?|"
            "What is the time between two trams of line {n}?",
            "Which line comes every {v} minutes?",
            "Line {n} comes least often.|Line {n} comes less often than line {m}.|Which line comes least often?|"
            "Which comes less often, line {a} or line {b}?",
            "Line {n} comes most often.|Line {n} comes more often than line {m}.|Which line comes most often?|"
            "Which comes more often, line {a} or line {b}?",
        ),
        _field(
            "c",
            "colour",
            Words.colour,
            "Line {n} is {v} on the map.",
            "How is line {n} drawn on the map?|What colour do I look for if I want line {n}?|What colour has line {n}?",
            "Which line is the {v} one?|What is the number of the {v} tram?",
            check="Is line {n} the {v} one?",
        ),
    ),
    _list(
        "Houses for sale|Offers of the agent|Houses we saw",
        "house",
        lambda w: f"{w.number(1, 99)} {w.rng.choice(('Mill Lane', 'Oak Road', 'Hill Street', 'Park Row', 'Bay View'))}",
        "The house at {n} has {r} rooms, was built in {y} and costs {p} thousand euros.|"
        "{n}: {r} rooms, built {y}, {p} thousand euros|{p} thousand euros is the price of {n}, {r} rooms, from {y}.",
        "There are {q} houses.|How many houses are for sale?|How many did we look at?",
        "How big is the garden of {n}?|Who lives at {n} now?|Does {n} have a garage?",
        _field(
            "r",
            "rooms",
            _number(2, 14),
            "The house at {n} has {v} rooms.",
            "How many rooms would we have at {n}?|How big is {n}, in rooms?|Into how many rooms is {n} divided?",
            "Which house has {v} rooms?",
            "The house at {n} has the most rooms.|The house at {n} has more rooms than {m}.|Which house has most "
            "space?|"
            "Which has more rooms, {a} or {b}?",
            "The house at {n} has the fewest rooms.|The house at {n} has fewer rooms than {m}.|"
            "Which house has the fewest rooms?|Which has fewer rooms, {a} or {b}?",
        ),
        _field(
            "y",
            "built",
            _number(1820, 2022),
            "The house at {n} was built in {v}.",
            "From which year is {n}?|When was {n} put up?|In what year did somebody build {n}?",
            "Which house is from {v}?|What was built in {v}?",
            "The house at {n} is the newest.|The house at {n} is newer than {m}.|Which house is the newest?|"
            "Which is newer, {a} or {b}?",
            "The house at {n} is the oldest.|The house at {n} is older than {m}.|Which house is the oldest?|"
            "Which has stood longest?|Which is older, {a} or {b}?",
            "Is {n} from {v}?",
        ),
        _field(
            "p",
            "price in thousands",
            _number(90, 900),
            "The house at {n} costs {v} thousand euros.",
            "What do they want for {n}?|How much money do we need for {n}?|What is the price of {n}?",
            "Which house can we have for {v} thousand?|What is on sale for {v} thousand euros?",
            "The house at {n} is the most expensive.|The house at {n} is more expensive than {m}.|"
            "Which house can only the rich buy?|Which costs more, {a} or {b}?",
            "The house at {n} is the cheapest.|The house at {n} is cheaper than {m}.|Which house is the cheapest?|"
            "Which costs less, {a} or {b}?",
        ),
    ),
    _list(
        "Patients of the vet|Appointments at the vet|Today in the practice",
        "animal",
        Words.name,
        "At {t} {o} comes with {n}, because of {x}.|{t} {n} (owner {o}): {x}|{n}, brought by {o} at {t}, has a "
        "problem: "
        "{x}.|{o}'s animal {n} is seen at {t}. Reason: {x}.",
        "{q} animals come.|How many animals come today?|How many patients does the vet have?",
        "How old is {n}?|What does {n} weigh?|What did the treatment of {n} cost?",
        _field(
            "t",
            "time",
            _clock(8, 17),
            "{n} is seen at {v}.",
            "When is it {n}'s turn?|At what time does the vet look at {n}?|When must {n} be there?",
            "Which animal comes at {v}?|Who is seen at {v}?",
            "{n} is seen last.|{n} is seen later than {m}.|Which animal is the last patient?|"
            "Who is seen later, {a} or {b}?",
            "{n} is seen first.|{n} is seen earlier than {m}.|Which animal is the first patient?|"
            "Who is seen earlier, {a} or {b}?",
            "Is {n} seen at {v}?",
        ),
        _field(
            "o",
            "owner",
            Words.name,
            "{n} is brought by {v}.",
            "Who comes with {n}?|Who holds {n} on the lap in the waiting room?|Who will pay for {n}?",
            "With which animal does {v} come?|What is the name of {v}'s animal?",
            check="Does {v} come with {n}?",
        ),
        _field(
            "x",
            "reason",
            _of("a cough", "a cut paw", "fleas", "a sore eye", "bad teeth", "a limp", "an itch", "fever", invented=0),
            "The reason for {n} is {v}.",
            "What is wrong with {n}?|Why must {n} see the vet?|What is {n}'s trouble?",
            "Which animal has {v}?|Who comes because of {v}?",
            check="Does {n} come because of {v}?",
        ),
    ),
    _list(
        "Marks|School reports|Results of class 6",
        "pupil",
        Words.name,
        "{n} has {a} points in maths, {u} points in music and missed {d} days.|{n}: maths {a}, music {u}, missed {d} "
        "days|With {d} days missed, {n} got {u} points in music and {a} in maths.",
        "There are {q} pupils.|How many pupils are listed?|How many children got a report?",
        "How many points does {n} have in sport?|Who teaches {n}?|How old is {n}?",
        _field(
            "a",
            "maths",
            _number(30, 100),
            "{n} has {v} points in maths.",
            "How good is {n} with numbers?|What did {n} get for sums and fractions?|What is {n}'s result in maths?",
            "Who has {v} points in maths?",
            "{n} is the best in maths.|{n} is better in maths than {m}.|Who is best with numbers?|Who leads in maths?|"
            "Who is better in maths, {a} or {b}?",
            "{n} is the weakest in maths.|{n} is weaker in maths than {m}.|Who needs help with maths most?|"
            "Who is weaker in maths, {a} or {b}?",
        ),
        _field(
            "u",
            "music",
            _number(30, 100),
            "{n} has {v} points in music.",
            "How well did {n} do in the singing subject?|How many points did {n} get in music?|How good is {n} at "
            "music?",
            "Who has {v} points in music?",
            "{n} is the best in music.|{n} is better in music than {m}.|Who is the best musician of the class?|"
            "Who is better in music, {a} or {b}?",
            "{n} is the weakest in music.|{n} is weaker in music than {m}.|Who needs help with music most?|"
            "Who is weaker in music, {a} or {b}?",
        ),
        _field(
            "d",
            "missed days",
            _number(2, 29),
            "{n} missed {v} days.",
            "How often was {n} not at school?|How many days was {n}'s chair empty?|For how many days was {n} away?",
            "Who was away for {v} days?|Whose chair was empty for {v} days?",
            "{n} missed the most days.|{n} missed more days than {m}.|Who was away most often?|"
            "Who missed more days, {a} or {b}?",
            "{n} missed the fewest days.|{n} missed fewer days than {m}.|Who was at school most often?|"
            "Who missed fewer days, {a} or {b}?",
            "Did {n} miss {v} days?",
        ),
    ),
    _list(
        "Servers|Machines in the rack|Inventory",
        "host",
        _host,
        "{n} has {m} GB of memory, a disk of {d} TB and is looked after by {o}.|{n}: {m} GB RAM, {d} TB disk, admin "
        "{o}|"
        "{o} runs {n} ({d} TB, {m} GB memory).|host {n} - mem {m} GB - disk {d} TB - owner {o}",
        "There are {q} machines.|How many hosts are there?|How many servers do we have?|host count?",
        "Which system runs on {n}?|How hot is {n}?|When was {n} last restarted?",
        _field(
            "m",
            "memory (GB)",
            _number(65, 999),
            "{n} has {v} GB of memory.",
            "How much RAM is in {n}?|how many GB of ram has {n}|What memory size does {n} come with?",
            "Which host has {v} GB of RAM?|Where do I get {v} GB of memory?",
            "{n} has the most memory.|{n} has more memory than {m}.|Where should I run something that eats RAM?|"
            "Which host has the most memory?|Which has more memory, {a} or {b}?",
            "{n} has the least memory.|{n} has less memory than {m}.|Which host is shortest of RAM?|"
            "Which has less memory, {a} or {b}?",
        ),
        _field(
            "d",
            "disk (TB)",
            _number(2, 64),
            "{n} has a disk of {v} TB.",
            "How much can I store on {n}?|How big is the disk of {n}?|What is the disk size of {n}?",
            "Which host has {v} TB?|Which machine can store {v} TB?",
            "{n} has the biggest disk.|{n} has a bigger disk than {m}.|Where can I store the most?|"
            "Which has the bigger disk, {a} or {b}?",
            "{n} has the smallest disk.|{n} has a smaller disk than {m}.|Where is the least space for files?|"
            "Which has the smaller disk, {a} or {b}?",
        ),
        _field(
            "o",
            "admin",
            Words.name,
            "{v} looks after {n}.",
            "Whom do I wake up when {n} is down?|Who is responsible for {n}?|Who is the admin of {n}?",
            "Which machine is {v}'s?|What does {v} look after?|For which host is {v} responsible?",
            check="Is {v} the one to ask about {n}?|Does {v} look after {n}?",
        ),
    ),
    _list(
        "Jobs at night|Cron table|What runs when",
        "job",
        _of("backup", "report", "cleanup", "import", "export", "reindex", "sync", "billing", "rotate-logs"),
        "The job {n} starts at {t}, takes {m} minutes and mails {o}.|{n}: at {t}, {m} min, mail to {o}|"
        "At {t} {n} begins; after {m} minutes {o} gets a mail.",
        "There are {q} jobs.|How many jobs run?|How many jobs are in the table?",
        "On which host does {n} run?|When was {n} written?|How much memory does {n} need?",
        _field(
            "t",
            "at",
            _clock(0, 6),
            "The job {n} starts at {v}.",
            "When does {n} kick off?|At what time is {n} run?|when does {n} run",
            "What starts at {v}?|Which job runs at {v}?",
            "The job {n} starts last.|The job {n} starts later than {m}.|Which job is the last of the night?|"
            "Which starts later, {a} or {b}?",
            "The job {n} starts first.|The job {n} starts earlier than {m}.|Which job opens the night?|"
            "Which runs first?|Which starts earlier, {a} or {b}?",
            "Does {n} start at {v}?",
        ),
        _field(
            "m",
            "minutes",
            _number(2, 90),
            "The job {n} takes {v} minutes.",
            "How long does {n} run?|After how many minutes is {n} done?|What is the duration of {n}?",
            "Which job is done after {v} minutes?",
            "The job {n} takes longest.|The job {n} takes longer than {m}.|Which job is the slowest?|"
            "Which takes longer, {a} or {b}?",
            "The job {n} takes the least time.|The job {n} takes less time than {m}.|Which job is the quickest?|"
            "Which is quicker, {a} or {b}?",
        ),
        _field(
            "o",
            "mail to",
            Words.name,
            "The job {n} mails {v}.",
            "Who hears of it when {n} is done?|Who gets the mail from {n}?|Whom does {n} write to?",
            "Which job writes to {v}?|From which job does {v} get mail?",
            check="Does {n} mail {v}?",
        ),
    ),
    _list(
        "Suppliers|Where we buy|Firms that deliver to us",
        "supplier",
        _title,
        "{n} sends us {g} from {c} every {d}.|{n} ({c}): {g}, delivers on {d}|On {d} {n} from {c} delivers the {g}.|"
        "Our {g} come from {n} in {c}, always on {d}.",
        "There are {q} suppliers.|How many firms deliver to us?|How many suppliers do we have?",
        "What do we owe {n}?|Who is our contact at {n}?|Since when have we bought from {n}?",
        _field(
            "g",
            "goods",
            Words.items,
            "{n} sends us {v}.",
            "What do we buy from {n}?|What is in the van of {n}?|Which goods come from {n}?",
            "Who supplies the {v}?|From whom do we get {v}?|We have run out of {v}. Whom do I call?",
            check="Do we get {v} from {n}?",
        ),
        _field(
            "c",
            "town",
            Words.city,
            "{n} is in {v}.",
            "Where does {n} have its warehouse?|From where does {n} deliver?|In which town is {n}?",
            "Which supplier is in {v}?|Who delivers from {v}?",
            check="Is {n} in {v}?",
        ),
        _field(
            "d",
            "day",
            _day,
            "{n} delivers on {v}.",
            "When does the van of {n} come?|On what day must somebody be here for {n}?|Which is the day of {n}?",
            "Who delivers on {v}?|Whose van comes on {v}?",
            check="Does {n} deliver on {v}?",
        ),
    ),
    _list(
        "Keys|Key book|Who has which key",
        "key",
        lambda w: f"K{w.number(1, 99)}",
        "Key {n} opens the {o} and is with {h}; its spare hangs on hook {s}.|{n}: {o}, held by {h}, spare on hook {s}|"
        "{h} carries {n} for the {o}. Spare: hook {s}.|The {o} opens with {n}, which {h} has (spare on hook {s}).",
        "There are {q} keys.|How many keys are in the book?|How many keys are listed?",
        "What colour is key {n}?|Who made key {n}?|What does a new {n} cost?",
        _field(
            "o",
            "opens",
            _of("cellar", "safe", "attic", "gate", "garage", "archive", "lab", "boiler room", "bike shed"),
            "Key {n} opens the {v}.",
            "What is {n} for?|Which door does {n} fit?|What can I unlock with {n}?",
            "Which key do I need for the {v}?|How do I get into the {v}?|What unlocks the {v}?",
            check="Does {n} open the {v}?|Can I get into the {v} with {n}?",
        ),
        _field(
            "h",
            "held by",
            Words.name,
            "Key {n} is with {v}.",
            "Who has {n}?|Whom do I ask for {n}?|In whose pocket is {n}?",
            "Which key does {v} have?|What is in {v}'s pocket?|Which key must {v} give back?",
            check="Is {n} with {v}?|Does {v} have {n}?",
        ),
        _field(
            "s",
            "spare on hook",
            _number(1, 30),
            "The spare of {n} is on hook {v}.",
            "Where does the second {n} hang?|On which hook is the copy of {n}?|If {n} is lost, where do I find "
            "another?",
            "Which spare key hangs on hook {v}?|What is on hook {v}?",
            check="Does the spare of {n} hang on hook {v}?",
        ),
    ),
    _list(
        "Recipes of the team|Cookbook|What we cook",
        "dish",
        _of("goulash", "paella", "risotto", "chili", "gratin", "ratatouille", "curry", "quiche", "ramen"),
        "The {n} by {c} is enough for {p} people and takes {m} minutes.|{n} ({c}): for {p}, {m} min|"
        "{c} cooks the {n} in {m} minutes, for {p} people.|In {m} minutes {p} people get {c}'s {n}.",
        "There are {q} dishes.|How many dishes are there?|How many recipes are listed?",
        "How hot is the {n}?|What does the {n} cost?|Which wine goes with the {n}?",
        _field(
            "c",
            "cook",
            Words.name,
            "The {n} is by {v}.",
            "Whose recipe is the {n}?|Who makes the {n}?|Who stands at the stove for the {n}?",
            "What does {v} cook?|Which dish do we get from {v}?",
            check="Is the {n} by {v}?",
        ),
        _field(
            "p",
            "people",
            _number(2, 12),
            "The {n} is enough for {v} people.",
            "How many can eat of the {n}?|How many guests does the {n} feed?|For how many is the {n}?",
            "Which dish feeds {v}?|What is enough for exactly {v} people?",
            "The {n} feeds the most people.|The {n} feeds more people than the {m}.|Which dish feeds the most guests?|"
            "Which feeds more people, the {a} or the {b}?",
            "The {n} feeds the fewest people.|The {n} feeds fewer people than the {m}.|Which dish is the smallest?|"
            "Which feeds fewer people, the {a} or the {b}?",
        ),
        _field(
            "m",
            "minutes",
            _number(13, 120),
            "The {n} takes {v} minutes.",
            "How long do I stand in the kitchen for the {n}?|If I begin the {n} now, in how many minutes can we eat?|"
            "How much time does the {n} need?",
            "What can be done in {v} minutes?|Which dish takes {v} minutes?",
            "The {n} takes the longest.|The {n} takes longer than the {m}.|Which dish is the most work?|"
            "What takes longer, the {a} or the {b}?",
            "The {n} takes the least time.|The {n} takes less time than the {m}.|I am in a hurry. What do I cook?|"
            "Which dish is quickest?|What is quicker, the {a} or the {b}?",
        ),
    ),
    _list(
        "Tours of the day|Drivers|Vans on the road",
        "driver",
        Words.name,
        "{n} drives van {k} to {c} and has {s} stops.|{n}: van {k}, {c}, {s} stops|"
        "Van {k} with {n} goes to {c}; it stops {s} times.|To {c}: {n}, {s} stops, van {k}.",
        "There are {q} drivers.|How many vans are on the road?|How many people drive today?",
        "When is {n} back?|How far does {n} drive?|How long has {n} been with us?",
        _field(
            "k",
            "van",
            _number(1, 30),
            "{n} drives van {v}.",
            "Which van do I load for {n}?|Behind which wheel does {n} sit?|Which vehicle has {n}?",
            "Who drives van {v}?|Who sits in van {v}?|I bumped into van {v}. Who was in it?",
            check="Does {n} drive van {v}?",
        ),
        _field(
            "c",
            "town",
            Words.city,
            "{n} drives to {v}.",
            "Where is {n} going?|Where does {n} deliver?|In what town can I meet {n} today?",
            "Who goes to {v}?|Who could take a letter to {v}?|Who delivers in {v}?",
            check="Is {n} going to {v}?|Does {n} deliver in {v}?",
        ),
        _field(
            "s",
            "stops",
            _number(2, 40),
            "{n} has {v} stops.",
            "How often does {n} have to stop?|How many customers does {n} visit?|How many doors does {n} knock at?",
            "Who has {v} stops?",
            "{n} has the most stops.|{n} has more stops than {m}.|Who has the longest list of stops?|"
            "Who must stop most often?|Who has more stops, {a} or {b}?",
            "{n} has the fewest stops.|{n} has fewer stops than {m}.|Who has the easiest day?|"
            "Who has fewer stops, {a} or {b}?",
        ),
    ),
    _list(
        "Children|Pick-up list|Nursery, this afternoon",
        "child",
        Words.name,
        "{n} is fetched by {p} at {t} and wears a {c} coat.|{n}: {p}, {t}, {c} coat|At {t} {p} comes for {n}, "
        "the child in the {c} coat.|The {c} coat is {n}'s; {p} picks up {n} at {t}.",
        "There are {q} children.|How many children are here?|How many little ones are on the list?",
        "Where does {n} live?|How old is {n}?|What does {n} like to play with?",
        _field(
            "p",
            "picked up by",
            Words.name,
            "{n} is fetched by {v}.",
            "Who takes {n} home?|With whom may {n} leave?|Who comes for {n}?|Whom does {n} wait for?",
            "Which child goes home with {v}?|For whom does {v} come?|Whom does {v} take home?",
            check="May {n} go home with {v}?|Is it {v} who comes for {n}?",
        ),
        _field(
            "t",
            "fetched at",
            _clock(12, 17),
            "{n} is fetched at {v}.",
            "When must {n} be ready to go?|How long does {n} stay?|When does {n} leave?",
            "Which child goes at {v}?|Who is fetched at {v}?",
            "{n} is fetched last.|{n} is fetched later than {m}.|Which child stays longest?|Who has to wait longest?|"
            "Who leaves later, {a} or {b}?",
            "{n} is fetched first.|{n} is fetched earlier than {m}.|Which child goes home first?|"
            "Who leaves earlier, {a} or {b}?",
            "Does {n} leave at {v}?",
        ),
        _field(
            "c",
            "coat",
            Words.colour,
            "{n} wears the {v} coat.",
            "Which coat is {n}'s?|What colour is {n}'s coat?|Which coat do I hand to {n}?",
            "Whose coat is {v}?|Who came in {v}?|Which child do I help into the {v} coat?",
            check="Is the {v} coat {n}'s?",
        ),
    ),
    _list(
        "Borrowed tools|Tools we lent|Shed book",
        "tool",
        _of("drill", "saw", "ladder", "wheelbarrow", "spade", "axe", "sander", "hammer", "rake", "pump"),
        "The {n} went to {b} on {f} and must be back on {t}.|{n}: {b}, {f} to {t}|"
        "{b} took the {n} on {f}. Return: {t}.|On {t} {b} brings back the {n}, borrowed on {f}.",
        "{q} tools are lent.|How many tools are out?|How many things are missing from the shed?",
        "What is the {n} worth?|How old is the {n}?|What was the {n} used for?",
        _field(
            "b",
            "borrowed by",
            Words.name,
            "The {n} is with {v}.",
            "Who has the {n}?|Whom do I ask for the {n}?|At whose house is the {n}?",
            "What has {v} borrowed?|What does {v} owe the shed?|Which tool is with {v}?",
            check="Is the {n} with {v}?|Did {v} take the {n}?",
        ),
        _field(
            "f",
            "since",
            _day,
            "The {n} was taken on {v}.",
            "Since when has the {n} been away?|On what day was the {n} lent?|When did the {n} leave the shed?",
            check="Was the {n} lent on {v}?",
        ),
        _field(
            "t",
            "back on",
            _day,
            "The {n} must be back on {v}.",
            "When do we get the {n} again?|From what day on can I use the {n}?|By which day must the {n} be returned?",
            check="Is the {n} back on {v}?",
        ),
    ),
    _list(
        "Talks|Programme of the conference|Schedule",
        "talk",
        Words.title,
        '"{n}" is given by {s} at {t} in hall {h}.|{t}, hall {h}: {n} ({s})|{s} gives the talk "{n}", hall {h}, {t}.|'
        'Hall {h}, {t}: {s} with "{n}".',
        "There are {q} talks.|How many talks are there?|How many talks can I hear?",
        'How long is the talk "{n}"?|In which language is "{n}"?|How many people will come to "{n}"?',
        _field(
            "s",
            "speaker",
            Words.full_name,
            '"{n}" is given by {v}.',
            'Who stands on the stage for "{n}"?|Whom can I ask about "{n}" after the talk?|Who speaks in "{n}"?',
            "What is {v}'s talk called?|Which talk does {v} give?",
            check='Does {v} give the talk "{n}"?',
        ),
        _field(
            "t",
            "time",
            _clock(9, 18),
            '"{n}" begins at {v}.',
            'When should I go to "{n}"?|At what time is "{n}"?|When must I be seated for "{n}"?',
            "Which talk begins at {v}?|What can I hear at {v}?",
            '"{n}" comes last.|"{n}" comes after "{m}".|Which talk closes the day?|Which is later, "{a}" or "{b}"?',
            '"{n}" comes first.|"{n}" comes before "{m}".|Which talk opens the day?|Which is first, "{a}" or "{b}"?',
        ),
        _field(
            "h",
            "hall",
            _number(1, 15),
            '"{n}" is in hall {v}.',
            'Where is "{n}"?|Which door do I take for "{n}"?|In which hall do I hear "{n}"?',
            "What is on in hall {v}?|Which talk is in hall {v}?",
            check='Is "{n}" in hall {v}?',
        ),
    ),
    _list(
        "Budget|Money of the departments|Plan and spending",
        "department",
        _of("sales", "research", "marketing", "kitchen", "support", "design", "training", "transport", "legal"),
        "The {n} department, led by {l}, planned {p} euros and spent {s} euros.|{n} ({l}): plan {p}, spent {s}|"
        "{l}'s department, {n}, has spent {s} of the {p} euros that were planned.",
        "There are {q} departments.|How many departments are there?|How many departments have a budget?",
        "How many people work in {n}?|On which floor is {n}?|What did {n} spend last year?",
        _field(
            "l",
            "led by",
            Words.name,
            "The {n} department is led by {v}.",
            "Who is the boss of {n}?|Who runs {n}?|Whom must I convince if {n} is to pay?",
            "Which department does {v} lead?|What is {v} the head of?",
            check="Is {v} the boss of {n}?|Does {v} lead {n}?",
        ),
        _field(
            "p",
            "planned",
            _number(5000, 9900),
            "The {n} department planned {v} euros.",
            "How much was {n} meant to spend?|What is the budget of {n}?|How much money was set aside for {n}?",
            "Which department was given {v} euros?|Whose budget is {v} euros?",
            "The {n} department has the biggest budget.|The {n} department has a bigger budget than {m}.|"
            "Which department was given the most?|Which has the bigger budget, {a} or {b}?",
            "The {n} department has the smallest budget.|The {n} department has a smaller budget than {m}.|"
            "Which department was given the least?|Which has the smaller budget, {a} or {b}?",
        ),
        _field(
            "s",
            "spent",
            _number(900, 4900),
            "The {n} department spent {v} euros.",
            "How much money is {n} already rid of?|How much of its money has {n} used?|What has {n} paid out so far?",
            "Which department has spent {v} euros?|Who used {v} euros?",
            "The {n} department spent the most.|The {n} department spent more than {m}.|Who has used the most money?|"
            "Which spent more, {a} or {b}?",
            "The {n} department spent the least.|The {n} department spent less than {m}.|Who has saved best?|"
            "Which spent less, {a} or {b}?",
            "Has {n} spent {v} euros?",
        ),
    ),
    _list(
        "Weather tomorrow|Forecast|Towns and their weather",
        "town",
        Words.city,
        "In {n} it will be {s}, with {l} degrees at night and {h} by day.|{n}: {s}, {l} to {h} degrees|"
        "{n} gets up to {h} degrees by day and down to {l} at night; the sky is {s}.",
        "There are {q} towns.|For how many towns is there a forecast?|How many towns are listed?",
        "How strong is the wind in {n}?|When does the sun rise in {n}?|How many people live in {n}?",
        _field(
            "s",
            "sky",
            _of("sunny", "rainy", "cloudy", "foggy", "stormy", "snowy", invented=0),
            "It will be {v} in {n}.",
            "What will the sky be like in {n}?|What is the weather in {n}?|What do I see when I look up in {n}?",
            "Where will it be {v}?|In which town is it {v}?",
            check="Will it be {v} in {n}?",
        ),
        _field(
            "l",
            "night",
            _number(2, 14),
            "At night it has {v} degrees in {n}.",
            "How cold does it get in {n}?|What is the lowest temperature in {n}?|I sleep in a tent in {n}. How many "
            "degrees?",
            "Where are there {v} degrees at night?",
            "The night is warmest in {n}.|The night is warmer in {n} than in {m}.|Where is the night the mildest?|"
            "Where is the night warmer, in {a} or in {b}?",
            "The night is coldest in {n}.|The night is colder in {n} than in {m}.|Where will people freeze most at "
            "night?|Where is the night colder, in {a} or in {b}?",
        ),
        _field(
            "h",
            "day",
            _number(15, 38),
            "By day it has {v} degrees in {n}.",
            "How warm will it get in {n}?|What is the highest temperature in {n}?|How hot is the afternoon in {n}?",
            "Where are there {v} degrees by day?",
            "The day is hottest in {n}.|The day is warmer in {n} than in {m}.|Where will people sweat most?|"
            "Where is the day warmer, in {a} or in {b}?",
            "The day is coolest in {n}.|The day is cooler in {n} than in {m}.|Where is it cool even by day?|"
            "Where is the day cooler, in {a} or in {b}?",
        ),
    ),
    _list(
        "Cast|Who plays whom|Theatre group",
        "role",
        _proper(
            _of("king", "witch", "thief", "judge", "nurse", "ghost", "sailor", "queen", "giant", "spy", invented=0.2)
        ),
        "The part of {n} is played by {p}, in {c}; if need be, {u} steps in.|{n}: {p} (stand-in {u}), costume {c}|"
        "{p} plays the {n} in a {c} costume. {u} has learned the part, too.|{u} plays the {n} only if {p} is ill; "
        "the costume is {c}.",
        "There are {q} parts.|How many parts does the play have?|How many roles are there?",
        "How many lines does the {n} speak?|When does the {n} come on stage?|How old is the {n} in the play?",
        _field(
            "p",
            "played by",
            Words.name,
            "The {n} is played by {v}.",
            "Who is the {n} on most evenings?|Whom do we see as the {n}?|Whose part is the {n}?",
            "Which part does {v} play?|As whom do we see {v} on most evenings?",
            check="Does {v} normally play the {n}?",
        ),
        _field(
            "u",
            "stand-in",
            Words.name,
            "The stand-in for the {n} is {v}.",
            "Who plays the {n} if somebody is ill?|Who has learned the {n} just in case?|Who could replace the {n}?",
            "For which part is {v} the stand-in?|Which part has {v} learned just in case?",
            check="Is {v} the stand-in for the {n}?",
        ),
        _field(
            "c",
            "costume",
            Words.colour,
            "The costume of the {n} is {v}.",
            "What colour does the {n} wear?|In which colour do I sew for the {n}?|How do I know the {n} by colour?",
            "Who wears {v}?|Whose costume is {v}?|For which role is the {v} costume?",
            check="Does the {n} wear {v}?",
        ),
    ),
    _list(
        "Result of the vote|Election of the mayor|Votes",
        "candidate",
        Words.full_name,
        "{n}, {a} years old, from {t}, got {v} votes.|{n} ({a}, {t}): {v} votes|{v} people voted for {n} of {t}, "
        "who is "
        "{a}.",
        "There were {q} candidates.|How many candidates were there?|Between how many people could one choose?",
        "What is the job of {n}?|Who voted for {n}?|What did {n} promise?",
        _field(
            "v",
            "votes",
            _number(101, 5000),
            "{n} got {v} votes.",
            "How many people wanted {n}?|How many votes went to {n}?|What was the result of {n}?",
            "Who got {v} votes?|For whom did {v} people vote?",
            "{n} got the most votes.|{n} got more votes than {m}.|Who won?|Who becomes mayor?|Who is the winner?|"
            "Who did better, {a} or {b}?|Whom did more people want, {a} or {b}?",
            "{n} got the fewest votes.|{n} got fewer votes than {m}.|Who came last?|Who lost most clearly?|"
            "Who did worse, {a} or {b}?",
        ),
        _field(
            "a",
            "age",
            _number(24, 79),
            "{n} is {v} years old.",
            "How old is {n}?|How many birthdays has {n} had?|What age is {n}?",
            "Who is {v} years old?|Which candidate is {v}?",
            "{n} is the oldest.|{n} is older than {m}.|Who is the oldest of them?|Who was born first?|"
            "Who is older, {a} or {b}?",
            "{n} is the youngest.|{n} is younger than {m}.|Who is the youngest of them?|Who was born last?|"
            "Who is younger, {a} or {b}?",
            "Is {n} {v} years old?",
        ),
        _field(
            "t",
            "town",
            Words.city,
            "{n} is from {v}.",
            "Where does {n} come from?|Which town is home to {n}?|In which place does {n} live?",
            "Who is from {v}?|Which candidate lives in {v}?",
            check="Is {n} from {v}?",
        ),
    ),
    _list(
        "Classes at the gym|Courses this week|Timetable",
        "class",
        _proper(_of("yoga", "boxing", "spinning", "pilates", "zumba", "karate", "stretching", "rowing", invented=0.2)),
        "{n} with {t} is on {d} at {s}.|{n}: {d} {s}, trainer {t}|On {d} at {s} {t} gives {n}.|{d}, {s}: {n} ({t})",
        "There are {q} classes.|How many classes are there?|How many courses can I take?",
        "What does {n} cost?|In which hall is {n}?|How many people come to {n}?",
        _field(
            "t",
            "trainer",
            Words.name,
            "{n} is given by {v}.",
            "Who shows us how to do {n}?|Who leads {n}?|With whom do I train if I come to {n}?",
            "What does {v} teach?|Which class is {v}'s?",
            check="Is {v} the trainer for {n}?",
        ),
        _field(
            "d",
            "day",
            _day,
            "{n} is on {v}.",
            "Which day of the week is {n}?|On what day do I pack my bag for {n}?|When in the week is {n}?",
            "Which class is on {v}?|What can I do on {v}?",
            check="Is {n} on {v}?",
        ),
        _field(
            "s",
            "start",
            _clock(7, 20),
            "{n} starts at {v}.",
            "At what time does {n} begin?|By what time must I be in the hall for {n}?|what time is {n}",
            "Which class begins at {v}?|What starts at {v}?",
            check="Does {n} begin at {v}?",
        ),
    ),
    _list(
        "Lost and found|What people left on the bus|Found things",
        "thing",
        _of("scarf", "glove", "wallet", "cap", "phone case", "ring", "cane", "violin", "sock", "helmet", invented=0.2),
        "The {n} was found {w} by {f} and is now in box {b}.|{n}: found {w}, by {f}, box {b}|"
        "{f} found the {n} {w}; look in box {b}.|In box {b}: the {n} that {f} picked up {w}.",
        "There are {q} things.|How many things were found?|How many lost things are there?",
        "Whose is the {n}?|What is the {n} worth?|When was the {n} found?",
        _field(
            "w",
            "where",
            _of(
                "under a seat",
                "at the stop",
                "in the toilet",
                "on the stairs",
                "by the door",
                "on the roof",
                invented=0,
            ),
            "The {n} was found {v}.",
            "Where had somebody lost the {n}?|Where did the {n} lie?|In what place did they see the {n}?",
            "What was found {v}?|What did somebody lose {v}?",
            check="Was the {n} found {v}?",
        ),
        _field(
            "f",
            "found by",
            Words.name,
            "The {n} was found by {v}.",
            "Who picked up the {n}?|Whom do I thank for the {n}?|Who brought the {n} here?",
            "What did {v} find?|What was picked up by {v}?",
            check="Did {v} find the {n}?",
        ),
        _field(
            "b",
            "box",
            _number(1, 30),
            "The {n} is in box {v}.",
            "Where is the {n} kept now?|Which box do I open for the {n}?|I have lost a {n}. Where can I look?",
            "What is in box {v}?|What do I find if I open box {v}?",
            check="Is the {n} in box {v}?",
        ),
    ),
    _list(
        "Staff|Our people|Team overview",
        "name",
        Words.full_name,
        "{n} joined us in {y}, works in {d} and reports to {b}.|{n} - {d} - since {y} - boss: {b}|"
        "Since {y} {n} has been in {d}, under {b}.|{b} is the boss of {n}, who came to {d} in {y}.",
        "There are {q} people.|How many people are on the list?|How many of us are there?|headcount?",
        "What does {n} earn?|What is the mail address of {n}?|When does {n} have holidays?",
        _field(
            "y",
            "since",
            _number(1981, 2023),
            "{n} has been here since {v}.",
            "When did {n} start here?|In which year was {n} hired?|What was {n}'s first year with us?",
            "Who came in {v}?|Who was hired in {v}?",
            "{n} is the newest.|{n} came later than {m}.|Who is the newest among us?|Who has been here for the "
            "shortest "
            "time?|Who came later, {a} or {b}?",
            "{n} has been here longest.|{n} came earlier than {m}.|Who has been here longest?|Who is the old hand?|"
            "Who has been here longer, {a} or {b}?",
            "Was {n} hired in {v}?",
        ),
        _field(
            "d",
            "department",
            _of("sales", "support", "design", "purchasing", "logistics", "legal", "research", "training", invented=0.1),
            "{n} works in {v}.",
            "What is {n}'s department?|Where in the firm do I find {n}?|In which part of the firm is {n}?",
            "Who works in {v}?|Which of them is in {v}?",
            check="Does {n} work in {v}?",
        ),
        _field(
            "b",
            "boss",
            Words.name,
            "{n} reports to {v}.",
            "Who tells {n} what to do?|Whom does {n} ask for a day off?|Who is above {n}?",
            "Who works for {v}?|Who must obey {v}?|Whose boss is {v}?",
            check="Does {n} report to {v}?|Is {v} the boss of {n}?",
        ),
    ),
    _list(
        "Menu|Drinks|Prices at the bar",
        "drink",
        _of("cocoa", "lemonade", "cider", "espresso", "milkshake", "punch", "iced tea", "smoothie", invented=0.2),
        "A small {n} is {s} euros, a large one {l} euros; it has {k} calories.|{n}: small {s}, large {l}, {k} kcal|"
        "{n} - {l} euros (large) - {s} euros (small) - {k} kcal|For a large {n} we take {l} euros, for a small one "
        "{s}; "
        "count {k} calories.",
        "There are {q} drinks.|How many drinks are there?|How many things can I order?",
        "How much sugar is in the {n}?|How long do I wait for the {n}?|Is the {n} served with ice?",
        _field(
            "s",
            "small",
            _number(2, 6),
            "A small {n} costs {v} euros.",
            "I am not very thirsty. What is the {n}?|What do I pay for the little glass of {n}?|How much is {n} at its "
            "smaller size?",
            check="Is a small {n} {v} euros?",
        ),
        _field(
            "l",
            "large",
            _number(7, 15),
            "A large {n} costs {v} euros.",
            "I am very thirsty. What is the {n}?|What do I pay for the big glass of {n}?|How much is {n} at its bigger "
            "size?",
            "Of which drink does a large one cost {v} euros?",
            "A large {n} is the most expensive.|A large {n} costs more than a large {m}.|"
            "Of the large ones, which drink is the dearest?|Which costs more when large, {a} or {b}?",
            "A large {n} is the cheapest.|A large {n} costs less than a large {m}.|"
            "Of the large ones, which drink is the cheapest?|Which costs less when large, {a} or {b}?",
        ),
        _field(
            "k",
            "kcal",
            _number(20, 600),
            "The {n} has {v} calories.",
            "How many calories do I drink with the {n}?|How bad is the {n} for my waist, in calories?|"
            "What energy is in the {n}?",
            "Which drink has {v} calories?",
            "The {n} has the most calories.|The {n} has more calories than the {m}.|Which drink makes fat most?|"
            "Which has more calories, the {a} or the {b}?",
            "The {n} has the fewest calories.|The {n} has fewer calories than the {m}.|I am on a diet. Which drink is "
            "best?|Which has fewer calories, the {a} or the {b}?",
        ),
    ),
    _list(
        "Songs|Playlist|Tracks of the record",
        "song",
        Words.title,
        'Track {t} is "{n}", sung by {s}, and lasts {d} seconds.|{t}. {n} - {s} - {d} s|'
        '{s} sings "{n}" (track {t}, {d} seconds).|With {d} seconds, "{n}" by {s} is track {t}.',
        "There are {q} songs.|How many songs are these?|How many tracks can I hear?",
        'Who wrote "{n}"?|In which year was "{n}" recorded?|How often was "{n}" sold?',
        _field(
            "t",
            "track",
            _number(1, 20),
            '"{n}" is track {v}.',
            'Which number do I press for "{n}"?|At which place on the record is "{n}"?|What number has "{n}"?',
            "What is track {v}?|Which song do I hear if I press {v}?",
            '"{n}" comes last.|"{n}" comes after "{m}".|Which of these songs comes last on the record?|'
            'What comes later, "{a}" or "{b}"?',
            '"{n}" comes first.|"{n}" comes before "{m}".|Which of these songs comes first on the record?|'
            'What do I hear first, "{a}" or "{b}"?',
        ),
        _field(
            "s",
            "singer",
            Words.full_name,
            '"{n}" is sung by {v}.',
            'Whose voice is in "{n}"?|Who sings "{n}"?|Which singer do I hear in "{n}"?',
            "What does {v} sing?|Which song has the voice of {v}?",
            check='Does {v} sing "{n}"?',
        ),
        _field(
            "d",
            "seconds",
            _number(95, 590),
            '"{n}" lasts {v} seconds.',
            'How long is "{n}"?|After how many seconds is "{n}" over?|For how many seconds can I dance to "{n}"?',
            "Which song lasts {v} seconds?",
            '"{n}" is the longest song.|"{n}" is longer than "{m}".|Which song is the longest?|'
            'Which is longer, "{a}" or "{b}"?',
            '"{n}" is the shortest song.|"{n}" is shorter than "{m}".|Which song is over soonest?|'
            'Which is shorter, "{a}" or "{b}"?',
        ),
    ),
    _list(
        "Garden beds|What grows where|Plan of the vegetable garden",
        "bed",
        _number(1, 30),
        "Bed {n} has {k}, sown in {m}, and gets {w} litres of water.|Bed {n}: {k}, {m}, {w} litres|"
        "In {m} we sowed {k} in bed {n}; it needs {w} litres.|{w} litres go to bed {n}, where the {k} from {m} are.",
        "There are {q} beds.|How many beds are there?|How many beds do we have to water?",
        "Who dug bed {n}?|How long is bed {n}?|How much did bed {n} yield last year?",
        _field(
            "k",
            "plants",
            _of("beans", "leeks", "peas", "carrots", "onions", "tomatoes", "pumpkins", "radishes", "beets", "herbs"),
            "Bed {n} has {v}.",
            "What grows in bed {n}?|What will we harvest from bed {n}?|What did somebody sow in bed {n}?",
            "Where are the {v}?|In which bed do I look for {v}?|Which bed has the {v}?",
            check="Are the {v} in bed {n}?",
        ),
        _field(
            "m",
            "sown in",
            _month,
            "Bed {n} was sown in {v}.",
            "When did the seeds go into bed {n}?|In which month was bed {n} begun?|Since when has something grown "
            "in bed "
            "{n}?",
            "Which bed was sown in {v}?",
            check="Was bed {n} sown in {v}?",
        ),
        _field(
            "w",
            "litres",
            _number(2, 50),
            "Bed {n} gets {v} litres.",
            "How much do I pour on bed {n}?|How thirsty is bed {n}?|How many litres do I carry to bed {n}?",
            "Which bed gets {v} litres?",
            "Bed {n} gets the most water.|Bed {n} gets more water than bed {m}.|Which bed is the thirstiest?|"
            "Which gets more water, bed {a} or bed {b}?",
            "Bed {n} gets the least water.|Bed {n} gets less water than bed {m}.|Which bed needs the least water?|"
            "Which gets less water, bed {a} or bed {b}?",
        ),
    ),
    _list(
        "Islands|Islands in the bay|Where the ferry goes",
        "island",
        _title,
        "{n} has {p} inhabitants; the ferry needs {m} minutes, and the mayor is {o}.|{n}: {p} people, ferry {m} min, "
        "mayor {o}|After {m} minutes the ferry is at {n}, where {p} people live under mayor {o}.",
        "There are {q} islands.|How many islands are there?|How many islands are described?",
        "What does the ferry to {n} cost?|How many hotels are on {n}?|What language do they speak on {n}?",
        _field(
            "p",
            "people",
            _number(150, 9000),
            "{n} has {v} inhabitants.",
            "How many people live on {n}?|How big is the population of {n}?|To how many people is {n} home?",
            "Which island has {v} inhabitants?|Where do {v} people live?",
            "{n} has the most inhabitants.|{n} has more inhabitants than {m}.|Which island is the fullest?|"
            "Where do more people live, on {a} or on {b}?",
            "{n} has the fewest inhabitants.|{n} has fewer inhabitants than {m}.|Which island is the loneliest?|"
            "Where do fewer people live, on {a} or on {b}?",
        ),
        _field(
            "m",
            "ferry (minutes)",
            _number(5, 120),
            "The ferry to {n} needs {v} minutes.",
            "How long am I at sea if I go to {n}?|How far is {n}, in minutes on the ferry?|How long is the crossing "
            "to {n}?",
            "Which island is {v} minutes away?",
            "The ferry to {n} takes the longest.|The ferry to {n} takes longer than the one to {m}.|"
            "Which island is the farthest away?|Which is farther, {a} or {b}?",
            "The ferry to {n} takes the least time.|The ferry to {n} takes less time than the one to {m}.|"
            "Which island is the nearest?|I get seasick quickly. Which island is best?|Which is nearer, {a} or {b}?",
        ),
        _field(
            "o",
            "mayor",
            Words.name,
            "The mayor of {n} is {v}.",
            "Who governs {n}?|Whom do I ask if I want to marry on {n}?|Who is the most powerful person on {n}?",
            "Where is {v} the mayor?|Which island does {v} govern?",
            check="Is {v} the mayor of {n}?",
        ),
    ),
    _list(
        "Trails|Walks around the lake|Hiking map",
        "trail",
        _title,
        "The {n} trail is {k} km long, takes {h} hours and starts at the {s}.|{n}: {k} km, {h} h, from the {s}|"
        "From the {s} you walk the {n} trail in {h} hours ({k} km).|{k} km in {h} hours: {n} trail, start at the {s}.",
        "There are {q} trails.|How many trails are there?|Between how many walks can I choose?",
        "How steep is the {n} trail?|Where can I eat on the {n} trail?|Are dogs allowed on the {n} trail?",
        _field(
            "k",
            "km",
            _number(11, 40),
            "The {n} trail is {v} km long.",
            "How far do I walk on the {n} trail?|What is the length of the {n} trail?|How many km are in my legs "
            "after the "
            "{n} trail?",
            "Which trail has {v} km?|Which walk is {v} km?",
            "The {n} trail is the longest.|The {n} trail is longer than the {m} trail.|Which trail is the longest?|"
            "Where do I walk farthest?|Which is longer, {a} or {b}?",
            "The {n} trail is the shortest.|The {n} trail is shorter than the {m} trail.|Which trail is the shortest?|"
            "My grandmother cannot walk far. Which trail?|Which is shorter, {a} or {b}?",
        ),
        _field(
            "h",
            "hours",
            _number(2, 10),
            "The {n} trail takes {v} hours.",
            "How much time do I need for the {n} trail?|How long am I on my feet on the {n} trail?|If I do the {n} "
            "trail, "
            "after how many hours am I done?",
            "For which trail do I need {v} hours?",
            "The {n} trail takes the most time.|The {n} trail takes more time than the {m} trail.|"
            "Which trail keeps me busy the longest?|For which do I need more time, {a} or {b}?",
            "The {n} trail takes the least time.|The {n} trail takes less time than the {m} trail.|"
            "On which trail am I back soonest?|For which do I need less time, {a} or {b}?",
        ),
        _field(
            "s",
            "start",
            _of("mill", "bridge", "chapel", "church", "station", "dam", "tower", "pond", "inn", "gate", "ruin"),
            "The {n} trail starts at the {v}.",
            "Where do we meet for the {n} trail?|Where is the first step of the {n} trail?|From where does one walk "
            "the {n} "
            "trail?",
            "Which trail begins at the {v}?|I stand at the {v}. Which trail begins here?",
            check="Does the {n} trail start at the {v}?",
        ),
    ),
    _list(
        "Endpoints|Our API|Routes",
        "path",
        lambda w: f"/{w.rng.choice(('users', 'orders', 'login', 'search', 'files', 'pay', 'jobs', made_up(w.rng)))}",
        "{n} allows {r} requests a minute, times out after {t} seconds and is owned by {o}.|"
        "{n}: limit {r}/min, timeout {t}s, owner {o}|Owner of {n}: {o}. Limit: {r} per minute. Timeout: {t} seconds.|"
        "{o} looks after {n} (timeout {t} seconds, up to {r} calls a minute).",
        "There are {q} endpoints.|How many endpoints are there?|How many routes does the API have?",
        "Which method does {n} use?|What does {n} return?|Since which version is there {n}?",
        _field(
            "r",
            "limit per minute",
            _number(61, 900),
            "{n} allows {v} requests a minute.",
            "How often may I call {n}?|How many calls a minute does {n} take?|What is the rate limit of {n}?",
            "Which endpoint takes {v} requests a minute?|Where may I send {v} requests a minute?",
            "{n} allows the most requests.|{n} allows more requests than {m}.|Which endpoint can I call most often?|"
            "Which may I call more often, {a} or {b}?",
            "{n} allows the fewest requests.|{n} allows fewer requests than {m}.|Which endpoint is the strictest?|"
            "Which may I call less often, {a} or {b}?",
        ),
        _field(
            "t",
            "timeout (s)",
            _number(2, 60),
            "{n} times out after {v} seconds.",
            "After how many seconds does {n} give up?|How long does {n} wait?|How patient is {n}, in seconds?",
            "Which endpoint gives up after {v} seconds?",
            "{n} waits the longest.|{n} waits longer than {m}.|Which endpoint is the most patient?|"
            "Which waits longer, {a} or {b}?",
            "{n} gives up first.|{n} gives up sooner than {m}.|Which endpoint gives up first?|"
            "Which gives up sooner, {a} or {b}?",
        ),
        _field(
            "o",
            "owner",
            Words.name,
            "{n} is owned by {v}.",
            "Who is to blame if {n} fails?|Who wants to hear of bugs in {n}?|Whose is {n}?",
            "Which endpoint is {v}'s?|What does {v} own?",
            check="Is {n} owned by {v}?|Do I tell {v} about bugs in {n}?",
        ),
    ),
    _list(
        "Zoo: our animals|Animals and keepers|In the zoo",
        "animal",
        Words.name,
        "{n} the {s} weighs {w} kilos; the keeper is {k}.|{n} ({s}): {w} kg, keeper {k}|{k} looks after {n}, a {s} "
        "of {w} "
        "kilos.|Our {s} is called {n}, has {w} kilos and is fed by {k}.",
        "There are {q} animals.|How many animals are listed?|How many creatures does the zoo tell of?",
        "When was {n} born?|What does {n} eat?|Where was {n} caught?",
        _field(
            "s",
            "kind",
            _of(
                "tiger", "zebra", "panda", "camel", "otter", "monkey", "moose", "wolf", "llama", "walrus", invented=0.2
            ),
            "{n} is the {v}.",
            "What kind of animal is {n}?|What creature do they call {n}?|What is {n}?",
            "What is the {v} called?|What is the name of the {v}?|Which animal is the {v}?",
            check="Is {n} the {v}?",
        ),
        _field(
            "w",
            "kilos",
            _number(8, 900),
            "{n} weighs {v} kilos.",
            "How heavy is {n}?|How many kilos does {n} bring to the scales?|What is the weight of {n}?",
            "Which animal has {v} kilos?|Who weighs {v} kilos?",
            "{n} is the heaviest.|{n} is heavier than {m}.|Which animal is the heaviest?|Who is heavier, {a} or {b}?",
            "{n} is the lightest.|{n} is lighter than {m}.|Which animal is the lightest?|Who is lighter, {a} or {b}?",
        ),
        _field(
            "k",
            "keeper",
            Words.name,
            "The keeper of {n} is {v}.",
            "Who looks after {n}?|Whom does {n} know best?|Who cleans the cage of {n}?",
            "Which animal does {v} look after?|Whose cage does {v} clean?",
            check="Does {v} look after {n}?|Is {v} the keeper of {n}?",
        ),
    ),
    _list(
        "Planets of the story|Worlds in the game|Star map",
        "planet",
        _title,
        "{n} has {m} moons, needs {d} days for its year and is the home of {w}.|{n}: {m} moons, year of {d} days, "
        "ruler {w}|"
        "{w} rules on {n}, with its {m} moons and a year of {d} days.|A year on {n} has {d} days; {m} moons shine "
        "on {w}, "
        "who rules there.",
        "There are {q} planets.|How many planets are there?|How many worlds does it tell of?",
        "How cold is it on {n}?|Is there water on {n}?|How far is {n} from its sun?",
        _field(
            "m",
            "moons",
            _number(2, 40),
            "{n} has {v} moons.",
            "What number of moons can one see from {n}?|How many moons go round {n}?|How many lights are in the "
            "night of "
            "{n}, counting moons?",
            "Which planet has {v} moons?",
            "{n} has the most moons.|{n} has more moons than {m}.|Which planet has the most moons?|"
            "Which has more moons, {a} or {b}?",
            "{n} has the fewest moons.|{n} has fewer moons than {m}.|Which planet has the fewest moons?|"
            "Which has fewer moons, {a} or {b}?",
        ),
        _field(
            "d",
            "days a year",
            _number(41, 900),
            "A year on {n} has {v} days.",
            "How long is a year on {n}?|After how many days do they have a birthday again on {n}?|In how many days "
            "does {n} "
            "go round its sun?",
            "Where does a year have {v} days?",
            "A year is longest on {n}.|A year is longer on {n} than on {m}.|Where does one wait longest for a "
            "birthday?|"
            "Where is a year longer, on {a} or on {b}?",
            "A year is shortest on {n}.|A year is shorter on {n} than on {m}.|Where is the year over soonest?|"
            "Where is a year shorter, on {a} or on {b}?",
        ),
        _field(
            "w",
            "ruler",
            Words.name,
            "{v} rules on {n}.",
            "Who wears the crown of {n}?|Who is in power on {n}?|Whom must one obey on {n}?",
            "Where does {v} rule?|Which planet obeys {v}?",
            check="Does {v} rule on {n}?",
        ),
    ),
    _list(
        "Old things in the museum|Finds|What is in the glass cases",
        "object",
        _of("mask", "coin", "sword", "vase", "comb", "crown", "flute", "dagger", "bowl", "anchor", invented=0.2),
        "The {n} is from {y}, was dug up in {c} and lies in case {k}.|{n}: made {y}, found in {c}, case {k}|"
        "In case {k} you see the {n} of {y}, from {c}.|Somebody in {c} dug up the {n}; it was made in {y}. Case {k}.",
        "There are {q} objects.|How many objects are shown?|How many old things are listed?",
        "Who made the {n}?|What is the {n} made of?|What did the museum pay for the {n}?",
        _field(
            "y",
            "made in",
            _number(210, 1790),
            "The {n} is from {v}.",
            "When did somebody make the {n}?|From which year is the {n}?|How old is the {n}, I mean from which year?",
            "What was made in {v}?|Which object is from {v}?",
            "The {n} is the newest.|The {n} is newer than the {m}.|Which object is the newest?|"
            "Which was made later, the {a} or the {b}?",
            "The {n} is the oldest.|The {n} is older than the {m}.|Which object is the oldest?|"
            "Which was made earlier, the {a} or the {b}?",
        ),
        _field(
            "c",
            "found in",
            Words.city,
            "The {n} was found in {v}.",
            "Where did the {n} come out of the earth?|Where was the {n} lying all the time?|In which place did they "
            "dig up "
            "the {n}?",
            "What was dug up in {v}?|Which object is from the earth of {v}?",
            check="Was the {n} found in {v}?",
        ),
        _field(
            "k",
            "case",
            _number(1, 60),
            "The {n} is in case {v}.",
            "Where in the museum do I see the {n}?|Behind which glass is the {n}?|At which case do I stop for the {n}?",
            "What lies in case {v}?|What do I see in case {v}?",
            check="Is the {n} in case {v}?",
        ),
    ),
)


def _flat(kind: Listed) -> Noted:
    """A row of a list as a note of its own."""
    asks = [
        (question.replace("{v}", f"{{{field.letter}}}"), field.answer.replace("{v}", f"{{{field.letter}}}"), letter)
        for field in kind.fields
        for questions, letter in ((field.asks, field.letter), (field.back, "n"))
        for question in questions
    ]
    return Noted({"n": kind.entity, **{field.letter: field.draw for field in kind.fields}}, kind.told, tuple(asks))


FURTHER_NOTES: tuple[Noted, ...] = tuple(map(_flat, LISTS))


@dataclass(frozen=True)
class Row:
    """A name, and its values by letter."""

    name: str
    values: Mapping[str, str]


def _size(value: str) -> float:
    """By what values are compared: days and months by their place, times by their minutes."""
    for ordered in (DAYS, MONTHS):
        if value in ordered:
            return ordered.index(value)
    if timed := re.fullmatch(r"(\d+):(\d\d)", value):
        return int(timed[1]) * 60 + int(timed[2])
    return float(value)


def _rows(words: Words, kind: Listed, count: int) -> list[Row]:
    """Rows whose names differ, and whose values differ where they can."""
    taken: dict[str, None] = {}

    def fresh(draw: Draw, must: bool) -> str:
        for _ in range(30):
            value = draw(words)
            if value not in taken:
                break
            if not must and words.rng.random() < 0.2:
                break
        taken[value] = None
        return value

    rows: list[Row] = []
    for _ in range(count):
        name = fresh(kind.entity, must=True)
        if name not in [row.name for row in rows]:
            rows.append(Row(name, {field.letter: fresh(field.draw, must=False) for field in kind.fields}))
    return rows


def _near(rng: random.Random, name: str) -> str:
    """A name much like another."""
    if name[-1:].isdigit():
        return name[:-1] + str((int(name[-1]) + rng.choice((1, 2, 5))) % 10)
    if not name[-1:].isalpha():
        return name
    return rng.choice((name + rng.choice(("a", "o", "er", "s", "i")), name[:-1] + rng.choice("aeiourst")))


# What stands where a value is not known.
UNKNOWN = "?"
_CORRECTED = (
    "\nCorrection: ",
    "\nUpdate: ",
    " Sorry, that was wrong: ",
    " This has changed: ",
    "\nNew: ",
    "\nNo, wait. ",
)
_CHATTERS = ("me", "you", "A", "B", "boss", "mum", "team lead")
_FILLERS = (
    "That is all.",
    "Nothing else has changed.",
    "Please keep this.",
    "The rest stays as it was.",
    "Ask me if anything is unclear.",
    "More will follow.",
)


def _table(rng: random.Random, kind: Listed, fields: Sequence[Field], rows: Sequence[Row]) -> str:
    """Rows under the names of their columns, or each value behind its name."""
    columns = [kind.column, *(field.label for field in fields)]
    cells = [[row.name, *(row.values[field.letter] for field in fields)] for row in rows]
    form = rng.choice(("pipes", "pipes", "markdown", "tabs", "commas", "blocks", "blocks", "dots", "turned"))
    if form == "pipes":
        return "\n".join(" | ".join(line) for line in (columns, *cells))
    if form == "markdown":
        ruled = (columns, ["---"] * len(columns), *cells)
        return "\n".join(f"| {' | '.join(line)} |" for line in ruled)
    if form == "tabs":
        return "\n".join("\t".join(line) for line in (columns, *cells))
    if form == "commas":
        glue = rng.choice((", ", ","))
        return "\n".join(glue.join(line) for line in (columns, *cells))
    if form == "turned":
        turned = zip(columns, zip(*cells, strict=True), strict=True)
        return "\n".join(f"{name}: {' | '.join(line)}" for name, line in turned)
    pairs = [[f"{name}: {value}" for name, value in zip(columns, line, strict=True)] for line in cells]
    if form == "blocks":
        return "\n\n".join("\n".join(lines) for lines in pairs)
    return "\n".join("; ".join(lines) for lines in pairs)


def _prose(words: Words, kind: Listed, rows: Sequence[Row], fields: Sequence[Field], whole: bool) -> str:
    """Rows as sentences, lines or messages."""
    rng = words.rng
    told: list[str] = []
    pattern = rng.choice(kind.told)
    same = rng.random() < 0.4
    for row in rows:
        if not whole:
            told.append(" ".join(tidy(field.answer.format(n=row.name, v=row.values[field.letter])) for field in fields))
            continue
        shown = {"n": row.name, **row.values}
        capitals = {letter.upper(): capitalised(value) for letter, value in shown.items()}
        told.append(tidy((pattern if same else rng.choice(kind.told)).format(**shown, **capitals)))
    form = rng.choice(("prose", "prose", "prose", "lines", "bullets", "numbers", "chat", "stars"))
    if form == "prose":
        closed = [line if line[-1] in ".!?" else f"{line}." for line in told]
        if rng.random() < 0.25:
            closed.insert(rng.randrange(len(closed) + 1), rng.choice(_FILLERS))
        return " ".join(closed)
    if form == "chat":
        first, second = rng.sample(_CHATTERS, 2)
        return "\n".join(f"{(first, second)[place % 2]}: {line}" for place, line in enumerate(told))
    mark = {"lines": "", "bullets": "- ", "stars": "* "}
    return "\n".join(f"{mark.get(form, f'{place}. ')}{line}" for place, line in enumerate(told, 1))


def _inside(pattern: str) -> str:
    """The pattern of a sentence as it stands behind other words; values keep their letters."""
    return pattern[:1].lower() + pattern[1:]


def agreed(pattern: str, yes: bool) -> str:
    """The pattern of an answer with a yes or no before it."""
    return f"{'Yes' if yes else 'No'}, {_inside(pattern)}"


_CLAIMS = (
    "Is it true that {c}?",
    "Is it correct that {c}?",
    "Am I right that {c}?",
    "I think that {c}. Is that so?",
    "Somebody told me that {c}. Is that right?",
    "Do the notes say that {c}?",
    "{s}, right?",
    "{s}. Correct?",
)


def claimed(rng: random.Random, pattern: str) -> str:
    """A pattern that asks whether the sentence of another one is true."""
    bare = pattern.rstrip(".")
    return rng.choice(_CLAIMS).replace("{c}", _inside(bare)).replace("{s}", bare)


def once(asked: Sequence[Asked]) -> list[Asked]:
    """Questions and answers without those that were asked before."""
    return list({question: (question, answer, value) for question, answer, value in asked}.values())


def listed_down(words: Words, absent: str) -> tuple[str, list[Asked]]:
    """A list, and questions about it, about a third of which it does not answer."""
    rng = words.rng
    kind = rng.choice(LISTS)
    rows = _rows(words, kind, rng.choice((2, 2, 3, 3, 3, 4, 5)) + 2)
    rows, strangers = rows[:-2], rows[-2:]
    fields = list(kind.fields)
    left_out: list[Field] = []
    if rng.random() < 0.4:
        if rng.random() < 0.5:
            left_out = [fields.pop(rng.randrange(len(fields)))]
        tabled = rng.random() < 0.8
        if tabled and rng.random() < 0.12:
            # Somebody did not know a value.
            place, field = rng.randrange(len(rows)), rng.choice(fields)
            rows[place] = Row(rows[place].name, {**rows[place].values, field.letter: UNKNOWN})
        text = _table(rng, kind, fields, rows) if tabled else _prose(words, kind, rows, fields, whole=False)
    else:
        text = _prose(words, kind, rows, fields, whole=True)
        if rng.random() < 0.1:
            # What is corrected no longer counts.
            place, field = rng.randrange(len(rows)), rng.choice(fields)
            value = field.draw(words)
            if value not in [row.values[field.letter] for row in rows]:
                rows[place] = Row(rows[place].name, {**rows[place].values, field.letter: value})
                text += rng.choice(_CORRECTED) + tidy(field.answer.format(n=rows[place].name, v=value))
    if rng.random() < 0.5:
        text = f"{rng.choice(kind.heads)}{rng.choice((':', '', ''))}\n{text}"
    asked: list[Asked] = []
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        if rng.random() < 0.3:
            asked.append((_unanswered(rng, kind, fields, left_out, rows, strangers), absent, absent))
        else:
            asked.append(_answered(rng, kind, fields, rows, absent))
    return text, once(asked)


def _unanswered(
    rng: random.Random,
    kind: Listed,
    fields: Sequence[Field],
    left_out: Sequence[Field],
    rows: Sequence[Row],
    strangers: Sequence[Row],
) -> str:
    """What the list does not answer: of another row, another value or another matter."""
    row, field = rng.choice(rows), rng.choice(fields)
    stranger = rng.choice(strangers)
    name = stranger.name
    if rng.random() < 0.3:
        near = _near(rng, row.name)
        name = name if is_held_out(near) or near in [other.name for other in rows] else near
    way = rng.random()
    if left_out and way < 0.4:
        field = rng.choice(left_out)
        return tidy(rng.choice(field.asks).format(n=row.name))
    if way < 0.55:
        return tidy(rng.choice(kind.never).format(n=row.name))
    value = stranger.values[field.letter]
    if way < 0.7 and field.back and value not in [other.values[field.letter] for other in rows]:
        return tidy(rng.choice(field.back).format(v=value))
    known = value if row.values[field.letter] == UNKNOWN else row.values[field.letter]
    pairs = [question for question in (*field.high[2:], *field.low[2:]) if "{a}" in question]
    if way < 0.75 and pairs:
        first, second = rng.sample((row.name, name), 2)
        return rng.choice(pairs).format(a=first, b=second)
    if way < 0.82 and field.check:
        return tidy(rng.choice(field.check).format(n=name, v=rng.choice((value, known))))
    if way < 0.86:
        return tidy(claimed(rng, field.answer).format(n=name, v=rng.choice((value, known))))
    return tidy(rng.choice(field.asks).format(n=name))


def _answered(rng: random.Random, kind: Listed, fields: Sequence[Field], rows: Sequence[Row], absent: str) -> Asked:
    """A question that the list answers."""
    row, field = rng.choice(rows), rng.choice(fields)
    value = row.values[field.letter]
    if value == UNKNOWN:
        return tidy(rng.choice(field.asks).format(n=row.name)), absent, absent
    answer = tidy(field.answer.format(n=row.name, v=value))
    every = [other.values[field.letter] for other in rows]
    ways = ["ask"] * 5
    ways += ["back"] * 4 * (bool(field.back) and every.count(value) == 1)
    ways += ["check"] * 3 * bool(field.check)
    ways += ["claim"]
    sizes = [_size(other) for other in every] if field.high and UNKNOWN not in every else []
    ways += ["compare"] * 5 * (len(set(sizes)) == len(rows) > 1)
    way = rng.choice(ways) if rng.random() > 0.06 else "count"
    if way == "count":
        count = str(len(rows))
        return rng.choice(kind.counts[1:]), kind.counts[0].format(q=count), count
    if way == "back":
        return tidy(rng.choice(field.back).format(v=value)), answer, row.name
    if way in ("check", "claim"):
        others = [other for other in every if other not in (value, UNKNOWN)]
        said = rng.choice(others) if others and rng.random() < 0.5 else value
        pattern = rng.choice(field.check) if way == "check" else claimed(rng, field.answer)
        question = tidy(pattern.format(n=row.name, v=said))
        reply = tidy(agreed(field.answer, said == value).format(n=row.name, v=value))
        return question, reply, "Yes" if said == value else "No"
    if way == "compare":
        over, pair, *questions = rng.choice((field.high, field.low))
        question = rng.choice(questions)
        first, second = rng.sample(rows, 2)
        chosen = (first, second) if "{a}" in question else rows
        best = (max if over == field.high[0] else min)(chosen, key=lambda one: _size(one.values[field.letter]))
        if "{a}" not in question:
            return question, over.format(n=best.name), best.name
        other = second if best is first else first
        return question.format(a=first.name, b=second.name), pair.format(n=best.name, m=other.name), best.name
    return tidy(rng.choice(field.asks).format(n=row.name)), answer, value
