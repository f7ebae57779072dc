"""Further kinds of records as people write them down, most with values that only the words around tell apart."""

from __future__ import annotations

from collections.abc import Callable

from words import DAYS, MONTHS, Words, made_up

from skills.extraction_kinds import Kind, Slot


def _coined(words: Words) -> str:
    return made_up(words.rng).capitalize()


def _whole(low: int, high: int) -> Callable[[Words], int]:
    """A whole number between two bounds."""
    return lambda words: words.number(low, high)


def _cents(low: int, high: int) -> Callable[[Words], float]:
    """A price with cents, none of which ends in a zero."""
    return lambda words: round(words.number(low, high) + words.number(0, 9) / 10 + words.number(1, 9) / 100, 2)


def _tenths(low: int, high: int) -> Callable[[Words], float]:
    """A number with one digit behind the point, which is no zero."""
    return lambda words: round(words.number(low, high) + words.number(1, 9) / 10, 1)


def _price(words: Words) -> float | int:
    return words.number(2, 990) if words.rng.random() < 0.4 else _cents(1, 190)(words)


def _clock(words: Words) -> str:
    hour, minute = words.number(0, 23), words.number(0, 59) if words.rng.random() < 0.4 else 5 * words.number(0, 11)
    return words.rng.choice((f"{hour}:{minute:02d}", f"{hour}:{minute:02d}", f"{hour:02d}:{minute:02d}"))


def _date(words: Words) -> str:
    day, month = words.number(1, 28), words.rng.choice(MONTHS)
    return words.rng.choice((f"{day} {month}", f"{day} {month}", f"{month} {day}", f"{day} {month} 2025"))


def _iso(words: Words) -> str:
    return f"{words.number(2023, 2027)}-{words.number(1, 12):02d}-{words.number(1, 28):02d}"


def _day(words: Words) -> str:
    return words.rng.choice((words.rng.choice(DAYS), _date(words), _iso(words)))


def _street(words: Words) -> str:
    rng, number = words.rng, f"{words.number(1, 240)}{words.rng.choice(('', '', '', 'a', 'b'))}"
    named = rng.choice((_coined(words), _coined(words), "Mill", "Station", "Church", "Garden", "King", "Long"))
    kind = rng.choice(("Street", "Road", "Lane", "Avenue", "Square", "Hill"))
    return rng.choice(
        (
            f"{number} {named} {kind}",
            f"{named} {kind} {number}",
            f"{_coined(words)}weg {number}",
            f"Rue {named} {number}",
        )
    )


def _company(words: Words) -> str:
    rng, coined = words.rng, _coined(words)
    ending = rng.choice(
        ("Ltd", "GmbH", "Foods", "Software", "Energy", "Motors", "Group", "Bank", "and Sons", "Logistics")
    )
    return rng.choice(
        (
            f"{coined} {ending}",
            f"{coined} {_coined(words)} {ending}",
            f"{coined} and {_coined(words)}",
            f"{rng.choice(('Blue', 'Northern', 'City', 'First'))} {coined} {ending}",
        )
    )


def _product(words: Words) -> str:
    rng, coined = words.rng, made_up(words.rng)
    thing = rng.choice(
        ("kettle", "desk lamp", "backpack", "office chair", "drill", "keyboard", "tent", "coffee machine")
    )
    return rng.choice(
        (
            f"{words.colour()} {thing}",
            f"{coined} {thing}",
            f"{coined.capitalize()} {thing}",
            f"{words.colour()} {coined}",
            f"{rng.choice(('small', 'wireless', 'wooden', 'folding', 'large'))} {coined} {thing}",
            f"{coined.capitalize()} {thing} {words.number(2, 900)}",
        )
    )


def _post(words: Words) -> str:
    """The title of a job."""
    rng, coined = words.rng, made_up(words.rng)
    rank = rng.choice(("senior", "junior", "deputy", "assistant", "chief", "lead", "regional"))
    role = rng.choice(("manager", "engineer", "designer", "analyst", "buyer", "accountant", "technician", words.job()))
    return rng.choice((f"{rank} {role}", f"{rank} {coined} {role}", f"{coined} {role}", f"head of {coined}"))


def _room(words: Words) -> str:
    rng, number = words.rng, words.number(1, 420)
    return rng.choice(
        (
            f"room {number}",
            f"{rng.choice('ABCDE')}-{number}",
            f"{number}{rng.choice('ABC')}",
            f"{_coined(words)} Hall",
            f"lecture hall {words.number(1, 9)}",
            f"{_coined(words)} meeting room",
            f"{words.colour()} {made_up(rng)} room",
        )
    )


def _dish(words: Words) -> str:
    rng, coined = words.rng, made_up(words.rng)
    return rng.choice(
        (
            f"{coined} soup",
            f"{rng.choice(('grilled', 'fried', 'baked', 'cold', 'spicy'))} {coined}",
            f"{coined} with {rng.choice(('rice', 'potatoes', 'cream', 'beans', made_up(rng)))}",
            f"{rng.choice(('green', 'warm', 'sweet'))} {coined} salad",
            f"{_coined(words)} {rng.choice(('cake', 'pie', 'stew', 'curry', 'noodles'))}",
            f"{rng.choice(('rice', 'apple', 'lemon', 'bean'))} {rng.choice(('cake', 'pie', 'stew', 'curry'))}",
        )
    )


def _team(words: Words) -> str:
    coined = _coined(words)
    ending = words.rng.choice(("United", "Rovers", "Town", "City", "Lions", "Bears", "Wanderers"))
    return words.rng.choice((f"{coined} {ending}", f"FC {coined}", f"{words.city()} {ending}", f"SV {words.city()}"))


def _code(words: Words) -> str:
    rng = words.rng
    letters = "".join(rng.choices("ABCDEFGHKLMNPRSTUVWXYZ", k=rng.choice((1, 2, 2, 3))))
    number = words.digits(rng.randint(2, 6))
    return rng.choice((f"{letters}-{number}", f"{letters}{number}", f"{number}{letters[0]}", f"{letters} {number}"))


def _place_code(words: Words) -> str:
    """A seat, a table, a shelf or a gate."""
    rng, number = words.rng, words.number(1, 60)
    return rng.choice((f"{number}{rng.choice('ABCDEF')}", f"{rng.choice('ABCDEFGH')}{number}", f"{number}"))


def _score(words: Words) -> str:
    return f"{words.number(0, 9)}{words.rng.choice((':', ':', '-'))}{words.number(0, 9)}"


def _thing(words: Words) -> str:
    """Something that somebody has with them."""
    rng = words.rng
    noun = rng.choice(("purse", "jacket", "key ring", "phone", "watch", "bag", made_up(rng), made_up(rng)))
    return f"{rng.choice((words.colour(), 'small', 'leather', made_up(rng)))} {noun}"


def _fault(words: Words) -> str:
    rng = words.rng
    part = rng.choice(("screen", "battery", "door", "pump", made_up(rng), made_up(rng)))
    return f"{rng.choice(('broken', 'cracked', 'loose', 'noisy', 'leaking'))} {part}"


def _subject(words: Words) -> str:
    rng = words.rng
    subject = rng.choice(("maths", "history", "physics", "music", "art", made_up(rng), made_up(rng)))
    return rng.choice((subject, f"{rng.choice(('applied', 'modern', 'basic', 'world'))} {subject}"))


def _film(words: Words) -> str:
    rng = words.rng
    return rng.choice((words.title(), f"The {_coined(words)} {_coined(words)}", f"{_coined(words)} at Night"))


def _surname(words: Words) -> str:
    return words.full_name().rsplit(" ", 1)[-1]


def _person(words: Words) -> str:
    return words.name() if words.rng.random() < 0.5 else words.full_name()


def _motion(words: Words) -> str:
    rng = words.rng
    return rng.choice(
        (f"new {made_up(rng)} law", f"{made_up(rng)} tax", f"longer {made_up(rng)} hours", f"{made_up(rng)} budget")
    )


def _host(words: Words) -> str:
    rng = words.rng
    return f"{made_up(rng)}{rng.choice(('-', '-', '', '_'))}{words.number(1, 99):02d}"


def _peak(words: Words) -> str:
    rng = words.rng
    return rng.choice((f"{_coined(words)} {rng.choice(('Pass', 'Lake', 'Hut', 'Peak', 'Bridge'))}", words.city()))


RECORDED: tuple[Kind, ...] = (
    Kind(  # money that is sent
        {
            "s": Slot(("sender", "from", "payer", "sent_by"), _person),
            "r": Slot(("receiver", "to", "recipient", "payee"), _person),
            "m": Slot(("amount", "sum", "amount_eur"), _price),
            "x": Slot(("reference", "purpose", "note"), _code),
            "d": Slot(("date", "day", "booked_on"), _day),
        },
        (
            "Transfer of {m} EUR from {s} to {r} on {d}, reference {x}.",
            "{r} got {m} euros from {s} on {d}.",
            "Payee: {r}\nPayer: {s}\nAmount: {m} EUR\nReference: {x}",
            "From: {s}\nTo: {r}\nSum: {m} EUR\nDate: {d}",
            "To: {r}\nFrom: {s}\nEUR {m}",
            "Hi {r},\nI have just sent you {m} euros. Please use {x} when you ask the bank.\nBest regards\n{s}",
            "The account of {r} was credited with {m} EUR. The payment was made by {s}, booked on {d}.",
            "{d} payment {s} -> {r} {m} EUR ref {x}",
            "{d}: received by {r}, sent by {s}, {m} euros. No fee.",
            "So {s} owed {r} money, as you know. It took a while. On {d} {r} finally got the {m} euros.",
        ),
        (),
    ),
    Kind(  # a parcel
        {
            "s": Slot(("sender", "from", "sent_by"), _person),
            "r": Slot(("recipient", "to", "receiver", "addressee"), _person),
            "a": Slot(("address", "delivery_address", "street"), _street),
            "t": Slot(("tracking_number", "tracking", "parcel_number"), _code),
            "w": Slot(("weight_kg", "weight", "kg"), _tenths(0, 30)),
        },
        (
            "Parcel {t}, {w} kg, from {s} to {r}, {a}.",
            "Addressee: {r}, {a}\nSender: {s}\nWeight: {w} kg\nTracking: {t}",
            "Sender: {s}\nRecipient: {r}\nStreet: {a}",
            "Dear {r},\na parcel from {s} is on its way to {a}. You can follow it with {t}.\nYour delivery team",
            "Dear {s},\nyour parcel to {r} weighs {w} kg and has arrived.\nYour delivery team",
            "{t} | {w}kg | to {r} | from {s}",
            "The box for {r} weighs {w} kilos. It was packed by {s}, and it goes to {a}.",
            "The driver rang at {a} yesterday. Nobody was in. The parcel is for {r}, and {s} sent it.",
            "- tracking number {t}\n- to: {r}\n- from: {s}\n- weight: {w} kg",
        ),
        (),
    ),
    Kind(  # a booked room
        {
            "r": Slot(("room", "location", "where", "room_name"), _room),
            "s": Slot(("start", "start_time", "begins_at", "from"), _clock),
            "t": Slot(("end", "end_time", "ends_at", "until"), _clock),
            "o": Slot(("organizer", "booked_by", "host"), _person),
            "d": Slot(("date", "day", "on"), _day),
        },
        (
            "{o} has booked {r} on {d} from {s} to {t}.",
            "{r}: {s} - {t}, {o}",
            "Room: {r}\nStart: {s}\nEnd: {t}\nBooked by: {o}",
            "End: {t}\nStart: {s}\nRoom: {r}",
            "We have to be out of {r} by {t}, but {o} lets us in at {s}.",
            "Hello all,\nwe meet on {d} in {r}. It begins at {s} and ends at {t}. Coffee is there.\nSee you\n{o}",
            "{d}, {s} until {t}, {r}. Ask {o} for the key.",
            "It ends at {t} and begins at {s}, in {r}.",
            "{d} {s}-{t} {r} ({o})",
            "Until {t} on {d} {r} is taken; {o} is in there from {s}.",
        ),
        (),
    ),
    Kind(  # a changed price
        {
            "p": Slot(("product", "article", "item", "product_name"), _product),
            "o": Slot(("old_price", "price_before", "regular_price", "was"), _price),
            "n": Slot(("new_price", "price_now", "sale_price", "now"), _price),
            "d": Slot(("discount_percent", "discount", "percent_off"), _whole(5, 80)),
            "u": Slot(("valid_until", "until", "offer_ends"), _date),
        },
        (
            "{p}: was {o}, now {n}!",
            "{p} now only {n} euros instead of {o}, until {u}.",
            "The {p} used to cost {o} dollars. Now it costs {n} dollars.",
            "Now {n}, before {o}: the {p}, that is {d}% off.",
            "Article: {p}\nOld price: {o} EUR\nNew price: {n} EUR\nDiscount: {d} %",
            "New price: {n} EUR\nOld price: {o} EUR\nOffer ends: {u}",
            "We changed the price of the {p} from {o} to {n}.",
            "The price of the {p} went to {n}, from {o} before. The offer ends on {u}.",
            "SALE! {d} percent off! {p} ${n} (regular ${o})",
            "Good news for all of you who have been waiting. The {p} is {d}% cheaper. You pay {n}, not {o}.",
            "{p}: {o} > {n}, until {u}",
        ),
        (),
    ),
    Kind(  # a match with goals
        {
            "h": Slot(("home_team", "home", "hosts"), _team),
            "a": Slot(("away_team", "away", "guests", "visitors"), _team),
            "g": Slot(("home_goals", "home_score", "goals_home"), _whole(0, 9)),
            "k": Slot(("away_goals", "away_score", "goals_away"), _whole(0, 9)),
            "v": Slot(("spectators", "attendance", "crowd"), _whole(80, 60000)),
        },
        (
            "{h} - {a} {g}:{k}",
            "{h} {g}, {a} {k}",
            "Home: {h} ({g})\nAway: {a} ({k})\nSpectators: {v}",
            "Away: {a}, {k} goals\nHome: {h}, {g} goals",
            "{a} played away at {h}. The hosts scored {g} and the visitors {k}.",
            "The visitors from {a} got {k} goals, the home team {h} got {g}. {v} people came.",
            "In front of {v} spectators {h} played at home against {a}. It ended {g}:{k}.",
            "{h} vs {a}: {g}-{k} (crowd {v})",
            "What an afternoon! {v} saw the hosts {h} score {g} times. {a} had {k}.",
            "{h} {g} - {k} {a}",
        ),
        (),
    ),
    Kind(  # who won
        {
            "w": Slot(("winner", "winning_team", "won"), _team),
            "x": Slot(("loser", "losing_team", "lost"), _team),
            "s": Slot(("score", "result", "final_score"), _score),
            "t": Slot(("half_time_score", "half_time", "score_at_half_time"), _score),
            "d": Slot(("date", "day", "played_on"), _day),
        },
        (
            "{w} beat {x} {s}.",
            "{x} lost to {w}, {s}.",
            "{x} were beaten {s} by {w} on {d}.",
            "{w} won against {x} on {d}. The result was {s}.",
            "Half time {t}, final score {s}. {w} won, {x} went home sad.",
            "The score was {s} in the end and {t} at half time, on {d}.",
            "Winner: {w}\nLoser: {x}\nResult: {s} ({t})",
            "Loser: {x}\nWinner: {w}\nPlayed on: {d}",
            "It rained all evening. On {d} {x} lost {s}. {w} are in the final now.",
            "{d}: {w} - winner, {x} - loser, {s}",
            "{s} ({t}): {w} won, {x} lost",
        ),
        (),
    ),
    Kind(  # something big is sold
        {
            "b": Slot(("buyer", "purchaser", "bought_by"), _person),
            "s": Slot(("seller", "vendor", "sold_by"), _person),
            "a": Slot(("address", "property", "house"), _street),
            "p": Slot(("price", "purchase_price", "price_eur"), _whole(40000, 900000)),
            "d": Slot(("date", "signed_on", "contract_date"), _day),
        },
        (
            "{s} sold the house at {a} to {b} for {p} euros.",
            "{b} bought {a} from {s} for {p} euros on {d}.",
            "Buyer: {b}\nSeller: {s}\nProperty: {a}\nPrice: {p} EUR",
            "Seller: {s}\nBuyer: {b}\nSigned on: {d}",
            "The contract between {s} (seller) and {b} (buyer) was signed on {d}.",
            "The contract between {b} (buyer) and {s} (seller) is about {a}.",
            "{a} has a new owner. {b} paid {p}, and {s} moved out.",
            "Dear {b},\nthe papers for {a} are ready. {s} will sign on {d}.\nKind regards\nYour bank",
            "{a}: {p} EUR, {s} > {b}",
            "Bought by {b}, sold by {s}, {p} EUR",
        ),
        (),
    ),
    Kind(  # a stay in a hotel
        {
            "g": Slot(("guest", "guest_name", "name", "booked_for"), _person),
            "h": Slot(("hotel", "hotel_name", "accommodation"), lambda w: f"Hotel {_coined(w)}"),
            "a": Slot(("check_in", "arrival", "arrival_date", "from"), _iso),
            "b": Slot(("check_out", "departure", "departure_date", "to"), _iso),
            "p": Slot(("price_per_night", "nightly_rate", "rate"), _cents(30, 300)),
            "r": Slot(("room", "room_number", "room_no"), _whole(1, 900)),
        },
        (
            "{g} stays at {h} from {a} to {b}.",
            "Check-in: {a}\nCheck-out: {b}\nGuest: {g}\nRoom: {r}",
            "Check-out {b}, check-in {a}, room {r}, {p} EUR per night",
            "Departure: {b}\nArrival: {a}\nHotel: {h}",
            "Dear {g},\nthank you for your booking. You arrive on {a} and leave on {b}.\nSee you soon\n{h}",
            "{g} leaves on {b} and arrives on {a}. A night at {h} costs {p} euros.",
            "{h}, room {r}, {p} a night, {a} until {b}",
            "The guest in room {r} is {g}. We expect {g} on {a}, and the room is free again on {b}.",
            "- arrive {a}\n- leave {b}\n- {h}\n- {p} EUR per night",
            "{g}, out {b}, in {a}, room {r}",
        ),
        (),
    ),
    Kind(  # a flat to let
        {
            "r": Slot(("rent", "monthly_rent", "rent_eur"), _whole(250, 2900)),
            "d": Slot(("deposit", "security_deposit", "deposit_eur"), _whole(250, 6000)),
            "s": Slot(("size_sqm", "size", "area", "square_metres"), _whole(18, 180)),
            "n": Slot(("rooms", "number_of_rooms", "room_count"), _whole(1, 7)),
            "a": Slot(("address", "street", "location"), _street),
            "f": Slot(("floor", "storey", "level"), _whole(1, 12)),
        },
        (
            "Flat to let: {n} rooms, {s} sqm, {a}, rent {r} euros, deposit {d} euros.",
            "To let, {a}: {s} m2, {n} rooms. Deposit {d}, rent {r} a month.",
            "Address: {a}\nRent: {r} EUR\nDeposit: {d} EUR\nSize: {s} sqm",
            "Deposit: {d} EUR\nRent: {r} EUR\nFloor: {f}",
            "The flat is on floor {f} and has {n} rooms. You pay {r} every month and {d} once as a deposit.",
            "We ask for a deposit of {d}. The monthly rent is {r}, and the flat has {s} square metres.",
            "Hello! My flat at {a} is free. Lots of sun, quiet people. It is {r} per month plus {d} deposit.",
            "{n} rooms / {s} sqm / floor {f} / {r} EUR",
            "- {s} square metres\n- {n} rooms\n- rent {r}\n- deposit {d}",
            "{a}, {f}. floor, {s} sqm, rent {r}",
        ),
        (),
    ),
    Kind(  # measures of a person
        {
            "f": Slot(("first_name", "first", "given_name"), Words.name),
            "s": Slot(("last_name", "surname", "family_name"), _surname),
            "h": Slot(("height_cm", "height", "tall_cm"), _whole(50, 205)),
            "w": Slot(("weight_kg", "weight", "kg"), _whole(30, 140)),
            "b": Slot(("birth_date", "born", "date_of_birth", "born_on"), _iso),
        },
        (
            "{f} {s}, born {b}, {h} cm, {w} kg",
            "{s}, {f}; weight {w} kg; height {h} cm",
            "First name: {f}\nLast name: {s}\nHeight: {h} cm\nWeight: {w} kg",
            "Surname: {s}\nFirst name: {f}\nDate of birth: {b}",
            "Last name {s}, first name {f}, born on {b}.",
            "{f} {s} weighs {w} kilos and is {h} cm tall.",
            "{f} {s} is {h} cm tall and weighs {w} kg.",
            "The patient is called {f}, family name {s}. We measured {h} centimetres and {w} kilograms.",
            "My first name is {f}. People spell my surname wrong all the time: it is {s}.",
            "My surname is {s} and my first name is {f}. I was born on {b}.",
        ),
        (),
    ),
    Kind(  # measures of a thing
        {
            "p": Slot(("product", "item", "article", "name"), _product),
            "w": Slot(("width_cm", "width", "wide"), _whole(5, 260)),
            "h": Slot(("height_cm", "height", "high"), _whole(5, 260)),
            "d": Slot(("depth_cm", "depth", "deep"), _whole(5, 260)),
            "k": Slot(("weight_kg", "weight", "kg"), _tenths(0, 60)),
        },
        (
            "{p}: {w} cm wide, {h} cm high, {d} cm deep, {k} kg",
            "The {p} is {h} cm high and {w} cm wide.",
            "The {p} is {w} cm wide and {h} cm high. It weighs {k} kg.",
            "Width: {w} cm\nHeight: {h} cm\nDepth: {d} cm\nWeight: {k} kg",
            "Height {h} cm, depth {d} cm, width {w} cm",
            "{p}\nweight {k} kg\nheight {h} cm\nwidth {w} cm",
            "Will the {p} fit? It has a depth of {d} cm and a height of {h} cm. The width is {w} cm.",
            "With {k} kilos the {p} is not light. It is {d} cm deep and {w} cm wide.",
            "{p}, H {h} cm, W {w} cm, D {d} cm",
            "{w} cm in width, {d} cm in depth, {h} cm in height",
        ),
        (),
    ),
    Kind(  # the weather
        {
            "c": Slot(("city", "place", "location", "town"), Words.city),
            "a": Slot(("min_temp", "low", "minimum", "temp_min"), _whole(-12, 22)),
            "b": Slot(("max_temp", "high", "maximum", "temp_max"), _whole(-4, 38)),
            "w": Slot(("wind_kmh", "wind", "wind_speed"), _whole(2, 120)),
            "r": Slot(("rain_percent", "rain_chance", "chance_of_rain"), _whole(0, 100)),
        },
        (
            "{c}: low {a}, high {b}, wind {w} km/h",
            "{c}: high {b}, low {a}, rain {r}%",
            "In {c} it will be between {a} and {b} degrees. The wind blows at {w} km/h.",
            "Up to {b} degrees in {c} today, at night {a} degrees.",
            "At night it cools down to {a} degrees in {c}, by day we get {b}. Chance of rain: {r} percent.",
            "Place: {c}\nMax: {b} C\nMin: {a} C\nWind: {w} km/h\nRain: {r} %",
            "Min {a} / max {b} / rain {r}% / wind {w}",
            "Good morning from {c}! Do not forget your coat. The maximum is {b} degrees, the minimum {a}.",
            "{c} {a}..{b} C, wind {w} km/h, rain {r}%",
            "The wind in {c} reaches {w} km/h and the chance of rain is {r}%. It gets no warmer than {b} degrees.",
        ),
        (),
    ),
    Kind(  # a train
        {
            "a": Slot(("from", "origin", "departure_city", "departure_station"), Words.city),
            "b": Slot(("to", "destination", "arrival_city", "arrival_station"), Words.city),
            "d": Slot(("departure_time", "departs", "leaves_at"), _clock),
            "r": Slot(("arrival_time", "arrives", "arrives_at"), _clock),
            "t": Slot(("train", "train_number", "train_no"), _code),
            "s": Slot(("seat", "seat_number", "seat_no"), _place_code),
        },
        (
            "{t} from {a} ({d}) to {b} ({r})",
            "{a} {d} - {b} {r}",
            "The train to {b} leaves {a} at {d} and arrives at {r}.",
            "It gets to {b} at {r}; it leaves {a} at {d}.",
            "To: {b}\nFrom: {a}\nDeparture: {d}\nArrival: {r}\nSeat: {s}",
            "Departure: {a}, {d}\nArrival: {b}, {r}\nTrain: {t}",
            "Arrival: {b}, {r}\nDeparture: {a}, {d}",
            "Hi, I will be in {b} at {r}. My train {t} starts in {a}. See you!",
            "I sit in seat {s} of {t} to {b}. We left {a} at {d}.",
            "Can you pick me up in {b}? I am coming from {a}. The train is {t} and arrives at {r}.",
            "dep {a} {d}, arr {b} {r}, seat {s}",
        ),
        (),
    ),
    Kind(  # a flight
        {
            "f": Slot(("flight", "flight_number", "flight_no"), _code),
            "a": Slot(("from", "origin", "departure_airport"), Words.city),
            "b": Slot(("to", "destination", "arrival_airport"), Words.city),
            "p": Slot(("passenger", "traveller", "name"), _person),
            "g": Slot(("gate", "gate_number", "gate_no"), _place_code),
            "s": Slot(("seat", "seat_number", "seat_no"), lambda w: f"{w.number(1, 45)}{w.rng.choice('ABCDEF')}"),
        },
        (
            "{p} flies from {a} to {b} with {f}, seat {s}.",
            "{f} to {b} from {a}, gate {g}",
            "Passenger: {p}\nFlight: {f}\nFrom: {a}\nTo: {b}\nSeat: {s}",
            "Destination: {b}\nOrigin: {a}\nGate: {g}",
            "Dear {p},\nyour flight {f} to {b} now leaves from gate {g}. We wish you a pleasant trip.",
            "Bound for {b}, coming from {a}: {f}, gate {g}.",
            "Last call for {p}, flight {f} to {b}, gate {g}!",
            "{p} / {f} / {a}-{b} / {s}",
            "Seat {s}, gate {g}. {p} leaves {a} today and will land in {b} in the evening.",
            "{p} will land in {b} tonight. The flight is {f}, and it comes from {a}.",
        ),
        (),
    ),
    Kind(  # a moved meeting
        {
            "m": Slot(("meeting", "event", "title", "what"), lambda w: f"{made_up(w.rng)} {w.event()}"),
            "o": Slot(("old_time", "time_before", "original_time", "previous_time"), _clock),
            "n": Slot(("new_time", "time_now", "moved_to", "rescheduled_to"), _clock),
            "r": Slot(("old_room", "room_before", "previous_room"), _room),
            "s": Slot(("new_room", "room_now", "room_after"), _room),
        },
        (
            "The {m} moved from {o} to {n}.",
            "The {m} is now at {n}, not at {o}.",
            "{m}: {n} instead of {o}, new room {s}",
            "We meet in {s} instead of {r}. The {m} begins at {n}.",
            "Not in {r} but in {s}: the {m}, now at {n}.",
            "Dear all,\nthe {m} has a new room, {s}. The old one, {r}, is too small. It starts at {n}.\nThanks",
            "Old time: {o}\nNew time: {n}\nOld room: {r}\nNew room: {s}",
            "New time: {n}\nOld time: {o}\nEvent: {m}",
            "{m} {o} -> {n}, {r} -> {s}",
            "Sorry for the trouble! The {m} was planned for {o} in {r}. Now it is at {n} in {s}.",
        ),
        (),
    ),
    Kind(  # a receipt
        {
            "s": Slot(("shop", "store", "merchant"), _company),
            "t": Slot(("total", "total_price", "sum", "amount_due"), _cents(2, 190)),
            "g": Slot(("cash_given", "cash", "paid", "given"), _whole(5, 300)),
            "c": Slot(("change", "change_given", "returned"), _cents(0, 50)),
            "v": Slot(("vat", "tax", "vat_amount"), _cents(0, 30)),
            "n": Slot(("receipt_number", "receipt_no", "receipt"), _code),
        },
        (
            "{s}\nTotal {t}\nCash {g}\nChange {c}\nThank you!",
            "{s}\nReceipt {n}\nVAT {v}\nTotal {t}",
            "Change: {c}\nCash: {g}\nTotal: {t}\nReceipt no. {n}",
            "At {s} I had to pay {t}. I gave {g} and got {c} back.",
            "I got {c} back because I gave {g} for {t}.",
            "Receipt {n}, {s}: total {t} EUR, of which tax {v} EUR",
            "*** {s} ***\nTAX {v}\nTOTAL {t}\nCASH {g}\nCHANGE {c}",
            "The bill from {s} was {t}. The tax is {v}.",
            "{s} gave me {c} in change. My total was {t}. It was very full there.",
        ),
        (),
    ),
    Kind(  # a used bike
        {
            "b": Slot(
                ("bike", "model", "item", "title"), lambda w: f"{_coined(w)} {w.rng.choice(('Tour', 'City'))} bike"
            ),
            "p": Slot(("price", "asking_price", "price_eur"), _whole(40, 2400)),
            "o": Slot(("original_price", "price_new", "cost_new"), _whole(90, 4900)),
            "f": Slot(("frame_size_cm", "frame_size", "frame_cm"), _whole(38, 64)),
            "g": Slot(("gears", "number_of_gears", "gear_count"), _whole(1, 30)),
            "s": Slot(("seller", "contact", "contact_person"), Words.name),
        },
        (
            "For sale: {b}, {g} gears, frame {f} cm, {p} euros. Ask for {s}.",
            "{b}, cost {o} new, asking {p}.",
            "Asking {p} euros for my {b}. New it was {o}. It has {g} gears.",
            "I sell my {b}. I paid {o} for it last year and want {p} now. Hardly used, no rust. {s}",
            "Item: {b}\nPrice: {p} EUR\nPrice new: {o} EUR\nFrame: {f} cm",
            "Price new: {o} EUR\nPrice: {p} EUR\nGears: {g}\nContact: {s}",
            "- {b}\n- {g} gears\n- frame size {f} cm\n- {p} EUR",
            "Used bike, {f} cm frame, {g} gears, only {p}. The new price was {o}. Write to {s}!",
            "{b}: paid {o} at the shop, now {p} euros",
        ),
        (),
    ),
    Kind(  # a used car
        {
            "m": Slot(("model", "car", "vehicle"), lambda w: f"{_coined(w)} {_coined(w)} {w.number(1, 9)}"),
            "k": Slot(("mileage_km", "mileage", "kilometres", "km"), _whole(900, 290000)),
            "h": Slot(("horsepower", "power_hp", "hp"), _whole(45, 420)),
            "y": Slot(("year", "built", "first_registration"), _whole(1985, 2025)),
            "p": Slot(("price", "price_eur", "asking_price"), _whole(500, 64000)),
            "d": Slot(("doors", "number_of_doors", "door_count"), _whole(2, 6)),
        },
        (
            "{m}, {y}, {k} km, {h} hp, {p} euros",
            "{p} EUR: {m}, built {y}, {k} km",
            "Model: {m}\nYear: {y}\nMileage: {k} km\nPrice: {p} EUR",
            "The {m} from {y} has {h} horsepower and {d} doors.",
            "{d} doors, {h} hp, {k} kilometres driven, yours for {p} euros: my {m}.",
            "I want {p} for the {m}. It has run {k} km since {y}. It smells a bit of dog.",
            "- built in {y}\n- {k} km\n- {h} hp\n- {d} doors",
            "We drove the {m} for {k} kilometres without trouble. {h} hp, {p} euros.",
        ),
        (),
    ),
    Kind(  # a recipe
        {
            "d": Slot(("dish", "recipe", "name", "title"), _dish),
            "p": Slot(("prep_minutes", "preparation_time", "prep_time", "prep"), _whole(3, 60)),
            "c": Slot(("cook_minutes", "cooking_time", "cook_time", "baking_time"), _whole(3, 180)),
            "s": Slot(("servings", "portions", "serves"), _whole(1, 12)),
            "t": Slot(("oven_temperature", "oven_temp", "temperature_c"), _whole(90, 250)),
        },
        (
            "{d}, serves {s}. Prep {p} min, cooking {c} min.",
            "{d}\nCooking time: {c} min\nPreparation: {p} min\nServings: {s}",
            "Preparation: {p} minutes\nCooking: {c} minutes\nOven: {t} C",
            "For {d} you need {p} minutes to prepare everything and {c} minutes in the oven at {t} degrees.",
            "Bake the {d} at {t} degrees for {c} minutes. It is enough for {s} people.",
            "The {d} cooks for {c} minutes, after {p} minutes of preparation.",
            "My aunt loves this one: {d}, for {s} people. {c} minutes at {t} degrees, done!",
            "{d} ({s} portions): oven {t} C, {c} min",
            "{s} portions of {d}, {p} min prep, {c} min cooking, {t} C",
        ),
        (),
    ),
    Kind(  # an appointment with a doctor
        {
            "p": Slot(("patient", "patient_name", "name"), _person),
            "d": Slot(("doctor", "physician", "doctor_name"), _surname),
            "t": Slot(("date", "appointment_date", "day"), _day),
            "h": Slot(("time", "appointment_time", "hour"), _clock),
            "r": Slot(("room", "where", "treatment_room"), _room),
            "n": Slot(("next_appointment", "next_date", "follow_up"), _date),
        },
        (
            "{p} sees Dr. {d} on {t} at {h}.",
            "Dr. {d} will see {p} at {h} in {r}.",
            "Patient: {p}\nDoctor: Dr. {d}\nDate: {t}\nTime: {h}\nRoom: {r}",
            "Doctor: Dr. {d}\nPatient: {p}\nNext appointment: {n}",
            "Dear {p},\nyour appointment with Dr. {d} is on {t}, {h}. Please bring your card.\nThe practice team",
            "Hello Dr. {d},\nI cannot come on {t} at {h}. Is there another day?\nThanks, {p}",
            "{t} {h} {p} / Dr. {d} / {r}",
            "{p} was here on {t}. Dr. {d} wants to see {p} again on {n}.",
            "Follow-up on {n} for {p}, who was last here on {t}.",
        ),
        (),
    ),
    Kind(  # a repair
        {
            "c": Slot(("customer", "client", "owner", "customer_name"), _person),
            "t": Slot(("technician", "repaired_by", "mechanic"), _person),
            "d": Slot(("device", "item", "appliance"), _product),
            "f": Slot(("fault", "problem", "defect", "issue"), _fault),
            "o": Slot(("order_number", "repair_number", "order", "job_number"), _code),
            "p": Slot(("cost", "price", "repair_cost"), _price),
        },
        (
            "Repair {o}: {d}, {f}, customer {c}, technician {t}",
            "Technician: {t}\nCustomer: {c}\nDevice: {d}\nFault: {f}",
            "Customer: {c}\nTechnician: {t}\nNo.: {o}\nCost: {p} EUR",
            "{c} brought in a {d} with a {f}. {t} will repair it.",
            "{t} repaired the {d} of {c}. It costs {p}.",
            "Dear {c},\nwe found a {f} in your {d}. The repair costs {p} euros. It was a long day.\nRegards\n{t}",
            "Dear team,\nmy {d} has a {f}. I bought it last year and I am not happy.\n{c}",
            "{o} / {d} / {f} / {p}",
            "It took {t} an hour. The {f} is gone, and {c} can fetch the {d}. The bill is {p}.",
        ),
        (),
    ),
    Kind(  # lost and found
        {
            "t": Slot(("item", "object", "thing", "what"), _thing),
            "f": Slot(("finder", "found_by", "finder_name"), _person),
            "o": Slot(("owner", "lost_by", "belongs_to"), _person),
            "p": Slot(("place", "found_at", "where", "location"), lambda w: f"{w.colour()} {w.place()}"),
            "d": Slot(("date", "found_on", "day"), _day),
        },
        (
            "{f} found a {t} near the {p} on {d}. It belongs to {o}.",
            "{o} lost a {t}. {f} found it at the {p}.",
            "FOUND: {t}, at the {p}, {d}. Ask {f}.",
            "LOST: {t}, by {o}, last seen at the {p}",
            "Item: {t}\nFinder: {f}\nOwner: {o}\nPlace: {p}",
            "Owner: {o}\nFinder: {f}\nDate: {d}",
            "The {t} of {o} is back! Thank you, {f}, for bringing it.",
            "Hello {o},\nI think I have your {t}. It lay at the {p} on {d}. Call me.\n{f}",
            "{d} {t} {p}, handed in by {f}, collected by {o}",
            "{d}: collected by {o}, handed in by {f}, {t}",
        ),
        (),
    ),
    Kind(  # an offered job
        {
            "t": Slot(("job_title", "position", "title", "role"), _post),
            "c": Slot(("company", "employer", "firm"), _company),
            "a": Slot(("salary_min", "salary_from", "min_salary"), _whole(1200, 9000)),
            "b": Slot(("salary_max", "salary_to", "max_salary"), _whole(1200, 9900)),
            "h": Slot(("hours_per_week", "weekly_hours", "hours"), _whole(6, 45)),
            "s": Slot(("start_date", "starts_on", "from"), _date),
        },
        (
            "{c} is looking for: {t}, {h} hours a week, {a} to {b} euros.",
            "{t} wanted at {c}, start {s}.",
            "Position: {t}\nCompany: {c}\nSalary: from {a} to {b} EUR\nHours: {h} per week",
            "Maximum salary: {b} EUR\nMinimum salary: {a} EUR\nRole: {t}",
            "We pay up to {b}, at least {a}. You work {h} hours a week from {s} on. {c}",
            "At least {a} and at most {b} a month for the post of {t}.",
            "Join us at {c}! We are a friendly team with a cat. The role: {t}. {h} hours per week, from {s}.",
            "- {t}\n- {c}\n- {a}-{b} EUR\n- {h} h/week",
            "{c}, {t}, {h}h, starting {s}",
            "The firm {c} pays no more than {b} and no less than {a}. They want: {t}.",
        ),
        (),
    ),
    Kind(  # a borrowed book
        {
            "b": Slot(("title", "book", "book_title"), _film),
            "r": Slot(("reader", "borrower", "borrowed_by"), _person),
            "a": Slot(("author", "writer", "written_by"), Words.full_name),
            "o": Slot(("borrowed_on", "date_borrowed", "borrow_date", "taken_out"), _date),
            "d": Slot(("due_date", "due", "return_by"), _date),
            "s": Slot(("shelf", "shelf_mark", "signature"), _code),
        },
        (
            "{r} borrowed {b} on {o}. It is due on {d}.",
            "Due on {d}: {b} by {a}, borrowed by {r} on {o}",
            '"{b}" by {a}, shelf {s}, out to {r} until {d}.',
            "Title: {b}\nAuthor: {a}\nReader: {r}\nBorrowed: {o}\nDue: {d}",
            "Due: {d}\nBorrowed: {o}\nReader: {r}\nShelf: {s}",
            "Dear {r},\nplease bring back {b} by {d}. You took it out on {o}.\nYour library",
            "{a} wrote {b}, and {r} has it at home. You find it on shelf {s} after {d}.",
            "{s} | {b} | {r} | out {o} | back {d}",
            "{r} must return {b} by {d}, since {r} has had it from {o}.",
        ),
        (),
    ),
    Kind(  # a lesson at school
        {
            "s": Slot(("subject", "lesson", "class"), _subject),
            "t": Slot(("teacher", "teacher_name", "taught_by"), _person),
            "u": Slot(("substitute", "substitute_teacher", "replacement"), _person),
            "r": Slot(("room", "classroom", "where"), _room),
            "a": Slot(("start", "starts_at", "start_time"), _clock),
            "b": Slot(("end", "ends_at", "end_time"), _clock),
        },
        (
            "{a}-{b} {s}, {t}, {r}",
            "{s} with {t} starts at {a} and ends at {b}.",
            "{s} ends at {b}; it starts at {a} in {r}.",
            "{u} takes {s} instead of {t} today, in {r}.",
            "{t} is ill. {u} will teach {s} at {a}.",
            "Subject: {s}\nTeacher: {t}\nSubstitute: {u}\nRoom: {r}",
            "Substitute: {u}\nTeacher: {t}\nStart: {a}\nEnd: {b}",
            "Dear parents,\nbecause {t} is away, {u} will teach {s} from {a} to {b}. There is no homework.",
            "First lesson: {s} ({t}), {a} to {b}, {r}",
            "{s} with {u}, not with {t}, until {b}",
        ),
        (),
    ),
    Kind(  # an invoice
        {
            "n": Slot(("invoice_number", "invoice_no", "invoice", "number"), _code),
            "s": Slot(("supplier", "seller", "issued_by", "from_company"), _company),
            "c": Slot(("customer", "client", "billed_to", "to_company"), _company),
            "t": Slot(("net_amount", "net", "subtotal"), _cents(20, 2900)),
            "g": Slot(("gross_amount", "gross", "total"), _cents(20, 3900)),
            "d": Slot(("due_date", "due", "pay_by"), _iso),
        },
        (
            "Invoice {n} from {s} to {c}: net {t}, gross {g}",
            "{c} owes {s} {g} euros gross ({t} net). Invoice {n}.",
            "Invoice: {n}\nBilled to: {c}\nIssued by: {s}\nTotal: {g} EUR",
            "Supplier: {s}\nCustomer: {c}\nNet: {t} EUR\nGross: {g} EUR\nDue: {d}",
            "Gross: {g} EUR\nNet: {t} EUR\nInvoice no.: {n}",
            "To {c}\nplease pay {g} EUR by {d}. The number of the invoice is {n}.\nKind regards\n{s}",
            "Without tax it is {t}, with tax {g}. Pay by {d}.",
            "With tax {g}, without tax {t}: that is what {s} asks {c} to pay.",
            "{d} {n} {s} -> {c} {g}",
        ),
        (),
    ),
    Kind(  # a device that heats
        {
            "d": Slot(("device", "device_name", "thermostat"), lambda w: f"{made_up(w.rng)} heater {w.number(1, 9)}"),
            "c": Slot(("current_temperature", "current_temp", "current", "measured"), _tenths(5, 30)),
            "t": Slot(("target_temperature", "target_temp", "target", "set_to"), _tenths(5, 30)),
            "b": Slot(("battery_percent", "battery", "battery_level"), _whole(1, 100)),
            "h": Slot(("humidity_percent", "humidity", "air_humidity"), _whole(10, 95)),
            "r": Slot(("room", "location", "where"), _room),
        },
        (
            "{d}: current {c}, target {t}, battery {b}%",
            "{d} target={t} current={c} battery={b}",
            "{d} in {r} is set to {t} degrees but measures {c}.",
            "It is {c} degrees in {r}. The {d} should reach {t}.",
            "The {d} should bring {r} to {t} degrees. Now it is {c}.",
            "Device: {d}\nRoom: {r}\nBattery: {b} %\nHumidity: {h} %",
            "Target: {t} C\nCurrent: {c} C\nHumidity: {h} %",
            "Battery low! {d} has only {b} percent. Humidity in {r} is {h} percent.",
            '[info] {d} room="{r}" current={c} target={t} humidity={h}',
        ),
        (),
    ),
    Kind(  # a vote
        {
            "m": Slot(("motion", "topic", "subject", "proposal"), _motion),
            "y": Slot(("votes_for", "yes_votes", "yes", "in_favour"), _whole(0, 400)),
            "n": Slot(("votes_against", "no_votes", "no", "against"), _whole(0, 400)),
            "a": Slot(("abstentions", "abstained", "abstention_count"), _whole(0, 60)),
            "d": Slot(("date", "day", "voted_on"), _day),
        },
        (
            "Vote on {m}: {y} yes, {n} no, {a} abstentions",
            "{n} against, {y} for, {a} abstained: {m}",
            "{y} members voted for {m} and {n} against it.",
            "{n} people were against {m}, {y} were in favour.",
            "Topic: {m}\nYes: {y}\nNo: {n}\nAbstentions: {a}",
            "No: {n}\nYes: {y}\nDate: {d}",
            "On {d} we voted on {m}. It was late and everybody was tired. {y} said yes, {n} said no.",
            "With {y} to {n} votes {m} was accepted on {d}. {a} did not vote.",
            "{d} {m} +{y} -{n} ({a} abstained)",
        ),
        (),
    ),
    Kind(  # an election
        {
            "w": Slot(("winner", "elected", "first_place"), _person),
            "x": Slot(("runner_up", "second_place", "second"), _person),
            "a": Slot(("winner_percent", "winner_share", "first_percent"), _tenths(20, 80)),
            "b": Slot(("runner_up_percent", "runner_up_share", "second_percent"), _tenths(5, 49)),
            "t": Slot(("turnout_percent", "turnout", "voted_percent"), _whole(20, 98)),
            "o": Slot(
                ("office", "post", "position"),
                lambda w: f"head of the {made_up(w.rng)} {w.rng.choice(('club', 'team'))}",
            ),
        },
        (
            "{w} won with {a}%, ahead of {x} with {b}%.",
            "{x} got {b} percent and lost to {w}, who got {a} percent.",
            "{w} is the new {o}. {x} came second.",
            "Second came {x} with {b}%. The winner is {w} with {a}%.",
            "Elected: {w} ({a}%)\nRunner-up: {x} ({b}%)\nTurnout: {t}%",
            "2. {x} {b}%\n1. {w} {a}%",
            "1. {w} {a}%\n2. {x} {b}%\nTurnout {t}%",
            "The turnout was {t} percent. {w} beat {x} and is {o} now.",
            "Well, we have a result. {x} did fine, but {w} will be {o}. {a} percent is a lot!",
        ),
        (),
    ),
    Kind(  # a line of a log
        {
            "h": Slot(("host", "server", "machine", "source"), _host),
            "t": Slot(("target", "destination", "copied_to", "backup_host"), _host),
            "g": Slot(("size_gb", "size", "gigabytes"), _tenths(0, 900)),
            "s": Slot(("duration_s", "duration", "seconds"), _whole(1, 9000)),
            "n": Slot(("files", "file_count", "number_of_files"), _whole(2, 90000)),
            "d": Slot(
                ("time", "finished_at", "timestamp"), lambda w: f"{_iso(w)} {w.number(10, 23)}:{w.number(10, 59)}"
            ),
        },
        (
            "{d} backup {h} -> {t} ok, {g} GB in {s} s",
            "{d} INFO copied {n} files from {h} to {t}",
            "{d} [{t}] got {n} files from {h}, size={g}GB",
            "source={h} target={t} files={n} duration={s}s",
            "target={t} source={h} size={g}GB time={d}",
            "The backup of {h} to {t} took {s} seconds and has {g} GB.",
            "On {t} there are {g} GB now, copied from {h}.",
            "{n} files were copied in {s} seconds, {h} to {t}.",
            "{d} WARN {t} is slow, {s} s for {g} GB from {h}",
        ),
        (),
    ),
    Kind(  # an order in a shop
        {
            "p": Slot(("product", "item", "article", "product_name"), _product),
            "q": Slot(("quantity", "amount", "count", "pieces"), _whole(1, 60)),
            "o": Slot(("order_date", "ordered_on", "ordered"), _date),
            "d": Slot(("delivery_date", "delivered_on", "delivery", "arrives_on"), _date),
            "n": Slot(("order_number", "order_id", "order_no"), _code),
            "u": Slot(("unit_price", "price_each", "price_per_piece"), _cents(1, 190)),
        },
        (
            "{q} x {p}, ordered {o}, delivered {d}",
            "Delivered {d}, ordered {o}: {q} x {p}, number {n}",
            "I ordered {q} pieces of {p} on {o}, and they come on {d}.",
            "On {d} we deliver what you ordered on {o}: {p}, {q} pieces.",
            "No. {n}\n{q} x {p} at {u} each",
            "Article: {p}\nQuantity: {q}\nUnit price: {u} EUR\nDelivery: {d}\nOrdered: {o}",
            "Hello,\nI am still waiting for my {p}, number {n}. I ordered it on {o}. You promised {d}.\nThanks",
            "Thank you for your order {n}. {p}, {q} pieces, {u} euros each. It will reach you on {d}.",
            "{n}: {p} ({q}) {u}/pc, due {d}",
        ),
        (),
    ),
    Kind(  # somebody moves house
        {
            "n": Slot(("name", "person", "who", "customer"), _person),
            "o": Slot(("old_address", "previous_address", "address_before", "moved_from"), _street),
            "a": Slot(("new_address", "current_address", "address_now", "moved_to"), _street),
            "c": Slot(("city", "town", "new_city"), Words.city),
            "d": Slot(("moving_date", "date", "valid_from"), _date),
        },
        (
            "{n} moves from {o} to {a} on {d}.",
            "{n} now lives at {a}, before that at {o}.",
            "Old address: {o}\nNew address: {a}\nName: {n}",
            "New address: {a}, {c}\nOld address: {o}\nFrom: {d}",
            "Hello,\nmy address has changed. Please write to {a}, no longer to {o}.\nKind regards\n{n}",
            "From {d} on you find me at {a} in {c}. I have left {o}. {n}",
            "I left {o} and moved to {a}. So many boxes! You can visit me from {d} on.",
            "{n}: {o} > {a} ({d})",
            "{n} has gone from {o}. Letters go to {a}, {c}.",
            "Do not send anything to {o} any more, {n} is at {a} since {d}.",
        ),
        (),
    ),
    Kind(  # a new job
        {
            "n": Slot(("name", "person", "employee", "who"), _person),
            "o": Slot(("old_position", "previous_job", "former_role", "job_before"), _post),
            "p": Slot(("new_position", "new_job", "current_role", "job_now"), _post),
            "a": Slot(("old_company", "previous_employer", "former_company"), _company),
            "b": Slot(("new_company", "current_employer", "new_employer"), _company),
        },
        (
            "{n} left {a} and joined {b}.",
            "{n} joined {b} after some years at {a}.",
            "{n} was {o} and is now {p}.",
            "Now {p}, before that {o}: {n}.",
            "{n}, {o} at {a} until now, starts as {p} at {b}.",
            "New at {b}: {n}, {p}. Before: {o} at {a}.",
            "Employee: {n}\nOld position: {o}\nNew position: {p}",
            "New employer: {b}\nOld employer: {a}\nNew position: {p}",
            "Please welcome {n}, our new {p}. We are very happy. {n} comes to us from {a}, once {o} there.",
            "{n}: {a} -> {b}",
        ),
        (),
    ),
    Kind(  # a swapped shift
        {
            "a": Slot(("absent", "replaced", "gives_shift", "away"), Words.name),
            "b": Slot(("replacement", "stands_in", "takes_shift", "covers"), Words.name),
            "d": Slot(("date", "day", "shift_date"), _day),
            "s": Slot(("start", "shift_start", "from"), _clock),
            "t": Slot(("end", "shift_end", "until"), _clock),
        },
        (
            "{b} takes the shift of {a} on {d}.",
            "{a} is away on {d}, {b} stands in from {s} to {t}.",
            "Instead of {a}, {b} works on {d}.",
            "{b} instead of {a}, {d}, {s} - {t}",
            "Absent: {a}\nReplacement: {b}\nShift: {s} to {t}",
            "Replacement: {b}\nAbsent: {a}\nDay: {d}",
            "Hi {b}, can you do my shift on {d}? It goes until {t} and begins at {s}. Thank you so much! {a}",
            "Hi {a}, no problem, I will do your shift on {d}. I can be there at {s}. {b}",
            "{a} has given the shift on {d} to {b}. It ends at {t}.",
        ),
        (),
    ),
    Kind(  # changed money
        {
            "a": Slot(("amount_from", "amount_given", "sold_amount", "paid_in"), _whole(5, 5000)),
            "b": Slot(("amount_to", "amount_received", "bought_amount", "paid_out"), _whole(5, 9000)),
            "c": Slot(
                ("currency_from", "from_currency", "source_currency"), lambda w: w.rng.choice(("EUR", "USD", "CHF"))
            ),
            "d": Slot(("currency_to", "to_currency", "target_currency"), lambda w: w.rng.choice(("GBP", "JPY", "SEK"))),
            "r": Slot(
                ("rate", "exchange_rate", "exchange_rate_used"),
                lambda w: round(w.number(2, 990) / 100 + w.number(1, 9) / 1000, 3),
            ),
            "f": Slot(("fee", "charge", "commission"), _cents(0, 20)),
        },
        (
            "Changed {a} {c} into {b} {d}, fee {f}",
            "{a} {c} -> {b} {d}",
            "Received: {b} {d}\nGiven: {a} {c}\nFee: {f}",
            "Given: {a} {c}\nReceived: {b} {d}",
            "I got {b} {d} for my {a} {c}. They kept {f} as a fee.",
            "For {a} {c} the bank gave me {b} {d}. The fee was {f}.",
            "{b} {d} out, {a} {c} in, fee {f}",
            "You sold {a} {c} and bought {b} {d}.",
            "At the rate {r} with fee {f}: {a} {c} paid in",
            "At a rate of {r} you get {b} {d} for {a} {c}.",
            "You bought {b} {d} and paid with {a} {c}. Thank you and have a nice holiday!",
        ),
        (),
    ),
    Kind(  # a reserved table
        {
            "n": Slot(("name", "guest", "reserved_for", "booked_by"), _person),
            "a": Slot(("adults", "adult_count", "number_of_adults"), _whole(1, 14)),
            "k": Slot(("children", "kids", "number_of_children"), _whole(1, 9)),
            "t": Slot(("time", "at", "reservation_time"), _clock),
            "b": Slot(("table", "table_number", "table_no"), _place_code),
            "r": Slot(
                ("restaurant", "place", "venue"), lambda w: f"{w.rng.choice(('Cafe', 'Casa', 'Little'))} {_coined(w)}"
            ),
        },
        (
            "Table {b} for {n}, {a} adults and {k} children, {t}",
            "{k} children and {a} adults, {t}, name {n}",
            "{n} has a table at {r} at {t} for {a} adults.",
            "Restaurant: {r}\nName: {n}\nAdults: {a}\nChildren: {k}\nTime: {t}",
            "Children: {k}\nAdults: {a}\nTable: {b}",
            "Hello {r},\nwe would like to come at {t}. We are {a} adults and {k} children.\nThanks\n{n}",
            "Dear {n},\nyour table is {b}. We expect you at {t}. Dogs are welcome.\n{r}",
            "With {k} kids and {a} adults we need a bit of space. {t} would be good. Table {b}?",
            "{t} {n} {a}+{k}, table {b}",
        ),
        (),
    ),
    Kind(  # a meal
        {
            "s": Slot(("starter", "first_course", "appetizer"), _dish),
            "m": Slot(("main_course", "main", "main_dish"), _dish),
            "d": Slot(("dessert", "sweet", "last_course"), _dish),
            "g": Slot(("guest", "name", "ordered_by"), Words.name),
            "p": Slot(("price", "menu_price", "total"), _cents(8, 90)),
        },
        (
            "Starter: {s}\nMain course: {m}\nDessert: {d}",
            "Dessert: {d}\nMain: {m}\nStarter: {s}\nPrice: {p}",
            "{g} had {s} as a starter and {m} as the main course.",
            "For the main course {g} takes {m}, and {d} for dessert.",
            "{g} would like {d} for dessert, and before that {m}.",
            "Menu of the day {p}: first {s}, then {m}, and {d} to finish",
            "After the {m} came {d}, and it all began with {s}. Everybody was full. {p} per person.",
            "{g}: main {m}, starter {s}",
            "{g}: no starter, main dish {m}, dessert {d}, {p} EUR",
            "We skip the soup of the day. {m} as main, then {d}, and {s} to start.",
        ),
        (),
    ),
    Kind(  # a race
        {
            "a": Slot(("winner", "first", "first_place"), _person),
            "b": Slot(("second", "second_place", "runner_up"), _person),
            "c": Slot(("third", "third_place", "bronze"), _person),
            "t": Slot(("winning_time", "time", "finish_time"), lambda w: f"{w.number(1, 59)}:{w.number(10, 59)}"),
            "k": Slot(("distance_km", "distance", "km"), _whole(1, 100)),
            "y": Slot(("runners", "participants", "starters"), _whole(4, 4000)),
        },
        (
            "1. {a}\n2. {b}\n3. {c}",
            "3. {c}\n2. {b}\n1. {a} ({t})",
            "{a} won the race over {k} km in {t}. {b} came second and {c} third.",
            "{b} finished second behind {a}. {y} people ran.",
            "Third was {c}, second {b}, first {a}.",
            "Distance: {k} km\nRunners: {y}\nWinner: {a}\nTime: {t}",
            "{y} runners stood at the line, the sun was out. {a} won in {t}. Second was {b}.",
            "Gold for {a}, silver for {b}, bronze for {c}!",
            "{k} km, {y} runners, winner {a} in {t}",
        ),
        (),
    ),
    Kind(  # a read meter
        {
            "o": Slot(("old_reading", "previous_reading", "last_reading", "start_reading"), _whole(10, 90000)),
            "n": Slot(("new_reading", "current_reading", "end_reading"), _whole(10, 90000)),
            "u": Slot(("usage_kwh", "consumption", "usage"), _whole(5, 9000)),
            "m": Slot(("meter_number", "meter", "meter_id"), _code),
            "d": Slot(("date", "read_on", "reading_date"), _iso),
        },
        (
            "Meter {m}: old {o}, new {n}, usage {u} kWh",
            "Meter {m}: new {n}, old {o}, read on {d}",
            "The meter {m} went from {o} to {n}.",
            "The meter shows {n} now. Last year it showed {o}. That makes {u} kWh.",
            "Last year it was {o}. Today, {d}, it is {n}.",
            "Current reading: {n}\nPrevious reading: {o}\nUsage: {u} kWh\nDate: {d}",
            "Previous reading: {o}\nCurrent reading: {n}\nMeter: {m}",
            "Good day,\nI read the meter {m} on {d}. It now says {n}, and we used {u} kWh.\nBest wishes",
            "{d} {m} {o} > {n} ({u} kWh)",
        ),
        (),
    ),
    Kind(  # a call
        {
            "a": Slot(("caller", "from", "called_by"), _person),
            "b": Slot(("called", "to", "callee", "answered_by"), _person),
            "m": Slot(("minutes", "duration_minutes", "duration"), _whole(1, 120)),
            "t": Slot(("time", "at", "started_at"), _clock),
            "x": Slot(("extension", "line", "phone_line"), _code),
        },
        (
            "{a} called {b} at {t}, {m} minutes.",
            "{b} was called by {a} at {t}.",
            "{b} got a call from {a} on line {x}. They talked for {m} minutes.",
            "Caller: {a}\nCalled: {b}\nDuration: {m} min\nTime: {t}",
            "To: {b}\nFrom: {a}\nLine: {x}",
            "{t} {a} -> {b} {m} min",
            "For {b}: {a} rang at {t} and asks you to ring back on {x}.",
            "At {t} the phone rang again. It was {a}, who wanted to talk to {b}. That took {m} minutes.",
            "{t} missed call for {b} from {a}",
            "{b} picked up when {a} called. It was {t}, and we were all at lunch.",
        ),
        (),
    ),
    Kind(  # a present
        {
            "g": Slot(("giver", "given_by", "from"), Words.name),
            "r": Slot(("receiver", "given_to", "to", "for"), Words.name),
            "p": Slot(("gift", "present", "item"), _product),
            "c": Slot(("cost", "price", "price_eur"), _price),
            "o": Slot(("occasion", "event", "reason"), lambda w: f"{made_up(w.rng)} {w.rng.choice(('day', 'party'))}"),
        },
        (
            "{g} gave {r} a {p} for the {o}.",
            "{r} got a {p} from {g}.",
            "{r} was given a {p} by {g}. It cost {c}.",
            "For {r} from {g}: a {p}",
            "From {g} to {r}: {p}, {c} euros",
            "Gift: {p}\nFor: {r}\nFrom: {g}\nPrice: {c} EUR",
            "Dear {g},\nthank you so much for the {p}! I use it every day.\nLove, {r}",
            "Dear {r},\nall the best for the {o}! I hope you like the {p}.\nYours, {g}",
            "The {p} is for {r}. {g} paid {c} for it.",
        ),
        (),
    ),
    Kind(  # a lease
        {
            "a": Slot(("landlord", "lessor", "rented_out_by"), _person),
            "b": Slot(("tenant", "renter", "rented_by"), _person),
            "h": Slot(("address", "flat", "property"), _street),
            "s": Slot(("start_date", "lease_start", "begins_on", "from"), _date),
            "t": Slot(("end_date", "lease_end", "ends_on", "until"), _date),
            "r": Slot(("rent", "monthly_rent", "rent_per_month"), _whole(200, 2800)),
        },
        (
            "{a} lets {h} to {b} for {r} a month.",
            "{b} rents {h} from {a} for {r} euros.",
            "Landlord: {a}\nTenant: {b}\nStart: {s}\nEnd: {t}",
            "Tenant: {b}\nLandlord: {a}\nRent: {r} EUR",
            "The lease of {h} ends on {t}. It began on {s}. The tenant is {b}.",
            "From {s} until {t} {b} lives at {h}. The landlord is {a}.",
            "Until {t} we pay {r} for {h}, since {s}.",
            "Dear {b},\nyour lease for {h} ends on {t}. Please leave the keys on the table.\n{a}",
            "Dear {a},\nI would like to stay at {h} after {t}. The rent of {r} is fine.\n{b}",
            "{b} is the tenant of {a}, {r} EUR a month",
        ),
        (),
    ),
    Kind(  # a plant in the garden
        {
            "p": Slot(("plant", "name", "variety"), lambda w: f"{w.colour()} {made_up(w.rng)}"),
            "s": Slot(("sow_month", "sowing", "sow_in"), lambda w: w.rng.choice(MONTHS)),
            "h": Slot(("harvest_month", "harvest", "harvest_in"), lambda w: w.rng.choice(MONTHS)),
            "d": Slot(("spacing_cm", "spacing", "distance_cm"), _whole(3, 90)),
            "t": Slot(("height_cm", "height", "grows_to_cm"), _whole(3, 250)),
        },
        (
            "{p}: sow in {s}, harvest in {h}, {d} cm apart",
            "Harvest {p} in {h} after you sow it in {s}.",
            "The {p} grows up to {t} cm high. Leave {d} cm between the plants.",
            "With {d} cm between them the {p} plants reach {t} cm.",
            "Plant: {p}\nSowing: {s}\nHarvest: {h}\nSpacing: {d} cm\nHeight: {t} cm",
            "Height: {t} cm\nSpacing: {d} cm\nHarvest: {h}\nSowing: {s}",
            "We sowed the {p} in {s}. It rained a lot. In {h} we could pick the first ones, {t} cm high.",
            "- {p}\n- harvest {h}\n- sow {s}",
            "In {h} you can eat the {p} that you put in the ground in {s}.",
        ),
        (),
    ),
    Kind(  # a hike
        {
            "a": Slot(("start", "start_place", "from", "starting_point"), _peak),
            "b": Slot(("end", "end_place", "to", "goal"), _peak),
            "k": Slot(("length_km", "length", "distance_km", "km"), _tenths(1, 40)),
            "u": Slot(("ascent_m", "ascent", "up_m"), _whole(10, 2400)),
            "d": Slot(("descent_m", "descent", "down_m"), _whole(10, 2400)),
            "h": Slot(("hours", "duration_hours", "walking_time"), _whole(1, 12)),
        },
        (
            "From {a} to {b}, {u} m up, {d} m down, {h} hours",
            "To {b} from {a}: {k} km in {h} hours",
            "We started at {a} and ended at {b}. It was {k} km.",
            "Our goal was {b}; we set off at {a}. {u} metres up and {d} metres down!",
            "Goal: {b}\nStart: {a}\nLength: {k} km\nTime: {h} h",
            "Descent: {d} m\nAscent: {u} m\nLength: {k} km",
            "Ascent {u} m, descent {d} m, {h} h",
            "My legs hurt. {u} metres up from {a}, and then {d} metres down to {b}. But the view!",
            "{a} - {b}: {k} km, +{u} m, -{d} m",
            "End at {b}, start at {a}, {h} hours of walking",
        ),
        (),
    ),
    Kind(  # tickets for a film
        {
            "f": Slot(("film", "movie", "title"), _film),
            "a": Slot(("adult_price", "price_adult", "price_adults"), _cents(4, 25)),
            "c": Slot(("child_price", "price_child", "price_children"), _cents(2, 20)),
            "r": Slot(("row", "row_number", "row_no"), _whole(1, 30)),
            "s": Slot(("seat", "seat_number", "seat_no"), _whole(1, 40)),
            "t": Slot(("time", "starts_at", "show_time"), _clock),
        },
        (
            "{f}, {t}, row {r}, seat {s}",
            "Seat {s}, row {r}: {f} at {t}",
            "{f}: adults {a}, children {c}",
            "Children pay {c} and adults {a} for {f}.",
            "Adults pay {a}, children only {c}. {f} starts at {t}.",
            "Film: {f}\nRow: {r}\nSeat: {s}\nChild price: {c} EUR\nAdult price: {a} EUR",
            "Seat: {s}\nRow: {r}\nTime: {t}",
            "We saw {f}. It was too loud for me. We sat in row {r}, I had seat {s}.",
            "Child {c} / adult {a} / {t}",
        ),
        (),
    ),
    Kind(  # a birth
        {
            "b": Slot(("child", "baby", "baby_name"), Words.name),
            "m": Slot(("mother", "mother_name", "mum"), _person),
            "f": Slot(("father", "father_name", "dad"), _person),
            "w": Slot(("weight_g", "weight", "grams"), _whole(1900, 4900)),
            "s": Slot(("length_cm", "length", "size_cm"), _whole(40, 59)),
            "d": Slot(("date", "born_on", "birth_date"), _day),
        },
        (
            "{b} was born on {d}. The mother is {m}, the father is {f}.",
            "The father is {f} and the mother is {m}. The baby is called {b}.",
            "{b}, {s} cm, {w} g, born {d}",
            "Child: {b}\nMother: {m}\nFather: {f}",
            "Father: {f}\nMother: {m}\nBorn on: {d}",
            "Hooray! {b} is here! {w} grams, {s} centimetres. Mother {m} is tired and happy.",
            "Mother {m} and father {f} tell you that {b} was born on {d}.",
            "{m} has a baby, {b}. Dad {f} cannot stop smiling. It weighs {w} g.",
            "{b} ({w} g, {s} cm), dad: {f}, mum: {m}",
        ),
        (),
    ),
    Kind(  # a share
        {
            "c": Slot(("company", "stock", "share", "name"), _company),
            "o": Slot(("open", "opening_price", "open_price"), _cents(2, 400)),
            "p": Slot(("close", "closing_price", "close_price"), _cents(2, 400)),
            "h": Slot(("high", "day_high", "highest_price"), _cents(2, 400)),
            "t": Slot(("low", "day_low", "lowest_price"), _cents(2, 400)),
            "v": Slot(("change_percent", "change", "percent"), _tenths(-9, 9)),
        },
        (
            "{c}: open {o}, close {p}, change {v}%",
            "{c} closed at {p} after opening at {o}.",
            "{c} opened at {o} and closed at {p}.",
            "Low: {t}\nHigh: {h}\nClose: {p}\nOpen: {o}",
            "High {h}, low {t}, close {p}: that was the day of {c}.",
            "The highest price of {c} was {h}, the lowest {t}.",
            "Never below {t} and never above {h}: {c} had a calm day. It closed at {p}.",
            "{c} {p} ({v}%)",
            "A change of {v} percent for {c}. In the morning it was {o}, in the evening {p}.",
        ),
        (),
    ),
    Kind(  # a parked car
        {
            "n": Slot(("plate", "licence_plate", "number_plate", "car"), _code),
            "a": Slot(("entry", "entry_time", "entered_at", "in"), _clock),
            "b": Slot(("exit", "exit_time", "left_at", "out"), _clock),
            "f": Slot(("fee", "price", "paid"), _cents(0, 60)),
            "p": Slot(("space", "parking_space", "spot"), _place_code),
        },
        (
            "{n} in {a} out {b} fee {f}",
            "{n} out {b} in {a} space {p}",
            "{n} left at {b}, entered at {a}, space {p}",
            "The car {n} came in at {a} and left at {b}.",
            "The car {n} left at {b}. It had come in at {a} and stood on space {p}.",
            "Plate: {n}\nEntry: {a}\nExit: {b}\nFee: {f} EUR",
            "Exit: {b}\nEntry: {a}\nSpace: {p}",
            "I parked on space {p} at {a} and had to pay {f} when I left at {b}.",
            "Thank you for parking with us! Your car {n} stood here until {b}. The fee is {f} euros.",
        ),
        (),
    ),
    Kind(  # a request to a support desk
        {
            "c": Slot(("customer", "reported_by", "requester"), _person),
            "a": Slot(("assigned_to", "agent", "assignee", "handled_by"), _person),
            "t": Slot(("ticket", "ticket_number", "ticket_id"), _code),
            "p": Slot(("product", "device", "affected_product"), _product),
            "o": Slot(("opened", "opened_on", "reported_on"), _iso),
            "d": Slot(("closed", "closed_on", "solved_on"), _iso),
        },
        (
            "Ticket {t}: reported by {c}, assigned to {a}, {p}",
            "Ticket {t}: assigned to {a}, reported by {c}, opened {o}",
            "{a} solved the ticket {t} of {c} on {d}.",
            "{c} wrote on {o} about the {p}. {a} answered and closed it on {d}.",
            "Closed: {d}\nOpened: {o}\nTicket: {t}",
            "Opened: {o}\nClosed: {d}\nCustomer: {c}\nAgent: {a}",
            "Dear {c},\nthank you for your message about the {p}. Your number is {t}.\nKind regards\n{a}",
            "{t} opened={o} closed={d} assignee={a}",
            "Closed on {d}, opened on {o}: {t}, {p}.",
        ),
        (),
    ),
)
