from __future__ import annotations

from types import SimpleNamespace

from tests.units_of_work import UnitsOfWork

TESTS = [
    "tests/e2e/test_serving.py::test_a",
    "tests/test_docs.py::test_a",
    "tests/e2e/test_streams.py::test_a",
    "tests/e2e/test_embeddings.py::test_a",
    "tests/test_docs.py::TestClass::test_a",
    "tests/e2e/test_serving.py::test_b[a::b]",
    "tests/e2e/test_embeddings.py::test_b",
]


class Node:
    shutting_down = False

    def __init__(self) -> None:
        self.gateway = SimpleNamespace(id="gw")
        self.tests: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.tests += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def test_tests_that_share_a_server_run_in_one_process_in_the_order_of_the_first() -> None:
    options = {"tx": ["2*popen"], "numprocesses": 2, "maxprocesses": None}
    config = SimpleNamespace(getvalue=options.get, option=SimpleNamespace(loadscopereorder=False))
    scheduler = UnitsOfWork(config)
    nodes = [Node(), Node()]
    for node in nodes:
        scheduler.add_node(node)
        scheduler.add_node_collection(node, TESTS)
    scheduler.schedule()
    assert [node.tests for node in nodes] == [[0, 2, 5], [1, 4, 3, 6]]
    scheduler.mark_test_complete(nodes[1], 1)
    assert nodes[1].tests == [1, 4, 3, 6]
