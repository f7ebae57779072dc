"""Fields of a text as JSON, under the keys that were asked for."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from documents import Case, Document, Turn, conversation
from facts import TREES
from words import DAYS, MONTHS, SKIES, Stage, Words, article, listed, made_up

from skills.extraction_kinds import Kind, Slot
from skills.recorded import RECORDED
from skills.tool_table import NOUNS

NAME = "extraction"


NAME_KEYS = ("name", "person", "who", "full_name")
CITY_KEYS = ("city", "town", "place", "home")

KINDS: dict[str, Kind] = {
    "person": Kind(
        {
            "n": Slot(NAME_KEYS, lambda w: w.name() if w.rng.random() < (0.6 if w.test else 0.45) else w.full_name()),
            "g": Slot(("age", "years", "age_in_years"), lambda w: w.number(1, 99)),
            "c": Slot(CITY_KEYS, Words.city),
            "j": Slot(("job", "work", "profession", "occupation"), Words.job),
            "h": Slot(("hobby", "likes", "interest"), Words.hobby),
        },
        (
            "{n} is {g} years old and lives in {c}.",
            "{n} lives in {c} and is {g} years old.",
            "{n} is {a_j} from {c}.",
            "{n}, {g}, is {a_j} in {c}.",
            "{n} is {a_j} and likes {h}.",
            "{n} from {c} is {g} years old and works as {a_j}.",
            "My friend {n} is {g} and lives in {c}.",
            "{n} works as {a_j} in {c}. {n} likes {h}.",
            "I am {n}, {g} years old, and I come from {c}.",
            "My name is {n}. I am {g} and I work as {a_j}.",
            "{n} is {g}, likes {h} and lives in {c}.",
            "This is {n} from {c}, who is {g} years old.",
            "Hello, I am {n}. I live in {c} and I like {h}.",
            "Our {j} {n} is {g} years old.",
            "{n} moved to {c} and became {a_j}.",
            "At {g}, {n} still works as {a_j}.",
            "{n} likes {h}. {n} is {g} years old.",
            "In {c} there is {a_j} called {n}.",
            "Name: {n}\nAge: {g}\nCity: {c}",
            "Name: {n}\nJob: {j}\nHobby: {h}",
            "{n}; {g}; {c}",
            "name={n}, age={g}, job={j}",
            "The {j} from {c} is called {n} and is {g}.",
            "{n} lives in {c}. {n} is {a_j} and {g} years old.",
            "{n} is {a_j}. {n} comes from {c}.",
            "In {c} you can find {n}, who is {g} years old and likes {h}.",
            "In {c} lives {a_j}. The name is {n}.",
            "{n} is {g} and works in {c} as {a_j}.",
            "I live in {c}. I am {g}, and my name is {n}.",
            "I am {g} years old. My name is {n}, and I like {h}.",
            "I am {a_j} and I am called {n}. My home is {c}.",
            "The {j} is {n}, who is {g} years old and lives in {c}.",
            "The {j} {n} comes from {c}.",
            "{n} ({g}) lives in {c}.",
            "{n}, {a_j} of {g} years, likes {h}.",
            "{c} is the home of {n}, {a_j}.",
            "Yesterday I met {n} from {c}. {n} likes {h}.",
            "{n}, who likes {h}, is {a_j}.",
            "{n} likes {h} and comes from {c}.",
            "We know {n}. {n} is {g} and is {a_j}.",
            "Have you met {n}? {n} is {a_j} in {c}.",
            "Person: {n}, {g}, {c}, {h}",
            "In {c} works {n}, {a_j}.",
            "From {c} comes {n}, {g} years old.",
            "In {c} you meet {n}, {a_j}, who likes {h}.",
            "There lives {a_j} in {c}: {n}, {g}.",
            "Here comes {n}, {a_j} from {c}.",
            "The home of {n}, {a_j}, is {c}.",
            "{c} is where {n} lives, {g} years old.",
            "At the age of {g}, {n} moved to {c}.",
            "In {c}, {n} works as {a_j} at {g}.",
            "Say hello to {n}, {g}, from {c}!",
            "To {c} moved {n}, {a_j}.",
            "Near {c} lives {n} ({g}), {a_j}.",
            "I am {g} and {a_j}. You may call me {n}.",
            "I am called {n}. I am {a_j}, and {c} is my home.",
        ),
        (
            "The {j} {n} lives in {c} and is {g} years old.",
            "{n} comes from {c}. {n} is {g} and likes {h}.",
            "In {c} lives {n}, {a_j}, {g} years old.",
            "I am {a_j}. My name is {n} and I live in {c}.",
        ),
    ),
    "order": Kind(
        {
            "n": Slot(("customer", "name", "buyer", "client"), Words.name),
            "q": Slot(("quantity", "count", "number", "amount"), lambda w: w.number(2, 99)),
            "i": Slot(("item", "product", "article", "what"), Words.items),
            "p": Slot(("price", "cost", "total", "euros"), lambda w: w.number(1, 99)),
            "d": Slot(("day", "delivery", "delivery_day", "when"), lambda w: w.rng.choice(DAYS)),
        },
        (
            "{n} ordered {q} {i} for {p} euros.",
            "{n} buys {q} {i}. They cost {p} euros.",
            "{q} {i} for {n}, please.",
            "{n} wants {q} {i} on {d}.",
            "Please send {q} {i} to {n} by {d}.",
            "Order of {n}: {q} {i}, {p} euros.",
            "We sold {q} {i} to {n} for {p} euros.",
            "{n} paid {p} euros for {q} {i}.",
            "On {d} {n} bought {q} {i}.",
            "The {i} cost {p} euros. {n} took {q} of them.",
            "I need {q} {i} by {d}. My name is {n}.",
            "{n} would like {q} {i}, delivered on {d}.",
            "Customer: {n}\nItem: {i}\nQuantity: {q}",
            "{q} x {i}, {p} euros, {d}",
            "{n} asked for {q} {i}. The price is {p} euros.",
            "Deliver {q} {i} to {n} on {d} for {p} euros.",
            "{n} got {q} {i} and gave {p} euros for them.",
            "{n} got {q} {i} for {p} euros.",
            "For {n}: {q} {i}, to be delivered on {d}.",
            "For {q} {i}, {n} paid {p} euros.",
            "On {d}, {q} {i} were sold to {n}.",
            "On {d}, {n} wants {q} {i} for {p} euros.",
            "Please bring {q} {i} to {n} on {d}.",
            "Please deliver {q} {i} to {n}.",
            "Send {q} {i} on {d}, please. The customer is {n}.",
            "The customer {n} ordered {q} {i} at {p} euros.",
            "{n} takes {q} {i}. That makes {p} euros.",
            "{n} takes {q} {i} on {d}.",
            "{q} {i} were ordered by {n} for {d}.",
            "It is {n} who ordered {q} {i}. They are due on {d}.",
            "The price of the {i} is {p} euros, and {n} needs {q} of them.",
            "{n} bought {i} for {p} euros, {q} in all.",
            "{i}: {q}\nprice: {p}\nfor: {n}",
            "This is {n}. Could you send me {q} {i} by {d}?",
            "Up to now {n} has bought {q} {i} for {p} euros.",
            "{p} euros were paid by {n} for {q} {i}.",
            "With {p} euros {n} got {q} {i} home.",
            "{d} brought {n} {q} {i}.",
            "Until {d}, {n} needs {q} {i}.",
            "{n} left with {q} {i} and paid {p} euros.",
            "{n} chose {q} {i}, paying {p} euros.",
            "Please pack {q} {i} for {n}.",
            "Please keep {q} {i} until {d}. They are for {n}.",
            "Here are {q} {i}, {n}! That makes {p} euros.",
        ),
        (
            "On {d}, {n} ordered {q} {i}.",
            "{n} took {q} {i} and paid {p} euros.",
            "Please deliver {q} {i} on {d}, for {n}.",
            "For {p} euros {n} got {q} {i}.",
        ),
    ),
    "event": Kind(
        {
            "e": Slot(("event", "title", "what", "occasion"), Words.event),
            "d": Slot(("day", "date", "weekday", "when"), lambda w: w.rng.choice(DAYS)),
            "t": Slot(("time", "start", "hour", "begins"), Words.time),
            "l": Slot(("place", "location", "where", "venue"), Words.place),
            "n": Slot(("host", "name", "organiser", "person"), Words.name),
        },
        (
            "The {e} is on {d} at {t} in the {l}.",
            "There is {a_e} in the {l} on {d}.",
            "{n} invites you to {a_e} on {d} at {t}.",
            "On {d} at {t} we have {a_e} in the {l}.",
            "The {e} of {n} begins at {t} in the {l}.",
            "Come to the {l} on {d} for the {e}.",
            "{n} plans {a_e} at the {l}. It starts at {t}.",
            "The {e} starts at {t} on {d}. It takes place in the {l}.",
            "Our next {e} will be on {d} at {t}.",
            "Meet {n} at the {l} on {d} at {t} for the {e}.",
            "Event: {e}\nDay: {d}\nTime: {t}\nPlace: {l}",
            "{e}, {d}, {t}, {l}",
            "Do not forget the {e} with {n} on {d} at {t}!",
            "The {l} has {a_e} on {d} from {t}.",
            "On {d} there is {a_e} in the {l}. It begins at {t}.",
            "On {d}, {n} has {a_e} at {t}.",
            "There will be {a_e} at {t} on {d}.",
            "The {e} will be in the {l} on {d} at {t}.",
            "The {e} takes place at {t} on {d} in the {l}.",
            "The {e} of {n} takes place in the {l} on {d}.",
            "It is {d}, and the {e} in the {l} begins at {t}.",
            "{n} has {a_e} on {d} at {t}.",
            "{n} will have {a_e} in the {l}.",
            "In the {l} there is {a_e} at {t}. It was planned by {n}.",
            "At {t} on {d}, {n} opens the {e} in the {l}.",
            "This {d} the {l} is the place of {a_e}.",
            "We meet in the {l} on {d} at {t}. It is for the {e}.",
            "Save the day: {e} on {d} at {t}, {l}.",
            "{d} {t}: {e} ({l})",
            "You are welcome to the {e} of {n} on {d}.",
            "{d} is the day of the {e}. It begins at {t}.",
            "{n} holds {a_e} in the {l} on {d}.",
            "{n} opens {a_e} in the {l} at {t}.",
            "The {l} opens at {t} on {d} for {a_e}.",
            "{d} brings {a_e} to the {l}.",
            "Join {n} at the {e}, {d}, {t}.",
            "In the {l}, {n} has {a_e} on {d}.",
            "{n} told me about {a_e} in the {l}. It begins at {t}.",
            "The {e} will start at {t} in the {l}. It is on {d}.",
        ),
        (
            "On {d} there will be {a_e} at {t} in the {l}.",
            "{n} has {a_e} in the {l} on {d}.",
            "The {e} takes place on {d} in the {l}. It begins at {t}.",
        ),
    ),
    "book": Kind(
        {
            "b": Slot(("title", "book", "name"), Words.title),
            "n": Slot(("author", "writer", "by"), Words.full_name),
            "y": Slot(("year", "published", "date"), lambda w: w.number(1900, 2025)),
            "s": Slot(("pages", "length", "page_count"), lambda w: w.number(40, 900)),
        },
        (
            "{b} was written by {n} in {y}.",
            "{n} wrote {b}. It has {s} pages.",
            "{b} is a book by {n} from {y}.",
            "In {y} {n} published {b}.",
            "The book {b} by {n} has {s} pages.",
            "{n} is the author of {b}, which came out in {y}.",
            "I am reading {b} by {n}.",
            "{b} ({y}) has {s} pages.",
            "Title: {b}\nAuthor: {n}\nYear: {y}",
            "{n}: {b}, {s} pages, {y}",
            "{b} came out in {y}. {n} wrote it.",
            "The author of {b} is {n}. The book has {s} pages.",
            "The author {n} wrote {b} in {y}.",
            "{b} is by {n}. It was published in {y}.",
            "{b} is by {n} and has {s} pages.",
            "In {y} a book called {b} came out. Its author is {n}.",
            "In {y}, {b} came out. It has {s} pages.",
            "{b} by {n} came out in {y}.",
            "{b} has {s} pages. It was written by {n}.",
            "Have you read {b}? It is by {n}, from {y}.",
            "A book of {s} pages: {b} by {n}.",
            "The writer {n} published {b} in {y}.",
            "Our library has {b} by {n} ({y}).",
            "The book {b} is a book of {s} pages that {n} wrote.",
            "In {y} came {b} by {n}.",
            "The {s} pages of {b} are by {n}.",
            "Published in {y}: {b}, by {n}.",
            "{n} is the author of {b}. It was printed in {y}.",
            "In {y} the author {n} had {b} printed.",
            "{b}, a book by {n}, has {s} pages.",
            "The author of {b}, {n}, wrote it in {y}.",
            "It was {n} who wrote {b}. The book came in {y}.",
        ),
        (
            "The author of {b} is {n}. It came out in {y}.",
            "In {y}, {b} by {n} was published.",
            "{b} has {s} pages and is by {n}.",
        ),
    ),
    "weather": Kind(
        {
            "c": Slot(("city", "place", "town", "location"), Words.city),
            "g": Slot(("temperature", "degrees", "celsius"), lambda w: w.number(-15, 38)),
            "s": Slot(("weather", "sky", "condition"), lambda w: w.rng.choice(SKIES)),
            "d": Slot(("day", "when", "weekday"), lambda w: w.rng.choice(DAYS)),
        },
        (
            "It is {s} in {c}, with {g} degrees.",
            "In {c} it will be {s} on {d}.",
            "{c} has {g} degrees and it is {s}.",
            "On {d} it is {s} in {c} at {g} degrees.",
            "The weather in {c} is {s}. The temperature is {g} degrees.",
            "{d} in {c}: {s}, {g} degrees.",
            "It is {g} degrees in {c}.",
            "It will be {s} on {d}, with {g} degrees.",
            "City: {c}\nWeather: {s}\nTemperature: {g}",
            "In {c} it is {s}, and it has {g} degrees.",
            "In {c} it is {g} degrees and {s}.",
            "In {c} the temperature is {g} degrees.",
            "On {d} the sky over {c} is {s} and it has {g} degrees.",
            "{c} is {s} on {d}.",
            "{c}: {s}, {g} degrees",
            "{d} will be {s} in {c}, with {g} degrees.",
            "{d} will bring {s} weather to {c}, with {g} degrees.",
            "The sky of {c} is {s}. It has {g} degrees.",
            "The temperature in {c} is {g} degrees and the sky is {s}.",
            "We have {g} degrees here in {c}, and it is {s}.",
            "Here in {c} it is {s}.",
            "The people of {c} have {g} degrees on {d}.",
            "{d} brings {g} degrees to {c}.",
            "{c} gets a {s} sky and {g} degrees on {d}.",
            "{d} gives {c} {g} degrees.",
            "A {s} sky and {g} degrees: that is {c} on {d}.",
            "{c} has a {s} sky and {g} degrees.",
            "{d} shows {c} under a {s} sky.",
            "{d} finds {c} {s}, at {g} degrees.",
            "On {d}, {c} sees a {s} sky and {g} degrees.",
            "{d} means {g} degrees and a {s} sky for {c}.",
            "{c} will have a {s} {d} with {g} degrees.",
            "A {s} {d} in {c}, at {g} degrees.",
            "{d} promises {c} {s} weather.",
            "{d} leaves {c} with {g} degrees and a {s} sky.",
            "Under a {s} sky {c} has {g} degrees.",
        ),
        ("In {c} it is {s} and the temperature is {g} degrees.", "{d} brings {c} a {s} sky and {g} degrees."),
    ),
    "pet": Kind(
        {
            "m": Slot(("name", "pet_name", "pet"), Words.name),
            "k": Slot(("animal", "kind", "species", "type"), Words.pet),
            "n": Slot(("owner", "person", "belongs_to"), Words.name),
            "f": Slot(("colour", "color", "fur"), Words.colour),
            "g": Slot(("age", "years"), lambda w: w.number(1, 20)),
        },
        (
            "{n} has {a_k} called {m}.",
            "{m} is {a_k} and belongs to {n}.",
            "{m}, the {f} {k} of {n}, is {g} years old.",
            "The {k} {m} is {f}.",
            "{n} lost a {f} {k}. It is called {m}.",
            "My {k} is called {m} and is {g} years old.",
            "The {k} of {n} is {f} and {g} years old.",
            "{m} is a {f} {k}. {m} is {g}.",
            "Pet: {m}\nKind: {k}\nOwner: {n}",
            "{n} and the {k} {m} go for a walk.",
            "Has anybody seen {m}? It is a {f} {k}.",
            "{n} owns {a_k}. It is called {m}.",
            "{n} owns {m}, a {f} {k}.",
            "{n} has a {f} {k} with the name {m}.",
            "{m} is {a_k} of {g} years. It belongs to {n}.",
            "{m} belongs to {n} and is a {f} {k}.",
            "{m} is the {k} of {n}. It is {f}.",
            "The {k} of {n} is called {m}.",
            "The {f} {k} belongs to {n} and is called {m}.",
            "A {f} {k} lives with {n}. Its name is {m}.",
            "A {k} called {m} lives with {n} and is {g} years old.",
            "I have a {f} {k} called {m}. It is {g} years old.",
            "This is {m}, the {k} of {n}.",
            "{n} feeds the {k}, which is called {m}.",
            "{m}: {k}, {f}, {g} years",
            "{n} owns {m}, {a_k} of {g} years.",
            "The {f} {k} called {m} is {g} years old.",
            "It is {n} who has the {f} {k} {m}.",
            "{m}, {a_k}, has lived with {n} for {g} years.",
            "To {n} belongs {a_k}, and its name is {m}.",
            "There is a {f} {k} at the house of {n}. It is called {m}.",
            "{m} is the name of the {k} that {n} has.",
        ),
        (
            "{n} owns a {f} {k} called {m}.",
            "{m} is the {k} of {n} and {g} years old.",
            "A {f} {k} called {m} belongs to {n}.",
        ),
    ),
    "contact": Kind(
        {
            "n": Slot(NAME_KEYS, Words.full_name),
            "f": Slot(("phone", "telephone", "number"), lambda w: w.digits(w.rng.choice((5, 6, 7)))),
            "e": Slot(
                ("email", "mail", "address"),
                lambda w: f"{w.name().lower()}@{w.city().lower()}.{w.rng.choice(('org', 'com', 'net'))}",
            ),
            "r": Slot(("room", "office"), lambda w: w.number(1, 400)),
        },
        (
            "Call {n} under {f}.",
            "You can reach {n} at {e}.",
            "{n} is in room {r}, telephone {f}.",
            "The number of {n} is {f}.",
            "Write to {n}: {e}",
            "{n} has the number {f} and the address {e}.",
            "{e} is the address of {n}.",
            "{n}, room {r}, {e}",
            "Name: {n}\nPhone: {f}\nEmail: {e}",
            "Ask {n} in room {r} or call {f}.",
            "The telephone number of {n} is {f}.",
            "The address of {n} is {e}, and the number is {f}.",
            "The office of {n} is room {r}, and the address is {e}.",
            "{n} works in room {r}. The number is {f}.",
            "{n} sits in office {r} and has the telephone {f}.",
            "{n} can be found in room {r}. Write to {e}.",
            "In room {r} sits {n}. Call {f}.",
            "Call {f} and ask for {n}.",
            "Call {f} or write to {e} if you want to reach {n}.",
            "If you look for {n}, go to room {r} or write to {e}.",
            "{n} <{e}>, {f}",
            "Contact: {n}, {e}, telephone {f}",
            "For questions: {n}, room {r}, {f}",
            "{n} is in room {r}. Phone {f} or send a mail to {e}.",
            "{n} has office {r}. You can call {f} or write to {e}.",
            "In office {r} you find {n}. Use {e} or {f}.",
            "{n} sits in room {r}, telephone {f}.",
            "{n} can be called under {f}, or write to {e}.",
            "Room {r} is where {n} sits. The telephone is {f}.",
            "Mail for {n} goes to {e}, calls to {f}.",
            "{n} has moved to room {r}. Write to {e}.",
            "Go to room {r} and ask for {n}, or call {f}.",
        ),
        (
            "The telephone number of {n} is {f}, and the address is {e}.",
            "{n} sits in room {r}. Call {f} or write to {e}.",
        ),
    ),
    "harvest": Kind(
        {
            "n": Slot(("gardener", "name", "person"), Words.name),
            "i": Slot(("crop", "fruit", "plant"), Words.items),
            "k": Slot(("kilos", "weight", "kg"), lambda w: w.number(1, 99)),
            "m": Slot(("month", "when", "time"), lambda w: w.rng.choice(MONTHS)),
        },
        (
            "{n} picked {k} kilos of {i} in {m}.",
            "In {m} {n} brought in {k} kilos of {i}.",
            "{k} kilos of {i} grew in the garden of {n}.",
            "The {i} of {n} weighed {k} kilos.",
            "{n} grows {i}. They are ripe in {m}.",
            "Crop: {i}\nKilos: {k}\nMonth: {m}",
            "{n} sold {k} kilos of {i}.",
            "{n} has had {k} kilos of {i} since {m}.",
            "{n} had {i} in {m}: {k} kilos.",
            "{n} took {k} kilos of {i} home in {m}.",
            "{n} weighed {k} kilos of {i}.",
            "In {m}, {n} had {i}, {k} kilos of them.",
            "In {m} the garden of {n} gave {k} kilos of {i}.",
            "In {m}, {k} kilos of {i} were picked by {n}.",
            "The {i} were ripe in {m}. {n} picked {k} kilos.",
            "The garden of {n} is full of {i} in {m}.",
            "It is {m}, and {n} picks {i}: {k} kilos.",
            "{n}: {k} kilos of {i}, {m}",
            "{m} gave {n} {k} kilos of {i}.",
            "{n} carried {k} kilos of {i} in {m}.",
            "With {k} kilos of {i}, {n} came home.",
            "{k} kilos of {i}: that is what {n} picked in {m}.",
            "{n} dug up {k} kilos of {i}. It was {m}.",
            "{m} was good for {n}: {k} kilos of {i}.",
        ),
        ("In {m}, {n} picked {k} kilos of {i}.", "{n} had {k} kilos of {i} in {m}."),
    ),
}

ASKS = (
    "Extract {k} as JSON: {t}",
    "Extract {k} from this text as JSON.\n{t}",
    "{t}\nGive me {k} as JSON.",
    "{t}\nReturn {k} as JSON.",
    "Read this text: {t}\nWrite a JSON object with {k}.",
    "Make JSON with the keys {k}: {t}",
    "{t}\n\nJSON with {k}, please.",
    "Find {k} in the text and answer in JSON.\nText: {t}",
    "Turn this into JSON with {k}: {t}",
    "As JSON ({k}): {t}",
    "Text: {t}\nKeys: {k}\nJSON:",
    "I need {k} as a JSON object. {t}",
    "Fill in {o} from this text: {t}",
    "Which {k} does the text give? Answer in JSON. {t}",
    "{t} Write {k} as JSON.",
    "Use this form: {o}\nText: {t}",
    "Please extract {k} as JSON.\nText: {t}",
    "Please extract {k} from the following text: {t}\nUse JSON.",
    "Extract the keys {k} from the text below and give me JSON.\n\n{t}",
    "Extract {k}.\nText: {t}\nAnswer in JSON.",
    "Please turn the text into JSON with {k}.\n{t}",
    "Please write {k} as JSON: {t}",
    "Give me JSON with the keys {k} for this text: {t}",
    "Give me {k} for this as a JSON object: {t}",
    "Here is a text: {t}\nPlease give me {k} as JSON.",
    "Here is a text: {t}\nMake a JSON object of it with {k}.",
    "Here is some text. {t}\nWhat are {k}? Answer with JSON.",
    "This is a text: {t}\nReturn a JSON object with {k}.",
    "Text: {t}\nReturn JSON with the keys {k}.",
    "{t}\nTurn this into a JSON object with the keys {k}.",
    "{t}\nAnswer with JSON, with the keys {k}.",
    "{t}\nPlease make a JSON object with {k} from it.",
    "{t}\nPlease fill in {o}.",
    "{t}\nWhat are {k}? Write JSON.",
    "{t}\nI want {k} from this text, as JSON.",
    "Could you read this and give me {k} as JSON? {t}",
    "Could you extract {k} in JSON from this? {t}",
    "Can you return {k} as a JSON object? {t}",
    "I would like JSON with the keys {k} for this text: {t}",
    "From the text {t} take {k} and write JSON.",
    "Return only a JSON object with {k}. Text: {t}",
    "Parse this into JSON with the keys {k}: {t}",
    "Write down {k} of this text in JSON: {t}",
    "json with {k}: {t}",
)
# For the last part of training, like the sentences below.
MORE_ASKS = (
    "Turn this into JSON (keys: {k}): {t}",
    "Turn this into JSON with keys {k}: {t}",
    "JSON with the keys {k}, please: {t}",
    "Extract the fields {k} as JSON from: {t}",
    "I want JSON with {k}. {t}",
    "Make JSON out of this. Keys: {k}. {t}",
    'Make JSON out of this, keys {k}: "{t}"',
    'JSON with {k} for "{t}"',
    "Get {k} as JSON: {t}",
    "Fill these keys from the text, as JSON: {k}.\n{t}",
    "As JSON with the keys {k}: {t}",
    "Convert to JSON with keys {k}: {t}",
    "Give {k} as JSON: {t}",
    "Put {k} into JSON. {t}",
    "Can you fish {k} out of this and give me JSON? {t}",
    "Extract: {k} -> JSON. Text: {t}",
    "State {k} in JSON. {t}",
    "Please write JSON for this ({k}). {t}",
    "Which {k}? JSON, please. {t}",
    "{t} Please give me {k} as JSON.",
    "{t} JSON with {k}, please!",
    "Take {k} from what follows and answer as JSON. {t}",
    "My form has the fields {k}. Fill it in as JSON from this: {t}",
    "What are {k} here? As JSON. {t}",
    "JSON only: {k}. {t}",
    "{k} as JSON: {t}",
    "{k} as JSON, please. {t}",
    "{k} -> JSON: {t}",
    "JSON please, keys {k}: {t}",
    "As JSON, please, with {k}: {t}",
    "Pull out {k} as JSON: {t}",
    "Pull {k} out of this and answer in JSON. {t}",
    "Put {k} into JSON: {t}",
    "I need the fields {k} as JSON. {t}",
    "I need JSON. Fields: {k}. {t}",
    "Make JSON out of this, fields {k}: {t}",
    "Turn this into JSON with the fields {k}: {t}",
    "What JSON with {k} fits? {t}",
    "Give JSON: {k}. {t}",
    "Return only JSON with {k}. {t}",
    "Please return JSON with {k}. {t}",
    "Convert to JSON ({k}): {t}",
    "Read this and answer with JSON ({k}): {t}",
    "From the text below make a JSON object with {k}. {t}",
    "Find {k} in this sentence and give me JSON: {t}",
    "Structured data, please: {k}. {t}",
    "Extract the following fields as JSON: {k}\n\n{t}",
    "Fields: {k}\nText: {t}\nJSON:",
    "{t}\n\nGive me {k} as JSON.",
    "{t} -> JSON with {k}",
    "{t} Now {k} as JSON, please.",
)
MORE_FRAMES = {
    "person": (
        "{n} is {a_j}. She is {g}. She has two brothers who play football.",
        "{n} is {a_j}. He is {g} and has a big garden.",
        "{n} is {g} and goes in for {h} every Sunday.",
        "{n} is {g}. On Sundays it is always {h}.",
        "{n}, {g}, is {a_j}.",
        "Mr {n} from {c} works as {a_j}.",
        "Do you know {n}? She works as {a_j} and lives in {c} with her sister.",
        "At the bakery I met {n}, who is {g} and comes from {c}.",
        "{n} left {c} to become {a_j}.",
        "Nobody here likes {h} more than {n}, who is {g}.",
        "Our new colleague is called {n}, is {g} years old and used to be {a_j}.",
        "My neighbour {n} turned {g} last week.",
        "Our friend {n} moved to {c} last spring.",
        "{n}, who is {g}, loves {h}.",
        "{n} loves {h}.",
        "{n} spends every evening with {h}.",
        "{n}'s favourite pastime is {h}.",
        "{n} spends all weekends on {h} and lives in {c}.",
        "{n} was born in {c} and is now {g}.",
        "Ask for {n}, who is our {j}.",
        "{n} has been {a_j} in {c} for years.",
        "{n} earns money as {a_j}.",
        "{n} from {c} enjoys {h}.",
        "She is called {n}, she is {g}, and {h} is what she likes.",
        "He is {a_j}, his name is {n}, and he lives in {c}.",
        "{n} is a passionate friend of {h} and {g} years of age.",
        "Let me introduce {n}. She is {a_j} and {g} years old.",
        "{n} just celebrated a birthday: {g} years! She lives in {c}.",
        "{n}, aged {g}, moved from {c} to the sea.",
    ),
    "order": (
        "By {d} we need {q} {i}.",
        "{n} needs {q} {i} by {d}.",
        "On the way home {n} bought {i} for {p} euros.",
        "Put {q} {i} aside for {n}, please.",
        "{q} {i} at {p} euros, that is what {n} wrote.",
        "{i} are {p} euros today.",
        "The {i} cost {p} euros.",
        "We ordered {q} {i}.",
        "{q} {i} cost {p} euros altogether.",
        "{n} would like to get {q} {i}, please, for {p} euros.",
        "Last {d}, {n} picked up {q} {i}.",
        "{n} spent {p} euros on {i}.",
        "Can you get {q} {i} ready for {n} by {d}?",
        "There are {q} {i} in the cart of {n}.",
        "The bill of {n} says {q} {i} and {p} euros.",
        "I sold {n} my {i} for {p} euros.",
    ),
    "event": (
        "We meet for the {e} at {t} in the {l}.",
        "The {e} takes place in the {l} on {d}.",
        "The {e} is on {d} at {t}.",
        "{n} sings at the {e} on {d}.",
        "Please come to the {e} in the {l}. We start at {t}.",
        "Our {e} was moved to {d}, {t}.",
        "At {t} the {e} begins, and {n} opens the door of the {l}.",
        "The {e} is on {d}.",
        "The {e} starts at {t}.",
        "The {e} starts at {t} and is in the {l}.",
        "{n} celebrates {a_e} on {d}.",
        "Be at the {l} by {t}, for the {e} does not wait.",
        "Because of the rain the {e} moves to the {l}.",
        "{n} is looking forward to the {e} on {d}.",
        "Nobody should miss the {e} of {n} at {t}.",
        "Tickets for the {e} at the {l} are sold from {d} on.",
    ),
    "book": (
        "I have just finished {b}, written by {n}.",
        "{n} needed years to write {b}.",
        "{b} is the best book of {n}, all {s} pages of it.",
        "The first edition of {b} is from {y}.",
        "{n}'s book {b} appeared in {y}.",
        "My sister gave me {b} by {n}.",
    ),
    "weather": (
        "In {c} it is {s} today.",
        "Today {c} is {s} at {g} degrees.",
        "The forecast for {c} on {d}: {s}.",
        "People in {c} enjoy {g} degrees and a {s} {d}.",
        "They expect {g} degrees in {c} on {d}.",
        "What a {s} day in {c}!",
    ),
    "pet": (
        "{n}'s {k} {m} is {g} years old.",
        "Mrs {n}'s {k} {m} is {g}.",
        "{m}, the {k} of our neighbour {n}, is {f}.",
        "{n} takes the {k} {m} to the vet. It is {g} years old.",
        "{n} has {a_k}.",
        "The {k} is {f}.",
        "The {k} of {n} is {f}.",
        "{n}'s {k} is {f} and hears the name {m}.",
        "{m} is {n}'s {k}.",
        "{n} bought {a_k} and named it {m}.",
        "At {g} years, the {k} {m} is no longer young.",
        "{n} walks a {f} {k} every morning.",
    ),
    "contact": (
        "{n} answers mails at {e}.",
        "{n}'s number is {f}.",
        "{n}'s email is {e} and the office is {r}.",
        "Send it to {n} ({e}).",
        "Please phone {n}, {f}.",
        "My name is {n}, you can reach me at {f}.",
    ),
    "harvest": (
        "{n} was born in {m} and grows {i}.",
        "This {m}, {n} harvested {k} kilos of {i}.",
        "{n}'s {i} weigh {k} kilos.",
        "{n} gave away {k} kilos of {i} last {m}.",
    ),
}
TEST_ASKS = (
    "Please extract {k} from the text and return JSON.\nText: {t}",
    "Here is a text: {t}\nAnswer with a JSON object with the keys {k}.",
    "Give me a JSON object with {k} for this: {t}",
    "{t}\nPlease turn this into JSON with the keys {k}.",
)
KNOWN_ASKS = (
    "Tell me about the {t} as JSON with {k}.",
    "Describe the {t} as a JSON object with the keys {k}.",
    "Give me {k} of the {t} as JSON.",
    "The {t} as JSON: {k}",
    "Write JSON about the {t}. Keys: {k}",
    "What do you know about the {t}? Answer in JSON with {k}.",
)
SYSTEMS = (
    "Extract {k} as JSON.",
    "You turn texts into JSON with the keys {k}.",
    "Answer only with a JSON object with {k}.",
    "For every text, write JSON with {k}.",
    "You extract data. Keys: {k}",
    "Answer in JSON of this form: {o}",
    "You extract {k} from texts and return JSON.",
    "You extract the keys {k} from each text as a JSON object.",
    "You answer with JSON only. The keys are {k}.",
    "You are a program that turns texts into JSON. Keys: {k}",
    "You are given texts. Return {k} as JSON.",
    "Answer with JSON. The keys are {k}.",
    "Always answer with a JSON object with the keys {k}.",
    "JSON only. Keys: {k}",
    "Only JSON, with the keys {k}.",
    "Extract data as JSON. Use the keys {k}.",
    "Please answer with JSON with {k}.",
    "Read each text and extract {k} into JSON.",
    "Your task is to find {k} and to write JSON.",
    "The answer to every text is JSON with {k}.",
    "Fill in this form from each text: {o}",
)
TEST_SYSTEMS = ("You extract data as JSON with the keys {k}.", "Answer with JSON only. Keys: {k}")
FILLERS = (
    "It was a long day.",
    "Thank you very much!",
    "Please write soon.",
    "That is all for now.",
    "I hope that you are well.",
    "Everybody is happy about it.",
    "We look forward to it.",
    "Nobody knows why.",
)


JOURNEY = Kind(
    {
        "a": Slot(("from", "start", "origin", "departure"), Words.city),
        "b": Slot(("to", "destination", "end", "arrival"), Words.city),
        "t": Slot(("time", "departure_time", "leaves"), Words.time),
        "p": Slot(("price", "cost", "euros"), lambda w: w.number(5, 300)),
        "v": Slot(("by", "means", "vehicle"), lambda w: w.rng.choice(("train", "bus", "ship", "plane", "ferry"))),
    },
    (
        "The {v} leaves {a} for {b} at {t}.",
        "The {v} from {a} to {b} leaves at {t}.",
        "From {a} to {b} at {t}, by {v}.",
        "A ticket from {a} to {b} costs {p} euros.",
        "{a} to {b}: {p} euros by {v}.",
        "At {t} there is a {v} to {b}. It starts in {a}.",
        "We take the {v} in {a} at {t} and get off in {b}.",
        "I paid {p} euros for the {v} from {a} to {b}.",
        "You can reach {b} from {a} by {v} for {p} euros.",
        "The next {v} to {b} goes at {t}.",
        "Leaving {a} at {t}, the {v} goes to {b}.",
        "To {b}, please. The {v} at {t} is fine.",
        "From: {a}\nTo: {b}\nTime: {t}",
        "{a}, {t}, {b}",
    ),
    (),
)
MEASURED = Kind(
    {
        "o": Slot(
            ("tree", "object", "thing", "what"), lambda w: w.rng.choice((w.rng.choice(TREES).name, w.pick(NOUNS)))
        ),
        "h": Slot(("height", "metres", "size"), lambda w: w.number(2, 120)),
        "g": Slot(("age", "years"), lambda w: w.number(2, 900)),
        "c": Slot(("city", "place", "where"), Words.city),
        "f": Slot(("colour", "color"), Words.colour),
    },
    (
        "The {o} behind our house is {h} metres tall.",
        "The {o} in {c} is {h} metres high and {g} years old.",
        "Our {o} is {f}.",
        "In {c} stands a {f} {o}.",
        "A {o} of {h} metres fell down in {c}.",
        "They measured the {o}: {h} metres.",
        "The {o} has grown to {h} metres in {g} years.",
        "There is a {o} in {c}. It is {f} and {h} metres tall.",
        "Look at that {f} {o}, all {h} metres of it!",
        "The {o} is {g} years old and {h} metres tall.",
    ),
    (),
)
KINDS = {name: replace(kind, later_frames=MORE_FRAMES[name]) for name, kind in KINDS.items()}

TITLE_WORDS = ("The", "Old", "Silent", "Blue", "House", "River", "Sea", "Garden", "and", "of", "the", "Night", "Road")


def _title(words: Words) -> str:
    rng = words.rng
    first = rng.choice(("The", "A", made_up(rng).capitalize(), "Old", "Silent", "My"))
    rest = [rng.choice((*TITLE_WORDS, made_up(rng).capitalize())) for _ in range(rng.randint(1, 3))]
    return " ".join((first, *rest, rng.choice(("Sea", "House", "River", made_up(rng).capitalize()))))


def _mail(words: Words) -> str:
    rng = words.rng
    name = words.name().lower()
    before = rng.choice((name, f"{name}.{words.name().lower()}", f"{name}{rng.randint(1, 99)}", f"info.{made_up(rng)}"))
    return f"{before}@{rng.choice(('mail', 'example', 'post', made_up(rng)))}.{rng.choice(('com', 'org', 'net', 'de'))}"


def _phone(words: Words) -> str:
    rng = words.rng
    parts = [words.digits(rng.randint(2, 4)) for _ in range(rng.choice((1, 2, 3)))]
    return rng.choice((" ", "-", " ")).join(parts)


def _model(words: Words) -> str:
    rng = words.rng
    return f"{made_up(rng).capitalize()}{rng.choice(('', ' ' + str(rng.randint(1, 9)), str(rng.randint(10, 900))))}"


def _amount(words: Words) -> str:
    return f"{words.number(2, 900)} {words.rng.choice(('grams', 'litres', 'cups', 'spoons', 'kilos', 'pieces'))}"


def _part(words: Words) -> str:
    return words.rng.choice((words.items(), f"{words.colour()} {words.items()}", made_up(words.rng)))


def _any_name(words: Words) -> str:
    return words.name() if words.rng.random() < 0.5 else words.full_name()


WIDE_KINDS = (
    Kind(
        {
            "t": Slot(("title", "book", "name"), _title),
            "a": Slot(("author", "writer", "by"), _any_name),
            "y": Slot(("year", "published"), lambda w: w.number(1900, 2025)),
        },
        (
            "The novel {t} by {a} came out in {y}.",
            '"{t}" was written by {a}.',
            "I am reading {t} by {a}.",
            "{a} wrote {t} in {y}.",
            "In {y} {a} published the book {t}.",
            "My favourite book is {t}. {a} wrote it.",
        ),
        (),
    ),
    Kind(
        {
            "n": Slot(("name", "person", "contact"), _any_name),
            "e": Slot(("email", "mail", "address"), _mail),
            "p": Slot(("phone", "number", "tel", "mobile"), _phone),
        },
        (
            "Contact {n} at {e}.",
            "You can reach {n} at {e} or {p}.",
            "Call Mr. {n} at {p}.",
            "{n}, phone {p}, mail {e}",
            "Please write to {n}, {e}.",
            "My name is {n} and my email is {e}.",
            "{n} has the number {p}. The address is {e}.",
        ),
        (),
    ),
    Kind(
        {
            "b": Slot(("brand", "make", "maker"), lambda w: made_up(w.rng).capitalize()),
            "m": Slot(("model", "type"), _model),
            "y": Slot(("year", "built"), lambda w: w.number(1980, 2025)),
            "c": Slot(("color", "colour"), Words.colour),
        },
        (
            "I drive a {y} {b} {m}.",
            "For sale: {b} {m}, {c}, built in {y}.",
            "The car is a {c} {b} {m} from {y}.",
            "My {b} {m} is {c}.",
            "A {c} {b} {m} of {y} stands in the garage.",
        ),
        (),
    ),
    Kind(
        {
            "q": Slot(("amount", "quantity", "how_much"), _amount),
            "i": Slot(("ingredient", "item", "what", "vegetable", "fruit"), _part),
        },
        (
            "Add {q} of {i} to the bowl.",
            "The recipe needs {q} of {i}.",
            "Take {q} of {i}.",
            "We harvested {q} of {i}.",
            "You need {q} of {i} and a big pan.",
        ),
        (),
    ),
    Kind(
        {
            "s": Slot(("sender", "from", "payer"), Words.name),
            "r": Slot(("receiver", "to", "recipient"), Words.name),
            "a": Slot(("amount", "sum"), lambda w: w.number(2, 900)),
            "c": Slot(("currency",), lambda w: w.rng.choice(("dollars", "euros", "pounds", "francs", "yen"))),
        },
        (
            "{s} sent {a} {c} to {r}.",
            "{r} received {a} {c} from {s}.",
            "{s} paid {r} {a} {c}.",
            "{a} {c} went from {s} to {r}.",
            "From {s} to {r}: {a} {c}",
        ),
        (),
    ),
    Kind(
        {
            "n": Slot(("player", "name", "athlete"), _any_name),
            "s": Slot(("sport", "game"), lambda w: w.rng.choice(("handball", "football", "tennis", made_up(w.rng)))),
            "t": Slot(
                ("team", "club"), lambda w: f"{w.colour().capitalize()} {w.rng.choice(('Foxes', 'Stars', 'Bears'))}"
            ),
            "q": Slot(("goals", "points", "score"), lambda w: w.number(1, 40)),
        },
        (
            "{n} plays {s} for the {t}.",
            "{n} of the {t} scored {q} points.",
            "The {t} have a new player, {n}, who plays {s}.",
            "In {s}, {n} made {q} points for the {t}.",
        ),
        (),
    ),
    Kind(
        {
            "d": Slot(
                ("device", "thing", "machine"), lambda w: w.rng.choice(("printer", "screen", "phone", made_up(w.rng)))
            ),
            "w": Slot(
                ("location", "room", "place", "where"), lambda w: w.rng.choice(("office", "kitchen", "hall", "lobby"))
            ),
            "p": Slot(
                ("problem", "issue", "state"), lambda w: w.rng.choice(("broken", "too slow", "very loud", "offline"))
            ),
            "x": Slot(("ticket", "id", "number"), lambda w: w.number(100, 9999)),
        },
        (
            "The {d} in the {w} is {p}.",
            "Ticket {x}: the {d} in the {w} is {p}.",
            "Please look at the {d} in the {w}, it is {p}. The ticket is {x}.",
            "{x}, {d}, {w}: {p}",
            "Our {d} is {p}. It stands in the {w}.",
        ),
        (),
    ),
    Kind(
        {
            "f": Slot(("first_name", "first", "given_name"), Words.name),
            "l": Slot(("last_name", "surname", "family_name"), lambda w: made_up(w.rng).capitalize()),
            "c": Slot(
                ("country", "land", "from"),
                lambda w: w.rng.choice(("Chile", "Kenya", "Norway", made_up(w.rng).capitalize())),
            ),
            "t": Slot(("title",), lambda w: w.rng.choice(("Doctor", "Professor", "Mr.", "Mrs."))),
        },
        (
            "{t} {f} {l} comes from {c}.",
            "My name is {f} {l} and I come from {c}.",
            "{f} {l} was born in {c}.",
            "Please welcome {t} {f} {l}.",
            "{l}, {f} ({c})",
        ),
        (),
    ),
    Kind(
        {
            "m": Slot(
                ("meeting", "event", "what"), lambda w: w.rng.choice(("budget meeting", "team meeting", w.event()))
            ),
            "d": Slot(
                ("day", "date", "when"),
                lambda w: w.rng.choice((w.rng.choice(DAYS), f"{w.number(1, 28)} {w.rng.choice(MONTHS)}")),
            ),
            "h": Slot(("time", "hour", "at"), Words.time),
            "w": Slot(
                ("place", "room", "where"), lambda w: w.rng.choice((f"room {w.number(1, 40)}", "the hall", w.city()))
            ),
            "n": Slot(("people", "guests", "count"), lambda w: w.number(2, 60)),
        },
        (
            "The {m} on {d} at {h} is in {w}.",
            "{m}: {d}, {h}, {w}, {n} people",
            "On {d} we have the {m} at {h}.",
            "There will be {n} people at the {m} in {w} on {d}.",
            "The {m} has moved to {d} at {h}.",
        ),
        (),
    ),
    Kind(
        {
            "f": Slot(
                ("flight", "train", "number"),
                lambda w: f"{''.join(w.rng.choices('ABDEFHKLMNST', k=2))}{w.number(10, 9999)}",
            ),
            "a": Slot(("origin", "from", "departure"), Words.city),
            "b": Slot(("destination", "to", "arrival"), Words.city),
            "g": Slot(("gate", "platform"), lambda w: f"{w.rng.choice('ABCD')}{w.number(1, 40)}"),
            "n": Slot(("nights", "days"), lambda w: w.number(2, 14)),
        },
        (
            "Flight {f} from {a} to {b} leaves from gate {g}.",
            "{f} flies from {a} to {b}.",
            "I booked {n} nights in {b} and flight {f} from {a}.",
            "Gate {g}: {f} to {b}",
            "We travel from {a} to {b} for {n} days.",
        ),
        (),
    ),
)
# Part of the texts of the last stages that are of these kinds, and part of their values that have two words.
OTHER_KINDS, LONGER = 0.2, 0.3


def _longer(words: Words, name: str, value: Any) -> Any:
    """A value with another word before it, as in "flea market"; days become dates."""
    rng = words.rng
    if value in DAYS:
        return f"{rng.randint(1, 28)} {rng.choice(MONTHS)}" if rng.random() < 0.7 else f"next {value}"
    if name in "eilj" and isinstance(value, str) and "@" not in value:
        before = made_up(rng) if rng.random() < 0.5 else rng.choice(BEFORE)
        return f"{before} {value}"
    return value


BEFORE = ("book", "town", "flea", "garden", "choir", "music", "bus", "big", "old", "wool", "sports", "chess", "summer")


def _record(words: Words, kind: Kind, before: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
    """A text and what it says; in training it may have some values of the record ``before`` it."""
    rng = words.rng
    values = {name: slot.draw(words) for name, slot in kind.slots.items()}
    while len({str(value) for value in values.values()}) < len(values):
        values = {name: slot.draw(words) for name, slot in kind.slots.items()}
    if words.is_late and not words.test and rng.random() < LONGER:
        values = {name: _longer(words, name, value) for name, value in values.items()}
    if before and not words.test and rng.random() < 0.4:
        name = rng.choice(list(before))
        if before[name] not in values.values():
            values[name] = before[name]
    if kind.exact:
        frame = rng.choice(kind.frames)
    else:
        frame = words.wording(words.known(kind.frames, kind.later_frames), kind.test_frames, free=False)
        if not words.test and rng.random() < 0.12:
            frame = words.garbled(frame)
    used = {name: value for name, value in values.items() if f"{{{name}}}" in frame or f"{{a_{name}}}" in frame}
    texts = {name: str(value) for name, value in values.items()}
    text = frame.format(**texts, **{f"a_{name}": article(value) for name, value in texts.items()})
    if "\n" not in text and rng.random() < 0.15:
        text = f"{rng.choice(FILLERS)} {text}" if rng.random() < 0.4 else f"{text} {rng.choice(FILLERS)}"
    return text, used


def _asked(words: Words, kind: Kind, used: dict[str, Any]) -> dict[str, str]:
    """The keys to ask for, each with the slot it means; now and then one of which the text says nothing."""
    rng = words.rng
    chosen = rng.sample(list(used), rng.randint(min(2, len(used)), len(used)))
    absent = [name for name in kind.slots if name not in used]
    if absent and rng.random() < 0.12:
        chosen.insert(rng.randrange(len(chosen) + 1), rng.choice(absent))
    keys: dict[str, str] = {}
    for name in chosen:
        options = [key for key in kind.slots[name].keys if key not in keys]
        keys[options[0] if rng.random() < 0.5 else rng.choice(options)] = name
    return keys


def _described(rng: random.Random, keys: dict[str, str], example: dict[str, Any]) -> tuple[str, str]:
    """The keys as a list, and as an empty form."""
    names = [f'"{key}"' for key in keys] if rng.random() < 0.25 else list(keys)
    written = listed(names) if rng.random() < 0.6 else ", ".join(names)
    form = {key: 0 if isinstance(example.get(name), int) else "" for key, name in keys.items()}
    return written, json.dumps(form)


def _answer(keys: dict[str, str], used: dict[str, Any]) -> dict[str, Any]:
    return {key: used.get(name) for key, name in keys.items()}


def _thought(keys: dict[str, str], used: dict[str, Any]) -> str:
    found = (f"{key}: {used.get(name, 'not in the text')}" for key, name in keys.items())
    return "The text says " + ", ".join(found) + "."


def task(words: Words) -> tuple[list[tuple[str, Any]], str | None, str]:
    """Texts with the values to answer, a system prompt if it says what to do, and the thought for the last."""
    rng = words.rng
    kind = rng.choice(list(KINDS.values()))
    if words.is_late and not words.test and rng.random() < OTHER_KINDS:
        kind = rng.choice((JOURNEY, MEASURED))
    if words.is_wide and rng.random() < 0.35:
        kind = rng.choice(WIDE_KINDS)
    if words.is_last and rng.random() < 0.55:
        kind = replace(rng.choice(RECORDED), exact=True)
    text, used = _record(words, kind)
    keys = _asked(words, kind, used)
    written, form = _described(rng, keys, {name: slot.draw(words) for name, slot in kind.slots.items()})
    if words.is_late and not words.test and rng.random() < 0.2:
        written = listed([f"the {key.replace('_', ' ')}" if "_" not in key else key for key in keys])
    if rng.random() < 0.35:
        system = words.wording(SYSTEMS, TEST_SYSTEMS).format(k=written, o=form)
        pairs = [(text, _answer(keys, used))]
        for _ in range(0 if words.test else rng.choice((0, 1, 2, 3))):
            text, used = _record(words, kind)
            pairs.append((text, _answer(keys, used)))
        return pairs, system, _thought(keys, used)
    if rng.random() < (0.12 if words.test else 0.25):
        frame = rng.choice(kind.test_frames if words.test else kind.frames)
        alone = Kind(kind.slots, (frame,), (frame,), exact=kind.exact)
        count = rng.choice((2, 2, 3) if words.test else (2, 2, 3, 3, 4))
        records = [_record(words, alone)]
        while len(records) < count:
            records.append(_record(words, alone, records[-1][1]))
        text, used = " ".join(text for text, _ in records), records[0][1]
        keys = _asked(words, Kind({name: kind.slots[name] for name in used}, (), ()), used)
        written, form = _described(rng, keys, used)
        asked = words.wording(words.known(ASKS, MORE_ASKS), TEST_ASKS).format(k=written, o=form, t=text)
        asked += " " + rng.choice(
            ("Write a JSON list.", "Return a JSON list with one object for each.", "Answer with a list.")
        )
        return [(asked, [_answer(keys, found) for _, found in records])], None, f"There are {len(records)} records."
    asked = words.wording(words.known(ASKS, MORE_ASKS), TEST_ASKS).format(k=written, o=form, t=text)
    pairs = [(asked, _answer(keys, used))]
    # Another question about the same text: what is to be looked for changes, what stands there does not.
    while not words.test and rng.random() < 0.4:
        keys = _asked(words, kind, used)
        written, _ = _described(rng, keys, used)
        asked = rng.choice(
            ("Now only {k}.", "And now {k} as JSON.", "The same with the keys {k}.", "Now as JSON with {k}.")
        )
        pairs.append((asked.format(k=written), _answer(keys, used)))
    return pairs, None, _thought(keys, used)


def form(words: Words) -> tuple[str, str]:
    """A form with entries of any name, some of which are asked for as JSON."""
    rng = words.rng
    draws = (words.name, words.city, words.items, words.code, words.event, lambda: words.number(0, 999))
    keys = words.several(lambda: made_up(rng), rng.randint(2, 7))
    values = {key: rng.choice(draws)() for key in keys}
    written = rng.choice(("{k}: {v}", "{k} = {v}", "The {k} is {v}.", "{k} {v}", "- {k}: {v}", "{v} is the {k}."))
    text = rng.choice(("\n", "\n", " ")).join(written.format(k=key, v=value) for key, value in values.items())
    wanted = rng.sample(keys, rng.randint(1, len(keys)))
    if rng.random() < 0.1:
        wanted.insert(rng.randrange(len(wanted) + 1), made_up(rng))
    names = [f'"{key}"' for key in wanted] if rng.random() < 0.25 else wanted
    asked = words.wording(words.known(ASKS, MORE_ASKS), TEST_ASKS).format(
        k=listed(names) if rng.random() < 0.6 else ", ".join(names), o=json.dumps(dict.fromkeys(wanted, "")), t=text
    )
    return asked, json.dumps({key: values.get(key) for key in wanted}, ensure_ascii=False)


def several(words: Words) -> tuple[str, str]:
    """Several things under one key, as a list."""
    rng = words.rng
    key, draw = rng.choice((("items", words.items), ("names", words.name), ("cities", words.city), ("pets", words.pet)))
    values = words.several(draw, rng.choice((2, 3, 3, 4)))
    text = rng.choice(SEVERAL[key]).format(v=listed(values))
    asked = rng.choice(
        (
            "Give the {k} as a JSON list under the key {k}: {t}",
            "JSON with the key {k}, a list: {t}",
            "List the {k} in JSON under {k}. {t}",
            "{t} Which {k}? Answer in JSON, a list under the key {k}.",
            "Extract {k} (a list) as JSON: {t}",
            'Fill in {{"{k}": []}} from this text: {t}',
            "Return JSON with a list of {k}. {t}",
        )
    )
    return asked.format(k=key, t=text), json.dumps({key: values}, ensure_ascii=False)


SEVERAL = {
    "items": ("On the way home please get {v}.", "We still need {v}.", "In the box were {v}.", "She bought {v}."),
    "names": ("{v} came to the party.", "Please invite {v}.", "I have met {v} today.", "The team: {v}."),
    "cities": ("We have been to {v}.", "The train stops in {v}.", "There are shops in {v}.", "They visited {v}."),
    "pets": ("At home they keep a {v}.", "I saw a {v} in the yard.", "The children want a {v}."),
}


def known(rng: random.Random) -> tuple[str, str]:
    """Something the model knows about a tree, asked for as JSON."""
    tree = rng.choice(TREES)
    facts: dict[str, Any] = {
        rng.choice(("name", "tree")): tree.name,
        rng.choice(("height", "height", "metres")): tree.height,
        rng.choice(("age", "age", "years")): int(tree.age.replace(",", "")),
        "evergreen": tree.evergreen,
        "kind": "evergreen" if tree.evergreen else "deciduous",
    }
    keys = rng.sample(list(facts), rng.randint(1, 4))
    asked = rng.choice(KNOWN_ASKS).format(t=tree.name, k=listed(keys) if rng.random() < 0.7 else ", ".join(keys))
    return asked, json.dumps({key: facts[key] for key in keys})


def document(rng: random.Random, stage: Stage = Stage.LAST) -> Document:
    """One or several texts and what they say as JSON."""
    words = Words(rng, stage=stage)
    if rng.random() < 0.06:
        return conversation([known(rng) for _ in range(rng.choice((1, 1, 2, 3)))])
    if rng.random() < 0.15:
        return conversation([form(words)])
    if stage >= Stage.TALK and rng.random() < 0.06:
        return conversation([several(words)])
    pairs, system, thought = task(words)
    written = [(asked, json.dumps(value, ensure_ascii=False)) for asked, value in pairs]
    return conversation(written, system, thought=thought if rng.random() < 0.15 else None)


def cases(rng: random.Random, count: int) -> Iterator[Case]:
    """Texts, instructions and values that training never used."""
    words = Words(rng, test=True)
    for place in range(count):
        [(asked, value)], system, _ = task(words)
        turns = [Turn("system", system)] if system else []
        thinking = place % 8 == 7
        skill = "JSON extraction, thinking" if thinking else "JSON extraction"
        yield Case(skill, [*turns, Turn("user", asked)], thinking=thinking, value=value)
