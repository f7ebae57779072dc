"""Choosing a tool, calling it with what the user said, and saying what came of it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from documents import Call, Case, Document, Tool, Turn
from words import DAYS, SKIES, Words, made_up

from skills.arithmetic import result as sum_result
from skills.conversation import answer_of_sapling

NAME = "tools"

STRING: Mapping[str, Any] = {"type": "string"}
INTEGER: Mapping[str, Any] = {"type": "integer"}


@dataclass(frozen=True)
class Skill:
    """A tool with the ways of asking for it.

    Attributes:
        names: under which it may be offered; the first is the usual one.
        descriptions: of which one is given with it.
        parameters: each with its schema and how to draw a value.
        asks: patterns over the arguments.
        test_asks: those held out.
        outcome: draws what the tool returns.
        replies: patterns over arguments and outcome.
    """

    names: tuple[str, ...]
    descriptions: tuple[str, ...]
    parameters: dict[str, tuple[Mapping[str, Any], Callable[[Words], Any]]]
    asks: tuple[str, ...]
    test_asks: tuple[str, ...]
    outcome: Callable[[Words], dict[str, Any]]
    replies: tuple[str, ...]
    renamed: dict[str, tuple[str, ...]] = field(default_factory=dict)


def enum(*values: str) -> Mapping[str, Any]:
    """The schema of a choice."""
    return {"type": "string", "enum": list(values)}


def done(_: Words) -> dict[str, Any]:
    """What a tool returns that has nothing to say."""
    return {"ok": True}


def note(words: Words) -> str:
    """Something to be remembered."""
    return words.rng.choice(
        (
            f"buy {words.items()}",
            f"call {words.name()}",
            f"water the {words.items()}",
            f"visit {words.name()}",
            f"pay the {words.job()}",
            f"bring {words.items()} to {words.name()}",
        )
    )


SKILLS: tuple[Skill, ...] = (
    Skill(
        ("get_weather", "weather", "current_weather", "weather_in_city"),
        ("The weather in a city.", "Tells the current weather of a city.", "Get the weather for a place."),
        {"city": (STRING, Words.city)},
        (
            "What is the weather in {city}?",
            "How is the weather in {city}?",
            "Is it raining in {city}?",
            "Tell me the weather in {city}.",
            "What's the weather like in {city}?",
            "Weather in {city}?",
            "Is it cold in {city}?",
            "Do I need an umbrella in {city}?",
            "How warm is it in {city}?",
            "Is the sun shining in {city}?",
            "weather {city}",
            "I am going to {city}. How is the weather there?",
        ),
        (
            "Can you tell me what the weather is like in {city}?",
            "Please check the weather in {city}.",
            "How does the weather look in {city} today?",
        ),
        lambda w: {"sky": w.rng.choice(SKIES), "temperature": w.number(-10, 35)},
        ("It is {sky} in {city}, with {temperature} degrees.", "In {city} it is {sky} and {temperature} degrees."),
        {"city": ("city", "location", "place", "town")},
    ),
    Skill(
        ("add", "add_numbers", "sum", "plus"),
        ("Adds two numbers.", "The sum of two numbers."),
        {"a": (INTEGER, lambda w: w.number(1, 999)), "b": (INTEGER, lambda w: w.number(1, 999))},
        (
            "What is {a} + {b}?",
            "What is {a} plus {b}?",
            "Add {a} and {b}.",
            "Add {a} and {b} with the tool.",
            "How much is {a} plus {b}?",
            "{a} + {b}",
        ),
        ("Please calculate {a} + {b}.", "Can you add {a} and {b} for me?"),
        lambda w: {"result": None},
        ("{a} + {b} = {result}.",),
        {"a": ("a", "x", "first"), "b": ("b", "y", "second")},
    ),
    Skill(
        ("multiply", "product", "times"),
        ("Multiplies two numbers.", "The product of two numbers."),
        {"a": (INTEGER, lambda w: w.number(2, 99)), "b": (INTEGER, lambda w: w.number(2, 99))},
        (
            "What is {a} x {b}?",
            "What is {a} times {b}?",
            "Multiply {a} by {b}.",
            "How much is {a} times {b}?",
            "{a} * {b}",
        ),
        ("Please calculate {a} x {b}.", "Can you multiply {a} and {b} for me?"),
        lambda w: {"result": None},
        ("{a} x {b} = {result}.",),
        {"a": ("a", "x", "first"), "b": ("b", "y", "second")},
    ),
    Skill(
        ("get_time", "current_time", "clock", "time_in_city"),
        ("The time in a city.", "Tells what time it is in a city."),
        {"city": (STRING, Words.city)},
        (
            "What time is it in {city}?",
            "How late is it in {city}?",
            "Tell me the time in {city}.",
            "What is the time in {city}?",
            "time in {city}",
            "Is it late in {city}?",
            "What time do they have in {city}?",
        ),
        ("Can you tell me what time it is in {city}?", "Please check the time in {city}."),
        lambda w: {"time": w.time()},
        ("It is {time} in {city}.",),
        {"city": ("city", "location", "place", "town")},
    ),
    Skill(
        ("set_timer", "start_timer", "timer"),
        ("Starts a timer.", "Sets a timer for some minutes."),
        {"minutes": (INTEGER, lambda w: w.number(1, 90))},
        (
            "Set a timer for {minutes} minutes.",
            "Start a timer of {minutes} minutes.",
            "Timer for {minutes} minutes, please.",
            "Tell me when {minutes} minutes are over.",
            "I need a timer for {minutes} minutes.",
            "{minutes} minutes timer",
            "Count down {minutes} minutes.",
        ),
        ("Please set a timer for {minutes} minutes.", "Can you start a timer for {minutes} minutes?"),
        done,
        ("The timer runs for {minutes} minutes.",),
    ),
    Skill(
        ("send_message", "send_text", "message", "write_message"),
        ("Sends a message to a person.", "Send somebody a text."),
        {
            "to": (STRING, Words.name),
            "text": (
                STRING,
                lambda w: w.rng.choice(
                    (
                        f"I am in {w.city()}",
                        f"see you on {w.rng.choice(DAYS)}",
                        f"bring {w.number(2, 20)} {w.items()}",
                        "I am late",
                        f"meet me at the {w.place()}",
                        "thank you",
                        f"the {w.event()} begins at {w.time()}",
                    )
                ),
            ),
        },
        (
            'Send {to} the message "{text}".',
            "Tell {to}: {text}",
            "Write to {to}: {text}",
            "Send a message to {to}: {text}",
            "Text {to}: {text}",
            'Message {to} "{text}".',
            "Let {to} know: {text}",
        ),
        ('Please send "{text}" to {to}.', "Can you send {to} this message: {text}"),
        done,
        ("I have sent the message to {to}.", "Your message to {to} is sent."),
        {"to": ("to", "recipient", "person", "name"), "text": ("text", "message", "body")},
    ),
    Skill(
        ("call_person", "phone", "make_call"),
        ("Calls a person on the telephone.", "Phones somebody."),
        {"name": (STRING, Words.name)},
        (
            "Call {name}.",
            "Phone {name}.",
            "I want to speak to {name}.",
            "Ring {name}, please.",
            "Make a call to {name}.",
            "Get {name} on the phone.",
        ),
        ("Please call {name} for me.", "Can you phone {name}?"),
        done,
        ("I am calling {name}.",),
        {"name": ("name", "person", "contact")},
    ),
    Skill(
        ("find_place", "search_place", "nearby", "find_nearby"),
        ("Finds a place in a city.", "Searches for places near a city."),
        {"kind": (STRING, Words.place), "city": (STRING, Words.city)},
        (
            "Where is a {kind} in {city}?",
            "Find a {kind} in {city}.",
            "Is there a {kind} in {city}?",
            "Look for a {kind} in {city}.",
            "I am in {city} and need a {kind}.",
            "Show me a {kind} in {city}.",
        ),
        ("Can you find a {kind} in {city} for me?", "Please search for a {kind} in {city}."),
        lambda w: {"name": f"{w.name()} {w.number(1, 99)}", "metres": w.number(1, 90) * 10},
        ("There is a {kind} in {city}: {name}, {metres} metres away.",),
        {"kind": ("kind", "place", "what"), "city": ("city", "location", "where")},
    ),
    Skill(
        ("book_ticket", "buy_ticket", "train_ticket"),
        ("Books a train ticket between two cities.", "Buys a ticket for the train."),
        {"start": (STRING, Words.city), "destination": (STRING, Words.city)},
        (
            "Book a ticket from {start} to {destination}.",
            "I want to go from {start} to {destination} by train.",
            "Buy me a train ticket from {start} to {destination}.",
            "I need a ticket to {destination} from {start}.",
            "Train from {start} to {destination}, please.",
            "Get me from {start} to {destination}.",
        ),
        ("Please book a train from {start} to {destination}.", "Can you buy a ticket from {start} to {destination}?"),
        lambda w: {"price": w.number(9, 120), "departure": w.time()},
        ("Your train from {start} to {destination} leaves at {departure}. The ticket costs {price} euros.",),
        {"start": ("start", "from", "origin"), "destination": ("destination", "to", "end")},
    ),
    Skill(
        ("add_note", "remember", "save_note", "create_note"),
        ("Saves a note.", "Writes something down."),
        {"text": (STRING, note)},
        (
            "Note: {text}",
            "Write down: {text}",
            "Remember to {text}.",
            "Make a note: {text}",
            "Save this note: {text}",
            "Put this in my notes: {text}",
            "Remind me to {text}.",
        ),
        ("Please note that I have to {text}.", "Can you write this down: {text}"),
        done,
        ("I have noted: {text}.",),
        {"text": ("text", "note", "content")},
    ),
    Skill(
        ("set_light", "switch_light", "light"),
        ("Switches the light of a room on or off.", "Turns a lamp on or off."),
        {
            "room": (
                STRING,
                lambda w: w.rng.choice(
                    ("kitchen", "bedroom", "bathroom", "hall", "cellar", "garage", "office", "attic")
                ),
            ),
            "state": (enum("on", "off"), lambda w: w.rng.choice(("on", "off"))),
        },
        (
            "Turn {state} the light in the {room}.",
            "Switch the light in the {room} {state}.",
            "Light {state} in the {room}!",
            "Turn the {room} light {state}.",
            "The light in the {room} should be {state}.",
        ),
        ("Please turn the light in the {room} {state}.", "Can you switch {state} the lamp in the {room}?"),
        done,
        ("The light in the {room} is {state} now.",),
        {"room": ("room", "where"), "state": ("state", "mode", "value")},
    ),
    Skill(
        ("get_price", "price", "look_up_price", "shop_price"),
        ("The price of an article.", "Looks up what something costs."),
        {"item": (STRING, Words.items)},
        (
            "What do {item} cost?",
            "How much are {item}?",
            "What is the price of {item}?",
            "Are {item} expensive?",
            "Price of {item}?",
            "Look up the price of {item}.",
        ),
        ("Can you tell me how much {item} cost?", "Please check the price of {item}."),
        lambda w: {"euros": w.number(1, 80)},
        ("The price of {item} is {euros} euros.",),
        {"item": ("item", "product", "article")},
    ),
    Skill(
        ("order", "buy", "order_item", "add_to_cart"),
        ("Orders an article in the shop.", "Buys something."),
        {"item": (STRING, Words.items), "count": (INTEGER, lambda w: w.number(2, 40))},
        (
            "Order {count} {item}.",
            "Buy {count} {item}.",
            "I want {count} {item}.",
            "{count} {item}, please.",
            "I would like to have {count} {item}.",
            "Get me {count} {item}.",
        ),
        ("Please order {count} {item} for me.", "Can you buy {count} {item}?"),
        lambda w: {"order": w.code()},
        ("I have ordered {count} {item}. The order is {order}.",),
        {"item": ("item", "product", "article"), "count": ("count", "quantity", "amount")},
    ),
    Skill(
        ("tree_height", "height_of", "height_of_tree"),
        ("The height of a kind of tree.", "Tells how tall a tree grows."),
        {
            "tree": (
                STRING,
                lambda w: w.rng.choice(
                    ("oak", "birch", "pine", "maple", "willow", "beech", "ash", "elm", "spruce", "fir")
                ),
            )
        },
        (
            "How tall does the {tree} grow?",
            "How tall is the {tree}?",
            "How high can the {tree} get?",
            "What is the height of the {tree}?",
            "Tell me the height of the {tree}.",
        ),
        ("Please look up how tall the {tree} gets.", "How tall can the {tree} become?"),
        lambda w: {"metres": w.number(5, 90)},
        ("The {tree} grows about {metres} metres tall.",),
        {"tree": ("tree", "name", "kind")},
    ),
    Skill(
        ("translate", "translate_word", "dictionary"),
        ("Translates a word.", "Says a word in another language."),
        {
            "word": (STRING, lambda w: w.rng.choice((w.pet(), w.place(), w.hobby(), w.colour()))),
            "language": (
                STRING,
                lambda w: w.rng.choice(
                    ("French", "German", "Spanish", "Italian", "Polish", "Dutch", "Greek", "Danish")
                ),
            ),
        },
        (
            "Translate {word} into {language}.",
            'What is "{word}" in {language}?',
            "How do you say {word} in {language}?",
            "Say {word} in {language}.",
            "{word} in {language}?",
        ),
        ("Please translate {word} to {language}.", "Can you tell me the {language} word for {word}?"),
        lambda w: {"translation": made_up(w.rng)},
        ("In {language} it is {translation}.", 'The {language} word for {word} is "{translation}".'),
        {"word": ("word", "text"), "language": ("language", "to", "target")},
    ),
    Skill(
        ("find_person", "look_up_person", "get_phone_number", "contacts"),
        ("The telephone number of a person.", "Looks up somebody in the address book."),
        {"name": (STRING, Words.name)},
        (
            "What is the phone number of {name}?",
            "What is the number of {name}?",
            "Look up {name} in my address book.",
            "How can I reach {name}?",
            "I need the number of {name}.",
        ),
        ("Can you find the telephone number of {name}?", "Please look up the number of {name}."),
        lambda w: {"number": w.digits(6)},
        ("The number of {name} is {number}.",),
        {"name": ("name", "person", "contact")},
    ),
    Skill(
        ("create_event", "add_event", "calendar", "schedule"),
        ("Puts an event into the calendar.", "Adds an entry to the calendar."),
        {"title": (STRING, Words.event), "day": (STRING, lambda w: w.rng.choice(DAYS)), "time": (STRING, Words.time)},
        (
            "Put a {title} on {day} at {time} into my calendar.",
            "Plan a {title} for {day} at {time}.",
            "I have a {title} on {day} at {time}. Write it into the calendar.",
            "New event: {title}, {day}, {time}",
            "Schedule a {title} on {day} at {time}.",
            "Add a {title} at {time} on {day}.",
        ),
        ("Please add a {title} on {day} at {time} to my calendar.", "Can you schedule a {title} for {day} at {time}?"),
        done,
        ("The {title} on {day} at {time} is in your calendar.",),
        {"title": ("title", "event", "name"), "day": ("day", "date"), "time": ("time", "start", "hour")},
    ),
    Skill(
        ("play_music", "play_song", "play"),
        ("Plays a song.", "Plays music of an artist."),
        {"title": (STRING, Words.title)},
        (
            "Play {title}.",
            "I want to hear {title}.",
            "Put on {title}.",
            "Play the song {title}.",
            "Music: {title}",
            "Let me hear {title}.",
        ),
        ("Please play {title} for me.", "Can you play {title}?"),
        done,
        ("Now playing: {title}.",),
        {"title": ("title", "song", "track")},
    ),
    Skill(
        ("water_plants", "water_garden", "sprinkler"),
        ("Waters the plants for some minutes.", "Turns on the water in the garden."),
        {"plant": (STRING, Words.items), "minutes": (INTEGER, lambda w: w.number(1, 60))},
        (
            "Water the {plant} for {minutes} minutes.",
            "Give the {plant} water for {minutes} minutes.",
            "The {plant} are dry. Water them for {minutes} minutes.",
            "{minutes} minutes of water for the {plant}.",
        ),
        ("Please water the {plant} for {minutes} minutes.", "Can you give the {plant} {minutes} minutes of water?"),
        done,
        ("The {plant} get water for {minutes} minutes.",),
        {"plant": ("plant", "bed", "what"), "minutes": ("minutes", "duration")},
    ),
    Skill(
        ("set_temperature", "heating", "thermostat"),
        ("Sets the heating of the house.", "Changes the temperature in a room."),
        {"degrees": (INTEGER, lambda w: w.number(12, 28))},
        (
            "Set the heating to {degrees} degrees.",
            "Make it {degrees} degrees in here.",
            "I want {degrees} degrees.",
            "Heat the house to {degrees} degrees.",
            "Temperature to {degrees}, please.",
        ),
        ("Please set the temperature to {degrees} degrees.", "Can you heat the room to {degrees} degrees?"),
        done,
        ("The heating is set to {degrees} degrees.",),
        {"degrees": ("degrees", "temperature", "celsius")},
    ),
    Skill(
        ("convert_currency", "exchange", "convert_money"),
        ("Converts money from one currency to another.", "Exchange rates of currencies."),
        {
            "amount": (INTEGER, lambda w: w.number(1, 500)),
            "source": (STRING, lambda w: w.rng.choice(("euros", "dollars", "pounds"))),
            "target": (STRING, lambda w: w.rng.choice(("yen", "francs", "crowns", "rupees"))),
        },
        (
            "Convert {amount} {source} to {target}.",
            "How many {target} are {amount} {source}?",
            "What are {amount} {source} in {target}?",
            "Change {amount} {source} into {target}.",
            "{amount} {source} in {target}",
        ),
        (
            "Please convert {amount} {source} into {target}.",
            "Can you tell me how many {target} I get for {amount} {source}?",
        ),
        lambda w: {"amount_out": w.number(10, 9000)},
        ("{amount} {source} are {amount_out} {target}.",),
        {"source": ("source", "from"), "target": ("target", "to")},
    ),
    Skill(
        ("search", "search_web", "web_search", "look_up"),
        ("Searches the web.", "Finds pages about a topic."),
        {
            "query": (
                STRING,
                lambda w: w.rng.choice(
                    (
                        f"history of {w.city()}",
                        f"how to grow {w.items()}",
                        f"{w.hobby()} for beginners",
                        f"best {w.place()} in {w.city()}",
                        f"who is {w.full_name()}",
                        w.title(),
                    )
                ),
            )
        },
        (
            "Search for {query}.",
            "Search the web: {query}",
            "Look up {query}.",
            "Find something about {query}.",
            'Search for "{query}".',
            "Look on the web for {query}.",
        ),
        ("Please search the web for {query}.", "Can you look up {query} on the web?"),
        lambda w: {"pages": w.number(0, 900), "best": w.title()},
        ("I found {pages} pages. The best is {best}.",),
        {"query": ("query", "q", "text", "topic")},
    ),
    Skill(
        ("count_stock", "stock", "in_stock", "warehouse"),
        ("How many of an article are in stock.", "Looks into the warehouse."),
        {"item": (STRING, Words.items)},
        (
            "How many {item} do we have?",
            "How many {item} are in stock?",
            "Do we have {item}?",
            "Are there {item} in the warehouse?",
            "Check the stock of {item}.",
            "Is there a stock of {item}?",
        ),
        ("Can you check how many {item} we have in stock?", "Please tell me how many {item} are in the warehouse."),
        lambda w: {"count": w.number(0, 500)},
        ("There are {count} {item} in stock.",),
        {"item": ("item", "product", "article")},
    ),
    Skill(
        ("roll_dice", "dice", "random_number"),
        ("Rolls a die.", "Draws a random number."),
        {"sides": (INTEGER, lambda w: w.number(4, 100))},
        (
            "Roll a die with {sides} sides.",
            "Give me a random number up to {sides}.",
            "Throw a die of {sides} sides.",
            "Random number from 1 to {sides}.",
        ),
        ("Please roll a die with {sides} sides.", "Can you draw a random number up to {sides}?"),
        lambda w: {"result": w.number(1, 4)},
        ("The number is {result}.",),
        {"sides": ("sides", "max", "highest")},
    ),
    Skill(
        ("open_file", "read_file", "show_file"),
        ("Reads a file.", "Shows what is in a file."),
        {
            "path": (
                STRING,
                lambda w: f"{made_up(w.rng) if not w.test else w.items()}.{w.rng.choice(('txt', 'md', 'csv', 'json'))}",
            )
        },
        ("Open {path}.", "Show me {path}.", "What is in {path}?", "Read the file {path}.", "What does {path} say?"),
        ("Please open the file {path}.", "Can you read {path} for me?"),
        lambda w: {"content": f"{w.name()} has {w.number(2, 90)} {w.items()}"},
        ("The file says: {content}.",),
        {"path": ("path", "file", "filename", "name")},
    ),
    Skill(
        ("delete_file", "remove_file"),
        ("Deletes a file.", "Removes a file for ever."),
        {
            "path": (
                STRING,
                lambda w: f"{made_up(w.rng) if not w.test else w.items()}.{w.rng.choice(('txt', 'md', 'csv', 'json'))}",
            )
        },
        (
            "Delete {path}.",
            "Remove {path}.",
            "Delete the file {path}.",
            "I do not need {path} any more. Delete it.",
            "Throw {path} away.",
        ),
        ("Please delete the file {path}.", "Can you remove {path} for me?"),
        done,
        ("I have deleted {path}.",),
        {"path": ("path", "file", "filename", "name")},
    ),
)

VERBS = {
    "get": ("Get", "Show me", "Give me", "Tell me", "What is", "Fetch"),
    "update": ("Update", "Change", "Edit"),
    "check": ("Check", "Have a look at", "Inspect"),
    "cancel": ("Cancel", "Stop", "Call off"),
    "start": ("Start", "Begin", "Launch"),
    "print": ("Print", "Put on paper"),
    "share": ("Share", "Pass on"),
    "rate": ("Rate", "Give points to"),
}
NOUNS = (
    "report",
    "invoice",
    "booking",
    "account",
    "profile",
    "ticket",
    "recipe",
    "course",
    "contract",
    "parcel",
    "playlist",
    "backup",
    "project",
    "survey",
    "photo",
    "score",
    "balance",
    "menu",
    "route",
    "poem",
    "diary",
    "budget",
    "server",
    "job",
    "password",
    "garden plan",
    "harvest",
    "newsletter",
    "meter",
    "rota",
)
TEST_NOUNS = ("voucher", "album", "subscription", "license", "loan", "membership")
DETAILS = (
    ("id", " {v}", " with the number {v}", lambda w: w.code()),
    ("name", " of {v}", " that belongs to {v}", Words.name),
    ("city", " for {v}", " in {v}", Words.city),
    ("day", " for {v}", " of {v}", lambda w: w.rng.choice(DAYS)),
)
NO_TOOL = ("I have no tool for that.", "I am sorry, none of my tools can do that.")
SYSTEMS = (
    "You are a helpful assistant.",
    "You are Sapling. Use the tools where they help.",
    "Use the tools.",
    "You are an assistant with tools.",
)


@dataclass(frozen=True)
class Task:
    """A tool, a request for it, the right call, what comes back and what to say then."""

    tool: Tool
    asked: str
    call: Call
    outcome: dict[str, Any]
    reply: str


def combined(words: Words) -> Task:
    """A tool that is put together from a verb and a noun, with a way to ask for it."""
    rng = words.rng
    verb = rng.choice(list(VERBS))
    noun = words.pick(NOUNS, TEST_NOUNS, 0.6)
    key, short, long, value = rng.choice(DETAILS)
    name = f"{verb}_{noun.replace(' ', '_')}"
    drawn = value(words)
    said = rng.choice(VERBS[verb])
    end = "?" if said == "What is" else "."
    ending = rng.choice((short, short, long)).format(v=drawn)
    asked = words.wording([f"{said} the {{noun}}{{ending}}{end}"], free=False).format(noun=noun, ending=ending)
    if words.test:
        asked = f"Please {verb} the {noun}{short.format(v=drawn)}."
    schema = {key: dict(STRING)}
    if verb == "rate":
        schema["points"] = dict(INTEGER)
        points = words.number(1, 10)
        asked = f"{asked[:-1]} {rng.choice(('with', 'as'))} {points} points."
        call = Call(name, {key: drawn, "points": points})
    else:
        call = Call(name, {key: drawn})
    if verb == "get":
        found = rng.choice((words.number(1, 900), words.name(), words.city(), words.code()))
        return Task(
            Tool(name, f"{verb.capitalize()} {_a(noun)}.", schema),
            asked,
            call,
            {noun.replace(" ", "_"): found},
            f"The {noun} is {found}.",
        )
    return Task(
        Tool(name, f"{verb.capitalize()} {_a(noun)}.", schema), asked, call, {"ok": True}, f"Done: {verb} the {noun}."
    )


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"


def curated(words: Words, skill: Skill) -> Task:
    """One use of a tool of the table, under one of its names."""
    rng = words.rng
    usual = rng.random() < 0.5
    name = skill.names[0] if usual else rng.choice(skill.names)
    keys = {key: key if usual else rng.choice(skill.renamed.get(key, (key,))) for key in skill.parameters}
    values = {key: draw(words) for key, (_, draw) in skill.parameters.items()}
    asked = words.wording(skill.asks, skill.test_asks, free=False).format(**values)
    asked = asked[:1].upper() + asked[1:] if rng.random() < 0.9 else asked
    arguments = {keys[key]: value for key, value in values.items()}
    outcome = skill.outcome(words)
    if outcome.get("result", 0) is None:
        outcome = {"result": sum_result("+" if "{a} + {b}" in skill.replies[0] else "x", values["a"], values["b"])}
    reply = rng.choice(skill.replies).format(**values, **outcome)
    parameters = {keys[key]: dict(schema) for key, (schema, _) in skill.parameters.items()}
    extra = rng.random()
    for key, schema in parameters.items():
        if extra < 0.2:
            schema["description"] = f"{rng.choice(('The', 'The', 'A', 'Which'))} {key.replace('_', ' ')}."
        elif extra < 0.25:
            schema["title"] = key.replace("_", " ").title()
    return Task(Tool(name, rng.choice(skill.descriptions), parameters), asked, Call(name, arguments), outcome, reply)


def task(words: Words) -> tuple[Task, Skill | None]:
    """A use of any tool."""
    if words.rng.random() < 0.35:
        return combined(words), None
    skill = words.rng.choice(SKILLS)
    return curated(words, skill), skill


def offered(words: Words, wanted: Task, count: int) -> list[Tool]:
    """The wanted tool among others, in any order."""
    tools = {wanted.tool.name: wanted.tool}
    descriptions = {wanted.tool.description}
    while len(tools) < count:
        other = task(words)[0].tool
        if other.description not in descriptions:
            tools.setdefault(other.name, other)
            descriptions.add(other.description)
    listing = list(tools.values())
    words.rng.shuffle(listing)
    return listing


def _thought(wanted: Task) -> str:
    arguments = ", ".join(f"{key}: {value}" for key, value in wanted.call.arguments.items())
    return f"{wanted.call.name} fits. {arguments}."


def document(rng: random.Random) -> Document:
    """A conversation with tools at hand, most of which are used."""
    words = Words(rng)
    wanted, skill = task(words)
    tools = offered(words, wanted, rng.choice((1, 2, 2, 3, 3, 4, 5)))
    turns = [Turn("system", rng.choice(SYSTEMS))] if rng.random() < 0.3 else []
    thinking = rng.random() < 0.2
    kind = rng.random()
    if kind < 0.08:
        asked, answer = answer_of_sapling(rng)
        return Document(
            [
                *turns,
                Turn("user", asked),
                Turn("assistant", answer, thought="No tool is needed." if thinking else None),
            ],
            tools,
        )
    if kind < 0.27:
        remaining = [tool for tool in tools if tool is not wanted.tool]
        if remaining:
            answer = rng.choice(NO_TOOL)
            return Document(
                [
                    *turns,
                    Turn("user", wanted.asked),
                    Turn("assistant", answer, thought="No tool fits." if thinking else None),
                ],
                remaining,
            )
    if kind < 0.36 and skill is not None:
        # The same tool twice in one turn, which needs the same names as before.
        first, second = wanted, _again(words, skill, wanted)
        asked = f"{first.asked} {rng.choice(('And then: ', 'Then ', 'And: ', 'Also: ', ''))}{second.asked}"
        turns += [
            Turn("user", asked),
            Turn(
                "assistant",
                calls=(first.call, second.call),
                thought=f"{_thought(first)} {_thought(second)}" if thinking else None,
            ),
            Turn("tool", _json(first.outcome)),
            Turn("tool", _json(second.outcome)),
            Turn("assistant", f"{first.reply} {second.reply}"),
        ]
        return Document(turns, tools)
    turns += _use(rng, wanted, thinking)
    while rng.random() < 0.45:
        chosen = rng.random()
        if chosen < 0.25:
            asked, answer = answer_of_sapling(rng)
            turns += [Turn("user", asked), Turn("assistant", answer)]
        elif skill is not None:
            turns += _use(rng, _again(words, skill, wanted), False)
        else:
            break
    # Thoughts of earlier questions are not shown to the model.
    asked_last = max(place for place, turn in enumerate(turns) if turn.role == "user")
    turns = [
        Turn(turn.role, turn.content, turn.calls, turn.thought if place > asked_last else None)
        for place, turn in enumerate(turns)
    ]
    return Document(turns, tools)


def _again(words: Words, skill: Skill, wanted: Task) -> Task:
    while True:
        other = curated(words, skill)
        if other.tool.name == wanted.tool.name and list(other.call.arguments) == list(wanted.call.arguments):
            return other


def _json(outcome: dict[str, Any]) -> str:
    return json.dumps(outcome, ensure_ascii=False)


def _use(rng: random.Random, wanted: Task, thinking: bool) -> list[Turn]:
    turns = [
        Turn("user", wanted.asked),
        Turn("assistant", calls=(wanted.call,), thought=_thought(wanted) if thinking else None),
    ]
    if rng.random() < 0.8:
        turns += [Turn("tool", _json(wanted.outcome)), Turn("assistant", wanted.reply)]
    return turns


def cases(rng: random.Random, count: int) -> Iterator[Case]:
    """Requests, values and tools that training never used."""
    words = Words(rng, test=True)
    for place in range(count):
        wanted, _ = task(words)
        tools = offered(words, wanted, rng.choice((2, 3, 4)))
        asked = Turn("user", wanted.asked)
        if place % 10 < 5:
            yield Case("tool choice", [asked], tools, calls=(wanted.call,))
        elif place % 10 == 5:
            yield Case("tool choice, thinking", [asked], tools, thinking=True, calls=(wanted.call,))
        elif place % 10 < 8:
            said = [str(value) for value in wanted.outcome.values() if value is not True]
            # Where nothing came back but that it was done, the answer names what was done.
            expected = (said[0],) if said else (wanted.reply, *map(str, wanted.call.arguments.values()))
            turns = [asked, Turn("assistant", calls=(wanted.call,)), Turn("tool", _json(wanted.outcome))]
            yield Case("tool result", turns, tools, contains=expected)
        else:
            remaining = [tool for tool in tools if tool is not wanted.tool]
            yield Case("no fitting tool", [asked], remaining, contains=("no tool", "none of my tools"))
