"""Takes source text apart for tidy.py: what is code, what is comment, where functions lie."""

import ast
import io
import re
import tokenize

# Each alternative is one lexical piece; code is what none of them matches.
CPP_PIECE = re.compile(
    r"""(?P<raw>R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)")"""
    r"""|(?P<string>"(?:\\.|[^"\\\n])*")"""
    r"""|(?<![0-9A-Za-z_])(?P<char>'(?:\\.|[^'\\\n])+')"""
    r"""|(?P<line>//[^\n]*)"""
    r"""|(?P<block>/\*.*?\*/)""",
    re.DOTALL,
)


def blank(text):
    """The same text with everything but its line ends made space, so that places still match."""
    return re.sub(r"[^\n]", " ", text)


def split_cpp(text):
    """(code, comments): both as long as the text. Strings are empty in the code."""
    code, comments, end = [], [], 0
    for piece in CPP_PIECE.finditer(text):
        between = text[end:piece.start()]
        code.append(between)
        comments.append(blank(between))
        whole = piece.group()
        if piece.group("line") is not None or piece.group("block") is not None:
            code.append(blank(whole))
            comments.append(whole)
        else:
            # An #include names its file in a string that the rules need.
            line = text[text.rfind("\n", 0, piece.start()) + 1:piece.start()]
            keep = line.strip().startswith("#include")
            code.append(whole if keep else '"' + blank(whole[1:-1]) + '"')
            comments.append(blank(whole))
        end = piece.end()
    code.append(text[end:])
    comments.append(blank(text[end:]))
    return "".join(code), "".join(comments)


def python_comments(text):
    """Comments and docstrings, each on its own line, everything else blank."""
    lines = [""] * (text.count("\n") + 1)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            is_prose = token.type == tokenize.STRING and token.string.startswith('"""')
            if token.type == tokenize.COMMENT or is_prose:
                for offset, part in enumerate(token.string.split("\n")):
                    lines[token.start[0] - 1 + offset] += part
    except (tokenize.TokenError, IndentationError):
        pass
    return "\n".join(lines)


def hash_comments(text):
    """Comments of shell, CMake, YAML and TOML: from a # at the start or after a space."""
    return "\n".join(
        match.group() if (match := re.search(r"(?:^|(?<=\s))#.*", line)) else ""
        for line in text.split("\n"))


NOT_A_FUNCTION = re.compile(
    r"^(?:namespace|class|struct|enum|union|extern|if|for|while|switch|else|do|try|catch|return)\b"
    r"|^$|[=\[,(]$|=\s*$")


# What may stand between the end of one member and the next function.
ACCESS = re.compile(r"(?:\s*(?:public|private|protected)\s*:)*\s*")


def opens_function(header):
    """Whether a brace after this text starts a function's body."""
    header = re.sub(r"^\s*#.*$", "", header, flags=re.MULTILINE)
    header = header[ACCESS.match(header).end():].rstrip()
    if re.match(r"template\b", header):
        header = re.sub(r"^template\s*<.*?>\s*(?=\w)", "", header, flags=re.DOTALL)
    return "(" in header and not NOT_A_FUNCTION.search(header)


def cpp_functions(code):
    """(first line, last line) of each outermost function, counted from 1."""
    depth, inside, start, found = 0, None, 0, []
    header_at = 0
    for match in re.finditer(r"[{};]", code):
        mark, at = match.group(), match.start()
        if mark == "{":
            if inside is None and opens_function(code[header_at:at]):
                inside = depth
                start = header_at + ACCESS.match(code[header_at:at]).end()
            depth += 1
        elif mark == "}":
            depth -= 1
            if inside is not None and depth == inside:
                found.append((code.count("\n", 0, start) + 1, code.count("\n", 0, at) + 1))
                inside = None
        header_at = at + 1
    return found


def python_functions(text):
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    return [(node.lineno, node.end_lineno) for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def shell_functions(text):
    found, start = [], None
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"[A-Za-z_]\w*\(\) \{", line) and not line.rstrip().endswith("}"):
            start = number
        elif line.startswith("}") and start is not None:
            found.append((start, number))
            start = None
    return found
