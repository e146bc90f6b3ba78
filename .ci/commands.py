"""Run the shell commands of pages (README.md, docs/*.md): python .ci/commands.py PAGE...

Blocks marked ``sh`` are run, page by page, from top to bottom; only clones, ``cd`` and make targets are left
out, which CI runs itself. Blocks marked ``shell`` need what CI has not: a cluster, hours, somebody who stops
them.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

root = Path(__file__).parents[1]
environment = {**os.environ, "PATH": f"{root / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
for page in sys.argv[1:]:
    blocks = re.findall(r"^```sh\n(.*?)^```", (root / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    if not blocks:
        sys.exit(f"{page} has no commands")
    for block in blocks:
        lines = [line for line in block.splitlines() if not line.startswith(("git clone", "cd ", "make "))]
        print(f"== {page}", *lines, sep="\n", flush=True)
        subprocess.run(["bash", "-e", "-c", "\n".join(lines)], check=True, cwd=root, env=environment)
