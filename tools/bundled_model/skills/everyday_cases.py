"""Requests for tools as tutorials have them, none in words that training has.

A line is the call that a request asks for, with all of its arguments, and the request.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from documents import Call, Tool

_TOOLS = """\
get_current_weather(location: string; unit: celsius/fahrenheit) Get the current weather in a given location
get_flight_status(flight_number: string) Get the status of a flight
send_email(to: string; subject: string) Send an email to a recipient
get_stock_price(symbol: string) Get the current stock price for a ticker symbol
create_calendar_event(title: string; day: string) Create an event in the calendar
get_user_details(user_id: integer) Get details of a user by id
calculate_tip(bill_amount: number; percent: number) Calculate the tip for a bill
order_pizza(size: small/medium/large; topping: string) Order a pizza
get_exchange_rate(base: string; target: string) Get the exchange rate between two currencies
lookup_order(order_id: string) Look up an order by its id
find_recipes(ingredient: string) Find recipes with an ingredient
get_movie_showtimes(movie: string; city: string) Get the showtimes of a movie in a city
log_water(ml: integer) Log how much water the user drank, in ml
set_alarm(time: string) Set an alarm for a time
turn_on_light(room: string) Turn on the light in a room
play_music(artist: string) Play music of an artist
get_directions(start: string; end: string) Get directions between two places
search_hotels(city: string) Search for hotels in a city
translate(text: string; language: string) Translate a text into a language
create_ticket(title: string) Create a support ticket
delete_file(path: string) Delete a file
get_news(topic: string) Get news about a topic
add_numbers(a: integer; b: integer) Add two numbers
get_definition(word: string) Get the definition of a word
get_time(city: string) Tell the time in a city
send_message(to: string; text: string) Send a message to somebody
search_books(topic: string) Search for books about a topic
convert_currency(amount: number; from_currency: string; to_currency: string) Convert money into another currency
add_reminder(text: string; day: string) Add a reminder for a day
"""
_REQUESTS = """\
get_current_weather(Paris) what is the weather in Paris right now
get_current_weather(Bergen) Is it raining in Bergen right now?
get_flight_status(LH456) Is flight LH456 on time?
get_flight_status(BA-212) Can you check the status of flight BA-212?
get_stock_price(AAPL) What's the current price of AAPL?
get_stock_price(MSFT) How is MSFT doing today?
create_calendar_event(lunch with Sam; Friday) Add lunch with Sam on Friday to my calendar.
create_calendar_event(dentist visit; Tuesday) Put a dentist visit on Tuesday into the calendar.
get_user_details(42) Show me the details of user 42.
get_user_details(1007) Who is the user with id 1007?
calculate_tip(80; 15) How much tip should I leave on a bill of 80 dollars at 15 percent?
order_pizza(large; mushrooms) I'd like a large pizza with mushrooms.
order_pizza(small; olives) Order a small pizza with olives please
get_exchange_rate(USD; EUR) What is the exchange rate from USD to EUR?
lookup_order(A-1234) Where is my order A-1234?
find_recipes(chicken) I have some chicken. What can I cook?
find_recipes(tomatoes) Find recipes with tomatoes.
get_movie_showtimes(The Lost King; London) When is The Lost King playing in London?
log_water(250) I just drank 250 ml of water.
set_alarm(6:45) Wake me at 6:45.
set_alarm(7:15) Set an alarm for 7:15, would you?
turn_on_light(living room) Turn on the lights in the living room.
turn_on_light(kitchen) Switch the light on in the kitchen, please.
turn_on_light(bedroom) It's dark in the bedroom, turn on the light.
play_music(Taylor Swift) Play something by Taylor Swift.
play_music(Mozart) Put on something by Mozart.
search_hotels(Rome) I need a hotel in Rome.
delete_file(old.txt) Please delete old.txt.
get_news(football) What's in the news about football?
get_time(Tokyo) Could you tell me what time it is in Tokyo?
get_time(Lima) What's the hour in Lima?
search_books(beavers) Find me books about beavers.
search_books(volcanoes) I'd like to read something on volcanoes.
get_current_weather(Cairo) what's it like outside in Cairo at noon
get_current_weather(Vienna) I want to know the temperature in Vienna.
set_alarm(5:30) I have an early bus, wake me at 5:30.
translate(see you soon; Polish) My teacher wants 'see you soon' in Polish.
translate(I am hungry; German) I need to say I am hungry in German.
send_message(Tom; the keys are on the table) Could you tell Tom the keys are on the table?
send_message(Mum; I arrived) Write Mum a message: I arrived
convert_currency(20; dollars; euros) I've got 20 dollars, what's that in euros?
add_numbers(345; 678) 345 and 678 added together, please.
get_definition(frugal) Explain what frugal means.
play_music(Coldplay) some Coldplay would be nice
get_directions(Leeds; York) What's the fastest way from Leeds to York?
send_email(kim@mail.org; the rent) Write kim@mail.org an email regarding the rent.
search_hotels(Nice) We're looking for a place to stay in Nice.
lookup_order(77812) What happened to order 77812?
find_recipes(lentils) What could I make with lentils?
get_exchange_rate(GBP; JPY) GBP to JPY?
add_reminder(water the plants; Tuesday) Remind me on Tuesday to water the plants.
"""


def _tool(line: str) -> Tool:
    head, _, description = line.partition(") ")
    name, _, parameters = head.partition("(")
    schemas: dict[str, Mapping[str, Any]] = {}
    for parameter in parameters.split("; "):
        key, kind = parameter.split(": ")
        schemas[key] = {"type": "string", "enum": kind.split("/")} if "/" in kind else {"type": kind}
    return Tool(name, description, schemas)


TOOLS = {tool.name: tool for tool in map(_tool, _TOOLS.splitlines())}


def requests() -> Iterator[tuple[str, Call]]:
    """Each request with the call that it asks for."""
    for line in _REQUESTS.splitlines():
        head, _, asked = line.partition(") ")
        name, _, given = head.partition("(")
        values = given.split("; ")
        arguments = {
            key: value if schema["type"] == "string" else json.loads(value)
            # What is left out comes last.
            for (key, schema), value in zip(TOOLS[name].parameters.items(), values, strict=False)
        }
        yield asked, Call(name, arguments)
