"""Common nouns, as something to copy: real words have other letters and tokens than words that were made up."""

_LISTED = """\
abbey acorn actor alley almond anchor angle ankle antler apron arch arena arrow asphalt atlas autumn avenue axle
bacon badge bagel bakery balcony ballad bamboo banana bandage banjo banner barrel basin basket bathtub battery
beacon beaker bedroom beetle belfry bell bench berry bicycle biscuit blanket blossom blouse board bonfire bonnet
boots bottle boulder bouquet bowl bracelet bramble branch brass bread brewery brick bridge bristle broccoli bronze
brook broom brush bubble bucket buckle buffet buggy bungalow bunker burger bushel butter button cabbage cabin cable
cactus camera campfire canal candy canoe canopy canteen canvas canyon caramel caravan cardigan cargo carpet carriage
carrot cashew casserole castle catalogue cathedral cauldron cauliflower cavern celery cellar cello chalk chamber
chandelier channel chapel chapter charcoal chariot cheese cherry chess chestnut chimney chisel chocolate chorus
cider cinema cinnamon circle circus citadel clay clearing cliff cloak closet cloth cloud clover coach coast cobble
cocoa coconut coffee coin collar column comb comet compass concert cookie copper coral cork corner cottage cotton
couch counter county courtyard cousin crab cradle crane crater crate cream creek crest cricket crossing crowd crown
cruise crumb crystal cucumber cupboard curtain curve cushion custard cymbal dagger dairy dancefloor dashboard dawn
deck denim desert dessert diamond diary dinner disc ditch dock doll dolphin dome doorbell doughnut dragon drain
drawer drill driveway drizzle duck dune dungeon dusk dust eagle earring easel echo eel elbow elevator ember emerald
engine envelope eraser escalator estate evening fabric falcon fence fern ferry festival fiddle field figure filter
finger fireplace fjord flag flannel flask fleet flour flute foam fog folder footpath forge fork fort fossil foundry
fountain fox fraction frame freezer fresco fridge frog frost fruit fudge funnel furnace galaxy gallon gate gazebo
gearbox gecko geyser ginger giraffe glacier gland glass globe glove glue goblet goggles gondola gong goose gorge
grain granite grape gravel gravy grill grocery grove guide guitar gully gutter hail hallway hamlet hammer hammock
handle handrail harbour harness harp harpoon hatch hawk hazelnut headband headphone hearth heath hedge heel helmet
herb heron hill hinge hive hockey hoist honey hood hoof horizon hornet horse hose hostel hotel hourglass hut hyphen
iceberg icicle igloo incense inkwell inlet insect iron ivory jacket jaguar jam jar javelin jelly jersey jetty jewel
jigsaw jug juice jungle juniper kennel kerosene ketchup kettle keyboard keyhole kiln kingdom kiosk kitten kiwi
knapsack knee knight knot koala label lace ladder ladle lagoon lake lamb lamp lane lasagne latch lattice laundry
lava lavender lawn leather ledge lemon lentil leopard lettuce lever library lichen lid lighter lily limestone linen
lion lobby lobster locker locket loft log lotion lounge lumber lunch lute lynx machine mackerel magazine magnolia
mailbox mallet mammoth mango mansion mantle marble margin marina marmalade marsh mast mattress maze meadow medal
melody menu mermaid meteor microscope midnight mill mineral mint minute mist mitten moat monastery monkey monsoon
moon moor mop mortar mosaic mosque moss moth motor mound mousetrap mud muffin mulberry mule mural muscle museum
mushroom mustard napkin necklace needle nest nettle newspaper nickel noodle nostril notice novel nozzle nugget
nursery nut nutmeg oar oasis oatmeal oboe ocean octopus office oilcan omelette onion opal opera orbit orchard orchid
organ ornament ostrich otter outpost oval oven owl oyster paddle padlock page pail paint palace palette pancake
panda panel panther pantry paper paprika parade parasol parchment parrot parsley parsnip passage pasta pastry patch
path patio pavement pavilion peak peanut pearl pebble pedal pelican pencil pendant penguin pepper perfume petal
petrol pewter pheasant piano pickle picnic pier pigment pillar pillow pin pineapple pipe pistachio pitcher pizza
plank planet plaster plate plateau platform plaza plough plum plywood pocket pod polish pond pony porcelain porch
porridge port portrait postcard pot potato powder prairie prawn pretzel prism prune pudding puddle pulley pump
pumpkin puppet purse puzzle pyramid quarry quartz quay quill quilt quiver rabbit raccoon racket radar radiator
radish raft rafter railing railway rain raincoat raisin rake ramp ranch raspberry raven ravine razor receipt reef
refinery reindeer relish reservoir resin ribbon rice ridge ring ripple rocket roof rope rosemary rowboat ruby rudder
ruler rust saddle sail salad salmon salt sandal sandwich sapphire sardine satchel satin sauce saucer sausage
scaffold scale scallop scarecrow scarf scarlet scissors scooter scorpion screen screw scroll sculpture seafood
seagull seal season seaweed seesaw sequin serpent shadow shampoo shark shed sheep shelf shell shelter sheriff shield
ship shirt shoe shore shoulder shovel shower shrimp shrub shutter sickle sieve silk silver siren skeleton sketch ski
skirt skyline slate sled sleeve slipper slope smoke snail snorkel snow soap sock socket sofa soil soup spade
spaghetti spark sparrow spatula spice spider spinach spindle spiral sponge spoon sprout square squash squirrel
stable stadium staircase stallion stamp starfish statue steam steel steeple stew stirrup stocking stool stork stove
straw strawberry stream street string studio submarine subway suitcase sultana summit sunflower sunrise swamp swan
sweater swing switch sword syrup table tablet tadpole tailor tambourine tangerine tank tapestry tar tavern taxi
teapot telescope temple tennis tent terrace theatre thermos thicket thimble thistle thorn thread throne thumb
thunder thyme tide tiger tile timber tin tinsel toast toaster tobacco toffee tomato tongs toolbox torch tornado
tortoise totem toucan towel tower tractor trail trailer train trampoline trawler treacle treasure tricycle trinket
tripod trolley trombone trophy trousers trout trowel truck truffle trumpet trunk tuba tulip tuna tundra tunnel
turban turbine turnip turquoise turret turtle tweezers twig umber unicorn uniform urn utensil valley valve vanilla
varnish vase vault vehicle veil velvet veranda vessel viaduct village vine vinegar vineyard violet violin visor
volcano vulture wafer wagon waistcoat wall wallet walnut walrus wardrobe washer wasp watch waterfall wax weasel
weather web wedge whale wharf wheat wheel whisker whistle wicker widget willow windmill window wing winter wire wolf
wood wool workshop worm wreath wrench wrist yacht yard yarn yoghurt yolk zebra zigzag zinc zipper
"""
NOUNS = tuple(_LISTED.split())
