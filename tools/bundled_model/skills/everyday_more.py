"""More ways of asking for the tools of every day, and requests that only sound as if one of them could help.

The keys are the first names of the tools; the requests use the same placeholders as those of the table.
"""

from __future__ import annotations

# Further requests by the first name of the tool, one a line.
MORE_ASKS: dict[str, str] = {
    "get_weather": """{city}, rain?
        We want to have a picnic in {city} this afternoon. Will it stay dry?
        I'm packing for {city} and can't decide between shorts and a coat.
        sunny in {city}??
        Would I be cold in {city} wearing just a T-shirt?
        My sister says it is pouring in {city}. Is she right?
        Sunglasses or rubber boots for {city}?
        Could you please let me know what it's like outdoors in {city} today?
        Is it windy in {city} right now?
        I hang my washing outside in {city}. Good idea today?
        In {city}, do I have to expect fog this morning?""",
    "get_time": """{city}, how late?
        My boss is in {city}. Is she already at her desk or still in bed?
        Is it past midnight in {city}?
        When it is noon here, I never know: how late do they have it in {city}?
        Have people in {city} had lunch yet?
        I always mix it up. Is {city} ahead of us, and how late is it there?
        Morning or evening in {city}?
        Sorry to bother you, but what do watches in {city} show?
        Before I ring Grandma in {city}: how late is it over there?""",
    "set_alarm": """I keep missing the bus, please get me out of bed by {time}.
        {time}, up and out of bed, please!
        Could you make some noise at {time} so that I get up?
        I sleep like a stone. Be loud at {time}.
        I've an exam tomorrow and have to be on my feet at {time}.
        Tomorrow I start work early: get me up at {time}.
        My night ends at {time}, make sure of it.
        I'm taking a nap, but {time} is the latest that I may sleep.
        Would you be so kind as to get me up at {time} tomorrow?
        up at {time} pls""",
    "set_timer": """Eggs are in the water, shout in {minutes} minutes.
        {minutes} minutes from now, give me a signal.
        I'm putting the bread in. {minutes} minutes, please!
        {minutes} min, go!
        My tea has to stand for {minutes} minutes, call out when it is ready.
        We play for exactly {minutes} minutes, tell us when it's over.
        {minutes} minutes of rest, then I have to go on. Say when.
        The kids may watch TV for {minutes} minutes, please keep an eye on it.
        I'd be grateful if you could ping me after {minutes} minutes.""",
    "add_reminder": """I always forget it: {text}, on {day}. Help me think of it.
        {day}: {text}. Please tell me when the day comes.
        My memory is awful. Ping me on {day} so that I {text}.
        I've promised to {text} on {day} and must not forget it.
        When it's {day}, tell me that I have to {text}.
        On {day} I need to {text}, and I know I won't think of it by myself.
        Would you please get back to me on {day}? I have to {text} then.
        ping me {day}: {text}
        My wife will be cross if I don't {text} on {day}. Help me think of it.""",
    "send_message": """Tell my friend {to}: {text}
        Can you pass this on to {to}: {text}
        {to} has to know this: {text}
        My hands are full. Could you tell {to} "{text}"?
        {text} - that's what I'd like {to} to hear.
        Could you shoot {to} a quick line? "{text}"
        I promised to keep {to} informed, so: {text}
        to {to}: {text}
        {to} is worried about me. Say this: {text}""",
    "send_email": """{to} has asked about {subject}, so please answer from my inbox.
        I owe {to} a reply about {subject}. Do it for me, would you?
        Get {to} a letter by internet, it's about {subject}.
        Please contact {to}, it's about {subject}.
        About {subject}: drop {to} a few lines.
        {to} is still waiting to hear from me about {subject}.
        Let {to} have something in writing about {subject}.
        Could you kindly get in touch with {to} about {subject}?
        to {to}, re: {subject}""",
    "call_contact": """I have to ask {name} something, get me a line.
        Get hold of {name}, I want to talk right now.
        Let me talk to {name}, it's urgent.
        {name}, on the line, quick!
        Can you connect me with {name}?
        I'd rather talk to {name} than write.
        My hands are dirty. Could you ring {name} for me?
        I haven't heard {name} in ages. Ring them, please.
        Would you mind ringing {name}?""",
    "turn_on_light": """I keep bumping into chairs in the {room}, it's black as night there.
        {room} is pitch dark, help!
        I just bumped my toe in the dark {room}.
        It should be nice and bright in the {room} when I get there.
        I want to read in the {room}, but it's getting dark.
        {room}: brighter, please
        It's gloomy in the {room}, could you change that?
        The children are afraid of the dark in the {room}.
        I'm coming home late, so the {room} shouldn't be dark.""",
    "turn_off_light": """Nobody is in the {room}, and it is all lit up.
        We're wasting power, it's still bright in the {room}.
        Bedtime! Nothing should shine in the {room} any more.
        I can't sleep, it's so bright in the {room}.
        {room}: dark, please
        Did I leave something burning in the {room}? Make it dark.
        The baby is asleep in the {room}, so make it dark in there.
        Would you please make the {room} dark?
        Everyone has left the {room}, so it can go dark.""",
    "play_music": """I dance best to {artist}, so let me hear it.
        Something by {artist}, please!
        Let's hear some {artist}.
        {artist}, loud!
        It's so quiet here. Do you have {artist}?
        We're cooking and would love {artist} in the background.
        My mother adores {artist}, let her hear something.
        Could I hear {artist} while I work?
        {artist} would be just right for this evening.""",
    "stop_music": """Silence, please.
        Quiet now!
        My head hurts, no more of that noise.
        I'm on the phone, make it quiet.
        Shut it off, I can't hear myself think.
        That's enough of this band.
        Hush!
        The baby fell asleep, so no more singing, please.
        Would you be so kind and make it quiet in here?""",
    "set_volume": """I can hardly hear it, go to {level} percent.
        The neighbours complain, {level} percent is enough.
        sound at {level} percent, please
        The sound should be neither more nor less than {level} percent.
        Grandpa is nearly deaf. Give him {level} percent.
        The baby sleeps, so down or up to {level} percent, please.
        Could we have the sound at {level}?
        sound {level}
        My ears! {level} percent, not more.""",
    "set_temperature": """I'm freezing in the {room}, make it {degrees}.
        I'd be happiest with {degrees} in the {room}
        It should be {degrees} in the {room} when we come home.
        {degrees} is what we like in the {room}.
        The baby sleeps in the {room}, and {degrees} would be right for her.
        Would you please see that the {room} has {degrees}?
        Grandma is sitting in the {room} and wants {degrees}.
        We are sweating in the {room}, {degrees} is enough.
        Could the radiator in the {room} go to {degrees}?""",
    "lock_door": """I'm going to bed. Is the {door} shut properly? If not, see to it.
        Turn the key in the {door}.
        I left in a hurry and the {door} is still open to anybody.
        {door}: key, please
        Make sure that no burglar gets through the {door}.
        Bolt the {door}, please.
        We're away for the weekend, so see that nobody gets in through the {door}.
        Could you bolt the {door} behind me?""",
    "open_blinds": """Good morning! Let some daylight into the {room}.
        I'd like some sun in the {room}.
        The {room} needs daylight.
        Why is it so dark in the {room} at noon? Let the sun in.
        {room}: let the day in
        My plants in the {room} need more sun.
        Let us have daylight in the {room}, please.
        I want to see the garden from the {room}.""",
    "start_vacuum": """There are crumbs all over the {room}.
        The dog has lost hair all over the {room}.
        {room} floor, please
        Guests are coming and the {room} looks terrible, do the floor.
        I spilled cornflakes in the {room}. Can you get rid of them?
        Somebody ought to sweep the {room}.
        The floor in the {room} is covered with cat hair.
        Could you please do the floor of the {room} while I'm out?
        Sweep the {room}, please.""",
    "translate": """"{text}" in {language}, please
        My neighbour only understands {language}. How would I tell him "{text}"?
        What would a {language} speaker say for "{text}"?
        I need "{text}" on a card, in {language}.
        How does "{text}" sound in {language}?
        I don't know a word of {language} and want to say "{text}".
        {language}: "{text}"?
        Could you put "{text}" into {language} for me?
        In {language}, what's "{text}"?""",
    "calculate": """{expression}?
        I'm bad with numbers. {expression}?
        My son's homework is {expression}. What should he get?
        {expression} makes what?
        I forgot my times tables, so what's {expression}?
        Quick, {expression}!
        What do I get for {expression}?
        I got lost with {expression}, what's the answer?
        Would you please solve {expression}?""",
    "convert_currency": """I brought {amount} {from_currency} home. What will the bank give me in {to_currency}?
        I have {amount} {from_currency} in my pocket. How many {to_currency} would that be?
        The hotel wants {amount} {from_currency}. What's that in {to_currency}?
        If I swap {amount} {from_currency} for {to_currency}, how much do I end up with?
        {amount} {from_currency} -> {to_currency}
        I only think in {to_currency}. How much is {amount} {from_currency}?
        My aunt sent me {amount} {from_currency}, which I need as {to_currency}.
        In {to_currency}, what would {amount} {from_currency} be?
        Is {amount} {from_currency} a lot when you count in {to_currency}?""",
    "convert_units": """They wrote {value} {from_unit}, but here everybody reckons in {to_unit}.
        I only understand {to_unit}. How much is {value} {from_unit}?
        The manual says {value} {from_unit}, but I need it in {to_unit}.
        {value} {from_unit} -> {to_unit}
        In {to_unit}, how much would {value} {from_unit} be?
        My American cousin speaks of {value} {from_unit}. What's that in {to_unit}?
        Put {value} {from_unit} another way, please, in {to_unit}.
        I can't picture {value} {from_unit}. Say it in {to_unit}.""",
    "search_web": """Is there anything online about {query}?
        I'm curious about {query}, see what people say online.
        Let's go online and see about {query}.
        {query}: anything online?
        What turns up online when you type in {query}?
        I'd like some links on {query}.
        My friend told me about {query}. What do people say of it online?
        Please check online for {query}.
        I can't stop thinking of {query}, show me some links.""",
    "search_books": """I need something to read on {topic}.
        Can you recommend a good read on {topic}?
        Have any authors written on {topic}?
        {topic}, something to read?
        I'd love a novel or a guide on {topic}.
        For my bedside table: something on {topic}, please.
        What should one read on {topic}?
        Which titles on {topic} are on your shelves?
        My father turns sixty and loves {topic}. What could he read?""",
    "find_restaurant": """{food}, {city}, hungry!
        We're starving in {city}. Where do they serve {food} food?
        My husband craves {food} food, and we are in {city}.
        Where do people in {city} go for {food} food?
        I fancy {food} tonight, somewhere in {city}.
        Is there good {food} food to be had in {city}?
        I have a date in {city} and she loves {food} food. Where should we go?
        Can you recommend something {food} in {city} for dinner?
        In {city}, who cooks the best {food} food?""",
    "book_table": """Dinner at {time}, {people} people.
        {people} of us, {time}, for dinner, please
        We're coming at {time}, all {people} of us, and want to sit together.
        It's our anniversary: dinner for {people} at {time}, please.
        I'd like to dine at {time}, we are {people}.
        Could you hold seats for {people} guests at {time}?
        At {time} I'm taking the family out, {people} altogether. Make sure that they expect us.
        Can {people} people still get dinner at {time}?""",
    "book_hotel": """{city}, {nights} nights, just me
        I'll be in {city} for {nights} nights and have nowhere to sleep.
        Somewhere to stay in {city}, please, {nights} nights.
        We need beds in {city} for {nights} nights.
        My conference is in {city}. Where can I sleep for {nights} nights?
        For {nights} nights I need a roof over my head in {city}.
        Could you get us accommodation in {city} for {nights} nights?
        My parents visit {city} and want to sleep there {nights} nights. Please see to it.""",
    "book_flight": """{origin} to {destination}, by plane
        Get me in the air from {origin} to {destination}.
        I need a seat on a plane from {origin} to {destination}.
        My mother is ill in {destination}. Get me there from {origin} by plane.
        I don't want to drive from {origin} to {destination}, flying is quicker.
        Could you get us plane tickets to {destination}? We start from {origin}.
        We'd like to take off in {origin} and land in {destination}.
        Fly me to {destination}, I'm in {origin}.""",
    "call_taxi": """I've had too much wine, somebody please drive me to the {destination}.
        A car with a driver to the {destination}, please.
        I need somebody with a car who brings me to the {destination}.
        car and driver to the {destination}, now
        I missed the last bus and have to get to the {destination}.
        My leg is broken, so I need to be driven to the {destination}.
        Could you send a car? I have to go to the {destination}.
        I'm too tired to walk to the {destination}, send a driver.
        Get someone to pick me up and bring me to the {destination}.""",
    "get_directions": """{start} to {end}, left or right?
        I'm sitting in my car in {start} and don't know how to drive to {end}.
        Which turns do I take from {start} to {end}?
        I'm driving from {start} to {end} tomorrow. Left or right, I have no clue.
        I've no map with me: {start} to {end}, how do I drive?
        Where do I turn when I drive from {start} to {end}?
        I always get lost between {start} and {end}. Which roads do I take?
        Could you kindly explain how one drives from {start} to {end}?
        To {end}, please, starting in {start}.""",
    "get_distance": """{start} - {end}, how many km?
        How many miles do I put on my car from {start} to {end}?
        Could one walk from {start} to {end} in a day, or is it too long?
        How long is the way from {start} to {end} in kilometres?
        Is it more than 100 km from {start} to {end}?
        My car has little petrol. How many kilometres from {start} to {end}?
        {end} is how many kilometres away from {start}?
        How many kilometres lie between {start} and {end}?""",
    "get_news": """Has anything happened with {topic}?
        {topic}: what happened today?
        I haven't read a paper in days. What's going on with {topic}?
        What is on the front page on {topic}?
        Anything in the papers today on {topic}?
        I've been on holiday. Did I miss anything about {topic}?
        {topic}, anything since yesterday?
        What do reporters say about {topic} this morning?
        Please tell me what happened with {topic} today.""",
    "get_stock_price": """{company}, up or down today?
        I put my savings into {company}. Am I rich yet?
        What do investors pay for {company} today?
        How is {company} trading?
        Did {company} fall on Wall Street today?
        Is now a good moment to buy into {company}? What does it trade at?
        {company} on the exchange?
        My uncle wants to sell his {company} papers. What would he get for one?
        At what value is {company} trading?""",
    "define_word": """{word}? Never heard of it.
        My teacher used "{word}". What is that supposed to be?
        What on earth is "{word}"?
        Can you explain "{word}" to me?
        "{word}" - what's that?
        I just read "{word}" in the paper and didn't understand it.
        What are people saying when they say "{word}"?
        Could you please explain to me the term {word}?
        I don't get it, what's {word}?""",
    "get_recipe": """{dish}, how?
        How do you make {dish}?
        My kids want {dish}, but I have never made it.
        What goes into {dish}?
        I'd love to have {dish} on the table tonight. Where do I begin?
        Step by step, please: {dish}
        My grandmother's {dish} was the best. How is it made?
        Which ingredients do I have to buy for {dish}?
        Could you explain to me how one makes {dish}?""",
    "get_calories": """Will {food} make me fat?
        I'm watching my weight. How bad is {food}?
        How much energy does {food} have?
        kcal of {food}?
        Does {food} make one fat, and how much so?
        How many kcal do I eat with {food}?
        I'd like some {food}, but I'm trying to lose weight. How heavy is it?
        My doctor told me to count kcal. What do I count for {food}?""",
    "add_to_shopping_list": """{item} is finished.
        {item}, don't let me forget it at the shop.
        We've run out of {item}.
        I just used up the {item}.
        {item} would be good to have at home again.
        There is no {item} left in the kitchen.
        When I'm at the store I have to think of {item}.
        My husband ate all the {item}. We need some more.
        Could you please write down {item} for the market?""",
    "add_task": """One more thing that I have to get done: {title}
        I really ought to {title} some time. Keep track of it.
        I mustn't forget to {title}. Put it with the other things I have to do.
        {title}: still open, write it down
        Another job for me: {title}
        Something else to get done, no date: {title}
        My boss wants me to {title}. Put it with my other jobs.
        Please write down for me that I need to {title}.""",
    "create_note": """Jot this down: {text}
        Keep this for me: {text}
        Please remember this for later: {text}
        Before I forget it: {text}. Put that on paper.
        "{text}" - please jot that down.
        I might need this later, so keep it: {text}
        Scribble down for me: {text}
        My memory is bad. Keep the words "{text}" for me.""",
    "create_event": """{title}, {day}, {time}, put it in my diary
        Pencil in the {title} for {day} at {time}.
        I've just been invited: {title}, {day} at {time}. Put it down.
        On {day} at {time} is the {title}, put it in my diary.
        We agreed on {day}, {time}, for the {title}. Enter it for me.
        The {title} will be on {day}, starting at {time}. Save the date.
        Could you please enter the {title} for {day}? It starts at {time}.
        At {time} on {day} I'll be at the {title}, so mark that slot.""",
    "list_events": """{day}, anything on?
        Is there anything planned for {day}?
        Could I go fishing on {day}, or do I have something on?
        A friend wants to meet me on {day}. Do I have time?
        How full is my {day}?
        What's coming up on {day}?
        Where do I have to be on {day}?
        my {day}?
        Before I say yes: is {day} already taken?
        What does my diary say for {day}?""",
    "book_appointment": """{with} on {day}, any time will do
        Could the {with} see me on {day}?
        I have to go to the {with}, {day} would suit me.
        See whether the {with} is free on {day}, and put me down.
        I've put it off for months. {day}, the {with}, no excuse.
        Get me in at the {with} on {day}.
        {day} is my only day off, so get me to the {with} then.
        Would you please arrange a visit to the {with} on {day}?
        My son has to see the {with}, and {day} would be best.""",
    "track_package": """{tracking_number}, where is it now?
        I'm still waiting for {tracking_number} from the post.
        The postman didn't come. What about {tracking_number}?
        {tracking_number} should have come by post days ago.
        How far has {tracking_number} travelled?
        Has the courier got {tracking_number} yet?
        My present for Grandma has the number {tracking_number}. Will it get there soon?
        When will the postman bring {tracking_number}?
        Could you kindly find out where {tracking_number} has got stuck?""",
    "get_order_status": """{order_id}: sent yet?
        I bought something from you, {order_id}. What's happening with it?
        Any progress on my purchase {order_id}?
        How far are you with {order_id}?
        I paid for {order_id} last week. Has it gone out?
        Is my purchase {order_id} still being packed?
        What's up with {order_id}? I bought it weeks ago.
        Are you still working on my purchase {order_id}?""",
    "cancel_order": """I don't want to buy {order_id} any more.
        {order_id}: stop, please
        I bought the wrong thing, forget {order_id}.
        Don't ship {order_id}!
        My husband has already got one, so call off {order_id}.
        Please stop {order_id} before it goes out.
        I clicked by accident. Can you take back {order_id}?
        I've found it cheaper elsewhere, so scrap {order_id}.""",
    "refund_order": """The customer is angry about {order_id}, pay back {amount} euros.
        {order_id}: {amount} euros back
        {amount} euros too much were paid for {order_id}.
        Pay back {amount} euros on {order_id}, the goods were broken.
        For {order_id} I should get {amount} euros back, it never arrived.
        Could you reimburse {amount} euros for {order_id}?
        We charged {amount} euros too much for {order_id}, so pay it back.
        {order_id} came back to us, reimburse {amount} euros.""",
    "search_products": """Got any {query}?
        I'd like to buy {query}. What do you have?
        {query}, which ones are there to buy?
        Which {query} do you have on offer?
        My daughter wants {query} for her birthday. What have you got?
        Let me see your {query}.
        Can I get {query} from you?
        I need {query}, but I don't know which to take. What is there?""",
    "get_balance": """Is there anything left on my {account} account?
        {account} account, how much left?
        Can I pay the rent from my {account} account?
        Has my {account} account gone into the red?
        I want to buy a bike. Does my {account} account allow it?
        How rich am I on my {account} account?
        How much is left on the {account} account this month?
        Could you look how much there is on my {account} account?""",
    "transfer_money": """From my account to {to}: {amount} euros
        I lent nothing, I borrowed: {amount} euros go back to {to} tonight.
        {to} paid for my lunch. Give back {amount} euros.
        I lost a bet against {to}, {amount} euros.
        {to} needs {amount} euros, let it go out today.
        I bought {to}'s old bike for {amount} euros, so please wire that.
        Would you kindly wire {amount} euros to {to}?
        Wire {to} {amount} euros.
        {to} is still waiting for my {amount} euros.""",
    "create_invoice": """{customer} owes us {amount} euros, put that on paper.
        Ask {customer} in writing for {amount} euros.
        We worked for {customer}, that makes {amount} euros. Put it on paper and send it.
        {amount} euros, to be paid by {customer}. Make out the paper.
        Please make out the paperwork for {customer}: {amount} euros to be paid
        We've delivered everything, now {customer} has to pay us {amount} euros.
        The job for {customer} is done, so ask for our {amount} euros.""",
    "get_user": """{name}, registered?
        Is there somebody registered as {name}?
        What do you have on {name} in the system?
        {name} can't log in. Let me see what we have on them.
        Let me see the profile of {name}.
        I have {name} on the line. Open the profile, please.
        Check in our system who {name} is.
        Does {name} have a login here?""",
    "create_user": """{name} needs a login, {email}.
        We have somebody new: {name}, {email}
        Sign up {name}, mail {email}.
        {name} ({email}) wants to join our site.
        {email} belongs to {name}, who has no login yet.
        Please give {name} access to the system with {email}.
        From today {name} should be able to log in with {email}.
        My colleague {name} wants to use the app, {email} is where to reach them.""",
    "delete_user": """{name} quit, so no more login.
        {name} should not be able to log in any more.
        Throw {name} out of the system.
        {name} wants all personal data gone from our system.
        {name} has been fired. Take the login away.
        Kick {name} off the site.
        We don't want {name} in our system any longer.
        {name} asked us to erase the profile.""",
    "read_file": """Put {path} on my screen.
        Let me see {path}.
        What have I written in {path}?
        I've forgotten what's inside {path}.
        Can you show me what {path} says?
        Look into {path} for me.
        My colleague sent {path}. What's in there?
        Would you please show {path} on the screen?
        {path}: show""",
    "write_file": """Keep "{content}" in {path}.
        "{content}" goes into {path}.
        {path}: "{content}"
        I want {path} with just this in it: "{content}"
        Store "{content}" under {path}.
        Make {path}, and in it put "{content}".
        Could you put down "{content}" in {path} for me?
        In {path}, please put the words "{content}".""",
    "delete_file": """{path} has to vanish.
        Shred {path}.
        I have no more use for {path}.
        My disk is full, get rid of {path}.
        Bin {path}, please.
        {path}: away with it
        Nobody must ever see {path}, make it vanish.
        Chuck {path} into the trash.
        {path} is old rubbish, away with it.""",
    "list_files": """{folder}, what's in it?
        What have I put in {folder}?
        Is there anything in {folder}?
        What's lying around in {folder}?
        Look inside {folder} for me.
        I'm searching for a letter. What do I have in {folder}?
        What does {folder} hold?
        My disk is full, what is there in {folder}?""",
    "run_code": """{code} - what comes out?
        Try {code} for me.
        What do I see when I type {code}?
        Does {code} give an error?
        I can't try it myself, what comes out of {code}?
        What will {code} give?
        Let the computer do {code}
        I wrote {code} and would like to see the result.""",
    "query_database": """{table}: how many records?
        Do we have a lot in {table}?
        How much is stored in {table} by now?
        How many records does {table} have?
        How full is {table}?
        My boss wants to know how many lines there are in {table}.
        {table} - does it hold thousands of records or just a few?
        Is {table} still empty, or how many records does it have?""",
    "restart_server": """{server} is stuck.
        {server} is frozen. Kick it.
        Shut down {server} and bring it back up.
        bounce {server}
        {server} has been slow since the update. Boot it afresh.
        Turn {server} off and on, please.
        Nothing works on {server}, boot it afresh.
        Could you please power-cycle {server}?""",
    "server_status": """{server}, alive?
        Is {server} still breathing?
        Did {server} crash?
        Our customers see error pages. Is {server} down?
        Does {server} still answer?
        Nobody can log in. Is {server} all right?
        Could you look whether {server} is healthy?
        I can't get to {server}. Is it me or is it down?""",
    "create_ticket": """{title}. Please let support know.
        I have a complaint for support: {title}
        Somebody from IT should look at this: {title}
        Support should deal with it: {title}
        {title}. Could somebody take care of that?
        Something is wrong here, please pass it to the technicians: {title}
        {title}, and I need help from IT.
        Tell the help desk that {title}.""",
    "close_ticket": """{ticket} is fixed.
        We fixed {ticket}, tick it off.
        {ticket}: fixed and settled
        The customer is happy, {ticket} is settled.
        Nothing left to do on {ticket}.
        The trouble behind {ticket} is gone.
        I finished work on {ticket} this morning.
        I dealt with {ticket} myself.""",
    "assign_ticket": """{ticket} -> {person}
        {person} knows about such things, so hand over {ticket}.
        Hand {ticket} over to {person}.
        {person} takes care of {ticket}.
        I'm on holiday, {person} has to look after {ticket}.
        Let {person} handle {ticket}.
        {ticket} is a job for {person}.
        Would {person} please deal with {ticket}? Put that down.""",
    "get_movie_info": """{title}, any good?
        Who is in {title}?
        Is {title} worth watching?
        All my friends rave over {title}. What happens in it?
        Who made {title}, and who acts in it?
        How long does {title} last, and who acts in it?
        Is {title} too scary for children?
        What's the plot of {title}?
        Before we go to the cinema: what kind of story is {title}?""",
    "play_video": """{title} on the big screen, please
        Lights out, curtain up: {title}!
        Tonight we'd like to see {title}. Go ahead!
        Popcorn is ready, {title} please.
        The kids want to see {title}.
        I'd love to see {title} now.
        Get {title} going on the TV.
        Could we see {title} now?""",
    "get_score": """{team}, won or lost?
        Did {team} lose again?
        I fell asleep after half-time. How did {team} do?
        How many goals did {team} get?
        Should I be happy or sad as a fan of {team}?
        Are {team} through to the final?
        My dad supports {team}. How did they do last night?
        Who won, {team} or the others?
        How did it go for {team} yesterday?""",
    "get_joke": """I'm bored. Say something funny.
        Something funny, please!
        Be funny.
        I had a terrible day. Make me smile.
        Do you know any good ones? I need to smile.
        My kids are crying. Say something to make them giggle.
        Do you have a sense of humour? Prove it.
        Crack me up!
        Could you amuse me for a moment?""",
    "roll_dice": """My turn in Monopoly! {count} of them, please.
        We lost the cubes of our board game. Toss {count} for us.
        I have to toss {count} cubes in this game. Do it for me.
        {count} cubes with six sides, toss them
        Toss {count} six-sided cubes.
        It's my turn, and I may toss {count} of them. How many dots do I get?
        We're playing Yahtzee. Toss {count} for me.
        How many dots do I get with {count} cubes?""",
    "random_number": """{low} to {high}, you choose
        Say any figure from {low} to {high}.
        We can't decide. Just say something between {low} and {high}.
        Think of something between {low} and {high}.
        Lottery! Somewhere from {low} to {high}, please.
        Anything between {low} and {high}, surprise me.
        Who wins the prize? The slips go from {low} to {high}, draw one.
        Guess something from {low} up to {high}.""",
    "generate_password": """I need a secret of {length} characters for my login.
        {length} characters that nobody can guess, please
        The site wants {length} characters that hackers won't guess.
        My login was hacked. I need something new with {length} characters.
        Think up {length} letters and digits that nobody will guess.
        For my new bank login I need {length} secret characters.
        What could I use to log in? It has to have {length} characters.""",
    "open_website": """{url}, on my screen
        I want to be on {url}.
        I'd like to see {url}.
        My friend told me to look at {url}.
        Let me surf to {url}.
        Could you get {url} up on the screen?
        Load {url}.
        What does {url} look like?
        I want to buy something on {url}, get me there.""",
    "get_sunrise": """How long is it light in {city}?
        {city}, dark when?
        When will it be dark in {city} tonight?
        When does dawn break in {city}?
        We want to watch the dawn in {city}. When do we have to be there?
        I don't like to drive in the dark. Until when is there daylight in {city}?
        When does the day begin in {city}, I mean dawn?
        When is dusk in {city}?""",
    "get_air_quality": """{city}, smog?
        Can one breathe in {city} today?
        Is there a lot of smog over {city}?
        My lungs are weak. Can I go out in {city}?
        How much fine dust is there in {city}?
        Should I wear a mask because of the fumes in {city}?
        My son coughs a lot. May he play outdoors in {city} today?
        Are the fumes in {city} bad at the moment?""",
    "train_departures": """{station}, next one out?
        I've bought a rail ticket in {station}. When does something leave?
        I've missed mine. What goes next from {station}?
        What's on the board on the platform in {station}?
        Which rail connections leave {station} in the next hour?
        When does the next express leave from {station}?
        I'm waiting in {station} and nothing comes. When does the next one go?""",
    "find_parking": """We have two cars. Where can they stand while we are at the {place}?
        I'm driving to the {place} and don't know where to stop.
        {place}, where to leave my vehicle?
        I've been driving in circles around the {place} with nowhere to stop.
        Can one leave a camper by the {place}?
        I need somewhere to leave my van by the {place}.
        Is there a garage close to the {place} where I can leave my van?
        Could you tell me where to leave our van while we visit the {place}?""",
    "find_nearby": """{kind}, closest?
        Is there a {kind} around here?
        Which {kind} is closest to me?
        I'm new in town and need a {kind}.
        How far is the closest {kind} from here?
        Where around here can I find a {kind}?
        Quick, I have to get to a {kind}. Which is closest?
        Sorry, do you happen to know a {kind} around here?""",
    "log_workout": """{activity}, {minutes} minutes, done!
        I've just done {minutes} minutes of {activity}. Put it down.
        {minutes} minutes of {activity} today, and I'm proud of it. Write it down.
        Phew, {minutes} minutes of {activity}. Please keep track.
        Finished with {activity} after {minutes} minutes, write that down.
        My coach wants to know it all: {activity}, {minutes} minutes.
        For my sports diary: {minutes} minutes of {activity}
        This morning I managed {minutes} minutes of {activity}, put that in my fitness diary.""",
    "water_plants": """The {zone} is thirsty, {minutes} minutes should do.
        It hasn't rained on the {zone} in days, {minutes} minutes of the hose please.
        {zone}, {minutes} minutes, wet
        Sprinkle the {zone} for {minutes} minutes.
        The {zone} looks awfully dry. Run the hose for {minutes} minutes.
        Could the {zone} get a shower of {minutes} minutes?
        I'm away, so please hose down the {zone} for {minutes} minutes.
        It's so hot that the {zone} needs {minutes} minutes of the hose.""",
    "feed_pet": """{pet}, {grams} grams, now
        The {pet} is begging. {grams} grams into the bowl.
        The {pet} has had nothing since this morning, {grams} grams please.
        I promised the {pet} {grams} grams for breakfast.
        I'm home late, so the {pet} needs {grams} grams.
        Breakfast time for the {pet}, {grams} grams will do.
        Dinner for my {pet}: {grams} grams
        The {pet} looks so hungry! Let it eat {grams} grams.""",
    "plant_info": """{plant}: sun or shade?
        My {plant} has yellow leaves. What does it need?
        How much water does a {plant} like?
        When does a {plant} bloom?
        Does a {plant} like shade?
        I'd like to grow a {plant} on my balcony. What should I know?
        Is the {plant} poisonous for cats?
        How tall does a {plant} get?""",
    "read_sensor": """{sensor}: how high?
        What is {sensor} showing?
        What does {sensor} report right now?
        The boiler makes noises. What do you get from {sensor}?
        I'm worried about {sensor}. What's the latest reading?
        Latest reading of {sensor}, please.
        How high is {sensor} at the moment?
        Please check what {sensor} shows now.""",
    "take_photo": """{camera}, what's happening there?
        I hear noises in the {camera}. What's going on there?
        Let me see the {camera} from here.
        Is somebody in the {camera}? I want to see it.
        Snap the {camera} for me.
        I'm at work and want to see what the cat does in the {camera}.
        Show me what the {camera} looks like right now.
        Is everything all right in the {camera}? Let me see.""",
    "generate_image": """Paint {prompt}.
        I'd love to see {prompt} on paper.
        Sketch {prompt} for me.
        {prompt}, as a painting
        For my daughter's birthday card: paint {prompt}.
        Can you paint? I want {prompt}.
        How would {prompt} look? Paint it for me.
        I need a poster showing {prompt}.""",
    "summarize_text": """{document}, in a nutshell?
        {document} in three sentences, please
        What is {document} about, in a nutshell?
        My boss wants to hear what {document} says in two minutes.
        tl;dr {document}
        I'm too lazy to read all of {document}. Just the gist.
        What's the gist of {document}?
        In one minute: what does {document} say?
        I haven't got an hour for {document}, give me just the gist.""",
    "print_document": """{document}, black on white
        I want to hang {document} on the wall, so put it on paper.
        I need a hard copy of {document}.
        My grandmother has no computer, so put {document} on paper for her.
        {document}: hard copy
        Could I have {document} on paper?
        I have to sign {document} with a pen, so I need it on paper.
        Please put {document} on paper, in black and white.""",
    "share_file": """{with} wants to see {file}.
        {with} should be able to see {file}.
        {file} -> {with}
        {with} can't open {file}, please fix that.
        {with} and I work on {file} together, so let them in.
        Make {file} visible for {with}.
        {with} keeps asking me for {file}.
        Would you let {with} have {file}?""",
    "get_contact": """{name}, which number?
        How do I get in touch with {name}?
        I've lost the number of {name}.
        Where can I reach {name}?
        Have we got a mobile or something for {name}?
        I need {name}'s mobile, do you have it?
        What do I have to dial for {name}?
        Under which number do I get {name}?""",
    "check_stock": """{product}: any left?
        {product}: are the shelves full or bare?
        How many {product} do we still have?
        A customer wants {product}. Have we got enough?
        Do we have to order {product} again, or are there enough?
        Are there any {product} on the shelves?
        How low are we on {product}?
        A school wants {product} by the dozen, can we supply that?""",
    "get_price": """{product}, how much?
        How deep must I reach into my pocket for {product}?
        What do you take for {product}?
        Are {product} cheap?
        I have 20 euros. Is that enough for {product}?
        What do you charge for {product}?
        How much money do I need for {product}?
        What do {product} go for these days?""",
    "place_order": """{quantity} {product}, please, as soon as possible
        {quantity} {product} for us, quick!
        We've nearly run out, so have {quantity} {product} delivered.
        Have {quantity} {product} delivered to my house.
        I'll take {quantity} {product}.
        Our new office is empty. Have {quantity} {product} sent there.
        My customer wants {quantity} {product}, so get them for me.
        Would you please get me {quantity} {product}?""",
    "get_birthday": """{name}, how old, and when is the party?
        When does {name} turn a year older?
        I want to buy {name} a present. When is the big day?
        When do I have to sing for {name} and bring candles?
        When do I owe {name} a cake?
        How soon is {name}'s big day?
        I'm ashamed, but when does {name} turn a year older again?
        When does {name} celebrate getting older?""",
    "days_until": """{date}, how long still?
        I can't look forward to {date} yet, or is it soon? How long?
        How long do I have to wait for {date}?
        Is {date} still far off?
        My kids can't wait for {date}. How long do they have to?
        How much time is left before {date}?
        Will it take long till {date}?
        I have to finish by {date}. How long do I have?""",
    "get_holidays": """{country}, when is everything shut?
        When do people in {country} have a day off?
        I travel to {country} on business. When are the offices shut?
        My friend works in {country}. When is she off?
        Which national days are there in {country}?
        When are the banks in {country} closed?
        When is no school in {country}?
        We have customers in {country}. When do they not work?""",
    "country_info": """{country}, what should I know?
        What's the capital of {country}?
        My son has to write a school report on {country}.
        Who governs {country}, and how large is it?
        How large is {country}?
        What do they speak in {country}, and what is the capital?
        I'm moving to {country} and know nothing of it.
        Where does {country} lie, and how many people live there?""",
    "send_invitation": """{name} must be at the {event}.
        {event}: {name} too
        I'd love {name} to be at the {event}.
        Does {name} know about the {event}? I want them to come.
        We forgot {name}! Please ask them to the {event}.
        Put {name} on the guest list for the {event} and let them know.
        Would you ask whether {name} wants to come to the {event}?
        It would be a pity if {name} missed the {event}, so ask them.""",
    "set_language": """{language} in this app, please!
        Speak {language} with me from now on.
        I don't read English well, can the buttons be in {language}?
        My grandmother wants to use this, but she only knows {language}.
        Can I have all this in {language}?
        Everything in {language}, please
        Could you show all the buttons in {language}?
        I'm learning {language}, so let me use this app in it.""",
    "rename_file": """{old} -> {new}
        {old} should be called {new}.
        From now on {old} is called {new}.
        I made a typo: {old} should have been {new}.
        Could {old} be called {new} instead?
        Instead of {old} I want it to be called {new}.
        My boss wants {old} to be called {new}.""",
    "get_flight_status": """{flight_number}, on time?
        My mother sits in {flight_number}. When does she land?
        Has {flight_number} taken off?
        I'm picking somebody up from {flight_number}. Is it on time?
        Is {flight_number} in the air already?
        {flight_number}, landed?
        Do I have to hurry to the airport, or is {flight_number} behind time?
        I'm at the airport waiting for {flight_number}. How long still?
        Which gate does {flight_number} use, and is it on time?""",
    "calculate_tip": """{bill} to pay, {percent} percent for the nice lady who served us, how much is that?
        The service was nice, I'll give {percent} percent on {bill}. How much extra?
        {percent}% for the waitress on {bill}?
        We ate for {bill} and want to leave {percent} percent for the girl who served us.
        How much do I leave on the table at {percent} percent, after a meal for {bill} euros?
        Dinner was {bill} dollars. What goes to the waitress at {percent} percent?
        In this country one leaves {percent} percent extra. We had a meal for {bill}.
        The taxi was {bill} euros, and I give the driver {percent} percent on top. How much extra?""",
    "order_pizza": """{size}, {topping}, and hurry, I'm hungry!
        I'm starving, something {size} from the Italian place with {topping} on it.
        One {size} with {topping}, delivered to my door.
        We're watching football: one {size} with {topping}, please.
        {topping} on a {size} one, please.
        For me a {size} one from Luigi's, topped with {topping}.
        Nobody wants to cook tonight. Get us something {size} out of the oven, with cheese and {topping}.
        Margherita style, {size}, and extra {topping}, please.""",
    "get_user_by_id": """{user_id}, who's that?
        Who hides behind {user_id}?
        Whose number is {user_id} in our system?
        I only have the number {user_id}. Which member is it?
        Member {user_id}, please.
        Open the profile with the number {user_id}.
        In the log I see just {user_id}. What's the name of that person?
        Let me see the profile of number {user_id}.""",
    "log_water": """{ml} ml down!
        I've just emptied a glass with {ml} ml.
        Another {ml} ml, keep count.
        {ml} ml more for me, keep track please.
        I was so thirsty that I gulped down {ml} ml.
        My doctor says I'm too dry, so I just had {ml} ml.
        Just had {ml} ml from the tap.
        My glass held {ml} ml and is empty now, please count it.""",
    "get_showtimes": """{movie}, {city}, when?
        I'm in {city} tonight and would like to see {movie}. When does it start?
        When can we see {movie} on the big screen in {city}?
        Are there any cinemas in {city} that have {movie} this evening?
        In {city}, when do they have {movie}?
        My date wants to see {movie}. When is it on in {city}?
        Is {movie} still on in {city}, and when?
        Who in {city} has {movie} on, and at what hour?""",
    "book_cinema": """{movie}, {seats} of us
        {seats} of us want to go and see {movie}. Get us in.
        We'd like to see {movie} on the big screen, all {seats} of us.
        I'm taking the children to see {movie}, we are {seats}.
        {movie}: room for {seats}, please
        Can {seats} of us still get into {movie}?
        It's my turn to pay for {movie}, for {seats} people.
        Before it sells out: {movie}, {seats} people, please.""",
    "recipes_with": """{ingredient}, what to do with it?
        I bought far too much {ingredient}. Any ideas for dinner?
        There's nothing but {ingredient} in my fridge. Dinner ideas?
        What goes well with {ingredient} for dinner?
        I'd like to use up the {ingredient}. Any ideas for lunch?
        What do people make of {ingredient}?
        Dinner ideas that use {ingredient}, please.
        My {ingredient} won't keep much longer. What tasty things use it?""",
    "get_exchange_rate": """{base}/{target}?
        How many {target} for one {base}?
        Is {base} strong against {target} at the moment?
        What's one {base} in {target}?
        Before I go to the bank: how does {base} stand to {target}?
        Has {base} fallen against {target}?
        {base} and {target}, where are they today?
        I'm watching {base} and {target}. Where do they stand?""",
    "get_temperature": """{room}, how many degrees?
        Would I freeze in the {room}?
        How many degrees are there in the {room}?
        Is it warm enough for the baby in the {room}?
        Has the {room} warmed up yet?
        I'm in bed and don't want to get up. Is it cold in the {room}?
        How chilly is it in the {room}?
        Do I need a pullover in the {room}?""",
    "unlock_door": """I've lost my key and can't get in by the {door}.
        {door}: let me in
        It's me at the {door}, let me in!
        The cleaning lady is waiting at the {door}, let her in.
        My hands are full of bags, let me through the {door}.
        Grandma is standing at the {door}, please let her in.
        Please let us in, we are at the {door} and it's bolted.
        My key broke off. Could you let me in by the {door}?""",
    "close_blinds": """The neighbours can look into the {room}.
        I don't want anybody to look into the {room}.
        {room}: shut out the sun
        The sun dazzles me in the {room}, shut it out.
        Shutters down in the {room}, please.
        It's so hot in the {room}, keep the sun out.
        I'm changing clothes in the {room}, nobody should look in.
        We want to watch a film in the {room}, shut out the daylight.""",
    "set_light_color": """{room}: all in {color}
        I'd like the {room} to glow {color}.
        Let's have it {color} in the {room}.
        For the party, {color} would look great in the {room}.
        {color} would be romantic in the {room}.
        My daughter wants it {color} in the {room}.
        White is boring, {color} would be nicer in the {room}.
        I'm sick of plain bulbs in the {room}, {color} please.""",
    "next_song": """Ugh, not this one again!
        Something else, please.
        I can't stand this one, move on.
        Boring. What else is there?
        I've heard that a hundred times, go on.
        Not my taste. Another one!
        Move on to another one.
        Could we hear a different one?""",
    "change_channel": """The match is on {channel}, quick, put it on
        What's on {channel}? Put it on.
        My show is on {channel}, hurry!
        Zap to {channel}.
        I'd rather see what's on {channel}.
        This film bores me, let's see number {channel}.
        Over to {channel}, please.
        The news is on {channel}, put that on.""",
    "read_emails": """Anything for me?
        Has anybody written to me?
        What came in today?
        Did something come in overnight?
        I'm driving, what has come in since this morning?
        Anything important that came in?
        I've been away for a week. Who wrote to me?
        Do I have post?
        Could you go with me through what has come in?""",
    "search_email": """{sender}, anything from them?
        Has {sender} written?
        Something from {sender} must be here, I can't find it.
        I'm sure {sender} sent me something, where is it?
        {sender} promised to write. Is something there?
        {sender} wrote to me last month, but I can't find it.
        Did I get anything from {sender}?
        Dig out what {sender} wrote to me.""",
    "cancel_event": """{title}, {day}: won't happen
        The {title} on {day} is off.
        We called off the {title} on {day}.
        I'm ill and can't make it to the {title} on {day}. Take it out.
        No {title} for me on {day}, scratch it.
        On {day} I have no time for the {title} after all, take it out.
        The {title} won't happen on {day}, so free the slot.
        There's no {title} on {day} after all. Please take it out of my diary.""",
    "cancel_alarm": """Let me sleep tomorrow, nothing at {time}.
        No need to get me up at {time}.
        I'm on holiday, so don't get me up at {time}.
        {time}: let me sleep
        School is out tomorrow, no noise at {time} please.
        I'm already up, so don't make noise at {time}.
        I want to sleep longer than {time}, so keep quiet.
        Please don't get me up at {time} after all.""",
    "complete_task": """Just did it: {title}
        {title}: did it!
        At last I managed to {title}. Tick it off.
        I no longer have to {title}, I did it.
        Tick off "{title}", I did it this morning.
        "{title}" is behind me.
        I got around to it: {title}. Cross it off.
        My husband took care of "{title}", so cross it off.""",
    "list_tasks": """What's left on my plate?
        What have I not done yet?
        What should I tackle next?
        I've got an hour. What is there to get done?
        What else is waiting for me?
        Have I got anything left to get done?
        What did I plan to get done?""",
    "show_shopping_list": """What do we need from the store?
        I'm at the supermarket. What was I supposed to get?
        Which things do we need from the supermarket?
        Did I write down milk for the store?
        What are we out of?
        I'm standing in the store and forgot what we need.
        What shall I bring home from the supermarket?
        What do we need from the market?""",
    "search_notes": """{query}: what did I jot down?
        I jotted something down about {query}. Where is it?
        Have I ever written anything on {query}?
        What were my thoughts on {query}?
        I know I wrote something on {query} down, dig it out.
        Dig out what I jotted down on {query}.
        Last year I had an idea about {query}. What did I jot down?
        Did I scribble something about {query} once?""",
    "rent_car": """{city}, {days} days, four wheels
        I need something to drive in {city} for {days} days.
        We fly to {city} and want to drive around there for {days} days.
        No train goes where we want, so a vehicle for {days} days, from {city}.
        Is there an Avis in {city}? I want something small to drive for {days} days.
        Could you get us a vehicle in {city}? {days} days.
        We're in {city} for {days} days and don't want to take taxis. Get us our own wheels.
        In {city} I need wheels, {days} days.""",
    "bus_times": """{stop}, when does it come?
        I'm waiting at the {stop} and it's cold. When does line 5 come?
        Did I miss the one at the {stop}? When does another come?
        What goes from the {stop} now, and when?
        When do I have to be at the {stop} to be driven into town?
        How long do I stand at the {stop} before the 42 comes?
        I don't have a car. When can I ride from the {stop} into town?
        Should I run to the {stop}, or does the 12 come later?""",
    "get_traffic": """{city}, jammed?
        Is everything blocked in {city}?
        I'm driving through {city}. Do I get through quickly?
        How full are the streets in {city}?
        Is it rush hour in {city}?
        Are there any accidents on the roads of {city}?
        Can one get through {city} by car now?
        Is everything standing still in {city}?""",
    "find_doctor": """{specialty}, {city}, any?
        Can you recommend a {specialty} in {city}?
        We've just moved to {city} and need a {specialty}.
        Whom do people in {city} trust as {specialty}?
        I'm on holiday in {city} and suddenly need a {specialty}.
        In {city}, which {specialty} would you go to?
        Does {city} have a {specialty}?
        My old {specialty} retired. Who else is there in {city}?""",
    "order_medicine": """{medicine}, all gone
        I've run out of {medicine}.
        My doctor prescribed {medicine}, please get it.
        I took the last {medicine} this morning.
        Get me {medicine}, I have a headache.
        My wife needs {medicine}, could you have it sent to us?
        There is no {medicine} left in the bathroom cabinet.
        The chemist should send me {medicine}.""",
    "bmi": """{weight} kg, {height} cm, too fat?
        My trousers are tight. I have {weight} kg on {height} cm.
        I'm {height} cm and weigh {weight} kg. Should I lose some?
        Is {weight} kg all right for {height} cm?
        Are {weight} kilos healthy for somebody of {height} cm?
        My doctor says I'm too thin, at {weight} kg and {height} cm. Is it true?
        {height} cm tall, {weight} kilos heavy - is that normal?
        Do {weight} kg and {height} cm go together, or am I fat?""",
    "log_meal": """{food}, {calories} kcal, for my diet
        For lunch I had {food}, {calories} kcal.
        I just had {food}, {calories} kcal. Keep count.
        I couldn't resist the {food}, {calories} kcal. Please count it.
        My breakfast: {food}, {calories} kcal
        {calories} kcal, that was the {food} I had today.
        I've eaten {food} and the pack says {calories} kcal.
        Put down {food}, which had {calories} kcal.""",
    "log_weight": """{kilos} kg this morning
        My scales say {kilos} kg.
        Weigh-in this morning, {kilos} kg.
        After the holidays I'm at {kilos} kilos, keep track.
        I'm down to {kilos} kg now, keep track of it.
        Put down {kilos} kg for today.
        My diet works: only {kilos} kilos now. Keep track.
        {kilos} kg, oh dear. Put it down.""",
    "get_steps": """{day}, how far on foot?
        Did I get enough exercise on foot on {day}?
        Was I lazy on {day}, or did I get to ten thousand?
        Did I reach ten thousand on {day}?
        How much did I move about on {day}?
        On {day} we hiked all day long. What does my watch say?
        What does my watch say for {day}, did I get to ten thousand?
        Was {day} a good day for my feet, or did I just sit around?""",
    "get_grade": """{student}, {subject}, passed?
        Are the parents of {student} happy with {subject}?
        Has {student} got through {subject}?
        {student}'s mother is on the phone and asks about {subject}.
        Is {student} any good at {subject}?
        Has {student} failed {subject}?
        How well did {student} do in {subject}?
        What will the school report say about {student} in {subject}?""",
    "enroll_student": """{student} -> {course}
        {student} would love to learn {course}, so put the name down.
        {student} will be learning {course} with us.
        Is there still room in {course}? {student} would like to come.
        Put {student} down for {course}.
        My daughter {student} wants to start with {course}.
        {course}: please take in {student}.
        From autumn on, {student} is in {course}.""",
    "create_quiz": """{topic}, {questions} of them, for my class
        Ask me {questions} things on {topic}, I want to see what I know.
        My pupils should be tested on {topic}, {questions} tasks.
        I'm a teacher. Ask my class {questions} things about {topic}.
        How well do I know {topic}? Ask me {questions} things.
        For our pub evening I need {questions} things to ask about {topic}.
        Check what my students know of {topic} by asking {questions} things.
        Trivia night! {topic}, {questions} rounds.""",
    "borrow_book": """{title}, may I take it home?
        I'd like to take {title} home with me.
        May I have {title} for two weeks?
        Could I take out {title}?
        I want to read {title}, but not buy it.
        My son has to read {title} for school, and we don't want to buy it.
        {title}, for two weeks, please
        On holiday I'd like to read {title}, and bring it back afterwards.""",
    "renew_book": """{title}, two more weeks?
        I'm only halfway through {title}, and it's due tomorrow.
        {title} is due back, but I want to read on.
        Can I hold on to {title}?
        I can't bring {title} back yet.
        Give me another two weeks for {title}.
        I've been ill and not read {title} yet, though it's due.
        Must I return {title} already? I want to go on reading.""",
    "hire_employee": """{name}, {role}, starts Monday
        We've found our {role}: it's {name}.
        {name} got the job as {role}, put that in the system.
        {name} signed the contract, as {role}.
        Welcome {name} to the team, as {role}.
        Our team is growing: {name} joins as {role}.
        We took {name} on as {role}.
        As {role} we chose {name}, so put that in the system.""",
    "request_vacation": """{start}, {days} days, beach!
        I won't be in the office for {days} days from {start} on.
        I need a break, {days} days, starting {start}.
        We fly to Spain on {start}, and I'll be back at work after {days} days.
        May I stay at home for {days} days, beginning on {start}?
        Tell my boss that I'd like to be free for {days} days, from {start}.
        Starting on {start}, could I be out of the office for {days} days?
        My wedding is on {start}, so let me have {days} days free.""",
    "book_room": """{time}, {people} people, somewhere quiet to talk
        Where in the office can {people} of us sit together at {time}?
        Our team of {people} has to talk at {time}. Find us somewhere in the building.
        We have a workshop at {time} with {people} colleagues. Where can we sit?
        At {time} a client comes, and we'll be {people}. Get us somewhere with a projector.
        I need a place for {people} colleagues to talk undisturbed at {time}.
        {people} colleagues, whiteboard, {time}, please""",
    "get_salary": """{name}, how much a month?
        Is {name} expensive for us? How much a month?
        What do we pay {name} every month?
        How much does {name} get paid?
        {name} asked for a raise. What are we paying now?
        Is {name} paid well?
        What's on the payslip of {name}?
        How much does {name} take home?""",
    "update_price": """{product}: now {price} euros
        {product} get dearer or cheaper, anyway it's {price} euros now.
        Let's ask {price} euros for {product}.
        Customers should pay {price} euros for {product}.
        Everything gets dearer, so {product} are {price} euros now.
        Sale! Put a tag with {price} euros on {product}.
        We sell too few {product}, so let's ask only {price} euros.
        {price} euros is what we'll ask for {product} from now on.""",
    "add_stock": """{quantity} {product} arrived today.
        There's a lorry at the gate with {quantity} {product} for us.
        {quantity} more {product} on the shelf
        We've received {quantity} {product}.
        {quantity} {product} were delivered this morning, count them in.
        Our supplier delivered {quantity} {product}.
        Count in {quantity} {product} that we received today.
        I've just unpacked {quantity} {product}, they go on the shelves.""",
    "update_address": """{customer}: new home in {city}
        Letters for {customer} go to {city} from now on.
        {customer} doesn't live in the old place any more, but in {city}.
        {customer} called, the new home is in {city}.
        Send everything for {customer} to {city} in future.
        {customer} told me that {city} is home now.
        Our letter to {customer} came back. They're in {city} now.
        In future, {customer} is to be found in {city}.""",
    "subscribe_newsletter": """{email} wants to hear from us every week.
        {email} would like to hear whenever we have something new.
        {email}: yes, every week please
        I'd like to get your weekly mails at {email}.
        Keep {email} informed of whatever is new here.
        Somebody wants to hear from us every month, at {email}.
        Please keep me informed every week at {email}.
        I love your site, send me whatever is new to {email}.""",
    "unsubscribe": """{email} is fed up with us writing every week.
        Stop sending things to {email}.
        {email}: no more of this
        I get far too much from you, please leave {email} alone.
        {email} doesn't want to hear from us any more.
        Why do you keep writing to {email}? Stop it.
        Spare {email} your weekly adverts.""",
    "apply_coupon": """{code}, for the 10 percent off
        I get something off with {code}.
        It's cheaper with {code}.
        My friend gave me {code} to save some money.
        Before I pay: I've got {code} for ten percent off.
        Please take something off, I have {code}.
        {code} was in your mail, it makes my basket cheaper.
        With {code} I should pay less.""",
    "write_review": """{product}: {stars} out of five
        I'd say {stars} out of 5 for the {product}.
        {stars} out of five for the {product}, please.
        I bought the {product} and give them {stars} out of 5.
        What I think of the {product}? {stars} of five.
        The {product} deserve {stars} out of five.
        {stars} of 5 is what the {product} get from me.
        Tell other buyers that I give the {product} {stars} out of five.""",
    "query_sales": """{month}, good business?
        Did we do good business in {month}?
        Was {month} good for our shop?
        How much money did our shop make in {month}?
        What did customers spend with us in {month}?
        The boss wants figures: how did the shop do in {month}?
        turnover {month}
        What was our turnover in {month}?""",
    "add_expense": """{item}, {amount} euros gone
        I paid {amount} euros for {item}, keep track of it.
        {amount} euros went on {item} today.
        I just paid {amount} euros for {item}, put it in the household book.
        In my household book: {item}, {amount} euros
        The {item} was {amount} euros, keep track please.
        {item} has become so dear, I paid {amount} euros. Put that down.
        Today's shopping: {item} for {amount} euros, already paid.""",
    "set_budget": """{month}: not more than {amount} euros
        Don't let me spend more than {amount} euros in {month}.
        {amount} euros have to do for {month}.
        I'm saving. In {month}, {amount} euros must be enough.
        In {month} I can't afford more than {amount} euros.
        We can only afford to spend {amount} euros in {month}.
        {amount} euros is all that I want to spend during {month}.""",
    "loan_payment": """{amount} euros from the bank, {years} years, how big is one instalment?
        The bank would give me {amount} euros. Paid back in {years} years, how big is one instalment?
        Our house needs {amount} euros. How high would the instalments be with {years} years to pay it off?
        If I pay back {amount} euros in {years} years, how high are the instalments?
        {amount}, {years} years, instalments?
        Can I afford {amount} euros from the bank? I'd pay it back within {years} years.
        I need {amount} euros for a car and have {years} years to pay it back. How high are the instalments?
        A house for {amount} euros, paid off in {years} years: how much is due each time?""",
    "block_number": """{number} is driving me mad.
        {number}: never again
        Somebody keeps ringing me from {number}. Make it stop.
        I never want to hear from {number} again.
        {number} is spam, keep them out.
        Don't let {number} get through to me.
        If {number} rings, don't put it through.
        They want to sell me something every day from {number}, keep them away.""",
    "scan_code": """{barcode}, what is it?
        On the pack it says {barcode} under the stripes. What is it?
        What am I holding? The stripes say {barcode}.
        The label fell off, there's just {barcode}. What is in the tin?
        The cashier typed {barcode}. What is she selling?
        {barcode} is printed on the box. What's inside?
        What do we sell under {barcode}?""",
    "git_checkout": """{branch}, please, I want to fix something there
        I'd like to see what's on {branch}.
        My fix is on {branch}, get me there.
        I should be working on {branch}, get me there.
        I need {branch} in my working copy.
        Let me continue on {branch}.
        Move over to {branch}.
        I've been on the wrong one, I should be on {branch}.""",
    "run_tests": """{project}: green or red?
        Is {project} green?
        I changed something in {project}. Did I break it?
        Is everything in {project} fine after my change?
        Did my last commit break {project}?
        Is anything broken in {project}?
        Before I push {project}, make sure nothing is broken.
        pytest {project}""",
    "get_logs": """{service}: latest {lines} lines
        tail -n {lines} {service}
        What has {service} been writing? The latest {lines} lines are enough.
        I want to know why {service} crashed, show the final {lines} lines.
        What did {service} print at the end? {lines} lines, please.
        What errors did {service} write? Just {lines} lines.
        {service} acts up, let me see the latest {lines} lines it wrote.
        {lines} lines of what {service} wrote, please.""",
    "scale_service": """{service} x {replicas}
        So many visitors! Let there be {replicas} of {service}.
        I want {replicas} of {service} up and running.
        {replicas} instances of {service}, please
        {service} is too slow for all these visitors, take {replicas} instances.
        How about {replicas} instances for {service}? Do it.
        We have few visitors at night, {replicas} instances of {service} will do.
        Make it {replicas} instances of {service}.""",
    "backup_database": """{database}: keep everything safe, please
        I'm about to change {database}. Keep it safe first.
        Before we update, put {database} somewhere safe.
        I'm afraid of losing {database}.
        Keep {database} safe in case the disk dies.
        Dump {database} somewhere safe.
        We mustn't lose {database}, put it somewhere safe.
        pg_dump {database}""",
    "get_definition_of_law": """{topic}, allowed?
        Do the police care about {topic}?
        What's allowed when it comes to {topic}?
        I don't want to go to jail because of {topic}. What is allowed?
        Which paragraph deals with {topic}?
        My neighbour threatens to sue me over {topic}. What is allowed?
        What has parliament decided on {topic}?
        Would a judge care about {topic}?""",
    "post_message": """{channel}: "{text}"
        Let the people in {channel} know: {text}
        All of {channel} should see this: {text}
        {text} - put that in {channel}, please.
        A few words for the folks in {channel}: {text}
        In {channel}, please write: "{text}"
        I want the team in {channel} to read this: {text}
        Shout it out in {channel}: {text}""",
    "create_poll": """{question}: yes or no, everybody?
        I'd like to know what the team thinks of {question}.
        We can't agree on {question}, let everybody raise their hand.
        Who is for and who is against? All of us should say: {question}
        Everybody should have a say on {question}.
        Let's count who is for and who is against {question}.
        Let my colleagues decide on {question}.
        I want the opinion of all our members on {question}.""",
    "plan_trip": """{city}, {days} days, what to do each day?
        {days} days in {city} - how do we spend them best?
        We've never been to {city} and have {days} days. What should we do each day?
        How should we divide up our {days} days in {city}?
        My parents will be in {city} for {days} days. Work out what they do each day.
        I'm off to {city} for {days} days and have no idea what to do there.
        Day by day, please: {city}, {days} days.
        Could you draw up something for our {days} days in {city}?""",
    "get_attractions": """{city}, worth seeing?
        What should I not miss in {city}?
        Why do so many tourists come to {city}?
        We've got an afternoon in {city}. What should we look at?
        Are there any castles or museums in {city}?
        What do tourists look at in {city}?
        Is there anything interesting in {city}?
        I'm in {city} and bored. What should I look at?
        Which museums would you recommend in {city}?""",
    "find_job": """{job}, {city}, who's hiring?
        Who is hiring a {job} in {city}?
        I'm a {job} and we're moving to {city}. Who would employ me?
        Is anyone in {city} hiring? I'm a {job}.
        I lost my position and live in {city}. I've learnt {job}.
        Which firms in {city} take on a {job}?
        My brother is a {job} and wants to earn his living in {city}.
        Do they need a {job} in {city}?""",
    "find_apartment": """{city}, {max_rent} euros tops, two rooms
        Where can I live in {city} for {max_rent} euros a month?
        I'm moving to {city} and can't pay more than {max_rent} a month.
        I'll study in {city}, so where can I live for less than {max_rent} euros?
        We need a home in {city}, not above {max_rent} euros.
        Is there anything to live in in {city} under {max_rent} euros a month?
        My landlord throws me out. What is there in {city} for {max_rent} euros?
        A home in {city}, please, my limit is {max_rent} euros.""",
    "identify_song": """What's this called?
        I love this tune! Who is it?
        Who is that singer?
        I know this melody, but what is it?
        Which band is that?
        Do you recognise this tune?
        What tune am I hearing?
        That's catchy. What's it called, and who sings it?""",
    "get_lyrics": """{song}, how does it go?
        How does {song} go?
        I want to sing along to {song}.
        What are they singing in {song}? I can't make it out.
        What does the singer say in {song}?
        We have karaoke tonight. What do I sing in {song}?
        I only know the first line of {song}. How does it go on?
        What comes after the first verse of {song}?""",
    "find_object": """{thing}, where??
        Who has seen my {thing}?
        I've mislaid my {thing}.
        Where did I leave my {thing}?
        My {thing} has vanished.
        I had my {thing} this morning, and now it's gone.
        I'm late and can't see my {thing} anywhere.
        Where on earth did I put my {thing}?
        Someone must have taken my {thing}, where is it?""",
    "start_coffee": """{cups} espressos, please
        I'm so tired, {cups} cups please.
        {cups} cappuccinos for my guests!
        There are {cups} of us and we need caffeine.
        I need caffeine, enough for {cups}.
        Good morning, {cups} cups, black.
        My colleagues are coming, espresso for {cups} please.
        Could {cups} of us get something hot with caffeine?""",
    "get_energy": """{month}, how many kWh?
        How many kilowatt hours did we need in {month}?
        Did we waste a lot of kilowatt hours in {month}?
        The bill is so high. How many kWh was it in {month}?
        What did our house consume in {month}?
        How many kWh went through our cables in {month}?
        Did we consume fewer kWh in {month}?
        How much did all our lamps and heaters consume in {month}?""",
    "get_population": """{city}, how many inhabitants?
        {city} has grown so much. How many inhabitants are there now?
        Is {city} a village or a real town?
        Are there more than a million in {city}?
        Is {city} just a village?
        Has {city} got a million inhabitants?
        My homework: how many inhabitants are there in {city}?
        Number of inhabitants of {city}, please.""",
    "find_train": """{origin} to {destination}, on rails
        I'd rather go by rail from {origin} to {destination}.
        I'm afraid of flying. Is there a railway from {origin} to {destination}?
        Does the railway go all the way from {origin} to {destination}?
        Do I have to change when I go by rail from {origin} to {destination}?
        By railway, how long is it from {origin} to {destination}?
        {destination} by rail, I'm in {origin}
        Can I take an express from {origin} to {destination}?""",
    "find_book": """{title}, on your shelves?
        Is {title} on the shelf?
        My teacher wants us to read {title}. Do you have it?
        Which author wrote {title}?
        I'm looking for the novel {title}.
        On which shelf is {title}?
        Do you have {title}? I don't know who wrote it.
        My wife recommended the novel {title}, have you got it?""",
    "reserve_restaurant": """{restaurant}, {people}, {time}
        {people} of us want to have dinner at {restaurant}, {time}.
        Can {restaurant} take {people} of us at {time}?
        I'm inviting my parents to {restaurant} at {time}, we are {people}.
        Tell {restaurant} that {people} guests will come at {time}.
        We'd love to dine at {restaurant}, {people} people, around {time}.
        Is there room at {restaurant} for {people} at {time}? Then take it.
        At {time}, dinner for {people} at {restaurant}, please.""",
    "buy_groceries": """{quantity} {item}, from the market
        Bring {quantity} {item} from the store.
        {quantity} {item} next time at the store
        I'm cooking on Sunday and need {quantity} {item} from the supermarket.
        For the cake I need {quantity} {item}, write that down for the store.
        From the market I need {quantity} {item}.
        There should be {quantity} {item} in my basket next time.
        At the supermarket we have to get {quantity} {item}.""",
}

# The first name of a tool, and a request that sounds like it but is beyond it and beyond the others as well.
NEARBY: tuple[tuple[str, str], ...] = (
    ("set_alarm", "How does an alarm clock work?"),
    ("set_alarm", "Who invented the alarm clock?"),
    ("set_timer", "Why do hourglasses have sand in them?"),
    ("get_weather", "Why is the sky blue?"),
    ("get_weather", "How do clouds form?"),
    ("get_weather", "Which was the hottest summer ever measured?"),
    ("get_time", "Why does the earth have time zones?"),
    ("get_time", "Who decided that a minute has sixty seconds?"),
    ("add_reminder", "Why do people forget things when they get old?"),
    ("send_message", "How many letters fit into one text message?"),
    ("send_message", "When was the first SMS sent?"),
    ("send_email", "How many e-mails are sent in the world each day?"),
    ("send_email", "How should one end a formal letter?"),
    ("read_emails", "Delete all my spam."),
    ("search_email", "Forward the last mail to my whole team."),
    ("call_contact", "How long was my last phone call?"),
    ("call_contact", "Which phone has the best battery?"),
    ("call_contact", "Record my next phone call."),
    ("turn_on_light", "Who invented the light bulb?"),
    ("turn_on_light", "The bulb is broken, can you screw in another one?"),
    ("set_light_color", "Which colours make green when you mix them?"),
    ("set_light_color", "Which colour goes with brown?"),
    ("play_music", "How do I tune a guitar?"),
    ("play_music", "Teach me to play the piano."),
    ("next_song", "How many songs did Mozart write?"),
    ("set_volume", "Why does my voice sound different on tape?"),
    ("set_temperature", "At which temperature does iron melt?"),
    ("get_temperature", "At how many degrees does water boil on a mountain?"),
    ("get_temperature", "Do I have a fever?"),
    ("lock_door", "My key is stuck in the lock, how do I get it out?"),
    ("unlock_door", "Which is safer, a lock with a key or one with a code?"),
    ("open_blinds", "Sew me new curtains."),
    ("start_vacuum", "Fold my laundry."),
    ("start_vacuum", "Iron my shirts, please."),
    ("start_vacuum", "Is there any sound in a vacuum?"),
    ("translate", "Which language do most people on earth speak?"),
    ("translate", "How long does it take to learn Japanese?"),
    ("translate", "How many letters has the Greek alphabet?"),
    ("calculate", "Who discovered that pi never ends?"),
    ("calculate", "Prove that there are infinitely many primes."),
    ("convert_currency", "Who is shown on the ten dollar note?"),
    ("convert_units", "Why do the British still use miles?"),
    ("get_exchange_rate", "Where are coins minted?"),
    ("find_restaurant", "How many stars can a restaurant get from Michelin?"),
    ("find_restaurant", "What does a waiter learn in his training?"),
    ("book_table", "Build me a wooden table with four legs."),
    ("book_hotel", "Cancel my hotel."),
    ("book_hotel", "Does my hotel have a swimming pool?"),
    ("book_flight", "How do planes stay up in the air?"),
    ("book_flight", "How many suitcases may I take on the plane?"),
    ("get_flight_status", "Give me a seat at the window on my flight."),
    ("call_taxi", "Why are taxis yellow in New York?"),
    ("call_taxi", "Which is the oldest taxi in the world?"),
    ("rent_car", "My car makes a strange noise, can you repair it?"),
    ("rent_car", "Sell my old car for me."),
    ("train_departures", "Which is the fastest train ever built?"),
    ("bus_times", "How does one become a bus driver?"),
    ("bus_times", "Do dogs have to pay on the bus?"),
    ("get_traffic", "What does the sign with the red triangle mean to drivers?"),
    ("get_traffic", "How many cars are there in the world?"),
    ("find_parking", "How do I park backwards into a small gap?"),
    ("get_directions", "Why does a compass point north?"),
    ("get_stock_price", "Sell all my shares right away."),
    ("get_news", "How does one become a journalist?"),
    ("get_recipe", "My soup is too salty, can you save it?"),
    ("get_recipe", "My cake burnt, who can clean the oven?"),
    ("get_calories", "Why do onions make me cry?"),
    ("add_to_shopping_list", "When do the supermarkets close on Saturdays?"),
    ("show_shopping_list", "How long is butter good for in the fridge?"),
    ("create_note", "Tear up the note that I wrote yesterday."),
    ("create_event", "Why does February have only 28 days?"),
    ("list_events", "Who invented the calendar we use?"),
    ("book_appointment", "How many teeth does a grown-up have?"),
    ("book_appointment", "Was the dentist content with my teeth last time?"),
    ("track_package", "How many stamps does a letter to America need?"),
    ("track_package", "Wrap this parcel for me."),
    ("cancel_order", "Swap my shoes for a bigger pair."),
    ("transfer_money", "Which bank gives the best interest?"),
    ("transfer_money", "Print some money for me."),
    ("get_balance", "Open a savings account for my son."),
    ("get_balance", "Is my bank safe from robbers?"),
    ("create_invoice", "Did all our customers pay their bills?"),
    ("generate_password", "Is it safe to use the same password everywhere?"),
    ("delete_file", "I deleted my photos by accident, bring them back."),
    ("print_document", "How many pages does one cartridge of ink last?"),
    ("print_document", "Who invented printing?"),
    ("restart_server", "What is a server made of?"),
    ("backup_database", "Restore everything from last night's backup."),
    ("run_code", "Which programming language should a beginner learn?"),
    ("git_checkout", "Merge my branch and delete it afterwards."),
    ("get_joke", "Why do people laugh?"),
    ("roll_dice", "Who taught you to cheat at cards?"),
    ("get_score", "How many players does a football team have on the pitch?"),
    ("get_score", "Who was the referee of the final?"),
    ("play_video", "Film my daughter at her party."),
    ("get_movie_info", "Write a script for a horror film."),
    ("get_sunrise", "How far away is the sun?"),
    ("get_air_quality", "What is air made of?"),
    ("log_workout", "Which exercises help against back pain?"),
    ("log_weight", "How heavy is an elephant?"),
    ("get_steps", "Teach me the steps of the waltz."),
    ("feed_pet", "Walk the dog for me."),
    ("feed_pet", "Why do cats purr?"),
    ("water_plants", "Mow the grass, please."),
    ("plant_info", "Plant a tree behind my house."),
    ("take_photo", "Which camera should I buy as a beginner?"),
    ("generate_image", "Who painted the Mona Lisa?"),
    ("order_pizza", "Who invented pizza?"),
    ("order_pizza", "Where is the boy with my pizza?"),
    ("start_coffee", "Is instant coffee any worse than filter coffee?"),
    ("start_coffee", "How long must green tea stay in the water?"),
    ("order_medicine", "Is it all right to take aspirin with wine?"),
    ("find_doctor", "How long does one study to become a doctor?"),
    ("borrow_book", "Is the library open on Sundays?"),
    ("find_book", "Read me a story until I fall asleep."),
    ("borrow_book", "I spilled tea over a book of yours, what do I owe you?"),
    ("get_grade", "Do my homework for me."),
    ("create_quiz", "Who invented school?"),
    ("get_salary", "Give me a raise."),
    ("hire_employee", "How do I write a good application?"),
    ("request_vacation", "How many days of vacation do I have left?"),
    ("find_apartment", "How do I get the stains out of my carpet?"),
    ("find_object", "Where did the pirates hide their gold?"),
    ("get_energy", "How does a power plant make electricity?"),
    ("change_channel", "The TV has no picture, what is broken?"),
    ("get_holidays", "Why do we celebrate Easter with eggs?"),
    ("get_birthday", "What should I give my mother for her birthday?"),
    ("unsubscribe", "How many people read our newsletter?"),
    ("get_lyrics", "Write a love song for me."),
    ("identify_song", "Who was the best singer of all time?"),
    ("get_population", "Why do people move from the country to the towns?"),
)
