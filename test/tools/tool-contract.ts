import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { parseToolInput } from '../../src/tools/tool-input.ts';
import type { Tool } from '../../src/tools/tool.ts';

export interface ContractCases {
  /** Inputs that must be accepted, with the line shown to people. */
  readonly valid: readonly (readonly [input: Readonly<Record<string, unknown>>, summary: string])[];
  /** Inputs that must be refused, with what the problem must say. */
  readonly invalid: readonly (readonly [input: unknown, problem: string])[];
}

/** What every tool promises, whatever it does. */
export function testTool(tool: Tool, cases: ContractCases): void {
  const fields = Object.keys(schemaOf(tool).properties ?? {});

  describe(`${tool.name}, like every tool`, () => {
    test('has a snake_case name and words for the model', () => {
      expect(tool.name).toMatch(/^[a-z]+(_[a-z]+)*$/);
      expect(tool.description.length).toBeGreaterThan(60);
    });

    test('has a schema that is a strict object and describes every field', () => {
      const schema = schemaOf(tool);
      expect(schema).toMatchObject({ type: 'object', additionalProperties: false });
      expect(JSON.stringify(schema)).not.toMatch(/9007199254740991|\$ref/);
      for (const field of fields) expect(schema.properties?.[field], field).toHaveProperty('description');
    });

    test('names the unknown field and all valid ones', () => {
      const [input] = cases.valid[0] ?? [{}];
      const problem = problemOf(tool, { ...input, no_such_field: 1 });
      expect(problem).toContain('no_such_field');
      for (const field of fields) expect(problem).toContain(field);
    });

    test.each(['text', 7, null, [[]]])('refuses %j as input, readably', (input) => {
      expect(problemOf(tool, input)).toMatch(/^The input of \w+ is not valid:\n- input: got .+; expected object$/);
    });

    test.each(cases.invalid)('refuses %j', (input, problem) => {
      expect(problemOf(tool, input)).toContain(problem);
    });

    test.each(cases.valid)('accepts %j and shows it in one short line', (input, summary) => {
      const parsed = parseToolInput(tool, input);
      if ('problem' in parsed) throw new Error(parsed.problem);
      expect(tool.summarize(parsed.input)).toBe(summary);
      expect(Buffer.byteLength(summary)).toBeLessThanOrEqual(100);
      expect(summary).not.toContain('\n');
    });
  });
}

interface JsonSchema {
  readonly properties?: Readonly<Record<string, unknown>>;
}

function schemaOf(tool: Tool): JsonSchema {
  return z.toJSONSchema(tool.schema, { io: 'input' }) as JsonSchema;
}

function problemOf(tool: Tool, input: unknown): string {
  const parsed = parseToolInput(tool, input);
  if ('input' in parsed) throw new Error(`accepted ${JSON.stringify(input)}`);
  return parsed.problem;
}
