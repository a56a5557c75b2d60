#!/usr/bin/env python3
"""The Python package openai, unmodified, against a server with `--api-key KEY`, and one that refuses whatever does not fit at once.

    openai_python.py URL KEY [FULL_URL]     URL: http://127.0.0.1:8080/v1; FULL_URL: of a server with --slots 1 --queue 0

Exit code 77: the package is not there.
"""
import asyncio
import sys

try:
    import openai
except ImportError:
    print("the Python package openai is not installed (Debian: python3-openai)", file=sys.stderr)
    sys.exit(77)

STORY = [{"role": "system", "content": "You tell stories."}, {"role": "user", "content": "Tell me a story about a fox named Ruby."}]


def raised(kind, call):
    try:
        call()
    except kind as error:
        assert type(error) is kind, f"{type(error).__name__} instead of {kind.__name__}"
        return error
    raise AssertionError(f"{kind.__name__} was expected")


def chat(client, model):
    whole = client.chat.completions.create(model=model, messages=STORY, max_tokens=40, seed=1)
    assert whole.object == "chat.completion" and whole.id.startswith("chatcmpl-") and whole.choices[0].finish_reason == "length"
    assert whole.usage.completion_tokens == 40 and whole.usage.total_tokens == whole.usage.prompt_tokens + 40
    assert whole.usage.prompt_tokens_details.cached_tokens >= 0 and whole.model == model
    text, reasons, usages = "", [], []
    for chunk in client.chat.completions.create(model=model, messages=STORY, max_tokens=40, seed=1, stream=True, stream_options={"include_usage": True}):
        assert chunk.object == "chat.completion.chunk"
        if chunk.usage:
            usages.append(chunk.usage)
        for choice in chunk.choices:
            text += choice.delta.content or ""
            if choice.finish_reason:
                reasons.append(choice.finish_reason)
    assert text == whole.choices[0].message.content, (text, whole.choices[0].message.content)
    assert reasons == ["length"] and len(usages) == 1 and usages[0].completion_tokens == 40
    talk = [*STORY, {"role": "assistant", "content": text}, {"role": "user", "content": [{"type": "text", "text": "Who is in the story?"}]}]
    more = client.chat.completions.create(model=model, messages=talk, max_completion_tokens=30)
    assert more.choices[0].message.role == "assistant" and more.choices[0].message.content


def choices(client, model):
    two = client.chat.completions.create(model=model, messages=STORY, max_tokens=20, n=2, temperature=1, seed=5)
    assert [choice.index for choice in two.choices] == [0, 1] and two.choices[0].message.content != two.choices[1].message.content
    texts = {0: "", 1: ""}
    for chunk in client.chat.completions.create(model=model, messages=STORY, max_tokens=20, n=2, temperature=1, seed=5, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert all(texts.values())
    stopped = client.completions.create(model=model, prompt="Once upon a time", max_tokens=100, stop=["."])
    assert stopped.choices[0].finish_reason == "stop" and "." not in stopped.choices[0].text


def logprobs(client, model):
    answer = client.chat.completions.create(model=model, messages=STORY, max_tokens=8, logprobs=True, top_logprobs=3)
    content = answer.choices[0].logprobs.content
    assert content and all(len(entry.top_logprobs) == 3 and entry.logprob <= 0 for entry in content)
    assert bytes(byte for entry in content for byte in entry.bytes).decode() == answer.choices[0].message.content
    entries = [entry for chunk in client.chat.completions.create(model=model, messages=STORY, max_tokens=8, logprobs=True, top_logprobs=3, stream=True)
               for choice in chunk.choices if choice.logprobs for entry in choice.logprobs.content]
    assert [entry.logprob for entry in entries] == [entry.logprob for entry in content]
    plain = client.completions.create(model=model, prompt="Once upon a time", max_tokens=8, logprobs=2).choices[0]
    assert len(plain.logprobs.tokens) == len(plain.logprobs.token_logprobs) == len(plain.logprobs.top_logprobs)


def completions(client, model):
    whole = client.completions.create(model=model, prompt=["Once upon a time", "One day"], max_tokens=12)
    assert whole.object == "text_completion" and [choice.index for choice in whole.choices] == [0, 1]
    text = "".join(choice.text for chunk in client.completions.create(model=model, prompt="Once upon a time", max_tokens=12, stream=True)
                   for choice in chunk.choices)
    assert text == whole.choices[0].text, (text, whole.choices[0].text)


def errors(client, url, model):
    error = raised(openai.BadRequestError, lambda: client.completions.create(model=model, prompt="a", temperature=9))
    assert error.param == "temperature" and error.type == "invalid_request_error", error
    error = raised(openai.BadRequestError, lambda: client.completions.create(model=model, prompt="a " * 100000))
    assert error.code == "context_length_exceeded", error
    error = raised(openai.BadRequestError, lambda: client.chat.completions.create(model=model, messages=STORY, tools=[
        {"type": "function", "function": {"name": "f", "parameters": {}}}]))
    assert error.param == "tools", error
    raised(openai.NotFoundError, lambda: client.models.retrieve("there-is-none"))
    raised(openai.AuthenticationError, lambda: openai.OpenAI(base_url=url, api_key="wrong").models.list())


def models(client):
    listed = [model.id for model in client.models.list()]
    assert len(listed) == 1 and client.models.retrieve(listed[0]).id == listed[0]
    return listed[0]


def leave_early(client, model):
    with client.chat.completions.create(model=model, messages=STORY, max_tokens=400, stream=True, extra_body={"ignore_eos": True}) as stream:
        for i, _ in enumerate(stream):
            if i == 2:
                break
    raised(openai.APITimeoutError, lambda: client.with_options(timeout=0.02, max_retries=0).completions.create(
        model=model, prompt="a", max_tokens=500, extra_body={"ignore_eos": True}))


async def overload(url, key):
    """One slot, no queue: of two at once one is refused, as RateLimitError; with retries both are answered."""
    client = openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0)
    ask = lambda of: of.completions.create(model="any", prompt="Once upon a time", max_tokens=100, extra_body={"ignore_eos": True})
    answers = await asyncio.gather(*(ask(client) for _ in range(4)), return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, Exception)]
    assert refused and len(refused) < 4 and all(type(error) is openai.RateLimitError for error in refused), answers
    assert int(refused[0].response.headers["retry-after"]) >= 1 and refused[0].type == "rate_limit_error"
    patient = client.with_options(max_retries=8)
    answers = await asyncio.gather(*(ask(patient) for _ in range(3)))
    assert all(answer.choices[0].text for answer in answers)


def main(url, key, full_url=None):
    client = openai.OpenAI(base_url=url, api_key=key)
    model = models(client)
    for check in (chat, choices, logprobs, completions, leave_early):
        check(client, model)
        print(check.__name__, "passed", flush=True)
    errors(client, url, model)
    print("errors passed")
    if full_url:
        asyncio.run(overload(full_url, key))
        print("overload passed")
    print(f"openai {openai.__version__} of Python {sys.version.split()[0]}: all passed")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
