import { describe, expect, it } from 'vitest';
import { builtInAgentTypes, exploreType, rootType } from '../../src/agents/built-in.ts';
import type { SystemPromptInput } from '../../src/agents/system-prompt.ts';
import { renderSystemPrompt } from '../../src/agents/system-prompt.ts';

function input(change: Partial<SystemPromptInput> = {}): SystemPromptInput {
  return {
    type: rootType,
    workspace: '/w',
    platform: 'linux',
    date: '2026-11-30',
    isGit: true,
    depth: 0,
    canSpawn: true,
    model: 'large',
    tools: ['bash', 'edit', 'read', 'task', 'write'],
    ...change,
  };
}

describe('renderSystemPrompt', () => {
  it('tells not to delegate exactly where task is absent', () => {
    expect(renderSystemPrompt(input())).not.toContain('Do not delegate');
    expect(renderSystemPrompt(input({ canSpawn: false }))).toContain('Do not delegate');
  });

  it('tells what an unknown effect is and what to do then', () => {
    const text = renderSystemPrompt(input());
    expect(text).toContain('interrupted; effects unknown');
    expect(text).toContain('Never blindly repeat it');
  });

  it('says whether there is a network', () => {
    expect(renderSystemPrompt(input())).toContain('There is no network');
    expect(renderSystemPrompt(input({ network: true }))).toContain('The network can be reached');
    expect(renderSystemPrompt(input({ tools: ['read'] }))).not.toContain('network');
  });

  it('is the same text for the same input', () => {
    expect(renderSystemPrompt(input())).toBe(renderSystemPrompt(input()));
  });

  it('ends with the notes of the project, if there are any', () => {
    expect(renderSystemPrompt(input({ projectNotes: 'Use tabs.\n' }))).toMatch(/# Notes of the project[^]*Use tabs\.$/);
    expect(renderSystemPrompt(input({ projectNotes: ' ' }))).not.toContain('Notes of the project');
  });
});

describe('the built-in types', () => {
  it('tell a child that only its last message returns and that nobody answers', () => {
    for (const type of builtInAgentTypes) {
      expect(type.prompt).toContain('Only the text of your last message returns');
      expect(type.prompt).toContain('Nobody answers questions');
    }
  });

  it('give types that only read neither changes nor delegation', () => {
    expect(exploreType).toMatchObject({ sandbox: 'read-only', canSpawn: false });
    expect(exploreType.tools).not.toContain('bash');
  });
});
