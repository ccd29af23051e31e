import { describe, expect, it } from 'vitest';
import { modelServerOf } from '../src/model-server-id.ts';

const KEY = { ANTHROPIC_API_KEY: 'k' };

describe('the name of a model server', () => {
  it.each([
    ['https://api.anthropic.com', undefined],
    ['https://api.anthropic.com', ''],
    ['https://api.anthropic.com', 'HTTPS://API.Anthropic.com:443/'],
    ['https://host/v2/models', 'https://host/v2/models//'],
    ['https://host/Path', 'https://HOST/Path'],
    ['https://host/b', 'https://host/a/../b'],
    ['http://host:8080', 'http://host:8080/'],
    ['http://host', 'http://host:80'],
    ['https://host:80', 'https://host:80'],
    ['http://127.0.0.1:4000', ' http://127.0.0.1:4000 '],
  ])('%s for %j: one form, whatever the spelling', (name, url) => {
    expect(modelServerOf({ ...KEY, ANTHROPIC_BASE_URL: url })).toBe(name);
  });

  it('holds no user, password, query or key', () => {
    const url = 'https://user:hidden@host/path?token=hidden#hidden';
    expect(modelServerOf({ ANTHROPIC_API_KEY: 'hidden', ANTHROPIC_BASE_URL: url })).toBe('https://host/path');
  });

  it.each([
    ['the scheme', 'http://host', 'https://host'],
    ['the port', 'http://host:1', 'http://host:2'],
    ['the path', 'https://host/a', 'https://host/A'],
  ])('differs with %s', (_, one, other) => {
    expect(modelServerOf({ ANTHROPIC_BASE_URL: one })).not.toBe(modelServerOf({ ANTHROPIC_BASE_URL: other }));
  });

  it("of the demo's workers is a word, since the simulator's port changes", () => {
    const demo = { ANTHROPIC_API_KEY: 'errand-demo' };
    expect(modelServerOf({ ...demo, ANTHROPIC_BASE_URL: 'http://127.0.0.1:4000' })).toBe('simulator');
    expect(modelServerOf({ ...demo, ANTHROPIC_BASE_URL: 'http://127.0.0.1:5000' })).toBe('simulator');
    expect(modelServerOf({ ...demo, ANTHROPIC_BASE_URL: 'https://host' })).toBe('https://host');
    expect(modelServerOf({ ...KEY, ANTHROPIC_BASE_URL: 'http://127.0.0.1:4000' })).toBe('http://127.0.0.1:4000');
  });

  it('is none where there is neither key nor address: the default server would turn the run down', () => {
    expect(modelServerOf({})).toBe('none');
    expect(modelServerOf({ ANTHROPIC_API_KEY: ' ' })).toBe('none');
    expect(modelServerOf({ ANTHROPIC_AUTH_TOKEN: 't' })).toBe('https://api.anthropic.com');
  });
});
