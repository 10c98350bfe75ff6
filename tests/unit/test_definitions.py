"""Identifiers in questions, and the lines that define them."""

import pytest

from qrmem.retrieval.definitions import defines, identifiers


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("one_more", ["one_more"]),
        ("weigh", ["weigh"]),
        ("Where is read_bytes called from openStore?", ["read_bytes", "openStore"]),
        ("What does weigh() return?", ["weigh"]),
        ("What does `weigh` return, and _x?", ["weigh", "_x"]),
        ("How does Store.weigh differ from std::sort?", ["weigh", "sort"]),
        ("Where is weigh defined?", ["weigh"]),
        ("Explain the function weigh to me", ["weigh"]),
        ("Where is the window's budget kept?", []),
        ("Who lost a leg?", []),
        ("What is the function of the heart?", []),
        ("What year (1871) was it?", []),
        ("", []),
    ],
)
def test_a_name_of_code_is_told_by_how_it_is_written(question: str, names: list[str]) -> None:
    assert identifiers(question) == names


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("python", "    async def weigh(self,"),
        ("python", "class weigh(Base):"),
        ("javascript", "export default async function weigh(x) {"),
        ("javascript", "  async weigh(x, y) {"),
        ("javascript", "const weigh = (x) => x + 1"),
        ("typescript", "export interface weigh<T> {"),
        ("java", "    public static List<String> weigh(int a, int b) throws E {"),
        ("go", "func (s *Store) weigh(x int) int {"),
        ("rust", "pub(crate) fn weigh<T>(x: T) -> u8 {"),
        ("c", "static struct anchor *weigh(const char *path)"),
        ("c", "#define weigh(x) (x)"),
        ("cpp", "double Store::weigh(int a,"),
    ],
)
def test_a_definition_is_told_from_a_use(language: str, line: str) -> None:
    assert defines(f"# before\n{line}\n    after\n", "weigh", language)
    assert not defines(line, "eigh", language)


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("python", "    return self.weigh()"),
        ("python", 'text = "def weigh"'),
        ("python", "def weigher(x):"),
        ("python", "from anchors import weigh"),
        ("javascript", "  return weigh(x);"),
        ("javascript", "  if (weigh(x)) {"),
        ("java", "    int a = weigh(b);"),
        ("go", "\tx := weigh(y)"),
        ("rust", "    let x = weigh(y);"),
        ("c", "    return weigh(path)"),
        ("cpp", "  store.weigh(1);"),
    ],
)
def test_a_use_is_no_definition(language: str, line: str) -> None:
    assert not defines(line, "weigh", language)
