"""What tools of every day give back, in the many forms that servers have for it, and what there is to say then.

``<kind>`` stands for a value of that kind, ``<kind2>`` for another one; an answer says only what the result says.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any

from words import MONTHS, Words

from skills.everyday_values import KINDS

# Of something that was to be done, and has been done or is about to be.
DONE: tuple[tuple[str, str], ...] = (
    ('{"ok": true}', "Done."),
    ('{"success": true, "error": null}', "That is done."),
    ('{"status": "success", "code": 200}', "That has worked."),
    ('{"status": "done", "took_ms": <high>}', "Done."),
    ('{"result": "OK"}', "That is done."),
    ("true", "Done."),
    ("OK", "Done."),
    ("done", "That is done."),
    ("Success.", "That has worked."),
    ("null", "Done."),
    ("{}", "Done."),
    ('{"id": "<code>", "status": "created"}', "Done, the id is <code>."),
    ('{"id": <ticket>}', "Done, its number is <ticket>."),
    ('{"created": true, "id": <ticket>, "owner": "<name>"}', "Done, the id is <ticket>."),
    ('{"confirmation": "<code>"}', "Done, the confirmation is <code>."),
    ('{"data": {"reference": "<code>", "state": "confirmed"}, "error": null}', "It is confirmed under <code>."),
    ('{"booking": {"number": "<code>", "price": <amount>, "currency": "EUR"}}', "Done, the booking number is <code>."),
    ("Saved under the number <ticket>.", "It is saved under the number <ticket>."),
    ("Accepted. Reference: <code>", "It is accepted, the reference is <code>."),
    ('{"status": "pending"}', "It is not done yet, the status is pending."),
    ('{"status": "queued", "position": <few>}', "It is waiting, at position <few>."),
    ('{"status": "waiting", "approval_by": "<name>"}', "It waits until <name> approves it."),
    ('{"accepted": true, "starts_at": "<clock>"}', "That is accepted and starts at <clock>."),
    ('{"done": true, "done_by": "<name>", "at": "<clock>"}', "<name> did it at <clock>."),
    ('{"ok": true, "warning": "check the <oddword>"}', "Done, with a warning: check the <oddword>."),
    ('{"status": "ok", "message": "Will be ready on <day>"}', "Done, it will be ready on <day>."),
    ('{"changed": 1}', "Done, one thing was changed."),
    ('{"changed": <few>, "unchanged": <quantity>}', "Done, <few> were changed."),
    ('{"changed": 0}', "Nothing was changed."),
    ('{"old": "<colour>", "new": "<colour2>"}', "It was <colour> and is now <colour2>."),
    ('{"before": <low>, "after": <high>}', "It was <low> and is now <high>."),
    ('{"ok": true, "cost": {"value": <amount>, "currency": "EUR"}}', "Done, it costs <amount> EUR."),
    ('{"ok": true, "remaining": <few>}', "Done, <few> remain."),
    ('{"email_sent_to": "<email>"}', "Done, a mail went to <email>."),
    ('[{"step": 1, "ok": true}, {"step": 2, "ok": true}]', "Both steps have worked."),
    ('[{"step": 1, "ok": true}, {"step": 2, "ok": false}]', "Step 1 has worked, step 2 has not."),
)
# Of what has not worked.
FAILED: tuple[tuple[str, str], ...] = (
    ('{"error": "not found"}', "That was not found."),
    ('{"error": {"code": 404, "message": "not found"}}', "That was not found."),
    ('{"error": {"code": 403, "message": "access denied"}}', "That has not worked: access denied."),
    ('{"error": "unauthorized"}', "I am not allowed to do that."),
    ('{"detail": "Not allowed"}', "I am not allowed to do that."),
    ('{"error": "timeout", "after_seconds": <quantity>}', "There was no answer for <quantity> seconds."),
    ('{"success": false, "reason": "already exists"}', "That has not worked, it already exists."),
    ('{"success": false, "reason": "closed on <day>"}', "That has not worked: closed on <day>."),
    ('{"ok": false, "errors": ["no <oddword>"]}', "That has not worked: no <oddword>."),
    (
        '{"ok": false, "errors": ["no <oddword>", "no <oddword2>"]}',
        "That has not worked: no <oddword> and no <oddword2>.",
    ),
    ('{"status": "rejected", "by": "<name>"}', "<name> has rejected it."),
    (
        '{"status": "error", "message": "try again in <quantity> minutes"}',
        "It failed, try again in <quantity> minutes.",
    ),
    ("Error: connection refused", "That has not worked: the connection was refused."),
    ("ERROR 500", "That has not worked, there was the error 500."),
    ("Sorry, this service is closed until <clock>.", "That has not worked, the service is closed until <clock>."),
    ("Permission denied", "I am not allowed to do that."),
    ("false", "That has not worked."),
    ('{"ok": false}', "That has not worked."),
    ('{"error": "several matches", "matches": ["<name>", "<name2>"]}', "There are two: <name> and <name2>. Which one?"),
    ('{"available": false, "next_free": "<day>"}', "That is not free, the next free day is <day>."),
    ('{"available": false, "next_free": "<clock>"}', "That is not free until <clock>."),
    ('{"error": "too many requests", "retry_after": <quantity>}', "There were too many requests."),
)
# Of what was looked for.
FOUND: tuple[tuple[str, str], ...] = (
    ("[]", "Nothing was found."),
    ('{"results": []}', "Nothing was found."),
    ('{"results": [], "total": 0}', "Nothing was found."),
    ('{"items": null}', "Nothing was found."),
    ('{"count": 0, "next": null}', "Nothing was found."),
    ("No results.", "Nothing was found."),
    ('["<name>"]', "There is one: <name>."),
    ('["<name>", "<name2>"]', "There are two: <name> and <name2>."),
    ('["<oddword>", "<oddword2>", "<oddword3>"]', "There are three: <oddword>, <oddword2> and <oddword3>."),
    ('{"results": ["<restaurant>", "<restaurant2>"]}', "I found <restaurant> and <restaurant2>."),
    ('{"total": 2, "items": [{"name": "<name>"}, {"name": "<name2>"}]}', "There are two: <name> and <name2>."),
    (
        '[{"name": "<name>", "price": <amount>}, {"name": "<name2>", "price": <amount2>}]',
        "<name> for <amount> and <name2> for <amount2>.",
    ),
    (
        '[{"title": "<title>", "date": "<day>"}, {"title": "<title2>", "date": "<day2>"}]',
        "<title> on <day> and <title2> on <day2>.",
    ),
    ('{"data": [{"id": "<code>", "status": "open"}]}', "There is one, <code>, and it is open."),
    (
        '{"data": [{"id": "<code>", "status": "open"}, {"id": "<code2>", "status": "closed"}]}',
        "<code> is open and <code2> is closed.",
    ),
    (
        '[{"from": "<clock>", "what": "<event>"}, {"from": "<clock2>", "what": "<event2>"}]',
        "The <event> is at <clock> and the <event2> at <clock2>.",
    ),
    ('{"found": 1, "first": {"name": "<name>", "city": "<city>"}}', "There is one: <name> in <city>."),
    ('{"<oddword>": <few>, "<oddword2>": <quantity>}', "<oddword>: <few>, <oddword2>: <quantity>."),
    (
        '{"best": "<restaurant>", "others": ["<restaurant2>"]}',
        "The best is <restaurant>, another one is <restaurant2>.",
    ),
    ("1. <oddword>\n2. <oddword2>", "There are two: <oddword> and <oddword2>."),
    ("- <name>, <city>\n- <name2>, <city2>", "<name> in <city> and <name2> in <city2>."),
    ("Found <quantity> matches, showing the first: <oddword>", "There are <quantity>, the first is <oddword>."),
    ("name,city\n<name>,<city>\n<name2>,<city2>", "<name> is from <city> and <name2> is from <city2>."),
)
# Of what was to be known.
VALUE: tuple[tuple[str, str], ...] = (
    ("<quantity>", "It is <quantity>."),
    ("<high>", "It is <high>."),
    ("<fraction>", "It is <fraction>."),
    ('"<oddword>"', "It is <oddword>."),
    ('{"value": <high>}', "It is <high>."),
    ('{"value": <fraction>, "unit": "<unit>"}', "It is <fraction> <unit>."),
    ('{"result": {"value": <quantity>, "unit": "<unit>"}}', "It is <quantity> <unit>."),
    ('{"result": "<oddword>"}', "The result is <oddword>."),
    ('{"percent": <percent>}', "It is <percent> percent."),
    ('{"min": <low>, "max": <high>}', "It is between <low> and <high>."),
    ('{"answer": "<oddword>", "confidence": 0.9}', "It is <oddword>."),
    ('{"price": {"amount": <amount>, "currency": "EUR"}}', "It is <amount> EUR."),
    ('{"data": null}', "There is no value for that."),
    ("unknown", "That is not known."),
    ("n/a", "There is no value for that."),
    ("The value is <quantity> <unit>.", "It is <quantity> <unit>."),
    ('{"at": "<clock>", "value": <quantity>}', "At <clock> it was <quantity>."),
    ('{"today": <low>, "yesterday": <high>}', "It is <low> today and was <high> yesterday."),
)
# Of single tools, by the first of their names: what they are asked for has a unit or a form of its own.
OWN: dict[str, tuple[tuple[str, str], ...]] = {
    "get_disk_space": (
        ('{"free_gb": <quantity>, "total_gb": <high>}', "<quantity> GB of <high> GB are free."),
        ("<percent>% used", "<percent> percent are used."),
        ('{"disk": {"used_percent": <percent>}}', "<percent> percent are used."),
    ),
    "get_cpu_load": (
        ('{"cpu": <percent>}', "The CPU load is <percent> percent."),
        ('{"cpu_percent": <percent>, "memory_percent": <percent2>}', "The CPU load is <percent> percent."),
        ("<percent>%", "The CPU load is <percent> percent."),
    ),
    "list_unpaid_invoices": (
        ("[]", "There are no unpaid invoices."),
        ('[{"invoice": "<code>", "amount": <amount>}]', "There is one unpaid invoice, <code> over <amount>."),
        ('{"open": ["<code>", "<code2>"], "sum": <high>}', "<code> and <code2> are unpaid, <high> together."),
    ),
    "list_transactions": (
        ("[]", "There were no payments."),
        ('[{"to": "<name>", "amount": <amount>}]', "There was one payment, <amount> to <name>."),
        (
            '[{"to": "<name>", "amount": <amount>}, {"from": "<name2>", "amount": <amount2>}]',
            "<amount> went to <name>, and <amount2> came from <name2>.",
        ),
    ),
    "find_atm": (
        ('["<street>", "<street2>"]', "There is one at <street> and one at <street2>."),
        ('{"nearest": {"address": "<street>", "metres": <high>}}', "The nearest is at <street>, <high> metres away."),
        ("[]", "There is no cash machine."),
    ),
    "get_visa_rules": (
        ('{"visa_required": true}', "Yes, a visa is needed."),
        ('{"visa_required": false, "max_days": <quantity>}', "No visa is needed for up to <quantity> days."),
        ('{"visa": "on arrival", "price": <amount>}', "There is a visa on arrival, it costs <amount>."),
    ),
    "get_lab_results": (
        ('{"value": <fraction>, "normal": true}', "The value is <fraction>, which is normal."),
        ('{"value": <fraction>, "normal": false}', "The value is <fraction>, which is not normal."),
        ('{"status": "not ready", "expected": "<day>"}', "It is not ready yet, it is expected on <day>."),
    ),
    "get_standings": (
        ('[{"rank": 1, "team": "<team>"}, {"rank": 2, "team": "<team2>"}]', "<team> is first, <team2> is second."),
        ('{"leader": "<team>", "points": <quantity>}', "<team> leads with <quantity> points."),
        ("1. <team>\n2. <team2>\n3. <team3>", "The first three are <team>, <team2> and <team3>."),
    ),
    "get_timetable": (
        ('["maths", "music"]', "There are maths and music."),
        (
            '[{"time": "8:00", "subject": "physics"}, {"time": "9:00", "subject": "biology"}]',
            "Physics at 8:00, biology at 9:00.",
        ),
        ('{"lessons": [], "note": "day off"}', "There are no lessons, it is a day off."),
    ),
    "find_charging_station": (
        ('[{"address": "<street>", "free": true}]', "There is one at <street>, and it is free."),
        ('[{"address": "<street>", "free": false}]', "There is one at <street>, but it is not free."),
        ("[]", "There is no charging station."),
    ),
    "get_coordinates": (
        ('{"lat": <fraction>, "lon": <fraction2>}', "The latitude is <fraction>, the longitude is <fraction2>."),
        ('{"lon": <fraction>, "lat": <fraction2>}', "The latitude is <fraction2>, the longitude is <fraction>."),
        ('{"error": "address unknown"}', "That address is not known."),
    ),
    "get_elevation": (
        ('{"elevation": <high>, "unit": "m"}', "It lies <high> m above the sea."),
        ('{"metres": <high>}', "It lies <high> metres above the sea."),
        ('{"elevation": -<few>, "unit": "m"}', "It lies <few> m below the sea."),
    ),
    "get_soil_moisture": (
        ('{"moisture": <percent>}', "The moisture is <percent> percent."),
        ('{"moisture_percent": <percent>, "state": "dry"}', "The soil is dry, with <percent> percent of moisture."),
        ('{"moisture_percent": <percent>, "state": "wet"}', "The soil is wet, with <percent> percent of moisture."),
    ),
    "calculate_shipping": (
        ('{"price": <amount>, "currency": "EUR", "days": <few>}', "It costs <amount> EUR and takes <few> days."),
        ("<fraction> EUR", "It costs <fraction> EUR."),
        ('{"options": {"standard": <low>, "express": <high>}}', "It costs <low> by standard and <high> by express."),
    ),
    "substitute_ingredient": (
        ('["<grocery>"]', "You can use <grocery>."),
        ('["<grocery>", "<grocery2>"]', "You can use <grocery> or <grocery2>."),
        ('{"substitute": "<grocery>", "ratio": "1:2"}', "You can use <grocery>, in the ratio 1:2."),
    ),
    "get_cooking_time": (
        ('{"minutes": <quantity>}', "It takes <quantity> minutes."),
        ("<quantity>", "It takes <quantity> minutes."),
        (
            '{"pot_minutes": <quantity>, "oven_minutes": <quantity2>}',
            "<quantity> minutes in the pot or <quantity2> in the oven.",
        ),
    ),
    "pair_wine": (
        ('{"wine": "<oddword>", "color": "red"}', "A red wine, <oddword>."),
        ('{"wine": "<oddword>", "color": "white", "price": <low>}', "A white wine, <oddword>, for <low>."),
        ("[]", "No wine was found for that."),
    ),
    "get_waste_collection": (
        ('{"next": "<day>"}', "The next collection is on <day>."),
        ('["<day>", "<day2>"]', "The bins are emptied on <day> and <day2>."),
        ('{"paper": "<day>", "glass": "<day2>"}', "Paper is collected on <day> and glass on <day2>."),
    ),
    "compare_products": (
        ('{"cheaper": "first", "better_rated": "second"}', "The first is cheaper, the second has better ratings."),
        ('{"price": {"first": <low>, "second": <high>}}', "The first costs <low> and the second <high>."),
        ('{"price": {"first": <high>, "second": <low>}}', "The second is cheaper, <low> and not <high>."),
    ),
    "make_qr_code": (
        ('{"file": "<oddword>.png"}', "Here is the code: <oddword>.png"),
        ('{"image": "<url>", "size": <high>}', "Here is the code: <url>"),
    ),
    "shorten_link": (
        ('{"short": "<url>"}', "The short link is <url>"),
        ('{"long": "<url>", "short": "<url2>"}', "The short link is <url2>"),
        ("<url>", "The short link is <url>"),
    ),
    "convert_time": (
        ('{"time": "<clock>"}', "It is <clock> there."),
        ("<clock>", "It is <clock> there."),
        ('{"time": "<clock>", "day": "next day"}', "It is <clock> there, on the next day."),
    ),
    "find_tutor": (
        ('[{"name": "<name>", "price": <low>}]', "There is one: <name>, for <low> an hour."),
        ('[{"name": "<name>", "free": true}, {"name": "<name2>", "free": false}]', "<name> is free, <name2> is not."),
        ("[]", "There is no tutor."),
    ),
    "scale_recipe": (
        ('{"flour_g": <grams>, "eggs": <few>}', "You need <grams> g of flour and <few> eggs."),
        ("<grams> g rice, <ml> ml water", "You need <grams> g of rice and <ml> ml of water."),
    ),
    "check_in_flight": (
        ('{"seat": "<seat>", "gate": "<shelf>"}', "You are checked in, with seat <seat> and gate <shelf>."),
        ('{"error": "check-in opens at <clock>"}', "That has not worked, the check-in opens at <clock>."),
    ),
    "choose_seat": (
        ('{"ok": false, "reason": "seat is taken"}', "That has not worked, the seat is taken."),
        ('{"ok": true, "extra_cost": <low>}', "Done, it costs <low> extra."),
    ),
}
# What begins the names of those that only look.
_FINDING, _KNOWING = ("list", "find", "search", "show"), ("get", "calculate", "count", "check", "convert", "read")
_NOT_KNOWING = ("check_in", "check_out")
_MORE: dict[str, Callable[[Words], object]] = {
    "fraction": lambda words: round(words.rng.uniform(0.1, 99), 1),
    "iso": lambda words: f"20{words.number(25, 29)}-{words.number(1, 12):02}-{words.number(1, 28):02}",
    "seat": lambda words: f"{words.number(1, 38)}{words.rng.choice('ABCDEF')}",
    "shelf": lambda words: f"{words.rng.choice('ABCDEFGH')}{words.number(1, 60)}",
    "street": lambda words: (
        f"{words.rng.choice(('Mill', 'Church', 'Park', words.name()))} Street {words.number(1, 90)}"
    ),
    "day": lambda words: (
        words.rng.choice(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"))
        if words.rng.random() < 0.6
        else f"{words.number(1, 28)} {words.rng.choice(MONTHS)}"
    ),
}


def _later(start: str, days: int) -> tuple[str, str]:
    after = (date.fromisoformat(start) + timedelta(days=days)).isoformat()
    return after, f"It is {after}."


def _share(amount: int, people: int, tip: int = 0) -> tuple[str, str]:
    share = f"{amount * (100 + tip) / 100 / people:.2f}".removesuffix(".00")
    return share, f"Each pays {share}."


# Of those whose results follow from what they are given.
_COMPUTED: dict[str, Callable[..., tuple[str, str]]] = {
    "count_words": lambda text: (str(len(text.split())), f"The number of words is {len(text.split())}."),
    "reverse_text": lambda text: (text[::-1], text[::-1]),
    "uppercase_text": lambda text: (text.upper(), text.upper()),
    "add_days": _later,
    "split_bill": _share,
}


def filled(words: Words, patterns: tuple[str, ...]) -> list[str]:
    """Patterns with values in place of their kinds, of which no two are the same."""
    values: dict[str, str] = {}

    def value(match: re.Match[str]) -> str:
        while match[0] not in values:
            draw = _MORE[match[1]] if match[1] in _MORE else KINDS[match[1]][1]
            drawn = str(draw(words))
            if drawn not in values.values():
                values[match[0]] = drawn
        return values[match[0]]

    return [re.sub(r"<([a-z_]+)\d?>", value, pattern) for pattern in patterns]


def restyled(rng: random.Random, text: str) -> str:
    """JSON as another server would print it; any other text as it is."""
    kind = rng.random()
    if text[:1] not in "{[" or kind < 0.4:
        return text
    value = json.loads(text)
    if kind < 0.75:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return json.dumps(value, ensure_ascii=False, indent=2)


def told(words: Words, name: str, values: Sequence[Any] = ()) -> tuple[str, str]:
    """What a tool, by the first of its names, may give back for values, and what there is to say then."""
    rng = words.rng
    if name in _COMPUTED and values:
        text, answer = _COMPUTED[name](*values)
        return restyled(rng, rng.choice((text, json.dumps({"result": text}, ensure_ascii=False)))), answer
    if name in OWN and rng.random() < 0.9:
        pattern = rng.choice(OWN[name])
    elif name in OWN or rng.random() < 0.25:
        pattern = rng.choice(FAILED)
    elif name.startswith(_FINDING):
        pattern = rng.choice(FOUND)
    elif name.startswith(_KNOWING) and not name.startswith(_NOT_KNOWING):
        pattern = rng.choice(VALUE)
    else:
        pattern = rng.choice(DONE)
    text, answer = filled(words, pattern)
    return restyled(rng, text), answer
