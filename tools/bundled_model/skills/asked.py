"""Facts in other words: terse, sloppy, indirect, reversed, with yes or no, and between two of a kind."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from facts import (
    ANIMALS,
    CAPITALS,
    COLOUR_MIXES,
    COUNTRIES_WITHOUT_ANSWER,
    CROPS,
    FLOWERS,
    MONTH_DAYS,
    SEASONS,
    THING_COLOURS,
    TOPICS,
    TREES,
    Tree,
)
from generate_corpus import OTHER_FACTS, TREE_FACTS, ConversationWriter, Exchange, Fact, tree_overview, vary
from phrasings import (
    ANIMAL_ASKS,
    BRIEF_SYSTEM_PROMPTS,
    CROP_ASKS,
    FLOWER_ASKS,
    REFUSALS,
    SYSTEM_PROMPTS,
    TREE_ASKS,
)
from words import CITIES, DAYS, MONTHS, Stage, Words, article, capitalised, listed

from skills import arithmetic
from skills.asked_talk import (
    CHATS,
    REFUSED,
    TOLD,
    UNKNOWN_ANIMALS,
    UNKNOWN_ANSWERS,
    UNKNOWN_CROPS,
    UNKNOWN_FLOWERS,
    UNKNOWN_TREES,
    UNTOLD,
    Refused,
)


class Asked(NamedTuple):
    """A question, its answer, and the answer in a few words."""

    asked: str
    answer: str
    brief: str


TREE_MORE: dict[str, tuple[str, ...]] = {
    "leaves": (
        "What sort of leaves grow on {a}?",
        "{x} leaves",
        "leaves {x}",
        "what do {x} leaves look like",
        "How can I recognise {a} by its leaves?",
        "If I pick a leaf from {a}, what will it look like?",
        "My daughter wants to draw a leaf of {the}. How should it look?",
        "What is the foliage of {a} like?",
        "foliage of {the}?",
        "In a few words: the leaves of {the}.",
        "Needles or leaves: what does {a} have, and of which form?",
        "Could I get a description of the leaves of {pl}, please?",
        "I stand before {a} and look at its leaves. What do I see?",
        "How are the leaves of {pl} formed?",
        "Which form has the leaf of {the}?",
        "what r the leaves of {a} like",
    ),
    "height": (
        "{x} height",
        "height {x}?",
        "{pl}: how tall?",
        "How many metres does {a} reach?",
        "How far up does {a} go?",
        "What size does a full-grown {x} have?",
        "My garden is small. How high would {a} get?",
        "A full-grown {x} is how many metres high?",
        "when fully grown, how tall is {a}",
        "Up to what height do {pl} grow?",
        "I think of planting {a}. What height must I expect?",
        "tell me the size of {a} in metres",
        "How much metres is {a} high?",
        "Would {a} be higher than my house? How tall does it grow?",
        "From the ground to the top, how many metres are there in {a}?",
        "how tall r {pl}",
    ),
    "place": (
        "{x}: where?",
        "where to find {pl}",
        "Where are {pl} at home?",
        "Which kind of place suits {a}?",
        "habitat of {the}?",
        "What is the habitat of {pl}?",
        "I am looking for {a}. Where do I have to go?",
        "Where do I have the best chance to see {pl}?",
        "In what surroundings does {a} feel well?",
        "Where in nature are there {pl}?",
        "Where does one come across {pl}?",
        "natural home of {the}?",
        "I would love to photograph {pl}. Where do they stand?",
        "Which spots does {the} prefer?",
        "Where do {pl} thrive?",
        "were do {pl} grow",
    ),
    "fruit": (
        "{x} fruit",
        "fruits of {a}?",
        "What can I collect under {a}?",
        "seeds of {the}?",
        "What do the seeds of {pl} look like?",
        "With what seeds or fruits does {a} spread?",
        "Do {pl} have nuts, cones, berries or something else?",
        "What could I harvest from {a}?",
        "what does {a} bear",
        "What does {a} bear when the time has come?",
        "Is there any fruit on {pl}, and what is it?",
        "In which fruit are the seeds of {the}?",
        "What ripens on {a}?",
        "What hangs on the twigs of {a} when the seeds are ripe?",
        "What does {the} give us as fruit?",
        "wat grows on {pl}",
    ),
    "bark": (
        "{x} bark",
        "bark {x}?",
        "What does the trunk of {a} look like?",
        "trunk of {the}?",
        "What would my hand feel on the trunk of {a}?",
        "It is winter. How do I know {a} by its bark?",
        "What sort of bark is on {pl}?",
        "The bark of {pl}: what is it like?",
        "I want to paint the trunk of {a}. How does the bark look?",
        "how's the bark on {a}",
        "What covers the trunk of {the}?",
        "Which sort of bark covers {a}?",
        "By which bark do I recognise {pl}?",
        "What is on the outside of the trunk of {a}?",
    ),
    "kind": (
        "{x}: evergreen or not?",
        "{x} evergreen?",
        "{x} - deciduous?",
        "Is {a} bare in winter?",
        "Are {pl} bare in winter?",
        "Does {a} stand there without leaves in winter?",
        "Will I see anything green on {a} in January?",
        "Does the green of {a} stay the whole year?",
        "Which is it for {pl}: deciduous or evergreen?",
        "In January, does {a} have its leaves?",
        "what type is {the}, evergreen or deciduous",
        "Is {the} one of the evergreens?",
        "Is {the} one of the trees that lose their leaves?",
        "Will {a} hide my garden in winter too, or does it lose its leaves?",
        "Deciduous or evergreen - to which of the two does {the} belong?",
        "r {pl} evergreen",
    ),
    "autumn": (
        "autumn colour {x}",
        "{x} in fall?",
        "What colour is {a} in October?",
        "Which colour do I see on {pl} when autumn comes?",
        "Before they fall, what colour do the leaves of {the} get?",
        "When summer is over, what colour does {a} turn?",
        "autumn leaves of {the}: which colour?",
        "How does autumn change the colour of {pl}?",
        "If I paint {a} in autumn, which colour do I need?",
        "What does autumn do to {pl}?",
        "fall colour of {pl}?",
        "Which colour do the leaves of {a} take on in autumn?",
        "Yellow, red or brown: how does {the} look in autumn?",
        "what color do {pl} go in autumn",
    ),
    "wood": (
        "{x} wood",
        "uses of {x} wood",
        "what is {x} wood used for",
        "I have some wood of {the}. What could I build?",
        "What is made out of {x} wood?",
        "What would a carpenter do with the wood of {a}?",
        "For what do people use the wood of {a}?",
        "For which things is the wood of {pl} taken?",
        "What do craftsmen build from the wood of {the}?",
        "What products come from the wood of {the}?",
        "Is the wood of {the} good for anything?",
        "why do people want the wood of {the}",
        "Somebody cut down {a}. What becomes of its wood?",
        "What gets made of {x} wood?",
    ),
    "age": (
        "{x} age",
        "max age {x}",
        "life span of {a}?",
        "What is the life span of {pl}?",
        "How many birthdays can {a} have?",
        "Until what age do {pl} live?",
        "Do {pl} get old? How old?",
        "If I plant {a} today, for how many years may it stand?",
        "Can {a} outlive me? How old does it get?",
        "how many years for {a}",
        "For how many years does {a} live?",
        "What is a great age for {a}?",
        "How much years lives {a}?",
        "To what age does {the} live?",
        "how old r {pl} when they die",
    ),
}

OVERVIEW_MORE = (
    "{x}?",
    "{x} facts",
    "info on {pl}",
    "Say something about {pl}.",
    "I am writing a text about {pl}. What should be in it?",
    "Teach me about {the}.",
    "what's {a}",
    "Introduce {the} to me.",
    "Sum up {the} in a few sentences.",
    "The most important things about {pl} in short, please.",
    "homework: {the}",
    "Let us talk about {pl}.",
    "what u know about {pl}",
    "I have never seen {a}. What is it like?",
    "Somebody spoke of {a}. What is that?",
    "Explain to a child what {a} is.",
)

# Of which only one tree has what is asked for: the attribute that answers, the tree, and ways to ask.
TREE_BACK: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "fruit",
        "oak",
        (
            "Which tree has acorns?",
            "On which tree do acorns grow?",
            "acorns - which tree?",
            "Acorns come from what tree?",
            "I found acorns on the ground. Which tree stands here?",
        ),
    ),
    (
        "fruit",
        "beech",
        ("Which tree bears beechnuts?", "beechnuts are from which tree", "Where do beechnuts come from?"),
    ),
    ("fruit", "hazel", ("Which plant has hazelnuts?", "Hazelnuts grow on what?", "who gives us hazelnuts")),
    (
        "fruit",
        "walnut tree",
        ("Which tree bears walnuts?", "walnuts: from which tree?", "What tree do I need for walnuts?"),
    ),
    ("fruit", "apple tree", ("On which tree do apples grow?", "Where do apples grow?", "apples come from which tree")),
    (
        "fruit",
        "cherry tree",
        ("On which tree do cherries grow?", "cherries grow on what", "Which tree gives us cherries?"),
    ),
    (
        "fruit",
        "pear tree",
        (
            "Which tree bears pears?",
            "Pears grow on what tree?",
            "I want to have pears in my garden. Which tree bears them?",
        ),
    ),
    ("fruit", "plum tree", ("Which tree has plums?", "Plums grow on what tree?", "what tree are plums from")),
    ("fruit", "olive tree", ("Where do olives grow?", "olives come from which tree", "Which tree bears olives?")),
    (
        "fruit",
        "date palm",
        ("Where do dates come from, the sweet brown ones?", "On which palm do dates grow?", "Which tree bears dates?"),
    ),
    (
        "fruit",
        "horse chestnut",
        (
            "Which tree has conkers?",
            "conkers - from which tree?",
            "The children collect conkers. Under which tree are they?",
        ),
    ),
    (
        "fruit",
        "hawthorn",
        ("Which tree has berries that are called haws?", "Haws are the berries of what?", "haws - what plant?"),
    ),
    ("fruit", "ash", ("Which tree has winged seeds that are called keys?", "On which tree do keys hang?")),
    (
        "fruit",
        "yew",
        ("Which tree has poisonous seeds in red cups?", "Red cups with poison in the seed: which tree is that?"),
    ),
    ("fruit", "juniper", ("Which tree has blue cones that look like berries?", "Blue cones like berries, what is it?")),
    ("fruit", "baobab", ("Which tree has velvety pods with a sour pulp?", "Velvety pods hang on what tree?")),
    (
        "fruit",
        "maple",
        (
            "Which tree has seeds that spin like helicopters?",
            "Seeds like little helicopters - which tree?",
            "what tree makes helicopter seeds",
        ),
    ),
    (
        "leaves",
        "ginkgo",
        (
            "Which tree has leaves like a fan?",
            "Fan-shaped leaves: which tree?",
            "My leaf has the form of a fan. Which tree is it from?",
        ),
    ),
    (
        "leaves",
        "linden",
        (
            "Which tree has heart-shaped leaves?",
            "The leaf looks like a heart. What tree is it?",
            "heart-shaped leaf, which tree",
        ),
    ),
    ("leaves", "poplar", ("Whose leaves tremble in the wind?", "Which tree has leaves that tremble?")),
    (
        "leaves",
        "oak",
        ("Which tree has leaves with rounded lobes?", "A leaf with rounded lobes: which tree is it from?"),
    ),
    ("leaves", "date palm", ("Which tree has long feathery fronds?", "Long feathery fronds - what tree?")),
    ("leaves", "cypress", ("Which tree has tiny leaves like scales?", "Tiny leaves like scales: what is it?")),
    (
        "leaves",
        "alder",
        ("Which tree has round leaves with a notch?", "A round leaf with a notch at the tip, which tree?"),
    ),
    (
        "bark",
        "birch",
        (
            "Which tree has white bark?",
            "White bark - which tree?",
            "The trunk is white and peels like paper. What tree is it?",
            "tree with white bark",
        ),
    ),
    ("bark", "beech", ("Which tree has smooth bark of silver-grey?", "Smooth silver-grey bark: what tree?")),
    ("bark", "redwood", ("Which tree has spongy red bark?", "Soft, spongy red bark - what tree is that?")),
    (
        "wood",
        "yew",
        ("From which wood are longbows made?", "Which tree gives the wood for longbows?", "longbows - what wood?"),
    ),
    (
        "wood",
        "maple",
        (
            "Which wood do violins need?",
            "Violins are made from which tree?",
            "From the wood of which tree are violins?",
        ),
    ),
    ("wood", "spruce", ("Which wood is in guitars?", "Guitars are made from which tree?")),
    ("wood", "willow", ("From which tree are cricket bats made?", "Which wood is used for cricket bats?")),
    ("wood", "alder", ("From which wood are clogs made?", "Which tree gives the wood for clogs?")),
    ("wood", "poplar", ("From which wood are matches made?", "Matches are made of the wood of what tree?")),
    ("wood", "holly", ("From which wood are chess pieces made?", "Which tree gives wood for chess pieces?")),
    ("wood", "pear tree", ("From which wood are flutes made?", "Flutes and rulers: of which wood?")),
    ("wood", "rowan", ("From which wood were spinning wheels made?", "Which tree gives wood for spinning wheels?")),
    ("wood", "ginkgo", ("From which wood are chopping boards made?",)),
    ("wood", "linden", ("Which wood is used for the keys of a piano?", "Piano keys - wood of which tree?")),
    ("wood", "larch", ("From which wood are roof shingles made?", "Which tree gives us roof shingles?")),
    (
        "place",
        "baobab",
        (
            "Which tree grows on the savannas of Africa?",
            "African savanna: which tree?",
            "What tree stands on the dry savannas of Africa?",
        ),
    ),
    (
        "place",
        "eucalyptus",
        ("Which tree is at home in Australia?", "Which tree grows in the forests of Australia?", "australian tree?"),
    ),
    ("place", "redwood", ("Which tree grows on the coast of California?", "What trees are in the fog of California?")),
    ("place", "cedar", ("Which tree grows in the mountains of Lebanon?", "Tree of Lebanon?")),
    ("place", "date palm", ("Which tree grows in desert oases?", "What tree would I see in an oasis?")),
    ("place", "ginkgo", ("Which tree comes from China?", "tree from China?")),
    (
        "place",
        "horse chestnut",
        ("Which tree stands in beer gardens?", "Under which tree do people sit in a beer garden?"),
    ),
    ("place", "yew", ("Which tree is found in churchyards?", "What tree is typical of churchyards?")),
    ("autumn", "maple", ("Which tree is fiery red and orange in autumn?", "Fiery red in autumn, which tree is that?")),
    ("autumn", "beech", ("Whose leaves turn copper in autumn?", "Copper leaves in autumn: which tree?")),
    ("autumn", "rowan", ("Which tree turns crimson in autumn?", "Crimson in autumn - what tree?")),
)

CAPITAL_MORE = (
    "capital {bare}",
    "{bare} capital",
    "{bare} capital?",
    "What is {poss} capital?",
    "{poss} capital city?",
    "I am going to {x}. What is the capital called?",
    "Quiz question: what is the capital of {x}?",
    "Geography test: capital of {x}",
    "name of {poss} capital pls",
    "{X}: capital?",
    "{X} - what is its capital?",
    "The capital of {x} is called what?",
    "The capital of {x} is ...?",
    "Complete the sentence: The capital of {x} is",
    "My teacher wants the capital of {x} from me.",
    "I forgot the capital of {x}. What was it?",
    "Remind me of the capital of {x}, please.",
    "How is the capital of {x} called?",
    "What city has {x} for its capital?",
    "In {x}, which city is the capital?",
    "whats the capital of {x}",
    "Can you name {poss} capital?",
    "It would be nice to learn what the capital of {x} is.",
    "I need this for a crossword: capital of {x}.",
    "To which city do I travel if I want to see the capital of {x}?",
    "capitol of {x}?",
    "The country is {bare}. The capital?",
    "Which city do the people of {x} call their capital?",
    "Tell me quickly: capital of {x}?",
    "Sorry for my bad english, what capital has {bare}?",
)
CAPITAL_BACK = (
    "{v} is the capital of what?",
    "{v} is the capital of which country?",
    "Which country has the capital {v}?",
    "Of which country is {v} the capital?",
    "{v}: capital of?",
    "What country is {v} the capital of?",
    "{v} is a capital. Which country does it belong to?",
    "To which country does the capital {v} belong?",
    "In which country is {v} the capital?",
    "whose capital is {v}",
    "{v}, capital of ...?",
    "which country's capital is {v}",
    "I was in {v}. Of which country is that the capital?",
    "Name the country with the capital {v}.",
    "If {v} is the capital, what is the country?",
)
CAPITAL_YES = (
    "Is {v} the capital of {x}?",
    "is {v} {poss} capital",
    "{v} is the capital of {x}, right?",
    "The capital of {x} is {v}. True or false?",
    "Am I right that {v} is the capital of {x}?",
    "My friend says that the capital of {x} is {v}. Is that so?",
    "I think that {v} is the capital of {x}. Is it?",
    "{poss} capital is {v}, correct?",
)
CAPITAL_OR = (
    "Which is the capital of {x}, {one} or {two}?",
    "{one} or {two}: which is the capital of {x}?",
    "Is the capital of {x} {one} or {two}?",
    "capital of {x}: {one} or {two}?",
    "Which of {one} and {two} is the capital of {x}?",
    "What is {poss} capital? Is it {one}? Or {two}?",
)
CAPITAL_TWO = (
    "Capitals of {x} and {y}?",
    "What are the capitals of {x} and {y}?",
    "Give me the capitals of {x} and {y}.",
    "capitals: {x}, {y}",
    "I need two capitals: the one of {x} and the one of {y}.",
    "Name the capital of {x} and the capital of {y}.",
)

ANIMAL_MORE: dict[str, tuple[str, ...]] = {
    "food": (
        "{x} food",
        "food of {a}?",
        "What is on the menu of {the}?",
        "diet of {pl}?",
        "What is the diet of {a}?",
        "What would {a} like for dinner?",
        "{pl} eat what?",
        "A hungry {x} looks for what?",
        "If I were {a}, what would I eat?",
        "what do {pl} have for breakfast",
        "With what do {pl} fill their bellies?",
        "Which things does {the} hunt or gather to eat?",
        "What makes {a} full?",
        "wat does {a} eat",
        "I saw {a} in my garden. What was it looking for to eat?",
    ),
    "home": (
        "{x} home",
        "home of {pl}?",
        "Where can I find {a} when it is at home?",
        "{pl} live where?",
        "In what does {a} live?",
        "Where do {pl} stay?",
        "What is the house of {a}?",
        "Where would {a} hide?",
        "Where does {the} go when it is tired?",
        "Where does {a} raise its young?",
        "were do {pl} live",
        "dwelling of {the}?",
        "Where do {pl} dwell?",
        "What sort of home does {the} have?",
    ),
}
FLOWER_MORE: dict[str, tuple[str, ...]] = {
    "colour": (
        "{x} colour",
        "{pl}: what colour?",
        "How do {pl} look: which colour is their bloom?",
        "I want to paint {a}. Which colour do I take?",
        "what color r {pl}",
        "Which colours are there among {pl}?",
        "What would be the colour of a bunch of {pl}?",
        "of what colour is {a}",
        "If I plant {pl}, which colour will I see?",
        "Is there a typical colour of {pl}?",
        "colour of the flower of {a}?",
    ),
    "bloom": (
        "{x} season",
        "{pl} bloom when?",
        "bloom time of {pl}?",
        "When do {pl} open their flowers?",
        "When is it the time of {pl}?",
        "When does {a} show its flowers?",
        "When will my {pl} be in bloom?",
        "In what part of the year do I see {pl}?",
        "I planted {pl}. When can I expect flowers?",
        "when r {pl} in flower",
        "when do {pl} come out",
        "During which season is {a} in bloom?",
    ),
}
CROP_MORE: dict[str, tuple[str, ...]] = {
    "sowing": (
        "sowing {pl} when?",
        "{pl}: planting time?",
        "I have seeds of {x}. When do they go into the ground?",
        "When must {pl} be sown?",
        "When do {pl} go into the garden?",
        "What is the right month for {pl}?",
        "When is planting time for {pl}?",
        "when 2 plant {pl}",
        "My neighbour wants to grow {pl}. When should she begin?",
        "When do gardeners sow or plant {pl}?",
        "At what time of the year do I start with {pl}?",
        "For {pl}, when is the time to begin?",
    ),
    "care": (
        "{x} care",
        "care of {pl}?",
        "{pl} need what?",
        "What makes {pl} happy?",
        "How do I get good {pl}?",
        "Tips for {pl}?",
        "What is good for {pl}?",
        "My {pl} look sad. What do they need?",
        "What conditions do {pl} like?",
        "how 2 grow {pl}",
        "Please give me advice on growing {pl}.",
        "What should {pl} get from me?",
    ),
}

TOPIC_MORE: dict[str, tuple[str, ...]] = {
    "falling leaves": (
        "why leaves fall",
        "For what reason do trees let go of their leaves in autumn?",
        "My son asks why the trees are bare in winter. What do I say?",
        "leaves fall in autumn - why?",
        "What use is it to a tree to drop its leaves?",
    ),
    "autumn colours": (
        "why yellow leaves in autumn",
        "What turns the green leaves red and yellow?",
        "Where do the colours of autumn leaves come from?",
        "why do trees turn red",
        "Green in summer, yellow in autumn: how does this come about?",
    ),
    "photosynthesis": (
        "photosynthesis?",
        "define photosynthesis",
        "How does a leaf make sugar?",
        "How do trees eat?",
        "What do plants do with sunlight?",
        "photosynthesis in simple words pls",
    ),
    "green leaves": (
        "leaves green why",
        "Which stuff makes a leaf green?",
        "What is behind the green of leaves?",
        "For what reason are leaves green and not blue?",
    ),
    "tree rings": (
        "tree rings?",
        "Why are there circles in a tree stump?",
        "A tree was cut down. How do I find out its age?",
        "what do the rings in wood tell",
        "I see circles in the wood of a stump. What are they?",
    ),
    "roots": (
        "roots?",
        "roots: purpose?",
        "What would a tree miss without roots?",
        "Which jobs do roots have?",
        "for what does a tree have roots",
    ),
    "bark": (
        "purpose of bark?",
        "What does a tree need its bark for?",
        "Why is there bark around a trunk?",
        "why is bark important for a tree",
    ),
    "compost": (
        "compost?",
        "how 2 make compost",
        "What should I do to get compost?",
        "How do I turn kitchen peels into soil?",
        "I bought a bin for compost. What goes in?",
    ),
    "planting": (
        "planting a tree - how?",
        "steps for planting a tree",
        "I have a young tree in a pot. How do I get it into the ground?",
        "how to put a tree in the ground",
        "How is a tree planted correctly?",
    ),
    "planting time": (
        "best season to plant trees?",
        "Should I plant a tree in spring or in autumn?",
        "when 2 plant a tree",
        "Which season is good for planting a tree?",
    ),
    "watering": (
        "watering the garden, when and how?",
        "At what time of day is it best to water?",
        "Is it better to water in the morning or in the evening?",
        "how to water plants properly",
    ),
    "pruning": (
        "pruning?",
        "When do I cut the branches of my fruit trees?",
        "how n when to prune",
        "My apple tree needs a cut. When should it get one?",
    ),
    "pollination": (
        "pollination?",
        "why bees matter",
        "What would happen without bees?",
        "What is the use of bees?",
        "For what do we need bees?",
    ),
    "forest": (
        "forest?",
        "define forest",
        "What does a forest do for us?",
        "What use are forests to people?",
        "why protect forests",
    ),
    "moss": (
        "moss?",
        "Explain moss to me.",
        "What sort of plant is moss?",
        "In what places do I find moss?",
        "where do I see moss",
    ),
    "mushrooms": (
        "mushrooms?",
        "Do mushrooms belong to the plants?",
        "What exactly is a mushroom?",
        "mushroom = plant?",
    ),
    "tallest tree": (
        "tallest tree?",
        "record for the highest tree?",
        "Which trees are higher than all others?",
        "Name the tallest of all trees.",
    ),
    "oldest tree": (
        "oldest tree?",
        "Which trees live longest of all?",
        "record age of a tree?",
        "Name the oldest kind of tree.",
    ),
    "deciduous": (
        "deciduous = ?",
        "meaning of deciduous",
        "In a text I read deciduous. What is that?",
        "When do we call a tree deciduous?",
    ),
    "evergreen": (
        "evergreen = ?",
        "meaning of evergreen",
        "In a text I read evergreen. What is that?",
        "When do we call a tree evergreen?",
    ),
    "conifer": (
        "conifer = ?",
        "meaning of conifer",
        "Which trees are called conifers?",
        "When do we call a tree a conifer?",
    ),
    "seed": (
        "seed to tree: how?",
        "How does a seed start to grow?",
        "How does a tree come out of a seed?",
        "from seed to tree, explain",
    ),
    "sap": (
        "sap?",
        "What runs inside a tree?",
        "What is the juice of a tree called, and what does it do?",
        "sap - what is it for",
    ),
    "sapling": (
        "sapling = ?",
        "meaning of sapling",
        "How do we call a tree that is still young?",
        "What kind of tree is a sapling?",
    ),
    "bough": (
        "bough of a tree = ?",
        "meaning of the word bough",
        "How do we call a large branch?",
        "Which part of a tree is a bough?",
    ),
    "rain": (
        "rain - where from?",
        "How does water get into the clouds and fall down again?",
        "why is there rain",
        "How do clouds make rain?",
    ),
    "soil": (
        "soil?",
        "What is in soil?",
        "How do I make poor soil better?",
        "my soil is bad, what helps",
        "Of what does soil consist?",
    ),
    "shade": (
        "plants for shade?",
        "There is no sun in my garden. Which plants can live there?",
        "shady spot, what to plant",
        "What likes to grow without much sun?",
    ),
    "slugs": (
        "slugs!! help",
        "Something slimy eats my salad. They are slugs. What can I do?",
        "against slugs?",
        "Which animals help me against slugs?",
    ),
    "weeds": ("weeds?", "How do I fight weeds?", "weeds everywhere, what to do", "What is the best way to pull weeds?"),
}

DAY_AFTER = (
    "day after {x}?",
    "After {x} comes which day?",
    "{x} is over. Which day is it now?",
    "Yesterday was {x}. What is today?",
    "It is {x}. What will tomorrow be?",
    "today = {x}, tomorrow = ?",
    "which day is next after {x}",
    "What day do we have one day after {x}?",
    "If yesterday was {x}, what day is it today?",
    "The party is on the day after {x}. Which day is that?",
)
DAY_BEFORE = (
    "day before {x}?",
    "Before {x} comes which day?",
    "Tomorrow is {x}. What is today?",
    "It is {x}. What was yesterday?",
    "today = {x}, yesterday = ?",
    "which day is right before {x}",
    "What day do we have one day before {x}?",
    "If tomorrow is {x}, what day is it today?",
    "I was ill on the day before {x}. Which day was that?",
)
MONTH_AFTER = (
    "month after {x}?",
    "After {x} comes which month?",
    "{x} is over. Which month is it now?",
    "Last month was {x}. Which month is it?",
    "next month after {x}",
    "It is {x}. What will the next month be?",
    "Which month do we have when {x} has ended?",
)
MONTH_BEFORE = (
    "month before {x}?",
    "Before {x} comes which month?",
    "Next month is {x}. Which month is it?",
    "It is {x}. Which month was the last one?",
    "which month is right before {x}",
    "Which month ends when {x} begins?",
)
MONTH_LENGTH = (
    "{x} days?",
    "days in {x}?",
    "number of days in {x}",
    "{x} has how many days?",
    "Does {x} have 30 or 31 days?",
    "On which number does {x} end, 28, 30 or 31?",
    "If I am paid by the day, how many days do I work in all of {x}?",
    "how long does {x} last",
)
MONTH_SEASON = (
    "{x} - which season?",
    "Is {x} in spring, summer, autumn or winter?",
    "season of {x}?",
    "What season do we have in {x}?",
    "I travel in {x}. Which season is that?",
    "which season is it in {x}",
)
SEASON_AFTER = (
    "season after {x}?",
    "After {x} comes which season?",
    "{x} is over. Which season begins?",
    "Which season begins when {x} ends?",
    "what's next after {x}",
)
SEASON_BEFORE = (
    "season before {x}?",
    "Before {x} comes which season?",
    "Which season ends when {x} begins?",
    "What season do we have before {x}?",
)
SEASON_IS = (
    "{x}?",
    "{x} in nature: what happens?",
    "What do I see outside in {x}?",
    "How do trees and days look in {x}?",
    "I have never seen {x}. What is it like?",
    "Why is {x} special?",
)
SEASON_MONTHS = (
    "Which months belong to {x}?",
    "months of {x}?",
    "When is {x}?",
    "Which three months make up {x}?",
    "In which months is it {x}?",
    "From when to when is {x}?",
)
ORDINALS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh"),
    "twelfth",
)
COUNTED: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("days in a week?", "A week has how many days?", "number of days of a week", "How many days make a week?"),
        "A week has seven days.",
        "Seven.",
    ),
    (
        (
            "months in a year?",
            "A year has how many months?",
            "How many months make a year?",
            "number of months per year",
        ),
        "A year has twelve months.",
        "Twelve.",
    ),
    (
        (
            "seasons of the year?",
            "A year has how many seasons?",
            "Into which seasons is the year divided?",
            "What are the seasons called?",
        ),
        "The four seasons are spring, summer, autumn and winter.",
        "Spring, summer, autumn and winter.",
    ),
    (
        (
            "Which month is the shortest?",
            "shortest month?",
            "Which month has the fewest days?",
            "Name the month that is shorter than the others.",
        ),
        "February is the shortest month: it has 28 days, and 29 in a leap year.",
        "February.",
    ),
    (
        ("Which months have 30 days?", "months with 30 days?", "Name all months that have 30 days."),
        "April, June, September and November have 30 days.",
        "April, June, September and November.",
    ),
    (
        ("With which month does the year begin?", "first month?", "Which month starts the year?"),
        "The first month of the year is January.",
        "January.",
    ),
    (
        ("With which month does the year end?", "last month of the year?", "Which month closes the year?"),
        "The last month of the year is December.",
        "December.",
    ),
    (
        ("Which days are the weekend?", "weekend = which days?", "On which days is the weekend?"),
        "The weekend is Saturday and Sunday.",
        "Saturday and Sunday.",
    ),
    (
        (
            "Count the days of the week for me.",
            "weekdays list",
            "all days of the week in order",
            "How are the seven days called?",
        ),
        f"The days of the week are {listed(DAYS)}.",
        f"{listed(DAYS)}.",
    ),
    (
        (
            "all months in order",
            "list months",
            "How are the twelve months called?",
            "Write down every month of the year.",
        ),
        f"The months of the year are {listed(MONTHS)}.",
        f"{listed(MONTHS)}.",
    ),
)

COLOUR_MORE = (
    "colour of {x}?",
    "{x}: colour?",
    "{x} is what colour?",
    "I want to paint {x}. Which colour do I need?",
    "what color is {x}",
    "In what colour do people paint {x}?",
    "{x} has which colour?",
    "When I look at {x}, which colour do I see?",
    "Of what colour is {x}?",
    "A child asks what colour {x} is.",
)
COLOUR_YES = (
    "Is {x} {v}?",
    "{x} is {v}, right?",
    "is it true that {x} is {v}",
    "Would you say that {x} is {v}?",
    "Am I right that {x} is {v}?",
)
COLOUR_OR = (
    "Which is {v}, {one} or {two}?",
    "What is {v}: {one} or {two}?",
    "One of these is {v}: {one}, {two}. Which one?",
    "{one} or {two} - which of them is {v}?",
)
MIX_MORE = (
    "{x} + {y} = what colour?",
    "{x} and {y} mixed?",
    "mix of {x} and {y}?",
    "I have {x} and {y} paint. Which colour can I make of both?",
    "What happens if {x} paint runs into {y} paint?",
    "Which colour comes out of {x} and {y}?",
    "If I stir {x} into {y}, what colour is it then?",
    "{x} with {y} makes",
    "I put {x} and {y} together. What colour will it be?",
)
MIX_BACK = (
    "How do I make {v} out of two colours?",
    "Which two colours make {v}?",
    "From what do I mix {v}?",
    "{v} is a mix of what?",
    "I have no {v} paint. What do I mix?",
)
# Short names of things that the table names longer.
COLOUR_SHORT = {
    "the sky": "the sky on a clear day",
    "a lemon": "a ripe lemon",
    "lemons": "a ripe lemon",
    "a banana": "a ripe banana",
    "a tomato": "a ripe tomato",
    "strawberries": "a strawberry",
    "carrots": "a carrot",
    "pumpkins": "a pumpkin",
    "crows": "a crow",
    "cucumbers": "a cucumber",
    "a rain cloud": "a cloud on a rainy day",
    "cornflowers": "a cornflower",
}


def _bare_name(country: str) -> str:
    return country.removeprefix("the ")


def _possessive(country: str) -> str:
    return f"{country}'" if country.endswith("s") else f"{country}'s"


def _plain(text: str) -> str:
    return text.replace("*", "")


def _country(pattern: str, country: str, **more: str) -> str:
    slots = {"x": country, "X": capitalised(country), "bare": _bare_name(country), "poss": _possessive(country)}
    return (
        capitalised(pattern.format(**slots, **more))
        if pattern.startswith("{poss}")
        else pattern.format(**slots, **more)
    )


def _said(rng: random.Random, asks: Sequence[str], answer: str, brief: str, **slots: str) -> Asked:
    return Asked(vary(rng.choice(asks).format(**slots), rng), answer, brief)


def _of_fact(rng: random.Random, asks: Sequence[str], fact: Fact) -> Asked:
    return _said(rng, asks, rng.choice(fact.answers), fact.brief, **fact.slots)


def tree(rng: random.Random) -> Asked:
    """Something of a tree."""
    kind = rng.random()
    if kind < 0.2:
        attribute, name, asks = rng.choice(TREE_BACK)
        return _said(rng, asks, TREE_FACTS[name][attribute].answers[0], f"The {name}.")
    chosen = rng.choice(TREES)
    facts = TREE_FACTS[chosen.name]
    if kind < 0.3:
        return _tree_yes(rng, chosen)
    if kind < 0.42:
        return _tree_or(rng, chosen)
    if kind < 0.52:
        answer = tree_overview(chosen, rng, rng.choice((3, 3, 4)))
        return _said(rng, OVERVIEW_MORE, answer, _plain(answer.split(". ")[0].rstrip(".") + "."), **facts["kind"].slots)
    fact = rng.choice(list(facts.values()))
    return _of_fact(rng, TREE_MORE[fact.attribute], fact)


_ARGUABLE = {"catkins", "chestnuts", "keys", "helicopters"}
"""What other trees may be said to bear too."""


def _tree_yes(rng: random.Random, chosen: Tree) -> Asked:
    """Whether a tree has this or that."""
    asks: tuple[str, ...]
    slots = TREE_FACTS[chosen.name]["kind"].slots
    if rng.random() < 0.45:
        yes = "needles" in chosen.leaves
        asks = ("Does {a} have needles?", "Do {pl} have needles?", "needles on {a}?", "Are there needles on {the}?")
        answer = f"{'Yes' if yes else 'No'}, the {chosen.name} has {_plain(chosen.leaves)}."
        return _said(rng, asks, answer, "Yes." if yes else "No.", **slots)
    yes = rng.random() < 0.5
    others = [one for one in TREES if _fruit_key(one) != _fruit_key(chosen)]
    fruit = _fruit_key(chosen if yes else rng.choice(others))
    if not yes and fruit in _ARGUABLE:
        fruit, yes = _fruit_key(chosen), True
    if not fruit.isalpha() or fruit in ("helicopters", "marbles", "keys") or not _fruit_key(chosen).isalpha():
        return _of_fact(rng, TREE_MORE["fruit"], TREE_FACTS[chosen.name]["fruit"])
    asks = (
        "Does {a} bear {v}?",
        "Do {pl} bear {v}?",
        "Are there {v} on {a}?",
        "{v} on {a}?",
        "Can I pick {v} from {a}?",
    )
    answer = f"{'Yes' if yes else 'No'}, the {chosen.name} bears {_plain(chosen.fruit)}."
    return _said(rng, asks, answer, "Yes." if yes else "No.", v=fruit, **slots)


def _fruit_key(chosen: Tree) -> str:
    return chosen.fruit.split("*")[1]


def _tree_or(rng: random.Random, one: Tree) -> Asked:
    """Which of two trees it is."""
    asks: tuple[str, ...]
    two = rng.choice([other for other in TREES if other is not one])
    slots = {"a": article(one.name), "b": article(two.name), "x": f"the {one.name}", "y": f"the {two.name}"}
    kind = rng.random()
    if kind < 0.35 and one.evergreen != two.evergreen:
        word = rng.choice(("evergreen", "deciduous"))
        right = one if one.evergreen == (word == "evergreen") else two
        asks = (
            f"Which is {word}, {{x}} or {{y}}?",
            f"{{x}} or {{y}}: which one is {word}?",
            f"Which of the two is {word}: {{x}} or {{y}}?",
            f"one of {{x}} and {{y}} is {word}, which?",
        )
        return _said(rng, asks, TREE_FACTS[right.name]["kind"].answers[0], f"The {right.name}.", **slots)
    if kind < 0.6 and ("needles" in one.leaves) != ("needles" in two.leaves):
        right = one if "needles" in one.leaves else two
        asks = ("Which has needles, {x} or {y}?", "{x} or {y} - which has needles?", "Needles: {x} or {y}?")
        return _said(rng, asks, f"The {right.name} has {_plain(right.leaves)}.", f"The {right.name}.", **slots)
    word, key = rng.choice((("older", _age), ("smaller", _height)))
    first, second = key(one), key(two)
    asks = {
        "older": ("Which gets older, {a} or {b}?", "What lives longer: {a} or {b}?", "{x} or {y}, which gets older?"),
        "smaller": (
            "Which is smaller, {a} or {b}?",
            "What stays smaller: {a} or {b}?",
            "{x} or {y}, which is smaller?",
        ),
    }[word]
    unit = {"older": "can live for about {} years", "smaller": "grows about {} metres tall"}[word]
    told = f"The {one.name} {unit.format(f'{first:,}')}, and the {two.name} {unit.format(f'{second:,}')}."
    if first == second:
        same = {"older": "they get equally old", "smaller": "they are equally tall"}[word]
        return _said(rng, asks, f"{told} So {same}.", "Neither.", **slots)
    is_first = (first > second) == (word == "older")
    right = one if is_first else two
    end = {"older": "gets older", "smaller": "is smaller"}[word]
    return _said(rng, asks, f"{told} So the {right.name} {end}.", f"The {right.name}.", **slots)


def _age(chosen: Tree) -> int:
    return int(chosen.age.replace(",", ""))


def _height(chosen: Tree) -> int:
    return chosen.height


def capital(rng: random.Random) -> Asked:
    """A capital, or the country of one."""
    kind = rng.random()
    if kind < 0.1:
        country = rng.choice(COUNTRIES_WITHOUT_ANSWER)
        answer = f"I do not know the capital of {country}."
        return Asked(vary(_country(rng.choice(CAPITAL_MORE), country), rng), answer, "I do not know.")
    country = rng.choice(list(CAPITALS))
    city = CAPITALS[country]
    told = f"The capital of {country} is {city}."
    if kind < 0.3:
        while city == "London":
            country = rng.choice(list(CAPITALS))
            city = CAPITALS[country]
        asked = rng.choice(CAPITAL_BACK).format(v=city)
        return Asked(vary(asked, rng), f"{city} is the capital of {country}.", f"{capitalised(country)}.")
    wrong = rng.choice(list(CAPITALS.values()) if rng.random() < 0.6 else CITIES)
    if kind < 0.42:
        yes = rng.random() < 0.5 or wrong in {city, "Delhi"}
        asked = _country(rng.choice(CAPITAL_YES), country, v=city if yes else wrong)
        answer = f"Yes, {city} is the capital of {country}." if yes else f"No, the capital of {country} is {city}."
        if "True or false" in asked:
            answer = answer.replace("Yes", "True").replace("No,", "False,")
            return Asked(vary(asked, rng), answer, "True." if yes else "False.")
        return Asked(vary(asked, rng), answer, "Yes." if yes else f"No, {city}.")
    if kind < 0.52 and wrong not in {city, "Delhi"}:
        one, two = rng.sample((city, wrong), 2)
        return Asked(vary(_country(rng.choice(CAPITAL_OR), country, one=one, two=two), rng), told, f"{city}.")
    if kind < 0.6:
        other = rng.choice([name for name in CAPITALS if name != country])
        asked = _country(rng.choice(CAPITAL_TWO), country, y=other)
        both = f"The capital of {country} is {city}, and the capital of {other} is {CAPITALS[other]}."
        return Asked(vary(asked, rng), both, f"{city} and {CAPITALS[other]}.")
    return Asked(vary(_country(rng.choice(CAPITAL_MORE), country), rng), told, f"{city}.")


def noun(rng: random.Random) -> Asked:
    """An animal, a flower or a vegetable."""
    facts = OTHER_FACTS["nouns"]
    fact = rng.choice(facts)
    kind = rng.random()
    if kind < 0.12:
        return _animal_or(rng)
    if kind < 0.2:
        return _flower_or(rng)
    if kind < 0.3:
        return _animal_yes(rng)
    more = {
        id(asks): patterns
        for table, mores in ((ANIMAL_ASKS, ANIMAL_MORE), (FLOWER_ASKS, FLOWER_MORE), (CROP_ASKS, CROP_MORE))
        for (_, asks), patterns in zip(table.items(), mores.values(), strict=True)
    }
    return _of_fact(rng, more[id(fact.asks)], fact)


# What animals eat besides what the tables tell of them.
_SHARED = {
    *(("acorns", "squirrel"), ("acorns", "deer"), ("nuts", "jay"), ("nuts", "wild boar"), ("insects", "bat")),
    *(("flies", "jay"), ("flies", "robin"), ("flies", "bat"), ("flies", "ant"), ("flies", "woodpecker")),
    *(("moths", "jay"), ("moths", "robin"), ("moths", "frog"), ("moths", "ant"), ("moths", "woodpecker")),
    *(("slugs", "frog"), ("slugs", "badger"), ("bark", "deer"), ("bark", "rabbit"), ("bark", "squirrel")),
    *(("honeydew", "bee"), ("mice", "badger"), ("mice", "hedgehog"), ("mice", "wild boar"), ("worms", "frog")),
    *(("worms", "fox"), ("berries", "badger"), ("berries", "hedgehog"), ("grass", "wild boar"), ("insects", "fox")),
    *(("insects", "hedgehog"), ("insects", "badger"), ("berries", "squirrel"), ("berries", "deer"), ("nuts", "deer")),
    *(
        ("berries", "wild boar"),
        ("worms", "jay"),
        ("worms", "woodpecker"),
        ("insects", "wild boar"),
        ("bark", "woodpecker"),
    ),
}


def _animal_or(rng: random.Random) -> Asked:
    """Which of two animals eats this or lives there."""
    (one, (_, food, home)), (two, (_, other_food, _)) = rng.sample(list(ANIMALS.items()), 2)
    key = food.split("*")[1]
    first, second = rng.sample((article(one), article(two)), 2)
    if rng.random() < 0.5 and key not in other_food and (key, two) not in _SHARED:
        asks = ("Which eats {v}, {a} or {b}?", "Who likes {v} more, {a} or {b}?", "{a} or {b}: which of them eats {v}?")
        answer = f"{capitalised(article(one))} eats {_plain(food)}."
        return _said(rng, asks, answer, f"The {one}.", v=key, a=first, b=second)
    asks = ("Which lives {v}, {a} or {b}?", "{a} or {b}: which of them lives {v}?", "Who lives {v}: {a} or {b}?")
    answer = f"{capitalised(article(one))} lives {_plain(home)}."
    if "hollow tree" in home or "burrow" in home or "nest" in home:
        two = rng.choice(("frog", "bee", "fox"))
        first, second = rng.sample((article(one), article(two)), 2)
    return _said(rng, asks, answer, f"The {one}.", v=_plain(home), a=first, b=second)


def _animal_yes(rng: random.Random) -> Asked:
    """Whether an animal eats this or lives there."""
    name, (plural, food, home) = rng.choice(list(ANIMALS.items()))
    slots = {"a": article(name), "pl": plural}
    yes = rng.random() < 0.5
    other = rng.choice([entry for entry in ANIMALS.values() if entry[2] != home])
    if rng.random() < 0.5:
        value = (food if yes else other[1]).split("*")[1]
        right = value in food.split(" that ")[0]
        # The tables do not tell all that an animal eats: of these it is certain.
        if not right and value not in {"nectar", "honeydew", "bark", "grass"}:
            value, right = food.split("*")[1], True
        if not right and name in {"ant", "bee", "deer", "rabbit", "squirrel", "badger", "wild boar", "beaver", "jay"}:
            value, right = food.split("*")[1], True
        asks = ("Does {a} eat {v}?", "Do {pl} eat {v}?", "do {pl} like {v}", "Is it true that {pl} eat {v}?")
        answer = f"{'Yes' if right else 'No'}, {plural} eat {_plain(food)}."
        return _said(rng, asks, answer, "Yes." if right else "No.", v=value, **slots)
    place = _plain(home if yes else other[2])
    alike = "hollow tree" in home and "hollow tree" in place
    if alike or ("burrow" in home and "burrow" in place) or ("nest" in home and "nest" in place):
        place, yes = _plain(home), True
    asks = ("Does {a} live {v}?", "Do {pl} live {v}?", "Is the home of {a} {v}?", "{pl} live {v}, right?")
    answer = f"{'Yes' if yes else 'No'}, {plural} live {_plain(home)}."
    return _said(rng, asks, answer, "Yes." if yes else "No.", v=place, **slots)


def _flower_or(rng: random.Random) -> Asked:
    """Which of two flowers blooms then, or which of two vegetables is sown then."""
    table = {name: (plural, when) for name, (plural, _, when) in FLOWERS.items() if "from" not in when}
    verb, base = "bloom", "blooms"
    if rng.random() < 0.5:
        table = {
            name: (plural, when) for name, (plural, when, _) in CROPS.items() if re.match(r"(in |\w+ in )\*[A-Z]", when)
        }
        verb, base = "are planted", "is planted"
    (_, (plural, when)), (_, (other, other_when)) = rng.sample(list(table.items()), 2)
    time = re.findall(r"[A-Za-z]+", when.split("*")[1])[-1]
    if time in other_when:
        return noun(rng)
    first, second = rng.sample((plural, other), 2)
    asks = (
        f"Which {verb} in {time}, {first} or {second}?",
        f"{first} or {second}: which of them {verb} in {time}?",
        f"Which of these {base} in {time}: {first}, {second}?"
        if verb == "bloom"
        else f"In {time}, do I plant {first} or {second}?",
    )
    answer = f"{capitalised(plural)} {verb} {_plain(when)}."
    if verb != "bloom":
        answer = f"Sow or plant {plural} {_plain(when)}."
    return Asked(vary(rng.choice(asks), rng), answer, f"{capitalised(plural)}.")


def topic(rng: random.Random) -> Asked:
    """Something of nature."""
    name = rng.choice(list(TOPIC_MORE))
    answer = rng.choice(TOPICS[name][1])
    return _said(rng, TOPIC_MORE[name], answer, re.split(r"(?<=[.!]) ", answer)[0])


def calendar(rng: random.Random) -> Asked:
    """A day, a month or a season."""
    asks: tuple[str, ...]
    kind = rng.randrange(13)
    day, month = rng.randrange(7), rng.randrange(12)
    season = rng.choice(list(SEASONS))
    if kind < 2:
        return _next(rng, DAY_AFTER, DAYS, day, 1, "day")
    if kind < 4:
        return _next(rng, DAY_BEFORE, DAYS, day, -1, "day")
    if kind == 4:
        return _next(rng, MONTH_AFTER, MONTHS, month, 1, "month")
    if kind == 5:
        return _next(rng, MONTH_BEFORE, MONTHS, month, -1, "month")
    name, days = MONTHS[month], MONTH_DAYS[month]
    leap = ", and 29 in a leap year" if name == "February" else ""
    if kind == 6:
        if rng.random() < 0.3:
            said = rng.choice((28, 30, 31))
            asks = ("Does {x} have {v} days?", "{x} has {v} days, right?", "Are there {v} days in {x}?")
            yes = "Yes" if said == days else "No"
            return _said(rng, asks, f"{yes}, {name} has {days} days{leap}.", f"{yes}.", x=name, v=str(said))
        return _said(rng, MONTH_LENGTH, f"{name} has {days} days{leap}.", f"{days} days.", x=name)
    if kind == 7:
        its = list(SEASONS)[((month + 10) % 12) // 3]
        answer = f"In the northern half of the world {name} belongs to {its}."
        return _said(rng, MONTH_SEASON, answer, f"{capitalised(its)}.", x=name)
    if kind == 8:
        return _season(rng, season)
    if kind == 9:
        first = 2 + 3 * list(SEASONS).index(season)
        months = listed([MONTHS[(first + place) % 12] for place in range(3)])
        answer = f"In the northern half of the world {months} belong to {season}."
        return _said(rng, SEASON_MONTHS, answer, f"{months}.", x=season)
    if kind == 10:
        asks = ("Which month is number {n}?", "month no. {n}", "What is the {o} month of the year?", "{o} month?")
        answer = f"The {ORDINALS[month]} month of the year is {name}."
        return _said(rng, asks, answer, f"{name}.", n=str(month + 1), o=ORDINALS[month])
    if kind == 11:
        asks = (
            "Which number does {x} have among the months?",
            "{x} is which month of the year?",
            "{x} = month number?",
        )
        answer = f"{name} is the {ORDINALS[month]} month of the year."
        return _said(rng, asks, answer, f"The {ORDINALS[month]}.", x=name)
    asks, answer, brief = rng.choice(COUNTED)
    return _said(rng, asks, answer, brief)


def _next(rng: random.Random, asks: tuple[str, ...], names: tuple[str, ...], place: int, step: int, what: str) -> Asked:
    other = names[(place + step) % len(names)]
    side = "after" if step > 0 else "before"
    answers = (f"{other} comes {side} {names[place]}.", f"The {what} {side} {names[place]} is {other}.")
    return _said(rng, asks, rng.choice(answers), f"{other}.", x=names[place])


def _season(rng: random.Random, season: str) -> Asked:
    after, what = SEASONS[season]
    kind = rng.random()
    if kind < 0.35:
        return _said(rng, SEASON_AFTER, f"After {season} comes {after}.", f"{capitalised(after)}.", x=season)
    if kind < 0.6:
        before = next(name for name, (follower, _) in SEASONS.items() if follower == season)
        return _said(rng, SEASON_BEFORE, f"Before {season} comes {before}.", f"{capitalised(before)}.", x=season)
    return _said(rng, SEASON_IS, f"In {season} {what}.", f"{capitalised(what)}.", x=season)


def colour(rng: random.Random) -> Asked:
    """The colour of a thing, or what two of them make."""
    asks: tuple[str, ...]
    kind = rng.random()
    thing, its = rng.choice(list(THING_COLOURS.items()))
    told = f"{capitalised(thing)} is {its}."
    if kind < 0.35:
        short = rng.choice([name for name, full in COLOUR_SHORT.items() if full == thing] or [thing])
        singular = short in THING_COLOURS or short.startswith(("a ", "an ", "the "))
        asks = (
            COLOUR_MORE
            if singular
            else ("colour of {x}?", "{x}: colour?", "what color are {x}", "What colour are {x}?")
        )
        return _said(rng, asks, told, f"{capitalised(its)}.", x=short)
    if kind < 0.5:
        yes = rng.random() < 0.5
        near = thing in {"the sea", "soil", "a cloud on a rainy day", "an aubergine", "lavender", "a pumpkin"}
        shades = ("red", "pink") if near else ("green", "red", "blue", "yellow", "black", "white")
        wrong = rng.choice([one for one in shades if one != its])
        answer = f"Yes, {thing} is {its}." if yes else f"No, {thing} is {its}."
        return _said(rng, COLOUR_YES, answer, "Yes." if yes else f"No, {its}.", x=thing, v=its if yes else wrong)
    if kind < 0.65:
        other = rng.choice([name for name, shade in THING_COLOURS.items() if shade != its])
        one, two = rng.sample((thing, other), 2)
        return _said(rng, COLOUR_OR, told, f"{capitalised(thing)}.", v=its, one=one, two=two)
    (first, second), mix = rng.choice(list(COLOUR_MIXES.items()))
    if rng.random() < 0.25:
        return _said(
            rng, MIX_BACK, f"Mixing {first} and {second} gives {mix}.", f"{capitalised(first)} and {second}.", v=mix
        )
    one, two = rng.sample((first, second), 2)
    answers = (f"If you mix {one} and {two}, you get {mix}.", f"Mixing {one} and {two} gives {mix}.")
    return _said(rng, MIX_MORE, rng.choice(answers), f"{capitalised(mix)}.", x=one, y=two)


_WRITERS: tuple[tuple[int, Callable[[random.Random], Asked]], ...] = (
    (30, tree),
    (14, capital),
    (16, noun),
    (12, topic),
    (14, calendar),
    (9, colour),
)


# What people say around a question, which changes nothing; {t} are other trees and {x} is another country.
AROUND = (
    "Good morning. My class asked me something that I could not answer: {q}",
    "I hope that you can help me with this. {q} Thank you in advance.",
    "We have been arguing about this all evening. {q}",
    "{q} My husband says that everybody knows that, but I do not.",
    "This is for a quiz tonight: {q}",
    "a friend wants to know: {q}",
    "ok next one: {q}",
    "{q} asking for my homework",
    "{q} Please be so kind as to tell me.",
    "{q} I have no idea.",
    "My little son asks me all day long. Now he asks: {q}",
    "It is late and I cannot sleep, so here is a question: {q}",
    "I am testing you. {q}",
    "Let's see if you know this. {q}",
    "Hi, I found your address on the internet and have a question. {q}",
    "One more thing before I go. {q}",
    "Dear Sapling, I have been thinking. {q} Kind regards",
    "Q: {q}",
    "Q: {q} A:",
    "question - {q}",
    "Not about {t}, but this: {q}",
    "I know the capital of {x} already. {q}",
    "Yesterday I read about {t}. Today it is something else. {q}",
    "Forget {t}. {q}",
    "First I wanted to ask about {x}, but now: {q}",
    "My neighbour knows all about {t}. I do not, and I only wonder about this: {q}",
    "I was in {x} last week. That is not what I ask about. {q}",
    "{t} are nice, but my question is another one. {q}",
)


def around(rng: random.Random, question: str) -> str:
    """A question with more around it, of which the answer takes no notice."""
    said = rng.choice(AROUND).replace("{t}", rng.choice(TREES).plural)
    return capitalised(said.replace("{x}", rng.choice(list(CAPITALS)))).replace("{q}", question)


def fact(rng: random.Random) -> Asked:
    """Any of them."""
    [write] = rng.choices([write for _, write in _WRITERS], [weight for weight, _ in _WRITERS])
    found = write(rng)
    question = found.asked.strip()
    kind = rng.random()
    if kind < 0.06:
        question = _sloppy(rng, question)
    elif kind < 0.16 and question.endswith("?") and question[:1].isupper():
        question = around(rng, question)
    return found._replace(asked=question)


def fact_without_topics(rng: random.Random) -> Asked:
    """Any of them that does not tell of Sapling or Bough."""
    while True:
        found = fact(rng)
        if not re.search(r"my name|runs me", found.answer):
            return found


_SLOPPY = (
    (r"\byou\b", "u"),
    (r"\bare\b", "r"),
    (r"\bplease\b", "plz"),
    (r"\bwhat is\b", "whats"),
    (r"\bthe\b", "teh"),
    (r"\bwhich\b", "wich"),
    (r"\bwhere\b", "were"),
    (r"\bto\b", "2"),
    (r"\bwhat\b", "wht"),
    (r"\bdoes\b", "dos"),
    (r"\bbecause\b", "cuz"),
    (r"\bthanks\b", "thx"),
    (r"\bcolou?r\b", "coler"),
    (r"\bcapital\b", "captial"),
)


def _sloppy(rng: random.Random, text: str) -> str:
    """A question as those write it who are in a hurry."""
    text = text.lower().rstrip("?.")
    wrong, right = rng.choice(_SLOPPY)
    return re.sub(wrong, right, text, count=1)


BRIEF_MORE = (
    "Use as few words as you can.",
    "A few words are enough for an answer.",
    "Answers: short. No whole sentences.",
    "Do not write whole sentences.",
    "Say only what was asked for, without a sentence around it.",
    "You are short with words: no sentences, only the answer itself.",
    "The user has no time. Give the bare answer.",
    "Bare answers only.",
    "telegram style please",
    "Reply with the answer alone.",
    "You are a quiz machine: print the answer, nothing more.",
    "Answer with a word or two, not with a sentence.",
)
SYSTEMS_MORE = (
    "You are a helpful assistant that answers questions about nature.",
    "Answer truthfully. If you do not know something, say so.",
    "You are an honest assistant. Never invent anything.",
    "You answer the visitors of a website.",
    "You are chatting with a user.",
    "Help the user as well as you can.",
    "You are a small and friendly model.",
    "The user may ask anything. Say what you know.",
    "Reply in English.",
    "You are a support bot. Stay friendly.",
)


def _slots(words: Words) -> dict[str, Callable[[], str]]:
    """What a pattern of the tables may have, drawn when it is there."""
    rng = words.rng
    return {
        "n": words.name,
        "m": words.name,
        "c": words.city,
        "i": words.items,
        "d": lambda: rng.choice(DAYS),
        "k": lambda: str(rng.choice((rng.randint(121, 999), rng.randint(1001, 9999)))),
        "l": lambda: str(rng.randint(11, 99)),
        "h": words.time,
        "j": words.job,
        "p": words.place,
        "a": lambda: str(rng.randint(6, 98)),
        "f": words.colour,
        "o": words.hobby,
        "b": lambda: f"{rng.randint(1, 28)} {rng.choice(MONTHS)}",
    }


def refusal(rng: random.Random) -> tuple[Asked, Refused]:
    """Something that is not known, and its kind."""
    kind = rng.choice(REFUSED)
    pattern = rng.choice(kind.asks)
    drawn = _slots(Words(rng))
    filled = {name: drawn[name]() for name in sorted(set(re.findall(r"\{(\w)\}", pattern + kind.answers[0])))}
    answers = kind.answers if kind.is_apart or rng.random() < 0.7 else REFUSALS
    asked, answer = _fill(pattern, filled), rng.choice(answers)
    if "{n}" in answer and "{n}" not in pattern:
        answer = REFUSALS[0]
    question = _typed(rng, asked)
    if question.endswith("?") and question[:1].isupper() and rng.random() < 0.06:
        question = around(rng, question)
    return Asked(question, _fill(answer, filled), "I do not know."), kind


def _fill(pattern: str, filled: dict[str, str]) -> str:
    """A pattern with what was drawn; with an article where that is a job."""
    said = pattern
    for name, value in filled.items():
        said = said.replace(f"a {{{name}}}", article(value)).replace(f"{{{name}}}", value)
    return capitalised(said) if pattern[:1] == "{" and pattern[1:2] in "ncif" else said


def _typed(rng: random.Random, text: str) -> str:
    """What is asked as people type it; names stay as they are."""
    if rng.random() < 0.12:
        text = text.rstrip("?.!")
    return text[:1].lower() + text[1:] if rng.random() < 0.1 and not text.startswith("I ") else text


def unknown(rng: random.Random) -> Asked:
    """An animal or a plant of which the tables tell nothing, asked for as others are."""
    names, tables = rng.choice(
        (
            (UNKNOWN_ANIMALS, (ANIMAL_ASKS, ANIMAL_MORE)),
            (UNKNOWN_TREES, (TREE_ASKS, TREE_MORE)),
            (UNKNOWN_FLOWERS, (FLOWER_ASKS, FLOWER_MORE)),
            (UNKNOWN_CROPS, (CROP_ASKS, CROP_MORE)),
        )
    )
    name, plural = rng.choice(names)
    patterns = [
        pattern
        for table in tables
        for asks in table.values()
        for pattern in (asks if isinstance(asks, tuple) else asks.train)
    ]
    slots = {"x": name, "a": article(name), "the": f"the {name}", "pl": plural}
    slots |= {"A": capitalised(slots["a"]), "The": f"The {name}", "Pl": capitalised(plural)}
    answers = (*UNKNOWN_ANSWERS, rng.choice(REFUSALS))
    return Asked(vary(rng.choice(patterns).format(**slots), rng), rng.choice(answers).format(**slots), "I do not know.")


def _near(rng: random.Random, what: str) -> Exchange:
    """Something that is known and looks like what is not."""
    writer = ConversationWriter(rng)
    if what == "sums":
        asked, answer, _ = arithmetic.exchange(Words(rng, stage=Stage.LAST))
        return asked, answer
    if what == "stories":
        return writer.story()[0]
    if what == "self":
        return writer.small_talk("who are you")[0]
    if what in ("rain", "topics"):
        return topic(rng)[:2]
    if what == "capitals":
        return capital(rng)[:2]
    if what == "age":
        known = TREE_FACTS[rng.choice(TREES).name]["age"]
        return _of_fact(rng, TREE_MORE["age"], known)[:2]
    return (noun if what == "crops" else fact)(rng)[:2]


def remembered(rng: random.Random) -> list[Exchange]:
    """What the user tells of themselves, and questions for that and for what was not told."""
    words = Words(rng)
    kinds = rng.sample(TOLD, rng.choice((1, 1, 2, 3)) + 1)
    *told, absent = kinds
    drawn = _slots(words)
    drawn["k"] = lambda: str(rng.randint(2, 60))
    values = [drawn[kind]() for kind, *_ in told]
    if len(set(values)) < len(values):
        return remembered(rng)
    said = []
    for (_, ways, *_), value in zip(told, values, strict=True):
        way = rng.choice(ways)
        text = way.format(v=value, av=article(value))
        said.append(capitalised(text) if way.startswith("{") else text)
    exchanges: list[Exchange] = []
    if len(told) > 1 and rng.random() < 0.5:
        exchanges.append((" ".join(said), "Thank you for telling me!"))
    else:
        exchanges += [
            (text, reply.format(v=value)) for text, (_, _, reply, *_), value in zip(said, told, values, strict=True)
        ]
    if rng.random() < 0.3:
        exchanges.append(fact(rng)[:2])
    questions = [
        (_typed(rng, rng.choice(asks)), answer.format(v=value, av=article(value)))
        for (_, _, _, asks, answer), value in zip(told, values, strict=True)
    ]
    if rng.random() < 0.5:
        questions.append((_typed(rng, rng.choice(absent[3])), rng.choice(UNTOLD)))
    rng.shuffle(questions)
    return [*exchanges, *questions[: rng.choice((1, 2, 3))]]


def chat(rng: random.Random) -> Exchange:
    """Small talk."""
    kind = rng.choice(CHATS)
    return _typed(rng, rng.choice(kind.asks)), rng.choice(kind.answers)


def segment(rng: random.Random) -> list[Exchange]:
    """A few exchanges that belong together."""
    kind = rng.random()
    if kind < 0.46:
        return [fact(rng)[:2]]
    if kind < 0.7:
        asked, of_kind = refusal(rng)
        exchanges = [asked[:2]]
        if rng.random() < 0.5:
            exchanges.append(_near(rng, of_kind.near))
            rng.shuffle(exchanges)
        return exchanges
    if kind < 0.77:
        exchanges = [unknown(rng)[:2]]
        if rng.random() < 0.5:
            exchanges.append((noun if rng.random() < 0.6 else tree)(rng)[:2])
            rng.shuffle(exchanges)
        return exchanges
    if kind < 0.9:
        return [chat(rng)]
    return remembered(rng)


def talk(rng: random.Random) -> tuple[list[Exchange], str | None]:
    """A conversation and its system prompt, if it has one."""
    if rng.random() < 0.1:
        prompt = rng.choice(BRIEF_MORE if rng.random() < 0.75 else BRIEF_SYSTEM_PROMPTS)
        if rng.random() < 0.4:
            prompt = f"{rng.choice(SYSTEM_PROMPTS)} {prompt}"
        found = [rng.choice((fact, fact, fact, unknown))(rng) for _ in range(rng.choice((1, 1, 2, 3)))]
        return [(asked, brief) for asked, _, brief in found], prompt
    count = rng.choice((1, 1, 1, 1, 2, 3, 4, 6))
    exchanges: list[Exchange] = []
    has_told = False
    while len(exchanges) < count:
        found_here = segment(rng)
        # Who has told something before must not hear that nothing was told.
        private = any("told me" in answer or "Thank you for telling" in answer for _, answer in found_here)
        if (private or len(found_here) > 2) and (has_told or exchanges):
            continue
        has_told = has_told or private
        exchanges += found_here
    return exchanges, rng.choice(SYSTEM_PROMPTS + SYSTEMS_MORE) if rng.random() < 0.3 else None
