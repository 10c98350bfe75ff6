"""Honorifics before a name, and what they say about the person: enough to keep two people apart."""

from collections.abc import Sequence
from functools import lru_cache


def word_set(words: str) -> frozenset[str]:
    """Return words that white space divides."""
    return frozenset(words.split())


SPELLINGS = {
    "mister": "mr",
    "doctor": "dr",
    "professor": "prof",
    "captain": "capt",
    "colonel": "col",
    "general": "gen",
    "lieutenant": "lt",
    "lieut": "lt",
    "sergeant": "sgt",
    "major": "maj",
    "reverend": "rev",
    "revd": "rev",
    "senator": "sen",
    "governor": "gov",
    "saint": "st",
    "ste": "st",
    "madame": "mme",
    "mademoiselle": "mlle",
    "señor": "sr",
    "señora": "sra",
    "missus": "mrs",
}
"""Spelled-out honorifics and the short form by which they are compared."""

_MEN = """
mr sir lord king prince duke earl count viscount baron marquess marquis emperor tsar sultan father
brother uncle grandfather grandpa master monsieur herr sr fr abbot
"""
_WOMEN = """
mrs ms miss lady dame queen princess duchess countess viscountess baroness marchioness empress
tsarina sultana mother sister aunt grandmother grandma mme mlle madam frau sra abbess
"""
_EITHER = """
dr prof capt col gen lt sgt maj cpl pvt adm commander commodore cmdr inspector constable detective
officer judge justice rev pastor bishop archbishop cardinal pope rabbi imam sen gov president
chancellor minister secretary mayor chief coach st hon
"""
MEN = word_set(_MEN)
WOMEN = word_set(_WOMEN)
TITLES = MEN | WOMEN | word_set(_EITHER)
"""Honorifics, in the form by which they are compared."""

COURTESY = word_set("m mr mrs ms miss monsieur mme mlle sr sra herr frau sir dr prof madam")
"""Titles that one person may bear beside another of these; they say nothing of rank."""

BEFORE_GIVEN = word_set(
    """
    sir lady lord dame king queen prince princess emperor empress pope st brother sister father
    mother uncle aunt miss master fr abbot abbess
    """
)
"""Titles that may stand before a given name alone; all others stand before a surname."""

_MENS_NAMES = """
james john robert michael william david richard joseph thomas charles christopher daniel matthew
anthony mark donald steven paul andrew joshua kenneth kevin brian george edward ronald timothy
jason jeffrey ryan jacob gary nicholas eric jonathan stephen larry justin scott brandon benjamin
samuel gregory frank alexander raymond patrick jack dennis jerry tyler aaron jose adam henry
nathan douglas peter zachary walter harold arthur albert carl ralph roger eugene lawrence victor
philip fred ernest howard louis martin oscar hugh edmund gilbert herbert frederick leonard
theodore francis simon oliver tom bill jim bob joe harry ben sam dick ned abel abraham alan alec
alfred algernon allan ambrose amos angus antonio archibald august augustus barnaby bartholomew basil
benedict bernard bertram boris bruce caleb calvin cecil cedric clarence claude clement
clifford clive cornelius cuthbert cyril damian darren dean derek desmond dominic duncan dwight earl
edgar edmond edwin elias elijah elliot emil emile emmanuel enoch ephraim ethan ezekiel ezra felix
ferdinand fitzwilliam franklin gabriel geoffrey gerald gerard giles gordon graham hector heinrich
hiram homer horace horatio hubert humphrey ian ignatius immanuel isaac isaiah israel ivan jasper
jeremiah jeremy jerome jesse jonah josiah josef jules julian julius karl keith kurt lancelot lemuel
leo leon leopold levi lewis lionel lloyd lorenzo luca lucas lucius luke luther malcolm marcus marius
marshall maurice max maximilian melvin mervyn miles milton mortimer moses nathaniel neil neville
nigel noah noel norman octavius oswald otto owen percival percy pierre quentin quincy randolph
raoul reginald reuben rex rodney roderick roland rolf rowland rudolf rudolph rufus rupert russell
salvador septimus seth sheldon sherlock sidney sigmund silas solomon spencer stanley stuart
sylvester terence thaddeus tobias trevor ulysses uriah valentine vernon vincent virgil vladimir
wallace warren wendell wilbur wilfred wilhelm winston xavier zachariah
"""
_WOMENS_NAMES = """
mary patricia jennifer linda elizabeth barbara susan jessica sarah karen lisa nancy betty sandra
margaret ashley kimberly emily donna michelle carol amanda melissa deborah stephanie rebecca
sharon laura cynthia dorothy amy kathleen angela shirley emma brenda pamela nicole anna samantha
katherine christine helen debra rachel carolyn janet maria catherine heather diane olivia julie
joyce victoria ruth virginia lauren kelly christina joan evelyn judith andrea hannah jacqueline
martha gloria teresa ann anne sara madison frances kathryn jean abigail alice julia judy sophia
grace denise amber doris marilyn danielle beverly isabella theresa diana natalie brittany
charlotte marie kayla alexis jane lydia harriet caroline agnes florence edith ethel lucy ellen
clara rose louisa eleanor kate eliza ada adela adelaide adele agatha alexandra alison alma amelia
anastasia angelica annabel annette annie antoinette antonia arabella audrey barbara bathsheba
beatrice belinda bernadette bertha beth bianca blanche bridget brigitte camilla carla carlotta
carrie cassandra catharine cecilia celeste celia charity clarissa claudia clementine constance
cordelia cornelia daisy daphne deirdre delia delilah della desdemona dinah dolores dora dorothea
elena elinor elisabeth elise eloise elsie elvira emilia emmeline ernestine esmeralda estella estelle
esther eugenia eunice eva evangeline eve fanny faith felicity fiona flora florence francesca
francine frederica freda gabriella genevieve georgiana georgina geraldine gertrude gina
giulia gladys greta griselda guinevere gwendolen hazel hedwig helena helga henrietta hermione hester
hilda hortense ida imogen ingrid irene iris isabel isabelle ivy jemima jenny jessie joanna
josephine joy judith juliana juliet julietta justine katharine lavinia leah leila lena leonora
leticia letitia lettice lilian lily lizzie lizzy loretta lorna lottie lucia lucinda lucretia
lucille mabel madeleine magdalena maggie mamie marcella margarita margery marguerite marianne
marina marion marjorie matilda maud maude meg melanie mercedes mercy mildred millicent minerva
minnie miranda miriam molly monica muriel myra myrtle nadia natasha nell nellie nora norah olga
olive ophelia pansy patience paula pauline pearl peggy penelope philippa phoebe phyllis polly
portia priscilla prudence rachael ramona rhoda roberta rosa rosalind rosamund rosemary
rosina roxana sabina sabrina sally selina serena sheila sibyl sidonie silvia simone sonia sophie
stella susanna susannah suzanne sybil sylvia tabitha tess thelma theodora therese tilda trudy
ursula valerie vanessa vera vivian viola violet wilhelmina winifred yolanda yvonne zoe
"""
_MALE = word_set(_MENS_NAMES)
_FEMALE = word_set(_WOMENS_NAMES)


MONSIEUR = "m"
"""A lone M. before one name is Monsieur's short form, or an initial."""


def split_titles(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the honorifics that open a normalised name, short, and the rest, which may be empty.

    In "Duke of Wellington" or "Lord of the Rings" the first word is no honorific.
    """
    words, at = tuple(words), 0
    while at < len(words) and SPELLINGS.get(words[at], words[at]) in TITLES:
        at += 1
    if not at and words[:1] == ("m",) and len(words) == 2 + (words[1:2] in (("de",), ("du",))):
        return (MONSIEUR,), words[1:]
    if words[at : at + 1] and words[at] in ("of", "the", "and"):
        at = 0
    return tuple(SPELLINGS.get(word, word) for word in words[:at]), words[at:]


def sex(titles: Sequence[str], names: Sequence[str]) -> str:
    """Return "m", "f" or "" for what titles, else a given name before a surname, say."""
    for title in titles:
        if title in MEN or title in WOMEN:
            return "m" if title in MEN else "f"
    if len(names) > 1:
        return "m" if names[0] in _MALE else "f" if names[0] in _FEMALE else ""
    return ""


_DIMINUTIVES = """
elizabeth eliza lizzy lizzie betsy betsey beth; catherine cathy; katherine kathy katie; margaret
maggie; susan susie susy; christina christine tina; josephine josie; rebecca becky;
deborah debbie; jennifer jenny; pamela pam; patricia patty; samuel sam sammy; benjamin ben benny;
thomas tom tommy; william will willie willy; timothy tim timmy; frederick fred freddie freddy;
alexander alex; andrew andy; daniel dan danny; david dave davy; joseph joe joey; matthew matt;
michael mike mikey; nicholas nick nicky; philip phil; peter pete; stephen steve; steven stevie;
tobias toby; zachary zach; joshua josh; nathaniel nat; archibald archie;
albert bertie; anthony tony; christopher chris; douglas doug; edward eddie eddy;
gregory greg; jeffrey jeff; kenneth ken; leonard len lenny; raymond ray; ronald ron; vincent vince;
walter walt; quincey quince; abraham abe; ebenezer eben; melanie mel; nathan nate; jonathan jon;
jessica jess; victoria vicky vicki; abigail abby; amanda mandy; cassandra cassie; cynthia cindy;
dorothy dot dottie; gabriel gabe; jacob jake; madeleine maddie; penelope penny; stephanie steph;
theodore theo ted teddy; valerie val; vivian viv; lawrence larry; gerald gerry; bartholomew bart;
"""
BASE_NAMES = {
    short: base
    for base, *shorts in map(str.split, _DIMINUTIVES.split(";")[:-1])
    for short in shorts
}
"""Short forms of given names that hold letters of the full one, and the full one."""


@lru_cache(maxsize=1 << 13)
def titled(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the titles before a normalised name, and its other words."""
    return split_titles(name.split())


def titles_clash(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether two people's titles say that they are two: of another sex, or of another rank.

    Mrs and Miss of one surname are two people, as are a colonel and a captain; Dr or Sir and Mr may
    be one. A title beside none clashes with nothing.
    """
    if not first or not second or set(first) & set(second):
        return False
    both = {*first, *second}
    if both >= {"mrs", "miss"} or (MONSIEUR in both and both & WOMEN):
        return True
    return not (COURTESY.intersection(first) and COURTESY.intersection(second))
