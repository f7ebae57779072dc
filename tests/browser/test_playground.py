from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import opened_page
from tests.e2e.server import Server, running_server

LONG = {"max_tokens": 900, "ignore_eos": True, "temperature": 0}
SPINBUTTONS = (
    *("Temperature", "Top-p", "Top-k", "Min-p", "Repetition penalty", "Frequency penalty", "Presence penalty"),
    *("Max tokens", "Seed"),
)
# Without the marks of turns, which are no text: every token is to be seen.
ENDLESS = {"logit_bias": {str(mark): -100 for mark in range(3)}}

GROUNDS = {"light": "rgb(251, 250, 247)", "dark": "rgb(19, 23, 21)"}


def expect_theme(page: Page, theme: str) -> None:
    expect(page.locator("body")).to_have_css("background-color", GROUNDS[theme])


def ask(page: Page, text: str) -> None:
    page.get_by_label("Your message", exact=True).fill(text)
    page.get_by_label("Your message", exact=True).press("Enter")


def wait_for_answers(page: Page, count: int) -> None:
    expect(page.locator(".message.assistant .stats")).to_have_count(count)


def answer_with(
    page: Page, *deltas: dict[str, object], finish: str = "stop", logprobs: list[dict[str, object]] | None = None
) -> list[dict[str, object]]:
    """Answer chat requests of the page with these deltas, the last with these tokens; returns the bodies it sends."""
    bodies: list[dict[str, object]] = []

    def chunk(delta: dict[str, object], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        if reason and logprobs:
            choice["logprobs"] = {"content": logprobs}
        return f"data: {json.dumps({'choices': [choice]})}\n\n"

    def fulfil(route: object) -> None:
        bodies.append(route.request.post_data_json)
        body = "".join(map(chunk, deltas)) + chunk({}, finish) + "data: [DONE]\n\n"
        route.fulfill(status=200, headers={"content-type": "text/event-stream"}, body=body)

    page.route("**/v1/chat/completions", fulfil)
    return bodies


def stream_answers(page: Page) -> Callable[[dict[str, object]], None]:
    """Let chat requests of the page stream what the function sends that is returned, and go on for ever."""
    page.evaluate(
        "() => { const { fetch } = window; window.fetch = (path, given) => path.endsWith('/completions')"
        " ? Promise.resolve(new Response(new ReadableStream({ start(stream) {"
        " window.send = (text) => stream.enqueue(new TextEncoder().encode(text));"
        " given.signal.addEventListener('abort', () => stream.error(given.signal.reason)); } })))"
        " : fetch(path, given); }"
    )

    def send(delta: dict[str, object]) -> None:
        page.evaluate("text => send(text)", f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta}]})}\n\n")

    return send


AT_END = "log => log.scrollHeight - log.scrollTop - log.clientHeight < 60"
PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def hold_answers(page: Page) -> list[object]:
    """Let chat requests of the page wait for ever; returns those that do."""
    held: list[object] = []
    page.route("**/v1/chat/completions", lambda route: held.append(route))
    return held


def test_a_conversation_is_streamed_and_goes_on(page: Page) -> None:
    ask(page, "How tall does an oak grow?")
    wait_for_answers(page, 1)
    expect(page.locator(".message.assistant").last).to_contain_text("metres")
    expect(page.locator(".stats").last).to_contain_text(re.compile(r"\d+ prompt tokens.*\d+ generated.*TTFT"))
    ask(page, "And a birch?")
    wait_for_answers(page, 2)
    expect(page.locator(".stats").last).to_contain_text("cached")


def test_an_answer_can_be_stopped(page: Page, server: Server) -> None:
    page.route(
        "**/v1/chat/completions", lambda route: route.continue_(post_data={**route.request.post_data_json, **LONG})
    )
    ask(page, "Tell me about trees.")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.wait_for_selector(".message.assistant .text")
    figures = re.compile(r"\d+ prompt tokens.*[1-9]\d* generated · \d+ tokens/s · .* of 4,096 tokens of context")
    expect(page.locator(".message.assistant .live")).to_have_text(figures)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".stats")).to_have_text(re.compile(figures.pattern + " · stopped"))
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()


EXAMPLES = {
    "A fact How tall": (r"30 metres", {}),
    "A sum": (r"83", {}),
    "JSON schema": (r'"name": "Marta"', {"response_format", "messages"}),
    "A tool call": (r"get_weather", {"tools", "tool_choice"}),
    "Thinking": (r"75", {"thinking"}),
}


def test_an_empty_conversation_proposes_what_to_ask(page: Page) -> None:
    page.locator("#temperature").fill("0")
    examples = page.get_by_role("region", name="Examples")
    for name, (answer, _) in EXAMPLES.items():
        examples.get_by_role("button", name=name).click()
        wait_for_answers(page, 1)
        expect(page.locator(".message.assistant")).to_contain_text(re.compile(answer))
        expect(examples).to_have_count(0)
        page.get_by_role("button", name="New conversation").click()


def test_an_example_asks_with_what_it_needs_and_nothing_else(page: Page) -> None:
    bodies = answer_with(page, {"content": "Yes."})
    examples = page.get_by_role("region", name="Examples")
    plain = {"model", "messages", "stream", "stream_options"}
    for name, (_, needed) in EXAMPLES.items():
        examples.get_by_role("button", name=name).focus()
        page.keyboard.press("Enter")
        wait_for_answers(page, 1)
        assert set(bodies[-1]) == plain | set(needed)
        expect(page.get_by_label("Your message", exact=True)).to_be_focused()
        expect(page.get_by_label("Your message", exact=True)).to_have_value("")
        page.get_by_role("button", name="New conversation").click()
        values = "ids => ids.map((id) => document.getElementById(id).value)"
        assert page.evaluate(values, ["form", "thinking", "tools"]) == ["text", "", ""], "as before the example"
    page.get_by_label("Tool definitions, a JSON list").fill('[{"type": "function", "function": {"name": "mine"}}]')
    examples.get_by_role("button", name="A story").click()
    wait_for_answers(page, 1)
    assert bodies[-1]["tools"][0]["function"]["name"] == "mine", "what somebody wrote stays"
    page.reload()
    expect(page.locator(".message.assistant")).to_be_visible()
    expect(examples).to_have_count(0)


def test_what_an_example_set_is_taken_back_and_set_again_with_its_conversation(page: Page) -> None:
    answer_with(page, {"content": "Yes."})
    values = "ids => ids.map((id) => document.getElementById(id).value)"
    page.locator("#schema").evaluate("area => { area.value = '{}'; }")
    page.get_by_role("region", name="Examples").get_by_role("button", name="JSON schema").click()
    wait_for_answers(page, 1)
    form, schema = page.evaluate(values, ["form", "schema"])
    assert (form, schema) != ("text", "{}")
    page.reload()
    expect(page.locator(".message")).to_have_count(2)
    page.get_by_role("button", name="New conversation").click()
    assert page.evaluate(values, ["form", "schema"]) == ["text", "{}"]
    page.get_by_role("button", name="Bring the last conversation back").click()
    assert page.evaluate(values, ["form", "schema"]) == [form, schema]


def test_other_models_are_asked_what_any_model_can_do(page: Page) -> None:
    for info, count in (({"is_generation": True, "model_path": "/m/other"}, 3), ({"is_generation": False}, 0)):
        page.route("**/model_info", partial(Route.fulfill, json=info))
        page.reload()
        page.wait_for_selector('#model:has-text("sapling")')
        expect(page.locator("#messages button")).to_have_count(count)


def test_a_message_is_sent_by_its_button_unless_it_is_blank(page: Page) -> None:
    bodies = answer_with(page, {"content": "Yes."})
    send = page.get_by_role("button", name="Send", exact=True)
    send.click()
    page.get_by_label("Your message", exact=True).fill(" \n ")
    send.click()
    expect(page.locator(".message")).to_have_count(0)
    page.get_by_label("Your message", exact=True).fill("First?")
    send.click()
    wait_for_answers(page, 1)
    expect(page.get_by_label("Your message", exact=True)).to_have_value("")
    assert [body["messages"] for body in bodies] == [[{"role": "user", "content": "First?"}]]


@pytest.mark.parametrize("told", [{"isComposing": True}, {"keyCode": 229}], ids=["as specified", "in Safari"])
def test_an_enter_that_ends_a_composition_sends_nothing(page: Page, told: dict[str, object]) -> None:
    bodies = answer_with(page, {"content": "はい。"})
    prompt = page.get_by_label("Your message", exact=True)
    prompt.fill("木")
    # As input methods do, for which Enter takes the characters that they propose.
    prompt.dispatch_event("keydown", {"key": "Enter", **told})
    expect(prompt).to_have_value("木")
    prompt.press("Enter")
    wait_for_answers(page, 1)
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Your message, to be changed").dispatch_event("keydown", {"key": "Enter", **told})
    expect(page.get_by_label("Your message, to be changed")).to_be_visible()
    assert len(bodies) == 1


@pytest.mark.parametrize("told", [{"isComposing": True}, {"keyCode": 229}], ids=["as specified", "in Safari"])
def test_an_escape_that_ends_a_composition_stops_nothing(page: Page, told: dict[str, object]) -> None:
    answer_with(page, {"content": "はい。"})
    ask(page, "木")
    wait_for_answers(page, 1)
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Your message, to be changed").dispatch_event("keydown", {"key": "Escape", **told})
    expect(page.get_by_label("Your message, to be changed")).to_be_visible()
    page.unroute("**/v1/chat/completions")
    hold_answers(page)
    ask(page, "水")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.get_by_label("Your message", exact=True).dispatch_event("keydown", {"key": "Escape", **told})
    page.wait_for_timeout(200)
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()


def test_an_escape_that_is_for_something_else_stops_no_answer(page: Page) -> None:
    page.evaluate("sessionStorage.setItem('bough.key', 'one')")
    page.reload()
    page.wait_for_selector('#model:has-text("sapling")')
    hold_answers(page)
    ask(page, "x")
    stop = page.get_by_role("button", name="Stop")
    expect(stop).to_be_visible()
    page.get_by_role("button", name="Key", exact=True).click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("tab", name="Engine").click()
    page.keyboard.press("Escape")
    page.wait_for_timeout(200)
    page.get_by_role("tab", name="Chat").click()
    expect(stop).to_be_visible()
    page.keyboard.press("Escape")
    expect(stop).to_be_hidden()


def test_enter_makes_a_new_line_where_fingers_type(browser: Browser, server: Server) -> None:
    with opened_page(browser, server.url, has_touch=True, is_mobile=True) as page:
        page.wait_for_selector('#model:has-text("sapling")')
        bodies = answer_with(page, {"content": "Yes."})
        prompt = page.get_by_label("Your message", exact=True)
        prompt.press_sequentially("First,")
        prompt.press("Enter")
        prompt.press_sequentially("second?")
        page.get_by_role("button", name="Send", exact=True).tap()
        wait_for_answers(page, 1)
        assert bodies[0]["messages"] == [{"role": "user", "content": "First,\nsecond?"}]


def test_what_is_typed_during_an_answer_waits_for_its_end(page: Page) -> None:
    held = hold_answers(page)
    ask(page, "First?")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    ask(page, "Second?")
    expect(page.get_by_label("Your message", exact=True)).to_have_value("Second?")
    expect(page.locator(".message.user")).to_have_count(1)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()
    assert len(held) == 1
    page.unroute("**/v1/chat/completions")
    answer_with(page, {"content": "Yes."})
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".message.user")).to_have_count(2)
    expect(page.locator(".message.assistant").last).to_contain_text("Yes.")


def test_a_new_conversation_ends_the_answer_of_the_old_one(page: Page) -> None:
    hold_answers(page)
    ask(page, "First?")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    with page.expect_event("requestfailed"):
        page.get_by_role("button", name="New conversation").click()
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()
    expect(page.get_by_label("Your message", exact=True)).to_be_focused()
    expect(page.locator(".message")).to_have_count(0)
    page.unroute("**/v1/chat/completions")
    bodies = answer_with(page, {"content": "Yes."})
    ask(page, "Second?")
    wait_for_answers(page, 1)
    assert bodies[0]["messages"] == [{"role": "user", "content": "Second?"}]


def test_the_conversation_before_a_new_one_comes_back(page: Page) -> None:
    bodies = answer_with(page, {"content": "Yes."})
    for count in (1, 2):
        ask(page, f"Question {count}?")
        wait_for_answers(page, count)
    new, back = (
        page.get_by_role("button", name=name) for name in ("New conversation", "Bring the last conversation back")
    )
    expect(back).to_have_count(0)
    new.click()
    new.click()
    back.click()
    expect(page.locator(".message")).to_have_count(4)
    expect(back).to_have_count(0)
    page.reload()
    expect(page.locator(".message")).to_have_count(4)
    new.click()
    ask(page, "Something else?")
    wait_for_answers(page, 1)
    expect(back).to_have_count(0)
    assert bodies[-1]["messages"] == [{"role": "user", "content": "Something else?"}]
    new.click()
    back.click()
    expect(page.locator(".message.user")).to_contain_text("Something else?")


def test_a_running_answer_outlives_a_reload_as_far_as_it_came(page: Page) -> None:
    send = stream_answers(page)
    ask(page, "x")
    kept = "() => sessionStorage.getItem('bough.conversation').includes('Half an')"
    for part in ("Half", " an", " answer"):
        send({"content": part})
        page.wait_for_timeout(600)
    assert page.evaluate(kept), "not only what leaves the page keeps it: a crash does not say so"
    send({"content": " is enough"})
    expect(page.locator(".message.assistant .text")).to_have_text("Half an answer is enough")
    page.reload()
    expect(page.locator(".message.assistant .text")).to_have_text("Half an answer is enough")
    expect(page.locator(".stats")).to_contain_text("stopped")


def test_a_conversation_too_long_to_be_kept_is_told(page: Page) -> None:
    answer_with(page, {"content": "x" * 1_000_000})
    expect(page.locator("#unkept")).to_have_text("")
    ask(page, "x")
    wait_for_answers(page, 1)
    expect(page.locator("#unkept")).to_contain_text("too long to be kept")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator("#unkept")).to_have_text("")


def test_a_question_that_failed_is_asked_once_with_the_next(page: Page) -> None:
    page.route("**/v1/chat/completions", lambda route: route.abort())
    ask(page, "First?")
    expect(page.get_by_role("alert")).to_be_visible()
    ask(page, "First?")
    expect(page.get_by_role("alert")).to_have_count(2)
    page.unroute("**/v1/chat/completions")
    bodies = answer_with(page, {"content": "Yes."})
    ask(page, "In short.")
    expect(page.locator(".message.assistant").last).to_contain_text("Yes.")
    assert bodies[0]["messages"] == [{"role": "user", "content": "First?\n\nIn short."}]


def test_of_questions_that_failed_in_turns_each_is_asked_once(page: Page) -> None:
    page.route("**/v1/chat/completions", lambda route: route.abort())
    for count, question in enumerate(("First?", "In short.", "In short.", "First?"), 1):
        ask(page, question)
        expect(page.get_by_role("alert")).to_have_count(count)
    page.unroute("**/v1/chat/completions")
    bodies = answer_with(page, {"content": "Yes."})
    ask(page, "In short.")
    wait_for_answers(page, 1)
    ask(page, "First?")
    wait_for_answers(page, 2)
    question = {"role": "user", "content": "First?\n\nIn short."}
    assert bodies[0]["messages"] == [question]
    assert bodies[1]["messages"] == [
        question,
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "First?"},
    ]


def test_answers_are_made_anew_and_questions_changed(page: Page) -> None:
    bodies = answer_with(page, {"content": "Yes."})
    ask(page, "First?")
    wait_for_answers(page, 1)
    page.get_by_role("button", name="Regenerate").click()
    expect(page.get_by_role("button", name="Regenerate")).to_have_count(1)
    wait_for_answers(page, 1)
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Your message, to be changed").fill("Second?")
    page.get_by_label("Your message, to be changed").press("Enter")
    expect(page.locator(".message.user")).to_have_text(re.compile("Second"))
    wait_for_answers(page, 1)
    assert [[m["content"] for m in body["messages"]] for body in bodies] == [["First?"], ["First?"], ["Second?"]]


def test_what_follows_a_changed_turn_is_forgotten(page: Page) -> None:
    bodies = answer_with(page, {"content": "Yes."})
    for count, question in enumerate(("First?", "Second?"), 1):
        ask(page, question)
        wait_for_answers(page, count)
    page.get_by_role("button", name="Edit").first.click()
    area = page.get_by_label("Your message, to be changed")
    send = page.locator(".message.user").get_by_role("button", name="Send", exact=True)
    area.fill(" ")
    send.click()
    expect(area).to_be_visible()
    area.fill("Third?")
    area.press("Shift+Enter")
    area.press_sequentially("And why?")
    send.click()
    wait_for_answers(page, 1)
    expect(page.locator(".message.user .plain")).to_have_text("Third?\nAnd why?", use_inner_text=True)
    ask(page, "Fourth?")
    wait_for_answers(page, 2)
    page.get_by_role("button", name="Regenerate").first.click()
    wait_for_answers(page, 1)
    expect(page.locator(".message")).to_have_count(2)
    question = [{"role": "user", "content": "Third?\nAnd why?"}]
    assert [body["messages"] for body in (bodies[2], bodies[4])] == [question, question]
    assert len(bodies) == 5


def test_what_followed_a_changed_turn_can_be_brought_back_until_the_next_question(page: Page) -> None:
    answer_with(page, {"content": "Yes."})
    for count, question in enumerate(("First?", "Second?"), 1):
        ask(page, question)
        wait_for_answers(page, count)
    back = page.get_by_role("button", name="Bring back what this replaced")
    for name in ("Regenerate", "Edit"):
        with page.expect_response("**/v1/chat/completions"):
            page.get_by_role("button", name=name).last.click()
            if name == "Edit":
                page.get_by_label("Your message, to be changed").fill("Last?")
                page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Regenerate")).to_have_count(2)
        expect(back).to_have_count(0)
    page.get_by_role("button", name="Edit").first.click()
    page.get_by_label("Your message, to be changed").fill("Third?")
    page.keyboard.press("Enter")
    for _ in range(2):
        expect(page.locator(".message")).to_have_count(2)
        expect(back).to_be_visible()
        with page.expect_response("**/v1/chat/completions"):
            page.get_by_role("button", name="Regenerate").click()
    back.click()
    expect(page.locator(".message.user .plain")).to_have_text(["First?", "Last?"])
    expect(page.locator(".message.assistant .text")).to_have_text(["Yes.", "Yes."])
    expect(back).to_have_count(0)
    page.reload()
    expect(page.locator(".message")).to_have_count(4)
    page.get_by_role("button", name="Regenerate").first.click()
    expect(back).to_be_visible()
    ask(page, "Fourth?")
    wait_for_answers(page, 2)
    expect(back).to_have_count(0)


@pytest.mark.parametrize("key", ["", "Escape"])
def test_a_change_can_be_left_while_another_answer_runs(page: Page, key: str) -> None:
    answer_with(page, {"content": "Yes."})
    ask(page, "First?")
    wait_for_answers(page, 1)
    page.unroute("**/v1/chat/completions")
    hold_answers(page)
    page.get_by_role("button", name="Edit").click()
    ask(page, "Second?")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    if key:
        page.get_by_label("Your message, to be changed").press(key)
    else:
        page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".message.user").first).to_contain_text("First?")
    expect(page.get_by_role("button", name="Stop")).to_be_focused()  # the answer still runs
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Edit")).to_have_count(2)


def test_an_answer_comes_back_if_no_new_one_comes(page: Page) -> None:
    answer_with(page, {"content": "Yes."})
    ask(page, "First?")
    wait_for_answers(page, 1)
    page.locator("#temperature").fill("7")
    page.get_by_role("button", name="Regenerate").click()
    expect(page.get_by_role("alert")).to_contain_text("Temperature: ")
    expect(page.locator(".message.assistant")).to_contain_text("Yes.")
    page.locator("#temperature").fill("")
    page.unroute("**/v1/chat/completions")
    page.route("**/v1/chat/completions", lambda route: route.abort())
    page.get_by_role("button", name="Regenerate").click()
    expect(page.get_by_role("alert")).to_have_text("This failed: the server cannot be reached")
    expect(page.locator(".message.assistant")).to_contain_text("Yes.")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Your message, to be changed").fill("Second?")
    page.get_by_label("Your message, to be changed").press("Enter")
    expect(page.get_by_role("alert")).to_have_text("This failed: the server cannot be reached")
    expect(page.get_by_label("Your message, to be changed")).to_have_value("Second?")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".message.user")).to_contain_text("First?")
    page.reload()
    expect(page.locator(".message")).to_have_count(2)


@pytest.mark.parametrize("way", ["reload", "new conversation"])
def test_what_a_new_answer_is_to_replace_is_kept_until_there_is_one(page: Page, way: str) -> None:
    answer_with(page, {"content": "Yes."})
    for count in (1, 2):
        ask(page, f"Question {count}?")
        wait_for_answers(page, count)
    page.unroute("**/v1/chat/completions")
    hold_answers(page)
    page.get_by_role("button", name="Regenerate").first.click()
    expect(page.locator(".message")).to_have_count(2)
    if way == "reload":
        page.reload()
    else:
        page.get_by_role("button", name="New conversation").click()
        page.get_by_role("button", name="Bring the last conversation back").click()
    expect(page.locator(".message")).to_have_count(4)
    expect(page.locator(".message.assistant .text")).to_have_text(["Yes.", "Yes."])


def test_a_question_stays_in_its_place_if_the_settings_are_wrong(page: Page) -> None:
    page.locator("#temperature").fill("7")
    ask(page, "Kept?")
    expect(page.get_by_role("alert")).to_contain_text("Temperature: ")
    expect(page.get_by_label("Your message", exact=True)).to_have_value("Kept?")
    expect(page.locator(".message")).to_have_count(0)


def test_every_setting_reaches_the_server(page: Page) -> None:
    bodies = answer_with(page, {"content": "{}"})
    numbers = {"temperature": 0.5, "top_p": 0.9, "top_k": 7, "min_p": 0.1, "repetition_penalty": 1.1}
    numbers |= {"frequency_penalty": 0.2, "presence_penalty": -0.3, "max_tokens": 33, "seed": 4}
    for name, value in numbers.items():
        page.locator(f"#{name}").fill(str(value))
    page.get_by_label("Stop sequences").fill("END\n\n two words")
    page.get_by_label("System prompt").fill("Be short.")
    page.get_by_label("Response format").select_option("json_schema")
    page.get_by_label("JSON schema").fill('{"type": "object"}')
    page.get_by_role("button", name="Insert an example").click()
    page.get_by_label("Tool choice").select_option("required")
    page.get_by_label("Thinking").select_option("off")
    ask(page, "x")
    wait_for_answers(page, 1)
    body = bodies[0]
    assert body["thinking"] is False
    assert {name: body[name] for name in numbers} == numbers
    assert body["stop"] == ["END", " two words"]
    assert body["messages"][0] == {"role": "system", "content": "Be short."}
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert body["tools"][0]["function"]["name"] == "get_weather"
    assert (body["tool_choice"], body["stream"]) == ("required", True)
    page.reload()
    page.wait_for_selector('#model:has-text("sapling")')
    page.get_by_label("Thinking").select_option("on")
    page.get_by_label("Tool choice").select_option("none")
    page.get_by_label("Response format").select_option("json_object")
    ask(page, "y")
    wait_for_answers(page, 2)
    assert bodies[1] == {
        **{name: value for name, value in body.items() if name != "messages"},
        "messages": [*body["messages"], {"role": "assistant", "content": "{}"}, {"role": "user", "content": "y"}],
        "thinking": True,
        "tool_choice": "none",
        "response_format": {"type": "json_object"},
    }, "settings outlive a reload"


def test_a_setting_put_back_is_asked_for_no_more(page: Page) -> None:
    bodies = answer_with(page, {"content": "{}"})
    form, schema = page.get_by_label("Response format"), page.get_by_label("JSON schema")
    thinking, logprobs = page.get_by_label("Thinking"), page.get_by_label("Logprobs")
    expect(schema).to_be_hidden()
    form.select_option("json_schema")
    expect(schema).to_be_visible()
    form.select_option("json_object")
    expect(schema).to_be_hidden()
    thinking.select_option("on")
    logprobs.check()
    page.get_by_role("button", name="Insert an example").click()
    page.reload()
    page.wait_for_selector('#model:has-text("sapling")')
    expect(logprobs).to_be_checked()
    ask(page, "x")
    wait_for_answers(page, 1)
    assert (bodies[0]["logprobs"], bodies[0]["tool_choice"]) == (True, "auto")
    form.select_option("text")
    thinking.select_option("")
    logprobs.uncheck()
    page.get_by_label("Tool definitions, a JSON list").fill(" ")
    ask(page, "y")
    wait_for_answers(page, 2)
    assert set(bodies[1]) == {"model", "messages", "stream", "stream_options"}


def test_a_change_of_the_settings_writes_down_no_conversation(page: Page) -> None:
    answer_with(page, {"content": "Yes."})
    ask(page, "x")
    wait_for_answers(page, 1)
    page.evaluate(
        "() => { const set = Storage.prototype.setItem; window.written = [];"
        " Storage.prototype.setItem = function (...given) { window.written.push(given[0]); set.apply(this, given); }; }"
    )
    page.get_by_label("System prompt").press_sequentially("Be short.")
    assert set(page.evaluate("window.written")) == {"bough.settings"}
    page.reload()
    expect(page.get_by_label("System prompt")).to_have_value("Be short.")
    expect(page.locator(".message.assistant")).to_contain_text("Yes.")


def test_a_setting_that_cannot_be_is_named(page: Page) -> None:
    wrong = {"temperature": "7", "top_p": "1.5", "top_k": "-2", "min_p": "2", "repetition_penalty": "3"}
    wrong |= {"frequency_penalty": "3", "presence_penalty": "-2.5", "max_tokens": "0", "seed": "1.5"}
    for (name, value), label in zip(wrong.items(), SPINBUTTONS, strict=True):
        page.locator(f"#{name}").fill(value)
        for _ in range(2):
            ask(page, "x")
            expect(page.get_by_role("alert")).to_contain_text(f"{label}: ")  # once
        expect(page.locator(f"#{name}")).to_be_focused()
        expect(page.locator(f"#{name}")).to_be_in_viewport()
        page.locator(f"#{name}").fill("")
    page.get_by_label("Tool definitions, a JSON list").fill("[{")
    ask(page, "x")
    expect(page.get_by_role("alert")).to_contain_text("Tool definitions, a JSON list: this is no JSON")
    expect(page.get_by_label("Tool definitions, a JSON list")).to_be_focused()
    page.get_by_label("Response format").select_option("json_schema")
    page.get_by_label("JSON schema").fill("{")
    ask(page, "x")
    expect(page.get_by_role("alert")).to_contain_text("JSON schema: this is no JSON")
    expect(page.get_by_label("JSON schema")).to_be_focused()
    expect(page.locator(".message")).to_have_count(0)


def test_an_example_of_tools_takes_the_place_of_none(page: Page) -> None:
    tools, example = (
        page.get_by_label("Tool definitions, a JSON list"),
        page.get_by_role("button", name="Insert an example"),
    )
    tools.fill("[{")
    expect(example).to_be_disabled()
    page.reload()
    page.wait_for_selector('#model:has-text("sapling")')
    expect(tools).to_have_value("[{")
    expect(example).to_be_disabled()
    tools.fill(" ")
    page.keyboard.press("Tab")
    expect(example).to_be_focused()
    page.keyboard.press("Enter")
    expect(tools).to_have_value(re.compile("get_weather"))
    expect(tools).to_be_focused()
    expect(example).to_be_disabled()


def test_settings_are_folded_and_opened_by_what_is_wrong_in_them(page: Page) -> None:
    temperature = page.get_by_label("Temperature")
    temperature.fill("7")
    page.get_by_text("Settings", exact=True).click()
    expect(temperature).to_be_hidden()
    ask(page, "x")
    expect(page.get_by_role("alert")).to_contain_text("Temperature: ")
    expect(temperature).to_be_visible()
    page.set_viewport_size({"width": 360, "height": 740})
    page.reload()
    page.wait_for_selector('#model:has-text("sapling")')
    expect(temperature).to_be_hidden()
    page.get_by_text("Settings", exact=True).click()
    expect(temperature).to_have_value("7")
    expect(temperature).to_be_visible()


def test_folded_settings_leave_their_room_to_the_chat(page: Page) -> None:
    width = "box => box.getBoundingClientRect().width"
    conversation = page.locator(".conversation")
    assert conversation.evaluate(width) < 1000
    page.get_by_text("Settings", exact=True).click()
    expect(page.get_by_label("Temperature")).to_be_hidden()
    assert conversation.evaluate(width) > 1200
    page.get_by_text("Settings", exact=True).click()
    expect(page.get_by_label("Temperature")).to_be_visible()
    assert conversation.evaluate(width) < 1000


def test_json_follows_a_schema(page: Page) -> None:
    page.get_by_label("Response format").select_option("json_schema")
    ask(page, "Describe the oak.")
    wait_for_answers(page, 1)
    answer = json.loads(page.locator(".message.assistant .text").inner_text())
    assert set(answer) == {"name", "height_m", "evergreen"}


@pytest.mark.parametrize("form", ["json_object", "json_schema"])
def test_json_is_shown_as_it_came(page: Page, form: str) -> None:
    text = r'{"path": "C:\\dir", "expr": "2*3*4", "name": "_a_  **b**"}'
    answer_with(page, {"content": text[:9]}, {"content": text[9:]})
    page.get_by_label("Response format").select_option(form)
    ask(page, "x")
    wait_for_answers(page, 1)
    shown = page.locator(".message.assistant pre.text")
    assert shown.evaluate("pre => pre.textContent") == text
    page.get_by_label("Response format").select_option("text")
    page.reload()
    expect(shown).to_be_visible()
    assert shown.evaluate("pre => pre.textContent") == text, "what was asked for then counts"
    ask(page, "y")
    wait_for_answers(page, 2)
    expect(page.locator(".message.assistant").last.locator("pre")).to_have_count(0)


def test_tokens_tell_how_likely_they_were(page: Page) -> None:
    page.get_by_label("Logprobs").check()
    ask(page, "Why do leaves fall?")
    wait_for_answers(page, 1)
    page.locator(".token").nth(2).hover()
    expect(page.locator(".told")).to_contain_text(re.compile(r'^".+": \d+\.\d %\. Likeliest: '))
    before = page.locator(".told").inner_text()
    page.locator(".token").nth(2).focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".token").nth(3)).to_be_focused()
    expect(page.locator(".told")).not_to_have_text(before)
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".told")).to_have_text(before)


def test_the_answer_stays_readable_above_its_tokens(page: Page) -> None:
    parts = [{"token": "\ufffd", "bytes": [226, 128], "logprob": -0.1}, {"token": "<|im_end|>", "logprob": 0.0}]
    bodies = answer_with(page, {"content": "**Yes**"}, logprobs=parts)
    page.get_by_label("Logprobs").check()
    ask(page, "x")
    wait_for_answers(page, 1)
    assert bodies[0]["top_logprobs"] == 5
    expect(page.locator(".message.assistant .text strong")).to_have_text("Yes")
    expect(page.locator(".token")).to_have_text(["\\xe2\\x80", "<|im_end|>"])


def test_the_model_thinks_if_it_is_told_to(page: Page) -> None:
    page.locator("#temperature").fill("0")
    page.get_by_label("Thinking").select_option("on")
    ask(page, "What is 12 + 5?")
    wait_for_answers(page, 1)
    expect(page.locator(".message.assistant .text")).to_contain_text("17")
    thoughts = page.locator("details.thoughts")
    thoughts.locator("summary").click()
    expect(thoughts.locator("div")).not_to_have_text("")
    ask(page, "What is 12 + 6?")
    wait_for_answers(page, 2)
    expect(thoughts.first.locator("div")).to_be_visible()


def test_thoughts_are_folded(page: Page) -> None:
    answer_with(page, {"reasoning_content": "Let me **see**."}, {"content": "Four."})
    ask(page, "2 + 2?")
    wait_for_answers(page, 1)
    thoughts = page.locator("details.thoughts")
    expect(thoughts.locator("strong")).to_be_hidden()
    thoughts.locator("summary").click()
    expect(thoughts.locator("strong")).to_have_text("see")


def test_tool_calls_are_shown_and_answered(page: Page) -> None:
    call = {"index": 0, "id": "call_1", "function": {"name": "get_weather", "arguments": '{"place":'}}
    bodies = answer_with(
        page, {"tool_calls": [call]}, {"tool_calls": [{"index": 0, "function": {"arguments": ' "Ulm"}'}}]}
    )
    ask(page, "Weather in Ulm?")
    wait_for_answers(page, 1)
    expect(page.get_by_label("Arguments")).to_have_text('{\n  "place": "Ulm"\n}')
    ask(page, "Hello?")
    expect(page.get_by_role("alert")).to_contain_text("waits for its result")
    page.unroute("**/v1/chat/completions")
    bodies = answer_with(page, {"content": "Sunny."})
    page.get_by_label("Result of get_weather").fill("sun")
    page.get_by_role("button", name="Send result").click()
    wait_for_answers(page, 2)
    function = {"name": "get_weather", "arguments": '{"place": "Ulm"}'}
    assert bodies[0]["messages"][1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        },
        {"role": "tool", "content": "sun", "tool_call_id": "call_1"},
    ]


def test_the_result_of_a_call_reaches_the_model_that_made_it(page: Page) -> None:
    page.locator("#temperature").fill("0")
    page.get_by_role("region", name="Examples").get_by_role("button", name="A tool call").click()
    wait_for_answers(page, 1)
    page.get_by_label("Result of get_weather").fill('{"temperature": 17, "sky": "sunny"}')
    page.get_by_role("button", name="Send result").click()
    wait_for_answers(page, 2)
    expect(page.locator(".message.assistant .text").last).to_contain_text(re.compile("17|sunny"))


def test_arguments_of_a_call_are_shown_as_the_model_wrote_them(page: Page) -> None:
    arguments = r'{"id":12345678901234567890,"x":1.0,"x":[],"text":"{\"a\": [1,2]}, \u00e9","of":[-1e5,{"y":{}}]}'
    call = {"index": 0, "id": "call_1", "function": {"name": "f", "arguments": arguments}}
    answer_with(page, {"tool_calls": [call]})
    ask(page, "x")
    wait_for_answers(page, 1)
    assert page.get_by_label("Arguments").evaluate("pre => pre.textContent").split("\n") == [
        "{",
        '  "id": 12345678901234567890,',
        '  "x": 1.0,',
        '  "x": [],',
        r'  "text": "{\"a\": [1,2]}, \u00e9",',
        '  "of": [',
        "    -1e5,",
        "    {",
        '      "y": {}',
        "    }",
        "  ]",
        "}",
    ]


def test_several_tools_are_answered_in_any_order(page: Page) -> None:
    calls = [
        {"index": at, "id": f"call_{at}", "function": {"name": f"tool_{at}", "arguments": "{}"}} for at in range(2)
    ]
    answer_with(page, {"tool_calls": calls})
    ask(page, "x")
    wait_for_answers(page, 1)
    page.unroute("**/v1/chat/completions")
    bodies = answer_with(page, {"content": "Done."})
    page.get_by_label("Result of tool_0").fill("half-typed")
    page.get_by_label("Result of tool_1").fill("one")
    page.get_by_role("button", name="Send result").last.click()
    expect(page.get_by_label("Result of tool_1")).to_have_count(0)
    expect(page.get_by_label("Result of tool_0")).to_have_value("half-typed")
    expect(page.get_by_label("Result of tool_0")).to_be_focused()
    assert bodies == []
    page.get_by_role("button", name="Send result").click()
    wait_for_answers(page, 2)
    results = {each["tool_call_id"]: each["content"] for each in bodies[0]["messages"] if each["role"] == "tool"}
    assert results == {"call_0": "half-typed", "call_1": "one"}


@pytest.mark.parametrize(
    ("arguments", "finish"), [('{"place": "U', "length"), ('{"place": "Ulm"}', "length"), ('{"place": "U', "stop")]
)
def test_a_call_that_is_not_complete_holds_nothing_up(page: Page, arguments: str, finish: str) -> None:
    call = {"index": 0, "id": "call_1", "function": {"name": "get_weather", "arguments": arguments}}
    bodies = answer_with(page, {"content": "Let me see."}, {"tool_calls": [call]}, finish=finish)
    ask(page, "Weather in Ulm?")
    wait_for_answers(page, 1)
    expect(page.locator(".call")).to_contain_text("Not complete")
    expect(page.get_by_label("Result of get_weather")).to_have_count(0)
    ask(page, "And now?")
    wait_for_answers(page, 2)
    assert bodies[1]["messages"] == [
        {"role": "user", "content": "Weather in Ulm?"},
        {"role": "assistant", "content": "Let me see."},
        {"role": "user", "content": "And now?"},
    ]


def test_a_call_in_which_an_answer_was_stopped_holds_nothing_up(page: Page) -> None:
    send = stream_answers(page)
    ask(page, "Weather in Ulm?")
    send({"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "get_weather", "arguments": "{}"}}]})
    expect(page.locator(".call")).to_contain_text("get_weather")
    page.get_by_role("button", name="Stop").click()
    wait_for_answers(page, 1)
    expect(page.get_by_label("Result of get_weather")).to_have_count(0)
    ask(page, "And now?")
    expect(page.locator(".message.user")).to_have_count(2)


def test_a_call_can_be_left_unanswered(page: Page) -> None:
    calls = [
        {"index": at, "id": f"call_{at}", "function": {"name": f"tool_{at}", "arguments": "{}"}} for at in range(2)
    ]
    answer_with(page, {"content": "Let me see."}, {"tool_calls": calls})
    ask(page, "x")
    wait_for_answers(page, 1)
    page.unroute("**/v1/chat/completions")
    bodies = answer_with(page, {"content": "Done."})
    page.get_by_label("Result of tool_1").fill("one")
    page.get_by_role("button", name="Send result").last.click()
    page.get_by_role("button", name="Leave unanswered").click()
    wait_for_answers(page, 2)
    told, result = bodies[0]["messages"][1:]
    assert [call["id"] for call in told["tool_calls"]] == ["call_1"]
    assert result == {"role": "tool", "content": "one", "tool_call_id": "call_1"}
    page.get_by_role("button", name="Regenerate").first.click()
    wait_for_answers(page, 1)
    page.unroute("**/v1/chat/completions")
    answer_with(page, {"tool_calls": calls})
    page.get_by_role("button", name="Regenerate").click()
    for left in (2, 1):
        expect(page.get_by_role("button", name="Leave unanswered")).to_have_count(left)
        page.get_by_role("button", name="Leave unanswered").first.click()
    expect(page.get_by_label("Your message", exact=True)).to_be_focused()
    expect(page.locator(".call").last).to_contain_text("Left unanswered")
    page.reload()
    expect(page.locator(".call").last).to_contain_text("Left unanswered")
    page.unroute("**/v1/chat/completions")
    bodies = answer_with(page, {"content": "Hello."})
    ask(page, "Hello?")
    expect(page.locator(".message.assistant").last).to_contain_text("Hello.")
    assert bodies[0]["messages"] == [{"role": "user", "content": "x\n\nHello?"}]


def test_texts_are_copied_with_and_without_a_clipboard(page: Page) -> None:
    answer_with(page, {"content": "A\n\n```\nx = 1\n```"})
    ask(page, "x")
    wait_for_answers(page, 1)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy text").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "A\n\n```\nx = 1\n```"
    # As on a page that came neither over https nor from this machine.
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.get_by_label("Your message", exact=True).fill("")
    page.get_by_role("button", name="Copy", exact=True).click()
    page.get_by_label("Your message", exact=True).press("Control+V")
    expect(page.get_by_label("Your message", exact=True)).to_have_value("x = 1")


def test_a_text_that_could_not_be_copied_is_told(page: Page) -> None:
    answer_with(page, {"content": "A"})
    ask(page, "x")
    wait_for_answers(page, 1)
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.evaluate("document.execCommand = () => false")
    page.get_by_role("button", name="Copy text").click()
    expect(page.get_by_role("button", name="Not allowed here")).to_be_visible()
    expect(page.get_by_role("button", name="Copy text")).to_be_visible()


def test_a_long_stream_is_shown_to_its_end(page: Page) -> None:
    page.route(
        "**/v1/chat/completions",
        lambda route: route.continue_(post_data={**route.request.post_data_json, **LONG, **ENDLESS}),
    )
    ask(page, "Tell me about trees.")
    expect(page.locator(".stats")).to_contain_text("900 generated", timeout=60_000)
    expect(page.locator(".stats")).to_contain_text("cut off at max tokens")
    assert len(page.locator(".message.assistant .text").inner_text()) > 900
    assert page.locator("#messages").evaluate(AT_END)


def test_the_end_of_an_answer_is_followed_while_the_engine_is_shown(page: Page) -> None:
    send = stream_answers(page)
    log, shown = page.locator("#messages"), page.locator(".message.assistant .text")
    chat, engine = (page.get_by_role("tab", name=name) for name in ("Chat", "Engine"))
    ask(page, "x")

    def send_lines(last: str) -> None:
        send({"content": "line\n\n" * 60 + f"{last}\n\n"})
        expect(shown).to_contain_text(last)

    send_lines("one")
    engine.click()
    send_lines("two")
    chat.click()
    assert log.evaluate(AT_END)
    send_lines("three")
    assert log.evaluate(AT_END)
    # Whoever reads what is further up goes on doing so.
    log.evaluate("log => { log.scrollTop = 100; }")
    page.wait_for_function(PAINTED)
    for view in (engine, chat):
        view.click()
        send_lines(f"four {view.inner_text()}")
    assert log.evaluate("log => log.scrollTop") == 100
    engine.click()
    page.evaluate("document.getElementById('stop').click()")
    chat.click()
    wait_for_answers(page, 1)
    assert log.evaluate("log => log.scrollTop") == 100


def test_thoughts_that_are_unfolded_are_not_scrolled_away(page: Page) -> None:
    send = stream_answers(page)
    ask(page, "x")
    send({"reasoning_content": "line\n\n" * 60})
    page.locator(".thoughts summary").click()
    page.wait_for_function(PAINTED)
    before = page.locator("#messages").evaluate("log => log.scrollTop")
    send({"content": "There."})
    expect(page.locator(".message.assistant .text")).to_have_text("There.")
    assert page.locator("#messages").evaluate("log => log.scrollTop") == before


def test_markdown_is_rendered_and_nothing_in_it_runs(page: Page) -> None:
    text = (
        "# Title\n\nA *word*, **bold**, `code` & <img src=x onerror=alert(1)> [site](https://example.org) "
        "[bad](javascript:alert(1))\n\n- one\n- two\n  1. deep\n\n> quote\n\n```py\nx < 1\n```\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    answer_with(page, {"content": text})
    ask(page, "x")
    wait_for_answers(page, 1)
    shown = page.locator(".message.assistant .text")
    for selector, content in {
        "h3": "Title", "em": "word", "strong": "bold", "p code": "code", "li li": "deep", "blockquote": "quote",
        "pre": "x < 1", "th >> nth=1": "b", "td >> nth=0": "1", "a": "site",
    }.items():  # fmt: skip
        expect(shown.locator(selector)).to_have_text(content)
    expect(shown.locator("img, script")).to_have_count(0)
    expect(shown).to_contain_text("<img src=x onerror=alert(1)>")
    assert shown.locator("a").get_attribute("href") == "https://example.org"


def rendered(page: Page, text: str) -> str:
    """A Markdown text as HTML."""
    script = "text => import('/playground/markdown.js').then(({ show }) => {" + (
        " const box = document.createElement('div'); show(box, text); return box.innerHTML; })"
    )
    return page.evaluate(script, text)


CODE = (
    '<div class="code"><button type="button" class="copy" aria-live="polite">Copy</button>'
    '<pre tabindex="0" aria-label="{label}"><code>{code}</code></pre></div>'
)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("***both***", "<p><em><strong>both</strong></em></p>"),
        ("**a *b* c** *d **e***", "<p><strong>a <em>b</em> c</strong> <em>d <strong>e</strong></em></p>"),
        ("**bold over\ntwo** ~~gone~~", "<p><strong>bold over<br>two</strong> <del>gone</del></p>"),
        (
            "5 * 3 * 2, snake_case_name, **「木」**です",
            "<p>5 * 3 * 2, snake_case_name, <strong>「木」</strong>です</p>",
        ),
        ("**open and `a*b*` and __x__", "<p>**open and <code>a*b*</code> and <strong>x</strong></p>"),
        ("It was\n1986. Then\n- one", "<p>It was<br>1986. Then</p><ul><li><p>one</p></li></ul>"),
        ("Steps:\n1. one\n2. two", '<p>Steps:</p><ol start="1"><li><p>one</p></li><li><p>two</p></li></ol>'),
        ("- a\n1. b\n- c", '<ul><li><p>a</p></li></ul><ol start="1"><li><p>b</p></li></ol><ul><li><p>c</p></li></ul>'),
        ("- a\n  1. b\n- c", '<ul><li><p>a</p><ol start="1"><li><p>b</p></li></ol></li><li><p>c</p></li></ul>'),
        ("Oak\n===\nElm\n---\nAsh\n\n---", "<h3>Oak</h3><h4>Elm</h4><p>Ash</p><hr>"),
        (
            "Text\n| a | b |\n|---|--:|\n| x &amp; y | 1<br>2\\|3 |\nend",
            '<p>Text</p><div class="scroll"><table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>'
            "<tbody><tr><td>x &amp; y</td><td>1<br>2|3</td></tr></tbody></table></div><p>end</p>",
        ),
        ("&lt;b&gt; &#39;a&#x27; &nope; &toString; A&B", "<p>&lt;b&gt; 'a' &amp;nope; &amp;toString; A&amp;B</p>"),
        (
            "- [x] one\n- [ ] two",
            '<ul><li><span role="img" aria-label="done" class="task">☑</span><p>one</p></li>'
            '<li><span role="img" aria-label="to do" class="task">☐</span><p>two</p></li></ul>',
        ),
        (
            r"A \(a_1*b*\), $$x^*y^*$$ \*no\* 5 $",
            r'<p>A <code class="math">\(a_1*b*\)</code>, <code class="math">$$x^*y^*$$</code> *no* 5 $</p>',
        ),
        ("```a``` is code\n```b``", "<p><code>a</code> is code<br>```b``</p>"),
        (
            "Text\n```c``` too\n~~~ `\nd",
            "<p>Text<br><code>c</code> too</p>" + CODE.format(label="Code", code="d"),
        ),
        ("````py\n```e```", CODE.format(label="Code, py", code="```e```")),
        (
            "So:\n\\[\n- a\n+ b\n\\]\nand \\[ \\alpha \\]",
            '<p>So:</p><p><code class="math">\\[\n- a\n+ b\n\\]</code></p>'
            '<p>and <code class="math">\\[ \\alpha \\]</code></p>',
        ),
        (
            "![a **b**](https://x.org/(1)?a=*b*) [c]",
            '<p><a href="https://x.org/(1)?a=*b*">a <strong>b</strong></a> [c]</p>',
        ),
        (
            "(https://x.org/Oak_(tree)), **https://x.org/((a)b)**: https://x.org/木、https://x.org/)。“https://x.org/_(”",
            '<p>(<a href="https://x.org/Oak_(tree)">https://x.org/Oak_(tree)</a>), '
            '<strong><a href="https://x.org/((a)b)">https://x.org/((a)b)</a></strong>: '
            '<a href="https://x.org/木">https://x.org/木</a>、<a href="https://x.org/">https://x.org/</a>)。'
            '“<a href="https://x.org/">https://x.org/</a>_(”</p>',
        ),
        (
            "[![build](https://x.org/a.png) *b*](https://y.org) [![c](d.png)](https://y.org) ![e [f](https://y.org)](g)",
            '<p><a href="https://y.org">build <em>b</em></a> <a href="https://y.org">c</a> '
            '![e <a href="https://y.org">f</a>](g)</p>',
        ),
    ],
)
def test_markdown_is_read_as_models_write_it(page: Page, text: str, html: str) -> None:
    assert rendered(page, text).replace(' target="_blank" rel="noopener noreferrer"', "") == html


def test_no_link_of_an_answer_leads_to_this_server(page: Page, server: Server) -> None:
    for text in (
        "[details]({here}/flush_cache)",
        "[{here}]({here}/flush_cache)",
        "{here}/flush_cache",
        "<{here}/flush_cache>",
        "[details](http:/flush_cache)",
        "[details](HTTP:flush_cache)",
        "[details](http:\\\\127.1:{port}/flush_cache)",
        "![details](http://x:y@2130706433:{port}/flush_cache)",
        "[![details](https://x.org/a.png)]({here}/flush_cache)",
    ):
        shown = rendered(page, text.format(here=server.url, port=server.port))
        assert not re.search('href="(?!https://x.org)', shown), shown
        assert re.search("details|127", shown), shown
    assert 'href="http://127.0.0.1:1/"' in rendered(page, "[another](http://127.0.0.1:1/)")


def test_what_is_read_or_used_while_an_answer_grows_stays(page: Page) -> None:
    send = stream_answers(page)
    ask(page, "x")
    wide = "1" * 400
    send({"content": f"First.\n\n- one\n  ```\n  {wide}"})
    shown = page.locator(".message.assistant .text")
    code = shown.locator("pre")
    expect(code).to_have_text(wide)
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.text p'))")
    code.evaluate("pre => { pre.scrollLeft = 99; }")
    shown.get_by_role("button", name="Copy").focus()
    send({"content": f"2\n  {wide}\n  ```\n- two\n\nLast"})
    expect(shown).to_contain_text("Last")
    expect(code).to_have_text(f"{wide}2\n{wide}")
    assert code.evaluate("pre => pre.scrollLeft") == 99
    expect(shown.get_by_role("button", name="Copy")).to_be_focused()
    assert page.evaluate("getSelection().toString()") == "First."
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.keyboard.press("Enter")
    assert page.evaluate("navigator.clipboard.readText()") == f"{wide}2\n{wide}"


def test_indented_code_is_code(page: Page) -> None:
    answer_with(page, {"content": "So:\n\n    x = *1*\n\n      y\n\nThere.\n\n- one\n\n    more of one"})
    ask(page, "x")
    wait_for_answers(page, 1)
    shown = page.locator(".message.assistant .text")
    assert shown.locator("pre").all_inner_texts() == ["x = *1*\n\n  y"]
    expect(shown.locator("li p")).to_have_text(["one", "more of one"])


HOSTILE = {
    "brackets": "[" * 60_000,
    "marks": "*a _b ~~c " * 20_000,
    "closed marks": "**a *b" * 10_000 + "* c**" * 10_000,
    "stars": "*" * 60_000 + "a" + "*" * 60_000,
    "links": "[a](b" * 40_000,
    "addresses": "[" * 40_000 + "](a()a()" * 40_000,
    "backticks": "".join("`" * length + "x" for length in range(1, 400)),
    "formulas": "\\( \\[ $$" + "\\( \\[ " * 40_000,
    "lines of formulas": "\\[\n" * 60_000,
    "entities": "&am" * 60_000,
    "angles": "<https://" * 20_000,
    "pictures": "![" * 10_000 + "](https://b)" * 10_000,
    "pictures in links": "[![a](https://b)" * 20_000,
    "links of pictures": "[![a](https://b)](https://c)" * 10_000,
    "bare addresses": "https://a( https://a) https://( https://... " * 8000,
    "brackets of addresses": "https://a(" * 20_000 + ")" * 20_000,
    "bars": "|a|\n" * 60_000,
    "items": "- " * 30_000,
}


COUNT_SEARCHES = """() => {
  window.searched = 0;
  for (const name of ["indexOf", "includes"]) {
    const search = String.prototype[name];
    const place = String.prototype.indexOf;
    String.prototype[name] = function (wanted, from = 0) {
      const found = place.call(this, wanted, from);
      window.searched += (found < 0 ? this.length : found) - from;
      return search.call(this, wanted, from);
    };
  }
  const execute = RegExp.prototype.exec;
  RegExp.prototype.exec = function (text) {
    const match = execute.call(this, text);
    window.searched += match ? match[0].length : 1;
    return match;
  };
}"""
SHOW = """text => import("/playground/markdown.js").then(({ show }) => {
  window.searched = 0;
  show(document.createElement("div"), text);
  return window.searched;
})"""


@pytest.mark.parametrize("name", HOSTILE)
def test_every_text_is_shown_with_work_in_proportion(page: Page, name: str) -> None:
    """Work is how often blocks of the scripts run, and the characters that searches go through."""
    session = page.context.new_cdp_session(page)
    session.send("Profiler.enable")
    session.send("Profiler.startPreciseCoverage", {"callCount": True, "detailed": True})
    page.reload()
    page.evaluate(COUNT_SEARCHES)

    def work_on(text: str) -> int:
        session.send("Profiler.takePreciseCoverage")  # counts from here
        searched = page.evaluate(SHOW, text)
        scripts = session.send("Profiler.takePreciseCoverage")["result"]
        functions = [each for script in scripts if "/playground/" in script["url"] for each in script["functions"]]
        return searched + sum(block["count"] for function in functions for block in function["ranges"])

    text = HOSTILE[name]
    quarter, whole = work_on(text[: len(text) // 4]), work_on(text)
    assert quarter > len(text) / 100
    assert whole < 5 * quarter + 3 * len(text), "four times the text takes about four times the work"


def test_code_ends_with_as_many_backticks_as_it_began_with(page: Page) -> None:
    unended = "`" * 1000 + "x" * 3000
    answer_with(page, {"content": f"a ```b``` `` `c` `` \\``d` `e`` {unended}"})
    ask(page, "x")
    wait_for_answers(page, 1)
    shown = page.locator(".message.assistant .text")
    assert shown.locator("code").all_inner_texts() == ["b", "`c`", "d"]
    expect(shown).to_contain_text("`d `e`` ")
    expect(shown).to_contain_text(unended)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Oak | elm\n{blanks}x", "x"),
        ("# Oak{blanks}x", "x"),
        ("-{blanks}x\u2028y", "x"),
        ("- Oak{lines}- Elm", "Elm"),
        ("{backticks}x` y", "y"),
    ],
    ids=["table", "heading", "item", "list", "fence"],
)
def test_no_answer_keeps_the_page_busy(page: Page, text: str, shown: str) -> None:
    # So many that looking at each anew for every other would take minutes.
    text = text.format(blanks=" " * 200_000, lines="\n" * 200_000, backticks="`" * 200_000)
    answer_with(page, {"content": text})
    ask(page, "x")
    wait_for_answers(page, 1)
    expect(page.locator(".message.assistant .text")).to_contain_text(shown)
    page.reload()
    expect(page.locator(".message.assistant .text")).to_contain_text(shown)


def test_a_paragraph_of_very_many_lines_is_shown(page: Page) -> None:
    # A call takes fewer arguments than this has lines and breaks.
    answer_with(page, {"content": "x\n" * 80_000})
    ask(page, "x")
    expect(page.locator(".message.assistant .stats")).to_have_count(1, timeout=20_000)
    assert page.locator(".message.assistant .text br").count() == 79_999


def test_long_thoughts_are_painted_as_rarely_as_long_answers(page: Page) -> None:
    page.evaluate(
        "() => { const wait = setTimeout; window.waits = [];"
        " window.setTimeout = (done, time) => { window.waits.push(time); return wait(done, time); }; }"
    )
    answer_with(page, {"reasoning_content": "x" * 40_000}, {"content": "Yes."})
    ask(page, "x")
    wait_for_answers(page, 1)
    assert 200 <= max(page.evaluate("window.waits")) < 1000


def test_a_link_of_an_answer_opens_beside_the_page_and_tells_not_whence(page: Page) -> None:
    sent: list[dict[str, str]] = []

    def fulfil(route: object) -> None:
        sent.append(route.request.headers)
        route.fulfill(status=200, content_type="text/html", body="There")

    page.context.route("https://example.org/**", fulfil)
    answer_with(page, {"content": "[site](https://example.org/a)"})
    ask(page, "x")
    wait_for_answers(page, 1)
    with page.expect_popup() as popup:
        page.get_by_role("link", name="site").click()
    expect(popup.value.locator("body")).to_have_text("There")
    assert popup.value.evaluate("window.opener") is None
    assert "referer" not in sent[0]
    expect(page.locator(".message.assistant")).to_be_visible()


def test_an_error_is_shown_and_the_conversation_goes_on(page: Page) -> None:
    page.locator("#max_tokens").fill("100000000")
    ask(page, "x")
    expect(page.get_by_role("alert")).to_contain_text("maximum context length")
    page.locator("#max_tokens").fill("5")
    page.get_by_role("button", name="Regenerate").click()
    expect(page.locator(".stats").last).to_contain_text("5 generated")


def test_an_error_of_before_is_shown_and_is_no_alert(page: Page) -> None:
    page.route("**/v1/chat/completions", lambda route: route.abort())
    ask(page, "x")
    expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    page.get_by_role("button", name="New conversation").click()
    page.get_by_role("button", name="Bring the last conversation back").click()
    expect(page.locator(".message .error")).to_contain_text("cannot be reached")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.reload()
    expect(page.locator(".message .error")).to_contain_text("cannot be reached")
    expect(page.get_by_role("alert")).to_have_count(0)
    ask(page, "y")
    expect(page.get_by_role("alert")).to_have_count(1)


def test_a_broken_stream_keeps_what_came(page: Page) -> None:
    event = {
        "choices": [{"index": 0, "delta": {"content": "Half an"}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2},
    }
    body = f"data: {json.dumps(event)}\n\n"
    page.route(
        "**/v1/chat/completions",
        lambda route: route.fulfill(status=200, headers={"content-type": "text/event-stream"}, body=body),
    )
    ask(page, "x")
    expect(page.get_by_role("alert")).to_contain_text("broke off")
    expect(page.locator(".message.assistant")).to_contain_text("Half an")
    expect(page.locator(".stats")).to_contain_text("9 prompt tokens · 2 generated")
    expect(page.locator("#announcer")).to_have_text("")  # an alert tells of itself


def test_the_conversation_outlives_a_reload_and_can_be_forgotten(page: Page) -> None:
    answer_with(page, {"content": "Kept."})
    ask(page, "x")
    wait_for_answers(page, 1)
    page.reload()
    expect(page.locator(".message.assistant")).to_contain_text("Kept.")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".message")).to_have_count(0)
    page.reload()
    page.wait_for_selector('#model:has-text("sapling")')
    expect(page.locator(".message")).to_have_count(0)


def test_a_running_answer_is_kept_where_nothing_is_painted(page: Page) -> None:
    send = stream_answers(page)
    ask(page, "x")
    page.evaluate("window.requestAnimationFrame = () => 0")  # as it is of a tab that is not shown
    send({"content": "One"})
    page.wait_for_timeout(1100)
    send({"content": " and two"})
    kept = "() => sessionStorage.getItem('bough.conversation').includes('One and two')"
    page.wait_for_function(kept, polling=100)


def test_an_answer_that_another_version_remembered_hinders_no_question(page: Page) -> None:
    kept = [{"role": "user", "content": "First?"}, {"role": "assistant", "content": "Yes."}]
    page.evaluate("text => sessionStorage.setItem('bough.conversation', text)", json.dumps(kept))
    page.reload()
    expect(page.locator(".message")).to_have_count(2)
    bodies = answer_with(page, {"content": "No."})
    ask(page, "Second?")
    expect(page.locator(".message.assistant").last).to_contain_text("No.")
    assert bodies[0]["messages"] == [*kept, {"role": "user", "content": "Second?"}]


@pytest.mark.parametrize("conversation", ["{", '{"messages": []}', "[5]", '[{"role": "toString", "content": "x"}]'])
@pytest.mark.parametrize("settings", ["{", "5", '{"warmth": "1", "temperature": "0.5", "seed": {}}'])
def test_what_another_version_remembered_is_no_hindrance(page: Page, conversation: str, settings: str) -> None:
    for name, text in (("conversation", conversation), ("settings", settings)):
        page.evaluate("([name, text]) => sessionStorage.setItem(`bough.${name}`, text)", [name, text])
    page.reload()
    expect(page.locator("#model")).to_contain_text("sapling")
    expect(page.locator("#temperature")).to_have_value("0.5" if "temperature" in settings else "")
    bodies = answer_with(page, {"content": "Yes."})
    ask(page, "First?")
    wait_for_answers(page, 1)
    assert bodies[0]["messages"] == [{"role": "user", "content": "First?"}]


@pytest.mark.parametrize(
    "script",
    [
        "for (const name of ['localStorage', 'sessionStorage'])"
        " Object.defineProperty(window, name, {get() { throw new DOMException('blocked', 'SecurityError'); }});",
        "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };",
    ],
    ids=["blocked", "full"],
)
def test_it_works_where_nothing_can_be_stored(page: Page, script: str) -> None:
    def need_key(route: object) -> None:
        if "authorization" in route.request.headers:
            route.continue_()
        else:
            route.fulfill(status=401, json={"error": {"message": "An API key is needed"}})

    page.add_init_script(script)
    page.route("**/v1/models", need_key)
    page.reload()
    page.get_by_label("API key", exact=True).fill("sk-1")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("#model")).to_contain_text("sapling")
    answer_with(page, {"content": "Yes."})
    ask(page, "First?")
    wait_for_answers(page, 1)
    for theme in ("dark", "light"):
        page.get_by_role("button", name="Change between light and dark").click()
        expect_theme(page, theme)


def test_the_engine_and_its_tree_move(page: Page, server: Server) -> None:
    page.get_by_role("tab", name="Engine").click()
    requests = page.locator(".tile", has_text="Requests").locator("strong")
    expect(requests).to_be_visible()
    before = int(requests.inner_text().replace(",", ""))
    for topic in ("oak", "elm"):
        prompt = {
            "text": f"Once upon a time there was a tree. It was an {topic}",
            "sampling_params": {"max_new_tokens": 8},
        }
        assert httpx.post(f"{server.url}/generate", json=prompt, timeout=20).status_code == 200
    expect(requests).to_have_text(f"{before + 2:,}")
    shared = page.get_by_role("treeitem").filter(has_text="Once upon a time")
    expect(shared).to_have_attribute("aria-label", re.compile("tokens, evictable, reused"))
    expect(page.locator("[role=treeitem][aria-level='2']").first).to_be_visible()
    expect(page.locator("#rate")).to_have_attribute("aria-label", re.compile("generated: .* tokens per second now"))
    expect(page.locator("figure", has_text="End-to-end latency").locator(".quantiles")).to_have_text(
        re.compile(r"p50 ≤ \S+ m?s, p99 ≤ \S+ m?s")
    )
    expect(page.locator(".tile", has_text="Cache hit rate").locator("strong")).to_have_text(re.compile(r"^[1-9]\d* %$"))
    expect(page.locator(".tile", has_text="Recent hit rate").locator("strong")).to_have_text(re.compile(r"^(\d+ %|–)$"))
    expect(page.locator("#kv-legend .key")).to_have_count(3)
    expect(page.locator("#request_latency")).to_have_attribute("aria-label", re.compile(r"^\d+ in all; ≤ .*: \d+"))
    expect(page.locator("#kv")).to_have_attribute(
        "aria-label", re.compile(r"[1-9]\d* kept, evictable · of [\d,]+ tokens")
    )
    # What has not changed stays as it is: nothing fades in again, and the focus stays.
    shared.evaluate(
        "box => { box.added = 0; new MutationObserver((all) => all.forEach((each) => each.addedNodes.forEach("
        "() => { box.added += 1; }))).observe(box.parentNode, {childList: true}); }"
    )
    shared.focus()
    expect(page.locator("#tree-told")).to_contain_text("reused")
    uptime = page.locator(".tile", has_text="Uptime").locator("strong")
    expect(uptime).not_to_have_text("")
    page.wait_for_timeout(1500)  # of two pictures at least
    assert shared.evaluate("box => [box.added, getComputedStyle(box).opacity]") == [0, "1"]
    expect(shared).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[role=treeitem][aria-level='2']").first).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(shared).to_be_focused()
    assert httpx.post(f"{server.url}/flush_cache", timeout=20).status_code == 200
    expect(page.get_by_role("treeitem")).to_have_count(0)


def show_picture(page: Page, **changes: object) -> None:
    """Let the live view show the server's own picture, but for these changes, until the page's ``show`` gets others."""
    page.evaluate(
        "changes => { const { fetch } = window; window.fetch = async (path, given) => {"
        " const answer = await fetch(path, given); if (!path.endsWith('/events')) return answer;"
        " const { value } = await answer.body.pipeThrough(new TextDecoderStream()).getReader().read();"
        " const picture = { ...JSON.parse(value.slice(6)), ...changes };"
        " return new Response(new ReadableStream({ start(stream) { window.show = (more) => stream.enqueue("
        "new TextEncoder().encode(`data: ${JSON.stringify({ ...picture, ...more })}\\n\\n`)); show(); } })); }; }",
        changes,
    )
    page.get_by_role("tab", name="Engine").click()
    expect(page.locator(".tile").first).to_be_visible()


BOXES = (
    "(all, within) => all.map((each) => { const box = each.getBoundingClientRect();"
    " const { left, right } = each.closest(within).getBoundingClientRect();"
    " return { left: box.left - left, right: box.right - left, room: right - left }; })"
)


@pytest.mark.parametrize("num_bars", [3, 7, 12, 19])
def test_names_of_bars_do_not_run_into_each_other(page: Page, num_bars: int) -> None:
    bounds = [0.125 * (at + 1) for at in range(num_bars)]
    histogram = {"bounds": bounds, "counts": [1 + (at == num_bars // 2) for at in range(num_bars + 1)]}
    show_picture(page, latencies={"time_to_first_token": histogram})
    names = page.locator("#time_to_first_token .bar span:not(.left-out)")
    for width in (320, 391, 520, 777, 1024, 1280, 1900):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function(PAINTED)
        boxes = names.evaluate_all(BOXES, ".histogram")
        assert len(boxes) >= 3, (width, boxes)
        highest = page.locator("#time_to_first_token .bar").nth(num_bars // 2).locator("span")
        assert "left-out" not in (highest.get_attribute("class") or ""), width
        assert boxes[0]["left"] >= -2, (width, boxes)
        assert boxes[-1]["right"] <= boxes[-1]["room"] + 2, (width, boxes)
        for one, other in pairwise(boxes):
            assert one["right"] + 4 < other["left"], (width, boxes)


def test_legends_are_told_apart_and_stay_beside_their_colours(page: Page) -> None:
    tokens = {"capacity": 1_234_567, "used_tokens": 300, "protected_tokens": 200, "evictable_tokens": 56}
    show_picture(page, running=3, waiting=2, **tokens)
    expect(page.locator("figure", has_text="Requests").locator(".scale")).to_have_text(
        "running 3 · waiting 2 · highest 3", use_inner_text=True
    )
    expect(page.locator("#kv-legend")).to_have_text(
        "200 held in the tree · 100 of running requests alone · 56 kept, evictable · of 1,234,567 tokens"
    )
    entries = page.locator("#engine .entry")
    for width in (320, 360, 390, 470, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert set(entries.evaluate_all("all => all.map((each) => each.getClientRects().length)")) == {1}
        assert page.locator("#engine").evaluate("box => box.scrollWidth <= box.clientWidth")
    assert entries.count() == 3 + 3 + 4 + 2


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_parts_of_the_cache_and_their_keys_have_edges(page: Page, theme: str) -> None:
    page.emulate_media(color_scheme=theme)
    show_picture(page)
    edge = page.evaluate(
        "() => { const box = document.createElement('i'); box.style.color = 'var(--line)'; document.body.append(box);"
        " return getComputedStyle(box).color; }"
    )
    for key in page.locator("#engine .key").all():
        expect(key).to_have_css("border", f"1px solid {edge}")
    expect(page.locator("#kv div")).to_have_count(3)
    for part in page.locator("#kv div").all():
        expect(part).to_have_css("box-shadow", f"{edge} 0px 0px 0px 1px inset")


CONTRASTS = """
() => new Promise((done) => {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const luminance = () => {
    const parts = [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255);
    const [red, green, blue] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const paint = (colour, opacity) => {
    pen.globalAlpha = opacity;
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    return luminance();
  };
  const contrast = (text) => {
    const [ground, own] = [getComputedStyle(text.parentElement), getComputedStyle(text)];
    paint(getComputedStyle(document.body).backgroundColor, 1);
    const grounds = paint(ground.backgroundColor, Number(ground.opacity));
    const texts = paint(own.color, Number(own.opacity) * Number(ground.opacity));
    return (Math.max(grounds, texts) + 0.05) / (Math.min(grounds, texts) + 0.05);
  };
  const seen = [];
  const begun = performance.now();
  const look = () => {
    for (const text of document.querySelectorAll(".node span")) seen.push(contrast(text));
    if (performance.now() - begun < 700) requestAnimationFrame(look);
    else done(seen);
  };
  show({ nodes: nodes(held = !held) });
  requestAnimationFrame(look);
})
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_of_the_tree_can_be_read_while_it_changes(page: Page, theme: str) -> None:
    page.emulate_media(color_scheme=theme)
    # The first two change places of their colours, the third comes and goes, the last two have not been used for long.
    page.evaluate(
        "() => { const node = (id, locks, age) => ({ node_id: id, parent_id: '', namespace: null, text: 'a text',"
        " num_tokens: 9, num_children: 0, hits: 2, locks, age });"
        " window.held = false; window.nodes = (held) => [node('a', held ? 1 : 0, 0), node('b', held ? 0 : 1, 0),"
        " ...(held ? [node('c', 1, 0)] : []), node('d', 0, 100), node('e', 0, 1000)]; }"
    )
    show_picture(page, nodes=page.evaluate("nodes(false)"))
    expect(page.get_by_role("treeitem")).to_have_count(4)
    for count in (5, 4):
        contrasts = page.evaluate(CONTRASTS)
        expect(page.get_by_role("treeitem")).to_have_count(count)
        assert len(contrasts) >= 10 * count
        assert min(contrasts) >= 4.5


def test_texts_of_the_tree_use_the_room_there_is(page: Page) -> None:
    text = "Once upon a time there was a small tree at the edge of a wood, which had seen a hundred winters."
    node = {"namespace": None, "num_tokens": 24, "locks": 0, "hits": 0, "age": 0, "num_children": 0, "text": text}
    family = [("root", ""), ("a", "root"), ("b", "root"), ("c", "root"), ("d", "root"), ("alone", "")]
    show_picture(page, nodes=[{**node, "node_id": name, "parent_id": parent} for name, parent in family])
    boxes = page.get_by_role("treeitem")
    expect(boxes).to_have_count(6)
    cut = "all => all.map((each) => each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight)"
    assert page.locator(".node .text").evaluate_all(cut) == [False] * 6
    for box in boxes.all():
        assert text in (box.get_attribute("title") or "")
        assert (box.get_attribute("aria-label") or "").startswith(text)
    page.set_viewport_size({"width": 320, "height": 800})
    page.get_by_role("tab", name="Chat").click()
    page.reload()
    show_picture(page, nodes=[{**node, "node_id": name, "parent_id": parent} for name, parent in family])
    expect(boxes).to_have_count(6)
    assert page.locator(".node .text").evaluate_all(cut) == [True] + [False] + [True] * 4, "four rows have room for it"
    inside = boxes.evaluate_all(BOXES, "#tree")
    assert [box["left"] for box in inside] == [0, 0, 250, 250, 250, 250]


def test_what_shows_figures_stays_and_can_be_paused(page: Page) -> None:
    page.get_by_role("tab", name="Engine").click()
    line = page.locator("#rate polyline").first
    stays = "#tiles .tile, #engine .entry, #engine .key, #rate polyline"
    expect(line).to_be_attached()

    def next_picture() -> None:
        expect(line).not_to_have_attribute("points", line.get_attribute("points") or "")

    next_picture()
    page.evaluate("stays => document.querySelectorAll(stays).forEach((each) => { each.stays = true; })", stays)
    next_picture()
    assert page.locator(stays).evaluate_all("all => all.length > 20 && all.every((each) => each.stays)")
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/playground/events")):
        page.get_by_role("button", name="Pause").click()
    for view in ("Chat", "Engine"):  # paused is what was paused
        page.get_by_role("tab", name=view).click()
    before = line.get_attribute("points") or ""
    page.wait_for_timeout(1200)  # of two pictures at least
    expect(line).to_have_attribute("points", before)
    expect(page.locator("#connection")).to_have_text("")
    page.get_by_role("button", name="Resume").click()
    next_picture()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()


def test_the_focus_stays_near_a_node_that_goes_and_what_is_told_is_there(page: Page) -> None:
    node = {"namespace": None, "num_tokens": 24, "locks": 0, "hits": 0, "age": 0, "num_children": 0, "parent_id": ""}
    page.set_viewport_size({"width": 1280, "height": 500})
    names = "abcdefgh"
    show_picture(page, nodes=[{**node, "node_id": name, "text": f"node {name}"} for name in names])
    nodes, told, engine = page.get_by_role("treeitem"), page.locator("#tree-told"), page.locator("#engine")
    expect(nodes).to_have_count(8)

    def show(names: str, hits: int = 0) -> None:
        left = [{**node, "node_id": name, "text": f"node {name}", "hits": hits} for name in names]
        page.evaluate("nodes => show({ nodes })", left)
        expect(nodes).to_have_count(len(names))

    nodes.nth(5).focus()
    engine.evaluate("engine => { engine.scrollTop = 0; }")
    show("abgh")
    expect(nodes.filter(has_text="node g")).to_be_focused()
    assert engine.evaluate("engine => engine.scrollTop") == 0, "the focus does not scroll"
    expect(told).to_contain_text("node g: 24 tokens, evictable, reused 0 times")
    show("abgh", hits=3)
    expect(told).to_contain_text("node g: 24 tokens, evictable, reused 3 times")
    show("abh")
    expect(nodes.filter(has_text="node b")).to_be_focused()
    nodes.filter(has_text="node a").hover()
    expect(told).to_contain_text("node a")
    page.mouse.move(0, 0)
    show("bh")
    expect(told).to_have_text("")
    show("xy")
    expect(nodes.filter(has_text="node x")).to_be_focused()
    show("")
    expect(page.get_by_role("tab", name="Engine")).to_be_focused()
    expect(told).to_have_text("")


def test_the_tree_is_gone_along_by_keys(page: Page, server: Server) -> None:
    assert httpx.post(f"{server.url}/flush_cache", timeout=20).status_code == 200
    for topic in ("oak", "elm", "ash"):
        prompt = {"text": f"There was a tree. It was an {topic}", "sampling_params": {"max_new_tokens": 8}}
        assert httpx.post(f"{server.url}/generate", json=prompt, timeout=20).status_code == 200
    page.get_by_role("tab", name="Engine").click()
    expect(page.get_by_role("treeitem").filter(has_text="There was a tree")).to_be_visible()
    expect(page.locator("[role=treeitem][aria-level='2']").nth(2)).to_be_visible()
    nodes = page.get_by_role("treeitem")
    nodes.first.focus()
    for key, reached in (
        ("End", nodes.last),
        ("Home", nodes.first),
        ("ArrowUp", nodes.first),
        ("ArrowDown", nodes.nth(1)),
        ("ArrowDown", nodes.nth(2)),
        ("ArrowUp", nodes.nth(1)),
    ):
        page.keyboard.press(key)
        expect(reached).to_be_focused()
        expect(page.locator("#tree-told")).to_have_text(reached.get_attribute("aria-label"))
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(nodes.nth(1)).to_be_focused()
    nodes.nth(2).hover()
    expect(page.locator("#tree-told")).to_have_text(nodes.nth(2).get_attribute("aria-label"))
    expect(nodes.nth(1)).to_be_focused()
    assert httpx.post(f"{server.url}/flush_cache", timeout=20).status_code == 200
    expect(page.locator("#tree-rest")).to_contain_text("The tree is empty")
    expect(page.get_by_role("tab", name="Engine")).to_be_focused()


def test_the_view_is_in_the_address_and_watched_only_while_it_is_seen(page: Page, server: Server) -> None:
    page.get_by_role("tab", name="Engine").click()
    expect(page).to_have_url(f"{server.url}/#engine")
    page.reload()
    expect(page.locator(".tile").first).to_be_visible()
    expect(page.get_by_role("tab", name="Engine")).to_have_attribute("aria-selected", "true")
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/playground/events")):
        page.get_by_role("tab", name="Chat").click()
    expect(page.get_by_role("tabpanel", name="Engine")).to_be_hidden()
    expect(page).to_have_url(f"{server.url}/")
    page.reload()
    expect(page.get_by_role("tabpanel", name="Chat")).to_be_visible()


def test_a_hidden_page_does_not_watch(page: Page) -> None:
    page.get_by_role("tab", name="Engine").click()
    expect(page.locator(".tile").first).to_be_visible()
    change = (
        "hidden => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
        " document.dispatchEvent(new Event('visibilitychange')); }"
    )
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/playground/events")):
        page.evaluate(change, True)
    with page.expect_request("**/playground/events"):
        page.evaluate(change, False)


def test_a_connection_that_goes_silent_is_made_anew(page: Page) -> None:
    page.clock.install()
    page.evaluate(
        "() => { const { fetch } = window; let silent = true; window.fetch = (path, given) => {"
        " if (!path.endsWith('/events') || !silent) return fetch(path, given);"
        " silent = false; return Promise.resolve(new Response(new ReadableStream({ start(stream) {"
        " given.signal.addEventListener('abort', () => stream.error(given.signal.reason)); } }))); }; }"
    )
    page.get_by_role("tab", name="Engine").click()
    page.clock.run_for(14_000)
    expect(page.locator("#connection")).to_have_text("")
    expect(page.locator(".tile")).to_have_count(0)
    page.clock.run_for(2_000)
    page.clock.run_for(2_000)
    page.clock.resume()
    expect(page.locator(".tile").first).to_be_visible()
    expect(page.locator("#connection")).to_have_text("")


def test_a_server_that_does_not_begin_to_answer_is_asked_anew(page: Page) -> None:
    page.clock.install()
    page.evaluate(
        "() => { const { fetch } = window; window.asked = 0; window.fetch = (path, given) => {"
        " if (!path.endsWith('/events') || window.asked++) return fetch(path, given);"
        " return new Promise((_, fail) => { given.signal.onabort = () => fail(given.signal.reason); }); }; }"
    )
    page.get_by_role("tab", name="Engine").click()
    page.clock.run_for(14_000)
    expect(page.locator("#connection")).to_have_text("")
    page.clock.run_for(2_000)
    page.clock.run_for(2_000)
    page.clock.resume()
    expect(page.locator(".tile").first).to_be_visible()
    expect(page.locator("#connection")).to_have_text("")
    assert page.evaluate("asked") == 2


def test_what_is_tried_again_is_told_once(page: Page) -> None:
    page.route("**/v1/models", lambda route: route.fulfill(status=503, json={"error": {"message": "not yet"}}))
    page.reload()
    told = "Cannot begin: not yet; trying again …"
    expect(page.locator("#connection")).to_have_text(told)
    page.evaluate(
        "() => { window.changes = 0; new MutationObserver((all) => { changes += all.length; })"
        ".observe(document.getElementById('connection'), {childList: true, characterData: true, subtree: true}); }"
    )
    for _ in range(2):
        with page.expect_response("**/v1/models"):
            pass
    expect(page.locator("#connection")).to_have_text(told)
    assert page.evaluate("changes") == 0
    page.unroute("**/v1/models")
    expect(page.locator("#model")).to_contain_text("sapling")
    expect(page.locator("#connection")).to_have_text("")


def test_a_server_that_shuts_down_is_told(browser: Browser, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    python = pytestconfig.getoption("server_python") or sys.executable
    body = {"text": "x", "stream": True, "sampling_params": {"max_new_tokens": 3000, "ignore_eos": True}}
    with (
        running_server(tmp_path, "--load-format", "dummy", "--max-running-requests", "2", python=python) as server,
        opened_page(browser, server.url) as page,
    ):
        page.get_by_role("tab", name="Engine").click()
        running = page.locator(".tile", has_text="Running").locator("strong")
        expect(running).to_be_visible()
        with ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(httpx.post, f"{server.url}/generate", json=body, timeout=60) for _ in range(4)]
            expect(running).to_have_text("2 of 2")
            expect(page.locator(".tile", has_text="Waiting").locator("strong")).to_have_text("2")
            server.process.terminate()
            expect(page.locator("#connection")).to_contain_text("The server is shutting down")
            expect(running).to_have_text(re.compile("^[12] of"))
            assert {answer.result().status_code for answer in answers} <= {200, 503}
        # Nobody waits for anything any more.
        expect(page.locator("#connection")).to_contain_text("The server has shut down", timeout=20_000)


def test_a_lost_connection_is_told_and_mended(browser: Browser, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    python = pytestconfig.getoption("server_python") or sys.executable
    with ExitStack() as stack:
        with running_server(tmp_path, "--load-format", "dummy", python=python) as server:
            page = stack.enter_context(opened_page(browser, server.url))
            page.get_by_role("tab", name="Engine").click()
            expect(page.locator(".tile").first).to_be_visible()
            server.stop()
            expect(page.locator("#connection")).to_contain_text("Connection lost")
        with running_server(tmp_path, "--load-format", "dummy", python=python, port=server.port):
            expect(page.locator("#connection")).to_have_text("", timeout=30_000)


def test_a_connection_lost_in_an_answer_is_told(browser: Browser, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    python = pytestconfig.getoption("server_python") or sys.executable
    with (
        running_server(tmp_path, "--load-format", "dummy", python=python) as server,
        opened_page(browser, server.url) as page,
    ):
        page.wait_for_selector('#model:has-text("sapling")')
        page.route(
            "**/v1/chat/completions",
            lambda route: route.continue_(post_data={**route.request.post_data_json, **LONG, "max_tokens": 3000}),
        )
        ask(page, "x")
        page.wait_for_selector(".message.assistant .text")
        server.process.kill()
        expect(page.get_by_role("alert")).to_have_text("This failed: the connection was lost")
        expect(page.locator(".message.assistant .text")).not_to_have_text("")
        page.get_by_role("button", name="Regenerate").click()
        expect(page.get_by_role("alert").last).to_have_text("This failed: the server cannot be reached")


def test_what_refuses_the_live_view_is_told(page: Page) -> None:
    def refuse(route: object) -> None:
        route.fulfill(status=503, json={"error": {"message": "16 others watch already"}})

    page.route("**/playground/events", refuse)
    page.get_by_role("tab", name="Engine").click()
    expect(page.locator("#connection")).to_have_text("16 others watch already; trying again …")
    page.unroute("**/playground/events")
    expect(page.locator(".tile").first).to_be_visible()
    expect(page.locator("#connection")).to_have_text("")


def test_a_key_is_asked_for_and_kept_in_the_tab(browser: Browser, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    python = pytestconfig.getoption("server_python") or sys.executable
    with (
        running_server(tmp_path, "--api-key", "sk-1", "--admin-api-key", "sk-2", wait=True, python=python) as server,
        opened_page(browser, server.url) as page,
    ):
        dialog = page.get_by_role("dialog", name="An API key is needed")
        expect(dialog).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#connection")).to_contain_text("Cannot begin")
        for view in ("Engine", "Chat"):  # whoever goes on as if it had begun is asked once more
            page.get_by_role("tab", name=view).click()
            expect(dialog).to_be_visible()
            page.keyboard.press("Escape")
            expect(page.locator("#connection")).to_contain_text("Cannot begin")
        page.reload()
        expect(page.locator("#key-refusal")).to_be_hidden()
        page.get_by_label("API key", exact=True).fill("of two words")
        page.get_by_label("API key", exact=True).press("Enter")
        expect(dialog).to_be_visible()
        expect(page.locator("#key-refusal")).to_be_hidden()
        page.get_by_label("API key", exact=True).fill("wrong")
        page.get_by_label("API key", exact=True).press("Enter")
        expect(page.locator("#key-refusal")).to_contain_text("this key is not one of the server's")
        page.get_by_label("API key", exact=True).fill("sk-1")
        page.get_by_role("button", name="Continue").click()
        page.wait_for_selector('#model:has-text("sapling")')
        page.get_by_role("tab", name="Engine").click()
        page.get_by_label("API key", exact=True).fill("wrong")
        with page.expect_response("**/playground/events"):
            page.get_by_role("button", name="Continue").click()
        expect(page.locator("#key-refusal")).to_contain_text("administrator")
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#engine-closed")).to_be_visible()
        page.get_by_role("tab", name="Chat").click()
        page.reload()
        page.wait_for_selector('#model:has-text("sapling")')
        expect(dialog).to_be_hidden()
        # Neither a wrong answer to the other question nor a right one costs the key that there was.
        ask(page, "x")
        wait_for_answers(page, 1)
        page.get_by_role("tab", name="Engine").click()
        page.get_by_label("API key", exact=True).fill("sk-2")
        page.get_by_role("button", name="Continue").click()
        expect(page.locator(".tile").first).to_be_visible()
        page.get_by_role("tab", name="Chat").click()
        ask(page, "y")
        wait_for_answers(page, 2)
        assert page.evaluate("[sessionStorage['bough.key'], sessionStorage['bough.admin-key']]") == ["sk-1", "sk-2"]


def test_a_wrong_key_costs_nothing_where_only_an_administrator_has_one(
    browser: Browser, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    python = pytestconfig.getoption("server_python") or sys.executable
    with (
        running_server(tmp_path, "--admin-api-key", "sk-2", "--load-format", "dummy", python=python) as server,
        opened_page(browser, server.url) as page,
    ):
        field, go_on = page.get_by_label("API key", exact=True), page.get_by_role("button", name="Continue")
        button, told = page.get_by_role("button", name="Key", exact=True), page.locator("#key-told")
        kept = "['bough.key', 'bough.admin-key'].map((name) => sessionStorage.getItem(name))"
        page.get_by_role("tab", name="Engine").click()
        field.fill("sk-2")
        go_on.click()
        expect(page.locator(".tile").first).to_be_visible()
        button.click()
        field.fill("wrong")
        go_on.click()
        expect(page.locator("#key-refusal")).to_contain_text("administrator")
        page.get_by_role("button", name="Cancel").click()
        expect(told).to_contain_text("The key is as before: ")
        assert page.evaluate(kept) == [None, "sk-2"]
        button.click()
        field.fill("sk-2")
        with page.expect_response("**/playground/events"):
            go_on.click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(told).to_have_text("")
        assert page.evaluate(kept) == [None, "sk-2"]
        expect(page.locator(".tile").first).to_be_visible()


def test_the_key_can_be_changed_and_forgotten(page: Page) -> None:
    keys: list[str] = []

    def need_key(route: Route) -> None:
        keys.append(route.request.headers.get("authorization", ""))
        if keys[-1] in ("Bearer one", "Bearer two"):
            route.continue_()
        elif keys[-1] == "Bearer early":
            route.fulfill(status=503, json={"error": {"message": "not yet"}})
        else:
            route.fulfill(status=401, json={"error": {"message": "no such key"}})

    for path in ("**/v1/models", "**/v1/chat/completions", "**/playground/events"):
        page.route(path, need_key)
    button, field = page.get_by_role("button", name="Key", exact=True), page.get_by_label("API key", exact=True)
    expect(button).to_be_hidden()
    page.reload()
    field.fill("one")
    page.get_by_role("button", name="Continue").click()
    button.click()
    dialog = page.get_by_role("dialog", name="Another API key")
    dialog.get_by_role("button", name="Cancel").click()
    expect(button).to_be_focused()
    button.click()
    field.fill("three")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("#key-refusal")).to_have_text("no such key")
    expect(page.get_by_role("button", name="Forget the key")).to_be_hidden()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#key-told")).to_have_text("The key is as before: no such key")
    button.click()
    expect(page.locator("#key-told")).to_have_text("")
    field.fill("early")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("#key-told")).to_have_text("The key is as before: not yet")
    assert page.evaluate("sessionStorage.getItem('bough.key')") == "one"
    page.get_by_role("tab", name="Engine").click()
    expect(page.locator(".tile").first).to_be_visible()
    assert keys[-1] == "Bearer one"
    button.click()
    field.fill("two")
    with page.expect_response("**/playground/events"):
        page.get_by_role("button", name="Continue").click()
    expect(page.locator("#key-told")).to_have_text("")
    assert keys[-1] == "Bearer two"
    page.get_by_role("tab", name="Chat").click()
    button.click()
    dialog.get_by_role("button", name="Forget the key").click()
    expect(button).to_be_hidden()
    expect(page.get_by_role("tab", name="Chat")).to_be_focused()
    assert page.evaluate("sessionStorage.getItem('bough.key')") is None
    answered = page.locator(".message.assistant .stats")
    ask(page, "x")
    expect(page.get_by_role("dialog", name="An API key is needed")).to_be_visible()
    assert keys[-1] == ""
    field.fill("one")
    page.get_by_role("button", name="Continue").click()
    expect(answered).to_have_count(1)
    expect(button).to_be_visible()


def test_a_key_is_asked_for_once_while_a_server_starts(page: Page) -> None:
    keys: list[str] = []

    def start(route: Route) -> None:
        keys.append(route.request.headers.get("authorization", ""))
        if not keys[-1]:
            route.fulfill(status=401, json={"error": {"message": "no key"}})
        elif len(keys) == 2:
            route.fulfill(status=503, json={"error": {"message": "not yet"}})
        else:
            route.continue_()

    page.route("**/v1/models", start)
    page.reload()
    page.get_by_label("API key", exact=True).fill("one")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("#model")).to_contain_text("sapling")
    assert keys == ["", "Bearer one", "Bearer one"]


def test_the_refusal_of_a_key_outlives_the_next_picture_of_the_engine(page: Page) -> None:
    page.evaluate("sessionStorage.setItem('bough.key', 'one')")
    page.reload()
    page.get_by_role("tab", name="Engine").click()
    expect(page.locator(".tile").first).to_be_visible()
    page.route("**/v1/models", lambda route: route.fulfill(status=403, json={"error": {"message": "no such key"}}))
    page.get_by_role("button", name="Key", exact=True).click()
    page.get_by_label("API key", exact=True).fill("two")
    page.get_by_role("button", name="Continue").click()
    refusal = page.get_by_role("status").filter(has_text="The key is as before: no such key")
    expect(refusal).to_be_visible()
    line = page.locator("#rate polyline").first
    expect(line).not_to_have_attribute("points", line.get_attribute("points") or "")
    expect(refusal).to_be_visible()


@pytest.mark.parametrize("is_asking", [False, True], ids=["between two attempts", "during an attempt"])
def test_a_key_forgotten_while_the_page_tries_to_begin_makes_it_begin_once(page: Page, is_asking: bool) -> None:
    examples = page.locator(".examples button")
    expect(examples.first).to_be_visible()
    count = examples.count()
    held: list[Route] = []
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    page.evaluate("sessionStorage.setItem('bough.key', 'one')")
    page.route("**/v1/models", lambda route: route.fulfill(status=503, json={"error": {"message": "not yet"}}))
    page.reload()
    expect(page.locator("#connection")).to_have_text("Cannot begin: not yet; trying again …")
    page.unroute("**/v1/models")
    page.route("**/v1/models", lambda route: held.append(route))
    if is_asking:
        with page.expect_request("**/v1/models"):
            page.clock.run_for(2000)
    page.get_by_role("button", name="Key", exact=True).click()
    with page.expect_request("**/v1/models"):
        page.get_by_role("button", name="Forget the key").click()
    page.clock.run_for(5000)
    # The answers come in the other order.
    for route in reversed(held):
        with page.expect_response("**/model_info") as told:
            route.continue_()
        told.value.finished()
    expect(page.locator("#model")).to_contain_text("sapling")
    page.evaluate("fetch('/model_info').then((response) => response.json())")
    expect(examples).to_have_count(count)
    assert page.evaluate("sessionStorage.getItem('bough.key')") is None


def test_it_works_where_signals_cannot_be_joined(page: Page) -> None:
    page.add_init_script("delete AbortSignal.any")
    page.reload()
    page.wait_for_selector('#model:has-text("sapling")')
    page.get_by_role("tab", name="Engine").click()
    expect(page.locator(".tile").first).to_be_visible()
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/playground/events")):
        page.get_by_role("tab", name="Chat").click()
    page.route(
        "**/v1/chat/completions", lambda route: route.continue_(post_data={**route.request.post_data_json, **LONG})
    )
    ask(page, "x")
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/completions")):
        page.get_by_role("button", name="Stop").click()
    wait_for_answers(page, 1)


def test_it_can_be_used_by_keyboard_alone(page: Page) -> None:
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the message")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Your message", exact=True)).to_be_focused()
    page.get_by_role("tab", name="Chat").focus()
    # There and back in either direction, the second time round the ends.
    for there, back in (("ArrowRight", "ArrowLeft"), ("ArrowLeft", "ArrowRight")):
        page.keyboard.press(there)
        expect(page.get_by_role("tab", name="Engine")).to_be_focused()
        expect(page.get_by_role("tabpanel", name="Engine")).to_be_visible()
        page.keyboard.press(back)
        expect(page.get_by_role("tab", name="Chat")).to_be_focused()
        expect(page.get_by_role("tabpanel", name="Chat")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="API")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect_theme(page, "dark")


def test_the_message_is_reached_from_the_engine_too(page: Page) -> None:
    page.get_by_role("tab", name="Engine").click()
    page.get_by_role("link", name="To the message").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Your message", exact=True)).to_be_focused()
    expect(page.get_by_role("tab", name="Chat")).to_have_attribute("aria-selected", "true")


def test_the_api_is_described_a_link_away_with_and_without_scripts(browser: Browser, server: Server) -> None:
    # The description is itself made by a script; without, there is the document that it is made of.
    for scripts, name, told in ((True, "API", "/v1/chat/completions"), (False, "its description", "/openapi.json")):
        with opened_page(browser, server.url, java_script_enabled=scripts) as page:
            page.get_by_role("link", name=name).click()
            expect(page).to_have_url(f"{server.url}/docs")
            expect(page.locator("body")).to_contain_text(told)


def test_nothing_can_be_asked_of_a_model_that_makes_vectors(page: Page) -> None:
    page.route("**/model_info", lambda route: route.fulfill(json={"is_generation": False}))
    page.reload()
    expect(page.get_by_label("Your message", exact=True)).to_be_disabled()
    expect(page.get_by_label("Your message", exact=True)).to_have_attribute("placeholder", re.compile("vectors"))
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()


def test_the_focus_follows_the_work_of_who_uses_keys(page: Page) -> None:
    bodies = answer_with(page, {"content": "Yes."})
    page.get_by_label("Your message", exact=True).focus()
    page.keyboard.type("First?")
    page.keyboard.press("Enter")
    wait_for_answers(page, 1)
    expect(page.get_by_label("Your message", exact=True)).to_be_focused()
    page.get_by_role("button", name="Edit").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Edit")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Regenerate")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Your message", exact=True)).to_be_focused()
    assert len(bodies) == 2
    page.unroute("**/v1/chat/completions")
    page.route(
        "**/v1/chat/completions", lambda route: route.continue_(post_data={**route.request.post_data_json, **LONG})
    )
    page.keyboard.type("Second?")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("A line more.")
    page.keyboard.press("Enter")
    page.wait_for_selector(".message.assistant:last-child .text")
    page.keyboard.press("Escape")
    expect(page.locator(".stats").last).to_contain_text("stopped")
    expect(page.locator(".message.user").last).to_contain_text("Second?\nA line more.", use_inner_text=True)


def test_the_theme_follows_the_system_until_one_is_chosen(page: Page) -> None:
    button = page.get_by_role("button", name="Change between light and dark")
    for theme in ("dark", "light"):
        page.emulate_media(color_scheme=theme)
        expect_theme(page, theme)
    for theme in ("dark", "light", "dark"):
        button.click()
        expect_theme(page, theme)
    page.emulate_media(color_scheme="dark")
    page.emulate_media(color_scheme="light")
    page.reload()
    page.wait_for_selector('#model:has-text("sapling")')
    expect_theme(page, "dark")


def test_no_module_is_waited_for_to_paint_in_the_right_theme(page: Page) -> None:
    page.route(
        "**/playground/main.js", lambda route: route.fulfill(status=200, content_type="text/javascript", body="")
    )
    for chosen, system, theme in (
        ("", "dark", "dark"), ("light", "dark", "light"), ("dark", "light", "dark"), ("pink", "dark", "dark"),
    ):  # fmt: skip
        page.evaluate("chosen => localStorage.setItem('bough.theme', chosen)", chosen)
        page.emulate_media(color_scheme=system)
        page.reload()
        expect_theme(page, theme)
        assert page.evaluate("getComputedStyle(document.querySelector('.brand')).display") != "none"


def test_everything_has_a_name_for_screen_readers(page: Page) -> None:
    answer_with(page, {"content": "Yes."})
    ask(page, "x")
    wait_for_answers(page, 1)
    for tab in ("Chat", "Engine"):
        page.get_by_role("tab", name=tab).click()
        tree = page.locator("body").aria_snapshot()
        for role in ("button", "textbox", "spinbutton", "combobox", "checkbox", "link", "img"):
            assert not re.search(rf"^\s*- {role}:?\s*$", tree, re.MULTILINE), tree
        assert ('log "Conversation"' in tree) == (tab == "Chat")


def test_the_main_controls_have_their_roles(page: Page) -> None:
    answer_with(page, {"content": "Yes."})
    ask(page, "x")
    wait_for_answers(page, 1)
    page.get_by_label("Response format").select_option("json_schema")
    chat = [
        ("link", "To the message"), ("heading", re.compile("^Bough")), ("tablist", "Views"), ("tab", "Chat"),
        ("tab", "Engine"), ("link", "API"), ("button", "Change between light and dark"), ("tabpanel", "Chat"),
        ("log", "Conversation"), ("article", "You"), ("article", "Model"), ("button", "Edit"), ("button", "Regenerate"),
        ("button", "Copy text"), ("textbox", "Your message"), ("button", "Send"), ("button", "New conversation"),
        ("textbox", "System prompt"), ("group", "Sampling"), *[("spinbutton", name) for name in SPINBUTTONS],
        ("textbox", "Stop sequences, one a line"), ("group", "Output"), ("combobox", "Response format"),
        ("textbox", "JSON schema"), ("combobox", "Thinking"), ("checkbox", "Logprobs: show how likely each token was"),
        ("group", "Tools"), ("textbox", "Tool definitions, a JSON list"), ("button", "Insert an example"),
        ("combobox", "Tool choice"),
    ]  # fmt: skip
    for role, name in chat:
        expect(page.get_by_role(role, name=name, exact=True)).to_have_count(1)
    expect(page.get_by_role("tab", selected=True)).to_have_text("Chat")
    page.get_by_role("tab", name="Engine").click()
    expect(page.get_by_role("tabpanel", name="Engine")).to_be_visible()
    expect(page.get_by_role("tab", selected=True)).to_have_text("Engine")
    expect(page.get_by_role("button", name="Pause")).to_have_count(1)
    expect(page.get_by_role("tree", name="Radix tree")).to_have_count(1)
    expect(page.get_by_role("img")).to_have_count(6)
    expect(page.get_by_role("status")).to_have_count(2)
    page.evaluate("document.getElementById('key-dialog').showModal()")
    for role, name in (
        ("dialog", "An API key is needed"),
        ("textbox", "API key"),
        ("button", "Continue"),
        ("button", "Cancel"),
    ):
        expect(page.get_by_role(role, name=name, exact=True)).to_have_count(1)


def test_a_closed_view_says_what_it_needs_and_shows_no_empty_charts(page: Page) -> None:
    error = {"message": "closed"}
    page.route("**/playground/events", lambda route: route.fulfill(status=403, json={"error": error}))
    page.get_by_role("tab", name="Engine").click()
    closed = page.locator("#engine-closed")
    expect(closed).to_contain_text("closed here: closed.")
    expect(closed.locator("code")).to_have_count(0)
    expect(page.locator("#engine-live")).to_be_hidden()
    error["code"] = "control_closed"
    page.get_by_role("tab", name="Engine").click()
    for needed in ("--admin-api-key-file FILE", "--admin-api-key KEY", "--host 127.0.0.1"):
        expect(closed.locator("code").filter(has_text=needed)).to_be_visible()
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()
    page.unroute("**/playground/events")
    page.get_by_role("tab", name="Engine").click()
    expect(page.locator(".tile").first).to_be_visible()
    expect(closed).to_be_hidden()


def test_the_page_of_an_address_that_others_reach_says_what_it_needs(
    browser: Browser, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    python = pytestconfig.getoption("server_python") or sys.executable
    with (
        running_server(tmp_path, "--load-format", "dummy", "--host", "0.0.0.0", python=python) as server,
        opened_page(browser, server.url) as page,
    ):
        page.get_by_role("tab", name="Engine").click()
        expect(page.locator("#engine-closed")).to_contain_text("--admin-api-key-file")
        expect(
            page.get_by_role("tabpanel", name="Engine").locator("svg:visible, .tile:visible, button:visible")
        ).to_have_count(0)


def history_of(seconds: int, now: float) -> dict[str, list[float]]:
    """Samples of so many seconds until ``now``, at 1,500 tokens per second."""
    each = range(seconds, 0, -1)
    return {
        "time": [now - ago for ago in each],
        "running": [3] * seconds,
        "waiting": [7] * seconds,
        "generated_total": [1500 * (seconds - ago) for ago in each],
        "prefilled_total": [0] * seconds,
        "cached_total": [0] * seconds,
    }


def test_lines_begin_before_the_page_was_opened_and_have_axes(page: Page) -> None:
    totals = {"generated_total": 1500 * 250, "prefilled_total": 0, "cached_total": 0, "running": 3, "waiting": 7}
    show_picture(page, uptime=1000.0, window_seconds=300, history=history_of(250, 1000.0), **totals)
    points = (page.locator("#rate polyline").first.get_attribute("points") or "").split()
    assert len(points) == 251
    assert float(points[0].split(",")[0]) == 600 * 50 / 300, "as far from the left as it is from five minutes ago"
    expect(page.locator(".tile", has_text="Tokens/s").first.locator("strong")).to_have_text("1,500")
    for chart, unit, marks in (
        ("rate", "tokens per second", ["2K", "1K", "0"]),
        ("requests", "requests", ["8", "4", "0"]),
    ):
        plot = page.locator(".plot", has=page.locator(f"#{chart}"))
        expect(plot.locator(".unit")).to_have_text(unit)
        expect(plot.locator(".marks span")).to_have_text(marks)
        expect(plot.locator(".times span")).to_have_text(["−5 min", "−4", "−3", "−2", "−1", "now"])
        for width in (320, 390, 1280):
            page.set_viewport_size({"width": width, "height": 844})
            boxes = plot.locator(".times span").evaluate_all(BOXES, ".plot")
            assert all(one["right"] + 4 < other["left"] for one, other in pairwise(boxes)), (width, boxes)
            assert boxes[-1]["right"] <= boxes[-1]["room"] + 1
    # A stream that is made anew brings all that the page has missed.
    page.evaluate("more => show(more)", {"uptime": 2000.0, "history": history_of(20, 2000.0)})
    expect(page.locator("#rate polyline").first).to_have_attribute("points", re.compile(r"^(\S+ ){20}\S+$"))


def test_the_top_of_an_axis_is_round_and_not_exceeded(page: Page) -> None:
    tops = page.evaluate(
        "async () => { const { niceTop } = await import('/playground/charts.js');"
        " const values = [...Array(2000).keys()].flatMap((each) => [each, each * 0.37, each * 977]);"
        " return values.map((value) => [value, niceTop(value)]); }"
    )
    for value, top in tops:
        assert value <= top <= max(2, 2 * value), (value, top)
        assert top / 2 == top // 2
        assert str(int(top)).rstrip("0") in {"1", "2", "4", "6", "8"}


def test_percentiles_of_the_last_minutes_stand_beside_those_since_the_start(page: Page) -> None:
    histogram = {"bounds": [0.1, 0.2, 2], "counts": [98, 2, 0, 0], "recent": [0, 2, 0, 0]}
    show_picture(page, window_seconds=300, latencies={"time_to_first_token": histogram})
    told = page.locator("figure", has_text="Time to first token").locator(".quantiles span")
    expect(told).to_have_text(["last 5 min: p50 ≤ 200 ms, p99 ≤ 200 ms", "since start: p50 ≤ 100 ms, p99 ≤ 200 ms"])
    page.evaluate("more => show(more)", {"latencies": {"time_to_first_token": {**histogram, "recent": [0, 0, 0, 0]}}})
    expect(told.first).to_have_text("last 5 min: none")


def test_controls_are_as_large_as_a_fingertip_on_a_phone(browser: Browser, server: Server) -> None:
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with opened_page(browser, server.url, **phone) as page:
        page.wait_for_selector('#model:has-text("sapling")')
        answer_with(page, {"reasoning_content": "Well", "content": "A\n\n```\ncode\n```\n"})
        page.get_by_label("Your message", exact=True).fill("x")
        page.get_by_role("button", name="Send", exact=True).click()
        wait_for_answers(page, 1)
        page.locator("#settings summary").click()
        page.evaluate("document.getElementById('change-key').hidden = false")
        for tab in ("Engine", "Chat"):
            page.get_by_role("tab", name=tab).click()
            if tab == "Engine":
                expect(page.locator(".tile").first).to_be_visible()
            controls = page.locator(
                "button:visible, summary:visible, select:visible, nav a:visible, .check:visible, [type=number]:visible"
            )
            sizes = controls.evaluate_all(
                "all => all.map((each) => { const { width, height } = each.getBoundingClientRect();"
                " return [each.id || each.textContent, width, height]; })"
            )
            assert len(sizes) >= 5
            assert [each for each in sizes if min(each[1:]) < 44] == []
        assert page.locator("body").evaluate("box => box.scrollWidth - box.clientWidth") <= 0


def test_sampling_fields_show_the_values_of_the_model(page: Page, server: Server) -> None:
    told = httpx.get(f"{server.url}/model_info", timeout=20).json()["default_sampling_params"]["openai"]
    assert told["temperature"]["value"] != 1
    expect(page.locator("#temperature")).to_have_attribute("placeholder", str(told["temperature"]["value"]))
    page.route("**/model_info", lambda route: route.fulfill(json={"is_generation": True}))
    page.reload()
    page.wait_for_selector('#model:has-text("sapling")')
    expect(page.locator("#temperature")).to_have_attribute("placeholder", "model’s")
    values = {
        "temperature": 0.6,
        "top_p": 0.95,
        "top_k": -1,
        "min_p": 0.05,
        "repetition_penalty": 1.1,
        "max_new_tokens": 99,
    }
    shown = {**values, "top_k": "all", "max_tokens": 99}
    del shown["max_new_tokens"]
    defaults = {"openai": {name: {"value": value, "source": "flag"} for name, value in values.items()}}
    page.route(
        "**/model_info", lambda route: route.fulfill(json={"is_generation": True, "default_sampling_params": defaults})
    )
    page.reload()
    for name, value in shown.items():
        expect(page.locator(f"#{name}")).to_have_attribute("placeholder", str(value))


@pytest.mark.parametrize("width", [320, 360, 768])
def test_it_fits_narrow_screens(browser: Browser, server: Server, width: int) -> None:
    with opened_page(browser, server.url, viewport={"width": width, "height": 740}) as page:
        page.wait_for_selector('#model:has-text("sapling")')
        name = "an-organisation/a-model-of-a-very-long-name-" + "Instruct" * 12
        page.route("**/v1/models", lambda route: route.fulfill(json={"data": [{"id": name, "max_model_len": 4096}]}))
        page.reload()
        expect(page.locator("#model")).to_have_text(name)
        expect(page.locator("#model")).to_be_in_viewport()
        page.evaluate("document.getElementById('change-key').hidden = false")
        answer_with(page, {"content": "x" * 300 + "\n\n```\n" + "y" * 300 + "\n```"})
        ask(page, "z" * 300)
        wait_for_answers(page, 1)
        for tab in ("Engine", "Chat"):
            page.get_by_role("tab", name=tab).click()
            if tab == "Engine":
                expect(page.locator(".tile").first).to_be_visible()
            for part in ("body", "header", "main", "#engine", "#messages", "#composer"):
                assert page.locator(part).evaluate("box => box.scrollWidth - box.clientWidth") <= 0, part
            for control in page.locator("header button:visible, header a").all():
                expect(control).to_be_in_viewport(ratio=1)
        expect(page.get_by_role("button", name="Send", exact=True)).to_be_in_viewport()


SYSTEM = "You are a gardener, and answer whoever asks about trees in a few short sentences."


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes(browser: Browser, server: Server, theme: str, pytestconfig: pytest.Config) -> None:
    kept = pytestconfig.getoption("screenshots")
    with opened_page(browser, server.url, viewport={"width": 1280, "height": 800}, color_scheme=theme) as page:
        page.wait_for_selector('#model:has-text("sapling")')
        expect_theme(page, theme)
        for count, question in enumerate(("How tall does an oak grow?", "Why do leaves fall?"), 1):
            ask(page, question)
            wait_for_answers(page, count)
        if kept:
            page.screenshot(path=Path(kept) / f"playground-chat-{theme}.png")
        page.get_by_role("tab", name="Engine").click()
        with ThreadPoolExecutor(8) as pool:
            # More than a picture can be taken of: what is seen is the engine at work.
            for topic in ("oak", "elm", "ash", "fir", "pine", "beech", "birch", "willow") * (16 if kept else 2):
                messages = [
                    {"role": "system", "content": SYSTEM},
                    {"role": "user", "content": f"Tell me about the {topic}."},
                ]
                body = {"messages": messages, **LONG}
                pool.submit(httpx.post, f"{server.url}/v1/chat/completions", json=body, timeout=120)
            expect(page.locator("[role=treeitem].locked[aria-level='2']").first).to_be_visible()
            expect(page.locator(".tile", has_text="Running").locator("strong")).to_have_text(
                re.compile(r"^[1-9]\d* of")
            )
            expect(page.locator(".tile", has_text="Tokens/s").first.locator("strong")).not_to_have_text("0")
            if kept:
                # Of a machine that is busy, too, a picture shows what ended as well as what runs.
                ended = page.locator("[role=treeitem]:not(.locked)[aria-level='3']", has_text="<|im_start|>assistant")
                expect(ended.nth(7)).to_be_attached(timeout=300_000)
                page.wait_for_timeout(4000)
                page.screenshot(path=Path(kept) / f"playground-engine-{theme}.png")
            pool.shutdown(cancel_futures=True)
        page.get_by_label("Change between light and dark").click()
        expect_theme(page, "light" if theme == "dark" else "dark")
