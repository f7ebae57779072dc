"""Sums, differences and products of small numbers, written down before they are answered."""

from __future__ import annotations

import random
from collections.abc import Iterator

from documents import Case, Document, Turn, conversation
from words import NUMBER_WORDS, Stage, Words, capitalised

NAME = "arithmetic"

ASKS = {
    "+": (
        "What is {a} + {b}?",
        "What is {a} plus {b}?",
        "{a} + {b}",
        "{a}+{b}",
        "{a} + {b} = ?",
        "{a}+{b}=",
        "How much is {a} plus {b}?",
        "What's {a} + {b}?",
        "What is {a}+{b}?",
        "What is the sum of {a} and {b}?",
        "Add {a} and {b}.",
        "Add {b} to {a}.",
        "Please add {a} and {b}.",
        "Can you add {a} and {b}?",
        "Tell me {a} plus {b}.",
        "{a} plus {b}",
        "What do you get when you add {a} and {b}?",
        "what is {a} + {b}",
        "Calculate {a} + {b}.",
        "Calculate {a} plus {b}, please.",
        "Compute the sum of {a} and {b}.",
        "Compute {a} plus {b}.",
        "Work out the sum of {a} and {b}.",
        "Can you work out {a} plus {b}?",
        "Please work out {a}+{b} for me.",
        "Could you add {a} and {b} for me?",
        "Could you please tell me the sum of {a} and {b}?",
        "Could you tell me {a} + {b}?",
        "Would you add {b} to {a}, please?",
        "How much do {a} and {b} make?",
        "How much is {a} and {b} together?",
        "If I add {b} to {a}, what do I get?",
        "What does {a} + {b} equal?",
        "What number is {a} plus {b}?",
        "What comes out of {a} + {b}?",
        "Solve {a} + {b}.",
        "Please solve this: {a} + {b} = ?",
        "I need the sum of {a} and {b}.",
        "I want to know {a} plus {b}.",
        "Give me {a} + {b}.",
        "Find {a} + {b}.",
        "{a} + {b}, please.",
        "{a} and {b} together?",
        "What is the total of {a} and {b}?",
        "Please tell me how much {a} plus {b} is.",
        "Do you know what {a} + {b} is?",
        "Let me know what {a} plus {b} makes.",
        "{b} more than {a} is how much?",
        "My homework says {a} + {b}. What is that?",
        "Evaluate {a} + {b}.",
    ),
    "-": (
        "What is {a} - {b}?",
        "What is {a} minus {b}?",
        "{a} - {b}",
        "{a}-{b}",
        "{a} - {b} = ?",
        "{a}-{b}=",
        "How much is {a} minus {b}?",
        "What's {a} - {b}?",
        "What is {a}-{b}?",
        "Subtract {b} from {a}.",
        "Take {b} away from {a}.",
        "What is the difference of {a} and {b}?",
        "Can you subtract {b} from {a}?",
        "Tell me {a} minus {b}.",
        "{a} minus {b}",
        "What is left if you take {b} from {a}?",
        "what is {a} - {b}",
        "Calculate {a} - {b}.",
        "Calculate {a} minus {b}, please.",
        "Compute the difference of {a} and {b}.",
        "Compute {a} minus {b}.",
        "Work out the difference of {a} and {b}.",
        "Can you work out {a} minus {b}?",
        "Please work out {a}-{b} for me.",
        "Could you subtract {b} from {a} for me?",
        "Could you please tell me the difference of {a} and {b}?",
        "Could you tell me {a} - {b}?",
        "Would you take {b} from {a}, please?",
        "How much is {a} less {b}?",
        "How much remains if I take {b} away from {a}?",
        "If I subtract {b} from {a}, what do I get?",
        "What does {a} - {b} equal?",
        "What number is {a} minus {b}?",
        "What comes out of {a} - {b}?",
        "Solve {a} - {b}.",
        "Please solve this: {a} - {b} = ?",
        "I need the difference of {a} and {b}.",
        "I want to know {a} minus {b}.",
        "Give me {a} - {b}.",
        "Find {a} - {b}.",
        "{a} - {b}, please.",
        "{a} without {b}?",
        "Please tell me how much {a} minus {b} is.",
        "Do you know what {a} - {b} is?",
        "Let me know what {a} minus {b} makes.",
        "{b} less than {a} is how much?",
        "My homework says {a} - {b}. What is that?",
        "Evaluate {a} - {b}.",
    ),
    "x": (
        "What is {a} x {b}?",
        "What is {a} times {b}?",
        "{a} x {b}",
        "{a}x{b}",
        "{a} x {b} = ?",
        "{a} * {b}",
        "{a}*{b}=",
        "How much is {a} times {b}?",
        "What's {a} x {b}?",
        "Multiply {a} by {b}.",
        "Multiply {a} and {b}.",
        "What is the product of {a} and {b}?",
        "What is {a} * {b}?",
        "Tell me {a} times {b}.",
        "{a} times {b}",
        "Calculate {a} x {b}.",
        "Calculate {a} times {b}, please.",
        "Compute the product of {a} and {b}.",
        "Compute {a} * {b}.",
        "Work out the product of {a} and {b}.",
        "Can you work out {a} times {b}?",
        "Please work out {a}x{b} for me.",
        "Could you multiply {a} by {b} for me?",
        "Could you please tell me the product of {a} and {b}?",
        "Could you tell me {a} x {b}?",
        "how much is {a}*{b}",
        "If I multiply {a} by {b}, what do I get?",
        "What does {a} x {b} equal?",
        "What number is {a} times {b}?",
        "What comes out of {a} x {b}?",
        "Solve {a} x {b}.",
        "Please solve this: {a} x {b} = ?",
        "I need the product of {a} and {b}.",
        "I want to know {a} times {b}.",
        "Give me {a} x {b}.",
        "Find {a} * {b}.",
        "{a} x {b}, please.",
        "Please tell me how much {a} times {b} is.",
        "Do you know what {a} x {b} is?",
        "Evaluate {a} x {b}.",
    ),
}
TEST_ASKS = {
    "+": (
        "Work out {a} + {b}.",
        "How much is {a} + {b}?",
        "Could you tell me what {a} plus {b} is?",
        "Please compute {a}+{b}.",
    ),
    "-": (
        "Work out {a} - {b}.",
        "How much is {a} - {b}?",
        "Could you tell me what {a} minus {b} is?",
        "Please compute {a}-{b}.",
    ),
    "x": ("Work out {a} x {b}.", "How much is {a} x {b}?", "Could you tell me what {a} times {b} is?"),
}
PROBLEMS = {
    "+": (
        "{n} has {a} {i} and gets {b} more. How many {i} does {n} have now?",
        "{n} has {a} {i}. {m} gives {n} {b} more. How many {i} does {n} have?",
        "{n} has {a} {i} and {m} has {b}. How many {i} do they have together?",
        "There are {a} {i} in one box and {b} in another. How many {i} are there?",
        "{n} finds {a} {i} on {d} and {b} on the next day. How many are that?",
        "A shop has {a} {i}. It buys {b} more. How many {i} does it have?",
        "{n} bought {a} {i} and {b} other ones. How many did {n} buy?",
        "{n} had {a} {i}. On {d}, {m} brought {b} more. How many {i} does {n} have now?",
        "{n} had {a} {i} and found another {b}. How many {i} does {n} have now?",
        "{m} has {a} {i}. {n} has {b} {i}. How many is that altogether?",
        "At home {n} has {a} {i}, at work {b}. How many {i} are that in all?",
        "In the shed there are {a} {i}, and {b} more are in the garden. How many {i} are there?",
        "There were {a} {i} on the table. {n} put {b} more there. How many {i} are on the table now?",
        "{n} gave {m} {b} {i}. Before that {m} had {a}. How many {i} does {m} have now?",
        "First {n} counted {a} {i}, then another {b}. How many {i} did {n} count?",
        "{n} keeps {a} {i} in a bag and {b} in a drawer. What is the number of {i} in all?",
        "Yesterday {n} sold {a} {i}, today {b}. How many {i} were sold?",
        "{a} {i} came on {d}, and then {b} more. How many {i} came?",
        "{n} and {m} have {a} and {b} {i}. How many do they have together?",
        "If {n} has {a} {i} and gets {b} from {m}, how many {i} does {n} have then?",
    ),
    "-": (
        "{n} has {a} {i} and gives {b} of them to {m}. How many {i} does {n} have left?",
        "{n} has {a} {i} and loses {b}. How many are left?",
        "There are {a} {i} in a basket. {n} takes {b} out. How many {i} are left?",
        "{n} had {a} {i} and sold {b}. How many {i} does {n} still have?",
        "A shop has {a} {i}. It sells {b} of them. How many {i} are left?",
        "Of {a} {i}, {b} are broken. How many are whole?",
        "{n} had {a} {i}. {m} took {b} of them. How many {i} does {n} have now?",
        "There were {a} {i} in the shop, and {b} were sold. How many {i} are there now?",
        "On the table there are {a} {i}. {n} takes {b} away. How many {i} remain?",
        "{n} bought {a} {i}, but {b} were broken. How many good {i} are left?",
        "{n} had {a} {i} and lost {b} of them on {d}. How many {i} are still there?",
        "{n} had {a} {i}, then gave {m} {b}. How many {i} are left for {n}?",
        "{b} of the {a} {i} are gone. How many {i} are left?",
        "{n} needs {a} {i} and has {b}. How many {i} are missing?",
        "{m} has {a} {i}, {n} has {b} fewer. How many {i} does {n} have?",
        "From {a} {i}, {n} used {b}. How many {i} are still there?",
        "{n} counted {a} {i}. Then {b} fell down. How many {i} did not fall?",
        "If {n} has {a} {i} and {m} takes {b}, how many {i} does {n} still have?",
    ),
    "x": (
        "{n} has {a} boxes with {b} {i} in each. How many {i} are that?",
        "There are {a} rows of {b} {i}. How many {i} are there?",
        "{n} buys {b} {i} on each of {a} days. How many {i} does {n} buy?",
        "{a} children have {b} {i} each. How many {i} do they have together?",
        "{n} has {a} bags, and in each are {b} {i}. How many {i} does {n} have?",
        "{n} packs {a} boxes with {b} {i} each. How many {i} are packed?",
        "In each of {a} baskets there are {b} {i}. How many {i} are in the baskets?",
        "{n} fills {a} shelves. On each shelf are {b} {i}. How many {i} are on the shelves?",
        "There are {a} tables with {b} {i} each. How many {i} are on the tables?",
        "{a} friends bring {b} {i} each. How many {i} are that in all?",
        "{n} gives {b} {i} to each of {a} children. How many {i} does {n} give away?",
    ),
}
TEST_PROBLEMS = {
    "+": (
        "{n} has {a} {i} at home and {b} in the garden. How many {i} does {n} have?",
        "{m} had {a} {i}. Then {n} gave {m} another {b}. How many {i} does {m} have now?",
    ),
    "-": (
        "{n} had {a} {i}, but {b} of them were lost. How many {i} are left?",
        "There were {a} {i} on the table, and {m} took {b}. How many {i} are still there?",
    ),
    "x": ("{n} fills {a} bags with {b} {i} each. How many {i} are in the bags?",),
}
# For the last part of training: what people said that the wordings above did not cover.
MORE_ASKS = {
    "+": (
        "What do {a} and {b} come to?",
        "{a} and {b} make how much?",
        "Tot up {a} and {b}.",
        "Could you put {a} and {b} together?",
        "How much do I get if I add {a} and {b}?",
        "Give me the result of {a} + {b}.",
        "My daughter asks what {a} plus {b} is.",
        "Do you know what {a} plus {b} makes?",
        "{a} plus {b}, what is that?",
        "What number is {b} more than {a}?",
        "Sum these: {a} and {b}",
        "Can you do {a} + {b} in your head?",
        "Let us add {b} to {a}. What comes out?",
        "If I take {a} and raise it by {b}, what do I have?",
        "What's the answer to {a} + {b}?",
        "Reckon up {a} and {b} for me.",
        "Raise {a} by {b}.",
        "{a} and another {b}, please.",
        "What is {a} with {b} on top?",
        "{a} more than {b}?",
        "Please calculate the total of {a} and {b}.",
        "Work the sum {a} + {b} out for me, please.",
        "I'd like to know {a} plus {b}.",
        "How many is {a} and {b}?",
        "Sum up {a} and {b}.",
        "What's the total of {a} and {b}?",
        "Tell me the total of {a} and {b}.",
        "What does {a} plus {b} come to?",
        "What do {a} and {b} add up to?",
        "{a} added to {b} is?",
        "{a} plus {b} is?",
        "{a} plus {b} makes?",
        "I have {a} and get {b} more. How much is that?",
        "Quick: {a} + {b}",
        "Put {a} and {b} together. What is it?",
        "How many are {a} and {b}?",
        "Increase {a} by {b}.",
        "Do you know {a}+{b}?",
        "Count {a} and {b} together, please.",
        "What will I get if I add {b} to {a}?",
        "Please work out {a} plus {b}.",
        "I am adding {a} and {b}. What is the result?",
        "{a} and then {b} more, how much is it?",
        "My son asks what {a} plus {b} is.",
    ),
    "-": (
        "What is left of {a} if you remove {b}?",
        "Take {b} off {a}. What remains?",
        "Take {b} off {a}.",
        "How far is it from {b} up to {a}?",
        "How far is {b} from {a}?",
        "Give me the result of {a} - {b}.",
        "Do you know what {a} minus {b} makes?",
        "What's the difference between {a} and {b}?",
        "{a} minus {b}, what is that?",
        "If I lower {a} by {b}, what do I have?",
        "Lower {a} by {b}.",
        "Please calculate {a} less {b}.",
        "What number is {b} smaller than {a}?",
        "What number is {b} less than {a}?",
        "Can you do {a} - {b} in your head?",
        "Take away {b} from {a}, please.",
        "How much more is {a} than {b}?",
        "How much bigger is {a} than {b}?",
        "How much less is {b} than {a}?",
        "Reckon {a} minus {b} for me.",
        "What's the answer to {a} - {b}?",
        "Let us take {b} from {a}. What comes out?",
        "I'd like to know {a} minus {b}.",
        "Remove {b} from {a}.",
        "Cut {a} down by {b}.",
        "Go from {a} back by {b}. Where are you?",
        "What's {a} take away {b}?",
        "{a} take away {b}",
        "{a} less {b}?",
        "{a} minus {b} is?",
        "{a} minus {b} makes?",
        "If I take {b} from {a}, what remains?",
        "If I take {b} away from {a}, how much is left?",
        "What is the difference between {a} and {b}?",
        "Tell me the difference between {a} and {b}.",
        "What remains of {a} without {b}?",
        "Reduce {a} by {b}.",
        "Quick: {a} - {b}",
        "I need {a} minus {b}.",
        "How far is it from {b} to {a}?",
        "How much must I add to {b} to get {a}?",
        "Do you know {a}-{b}?",
        "I have {a} and give away {b}. How much do I keep?",
        "Please work out {a} minus {b}.",
        "What do I have left when {b} of {a} are gone?",
        "My son asks what {a} minus {b} is.",
    ),
    "x": (
        "What do {a} times {b} come to?",
        "{a} times {b} makes how much?",
        "{a} × {b}",
        "{a} × {b} = ?",
        "What is {a} × {b}?",
        "Give me the product of {a} and {b}.",
        "Do you know what {a} times {b} makes?",
        "My daughter asks what {a} times {b} is.",
        "Can you do {a} times {b} in your head?",
        "What's the answer to {a} x {b}?",
        "Reckon {a} times {b} for me.",
        "{a} times {b}, what is that?",
        "Please calculate {a} multiplied by {b}.",
        "Please calculate {a} times {b}.",
        "If I take {b} {a} times, what do I have?",
        "What is {a} lots of {b}?",
        "{a} lots of {b}",
        "Let us multiply {a} by {b}. What comes out?",
        "I'd like to know {a} times {b}.",
        "Multiply {a} with {b}.",
        "Could you multiply {a} by {b}?",
        "{a} of {b} each make how much?",
        "Give me {a} times {b}.",
        "{a} multiplied by {b} is?",
        "{a} multiplied by {b}",
        "What is {a} multiplied by {b}?",
        "What does {a} times {b} come to?",
        "{a} times {b} is?",
        "{a} times {b} makes?",
        "How many is {a} times {b}?",
        "How many are {a} times {b}?",
        "Quick: {a} x {b}",
        "Take {b} {a} times. How much is it?",
        "Do you know {a}x{b}?",
        "Do you know what {a} multiplied by {b} makes?",
        "If I multiply {a} by {b}, what do I get?",
        "Please work out {a} times {b}.",
        "I need {a} times {b}.",
        "My son asks what {a} times {b} is.",
    ),
}
MORE_PROBLEMS = {
    "+": (
        "{n} picks {a} {i} in the morning and {b} in the afternoon. How many {i} has {n} picked?",
        "There are {a} {i} in one bed and {b} in the other. How many {i} are there altogether?",
        "{n} saved {a} euros in one week and {b} in the next. How many euros is that?",
        "{a} {i} lie here and {b} lie there. How many is that in all?",
        "A farmer has {a} {i} and buys another {b}. How many has the farmer now?",
        "{n} collected {a} {i}, {m} collected {b}. How many did both collect?",
        "On {d} {a} guests came, the next day {b}. How many guests was that?",
        "The tower had {a} steps, then {b} were added. How many steps has it now?",
        "I had {a} {i} and bought {b} more. How many do I have?",
        "I have {a} {i}. {n} brings me {b} more. How many {i} do I have?",
        "{n} picked {a} {i} in the morning and {b} in the evening. How many were picked?",
        "{a} {i} are here, and {b} more arrive. How many {i} is that?",
        "There are {a} {i}. {b} more are added. How many are there now?",
        "{n} read {a} pages on {d} and {b} pages later. How many pages did {n} read?",
        "{a} people are on the bus, and {b} get on. How many people are on the bus?",
        "We paid {a} euros for {i} and {b} euros for food. How much did we pay?",
        "{n} is {a} years old. How old will {n} be in {b} years?",
    ),
    "-": (
        "A baker had {a} {i} and sold {b} of them. How many {i} are left?",
        "{n} had {a} euros and spent {b}. How many euros has {n} now?",
        "Of {a} {i} on the tree the wind blew down {b}. How many still hang there?",
        "There were {a} guests. {b} have gone. How many are still here?",
        "{n} owns {a} {i}. {m} borrows {b}. How many has {n} at home?",
        "{a} {i} were in the box, but {b} fell out. How many are in it now?",
        "From {a} {i} the birds ate {b}. How many remain?",
        "{n} wants {a} {i} and has {b} already. How many more does {n} need?",
        "The rope is {a} metres long. {n} cuts off {b}. How long is it now?",
        "There were {a} {i}. {b} disappeared. How many stayed?",
        "There were {a} birds on a tree. {b} of them flew away. How many stayed?",
        "{a} birds sat on the roof. {b} flew off. How many are there now?",
        "{n} has {a} euros and spends {b}. How many euros are left?",
        "I had {a} {i} and {b} of them broke. How many do I have left?",
        "I have {a} {i} and give {n} {b}. How many do I keep?",
        "{n} ate {b} of {a} {i}. How many are left?",
        "{a} people were on the bus. {b} got off. How many are still on the bus?",
        "Out of {a} {i}, {n} sold {b}. How many were not sold?",
        "The book has {a} pages. {n} has read {b} of them. How many pages are left?",
        "{n} is {a} years old. How old was {n} {b} years ago?",
        "{a} children were playing. {b} went home. How many kept on playing?",
        "{n} had {a} {i}. The dog ran off with {b}. How many remain?",
    ),
    "x": (
        "Each of {a} baskets holds {b} {i}. How many {i} are there in all?",
        "{n} buys {a} packs with {b} {i} each. How many {i} is that?",
        "A hedge has {a} rows of {b} bushes. How many bushes are there?",
        "{n} reads {b} pages a day. How many pages does {n} read in {a} days?",
        "There are {a} plates with {b} {i} on each. How many {i} is that?",
        "{a} bags with {b} {i} in each: how many {i}?",
        "Each child gets {b} {i}. There are {a} children. How many {i} are needed?",
        "{n} plants {a} rows with {b} {i} in every row. How many {i} does {n} plant?",
        "{a} cats have {b} kittens each. How many kittens are there?",
        "One ticket costs {b} euros. How much do {a} tickets cost?",
        "A box holds {b} {i}. How many {i} are in {a} boxes?",
        "{n} walks {b} kilometres a day. How far does {n} walk in {a} days?",
        "{a} cars have {b} people in each. How many people is that?",
        "I buy {a} packs of {b} {i}. How many {i} do I get?",
        "Every one of {a} trees bears {b} {i}. How many {i} are there?",
    ),
}
# The same with numbers in words, ``bs`` as in "three fives".
WORDED = {
    "+": (
        "{a} and {b}?",
        "how much is {a} plus {b}?",
        "add {a} and {b}.",
        "{a} plus {b}",
        "what is {a} and {b} together?",
    ),
    "-": (
        "{a} minus {b}?",
        "how much is {a} minus {b}?",
        "take {b} from {a}.",
        "{a} less {b}",
        "what is {a} take away {b}?",
    ),
    "x": (
        "{a} {bs}?",
        "what are {a} {bs}?",
        "how much is {a} times {b}?",
        "{a} times {b}?",
        "how much are {a} {bs}?",
        "multiply {a} by {b}.",
        "what is {a} times {b}?",
    ),
}
ONLY_NUMBER = (
    "Answer with the number only.",
    "Only the number, please.",
    "Just give me the number.",
    "Reply with a number only.",
    "No words, please: only the number.",
    "Nothing else than the number.",
    "I only want the number.",
    "Give me nothing but a number.",
    "Write the number and no words.",
    "Answer with a number and nothing else.",
    "The number is enough.",
    "Do not explain, give only the number.",
)
TEST_ONLY_NUMBER = ("Nothing but the number, please.", "Give no words, only the number.")
SYSTEMS = (
    "You are a calculator.",
    "You are good at arithmetic.",
    "You help children with sums.",
    "You are a helpful assistant.",
    "You do sums for people.",
    "You answer questions about numbers.",
)


def result(sign: str, a: int, b: int) -> int:
    """What comes out."""
    return a + b if sign == "+" else a - b if sign == "-" else a * b


def is_held_out(sign: str, a: int, b: int) -> bool:
    """One in twenty of the sums and differences with a number above 18 is never in training, in either order.

    The steps of a sum on paper have smaller numbers.
    """
    low, high = sorted((a, b))
    # The first test alone would keep out every sum and difference of some last digits.
    return sign != "x" and high > 18 and (low * 7 + high * 3 + (sign == "-")) % 10 == 4 and (low + high // 10) % 2 == 0


NEAR = 0.15
"""Part of the differences whose numbers are near each other, which are few among any."""


def draw(rng: random.Random, test: bool = False) -> tuple[str, int, int]:
    """A sign and two numbers."""
    sign = rng.choices(("+", "-", "x"), (45, 40, 15))[0]
    while True:
        if sign == "x":
            return sign, rng.randint(0, 10), rng.randint(0, 10)
        highest = 99 if test else rng.choice((9, 20, 99, 99, 99))
        # A number of one digit beside one of two, and results below zero, would be rare among any two numbers.
        smaller = 9 if not test and rng.random() < 0.15 else highest
        a, b = rng.randint(0, highest), rng.randint(0, smaller)
        if sign == "-" and a < b and rng.random() < (0.85 if test else 0.7):
            a, b = b, a
        if not test and sign == "-" and rng.random() < NEAR:
            b = min(max(a + rng.randint(-6, 3), 0), 99)
        if is_held_out(sign, a, b) == test:
            return sign, a, b


TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
TEENS = ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
# Of the last stages: tales whose end does not tell the sign.
WIDE_PROBLEMS = {
    "+": (
        "{n} had {a} {i} and got {b} from {m}. How many does {n} have now?",
        "{a} pupils are in one class and {b} in the other. How many pupils are that?",
        "There are {a} {i} in a bowl, and {n} puts {b} in. How many are in it now?",
        "{n} is {a} years old, {m} is {b} years older. How old is {m}?",
        "{a} seats are taken and {b} are free. How many seats are there?",
        "If you put {a} {i} into a box that already holds {b}, how many are in it?",
        "{n} ran {a} kilometres, then {b} more. How far did {n} run in all?",
        "Is {a} + {b} hard? Tell me the answer.",
    ),
    "-": (
        "Out of {a} pupils, {b} are ill today. How many came to school?",
        "{n} picked {a} {i} and gave {b} to {m}. How many does {n} have now?",
        "There are {a} seats on the bus and {b} are taken. How many seats are free?",
        "I am {a} and my sister is {b}. How many years older am I?",
        "Of {a} children {b} are girls. How many boys are there?",
        "{n} is {a}, {m} is {b}. How much older is {n}?",
        "A shop had {a} {i}. {b} were bought on {d}. How many does it have now?",
        "{a} tickets were printed, {b} were used. How many were not?",
        "The tank held {a} litres. {b} leaked out. How many litres does it hold now?",
        "How many more is {a} than {b}?",
        "{n} gave away {b} of {a} {i}. How many does {n} have now?",
        "There are {a} houses in the street, {b} of them are empty. How many are not?",
        "{n} has {a} {i}, {m} has {b}. How many more has {n}?",
    ),
    "x": (
        "A spider has {b} legs. How many legs do {a} spiders have?",
        "A cat has {b} legs. How many legs do {a} cats have?",
        "Each row has {b} {i}. There are {a} rows. How many {i} are there?",
        "A week has {b} days. How many days are in {a} weeks?",
        "{a} bags, {b} {i} in every bag: how many altogether?",
        "{n} runs {b} kilometres every day for {a} days. How far in all?",
        "Every one of {a} guests eats {b} {i}. How many are eaten?",
        "{a} tables with {b} chairs at each: how many chairs?",
        "A house has {b} windows. How many windows do {a} such houses have?",
        "{n} earns {b} euros an hour. How much is that for {a} hours?",
        "In every one of {a} boxes there are {b} {i}. How many altogether?",
        "{a} children have {b} {i} each. How many {i} do they have in all?",
    ),
}
WIDE_ASKS = {
    "+": ("{a} and {b} make?", "{b} more than {a} is what?", "increase {a} by {b}"),
    "-": (
        "{a} − {b}",
        "{a} – {b}?",
        "What is {a} − {b}?",
        "Please compute {a} − {b}.",
        "how many more is {a} than {b}?",
        "{a}−{b}=",
        "{b} less than {a} is what?",
    ),
    "x": ("{a} × {b}?", "{a}×{b}", "{a} · {b}", "{a} * {b} =", "{b} taken {a} times"),
}


def in_words(number: int) -> str:
    """A number up to ninety-nine."""
    if number < len(NUMBER_WORDS):
        return NUMBER_WORDS[number]
    if number < 20:
        return TEENS[number - 13]
    tens = TENS[number // 10 - 2]
    return f"{tens}-{NUMBER_WORDS[number % 10]}" if number % 10 else tens


def line(sign: str, a: int, b: int) -> str:
    """The sum with its result."""
    return f"{a} {sign} {b} = {result(sign, a, b)}"


def thought(sign: str, a: int, b: int) -> str:
    """The sum on paper, from the last digit to the first."""
    start = f"{a} {sign} {b}: "
    if sign == "x" or (a < 10 and b < 10):
        return start + line(sign, a, b) + "."
    if sign == "-" and a < b:
        return f"{start}{a} is less than {b}. {line('-', b, a)}, so it is {a - b}."
    (tens_a, ones_a), (tens_b, ones_b) = divmod(a, 10), divmod(b, 10)
    if sign == "+":
        carry = ones_a + ones_b > 9
        ones = f"{ones_a} + {ones_b} = {ones_a + ones_b}" + (", carry 1" if carry else "")
        tens = f"{tens_a} + {tens_b}{' + 1' if carry else ''} = {tens_a + tens_b + carry}"
    else:
        borrow = ones_a < ones_b
        ones = f"{ones_a + 10 * borrow} - {ones_b} = {ones_a + 10 * borrow - ones_b}" + (", borrow 1" if borrow else "")
        tens = f"{tens_a} - {tens_b}{' - 1' if borrow else ''} = {tens_a - tens_b - borrow}"
    return f"{start}{ones}. {tens}. So {result(sign, a, b)}."


def _several(number: int) -> str:
    """A number as in "three fives"."""
    word = NUMBER_WORDS[number]
    return word + ("es" if word.endswith("x") or word == "zero" else "s")


def _problem(words: Words, sign: str, a: int, b: int) -> tuple[str, str]:
    rng = words.rng
    one, two = words.names(2)
    items = words.items()
    known = words.known(PROBLEMS[sign], MORE_PROBLEMS[sign])
    if words.is_wide and rng.random() < 0.4:
        known = WIDE_PROBLEMS[sign]
    pattern = words.wording(known, TEST_PROBLEMS[sign], free=False)
    asked = pattern.format(n=one, m=two, i=items, a=a, b=b, d=rng.choice(("Monday", "Friday", "Sunday")))
    return asked, f"{line(sign, a, b)}. The answer is {result(sign, a, b)}."


def _wide(words: Words, sign: str, a: int, b: int) -> tuple[str, str, str]:
    """Other signs, numbers in words, and a hundred."""
    rng = words.rng
    kind = rng.random()
    if kind < 0.15:
        sign, a, b = "-", 100, rng.randint(0, 99)
    if kind < 0.55:
        name = {"+": "plus", "-": "minus", "x": "times"}[sign]
        asked = rng.choice(("what is {}?", "what's {}?", "{}?", "{}", "how much is {}?", "Tell me {}."))
        said = f"{a} {name} {b}" if a > 99 else f"{in_words(a)} {name} {in_words(b)}"
        asked = asked.format(said)
    else:
        asked = rng.choice(WIDE_ASKS[sign]).format(a=a, b=b)
    asked = capitalised(asked) if rng.random() < 0.5 else asked
    return (asked, line(sign, a, b) + ".", thought(sign, a, b) if a < 100 else line(sign, a, b) + ".")


def exchange(words: Words) -> tuple[str, str, str]:
    """A question, its answer, and the thought that leads there."""
    rng = words.rng
    sign, a, b = draw(rng, words.test)
    kind = rng.random()
    if words.is_wide and rng.random() < 0.12:
        return _wide(words, sign, a, b)
    if kind < 0.22:
        while sign == "-" and a < b:
            sign, a, b = draw(rng, words.test)
        asked, answer = _problem(words, sign, a, b)
    elif kind < 0.27 and a < 13 and b < 13:
        name = {"+": "plus", "-": "minus", "x": "times"}[sign]
        pattern = "Could you tell me what {} is?" if words.test else "What is {}?"
        asked = pattern.format(f"{NUMBER_WORDS[a]} {name} {NUMBER_WORDS[b]}")
        answer = line(sign, a, b) + "."
    elif words.is_late and not words.test and kind < 0.32 and a < 13 and b < 13:
        asked = words.rng.choice(WORDED[sign]).format(a=NUMBER_WORDS[a], b=NUMBER_WORDS[b], bs=_several(b))
        asked, answer = capitalised(asked), line(sign, a, b) + "."
    else:
        known = words.known(ASKS[sign], MORE_ASKS[sign])
        asked = words.wording(known, TEST_ASKS[sign]).format(a=a, b=b)
        answer = line(sign, a, b) + "."
        if kind > 0.82:
            asked, answer = (
                f"{asked} {words.wording(ONLY_NUMBER, TEST_ONLY_NUMBER, free=False)}",
                str(result(sign, a, b)),
            )
    return asked, answer, thought(sign, a, b)


def document(rng: random.Random, stage: Stage = Stage.LAST) -> Document:
    """Some sums, as a drill or in a conversation."""
    words = Words(rng, stage=stage)
    kind = rng.random()
    if kind < 0.3:
        plain: list[tuple[str, bool]] = []
        for _ in range(rng.randint(4, 16)):
            sign, a, b = draw(rng)
            plain += [(f"{a} {sign} {b} =", False), (f" {result(sign, a, b)}\n", True)]
        return Document(plain=plain)
    if kind < 0.5:
        one, two = rng.sample(range(100), 2)
        word, pick = rng.choice((("larger", max), ("bigger", max), ("greater", max), ("smaller", min), ("less", min)))
        asked = rng.choice(
            (
                f"Which is {word}, {one} or {two}?",
                f"What is {word}: {one} or {two}?",
                f"Which number is {word}, {one} or {two}?",
            )
        )
        first = (
            asked,
            f"{pick(one, two)} is {word} than {one + two - pick(one, two)}.",
            f"{min(one, two)} is less than {max(one, two)}.",
        )
    else:
        first = exchange(words)
    exchanges = [first, *(exchange(words) for _ in range(rng.choice((0, 0, 1, 2, 3, 5))))]
    rng.shuffle(exchanges)
    system = rng.choice(SYSTEMS) if rng.random() < 0.2 else None
    pairs = [(asked, answer) for asked, answer, _ in exchanges]
    return conversation(pairs, system, thought=exchanges[-1][2] if rng.random() < 0.3 else None)


def cases(rng: random.Random, count: int) -> Iterator[Case]:
    """Sums and differences that training never used, and products, all in words that it never used."""
    words = Words(rng, test=True)
    for place in range(count):
        asked, answer, reasoning = exchange(words)
        thinking = place % 4 == 3
        number = int(answer.rstrip(".").rsplit(" ", 1)[-1])
        # All products are in training: they are counted apart.
        skill = "products" if " x " in reasoning else "sums and differences"
        skill = f"arithmetic: {skill}, thinking" if thinking else f"arithmetic: {skill}"
        yield Case(skill, [Turn("user", asked)], thinking=thinking, number=number)
