// The npm package openai, unmodified, against a server with `--api-key KEY`, and one that refuses whatever does not fit at once.
//
//     node openai_node.mjs FOLDER URL KEY [FULL_URL]     FOLDER: where `npm install openai@6` was run;
//                                                        URL: http://127.0.0.1:8080/v1; FULL_URL: with --slots 1 --queue 0
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [folder, url, key, fullUrl] = process.argv.slice(2);
if (!key) {
  console.error("usage: openai_node.mjs FOLDER URL KEY [FULL_URL]");
  process.exit(2);
}
const OpenAI = createRequire(resolve(folder, "x.js"))("openai");
const client = new OpenAI({ baseURL: url, apiKey: key });
const messages = [{ role: "user", content: "Tell me a story about a fox named Ruby." }];
const model = (await client.models.list()).data[0].id;
assert.equal((await client.models.retrieve(model)).id, model);

async function chat() {
  const whole = await client.chat.completions.create({ model, messages, max_tokens: 40 });
  assert.equal(whole.choices[0].finish_reason, "length");
  assert.equal(whole.usage.completion_tokens, 40);
  let text = "", usage = null;
  const stream = await client.chat.completions.create({ model, messages, max_tokens: 40, stream: true, stream_options: { include_usage: true } });
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta?.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(usage.completion_tokens, 40);
  const runner = client.chat.completions.stream({ model, messages, max_tokens: 20 }); // the package puts the answer together
  assert.ok((await runner.finalChatCompletion()).choices[0].message.content);
}

async function choicesAndLogprobs() {
  const two = await client.chat.completions.create({ model, messages, max_tokens: 20, n: 2, temperature: 1, seed: 5 });
  assert.deepEqual(two.choices.map((choice) => choice.index), [0, 1]);
  const logged = await client.chat.completions.create({ model, messages, max_tokens: 8, logprobs: true, top_logprobs: 2 });
  assert.ok(logged.choices[0].logprobs.content.every((entry) => entry.top_logprobs.length === 2 && entry.logprob <= 0));
}

async function completions() {
  const whole = await client.completions.create({ model, prompt: "Once upon a time", max_tokens: 12, logprobs: 1 });
  assert.ok(whole.choices[0].logprobs.tokens.length > 0);
  let text = "";
  for await (const chunk of await client.completions.create({ model, prompt: "Once upon a time", max_tokens: 12, stream: true }))
    text += chunk.choices[0]?.text ?? "";
  assert.equal(text, whole.choices[0].text);
}

async function errors() {
  await assert.rejects(client.completions.create({ model, prompt: "a", temperature: 9 }), (error) => error instanceof OpenAI.BadRequestError && error.param === "temperature");
  await assert.rejects(client.models.retrieve("there-is-none"), OpenAI.NotFoundError);
  await assert.rejects(new OpenAI({ baseURL: url, apiKey: "wrong" }).models.list(), OpenAI.AuthenticationError);
}

async function abort() {
  const stream = await client.chat.completions.create({ model, messages, max_tokens: 400, stream: true, ignore_eos: true });
  let n = 0;
  for await (const chunk of stream) {
    if (chunk.choices.length && ++n === 3) stream.controller.abort();
  }
  assert.ok(n < 100);
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 20);
  await assert.rejects(client.completions.create({ model, prompt: "a", max_tokens: 500, ignore_eos: true }, { signal: controller.signal }), OpenAI.APIUserAbortError);
}

async function overload() {
  const full = new OpenAI({ baseURL: fullUrl, apiKey: key, maxRetries: 0 });
  const ask = (options) => full.completions.create({ model, prompt: "Once upon a time", max_tokens: 100, ignore_eos: true }, options);
  const refused = (await Promise.allSettled([ask(), ask(), ask(), ask()])).filter((answer) => answer.status === "rejected");
  assert.ok(refused.length > 0 && refused.length < 4);
  assert.ok(refused.every((answer) => answer.reason instanceof OpenAI.RateLimitError));
  for (const answer of await Promise.all([1, 2, 3].map(() => ask({ maxRetries: 8 })))) assert.ok(answer.choices[0].text);
}

for (const check of [chat, choicesAndLogprobs, completions, errors, abort, ...(fullUrl ? [overload] : [])]) {
  await check();
  console.log(check.name, "passed");
}
console.log(`openai of npm, Node ${process.version}: all passed`);
