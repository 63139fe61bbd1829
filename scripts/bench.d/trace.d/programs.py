"""The programs that are traced: one loop, three functions deep, in four languages, with as many rounds as wanted."""

import os
import subprocess

C = """#include <stdio.h>

static long work(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) {
        sum += i; /* HERE */
    }
    return sum; /* AFTER */
}

static long run(long n) { return work(n); }

int main(void) {
    printf("%ld\\n", run(HITS));
    return 0;
}
"""

PYTHON = """def work(n):
    sum = 0
    for i in range(n):
        sum += i  # HERE
    return sum  # AFTER


def run(n):
    return work(n)


print(run(HITS))
"""

GO = """package main

import "fmt"

func work(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += i // HERE
	}
	return sum // AFTER
}

func run(n int) int { return work(n) }

func main() {
	fmt.Println(run(HITS))
}
"""

JAVASCRIPT = """function work(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) {
    sum += i; // HERE
  }
  return sum; // AFTER
}

function run(n) {
  return work(n);
}

console.log(run(HITS));
"""


class Program:
    """The loop with one number of rounds, in a folder of its own."""

    def __init__(self, folder, language, hits):
        self.folder, self.hits = folder, hits
        text = language.text.replace("HITS", str(hits))
        self.name = "loop" + language.suffix
        self.source = os.path.join(folder, self.name)
        lines = text.splitlines()
        self.line = next(n for n, line in enumerate(lines, 1) if "HERE" in line)
        self.after = next(n for n, line in enumerate(lines, 1) if "AFTER" in line)
        self.place = f"{self.name}:{self.line}"
        if not os.path.exists(folder):
            os.makedirs(folder)
            with open(self.source, "w") as file:
                file.write(text)
            if language.build:
                subprocess.run([*language.build, self.name, "-o", "loop"], check=True, cwd=folder)
            if language.text is GO:
                build = ["go", "build", "-gcflags=all=-N -l", "-o", "loop", self.name]
                subprocess.run(build, check=True, cwd=folder)
        # What a debugger is given, and what a shell would run.
        self.target = os.path.join(folder, "loop") if language.compiled else self.source
        self.words = [language.runner, self.name] if language.runner else ["./loop"]


class Language:
    def __init__(self, name, text, suffix, build=None, runner=None):
        self.name, self.text, self.suffix, self.build, self.runner = name, text, suffix, build, runner
        self.compiled = runner is None


LANGUAGES = {
    "C": Language("C", C, ".c", build=["cc", "-O0", "-g", "-fno-omit-frame-pointer", "-fno-inline"]),
    "Python": Language("Python", PYTHON, ".py", runner="python3"),
    "Go": Language("Go", GO, ".go"),
    "JavaScript": Language("JavaScript", JAVASCRIPT, ".js", runner="node"),
}


def wrong(values, hits):
    """What is wrong with these pairs of `i` and `sum`; none if they are what the loop has."""
    count, total = 0, 0
    for i, sum in values:
        if (i, sum) != (count, total):
            return f"hit {count + 1} has i = {i}, sum = {sum}, not {count} and {total}"
        total += count
        count += 1
    return None if count == hits else f"{count} hits of {hits}"


def wrong_way(ways):
    """What is wrong with these call paths, each a list of functions, innermost first."""
    for number, way in enumerate(ways, 1):
        if [name.rpartition(".")[2] for name in way[:2]] != ["work", "run"]:
            return f"hit {number} was reached by {' <- '.join(way[:3]) or 'nothing'}"
    return None
