"""Run every shell command of the README, but the two make targets and the clone that CI runs itself."""

import re
import subprocess
import sys
from pathlib import Path

root = Path(__file__).parents[1]
text = (root / "README.md").read_text()
commands = [
    line
    for block in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    for line in block.splitlines()
    if line and not line.startswith(("#", "git clone", "cd ", "make "))
]
if not commands:
    sys.exit("the README has no commands")
for command in commands:
    print("$", command, flush=True)
    local = re.sub(r"^((?:\w+=\S+ )*)bench ", rf"\1{root}/.venv/bin/bench ", command)
    subprocess.run(local, shell=True, check=True, cwd=root)
