"""Tiny stories and poems: plots made of interchangeable sentences."""

from __future__ import annotations

import random

Plot = tuple[tuple[str, ...], ...]

# Every plot is a row of steps; a step offers sentences of the same meaning. {h} is the hero ("oak"), {f} a friend
# ("squirrel"), {p} a place. The first step and the last two are never left out.
TREE_PLOTS: tuple[Plot, ...] = (
    (
        ("Once upon a time there was a little {h} {p}.", "Once upon a time a young {h} stood {p}."),
        ("It was the smallest of all the trees.", "All the other trees were taller."),
        ("The little {h} often wished to touch the clouds.", "Every evening the {h} looked up and sighed."),
        ("One day a {f} came by and sat down in its shade.", "Then a {f} came along and rested under its leaves."),
        (
            '"Do not hurry," said the {f}. "Every ring in your trunk is a year well spent."',
            '"You give the coolest shade of all," said the {f}.',
        ),
        ("So the {h} learned to be patient.", "From then on the {h} was happy with every new leaf."),
        ("Many years passed, and the {h} grew tall and strong.", "Year after year the {h} grew a little more."),
        (
            "Today it is the tallest tree far and wide, and children play under its branches.",
            "And today the birds say that no other tree has such a fine view.",
        ),
    ),
    (
        ("Long ago an old {h} stood {p}.", "Once upon a time an old {h} stood {p}."),
        ("It had seen a hundred winters and a hundred springs.", "Its trunk was wide and its branches were strong."),
        ("One night a great storm came over the hills.", "One autumn night the wind began to howl."),
        ("A little {f} was afraid and had no place to hide.", "A {f} ran through the rain and looked for shelter."),
        ('"Come under my branches," whispered the old {h}.', '"You are safe with me," said the {h}.'),
        (
            "The {f} slept between its roots until the storm was over.",
            "All night long the {h} held its branches over the {f}.",
        ),
        (
            "In the morning the sun came out, and the {f} thanked the {h}.",
            "When the sun rose, the {f} danced with joy.",
        ),
        ("They have been good friends ever since.", "Since then the {f} visits the {h} every day."),
    ),
    (
        ("There was once a {h} that felt lonely {p}.", "Once upon a time there was a lonely {h} {p}."),
        ("No other tree grew near it.", "Nobody ever came to visit."),
        ("In spring the {h} let its seeds fly with the wind.", "One spring the {h} gave its seeds to the wind."),
        ("A {f} found some of them and buried them in the soft ground.", "A {f} carried the seeds to all sides."),
        ("The rain fell, and the sun warmed the earth.", "Then came the warm rain of May."),
        ("Soon small green shoots looked out of the ground.", "After some weeks the first small leaves appeared."),
        ("The {h} rustled with joy.", "The {h} could hardly believe its luck."),
        (
            "Now a whole little forest stands there, and the {h} is never alone.",
            "And so a forest began with one lonely {h}.",
        ),
    ),
    (
        ("One hot summer a {h} {p} became very thirsty.", "Once upon a time a {h} {p} had not had rain for weeks."),
        ("Its leaves hung down and the ground was full of cracks.", "The brook was dry and the grass was brown."),
        ("A {f} saw this and felt sorry for the tree.", "A {f} noticed the dry leaves."),
        ("It called all its friends together.", "It ran and told the whole forest."),
        ("They carried water from the lake, drop by drop.", "Everyone brought a little water from the pond."),
        ("On the third day dark clouds came up at last.", "Then, one evening, thunder rolled over the hills."),
        ("The rain poured down and the {h} drank and drank.", "It rained all night, and the {h} was green again."),
        (
            "In autumn the {h} thanked its friends with a carpet of bright leaves.",
            "The {h} never forgot how the {f} had helped.",
        ),
    ),
    (
        ("Once upon a time a gardener planted a {h} {p}.", "A girl once planted a small {h} {p}."),
        ("It was no longer than a finger.", "It had only two leaves."),
        ("Every day the tree got a cup of water and a kind word.", "She watered it every morning before breakfast."),
        ("In winter a {f} sat beside it so that it did not feel alone.", "A {f} kept it company in the snow."),
        ("When spring came, the first buds opened.", "In spring it opened one green leaf after the other."),
        (
            "The years went by and the {h} grew taller than the house.",
            "Soon it was as high as the fence, and then as the roof.",
        ),
        ("Now the {f} lives in its branches.", "Now its branches are full of birds."),
        ("And whoever sits under it feels at peace.", "And every spring there is a small party under the {h}."),
    ),
)

ANIMAL_PLOTS: tuple[Plot, ...] = (
    (
        ("Once upon a time a little {h} lived {p}.", "There was once a {h} that lived {p}."),
        ("It loved to explore the forest.", "It was curious about everything."),
        ("One day it walked too far and lost its way.", "One afternoon it followed a butterfly and got lost."),
        ("The sun went down and the shadows grew long.", "It became dark, and the {h} was afraid."),
        ("Then it met a {f} with kind eyes.", "Then a {f} came along the path."),
        ('"Follow me," said the {f}. "I know the way."', '"Do not be afraid," said the {f}.'),
        ("Together they walked home under the stars.", "They walked side by side until they saw the old tree again."),
        ("Since that night the two are best friends.", "And the {h} never went so far alone again."),
    ),
    (
        ("A {h} lived {p} and was always in a hurry.", "Once upon a time there was a busy {h} {p}."),
        ("All summer long it collected food for the winter.", "In autumn it worked from morning to night."),
        (
            "Its neighbour, a {f}, had nothing left when the snow came.",
            "But a {f} next door found nothing in the snow.",
        ),
        ("The {h} thought about it for a while.", "At first the {h} did not want to share."),
        ("Then it filled a basket and knocked on the door.", "Then it put half of its store in front of the door."),
        ('"Thank you," said the {f} and made a warm fire.', "The {f} was so happy that it sang a song."),
        ("They shared their supper all winter.", "They ate together and told each other stories."),
        ("And the winter did not feel long at all.", "It was the warmest winter they had ever known."),
    ),
    (
        ("Once upon a time a {h} {p} wanted to see the sea.", "A young {h} {p} dreamed of a great journey."),
        ("It packed a small bag and said goodbye.", "Early one morning it set off."),
        ("On the way it met a {f} that was just as curious.", "At the brook a {f} joined it."),
        ("They crossed three hills and a wide meadow.", "They walked through rain and through sunshine."),
        ("At last they stood on a high rock and saw only blue.", "Then they heard the waves and saw the blue water."),
        ("They sat there until the evening.", "They played on the beach all day long."),
        ('"It is beautiful," said the {h}, "but our forest is beautiful too."', "Then the {h} began to miss its home."),
        ("And so they went home and had much to tell.", "So the two friends walked home, happy and tired."),
    ),
)

PERSON_PLOTS: tuple[Plot, ...] = (
    (
        ("{n} found an acorn {p}.", "One day {n} found a shiny acorn {p}."),
        ("{n} put it into a pot of soil and waited.", "{n} planted it in a small pot at the window."),
        ("For a long time nothing happened.", "Day after day there was nothing to see."),
        ("Then one morning a tiny green shoot appeared.", "But in spring a little shoot looked out of the soil."),
        ("{n} gave it water and sang to it.", "{n} watered it with care."),
        (
            "After two years the little oak moved to the garden.",
            "Soon the pot was too small, so the oak moved outside.",
        ),
        ("Now {n} and the oak grow up together.", "Every birthday {n} measures the oak."),
        ("The oak is always a little ahead.", "And so far the oak is winning."),
    ),
    (
        ("{n} went for a walk {p}.", "On a sunny morning {n} walked {p}."),
        ("The birds were singing and the air smelled of pine.", "It was quiet, and the leaves were golden."),
        ("Suddenly a {f} jumped out of the bushes.", "On the path sat a small {f}."),
        ("It looked hungry, so {n} shared a piece of bread.", "{n} stood very still and smiled."),
        ("The {f} came closer and closer.", "The {f} was not afraid at all."),
        ("They sat together under an old tree for a while.", "For a while the two just looked at each other."),
        ("Then it was time to go home.", "When the sun went down, {n} said goodbye."),
        ("The next day the {f} was already waiting.", "{n} never forgot that day."),
    ),
)

PLACES: tuple[str, ...] = (
    "at the edge of a quiet forest",
    "on a green hill",
    "beside a small brook",
    "in the middle of a wide meadow",
    "near an old stone wall",
    "behind a little village",
    "by a silent lake",
    "at the end of a long valley",
)

FRIENDS: tuple[str, ...] = (
    "squirrel",
    "robin",
    "hedgehog",
    "fox",
    "owl",
    "rabbit",
    "woodpecker",
    "badger",
    "deer",
    "bee",
)

STORY_ASKS: tuple[str, ...] = (
    "Tell me a story about {a}.",
    "Tell me a story about {a}!",
    "Can you tell me a story about {a}?",
    "Please tell me a story about {a}.",
    "Write a story about {a}.",
    "Write a short story about {a}.",
    "I want to hear a story about {a}.",
    "Do you know a story about {a}?",
    "A story about {a}, please.",
    "Make up a story about {a}.",
    "Tell a little story about {a}.",
)
STORY_ASKS_HELD_OUT: tuple[str, ...] = (
    "Could you tell me a story about {a}?",
    "Please write a little story about {a}.",
)
ANY_STORY_ASKS: tuple[str, ...] = (
    "Tell me a story.",
    "Tell me a story!",
    "Can you tell me a story?",
    "Tell me another story.",
    "Write a story.",
    "Do you know a story?",
    "I would like to hear a story.",
    "Another story, please.",
    "Please tell me a story.",
    "Write a short story.",
    "Tell me a bedtime story.",
)
SHORT_STORY_ASKS: tuple[str, ...] = (
    "Tell me a very short story about {a}.",
    "Tell me a tiny story about {a}.",
    "Tell me a story about {a} in three sentences.",
)
LONG_STORY_ASKS: tuple[str, ...] = (
    "Tell me a long story about {a}.",
    "Write a long story about {a}.",
    "Tell me a longer story about {a}.",
)

POEM_ASKS: tuple[str, ...] = (
    "Write a poem about {a}.",
    "Write a short poem about {a}.",
    "Can you write a poem about {a}?",
    "Tell me a poem about {a}.",
    "Please write a poem about {a}.",
    "A poem about {a}, please.",
)
POEMS: tuple[str, ...] = (
    "The {h} stands quiet in the rain\nand waits until the sun\nwill touch its dripping leaves again\n"
    "and warm them one by one.",
    "I sat beneath a {h} today,\nthe wind was soft and low.\nIt took my heavy thoughts away\n"
    "and let the green ones grow.",
    "O {h}, you do not walk or run,\nyou hold your little ground,\nyet every year you catch the sun\n"
    "and add a ring so round.",
    "When evening comes and birds are still,\nthe {h} begins to dream\nof morning light upon the hill\n"
    "and silver on the stream.",
    "A tiny seed, a drop of rain,\na little light, and see:\nthe spring has come around again\nand made a {h} for me.",
)
HAIKU_ASKS: tuple[str, ...] = (
    "Write a haiku.",
    "Write a haiku about trees.",
    "Can you write a haiku?",
    "Write a haiku about the forest.",
    "Tell me a haiku.",
)
HAIKUS: tuple[str, ...] = (
    "Old tree in the rain,\nevery drop finds a green leaf,\nthen the quiet ground.",
    "Morning in the woods,\na woodpecker starts to knock.\nThe day opens up.",
    "One leaf on the path,\nred and gold and wet with dew.\nAutumn says hello.",
)


def tell(plot: Plot, rng: random.Random, length: int, **slots: str) -> str:
    """Tell ``plot`` in about ``length`` sentences, leaving out steps of its middle."""
    middle = list(range(1, len(plot) - 2))
    while len(middle) + 3 > max(length, 3):
        middle.remove(rng.choice(middle))
    steps = [0, *middle, len(plot) - 2, len(plot) - 1]
    return " ".join(rng.choice(plot[step]) for step in steps).format(**slots)


def tree_story(tree: str, rng: random.Random, length: int = 8) -> str:
    """A story whose hero is a tree."""
    return tell(rng.choice(TREE_PLOTS), rng, length, h=tree, f=rng.choice(FRIENDS), p=rng.choice(PLACES))


def animal_story(animal: str, rng: random.Random, length: int = 8) -> str:
    """A story whose hero is an animal."""
    friend = rng.choice([name for name in FRIENDS if name != animal])
    return tell(rng.choice(ANIMAL_PLOTS), rng, length, h=animal, f=friend, p=rng.choice(PLACES))


def person_story(name: str, rng: random.Random, length: int = 8) -> str:
    """A story whose hero is a child."""
    return tell(rng.choice(PERSON_PLOTS), rng, length, n=name, f=rng.choice(FRIENDS), p=rng.choice(PLACES))
