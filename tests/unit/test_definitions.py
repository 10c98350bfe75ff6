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
def test_a_name_in_code_is_recognised_by_its_spelling(question: str, names: list[str]) -> None:
    assert identifiers(question) == names


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("python", "    async def weigh(self,"),
        ("python", "class weigh(Base):"),
        ("javascript", "export default async function weigh(x) {"),
        ("javascript", "  async weigh(x, y) {"),
        ("javascript", "const weigh = (x) => x + 1"),
        ("javascript", "exports.weigh = async function (x) {"),
        ("javascript", "  weigh: (x) => x + 1,"),
        ("javascript", "  static weigh = x => {"),
        ("javascript", "  async #weigh (x) {"),
        ("javascript", "  get weigh() { return this.map[key]; }"),
        ("typescript", "  private weigh = async (x: T): Promise<void> => {"),
        ("typescript", "export enum weigh { Light, Heavy }"),
        ("java", "  int weigh(int by) { counter += by; return counter; }"),
        ("java", "    void weigh(Map<String, Integer> anchors) throws E;"),
        ("typescript", "export interface weigh<T> {"),
        ("java", "    public static List<String> weigh(int a, int b) throws E {"),
        ("go", "func (s *Store) weigh(x int) int {"),
        ("rust", "pub(crate) fn weigh<T>(x: T) -> u8 {"),
        ("c", "static struct anchor *weigh(const char *path)"),
        ("c", "#define weigh(x) (x)"),
        ("c", "} weigh;"),
        ("cpp", "double Store::weigh(int a,"),
        ("cpp", "  void weigh(std::function<int()> f) const { call(f); }"),
    ],
)
def test_a_definition_is_distinguished_from_a_use(language: str, line: str) -> None:
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
        ("javascript", "  weigh(x, (a) => { return a; });"),
        ("javascript", "  store.onChange = weigh(x)"),
        ("javascript", "  run: () => weigh(x),"),
        ("javascript", "  weigh(x, y)"),
        ("javascript", "  for (const [a, b] of Object.entries(weigh(x))) {"),
        ("java", "    return weigh(b);"),
        ("java", "    weigh(b);"),
        ("java", "    int a = weigh(b);"),
        ("go", "\tx := weigh(y)"),
        ("rust", "    let x = weigh(y);"),
        ("rust", "    match weigh(y) { _ => 1 }"),
        ("c", "    return weigh(path)"),
        ("cpp", "  store.weigh(1);"),
    ],
)
def test_a_use_is_no_definition(language: str, line: str) -> None:
    assert not defines(line, "weigh", language)
