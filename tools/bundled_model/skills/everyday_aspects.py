"""Tools that give back much, of which a question wants one thing: the same result, and what is asked decides.

A tool is its names, ``=`` what may be said of it, ``-`` its one parameter, ``>`` what it gives back as ``key: kind``,
and of single keys the answers and the questions, as ``? key: answer | question | question``. A question names the
parameter; what follows ``~`` is how one asks for the same later on, when the result is there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from skills.everyday_wide import Kind, Wide, kind_of, tool_of


@dataclass(frozen=True)
class Aspect:
    """One thing that a result tells: the answer, the questions for it, and those for later on."""

    key: str
    answer: str
    asks: tuple[str, ...]
    later: tuple[str, ...]


@dataclass(frozen=True)
class Looked:
    """A tool with the keys of its result."""

    tool: Wide
    fields: tuple[tuple[str, Kind], ...]
    aspects: tuple[Aspect, ...]


def _aspect(line: str) -> Aspect:
    key, _, rest = line.partition(": ")
    answer, *asks = rest.split(" | ")
    later = tuple(ask.removeprefix("~") for ask in asks if ask.startswith("~"))
    return Aspect(key, answer, tuple(ask for ask in asks if not ask.startswith("~")), later)


def _looked(text: str) -> Looked:
    lines = [line.strip() for line in text.strip().splitlines()]
    aspects = tuple(_aspect(line[2:]) for line in lines if line.startswith("? "))
    fields = [part.split(": ", maxsplit=1) for line in lines if line.startswith("> ") for part in line[2:].split("; ")]
    described = [line for line in lines if not line.startswith(("? ", "> "))]
    asked = [ask for aspect in aspects for ask in aspect.asks]
    tool = tool_of("\n".join([*described, *asked]))
    return Looked(tool, tuple((key, kind_of(kind)) for key, kind in fields), aspects)


_TEXT = """\
    get_flight_details flight_details flight_record
    = Details of a flight: gate, times and state. | Returns all there is to know about a flight.
    - flight|flight_number|number: flight
    > gate: shelf; terminal: #1-6; departs: clock; arrives: clock; status: ~on time,delayed,boarding
    ? gate: The gate is {}. | Which gate does {flight} leave from? | gate of {flight}? | ~And which gate?
    ? terminal: It is terminal {}. | Which terminal is {flight} at? | {flight}: what terminal | ~Which terminal?
    ? departs: It departs at {}. | When does {flight} take off? | When does {flight} leave? | ~When does it leave?
    ? arrives: It arrives at {}. | When does {flight} land? | I pick up a friend from {flight}. When? | ~And it lands?
    ? status: The flight is {}. | How is {flight} doing? | What's the state of {flight}? | ~Is it delayed?

    get_order_details order_details fetch_order
    = All about an order. | Returns the record of an order by its number.
    - order|order_number|order_id: code
    > customer: name; product: items; quantity: #2-40; total: amount; delivery_date: day; city: city
    ? customer: The customer is {}. | Who ordered {order}? | Whose order is {order}? | ~Who ordered it?
    ? product: It is for {}. | What was ordered with {order}? | What is in order {order}? | ~What was it again?
    ? quantity: There are {} of them. | How many things are in order {order}? | ~How many?
    ? total: The total is {}. | How much does order {order} cost? | total of order {order} | ~What does it cost?
    ? delivery_date: It is delivered on {}. | Which day does order {order} come? | ~On which day does it come?
    ? city: It goes to {}. | Where does order {order} go? | To which city is order {order} sent? | ~Which city?

    get_employee employee_record find_employee
    = The record of an employee. | Returns job, office and so on of somebody who works here.
    - employee|name|person: name
    > job: job; department: ~sales,support,research; office: shelf; phone: phone; since: #1995-2025; boss: name
    ? job: The job is {}. | What does {employee} work as? | What's {employee}'s job here? | ~And the job?
    ? department: It is {}. | In which department is {employee}? | {employee}: department? | ~Which department?
    ? office: The office is {}. | Where does {employee} sit? | Which office has {employee} got? | ~Where is the office?
    ? phone: The number is {}. | What's the phone number of our employee {employee}? | ~How do I phone there?
    ? since: It is since {}. | Since when has {employee} worked here? | {employee} here since when? | ~Since when?
    ? boss: The boss is {}. | Who is {employee}'s boss? | Who does {employee} report to? | ~Who's the boss there?

    get_room_details hotel_room_info room_record
    = Facts about a room of the hotel. | Returns beds, price and floor of a room number.
    - room|room_number|number: #101-899
    > beds: #1-5; floor: #1-8; price: #40-300; guest: name; view: ~sea,garden,street,mountains; free_from: day
    ? beds: The number of beds is {}. | How many beds does room {room} have? | ~How many beds?
    ? floor: It is on floor {}. | On which floor is room {room}? | How high up is {room}? | ~Which floor?
    ? price: It costs {} a night. | What does {room} cost a night? | price of room {room}? | ~And the price?
    ? guest: The guest is {}. | Who stays in room {room}? | Who is our guest in {room}? | ~Who is in it now?
    ? view: The view is of the {}. | What do I see from room {room}? | ~What does one see from there?
    ? free_from: It is free from {}. | When does {room} become free? | ~When can somebody else have it?

    get_product product_record product_details
    = All about a product. | Returns size, price and so on of an article number.
    - article|sku|product_id: code
    > name: items; price: amount; weight: decimal; color: colour; stock: #2-400; supplier: company
    ? name: They are {}. | What is article {article}? | Which product has the number {article}? | ~What is it?
    ? price: It costs {}. | How much is {article}? | What does article {article} cost? | ~What does it cost?
    ? weight: It weighs {} kilos. | How heavy is {article}? | {article} weight? | ~And how heavy?
    ? color: The color is {}. | Which color does {article} have? | Is {article} red? | ~Which color?
    ? stock: There are {} in stock. | How many of {article} do we have? | stock of {article} | ~How many are left?
    ? supplier: The supplier is {}. | Who sells us {article}? | Where do we buy {article}? | ~Who is the supplier?

    get_match_details match_details match_info
    = Facts about a match. | Returns place, referee and times of the next match of a team.
    - team|club|name: team
    > opponent: team; date: day; kick_off: clock; stadium: title; referee: name; tickets_left: #2-900
    ? opponent: They play against {}. | Who does {team} play next? | {team} against whom? | ~Who is the opponent?
    ? date: It is on {}. | On which day is the next match of {team}? | ~Which day is that?
    ? kick_off: It begins at {}. | What time is the kick-off of {team}? | ~And the kick-off?
    ? stadium: The stadium is {}. | Which stadium does {team} play in next? | ~In which stadium?
    ? referee: The referee is {}. | Who is the referee when {team} plays next? | ~Who is the referee?
    ? tickets_left: There are {} tickets left. | Are there tickets for {team}? | ~How many tickets are left?

    get_server_details server_details host_info
    = Facts about a server. | Returns system, memory and owner of a machine.
    - server|host|machine: server
    > ip: ip; memory_gb: #1-16*8; system: ~Debian,Ubuntu,Fedora,Windows; owner: name; uptime_days: #2-900
    ? ip: The address is {}. | What's the IP of {server}? | ip {server} | ~What's its address?
    ? memory_gb: It has {} GB of memory. | How much memory does {server} have? | {server} ram? | ~How much memory?
    ? system: It runs {}. | Which system does {server} run? | Is {server} a Windows machine? | ~Which system?
    ? owner: The owner is {}. | Who owns {server}? | Whom do I ask about {server}? | ~Whose is it?
    ? uptime_days: It has been up for {} days. | How long has {server} been running? | ~Since how many days is it up?

    get_patient patient_record find_patient
    = The record of a patient. | Returns what the clinic knows about a patient.
    - patient|name|person: name
    > room: #100-499; blood_type: ~A,B,AB,0; doctor: name; next_visit: day; allergy: grocery; weight_kg: kilos
    ? room: It is room {}. | In which room is the patient {patient}? | Where do I visit {patient}? | ~Which room?
    ? blood_type: The blood type is {}. | Which blood type has {patient}? | {patient} blood type | ~The blood type?
    ? doctor: The doctor is {}. | Who treats {patient}? | Who is the doctor of {patient}? | ~And the doctor?
    ? next_visit: The next visit is on {}. | When does {patient} come again? | ~When is the next visit?
    ? allergy: The allergy is to {}. | What is {patient} allergic to? | Which food is bad for {patient}? | ~Any allergy?
    ? weight_kg: The weight is {} kg. | How heavy is the patient {patient}? | ~How heavy?

    get_course course_details course_info
    = All about a course. | Returns teacher, room and time of a course.
    - course|title|subject: subject
    > teacher: name; room: shelf; day: ~Monday,Tuesday,Thursday,Friday; starts: clock; places: #2-30; fee: amount
    ? teacher: The teacher is {}. | Who teaches {course}? | Who gives the {course} course? | ~Who is the teacher?
    ? room: It is in room {}. | Where is the {course} course? | In which room is {course}? | ~In which room?
    ? day: It is on {}. | On which day is the {course} course? | What day is {course}? | ~Which day?
    ? starts: It starts at {}. | What time does {course} start? | {course} course, when? | ~What time?
    ? places: There are {} places left. | Is the {course} course full? | ~How many places are left?
    ? fee: The fee is {}. | What does the {course} course cost? | Is {course} expensive? | ~What's the fee?

    get_shipment shipment_record shipment_details
    = All about a shipment. | Returns weight, driver and places of freight.
    - shipment|number|id: code
    > sender: company; receiver: company; origin: city; destination: city; weight_kg: #20-9000; driver: name
    ? sender: The sender is {}. | Who sent the shipment {shipment}? | ~Who sent it?
    ? receiver: The receiver is {}. | Who gets the shipment {shipment}? | Whom is {shipment} for? | ~Who gets it?
    ? origin: It comes from {}. | Where does the shipment {shipment} come from? | ~Where is it from?
    ? destination: It goes to {}. | Where is freight {shipment} going? | ~Where does it go?
    ? weight_kg: It weighs {} kg. | How heavy is the shipment {shipment}? | ~How heavy is it?
    ? driver: The driver is {}. | Who drives the shipment {shipment}? | ~And the driver?

    get_animal animal_record livestock_info
    = The record of an animal of the farm. | Returns age, weight and stable of an animal.
    - animal|ear_tag|tag: phone
    > kind: ~cow,sheep,goat,horse,pig; name: name; born: #2014-2025; weight_kg: #20-900; stable: shelf; last_vet: iso
    ? kind: It is a {}. | What kind of animal has the tag {animal}? | ~What kind of animal?
    ? name: It is called {}. | What's the name of animal {animal}? | How do we call number {animal}? | ~What's its name?
    ? born: It was born in {}. | How old is animal {animal}? | In which year was {animal} born? | ~When was it born?
    ? weight_kg: It weighs {} kg. | What does animal {animal} weigh? | {animal} kilos? | ~What does it weigh?
    ? stable: It is in {}. | In which stable is animal {animal}? | Where do I find {animal}? | ~In which stable?
    ? last_vet: The vet last saw it on {}. | When did the vet see animal {animal}? | ~When did the vet come?

    get_event_details event_record event_details
    = All about an event. | Returns place, host and times of an event.
    - event|name|title: event
    > host: name; place: place; begins: clock; ends: clock; guests: #3-300; dress: ~black,white,casual,formal
    ? host: The host is {}. | Who gives the {event}? | Who is the host of the {event}? | ~Who is the host?
    ? place: The place is the {}. | Where is the {event}? | At what place is the {event}? | ~And where?
    ? begins: It begins at {}. | When does the {event} begin? | From when on is the {event}? | ~When does it begin?
    ? ends: It ends at {}. | How long does the {event} go on? | When is the {event} over? | ~And when does it end?
    ? guests: There are {} guests. | How many people come to the {event}? | ~How many guests?
    ? dress: The dress is {}. | What does one wear to the {event}? | ~What do I wear?

    get_account account_record bank_account_info
    = All about a bank account. | Returns owner, balance and terms of an account number.
    - account|account_number|number: phone
    > owner: name; balance: #2-9000; interest: decimal; opened: iso; branch: city; card_limit: #1-60*50
    ? owner: The owner is {}. | Whose is the account {account}? | Who owns account {account}? | ~Whose is it?
    ? balance: The balance is {}. | How much is on account {account}? | What is left on {account}? | ~And the balance?
    ? interest: The interest is {} percent. | How much interest does account {account} get? | ~And the interest?
    ? opened: It was opened on {}. | How old is the account {account}? | ~When was it opened?
    ? branch: The branch is in {}. | In which town is account {account} kept? | ~Which branch?
    ? card_limit: The limit is {}. | How much can be paid by the card of {account}? | ~What's the limit?

    get_vehicle vehicle_record car_details
    = All about a car. | Returns maker, color and owner of a car by its plate.
    - plate|number_plate|car: plate
    > maker: ~Volvo,Toyota,Renault,Ford; color: colour; owner: name; year: #1998-2025; fuel: ~petrol,diesel,electric
    ? maker: The maker is {}. | Who made the car {plate}? | What car is {plate}? | ~What make is it?
    ? color: It is {}. | Which color is the car {plate}? | What does {plate} look like? | ~What color?
    ? owner: The owner is {}. | Whose car is {plate}? | Who drives {plate}? | ~Whose is it?
    ? year: It is of {}. | How old is the car {plate}? | In which year was {plate} built? | ~From which year?
    ? fuel: The fuel is {}. | What do I fill into the car {plate}? | Does {plate} take diesel? | ~Which fuel?
"""
LOOKED = tuple(map(_looked, re.split(r"\n\s*\n", _TEXT)))
