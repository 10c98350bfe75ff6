"""Languages by file suffix, and the node types of their grammars that an outline needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

CODE_KEY = "qrmem:language"
"""Metadata key with a source file's language; users do not use this name by chance."""

SUFFIXES: Mapping[str, str] = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "tsx",
    ".java": "java",
    ".go": "go",
    ".rs": "rust",
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hh": "cpp",
    ".hpp": "cpp",
    ".hxx": "cpp",
}
"""Suffix, in lower case, to language."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The names in a language's tree-sitter grammar.

    Attributes:
        module: the package of the grammar.
        function: the package's function that returns it.
        definitions: node types that define a callable name.
        calls: node types of calls, to the field with the called name.
        imports: node types of imports.
    """

    module: str
    definitions: frozenset[str]
    calls: Mapping[str, str]
    imports: frozenset[str] = frozenset()
    function: str = "language"


_SCRIPT = frozenset(
    {
        "function_declaration",
        "generator_function_declaration",
        "class_declaration",
        "abstract_class_declaration",
        "interface_declaration",
        "method_definition",
        "variable_declarator",
        "assignment_expression",
        "pair",
        "field_definition",
    }
)
_TYPED_SCRIPT = _SCRIPT | {"enum_declaration", "type_alias_declaration", "public_field_definition"}
_SCRIPT_CALLS = {"call_expression": "function", "new_expression": "constructor"}
_C = frozenset(
    {
        "function_definition",
        "struct_specifier",
        "union_specifier",
        "enum_specifier",
        "type_definition",
        "preproc_def",
        "preproc_function_def",
    }
)
_TYPESCRIPT = "tree_sitter_typescript"
_IMPORTS = frozenset({"import_statement"})

GRAMMARS: Mapping[str, Grammar] = {
    "python": Grammar(
        "tree_sitter_python",
        frozenset({"function_definition", "class_definition"}),
        {"call": "function"},
        frozenset({"import_statement", "import_from_statement"}),
    ),
    "javascript": Grammar("tree_sitter_javascript", _SCRIPT, _SCRIPT_CALLS, _IMPORTS),
    "typescript": Grammar(
        _TYPESCRIPT, _TYPED_SCRIPT, _SCRIPT_CALLS, _IMPORTS, "language_typescript"
    ),
    "tsx": Grammar(_TYPESCRIPT, _TYPED_SCRIPT, _SCRIPT_CALLS, _IMPORTS, "language_tsx"),
    "java": Grammar(
        "tree_sitter_java",
        frozenset(
            {
                "class_declaration",
                "interface_declaration",
                "enum_declaration",
                "record_declaration",
                "method_declaration",
                "constructor_declaration",
            }
        ),
        {"method_invocation": "name", "object_creation_expression": "type"},
        frozenset({"import_declaration"}),
    ),
    "go": Grammar(
        "tree_sitter_go",
        frozenset({"function_declaration", "method_declaration", "type_spec"}),
        {"call_expression": "function"},
        frozenset({"import_spec"}),
    ),
    "rust": Grammar(
        "tree_sitter_rust",
        frozenset(
            {
                "function_item",
                "struct_item",
                "enum_item",
                "trait_item",
                "union_item",
                "type_item",
                "macro_definition",
            }
        ),
        {"call_expression": "function", "macro_invocation": "macro"},
        frozenset({"use_declaration"}),
    ),
    "c": Grammar("tree_sitter_c", _C, {"call_expression": "function"}),
    "cpp": Grammar(
        "tree_sitter_cpp",
        _C | {"class_specifier"},
        {"call_expression": "function", "new_expression": "type"},
    ),
}
"""Languages that the extra `code` reads; without it, Python is read by its own parser."""


def language_of(name: str | PurePath) -> str:
    """Return the language of a file by its suffix; "" if it is not source code."""
    return SUFFIXES.get(PurePath(name).suffix.lower(), "")
