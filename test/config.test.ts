import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hasModelAccess, loadConfig } from '../src/config.ts';
import { homeId, homePaths } from '../src/home.ts';

let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'errand-config-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function load(env: Record<string, string> = {}) {
  return loadConfig({ env: { HOME: home, ERRAND_HOME: home, ...env } });
}

function withFile(yaml: string) {
  writeFileSync(join(home, 'config.yaml'), yaml);
  return load();
}

describe('loadConfig', () => {
  it('takes the home from ERRAND_HOME and else from the user folder', () => {
    expect(load().home).toEqual({ value: home, source: 'ERRAND_HOME' });
    expect(loadConfig({ env: { HOME: home } }).home).toEqual({ value: join(home, '.errand'), source: 'default' });
    expect(loadConfig({ env: { HOME: home, ERRAND_HOME: 'state' }, cwd: home }).home.value).toBe(join(home, 'state'));
  });

  it('prefers ERRAND_MODEL to config.yaml and says where the model came from', () => {
    expect(load().model).toEqual({ value: undefined, source: 'default' });
    expect(withFile('model: a-model\n').model).toEqual({ value: 'a-model', source: 'config.yaml' });
    expect(load({ ERRAND_MODEL: 'b-model' }).model).toEqual({ value: 'b-model', source: 'ERRAND_MODEL' });
  });

  it('never shows a secret, however it is printed', () => {
    const config = load({ ANTHROPIC_API_KEY: 'sk-marker-1', ANTHROPIC_AUTH_TOKEN: 'marker-2' });
    expect(JSON.stringify(config)).not.toMatch(/marker/);
    expect(config.apiKey.value?.reveal()).toBe('sk-marker-1');
    expect(config.apiKey.source).toBe('ANTHROPIC_API_KEY');
  });

  it('knows whether a model server can be asked', () => {
    expect(hasModelAccess(load())).toBe(false);
    expect(hasModelAccess(load({ ANTHROPIC_API_KEY: '' }))).toBe(false);
    expect(hasModelAccess(load({ ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' }))).toBe(true);
  });

  it('uses the embedded server until a TEMPORAL_ address or profile names another', () => {
    expect(load().temporal.server).toBe('embedded');
    expect(load({ TEMPORAL_NAMESPACE: 'mine' }).temporal.server).toBe('embedded');
    const external = load({
      TEMPORAL_ADDRESS: 'host:7233',
      TEMPORAL_NAMESPACE: 'mine',
      TEMPORAL_API_KEY: 'k',
    }).temporal;
    expect(external).toMatchObject({
      server: 'external',
      address: { value: 'host:7233', source: 'TEMPORAL_ADDRESS' },
      namespace: { value: 'mine' },
      connection: { apiKey: 'k', tls: true },
    });
    const embedded = load({ TEMPORAL_ADDRESS: 'host:7233', ERRAND_TEMPORAL_ADDRESS: '127.0.0.1:1' }).temporal;
    expect(embedded).toMatchObject({ server: 'embedded', address: { value: '127.0.0.1:1' } });
  });

  it('reads an external server from a profile file', () => {
    const file = join(home, 'temporal.toml');
    writeFileSync(file, '[profile.team]\naddress = "team:7233"\nnamespace = "jobs"\n');
    const { temporal } = load({ TEMPORAL_CONFIG_FILE: file, TEMPORAL_PROFILE: 'team' });
    expect(temporal).toMatchObject({
      server: 'external',
      address: { value: 'team:7233' },
      namespace: { value: 'jobs' },
    });
    expect(() => load({ TEMPORAL_CONFIG_FILE: file, TEMPORAL_PROFILE: 'no-such' })).toThrow(/no-such/);
  });

  it('reads every section of config.yaml', () => {
    const config = withFile(
      [
        'ceiling: {sandbox: full-access, roots: [/srv/jobs], network: false}',
        'limits: {historyEvents: 200, outageMs: 5000, idleTimeoutMs: 1000}',
        'caps: {total: 3, perTurn: 1}',
        'models: {some-model: {window: 1000, maxOutputTokens: 100, price: {input: 1, output: 5}}}',
      ].join('\n'),
    );
    expect(config.ceiling.value).toEqual({ sandbox: 'full-access', roots: ['/srv/jobs'], network: false });
    expect(config.limits.historyEvents.value).toBe(200);
    expect(config.caps.perTurn).toEqual({ value: 1, source: 'config.yaml' });
    expect(config.models.value['some-model']?.price?.output).toBe(5);
  });

  it('gives a command half of the memory and 2048 processes unless config.yaml says otherwise', () => {
    const { commandMemoryBytes, commandProcesses } = load().limits;
    expect(commandMemoryBytes.value).toBeGreaterThanOrEqual(2 * 1024 ** 3);
    expect(commandMemoryBytes.value).toBeLessThanOrEqual(Math.max(2 * 1024 ** 3, totalmem() / 2));
    expect([commandMemoryBytes.source, commandProcesses]).toEqual(['default', { value: 2048, source: 'default' }]);
    const { limits } = withFile('limits: {commandMemoryBytes: 1000000000, commandProcesses: 100}');
    expect(limits.commandMemoryBytes).toEqual({ value: 1e9, source: 'config.yaml' });
    expect(limits.commandProcesses).toEqual({ value: 100, source: 'config.yaml' });
  });

  it('takes a ceiling given as one word', () => {
    expect(withFile('ceiling: read-only').ceiling.value).toMatchObject({ sandbox: 'read-only', network: false });
    expect(load({}).ceiling.value.sandbox).toBe('read-only');
  });

  it.each([
    ['modle: x\n', /config\.yaml:1: unknown setting "modle"\. Valid here: model, ceiling, limits, caps, models\./],
    ['model: x\nlimits:\n  outageMs: soon\n', /config\.yaml:3: limits\.outageMs is "soon": .*expected number/],
    ['limits: {commandMemoryBytes: 8}\n', /limits\.commandMemoryBytes is 8: .*>=67108864/],
    ['limits: {commandProcesses: 0}\n', /limits\.commandProcesses is 0: .*>=16/],
    ['caps:\n  totl: 3\n', /config\.yaml:2: unknown setting "caps\.totl"\. Valid here: total, perTurn\./],
    ['ceiling: anything\n', /ceiling is "anything": expected read-only \| workspace-write \| full-access/],
    ['ceiling: {roots: [relative]}\n', /ceiling\.roots\.0 is "relative": expected an absolute path/],
    ['fleet: {}\n', /fleet is \{\}: reserved/],
    ['model: [a\n', /config\.yaml:\d+: /],
    ['- a list\n', /the whole file/],
    ['models: {m: {price: {input: 1}}}\n', /models\.m\.price\.output/],
  ])('refuses %j with the line, the field and what is valid', (yaml, message) => {
    expect(() => withFile(yaml)).toThrow(message);
  });

  it.runIf(process.getuid?.() !== 0)('names a config.yaml that cannot be read', () => {
    writeFileSync(join(home, 'config.yaml'), 'model: x');
    chmodSync(join(home, 'config.yaml'), 0);
    expect(() => load()).toThrow(/config\.yaml cannot be read/);
  });

  it('names a config.yaml that is a folder', () => {
    mkdirSync(join(home, 'config.yaml'));
    expect(() => load()).toThrow(/config\.yaml cannot be read/);
  });

  it('refuses a base URL that is none', () => {
    expect(() => load({ ANTHROPIC_BASE_URL: 'localhost:80' })).toThrow(
      /ANTHROPIC_BASE_URL is "localhost:80": expected a URL/,
    );
  });

  it('takes the tools from their variables and names one that is missing', () => {
    const { tools } = load({ ERRAND_BWRAP: '/no/such/bwrap', ERRAND_TEMPORAL_CLI: process.execPath });
    expect(tools.temporal).toEqual({ value: { path: process.execPath }, source: 'ERRAND_TEMPORAL_CLI' });
    expect(tools.bwrap.value.problem).toMatch(/ERRAND_BWRAP names \/no\/such\/bwrap/);
  });
});

describe('homeId', () => {
  it('is minted once, for the owner only', () => {
    const id = homeId(join(home, 'state'));
    expect(id).toMatch(/^[a-z0-9]{8}$/);
    expect(homeId(join(home, 'state'))).toBe(id);
    expect(statSync(homePaths(join(home, 'state')).homeIdFile).mode & 0o777).toBe(0o600);
  });

  it('is the same for processes that ask at once', async () => {
    const source = readFileSync(new URL('../src/home.ts', import.meta.url), 'utf8');
    const module = join(home, 'home.mjs');
    const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
    const ask = `\nconsole.log(homeId(${JSON.stringify(join(home, 'shared'))}));\n`;
    writeFileSync(module, ts.transpileModule(source, { compilerOptions: options }).outputText + ask);
    const runs = Array.from({ length: 6 }, () => promisify(execFile)(process.execPath, [module]));
    const ids = (await Promise.all(runs)).map(({ stdout }) => stdout.trim());
    expect(new Set(ids).size).toBe(1);
    expect(readdirSync(join(home, 'shared'))).toEqual(['home-id']);
  });

  it('refuses a file that holds something else', () => {
    writeFileSync(join(home, 'home-id'), 'x\n');
    expect(() => homeId(home)).toThrow(/does not hold a home id: "x"/);
  });
});
