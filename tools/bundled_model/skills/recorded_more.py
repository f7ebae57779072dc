"""Still further kinds of records, with flags and distractors, records with records in them, and ways to ask for them.

What is not asked for but stands beside it, of the same type, has a slot without keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from words import DAYS, MONTHS, NUMBER_WORDS, Words, listed, made_up

from skills.extraction_kinds import Kind, Slot, written
from skills.recorded import (
    _cents,
    _clock,
    _code,
    _coined,
    _company,
    _date,
    _day,
    _dish,
    _film,
    _host,
    _iso,
    _person,
    _place_code,
    _room,
    _street,
    _subject,
    _surname,
    _team,
    _tenths,
    _whole,
)


def _flag(words: Words) -> bool:
    return words.rng.random() < 0.5


def _one(*options: str) -> Callable[[Words], str]:
    """One of these, now and then a word that nobody knows."""
    return lambda words: made_up(words.rng) if words.rng.random() < 0.15 else words.rng.choice(options)


def _of(*options: str) -> Callable[[Words], str]:
    """One of these."""
    return lambda words: words.rng.choice(options)


def _few(words: Words, value: Any) -> str:
    """A small number, now and then as a word."""
    return NUMBER_WORDS[value] if 1 < value < len(NUMBER_WORDS) and words.rng.random() < 0.4 else str(value)


def _grouped(words: Words, value: Any) -> str:
    """A big number, now and then with commas."""
    return f"{value:,}" if words.rng.random() < 0.4 else str(value)


def _few_of(low: int, high: int, *keys: str) -> Slot:
    return Slot(keys, _whole(low, high), _few)


def _many_of(low: int, high: int, *keys: str) -> Slot:
    return Slot(keys, _whole(low, high), _grouped)


def _flag_of(*keys: str) -> Slot:
    return Slot(keys, _flag)


def _goals(words: Words) -> int:
    """How many, but not one."""
    return words.rng.choice((0, 2, 3, 4, 5, 6, 7, 8, 9))


def _weekday(words: Words) -> str:
    return words.rng.choice(DAYS)


def _month(words: Words) -> str:
    return words.rng.choice(MONTHS)


def _mail(words: Words) -> str:
    rng, name = words.rng, words.name().lower()
    before = rng.choice((name, f"{name}.{made_up(rng)}", f"{name[0]}.{made_up(rng)}", f"{name}{words.number(1, 99)}"))
    return f"{before}@{rng.choice(('mail', 'post', made_up(rng), made_up(rng)))}.{rng.choice(('com', 'org', 'net'))}"


def _phone(words: Words) -> str:
    rng = words.rng
    return rng.choice(
        (
            f"0{words.digits(3)} {words.digits(5)}",
            f"0{words.digits(2)}/{words.digits(6)}",
            words.digits(6),
            f"{words.digits(3)} {words.digits(3)} {words.digits(2)}",
        )
    )


def _town(words: Words) -> str:
    rng, coined = words.rng, _coined(words)
    if rng.random() < 0.7:
        return words.city()
    return rng.choice((f"Bad {coined}", f"{coined} am See", f"São {coined}", f"{coined}-sur-Mer", f"Ober{coined[1:]}ü"))


def _address(words: Words) -> str:
    """Of a machine."""
    return ".".join(str(words.number(0, 255)) for _ in range(4))


def _version(words: Words) -> str:
    parts = [str(words.number(0, 20)) for _ in range(words.rng.choice((2, 3, 3)))]
    return words.rng.choice(("", "", "v")) + ".".join(parts)


def _file(words: Words) -> str:
    rng = words.rng
    ending = rng.choice(("py", "js", "txt", "csv", "pdf", "log", "yaml"))
    return f"{rng.choice(('', '', 'src/', 'data/', made_up(rng) + '/'))}{made_up(rng)}.{ending}"


def _moment(words: Words) -> str:
    second = f":{words.number(0, 59):02d}" if words.rng.random() < 0.5 else ""
    return f"{_iso(words)} {words.number(0, 23):02d}:{words.number(0, 59):02d}{second}"


def _furniture(words: Words) -> str:
    rng = words.rng
    noun = rng.choice(("sofa", "table", "bookshelf", "desk", "bed", "armchair", "cupboard", "pram", "fridge", "piano"))
    return f"{rng.choice((words.colour(), 'old', 'wooden', 'small', 'round', made_up(rng)))} {noun}"


def _ware(words: Words) -> str:
    """Something that is sold by the piece, without a capital."""
    rng = words.rng
    noun = rng.choice(("kettle", "lamp", "backpack", "drill", "tent", "scarf", "pan", "radio", "toaster", made_up(rng)))
    return f"{rng.choice((words.colour(), words.colour(), 'small', 'large', 'foldable', made_up(rng)))} {noun}"


def _task(words: Words) -> str:
    rng = words.rng
    return rng.choice(
        (
            f"order the {made_up(rng)}",
            f"clean the {made_up(rng)}",
            f"call the {words.job()}",
            f"print the {words.colour()} posters",
            f"write to {_coined(words)}",
            f"book {_coined(words)} Hall",
            f"repair the {made_up(rng)}",
        )
    )


def _plant(words: Words) -> str:
    rng = words.rng
    return rng.choice((f"{words.colour()} {made_up(rng)}", f"{made_up(rng)} palm", f"{made_up(rng)} fern"))


def _band(words: Words) -> str:
    rng = words.rng
    return rng.choice(
        (
            f"The {_coined(words)}s",
            f"{_coined(words)} Quartet",
            f"{_coined(words)} and the {made_up(rng).capitalize()}s",
            f"{_coined(words)} {_coined(words)}",
        )
    )


def _language(words: Words) -> str:
    return words.rng.choice(
        ("English", "German", "French", "Spanish", "Polish", "Dutch", "Greek", "Turkish", "Japanese", _coined(words))
    )


def _topic(words: Words) -> str:
    rng, coined = words.rng, made_up(words.rng)
    return rng.choice(
        (
            f"{coined} plan",
            f"{coined} report",
            f"{rng.choice(('new', 'second', 'final'))} {coined} offer",
            f"trip to {words.city()}",
            f"{coined} meeting",
            f"keys for the {coined}",
        )
    )


MORE_RECORDED: tuple[Kind, ...] = (
    Kind(  # an e-mail about somebody
        {
            "s": Slot(("sender", "from", "author", "written_by"), _person),
            "r": Slot(("recipient", "to", "receiver", "addressee"), _person),
            "p": Slot(("about", "person_mentioned", "third_person", "mentioned"), _person),
            "t": Slot(("subject", "topic", "subject_line"), _topic),
            "d": Slot(("date", "sent_on", "day"), _day),
        },
        (
            "From: {s}\nTo: {r}\nSubject: {t}\n\nHave you heard from {p}?",
            "From: {s}\nTo: {r}\nSubject: (none){-t}\n\nIs {p} back from the sea?",
            "To: {r}\nFrom: {s}\nSent: {d}\n\n{p} needs the papers back, please.",
            "Hi {r}, {p} is ill today, so do not wait. Best, {s}",
            "Dear {r},\n\nas you know, {p} leaves us soon. Let us talk about the {t}.\n\nKind regards\n{s}",
            "{s} wrote to {r} that {p} has a cold.",
            "{r} got a mail from {s} on {d}. It says that {p} has found a new job.",
            "On {d} {r} read in a mail from {s} that {p} is coming.",
            "{p} is fine, that is what {s} tells {r}.",
            "Subject: {t}\nFrom: {s}\nTo: {r}\nDate: {d}",
            "Re: {t}\n\nThanks {r}! I will ask {p} about it.\n{s}",
            "hey {r}, did u talk to {p} yet? we need an answer about the {t}. cheers {s}",
            "{r}, this is {s}. Please tell nobody, but {p} won the prize.",
        ),
        (),
    ),
    Kind(  # a line of a chat
        {
            "s": Slot(("user", "sender", "nick", "said_by"), Words.name),
            "r": Slot(("addressed", "to", "mentioned", "at_user"), Words.name),
            "t": Slot(("time", "sent_at", "clock"), _clock),
            "c": Slot(("channel", "room", "group"), lambda w: f"{made_up(w.rng)}"),
            "u": _few_of(2, 30, "unread", "unread_messages", "new_messages"),
        },
        (
            "[{t}] {s}: @{r} are you there?",
            "[{t}] #{c} {s}: thanks @{r}, got it",
            "#{c}\n{s} ({t}): @{r} lunch?",
            "{s} to {r} in #{c}: the door is open again",
            "@{r} was called by {s} in #{c} at {t}.",
            "{u} unread messages in #{c}. The last one is from {s}, at {t}.",
            "{t} <{s}> {r}: pls look at this",
            "In #{c} {r} was greeted by {s}; the clock said {t}.",
            "channel={c} from={s} to={r} unread={u}",
            "You have {u} new messages. {s} said hello to {r}.",
        ),
        (),
    ),
    Kind(  # a message to pass on
        {
            "c": Slot(("caller", "called", "from", "who_called"), _person),
            "f": Slot(("for", "message_for", "recipient", "to"), Words.name),
            "b": Slot(("call_back", "callback_person", "ask_for"), _person),
            "n": Slot(("phone", "number", "callback_number"), _phone),
            "u": _flag_of("urgent", "is_urgent"),
        },
        (
            "{f}, while you were out {c} rang. {u?It is urgent.|It is not urgent.} The number is {n}.",
            "Message for {f}: {c} called, please ring {b} back on {n}.",
            "Please ring {b}, {n}. {c} asked me to tell you so, {f}. {u?Do it at once!|It can wait.}",
            "Can you tell {f} that {c} rang? {u?It cannot wait until tomorrow.|There is no hurry.}",
            "Phone note\nFor: {f}\nCaller: {c}\nNumber: {n}\nUrgent: {u?yes|no}",
            "Phone note\nCaller: {c}\nFor: {f}\nAsk for: {b}",
            "There was a call by {c} for {f}. I wrote down {n}. {b} will pick up.",
            "{n} is where {f} can reach {b}. {c} said so on the phone.",
            "{u?URGENT! |no rush: }{f} pls call {b} at {n}",
            "Hi {f}! {c} was on the phone. {u?You have to call back right now.|Call back when you like.}",
        ),
        (),
    ),
    Kind(  # a bill with tax
        {
            "n": Slot(("net", "net_amount", "subtotal", "amount_before_tax"), _cents(3, 900)),
            "t": Slot(("tax", "tax_amount", "vat"), _cents(1, 190)),
            "g": Slot(("total", "gross_amount", "total_amount", "amount_due"), _cents(4, 1100)),
            "p": Slot(("tax_rate", "vat_percent", "tax_percent"), _whole(3, 25)),
            "q": _few_of(2, 40, "items", "item_count", "number_of_items"),
            "c": _flag_of("paid_by_card", "card_payment", "card"),
        },
        (
            "Net {n}, tax {t}, total {g}",
            "Total {g} (net {n} plus {p}% tax, that is {t})",
            "{q} items\nSubtotal {n}\nVAT {p}% {t}\nTotal {g}\n{c?Paid by card|Paid in cash}",
            "TOTAL EUR {g}\nincl. {p} % VAT EUR {t}\nnet EUR {n}",
            "We bought {q} things and paid {g} euros, {c?by card|in cash}. Without tax it would have been {n}.",
            "Before tax it is {n}; with tax it is {g}. The tax is {t}.",
            "{g} to pay, {t} of it is tax.",
            "The tax of {t} comes on top of {n}. Please pay {g} within two weeks.",
            "{c?card|cash} | {q} pcs | net {n} | gross {g}",
            "You paid {g}. The tax rate was {p} percent. {c?The money went off your card.|Thank you for the coins!}",
            "tax: {t}; rate: {p}%; sum without tax: {n}",
        ),
        (),
    ),
    Kind(  # an ad in the paper
        {
            "t": Slot(("item", "object", "title", "for_sale"), _furniture),
            "p": _many_of(5, 1900, "price", "asking_price", "price_eur"),
            "n": _flag_of("negotiable", "price_negotiable"),
            "k": _flag_of("pickup_only", "must_be_collected"),
            "c": Slot(("city", "location", "place", "town"), _town),
            "z": Slot(("age_years", "age", "years_old"), _whole(2, 30)),
        },
        (
            "For sale: {t}, {p} euros, {n?price negotiable~or best offer|fixed price~no offers please}. {c}.",
            "{c}: {t}, {z} years old, {p} EUR. {k?Pick-up only, I cannot ship it.|I can also send it.}",
            "Selling my {t} for {p}. {n?We can talk about the price.|The price is final.} {z} years old.",
            "{p} euros for {a_t} of {z} years. {k?You have to fetch it in|I will bring it to you from} {c}.",
            "{t} / {p} € / {n?negotiable|not negotiable} / {k?pick-up only|shipping possible}",
            "{t} in {c}, {z} years old. Price on request.{-p}",
            "{t}, {p} euros. I do not know how old it is.{-z}",
            "We are moving and need space. The {t} can be yours for {p} euros,"
            " {n?and less if you are nice|not a cent less}.",
            "Item: {t}\nAge: {z} years\nPrice: {p} EUR\nNegotiable: {n?yes|no}\nPickup only: {k?yes|no}",
            "Anyone in {c} looking for {a_t}? Had it for {z} years. {p} euro {n?make me an offer|price is firm}.",
            "{z} years old, {p} euros, {c}: {t}. {k?Please come with a van.|Delivery is included.}",
            "WANTED no more, so I sell: {t}. {k?Collection only.|Can post.} {p}.",
        ),
        (),
    ),
    Kind(  # an outage
        {
            "s": Slot(("service", "system", "component", "affected_service"), lambda w: f"{made_up(w.rng)} service"),
            "a": Slot(("started", "start_time", "began_at", "down_since"), _clock),
            "b": Slot(("resolved", "end_time", "fixed_at", "up_again"), _clock),
            "u": _many_of(2, 90000, "affected_users", "users", "users_hit"),
            "v": Slot(("severity", "priority", "level"), _of("low", "medium", "high", "critical")),
            "o": Slot(("on_call", "engineer", "fixed_by", "responder"), _person),
            "z": Slot((), _person),
        },
        (
            "Incident: {s} down from {a} to {b}, severity {v}, {u} users affected.",
            "The {s} was up again at {b}. It had failed at {a}. {o} fixed it.",
            "Severity {v}. {o} was on call and repaired the {s} by {b}.",
            "{z} noticed at {a} that the {s} did not answer. {o} solved it at {b}.",
            "{u} users could not use the {s}. {z} reported it, {o} fixed it. Severity: {v}",
            "Service: {s}\nStarted: {a}\nResolved: {b}\nPriority: {v}",
            "Resolved: {b}\nStarted: {a}\nEngineer: {o}\nReported by: {z}",
            "Postmortem. Nobody was hurt. {o} took over from {z} and had the {s} running at {b}; {u} users were hit.",
            "{v} | {s} | {a} > {b} | {u} users | {o}",
            "Since {a} the {s} has been down. Nobody knows when it will be up again.{-b} Severity {v}.",
            "The {s} is back since {b}. We could not find out when it began.{-a} {o} was on call.",
            "since {a} the {s} is dead, {u} ppl complain, prio {v}. {o} is on it",
        ),
        (),
    ),
    Kind(  # an error of a program
        {
            "n": Slot(("error", "error_type", "exception"), lambda w: f"{_coined(w)}Error"),
            "f": Slot(("file", "file_name", "path", "source_file"), _file),
            "k": Slot(("line", "line_number", "line_no"), _whole(1, 2400)),
            "c": Slot(("column", "column_number", "col"), _whole(1, 119)),
            "v": Slot(("version", "app_version", "release"), _version),
            "q": Slot(("function", "function_name", "method"), lambda w: f"{made_up(w.rng)}_{made_up(w.rng)}"),
        },
        (
            "{n} in {f}, line {k}",
            'File "{f}", line {k}, in {q}\n{n}',
            "{f}:{k}:{c}: {n}",
            "{n} at column {c} of line {k} of {f}",
            "Version {v} stops with {n}. The function {q} in {f} is to blame.",
            "I get {n} every time! It points to {f}, line {k}, column {c}. I use {v}.",
            "Since I have {v}, {q} fails in line {k}. It says {n}.",
            "error={n} fn={q} line={k} col={c}",
            "Line {k}, column {c}: {n} (thrown by {q})",
            "In {q} something goes wrong: {n}. Look at line {k}, please, not only at column {c}.",
        ),
        (),
    ),
    Kind(  # a request in a log
        {
            "m": Slot(("method", "http_method", "verb"), _of("GET", "POST", "PUT", "DELETE", "PATCH")),
            "p": Slot(("path", "url", "endpoint", "route"), lambda w: f"/{made_up(w.rng)}/{w.number(1, 999)}"),
            "s": Slot(("status", "status_code", "code"), lambda w: w.rng.choice((200, 201, 204, 301, 400, 404, 500))),
            "d": Slot(("duration_ms", "ms", "took_ms", "latency_ms"), _whole(1, 9000)),
            "a": Slot(("ip", "client_ip", "remote_address", "client"), _address),
            "b": _many_of(12, 90000, "bytes", "size_bytes", "response_bytes"),
        },
        (
            '{a} "{m} {p}" {s} {b}',
            "{m} {p} -> {s} in {d} ms",
            "{s} {m} {p} {d}ms {b}B {a}",
            "status={s} method={m} path={p} duration={d}ms ip={a}",
            "ip={a} bytes={b} duration={d}ms status={s}",
            "The client {a} sent {m} {p} and got a {s} after {d} milliseconds.",
            "After {d} ms the server answered {s} to {m} {p}.",
            "It returned {b} bytes with status {s}. The call was {m} {p}.",
            "Why does {p} give {s}? I use {m}. It takes {d} ms each time.",
            "{d} ms, {b} bytes, {s}: {m} {p}",
        ),
        (),
    ),
    Kind(  # another line of a log
        {
            "t": Slot(("timestamp", "time", "logged_at", "when"), _moment),
            "v": Slot(("level", "severity", "log_level"), _of("INFO", "WARN", "ERROR", "DEBUG", "warning", "error")),
            "c": Slot(("component", "module", "logger", "source"), lambda w: f"{made_up(w.rng)}.{made_up(w.rng)}"),
            "u": Slot(("user", "user_name", "account"), lambda w: f"{made_up(w.rng)}{w.number(1, 99)}"),
            "n": _few_of(2, 20, "attempts", "tries", "retry_count"),
            "p": Slot(("process_id", "pid"), _whole(100, 32000)),
        },
        (
            "{t} {v} {c}: login of {u} failed after {n} attempts",
            "{t} [{v}] {c} user={u} tries={n}",
            "{v} {t} ({c}) {u} logged out",
            "<{v}> {c}[{p}]: user {u} unknown",
            "[{p}] {t} {c} {v}: gave up after {n} tries",
            '{{"ts": "{t}", "lvl": "{v}", "src": "{c}", "pid": {p}}}',
            "{c} - {v} - {u} was locked after {n} failed attempts",
            "pid={p} level={v} user={u} at {t}",
            "At {t} the process {p} of {u} wrote: {v}",
            "{u} tried it {n} times. Then {c} wrote this ({v}) at {t}.",
        ),
        (),
    ),
    Kind(  # a label for the customs
        {
            "a": Slot(
                ("sent_from", "origin", "origin_country", "country_from"), _one("Chile", "Kenya", "Norway", "Japan")
            ),
            "b": Slot(("sent_to", "destination", "country_to"), _one("Italy", "Canada", "Egypt", "Peru", "India")),
            "v": _many_of(2, 3000, "declared_value", "value", "value_usd"),
            "w": Slot(("gross_weight_kg", "gross_weight", "weight_with_box"), _tenths(1, 40)),
            "m": Slot(("net_weight_kg", "net_weight", "weight_without_box"), _tenths(0, 39)),
            "f": _flag_of("fragile", "is_fragile", "handle_with_care"),
            "g": Slot(("contents", "goods", "content"), Words.items),
        },
        (
            "{g} from {a} to {b}, value {v} USD, {f?FRAGILE|not fragile}",
            "To {b} from {a}. Gross {w} kg, net {m} kg. {f?Handle with care!|No special care needed.}",
            "Net weight: {m} kg\nGross weight: {w} kg\nContents: {g}\nFragile: {f?yes|no}",
            "Contents: {g}\nDeclared value: ${v}\nOrigin: {a}\nDestination: {b}",
            "The box goes to {b}. It is full of {g} and was packed in {a}."
            " {f?Please do not throw it.|It can take a knock.}",
            "With the box it weighs {w} kg, without it {m}. The goods are worth {v} dollars.",
            "{m} kg of {g} in a box, {w} kg in all, worth {v}",
            "{b} <- {a} | {g} | {w} kg gross | {f?breakable|unbreakable}",
            "Destination {b}, origin {a}, gross {w} kg, net {m} kg",
            "We declare {g} at ${v}. {f?There is glass in it.|Nothing in it can break.} Country of origin: {a}.",
        ),
        (),
    ),
    Kind(  # a goal
        {
            "s": Slot(("scorer", "goal_by", "scored_by"), _surname),
            "a": Slot(("assist", "pass_by", "set_up_by"), _surname),
            "k": Slot(("keeper", "goalkeeper", "goalie"), _surname),
            "t": Slot(("team", "scoring_team", "for_team"), _team),
            "o": Slot(("opponent", "conceding_team", "against"), _team),
            "m": Slot(("minute", "match_minute", "min"), _whole(2, 93)),
            "p": _flag_of("penalty", "was_penalty"),
        },
        (
            "{m}' goal for {t}! {s}, assist {a}",
            "Minute {m}: {a} passes, {s} scores for {t} against {o}.",
            "{k} had no chance when {s} scored in minute {m}.",
            "{t} lead against {o}. {s} {p?scored from the penalty spot|scored from open play} in minute {m}.",
            "{o} concede in minute {m}. {s} scores for {t} after a pass by {a}.",
            "After a fine pass by {a}, {s} beat {k}.",
            "{k} could only watch. {s} scored for {t}. {p?A penalty, of course.|No penalty, a real goal.}",
            "Scorer: {s}\nAssist: {a}\nMinute: {m}\nTeam: {t}",
            "Keeper: {k}\nScorer: {s}\nPenalty: {p?yes|no}",
            "{s} ({m}., {p?penalty|header}) past {k}",
        ),
        (),
    ),
    Kind(  # a game with points
        {
            "h": Slot(("home_team", "home", "hosts"), _town),
            "a": Slot(("away_team", "away", "visitors"), _town),
            "p": Slot(("home_points", "points_home", "home_score"), _whole(40, 130)),
            "q": Slot(("away_points", "points_away", "away_score"), _whole(40, 130)),
            "t": Slot(("top_scorer", "best_player", "most_points_by"), _person),
            "n": Slot(("top_scorer_points", "points_of_top_scorer", "best_player_points"), _whole(12, 39)),
            "o": _flag_of("overtime", "went_to_overtime"),
        },
        (
            "{h} (home) {p}, {a} (away) {q}",
            "{a} visited {h} and made {q} points, {h} made {p}.",
            "Away {a} {q}\nHome {h} {p}\nTop scorer {t} ({n})",
            "{h} hosted {a}: {p} to {q}. {t} had {n} points.",
            "The guests from {a} scored {q}, the hosts from {h} {p}{o? after overtime|, no overtime needed}.",
            "{t} threw {n} points, more than anybody else. {a} travelled to {h} and got {q}, {h} got {p}.",
            "{n} points for {t}! {h}, at home, scored {p} against {a}.",
            "Final: {p} for {h}, {q} for the visitors {a}. {o?It took an extra period.|It was over in normal time.}",
            "{a} @ {h}: {a} {q}, {h} {p}",
            "home: {h} / away: {a} / points home {p} / points away {q} / overtime {o?yes|no}",
        ),
        (),
    ),
    Kind(  # work by the hour
        {
            "t": Slot(("job", "position", "job_title", "role"), Words.job),
            "a": Slot(("pay_from", "min_pay", "hourly_min", "lowest_pay"), _whole(9, 24)),
            "b": Slot(("pay_to", "max_pay", "hourly_max", "highest_pay"), _whole(25, 60)),
            "h": _few_of(4, 40, "hours_per_week", "weekly_hours", "hours"),
            "r": _flag_of("remote", "work_from_home", "remote_possible"),
            "m": _flag_of("permanent", "is_permanent"),
            "y": _few_of(2, 12, "experience_years", "years_of_experience", "experience"),
            "c": Slot(("city", "location", "place"), _town),
        },
        (
            "Wanted in {c}: {t}, {a} to {b} euros per hour, {h} hours a week.",
            "We look for {a_t} ({m?permanent|for one year only}), {h} h/week,"
            " {r?you may work from home|no home office}.",
            "Pay: {a} to {b} per hour\nHours: {h}\nRemote: {r?yes|no}\nExperience: {y} years",
            "Job: {t}\nPlace: {c}\nContract: {m?permanent|temporary}\nPay: from {a} up to {b}",
            "We need {a_t} in {c}, {h} hours a week. The pay depends on you.{-a}{-b}",
            "{t}, {c}. Pay: {a} to {b} per hour. Hours: as you like{-h}.",
            "Up to {b} euros an hour, at least {a}. {h} hours per week. {r?Fully remote.|On site only.}",
            "You have {y} years behind you as {a_t}? Then come to {c}. We pay no less than {a} and no more than {b}.",
            "Earn {b} an hour at most, {a} to begin with, as {a_t} in {c}.",
            "in {c} they need {a_t}, {h} hrs, {a} to {b} an hour, {r?from home is ok|not from home}",
            "A {m?permanent|temporary} post for people with {y} years of experience, {h} hours a week. {c}.",
            "Hours: {h}. Maximum pay: {b}. Minimum pay: {a}. Years of experience: {y}.",
        ),
        (),
    ),
    Kind(  # a flat with what belongs to it
        {
            "k": _many_of(250, 2400, "cold_rent", "rent_without_heating", "base_rent"),
            "w": _many_of(300, 2900, "warm_rent", "rent_with_heating", "total_rent"),
            "r": _few_of(2, 7, "rooms", "number_of_rooms", "room_count"),
            "m": _flag_of("furnished", "is_furnished"),
            "p": _flag_of("pets_allowed", "pets", "animals_allowed"),
            "b": _flag_of("balcony", "has_balcony"),
            "d": Slot(("available_from", "free_from", "move_in"), _date),
            "s": Slot(("floor", "storey", "level"), _whole(1, 14)),
        },
        (
            "Flat, {r} rooms, floor {s}, {m?furnished|unfurnished}, {p?pets welcome|no pets}, free from {d}.",
            "{p?Your dog may move in too.|Sorry, no animals.} The flat has {r} rooms and {b?a balcony|no balcony}.",
            "Rent {k} without heating, {w} with heating. {m?All the furniture stays.|It comes empty.}",
            "{w} with heating, {k} without. From {d}. {b?With a sunny balcony.|Without a balcony, sadly.}",
            "Rooms: {r}\nCold rent: {k}\nWarm rent: {w}\nFurnished: {m?yes|no}\nPets: {p?allowed|not allowed}",
            "Warm: {w} EUR\nCold: {k} EUR\nFloor: {s}\nBalcony: {b?yes|no}",
            "nice flat, {r} rooms, {p?cats are ok|no cats no dogs}, {m?with furniture|without furniture}, {w}"
            " all in, {k} cold",
            "From {d} you can have {r} rooms on floor {s}. {b?You will love the balcony.|There is no balcony.}"
            " {p?Pets are fine.|We want no pets.}",
            "Is it furnished? {m?Yes.|No.} Can I bring my rabbit? {p?Yes.|No.} Is there a balcony? {b?Yes.|No.}",
            "Is there a balcony? {b?Sure.|Not at all.} Is it furnished? {m?Of course.|No, empty.} And the rent?"
            " {k} cold.",
        ),
        (),
    ),
    Kind(  # a holiday house
        {
            "n": Slot(
                ("house", "name", "house_name"), lambda w: f"{_coined(w)} {w.rng.choice(('Cottage', 'House', 'Hut'))}"
            ),
            "g": _few_of(2, 16, "sleeps", "guests", "max_guests", "beds_for"),
            "b": _few_of(2, 9, "bedrooms", "number_of_bedrooms"),
            "t": _few_of(2, 6, "bathrooms", "number_of_bathrooms"),
            "w": Slot(("to_beach_m", "beach_distance_m", "metres_to_beach"), lambda w: 50 * w.number(1, 38)),
            "s": Slot(("to_shop_m", "shop_distance_m", "metres_to_shop"), lambda w: 50 * w.number(1, 60)),
            "d": _flag_of("dogs_allowed", "dogs", "pets_allowed"),
            "p": _many_of(200, 3200, "price_per_week", "weekly_price", "week_price"),
        },
        (
            "{n}: for {g} guests, {b} bedrooms, {t} bathrooms, {p} euros a week.",
            "{n} has {t} bathrooms and {b} bedrooms. {d?Dogs are welcome.|Please leave your dog at home.}",
            "It is {w} m to the beach and {s} m to the nearest shop.",
            "The shop is {s} m away, the beach {w} m. {n} costs {p} per week.",
            "Guests: {g}\nBedrooms: {b}\nBathrooms: {t}\nDogs: {d?yes|no}",
            "Bathrooms: {t}\nBedrooms: {b}\nBeach: {w} m\nShop: {s} m",
            "We were there with {g} people and {d?two happy dogs|no dog, as the rules want it}. {w} m and you"
            " are in the sea!",
            "{p} a week for {b} bedrooms. From {n} you walk {w} m to swim and {s} m to buy bread.",
            "Buy bread {s} m from here, swim after {w} m. {g} can sleep at {n}.",
            "{g} people, {t} bathrooms, {p} EUR/week, {d?dogs ok|no dogs}",
        ),
        (),
    ),
    Kind(  # what goes into a dough
        {
            "d": Slot(("dish", "name", "recipe"), _dish),
            "f": Slot(("flour_g", "flour", "grams_of_flour"), lambda w: 10 * w.number(5, 90)),
            "s": Slot(("sugar_g", "sugar", "grams_of_sugar"), lambda w: 5 * w.number(2, 70)),
            "b": Slot(("butter_g", "butter", "grams_of_butter"), lambda w: 5 * w.number(2, 60)),
            "m": Slot(("milk_ml", "milk", "ml_of_milk"), lambda w: 10 * w.number(3, 80)),
            "g": _few_of(2, 9, "eggs", "number_of_eggs", "egg_count"),
            "v": _flag_of("vegetarian", "is_vegetarian"),
        },
        (
            "{d}: {f} g flour, {s} g sugar, {g} eggs",
            "For {d} you need {g} eggs, {m} ml milk and {f} g flour.",
            "{s} g sugar\n{b} g butter\n{g} eggs\n{m} ml milk",
            "Butter {b} g, sugar {s} g, flour {f} g, milk {m} ml",
            "Beat {s} grams of sugar with {b} grams of butter. Add {g} eggs, then {f} grams of flour.",
            "First warm {m} ml of milk. Then stir in {f} g of flour and {b} g of butter. Let it rest.",
            "The {d} {v?has no meat in it|has bacon in it} and needs {b} g of butter and {s} g of sugar.",
            "My grandmother took {g} eggs where others take one. The {d} also has {f} g of flour."
            " {v?No meat.|And sausage.}",
            "Vegetarian: {v?yes|no}\nMilk: {m} ml\nFlour: {f} g\nEggs: {g}",
            "More butter ({b} g) than you think, less sugar ({s} g). Flour: {f} g.",
        ),
        (),
    ),
    Kind(  # an appointment that was moved
        {
            "w": Slot(("appointment", "what", "event"), _one("haircut", "check-up", "viewing", "interview", "fitting")),
            "o": Slot(("old_date", "original_date", "previous_date", "moved_from"), _day),
            "n": Slot(("new_date", "date_now", "moved_to", "rescheduled_to"), _day),
            "t": Slot(("new_time", "time", "time_now"), _clock),
            "p": Slot(("client", "customer", "for"), _person),
            "m": Slot(("moved_by", "changed_by", "asked_by"), _person),
        },
        (
            "The {w} of {p} was moved from {o} to {n}.",
            "Not {o} but {n} at {t}: that is when {p} has the {w}.",
            "{n} instead of {o} for the {w}, {t}",
            "{m} moved the {w} of {p} to {n}. It had been on {o}.",
            "Dear {p},\nwe have to cancel {o}. Can you come on {n} at {t} for your {w}?\nBest wishes\n{m}",
            "The new date is {n}. The old one was {o}. {m} changed it.",
            "The old date was {o}. The new one is {n}, {t}. {p} knows.",
            "Old: {o}\nNew: {n}\nTime: {t}\nClient: {p}",
            "New: {n}\nOld: {o}\nWhat: {w}",
            "hey, {o} doesnt work for {p}, so {w} is {n} now, {t}",
            "It was meant to be on {o}. Then {m} phoned, and we said {n}.",
        ),
        (),
    ),
    Kind(  # before and after
        {
            "w": Slot(("page", "what", "name", "query"), lambda w: f"{made_up(w.rng)} page"),
            "a": Slot(("before_ms", "ms_before", "old_ms", "load_time_before"), _whole(2000, 9000)),
            "b": Slot(("after_ms", "ms_after", "new_ms", "load_time_after"), _whole(20, 1900)),
            "m": Slot(("memory_before_mb", "memory_before", "old_memory_mb"), _whole(900, 3000)),
            "n": Slot(("memory_after_mb", "memory_after", "new_memory_mb"), _whole(20, 890)),
            "v": Slot(("version", "since_version", "release"), _version),
        },
        (
            "The {w} took {a} ms before, {b} ms after.",
            "After the change the {w} needs {b} ms; before it needed {a} ms.",
            "{w}: {a} ms → {b} ms",
            "{b} ms now, {a} ms until last week ({w})",
            "Before: {a} ms, {m} MB\nAfter: {b} ms, {n} MB",
            "After: {b} ms, {n} MB\nBefore: {a} ms, {m} MB\nVersion: {v}",
            "With {v} the memory went down to {n} MB from {m} MB.",
            "It went from {m} MB to {n} MB of memory in {v}. The {w} is quicker too: {b} ms instead of {a}.",
            "We are down to {b} ms on the {w}! It used to be {a}. Cake for everybody.",
            "version {v}: memory {n} MB (was {m} MB), {b} ms (was {a} ms)",
        ),
        (),
    ),
    Kind(  # what a lift takes
        {
            "p": _few_of(2, 30, "max_persons", "people_max", "persons"),
            "k": _many_of(150, 3000, "max_load_kg", "load_kg", "max_kg"),
            "f": _few_of(2, 40, "floors", "number_of_floors", "stops"),
            "y": Slot(("built", "year_built", "year"), _whole(1960, 2024)),
            "c": Slot(("next_check", "next_inspection", "inspection_due"), _iso),
            "b": Slot(("last_check", "last_inspection", "inspected_on"), _iso),
            "m": Slot(("maker", "manufacturer", "made_by"), _company),
        },
        (
            "At most {p} persons or {k} kg",
            "Load {k} kg, {p} persons, built {y} by {m}",
            "The lift takes {p} people, but never more than {k} kg. It stops on {f} floors.",
            "No more than {k} kg! That is {p} people. Last inspection {b}, next {c}.",
            "Next inspection: {c}\nLast inspection: {b}\nMaker: {m}",
            "Last check: {b}\nNext check: {c}\nMax. load: {k} kg\nFloors: {f}",
            "{m} built the lift in {y}. It was checked on {b} and has to be checked again by {c}.",
            "By {c} somebody must look at the lift. The last one to do so came on {b}. It is from {y}.",
            "{f} floors / {p} persons / {k} kg / {y}",
            "It is stuck again, somewhere between {f} floors. The sign says {p} persons, {k} kg, {m}.",
        ),
        (),
    ),
    Kind(  # a sensor with limits
        {
            "s": Slot(("sensor", "sensor_id", "name"), _code),
            "v": Slot(("value", "current_value", "reading", "measured"), _tenths(1, 90)),
            "a": Slot(("lower_limit", "min_allowed", "minimum", "low_limit"), _tenths(0, 40)),
            "b": Slot(("upper_limit", "max_allowed", "maximum", "high_limit"), _tenths(41, 99)),
            "u": Slot(("unit", "measured_in"), _of("bar", "degrees", "percent", "volts", "mm", "litres")),
            "w": _flag_of("alarm", "alarm_on", "is_alarm"),
        },
        (
            "{s}: {v} {u} (min {a}, max {b}), {w?ALARM|ok}",
            "Sensor {s} reads {v} {u}. It must stay between {a} and {b}.",
            "Between {a} and {b} {u} all is well; now it is {v}. {w?The alarm is on.|No alarm.}",
            "max {b}, min {a}, now {v}, {u}",
            "The upper limit of {s} is {b}, the lower limit {a}. {w?A red light blinks.|The light is green.}"
            " Alarm: {w?on|off}",
            "The lower limit of {s} is {a} and the upper one {b}. We measured {v} {u}.",
            "We measured {v} at {s}. More than {b} {u} is not allowed, less than {a} neither.",
            "Limits: {a} to {b} {u}\nSensor: {s}\nReading: {v}\nAlarm: {w?yes|no}",
            "Reading: {v} {u}\nMaximum: {b}\nMinimum: {a}",
            "It must not fall below {a} {u} or rise above {b}. {w?Hence the alarm of|There was no alarm of} {s}.",
        ),
        (),
    ),
    Kind(  # a tank in several units
        {
            "t": Slot(("tank", "name", "container"), lambda w: f"tank {w.rng.choice((_code(w), _coined(w)))}"),
            "v": _many_of(20, 9000, "volume_l", "volume", "litres", "capacity_l"),
            "w": _many_of(30, 4000, "weight_kg", "weight", "kilograms"),
            "h": Slot(("height_m", "height", "metres_high"), _tenths(0, 9)),
            "d": Slot(("diameter_m", "diameter", "metres_wide"), _tenths(0, 9)),
            "p": Slot(("pressure_bar", "pressure", "bar"), _tenths(0, 30)),
            "c": Slot(("temperature_c", "temperature", "degrees"), _whole(-20, 98)),
        },
        (
            "{t}: {v} l, {w} kg, {h} m high, {p} bar",
            "{t} has a diameter of {d} m and a height of {h} m.",
            "The height of {t} is {h} m, the diameter {d} m. It weighs {w} kg.",
            "At {c} degrees the pressure is {p} bar.",
            "{p} bar at {c} degrees; {v} litres fit into {t}.",
            "Weight: {w} kg\nVolume: {v} l\nDiameter: {d} m\nHeight: {h} m",
            "Height: {h} m\nDiameter: {d} m\nPressure: {p} bar\nTemperature: {c} °C",
            "Empty, {t} weighs {w} kilograms. It holds {v} litres. The gauge shows {p} bar today.",
            "{v} litres, {w} kilograms, {c} degrees",
            "{w} kg of steel for {v} litres of water, that is {t}. {h} m high, {d} m wide.",
        ),
        (),
    ),
    Kind(  # who does what in a club
        {
            "a": Slot(("chair", "chairperson", "head", "led_by"), _person),
            "b": Slot(("treasurer", "looks_after_money", "cashier"), _person),
            "c": Slot(("secretary", "writes_minutes", "keeps_minutes"), _person),
            "d": Slot(("deputy", "vice_chair", "deputy_head"), _person),
            "k": Slot(
                ("club", "club_name", "association"), lambda w: f"{_coined(w)} {w.rng.choice(('Club', 'Society'))}"
            ),
            "n": _many_of(5, 3000, "members", "member_count", "number_of_members"),
        },
        (
            "Chair: {a}\nDeputy: {d}\nTreasurer: {b}\nSecretary: {c}",
            "Secretary: {c}\nTreasurer: {b}\nChair: {a}\nMembers: {n}",
            "The {k} has {n} members. {a} leads it, {b} is the treasurer.",
            "{b} looks after the money of the {k}, and {c} writes the minutes. {a} is the chair.",
            "{a} (chair), {d} (deputy), {c} (secretary), {b} (treasurer)",
            "{c} (secretary), {b} (treasurer), {a} (chair)",
            "If {a}, the chair, is away, {d} leads the {k}.",
            "{d} is the deputy of {a}. The {k} has {n} members.",
            "We have a new treasurer: {b}. The chair is still {a}, and the secretary {c}.",
            "Elected yesterday in the {k}: {c} as secretary, {a} as chair and {b} as treasurer. {d} stays deputy.",
        ),
        (),
    ),
    Kind(  # who made a film
        {
            "f": Slot(("film", "title", "movie"), _film),
            "d": Slot(("director", "directed_by"), Words.full_name),
            "m": Slot(("composer", "music_by", "music"), Words.full_name),
            "a": Slot(("lead_actor", "main_role", "starring"), Words.full_name),
            "p": Slot(("producer", "produced_by"), Words.full_name),
            "y": Slot(("year", "release_year", "released"), _whole(1930, 2025)),
            "n": Slot(("minutes", "running_time", "length_min"), _whole(62, 210)),
        },
        (
            "{f} ({y}), directed by {d}, with {a}",
            "{f}, {n} min. Music: {m}. Director: {d}.",
            "{d} directed {f}; {m} wrote the music.",
            "The music of {f} is by {m}, and {a} plays the lead.",
            "Starring {a}. Produced by {p}. Directed by {d}. {n} minutes.",
            "Producer {p}, director {d}, music {m}",
            "{a} plays the main part in {f}. It came out in {y} and lasts {n} minutes.",
            "In {y} {p} had the money and {d} the idea: {f}, {n} minutes long.",
            "Director: {d}\nProducer: {p}\nMusic: {m}\nYear: {y}",
            "I fell asleep during {f}. {n} minutes are too long! But the music by {m} is nice.",
        ),
        (),
    ),
    Kind(  # a course
        {
            "c": Slot(("course", "title", "course_name", "class"), lambda w: f"{_subject(w)} course"),
            "d": Slot(("weekday", "day", "every"), _weekday),
            "a": Slot(("start_time", "starts_at", "from"), _clock),
            "b": Slot(("end_time", "ends_at", "until"), _clock),
            "t": Slot(("teacher", "taught_by", "instructor"), _person),
            "r": Slot(("room", "where", "classroom"), _room),
            "f": _many_of(10, 900, "fee", "price", "costs"),
            "p": _few_of(2, 40, "free_places", "places_left", "seats_left"),
            "q": Slot((), _person),
        },
        (
            "{c}, {d}, {a} to {b}, {r}, {t}",
            "{c}, {d}, {a}, {r}. We are still looking for a teacher.{-t}",
            "The {c} of {t} takes place in {r}. The day is not fixed yet.{-d}",
            "The {c} is on {d} from {a} to {b}.",
            "{t} teaches the {c} in {r}. {p} places are left. It costs {f} euros.",
            "Until {b} on {d} {r} belongs to the {c}, which begins at {a}.",
            "Course: {c}\nDay: {d}\nTime: {a} to {b}\nTeacher: {t}\nFee: {f}",
            "Fee: {f} EUR\nFree places: {p}\nRoom: {r}\nTeacher: {t}",
            "The {c} of {t} ends at {b}; it starts at {a}. Questions? Ask {q} at the desk.",
            "{q} used to teach the {c}, now {t} does. {d}, {a}.",
            "Only {p} places left for the {c}! {d}, {f} euros. Write to {q} if you want one.",
            "{f} euros, {p} free places, {d}, {r}",
        ),
        (),
    ),
    Kind(  # a car with its past
        {
            "m": Slot(("model", "car", "vehicle"), lambda w: f"{_coined(w)} {w.rng.choice('ABCXYZ')}{w.number(1, 90)}"),
            "k": _many_of(2000, 290000, "mileage_km", "mileage", "km"),
            "o": _few_of(2, 7, "previous_owners", "owners", "owner_count"),
            "a": _flag_of("accident_free", "no_accident"),
            "g": _flag_of("automatic", "automatic_gearbox"),
            "t": Slot(("inspection_until", "next_inspection", "inspection_valid_until"), _date),
            "f": Slot(("fuel", "fuel_type", "runs_on"), _of("petrol", "diesel", "electricity", "gas")),
            "p": _many_of(400, 60000, "price", "price_eur", "asking_price"),
        },
        (
            "{m}, {k} km, {o} owners, {a?accident-free|had an accident}, {p} euros",
            "{p} EUR: {m}, {f}, {g?automatic|manual}, {k} km",
            "Model: {m}\nFuel: {f}\nMileage: {k} km\nAccident-free: {a?yes|no}",
            "Previous owners: {o}\nAutomatic: {g?yes|no}\nMileage: {k} km\nPrice: {p} EUR",
            "My {m} has gone {k} km and {a?never had an accident|was in an accident once}. I want {p} for it.",
            "It {g?shifts by itself|has a manual gearbox} and runs on {f}. {o} people drove it before you."
            " Inspection until {t}.",
            "Inspected until {t}, {o} previous owners, {g?automatic gearbox|five gears by hand}",
            "I am selling my {m}. I would keep it, but the new job is round the corner. {p} euros, {k} km on the"
            " clock.",
            "on the clock: {k} km. asking {p}. {f}. {a?no accidents|one accident, repaired}.",
            "{f} car, {g?automatic|stick}, {k} km, {t}",
        ),
        (),
    ),
    Kind(  # a line of an account
        {
            "a": Slot(("from_account", "account_from", "debited_account"), _code),
            "b": Slot(("to_account", "account_to", "credited_account"), _code),
            "m": Slot(("amount", "sum", "transferred"), _cents(1, 900)),
            "o": Slot(("balance_before", "old_balance", "previous_balance"), _cents(10, 4000)),
            "n": Slot(("balance_after", "new_balance", "current_balance"), _cents(10, 4000)),
            "r": Slot(
                ("reference", "purpose", "for"),
                lambda w: f"{w.rng.choice(('rent', 'gift', 'order', made_up(w.rng)))} {w.number(2, 990)}",
            ),
            "s": _flag_of("standing_order", "recurring", "repeats"),
        },
        (
            "{m} EUR from {a} to {b}, {r}",
            "To {b}, from {a}: {m} euros, reference {r}. {s?Repeats every month.|Once only.}",
            "Balance before {o}, booked {m}, balance after {n}",
            "New balance {n}, old balance {o}, amount {m}, {r}",
            "Please move {m} euros to {b}. Take it from {a}. {s?Do so each month.|Only this time.}",
            "Account {a} was debited with {m} EUR. The money went to {b}.",
            "Account {b} was credited with {m} EUR. The money came from {a}.",
            "You now have {n}. You had {o}. What you paid was {m}.",
            "debit={a}\ncredit={b}\namount={m}\nrecurring={s?yes|no}",
            "Standing order: {s?yes|no}\nTo: {b}\nFrom: {a}\nReference: {r}\nAmount: {m}",
        ),
        (),
    ),
    Kind(  # how to look after a plant
        {
            "p": Slot(("plant", "name", "plant_name"), _plant),
            "d": _few_of(2, 21, "water_every_days", "watering_days", "days_between_watering"),
            "m": Slot(("water_ml", "ml_per_watering", "amount_ml"), lambda w: 10 * w.number(3, 90)),
            "f": _few_of(2, 12, "fertilizer_drops", "drops_of_fertilizer", "drops"),
            "r": _few_of(2, 6, "repot_every_years", "repot_years", "years_between_repotting"),
            "s": _flag_of("direct_sun", "likes_sun", "full_sun"),
            "t": Slot(("min_temperature", "coldest_c", "min_temp"), _whole(3, 18)),
        },
        (
            "{p}: {m} ml of water every {d} days, {f} drops of fertilizer",
            "Every {d} days give the {p} {m} ml. {s?It loves the sun.|Keep it out of the sun.}",
            "{f} drops of fertilizer go into {m} ml of water, once in {d} days.",
            "Give {m} ml, not more, and wait {d} days. Every {r} years the {p} needs a bigger pot.",
            "Plant: {p}\nWater: every {d} days, {m} ml\nSun: {s?yes|no}\nRepot: every {r} years",
            "Repot: every {r} years\nFertilizer: {f} drops\nAmount: {m} ml",
            "Not below {t} degrees, please! The {p} wants {m} ml each {d} days and {f} drops of fertilizer.",
            "While we are away: the {p} gets {m} ml every {d} days. The others need nothing. Thank you so much!",
            "{p} / sun {s?yes|no} / min {t} °C / new pot after {r} years",
            "A new pot every {r} years, water every {d} days, and {s?lots of direct sun|no direct sun at all}:"
            " the {p}.",
        ),
        (),
    ),
    Kind(  # what a hotel booking includes
        {
            "t": Slot(("room_type", "type", "kind_of_room"), _of("single room", "double room", "suite", "family room")),
            "n": _few_of(2, 21, "nights", "number_of_nights", "night_count"),
            "a": _few_of(2, 6, "adults", "adult_count", "number_of_adults"),
            "k": _few_of(2, 6, "children", "child_count", "kids"),
            "b": _flag_of("breakfast_included", "breakfast", "with_breakfast"),
            "p": _many_of(80, 3800, "total_price", "total", "price_eur"),
            "c": Slot(("city_tax", "tourist_tax", "local_tax"), _cents(1, 40)),
            "x": Slot(("booking_number", "confirmation", "booking_code"), _code),
        },
        (
            "{t}, {n} nights, {a} adults, {k} children, {b?breakfast included|without breakfast}, {p} EUR",
            "Booking {x}: {k} children and {a} adults in a {t}.",
            "We stay {n} nights. There are {a} of us and {k} kids."
            " {b?Breakfast is in the price.|Breakfast costs extra.}",
            "{p} euros in all, plus {c} city tax, for {n} nights in a {t}",
            "City tax {c}, room {p}. {b?You can have breakfast for free.|We serve no breakfast.} Confirmation {x}.",
            "Type: {t}\nNights: {n}\nAdults: {a}\nBreakfast: {b?yes|no}\nTotal: {p} EUR",
            "Children: {k}\nAdults: {a}\nNights: {n}\nCode: {x}",
            "Thank you for choosing us again! Your {t} is ready. The total of {p} is paid at the desk, and {c} of tax.",
            "hi, need a {t} for {n} nights, {a} adults {k} kids, {b?with breakfast pls|no breakfast}",
            "{x} | {n}n | {a}A {k}C | tax {c} | total {p}",
        ),
        (),
    ),
    Kind(  # a book that is late
        {
            "b": Slot(("title", "book", "item"), _film),
            "r": Slot(("reader", "card_holder", "borrower"), _person),
            "d": _few_of(2, 60, "days_overdue", "days_late", "overdue_days"),
            "f": Slot(("fee_per_day", "daily_fee", "per_day"), _cents(0, 1)),
            "t": Slot(("fee_total", "total_fee", "to_pay"), _cents(2, 40)),
            "c": Slot(("card_number", "library_card", "card"), lambda w: w.digits(6)),
            "w": _flag_of("renewable", "can_be_renewed"),
            "n": Slot(("reserved_by", "waiting_reader", "next_reader"), _person),
        },
        (
            "{b}, {d} days late, {f} a day, {t} in all",
            "To pay: {t}. {r} kept {b} for {d} days too long.",
            "Dear {r},\n{b} is {d} days overdue. {w?You can renew it online.|It cannot be renewed.}\nYour library",
            "{n} is waiting for {b}, which {r} has not brought back.",
            "{r} still has {b}. {n} has reserved it.",
            "Card {c}: {b}, {t} euros, {w?may be renewed|no renewal}",
            "The fee is {f} per day, so it comes to {t} for card {c}.",
            "It comes to {t} by now; each day costs {f}.",
            "Title: {b}\nReader: {r}\nReserved by: {n}\nDays late: {d}",
            "Reserved by: {n}\nCard: {c}\nFee: {t}\nRenewable: {w?yes|no}",
        ),
        (),
    ),
    Kind(  # what somebody thinks of a product
        {
            "p": Slot(("product", "item", "article"), _ware),
            "s": Slot(("stars", "rating", "score"), lambda w: w.number(1, 5), _few),
            "g": Slot(("liked", "good", "pro", "positive"), _one("colour", "size", "price", "handle", "sound", "look")),
            "b": Slot(
                ("disliked", "bad", "con", "negative"), _one("weight", "smell", "cable", "lid", "manual", "noise")
            ),
            "r": _flag_of("recommended", "would_recommend", "recommends"),
            "n": Slot(("reviewer", "name", "written_by"), Words.name),
            "m": _few_of(6, 40, "months_used", "used_for_months", "months"),
        },
        (
            "{n} gave the {p} {s} of 5 stars.",
            "Rating: {s}/5\nGood: the {g}\nBad: the {b}",
            "Bad: {b}\nGood: {g}\nWould recommend: {r?yes|no}",
            "I love the {g} but hate the {b}. {r?Buy it!|Do not buy it.} {n}",
            "The {b} annoys me. The {g}, however, is great. {s} out of five for the {p}.",
            "{p}: {s} of 5. After {m} months I {r?would buy it again and tell you to do so|cannot recommend it}. {n}",
            "Used the {p} for {m} months. What I like is the {g}, what I do not like is the {b}.",
            "the {p} is {r?great, get one|a waste of money}. {b} bad, {g} good. {s} stars",
            "Do not look at the {b}, look at the {g}! A review by {n}, {s} stars.",
            "{m} months, 5 stars possible, {s} given. {r?Recommended.|Not recommended.}",
        ),
        (),
    ),
    Kind(  # a new version
        {
            "a": Slot(("program", "app", "name", "software"), _coined),
            "n": Slot(("version", "new_version", "released_version"), _version),
            "o": Slot(("previous_version", "old_version", "replaces"), _version),
            "d": Slot(("date", "release_date", "released_on"), _iso),
            "f": _few_of(2, 60, "bugs_fixed", "fixes", "fixed_bugs"),
            "g": _few_of(2, 20, "new_features", "features", "added_features"),
            "b": _flag_of("breaking", "breaking_changes", "is_breaking"),
        },
        (
            "{a} {n} ({d}): {f} bugs fixed, {g} new features",
            "{a} {n} replaces {o}. {b?Your old files will no longer work.|Old files still work.}"
            " Breaking changes: {b?yes|none}.",
            "Update from {o} to {n}",
            "Upgrade to {n} from {o} at once! {f} bugs are gone.",
            "Version: {n}\nPrevious: {o}\nDate: {d}\nBreaking: {b?yes|no}",
            "Previous: {o}\nVersion: {n}\nFixes: {f}\nFeatures: {g}",
            "{g} things are new in {a} and {f} faults were mended. It came out on {d}.",
            "We had {o}. Now it is {n}. {f} fixes, {g} features, {b?breaking changes|no breaking changes}.",
            "## {n} ({d})\n\n- {g} new features\n- {f} fixes",
            "{d} - {a} {n} is out, {o} gets no more updates",
        ),
        (),
    ),
    Kind(  # the notes of a meeting
        {
            "c": Slot(("chair", "led_by", "chaired_by"), _person),
            "m": Slot(("minutes_by", "minute_taker", "written_by", "notes_by"), _person),
            "a": Slot(("absent", "excused", "missing"), _person),
            "d": Slot(("date", "held_on", "meeting_date"), _day),
            "n": Slot(("next_meeting", "next_date", "meets_again_on"), _day),
            "t": Slot(("task", "action", "to_do"), _task),
            "o": Slot(("task_owner", "owner", "responsible", "assigned_to"), _person),
            "p": _flag_of("plan_accepted", "accepted", "approved"),
        },
        (
            "Chair: {c}\nMinutes: {m}\nExcused: {a}\nNext meeting: {n}",
            "Next meeting: {n}\nThis meeting: {d}\nMinutes: {m}\nChair: {c}",
            "{c} opened the meeting, {m} wrote the minutes. {o} will {t}.",
            "{a} could not come. {o} has to {t} before {n}.",
            "We met on {d} and meet again on {n}. The plan was {p?accepted|rejected}.",
            "On {n} we meet again. On {d} the plan was {p?accepted by all|turned down}, and {o} promised to {t}.",
            "Minutes of {d}, taken by {m}. {c} led the talk. {a} was ill.",
            "Everybody was there but {a}. Who does what? {o}: {t}.",
            "TODO {o}: {t} (until {n})",
            "The minutes are by {m}, not by {c}, who was in the chair.",
        ),
        (),
    ),
    Kind(  # a lost animal
        {
            "p": Slot(("animal", "pet", "kind"), _of("cat", "dog", "rabbit", "parrot", "turtle", "hamster")),
            "n": Slot(("name", "pet_name", "called", "answers_to"), _coined),
            "c": Slot(("colour", "color", "fur_colour"), Words.colour),
            "k": Slot(("collar_colour", "collar", "colour_of_collar"), Words.colour),
            "s": Slot(("last_seen", "seen_at", "where"), _street),
            "d": Slot(("missing_since", "lost_on", "since"), _day),
            "r": _many_of(10, 900, "reward", "reward_eur"),
            "o": Slot(("owner", "contact", "belongs_to"), _person),
            "h": _flag_of("chipped", "has_chip"),
        },
        (
            "LOST: {c} {p} with {a_k} collar, called {n}. Call {o}.",
            "Missing since {d}: {n}, our {p}. {h?It has a chip.|It has no chip.} Last seen: {s}.",
            "Our {c} {p} ran away. The collar is {k}. You get {r} euros if you find it.",
            "The collar is {k} and the fur {c}. {o} misses {n} so much!",
            "Since {d} nobody has seen {n}. The {p} was last at {s}. {o} pays {r} euros.",
            "Reward {r} EUR! {p}, {c}, {h?chipped|not chipped}, last seen {s}",
            "Animal: {p}\nName: {n}\nColour: {c}\nCollar: {k}\nOwner: {o}",
            "Collar: {k}\nColour: {c}\nMissing since: {d}\nReward: {r} EUR",
            "Dear neighbours, please look into your garages. {n} is shy and does not bite. The collar is {k}."
            " Thanks, {o}",
            "has anyone seen a {p}? {c}, hears on {n}, gone since {d}",
            "{c} {p} came to our door. There is no name on the collar.{-n} Is it yours?{-o}",
            "We lost our {p} {n}. It wears no collar.{-k} {o}",
        ),
        (),
    ),
    Kind(  # what is in store
        {
            "a": Slot(("article", "item", "product"), _ware),
            "s": _many_of(3, 4000, "in_stock", "stock", "on_hand"),
            "r": _many_of(2, 900, "reserved", "already_sold", "reserved_pieces"),
            "m": _many_of(2, 400, "reorder_level", "minimum_stock", "reorder_below"),
            "o": _many_of(5, 2000, "on_order", "ordered", "coming_in"),
            "p": Slot(("shelf", "location", "bin"), _place_code),
            "d": _flag_of("discontinued", "no_longer_made"),
        },
        (
            "{a}: {s} in stock, {r} reserved, {o} on order, shelf {p}",
            "{o} on order, {s} in stock: {a}",
            "Of the {a} we have {s}. {r} of them are promised to customers. Look at shelf {p}.",
            "When fewer than {m} are left of the {a}, order more. Now there are {s}.",
            "Stock: {s}\nReserved: {r}\nMinimum: {m}\nShelf: {p}",
            "Minimum: {m}\nOn order: {o}\nStock: {s}\nDiscontinued: {d?yes|no}",
            "{r} are reserved, so not all of the {s} can be sold. {d?They are not made any more.|They are still made.}",
            "We wait for {o} more. There are {s} on shelf {p}. The least we want is {m}.",
            "item {a} qty {s} rsv {r} min {m}",
            "{a} ({d?discontinued|still made}): shelf {p}, {s} pieces, {m} as reorder level",
        ),
        (),
    ),
    Kind(  # a bus that comes often
        {
            "n": Slot(("line", "bus", "bus_line"), _code),
            "a": Slot(("first_bus", "first", "first_departure"), _clock),
            "b": Slot(("last_bus", "last", "last_departure"), _clock),
            "m": _few_of(3, 60, "every_minutes", "interval_minutes", "interval"),
            "s": Slot(("stop", "bus_stop", "leaves_from"), _street),
            "t": Slot(("terminus", "final_stop", "goes_to"), _town),
            "f": Slot(("fare", "ticket_price", "single_ticket"), _cents(1, 6)),
            "u": _flag_of("sunday_service", "runs_on_sunday", "sundays"),
        },
        (
            "{n} from {s} to {t}, every {m} minutes",
            "{n} to {t}: first {a}, last {b}",
            "{n} to {t}: last {b}, first {a}, {u?also on Sundays|not on Sundays}",
            "The last one goes at {b}. In the morning {n} starts at {a}. A ticket is {f}.",
            "Every {m} minutes {n} leaves from {s}. {u?It runs on Sunday too.|There is no bus on Sunday.}",
            "You want to go to {t}? Take {n} at {s}. It costs {f} and comes every {m} minutes.",
            "Line: {n}\nStop: {s}\nTerminus: {t}\nFirst: {a}\nLast: {b}",
            "Last: {b}\nFirst: {a}\nInterval: {m} min\nFare: {f}",
            "Between {a} and {b} there is a bus every {m} minutes. After that you walk.",
            "Before {a} and after {b} there is no {n}. Sorry about that. Single ticket {f}.",
        ),
        (),
    ),
    Kind(  # marks at school
        {
            "p": Slot(("pupil", "student", "name"), _person),
            "s": Slot(("subject", "class", "course"), _subject),
            "w": Slot(("written_mark", "written", "mark_written"), _tenths(1, 9)),
            "o": Slot(("oral_mark", "oral", "mark_oral"), _tenths(1, 9)),
            "f": Slot(("final_mark", "final", "overall_mark"), _tenths(1, 9)),
            "t": Slot(("teacher", "marked_by", "graded_by"), _surname),
            "d": _few_of(2, 30, "days_missed", "absent_days", "days_absent"),
            "a": _flag_of("passed", "has_passed"),
        },
        (
            "{p}, {s}: written {w}, oral {o}, final {f}",
            "{s} - final {f}, oral {o}, written {w} ({t})",
            "{p} got {w} in writing and {o} in speaking.",
            "In speaking {p} has {o}, in writing {w}. Together that makes {f}.",
            "{t} gave {p} a {f} as the final mark in {s}. {a?Passed.|Not passed.}",
            "Pupil: {p}\nTeacher: {t}\nOral: {o}\nWritten: {w}\nDays missed: {d}",
            "Dear parents, {p} missed {d} days. All the same {s} was {a?passed|failed}. Regards, {t}",
            "{t} says that {p} {a?has passed|has failed} with {f}, after {d} missed days.",
            "final={f} written={w} oral={o} passed={a?true|false}",
            "Overall {f}. Better with the pen ({w}) than with the mouth ({o})? You decide.",
        ),
        (),
    ),
    Kind(  # an exam
        {
            "s": Slot(("subject", "exam", "course"), _subject),
            "d": Slot(("date", "exam_date", "day"), _day),
            "t": Slot(("start_time", "begins_at", "time"), _clock),
            "n": Slot(("duration_min", "minutes", "duration"), _whole(20, 240)),
            "m": Slot(("max_points", "points_possible", "maximum"), _whole(50, 200)),
            "p": Slot(("points_to_pass", "pass_mark", "minimum"), _whole(10, 49)),
            "b": _flag_of("open_book", "books_allowed", "notes_allowed"),
            "r": Slot(("room", "where", "location"), _room),
        },
        (
            "{s} exam, {d}, {t}, {r}, {n} minutes",
            "{r}, {d}: {s}, {n} minutes, {b?books allowed|no books}",
            "There are {m} points in all; with {p} you pass.",
            "You need {p} points to pass {s}. The most you can get is {m}.",
            "It begins at {t} and takes {n} minutes. {b?You may bring your notes.|Leave your notes at home.}",
            "Exam: {s}\nPoints: {m}\nTo pass: {p}\nOpen book: {b?yes|no}",
            "To pass: {p}\nMinutes: {n}\nStart: {t}\nRoom: {r}",
            "Do not be late. On {d} at {t} it begins in {r}. You get {n} minutes for {m} points.",
            "{p} of {m} points are enough in {s}",
            "so {s} is on {d}, {n} min, {p} pts to pass out of {m}, {b?we can use the book|no book}",
            "{s}: the date is fixed ({d}), the room is not.{-r} {n} minutes.",
            "The {s} exam is in {r} at {t}. The date will be told later.{-d}",
        ),
        (),
    ),
    Kind(  # a day on a watch
        {
            "r": Slot(("resting_pulse", "pulse_at_rest", "min_pulse"), _whole(40, 75)),
            "m": Slot(("max_pulse", "highest_pulse", "top_pulse"), _whole(120, 199)),
            "a": Slot(("average_pulse", "mean_pulse", "avg_pulse"), _whole(76, 119)),
            "s": _many_of(800, 32000, "steps", "step_count", "number_of_steps"),
            "k": _many_of(100, 3900, "calories", "kcal", "energy_kcal"),
            "d": Slot(("distance_km", "km", "kilometres"), _tenths(1, 30)),
            "h": Slot(("sleep_hours", "hours_of_sleep", "slept"), _tenths(3, 10)),
            "g": _flag_of("goal_reached", "reached_goal"),
        },
        (
            "{s} steps, {d} km, {k} kcal, goal {g?reached|missed}",
            "Pulse: resting {r}, average {a}, max {m}",
            "Max {m}, average {a}, resting {r}, {k} kcal",
            "My heart went up to {m}. At rest it beats {r} times a minute.",
            "At rest {r}, on the hill {m}, and {a} on average. {s} steps!",
            "I slept {h} hours and then walked {s} steps. {g?Goal reached!|Goal missed.}",
            "Steps: {s}\nDistance: {d} km\nSleep: {h} h\nEnergy: {k} kcal",
            "Average pulse: {a}\nHighest pulse: {m}\nSteps: {s}\nGoal: {g?yes|no}",
            "{k} kcal burned on {d} km. The goal was {g?reached by noon|not reached}. Sleep: {h} hours.",
            "Only {h} hours of sleep, but {d} kilometres on foot and a pulse of {m} at the top.",
        ),
        (),
    ),
    Kind(  # what power costs
        {
            "t": Slot(("tariff", "name", "plan"), lambda w: f"{_coined(w)} {w.rng.choice(('Basic', 'Plus', 'Home'))}"),
            "b": Slot(("base_fee", "monthly_fee", "fee_per_month"), _cents(2, 30)),
            "k": Slot(("cents_per_kwh", "price_per_kwh", "kwh_price"), _tenths(15, 60)),
            "m": Slot(("contract_months", "minimum_term", "term_months"), _whole(13, 48)),
            "n": _few_of(2, 12, "notice_weeks", "notice_period_weeks", "weeks_of_notice"),
            "o": _many_of(10, 300, "bonus", "welcome_bonus", "bonus_eur"),
            "g": _flag_of("green", "green_energy", "renewable"),
        },
        (
            "{t}: {b} euros a month plus {k} cents per kWh",
            "{k} cents per kWh, {b} euros base fee, {g?100 % green power|power from coal}",
            "You are bound for {m} months and can leave with {n} weeks of notice.",
            "Give notice {n} weeks before the {m} months are over. {t} has a bonus of {o} euros.",
            "Tariff: {t}\nBase fee: {b}\nPer kWh: {k} ct\nGreen: {g?yes|no}",
            "Bonus: {o} EUR\nNotice: {n} weeks\nTerm: {m} months\nBase fee: {b} EUR",
            "Each month {b} euros, used or not. Each kWh {k} cents. {g?All from wind and sun.|None of it is green.}",
            "A present of {o} euros for you if you take {t} for {m} months!",
            "{t} / {m} months / {n} weeks / {k} ct",
            "I pay {b} per month with {t}. My neighbour says that is too much. The notice is {n} weeks.",
        ),
        (),
    ),
    Kind(  # a contract for a phone
        {
            "g": _few_of(2, 90, "data_gb", "gigabytes", "gb_per_month"),
            "p": Slot(("price_per_month", "monthly_price", "per_month"), _cents(3, 60)),
            "a": Slot(("activation_fee", "setup_fee", "one_time_fee"), _cents(5, 50)),
            "t": _few_of(3, 36, "term_months", "minimum_months", "contract_months"),
            "s": _many_of(10, 900, "speed_mbit", "max_speed", "mbit"),
            "n": Slot(("number", "phone_number", "mobile_number"), _phone),
            "r": _flag_of("roaming", "roaming_included"),
            "k": _flag_of("keep_number", "number_kept", "takes_old_number"),
        },
        (
            "{g} GB, {p} euros a month, {a} once",
            "{a} once, then {p} each month for {g} GB",
            "{t} months at least, {s} Mbit/s, {r?roaming included|no roaming}",
            "For {p} per month you surf with up to {s} Mbit/s. {g} gigabytes are yours.",
            "Data: {g} GB\nSpeed: {s} Mbit/s\nTerm: {t} months\nRoaming: {r?yes|no}",
            "Fee (once): {a}\nFee (monthly): {p}\nNumber: {n}",
            "{k?I want to keep my number|I want a new number} and {g} GB. {t} months are fine.",
            "The number {n} now has {g} GB. {r?You can use it abroad.|It does not work abroad.} It stays {p} a month.",
            "{p} a month sounds cheap, but there is a fee of {a} at the start, and you are bound for {t} months.",
            "Bound for {t} months, {p} a month, {k?old number stays|new number}",
        ),
        (),
    ),
    Kind(  # a claim for damage
        {
            "p": Slot(("policy_number", "policy", "policy_no"), _code),
            "c": Slot(("claim_number", "claim", "claim_no"), _code),
            "n": Slot(("insured", "policy_holder", "customer"), _person),
            "h": Slot(("handled_by", "case_worker", "agent"), _person),
            "a": _many_of(50, 9000, "amount_claimed", "claimed", "damage_eur"),
            "b": _many_of(20, 8000, "amount_paid", "paid_out", "paid"),
            "w": Slot(
                ("damage", "what", "damaged_item"),
                lambda w: f"{w.rng.choice(('broken', 'stolen', 'burnt'))} {made_up(w.rng)}",
            ),
            "d": Slot(("damage_date", "happened_on", "date"), _iso),
            "f": _flag_of("approved", "is_approved", "accepted"),
        },
        (
            "Claim {c}, policy {p}: {w}, {a} EUR claimed",
            "Policy {p}, claim {c}, handled by {h}: {f?approved|refused}",
            "{n} asked for {a} euros and got {b}.",
            "We paid {b} of the {a} that {n} had asked for. Claim {c}.",
            "Dear {n},\nwe have {f?approved|refused} your claim {c} of {d}.\nKind regards\n{h}",
            "{h} looked at it. {n} has a {w}. It happened on {d}.",
            "Insured: {n}\nAgent: {h}\nClaimed: {a}\nPaid: {b}",
            "Paid: {b}\nClaimed: {a}\nPolicy: {p}\nClaim: {c}",
            "On {d} my {w} ruined the day. I want {a} euros. My policy is {p}. {n}",
            "Claim {c} of {n}: {a} euros claimed, nothing paid so far.{-b}",
            "{n} has not told us yet what the damage will cost.{-a} The case {c} is with {h}.",
            "{f?Good news|Bad news}, {n}: the claim was {f?approved|turned down}. Ask {h} if you have questions.",
        ),
        (),
    ),
    Kind(  # money for a good cause
        {
            "d": Slot(("donor", "given_by", "from"), _person),
            "c": Slot(
                ("charity", "recipient", "given_to"), lambda w: f"{_coined(w)} {w.rng.choice(('Fund', 'Aid', 'Trust'))}"
            ),
            "h": Slot(("in_honour_of", "honoured", "dedicated_to"), _person),
            "a": _many_of(5, 5000, "amount", "donation", "amount_eur"),
            "g": _many_of(6000, 90000, "goal", "target", "goal_eur"),
            "m": _flag_of("monthly", "is_monthly", "recurring"),
            "r": _flag_of("receipt_wanted", "receipt", "wants_receipt"),
        },
        (
            "{d} gives {a} euros to the {c}, {m?every month|once}.",
            "The {c} got {a} euros from {d} in honour of {h}.",
            "In honour of {h}, {d} sent {a} to the {c}.",
            "The goal of {g} is near: {d} has just given {a}!",
            "{a} euros came from {d}. What we need is {g}.",
            "Donor: {d}\nAmount: {a} EUR\nMonthly: {m?yes|no}\nReceipt: {r?yes|no}",
            "Charity: {c}\nGoal: {g}\nIn honour of: {h}\nDonor: {d}",
            "Dear {d},\nthank you for the {a} euros{m? that you give each month|}! We need {g} in all.\n{c}",
            "{h} would have been proud. {d} gave {a} euros and {r?wants a receipt|needs no receipt}.",
            "pls book {a} from {d} for the {c}, {r?with receipt|no receipt}, {m?monthly|one time}",
        ),
        (),
    ),
    Kind(  # an evening with music
        {
            "b": Slot(("band", "main_act", "artist", "headliner"), _band),
            "s": Slot(("support", "support_act", "opening_act"), _band),
            "v": Slot(("venue", "hall", "place"), lambda w: f"{_coined(w)} {w.rng.choice(('Arena', 'Club', 'Hall'))}"),
            "o": Slot(("doors_open", "doors", "doors_at"), _clock),
            "t": Slot(("start_time", "begins_at", "show_starts"), _clock),
            "d": Slot(("date", "day", "on"), _date),
            "p": Slot(("ticket_price", "price", "ticket"), _cents(8, 95)),
            "x": _flag_of("sold_out", "is_sold_out"),
        },
        (
            "{b} + {s}, {v}, {d}, doors {o}, show {t}",
            "{s} opens for {b} at {v}. {x?Sold out.|Tickets are still there.}",
            "{b} play at {v} on {d}; before them you hear {s}.",
            "Doors at {o}, music from {t}. Tickets {p}.",
            "It starts at {t}, but come early: the doors of {v} open at {o}.",
            "Band: {b}\nSupport: {s}\nVenue: {v}\nDate: {d}\nSold out: {x?yes|no}",
            "Support: {s}\nBand: {b}\nDoors: {o}\nStart: {t}",
            "I never liked {s}, who only warm up the crowd. But {b}! {d}, {p} euros."
            " {x?All tickets are gone.|Get yours now.}",
            "{x?SOLD OUT|tickets left}: {b}, {d}, {v}",
            "{t} {b} (doors {o}), {p} EUR at the door",
            "{b} at {v} on {d}. Who plays before them is still a secret.{-s}",
            "{d}, {v}: {b}. Prices are not known yet.{-p}",
        ),
        (),
    ),
    Kind(  # when a museum is open
        {
            "m": Slot(("museum", "name", "where"), lambda w: f"{_coined(w)} Museum"),
            "a": Slot(("opens", "opening_time", "opens_at"), _clock),
            "b": Slot(("closes", "closing_time", "closes_at"), _clock),
            "x": Slot(("closed_on", "closed", "day_closed"), _weekday),
            "f": Slot(("free_day", "free_on", "no_charge_on"), _weekday),
            "p": Slot(("price", "ticket_price", "admission"), _cents(2, 28)),
            "r": Slot(("reduced_price", "student_price", "price_for_students"), _cents(1, 18)),
            "w": _flag_of("wheelchair_access", "accessible", "step_free"),
        },
        (
            "{m}: {a} to {b}, closed on {x}",
            "{m} is open from {a} to {b}. Ask at the door what it costs.{-p}",
            "{m} closes at {b} and opens at {a}. On {f} you pay nothing.",
            "Closed: {x}\nFree: {f}\nTicket: {p}\nStudents: {r}",
            "Students: {r}\nAdults: {p}\nOpens: {a}\nCloses: {b}",
            "On {x} the doors stay shut. On {f} you get in for free. On all other days it is {p}.",
            "Every {f} is free at the {m}; every {x} it is shut.",
            "Students pay {r} instead of {p}. {w?There is a lift and no step.|There are many steps and no lift.}",
            "The full price is {p}, students pay {r}.",
            "At {b} they send you home, so be at the {m} soon after {a}. Not on {x}, of course.",
            "{m}, {p}, step-free: {w?yes|no}, open {a} until {b}",
        ),
        (),
    ),
    Kind(  # somebody in a sports club
        {
            "n": Slot(("name", "member", "person"), _person),
            "m": Slot(("member_number", "member_no", "member_id"), lambda w: w.digits(5)),
            "y": Slot(("member_since", "joined", "joined_in"), _whole(1970, 2025)),
            "b": Slot(("birth_year", "born_in", "year_of_birth"), _whole(1935, 1969)),
            "s": Slot(("section", "sport", "division"), Words.hobby),
            "f": Slot(("yearly_fee", "fee", "fee_per_year"), _whole(20, 390)),
            "p": _flag_of("paid", "fee_paid", "has_paid"),
            "t": Slot(("trainer", "coach", "trained_by"), _person),
        },
        (
            "{n}, no. {m}, {s}, member since {y}",
            "{n} ({s}) has no trainer yet.{-t} No. {m}, since {y}.",
            "{n}, born in {b}, joined in {y}, {p?paid|not paid yet}",
            "Joined {y}, born {b}: {n} ({s})",
            "{t} trains {n} in {s}. The fee is {f} a year.",
            "{n} is trained by {t}. {p?The fee has been paid.|The fee is still open.}",
            "No.: {m}\nName: {n}\nSection: {s}\nFee: {f}\nPaid: {p?yes|no}",
            "Coach: {t}\nMember: {n}\nSince: {y}\nBorn: {b}",
            "Since {y} {n} has been with us. For {s} we take {f} euros per year,"
            " {p?which came in January|which we are still waiting for}.",
            "{m};{n};{y};{s};{f}",
            "{n} came into this world in {b} and into our club in {y}. {t} says well done!",
        ),
        (),
    ),
    Kind(  # a machine in a network
        {
            "h": Slot(("hostname", "host", "name"), _host),
            "a": Slot(("ip", "ip_address", "address"), _address),
            "g": Slot(("gateway", "default_gateway", "router"), _address),
            "d": Slot(("dns", "dns_server", "name_server"), _address),
            "v": Slot(("vlan", "vlan_id", "network_id"), _whole(2, 900)),
            "p": Slot(("port", "switch_port", "port_number"), _whole(1, 96)),
            "u": Slot(("uptime_days", "days_up", "uptime"), _whole(2, 900)),
            "o": _flag_of("online", "is_online", "reachable"),
        },
        (
            "{h} {a} gw {g} dns {d}",
            "host {h}: gateway {g}, ip {a}, {o?online|offline}",
            "{h} hangs on port {p}, VLAN {v}, and has been up for {u} days.",
            "VLAN {v}, port {p}: {h} ({a})",
            "The gateway is {g}; the machine itself is {a}. Names are looked up at {d}.",
            "The machine {h} has the address {a}. It reaches the world through {g}.",
            "ip: {a}\ngateway: {g}\ndns: {d}\nvlan: {v}",
            "dns: {d}\ngateway: {g}\nip: {a}\nonline: {o?true|false}",
            "Can you ping {h}? {o?I can, it answers.|No, it does not answer.} It should be {a}, with {g} as the"
            " gateway.",
            "After {u} days {h} {o?is still online|went offline}. Port {p} on the switch blinks.",
        ),
        (),
    ),
    Kind(  # how to reach a database
        {
            "h": Slot(("host", "server", "db_host"), _host),
            "r": Slot(("replica", "replica_host", "read_host"), _host),
            "p": Slot(("port", "db_port", "port_number"), _whole(1024, 65000)),
            "u": Slot(("user", "db_user", "user_name"), lambda w: f"{made_up(w.rng)}_user"),
            "d": Slot(("database", "db_name", "schema"), lambda w: f"{made_up(w.rng)}_db"),
            "t": Slot(("timeout_s", "timeout", "timeout_seconds"), _whole(2, 120)),
            "n": Slot(("pool_size", "max_connections", "connections"), _whole(121, 900)),
            "s": _flag_of("ssl", "use_ssl", "encrypted"),
        },
        (
            "host={h} port={p} user={u} dbname={d} sslmode={s?require|disable}",
            "{u}@{h}:{p}/{d}",
            "Connect to {d} on {h}, port {p}, as {u}. {s?Use SSL.|Do not use SSL.}",
            "As {u} you may read {d}. The server is {h}, the replica {r}.",
            "Replica: {r}\nServer: {h}\nPort: {p}\nTimeout: {t} s",
            "Timeout: {t} s\nPool: {n}\nSSL: {s?on|off}\nUser: {u}",
            "We write to {h} and read from {r}. After {t} seconds we give up.",
            "Reads go to {r}, writes to {h}. There are {n} connections at most."
            " {s?All are encrypted.|None is encrypted.}",
            "[{d}]\nhost = {h}\nport = {p}\ntimeout = {t}\nssl = {s?yes|no}",
            "Who has changed the port? It is {p} now on {h}, the pool is {n}, the user is still {u}.",
        ),
        (),
    ),
    Kind(  # a change of code
        {
            "a": Slot(("author", "opened_by", "written_by"), Words.name),
            "r": Slot(("reviewer", "reviewed_by", "checked_by"), Words.name),
            "s": Slot(("source_branch", "from_branch", "branch"), lambda w: f"{made_up(w.rng)}-{made_up(w.rng)}"),
            "t": Slot(("target_branch", "into_branch", "base"), _one("main", "master", "develop", "stable")),
            "n": Slot(("number", "pr_number", "pull_request"), _whole(2, 9000)),
            "p": Slot(("lines_added", "additions", "added"), _whole(2, 3000)),
            "d": Slot(("lines_deleted", "deletions", "deleted"), _whole(2, 3000)),
            "m": _flag_of("merged", "is_merged"),
        },
        (
            "#{n} {s} into {t} by {a}, reviewed by {r}",
            "#{n} of {a} waits for somebody who reviews it.{-r} {m?Merged all the same.|Not merged yet.}",
            "{a} opened #{n}: {p} lines added, {d} deleted",
            "{r} reviewed what {a} wrote. {m?It is merged.|It is not merged yet.}",
            "{a}'s branch {s} was {m?merged into|not merged into} {t}.",
            "{d} lines out, {p} lines in, #{n}, {m?merged|open}",
            "Into {t} from {s}: {p} lines more, {d} lines gone. Thanks to {r} for the review.",
            "Author: {a}\nReviewer: {r}\nAdded: {p}\nDeleted: {d}\nMerged: {m?yes|no}",
            "Reviewer: {r}\nAuthor: {a}\nTarget: {t}\nSource: {s}",
            "Approved by {r}. I, {a}, would like to {m?thank you all, it is in|wait before it goes in}. #{n}",
            "{r} has comments on #{n}. {a} deleted {d} lines and added {p}. Tests are green.",
        ),
        (),
    ),
    Kind(  # a drink to take away
        {
            "n": Slot(("name", "customer", "for"), Words.name),
            "d": Slot(("drink", "coffee", "order"), _one("latte", "espresso", "mocha", "black tea", "hot chocolate")),
            "s": Slot(("size", "cup", "cup_size"), _of("small", "medium", "large")),
            "m": Slot(("milk", "kind_of_milk", "milk_type"), _of("oat milk", "soy milk", "whole milk", "goat milk")),
            "k": _few_of(2, 6, "sugars", "sugar", "spoons_of_sugar"),
            "t": _flag_of("to_go", "takeaway", "take_away"),
            "p": Slot(("price", "cost", "price_eur"), _cents(1, 9)),
        },
        (
            "{s} {d} with {m} for {n}, {t?to go|to drink here}",
            "{n}: {d}, {s}, {k} sugars, {p}",
            "For {n} a {s} {d}, please. {t?In a paper cup, I have to run.|I will sit down by the window.}",
            "Could I get the {d} with {m} and {k} sugars? The {s} one. The name is {n}.",
            "{k} sugars and {m} in the {d}. It is for {n}.",
            "Size: {s}\nDrink: {d}\nMilk: {m}\nTo go: {t?yes|no}",
            "Price: {p}\nName: {n}\nSugar: {k}\nDrink: {d}",
            "Hi! Long queue today. One {d}, {s}, {t?takeaway|for here}, {m}. That is {p}? Thanks!",
            "{p} for a {s} {d}? {n} shakes the head and takes it with {k} sugars all the same.",
            "{d} ({s}) {m} {k}x sugar {t?TAKEAWAY|HERE}",
        ),
        (),
    ),
    Kind(  # paint for a room
        {
            "r": Slot(
                ("room", "where", "which_room"), _one("kitchen", "hall", "bedroom", "bathroom", "office", "cellar")
            ),
            "w": Slot(("wall_colour", "walls", "wall_color"), Words.colour),
            "c": Slot(("ceiling_colour", "ceiling", "ceiling_color"), Words.colour),
            "d": Slot(("door_colour", "door", "door_color"), Words.colour),
            "p": _few_of(2, 40, "litres", "paint_litres", "litres_of_paint"),
            "k": _few_of(2, 5, "coats", "number_of_coats", "layers"),
            "n": Slot(("painter", "painted_by", "who"), Words.name),
            "f": _flag_of("floor_covered", "cover_floor"),
        },
        (
            "{r}: walls {w}, ceiling {c}, door {d}",
            "{c} ceiling, {w} walls, {k} coats: the {r}",
            "{n} paints the {r}. The walls become {w} and the ceiling {c}.",
            "The ceiling of the {r} stays {c}, the door gets {d}, the walls {w}.",
            "For the {r} we need {p} litres of {w} for the walls. {f?The floor is covered.|The floor is not covered.}",
            "Walls: {w}\nDoor: {d}\nCoats: {k}\nPaint: {p} litres",
            "Paint: {p} l\nCeiling: {c}\nWalls: {w}\nPainter: {n}",
            "Not the ceiling, that is {c} already! The walls should be {w}. {k} coats, please. Thank you, {n}.",
            "{w} walls and {a_d} door, that is what the {r} needs. {n} has {p} litres in the cellar.",
            "door {d}, ceiling {c}, walls {w}, floor {f?covered|not covered}",
        ),
        (),
    ),
    Kind(  # a game of chess
        {
            "w": Slot(("white", "white_player", "plays_white"), _person),
            "b": Slot(("black", "black_player", "plays_black"), _person),
            "v": Slot(("winner", "won_by", "won"), _person),
            "n": Slot(("moves", "move_count", "number_of_moves"), _whole(13, 120)),
            "p": Slot(
                ("opening", "opening_name"), lambda w: f"{_coined(w)} {w.rng.choice(('Defence', 'Attack', 'Game'))}"
            ),
            "r": _flag_of("rated", "is_rated"),
            "t": _few_of(2, 12, "round", "round_number"),
        },
        (
            "White: {w}\nBlack: {b}\nMoves: {n}\nRated: {r?yes|no}",
            "Black: {b}\nWhite: {w}\nRound: {t}",
            "{w} had the white pieces, {b} the black ones. It took {n} moves.",
            "{b} answered with the {p}. {w}, with white, gave up after {n} moves.",
            "With black {b} needed {n} moves in round {t}. {w} was white.",
            "Round {t}: {w} (white) and {b} (black), {p}",
            "Round {t}: {b} (black) and {w} (white), {r?rated|unrated}",
            "It was {v} who won the game of {n} moves. The opening was the {p}.",
            "{n} moves, {p}, {r?a rated game|just for fun, not rated}",
            "A quiet {p} in round {t}. {v} won.",
        ),
        (),
    ),
    Kind(  # a delivery to the door
        {
            "p": Slot(("product", "item", "goods"), _furniture),
            "a": Slot(("window_from", "earliest", "from"), _clock),
            "b": Slot(("window_to", "latest", "until"), _clock),
            "d": Slot(("date", "delivery_date", "day"), _day),
            "f": _few_of(2, 9, "floor", "storey", "level"),
            "t": _flag_of("lift", "has_lift", "lift_available"),
            "o": _flag_of("take_old", "old_one_taken", "remove_old"),
            "v": Slot(("driver", "delivered_by", "brought_by"), Words.name),
            "c": Slot(("customer", "name", "delivered_to"), _person),
        },
        (
            "{p} for {c}, {d}, between {a} and {b}",
            "The {p} of {c} comes on {d}, but we cannot tell you the hour.{-a}{-b} {v} will ring first.",
            "Not before {a}, not after {b}: {v} brings the {p} to {c}.",
            "{v} brings the {p} on {d}. Floor {f}, {t?with a lift|no lift}.",
            "{c} lives on floor {f}. {t?There is a lift.|The lift is missing.} The {p} comes on {d}.",
            "At {b} at the latest, at {a} at the earliest."
            " {o?We take the old one with us.|The old one stays with you.}",
            "Floor: {f}\nLift: {t?yes|no}\nTake old one: {o?yes|no}\nDriver: {v}",
            "Latest: {b}\nEarliest: {a}\nItem: {p}\nCustomer: {c}",
            "Dear {c},\nyour {p} is on the van of {v}. Please be at home from {a} to {b}.\nThank you for your"
            " patience!",
            "{d} {a} to {b} {p} ({v})",
            "pls tell {v} that its floor {f} and {t?the lift works|there is no lift}. {c}",
        ),
        (),
    ),
    Kind(  # a ride in a taxi
        {
            "a": Slot(("pickup", "pick_up", "from", "start"), _street),
            "b": Slot(("dropoff", "drop_off", "to", "destination"), _street),
            "d": Slot(("driver", "driven_by"), Words.name),
            "g": Slot(("passenger", "guest", "rider"), Words.name),
            "f": Slot(("fare", "ride_price", "price"), _cents(5, 90)),
            "t": Slot(("tip", "tip_given", "extra"), _cents(0, 9)),
            "k": Slot(("distance_km", "km", "kilometres"), _tenths(1, 60)),
            "n": _few_of(2, 8, "people", "passengers", "number_of_passengers"),
        },
        (
            "{d} drove {g} from {a} to {b}.",
            "{g} was driven to {b} by {d}. The fare was {f}, the tip {t}.",
            "Pick-up: {a}\nDrop-off: {b}\nPassengers: {n}\nFare: {f}",
            "Drop-off: {b}\nPick-up: {a}\nDistance: {k} km\nDriver: {d}",
            "To {b}, please. We are {n} people and stand at {a}. My name is {g}.",
            "We stand at {a}, {n} of us, and want to go to {b}.",
            "A tip of {t} on top of {f}: thank you, {g}! Yours, {d}",
            "{f} for {k} km, and {t} for the driver {d}. It rained cats and dogs.",
            "{n} pers. {a} > {b}, {k} km, {f}",
            "Fetch {g} at {a}. It is not far, {k} km. {d}, can you do that? There will be {n} people.",
        ),
        (),
    ),
    Kind(  # bids
        {
            "x": Slot(("lot", "lot_number", "lot_no"), _whole(2, 900)),
            "w": Slot(("item", "object", "title"), _furniture),
            "a": _many_of(5, 400, "starting_bid", "start_price", "first_bid"),
            "h": _many_of(401, 9000, "highest_bid", "current_bid", "top_bid"),
            "b": Slot(("highest_bidder", "bidder", "leading"), _person),
            "s": Slot(("seller", "offered_by", "owner"), _person),
            "n": _few_of(2, 60, "bids", "bid_count", "number_of_bids"),
            "r": _flag_of("reserve_met", "minimum_reached"),
        },
        (
            "Lot {x}: {w}, start {a}, now {h} ({n} bids)",
            "Lot {x}: now {h}, start {a}, from {s}",
            "{s} offers {a_w}. {b} leads with {h}.",
            "{b} bids {h} for the {w} of {s}.",
            "It began with {a}. After {n} bids it is {h}."
            " {r?The secret minimum was reached.|The secret minimum is not reached.}",
            "After {n} bids we are at {h}; we began at {a}.",
            "Seller: {s}\nHighest bidder: {b}\nHighest bid: {h}\nStarting bid: {a}",
            "Starting bid: {a}\nHighest bid: {h}\nLot: {x}\nReserve met: {r?yes|no}",
            "Going once, going twice ... {b} has it in hand for {h}! {s} smiles.",
            "You were outbid by {b}. It takes more than {h} now to win lot {x}.",
        ),
        (),
    ),
    Kind(  # a text to translate
        {
            "a": Slot(("source_language", "from_language", "from", "original_language"), _language),
            "b": Slot(("target_language", "to_language", "into", "translated_into"), _language),
            "n": _many_of(100, 90000, "words", "word_count", "number_of_words"),
            "r": Slot(("cents_per_word", "rate", "word_rate"), _tenths(3, 25)),
            "t": Slot(("translator", "translated_by"), _person),
            "c": Slot(("client", "customer", "ordered_by"), _company),
            "d": Slot(("deadline", "due_date", "due"), _date),
            "s": _flag_of("certified", "needs_stamp", "is_certified"),
        },
        (
            "{a} to {b}, {n} words, {r} cents a word, due {d}",
            "Into {b} from {a}: {n} words for {c}",
            "{t} translates {n} words from {a} into {b} for {c}.",
            "The text is in {a}. {c} needs it in {b} by {d}. {s?It needs a stamp.|No stamp is needed.}",
            "{c} needs it in {b}. The text that they have is in {a}. {t} will do it.",
            "Source: {a}\nTarget: {b}\nWords: {n}\nCertified: {s?yes|no}",
            "Deadline: {d}\nTarget: {b}\nSource: {a}\nRate: {r} ct",
            "By {d}, {t}! {n} words at {r} cents each. I know it is a lot.",
            "{t} turns {a} into {b}: {n} words until {d}.",
            "{s?certified|plain} translation, {b}, {n} words, from {a}",
        ),
        (),
    ),
    Kind(  # an invitation
        {
            "h": Slot(("host", "invited_by", "from"), _person),
            "g": Slot(("guest", "invited", "to"), Words.name),
            "c": Slot(("birthday_child", "celebrates", "party_for"), Words.name),
            "d": Slot(("date", "party_date", "day"), _day),
            "a": Slot(("answer_by", "reply_by", "rsvp_date"), _day),
            "t": Slot(("time", "starts_at", "begins_at"), _clock),
            "p": _flag_of("plus_one", "may_bring_guest"),
            "n": Slot(("new_age", "turns", "age"), _whole(2, 99)),
        },
        (
            "{h} invites {g} to the birthday of {c} on {d}.",
            "{c} turns {n} on {d}. Please tell {h} by {a} whether you come.",
            "Please answer by {a}. The party is on {d} at {t}.",
            "Dear {g},\n{c} turns {n}! Come on {d} at {t},"
            " {p?and bring somebody along|but please come alone}.\nYours, {h}",
            "To: {g}\nFrom: {h}\nDate: {d}\nReply by: {a}",
            "From: {h}\nParty for: {c}\nReply by: {a}\nDate: {d}\nPlus one: {p?yes|no}",
            "{g} was invited by {h}. It is {c} who gets the presents.",
            "At {t} it begins. {h} has baked, {c} has tidied up."
            " {p?You may bring a friend.|There is no room for more guests.}",
            "hey {g}! party for {c} on {d}, {t}. tell me by {a}. {h}",
            "{n} years old, who would believe it? {h} would like {g} to sing for {c}.",
        ),
        (),
    ),
    Kind(  # a rented car
        {
            "n": Slot(("driver", "rented_by", "customer"), _person),
            "s": Slot(("second_driver", "other_driver", "additional_driver"), _person),
            "a": Slot(("pickup_city", "pick_up", "from"), _town),
            "b": Slot(("return_city", "drop_off", "to"), _town),
            "x": Slot(("car_class", "class", "category"), _of("small car", "van", "estate", "sports car", "minibus")),
            "k": _many_of(100, 5000, "km_included", "included_km", "free_km"),
            "d": _many_of(150, 2000, "deposit", "deposit_eur"),
            "p": Slot(("price_per_day", "daily_rate", "per_day"), _cents(15, 149)),
            "f": _flag_of("full_insurance", "fully_insured"),
        },
        (
            "{x}, {p} a day, {k} km included, deposit {d}",
            "Deposit {d}, {p} per day, {f?full insurance|basic insurance only}",
            "{n} picks up the {x} in {a} and returns it in {b}.",
            "It goes back in {b}. {n} gets it in {a}. {s} may drive too.",
            "{s} may drive as well, but {n} signs for the {x}.",
            "Driver: {n}\nSecond driver: {s}\nClass: {x}\nDeposit: {d} EUR",
            "Return: {b}\nPick-up: {a}\nIncluded: {k} km\nFull insurance: {f?yes|no}",
            "We hold {d} euros on your card. {k} km are free. {f?You are fully insured.|You are not fully insured.}",
            "Can I bring the {x} back in {b}? I will fetch it in {a}. My name is {n}, and {p} per day is fine.",
            "{a} > {b}, {x}, {p}/day, {n}",
        ),
        (),
    ),
    Kind(  # who cleans what
        {
            "a": Slot(("kitchen", "cleans_kitchen", "kitchen_duty"), Words.name),
            "b": Slot(("bathroom", "cleans_bathroom", "bathroom_duty"), Words.name),
            "c": Slot(("bins", "takes_out_bins", "rubbish"), Words.name),
            "d": Slot(("stairs", "sweeps_stairs", "staircase"), Words.name),
            "w": Slot(("week", "calendar_week", "week_number"), _whole(1, 52)),
            "z": Slot((), Words.name),
        },
        (
            "Week {w}: {a} kitchen, {b} bathroom, {c} bins",
            "Kitchen: {a}\nBathroom: {b}\nStairs: {d}",
            "Stairs: {d}\nBins: {c}\nBathroom: {b}\nKitchen: {a}",
            "{b} does the bathroom and {a} the kitchen. {z} has the week off.",
            "In week {w} it is {c} who takes out the bins. {d} sweeps the stairs.",
            "{d} sweeps the stairs, not {z}, and {c} takes out the bins.",
            "The kitchen is left to {a} this time, since {z} is ill. {b} takes the bathroom.",
            "guys, week {w}! bathroom is {b}, kitchen {a}, and pls {c} remember the bins",
            "Bins {c} / stairs {d} / week {w}",
            "{z} and {d} swapped: {d} now has the stairs in week {w}.",
        ),
        (),
    ),
    Kind(  # the temperature over a day
        {
            "p": Slot(("place", "station", "location"), _town),
            "a": Slot(("morning", "morning_temperature", "temp_morning"), _tenths(-9, 15)),
            "b": Slot(("noon", "noon_temperature", "temp_noon"), _tenths(1, 36)),
            "c": Slot(("evening", "evening_temperature", "temp_evening"), _tenths(-5, 28)),
            "r": Slot(("rain_mm", "rain", "rainfall_mm"), _tenths(0, 60)),
            "s": Slot(("sun_hours", "hours_of_sun", "sunshine"), _whole(2, 15)),
            "f": _flag_of("frost", "ground_frost"),
        },
        (
            "{p}: morning {a}, noon {b}, evening {c}",
            "{p}: evening {c}, noon {b}, morning {a}, {r} mm of rain",
            "It was {a} degrees in the morning and {b} at noon. {f?There was frost.|There was no frost.}",
            "By evening it had cooled to {c}; at noon we had {b}.",
            "{r} mm fell in {p}, and yet the sun shone for {s} hours.",
            "Sun: {s} h\nRain: {r} mm\nEvening: {c}\nMorning: {a}",
            "Place: {p}\nMorning: {a} °C\nNoon: {b} °C\nFrost: {f?yes|no}",
            "I got up and it was {a}. I came home and it was {c}. In between, {b} on the square of {p}!",
            "{s} hours of sun, {r} mm of rain, {f?frost at night|no frost}, {p}",
            "From {b} at noon the temperature fell to {c} in the evening. The day had begun with {a}.",
        ),
        (),
    ),
    Kind(  # people of a village, then and now
        {
            "v": Slot(("village", "place", "town", "name"), _town),
            "a": _many_of(90, 30000, "inhabitants_then", "population_before", "old_population"),
            "b": _many_of(90, 30000, "inhabitants_now", "population_now", "current_population"),
            "y": Slot(("year_then", "first_count", "counted_first"), _whole(1850, 1959)),
            "z": Slot(("year_now", "last_count", "counted_last"), _whole(1990, 2025)),
            "m": Slot(("mayor", "head_of_village", "led_by"), _person),
            "h": Slot(("altitude_m", "altitude", "metres_above_sea"), _whole(2, 2100)),
            "s": _flag_of("has_station", "train_station", "station"),
        },
        (
            "{v}: {a} people in {y}, {b} in {z}",
            "{v}: {b} people in {z}, {a} in {y}",
            "In {z} {v} had {b} inhabitants. In {y} there were {a}.",
            "{b} people live in {v} today; once there were {a}.",
            "{a} people lived in {v} at the first count of {y}. {s?Trains stop here.|It has no railway station.}",
            "Village: {v}\nMayor: {m}\nPopulation: {b} ({z})\nBefore: {a} ({y})",
            "Altitude: {h} m\nStation: {s?yes|no}\nMayor: {m}",
            "{m} is the mayor of {v}, {h} m above the sea, {s?with a station|without a station}.",
            "Old people still talk about {y}, when {a} lived here. The last count, of {z}, found {b}.",
            "{h} metres up lies {v}. {m} counts the people by hand: {b}.",
        ),
        (),
    ),
    Kind(  # what a shift made
        {
            "m": Slot(("machine", "line", "machine_id"), _code),
            "t": _many_of(100, 9000, "target", "planned", "planned_pieces"),
            "g": _many_of(90, 9000, "good_parts", "produced", "made"),
            "s": _many_of(2, 400, "scrap", "rejected", "bad_parts"),
            "d": Slot(("downtime_min", "minutes_down", "stopped_min"), _whole(2, 300)),
            "o": Slot(("operator", "run_by", "worker"), _person),
            "f": Slot(("shift", "which_shift"), _of("early", "late", "night")),
            "r": _flag_of("target_reached", "reached"),
        },
        (
            "{m}, {f} shift: target {t}, good {g}, scrap {s}",
            "{m}: scrap {s}, good {g}, target {t}, {o}",
            "{o} ran {m} in the {f} shift and made {g} good parts. {s} had to be thrown away.",
            "{s} bad parts and {g} good ones on {m}. It stood still for {d} minutes.",
            "We wanted {t} and got {g}.",
            "We got {g}; the plan said {t}. Target {r?reached|not reached}.",
            "Operator: {o}\nShift: {f}\nPlanned: {t}\nProduced: {g}",
            "Rejected: {s}\nProduced: {g}\nPlanned: {t}\nDowntime: {d} min",
            "{d} minutes lost because of a belt. {o} did what was possible."
            " {r?The target was reached.|The target was missed.}",
            "night or day, {m} always stops. this time {d} min, {s} pieces scrap",
        ),
        (),
    ),
    Kind(  # the wrong thing came
        {
            "c": Slot(("customer", "complains", "name"), _person),
            "w": Slot(("ordered_item", "ordered", "wanted"), _ware),
            "g": Slot(("received_item", "received", "delivered"), _ware),
            "n": Slot(("order_number", "order_no", "order"), _code),
            "r": _flag_of("wants_refund", "refund", "money_back"),
            "d": Slot(("order_date", "ordered_on"), _date),
            "a": Slot(("arrived_on", "delivery_date", "received_on"), _date),
        },
        (
            "I ordered {a_w} but got {a_g}. {r?I want my money back.|Please send the right one.} {c}",
            "I got {a_g}. What I had ordered was {a_w}! Order {n}.",
            "Order {n} of {d}: ordered {w}, received {g}",
            "Instead of the {w} there was {a_g} in the box that came on {a}.",
            "There came {a_g} instead of {a_w}. {c} is not happy.",
            "Received: {g}\nOrdered: {w}\nCustomer: {c}\nRefund: {r?yes|no}",
            "Customer: {c}\nOrder: {n}\nOrdered on: {d}\nArrived on: {a}",
            "Hello,\nyour parcel came on {a}, weeks late; I had ordered on {d}. And then: no {w}, but {a_g}.\n{c}",
            "{n}!! {g} instead of {w}!! {r?refund pls|no refund needed, just swap it}",
            "Ordered on {d}, arrived on {a}, opened today: {a_g}. {c}"
            " {r?asks for the money back|asks for a new parcel, not for money}.",
        ),
        (),
    ),
    Kind(  # things that are swapped
        {
            "a": Slot(("first_person", "person_a", "offers_first"), Words.name),
            "b": Slot(("second_person", "person_b", "swaps_with"), Words.name),
            "x": Slot(("first_gives", "a_gives", "given_by_first"), _ware),
            "y": Slot(("second_gives", "b_gives", "given_by_second"), _ware),
            "p": Slot(("place", "where", "meeting_point"), lambda w: f"{w.colour()} {w.place()}"),
            "d": Slot(("date", "day", "swap_date"), _day),
        },
        (
            "{a} gives {a_x}, {b} gives {a_y}.",
            "{a} takes home the {y}, since {b} got the {x} of {a}.",
            "First person: {a} ({x})\nSecond person: {b} ({y})",
            "Person A: {a}\nPerson B: {b}\nPlace: {p}\nDate: {d}",
            "Swap on {d}: the {x} of {a} for the {y} of {b}",
            "{a} had {a_x} and wanted another thing. {b} had {a_y}. They met at the {p}.",
            "At the {p} {a} handed over the {x} and took the {y} from {b}.",
            "On {d} {a} gave {b} the {x}. In return came the {y}.",
        ),
        (),
    ),
    Kind(  # an episode to listen to
        {
            "s": Slot(
                ("show", "podcast", "series"), lambda w: f"The {_coined(w)} {w.rng.choice(('Show', 'Hour', 'Talk'))}"
            ),
            "n": Slot(("episode", "episode_number", "number"), _whole(2, 900)),
            "t": Slot(("title", "episode_title", "topic"), Words.title),
            "h": Slot(("host", "hosted_by", "presenter"), _person),
            "g": Slot(("guest", "interviewed", "talks_to"), _person),
            "m": Slot(("minutes", "length_min", "duration"), _whole(6, 190)),
            "d": Slot(("date", "published_on", "aired"), _day),
            "x": _flag_of("explicit", "strong_language"),
        },
        (
            "{s} #{n}: {t}, {m} min",
            '{m} min: "{t}", episode {n} of {s}',
            "{h} talks to {g} for {m} minutes.",
            "{g} is the guest of {h} in episode {n}.",
            "{g} answers the questions of {h}. It is called {t} and was published on {d}.",
            "Host: {h}\nGuest: {g}\nEpisode: {n}\nExplicit: {x?yes|no}",
            "Guest: {g}\nHost: {h}\nTitle: {t}\nDate: {d}",
            "On {d} {h} asked {g} about everything. {x?Strong language!|No bad words in it.} {s}, {n}.",
            "Hello and welcome to {s}! I am {h}. Today {g} sits next to me.",
            "My tip for the train: {s}, number {n}. {g} is so funny that {h} has to laugh for {m} minutes.",
        ),
        (),
    ),
    Kind(  # a late train
        {
            "t": Slot(("train", "train_number", "train_no"), _code),
            "p": Slot(("planned_departure", "planned", "scheduled_time"), _clock),
            "a": Slot(("actual_departure", "expected", "real_time"), _clock),
            "d": _few_of(3, 180, "delay_minutes", "delay", "minutes_late"),
            "o": Slot(("old_platform", "planned_platform", "platform_before"), _place_code),
            "n": Slot(("new_platform", "platform_now", "actual_platform"), _place_code),
            "r": Slot(("reason", "cause", "because_of"), lambda w: f"a broken {made_up(w.rng)}"),
            "c": Slot(("to", "destination", "bound_for"), _town),
        },
        (
            "{t} to {c}: planned {p}, now {a}",
            "{t} to {c} goes at {a} instead of {p}. The reason is not known.{-r}",
            "{t} to {c} is late, because of {r}. By how many minutes nobody can say.{-d}",
            "{t} to {c}: now {a}, planned {p}, platform {n} instead of {o}",
            "Because of {r} {t} is {d} minutes late.",
            "{t} is {d} minutes late. The reason is {r}.",
            "Platform {n} today, not {o}! {t} leaves at {a}.",
            "Not from platform {o} but from {n} goes the train to {c}.",
            "Planned: {p}\nExpected: {a}\nDelay: {d} min\nReason: {r}",
            "New platform: {n}\nOld platform: {o}\nTrain: {t}",
            "We are sorry. The train to {c} should have left at {p}. It will leave at {a}, from platform {n}.",
            "ugh, {d} min late again. was supposed to go {p}, says {a} now. some story about {r}",
        ),
        (),
    ),
    Kind(  # three of a family
        {
            "g": Slot(("grandmother", "grandma", "oldest"), Words.name),
            "m": Slot(("mother", "mum", "parent"), Words.name),
            "c": Slot(("child", "grandchild", "youngest"), Words.name),
            "a": Slot(("child_age", "age_of_child", "age"), _whole(2, 17), _few),
            "b": Slot(("mother_age", "age_of_mother"), _whole(24, 55)),
            "t": Slot(("town", "lives_in", "home"), _town),
            "s": _flag_of("goes_to_school", "at_school"),
        },
        (
            "{g} is the mother of {m}, and {m} is the mother of {c}.",
            "{c} is the child of {m}. {g} is the grandmother.",
            "{m} is {b}, her child {c} is {a}.",
            "{c} is {a} years old, and the mother, {m}, is {b}. They live in {t}.",
            "Grandma {g}, mum {m} and little {c} came by bus from {t}.",
            "Little {c} {s?already goes to school|does not go to school yet}. Mum {m} is {b}.",
            "Grandmother: {g}\nMother: {m} ({b})\nChild: {c} ({a})",
            "Child: {c}\nMother: {m}\nSchool: {s?yes|no}\nTown: {t}",
            "In {t} {m}, who is {b}, lives with {c}, who is {a}.",
            "{g} looks after {c} while {m} works."
            " {s?School ends at noon.|School begins only next year for the little one.}",
        ),
        (),
    ),
)

# Ways to ask, for the last part of training: {k} are keys, {y} keys with types, {b} keys as lines, {o} a form.
LAST_ASKS = (
    "Extract these fields from the text:\n{b}\n\nText: {t}\n\nAnswer in JSON.",
    "Read the text and give me the following as JSON:\n{b}\n\n{t}",
    "{t}\n\nFrom the above, extract as JSON:\n{b}",
    "Please pull these values out of the message below.\n{b}\nReply with JSON only.\n\n{t}",
    "I need a JSON object with:\n{b}\n\nHere is the input:\n{t}",
    "Fields to extract:\n{b}\n\nInput:\n{t}\n\nOutput (JSON):",
    "Schema: {o}\nInput: {t}",
    "Fill this schema: {o}\n\n{t}",
    "Fill in the blanks of {o} with what this says: {t}",
    "{t}\n\nReturn it in this format: {o}",
    "{t}\n\nUse exactly these keys: {o}",
    "Here is an empty record: {o}\nComplete it from this text:\n{t}",
    "Output format:\n{o}\n\nText:\n{t}",
    "Complete the JSON {o}. The values are in here: {t}",
    "The result should look like {o}. Source: {t}",
    "Template: {o}\n\nDocument: {t}\n\nFilled template:",
    "Extract {y} as JSON from: {t}",
    "Give me JSON with {y}. {t}",
    "{t}\n\nJSON with {y}",
    "Parse the text. Fields: {y}. Text: {t}",
    "I have this text:\n\n{t}\n\nI want it as JSON, with these fields: {y}",
    "Types matter: {y}. Return JSON for this: {t}",
    "Convert the following note to a JSON object with {y}:\n{t}",
    "{y}\n\nGet that out of this text, JSON please:\n\n{t}",
    "Text:\n```\n{t}\n```\nExtract {k} as JSON.",
    "```\n{t}\n```\nWhat are {k}? JSON only, no explanations.",
    "Extract {k} from the text between the backticks. Reply with JSON only.\n```{t}```",
    "<text>{t}</text>\nExtract {k} as JSON.",
    "<document>\n{t}\n</document>\n\nReturn JSON with {k} and nothing else.",
    "<input>{t}</input>\n<keys>{k}</keys>\nJSON:",
    "Keys: {k}\n\n---\n{t}\n---\n\nRespond with valid JSON.",
    '"{t}"\n\nWhat does it say about {k}? Answer as JSON.',
    'Text: "{t}"\nKeys: {k}\nOnly the JSON, please.',
    'Given the text "{t}", produce JSON containing {k}.',
    "{k}, json, no extra words\n\n{t}",
    "json pls ({k})\n\n{t}",
    "make this json {k}\n{t}",
    "can u get {k} out of this?? as json thx\n{t}",
    "need {k} in json from this: {t}",
    "Would you be so kind as to read the following lines and to write {k} down as JSON?\n\n{t}",
    "My program needs {k} as JSON, so please no comments and no code fence. {t}",
    "Respond with JSON only, no explanations. Keys: {k}. Use null if something is missing.\n\n{t}",
    "Extract {k}. If the text does not say it, put null. JSON only.\n\n{t}",
    "Return {k} as JSON (null if not mentioned).\n{t}",
    "Analyse this message and list {k} in a JSON object.\n\n{t}",
    "I got this message:\n\n{t}\n\nPlease save it as JSON for me, with {k}.",
    "For our database: {k}. The text follows, JSON please.\n\n{t}",
    "Please to give JSON of {k} from this text: {t}",
    "Structured output wanted.\nFields: {k}\nSource text: {t}",
    "Task: information extraction\nFields: {k}\nText: {t}\nResult as JSON:",
    "From the email below, extract {k}. Output JSON.\n\n{t}",
    "Entry: {t}\nTurn the entry into an object with the properties {k}, in JSON.",
    "What are the values of {k} in the text below? Answer with one JSON object.\n\n{t}",
    "{k} = ? JSON. {t}",
    "Summarise as JSON, nothing but {k}: {t}",
    "Transform into JSON, fields {k}, numbers as numbers:\n{t}",
    "Take the text and build an object. Properties: {k}. Output: JSON.\nText: {t}",
    "This came in today: {t}\nWe store {k}. What would the JSON be?",
)
LAST_SYSTEMS = (
    "Extract the fields below from every message and reply with JSON only.\n{b}",
    "Reply with nothing but JSON. Fields: {y}",
    "You are a data extraction service. Output one JSON object per message, with the fields {k}. No explanations.",
    "You are a parser. Input: text. Output: {o}",
    "Schema of your answers: {o}",
    "Users send you texts. Turn each into this structure, without a word before or after it: {o}",
    "Extract {y}. Use null where the text says nothing.",
    "JSON mode. Required properties:\n{b}",
    "Convert what the user writes to JSON. Properties: {k}. If a value is missing, it is null.",
    "Your output is read by a machine: only valid JSON, with {k}.",
    "Whatever the user sends, pick out {k} and print them as JSON.",
    "No prose. No code fences. A JSON object with {k}.",
    "The user pastes notes. You fill in {o} for each of them.",
    "Respond in JSON using these fields and types: {y}",
)
# Of nothing that is asked for, though some have numbers, times and colours in them.
LAST_FILLERS = (
    "Please file this.",
    "Here is what I have so far.",
    "As discussed.",
    "Just so that you know.",
    "I copied this from the board in the hall.",
    "Sorry for the long silence!",
    "Let me know if anything is unclear.",
    "I hope that the 2 of you had a good weekend.",
    "By the way, the coffee machine upstairs has broken down for the third time.",
    "PS: there is soup for 3.50 in the canteen today.",
    "I have told you so at least 20 times.",
    "It has been raining for 6 days now.",
    "My old radio plays the news every hour, and nobody listens.",
    "This message was written by hand, please excuse the 7 blots of ink.",
    "Have you seen my green pen?",
    "Forwarded for your information.",
    "No answer is needed.",
    "That made me think of the summer of 1999.",
    "We will all laugh about it in 10 years.",
    "tbh i dont care",
    "FYI",
    "Well, there we are.",
    "Somebody has left 2 yellow cups in the sink again.",
)
LAST_LISTS = (
    "There is more than one record: make it a JSON array.",
    "One object per record, in a list.",
    "Return an array of objects.",
    "There are several, so give me a list of JSON objects.",
)


@dataclass(frozen=True)
class Part:
    """An object within a record, or a list of such."""

    keys: tuple[str, ...]
    slots: tuple[str, ...]
    rows: bool = False


@dataclass(frozen=True)
class Nest:
    """Records with records in them.

    Attributes:
        slots: all that a record says once.
        parts: what the object has, in its order: a slot or a part.
        frames: texts, each with how it writes a row; ``{rows}`` stands for all of these.
        row: the slots of each row.
    """

    slots: dict[str, Slot]
    parts: tuple[str | Part, ...]
    frames: tuple[tuple[str, str], ...]
    row: dict[str, Slot] = field(default_factory=dict)


NESTS: tuple[Nest, ...] = (
    Nest(  # an order
        {
            "n": Slot(("name", "full_name"), _person),
            "c": Slot(("city", "town"), _town),
            "x": Slot(("order_number", "order_id"), _code),
        },
        ("x", Part(("customer", "buyer"), ("n", "c")), Part(("items", "products"), ("w", "q"), rows=True)),
        (
            ("Order {x}: {n} from {c} would like {rows}.", "{q} {w}"),
            ("{rows} for {n} in {c}, order {x}", "{q} x {w}"),
            ("Order {x}\nCustomer: {n}, {c}\n{rows}", "- {w}: {q}"),
            ("Dear team,\nplease send these to {n}, {c}:\n{rows}\nThe order is {x}.", "{q} pcs. {w}"),
            ("{n} lives in {c} and ordered the following ({x}). {rows}", "Of the {w} we need {q}."),
            ("{c}, {n}: {rows} ({x})", "{w} ({q})"),
        ),
        {"w": Slot(("name", "item"), Words.items), "q": Slot(("quantity", "count"), _whole(2, 60))},
    ),
    Nest(  # a team
        {
            "t": Slot(("team", "team_name"), lambda w: f"{_coined(w)} team"),
            "n": Slot(("name", "full_name"), _person),
            "m": Slot(("email", "mail"), _mail),
        },
        ("t", Part(("lead", "head"), ("n", "m")), Part(("members", "people"), ("p", "r"), rows=True)),
        (
            ("The {t} is led by {n} ({m}). In it are {rows}.", "{p} as {r}"),
            ("{t}\nlead: {n}, {m}\n{rows}", "{r}: {p}"),
            ("{rows}. They all work for {n}, {m}, in the {t}.", "{p} is {r}"),
            ("Write to {m} if you want to reach {n}, who leads the {t}. {rows}", "{p} is our {r}."),
            ("{t}: {rows}; head {n} <{m}>", "{p} ({r})"),
        ),
        {"p": Slot(("name", "person"), Words.name), "r": Slot(("role", "job"), Words.job)},
    ),
    Nest(  # a journey
        {
            "a": Slot(("city", "place"), _town),
            "s": Slot(("time", "at"), _clock),
            "b": Slot(("city", "place"), _town),
            "t": Slot(("time", "at"), _clock),
            "n": Slot(("train", "train_number"), _code),
        },
        ("n", Part(("departure", "start", "from"), ("a", "s")), Part(("arrival", "end", "to"), ("b", "t"))),
        (
            ("{n} leaves {a} at {s} and reaches {b} at {t}.", ""),
            ("{n} reaches {b} at {t}. It leaves {a} at {s}.", ""),
            ("Departure: {a}, {s}\nArrival: {b}, {t}\nTrain: {n}", ""),
            ("Arrival: {b}, {t}\nDeparture: {a}, {s}\nTrain: {n}", ""),
            ("I take {n}. At {t} I am in {b}, so I have to be at the station of {a} by {s}.", ""),
        ),
    ),
    Nest(  # an invoice
        {
            "n": Slot(("number", "invoice_number"), _code),
            "s": Slot(("name", "company"), _company),
            "u": Slot(("city", "town"), _town),
            "c": Slot(("name", "company"), _company),
            "v": Slot(("city", "town"), _town),
            "t": Slot(("total", "amount"), _cents(20, 2000)),
            "p": _flag_of("paid", "is_paid"),
        },
        ("n", Part(("seller", "supplier"), ("s", "u")), Part(("buyer", "customer"), ("c", "v")), "t", "p"),
        (
            ("Invoice {n}: {s} ({u}) bills {c} ({v}) {t} EUR. {p?It is paid.|It is not paid yet.}", ""),
            ("{c} of {v} {p?has paid|has not paid} the {t} euros to {s} of {u}. Invoice {n}.", ""),
            ("No. {n}\nBuyer: {c}, {v}\nSeller: {s}, {u}\nTotal: {t}\nPaid: {p?yes|no}", ""),
            ("No. {n}\nSeller: {s}, {u}\nBuyer: {c}, {v}\nTotal: {t}\nPaid: {p?yes|no}", ""),
            ("{t} EUR from {c}, {v}, to {s}, {u} ({n}, {p?settled|open})", ""),
        ),
    ),
    Nest(  # a recipe
        {"d": Slot(("dish", "name"), _dish), "s": Slot(("servings", "portions"), _whole(2, 12), _few)},
        ("d", "s", Part(("ingredients", "needed"), ("g", "w"), rows=True)),
        (
            ("{d} for {s} people: {rows}.", "{g} g of {w}"),
            ("{d}, {s} servings\n{rows}", "- {w}, {g} g"),
            ("Take {rows}, and {s} people will like your {d}.", "{g} grams of {w}"),
            ("For {s} portions of {d} this is needed. {rows}", "The {w} should weigh {g} g."),
        ),
        {"w": Slot(("name", "ingredient"), lambda w: made_up(w.rng)), "g": Slot(("grams", "amount_g"), _whole(5, 900))},
    ),
    Nest(  # a timetable
        {"n": Slot(("name", "pupil", "student"), _person), "d": Slot(("day", "weekday"), _weekday)},
        ("n", "d", Part(("lessons", "classes"), ("s", "t", "r"), rows=True)),
        (
            ("On {d} {n} has {rows}.", "{s} at {t} in room {r}"),
            ("{n}, {d}\n{rows}", "{t} {s} (room {r})"),
            ("{n} has a full {d}. {rows}", "At {t} room {r} has {s}."),
        ),
        {
            "s": Slot(("subject", "lesson"), _subject),
            "t": Slot(("time", "start"), _clock),
            "r": Slot(("room", "room_number"), _whole(1, 400)),
        },
    ),
    Nest(  # a machine with its parts
        {
            "d": Slot(("device", "product"), _ware),
            "w": Slot(("width", "width_cm"), _whole(5, 200)),
            "h": Slot(("height", "height_cm"), _whole(5, 200)),
            "p": Slot(("depth", "depth_cm"), _whole(5, 200)),
            "k": Slot(("weight_kg", "weight"), _tenths(0, 60)),
            "f": _flag_of("in_stock", "available"),
        },
        ("d", Part(("size", "dimensions", "measures"), ("w", "h", "p")), "k", "f"),
        (
            ("The {d} is {h} cm high, {w} cm wide and {p} cm deep. It weighs {k} kg. {f?In stock.|Sold out.}", ""),
            ("{d}: width {w} cm, depth {p} cm, height {h} cm, {k} kg, {f?available|not available}", ""),
            ("Depth {p} cm, width {w} cm, height {h} cm\nWeight {k} kg\n{d}, {f?ready to ship|out of stock}", ""),
            (
                "{f?We have it here|We do not have it now}: the {d} of {k} kg, {w} cm in width, {h} cm in height,"
                " {p} cm deep.",
                "",
            ),
        ),
    ),
    Nest(  # a person with an address
        {
            "n": Slot(("name", "full_name"), Words.full_name),
            "s": Slot(("street", "street_and_number"), _street),
            "c": Slot(("city", "town"), _town),
            "m": Slot(("email", "mail"), _mail),
            "p": Slot(("phone", "telephone"), _phone),
        },
        ("n", Part(("address", "home"), ("s", "c")), Part(("contact", "reach"), ("m", "p"))),
        (
            ("{n} lives at {s} in {c}. Call {p} or write to {m}.", ""),
            ("{n}\n{s}\n{c}\n{p}\n{m}", ""),
            ("{m} and {p} both belong to {n}, {c}, {s}.", ""),
            ("Mail: {m}\nPhone: {p}\nStreet: {s}\nCity: {c}\nName: {n}", ""),
            ("My name is {n}, my number is {p}. I am at home in {c}, at {s}, and read my mails at {m}.", ""),
        ),
    ),
    Nest(  # a match
        {
            "h": Slot(("team", "name"), _team),
            "g": Slot(("goals", "score"), _goals),
            "a": Slot(("team", "name"), _team),
            "k": Slot(("goals", "score"), _goals),
            "d": Slot(("date", "day"), _date),
        },
        (Part(("home", "home_team"), ("h", "g")), Part(("away", "away_team"), ("a", "k")), "d"),
        (
            ("{h} (home) scored {g}, {a} (away) scored {k}. Played on {d}.", ""),
            ("{d}: {a} away {k}, {h} home {g}", ""),
            ("On {d} the visitors {a} had {k} goals and the hosts {h} {g}.", ""),
            ("{d}\nHome: {h}, {g} goals\nAway: {a}, {k} goals", ""),
        ),
    ),
    Nest(  # an alert
        {
            "h": Slot(("host", "server"), _host),
            "v": Slot(("severity", "level"), _of("low", "medium", "high")),
            "o": Slot(("on_call", "engineer"), Words.name),
        },
        ("h", "v", "o", Part(("checks", "results"), ("c", "s"), rows=True)),
        (
            ("{h}: {v} alert for {o}. {rows}", "The check {c} took {s} ms."),
            ("{v} | {h} | {o}\n{rows}", "{c}: {s} ms"),
            ("{o} looks at {h} ({v}): {rows}.", "{c} after {s} ms"),
        ),
        {"c": Slot(("check", "name"), lambda w: made_up(w.rng)), "s": Slot(("ms", "took_ms"), _whole(2, 9000))},
    ),
)
NEST_ASKS = (
    "Fill in {o} from this text: {t}",
    "{t}\n\nReturn JSON like this: {o}",
    "Extract the data as JSON with this structure:\n{o}\n\n{t}",
    "Schema: {o}\n\nText: {t}\n\nJSON only, please.",
    "Use this form for the text below.\n{o}\n\n{t}",
    "Text:\n```\n{t}\n```\nAnswer in the shape {o}.",
    "Turn this into nested JSON ({d}): {t}",
    "{t}\n\nAs JSON, please: {d}.",
    "I need JSON with {d}. {t}",
    "Make a JSON object with {d} from this:\n{t}",
    "JSON, keys {d}\n\n{t}",
    "<text>\n{t}\n</text>\nExtract {d}. Only JSON.",
    "pls make json out of it, with {d}: {t}",
    "Please read this and give me a nested JSON object. It has {d}.\n\n{t}",
)


def _blank(value: Any) -> Any:
    """The empty form of a value."""
    if isinstance(value, dict):
        return {key: _blank(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_blank(value[0])]
    return (
        False if isinstance(value, bool) else 0 if isinstance(value, int) else 0.0 if isinstance(value, float) else ""
    )


def _outlined(record: dict[str, Any]) -> str:
    """The keys of a nested record in words."""
    parts = []
    for key, value in record.items():
        inner = value[0] if isinstance(value, list) else value
        before = "a list with " if isinstance(value, list) else ""
        parts.append(f"{key} ({before}{', '.join(inner)})" if isinstance(inner, dict) else key)
    return listed(parts)


def _drawn(words: Words, slots: dict[str, Slot], taken: list[str]) -> dict[str, Any]:
    """A value of each slot, none of which is taken but those that are true or false."""
    values: dict[str, Any] = {}
    for name, slot in slots.items():
        values[name] = slot.draw(words)
        while str(values[name]) in taken:
            values[name] = slot.draw(words)
        if not isinstance(values[name], bool):
            taken.append(str(values[name]))
    return values


def nested(words: Words) -> tuple[str, str]:
    """A text and what it says as JSON with objects and lists in it."""
    rng = words.rng
    nest = rng.choice(NESTS)
    taken: list[str] = []
    values = _drawn(words, nest.slots, taken)
    rows = [_drawn(words, nest.row, taken) for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))] if nest.row else []
    frame, line = rng.choice(nest.frames)
    lines = [written(words, nest.row, line, row) for row in rows]
    joined = "\n".join(lines) if "\n{rows}" in frame else " ".join(lines) if line.endswith(".") else ""
    text = written(words, nest.slots, frame.replace("{rows}", "<rows>"), values)
    text = text.replace("<rows>", joined or (listed(lines) if lines else ""))
    first = rng.random() < 0.6

    def key_of(slot: Slot | Part) -> str:
        return slot.keys[0] if first else rng.choice(slot.keys)

    record: dict[str, Any] = {}
    parts = [part for part in nest.parts if isinstance(part, Part) or rng.random() < 0.75]
    if len(parts) > 1 and rng.random() < 0.25:
        parts.remove(rng.choice(parts))
    for part in parts if any(isinstance(part, Part) for part in parts) else nest.parts:
        if isinstance(part, str):
            record[key_of(nest.slots[part])] = values[part]
            continue
        slots, found = (nest.row, rows) if part.rows else (nest.slots, [values])
        keys = {name: key_of(slots[name]) for name in part.slots}
        objects = [{key: row[name] for name, key in keys.items()} for row in found]
        record[key_of(part)] = objects if part.rows else objects[0]
    form = json.dumps(_blank(record), ensure_ascii=False, indent=rng.choice((None, None, None, 2)))
    asked = rng.choice(NEST_ASKS).format(o=form, d=_outlined(record), t=text)
    return asked, json.dumps(record, ensure_ascii=False)
