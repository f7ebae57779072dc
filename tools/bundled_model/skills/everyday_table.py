"""Tools that servers of today are often given, each with many ways of asking for it.

Written as text, to be read and added to: the names under which a tool may be offered, what may be said of it, its
parameters as ``key|other key: kind of value``, those that nobody has to give after ``+``, and the requests.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Everyday:
    """A tool with the ways of asking for it.

    Attributes:
        names: under which it may be offered.
        descriptions: of which one may be given with it.
        parameters: of each, the keys it may have, the kind of its values, and whether it must be given.
        asks: patterns over the first keys of the parameters that must be given.
        test_asks: those held out; the only ones where the whole tool is held out.
    """

    names: tuple[str, ...]
    descriptions: tuple[str, ...]
    parameters: tuple[tuple[tuple[str, ...], str, bool], ...]
    asks: tuple[str, ...]
    test_asks: tuple[str, ...]


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


def _tool(names: str, descriptions: str, parameters: str, asks: str, test_asks: str) -> Everyday:
    read = []
    for part in filter(None, parameters.split("; ")):
        keys, kind = part.lstrip("+").split(": ")
        read.append((tuple(keys.split("|")), kind, not part.startswith("+")))
    return Everyday(tuple(names.split()), _lines(descriptions), tuple(read), _lines(asks), _lines(test_asks))


EVERYDAY = (
    _tool(
        "get_weather get_current_weather weather fetch_weather weather_lookup",
        """Get the current weather of a city.
        The weather at a place.
        Returns temperature and sky for a location.
        Get the current weather in a given location""",
        "city|location|place: city; +unit: degrees; +days: small",
        """What's the weather like in {city} today?
        how's the weather over in {city}
        Is it going to rain in {city}?
        Do I need a jacket in {city}?
        Tell me how hot it is in {city}.
        Is it snowing in {city} at the moment?
        Weather for {city}, please.
        What is the temperature in {city}?
        We are flying to {city}. What will the weather be?
        Is it nice outside in {city}?
        Should I bring an umbrella to {city}?
        Give me the forecast for {city}.
        {city} weather
        How cold does it get in {city} tonight?
        Any storms in {city}?
        Is today a good day for the beach in {city}?""",
        """Will I get wet if I walk through {city} now?
        What are the skies over {city} doing?
        Check for me whether it is freezing in {city}.""",
    ),
    _tool(
        "get_time get_current_time current_time time_in what_time",
        """Tell the time in a city.
        The current time at a place.
        Returns the local time of a location.""",
        "city|location|timezone|place: city",
        """What time is it in {city}?
        What's the time in {city} now?
        Is it already evening in {city}?
        How late is it over in {city}?
        I want to phone {city}. What time do they have?
        Tell me the local time of {city}.
        current time {city}
        Are people in {city} still asleep?
        What hour is it in {city}?
        Could you check the clock in {city}?
        Is it day or night in {city}?
        What does the clock say in {city}?
        Give me the time for {city}.""",
        """Which hour of the day is it in {city} right now?
        Can I still ring somebody in {city}, or is it too late there?""",
    ),
    _tool(
        "set_alarm create_alarm alarm add_alarm wake_me_up",
        """Set an alarm for a time.
        Rings at the given time.
        Creates an alarm clock entry.""",
        "time|at|when|alarm_time: clock; +label: phrase",
        """Set an alarm for {time}.
        Wake me up at {time}.
        I have to get up at {time}.
        Please wake me at {time} tomorrow.
        Alarm at {time}, please.
        I need to be awake by {time}.
        Make sure that I am up at {time}.
        New alarm: {time}
        Could you put the alarm on {time}?
        Ring at {time}.
        I want to get out of bed at {time}.
        Don't let me sleep longer than {time}.
        Set my alarm clock to {time}, would you?
        Can you wake us at {time}?""",
        """I must not oversleep: {time} is when I have to rise.
        Let the alarm go off at {time}.""",
    ),
    _tool(
        "set_timer start_timer timer countdown create_timer",
        """Start a timer.
        Counts down some minutes.
        Sets a kitchen timer.""",
        "minutes|duration|duration_minutes: minutes; +label: phrase",
        """Set a timer for {minutes} minutes.
        {minutes} minutes on the timer, please.
        Start counting down {minutes} minutes.
        The pasta takes {minutes} minutes. Set a timer.
        Tell me when {minutes} minutes are up.
        Timer: {minutes} minutes
        I want to stop after {minutes} minutes.
        Give me {minutes} minutes on the clock.
        Let me know in {minutes} minutes.
        Time {minutes} minutes for me.
        Beep in {minutes} minutes.
        Can you count {minutes} minutes?""",
        """The cake comes out of the oven in {minutes} minutes, say something then.
        Run a countdown of {minutes} minutes.""",
    ),
    _tool(
        "add_reminder create_reminder set_reminder remind remind_me",
        """Add a reminder for a day.
        Reminds the user of something.
        Creates a reminder with a text and a date.""",
        "text|task|message|what: errand; day|date|when: day",
        """Remind me to {text} on {day}.
        On {day}, remind me to {text}.
        Remind me {day} that I have to {text}.
        I have to {text} on {day}. Remind me, please.
        Set a reminder for {day}: {text}
        Don't let me forget to {text} on {day}.
        Please remind me on {day} to {text}.
        Could you remind me to {text} on {day}?
        I must {text} on {day}, so remind me.
        Reminder for {day}: {text}
        Make sure I remember to {text} on {day}.
        Can you set a reminder to {text} for {day}?""",
        """Give me a nudge on {day} to {text}.
        I tend to forget things: on {day} I should {text}.""",
    ),
    _tool(
        "send_message send_text send_sms message text_person",
        """Send a message to somebody.
        Sends a text message.
        Texts a person.""",
        "to|recipient|contact|name: name; text|message|body|content: phrase",
        """Send {to} a message: {text}
        Text {to} that {text}.
        Tell {to} that {text}.
        Let {to} know that {text}.
        Write to {to} that {text}.
        Message {to}: {text}
        Send "{text}" to {to}.
        Please tell {to} {text}.
        Can you text {to} "{text}"?
        Could you let {to} know that {text}?
        I want to tell {to} that {text}.
        Drop {to} a line: {text}
        Send {to} a text saying {text}.
        sms to {to}: {text}""",
        """Get word to {to} that {text}.
        {to} should hear from me that {text}.""",
    ),
    _tool(
        "send_email email send_mail compose_email write_email",
        """Send an e-mail.
        Writes a mail to an address.
        Sends an email with a subject to a recipient.""",
        "to|recipient|address: email; subject|title: topic; +body: phrase",
        """Send an email to {to} about {subject}.
        Email {to} with the subject {subject}.
        Write a mail to {to}, subject {subject}.
        Mail {to} about {subject}, please.
        Please write to {to} about {subject}.
        I need to email {to} about {subject}.
        Can you send {to} an e-mail on {subject}?
        New mail to {to}: {subject}
        Compose an email to {to}, the subject is {subject}.
        Could you mail {to}? It is about {subject}.""",
        """An e-mail should go to {to}, and its subject is {subject}.
        Put together a mail on {subject} for {to}.""",
    ),
    _tool(
        "call_contact make_call phone_call call dial",
        """Call somebody on the phone.
        Starts a phone call.
        Dials the number of a contact.""",
        "name|contact|person|to: name",
        """Call {name}.
        Phone {name}, please.
        I'd like to talk to {name}.
        Give {name} a call.
        Ring up {name}.
        Can you call {name} for me?
        Dial {name}.
        Start a call with {name}.
        Get me {name} on the phone.
        I need to speak to {name}.
        Put me through to {name}.
        Let's call {name}.""",
        """Let the phone of {name} ring.
        I have to hear the voice of {name}.""",
    ),
    _tool(
        "turn_on_light light_on lights_on switch_on_light",
        """Turn on the light in a room.
        Switches a lamp on.""",
        "room|location|where: room; +brightness: percent",
        """Turn on the light in the {room}.
        Switch the {room} light on.
        It's dark in the {room}.
        I need light in the {room}.
        Lights on in the {room}, please.
        Can you turn the lamp in the {room} on?
        Make it bright in the {room}.
        I can't see anything in the {room}.
        Light up the {room}.
        Please put the light on in the {room}.
        {room} lights on
        Could we have light in the {room}?""",
        """Nobody can see in the {room}, do something about it.
        Let there be light in the {room}.""",
    ),
    _tool(
        "turn_off_light light_off lights_off switch_off_light",
        """Turn off the light in a room.
        Switches a lamp off.""",
        "room|location|where: room",
        """Turn off the light in the {room}.
        Switch the {room} light off.
        Lights out in the {room}.
        It is too bright in the {room}.
        Nobody is in the {room}, so turn off the light.
        Please put out the light in the {room}.
        Can you turn the lamp in the {room} off?
        Make it dark in the {room}.
        {room} lights off
        I forgot to turn off the light in the {room}.""",
        """We are going to sleep in the {room}, no light any more, please.
        Darken the {room}.""",
    ),
    _tool(
        "play_music play_song play start_music music_player",
        """Play music of an artist.
        Plays songs.
        Starts playing an artist or band.""",
        "artist|query|band|music: artist; +shuffle: flag",
        """Play {artist}.
        Play some music by {artist}.
        I want to listen to {artist}.
        Put on {artist}.
        Let me hear something by {artist}.
        Play a song of {artist}, please.
        I'm in the mood for {artist}.
        Can you play {artist}?
        Some {artist}, please!
        Start a playlist with {artist}.
        Could we listen to {artist}?
        music: {artist}
        I would love to hear {artist} now.""",
        """My ears long for {artist}.
        How about a tune by {artist}?""",
    ),
    _tool(
        "stop_music pause_music pause stop_playback",
        """Stop the music.
        Pauses what is being played.""",
        "",
        """Stop the music.
        Pause.
        Turn the music off, please.
        Please stop playing.
        No more music.
        It's too loud, stop the music.
        Can you pause the song?
        Be quiet now, no songs.
        Pause the music, I have to take a call.
        Stop this song.""",
        """I have heard enough songs for today.
        End the music, please.""",
    ),
    _tool(
        "set_volume volume change_volume adjust_volume",
        """Set the volume.
        Changes how loud the speaker is, in percent.""",
        "level|volume|percent: percent",
        """Set the volume to {level}.
        Volume {level}, please.
        Turn the volume to {level} percent.
        Make it {level} percent loud.
        Put the speaker on {level}.
        Can you change the volume to {level}?
        I want the sound at {level} percent.
        Sound to {level}
        Adjust the loudness to {level}.
        Could you turn the sound to {level}?""",
        """The speaker should be at {level} percent.
        Bring the loudness to {level}.""",
    ),
    _tool(
        "set_temperature set_thermostat heating thermostat adjust_heating",
        """Set the temperature of a room.
        Sets the thermostat.
        Controls the heating.""",
        "room|zone|where: room; degrees|temperature|value: degree",
        """Set the {room} to {degrees} degrees.
        Heat the {room} to {degrees} degrees.
        Make it {degrees} degrees in the {room}.
        I want {degrees} degrees in the {room}.
        Put the heating in the {room} on {degrees}.
        Turn the thermostat in the {room} to {degrees}.
        The {room} should have {degrees} degrees.
        Can you warm the {room} up to {degrees} degrees?
        {degrees} degrees in the {room}, please.
        Please cool the {room} down to {degrees} degrees.""",
        """It is not comfortable in the {room}, {degrees} degrees would be better.
        Bring the {room} to {degrees} degrees.""",
    ),
    _tool(
        "lock_door lock close_lock secure_door",
        """Lock a door.
        Locks one of the doors of the house.""",
        "door|which: door",
        """Lock the {door}.
        Please lock the {door}.
        Is the {door} locked? If not, lock it.
        I forgot to lock the {door}.
        Make sure the {door} is locked.
        Can you lock the {door}?
        Bolt the {door}.
        The {door} must be locked at night.
        We are leaving, lock the {door}.""",
        """Nobody shall come in by the {door}.
        Secure the {door} for the night.""",
    ),
    _tool(
        "open_blinds raise_blinds open_curtains blinds_up",
        """Open the blinds of a room.
        Raises blinds or curtains.""",
        "room|where: room",
        """Open the blinds in the {room}.
        Let the sun into the {room}.
        Raise the blinds in the {room}.
        Pull up the blinds in the {room}, please.
        Can you open the curtains in the {room}?
        I want daylight in the {room}.
        Curtains open in the {room}.
        Good morning! Open the curtains in the {room}.""",
        """I would like to look out of the window of the {room}, but the curtains are shut.
        Get the blinds of the {room} out of the way.""",
    ),
    _tool(
        "start_vacuum vacuum clean_room robot_vacuum",
        """Let the robot clean a room.
        Starts the vacuum cleaner.""",
        "room|area|where: room",
        """Vacuum the {room}.
        Clean the {room}.
        The {room} is dirty.
        Start the vacuum in the {room}.
        Let the robot clean the {room}.
        Can you vacuum the {room}, please?
        There are crumbs in the {room}.
        The floor of the {room} needs cleaning.
        Send the robot to the {room}.""",
        """The {room} is full of dust.
        Have the floor of the {room} cleaned.""",
    ),
    _tool(
        "translate translate_text translation translator",
        """Translate a text into a language.
        Translates words.
        Returns the text in the target language.""",
        "text|phrase|content: phrase; language|target_language|to|target: language; +source_language: language",
        """Translate "{text}" into {language}.
        Translate '{text}' to {language}.
        How do you say "{text}" in {language}?
        How do I say {text} in {language}?
        What is "{text}" in {language}?
        What does one say in {language} for "{text}"?
        Say '{text}' in {language}.
        I need "{text}" in {language}.
        Can you translate {text} into {language}?
        Please put "{text}" into {language}.
        The {language} for "{text}", please.
        Give me the {language} translation of "{text}".
        {text} in {language}?
        How would you write "{text}" in {language}?""",
        """A friend speaks only {language}. How do I tell her "{text}"?
        Turn "{text}" into {language}.""",
    ),
    _tool(
        "calculate calculator compute evaluate math",
        """Compute an arithmetic expression.
        Evaluates a formula.
        A calculator.""",
        "expression|formula|input: expression",
        """Calculate {expression}.
        What is {expression}?
        Compute {expression}.
        How much is {expression}?
        Work out {expression}, please.
        {expression}
        Use the calculator for {expression}.
        Can you compute {expression}?
        I need the result of {expression}.
        Solve {expression}.
        Evaluate {expression} for me.""",
        """Which number comes out of {expression}?
        Do the math: {expression}""",
    ),
    _tool(
        "convert_currency exchange currency_converter convert_money exchange_rate",
        """Convert an amount from one currency into another.
        Exchanges money.
        Currency conversion with today's rate.""",
        "amount|value: amount; from_currency|from|source: currency; to_currency|to|target: currency",
        """How many {to_currency} are {amount} {from_currency}?
        Convert {amount} {from_currency} to {to_currency}.
        What are {amount} {from_currency} in {to_currency}?
        {amount} {from_currency} in {to_currency}
        Change {amount} {from_currency} into {to_currency}.
        I have {amount} {from_currency}. How many {to_currency} is that?
        How much is {amount} {from_currency} in {to_currency}?
        Give me {amount} {from_currency} in {to_currency}.
        Exchange {amount} {from_currency} for {to_currency}.
        If I pay {amount} {from_currency}, how many {to_currency} is that?""",
        """What do I get in {to_currency} when I hand over {amount} {from_currency}?
        Tell me the worth of {amount} {from_currency} in {to_currency}.""",
    ),
    _tool(
        "convert_units convert unit_converter",
        """Convert a value from one unit to another.
        Converts units of measure.""",
        "value|amount|number: amount; from_unit|from|source: unit; to_unit|to|target: unit",
        """Convert {value} {from_unit} to {to_unit}.
        How many {to_unit} are {value} {from_unit}?
        What is {value} {from_unit} in {to_unit}?
        {value} {from_unit} in {to_unit}
        Turn {value} {from_unit} into {to_unit}.
        Express {value} {from_unit} in {to_unit}.
        I need {value} {from_unit} in {to_unit}.
        How much is {value} {from_unit} in {to_unit}?""",
        """If something measures {value} {from_unit}, how many {to_unit} is that?
        Give me {to_unit} for {value} {from_unit}.""",
    ),
    _tool(
        "search_web web_search search google_search internet_search",
        """Search the web.
        Searches the internet for a query.
        Finds web pages.""",
        "query|q|search_query|text: topic; +limit: small",
        """Search the web for {query}.
        Google {query}.
        Look up {query} on the internet.
        What does the internet say about {query}?
        Find something about {query} online.
        Search for {query}.
        Can you look for {query} on the web?
        I want to know more about {query}.
        Find pages about {query}.
        Look online for {query}, please.
        web search: {query}
        Find out what is written about {query}.""",
        """See what you can dig up on the net about {query}.
        Browse the internet for {query}.""",
    ),
    _tool(
        "search_books find_books book_search library_search",
        """Search for books about a topic.
        Finds books in the library.""",
        "topic|query|subject: topic; +author: name",
        """Find books about {topic}.
        I'd like to read about {topic}.
        Search the library for {topic}.
        Do you have books on {topic}?
        Which books are there about {topic}?
        I am looking for a book about {topic}.
        Is there a good book on {topic}?
        Show me books on {topic}.
        I want something to read on {topic}.
        Look for literature about {topic}.
        books about {topic}
        Recommend me a book about {topic}.""",
        """My daughter wants to read about {topic}.
        What can I borrow on the subject of {topic}?""",
    ),
    _tool(
        "find_restaurant search_restaurants restaurants restaurant_search",
        """Find a restaurant in a city.
        Searches restaurants by their kind of food.""",
        "city|location|place: city; food|cuisine|kind: cuisine",
        """Find a {food} restaurant in {city}.
        Where can I eat {food} food in {city}?
        I am hungry and in {city}. {food} food, please.
        Which {food} restaurants are there in {city}?
        I'd like to eat {food} in {city}.
        Is there good {food} food in {city}?
        Look for a {food} place in {city}.
        A {food} restaurant in {city}, please.
        We want to have {food} food in {city} tonight.
        Recommend a {food} restaurant in {city}.""",
        """Our stomachs are empty, we are in {city}, and we love {food} dishes.
        Know any {food} kitchen around {city}?""",
    ),
    _tool(
        "book_table reserve_table make_reservation table_reservation",
        """Book a table in a restaurant.
        Reserves a table for some people.""",
        "people|guests|party_size: few; time|at|when: clock",
        """Book a table for {people} at {time}.
        Reserve a table for {people} people at {time}.
        We are {people} and would like to eat at {time}. Book a table.
        A table for {people} at {time}, please.
        Can I get a table for {people} at {time}?
        I need a table at {time} for {people} people.
        Could you reserve a table at {time} for {people}?
        Please make a reservation for {people} at {time}.
        Dinner for {people} at {time}: book a table.""",
        """There will be {people} of us at {time}, so keep a table free.
        See to it that {people} of us can sit down to eat at {time}.""",
    ),
    _tool(
        "book_hotel find_hotel reserve_hotel hotel_booking",
        """Book a hotel room in a city.
        Reserves a hotel for some nights.""",
        "city|location|destination: city; nights|number_of_nights: few",
        """Book a hotel in {city} for {nights} nights.
        I need a room in {city} for {nights} nights.
        Find me a hotel in {city}, {nights} nights.
        We stay {nights} nights in {city}. Book a hotel, please.
        Reserve a hotel room in {city} for {nights} nights.
        I want to stay in {city} for {nights} nights.
        A hotel in {city} for {nights} nights, please.
        Can you get me a hotel in {city} for {nights} nights?
        Where can I sleep in {city} for {nights} nights?""",
        """{nights} nights in {city}: I need a bed there.
        Arrange a place to sleep in {city} for {nights} nights.""",
    ),
    _tool(
        "book_flight find_flight search_flights flights flight_search",
        """Book a flight between two cities.
        Searches flights.""",
        "origin|from|departure: city; destination|to|arrival: city",
        """Book a flight from {origin} to {destination}.
        I want to fly from {origin} to {destination}.
        Find flights from {origin} to {destination}.
        I need a plane from {origin} to {destination}.
        Fly me from {origin} to {destination}.
        Is there a flight from {origin} to {destination}?
        Get me a flight to {destination} from {origin}.
        Flights {origin} to {destination}
        We would like to fly to {destination}. We start in {origin}.
        A plane ticket from {origin} to {destination}, please.""",
        """By air from {origin} to {destination}, please.
        I leave {origin} by plane and want to land in {destination}.""",
    ),
    _tool(
        "call_taxi order_taxi get_ride book_taxi request_ride",
        """Order a taxi to a place.
        Calls a cab.""",
        "destination|to|where: place",
        """Call me a taxi to the {destination}.
        I need a taxi to the {destination}.
        Get me a cab to the {destination}.
        Take me to the {destination} by taxi.
        Order a ride to the {destination}.
        I want to be driven to the {destination}.
        A taxi to the {destination}, please.
        Can you get me a car to the {destination}?
        I have no car and must get to the {destination}.""",
        """Somebody should drive me to the {destination}.
        My feet hurt, a cab to the {destination} would be nice.""",
    ),
    _tool(
        "get_directions directions route navigate find_route",
        """Get directions to a place.
        Finds the way from one place to another.""",
        "start|from|origin: city; end|to|destination: city; +mode: travel",
        """How do I get from {start} to {end}?
        Show me the way from {start} to {end}.
        Directions from {start} to {end}, please.
        Which road leads from {start} to {end}?
        What is the best route from {start} to {end}?
        Navigate from {start} to {end}.
        I am in {start}. How do I get to {end}?
        Plan a route from {start} to {end}.
        How can I drive from {start} to {end}?""",
        """I am lost in {start} and want to reach {end}.
        Guide me from {start} to {end}.""",
    ),
    _tool(
        "get_distance distance distance_between",
        """The distance between two cities.
        Tells how far two places are apart.""",
        "start|from|origin|a: city; end|to|destination|b: city",
        """How far is it from {start} to {end}?
        What is the distance between {start} and {end}?
        How many kilometres are there between {start} and {end}?
        Is it far from {start} to {end}?
        Tell me the distance from {start} to {end}.
        How far apart are {start} and {end}?
        distance {start} {end}
        How many miles is it from {start} to {end}?""",
        """Measure how much road lies between {start} and {end}.
        Are {start} and {end} close to each other?""",
    ),
    _tool(
        "get_news news latest_news headlines news_search",
        """Get the latest news about a topic.
        Reads the headlines.""",
        "topic|category|subject: topic",
        """What's new about {topic}?
        Show me the news about {topic}.
        Any news on {topic}?
        What do the papers write about {topic}?
        Give me the latest headlines on {topic}.
        What is happening with {topic}?
        Read me the news on {topic}.
        I'd like to hear the latest about {topic}.
        news {topic}
        Did anything happen about {topic}?""",
        """Bring me up to date on {topic}.
        What did journalists report on {topic} lately?""",
    ),
    _tool(
        "get_stock_price stock_price stock_quote share_price",
        """Get the price of a share.
        The stock price of a company.""",
        "company|symbol|ticker|stock: company",
        """What is the stock price of {company}?
        How are the shares of {company} doing?
        How much is a share of {company}?
        {company} stock
        What does a share of {company} cost?
        Check the stock of {company} on the market.
        Tell me the share price of {company}.
        Did {company} go up on the stock market?
        At how much does {company} trade?""",
        """I hold shares of {company}. What are they worth?
        Look at the exchange and tell me where {company} stands.""",
    ),
    _tool(
        "define_word dictionary define word_meaning lookup_word",
        """Look up what a word means.
        The definition of a word.""",
        "word|term: oddword",
        """What does {word} mean?
        Define {word}.
        What is the meaning of {word}?
        Look up the word {word}.
        Explain the word "{word}".
        I don't know the word {word}.
        Give me the definition of {word}.
        What do people mean by {word}?
        Is {word} a word? What does it mean?""",
        """I came across "{word}" and have no idea what it is supposed to mean.
        Find {word} in the dictionary.""",
    ),
    _tool(
        "get_recipe find_recipe recipe_search recipes",
        """Find a recipe for a dish.
        Tells how to cook something.""",
        "dish|food|name|query: dish",
        """How do I cook {dish}?
        Find a recipe for {dish}.
        I want to make {dish}.
        What do I need for {dish}?
        Give me a recipe for {dish}, please.
        How is {dish} made?
        I'd like to cook {dish} tonight.
        Show me how to prepare {dish}.
        recipe {dish}
        Can you tell me how to make {dish}?""",
        """{dish} is for dinner. What goes into it?
        Teach me to prepare {dish}.""",
    ),
    _tool(
        "get_calories calories nutrition food_info",
        """The calories of a dish.
        Nutrition facts of food.""",
        "food|dish|item: dish",
        """How many calories has {food}?
        Is {food} healthy?
        Calories of {food}?
        What are the nutrition facts of {food}?
        How fattening is {food}?
        Tell me the calories in {food}.
        Does {food} have much sugar?
        How much energy is in {food}?""",
        """I am on a diet. May I eat {food}?
        Break {food} down into fat, sugar and protein.""",
    ),
    _tool(
        "add_to_shopping_list shopping_list_add add_item add_grocery",
        """Put something on the shopping list.
        Adds an item to the grocery list.""",
        "item|product|what: grocery; +quantity: small",
        """Add {item} to the shopping list.
        Put {item} on my list.
        We need {item}.
        We are out of {item}.
        I have to buy {item}. Put it on the list.
        Note {item} for the next shopping.
        Add {item} to my groceries.
        There is no {item} left.
        {item} on the shopping list, please.
        Can you put {item} on the list?
        Don't let me forget to buy {item}.""",
        """The fridge has no {item} in it any more.
        Next time at the supermarket I want {item}.""",
    ),
    _tool(
        "add_task create_task add_todo new_todo todo",
        """Add a task to the to-do list.
        Creates a to-do.""",
        "title|task|text|name: errand",
        """Add a task: {title}
        Put "{title}" on my to-do list.
        New task: {title}
        I still have to {title}. Add it to my tasks.
        To do: {title}
        Add "{title}" to my tasks, please.
        Can you create a task to {title}?
        Create a to-do: {title}
        One more thing for the to-do list: {title}
        My list should also say that I have to {title}.""",
        """Yet another chore for my list: {title}
        Write among the things I have to do that I must {title}.""",
    ),
    _tool(
        "create_note save_note add_note write_note take_note",
        """Save a note.
        Writes something down.""",
        "text|content|note|body: phrase; +title: topic",
        """Note that {text}.
        Write down that {text}.
        Take a note: {text}
        Make a note that {text}.
        Save this: {text}
        Put in my notes that {text}.
        Please write down: {text}
        Can you note that {text}?
        Keep in mind that {text}.
        note: {text}""",
        """For the record: {text}
        I want to have it in writing that {text}.""",
    ),
    _tool(
        "create_event add_event schedule_meeting add_to_calendar calendar_add",
        """Add an event to the calendar.
        Schedules an appointment.""",
        "title|event|name|summary: event; day|date|on: day; time|at|start: clock",
        """Schedule the {title} on {day} at {time}.
        Put the {title} on {day} at {time} into my calendar.
        I have a {title} {day} at {time}.
        Add a {title} to my calendar: {day}, {time}
        Plan the {title} for {day}, {time}.
        Book a slot on {day} at {time} for the {title}.
        The {title} is on {day} at {time}. Add it to the calendar.
        Can you enter the {title} on {day} at {time}?
        Calendar entry: {title}, {day}, {time}
        Set up a {title} for {day} at {time}.""",
        """Block {day} from {time} on, because that is when the {title} is.
        Keep {day} {time} free for the {title}.""",
    ),
    _tool(
        "list_events get_calendar show_calendar agenda get_events",
        """Show the events of a day.
        Lists appointments.""",
        "day|date|when: day",
        """What do I have on {day}?
        Show me my calendar for {day}.
        What are my plans for {day}?
        Do I have anything on {day}?
        Am I free on {day}?
        What is on my schedule for {day}?
        List my appointments on {day}.
        Is there a meeting on {day}?
        What's happening on {day}?
        Read me my agenda for {day}.""",
        """Am I busy on {day}, or can I stay in bed?
        Which appointments wait for me on {day}?""",
    ),
    _tool(
        "book_appointment make_appointment schedule_appointment",
        """Book an appointment with a doctor or another professional.
        Makes an appointment.""",
        "with|who|provider: professional; day|date|when: day",
        """I need an appointment with the {with} on {day}.
        Book me an appointment with the {with} for {day}.
        Make an appointment with the {with} on {day}.
        Can I see the {with} on {day}?
        I'd like to see the {with} on {day}.
        Get me a date with the {with} on {day}.
        Please make an appointment for {day} with the {with}.
        Is the {with} free on {day}? Book it.""",
        """The {with} should have time for me on {day}.
        It hurts! Can the {with} take me on {day}?""",
    ),
    _tool(
        "track_package track_parcel parcel_status track_shipment",
        """Track a parcel.
        Tells where a package is.""",
        "tracking_number|number|code|id: code",
        """Where is my parcel {tracking_number}?
        Track the package {tracking_number}.
        When does parcel {tracking_number} arrive?
        My package has the number {tracking_number}. Where is it?
        Has the parcel {tracking_number} been sent?
        Follow the shipment {tracking_number}.
        I am waiting for package {tracking_number}.
        Parcel {tracking_number}: where is it?
        Is the package {tracking_number} still on its way?""",
        """{tracking_number} is what the post office wrote on my package. Is it near?
        What has become of the delivery {tracking_number}?""",
    ),
    _tool(
        "get_order_status order_status check_order lookup_order",
        """The status of an order.
        Looks up an order of the shop.""",
        "order_id|order|id|number: code",
        """What is the status of order {order_id}?
        Check my order {order_id}.
        Has order {order_id} been shipped?
        What about order {order_id}?
        Is my order {order_id} ready?
        Look up order {order_id}.
        I ordered something under {order_id}. When does it come?
        Tell me how far my order {order_id} is.
        order {order_id} status""",
        """I am wondering about my purchase {order_id}.
        Did you already pack order {order_id}?""",
    ),
    _tool(
        "cancel_order delete_order cancel_purchase",
        """Cancel an order.
        Takes back an order of the shop.""",
        "order_id|order|id|number: code; +reason: phrase",
        """Cancel order {order_id}.
        I don't want order {order_id} any more.
        Please cancel my order {order_id}.
        I changed my mind about order {order_id}. Cancel it.
        Stop order {order_id}, please.
        Can I still cancel {order_id}?
        Take back my order {order_id}.
        I need to cancel the order {order_id}.""",
        """Order {order_id} was a mistake.
        Please do not send me {order_id}, I no longer need it.""",
    ),
    _tool(
        "refund_order request_refund refund issue_refund",
        """Give the money for an order back.
        Refunds an order.""",
        "order_id|order|id: code; amount|sum|euros: amount",
        """Refund {amount} euros for order {order_id}.
        Give back {amount} euros of order {order_id}.
        The customer of order {order_id} gets {amount} euros back.
        Please refund {amount} for {order_id}.
        I want my {amount} euros for order {order_id} back.
        Pay back {amount} euros for order {order_id}.
        Issue a refund of {amount} for order {order_id}.""",
        """Order {order_id} arrived broken, so {amount} euros go back.
        Return {amount} euros to whoever placed {order_id}.""",
    ),
    _tool(
        "search_products find_product product_search shop_search",
        """Search the shop for products.
        Finds articles for sale.""",
        "query|product|text|keyword: items; +max_price: amount",
        """Do you sell {query}?
        Show me {query}.
        I am looking for {query}.
        Search the shop for {query}.
        Which {query} do you have?
        I'd like to buy {query}. What is there?
        Find {query} in the shop.
        What {query} can I buy?
        Have you got {query}?
        products: {query}""",
        """Are there any {query} in your catalogue?
        I would spend money on {query}, so what do you offer?""",
    ),
    _tool(
        "get_balance account_balance check_balance bank_balance",
        """The balance of a bank account.
        Tells how much money is in an account.""",
        "account|account_id|which: account",
        """How much money is in my {account} account?
        What is the balance of my {account} account?
        Check my {account} account.
        How much do I have on the {account} account?
        Show the balance of the {account} account.
        Is there money left in my {account} account?
        Balance of {account}, please.
        What's in my {account} account?""",
        """Am I broke? Look at the {account} account.
        Can my {account} account still pay for a holiday?""",
    ),
    _tool(
        "transfer_money send_money pay make_payment bank_transfer",
        """Send money to somebody.
        Transfers an amount to a person.""",
        "to|recipient|name|payee: name; amount|sum|euros: amount",
        """Send {amount} euros to {to}.
        Transfer {amount} euros to {to}.
        Pay {to} {amount} euros.
        I owe {to} {amount} euros. Send them.
        Give {to} {amount} euros from my account.
        {to} gets {amount} euros from me.
        Please transfer {amount} to {to}.
        Can you send {to} {amount} euros?
        Pay back the {amount} euros that {to} lent me.""",
        """Settle my debt of {amount} euros with {to}.
        {amount} euros should move from me to {to}.""",
    ),
    _tool(
        "create_invoice make_invoice new_invoice write_invoice",
        """Create an invoice for a customer.
        Writes a bill.""",
        "customer|client|name|to: name; amount|total|euros: amount",
        """Create an invoice for {customer} over {amount} euros.
        Write a bill of {amount} euros for {customer}.
        Invoice {customer} for {amount} euros.
        {customer} has to pay {amount} euros. Make an invoice.
        Make out an invoice to {customer}: {amount} euros
        Bill {customer} {amount} euros.
        Please send {customer} an invoice of {amount} euros.
        New invoice: {customer}, {amount} euros""",
        """{customer} still has to get a bill of {amount} euros from us.
        Charge {customer} {amount} euros on paper.""",
    ),
    _tool(
        "get_user find_user lookup_user user_info get_customer",
        """Look up a user by name.
        Gets the data of a user.""",
        "name|user|username: name",
        """Who is the user {name}?
        Look up the user {name}.
        Show me the account of {name}.
        What do we know about the user {name}?
        Find user {name}.
        Get the data of user {name}.
        Is there a user called {name}?
        I need the profile of {name}.
        user {name}""",
        """Has anybody signed up here under {name}?
        Pull up the record of the user {name}.""",
    ),
    _tool(
        "create_user add_user register_user new_user",
        """Create a user account.
        Registers a new user.""",
        "name|username|user: name; email|mail|address: email",
        """Create a user {name} with the email {email}.
        Add the user {name}, {email}.
        Register {name} with {email}.
        New user: {name}, {email}
        Make an account for {name}, whose mail is {email}.
        Please sign up {name} with {email}.
        {name} needs an account. The address is {email}.
        Set up a user for {name} ({email}).""",
        """Let {name} in: {email} is the address for the account.
        We have a newcomer, {name}, reachable at {email}. Open an account.""",
    ),
    _tool(
        "delete_user remove_user deactivate_user",
        """Delete a user account.
        Removes a user.""",
        "name|username|user: name",
        """Delete the user {name}.
        Remove {name} from the users.
        The account of {name} must go.
        {name} has left. Delete the account.
        Please remove the user {name}.
        Close the account of {name}.
        Can you delete the account of {name}?
        User {name} is to be deleted.""",
        """{name} does not work here any more, so take away the login.
        Wipe the account of {name}.""",
    ),
    _tool(
        "read_file open_file get_file show_file",
        """Read a file.
        Returns what is in a file.""",
        "path|file|filename|file_path: file",
        """Read {path}.
        What is in {path}?
        Open {path}.
        Show me the file {path}.
        Print the contents of {path}.
        What does {path} say?
        Have a look into {path}.
        Can you read the file {path}?
        cat {path}
        I'd like to see what {path} contains.""",
        """Tell me what somebody wrote into {path}.
        Take a peek at {path}.""",
    ),
    _tool(
        "write_file save_file create_file",
        """Write a text to a file.
        Creates a file with a content.""",
        "path|file|filename|file_path: file; content|text|data: phrase",
        """Write "{content}" to {path}.
        Save "{content}" in {path}.
        Create a file {path} with the text "{content}".
        Put "{content}" into the file {path}.
        Make a file called {path} that says "{content}".
        Store the text "{content}" as {path}.
        Please write "{content}" into {path}.
        New file {path}: {content}""",
        """{path} should contain "{content}".
        I want to find "{content}" in {path} later.""",
    ),
    _tool(
        "delete_file remove_file rm",
        """Delete a file.
        Removes a file.""",
        "path|file|filename|file_path: file",
        """Delete {path}.
        Remove the file {path}.
        Get rid of {path}.
        I don't need {path} any more.
        Please delete the file {path}.
        Throw away {path}.
        rm {path}
        {path} can go.
        Erase {path} from the disk.""",
        """{path} is of no use to anybody now.
        Clean up and start with {path}, it can be wiped.""",
    ),
    _tool(
        "list_files list_directory ls show_folder",
        """List the files of a folder.
        Shows what is in a directory.""",
        "folder|directory|path|dir: folder",
        """Which files are in {folder}?
        List the files in {folder}.
        What is in the folder {folder}?
        Show me the folder {folder}.
        ls {folder}
        Give me a list of the files in {folder}.
        What files does {folder} have?
        Look into the directory {folder}.""",
        """I keep things in {folder}, but what were they?
        Is {folder} an empty folder?""",
    ),
    _tool(
        "run_code execute_code python run_python code_interpreter",
        """Run Python code.
        Executes code and returns the output.""",
        "code|source|script: code_line",
        """Run {code}.
        Execute {code}.
        What does {code} print?
        Run this code: {code}
        Please execute this: {code}
        Try out {code} in Python.
        What happens if I run {code}?
        Python: {code}""",
        """Let the interpreter have a go at {code}
        I wonder what Python makes of {code}""",
    ),
    _tool(
        "query_database run_query sql_query count_rows table_size",
        """Count the rows of a table.
        Asks the database how many entries a table has.""",
        "table|table_name|name: table",
        """How many rows has the table {table}?
        Count the rows of {table}.
        How big is the table {table}?
        How many entries are in {table}?
        Ask the database how many {table} there are.
        What is the number of rows in {table}?
        row count of {table}
        Check the size of the table {table}.""",
        """Go to the database and count {table}.
        Has the table {table} grown? How many rows are there?""",
    ),
    _tool(
        "restart_server reboot restart_service restart",
        """Restart a server.
        Boots a machine again.""",
        "server|name|service|host: server",
        """Restart {server}.
        Reboot {server}, please.
        {server} hangs. Restart it.
        Please restart the server {server}.
        Can you reboot {server}?
        {server} must be started again.
        Start {server} again.
        The service {server} needs a restart.""",
        """{server} does not answer any more, give it a fresh start.
        Switch {server} off and on again.""",
    ),
    _tool(
        "server_status check_server health_check service_status ping",
        """Check whether a server is up.
        The state of a service.""",
        "server|name|service|host: server",
        """Is {server} up?
        Check the server {server}.
        How is {server} doing?
        What is the state of {server}?
        Is {server} running?
        Does {server} work?
        Ping {server}.
        Is there a problem with {server}?
        status of {server}""",
        """Users complain about {server}. Is it alive?
        Can {server} be reached at the moment?""",
    ),
    _tool(
        "create_ticket open_ticket report_bug create_issue new_issue",
        """Open a ticket.
        Reports a problem to the team.""",
        "title|summary|subject|text: problem; +priority: priority",
        """Open a ticket: {title}
        Report that {title}.
        File a bug: {title}
        Create an issue: {title}
        Tell support that {title}.
        There is a problem: {title}. Open a ticket.
        Please report this: {title}
        New ticket: {title}
        The team should know that {title}. Create a ticket.""",
        """Somebody should repair it: {title}
        Put it on the bug list that {title}.""",
    ),
    _tool(
        "close_ticket resolve_ticket close_issue",
        """Close a ticket.
        Marks a problem as solved.""",
        "ticket|ticket_id|id|number: ticket",
        """Close ticket {ticket}.
        Ticket {ticket} is solved.
        Mark ticket {ticket} as done.
        We are finished with ticket {ticket}.
        Please close issue {ticket}.
        The problem of ticket {ticket} is fixed, close it.
        Resolve {ticket}.
        Can you close ticket {ticket}?""",
        """Nobody has to work on ticket {ticket} any longer.
        {ticket} can be taken off the list of open tickets.""",
    ),
    _tool(
        "assign_ticket assign give_task assign_issue",
        """Assign a ticket to somebody.
        Gives a ticket to a person.""",
        "ticket|ticket_id|id|number: ticket; person|assignee|to|name: name",
        """Assign ticket {ticket} to {person}.
        Give ticket {ticket} to {person}.
        {person} should take ticket {ticket}.
        Let {person} work on ticket {ticket}.
        Ticket {ticket} is for {person}.
        Please hand ticket {ticket} to {person}.
        Make {person} responsible for ticket {ticket}.""",
        """{person} is the right one for ticket {ticket}.
        Put {person} in charge of {ticket}.""",
    ),
    _tool(
        "get_movie_info movie_info find_movie movie_search",
        """Information about a film.
        Looks up a movie.""",
        "title|movie|name|film: title",
        """Tell me about the film {title}.
        What is the movie {title} about?
        Who plays in {title}?
        When did {title} come to the cinema?
        Is {title} a good film?
        Look up the movie {title}.
        How long is the film {title}?
        Find information on the movie {title}.
        Who directed {title}?""",
        """We are thinking of watching {title}. Is it any good?
        Which actors does one see in {title}?""",
    ),
    _tool(
        "play_video watch_movie play_movie start_video",
        """Play a film.
        Starts a video on the television.""",
        "title|movie|video|name: title",
        """Play the movie {title}.
        I want to watch {title}.
        Start the film {title}.
        Put {title} on the TV.
        Let's watch {title}.
        Show the film {title} on the television.
        We'd like to see the movie {title}.
        Can you start {title}?""",
        """Film night! We chose {title}.
        Get {title} running on the screen.""",
    ),
    _tool(
        "get_score match_result sports_score game_result",
        """The result of a match of a team.
        Tells how a team played.""",
        "team|club|name: team",
        """How did {team} play?
        What was the score of {team}?
        Did {team} win?
        What is the result of the {team} game?
        Has {team} lost?
        Tell me how the match of {team} ended.
        How many goals did {team} score?
        {team} result""",
        """Do the fans of {team} have something to celebrate?
        I missed the match of {team}. How did it end?""",
    ),
    _tool(
        "get_joke tell_joke joke random_joke",
        """Tells a joke.
        Returns a random joke.""",
        "",
        """Tell me a joke.
        Make me laugh.
        Do you know a joke?
        I want to hear a joke.
        A joke, please!
        Say something funny.
        Have you got a good joke?
        I need something funny now.
        Give me a joke.""",
        """I could use a laugh today.
        Cheer me up with something silly.""",
    ),
    _tool(
        "roll_dice dice throw_dice roll",
        """Roll dice.
        Throws some dice and returns the points.""",
        "count|number|dice: few",
        """Roll {count} dice.
        Throw {count} dice.
        Roll {count} dice for me, please.
        I throw {count} dice. What do I get?
        Can you roll {count} dice?
        {count} dice, please.
        It's my turn: {count} dice
        Let {count} dice roll.""",
        """My turn in the game, and I get {count} dice.
        Shake {count} dice and tell me what they show.""",
    ),
    _tool(
        "random_number generate_random_number pick_number",
        """A random number between two numbers.
        Draws a number.""",
        "low|min|minimum|from: low; high|max|maximum|to: high",
        """Give me a random number between {low} and {high}.
        Pick a number from {low} to {high}.
        Choose any number between {low} and {high}.
        Draw a number from {low} to {high}.
        A random number from {low} to {high}, please.
        Think of a number between {low} and {high}.
        random {low} {high}
        I need some number between {low} and {high}.""",
        """Chance shall decide: anything from {low} up to {high}.
        Draw lots for me, {low} to {high}.""",
    ),
    _tool(
        "generate_password create_password new_password password_generator",
        """Generate a password.
        Makes a safe password of some length.""",
        "length|characters|size: length",
        """Generate a password with {length} characters.
        I need a new password of length {length}.
        Make me a password with {length} characters.
        Give me a safe password of {length} characters.
        A password, {length} characters long, please.
        Create a password of {length} characters.
        Think up a password with {length} characters.""",
        """My login is not safe, {length} random characters would be.
        Invent something secret with {length} characters to log in with.""",
    ),
    _tool(
        "open_website open_url browse visit_url fetch_page",
        """Open a web page.
        Fetches a page by its address.""",
        "url|address|link|site: url",
        """Open {url}.
        Go to {url}.
        Show me {url}.
        What is on {url}?
        Visit {url}, please.
        Load the page {url}.
        Can you fetch {url}?
        Take me to {url}.
        I want to see the page {url}.""",
        """Bring {url} up in the browser.
        Have a look at what {url} says.""",
    ),
    _tool(
        "get_sunrise sunrise sun_times sunrise_sunset",
        """When the sun rises and sets in a city.
        Sunrise and sunset times.""",
        "city|location|place: city",
        """When does the sun rise in {city}?
        What time is sunset in {city}?
        When does it get dark in {city}?
        When will it be light in {city}?
        Sunrise in {city}?
        At what time does the sun set in {city}?
        How long is the day in {city}?""",
        """I want to photograph the first sunlight in {city}. When should I be there?
        Until when can I play outside in {city} without a lamp?""",
    ),
    _tool(
        "get_air_quality air_quality pollution",
        """The quality of the air in a city.
        Tells how clean the air is.""",
        "city|location|place: city",
        """How is the air in {city}?
        Is the air clean in {city}?
        How bad is the pollution in {city}?
        Air quality in {city}, please.
        Can I breathe freely in {city}?
        Is there smog in {city}?
        Check the air in {city}.""",
        """I have asthma. Is {city} a good place to jog today?
        How dirty is what people breathe in {city}?""",
    ),
    _tool(
        "train_departures next_train get_trains train_times timetable",
        """The next trains from a station.
        Departures of a station.""",
        "station|from|city|stop: city",
        """When does the next train leave {station}?
        Which trains leave from {station}?
        Show me the departures in {station}.
        When is there a train from {station}?
        I am at the station of {station}. When does my train go?
        What trains are there from {station}?
        Timetable of {station}, please.
        Is there a train from {station} soon?""",
        """I stand on the platform in {station} and wonder how long I have to wait.
        How soon can I leave {station} by rail?""",
    ),
    _tool(
        "find_parking parking parking_spots car_park",
        """Find a car park.
        Free parking places near a place.""",
        "place|near|location|where: place",
        """Where can I park near the {place}?
        Find a parking space at the {place}.
        Is there a car park near the {place}?
        I need to park my car at the {place}.
        Parking near the {place}?
        Where do I leave my car at the {place}?
        Look for a free parking spot near the {place}.""",
        """I come to the {place} by car. Where do I put it?
        Is there room for my car around the {place}?""",
    ),
    _tool(
        "find_nearby nearby_places find_place places_nearby search_nearby",
        """Find a place of some kind nearby.
        Searches what is near the user.""",
        "kind|type|place|what: place",
        """Where is the next {kind}?
        Is there a {kind} near me?
        Find the nearest {kind}.
        I need a {kind}. Where is one?
        How do I find a {kind} around here?
        Show me a {kind} nearby.
        Which {kind} is the closest?
        Is a {kind} close by?""",
        """I have to get to a {kind}, whichever is the least far.
        Point me to some {kind} in the neighbourhood.""",
    ),
    _tool(
        "log_workout add_workout record_exercise track_workout",
        """Record a workout.
        Writes down how long somebody exercised.""",
        "activity|exercise|sport|kind: sport; minutes|duration: minutes",
        """I went {activity} for {minutes} minutes. Record it.
        Log {minutes} minutes of {activity}.
        Today I did {minutes} minutes of {activity}.
        Record my workout: {activity}, {minutes} minutes
        Add {minutes} minutes of {activity} to my training.
        I have been {activity} for {minutes} minutes.
        Note {minutes} minutes {activity} in my fitness diary.
        Track {activity}: {minutes} minutes""",
        """Sweating over: {activity} took me {minutes} minutes.
        My training today was {activity}, all of {minutes} minutes.""",
    ),
    _tool(
        "water_plants irrigate start_sprinkler watering water_garden",
        """Water the plants of a place for some minutes.
        Starts the sprinkler.""",
        "zone|area|where|bed: garden; minutes|duration: minutes",
        """Water the {zone} for {minutes} minutes.
        The {zone} is dry. {minutes} minutes of water, please.
        Let the sprinkler run on the {zone} for {minutes} minutes.
        Give the {zone} water for {minutes} minutes.
        Start the sprinkler at the {zone}, {minutes} minutes.
        The {zone} needs {minutes} minutes of water.
        Irrigate the {zone} for {minutes} minutes.""",
        """No rain for weeks: help the {zone} out for {minutes} minutes.
        {minutes} minutes of artificial rain for the {zone}.""",
    ),
    _tool(
        "feed_pet feeder feed pet_feeder give_food",
        """Feed an animal.
        Gives food to a pet.""",
        "pet|animal|who: pet; grams|amount|portion: grams",
        """Feed the {pet} {grams} grams.
        Give the {pet} {grams} grams of food.
        The {pet} is hungry. {grams} grams, please.
        Put {grams} grams of food out for the {pet}.
        The {pet} should get {grams} grams.
        {grams} grams for the {pet}
        Can you feed {grams} grams to the {pet}?""",
        """The bowl of the {pet} is empty, {grams} grams belong in it.
        Lunch for the {pet}, {grams} grams of it.""",
    ),
    _tool(
        "plant_info lookup_plant get_plant tree_info find_plant",
        """Information about a plant.
        Looks up a plant or tree.""",
        "plant|name|tree|species: plant",
        """Tell me about the {plant}.
        What is known about the {plant}?
        Look up the {plant} in the plant book.
        How do I care for a {plant}?
        How much water does a {plant} need?
        Where does the {plant} grow?
        Information on the {plant}, please.
        Can I plant a {plant} in the shade?""",
        """I was given a {plant}. What does it want from me?
        Would a {plant} survive in my garden?""",
    ),
    _tool(
        "read_sensor get_sensor sensor_value measure",
        """Read a sensor.
        Returns the value that a sensor measures.""",
        "sensor|sensor_id|id|name: sensor",
        """What does the sensor {sensor} say?
        Read the sensor {sensor}.
        Give me the value of {sensor}.
        What is measured at {sensor}?
        Check sensor {sensor}.
        Which value has {sensor}?
        reading of {sensor}
        Tell me what {sensor} shows.""",
        """Is everything normal at {sensor}? Look at what it measures.
        I need today's number from {sensor}.""",
    ),
    _tool(
        "take_photo take_picture camera capture_image",
        """Take a photo with a camera.
        Makes a picture.""",
        "camera|which|where: room",
        """Take a photo with the camera in the {camera}.
        What does the {camera} look like now? Take a picture.
        Make a picture of the {camera}.
        Photograph the {camera}.
        I'd like a photo of the {camera}.
        Show me a picture from the {camera}.
        Take a picture in the {camera}, please.
        Use the camera in the {camera}.""",
        """I want to see with my own eyes what is going on in the {camera}.
        A snapshot of the {camera}, please.""",
    ),
    _tool(
        "generate_image draw_picture create_image make_image",
        """Make a picture from a description.
        Draws an image.""",
        "prompt|description|text|subject: scene; +size: small",
        """Draw {prompt}.
        Make a picture of {prompt}.
        Create an image of {prompt}.
        I'd like a drawing of {prompt}.
        Paint {prompt} for me.
        Generate a picture that shows {prompt}.
        Can you draw {prompt}?
        Show me {prompt} as a picture.""",
        """Imagine {prompt} and put it on canvas.
        My wall needs an artwork with {prompt}.""",
    ),
    _tool(
        "summarize_text summarize summary shorten",
        """Summarise a document.
        Makes a short version of a file.""",
        "document|file|path|name: file",
        """Summarise {document}.
        Give me a summary of {document}.
        What are the main points of {document}?
        I have no time to read {document}. Sum it up.
        Tell me in short what {document} says.
        Make a short version of {document}.
        Can you sum up {document}?
        Shorten {document} for me.""",
        """{document} is far too long. What matters in it?
        Boil {document} down to a few lines.""",
    ),
    _tool(
        "print_document print_file printer print",
        """Print a document.
        Sends a file to the printer.""",
        "document|file|path|name: file; +copies: small",
        """Print {document}.
        I need {document} on paper.
        Send {document} to the printer.
        Please print the file {document}.
        Can you print out {document}?
        Make a printout of {document}.
        Print {document} for the meeting.
        A paper copy of {document}, please.""",
        """I would rather hold {document} in my hands than see it on the screen.
        Paper, please: {document}""",
    ),
    _tool(
        "share_file share_document send_file share",
        """Share a file with somebody.
        Gives a person access to a document.""",
        "file|document|path: file; with|person|to|user: name",
        """Share {file} with {with}.
        Give {with} access to {file}.
        Send {file} to {with}.
        {with} needs the file {file}.
        Let {with} see {file}.
        Can you share {file} with {with}?
        Please give {file} to {with}.
        {with} should be able to read {file}.""",
        """Allow {with} to look at {file}.
        I want {with} to work on {file}, too.""",
    ),
    _tool(
        "get_contact find_contact lookup_contact contact_info phone_number",
        """Find the number of a person.
        Looks somebody up in the address book.""",
        "name|person|contact: name",
        """What is {name}'s phone number?
        Find the number of {name}.
        How can I reach {name}?
        Look {name} up in my contacts.
        Do we have the address of {name}?
        Give me the contact of {name}.
        Show me the number of {name}.
        contact {name}
        Where does {name} live? Look into the address book.""",
        """I want to write to {name} but do not know where.
        Is {name} in my phone book?""",
    ),
    _tool(
        "check_stock inventory stock_level get_inventory count_stock",
        """How many of an article are in the warehouse.
        The stock of a product.""",
        "product|item|article: items",
        """How many {product} are left?
        Do we still have {product}?
        How many {product} are in the warehouse?
        Check the inventory for {product}.
        Are {product} in stock?
        Have we run out of {product}?
        Count our {product}.
        How much stock of {product} is there?""",
        """Can we still deliver {product}, or are the shelves empty?
        Go to the store room and count {product}.""",
    ),
    _tool(
        "get_price price_of lookup_price product_price",
        """The price of an article.
        Tells what a product costs.""",
        "product|item|article: items",
        """What do {product} cost?
        How much are {product}?
        What is the price of {product}?
        How expensive are {product}?
        Price of {product}, please.
        How much do you want for {product}?
        Tell me what {product} cost.
        What would I pay for {product}?""",
        """Can I afford {product}?
        Name me a price for {product}.""",
    ),
    _tool(
        "place_order order_product buy order create_order",
        """Order an article.
        Buys some pieces of a product.""",
        "product|item|article: items; quantity|count|amount: quantity",
        """Order {quantity} {product}.
        I'd like {quantity} {product}.
        Buy {quantity} {product}, please.
        We need {quantity} new {product}.
        Get us {quantity} {product}.
        Please order {quantity} {product}.
        I take {quantity} {product}.
        {quantity} {product}, please.
        Can you buy {quantity} {product}?""",
        """Our stock is low: {quantity} {product} should come.
        Spend some money on {quantity} {product}.""",
    ),
    _tool(
        "get_birthday birthday find_birthday when_born",
        """The birthday of a person.
        Tells when somebody was born.""",
        "name|person|who: name",
        """When is {name}'s birthday?
        When was {name} born?
        On what day does {name} have birthday?
        Do you know the birthday of {name}?
        I forgot when {name} has birthday.
        birthday of {name}
        Tell me when {name} was born.""",
        """When do I have to congratulate {name}?
        On which day should I bring {name} a cake with candles?""",
    ),
    _tool(
        "days_until count_days date_difference",
        """How many days there are until a day.
        Counts days until a date.""",
        "date|day|until: day",
        """How many days until {date}?
        How long is it until {date}?
        Count the days until {date}.
        When is {date}? How many days are left?
        How many days are left until {date}?
        Is {date} far away?""",
        """How often do I have to sleep until {date}?
        I can hardly wait for {date}. How long must I?""",
    ),
    _tool(
        "get_holidays public_holidays holidays",
        """The public holidays of a country.
        Lists holidays.""",
        "country|where|region: country; +year: year",
        """Which holidays are there in {country}?
        Public holidays in {country}?
        When do people in {country} not work?
        Show me the holidays of {country}.
        What are the holidays in {country}?
        List the public holidays of {country}.
        Does {country} have many holidays?""",
        """On which days are the shops in {country} shut?
        When do they celebrate in {country}?""",
    ),
    _tool(
        "country_info get_country lookup_country population",
        """Facts about a country.
        Population and area of a country.""",
        "country|name|nation: country",
        """How many people live in {country}?
        How big is {country}?
        What is the population of {country}?
        Tell me facts about {country}.
        What do you know about the country {country}?
        Which language do they speak in {country}?
        Look up {country}.
        facts {country}""",
        """I have to give a talk about {country} and need figures.
        Is {country} a large country?""",
    ),
    _tool(
        "send_invitation invite invite_person send_invite",
        """Invite somebody to an event.
        Sends an invitation.""",
        "name|person|guest|to: name; event|title|occasion: event",
        """Invite {name} to the {event}.
        Ask {name} to come to the {event}.
        {name} should come to the {event}. Send an invitation.
        Send {name} an invitation to the {event}.
        Please invite {name} to our {event}.
        I want {name} at the {event}. Invite them.
        Can you invite {name} to the {event}?""",
        """The {event} would not be the same without {name}.
        See that {name} gets a card for the {event}.""",
    ),
    _tool(
        "set_language change_language switch_language",
        """Change the language of the program.
        Sets the language of the menus.""",
        "language|lang|locale: language",
        """Switch to {language}.
        Change the language to {language}.
        I want the menus in {language}.
        Set the language to {language}, please.
        Speak {language} from now on.
        Can I have everything in {language}?
        Use {language} for the menus.""",
        """I do not understand these menus, {language} would be easier for me.
        From today on my app should be in {language}.""",
    ),
    _tool(
        "rename_file move_file rename mv",
        """Rename a file.
        Gives a file another name.""",
        "old|source|from|path: file; new|target|to|new_name: file",
        """Rename {old} to {new}.
        Call {old} {new} from now on.
        Change the name of {old} to {new}.
        Please rename the file {old} to {new}.
        The file {old} should be called {new}.
        Move {old} to {new}.
        mv {old} {new}""",
        """{old} is a bad name, {new} would be better.
        I want to find {old} as {new}.""",
    ),
    _tool(
        "get_flight_status flight_status check_flight flight_info",
        """Get the status of a flight.
        Tells whether a flight is late.""",
        "flight_number|flight|number|id: flight",
        """Is flight {flight_number} late?
        What is the status of flight {flight_number}?
        Has flight {flight_number} landed?
        When does flight {flight_number} arrive?
        Check flight {flight_number}.
        Is {flight_number} delayed?
        Did flight {flight_number} leave already?
        How is flight {flight_number} doing?
        I am waiting for flight {flight_number}. Where is it?""",
        """Will flight {flight_number} come in on schedule?
        Any delay for {flight_number}?""",
    ),
    _tool(
        "calculate_tip tip tip_calculator",
        """Calculate the tip for a bill.
        How much to give to the waiter.""",
        "bill|amount|bill_amount|total: amount; percent|rate|percentage: percent",
        """How much tip is {percent} percent of {bill} euros?
        Work out a tip of {percent} percent on {bill} dollars.
        The bill is {bill} euros. What is a tip of {percent} percent?
        I want to tip {percent} percent on {bill}.
        Calculate {percent} percent tip for a bill of {bill}.
        What should I give the waiter for {bill} euros at {percent} percent?
        Tip for {bill} euros, {percent} percent
        Our dinner was {bill} euros, and we tip {percent} percent.""",
        """If I pay {bill} dollars and tip {percent} percent, how much is the tip?
        Give me the tip: {bill} euros at {percent} percent.""",
    ),
    _tool(
        "order_pizza pizza order_food",
        """Order a pizza.
        Sends a pizza order to the restaurant.""",
        "size: size; topping|kind|with: topping",
        """Order a {size} pizza with {topping}.
        I'd like a {size} pizza with {topping}, please.
        A {size} pizza with {topping}!
        Get me a {size} pizza with {topping}.
        One {size} {topping} pizza, please.
        I am hungry: a {size} pizza with {topping}
        We want a {size} pizza, and {topping} on it.
        Can I have a {size} pizza with {topping}?""",
        """Please bring me a {size} pizza with {topping}.
        Could we get one {size} pizza and put {topping} on it?""",
    ),
    _tool(
        "get_user_by_id get_user_details user_details fetch_user",
        """Get a user by id.
        Details of a user.""",
        "user_id|id|number: ticket",
        """Show me user {user_id}.
        Who is user {user_id}?
        Get the details of user {user_id}.
        Look up the user with the id {user_id}.
        What is the name of user {user_id}?
        I need the data of user number {user_id}.
        user {user_id}
        Give me everything about user {user_id}.""",
        """Which person has the user id {user_id}?
        Open the details of user {user_id}, please.""",
    ),
    _tool(
        "log_water log_drink add_water track_water",
        """Record how much somebody drank.
        Logs water in millilitres.""",
        "ml|amount|millilitres: ml",
        """I drank {ml} ml of water.
        Log {ml} ml of water.
        I have had {ml} millilitres of water.
        Add {ml} ml to my water for today.
        Write down that I drank {ml} ml.
        {ml} ml of water, please record it.
        Just had a glass of water, {ml} ml.
        Track {ml} ml of water.""",
        """Note {ml} ml of water for me.
        I finished a bottle with {ml} ml of water.""",
    ),
    _tool(
        "get_showtimes movie_times showtimes cinema_program",
        """When a movie is shown in a city.
        The cinema programme.""",
        "movie|title|film: title; city|where|location: city",
        """When is {movie} shown in {city}?
        At what time can I see {movie} in {city}?
        Showtimes of {movie} in {city}, please.
        Where and when does {movie} run in {city}?
        I'd like to see {movie} in {city}. When is it on?
        Is {movie} in the cinemas of {city}?
        When does {movie} play in {city}?
        Cinema in {city}: {movie}""",
        """What are the times for {movie} in {city}?
        Tell me when {movie} starts in {city}.""",
    ),
    _tool(
        "book_cinema buy_movie_ticket movie_tickets reserve_seats",
        """Buy tickets for a movie.
        Reserves seats in the cinema.""",
        "movie|title|film: title; seats|tickets|count: few",
        """Buy {seats} tickets for {movie}.
        Reserve {seats} seats for {movie}.
        {seats} tickets for {movie}, please.
        We are {seats} and want to see {movie}. Get tickets.
        Book {seats} seats for the movie {movie}.
        I need {seats} cinema tickets for {movie}.
        Get us {seats} seats in {movie}.
        Can I have {seats} tickets for {movie}?""",
        """Please book the film {movie} for {seats} people.
        I'd like {seats} seats for {movie}.""",
    ),
    _tool(
        "recipes_with find_recipes_by_ingredient cook_with ingredient_recipes",
        """Find recipes with an ingredient.
        What can be cooked from something.""",
        "ingredient|with|food: grocery",
        """What can I cook with {ingredient}?
        I have {ingredient}. What can I make?
        Look for recipes that have {ingredient} in them.
        Which dishes have {ingredient} in them?
        Show me recipes that use {ingredient}.
        There is {ingredient} in the fridge. What can I cook?
        I want to use up my {ingredient}.
        Recipes with {ingredient}, please.""",
        """Give me ideas for cooking with {ingredient}.
        What dish could I make from {ingredient}?""",
    ),
    _tool(
        "get_exchange_rate currency_rate fx_rate",
        """The exchange rate between two currencies.
        How two currencies are traded.""",
        "base|from|source: currency; target|to|quote: currency",
        """How does {base} stand against {target} now?
        How do {base} and {target} trade?
        Rate of {base} to {target}?
        Give me the rate between {base} and {target}.
        How many {target} is one of {base}?
        {base} to {target}, please.
        Tell me the exchange rate for {base} in {target}.
        How strong are {base} against {target}?""",
        """What does {base} cost in {target} today?
        Look up the rate {base} to {target}.""",
    ),
    _tool(
        "get_temperature room_temperature read_thermometer",
        """The temperature of a room.
        Reads the thermometer of a room.""",
        "room|where: room",
        """How warm is it in the {room}?
        What is the temperature in the {room}?
        Is it cold in the {room}?
        Read the thermometer in the {room}.
        How many degrees does the {room} have?
        Is the {room} warm enough?
        Tell me the temperature of the {room}.
        Check how warm the {room} is.""",
        """How hot is the {room} right now?
        Look at the thermometer of the {room}.""",
    ),
    _tool(
        "unlock_door unlock open_lock",
        """Unlock a door.
        Opens the lock of a door.""",
        "door|which: door",
        """Unlock the {door}.
        Open the {door}, please.
        Please unlock the {door} for me.
        I am standing outside, open the {door}.
        Can you unlock the {door}?
        My guests are here. Open the {door}.
        The {door} should not be locked.
        Let me in by the {door}.""",
        """Could you open the {door} for us?
        I need the {door} unlocked.""",
    ),
    _tool(
        "close_blinds lower_blinds close_curtains",
        """Close the blinds of a room.
        Lowers blinds or curtains.""",
        "room|where: room",
        """Close the blinds in the {room}.
        Lower the blinds in the {room}.
        Draw the curtains in the {room}, please.
        The sun is too strong in the {room}. Close the blinds.
        Can you close the curtains in the {room}?
        Curtains shut in the {room}.
        Nobody should look into the {room}.
        Shut the blinds of the {room}.""",
        """Please shut the curtains in the {room}.
        Could the blinds in the {room} be closed?""",
    ),
    _tool(
        "set_light_color light_color change_light_color",
        """Change the colour of a lamp.
        Sets the colour of the light in a room.""",
        "room|where: room; color|colour: colour",
        """Make the light in the {room} {color}.
        Set the {room} light to {color}.
        I want {color} light in the {room}.
        Change the lamp in the {room} to {color}.
        {color} light in the {room}, please.
        Turn the light of the {room} {color}.
        The {room} should glow {color}.
        Can the lamp in the {room} be {color}?""",
        """Please change the colour of the {room} light to {color}.
        Let the {room} lamp shine {color}.""",
    ),
    _tool(
        "next_song skip skip_song next_track",
        """Play the next song.
        Skips the song that is playing.""",
        "",
        """Next song.
        Skip this song.
        I don't like this song.
        Play the next one.
        Skip, please.
        Go to the next track.
        Can we hear another song?
        Not this one, the next.""",
        """Please skip the track.
        On to the next song.""",
    ),
    _tool(
        "change_channel set_channel tv_channel switch_channel",
        """Change the channel of the television.
        Sets the TV channel.""",
        "channel|number: small",
        """Switch to channel {channel}.
        Channel {channel}, please.
        Put the TV on {channel}.
        I want to watch channel {channel}.
        Turn to channel {channel}.
        What's on channel {channel}? Switch there.
        Change the channel to {channel}.
        TV: {channel}""",
        """Go to channel number {channel}.
        Please show channel {channel} on TV.""",
    ),
    _tool(
        "read_emails check_mail get_emails inbox unread_mail",
        """Read the new e-mails.
        Shows the inbox.""",
        "",
        """Do I have new mail?
        Check my inbox.
        Show me my emails.
        Read my mail to me.
        Any new messages in my inbox?
        What is in my inbox?
        Did somebody write me an email?
        Have I got mail?
        Look into my mailbox, please.""",
        """Are there unread e-mails for me?
        Open my mailbox.""",
    ),
    _tool(
        "search_email find_email search_mail",
        """Search the e-mails of a person.
        Finds mails by their sender.""",
        "sender|from|name: name",
        """Find the emails from {sender}.
        Did {sender} write to me?
        Show me the mail from {sender}.
        Search my inbox for {sender}.
        What did {sender} write?
        Is there an email from {sender}?
        I am looking for a mail by {sender}.
        Mails of {sender}, please.""",
        """Look for messages from {sender} in my inbox.
        Where is the e-mail that {sender} sent me?""",
    ),
    _tool(
        "cancel_event delete_event remove_event cancel_meeting",
        """Cancel an event of the calendar.
        Deletes an appointment.""",
        "title|event|name: event; day|date|on: day",
        """Cancel the {title} on {day}.
        Remove the {title} on {day} from my calendar.
        I can't come to the {title} on {day}. Cancel it.
        Delete the {title} of {day}.
        There is no {title} on {day} any more.
        Take the {title} on {day} out of the calendar.
        Please cancel my {title} on {day}.
        Call off the {title} on {day}.""",
        """The {title} on {day} will not take place, delete it.
        Please drop the {title} on {day}.""",
    ),
    _tool(
        "cancel_alarm delete_alarm alarm_off",
        """Cancel an alarm.
        Switches off the alarm of a time.""",
        "time|at|alarm: clock",
        """Cancel the alarm at {time}.
        Turn off my {time} alarm.
        I don't need the alarm at {time}.
        Delete the alarm for {time}.
        No alarm at {time}, please.
        Remove my alarm at {time}.
        Switch the alarm of {time} off.
        I don't want to be woken at {time}.""",
        """The alarm at {time} can be cancelled.
        Please do not ring at {time}.""",
    ),
    _tool(
        "complete_task mark_done finish_task check_off",
        """Mark a task as done.
        Checks off an entry of the to-do list.""",
        "title|task|name: errand",
        """Mark "{title}" as done.
        I have finished: {title}
        Check off "{title}".
        The task "{title}" is done.
        Done: {title}
        Cross "{title}" off my list.
        Tick "{title}" off, please.
        My task "{title}" is finished.""",
        """Set the task "{title}" to done.
        I am through with "{title}", mark it.""",
    ),
    _tool(
        "list_tasks show_tasks get_tasks todo_list",
        """Show the to-do list.
        Lists open tasks.""",
        "",
        """What do I still have to do?
        Show my to-do list.
        Which tasks are open?
        List my tasks.
        What is on my to-do list?
        Read me my tasks.
        What's left to do?
        My to-do list, please.""",
        """Which things are on my list?
        Tell me my open tasks.""",
    ),
    _tool(
        "show_shopping_list get_shopping_list groceries",
        """Show the shopping list.
        What is to be bought.""",
        "",
        """What is on my shopping list?
        Show me the shopping list.
        What do I have to buy?
        Read me the groceries.
        What do we need from the shop?
        I am at the supermarket. What do I need?
        Shopping list, please.
        Which things must I buy?""",
        """Tell me what I wanted to buy.
        What did I put on the shopping list?""",
    ),
    _tool(
        "search_notes find_note search_in_notes",
        """Search the notes for a word.
        Finds notes.""",
        "query|text|word: topic",
        """What did I write about {query}?
        Search my notes for {query}.
        Find my note about {query}.
        Do I have a note on {query}?
        Look for {query} in my notes.
        Where is my note on {query}?
        Show the notes that speak of {query}.
        Which of my notes are about {query}?""",
        """Is there something on {query} in my notes?
        I wrote about {query} once, find the note.""",
    ),
    _tool(
        "rent_car book_car car_rental hire_car",
        """Rent a car in a city.
        Books a rental car.""",
        "city|where|location: city; days|duration: few",
        """Rent a car in {city} for {days} days.
        I need a car in {city} for {days} days.
        Book me a rental car in {city}, {days} days.
        Hire a car in {city} for {days} days.
        We want to drive around {city} for {days} days. Rent a car.
        A car for {days} days in {city}, please.
        Can I get a rental car in {city} for {days} days?
        Get a car for us in {city}, for {days} days.""",
        """Please rent me a car for {days} days in {city}.
        I'd like to have a car for {days} days in {city}.""",
    ),
    _tool(
        "bus_times next_bus bus_departures get_buses",
        """The next buses at a stop.
        Departures of buses.""",
        "stop|station|from: place",
        """When does the next bus leave at the {stop}?
        Which buses stop at the {stop}?
        Next bus at the {stop}?
        When is there a bus from the {stop}?
        I am at the bus stop by the {stop}. When does the bus come?
        Show me the buses at the {stop}.
        Does a bus leave from the {stop} soon?
        Bus times for the {stop}, please.""",
        """How long until a bus comes to the {stop}?
        Tell me the next bus from the {stop}.""",
    ),
    _tool(
        "get_traffic traffic traffic_report road_traffic",
        """The traffic in a city.
        Tells where cars stand in a jam.""",
        "city|location|where: city",
        """How is the traffic in {city}?
        Are there jams in {city}?
        Is there much traffic in {city}?
        Traffic report for {city}, please.
        Are the roads of {city} free?
        Can I drive through {city} without a jam?
        What about the traffic in {city} right now?
        Do cars stand still in {city}?""",
        """Will I be stuck in a traffic jam in {city}?
        Check the roads in {city}.""",
    ),
    _tool(
        "find_doctor search_doctor doctors_nearby",
        """Find a doctor in a city.
        Searches for doctors.""",
        "city|location|where: city; specialty|kind|field: professional",
        """Find a {specialty} in {city}.
        I need a {specialty} in {city}.
        Is there a good {specialty} in {city}?
        Which {specialty} is there in {city}?
        Look for a {specialty} in {city}.
        Who is a good {specialty} in {city}?
        Show me a {specialty} in {city}.
        Recommend a {specialty} in {city}.""",
        """Where do I find a {specialty} in {city}?
        I am looking for a {specialty} in {city}.""",
    ),
    _tool(
        "order_medicine refill_prescription order_prescription",
        """Order medicine from the pharmacy.
        Refills a prescription.""",
        "medicine|drug|name: medicine",
        """Order {medicine} from the pharmacy.
        I need more {medicine}.
        Refill my {medicine}.
        My {medicine} is empty. Order some.
        Get me {medicine}, please.
        I am out of {medicine}.
        Please refill the prescription for {medicine}.
        The pharmacy should send me {medicine}.""",
        """Could you order new {medicine} for me?
        I have no {medicine} left, get a refill.""",
    ),
    _tool(
        "bmi calculate_bmi body_mass_index get_bmi",
        """Calculate the body mass index.
        BMI from weight and height.""",
        "weight|kg: kilos; height|cm: cm",
        """What is my BMI? I weigh {weight} kilos and am {height} cm tall.
        Calculate the BMI for {weight} kg and {height} cm.
        I am {height} cm tall and weigh {weight} kg. What is my BMI?
        BMI: {weight} kg, {height} cm
        Work out the body mass index of {weight} kilos at {height} cm.
        Am I too heavy with {weight} kilos at {height} cm?
        Body mass index for {weight} kg and {height} cm, please.
        My weight is {weight} kg, my height {height} cm. BMI?""",
        """How is my BMI with {weight} kilos and {height} cm?
        Tell me the BMI of somebody with {weight} kg and {height} cm.""",
    ),
    _tool(
        "log_meal add_meal track_food log_food",
        """Record a meal.
        Writes down what somebody ate.""",
        "food|dish|meal: dish; calories|kcal: calories",
        """I ate {food} with {calories} calories.
        Log {food}, {calories} calories.
        Record my meal: {food}, {calories} kcal
        Add {food} with {calories} calories to my diary.
        I have had {food}. It had {calories} calories.
        Lunch was {food}, {calories} calories.
        Track {food}: {calories} kcal
        Note {calories} calories for {food}.""",
        """Write down {food} with {calories} calories for today.
        My dinner was {food}, that is {calories} calories.""",
    ),
    _tool(
        "log_weight record_weight add_weight",
        """Record the weight of the user.
        Writes a weight into the diary.""",
        "kilos|weight|kg: kilos",
        """I weigh {kilos} kilos today.
        Record my weight: {kilos} kg
        My weight is {kilos} kilos, write it down.
        Log {kilos} kg.
        The scales say {kilos} kilos.
        Note that I weigh {kilos} kg.
        Today's weight: {kilos} kilos
        Add my weight of {kilos} kg.""",
        """Please note a weight of {kilos} kilos for me.
        I have {kilos} kg on the scales.""",
    ),
    _tool(
        "get_steps step_count steps_today pedometer",
        """How many steps the user walked on a day.
        Counts steps.""",
        "day|date|when: day",
        """How many steps did I walk on {day}?
        My steps on {day}, please.
        How far did I walk on {day}?
        Show me the steps of {day}.
        Did I move enough on {day}?
        Count my steps for {day}.
        What does the step counter say for {day}?
        How much did I walk on {day}?""",
        """Tell me the number of steps on {day}.
        Were there many steps on {day}?""",
    ),
    _tool(
        "get_grade student_grade lookup_grade exam_result_of",
        """The grade of a student in a subject.
        Looks up marks.""",
        "student|name: name; subject|course: subject",
        """What grade has {student} in {subject}?
        How good is {student} in {subject}?
        Look up the {subject} grade of {student}.
        Which mark did {student} get in {subject}?
        Show me the grade of {student} in {subject}.
        Did {student} pass {subject}?
        {student}'s grade in {subject}, please.
        How is {student} doing in {subject}?""",
        """Tell me the mark of {student} in {subject}.
        What did {student} get in {subject}?""",
    ),
    _tool(
        "enroll_student sign_up_course register_course join_course",
        """Sign a student up for a course.
        Registers somebody for a class.""",
        "student|name|person: name; course|class|subject: subject",
        """Sign {student} up for {course}.
        {student} wants to take {course}.
        Enrol {student} in {course}.
        Register {student} for the {course} course.
        Put {student} into the {course} class.
        {student} would like to learn {course}. Sign up, please.
        Add {student} to {course}.
        Please enrol {student} for {course}.""",
        """Let {student} join the {course} course.
        Can you register {student} for {course}?""",
    ),
    _tool(
        "create_quiz make_quiz generate_quiz",
        """Make a quiz about a topic.
        Writes questions for a test.""",
        "topic|subject|about: topic; questions|count|number: few",
        """Make a quiz about {topic} with {questions} questions.
        Write {questions} questions about {topic}.
        I need a test on {topic} with {questions} questions.
        Create a quiz on {topic}, {questions} questions.
        Ask me {questions} questions about {topic}.
        A quiz with {questions} questions about {topic}, please.
        Test what I know of {topic} with {questions} questions.
        Give me {questions} quiz questions on {topic}.""",
        """Prepare {questions} questions about {topic}.
        I'd like a quiz of {questions} questions on {topic}.""",
    ),
    _tool(
        "borrow_book lend_book checkout_book loan_book",
        """Borrow a book from the library.
        Lends a book.""",
        "title|book|name: title",
        """I want to borrow {title}.
        Lend me the book {title}.
        Can I borrow {title} from the library?
        Borrow {title} for me.
        I'd like to take {title} home.
        Check out {title}, please.
        Is {title} free? I want to borrow it.
        Reserve the book {title} for me.""",
        """Please lend me {title}.
        I would like to borrow the book {title}.""",
    ),
    _tool(
        "renew_book extend_loan prolong_book",
        """Keep a borrowed book longer.
        Renews a loan.""",
        "title|book|name: title",
        """Renew {title}.
        I need {title} for longer.
        Extend the loan of {title}.
        I have not finished {title}. Renew it, please.
        Can I keep {title} a little longer?
        Please renew the book {title}.
        Prolong the loan of {title}.
        I'd like to keep {title} for another week.""",
        """Let me have {title} for some more days.
        Could you extend the book {title}?""",
    ),
    _tool(
        "hire_employee add_employee new_employee create_employee",
        """Add an employee.
        Puts a new person on the staff.""",
        "name|employee|person: name; role|job|position: job",
        """Add {name} as {role}.
        {name} is our new {role}.
        New employee: {name}, {role}
        {name} starts as {role}. Add them.
        Put {name} on the staff as {role}.
        We have hired {name} as {role}.
        Create an employee {name}, {role}.
        {name} joins us as {role}.""",
        """Enter {name} as an employee, a {role}.
        From today {name} works for us as {role}.""",
    ),
    _tool(
        "request_vacation book_vacation apply_leave take_vacation",
        """Ask for days off.
        Requests vacation from a day on.""",
        "start|from|date: day; days|duration: few",
        """I want {days} days off from {start} on.
        Request {days} days of vacation from {start}.
        From {start} I'd like to be away for {days} days.
        {days} days of holiday from {start}, please.
        Can I take {days} days off, starting {start}?
        Book {days} days of vacation from {start} on.
        I need {days} free days from {start}.
        Ask my boss for {days} days from {start}.""",
        """Please put me down for {days} days of vacation from {start}.
        I would like to take {days} days off on {start}.""",
    ),
    _tool(
        "book_room book_meeting_room reserve_room meeting_room",
        """Book a meeting room.
        Reserves a room for some people.""",
        "time|at|start: clock; people|persons|size: few",
        """Book a meeting room for {people} people at {time}.
        We are {people} and need a room at {time}.
        Reserve a room at {time} for {people}.
        I need a conference room for {people} at {time}.
        A meeting room at {time} for {people} people, please.
        Get us a room for {people} at {time}.
        Is there a meeting room for {people} at {time}?
        Find a room at {time}, we are {people}.""",
        """Please reserve a meeting room for {people} at {time}.
        Can we have a room at {time}? We are {people} people.""",
    ),
    _tool(
        "get_salary salary_of lookup_salary employee_salary",
        """The salary of an employee.
        Tells what somebody earns.""",
        "name|employee|person: name",
        """What does {name} earn?
        How much do we pay {name}?
        Salary of {name}?
        Look up the salary of {name}.
        How high is the salary of {name}?
        Tell me what {name} gets a month.
        What is {name}'s salary?
        How much money does {name} make?""",
        """Show me the pay of {name}.
        What salary has {name}?""",
    ),
    _tool(
        "update_price set_price change_price",
        """Change the price of an article.
        Sets what a product costs.""",
        "product|item|article: items; price|amount|euros: amount",
        """Set the price of {product} to {price} euros.
        {product} cost {price} euros from now on.
        Change the price of {product} to {price}.
        Sell {product} for {price} euros.
        The new price of {product} is {price} euros.
        Make {product} {price} euros.
        Please change {product} to {price} euros.
        Put {product} at {price} euros.""",
        """From today {product} should cost {price} euros.
        Update the price for {product}: {price} euros""",
    ),
    _tool(
        "add_stock restock update_stock receive_goods",
        """Add pieces of an article to the stock.
        Books goods that came in.""",
        "product|item|article: items; quantity|count|amount: quantity",
        """{quantity} {product} have come in.
        Add {quantity} {product} to the stock.
        We got {quantity} {product}. Book them.
        Put {quantity} {product} into the warehouse.
        Restock {quantity} {product}.
        There are {quantity} more {product} now.
        {quantity} {product} were delivered to us.
        Increase the stock of {product} by {quantity}.""",
        """Please book {quantity} {product} as received.
        The truck brought {quantity} {product}.""",
    ),
    _tool(
        "update_address change_address set_address move_customer",
        """Change the address of a customer.
        Somebody has moved.""",
        "customer|name|person: name; city|address|new_address: city",
        """{customer} has moved to {city}.
        Change the address of {customer} to {city}.
        The new address of {customer} is {city}.
        {customer} lives in {city} now. Change it.
        Set the address of {customer} to {city}.
        Please update {customer}: {city}
        From now on send everything for {customer} to {city}.
        {customer} now lives in {city}.""",
        """Please change where {customer} lives to {city}.
        Write {city} as the new address of {customer}.""",
    ),
    _tool(
        "subscribe_newsletter subscribe newsletter_signup",
        """Subscribe an address to the newsletter.
        Signs up for news by mail.""",
        "email|address|mail: email",
        """Subscribe {email} to the newsletter.
        Send the newsletter to {email}.
        {email} wants the newsletter.
        Add {email} to the mailing list.
        Put {email} on the list for news.
        Sign {email} up for the newsletter.
        I'd like to get your news at {email}.
        Newsletter for {email}, please.""",
        """Please add {email} to those who get the newsletter.
        Can you subscribe {email}?""",
    ),
    _tool(
        "unsubscribe unsubscribe_newsletter remove_subscriber",
        """Take an address off the newsletter.
        Stops mails to somebody.""",
        "email|address|mail: email",
        """Unsubscribe {email}.
        No more newsletters to {email}, please.
        Take {email} off the mailing list.
        {email} does not want our mails any more.
        Stop sending mail to {email}.
        Remove {email} from the newsletter.
        I don't want news at {email}.
        Delete {email} from the list.""",
        """Please do not write to {email} again.
        Can you remove {email} from the mailing list?""",
    ),
    _tool(
        "apply_coupon use_coupon redeem_voucher add_discount",
        """Use a coupon.
        Redeems a code for a discount.""",
        "code|coupon|coupon_code: code",
        """Use the coupon {code}.
        I have a discount code: {code}
        Apply {code} to my cart.
        Redeem {code}.
        My coupon is {code}.
        Please take off what {code} gives.
        Add the code {code} to my order.
        Can I use {code}?""",
        """Here is my coupon: {code}
        I would like to redeem the code {code}.""",
    ),
    _tool(
        "write_review add_review rate_product submit_rating",
        """Rate a product with stars.
        Writes a review.""",
        "product|item|article: items; stars|rating|points: stars",
        """Give the {product} {stars} stars.
        I rate the {product} with {stars} stars.
        {stars} stars for the {product}.
        My review of the {product}: {stars} stars
        The {product} deserve {stars} stars.
        Rate {product}: {stars}
        Please give {stars} stars to the {product}.
        I would give the {product} {stars} stars.""",
        """Write a review with {stars} stars for the {product}.
        Enter {stars} stars for the {product}.""",
    ),
    _tool(
        "query_sales sales_report get_sales revenue",
        """The sales of a month.
        Tells how much was sold.""",
        "month|period|when: month",
        """How much did we sell in {month}?
        Sales of {month}, please.
        What was the revenue in {month}?
        Show me the sales report for {month}.
        How was business in {month}?
        How much money did we make in {month}?
        Give me the figures of {month}.
        Did we sell much in {month}?""",
        """Tell me the sales for {month}.
        What did we earn in {month}?""",
    ),
    _tool(
        "add_expense log_expense record_expense track_spending",
        """Record an expense.
        Writes down what was spent on something.""",
        "item|what|category: grocery; amount|sum|euros: amount",
        """I spent {amount} euros on {item}.
        Record {amount} euros for {item}.
        Add an expense: {item}, {amount} euros
        {item} cost me {amount} euros. Write it down.
        Log {amount} euros for {item}.
        I paid {amount} euros for {item}.
        Expense: {amount} euros, {item}
        Note that {item} was {amount} euros.""",
        """Put {amount} euros for {item} into my spending.
        Today I gave {amount} euros for {item}.""",
    ),
    _tool(
        "set_budget budget create_budget limit_spending",
        """Set a budget.
        How much may be spent in a month.""",
        "month|period: month; amount|limit|euros: amount",
        """Set my budget for {month} to {amount} euros.
        In {month} I want to spend {amount} euros at most.
        Budget {month}: {amount} euros
        I may spend {amount} euros in {month}.
        Limit my spending in {month} to {amount} euros.
        My budget in {month} is {amount}.
        Make a budget of {amount} euros for {month}.
        No more than {amount} euros in {month}, please.""",
        """For {month} the budget should be {amount} euros.
        Please set a limit of {amount} euros for {month}.""",
    ),
    _tool(
        "loan_payment calculate_loan mortgage monthly_payment",
        """What a loan costs a month.
        Calculates the payments of a loan over years.""",
        "amount|principal|sum: loan; years|duration|term: years",
        """What does a loan of {amount} euros over {years} years cost a month?
        I want to borrow {amount} euros for {years} years. What are the payments?
        Calculate a loan of {amount} over {years} years.
        Monthly payment for {amount} euros and {years} years?
        If I borrow {amount} for {years} years, what do I pay?
        Loan: {amount} euros, {years} years
        How much a month are {amount} euros over {years} years?
        Work out the payments of {amount} euros for {years} years.""",
        """What would I pay each month for {amount} euros over {years} years?
        Please calculate a loan: {amount} euros for {years} years.""",
    ),
    _tool(
        "block_number block_caller reject_calls",
        """Block a telephone number.
        Refuses calls from a number.""",
        "number|phone|caller: phone",
        """Block the number {number}.
        {number} should not call me any more.
        I don't want calls from {number}.
        Put {number} on the block list.
        Please block calls from {number}.
        Never let {number} through again.
        Stop {number} from calling.
        Reject {number}.""",
        """Can you block {number} for me?
        No more calls of {number}, please.""",
    ),
    _tool(
        "scan_code read_barcode lookup_barcode",
        """Look up a barcode.
        Tells which product a code belongs to.""",
        "barcode|code|ean: phone",
        """What product has the barcode {barcode}?
        Look up the barcode {barcode}.
        Which article is {barcode}?
        Scan {barcode}.
        The code on the box is {barcode}. What is it?
        Find the product with the code {barcode}.
        What is barcode {barcode}?
        {barcode} is the barcode. Which thing is it?""",
        """Tell me what the barcode {barcode} stands for.
        Check the barcode {barcode}.""",
    ),
    _tool(
        "git_checkout switch_branch checkout_branch",
        """Switch to a branch.
        Checks out a branch of the code.""",
        "branch|name: branch",
        """Switch to the branch {branch}.
        Check out {branch}.
        Go to branch {branch}.
        I want to work on {branch}.
        git checkout {branch}
        Change the branch to {branch}.
        Use the branch {branch}.
        Please switch to {branch}.""",
        """Take me to the branch {branch}.
        Let me work on the branch {branch}.""",
    ),
    _tool(
        "run_tests test_project execute_tests",
        """Run the tests of a project.
        Checks whether code works.""",
        "project|module|path: app",
        """Run the tests of {project}.
        Test {project}.
        Do the tests of {project} pass?
        Check whether {project} works.
        Start the tests for {project}.
        Are the tests of {project} green?
        Please test {project}.
        Execute all tests in {project}.""",
        """Let the tests of {project} run.
        Is {project} still working? Run its tests.""",
    ),
    _tool(
        "get_logs show_logs read_log service_logs",
        """Show the log of a service.
        Reads the last lines of a log.""",
        "service|server|name: server; lines|count|limit: quantity",
        """Show the last {lines} lines of the log of {service}.
        Give me {lines} lines of the {service} log.
        What do the last {lines} log lines of {service} say?
        Logs of {service}, {lines} lines
        Read {lines} lines from the log of {service}.
        I need {lines} log lines of {service}.
        Print the last {lines} lines that {service} logged.
        Look into the log of {service}, {lines} lines.""",
        """Fetch {lines} lines from the {service} log.
        Let me see {lines} log lines from {service}.""",
    ),
    _tool(
        "scale_service set_replicas scale resize_service",
        """Set how many copies of a service run.
        Scales a service.""",
        "service|name|deployment: server; replicas|count|copies: few",
        """Scale {service} to {replicas}.
        Run {replicas} copies of {service}.
        {service} needs {replicas} replicas.
        Set {service} to {replicas} replicas.
        I want {replicas} of {service}.
        Let {service} run {replicas} times.
        Change {service} to {replicas} copies.
        Start {service} with {replicas} replicas.""",
        """Please scale the service {service} to {replicas} replicas.
        There should be {replicas} copies of {service}.""",
    ),
    _tool(
        "backup_database create_backup backup save_backup",
        """Make a backup of a database.
        Saves a copy of the data.""",
        "database|name|db: table",
        """Make a backup of {database}.
        Back up the database {database}.
        Save a copy of {database}.
        I want a backup of {database}.
        Please back up {database} now.
        Copy the database {database} to a safe place.
        Start the backup of {database}.
        Backup: {database}""",
        """The database {database} should be backed up.
        Can you save the data of {database}?""",
    ),
    _tool(
        "get_definition_of_law find_law lookup_law legal_search",
        """Find a law about a topic.
        Searches the laws.""",
        "topic|subject|about: topic",
        """Is there a law about {topic}?
        Which law speaks of {topic}?
        Find the law on {topic}.
        What does the law say about {topic}?
        Search the laws for {topic}.
        Laws about {topic}, please.
        What is allowed with {topic}?
        I need the law that is about {topic}.""",
        """Show me laws on {topic}.
        What are the rules for {topic} in the law?""",
    ),
    _tool(
        "post_message post_to_channel slack_message announce",
        """Post a text in a channel.
        Tells all members of a channel.""",
        "channel|room|to: channel; text|message|content: phrase",
        """Post in {channel}: {text}
        Tell everybody in {channel} that {text}.
        Write in {channel} that {text}.
        Say "{text}" in {channel}.
        Announce in {channel}: {text}
        Send "{text}" to the channel {channel}.
        Put "{text}" into {channel}.
        Message to {channel}: {text}""",
        """Please post "{text}" in the channel {channel}.
        Everybody in {channel} should read "{text}".""",
    ),
    _tool(
        "create_poll start_poll make_survey ask_vote",
        """Start a poll.
        Asks people to vote about something.""",
        "question|title|about: topic",
        """Start a poll about {question}.
        Ask the people what they think of {question}.
        Make a survey on {question}.
        Let the group vote on {question}.
        Create a poll: {question}
        I want a vote about {question}.
        Set up a poll on {question}, please.
        Ask everybody about {question}.""",
        """We should vote about {question}, make a poll.
        Please create a survey about {question}.""",
    ),
    _tool(
        "plan_trip create_itinerary trip_planner travel_plan",
        """Plan a trip to a city.
        Makes a plan for some days.""",
        "city|destination|where: city; days|duration: few",
        """Plan a trip to {city} for {days} days.
        We are in {city} for {days} days. Make a plan.
        What can we do in {city} in {days} days?
        Make me a plan for {days} days in {city}.
        I'd like to travel to {city} for {days} days. Plan it.
        {days} days in {city}: make a plan
        Plan {days} days in {city} for us.
        Help me plan {days} days in {city}.""",
        """Please plan a journey of {days} days to {city}.
        I need a plan for {city}, {days} days.""",
    ),
    _tool(
        "get_attractions sights things_to_do tourist_info",
        """What there is to see in a city.
        Sights of a city.""",
        "city|location|place: city",
        """What is there to see in {city}?
        Show me the sights of {city}.
        What can I visit in {city}?
        Which sights does {city} have?
        I am a tourist in {city}. What should I see?
        What is {city} famous for?
        Things to do in {city}?
        Tell me what to visit in {city}.""",
        """Which places in {city} are worth a visit?
        Give me sights in {city}.""",
    ),
    _tool(
        "find_job search_jobs job_search open_positions",
        """Find jobs in a city.
        Searches open positions.""",
        "job|title|role: job; city|location|where: city",
        """Find a job as {job} in {city}.
        Are there jobs for a {job} in {city}?
        I want to work as {job} in {city}.
        Search jobs in {city}: {job}
        Who in {city} needs a {job}?
        I am a {job} and look for work in {city}.
        Open positions for a {job} in {city}, please.
        Show me jobs as {job} in {city}.""",
        """Is somebody in {city} looking for a {job}?
        I'd like to be a {job} in {city}, find me a position.""",
    ),
    _tool(
        "find_apartment search_apartments flat_search find_flat",
        """Find a flat in a city.
        Searches apartments by their rent.""",
        "city|location|where: city; max_rent|rent|price: loan",
        """Find a flat in {city} for at most {max_rent} euros.
        I need an apartment in {city} below {max_rent} euros.
        Flats in {city} up to {max_rent} euros, please.
        I want to live in {city} and can pay {max_rent} euros.
        Search apartments in {city} for {max_rent} euros.
        Is there a flat in {city} for {max_rent} euros?
        Show me apartments in {city} up to {max_rent}.
        A flat for {max_rent} euros in {city}?""",
        """I look for a flat in {city}, {max_rent} euros at most.
        Please find me an apartment in {city} for {max_rent} euros.""",
    ),
    _tool(
        "identify_song recognize_song what_song shazam",
        """Find out which song is playing.
        Recognises music.""",
        "",
        """What song is this?
        Which song is playing?
        Who sings this?
        What is the name of this song?
        Do you know this song?
        Find out what is playing.
        Tell me the title of this song.
        Whose music is this?""",
        """What are we listening to?
        Name the song that plays now.""",
    ),
    _tool(
        "get_lyrics lyrics song_text find_lyrics",
        """The words of a song.
        Finds lyrics.""",
        "song|title|name: title",
        """What are the lyrics of {song}?
        Show me the words of the song {song}.
        I want to sing {song}. What is the text?
        Lyrics of {song}, please.
        Find the text of the song {song}.
        How does the song {song} go?
        Give me the lyrics to {song}.
        What do they sing in {song}?""",
        """Tell me the words of {song}.
        I need the song text of {song}.""",
    ),
    _tool(
        "find_object locate_item where_is find_my_thing",
        """Find a thing of the user.
        Locates keys, phones and others.""",
        "thing|item|object: thing",
        """Where is my {thing}?
        I can't find my {thing}.
        Find my {thing}.
        I have lost my {thing}.
        Where did I put my {thing}?
        Help me find my {thing}.
        Locate my {thing}, please.
        Have you seen my {thing}?""",
        """Can you tell me where my {thing} is?
        I am looking for my {thing}.""",
    ),
    _tool(
        "start_coffee make_coffee brew_coffee coffee_machine",
        """Make coffee.
        Starts the coffee machine.""",
        "cups|count|number: few",
        """Make {cups} cups of coffee.
        I'd like {cups} cups of coffee.
        Brew {cups} cups.
        Coffee for {cups}, please.
        Start the coffee machine, {cups} cups.
        We need {cups} coffees.
        {cups} cups of coffee, please.
        Can you make {cups} cups of coffee?""",
        """Please prepare {cups} cups of coffee.
        How about {cups} coffees for us?""",
    ),
    _tool(
        "get_energy power_usage electricity_use energy_report",
        """How much electricity was used in a month.
        Reads the power meter.""",
        "month|period|when: month",
        """How much power did we use in {month}?
        Electricity in {month}?
        What does the meter say for {month}?
        How high was our energy use in {month}?
        Show me the electricity of {month}.
        Did we use much power in {month}?
        How many kilowatt hours was it in {month}?
        Power report for {month}, please.""",
        """Tell me how much electricity {month} took.
        What did we use of energy in {month}?""",
    ),
    _tool(
        "get_population population_of city_info how_many_people",
        """How many people live in a city.
        The population of a place.""",
        "city|place|location: city",
        """How many people live in {city}?
        What is the population of {city}?
        Is {city} a big city?
        How big is {city}?
        Tell me how many live in {city}.
        Population of {city}, please.
        How many inhabitants does {city} have?
        Do many people live in {city}?""",
        """Count the people of {city} for me.
        What number of people has {city}?""",
    ),
    _tool(
        "find_train search_train train_connection get_train",
        """Find a train between two cities.
        Searches train connections.""",
        "origin|from|start: city; destination|to|end: city",
        """Is there a train from {origin} to {destination}?
        Find a train from {origin} to {destination}.
        How do I get from {origin} to {destination} by train?
        Which trains go from {origin} to {destination}?
        I must go from {origin} to {destination} by train.
        Show me trains between {origin} and {destination}.
        A train to {destination} from {origin}, please.
        I want to take the train in {origin} and go to {destination}.
        Does a train go from {origin} to {destination}?""",
        """By rail from {origin} to {destination}: what is there?
        I need a train that brings me from {origin} to {destination}.""",
    ),
    _tool(
        "find_book get_book book_info lookup_book",
        """Find a book by its title.
        Tells whether the library has a book.""",
        "title|book|name: title",
        """Do you have the book {title}?
        Is {title} in the library?
        Find the book {title}.
        Who wrote {title}?
        I am looking for {title}.
        Look up the book {title}.
        Where do I find {title}?
        Tell me about the book {title}.
        Have you got {title}?""",
        """Is there a copy of {title}?
        See whether you have {title}.""",
    ),
    _tool(
        "reserve_restaurant book_restaurant restaurant_reservation",
        """Reserve a table in a restaurant.
        Books a restaurant for some people at a time.""",
        "restaurant|place|name: restaurant; people|guests|persons: few; time|at|when: clock",
        """Book a table at {restaurant} for {people} at {time}.
        Reserve a table for {people} at {restaurant} at {time}.
        We want to eat at {restaurant} at {time}, {people} people.
        Get us a table at {restaurant}, {people} people, {time}.
        A table for {people} at {time} at {restaurant}, please.
        {people} people, {restaurant}, {time}: book a table
        I'd like to go to {restaurant} at {time}. We are {people}.
        Can you reserve {restaurant} for {people} at {time}?""",
        """At {time} we will be {people} at {restaurant}, reserve a table.
        Please get a table for {people} people at {restaurant} for {time}.""",
    ),
    _tool(
        "buy_groceries add_groceries put_on_list shopping_add",
        """Put some pieces of something on the shopping list.
        Adds a number of things to buy.""",
        "item|product|what: items; quantity|count|number: few",
        """Put {quantity} {item} on the list.
        We need {quantity} {item}.
        Add {quantity} {item} to the shopping list.
        I have to buy {quantity} {item}.
        We're out of {item}. Put {quantity} on the list.
        {quantity} {item} on my shopping list, please.
        Note {quantity} {item} for the supermarket.
        Next time buy {quantity} {item}.""",
        """Please write {quantity} {item} on my shopping list.
        When I go shopping I want {quantity} {item}.""",
    ),
)

# Tools of which training has neither the names nor any request.
UNSEEN = (
    _tool(
        "start_dishwasher",
        "Start the dishwasher with a program.",
        "program: program",
        "",
        """Start the dishwasher with the {program} program.
        Run the {program} program of the dishwasher.
        Let the dishwasher wash on {program}.""",
    ),
    _tool(
        "rent_bike",
        "Rent a bicycle for some hours.",
        "hours: few",
        "",
        """I'd like to rent a bike for {hours} hours.
        Rent me a bicycle, {hours} hours.
        Can I have a bike for {hours} hours?""",
    ),
    _tool(
        "get_exam_grade",
        "The grade of a student in an exam.",
        "student: name",
        "",
        """Which grade did {student} get in the exam?
        Look up the exam grade of {student}.
        How did {student} do in the exam?""",
    ),
    _tool(
        "block_card",
        "Block a bank card.",
        "card_number: code",
        "",
        """Block my card {card_number}.
        Somebody stole my card {card_number}, block it.
        Please block the bank card {card_number}.""",
    ),
    _tool(
        "get_moon_phase",
        "The phase of the moon on a day.",
        "date: day",
        "",
        """What phase does the moon have on {date}?
        Is the moon full on {date}?
        Tell me the phase of the moon for {date}.""",
    ),
    _tool(
        "deploy_app",
        "Deploy an app to a server.",
        "app: app; server: server",
        "",
        """Deploy {app} to {server}.
        Please deploy the app {app} on the server {server}.
        Put {app} on {server}.""",
    ),
    _tool(
        "adopt_animal",
        "Adopt an animal from the shelter.",
        "animal: pet",
        "",
        """I want to adopt a {animal}.
        Can I adopt a {animal} from the shelter?
        We'd like to give a {animal} a home. Adopt one.""",
    ),
    _tool(
        "rate_movie",
        "Rate a movie with stars.",
        "movie: title; stars: stars",
        "",
        """Rate the movie {movie} with {stars} stars.
        I give {movie} {stars} stars.
        {stars} stars for the movie {movie}, please.""",
    ),
    _tool(
        "find_lawyer",
        "Find a lawyer in a city.",
        "city: city",
        "",
        """I need a lawyer in {city}.
        Find me a lawyer in {city}.
        Who is a good lawyer in {city}?""",
    ),
    _tool(
        "measure_heart_rate",
        "Measure the heart rate of a patient.",
        "patient: name",
        "",
        """Measure the heart rate of {patient}.
        How fast does the heart of {patient} beat?
        What is the heart rate of the patient {patient}?""",
    ),
    _tool(
        "paint_wall",
        "Paint the wall of a room in a colour.",
        "room: room; color: colour",
        "",
        """Paint the wall of the {room} {color}.
        The wall in the {room} should be {color}, paint it.
        I want a {color} wall in the {room}.""",
    ),
    _tool(
        "donate",
        "Donate money to an organisation.",
        "organisation: company; amount: amount",
        "",
        """Donate {amount} euros to {organisation}.
        I'd like to donate {amount} euros to {organisation}.
        Give {amount} euros to {organisation} as a donation.""",
    ),
)
