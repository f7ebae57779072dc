"""Tales with numbers in which the words tell what to compute, and further ways to ask for a sum.

In a tale neither the order of the numbers nor a word such as "more" tells the sign, and a number may play no part.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from words import DAYS, ITEMS, MONTHS, Words, capitalised


class Told(NamedTuple):
    """A question with what it asks to compute."""

    asked: str
    sign: str
    a: int
    b: int


class Scene(NamedTuple):
    """Tales of one kind, by what they ask to compute, with the largest number that makes sense in them.

    ``a`` and ``b`` are those of ``a + b``, ``a - b`` or ``a x b``, wherever they stand; ``=`` is ``a + a``, and a digit
    behind ``x`` is what ``b`` always is. What follows a bar is the question, which may come first.
    """

    largest: int
    tales: Mapping[str, tuple[str, ...]]


ANY = 198
SCENES = (
    # Who has more.
    Scene(
        ANY,
        {
            "+": (
                "{n} has {a} {i}, that is {b} fewer than {m} has.|How many {i} has {m}?",
                "{m} has {b} {i} more than {n}, who has {a}.|How many has {m}?",
                "With {a} {i}, {n} is {b} behind {m}.|How many does {m} have?",
                "{n} would need {b} more {i} to have as many as {m}. {n} has {a}.|How many does {m} have?",
                "{n} has {a} {i}, {m} has {b} more than that.|How many does {m} have?",
                "{m} has as many {i} as {n} and another {b}. {n} has {a}.|How many has {m}?",
                "{n} has {b} {i} less than me. {n} has {a}.|How many do I have?",
                "{a} {i} belong to {n} and {b} to {m}; nobody else has any.|How many are there?",
                "I've got {a} {i}, my brother has {b} more than me.|How many does he have?",
            ),
            "-": (
                "{n} has {a} {i}, that is {b} more than {m} has.|How many {i} has {m}?",
                "{n} has {b} {i} more than {m}. {n} has {a}.|How many {i} does {m} have?",
                "With {a} {i}, {n} is {b} ahead of {m}.|How many does {m} have?",
                "{m} would need {b} more {i} to have as many as {n}. {n} has {a}.|How many does {m} have?",
                "{m} has {b} {i} fewer than {n}, and {n} has {a}.|How many has {m}?",
                "{n} and {m} have {a} {i} together. {b} of them are {n}'s.|How many belong to {m}?",
                "Together {n} and {m} own {a} {i}; {m} alone owns {b}.|How many does {n} own?",
                "{m} has {b} {i} and {n} has {a}.|How many more does {m} need to have as many as {n}?",
                "{m} has only {b} {i}, {n} has {a}.|How many fewer does {m} have?",
                "I have {b} {i} more than {n}. I've got {a}.|How many does {n} have?",
                "I've got {a} {i}, my brother has {b} less than me.|How many does he have?",
                "{n} collected {a} {i}. {m} collected {b}.|What is the difference?",
            ),
            "=": (
                "{n} has {a} {i}, {m} has twice as many.|How many does {m} have?",
                "{n} has just as many {i} as {m}, and {m} has {a}.|How many do {n} and {m} have together?",
                "{n} wants double the {i} of last year, when there were {a}.|How many {i} does {n} want?",
                "Two friends have {a} {i} each.|How many do the two have in all?",
            ),
            "x": (
                "{n} has {b} {i}. {m} has {a} times as many.|How many does {m} have?",
                "{m} collected {a} times as many {i} as {n}, who has {b}.|How many are {m}'s?",
            ),
        },
    ),
    # What was before.
    Scene(
        ANY,
        {
            "+": (
                "After giving away {b} {i}, {p} has {a} left.|How many did {he} have before?",
                "{P} gave {b} {i} to a friend. Now {he} has {a}.|How many did {he} have at first?",
                "{n} threw away {b} {i} and {a} are left.|How many were there at first?",
                "There are {a} {i} left after {b} were sold.|How many were there to begin with?",
                "{n} lost {b} {i} and has {a} left.|How many did {n} have at the start?",
                "{n} took {b} {i} out of the box. {a} are still in it.|How many were in the box before?",
                "If {n} gave away {b} {i}, there would be {a} left.|How many {i} does {n} have?",
                "{b} {i} were bad, the other {a} were good.|How many {i} were there?",
                "Someone has stolen {b} {i} from us, so now we have only {a}.|How many {i} did we have?",
                "{n} used up {b} {i}. {a} remain.|How many {i} were there before?",
                "I'm left with {a} {i} since I gave {n} {b} of mine.|How many did I have?",
                "Had {n} not sold {b} {i}, how many would {n} have today? Now there are {a}.",
                "{n} had {a} {i} and got {b} back from {m}.|How many does {n} have now?",
            ),
            "-": (
                "{n} got {b} {i} and now has {a}.|How many did {n} have before?",
                "After buying {b} more {i}, {n} has {a}.|How many did {n} have before?",
                "{P} has {a} {i} now, {b} of them are new.|How many did {he} have before?",
                "{n} found {b} {i}; that makes {a} in all.|How many did {n} have before?",
                "There were some {i} in the bag. {m} added {b}, and now there are {a}.|How many were there at first?",
                "{n} had {a} {i} in the morning and has {b} in the evening.|How many are gone?",
                "{P} gave away some of {his} {a} {i} and kept {b}.|How many did {he} give away?",
                "There were {b} {i} in the bag. {n} put more in, and now there are {a}.|How many did {n} put in?",
                "{n} will have {a} {i} after getting {b} more.|How many does {n} have today?",
                "Yesterday there were {b} {i}, today there are {a}.|How many {i} were added?",
                "All but {b} of the {a} {i} are sold.|How many {i} are sold?",
                "If {n} got {b} more {i}, there would be {a}.|How many {i} does {n} have?",
                "I had {b} {i} until {n} gave me some more. Now I've got {a}.|How many did {n} give me?",
                "We had {a} {i} before the party and {b} after it.|How many {i} were used?",
                "{n} sold all {i} except {b}. At first there were {a}.|How many did {n} sell?",
                "{n} has to give back {b} of {a} borrowed {i}.|How many can {n} keep?",
            ),
        },
    ),
    # Ages.
    Scene(
        95,
        {
            "+": (
                "{n} is {a}, {b} years younger than {m}.|How old is {m}?",
                "{b} years ago {n} was {a}.|How old is {n} now?",
                "In {b} years, how old will {p} be, who is {a} today?",
                "{n} came to {c} at the age of {a} and has lived there for {b} years.|How old is {n}?",
                "Our house was {b} years old when we bought it {a} years ago.|How old is the house?",
                "{m} is {b} years older than {n}, and {n} is {a}.|How old is {m}?",
                "{P} was {a} when {his} dog was born. Now the dog is {b}.|How old is {p}?",
                "{n} is {a} and {m} {b}.|How old are the two together?",
                "I was {a} when I started to paint, {b} years ago.|How old am I?",
            ),
            "-": (
                "{n} is {a}, {b} years older than {m}.|How old is {m}?",
                "In {b} years {n} will be {a}.|How old is {n} now?",
                "{m} was born {b} years after {n}, who is {a}.|How old is {m}?",
                "{n} is {a} and has lived in {c} for {b} years.|At what age did {n} come to {c}?",
                "{n} is {b} today.|In how many years will {n} be {a}?",
                "How much younger is {m}, who is {b}, than {n}, who is {a}?",
                "I'm {a} and my cousin is {b}.|By how many years is my cousin younger than me?",
                "{n} turned {a} today and {m} turned {b}.|How many years lie between the two?",
                "{n} and {m} are {a} years old together. {m} is {b}.|How old is {n}?",
                "{n} is {a}. When {n} was born, {m} was not there yet: {m} came {b} years later.|How old is {m}?",
                "{P} is {a} and has been painting for {b} years.|How old was {he} at the beginning?",
            ),
            "=": ("{n} is {a} and {m} is twice as old.|How old is {m}?",),
            "x": ("{n} is {b}. {m} is {a} times as old.|How old is {m}?",),
        },
    ),
    # Temperatures.
    Scene(
        38,
        {
            "+": (
                "In the morning it was {a} degrees. By noon it was {b} degrees warmer.|How warm was it at noon?",
                "It is {a} degrees now, {b} degrees colder than yesterday.|How warm was it yesterday?",
                "The water cooled by {b} degrees to {a}.|How warm was it before?",
                "Overnight the temperature fell by {b} degrees to {a}.|How many degrees was it last evening?",
                "It's {a} degrees in {c} and {b} degrees more in {e}.|How warm is it in {e}?",
            ),
            "-": (
                "It is {a} degrees now, {b} degrees warmer than this morning.|How warm was it this morning?",
                "At noon it was {a} degrees. Until the evening it cooled down by {b}.|How warm was it in the evening?",
                "It is {a} degrees in {c} and {b} in {e}.|How many degrees warmer is it in {c}?",
                "It was {b} degrees at dawn and {a} at noon.|By how many degrees did it get warmer?",
                "The cellar should have {a} degrees but has only {b}.|How many degrees are missing?",
                "It has got {b} degrees warmer since breakfast: {a} degrees.|How warm was it at breakfast?",
                "{c} has {a} degrees today. In {e} it is {b} degrees colder.|What is the temperature in {e}?",
            ),
        },
    ),
    Scene(
        95,
        {
            "-": (
                "The tea had {a} degrees and has cooled down to {b}.|By how many degrees did it cool?",
                "The soup has {b} degrees.|By how many degrees must it get hotter to reach {a}?",
            ),
            "+": ("The tea has {a} degrees after cooling down by {b}.|How hot was the tea before?",),
        },
    ),
    # Buses and trains.
    Scene(
        85,
        {
            "+": (
                "{b} people got off the bus, {a} stayed on.|How many were on the bus before the stop?",
                "A bus carries {a} people. At the next stop {b} get on and nobody gets off.|How many people are on it?",
                "{b} passengers left the train and {a} are still in it.|How many were in the train before?",
                "An empty bus takes on {a} people at one stop and {b} at the next.|How many are on the bus then?",
                "Every passenger sits: {a} seats are taken, and {b} are not.|How many seats are there on the bus?",
                "At {c} {b} people leave the train, so {a} go on to {e}.|How many people came to {c} by this train?",
                "bus has {a} ppl on it, {b} more get on, nobody gets off. how many now",
            ),
            "-": (
                "{b} people got on, and now there are {a} on the bus.|How many were on the bus before?",
                "A bus with {a} people stops. {b} get off and nobody gets on.|How many people drive on?",
                "The bus left with {b} people and arrived with {a}. Nobody got off.|How many got on?",
                "The bus left with {a} people and arrived with {b}. Nobody got on.|How many got off?",
                "Bus {k} came with {a} people, and {b} of them got off at the {l}.|How many stayed on the bus?",
                "{a} people wait for a bus that has room for only {b}.|How many must wait for the next bus?",
                "Nobody stands on the tram: it has {a} seats, and {b} people are on it.|How many more can sit down?",
                "After {b} people had got on at {c}, {a} were on the coach.|How many were on it before {c}?",
                "The plane has {a} seats and {b} are still free.|How many seats are booked?",
            ),
        },
    ),
    Scene(
        ANY,
        {
            "x": (
                "{a} minibuses come with {b} people in each.|How many people come?",
                "A minibus has {b} seats.|How many people can sit in {a} such minibuses?",
                "Our train has {a} coaches with {b} doors each.|How many doors does the train have?",
                "A boat takes {b} people and goes across {a} times, always full.|How many people cross the river?",
            ),
        },
    ),
    # Money.
    Scene(
        ANY,
        {
            "+": (
                "{n} paid {b} euros and has {a} euros left.|How much money did {n} have before?",
                "The coat is {b} euros cheaper now and costs {a} euros.|What did the coat cost before?",
                "A jacket costs {a} euros, a coat costs {b} euros more.|What does the coat cost?",
                "The shoes are {a} euros, that is {b} euros less than the boots.|How much are the boots?",
                "{n} has {a} euros and needs {b} euros more for a bike.|What does the bike cost?",
                "{n} owes {m} {a} euros and borrows another {b}.|How much does {n} owe {m} now?",
                "The meal was {a} euros and I left a tip of {b}.|How much did I pay?",
                "After a discount of {b} euros the phone costs {a} euros.|What was its price before the discount?",
                "I bought a book for {a} euros and got {b} euros back.|How much money did I hand over?",
                "{n} took {b} euros out of the account, and {a} euros are still in it.|How much was in the account?",
                "{P} spent {b} euros on {i}, now {he} has only {a} euros.|How much did {he} have?",
                "shoes {a} euros, socks {b} euros. how much for both",
                "The ticket got {b} dollars dearer. It used to cost {a} dollars.|What does the ticket cost now?",
                "We lent {n} {b} euros and have {a} euros left ourselves.|How much did we have?",
                "Lunch is {a} euros without a drink, and a drink is {b}.|How much is lunch with a drink?",
            ),
            "-": (
                "I gave the man {a} euros for a ticket of {b} euros.|How much do I get back?",
                "A coat costs {a} euros, that is {b} euros more than the jacket.|How much is the jacket?",
                "A bag costs {a} euros, but {n} has only {b}.|How much more does {n} need?",
                "The price went up by {b} euros to {a} euros.|What was the price before?",
                "{n} owes me {a} euros and has paid back {b}.|How much does {n} still owe me?",
                "A ticket used to cost {b} euros and now costs {a}.|By how much has the price gone up?",
                "With a coupon I pay {b} instead of {a} euros.|How much do I save?",
                "Lunch and coffee were {a} euros together; lunch alone was {b} euros.|How much was the coffee?",
                "{n} earned {b} euros today and has {a} euros now.|How much did {n} have yesterday?",
                "I have €{a}, and the shoes are €{b}.|How much will I have after buying the shoes?",
                "We may spend {a} euros, and {b} euros are spent.|How much may we still spend?",
                "The bike costs {a} euros. {m} pays {b} of that and I pay the rest.|How much do I pay?",
                "{n} has {b} euros too little for a phone of {a} euros.|How much money does {n} have?",
                "Bill: ${a}. I'm paying ${b} of it, {n} the other part.|How much does {n} pay?",
                "The phone was {a} euros and is {b} euros cheaper today.|What does it cost today?",
                "My account had {b} euros. After my pay came it had {a}.|How much was the pay?",
            ),
            "=": (
                "Two of us pay {a} euros each.|How much is that for both of us?",
                "{n} paid {a} euros for {i}, and for {j} just as much.|How much did {n} pay altogether?",
                "Prices have doubled: bread was {a} crowns.|How many crowns is it now?",
            ),
            "x": (
                "A ticket is {b} euros, and there are {a} of us.|How much do we pay?",
                "{n} saves {b} euros a week.|How much will that be after {a} weeks?",
                "{a} coffees at {b} euros each, what do I pay?",
                "I pay {b} euros a month for the gym.|How much do I pay in {a} months?",
                "Renting a bike costs {b} euros an hour. {n} keeps it for {a} hours.|How much does {n} pay?",
                "Each of {a} friends gives me {b} euros.|How many euros do I get?",
                "{n} bought {a} books. All of them had the same price, {b} euros.|How much did {n} spend?",
                "price per unit {b} usd, qty {a}, total?",
                "Parking is {b} dollars per hour.|What do {a} hours cost?",
                "I have {a} notes of {b} crowns.|How many crowns do I have?",
            ),
        },
    ),
    # Ways.
    Scene(
        ANY,
        {
            "+": (
                "{n} has walked {b} km and still has {a} km to go.|How long is the whole way?",
                "From {c} to {e} it is {a} km, and the lake is {b} km further on.|How far is the lake from {c}?",
                "The red path is {a} km long, {b} km shorter than the blue one.|How long is the blue path?",
                "{n} lives {a} km from the {l}, and {m} lives {b} km further away.|How far does {m} live from the {l}?",
                "We have done {b} miles, and {a} miles are left.|How many miles is the trip in all?",
                "{n} cycled {a} km, {b} km less than {m}.|How far did {m} cycle?",
                "Because of the flood we had to drive {b} km more than the usual {a}.|How many km did we drive?",
            ),
            "-": (
                "The way to the lake is {a} km; {n} still has {b} km to go.|How far has {n} gone?",
                "{n} lives {a} km from the {l}. That is {b} km further than {m}.|How far from the {l} does {m} live?",
                "The race is {a} km long. After {b} km {n} gives up.|How many km did {n} not run?",
                "This morning the sign said {a} km to {c}, now it says {b}.|How far have we come?",
                "It is {a} km to {c} by road but only {b} by boat.|How much shorter is it by boat?",
                "{n} cycled {a} km, {b} km more than {m}.|How far did {m} cycle?",
                "The trip is {a} miles, the last {b} of them on foot and the rest by train.|How far is it by train?",
                "Thanks to the tunnel the road is {b} km shorter. It was {a} km before.|How long is the road now?",
                "{m} is at kilometre {b} and {n} at kilometre {a} of the same road.|How many km are they apart?",
            ),
            "=": (
                "It is {a} km to the lake.|How many km is it there and back?",
                "{n} cycles {a} minutes to work and needs the same time home.|How many minutes is that a day?",
            ),
            "x": (
                "One lap is {b} km, and {n} runs {a} laps.|How far does {n} run?",
                "{n} walks {b} km an hour.|How far does {n} get in {a} hours?",
                "It is {b} km to school. This week {n} went the way {a} times.|How many km was that?",
                "The car needs {b} litres for a trip.|How many litres do {a} such trips take?",
            ),
        },
    ),
    # Minutes.
    Scene(
        ANY,
        {
            "+": (
                "The train ride takes {a} minutes, but today it takes {b} minutes longer.|How long does it take today?",
                "{n} waited {b} minutes and then drove for {a} minutes.|How many minutes did that take in all?",
                "The film has been running for {b} minutes and goes on for another {a}.|How long is the film?",
                "By bike it takes me {a} minutes, {b} minutes less than on foot.|How long does it take on foot?",
                "The cake has been in the oven for {b} minutes and needs {a} more.|How long must it bake in all?",
                "{n} finished in {a} minutes, {b} minutes faster than {m}.|How many minutes did {m} take?",
                "{n} came {b} minutes too late, {m} {a} minutes after {n}.|How many minutes late was {m}?",
                "Cook for {a} minutes, then let it rest for {b} minutes.|How long does it take?",
                "the call was {a} min, that's {b} min shorter than planned. how long was it planned",
            ),
            "-": (
                "The cake must bake for {a} minutes; it has been in for {b}.|How many more minutes does it need?",
                "{n} took {a} minutes, {b} minutes more than {m}.|How many minutes did {m} take?",
                "The film lasts {a} minutes, and {b} minutes are still to come.|How long has the film been running?",
                "On foot it takes {a} minutes, by bus {b} minutes less.|How long does it take by bus?",
                "The bus leaves in {a} minutes, and I need {b} minutes to the stop.|How many minutes can I stay?",
                "{P} practised {a} minutes, {b} of them on the piano and the rest on the flute.|"
                "How long did {he} play the flute?",
                "The lesson is {a} minutes long. A test takes {b} minutes of it.|How many minutes remain?",
                "{n} was {b} minutes faster than {m}, who took {a}.|How long did {n} take?",
                "We planned {a} minutes but were done after {b}.|How many minutes did we save?",
                "{n} slept {a} minutes in two naps. The first one was {b} minutes.|How long was the second nap?",
            ),
            "x": (
                "A song takes {b} minutes.|How long do {a} such songs take?",
                "{n} reads {b} minutes every evening.|How many minutes is that in {a} evenings?",
                "{a} talks of {b} minutes each, without a break.|How many minutes will we sit there?",
                "I brush my teeth for {b} minutes each time.|How many minutes are that after {a} times?",
                "One shirt takes {b} minutes to iron, and there are {a} shirts.|How many minutes does it take?",
            ),
        },
    ),
    # Pages, points, votes.
    Scene(
        ANY,
        {
            "+": (
                "{n} has read {b} pages of a book, and {a} pages are left.|How many pages does the book have?",
                "{n} is on page {a} and reads another {b} pages.|On what page is {n} then?",
                "The new book has {b} pages more than the old one, which has {a}.|How many pages has the new book?",
                "My thesis has {a} pages so far, {b} are missing.|How many pages will it have?",
                "{n} lost {b} points in the last round and has {a} now.|How many did {n} have before?",
                "Our team lost by {b} points. We had {a}.|How many points did the other team have?",
                "{n} has {a} points and needs {b} more to win.|How many points does it take to win?",
                "In the first half we made {a} points, in the second {b}.|How many were that?",
                "{n} got {a} votes and lost by {b}.|How many votes did the winner get?",
                "{a} people said yes, {b} said no.|How many people answered?",
                "{m} leads by {b} points, {n} has {a}.|How many points does {m} have?",
            ),
            "-": (
                "A book has {a} pages, and {b} are still unread.|How many pages have been read?",
                "{n} was on page {b} this morning and is on page {a} now.|How many pages further is that?",
                "{n} is on page {b} and must get to page {a}.|How many pages are left?",
                "My last book had {a} pages, this one has {b} fewer.|How many pages does this one have?",
                "Our team won by {b} points. We had {a}.|How many points did the other team have?",
                "It takes {a} points to win, and {n} has {b}.|How many points are missing?",
                "{n} won {b} points in the last round and has {a} now.|How many did {n} have before?",
                "{n} scored {a} points in two games, {b} of them in the first.|How many did {n} score in the second?",
                "The match ended {a} to {b} for us.|By how many points did we win?",
                "Level {k}: {n} has {a} points and {m} has {b}.|How many points is {m} behind?",
                "{n} won the election with {a} votes, {b} more than {m}.|How many votes did {m} get?",
                "{a} people voted, {b} of them with no and the others with yes.|How many voted yes?",
                "{n} leads by {b} points and has {a}.|How many points does {m}, who is second, have?",
                "We got {a} points. Last time it was {b} less.|How many points did we get last time?",
            ),
            "x": (
                "A chapter has {b} pages.|How many pages do {a} such chapters have?",
                "{n} writes {b} pages a day.|How many pages are that after {a} days?",
                "Every goal counts {b} points, and {n} shot {a}.|How many points is that?",
                "{n} won {a} rounds. A round brings {b} points.|How many points did {n} get?",
                "Each right answer gives {b} points. {n} had {a} right answers.|What is {n}'s score?",
            ),
            "=": ("The next win counts double. Normally it is {a} points.|How many points will it bring?",),
        },
    ),
    # Lengths, weights, litres, floors.
    Scene(
        ANY,
        {
            "+": (
                "{n} cut {b} cm off a ribbon, and {a} cm are left.|How long was the ribbon?",
                "A plant was {a} cm high and has grown by {b} cm.|How high is it now?",
                "The shelf is {a} cm wide, which is {b} cm too narrow.|How wide should the shelf be?",
                "Two boards are put end to end, one of {a} cm and one of {b} cm.|How long is that?",
                "{b} litres leaked out, and {a} litres are still in the tank.|How many litres were in the tank?",
                "The bag may weigh {a} kilos, but it is {b} kilos too heavy.|How much does the bag weigh?",
                "{n} is on floor {a} and goes {b} floors up.|On what floor does {n} arrive?",
                "{n} went {b} floors down and is on floor {a} now.|On what floor was {n} before?",
                "The blue rope is {a} metres long, {b} metres less than the red one.|How long is the red rope?",
                "An empty box weighs {b} kg, and there are {a} kg of {i} in it.|How much does it weigh with the {i}?",
                "The candle burned down by {b} mm and is {a} mm high now.|How high was the candle?",
            ),
            "-": (
                "The plant has grown by {b} cm and is {a} cm high now.|How high was the plant before?",
                "A rope is {a} m long, but {n} needs only {b} m.|How many metres must be cut off?",
                "{n} cuts a ribbon of {a} cm in two. One piece is {b} cm.|How long is the other piece?",
                "The shelf is {a} cm wide, which is {b} cm too wide.|How wide should the shelf be?",
                "Of a board of {a} cm, {b} cm are to stay.|How many cm must be sawn off?",
                "The snow was {a} cm deep. {b} cm have melted.|How deep is the snow now?",
                "The full box weighs {a} kg, the empty one {b} kg.|How heavy is what is in the box?",
                "The bag weighs {a} kilos, {b} kilos more than it may.|How much may the bag weigh?",
                "{b} litres more and the tank is full. The tank takes {a} litres.|How many litres are in it?",
                "{n} went {b} floors up and is on floor {a} now.|On what floor was {n} before?",
                "{n} is on floor {b} and has to go to floor {a}.|How many floors is that?",
                "The blue rope is {a} metres long, {b} metres more than the red one.|How long is the red rope?",
                "{n} poured {b} ml into a glass. Now there are {a} ml in it.|How many ml were in it before?",
                "The pool was filled with {a} litres, which is {b} litres too much.|How many litres would be right?",
            ),
            "x": (
                "{a} boards of {b} m each are laid end to end.|How long is that?",
                "{n} needs {a} pieces of ribbon, each {b} cm long.|How many cm of ribbon does {n} need?",
                "A bucket holds {b} litres. {n} pours {a} full buckets into the tub.|How many litres are poured in?",
                "One brick weighs {b} kg.|How heavy are {a} bricks?",
                "The house has {a} floors, and a floor is {b} m high.|How high is the house?",
                "The plant grows {b} cm a week.|By how many cm does it grow in {a} weeks?",
                "A garden is {a} m long and {b} m wide.|How many square metres is that?",
            ),
        },
    ),
    # Stock and work.
    Scene(
        ANY,
        {
            "+": (
                "After {b} boxes were shipped, {a} boxes are in stock.|How many boxes were in stock before?",
                "We have {a} open orders, and {b} came in today.|How many open orders do we have now?",
                "{b} parts were faulty and {a} were fine.|How many parts were tested?",
                "{a} invoices are paid, {b} are still open.|How many invoices are there?",
                "{b} of our people left the company, which leaves {a}.|How many people worked there before?",
                "stock {a}, delivery of {b} today, new stock?",
                "{a} tests passed and {b} failed.|How many tests ran?",
                "{n} has answered {b} mails, {a} are unanswered.|How many mails came in?",
                "{n} has taken {b} days of leave, and {a} days are left.|How many days of leave were there at first?",
                "Our shop sold {a} {i} on {d}, {b} fewer than the day before.|How many did it sell the day before?",
            ),
            "-": (
                "A delivery of {b} cartons brings our stock to {a}.|How many cartons did we have before?",
                "{a} invoices were sent, {b} of them are paid.|How many are unpaid?",
                "We need {a} screws, and {b} are in the store.|How many screws do we have to order?",
                "{b} of {a} tests passed.|How many tests failed?",
                "{a} tests ran and {b} failed.|How many tests passed?",
                "Our hotel has {a} rooms, and {b} are free.|How many rooms are taken?",
                "inventory {a}, shipped {b}, what's left?",
                "{n} got {a} mails and {b} are still unanswered.|How many has {n} answered?",
                "{n} has {b} days of leave left of {a}.|How many days has {n} taken?",
                "The team has {a} people now; last year it was {b}. Nobody left.|How many people joined?",
                "Our shop sold {a} {i} on {d}, {b} more than the day before.|How many did it sell the day before?",
                "disk has {a} GB, {b} GB used. how many GB free?",
                "We ordered {a} {i} but only {b} came.|How many {i} are still to come?",
                "{n} must pack {a} parcels. {b} are still to be done.|How many are packed?",
            ),
            "x": (
                "A pallet carries {b} crates.|How many crates do {a} pallets carry?",
                "{a} machines make {b} parts an hour each.|How many parts do they make in an hour?",
                "Each of our {a} servers runs {b} jobs.|How many jobs are running?",
                "{n} works {b} hours a day.|How many hours is that in {a} days?",
                "{n} works {b} days a week.|How many days of work is that in {a} weeks?",
                "The course runs for {a} weeks, on {b} days of every week.|How many days of class is that?",
                "{a} people work on it for {b} days each.|How many days of work is that?",
                "our office has {a} rooms w/ {b} desks each. desks total?",
            ),
        },
    ),
    # Seats, rows, columns.
    Scene(
        ANY,
        {
            "+": (
                "A row has {a} seats, the row behind it has {b} more.|How many seats does the row behind have?",
                "The first row has {a} seats and the second one {b}.|How many seats do the two rows have?",
                "{b} of the guests have no chair, {a} have one.|How many guests are there?",
                "{a} seats are free and {b} are not.|How many seats does the hall have?",
                "The hall had {a} chairs. We carried {b} more in.|How many chairs are in the hall?",
            ),
            "-": (
                "A row has {a} seats, the row behind it has {b} fewer.|How many seats does the row behind have?",
                "A hall has {a} seats, and {b} people come, who all sit.|How many seats stay empty?",
                "There are {a} guests but only {b} chairs.|How many guests have to stand?",
                "In the cinema {b} of {a} seats are free.|How many seats are taken?",
                "Two rows have {a} seats together. The first one has {b}.|How many seats are in the second row?",
            ),
            "x": (
                "A row has {b} seats, there are {a} rows.|How many seats are there?",
                "The hall has {a} rows, and every row is {b} seats long.|How many people can sit?",
                "A bar of chocolate has {a} rows and {b} columns.|How many pieces does it have?",
                "A table has {a} columns and {b} rows.|How many cells does it have?",
                "a grid of {a} by {b}, how many squares?",
                "The chairs stand in {a} lines, {b} chairs to a line.|How many chairs are there?",
                "Tiles: {a} across, {b} down.|How many tiles do I need?",
                "{n} has planted tulips: {a} rows with {b} in each.|How many has {n} planted?",
                "The box of paints has {b} colours in a row, and {a} rows.|How many colours is that?",
                "Our sheet of stickers has {a} lines of {b}.|How many stickers are on the sheet?",
            ),
        },
    ),
    # Cooking and packs.
    Scene(
        ANY,
        {
            "+": (
                "The recipe says {a} grams of sugar, but {n} takes {b} grams more.|How many grams does {n} take?",
                "{n} mixes {a} g of flour with {b} g of butter.|How heavy is the dough?",
                "One pack has {a} {i} and another has {b}.|How many {i} are in the two packs?",
                "A pack of {a} {i} comes with {b} free ones.|How many {i} do I get?",
                "I opened a pack, used {b} {i}, and {a} are left.|How many were in the pack?",
                "I was {b} g of flour short of what the cake needs, as I had only {a} g.|How many g are needed?",
                "The cook needs {a} eggs for the cake and {b} for the soup.|How many eggs does the cook need?",
            ),
            "-": (
                "The recipe says {a} grams of sugar, but {n} takes {b} grams less.|How many grams does {n} take?",
                "{n} needs {a} g of flour and has only {b} g.|How many g are missing?",
                "A pack should hold {a} {i}, but {b} are missing.|How many are in it?",
                "I opened a pack of {a} {i}, and {b} are left.|How many have I used?",
                "{n} baked {a} rolls, {b} of them with cheese and the others plain.|How many rolls are plain?",
                "We invited {a} people for dinner. {b} said no.|How many people will come?",
                "We have plates for {b} people, and {a} are coming.|How many plates do we need to borrow?",
                "A pack of {a} {i} includes {b} free ones.|For how many {i} do I pay?",
            ),
            "x": (
                "For one person you take {b} spoons of rice.|How many spoons do you take for {a} people?",
                "A cake needs {b} eggs.|How many eggs do {a} cakes need?",
                "A pack holds {b} {i}.|How many are in {a} packs?",
                "There are {b} pens to a pack, and I order {a} packs.|How many pens will come?",
                "Eggs come in boxes of {b}. {n} buys {a} boxes.|How many eggs is that?",
                "{n} has {a} bags, all with the same number of {i}: {b}.|How many {i} are that?",
                "{a} guests are coming, and everybody eats {b} dumplings.|How many dumplings do I have to make?",
                "My pills: {b} a day, for {a} days.|How many pills do I need?",
                "The recipe is for one pan: {b} potatoes. I want to make {a} pans.|How many potatoes do I need?",
                "how many {i} in {a} boxes if there's {b} in a box",
                "{n} drinks {b} cups of tea each day.|How many cups is that in {a} days?",
                "Every shelf holds {b} {i}; {n} has {a} such shelves, all full.|How many {i} are there?",
                "{n} takes {b} {i} out of each of {a} boxes.|How many {i} does {n} take out?",
                "{n} gives away {b} {i} on every one of {a} days.|How many {i} does {n} give away?",
                "Each of the {a} children lost {b} {i}.|How many {i} were lost?",
                "{a} children get {b} {i} each.|How many {i} do we need?",
            ),
            "=": (
                "The recipe for two takes {a} grams of rice, and we are four, so double it.|How many grams is that?",
            ),
        },
    ),
    # What everybody knows, and is told.
    Scene(
        ANY,
        {
            "x7": (
                "A week has {b} days.|How many days do {a} weeks have?",
                "There are {b} days in a week.|How many days is {n} away, who travels for {a} weeks?",
                "{n} stays for {a} weeks of {b} days.|How many days does {n} stay?",
            ),
            "x4": (
                "A horse has {b} legs.|How many legs do {a} horses have?",
                "Each car has {b} wheels.|How many wheels are on {a} cars?",
            ),
            "x2": (
                "A bicycle has {b} wheels.|How many wheels do {a} bicycles have?",
                "{a} birds have {b} wings each.|How many wings are that?",
            ),
            "x6": ("An ant has {b} legs.|How many legs do {a} ants have?",),
            "x8": ("An octopus has {b} arms.|How many arms do {a} of them have?",),
            "x5": ("There are {b} fingers on a hand.|How many fingers are on {a} hands?",),
            "x3": ("A triangle has {b} sides.|How many sides do {a} triangles have?",),
        },
    ),
    # Parts of a whole.
    Scene(
        99,
        {
            "+": (
                "{b} children of the class are ill, {a} are here.|How many children are in the class?",
                "{n} has {a} letters from friends and {b} from others.|How many letters does {n} have?",
                "On the farm there are {a} cows and {b} sheep, and no other animals.|How many animals are there?",
                "{b} of the eggs broke, {a} did not.|How many eggs were there?",
                "{a} trees have leaves and {b} have none.|How many trees are there?",
                "{a} red fish and {b} blue ones swim in the pond.|How many fish are in the pond?",
            ),
            "-": (
                "A farm has {a} animals, cows and sheep. {b} are sheep.|How many cows are there?",
                "A class of {a} has {b} boys.|How many girls are in the class?",
                "{a} letters came, {b} of them bills.|How many of the letters were no bills?",
                "{n} counted {b} red cars among {a} cars.|How many cars had another colour?",
                "{a} children are in the choir, {b} of them can read music.|How many cannot?",
                "All {a} lamps work, apart from {b} of them.|How many lamps work?",
                "Of {a} seeds only {b} came up.|How many did not come up?",
                "{n} knows {b} of the {a} new words.|How many does {n} still have to learn?",
            ),
        },
    ),
    # A number that plays no part.
    Scene(
        99,
        {
            "+": (
                "{n} in room {k} ordered {a} towels and later {b} more.|How many towels did {n} order?",
                "Bus {k} had {a} passengers when {b} more got on.|How many passengers does it have now?",
                "Team {k} has {a} girls and {b} boys.|How many children are in the team?",
                "On {day}, {n} sold {b} {i} and kept {a}.|How many {i} did {n} have before?",
                "{n}, who is {age}, read {a} pages yesterday and {b} today.|How many pages did {n} read?",
                "At {h} o'clock {a} people were in the shop. Then {b} came in.|How many people are in the shop now?",
                "Flat {k} pays {a} euros for water and {b} for heat.|How much does the flat pay?",
                "On {day} we got {a} mails, on the next day {b}.|How many mails did we get?",
                "{n} ({age}) weighs out {a} g of nuts and {b} g of raisins.|How many g is that?",
            ),
            "-": (
                "On {day} {n}, aged {age}, bought {a} {i} and gave {b} of them to {m}.|How many {i} did {n} keep?",
                "House number {k} has {a} windows; {b} of them are open.|How many windows are closed?",
                "At {h} o'clock there were {a} guests. By midnight {b} had gone.|How many guests were there then?",
                "{n} is {age} and has {a} {i}, {b} more than {m}.|How many {i} does {m} have?",
                "Room {k} has {a} chairs, {b} too many.|How many chairs should be in the room?",
                "In {k} minutes the shop closes. It still has {b} of {a} {i}.|How many {i} were sold?",
                "The {l} in street {k} had {a} visitors on {day}, and {b} of them were children.|"
                "How many visitors were no children?",
                "On {day} the price rose by {b} euros to {a}.|What was the price before?",
                "Route {k}: {a} stops, and we have passed {b}.|How many stops are still to come?",
                "{n} has {k} cousins and {a} euros, of which {b} go to the {l}.|How many euros are left for {n}?",
            ),
            "x": (
                "In room {k} there are {a} tables with {b} chairs each.|How many chairs are in the room?",
                "{n}, who is {age}, buys {a} packs of {b} batteries.|How many batteries does {n} buy?",
                "On {day} {p} planted {a} rows of {b} onions.|How many onions did {he} plant?",
                "Order {k}: {a} cartons, {b} bottles in each.|How many bottles were ordered?",
                "At {h} o'clock {a} teams of {b} players start.|How many players start?",
                "Class {k} has {a} groups with {b} children each.|How many children are that?",
            ),
            "=": ("In room {k} lie {a} books, and in the next room twice as many.|How many are in the next room?",),
        },
    ),
    # Things of two kinds, of which one is asked for.
    Scene(
        ANY,
        {
            "+": (
                "{n} has {a} {i} and {k} {j}. {m} has {b} {i}.|How many {i} do the two have together?",
                "{n} buys {a} {i} and {k} {j}, and later another {b} {i}.|How many {i} does {n} buy?",
                "In the bowl are {k} {j} and {a} {i}. {n} puts {b} {i} in.|How many {i} are in the bowl now?",
                "{n} sold {b} {i} and {k} {j} and still has {a} {i}.|How many {i} did {n} have before?",
                "The box has {a} red and {b} blue pens, and {k} brushes.|How many pens are in the box?",
                "{n} spent {a} euros on {i}, {b} euros on {j} and {k} hours in town.|How many euros did {n} spend?",
            ),
            "-": (
                "{n} has {a} {i} and {k} {j} and gives away {b} {i}.|How many {i} does {n} have now?",
                "There are {k} {j} and {a} {i} in the box. {n} takes out {b} of the {i}.|How many {i} are in it now?",
                "{n} has {a} {i} and {k} {j}, {m} has {b} {i}.|How many {i} does {n} have more than {m}?",
                "We sold {k} {j} and {b} of our {a} {i}.|How many {i} do we still have?",
                "{n} got {k} {j} and {b} {i}. Now {n} has {a} {i}.|How many {i} were there before?",
                "Out of {a} {i} and {k} {j}, {n} took no {j} but {b} {i}.|How many {i} are left?",
            ),
            "x": (
                "{n} has {a} boxes of {b} {i} each and also {k} {j}.|How many {i} does {n} have?",
                "{a} bags hold {b} {i} each, and one more bag holds {k} {j}.|How many {i} are there?",
                "Each of {a} children gets {b} {i}. The teacher gets {k} {j}.|How many {i} are given away?",
                "{n} pays {b} euros for each of {a} {i}; the {k} {j} are free.|How many euros does {n} pay?",
            ),
        },
    ),
    # Riddles.
    Scene(
        ANY,
        {
            "+": (
                "I think of a number and take {b} away. I get {a}.|What is my number?",
                "I had a number in mind. Minus {b} it is {a}.|What number was it?",
                "My number is {b} more than {a}.|What is my number?",
                "{a} is {b} less than my number.|What is my number?",
            ),
            "-": (
                "I think of a number and add {b}. I get {a}.|What is my number?",
                "If I add {b} to my number, it becomes {a}.|What is my number?",
                "{a} is {b} more than my number.|What is my number?",
                "My number and {b} make {a}.|What is my number?",
                "Two numbers are {a} together. One of them is {b}.|What is the other one?",
            ),
            "=": ("I think of a number, take {a} away and get {a} again.|What is my number?",),
            "x": ("{b} goes into my number {a} times, with nothing left over.|What is my number?",),
        },
    ),
    # Words that elsewhere go with another sign.
    Scene(
        ANY,
        {
            "+": (
                "Each of the boxes is different: one holds {a} {i}, the other {b}.|How many {i} are in the two boxes?",
                "Every ticket is sold: {a} to children and {b} to adults.|How many tickets were there?",
                "{n} was in {c} {a} times last year and {b} times this year.|How many times is that in all?",
                "{n} picked {a} {i}, most of them small, and {m} picked {b}.|How many {i} did {n} and {m} pick?",
                "{n} paid for {a} {i}, one of them broken, and got {b} more free.|How many {i} did {n} get?",
                "Every guest is here: {a} came by car and {b} by train.|How many guests are here?",
                "A pack of {a} {i} and a pack of {b} {i} lie on the shelf.|How many {i} lie on the shelf?",
                "There are just two rows, with {a} people in one row and {b} in the other.|How many people are there?",
                "Each morning {n} does {a} squats and {b} jumps.|How many exercises does {n} do each morning?",
                "{n} won {a} times and lost {b} times.|How many times did {n} play?",
                "{n} missed {b} shots but scored with {a}.|How many shots were there?",
                "{n} took away {b} {i}, {m} took away {a}.|How many {i} did they take away?",
                "{n} gave me {a} {i} and {m} gave me {b}, and I lost none.|How many {i} do I have from them?",
                "{a} of us left early, and {b} left late.|How many of us left?",
                "We lost {a} {i} last week and {b} this week.|How many {i} have we lost?",
                "{n} spent {a} euros on {d} and {b} euros the day after.|How much did {n} spend?",
            ),
            "-": (
                "There are {a} sweets, and each of {b} children takes one.|How many sweets are left?",
                "We have {a} plates, and each of {b} people needs one.|How many plates are not needed?",
                "Every one of {a} rooms should have one lamp, but there are only {b} lamps.|How many rooms have none?",
                "{n} tried it {a} times and it worked {b} times.|How many times did it not work?",
                "In a row of {a} trees, {b} have been cut down.|How many trees still stand in the row?",
                "A pack has {a} pills. I took one pill each day for {b} days.|How many pills are in the pack now?",
                "The hall has {a} rows, and {b} of the rows are empty.|In how many rows do people sit?",
                "We need {a} packs of sugar and have {b} packs.|How many more packs do we need?",
                "Another {b} {i}, and {n} will have {a} in all.|How many {i} does {n} have so far?",
                "{n} wants to run {a} laps and has run {b} laps.|How many laps are still to be run?",
                "{a} boxes hold one prize each, and {b} of the boxes have been emptied.|How many prizes are left?",
                "{n} added {b} {i} to those of {m}, which made {a}.|How many {i} did {m} have?",
                "The sum of two bills is {a} euros. One bill is {b} euros.|How much is the other bill?",
                "{n} earned {a} euros in two days, {b} of them on the first.|How much did {n} earn on the second day?",
                "{n} rang {a} times, {b} times in the morning and otherwise in the evening.|"
                "How many times did {n} ring in the evening?",
            ),
            "x": (
                "{n} lost {b} {i} every day.|How many {i} were lost in {a} days?",
                "Every day there are {b} {i} fewer.|How many fewer are there after {a} days?",
                "{a} bags are left, with {b} {i} in each.|How many {i} are left?",
                "Every minute {b} more people come.|How many more people are here after {a} minutes?",
                "The price falls by {b} euros every week.|By how much has it fallen after {a} weeks?",
                "{n} took {b} steps back and did that {a} times.|How many steps back was that?",
                "Now there are {a} boats at sea with {b} people on each.|How many people are at sea now?",
                "{n} still has {a} packs with {b} pens in each of them.|How many pens does {n} still have?",
                "I sold {a} boxes of {b} {i}.|How many {i} did I sell?",
                "{a} families with {b} children each moved away.|How many children moved away?",
                "From each of {a} trees {b} leaves fell.|How many leaves fell?",
                "{n} used up {a} packs of {b} {i}.|How many {i} did {n} use up?",
                "{n} owes {b} euros to each of {a} friends.|How much does {n} owe in all?",
                "{n} got {a} more boxes, each with {b} {i} in it.|How many more {i} does {n} have now?",
                "After every meal {n} takes {b} drops.|How many drops are that after {a} meals?",
                "Each of the {a} of us brought {b} {i}.|How many {i} did we bring together?",
                "Before noon {a} groups of {b} people went in.|How many people went in before noon?",
                "{n} reads {b} pages more than {m} every day.|How many pages more is that after {a} days?",
            ),
            "=": (
                "The bus costs {a} euros each way.|How much is it there and back?",
                "{n} gave away {a} {i}, which was one half of them.|How many {i} did {n} have?",
            ),
        },
    ),
    # What people say to one another, and what they write.
    Scene(
        ANY,
        {
            "+": (
                '"I have {a} {i}," says {n}. "And I have {b} more than you," says {m}.|How many does {m} have?',
                '"I have {b} {i} fewer than you," says {n} to {m}. {n} has {a}.|How many {i} does {m} have?',
                "We are having a party on {d}. {a} people said yes last week, and today another {b} did.|"
                "How many guests will there be?",
                "Dear Sir or Madam, I ordered {a} chairs in March and another {b} in May.|"
                "How many chairs have I ordered altogether?",
                "My shift began with {a} patients. {b} were brought in and nobody went home.|"
                "How many patients are there now?",
                "so i owe my sis {a} bucks and my mum {b} bucks. how much do i owe total",
                "The meter stood at {a} last month, and since then we have used {b} units.|What does it show now?",
                "A list has {a} entries, and {b} more are appended.|How long is the list now?",
                "i popped {b} items off the stack and {a} are still on it. how many were on it before",
                "{n} brought back {b} books to the library and still has {a} at home.|How many books were borrowed?",
                "This year {a} tulips came up, {b} fewer than last year.|How many tulips came up last year?",
                "{b} days of our holiday were wet and {a} were dry.|How many days was the holiday?",
                "{n} is on square {a} and moves {b} squares forward.|On which square is {n} then?",
                "{n} moved {b} squares back and is on square {a} now.|On which square was {n} before?",
                "A diver is at {a} metres and goes {b} metres deeper.|How deep is the diver then?",
                "The lift has {a} people in it and room for {b} more.|How many people can it carry?",
                "volume is at {a}, i turn it up by {b}. where is it now",
                "A cow gave {a} litres of milk in the morning and {b} in the evening.|How many litres is that a day?",
                "We sleep {a} in the big tent and {b} in the small one.|How many of us are there?",
                "My friend says that the tank lost {b} litres, and I can see that {a} litres are in it.|"
                "How many litres were in the tank?",
                "{m} arrived {b} minutes after {n}, who took {a} minutes for the way.|"
                "We started together, so how long did {m} take?",
            ),
            "-": (
                '"I have {a} {i}," says {n}. "Then you have {b} more than I do," says {m}.|How many does {m} have?',
                '"I have {b} {i} more than you," says {n} to {m}. {n} has {a}.|How many {i} does {m} have?',
                "We are having a party on {d}. Of {a} people that we asked, {b} cannot come.|"
                "How many guests will there be?",
                "Dear team, we ordered {a} chairs in March, of which only {b} have arrived.|"
                "How many chairs are still missing?",
                "My shift began with {a} patients. {b} went home and nobody was brought in.|"
                "How many patients are there now?",
                "i had {a} bucks and lent my sis {b}. how many do i have now",
                "The meter stood at {b} last month and shows {a} now.|How many units have we used?",
                "A list has {a} entries, and {b} are deleted.|How long is the list now?",
                "i pushed {b} items onto the stack and now it has {a}. how many were on it before",
                "{n} borrowed {a} books and has brought back {b}.|How many books does {n} still have?",
                "This year {a} tulips came up, {b} more than last year.|How many tulips came up last year?",
                "It rained on {b} of {a} days.|On how many days was it dry?",
                "{n} is on square {a} and has to go {b} squares back.|On which square is {n} then?",
                "{n} moved {b} squares forward and is on square {a} now.|On which square was {n} before?",
                "A diver at {a} metres comes up by {b} metres.|How deep is the diver then?",
                "A diver went {b} metres deeper and is at {a} metres now.|How deep was the diver before?",
                "A lift can carry {a} people, and {b} are in it.|How many more can get in?",
                "volume was {b}, i turned it up and it's {a} now. by how much did i turn it up",
                "{n} set the timer to {a} minutes and stopped it with {b} minutes left.|How many minutes had passed?",
                "buffer of {a} bytes, {b} bytes free. how many are used",
                "{n} jumped {a} cm at first and {b} cm less the second time.|How far was the second jump?",
                "There are {a} of us in two tents. {b} sleep in the big one.|How many sleep in the small tent?",
                "My train has {a} stops. I get off {b} stops before the last one.|At which stop is that?",
                "{n} took {a} minutes for the way, and that was {b} minutes longer than usual.|"
                "How long does it usually take?",
            ),
            "x": (
                "Hi, we are a group of {a}, and everybody wants {b} slices of pizza.|How many slices do we order?",
                "I water {b} plants in each of {a} offices.|How many plants do I water?",
                "our gym has {a} courses with {b} places each, how many places total",
                "me and the guys are {a}, {b} cokes for each of us. how many cokes",
                "A matrix has {a} rows and {b} columns.|How many entries does it have?",
                "the outer loop runs {a} times, the inner one {b} times each. how many runs of the inner body",
                "A hen lays {b} eggs a week.|How many eggs do {a} such hens lay in a week?",
                "{n} jumps {b} squares at a time and does so {a} times.|How many squares is that?",
                "A pump moves {b} litres a minute.|How many litres are moved in {a} minutes?",
                "Dear all, there are {a} teams, and each team sends {b} people to the course.|"
                "How many people will take part?",
                "We sleep in {a} tents, {b} to a tent.|How many of us are there?",
                '"Give me {b} {i} from each of your {a} bags," says {n}.|How many {i} does {n} want?',
                "My doctor says {b} glasses of water a day.|How many glasses would that be in {a} days?",
                "{n} can do {b} push-ups; {m}, who is stronger, can do {a} times as many.|How many can {m} do?",
            ),
        },
    ),
    Scene(
        99,
        {
            "+": (
                "my phone lost {b} percent since noon and is at {a} percent now. what was it at noon",
                "I have been a nurse for {b} years and was a cook for {a} years before that.|"
                "How many years have I worked in all?",
            ),
            "-": (
                "I have worked for {a} years, the last {b} as a nurse and before that as a cook.|"
                "How many years was I a cook?",
                "my phone was at {a} percent this morning and is at {b} percent now. how many percent did it lose",
                "{a} percent of them are right, which is {b} percent more than last time.|"
                "How many percent were right last time?",
                "I charged the phone by {b} percent, now it is at {a} percent.|At how many percent was it before?",
            ),
        },
    ),
)

THINGS = (
    *("stickers", "marbles", "sweets", "photos", "postcards", "badges", "balloons", "muffins", "rolls", "sandwiches"),
    *("flowers", "chestnuts", "beads", "toys", "comics", "parcels", "letters", "files", "screws", "tiles", "batteries"),
)
PLACES = ("station", "school", "market", "library", "park", "harbour", "zoo", "town hall", "museum", "theatre")
# Who is told of, with what stands for them.
PERSONS = (
    ("my brother", "he", "his"),
    ("my sister", "she", "her"),
    ("my uncle", "he", "his"),
    ("my aunt", "she", "her"),
    ("my grandma", "she", "her"),
    ("our neighbour", "he", "his"),
    ("the baker", "he", "his"),
    ("the farmer", "she", "her"),
    ("our son", "he", "his"),
    ("our teacher", "she", "her"),
    ("Anna", "she", "her"),
    ("Tom", "he", "his"),
    ("Lucy", "she", "her"),
    ("Ben", "he", "his"),
    ("Mr Weber", "he", "his"),
    ("Mrs Hill", "she", "her"),
)
# What stands before a tale, and behind it. Numbers there play no part.
BEFORE = (
    *(
        "Here is a puzzle:",
        "A question for you:",
        "Can you help me with this?",
        "Hi, quick one:",
        "Riddle:",
        "Homework:",
    ),
    *("My son can't solve this:", "My pupil has this task:", "Please solve:", "hello,", "Maths problem:", "Let's see."),
    *("Exercise {k}:", "Question {k}:", "{k})", "Task {k} on page {z}:", "Problem no. {k}:", "This is from page {z}:"),
    *(
        "I'm {age} and bad at maths, so help me.",
        "My child in class {h} has to solve this:",
        "It's {h} o'clock, so one last task.",
    ),
    *(
        "I hope you can help me, I'm a bit lost here.",
        "ok next one.",
        "Good evening!",
        "Think carefully.",
        "sorry, maths again:",
    ),
)
BEHIND = (
    *("Thanks!", "Thank you in advance.", "Please help.", "I can't work it out.", "pls", "Do you know?", "thx"),
    *("I need it by {h} o'clock.", "It's task {k} of {z}.", "What would you say?"),
)
# What is told besides, of no use to whoever counts.
ASIDES = (
    *(
        "{n} lives in flat {k}.",
        "{n} is {age} years old.",
        "{n}'s phone number ends in {k}.",
        "{n}'s cat is {h} years old.",
    ),
    *("It is {h} o'clock.", "All this was on {day}.", "I read this in chapter {k}.", "It happened in street {k}."),
    *("The house has number {k}.", "{n} was born on {day}.", "It's day {k} of our trip."),
)

# Further ways to ask for a sum, as what can stand for its result: also what stands in for the signs.
VALUES: Mapping[str, tuple[str, ...]] = {
    "+": (
        *("{a}+{b}", "{a} + {b}", "{a} +{b}", "{a}+ {b}", "({a} + {b})", "{a} plus {b}", "{b} on top of {a}"),
        *(
            "the sum of {a} and {b}",
            "the total of {a} and {b}",
            "{a} with {b} added",
            "{b} more than {a}",
            "{a} increased by {b}",
        ),
        *("{a} and another {b}", "the sum {a}+{b}", "{b} added to {a}", "{a} & {b} together", "{a} and {b} altogether"),
    ),
    "-": (
        *("{a}-{b}", "{a} - {b}", "{a} -{b}", "{a}- {b}", "({a} - {b})", "{a} − {b}", "{a}–{b}", "{a} minus {b}"),
        *(
            "{a} less {b}",
            "{b} off {a}",
            "{b} taken from {a}",
            "{a} take away {b}",
            "{b} less than {a}",
            "{b} fewer than {a}",
        ),
        *(
            "{a} reduced by {b}",
            "{a} with {b} taken off",
            "{b} subtracted from {a}",
            "{b} below {a}",
            "{a} decreased by {b}",
        ),
    ),
    "d": (
        *("the difference between {a} and {b}", "the difference between {b} and {a}", "the gap between {b} and {a}"),
        *("the difference of {b} and {a}", "the distance from {b} to {a}"),
    ),
    "x": (
        *(
            "{a}x{b}",
            "{a} x {b}",
            "{a}*{b}",
            "{a} * {b}",
            "{a}×{b}",
            "{a} × {b}",
            "{a} X {b}",
            "{a}·{b}",
            "({a} * {b})",
        ),
        *("{a} times {b}", "{s} {bs}", "{s} {bs}", "{a} lots of {b}", "{a} multiplied by {b}"),
        *("the product of {a} and {b}", "{a} groups of {b}", "{a} sets of {b}"),
    ),
    "=": ("double {a}", "twice {a}", "{a} doubled", "the double of {a}", "twice as much as {a}", "{a} and {a} again"),
    "3": ("triple {b}", "three times {b}", "{b} tripled", "thrice {b}", "three times as much as {b}"),
}
ORDERS: Mapping[str, tuple[str, ...]] = {
    "+": (
        *(
            "add {b} to {a}",
            "add up {a} and {b}",
            "put {b} on top of {a}",
            "sum up {a} and {b}",
            "take {a} and add {b}",
        ),
        *("go {b} up from {a}", "count on {b} from {a}", "start at {a} and add {b}", "total {a} and {b}"),
    ),
    "-": (
        *("take {b} from {a}", "take {b} off {a}", "deduct {b} from {a}", "subtract {b} from {a}", "cut {a} by {b}"),
        *("go {b} down from {a}", "start at {a} and take away {b}", "count {b} back from {a}", "remove {b} from {a}"),
    ),
    "x": (
        *("multiply {a} by {b}", "take {a} times {b}", "multiply {a} with {b}"),
        *("calculate {a} groups of {b}", "work out {s} {bs}"),
    ),
    "=": ("double {a}", "double the number {a}", "double it: {a}", "multiply {a} by two", "add {a} to itself"),
    "3": ("triple {b}", "triple the number {b}", "treble {b}"),
}
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "+": (
        *(
            "what do {a} and {b} make",
            "what do {a} and {b} give",
            "what number do I get {b} after {a}",
            "{a} and {b} are",
        ),
        *(
            "{b} more than {a} is what number",
            "where do I land if I go {b} up from {a}",
            "if I have {a} and get {b}, what do I have",
        ),
        *(
            "what number is {b} greater than {a}",
            "which number is {b} above {a}",
            "from which number do I take {b} to get {a}",
        ),
        *("? - {b} = {a}", "what minus {b} makes {a}", "how much will it be if {b} is added to {a}"),
    ),
    "-": (
        *("how far from {b} to {a}", "by how much is {a} larger than {b}", "by how much is {b} smaller than {a}"),
        *(
            "how much bigger is {a} than {b}",
            "what must I add to {b} to make {a}",
            "{b} and how much make {a}",
            "{b} + ? = {a}",
        ),
        *("? + {b} = {a}", "{a} - ? = {b}", "what plus {b} makes {a}", "how much less than {a} is {b}"),
        *(
            "what remains when {b} is taken off {a}",
            "if I have {a} and lose {b}, what do I have",
            "what's missing from {b} to {a}",
        ),
        *(
            "which number is {b} below {a}",
            "how many steps from {b} up to {a}",
            "how many do I need to get from {b} to {a}",
        ),
        *("how much do {a} and {b} differ", "how far apart are {b} and {a}", "what do I take from {a} to get {b}"),
        "{a}, how much more is that than {b}",
    ),
    "x": (
        *("what do {s} {bs} make", "{a} times {b} makes", "how much are {a} of {b} each", "what are {s} {bs}"),
        *("if I take {a} times {b}, what do I get", "what do {a} {bs} come to", "{b}, {a} times over, is"),
        *("{s} {bs} are", "how much is {b} taken {a} times"),
    ),
    "=": (
        *(
            "what is twice the number {a}",
            "how much is double {a}",
            "what do I get if I double {a}",
            "{a} and {a} make",
        ),
        *("what's two times as much as {a}", "how much is it if {a} is doubled", "what is the double of {a}"),
    ),
    "3": ("what do I get if I triple {b}", "how much is three times as much as {b}"),
}
VALUE_FRAMES: tuple[str, ...] = (
    *("{}", "{}", "{}?", "{}?", "{} = ?", "{}=?", "{} =", "{} equals", "{} equals?", "{} is", "pls calc {}", "calc {}"),
    *(
        "hey what's {}",
        "what is {}",
        "whats {}",
        "what's {} pls",
        "can u do {}",
        "{} pls",
        "{}, thx",
        "ok and {}?",
        "and {}?",
    ),
    *(
        "so {} is what?",
        "What would {} be?",
        "Let me test you: {}",
        "Test: {}",
        "solve {}",
        "Result of {}?",
        "Value of {}?",
    ),
    *(
        "eval {}",
        "compute: {}",
        "{}, what's the result?",
        "i wonder what {} is",
        "Kindly calculate {}.",
        "{} — the answer?",
    ),
    *(
        *("For the invoice: {}", "The customer asks what {} is.", "Bonjour, {} ?", "{} ???", "{} (just checking)"),
        *("Sir, {}?", "mum asks what {} is", "Excuse me. {}?", "type in {} and tell me what comes", "help: {}"),
        *("My guess is wrong. {}?", "My boss needs to know {}.", "Quick check of my bill: {}?"),
        "how much makes {}?",
        "What gives {}?",
        "please to calculate {}",
        "Do the maths: {}",
        "I need {} for my homework.",
    ),
    *(
        "I keep getting it wrong: what is {}?",
        "Could you help me with {}? I am not good with numbers.",
        "My calculator is broken: {}?",
    ),
    *("Sorry to bother you, but what is {}?", "Before we go on, what is {}, please?", "Hi! {}?", "Hello, {} please."),
    *(
        "Good morning. Would you be so kind as to tell me how much {} makes?",
        "If you can do sums, tell me {}.",
        "Do you know {}?",
    ),
    *(
        "I am writing a bill and have to know what {} is, please.",
        "Dear assistant, could you find out {} for me? Thank you!",
    ),
    *(
        "What do you think, what is {}?",
        "Give me {}, please.",
        "My teacher wants to know {}.",
        "{}! Quick!",
        "Next one: {}",
    ),
    *(
        "I'd be glad if you gave me {}.",
        "Could you, when you have a moment, give me {}? Many thanks.",
        "tell me {}, will you",
    ),
)
ORDER_FRAMES: tuple[str, ...] = (
    *(
        "{}",
        "{}",
        "{}.",
        "please {}",
        "pls {}",
        "Can you {}?",
        "Could you {} for me?",
        "I'd like you to {}.",
        "Hi, {}, please.",
    ),
    *(
        "now {}",
        "{}, what do you get?",
        "Would you kindly {}?",
        "ok, {}",
        "i want to {}. what comes out?",
        "If I {}, what do I get?",
    ),
    *(
        "{} and tell me what you get.",
        "What happens if I {}?",
        "Let's {}. Result?",
        "{} thx",
        "Let me see if you can {}.",
    ),
)
QUESTION_FRAMES: tuple[str, ...] = (
    *(
        "{}?",
        "{}?",
        "{}?",
        "{}",
        "{}",
        "hey, {}?",
        "Please tell me: {}?",
        "hi, {}",
        "One question: {}?",
        "ok so {}?",
        "{} pls",
    ),
    *("Could you help me, {}?", "Just wondering, {}?", "{}? Thanks!", "and {}?", "Sorry, but {}? I can't count today."),
)

_HELD = re.compile(r"\b(it|they|them|that|this one|then|other|others|back|two)\b")
"""What points back in a question, which then cannot come first."""
_OF_SIGN = {
    sign: tuple(
        (kind, scene.largest, tale)
        for scene in SCENES
        for kind, tales in scene.tales.items()
        if (kind[0] if kind != "=" else "+") == sign
        for tale in tales
    )
    for sign in "+-x"
}


def _numbers(rng: random.Random, kind: str, largest: int, held_out: Callable[[str, int, int], bool]) -> Told:
    """Numbers for a tale, from two on."""
    while True:
        sign = "+" if kind == "=" else kind[0]
        if sign == "x":
            return Told("", sign, rng.randint(2, 10), int(kind[1:]) if kind[1:] else rng.randint(2, 10))
        highest = min(rng.choice((9, 20, 50, 99, 99, 99)), largest)
        a, b = rng.randint(2, highest), rng.randint(2, highest if rng.random() < 0.75 else 9)
        if sign == "-" and rng.random() < 0.15:
            b = a - rng.randint(1, 6)
        elif sign == "-" and a < b:
            a, b = b, a
        b = a if kind == "=" else b
        if b > 1 and (a > b if sign == "-" else a + b <= largest) and not held_out(sign, a, b):
            return Told("", sign, a, b)


def _spelled(rng: random.Random, text: str, numbers: Mapping[str, int], spell: Callable[[int], str]) -> str:
    """A text with its numbers, which may be in words wherever no sign touches them."""
    kind = rng.random()
    chosen = tuple(numbers) if kind < 0.14 else (rng.choice(tuple(numbers)),) if kind < 0.24 else ()
    signed = re.search(r"\} ?[-+−–xX×*·&=] ?[?{]|\? ?[-+] ?\{", text)
    for name, number in numbers.items():
        free = not re.search(rf"[^\s(]\{{{name}\}}|\{{{name}\}}[^\s.,;:?!)]", text) and not signed
        said = spell(number) if name in chosen and free else str(number)
        text = text.replace(f"{{{name}}}", said.replace("-", " ") if rng.random() < 0.2 else said)
    return text


def _beside(rng: random.Random, low: int, high: int, taken: list[int]) -> int:
    """A number that plays no part, which is none of those that do."""
    number = rng.choice([number for number in range(low, high + 1) if number not in taken])
    taken.append(number)
    return number


def _clash(frame: str, pattern: str) -> bool:
    """Whether a frame has a number that the text has for something else."""
    return any(name in pattern for name in re.findall(r"\{\w+\}", frame))


def tale(words: Words, spell: Callable[[int], str], held_out: Callable[[str, int, int], bool]) -> Told:
    """A tale, with ``spell`` for numbers in words and what pairs of numbers must not occur."""
    rng = words.rng
    [sign] = rng.choices(("+", "-", "x"), (40, 40, 20))
    kind, largest, pattern = rng.choice(_OF_SIGN[sign])
    _, sign, a, b = _numbers(rng, kind, largest, held_out)
    story, _, question = pattern.partition("|")
    pattern = f"{story} {question}".strip()
    if question and rng.random() < 0.1 and not _HELD.search(question) and "years" not in story:
        aside = rng.choice(ASIDES)
        if not _clash(aside.replace("{n}", ""), pattern) and ("{n}" in story or "{n}" not in aside):
            story = f"{story} {aside}"
            pattern = f"{story} {question}" if "{he}" not in pattern else pattern
    if question and rng.random() < 0.3 and not _HELD.search(question):
        pattern = f"{question.replace('{he}', '{p}')} {story}"
    is_framed = rng.random() < 0.3
    before = rng.choice(BEFORE) if is_framed and rng.random() < 0.7 else ""
    if _clash(before, pattern) or ("{age}" in before and re.search(r"\b(I|I'm|I've|me|years)\b", pattern)):
        before = ""
    behind = rng.choice(BEHIND) if is_framed and (not before or rng.random() < 0.2) else ""
    behind = "" if _clash(behind, before + pattern) else behind
    pattern = " ".join(part for part in (before, pattern, behind) if part)
    asked = _filled(words, pattern, {"a": a, "b": b} if "{b}" in pattern else {"a": a}, a, b, spell)
    asked = re.sub(r"(^|[.?!] )([a-z])", lambda match: match[1] + match[2].upper(), asked)
    if rng.random() < 0.15:
        asked = asked.lower()
        asked = asked.rstrip("?.") if rng.random() < 0.6 else asked
        asked = asked.replace("'", "") if rng.random() < 0.3 else asked
    return Told(asked, sign, a, b)


def _filled(words: Words, pattern: str, numbers: Mapping[str, int], a: int, b: int, spell: Callable[[int], str]) -> str:
    """A tale with all that is in it."""
    rng = words.rng
    asked = _spelled(rng, pattern, numbers, spell)
    taken = [a, b, a + b, a - b, a * b]
    person, he, his = rng.choice(PERSONS)
    one, two = words.several(lambda: rng.choice(THINGS) if rng.random() < 0.4 else words.pick(ITEMS, invented=0.2), 2)
    town, other = words.several(words.city, 2)
    first, second = words.several(words.name, 2)
    month, date = rng.choice(MONTHS), _beside(rng, 1, 28, taken)
    return asked.format(
        n=first,
        m=second,
        p=person,
        P=capitalised(person),
        he=he,
        his=his,
        i=one,
        j=two,
        c=town,
        e=other,
        l=rng.choice(PLACES),
        d=rng.choice(DAYS),
        k=_beside(rng, 2, 40, taken),
        z=_beside(rng, 41, 99, taken),
        h=_beside(rng, 2, 12, taken),
        age=_beside(rng, 18, 70, taken),
        day=f"{date} {month}" if rng.random() < 0.6 else f"{month} {date}",
    )


def ask(
    words: Words,
    drawn: tuple[str, int, int],
    spell: Callable[[int], str],
    several: Callable[[int], str],
) -> Told:
    """A sum asked for without a tale; ``several`` writes a number as in "three fives"."""
    rng = words.rng
    sign, a, b = drawn
    kind = sign
    if rng.random() < 0.08:
        kind, sign = "=", "+"
        a = b = rng.choice((rng.randint(1, 12), rng.randint(1, 50), rng.randint(13, 99)))
    elif sign == "x" and rng.random() < 0.08:
        kind, a = "3", 3
    form = rng.random()
    if form < 0.6:
        table, frames = VALUES, VALUE_FRAMES
        kind = "d" if sign == "-" and rng.random() < 0.25 else kind
    elif form < 0.75:
        table, frames = ORDERS, ORDER_FRAMES
    else:
        table, frames = QUESTIONS, QUESTION_FRAMES
    if kind == "x" and min(a, b) < 2:
        # Nobody speaks of zero ones.
        table, frames = VALUES, VALUE_FRAMES
    patterns = [pattern for pattern in table[kind] if min(a, b) > 1 or not re.search(r"bs|lots|groups|sets", pattern)]
    pattern = rng.choice(patterns)
    if sign == "-" and a < b and not re.fullmatch(r"\(?\{a\} ?([-−–]|minus|less) ?\{b\}\)?", pattern):
        a, b = b, a
    asked = rng.choice(frames).replace("{}", pattern)
    if "{bs}" in asked:
        asked = asked.replace("{s}", spell(a)).replace("{bs}", several(b))
    shown = {name: number for name, number in (("a", a), ("b", b)) if f"{{{name}}}" in asked}
    # No question that is held out has words for numbers above twelve, or a sign in any of these frames.
    asked = _spelled(rng, asked, shown, spell) if shown else asked
    asked = capitalised(asked) if rng.random() < 0.5 else asked
    loud = rng.random()
    asked = asked.lower() if loud < 0.1 else asked.upper() if loud < 0.13 else asked
    return Told(asked, sign, a, b)
