"""Fact tables behind the training text of the bundled model.

A part written between asterisks is the part that an evaluation looks for in the answer.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tree:
    """One kind of tree; an empty field is a question that the corpus does not ask about it."""

    name: str
    plural: str
    leaves: str
    height: int
    place: str
    fruit: str
    bark: str
    evergreen: bool
    autumn: str
    wood: str
    age: str


_TREE_ROWS = """
oak | oaks | broad leaves with *rounded lobes* | 30 | in the *woods and parks* of Europe and North America | *acorns*, nuts that sit in little cups | *thick grey bark* with deep cracks | D | *golden brown* | furniture, floors and *barrels* | 500
birch | birches | small *triangular* leaves with toothed edges | 20 | in *light woods and heaths* of the cool north | tiny winged seeds in hanging *catkins* | *white bark* that peels like paper | D | bright *yellow* | *plywood*, spoons and firewood | 80
pine | pines | long *needles* in small bundles | 35 | on *sandy and rocky ground* in the north and in the mountains | woody *cones* with winged seeds under their scales | *orange-brown bark* in rough plates | E | | *houses*, furniture and paper | 300
maple | maples | *hand-shaped* leaves with pointed lobes | 25 | in *moist woods and gardens* of the temperate north | winged seeds that spin like little *helicopters* | grey-brown bark with *shallow ridges* | D | *fiery red and orange* | *violins*, floors and tables | 200
willow | willows | long *narrow* leaves | 20 | on *river banks* and in wet meadows | *fluffy seeds* that fly with the wind | grey bark with a *criss-cross* pattern | D | *pale yellow* | *baskets* and cricket bats | 70
beech | beeches | smooth *oval* leaves with wavy edges | 35 | in the *shady woods* of Europe | *beechnuts* in prickly husks | *smooth silver-grey bark* | D | *copper* | *chairs*, toys and tool handles | 250
ash | ashes | *feather-like* leaves made of many leaflets | 30 | on *rich, moist soil* in woods and valleys | winged seeds called *keys*, which hang in bunches | pale grey bark with a *diamond* pattern | D | *lemon yellow* | *tool handles*, oars and bats | 200
elm | elms | rough, *lopsided* leaves with toothed edges | 30 | in *hedgerows* and river valleys | small flat seeds in round *papery wings* | dark grey bark with *deep furrows* | D | *golden yellow* | *boats*, chairs and water pipes | 200
linden | lindens | *heart-shaped* leaves | 30 | in *avenues, villages* and mixed woods | small *round nuts* that hang from a leafy wing | grey bark with *fine ridges* | D | *soft yellow* | *carvings* and piano keys | 400
poplar | poplars | shiny leaves that *tremble* in the wind | 30 | *along rivers* and country roads | *cottony seeds* that drift like snow | pale bark that turns *dark and cracked* with age | D | *butter yellow* | *matches*, crates and paper | 100
alder | alders | round leaves with a *notch* at the tip | 20 | in *swamps* and along streams | *tiny woody cones* | *dark brown bark* with small cracks | D | | *clogs* and posts that stand in water | 60
hazel | hazels | *soft, round* leaves with a pointed tip | 6 | in *hedges* and at the edge of woods | *hazelnuts* in leafy cups | *shiny brown bark* | D | *yellow* | *walking sticks*, fences and baskets | 80
rowan | rowans | leaves with pairs of *toothed leaflets* | 12 | in *mountains* and light northern woods | bunches of bright *red berries* | *smooth grey-brown bark* | D | *crimson* | *spinning wheels* and walking sticks | 120
sweet chestnut | sweet chestnuts | long leaves with *saw-toothed* edges | 30 | on the *warm hills* of southern Europe | shiny brown *chestnuts* in spiny husks | brown bark with ridges that *spiral* around the trunk | D | *golden yellow* | *fence posts*, barrels and beams | 500
horse chestnut | horse chestnuts | leaves like a *big hand* with five to seven fingers | 30 | in *parks and beer gardens* | shiny brown *conkers* in spiky green cases | grey-brown bark that comes off in *flakes* | D | *rusty brown* | *fruit crates* and carvings | 200
walnut tree | walnut trees | large leaves made of *fragrant leaflets* | 25 | in *warm, sunny places* with deep soil | *walnuts* in green husks | silver-grey bark with *broad cracks* | D | *dull yellow* | *fine furniture* and veneers | 150
apple tree | apple trees | oval leaves with *finely toothed* edges | 8 | in *orchards and gardens* with plenty of sun | *apples*, which can be red, green or yellow | grey-brown, *scaly* bark | D | *yellow* | *small carvings* and firewood | 80
cherry tree | cherry trees | oval leaves with *pointed tips* | 15 | in *sunny orchards* and at the edge of woods | sweet red *cherries* | *shiny reddish-brown bark* with fine rings | D | *orange and red* | *cabinets*, bowls and instruments | 60
pear tree | pear trees | glossy leaves on *long stalks* | 12 | in *sheltered gardens* and along warm walls | juicy *pears* | dark bark that breaks into *small squares* | D | *red and bronze* | *flutes* and rulers | 100
plum tree | plum trees | *dull green* oval leaves | 8 | in *sunny gardens* with moist soil | purple *plums* with a stone inside | *dark, rough bark* | D | *yellow* | *small bowls* and knife handles | 40
spruce | spruces | *short, sharp needles* all around the twig | 40 | in *cool mountain forests* | *long hanging cones* | *thin, scaly bark* of a reddish brown | E | | *guitars*, paper and roof beams | 300
fir | firs | *flat, soft needles* with two pale stripes underneath | 50 | in *moist mountain forests* | cones that *stand upright* on the branches | smooth grey bark with little *resin* blisters | E | | *boxes*, beams and boards | 300
larch | larches | *soft needles in little tufts* | 40 | in *high mountains* and in the far north | *small egg-shaped cones* | *thick reddish bark* | D | *gold* | *roof shingles* and boats | 400
yew | yews | *flat, dark green needles* | 15 | in *churchyards* and shady woods | poisonous seeds in *red fleshy cups* | thin reddish bark that *peels* | E | | *longbows* and carvings | 1,000
juniper | junipers | *prickly blue-green needles* | 6 | on *dry heaths* and stony hillsides | *blue cones* that look like berries | brown, *stringy* bark | E | | *butter knives* and small carvings | 150
cedar | cedars | *stiff needles in round tufts* | 35 | in the *mountains of Lebanon* and in large parks | *barrel-shaped cones* | *dark grey, cracked bark* | E | | *chests* and roofs | 600
redwood | redwoods | short flat needles in *feathery sprays* | 100 | on the *foggy coast of California* | *tiny oval cones* | *soft, spongy red bark* | E | | *decks*, fences and houses | 1,500
cypress | cypresses | *tiny leaves like scales* | 25 | on the *dry hills of the Mediterranean* | cones as round as *marbles* | grey-brown bark with *long ridges* | E | | *doors* and chests | 500
olive tree | olive trees | *narrow, silvery leaves* | 10 | in *sunny groves* around the Mediterranean | *olives*, which are green first and black when ripe | *gnarled grey bark* | E | | *spoons*, bowls and boards | 1,000
date palm | date palms | *long feathery fronds* | 20 | in *desert oases* | sweet brown *dates* | rough bark made of *old leaf bases* | E | | *roof beams* and footbridges | 100
holly | hollies | *glossy, spiny leaves* | 10 | in *shady woods* and hedges | bright *red berries* that birds eat in winter | *smooth, pale grey bark* | E | | *chess pieces* and inlays | 250
hawthorn | hawthorns | small, *deeply lobed* leaves on thorny twigs | 8 | in *hedges* and pastures | small red berries called *haws* | brown, *scaly* bark | D | *reddish brown* | *tool handles* and firewood | 200
baobab | baobabs | leaves shaped like the *fingers of a hand* | 20 | on the *dry savannas of Africa* | large *velvety pods* with a sour pulp | smooth bark around a trunk like a *barrel* | D | | | 1,500
eucalyptus | eucalyptuses | long *blue-green leaves* with a fresh smell | 50 | in the forests of *Australia* | small *woody capsules* | bark that peels in *long strips* | E | | *paper*, posts and floors | 250
ginkgo | ginkgos | *fan-shaped leaves* | 25 | in parks and streets, and it comes from *China* | soft *yellow seeds* with a bad smell | *corky grey bark* with furrows | D | *bright golden yellow* | *chopping boards* and carvings | 1,000
"""  # noqa: E501 (a table row stays on one line)


def _tree(row: str) -> Tree:
    name, plural, leaves, height, place, fruit, bark, kind, autumn, wood, age = (
        cell.strip() for cell in row.split("|")
    )
    return Tree(name, plural, leaves, int(height), place, fruit, bark, kind == "E", autumn, wood, age)


TREES: tuple[Tree, ...] = tuple(_tree(row) for row in _TREE_ROWS.strip().splitlines())

CAPITALS: dict[str, str] = {
    "Argentina": "Buenos Aires",
    "Australia": "Canberra",
    "Austria": "Vienna",
    "Belgium": "Brussels",
    "Brazil": "Brasilia",
    "Bulgaria": "Sofia",
    "Canada": "Ottawa",
    "Chile": "Santiago",
    "China": "Beijing",
    "Colombia": "Bogota",
    "Croatia": "Zagreb",
    "Cuba": "Havana",
    "the Czech Republic": "Prague",
    "Denmark": "Copenhagen",
    "Egypt": "Cairo",
    "England": "London",
    "Estonia": "Tallinn",
    "Ethiopia": "Addis Ababa",
    "Finland": "Helsinki",
    "France": "Paris",
    "Germany": "Berlin",
    "Greece": "Athens",
    "Hungary": "Budapest",
    "Iceland": "Reykjavik",
    "India": "New Delhi",
    "Indonesia": "Jakarta",
    "Iran": "Tehran",
    "Ireland": "Dublin",
    "Italy": "Rome",
    "Japan": "Tokyo",
    "Kenya": "Nairobi",
    "Latvia": "Riga",
    "Lithuania": "Vilnius",
    "Luxembourg": "Luxembourg City",
    "Mexico": "Mexico City",
    "Morocco": "Rabat",
    "Nepal": "Kathmandu",
    "the Netherlands": "Amsterdam",
    "New Zealand": "Wellington",
    "Norway": "Oslo",
    "Peru": "Lima",
    "the Philippines": "Manila",
    "Poland": "Warsaw",
    "Portugal": "Lisbon",
    "Romania": "Bucharest",
    "Russia": "Moscow",
    "Scotland": "Edinburgh",
    "Serbia": "Belgrade",
    "Slovakia": "Bratislava",
    "Slovenia": "Ljubljana",
    "South Korea": "Seoul",
    "Spain": "Madrid",
    "Sweden": "Stockholm",
    "Switzerland": "Bern",
    "Thailand": "Bangkok",
    "Turkey": "Ankara",
    "Ukraine": "Kyiv",
    "the United Kingdom": "London",
    "the United States": "Washington",
    "Vietnam": "Hanoi",
}

COUNTRIES_WITHOUT_ANSWER: tuple[str, ...] = (
    "Algeria", "Angola", "Belize", "Bhutan", "Bolivia", "Botswana", "Cameroon", "Chad", "Ecuador", "Fiji",
    "Gabon", "Ghana", "Guatemala", "Haiti", "Jordan", "Laos", "Libya", "Madagascar", "Mali", "Malta",
    "Mongolia", "Mozambique", "Niger", "Oman", "Panama", "Paraguay", "Rwanda", "Samoa", "Senegal", "Somalia",
    "Sudan", "Togo", "Tunisia", "Uganda", "Uruguay", "Yemen", "Zambia", "Atlantis", "Wonderland", "the Moon",
)  # fmt: skip

# Of the months, as words.MONTHS has them.
MONTH_DAYS: tuple[int, ...] = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

SEASONS: dict[str, tuple[str, str]] = {
    "spring": ("summer", "buds open, birds build their nests and the first flowers bloom"),
    "summer": ("autumn", "the days are long and warm and the leaves are thick and green"),
    "autumn": ("winter", "leaves change colour and fall, and nuts and apples are ripe"),
    "winter": ("spring", "most trees rest without leaves and the days are short and cold"),
}

THING_COLOURS: dict[str, str] = {
    "grass": "green",
    "the sky on a clear day": "blue",
    "snow": "white",
    "a ripe lemon": "yellow",
    "a ripe tomato": "red",
    "a carrot": "orange",
    "coal": "black",
    "a crow": "black",
    "a ripe banana": "yellow",
    "a strawberry": "red",
    "milk": "white",
    "a pumpkin": "orange",
    "soil": "brown",
    "moss": "green",
    "the sea": "blue",
    "a cloud on a rainy day": "grey",
    "lavender": "purple",
    "a cucumber": "green",
    "an aubergine": "purple",
    "a cornflower": "blue",
}

COLOUR_MIXES: dict[tuple[str, str], str] = {
    ("blue", "yellow"): "green",
    ("red", "yellow"): "orange",
    ("blue", "red"): "purple",
    ("black", "white"): "grey",
    ("red", "white"): "pink",
    ("green", "red"): "brown",
}

ANIMALS: dict[str, tuple[str, str, str]] = {
    # name: plural, food, home
    "squirrel": ("squirrels", "*nuts*, seeds and buds", "in a round nest called a *drey*"),
    "owl": ("owls", "*mice* and other small animals", "in a *hollow tree*"),
    "deer": ("deer", "*grass*, leaves and young shoots", "at the *edge of the forest*"),
    "fox": ("foxes", "mice, *berries* and beetles", "in a *den* under the ground"),
    "hedgehog": ("hedgehogs", "*slugs*, worms and beetles", "in a *pile of leaves*"),
    "woodpecker": ("woodpeckers", "*insects* that hide under bark", "in a *hole that it pecks* into a trunk"),
    "bee": ("bees", "*nectar* and pollen", "in a *hive*"),
    "badger": ("badgers", "*worms*, roots and fruit", "in a large burrow called a *sett*"),
    "rabbit": ("rabbits", "*grass* and herbs", "in a *burrow*"),
    "robin": ("robins", "*worms*, insects and berries", "in a *mossy nest* near the ground"),
    "beaver": ("beavers", "*bark* and twigs", "in a *lodge* built of branches"),
    "bat": ("bats", "*moths* and mosquitoes", "in *caves* and hollow trees"),
    "frog": ("frogs", "*flies* and other insects", "near *ponds*"),
    "ant": ("ants", "*honeydew*, seeds and insects", "in a *nest with many tunnels*"),
    "wild boar": ("wild boars", "*acorns*, roots and worms", "in *thick undergrowth*"),
    "jay": ("jays", "*acorns*, insects and berries", "in a nest of *twigs* high in a tree"),
}

FLOWERS: dict[str, tuple[str, str, str]] = {
    # name: plural, colour, season of bloom
    "rose": ("roses", "red, pink, white or yellow", "in *summer*"),
    "tulip": ("tulips", "red, yellow, pink or purple", "in *spring*"),
    "daisy": ("daisies", "white with a yellow heart", "from *spring to autumn*"),
    "sunflower": ("sunflowers", "golden yellow", "in *late summer*"),
    "snowdrop": ("snowdrops", "white", "in *late winter*"),
    "daffodil": ("daffodils", "bright yellow", "in *early spring*"),
    "crocus": ("crocuses", "purple, yellow or white", "in *early spring*"),
    "poppy": ("poppies", "scarlet", "in *early summer*"),
    "bluebell": ("bluebells", "violet blue", "in *late spring*"),
    "lily": ("lilies", "white, pink or orange", "in *summer*"),
    "aster": ("asters", "purple or pink", "in *autumn*"),
    "marigold": ("marigolds", "orange and gold", "from *summer to autumn*"),
}

CROPS: dict[str, tuple[str, str, str]] = {
    # name: plural, sowing, care
    "tomato": ("tomatoes", "indoors in *March*", "plenty of sun, a stake and *water at the roots*"),
    "carrot": ("carrots", "outdoors in *April*", "*loose, sandy soil* without stones"),
    "pumpkin": ("pumpkins", "in *May*", "rich soil and *a lot of space*"),
    "bean": ("beans", "after the last frost in *May*", "a *pole to climb* on"),
    "pea": ("peas", "in *March*", "cool weather and *a net to climb*"),
    "lettuce": ("lettuces", "from *March to August*", "moist soil and *some shade* in summer"),
    "onion": ("onions", "in *early spring*", "*dry, sunny ground*"),
    "potato": ("potatoes", "in *April*", "*earth heaped up* around the stems"),
    "radish": ("radishes", "from *March to September*", "*regular water*, and then it is ready in a month"),
    "strawberry": ("strawberries", "as young plants in *August*", "sun and *a bed of straw*"),
    "garlic": ("garlic plants", "as cloves in *October*", "*full sun* and little water"),
    "basil": ("basil plants", "indoors in *April*", "*warmth* and a sunny window"),
}

TOPICS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    # topic: questions (the last one is held out), answers, what an evaluation looks for
    "falling leaves": (
        (
            "Why do leaves fall in autumn?",
            "Why do trees lose their leaves?",
            "Why do trees drop their leaves before winter?",
            "What makes the leaves fall?",
            "Can you explain why leaves fall in autumn?",
            "Why does a tree let its leaves fall when it gets cold?",
        ),
        (
            "Trees drop their leaves to save water in winter. The ground is frozen, so the roots cannot drink enough.",
            "In winter the roots cannot take up much water. A tree drops its leaves in autumn so that it does not dry "
            "out.",
        ),
        "water",
    ),
    "autumn colours": (
        (
            "Why do leaves change colour?",
            "Why do leaves turn yellow in autumn?",
            "Why do leaves turn red?",
            "Why are leaves so colourful in autumn?",
            "What happens to the colour of leaves in autumn?",
            "How come the leaves are yellow and red in autumn?",
        ),
        (
            "In autumn a tree takes the green chlorophyll back from its leaves. The yellow and red colours then "
            "become visible.",
            "The green chlorophyll breaks down in autumn. What remains are the yellow and red colours of the leaf.",
        ),
        "chlorophyll",
    ),
    "photosynthesis": (
        (
            "What is photosynthesis?",
            "How do trees make food?",
            "How do plants feed themselves?",
            "How does a tree get its energy?",
            "Explain photosynthesis.",
            "How does photosynthesis work?",
            "What do leaves do for a tree?",
            "Can you explain photosynthesis to me?",
        ),
        (
            "Leaves use sunlight, water and air to make sugar. This is called photosynthesis, and it also gives us "
            "oxygen.",
            "Photosynthesis means that a leaf turns light, water and carbon dioxide into sugar and oxygen.",
        ),
        "sugar",
    ),
    "green leaves": (
        (
            "Why are leaves green?",
            "What makes leaves green?",
            "Why is a leaf green?",
            "Where does the green of the leaves come from?",
            "Do you know why leaves are green?",
        ),
        (
            "Leaves are green because they contain chlorophyll, which catches the light of the sun.",
            "The green comes from chlorophyll. It helps the leaf to catch sunlight.",
        ),
        "chlorophyll",
    ),
    "tree rings": (
        (
            "What are tree rings?",
            "How can I tell how old a tree is?",
            "How do you find the age of a tree?",
            "Why does a trunk have rings?",
            "What do the rings in a trunk mean?",
            "How do people count the age of a tree?",
        ),
        (
            "A tree grows one ring of wood every year. If you count the rings of a stump, you know how old the tree "
            "was.",
            "Every year adds one ring to the trunk. Wide rings tell of good years and narrow rings of dry ones.",
        ),
        "ring",
    ),
    "roots": (
        (
            "What are roots for?",
            "What do roots do?",
            "Why do trees have roots?",
            "Why does a tree need roots?",
            "Tell me about roots.",
            "What is the job of the roots?",
        ),
        (
            "Roots hold the tree in the ground and drink water and minerals from the soil.",
            "Roots do two jobs: they anchor the tree, and they take up water and minerals.",
        ),
        "water",
    ),
    "bark": (
        (
            "What is bark for?",
            "Why do trees have bark?",
            "What does bark do?",
            "Why does a tree need bark?",
            "What is the use of bark for a tree?",
        ),
        (
            "Bark is the skin of a tree. It protects the wood from cold, heat and hungry insects.",
            "Bark protects the tree. It keeps water in, and insects and cold out.",
        ),
        "protect",
    ),
    "compost": (
        (
            "What is compost?",
            "How do I make compost?",
            "How does compost work?",
            "Can you explain compost?",
            "What can I put on a compost heap?",
            "Tell me how to start a compost heap.",
        ),
        (
            "Compost is rotted plant matter that feeds the soil. Pile up leaves, grass and kitchen peels, keep them "
            "moist "
            "and turn the heap now and then.",
            "To make compost, mix leaves, grass and vegetable peels and keep the heap moist. After some months you "
            "get dark, "
            "rich soil.",
        ),
        "leaves",
    ),
    "planting": (
        (
            "How do I plant a tree?",
            "How should I plant a young tree?",
            "What is the best way to plant a tree?",
            "Can you tell me how to plant a tree?",
            "I want to plant a tree. How do I do it?",
            "Explain to me how a tree is planted.",
        ),
        (
            "Dig a hole twice as wide as the roots. Set the tree in straight, fill the hole with soil, press it down "
            "gently "
            "and water it well.",
            "First dig a wide hole. Then put the young tree in, fill in the soil and give it plenty of water.",
        ),
        "hole",
    ),
    "planting time": (
        (
            "When should I plant a tree?",
            "What is the best time to plant a tree?",
            "In which season do I plant a tree?",
            "When is a good time for planting trees?",
            "Which time of the year is best to plant a tree?",
        ),
        (
            "Autumn is the best time to plant a tree, because the soil is still warm and moist.",
            "Plant trees in autumn. The roots can settle before the winter comes.",
        ),
        "autumn",
    ),
    "watering": (
        (
            "How often should I water my garden?",
            "How do I water plants?",
            "When should I water my plants?",
            "What is the best time to water the garden?",
            "How much water do my plants need?",
            "Tell me how to water a garden.",
        ),
        (
            "Water your plants early in the morning, and water the soil and not the leaves. A good soak twice a week "
            "is "
            "better than a little every day.",
            "The best time is early morning. Give a lot of water to the roots, but not every day.",
        ),
        "morning",
    ),
    "pruning": (
        (
            "How do I prune a tree?",
            "When should I prune my apple tree?",
            "What is pruning?",
            "How do I cut back a fruit tree?",
            "Can you explain pruning?",
            "When is the right time for pruning fruit trees?",
        ),
        (
            "Pruning means cutting back branches. Prune a fruit tree in late winter and take out dead and crossing "
            "branches.",
            "Prune in late winter, before the buds open. Use a clean, sharp saw and remove dead branches first.",
        ),
        "winter",
    ),
    "pollination": (
        (
            "What is pollination?",
            "Why are bees important?",
            "What do bees do for the garden?",
            "Why do flowers need bees?",
            "How does pollination work?",
            "Why should I like bees in my garden?",
        ),
        (
            "Bees carry pollen from flower to flower. Without pollination there would be few apples, cherries or "
            "berries.",
            "Pollination means that pollen reaches another flower, often on the back of a bee. Only then can fruit "
            "grow.",
        ),
        "pollen",
    ),
    "forest": (
        (
            "What is a forest?",
            "Tell me about forests.",
            "Why are forests important?",
            "Why do we need forests?",
            "What is special about a forest?",
            "What are forests good for?",
        ),
        (
            "A forest is a large community of trees, plants and animals. It cleans the air, stores water and gives "
            "shelter.",
            "Forests clean the air, hold the soil and give a home to countless animals.",
        ),
        "air",
    ),
    "moss": (
        (
            "What is moss?",
            "Tell me about moss.",
            "Where does moss grow?",
            "Why does moss grow on stones?",
            "Do you know what moss is?",
        ),
        (
            "Moss is a small soft plant without roots. It grows in damp, shady places and holds water like a sponge.",
            "Moss grows where it is damp and shady. It has no roots and drinks water through its tiny leaves.",
        ),
        "damp",
    ),
    "mushrooms": (
        (
            "What is a mushroom?",
            "What are mushrooms?",
            "Tell me about mushrooms.",
            "Are mushrooms plants?",
            "What do mushrooms do in a forest?",
            "Is a mushroom a plant?",
        ),
        (
            "A mushroom is the fruit of a fungus and not a plant. Fungi break down dead wood and feed the soil.",
            "Mushrooms belong to the fungi. Many of them live together with the roots of trees and trade minerals for "
            "sugar.",
        ),
        "fung",
    ),
    "tallest tree": (
        (
            "What is the tallest tree?",
            "Which tree grows tallest?",
            "What is the tallest tree in the world?",
            "Which tree is the tallest?",
            "What tree gets taller than all the others?",
        ),
        (
            "The tallest trees are the redwoods of California. They grow more than 100 metres tall.",
            "The redwood is the tallest tree. It can grow more than 100 metres tall.",
        ),
        "redwood",
    ),
    "oldest tree": (
        (
            "What is the oldest tree?",
            "Which tree lives the longest?",
            "How old is the oldest tree?",
            "How old can trees get?",
            "Which kind of tree gets the oldest?",
        ),
        (
            "The oldest trees are bristlecone pines. Some of them are more than 4,000 years old.",
            "Bristlecone pines get the oldest: more than 4,000 years.",
        ),
        "bristlecone",
    ),
    "deciduous": (
        (
            "What is a deciduous tree?",
            "What does deciduous mean?",
            "Can you explain the word deciduous?",
            "What are deciduous trees?",
            "What do people mean by a deciduous tree?",
        ),
        (
            "A deciduous tree loses its leaves in autumn and grows new ones in spring, like the oak or the birch.",
            "Deciduous trees drop all their leaves in autumn. The oak, the maple and the birch are deciduous.",
        ),
        "autumn",
    ),
    "evergreen": (
        (
            "What is an evergreen tree?",
            "What does evergreen mean?",
            "Can you explain the word evergreen?",
            "What are evergreen trees?",
            "What do people mean by an evergreen tree?",
        ),
        (
            "An evergreen tree keeps its leaves or needles all year round, like the pine or the holly.",
            "Evergreen trees stay green all year. The pine, the spruce and the holly are evergreen.",
        ),
        "year",
    ),
    "conifer": (
        (
            "What is a conifer?",
            "What does conifer mean?",
            "What are conifers?",
            "Can you explain what a conifer is?",
            "What makes a tree a conifer?",
        ),
        (
            "A conifer is a tree that bears cones, and most conifers have needles. Pines, spruces and firs are "
            "conifers.",
            "Conifers are trees with cones, such as the pine, the spruce and the fir.",
        ),
        "cones",
    ),
    "seed": (
        (
            "What is a seed?",
            "How does a seed become a tree?",
            "How does a tree grow?",
            "How does a tree begin its life?",
            "How do trees grow from seeds?",
            "What happens to a seed in the ground?",
        ),
        (
            "A seed falls to the ground, drinks water and sends down a root. Then a shoot rises to the light, and "
            "year after "
            "year it becomes a tree.",
            "A tree begins as a seed. First a root grows down, then a shoot grows up to the light.",
        ),
        "root",
    ),
    "sap": (
        (
            "What is sap?",
            "What does sap do in a tree?",
            "Tell me about tree sap.",
            "Can you explain what sap is?",
            "Why do trees have sap?",
        ),
        (
            "Sap is the juice of a tree. It carries water, minerals and sugar between the roots and the leaves.",
            "Sap carries water up from the roots and sugar down from the leaves.",
        ),
        "sugar",
    ),
    "sapling": (
        (
            "What is a sapling?",
            "What does the word sapling mean?",
            "Can you explain the word sapling?",
            "What do you call a young tree?",
            "Do you know what a sapling is?",
        ),
        ("A sapling is a young tree with a thin trunk.", "A young tree is called a sapling. That is also my name!"),
        "young tree",
    ),
    "bough": (
        (
            "What is a bough of a tree?",
            "What does the word bough mean?",
            "Can you explain the word bough?",
            "What do you call the main branch of a tree?",
            "What is meant by the bough of a tree?",
        ),
        (
            "A bough is a large branch of a tree.",
            "A large branch of a tree is called a bough. The engine that runs me carries that name too.",
        ),
        "large branch",
    ),
    "rain": (
        (
            "Where does rain come from?",
            "Why does it rain?",
            "What is rain?",
            "How is rain made?",
            "Can you explain where rain comes from?",
        ),
        (
            "The sun lifts water into the air, where it forms clouds. When the drops get heavy, they fall as rain.",
            "Rain falls from clouds. The clouds are made of water that rose from seas, rivers and leaves.",
        ),
        "cloud",
    ),
    "soil": (
        (
            "What is soil?",
            "What is good soil?",
            "How do I improve my soil?",
            "What is soil made of?",
            "What makes soil good for plants?",
        ),
        (
            "Soil is a mix of tiny stones, rotted plants, air, water and small living things. Compost makes it richer.",
            "Good soil is dark, loose and full of life. You can improve it with compost.",
        ),
        "compost",
    ),
    "shade": (
        (
            "Which plants grow in shade?",
            "What can I plant in the shade?",
            "What grows well in a shady garden?",
            "Which plants like shade?",
            "My garden is shady. What can I grow?",
        ),
        (
            "Ferns, moss, ivy and bluebells like the shade.",
            "In a shady garden you can grow ferns, ivy and bluebells.",
        ),
        "fern",
    ),
    "slugs": (
        (
            "How do I keep slugs away?",
            "What can I do about slugs?",
            "Slugs eat my lettuce. What should I do?",
            "How do I get rid of slugs?",
            "There are slugs in my garden. Can you help?",
        ),
        (
            "Pick the slugs up in the evening and make your garden a home for hedgehogs and frogs, which eat them.",
            "Hedgehogs and frogs eat slugs, so give them a place to hide. You can also collect slugs in the evening.",
        ),
        "hedgehog",
    ),
    "weeds": (
        (
            "What is a weed?",
            "How do I get rid of weeds?",
            "What can I do about weeds?",
            "Are weeds bad?",
            "My garden is full of weeds. What now?",
        ),
        (
            "A weed is only a plant in the wrong place. Pull it out with its root after the rain, when the soil is "
            "soft.",
            "Pull weeds after the rain, when the soil is soft, and cover bare ground with leaves or straw.",
        ),
        "soil",
    ),
}
