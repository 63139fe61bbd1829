# What the hooks of gdb and LLDB share: which functions are told.
import os
import re

# Where systems keep what is not the program's own. Other folders below /usr, as /usr/src/app, are a user's own places.
FOREIGN = (
    "/lib/", "/lib64/", "/usr/include/", "/usr/lib/", "/usr/lib32/", "/usr/lib64/", "/usr/libexec/", "/usr/share/",
    "/usr/local/include/", "/usr/local/lib/", "/usr/local/lib64/", "/usr/src/debug/", "/rustc/",
)
FOREIGN_PARTS = ("/.cargo/", "/cargo/registry/", "/cargo/git/", "/rustlib/")


def is_own(file):
    """Whether a source file is the program's own."""
    foreign = file.startswith(FOREIGN) or any(part in file for part in FOREIGN_PARTS)
    return not foreign and os.path.isfile(file)


def bare(name):
    """A name without its parameters and without the hash of Rust."""
    name = re.sub("::h[0-9a-f]{16}$", "", name)
    depth = 0
    for at, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">" and name[at - 1] != "-")
        if letter == "(" and depth == 0 and at and not name.startswith("(anonymous namespace)", at):
            return name[:at]
    return name


def last(name):
    """The last part of a name."""
    depth, start = 0, 0
    for at, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if depth == 0 and name.startswith("::", at):
            start = at + 2
    return name[start:]


def is_made_up(name):
    """What the compiler alone calls so."""
    return name.startswith(("_GLOBAL__", "__static_initialization"))
