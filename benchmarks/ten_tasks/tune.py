"""Tunes a made-up response with Optuna: tune.py SPACE DATABASE; the lines that a tuner of one's own would have."""

import json
import sys

import optuna

optuna.logging.set_verbosity(optuna.logging.WARNING)
content = json.loads(open(sys.argv[1]).read())  # noqa: SIM115, PTH123
space = {name: optuna.distributions.json_to_distribution(text) for name, text in content["distributions"].items()}
study = optuna.create_study(study_name="mine", storage=f"sqlite:///{sys.argv[2]}", direction="maximize")
for number in range(40):
    trial = study.ask(space)
    study.tell(trial, 100.0 * (1 + (trial.params.get("journal_mode") == "wal")) + number % 7)
