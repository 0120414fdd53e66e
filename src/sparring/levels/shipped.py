"""The 36 maps that ship with the judge. None is part of Sparring: they are read where the package `unswbc` lies."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from sparring.errors import SparringError
from sparring.levels.maps import LoongMap, read_map

SHIPPED = {
    "0c2e876b943463ed0d29df2cae413ebb21a83fb517b39e3e73f9cec9ef5b86b1": "Colosseum",
    "e331a89906106b0c04388cd1a6a00bf77299f410ee8fb03d2a524017f81c6464": "arena",
    "9c111927b62e2f66046bab64fcf648c78a273ffefd0205dc6bac6855b5b7b15c": "athena",
    "a479bba8856f6cba52861b58246502a93e19e5369c6db1e0d36e378eba92003e": "atlantis",
    "1b09da728afc07a68fb071480983049c4454355184c6d6e05254dddcab2b19b6": "australia",
    "c87b6854edf7747ed1ac1d2f12cfe85d134c890f4113bab7e859bddb08ea65ca": "autarky",
    "2436ed80f67e6a6c30eca45a1f5677cfc9c2d62a733c9baa9ffdac7b92941b24": "big_empty",
    "7fb8beb22cfb0caca2221f6b6c31831e56a710cf35e7d1d0aab0eb4057ad67a4": "caution",
    "178b8c3afb08b74b848b308a3f9f6afbde3cd39aea2b1d12b38a651f4daa7803": "default",
    "8300b3ec46667365923922bd538f62b817ae6d63b5182b62c1ec067606a64f9a": "default_small",
    "ec202febc3164d7ce836d57da5cc5a0592cfb4584e1e0e1df5c87727b7e3b6db": "detention",
    "e846b617fc7bceedccbed37f8265d70a6bf1e03241404f43f30fc498d0dfa068": "devil",
    "b6aaba9958394ee8130c863b9ea4fd7e1850dd3540bfc01a37afd68ebc293407": "dilemma",
    "e8be5201bbaa89b750d81abf2be54b45d68492b52807369933ba9cc3b46f4356": "ezam",
    "56a6be9105442b1870a0c0b0f1820145c40bc0690440fd3c59185ccff606a684": "hive",
    "9b3e6c939f13baacd3a270b0c38876208012ffc6f2c206ceede5e6c96a42e9c1": "islands",
    "fbcf5b3f725d3fa9e96d91a1ece591111c35fc36cb141a04291ff40b9d4fe9bc": "maelstrom",
    "ee79295a54ef3e0320c4232e9c17a5d9b786628572134a85a26914ad5a0b4761": "maze",
    "ea7c7de55d2092b2f22f3ef9f5b42861f09bb566d8533ab1cb5afa53a58a6b3c": "metro",
    "feeb2a87f1823516fecc7c9c5a7bd26e128ab0343c02d19daebcf20e85d8507e": "ouroboros",
    "595a88c7d9ed5ef98bc11d34eb0bc1b6f039f174d3cd35d41641f15ced943ad9": "portals",
    "2b792a7e1cab19d774c7e62ca8d41893c910f0ab361fa229edf7a30bb37e125e": "queen_of_spades",
    "5317809c221b42a665a7dd00b1d3323b6215ccca819f4810a60e1567283708e0": "schooltime",
    "c038d3dde6610a9fee81669f25015d252ec5be02e688e2a50a45d58d24b01091": "slithery_fight",
    "78675a6d796194a13f29b7ee54d53df08d76c0676f8d70a2804c3468abae93e4": "stripes",
    "cb72cc87ceeaf22764b9eb1fc50339ae0c15296b8e2cc74510e0f0881953af30": "stronghold",
    "07c79c5c75dd61d5ef0d5fe5530e78582b4774db404b324b5f63060e70878d4f": "thermopylae",
    "3a499af455199b2e9f6c692d0cad0ddd8e6d65bb6178a6863554ff76bfc00fde": "tower_defense",
    "885b451ff20e57d811be8539d46fea75c5bd47cca323767cada8e5f186f3afd8": "trauma",
    "ea7e3be467e4d3595309f6aed06dc139f41be97cb72c61449b9a36b196e94730": "troll_australia",
    "5d37c27eae99d46d4a11aca4da8f55cb980f9b63503e12cf2f022a469341acba": "trolley_problem",
    "1d761b2460e86388d28ab83074ce31445ce65f19f1dfb07aa9363ab348bd1ffb": "trolley_problem_buffed",
    "d0d2602c4c964423d217931f8c0840635ac241d1061ad395bd0a21c117b73715": "trophy",
    "bcfdae8f17ad9a6ee4d8fec74cba0534b06a68f0e6c0218c4ecc92efeb743faa": "unsw",
    "cc12494f51f4b197646849af3cf7abb929150542cce234f1252e2a2ffc8bce78": "weakhold",
    "2a96cb6a0eae444e2545b2997737347f84e092ef6e87c14344e3cdf3316b2657": "whale_song",
}
"""Names of the maps in unswbc 1.2.11 by their `map_hash`, so that they are known for what they are without it, too."""


def shipped_folder() -> Path:
    """Where the installed judge keeps its maps. Raises SparringError where it is not installed."""
    found = importlib.util.find_spec("unswbc")
    if found is None or found.origin is None:
        raise SparringError("the judge's own maps are not here: pip install 'sparring[loong]' brings them")
    return Path(found.origin).parent / "templates" / "maps"


def shipped_maps() -> dict[str, LoongMap]:
    """The installed judge's maps by the names of their files. Raises SparringError where it is not installed."""
    return {path.stem: read_map(path) for path in sorted(shipped_folder().glob("*.map"))}
