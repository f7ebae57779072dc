"""The dashboard and the alerts ask only for what a server exports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import yaml
from prometheus_client.parser import text_string_to_metric_families

from bough.config.ranks import SCHEDULER
from bough.ipc.messages import Heartbeat
from bough.observability.metrics import Metrics
from bough.observability.stats import SchedulerStats
from tests.tables import table

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"

FROM_PROMETHEUS = {"instance", "job"}
"""Labels that a scrape adds."""

NAME = re.compile(r"bough:[a-zA-Z0-9_]+")
SELECTOR = re.compile(r"(?P<name>[a-z][a-zA-Z0-9_:]*)?\{(?P<matchers>[^}]*)\}")
GROUPING = re.compile(r"\bby \(([^)]*)\)")
LABEL_VALUES = re.compile(r"label_values\((.+), *\w+\)")
"""Grafana's own function, whose first argument alone is Prometheus' language."""


def exported() -> dict[str, set[str]]:
    """Labels by name of a sample."""
    metrics = Metrics("m")
    metrics.startup_time = 1.0
    metrics.capacities = dict.fromkeys(("context_len", "max_running_requests", "page_size", "weight_bytes"), 1.0)
    metrics.heartbeats[SCHEDULER] = Heartbeat(SCHEDULER, SchedulerStats())
    metrics.requests.failed_requests.add("x")
    metrics.http_requests["/", "GET"] = metrics.http_responses["/", "GET", 200] = 1
    labels: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return labels


def dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((MONITORING / "grafana" / "dashboards" / "bough.json").read_text())
    return loaded


def rules() -> list[dict[str, Any]]:
    loaded = yaml.safe_load((MONITORING / "alerts.yml").read_text())
    return [rule for group in loaded["groups"] for rule in group["rules"]]


def queries(node: Any) -> Iterator[str]:
    """Every query in a dashboard, wherever it is; the choice of a data source is none."""
    if isinstance(node, dict):
        if node.get("type") == "datasource":
            return
        for key, value in node.items():
            if key in ("expr", "query") and isinstance(value, str):
                yield value
            else:
                yield from queries(value)
    elif isinstance(node, list):
        for value in node:
            yield from queries(value)


EXPRESSIONS = [*queries(dashboard()), *(rule["expr"] for rule in rules())]


@table("expression", EXPRESSIONS)
def test_every_query_is_one_that_prometheus_understands(expression: str) -> None:
    """Its grammar, the functions that it has, and the types of what they take."""
    asked = LABEL_VALUES.fullmatch(expression)
    promql_parser.parse((asked[1] if asked else expression).replace("$__rate_interval", "1m"))


@table("expression", EXPRESSIONS)
def test_every_metric_is_exported_with_the_labels_that_are_asked_for(expression: str) -> None:
    labels = exported()
    names = NAME.findall(expression)
    if expression.startswith("up{"):
        return
    assert names
    assert set(names) <= labels.keys()
    common = set.intersection(*(labels[name] for name in names)) | FROM_PROMETHEUS
    for selector in SELECTOR.finditer(expression):
        own = labels[selector["name"]] | FROM_PROMETHEUS if selector["name"] else common
        assert set(re.findall(r"(\w+) *(?:=~|!~|!=|=)", selector["matchers"])) <= own
    for grouping in GROUPING.finditer(expression):
        assert {label.strip() for label in grouping[1].split(",")} <= common


def test_a_counter_is_never_shown_without_a_rate() -> None:
    for expression in EXPRESSIONS:
        for name in re.findall(r"bough:\w+_total", expression):
            assert re.search(rf"(rate|increase|changes)\({name}\b", expression), expression


def test_panels_do_not_overlap_and_have_ids_of_their_own() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for grid in (panel["gridPos"] for panel in panels)
        for x in range(grid["x"], grid["x"] + grid["w"])
        for y in range(grid["y"], grid["y"] + grid["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) == 23


def test_alerts_say_how_bad_it_is_and_where() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert "$labels.instance" in rule["annotations"]["summary"]
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))


def test_a_pause_that_somebody_has_asked_for_is_no_standstill() -> None:
    expression = next(rule["expr"] for rule in rules() if rule["alert"] == "BoughStalled")
    assert expression.endswith(" unless bough:paused == 1")


def test_prometheus_reads_the_rules_and_the_route_of_the_metrics() -> None:
    from bough.entrypoints.http.routes import ROUTES

    config = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    assert all((MONITORING / name).exists() for name in config["rule_files"])
    (job,) = config["scrape_configs"]
    assert job["metrics_path"] in {route.path for route in ROUTES if route.is_probe}
    assert job["job_name"] in next(rule["expr"] for rule in rules() if rule["alert"] == "BoughDown")
