"""Closed lists of English that the rules stand on; other languages go by capitals and quotes alone.

The lists hold word classes (pronouns, titles, units …), never words of some particular book.
"""

import re
import sys


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION_WORDS = _words(
    """
    a an the this that these those here there such same other others another i me my mine myself
    we us our ours ourselves you your yours yourself yourselves thou thee thy thine he him his
    himself she her hers herself it its itself they them their theirs themselves who whom whose
    which what whatever whichever whoever whomever one ones none someone somebody something
    anyone anybody anything everyone everybody everything nobody nothing each every either
    neither both all any some few many much more most several little less least enough half two
    three four five six seven eight nine ten eleven twelve hundred thousand million first second
    third last next and or but nor so yet for if unless until till since because although though
    while whilst whereas whether than as when whenever where wherever why how however in on at
    by to of from with without within into onto upon over under above below between among
    amongst beside besides before after behind beyond during through throughout toward towards
    against across along around about up down off out near past per via despite except like
    unlike inside outside regarding concerning considering according amid amidst beneath
    underneath am is are was were be been being do does did done doing have has had having can
    could may might must shall should will would ought let lets not no yes yea nay never ever
    always often sometimes usually seldom rarely again also too very quite rather almost nearly
    just only even still already soon now then once twice thus hence therefore moreover
    furthermore nevertheless nonetheless meanwhile otherwise instead indeed perhaps maybe surely
    certainly probably possibly really truly well oh ah alas hush hullo hello hey pray please
    thanks thank goodbye good-bye ay aye today tomorrow yesterday tonight afterwards afterward
    later earlier formerly lately recently eventually finally suddenly presently immediately
    directly at-last further apart aside away back forth together alone both less worse better
    best such-like etc eg ie vs don't doesn't didn't isn't aren't wasn't weren't can't cannot
    couldn't won't wouldn't shan't shouldn't haven't hasn't hadn't mustn't needn't
    whereupon thereupon whereat thereat whereby whereof thereof therein wherein thereby therewith
    wherefore herein hereby hither thither whither thence whence henceforth thenceforth forthwith
    elsewhere somewhere anywhere everywhere nowhere somehow anyhow anyway anyways somewhat twas tis
    twere twill methinks methought verily forsooth lest albeit notwithstanding nonetheless likewise
    similarly additionally ok okay yeah yep yup nope nah wow ooh aw haha lol congrats hi
    whoa ugh woohoo yay
    """
)
"""Words that carry no name and no meaning of their own, at the start of a sentence or elsewhere."""

BARE_OPENERS = _words(
    """
    come go look see listen wait stop stay tell give take let make keep leave put get think
    believe remember forget imagine suppose consider note notice mind follow try turn hold stand
    sit run hear speak say ask answer read write call bring send show find use add set open
    close begin good great bad old new young poor dear sweet little big large small long short
    high low deep happy sad sorry true false right wrong sure certain clear dark light white
    black red green blue brown grey gray yellow golden cold warm hot wet dry hard soft quiet
    silent empty full late early strange nice fine fair pretty beautiful handsome lovely
    terrible horrible awful different similar important modern ancient recent former local
    national international general public private early upper lower north south east west
    northern southern eastern western central morning evening afternoon night midnight noon day
    days week weeks month months year years time times life death love hate hope fear joy grief
    anger silence darkness sleep work money music food water fire wind rain snow smoke dust
    earth sky sun moon stars air ice sea land home school church breakfast dinner supper lunch
    tea coffee wine beer bread meat men man women woman boys boy girls girl children child
    people folk friends friend mother father brother sister aunt uncle son daughter husband wife
    grandmother grandfather parents family papa mamma mama mum mummy mom dad daddy master
    mistress madam sir gentleman gentlemen ladies lady lord lords lordship ladyship majesty
    highness honour excellency captain doctor professor king queen prince princess nature
    history science art law war peace power truth beauty education religion politics business
    trade industry government society language english-speaking part chapter section volume book
    letter page figure table appendix act scene note number item step question answer example
    contents preface introduction conclusion summary index footnote prologue epilogue nonsense
    heavens goodness gracious lo behold farewell welcome amen bravo super traffic blood dawn dusk
    twilight daylight sunlight moonlight sunshine thunder lightning weather heat cold dinner yoga
    painting pottery cooking gardening dancing basketball football soccer tennis chess hiking guitar
    piano laughter injury care change form coverage training practice exercise meditation therapy
    counseling journaling photography fashion design research feedback communication networking
    marketing management support progress success failure pressure stress anxiety energy focus
    balance confidence courage patience trust faith luck fate fortune fame wealth poverty health
    illness disease pain hunger thirst sleep sorrow pity mercy shame guilt pride envy rage despair
    horror terror panic danger trouble evil virtue reason wisdom knowledge memory fancy imagination
    opinion advice news gossip rumour rumor conversation dialogue speech writing reading poetry
    drama theatre theater cinema television radio internet software hardware data code security
    performance testing deployment customer client user team staff labour labor production supply
    demand trade inflation interest debt credit rent income profit loss cost price tax labor oil gas
    coal iron steel gold silver copper wood stone glass paper cloth leather cotton wool silk salt
    sugar rice milk butter cheese chicken beef pork honey garlic cat dog horse baby grandma grandpa
    granny auntie hubby boss neighbour neighbor everyday tradition religion democracy freedom
    liberty justice revenge victory defeat death birth youth age childhood marriage divorce
    """
)
"""Words that often open a sentence, or a line, in capitals without being a name."""

WEEKDAYS = _words("monday tuesday wednesday thursday friday saturday sunday")
MONTHS = _words(
    "january february march april may june july august september october november december"
)
SEASONS = _words("spring summer autumn fall winter christmas easter midsummer michaelmas lent")

MALE_TITLES = _words(
    "mr mr. sir lord master father brother uncle king prince duke baron monsieur emperor abbot"
)
FEMALE_TITLES = _words(
    """
    mrs mrs. miss ms ms. lady madam madame mme mme. mlle mlle. mother sister aunt queen princess
    duchess baroness countess dame empress abbess
    """
)
NEUTRAL_TITLES = _words(
    """
    dr dr. doctor prof prof. professor capt capt. captain col col. colonel gen gen. general maj
    maj. major lt lt. lieutenant sgt sgt. sergeant corporal rev rev. reverend hon hon. admiral
    commander inspector detective constable officer judge justice mayor president senator
    governor minister chancellor ambassador bishop archbishop cardinal pope rabbi deacon count
    earl viscount marquis saint st st. messrs messrs. comrade congressman coach nurse
    """
)
TITLES = MALE_TITLES | FEMALE_TITLES | NEUTRAL_TITLES
PERSON_TITLES = TITLES - _words("st st. saint general gen gen. major justice")
"""Titles after which a name is a person's; the others also open places, saints' days and firms."""

ABBREVIATED_TITLES = _words(
    "Mr Mrs Ms Dr Prof Capt Col Gen Maj Lt Sgt Rev Hon St Messrs Mme Mlle Jr Sr Mt Ft"
)

PARTICLES = _words(
    "de van von der den la le du da di del della des dos el bin ibn al y zu zur ter te"
)
"""Lower-case words inside a personal name."""

OF_HEADS = _words(
    """
    university college school institute academy bank house houses church cathedral abbey king
    queen prince princess duke duchess earl count countess marquis lord lady bishop archbishop
    pope isle island islands bay cape gulf strait straits sea lake mount valley river city town
    county district province state states republic kingdom empire union commonwealth ministry
    department bureau board court council committee commission office order society association
    federation league museum gallery library tower bridge castle palace temple port battle siege
    treaty war wars house knights knight army church book gospel epistle statue arc tomb chamber
    bill declaration duchy emirate sultanate principality free hall head
    """
)
"""A capitalised word before "of" that makes the whole a single name."""

PLACE_HEADS = _words(
    """
    street road avenue lane square boulevard river island islands isle mountain mountains ocean
    sea bay valley county city town village province harbour harbor quay creek desert peninsula
    canyon gulf strait glacier reef lighthouse cove sound archipelago plateau alley terrace
    airport station highway parish
    """
)
PLACE_OPENERS = _words("lake mount mt mt. cape fort ft ft. gulf isle isles river")
ORGANISATION_HEADS = _words(
    """
    company co inc ltd corp corporation university institute association society committee
    council ministry department bureau agency foundation federation bank union party army navy
    orchestra commission authority trust motors electric airlines railways records pictures
    studios league
    """
)
BUILDING_HEADS = _words(
    """
    college school church cathedral abbey hospital hotel inn house hall court castle palace
    tower bridge park theatre theater museum library gallery market chapel head point hill wood
    field garden gardens farm mill mine port gate grove lodge manor arms
    """
)
"""Heads that make a name of "X's Y" but say neither place nor organisation for sure."""

PARTNER_WORDS = _words("sons co co. company brothers partners daughters associates")
SECTION_WORDS = _words(
    "chapter letter volume section part book act scene figure fig table page appendix verse canto"
)

SPEECH_VERBS = _words(
    """
    asked replied cried whispered murmured shouted exclaimed laughed smiled nodded sighed
    muttered answered sobbed shrugged frowned grinned blushed
    """
)
"""Verbs whose subject is a person; "said" and "announced" also go with firms and papers."""

WORK_CUES = _words(
    """
    novel poem song play film movie album book story opera ballad hymn symphony painting picture
    essay series magazine newspaper journal called named titled entitled
    """
)

UNITS = _words(
    """
    metre metres meter meters kilometre kilometres kilometer kilometers km cm mm centimetre
    centimetres mile miles yard yards foot feet inch inches fathom fathoms league leagues knot
    knots acre acres hectare hectares gram grams gramme grammes kilogram kilograms kilo kilos kg
    tonne tonnes ton tons ounce ounces pound pounds stone litre litres liter liters gallon
    gallons pint pints barrel barrels second seconds minute minutes hour hours day days week
    weeks month months year years decade decades century centuries degree degrees percent volt
    volts watt watts kilowatts megawatts mph kph dollar dollars cent cents euro euros penny
    pence shilling shillings guinea guineas crown crowns franc francs mark marks rouble roubles
    rupee rupees yen pesos florins people persons inhabitants men women children soldiers
    passengers members copies votes
    """
)
BIG_NUMBER_WORDS = _words(
    """
    eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty
    forty fifty sixty seventy eighty ninety hundred thousand million billion
    """
)
SMALL_NUMBER_WORDS = _words("one two three four five six seven eight nine ten")

FINITE_VERBS = _words(
    """
    was were is are had has have did does could would will can might must should may shall said
    went came took gave got made saw knew thought told found left felt kept began brought held
    stood heard sat ran wrote met paid led fell lost lay grew drew broke spoke rose drove bought
    built wore sent won threw caught chose ate drank sang taught sold fought slept shook spent
    struck hid cast flew forgot hung swore tore woke became understood meant put set let read cut
    hit shut laid dealt fled rode rang sank shone shot slid stole stuck swept swam wept wound bore
    bent bound fed dug forgave froze leapt lent lit overcame overtook
    """
)
"""Verb forms that end neither in -ed nor in -s and can follow a subject."""


PERSON_VERBS = _words(
    """
    said asked told thought knew felt wanted hoped believed wrote read spoke talked smiled laughed
    walked ran sat stood looked went came took gave brought held laid put married lived died loved
    hated promised agreed refused decided remembered forgot learned explained pointed nodded waited
    worked taught painted sang drank ate slept woke wept wore kissed
    """
)
"""Verbs whose subject is nearly always a person."""

DOES = _words(
    """
    says thinks knows wants likes loves hates lives dies believes hopes sleeps eats drinks sails
    teaches learns studies owns prefers enjoys speaks writes reads visits smiles laughs sings dances
    walks drives swims cooks works wishes plans agrees refuses remembers forgets asks answers
    doesn't
    didn't wasn't isn't hasn't hadn't won't couldn't wouldn't
    """
)
"""The same of today."""


def uppercase_class() -> str:
    """Return the inside of a regex class of all capital letters of the scripts that have case."""
    letters = [
        chr(c) for c in (*range(0x41, 0x2000), *range(0xA640, 0xA800), *range(0xFF21, 0xFF3B))
    ]
    capitals = [c for c in letters if c.isupper() or c.istitle()]
    ranges: list[list[str]] = []
    for letter in capitals:
        if ranges and ord(letter) == ord(ranges[-1][1]) + 1:
            ranges[-1][1] = letter
        else:
            ranges.append([letter, letter])
    return "".join(a if a == b else f"{a}-{b}" for a, b in ranges)


UPPER = sys.intern(uppercase_class())

PLURAL_OR_UNIT = re.compile(r"[a-z]{2,}(?:s|people|men|women|children)\Z")


def bare(word: str) -> str:
    """Return a word as the lists hold it: lower case, no final dot."""
    return word.casefold().rstrip(".")
