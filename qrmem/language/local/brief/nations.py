"""Countries, and what their people and things are called: closed lists of English."""

import re
from functools import lru_cache

_NATIONS = """
Afghanistan: Afghan; Albania: Albanian; Algeria: Algerian; Angola: Angolan; Argentina: Argentine
Argentinian; Armenia: Armenian; Australia: Australian; Austria: Austrian; Azerbaijan: Azerbaijani;
Bahamas: Bahamian; Bahrain: Bahraini; Bangladesh: Bangladeshi; Barbados: Barbadian; Belarus:
Belarusian; Belgium: Belgian; Belize: Belizean; Bolivia: Bolivian; Bosnia: Bosnian; Botswana:
Motswana; Brazil: Brazilian; Bulgaria: Bulgarian; Burma: Burmese; Cambodia: Cambodian; Cameroon:
Cameroonian; Canada: Canadian; Chile: Chilean; China: Chinese; Colombia: Colombian; Congo:
Congolese; Costa_Rica: Costa_Rican; Croatia: Croatian; Cuba: Cuban; Cyprus: Cypriot;
Czech_Republic: Czech; Czechoslovakia: Czechoslovak; Denmark: Danish Dane; Ecuador: Ecuadorian;
Egypt: Egyptian; El_Salvador: Salvadoran; England: English Englishman Englishwoman; Estonia:
Estonian; Ethiopia: Ethiopian; Fiji: Fijian; Finland: Finnish Finn; France: French Frenchman
Frenchwoman; Georgia: Georgian; Germany: German; Ghana: Ghanaian; Greece: Greek; Guatemala:
Guatemalan; Guinea: Guinean; Guyana: Guyanese; Haiti: Haitian; Honduras: Honduran; Hong_Kong: ;
Hungary: Hungarian; Iceland: Icelandic Icelander; India: Indian; Indonesia: Indonesian; Iran:
Iranian Persian; Iraq: Iraqi; Ireland: Irish Irishman; Israel: Israeli; Italy: Italian;
Ivory_Coast: Ivorian; Jamaica: Jamaican; Japan: Japanese; Jordan: Jordanian; Kazakhstan:
Kazakhstani Kazakh; Kenya: Kenyan; Kosovo: Kosovar; Kuwait: Kuwaiti; Kyrgyzstan: Kyrgyz; Laos:
Laotian; Latvia: Latvian; Lebanon: Lebanese; Liberia: Liberian; Libya: Libyan; Liechtenstein: ;
Lithuania: Lithuanian; Luxembourg: Luxembourgish; Macedonia: Macedonian; Madagascar: Malagasy;
Malawi: Malawian; Malaysia: Malaysian; Mali: Malian; Malta: Maltese; Mauritius: Mauritian; Mexico:
Mexican; Moldova: Moldovan; Monaco: Monegasque; Mongolia: Mongolian; Montenegro: Montenegrin;
Morocco: Moroccan; Mozambique: Mozambican; Myanmar: ; Namibia: Namibian; Nepal: Nepalese Nepali;
Netherlands: Dutch Dutchman; New_Zealand: New_Zealander; Nicaragua: Nicaraguan; Niger: Nigerien;
Nigeria: Nigerian; Norway: Norwegian; Oman: Omani; Pakistan: Pakistani; Palestine: Palestinian;
Panama: Panamanian; Paraguay: Paraguayan; Peru: Peruvian; Philippines: Filipino Philippine;
Poland: Polish Pole; Portugal: Portuguese; Puerto_Rico: Puerto_Rican; Qatar: Qatari; Romania:
Romanian; Russia: Russian; Rwanda: Rwandan; Samoa: Samoan; Saudi_Arabia: Saudi; Scotland: Scottish
Scot Scots; Senegal: Senegalese; Serbia: Serbian Serb; Singapore: Singaporean; Slovakia: Slovak;
Slovenia: Slovene Slovenian; Somalia: Somali; South_Africa: South_African; South_Korea:
South_Korean Korean; North_Korea: North_Korean; Soviet_Union: Soviet; Spain: Spanish Spaniard;
Sri_Lanka: Sri_Lankan; Sudan: Sudanese; Sweden: Swedish Swede; Switzerland: Swiss; Syria: Syrian;
Taiwan: Taiwanese; Tajikistan: Tajik; Tanzania: Tanzanian; Thailand: Thai; Togo: Togolese;
Trinidad_and_Tobago: Trinidadian; Tunisia: Tunisian; Turkey: Turkish Turk; Turkmenistan: Turkmen;
Uganda: Ugandan; Ukraine: Ukrainian; United_Arab_Emirates: Emirati; United_Kingdom: British Briton
Britain UK U.K. Great_Britain; United_States: American America USA U.S. US U.S.A.
United_States_of_America; Uruguay: Uruguayan; Uzbekistan: Uzbek Uzbekistani; Vatican_City: ;
Venezuela: Venezuelan; Vietnam: Vietnamese; Wales: Welsh Welshman; Yemen: Yemeni; Yugoslavia:
Yugoslav; Zambia: Zambian; Zimbabwe: Zimbabwean
"""


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """Return how a country, its people and things are called, to the country."""
    found: dict[str, str] = {}
    for line in " ".join(_NATIONS.split()).split(";"):
        country, _, others = line.partition(":")
        country = country.strip().replace("_", " ")
        for name in (country, *(other.replace("_", " ") for other in others.split())):
            found.setdefault(name, country)
    return found


@lru_cache(maxsize=1)
def _pattern() -> "re.Pattern[str]":
    names = sorted(_names(), key=lambda name: (-len(name), name))
    return re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, names))})(?!\w)")


def nations(text: str) -> list[tuple[str, str]]:
    """Return the countries and nationalities that a text names, as (as it stands, country)."""
    return [(match[0], _names()[match[0]]) for match in _pattern().finditer(text)]


def is_nationality(name: str) -> bool:
    """Whether a name is that of a country, or of what comes from one."""
    return name in _names()
