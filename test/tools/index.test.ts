import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { BUILT_IN_TOOLS } from '../../src/policy/tool-names.ts';
import { toolByName, TOOLS, toolSchemas } from '../../src/tools/index.ts';

test('the tools are those that the policy knows', () => {
  expect(TOOLS.map((tool) => tool.name).sort()).toEqual([...BUILT_IN_TOOLS]);
  expect(toolByName('read')?.name).toBe('read');
  expect(toolByName('Read')).toBeUndefined();
});

test('schemas come in one order and with the same bytes, however they are asked for', () => {
  const names = TOOLS.map((tool) => tool.name);
  const text = JSON.stringify(toolSchemas(names));
  expect(JSON.stringify(toolSchemas([...names].reverse()))).toBe(text);
  expect(toolSchemas(['edit', 'read']).map((schema) => schema.name)).toEqual(['read', 'edit']);
  expect(createHash('sha256').update(text).digest('hex')).toHaveLength(64);
});

test('a schema is a plain strict object without dialect', () => {
  for (const { input_schema } of toolSchemas(TOOLS.map((tool) => tool.name))) {
    expect(input_schema).toMatchObject({ type: 'object', additionalProperties: false });
    expect(input_schema).not.toHaveProperty('$schema');
  }
});

test('an unknown name is an error that lists the known ones', () => {
  expect(() => toolSchemas(['read', 'reed'])).toThrow(/No such tool: reed. There are: read, write/);
});
