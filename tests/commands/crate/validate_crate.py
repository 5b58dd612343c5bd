"""Validates a crate with roc-validator, whose Python runs this: `validate_crate.py CRATE CONTEXT`; prints problems.

The validator fetches two JSON-LD contexts from w3id.org. It gets them from here instead. CONTEXT is the file of terms
that comes with the package rocrate: that of RO-Crate 1.3, in which terms of Bioschemas moved, while a crate here is of
1.1. The second one has the term of ResearchObject/ro-terms (workflow-run/context.json) that these crates use.
"""

import json
import sys
from pathlib import Path
from typing import Any

from rocrate_validator import models, services
from rocrate_validator.utils.http import HttpRequester

CONTEXTS = {
    "https://w3id.org/ro/crate/1.1/context": json.loads(
        Path(sys.argv[2]).read_text().replace("bioschemas.org/terms/", "bioschemas.org/")
    ),
    "https://w3id.org/ro/terms/workflow-run/context": {
        "@context": {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}
    },
}


class Answer:
    status_code = 200
    headers = {"Content-Type": "application/ld+json"}  # noqa: RUF012

    def __init__(self, url: str) -> None:
        self.text = json.dumps(CONTEXTS[url])

    def json(self) -> Any:
        return json.loads(self.text)


HttpRequester.get = lambda self, url, **_: Answer(url)
settings = services.ValidationSettings(
    rocrate_uri=models.URI(sys.argv[1]),
    profile_identifier="workflow-run-crate-0.5",
    requirement_severity=models.Severity[sys.argv[3] if len(sys.argv) > 3 else "REQUIRED"],
)
for issue in services.validate(settings).get_issues():
    print(f"{issue.severity.name} {issue.check.identifier}: {issue.message} {issue.violatingEntity or ''}")
print("validated")
