import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import { afterEach, describe, expect, it } from 'vitest';
import {
  call,
  calls,
  canonicalJson,
  describeScenarios,
  expectResult,
  readLedgerFile,
  say,
  script,
  startSimulator,
  toScriptPrompt,
} from '../../src/simulator/index.ts';
import type { Simulator, SimulatorOptions } from '../../src/simulator/index.ts';
import { answered, client, HEADERS, prompt, READ_TOOL, textOf } from './requests.ts';

const open: Simulator[] = [];
const folders: string[] = [];

async function start(options: SimulatorOptions = {}): Promise<Simulator> {
  const simulator = await startSimulator(options);
  open.push(simulator);
  return simulator;
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'simulator-'));
  folders.push(path);
  return path;
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((simulator) => simulator.close()));
  for (const path of folders.splice(0)) rmSync(path, { recursive: true });
});

describe('replies', () => {
  it('a streamed reply has text, thinking and calls as the scenario gave them', async () => {
    const simulator = await start({
      scenarios: {
        s: script([{ thinking: 'hm 😀', text: 'I read.', calls: [{ name: 'read', input: { file_path: 'a😀b' } }] }]),
      },
    });
    const reply = await client(simulator).messages.stream(prompt('[[scenario:s]]')).finalMessage();
    expect(reply.content).toMatchObject([
      { type: 'thinking', thinking: 'hm 😀', signature: expect.stringMatching(/^sim1\./) as string },
      { type: 'text', text: 'I read.' },
      { type: 'tool_use', name: 'read', input: { file_path: 'a😀b' }, id: expect.stringMatching(/^toolu_/) as string },
    ]);
    expect(reply.stop_reason).toBe('tool_use');
  });

  it('a streamed and a whole reply say the same', async () => {
    const simulator = await start();
    const request = prompt('[[scenario:thinking]]');
    const whole = await client(simulator).messages.create(request);
    const streamed = await client(simulator).messages.stream(request).finalMessage();
    expect(streamed).toEqual({ ...whole, parsed_output: null });
  });

  it('the same request gets the same reply, also from another simulator', async () => {
    const request = prompt('[[scenario:tool-loop turns=2]]');
    const [one, two] = [await start(), await start()];
    const first = await client(one).messages.create(request);
    const again = await client(one).messages.create(request);
    const next = answered(request, first);
    const elsewhere = await client(two).messages.create(next);
    expect(again).toEqual(first);
    expect(elsewhere).toEqual(await client(one).messages.create(next));
    expect(elsewhere.content.at(-1)).not.toEqual(first.content.at(-1));
  });

  it('ids differ from turn to turn and call to call', async () => {
    const simulator = await start();
    const request = prompt(toScriptPrompt([{ calls: [READ, READ], repeat: 2 }, { text: 'done' }]));
    const first = await client(simulator).messages.create(request);
    const second = await client(simulator).messages.create(answered(request, first));
    const ids = [...first.content, ...second.content].map((block) => (block.type === 'tool_use' ? block.id : ''));
    expect(new Set(ids).size).toBe(4);
  });

  it('a scenario may force ids, also hostile ones', async () => {
    const simulator = await start();
    const request = prompt(
      toScriptPrompt([
        {
          calls: [
            { ...READ, id: '../../etc' },
            { ...READ, id: '../../etc' },
          ],
        },
      ]),
    );
    const reply = await client(simulator).messages.stream(request).finalMessage();
    expect(reply.content).toMatchObject([{ id: '../../etc' }, { id: '../../etc' }]);
  });

  it('thinking blocks that come back changed are refused, unchanged ones are not', async () => {
    const simulator = await start();
    const request = prompt('[[scenario:thinking]]');
    const reply = await client(simulator).messages.stream(request).finalMessage();
    const next = answered(request, reply);
    expect((await client(simulator).messages.create(next)).stop_reason).toBe('tool_use');
    const changed = JSON.parse(JSON.stringify(next).replace('Two looks', 'Ten looks')) as typeof next;
    await expect(client(simulator).messages.create(changed)).rejects.toThrow(/Invalid `signature`/);
  });

  it('a reply longer than max_tokens is cut, with its stop reason', async () => {
    const simulator = await start();
    const request = { ...prompt(toScriptPrompt([{ text: 'word '.repeat(100) }])), max_tokens: 10 };
    const reply = await client(simulator).messages.stream(request).finalMessage();
    expect(reply).toMatchObject({ stop_reason: 'max_tokens', usage: { output_tokens: 10 } });
    expect(textOf(reply)).toHaveLength(40);
  });

  it.each(['pause_turn', 'refusal', 'model_context_window_exceeded', 'from_the_future'])(
    'the stop reason %s is sent as it is',
    async (reason) => {
      const simulator = await start();
      const reply = await client(simulator)
        .messages.stream(prompt(`[[scenario:stop-reason reason=${reason}]]`))
        .finalMessage();
      expect(reply.stop_reason).toBe(reason);
    },
  );

  it('no tool is called when none may be', async () => {
    const simulator = await start();
    const request = { ...prompt('[[scenario:repeat]]'), tool_choice: { type: 'none' as const } };
    const reply = await client(simulator).messages.create(request);
    expect(reply).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text' }] });
  });

  it('turns go on counting over a summary', async () => {
    const simulator = await start();
    const marker = '[[scenario:tool-loop turns=2]]';
    const first = await client(simulator).messages.create(prompt(marker));
    const last = answered(prompt(marker), first);
    const summary = await client(simulator).messages.create({
      ...last,
      tool_choice: { type: 'none' },
      messages: [...last.messages, { role: 'user', content: 'Summarize the work so far.' }],
    });
    const resumed = await client(simulator).messages.create(prompt(`${marker}\n${textOf(summary)}`));
    expect(textOf(resumed)).toBe('Step 2 of 2.');
  });

  it.each([
    ['empty', /^$/],
    ['long', /^Summary.{60000}/],
  ])('a summary can go wrong: %s', async (summary, expected) => {
    const simulator = await start();
    const request = prompt(`[[scenario:tool-loop summary=${summary}]]`);
    const next = answered(request, await client(simulator).messages.create(request));
    const last = { role: 'user' as const, content: 'Write a summary.' };
    const body = { ...next, tool_choice: { type: 'none' as const }, messages: [...next.messages, last] };
    expect(textOf(await client(simulator).messages.stream(body).finalMessage())).toMatch(expected);
  });

  it('a later prompt with a marker starts its own scenario, a reported result does not', async () => {
    const simulator = await start();
    const request = prompt('[[scenario:hello]]');
    const say = (content: string): typeof request => ({
      ...request,
      messages: [...request.messages, { role: 'user', content }],
    });
    expect(textOf(await client(simulator).messages.create(say('[[scenario:tool-loop]]')))).toBe('Step 1 of 3.');
    expect(textOf(await client(simulator).messages.create(say('[Agent: x] [[scenario:tool-loop]]')))).toMatch(/^Hello/);
  });
});

const READ = { name: 'read', input: { file_path: 'a' } };

describe('scripts', () => {
  it('an unexpected result is refused with scenario, turn, what was expected and what came', async () => {
    const simulator = await start({
      scenarios: { careful: script([call('read', {}), expectResult({ tool: 'read', includes: 'gold' }, say('rich'))]) },
    });
    const request = prompt('[[scenario:careful]]');
    const reply = await client(simulator).messages.create(request);
    const failure = client(simulator).messages.create(answered(request, reply, 'only sand'));
    await expect(failure).rejects.toThrow(
      /Scenario careful, turn 2: expected .*gold.* in the result, but read gave .*only sand/,
    );
    expect(simulator.ledger().at(-1)).toMatchObject({
      outcome: 'refused',
      status: 400,
      problem: expect.stringContaining('sand') as string,
    });
    expect(textOf(await client(simulator).messages.create(answered(request, reply, 'pure gold')))).toBe('rich');
  });

  it('a turn after the last step is refused', async () => {
    const simulator = await start({ scenarios: { short: script([calls('x', [READ])]) } });
    const request = prompt('[[scenario:short]]');
    const reply = await client(simulator).messages.create(request);
    await expect(client(simulator).messages.create(answered(request, reply))).rejects.toThrow(/at most 1 turns/);
  });

  it('steps inline fill in results and expect them', async () => {
    const simulator = await start();
    const request = prompt(
      toScriptPrompt([
        { calls: [READ] },
        { expect: { exitCode: 0 }, text: 'turn {{turn}}: {{match:made (\\w+)}} of {{result:0}}' },
      ]),
    );
    const reply = await client(simulator).messages.create(request);
    const next = await client(simulator).messages.create(answered(request, reply, 'made it\nexit code: 0'));
    expect(textOf(next)).toBe('turn 2: it of made it\nexit code: 0');
    await expect(client(simulator).messages.create(answered(request, reply, 'exit code: 1'))).rejects.toThrow(
      /exit code: 0/,
    );
  });

  it('scenario files are loaded from a folder, and a bad one is named', async () => {
    const path = folder();
    writeFileSync(join(path, 'from-file.json'), JSON.stringify([{ text: 'from a file' }]));
    const simulator = await start({ scenarios: path, scenario: 'from-file' });
    expect(textOf(await client(simulator).messages.create(prompt('hi')))).toBe('from a file');
    writeFileSync(join(path, 'bad.json'), JSON.stringify([{ txt: 'oops' }]));
    await expect(startSimulator({ scenarios: path })).rejects.toThrow(/bad\.json.*unknown field "txt"/);
  });

  it('an unknown scenario is refused with the names of those there are', async () => {
    const simulator = await start();
    await expect(client(simulator).messages.create(prompt('[[scenario:nope]]'))).rejects.toThrow(/nope.*hello/);
    await expect(startSimulator({ scenario: 'nope' })).rejects.toThrow(/"nope".*hello/);
  });

  it('every built-in scenario answers a first request and is described', async () => {
    const simulator = await start();
    for (const { name, description } of describeScenarios()) {
      expect(description).not.toBe('');
      if (['script', 'slow', 'fault'].includes(name)) continue;
      const reply = await client(simulator)
        .messages.stream(prompt(`[[scenario:${name}]]`))
        .finalMessage();
      expect(reply.content.length).toBeGreaterThan(0);
    }
  });
});

describe('paths', () => {
  it('models are listed with their windows, also those of the options', async () => {
    const simulator = await start({ models: { mine: { maxInputTokens: 1000, maxTokens: 10 } } });
    const models = await client(simulator).models.list();
    expect(models.data.map((model) => model.id)).toEqual(['sim-1', 'sim-small', 'mine']);
    expect(await client(simulator).models.retrieve('mine')).toMatchObject({ max_input_tokens: 1000, max_tokens: 10 });
    await expect(client(simulator).models.retrieve('yours')).rejects.toBeInstanceOf(Anthropic.NotFoundError);
  });

  it('tokens are counted as they are billed', async () => {
    const simulator = await start();
    const { model, messages, tools } = prompt('[[scenario:hello]]');
    const { input_tokens } = await client(simulator).messages.countTokens({ model, messages, tools });
    const reply = await client(simulator).messages.create(prompt('[[scenario:hello]]'));
    expect(reply.usage.input_tokens).toBe(input_tokens);
  });

  it('unknown paths and methods are not found, in the shape of the API', async () => {
    const { url } = await start();
    const response = await fetch(`${url}/v1/nothing`, { headers: HEADERS });
    expect([response.status, await response.json()]).toMatchObject([
      404,
      { type: 'error', error: { type: 'not_found_error' } },
    ]);
    expect((await fetch(`${url}/v1/messages`, { method: 'HEAD', headers: HEADERS })).status).toBe(404);
    expect((await fetch(`${url}/health`)).status).toBe(200);
  });

  it('a body that is not JSON or not UTF-8 is refused', async () => {
    const { url } = await start();
    for (const body of ['{', Buffer.from([0x22, 0xff, 0x22])]) {
      const response = await fetch(`${url}/v1/messages`, { method: 'POST', headers: HEADERS, body });
      expect([response.status, await response.json()]).toMatchObject(
        [400, { error: { message: /not valid JSON/ } }].map((value) =>
          typeof value === 'number' ? value : { error: { message: expect.stringMatching(/not valid JSON/) as string } },
        ),
      );
    }
  });

  it('a body over 32 MB is answered with 413', async () => {
    const simulator = await start();
    const request = prompt('x'.repeat(32 * 1024 * 1024));
    await expect(client(simulator).messages.create(request)).rejects.toMatchObject({
      status: 413,
      type: 'request_too_large',
    });
  });

  it('a wrong key is refused', async () => {
    const simulator = await start({ apiKey: 'secret' });
    await expect(client(simulator).messages.create(prompt('hi'))).rejects.toBeInstanceOf(Anthropic.AuthenticationError);
  });
});

describe('ledger', () => {
  it('an entry has what was asked and what was served', async () => {
    const simulator = await start();
    const request = prompt('[[scenario:tool-loop turns=1]]');
    const reply = await client(simulator).messages.stream(request).finalMessage();
    const [entry] = simulator.ledger();
    const { usage, stop_reason: stopReason } = reply;
    expect(entry).toMatchObject({
      n: 1,
      turn: 1,
      scenario: 'tool-loop',
      agentMarker: '[[scenario:tool-loop turns=1]]',
    });
    expect(entry).toMatchObject({ outcome: 'complete', status: 200, stopReason, messages: request.messages });
    expect(entry?.usage).toEqual({
      input_tokens: usage.input_tokens,
      output_tokens: usage.output_tokens,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
    });
  });

  it('the request hash does not depend on the order of keys', async () => {
    const simulator = await start();
    const { url } = simulator;
    const body = { ...prompt('hi'), tools: [READ_TOOL] };
    const turned = Object.fromEntries(Object.entries(body).reverse());
    for (const one of [body, turned])
      await fetch(`${url}/v1/messages`, { method: 'POST', headers: HEADERS, body: JSON.stringify(one) });
    const [first, second] = simulator.ledger();
    expect(first?.requestSha256).toBe(second?.requestSha256);
    expect(canonicalJson({ b: 1, a: [undefined, { d: 1, c: undefined }] })).toBe('{"a":[null,{"d":1}],"b":1}');
  });

  it('the file has a line for arrival and end, without messages, and is gone on with', async () => {
    const ledgerFile = join(folder(), 'ledger.jsonl');
    const first = await start({ ledgerFile });
    await client(first).messages.create(prompt('[[scenario:hello]]'));
    await first.close();
    const lines = readFileSync(ledgerFile, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(lines).toMatchObject([
      { n: 1, outcome: 'open' },
      { n: 1, outcome: 'complete' },
    ]);
    expect(lines.some((line) => 'messages' in line)).toBe(false);
    writeFileSync(ledgerFile, '{"torn', { flag: 'a' });
    const second = await start({ ledgerFile });
    await client(second).messages.create(prompt('[[scenario:hello]]'));
    expect(readLedgerFile(ledgerFile).map((entry) => entry.n)).toEqual([1, 2]);
  });

  it('other processes read it over HTTP', async () => {
    const simulator = await start();
    await client(simulator).messages.create(prompt('[[scenario:hello]]'));
    const entries = (await (await fetch(`${simulator.url}/ledger`)).json()) as object[];
    expect(entries).toMatchObject([{ n: 1, outcome: 'complete' }]);
    expect(entries[0]).not.toHaveProperty('messages');
  });

  it('refused requests cost nothing and say why', async () => {
    const simulator = await start();
    await expect(client(simulator).messages.create({ ...prompt('hi'), model: 'nope' })).rejects.toThrow();
    expect(simulator.ledger()).toMatchObject(
      [
        { outcome: 'refused', status: 404, errorType: 'not_found_error', problem: /nope/, usage: { input_tokens: 0 } },
      ].map((entry) => ({ ...entry, problem: expect.stringMatching(entry.problem) as string })),
    );
  });
});

describe('prompt cache', () => {
  const mark = { cache_control: { type: 'ephemeral' as const } };
  const long = (name: string): Anthropic.TextBlockParam => ({ type: 'text', text: name.repeat(100) });
  const request = (...content: Anthropic.TextBlockParam[]): Anthropic.MessageCreateParamsNonStreaming => ({
    ...prompt('', []),
    messages: [{ role: 'user', content: [{ type: 'text', text: '[[scenario:hello]]' }, ...content] }],
  });

  it('what was marked is written once and read from then on; the rest is input', async () => {
    const simulator = await start();
    const first = (await client(simulator).messages.create(request({ ...long('a'), ...mark }, long('b')))).usage;
    const again = (await client(simulator).messages.create(request({ ...long('a'), ...mark }, long('b')))).usage;
    const longer = (await client(simulator).messages.create(request(long('a'), { ...long('b'), ...mark }, long('c'))))
      .usage;
    const other = (await client(simulator).messages.create(request({ ...long('z'), ...mark }))).usage;
    expect(first.cache_read_input_tokens).toBe(0);
    expect(first.cache_creation_input_tokens).toBeGreaterThan(25);
    expect(again).toMatchObject({
      cache_read_input_tokens: first.cache_creation_input_tokens,
      cache_creation_input_tokens: 0,
    });
    expect(again.input_tokens).toBe(first.input_tokens);
    expect(longer.cache_read_input_tokens).toBe(first.cache_creation_input_tokens);
    expect(longer.cache_creation_input_tokens).toBe(first.input_tokens);
    expect(other.cache_read_input_tokens).toBe(0);
  });

  it('the mark of a whole request is at its last block', async () => {
    const simulator = await start();
    const { usage } = await client(simulator).messages.create({ ...request(long('a')), ...mark });
    expect(usage).toMatchObject({ input_tokens: 0, cache_read_input_tokens: 0 });
    const longer = await client(simulator).messages.create({ ...request(long('a'), long('b')), ...mark });
    expect(longer.usage.cache_read_input_tokens).toBe(usage.cache_creation_input_tokens);
  });

  it('a request that was not answered leaves nothing in the cache', async () => {
    const simulator = await start({
      scenarios: { once: () => ({ text: 'x', fault: { status: 529, times: 1 } }) },
      scenario: 'once',
    });
    const body = { ...prompt('hi'), ...mark };
    await expect(client(simulator).messages.create(body)).rejects.toThrow();
    expect((await client(simulator).messages.create(body)).usage.cache_read_input_tokens).toBe(0);
  });
});
