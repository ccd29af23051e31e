import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

interface Service {
  readonly image: string;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, { condition: string }>>;
  readonly healthcheck?: unknown;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

function read(name: string): string {
  return readFileSync(join(PROJECT, name), 'utf8');
}

const compose = parse(read('docker-compose.yml'), { merge: true }) as Compose;
const services = Object.entries(compose.services);

describe('docker-compose.yml', () => {
  it('opens ports on loopback only', () => {
    const ports = services.flatMap(([, service]) => service.ports ?? []);
    expect(ports).toEqual(['127.0.0.1:7233:7233', '127.0.0.1:8080:8080']);
  });

  it('names each image with a version', () => {
    const versions = services.map(([, { image }]) => /\$\{\w+:-(\d[\d.]*)\}$/.exec(image)?.[1]);
    expect(versions).toEqual(['16', '1.32.0', '1.32.0', '1.32.0', '2.54.1']);
  });

  it('starts each service after what it needs, and what others wait for has a health check', () => {
    const conditions = Object.fromEntries(services.map(([name, { depends_on }]) => [name, depends_on ?? {}]));
    expect(conditions).toMatchObject({
      schema: { postgres: { condition: 'service_healthy' } },
      temporal: { schema: { condition: 'service_completed_successfully' } },
      namespace: { temporal: { condition: 'service_healthy' } },
      ui: { namespace: { condition: 'service_completed_successfully' } },
    });
    const checked = services.filter(([, { healthcheck }]) => healthcheck).map(([name]) => name);
    expect(checked).toEqual(['postgres', 'temporal']);
  });

  it('keeps the database in a named volume and holds no password', () => {
    expect(compose.services['postgres']?.volumes).toEqual(['postgres-data:/var/lib/postgresql/data']);
    expect(Object.keys(compose.volumes)).toEqual(['postgres-data']);
    const passwords = services.flatMap(([, { environment }]) => [
      environment['POSTGRES_PWD'],
      environment['POSTGRES_PASSWORD'],
    ]);
    expect(passwords.filter(Boolean)).toHaveLength(3);
    expect(passwords.filter(Boolean).every((text) => text?.startsWith('${POSTGRES_PASSWORD:?'))).toBe(true);
  });

  it('mounts only files that are there, read-only', () => {
    const mounts = services.flatMap(([, { volumes }]) => volumes ?? []).filter((volume) => volume.startsWith('./'));
    expect(mounts).toHaveLength(3);
    for (const mount of mounts) {
      const [file = '', , mode] = mount.split(':');
      expect(statSync(join(PROJECT, file)).isFile()).toBe(true);
      expect(mode).toBe('ro');
    }
  });

  it('points the server at its settings', () => {
    const server = compose.services['temporal'];
    const [environment, volumes] = [server?.environment ?? {}, server?.volumes ?? []];
    expect(volumes.map((volume) => volume.split(':')[1])).toContain(environment['DYNAMIC_CONFIG_FILE_PATH']);
  });
});

describe("the server's settings", () => {
  it('are the measured ones', () => {
    expect(parse(read('docker/dynamicconfig.yaml'))).toEqual({
      'history.transferProcessorMaxPollRPS': [{ value: 5000 }],
      'history.transferProcessorMaxPollHostRPS': [{ value: 50000 }],
      'history.timerProcessorMaxTimeShift': [{ value: '20ms' }],
      'limit.maxIDLength': [{ value: 1000 }],
    });
  });

  it('agree with those of the embedded server', () => {
    const embedded = read('src/server/temporal-command.ts');
    for (const [key, [setting]] of Object.entries(
      parse(read('docker/dynamicconfig.yaml')) as Record<string, [{ value: unknown }]>,
    )) {
      if (key === 'limit.maxIDLength') continue; // the embedded server's default already
      expect(embedded).toContain(`'${key}': '${JSON.stringify(setting.value)}'`);
    }
  });
});

describe('the namespace job', () => {
  it("registers each of errand's search attributes", () => {
    const created = [...read('docker/set-up-namespace.sh').matchAll(/--name (\w+) --type (\w+)/g)].map(
      ([, ...pair]) => pair,
    );
    expect(Object.fromEntries(created)).toEqual({
      AgentType: 'Keyword',
      AgentStatus: 'Keyword',
      AgentDepth: 'Int',
      AgentTokens: 'Int',
      AgentCostUsd: 'Double',
      AgentWaiting: 'Keyword',
    });
  });

  it.each(['set-up-namespace.sh', 'set-up-schema.sh'])('%s is shell that parses', (name) => {
    const file = join(PROJECT, 'docker', name);
    expect(existsSync(file)).toBe(true);
    expect(execFileSync('/bin/sh', ['-n', file], { encoding: 'utf8' })).toBe('');
  });
});
