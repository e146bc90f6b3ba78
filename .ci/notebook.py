"""The cells of a notebook, run in order: ``notebook.py FILE [--write]``.

Without --write the stored outputs must be those that the code gives now (pictures: as many). It needs no more
than the suite does, no notebook server.
"""

import ast
import base64
import io
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import pandas as pd

Output = dict[str, Any]


def run(source: str, names: dict[str, Any]) -> list[Output]:
    """The outputs of a cell: its last line's value as text, and its figures as PNG."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None
    outputs = []
    for number in plt.get_fignums():
        file = io.BytesIO()
        plt.figure(number).savefig(file, format="png", dpi=80, metadata={"Software": None})
        outputs.append({"image/png": base64.b64encode(file.getvalue()).decode()})
        plt.close(number)
    if value is not None and not outputs:
        outputs.append({"text/plain": repr(value).splitlines(keepends=True)})
    return outputs


def stored(outputs: list[Output], count: int) -> list[Output]:
    """Outputs as the file format has them."""
    kinds = [
        {"output_type": "display_data"}
        if "image/png" in data
        else {"output_type": "execute_result", "execution_count": count}
        for data in outputs
    ]
    return [{**kind, "data": data, "metadata": {}} for kind, data in zip(kinds, outputs, strict=True)]


def without_pictures(outputs: list[Output]) -> list[Any]:
    """What must be equal on every machine: texts, and where pictures are."""
    return [output["data"].get("text/plain", "picture") for output in outputs]


def main(path: Path, write: bool) -> int:
    """Run the cells; 1 where an output has changed and none is written."""
    pd.set_option("display.width", 110, "display.max_columns", 20)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(code, 1):
        outputs = stored(run("".join(cell["source"]), names), count)
        if write:
            cell |= {"outputs": outputs, "execution_count": count}
        elif without_pictures(outputs) != without_pictures(cell["outputs"]):
            print(
                f"{path}, code cell {count}: its output is another one now; {Path(__file__)} {path} --write"
            )
            return 1
    if write:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), "--write" in sys.argv[2:]))
