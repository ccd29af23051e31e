import Anthropic from '@anthropic-ai/sdk';
import { afterEach, describe, expect, it } from 'vitest';
import { startSimulator } from '../../src/simulator/index.ts';
import type { Fault, Simulator, Step } from '../../src/simulator/index.ts';
import { client, prompt, textOf, until } from './requests.ts';

const open: Simulator[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((simulator) => simulator.close()));
});

const STEP: Step = {
  thinking: 'Long thoughts about files. '.repeat(4),
  text: 'I read the file to see. '.repeat(4),
  calls: [{ name: 'read', input: { file_path: 'a/long/path/to/some/file.txt' } }],
};

async function startWith(fault: Fault | readonly Fault[], step: Step = STEP): Promise<Simulator> {
  const simulator = await startSimulator({ scenarios: { f: () => ({ ...step, fault }) }, scenario: 'f' });
  open.push(simulator);
  return simulator;
}

/** What a client saw of a stream before it broke. */
async function watch(simulator: Simulator): Promise<{ events: string[]; error: unknown }> {
  const events: string[] = [];
  try {
    const stream = await client(simulator).messages.create({ ...prompt('go'), stream: true });
    for await (const event of stream) events.push(event.type === 'content_block_delta' ? event.delta.type : event.type);
    return { events, error: undefined };
  } catch (error) {
    return { events, error };
  }
}

async function failureOf(simulator: Simulator): Promise<unknown> {
  return client(simulator)
    .messages.stream(prompt('go'))
    .finalMessage()
    .catch((error: unknown) => error);
}

describe('statuses', () => {
  it.each([
    [429, 'rate_limit_error', Anthropic.RateLimitError],
    [529, 'overloaded_error', Anthropic.OverloadedError],
    [500, 'api_error', Anthropic.InternalServerError],
    [403, 'permission_error', Anthropic.PermissionDeniedError],
  ])('%d comes as the client expects it', async (status, type, errorClass) => {
    const simulator = await startWith({ status });
    const error = await failureOf(simulator);
    expect(error).toBeInstanceOf(errorClass);
    expect(error).toMatchObject({ type, requestID: expect.stringMatching(/^req_sim_/) as string });
    expect(simulator.ledger()).toMatchObject([
      { outcome: 'error', status, errorType: type, usage: { input_tokens: 0 } },
    ]);
  });

  it('retry-after is seconds or a date', async () => {
    const seconds = (await failureOf(await startWith({ status: 429, retryAfter: 7 }))) as InstanceType<
      typeof Anthropic.RateLimitError
    >;
    const date = (await failureOf(await startWith({ status: 429, retryAfter: 'date+60' }))) as InstanceType<
      typeof Anthropic.RateLimitError
    >;
    expect(seconds.headers?.get('retry-after')).toBe('7');
    expect(Date.parse(date.headers?.get('retry-after') ?? '')).toBeGreaterThan(Date.now() + 50_000);
  });

  it('the first n requests fail, then the next fault has its turn, then none', async () => {
    const simulator = await startWith([
      { status: 529, times: 2 },
      { status: 500, errorType: 'odd_error', times: 1 },
    ]);
    const statuses: unknown[] = [];
    for (let n = 0; n < 4; n++) statuses.push(((await failureOf(simulator)) as { status?: number }).status);
    expect(statuses).toEqual([529, 529, 500, undefined]);
    expect(simulator.ledger()[2]?.errorType).toBe('odd_error');
  });
});

describe('broken streams', () => {
  it.each([
    ['message_start', 'message_start'],
    ['thinking', 'thinking_delta'],
    ['text', 'text_delta'],
    ['input_json', 'input_json_delta'],
    ['block_stop', 'content_block_stop'],
    ['message_delta', 'message_delta'],
  ] as const)('a cut at %s ends the stream there', async (cut, last) => {
    const simulator = await startWith({ cut });
    const { events, error } = await watch(simulator);
    expect(error).toBeInstanceOf(Error);
    expect(events.at(-1)).toBe(last);
    expect(simulator.ledger()).toMatchObject([{ outcome: 'cut', status: 200, stopReason: null }]);
  });

  it('a cut stream costs the input and the output that was sent', async () => {
    const cut = await startWith({ cut: 'text' });
    const whole = await startWith([]);
    await failureOf(cut);
    await client(whole).messages.stream(prompt('go')).finalMessage();
    const [broken, complete] = [cut.ledger()[0]?.usage, whole.ledger()[0]?.usage];
    expect(broken?.input_tokens).toBe(complete?.input_tokens);
    expect(broken?.output_tokens).toBeGreaterThan(Math.ceil((STEP.thinking?.length ?? 0) / 4));
    expect(broken?.output_tokens).toBeLessThan(complete?.output_tokens ?? 0);
  });

  it('a cut after n bytes is exact', async () => {
    const { url } = await startWith({ cut: 150 });
    const response = await fetch(`${url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': 'any', 'anthropic-version': 'x' },
      body: JSON.stringify({ ...prompt('go'), stream: true }),
    });
    let bytes = 0;
    const read = async (): Promise<void> => {
      for await (const chunk of response.body as AsyncIterable<Uint8Array>) bytes += chunk.length;
    };
    await expect(read()).rejects.toThrow();
    expect(bytes).toBe(150);
  });

  it('a cut after 0 bytes is a connection error', async () => {
    const simulator = await startWith({ cut: 0 });
    expect(await failureOf(simulator)).toBeInstanceOf(Anthropic.APIConnectionError);
    expect(simulator.ledger()).toMatchObject([{ outcome: 'cut', status: 0, usage: { input_tokens: 0 } }]);
  });

  it('a cut place that the reply does not have cuts before message_stop', async () => {
    const { events } = await watch(await startWith({ cut: 'input_json' }, { text: 'only words' }));
    expect(events.at(-1)).toBe('message_delta');
  });

  it('a whole reply is cut too', async () => {
    const simulator = await startWith({ cut: 'text' });
    await expect(client(simulator).messages.create(prompt('go'))).rejects.toThrow();
    expect(simulator.ledger()).toMatchObject([{ outcome: 'cut' }]);
  });

  it('an error inside the stream has its type', async () => {
    const simulator = await startWith({ errorEvent: 'overloaded_error' });
    const error = await failureOf(simulator);
    expect(error).toMatchObject({ type: 'overloaded_error' });
    expect(simulator.ledger()).toMatchObject([{ outcome: 'error', status: 200, errorType: 'overloaded_error' }]);
    expect(simulator.ledger()[0]?.usage.output_tokens).toBeGreaterThan(1);
  });

  it('silence lasts until the client gives up, and counts as cut', async () => {
    const simulator = await startWith({ silence: 'message_start' });
    const stream = client(simulator).messages.stream(prompt('go'));
    const failure = stream.finalMessage().catch((error: unknown) => error);
    await new Promise<void>((resolve) =>
      stream.once('streamEvent', () => {
        resolve();
      }),
    );
    expect(simulator.ledger()).toMatchObject([{ outcome: 'open' }]);
    stream.abort();
    expect(await failure).toBeInstanceOf(Anthropic.APIUserAbortError);
    await until(() => simulator.ledger()[0]?.outcome === 'cut');
    expect(simulator.ledger()[0]?.usage.output_tokens).toBe(1);
  });

  it('a client that leaves while it waits for the headers has paid nothing', async () => {
    const simulator = await startWith({ delayMs: 60_000 });
    const stream = client(simulator).messages.stream(prompt('go'));
    const failure = stream.finalMessage().catch((error: unknown) => error);
    await until(() => simulator.ledger().length === 1);
    stream.abort();
    await failure;
    await until(() => simulator.ledger()[0]?.outcome === 'cut');
    expect(simulator.ledger()[0]?.usage.input_tokens).toBe(0);
  });

  it('closing the simulator ends what is under way', async () => {
    const simulator = await startWith({ silence: 'text' });
    const failure = failureOf(simulator);
    await until(() => simulator.ledger().length === 1);
    await simulator.close();
    expect(await failure).toBeInstanceOf(Error);
    expect(simulator.ledger()).toMatchObject([{ outcome: 'cut' }]);
  });
});

describe('inputs', () => {
  it('a call can be sent with broken JSON', async () => {
    const fragments: string[] = [];
    const stream = await client(await startWith({ malformedInput: true })).messages.create({
      ...prompt('go'),
      stream: true,
    });
    for await (const event of stream) {
      if (event.type === 'content_block_delta' && event.delta.type === 'input_json_delta')
        fragments.push(event.delta.partial_json);
    }
    expect(() => JSON.parse(fragments.join('')) as unknown).toThrow();
  });

  it('a delay is a delay and nothing else', async () => {
    const simulator = await startWith({ delayMs: 30, betweenMs: 1 }, { text: 'late' });
    const started = Date.now();
    const reply = await client(simulator).messages.stream(prompt('go')).finalMessage();
    expect(textOf(reply)).toBe('late');
    expect(Date.now() - started).toBeGreaterThanOrEqual(30);
  });

  it('the fault scenario plays each kind', async () => {
    const simulator = await startSimulator();
    open.push(simulator);
    const outcomes: string[] = [];
    for (const kind of [
      '429',
      'cut',
      'cut-start',
      'cut-thinking',
      'cut-json',
      'cut-end',
      'overloaded',
      'malformed',
      'delay',
    ]) {
      const request = prompt(`[[scenario:fault kind=${kind} ms=1]]`);
      await client(simulator)
        .messages.stream(request)
        .finalMessage()
        .catch(() => undefined);
      await client(simulator).messages.stream(request).finalMessage();
      const [first, second] = simulator.ledger().slice(-2);
      outcomes.push(`${kind} ${first?.outcome}`);
      expect(second?.outcome).toBe('complete');
    }
    expect(outcomes).toEqual([
      '429 error',
      'cut cut',
      'cut-start cut',
      'cut-thinking cut',
      'cut-json cut',
      'cut-end cut',
      'overloaded error',
      'malformed complete',
      'delay complete',
    ]);
  });
});
