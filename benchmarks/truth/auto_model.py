"""Does `auto` predict as well as the best single model? On tables that others measured, and on generated systems.

Run `python benchmarks/truth/auto_model.py FILE[:RESPONSE[:IGNORED,...]]... [--sizes 40 100 200] [--repetitions 5]
[--generated 10]`. The response is the last column if not named; its logarithm is modelled (not that of the generated
systems, those of `benchmarks/false_stops.py`). From random samples of each size the other settings, 1,500 at most, are
predicted. The error is the root mean squared one, averaged over the repetitions. `three` are the models that
`auto` had before (commit aac5560), chosen in the same way: analysis of variance, also stepwise, and LightGBM. A line
per table and size has the errors relative to the best single model, and the processor seconds of a decision.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).parents[1]))

from false_stops import SYSTEMS, generate

from knobscope.processes.parallel import one_thread
from knobscope.statistics.design import Settings
from knobscope.statistics.models import MODELS, make_models
from knobscope.statistics.stopping import Runs, decide_stop

MOST_PREDICTED = 1500
SINGLE = ("anova", "lightgbm", "extra_trees", "random_forest", "gaussian_process", "mlp")
GOAL = "goal: auto is at most 1.05 everywhere"


def read(text: str) -> tuple[str, Settings, np.ndarray]:
    """Return name, settings and logarithm of the response of a table."""
    path, response, ignored, *_ = [*text.split(":"), "", "", ""]
    table = pd.read_csv(path).drop(columns=[name for name in ignored.split(",") if name])
    response = response or table.columns[-1]
    table = table[np.isfinite(table[response]) & (table[response] > 0)]
    knobs = [name for name in table if name != response and table[name].nunique() > 1]
    settings = Settings.from_frame(table, knobs)
    group = settings.groups()
    _, first = np.unique(group, return_index=True)
    means = np.bincount(group, table[response]) / np.bincount(group)
    return Path(path).stem, settings.take(first), np.log(means)


def generated(count: int) -> Iterator[tuple[str, Settings, np.ndarray]]:
    """Yield generated systems of all kinds."""
    for kind in SYSTEMS:
        for number in range(count):
            table = generate(7, kind, number)
            yield kind, Settings.from_frame(table, [name for name in table if name != "y"]), table.y.to_numpy(float)


def judge(settings: Settings, response: np.ndarray, size: int, repetition: int) -> dict[str, float]:
    """Return the error of each single model, of `auto` and of its first three models, and the seconds of a decision."""
    order = np.random.default_rng([size, repetition]).permutation(len(response))
    train, test = order[:size], order[size : size + MOST_PREDICTED]
    runs, held = Runs.of(settings.take(train), response[train]), settings.take(test)

    def error(name: str) -> float:
        models = make_models(name, 1)
        if len(models) > 1:
            model = decide_stop(runs, name, settings, 0.9, 10, 1).model
        else:
            model = models[0].fit(runs.settings, runs.response)
        return np.inf if model is None else np.sqrt(np.mean((model.predict(held) - response[test]) ** 2))

    errors = {name: error(name) for name in SINGLE}
    begin = time.process_time()
    errors["auto"] = error("auto")
    seconds = time.process_time() - begin
    MODELS["three"] = lambda seed, expected: make_models("auto", seed, expected)[:3]
    begin = time.process_time()
    errors["three"] = error("three")
    return {**errors, "auto s": seconds, "three s": time.process_time() - begin}


def main() -> None:
    """Print a line per table and size, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="FILE[:RESPONSE[:IGNORED,...]]")
    parser.add_argument("--sizes", type=int, nargs="+", default=[40, 100, 200])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--generated", type=int, default=0, help="generated systems of each kind")
    args = parser.parse_args()
    lines = []
    with one_thread():
        for name, settings, response in (*map(read, args.tables), *generated(args.generated)):
            for size in args.sizes:
                if 2 * size > len(response):
                    continue
                results = pd.DataFrame(judge(settings, response, size, n) for n in range(args.repetitions)).mean()
                best = results[list(SINGLE)].min()
                line = {"table": name, "runs": size, "best": results[list(SINGLE)].idxmin(), "error": best}
                line |= {key: results[key] / best for key in (*SINGLE, "three", "auto")}
                lines.append({**line, **{key: results[key] for key in ("three s", "auto s")}})
                print(pd.DataFrame([lines[-1]]).round(3).to_string(header=len(lines) == 1, index=False), flush=True)
    table = pd.DataFrame(lines)
    for name in (*SINGLE, "three", "auto"):
        far = int((table[name] > 1.05).sum())
        print(f"{name}: mean {table[name].mean():.3f}, worst {table[name].max():.3f}, {far} of {len(table)} above 1.05")
    print(f"processor seconds of a decision: three {table['three s'].mean():.1f}, auto {table['auto s'].mean():.1f}")
    print(GOAL)


if __name__ == "__main__":
    main()
