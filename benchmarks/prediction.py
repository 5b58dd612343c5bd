"""How well the models predict configurations that were not measured, on the splits of a published benchmark.

    git clone https://github.com/DeepPerf/DeepPerf && python benchmarks/prediction.py DeepPerf/Data

The data are whole systems of which very many configurations were measured (BDBC: Berkeley DB, 2,560; SQL: SQLite,
4,553). Ha and Zhang ("DeepPerf", ICSE 2019) draw their training runs from NumPy's generator with seeds that their
program states; the same are drawn here, thirty per sample size. The error is the mean relative error over all other
configurations, in percent. Models see the logarithm of the response, as `knobscope select` does; `published` is what
DeepPerf's own results in that folder say.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import pandas as pd

from knobscope.processes.parallel import one_thread
from knobscope.statistics.design import Settings
from knobscope.statistics.models import make_models

#: System -> sizes of the training samples: one to five times the number of options.
SIZES = {"BDBC": (18, 36, 54, 72, 90), "SQL": (39, 78, 117, 156, 195)}
_REPETITIONS = 30
#: Those of our models that predict from any number of runs.
NAMES = ("gaussian_process", "extra_trees", "random_forest", "lightgbm")


def draw(rows: int, size: int, sizes: tuple[int, ...], repetition: int) -> np.ndarray:
    """Return the order of rows whose first `size` are the training runs, as AutoDeepPerf.py draws it."""
    np.random.seed(sizes.index(size) * _REPETITIONS + repetition)
    return np.random.permutation(rows)


def evaluate(order: tuple[Path, str, str, int, int]) -> tuple[float, float]:
    """Return the error in percent of one model on one split, and the processor seconds of its fit."""
    data, system, model, size, repetition = order
    table = pd.read_csv(data / f"{system}_AllNumeric.csv")
    settings = Settings.from_frame(table, list(table.columns[:-1]))
    response = table.iloc[:, -1].to_numpy(float)
    split = draw(len(table), size, SIZES[system], repetition)
    train, test = split[:size], split[size:]
    begin = time.process_time()
    with one_thread():
        (unfitted,) = make_models(model, 1)
        fitted = unfitted.fit(settings.take(train), np.log(response[train]))
    seconds = time.process_time() - begin
    predicted = np.exp(fitted.predict(settings.take(test)))
    return float(100 * np.mean(np.abs(predicted - response[test]) / response[test])), seconds


def main() -> int:
    """Print a table: error by system, sample size and model, and how long a fit takes."""
    options = _parse()
    print("| system | runs | model | error, % | published, % | CPU s per fit |\n|---|---|---|---|---|---|")
    with Pool(options.jobs) as pool:
        for system in options.systems:
            published = pd.read_csv(options.data / f"DeepPerf_results/result_{system}.csv", skipinitialspace=True)
            for size, published_error in zip(SIZES[system], published["Mean"], strict=True):
                for model in options.models:
                    orders = [
                        (options.data, system, model, size, number) for number in range(1, options.repetitions + 1)
                    ]
                    errors, seconds = np.transpose(pool.map(evaluate, orders, chunksize=1))
                    half = 1.96 * np.std(errors) / np.sqrt(len(errors))
                    figures = f"{np.mean(errors):.2f} ± {half:.2f} | {published_error:.2f} | {np.mean(seconds):.2f}"
                    print(f"| {system} | {size} | {model} | {figures} |", flush=True)
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="folder Data of DeepPerf")
    parser.add_argument("--systems", nargs="+", choices=sorted(SIZES), default=list(SIZES))
    parser.add_argument("--models", nargs="+", choices=NAMES, default=list(NAMES), metavar="MODEL")
    parser.add_argument("--repetitions", type=int, default=_REPETITIONS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
